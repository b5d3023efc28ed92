//! What the hit ratio would be with half and with twice the slots: three small simulations of the tier, of
//! half, the same and twice the size, over a sample of the pages chosen by hash (at least one in 64 and then
//! about 4096 pages per tier, as in SHARDS, Waldspurger et al., FAST '15). Each is a CLOCK: FIFO with a
//! second chance, like the tier.
//!
//! The one of the same size is there to be compared with the tier itself: the closer the two, the more the
//! others can be believed.

use std::collections::HashMap;

use page::PageId;

use crate::table::hash;

/// One page in this many is in the sample, at least 2^this.
const SHIFT_MIN: u32 = 6;
/// Pages sampled of a large tier, about.
const SAMPLE: u32 = 4096;
/// Bytes a page in a simulation takes: ring, map with its spare room.
const BYTES_PER_GHOST: usize = 16 + 36;
/// Look-ups after which old ones count half.
const HALVE_AT: u64 = 1 << 20;

/// One simulated tier.
struct Clock {
    capacity: usize,
    ring: Vec<(u64, bool)>,
    places: HashMap<u64, u32>,
    hand: usize,
    hits: u64,
}

impl Clock {
    fn new(capacity: usize) -> Clock {
        let capacity = capacity.max(1);
        Clock {
            capacity,
            ring: Vec::with_capacity(capacity),
            places: HashMap::with_capacity(capacity),
            hand: 0,
            hits: 0,
        }
    }

    fn look_up(&mut self, key: u64) {
        if let Some(place) = self.places.get(&key) {
            self.ring[*place as usize].1 = true;
            self.hits += 1;
        }
    }

    fn insert(&mut self, key: u64) {
        if self.places.contains_key(&key) {
            return;
        }
        if self.ring.len() < self.capacity {
            self.places.insert(key, self.ring.len() as u32);
            self.ring.push((key, false));
            return;
        }
        while self.ring[self.hand].1 {
            self.ring[self.hand].1 = false;
            self.hand = (self.hand + 1) % self.capacity;
        }
        let (old, _) = self.ring[self.hand];
        // The place of a removed page may still carry its key, and the page may have a newer place.
        if self.places.get(&old).is_some_and(|place| *place as usize == self.hand) {
            self.places.remove(&old);
        }
        self.ring[self.hand] = (key, false);
        self.places.insert(key, self.hand as u32);
        self.hand = (self.hand + 1) % self.capacity;
    }

    fn remove(&mut self, key: u64) {
        if let Some(place) = self.places.remove(&key) {
            self.ring[place as usize].1 = false;
        }
    }
}

/// Estimated hit ratios, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimate {
    /// Look-ups the estimate rests on.
    pub samples: u64,
    /// With half the size.
    pub half: f64,
    /// With the size it has.
    pub same: f64,
    /// With twice the size.
    pub twice: f64,
}

/// The three simulations.
pub(crate) struct Ghosts {
    shift: u32,
    half: Clock,
    same: Clock,
    twice: Clock,
    look_ups: u64,
}

/// Whether a page is in a sample of one in 2^`shift`.
pub(crate) fn is_sampled(page: PageId, shift: u32) -> bool {
    // Not the bits that choose shard or place.
    hash(page).rotate_left(13) & ((1 << shift) - 1) == 0
}

/// The sample for a tier of that many slots.
pub(crate) fn shift_for(slots: u32) -> u32 {
    (slots / SAMPLE).max(1).ilog2().max(SHIFT_MIN)
}

impl Ghosts {
    pub(crate) fn new(slots: u32) -> Ghosts {
        Ghosts::with_shift(slots, shift_for(slots))
    }

    fn with_shift(slots: u32, shift: u32) -> Ghosts {
        let sampled = (slots >> shift) as usize;
        Ghosts {
            shift,
            half: Clock::new(sampled / 2),
            same: Clock::new(sampled),
            twice: Clock::new(sampled * 2),
            look_ups: 0,
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(slots: u32) -> usize {
        ((slots as usize * 7 / 2) >> shift_for(slots)).max(4) * BYTES_PER_GHOST
    }

    fn each(&mut self) -> [&mut Clock; 3] {
        [&mut self.half, &mut self.same, &mut self.twice]
    }

    /// The pool looked for a sampled page.
    pub(crate) fn looked_up(&mut self, page: PageId) {
        debug_assert!(is_sampled(page, self.shift));
        self.look_ups += 1;
        self.each().into_iter().for_each(|clock| clock.look_up(hash(page)));
        if self.look_ups >= HALVE_AT {
            self.look_ups /= 2;
            self.each().into_iter().for_each(|clock| clock.hits /= 2);
        }
    }

    /// A sampled page would be admitted.
    pub(crate) fn admitted(&mut self, page: PageId) {
        self.each().into_iter().for_each(|clock| clock.insert(hash(page)));
    }

    /// A sampled page was changed.
    pub(crate) fn invalidated(&mut self, page: PageId) {
        self.each().into_iter().for_each(|clock| clock.remove(hash(page)));
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let ratio = |clock: &Clock| clock.hits as f64 / self.look_ups.max(1) as f64;
        Estimate {
            samples: self.look_ups,
            half: ratio(&self.half),
            same: ratio(&self.same),
            twice: ratio(&self.twice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::Random;

    /// A page drawn uniformly from `pages` is in a cache of c pages with probability c / pages, whatever the
    /// policy.
    #[test]
    fn estimates_what_uniform_access_must_give() {
        let (slots, pages) = (8192, 32768);
        let mut ghosts = Ghosts::with_shift(slots, 2);
        let mut random = Random::new(7);
        for round in 0..2_000_000 {
            let page = PageId::new(3, random.below(pages) as u32);
            if round == 1_000_000 {
                // Count from a full cache on.
                ghosts.look_ups = 0;
                ghosts.each().into_iter().for_each(|clock| clock.hits = 0);
            }
            if is_sampled(page, 2) {
                ghosts.looked_up(page);
                ghosts.admitted(page);
            }
        }
        let Estimate { half, same, twice, .. } = ghosts.estimate();
        for (found, expected) in [(half, 0.125), (same, 0.25), (twice, 0.5)] {
            assert!((found - expected).abs() < 0.02, "{found} instead of {expected}");
        }
    }

    #[test]
    fn a_changed_page_is_in_none_of_them() {
        let mut ghosts = Ghosts::with_shift(64, 0);
        let page = PageId::new(1, 2);
        ghosts.admitted(page);
        ghosts.looked_up(page);
        assert_eq!(ghosts.estimate().half, 1.0);
        ghosts.invalidated(page);
        ghosts.looked_up(page);
        assert_eq!(ghosts.estimate().twice, 0.5);
        for other in 0..1000 {
            ghosts.admitted(PageId::new(2, other));
        }
        ghosts.admitted(page);
        ghosts.looked_up(page);
        assert!(ghosts.estimate().twice > 0.6);
        for clock in ghosts.each() {
            assert!(clock.places.len() <= clock.capacity && clock.ring.len() <= clock.capacity);
        }
    }
}
