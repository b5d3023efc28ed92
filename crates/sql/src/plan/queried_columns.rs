//! ON DUPLICATE KEY UPDATE of INSERT … SELECT: columns of the SELECT in the assignments.
//!
//! They need not be selected. So the query is planned with each of them as one more entry behind its own, and
//! the executor has their values behind those of the row that was to be inserted
//! ([`Expr::Inserted`](crate::expr::Expr::Inserted)). As in MySQL only a query without groups, DISTINCT and
//! UNION has such columns; behind another one they are unknown (1054).

use super::Planner;
use super::source::Source;
use super::view::children::each_child;
use crate::ast;
use crate::expr::NODE_BYTES;
use crate::expr::types::Type;
use crate::result::SqlError;

/// A column of the SELECT, as the assignments name it.
#[derive(Clone, Debug)]
pub struct QueriedColumn {
    written: ast::Expr,
    /// Its place among the values of the row that was to be inserted.
    pub number: u16,
    /// Its type, once the query is planned.
    pub ty: Type,
}

impl QueriedColumn {
    /// Whether the same is written there.
    pub fn is(&self, database: Option<&str>, table: Option<&str>, name: &str) -> bool {
        let ast::Expr::Column { database: of, table: own, name: called } = &self.written else { return false };
        let same = |one: Option<&str>, other: Option<&str>| match (one, other) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        };
        same(of.as_deref(), database) && same(own.as_deref(), table) && called.eq_ignore_ascii_case(name)
    }
}

impl Planner<'_> {
    /// The columns in the assignments that are none of the table's, if the query may have them.
    pub(super) fn queried_columns(
        &self,
        source: &Source,
        insert: &ast::Insert,
    ) -> Result<Vec<QueriedColumn>, SqlError> {
        let mut found = Vec::new();
        let ast::InsertSource::Query(query) = &insert.source else { return Ok(found) };
        let [(_, select)] = &query.selects[..] else { return Ok(found) };
        if select.distinct || select.is_values || !select.group_by.is_empty() {
            return Ok(found);
        }
        for (_, value) in &insert.on_duplicate {
            self.note_queried(source, &mut value.clone(), &mut found)?;
        }
        Ok(found)
    }

    fn note_queried(
        &self,
        source: &Source,
        value: &mut ast::Expr,
        found: &mut Vec<QueriedColumn>,
    ) -> Result<(), SqlError> {
        self.work(NODE_BYTES)?;
        let ast::Expr::Column { database, table, name } = value else {
            return each_child(value, &mut |child| self.note_queried(source, child, found));
        };
        let (database, table) = (database.as_deref(), table.as_deref());
        let own = source.answers_to(database, table) && source.column_number(name).is_some();
        if own || found.iter().any(|column| column.is(database, table, name)) {
            return Ok(());
        }
        let number = u16::try_from(source.columns.len() + found.len()).unwrap_or(u16::MAX);
        found.push(QueriedColumn { written: value.clone(), number, ty: Type::NULL });
        Ok(())
    }
}

/// The query with these columns behind its own, under names that nobody can say.
pub(super) fn with_columns(query: &ast::Query, columns: &[QueriedColumn]) -> ast::Query {
    let mut query = query.clone();
    let hidden = columns.iter().map(|column| ast::SelectItem::Expr {
        expr: column.written.clone(),
        alias: Some(format!("\u{1}{}", column.number)),
        text: String::new(),
    });
    query.selects.iter_mut().take(1).for_each(|(_, select)| select.items.extend(hidden.clone()));
    query
}
