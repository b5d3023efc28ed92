//! Reading an XML text as leniently as MySQL does.
//!
//! Nothing is decoded: `&lt;` stays what it is. The declaration and a DOCTYPE are elements, several elements
//! may stand beside each other, and of a closing tag only the length of its name is compared with that of the
//! opening one. What cannot be read is said with MySQL's words and its position, which counts bytes of the
//! line, in all lines but the first with the line's end before it.

use std::ops::Range;

use super::document::{Builder, Document, Kind, Refused};
use crate::result::SqlError;
use crate::value::json::Room;

/// Bytes of a name that a message shows.
const NAME_SHOWN_MAX: usize = 31;

/// A mark of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Name,
    Quoted,
    Comment,
    Data,
    /// One of `?=/<>!`.
    Mark(u8),
    Unknown,
}

impl Token {
    fn shown(self) -> String {
        match self {
            Token::End => "END-OF-INPUT".into(),
            Token::Name => "IDENT".into(),
            Token::Quoted => "STRING".into(),
            Token::Comment => "COMMENT".into(),
            Token::Data => "CDATA".into(),
            Token::Mark(mark) => format!("'{}'", char::from(mark)),
            Token::Unknown => "unknown token".into(),
        }
    }
}

/// Why a text has not been read.
enum Stopped {
    /// It is none; MySQL's words for it.
    Wrong(String),
    Error(SqlError),
}

impl From<Refused> for Stopped {
    fn from(refused: Refused) -> Stopped {
        match refused {
            // MySQL has no words for that.
            Refused::TooDeep => Stopped::Wrong(String::new()),
            Refused::Error(error) => Stopped::Error(error),
        }
    }
}

/// Reads a text; `Ok(Err(…))` says what is wrong with it, and where.
///
/// # Errors
/// Memory, a kill.
pub(super) fn read<'t>(
    text: &'t [u8],
    room: &mut Room<'_>,
) -> Result<Result<Document<'t>, String>, SqlError> {
    let mut scanner = Scanner { text, at: 0, document: Builder::new(text, room) };
    match scanner.document() {
        Ok(()) => Ok(Ok(scanner.document.finish())),
        Err(Stopped::Error(error)) => Err(error),
        Err(Stopped::Wrong(why)) => {
            let before = &text[..scanner.at];
            let lines = before.iter().filter(|byte| **byte == b'\n').count();
            let from = before.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
            let position = before.len() - from;
            Ok(Err(format!("parse error at line {} pos {}: {why}", lines + 1, position + 1)))
        }
    }
}

/// How a tag begins, and so how it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Element,
    /// `<?`
    Instruction,
    /// `<!`
    Declaration,
}

struct Scanner<'t, 'r, 'a> {
    text: &'t [u8],
    at: usize,
    document: Builder<'t, 'r, 'a>,
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn unexpected(token: Token, wanted: &str) -> Stopped {
    Stopped::Wrong(format!("{} unexpected ({wanted} wanted)", token.shown()))
}

fn shown_name(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(NAME_SHOWN_MAX)]).into_owned()
}

impl Scanner<'_, '_, '_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// The place up to the end of this mark, behind the next `from` bytes; to the end where there is none.
    fn until(&mut self, end: &[u8], from: usize) -> Range<usize> {
        let begin = self.at;
        let found = memchr::memmem::find(self.rest().get(from..).unwrap_or_default(), end);
        self.at = found.map_or(self.text.len(), |at| begin + from + at + end.len());
        begin..self.at
    }

    /// The next token, and where it stands; a quoted text without its quotes.
    fn token(&mut self) -> (Token, Range<usize>) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        let begin = self.at;
        let Some(first) = self.rest().first().copied() else { return (Token::End, begin..begin) };
        if self.rest().starts_with(b"<!--") {
            // The marks may share their signs: `<!-->` is one.
            return (Token::Comment, self.until(b"-->", 2));
        }
        if self.rest().starts_with(b"<![CDATA[") {
            return (Token::Data, self.until(b"]]>", 9));
        }
        match first {
            b'?' | b'=' | b'/' | b'<' | b'>' | b'!' => {
                self.at += 1;
                (Token::Mark(first), begin..self.at)
            }
            b'"' | b'\'' => {
                let place = self.until(&[first], 1);
                let closed = place.len() > 1 && self.text[place.end - 1] == first;
                (Token::Quoted, begin + 1..place.end - usize::from(closed))
            }
            first if begins_name(first) => {
                let goes_on = |byte: &u8| begins_name(*byte) || matches!(byte, b'0'..=b'9' | b'-' | b'.');
                self.at += self.rest().iter().take_while(|byte| goes_on(byte)).count();
                (Token::Name, begin..self.at)
            }
            _ => (Token::Unknown, begin..begin),
        }
    }

    fn document(&mut self) -> Result<(), Stopped> {
        while let Some(first) = self.rest().first() {
            if *first == b'<' {
                self.markup()?;
                continue;
            }
            let begin = self.at;
            self.at = memchr::memchr(b'<', self.rest()).map_or(self.text.len(), |length| begin + length);
            self.document.put_text(begin..self.at)?;
        }
        match self.document.open_name() {
            Some(_) => Err(Stopped::Wrong("unexpected END-OF-INPUT".into())),
            None => Ok(()),
        }
    }

    /// What begins with `<`.
    fn markup(&mut self) -> Result<(), Stopped> {
        match self.token() {
            (Token::Comment, _) => return Ok(()),
            (Token::Data, place) => {
                let closed = self.text[place.clone()].ends_with(b"]]>") && place.len() >= 12;
                let end = place.end - if closed { 3 } else { 0 };
                return Ok(self.document.put_text(place.start + 9..end)?);
            }
            _ => {}
        }
        let (mut token, mut place) = self.token();
        if token == Token::Mark(b'/') {
            (token, place) = self.token();
            if token != Token::Name {
                return Err(unexpected(token, "ident"));
            }
            self.leave(&place)?;
            let (token, _) = self.token();
            return self.end_tag(Tag::Element, token);
        }
        let tag = match token {
            Token::Mark(b'!') => Tag::Declaration,
            Token::Mark(b'?') => Tag::Instruction,
            _ => Tag::Element,
        };
        if tag != Tag::Element {
            (token, place) = self.token();
        }
        if token != Token::Name {
            return Err(unexpected(token, "ident or '/'"));
        }
        self.document.enter(Kind::Element, place)?;
        let mut token = self.attributes(tag)?;
        if tag != Tag::Declaration && token == Token::Mark(b'/') {
            self.document.leave(self.at);
            token = self.token().0;
        }
        self.end_tag(tag, token)
    }

    /// A closing tag of this name.
    fn leave(&mut self, name: &Range<usize>) -> Result<(), Stopped> {
        let open = self.document.open_name();
        if open.is_none_or(|open| open.len() != name.len()) {
            // MySQL leaves out the first letter of a name that stands in no other.
            let skipped = usize::from(self.document.is_outermost());
            let shown = |open: &[u8]| format!("'</{}>'", shown_name(&open[skipped.min(open.len())..]));
            let wanted = open.map_or("END-OF-INPUT".into(), shown);
            let name = shown_name(&self.text[name.clone()]);
            return Err(Stopped::Wrong(format!("'</{name}>' unexpected ({wanted} wanted)")));
        }
        self.document.leave(self.at);
        Ok(())
    }

    /// The attributes of a tag; the token behind them.
    fn attributes(&mut self, tag: Tag) -> Result<Token, Stopped> {
        loop {
            let (token, name) = self.token();
            let quoted = token == Token::Quoted && tag == Tag::Declaration;
            if token != Token::Name && !quoted {
                return Ok(token);
            }
            let (behind, _) = self.token();
            match behind {
                Token::Mark(b'=') => {
                    let (token, value) = self.token();
                    if !matches!(token, Token::Name | Token::Quoted) {
                        return Err(unexpected(token, "ident or string"));
                    }
                    self.document.enter(Kind::Attribute, name)?;
                    self.document.put_text(value)?;
                    self.document.leave(self.at);
                }
                // What stands behind an attribute without a value is taken with it.
                Token::Name => {
                    self.document.enter(Kind::Attribute, name)?;
                    self.document.leave(self.at);
                }
                Token::Quoted if tag == Tag::Declaration => {}
                other => return Ok(other),
            }
        }
    }

    /// The end of a tag, whose first token is here already.
    fn end_tag(&mut self, tag: Tag, mut token: Token) -> Result<(), Stopped> {
        if tag == Tag::Instruction {
            if token != Token::Mark(b'?') {
                return Err(unexpected(token, "'?'"));
            }
            self.document.leave(self.at);
            token = self.token().0;
        }
        if tag == Tag::Declaration {
            self.document.leave(self.at);
        }
        match token {
            Token::Mark(b'>') => Ok(()),
            other => Err(unexpected(other, "'>'")),
        }
    }
}
