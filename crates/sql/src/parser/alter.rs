//! ALTER of databases and tables.

use super::data_definition::{Constraint, is_wrong_column};
use super::{Parsed, Parser};
use crate::ast::{AlterTable, Alteration, ColumnDefault, Position, Statement};
use crate::errors;

impl Parser<'_> {
    pub(crate) fn alter(&mut self) -> Parsed<Statement> {
        self.expect("ALTER")?;
        if self.accept_any(&["DATABASE", "SCHEMA"]).is_some() {
            let named = !self.is_any_word(&["DEFAULT", "CHARACTER", "CHARSET", "COLLATE"]);
            let name = if named { Some(self.database_name()?) } else { None };
            if self.at_end() {
                return Err(self.unexpected());
            }
            let (charset, collation) = self.database_options()?;
            return Ok(Statement::AlterDatabase { name, charset, collation });
        }
        if self.accept("USER") {
            return self.alter_user();
        }
        if (self.starts_view() || self.is_word("DEFINER"))
            && let Some(view) = self.view(true)?
        {
            return Ok(view);
        }
        if self.accept_all(&["IGNORE", "TABLE"]) {
            return Err(errors::unsupported("ALTER IGNORE TABLE"));
        }
        let _ = self.accept("ONLINE");
        if !self.accept("TABLE") {
            return self.refuse_object(&[
                ("PROCEDURE", "ALTER PROCEDURE"),
                ("FUNCTION", "ALTER FUNCTION"),
                ("EVENT", "ALTER EVENT"),
                ("SERVER", "ALTER SERVER"),
                ("TABLESPACE", "ALTER TABLESPACE"),
                ("UNDO", "ALTER UNDO TABLESPACE"),
                ("INSTANCE", "ALTER INSTANCE"),
            ]);
        }
        let table = self.table_name()?;
        let mut alter = AlterTable { table, changes: Vec::new(), algorithm: None, lock: None };
        while !self.at_end() {
            self.alteration(&mut alter)?;
            if !self.accept_symbol(b",") && !self.at_end() && !self.continues_options() {
                return Err(self.unexpected());
            }
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    /// Table options may follow each other without commas.
    fn continues_options(&self) -> bool {
        self.is_any_word(&[
            "DEFAULT",
            "CHARACTER",
            "CHARSET",
            "COLLATE",
            "ROW_FORMAT",
            "COMMENT",
            "ENGINE",
            "STATS_PERSISTENT",
            "AUTO_INCREMENT",
            "UNION",
            "INSERT_METHOD",
        ])
    }

    fn alteration(&mut self, alter: &mut AlterTable) -> Parsed<()> {
        let changes = &mut alter.changes;
        let change = if self.accept("ADD") {
            return self.alter_add(changes);
        } else if self.accept("DROP") {
            self.alter_drop()?
        } else if self.accept("MODIFY") {
            let _ = self.accept("COLUMN");
            let if_exists = self.if_exists();
            let name = self.name()?;
            self.change_column(name.clone(), name, if_exists)?
        } else if self.accept("CHANGE") {
            let _ = self.accept("COLUMN");
            let if_exists = self.if_exists();
            let old = self.name()?;
            let new = self.name()?;
            self.change_column(old, new, if_exists)?
        } else if self.accept("ALTER") {
            self.alter_part()?
        } else if self.accept("RENAME") {
            self.alter_rename()?
        } else if self.is_any_word(&["ENABLE", "DISABLE"]) && self.peek_is_word("KEYS") {
            self.advance();
            self.advance();
            Alteration::Nothing
        } else if self.accept("FORCE") {
            Alteration::Rebuild
        } else if self.accept_all(&["DISCARD", "TABLESPACE"]) {
            Alteration::DiscardTablespace
        } else if self.accept_all(&["IMPORT", "TABLESPACE"]) {
            Alteration::ImportTablespace
        } else if self.is_any_word(&["WITH", "WITHOUT"]) && self.peek_is_word("VALIDATION") {
            self.advance();
            self.advance();
            Alteration::Nothing
        } else if self.accept("ALGORITHM") {
            const ALGORITHMS: [&str; 5] = ["DEFAULT", "INSTANT", "NOCOPY", "INPLACE", "COPY"];
            alter.algorithm = Some(self.one_of(&ALGORITHMS, errors::UNKNOWN_ALTER_ALGORITHM)?);
            return Ok(());
        } else if self.accept("LOCK") {
            const LOCKS: [&str; 4] = ["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"];
            alter.lock = Some(self.one_of(&LOCKS, errors::UNKNOWN_ALTER_LOCK)?);
            return Ok(());
        } else if self.accept_all(&["CONVERT", "TO"]) {
            let (charset, collation) = self.conversion()?;
            Alteration::Convert(charset, collation)
        } else if self.accept("ORDER") {
            self.expect("BY")?;
            self.order_items()?;
            // Rows are put into an order by being copied, which counts them.
            alter.algorithm.get_or_insert_with(|| "COPY".to_owned());
            Alteration::Rebuild
        } else if self.is_any_word(&["PARTITION", "REMOVE", "COALESCE", "REORGANIZE", "EXCHANGE"]) {
            return Err(errors::unsupported("ALTER TABLE of partitions"));
        } else {
            let (name, value) = self.table_option()?;
            Alteration::Option(name, value)
        };
        changes.push(change);
        Ok(())
    }

    /// `[=] word`, which must be one of these.
    fn one_of(&mut self, known: &[&str], unknown: u16) -> Parsed<String> {
        let _ = self.accept_symbol(b"=");
        let said = self.any_name()?;
        match known.iter().find(|known| known.eq_ignore_ascii_case(&said)) {
            Some(known) => Ok((*known).to_owned()),
            None => Err(errors::error(unknown, &[&said])),
        }
    }

    /// `CHARACTER SET x [COLLATE y]` behind CONVERT TO.
    fn conversion(&mut self) -> Parsed<(String, Option<String>)> {
        if !self.accept_all(&["CHARACTER", "SET"]) {
            self.expect("CHARSET")?;
        }
        let charset = self.name_or_text()?.to_ascii_lowercase();
        let mut collation = None;
        if self.accept("COLLATE") {
            let _ = self.accept_symbol(b"=");
            collation = Some(self.name_or_text()?.to_ascii_lowercase());
        }
        Ok((charset, collation))
    }

    fn change_column(&mut self, name: String, new: String, if_exists: bool) -> Parsed<Alteration> {
        let column = self.column_definition(new)?;
        let position = self.column_position()?;
        Ok(Alteration::ChangeColumn { name, column, position, if_exists })
    }

    fn alter_add(&mut self, changes: &mut Vec<Alteration>) -> Parsed<()> {
        let key = self.is_any_word(&["INDEX", "KEY"]) && self.peek_is_word("IF");
        if key {
            self.advance();
            let if_not_exists = self.if_not_exists();
            let key = self.plain_key()?;
            changes.push(Alteration::AddKey { key, if_not_exists });
            return Ok(());
        }
        if let Some(constraint) = self.constraint()? {
            changes.push(match constraint {
                Constraint::Key(key) => Alteration::AddKey { key, if_not_exists: false },
                Constraint::ForeignKey(foreign) => Alteration::AddForeignKey(foreign),
                Constraint::Check(check) => Alteration::AddCheck(check),
            });
            return Ok(());
        }
        let _ = self.accept("COLUMN");
        let if_not_exists = self.if_not_exists();
        if self.accept_symbol(b"(") {
            let columns = self.list(|parser| {
                let name = parser.name()?;
                parser.column_definition(name)
            })?;
            self.expect_symbol(b")")?;
            let add = |column| Alteration::AddColumn { column, position: None, if_not_exists };
            changes.extend(columns.into_iter().map(add));
            return Ok(());
        }
        let name = self.name()?;
        let column = self.column_definition(name)?;
        let position = self.column_position()?;
        changes.push(Alteration::AddColumn { column, position, if_not_exists });
        Ok(())
    }

    fn column_position(&mut self) -> Parsed<Option<Position>> {
        if self.accept("FIRST") {
            return Ok(Some(Position::First));
        }
        if self.accept("AFTER") {
            return Ok(Some(Position::After(self.name()?)));
        }
        Ok(None)
    }

    fn alter_drop(&mut self) -> Parsed<Alteration> {
        if self.accept("PRIMARY") {
            self.expect("KEY")?;
            return Ok(Alteration::DropKey { name: "PRIMARY".to_owned(), if_exists: false });
        }
        if self.accept_any(&["KEY", "INDEX"]).is_some() {
            let if_exists = self.if_exists();
            return Ok(Alteration::DropKey { name: self.any_name()?, if_exists });
        }
        if self.accept_all(&["FOREIGN", "KEY"]) {
            let _ = self.if_exists();
            return Ok(Alteration::DropForeignKey(self.any_name()?));
        }
        if self.accept("CHECK") {
            return Ok(Alteration::DropCheck(self.any_name()?));
        }
        if self.accept("CONSTRAINT") {
            let if_exists = self.if_exists();
            return Ok(Alteration::DropConstraint { name: self.any_name()?, if_exists });
        }
        let _ = self.accept("COLUMN");
        let if_exists = self.if_exists();
        let name = self.name()?;
        let _ = self.accept_any(&["RESTRICT", "CASCADE"]);
        Ok(Alteration::DropColumn { name, if_exists })
    }

    fn alter_rename(&mut self) -> Parsed<Alteration> {
        if self.accept_any(&["INDEX", "KEY"]).is_some() {
            let old = self.any_name()?;
            self.expect("TO")?;
            let new = self.any_name()?;
            super::check_length(&new)?;
            return Ok(Alteration::RenameKey(old, new));
        }
        if self.accept("COLUMN") {
            let old = self.name()?;
            self.expect("TO")?;
            let new = self.name()?;
            if is_wrong_column(&new) {
                return Err(errors::error(errors::WRONG_COLUMN_NAME, &[&new]));
            }
            return Ok(Alteration::RenameColumn(old, new));
        }
        let _ = self.accept_any(&["TO", "AS"]).is_some() || self.accept_symbol(b"=");
        Ok(Alteration::RenameTo(self.table_name()?))
    }

    /// Behind `ALTER TABLE t ALTER`.
    fn alter_part(&mut self) -> Parsed<Alteration> {
        if self.accept_any(&["CHECK", "CONSTRAINT"]).is_some() {
            let name = self.any_name()?;
            let enforced = !self.accept("NOT");
            self.expect("ENFORCED")?;
            return Ok(Alteration::EnforceCheck(name, enforced));
        }
        if self.accept_any(&["INDEX", "KEY"]).is_some() {
            let name = self.any_name()?;
            let Some(word) = self.accept_any(&["VISIBLE", "INVISIBLE"]) else {
                return Err(self.unexpected());
            };
            return Ok(Alteration::ShowKey(name, word == "VISIBLE"));
        }
        let _ = self.accept("COLUMN");
        let name = self.name()?;
        if self.accept_all(&["DROP", "DEFAULT"]) {
            return Ok(Alteration::AlterDefault(name, None));
        }
        self.expect("SET")?;
        if let Some(word) = self.accept_any(&["VISIBLE", "INVISIBLE"]) {
            return Ok(Alteration::ShowColumn(name, word == "VISIBLE"));
        }
        self.expect("DEFAULT")?;
        let default = self.column_default()?;
        Ok(Alteration::AlterDefault(name, Some(default)))
    }

    /// Behind DEFAULT.
    pub(super) fn column_default(&mut self) -> Parsed<ColumnDefault> {
        Ok(match self.is_symbol(b"(") {
            true => ColumnDefault::Expression(self.in_parentheses()?),
            false => ColumnDefault::Value(self.default_expr()?),
        })
    }
}
