//! Going through long texts in chunks.
//!
//! A function is evaluated in one go, and a text may have as many bytes as `max_allowed_packet`. What takes
//! longer than copying them says after each piece how much it has worked (`work`), and ends there when the
//! statement is to stop.

use memchr::memmem;

use crate::result::SqlError;

/// Bytes of a text that are gone through in one go.
pub const BYTES_AT_ONCE: usize = 1 << 20;

/// Gives the bytes of a text to `each`, piece by piece.
pub fn each_chunk(
    text: &[u8],
    work: &dyn Fn(usize) -> Result<(), SqlError>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), SqlError> {
    for piece in text.chunks(BYTES_AT_ONCE) {
        work(piece.len())?;
        each(piece);
    }
    Ok(())
}

/// What `each` makes of the pieces of a text, which end where characters do; in a buffer of this size.
pub fn in_chunks(
    text: &[u8],
    bytes: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
    each: impl Fn(&[u8], &mut Vec<u8>),
) -> Result<Vec<u8>, SqlError> {
    let (mut made, mut rest) = (Vec::with_capacity(bytes), text);
    while !rest.is_empty() {
        let most = rest.len().min(BYTES_AT_ONCE);
        let begins = |at: &usize| rest.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
        let end = (most.saturating_sub(3)..=most).rev().find(begins).unwrap_or(most);
        work(end)?;
        each(&rest[..end], &mut made);
        rest = &rest[end..];
    }
    Ok(made)
}

/// Bytes of work that finding a place counts for.
pub const MATCH_BYTES: usize = 16;

/// The places of a text that do not overlap, from left to right.
pub struct Places<'t> {
    text: &'t [u8],
    finder: memmem::Finder<'t>,
    /// Where the search goes on.
    from: usize,
}

impl<'t> Places<'t> {
    /// Those of `needle`, which is not empty.
    pub fn new(text: &'t [u8], needle: &'t [u8]) -> Places<'t> {
        Places { text, finder: memmem::Finder::new(needle), from: 0 }
    }

    /// Those from this byte on.
    pub fn starting_at(self, from: usize) -> Places<'t> {
        Places { from, ..self }
    }

    /// The next place. `work` is told the bytes that were gone through, and may say that it is enough.
    pub fn next(&mut self, work: &dyn Fn(usize) -> Result<(), SqlError>) -> Result<Option<usize>, SqlError> {
        let needle = self.finder.needle().len();
        loop {
            let rest = self.text.get(self.from..).unwrap_or_default();
            let searched = &rest[..rest.len().min(BYTES_AT_ONCE + needle - 1)];
            if let Some(at) = self.finder.find(searched) {
                let place = self.from + at;
                self.from = place + needle;
                work(at + MATCH_BYTES)?;
                return Ok(Some(place));
            }
            work(searched.len())?;
            if searched.len() == rest.len() {
                return Ok(None);
            }
            self.from += BYTES_AT_ONCE;
        }
    }
}

/// Where the place with this many before it is, and how many there are up to it.
pub fn nth_place(
    mut places: Places<'_>,
    before: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<(Option<usize>, usize), SqlError> {
    let mut found = 0;
    while let Some(at) = places.next(work)? {
        if found == before {
            return Ok((Some(at), found));
        }
        found += 1;
    }
    Ok((None, found))
}

/// The text with `to` in all places, made in a buffer of this size.
pub fn replaced(
    mut places: Places<'_>,
    to: &[u8],
    bytes: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<Vec<u8>, SqlError> {
    let mut result = Vec::with_capacity(bytes);
    let mut at = 0;
    while let Some(next) = places.next(work)? {
        work(to.len())?;
        result.extend_from_slice(&places.text[at..next]);
        result.extend_from_slice(to);
        at = places.from;
    }
    result.extend_from_slice(&places.text[at..]);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::errors;

    #[test]
    fn what_goes_through_a_long_text_is_stopped_in_it() {
        let text = b"ab".repeat(100_000);
        let none = b"ab".repeat(2 * BYTES_AT_ONCE);
        let stop = |stop_after: usize, told: &Cell<usize>, bytes: usize| {
            told.set(told.get() + bytes);
            match told.get() < stop_after {
                true => Ok(()),
                false => Err(errors::error(errors::QUERY_INTERRUPTED, &[])),
            }
        };
        for stop_after in [1_000, 100_000] {
            let told = Cell::new(0);
            let work = |bytes| stop(stop_after, &told, bytes);
            assert!(replaced(Places::new(&text, b"b"), b"xx", 3 * text.len(), &work).is_err());
            assert!(told.get() < stop_after + 100, "{} bytes told", told.get());
            told.set(0);
            assert!(nth_place(Places::new(&text, b"b"), usize::MAX, &work).is_err());
            assert!(told.get() < stop_after + 100, "{} bytes told", told.get());
            // A text without the needle is searched by pieces.
            told.set(0);
            assert!(Places::new(&none, b"c").next(&work).is_err());
            assert!(told.get() <= BYTES_AT_ONCE, "{} bytes told", told.get());
            told.set(0);
            assert!(each_chunk(&none, &work, |_| {}).is_err());
            assert!(told.get() <= BYTES_AT_ONCE, "{} bytes told", told.get());
        }
    }

    #[test]
    fn pieces_end_where_characters_do() {
        let good = |_: usize| Ok(());
        for before in 0..5 {
            let text = format!("{}{}", "a".repeat(BYTES_AT_ONCE - before), "ä€𐐨".repeat(3));
            let checked = |piece: &[u8], made: &mut Vec<u8>| {
                assert!(std::str::from_utf8(piece).is_ok());
                made.extend_from_slice(piece);
            };
            assert_eq!(in_chunks(text.as_bytes(), text.len(), &good, checked), Ok(text.clone().into_bytes()));
        }
        // Bytes that are no text are gone through all the same.
        let bytes = vec![0x80; 2 * BYTES_AT_ONCE + 1];
        let same = |piece: &[u8], made: &mut Vec<u8>| made.extend_from_slice(piece);
        assert_eq!(in_chunks(&bytes, bytes.len(), &good, same), Ok(bytes.clone()));
    }

    #[test]
    fn places_are_found_across_pieces() {
        let good = |_| Ok(());
        fn places(text: &[u8], needle: &[u8]) -> Vec<usize> {
            let mut places = Places::new(text, needle);
            std::iter::from_fn(|| places.next(&|_| Ok(())).unwrap_or(None)).collect()
        }
        assert_eq!(places(b"aaaaa", b"aa"), [0, 2]);
        assert!(places(b"abc", b"abcd").is_empty());
        assert!(places(b"", b"a").is_empty());
        for needle in [&b"x"[..], b"xyz"] {
            for at in [0, 1, BYTES_AT_ONCE - 2, BYTES_AT_ONCE - 1, BYTES_AT_ONCE, 2 * BYTES_AT_ONCE] {
                let mut text = vec![b'-'; 3 * BYTES_AT_ONCE];
                text[at..at + needle.len()].copy_from_slice(needle);
                assert_eq!(places(&text, needle), [at]);
            }
        }
        assert_eq!(nth_place(Places::new(b"a.bc..d", b"."), 2, &good), Ok((Some(5), 2)));
        assert_eq!(nth_place(Places::new(b"a.bc..d", b"."), 3, &good), Ok((None, 3)));
    }
}
