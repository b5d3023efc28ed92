//! The list of IN, where days, moments or spans are among texts.
//!
//! A list that is known before there is a row is sorted in MySQL, which makes all of it one kind: days where
//! all that are no texts are days, spans where they are spans, and moments in any other case. So the operand
//! has a say, too. What a text is that is none of that kind depends on the kind and on its place:
//!
//! - beside moments it is the zero one;
//! - beside days nothing equals it. Of the operand's text only the day counts, of one in the list the clock,
//!   too;
//! - beside spans it is the span 0 in the list, and as the operand nothing equals it.
//!
//! A list that is not known compares moments likewise if there is a day or moment in it. With spans alone all
//! texts that are none are equal.

use super::coercion::{as_moment, is_number};
use super::in_list::any_of;
use super::{Binder, Bound, collation};
use crate::ast::{self, BinaryOperator, CastType};
use crate::errors;
use crate::expr::functions::{DAY_IN_LIST, DAY_SOUGHT, Function, MOMENT_OF_TEXT, SPAN_IN_LIST, SPAN_SOUGHT};
use crate::expr::types::Type;
use crate::expr::{Expr, ValueSet};
use crate::result::{SqlError, kind};
use crate::value::Value;
use crate::value::temporal::{self, Today};

/// What the operand and the entries are compared as.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Day,
    Moment,
    Span,
    /// Of a list that is not known.
    LooseSpan,
}

impl Kind {
    /// The kind of operand and entries, if any of them is one of these; of an entry alone `=` is asked.
    fn of(operands: &[Bound]) -> Option<Kind> {
        let entries = operands.get(1..).filter(|entries| entries.len() > 1)?;
        let taken = |ty: Type| ty.is_temporal() || collation::counts(ty) || ty.kind == kind::NULL;
        if !operands.iter().all(|(_, ty)| taken(*ty)) {
            return None;
        }
        let mut kinds = operands.iter().map(|(_, ty)| ty.kind).filter(|said| of_time(*said));
        let first = kinds.next()?;
        let known = |(expr, _): &Bound| expr.visit(&mut |part| part.may_be_constant());
        if entries.iter().all(known) {
            return Some(match first {
                kind::DATE if kinds.all(|other| other == kind::DATE) => Kind::Day,
                kind::TIME if kinds.all(|other| other == kind::TIME) => Kind::Span,
                _ => Kind::Moment,
            });
        }
        // Beside a column of them each text is by itself.
        let is_text = |(_, ty): &Bound| collation::counts(*ty);
        if !operands.first().is_some_and(is_text) || !entries.iter().any(is_text) {
            return None;
        }
        match entries.iter().any(|(_, ty)| ty.is_moment()) {
            true => Some(Kind::Moment),
            false => Some(Kind::LooseSpan),
        }
    }

    fn of_operand(self) -> (&'static Function, Type) {
        match self {
            Kind::Day => (&DAY_SOUGHT, Type::DATE),
            Kind::Moment => (&MOMENT_OF_TEXT, Type::datetime(6)),
            Kind::Span | Kind::LooseSpan => (&SPAN_SOUGHT, Type::time(6)),
        }
    }

    fn of_entry(self) -> (&'static Function, Type) {
        match self {
            Kind::Day => (&DAY_IN_LIST, Type::datetime(6)),
            Kind::Span => (&SPAN_IN_LIST, Type::time(6)),
            _ => self.of_operand(),
        }
    }

    /// Whether a text is none of this kind.
    fn lacks(self, text: &[u8]) -> bool {
        match self {
            Kind::Day | Kind::Moment => temporal::parse_datetime(text, Today::default()).is_none(),
            Kind::Span | Kind::LooseSpan => temporal::parse_time(text, Today::default()).is_none(),
        }
    }
}

fn of_time(said: u8) -> bool {
    matches!(said, kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::TIME)
}

fn read((expr, ty): Bound, (function, to): (&'static Function, Type)) -> Bound {
    (Expr::Call(function, vec![expr]), Type { nullable: ty.nullable, ..to })
}

/// The operand of IN and what is in its list.
pub(super) fn of_one_kind(operands: Vec<Bound>) -> Vec<Bound> {
    let Some(wanted) = Kind::of(&operands) else { return operands };
    // Texts beside a column are what a comparison reads in them, but for those that are none.
    let of_column = operands.first().is_some_and(|(expr, ty)| expr.is_column() && ty.is_temporal());
    let only_texts = operands.iter().skip(1).all(|(_, ty)| !ty.is_temporal());
    let is_read = |(expr, _): &Bound| match expr {
        Expr::Literal(Value::Text(text, _)) => wanted.lacks(text),
        _ => true,
    };
    let made = |(at, operand): (usize, Bound)| match operand.1 {
        ty if collation::counts(ty) && at == 0 => read(operand, wanted.of_operand()),
        ty if collation::counts(ty) && of_column && only_texts && !is_read(&operand) => operand,
        ty if collation::counts(ty) && of_column && only_texts && wanted == Kind::Moment => operand,
        ty if collation::counts(ty) => read(operand, wanted.of_entry()),
        ty if ty.kind == kind::TIME && wanted == Kind::Moment => {
            as_moment(operand, CastType::DateTime { fraction: ty.decimals })
        }
        _ => operand,
    };
    operands.into_iter().enumerate().map(made).collect()
}

/// The texts of a long list beside days or spans, if one of them is none.
pub(super) fn texts_apart((_, ty): &Bound, constants: &ValueSet) -> bool {
    let wanted = match ty.kind {
        kind::DATE => Kind::Day,
        kind::TIME => Kind::Span,
        _ => return false,
    };
    let lacks = |value: &Value<'_>| matches!(value, Value::Text(text, _) if wanted.lacks(text));
    constants.rule_of_texts().is_some() && constants.values.iter().any(lacks)
}

impl Binder<'_, '_> {
    /// A list of one is compared as by `=`.
    pub(super) fn equals_one(
        &mut self,
        operands: Vec<Bound>,
        said: (&ast::Expr, &ast::Expr),
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let [left, right] = <[Bound; 2]>::try_from(operands)
            .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"two operands are not two"]))?;
        let (left, right) = self.beside(BinaryOperator::Equal, said, left, right)?;
        let (left, right) = (Box::new(left.0), Box::new(right.0));
        Ok(any_of(vec![Expr::Compare(BinaryOperator::Equal, left, right)], negated))
    }

    /// A text in a list of numbers and of days, moments or spans is compared with the latter as with texts.
    pub(super) fn moments_among_numbers(&self, operands: Vec<Bound>) -> Vec<Bound> {
        let text = operands.first().is_some_and(|(_, ty)| collation::counts(*ty));
        if !text || !operands.iter().any(|(_, ty)| is_number(*ty)) {
            return operands;
        }
        operands.into_iter().map(|operand| self.as_own_text(operand)).collect()
    }
}
