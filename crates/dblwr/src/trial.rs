//! Which of two ways of writing pages is faster here: measured on the batches themselves.
//!
//! Where a file system writes pages atomically by copy-on-write, nobody can say beforehand whether that costs less
//! than a doublewrite: it depends on the device, on its load and on the age of the file system. So batches go in
//! turns by the one and the other way, a few at a time, until both have been seen often enough; the one that took less time
//! per page is kept. Both ways run under the same load meanwhile, as they take turns. It is measured anew now and
//! then, and when the time per page moves away from what was measured.
//!
//! Nothing here does I/O or knows a clock; so it behaves the same in the simulator.

use crate::mode::Way;
use std::time::Duration;

/// Batches that go the same way before the other one has its turn.
const TURN: u32 = 4;
/// Batches each way needs before they are compared.
const BATCHES_MIN: u32 = 16;
/// Pages each way needs before they are compared.
const PAGES_MIN: u64 = 256;
/// Batches after which the time per page is compared with what was measured.
const WINDOW: u32 = 32;
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
    fn add(&mut self, pages: usize, time: Duration) {
        self.batches += 1;
        self.pages += pages as u64;
        self.time += time;
    }

    fn is_enough(&self) -> bool {
        self.batches >= BATCHES_MIN && self.pages >= PAGES_MIN
    }

    /// Seconds per page.
    fn per_page(&self) -> f64 {
        self.time.as_secs_f64() / self.pages.max(1) as f64
    }
}

/// The measurement of one device.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Set while measured anew.
    measuring: bool,
    /// Counts the measurements, so that a batch of an earlier one is not counted.
    round: u64,
    started: u32,
    atomic: Seen,
    doublewrite: Seen,
    chosen: Way,
    chosen_at: Duration,
    window: Seen,
    outcome: String,
}

/// Which way a batch goes, and the measurement it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) way: Way,
    round: u64,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            measuring: true,
            round: 0,
            started: 0,
            atomic: Seen::default(),
            doublewrite: Seen::default(),
            chosen: Way::Doublewrite,
            chosen_at: Duration::ZERO,
            window: Seen::default(),
            outcome: "the two are being measured".to_owned(),
        }
    }
}

impl Trial {
    /// Which way the next batch goes.
    pub(crate) fn next(&mut self, now: Duration) -> Turn {
        if !self.measuring && now.saturating_sub(self.chosen_at) >= REMEASURE_LATEST {
            self.begin();
        }
        let way = match self.measuring {
            false => self.chosen,
            true if (self.started / TURN).is_multiple_of(2) => Way::Doublewrite,
            true => Way::Atomic,
        };
        self.started = self.started.wrapping_add(1);
        Turn { way, round: self.round }
    }

    /// A batch took so long. Returns the way now chosen when that has just been decided.
    pub(crate) fn took(&mut self, turn: Turn, pages: usize, time: Duration, now: Duration) -> Option<Way> {
        if turn.round != self.round {
            return None;
        }
        if !self.measuring {
            self.watch(pages, time, now);
            return None;
        }
        match turn.way {
            Way::Atomic => self.atomic.add(pages, time),
            _ => self.doublewrite.add(pages, time),
        }
        if !(self.atomic.is_enough() && self.doublewrite.is_enough()) {
            return None;
        }
        let (atomic, doublewrite) = (self.atomic.per_page(), self.doublewrite.per_page());
        self.chosen = if atomic < doublewrite { Way::Atomic } else { Way::Doublewrite };
        self.outcome = format!(
            "measured {:.0} microseconds per page atomically and {:.0} with the doublewrite",
            atomic * 1e6,
            doublewrite * 1e6
        );
        self.measuring = false;
        self.chosen_at = now;
        self.window = Seen::default();
        self.round += 1;
        Some(self.chosen)
    }

    /// The way chosen, or the one that is kept until the measurement has ended.
    pub(crate) fn chosen(&self) -> Way {
        self.chosen
    }

    /// What was measured, a clause.
    pub(crate) fn outcome(&self) -> &str {
        &self.outcome
    }

    fn begin(&mut self) {
        (self.measuring, self.started) = (true, 0);
        (self.atomic, self.doublewrite) = (Seen::default(), Seen::default());
        self.round += 1;
    }

    fn watch(&mut self, pages: usize, time: Duration, now: Duration) {
        self.window.add(pages, time);
        if self.window.batches < WINDOW {
            return;
        }
        let measured = if self.chosen == Way::Atomic { self.atomic } else { self.doublewrite };
        let factor = self.window.per_page() / measured.per_page().max(1e-9);
        self.window = Seen::default();
        let has_shifted = !(1.0 / SHIFT..=SHIFT).contains(&factor);
        if has_shifted && now.saturating_sub(self.chosen_at) >= REMEASURE_SOONEST {
            self.begin();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = 64;

    /// Feeds batches of which each takes what `cost` says per page, until `until`; returns how many went atomically.
    fn feed(trial: &mut Trial, now: &mut Duration, until: Duration, cost: impl Fn(Way) -> u64) -> (u32, u32) {
        let (mut atomic, mut doubled) = (0, 0);
        while *now < until {
            let turn = trial.next(*now);
            match turn.way {
                Way::Atomic => atomic += 1,
                _ => doubled += 1,
            }
            let time = Duration::from_micros(cost(turn.way) * PAGES as u64);
            *now += time;
            trial.took(turn, PAGES, time, *now);
        }
        (atomic, doubled)
    }

    #[test]
    fn the_faster_way_is_kept_and_few_batches_are_spent_on_finding_out() {
        for (atomic, doublewrite, winner) in [(100, 200, Way::Atomic), (200, 100, Way::Doublewrite)] {
            let (mut trial, mut now) = (Trial::default(), Duration::ZERO);
            let cost = |way| if way == Way::Atomic { atomic } else { doublewrite };
            let (by_atomic, doubled) = feed(&mut trial, &mut now, Duration::from_secs(20), cost);
            assert_eq!(trial.chosen(), winner);
            let lost = if winner == Way::Atomic { doubled } else { by_atomic };
            assert!(lost <= BATCHES_MIN + TURN, "{lost} batches went the slower way");
            assert!(
                trial.outcome().contains("100") && trial.outcome().contains("200"),
                "{}",
                trial.outcome()
            );
        }
    }

    #[test]
    fn it_is_measured_anew_when_the_load_changes_and_when_it_is_old() {
        let (mut trial, mut now) = (Trial::default(), Duration::ZERO);
        feed(&mut trial, &mut now, Duration::from_secs(60), |way| if way == Way::Atomic { 100 } else { 200 });
        assert_eq!(trial.chosen(), Way::Atomic);
        // The device becomes slow for atomic writes: noticed at once.
        let soon = now + Duration::from_secs(20);
        feed(&mut trial, &mut now, soon, |way| if way == Way::Atomic { 500 } else { 200 });
        assert_eq!(trial.chosen(), Way::Doublewrite);
        // It recovers, which the doublewrite cannot feel: found out when the measurement is old.
        let later = now + REMEASURE_LATEST + Duration::from_secs(20);
        feed(&mut trial, &mut now, later, |way| if way == Way::Atomic { 100 } else { 200 });
        assert_eq!(trial.chosen(), Way::Atomic);
    }

    #[test]
    fn batches_of_an_earlier_measurement_do_not_count() {
        let (mut trial, mut now) = (Trial::default(), Duration::ZERO);
        let late = trial.next(now);
        feed(&mut trial, &mut now, Duration::from_secs(5), |way| if way == Way::Atomic { 100 } else { 200 });
        let before = trial.window.batches;
        trial.took(late, PAGES, Duration::from_secs(9), now);
        assert_eq!(trial.window.batches, before);
    }
}
