//! Character sets and collations.
//!
//! Text is UTF-8 in all of them: `utf8mb3` and `ascii` allow fewer characters, and their columns are stored
//! accordingly (a CHAR of `ascii` has a fixed length). What is not in the table below does not exist.

use btree::Comparison;
use btree::collation::UnicodeRule;
use serde::{Deserialize, Serialize};

/// A character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Charset {
    /// Bytes.
    Binary,
    /// The first 128 characters.
    Ascii,
    /// The Basic Multilingual Plane.
    Utf8mb3,
    /// All of Unicode.
    Utf8mb4,
}

impl Charset {
    /// All of them, each before those that have more characters.
    pub const ALL: [Charset; 4] = [Charset::Binary, Charset::Ascii, Charset::Utf8mb3, Charset::Utf8mb4];

    /// The name as MySQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Utf8mb4 => "utf8mb4",
        }
    }

    /// The character set of this name (any letter case), if it is one we have; `utf8` is `utf8mb3`.
    pub fn from_name(name: &str) -> Option<Charset> {
        let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        Charset::ALL.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    /// The collation of texts that say only their character set.
    pub fn default_collation(self) -> Collation {
        match self {
            Charset::Binary => Collation::Binary,
            Charset::Ascii => Collation::AsciiGeneralCi,
            Charset::Utf8mb3 => Collation::Utf8mb3GeneralCi,
            Charset::Utf8mb4 => Collation::Utf8mb4GeneralCi,
        }
    }

    /// Most bytes a character takes.
    pub fn bytes_per_char_max(self) -> u32 {
        match self {
            Charset::Binary | Charset::Ascii => 1,
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
        }
    }

    /// Where in UTF-8 text the first character is that it does not have.
    pub fn first_foreign(self, text: &[u8]) -> Option<usize> {
        match self {
            Charset::Binary | Charset::Utf8mb4 => None,
            Charset::Ascii => text.iter().position(|byte| !byte.is_ascii()),
            Charset::Utf8mb3 => text.iter().position(|byte| *byte >= 0xF0),
        }
    }
}

/// A character set with its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collation {
    /// `utf8mb4_general_ci`, id 45: case and accents fold, PAD SPACE. The default.
    Utf8mb4GeneralCi,
    /// `utf8mb4_bin`, id 46: by code point, PAD SPACE.
    Utf8mb4Bin,
    /// `binary`, id 63: by byte, NO PAD.
    Binary,
    /// `utf8mb4_0900_ai_ci`, id 255: UCA 9.0.0, letters only, NO PAD. MySQL's default.
    #[serde(rename = "utf8mb4_0900_ai_ci")]
    Utf8mb40900AiCi,
    /// `utf8mb4_0900_as_ci`, id 305: UCA 9.0.0, letters and accents, NO PAD.
    #[serde(rename = "utf8mb4_0900_as_ci")]
    Utf8mb40900AsCi,
    /// `utf8mb4_0900_as_cs`, id 278: UCA 9.0.0, letters, accents and case, NO PAD.
    #[serde(rename = "utf8mb4_0900_as_cs")]
    Utf8mb40900AsCs,
    /// `utf8mb4_0900_bin`, id 309: by code point, NO PAD.
    #[serde(rename = "utf8mb4_0900_bin")]
    Utf8mb40900Bin,
    /// `utf8mb4_unicode_ci`, id 224: UCA 4.0.0, letters only, PAD SPACE.
    Utf8mb4UnicodeCi,
    /// `utf8mb4_unicode_520_ci`, id 246: UCA 5.2.0, letters only, PAD SPACE.
    #[serde(rename = "utf8mb4_unicode_520_ci")]
    Utf8mb4Unicode520Ci,
    /// `utf8mb3_general_ci`, id 33.
    Utf8mb3GeneralCi,
    /// `utf8mb3_bin`, id 83.
    Utf8mb3Bin,
    /// `utf8mb3_unicode_ci`, id 192.
    Utf8mb3UnicodeCi,
    /// `utf8mb3_unicode_520_ci`, id 214.
    #[serde(rename = "utf8mb3_unicode_520_ci")]
    Utf8mb3Unicode520Ci,
    /// `ascii_general_ci`, id 11: case folds, PAD SPACE.
    AsciiGeneralCi,
    /// `ascii_bin`, id 65: by byte, PAD SPACE.
    AsciiBin,
}

use Collation::*;

/// What there is, with the names and numbers of MySQL, sorted by name.
const TABLE: [(Collation, &str, u16); 15] = [
    (AsciiBin, "ascii_bin", 65),
    (AsciiGeneralCi, "ascii_general_ci", 11),
    (Binary, "binary", 63),
    (Utf8mb3Bin, "utf8mb3_bin", 83),
    (Utf8mb3GeneralCi, "utf8mb3_general_ci", 33),
    (Utf8mb3Unicode520Ci, "utf8mb3_unicode_520_ci", 214),
    (Utf8mb3UnicodeCi, "utf8mb3_unicode_ci", 192),
    (Utf8mb40900AiCi, "utf8mb4_0900_ai_ci", 255),
    (Utf8mb40900AsCi, "utf8mb4_0900_as_ci", 305),
    (Utf8mb40900AsCs, "utf8mb4_0900_as_cs", 278),
    (Utf8mb40900Bin, "utf8mb4_0900_bin", 309),
    (Utf8mb4Bin, "utf8mb4_bin", 46),
    (Utf8mb4GeneralCi, "utf8mb4_general_ci", 45),
    (Utf8mb4Unicode520Ci, "utf8mb4_unicode_520_ci", 246),
    (Utf8mb4UnicodeCi, "utf8mb4_unicode_ci", 224),
];

impl Collation {
    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = Collation> {
        TABLE.iter().map(|(collation, ..)| *collation)
    }

    fn entry(self) -> (Collation, &'static str, u16) {
        TABLE.into_iter().find(|(collation, ..)| *collation == self).unwrap_or(TABLE[2])
    }

    /// MySQL's collation id, as it stands in `.cfg` files and on the wire.
    pub fn id(self) -> u16 {
        self.entry().2
    }

    /// The collation's name as MySQL writes it.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// The character set.
    pub fn charset(self) -> Charset {
        match self {
            Binary => Charset::Binary,
            AsciiBin | AsciiGeneralCi => Charset::Ascii,
            Utf8mb3Bin | Utf8mb3GeneralCi | Utf8mb3UnicodeCi | Utf8mb3Unicode520Ci => Charset::Utf8mb3,
            _ => Charset::Utf8mb4,
        }
    }

    /// The collation of this name (any letter case), if it is one we have. `utf8_…` is `utf8mb3_…`.
    pub fn from_name(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        let name = match name.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => name,
        };
        TABLE.iter().find(|(_, known, ..)| *known == name).map(|(collation, ..)| *collation)
    }

    /// Most bytes a character takes.
    pub fn bytes_per_char_max(self) -> u32 {
        self.charset().bytes_per_char_max()
    }

    /// Whether it orders by bytes or code points.
    pub fn is_bin(self) -> bool {
        matches!(self, Binary | Utf8mb4Bin | Utf8mb40900Bin | Utf8mb3Bin | AsciiBin)
    }

    /// Whether a text equals itself with spaces behind it.
    pub fn pads(self) -> bool {
        match self.comparison() {
            Comparison::Unicode(rule) => rule.pads(),
            comparison => comparison != Comparison::Binary,
        }
    }

    /// The order of stored strings of this collation.
    pub fn comparison(self) -> Comparison {
        match self {
            Utf8mb4GeneralCi | Utf8mb3GeneralCi | AsciiGeneralCi => Comparison::Utf8mb4GeneralCi,
            Utf8mb4Bin | Utf8mb3Bin | AsciiBin => Comparison::Utf8mb4Bin,
            Binary | Utf8mb40900Bin => Comparison::Binary,
            Utf8mb40900AiCi => Comparison::Unicode(UnicodeRule::AccentInsensitive),
            Utf8mb40900AsCi => Comparison::Unicode(UnicodeRule::CaseInsensitive),
            Utf8mb40900AsCs => Comparison::Unicode(UnicodeRule::Sensitive),
            Utf8mb4UnicodeCi | Utf8mb3UnicodeCi => Comparison::Unicode(UnicodeRule::Version400),
            Utf8mb4Unicode520Ci | Utf8mb3Unicode520Ci => Comparison::Unicode(UnicodeRule::Version520),
        }
    }

    /// The order of stored values of CHAR: the spaces that fill them up must not count.
    pub fn comparison_of_char(self) -> Comparison {
        match self.comparison() {
            Comparison::Unicode(rule) if !rule.pads() => Comparison::UnicodeTrimmed(rule),
            Comparison::Binary if self != Binary => Comparison::BytesTrimmed,
            comparison => comparison,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_stored_under_it() {
        for collation in Collation::all() {
            assert_eq!(Collation::from_name(&collation.name().to_ascii_uppercase()), Some(collation));
            assert_eq!(serde_json::to_value(collation).ok(), Some(collation.name().into()));
            assert!(collation.name().starts_with(collation.charset().name()));
        }
        assert_eq!(Collation::from_name("utf8_general_ci"), Some(Utf8mb3GeneralCi));
        assert_eq!(Collation::from_name("utf8mb4_de_pb_0900_ai_ci"), None);
        for charset in Charset::ALL {
            assert_eq!(charset.default_collation().charset(), charset);
            assert_eq!(Charset::from_name(charset.name()), Some(charset));
        }
    }

    #[test]
    fn characters_that_a_set_does_not_have_are_found() {
        assert_eq!(Charset::Ascii.first_foreign("abé".as_bytes()), Some(2));
        assert_eq!(Charset::Utf8mb3.first_foreign("aé表😀".as_bytes()), Some(6));
        assert_eq!(Charset::Utf8mb4.first_foreign("aé表😀".as_bytes()), None);
    }
}
