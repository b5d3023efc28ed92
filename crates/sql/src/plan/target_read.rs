//! Errors 1093 and 1443: a subquery of a statement that reads a table the statement changes, as MySQL refuses
//! it. It may read what is computed before the first change: a derived table, a common table, a view that is
//! no part of the query around it, and the query of INSERT … SELECT. Beside what INSERT inserts it may read
//! the table by an alias, as MySQL lets it.

use std::sync::Arc;

use untorn::Table;

use super::source::{Source, SourceKind};
use super::{SelectPlan, Tables};
use crate::errors;
use crate::result::SqlError;

/// Refuses subqueries that read the table of `source`, which `operation` (UPDATE, DELETE, INSERT) changes.
///
/// # Errors
/// 1093; 1443 where a view stands for one of the two.
pub(super) fn refuse_reading_target(
    source: &Source,
    operation: &str,
    subqueries: &[SelectPlan],
) -> Result<(), SqlError> {
    let Some(target) = source.engine_table() else { return Ok(()) };
    let counts = |read: &Source| operation != "INSERT" || read.alias.eq_ignore_ascii_case(&read.table);
    if let Some(read) = subqueries.iter().find_map(|plan| reading(plan, target, &counts)) {
        return Err(refused(source, operation, read));
    }
    // One that is executed for each row would see in a derived table, too, what was changed before.
    let mut read = Tables::new();
    subqueries.iter().filter(|plan| plan.follows_rows()).for_each(|plan| plan.tables(&mut read));
    if read.iter().any(|table| Arc::ptr_eq(table, target)) {
        return Err(errors::error(errors::UPDATE_TABLE_USED, &[&source.alias]));
    }
    Ok(())
}

fn refused(source: &Source, operation: &str, read: &Source) -> SqlError {
    let same_view = source.is_of_view() && read.is_of_view() && read.table == source.table;
    let view = match (source.is_of_view(), read.is_of_view()) {
        _ if same_view => None,
        (_, true) => Some(read),
        (true, false) => Some(source),
        (false, false) => None,
    };
    match view {
        Some(view) => {
            let names: [&dyn std::fmt::Display; 3] = [&view.alias, &operation, &source.alias];
            errors::error(errors::VIEW_PREVENT_UPDATE, &names)
        }
        None => errors::error(errors::UPDATE_TABLE_USED, &[&source.alias]),
    }
}

/// What in a query, its subqueries and the other SELECTs of its UNION reads a table row by row, of those that
/// count.
fn reading<'p>(
    plan: &'p SelectPlan,
    target: &Arc<Table>,
    counts: &dyn Fn(&Source) -> bool,
) -> Option<&'p Source> {
    let of_sources = plan.sources.iter().find(|source| reads(source, target) && counts(source));
    let within = |plan: &'p SelectPlan| reading(plan, target, counts);
    of_sources
        .or_else(|| plan.windowed.as_deref().and_then(|windowed| within(&windowed.input)))
        .or_else(|| plan.subqueries.iter().find_map(within))
        .or_else(|| plan.unions.iter().find_map(|(_, plan)| within(plan)))
}

fn reads(source: &Source, target: &Arc<Table>) -> bool {
    match &source.kind {
        SourceKind::Table(table) => Arc::ptr_eq(&table.0, target),
        // A view whose rows are those of its tables becomes a part of the query.
        SourceKind::Derived(plan) if source.is_of_view() && plan.has_rows_of_sources() => {
            plan.sources.iter().any(|source| reads(source, target))
        }
        _ => false,
    }
}
