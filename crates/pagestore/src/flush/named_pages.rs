//! How many pages a recovery would find in the log.
//!
//! It reads each page that the log names since the checkpoint, also those that have been written since: these
//! are not dirty any more, but their last change lies behind the checkpoint. So two things are counted, by
//! where in the log they are:
//!
//! * pages that were written, where their last change ended. One that becomes dirty again is not counted any
//!   more: it is one of the dirty ones. The dirty pages and these, from the checkpoint on, are the pages that
//!   the log names, each counted once.
//! * how often a page became dirty. Where the log names more pages than recovery can hold at a time, it
//!   applies the log in parts, and a page of several parts is read for each. A page that was written and
//!   changed again while the log grew is likely to be one of these.
//!
//! A ring of counters by ranges of the log, each for a 512th to a 1024th of its capacity. Ranges that are no
//! part of the log any more are forgotten.

const SLOTS: u64 = 1024;
/// The capacity spans at least this many of them, and never more than all.
const SPAN: u64 = 512;

#[derive(Clone, Copy, Default)]
struct Slot {
    became_dirty: u32,
    written: u32,
}

/// The counters. Under the flush list's mutex.
pub(crate) struct NamedPages {
    capacity: u64,
    shift: u32,
    newest: u64,
    slots: Box<[Slot]>,
}

/// What the log names from some point on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Pages that are not dirty.
    pub(crate) written: u64,
    /// How often a page became dirty.
    pub(crate) became_dirty: u64,
}

impl NamedPages {
    /// For a log of this capacity.
    pub(crate) fn new(capacity: u64) -> NamedPages {
        let shift = (capacity / SPAN).max(1).ilog2();
        NamedPages { capacity, shift, newest: 0, slots: vec![Slot::default(); SLOTS as usize].into() }
    }

    /// The same for a log of another capacity.
    pub(crate) fn fit(&mut self, capacity: u64) {
        if capacity == self.capacity {
            return;
        }
        let former = std::mem::replace(self, NamedPages::new(capacity));
        for slot in (former.newest + 1).saturating_sub(SLOTS)..=former.newest {
            let Slot { became_dirty, written } = former.slots[(slot % SLOTS) as usize];
            // In smaller slots all of a former one are where it ends: rather one too many.
            if let Some(place) = self.place(((slot + 1) << former.shift) - 1) {
                place.became_dirty += became_dirty;
                place.written += written;
            }
        }
    }

    /// The counters for this place in the log, unless it is behind the ring.
    fn place(&mut self, lsn: u64) -> Option<&mut Slot> {
        let slot = lsn >> self.shift;
        if slot > self.newest {
            let first = (self.newest + 1).max((slot + 1).saturating_sub(SLOTS));
            (first..=slot).for_each(|new| self.slots[(new % SLOTS) as usize] = Slot::default());
            self.newest = slot;
        }
        (slot + SLOTS > self.newest).then(|| &mut self.slots[(slot % SLOTS) as usize])
    }

    /// A page became dirty by a mini-transaction that begins at `start`; its last change before ended at
    /// `changed` (0: never).
    pub(crate) fn enter(&mut self, start: u64, changed: u64) {
        if let Some(place) = self.place(start) {
            place.became_dirty += 1;
        }
        // Recovery enters pages with their last change.
        if changed <= start {
            self.change(changed);
        }
    }

    /// A page is changed again whose last change before ended there (0: never).
    pub(crate) fn change(&mut self, changed: u64) {
        if changed > 0
            && let Some(place) = self.place(changed)
        {
            // It was not counted if nobody has changed it since the start.
            place.written = place.written.saturating_sub(1);
        }
    }

    /// A page whose last change ended at `changed` is being written.
    pub(crate) fn write(&mut self, changed: u64) {
        if let Some(place) = self.place(changed) {
            place.written += 1;
        }
    }

    /// What the log names from this checkpoint on.
    pub(crate) fn since(&self, checkpoint: u64) -> Named {
        let first = (checkpoint >> self.shift).max((self.newest + 1).saturating_sub(SLOTS));
        (first..=self.newest).fold(Named::default(), |sum, slot| {
            let Slot { became_dirty, written } = self.slots[(slot % SLOTS) as usize];
            Named {
                written: sum.written + u64::from(written),
                became_dirty: sum.became_dirty + u64::from(became_dirty),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_page_counts_from_its_last_change_on() {
        let mut named = NamedPages::new(64 * MIB);
        // Dirty at 1 MiB, changed last at 30, written; the checkpoint has moved to 20.
        named.enter(MIB, 0);
        named.write(30 * MIB);
        assert_eq!(named.since(20 * MIB), Named { written: 1, became_dirty: 0 });
        assert_eq!(named.since(31 * MIB), Named::default());
        // Dirty again: it is one of the dirty pages now.
        named.enter(40 * MIB, 30 * MIB);
        assert_eq!(named.since(20 * MIB), Named { written: 0, became_dirty: 1 });
        // One that came from its file and was never counted.
        named.enter(41 * MIB, 25 * MIB);
        named.enter(41 * MIB, 0);
        assert_eq!(named.since(20 * MIB), Named { written: 0, became_dirty: 3 });
    }

    #[test]
    fn the_ring_goes_round_and_forgets_what_the_log_forgot() {
        let mut named = NamedPages::new(64 * MIB);
        for lap in 0..40 {
            let start = lap * 50 * MIB + 1;
            named.enter(start, 0);
            named.write(start + MIB);
            assert_eq!(named.since(start), Named { written: 1, became_dirty: 1 }, "lap {lap}");
        }
        named.enter(1 << 40, 1);
        assert_eq!(named.since(0), Named { written: 0, became_dirty: 1 });
        named.write(5);
        assert_eq!(named.since(0).written, 0, "behind the ring");
    }

    #[test]
    fn a_log_of_another_capacity_names_the_same_pages() {
        let mut named = NamedPages::new(64 * MIB);
        (1..60).for_each(|at| named.enter(at * MIB, 0));
        for capacity in [256 * MIB, 64 * MIB, 40 * MIB] {
            named.fit(capacity);
            let half = named.since(30 * MIB).became_dirty;
            assert!((29..=31).contains(&half), "{capacity}: {half}");
        }
    }
}
