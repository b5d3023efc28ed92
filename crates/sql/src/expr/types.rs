//! Result types: what a client is told of a column before there is a row, and CAST.

use std::borrow::Cow;

use untorn::types::{Collation, ColumnType, Date, SizeClass};

use super::super::ast::CastType;
use super::super::value::{Value, collation, decimal, temporal};
use super::functions::json;
use super::{Evaluated, functions};
use crate::context::SqlContext;
use crate::errors;
use crate::result::{ColumnMeta, charset, column_flag, kind};

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Protocol type number.
    pub kind: u8,
    /// Display length: characters for text, columns for the rest.
    pub length: u32,
    /// Digits behind the point.
    pub decimals: u8,
    /// UNSIGNED.
    pub unsigned: bool,
    /// May be NULL.
    pub nullable: bool,
    /// Of text; binary otherwise.
    pub collation: Collation,
    /// How much that collation is meant.
    pub derivation: Derivation,
}

/// How much the collation of a text is meant, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Derivation {
    /// COLLATE says so.
    Explicit,
    /// It is that of a column.
    Implicit,
    /// That of the connection, meant as much as a column's: of user variables and what CAST made.
    Connection,
    /// It is that of a name of the server.
    System,
    /// It is that of the connection.
    Coercible,
    /// The text is made of several that agree on none.
    Mixed,
}

impl Derivation {
    /// What MySQL counts: the lower, the more it is meant.
    pub fn rank(self) -> u8 {
        match self {
            Derivation::Explicit => 0,
            Derivation::Implicit | Derivation::Connection => 2,
            Derivation::System => 3,
            Derivation::Coercible => 4,
            Derivation::Mixed => 7,
        }
    }
}

impl Type {
    const fn of(kind: u8, length: u32, decimals: u8) -> Type {
        Type {
            kind,
            length,
            decimals,
            unsigned: false,
            nullable: true,
            collation: Collation::Binary,
            derivation: Derivation::Coercible,
        }
    }

    /// NULL.
    pub const NULL: Type = Type::of(kind::NULL, 0, 0);
    /// BIGINT.
    pub const INT: Type = Type::of(kind::LONGLONG, 20, 0);
    /// BIGINT UNSIGNED.
    pub const UINT: Type = Type { unsigned: true, ..Type::of(kind::LONGLONG, 20, 0) };
    /// A truth value.
    pub const BOOL: Type = Type { nullable: true, ..Type::of(kind::LONGLONG, 1, 0) };
    /// FLOAT.
    pub const FLOAT: Type = Type::of(kind::FLOAT, 12, 31);
    /// DOUBLE.
    pub const DOUBLE: Type = Type::of(kind::DOUBLE, 23, 31);
    /// JSON.
    pub const JSON: Type = Type::of(kind::JSON, u32::MAX, 0);
    /// DATE.
    pub const DATE: Type = Type::of(kind::DATE, 10, 0);

    /// Text of this many characters.
    pub const fn text(length: u32) -> Type {
        Type { collation: Collation::Utf8mb4GeneralCi, ..Type::of(kind::VAR_STRING, length, 0) }
    }

    /// Bytes.
    pub const fn bytes(length: u32) -> Type {
        Type::of(kind::VAR_STRING, length, 0)
    }

    /// DECIMAL.
    pub fn decimal(precision: u8, scale: u8) -> Type {
        Type::of(kind::NEWDECIMAL, u32::from(precision) + 1 + u32::from(scale > 0), scale)
    }

    /// DATETIME with digits of a second.
    pub fn datetime(fraction: u8) -> Type {
        Type::of(kind::DATETIME, 19 + fraction_length(fraction), fraction)
    }

    /// TIME with digits of a second.
    pub fn time(fraction: u8) -> Type {
        Type::of(kind::TIME, 10 + fraction_length(fraction), fraction)
    }

    /// The same, never NULL.
    pub fn not_null(self) -> Type {
        Type { nullable: false, ..self }
    }

    /// Whether values are integers.
    pub fn is_integer(&self) -> bool {
        matches!(self.kind, kind::TINY | kind::SHORT | kind::INT24 | kind::LONG | kind::LONGLONG | kind::YEAR)
    }

    /// Whether values are floating-point.
    pub fn is_double(&self) -> bool {
        matches!(self.kind, kind::FLOAT | kind::DOUBLE)
    }

    /// Whether values are days or moments.
    pub fn is_moment(&self) -> bool {
        matches!(self.kind, kind::DATE | kind::DATETIME | kind::TIMESTAMP)
    }

    /// Whether values are days, moments or spans.
    pub fn is_temporal(&self) -> bool {
        self.is_moment() || self.kind == kind::TIME
    }

    /// Whether values are text or bytes.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, kind::STRING | kind::VAR_STRING | kind::BLOB | kind::ENUM | kind::SET | kind::BIT)
    }

    /// Bytes of the longest text.
    pub fn bytes_max(&self) -> u32 {
        let characters = self.is_text() && self.kind != kind::BLOB && self.collation != Collation::Binary;
        self.length.saturating_mul(if characters { self.collation.bytes_per_char_max() } else { 1 })
    }

    /// Digits in total and after the point, when values count as exact numbers.
    pub fn digits(&self) -> (u8, u8) {
        if self.kind == kind::NEWDECIMAL {
            let point = 1 + u32::from(self.decimals > 0);
            return (self.length.saturating_sub(point).min(65) as u8, self.decimals);
        }
        (self.length.min(20) as u8, 0)
    }

    /// The type of a table's column.
    pub fn of_column(column: &ColumnType, nullable: bool) -> Type {
        let of = |kind, length, decimals| Type { nullable, ..Type::of(kind, length, decimals) };
        let derivation = Derivation::Implicit;
        let text = |kind, length, rule| Type { collation: rule, derivation, ..of(kind, length, 0) };
        let int = |kind, signed: u32, unsigned: bool| Type {
            unsigned,
            ..of(kind, if unsigned && kind != kind::LONGLONG { signed - 1 } else { signed }, 0)
        };
        match column {
            ColumnType::TinyInt { unsigned } => int(kind::TINY, 4, *unsigned),
            ColumnType::SmallInt { unsigned } => int(kind::SHORT, 6, *unsigned),
            ColumnType::MediumInt { unsigned } => int(kind::INT24, 9, *unsigned),
            ColumnType::Int { unsigned } => int(kind::LONG, 11, *unsigned),
            ColumnType::BigInt { unsigned } => int(kind::LONGLONG, 20, *unsigned),
            ColumnType::Float => Type { nullable, ..Type::FLOAT },
            ColumnType::Double => of(kind::DOUBLE, 22, 31),
            ColumnType::Decimal { precision, scale } => {
                Type { nullable, ..Type::decimal(*precision, *scale) }
            }
            ColumnType::Date => of(kind::DATE, 10, 0),
            ColumnType::DateTime { fraction } => {
                of(kind::DATETIME, 19 + fraction_length(*fraction), *fraction)
            }
            ColumnType::Timestamp { fraction } => {
                of(kind::TIMESTAMP, 19 + fraction_length(*fraction), *fraction)
            }
            ColumnType::Time { fraction } => of(kind::TIME, 10 + fraction_length(*fraction), *fraction),
            ColumnType::Year => Type { unsigned: true, ..of(kind::YEAR, 4, 0) },
            ColumnType::Char { chars, collation } => text(kind::STRING, *chars, *collation),
            ColumnType::VarChar { chars, collation } => text(kind::VAR_STRING, *chars, *collation),
            ColumnType::Binary { bytes } => text(kind::STRING, *bytes, Collation::Binary),
            ColumnType::VarBinary { bytes } => text(kind::VAR_STRING, *bytes, Collation::Binary),
            ColumnType::Text { size, collation } => text(kind::BLOB, blob_length(*size), *collation),
            ColumnType::Blob { size } => text(kind::BLOB, blob_length(*size), Collation::Binary),
            ColumnType::Json => Type { nullable, ..Type::JSON },
            ColumnType::Enum { members, collation } => {
                let longest = members.iter().map(|m| m.chars().count()).max().unwrap_or(0);
                text(kind::ENUM, longest as u32, *collation)
            }
            ColumnType::Set { members, collation } => {
                let all: usize = members.iter().map(|m| m.chars().count() + 1).sum();
                text(kind::SET, all.saturating_sub(1) as u32, *collation)
            }
            ColumnType::Bit { bits } => Type { unsigned: true, ..of(kind::BIT, u32::from(*bits), 0) },
        }
    }

    /// The column definition a client gets.
    pub fn meta(&self, name: &str) -> ColumnMeta {
        let is_text = self.is_text() && self.kind != kind::BIT && self.collation != Collation::Binary;
        let mut flags = 0;
        if !self.nullable {
            flags |= column_flag::NOT_NULL;
        }
        if self.unsigned {
            flags |= column_flag::UNSIGNED;
        }
        if !is_text {
            flags |= column_flag::BINARY;
        }
        let mut wire_kind = self.kind;
        match self.kind {
            kind::BLOB | kind::JSON => flags |= column_flag::BLOB,
            kind::ENUM => (wire_kind, flags) = (kind::STRING, flags | column_flag::ENUM),
            kind::SET => (wire_kind, flags) = (kind::STRING, flags | column_flag::SET),
            _ => {}
        }
        let length = if is_text { self.length.saturating_mul(4) } else { self.length };
        ColumnMeta {
            name: name.to_owned(),
            charset: if is_text { charset::UTF8MB4_GENERAL_CI } else { charset::BINARY },
            length,
            kind: wire_kind,
            flags,
            decimals: self.decimals,
            ..ColumnMeta::default()
        }
    }
}

fn fraction_length(fraction: u8) -> u32 {
    if fraction > 0 { 1 + u32::from(fraction) } else { 0 }
}

fn blob_length(size: SizeClass) -> u32 {
    u32::try_from(size.bytes_max()).unwrap_or(u32::MAX)
}

/// The type CAST gives.
pub fn cast_type(target: &CastType) -> Type {
    match target {
        CastType::Signed => Type::INT,
        CastType::Unsigned => Type::UINT,
        CastType::Char { length, charset, .. } => {
            let length = length.unwrap_or(1024);
            let ty =
                if charset.as_deref() == Some("binary") { Type::bytes(length) } else { Type::text(length) };
            Type { derivation: Derivation::Connection, ..ty }
        }
        CastType::Binary { length } => {
            Type { derivation: Derivation::Implicit, ..Type::bytes(length.unwrap_or(1024)) }
        }
        CastType::Decimal { precision, scale } => Type::decimal(*precision, *scale),
        CastType::Double | CastType::Float => Type::DOUBLE,
        CastType::Date => Type::DATE,
        CastType::DateTime { fraction } => Type::datetime(*fraction),
        CastType::Time { fraction } => Type::time(*fraction),
        CastType::Year => Type { unsigned: true, ..Type::of(kind::YEAR, 4, 0) },
        CastType::Json => Type::JSON,
    }
}

/// No DECIMAL has more digits.
const DECIMAL_DIGITS_MAX: u8 = 65;

/// `CAST(value AS target)`.
pub fn cast<'a>(value: Value<'a>, target: &CastType, state: &SqlContext) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    Ok(match target {
        CastType::Signed => {
            warn_of_text(&value, "INTEGER", state);
            let wide = cast_whole(&value, i128::from(i64::MAX), state);
            Value::Int(i64::try_from(wide).unwrap_or(match wide > 0 {
                true if wide <= i128::from(u64::MAX) => wide as u64 as i64,
                // Text is read as an unsigned number.
                true if matches!(value, Value::Text(..)) => -1,
                true => i64::MAX,
                false => i64::MIN,
            }))
        }
        CastType::Unsigned => {
            warn_of_text(&value, "INTEGER", state);
            let mut wide = cast_whole(&value, i128::from(u64::MAX), state);
            if matches!(value, Value::Text(..)) {
                wide = wide.max(i128::from(i64::MIN));
            }
            Value::UInt(if wide < 0 { (wide as i64) as u64 } else { wide.min(i128::from(u64::MAX)) as u64 })
        }
        CastType::Char { length, charset, .. } => {
            let rule = if charset.as_deref() == Some("binary") {
                Collation::Binary
            } else {
                Collation::Utf8mb4GeneralCi
            };
            if let Value::Text(bytes, Collation::Binary) = &value
                && rule != Collation::Binary
                && let Some(error) = functions::invalid_text(bytes)
            {
                state.warn(error);
                return Ok(Value::Null);
            }
            cut_text(value, *length, rule, state)
        }
        CastType::Binary { length } => {
            if let Some(length) = length
                && !functions::text_fits(*length as usize, "cast_as_binary", state)
            {
                return Ok(Value::Null);
            }
            let mut text = value.to_text().into_owned();
            if let Some(length) = length {
                if text.len() > *length as usize {
                    warn_of_cut(&text, "BINARY", *length, state);
                }
                text.resize(*length as usize, 0);
            }
            Value::Text(Cow::Owned(text), Collation::Binary)
        }
        CastType::Decimal { precision, scale } => {
            warn_of_text(&value, "DECIMAL", state);
            let rounded = decimal::round(&value.to_decimal(), i64::from(*scale));
            let kept = clamp_decimal(rounded.clone(), *precision, *scale);
            if kept != rounded && *precision < DECIMAL_DIGITS_MAX && state.changes_strictly.get() {
                return Err(errors::error(errors::WARN_DATA_OUT_OF_RANGE, &[&"(null)", &1]));
            }
            Value::Decimal(kept)
        }
        CastType::Double => {
            warn_of_text(&value, "DOUBLE", state);
            Value::Double(value.to_double())
        }
        CastType::Float => {
            warn_of_text(&value, "DOUBLE", state);
            let double = value.to_double();
            let float = double as f32;
            if float.is_infinite() && double.is_finite() {
                let shown = format!("cast({} as float)", value.to_string_lossy());
                return Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"DOUBLE", &shown]));
            }
            Value::Float(float)
        }
        CastType::Date => day(&value, state),
        CastType::DateTime { fraction } => moment(&value, *fraction, state),
        CastType::Time { fraction } => span(&value, *fraction, state),
        CastType::Year => year(&value, state),
        CastType::Json => json::cast(&value, state)?,
    })
}

/// The day that a value means; NULL with a warning where it is none.
fn day<'a>(value: &Value<'_>, state: &SqlContext) -> Value<'a> {
    match whole_of_day(value).to_datetime(state.today()) {
        Some((moment, _)) if !is_refused(value, moment.date, state) => {
            warn_of_rest(value, true, state);
            Value::Date(moment.date)
        }
        _ => no_day(value, state),
    }
}

fn moment<'a>(value: &Value<'_>, fraction: u8, state: &SqlContext) -> Value<'a> {
    match value.to_datetime(state.today()) {
        Some((moment, _)) if !is_refused(value, moment.date, state) => {
            warn_of_rest(value, false, state);
            Value::DateTime(functions::kept_datetime(moment, fraction, state), fraction)
        }
        _ => incorrect(value, "datetime", state),
    }
}

fn span<'a>(value: &Value<'_>, fraction: u8, state: &SqlContext) -> Value<'a> {
    let Some((span, _)) = value.to_time(state.today()) else { return truncated(value, "time", state) };
    let read = |text: &[u8]| temporal::parse_time(text, state.today());
    if matches!(value, Value::Text(text, _) if read(text).is_some_and(|(.., cut)| cut)) {
        let _: Value<'_> = truncated(value, "time", state);
    }
    Value::Time(functions::kept_time(span, fraction, state), fraction)
}

/// The year that a value means; NULL with a warning where a YEAR has none.
fn year<'a>(value: &Value<'_>, state: &SqlContext) -> Value<'a> {
    let number = match value {
        Value::Text(text, _) => {
            let known = crate::value::convert::parse_number(text);
            if known.length == 0 {
                // No error, whatever the mode is.
                state.warn(errors::error(errors::WRONG_VALUE, &[&"YEAR", &value.to_string_lossy()]));
                return Value::Null;
            }
            if !known.complete {
                truncated(value, "YEAR", state);
            }
            // A zero that is text is the year 2000.
            match value.to_whole() {
                0 => 2000,
                number => number,
            }
        }
        _ if value.is_temporal() => match value.to_datetime(state.today()) {
            Some((moment, _)) if moment.date.year > 99 => i128::from(moment.date.year),
            _ => -1,
        },
        _ => value.to_integer(),
    };
    match number {
        0 | 1901..=2155 => Value::UInt(number as u64),
        1..=69 => Value::UInt(number as u64 + 2000),
        70..=99 => Value::UInt(number as u64 + 1900),
        number => truncated(&Value::text(number.to_string()), "YEAR", state),
    }
}

/// What counts of a value for its day: of an exact number the whole, which is not rounded up to the next day.
pub(super) fn whole_of_day<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::Decimal(number) => Value::Decimal(number.with_scale(0)),
        value => value.borrowed(),
    }
}

/// Whether the SQL mode keeps a text or number from being this day.
fn is_refused(value: &Value<'_>, date: Date, state: &SqlContext) -> bool {
    let zero = date.month == 0 || date.day == 0;
    zero && !value.is_temporal() && state.refuses_zero_dates(date)
}

/// What becomes an integer: doubles are cut later. An exact number is the nearest one that there is.
fn cast_whole(value: &Value<'_>, most: i128, state: &SqlContext) -> i128 {
    match value {
        Value::Text(..) => value.to_whole(),
        Value::Decimal(_) => {
            let whole = value.to_integer();
            let nearest = whole.clamp(i128::from(i64::MIN), most);
            if nearest != whole {
                let text = value.to_string_lossy();
                state.warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &text]));
            }
            nearest
        }
        // A double is cut at the ends of BIGINT, whatever it is cast to.
        _ => value.to_whole(),
    }
}

fn cut_text<'a>(value: Value<'a>, length: Option<u32>, rule: Collation, state: &SqlContext) -> Value<'a> {
    let text: Cow<'_, [u8]> = match value {
        Value::Text(text, _) => text,
        other => Cow::Owned(other.to_text().into_owned()),
    };
    let Some(length) = length else { return Value::Text(text, rule) };
    let end = collation::char_offset(&text, length as usize, rule);
    if end < text.len() {
        warn_of_cut(&text, if rule == Collation::Binary { "BINARY" } else { "CHAR" }, length, state);
    }
    match text {
        Cow::Borrowed(text) => Value::Text(Cow::Borrowed(&text[..end]), rule),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Value::Text(Cow::Owned(text), rule)
        }
    }
}

/// The nearest value that this many digits can hold.
pub fn clamp_decimal(
    value: super::super::value::BigDecimal,
    precision: u8,
    scale: u8,
) -> super::super::value::BigDecimal {
    let whole = usize::from(precision - scale.min(precision));
    let mut text = if whole == 0 { "0".to_owned() } else { "9".repeat(whole) };
    if scale > 0 {
        text.push('.');
        text.push_str(&"9".repeat(usize::from(scale)));
    }
    match decimal::parse(&text) {
        Some(limit) if value > limit => limit,
        Some(limit) if value < -limit.clone() => -limit,
        _ => value,
    }
}

/// CAST that cuts a text, of blanks as well.
fn warn_of_cut(text: &[u8], kind: &str, length: u32, state: &SqlContext) {
    let target = format!("{kind}({length})");
    let shown = match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => errors::printable(text),
    };
    state.warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&target, &shown]));
}

fn warn_of_text(value: &Value<'_>, kind: &str, state: &SqlContext) {
    if let Value::Text(text, _) = value {
        let number = crate::value::convert::parse_number(text);
        let partial = kind == "INTEGER" && text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
        // A double is 0 where there are only blanks, and no more than the largest one.
        let blank = kind == "DOUBLE" && text.iter().all(u8::is_ascii_whitespace);
        let beyond = match kind {
            "DOUBLE" => number.overflow,
            "INTEGER" => !(i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value.to_whole()),
            _ => false,
        };
        if !number.complete && !blank || partial || beyond {
            state
                .warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &String::from_utf8_lossy(text)]));
        }
    }
}

fn truncated<'a>(value: &Value<'_>, kind: &str, state: &SqlContext) -> Value<'a> {
    state.warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &value.to_string_lossy()]));
    Value::Null
}

/// What is no day for CAST: of a text, which an exact number is read as, it is said that it was cut.
fn no_day<'a>(value: &Value<'_>, state: &SqlContext) -> Value<'a> {
    match value {
        Value::Text(..) | Value::Decimal(_) => truncated(value, "date", state),
        _ => incorrect(value, "datetime", state),
    }
}

/// What stands behind a moment in a text.
fn warn_of_rest(value: &Value<'_>, day: bool, state: &SqlContext) {
    let Value::Text(text, _) = value else { return };
    if temporal::parse_datetime(text, state.today()).is_some_and(|(.., rest)| rest) {
        let has_time = !day && text.contains(&b':');
        let _: Value<'_> = truncated(value, if has_time { "datetime" } else { "date" }, state);
    }
}

fn incorrect<'a>(value: &Value<'_>, kind: &str, state: &SqlContext) -> Value<'a> {
    let text = value.to_string_lossy();
    let mut warning = errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &text]);
    warning.message = format!("Incorrect {kind} value: '{text}'").into();
    state.warn(warning);
    Value::Null
}
