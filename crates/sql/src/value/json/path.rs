//! Paths into documents: `$.a[0]`, `$**.b`, `$[last-1]`, `$[1 to 3]`, read by MySQL's rules.

use super::parse::parse;
use super::{Json, Room};

/// A path of more steps is none. A document is [`super::DEPTH_MAX`] deep; only `[0]` of what is no array
/// goes on.
const LEGS_MAX: usize = 1000;

/// A cell of an array, counted from its beginning or its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Index {
    /// From the end: 0 is the last.
    pub(crate) from_end: bool,
    /// How far.
    pub(crate) at: u32,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leg {
    /// `.name`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[3]`
    Cell(Index),
    /// `[1 to 3]`
    Cells(Index, Index),
    /// `[*]`
    AnyCell,
    /// `**`: the value and all that is in it.
    Descendants,
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// From the root on.
    pub(crate) legs: Vec<Leg>,
}

impl Path {
    /// Reads a path; `Err` with the position of what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Path, usize> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        reader.path().ok_or(reader.at)
    }

    /// Whether it may lead to more than one value.
    pub(crate) fn is_many(&self) -> bool {
        self.legs.iter().any(|leg| !matches!(leg, Leg::Member(_) | Leg::Cell(_)))
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Takes the next byte, whatever it is: what it should have been stands before it.
    fn take(&mut self, wanted: u8) -> Option<()> {
        let found = self.peek()?;
        self.at += 1;
        (found == wanted).then_some(())
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn path(&mut self) -> Option<Path> {
        self.blanks();
        self.take(b'$')?;
        let mut legs = Vec::new();
        loop {
            self.blanks();
            let leg = match self.peek() {
                None => break,
                Some(b'.') => self.member()?,
                Some(b'[') => self.cells()?,
                Some(b'*') => self.descendants()?,
                Some(_) => return None,
            };
            if legs.len() == LEGS_MAX {
                return None;
            }
            legs.push(leg);
        }
        (legs.last() != Some(&Leg::Descendants)).then_some(Path { legs })
    }

    fn descendants(&mut self) -> Option<Leg> {
        self.at += 1;
        self.take(b'*')?;
        // One after the other would say nothing more.
        (self.peek()? != b'*').then_some(Leg::Descendants)
    }

    fn member(&mut self) -> Option<Leg> {
        self.at += 1;
        self.blanks();
        match self.peek()? {
            b'*' => {
                self.at += 1;
                return Some(Leg::AnyMember);
            }
            b'"' => return self.quoted(),
            _ => {}
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'.' | b'[' | b'*');
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        let name = std::str::from_utf8(&rest[..length]).ok()?;
        let starts = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
        let goes_on = |c: char| starts(c) || c.is_numeric() || matches!(c, '\u{200c}' | '\u{200d}');
        let sound = name.starts_with(starts) && name.chars().all(goes_on);
        sound.then(|| Leg::Member(name.to_owned()))
    }

    fn quoted(&mut self) -> Option<Leg> {
        let start = self.at;
        self.at += 1;
        while self.peek()? != b'"' {
            self.at += if self.peek() == Some(b'\\') { 2 } else { 1 };
        }
        self.at += 1;
        match parse(self.text.get(start..self.at)?, &mut Room::new(&|_| Ok(()))) {
            Ok(Json::Text(name)) => Some(Leg::Member(name)),
            _ => None,
        }
    }

    fn cells(&mut self) -> Option<Leg> {
        self.at += 1;
        self.blanks();
        let leg = if self.peek()? == b'*' {
            self.at += 1;
            Leg::AnyCell
        } else {
            let first = self.index()?;
            let blank = self.peek().is_some_and(|byte| byte.is_ascii_whitespace());
            self.blanks();
            if blank && self.text.get(self.at..).is_some_and(|rest| rest.starts_with(b"to")) {
                self.at += 2;
                if !self.peek()?.is_ascii_whitespace() {
                    return None;
                }
                self.blanks();
                let last = self.index()?;
                let backwards = if first.from_end { last.at > first.at } else { last.at < first.at };
                if first.from_end == last.from_end && backwards {
                    return None;
                }
                Leg::Cells(first, last)
            } else {
                Leg::Cell(first)
            }
        };
        self.blanks();
        self.take(b']')?;
        Some(leg)
    }

    fn index(&mut self) -> Option<Index> {
        let from_end = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(b"last"));
        if !from_end {
            return Some(Index { from_end, at: self.number()? });
        }
        self.at += 4;
        let end = self.at;
        self.blanks();
        if self.peek() != Some(b'-') {
            self.at = end;
            return Some(Index { from_end, at: 0 });
        }
        self.at += 1;
        self.blanks();
        Some(Index { from_end, at: self.number()? })
    }

    fn number(&mut self) -> Option<u32> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..length]).ok()?.parse().ok()?;
        self.at += length;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_faults_are_those_of_mysql() {
        for (text, at) in [
            ("", 0),
            ("a", 1),
            ("$x", 1),
            ("$.", 2),
            ("$**", 3),
            ("$***.a", 3),
            ("$.**.a", 5),
            ("$.a[", 4),
            ("$[a]", 2),
            ("$[-1]", 2),
            ("$[last+1]", 7),
            ("$[1to 2]", 4),
            ("$[3 to 1]", 8),
            ("$[99999999999]", 2),
            ("$.1a", 4),
            ("$.a-b", 5),
            ("$.\"a", 4),
        ] {
            assert_eq!(Path::parse(text), Err(at), "{text}");
        }
        let legs = Path::parse(" $ [ 0 ] .\"a b\"[last - 1]**.x").map(|path| path.legs);
        let cell = |from_end, at| Leg::Cell(Index { from_end, at });
        let member = |name: &str| Leg::Member(name.into());
        let wanted = vec![cell(false, 0), member("a b"), cell(true, 1), Leg::Descendants, member("x")];
        assert_eq!(legs, Ok(wanted));
    }
}
