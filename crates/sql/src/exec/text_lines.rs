//! Cuts the bytes of a text file into lines and their fields, as LOAD DATA reads them.
//!
//! The bytes come in pieces of any length, and a line may be cut anywhere. [`read_line`] looks at what is
//! there from the beginning of a line; when that is not the whole line it says so, and is called again when
//! the caller has more. Terminators may be several bytes long, so the end of what is there decides nothing
//! unless it is the end of the file.
//!
//! What is one line depends on how many fields are wanted: a line terminator inside of an enclosed field is
//! text, and what follows the last field that is wanted is skipped up to a terminator, enclosed or not.

use smallvec::SmallVec;

use crate::ast::TextFormat;

/// One line.
#[derive(Default)]
pub struct Line {
    text: Vec<u8>,
    /// Where each field ends in `text`, and whether it is NULL.
    fields: SmallVec<[(usize, bool); 16]>,
    /// There was more than the fields that were wanted.
    pub cut: bool,
}

impl Line {
    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field: `None` is NULL.
    pub fn field(&self, at: usize) -> Option<&[u8]> {
        let (end, null) = *self.fields.get(at)?;
        let begin = at.checked_sub(1).and_then(|before| self.fields.get(before)).map_or(0, |(end, _)| *end);
        if null { None } else { self.text.get(begin..end) }
    }

    fn begin(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.cut = false;
    }
}

/// What was found at the beginning of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A line, of this many bytes.
    Line(usize),
    /// Nothing, and nothing will come.
    End,
    /// Part of a line: more bytes are needed.
    Part,
}

/// The bytes end where a decision was to be made.
struct Short;

/// Reads a line of up to `wanted` fields; `last`: no bytes will come behind these.
pub fn read_line(format: &TextFormat, bytes: &[u8], last: bool, wanted: usize, line: &mut Line) -> Found {
    line.begin();
    let mut scan = Scan { format, bytes, at: 0, last };
    match scan.line(wanted, line) {
        Ok(true) => Found::Line(scan.at),
        Ok(false) => Found::End,
        Err(Short) => Found::Part,
    }
}

/// Finds the end of a line that is not wanted.
pub fn skip_line(format: &TextFormat, bytes: &[u8], last: bool) -> Found {
    let mut scan = Scan { format, bytes, at: 0, last };
    match scan.find(&format.line_end) {
        Ok(true) => Found::Line(scan.at),
        Ok(false) => Found::End,
        Err(Short) => Found::Part,
    }
}

struct Scan<'a> {
    format: &'a TextFormat,
    bytes: &'a [u8],
    at: usize,
    last: bool,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Result<Option<u8>, Short> {
        match self.bytes.get(self.at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.last => Ok(None),
            None => Err(Short),
        }
    }

    /// Steps over this text if it stands here.
    fn accept(&mut self, text: &[u8]) -> Result<bool, Short> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if text.is_empty() || rest.first().is_some_and(|byte| text.first() != Some(byte)) {
            return Ok(false);
        }
        if rest.starts_with(text) {
            self.at += text.len();
            return Ok(true);
        }
        if !self.last && text.starts_with(rest) { Err(Short) } else { Ok(false) }
    }

    /// Steps behind the next place where this text stands; false: it does not, up to the end of the file.
    fn find(&mut self, text: &[u8]) -> Result<bool, Short> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match memchr::memmem::find(rest, text) {
            Some(found) => {
                self.at += found + text.len();
                Ok(true)
            }
            None if self.last => {
                self.at = self.bytes.len();
                Ok(false)
            }
            None => Err(Short),
        }
    }

    /// False: there is no line any more.
    fn line(&mut self, wanted: usize, line: &mut Line) -> Result<bool, Short> {
        let format = self.format;
        if !format.line_start.is_empty() && !self.find(&format.line_start)? {
            return Ok(false);
        }
        let mut ended = false;
        while !ended && line.fields.len() < wanted {
            match self.field(line)? {
                Some(ends_line) => ended = ends_line,
                // The file has ended behind a separator: the field is not there.
                None => return Ok(!line.fields.is_empty()),
            }
        }
        if !ended && !format.line_end.is_empty() && !self.accept(&format.line_end)? {
            // As in MySQL what the file's end cuts off is not worth a word.
            line.cut = self.find(&format.line_end)?;
        }
        Ok(true)
    }

    /// Reads a field; the answer is whether its line ends with it, `None` at the end of the file.
    fn field(&mut self, line: &mut Line) -> Result<Option<bool>, Short> {
        let Some(first) = self.peek()? else { return Ok(None) };
        let begin = line.text.len();
        let quote = self.format.enclosed.filter(|quote| *quote == first);
        if quote.is_some() {
            self.at += 1;
        }
        let mut null = false;
        let mut closed = false;
        let ends_line = loop {
            self.plain(&mut line.text);
            let Some(byte) = self.peek()? else {
                // A field that was opened and not closed is text with a quote at its beginning.
                if let Some(quote) = quote {
                    line.text.insert(begin, quote);
                }
                break true;
            };
            if self.format.escaped == Some(byte)
                && let Some(marks) = self.escape(&mut line.text)?
            {
                null |= marks;
                continue;
            }
            if quote.is_some_and(|quote| quote == byte) {
                if let Some(ends_line) = self.close(byte, &mut line.text)? {
                    closed = true;
                    break ends_line;
                }
                continue;
            }
            if quote.is_none() {
                if self.accept(&self.format.line_end)? {
                    break true;
                }
                if self.accept(&self.format.field_end)? {
                    break false;
                }
            }
            line.text.push(byte);
            self.at += 1;
        };
        let text = line.text.get(begin..).unwrap_or_default();
        let word = self.format.enclosed.is_some() && !closed && text == b"NULL";
        line.fields.push((line.text.len(), word || null && text.len() == 1));
        Ok(Some(ends_line))
    }

    /// Takes what cannot mean anything.
    fn plain(&mut self, text: &mut Vec<u8>) {
        let format = self.format;
        let special = [format.escaped, format.enclosed];
        let ends = [format.line_end.first().copied(), format.field_end.first().copied()];
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let means = |byte: &u8| special.contains(&Some(*byte)) || ends.contains(&Some(*byte));
        let length = rest.iter().position(means).unwrap_or(rest.len());
        text.extend_from_slice(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    /// At an escape: whether it marks NULL; `None` if it is not one here, because it is also what encloses
    /// and stands alone.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<Option<bool>, Short> {
        let (Some(escape), at) = (self.format.escaped, self.at) else { return Ok(None) };
        self.at += 1;
        let next = match self.peek() {
            Ok(next) => next,
            Err(short) => {
                self.at = at;
                return Err(short);
            }
        };
        let Some(next) = next else {
            text.push(escape);
            return Ok(Some(false));
        };
        if self.format.enclosed == Some(escape) && next != escape {
            self.at = at;
            return Ok(None);
        }
        self.at += 1;
        text.push(match next {
            b'0' => 0,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'Z' => 26,
            other => other,
        });
        Ok(Some(next == b'N'))
    }

    /// At the quote of an enclosed field: whether the line ends with it, `None` if it is text.
    fn close(&mut self, quote: u8, text: &mut Vec<u8>) -> Result<Option<bool>, Short> {
        self.at += 1;
        let next = self.peek()?;
        if next == Some(quote) {
            self.at += 1;
            text.push(quote);
            return Ok(None);
        }
        if next.is_none() || self.accept(&self.format.line_end)? {
            return Ok(Some(true));
        }
        if self.accept(&self.format.field_end)? {
            return Ok(Some(false));
        }
        text.push(quote);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comma() -> TextFormat {
        TextFormat { field_end: b",".to_vec(), enclosed: Some(b'"'), ..TextFormat::default() }
    }

    /// All lines of a text that comes in pieces of this length; fields are joined by `|`, NULL is `~`, and
    /// `+` says that more was there.
    fn lines(format: &TextFormat, text: &[u8], wanted: usize, piece: usize) -> Vec<String> {
        let (mut line, mut found) = (Line::default(), Vec::new());
        let (mut begin, mut end) = (0, 0);
        loop {
            match read_line(format, &text[begin..end], end == text.len(), wanted, &mut line) {
                Found::Part => end = (end + piece).min(text.len()),
                Found::End => return found,
                Found::Line(length) => {
                    begin += length;
                    let shown =
                        |at| line.field(at).map_or("~".into(), |field| field.escape_ascii().to_string());
                    let mut row = (0..line.len()).map(shown).collect::<Vec<_>>().join("|");
                    row.extend(line.cut.then_some('+'));
                    found.push(row);
                }
            }
        }
    }

    fn check(format: &TextFormat, text: &[u8], wanted: usize, expected: &[&str]) {
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(lines(format, text, wanted, piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn the_default_format() {
        let tabs = TextFormat::default();
        check(&tabs, b"1\ta\n2\t\\N\n\\N\tNULL\n", 2, &["1|a", "2|~", "~|NULL"]);
        check(&tabs, b"a\\tb\\\\\tx\\\ny\n3", 2, &["a\\tb\\\\|x\\ny", "3"]);
        check(&tabs, b"1\t\n\n2\t", 2, &["1|", "", "2"]);
        check(&tabs, b"1\t2\t3\n1\t2\t\n", 2, &["1|2+", "1|2"]);
        check(&tabs, b"", 2, &[]);
        check(&tabs, b"end\\", 1, &["end\\\\"]);
    }

    #[test]
    fn enclosed_fields() {
        check(&comma(), b"5,\"q\"\"q\"\n6,NULL\n7,\"NULL\"\n", 2, &["5|q\\\"q", "6|~", "7|NULL"]);
        check(&comma(), b"\"a,\nb\",\"c\"d\"\n", 2, &["a,\\nb|c\\\"d"]);
        check(&comma(), b"11,\"unend\n", 2, &["11|\\\"unend\\n"]);
        check(&comma(), b"\"a\",\"b\"", 2, &["a|b"]);
        let doubled = TextFormat { escaped: Some(b'"'), ..comma() };
        check(&doubled, b"\"a\"\"b\",\"\\n\"\n", 2, &["a\\\"b|\\\\n"]);
    }

    #[test]
    fn long_terminators_and_beginnings() {
        let format = TextFormat {
            field_end: b"<>".to_vec(),
            line_start: b"xx".to_vec(),
            line_end: b"\r\n".to_vec(),
            ..TextFormat::default()
        };
        check(&format, b"no\r\nxx1<>a<b\r\nrest xx2<>\rc\r\nno", 2, &["1|a<b", "2|\\rc"]);
        let one = TextFormat { field_end: b",".to_vec(), line_end: Vec::new(), ..TextFormat::default() };
        check(&one, b"1,2,3,4", 2, &["1|2", "3|4"]);
    }
}
