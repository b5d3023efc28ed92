//! Character sets and collations.
//!
//! A text in memory is UTF-8, whatever its character set, and so are the columns of `utf8mb4`, `utf8mb3` and
//! `ascii`, of which the latter two have fewer characters (a CHAR of `ascii` has a fixed length). Columns of
//! `latin1` hold a byte for each character: values are converted where they are stored and read, in
//! `codec.rs`, and have an order of their own for each form. What is not in the table below does not exist.

use std::borrow::Cow;

use btree::Comparison;
use btree::collation::latin1::{self, Latin1Rule};
use btree::collation::{National, UnicodeRule};
use serde::{Deserialize, Serialize};

/// A character set, each before those that have more characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Charset {
    /// Bytes.
    Binary,
    /// The first 128 characters.
    Ascii,
    /// Windows' code page 1252.
    Latin1,
    /// The Basic Multilingual Plane.
    Utf8mb3,
    /// All of Unicode.
    Utf8mb4,
}

impl Charset {
    /// All of them, each before those that have more characters.
    pub const ALL: [Charset; 5] =
        [Charset::Binary, Charset::Ascii, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4];

    /// The name as MySQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Latin1 => "latin1",
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
            Charset::Latin1 => Collation::Latin1SwedishCi,
            Charset::Utf8mb3 => Collation::Utf8mb3GeneralCi,
            Charset::Utf8mb4 => Collation::Utf8mb4GeneralCi,
        }
    }

    /// The collation by code points: what the word BINARY behind a type means.
    pub fn bin_collation(self) -> Collation {
        match self {
            Charset::Binary => Collation::Binary,
            Charset::Ascii => Collation::AsciiBin,
            Charset::Latin1 => Collation::Latin1Bin,
            Charset::Utf8mb3 => Collation::Utf8mb3Bin,
            Charset::Utf8mb4 => Collation::Utf8mb4Bin,
        }
    }

    /// Most bytes a character takes.
    pub fn bytes_per_char_max(self) -> u32 {
        match self {
            Charset::Binary | Charset::Ascii | Charset::Latin1 => 1,
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
        }
    }

    /// Where in UTF-8 text the first character is that it does not have. `latin1` also has no text that is no
    /// UTF-8.
    pub fn first_foreign(self, text: &[u8]) -> Option<usize> {
        match self {
            Charset::Binary | Charset::Utf8mb4 => None,
            Charset::Ascii => text.iter().position(|byte| !byte.is_ascii()),
            Charset::Latin1 => latin1::from_utf8(text).err(),
            Charset::Utf8mb3 => text.iter().position(|byte| *byte >= 0xF0),
        }
    }

    /// UTF-8 text in the bytes of this character set, as columns hold it and as HEX and LENGTH see it.
    ///
    /// # Errors
    /// Where the first character begins that `latin1` does not have; the others take the text as it is.
    pub fn from_utf8(self, text: &[u8]) -> Result<Cow<'_, [u8]>, usize> {
        match self {
            Charset::Latin1 => latin1::from_utf8(text),
            _ => Ok(Cow::Borrowed(text)),
        }
    }

    /// The same, with `?` for characters that the character set does not have.
    pub fn from_utf8_lossy(self, text: &[u8]) -> Cow<'_, [u8]> {
        self.from_utf8(text).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(text);
            Cow::Owned(text.chars().map(|c| latin1::byte_of(u32::from(c)).unwrap_or(b'?')).collect())
        })
    }

    /// The text in UTF-8 that these bytes of the character set are.
    pub fn to_utf8(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Charset::Latin1 => latin1::to_utf8(bytes),
            _ => Cow::Borrowed(bytes),
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
    // Those of single countries: UCA 4.0.0 with other weights for some letters, PAD SPACE.
    /// `utf8mb4_croatian_ci`, id 245.
    Utf8mb4CroatianCi,
    /// `utf8mb4_czech_ci`, id 234.
    Utf8mb4CzechCi,
    /// `utf8mb4_danish_ci`, id 235.
    Utf8mb4DanishCi,
    /// `utf8mb4_esperanto_ci`, id 241.
    Utf8mb4EsperantoCi,
    /// `utf8mb4_estonian_ci`, id 230.
    Utf8mb4EstonianCi,
    /// `utf8mb4_german2_ci`, id 244.
    #[serde(rename = "utf8mb4_german2_ci")]
    Utf8mb4German2Ci,
    /// `utf8mb4_hungarian_ci`, id 242.
    Utf8mb4HungarianCi,
    /// `utf8mb4_icelandic_ci`, id 225.
    Utf8mb4IcelandicCi,
    /// `utf8mb4_latvian_ci`, id 226.
    Utf8mb4LatvianCi,
    /// `utf8mb4_lithuanian_ci`, id 236.
    Utf8mb4LithuanianCi,
    /// `utf8mb4_persian_ci`, id 240.
    Utf8mb4PersianCi,
    /// `utf8mb4_polish_ci`, id 229.
    Utf8mb4PolishCi,
    /// `utf8mb4_roman_ci`, id 239.
    Utf8mb4RomanCi,
    /// `utf8mb4_romanian_ci`, id 227.
    Utf8mb4RomanianCi,
    /// `utf8mb4_sinhala_ci`, id 243.
    Utf8mb4SinhalaCi,
    /// `utf8mb4_slovak_ci`, id 237.
    Utf8mb4SlovakCi,
    /// `utf8mb4_slovenian_ci`, id 228.
    Utf8mb4SlovenianCi,
    /// `utf8mb4_spanish_ci`, id 231.
    Utf8mb4SpanishCi,
    /// `utf8mb4_spanish2_ci`, id 238.
    #[serde(rename = "utf8mb4_spanish2_ci")]
    Utf8mb4Spanish2Ci,
    /// `utf8mb4_swedish_ci`, id 232.
    Utf8mb4SwedishCi,
    /// `utf8mb4_turkish_ci`, id 233.
    Utf8mb4TurkishCi,
    /// `utf8mb4_vietnamese_ci`, id 247.
    Utf8mb4VietnameseCi,
    /// `utf8mb3_croatian_ci`, id 213.
    Utf8mb3CroatianCi,
    /// `utf8mb3_czech_ci`, id 202.
    Utf8mb3CzechCi,
    /// `utf8mb3_danish_ci`, id 203.
    Utf8mb3DanishCi,
    /// `utf8mb3_esperanto_ci`, id 209.
    Utf8mb3EsperantoCi,
    /// `utf8mb3_estonian_ci`, id 198.
    Utf8mb3EstonianCi,
    /// `utf8mb3_german2_ci`, id 212.
    #[serde(rename = "utf8mb3_german2_ci")]
    Utf8mb3German2Ci,
    /// `utf8mb3_hungarian_ci`, id 210.
    Utf8mb3HungarianCi,
    /// `utf8mb3_icelandic_ci`, id 193.
    Utf8mb3IcelandicCi,
    /// `utf8mb3_latvian_ci`, id 194.
    Utf8mb3LatvianCi,
    /// `utf8mb3_lithuanian_ci`, id 204.
    Utf8mb3LithuanianCi,
    /// `utf8mb3_persian_ci`, id 208.
    Utf8mb3PersianCi,
    /// `utf8mb3_polish_ci`, id 197.
    Utf8mb3PolishCi,
    /// `utf8mb3_roman_ci`, id 207.
    Utf8mb3RomanCi,
    /// `utf8mb3_romanian_ci`, id 195.
    Utf8mb3RomanianCi,
    /// `utf8mb3_sinhala_ci`, id 211.
    Utf8mb3SinhalaCi,
    /// `utf8mb3_slovak_ci`, id 205.
    Utf8mb3SlovakCi,
    /// `utf8mb3_slovenian_ci`, id 196.
    Utf8mb3SlovenianCi,
    /// `utf8mb3_spanish_ci`, id 199.
    Utf8mb3SpanishCi,
    /// `utf8mb3_spanish2_ci`, id 206.
    #[serde(rename = "utf8mb3_spanish2_ci")]
    Utf8mb3Spanish2Ci,
    /// `utf8mb3_swedish_ci`, id 200.
    Utf8mb3SwedishCi,
    /// `utf8mb3_turkish_ci`, id 201.
    Utf8mb3TurkishCi,
    /// `utf8mb3_vietnamese_ci`, id 215.
    Utf8mb3VietnameseCi,
    /// `ascii_general_ci`, id 11: case folds, PAD SPACE.
    AsciiGeneralCi,
    /// `ascii_bin`, id 65: by byte, PAD SPACE.
    AsciiBin,
    /// `latin1_swedish_ci`, id 8: PAD SPACE, as all of `latin1`. MariaDB's default.
    Latin1SwedishCi,
    /// `latin1_german1_ci`, id 5.
    #[serde(rename = "latin1_german1_ci")]
    Latin1German1Ci,
    /// `latin1_danish_ci`, id 15.
    Latin1DanishCi,
    /// `latin1_spanish_ci`, id 94.
    Latin1SpanishCi,
    /// `latin1_general_ci`, id 48.
    Latin1GeneralCi,
    /// `latin1_general_cs`, id 49.
    Latin1GeneralCs,
    /// `latin1_bin`, id 47: by byte.
    Latin1Bin,
}

use Collation::*;

/// What there is, with the names and numbers of MySQL, sorted by name.
static TABLE: [(Collation, &str, u16); 66] = [
    (AsciiBin, "ascii_bin", 65),
    (AsciiGeneralCi, "ascii_general_ci", 11),
    (Binary, "binary", 63),
    (Latin1Bin, "latin1_bin", 47),
    (Latin1DanishCi, "latin1_danish_ci", 15),
    (Latin1GeneralCi, "latin1_general_ci", 48),
    (Latin1GeneralCs, "latin1_general_cs", 49),
    (Latin1German1Ci, "latin1_german1_ci", 5),
    (Latin1SpanishCi, "latin1_spanish_ci", 94),
    (Latin1SwedishCi, "latin1_swedish_ci", 8),
    (Utf8mb3Bin, "utf8mb3_bin", 83),
    (Utf8mb3CroatianCi, "utf8mb3_croatian_ci", 213),
    (Utf8mb3CzechCi, "utf8mb3_czech_ci", 202),
    (Utf8mb3DanishCi, "utf8mb3_danish_ci", 203),
    (Utf8mb3EsperantoCi, "utf8mb3_esperanto_ci", 209),
    (Utf8mb3EstonianCi, "utf8mb3_estonian_ci", 198),
    (Utf8mb3GeneralCi, "utf8mb3_general_ci", 33),
    (Utf8mb3German2Ci, "utf8mb3_german2_ci", 212),
    (Utf8mb3HungarianCi, "utf8mb3_hungarian_ci", 210),
    (Utf8mb3IcelandicCi, "utf8mb3_icelandic_ci", 193),
    (Utf8mb3LatvianCi, "utf8mb3_latvian_ci", 194),
    (Utf8mb3LithuanianCi, "utf8mb3_lithuanian_ci", 204),
    (Utf8mb3PersianCi, "utf8mb3_persian_ci", 208),
    (Utf8mb3PolishCi, "utf8mb3_polish_ci", 197),
    (Utf8mb3RomanCi, "utf8mb3_roman_ci", 207),
    (Utf8mb3RomanianCi, "utf8mb3_romanian_ci", 195),
    (Utf8mb3SinhalaCi, "utf8mb3_sinhala_ci", 211),
    (Utf8mb3SlovakCi, "utf8mb3_slovak_ci", 205),
    (Utf8mb3SlovenianCi, "utf8mb3_slovenian_ci", 196),
    (Utf8mb3Spanish2Ci, "utf8mb3_spanish2_ci", 206),
    (Utf8mb3SpanishCi, "utf8mb3_spanish_ci", 199),
    (Utf8mb3SwedishCi, "utf8mb3_swedish_ci", 200),
    (Utf8mb3TurkishCi, "utf8mb3_turkish_ci", 201),
    (Utf8mb3Unicode520Ci, "utf8mb3_unicode_520_ci", 214),
    (Utf8mb3UnicodeCi, "utf8mb3_unicode_ci", 192),
    (Utf8mb3VietnameseCi, "utf8mb3_vietnamese_ci", 215),
    (Utf8mb40900AiCi, "utf8mb4_0900_ai_ci", 255),
    (Utf8mb40900AsCi, "utf8mb4_0900_as_ci", 305),
    (Utf8mb40900AsCs, "utf8mb4_0900_as_cs", 278),
    (Utf8mb40900Bin, "utf8mb4_0900_bin", 309),
    (Utf8mb4Bin, "utf8mb4_bin", 46),
    (Utf8mb4CroatianCi, "utf8mb4_croatian_ci", 245),
    (Utf8mb4CzechCi, "utf8mb4_czech_ci", 234),
    (Utf8mb4DanishCi, "utf8mb4_danish_ci", 235),
    (Utf8mb4EsperantoCi, "utf8mb4_esperanto_ci", 241),
    (Utf8mb4EstonianCi, "utf8mb4_estonian_ci", 230),
    (Utf8mb4GeneralCi, "utf8mb4_general_ci", 45),
    (Utf8mb4German2Ci, "utf8mb4_german2_ci", 244),
    (Utf8mb4HungarianCi, "utf8mb4_hungarian_ci", 242),
    (Utf8mb4IcelandicCi, "utf8mb4_icelandic_ci", 225),
    (Utf8mb4LatvianCi, "utf8mb4_latvian_ci", 226),
    (Utf8mb4LithuanianCi, "utf8mb4_lithuanian_ci", 236),
    (Utf8mb4PersianCi, "utf8mb4_persian_ci", 240),
    (Utf8mb4PolishCi, "utf8mb4_polish_ci", 229),
    (Utf8mb4RomanCi, "utf8mb4_roman_ci", 239),
    (Utf8mb4RomanianCi, "utf8mb4_romanian_ci", 227),
    (Utf8mb4SinhalaCi, "utf8mb4_sinhala_ci", 243),
    (Utf8mb4SlovakCi, "utf8mb4_slovak_ci", 237),
    (Utf8mb4SlovenianCi, "utf8mb4_slovenian_ci", 228),
    (Utf8mb4Spanish2Ci, "utf8mb4_spanish2_ci", 238),
    (Utf8mb4SpanishCi, "utf8mb4_spanish_ci", 231),
    (Utf8mb4SwedishCi, "utf8mb4_swedish_ci", 232),
    (Utf8mb4TurkishCi, "utf8mb4_turkish_ci", 233),
    (Utf8mb4Unicode520Ci, "utf8mb4_unicode_520_ci", 246),
    (Utf8mb4UnicodeCi, "utf8mb4_unicode_ci", 224),
    (Utf8mb4VietnameseCi, "utf8mb4_vietnamese_ci", 247),
];

impl Collation {
    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = Collation> {
        TABLE.iter().map(|(collation, ..)| *collation)
    }

    fn entry(self) -> (Collation, &'static str, u16) {
        TABLE.iter().copied().find(|(collation, ..)| *collation == self).unwrap_or((Binary, "binary", 63))
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
            Utf8mb3CroatianCi | Utf8mb3CzechCi | Utf8mb3DanishCi | Utf8mb3EsperantoCi | Utf8mb3EstonianCi
            | Utf8mb3German2Ci | Utf8mb3HungarianCi | Utf8mb3IcelandicCi | Utf8mb3LatvianCi
            | Utf8mb3LithuanianCi | Utf8mb3PersianCi | Utf8mb3PolishCi | Utf8mb3RomanCi
            | Utf8mb3RomanianCi | Utf8mb3SinhalaCi | Utf8mb3SlovakCi | Utf8mb3SlovenianCi
            | Utf8mb3SpanishCi | Utf8mb3Spanish2Ci | Utf8mb3SwedishCi | Utf8mb3TurkishCi
            | Utf8mb3VietnameseCi => Charset::Utf8mb3,
            Latin1SwedishCi | Latin1German1Ci | Latin1DanishCi | Latin1SpanishCi | Latin1GeneralCi
            | Latin1GeneralCs | Latin1Bin => Charset::Latin1,
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
        matches!(self, Binary | Utf8mb4Bin | Utf8mb40900Bin | Utf8mb3Bin | AsciiBin | Latin1Bin)
    }

    /// Whether a text equals itself with spaces behind it.
    pub fn pads(self) -> bool {
        match self.comparison() {
            Comparison::Unicode(rule) => rule.pads(),
            comparison => comparison != Comparison::Binary,
        }
    }

    /// The rule of a collation of `latin1`.
    fn latin1(self) -> Option<Latin1Rule> {
        Some(match self {
            Latin1SwedishCi => Latin1Rule::SwedishCi,
            Latin1German1Ci => Latin1Rule::German1Ci,
            Latin1DanishCi => Latin1Rule::DanishCi,
            Latin1SpanishCi => Latin1Rule::SpanishCi,
            Latin1GeneralCi => Latin1Rule::GeneralCi,
            Latin1GeneralCs => Latin1Rule::GeneralCs,
            Latin1Bin => Latin1Rule::Bin,
            _ => return None,
        })
    }

    /// The country or language whose order it is, of those in UTF-8.
    fn national(self) -> Option<National> {
        Some(match self {
            Utf8mb4CroatianCi | Utf8mb3CroatianCi => National::Croatian,
            Utf8mb4CzechCi | Utf8mb3CzechCi => National::Czech,
            Utf8mb4DanishCi | Utf8mb3DanishCi => National::Danish,
            Utf8mb4EsperantoCi | Utf8mb3EsperantoCi => National::Esperanto,
            Utf8mb4EstonianCi | Utf8mb3EstonianCi => National::Estonian,
            Utf8mb4German2Ci | Utf8mb3German2Ci => National::German2,
            Utf8mb4HungarianCi | Utf8mb3HungarianCi => National::Hungarian,
            Utf8mb4IcelandicCi | Utf8mb3IcelandicCi => National::Icelandic,
            Utf8mb4LatvianCi | Utf8mb3LatvianCi => National::Latvian,
            Utf8mb4LithuanianCi | Utf8mb3LithuanianCi => National::Lithuanian,
            Utf8mb4PersianCi | Utf8mb3PersianCi => National::Persian,
            Utf8mb4PolishCi | Utf8mb3PolishCi => National::Polish,
            Utf8mb4RomanCi | Utf8mb3RomanCi => National::Roman,
            Utf8mb4RomanianCi | Utf8mb3RomanianCi => National::Romanian,
            Utf8mb4SinhalaCi | Utf8mb3SinhalaCi => National::Sinhala,
            Utf8mb4SlovakCi | Utf8mb3SlovakCi => National::Slovak,
            Utf8mb4SlovenianCi | Utf8mb3SlovenianCi => National::Slovenian,
            Utf8mb4SpanishCi | Utf8mb3SpanishCi => National::Spanish,
            Utf8mb4Spanish2Ci | Utf8mb3Spanish2Ci => National::Spanish2,
            Utf8mb4SwedishCi | Utf8mb3SwedishCi => National::Swedish,
            Utf8mb4TurkishCi | Utf8mb3TurkishCi => National::Turkish,
            Utf8mb4VietnameseCi | Utf8mb3VietnameseCi => National::Vietnamese,
            _ => return None,
        })
    }

    /// The order of texts in UTF-8.
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
            rule => match (rule.latin1(), rule.national()) {
                (Some(rule), _) => Comparison::Latin1Utf8(rule),
                (None, Some(of)) => Comparison::Unicode(UnicodeRule::National(of)),
                (None, None) => Comparison::Binary,
            },
        }
    }

    /// The order of texts as columns hold them.
    pub fn stored_comparison(self) -> Comparison {
        match self.comparison() {
            Comparison::Latin1Utf8(Latin1Rule::Bin) => Comparison::BytesPadSpace,
            Comparison::Latin1Utf8(rule) => Comparison::Latin1(rule),
            comparison => comparison,
        }
    }

    /// The order of stored values of CHAR: the spaces that fill them up must not count.
    pub fn comparison_of_char(self) -> Comparison {
        match self.stored_comparison() {
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
        assert_eq!(Collation::from_name("utf8_spanish2_ci"), Some(Utf8mb3Spanish2Ci));
        assert!(TABLE.is_sorted_by_key(|(_, name, _)| *name));
        assert_eq!(Collation::from_name("utf8mb4_de_pb_0900_ai_ci"), None);
        for charset in Charset::ALL {
            assert_eq!(charset.default_collation().charset(), charset);
            assert_eq!(Charset::from_name(charset.name()), Some(charset));
        }
    }

    #[test]
    fn each_country_has_two_numbers_that_lie_32_apart() {
        for of in National::ALL {
            let [wide, narrow] = ["utf8mb4", "utf8mb3"].map(|charset| {
                let found = Collation::from_name(&format!("{charset}_{}_ci", of.name()));
                let found = found.unwrap_or(Binary);
                assert_eq!(found.comparison(), Comparison::Unicode(UnicodeRule::National(of)), "{found:?}");
                assert_eq!(found.charset().name(), charset);
                found.id()
            });
            assert_eq!(wide, narrow + 32, "{of:?}");
        }
    }

    #[test]
    fn characters_that_a_set_does_not_have_are_found() {
        assert_eq!(Charset::Ascii.first_foreign("abé".as_bytes()), Some(2));
        assert_eq!(Charset::Utf8mb3.first_foreign("aé表😀".as_bytes()), Some(6));
        assert_eq!(Charset::Latin1.first_foreign("a€é表".as_bytes()), Some(6));
        assert_eq!(Charset::Utf8mb4.first_foreign("aé表😀".as_bytes()), None);
    }
}
