//! How fast the log grows, and how fast the zeros for a larger circle can be written: when the circle has to
//! begin to grow, and at which pace, follows from the two ([`crate::growth`]).

use crate::Lsn;
use std::time::Duration;

/// What a device is believed to take of zeros beside its load before it was tried, bytes per second.
const ZEROS_FIRST: f64 = 32e6;
/// The rate of the log is looked at over at least this time.
const LOOK: Duration = Duration::from_millis(20);
/// From this size on, a group write hardly minds that its sync has metadata to write, too.
const LARGE_GROUP: f64 = (256 << 10) as f64;
/// Time constants of the log rate's average, in seconds: what comes faster than before counts soon.
const RISING: f64 = 0.3;
const FALLING: f64 = 3.0;

/// The two rates, in bytes per second.
pub(crate) struct Rates {
    log: f64,
    /// When the log was looked at, and where it ended.
    last: Option<(Duration, Lsn)>,
    zeros: f64,
    /// Bytes of a group write.
    group: f64,
}

impl Rates {
    pub(crate) fn new() -> Rates {
        Rates { log: 0.0, last: None, zeros: ZEROS_FIRST, group: 0.0 }
    }

    /// The log ended at `end` at this time.
    pub(crate) fn log_ends(&mut self, now: Duration, end: Lsn) {
        let Some((then, before)) = self.last else {
            self.last = Some((now, end));
            return;
        };
        let passed = now.saturating_sub(then);
        if passed < LOOK {
            return;
        }
        self.last = Some((now, end));
        let rate = end.0.saturating_sub(before.0) as f64 / passed.as_secs_f64();
        let memory = if rate > self.log { RISING } else { FALLING };
        self.log += (rate - self.log) * (1.0 - (-passed.as_secs_f64() / memory).exp());
    }

    /// A group of this many bytes is written.
    pub(crate) fn group_written(&mut self, bytes: u64) {
        self.group += (bytes as f64 - self.group) / 8.0;
    }

    /// Whether the log is written in large pieces, as a large transaction has it written.
    pub(crate) fn has_large_groups(&self) -> bool {
        self.group >= LARGE_GROUP
    }

    /// This many bytes of zeros took this long, pauses not counted.
    pub(crate) fn zeros_written(&mut self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(1e-5);
        self.zeros += (rate - self.zeros) / 8.0;
    }

    /// By how much the log grows while this many zeros are written as fast as the device takes them.
    pub(crate) fn log_while_zeros(&self, bytes: u64) -> u64 {
        (self.log * bytes as f64 / self.zeros) as u64
    }

    /// By how much the log grows in this time.
    pub(crate) fn log_in(&self, time: Duration) -> u64 {
        (self.log * time.as_secs_f64()) as u64
    }

    /// How long to rest after `bytes` of zeros that took `took`, if `rest` more are to follow in half of the
    /// time that the log takes for `left`. An eighth of what the device takes at least: a circle that is to
    /// grow does so soon, also where the log has all but stopped.
    pub(crate) fn rest_after(&self, bytes: u64, took: Duration, rest: u64, left: u64) -> Duration {
        let time = left as f64 / self.log.max(1.0) / 2.0;
        let pace = (rest as f64 / time.max(1e-3)).max(self.zeros / 8.0);
        Duration::from_secs_f64(bytes as f64 / pace).saturating_sub(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_log_that_becomes_faster_is_known_soon_and_one_that_pauses_is_remembered() {
        let mut rates = Rates::new();
        let mut end = 8192;
        for step in 0..1000 {
            end += 20_000;
            rates.log_ends(step * MS, Lsn(end));
        }
        let rate = rates.log_in(Duration::from_secs(1));
        assert!((19_000_000..=20_200_000).contains(&rate), "{rate}");
        rates.log_ends(1500 * MS, Lsn(end));
        assert!(rates.log_in(Duration::from_secs(1)) > rate / 2, "half a second without work");
        assert!(rates.log_in(Duration::from_secs(1)) < rate);
    }

    #[test]
    fn a_large_transaction_is_told_from_many_small_ones() {
        let mut rates = Rates::new();
        (0..100).for_each(|_| rates.group_written(64 << 10));
        assert!(!rates.has_large_groups());
        (0..8).for_each(|_| rates.group_written(1 << 20));
        assert!(rates.has_large_groups());
        (0..20).for_each(|_| rates.group_written(512));
        assert!(!rates.has_large_groups());
    }

    #[test]
    fn zeros_are_written_in_half_of_the_time_there_is_and_never_slower_than_an_eighth() {
        let mut rates = Rates::new();
        (0..1000).for_each(|step| rates.log_ends(step * 20 * MS, Lsn(8192 + u64::from(step) * 200_000)));
        (0..100).for_each(|_| rates.zeros_written(1 << 20, 10 * MS));
        // 10 MB/s of log, 105 MB/s of zeros: 100 MB of zeros while 50 MB of log are written, in 2.5 s.
        let rest = rates.rest_after(1_000_000, 10 * MS, 100_000_000, 50_000_000);
        assert!((14..16).contains(&rest.as_millis()), "{rest:?}");
        let rest = rates.rest_after(1_000_000, 10 * MS, 100_000_000, 50_000_000_000);
        assert!((65..67).contains(&rest.as_millis()), "{rest:?}");
        assert!(rates.rest_after(1_000_000, 10 * MS, 100_000_000, 0).is_zero(), "there is no time");
        let while_zeros = rates.log_while_zeros(100_000_000);
        assert!((9_000_000..10_000_000).contains(&while_zeros), "{while_zeros}");
    }
}
