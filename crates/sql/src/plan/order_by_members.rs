//! ENUM and SET columns in ORDER BY and in what follows an order.

use std::sync::Arc;

use super::Source;
use crate::expr::Expr;
use crate::value::Value;

/// ENUM and SET columns are sorted by their numbers, as an index on them does it.
pub(super) fn order_by_members(expr: &mut Expr, sources: &[Source]) {
    if let Expr::RolledUp { value, .. } = expr {
        return order_by_members(value, sources);
    }
    let Expr::Column { source, column } = *expr else { return };
    if let Some(kind) = sources.get(usize::from(source)).and_then(|source| source.members(column)) {
        let members = Arc::new(kind.clone());
        let name = std::mem::replace(expr, Expr::Literal(Value::Null));
        *expr = Expr::MemberNumber(Box::new(name), members);
    }
}
