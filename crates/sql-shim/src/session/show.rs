//! SHOW, DESCRIBE and EXPLAIN: rows made from the catalog and the server's state, filtered by LIKE or WHERE.

mod create_table;
mod explain;
mod innodb_status;

use std::pin::pin;
use std::sync::Arc;

use sql::ast::{self, Limit, Show, ShowFilter, ShowKind, Statement, TableName};
use sql::catalog_views::declared::{nullable, required};
use sql::catalog_views::{self, RowSource, ViewType, number, text};
use sql::context::Level;
use sql::errors;
use sql::exec::{Rows, output};
use sql::expr::Context;
use sql::expr::types::{Derivation, Type};
use sql::failure::Failure;
use sql::memory::{self, Charge};
use sql::plan::source::SourceKind;
use sql::privilege::Privileges;
use sql::result::{ResultColumns, ResultSink, SqlError};
use sql::value::{Value, collation, like};
use untorn::types::{Charset, Collation};

use super::commands::done;
use super::state::SessionState;
use super::watch::Watch;
use super::{Outcome, REPLANS_MAX, Session};
use catalog_views::table_tables::{
    STATISTICS_COLUMN, columns_of_table, columns_of_view, default_text, seen_columns, statistics_of,
    table_row, without_hidden,
};
use catalog_views::{server_tables, views};

type Row = Vec<Value<'static>>;

/// Units of work that a row counts for: some twenty texts are made for it.
const ROW_UNITS: u32 = 4;

/// A result whose rows are made while they are sent.
pub struct Answer {
    columns: Vec<(String, Type)>,
    rows: RowSource,
    /// Only those are wanted whose first column is like this.
    like: Option<Vec<u8>>,
    /// Upper and lower case differ in that.
    by_letters: bool,
}

impl Answer {
    pub(super) fn new(
        columns: Vec<(String, Type)>,
        rows: impl IntoIterator<Item = Row, IntoIter: 'static>,
    ) -> Answer {
        Answer { columns, rows: Box::new(rows.into_iter()), like: None, by_letters: false }
    }

    pub(super) fn texts(
        columns: &[(&str, u32)],
        rows: impl IntoIterator<Item = Row, IntoIter: 'static>,
    ) -> Answer {
        let columns = columns.iter().map(|(name, length)| ((*name).to_owned(), Type::text(*length)));
        Answer::new(columns.collect(), rows)
    }

    /// Gives columns the types that MySQL tells of them.
    pub(super) fn typed(mut self, types: &[(usize, ViewType)]) -> Answer {
        for (column, ty) in types {
            if let Some((_, found)) = self.columns.get_mut(*column) {
                *found = ty.value_type();
            }
        }
        self
    }
}

/// These columns of a row that information_schema has too.
fn picked(row: &Row, columns: &[usize]) -> Row {
    columns.iter().map(|at| row.get(*at).cloned().unwrap_or(Value::Null)).collect()
}

fn like_filter(filter: Option<&ShowFilter>) -> Option<&[u8]> {
    match filter {
        Some(ShowFilter::Like(pattern)) => Some(pattern),
        _ => None,
    }
}

/// Whether a name is like the pattern of a SHOW statement; one that would take too long is like none.
fn like_name(name: &[u8], pattern: &[u8]) -> bool {
    is_like(name, pattern, Collation::Utf8mb4GeneralCi)
}

fn is_like(name: &[u8], pattern: &[u8], collation: Collation) -> bool {
    like::like(name, pattern, like::DEFAULT_ESCAPE, collation, &|_| Ok(())).unwrap_or(false)
}

/// Whether what is listed are names of databases or tables.
fn is_of_tables(kind: &ShowKind) -> bool {
    matches!(
        kind,
        ShowKind::Databases
            | ShowKind::Tables { .. }
            | ShowKind::TableStatus { .. }
            | ShowKind::OpenTables { .. }
    )
}

fn databases(state: &SessionState, filter: Option<&ShowFilter>) -> Answer {
    let rows = catalog_views::database_names(state).into_iter().map(|name| vec![text(name)]);
    let name = match like_filter(filter) {
        Some(pattern) => format!("Database ({})", String::from_utf8_lossy(pattern)),
        None => "Database".to_owned(),
    };
    Answer::new(vec![(name, Type::text(64))], rows)
}

/// SHOW VARIABLES and SHOW STATUS.
fn names_and_values<N, V>(list: Vec<(N, V)>) -> Answer
where
    N: Into<String> + 'static,
    V: Into<String> + 'static,
{
    let rows = list.into_iter().map(|(name, value)| vec![text(name), text(value)]);
    Answer::texts(&[("Variable_name", 64), ("Value", 1024)], rows)
}

fn process_list(state: &SessionState, full: bool) -> Answer {
    let rows = server_tables::process_list(state).map(move |mut row| {
        if let (false, Some(Value::Text(info, _))) = (full, row.last_mut()) {
            let end = collation::char_offset(info, 100, Collation::Utf8mb4GeneralCi);
            info.to_mut().truncate(end);
        }
        row
    });
    let columns = [
        ("Id", 21),
        ("User", 32),
        ("Host", 261),
        ("db", 64),
        ("Command", 16),
        ("Time", 7),
        ("State", 64),
        ("Info", 100),
    ];
    Answer::texts(&columns, rows).typed(&[(0, required("bigint")), (5, required("int"))])
}

fn engines(state: &SessionState) -> Answer {
    let columns =
        [("Engine", 64), ("Support", 8), ("Comment", 80), ("Transactions", 3), ("XA", 3), ("Savepoints", 3)];
    Answer::texts(&columns, server_tables::engines(state))
}

fn engine_status(state: &SessionState, engine: &str, what: &str) -> Result<Answer, SqlError> {
    if engine.eq_ignore_ascii_case("performance_schema") {
        let of_memory = vec![text("performance_schema"), text("performance_schema.memory"), text("0")];
        let rows = if what == "STATUS" { vec![of_memory] } else { Vec::new() };
        return Ok(Answer::texts(&[("Type", 10), ("Name", 512), ("Status", 65_535)], rows));
    }
    if !["innodb", "all"].iter().any(|known| engine.eq_ignore_ascii_case(known)) {
        return Err(errors::error(errors::UNKNOWN_STORAGE_ENGINE, &[&engine]));
    }
    let rows = match what {
        "STATUS" => vec![vec![text("InnoDB"), text(""), text(innodb_status::text(state))]],
        _ => Vec::new(),
    };
    Ok(Answer::texts(&[("Type", 10), ("Name", 512), ("Status", 65_535)], rows))
}

fn plugins() -> Answer {
    let innodb =
        vec![text("InnoDB"), text("ACTIVE"), text("STORAGE ENGINE"), Value::Null, text("MIT OR Apache-2.0")];
    let columns = [("Name", 64), ("Status", 10), ("Type", 80), ("Library", 64), ("License", 80)];
    Answer::texts(&columns, vec![innodb])
}

fn collations(state: &SessionState) -> Answer {
    let columns = [
        ("Collation", 64),
        ("Charset", 64),
        ("Id", 20),
        ("Default", 3),
        ("Compiled", 3),
        ("Sortlen", 3),
        ("Pad_attribute", 9),
    ];
    Answer::texts(&columns, server_tables::collations(state))
        .typed(&[(2, required("bigint unsigned")), (5, required("int unsigned"))])
}

fn one_column(name: String, rows: Vec<String>) -> Answer {
    Answer::new(vec![(name, Type::text(1024))], rows.into_iter().map(|row| vec![text(row)]))
}

impl Session {
    /// Executes SHOW, DESCRIBE, EXPLAIN.
    pub(super) async fn show_statement<S: ResultSink>(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        let answer = match statement {
            Statement::Show(show) => {
                let answer = self.show(show)?;
                match &show.filter {
                    None => answer,
                    Some(ShowFilter::Like(pattern)) => {
                        let by_letters = is_of_tables(&show.kind);
                        Answer { like: Some(pattern.clone()), by_letters, ..answer }
                    }
                    Some(ShowFilter::Where(condition)) => {
                        let reads = reads_dictionary(statement);
                        return self.send_where(answer, condition, reads, parameters, out).await;
                    }
                }
            }
            Statement::Describe { table, column } => {
                let columns = self.columns_of(table, false)?;
                match column {
                    Some(pattern) => Answer { like: Some(pattern.clone()), ..columns },
                    None => columns,
                }
            }
            Statement::Explain { statement, format, into } => {
                match self.explain(statement, *format, into.as_deref(), parameters).await? {
                    Some(answer) => answer,
                    None => return Ok(done()),
                }
            }
            _ => return Ok(Outcome::Answered),
        };
        self.use_up_characteristics(|| reads_dictionary(statement));
        let _ = more;
        self.transaction.engine_mut().clear_kill();
        let watch = Watch::new(&self.state, &self.transaction, None);
        watch.over(pin!(self.send(answer, out))).await.0?;
        Ok(Outcome::Rows)
    }

    /// Sends rows of texts.
    pub(super) async fn send_texts<S: ResultSink>(
        &mut self,
        columns: &[(&str, u32)],
        rows: Rows,
        out: &mut S,
        _more: bool,
    ) -> Result<Outcome, Failure> {
        self.send(Answer::texts(columns, rows), out).await?;
        Ok(Outcome::Rows)
    }

    /// Sends the rows that are wanted, and gives way to others in between.
    pub(super) async fn send<S: ResultSink>(&self, answer: Answer, out: &mut S) -> Result<(), Failure> {
        let metas = answer.columns.iter().map(|(name, ty)| ty.meta(name)).collect();
        out.columns(&ResultColumns::new(metas));
        let slice = self.transaction.engine().slice();
        for row in answer.rows {
            slice.work(ROW_UNITS).await?;
            let name = || row.first().map(Value::to_text).unwrap_or_default();
            let collation =
                if answer.by_letters { Collation::Utf8mb4Bin } else { Collation::Utf8mb4GeneralCi };
            if answer.like.as_ref().is_some_and(|pattern| !is_like(&name(), pattern, collation)) {
                continue;
            }
            out.row_begin();
            for (value, (_, ty)) in row.iter().zip(&answer.columns) {
                output::announced(out, value, ty);
            }
            out.row_end();
            out.flush_if_full().await?;
        }
        Ok(())
    }

    fn show(&mut self, show: &Show) -> Result<Answer, SqlError> {
        let filter = show.filter.as_ref();
        let state = &self.state;
        Ok(match &show.kind {
            ShowKind::Databases => databases(state, filter),
            ShowKind::Tables { full, database } => self.tables(*full, database.as_deref(), filter)?,
            ShowKind::TableStatus { database } => self.table_status(database.as_deref())?,
            ShowKind::OpenTables { .. } => Answer::texts(
                &[("Database", 64), ("Table", 64), ("In_use", 20), ("Name_locked", 20)],
                Vec::new(),
            )
            .typed(&[(2, required("bigint")), (3, required("bigint"))]),
            ShowKind::Columns { full, table } => self.columns_of(table, *full)?,
            ShowKind::Index { table } => self.indexes(table)?,
            ShowKind::CreateTable(name) => self.create_table_text(name)?,
            ShowKind::CreateView(name) => self.create_view_text(name)?,
            ShowKind::CreateDatabase { name, if_not_exists } => {
                self.create_database_text(name, *if_not_exists)?
            }
            ShowKind::Variables { global } => names_and_values(state.shown_variables(*global)),
            ShowKind::Status { global } => names_and_values(state.facts.status(*global)),
            ShowKind::ProcessList { full } => process_list(state, *full),
            ShowKind::Warnings { limit, count } => self.warning_rows(limit.as_ref(), *count, false)?,
            ShowKind::Errors { limit, count } => self.warning_rows(limit.as_ref(), *count, true)?,
            ShowKind::Engines => engines(state),
            ShowKind::EngineStatus { engine, what } => engine_status(state, engine, what)?,
            ShowKind::Plugins => plugins(),
            ShowKind::Privileges => {
                Answer::texts(&[("Privilege", 64), ("Context", 64), ("Comment", 128)], Vec::new())
            }
            ShowKind::CharacterSets => Answer::texts(
                &[("Charset", 64), ("Description", 2048), ("Default collation", 64), ("Maxlen", 3)],
                server_tables::character_sets(state).map(|row| picked(&row, &[0, 2, 1, 3])),
            )
            .typed(&[(3, required("int unsigned"))]),
            ShowKind::Collations => collations(state),
            ShowKind::Grants(account, using) => {
                let (name, rows) = self.grants(account.as_ref(), using)?;
                one_column(format!("Grants for {}@{}", name.user, name.host), rows)
            }
            ShowKind::CreateUser(account) => {
                let (name, row) = self.create_user_text(account)?;
                one_column(format!("CREATE USER for {}@{}", name.user, name.host), vec![row])
            }
            ShowKind::Empty("BINARY LOGS", _) => Err(errors::error(errors::NO_BINARY_LOGGING, &[]))?,
            ShowKind::Empty(_, columns) => {
                let columns: Vec<(&str, u32)> = columns.iter().map(|name| (*name, 64)).collect();
                Answer::texts(&columns, Vec::new())
            }
        })
    }

    /// Sends the rows that meet a condition: it is a query over them. A condition that is refused uses up no
    /// SET TRANSACTION, whatever the rows come from.
    async fn send_where<S: ResultSink>(
        &mut self,
        answer: Answer,
        condition: &Arc<ast::Expr>,
        reads_dictionary: bool,
        parameters: &[Value<'_>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let columns = answer.columns.into_iter().map(with_exact_case).collect::<Vec<_>>();
        let state = self.state.clone();
        // Until the last plan with the rows is gone.
        let mut charge = state.memory.charge();
        let mut rows = self.gathered(answer.rows, &mut charge).await?;
        let exact = |at: usize| columns.get(at).is_some_and(|(_, ty)| ty.collation == Collation::Utf8mb3Bin);
        for (_, value) in
            rows.iter_mut().flat_map(|row| row.iter_mut().enumerate()).filter(|(at, _)| exact(*at))
        {
            if let Value::Text(_, rule) = value {
                *rule = Collation::Utf8mb3Bin;
            }
        }
        let rows = Arc::new(rows);
        for _ in 0..REPLANS_MAX {
            let (columns, rows, condition) = (columns.clone(), rows.clone(), condition.clone());
            let plan = self.planned(move |planner| planner.given_rows(&columns, &rows, &condition)).await?;
            self.use_up_characteristics(|| reads_dictionary);
            self.current.shows = true;
            // What reads no table needs no transaction.
            let result = match plan.tables().is_empty() {
                true => self.execute_plan(&plan, parameters, out).await,
                false => Box::pin(self.run_data(&plan, parameters, out)).await,
            };
            match result {
                Err(Failure::Stale) => {}
                result => return result,
            }
        }
        Err(Failure::Stale)
    }

    /// All rows of an answer, charged.
    async fn gathered(&self, source: RowSource, charge: &mut Charge<'_>) -> Result<Rows, Failure> {
        let mut rows = Rows::new();
        let slice = self.transaction.engine().slice();
        for row in source {
            slice.work(ROW_UNITS).await?;
            charge.grow(memory::row_weight(&row))?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn database_named(&self, name: Option<&str>) -> Result<String, SqlError> {
        let said = name.map(str::to_owned);
        let name = said.or_else(|| self.state.current_database().map(|name| name.to_string()));
        let name = name.ok_or_else(|| errors::error(errors::NO_DB, &[]))?;
        if !self.is_database(&name) {
            return Err(errors::error(errors::BAD_DB, &[&name]));
        }
        Ok(name)
    }

    fn tables(
        &self,
        full: bool,
        database: Option<&str>,
        filter: Option<&ShowFilter>,
    ) -> Result<Answer, SqlError> {
        let database = self.database_named(database)?;
        let mut names: Vec<(String, &'static str)> = if catalog_views::is_view_database(&database) {
            let views = catalog_views::shown(&self.state).into_iter();
            let views = views.filter(|view| view.database.eq_ignore_ascii_case(&database));
            views.map(|view| (view.name.to_owned(), "SYSTEM VIEW")).collect()
        } else {
            let tables = self.state.database.tables(&database).into_iter();
            let tables = tables.filter(|table| self.state.sees_table(&database, &table.name));
            let views = views::seen(&self.state, Some(&database)).into_iter();
            let views = views.map(|view| (view.name, "VIEW"));
            tables.map(|table| (table.name.clone(), "BASE TABLE")).chain(views).collect()
        };
        names.sort();
        let mut column = format!("Tables_in_{database}");
        if let Some(pattern) = like_filter(filter) {
            column.push_str(&format!(" ({})", String::from_utf8_lossy(pattern)));
        }
        let mut columns = vec![(column, Type::text(64))];
        if full {
            columns.push(("Table_type".to_owned(), Type::text(11)));
        }
        let row = move |(name, kind): (String, &'static str)| match full {
            true => vec![text(name), text(kind)],
            false => vec![text(name)],
        };
        Ok(Answer::new(columns, names.into_iter().map(row)))
    }

    fn table_status(&self, database: Option<&str>) -> Result<Answer, SqlError> {
        let database = self.database_named(database)?;
        let mut tables = self.state.database.tables(&database);
        tables.retain(|table| self.state.sees_table(&database, &table.name));
        // Without catalog, database and kind.
        let wanted = &[2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
        let views = views::seen(&self.state, Some(&database)).into_iter();
        let views = views.map(|view| views::table_row(&self.state, &view));
        let zone = self.state.time_zone_offset();
        let mut rows: Rows = tables.iter().map(|table| table_row(table, zone)).chain(views).collect();
        rows.sort_by_cached_key(|row| row[2].to_text().into_owned());
        let rows = rows.into_iter().map(|row| picked(&row, wanted));
        let answer = Answer::texts(
            &[
                ("Name", 64),
                ("Engine", 64),
                ("Version", 21),
                ("Row_format", 10),
                ("Rows", 21),
                ("Avg_row_length", 21),
                ("Data_length", 21),
                ("Max_data_length", 21),
                ("Index_length", 21),
                ("Data_free", 21),
                ("Auto_increment", 21),
                ("Create_time", 19),
                ("Update_time", 19),
                ("Check_time", 19),
                ("Collation", 64),
                ("Checksum", 21),
                ("Create_options", 256),
                ("Comment", 2048),
            ],
            rows,
        );
        let sizes = (4..=10).map(|at| (at, nullable("bigint unsigned")));
        Ok(answer.typed(&sizes.collect::<Vec<_>>()).typed(&[
            (2, nullable("int")),
            (11, required("timestamp")),
            (12, nullable("datetime")),
            (13, nullable("datetime")),
            (15, nullable("bigint")),
        ]))
    }

    fn columns_of(&self, name: &TableName, full: bool) -> Result<Answer, SqlError> {
        let columns = match self.planner().view_named(name)? {
            Some(view) => {
                self.planner().view_columns(&view)?;
                views::column_rows(&self.state, &view)
            }
            None => match &self.planner().named_source(name, None)?.kind {
                SourceKind::Table(table) => {
                    let database = self.planner().database_of(name)?;
                    let columns = columns_of_table(&table.0);
                    match self.state.temporary.find(&database, &name.name) {
                        Some(_) => columns,
                        None => seen_columns(&self.state.rights(), &database, &name.name, columns),
                    }
                }
                SourceKind::View(view) => columns_of_view(view),
                SourceKind::Derived(_)
                | SourceKind::JsonTable(_)
                | SourceKind::Recursion(_)
                | SourceKind::Given(_)
                | SourceKind::Definition(_) => Vec::new(),
            },
        };
        let wanted: &'static [usize] =
            if full { &[3, 15, 14, 6, 16, 5, 17, 18, 19] } else { &[3, 15, 6, 16, 5, 17] };
        let rows = columns.into_iter().map(move |row| picked(&row, wanted));
        Ok(if full {
            Answer::texts(
                &[
                    ("Field", 64),
                    ("Type", 65_535),
                    ("Collation", 64),
                    ("Null", 3),
                    ("Key", 3),
                    ("Default", 65_535),
                    ("Extra", 256),
                    ("Privileges", 154),
                    ("Comment", 1024),
                ],
                rows,
            )
        } else {
            Answer::texts(
                &[
                    ("Field", 64),
                    ("Type", 65_535),
                    ("Null", 3),
                    ("Key", 3),
                    ("Default", 65_535),
                    ("Extra", 256),
                ],
                rows,
            )
        })
    }

    fn indexes(&self, name: &TableName) -> Result<Answer, SqlError> {
        let rows = match self.planner().view_named(name)? {
            Some(_) => Vec::new(),
            None => {
                let table = self.planner().engine_table(name)?;
                let rows = statistics_of(&table);
                match self.state.is_known_by_columns_only(&table.database, &table.name) {
                    true => without_hidden(&self.state.rights(), &table, STATISTICS_COLUMN, rows),
                    false => rows,
                }
            }
        };
        let wanted = &[2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17];
        let rows = rows.into_iter().map(|row| picked(&row, wanted));
        let answer = Answer::texts(
            &[
                ("Table", 64),
                ("Non_unique", 1),
                ("Key_name", 64),
                ("Seq_in_index", 2),
                ("Column_name", 64),
                ("Collation", 1),
                ("Cardinality", 21),
                ("Sub_part", 3),
                ("Packed", 10),
                ("Null", 3),
                ("Index_type", 16),
                ("Comment", 16),
                ("Index_comment", 2048),
                ("Visible", 3),
                ("Expression", 65_535),
            ],
            rows,
        );
        Ok(answer.typed(&[
            (1, required("int")),
            (3, required("int unsigned")),
            (6, nullable("bigint")),
            (7, nullable("bigint")),
        ]))
    }

    fn create_table_text(&self, name: &TableName) -> Result<Answer, SqlError> {
        if self.planner().view_named(name)?.is_some() {
            return self.create_view_text(name);
        }
        let table = self.planner().engine_table(name)?;
        let rows = vec![vec![
            text(&*table.name),
            text(create_table::create_statement(&table, self.state.settings().sql.sql_mode)),
        ]];
        Ok(Answer::texts(&[("Table", 64), ("Create Table", 65_535)], rows))
    }

    fn create_view_text(&self, name: &TableName) -> Result<Answer, SqlError> {
        let Some(view) = self.planner().view_itself(name)? else {
            let table = self.planner().engine_table(name)?;
            return Err(errors::error(errors::WRONG_OBJECT, &[&table.database, &table.name, &"VIEW"]));
        };
        let statement = views::create_statement(&view, self.state.current_database().as_deref());
        let statement = create_table::requoted(&statement, self.state.settings().sql.sql_mode);
        let row = vec![
            text(&*view.name),
            text(statement),
            text(&*view.def.client_charset),
            text(view.def.collation.name()),
        ];
        let columns = [
            ("View", 64),
            ("Create View", 65_535),
            ("character_set_client", 32),
            ("collation_connection", 32),
        ];
        Ok(Answer::texts(&columns, vec![row]))
    }

    fn create_database_text(&self, name: &str, if_not_exists: bool) -> Result<Answer, SqlError> {
        let rule = match self.state.database.database(name) {
            Some(def) => def.collation,
            None if self.is_database(name) => Collation::Utf8mb4GeneralCi,
            None => return Err(errors::error(errors::BAD_DB, &[&name])),
        };
        let clause = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
        let charset = rule.charset();
        // As MySQL does: what a character set means by itself, but for utf8mb4.
        let collation = match charset {
            Charset::Utf8mb4 => format!(" COLLATE {}", rule.name()),
            charset if charset.default_collation() == rule => String::new(),
            _ => format!(" COLLATE {}", rule.name()),
        };
        let statement = format!(
            "CREATE DATABASE {clause}`{name}` /*!40100 DEFAULT CHARACTER SET {}{collation} */ /*!80016 DEFAULT ENCRYPTION='N' */",
            charset.name(),
        );
        let statement = create_table::requoted(&statement, self.state.settings().sql.sql_mode);
        Ok(Answer::texts(
            &[("Database", 64), ("Create Database", 1024)],
            vec![vec![text(name), text(statement)]],
        ))
    }

    fn warning_rows(
        &self,
        limit: Option<&Limit>,
        count: bool,
        errors_only: bool,
    ) -> Result<Answer, SqlError> {
        let warnings = self.state.warnings.borrow();
        let lines = warnings.iter().filter(|(level, _)| !errors_only || *level == Level::Error);
        if count {
            let name = if errors_only { "@@session.error_count" } else { "@@session.warning_count" };
            let total = if errors_only { lines.count() as u64 } else { self.state.warning_count.get() };
            let answer = Answer::texts(&[(name, 21)], vec![vec![number(total)]]);
            return Ok(answer.typed(&[(0, required("bigint unsigned"))]));
        }
        let (mut skip, mut take) = (0, usize::MAX);
        if let Some((most, offset)) = self.planner().limit(limit)? {
            let cx = Context::constant(&self.state, &[]);
            take = most.eval(&cx)?.to_bits() as usize;
            skip =
                offset.map(|offset| offset.eval(&cx).map(|v| v.to_bits() as usize)).transpose()?.unwrap_or(0);
        }
        let rows: Rows = lines
            .skip(skip)
            .take(take)
            .map(|(level, error)| vec![text(level.name()), number(error.code), text(&*error.message)])
            .collect();
        let answer = Answer::texts(&[("Level", 7), ("Code", 4), ("Message", 512)], rows);
        Ok(answer.typed(&[(1, required("int unsigned"))]))
    }

    /// COM_FIELD_LIST.
    pub(super) fn field_definitions(
        &self,
        table: &str,
        pattern: &[u8],
    ) -> Result<Arc<ResultColumns>, SqlError> {
        let name = TableName { database: None, name: table.to_owned() };
        self.require_sight_of(&name, "SELECT")?;
        let source = self.planner().named_source(&name, None)?;
        let rights = self.state.rights();
        let (database, table) = (&*source.database, &*source.table);
        let is_open =
            catalog_views::is_view_database(database) || self.state.temporary.find(database, table).is_some();
        let is_seen = |column: &str| {
            is_open || rights.on_column(database, table, column).has_any(Privileges::of_columns())
        };
        let mut metas = Vec::new();
        for (number, name) in source.named() {
            let matches = pattern.is_empty() || like_name(name.as_bytes(), pattern);
            if matches && is_seen(name) {
                let mut meta = source.meta(number, name);
                let def = source.engine_table().and_then(|table| table.def.columns.get(usize::from(number)));
                meta.default = def.and_then(|def| match default_text(def) {
                    Value::Null => None,
                    value => Some(value.to_text().into_owned()),
                });
                metas.push(meta);
            }
        }
        Ok(ResultColumns::new(metas))
    }
}

/// Whether it shows what MySQL has in tables of its data dictionary.
fn reads_dictionary(statement: &Statement) -> bool {
    match statement {
        Statement::Describe { .. } => true,
        Statement::Show(show) => matches!(
            show.kind,
            ShowKind::Databases
                | ShowKind::Tables { .. }
                | ShowKind::TableStatus { .. }
                | ShowKind::Columns { .. }
                | ShowKind::Index { .. }
        ),
        _ => false,
    }
}

/// A column of an answer as conditions compare it: names of databases and tables by the letter, as well as
/// words that MySQL keeps in such columns.
fn with_exact_case((name, ty): (String, Type)) -> (String, Type) {
    const EXACT: [&str; 10] = [
        "Database",
        "Index_type",
        "Key",
        "Name",
        "Pad_attribute",
        "Row_format",
        "Table",
        "Table_type",
        "Type",
        "Db",
    ];
    let exact = EXACT.contains(&&*name) || name.starts_with("Tables_in_");
    let ty = match exact && ty.is_text() {
        true => Type { collation: Collation::Utf8mb3Bin, derivation: Derivation::Implicit, ..ty },
        false => ty,
    };
    (name, ty)
}
