//! Maps and sets by page or tablespace for recovery, which looks one up for every record of the log.
//!
//! The standard hasher withstands keys that an attacker chooses; these come from our own log, and one
//! multiplication each is enough to spread them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use page::PageId;

/// A map by page.
pub(crate) type PageMap<V> = HashMap<PageId, V, BuildHasherDefault<NumberHasher>>;
/// A set of tablespaces.
pub(crate) type SpaceSet = HashSet<u32, BuildHasherDefault<NumberHasher>>;

/// Hashes a few numbers.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        // An odd constant with its bits well mixed (the golden ratio).
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        // The map takes its seven bits from the top and the place from the bottom.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    #[test]
    fn neighbouring_pages_spread_over_places_and_tags() {
        let build = BuildHasherDefault::<NumberHasher>::default();
        let hashes: Vec<u64> = (0..4)
            .flat_map(|space| (0..1024).map(move |page| PageId::new(space, page)))
            .map(|page| build.hash_one(page))
            .collect();
        let distinct =
            |of: &dyn Fn(u64) -> u64| hashes.iter().map(|hash| of(*hash)).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(&|hash| hash), hashes.len());
        // 4096 pages on 4096 places: at random 63 % of them are taken.
        assert!(distinct(&|hash| hash & 4095) > 2200, "{}", distinct(&|hash| hash & 4095));
        assert_eq!(distinct(&|hash| hash >> 57), 128);
    }
}
