//! Between values and a table's columns: reading stored bytes, and storing values with the checks of strict
//! mode (range, length, zero dates of NO_ZERO_DATE). A TIMESTAMP is stored in UTC and read in the session's
//! time zone; both conversions are here.

use std::borrow::Cow;

use bigdecimal::num_bigint::Sign;

use untorn::schema::ColumnDef;
use untorn::types::{self, Charset, Collation, ColumnType, Date, DateTime, EncodeError, Time};

use super::expr::functions;
use super::value::json::{Json, Room, Source, binary};
use super::value::{
    Value, collation, convert, decimal,
    temporal::{self, Today},
};
use crate::context::SqlContext;
use crate::errors;
use crate::result::SqlError;

/// A big-endian integer of up to eight bytes.
#[inline]
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// A stored signed integer: big-endian with the sign bit flipped.
#[inline]
pub fn signed_int(bytes: &[u8]) -> i64 {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return i64::from((u32::from_be_bytes(four) ^ 0x8000_0000) as i32);
    }
    let bits = 8 * bytes.len() as u32;
    if bits == 0 {
        return 0;
    }
    let shift = 64 - bits;
    ((unsigned(bytes) ^ 1 << (bits - 1)) << shift) as i64 >> shift
}

/// Without trailing spaces.
#[inline]
pub fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1)]
}

/// The value of stored bytes. TIMESTAMP moves to the zone given. Bytes that are no value of the type
/// (damage) read as NULL.
pub fn decode<'a>(bytes: &'a [u8], kind: &ColumnType, time_zone: i32) -> Value<'a> {
    match kind {
        ColumnType::Char { collation, .. } => {
            Value::Text(collation.charset().to_utf8(trimmed(bytes)), *collation)
        }
        ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
            Value::Text(collation.charset().to_utf8(bytes), *collation)
        }
        ColumnType::Binary { .. }
        | ColumnType::VarBinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Bit { .. } => Value::Text(Cow::Borrowed(bytes), Collation::Binary),
        ColumnType::Json => Value::Json(Cow::Borrowed(bytes)),
        kind => match kind.integer() {
            Some((_, true)) => Value::UInt(unsigned(bytes)),
            Some((_, false)) => Value::Int(signed_int(bytes)),
            None => decode_other(bytes, kind, time_zone),
        },
    }
}

fn decode_other<'a>(bytes: &'a [u8], kind: &ColumnType, time_zone: i32) -> Value<'a> {
    match types::decode(bytes, kind) {
        None | Some(types::Value::Null) => Value::Null,
        Some(types::Value::Int(v)) => Value::Int(v),
        Some(types::Value::UInt(v)) => Value::UInt(v),
        Some(types::Value::Float(v)) => Value::Float(v),
        Some(types::Value::Double(v)) => Value::Double(v),
        Some(types::Value::Decimal(text)) => decimal::parse(&text).map_or(Value::Null, Value::Decimal),
        Some(types::Value::Bytes(bytes)) => Value::Text(bytes, kind.collation()),
        Some(types::Value::Date(v)) => Value::Date(v),
        Some(types::Value::Time(v)) => Value::Time(v, fraction(kind)),
        Some(types::Value::DateTime(v)) => {
            let local = match kind {
                ColumnType::Timestamp { .. } if v != DateTime::default() && time_zone != 0 => {
                    DateTime::from_unix(v.to_unix() + i64::from(time_zone), v.micros)
                }
                _ => v,
            };
            Value::DateTime(local, fraction(kind))
        }
    }
}

/// What a column stores of the bytes of a BIT: the number that they are, unless it has bytes or bits itself.
pub fn of_bits<'v>(bytes: Value<'v>, kind: &ColumnType) -> Value<'v> {
    match (bytes, kind) {
        (
            bytes,
            ColumnType::Bit { .. } | ColumnType::Text { .. } | ColumnType::Blob { .. } | ColumnType::Json,
        ) => bytes,
        (Value::Text(bytes, _), _) => Value::UInt(unsigned(&bytes)),
        (other, _) => other,
    }
}

/// Digits of a second a column keeps.
pub fn fraction(kind: &ColumnType) -> u8 {
    match kind {
        ColumnType::DateTime { fraction }
        | ColumnType::Timestamp { fraction }
        | ColumnType::Time { fraction } => *fraction,
        _ => 0,
    }
}

/// What storing needs to know beside the value.
pub struct Storing<'a> {
    /// SQL mode, clock and warnings.
    pub state: &'a SqlContext,
    /// Name of the table, for messages.
    pub table: &'a str,
    /// Row number in the statement, from 1, for messages.
    pub row: u64,
    /// Errors become warnings and the nearest value is stored (not strict, or IGNORE).
    pub lenient: bool,
}

/// The last second of TIMESTAMP, in 2038.
const TIMESTAMP_SECONDS_MAX: i64 = i32::MAX as i64;

/// The largest span as a number.
const TIME_NUMBER_MAX: u128 = 8_385_959;

/// Name of a type in "Incorrect … value".
fn kind_name(kind: &ColumnType) -> &'static str {
    match kind {
        ColumnType::Decimal { .. } => "decimal",
        ColumnType::Float => "FLOAT",
        ColumnType::Double => "DOUBLE",
        ColumnType::Date => "date",
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => "datetime",
        ColumnType::Time { .. } => "time",
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. } => "string",
        _ => "integer",
    }
}

impl Storing<'_> {
    /// An error in strict mode, a warning otherwise.
    fn complain(&self, code: u16, column: &ColumnDef) -> Result<(), SqlError> {
        let error = errors::error(code, &[&column.name, &self.row]);
        self.raise(error)
    }

    fn raise(&self, error: SqlError) -> Result<(), SqlError> {
        if !self.lenient {
            return Err(error);
        }
        self.state.warn(error);
        Ok(())
    }

    fn incorrect(&self, value: &Value<'_>, column: &ColumnDef) -> Result<(), SqlError> {
        let kind = kind_name(&column.kind);
        let temporal = matches!(kind, "date" | "datetime" | "time");
        let mut error = errors::error(
            errors::TRUNCATED_WRONG_VALUE_FOR_FIELD,
            &[&kind, &value.to_string_lossy(), &column.name, &self.row],
        );
        if temporal && self.lenient {
            error = errors::error(errors::WARN_DATA_TRUNCATED, &[&column.name, &self.row]);
        } else if temporal {
            error = SqlError::new(errors::TRUNCATED_WRONG_VALUE, b"22007", error.message);
        }
        self.raise(error)
    }

    /// [`Storing::incorrect`] of a date that is one, and cannot be stored.
    fn impossible(&self, value: &Value<'_>, column: &ColumnDef) -> Result<(), SqlError> {
        match self.lenient {
            true => self.complain(errors::WARN_DATA_OUT_OF_RANGE, column),
            false => self.incorrect(value, column),
        }
    }

    /// Appends the zero of a DATE, DATETIME or TIMESTAMP, whatever the mode says of it.
    pub(crate) fn zero_moment(&self, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.put(&types::Value::DateTime(DateTime::default()), column, out)
    }

    /// Appends the stored form of a value that is not NULL.
    pub fn encode(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let kind = &column.kind;
        if let Some((width, unsigned)) = kind.integer() {
            return self.integer(value, column, width, unsigned, out);
        }
        match kind {
            kind if kind.is_string() => self.string(value, column, out),
            ColumnType::Float | ColumnType::Double => self.float(value, column, out),
            ColumnType::Decimal { precision, scale } => self.decimal(value, column, *precision, *scale, out),
            ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
                self.datetime(value, column, out)
            }
            ColumnType::Time { fraction } => self.time(value, column, *fraction, out),
            ColumnType::Year => self.year(value, column, out),
            ColumnType::Json => self.document(value, column, out),
            _ => self.members(value, column, out),
        }
    }

    fn put(&self, value: &types::Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        match types::encode(value, &column.kind, out) {
            Ok(()) => Ok(()),
            Err(EncodeError::OutOfRange) => {
                Err(errors::error(errors::WARN_DATA_OUT_OF_RANGE, &[&column.name, &self.row]))
            }
            Err(EncodeError::TooLong) => {
                Err(errors::error(errors::DATA_TOO_LONG, &[&column.name, &self.row]))
            }
            Err(EncodeError::Invalid | EncodeError::WrongKind) => Err(errors::error(
                errors::TRUNCATED_WRONG_VALUE_FOR_FIELD,
                &[&kind_name(&column.kind), &"", &column.name, &self.row],
            )),
        }
    }

    fn check_number(&self, value: &Value<'_>, column: &ColumnDef) -> Result<(), SqlError> {
        let Value::Text(text, rule) = value else { return Ok(()) };
        if *rule == Collation::Binary && text.first().is_some_and(|b| *b < b' ') {
            return Ok(());
        }
        let number = convert::parse_number(text);
        if number.complete {
            return Ok(());
        }
        match column.kind {
            _ if number.length == 0 => self.incorrect(value, column),
            ColumnType::Decimal { .. } if self.lenient => {
                self.note_lost_digits(column);
                Ok(())
            }
            ColumnType::Decimal { .. } | ColumnType::Double | ColumnType::Float => {
                self.incorrect(value, column)
            }
            _ => self.complain(errors::WARN_DATA_TRUNCATED, column),
        }
    }

    fn note_lost_digits(&self, column: &ColumnDef) {
        let mut note = errors::error(errors::WARN_DATA_TRUNCATED, &[&column.name, &self.row]);
        note.sqlstate = *b"00000";
        self.state.note(note);
    }

    fn integer(
        &self,
        value: &Value<'_>,
        column: &ColumnDef,
        width: usize,
        unsigned: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let wide = match value {
            Value::Int(v) => i128::from(*v),
            value => value.to_integer(),
        };
        let bits = 8 * width as u32;
        let (least, most) = match unsigned {
            true => (0, (1i128 << bits) - 1),
            false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        };
        if wide < least || wide > most {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
        } else {
            self.check_number(value, column)?;
        }
        types::encode_int(wide.clamp(least, most) as u64, width, unsigned, out);
        Ok(())
    }

    fn float(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.check_number(value, column)?;
        let mut number = value.to_double();
        let overflow = matches!(value, Value::Text(text, _) if convert::parse_number(text).overflow);
        if overflow || !number.is_finite() {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
            number = f64::MAX.copysign(number);
        }
        if column.kind == ColumnType::Float && !(number as f32).is_finite() {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
            number = f64::from(f32::MAX.copysign(number as f32));
        }
        if let (Some(digits), Some(decimals)) = (column.width, column.decimals) {
            number = rounded(number, decimals);
            let most = 10f64.powi(i32::from(digits - decimals)) - 10f64.powi(-i32::from(decimals));
            if number.abs() > most {
                self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
                number = most.copysign(number);
            }
        }
        if column.unsigned && number < 0.0 {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
            number = 0.0;
        }
        self.put(&types::Value::Double(number), column, out)
    }

    fn decimal(
        &self,
        value: &Value<'_>,
        column: &ColumnDef,
        precision: u8,
        scale: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.check_number(value, column)?;
        let exact = value.to_decimal();
        let rounded = decimal::round(&exact, i64::from(scale));
        let mut fitted = super::expr::types::clamp_decimal(rounded.clone(), precision, scale);
        // Also what would be rounded to 0.
        let negative = column.unsigned && decimal::is_negative(&exact);
        if negative {
            fitted = decimal::round(&Default::default(), i64::from(scale));
        }
        if negative || fitted != rounded {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
        } else if rounded != exact {
            // Digits behind the point that are lost are noted, never an error.
            self.note_lost_digits(column);
        }
        let text = decimal::format(&fitted);
        self.put(&types::Value::Decimal(Cow::Owned(text)), column, out)
    }

    fn datetime(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let today = self.state.today();
        let read = match value {
            Value::Text(text, _) => {
                let read = temporal::parse_datetime(text, today);
                // Nothing may stand behind it.
                if read.is_some_and(|(.., left)| left) {
                    self.incorrect(value, column)?;
                }
                read.map(|(moment, digits, _)| (moment, digits))
            }
            other => other.to_datetime(today),
        };
        let exact = match read {
            Some((moment, _)) => moment,
            None => {
                let any_day = Today { any_day: true, ..today };
                match value {
                    // A day that its month does not have.
                    Value::Text(text, _) if temporal::parse_datetime(text, any_day).is_some() => {
                        self.impossible(value, column)?;
                    }
                    _ => self.incorrect(value, column)?,
                }
                return self.put(&types::Value::DateTime(DateTime::default()), column, out);
            }
        };
        let mut moment = functions::kept_datetime(exact, fraction(&column.kind), self.state);
        let date = moment.date;
        let zero = date.month == 0 || date.day == 0;
        // Whatever the SQL mode allows of dates, a TIMESTAMP is a moment of a day that there was, or zero.
        let exists = !zero && temporal::is_valid_date(date, false) || moment == DateTime::default();
        let is_timestamp = matches!(column.kind, ColumnType::Timestamp { .. });
        if zero && self.state.refuses_zero_moments(exact) || is_timestamp && !exists {
            match value.is_number() && date != Date::default() {
                true => self.incorrect(value, column)?,
                false => self.impossible(value, column)?,
            }
            moment = DateTime::default();
        }
        match column.kind {
            ColumnType::Date => self.put(&types::Value::Date(moment.date), column, out),
            ColumnType::Timestamp { .. } if moment != DateTime::default() => {
                let seconds = moment.to_unix() - i64::from(self.state.time_zone_offset());
                if !(1..=TIMESTAMP_SECONDS_MAX).contains(&seconds) {
                    self.impossible(value, column)?;
                    return self.put(&types::Value::DateTime(DateTime::default()), column, out);
                }
                let utc = DateTime::from_unix(seconds, moment.micros);
                self.put(&types::Value::DateTime(utc), column, out)
            }
            _ => self.put(&types::Value::DateTime(moment), column, out),
        }
    }

    fn time(
        &self,
        value: &Value<'_>,
        column: &ColumnDef,
        fraction: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let today = self.state.today();
        let (read, whole) = match value {
            Value::Text(text, _) => match temporal::parse_time(text, today) {
                Some((span, _, left)) => (Some(span), !left),
                None => (None, temporal::has_exponent(text)),
            },
            other => (other.to_time(today).map(|(span, _)| span), false),
        };
        let whole = whole || read.is_some() && !matches!(value, Value::Text(..));
        let span = match read {
            Some(span) => functions::kept_time(span, fraction, self.state),
            // A number beyond the largest span is the largest.
            None if value.is_number() && value.to_integer().unsigned_abs() > TIME_NUMBER_MAX => {
                Time { negative: value.to_integer() < 0, ..temporal::TIME_MAX }
            }
            None => Time::default(),
        };
        let largest = Time { negative: false, ..span } == temporal::TIME_MAX;
        match whole {
            true => {}
            false if largest && self.lenient => self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?,
            false => self.incorrect(value, column)?,
        }
        self.put(&types::Value::Time(span), column, out)
    }

    fn year(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let mut year = match value {
            Value::Date(date) => i64::from(date.year),
            Value::DateTime(moment, _) => i64::from(moment.date.year),
            Value::Text(..) => value.to_double().round() as i64,
            number => number.to_i64(),
        };
        // A text that is zero is the year 2000, unless it has four letters.
        let short_text = matches!(value, Value::Text(text, _)
            if text.len() != 4 && convert::parse_number(text).length > 0);
        year = match year {
            0 if short_text => 2000,
            1..=69 => 2000 + year,
            70..=99 => 1900 + year,
            year => year,
        };
        let is_none = year != 0 && !(1901..=2155).contains(&year);
        // Of a text whose number is no year nothing else is said.
        if !is_none || !matches!(value, Value::Text(..)) {
            self.check_number(value, column)?;
        }
        if is_none {
            self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
            year = 0;
        }
        self.put(&types::Value::Int(year), column, out)
    }

    fn string(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let kind = &column.kind;
        let rule = kind.collation();
        let text = collation::relabelled(value.to_text(), value.collation(), rule);
        let mut text: &[u8] = &text;
        if rule != Collation::Binary
            && !text.is_ascii()
            && let Err(error) = std::str::from_utf8(text)
        {
            self.incorrect(&Value::text(errors::printable(&text[error.valid_up_to()..])), column)?;
            text = &text[..error.valid_up_to()];
        }
        let fitted;
        if let Some(at) = rule.charset().first_foreign(text) {
            self.incorrect(&Value::text(errors::printable(&text[at..])), column)?;
            fitted = collation::fitted(Cow::Borrowed(text), rule.charset());
            text = &fitted;
        }
        let limit = match kind {
            ColumnType::Char { chars, .. } | ColumnType::VarChar { chars, .. } => *chars as usize,
            ColumnType::Binary { bytes } | ColumnType::VarBinary { bytes } => *bytes as usize,
            ColumnType::Text { size, .. } | ColumnType::Blob { size } => size.bytes_max() as usize,
            _ => usize::MAX,
        };
        // Cheap first: this many bytes always fit.
        if text.len() > limit {
            let bytes = matches!(kind, ColumnType::Text { .. });
            let bytes = bytes && rule.charset() != Charset::Latin1;
            let end = match bytes {
                true => start_of_character(text, limit),
                false => collation::char_offset(text, limit, rule),
            };
            if end < text.len() {
                let only_spaces = rule != Collation::Binary && text[end..].iter().all(|b| *b == b' ');
                if !only_spaces {
                    let code = if self.lenient { errors::WARN_DATA_TRUNCATED } else { errors::DATA_TOO_LONG };
                    self.complain(code, column)?;
                }
                text = &text[..end];
            }
        }
        // What it does not have has been replaced.
        let text = rule.charset().from_utf8(text).unwrap_or_default();
        let text: &[u8] = &text;
        match kind {
            ColumnType::Char { chars, .. } => {
                let text = trimmed(text);
                out.reserve(text.len().max(*chars as usize));
                out.extend_from_slice(text);
                out.resize(out.len() + (*chars as usize).saturating_sub(text.len()), b' ');
            }
            ColumnType::Binary { bytes } => {
                out.reserve(text.len().max(*bytes as usize));
                out.extend_from_slice(text);
                out.resize(out.len() + (*bytes as usize).saturating_sub(text.len()), 0);
            }
            _ => out.extend_from_slice(text),
        }
        Ok(())
    }

    /// A document is never mended: what is none is an error in every mode, as in MySQL.
    fn document(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if let Value::Json(bytes) = value {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let ask = |bytes| functions::json::room(self.state, bytes);
        let document = Json::read(value, Source::Column(self.table, &column.name), &mut Room::new(&ask))?;
        out.extend_from_slice(&binary::encode(&document.unwrap_or(Json::Null))?);
        Ok(())
    }

    fn members(&self, value: &Value<'_>, column: &ColumnDef, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let (number, complaint) = match &column.kind {
            ColumnType::Bit { bits } => bits_of(value, *bits),
            ColumnType::Set { members, collation } => members_of(value, members, *collation),
            ColumnType::Enum { members, collation } => member_of(value, members, *collation),
            _ => (0, Some(errors::WARN_DATA_TRUNCATED)),
        };
        match complaint {
            Some(errors::DATA_TOO_LONG) if self.lenient => {
                self.complain(errors::WARN_DATA_OUT_OF_RANGE, column)?;
            }
            Some(code) => self.complain(code, column)?,
            None => {}
        }
        self.put(&types::Value::UInt(number), column, out)
    }
}

/// The number by which an index orders what a BIT, ENUM or SET column makes of a value; `None` for NULL and
/// other columns. What the column does not know is 0, or all of its bits, as when it is stored leniently.
pub fn member_number(value: &Value<'_>, kind: &ColumnType) -> Option<u64> {
    let known = Some(value).filter(|value| !value.is_null())?;
    match kind {
        ColumnType::Bit { bits } => Some(bits_of(known, *bits).0),
        ColumnType::Set { members, collation } => Some(members_of(known, members, *collation).0),
        ColumnType::Enum { members, collation } => Some(member_of(known, members, *collation).0),
        _ => None,
    }
}

/// The last place that is not behind this one and where a character of UTF-8 begins.
fn start_of_character(text: &[u8], at: usize) -> usize {
    let begins = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (0..=at.min(text.len())).rev().find(begins).unwrap_or_default()
}

/// The bits of a BIT column: all of them where the value has more.
fn bits_of(value: &Value<'_>, bits: u8) -> (u64, Option<u16>) {
    let most = ((1u128 << bits) - 1) as u64;
    let number = match value {
        Value::Text(bytes, _) => {
            let (above, last) = bytes.split_at(bytes.len().saturating_sub(8));
            if above.iter().any(|byte| *byte != 0) {
                return (most, Some(errors::DATA_TOO_LONG));
            }
            unsigned(last)
        }
        Value::Decimal(exact) if exact.sign() == Sign::Minus => return (0, Some(errors::DATA_TOO_LONG)),
        Value::Decimal(_) => value.to_whole().min(u64::MAX.into()) as u64,
        Value::Double(_) | Value::Float(_) => whole_part(value),
        other => other.to_bits(),
    };
    if number > most { (most, Some(errors::DATA_TOO_LONG)) } else { (number, None) }
}

/// Where a name stands in a list, from 0, as the column's collation sees it.
fn place_of(name: &[u8], members: &[String], rule: Collation) -> Option<u64> {
    let same = |member: &String| collation::compare(member.as_bytes(), name, rule).is_eq();
    members.iter().position(same).map(|at| at as u64)
}

/// The number that a text is: digits, perhaps behind blanks and a plus sign.
fn whole_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let number = std::str::from_utf8(digits).ok()?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// A number without what is behind its point.
fn whole_part(value: &Value<'_>) -> u64 {
    match value {
        Value::Decimal(_) | Value::Double(_) | Value::Float(_) => value.to_double().trunc() as i64 as u64,
        other => other.to_bits(),
    }
}

/// The number of an ENUM's member, 0 for what is none. A text that is no name may be a number.
fn member_of(value: &Value<'_>, members: &[String], rule: Collation) -> (u64, Option<u16>) {
    let (number, least) = match value {
        // A text `0` stands for no member; a number 0 is a mistake.
        Value::Text(text, _) => {
            let name = trimmed(text);
            (place_of(name, members, rule).map(|at| at + 1).or_else(|| whole_number(name)), 0)
        }
        other => (Some(whole_part(other)), 1),
    };
    match number.filter(|number| (least..=members.len() as u64).contains(number)) {
        Some(number) => (number, None),
        None => (0, Some(errors::WARN_DATA_TRUNCATED)),
    }
}

/// The bits of a SET's members, those of the names that are known. A text that has none may be a number.
fn members_of(value: &Value<'_>, members: &[String], rule: Collation) -> (u64, Option<u16>) {
    let most = (1u128 << members.len()).wrapping_sub(1) as u64;
    let truncated = Some(errors::WARN_DATA_TRUNCATED);
    let Value::Text(text, _) = value else {
        let number = whole_part(value);
        return (number & most, truncated.filter(|_| number > most));
    };
    let (mut bits, mut unknown) = (0, None);
    let names = Some(trimmed(text)).filter(|names| !names.is_empty());
    for name in names.into_iter().flat_map(|names| names.split(|byte| *byte == b',')) {
        match place_of(name, members, rule) {
            Some(at) => bits |= 1u64 << at,
            None => unknown = truncated,
        }
    }
    match whole_number(text) {
        Some(number) if bits == 0 && number <= most => (number, None),
        // Blanks alone are neither a name nor a number.
        _ if bits == 0 && !text.is_empty() => (0, truncated),
        _ => (bits, unknown),
    }
}

/// A double with this many digits behind the point.
fn rounded(number: f64, decimals: u8) -> f64 {
    let scale = 10f64.powi(i32::from(decimals));
    let scaled = (number * scale).round_ties_even() / scale;
    if scaled.is_finite() { scaled } else { number }
}
