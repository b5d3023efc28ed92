//! Spans beside texts and moments.
//!
//! A constant text beside a TIME column is read as a span. Any other text, that of a user variable or of a
//! column, is compared with what is shown of the span, and so is any text beside a span that is computed. A
//! variable's text limits the keys of an index nevertheless (`plan/range_analysis.rs`).
//!
//! A day or moment that is known is its time of day beside a TIME column. Any other span beside a moment is
//! one of today ([`super::coercion::beside_moment`]).

use untorn::types::Collation;

use super::coercion::is_one_for_all;
use super::{Bound, collation};
use crate::ast::{BinaryOperator, CastType};
use crate::expr::types::Type;
use crate::expr::{Expr, functions};
use crate::result::kind;
use crate::value::Value;

/// Whether a span and the other operand are compared as texts.
fn are_texts(operator: BinaryOperator, (span, ty): &Bound, other: &Bound) -> bool {
    let is_column = span.is_column();
    // A variable that is in the collation of spans is the column's value, as WHERE takes an equality.
    let is_value = operator == BinaryOperator::Equal
        && matches!(other.0, Expr::UserVariable(_))
        && other.1.collation == Collation::Latin1SwedishCi;
    ty.kind == kind::TIME && collation::counts(other.1) && !(is_column && (is_value || is_one_for_all(other)))
}

/// A span as a text beside another one.
fn span_as_text((span, ty): Bound, (_, other): &Bound) -> Bound {
    let text = Expr::Call(&functions::SPAN_TEXT, vec![span]);
    let of_other = Type { collation: other.collation, derivation: other.derivation, ..Type::text(ty.length) };
    (Expr::Collate(Box::new(text), other.collation), Type { nullable: ty.nullable, ..of_other })
}

/// A text that a parameter has beside a column of spans is a span, also if it is a day, which that of a
/// subquery is not.
fn as_span(lifted: bool, (expr, ty): Bound) -> Bound {
    match expr {
        Expr::Subquery(_) => {
            (Expr::Call(&functions::SPAN_OR_NONE, vec![expr]), Type { nullable: true, ..ty })
        }
        Expr::Parameter(_) if !lifted => (Expr::Call(&functions::SPAN_OF_TEXT, vec![expr]), ty),
        other => (other, ty),
    }
}

/// Two operands of a comparison of which one may be a span. `lifted`: parameters are literals.
pub(super) fn beside_texts(
    lifted: bool,
    operator: BinaryOperator,
    left: Bound,
    right: Bound,
) -> (Bound, Bound) {
    if are_texts(operator, &left, &right) {
        (span_as_text(left, &right), right)
    } else if are_texts(operator, &right, &left) {
        let span = span_as_text(right, &left);
        (left, span)
    } else if left.1.kind == kind::TIME && collation::counts(right.1) {
        (left, as_span(lifted, right))
    } else if right.1.kind == kind::TIME && collation::counts(left.1) {
        (as_span(lifted, left), right)
    } else {
        (left, right)
    }
}

/// What is known to be a day or moment, beside a column of spans: its time of day, with the column's digits.
pub(super) fn clock_beside((column, ty): &Bound, moment: Bound) -> Bound {
    let is_column = ty.kind == kind::TIME && column.is_column();
    if !is_column || !moment.1.is_moment() || !is_one_for_all(&moment) {
        return moment;
    }
    let (expr, of_moment) = moment;
    let clock = Expr::Cast(Box::new(expr), CastType::Time { fraction: ty.decimals });
    (clock, Type { nullable: of_moment.nullable, ..Type::time(ty.decimals) })
}

/// The operands of BETWEEN: spans are texts among texts of which none is the same for the whole statement.
pub(super) fn spans_among_texts(operands: Vec<Bound>) -> Vec<Bound> {
    let is_text = |operand: &&Bound| collation::counts(operand.1);
    let is_span = |operand: &Bound| operand.1.kind == kind::TIME;
    let mut texts = operands.iter().filter(is_text);
    let Some(text) = texts.next().filter(|text| !is_one_for_all(text)) else { return operands };
    if texts.any(is_one_for_all) {
        return operands;
    }
    if !operands.iter().any(is_span) || !operands.iter().all(|one| is_span(one) || collation::counts(one.1)) {
        return operands;
    }
    let ty = text.1;
    let shown = |operand: Bound| match is_span(&operand) {
        true => span_as_text(operand, &(Expr::Literal(Value::Null), ty)),
        false => operand,
    };
    operands.into_iter().map(shown).collect()
}
