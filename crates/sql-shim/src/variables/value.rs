//! Values of system variables: reading them from text and from SQL values, and printing them.

use std::sync::Arc;

use sql::errors;
use sql::result::SqlError;
use sql::sql_mode;
use sql::time_names::TimeNames;
use sql::value::Collation;

use super::table::{Definition, Kind, NULL};
use super::tracked_names::{LIST_BYTES_MAX, TrackedNames, listed_twice};

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL (a few variables allow it).
    Null,
    /// ON or OFF; 1 or 0 in a SELECT.
    Bool(bool),
    /// Signed.
    Int(i64),
    /// Unsigned.
    UInt(u64),
    /// Floating point.
    Double(f64),
    /// Text, enumeration or set.
    Text(Arc<str>),
}

impl Value {
    /// A text value.
    pub fn text(text: &str) -> Self {
        Value::Text(Arc::from(text))
    }

    /// As SHOW VARIABLES prints it.
    pub fn show(&self) -> String {
        match self {
            Value::Null => String::new(),
            Value::Bool(true) => "ON".into(),
            Value::Bool(false) => "OFF".into(),
            Value::Int(value) => value.to_string(),
            Value::UInt(value) => value.to_string(),
            Value::Double(value) => format!("{value:.6}"),
            Value::Text(text) => text.to_string(),
        }
    }

    /// The number, of numbers and booleans.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Bool(value) => Some(u64::from(*value)),
            Value::Int(value) => u64::try_from(*value).ok(),
            Value::UInt(value) => Some(*value),
            Value::Double(value) if *value >= 0.0 => Some(*value as u64),
            _ => None,
        }
    }

    /// The text, of text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// 1231.
pub(super) fn wrong_value(name: &str, value: &str) -> SqlError {
    let shown: String = value.chars().take(128).collect();
    SqlError::new(1231, b"42000", format!("Variable '{name}' can't be set to the value of '{shown}'"))
}

fn wrong_type(name: &str) -> SqlError {
    SqlError::new(1232, b"42000", format!("Incorrect argument type to variable '{name}'"))
}

fn null(name: &str) -> SqlError {
    wrong_value(name, "NULL")
}

/// Reads a number with an optional K, M, G, T, P or E, as my.cnf allows.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        (at, 'p' | 'P') => (&text[..at], 50),
        (at, 'e' | 'E') => (&text[..at], 60),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads a value as written in my.cnf, on the command line, or as a default.
pub fn from_text(definition: &Definition, text: &str) -> Result<Value, SqlError> {
    let wrong = || wrong_value(definition.name, text);
    if text == NULL {
        return Ok(Value::Null);
    }
    match definition.kind {
        Kind::UInt(min, max) => {
            parse_size(text).map(|value| Value::UInt(value.clamp(min, max))).ok_or_else(wrong)
        }
        Kind::Int(min, max) => {
            text.parse::<i64>().map(|value| Value::Int(value.clamp(min, max))).map_err(|_| wrong())
        }
        Kind::Double(min, max) => {
            // No bounds hold what is no number.
            let number = text.parse::<f64>().ok().filter(|number| !number.is_nan());
            number.map(|value| Value::Double(value.clamp(min, max))).ok_or_else(wrong)
        }
        _ => convert(definition, &Value::text(text)),
    }
}

/// Whether a number became another one to be within its bounds.
pub fn is_adjusted(asked: &Value, to: &Value) -> bool {
    let whole = |value: &Value| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::UInt(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (whole(asked), whole(to), asked, to) {
        (Some(asked), Some(to), ..) => asked != to,
        (Some(asked), None, _, Value::Double(to)) => asked as f64 != *to,
        (None, None, Value::Double(asked), Value::Double(to)) => asked != to,
        _ => false,
    }
}

/// Checks and converts a value given by SET.
pub fn convert(definition: &Definition, value: &Value) -> Result<Value, SqlError> {
    let name = definition.name;
    match definition.kind {
        Kind::Bool => to_bool(name, value),
        Kind::UInt(min, max) => match value {
            Value::Int(value) if *value < 0 => Ok(Value::UInt(min)),
            Value::Int(_) | Value::UInt(_) | Value::Bool(_) => {
                Ok(Value::UInt(value.as_u64().unwrap_or_default().clamp(min, max)))
            }
            Value::Null | Value::Text(_) | Value::Double(_) => Err(wrong_type(name)),
        },
        Kind::Int(min, max) => match value {
            Value::Int(value) => Ok(Value::Int((*value).clamp(min, max))),
            Value::UInt(value) => Ok(Value::Int(i64::try_from(*value).unwrap_or(max).clamp(min, max))),
            Value::Bool(value) => Ok(Value::Int(i64::from(*value).clamp(min, max))),
            _ => Err(wrong_type(name)),
        },
        Kind::Double(min, max) => match value {
            Value::Int(value) => Ok(Value::Double((*value as f64).clamp(min, max))),
            Value::UInt(value) => Ok(Value::Double((*value as f64).clamp(min, max))),
            Value::Double(value) => Ok(Value::Double(value.clamp(min, max))),
            _ => Err(wrong_type(name)),
        },
        Kind::Text(nullable) => match value {
            Value::Text(_) => Ok(value.clone()),
            Value::Null if nullable || definition.dynamic => Ok(Value::text("")),
            _ => Err(wrong_type(name)),
        },
        Kind::Enum(words) => to_word(name, words, value),
        Kind::SqlMode => to_sql_mode(value),
        Kind::Switches => to_switches(definition, value),
        Kind::Charset(nullable) => to_charset(name, nullable, value),
        Kind::Collation => to_collation(value),
        Kind::TimeZone => to_time_zone(value),
        Kind::TimeNames => to_time_names(name, value),
        Kind::TrackedNames => to_tracked_names(name, value),
        Kind::Compressions => to_compressions(name, value),
    }
}

fn to_bool(name: &str, value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Int(0) | Value::UInt(0) => Ok(Value::Bool(false)),
        Value::Int(1) | Value::UInt(1) => Ok(Value::Bool(true)),
        Value::Text(text) => match text.to_ascii_uppercase().as_str() {
            "ON" | "TRUE" | "YES" | "1" => Ok(Value::Bool(true)),
            "OFF" | "FALSE" | "NO" | "0" => Ok(Value::Bool(false)),
            _ => Err(wrong_value(name, text)),
        },
        Value::Null => Err(null(name)),
        other => Err(wrong_value(name, &other.show())),
    }
}

fn to_word(name: &str, words: &[&str], value: &Value) -> Result<Value, SqlError> {
    let found = match value {
        Value::Text(text) => {
            words.iter().find(|word| word.eq_ignore_ascii_case(text)).copied().or_else(|| {
                // Where ON and OFF are among the words, the other spellings of a boolean are too.
                let Ok(Value::Bool(flag)) = to_bool(name, value) else { return None };
                let wanted = if flag { "ON" } else { "OFF" };
                words.iter().find(|word| **word == wanted).copied()
            })
        }
        Value::Int(_) | Value::UInt(_) => {
            value.as_u64().and_then(|index| words.get(usize::try_from(index).ok()?)).copied()
        }
        Value::Bool(flag) => words.iter().find(|word| **word == if *flag { "ON" } else { "OFF" }).copied(),
        Value::Null | Value::Double(_) => None,
    };
    found.map(Value::text).ok_or_else(|| wrong_value(name, &shown(value)))
}

fn shown(value: &Value) -> String {
    if *value == Value::Null { "NULL".into() } else { value.show() }
}

fn to_sql_mode(value: &Value) -> Result<Value, SqlError> {
    let bits = match value {
        Value::Text(text) => sql_mode::parse(text).ok_or_else(|| wrong_value("sql_mode", text))?,
        Value::Int(_) | Value::UInt(_) => {
            let bits = value.as_u64().ok_or_else(|| wrong_value("sql_mode", &shown(value)))?;
            sql_mode::expand(bits)
        }
        other => return Err(wrong_value("sql_mode", &shown(other))),
    };
    Ok(Value::Text(sql_mode::text(bits).into()))
}

fn to_switches(definition: &Definition, value: &Value) -> Result<Value, SqlError> {
    let mut current: Vec<(&str, &str)> =
        definition.default.split(',').filter_map(|flag| flag.split_once('=')).collect();
    let text = match value {
        Value::Text(text) => text,
        // A bit for each.
        value => {
            let bits = value.as_u64().ok_or_else(|| wrong_type(definition.name))?;
            if bits >> current.len().min(63) != 0 {
                return Err(wrong_value(definition.name, &bits.to_string()));
            }
            let set = |(at, (name, _)): (usize, &(&str, &str))| {
                format!("{name}={}", if bits >> at & 1 == 1 { "on" } else { "off" })
            };
            let all: Vec<String> = current.iter().enumerate().map(set).collect();
            return Ok(Value::Text(all.join(",").into()));
        }
    };
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if item.eq_ignore_ascii_case("default") {
            continue;
        }
        let (name, setting) = item.split_once('=').ok_or_else(|| wrong_value(definition.name, item))?;
        let setting = match setting.trim().to_ascii_lowercase().as_str() {
            "on" => Some("on"),
            "off" => Some("off"),
            "default" => None,
            _ => return Err(wrong_value(definition.name, item)),
        };
        let flag = current.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let flag = flag.ok_or_else(|| wrong_value(definition.name, item))?;
        if let Some(setting) = setting {
            flag.1 = setting;
        }
    }
    let all: Vec<String> = current.iter().map(|(name, setting)| format!("{name}={setting}")).collect();
    Ok(Value::Text(all.join(",").into()))
}

/// Character sets clients may name, with their default collations.
const CHARSETS: &[(&str, &str)] = &[
    ("utf8mb4", "utf8mb4_general_ci"),
    ("utf8mb3", "utf8mb3_general_ci"),
    ("binary", "binary"),
    ("ascii", "ascii_general_ci"),
    ("latin1", "latin1_swedish_ci"),
];

/// The character set's name as MySQL 8 spells it, `None` if nobody knows it.
fn charset_name(name: &str) -> Option<&'static str> {
    let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARSETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(known, _)| *known)
}

/// The default collation of a character set.
pub fn default_collation(charset: &str) -> Option<&'static str> {
    CHARSETS.iter().find(|(known, _)| *known == charset).map(|(_, collation)| *collation)
}

/// The character set of a collation.
pub fn charset_of_collation(collation: &str) -> Option<&'static str> {
    Collation::from_name(collation).map(|known| known.charset().name())
}

fn to_charset(name: &str, nullable: bool, value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Null if nullable => Ok(Value::Null),
        Value::Text(text) => charset_name(text)
            .map(Value::text)
            .ok_or_else(|| SqlError::new(1115, b"42000", format!("Unknown character set: '{text}'"))),
        // The number of one of its collations.
        Value::Int(number) => Collation::all()
            .find(|known| i64::from(known.id()) == *number)
            .map(|known| Value::text(known.charset().name()))
            .ok_or_else(|| SqlError::new(1115, b"42000", format!("Unknown character set: '{number}'"))),
        Value::Null => Err(null(name)),
        _ => Err(wrong_type(name)),
    }
}

fn to_collation(value: &Value) -> Result<Value, SqlError> {
    let (text, known) = match value {
        Value::Text(text) => (text.to_string(), Collation::from_name(text)),
        Value::Int(number) => {
            (number.to_string(), Collation::all().find(|known| i64::from(known.id()) == *number))
        }
        _ => return Err(wrong_type("collation")),
    };
    match known {
        Some(known) => Ok(Value::text(known.name())),
        None => Err(SqlError::new(1273, b"HY000", format!("Unknown collation: '{text}'"))),
    }
}

/// Offset from UTC in seconds of a time zone's text; `None` inside for SYSTEM.
pub fn time_zone_offset(text: &str) -> Option<Option<i32>> {
    if text.eq_ignore_ascii_case("SYSTEM") {
        return Some(None);
    }
    if text.eq_ignore_ascii_case("UTC") || text.eq_ignore_ascii_case("Etc/UTC") {
        return Some(Some(0));
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    let plain = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') && minutes < 60;
    // MySQL 8.0.19 and later: -13:59 to +14:00.
    (plain && (-50_340..=50_400).contains(&seconds)).then_some(Some(seconds))
}

fn to_time_names(name: &str, value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Null => Err(null(name)),
        Value::Double(_) => Err(wrong_type(name)),
        value => {
            let text = value.show();
            let known = match value {
                Value::Int(number) => TimeNames::locale_numbered(*number),
                _ => TimeNames::of_locale(&text).map(|(_, locale)| locale),
            };
            let known = known.map(Value::text);
            known.ok_or_else(|| errors::error(errors::UNKNOWN_LOCALE, &[&text]))
        }
    }
}

fn to_tracked_names(name: &str, value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Text(list) if list.len() > LIST_BYTES_MAX => Err(wrong_value(name, list)),
        Value::Text(list) => match TrackedNames::parse(list).twice {
            Some(twice) => Err(listed_twice(&twice)),
            None => Ok(value.clone()),
        },
        _ => Err(wrong_type(name)),
    }
}

fn to_compressions(name: &str, value: &Value) -> Result<Value, SqlError> {
    let list = match value {
        Value::Text(list) => list,
        Value::Null => return Err(null(name)),
        _ => return Err(wrong_type(name)),
    };
    let known = ["zlib", "zstd", "uncompressed"];
    let is_known = |item: &&str| known.iter().any(|known| known.eq_ignore_ascii_case(item));
    let listed: Vec<&str> = list.split(',').filter(|item| !item.is_empty()).collect();
    match (1..=known.len()).contains(&listed.len()) && listed.iter().all(is_known) {
        true => Ok(value.clone()),
        false => Err(wrong_value(name, list)),
    }
}

fn to_time_zone(value: &Value) -> Result<Value, SqlError> {
    let unknown =
        |text: &str| SqlError::new(1298, b"HY000", format!("Unknown or incorrect time zone: '{text}'"));
    let Value::Text(text) = value else { return Err(unknown(&shown(value))) };
    time_zone_offset(text).map(|_| value.clone()).ok_or_else(|| unknown(text))
}
