//! Collations by the Unicode Collation Algorithm: `utf8mb4_0900_*`, `utf8mb4_unicode_ci`,
//! `utf8mb4_unicode_520_ci`, those of single countries, and what they are called in other character sets.
//!
//! A text is a sequence of collation elements, each with up to three weights. Texts are compared by their
//! primary weights first; if these are the same, by the secondary ones (accents) and then the tertiary ones
//! (case), as far as the collation looks. A weight of zero does not count. Version 9.0.0 does not pad: the
//! end is below everything. The older versions pad with spaces.
//!
//! One pass per level, without a buffer. Most keys are told apart by ASCII characters, whose primary weights
//! are in a table of their own; equal bytes at the beginning are skipped. In some collations of a country two
//! letters weigh as one (`ch`): what is skipped never ends within such a contraction.

mod elements;
mod national;

use std::cmp::Ordering;
use std::hash::Hasher;

use elements::{Elements, VERSION_400, VERSION_520, VERSION_900, Version};
pub use national::National;

/// A collation of this family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnicodeRule {
    /// UCA 9.0.0, primary weights, NO PAD: `utf8mb4_0900_ai_ci`.
    AccentInsensitive,
    /// UCA 9.0.0, primary and secondary weights, NO PAD: `utf8mb4_0900_as_ci`.
    CaseInsensitive,
    /// UCA 9.0.0, all weights, NO PAD: `utf8mb4_0900_as_cs`.
    Sensitive,
    /// UCA 5.2.0, primary weights, PAD SPACE: `utf8mb4_unicode_520_ci`.
    Version520,
    /// UCA 4.0.0, primary weights, PAD SPACE: `utf8mb4_unicode_ci`.
    Version400,
    /// The same with other weights for some letters: `utf8mb4_czech_ci`.
    National(National),
}

/// Which of an element's weights.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Primary,
    Secondary,
    Tertiary,
}

impl Level {
    #[inline]
    fn weight(self, element: u32) -> u16 {
        match self {
            Level::Primary => (element >> 14) as u16,
            Level::Secondary => (element >> 5 & 0x1FF) as u16,
            Level::Tertiary => (element & 0x1F) as u16,
        }
    }
}

/// What the key of a character without weights of its own begins with; others begin with how many they have.
const SUPPLEMENTARY: u8 = 0x40;

/// The end of a level in a sort key: below every weight.
const END: [u8; 2] = [0, 0];

impl UnicodeRule {
    #[inline]
    fn version(self) -> &'static Version {
        match self {
            UnicodeRule::Version520 => &VERSION_520,
            UnicodeRule::Version400 => &VERSION_400,
            UnicodeRule::National(of) => of.version(),
            _ => &VERSION_900,
        }
    }

    fn levels(self) -> &'static [Level] {
        match self {
            UnicodeRule::Sensitive => &[Level::Primary, Level::Secondary, Level::Tertiary],
            UnicodeRule::CaseInsensitive => &[Level::Primary, Level::Secondary],
            _ => &[Level::Primary],
        }
    }

    /// How many levels its weights have.
    pub fn level_count(self) -> usize {
        self.levels().len()
    }

    /// Whether the end of a text counts as spaces.
    pub fn pads(self) -> bool {
        matches!(self, UnicodeRule::Version520) || self.is_like_400()
    }

    /// Whether all characters beyond the Basic Multilingual Plane weigh the same.
    fn is_like_400(self) -> bool {
        matches!(self, UnicodeRule::Version400 | UnicodeRule::National(_))
    }

    /// How many bytes the first character of a text has, or the characters that weigh as one there: what
    /// equals something else begins and ends with such a unit.
    pub fn first_unit(self, text: &[u8]) -> usize {
        self.version().first_unit(text)
    }

    /// Whether two texts have the same weights, without spaces behind them that do not count elsewhere.
    pub fn has_weights_of(self, a: &[u8], b: &[u8]) -> bool {
        self.levels().iter().all(|level| self.weights(*level, a).eq(self.weights(*level, b)))
    }

    /// Whether the primary weights of a text are those that another one begins with.
    pub fn begins_like(self, beginning: &[u8], text: &[u8]) -> bool {
        let mut weights = self.weights(Level::Primary, text);
        self.weights(Level::Primary, beginning).all(|weight| weights.next() == Some(weight))
    }

    fn weights(self, level: Level, text: &[u8]) -> impl Iterator<Item = u16> {
        let weights = Elements::new(self.version(), text).map(move |element| level.weight(element));
        weights.filter(|weight| *weight > 0)
    }

    /// Order of two texts.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = without_common_start(self.version(), a, b);
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
        self.compare_primary(a, b).then_with(|| {
            let rest = self.levels()[1..].iter();
            rest.map(|level| self.weights(*level, a).cmp(self.weights(*level, b)))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }

    fn compare_primary(self, a: &[u8], b: &[u8]) -> Ordering {
        let version = self.version();
        let mut same = 0;
        while let (Some(&x), Some(&y)) = (a.get(same), b.get(same)) {
            if (x | y) >= 0x80 {
                break;
            }
            let (x, y) = (version.ascii[usize::from(x)], version.ascii[usize::from(y)]);
            // Two that weigh nothing may begin contractions.
            if x != y || x == 0 {
                if x == 0 || y == 0 {
                    break;
                }
                return x.cmp(&y);
            }
            same += 1;
        }
        let mut left = self.weights(Level::Primary, &a[same..]);
        let mut right = self.weights(Level::Primary, &b[same..]);
        loop {
            match (left.next(), right.next()) {
                (Some(x), Some(y)) if x == y => {}
                (Some(x), Some(y)) => return x.cmp(&y),
                (Some(x), None) => return self.against_end(x, left),
                (None, Some(y)) => return self.against_end(y, right).reverse(),
                (None, None) => return Ordering::Equal,
            }
        }
    }

    /// Order of what one text still has where the other has ended.
    fn against_end(self, first: u16, rest: impl Iterator<Item = u16>) -> Ordering {
        if !self.pads() {
            return Ordering::Greater;
        }
        let space = self.version().space;
        std::iter::once(first)
            .chain(rest)
            .find(|weight| *weight != space)
            .map_or(Ordering::Equal, |weight| weight.cmp(&space))
    }

    /// Feeds to `hasher` what makes a text equal to others.
    pub fn hash(self, text: &[u8], hasher: &mut impl Hasher) {
        let space = if self.pads() { self.version().space } else { 0 };
        for level in self.levels() {
            let mut spaces = 0;
            for weight in self.weights(*level, text) {
                if weight == space {
                    spaces += 1;
                    continue;
                }
                (0..std::mem::take(&mut spaces)).for_each(|_| hasher.write_u16(space));
                hasher.write_u16(weight);
            }
            hasher.write_u16(0);
        }
    }

    /// Appends the weights of a text, as WEIGHT_STRING gives them: all levels, with zeros between them.
    pub fn weight_string(self, text: &[u8], made: &mut Vec<u8>) {
        for (number, level) in self.levels().iter().enumerate() {
            if number > 0 {
                made.extend_from_slice(&END);
            }
            made.extend(self.weights(*level, text).flat_map(u16::to_be_bytes));
        }
    }

    /// Appends bytes whose plain order is that of the texts, ended so that a shorter text comes first.
    pub fn sort_key(self, text: &[u8], key: &mut Vec<u8>) {
        if self.pads() {
            let weights = self.weights(Level::Primary, text);
            super::pad_space_sort_key(weights, self.version().space, |weight| {
                key.extend_from_slice(&weight.to_be_bytes());
            });
            return;
        }
        for level in self.levels() {
            for weight in self.weights(*level, text) {
                key.extend_from_slice(&weight.to_be_bytes());
            }
            key.extend_from_slice(&END);
        }
    }

    /// Most bytes of keys for each byte of a text: U+FDFA has 8 elements.
    pub fn key_ratio(self) -> usize {
        if self.levels().len() == 1 { 9 } else { 17 }
    }

    /// Appends bytes that are the same for characters that LIKE takes for the same: a byte below 0x80, and
    /// then only bytes from 0x80 to 0xBF, so that no character's bytes begin within those of another, and
    /// none's are the beginning of another's.
    pub fn character_key(self, character: char, key: &mut impl Extend<u8>) {
        let code = u32::from(character);
        if self.is_like_400() && code > 0xFFFF {
            // They all weigh the same, but LIKE tells them apart.
            key.extend([SUPPLEMENTARY, 0x80 | (code >> 18) as u8]);
            key.extend([code >> 12, code >> 6, code].map(|six| 0x80 | (six & 0x3F) as u8));
            return;
        }
        let mut utf8 = [0; 4];
        let text = character.encode_utf8(&mut utf8).as_bytes();
        let count = |level: Level| self.weights(level, text).count();
        let (primaries, others) = (count(Level::Primary), self.levels()[1..].iter().map(|l| count(*l)));
        key.extend([primaries as u8]);
        let others = others.map(|count| 0x80 | count as u8).collect::<smallvec::SmallVec<[u8; 2]>>();
        key.extend(others);
        for level in self.levels() {
            for weight in self.weights(*level, text) {
                let sixes = [weight >> 12, weight >> 6 & 0x3F, weight & 0x3F].map(|six| 0x80 | six as u8);
                let skipped = match level {
                    Level::Primary => 0,
                    Level::Secondary => 1,
                    Level::Tertiary => 2,
                };
                key.extend(sixes[skipped..].iter().copied());
            }
        }
    }
}

/// Both texts without the characters that are the same at their beginning, except those that may begin a
/// contraction with what follows.
fn without_common_start<'t>(version: &Version, a: &'t [u8], b: &'t [u8]) -> (&'t [u8], &'t [u8]) {
    let mut same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    if same == a.len() && same == b.len() {
        return (&[], &[]);
    }
    // Characters begin at every byte that continues none.
    let begins = |text: &[u8], at: usize| text.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
    while same > 0 && !(begins(a, same) && begins(b, same)) {
        same -= 1;
    }
    while same > 0 && version.contracts(a[same - 1]) {
        same -= 1;
    }
    (&a[same..], &b[same..])
}

#[cfg(test)]
mod national_tests;
#[cfg(test)]
mod tests;
