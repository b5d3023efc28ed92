//! Documents as texts: MySQL's normal form, and the form for people.

use std::fmt::Write;

use super::Json;
use crate::value::convert::format_double;
use crate::value::{decimal, temporal};

impl Json {
    /// The normal form.
    pub(crate) fn print(&self) -> String {
        let mut text = String::new();
        self.put(&mut text);
        text
    }

    fn put(&self, text: &mut String) {
        match self {
            Json::Array(list) => {
                text.push('[');
                for (number, value) in list.iter().enumerate() {
                    text.push_str(if number > 0 { ", " } else { "" });
                    value.put(text);
                }
                text.push(']');
            }
            Json::Object(members) => {
                text.push('{');
                for (number, (key, value)) in members.iter().enumerate() {
                    text.push_str(if number > 0 { ", " } else { "" });
                    quote(key, text);
                    text.push_str(": ");
                    value.put(text);
                }
                text.push('}');
            }
            Json::Text(string) => quote(string, text),
            other if other.is_quoted() => quote(&other.unquoted(), text),
            other => text.push_str(&other.unquoted()),
        }
    }

    fn is_quoted(&self) -> bool {
        matches!(self, Json::Date(_) | Json::DateTime(_) | Json::Time(_) | Json::Opaque(..))
    }

    /// The normal form, a string without its quotes.
    pub(crate) fn unquoted(&self) -> String {
        match self {
            Json::Null => "null".into(),
            Json::Bool(truth) => truth.to_string(),
            Json::Int(number) => number.to_string(),
            Json::UInt(number) => number.to_string(),
            Json::Double(number) => double(*number),
            Json::Decimal(number) => decimal::format(number),
            Json::Text(string) => string.clone(),
            Json::Date(day) => day.to_string(),
            Json::DateTime(moment) => temporal::format_datetime(*moment, 6),
            Json::Time(span) => temporal::format_time(*span, 6),
            Json::Opaque(kind, bytes) => format!("base64:type{kind}:{}", base64(bytes)),
            Json::Array(_) | Json::Object(_) => self.print(),
        }
    }

    /// A line for each value.
    pub(crate) fn pretty(&self) -> String {
        let mut text = String::new();
        self.put_pretty(0, &mut text);
        text
    }

    fn put_pretty(&self, depth: usize, text: &mut String) {
        let line = |depth: usize, text: &mut String| {
            text.push('\n');
            (0..depth).for_each(|_| text.push_str("  "));
        };
        match self {
            Json::Array(list) if !list.is_empty() => {
                text.push('[');
                for (number, value) in list.iter().enumerate() {
                    text.push_str(if number > 0 { "," } else { "" });
                    line(depth + 1, text);
                    value.put_pretty(depth + 1, text);
                }
                line(depth, text);
                text.push(']');
            }
            Json::Object(members) if members.len() > 0 => {
                text.push('{');
                for (number, (key, value)) in members.iter().enumerate() {
                    text.push_str(if number > 0 { "," } else { "" });
                    line(depth + 1, text);
                    quote(key, text);
                    text.push_str(": ");
                    value.put_pretty(depth + 1, text);
                }
                line(depth, text);
                text.push('}');
            }
            other => other.put(text),
        }
    }
}

/// A double has a point or an exponent, or it would be read as an integer.
fn double(number: f64) -> String {
    let mut text = format_double(number);
    if number == 0.0 && number.is_sign_negative() {
        text.insert(0, '-');
    }
    if !text.contains(['.', 'e']) {
        text.push_str(".0");
    }
    text
}

/// A string with quotes and escapes.
pub fn quote(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let six = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[six as usize]) } else { '=' });
        }
    }
    text
}
