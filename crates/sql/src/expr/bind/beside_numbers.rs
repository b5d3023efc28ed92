//! Days, moments and spans beside numbers: which of both is read as the other.
//!
//! A number that is the same for the whole statement is read as what a column has: beside a DATE as a day,
//! whatever clock its digits add (only the parameter of a prepared statement keeps it). Any other number,
//! that of a user variable too, makes a number of the column. Nevertheless the digits of an integer limit
//! the keys of an index (`plan/range_analysis.rs`).

use super::Bound;
use super::coercion::{is_number, is_one_for_all};
use crate::ast::CastType;
use crate::expr::types::{Type, cast_type};
use crate::expr::{Expr, functions};
use crate::result::kind;
use crate::value::Value;
use crate::value::temporal::{self, Today};

/// Two operands of a comparison of which one may be a number. `lifted`: parameters are literals.
pub(super) fn beside_numbers(lifted: bool, left: Bound, right: Bound) -> (Bound, Bound) {
    let (left, right) = (beside_day(lifted, &right, left), right);
    let (left, right) = (beside_number(&right, left), right);
    let right = beside_day(lifted, &left, right);
    let right = beside_number(&left, right);
    (left, right)
}

/// A day, moment or span beside a number is a number, too. Only a constant beside a column is read as what
/// the column has.
fn beside_number(number: &Bound, (expr, ty): Bound) -> Bound {
    let is_column = expr.is_column();
    let is_read = match ty.kind {
        kind::DATE | kind::TIME => is_column,
        // What has more digits than a second is rounded beside what a function makes.
        kind::DATETIME | kind::TIMESTAMP => {
            is_column || number.1.decimals > 6 && !matches!(expr, Expr::Literal(_))
        }
        _ => return (expr, ty),
    };
    if !is_number(number.1) || is_read && is_one_for_all(number) {
        return (expr, ty);
    }
    if is_column && ty.is_moment() && number.1.is_integer() {
        return as_digits((expr, ty));
    }
    let exact =
        CastType::Decimal { precision: 30, scale: if ty.kind == kind::DATE { 0 } else { ty.decimals } };
    let to = Type { nullable: ty.nullable, ..cast_type(&exact) };
    (Expr::Cast(Box::new(expr), exact), to)
}

/// A column of days or moments as the numbers of their digits.
fn as_digits((expr, ty): Bound) -> Bound {
    let scale = if ty.kind == kind::DATE { 0 } else { ty.decimals };
    let to = Type { nullable: ty.nullable, ..cast_type(&CastType::Decimal { precision: 30, scale }) };
    (Expr::Call(&functions::MOMENT_DIGITS, vec![expr]), to)
}

fn is_column_of_days((expr, ty): &Bound) -> bool {
    ty.kind == kind::DATE && expr.is_column()
}

/// A constant number beside a column of days is a day, if its digits say one and a clock behind it. That of a
/// parameter keeps its clock.
fn beside_day(lifted: bool, days: &Bound, number: Bound) -> Bound {
    if is_one_for_all(&number) { among_days(lifted, days, number) } else { number }
}

/// A number in the list of IN beside a column of days, likewise; that of a variable, too.
pub(super) fn among_days(lifted: bool, days: &Bound, (expr, ty): Bound) -> Bound {
    if !is_column_of_days(days) || !is_number(ty) {
        return (expr, ty);
    }
    match expr {
        Expr::Parameter(_) if !lifted => (expr, ty),
        Expr::Literal(number) => match number.to_datetime(Today::default()) {
            Some((moment, _)) if temporal::has_clock(moment) => {
                (Expr::Literal(Value::Date(moment.date)), Type { nullable: ty.nullable, ..Type::DATE })
            }
            _ => (Expr::Literal(number), ty),
        },
        other => (Expr::Call(&functions::DAY_OF_NUMBER, vec![other]), ty),
    }
}

/// The operands of BETWEEN: a column of days or moments and two numbers.
pub(super) fn between_numbers(lifted: bool, mut operands: Vec<Bound>) -> Vec<Bound> {
    let [(first, ty), low, high] = &operands[..] else { return operands };
    let ty = *ty;
    if !first.is_column() || !ty.is_moment() || !is_number(low.1) || !is_number(high.1) {
        return operands;
    }
    let integers = low.1.is_integer() && high.1.is_integer();
    let first = operands.remove(0);
    let first = match operands.iter().any(is_one_for_all) {
        true => {
            operands = operands.into_iter().map(|limit| beside_day(lifted, &first, limit)).collect();
            first
        }
        // Two of variables are compared as numbers.
        false if integers => as_digits(first),
        false => first,
    };
    operands.insert(0, first);
    operands
}
