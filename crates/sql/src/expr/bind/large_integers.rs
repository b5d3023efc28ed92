//! Constant integers beside texts.
//!
//! An integer and a text are compared as doubles, so integers beyond 2^53 equal their neighbours. Only a
//! column of integers beside a constant text is compared with all its digits (`value/compare.rs`).

use super::{Bound, collation};
use crate::ast::CastType;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::value::Value;

/// Integers up to this one are doubles without a loss: 2^53.
const EXACT_MAX: u64 = 1 << 53;

/// Two operands of a comparison.
pub(super) fn constants_as_doubles([left, right]: [Bound; 2]) -> [Bound; 2] {
    let texts = [collation::counts(left.1), collation::counts(right.1)];
    [beside_text(texts[1], left), beside_text(texts[0], right)]
}

/// A constant, which is a double if a text is beside it.
pub(super) fn beside_text(text: bool, (expr, ty): Bound) -> Bound {
    let double = Type { nullable: ty.nullable, ..Type::DOUBLE };
    match expr {
        Expr::Literal(Value::Int(number)) if text && number.unsigned_abs() > EXACT_MAX => {
            (Expr::Literal(Value::Double(number as f64)), double)
        }
        Expr::Literal(Value::UInt(number)) if text && number > EXACT_MAX => {
            (Expr::Literal(Value::Double(number as f64)), double)
        }
        Expr::Parameter(_) if text && ty.is_integer() => {
            (Expr::Cast(Box::new(expr), CastType::Double), double)
        }
        other => (other, ty),
    }
}
