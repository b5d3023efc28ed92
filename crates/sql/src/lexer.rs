//! The byte-level lexer of MySQL's SQL.
//!
//! Statements are bytes, not text: a dump carries raw BLOB bytes inside string literals, and the client's
//! character set decides nothing about where a token ends (every supported set is ASCII-compatible). Tokens
//! are spans into the statement; nothing is copied before the parser asks for a value, so skipping over a
//! token costs no allocation.
//!
//! Invariants: the lexer never panics on any input, always ends with [`TokenKind::End`], and makes progress
//! with each token. Executable comments (`/*! … */`, `/*!80000 … */`) are opened up when their version is not
//! above [`EXECUTABLE_VERSION`]; those of MariaDB (`/*M! … */`) and hints (`/*+ … */`) are ordinary comments.

use std::borrow::Cow;

use crate::sql_mode;

/// Executable comments up to this version are executed (the server says it is MySQL 8.0.36).
pub const EXECUTABLE_VERSION: u32 = 80_036;

/// What changes how bytes become tokens, operators or literals: parts of `sql_mode`, and the client's
/// character set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LexicalModes {
    /// `ANSI_QUOTES`: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// `PIPES_AS_CONCAT`: `||` concatenates instead of meaning OR.
    pub pipes_as_concat: bool,
    /// `HIGH_NOT_PRECEDENCE`: `NOT` binds like `!`.
    pub high_not_precedence: bool,
    /// `REAL_AS_FLOAT`: `REAL` is FLOAT rather than DOUBLE.
    pub real_as_float: bool,
    /// The text came in `latin1`, from which it was converted: what stands behind an introducer is meant as
    /// it came.
    pub was_latin1: bool,
    /// The text is one that the catalog keeps: what was taken when it came is not refused now.
    pub is_kept: bool,
}

impl LexicalModes {
    /// Those of a text that the catalog keeps.
    pub fn of_kept() -> LexicalModes {
        LexicalModes { is_kept: true, ..LexicalModes::default() }
    }

    /// Those that are set in this `sql_mode`.
    pub fn of(mode: u64) -> LexicalModes {
        LexicalModes {
            ansi_quotes: mode & sql_mode::ANSI_QUOTES != 0,
            no_backslash_escapes: mode & sql_mode::NO_BACKSLASH_ESCAPES != 0,
            pipes_as_concat: mode & sql_mode::PIPES_AS_CONCAT != 0,
            high_not_precedence: mode & sql_mode::HIGH_NOT_PRECEDENCE != 0,
            real_as_float: mode & sql_mode::REAL_AS_FLOAT != 0,
            was_latin1: false,
            is_kept: false,
        }
    }
}

/// What a token is; its text is the span in [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// End of the statement text.
    End,
    /// Keyword or unquoted identifier.
    Word,
    /// `` `name` `` (or `"name"` with ANSI_QUOTES).
    QuotedName,
    /// `'…'` or `"…"`.
    Text,
    /// `n'…'`: a string in the national character set.
    NationalText,
    /// Digits only.
    Integer,
    /// Digits with a point.
    Decimal,
    /// With an exponent.
    Float,
    /// `0xAB` or `x'AB'`.
    Hex,
    /// `0b01` or `b'01'`.
    Bits,
    /// `?`.
    Parameter,
    /// `@name`, ``@`name` ``, `@'name'`; a lone `@` is a [`TokenKind::Symbol`].
    UserVariable,
    /// `@@`; the words of the name follow.
    SystemVariable,
    /// One operator or punctuation mark of one to three bytes.
    Symbol,
    /// A string, quoted name or comment that the statement's end cuts off, or a byte that starts nothing.
    Invalid,
}

/// One token: its kind and its span in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// A position in a statement; cheap to copy, which is how the parser looks ahead.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    modes: LexicalModes,
    inside_executable_comment: bool,
}

/// Bytes that identifiers consist of: letters, digits, `_`, `$` and everything beyond ASCII.
#[inline]
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`. Offsets are 32 bits wide: callers bound a statement by
    /// `max_allowed_packet` (1 GiB at most).
    pub fn new(text: &'a [u8], modes: LexicalModes) -> Self {
        Self { text, at: 0, modes, inside_executable_comment: false }
    }

    /// A copy that reads on from here.
    pub fn clone_at(&self) -> Self {
        *self
    }

    /// The whole text.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The modes the text is read with.
    pub fn modes(&self) -> LexicalModes {
        self.modes
    }

    /// The bytes of `token`.
    pub fn slice(&self, token: Token) -> &'a [u8] {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    #[inline]
    fn byte(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    /// Reads the next token.
    #[inline]
    pub fn next_token(&mut self) -> Token {
        if !self.skip_blanks() {
            let start = self.at;
            self.at = self.text.len();
            return self.token(TokenKind::Invalid, start);
        }
        let start = self.at;
        let Some(&first) = self.text.get(start) else {
            return self.token(TokenKind::End, start);
        };
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word(first),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() && !self.follows_name(start) => self.number(),
            b'\'' => self.quoted(b'\'', TokenKind::Text),
            b'"' if self.modes.ansi_quotes => self.quoted(b'"', TokenKind::QuotedName),
            b'"' => self.quoted(b'"', TokenKind::Text),
            b'`' => self.quoted(b'`', TokenKind::QuotedName),
            b'?' => {
                self.at += 1;
                TokenKind::Parameter
            }
            b'@' => self.variable(),
            _ => self.symbol(first),
        };
        self.token(kind, start)
    }

    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start: start as u32, end: self.at as u32 }
    }

    /// A point directly behind a name is a qualifier, not the start of a number (`t.1a`).
    fn follows_name(&self, start: usize) -> bool {
        start > 0 && self.text.get(start - 1).is_some_and(|&b| is_name_byte(b) || b == b'`')
    }

    /// Skips white space and comments; `false` when a comment does not end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match self.byte(0) {
                // A trailing NUL is what mysqlslap sends behind its generated statements.
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 if self.at < self.text.len() => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(1) == b'-' && (self.byte(2) <= b' ') => self.skip_line(),
                b'*' if self.inside_executable_comment && self.byte(1) == b'/' => {
                    self.inside_executable_comment = false;
                    self.at += 2;
                }
                b'/' if self.byte(1) == b'*' => {
                    if !self.comment() {
                        return false;
                    }
                }
                _ => return true,
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.text.len() && self.byte(0) != b'\n' {
            self.at += 1;
        }
    }

    /// At `/*`: opens an executable comment or skips an ordinary one.
    fn comment(&mut self) -> bool {
        if self.byte(2) == b'!' && !self.inside_executable_comment {
            let digits = (0..6).take_while(|&i| self.byte(3 + i).is_ascii_digit()).count();
            let version = (0..digits).fold(0u32, |v, i| v * 10 + u32::from(self.byte(3 + i) - b'0'));
            let digits = if digits >= 5 { digits } else { 0 };
            if digits == 0 || version <= EXECUTABLE_VERSION {
                self.at += 3 + digits;
                self.inside_executable_comment = true;
                return true;
            }
        }
        // An ordinary comment may hold executable ones when it was one itself (`/*!99999 … /* x */ … */`).
        let nests = self.byte(2) == b'!';
        let mut depth = 1;
        self.at += 2;
        while self.at < self.text.len() {
            if self.byte(0) == b'*' && self.byte(1) == b'/' {
                self.at += 2;
                depth -= 1;
                if depth == 0 {
                    return true;
                }
            } else if nests && self.byte(0) == b'/' && self.byte(1) == b'*' {
                self.at += 2;
                depth += 1;
            } else {
                self.at += 1;
            }
        }
        false
    }

    fn word(&mut self, first: u8) -> TokenKind {
        if self.byte(1) == b'\'' {
            match first {
                b'x' | b'X' => {
                    self.at += 1;
                    return self.quoted(b'\'', TokenKind::Hex);
                }
                b'b' | b'B' => {
                    self.at += 1;
                    return self.quoted(b'\'', TokenKind::Bits);
                }
                b'n' | b'N' => {
                    self.at += 1;
                    return self.quoted(b'\'', TokenKind::NationalText);
                }
                _ => {}
            }
        }
        self.name_bytes();
        TokenKind::Word
    }

    fn name_bytes(&mut self) {
        while self.at < self.text.len() && is_name_byte(self.text[self.at]) {
            self.at += 1;
        }
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'b') {
            let hex = self.byte(1) == b'x';
            let mut length = 2;
            while if hex {
                self.byte(length).is_ascii_hexdigit()
            } else {
                matches!(self.byte(length), b'0' | b'1')
            } {
                length += 1;
            }
            if length > 2 && !is_name_byte(self.byte(length)) {
                self.at += length;
                return if hex { TokenKind::Hex } else { TokenKind::Bits };
            }
        }
        let start = self.at;
        self.digits();
        let mut kind = TokenKind::Integer;
        if self.byte(0) == b'.' {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
                return TokenKind::Float;
            }
        }
        if kind == TokenKind::Integer && is_name_byte(self.byte(0)) && self.at > start {
            // `2nd` is a name.
            self.name_bytes();
            return TokenKind::Word;
        }
        kind
    }

    /// At an opening quote: runs to the closing one (doubled quotes and, in strings, backslashes escape).
    fn quoted(&mut self, quote: u8, kind: TokenKind) -> TokenKind {
        let escapes = quote != b'`' && kind != TokenKind::QuotedName && !self.modes.no_backslash_escapes;
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(skip) = rest.iter().position(|&b| b == quote || (escapes && b == b'\\')) else {
                self.at = self.text.len();
                return TokenKind::Invalid;
            };
            self.at += skip;
            if self.byte(0) == b'\\' && escapes {
                self.at = (self.at + 2).min(self.text.len());
            } else if self.byte(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                return kind;
            }
        }
    }

    fn variable(&mut self) -> TokenKind {
        match self.byte(1) {
            b'@' => {
                self.at += 2;
                TokenKind::SystemVariable
            }
            quote @ (b'\'' | b'"' | b'`') => {
                self.at += 1;
                self.quoted(quote, TokenKind::UserVariable)
            }
            byte if is_name_byte(byte) || byte == b'.' => {
                self.at += 1;
                while is_name_byte(self.byte(0)) || self.byte(0) == b'.' {
                    self.at += 1;
                }
                TokenKind::UserVariable
            }
            _ => {
                self.at += 1;
                TokenKind::Symbol
            }
        }
    }

    fn symbol(&mut self, first: u8) -> TokenKind {
        let length = match (first, self.byte(1), self.byte(2)) {
            (b'<', b'=', b'>') | (b'-', b'>', b'>') => 3,
            (b'<', b'=' | b'>' | b'<', _)
            | (b'>', b'=' | b'>', _)
            | (b'!' | b':', b'=', _)
            | (b'&', b'&', _)
            | (b'|', b'|', _)
            | (b'-', b'>', _) => 2,
            (
                b'(' | b')' | b',' | b';' | b'.' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%'
                | b'&' | b'|' | b'^' | b'~' | b'!' | b':' | b'{' | b'}',
                _,
                _,
            ) => 1,
            _ => {
                self.at += 1;
                return TokenKind::Invalid;
            }
        };
        self.at += length;
        TokenKind::Symbol
    }
}

/// The value of a quoted token (`'…'`, `"…"`, `` `…` ``, with or without a one-letter prefix): quotes
/// removed, doubled quotes and backslash escapes resolved. Borrows when nothing had to be changed.
pub fn unquote(token: &[u8], modes: LexicalModes) -> Cow<'_, [u8]> {
    let body = match token.iter().position(|b| matches!(b, b'\'' | b'"' | b'`')) {
        Some(open) if token.len() >= open + 2 => &token[open..],
        _ => return Cow::Borrowed(token),
    };
    let quote = body[0];
    let inner = &body[1..body.len() - 1];
    let escapes = quote != b'`' && !modes.no_backslash_escapes;
    if !inner.iter().any(|&b| b == quote || (escapes && b == b'\\')) {
        return Cow::Borrowed(inner);
    }
    let mut value = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        let byte = inner[at];
        at += 1;
        if byte == quote {
            at += 1; // doubled
            value.push(quote);
        } else if byte == b'\\' && escapes {
            let Some(&escaped) = inner.get(at) else {
                value.push(b'\\');
                break;
            };
            at += 1;
            match escaped {
                b'0' => value.push(0),
                b'b' => value.push(8),
                b'n' => value.push(b'\n'),
                b'r' => value.push(b'\r'),
                b't' => value.push(b'\t'),
                b'Z' => value.push(26),
                // Kept with the backslash, for LIKE patterns.
                b'%' | b'_' => value.extend_from_slice(&[b'\\', escaped]),
                other => value.push(other),
            }
        } else {
            value.push(byte);
        }
    }
    Cow::Owned(value)
}

/// The bytes of a hexadecimal token (`0x1F`, `x'1F'`); an odd number of digits is padded with a zero in
/// front. `None` when a character is no hexadecimal digit or `x'…'` has an odd number of them.
pub fn hex_value(token: &[u8]) -> Option<Vec<u8>> {
    let quoted = matches!(token.first(), Some(b'x' | b'X'));
    let digits = if quoted { token.get(2..token.len().checked_sub(1)?)? } else { token.get(2..)? };
    if quoted && digits.len() % 2 == 1 {
        return None;
    }
    hex_digits(digits)
}

/// The bytes of hexadecimal digits; an odd one is a byte for itself.
pub fn hex_digits(digits: &[u8]) -> Option<Vec<u8>> {
    let nibble = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut value = Vec::with_capacity(digits.len() / 2 + 1);
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    if let [digit] = odd {
        value.push(nibble(*digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        value.push(nibble(pair[0])? << 4 | nibble(pair[1])?);
    }
    Some(value)
}

/// The bytes of a bit token (`0b101`, `b'101'`), right-aligned.
pub fn bit_value(token: &[u8]) -> Option<Vec<u8>> {
    let quoted = token.get(1) == Some(&b'\'');
    let digits = if quoted { token.get(2..token.len().checked_sub(1)?)? } else { token.get(2..)? };
    let mut value = vec![0u8; digits.len().div_ceil(8)];
    for (position, digit) in digits.iter().rev().enumerate() {
        let byte = value.len() - 1 - position / 8;
        match digit {
            b'0' => {}
            b'1' => value[byte] |= 1 << (position % 8),
            _ => return None,
        }
    }
    Some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<(TokenKind, String)> {
        let mut lexer = Lexer::new(sql.as_bytes(), LexicalModes::default());
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next_token();
            if token.kind == TokenKind::End {
                return tokens;
            }
            tokens.push((token.kind, String::from_utf8_lossy(lexer.slice(token)).into_owned()));
        }
    }

    fn words(sql: &str) -> String {
        kinds(sql).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn executable_comments_open_up_to_our_version() {
        assert_eq!(words("a /*! b */ c /*!40101 d */ /*!99999 e */ f"), "a b c d f");
        assert_eq!(words("a /*M!100100 x */ b /*+ hint */ c /* plain /* not nested */"), "a b c");
        assert_eq!(words("/*!50003 CREATE*/ /*!50017 DEFINER*/ x"), "CREATE DEFINER x");
        assert_eq!(words("/*!80016 a /* inner */ b */ c"), "a b c");
    }

    #[test]
    fn comments_need_a_blank_after_two_dashes() {
        assert_eq!(words("a --b"), "a - - b");
        assert_eq!(words("a -- b\nc # d\ne"), "a c e");
    }

    #[test]
    fn trailing_nul_and_unfinished_text() {
        assert_eq!(words("SELECT 1;\0"), "SELECT 1 ;");
        assert_eq!(kinds("'abc").last().unwrap().0, TokenKind::Invalid);
        assert_eq!(kinds("/* abc").last().unwrap().0, TokenKind::Invalid);
        assert_eq!(kinds("'abc\\").last().unwrap().0, TokenKind::Invalid);
    }

    #[test]
    fn numbers_and_names_that_start_with_digits() {
        use TokenKind::*;
        let found: Vec<_> =
            kinds("1 1.5 .5 1e5 1.e-3 2nd 0xAB 0b01 0xZZ x'00' t.1a").into_iter().map(|t| t.0).collect();
        assert_eq!(
            found,
            [Integer, Decimal, Decimal, Float, Float, Word, Hex, Bits, Word, Hex, Word, Symbol, Word]
        );
    }

    #[test]
    fn escapes() {
        let modes = LexicalModes::default();
        assert_eq!(unquote(b"'a''b\\n\\%\\x'", modes).as_ref(), b"a'b\n\\%x");
        assert_eq!(unquote(b"\"it's\"", modes).as_ref(), b"it's");
        assert_eq!(unquote(b"`a``b`", modes).as_ref(), b"a`b");
        let raw = LexicalModes { no_backslash_escapes: true, ..modes };
        assert_eq!(unquote(b"'a\\n'", raw).as_ref(), b"a\\n");
        assert_eq!(hex_value(b"0xABC"), Some(vec![0x0a, 0xbc]));
        assert_eq!(hex_value(b"x'ABC'"), None);
        assert_eq!(bit_value(b"b'100000001'"), Some(vec![1, 1]));
    }

    #[test]
    fn any_bytes_end() {
        let mut seed = 0x1234_5678_u32;
        for length in 0..400usize {
            let mut text = Vec::new();
            for _ in 0..length {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push(b"/*!-'\"`\\ab01.x@#\n;\0\xff"[(seed >> 16) as usize % 20]);
            }
            let mut lexer = Lexer::new(&text, LexicalModes::default());
            for steps in 0.. {
                assert!(steps <= length + 1, "no progress in {text:?}");
                if lexer.next_token().kind == TokenKind::End {
                    break;
                }
            }
        }
    }
}
