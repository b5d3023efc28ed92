//! How many dirty pages there are of each age.
//!
//! The age of a dirty page is the distance from its first change that is not in its file to the end of the
//! log. To keep the log short enough, each page has to be written before its age reaches a goal: its
//! *deadline*. What has to be written now follows from all deadlines, not from the nearest alone. When a load
//! begins, it makes most of its pages dirty within seconds. They reach the goal together, long after, and a
//! cleaner that begins to write them only then has to write all of them at once. These are the waves of
//! InnoDB's checkpoints, and they come again with each lap of the log, because what was written together
//! becomes dirty together.
//!
//! ```text
//!   dirty pages,     |                                  *  all of them
//!   oldest first     |                          *
//!   (added up)       |      *  a clump    *         the steepest line from the origin to any of these points
//!                    |     /       *                is the least rate that keeps every deadline
//!                    |   /  *
//!                    +------------------------------------ bytes of log until their deadline
//! ```
//!
//! How *hot* the pages are that become dirty is counted as well: the share of those whose last change before
//! was not long ago. Written early they only become dirty once more.
//!
//! The list of dirty pages is long, so they are counted by ranges of the log: a ring of [`SLOTS`] counters,
//! each for a 64th to a 128th of the log's capacity.

/// Counters. Twice what the capacity spans at most.
const SLOTS: u64 = 256;
/// The capacity spans at least this many of them.
const SPAN: u64 = 64;
/// Deadlines nearer than this part of the goal count as this near: single slots are coarse.
const NEAREST: u64 = 16;
/// A page is hot when it was last changed within this part of the capacity.
const HOT_WITHIN: u64 = 16;
/// Pages are hot when more than this part of them is.
const HOT: f64 = 0.25;
/// Pages over which the share of hot ones is averaged.
const HOT_MEMORY: f64 = 256.0;

/// The counters. Under the flush list's mutex.
pub(crate) struct AgeHistogram {
    capacity: u64,
    /// A slot spans 2 to the power of this bytes of log.
    shift: u32,
    counts: [u32; SLOTS as usize],
    hot_within: u64,
    /// Share of hot pages among those that became dirty last, 0 to 1.
    hot: f64,
}

impl AgeHistogram {
    /// For a log of this capacity.
    pub(crate) fn new(capacity: u64) -> AgeHistogram {
        AgeHistogram {
            capacity,
            shift: (capacity / SPAN).max(1).ilog2(),
            counts: [0; SLOTS as usize],
            hot_within: capacity / HOT_WITHIN,
            hot: 0.0,
        }
    }

    /// The capacity of the log that the slots were made for.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The same pages, which began at these LSNs, in slots for a log of another capacity.
    pub(crate) fn fit(&mut self, capacity: u64, starts: impl Iterator<Item = u64>) {
        *self = AgeHistogram { hot: self.hot, ..AgeHistogram::new(capacity) };
        starts.for_each(|start| *self.count(start) += 1);
    }

    fn count(&mut self, start: u64) -> &mut u32 {
        &mut self.counts[((start >> self.shift) % SLOTS) as usize]
    }

    /// A page became dirty by a mini-transaction that begins at `start`; its last change before ended at
    /// `changed` (0: never).
    pub(crate) fn enter(&mut self, start: u64, changed: u64) {
        *self.count(start) += 1;
        let hot = changed > 0 && start.saturating_sub(changed) < self.hot_within;
        self.hot += (f64::from(u8::from(hot)) - self.hot) / HOT_MEMORY;
    }

    /// Whether many of the pages that become dirty were changed not long ago. Pages of undo logs, which are
    /// filled once and then left alone, are half of all where rows are only updated: so less than half.
    pub(crate) fn hot(&self) -> bool {
        self.hot > HOT
    }

    /// It is not dirty any more.
    pub(crate) fn leave(&mut self, start: u64) {
        let count = self.count(start);
        debug_assert!(*count > 0, "a page leaves that never entered");
        *count = count.saturating_sub(1);
    }

    /// The slots from the oldest page to the end of the log: where each ends, and the pages up to there.
    fn added_up(&self, oldest: u64, lsn: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let last = lsn >> self.shift;
        let first = (oldest >> self.shift).max((last + 1).saturating_sub(SLOTS)).min(last);
        (first..=last).scan(0, move |pages, slot| {
            *pages += u64::from(self.counts[(slot % SLOTS) as usize]);
            Some((((slot + 1) << self.shift).min(lsn), *pages))
        })
    }

    /// Pages that have to be written with each byte by which the log grows, so that none becomes older than
    /// `goal` bytes.
    pub(crate) fn pressure(&self, oldest: u64, lsn: u64, goal: u64) -> f64 {
        let steepness = |(newest, pages): (u64, u64)| {
            let left = goal.saturating_sub(lsn - newest).max(goal / NEAREST).max(1);
            pages as f64 / left as f64
        };
        self.added_up(oldest, lsn).map(steepness).fold(0.0, f64::max)
    }

    /// How many pages are older than `age` bytes, as far as slots can tell.
    pub(crate) fn older_than(&self, oldest: u64, lsn: u64, age: u64) -> usize {
        let before = lsn.saturating_sub(age);
        self.added_up(oldest, lsn)
            .take_while(|(newest, _)| *newest <= before)
            .last()
            .map_or(0, |(_, pages)| usize::try_from(pages).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn with(pages: impl IntoIterator<Item = u64>) -> AgeHistogram {
        let mut ages = AgeHistogram::new(128 * MIB);
        pages.into_iter().for_each(|start| ages.enter(start, 0));
        ages
    }

    #[test]
    fn pages_evenly_spread_up_to_the_goal_ask_for_what_holds_it() {
        let ages = with((0..100).map(|at| (at * MIB) + 1));
        let pressure = ages.pressure(1, 100 * MIB, 100 * MIB);
        assert!((pressure * MIB as f64 - 1.0).abs() < 0.02, "{pressure}");
        // Younger than the goal: less, so that the age grows. Older: more.
        assert!(ages.pressure(1, 100 * MIB, 120 * MIB) < 0.9 * pressure);
        assert!(ages.pressure(1, 100 * MIB, 90 * MIB) > 1.1 * pressure);
    }

    #[test]
    fn a_clump_is_spread_over_the_time_to_its_deadline() {
        // A thousand pages dirty at once, then one for each MiB.
        let ages = with((0..1000).map(|_| MIB).chain((2..20).map(|at| at * MIB)));
        let pressure = ages.pressure(MIB, 20 * MIB, 100 * MIB);
        let expected = 1000.0 / (82 * MIB) as f64;
        assert!((pressure / expected - 1.0).abs() < 0.05, "{pressure} for {expected}");
        // Negative control: the nearest deadline alone says next to nothing about an old page before a clump.
        let ages = with([MIB].into_iter().chain((0..1000).map(|_| 19 * MIB)));
        let alone = 1.0 / (81 * MIB) as f64;
        assert!(ages.pressure(MIB, 20 * MIB, 100 * MIB) > 500.0 * alone);
    }

    #[test]
    fn what_left_asks_for_nothing() {
        let mut ages = with([5, 5, 7 * MIB]);
        assert_eq!(ages.older_than(5, 8 * MIB, 4 * MIB), 2);
        for start in [5, 5, 7 * MIB] {
            ages.leave(start);
        }
        assert_eq!((ages.pressure(5, 8 * MIB, 4 * MIB), ages.older_than(5, 8 * MIB, 0)), (0.0, 0));
    }

    #[test]
    fn pages_that_become_dirty_again_soon_are_hot() {
        let mut ages = AgeHistogram::new(64 * MIB);
        (0..1000).for_each(|_| ages.enter(20 * MIB, 19 * MIB));
        assert!(ages.hot());
        (0..1000).for_each(|_| ages.enter(20 * MIB, 2 * MIB));
        assert!(!ages.hot());
        (0..1000).for_each(|_| ages.enter(MIB, 0));
        assert!(!ages.hot(), "never changed before");
    }

    #[test]
    fn the_ring_goes_round() {
        let mut ages = AgeHistogram::new(64 * MIB);
        for lap in 0..40 {
            let start = lap * 17 * MIB + 3;
            ages.enter(start, 0);
            assert_eq!(ages.older_than(start, start + 10 * MIB, 5 * MIB), 1, "lap {lap}");
            assert!(ages.pressure(start, start + 10 * MIB, 32 * MIB) > 0.0);
            ages.leave(start);
        }
        // An age that the log cannot have: the counters are still all that is read.
        ages.enter(1, 0);
        let _ = ages.pressure(1, 1 << 40, MIB);
    }
}
