//! The common type of values of several types in one column: of a UNION, of CASE, of COALESCE.
//!
//! They are sorted and compared as what they are, so all must be of one kind, with the same digits of a
//! second, and texts in one collation. [`Type::union`] says which, [`converted`] makes a value one of it.

use std::sync::Arc;

use untorn::types::{Collation, ColumnType};

use super::Bound;
use super::collation::{check_literals, collated, counts, joined};
use crate::ast::CastType;
use crate::expr::types::{Derivation, Type};
use crate::expr::{Expr, functions};
use crate::result::{SqlError, kind};
use crate::value::Value;

impl Type {
    /// A type that both values fit.
    pub fn union(self, other: Type) -> Type {
        let nullable = self.nullable || other.nullable;
        if self.kind == kind::NULL {
            return Type { nullable: true, ..other };
        }
        if other.kind == kind::NULL {
            return Type { nullable: true, ..self };
        }
        if self.kind == kind::JSON || other.kind == kind::JSON {
            let length = self.length.max(other.length);
            let derivation = Derivation::Implicit;
            let text = Type { collation: Collation::Utf8mb4Bin, derivation, ..Type::text(length) };
            return Type { nullable, ..if self.kind == other.kind { Type::JSON } else { text } };
        }
        let mixed = self.is_integer() && other.is_integer() && self.unsigned != other.unsigned;
        if self.kind == other.kind && !self.is_text() && self.kind != kind::NEWDECIMAL && !mixed {
            return Type {
                length: self.length.max(other.length),
                decimals: self.decimals.max(other.decimals),
                nullable,
                ..self
            };
        }
        let bits =
            |t: Type| if t.kind == kind::BIT { Type { nullable: t.nullable, ..Type::UINT } } else { t };
        match (self.kind, other.kind) {
            (kind::BIT, kind::BIT) => {
                return Type { length: self.length.max(other.length), nullable, ..self };
            }
            (kind::BIT, _) | (_, kind::BIT) => return bits(self).union(bits(other)),
            _ => {}
        }
        if self.is_temporal() && other.is_temporal() {
            // Different kinds: a day and a span are moments.
            let fraction = if self.decimals > other.decimals { self.decimals } else { other.decimals };
            return Type { nullable, ..Type::datetime(fraction) };
        }
        let number = |t: &Type| t.is_integer() || t.is_double() || t.kind == kind::NEWDECIMAL;
        if number(&self) && number(&other) {
            let wide = |t: &Type| t.unsigned && t.kind == kind::LONGLONG;
            // Digits behind the point that are shown of all rows: unless one of them has as many as it needs.
            let shown = |t: &Type| if t.is_integer() { 0 } else { t.decimals.min(31) };
            let decimals = shown(&self).max(shown(&other));
            let in_float = |t: &Type| t.kind == kind::FLOAT || t.is_integer() && t.kind != kind::LONG;
            // As MySQL has it: a BIGINT is no FLOAT where it comes first, and loses digits where it follows.
            let wide_first = self.is_integer() && self.kind == kind::LONGLONG;
            let floats = in_float(&self) && in_float(&other) && !wide_first;
            return if floats && (self.is_double() || other.is_double()) {
                Type { nullable, decimals, ..Type::FLOAT }
            } else if self.is_double() || other.is_double() {
                Type { nullable, decimals, ..Type::DOUBLE }
            } else if mixed && (wide(&self) || wide(&other)) {
                // No integer type has both.
                Type { nullable, ..Type::decimal(20, 0) }
            } else if self.is_integer() && other.is_integer() {
                Type { nullable, unsigned: self.unsigned && other.unsigned, ..Type::INT }
            } else {
                let ((p1, s1), (p2, s2)) = (self.digits(), other.digits());
                let scale = s1.max(s2);
                let whole = (p1.saturating_sub(s1)).max(p2.saturating_sub(s2));
                Type { nullable, ..Type::decimal((whole + scale).min(65), scale) }
            };
        }
        let (rule, derivation) = if self.is_text() && other.is_text() {
            joined(self, other)
        } else if self.is_text() {
            (self.collation, self.derivation)
        } else if other.is_text() {
            (other.collation, other.derivation)
        } else {
            (Collation::Utf8mb4GeneralCi, self.derivation.min(other.derivation))
        };
        Type { nullable, collation: rule, derivation, ..Type::text(self.length.max(other.length)) }
    }
}

/// A YEAR where a text is wanted: four digits, of year 0 as well.
pub(super) fn year_as_text((expr, ty): Bound) -> Bound {
    if ty.kind != kind::YEAR {
        return (expr, ty);
    }
    let digits = Expr::Literal(Value::Int(4));
    let text = Type { nullable: ty.nullable, ..Type::text(4) };
    (Expr::Call(&functions::ZERO_FILLED, vec![expr, digits]), text)
}

/// A value of one type among those of a union of types.
pub fn converted((expr, from): Bound, to: Type) -> Expr {
    if from.kind == kind::BIT && to.kind != kind::BIT {
        return converted(number_of_bits((expr, from)), to);
    }
    if from.kind == kind::JSON && to.is_text() {
        return Expr::Collate(Box::new(expr), to.collation);
    }
    let (expr, from) = match conversion(from, to) {
        Some(target) => {
            // Made of a value that is no text, a text has the collation of CAST.
            let made = if to.collation == Collation::Binary { Type::bytes(0) } else { Type::text(0) };
            let ty = if to.is_text() { made } else { to };
            (Expr::Cast(Box::new(expr), target), ty)
        }
        None => (expr, from),
    };
    if from.is_text() && to.is_text() && from.collation != to.collation {
        return collated((expr, from), to.collation, to.derivation).0;
    }
    expr
}

/// [`converted`] of what one of several may answer.
///
/// # Errors
/// 3854 for a literal that has no place in the character set of all.
pub fn fitting(bound: Bound, to: Type) -> Result<Expr, SqlError> {
    if counts(to) && to.collation != bound.1.collation {
        check_literals(to.collation, std::iter::once((&bound.0, &bound.1)))?;
    }
    Ok(converted(bound, to))
}

/// What is chosen among values of several types, as [`fitting`]. A YEAR among texts is the text of four
/// digits, where a UNION makes a text of its number.
pub(super) fn chosen(bound: Bound, to: Type) -> Result<Expr, SqlError> {
    fitting(if to.is_text() { year_as_text(bound) } else { bound }, to)
}

/// The number that the bits of a BIT are.
pub fn number_of_bits((expr, ty): Bound) -> Bound {
    let bits = Arc::new(ColumnType::Bit { bits: 64 });
    (Expr::MemberNumber(Box::new(expr), bits), Type { nullable: ty.nullable, ..Type::UINT })
}

/// A value that is assigned to a user variable: the type of what the variable keeps of it
/// ([`Value::into_variable`](crate::value::Value::into_variable)).
pub fn in_variable((expr, ty): Bound) -> Bound {
    let of_text = |collation| Type {
        nullable: ty.nullable,
        derivation: Derivation::Connection,
        collation,
        ..Type::text(ty.length)
    };
    match ty.kind {
        kind::BIT => number_of_bits((expr, ty)),
        kind::FLOAT => (expr, Type { nullable: ty.nullable, ..Type::DOUBLE }),
        kind::JSON => (expr, of_text(Collation::Utf8mb4Bin)),
        _ if ty.is_temporal() => (expr, of_text(Collation::Latin1SwedishCi)),
        _ => (expr, ty),
    }
}

/// What makes a value of a type one of a union of types: nothing where it is of that kind already.
pub(super) fn conversion(from: Type, to: Type) -> Option<CastType> {
    if from.kind == kind::NULL {
        return None;
    }
    let needed = |differs: bool, target| differs.then_some(target);
    match to.kind {
        kind::NEWDECIMAL => {
            let (precision, scale) = to.digits();
            let same = from.kind == kind::NEWDECIMAL && from.digits().1 == scale;
            needed(!same, CastType::Decimal { precision, scale })
        }
        kind::DOUBLE => needed(from.kind != kind::DOUBLE, CastType::Double),
        kind::FLOAT => needed(from.kind != kind::FLOAT, CastType::Float),
        kind::DATETIME | kind::TIMESTAMP => {
            let same = from.is_moment() && from.kind != kind::DATE && from.decimals == to.decimals;
            needed(from.is_temporal() && !same, CastType::DateTime { fraction: to.decimals })
        }
        kind::TIME => {
            let differs = from.kind == kind::TIME && from.decimals != to.decimals;
            needed(differs, CastType::Time { fraction: to.decimals })
        }
        _ if !to.is_text() || from.is_text() => None,
        _ if to.collation == Collation::Binary => Some(CastType::Binary { length: None }),
        _ => Some(CastType::Char { length: None, charset: None, bin: false }),
    }
}
