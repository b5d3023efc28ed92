use std::collections::hash_map::DefaultHasher;

use proptest::prelude::*;

use super::*;

const RULES: [UnicodeRule; 5] = [
    UnicodeRule::AccentInsensitive,
    UnicodeRule::CaseInsensitive,
    UnicodeRule::Sensitive,
    UnicodeRule::Version520,
    UnicodeRule::Version400,
];

pub(super) fn weight_string(rule: UnicodeRule, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    rule.weight_string(text.as_bytes(), &mut key);
    key
}

/// FNV-1a over the WEIGHT_STRING of every code point, each with two zeros behind it. The wanted numbers were
/// made from the answers of MySQL 9.7.
#[test]
fn every_character_weighs_what_it_weighs_in_mysql() {
    let sums = RULES.map(|rule| {
        ('\0'..=char::MAX).fold(0xCBF2_9CE4_8422_2325_u64, |sum, character| {
            let weights = weight_string(rule, character.encode_utf8(&mut [0; 4]));
            let bytes = weights.iter().chain(&END);
            bytes.fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
        })
    });
    let wanted = [
        0x6230_4742_8559_58DC,
        0x5EE6_B956_AD29_AF00,
        0xFE92_DF8C_ADFF_1801,
        0x3424_8423_C099_4DDE,
        0x2053_87DC_CB53_FB6C,
    ];
    assert_eq!(sums.map(|sum| format!("{sum:x}")), wanted.map(|sum: u64| format!("{sum:x}")));
}

#[test]
fn texts_weigh_what_they_weigh_in_mysql() {
    let hex = |rule, text| weight_string(rule, text).iter().map(|b| format!("{b:02X}")).collect::<String>();
    let ai = UnicodeRule::AccentInsensitive;
    assert_eq!(hex(UnicodeRule::Sensitive, "É"), "1CAA000000200024000000080002");
    assert_eq!(hex(UnicodeRule::CaseInsensitive, "É"), "1CAA000000200024");
    // No contraction: DUCET has one for these two.
    assert_eq!(hex(ai, "\u{418}\u{306}"), "2080");
    assert_eq!(hex(ai, "\u{419}"), "208D");
    assert_eq!(hex(UnicodeRule::Sensitive, "가"), "3BF53C73000000200020000000020002");
    assert_eq!(hex(UnicodeRule::Sensitive, "一"), "FB40CE000000002000000002");
    assert_eq!(hex(UnicodeRule::Version400, "Éa😀"), "0E8B0E33FFFD");
    assert_eq!(hex(UnicodeRule::Version520, "Éa😀"), "126B120FFBC3F600");
}

#[test]
fn what_counts_and_what_does_not() {
    let ai = UnicodeRule::AccentInsensitive;
    let order = |rule: UnicodeRule, a: &str, b: &str| rule.compare(a.as_bytes(), b.as_bytes());
    // Expansions, ignorable characters, accents, case.
    assert_eq!(order(ai, "straße", "STRASSE"), Ordering::Equal);
    assert_eq!(order(ai, "Ǽ", "ae"), Ordering::Equal);
    assert_eq!(order(ai, "a\u{301}b", "ab"), Ordering::Equal);
    assert_eq!(order(ai, "\u{1}a\u{ad}b\u{7f}", "ab"), Ordering::Equal);
    assert_eq!(order(ai, "\u{1}", ""), Ordering::Equal);
    assert_eq!(order(UnicodeRule::CaseInsensitive, "été", "ÉTÉ"), Ordering::Equal);
    assert_eq!(order(UnicodeRule::CaseInsensitive, "ete", "été"), Ordering::Less);
    assert_eq!(order(UnicodeRule::Sensitive, "ete", "Ete"), Ordering::Less);
    // An accent decides only where the letters do not, wherever it stands.
    assert_eq!(order(UnicodeRule::Sensitive, "éa", "eb"), Ordering::Less);
    assert_eq!(order(UnicodeRule::Sensitive, "Ea", "éa"), Ordering::Less);
    // The end.
    assert_eq!(order(ai, "a", "a "), Ordering::Less);
    assert_eq!(order(ai, "a", "a\t"), Ordering::Less);
    for rule in [UnicodeRule::Version400, UnicodeRule::Version520] {
        assert_eq!(order(rule, "a", "a  "), Ordering::Equal);
        assert_eq!(order(rule, "a", "a\t"), Ordering::Greater);
        assert_eq!(order(rule, "a", "a \t"), Ordering::Greater);
        assert_eq!(order(rule, "a", "a b"), Ordering::Less);
    }
    assert_eq!(order(UnicodeRule::Version400, "😀", "🚀"), Ordering::Equal);
    assert_eq!(order(UnicodeRule::Version520, "😀", "🚀"), Ordering::Less);
}

fn hash(rule: UnicodeRule, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    rule.hash(bytes, &mut hasher);
    hasher.finish()
}

fn key(rule: UnicodeRule, bytes: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    rule.sort_key(bytes, &mut key);
    key
}

pub(super) fn agree(rules: &[UnicodeRule], a: &[u8], b: &[u8]) -> Result<(), TestCaseError> {
    for &rule in rules {
        let order = rule.compare(a, b);
        prop_assert_eq!(order, rule.compare(b, a).reverse(), "{:?}", rule);
        let (left, right) = (key(rule, a), key(rule, b));
        prop_assert_eq!(order, left.cmp(&right), "{:?} {:?} {:?}", rule, left, right);
        prop_assert_eq!(order.is_eq(), hash(rule, a) == hash(rule, b), "{:?}", rule);
        // A key ends where it says so, whatever stands behind it.
        let follow = |key: &[u8], next: &[u8]| [key, next].concat();
        if order.is_ne() {
            prop_assert_eq!(order, follow(&left, &[0xFF; 4]).cmp(&follow(&right, &[0; 4])), "{:?}", rule);
        }
    }
    Ok(())
}

fn character_key(rule: UnicodeRule, character: char) -> Vec<u8> {
    let mut key = Vec::new();
    rule.character_key(character, &mut key);
    key
}

proptest! {
    #[test]
    fn comparison_key_and_hash_agree(
        a in "[aAbáÁßæ \\t\u{1}\u{301}\u{327}가각一𠀀😀\u{fdfa}]{0,6}",
        b in "[aAbsáÁßæ \\t\u{1}\u{301}\u{327}가각一𠀀😀\u{fdfa}]{0,6}",
    ) {
        agree(&RULES, a.as_bytes(), b.as_bytes())?;
    }

    #[test]
    fn any_bytes_are_in_some_order(
        a in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC3), Just(0xA9), Just(b'a')], 0..8),
        b in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC3), Just(0xA9), Just(b'a')], 0..8),
    ) {
        agree(&RULES, &a, &b)?;
    }

    #[test]
    fn keys_of_characters_are_apart(a: char, b in prop_oneof![any::<char>(), Just('a'), Just('é')]) {
        let croatian = UnicodeRule::National(National::Croatian);
        for rule in RULES.into_iter().chain([croatian, UnicodeRule::National(National::German2)]) {
            let (left, right) = (character_key(rule, a), character_key(rule, b));
            prop_assert!(left.len() <= rule.key_ratio() * a.len_utf8());
            prop_assert!(left[0] < 0x80 && left[1..].iter().all(|byte| (0x80..0xC0).contains(byte)));
            let own = rule.is_like_400() && (a > '\u{ffff}' || b > '\u{ffff}');
            let weights = |character: char| weight_string(rule, &character.to_string());
            let same = if own { a == b } else { weights(a) == weights(b) };
            prop_assert_eq!(same, left == right);
            prop_assert_eq!(same, left.starts_with(&right));
        }
    }
}
