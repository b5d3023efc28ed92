//! The bits of `sql_mode`, in MySQL's numbering, with their names and the combinations.

#![allow(missing_docs)]

pub const REAL_AS_FLOAT: u64 = 1;
pub const PIPES_AS_CONCAT: u64 = 1 << 1;
pub const ANSI_QUOTES: u64 = 1 << 2;
pub const IGNORE_SPACE: u64 = 1 << 3;
pub const ONLY_FULL_GROUP_BY: u64 = 1 << 5;
pub const NO_UNSIGNED_SUBTRACTION: u64 = 1 << 6;
pub const NO_DIR_IN_CREATE: u64 = 1 << 7;
pub const ANSI: u64 = 1 << 18;
pub const NO_AUTO_VALUE_ON_ZERO: u64 = 1 << 19;
pub const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
pub const STRICT_TRANS_TABLES: u64 = 1 << 21;
pub const STRICT_ALL_TABLES: u64 = 1 << 22;
pub const NO_ZERO_IN_DATE: u64 = 1 << 23;
pub const NO_ZERO_DATE: u64 = 1 << 24;
pub const ALLOW_INVALID_DATES: u64 = 1 << 25;
pub const ERROR_FOR_DIVISION_BY_ZERO: u64 = 1 << 26;
pub const TRADITIONAL: u64 = 1 << 27;
pub const HIGH_NOT_PRECEDENCE: u64 = 1 << 29;
pub const NO_ENGINE_SUBSTITUTION: u64 = 1 << 30;
pub const PAD_CHAR_TO_FULL_LENGTH: u64 = 1 << 31;
pub const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;

const NAMES: &[(&str, u64)] = &[
    ("REAL_AS_FLOAT", REAL_AS_FLOAT),
    ("PIPES_AS_CONCAT", PIPES_AS_CONCAT),
    ("ANSI_QUOTES", ANSI_QUOTES),
    ("IGNORE_SPACE", IGNORE_SPACE),
    ("ONLY_FULL_GROUP_BY", ONLY_FULL_GROUP_BY),
    ("NO_UNSIGNED_SUBTRACTION", NO_UNSIGNED_SUBTRACTION),
    ("NO_DIR_IN_CREATE", NO_DIR_IN_CREATE),
    ("ANSI", ANSI),
    ("NO_AUTO_VALUE_ON_ZERO", NO_AUTO_VALUE_ON_ZERO),
    ("NO_BACKSLASH_ESCAPES", NO_BACKSLASH_ESCAPES),
    ("STRICT_TRANS_TABLES", STRICT_TRANS_TABLES),
    ("STRICT_ALL_TABLES", STRICT_ALL_TABLES),
    ("NO_ZERO_IN_DATE", NO_ZERO_IN_DATE),
    ("NO_ZERO_DATE", NO_ZERO_DATE),
    ("ALLOW_INVALID_DATES", ALLOW_INVALID_DATES),
    ("ERROR_FOR_DIVISION_BY_ZERO", ERROR_FOR_DIVISION_BY_ZERO),
    ("TRADITIONAL", TRADITIONAL),
    ("HIGH_NOT_PRECEDENCE", HIGH_NOT_PRECEDENCE),
    ("NO_ENGINE_SUBSTITUTION", NO_ENGINE_SUBSTITUTION),
    ("PAD_CHAR_TO_FULL_LENGTH", PAD_CHAR_TO_FULL_LENGTH),
    ("TIME_TRUNCATE_FRACTIONAL", TIME_TRUNCATE_FRACTIONAL),
];

/// Modes of MySQL 5.7 and MariaDB that dumps name; they are accepted and mean nothing.
const FORGOTTEN: &[&str] = &["NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"];

/// ANSI and TRADITIONAL stand for several modes each.
pub fn expand(mut bits: u64) -> u64 {
    if bits & ANSI != 0 {
        bits |= REAL_AS_FLOAT | PIPES_AS_CONCAT | ANSI_QUOTES | IGNORE_SPACE | ONLY_FULL_GROUP_BY;
    }
    if bits & TRADITIONAL != 0 {
        bits |= STRICT_TRANS_TABLES
            | STRICT_ALL_TABLES
            | NO_ZERO_IN_DATE
            | NO_ZERO_DATE
            | ERROR_FOR_DIVISION_BY_ZERO
            | NO_ENGINE_SUBSTITUTION;
    }
    bits & NAMES.iter().fold(0, |all, (_, bit)| all | bit)
}

/// The bits of a list of names; `None` for an unknown name.
pub fn parse(text: &str) -> Option<u64> {
    let mut bits = 0;
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if let Some((_, bit)) = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            bits |= bit;
        } else if !FORGOTTEN.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return None;
        }
    }
    Some(expand(bits))
}

/// The names of the bits in MySQL's order.
pub fn text(bits: u64) -> String {
    let names: Vec<&str> = NAMES.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_combinations() {
        assert_eq!(parse("strict_trans_tables, ansi_quotes"), Some(STRICT_TRANS_TABLES | ANSI_QUOTES));
        assert_eq!(parse(""), Some(0));
        assert_eq!(parse("NO_SUCH_MODE"), None);
        assert_eq!(
            text(parse("ANSI").unwrap_or_default()),
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"
        );
    }
}
