//! ENUM and SET columns in ORDER BY and in what follows an order.

use std::sync::Arc;

use untorn::types::ColumnType;

use super::Source;
use crate::expr::Expr;
use crate::value::Value;

/// ENUM and SET columns are sorted by their numbers, as an index on them does it.
pub(super) fn order_by_members(expr: &mut Expr, sources: &[Source]) {
    if let Expr::RolledUp { value, .. } = expr {
        return order_by_members(value, sources);
    }
    let Expr::Column { source, column } = *expr else { return };
    let table = sources.get(usize::from(source)).and_then(Source::engine_table);
    let Some(column) = table.and_then(|table| table.def.columns.get(usize::from(column))) else { return };
    if matches!(column.kind, ColumnType::Enum { .. } | ColumnType::Set { .. }) {
        let members = Arc::new(column.kind.clone());
        let name = std::mem::replace(expr, Expr::Literal(Value::Null));
        *expr = Expr::MemberNumber(Box::new(name), members);
    }
}
