//! Matching LIKE patterns.
//!
//! Text and pattern are brought into a form whose bytes stand for the collation's weights. Like in UTF-8, no
//! weight's bytes begin in the middle of another's, so searching for bytes finds whole characters only. The
//! parts of the pattern between `%` are searched from left to right, each at its first match, which takes
//! linear time. A part with `_` in it is tried place by place; that can be the product of both lengths, so
//! its steps are counted, and a pattern that takes too many is refused.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use smallvec::SmallVec;
use untorn::engine::{Comparison, Latin1Rule};
use untorn::types::Collation;

use super::Value;
use super::collation::{btree_weight, push_weight};
use crate::errors;
use crate::result::SqlError;

/// Bytes of a text or pattern that need no allocation.
type Bytes = SmallVec<[u8; 128]>;

/// Steps that a byte of text and pattern may cost: a part with `_` may always be this long.
const STEPS_PER_BYTE: usize = 64;
/// Steps between calls of the meter.
const STEPS_PER_CALL: usize = 64 << 10;

/// The escape where nothing is said.
pub const DEFAULT_ESCAPE: Option<u32> = Some(0x5c);

const LITERAL: u8 = 0;
/// `_`
const ONE: u8 = 1;
/// `%`
const ANY: u8 = 2;

/// A pattern: its bytes, and for each what it stands for.
#[derive(Default)]
struct Pattern {
    bytes: Bytes,
    kinds: Bytes,
}

/// A part of a pattern without `%`.
#[derive(Clone, Copy)]
struct Part<'p> {
    bytes: &'p [u8],
    kinds: &'p [u8],
}

/// A folded text.
struct Text<'t> {
    bytes: &'t [u8],
    /// `_` is a byte.
    binary: bool,
}

/// Calls the meter as work is done.
struct Steps<'m, M> {
    meter: &'m M,
    left: usize,
    uncalled: usize,
}

impl<M: Fn(usize) -> Result<(), SqlError>> Steps<'_, M> {
    fn take(&mut self, steps: usize) -> Result<(), SqlError> {
        self.left = self
            .left
            .checked_sub(steps)
            .ok_or_else(|| errors::unsupported("LIKE with such a long part with `_` in such a text"))?;
        self.uncalled += steps;
        if self.uncalled >= STEPS_PER_CALL {
            (self.meter)(std::mem::take(&mut self.uncalled))?;
        }
        Ok(())
    }
}

impl Pattern {
    fn push(&mut self, kind: u8, put: impl FnOnce(&mut Bytes)) {
        put(&mut self.bytes);
        self.kinds.resize(self.bytes.len(), kind);
    }

    /// Takes a pattern apart; `put` appends a unit's weight. The escape may be a wildcard, which it then is
    /// no more (so MySQL; MariaDB takes `%` for a wildcard all the same).
    fn new<U: Copy + Into<u32>>(
        mut units: impl Iterator<Item = U>,
        escape: Option<u32>,
        put: impl Fn(U, &mut Bytes),
        meter: &impl Fn(usize) -> Result<(), SqlError>,
    ) -> Result<Pattern, SqlError> {
        let mut pattern = Pattern::default();
        let mut metered = STEPS_PER_CALL;
        while let Some(unit) = units.next() {
            let code: u32 = unit.into();
            match code {
                _ if Some(code) == escape => {
                    let wanted = units.next().unwrap_or(unit);
                    pattern.push(LITERAL, |bytes| put(wanted, bytes));
                }
                0x25 => pattern.push(ANY, |bytes| bytes.push(0)),
                0x5f => pattern.push(ONE, |bytes| bytes.push(0)),
                _ => pattern.push(LITERAL, |bytes| put(unit, bytes)),
            }
            if pattern.bytes.len() >= metered {
                meter(STEPS_PER_CALL)?;
                metered += STEPS_PER_CALL;
            }
        }
        Ok(pattern)
    }

    fn part(&self, from: usize, to: usize) -> Part<'_> {
        Part { bytes: &self.bytes[from..to], kinds: &self.kinds[from..to] }
    }
}

fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

impl Text<'_> {
    /// Where the character at `at` ends.
    fn after(&self, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at + 1..)?;
        let more = if self.binary { 0 } else { rest.iter().take_while(|byte| continues(**byte)).count() };
        Some(at + 1 + more)
    }

    /// Where the character that ends at `end` begins.
    fn before(&self, end: usize) -> Option<usize> {
        let before = self.bytes.get(..end).filter(|before| !before.is_empty())?;
        match self.binary {
            true => Some(end - 1),
            false => Some(before.iter().rposition(|byte| !continues(*byte)).unwrap_or(0)),
        }
    }

    /// Where `part` ends when it is at `at`.
    fn match_at<M: Fn(usize) -> Result<(), SqlError>>(
        &self,
        mut at: usize,
        part: Part<'_>,
        steps: &mut Steps<'_, M>,
    ) -> Result<Option<usize>, SqlError> {
        let mut done = 0;
        while done < part.bytes.len() {
            let run = memchr(ONE, &part.kinds[done..]).unwrap_or(part.kinds.len() - done);
            let wanted = &part.bytes[done..done + run];
            let same = wanted.iter().zip(&self.bytes[at..]).take_while(|(a, b)| a == b).count();
            steps.take(same + 1)?;
            if same < run {
                return Ok(None);
            }
            (at, done) = (at + run, done + run);
            if done < part.bytes.len() {
                let Some(next) = self.after(at) else { return Ok(None) };
                (at, done) = (next, done + 1);
            }
        }
        Ok(Some(at))
    }

    /// Where the first `part` at `from` or behind it ends.
    fn find<M: Fn(usize) -> Result<(), SqlError>>(
        &self,
        mut from: usize,
        mut part: Part<'_>,
        steps: &mut Steps<'_, M>,
    ) -> Result<Option<usize>, SqlError> {
        // What `_` at its beginning takes could as well be taken by the `%` before.
        while part.kinds.first() == Some(&ONE) {
            let Some(next) = self.after(from) else { return Ok(None) };
            from = next;
            part = Part { bytes: &part.bytes[1..], kinds: &part.kinds[1..] };
        }
        let Some(run) = memchr(ONE, part.kinds) else {
            return Ok(memmem::find(&self.bytes[from..], part.bytes).map(|at| from + at + part.bytes.len()));
        };
        let finder = memmem::Finder::new(&part.bytes[..run]);
        let rest = Part { bytes: &part.bytes[run..], kinds: &part.kinds[run..] };
        loop {
            let Some(at) = finder.find(&self.bytes[from..]) else { return Ok(None) };
            steps.take(run + 1)?;
            if let Some(end) = self.match_at(from + at + run, rest, steps)? {
                return Ok(Some(end));
            }
            from += at + 1;
        }
    }

    fn matches<M: Fn(usize) -> Result<(), SqlError>>(
        &self,
        pattern: &Pattern,
        steps: &mut Steps<'_, M>,
    ) -> Result<bool, SqlError> {
        let length = pattern.bytes.len();
        let Some(first) = memchr(ANY, &pattern.kinds) else {
            return Ok(self.match_at(0, pattern.part(0, length), steps)? == Some(self.bytes.len()));
        };
        let Some(mut at) = self.match_at(0, pattern.part(0, first), steps)? else { return Ok(false) };
        let mut begin = first + 1;
        while let Some(next) = memchr(ANY, &pattern.kinds[begin..]) {
            let Some(end) = self.find(at, pattern.part(begin, begin + next), steps)? else {
                return Ok(false);
            };
            at = end;
            begin += next + 1;
        }
        // The last part ends where the text does: its characters are counted off from there.
        let last = pattern.part(begin, length);
        let begins = |(byte, kind): &(&u8, &u8)| **kind == ONE || self.binary || !continues(**byte);
        let characters = last.bytes.iter().zip(last.kinds).filter(begins).count();
        let mut start = self.bytes.len();
        for _ in 0..characters {
            match self.before(start) {
                Some(before) if before >= at => start = before,
                _ => return Ok(false),
            }
        }
        Ok(self.match_at(start, last, steps)? == Some(self.bytes.len()))
    }
}

/// The text in weights.
fn fold<'t>(
    text: &'t [u8],
    collation: Collation,
    folded: &'t mut Bytes,
    meter: &impl Fn(usize) -> Result<(), SqlError>,
) -> Result<&'t [u8], SqlError> {
    if collation == Collation::Binary {
        return Ok(text);
    }
    let ascii = text.is_ascii();
    if collation.is_bin() && (ascii || std::str::from_utf8(text).is_ok()) {
        return Ok(text);
    }
    if ascii && collation.comparison() == Comparison::Utf8mb4GeneralCi {
        folded.extend_from_slice(text);
        folded.make_ascii_uppercase();
        return Ok(folded);
    }
    for (number, c) in String::from_utf8_lossy(text).chars().enumerate() {
        if number % STEPS_PER_CALL == STEPS_PER_CALL - 1 {
            meter(STEPS_PER_CALL)?;
        }
        put_character(c, collation, folded);
    }
    Ok(folded)
}

fn put_character(c: char, collation: Collation, bytes: &mut Bytes) {
    match collation.comparison() {
        Comparison::Utf8mb4GeneralCi if c.is_ascii() => bytes.push((c as u8).to_ascii_uppercase()),
        Comparison::Utf8mb4GeneralCi => push_weight(btree_weight(c), bytes),
        Comparison::Unicode(rule) => rule.character_key(c, bytes),
        Comparison::Latin1Utf8(rule) if rule != Latin1Rule::Bin => {
            push_weight(rule.weight_of_code_point(u32::from(c)), bytes);
        }
        _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// What ESCAPE says: one character; an empty text is none, and NULL is what is taken without it.
///
/// # Errors
/// 1210 for more than one character.
pub fn escape_of(value: &Value<'_>) -> Result<Option<u32>, SqlError> {
    if value.is_null() {
        return Ok(DEFAULT_ESCAPE);
    }
    let text = value.to_text();
    let text = String::from_utf8_lossy(&text);
    let mut characters = text.chars();
    let escape = characters.next().map(u32::from);
    match characters.next() {
        None => Ok(escape),
        Some(_) => Err(errors::error(errors::WRONG_ARGUMENTS, &[&"ESCAPE"])),
    }
}

/// Bytes that matching takes beside text and pattern: weights of both, and what each of the pattern's is.
pub fn memory(text: &[u8], pattern: &[u8], collation: Collation) -> usize {
    let of = |bytes| super::collation::key_bytes_max(bytes, collation);
    of(text).saturating_add(of(pattern).saturating_mul(2))
}

/// `text LIKE pattern`: `%` any run, `_` one character, `escape` before either takes it literally. `meter` is
/// told of the bytes worked on, and ends the work with an error.
pub fn like(
    text: &[u8],
    pattern: &[u8],
    escape: Option<u32>,
    collation: Collation,
    meter: &impl Fn(usize) -> Result<(), SqlError>,
) -> Result<bool, SqlError> {
    let bytes = text.len().saturating_add(pattern.len());
    meter(bytes)?;
    let comparison = collation.comparison();
    // ASCII's weights are themselves, or upper case.
    let plain = !matches!(comparison, Comparison::Unicode(_) | Comparison::Latin1Utf8(_));
    let pattern = if collation == Collation::Binary || pattern.is_ascii() && plain {
        let fold = comparison == Comparison::Utf8mb4GeneralCi;
        Pattern::new(
            pattern.iter().copied(),
            escape,
            |byte, out| {
                out.push(if fold { byte.to_ascii_uppercase() } else { byte });
            },
            meter,
        )?
    } else {
        let pattern: Cow<'_, str> = String::from_utf8_lossy(pattern);
        Pattern::new(pattern.chars(), escape, |c, out| put_character(c, collation, out), meter)?
    };
    let mut folded = Bytes::new();
    let bytes_of_text = fold(text, collation, &mut folded, meter)?;
    let text = Text { bytes: bytes_of_text, binary: collation == Collation::Binary };
    let left = bytes.saturating_mul(STEPS_PER_BYTE).saturating_add(STEPS_PER_CALL);
    text.matches(&pattern, &mut Steps { meter, left, uncalled: 0 })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    fn free(_: usize) -> Result<(), SqlError> {
        Ok(())
    }

    fn quick(text: &str, pattern: &str, collation: Collation) -> bool {
        like(text.as_bytes(), pattern.as_bytes(), DEFAULT_ESCAPE, collation, &free).unwrap_or_default()
    }

    /// The definition: the first unit of the pattern, then the rest.
    fn slow(text: &[u32], pattern: &[u32], fold: &dyn Fn(u32) -> Vec<u8>) -> bool {
        match pattern {
            [] => text.is_empty(),
            [0x25, rest @ ..] => (0..=text.len()).any(|from| slow(&text[from..], rest, fold)),
            [0x5f, rest @ ..] => !text.is_empty() && slow(&text[1..], rest, fold),
            [0x5c, wanted, rest @ ..] | [wanted, rest @ ..] => {
                text.first().is_some_and(|unit| fold(*unit) == fold(*wanted)) && slow(&text[1..], rest, fold)
            }
        }
    }

    #[test]
    fn patterns() {
        let ci = Collation::Utf8mb4GeneralCi;
        for (text, pattern, expected) in [
            ("abc", "a%", true),
            ("abc", "%C", true),
            ("abc", "a_c", true),
            ("abc", "a_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("a\\", "a\\", true),
            ("", "%", true),
            ("", "_", false),
            ("", "", true),
            ("mississippi", "%iss%ip%", true),
            ("mississippi", "%iss%ix%", false),
            ("aab", "%a_%", true),
            ("ab", "%ab%b", false),
            ("été", "é_é", true),
            ("été", "_%_É", true),
        ] {
            assert_eq!(quick(text, pattern, ci), expected, "{text} LIKE {pattern}");
        }
        assert!(!quick("ABC", "abc", Collation::Utf8mb4Bin));
        // A character is one, whatever its weights are: as MySQL answers.
        let unicode = Collation::Utf8mb40900AiCi;
        for (text, pattern, expected) in [
            ("ÀbC", "a_c%", true),
            ("ß", "ss", false),
            ("ß", "_", true),
            ("xßy", "%ß%", true),
            ("ae", "æ", false),
            ("Ǽx", "æ%", true),
            ("a\u{301}", "a", false),
            ("a\u{301}", "a_", true),
            ("\u{1}", "\u{2}", true),
            ("가나", "가%", true),
            ("a ", "a", false),
            ("100%", "100\\%", true),
        ] {
            assert_eq!(quick(text, pattern, unicode), expected, "{text} LIKE {pattern}");
        }
        assert!(!quick("😀", "🚀", Collation::Utf8mb4UnicodeCi));
        assert!(!quick("É", "é", Collation::Utf8mb40900AsCs));
        assert!(quick("É", "é", Collation::Utf8mb40900AsCi));
        assert!(!quick("É", "e", Collation::Utf8mb40900AsCi));
        assert!(like(b"\xff\x80z", b"_\x80_", DEFAULT_ESCAPE, Collation::Binary, &free).unwrap_or_default());
    }

    /// As MySQL answers.
    #[test]
    fn escapes() {
        let matches = |text: &str, pattern: &str, escape: &str| {
            let escape = escape_of(&Value::text(escape)).map_err(|error| error.code)?;
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            Ok(like(text, pattern, escape, Collation::Utf8mb4GeneralCi, &free) == Ok(true))
        };
        for (text, pattern, escape, expected) in [
            ("abc", "a__", "_", Ok(false)),
            ("a_", "a__", "_", Ok(true)),
            ("a%", "a%%", "%", Ok(true)),
            ("abc", "a%%", "%", Ok(false)),
            ("a%", "aé%", "é", Ok(true)),
            ("aéx", "aé%", "é", Ok(false)),
            ("a\\b", "a\\%", "", Ok(true)),
            ("ab", "ab", "xy", Err(1210)),
        ] {
            assert_eq!(matches(text, pattern, escape), expected, "{text} LIKE {pattern} ESCAPE {escape}");
        }
        assert_eq!(escape_of(&Value::Null).unwrap_or_default(), DEFAULT_ESCAPE);
    }

    proptest! {
        #[test]
        fn it_is_the_definition(text in "[abBéE😀%\\\\]{0,12}", pattern in "[abAéE😀%_\\\\]{0,8}") {
            let units = |text: &str| -> Vec<u32> { text.chars().map(u32::from).collect() };
            for collation in Collation::all().filter(|rule| *rule != Collation::Binary) {
                let fold = |unit: u32| -> Vec<u8> {
                    let mut bytes = Bytes::new();
                    char::from_u32(unit).into_iter().for_each(|c| put_character(c, collation, &mut bytes));
                    bytes.to_vec()
                };
                let wanted = slow(&units(&text), &units(&pattern), &fold);
                prop_assert_eq!(quick(&text, &pattern, collation), wanted, "{} LIKE {}", text, pattern);
            }
            let bytes = |text: &str| -> Vec<u32> { text.bytes().map(u32::from).collect() };
            let wanted = slow(&bytes(&text), &bytes(&pattern), &|unit| vec![unit as u8]);
            prop_assert_eq!(quick(&text, &pattern, Collation::Binary), wanted, "{} LIKE BINARY {}", text, pattern);
        }
    }

    /// Steps are counted, not time: text and pattern of `n` take a multiple of `n`, and what would take more
    /// is refused.
    #[test]
    fn it_is_linear_or_refused() {
        let n = 200_000;
        for middle in ["", "_", "é"] {
            let text = "a".repeat(2 * n);
            let pattern = format!("%{}{middle}{}b%", "a".repeat(n / 2), "a".repeat(n / 2));
            let worked = Cell::new(0);
            let meter = |bytes| {
                worked.set(worked.get() + bytes);
                Ok(())
            };
            for collation in [Collation::Utf8mb4GeneralCi, Collation::Utf8mb4Bin, Collation::Binary] {
                worked.set(0);
                let result = like(text.as_bytes(), pattern.as_bytes(), DEFAULT_ESCAPE, collation, &meter);
                match middle {
                    "_" => assert_eq!(result.map_err(|error| error.code), Err(1235)),
                    _ => assert_eq!(result, Ok(false)),
                }
                assert!(worked.get() <= (STEPS_PER_BYTE + 2) * 3 * n, "{} steps", worked.get());
            }
        }
        let stop = |_| Err(errors::error(errors::QUERY_INTERRUPTED, &[]));
        let stopped = like(b"a", b"a", DEFAULT_ESCAPE, Collation::Binary, &stop);
        assert_eq!(stopped.map_err(|error| error.code), Err(1317));
    }
}
