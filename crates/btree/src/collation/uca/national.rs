//! Collations of single countries, of MySQL's older family: `utf8mb4_czech_ci` and its like.
//!
//! Each is UCA 4.0.0 in which some characters weigh something else, and in some two letters weigh as one
//! (contractions). `weights_national.txt` says which, made by `cargo xtask collation-weights` from what a
//! MySQL server answers: a line has the collation, one or two code points, and their primary weights, all in
//! hexadecimal. The table of a collation is that of 4.0.0 with these changes (`elements.rs`), made when the
//! collation is first used, and kept: some 80 KiB.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::elements::{BLOCKS, CONTRACTIONS, EXPANSION, PAGE_WORDS, VERSION_400, Version};

/// A country's order, or a language's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "their names say all there is to say")]
pub enum National {
    Croatian,
    Czech,
    Danish,
    Esperanto,
    Estonian,
    German2,
    Hungarian,
    Icelandic,
    Latvian,
    Lithuanian,
    Persian,
    Polish,
    Roman,
    Romanian,
    Sinhala,
    Slovak,
    Slovenian,
    Spanish,
    Spanish2,
    Swedish,
    Turkish,
    Vietnamese,
}

use National::*;

static VERSIONS: [OnceLock<Version>; National::ALL.len()] = [const { OnceLock::new() }; National::ALL.len()];

/// Primary weights as elements.
const PRIMARY: u32 = 14;
/// A word has four bits for how many there are.
const COUNT_MAX: usize = 0xF;
const WORD: usize = size_of::<u32>();

impl National {
    /// All of them, by name.
    pub const ALL: [National; 22] = [
        Croatian, Czech, Danish, Esperanto, Estonian, German2, Hungarian, Icelandic, Latvian, Lithuanian,
        Persian, Polish, Roman, Romanian, Sinhala, Slovak, Slovenian, Spanish, Spanish2, Swedish, Turkish,
        Vietnamese,
    ];

    /// What stands for it in the name of a collation.
    pub fn name(self) -> &'static str {
        match self {
            Croatian => "croatian",
            Czech => "czech",
            Danish => "danish",
            Esperanto => "esperanto",
            Estonian => "estonian",
            German2 => "german2",
            Hungarian => "hungarian",
            Icelandic => "icelandic",
            Latvian => "latvian",
            Lithuanian => "lithuanian",
            Persian => "persian",
            Polish => "polish",
            Roman => "roman",
            Romanian => "romanian",
            Sinhala => "sinhala",
            Slovak => "slovak",
            Slovenian => "slovenian",
            Spanish => "spanish",
            Spanish2 => "spanish2",
            Swedish => "swedish",
            Turkish => "turkish",
            Vietnamese => "vietnamese",
        }
    }

    #[inline]
    pub(super) fn version(self) -> &'static Version {
        VERSIONS[self as usize].get_or_init(|| Version::like_400(table(self.name()).leak()))
    }
}

/// What a collation weighs otherwise than 4.0.0.
pub(super) struct Tailoring {
    pub(super) characters: Vec<u32>,
    pub(super) weights: Vec<u32>,
}

/// The lines of a collation; one that cannot be read is none.
pub(super) fn tailorings(name: &str) -> impl Iterator<Item = Tailoring> {
    let lines = include_str!("weights_national.txt").lines();
    lines.filter_map(move |line| {
        let mut fields = line.split('\t');
        let hexadecimal = |text: &str| u32::from_str_radix(text, 16).ok();
        (fields.next() == Some(name)).then_some(())?;
        let characters = fields.next()?.split(' ').map(hexadecimal).collect::<Option<_>>()?;
        let weights = fields.next()?.split(' ').map(hexadecimal).collect::<Option<_>>()?;
        Some(Tailoring { characters, weights })
    })
}

fn table(name: &str) -> Vec<u8> {
    let mut table = VERSION_400.table.to_vec();
    let mut contractions: BTreeMap<u32, Vec<[u32; 2]>> = BTreeMap::new();
    for Tailoring { characters, weights } in tailorings(name) {
        match (&characters[..], &weights[..]) {
            ([code], [weight]) => put(&mut table, *code, weight << PRIMARY),
            ([code], several) if several.len() <= COUNT_MAX => {
                let elements = several.iter().map(|weight| weight << PRIMARY);
                let cell = EXPANSION | appended(&mut table, elements) | several.len() as u32;
                put(&mut table, *code, cell);
            }
            ([first, second], [weight]) => {
                contractions.entry(*first).or_default().push([*second, weight << PRIMARY]);
            }
            _ => {}
        }
    }
    for (first, with) in contractions {
        let alone = place(&table, first).and_then(|place| table[place..].first_chunk::<WORD>());
        let Some(alone) = alone.filter(|_| with.len() <= COUNT_MAX) else { continue };
        let words = std::iter::once(u32::from_le_bytes(*alone)).chain(with.iter().copied().flatten());
        let cell = EXPANSION | CONTRACTIONS | appended(&mut table, words) | with.len() as u32;
        put(&mut table, first, cell);
    }
    table
}

/// Appends words, and gives the number of the first as it stands in a cell.
fn appended(table: &mut Vec<u8>, words: impl Iterator<Item = u32>) -> u32 {
    let number = (table.len() - BLOCKS) / WORD;
    table.extend(words.flat_map(u32::to_le_bytes));
    (number as u32) << 4
}

/// Where the cell of a code point is that has a page.
fn place(table: &[u8], code: u32) -> Option<usize> {
    let page = usize::from(*table.get((code >> 8) as usize)?).checked_sub(1)?;
    let place = BLOCKS + WORD * (page * PAGE_WORDS + (code & 0xFF) as usize);
    (place + WORD <= table.len()).then_some(place)
}

fn put(table: &mut [u8], code: u32, cell: u32) {
    if let Some(place) = place(table, code) {
        table[place..place + WORD].copy_from_slice(&cell.to_le_bytes());
    }
}
