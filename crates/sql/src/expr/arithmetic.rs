//! Arithmetic and bit operators with MySQL's result kinds: integers stay 64 bits wide (error 1690 beyond),
//! an exact operand makes the result exact, anything else makes it a double; `/` of integers is exact;
//! division by zero is NULL, and by the SQL mode a warning or an error.

use bigdecimal::BigDecimal;
use std::borrow::Cow;

use super::super::ast::BinaryOperator;
use super::super::value::{Value, collation, decimal};
use super::Evaluated;
use super::strict;
use crate::context::SqlContext;
use crate::errors;
use crate::result::SqlError;
use crate::sql_mode;

/// NULL, with ERROR_FOR_DIVISION_BY_ZERO a warning, and in a statement that changes tables in strict mode
/// error 1365, wherever in it the division stands.
fn division_by_zero<'a>(state: &SqlContext) -> Result<Value<'a>, SqlError> {
    if state.settings().sql_mode & sql_mode::ERROR_FOR_DIVISION_BY_ZERO != 0 {
        let error = errors::error(errors::DIVISION_BY_ZERO, &[]);
        if state.changes_strictly.get() {
            return Err(error);
        }
        state.warn(error);
    }
    Ok(Value::Null)
}

/// What an operand counts as.
enum Operand {
    Signed(i64),
    Unsigned(u64),
    Exact(BigDecimal),
    Double,
}

fn operand(value: &Value<'_>) -> Operand {
    match value {
        Value::Int(v) => Operand::Signed(*v),
        Value::UInt(v) => Operand::Unsigned(*v),
        Value::Decimal(v) => Operand::Exact(v.clone()),
        Value::Date(_) => Operand::Signed(value.to_i64()),
        Value::DateTime(_, 0) | Value::Time(_, 0) => Operand::Signed(value.to_i64()),
        Value::DateTime(..) | Value::Time(..) => Operand::Exact(value.to_decimal()),
        _ => Operand::Double,
    }
}

fn out_of_range(kind: &str, left: &Value<'_>, sign: &str, right: &Value<'_>) -> SqlError {
    let text = format!("({} {sign} {})", left.to_string_lossy(), right.to_string_lossy());
    errors::error(errors::DATA_OUT_OF_RANGE, &[&kind, &text])
}

fn double(value: f64, left: &Value<'_>, sign: &str, right: &Value<'_>) -> Evaluated<'static> {
    if value.is_finite() { Ok(Value::Double(value)) } else { Err(out_of_range("DOUBLE", left, sign, right)) }
}

/// Puts a wide integer back into 64 bits; unsigned when an operand was.
fn integer(
    value: Option<i128>,
    unsigned: bool,
    left: &Value<'_>,
    sign: &str,
    right: &Value<'_>,
) -> Evaluated<'static> {
    let kind = if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" };
    let fitted = value.and_then(|value| match unsigned {
        true => u64::try_from(value).ok().map(Value::UInt),
        false => i64::try_from(value).ok().map(Value::Int),
    });
    fitted.ok_or_else(|| out_of_range(kind, left, sign, right))
}

/// `left operator right`.
pub fn binary<'a>(
    operator: BinaryOperator,
    left: Value<'a>,
    right: Value<'a>,
    state: &SqlContext,
) -> Evaluated<'a> {
    use BinaryOperator::*;
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    match operator {
        Add | Subtract | Multiply => exact_or_double(operator, &left, &right, state),
        Divide => divide(&left, &right, state),
        IntegerDivide => integer_divide(&left, &right, state),
        Modulo => modulo(&left, &right, state),
        BitOr | BitAnd | BitXor | ShiftLeft | ShiftRight => {
            strict::check_number(&left, "INTEGER", state)?;
            strict::check_number(&right, "INTEGER", state)?;
            Ok(Value::UInt(bits(operator, &left, &right)))
        }
        Concat => {
            let rule = collation::common(left.collation(), right.collation());
            // A chain goes on in the text it has made so far.
            let mut text = match left {
                Value::Text(text, _) => text.into_owned(),
                other => other.to_text().into_owned(),
            };
            text.extend_from_slice(&right.to_text());
            Ok(Value::Text(Cow::Owned(text), rule))
        }
        _ => Err(errors::error(errors::UNKNOWN_ERROR, &[&"not an arithmetic operator"])),
    }
}

fn bits(operator: BinaryOperator, left: &Value<'_>, right: &Value<'_>) -> u64 {
    let (left, right) = (left.to_bits(), right.to_bits());
    match operator {
        BinaryOperator::BitOr => left | right,
        BinaryOperator::BitAnd => left & right,
        BinaryOperator::BitXor => left ^ right,
        BinaryOperator::ShiftLeft => shift(right, |by| left.checked_shl(by)),
        _ => shift(right, |by| left.checked_shr(by)),
    }
}

fn shift(by: u64, apply: impl Fn(u32) -> Option<u64>) -> u64 {
    u32::try_from(by).ok().and_then(apply).unwrap_or(0)
}

fn exact_or_double(
    operator: BinaryOperator,
    left: &Value<'_>,
    right: &Value<'_>,
    state: &SqlContext,
) -> Evaluated<'static> {
    use BinaryOperator::{Add, Subtract};
    use Operand::{Double, Exact, Signed, Unsigned};
    let sign = match operator {
        Add => "+",
        Subtract => "-",
        _ => "*",
    };
    let wide = |a: i128, b: i128| match operator {
        Add => a.checked_add(b),
        Subtract => a.checked_sub(b),
        _ => a.checked_mul(b),
    };
    let decimals = |a: BigDecimal, b: BigDecimal| match operator {
        Add => a + b,
        Subtract => a - b,
        _ => decimal::multiply(&a, &b),
    };
    // NO_UNSIGNED_SUBTRACTION: a difference has a sign, whatever its operands.
    let keeps = || operator != Subtract || state.settings().sql_mode & sql_mode::NO_UNSIGNED_SUBTRACTION == 0;
    match (operand(left), operand(right)) {
        (Signed(a), Signed(b)) => integer(wide(a.into(), b.into()), false, left, sign, right),
        (Signed(a), Unsigned(b)) => integer(wide(a.into(), b.into()), keeps(), left, sign, right),
        (Unsigned(a), Signed(b)) => integer(wide(a.into(), b.into()), keeps(), left, sign, right),
        (Unsigned(a), Unsigned(b)) => integer(wide(a.into(), b.into()), keeps(), left, sign, right),
        (Double, _) | (_, Double) => {
            strict::check_number(left, "DOUBLE", state)?;
            strict::check_number(right, "DOUBLE", state)?;
            let (a, b) = (left.to_double(), right.to_double());
            let value = match operator {
                Add => a + b,
                Subtract => a - b,
                _ => a * b,
            };
            double(value, left, sign, right)
        }
        (a, b) => {
            let exact = |operand, value: &Value<'_>| match operand {
                Exact(v) => v,
                _ => value.to_decimal(),
            };
            let result = decimals(exact(a, left), exact(b, right));
            if !decimal::fits(&result) {
                return Err(out_of_range("DECIMAL", left, sign, right));
            }
            Ok(Value::Decimal(result))
        }
    }
}

fn divide(left: &Value<'_>, right: &Value<'_>, state: &SqlContext) -> Evaluated<'static> {
    if matches!(operand(left), Operand::Double) || matches!(operand(right), Operand::Double) {
        strict::check_number(left, "DOUBLE", state)?;
        strict::check_number(right, "DOUBLE", state)?;
        let divisor = right.to_double();
        if divisor == 0.0 {
            return division_by_zero(state);
        }
        return double(left.to_double() / divisor, left, "/", right);
    }
    let digits = i64::from(state.settings().div_precision_increment);
    match decimal::divide(&left.to_decimal(), &right.to_decimal(), digits) {
        Some(quotient) => Ok(Value::Decimal(quotient)),
        None => division_by_zero(state),
    }
}

fn integer_divide(left: &Value<'_>, right: &Value<'_>, state: &SqlContext) -> Evaluated<'static> {
    use Operand::{Signed, Unsigned};
    let (a, b) = (operand(left), operand(right));
    let unsigned = matches!(a, Unsigned(_)) || matches!(b, Unsigned(_));
    let quotient = match (&a, &b) {
        (Signed(_) | Unsigned(_), Signed(_) | Unsigned(_)) => {
            left.to_integer().checked_div(right.to_integer())
        }
        _ => {
            strict::check_exact(left, state)?;
            strict::check_exact(right, state)?;
            let quotient = decimal::divide_whole(&left.to_decimal(), &right.to_decimal());
            quotient.map(|quotient| decimal::to_integer(&quotient))
        }
    };
    match quotient {
        None => division_by_zero(state),
        quotient => integer(quotient, unsigned, left, "DIV", right),
    }
}

fn modulo(left: &Value<'_>, right: &Value<'_>, state: &SqlContext) -> Evaluated<'static> {
    use Operand::{Double, Signed, Unsigned};
    match (operand(left), operand(right)) {
        (a @ (Signed(_) | Unsigned(_)), Signed(_) | Unsigned(_)) => {
            match left.to_integer().checked_rem(right.to_integer()) {
                Some(rest) => integer(Some(rest), matches!(a, Unsigned(_)), left, "%", right),
                None => division_by_zero(state),
            }
        }
        (Double, _) | (_, Double) => {
            strict::check_number(left, "DOUBLE", state)?;
            strict::check_number(right, "DOUBLE", state)?;
            let divisor = right.to_double();
            if divisor == 0.0 {
                division_by_zero(state)
            } else {
                Ok(Value::Double(left.to_double() % divisor))
            }
        }
        _ => match decimal::modulo(&left.to_decimal(), &right.to_decimal()) {
            Some(rest) => Ok(Value::Decimal(rest)),
            None => division_by_zero(state),
        },
    }
}

/// Minus sign.
pub fn negate(value: Value<'_>) -> Evaluated<'_> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Int(v) => match v.checked_neg() {
            Some(negated) => Value::Int(negated),
            None => return Err(out_of_range("BIGINT", &Value::Int(0), "-", &Value::Int(v))),
        },
        Value::UInt(v) => match i64::try_from(-i128::from(v)) {
            Ok(negated) => Value::Int(negated),
            Err(_) => return Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"BIGINT", &format!("-({v})")])),
        },
        Value::Decimal(v) => Value::Decimal(-v),
        other => Value::Double(-other.to_double()),
    })
}
