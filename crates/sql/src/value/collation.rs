//! Comparing, folding and hashing text by its collation.
//!
//! Text is UTF-8 in every character set; what sees its bytes gets them by [`relabelled`]. The weights are
//! those of the B-tree, so that a sort in memory and an index agree.

use std::borrow::Cow;
use std::cmp::Ordering;

use untorn::engine::{Comparison, Latin1Rule, pad_space_sort_key};
use untorn::types::{Charset, Collation};

use super::Value;

/// The collation two values are compared in when nothing says it: `binary` wins over `_bin`, that over
/// others, and these over the default; of two of a kind the one with more characters. Which operand's
/// collation counts is decided when an expression is bound (`expr/bind/collation.rs`); what disagrees with
/// this is made to fit there.
#[inline]
pub fn common(left: Collation, right: Collation) -> Collation {
    let strength = |rule: Collation| match rule {
        Collation::Binary => 3,
        Collation::Utf8mb4GeneralCi => 0,
        rule => 1 + u8::from(rule.is_bin()),
    };
    if left == right {
        return left;
    }
    let order = strength(left).cmp(&strength(right)).then_with(|| {
        let size = |rule: Collation| (rule.charset(), rule.id());
        size(left).cmp(&size(right))
    });
    if order.is_lt() { right } else { left }
}

/// Whether texts that are equal under one collation are so under any other that pads as it does.
pub fn is_finest(rule: Collation, pads: bool) -> bool {
    rule.is_bin() && (pads || !rule.pads())
}

/// Whether each character has one weight, whatever stands beside it: then texts that are equal begin with
/// equal characters.
pub fn has_one_weight_each(rule: Collation) -> bool {
    !matches!(rule.comparison(), Comparison::Unicode(_))
}

/// A text of one collation as one of another. Bytes become the text that they are in `latin1`, and a text in
/// `latin1` the bytes that it has there, with `?` for characters that it cannot have; in the other character
/// sets bytes and text are the same.
pub fn relabelled(text: Cow<'_, [u8]>, from: Collation, to: Collation) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return text;
    }
    match (from.charset(), to.charset()) {
        (Charset::Binary, Charset::Latin1) => Cow::Owned(Charset::Latin1.to_utf8(&text).into_owned()),
        (Charset::Latin1, Charset::Binary) => Cow::Owned(Charset::Latin1.from_utf8_lossy(&text).into_owned()),
        _ => text,
    }
}

impl<'a> Value<'a> {
    /// The value as a text of this collation, see [`relabelled`].
    pub fn under(self, rule: Collation) -> Value<'a> {
        match self {
            Value::Null => Value::Null,
            Value::Text(text, from) => Value::Text(relabelled(text, from, rule), rule),
            other => Value::Text(Cow::Owned(other.to_text().into_owned()), rule),
        }
    }
}

/// A text with `?` in place of the characters that the character set does not have.
pub fn fitted(text: Cow<'_, [u8]>, charset: Charset) -> Cow<'_, [u8]> {
    if charset.first_foreign(&text).is_none() {
        return text;
    }
    let known = |c: &char| charset.first_foreign(c.encode_utf8(&mut [0; 4]).as_bytes()).is_none();
    let kept =
        String::from_utf8_lossy(&text).chars().map(|c| if known(&c) { c } else { '?' }).collect::<String>();
    Cow::Owned(kept.into_bytes())
}

/// Compares two texts.
pub fn compare(left: &[u8], right: &[u8], collation: Collation) -> Ordering {
    untorn::engine::compare_values(collation.comparison(), left, right)
}

/// The text without what equality ignores at its end. To compare one long text with many, take it off once.
pub fn trimmed(text: &[u8], collation: Collation) -> &[u8] {
    match collation.pads() {
        false => text,
        true => &text[..text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)],
    }
}

/// Whether two texts compare equal; `left` has been [`trimmed`]. The time it takes depends on the shorter
/// one.
pub fn equal_to_trimmed(left: &[u8], right: &[u8], collation: Collation) -> bool {
    // A character has one to four bytes, and one weight where it is not Unicode's algorithm.
    let many = matches!(collation.comparison(), Comparison::Unicode(_));
    (many || left.len() / 4 <= right.len()) && compare(left, right, collation).is_eq()
}

/// Appends bytes whose plain order is the collation's, ended so that a shorter text comes first: for sort
/// keys, GROUP BY and DISTINCT.
pub fn sort_key(text: &[u8], collation: Collation, key: &mut Vec<u8>) {
    match collation.comparison() {
        Comparison::Unicode(rule) => rule.sort_key(text, key),
        Comparison::Utf8mb4GeneralCi => padded_key(text, true, key),
        Comparison::Utf8mb4Bin => padded_key(text, false, key),
        Comparison::Latin1Utf8(_) => {
            let text = String::from_utf8_lossy(text);
            let weights = text.chars().map(|c| character_weight(collation, c));
            pad_space_sort_key(weights, u32::from(b' '), |weight| push_weight(weight, key));
        }
        // Zero bytes are escaped so that the end mark (two zeros) sorts before everything.
        _ => {
            for &byte in text {
                key.push(byte);
                if byte == 0 {
                    key.push(1);
                }
            }
            key.extend_from_slice(&[0, 0]);
        }
    }
}

/// Bytes that a key of a text takes at most, and a few for its ends. Under a Unicode collation eight elements
/// of three weights, two bytes each, are of one character of three bytes.
pub fn key_bytes_max(text: &[u8], collation: Collation) -> usize {
    match collation.comparison() {
        Comparison::Unicode(rule) => text.len().saturating_mul(rule.key_ratio()),
        _ => text.len(),
    }
}

/// PAD SPACE. Weights are written in a form whose byte order is theirs and that takes one byte for ASCII.
fn padded_key(text: &[u8], fold: bool, key: &mut Vec<u8>) {
    // Without branches, so that many bytes are done at a time.
    let special = text.iter().fold(false, |special, byte| special | !(b' '..0x80).contains(byte));
    if special {
        let text = String::from_utf8_lossy(text);
        let weights = text.chars().map(|c| if fold { btree_weight(c) } else { u32::from(c) });
        pad_space_sort_key(weights, u32::from(b' '), |weight| push_weight(weight, key));
        return;
    }
    let start = key.len();
    key.extend_from_slice(untorn::engine::without_trailing_spaces(text));
    if fold {
        key[start..].iter_mut().for_each(|byte| *byte -= u8::from(byte.is_ascii_lowercase()) << 5);
    }
    key.extend_from_slice(b" \x01");
}

/// The text with each character's weight in its place, in a form in which characters still begin where they
/// can be counted ([`char_count`]): what is equal under the collation has equal bytes. Not of Unicode
/// collations, where characters have no weight for themselves.
pub fn push_weights(text: &[u8], collation: Collation, made: &mut Vec<u8>) {
    match (collation.comparison(), std::str::from_utf8(text)) {
        (Comparison::Utf8mb4GeneralCi, Ok(ascii)) if ascii.is_ascii() => {
            let start = made.len();
            made.extend_from_slice(text);
            made[start..].make_ascii_uppercase();
        }
        (Comparison::Utf8mb4GeneralCi, Ok(text)) => {
            text.chars().for_each(|character| push_weight(btree_weight(character), made));
        }
        (Comparison::Latin1Utf8(rule), Ok(text)) if rule != Latin1Rule::Bin => {
            text.chars().for_each(|c| push_weight(character_weight(collation, c), made));
        }
        _ => made.extend_from_slice(text),
    }
}

/// The weight of a character where each has one ([`has_one_weight_each`]).
pub fn character_weight(collation: Collation, character: char) -> u32 {
    match collation.comparison() {
        Comparison::Utf8mb4GeneralCi => btree_weight(character),
        Comparison::Latin1Utf8(rule) => rule.weight_of_code_point(u32::from(character)),
        _ => u32::from(character),
    }
}

/// Like UTF-8, without its gaps.
pub(super) fn push_weight(weight: u32, key: &mut impl Extend<u8>) {
    match weight {
        0..0x80 => key.extend([weight as u8]),
        0x80..0x800 => key.extend([0xc0 | (weight >> 6) as u8, 0x80 | (weight & 0x3f) as u8]),
        0x800..0x1_0000 => key.extend([
            0xe0 | (weight >> 12) as u8,
            0x80 | (weight >> 6 & 0x3f) as u8,
            0x80 | (weight & 0x3f) as u8,
        ]),
        _ => key.extend([
            0xf0 | (weight >> 18) as u8,
            0x80 | (weight >> 12 & 0x3f) as u8,
            0x80 | (weight >> 6 & 0x3f) as u8,
            0x80 | (weight & 0x3f) as u8,
        ]),
    }
}

pub(super) fn btree_weight(c: char) -> u32 {
    untorn::engine::general_ci_weight(u32::from(c))
}

/// The letters of `latin1` beyond ASCII that have the other case there, in upper case; in lower case they are
/// 32 behind. Of those that Unicode has more of (`š`, `ÿ`, `µ`) MySQL does not know the other case.
fn has_case_in_latin1(upper: u32) -> bool {
    matches!(upper, 0xC0..=0xD6 | 0xD8..=0xDE)
}

/// The text in the case that `other` gives letters of ASCII.
fn latin1_case(text: &[u8], other: impl Fn(u32) -> u32) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let cased = text.chars().map(|c| char::from_u32(other(u32::from(c))).unwrap_or(c));
    cased.collect::<String>().into_bytes()
}

/// Lower case, as LOWER() gives it: each character has one at most, wherever it stands.
pub fn lower(text: &[u8], collation: Collation) -> Vec<u8> {
    if collation.charset() == Charset::Latin1 && !text.is_ascii() {
        return latin1_case(text, |code| match code {
            0x41..=0x5A => code + 0x20,
            code if has_case_in_latin1(code) => code + 0x20,
            code => code,
        });
    }
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => text.chars().map(lower_character).collect::<String>().into_bytes(),
        _ => text.to_ascii_lowercase(),
    }
}

/// Upper case, as UPPER() gives it: what would be two characters (ß) stays as it is.
pub fn upper(text: &[u8], collation: Collation) -> Vec<u8> {
    if collation.charset() == Charset::Latin1 && !text.is_ascii() {
        return latin1_case(text, |code| match code {
            0x61..=0x7A => code - 0x20,
            0xE0..=0xFE if has_case_in_latin1(code - 0x20) => code - 0x20,
            code => code,
        });
    }
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => {
            text.chars().map(|c| single(c, c.to_uppercase())).collect::<String>().into_bytes()
        }
        _ => text.to_ascii_uppercase(),
    }
}

fn lower_character(character: char) -> char {
    match character {
        'İ' => 'i',
        other => single(other, other.to_lowercase()),
    }
}

/// What a character becomes, if that is one.
fn single(character: char, mut becomes: impl ExactSizeIterator<Item = char>) -> char {
    if becomes.len() == 1 { becomes.next().unwrap_or(character) } else { character }
}

/// Characters of a text (bytes for binary).
pub fn char_count(text: &[u8], collation: Collation) -> usize {
    if collation == Collation::Binary || text.is_ascii() {
        return text.len();
    }
    // Continuation bytes do not begin a character.
    text.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

/// Byte offset of the character number `index` (or the end).
pub fn char_offset(text: &[u8], index: usize, collation: Collation) -> usize {
    if collation == Collation::Binary || text.is_ascii() {
        return index.min(text.len());
    }
    text.iter()
        .enumerate()
        .filter(|(_, b)| **b & 0xc0 != 0x80)
        .nth(index)
        .map_or(text.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_columns_are_equal_only_if_both_are() {
        let rows =
            [["a", "x \0\x01"], ["a \0\x01x", ""], ["a \0", "x"], ["a", "\0x"], ["a\0", "\0"], ["a", "\0\0"]];
        // Where zeros and ones do not count, they tell nothing apart.
        for collation in Collation::all().filter(|rule| !matches!(rule.comparison(), Comparison::Unicode(_)))
        {
            let keys = rows.map(|row| {
                let mut key = Vec::new();
                row.iter().for_each(|text| sort_key(text.as_bytes(), collation, &mut key));
                key
            });
            for (left, key) in keys.iter().enumerate() {
                assert!(keys[left + 1..].iter().all(|other| other != key), "{collation:?}, {:?}", rows[left]);
            }
        }
    }

    #[test]
    fn the_stronger_collation_wins_whatever_the_order() {
        use Collation::*;
        for (left, right, wanted) in [
            (Utf8mb4GeneralCi, Utf8mb40900AiCi, Utf8mb40900AiCi),
            (Utf8mb40900Bin, Utf8mb40900AiCi, Utf8mb40900Bin),
            (Binary, Utf8mb40900Bin, Binary),
            (AsciiGeneralCi, Utf8mb3UnicodeCi, Utf8mb3UnicodeCi),
            (Utf8mb4GeneralCi, AsciiGeneralCi, AsciiGeneralCi),
        ] {
            assert_eq!((common(left, right), common(right, left)), (wanted, wanted));
        }
    }

    #[test]
    fn sort_keys_order_like_comparisons() {
        let words = [
            "", "a", "A", "a ", "ab", "a\tb", "b", "é", "z", "ab c", "Ab", "a \t", "a  \t", "a \0", "a\x01",
            "a  b", "ß", "ss", "æ", " ", "\t", "a é", "😀", "🚀", "가", "表",
        ];
        for collation in Collation::all() {
            for left in words {
                for right in words {
                    let (mut l, mut r) = (Vec::new(), Vec::new());
                    sort_key(left.as_bytes(), collation, &mut l);
                    sort_key(right.as_bytes(), collation, &mut r);
                    let compared = compare(left.as_bytes(), right.as_bytes(), collation);
                    assert_eq!(l.cmp(&r), compared, "{left:?} {right:?} {collation:?}");
                }
            }
        }
    }
}
