//! Who goes first at the device.
//!
//! | | what | how much |
//! |---|---|---|
//! | first | writes of the log, reads that somebody waits for | at once, always |
//! | needed | pages written to make frames free or to let the checkpoint follow | what is due, spread over the time there is; at once where somebody waits for it (`flush/adaptive_flushing.rs`) |
//! | ahead of need | batches written ahead (`flush/cleaner.rs`), read-ahead, the warm-up | what is left |
//!
//! What is ahead of need gives way when the reads that somebody waits for have become *slow*: a moving
//! average of how long they take is more than twice the floor. The floor is the least mean of a few dozen of
//! them during which nothing that is ahead of need was under way; it rises a little with each such stretch,
//! so that a device that has become slower for good is believed in the end. Before it is known, and while
//! nobody waits for a read, nothing is slow.
//!
//! Then the next batch that is written ahead rests eight times as long, and a scan's read-ahead is left out
//! as long as another is under way. Nothing here holds back what is needed. The warm-up gives way as soon as
//! anybody misses a page at all, unless that is worse for them as well (`warm_up_pace.rs`). The writes of a
//! buffer pool extension are on a disk of their own, where they are in the way of nobody who reads data
//! files; on the same disk it suspends itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::PageStore;

/// Reads over which the latency is averaged.
const MEMORY: f64 = 16.0;
/// Reads of a stretch.
const STRETCH: u32 = 32;
/// Slow is this many times the floor.
const SLOW: f64 = 2.0;
/// And at least this much longer, seconds: less troubles nobody.
const SLOWER_BY: f64 = 200e-6;
/// The floor rises by this part with each stretch.
const RISE: f64 = 1.0 / 256.0;
/// Nobody waits for reads when none has ended for this long.
const QUIET: Duration = Duration::from_millis(500);

/// How long they take, seconds.
#[derive(Debug, Default)]
struct State {
    average: Option<f64>,
    floor: Option<f64>,
    stretch: f64,
    reads: u32,
    last: Duration,
}

/// The reads that somebody waits for, and what is under way ahead of need.
#[derive(Debug, Default)]
pub(crate) struct ForegroundReads {
    state: Mutex<State>,
    ahead: AtomicUsize,
}

impl ForegroundReads {
    /// One is over that somebody has waited for.
    pub(crate) fn read(&self, took: Duration, now: Duration) {
        let is_alone = self.ahead.load(Ordering::Relaxed) == 0;
        let took = took.as_secs_f64();
        let mut state = self.state.lock();
        state.last = now;
        state.average = Some(state.average.map_or(took, |average| average + (took - average) / MEMORY));
        if !is_alone {
            (state.stretch, state.reads) = (0.0, 0);
            return;
        }
        state.stretch += took;
        state.reads += 1;
        if state.reads == STRETCH {
            let mean = state.stretch / f64::from(STRETCH);
            state.floor = Some(state.floor.map_or(mean, |floor| (floor * (1.0 + RISE)).min(mean)));
            (state.stretch, state.reads) = (0.0, 0);
        }
    }

    /// Whether they are slow now.
    pub(crate) fn are_slow(&self, now: Duration) -> bool {
        let state = self.state.lock();
        if now.saturating_sub(state.last) > QUIET {
            return false;
        }
        let both = state.average.zip(state.floor);
        both.is_some_and(|(average, floor)| average > SLOW * floor + SLOWER_BY)
    }

    /// Something ahead of need is under way from now on.
    pub(crate) fn ahead_begins(&self) {
        self.ahead.fetch_add(1, Ordering::Relaxed);
    }

    /// It is over.
    pub(crate) fn ahead_is_over(&self) {
        self.ahead.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether something ahead of need is under way.
    pub(crate) fn is_anything_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) > 0
    }
}

impl PageStore {
    /// Whether what is ahead of need should give way to those who wait for reads.
    pub(crate) fn foreground_comes_first(&self) -> bool {
        #[cfg(test)]
        if self.broken.give_way.load(Ordering::Relaxed) {
            return false;
        }
        self.foreground.are_slow(self.env.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Reads one after the other that take this long.
    fn read(reads: &ForegroundReads, now: &mut Duration, count: u32, took: Duration) {
        for _ in 0..count {
            *now += took;
            reads.read(took, *now);
        }
    }

    #[test]
    fn slow_is_much_longer_than_the_best_stretch() {
        let (reads, mut now) = (ForegroundReads::default(), Duration::ZERO);
        assert!(!reads.are_slow(now), "nobody reads");
        read(&reads, &mut now, STRETCH - 1, 10 * MS);
        read(&reads, &mut now, STRETCH, MS);
        assert!(!reads.are_slow(now), "the first stretch is not over before");
        read(&reads, &mut now, 2 * STRETCH, MS);
        assert!(!reads.are_slow(now));
        read(&reads, &mut now, STRETCH, 5 * MS);
        assert!(reads.are_slow(now));
        assert!(!reads.are_slow(now + 2 * QUIET), "nobody waits any more");
        read(&reads, &mut now, 2 * STRETCH, MS);
        assert!(!reads.are_slow(now));
    }

    #[test]
    fn the_floor_is_of_reads_that_nothing_was_in_the_way_of() {
        let (reads, mut now) = (ForegroundReads::default(), Duration::ZERO);
        reads.ahead_begins();
        read(&reads, &mut now, 10 * STRETCH, 20 * MS);
        assert!(!reads.are_slow(now), "nothing is known yet");
        reads.ahead_is_over();
        read(&reads, &mut now, 2 * STRETCH, MS);
        reads.ahead_begins();
        read(&reads, &mut now, STRETCH, 20 * MS);
        assert!(reads.are_slow(now) && reads.is_anything_ahead());
    }

    #[test]
    fn a_device_that_is_slow_for_good_is_believed_in_the_end() {
        let (reads, mut now) = (ForegroundReads::default(), Duration::ZERO);
        read(&reads, &mut now, 2 * STRETCH, MS);
        read(&reads, &mut now, STRETCH, 4 * MS);
        assert!(reads.are_slow(now));
        read(&reads, &mut now, 400 * STRETCH, 4 * MS);
        assert!(!reads.are_slow(now));
    }

    #[test]
    fn microseconds_more_trouble_nobody() {
        let (reads, mut now) = (ForegroundReads::default(), Duration::ZERO);
        read(&reads, &mut now, 2 * STRETCH, MS / 20);
        read(&reads, &mut now, 2 * STRETCH, MS / 5);
        assert!(!reads.are_slow(now));
    }
}
