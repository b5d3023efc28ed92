//! `information_schema`, `performance_schema` and the accounts of `mysql`: virtual tables read through the
//! same executor as any other.
//!
//! A view is a list of columns and a function that makes its rows, one after the other: who reads them
//! charges each, and gives way in between. Only what the rows are about (tables, accounts, transactions) is
//! looked up at once.

mod constants;
pub mod declared;
mod engine_metrics;
mod extension;
mod file_io;
mod foreign_keys;
mod keywords;
mod locks;
pub mod performance;
mod roles;
pub mod server_tables;
pub mod table_tables;
mod tablespaces;
mod unmeasured;
mod user;
pub mod views;
mod without_rows;

pub use constants::{default_clause, quoted};
pub use table_tables::current_timestamp;

pub(crate) use constants::filled_width;
use std::time::Duration;

use declared::Declared;
use untorn::schema::ColumnDef;
use untorn::types::{Collation, ColumnType, DateTime, SizeClass};

use super::expr::types::{Derivation, Type};
use super::plan::source::{Source, SourceColumn, SourceKind};
use super::value::Value;
use crate::context::SqlContext;
use crate::privilege::Privileges;
use crate::result::{SqlError, kind};

/// What a column of a view holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewType {
    /// Text of this many characters.
    Text(u32),
    /// BIGINT UNSIGNED.
    Number,
    /// INT UNSIGNED.
    Small,
    /// BIGINT.
    Integer,
    /// DOUBLE.
    Real,
    /// DATETIME.
    Time,
    /// DATETIME with microseconds.
    Moment,
    /// As MySQL declares it.
    Declared(Declared),
}

impl ViewType {
    /// What a client is told of its values.
    pub fn value_type(self) -> Type {
        match self {
            // As MySQL's TEXT columns are.
            ViewType::Text(length @ 65_535..) => Type { kind: kind::BLOB, ..Type::text(length) },
            ViewType::Text(length) => Type::text(length),
            ViewType::Number => Type::UINT,
            ViewType::Small => Type::of_column(&ColumnType::Int { unsigned: true }, true),
            ViewType::Integer => Type::INT,
            ViewType::Real => Type::DOUBLE,
            ViewType::Time => Type::datetime(0),
            ViewType::Moment => Type::datetime(6),
            ViewType::Declared(declared) => declared.value_type(),
        }
    }
}

/// Rows that are made when they are asked for.
pub type RowSource = Box<dyn Iterator<Item = Vec<Value<'static>>>>;

/// A virtual table.
pub struct View {
    /// Its database.
    pub database: &'static str,
    /// Name, in the letters MySQL shows.
    pub name: &'static str,
    /// Column names, in the letters MySQL shows, and types.
    pub columns: &'static [(&'static str, ViewType)],
    make: fn(&SqlContext) -> RowSource,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

/// Databases of views.
pub const INFORMATION_SCHEMA: &str = "information_schema";
/// What the server does.
pub const PERFORMANCE_SCHEMA: &str = "performance_schema";
/// Where clients look for the accounts; see [`stands_in`].
const MYSQL: &str = "mysql";

/// Whether a database holds views only.
pub fn is_view_database(name: &str) -> bool {
    view_database(name).is_some()
}

/// The database of views with this name, letter case not counting.
pub fn view_database(name: &str) -> Option<&'static str> {
    [INFORMATION_SCHEMA, PERFORMANCE_SCHEMA].into_iter().find(|known| name.eq_ignore_ascii_case(known))
}

/// Whether the views of `mysql` are what this name means. Unlike the others it is the name of a database that
/// can be made, as a dump of all of a server's databases does: then it is that database, and its tables and
/// views come before these of the same name. It is in lists of databases, because MySQL's
/// `mysqldump --all-databases` dumps nothing at all, without a word, where it does not find this one. Its
/// views are in no list of tables: a dump has no use for them. They have privileges like tables.
pub fn stands_in(state: &SqlContext, database: &str) -> bool {
    database == MYSQL && state.database.database(database).is_none()
}

/// Whether a view of `mysql` of this name would be what is meant: there is no table of that name, and no view
/// that somebody made.
pub fn table_stands_in(state: &SqlContext, database: &str, table: &str) -> bool {
    database == MYSQL
        && state.temporary.find(database, table).is_none()
        && state.database.table(database, table).is_err()
        && state.database.view(database, table).is_none()
}

fn views() -> impl Iterator<Item = &'static View> {
    let of_schema = table_tables::VIEWS.iter().chain(server_tables::VIEWS).chain(extension::VIEWS);
    let of_schema = of_schema.chain(engine_metrics::VIEWS).chain(tablespaces::VIEWS).chain(roles::VIEWS);
    let of_schema = of_schema.chain(keywords::VIEWS);
    let of_server = performance::VIEWS.iter().chain(locks::VIEWS).chain(file_io::VIEWS);
    of_schema.chain(of_server).chain(unmeasured::VIEWS).chain(without_rows::VIEWS).chain(user::VIEWS)
}

/// The view of this name, letter case not counting.
pub fn find(database: &str, name: &str) -> Option<&'static View> {
    views().find(|view| view.database.eq_ignore_ascii_case(database) && view.name.eq_ignore_ascii_case(name))
}

/// The views that lists of tables name, as far as the account may know of them.
pub fn shown(state: &SqlContext) -> Vec<&'static View> {
    let hidden = |view: &View| {
        view.database == MYSQL || view.database == PERFORMANCE_SCHEMA && view.require_reading(state).is_err()
    };
    views().filter(|view| !hidden(view)).collect()
}

impl View {
    /// Its rows now.
    pub fn rows(&self, state: &SqlContext) -> RowSource {
        let rows = (self.make)(state);
        let columns: Vec<usize> =
            (0..self.columns.len()).filter(|at| self.is_by_letters(self.columns[*at].0)).collect();
        if columns.is_empty() {
            return rows;
        }
        Box::new(rows.map(move |mut row| {
            for at in &columns {
                if let Some(Value::Text(_, collation)) = row.get_mut(*at) {
                    *collation = Collation::Utf8mb3Bin;
                }
            }
            row
        }))
    }

    /// Whether letter case counts in a column of this name.
    fn is_by_letters(&self, column: &str) -> bool {
        self.is_replaced() && by_letters(column)
    }

    /// What the engine is doing is for those who may look at others' work; 1227, and 1142 in
    /// `performance_schema`, which has privileges like any database.
    pub fn require_reading(&self, state: &SqlContext) -> Result<(), SqlError> {
        if self.database == PERFORMANCE_SCHEMA {
            let on_some = state.rights().on_any_column(self.database, self.name);
            return match on_some.has(Privileges::SELECT) {
                true => Ok(()),
                false => Err(state.table_denied("SELECT", self.name)),
            };
        }
        let inner = ["INNODB_", "UNTORN_"].iter().any(|prefix| self.name.starts_with(prefix));
        if inner { state.require_any(Privileges::PROCESS) } else { Ok(()) }
    }

    /// Whether it is a view in MySQL, whose columns come with its names and not as the statement writes them.
    /// Found by asking MySQL 9.7.
    pub fn is_replaced(&self) -> bool {
        const AS_WRITTEN: [&str; 15] = [
            "APPLICABLE_ROLES",
            "COLLATIONS",
            "COLUMN_PRIVILEGES",
            "ENABLED_ROLES",
            "ENGINES",
            "OPTIMIZER_TRACE",
            "PLUGINS",
            "PROCESSLIST",
            "PROFILING",
            "ROLE_COLUMN_GRANTS",
            "ROLE_ROUTINE_GRANTS",
            "ROLE_TABLE_GRANTS",
            "SCHEMA_PRIVILEGES",
            "TABLE_PRIVILEGES",
            "USER_PRIVILEGES",
        ];
        const OF_ENGINE: [&str; 4] =
            ["INNODB_DATAFILES", "INNODB_FIELDS", "INNODB_FOREIGN_COLS", "INNODB_TABLESPACES_BRIEF"];
        let of_engine = ["INNODB_", "UNTORN_"].iter().any(|prefix| self.name.starts_with(prefix));
        self.database == INFORMATION_SCHEMA
            && !AS_WRITTEN.contains(&self.name)
            && (!of_engine || OF_ENGINE.contains(&self.name))
    }

    /// As a source of a query.
    pub fn source(&'static self, alias: &str) -> Source {
        let mut columns = source_columns(self.columns);
        for column in columns.iter_mut().filter(|column| self.is_by_letters(&column.name)) {
            column.ty.collation = Collation::Utf8mb3Bin;
            column.ty.derivation = Derivation::Implicit;
        }
        let (database, name) = (self.database.to_owned(), self.name.to_owned());
        Source::new(database, alias.to_owned(), name, columns, SourceKind::View(self))
    }
}

/// Whether upper and lower case letters differ in a column of this name: those of databases, tables and what
/// is an expression or a word of MySQL's own. Names of columns, indexes and constraints are not so.
fn by_letters(column: &str) -> bool {
    const NAMES: [&str; 33] = [
        "ACTION_STATEMENT",
        "ACTION_TIMING",
        "CHECK_CLAUSE",
        "CHECK_OPTION",
        "COLUMN_COMMENT",
        "COLUMN_DEFAULT",
        "COLUMN_KEY",
        "COLUMN_TYPE",
        "CONSTRAINT_TYPE",
        "DATA_TYPE",
        "DEFAULT_ENCRYPTION",
        "DEFINER",
        "DELETE_RULE",
        "DTD_IDENTIFIER",
        "ENFORCED",
        "EVENT_COMMENT",
        "EVENT_DEFINITION",
        "EVENT_MANIPULATION",
        "EXPRESSION",
        "EXTERNAL_LANGUAGE",
        "GENERATION_EXPRESSION",
        "INDEX_COMMENT",
        "INDEX_TYPE",
        "IS_UPDATABLE",
        "MATCH_OPTION",
        "PARAMETER_MODE",
        "ROUTINE_COMMENT",
        "ROUTINE_DEFINITION",
        "ROUTINE_TYPE",
        "SECURITY_TYPE",
        "SQL_MODE",
        "UPDATE_RULE",
        "VIEW_DEFINITION",
    ];
    const ENDS: [&str; 5] = ["_CATALOG", "_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "EVENT_OBJECT_TABLE"];
    matches!(column, "SCHEMA_NAME" | "CATALOG_NAME")
        || NAMES.contains(&column)
        || ENDS.iter().any(|end| column.ends_with(end))
}

/// Columns of a view-like source.
fn source_columns(columns: &[(&str, ViewType)]) -> Vec<SourceColumn> {
    columns
        .iter()
        .map(|(name, kind)| SourceColumn {
            name: (*name).to_owned(),
            ty: kind.value_type(),
            flags: 0,
            shown_length: None,
            merged: false,
            invisible: false,
        })
        .collect()
}

/// The rows of a view that never has any.
fn nothing(_: &SqlContext) -> RowSource {
    Box::new(std::iter::empty())
}

/// A view that never has rows.
const fn empty(
    database: &'static str,
    name: &'static str,
    columns: &'static [(&'static str, ViewType)],
) -> View {
    View { database, name, columns, make: nothing }
}

/// Text of a row.
pub fn text(text: impl Into<String>) -> Value<'static> {
    Value::text(text.into())
}

/// A number of a row; NULL for one below zero.
pub fn number(number: impl TryInto<u64>) -> Value<'static> {
    number.try_into().map_or(Value::Null, Value::UInt)
}

/// A time in picoseconds, as in MySQL. A column ends at 213 days, which sums reach where many sessions wait:
/// from there on it stays at its largest number.
pub fn picoseconds(time: Duration) -> Value<'static> {
    Value::UInt(u64::try_from(time.as_nanos() * 1000).unwrap_or(u64::MAX))
}

/// The part of each of `count`.
pub fn average(sum: Duration, count: u64) -> Duration {
    let nanoseconds = sum.as_nanos() / u128::from(count.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// A moment in a zone, given in seconds east of UTC: columns of the type TIMESTAMP show the session's.
pub fn moment(unix: Duration, zone: i32) -> DateTime {
    DateTime::from_unix(unix.as_secs() as i64 + i64::from(zone), unix.subsec_micros())
}

/// Databases that a client may see, in order, the views' first.
pub fn database_names(state: &SqlContext) -> Vec<String> {
    let mut names = state.database.databases();
    let rights = state.rights();
    if !rights.global().has(Privileges::SHOW_DATABASES) {
        names.retain(|name| rights.sees_database(name));
    }
    let sees = rights.global().has(Privileges::SHOW_DATABASES) || rights.sees_database(MYSQL);
    if sees && stands_in(state, MYSQL) {
        names.push(MYSQL.to_owned());
    }
    names.extend([INFORMATION_SCHEMA, PERFORMANCE_SCHEMA].map(str::to_owned));
    names.sort();
    names
}

/// The type of a column as SHOW COLUMNS prints it. As in MySQL only TINYINT(1) and ZEROFILL show a width.
pub fn type_text(column: &ColumnDef) -> String {
    let text = column_type_text(&column.kind);
    let unsigned = match (column.unsigned, column.zerofill) {
        (true, true) => " unsigned zerofill",
        (true, false) => " unsigned",
        _ => "",
    };
    match (column.width, column.decimals) {
        (Some(width), Some(decimals)) => format!("{text}({width},{decimals}){unsigned}"),
        (Some(width), None) if column.zerofill => {
            format!("{}({width}) unsigned zerofill", text.trim_end_matches(" unsigned"))
        }
        (Some(width), None) => format!("{text}({width})"),
        _ => text + unsigned,
    }
}

/// A type without what only the definition of its column says.
pub(crate) fn column_type_text(kind: &ColumnType) -> String {
    let unsigned =
        |name: &str, unsigned: bool| if unsigned { format!("{name} unsigned") } else { name.to_owned() };
    let digits =
        |name: &str, fraction: u8| if fraction > 0 { format!("{name}({fraction})") } else { name.to_owned() };
    let members = |name: &str, members: &[String]| {
        let quoted: Vec<String> = members.iter().map(|member| quoted(member)).collect();
        format!("{name}({})", quoted.join(","))
    };
    match kind {
        ColumnType::TinyInt { unsigned: u } => unsigned("tinyint", *u),
        ColumnType::SmallInt { unsigned: u } => unsigned("smallint", *u),
        ColumnType::MediumInt { unsigned: u } => unsigned("mediumint", *u),
        ColumnType::Int { unsigned: u } => unsigned("int", *u),
        ColumnType::BigInt { unsigned: u } => unsigned("bigint", *u),
        ColumnType::Float => "float".into(),
        ColumnType::Double => "double".into(),
        ColumnType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        ColumnType::Date => "date".into(),
        ColumnType::DateTime { fraction } => digits("datetime", *fraction),
        ColumnType::Timestamp { fraction } => digits("timestamp", *fraction),
        ColumnType::Time { fraction } => digits("time", *fraction),
        ColumnType::Year => "year".into(),
        ColumnType::Char { chars, .. } => format!("char({chars})"),
        ColumnType::VarChar { chars, .. } => format!("varchar({chars})"),
        ColumnType::Binary { bytes } => format!("binary({bytes})"),
        ColumnType::VarBinary { bytes } => format!("varbinary({bytes})"),
        ColumnType::Text { size, .. } => size_name(*size, "text"),
        ColumnType::Blob { size } => size_name(*size, "blob"),
        ColumnType::Json => "json".into(),
        ColumnType::Enum { members: m, .. } => members("enum", m),
        ColumnType::Set { members: m, .. } => members("set", m),
        ColumnType::Bit { bits } => format!("bit({bits})"),
    }
}

fn size_name(size: SizeClass, name: &str) -> String {
    let prefix = match size {
        SizeClass::Tiny => "tiny",
        SizeClass::Normal => "",
        SizeClass::Medium => "medium",
        SizeClass::Long => "long",
    };
    format!("{prefix}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_end_at_the_largest_number_and_parts_of_many_are_right() {
        let day = Duration::from_secs(86_400);
        assert!(matches!(picoseconds(day), Value::UInt(86_400_000_000_000_000)));
        assert!(matches!(picoseconds(214 * day), Value::UInt(u64::MAX)));
        let many = 1 << 33;
        assert_eq!(average(Duration::from_micros(3 * many), many), Duration::from_micros(3));
        assert_eq!(average(Duration::ZERO, 0), Duration::ZERO);
    }
}
