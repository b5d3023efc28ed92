//! Cuts the bytes of a text file into lines and their fields, as LOAD DATA reads them.
//!
//! The bytes come in pieces of any length, and a line may be cut anywhere. [`Line::read`] takes what it can
//! decide of the bytes at hand and keeps how far it has come, so that every byte is looked at once however
//! long the line is and however small the pieces are. What it leaves is less than a separator: separators may
//! be several bytes long, and the end of what is there decides nothing unless it is the end of the file.
//!
//! What is one line depends on how many fields are wanted: a line terminator inside an enclosed field is
//! text, and what follows the last field that is wanted is skipped up to a terminator, enclosed or not. An
//! escaped terminator does not end the line, in fields or in skipped text.

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
    stage: Stage,
}

/// How far a line has been read.
#[derive(Clone, Copy, Default)]
enum Stage {
    /// Its beginning was not found yet.
    #[default]
    Outside,
    /// Before a field.
    Between,
    /// In a field that begins here in the line's text, and what encloses it.
    Field { begin: usize, quote: Option<u8>, null: bool },
    /// Behind the last field that is wanted.
    Rest { more: bool },
}

/// Memory of a field beside its text.
const FIELD_BYTES: usize = size_of::<(usize, bool)>();

impl Line {
    /// Begins the next line; `skipped`: nothing of it is wanted.
    pub fn begin(&mut self, skipped: bool) {
        self.text.clear();
        self.fields.clear();
        self.cut = false;
        self.stage = if skipped { Stage::Rest { more: false } } else { Stage::Outside };
    }

    /// Bytes of memory.
    pub fn weight(&self) -> usize {
        self.text.capacity() + self.fields.capacity() * FIELD_BYTES
    }

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

    /// Goes on reading a line of up to `wanted` fields; `last`: no bytes will come behind these. The answer
    /// is how many bytes are done with, and what there is.
    pub fn read(&mut self, format: &TextFormat, bytes: &[u8], last: bool, wanted: usize) -> (usize, Found) {
        let mut scan = Scan { format, bytes, at: 0, last };
        let found = match scan.line(wanted, self) {
            Ok(true) => Found::Line,
            Ok(false) => Found::End,
            Err(Short) => Found::Part,
        };
        (scan.at, found)
    }
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A line.
    Line,
    /// Nothing, and nothing will come.
    End,
    /// Part of a line: more bytes are needed.
    Part,
}

/// The bytes end where a decision was to be made.
struct Short;

struct Scan<'a> {
    format: &'a TextFormat,
    bytes: &'a [u8],
    at: usize,
    last: bool,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Result<Option<u8>, Short> {
        self.peek_at(0)
    }

    fn peek_at(&self, distance: usize) -> Result<Option<u8>, Short> {
        match self.bytes.get(self.at + distance) {
            Some(byte) => Ok(Some(*byte)),
            None if self.last => Ok(None),
            None => Err(Short),
        }
    }

    /// The length of this text if it stands at this distance.
    fn stands(&self, distance: usize, text: &[u8]) -> Result<Option<usize>, Short> {
        let rest = self.bytes.get(self.at + distance..).unwrap_or_default();
        if text.is_empty() || rest.first().is_some_and(|byte| text.first() != Some(byte)) {
            return Ok(None);
        }
        if rest.starts_with(text) {
            return Ok(Some(text.len()));
        }
        if !self.last && text.starts_with(rest) { Err(Short) } else { Ok(None) }
    }

    /// Steps over this text if it stands here.
    fn accept(&mut self, text: &[u8]) -> Result<bool, Short> {
        let length = self.stands(0, text)?;
        self.at += length.unwrap_or(0);
        Ok(length.is_some())
    }

    /// Steps behind the next place where this text stands; false: it does not, up to the end of the file.
    fn find(&mut self, text: &[u8]) -> Result<bool, Short> {
        match memchr::memmem::find(self.rest(), text) {
            Some(found) => {
                self.at += found + text.len();
                Ok(true)
            }
            None if self.last => {
                self.at = self.bytes.len();
                Ok(false)
            }
            None => {
                // It may have begun.
                self.at = self.at.max((self.bytes.len() + 1).saturating_sub(text.len()));
                Err(Short)
            }
        }
    }

    /// False: there is no line any more.
    fn line(&mut self, wanted: usize, line: &mut Line) -> Result<bool, Short> {
        let format = self.format;
        loop {
            match line.stage {
                Stage::Outside => {
                    if !format.line_start.is_empty() && !self.find(&format.line_start)? {
                        return Ok(false);
                    }
                    line.stage = Stage::Between;
                }
                Stage::Between if line.fields.len() >= wanted => {
                    if format.line_end.is_empty() {
                        return Ok(true);
                    }
                    line.stage = Stage::Rest { more: false };
                }
                Stage::Between => {
                    // When the file has ended behind a separator the field is not there.
                    let Some(first) = self.peek()? else { return Ok(!line.fields.is_empty()) };
                    let quote = format.enclosed.filter(|quote| *quote == first);
                    self.at += usize::from(quote.is_some());
                    line.stage = Stage::Field { begin: line.text.len(), quote, null: false };
                }
                Stage::Field { .. } => {
                    let ends_line = self.field(line)?;
                    line.stage = Stage::Between;
                    if ends_line {
                        return Ok(true);
                    }
                }
                Stage::Rest { .. } => {
                    let is_there = self.skip(line)?;
                    // As in MySQL what the file's end cuts off is not worth a word.
                    line.cut = is_there && matches!(line.stage, Stage::Rest { more: true });
                    return Ok(is_there || !line.fields.is_empty());
                }
            }
        }
    }

    /// Skips to behind the end of the line; false: the file has ended before.
    fn skip(&mut self, line: &mut Line) -> Result<bool, Short> {
        let format = self.format;
        let specials = [format.escaped, format.line_end.first().copied()];
        loop {
            let rest = self.rest();
            let plain = rest.iter().position(|byte| specials.contains(&Some(*byte))).unwrap_or(rest.len());
            self.at += plain;
            if plain > 0 {
                line.stage = Stage::Rest { more: true };
            }
            let Some(byte) = self.peek()? else { return Ok(false) };
            if format.escaped == Some(byte) {
                let next = self.peek_at(1)?;
                self.at += 1 + usize::from(next.is_some());
            } else if self.accept(&format.line_end)? {
                return Ok(true);
            } else {
                self.at += 1;
            }
            line.stage = Stage::Rest { more: true };
        }
    }

    /// Goes on with a field; the answer is whether its line ends with it.
    fn field(&mut self, line: &mut Line) -> Result<bool, Short> {
        let Stage::Field { begin, quote, mut null } = line.stage else { return Ok(false) };
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
                line.stage = Stage::Field { begin, quote, null };
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
        Ok(ends_line)
    }

    /// Takes what cannot mean anything.
    fn plain(&mut self, text: &mut Vec<u8>) {
        let format = self.format;
        let special = [format.escaped, format.enclosed];
        let ends = [format.line_end.first().copied(), format.field_end.first().copied()];
        let rest = self.rest();
        let means = |byte: &u8| special.contains(&Some(*byte)) || ends.contains(&Some(*byte));
        let length = rest.iter().position(means).unwrap_or(rest.len());
        text.extend_from_slice(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    /// At an escape: whether it marks NULL; `None` if it is not one here, because it is also what encloses
    /// and stands alone.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<Option<bool>, Short> {
        let Some(escape) = self.format.escaped else { return Ok(None) };
        let Some(next) = self.peek_at(1)? else {
            self.at += 1;
            text.push(escape);
            return Ok(Some(false));
        };
        if self.format.enclosed == Some(escape) && next != escape {
            return Ok(None);
        }
        self.at += 2;
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
        let next = self.peek_at(1)?;
        let (line_end, field_end) = (&self.format.line_end, &self.format.field_end);
        let (length, closes) = if next == Some(quote) {
            (1, None)
        } else if next.is_none() {
            (0, Some(true))
        } else if let Some(length) = self.stands(1, line_end)? {
            (length, Some(true))
        } else if let Some(length) = self.stands(1, field_end)? {
            (length, Some(false))
        } else {
            (0, None)
        };
        self.at += 1 + length;
        text.extend(closes.is_none().then_some(quote));
        Ok(closes)
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
        let longest = format.line_end.len().max(format.field_end.len()).max(format.line_start.len());
        line.begin(false);
        loop {
            let (done, what) = line.read(format, &text[begin..end], end == text.len(), wanted);
            begin += done;
            match what {
                Found::Part => {
                    assert!(end - begin <= longest + 1, "read again: {:?}", &text[begin..end]);
                    end = (end + piece).min(text.len());
                }
                Found::End => return found,
                Found::Line => {
                    let shown =
                        |at| line.field(at).map_or("~".into(), |field| field.escape_ascii().to_string());
                    let mut row = (0..line.len()).map(shown).collect::<Vec<_>>().join("|");
                    row.extend(line.cut.then_some('+'));
                    found.push(row);
                    line.begin(false);
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
        // An escaped terminator ends no line that is skipped either.
        check(&tabs, b"1\tx\\\n77\ty\n2\n", 1, &["1+", "2"]);
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
