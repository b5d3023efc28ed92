//! Keys for the beginning of a text: what stands before the first wildcard of a LIKE pattern, and the first
//! characters that an index has of a column.
//!
//! All texts that begin with `abc` lie between `abc` followed by the lowest characters there are (with PAD
//! SPACE a text goes on with spaces, and `abc` followed by a tab comes before `abc`) and `abd`, the same text
//! with a last character of the next weight, which does not belong to them.

use std::borrow::Cow;

use untorn::schema::ColumnDef;
use untorn::types::{Charset, Collation, ColumnType};

use crate::result::SqlError;
use crate::value::{Value, collation, like};

/// No index has more characters of a column.
const CHARS_MAX: usize = 3072;

/// Characters that are tried for one of a greater weight.
const TRIES: u32 = 4096;

/// The keys around all texts with a beginning; `None` has no limit there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Belongs to them.
    pub(super) lower: Option<Vec<u8>>,
    /// Does not.
    pub(super) upper: Option<Vec<u8>>,
}

/// Keys around all texts that a pattern may match.
pub(super) fn of_pattern(
    pattern: &Value<'_>,
    escape: &Value<'_>,
    column: &ColumnDef,
) -> Result<Beginning, SqlError> {
    let escape = like::escape_of(escape)?;
    let pattern = pattern.to_text();
    let rule = column.kind.collation();
    if rule == Collation::Binary {
        return Ok(of_bytes(literal(pattern.iter().copied(), escape)));
    }
    // Elsewhere a character may have several weights or none, or one with its neighbour.
    if !collation::has_one_weight_each(rule) {
        return Ok(Beginning::default());
    }
    let Ok(pattern) = std::str::from_utf8(&pattern) else { return Ok(Beginning::default()) };
    let charset = rule.charset();
    let room = match column.kind {
        ColumnType::Char { chars, .. } | ColumnType::VarChar { chars, .. } => chars as usize,
        _ => CHARS_MAX,
    };
    let Beginning { lower, upper } =
        of_characters(&literal(pattern.chars(), escape), room.min(CHARS_MAX), rule);
    let stored = |edge: Vec<u8>| charset.from_utf8(&edge).map(Cow::into_owned).ok();
    Ok(Beginning { lower: lower.and_then(stored), upper: upper.and_then(stored) })
}

/// What stands before the first wildcard.
fn literal<U: Copy + Into<u32>>(mut pattern: impl Iterator<Item = U>, escape: Option<u32>) -> Vec<U> {
    let mut found = Vec::new();
    while let Some(unit) = pattern.next() {
        match unit.into() {
            code if Some(code) == escape => found.push(pattern.next().unwrap_or(unit)),
            // `%` and `_`
            0x25 | 0x5f => break,
            _ => found.push(unit),
        }
    }
    found
}

fn of_bytes(beginning: Vec<u8>) -> Beginning {
    let mut upper = beginning.clone();
    while upper.pop_if(|last| *last == u8::MAX).is_some() {}
    let upper = upper.split_last().map(|(last, before)| [before, &[last + 1]].concat());
    Beginning { lower: (!beginning.is_empty()).then_some(beginning), upper }
}

fn of_characters(beginning: &[char], room: usize, rule: Collation) -> Beginning {
    let Some((last, before)) = beginning.split_last() else { return Beginning::default() };
    // Without padding the text itself is the lowest that begins so.
    let missing = if rule.pads() { room.saturating_sub(beginning.len()) } else { 0 };
    let lower: String = beginning.iter().copied().chain(std::iter::repeat_n('\0', missing)).collect();
    let weight = |character: char| collation::character_weight(rule, character);
    let (from, behind) = (weight(*last), weight(*last) + 1);
    let next = match rule.charset() {
        // Few characters, whose weights are in no order.
        Charset::Latin1 => {
            let characters = (0..=u8::MAX).map(untorn::engine::latin1_character);
            characters.filter(|next| weight(*next) > from).min_by_key(|next| weight(*next))
        }
        _ => (behind..behind + TRIES).filter_map(char::from_u32).find(|next| weight(*next) > from),
    };
    let upper = next.map(|next| before.iter().copied().chain([next]).collect::<String>());
    Beginning { lower: Some(lower.into_bytes()), upper: upper.map(String::into_bytes) }
}

/// The first characters of a stored text (bytes of a binary one).
pub(super) fn shortened(mut key: Vec<u8>, chars: u32, column: &ColumnDef) -> Vec<u8> {
    if column.kind.is_string() {
        let rule = column.kind.collation();
        let rule = if rule.bytes_per_char_max() == 1 { Collation::Binary } else { rule };
        key.truncate(collation::char_offset(&key, chars as usize, rule));
    }
    key
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cmp::Ordering::{Greater, Less};

    #[test]
    fn a_pattern_is_literal_up_to_its_first_wildcard() {
        let of = |pattern: &str| literal(pattern.chars(), Some(0x5c)).into_iter().collect::<String>();
        assert_eq!(of("abc%d"), "abc");
        assert_eq!(of("_bc"), "");
        assert_eq!(of("50\\%\\_x%"), "50%_x");
        assert_eq!(of("end\\"), "end\\");
    }

    #[test]
    fn what_begins_so_lies_between_the_keys_and_the_rest_does_not() {
        for rule in [Collation::Utf8mb4GeneralCi, Collation::Utf8mb4Bin] {
            for beginning in ["a", "ab", "aZ", "\u{e4}", "x\u{10000}", "q\u{d7ff}", "~"] {
                let characters: Vec<char> = beginning.chars().collect();
                let Beginning { lower, upper } = of_characters(&characters, 12, rule);
                let (lower, upper) = (lower.unwrap(), upper.unwrap());
                for more in ["", "\0", "\0\0\0", "\t", " ", "b", "\u{ffff}", "\u{10ffff}zz"] {
                    let text = format!("{beginning}{more}");
                    assert_ne!(collation::compare(text.as_bytes(), &lower, rule), Less, "{text:?} {rule:?}");
                    assert_eq!(collation::compare(text.as_bytes(), &upper, rule), Less, "{text:?} {rule:?}");
                }
            }
            let Beginning { lower, upper } = of_characters(&['b'], 4, rule);
            assert_eq!(collation::compare(b"azzz", &lower.unwrap(), rule), Less);
            assert_eq!(collation::compare(b"cc", &upper.unwrap(), rule), Greater);
        }
    }

    #[test]
    fn keys_of_latin1_are_its_bytes_though_its_weights_are_in_no_order() {
        use Collation::{Latin1Bin, Latin1DanishCi, Latin1GeneralCi, Latin1GeneralCs, Latin1SwedishCi};
        for rule in [Latin1SwedishCi, Latin1DanishCi, Latin1GeneralCi, Latin1GeneralCs, Latin1Bin] {
            let column = ColumnDef {
                kind: ColumnType::VarChar { chars: 5, collation: rule },
                ..ColumnDef::new("c", ColumnType::int())
            };
            let order = |a: &[u8], b: &[u8]| untorn::engine::compare_values(rule.stored_comparison(), a, b);
            let characters: Vec<u8> = (0..=u8::MAX).collect();
            for last in "aZz{~é€åÅßö".chars() {
                let pattern = Value::text(format!("x{last}%"));
                let Beginning { lower, upper } = of_pattern(&pattern, &Value::Null, &column).unwrap();
                let (lower, upper) = (lower.unwrap(), upper.unwrap());
                let inside = |text: &[u8]| order(text, &lower).is_ge() && order(text, &upper).is_lt();
                let begins = |byte: u8| {
                    let character = untorn::engine::latin1_character(byte);
                    collation::character_weight(rule, character) == collation::character_weight(rule, last)
                };
                for &byte in &characters {
                    for more in [&b""[..], b"\xFF", b"\0", b"\t"] {
                        let text = [b"x", &[byte][..], more].concat();
                        // What goes on below a space may lie below the upper key, and is looked at again.
                        if begins(byte) || more.first().is_none_or(|first| *first >= b' ') {
                            assert_eq!(inside(&text), begins(byte), "{text:?} {pattern:?} {rule:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_collation_of_unicode_gives_no_keys() {
        let column = |collation| ColumnDef {
            kind: ColumnType::VarChar { chars: 10, collation },
            ..ColumnDef::new("c", ColumnType::int())
        };
        let of = |rule| of_pattern(&Value::text("az%"), &Value::Null, &column(rule)).unwrap();
        assert_eq!(of(Collation::Utf8mb40900AiCi), Beginning::default());
        assert_eq!(of(Collation::Utf8mb4Bin).upper, Some(b"a{".to_vec()));
    }

    #[test]
    fn bytes_are_counted_on() {
        assert_eq!(of_bytes(b"ab".to_vec()).upper, Some(b"ac".to_vec()));
        assert_eq!(of_bytes(vec![1, 255, 255]).upper, Some(vec![2]));
        assert_eq!(of_bytes(vec![255]).upper, None);
        assert_eq!(of_bytes(Vec::new()), Beginning::default());
    }
}
