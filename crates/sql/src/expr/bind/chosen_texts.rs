//! Texts that IF, CASE and NULLIF choose, beside days and moments.
//!
//! What they choose is asked for a moment, and a text that is none is NULL. Any other text beside a moment is
//! the zero one then.

use super::coercion::is_one_for_all;
use super::{Bound, functions};
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::result::kind;

/// Two operands of a comparison of which one may be such a text.
pub(super) fn chosen_texts(left: Bound, right: Bound) -> (Bound, Bound) {
    let chosen = |moment: &Bound, text: &Bound| {
        moment.1.is_moment()
            && text.1.is_text()
            && text.1.kind != kind::BIT
            && matches!(text.0.unshared(), Expr::Case { .. } | Expr::NullIf(..))
            && !is_one_for_all(moment)
            && !is_one_for_all(text)
    };
    if chosen(&left, &right) {
        (left, moment_or_none(right))
    } else if chosen(&right, &left) {
        (moment_or_none(left), right)
    } else {
        (left, right)
    }
}

fn moment_or_none((text, _): Bound) -> Bound {
    let moment = Expr::Call(&functions::MOMENT_OR_NONE, vec![text]);
    (moment, Type { nullable: true, ..Type::datetime(6) })
}
