//! Values of several types in one column: of a UNION, of CASE, of COALESCE.
//!
//! They are sorted and compared as what they are, so all must be of one kind, with the same digits of a
//! second, and texts in one collation. [`Type::union`] says which.

use std::sync::Arc;

use untorn::types::{Collation, ColumnType};

use super::Bound;
use super::collation::collated;
use crate::ast::CastType;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::result::kind;

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

/// The number that the bits of a BIT are.
pub fn number_of_bits((expr, ty): Bound) -> Bound {
    let bits = Arc::new(ColumnType::Bit { bits: 64 });
    (Expr::MemberNumber(Box::new(expr), bits), Type { nullable: ty.nullable, ..Type::UINT })
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
        _ => Some(CastType::Char { length: None, charset: None }),
    }
}
