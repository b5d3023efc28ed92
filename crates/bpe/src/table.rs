//! Which page lies in which slot: 20 bytes per slot and 5 bytes per place of a hash table.
//!
//! ```text
//!   page ──hash──▶ shard, place ──▶ tag (6 bits) + slot (26 bits) ──▶ Slot { space, page, LSN and flags, check }
//! ```
//!
//! The hash table is cut into shards, each behind a mutex that is held for a probe and never across I/O.
//! Inside a shard it is open addressing with linear probing, at most 4/5 full; removal moves later places
//! back, so there are no tombstones and a look-up of a page that is not there stays short. The tag saves most
//! of the visits to slots of other pages.
//!
//! How many slots of a region hold pages is counted along, so that cleaning finds the empty ones by a load
//! each.
//!
//! Rules that make the atomics enough:
//! - While a slot is in the hash table its fields change only under the lock of the shard of its page.
//! - A slot that is not in the table is written only by the filler of regions (one at a time, the filler's
//!   lock).
//! - A slot enters the table *pending*: it can be found by those who remove it and by nobody else. It is
//!   *ready* when its region's write has completed.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use page::PageId;
use parking_lot::Mutex;

/// Bits of a place that number the slot.
const SLOT_BITS: u32 = 26;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
/// Most slots a tier may have: 1 TiB of 16 KiB pages. The highest number is not used, so that no place looks
/// empty.
pub(crate) const SLOTS_MAX: u32 = SLOT_MASK - 1;
const EMPTY: u32 = u32::MAX;
/// The space number of a slot that holds nothing.
const NO_SPACE: u32 = u32::MAX;
/// Slots per shard, about.
const SHARD_SLOTS: u32 = 2048;
/// Flags in the top byte of `lsn_high`; an LSN has at most 56 bits.
const READY: u32 = 1 << 24;
const REFERENCED: u32 = 1 << 25;
const LSN_HIGH_MASK: u32 = (1 << 24) - 1;
/// LSNs from here on cannot be entered.
pub(crate) const LSN_LIMIT: u64 = 1 << 56;

/// What a slot holds and what it must look like when it is read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) page: PageId,
    pub(crate) slot: u32,
    pub(crate) lsn: u64,
    /// See [`crate::image::fingerprint`].
    pub(crate) check: u32,
}

/// How an insertion ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    Done,
    /// The page has a slot already.
    Present,
    /// The page's shard has no place left.
    Full,
}

struct Slot {
    space: AtomicU32,
    page: AtomicU32,
    lsn_low: AtomicU32,
    lsn_high: AtomicU32,
    check: AtomicU32,
}

struct Shard {
    places: Box<[u32]>,
    used: usize,
}

/// See the module's essay.
pub(crate) struct Table {
    slots: Box<[Slot]>,
    slots_per_region: u32,
    /// Pages of each region, pending ones too.
    live: Box<[AtomicU32]>,
    /// Pages of all regions.
    len: AtomicUsize,
    shards: Box<[Mutex<Shard>]>,
}

/// Where a page belongs.
#[derive(Clone, Copy)]
struct Home {
    shard: usize,
    place: usize,
    tag: u32,
}

/// Mixes a page's address (the finalizer of SplitMix64).
pub(crate) fn hash(page: PageId) -> u64 {
    let mut z = (u64::from(page.space) << 32 | u64::from(page.page)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Slot {
    fn empty() -> Slot {
        Slot {
            space: AtomicU32::new(NO_SPACE),
            page: AtomicU32::new(0),
            lsn_low: AtomicU32::new(0),
            lsn_high: AtomicU32::new(0),
            check: AtomicU32::new(0),
        }
    }

    fn page(&self) -> Option<PageId> {
        let space = self.space.load(Ordering::Relaxed);
        (space != NO_SPACE).then(|| PageId::new(space, self.page.load(Ordering::Relaxed)))
    }

    fn is_ready(&self) -> bool {
        self.lsn_high.load(Ordering::Relaxed) & READY != 0
    }

    fn is_referenced(&self) -> bool {
        self.lsn_high.load(Ordering::Relaxed) & REFERENCED != 0
    }

    /// Under the lock of the shard.
    fn set_flag(&self, flag: u32, on: bool) {
        let word = self.lsn_high.load(Ordering::Relaxed);
        let changed = if on { word | flag } else { word & !flag };
        if changed != word {
            self.lsn_high.store(changed, Ordering::Relaxed);
        }
    }

    fn fill(&self, entry: &Entry) {
        self.page.store(entry.page.page, Ordering::Relaxed);
        self.lsn_low.store(entry.lsn as u32, Ordering::Relaxed);
        self.lsn_high.store((entry.lsn >> 32) as u32 & LSN_HIGH_MASK, Ordering::Relaxed);
        self.check.store(entry.check, Ordering::Relaxed);
        self.space.store(entry.page.space, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.space.store(NO_SPACE, Ordering::Relaxed);
    }

    fn entry(&self, slot: u32) -> Option<Entry> {
        let high = self.lsn_high.load(Ordering::Relaxed) & LSN_HIGH_MASK;
        Some(Entry {
            page: self.page()?,
            slot,
            lsn: u64::from(high) << 32 | u64::from(self.lsn_low.load(Ordering::Relaxed)),
            check: self.check.load(Ordering::Relaxed),
        })
    }
}

impl Table {
    pub(crate) fn new(slots: u32, slots_per_region: u32) -> Table {
        assert!(slots > 0 && slots <= SLOTS_MAX, "{slots} slots");
        let regions = slots.div_ceil(slots_per_region);
        let shards = (slots / SHARD_SLOTS).max(1).next_power_of_two() as usize;
        let places = places_per_shard(slots);
        let shard = |_| Mutex::new(Shard { places: vec![EMPTY; places].into(), used: 0 });
        Table {
            slots: (0..slots).map(|_| Slot::empty()).collect(),
            slots_per_region,
            live: (0..regions).map(|_| AtomicU32::new(0)).collect(),
            len: AtomicUsize::new(0),
            shards: (0..shards).map(shard).collect(),
        }
    }

    /// Bytes of memory of a table with that many slots.
    pub(crate) fn memory_bytes(slots: u32) -> usize {
        let shards = (slots / SHARD_SLOTS).max(1).next_power_of_two() as usize;
        let per_shard = places_per_shard(slots) * size_of::<u32>() + size_of::<Mutex<Shard>>();
        slots as usize * size_of::<Slot>() + shards * per_shard
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Number of pages in the table, pending ones too.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Number of pages in a region, pending ones too.
    pub(crate) fn live(&self, region: u32) -> u32 {
        self.live[region as usize].load(Ordering::Relaxed)
    }

    fn live_of(&self, slot: u32) -> &AtomicU32 {
        &self.live[(slot / self.slots_per_region) as usize]
    }

    fn home(&self, page: PageId) -> Home {
        let hash = hash(page);
        let shard = (hash >> 48) as usize & (self.shards.len() - 1);
        let places = places_per_shard(self.slots());
        let place = (((hash & 0xFFFF_FFFF) * places as u64) >> 32) as usize;
        // Bits that neither of the two above depends on much.
        Home { shard, place, tag: (hash >> 40) as u32 & 0x3F }
    }

    fn slot(&self, place: u32) -> &Slot {
        &self.slots[(place & SLOT_MASK) as usize]
    }

    /// The index of the page's place, if it has one.
    fn probe(&self, shard: &Shard, home: Home, page: PageId) -> Option<usize> {
        let mut at = home.place;
        loop {
            let place = shard.places[at];
            if place == EMPTY {
                return None;
            }
            if place >> SLOT_BITS == home.tag && self.slot(place).page() == Some(page) {
                return Some(at);
            }
            at = next(at, shard.places.len());
        }
    }

    /// The entry of a page that may be read, which is thereby marked as referenced.
    pub(crate) fn find(&self, page: PageId) -> Option<Entry> {
        let home = self.home(page);
        let shard = self.shards[home.shard].lock();
        let place = shard.places[self.probe(&shard, home, page)?];
        let slot = self.slot(place);
        if !slot.is_ready() {
            return None;
        }
        slot.set_flag(REFERENCED, true);
        slot.entry(place & SLOT_MASK)
    }

    /// Whether the page has a slot, ready or pending.
    pub(crate) fn contains(&self, page: PageId) -> bool {
        let home = self.home(page);
        let shard = self.shards[home.shard].lock();
        self.probe(&shard, home, page).is_some()
    }

    /// Enters a page into its slot, which nobody else uses. Pending, unless `ready`.
    pub(crate) fn insert(&self, entry: &Entry, ready: bool) -> Inserted {
        let home = self.home(entry.page);
        let mut shard = self.shards[home.shard].lock();
        if self.probe(&shard, home, entry.page).is_some() {
            return Inserted::Present;
        }
        // One place stays empty: it ends every probe.
        if shard.used + 1 >= shard.places.len() {
            return Inserted::Full;
        }
        let slot = &self.slots[entry.slot as usize];
        slot.fill(entry);
        slot.set_flag(READY, ready);
        let mut at = home.place;
        while shard.places[at] != EMPTY {
            at = next(at, shard.places.len());
        }
        shard.places[at] = home.tag << SLOT_BITS | entry.slot;
        shard.used += 1;
        self.len.fetch_add(1, Ordering::Relaxed);
        self.live_of(entry.slot).fetch_add(1, Ordering::Relaxed);
        Inserted::Done
    }

    /// Makes a pending slot ready and hands its entry to `tell` under the shard's lock; nothing when the page
    /// was removed meanwhile.
    pub(crate) fn publish(&self, slot: u32, tell: impl FnOnce(&Entry)) {
        self.with_entry(slot, |this, _, at, place| {
            let state = this.slot(place);
            if !state.is_ready() {
                state.set_flag(READY, true);
                if let Some(entry) = state.entry(slot) {
                    tell(&entry);
                }
            }
            debug_assert_eq!(place & SLOT_MASK, slot, "place {at}");
        });
    }

    /// Hands the entry of a ready slot to `tell` under the shard's lock.
    pub(crate) fn visit(&self, slot: u32, tell: impl FnOnce(&Entry)) {
        self.with_entry(slot, |this, _, _, place| {
            let state = this.slot(place);
            if let (true, Some(entry)) = (state.is_ready(), state.entry(slot)) {
                tell(&entry);
            }
        });
    }

    /// Removes a page and tells its slot under the shard's lock. Whether it was there.
    pub(crate) fn remove(&self, page: PageId, tell: impl FnOnce(u32)) -> bool {
        self.remove_when(page, |_| true, |entry| tell(entry.slot))
    }

    /// Removes a page if its entry is as `when` says.
    pub(crate) fn remove_when(
        &self,
        page: PageId,
        when: impl FnOnce(&Entry) -> bool,
        tell: impl FnOnce(&Entry),
    ) -> bool {
        let home = self.home(page);
        let mut shard = self.shards[home.shard].lock();
        let Some(at) = self.probe(&shard, home, page) else { return false };
        let place = shard.places[at];
        let Some(entry) = self.slot(place).entry(place & SLOT_MASK) else { return false };
        if !when(&entry) {
            return false;
        }
        self.take_out(&mut shard, at);
        tell(&entry);
        true
    }

    /// Gives a page another slot, pending, if its entry is still the one given, and calls `tell` under the
    /// shard's lock. Whether it was.
    pub(crate) fn relocate(&self, entry: &Entry, to: u32, tell: impl FnOnce()) -> bool {
        let home = self.home(entry.page);
        let mut shard = self.shards[home.shard].lock();
        let Some(at) = self.probe(&shard, home, entry.page) else { return false };
        let place = shard.places[at];
        if self.slot(place).entry(place & SLOT_MASK) != Some(*entry) {
            return false;
        }
        self.slot(place).clear();
        self.slots[to as usize].fill(&Entry { slot: to, ..*entry });
        shard.places[at] = home.tag << SLOT_BITS | to;
        self.live_of(entry.slot).fetch_sub(1, Ordering::Relaxed);
        self.live_of(to).fetch_add(1, Ordering::Relaxed);
        tell();
        true
    }

    /// Removes whatever the slot holds, and calls `tell` under the shard's lock if it held something.
    pub(crate) fn remove_slot(&self, slot: u32, tell: impl FnOnce()) -> Option<PageId> {
        let page = self.slots[slot as usize].page()?;
        self.remove_when(page, |entry| entry.slot == slot, |_| tell()).then_some(page)
    }

    /// The entry a slot holds, and whether it was hit since this was last taken back.
    pub(crate) fn peek(&self, slot: u32) -> Option<(Entry, bool)> {
        let mut found = None;
        self.with_entry(slot, |this, _, _, place| {
            let state = this.slot(place);
            found = state.entry(slot).map(|entry| (entry, state.is_referenced()));
        });
        found
    }

    /// Takes the mark of a hit back.
    pub(crate) fn forget_reference(&self, slot: u32) {
        self.with_entry(slot, |this, _, _, place| this.slot(place).set_flag(REFERENCED, false));
    }

    /// Runs `act` under the lock of the shard of the page in the slot, if it holds one.
    fn with_entry(&self, slot: u32, act: impl FnOnce(&Table, &mut Shard, usize, u32)) {
        let Some(page) = self.slots[slot as usize].page() else { return };
        let home = self.home(page);
        let mut shard = self.shards[home.shard].lock();
        // The page was read without the lock: it counts only if the table agrees.
        let Some(at) = self.probe(&shard, home, page) else { return };
        let place = shard.places[at];
        if place & SLOT_MASK == slot {
            act(self, &mut shard, at, place);
        }
    }

    /// The entries of one shard, for copying them; `each` runs under its lock. Ready ones only.
    pub(crate) fn each_of_shard(&self, shard: usize, mut each: impl FnMut(&Entry)) {
        let shard = self.shards[shard].lock();
        for place in shard.places.iter().filter(|place| **place != EMPTY) {
            let slot = self.slot(*place);
            if let (true, Some(entry)) = (slot.is_ready(), slot.entry(place & SLOT_MASK)) {
                each(&entry);
            }
        }
    }

    /// Empties a place and moves those back that were pushed on by it (Knuth 6.4, algorithm R).
    fn take_out(&self, shard: &mut Shard, at: usize) {
        self.slot(shard.places[at]).clear();
        self.live_of(shard.places[at] & SLOT_MASK).fetch_sub(1, Ordering::Relaxed);
        self.len.fetch_sub(1, Ordering::Relaxed);
        shard.used -= 1;
        let len = shard.places.len();
        let (mut hole, mut from) = (at, at);
        loop {
            from = next(from, len);
            let place = shard.places[from];
            if place == EMPTY {
                break;
            }
            let Some(page) = self.slot(place).page() else { unreachable!("a place without a page") };
            let home = self.home(page).place;
            // Stays if its home lies behind the hole, seen around the circle.
            let stays = if hole < from { hole < home && home <= from } else { hole < home || home <= from };
            if !stays {
                shard.places[hole] = place;
                hole = from;
            }
        }
        shard.places[hole] = EMPTY;
    }
}

/// A quarter more places than slots, and some for the uneven spread of small shards.
fn places_per_shard(slots: u32) -> usize {
    let shards = (slots / SHARD_SLOTS).max(1).next_power_of_two();
    let share = slots.div_ceil(shards) as usize;
    share + share / 4 + 32
}

const fn next(at: usize, len: usize) -> usize {
    if at + 1 == len { 0 } else { at + 1 }
}
