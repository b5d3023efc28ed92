//! Which collation a comparison is made in.
//!
//! Each text has a collation and a *derivation*, how much that was meant: said with COLLATE, a column's, or a
//! literal's, whose is that of the connection. The strongest derivation decides. Among columns a larger
//! character set wins, then a `_bin` collation; two others are an illegal mix (error 1267).
//!
//! Values carry their collations, and [`collation::common`] of them is what a comparison uses. Where that is
//! not what was decided here, operands get another collation with [`Expr::Collate`]; a literal gets it
//! at once, so that it stays a key of an index.

use std::sync::Arc;

use untorn::types::{Charset, Collation};

use super::literals::text_literal;
use super::{Binder, Bound};
use crate::ast;
use crate::errors;
use crate::expr::functions::{self, Function, TextOf};
use crate::expr::types::{Derivation, Type};
use crate::expr::value_set::ValueSet;
use crate::expr::{Expr, NODE_BYTES, collation};
use crate::result::{SqlError, kind};
use crate::value::Value;

/// A text with the collation that COLLATE, BINARY or CONVERT gives it.
pub(super) fn collated((operand, ty): Bound, rule: Collation, derivation: Derivation) -> Bound {
    let expr = match operand {
        Expr::Literal(Value::Text(text, from)) => {
            Expr::Literal(Value::Text(collation::relabelled(text, from, rule), rule))
        }
        operand => Expr::Collate(Box::new(operand), rule),
    };
    (expr, Type { collation: rule, derivation, nullable: ty.nullable, ..Type::text(ty.length) })
}

/// What CONVERT makes a text of another character set: of a binary string that is none NULL, and a character
/// that the set does not have becomes `?`.
pub(super) fn checked((operand, ty): Bound, rule: Collation) -> Bound {
    let charset = rule.charset();
    if counts(ty) && ty.collation != Collation::Binary && ty.collation.charset() > charset {
        let function = match charset {
            Charset::Ascii => &functions::FITTED_TO_ASCII,
            Charset::Latin1 => &functions::FITTED_TO_LATIN1,
            Charset::Utf8mb3 => &functions::FITTED_TO_UTF8MB3,
            Charset::Binary | Charset::Utf8mb4 => return (operand, ty),
        };
        return (Expr::Call(function, vec![operand]), ty);
    }
    // Each byte is a character there.
    if charset == Charset::Latin1 {
        return (operand, ty);
    }
    let bytes = counts(ty) && ty.collation == Collation::Binary && rule != Collation::Binary;
    if !bytes {
        return (operand, ty);
    }
    (Expr::Call(&functions::VALID_TEXT, vec![operand]), Type { nullable: true, ..ty })
}

/// Whether a value is text that a character set says something of.
pub(super) fn counts(ty: Type) -> bool {
    ty.is_text() && ty.kind != kind::BIT
}

/// The type of a function's result, if it answers text in the collation of its arguments: meant as much as
/// theirs.
///
/// # Errors
/// 3854 for a literal among them that has no place in it.
pub(super) fn as_meant(
    function: &Function,
    result: Type,
    bound: &[Expr],
    arguments: &[Type],
) -> Result<Type, SqlError> {
    let ty = meant(function, result, arguments);
    if function.text_of == TextOf::Arguments && ty.is_text() {
        check_literals(ty.collation, bound.iter().zip(arguments))?;
    }
    Ok(ty)
}

fn meant(function: &Function, result: Type, arguments: &[Type]) -> Type {
    if !counts(result) || function.text_of == TextOf::Connection {
        return result;
    }
    if function.text_of == TextOf::First
        && let Some(first) = arguments.first()
    {
        let Type { collation, derivation, .. } = if counts(*first) { *first } else { Type::text(0) };
        return Type { collation, derivation, ..result };
    }
    let texts = || arguments.iter().filter(|ty| counts(**ty));
    let rule = texts().map(|ty| ty.collation).reduce(collation::common);
    match texts().map(|ty| ty.derivation).min() {
        Some(derivation) if counts(result) && rule == Some(result.collation) => Type { derivation, ..result },
        _ => result,
    }
}

/// Error 3854 for a literal with a character that the collation's character set does not have.
fn check_literals<'e>(
    rule: Collation,
    operands: impl Iterator<Item = (&'e Expr, &'e Type)>,
) -> Result<(), SqlError> {
    for (operand, ty) in operands {
        if let Expr::Literal(Value::Text(text, _)) = operand
            && rule != Collation::Binary
        {
            functions::refuse_foreign(text, ty.collation, rule.charset())?;
        }
    }
    Ok(())
}

/// The collation in which texts of these types are compared, if that is decided by how much it is meant.
fn agreed(operation: &str, operands: &[Bound]) -> Result<Option<Collation>, SqlError> {
    let rule = decided(operation, operands)?;
    if let Some(rule) = rule {
        check_literals(rule, operands.iter().map(|(expr, ty)| (expr, ty)))?;
    }
    Ok(rule)
}

fn decided(operation: &str, operands: &[Bound]) -> Result<Option<Collation>, SqlError> {
    let texts = || operands.iter().filter(|(_, ty)| counts(*ty));
    let Some(derivation) = texts().map(|(_, ty)| ty.derivation).min() else { return Ok(None) };
    let explicit = derivation == Derivation::Explicit;
    if !explicit && texts().any(|(_, ty)| ty.collation == Collation::Binary) {
        return Ok(None);
    }
    let strongest = || texts().filter(|(_, ty)| ty.derivation == derivation);
    let size = |ty: &Type| (!explicit).then(|| ty.collation.charset());
    let largest = strongest().map(|(_, ty)| size(ty)).max();
    let candidates: Vec<&Bound> = strongest().filter(|(_, ty)| Some(size(ty)) == largest).collect();
    let Some(first) = candidates.first() else { return Ok(None) };
    let Some(other) = candidates.iter().find(|(_, ty)| ty.collation != first.1.collation) else {
        // What CAST made is as strong as a column where it is compared byte by byte.
        let is_bin_cast = |(expr, ty): &&Bound| {
            let rule = ty.collation;
            is_cast(expr) && rule.is_bin() && rule.charset() == first.1.collation.charset()
        };
        let winner = texts().find(|text| !explicit && is_bin_cast(text)).unwrap_or(first);
        return Ok(Some(winner.1.collation));
    };
    if !explicit && let Some(bin) = candidates.iter().find(|(_, ty)| ty.collation.is_bin()) {
        return Ok(Some(bin.1.collation));
    }
    let columns = || candidates.iter().all(|(expr, _)| matches!(expr, Expr::Column { .. }));
    if !explicit && !columns() {
        return Ok(None);
    }
    Err(illegal_mix(operation, operands, [&first.1, &other.1]))
}

/// Whether a text is what CAST made.
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Collate(inner, _) | Expr::Trim { operand: inner, .. } => is_cast(inner),
        expr => matches!(expr, Expr::Cast(..)),
    }
}

/// Refuses texts of which one is to be made, or one to be taken, if COLLATE says two things of them.
pub(super) fn check_explicit(operation: &str, types: &[Type]) -> Result<(), SqlError> {
    let said = |ty: &&Type| counts(**ty) && ty.derivation == Derivation::Explicit;
    let mut rules = types.iter().filter(said).filter(|ty| ty.collation != Collation::Binary);
    let Some(first) = rules.next() else { return Ok(()) };
    let Some(other) = rules.find(|ty| ty.collation != first.collation) else { return Ok(()) };
    let operands: Vec<Bound> = types.iter().map(|ty| (Expr::Literal(Value::Null), *ty)).collect();
    Err(illegal_mix(operation, &operands, [first, other]))
}

/// That operands have no collation in common: 1267 names two of them, 1270 all three, 1271 none of more.
fn illegal_mix(operation: &str, operands: &[Bound], two: [&Type; 2]) -> SqlError {
    let shown = |ty: &Type| {
        let meant = match ty.derivation {
            Derivation::Explicit => "EXPLICIT",
            Derivation::Implicit => "IMPLICIT",
            Derivation::Coercible if counts(*ty) => "COERCIBLE",
            Derivation::Coercible => return "latin1_swedish_ci,NUMERIC".to_owned(),
        };
        format!("{},{meant}", ty.collation.name())
    };
    // As MySQL names it there.
    let listed = if operation == "in" { " IN " } else { operation };
    match operands {
        [a, b, c] => {
            let (a, b, c) = (shown(&a.1), shown(&b.1), shown(&c.1));
            errors::error(errors::CANT_AGGREGATE_3COLLATIONS, &[&a, &b, &c, &listed])
        }
        [_, _, _, _, ..] => errors::error(errors::CANT_AGGREGATE_NCOLLATIONS, &[&listed]),
        _ => {
            let (left, right) = (shown(two[0]), shown(two[1]));
            errors::error(errors::CANT_AGGREGATE_2COLLATIONS, &[&left, &right, &operation])
        }
    }
}

/// The operands each in the collation that they agree on: one of them is the result, or part of it. That they
/// do not agree is an error where the result is compared.
pub(super) fn each_under_one(operands: Vec<Bound>) -> Vec<Bound> {
    match agreed("", &operands) {
        Ok(Some(rule)) => operands.into_iter().map(|operand| under(operand, rule)).collect(),
        _ => operands,
    }
}

/// The collation of a text that is made of two of one character set: COLLATE wins over a column, and that
/// over a literal. Else [`collation::common`], but not where its character set would lack letters of a text
/// that is meant as much as a column is.
pub(super) fn joined(one: Type, other: Type) -> Collation {
    if one.collation.charset() == other.collation.charset() && one.derivation != other.derivation {
        return if one.derivation < other.derivation { one.collation } else { other.collation };
    }
    let common = collation::common(one.collation, other.collation);
    let larger = if one.collation.charset() > other.collation.charset() { one } else { other };
    let lacks = common != Collation::Binary && common.charset() < larger.collation.charset();
    if lacks && larger.derivation != Derivation::Coercible { larger.collation } else { common }
}

/// How much the collation of a text is meant where a text is made of several: what nobody has seen yet,
/// unlike a literal, may have any letters.
fn meant_in_a_whole((expr, ty): &Bound) -> Type {
    let unseen = matches!(expr, Expr::UserVariable(_) | Expr::Parameter(_) | Expr::Cast(..));
    let derivation = if unseen { ty.derivation.min(Derivation::Implicit) } else { ty.derivation };
    Type { derivation, ..*ty }
}

/// The texts of which a function makes one, in the character set that this has.
pub(super) fn joinable(operands: Vec<Bound>) -> Vec<Bound> {
    let texts = || operands.iter().filter(|(_, ty)| counts(*ty));
    let common = texts().map(|(_, ty)| ty.collation).reduce(collation::common);
    // A literal of ASCII is at home in every set.
    let fits = |(expr, ty): &&Bound| {
        let ascii = matches!(expr, Expr::Literal(Value::Text(text, _)) if text.is_ascii());
        ascii && ty.derivation == Derivation::Coercible
    };
    let both = |one: Type, other: Type| Type {
        collation: joined(one, other),
        derivation: one.derivation.min(other.derivation),
        ..one
    };
    match texts().filter(|text| !fits(text)).map(meant_in_a_whole).reduce(both) {
        Some(Type { collation: rule, .. }) if Some(rule) != common => {
            operands.into_iter().map(|operand| under(operand, rule)).collect()
        }
        _ => operands,
    }
}

/// Whether there is one collation for all operands.
pub(super) fn check_one(operation: &str, operands: &[Bound]) -> Result<(), SqlError> {
    agreed(operation, operands).map(drop)
}

/// COERCIBILITY: how little the collation of a value is meant, from 0 to 6.
fn coercibility(said: &ast::Expr, (expr, ty): &Bound) -> i64 {
    let expr = match (said, expr) {
        (ast::Expr::Function { .. }, Expr::Collate(text, _)) => text,
        (_, expr) => expr,
    };
    const OF_SYSTEM: &[&str] = &[
        "USER",
        "CURRENT_USER",
        "CURRENT_ROLE",
        "SESSION_USER",
        "SYSTEM_USER",
        "VERSION",
        "DATABASE",
        "SCHEMA",
    ];
    match (said, expr) {
        (_, Expr::Literal(Value::Null)) => 6,
        (ast::Expr::Cast { .. }, _) if ty.is_text() => 2,
        (_, Expr::UserVariable(_)) => 2,
        (_, Expr::Call(function, _)) if OF_SYSTEM.contains(&function.name) => 3,
        _ if ty.kind == kind::JSON || matches!(ty.kind, kind::ENUM | kind::SET) => 2,
        _ if !counts(*ty) => 5,
        _ => match ty.derivation {
            Derivation::Explicit if ty.collation == Collation::Binary => 2,
            Derivation::Explicit => 0,
            Derivation::Implicit => 2,
            Derivation::Coercible => 4,
        },
    }
}

/// A text for a function that sees its bytes: those that it has in its character set.
pub(super) fn in_bytes(operand: Bound) -> Bound {
    let converted = counts(operand.1) && operand.1.collation.charset() == Charset::Latin1;
    if converted { under(operand, Collation::Binary) } else { operand }
}

/// A parameter beside `latin1`, in which it may have no form.
fn in_latin1((operand, ty): Bound) -> Bound {
    match operand {
        Expr::Parameter(_) if counts(ty) && ty.collation.charset() > Charset::Latin1 => {
            (Expr::Call(&functions::ONLY_IN_LATIN1, vec![operand]), ty)
        }
        operand => (operand, ty),
    }
}

/// A text in this collation.
pub(super) fn under(operand: Bound, rule: Collation) -> Bound {
    let derivation = operand.1.derivation;
    let differs = counts(operand.1) && operand.1.collation != rule;
    if differs { collated(operand, rule, derivation) } else { operand }
}

/// The operands so that comparing any two of them is comparing them in the collation they agree on.
pub(super) fn under_one(operation: &str, operands: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
    let Some(rule) = agreed(operation, &operands)? else {
        let bytes = operands.iter().any(|(_, ty)| counts(*ty) && ty.collation == Collation::Binary);
        // Beside bytes all are bytes, also those that are compared with each other's neighbour.
        return Ok(match (bytes, operands.len()) {
            (true, 3..) => operands.into_iter().map(|operand| under(operand, Collation::Binary)).collect(),
            (true, _) => operands.into_iter().map(in_bytes).collect(),
            (false, _) => operands,
        });
    };
    let operands: Vec<Bound> = match rule.charset() {
        Charset::Latin1 => operands.into_iter().map(in_latin1).collect(),
        _ => operands,
    };
    let texts = operands.iter().filter(|(_, ty)| counts(*ty)).map(|(_, ty)| ty.collation);
    let pair = operands.len() == 2;
    if pair && texts.clone().reduce(collation::common) == Some(rule) || texts.clone().all(|of| of == rule) {
        return Ok(operands);
    }
    Ok(operands.into_iter().map(|operand| under(operand, rule)).collect())
}

impl Binder<'_, '_> {
    /// `COERCIBILITY(…)`, which is known before there is a value.
    pub(super) fn coercibility(&mut self, argument: &ast::Expr) -> Result<Bound, SqlError> {
        // Weights are meant as what they are of.
        if let ast::Expr::Function { name, arguments, .. } = argument
            && name.starts_with("WEIGHT_STRING")
            && let Some(weighed) = arguments.first()
        {
            return self.coercibility(weighed);
        }
        let bound = self.bind(argument)?;
        Ok((Expr::int(coercibility(argument, &bound)), Type::INT.not_null()))
    }

    /// An operand of IN and its constants, in one collation.
    pub(super) fn among(
        &self,
        operand: Bound,
        constants: &Arc<ValueSet>,
    ) -> Result<(Expr, Arc<ValueSet>), SqlError> {
        let Some(of_constants) = constants.rule_of_texts().filter(|_| counts(operand.1)) else {
            return Ok((operand.0, Arc::clone(constants)));
        };
        let ty = Type { collation: self.literal_rule(None)?, ..Type::text(0) };
        let operands = under_one("in", vec![operand, (Expr::Literal(Value::Null), ty)])?;
        let [operand, (_, literal)] = <[Bound; 2]>::try_from(operands)
            .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"two operands are not two"]))?;
        let rule = collation::common(operand.1.collation, literal.collation);
        if rule == of_constants {
            return Ok((operand.0, Arc::clone(constants)));
        }
        self.planner.work(constants.values.len().saturating_mul(NODE_BYTES))?;
        Ok((operand.0, Arc::new(constants.under(rule))))
    }

    /// `operand COLLATE name`.
    pub(super) fn collate(&mut self, operand: &ast::Expr, name: &str) -> Result<Bound, SqlError> {
        let operand = self.bind(operand)?;
        let rule = self.planner.collation(name)?;
        let charset = operand.1.collation.charset();
        if counts(operand.1) && charset != rule.charset() {
            return Err(errors::error(errors::COLLATION_CHARSET_MISMATCH, &[&rule.name(), &charset.name()]));
        }
        Ok(collated(operand, rule, Derivation::Explicit))
    }

    /// A text as it is written.
    pub(super) fn text(&self, bytes: &[u8], introducer: Option<&str>) -> Result<Bound, SqlError> {
        let rule = self.literal_rule(introducer)?;
        if introducer.is_some() && rule.charset() == Charset::Latin1 {
            return Ok(text_literal(&Charset::Latin1.to_utf8(bytes), rule));
        }
        let wrong =
            introducer.filter(|_| rule != Collation::Binary).and_then(|_| functions::invalid_text(bytes));
        wrong.map_or_else(|| Ok(text_literal(bytes, rule)), Err)
    }

    /// The collation of literals.
    fn literal_rule(&self, introducer: Option<&str>) -> Result<Collation, SqlError> {
        match introducer {
            Some(charset) => self.planner.charset_collation(charset),
            None => Ok(self.planner.literal_collation()),
        }
    }
}
