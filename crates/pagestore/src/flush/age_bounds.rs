//! What the target for a restart means for the log, and what reads tell about the device.
//!
//! At each look of the cleaner the log is told how old it may become ([`RedoLog::set_age_limit`]): where
//! pages are not written fast enough for a target that was set, writers wait for them. What nobody can keep,
//! or keeps writers waiting, or passes over a cap, is said once in the log, and again when it was otherwise
//! for a while.
//!
//! [`RedoLog::set_age_limit`]: redo::RedoLog::set_age_limit

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use page::extension::Source;

use crate::counters::Counter;
use crate::flush::adaptive_flushing::Load;
use crate::flush::restart_time::{Allowed, Found};
use crate::recovery::apply::READ_TOGETHER;
use crate::store::PageStore;

/// A message is not repeated sooner.
const SAY_AGAIN: Duration = Duration::from_secs(600);
/// Reads are watched for stretches of this length.
const STRETCH: Duration = Duration::from_secs(1);
/// A stretch that became longer than this says nothing: the process stood still, or its cleaner did.
const STRETCH_MAX: Duration = Duration::from_secs(2);
/// Reads under way that are about as many as a recovery has. With fewer pages in a stretch than that, the
/// device stood still: that is no rate to reckon with.
const READS_UNDER_WAY: usize = READ_TOGETHER * 3 / 4;

/// Says something once.
#[derive(Default)]
struct Once(Option<Duration>);

impl Once {
    /// It is so now. Whether to say it: unless it was so not long ago.
    fn is_news(&mut self, now: Duration) -> bool {
        let last = self.0.replace(now);
        last.is_none_or(|last| now.saturating_sub(last) > SAY_AGAIN)
    }
}

/// The bounds in force.
#[derive(Default)]
pub(crate) struct AgeBounds {
    /// What the log was told last; 0: nothing.
    told: u64,
    is_out_of_reach: bool,
    out_of_reach: Once,
    waits: Once,
    passed_over: Once,
}

impl AgeBounds {
    /// How old the log may become now.
    pub(crate) fn look(&mut self, store: &PageStore, found: &Found, capacity: u64) -> Allowed {
        let allowed = store.restart_time.allowed(found);
        #[cfg(test)]
        let allowed = match store.broken.target.load(Ordering::Relaxed) {
            true => Allowed { age: f64::MAX, dirty: f64::MAX, is_bound: false },
            false => allowed,
        };
        self.is_out_of_reach = allowed.is_out_of_reach(capacity);
        allowed
    }

    /// Tells the log, and in a message the operator. Not under the flush list's mutex, which is locked under
    /// the log's.
    pub(crate) fn tell(&mut self, store: &PageStore, load: &Load) {
        let now = store.env.now();
        let limit = if load.bound < load.capacity { load.bound } else { u64::MAX };
        // Lowered at once, raised when it is worth it.
        if limit < self.told || limit - self.told > self.told / 64 {
            store.redo.set_age_limit(limit);
            self.told = limit;
        }
        if self.is_out_of_reach && self.out_of_reach.is_news(now) {
            tracing::warn!(
                "untorn_recovery_target={} cannot be kept: as it looks, a restart would take longer even with no more than {} MiB of redo log; \
                 less would stop writers for each page",
                store.recovery_target().as_secs(),
                load.bound >> 20
            );
        }
        if limit < load.capacity && load.room_wanted > 0 && self.waits.is_news(now) {
            tracing::info!(
                "writers wait for pages to be written, so that a restart keeps untorn_recovery_target={}: the redo log may be {} of its \
                 {} MiB old",
                store.recovery_target().as_secs(),
                limit >> 20,
                load.capacity >> 20
            );
        }
    }

    /// The cap on page writes does not hold now.
    pub(crate) fn tell_of_cap(&mut self, store: &PageStore, is_passed_over: bool) {
        if is_passed_over && self.passed_over.is_news(store.env.now()) {
            tracing::info!(
                "innodb_io_capacity_max={} is less than the pages that have to be written, so that writers need not wait for room in the \
                 redo log: it is passed over",
                store.io_capacity_max().unwrap_or(0)
            );
        }
    }
}

/// What the cleaner steers for, for the figures.
#[derive(Default)]
pub(crate) struct AgeAims {
    goal: AtomicU64,
    limit: AtomicU64,
}

impl AgeAims {
    pub(crate) fn set(&self, goal: u64, limit: u64) {
        self.goal.store(goal, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The age that pages are written to hold, and the most that a restart within its target allows. 0 before
    /// the cleaner has looked.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.goal.load(Ordering::Relaxed), self.limit.load(Ordering::Relaxed))
    }
}

/// What the reads of this process say about the device: how many pages it reads and writes in a second in
/// which as many reads of data files were under way all the time as a recovery has.
#[derive(Default)]
pub(crate) struct ReadsShown {
    began: Duration,
    pages: u64,
    /// There were enough of them at each look.
    all_the_time: bool,
}

/// What is seen of them at a look.
#[derive(Clone, Copy)]
struct ReadsSeen {
    /// Reads of data files.
    under_way: usize,
    /// Pages read from data files and written, since the start.
    pages: u64,
}

impl ReadsShown {
    pub(crate) fn look(&mut self, store: &PageStore, now: Duration) {
        let read = store.read_times.of(Source::DataFile).times().count();
        let pages = read + store.counters.sum(Counter::PagesFlushed);
        let seen = ReadsSeen { under_way: store.pending.of_data_files(), pages };
        if let Some(pages_per_second) = self.see(seen, now) {
            store.restart_time.shown(pages_per_second, now);
        }
        if self.began == now {
            store.restart_time.forget_old(now);
            store.files_open.store(store.spaces.open_count(), Ordering::Relaxed);
        }
    }

    /// At the end of a stretch that says something: pages a second.
    fn see(&mut self, seen: ReadsSeen, now: Duration) -> Option<f64> {
        self.all_the_time &= seen.under_way >= READS_UNDER_WAY;
        let took = now.saturating_sub(self.began);
        if took < STRETCH {
            return None;
        }
        let pages = seen.pages.saturating_sub(self.pages);
        let says_something = self.all_the_time && took <= STRETCH_MAX && pages >= READS_UNDER_WAY as u64;
        *self = ReadsShown { began: now, pages: seen.pages, all_the_time: true };
        says_something.then(|| pages as f64 / took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_said_once() {
        let mut once = Once::default();
        assert!(once.is_news(Duration::ZERO));
        assert!((1..1000).all(|second| !once.is_news(Duration::from_secs(second))));
        assert!(once.is_news(Duration::from_secs(1000) + SAY_AGAIN));
    }

    const MS: Duration = Duration::from_millis(1);

    /// Looks every 20 ms, for this long.
    fn stretch(
        shown: &mut ReadsShown,
        now: &mut Duration,
        pages: &mut u64,
        took: Duration,
        a_look: u64,
    ) -> Vec<u64> {
        let until = *now + took;
        let mut rates = Vec::new();
        while *now < until {
            *now += 20 * MS;
            *pages += a_look;
            let seen = ReadsSeen { under_way: READS_UNDER_WAY, pages: *pages };
            rates.extend(shown.see(seen, *now).map(|rate| rate.round() as u64));
        }
        rates
    }

    #[test]
    fn a_device_that_stands_still_shows_no_rate() {
        let (mut shown, mut now, mut pages) = (ReadsShown::default(), Duration::ZERO, 0);
        // The first stretch did not begin with the first look.
        assert!(stretch(&mut shown, &mut now, &mut pages, 1000 * MS, 4).is_empty());
        assert_eq!(stretch(&mut shown, &mut now, &mut pages, 2000 * MS, 4), [200, 200]);
        assert!(stretch(&mut shown, &mut now, &mut pages, 30_000 * MS, 0).is_empty(), "frozen");
        assert_eq!(stretch(&mut shown, &mut now, &mut pages, 1000 * MS, 1), [50], "slow, but alive");
        // The process was stopped.
        now += Duration::from_secs(20);
        assert_eq!(stretch(&mut shown, &mut now, &mut pages, 20 * MS, 4).len(), 0);
        assert_eq!(stretch(&mut shown, &mut now, &mut pages, 1000 * MS, 4), [200]);
        // Not enough of them at a single look.
        let seen = ReadsSeen { under_way: READS_UNDER_WAY - 1, pages };
        assert_eq!(shown.see(seen, now + MS), None);
        assert!(stretch(&mut shown, &mut now, &mut pages, 1000 * MS, 4).is_empty());
    }
}
