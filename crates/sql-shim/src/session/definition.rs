//! DDL: from syntax to the engine's definitions. Every such statement commits what is open first
//! (`commands.rs` does that before it comes here).

use sql::ast::{self, Alteration, CreateTable, DataType, KeySource, Statement, TableName};
use sql::column_types::{chosen, column_type};
use sql::errors;
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::result::SqlError;
use sql::sql_mode;
use untorn::schema::{self, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType};

use super::functional_keys::{Named, check_functional_kind, name_functional_keys};
use super::temporary_tables::NewTable;
use super::{Outcome, Session, duplicate_members, stored_expressions};

fn done() -> Outcome {
    Outcome::Done(Changed::default())
}

/// What the definition shows of a number: TINYINT(1), ZEROFILL, FLOAT(M,D) and DOUBLE(M,D). Other widths have
/// no meaning, and are not kept, as in MySQL.
fn set_display(name: &str, said: &DataType, def: &mut schema::ColumnDef) -> Result<(), SqlError> {
    const WIDTH_MAX: u32 = 255;
    let float = matches!(def.kind, ColumnType::Float | ColumnType::Double);
    def.unsigned = said.unsigned && (float || matches!(def.kind, ColumnType::Decimal { .. }));
    let integer = def.kind.integer().is_some() && def.kind != ColumnType::Year;
    def.zerofill = said.zerofill && def.unsigned;
    if !float && !integer {
        return Ok(());
    }
    let argument = |at: usize| said.arguments.get(at).copied();
    if argument(0).is_some_and(|width| width > WIDTH_MAX) {
        return Err(errors::error(errors::TOO_BIG_DISPLAYWIDTH, &[&name, &WIDTH_MAX]));
    }
    if let (true, Some(digits), Some(decimals)) = (float, argument(0), argument(1)) {
        if decimals > 30 {
            return Err(errors::error(errors::TOO_BIG_SCALE, &[&decimals, &name, &30]));
        }
        if decimals > digits {
            return Err(errors::error(errors::M_BIGGER_THAN_D, &[&name]));
        }
        (def.width, def.decimals) = (Some(digits as u8), Some(decimals as u8));
    } else if integer && said.zerofill {
        let most = match def.kind {
            ColumnType::TinyInt { .. } => 3,
            ColumnType::SmallInt { .. } => 5,
            ColumnType::MediumInt { .. } => 8,
            ColumnType::Int { .. } => 10,
            _ => 20,
        };
        (def.zerofill, def.width) = (true, Some(argument(0).map_or(most, |width| width as u8)));
    } else if matches!(def.kind, ColumnType::TinyInt { unsigned: false }) && argument(0) == Some(1) {
        def.width = Some(1);
    }
    Ok(())
}

impl Session {
    /// Whether LOCK TABLES lets a definition be changed.
    pub(super) fn check_locked_for(&self, statement: &Statement) -> Result<(), SqlError> {
        match statement {
            Statement::CreateTable(create) if create.temporary => {
                create.like.as_ref().map_or(Ok(()), |like| self.check_locked_table(like, false))
            }
            Statement::CreateTable(create) => self.check_locked_definition(Some(&create.name)),
            Statement::CreateIndex { table, .. }
            | Statement::DropIndex { table, .. }
            | Statement::Truncate(table) => self.check_locked_table(table, true),
            Statement::AlterTable(alter) => self.check_locked_table(&alter.table, true),
            Statement::RenameTable(pairs) => {
                pairs.iter().try_for_each(|(from, _)| self.check_locked_definition(Some(from)))
            }
            Statement::CreateView(create) => self.check_locked_definition(Some(&create.name)),
            Statement::DropView { names, .. } => {
                names.iter().try_for_each(|name| self.check_locked_definition(Some(name)))
            }
            Statement::CreateDatabase { .. }
            | Statement::AlterDatabase { .. }
            | Statement::DropDatabase { .. } => self.check_locked_definition(None),
            _ => Ok(()),
        }
    }

    pub(super) async fn define(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let database = self.state.database.clone();
        let timeout = self.lock_wait_timeout();
        self.transaction.set_foreign_key_checks(self.state.settings().foreign_key_checks);
        match statement {
            Statement::CreateDatabase { name, if_not_exists, charset, collation } => {
                let of_server = self.state.system_variable("collation_server", None)?;
                let of_server = Collation::from_name(&of_server.to_string_lossy());
                let of_server = of_server.unwrap_or(Collation::Utf8mb4GeneralCi);
                let rule = chosen(charset.as_deref(), collation.as_deref(), of_server)?;
                if database.database(name).is_some() {
                    let error = errors::error(errors::DB_CREATE_EXISTS, &[name]);
                    if !if_not_exists {
                        return Err(error.into());
                    }
                    self.state.note(error);
                } else {
                    database.definitions().timeout(timeout).create_database(name, rule).await?;
                }
                Ok(Outcome::Done(Changed { affected: 1, ..Changed::default() }))
            }
            Statement::AlterDatabase { name, charset, collation } => {
                let current = self.state.current_database();
                let name = name.as_deref().or(current.as_deref());
                let name = name.ok_or_else(|| errors::error(errors::NO_DB, &[]))?;
                let Some(def) = database.database(name) else {
                    return Err(errors::error(errors::NO_SUCH_DB, &[&name]).into());
                };
                let rule = chosen(charset.as_deref(), collation.as_deref(), def.collation)?;
                if rule != def.collation {
                    let definitions = database.definitions().session(&self.transaction).timeout(timeout);
                    definitions.alter_database(name, rule).await?;
                }
                Ok(Outcome::Done(Changed { affected: 1, ..Changed::default() }))
            }
            Statement::DropDatabase { name, if_exists } => {
                if database.database(name).is_none() {
                    let error = errors::error(errors::DB_DROP_EXISTS, &[name]);
                    if !if_exists {
                        return Err(error.into());
                    }
                    self.state.note(error);
                    return Ok(done());
                }
                let tables = database
                    .definitions()
                    .session(&self.transaction)
                    .timeout(timeout)
                    .drop_database(name)
                    .await?;
                if self.state.current_database().as_deref() == Some(name) {
                    self.state.set_current_database(None);
                    self.schema_is_changed();
                }
                Ok(Outcome::Done(Changed { affected: tables as u64, ..Changed::default() }))
            }
            Statement::CreateTable(create) => self.create_table(create).await,
            Statement::DropTable { names, if_exists, temporary } => {
                self.drop_tables(names, *if_exists, *temporary).await
            }
            Statement::CreateView(create) => self.create_view(create).await,
            Statement::DropView { names, if_exists } => self.drop_views(names, *if_exists).await,
            Statement::Truncate(name) => {
                if let Some(view) = self.view_to_empty(name) {
                    self.empty_view(view);
                    return Ok(done());
                }
                let table = self.planner().engine_table(name)?;
                database
                    .definitions()
                    .session(&self.transaction)
                    .timeout(timeout)
                    .truncate_table(&table.database, &table.name)
                    .await?;
                Ok(done())
            }
            Statement::CreateIndex { key, table } => {
                let change = Alteration::AddKey { key: key.clone(), if_not_exists: false };
                self.alter_one(table, change).await
            }
            Statement::DropIndex { name, table } => {
                let change = Alteration::DropKey { name: name.clone(), if_exists: false };
                self.alter_one(table, change).await
            }
            Statement::AlterTable(alter) => self.alter_table(alter).await,
            Statement::RenameTable(pairs) => {
                self.rename(pairs).await?;
                Ok(done())
            }
            other => {
                Err(errors::unsupported(&format!("{other:?}").chars().take(40).collect::<String>()).into())
            }
        }
    }

    pub(super) fn shown(&self, name: &TableName) -> Result<String, SqlError> {
        Ok(format!("{}.{}", self.planner().database_of(name)?, name.name))
    }

    async fn create_table(&mut self, create: &CreateTable) -> Result<Outcome, Failure> {
        let database = self.planner().database_of(&create.name)?;
        let engine = self.state.database.clone();
        let Some(owner) = engine.database(&database) else {
            return Err(errors::error(errors::BAD_DB, &[&database]).into());
        };
        let taken = match create.temporary {
            true => self.state.temporary.find(&database, &create.name.name).is_some(),
            false => {
                engine.table(&database, &create.name.name).is_ok()
                    || engine.view(&database, &create.name.name).is_some()
            }
        };
        if taken {
            let error = errors::error(errors::TABLE_EXISTS, &[&create.name.name]);
            if !create.if_not_exists {
                return Err(error.into());
            }
            self.state.note(error);
            return Ok(done());
        }
        let selected = match &create.as_query {
            Some(query) => self.columns_of_query(query).await?,
            None => Vec::new(),
        };
        let filled = selected.iter().map(|column| column.name.clone()).collect();
        let (def, auto_increment) = match &create.like {
            Some(like) => {
                let same = like.name == create.name.name && self.planner().database_of(like)? == database;
                if create.temporary && same {
                    return Err(errors::error(errors::NONUNIQ_TABLE, &[&like.name]).into());
                }
                self.refuse_view(like)?;
                let model = self.planner().engine_table(like)?;
                let mut def = model.def.clone();
                (def.id, def.space, def.hidden_clustered) = (0, 0, None);
                def.keys.iter_mut().for_each(|key| (key.id, key.root) = (0, 0));
                for (at, check) in def.checks.iter_mut().enumerate() {
                    check.name = stored_expressions::generated_name(&create.name.name, at + 1);
                }
                schema::sort_checks(&mut def.checks);
                def.foreign_keys.clear();
                (def, None)
            }
            None => self.table_definition(create, selected, owner.collation)?,
        };
        self.require_free_check_names(&database, None, &def)?;
        self.planner().check_expressions(&database, &create.name.name, &def)?;
        if create.temporary || create.as_query.is_some() {
            return self.create_privately(NewTable { create, database, def, auto_increment, filled }).await;
        }
        let timeout = self.lock_wait_timeout();
        let made = engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .create_table(&database, &create.name.name, def)
            .await;
        let table = match made {
            // Another session was faster.
            Err(untorn::Error::TableExists(..)) if create.if_not_exists => {
                self.state.note(errors::error(errors::TABLE_EXISTS, &[&create.name.name]));
                return Ok(done());
            }
            made => made?,
        };
        if let Some(next) = auto_increment
            && let Some(counter) = &table.auto_increment
        {
            counter.used(engine.store(), next.saturating_sub(1)).await?;
        }
        Ok(done())
    }

    /// The definition, and AUTO_INCREMENT of the options.
    fn table_definition(
        &self,
        create: &CreateTable,
        selected: Vec<schema::ColumnDef>,
        default: Collation,
    ) -> Result<(TableDef, Option<u64>), SqlError> {
        let mut options = Options::default();
        for (name, value) in &create.options {
            options.take(name, value, &create.name.name, &self.state)?;
        }
        let rule = chosen(options.charset.as_deref(), options.collation.as_deref(), default)?;
        let database = self.planner().database_of(&create.name)?;
        let mut def = TableDef::new(Vec::new());
        def.collation = rule;
        def.comment = options.comment;
        let mut keys: Vec<ast::KeyDef> = Vec::new();
        for column in &create.columns {
            def.columns.push(self.column_definition(column, rule)?);
            let part = || vec![ast::KeyPart::column(&column.name)];
            if column.primary {
                keys.push(ast::KeyDef::new(None, ast::KeyKind::Primary, part()));
            }
            if column.unique {
                keys.push(ast::KeyDef::new(None, ast::KeyKind::Unique, part()));
            }
        }
        def.columns = with_selected(std::mem::take(&mut def.columns), selected);
        def.checks = stored_expressions::checks(&create.name.name, &create.checks, &[])?;
        keys.extend(create.keys.iter().cloned());
        if keys.iter().filter(|key| key.kind == ast::KeyKind::Primary).count() > 1 {
            return Err(errors::error(errors::MULTIPLE_PRI_KEY, &[]));
        }
        name_functional_keys(&def, keys.iter_mut());
        for key in &keys {
            let key = self.key_definition((&database, &create.name.name), &mut def, key)?;
            def.keys.push(key);
            warn_of_duplicate(&self.state, (&database, &create.name.name), &def.keys);
        }
        check_visible(&def)?;
        def.sort_keys();
        for key in &create.foreign_keys {
            def.foreign_keys.push(self.foreign_key(key, &database)?);
        }
        Ok((def, options.auto_increment))
    }

    pub(super) fn column_definition(
        &self,
        column: &ast::ColumnDef,
        rule: Collation,
    ) -> Result<schema::ColumnDef, SqlError> {
        let large = self.large_type(column, rule)?;
        let said = large.as_ref().unwrap_or(&column.data_type);
        let kind = column_type(&column.name, said, rule)?;
        duplicate_members::check_different(&self.state, &column.name, &kind)?;
        let mut def = schema::ColumnDef::new(column.name.clone(), kind);
        def.nullable = column.nullable.unwrap_or(!column.primary);
        def.auto_increment = column.auto_increment;
        if column.auto_increment {
            def.nullable = false;
        }
        set_display(&column.name, &column.data_type, &mut def)?;
        def.on_update_now = column.on_update_now;
        def.invisible = column.invisible;
        let too_long = || errors::error(errors::TOO_LONG_FIELD_COMMENT, &[&column.name, &COLUMN_COMMENT_MAX]);
        def.comment = kept_comment(&column.comment, COLUMN_COMMENT_MAX, &self.state, too_long)?;
        self.set_default(&column.name, column.default.as_ref(), &mut def)?;
        stored_expressions::set_generated(column, &mut def)?;
        Ok(def)
    }

    /// Without strict mode a VARCHAR or VARBINARY that is too long for one becomes a TEXT or BLOB, with a
    /// note (1246), unless it has a constant default (1074).
    fn large_type(&self, column: &ast::ColumnDef, rule: Collation) -> Result<Option<DataType>, SqlError> {
        let said = &column.data_type;
        let rule = match said.name.as_str() {
            "VARCHAR" => chosen(said.charset.as_deref(), said.collation.as_deref(), rule)?,
            "VARBINARY" => Collation::Binary,
            _ => return Ok(None),
        };
        let length = said.arguments.first().copied().unwrap_or(0);
        let bytes = u64::from(length) * u64::from(rule.bytes_per_char_max());
        if bytes <= VARCHAR_BYTES_MAX || self.state.is_strict() {
            return Ok(None);
        }
        if matches!(&column.default, Some(ast::ColumnDefault::Value(value)) if *value != ast::Expr::Null) {
            return Err(errors::error(errors::TOO_BIG_FIELDLENGTH, &[&column.name, &VARCHAR_BYTES_MAX]));
        }
        let (was, is, medium, long) = match rule {
            Collation::Binary => ("VARBINARY", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
            _ => ("VARCHAR", "TEXT", "MEDIUMTEXT", "LONGTEXT"),
        };
        self.state.note(errors::error(errors::AUTO_CONVERT, &[&column.name, &was, &is]));
        let name = if bytes <= MEDIUM_BYTES_MAX { medium } else { long };
        Ok(Some(DataType { name: name.to_owned(), arguments: Vec::new(), ..said.clone() }))
    }

    /// The engine's definition of a key, with a name made up where none is given. `def` has all columns that
    /// are not hidden.
    pub(super) fn key_definition(
        &self,
        table: Named<'_>,
        def: &mut TableDef,
        key: &ast::KeyDef,
    ) -> Result<schema::KeyDef, SqlError> {
        check_functional_kind(key)?;
        let kind = match key.kind {
            ast::KeyKind::Primary => KeyKind::Primary,
            ast::KeyKind::Unique => KeyKind::Unique,
            ast::KeyKind::Plain => KeyKind::Secondary,
            ast::KeyKind::Fulltext | ast::KeyKind::Spatial => {
                return Err(errors::unsupported("FULLTEXT and SPATIAL indexes"));
            }
        };
        let name = match (&key.name, kind) {
            (_, KeyKind::Primary) => "PRIMARY".to_owned(),
            (Some(name), _) => name.clone(),
            (None, _) => free_key_name(def, key),
        };
        let mut parts = Vec::new();
        for (at, part) in key.parts.iter().enumerate() {
            let (column, prefix_chars) = match &part.source {
                KeySource::Column(column) => column_part(def, column, part.length, kind)?,
                KeySource::Expression(expr) => (self.add_functional_part(table, def, &name, at, expr)?, None),
            };
            parts.push(schema::KeyPart { column, prefix_chars, descending: part.descending });
        }
        let too_long = || errors::error(errors::TOO_LONG_INDEX_COMMENT, &[&name, &INDEX_COMMENT_MAX]);
        let comment = kept_comment(&key.comment, INDEX_COMMENT_MAX, &self.state, too_long)?;
        let mut made = schema::KeyDef::new(name, kind, parts);
        made.comment = comment;
        made.invisible = key.invisible;
        Ok(made)
    }

    async fn drop_tables(
        &mut self,
        names: &[TableName],
        if_exists: bool,
        temporary: bool,
    ) -> Result<Outcome, Failure> {
        let engine = self.state.database.clone();
        let mut missing = Vec::new();
        let (mut found, mut forgotten) = (Vec::new(), Vec::new());
        for name in names {
            let database = self.planner().database_of(name)?;
            check_table_name(&name.name)?;
            if self.state.temporary.find(&database, &name.name).is_some() {
                self.check_xa_temporary()?;
                forgotten.push((database, &*name.name));
                continue;
            }
            if temporary {
                missing.push(format!("{database}.{}", name.name));
                continue;
            }
            match engine.table(&database, &name.name) {
                Ok(table) => {
                    self.check_locked(&table.database, &table.name, true)?;
                    found.push(table);
                }
                Err(_) => {
                    // What is not there is not locked either.
                    self.check_locked(&database, &name.name, true)?;
                    missing.push(format!("{database}.{}", name.name));
                }
            }
        }
        if !missing.is_empty() {
            let error = errors::error(errors::BAD_TABLE, &[&missing.join(",")]);
            if !if_exists {
                return Err(error.into());
            }
            for name in &missing {
                self.state.note(errors::error(errors::BAD_TABLE, &[name]));
            }
        }
        for (database, name) in forgotten {
            self.forget_temporary(&database, name);
            self.state_is_changed();
        }
        self.drop_unused_private().await;
        if found.is_empty() {
            return Ok(done());
        }
        let timeout = self.lock_wait_timeout();
        let found: Vec<_> = found.iter().map(|table| (&*table.database, &*table.name)).collect();
        engine.definitions().session(&self.transaction).timeout(timeout).drop_tables(&found).await?;
        self.forget_locked(&found);
        Ok(done())
    }

    /// RENAME of one table or several, all or none.
    pub(super) async fn rename(&mut self, pairs: &[(TableName, TableName)]) -> Result<(), Failure> {
        let mut names = Vec::new();
        for (from, to) in pairs {
            let planner = self.planner();
            let (database, other) = (planner.database_of(from)?, planner.database_of(to)?);
            let known = self.state.database.database(&other).is_some();
            if database != other && known && self.state.database.view(&database, &from.name).is_some() {
                return Err(errors::error(errors::FORBID_SCHEMA_CHANGE, &[&database, &other]).into());
            }
            names.push((database, &*from.name, other, &*to.name));
        }
        let pairs: Vec<_> =
            names.iter().map(|(from_db, from, to_db, to)| ((&**from_db, *from), (&**to_db, *to))).collect();
        let engine = self.state.database.clone();
        let timeout = self.lock_wait_timeout();
        engine.definitions().session(&self.transaction).timeout(timeout).rename_tables(&pairs).await?;
        pairs.iter().for_each(|(from, to)| self.rename_locked(*from, *to));
        Ok(())
    }

    pub(super) async fn discard_tablespace(&mut self, name: &TableName) -> Result<(), Failure> {
        let table = self.planner().engine_table(name)?;
        if table.def.discarded {
            self.state.warn(errors::error(errors::TABLESPACE_DISCARDED, &[&table.name]));
            return Ok(());
        }
        let (engine, timeout) = (self.state.database.clone(), self.lock_wait_timeout());
        Ok(engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .discard_tablespace(&table.database, &table.name)
            .await?)
    }

    pub(super) async fn import_tablespace(&mut self, name: &TableName) -> Result<(), Failure> {
        let table = self.planner().engine_table(name)?;
        let (engine, timeout) = (self.state.database.clone(), self.lock_wait_timeout());
        let report = engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .import_tablespace(&table.database, &table.name)
            .await?;
        if let Some(cfg) = report.missing_cfg {
            let file = cfg.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let opening = format!(
                "Error opening './{}/{file}', will attempt to import without schema verification",
                table.database
            );
            self.state
                .warn(errors::error(errors::IO_READ_ERROR, &[&2, &"No such file or directory", &opening]));
        }
        Ok(())
    }
}

/// Refuses a name that no table and no view has.
pub(super) fn check_table_name(name: &str) -> Result<(), SqlError> {
    match name.is_empty() || name.ends_with(' ') {
        true => Err(errors::error(errors::WRONG_TABLE_NAME, &[&name])),
        false => Ok(()),
    }
}

/// Bytes of a VARCHAR or VARBINARY at most.
const VARCHAR_BYTES_MAX: u64 = 65_535;

/// Bytes of a MEDIUMTEXT or MEDIUMBLOB at most.
const MEDIUM_BYTES_MAX: u64 = (1 << 24) - 1;

/// Characters of comments at most.
const COLUMN_COMMENT_MAX: usize = 1024;
const INDEX_COMMENT_MAX: usize = 1024;
const TABLE_COMMENT_MAX: usize = 2048;

/// A comment as it is kept: cut with a warning where strict mode does not refuse it.
fn kept_comment(
    said: &str,
    most: usize,
    state: &super::state::SessionState,
    too_long: impl FnOnce() -> SqlError,
) -> Result<String, SqlError> {
    let Some((end, _)) = said.char_indices().nth(most) else { return Ok(said.to_owned()) };
    let error = too_long();
    if state.is_strict() {
        return Err(error);
    }
    state.warn(error);
    Ok(said[..end].to_owned())
}

/// The columns of CREATE TABLE … SELECT: those that only the statement defines come first, then those of the
/// query, as the statement defines them where it does.
fn with_selected(
    mut said: Vec<schema::ColumnDef>,
    selected: Vec<schema::ColumnDef>,
) -> Vec<schema::ColumnDef> {
    let mut behind = Vec::with_capacity(selected.len());
    for column in selected {
        let same = said.iter().position(|said| said.name.eq_ignore_ascii_case(&column.name));
        behind.push(match same.map(|at| said.remove(at)) {
            Some(mut said) => {
                if said.comment.is_empty() {
                    said.comment = column.comment;
                }
                said
            }
            None => column,
        });
    }
    said.append(&mut behind);
    said
}

/// The column of a key part, and how many of its characters the key has.
fn column_part(
    def: &mut TableDef,
    name: &str,
    length: Option<u32>,
    kind: KeyKind,
) -> Result<(u16, Option<u32>), SqlError> {
    let column = def.column_number(name);
    let column = column.ok_or_else(|| errors::error(errors::KEY_COLUMN_MISSING, &[&name]))?;
    let column_def = &mut def.columns[usize::from(column)];
    if kind == KeyKind::Primary {
        column_def.nullable = false;
    }
    // A prefix of the whole length is no prefix.
    let whole = match &column_def.kind {
        ColumnType::Char { chars, .. } | ColumnType::VarChar { chars, .. } => Some(*chars),
        ColumnType::Binary { bytes } | ColumnType::VarBinary { bytes } => Some(*bytes),
        _ => None,
    };
    if whole == Some(0) {
        return Err(errors::error(errors::WRONG_KEY_COLUMN, &[&column_def.name]));
    }
    Ok((column, length.filter(|length| Some(*length) != whole)))
}

/// Warns (1831) where the last of these keys says what another one does.
pub(super) fn warn_of_duplicate(
    state: &super::state::SessionState,
    (database, table): Named<'_>,
    keys: &[schema::KeyDef],
) {
    if let [others @ .., last] = keys
        && others.iter().any(|key| key.kind == last.kind && key.parts == last.parts)
    {
        state.warn(errors::error(errors::DUP_INDEX, &[&last.name, &database, &table]));
    }
}

/// A name for a key that has none: that of its first column, with a number where it is taken.
fn free_key_name(def: &TableDef, key: &ast::KeyDef) -> String {
    let base = key.parts.first().map_or("key", |part| match &part.source {
        KeySource::Column(column) => column.as_str(),
        KeySource::Expression(_) => "functional_index",
    });
    let mut name = base.to_owned();
    let mut number = 2;
    while def.key_named(&name).is_some() {
        name = format!("{base}_{number}");
        number += 1;
    }
    name
}

/// The primary key cannot be invisible (3522). Where there is none, that is, as in MySQL, the first unique
/// key, as they were written, whose columns are all NOT NULL: not always the one that orders the rows, which
/// is looked for behind [`TableDef::sort_keys`] and has no prefixes. Keys are not sorted yet.
pub(super) fn check_visible(def: &TableDef) -> Result<(), SqlError> {
    let not_null = |part: &schema::KeyPart| !def.columns[usize::from(part.column)].nullable;
    let is_unique = |key: &&schema::KeyDef| key.kind == KeyKind::Unique && key.parts.iter().all(not_null);
    let primary = def.keys.iter().find(|key| key.kind == KeyKind::Primary);
    if primary.or_else(|| def.keys.iter().find(is_unique)).is_some_and(|key| key.invisible) {
        return Err(errors::error(errors::PK_INDEX_CANT_BE_INVISIBLE, &[]));
    }
    Ok(())
}

/// Options of a table.
#[derive(Default)]
pub(super) struct Options {
    pub charset: Option<String>,
    pub collation: Option<String>,
    comment: String,
    pub auto_increment: Option<u64>,
}

impl Options {
    pub fn take(
        &mut self,
        name: &str,
        value: &str,
        table: &str,
        state: &super::state::SessionState,
    ) -> Result<(), SqlError> {
        match name {
            "CHARSET" => self.charset = Some(value.to_owned()),
            "COLLATE" => self.collation = Some(value.to_owned()),
            "COMMENT" => {
                let too_long =
                    || errors::error(errors::TOO_LONG_TABLE_COMMENT, &[&table, &TABLE_COMMENT_MAX]);
                self.comment = kept_comment(value, TABLE_COMMENT_MAX, state, too_long)?;
            }
            "AUTO_INCREMENT" => self.auto_increment = value.parse().ok(),
            "ENGINE" | "TYPE" => {
                let known =
                    ["INNODB", "MYISAM", "MEMORY", "HEAP", "ARIA", "MERGE", "CSV", "ARCHIVE", "BLACKHOLE"];
                let upper = value.to_ascii_uppercase();
                if !known.contains(&upper.as_str()) {
                    let unknown = errors::error(errors::UNKNOWN_STORAGE_ENGINE, &[&value]);
                    if state.settings().sql.sql_mode & sql_mode::NO_ENGINE_SUBSTITUTION != 0 {
                        return Err(unknown);
                    }
                    state.warn(unknown);
                }
                if upper != "INNODB" {
                    state.warn(errors::error(errors::WARN_USING_OTHER_HANDLER, &[&"InnoDB", &table]));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
