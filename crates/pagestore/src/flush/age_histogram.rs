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
//! each for a 64th to a 128th of what the age may become. That is less than the log's capacity where a
//! restart is to be short: in slots of a large log a small goal would be one slot or two, and nobody could
//! tell who is overdue. Pages older than the ring are counted together, as its oldest.
//!
//! Slots of another size take nobody's time: counters are added up, or divided evenly. Then a counter is not
//! what its range has, but the sums up to where the former slots ended are right, and sums are what counts.
//! Single counters may be below zero until the pages from before are written.

/// Counters. Twice what the ages span at most.
const SLOTS: u64 = 256;
/// The ages span at least this many of them.
const SPAN: u64 = 64;
/// Deadlines nearer than this part of the goal count as this near: single slots are coarse.
const NEAREST: u64 = 16;
/// A page is hot when it was last changed within this part of the ages.
const HOT_WITHIN: u64 = 16;
/// Pages are hot when more than this part of them is.
const HOT: f64 = 0.25;
/// Pages over which the share of hot ones is averaged.
const HOT_MEMORY: f64 = 256.0;

/// The counters. Under the flush list's mutex.
pub(crate) struct AgeHistogram {
    /// The ages that the slots were made for.
    span: u64,
    /// A slot spans 2 to the power of this bytes of log.
    shift: u32,
    /// The newest slot that a page has entered.
    newest: u64,
    counts: [i32; SLOTS as usize],
    /// Pages of slots that the ring has no more.
    older: i64,
    hot_within: u64,
    /// Share of hot pages among those that became dirty last, 0 to 1.
    hot: f64,
}

impl AgeHistogram {
    /// For ages up to `span` bytes of log.
    pub(crate) fn new(span: u64) -> AgeHistogram {
        AgeHistogram {
            span,
            shift: shift_of(span),
            newest: 0,
            counts: [0; SLOTS as usize],
            older: 0,
            hot_within: span / HOT_WITHIN,
            hot: 0.0,
        }
    }

    /// The same pages in slots for other ages, if these differ by much.
    pub(crate) fn fit(&mut self, span: u64) {
        if span > self.span / 2 && span / 2 < self.span {
            return;
        }
        let former = std::mem::replace(self, AgeHistogram { hot: self.hot, ..AgeHistogram::new(span) });
        self.older = former.older;
        let (oldest, finer) = (former.oldest(), former.shift.saturating_sub(self.shift));
        self.newest = ((former.newest << former.shift) + ((1 << former.shift) - 1)) >> self.shift;
        for slot in oldest..=former.newest {
            let count = former.counts[(slot % SLOTS) as usize];
            if count == 0 {
                continue;
            }
            let (parts, first) = (1_u64 << finer, (slot << former.shift) >> self.shift);
            let upto = |part: u64| (i128::from(count) * i128::from(part) / i128::from(parts)) as i64;
            // There may be very many; those that the ring has no place for are one sum.
            let before = self.oldest().saturating_sub(first).min(parts);
            self.older += upto(before);
            for part in before..parts {
                self.add(first + part, (upto(part + 1) - upto(part)) as i32);
            }
        }
    }

    /// The oldest slot of the ring.
    fn oldest(&self) -> u64 {
        (self.newest + 1).saturating_sub(SLOTS)
    }

    /// Changes the count of pages of a slot that is not newer than the newest.
    fn add(&mut self, slot: u64, pages: i32) {
        if slot < self.oldest() {
            self.older += i64::from(pages);
        } else {
            self.counts[(slot % SLOTS) as usize] += pages;
        }
    }

    /// Makes this the newest slot. What falls out of the ring is kept together.
    fn reach(&mut self, slot: u64) {
        let first = (self.newest + 1).max((slot + 1).saturating_sub(SLOTS));
        if slot >= self.newest + SLOTS {
            self.older += self.counts.iter().map(|count| i64::from(*count)).sum::<i64>();
            self.counts.fill(0);
        }
        for new in first..=slot {
            self.older += i64::from(std::mem::take(&mut self.counts[(new % SLOTS) as usize]));
        }
        self.newest = self.newest.max(slot);
    }

    /// A page became dirty by a mini-transaction that begins at `start`; its last change before ended at
    /// `changed` (0: never).
    pub(crate) fn enter(&mut self, start: u64, changed: u64) {
        let slot = start >> self.shift;
        if slot > self.newest {
            self.reach(slot);
        }
        self.add(slot, 1);
        // Recovery enters pages with their last change.
        let hot = (1..=start).contains(&changed) && start - changed < self.hot_within;
        self.hot += (f64::from(u8::from(hot)) - self.hot) / HOT_MEMORY;
    }

    /// Whether many of the pages that become dirty were changed not long ago. Pages of undo logs, which are
    /// filled once and then left alone, are half of all where rows are only updated: so less than half.
    pub(crate) fn hot(&self) -> bool {
        self.hot > HOT
    }

    /// It is not dirty any more.
    pub(crate) fn leave(&mut self, start: u64) {
        self.add(start >> self.shift, -1);
    }

    /// The slots that have pages, from the oldest to the end of the log: where each ends, and the pages up to
    /// there.
    fn added_up(&self, lsn: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let older = (self.oldest() << self.shift, self.older);
        let slots = (self.oldest()..=self.newest)
            .map(|slot| ((slot + 1) << self.shift, i64::from(self.counts[(slot % SLOTS) as usize])));
        std::iter::once(older).chain(slots).filter(|(_, pages)| *pages != 0).scan(
            0_i64,
            move |sum, (end, pages)| {
                *sum += pages;
                Some((end.min(lsn), u64::try_from(*sum).unwrap_or(0)))
            },
        )
    }

    /// Pages that have to be written with each byte by which the log grows, so that none becomes older than
    /// `goal` bytes.
    pub(crate) fn pressure(&self, lsn: u64, goal: u64) -> f64 {
        let steepness = |(newest, pages): (u64, u64)| {
            let left = goal.saturating_sub(lsn - newest).max(goal / NEAREST).max(1);
            pages as f64 / left as f64
        };
        self.added_up(lsn).map(steepness).fold(0.0, f64::max)
    }

    /// How many pages are older than `age` bytes, as far as slots can tell.
    pub(crate) fn older_than(&self, lsn: u64, age: u64) -> usize {
        let before = lsn.saturating_sub(age);
        self.added_up(lsn)
            .take_while(|(newest, _)| *newest <= before)
            .last()
            .map_or(0, |(_, pages)| usize::try_from(pages).unwrap_or(usize::MAX))
    }
}

/// The size of slots for these ages.
fn shift_of(span: u64) -> u32 {
    (span / SPAN).max(1).ilog2()
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
        let pressure = ages.pressure(100 * MIB, 100 * MIB);
        assert!((pressure * MIB as f64 - 1.0).abs() < 0.02, "{pressure}");
        // Younger than the goal: less, so that the age grows. Older: more.
        assert!(ages.pressure(100 * MIB, 120 * MIB) < 0.9 * pressure);
        assert!(ages.pressure(100 * MIB, 90 * MIB) > 1.1 * pressure);
    }

    #[test]
    fn a_clump_is_spread_over_the_time_to_its_deadline() {
        // A thousand pages dirty at once, then one for each MiB.
        let ages = with((0..1000).map(|_| MIB).chain((2..20).map(|at| at * MIB)));
        let pressure = ages.pressure(20 * MIB, 100 * MIB);
        let expected = 1000.0 / (82 * MIB) as f64;
        assert!((pressure / expected - 1.0).abs() < 0.05, "{pressure} for {expected}");
        // Negative control: the nearest deadline alone says next to nothing about an old page before a clump.
        let ages = with([MIB].into_iter().chain((0..1000).map(|_| 19 * MIB)));
        let alone = 1.0 / (81 * MIB) as f64;
        assert!(ages.pressure(20 * MIB, 100 * MIB) > 500.0 * alone);
    }

    #[test]
    fn what_left_asks_for_nothing() {
        let mut ages = with([5, 5, 7 * MIB]);
        assert_eq!(ages.older_than(8 * MIB, 4 * MIB), 2);
        for start in [5, 5, 7 * MIB] {
            ages.leave(start);
        }
        assert_eq!((ages.pressure(8 * MIB, 4 * MIB), ages.older_than(8 * MIB, 0)), (0.0, 0));
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
            assert_eq!(ages.older_than(start + 10 * MIB, 5 * MIB), 1, "lap {lap}");
            assert!(ages.pressure(start + 10 * MIB, 32 * MIB) > 0.0);
            ages.leave(start);
        }
        // An age that the log cannot have: the counters are still all that is read.
        ages.enter(1, 0);
        let _ = ages.pressure(1 << 40, MIB);
    }

    /// The target was lowered: pages are older than the ring has slots for.
    #[test]
    fn pages_older_than_the_ring_are_its_oldest() {
        let mut ages = AgeHistogram::new(64 * MIB);
        (0..100).for_each(|at| ages.enter(at * 8 * MIB + 1, 0));
        let lsn = 800 * MIB;
        assert_eq!(ages.older_than(lsn, 0), 100);
        let older = ages.older_than(lsn, 256 * MIB);
        assert!((66..=69).contains(&older), "as far as the ring tells: {older}");
        // All but the few that have time left are due at once.
        let pressure = ages.pressure(lsn, 64 * MIB) * (4 * MIB) as f64;
        assert!((90.0..=100.0).contains(&pressure), "{pressure}");
        (0..100).for_each(|at| ages.leave(at * 8 * MIB + 1));
        assert_eq!((ages.older_than(lsn, 0), ages.pressure(lsn, 64 * MIB)), (0, 0.0));
    }

    /// One page for each 256 KiB; the age may be 64 MiB in a log of 8 GiB.
    #[test]
    fn ages_are_told_apart_where_little_of_the_log_may_be_used() {
        let older = |span| {
            let mut ages = AgeHistogram::new(8192 * MIB);
            ages.fit(span);
            (0..256).for_each(|at| ages.enter(at * MIB / 4 + 1, 0));
            ages.older_than(64 * MIB, 60 * MIB)
        };
        assert!((12..=16).contains(&older(64 * MIB)), "{}", older(64 * MIB));
        // Negative control.
        assert_eq!(older(8192 * MIB), 0);
    }

    #[test]
    fn slots_of_another_size_have_the_same_pages() {
        let starts: Vec<u64> = (0..1000).map(|at| at * 64 * MIB / 1000 + 5).collect();
        let (mut ages, lsn) = (AgeHistogram::new(64 * MIB), 64 * MIB);
        starts.iter().for_each(|start| ages.enter(*start, 0));
        for span in [30, 33, 128, 300, 30, 2048, 4] {
            ages.fit(span * MIB);
            assert_eq!(ages.older_than(lsn, 0), 1000, "{span}");
            let half = ages.older_than(lsn, 32 * MIB);
            // What is counted together once, or is older than the ring, stays so.
            assert!(!(30..=300).contains(&span) || (440..=510).contains(&half), "{span}: {half}");
        }
        // Slots by the billion of the smaller size, which take nobody's time.
        ages.fit(u64::MAX);
        ages.fit(1);
        assert_eq!(ages.older_than(lsn, 0), 1000);
        // They leave slots that they did not enter.
        ages.fit(8 * MIB);
        starts.iter().for_each(|start| ages.leave(*start));
        assert_eq!(ages.older_than(lsn, 0), 0);
        ages.enter(lsn, 0);
        assert_eq!(ages.older_than(lsn + MIB, 0), 1);
    }
}
