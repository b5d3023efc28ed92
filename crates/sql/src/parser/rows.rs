//! Rows within rows: `(1, (2, 3)) = (1, (2, 3))` compares three values with three.
//!
//! Rows of the same shape are compared value by value from the left, however deep each stands. So the parser
//! makes one row of each side, where their shapes are the same. Others stay as they are and are refused where
//! names are bound (1241).

use crate::ast::Expr;

/// Both sides of a comparison as rows of single values, if they are rows within rows of one shape.
pub(super) fn flattened(left: &mut Expr, right: &mut Expr) {
    if nests(left) && same_shape(left, right) {
        flatten(left);
        flatten(right);
    }
}

/// An operand of IN and the rows that it is compared with.
pub(super) fn flattened_list(operand: &mut Expr, list: &mut [Expr]) {
    if nests(operand) && list.iter().all(|row| same_shape(operand, row)) {
        flatten(operand);
        list.iter_mut().for_each(flatten);
    }
}

fn nests(expr: &Expr) -> bool {
    matches!(expr, Expr::Row(values) if values.iter().any(|value| matches!(value, Expr::Row(_))))
}

fn same_shape(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Row(ones), Expr::Row(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| same_shape(one, other))
        }
        (Expr::Row(_), _) | (_, Expr::Row(_)) => false,
        _ => true,
    }
}

fn flatten(row: &mut Expr) {
    let mut values = Vec::new();
    take(std::mem::replace(row, Expr::Null), &mut values);
    *row = Expr::Row(values);
}

fn take(expr: Expr, into: &mut Vec<Expr>) {
    match expr {
        Expr::Row(values) => values.into_iter().for_each(|value| take(value, into)),
        value => into.push(value),
    }
}
