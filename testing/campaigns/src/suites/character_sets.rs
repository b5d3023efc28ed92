//! Character sets that ours does not have: what names one is played, so that the servers stay together, and
//! not judged, nor what follows in a session that has been told to use one.

use std::collections::BTreeSet;

/// Their names begin so.
const OTHERS: [&str; 30] = [
    "armscii8", "big5", "cp125", "cp850", "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030",
    "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16",
];

/// An order of `latin1` that ours does not have, and another character set.
const OTHER_ORDERS: [&str; 2] = ["latin1_german2", "utf32"];

/// Orders of UTF-8 that ours has, without the character set.
const ORDERS: [&str; 30] = [
    "general_ci",
    "bin",
    "unicode_ci",
    "unicode_520_ci",
    "0900_ai_ci",
    "0900_as_ci",
    "0900_as_cs",
    "0900_bin",
    "croatian_ci",
    "czech_ci",
    "danish_ci",
    "esperanto_ci",
    "estonian_ci",
    "german2_ci",
    "hungarian_ci",
    "icelandic_ci",
    "latvian_ci",
    "lithuanian_ci",
    "persian_ci",
    "polish_ci",
    "roman_ci",
    "romanian_ci",
    "sinhala_ci",
    "slovak_ci",
    "slovenian_ci",
    "spanish_ci",
    "spanish2_ci",
    "swedish_ci",
    "turkish_ci",
    "vietnamese_ci",
];

/// Whether a statement names a character set or collation that ours does not have, also in quotes.
pub fn names_another(sql: &str) -> bool {
    let text = sql.to_ascii_lowercase();
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !part(letter)).any(is_another)
}

fn is_another(word: &str) -> bool {
    let name = word.trim_start_matches('_');
    if OTHERS.iter().chain(&OTHER_ORDERS).any(|other| name.starts_with(other)) {
        return true;
    }
    let orders = ["utf8mb4_", "utf8mb3_", "utf8_"].iter().find_map(|set| name.strip_prefix(set));
    orders.is_some_and(|order| {
        ["_ci", "_cs"].iter().any(|end| order.ends_with(end)) && !ORDERS.contains(&order)
    })
}

/// What a statement makes of the session's character set: another one, or one that ours has. The variables
/// are those that the script has given the name of another one.
pub fn chooses(sql: &str, variables: &BTreeSet<String>) -> Option<bool> {
    let text = sql.to_ascii_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let sets = matches!(words[..], ["set", ..])
        && [
            "names",
            "character set",
            "charset",
            "collation_connection",
            "character_set_",
            "collation_database",
        ]
        .iter()
        .any(|what| text.contains(what));
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '@';
    let by_variable = || text.split(|letter| !part(letter)).any(|word| variables.contains(word));
    sets.then(|| names_another(sql) || by_variable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_character_sets_are_known_by_name() {
        for sql in
            ["select _koi8r'a'", "set names 'big5'", "create table t(a char(1) collate utf8_tolower_ci)"]
        {
            assert!(names_another(sql), "{sql}");
        }
        for sql in ["select _utf8'a' collate utf8mb4_czech_ci", "set names latin1", "select utf8_col from t"]
        {
            assert!(!names_another(sql), "{sql}");
        }
        let variables = BTreeSet::from(["@a".to_owned()]);
        assert_eq!(chooses("SET NAMES cp1251", &variables), Some(true));
        assert_eq!(chooses("set collation_connection=utf8mb4_bin", &variables), Some(false));
        assert_eq!(chooses("set @a='cp1251'", &variables), None);
        assert_eq!(chooses("SET character_set_server= @A", &variables), Some(true));
        assert_eq!(chooses("SET character_set_server= @ab", &variables), Some(false));
    }
}
