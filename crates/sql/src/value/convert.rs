//! From one kind of value to another. Text that is not wholly a number converts to what its beginning says;
//! the callers that must warn about it look at [`Number::complete`].

use std::borrow::Cow;

use bigdecimal::{BigDecimal, Zero};
use untorn::types::{Collation, DateTime, Time};

use super::json::{self, Json};
use super::temporal::Today;
use super::{Value, decimal, temporal};

/// What a text says as a number.
pub struct Number {
    /// The number at its beginning, 0 if there is none.
    pub value: f64,
    /// Its length in bytes with leading blanks.
    pub length: usize,
    /// Nothing but blanks follows and there was a number.
    pub complete: bool,
    /// It is beyond the largest double, which stands for it.
    pub overflow: bool,
}

/// Reads the number at the beginning of a text.
pub fn parse_number(text: &[u8]) -> Number {
    let start = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let mut at = start;
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    if matches!(text.get(at), Some(b'+' | b'-')) {
        at += 1;
    }
    let digits_from = at;
    while digit(at) {
        at += 1;
    }
    let mut digits = at - digits_from;
    if text.get(at) == Some(&b'.') && (digits > 0 || digit(at + 1)) {
        at += 1;
        let from = at;
        while digit(at) {
            at += 1;
        }
        digits += at - from;
    }
    if digits == 0 {
        return Number { value: 0.0, length: 0, complete: false, overflow: false };
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if digit(at + 1 + sign) {
            at += 1 + sign;
            while digit(at) {
                at += 1;
            }
        }
    }
    let value: f64 = std::str::from_utf8(&text[start..at]).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0);
    let complete = text[at..].iter().all(u8::is_ascii_whitespace);
    let overflow = value.is_infinite();
    Number { value: value.clamp(f64::MIN, f64::MAX), length: at, complete, overflow }
}

/// The exact number at the beginning of a text.
fn parse_decimal(text: &[u8]) -> (BigDecimal, bool) {
    let number = parse_number(text);
    let digits = std::str::from_utf8(&text[..number.length]).unwrap_or("0");
    match decimal::parse(digits) {
        Some(value) => (value, number.complete),
        None => (BigDecimal::zero(), false),
    }
}

/// Doubles as MySQL prints them: the shortest digits that read back, with an exponent below 1e-15 and, where
/// there is nothing behind the point, from 1e15 up.
pub fn format_double(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs();
    // Up to 2^53 a double may have digits behind the point.
    let exponent = magnitude >= 1e15 && value.fract() == 0.0;
    if magnitude < 1e-15 || exponent { format!("{value:e}") } else { format!("{value}") }
}

/// A FLOAT as MySQL prints it: six significant digits.
fn format_float(value: f32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs();
    let short = format!("{value:.5e}");
    let rounded: f64 = short.parse().unwrap_or(f64::from(value));
    if (1e-15..1e15).contains(&magnitude) { format!("{rounded}") } else { format!("{rounded:e}") }
}

impl<'a> Value<'a> {
    /// As a double; NULL is 0.
    pub fn to_double(&self) -> f64 {
        match self {
            Value::Null => 0.0,
            Value::Int(v) => *v as f64,
            Value::UInt(v) => *v as f64,
            Value::Float(v) => f64::from(*v),
            Value::Double(v) => *v,
            Value::Decimal(v) => decimal::to_double(v),
            Value::Text(text, _) => parse_number(text).value,
            Value::Date(v) => temporal::date_number(*v) as f64,
            Value::DateTime(v, _) => temporal::datetime_number(*v) as f64 + f64::from(v.micros) / 1e6,
            Value::Json(bytes) => json_number(bytes).map_or(0.0, |number| number.to_double()),
            Value::Time(v, _) => {
                let fraction = f64::from(v.micros) / 1e6;
                temporal::time_number(*v) as f64 + if v.negative { -fraction } else { fraction }
            }
        }
    }

    /// As an exact number; NULL is 0.
    pub fn to_decimal(&self) -> BigDecimal {
        match self {
            Value::Null => BigDecimal::zero(),
            Value::Int(v) => BigDecimal::from(*v),
            Value::UInt(v) => BigDecimal::from(*v),
            Value::Decimal(v) => v.clone(),
            Value::Text(text, _) => parse_decimal(text).0,
            Value::Date(v) => BigDecimal::from(temporal::date_number(*v)),
            Value::DateTime(v, digits) => exact(temporal::datetime_number(*v), v.micros, *digits),
            Value::Time(v, digits) => {
                let number = exact(temporal::time_number(*v).abs(), v.micros, *digits);
                // Between -1 and 0 the whole seconds have no sign to give.
                if v.negative { -number } else { number }
            }
            Value::Json(bytes) => {
                json_number(bytes).map_or_else(BigDecimal::zero, |number| number.to_decimal())
            }
            Value::Float(_) | Value::Double(_) => {
                decimal::parse(&format_double(self.to_double())).unwrap_or_else(BigDecimal::zero)
            }
        }
    }

    /// As an integer wide enough for both signs; NULL is 0. Exact numbers are rounded half away from zero,
    /// doubles half to even.
    pub fn to_integer(&self) -> i128 {
        match self {
            Value::Null => 0,
            Value::Int(v) => i128::from(*v),
            Value::UInt(v) => i128::from(*v),
            Value::Decimal(v) => decimal::to_integer(v),
            Value::Text(text, Collation::Binary) if text.len() <= 8 && !text.is_empty() && text[0] < b' ' => {
                // A short binary literal in a number's place.
                text.iter().fold(0, |n, b| n << 8 | i128::from(*b))
            }
            Value::Text(text, _) => integer_of_text(text),
            Value::Date(v) => i128::from(temporal::date_number(*v)),
            Value::DateTime(v, _) => i128::from(temporal::datetime_number(temporal::nearest_second(*v))),
            Value::Time(v, _) => {
                let half = if v.negative { -500_000 } else { 500_000 };
                let rounded = temporal::time_from_micros(temporal::time_micros(*v) + half);
                i128::from(temporal::time_number(if v.micros < 500_000 { *v } else { rounded }))
            }
            Value::Json(bytes) => json_number(bytes).map_or(0, |number| number.to_integer()),
            Value::Float(_) | Value::Double(_) => self.to_double().round_ties_even() as i128,
        }
    }

    /// As the integer that an argument or an operand is: of a text only the digits before anything else
    /// count (`'1.9'` is 1), and a double is cut at the ends of BIGINT. A column that stores integers rounds
    /// instead ([`Value::to_integer`]).
    pub fn to_whole(&self) -> i128 {
        match self {
            Value::Text(text, Collation::Binary) if text.first().is_some_and(|byte| *byte < b' ') => {
                self.to_integer()
            }
            Value::Text(text, _) => leading_integer(text),
            Value::Float(_) | Value::Double(_) => {
                self.to_integer().clamp(i128::from(i64::MIN), i128::from(i64::MAX))
            }
            _ => self.to_integer(),
        }
    }

    /// As a 64-bit integer, cut at the ends of its range.
    pub fn to_i64(&self) -> i64 {
        self.to_whole().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// As the bits of a 64-bit integer, for the bit operators. Of exact numbers there are those of BIGINT.
    pub fn to_bits(&self) -> u64 {
        let wide = match self {
            Value::Decimal(_) => i128::from(self.to_i64()),
            _ => self.to_whole(),
        };
        if wide < 0 {
            wide.max(i128::from(i64::MIN)) as i64 as u64
        } else {
            wide.min(i128::from(u64::MAX)) as u64
        }
    }

    /// TRUE, FALSE or UNKNOWN.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Null => None,
            Value::Int(v) => Some(*v != 0),
            Value::UInt(v) => Some(*v != 0),
            Value::Decimal(v) => Some(!v.is_zero()),
            // Whatever is no number is not zero.
            Value::Json(bytes) => Some(json::binary::decoded(bytes).order(&Json::Int(0)).is_ne()),
            other => Some(other.to_double() != 0.0),
        }
    }

    /// As text; NULL is empty.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Null => Cow::Borrowed(b""),
            Value::Text(text, _) => Cow::Borrowed(text),
            Value::Int(v) => Cow::Owned(v.to_string().into_bytes()),
            Value::UInt(v) => Cow::Owned(v.to_string().into_bytes()),
            Value::Float(v) => Cow::Owned(format_float(*v).into_bytes()),
            Value::Double(v) => Cow::Owned(format_double(*v).into_bytes()),
            Value::Decimal(v) => Cow::Owned(decimal::format(v).into_bytes()),
            Value::Date(v) => Cow::Owned(v.to_string().into_bytes()),
            Value::DateTime(v, digits) => Cow::Owned(temporal::format_datetime(*v, *digits).into_bytes()),
            Value::Time(v, digits) => Cow::Owned(temporal::format_time(*v, *digits).into_bytes()),
            Value::Json(bytes) => Cow::Owned(json::binary::print(bytes).into_bytes()),
        }
    }

    /// As a string, for messages and options.
    pub fn to_string_lossy(&self) -> String {
        String::from_utf8_lossy(&self.to_text()).into_owned()
    }

    /// The collation of its text form.
    pub fn collation(&self) -> Collation {
        match self {
            Value::Text(_, collation) => *collation,
            Value::Json(_) => Collation::Utf8mb4Bin,
            _ => Collation::Utf8mb4GeneralCi,
        }
    }

    /// As a moment: text is read, numbers are `YYYYMMDD[hhmmss]`, a span counts from `today`. `None` when it
    /// is none.
    pub fn to_datetime(&self, today: Today) -> Option<(DateTime, u8)> {
        match self {
            Value::DateTime(v, digits) => Some((*v, *digits)),
            Value::Date(v) => Some((DateTime { date: *v, ..DateTime::default() }, 0)),
            Value::Time(v, digits) => {
                let midnight = DateTime { date: today.date, ..DateTime::default() };
                let micros = temporal::datetime_micros(midnight) + temporal::time_micros(*v);
                temporal::datetime_from_micros(micros).map(|value| (value, *digits))
            }
            Value::Text(text, _) => {
                temporal::parse_datetime(text, today).map(|(value, digits, _)| (value, digits))
            }
            Value::Json(bytes) => json::binary::decoded(bytes).scalar()?.to_datetime(today),
            Value::Null => None,
            Value::Int(number) => {
                temporal::datetime_from_number(*number, today.any_day).map(|value| (value, 0))
            }
            number => {
                let number = number.to_decimal();
                let (whole, micros, digits) = whole_and_micros(&number);
                let value = temporal::datetime_from_number(whole, today.any_day)?;
                // Behind the digits of a day stands no fraction of a second, but behind the zero of none.
                let is_none = whole == 0 && !decimal::is_negative(&number);
                let micros = if whole < temporal::DAY_NUMBERS_END && !is_none { 0 } else { micros };
                // Rounding may have made a whole second of the fraction.
                let value = match micros {
                    1_000_000 => temporal::carried(DateTime { micros: 999_999, ..value })?,
                    micros => DateTime { micros, ..value },
                };
                Some((value, digits))
            }
        }
    }

    /// As a span. `None` when it is none.
    pub fn to_time(&self, today: Today) -> Option<(Time, u8)> {
        match self {
            Value::Time(v, digits) => Some((*v, *digits)),
            Value::DateTime(v, digits) => Some((temporal::time_of_day(*v), *digits)),
            Value::Date(_) => Some((Time::default(), 0)),
            Value::Text(text, _) => {
                temporal::parse_time(text, today).map(|(value, digits, _)| (value, digits))
            }
            Value::Json(bytes) => json::binary::decoded(bytes).scalar()?.to_time(today),
            Value::Null => None,
            Value::Int(number) => temporal::time_from_number(*number).map(|value| (value, 0)),
            number => {
                let exact = number.to_decimal();
                let (whole, micros, digits) = whole_and_micros(&exact);
                let time = temporal::time_from_number(whole)?;
                let negative = exact.sign() == bigdecimal::num_bigint::Sign::Minus;
                let span = temporal::time_micros(Time { negative: false, ..time }) + i64::from(micros);
                Some((temporal::time_from_micros(if negative { -span } else { span }), digits))
            }
        }
    }
}

/// The number that a document says.
fn json_number(bytes: &[u8]) -> Option<Value<'static>> {
    json::binary::decoded(bytes).numeric()
}

/// A number's whole part, its fraction in microseconds, and how many digits that has. The seventh digit is
/// rounded, which may make a whole second.
fn whole_and_micros(number: &BigDecimal) -> (i64, u32, u8) {
    let whole = number.with_scale(0);
    let fraction = (number - &whole).abs();
    let micros = decimal::to_integer(&decimal::multiply(&fraction, &1_000_000.into()));
    let limit = i128::from(i64::MAX);
    (decimal::to_integer(&whole).clamp(-limit, limit) as i64, micros as u32, decimal::scale(number).min(6))
}

fn exact(whole: i64, micros: u32, digits: u8) -> BigDecimal {
    if digits == 0 {
        return BigDecimal::from(whole);
    }
    let text = format!("{whole}.{micros:06}");
    decimal::parse(&text)
        .map_or_else(|| BigDecimal::from(whole), |value| decimal::round(&value, i64::from(digits)))
}

/// The integer at the beginning of a text; too many digits are as good as the furthest number.
fn leading_integer(text: &[u8]) -> i128 {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    match std::str::from_utf8(&text[..sign + digits]).unwrap_or_default().parse() {
        Ok(number) => number,
        Err(_) if digits == 0 => 0,
        Err(_) if text.starts_with(b"-") => i128::MIN,
        Err(_) => i128::MAX,
    }
}

/// The nearest integer to the number that a text begins with, half away from zero. It is read exactly, with
/// its point and exponent; beyond 128 bits it is the furthest number.
fn integer_of_text(text: &[u8]) -> i128 {
    let number = parse_number(text);
    let digits = std::str::from_utf8(text[..number.length].trim_ascii()).unwrap_or_default();
    match digits.parse() {
        Ok(whole) => whole,
        Err(_) => decimal::parse(digits).map_or(0, |exact| decimal::to_integer(&exact)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_beginning_of_text() {
        for (text, value, complete) in [
            ("12", 12.0, true),
            (" -1.5e2 ", -150.0, true),
            ("12abc", 12.0, false),
            ("abc", 0.0, false),
            (".5", 0.5, true),
            ("1e", 1.0, false),
            ("", 0.0, false),
        ] {
            let number = parse_number(text.as_bytes());
            assert_eq!((number.value, number.complete), (value, complete), "{text}");
        }
        assert_eq!(integer_of_text(b"18446744073709551615"), i128::from(u64::MAX));
        assert_eq!(integer_of_text(b"2.5"), 3);
        assert_eq!(integer_of_text(b"-0.5"), -1);
        assert_eq!(integer_of_text(b"1234567890123456789.0"), 1_234_567_890_123_456_789);
        assert_eq!(integer_of_text(b"1e-50"), 0);
        for zeros in ["", ".0", "e5"] {
            let digits = "9".repeat(43) + zeros;
            assert_eq!(integer_of_text(digits.as_bytes()), i128::MAX, "{digits}");
            assert_eq!(integer_of_text(format!("-{digits}").as_bytes()), i128::MIN, "{digits}");
        }
    }

    #[test]
    fn doubles_print_like_mysql() {
        assert_eq!(format_double(0.1), "0.1");
        assert_eq!(format_double(1e20), "1e20");
        assert_eq!(format_double(-1.5), "-1.5");
        assert_eq!(format_double(100.0), "100");
        assert_eq!(format_float(1.1), "1.1");
        assert_eq!(format_float(16_777_216.0), "16777200");
    }
}
