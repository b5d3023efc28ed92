//! `INSERT … SELECT … ON DUPLICATE KEY UPDATE` whose assignments read columns of the query's tables.
//!
//! A row that is in the way is changed when the query has been read whole. So the columns that the
//! assignments read are selected too, behind the items that are inserted, under names that nothing in the
//! query can have. Only a query without set operations and groups shows its tables to the assignments. One
//! with DISTINCT is refused: what is selected too would make rows different that are not.

use super::change::Assigned;
use super::source::Source;
use super::{Planner, SelectPlan};
use crate::ast;
use crate::errors;
use crate::expr::Expr;
use crate::result::SqlError;
use crate::value::Value;

/// What the assignments read of the query's rows. They are bound to the table first, and to the query's
/// sources behind it.
#[derive(Debug, Default)]
pub struct SelectedToo {
    /// Columns of each source of the query.
    widths: Vec<usize>,
    /// Source of the query, and its column: one for each item behind those that are inserted.
    columns: Vec<(usize, usize)>,
    /// The items that are inserted.
    inserted: usize,
}

impl SelectedToo {
    /// The rows of the query's sources, as far as they are read, from what was selected.
    pub fn rows(&self, selected: &[Value<'_>]) -> Vec<Vec<Value<'static>>> {
        let mut rows: Vec<Vec<Value<'static>>> = match self.columns.is_empty() {
            true => Vec::new(),
            false => self.widths.iter().map(|width| vec![Value::Null; *width]).collect(),
        };
        for ((source, column), value) in self.columns.iter().zip(selected.iter().skip(self.inserted)) {
            rows[*source][*column] = value.borrowed().into_owned();
        }
        rows
    }
}

/// Takes the sources that the assignments may read from the plan of the query.
pub(super) fn readable(query: &mut SelectPlan) -> Vec<Source> {
    match query.unions.is_empty() && query.grouping.is_none() {
        true => std::mem::take(&mut query.sources),
        false => Vec::new(),
    }
}

impl Planner<'_> {
    /// Gives the plan its sources back when the assignments read none of them. Else the query is planned once
    /// more, with what they read.
    pub(super) fn select_too(
        &self,
        query: &ast::Query,
        plan: &mut SelectPlan,
        readable: Vec<Source>,
        assignments: &[(u16, Assigned)],
    ) -> Result<SelectedToo, SqlError> {
        let mut columns: Vec<(usize, usize)> = Vec::new();
        for (_, assigned) in assignments {
            let Assigned::Value(assigned) = assigned else { continue };
            assigned.visit(&mut |part| {
                if let Expr::Column { source, column } = part
                    && let Some(source) = usize::from(*source).checked_sub(1)
                    && !columns.contains(&(source, usize::from(*column)))
                {
                    columns.push((source, usize::from(*column)));
                }
                self.walk()
            });
        }
        self.outcome()?;
        if columns.is_empty() {
            if !readable.is_empty() {
                plan.sources = readable;
            }
            return Ok(SelectedToo::default());
        }
        let inserted = plan.items.len();
        let mut query = query.clone();
        let Some((_, select)) = query.selects.first_mut() else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a query without a SELECT"]));
        };
        if select.distinct {
            return Err(errors::unsupported("columns of a SELECT DISTINCT in ON DUPLICATE KEY UPDATE"));
        }
        for (number, (source, column)) in columns.iter().enumerate() {
            select.items.push(item(&readable[*source], *column, number)?);
        }
        *plan = self.select(&query)?;
        let widths = readable.iter().map(|source| source.columns.len()).collect();
        Ok(SelectedToo { widths, columns, inserted })
    }
}

/// A column as an item of the select list, under a name of its own.
fn item(source: &Source, column: usize, number: usize) -> Result<ast::SelectItem, SqlError> {
    let shown = source.mask.as_ref().map(|mask| {
        let named = mask.shown.iter().find(|(_, number)| usize::from(*number) == column);
        named.map(|(name, _)| name.clone())
    });
    let own = || source.columns.get(column).map(|column| column.name.clone());
    let hidden = || errors::unsupported("a computed column of a view in ON DUPLICATE KEY UPDATE");
    let name = shown.unwrap_or_else(own).ok_or_else(hidden)?;
    let database = (!source.database.is_empty()).then(|| source.database.clone());
    let expr = ast::Expr::Column { database, table: Some(source.alias.clone()), name: name.clone() };
    Ok(ast::SelectItem::Expr { expr, alias: Some(format!("\0{number}")), text: name })
}
