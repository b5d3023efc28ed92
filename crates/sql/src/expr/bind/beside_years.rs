//! Years beside numbers, texts and moments.
//!
//! A YEAR is a number of four digits. What it is compared with is a year, too, where that is the same for the
//! whole statement: a number or text of two digits means one of this time, a day or moment the one it is in.

use super::coercion::{is_number, is_one_for_all};
use super::{Bound, collation};
use crate::ast::IntervalUnit;
use crate::expr::types::Type;
use crate::expr::{Expr, functions};
use crate::result::kind;
use crate::value::Value;

/// A constant number of two digits beside a YEAR, or a text that begins with one, is a year of this time; one
/// with digits behind the point is rounded.
pub(super) fn beside_year(year: Type, (expr, ty): Bound) -> Bound {
    let operand = (expr, ty);
    let is_text = collation::counts(ty);
    if year.kind != kind::YEAR || !(is_number(ty) || is_text) || !is_one_for_all(&operand) {
        return operand;
    }
    let (expr, ty) = operand;
    let ty = Type { nullable: ty.nullable, ..Type::INT };
    (Expr::Call(&functions::FULL_YEAR, vec![expr]), ty)
}

/// A YEAR in several constant texts of IN is compared as it is shown: with four digits.
pub(super) fn year_among_texts(operands: &mut [Bound]) {
    let [(year, ty), texts @ ..] = operands else { return };
    let is_text = |text: &Bound| collation::counts(text.1) && is_one_for_all(text);
    if ty.kind != kind::YEAR || texts.len() < 2 || !texts.iter().all(is_text) {
        return;
    }
    let digits = Expr::Literal(Value::Int(4));
    let shown = Expr::Call(
        &functions::ZERO_FILLED,
        vec![std::mem::replace(year, Expr::Literal(Value::Null)), digits],
    );
    let rule = texts[0].1;
    let of_texts = Type { collation: rule.collation, derivation: rule.derivation, ..Type::text(4) };
    (*year, *ty) =
        (Expr::Collate(Box::new(shown), rule.collation), Type { nullable: ty.nullable, ..of_texts });
}

/// A day or moment that is known is, beside a YEAR, the year that it is in.
pub(super) fn year_of_moment(year: Type, (expr, ty): Bound) -> Bound {
    let known = || expr.visit(&mut |inner| inner.may_be_constant() && !matches!(inner, Expr::Outer(_)));
    if year.kind != kind::YEAR || !ty.is_moment() || !known() {
        return (expr, ty);
    }
    (Expr::Extract(IntervalUnit::Year, Box::new(expr)), Type::INT)
}
