//! CREATE, DROP, RENAME, TRUNCATE of databases, tables and indexes; ALTER is next door.

use untorn::schema::ReferentialAction;

use super::super::ast::{
    Check, ColumnDef, CreateTable, DataType, Expr, ForeignKey, Generated, KeyDef, KeyKind, KeyPart,
    KeySource, Statement,
};
use super::super::lexer::TokenKind;
use super::reserved::{FUNCTIONS, FUNCTIONS_OR_NAMES};
use super::{Parsed, Parser};
use crate::errors;

/// A clause of CREATE TABLE or ALTER TABLE … ADD that defines no column.
pub(super) enum Constraint {
    Key(KeyDef),
    ForeignKey(ForeignKey),
    Check(Check),
}

/// Columns that InnoDB gives each table itself.
const OF_ENGINE: [&str; 3] = ["DB_ROW_ID", "DB_TRX_ID", "DB_ROLL_PTR"];

/// Refuses the name of an index that there cannot be: none, one that ends in a blank, the primary key's,
/// InnoDB's own one, a long one.
pub fn check_key_name(name: &str) -> Parsed<()> {
    const TAKEN: [&str; 2] = ["PRIMARY", "GEN_CLUST_INDEX"];
    let taken = TAKEN.iter().position(|taken| taken.eq_ignore_ascii_case(name));
    if name.is_empty() || name.ends_with(' ') || taken.is_some() {
        // InnoDB names its own as it is written there.
        let named = if taken == Some(1) { TAKEN[1] } else { name };
        return Err(errors::error(errors::WRONG_NAME_FOR_INDEX, &[&named]));
    }
    super::check_length(name)
}

/// Whether no column has such a name: none, one that ends in a blank, that of a column that InnoDB adds.
pub fn is_wrong_column(name: &str) -> bool {
    name.is_empty() || name.ends_with(' ') || OF_ENGINE.iter().any(|own| own.eq_ignore_ascii_case(name))
}

impl Parser<'_> {
    pub(crate) fn create(&mut self) -> Parsed<Statement> {
        self.expect("CREATE")?;
        if self.accept_any(&["DATABASE", "SCHEMA"]).is_some() {
            let if_not_exists = self.if_not_exists();
            let name = self.database_name()?;
            if name.is_empty() || name.ends_with(' ') {
                return Err(errors::error(errors::WRONG_DB_NAME, &[&name]));
            }
            let (charset, collation) = self.database_options()?;
            return Ok(Statement::CreateDatabase { name, if_not_exists, charset, collation });
        }
        if self.accept("USER") {
            return self.create_user();
        }
        if self.accept("ROLE") {
            return self.create_role();
        }
        let temporary = self.accept("TEMPORARY");
        if self.accept("TABLE") {
            return self.create_table(temporary);
        }
        let kind = match self.accept_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => KeyKind::Unique,
            Some("FULLTEXT") => KeyKind::Fulltext,
            Some(_) => KeyKind::Spatial,
            None => KeyKind::Plain,
        };
        if self.accept("INDEX") {
            return self.create_index(kind);
        }
        if (self.starts_view() || self.is_word("DEFINER"))
            && let Some(view) = self.view(false)?
        {
            return Ok(view);
        }
        self.refuse_object(&[
            ("TRIGGER", "CREATE TRIGGER"),
            ("PROCEDURE", "CREATE PROCEDURE"),
            ("FUNCTION", "CREATE FUNCTION"),
            ("AGGREGATE", "CREATE AGGREGATE FUNCTION"),
            ("EVENT", "CREATE EVENT"),
            ("SERVER", "CREATE SERVER"),
            ("TABLESPACE", "CREATE TABLESPACE"),
            ("UNDO", "CREATE UNDO TABLESPACE"),
        ])
    }

    /// Refuses a statement about a kind of object that there is not, by its name: words, and what is said.
    pub(super) fn refuse_object(&mut self, kinds: &[(&str, &'static str)]) -> Parsed<Statement> {
        match kinds.iter().find(|(word, _)| self.is_word(word)) {
            Some((_, what)) => self.refuse(what),
            None => Err(self.unexpected()),
        }
    }

    pub(crate) fn skip_statement(&mut self) {
        while self.current.kind != TokenKind::End {
            self.advance();
        }
    }

    /// `[DEFAULT] CHARACTER SET [=] x`, `COLLATE [=] y`, `ENCRYPTION [=] 'N'`
    pub(super) fn database_options(&mut self) -> Parsed<(Option<String>, Option<String>)> {
        let (mut charset, mut collation) = (None, None);
        while !self.at_end() {
            let _ = self.accept("DEFAULT");
            if self.accept_all(&["CHARACTER", "SET"]) || self.accept("CHARSET") {
                let _ = self.accept_symbol(b"=");
                charset = Some(self.name_or_text()?.to_ascii_lowercase());
            } else if self.accept("COLLATE") {
                let _ = self.accept_symbol(b"=");
                collation = Some(self.name_or_text()?.to_ascii_lowercase());
            } else if self.accept("ENCRYPTION") || self.accept("COMMENT") {
                let _ = self.accept_symbol(b"=");
                self.text()?;
            } else {
                return Err(self.unexpected());
            }
        }
        Ok((charset, collation))
    }

    /// Some words are functions where `(` follows at once (1064).
    fn refuse_function_word(&self) -> Parsed<()> {
        let next = self.peek();
        let opens = self.token_bytes(next) == b"(" && next.start == self.current.end;
        let is_function = self.is_any_word(FUNCTIONS) && !self.is_any_word(FUNCTIONS_OR_NAMES);
        if opens && is_function { Err(self.unexpected()) } else { Ok(()) }
    }

    fn create_table(&mut self, temporary: bool) -> Parsed<Statement> {
        let if_not_exists = self.if_not_exists();
        self.refuse_function_word()?;
        let mut table = CreateTable {
            name: self.table_name()?,
            if_not_exists,
            temporary,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            options: Vec::new(),
            like: None,
            as_query: None,
            ignore: false,
            replace: false,
        };
        if self.accept("LIKE") {
            table.like = Some(self.table_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.is_symbol(b"(") && self.peek_is_word("LIKE") {
            self.advance();
            self.advance();
            table.like = Some(self.table_name()?);
            self.expect_symbol(b")")?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if !self.starts_query() && self.accept_symbol(b"(") {
            loop {
                self.create_definition(&mut table)?;
                if !self.accept_symbol(b",") {
                    break;
                }
            }
            self.expect_symbol(b")")?;
        }
        const BEHIND_OPTIONS: [&str; 8] =
            ["AS", "SELECT", "IGNORE", "REPLACE", "PARTITION", "WITH", "TABLE", "VALUES"];
        while !self.at_end() && !self.is_any_word(&BEHIND_OPTIONS) && !self.is_symbol(b"(") {
            table.options.push(self.table_option()?);
            let _ = self.accept_symbol(b",");
        }
        if self.is_word("PARTITION") {
            return Err(errors::unsupported("PARTITION BY"));
        }
        let duplicates = self.accept_any(&["IGNORE", "REPLACE"]);
        (table.ignore, table.replace) = (duplicates == Some("IGNORE"), duplicates == Some("REPLACE"));
        let said = self.accept("AS") || duplicates.is_some();
        if said || self.starts_query() {
            table.as_query = Some(Box::new(self.query()?));
        } else if table.columns.is_empty() {
            return Err(errors::error(errors::TABLE_MUST_HAVE_COLUMNS, &[]));
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// A table option with its value as text, the name in upper case.
    pub(super) fn table_option(&mut self) -> Parsed<(String, String)> {
        let _ = self.accept("DEFAULT");
        let name = if self.accept_all(&["CHARACTER", "SET"]) {
            "CHARSET".to_owned()
        } else if self.accept_all(&["DATA", "DIRECTORY"]) {
            "DATA DIRECTORY".to_owned()
        } else if self.accept_all(&["INDEX", "DIRECTORY"]) {
            "INDEX DIRECTORY".to_owned()
        } else {
            self.any_name()?.to_ascii_uppercase()
        };
        let _ = self.accept_symbol(b"=");
        // Tables of MERGE, which is not there.
        if name == "UNION" && self.accept_symbol(b"(") {
            if !self.is_symbol(b")") {
                self.list(Self::table_name)?;
            }
            self.expect_symbol(b")")?;
            return Ok((name, String::new()));
        }
        let value = match self.current.kind {
            TokenKind::Integer | TokenKind::Decimal => {
                let token = self.advance();
                String::from_utf8_lossy(self.token_bytes(token)).into_owned()
            }
            TokenKind::Text | TokenKind::Word | TokenKind::QuotedName => self.name_or_text()?,
            _ => return Err(self.unexpected()),
        };
        Ok((name, value))
    }

    fn create_definition(&mut self, table: &mut CreateTable) -> Parsed<()> {
        match self.constraint()? {
            Some(Constraint::Key(key)) => table.keys.push(key),
            Some(Constraint::ForeignKey(foreign)) => table.foreign_keys.push(foreign),
            Some(Constraint::Check(check)) => table.checks.push(check),
            None => {
                let name = self.name()?;
                let mut column = self.column_definition(name)?;
                table.checks.append(&mut column.checks);
                table.foreign_keys.extend(column.references.take());
                table.columns.push(column);
            }
        }
        Ok(())
    }

    /// A key or constraint clause, or `None` when a column definition begins here.
    pub(super) fn constraint(&mut self) -> Parsed<Option<Constraint>> {
        let mut constraint_name = None;
        let constraint = self.accept("CONSTRAINT");
        if constraint && !self.is_any_word(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            constraint_name = Some(self.name()?);
        }
        let kind = if self.accept("PRIMARY") {
            self.expect("KEY")?;
            KeyKind::Primary
        } else if self.accept("UNIQUE") {
            let _ = self.accept_any(&["KEY", "INDEX"]);
            KeyKind::Unique
        } else if let Some(word) = self.accept_any(&["FULLTEXT", "SPATIAL"]) {
            let _ = self.accept_any(&["KEY", "INDEX"]);
            if word == "FULLTEXT" { KeyKind::Fulltext } else { KeyKind::Spatial }
        } else if self.is_word("KEY") || self.is_word("INDEX") {
            self.advance();
            KeyKind::Plain
        } else if self.is_word("FOREIGN") {
            return Ok(Some(Constraint::ForeignKey(self.foreign_key(constraint_name)?)));
        } else if self.accept("CHECK") {
            return Ok(Some(Constraint::Check(self.check(constraint_name, None)?)));
        } else if constraint {
            return Err(self.unexpected());
        } else {
            return Ok(None);
        };
        let mut name = constraint_name;
        if !self.is_symbol(b"(") && !self.is_word("USING") {
            name = Some(self.name()?);
        }
        if kind == KeyKind::Primary {
            name = None;
        }
        name.iter().try_for_each(|name| check_key_name(name))?;
        Ok(Some(Constraint::Key(self.key_parts(name, kind)?)))
    }

    /// A key that is neither primary nor unique, behind KEY.
    pub(super) fn plain_key(&mut self) -> Parsed<KeyDef> {
        let named = !self.is_symbol(b"(") && !self.is_word("USING");
        let name = if named { Some(self.name()?) } else { None };
        name.iter().try_for_each(|name| check_key_name(name))?;
        self.key_parts(name, KeyKind::Plain)
    }

    /// Behind CHECK.
    fn check(&mut self, name: Option<String>, column: Option<&str>) -> Parsed<Check> {
        let expression = self.in_parentheses()?;
        let mut enforced = true;
        if self.is_word("NOT") && self.peek_is_word("ENFORCED") {
            self.advance();
            enforced = false;
        }
        let _ = self.accept("ENFORCED");
        Ok(Check { name, expression, enforced, column: column.map(str::to_owned) })
    }

    pub(super) fn in_parentheses(&mut self) -> Parsed<Expr> {
        self.expect_symbol(b"(")?;
        let expr = self.expr()?;
        self.expect_symbol(b")")?;
        Ok(expr)
    }

    /// `[USING BTREE] (a, b(10) DESC, (c + 1)) [options]`
    fn key_parts(&mut self, name: Option<String>, kind: KeyKind) -> Parsed<KeyDef> {
        self.using_btree()?;
        let parts = self.parenthesised(|parser| {
            let mut length = None;
            let source = if parser.is_symbol(b"(") {
                KeySource::Expression(parser.in_parentheses()?)
            } else {
                let column = parser.name()?;
                if parser.accept_symbol(b"(") {
                    length = Some(parser.small_integer()?);
                    parser.expect_symbol(b")")?;
                }
                KeySource::Column(column)
            };
            let descending = parser.accept("DESC");
            let _ = !descending && parser.accept("ASC");
            Ok(KeyPart { source, length, descending })
        })?;
        let mut key = KeyDef::new(name, kind, parts);
        loop {
            if self.is_word("USING") {
                self.using_btree()?;
            } else if self.accept("COMMENT") {
                key.comment = self.text_string()?;
            } else if self.accept("KEY_BLOCK_SIZE") {
                let _ = self.accept_symbol(b"=");
                self.integer()?;
            } else if let Some(word) = self.accept_any(&["VISIBLE", "INVISIBLE"]) {
                key.invisible = word == "INVISIBLE";
            } else if key.kind == KeyKind::Fulltext && self.accept("WITH") {
                self.expect("PARSER")?;
                self.any_name()?;
            } else {
                return Ok(key);
            }
        }
    }

    fn using_btree(&mut self) -> Parsed<()> {
        if self.accept("USING") || self.accept("TYPE") {
            self.any_name()?;
        }
        Ok(())
    }

    fn foreign_key(&mut self, name: Option<String>) -> Parsed<ForeignKey> {
        self.expect("FOREIGN")?;
        self.expect("KEY")?;
        let index = if self.is_symbol(b"(") { None } else { Some(self.name()?) };
        // What its index is named.
        name.iter().chain(&index).take(1).try_for_each(|name| check_key_name(name))?;
        let columns = self.parenthesised(Self::name)?;
        self.references(name, index, columns)
    }

    fn references(
        &mut self,
        name: Option<String>,
        index: Option<String>,
        columns: Vec<String>,
    ) -> Parsed<ForeignKey> {
        self.expect("REFERENCES")?;
        let references = self.table_name()?;
        let referenced_columns =
            if self.is_symbol(b"(") { self.parenthesised(Self::name)? } else { Vec::new() };
        if self.accept("MATCH") {
            self.any_name()?;
        }
        let (mut on_delete, mut on_update) = (None, None);
        while self.accept("ON") {
            let action = if self.accept("DELETE") {
                &mut on_delete
            } else {
                self.expect("UPDATE")?;
                &mut on_update
            };
            if action.is_some() {
                return Err(self.unexpected());
            }
            *action = Some(self.referential_action()?);
        }
        let (on_delete, on_update) = (on_delete.unwrap_or_default(), on_update.unwrap_or_default());
        Ok(ForeignKey { name, columns, references, referenced_columns, index, on_delete, on_update })
    }

    fn referential_action(&mut self) -> Parsed<ReferentialAction> {
        if self.accept("RESTRICT") {
            Ok(ReferentialAction::Restrict)
        } else if self.accept("CASCADE") {
            Ok(ReferentialAction::Cascade)
        } else if self.accept_all(&["SET", "NULL"]) {
            Ok(ReferentialAction::SetNull)
        } else if self.accept_all(&["NO", "ACTION"]) {
            Ok(ReferentialAction::NoAction)
        } else if self.accept_all(&["SET", "DEFAULT"]) {
            // InnoDB has none.
            Err(errors::error(errors::CANNOT_ADD_FOREIGN, &[]))
        } else {
            Err(self.unexpected())
        }
    }

    pub(crate) fn column_definition(&mut self, name: String) -> Parsed<ColumnDef> {
        super::check_length(&name)?;
        if is_wrong_column(&name) {
            return Err(errors::error(errors::WRONG_COLUMN_NAME, &[&name]));
        }
        let data_type = self.data_type(&name)?;
        let serial = data_type.serial;
        let mut column = ColumnDef {
            name,
            data_type,
            nullable: serial.then_some(false),
            default: None,
            generated: None,
            checks: Vec::new(),
            references: None,
            on_update_now: false,
            auto_increment: serial,
            primary: false,
            unique: serial,
            invisible: false,
            comment: String::new(),
        };
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    fn column_attribute(&mut self, column: &mut ColumnDef) -> Parsed<bool> {
        if self.accept_all(&["NOT", "NULL"]) {
            column.nullable = Some(false);
        } else if self.accept("NULL") {
            column.nullable = Some(true);
        } else if self.accept("DEFAULT") {
            column.default = Some(self.column_default()?);
        } else if self.accept_all(&["ON", "UPDATE"]) {
            self.default_expr()?;
            column.on_update_now = true;
        } else if self.accept("AUTO_INCREMENT") {
            column.auto_increment = true;
        } else if self.accept("UNIQUE") {
            let _ = self.accept("KEY");
            column.unique = true;
        } else if self.accept("PRIMARY") {
            self.expect("KEY")?;
            column.primary = true;
        } else if self.accept("KEY") {
            column.primary = true;
        } else if self.accept("COMMENT") {
            column.comment = self.text_string()?;
        } else if self.accept("COLLATE") {
            column.data_type.collation = Some(self.name_or_text()?.to_ascii_lowercase());
        } else if self.accept_all(&["CHARACTER", "SET"]) || self.accept("CHARSET") {
            column.data_type.charset = Some(self.name_or_text()?.to_ascii_lowercase());
        } else if self.accept("COLUMN_FORMAT") || self.accept("STORAGE") {
            self.any_name()?;
        } else if self.is_word("REFERENCES") {
            let columns = vec![column.name.clone()];
            column.references = Some(self.references(None, None, columns)?);
        } else if self.is_word("GENERATED") || self.is_word("AS") && self.peek_is_symbol(b"(") {
            if self.accept("GENERATED") {
                self.expect("ALWAYS")?;
            }
            self.expect("AS")?;
            let expression = self.in_parentheses()?;
            // MariaDB says PERSISTENT.
            let stored = self.accept_any(&["STORED", "PERSISTENT"]).is_some();
            let _ = !stored && self.accept("VIRTUAL");
            column.generated = Some(Generated { expression, stored });
        } else if self.is_word("CHECK") || self.is_word("CONSTRAINT") {
            let mut name = None;
            if self.accept("CONSTRAINT") && !self.is_word("CHECK") {
                name = Some(self.name()?);
            }
            self.expect("CHECK")?;
            let check = self.check(name, Some(&column.name))?;
            column.checks.push(check);
        } else if let Some(word) = self.accept_any(&["VISIBLE", "INVISIBLE"]) {
            column.invisible = word == "INVISIBLE";
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// A literal with sign, NULL, CURRENT_TIMESTAMP, or an expression in parentheses.
    pub(super) fn default_expr(&mut self) -> Parsed<Expr> {
        if self.is_symbol(b"-") || self.is_symbol(b"+") {
            let negative = self.is_symbol(b"-");
            self.advance();
            let value = self.primary()?;
            return Ok(match negative {
                true => Expr::Unary(super::super::ast::UnaryOperator::Minus, Box::new(value)),
                false => value,
            });
        }
        if self.is_word("NOW") {
            let call = self.primary()?;
            return Ok(call);
        }
        self.primary()
    }

    pub(crate) fn data_type(&mut self, column: &str) -> Parsed<DataType> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        if self.current.kind != TokenKind::Word {
            return Err(self.unexpected());
        }
        let error = self.unexpected();
        self.advance();
        let name = match word.as_str() {
            "INTEGER" | "INT4" => "INT",
            "INT1" => "TINYINT",
            "INT2" => "SMALLINT",
            "INT3" | "MIDDLEINT" => "MEDIUMINT",
            "INT8" | "SERIAL" => "BIGINT",
            "BOOL" | "BOOLEAN" => "TINYINT",
            "DEC" | "NUMERIC" | "FIXED" => "DECIMAL",
            "REAL" if self.modes().real_as_float => "FLOAT",
            "REAL" | "FLOAT8" => "DOUBLE",
            "FLOAT4" => "FLOAT",
            "CHARACTER" | "CHAR" if self.accept("VARYING") => "VARCHAR",
            "NCHAR" if self.accept_any(&["VARYING", "VARCHAR", "VARCHARACTER"]).is_some() => "VARCHAR",
            "CHARACTER" | "NCHAR" => "CHAR",
            "NATIONAL" => {
                let varying = self.accept_any(&["VARCHAR", "VARCHARACTER"]).is_some() || {
                    let _ = self.accept_any(&["CHAR", "CHARACTER"]);
                    self.accept("VARYING")
                };
                if varying { "VARCHAR" } else { "CHAR" }
            }
            "NVARCHAR" | "VARCHARACTER" => "VARCHAR",
            "LONG" if self.accept("VARBINARY") => "MEDIUMBLOB",
            "LONG" => {
                if self.accept_any(&["CHAR", "CHARACTER"]).is_some() {
                    self.expect("VARYING")?;
                } else {
                    let _ = self.accept_any(&["VARCHAR", "VARCHARACTER"]);
                }
                "MEDIUMTEXT"
            }
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" | "DECIMAL" | "FLOAT" | "DOUBLE"
            | "DATE" | "DATETIME" | "TIMESTAMP" | "TIME" | "YEAR" | "CHAR" | "VARCHAR" | "BINARY"
            | "VARBINARY" | "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" | "TINYBLOB" | "BLOB"
            | "MEDIUMBLOB" | "LONGBLOB" | "ENUM" | "SET" | "BIT" | "JSON" => word.as_str(),
            _ => return Err(error),
        };
        let mut data_type = DataType {
            name: name.to_owned(),
            arguments: Vec::new(),
            members: Vec::new(),
            unsigned: word == "SERIAL",
            zerofill: false,
            charset: ["NCHAR", "NATIONAL", "NVARCHAR"].contains(&word.as_str()).then(|| "utf8mb3".to_owned()),
            collation: None,
            serial: word == "SERIAL",
        };
        if word == "BOOL" || word == "BOOLEAN" {
            data_type.arguments.push(1);
        }
        let _ = name == "DOUBLE" && self.accept("PRECISION");
        if self.is_symbol(b"(") {
            if name == "ENUM" || name == "SET" {
                data_type.members = self.parenthesised(Self::member)?;
            } else {
                data_type.arguments = self.parenthesised(|parser| parser.length_of(column))?;
            }
        }
        self.type_attributes(&mut data_type)?;
        Ok(data_type)
    }

    /// A member of an ENUM or SET: a text, or its bytes.
    fn member(&mut self) -> Parsed<Vec<u8>> {
        if !matches!(self.current.kind, TokenKind::Hex | TokenKind::Bits) {
            return self.text();
        }
        match self.binary_literal()? {
            Expr::Binary(bytes) => Ok(bytes),
            _ => Err(self.unexpected()),
        }
    }

    fn type_attributes(&mut self, data_type: &mut DataType) -> Parsed<()> {
        loop {
            if self.accept("UNSIGNED") {
                data_type.unsigned = true;
            } else if self.accept("ZEROFILL") {
                (data_type.unsigned, data_type.zerofill) = (true, true);
            } else if self.accept("SIGNED") {
                data_type.unsigned = data_type.zerofill;
            } else if self.accept_all(&["CHARACTER", "SET"]) || self.accept("CHARSET") {
                data_type.charset = Some(self.name_or_text()?.to_ascii_lowercase());
            } else if self.accept("COLLATE") {
                data_type.collation = Some(self.name_or_text()?.to_ascii_lowercase());
            } else if self.accept("BINARY") {
                let charset = data_type.charset.as_deref().unwrap_or("utf8mb4");
                data_type.collation = Some(format!("{charset}_bin"));
            } else if self.accept("BYTE") {
                data_type.name = match data_type.name.as_str() {
                    "CHAR" => "BINARY".to_owned(),
                    "VARCHAR" => "VARBINARY".to_owned(),
                    text => text.replace("TEXT", "BLOB"),
                };
            } else if self.accept("ASCII") {
                data_type.charset = Some("latin1".into());
            } else if !self.accept("UNICODE") {
                return Ok(());
            }
        }
    }

    fn create_index(&mut self, kind: KeyKind) -> Parsed<Statement> {
        let name = self.name()?;
        check_key_name(&name)?;
        self.using_btree()?;
        self.expect("ON")?;
        let table = self.table_name()?;
        let key = self.key_parts(Some(name), kind)?;
        self.index_algorithm()?;
        Ok(Statement::CreateIndex { key, table })
    }

    /// `ALGORITHM [=] x`, `LOCK [=] y`: accepted, the engine decides.
    pub(super) fn index_algorithm(&mut self) -> Parsed<()> {
        while self.accept("ALGORITHM") || self.accept("LOCK") {
            let _ = self.accept_symbol(b"=");
            self.any_name()?;
        }
        Ok(())
    }

    pub(crate) fn drop_statement(&mut self) -> Parsed<Statement> {
        self.expect("DROP")?;
        if self.accept_any(&["DATABASE", "SCHEMA"]).is_some() {
            let if_exists = self.if_exists();
            return Ok(Statement::DropDatabase { name: self.database_name()?, if_exists });
        }
        if self.accept("USER") {
            let if_exists = self.if_exists();
            return Ok(Statement::DropUser { accounts: self.list(Self::account)?, if_exists });
        }
        if self.accept("ROLE") {
            let if_exists = self.if_exists();
            return Ok(Statement::DropRole { roles: self.list(Self::role)?, if_exists });
        }
        if self.accept("INDEX") {
            let name = self.any_name()?;
            self.expect("ON")?;
            let table = self.table_name()?;
            self.index_algorithm()?;
            return Ok(Statement::DropIndex { name, table });
        }
        if self.accept_all(&["PREPARE"]) {
            return Ok(Statement::Deallocate(self.name()?));
        }
        let temporary = self.accept("TEMPORARY");
        let view = self.is_word("VIEW");
        if view || self.is_any_word(&["TABLE", "TABLES"]) {
            self.advance();
            let if_exists = self.if_exists();
            let names = self.list(Self::table_name)?;
            let _ = self.accept_any(&["RESTRICT", "CASCADE"]);
            return Ok(match view {
                true => Statement::DropView { names, if_exists },
                false => Statement::DropTable { names, if_exists, temporary },
            });
        }
        self.refuse_object(&[
            ("TRIGGER", "DROP TRIGGER"),
            ("PROCEDURE", "DROP PROCEDURE"),
            ("FUNCTION", "DROP FUNCTION"),
            ("EVENT", "DROP EVENT"),
            ("SERVER", "DROP SERVER"),
            ("TABLESPACE", "DROP TABLESPACE"),
            ("UNDO", "DROP UNDO TABLESPACE"),
        ])
    }

    pub(crate) fn truncate(&mut self) -> Parsed<Statement> {
        self.expect("TRUNCATE")?;
        let _ = self.accept("TABLE");
        Ok(Statement::Truncate(self.table_name()?))
    }

    pub(crate) fn rename(&mut self) -> Parsed<Statement> {
        self.expect("RENAME")?;
        if self.accept("USER") {
            return Ok(Statement::RenameUser(self.list(|parser| {
                let from = parser.account()?;
                parser.expect("TO")?;
                Ok((from, parser.account()?))
            })?));
        }
        self.expect("TABLE")?;
        let pairs = self.list(|parser| {
            let from = parser.table_name()?;
            parser.expect("TO")?;
            Ok((from, parser.table_name()?))
        })?;
        Ok(Statement::RenameTable(pairs))
    }
}
