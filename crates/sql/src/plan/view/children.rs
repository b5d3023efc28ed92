//! What stands directly in an expression of the tree.

use crate::ast::{Expr, InsteadOfValue};
use crate::result::SqlError;

type Change<'c> = &'c mut dyn FnMut(&mut Expr) -> Result<(), SqlError>;

/// Changes each of them; subqueries, windows and the order of an aggregate are left to the caller.
pub(super) fn each_child(expr: &mut Expr, change: Change<'_>) -> Result<(), SqlError> {
    let each = |list: &mut [Expr], change: Change<'_>| list.iter_mut().try_for_each(change);
    match expr {
        Expr::Null
        | Expr::Integer(_)
        | Expr::Decimal(_)
        | Expr::Truth(_)
        | Expr::Float(_)
        | Expr::Text { .. }
        | Expr::Binary(_)
        | Expr::Temporal { .. }
        | Expr::Column { .. }
        | Expr::Parameter(_)
        | Expr::UserVariable(_)
        | Expr::SystemVariable { .. }
        | Expr::InsertedValue(_)
        | Expr::Default(None)
        | Expr::Subquery(_)
        | Expr::Exists(_) => Ok(()),
        Expr::Assign(_, operand)
        | Expr::Default(Some(operand))
        | Expr::Unary(_, operand)
        | Expr::IsNull { operand, .. }
        | Expr::IsTruth { operand, .. }
        | Expr::InConstants { operand, .. }
        | Expr::InQuery { operand, .. }
        | Expr::Quantified { operand, .. }
        | Expr::Window { call: operand, .. }
        | Expr::Cast { operand, .. }
        | Expr::ConvertCharset { operand, .. }
        | Expr::Collate { operand, .. }
        | Expr::Interval { amount: operand, .. }
        | Expr::Extract { operand, .. } => change(operand),
        Expr::JsonValue(value) => {
            change(&mut value.document)?;
            change(&mut value.path)?;
            for instead in [&mut value.on_empty, &mut value.on_error] {
                if let InsteadOfValue::Default(default) = instead {
                    change(default)?;
                }
            }
            Ok(())
        }
        Expr::And(list) | Expr::Or(list) | Expr::Row(list) | Expr::Function { arguments: list, .. } => {
            each(list, change)
        }
        Expr::Binary2(_, left, right) | Expr::Regexp { operand: left, pattern: right, .. } => {
            change(left)?;
            change(right)
        }
        Expr::Chain(first, links) => {
            change(first)?;
            links.iter_mut().try_for_each(|(_, operand)| change(operand))
        }
        Expr::Between { operand, low, high, .. } => {
            [operand, low, high].into_iter().try_for_each(|part| change(part))
        }
        Expr::InList { operand, list, .. } => {
            change(operand)?;
            each(list, change)
        }
        Expr::Like { operand, pattern, escape, .. } => {
            change(operand)?;
            change(pattern)?;
            escape.iter_mut().try_for_each(|escape| change(escape))
        }
        Expr::Case { operand, whens, otherwise } => {
            operand.iter_mut().try_for_each(|operand| change(operand))?;
            for (when, then) in whens {
                change(when)?;
                change(then)?;
            }
            otherwise.iter_mut().try_for_each(|otherwise| change(otherwise))
        }
        Expr::Trim { what, operand, .. } => {
            what.iter_mut().try_for_each(|what| change(what))?;
            change(operand)
        }
    }
}
