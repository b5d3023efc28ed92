//! Collation elements of characters, as the servers assign them.
//!
//! Each version of the Unicode Collation Algorithm has a table, made by `cargo xtask collation-weights`:
//! 0x1100 bytes, one for each block of 256 code points, that number its page (0: none); then words in little
//! endian, first the pages' 256 each, then the expansions. A word of a page is one of
//!
//! - an element: primary weight `<< 14`, secondary `<< 5`, tertiary;
//! - with the highest bit set, an expansion: the number of its first word `<< 4`, and how many it has;
//! - only the highest bit: no entry. What has neither page nor entry has weights that follow from its number;
//! - with the two highest bits set, a character that begins contractions: the number of a first word `<< 4`,
//!   and how many there are. The first word is its element where it stands alone; two follow for each
//!   contraction, the other character and the element of both.
//!
//! Block 0 has the first page, so ASCII is found without looking at the index. In the committed tables no
//! character depends on its neighbours: the servers' root collations have no contractions. Those of a
//! country have, of two characters each, and they begin with a letter of ASCII: their tables are made of the
//! one of 4.0.0 (`national.rs`).
//!
//! Bytes that are not UTF-8 are elements above all others, one each.

use super::super::first_code_point;

pub(super) const BLOCKS: usize = 0x1100;
pub(super) const PAGE_WORDS: usize = 256;
pub(super) const EXPANSION: u32 = 1 << 31;
/// With [`EXPANSION`]: begins contractions.
pub(super) const CONTRACTIONS: u32 = 1 << 30;
/// Secondary and tertiary weight where nothing else is said.
const COMMON: u32 = 0x20 << 5 | 2;
/// Of bytes that are not UTF-8.
const MALFORMED: u32 = 0xFFFF << 14 | COMMON;

/// A version of the algorithm.
pub(super) struct Version {
    pub(super) table: &'static [u8],
    /// Primary weights of ASCII; 0 for ignorable characters and those that begin contractions. None is an
    /// expansion.
    pub(super) ascii: [u16; 128],
    /// The characters of ASCII that begin contractions, a bit each.
    contracting: u128,
    /// The primary weight of a space.
    pub(super) space: u16,
    unlisted: fn(&Version, u32) -> Pending,
}

pub(super) static VERSION_900: Version =
    Version::new(include_bytes!("weights_900.bin"), |version, code| match code {
        HANGUL_FIRST..=HANGUL_LAST => hangul(version, code),
        0x1_7000..=0x1_8AFF => implied(0xFB00, code - 0x1_7000),
        _ => implied(han_900(code), code),
    });
pub(super) static VERSION_520: Version =
    Version::new(include_bytes!("weights_520.bin"), |_, code| implied(han_older(code), code));
pub(super) static VERSION_400: Version = Version::new(include_bytes!("weights_400.bin"), unlisted_400);

fn unlisted_400(_: &Version, code: u32) -> Pending {
    if code > 0xFFFF { Pending::one(0xFFFD << 14) } else { implied(han_older(code), code) }
}

/// Elements that are still to come, in reverse order.
#[derive(Clone, Copy)]
struct Pending {
    elements: [u32; 3],
    len: u8,
}

impl Pending {
    const NONE: Pending = Pending { elements: [0; 3], len: 0 };

    fn one(element: u32) -> Pending {
        Pending { elements: [element, 0, 0], len: 1 }
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        Some(self.elements[usize::from(self.len)])
    }
}

/// Two elements made of the code point: one of its group, and one that tells it from others.
fn implied(group: u32, code: u32) -> Pending {
    Pending { elements: [(code & 0x7FFF | 0x8000) << 14, (group + (code >> 15)) << 14 | COMMON, 0], len: 2 }
}

fn han_900(code: u32) -> u32 {
    match code {
        0x4E00..=0x9FD5 => 0xFB40,
        0xFA0E | 0xFA0F | 0xFA11 | 0xFA13 | 0xFA14 | 0xFA1F | 0xFA21 | 0xFA23 | 0xFA24 | 0xFA27..=0xFA29 => {
            0xFB40
        }
        0x3400..=0x4DB5 | 0x2_0000..=0x2_A6D6 | 0x2_A700..=0x2_B734 => 0xFB80,
        0x2_B740..=0x2_B81D | 0x2_B820..=0x2_CEA1 => 0xFB80,
        _ => 0xFBC0,
    }
}

/// The older versions as the servers have them: their tables are of the Basic Multilingual Plane in this.
fn han_older(code: u32) -> u32 {
    match code {
        0x4E00..=0x9FA5 => 0xFB40,
        0x3400..=0x4DB5 => 0xFB80,
        _ => 0xFBC0,
    }
}

const HANGUL_FIRST: u32 = 0xAC00;
/// The servers go on to the end of the last block, which has no syllables there.
const HANGUL_LAST: u32 = 0xD7AF;
/// From here on they have another tertiary weight.
const HANGUL_LAST_BLOCK: u32 = 0xD700;

/// A syllable is its two or three jamo.
fn hangul(version: &Version, code: u32) -> Pending {
    let number = code - HANGUL_FIRST;
    let jamo = [0x1100 + number / 588, 0x1161 + number % 588 / 28, 0x11A7 + number % 28];
    let more = u32::from(code >= HANGUL_LAST_BLOCK);
    let [lead, vowel, tail] = jamo.map(|jamo| version.cell(jamo) + more);
    match number % 28 {
        0 => Pending { elements: [vowel, lead, 0], len: 2 },
        _ => Pending { elements: [tail, vowel, lead], len: 3 },
    }
}

impl Version {
    const fn new(table: &'static [u8], unlisted: fn(&Version, u32) -> Pending) -> Version {
        let (mut ascii, mut contracting) = ([0; 128], 0);
        let mut code = 0;
        while code < 128 {
            let at = BLOCKS + 4 * code;
            let word = u32::from_le_bytes([table[at], table[at + 1], table[at + 2], table[at + 3]]);
            if word & EXPANSION == 0 {
                ascii[code] = (word >> 14) as u16;
            } else {
                contracting |= 1 << code;
            }
            code += 1;
        }
        let space = ascii[b' ' as usize];
        Version { table, ascii, contracting, space, unlisted }
    }

    /// Version 4.0.0 with another table, which begins with the pages of its own.
    pub(super) fn like_400(table: &'static [u8]) -> Version {
        Version::new(table, unlisted_400)
    }

    /// Whether a character that ends with this byte may weigh something else with the next one.
    #[inline]
    pub(super) fn contracts(&self, last: u8) -> bool {
        self.contracting != 0 && last < 0x80 && self.contracting >> last & 1 != 0
    }

    /// How many bytes the first character of a text has, or the contraction that it begins.
    pub(super) fn first_unit(&self, text: &[u8]) -> usize {
        let mut elements = Elements::new(self, text);
        elements.next();
        text.len() - elements.rest.len()
    }

    /// The word of a code point.
    #[inline]
    pub(super) fn cell(&self, code: u32) -> u32 {
        match self.table.get((code >> 8) as usize) {
            None | Some(0) => EXPANSION,
            Some(page) => self.word((usize::from(*page) - 1) * PAGE_WORDS + (code & 0xFF) as usize),
        }
    }

    #[inline]
    pub(super) fn word(&self, number: usize) -> u32 {
        let at = BLOCKS + 4 * number;
        match self.table.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(word) => u32::from_le_bytes(*word),
            None => EXPANSION,
        }
    }
}

/// The elements of a text, one after the other.
pub(super) struct Elements<'v, 't> {
    version: &'v Version,
    rest: &'t [u8],
    /// Numbers of the words of an expansion that are still to come.
    expansion: std::ops::Range<usize>,
    pending: Pending,
}

impl<'v, 't> Elements<'v, 't> {
    pub(super) fn new(version: &'v Version, text: &'t [u8]) -> Elements<'v, 't> {
        Elements { version, rest: text, expansion: 0..0, pending: Pending::NONE }
    }

    /// The element of a character that begins contractions, or of one of them; `self.rest` is behind it.
    #[inline(never)]
    fn contracted(&mut self, cell: u32) -> u32 {
        let alone = ((cell & !(EXPANSION | CONTRACTIONS)) >> 4) as usize;
        if let Some((code, len)) = first_code_point(self.rest) {
            let mut places = (0..cell as usize & 0xF).map(|number| alone + 1 + 2 * number);
            if let Some(place) = places.find(|place| self.version.word(*place) == code) {
                self.rest = &self.rest[len..];
                return self.version.word(place + 1);
            }
        }
        self.version.word(alone)
    }
}

impl Iterator for Elements<'_, '_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if let Some(number) = self.expansion.next() {
            return Some(self.version.word(number));
        }
        if let Some(element) = self.pending.pop() {
            return Some(element);
        }
        let first = *self.rest.first()?;
        if first < 0x80 {
            self.rest = &self.rest[1..];
            let word = self.version.word(usize::from(first));
            return Some(if word & EXPANSION == 0 { word } else { self.contracted(word) });
        }
        let Some((code, len)) = first_code_point(self.rest) else {
            self.rest = &self.rest[1..];
            return Some(MALFORMED);
        };
        self.rest = &self.rest[len..];
        let cell = self.version.cell(code);
        if cell & EXPANSION == 0 {
            return Some(cell);
        }
        if cell == EXPANSION {
            self.pending = (self.version.unlisted)(self.version, code);
            return self.pending.pop();
        }
        let from = ((cell & !EXPANSION) >> 4) as usize;
        self.expansion = from..from + (cell & 0xF) as usize;
        self.expansion.next().map(|number| self.version.word(number))
    }
}
