//! The words of XPath as MySQL reads them.
//!
//! A name is a function or a type of nodes where a parenthesis follows at once, an axis where `::` does. Of
//! `or`, `and`, `div` and `mod` the parser says what they are.

use super::xpath::{Axis, Call};
use crate::expr::functions;

/// What a token is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    End,
    Name,
    Digits,
    /// With its quotes.
    Quoted,
    Axis(Axis),
    /// A function with the fewest and most of its arguments.
    Function(FunctionOfPath),
    /// `text` and its like, before a parenthesis.
    NodeType,
    Or,
    And,
    Div,
    Mod,
    Mark(u8),
    /// What can stand nowhere.
    Wrong,
}

/// A function that XPath has here.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionOfPath {
    pub(super) call: Function,
    pub(super) least: usize,
    pub(super) most: usize,
}

/// What a call becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Truth(bool),
    Call(Call),
}

/// A token, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) begin: usize,
    pub(super) end: usize,
}

fn function(name: &str) -> Option<FunctionOfPath> {
    let sql = |name| functions::find(name).map(Call::Sql);
    let (call, least, most) = match name.to_ascii_lowercase().as_str() {
        "true" => return Some(FunctionOfPath { call: Function::Truth(true), least: 0, most: 0 }),
        "false" => return Some(FunctionOfPath { call: Function::Truth(false), least: 0, most: 0 }),
        "last" => (Call::Last, 0, 0),
        "position" => (Call::Position, 0, 0),
        "count" => (Call::Count, 1, 1),
        "sum" => (Call::Sum, 1, 1),
        "not" => (Call::Not, 1, 1),
        "boolean" => (Call::Truth, 1, 1),
        "number" => (Call::Number, 0, 1),
        "round" => (Call::Round, 1, 1),
        "floor" => (sql("FLOOR")?, 1, 1),
        "ceiling" => (sql("CEILING")?, 1, 1),
        "concat" => (sql("CONCAT")?, 2, 255),
        "contains" => (Call::Contains, 2, 2),
        "substring" => (sql("SUBSTRING")?, 2, 3),
        "string-length" => (sql("CHAR_LENGTH")?, 0, 1),
        _ => return None,
    };
    Some(FunctionOfPath { call: Function::Call(call), least, most })
}

/// The token that begins here or behind the next spaces.
pub(super) fn token(text: &str, at: usize) -> Token {
    let rest = text.get(at..).unwrap_or_default();
    let space = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let begin = at + rest.len() - rest.trim_start_matches(space).len();
    let rest = text.get(begin..).unwrap_or_default();
    let Some(first) = rest.chars().next() else { return Token { kind: Kind::End, begin, end: begin } };
    let (kind, length) = if first.is_alphabetic() || first == '_' {
        name(rest)
    } else if first.is_ascii_digit() {
        (Kind::Digits, rest.bytes().take_while(u8::is_ascii_digit).count())
    } else if matches!(first, '"' | '\'') {
        match rest[1..].find(first) {
            Some(length) => (Kind::Quoted, length + 2),
            None => (Kind::Wrong, rest.len()),
        }
    } else if b"!()*+,-./:<=>@[]|$".contains(&(first as u32).try_into().unwrap_or(0)) {
        (Kind::Mark(first as u8), 1)
    } else {
        (Kind::Wrong, first.len_utf8())
    };
    Token { kind, begin, end: begin + length }
}

fn name(rest: &str) -> (Kind, usize) {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let length = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(length);
    let kind = if behind.starts_with('(') {
        let types = ["comment", "text", "processing-instruction", "node"];
        let is_type = types.iter().any(|of| of.eq_ignore_ascii_case(name));
        if is_type { Some(Kind::NodeType) } else { function(name).map(Kind::Function) }
    } else if behind.starts_with("::") {
        Axis::of_name(name).map(Kind::Axis)
    } else {
        match name.to_ascii_lowercase().as_str() {
            "or" => Some(Kind::Or),
            "and" => Some(Kind::And),
            "div" => Some(Kind::Div),
            "mod" => Some(Kind::Mod),
            _ => None,
        }
    };
    (kind.unwrap_or(Kind::Name), length)
}
