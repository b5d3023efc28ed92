//! Views of the catalog: SCHEMATA, TABLES, COLUMNS, STATISTICS, constraints, and those that are always empty.

use std::sync::Arc;
use std::time::Duration;

use untorn::Table;
use untorn::schema::{Check, ColumnDef, Default, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType};

use super::ViewType::{Declared, Integer, Moment, Number, Real, Small, Text, Time};
use super::constants::shown_default;
use super::foreign_keys;
use super::views as created_views;
use super::{
    INFORMATION_SCHEMA, RowSource, View, database_names, moment, nothing, number, shown, text, type_text,
};
use crate::context::SqlContext;
use crate::exec::Rows;
use crate::privilege::{Privileges, Rights};
use crate::privilege_checks::seeing;
use crate::value::Value;

macro_rules! view {
    ($name:literal, [$($column:literal $kind:expr),* $(,)?], $make:expr) => {
        View { database: INFORMATION_SCHEMA, name: $name, columns: &[$(($column, $kind)),*], make: $make }
    };
}
pub(super) use view;

/// The tables that a client may see.
fn tables(state: &SqlContext) -> impl Iterator<Item = Arc<Table>> + 'static {
    let mut tables = state.database.all_tables();
    tables.retain(|table| state.sees_table(&table.database, &table.name));
    tables.into_iter()
}

/// When a table or view was made.
pub(super) fn created(unix_s: u64, zone: i32) -> Value<'static> {
    Value::DateTime(moment(Duration::from_secs(unix_s), zone), 0)
}

/// PRI, UNI, MUL or nothing.
fn key_of_column(table: &TableDef, column: usize) -> &'static str {
    let mut found = "";
    for key in &table.keys {
        let Some(position) = key.parts.iter().position(|part| usize::from(part.column) == column) else {
            continue;
        };
        match key.kind {
            _ if table.is_shown_as_primary(key) => return "PRI",
            KeyKind::Unique if key.parts.len() == 1 => found = "UNI",
            _ if position == 0 && found.is_empty() => found = "MUL",
            _ => {}
        }
    }
    found
}

/// An expression as MySQL shows it here: with a backslash before quotes.
fn escaped(expression: &str) -> Value<'static> {
    text(expression.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The default as text, NULL without one.
pub fn default_text(column: &ColumnDef) -> Value<'static> {
    match &column.default {
        None => Value::Null,
        Some(Default::CurrentTimestamp) => text(current_timestamp(column)),
        Some(Default::Literal(_)) => shown_default(column).map_or(Value::Null, text),
        Some(Default::Expression(expression)) => escaped(expression),
    }
}

/// CURRENT_TIMESTAMP with as many digits as the column has.
pub fn current_timestamp(column: &ColumnDef) -> String {
    let digits = crate::stored_values::fraction(&column.kind);
    if digits > 0 { format!("CURRENT_TIMESTAMP({digits})") } else { "CURRENT_TIMESTAMP".to_owned() }
}

/// The EXTRA column: never NULL.
fn extra(column: &ColumnDef) -> String {
    let on_update;
    let mut parts = Vec::new();
    if column.auto_increment {
        parts.push("auto_increment");
    }
    if matches!(column.default, Some(Default::CurrentTimestamp | Default::Expression(_))) {
        parts.push("DEFAULT_GENERATED");
    }
    if column.generated.is_some() {
        parts.push(if column.is_virtual { "VIRTUAL GENERATED" } else { "STORED GENERATED" });
    }
    if column.on_update_now {
        parts.push("on update");
        on_update = current_timestamp(column);
        parts.push(&on_update);
    }
    if column.invisible {
        parts.push("INVISIBLE");
    }
    parts.join(" ")
}

/// Bytes of rows and of secondary indexes, roughly.
fn sizes(table: &Table) -> (u64, u64) {
    let rows = table.row_count_estimate();
    let row: u64 =
        table.def.columns.iter().map(|column| u64::from(column.kind.bytes_max().min(256))).sum::<u64>() / 2
            + 20;
    let page = 16_384;
    let data = (rows * row).div_ceil(page).max(1) * page;
    let secondary = table.def.secondary_keys().len() as u64;
    let index = if secondary == 0 { 0 } else { secondary * (rows * 20).div_ceil(page).max(1) * page };
    (data, index)
}

fn schemata(state: &SqlContext) -> RowSource {
    let row = |name: String| {
        let collation =
            state.database.database(&name).map_or(Collation::Utf8mb4GeneralCi, |def| def.collation);
        vec![
            text("def"),
            text(name),
            text(collation.charset().name()),
            text(collation.name()),
            Value::Null,
            text("NO"),
        ]
    };
    let rows: Rows = database_names(state).into_iter().map(row).collect();
    Box::new(rows.into_iter())
}

/// A table's row of TABLES, which SHOW TABLE STATUS shows too; moments in the zone, seconds east of UTC.
pub fn table_row(table: &Table, zone: i32) -> Vec<Value<'static>> {
    let (data, index) = sizes(table);
    let rows = table.row_count_estimate();
    let auto = table.next_auto_increment().map_or(Value::Null, number);
    vec![
        text("def"),
        text(&*table.database),
        text(&*table.name),
        text("BASE TABLE"),
        text("InnoDB"),
        number(10u64),
        text("Dynamic"),
        number(rows),
        number(data.checked_div(rows).unwrap_or(0)),
        number(data),
        number(0u64),
        number(index),
        number(0u64),
        auto,
        created(table.def.created_unix_s, zone),
        Value::Null,
        Value::Null,
        text(table.def.collation.name()),
        Value::Null,
        text(""),
        text(&*table.def.comment),
    ]
}

fn table_rows(state: &SqlContext) -> RowSource {
    let views = shown(state).into_iter().map(|view| {
        let mut row = vec![
            text("def"),
            text(view.database),
            text(view.name),
            text("SYSTEM VIEW"),
            Value::Null,
            number(10u64),
        ];
        row.extend(std::iter::repeat_n(Value::Null, 13));
        row.extend([text(""), text("")]);
        row
    });
    let of_views =
        created_views::seen(state, None).into_iter().map(|view| created_views::table_row(state, &view));
    let of_views: Rows = of_views.collect();
    let zone = state.time_zone_offset();
    Box::new(tables(state).map(move |table| table_row(&table, zone)).chain(of_views).chain(views))
}

/// A table's rows of COLUMNS, which SHOW COLUMNS shows too.
pub fn columns_of_table(table: &Table) -> Rows {
    columns_named(&table.database, &table.name, table.def.visible_columns(), Some(&table.def))
}

/// The same of what has these columns, and perhaps keys.
pub(super) fn columns_named(
    database: &str,
    table: &str,
    columns: &[ColumnDef],
    keys: Option<&TableDef>,
) -> Rows {
    let mut rows = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let kind = type_text(column);
        let is_text = column.kind.collation() != Collation::Binary;
        let data_type = kind.split(['(', ' ']).next().unwrap_or("").to_owned();
        let (chars, bytes) = match &column.kind {
            ColumnType::Char { chars, .. } | ColumnType::VarChar { chars, .. } => {
                (number(*chars), number(column.kind.bytes_max()))
            }
            kind if kind.is_string() => (number(kind.bytes_max()), number(kind.bytes_max())),
            ColumnType::Enum { members, collation } => {
                let longest = members.iter().map(|m| m.chars().count()).max().unwrap_or(0);
                (number(longest), number(longest * collation.bytes_per_char_max() as usize))
            }
            ColumnType::Set { members, collation } => {
                let commas = members.len().saturating_sub(1);
                let all = members.iter().map(|m| m.chars().count()).sum::<usize>() + commas;
                (number(all), number(all * collation.bytes_per_char_max() as usize))
            }
            _ => (Value::Null, Value::Null),
        };
        let (precision, scale) = match (column.width, column.decimals) {
            (Some(width), Some(decimals)) => (number(width), number(decimals)),
            _ => numeric(&column.kind),
        };
        let temporal = match &column.kind {
            ColumnType::DateTime { fraction }
            | ColumnType::Timestamp { fraction }
            | ColumnType::Time { fraction } => number(*fraction),
            _ => Value::Null,
        };
        rows.push(vec![
            text("def"),
            text(database),
            text(table),
            text(&*column.name),
            number(at + 1),
            default_text(column),
            text(if column.nullable { "YES" } else { "NO" }),
            text(data_type),
            chars,
            bytes,
            precision,
            scale,
            temporal,
            if is_text { text(column.kind.collation().charset().name()) } else { Value::Null },
            if is_text { text(column.kind.collation().name()) } else { Value::Null },
            text(kind),
            text(keys.map_or("", |keys| key_of_column(keys, at))),
            text(extra(column)),
            text("select,insert,update,references"),
            text(&*column.comment),
            escaped(column.generated.as_deref().unwrap_or_default()),
            Value::Null,
        ]);
    }
    rows
}

/// Those rows of COLUMNS of a table or a view that the account may know of, with what it may do there.
pub fn seen_columns(rights: &Rights, database: &str, table: &str, mut rows: Rows) -> Rows {
    const NAME: usize = 3;
    const PRIVILEGES: usize = 18;
    let on_all = rights.on_table(database, table);
    let on_some = rights.columns_of(database, table);
    rows.retain_mut(|row| {
        let own = on_some.and_then(|columns| {
            columns.get(&String::from_utf8_lossy(&row[NAME].to_text()).to_lowercase()).map(|(_, what)| *what)
        });
        let allowed = (on_all | own.unwrap_or_default()).only(Privileges::of_columns());
        row[PRIVILEGES] = text(allowed.names().collect::<Vec<_>>().join(",").to_lowercase());
        !allowed.is_empty()
    });
    rows
}

/// The same for a view.
pub fn columns_of_view(view: &View) -> Rows {
    let mut rows = Vec::new();
    for (at, (name, kind)) in view.columns.iter().enumerate() {
        let (data_type, full) = match kind {
            Text(u32::MAX) => ("longtext", "longtext".to_owned()),
            Text(length) => ("varchar", format!("varchar({length})")),
            Number => ("bigint", "bigint unsigned".to_owned()),
            Small => ("int", "int unsigned".to_owned()),
            Integer => ("bigint", "bigint".to_owned()),
            Real => ("double", "double".to_owned()),
            Moment => ("datetime", "datetime(6)".to_owned()),
            Time => ("datetime", "datetime".to_owned()),
            Declared(declared) => (declared.data_type(), declared.shown.to_owned()),
        };
        let (required, key, default) = match kind {
            Declared(declared) => (declared.required, declared.key, declared.default),
            _ => (false, "", None),
        };
        let mut row = vec![
            text("def"),
            text(view.database),
            text(view.name),
            text(*name),
            number(at + 1),
            default.map_or(Value::Null, text),
            text(if required { "NO" } else { "YES" }),
            text(data_type),
        ];
        row.extend(std::iter::repeat_n(Value::Null, 7));
        row.extend([text(full), text(key), text(""), text("select"), text(""), text(""), Value::Null]);
        rows.push(row);
    }
    rows
}

fn column_rows(state: &SqlContext) -> RowSource {
    let views = shown(state).into_iter().flat_map(columns_of_view);
    let of_views = created_views::seen(state, None).into_iter();
    let of_views: Rows = of_views.flat_map(|view| created_views::column_rows(state, &view)).collect();
    let rights = state.rights();
    let of_tables = tables(state)
        .flat_map(move |table| seen_columns(&rights, &table.database, &table.name, columns_of_table(&table)));
    Box::new(of_tables.chain(of_views).chain(views))
}

fn numeric(kind: &ColumnType) -> (Value<'static>, Value<'static>) {
    match kind {
        ColumnType::TinyInt { .. } => (number(3u64), number(0u64)),
        ColumnType::SmallInt { .. } => (number(5u64), number(0u64)),
        ColumnType::MediumInt { .. } => (number(7u64), number(0u64)),
        ColumnType::Int { .. } => (number(10u64), number(0u64)),
        ColumnType::BigInt { unsigned } => (number(if *unsigned { 20u64 } else { 19 }), number(0u64)),
        ColumnType::Decimal { precision, scale } => (number(*precision), number(*scale)),
        ColumnType::Bit { bits } => (number(*bits), Value::Null),
        ColumnType::Float => (number(12u64), Value::Null),
        ColumnType::Double => (number(22u64), Value::Null),
        _ => (Value::Null, Value::Null),
    }
}

/// Where a row of STATISTICS names the column.
pub const STATISTICS_COLUMN: usize = 7;

/// A table's rows of STATISTICS, which SHOW INDEX shows too.
pub fn statistics_of(table: &Table) -> Rows {
    let mut rows = Vec::new();
    let statistics = table.statistics();
    for key in &table.def.keys {
        let known = statistics.as_ref().and_then(|known| known.indexes.get(&key.id));
        for (at, part) in key.parts.iter().enumerate() {
            let distinct = known.and_then(|known| known.distinct.get(at)).copied();
            let column = &table.def.columns[usize::from(part.column)];
            let expression = column.generated.as_ref().filter(|_| column.hidden);
            rows.push(vec![
                text("def"),
                text(&*table.database),
                text(&*table.name),
                number(u64::from(key.kind == KeyKind::Secondary)),
                text(&*table.database),
                text(&*key.name),
                number(at + 1),
                if column.hidden { Value::Null } else { text(&*column.name) },
                text(if part.descending { "D" } else { "A" }),
                number(distinct.unwrap_or_else(|| table.row_count_estimate())),
                part.prefix_chars.map_or(Value::Null, number),
                Value::Null,
                text(if column.nullable { "YES" } else { "" }),
                text("BTREE"),
                text(""),
                text(&*key.comment),
                text(if key.invisible { "NO" } else { "YES" }),
                expression.map_or(Value::Null, |expression| escaped(expression)),
            ]);
        }
    }
    rows
}

/// Rows of which each names a column, there. Whose privileges are on columns only is shown none of others.
pub fn without_hidden(rights: &Rights, table: &Table, at: usize, mut rows: Rows) -> Rows {
    let (database, name) = (&*table.database, &*table.name);
    if !rights.on_table(database, name).has_any(seeing()) {
        rows.retain(|row| {
            let column = row[at].to_text();
            rights.on_column(database, name, &String::from_utf8_lossy(&column)).has_any(seeing())
        });
    }
    rows
}

fn statistics(state: &SqlContext) -> RowSource {
    let rights = state.rights();
    let rows =
        move |table: Arc<Table>| without_hidden(&rights, &table, STATISTICS_COLUMN, statistics_of(&table));
    Box::new(tables(state).flat_map(rows))
}

fn constraints(state: &SqlContext) -> RowSource {
    Box::new(tables(state).flat_map(|table| {
        let mut rows = Vec::new();
        for key in table.def.keys.iter().filter(|key| key.kind != KeyKind::Secondary) {
            let kind = if key.kind == KeyKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(vec![
                text("def"),
                text(&*table.database),
                text(&*key.name),
                text(&*table.database),
                text(&*table.name),
                text(kind),
                text("YES"),
            ]);
        }
        for key in &table.def.foreign_keys {
            rows.push(vec![
                text("def"),
                text(&*table.database),
                text(&*key.name),
                text(&*table.database),
                text(&*table.name),
                text("FOREIGN KEY"),
                text("YES"),
            ]);
        }
        for check in &table.def.checks {
            rows.push(vec![
                text("def"),
                text(&*table.database),
                text(&*check.name),
                text(&*table.database),
                text(&*table.name),
                text("CHECK"),
                text(if check.enforced { "YES" } else { "NO" }),
            ]);
        }
        rows
    }))
}

fn check_constraints(state: &SqlContext) -> RowSource {
    // What they say names columns.
    let rights = state.rights();
    let shown = move |table: &Arc<Table>| rights.on_table(&table.database, &table.name).has_any(seeing());
    Box::new(tables(state).filter(shown).flat_map(|table| {
        let row = |check: &Check| {
            vec![text("def"), text(&*table.database), text(&*check.name), escaped(&check.expression)]
        };
        table.def.checks.iter().map(row).collect::<Rows>()
    }))
}

fn key_usage(state: &SqlContext) -> RowSource {
    const COLUMN_NAME: usize = 6;
    let rights = state.rights();
    Box::new(tables(state).flat_map(move |table| {
        let mut rows = Vec::new();
        for key in table.def.keys.iter().filter(|key| key.kind != KeyKind::Secondary) {
            for (at, part) in key.parts.iter().enumerate() {
                let column = &table.def.columns[usize::from(part.column)];
                if column.hidden {
                    continue;
                }
                rows.push(vec![
                    text("def"),
                    text(&*table.database),
                    text(&*key.name),
                    text("def"),
                    text(&*table.database),
                    text(&*table.name),
                    text(&*column.name),
                    number(at + 1),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ]);
            }
        }
        rows.extend(foreign_keys::column_usage(&table));
        without_hidden(&rights, &table, COLUMN_NAME, rows)
    }))
}

fn referential_constraints(state: &SqlContext) -> RowSource {
    let database = state.database.clone();
    Box::new(tables(state).flat_map(move |table| foreign_keys::constraints(&table, &database)))
}

pub(super) static VIEWS: &[View] = &[
    view!("SCHEMATA", [
        "CATALOG_NAME" Text(64), "SCHEMA_NAME" Text(64), "DEFAULT_CHARACTER_SET_NAME" Text(64),
        "DEFAULT_COLLATION_NAME" Text(64), "SQL_PATH" Text(512), "DEFAULT_ENCRYPTION" Text(3),
    ], schemata),
    view!("TABLES", [
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "TABLE_TYPE" Text(64),
        "ENGINE" Text(64), "VERSION" Number, "ROW_FORMAT" Text(10), "TABLE_ROWS" Number, "AVG_ROW_LENGTH" Number,
        "DATA_LENGTH" Number, "MAX_DATA_LENGTH" Number, "INDEX_LENGTH" Number, "DATA_FREE" Number,
        "AUTO_INCREMENT" Number, "CREATE_TIME" Time, "UPDATE_TIME" Time, "CHECK_TIME" Time,
        "TABLE_COLLATION" Text(64), "CHECKSUM" Number, "CREATE_OPTIONS" Text(256), "TABLE_COMMENT" Text(2048),
    ], table_rows),
    view!("COLUMNS", [
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "COLUMN_NAME" Text(64),
        "ORDINAL_POSITION" Small, "COLUMN_DEFAULT" Text(65535), "IS_NULLABLE" Text(3), "DATA_TYPE" Text(64),
        "CHARACTER_MAXIMUM_LENGTH" Number, "CHARACTER_OCTET_LENGTH" Number, "NUMERIC_PRECISION" Small,
        "NUMERIC_SCALE" Small, "DATETIME_PRECISION" Small, "CHARACTER_SET_NAME" Text(64),
        "COLLATION_NAME" Text(64), "COLUMN_TYPE" Text(65535), "COLUMN_KEY" Text(3), "EXTRA" Text(256),
        "PRIVILEGES" Text(154), "COLUMN_COMMENT" Text(1024), "GENERATION_EXPRESSION" Text(65535), "SRS_ID" Small,
    ], column_rows),
    view!("STATISTICS", [
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "NON_UNIQUE" Number,
        "INDEX_SCHEMA" Text(64), "INDEX_NAME" Text(64), "SEQ_IN_INDEX" Small, "COLUMN_NAME" Text(64),
        "COLLATION" Text(1), "CARDINALITY" Number, "SUB_PART" Number, "PACKED" Text(10), "NULLABLE" Text(3),
        "INDEX_TYPE" Text(11), "COMMENT" Text(8), "INDEX_COMMENT" Text(2048), "IS_VISIBLE" Text(3),
        "EXPRESSION" Text(65535),
    ], statistics),
    view!("TABLE_CONSTRAINTS", [
        "CONSTRAINT_CATALOG" Text(64), "CONSTRAINT_SCHEMA" Text(64), "CONSTRAINT_NAME" Text(64),
        "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "CONSTRAINT_TYPE" Text(11), "ENFORCED" Text(3),
    ], constraints),
    view!("KEY_COLUMN_USAGE", [
        "CONSTRAINT_CATALOG" Text(64), "CONSTRAINT_SCHEMA" Text(64), "CONSTRAINT_NAME" Text(64),
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "COLUMN_NAME" Text(64),
        "ORDINAL_POSITION" Small, "POSITION_IN_UNIQUE_CONSTRAINT" Small, "REFERENCED_TABLE_SCHEMA" Text(64),
        "REFERENCED_TABLE_NAME" Text(64), "REFERENCED_COLUMN_NAME" Text(64),
    ], key_usage),
    view!("REFERENTIAL_CONSTRAINTS", [
        "CONSTRAINT_CATALOG" Text(64), "CONSTRAINT_SCHEMA" Text(64), "CONSTRAINT_NAME" Text(64),
        "UNIQUE_CONSTRAINT_CATALOG" Text(64), "UNIQUE_CONSTRAINT_SCHEMA" Text(64), "UNIQUE_CONSTRAINT_NAME" Text(64),
        "MATCH_OPTION" Text(64), "UPDATE_RULE" Text(64), "DELETE_RULE" Text(64), "TABLE_NAME" Text(64),
        "REFERENCED_TABLE_NAME" Text(64),
    ], referential_constraints),
    view!("CHECK_CONSTRAINTS", [
        "CONSTRAINT_CATALOG" Text(64), "CONSTRAINT_SCHEMA" Text(64), "CONSTRAINT_NAME" Text(64),
        "CHECK_CLAUSE" Text(65535),
    ], check_constraints),
    view!("VIEWS", [
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "VIEW_DEFINITION" Text(65535),
        "CHECK_OPTION" Text(8), "IS_UPDATABLE" Text(3), "DEFINER" Text(288), "SECURITY_TYPE" Text(7),
        "CHARACTER_SET_CLIENT" Text(64), "COLLATION_CONNECTION" Text(64),
    ], created_views::rows),
    view!("PARTITIONS", [
        "TABLE_CATALOG" Text(64), "TABLE_SCHEMA" Text(64), "TABLE_NAME" Text(64), "PARTITION_NAME" Text(64),
        "PARTITION_METHOD" Text(13), "PARTITION_EXPRESSION" Text(2048), "TABLESPACE_NAME" Text(268),
    ], nothing),
    view!("FILES", [
        "FILE_ID" Number, "FILE_NAME" Text(4000), "FILE_TYPE" Text(256), "TABLESPACE_NAME" Text(268),
        "TABLE_NAME" Text(64), "LOGFILE_GROUP_NAME" Text(256), "LOGFILE_GROUP_NUMBER" Number, "ENGINE" Text(64),
        "FREE_EXTENTS" Number, "TOTAL_EXTENTS" Number, "EXTENT_SIZE" Number, "INITIAL_SIZE" Number,
        "MAXIMUM_SIZE" Number, "AUTOEXTEND_SIZE" Number, "STATUS" Text(256), "EXTRA" Text(256),
    ], nothing),
    view!("COLUMN_STATISTICS", [
        "SCHEMA_NAME" Text(64), "TABLE_NAME" Text(64), "COLUMN_NAME" Text(64), "HISTOGRAM" Text(65535),
    ], nothing),
];
