//! Texts read as documents, by RFC 8259, with the messages and positions that MySQL reports.

use super::{DEPTH_MAX, Json, LIST_BYTES, Members, Room, VALUE_BYTES, too_deep};
use crate::result::SqlError;

/// Why a text is no document.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Its syntax: what, and at which byte.
    Syntax(&'static str, usize),
    /// Something else: it is nested too deeply, or there is no memory for it.
    Other(SqlError),
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Fault {
        Fault::Other(error)
    }
}

type Read<T> = Result<T, Fault>;

/// Reads a text.
pub(crate) fn parse(text: &[u8], room: &mut Room<'_>) -> Read<Json> {
    let mut reader = Reader { text, at: 0, room };
    reader.blanks();
    if reader.peek().is_none() {
        return Err(Fault::Syntax("The document is empty.", reader.at));
    }
    let value = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return reader.fault("The document root must not be followed by other values.");
    }
    Ok(value)
}

struct Reader<'t, 'r, 'a> {
    text: &'t [u8],
    at: usize,
    room: &'r mut Room<'a>,
}

impl<'t> Reader<'t, '_, '_> {
    fn fault<T>(&self, what: &'static str) -> Read<T> {
        Err(Fault::Syntax(what, self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Read<Json> {
        self.room.take(VALUE_BYTES)?;
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') => self.word(b"true", Json::Bool(true)),
            Some(b'f') => self.word(b"false", Json::Bool(false)),
            Some(b'n') => self.word(b"null", Json::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], value: Json) -> Read<Json> {
        for byte in word {
            if !self.accept(*byte) {
                return self.fault("Invalid value.");
            }
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Read<Json> {
        if depth >= DEPTH_MAX {
            return Err(too_deep().into());
        }
        self.at += 1;
        self.blanks();
        let mut list = Vec::new();
        if self.accept(b']') {
            return Ok(Json::Array(list));
        }
        self.room.take(LIST_BYTES)?;
        loop {
            self.blanks();
            list.push(self.value(depth + 1)?);
            self.blanks();
            if self.accept(b']') {
                return Ok(Json::Array(list));
            }
            if !self.accept(b',') {
                return self.fault("Missing a comma or ']' after an array element.");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Read<Json> {
        if depth >= DEPTH_MAX {
            return Err(too_deep().into());
        }
        self.at += 1;
        self.blanks();
        let mut list = Vec::new();
        if self.accept(b'}') {
            return Ok(Json::Object(Members::default()));
        }
        self.room.take(LIST_BYTES)?;
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return self.fault("Missing a name for object member.");
            }
            self.room.take(VALUE_BYTES)?;
            let key = self.string()?;
            self.blanks();
            if !self.accept(b':') {
                return self.fault("Missing a colon after a name of object member.");
            }
            self.blanks();
            list.push((key, self.value(depth + 1)?));
            self.blanks();
            if self.accept(b'}') {
                return Ok(Json::Object(Members::of_list(list)));
            }
            if !self.accept(b',') {
                return self.fault("Missing a comma or '}' after an object member.");
            }
        }
    }

    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let mut made = Vec::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len());
            self.room.take(plain)?;
            made.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    let start = self.at - plain;
                    self.at += 1;
                    return String::from_utf8(made)
                        .map_err(|_| Fault::Syntax("Invalid encoding in string.", start));
                }
                Some(b'\\') => self.escape(&mut made)?,
                Some(1..) => return self.fault("Invalid encoding in string."),
                _ => return self.fault("Missing a closing quotation mark in string."),
            }
        }
    }

    /// At a backslash, which the messages point at.
    fn escape(&mut self, made: &mut Vec<u8>) -> Read<()> {
        let byte = match self.text.get(self.at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let mut buffer = [0; 4];
                made.extend_from_slice(self.unicode()?.encode_utf8(&mut buffer).as_bytes());
                return Ok(());
            }
            _ => return self.fault("Invalid escape character in string."),
        };
        made.push(byte);
        self.at += 2;
        Ok(())
    }

    /// Four digits behind the `\u` at `at`.
    fn unit(&self, at: usize) -> Read<u32> {
        let digits = self.text.get(at + 2..at + 6).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match digits.and_then(|digits| std::str::from_utf8(digits).ok()) {
            Some(digits) => Ok(u32::from_str_radix(digits, 16).unwrap_or_default()),
            None => self.fault("Incorrect hex digit after \\u escape in string."),
        }
    }

    fn unicode(&mut self) -> Read<char> {
        let unit = self.unit(self.at)?;
        if let Some(character) = char::from_u32(unit) {
            self.at += 6;
            return Ok(character);
        }
        let pair = match self.text.get(self.at + 6..self.at + 8) {
            Some(b"\\u") if unit < 0xdc00 => self.unit(self.at + 6)?,
            _ => 0,
        };
        let low = pair.checked_sub(0xdc00).filter(|low| *low < 0x400);
        match low.and_then(|low| char::from_u32(0x1_0000 + (((unit & 0x3ff) << 10) | low))) {
            Some(character) => {
                self.at += 12;
                Ok(character)
            }
            None => self.fault("The surrogate pair in string is invalid."),
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Read<Json> {
        let start = self.at;
        let _ = self.accept(b'-');
        if !self.accept(b'0') && !self.digits() {
            return self.fault("Invalid value.");
        }
        let mut whole = true;
        if self.accept(b'.') {
            whole = false;
            if !self.digits() {
                return self.fault("Miss fraction part in number.");
            }
        }
        if self.accept(b'e') || self.accept(b'E') {
            whole = false;
            let _ = self.accept(b'+') || self.accept(b'-');
            if !self.digits() {
                return self.fault("Miss exponent in number.");
            }
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        // MySQL has what is more than 32 bits as unsigned.
        if whole
            && let Ok(number) = text.parse::<i64>()
            && number <= i64::from(u32::MAX)
        {
            return Ok(Json::Int(number));
        }
        if whole && let Ok(number) = text.parse() {
            return Ok(Json::UInt(number));
        }
        match text.parse() {
            Ok(number) if f64::is_finite(number) => Ok(Json::Double(number)),
            _ => Err(Fault::Syntax("Number too big to be stored in double.", start)),
        }
    }
}
