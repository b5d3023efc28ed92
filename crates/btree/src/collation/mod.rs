//! String order: the collations the engine knows.
//!
//! Here are those of UTF-8 that weigh each character alone, all of them PAD SPACE; those of `latin1` are in
//! `latin1/`, those of the Unicode Collation Algorithm, of which the newer ones are NO PAD, in `uca/`. A PAD
//! SPACE collation compares as if the shorter string were padded with spaces: `'a' = 'a '`, and a string is
//! above its extension by a control character. Malformed UTF-8 is compared byte by byte from where it starts,
//! so that there always is an order.

mod general_ci;
pub mod latin1;
mod pad_space;
mod uca;

use std::cmp::Ordering;
use std::hash::Hasher;

use self::pad_space::compare_rest;
pub use self::pad_space::{
    compare_bytes_pad_space, hash_bytes_pad_space, sort_key as pad_space_sort_key, without_trailing_spaces,
};
pub use self::uca::{National, UnicodeRule};

/// Weight of every code point outside the BMP in `utf8mb4_general_ci`.
const SUPPLEMENTARY_WEIGHT: u32 = 0xFFFD;

/// Weight of a code point in `utf8mb4_general_ci`.
#[inline]
pub fn general_ci_weight(code_point: u32) -> u32 {
    if code_point > 0xFFFF {
        return SUPPLEMENTARY_WEIGHT;
    }
    general_ci::plane(code_point >> 8)
        .map_or(code_point, |plane| u32::from(plane[(code_point & 0xFF) as usize]))
}

/// The first code point of `bytes` and its length; `None` for malformed UTF-8 or an empty slice.
#[inline]
fn first_code_point(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.first()?);
    let continuation =
        |at: usize| bytes.get(at).filter(|byte| *byte & 0xC0 == 0x80).map(|byte| u32::from(byte & 0x3F));
    match first {
        0..0x80 => Some((first, 1)),
        0xC2..0xE0 => Some(((first & 0x1F) << 6 | continuation(1)?, 2)),
        0xE0..0xF0 => {
            let code_point = (first & 0x0F) << 12 | continuation(1)? << 6 | continuation(2)?;
            (code_point >= 0x800).then_some((code_point, 3))
        }
        0xF0..0xF5 => {
            let high = (first & 0x07) << 18 | continuation(1)? << 12;
            let code_point = high | continuation(2)? << 6 | continuation(3)?;
            (0x10000..0x110000).contains(&code_point).then_some((code_point, 4))
        }
        _ => None,
    }
}

/// `utf8mb4_general_ci`.
pub fn compare_general_ci(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else { return compare_rest(a, b) };
        if x < 0x80 && y < 0x80 {
            let order = general_ci::PLANE_00[usize::from(x)].cmp(&general_ci::PLANE_00[usize::from(y)]);
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[1..], &b[1..]);
            continue;
        }
        let (Some((x, x_len)), Some((y, y_len))) = (first_code_point(a), first_code_point(b)) else {
            return a.cmp(b);
        };
        let order = general_ci_weight(x).cmp(&general_ci_weight(y));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (&a[x_len..], &b[y_len..]);
    }
}

/// Feeds to `hasher` what makes `bytes` equal to others under `utf8mb4_general_ci`.
pub fn hash_general_ci(bytes: &[u8], hasher: &mut impl Hasher) {
    let mut rest = without_trailing_spaces(bytes);
    while let Some((code_point, len)) = first_code_point(rest) {
        hasher.write_u16(general_ci_weight(code_point) as u16);
        rest = &rest[len..];
    }
    hasher.write(rest);
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;

    use proptest::prelude::*;

    use super::*;

    fn general(a: &str, b: &str) -> Ordering {
        compare_general_ci(a.as_bytes(), b.as_bytes())
    }

    #[test]
    fn case_and_accents_do_not_count() {
        assert_eq!(general("Größe", "GROSE"), Ordering::Equal);
        assert_eq!(general("été", "ETE"), Ordering::Equal);
        assert_eq!(general("Привет", "привет"), Ordering::Equal);
        assert_eq!(general("ａ", "a"), Ordering::Greater);
        assert_eq!(general("😀", "🚀"), Ordering::Equal);
        assert_eq!(general("z", "😀"), Ordering::Less);
    }

    #[test]
    fn the_shorter_string_is_padded_with_spaces() {
        assert_eq!(general("a", "a   "), Ordering::Equal);
        assert_eq!(general("a", "a\t"), Ordering::Greater);
        assert_eq!(general("a", "a b"), Ordering::Less);
        assert_eq!(compare_bytes_pad_space(b"a", b"a  "), Ordering::Equal);
        assert_eq!(compare_bytes_pad_space(b"a", b"a\n"), Ordering::Greater);
    }

    fn hash(of: impl Fn(&[u8], &mut DefaultHasher), bytes: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        of(bytes, &mut hasher);
        hasher.finish()
    }

    proptest! {
        #[test]
        fn equal_strings_hash_alike(text in "[a-cA-Cäß ]{0,4}", other in "[a-cA-Cäs ]{0,4}") {
            if general(&text, &other) == Ordering::Equal {
                prop_assert_eq!(hash(hash_general_ci, text.as_bytes()), hash(hash_general_ci, other.as_bytes()));
            }
        }

        #[test]
        fn any_bytes_are_in_some_order(a: Vec<u8>, b: Vec<u8>) {
            for compare in [compare_general_ci, compare_bytes_pad_space] {
                prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
                prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            }
        }
    }
}
