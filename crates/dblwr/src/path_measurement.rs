//! Which of two ways of writing pages is faster here: measured on the batches themselves.
//!
//! Where a file system writes pages atomically by copy-on-write, nobody can say beforehand whether that costs
//! less than a doublewrite: it depends on the device, on its load and on the age of the file system. So
//! batches go in turns by the one and the other way, until both have been seen often enough; the one that
//! took less time per page is kept. It is measured again from time to time, and when the time per page moves
//! away from what was measured: then the other way has only one turn in several, so that it costs little if
//! it is the slower one still.
//!
//! Several batches are under way at once and share the device, so the time that a single batch takes says
//! little: beside a slow batch a fast one is slow. What counts is throughput. Time is counted for a way only
//! while batches of that way alone are busy, and so are the pages that are finished then; what happens while
//! the batches of the last turn drain is not counted. A batch that pauses, because there is time, has nothing
//! under way: it is not busy, and says nothing about the device. The time is that of all of a way's batches
//! together, so a pause of one is no time lost while another is busy.
//!
//! The doublewrite cannot do without syncs; what is written atomically is synced later, by a checkpoint, for
//! many batches at once. That costs too, and not the less for coming later. So in a measurement every eighth
//! batch of the atomic way syncs what was left, and both sides are compared with their syncs.
//!
//! Nothing here does I/O or knows a clock; so it behaves the same in the simulator.

use crate::mode::WritePath;
use disk::File;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Batches that go the same way before the other one has its turn.
const TURN: u32 = 8;
/// One turn in this number is the other way's: at first nothing is known, ...
const FIRST: u32 = 2;
/// ... when the time per page has moved the other way may be much better, ...
const SHIFTED: u32 = 4;
/// ... and when the measurement is only old it is likely to be worse still.
const OLD: u32 = 16;
/// Batches of the atomic way that are synced together while it is measured.
const SYNC_EVERY: u32 = 8;
/// Batches each way needs before they are compared.
const BATCHES_MIN: u32 = 32;
/// Pages each way needs before they are compared.
const PAGES_MIN: u64 = 512;
/// The doublewrite must be faster by this factor: at the same speed it writes twice as much.
const DOUBLEWRITE_HANDICAP: f64 = 1.05;
/// Batches after which the time per page is compared with what was measured.
const WINDOW: u32 = 64;
/// A time per page that differs by this factor is worth a new measurement ...
const SHIFT: f64 = 2.0;
/// ... but not sooner than this after the last one.
const REMEASURE_SOONEST: Duration = Duration::from_secs(30);
/// Age at which a measurement is repeated in any case.
const REMEASURE_LATEST: Duration = Duration::from_secs(600);

/// What one way has shown.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    batches: u32,
    pages: u64,
    time: Duration,
}

impl Seen {
    fn is_enough(&self) -> bool {
        self.batches >= BATCHES_MIN && self.pages >= PAGES_MIN && !self.time.is_zero()
    }

    /// Seconds per page.
    fn per_page(&self) -> f64 {
        self.time.as_secs_f64() / self.pages.max(1) as f64
    }
}

/// One of the two ways, with what is under way and what was seen.
#[derive(Clone, Copy, Default, Debug)]
struct Side {
    under_way: u32,
    /// Those of them that pause.
    paused: u32,
    seen: Seen,
}

impl Side {
    fn is_busy(&self) -> bool {
        self.under_way > self.paused
    }
}

/// The measurement of one device.
pub(crate) struct PathMeasurement {
    /// Set while measuring: one turn in this number is that of the way that is not chosen.
    measuring: Option<u32>,
    /// Batches begun in this measurement.
    begun: u32,
    atomic: Side,
    doublewrite: Side,
    /// Until when time has been counted.
    counted: Duration,
    chosen: WritePath,
    chosen_at: Duration,
    /// Seconds per page that made it the chosen one.
    measured: f64,
    outcome: String,
    /// Atomic batches of this measurement that were written since the last sync, and their files.
    unsynced: u32,
    files: Vec<Weak<dyn File>>,
}

impl Default for PathMeasurement {
    fn default() -> PathMeasurement {
        PathMeasurement {
            measuring: Some(FIRST),
            begun: 0,
            atomic: Side::default(),
            doublewrite: Side::default(),
            counted: Duration::ZERO,
            chosen: WritePath::Doublewrite,
            chosen_at: Duration::ZERO,
            measured: 0.0,
            outcome: "it and the doublewrite are being measured".to_owned(),
            unsynced: 0,
            files: Vec::new(),
        }
    }
}

impl PathMeasurement {
    /// A batch begins: which way it goes. [`PathMeasurement::ended`] must follow.
    pub(crate) fn begin(&mut self, now: Duration) -> WritePath {
        self.count_time(now);
        if self.measuring.is_none() && now.saturating_sub(self.chosen_at) >= REMEASURE_LATEST {
            self.measure_anew(OLD);
        }
        let way = self.next();
        self.begun = self.begun.wrapping_add(1);
        self.side(way).under_way += 1;
        way
    }

    /// A batch that began this way has nothing under way from now on, because there is time.
    pub(crate) fn pauses(&mut self, way: WritePath, now: Duration) {
        self.count_time(now);
        self.side(way).paused += 1;
    }

    /// It goes on.
    pub(crate) fn goes_on(&mut self, way: WritePath, now: Duration) {
        self.count_time(now);
        let side = self.side(way);
        side.paused = side.paused.saturating_sub(1);
    }

    /// A batch that began this way has ended with this number of pages. Returns the way now chosen when that
    /// has just been decided.
    pub(crate) fn ended(&mut self, way: WritePath, pages: usize, now: Duration) -> Option<WritePath> {
        self.count_time(now);
        let alone = !self.other(way).is_busy();
        let side = self.side(way);
        side.under_way = side.under_way.saturating_sub(1);
        if alone {
            side.seen.batches += 1;
            side.seen.pages += pages as u64;
        }
        if self.measuring.is_some() {
            return self.decide(now);
        }
        self.watch(now);
        None
    }

    /// A batch was written atomically and leaves these files unsynced. Returns the files to be synced before
    /// it ends, if it is its turn to do so.
    pub(crate) fn left_unsynced(&mut self, files: &[Arc<dyn File>]) -> Option<Vec<Arc<dyn File>>> {
        self.measuring?;
        for file in files {
            let file = Arc::downgrade(file);
            if !self.files.iter().any(|known| known.ptr_eq(&file)) {
                self.files.push(file);
            }
        }
        self.unsynced += 1;
        if self.unsynced < SYNC_EVERY {
            return None;
        }
        self.unsynced = 0;
        Some(self.files.drain(..).filter_map(|file| file.upgrade()).collect())
    }

    /// The way of the next batch.
    pub(crate) fn next(&self) -> WritePath {
        let challenged = self.measuring.is_some_and(|turns| self.begun / TURN % turns == turns - 1);
        match (self.chosen, challenged) {
            (WritePath::Atomic, true) => WritePath::Doublewrite,
            (_, true) => WritePath::Atomic,
            (chosen, false) => chosen,
        }
    }

    /// The way chosen, or the one that is kept until the measurement has ended.
    pub(crate) fn chosen(&self) -> WritePath {
        self.chosen
    }

    /// What was measured, a clause.
    pub(crate) fn outcome(&self) -> &str {
        &self.outcome
    }

    fn side(&mut self, way: WritePath) -> &mut Side {
        if way == WritePath::Atomic { &mut self.atomic } else { &mut self.doublewrite }
    }

    fn other(&mut self, way: WritePath) -> &mut Side {
        if way == WritePath::Atomic { &mut self.doublewrite } else { &mut self.atomic }
    }

    /// Counts the time since the last look for the way that had the device for itself.
    fn count_time(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        match (self.atomic.is_busy(), self.doublewrite.is_busy()) {
            (true, false) => self.atomic.seen.time += passed,
            (false, true) => self.doublewrite.seen.time += passed,
            _ => {}
        }
    }

    fn decide(&mut self, now: Duration) -> Option<WritePath> {
        if !(self.atomic.seen.is_enough() && self.doublewrite.seen.is_enough()) {
            return None;
        }
        let (atomic, doublewrite) = (self.atomic.seen.per_page(), self.doublewrite.seen.per_page());
        let by_atomic = atomic <= doublewrite * DOUBLEWRITE_HANDICAP;
        (self.chosen, self.measured) =
            if by_atomic { (WritePath::Atomic, atomic) } else { (WritePath::Doublewrite, doublewrite) };
        self.outcome = format!(
            "measured {:.0} microseconds per page atomically and {:.0} with the doublewrite",
            atomic * 1e6,
            doublewrite * 1e6
        );
        (self.measuring, self.chosen_at) = (None, now);
        self.forget_seen();
        Some(self.chosen)
    }

    fn forget_seen(&mut self) {
        (self.atomic.seen, self.doublewrite.seen) = (Seen::default(), Seen::default());
    }

    fn measure_anew(&mut self, turns: u32) {
        (self.measuring, self.begun, self.unsynced) = (Some(turns), 0, 0);
        self.files.clear();
        self.forget_seen();
    }

    /// Compares what is seen now with what was measured.
    fn watch(&mut self, now: Duration) {
        let seen = self.side(self.chosen).seen;
        if seen.batches < WINDOW {
            return;
        }
        self.forget_seen();
        let factor = seen.per_page() / self.measured.max(1e-9);
        let has_shifted = !(1.0 / SHIFT..=SHIFT).contains(&factor);
        if has_shifted && now.saturating_sub(self.chosen_at) >= REMEASURE_SOONEST {
            self.measure_anew(SHIFTED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const PAGES: usize = 64;
    /// Batches under way at once.
    const DEPTH: usize = 4;

    /// A device that serves one batch after the other, `cost` microseconds per page, with several waiting at
    /// a time. Returns how many went atomically and how many by the doublewrite.
    fn feed(
        trial: &mut PathMeasurement,
        now: &mut Duration,
        until: Duration,
        depth: usize,
        cost: impl Fn(WritePath) -> u64,
    ) -> (u32, u32) {
        let (mut atomic, mut doubled) = (0, 0);
        let mut queue = VecDeque::new();
        while *now < until || !queue.is_empty() {
            while queue.len() < depth && *now < until {
                let way = trial.begin(*now);
                if way == WritePath::Atomic {
                    atomic += 1
                } else {
                    doubled += 1
                }
                queue.push_back(way);
            }
            let Some(way) = queue.pop_front() else { break };
            *now += Duration::from_micros(cost(way) * PAGES as u64);
            trial.ended(way, PAGES, *now);
        }
        (atomic, doubled)
    }

    fn costs(atomic: u64, doublewrite: u64) -> impl Fn(WritePath) -> u64 {
        move |way| if way == WritePath::Atomic { atomic } else { doublewrite }
    }

    #[test]
    fn the_faster_way_is_kept_and_few_batches_are_spent_on_finding_out() {
        for (atomic, doublewrite, winner) in [
            (100, 200, WritePath::Atomic),
            (200, 100, WritePath::Doublewrite),
            (100, 120, WritePath::Atomic),
            (100, 100, WritePath::Atomic),
        ] {
            for depth in [1, DEPTH] {
                let (mut trial, mut now) = (PathMeasurement::default(), Duration::ZERO);
                let until = Duration::from_secs(20);
                let (by_atomic, doubled) =
                    feed(&mut trial, &mut now, until, depth, costs(atomic, doublewrite));
                assert_eq!(trial.chosen(), winner, "{atomic} {doublewrite} {depth}: {}", trial.outcome());
                let lost = if winner == WritePath::Atomic { doubled } else { by_atomic };
                assert!(lost <= 8 * TURN, "{lost} batches went the slower way");
                // Batches beside each other do not blur what is measured.
                assert!(trial.outcome().contains(&format!(" {atomic} ")), "{}", trial.outcome());
                assert!(trial.outcome().contains(&format!(" {doublewrite} ")), "{}", trial.outcome());
            }
        }
    }

    #[test]
    fn it_is_measured_anew_when_the_load_changes_and_when_it_is_old() {
        let (mut trial, mut now) = (PathMeasurement::default(), Duration::ZERO);
        feed(&mut trial, &mut now, Duration::from_secs(60), DEPTH, costs(100, 200));
        assert_eq!(trial.chosen(), WritePath::Atomic);
        // The device becomes slow for atomic writes: noticed at once.
        let soon = now + Duration::from_secs(20);
        feed(&mut trial, &mut now, soon, DEPTH, costs(500, 200));
        assert_eq!(trial.chosen(), WritePath::Doublewrite);
        // It recovers, which the doublewrite cannot feel: found out when the measurement is old.
        let later = now + REMEASURE_LATEST + Duration::from_secs(20);
        feed(&mut trial, &mut now, later, DEPTH, costs(100, 200));
        assert_eq!(trial.chosen(), WritePath::Atomic);
    }

    #[test]
    fn an_idle_device_counts_for_nobody() {
        let (mut trial, mut now) = (PathMeasurement::default(), Duration::ZERO);
        for _ in 0..200 {
            let way = trial.begin(now);
            now += Duration::from_micros(if way == WritePath::Atomic { 100 } else { 300 } * PAGES as u64);
            trial.ended(way, PAGES, now);
            now += Duration::from_millis(500);
        }
        assert!(
            trial.outcome().contains(" 100 ") && trial.outcome().contains(" 300 "),
            "{}",
            trial.outcome()
        );
    }

    /// Batches that are spread: each does its pages in two halves, with a pause between them in which nothing
    /// of it is under way, and overlaps with the next. Returns the microseconds per page that were measured.
    #[test]
    fn pauses_of_batches_that_overlap_are_no_time_of_the_device() {
        let (mut trial, mut now) = (PathMeasurement::default(), Duration::ZERO);
        let half =
            |way| Duration::from_micros(if way == WritePath::Atomic { 100 } else { 300 } * PAGES as u64 / 2);
        let pause = Duration::from_millis(150);
        while trial.measuring.is_some() {
            // Two of them pause at the same time: 300 ms of pauses in 150 ms and a little.
            let ways = [trial.begin(now), trial.begin(now)];
            for way in ways {
                now += half(way);
                trial.pauses(way, now);
            }
            now += pause;
            for way in ways {
                trial.goes_on(way, now);
                now += half(way);
                trial.ended(way, PAGES, now);
            }
        }
        assert_eq!(trial.chosen(), WritePath::Atomic);
        let outcome = trial.outcome();
        assert!(outcome.contains(" 100 ") && outcome.contains(" 300 "), "{outcome}");
    }

    /// A batch pauses while others of the same way keep the device busy: their time is theirs.
    #[test]
    fn a_pause_takes_nothing_from_the_time_of_the_others() {
        let mut trial = PathMeasurement::default();
        let (mut now, mut paused) = (Duration::ZERO, None);
        while trial.measuring.is_some() {
            let way = trial.next();
            if paused != Some(way) {
                if let Some(way) = paused.replace(way) {
                    trial.goes_on(way, now);
                    trial.ended(way, 0, now);
                }
                trial.begin(now);
                trial.pauses(way, now);
            }
            let way = trial.begin(now);
            now += Duration::from_micros(if way == WritePath::Atomic { 100 } else { 300 } * PAGES as u64);
            trial.ended(way, PAGES, now);
        }
        assert!(trial.measured > 90e-6 && trial.measured < 110e-6, "{}", trial.outcome());
    }

    #[test]
    fn measuring_again_costs_little_and_ends() {
        let (mut trial, mut now) = (PathMeasurement::default(), Duration::ZERO);
        let soon = Duration::from_secs(60);
        feed(&mut trial, &mut now, soon, DEPTH, costs(100, 170));
        let later = now + 2 * REMEASURE_LATEST;
        let (by_atomic, doubled) = feed(&mut trial, &mut now, later, DEPTH, costs(100, 170));
        assert_eq!(trial.chosen(), WritePath::Atomic);
        assert!(trial.measuring.is_none() && trial.chosen_at > soon, "it was measured again, and has ended");
        assert!(doubled > 0 && doubled <= 16 * TURN, "{doubled}");
        assert!(f64::from(doubled) < 0.01 * f64::from(by_atomic), "{doubled} beside {by_atomic}");
        // While it is measured no stretch of batches has more than a few of the slower way.
        trial.measure_anew(OLD);
        let mut slower = 0;
        for _ in 0..OLD * TURN {
            let way = trial.begin(now);
            now += Duration::from_millis(10);
            trial.ended(way, 1, now);
            slower += u32::from(way == WritePath::Doublewrite);
        }
        assert_eq!(slower, TURN);
    }
}
