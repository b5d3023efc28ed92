//! Operands in the places they stand in: as numbers, as truth values, as text, under a common collation.
//!
//! A text or number compared with a date or time stays what it is here: which type both become is decided
//! for each row, in `value/compare.rs`. Only BETWEEN has its text constants read as moments beforehand.
//!
//! A BIT column and a hexadecimal literal are bytes until a number is wanted. The type of such a literal says
//! so: it is text that is unsigned.

use std::sync::Arc;

use untorn::types::Collation;

use super::beside_numbers::between_numbers;
use super::beside_texts::spans_among_texts;
use super::beside_years::{beside_year, year_of_moment};
use super::collation::in_bytes;
use super::common_type::{converted, number_of_bits, year_as_text};
use super::function_types::check_path;
use super::large_integers::beside_text;
use super::lists_of_moments::of_one_kind;
use super::{Binder, Bound, collation};
use crate::ast::{self, CastType};
use crate::expr::types::{Derivation, Type, cast_type};
use crate::expr::{Expr, functions};
use crate::plan::SelectPlan;
use crate::plan::source::{Source, SourceColumn};
use crate::result::{SqlError, column_flag, kind};
use crate::value::temporal::Today;
use crate::value::{DateTime, Value, convert, temporal};

/// The number that a literal of bytes is; none has more than eight of them.
fn number_of_bytes(bytes: &[u8]) -> Option<u64> {
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let number = || significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (significant.len() <= 8).then(number)
}

/// An integer, as it is compared by CASE and FIELD with one that is UNSIGNED or is not: by its bits.
pub(super) fn with_sign_of(first: Type, (expr, ty): Bound) -> Bound {
    let both = first.is_integer() && ty.is_integer();
    let fits = match &expr {
        Expr::Literal(Value::Int(number)) => *number >= 0,
        Expr::Literal(Value::UInt(number)) => i64::try_from(*number).is_ok(),
        _ => false,
    };
    if !both || first.unsigned == ty.unsigned || fits {
        return (expr, ty);
    }
    let target = if first.unsigned { CastType::Unsigned } else { CastType::Signed };
    (Expr::Cast(Box::new(expr), target), Type { unsigned: first.unsigned, ..ty })
}

/// A hexadecimal literal as the number that it is; anything else as it is.
pub(crate) fn literal_as_number((expr, ty): Bound) -> Bound {
    match expr {
        Expr::Literal(Value::Text(bytes, Collation::Binary))
            if ty.unsigned && ty.kind == kind::VAR_STRING =>
        {
            let number = Type { nullable: ty.nullable, ..Type::UINT };
            (Expr::Literal(Value::UInt(number_of_bytes(&bytes).unwrap_or(0))), number)
        }
        other => (other, ty),
    }
}

/// What IF and CASE choose among hexadecimal literals, as a number.
fn chosen_as_number((expr, ty): Bound) -> Bound {
    match expr {
        Expr::Case { operand, whens, otherwise } => {
            let counted = |expr: Expr| literal_as_number((expr, ty)).0;
            let whens = whens.into_iter().map(|(when, then)| (when, counted(then))).collect();
            let otherwise = Box::new(counted(*otherwise));
            let chosen = Expr::Case { operand, whens, otherwise };
            (Expr::Cast(Box::new(chosen), CastType::Double), Type { nullable: ty.nullable, ..Type::DOUBLE })
        }
        other => (other, ty),
    }
}

/// The type of what IF and CASE choose among these: a number where one is wanted, if all are hexadecimal
/// literals.
pub(super) fn chosen_among(results: &[Type], ty: Type) -> Type {
    let mut said = results.iter().filter(|ty| ty.kind != kind::NULL).peekable();
    let is_literal = |ty: &Type| ty.kind == kind::VAR_STRING && ty.unsigned;
    Type { unsigned: ty.unsigned || said.peek().is_some() && said.all(is_literal), ..ty }
}

/// Whether comparing with this compares numbers.
pub(crate) fn is_number(ty: Type) -> bool {
    ty.is_integer() || matches!(ty.kind, kind::NEWDECIMAL | kind::DOUBLE | kind::FLOAT | kind::BIT)
}

/// Whether this would be a number beside one.
pub(super) fn may_be_number((expr, ty): &Bound) -> bool {
    let literal = matches!(expr, Expr::Literal(Value::Text(..))) && ty.unsigned;
    literal || matches!(ty.kind, kind::ENUM | kind::SET | kind::BIT)
}

/// Whether what one of them is depends on which of the others it is compared with: the first of them is
/// compared with each, and is a number beside numbers and a text beside texts.
pub(super) fn depends_on_the_other(operands: &[Bound]) -> bool {
    let text = |(_, ty): &Bound| ty.is_text() && ty.kind != kind::BIT;
    let mut others = operands.iter().skip(1);
    operands.iter().any(may_be_number) && others.clone().any(|(_, ty)| is_number(*ty)) && others.any(text)
}

/// Functions of numbers that would take bytes or a member's name for text; a locale or a format among their
/// arguments is one.
fn takes_numbers(name: &str, at: usize) -> bool {
    const NAMES: &[&str] = &[
        "ABS",
        "SIGN",
        "CEILING",
        "CEIL",
        "FLOOR",
        "ROUND",
        "TRUNCATE",
        "MOD",
        "POW",
        "POWER",
        "SQRT",
        "EXP",
        "LN",
        "LOG",
        "LOG2",
        "LOG10",
        "SIN",
        "COS",
        "TAN",
        "ATAN",
        "ATAN2",
        "ACOS",
        "ASIN",
        "COT",
        "DEGREES",
        "RADIANS",
        "INET_NTOA",
        "FORMAT_BYTES",
        "FORMAT_PICO_TIME",
        "RANDOM_BYTES",
        "BIT_COUNT",
        "INTERVAL",
        "FORMAT",
        "SEC_TO_TIME",
        "FROM_UNIXTIME",
        "MAKEDATE",
        "CHAR",
        "FROM_DAYS",
    ];
    NAMES.contains(&name) && !matches!((name, at), ("FORMAT", 2) | ("FROM_UNIXTIME", 1))
}

/// Whether the argument at this place of a function, which takes others for text, is a number.
fn counts_with(name: &str, at: usize) -> bool {
    match name {
        "ELT" | "MAKE_SET" | "EXPORT_SET" | "SPACE" | "RAND" | "LAST_INSERT_ID" => at == 0,
        "REPEAT" | "LEFT" | "RIGHT" | "LPAD" | "RPAD" | "WEEK" | "SHA2" => at == 1,
        "SUBSTRING" | "INSERT" => at == 1 || at == 2,
        "CONV" => at > 0,
        "SUBSTRING_INDEX" => at == 2,
        "LOCATE" => at == 2,
        "PERIOD_ADD" | "PERIOD_DIFF" => true,
        _ => false,
    }
}

/// Whether a function's result says what the bytes of its arguments are.
fn sees_bytes(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "LENGTH",
        "OCTET_LENGTH",
        "BIT_LENGTH",
        "HEX",
        "ASCII",
        "ORD",
        "MD5",
        "SHA",
        "SHA1",
        "SHA2",
        "CRC32",
        "TO_BASE64",
        "COMPRESS",
        "AES_ENCRYPT",
        "AES_DECRYPT",
        "UNCOMPRESS",
        "UNCOMPRESSED_LENGTH",
    ];
    NAMES.contains(&name)
}

/// The argument of a function as it wants it.
pub(super) fn argument(binder: &Binder<'_, '_>, function: &str, at: usize, argument: Bound) -> Bound {
    let argument = wanted(binder, function, at, argument);
    if sees_bytes(function) { in_bytes(argument) } else { argument }
}

/// NULLIF, whose text is in the collation that the first operand has by itself, whatever both are compared
/// in.
pub(super) fn null_if(mut operands: Vec<Expr>, [compared, other]: [Type; 2], said: Type) -> Bound {
    let right = operands.pop().unwrap_or(Expr::Literal(Value::Null));
    let left = operands.pop().unwrap_or(Expr::Literal(Value::Null));
    // A literal has become one of the other collation, if it is of that character set.
    let becomes = crate::value::collation::common(compared.collation, other.collation);
    let literal = matches!(left, Expr::Literal(_)) && collation::counts(other);
    let rule = match literal && becomes.charset() == said.collation.charset() {
        true => becomes,
        false => said.collation,
    };
    // The first one is the answer, and stays what it is.
    let [left, right] = match compared.kind {
        kind::NEWDECIMAL => beside_exact([(left, compared), (right, other)]).map(|(operand, _)| operand),
        _ => [left, right],
    };
    let result = (Expr::NullIf(Box::new(left), Box::new(right)), Type { nullable: true, ..compared });
    let texts = [compared, said].iter().all(|ty| collation::counts(*ty));
    if texts { collation::under(result, rule) } else { result }
}

/// What has no type of numbers, a member or a hexadecimal literal, is rounded as a double.
fn as_double(wanted: bool, (number, ty): Bound) -> Bound {
    match wanted {
        true => {
            (Expr::Cast(Box::new(number), CastType::Double), Type { nullable: ty.nullable, ..Type::DOUBLE })
        }
        false => (number, ty),
    }
}

impl Binder<'_, '_> {
    /// As arithmetic, SUM and AVG want it: an ENUM or SET counts as a double there.
    pub(super) fn as_operand(&self, operand: Bound) -> Bound {
        as_double(matches!(operand.1.kind, kind::ENUM | kind::SET), self.as_number(operand))
    }
}

/// A text where a number is wanted stays what it is; strict mode is to see it.
fn number_in_text((expr, ty): Bound, seen_by: &'static functions::Function) -> Bound {
    match collation::counts(ty) {
        true => (Expr::Call(seen_by, vec![expr]), ty),
        false => (expr, ty),
    }
}

fn wanted(binder: &Binder<'_, '_>, function: &str, at: usize, argument: Bound) -> Bound {
    match function {
        "ROUND" | "TRUNCATE" | "CEIL" | "CEILING" | "FLOOR" | "ABS" if at == 0 => {
            let counted = may_be_number(&argument) && argument.1.kind != kind::BIT;
            number_in_text(as_double(counted, binder.as_number(argument)), &functions::NUMBER_IN_TEXT)
        }
        name if takes_numbers(name, at) => {
            number_in_text(binder.as_number(argument), &functions::NUMBER_IN_TEXT)
        }
        "BIN" | "OCT" => binder.bytes_as_number(argument),
        "CONV" if at == 0 => binder.bytes_as_number(argument),
        "HEX" if argument.1.kind == kind::BIT => binder.as_number(argument),
        name if counts_with(name, at) => {
            number_in_text(binder.as_number(argument), &functions::INTEGER_IN_TEXT)
        }
        "CRC32" => as_shown(argument),
        "WEIGHT_STRING" | "WEIGHT_STRING AS CHAR" if at == 0 => binder.weighed(argument),
        "WEIGHT_STRING AS BINARY" if at == 0 => as_text(binder.filled(as_shown(argument))),
        name if argument.1.kind == kind::YEAR && functions::is_of_days(name) => of_days(argument),
        // Of a number, whatever ZEROFILL shows of it.
        "HEX" => as_text(as_shown(argument)),
        // It may compare numbers.
        "FIELD" => as_text(as_shown(argument)),
        name if super::functions::of_texts(name) => as_text(binder.filled(as_shown(argument))),
        _ => argument,
    }
}

/// A document as its text.
pub(super) fn as_text((expr, ty): Bound) -> Bound {
    if ty.kind != kind::JSON {
        return (expr, ty);
    }
    let meant = Derivation::Implicit;
    let text = Type { collation: Collation::Utf8mb4Bin, derivation: meant, ..Type::text(ty.length) };
    (Expr::Collate(Box::new(expr), Collation::Utf8mb4Bin), Type { nullable: ty.nullable, ..text })
}

/// What becomes a part of a document: a condition is a boolean there.
pub(super) fn as_part(said: &ast::Expr, (expr, ty): Bound) -> Bound {
    if !said.is_condition() {
        return (expr, ty);
    }
    (Expr::Call(&functions::json::TRUTH, vec![expr]), Type { nullable: ty.nullable, ..Type::JSON })
}

/// A double with digits behind the point that are fixed, as it is shown.
pub(super) fn as_shown((expr, ty): Bound) -> Bound {
    if !ty.is_double() || ty.decimals > 30 {
        return (expr, ty);
    }
    let exact = CastType::Decimal { precision: 65, scale: ty.decimals };
    (Expr::Cast(Box::new(expr), exact), Type { nullable: ty.nullable, ..Type::decimal(65, ty.decimals) })
}

/// Whether an operand has one value for the whole statement. A user variable may have another one each time,
/// and so has a column of a query around this one.
pub(super) fn is_one_for_all((expr, _): &Bound) -> bool {
    expr.visit(&mut |inner| {
        inner.may_be_constant() && !matches!(inner, Expr::UserVariable(_) | Expr::Outer(_))
    })
}

/// Two operands of a comparison: a constant text beside an exact number that is none is an exact number, too.
/// Any other text and number are compared as doubles.
pub(super) fn beside_exact([left, right]: [Bound; 2]) -> [Bound; 2] {
    let is_exact = |operand: &Bound| operand.1.kind == kind::NEWDECIMAL && !is_one_for_all(operand);
    let is_read = |operand: &Bound| collation::counts(operand.1) && is_one_for_all(operand);
    let exact = |(expr, ty): Bound| {
        let exact = match expr {
            // One that is no number is read where it is executed: strict mode may refuse it.
            Expr::Literal(Value::Text(text, _)) if convert::parse_number(&text).complete => {
                Expr::Literal(Value::Decimal(Value::Text(text, Collation::Binary).to_decimal()))
            }
            said @ (Expr::Literal(_) | Expr::Parameter(_)) => {
                Expr::Call(&functions::EXACT_NUMBER, vec![said])
            }
            made => Expr::Call(&functions::EXACT_NUMBER_MADE, vec![made]),
        };
        (exact, Type { nullable: ty.nullable, ..functions::exact_number_type() })
    };
    match (&left, &right) {
        (number, text) if is_exact(number) && is_read(text) => [left, exact(right)],
        (text, number) if is_exact(number) && is_read(text) => [exact(left), right],
        _ => [left, right],
    }
}

/// A YEAR is the day it begins with, where a day is wanted.
pub(super) fn of_days((expr, ty): Bound) -> Bound {
    if ty.kind != kind::YEAR {
        return (expr, ty);
    }
    (Expr::Call(&functions::YEAR_BEGINS, vec![expr]), Type { nullable: ty.nullable, ..Type::datetime(0) })
}

/// A span beside a day or moment is a moment of today; a text there may name its offset.
pub(super) fn beside_moment(other: Type, (expr, ty): Bound) -> Bound {
    if !other.is_moment() {
        return (expr, ty);
    }
    let in_zone = match &expr {
        Expr::Literal(Value::Text(text, _)) => temporal::has_offset(text),
        Expr::Parameter(_) => ty.is_text(),
        _ => false,
    };
    if in_zone {
        return (Expr::Call(&functions::IN_ZONE, vec![expr]), ty);
    }
    if ty.kind != kind::TIME {
        return (expr, ty);
    }
    as_moment((expr, ty), CastType::DateTime { fraction: ty.decimals })
}

/// What is no text as one of bytes.
fn as_bytes((expr, ty): Bound) -> Bound {
    if collation::counts(ty) || ty.kind == kind::NULL {
        return (expr, ty);
    }
    let bytes = Type { nullable: ty.nullable, ..Type::bytes(ty.length) };
    (Expr::Cast(Box::new(expr), CastType::Binary { length: None }), bytes)
}

pub(super) fn as_moment((expr, ty): Bound, target: CastType) -> Bound {
    let to = Type { nullable: true, ..cast_type(&target) };
    if is_number(ty) {
        let day = Expr::Call(&functions::MOMENT_OF_NUMBER, vec![expr]);
        return as_moment((day, Type { nullable: true, ..Type::datetime(6) }), target);
    }
    if ty.kind == to.kind && ty.decimals == to.decimals {
        return (expr, ty);
    }
    (Expr::Cast(Box::new(expr), target), to)
}

/// A text between a number and a text is compared with both as a number. Any other pair is by itself.
fn doubles_between(operands: Vec<Bound>) -> Vec<Bound> {
    let is_text = |ty: &Type| ty.is_text() && ty.kind != kind::BIT;
    let texts = operands.iter().filter(|(_, ty)| is_text(ty)).count();
    let number = operands.iter().any(|(_, ty)| is_number(*ty));
    if texts != 2 || !number || operands.first().is_none_or(|(_, ty)| !is_text(ty)) {
        return operands;
    }
    let as_double = |(expr, ty): Bound| match is_text(&ty) {
        true => {
            (Expr::Cast(Box::new(expr), CastType::Double), Type { nullable: ty.nullable, ..Type::DOUBLE })
        }
        false => (expr, ty),
    };
    operands.into_iter().map(as_double).collect()
}

/// Text constants that are moments, beside days or moments.
fn among_moments(operands: Vec<Bound>) -> Vec<Bound> {
    let Some((_, moment)) = operands.iter().find(|(_, ty)| ty.is_moment()) else { return operands };
    let moment = *moment;
    let read = |(expr, ty): Bound| match &expr {
        Expr::Literal(Value::Text(text, _)) => match temporal::parse_datetime(text, Today::default()) {
            Some((value, digits, _)) => {
                (Expr::Literal(Value::DateTime(value, digits)), Type::datetime(digits).not_null())
            }
            None => (expr, ty),
        },
        _ => beside_moment(moment, (expr, ty)),
    };
    operands.into_iter().map(read).collect()
}

/// Refuses arguments that COLLATE gives several collations, where the result is made of them.
fn check_said(function: &str, arguments: &[Bound]) -> Result<(), SqlError> {
    const OF_ALL: &[&str] = &["COALESCE", "CONCAT", "CONCAT_WS", "GREATEST", "IFNULL", "LEAST", "NVL"];
    let skipped = match function {
        "ELT" | "EXPORT_SET" | "IF" | "MAKE_SET" => 1,
        function if OF_ALL.contains(&function) => 0,
        _ => return Ok(()),
    };
    let types: Vec<Type> = arguments.iter().skip(skipped).map(|(_, ty)| *ty).collect();
    collation::check_explicit(&function.to_ascii_lowercase(), &types)
}

/// Texts of which the first is compared with others, and a day or moment among them: all of them are moments
/// then, and what is none is the zero one.
fn texts_among_moments(operands: Vec<Bound>) -> Vec<Bound> {
    let is_text = |(_, ty): &Bound| collation::counts(*ty);
    let others = operands.get(1..).unwrap_or_default();
    let moment = others.iter().any(|(_, ty)| ty.is_moment());
    let texts = operands.first().is_some_and(is_text) && others.iter().any(is_text);
    if !moment || !texts || !operands.iter().all(|operand| is_text(operand) || operand.1.is_moment()) {
        return operands;
    }
    let read = |operand: Bound| match is_text(&operand) {
        true => {
            let ty = Type { nullable: operand.1.nullable, ..Type::datetime(6) };
            (Expr::Call(&functions::MOMENT_OF_TEXT, vec![operand.0]), ty)
        }
        false => operand,
    };
    operands.into_iter().map(read).collect()
}

/// The arguments of GREATEST and LEAST: whatever stands among days and moments is what those are.
fn among_extremes(operands: Vec<Bound>) -> Vec<Bound> {
    let days = operands.iter().all(|(_, ty)| !ty.is_temporal() || ty.kind == kind::DATE);
    let digits = |(expr, ty): &Bound| match expr {
        Expr::Literal(Value::Text(text, _)) => {
            temporal::parse_datetime(text, Today::default()).map_or(0, |(_, digits, _)| digits)
        }
        _ if ty.is_temporal() => ty.decimals,
        _ if ty.is_integer() => 0,
        _ => 6,
    };
    let fraction = operands.iter().map(digits).max().unwrap_or(0);
    let target = if days { CastType::Date } else { CastType::DateTime { fraction } };
    operands.into_iter().map(|operand| as_moment(operand, target.clone())).collect()
}

/// Whether FIELD compares texts with each other.
fn are_texts(operands: &[Bound]) -> bool {
    let text = |ty: Type| collation::counts(ty) || ty.is_temporal();
    let null = |ty: Type| ty.kind == kind::NULL;
    operands.iter().all(|(_, ty)| text(*ty) || null(*ty)) && operands.iter().any(|(_, ty)| text(*ty))
}

impl Binder<'_, '_> {
    /// A column with ZEROFILL, or a YEAR, as it is shown.
    pub(super) fn filled(&self, (expr, ty): Bound) -> Bound {
        if ty.kind == kind::YEAR {
            return year_as_text((expr, ty));
        }
        // One with digits behind its point is a number of those already.
        let shown = match &expr {
            Expr::Cast(inner, CastType::Decimal { .. }) => inner,
            other => other,
        };
        let column = self.source_column(shown);
        match column.and_then(|(source, column)| source.columns.get(usize::from(column))) {
            Some(SourceColumn { flags, shown_length: Some(width), .. })
                if flags & column_flag::ZEROFILL != 0 =>
            {
                let width = Expr::Literal(Value::Int(i64::from(*width)));
                let text = Type { nullable: ty.nullable, ..Type::text(255) };
                (Expr::Call(&functions::ZERO_FILLED, vec![expr, width]), text)
            }
            _ => (expr, ty),
        }
    }

    /// The arguments of a function that compares them with each other, or answers one of them.
    pub(super) fn together(&self, function: &str, arguments: Vec<Bound>) -> Result<Vec<Bound>, SqlError> {
        check_said(function, &arguments)?;
        match function {
            "GREATEST" | "LEAST" => collation::each_under_one(self.extremes(arguments)),
            "NULLIF" => {
                let arguments = match <[Bound; 2]>::try_from(arguments) {
                    Ok([one, other]) => {
                        let other = if is_number(one.1) { self.as_number(other) } else { other };
                        let types = (one.1, other.1);
                        beside_exact([beside_year(types.1, one), beside_year(types.0, other)]).into()
                    }
                    Err(arguments) => arguments,
                };
                collation::under_one("nullif", arguments)
            }
            "FIELD" if are_texts(&arguments) => collation::under_that_at(
                0,
                arguments.into_iter().map(|text| self.as_own_text(text)).collect(),
            ),
            "FIELD" if arguments.iter().all(|(_, ty)| ty.is_integer()) => {
                let first = arguments.first().map_or(Type::NULL, |(_, ty)| *ty);
                Ok(arguments.into_iter().map(|argument| with_sign_of(first, argument)).collect())
            }
            // Where one is no text all are numbers.
            "FIELD" => Ok(arguments.into_iter().map(|argument| self.as_number(argument)).collect()),
            "INSTR" => collation::under_that_at(0, arguments),
            "LOCATE" => collation::under_that_at(1, arguments),
            "CONCAT_WS" => collation::each_under_one(arguments),
            "STRCMP" | "FIND_IN_SET" => collation::under_one(&function.to_ascii_lowercase(), arguments),
            "EXTRACTVALUE" | "UPDATEXML" => {
                let arguments = collation::under_one(&function.to_ascii_lowercase(), arguments)?;
                check_path(&arguments, self.planner)?;
                Ok(arguments)
            }
            "ELT" => {
                let mut number = arguments;
                let texts = number.split_off(1);
                number.extend(collation::each_under_one(texts)?);
                Ok(number)
            }
            "INSERT" | "LPAD" | "REPLACE" | "RPAD" | "SUBSTRING_INDEX" => {
                collation::put_into_first(arguments)
            }
            "REGEXP_LIKE" | "REGEXP_INSTR" | "REGEXP_SUBSTR" | "REGEXP_REPLACE" => {
                let mut searched = arguments;
                let rest = searched.split_off(2);
                // What a user variable has is bytes beside bytes.
                let variable = searched.iter().any(|(expr, _)| matches!(expr, Expr::UserVariable(_)));
                let mut searched = match collation::bytes_among_characters(&searched) {
                    Some(true) if variable => {
                        searched.into_iter().map(|text| collation::under(text, Collation::Binary)).collect()
                    }
                    // Refused when there are values.
                    Some(true) => searched,
                    Some(false) => searched.into_iter().map(as_bytes).collect(),
                    None => collation::under_one(&function.to_ascii_lowercase(), searched)?,
                };
                searched.extend(rest);
                Ok(searched)
            }
            "MAKE_SET" | "EXPORT_SET" => collation::joinable(arguments),
            name if functions::of_texts(name) => collation::joinable(arguments),
            _ => Ok(arguments),
        }
    }

    /// A day, moment or span as the text that it is shown as.
    pub(super) fn as_own_text(&self, (expr, ty): Bound) -> Bound {
        if !ty.is_temporal() {
            return (expr, ty);
        }
        let text = Expr::Cast(Box::new(expr), CastType::Char { length: None, charset: None, bin: false });
        self.in_connection((text, Type { nullable: ty.nullable, ..Type::text(ty.length) }))
    }

    /// The arguments of GREATEST and LEAST, which are compared as what they have in common: as texts where
    /// one of them is a text, unless one is a day or moment.
    fn extremes(&self, arguments: Vec<Bound>) -> Vec<Bound> {
        let any = |is: fn(&Type) -> bool| arguments.iter().any(|(_, ty)| is(ty));
        if any(|ty| ty.kind == kind::JSON) {
            return arguments;
        }
        if any(Type::is_moment) {
            return among_extremes(arguments);
        }
        let united = arguments.iter().map(|(_, ty)| *ty).reduce(Type::union).unwrap_or(Type::NULL);
        if united.is_text() && united.kind != kind::BIT {
            let shown = |argument: Bound| {
                let (expr, ty) = self.filled(as_shown(argument));
                let made = Type { nullable: ty.nullable, derivation: ty.derivation, ..united };
                if ty.is_text() && ty.kind != kind::BIT || ty.kind == kind::NULL {
                    (expr, ty)
                } else {
                    (converted((expr, ty), united), made)
                }
            };
            return arguments.into_iter().map(shown).collect();
        }
        let numbers = any(|ty| is_number(*ty));
        let number = |argument| if numbers { self.as_number(argument) } else { argument };
        arguments.into_iter().map(number).collect()
    }

    /// Where a number is wanted: [`Binder::as_integer`], and that of a date that a function answers as text;
    /// anything else as it is.
    pub(super) fn as_number(&self, (expr, ty): Bound) -> Bound {
        let number = Type { nullable: ty.nullable, ..Type::DOUBLE };
        let of_query = |query: &SelectPlan| query.items.first().is_some_and(functions::answers_moments);
        match &expr {
            _ if !ty.is_text() => self.as_integer((expr, ty)),
            Expr::Case { .. } if ty.unsigned => chosen_as_number((expr, ty)),
            chosen if self.chooses_members(chosen) => self.number_of_chosen((expr, ty)),
            Expr::Subquery(at) if self.subqueries.get(usize::from(*at)).is_some_and(of_query) => {
                (Expr::Call(&functions::MOMENT_NUMBER, vec![expr]), number)
            }
            answer if functions::answers_moments(answer) => (functions::moment_number(expr), number),
            _ => self.as_integer((expr, ty)),
        }
    }

    /// The number of an ENUM's or SET's members, of bits, of a hexadecimal literal; anything else as it is. A
    /// date as text is its text where it is stored, cast to an integer, or in a list of IN.
    pub(super) fn as_integer(&self, (expr, ty): Bound) -> Bound {
        match (&expr, ty.kind) {
            (_, kind::BIT) => number_of_bits((expr, ty)),
            (Expr::Literal(_), _) => literal_as_number((expr, ty)),
            (_, kind::ENUM | kind::SET) => match self.members(&expr) {
                Some(members) => {
                    let members = Arc::new(members.clone());
                    let number = Type { nullable: ty.nullable, ..Type::UINT };
                    (Expr::MemberNumber(Box::new(expr), members), number)
                }
                None => (expr, ty),
            },
            _ => (expr, ty),
        }
    }

    /// The column of a source, of this query or of one around it.
    pub(super) fn source_column(&self, column: &Expr) -> Option<(&Source, u16)> {
        match column {
            Expr::Column { source, column } => Some((self.sources.get(usize::from(*source))?, *column)),
            Expr::Outer(number) => self.around.outer?.source_column(*number),
            _ => None,
        }
    }

    /// The argument of WEIGHT_STRING: a member's number, which has a sign there, as a year has none, and a
    /// document's text.
    fn weighed(&self, argument: Bound) -> Bound {
        match argument.1.kind {
            kind::ENUM | kind::SET => {
                let (number, ty) = self.as_number(argument);
                (Expr::Cast(Box::new(number), CastType::Signed), Type { unsigned: false, ..ty })
            }
            kind::YEAR => (Expr::Cast(Box::new(argument.0), CastType::Unsigned), argument.1),
            kind::BIT => number_of_bits(argument),
            _ => as_text(argument),
        }
    }

    /// Bits and hexadecimal literals as numbers, anything else as it is.
    fn bytes_as_number(&self, argument: Bound) -> Bound {
        match argument.1.kind {
            kind::ENUM | kind::SET => argument,
            _ => self.as_integer(argument),
        }
    }

    /// Binds what is stored in a column of this type.
    pub fn stored(&mut self, expr: &ast::Expr, column: Type) -> Result<Expr, SqlError> {
        if let ast::Expr::Parameter(index) = expr {
            self.planner.state.parameters.note(*index, column);
        }
        let bound = self.bind(expr)?;
        let number = match bound.1.kind {
            kind::BIT => !matches!(column.kind, kind::BIT | kind::BLOB | kind::JSON),
            _ => is_number(column) && column.kind != kind::BIT,
        };
        Ok(match &bound.0 {
            // It is out of the range of any column.
            Expr::Literal(Value::Text(bytes, Collation::Binary))
                if number && bound.1.unsigned && bytes.len() > 8 =>
            {
                let beyond = if column.is_double() { f64::INFINITY } else { f64::MAX };
                Expr::Literal(Value::Double(beyond))
            }
            _ if number => self.as_integer(bound).0,
            _ => bound.0,
        })
    }

    /// Binds what is tested for truth.
    pub fn condition(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let bound = self.bind(expr)?;
        Ok(self.as_number(bound).0)
    }

    /// What IF and CASE test: a document as a number, not as one that is or is not 0.
    pub(super) fn chooser(&self, (expr, ty): Bound) -> Expr {
        match ty.kind {
            kind::JSON => Expr::Cast(Box::new(expr), CastType::Double),
            _ => self.as_number((expr, ty)).0,
        }
    }

    /// [`Binder::condition`] of WHERE and ON. There, as ODBC has it, `IS NULL` finds the zero dates of a
    /// column of a table, not of a view or derived table, that cannot be NULL.
    pub fn filter(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let mut condition = self.condition(expr)?;
        self.find_zero_dates(&mut condition);
        Ok(condition)
    }

    fn find_zero_dates(&self, condition: &mut Expr) {
        match condition {
            Expr::And(list) | Expr::Or(list) => list.iter_mut().for_each(|item| self.find_zero_dates(item)),
            Expr::IsNull(operand, false) => {
                let Expr::Column { source, column } = **operand else { return };
                let (_, ty) = self.at((source, column));
                let zero = match ty.kind {
                    kind::DATE => Value::Date(DateTime::default().date),
                    kind::DATETIME => Value::DateTime(DateTime::default(), 0),
                    _ => return,
                };
                let of_table = self.sources.get(usize::from(source)).is_some_and(Source::is_plain_table);
                if ty.nullable || !of_table {
                    return;
                }
                let column = Box::new(Expr::Column { source, column });
                let zero = Box::new(Expr::Literal(zero));
                let is_zero = Expr::Compare(ast::BinaryOperator::Equal, column.clone(), zero);
                *condition = Expr::Or(vec![Expr::IsNull(column, false), is_zero]);
            }
            _ => {}
        }
    }

    /// Operands that are compared with each other, all of them: as numbers where one is, in one collation.
    pub(super) fn comparable(
        &mut self,
        operation: &str,
        operands: Vec<Bound>,
    ) -> Result<Vec<Bound>, SqlError> {
        let mut operands = operands;
        if operands.iter().any(|(_, ty)| is_number(*ty)) {
            // Dates as texts are no numbers among several of IN, and as limits of BETWEEN.
            let literals = operands.iter().skip(1).all(|(expr, _)| matches!(expr, Expr::Literal(_)));
            let counted = match operation {
                "in" if operands.len() > 2 => usize::from(literals),
                "between" => 1,
                _ => operands.len(),
            };
            let number = |(at, operand)| match at < counted {
                _ if operation == "like" => self.bytes_as_number(operand),
                true => self.as_number(operand),
                false if self.chooses_members(&operand.0) => self.number_of_chosen(operand),
                false => self.as_integer(operand),
            };
            operands = operands.into_iter().enumerate().map(number).collect();
            let text = operation != "like" && collation::counts(operands[0].1);
            operands = operands.into_iter().map(|operand| beside_text(text, operand)).collect();
        }
        if let Some((_, year)) = operands.iter().find(|(_, ty)| ty.kind == kind::YEAR) {
            let year = *year;
            // IN compares what it has several of as it is.
            let is_one = operands.len() == 2 && (!is_number(operands[1].1) || operands[1].1.is_integer());
            // LIKE compares what is shown.
            if operation != "like" && (operation != "in" || is_one) {
                let as_year = |operand: Bound| match operation {
                    // The one of IN is compared as by `=`.
                    "in" => beside_year(year, year_of_moment(year, operand)),
                    _ => beside_year(year, operand),
                };
                operands = operands.into_iter().map(as_year).collect();
            }
        }
        if operation == "between" {
            operands = doubles_between(among_moments(texts_among_moments(spans_among_texts(
                between_numbers(self.is_lifted(), operands),
            ))));
        }
        if operation == "in" {
            operands = of_one_kind(operands);
        }
        collation::under_one(operation, operands)
    }
}
