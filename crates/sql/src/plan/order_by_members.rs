//! ENUM and SET columns in ORDER BY and in what follows an order.

use std::sync::Arc;

use untorn::types::ColumnType;

use super::Source;
use super::aggregate::Aggregate;
use crate::expr::Expr;
use crate::value::Value;

/// ENUM and SET columns, and MIN and MAX of them, are sorted by their numbers, as an index on them does it.
pub(super) fn order_by_members(expr: &mut Expr, sources: &[Source], aggregates: &[Aggregate]) {
    let kind = match expr {
        Expr::RolledUp { value, .. } => return order_by_members(value, sources, aggregates),
        Expr::Column { source, column } => {
            sources.get(usize::from(*source)).and_then(|source| source.members_of_order(*column))
        }
        Expr::Aggregate(at) => {
            aggregates.get(usize::from(*at)).and_then(|aggregate| aggregate.members(sources))
        }
        _ => None,
    };
    count(expr, kind);
}

/// A column of members where a number is wanted.
pub(super) fn read_members(expr: &mut Expr, sources: &[Source]) {
    if let Expr::Column { source, column } = expr {
        let kind = sources.get(usize::from(*source)).and_then(|source| source.members(*column));
        count(expr, kind);
    }
}

fn count(expr: &mut Expr, kind: Option<&ColumnType>) {
    if let Some(kind) = kind {
        let members = Arc::new(kind.clone());
        let name = std::mem::replace(expr, Expr::Literal(Value::Null));
        *expr = Expr::MemberNumber(Box::new(name), members);
    }
}
