//! Built-in functions that need nothing but the values of their arguments and the context.
//!
//! A table for each kind of argument: name, how many arguments, the result's type, the code. NULL arguments
//! give NULL unless the function says otherwise. Functions that wait (SLEEP, GET_LOCK) are the
//! executor's.

mod addresses;
mod bytes;
mod chunks;
mod date_reading;
mod digests;
mod encodings;
mod encryption;
pub mod json;
mod load_file;
mod locale;
mod make_set;
mod moment_number;
mod numeric;
mod periods;
mod regular_expressions;
mod roles_graph;
mod soundex;
mod statement_digests;
pub(crate) mod temporal;
mod text;
mod time_format;
mod time_units;
mod units;
mod uuids;
mod weight_string;
pub mod xml;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use untorn::types::Collation;

use super::super::value::temporal::Today;
use super::super::value::{Value, collation};
use super::types::Type;
use super::{Context, Evaluated, Expr};
use crate::context::SqlContext;
use crate::errors;

pub use bytes::{
    BYTES_AND, BYTES_COUNT, BYTES_LEFT, BYTES_NOT, BYTES_OR, BYTES_RIGHT, BYTES_XOR, FITTED_TO_ASCII,
    FITTED_TO_LATIN1, FITTED_TO_UTF8MB3, ONLY_IN_LATIN1, VALID_TEXT, invalid_text, refuse_foreign,
};
pub use make_set::PLACE_OF_MEMBER;
pub use moment_number::{
    DAY_IN_LIST, DAY_OF_NUMBER, DAY_SOUGHT, MOMENT_DIGITS, MOMENT_NUMBER, MOMENT_OF_NUMBER, MOMENT_OF_TEXT,
    MOMENT_OR_NONE, SPAN_IN_LIST, SPAN_OF_TEXT, SPAN_OR_NONE, SPAN_SOUGHT, SPAN_TEXT, answers_moments,
    moment_number,
};
pub use numeric::{
    EXACT_NUMBER, EXACT_NUMBER_MADE, FULL_YEAR, INTEGER_IN_TEXT, NUMBER_IN_TEXT, ZERO_FILLED,
    exact_number_type,
};
pub use temporal::{
    DAY_OF_MODE, IN_ZONE, YEAR_BEGINS, date_shift, interval_type_digits, is_of_days, kept_datetime,
    kept_time, round_datetime, round_time,
};
pub use text::trim;
pub use time_units::{extract, finer_than_day, is_of_clock, timestamp_diff};

/// Whose collation a text has that a function answers; it is meant as much as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOf {
    /// The one that the arguments have in common.
    Arguments,
    /// The first argument's, whatever the others are.
    First,
    /// The connection's, as a literal's: the function writes something of its own.
    Connection,
}

/// A function.
pub struct Function {
    /// Upper-case name.
    pub name: &'static str,
    /// Fewest arguments.
    pub least: usize,
    /// Most arguments.
    pub most: usize,
    /// Not the same for all rows of a statement (RAND, UUID).
    pub volatile: bool,
    /// Whose the collation of its text is.
    pub text_of: TextOf,
    /// Its type from those of the arguments.
    pub result: fn(&[Type]) -> Type,
    /// Its value.
    pub eval: for<'a> fn(&[Value<'a>], &Context<'a>) -> Evaluated<'a>,
}

impl Function {
    /// One whose text has the collation of that.
    pub(crate) const fn with_text_of(self, text_of: TextOf) -> Function {
        Function { text_of, ..self }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

macro_rules! function {
    ($name:literal, $least:literal.., $result:expr, $eval:expr) => {
        function!($name, $least..=usize::MAX, $result, $eval)
    };
    ($name:literal, $least:literal..=$most:expr, $result:expr, $eval:expr) => {
        Function {
            name: $name,
            least: $least,
            most: $most,
            volatile: false,
            text_of: $crate::expr::functions::TextOf::Arguments,
            result: $result,
            eval: $eval,
        }
    };
}

pub(crate) use function;

/// ANY_VALUE: what it stands around. It tells ONLY_FULL_GROUP_BY that any row of the group will do.
pub static ANY_VALUE: Function = function!("ANY_VALUE", 1..=1, widest, |v, _| Ok(v[0].clone()));

/// The function of this (upper-case) name.
pub fn find(name: &str) -> Option<&'static Function> {
    tables().find(|function| function.name == name)
}

/// The function that stands for one whose constant argument is none: STR_TO_DATE with a format of each row.
pub fn of_row(function: &'static Function, arguments: &[Expr]) -> &'static Function {
    match (function.name, arguments.get(1)) {
        ("STR_TO_DATE", Some(format)) if !matches!(format, Expr::Literal(_)) => {
            &date_reading::STR_TO_DATETIME
        }
        _ => function,
    }
}

/// Whether it is a function of texts.
pub fn of_texts(name: &str) -> bool {
    let tables = [
        text::FUNCTIONS,
        digests::FUNCTIONS,
        encodings::FUNCTIONS,
        encryption::FUNCTIONS,
        regular_expressions::FUNCTIONS,
        soundex::FUNCTIONS,
        xml::FUNCTIONS,
    ];
    tables.into_iter().flatten().any(|function| function.name == name)
}

fn tables() -> impl Iterator<Item = &'static Function> {
    let tables = [
        numeric::FUNCTIONS,
        text::FUNCTIONS,
        temporal::FUNCTIONS,
        periods::FUNCTIONS,
        make_set::FUNCTIONS,
        addresses::FUNCTIONS,
        date_reading::FUNCTIONS,
        digests::FUNCTIONS,
        encodings::FUNCTIONS,
        encryption::FUNCTIONS,
        load_file::FUNCTIONS,
        regular_expressions::FUNCTIONS,
        roles_graph::FUNCTIONS,
        soundex::FUNCTIONS,
        statement_digests::FUNCTIONS,
        units::FUNCTIONS,
        uuids::FUNCTIONS,
        weight_string::FUNCTIONS,
        xml::FUNCTIONS,
        super::session_functions::FUNCTIONS,
    ];
    tables.into_iter().chain(json::FUNCTIONS).flatten()
}

/// The type of a result that depends on the value of an argument, where that is a constant.
pub fn type_of_constants(name: &str, arguments: &[Expr]) -> Option<Type> {
    match (name, arguments) {
        ("UNIX_TIMESTAMP", [Expr::Literal(Value::Text(text, _))]) => {
            let read = crate::value::temporal::parse_datetime(text, Today::default());
            let digits = read.map_or(0, |(_, digits, _)| digits);
            Some(if digits == 0 { Type::INT } else { Type::decimal(12 + digits, digits) })
        }
        ("WEIGHT_STRING AS BINARY", [_, Expr::Literal(length)]) => {
            Some(Type::bytes(u32::try_from(length.to_i64()).unwrap_or(u32::MAX)))
        }
        ("SHA2", [_, Expr::Literal(bits)]) => digests::sha2_digits(bits.to_i64()).map(Type::text),
        ("STR_TO_DATE", [_, Expr::Literal(Value::Text(format, _))]) => {
            Some(date_reading::Kind::of_format(format).ty())
        }
        _ => None,
    }
}

/// How many arguments a function takes; `None` when there is none of this (upper-case) name.
pub fn arguments_of(name: &str) -> Option<RangeInclusive<usize>> {
    Some(match name {
        "COALESCE" => 1..=usize::MAX,
        "IFNULL" | "NVL" | "NULLIF" | "NAME_CONST" => 2..=2,
        "ANY_VALUE" => 1..=1,
        "IF" => 3..=3,
        name => find(name).map(|function| function.least..=function.most)?,
    })
}

fn text_sum(types: &[Type]) -> Type {
    let length = types.iter().fold(0u32, |sum, t| sum.saturating_add(t.length));
    let rule = types.iter().filter(|t| t.is_text()).map(|t| t.collation).reduce(collation::common);
    let rule = rule.unwrap_or(Collation::Utf8mb4GeneralCi);
    if rule == Collation::Binary {
        Type::bytes(length)
    } else {
        Type { collation: rule, ..Type::text(length) }
    }
}

fn widest(types: &[Type]) -> Type {
    types.iter().copied().reduce(Type::union).unwrap_or(Type::NULL)
}

fn any_null(values: &[Value<'_>]) -> bool {
    values.iter().any(Value::is_null)
}

fn owned_text<'a>(text: Vec<u8>, rule: Collation) -> Value<'a> {
    Value::Text(Cow::Owned(text), rule)
}

/// Whether a text of this many bytes may be made; if not, warning 1301 has been given, and the result is
/// NULL.
pub fn text_fits(bytes: usize, function: &str, state: &SqlContext) -> bool {
    let max = state.terms().packet_bytes_max;
    if bytes > max {
        state.warn(errors::error(errors::ALLOWED_PACKET_OVERFLOWED, &[&function, &max]));
    }
    bytes <= max
}

fn index(values: &[Value<'_>], at: usize) -> i64 {
    values.get(at).map_or(0, Value::to_i64)
}

/// Reads a number for LIMIT and the like.
pub fn as_count(value: &Value<'_>) -> u64 {
    value.to_whole().clamp(0, i128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_upper_case() {
        let mut names: Vec<_> = tables().map(|f| f.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(names.iter().all(|name| name.to_ascii_uppercase() == *name));
    }
}
