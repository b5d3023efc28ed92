//! The collations of single countries: what they weigh, and that contractions are seen wherever they stand.

use super::national::{National, National::*, tailorings};
use super::tests::{agree, weight_string};
use super::*;
use proptest::prelude::*;

fn rules() -> Vec<UnicodeRule> {
    National::ALL.map(UnicodeRule::National).to_vec()
}

/// FNV-1a over the WEIGHT_STRING of every code point up to U+FFFF, each with two zeros behind it. The wanted
/// numbers were made from the answers of MySQL 9.7.
#[test]
fn every_character_weighs_what_it_weighs_in_mysql() {
    let wanted: [(National, u64); 22] = [
        (Croatian, 0x8DC7_B78E_C460_2653),
        (Czech, 0xE284_7667_B63C_15D8),
        (Danish, 0x54CC_4659_3237_DEEC),
        (Esperanto, 0xF6A2_78B6_3D15_3EE0),
        (Estonian, 0xD6D6_C09D_F578_23A4),
        (German2, 0x27E9_180E_D374_1370),
        (Hungarian, 0xB104_05C2_C78D_5830),
        (Icelandic, 0xBCD7_CEC5_EDBA_5130),
        (Latvian, 0xC642_2157_61E3_986C),
        (Lithuanian, 0xFCDB_B609_E2F3_558C),
        (Persian, 0x193E_F51C_3567_BA87),
        (Polish, 0xA9F8_DDC6_80A5_6054),
        (Roman, 0xC0C7_438B_0AC5_E18C),
        (Romanian, 0xA20A_8044_870E_08C4),
        (Sinhala, 0x7D47_ADED_CB94_56DB),
        (Slovak, 0xAFAE_B291_7516_E654),
        (Slovenian, 0x878B_73AB_E825_9FA8),
        (Spanish, 0x642B_8905_2312_5B00),
        (Spanish2, 0x642B_8905_2312_5B00),
        (Swedish, 0x676C_0744_D35B_33B4),
        (Turkish, 0x9A8A_0F68_DC8B_E6D4),
        (Vietnamese, 0xC16D_666B_E210_B608),
    ];
    for (of, wanted) in wanted {
        let sum = ('\0'..='\u{ffff}').fold(0xCBF2_9CE4_8422_2325_u64, |sum, character| {
            let weights = weight_string(UnicodeRule::National(of), character.encode_utf8(&mut [0; 4]));
            let bytes = weights.iter().chain(&END);
            bytes.fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
        });
        assert_eq!(format!("{sum:x}"), format!("{wanted:x}"), "{of:?}");
    }
}

/// As MySQL 9.7 answers.
#[test]
fn texts_weigh_what_they_weigh_in_mysql() {
    for (of, text, wanted) in [
        (Czech, "chata", "0EE20E3310020E33"),
        (Czech, "CHATA", "0EE20E3310020E33"),
        (Czech, "cHata", "0E600EE10E3310020E33"),
        (Czech, "Chc", "0EE20E60"),
        (Czech, "cch", "0E600EE2"),
        (Czech, "hrad", "0EE10FC00E330E6D"),
        (Czech, "č😀", "0E61FFFD"),
        (Danish, "Aase", "106D0FEA0E8B"),
        (Danish, "aaa", "106D0E33"),
        (Danish, "aAa", "0E33106D"),
        (Danish, "Åse", "106D0FEA0E8B"),
        (Danish, "kraa", "0F210FC0106D"),
        (Spanish2, "llama", "0F2F0E330F5B0E33"),
        (Spanish2, "lLama", "0F2E0F2E0E330F5B0E33"),
        (Spanish2, "LLuch", "0F2F101F0E61"),
        (Spanish2, "ñu", "0F65101F"),
        (Croatian, "džep", "0E6E0E8B0FA7"),
        (Croatian, "DŽEP", "0E6E0E8B0FA7"),
        (Croatian, "dŽ", "0E6E"),
        (Croatian, "dZ", "0E6D106A"),
        (Croatian, "ǆ", "0E6E"),
        (Croatian, "ljnj", "0F2F0F65"),
        (Croatian, "Nj", "0F65"),
        (Lithuanian, "chy", "0E600EFB"),
        (Lithuanian, "Šiy", "0FEB0EFB0EFB"),
        (Slovak, "cChô", "0E600EE20F83"),
        (German2, "ßäÖ", "0FEA0FEA0E330E8B0F820E8B"),
        (German2, "aeoe", "0E330E8B0F820E8B"),
        (Persian, "ک\u{64b}ﷺ", "139C02D5FBC1FDFA"),
        (Persian, "آ\u{653}", "0E330001"),
        (Sinhala, "ක්ෂ", "17AB17E517CF"),
        (Vietnamese, "Đặng", "0E6E0E340F640EC1"),
        (Turkish, "ıIİi", "0EE20EE20EFB0EFB"),
        (Latvian, "Yi", "0EFC0EFB"),
    ] {
        let weights = weight_string(UnicodeRule::National(of), text);
        let shown: String = weights.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(shown, wanted, "{of:?} {text:?}");
    }
}

#[test]
fn every_line_of_the_table_changes_what_is_weighed() {
    let mut lines = 0;
    for of in National::ALL {
        for tailoring in tailorings(of.name()) {
            let text: String = tailoring.characters.iter().filter_map(|code| char::from_u32(*code)).collect();
            let wanted: Vec<u8> =
                tailoring.weights.iter().flat_map(|weight| (*weight as u16).to_be_bytes()).collect();
            assert_eq!(weight_string(UnicodeRule::National(of), &text), wanted, "{of:?} {text:?}");
            assert_ne!(weight_string(UnicodeRule::Version400, &text), wanted, "{of:?} {text:?}");
            lines += 1;
        }
    }
    assert_eq!(lines, include_str!("weights_national.txt").lines().count());
}

#[test]
fn what_weighs_as_one_is_compared_as_one() {
    let order = |of, a: &str, b: &str| UnicodeRule::National(of).compare(a.as_bytes(), b.as_bytes());
    // The letter that may begin a contraction is the same in both, or is passed by case.
    for (a, b) in [("cz", "ch"), ("hz", "ch"), ("Cz", "ch"), ("xC", "xch"), ("cc", "cch"), ("cH", "ch")] {
        assert_eq!(order(Czech, a, b), Ordering::Less, "{a} {b}");
        assert_eq!(order(Czech, b, a), Ordering::Greater, "{a} {b}");
    }
    assert_eq!(order(Czech, "ch", "i"), Ordering::Less);
    assert_eq!(order(Czech, "c\u{1}h", "ch"), Ordering::Less);
    assert_eq!(order(Czech, "CH ", "ch"), Ordering::Equal);
    assert_eq!(order(Lithuanian, "ch", "c"), Ordering::Equal);
    // Which two letters are one follows from where the letters begin.
    assert_eq!(order(Danish, "aaa", "åa"), Ordering::Equal);
    assert_eq!(order(Danish, "aaa", "aå"), Ordering::Greater);
    assert_eq!(order(Danish, "baaab", "baaaå"), Ordering::Less);
    assert_eq!(order(Danish, "aaaa", "åå"), Ordering::Equal);
    assert_eq!(order(Croatian, "dž", "ǆ"), Ordering::Equal);
    assert_eq!(order(Croatian, "dz", "dž"), Ordering::Less);
}

#[test]
fn units_are_characters_and_what_weighs_as_one() {
    let units = |rule: UnicodeRule, text: &str| {
        let (mut rest, mut found) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let unit = rule.first_unit(rest);
            found.push(unit);
            rest = &rest[unit..];
        }
        found
    };
    assert_eq!(units(UnicodeRule::National(Czech), "cchcH"), [1, 2, 1, 1]);
    assert_eq!(units(UnicodeRule::National(Croatian), "džßd\u{fdfa}"), [3, 2, 1, 3]);
    assert_eq!(units(UnicodeRule::Version400, "chß\u{fdfa}😀"), [1, 1, 2, 3, 4]);
    assert_eq!(UnicodeRule::National(Czech).first_unit(b""), 0);
    assert_eq!(UnicodeRule::National(Czech).first_unit(b"c\xC5"), 1);
}

proptest! {
    #[test]
    fn comparison_key_and_hash_agree(
        a in "[cChHaAåÅdDžŽǆlLjJnNzZ \\t\u{1}\u{653}äæÿک😀]{0,7}",
        b in "[cChHaAåÅdDžŽǆlLjJnNzZ \\t\u{1}\u{653}äæÿک😀]{0,7}",
    ) {
        agree(&rules(), a.as_bytes(), b.as_bytes())?;
    }

    #[test]
    fn nor_does_what_is_the_same_before_change_anything(
        start in "[cChHaAdDžlLjn ]{0,4}",
        a in "[cChHaAåžlj\\t]{0,3}",
        b in "[cChHaAåžlj\\t]{0,3}",
    ) {
        let [a, b] = [a, b].map(|end| format!("{start}{end}"));
        agree(&rules(), a.as_bytes(), b.as_bytes())?;
    }

    #[test]
    fn any_bytes_are_in_some_order(
        a in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC5), Just(0xBE), Just(b'd')], 0..8),
        b in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC5), Just(0xBE), Just(b'd')], 0..8),
    ) {
        agree(&rules(), &a, &b)?;
    }
}
