//! `latin1`: the character set, and its collations, which weigh each byte alone and pad with spaces.
//!
//! It is Windows' code page 1252, in which five bytes have no character; here, as in the servers, these stand
//! for the code points of their numbers, so that every byte is a character.
//!
//! Records hold its bytes, while a text in memory is UTF-8. So each collation has two orders, which agree: of
//! stored bytes, and of UTF-8. Characters that latin1 does not have cannot stand in a column, but in what a
//! column is compared with: they come after all others, by code point.

mod weights;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hasher;

use super::first_code_point;
use super::pad_space::{compare_bytes_pad_space, compare_rest, without_trailing_spaces};

/// A collation of `latin1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Latin1Rule {
    /// `latin1_swedish_ci`.
    SwedishCi,
    /// `latin1_german1_ci`.
    German1Ci,
    /// `latin1_danish_ci`.
    DanishCi,
    /// `latin1_spanish_ci`.
    SpanishCi,
    /// `latin1_general_ci`.
    GeneralCi,
    /// `latin1_general_cs`.
    GeneralCs,
    /// `latin1_bin`.
    Bin,
}

/// What the bytes from 0x80 to 0x9F stand for.
const C1: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2C6}',
    '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}', '\u{90}', '\u{2018}',
    '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2DC}', '\u{2122}', '\u{161}',
    '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

/// The character of a byte.
#[inline]
pub fn character_of(byte: u8) -> char {
    match byte {
        0x80..=0x9F => C1[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

/// The byte of a code point; `None` if latin1 does not have it.
#[inline]
pub fn byte_of(code_point: u32) -> Option<u8> {
    match code_point {
        0..0x80 | 0xA0..=0xFF => Some(code_point as u8),
        code_point => C1.iter().position(|known| u32::from(*known) == code_point).map(|at| 0x80 + at as u8),
    }
}

/// Stored bytes as UTF-8.
pub fn to_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_ascii() {
        return Cow::Borrowed(bytes);
    }
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 2);
    text.extend(bytes.iter().map(|byte| character_of(*byte)));
    Cow::Owned(text.into_bytes())
}

/// UTF-8 as stored bytes.
///
/// # Errors
/// Where the first character begins that latin1 does not have, or where the text is no UTF-8.
pub fn from_utf8(text: &[u8]) -> Result<Cow<'_, [u8]>, usize> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (code_point, length) = first_code_point(&text[at..]).ok_or(at)?;
        bytes.push(byte_of(code_point).ok_or(at)?);
        at += length;
    }
    Ok(Cow::Owned(bytes))
}

impl Latin1Rule {
    #[inline]
    fn weights(self) -> Option<&'static [u8; 256]> {
        match self {
            Latin1Rule::SwedishCi => Some(&weights::SWEDISH_CI),
            Latin1Rule::German1Ci => Some(&weights::GERMAN1_CI),
            Latin1Rule::DanishCi => Some(&weights::DANISH_CI),
            Latin1Rule::SpanishCi => Some(&weights::SPANISH_CI),
            Latin1Rule::GeneralCi => Some(&weights::GENERAL_CI),
            Latin1Rule::GeneralCs => Some(&weights::GENERAL_CS),
            Latin1Rule::Bin => None,
        }
    }

    /// Weight of a byte.
    #[inline]
    pub fn weight(self, byte: u8) -> u8 {
        self.weights().map_or(byte, |weights| weights[usize::from(byte)])
    }

    /// Weight of a code point: that of its byte, or above all of them.
    #[inline]
    pub fn weight_of_code_point(self, code_point: u32) -> u32 {
        byte_of(code_point).map_or(0x100 + code_point, |byte| u32::from(self.weight(byte)))
    }

    /// Order of two stored texts.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(weights) = self.weights() else { return compare_bytes_pad_space(a, b) };
        let common = a.len().min(b.len());
        for (x, y) in a.iter().zip(b) {
            let order = weights[usize::from(*x)].cmp(&weights[usize::from(*y)]);
            if order.is_ne() {
                return order;
            }
        }
        compare_rest(&a[common..], &b[common..])
    }

    /// Feeds to `hasher` what makes stored bytes equal to others.
    pub fn hash(self, bytes: &[u8], hasher: &mut impl Hasher) {
        without_trailing_spaces(bytes).iter().for_each(|byte| hasher.write_u8(self.weight(*byte)));
    }

    /// Order of two texts in UTF-8. What is none is compared byte by byte from there on.
    pub fn compare_utf8(self, mut a: &[u8], mut b: &[u8]) -> Ordering {
        while !a.is_empty() && !b.is_empty() {
            let (Some((x, x_len)), Some((y, y_len))) = (first_code_point(a), first_code_point(b)) else {
                return a.cmp(b);
            };
            let order = self.weight_of_code_point(x).cmp(&self.weight_of_code_point(y));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[x_len..], &b[y_len..]);
        }
        compare_rest(a, b)
    }

    /// Feeds to `hasher` what makes a text in UTF-8 equal to others.
    pub fn hash_utf8(self, text: &[u8], hasher: &mut impl Hasher) {
        let mut rest = without_trailing_spaces(text);
        while let Some((code_point, length)) = first_code_point(rest) {
            hasher.write_u32(self.weight_of_code_point(code_point));
            rest = &rest[length..];
        }
        hasher.write(rest);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: [Latin1Rule; 7] = [
        Latin1Rule::SwedishCi,
        Latin1Rule::German1Ci,
        Latin1Rule::DanishCi,
        Latin1Rule::SpanishCi,
        Latin1Rule::GeneralCi,
        Latin1Rule::GeneralCs,
        Latin1Rule::Bin,
    ];

    #[test]
    fn every_byte_is_a_character_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = to_utf8(&bytes);
        assert_eq!(std::str::from_utf8(&text).unwrap().chars().count(), 256);
        assert_eq!(from_utf8(&text).unwrap(), bytes);
        assert_eq!(to_utf8(b"\x80\xE9"), "€é".as_bytes());
    }

    #[test]
    fn what_latin1_does_not_have_is_found() {
        assert_eq!(from_utf8("é表".as_bytes()), Err(2));
        assert_eq!(from_utf8("\u{80}".as_bytes()), Err(0));
        assert_eq!(from_utf8(b"ab\xFF"), Err(2));
        let swedish = Latin1Rule::SwedishCi;
        assert_eq!(swedish.compare_utf8("ÿ".as_bytes(), "表".as_bytes()), Ordering::Less);
        assert_eq!(swedish.compare_utf8("表".as_bytes(), "語".as_bytes()), Ordering::Less);
    }

    #[test]
    fn letters_are_in_the_order_of_the_language() {
        let order = |rule: Latin1Rule, a: &str, b: &str| rule.compare_utf8(a.as_bytes(), b.as_bytes());
        assert_eq!(order(Latin1Rule::SwedishCi, "å", "Å "), Ordering::Equal);
        assert_eq!(order(Latin1Rule::SwedishCi, "z", "å"), Ordering::Less);
        assert_eq!(order(Latin1Rule::SwedishCi, "å", "ä"), Ordering::Less);
        assert_eq!(order(Latin1Rule::DanishCi, "ä", "å"), Ordering::Less);
        assert_eq!(order(Latin1Rule::German1Ci, "ß", "s"), Ordering::Equal);
        assert_eq!(order(Latin1Rule::GeneralCs, "a", "A"), Ordering::Greater);
        assert_eq!(order(Latin1Rule::Bin, "€", "é"), Ordering::Less);
    }

    fn hash(of: impl Fn(&mut std::hash::DefaultHasher)) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        of(&mut hasher);
        hasher.finish()
    }

    proptest! {
        #[test]
        fn stored_bytes_and_their_text_are_ordered_alike(a: Vec<u8>, b: Vec<u8>) {
            let (a_text, b_text) = (to_utf8(&a), to_utf8(&b));
            for rule in RULES {
                let order = rule.compare(&a, &b);
                prop_assert_eq!(order, rule.compare_utf8(&a_text, &b_text));
                prop_assert_eq!(order, rule.compare(&b, &a).reverse());
            }
        }

        #[test]
        fn equal_texts_hash_alike(a in "[aAäÄåz ]{0,3}", b in "[aAäÄåz ]{0,3}") {
            let (a_bytes, b_bytes) = (from_utf8(a.as_bytes()).unwrap(), from_utf8(b.as_bytes()).unwrap());
            for rule in RULES {
                if rule.compare(&a_bytes, &b_bytes).is_eq() {
                    prop_assert_eq!(hash(|to| rule.hash(&a_bytes, to)), hash(|to| rule.hash(&b_bytes, to)));
                    let of = |text: &str| hash(|to| rule.hash_utf8(text.as_bytes(), to));
                    prop_assert_eq!(of(&a), of(&b));
                }
            }
        }
    }
}
