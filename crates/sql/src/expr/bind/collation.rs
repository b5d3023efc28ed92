//! Which collation a comparison is made in.
//!
//! Each text has a collation and a *derivation*, how much that was meant: said with COLLATE, a column's, or a
//! literal's, whose is that of the connection. The strongest derivation decides. Among columns a larger
//! character set wins, then a `_bin` collation; two others are an illegal mix (error 1267).
//!
//! Values carry their collations, and [`collation::common`] of them is what a comparison uses. Where that is
//! not what was decided here, operands get another collation with [`Expr::Collate`]; a literal gets it
//! at once, so that it stays a key of an index.

use std::cmp::Ordering;
use std::sync::Arc;

use untorn::types::{Charset, Collation};

use super::common_type::year_as_text;
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
pub fn collated((operand, ty): Bound, rule: Collation, derivation: Derivation) -> Bound {
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
        let characters = |(_, ty): &(&Expr, &Type)| ty.collation != Collation::Binary;
        check_literals(ty.collation, bound.iter().zip(arguments).filter(characters))?;
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
    match claim_of_all(arguments.iter().filter(|ty| counts(**ty)).map(|ty| Claim::of_type(*ty))) {
        Ok(Some(claim)) if claim.rule == result.collation => Type { derivation: claim.derivation, ..result },
        _ => result,
    }
}

/// Error 3854 for a literal that has no place in the collation's character set.
pub(super) fn check_literals<'e>(
    rule: Collation,
    operands: impl Iterator<Item = (&'e Expr, &'e Type)>,
) -> Result<(), SqlError> {
    for (operand, ty) in operands {
        if let Expr::Literal(Value::Text(text, _)) = operand
            && rule != Collation::Binary
            && counts(*ty)
        {
            functions::refuse_foreign(text, ty.collation, rule.charset())?;
        }
    }
    Ok(())
}

/// What a text says of the collation that it and others are in.
#[derive(Clone, Copy)]
struct Claim {
    rule: Collation,
    derivation: Derivation,
    /// All of its characters are at home in every character set.
    is_ascii: bool,
}

/// Why texts have no collation in common.
enum Conflict {
    /// COLLATE says two things.
    Said,
    /// Neither character set has the letters of the other.
    Charsets,
}

impl Claim {
    fn of_type(ty: Type) -> Claim {
        let is_ascii = ty.collation.charset() == Charset::Ascii;
        Claim { rule: ty.collation, derivation: ty.derivation, is_ascii }
    }

    fn of((expr, ty): &Bound) -> Claim {
        let claim = Claim::of_type(*ty);
        let is_ascii =
            claim.is_ascii || matches!(expr, Expr::Literal(Value::Text(text, _)) if text.is_ascii());
        Claim { is_ascii, ..claim }
    }

    fn is_unicode(&self) -> bool {
        matches!(self.rule.charset(), Charset::Utf8mb3 | Charset::Utf8mb4)
    }

    /// Whether the other text can become one of this character set, and is not meant more.
    fn takes(&self, other: &Claim) -> bool {
        let (rank, beside) = (self.derivation.rank(), other.derivation.rank());
        let larger = !other.is_unicode() || self.rule.charset() > other.rule.charset();
        let unicode = self.is_unicode() && (rank < beside || rank == beside && larger);
        unicode || other.is_ascii && (rank < beside || rank == beside && !self.is_ascii)
    }

    /// The claim of both, of which this one came first.
    fn with(self, other: Claim) -> Result<Claim, Conflict> {
        let (rank, beside) = (self.derivation.rank(), other.derivation.rank());
        let (one, two) = (self.rule.charset(), other.rule.charset());
        let chosen = if self.rule == other.rule {
            // What agrees on none agrees with nothing, though it is in one.
            let mixed = self.derivation == Derivation::Mixed || other.derivation == Derivation::Mixed;
            let derivation = self.derivation.min(other.derivation);
            Claim { derivation: if mixed { Derivation::Mixed } else { derivation }, ..self }
        } else if one == two {
            match rank.cmp(&beside) {
                Ordering::Less => self,
                Ordering::Greater => other,
                Ordering::Equal if self.derivation == Derivation::Explicit => return Err(Conflict::Said),
                Ordering::Equal if self.rule.is_bin() => self,
                Ordering::Equal if other.rule.is_bin() => other,
                Ordering::Equal => self.beside_default(other).unwrap_or(Claim {
                    rule: one.bin_collation(),
                    derivation: Derivation::Mixed,
                    ..self
                }),
            }
        } else if self.rule == Collation::Binary {
            if rank <= beside { self } else { other }
        } else if other.rule == Collation::Binary {
            if beside <= rank { other } else { self }
        } else if self.takes(&other) {
            self
        } else if other.takes(&self) {
            other
        } else if rank.max(beside) >= Derivation::System.rank() && rank != beside {
            if rank < beside { self } else { other }
        } else {
            return Err(Conflict::Charsets);
        };
        Ok(Claim { is_ascii: self.is_ascii && other.is_ascii, ..chosen })
    }

    /// A text of the connection, whose collation nobody need have said, beside one in the collation that is
    /// MySQL's default: there the connection would be in it, too.
    fn beside_default(self, other: Claim) -> Option<Claim> {
        let unsaid = |claim: &Claim| {
            claim.derivation == Derivation::Connection && claim.rule == Collation::Utf8mb4GeneralCi
        };
        let default = |claim: &Claim| claim.rule == Collation::Utf8mb40900AiCi;
        match (unsaid(&self) && default(&other), unsaid(&other) && default(&self)) {
            (true, _) => Some(other),
            (_, true) => Some(self),
            _ => None,
        }
    }
}

/// The claim of all texts, in their order.
fn claim_of_all(mut claims: impl Iterator<Item = Claim>) -> Result<Option<Claim>, Conflict> {
    let Some(mut claim) = claims.next() else { return Ok(None) };
    let (mut unknown, mut mixed) = (false, false);
    for other in claims {
        // Of one character set only what COLLATE says counts once two disagree.
        let same = claim.rule.charset() == other.rule.charset();
        if mixed && same && other.derivation != Derivation::Explicit {
            continue;
        }
        claim = match claim.with(other) {
            Ok(claim) => claim,
            // What COLLATE says further on may still decide.
            Err(Conflict::Charsets) => {
                unknown = true;
                Claim { rule: Collation::Binary, derivation: Derivation::Mixed, is_ascii: false }
            }
            Err(said) => return Err(said),
        };
        mixed = claim.derivation == Derivation::Mixed;
    }
    if unknown && claim.derivation != Derivation::Explicit {
        Err(Conflict::Charsets)
    } else {
        Ok(Some(claim))
    }
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
    // In IN what COLLATE says decides wherever it stands.
    let said = |(_, ty): &&Bound| operation == "in" && ty.derivation == Derivation::Explicit;
    let ordered = texts().filter(said).chain(texts().filter(|text| !said(text)));
    match claim_of_all(ordered.map(Claim::of)) {
        Ok(Some(claim)) if claim.derivation != Derivation::Mixed => Ok(Some(claim.rule)),
        Ok(None) => Ok(None),
        Ok(Some(_)) | Err(_) => {
            let mut two = texts().map(|(_, ty)| ty);
            match (two.next(), two.next()) {
                (Some(one), Some(other)) => Err(illegal_mix(operation, operands, [one, other])),
                _ => Ok(None),
            }
        }
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
            Derivation::Mixed => "NONE",
            Derivation::Implicit | Derivation::Connection => "IMPLICIT",
            Derivation::System => "SYSCONST",
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
            // Among one, IN is equality.
            let operation = if operation == "in" { "=" } else { operation };
            errors::error(errors::CANT_AGGREGATE_2COLLATIONS, &[&left, &right, &operation])
        }
    }
}

/// The operands each in the collation that they agree on: one of them is the result, or part of it. That they
/// do not agree is an error where the result is compared.
///
/// # Errors
/// 3854 for a literal that has no place in its character set.
pub(super) fn each_under_one(operands: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
    let texts = operands.iter().filter(|(_, ty)| counts(*ty));
    Ok(match claim_of_all(texts.map(Claim::of)) {
        Ok(Some(claim)) if claim.derivation == Derivation::Mixed => {
            operands.into_iter().map(|operand| mixed(operand, claim.rule)).collect()
        }
        Ok(Some(claim)) => all_under(operands, claim.rule)?,
        _ => operands,
    })
}

/// The operands in a collation that each has a place in.
fn all_under(operands: Vec<Bound>, rule: Collation) -> Result<Vec<Bound>, SqlError> {
    check_literals(rule, operands.iter().map(|(expr, ty)| (expr, ty)))?;
    Ok(operands.into_iter().map(|operand| under(operand, rule)).collect())
}

/// Whether one of two operands is bytes and the other one text; `Some(false)` where it is neither.
pub(super) fn bytes_among_characters(operands: &[Bound]) -> Option<bool> {
    let [(_, one), (_, other)] = operands else { return None };
    let is_bytes = |ty: &Type| counts(*ty) && ty.collation == Collation::Binary;
    match (is_bytes(one), is_bytes(other)) {
        (true, false) => Some(counts(*other)),
        (false, true) => Some(counts(*one)),
        _ => None,
    }
}

/// The operands in the collation of one of them, whatever the others say, as MySQL looks for texts.
///
/// # Errors
/// 3854 for a literal that has no place in its character set.
pub(super) fn under_that_at(at: usize, operands: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
    let Some(rule) = operands.get(at).filter(|(_, ty)| counts(*ty)).map(|(_, ty)| ty.collation) else {
        return Ok(operands);
    };
    all_under(operands, rule)
}

/// The texts that a function puts into the first one, which the result is, too. Where that one may not have
/// their letters they are [`joinable`].
///
/// # Errors
/// 3854 for a literal that has no place in its character set.
pub(super) fn put_into_first(operands: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
    let Some(rule) = operands.first().filter(|(_, ty)| counts(*ty)).map(|(_, ty)| ty.collation) else {
        return joinable(operands);
    };
    let has_room = |text: &Bound| {
        let claim = Claim::of(text);
        claim.is_ascii || claim.rule.charset() <= rule.charset() && claim.rule != Collation::Binary
    };
    match rule != Collation::Binary && operands.iter().filter(|(_, ty)| counts(*ty)).all(has_room) {
        true => all_under(operands, rule),
        false => joinable(operands),
    }
}

/// The collation of a text that is one of two or made of both, and how much it is meant.
pub(super) fn joined(one: Type, other: Type) -> (Collation, Derivation) {
    let claims = [Claim::of_type(one), Claim::of_type(other)];
    match claim_of_all(claims.into_iter()) {
        Ok(Some(claim)) => (claim.rule, claim.derivation),
        _ => (collation::common(one.collation, other.collation), one.derivation.min(other.derivation)),
    }
}

/// What a text says of a text that is made of it and others: what nobody has seen yet, unlike a literal, may
/// have any letters.
fn claim_in_a_whole(text: &Bound) -> Claim {
    let claim = Claim::of(text);
    match text.0 {
        Expr::Parameter(_) => Claim { derivation: claim.derivation.min(Derivation::Connection), ..claim },
        _ => claim,
    }
}

/// The texts of which a function makes one, in the collation that this has.
///
/// # Errors
/// 3854 for a literal that has no place in its character set.
pub(super) fn joinable(operands: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
    let texts = || operands.iter().filter(|(_, ty)| counts(*ty));
    let common = texts().map(|(_, ty)| ty.collation).reduce(collation::common);
    Ok(match claim_of_all(texts().map(claim_in_a_whole)) {
        Ok(Some(claim)) if claim.derivation == Derivation::Mixed => {
            operands.into_iter().map(|operand| mixed(operand, claim.rule)).collect()
        }
        Ok(Some(claim)) if Some(claim.rule) != common => all_under(operands, claim.rule)?,
        Ok(Some(claim)) if claim.rule == Collation::Binary => operands.into_iter().map(in_bytes).collect(),
        Ok(Some(claim)) => {
            check_literals(claim.rule, operands.iter().map(|(expr, ty)| (expr, ty)))?;
            operands
        }
        _ => operands,
    })
}

/// A text among others that agree on no collation.
fn mixed(operand: Bound, rule: Collation) -> Bound {
    let text = counts(operand.1);
    let (expr, ty) = under(operand, rule);
    (expr, if text { Type { derivation: Derivation::Mixed, ..ty } } else { ty })
}

/// COERCIBILITY: how little the collation of a value is meant, from 0 to 6.
fn coercibility(said: &ast::Expr, (expr, ty): &Bound) -> i64 {
    match (said, expr) {
        (_, Expr::Literal(Value::Null)) => 6,
        (ast::Expr::Cast { .. }, _) if ty.is_text() => 2,
        _ if ty.kind == kind::JSON || matches!(ty.kind, kind::ENUM | kind::SET) => 2,
        _ if !counts(*ty) => 5,
        _ => match ty.derivation {
            Derivation::Explicit if ty.collation == Collation::Binary => 2,
            derivation => i64::from(derivation.rank()),
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
    let Some(rule) = agreed(operation, &operands)? else { return Ok(operands) };
    if rule == Collation::Binary {
        // Beside bytes all are bytes, also those that are compared with each other's neighbour.
        return Ok(match operands.len() {
            3.. => operands.into_iter().map(|operand| under(operand, Collation::Binary)).collect(),
            _ => operands.into_iter().map(in_bytes).collect(),
        });
    }
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

/// Two operands that are compared, see `under_one`.
pub fn compared_in_one(operation: &str, pair: [Bound; 2]) -> Result<[Bound; 2], SqlError> {
    <[Bound; 2]>::try_from(under_one(operation, pair.into())?)
        .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"two operands are not two"]))
}

/// An operand beside a column of a subquery, and the collation that the column must be put in, if it must.
pub(super) fn beside_column(
    operation: &str,
    operand: Bound,
    column: Type,
) -> Result<(Bound, Option<Collation>), SqlError> {
    if !counts(operand.1) || !counts(column) || operand.1.collation == column.collation {
        return Ok((operand, None));
    }
    let pair = [operand, (Expr::Literal(Value::Null), column)];
    let [operand, other] = compared_in_one(operation, pair)?;
    let differs = other.1.collation != column.collation;
    Ok((operand, differs.then_some(other.1.collation)))
}

/// The rows of IN, `first` and those that it is looked for among: what stands at one place of them all is
/// compared in the collation that it has in `first`.
pub(super) fn rows_under_one(first: Vec<Bound>, rows: Vec<Vec<Bound>>) -> Result<Vec<Vec<Bound>>, SqlError> {
    let (width, height) = (first.len(), rows.len() + 1);
    let mut all: Vec<Vec<Bound>> = (0..height).map(|_| Vec::with_capacity(width)).collect();
    let mut rows: Vec<_> = std::iter::once(first).chain(rows).map(Vec::into_iter).collect();
    for _ in 0..width {
        let column: Vec<Bound> = rows.iter_mut().filter_map(Iterator::next).collect();
        let column = under_that_at(0, column)?;
        all.iter_mut().zip(column).for_each(|(row, item)| row.push(item));
    }
    Ok(all)
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

    /// The arguments of GROUP_CONCAT and the type of what it makes of them.
    pub(super) fn concatenated(
        &self,
        arguments: Vec<Bound>,
        ty: Type,
    ) -> Result<(Vec<Expr>, Type), SqlError> {
        let arguments = joinable(arguments.into_iter().map(year_as_text).collect())?;
        let bytes = arguments.iter().any(|(_, ty)| counts(*ty) && ty.collation == Collation::Binary);
        let arguments: Vec<Bound> = match bytes {
            true => arguments.into_iter().map(in_bytes).collect(),
            false => arguments,
        };
        let claims = arguments.iter().filter(|(_, ty)| counts(*ty)).map(Claim::of);
        let (collation, derivation) = match claim_of_all(claims) {
            Ok(Some(claim)) => (claim.rule, claim.derivation),
            _ => (self.connection_rule(), Derivation::Coercible),
        };
        let exprs = arguments.into_iter().map(|(expr, _)| expr).collect();
        Ok((exprs, Type { collation, derivation, ..ty }))
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
