//! Spans beside texts.
//!
//! A constant text beside a TIME column is read as a span. Any other text, that of a user variable or of a
//! column, is compared with what is shown of the span, and so is any text beside a span that is computed. A
//! variable's text limits the keys of an index nevertheless (`plan/range_analysis.rs`).

use untorn::types::Collation;

use super::coercion::is_one_for_all;
use super::{Bound, collation};
use crate::ast::BinaryOperator;
use crate::expr::types::Type;
use crate::expr::{Expr, functions};
use crate::result::kind;
use crate::value::Value;

/// Whether a text is read as a span beside a column.
fn is_read(other: &Bound) -> bool {
    is_one_for_all(other) && !matches!(other.0, Expr::Subquery(_))
}

/// Whether a span and the other operand are compared as texts.
fn are_texts(operator: BinaryOperator, (span, ty): &Bound, other: &Bound) -> bool {
    let is_column = matches!(span, Expr::Column { .. });
    // A variable that is in the collation of spans is the column's value, as WHERE takes an equality.
    let is_value = operator == BinaryOperator::Equal
        && matches!(other.0, Expr::UserVariable(_))
        && other.1.collation == Collation::Latin1SwedishCi;
    ty.kind == kind::TIME && collation::counts(other.1) && !(is_column && (is_value || is_read(other)))
}

/// A span as a text beside another one.
fn span_as_text((span, ty): Bound, (_, other): &Bound) -> Bound {
    let text = Expr::Call(&functions::SPAN_TEXT, vec![span]);
    let of_other = Type { collation: other.collation, derivation: other.derivation, ..Type::text(ty.length) };
    (Expr::Collate(Box::new(text), other.collation), Type { nullable: ty.nullable, ..of_other })
}

/// A text that a parameter has beside a column of spans is a span, also if it is a day.
fn as_span((expr, ty): Bound) -> Bound {
    match expr {
        Expr::Parameter(_) => (Expr::Call(&functions::SPAN_OF_TEXT, vec![expr]), ty),
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
    } else if !lifted && left.1.kind == kind::TIME && collation::counts(right.1) {
        (left, as_span(right))
    } else if !lifted && right.1.kind == kind::TIME && collation::counts(left.1) {
        (as_span(left), right)
    } else {
        (left, right)
    }
}

/// The operands of BETWEEN: spans are texts among texts that are not the same for the whole statement.
pub(super) fn spans_among_texts(operands: Vec<Bound>) -> Vec<Bound> {
    let is_text = |operand: &&Bound| collation::counts(operand.1);
    let is_span = |operand: &Bound| operand.1.kind == kind::TIME;
    let Some(text) = operands.iter().filter(is_text).find(|text| !is_read(text)) else { return operands };
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
