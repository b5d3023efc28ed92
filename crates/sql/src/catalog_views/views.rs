//! Views of the catalog (`CREATE VIEW`): VIEWS, their rows of TABLES and COLUMNS, and the statement that
//! makes one.
//!
//! What columns a view has and whether it can be used at all follows from the tables below as they are now:
//! each is planned when it is asked for, once it is known that the client may see it.

use untorn::view::{CheckOption, ViewAlgorithm, ViewDef, ViewSecurity};

use super::table_tables::{columns_named, created, seen_columns};
use super::{RowSource, text};
use crate::ast::{Query, Statement, quoted_name};
use crate::context::SqlContext;
use crate::exec::Rows;
use crate::lexer::LexicalModes;
use crate::parser;
use crate::plan::Planner;
use crate::plan::view::UsedView;
use crate::privilege::Privileges;
use crate::value::Value;

/// The views of a database that a client may see, or of all databases.
pub fn seen(state: &SqlContext, database: Option<&str>) -> Vec<UsedView> {
    let databases = match database {
        Some(database) => vec![database.to_owned()],
        None => state.database.databases(),
    };
    let of = |database: String| {
        let views = state.database.views(&database).into_iter();
        views.map(move |(name, def)| UsedView { database: database.clone(), name, def })
    };
    let views = databases.into_iter().flat_map(of);
    views.filter(|view| state.sees_table(&view.database, &view.name)).collect()
}

fn query_of(def: &ViewDef) -> Option<Box<Query>> {
    match parser::parse(def.query.as_bytes(), LexicalModes::of_kept()).ok()?.statement {
        Statement::Select(query) => Some(query),
        _ => None,
    }
}

/// The statement that makes a view, as a session with this current database is shown it.
pub fn create_statement(view: &UsedView, current: Option<&str>) -> String {
    let UsedView { database, name, def } = view;
    let algorithm = match def.algorithm {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TempTable => "TEMPTABLE",
    };
    let shown = match current == Some(database.as_str()) {
        true => quoted_name(name),
        false => format!("{}.{}", quoted_name(database), quoted_name(name)),
    };
    let columns: Vec<String> = def.columns.iter().map(|name| quoted_name(name)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(",")) };
    let query = current.and_then(|here| query_of(def)?.to_text(Some(here)).ok());
    let query = query.unwrap_or_else(|| def.query.clone());
    let check = match def.check_option {
        CheckOption::None => "",
        CheckOption::Local => " WITH LOCAL CHECK OPTION",
        CheckOption::Cascaded => " WITH CASCADED CHECK OPTION",
    };
    let (user, host) = &def.definer;
    format!(
        "CREATE ALGORITHM={algorithm} DEFINER={}@{} SQL SECURITY {} VIEW {shown}{columns} AS {query}{check}",
        quoted_name(user),
        quoted_name(host),
        security(def),
    )
}

fn security(def: &ViewDef) -> &'static str {
    match def.security {
        ViewSecurity::Definer => "DEFINER",
        ViewSecurity::Invoker => "INVOKER",
    }
}

/// Rows of VIEWS. The text is for those who may see it.
pub(super) fn rows(state: &SqlContext) -> RowSource {
    let rights = state.rights();
    let row = |view: UsedView| {
        let updatable = Planner::new(state).is_view_updatable(&view);
        let UsedView { database, name, def } = &view;
        let open = rights.on_table(database, name).has(Privileges::SHOW_VIEW);
        vec![
            text("def"),
            text(&**database),
            text(&**name),
            text(if open { def.query.as_str() } else { "" }),
            text(match def.check_option {
                CheckOption::None => "NONE",
                CheckOption::Local => "LOCAL",
                CheckOption::Cascaded => "CASCADED",
            }),
            text(if updatable { "YES" } else { "NO" }),
            text(format!("{}@{}", def.definer.0, def.definer.1)),
            text(security(def)),
            text(&*def.client_charset),
            text(def.collation.name()),
        ]
    };
    let rows: Vec<_> = seen(state, None).into_iter().map(row).collect();
    Box::new(rows.into_iter())
}

/// A view's row of TABLES: what it has of a table is nothing but its name.
pub fn table_row(state: &SqlContext, view: &UsedView) -> Vec<Value<'static>> {
    let wrong = Planner::new(state).view_columns(view).err();
    let mut row = vec![text("def"), text(&*view.database), text(&*view.name), text("VIEW")];
    row.extend(std::iter::repeat_n(Value::Null, 10));
    row.push(created(view.def.created_unix_s, state.time_zone_offset()));
    row.extend(std::iter::repeat_n(Value::Null, 5));
    row.push(text(wrong.map_or("VIEW".to_owned(), |error| error.message.to_string())));
    row
}

/// A view's rows of COLUMNS; none if it cannot be used.
pub fn column_rows(state: &SqlContext, view: &UsedView) -> Rows {
    let columns = Planner::new(state).view_columns(view).unwrap_or_default();
    let rows = columns_named(&view.database, &view.name, &columns, None);
    seen_columns(&state.rights(), &view.database, &view.name, rows)
}
