//! How long a restart after a crash would take now.
//!
//! Recovery reads the log from the checkpoint to the end, and each page that it names: the dirty ones, by
//! and large, because pages are written oldest change first. So a restart takes
//!
//! ```text
//!   age / log rate + dirty pages / page rate
//! ```
//!
//! Both rates are this machine's: learned at the last recovery. Before anything was measured, guesses stand
//! in.
//!
//! A restart is to keep within a **target** (`untorn_recovery_target`). Without a setting it is ten seconds
//! and the time in which the storage reads the whole buffer pool: a restart has to read what was in use
//! anyway. Such a target bounds the log and not the number of dirty pages, which are never more than the
//! pool has.

use parking_lot::Mutex;
use std::time::Duration;

/// Part of the default target that does not depend on the pool.
const BASE: f64 = 10.0;
/// The target a setting may ask for at least, seconds: less could not be kept.
const TARGET_MIN: f64 = 1.0;
/// And at most, seconds: a century is no bound, and a `Duration` near its own maximum could not be made from
/// seconds again.
const TARGET_MAX: f64 = 100.0 * 365.0 * 86_400.0;
/// Part of the target that dirty pages may take.
const PAGES_PART: f64 = 0.75;
/// Bytes of log per second, before a recovery has shown it.
const LOG_RATE_GUESS: f64 = (64 << 20) as f64;
/// Pages per second, before anything has shown it.
const PAGE_RATE_GUESS: f64 = 2000.0;
/// Slower rates are not believed: one recovery on a disk that stumbled would have everything written at once
/// from then on.
const LOG_RATE_MIN: f64 = (8 << 20) as f64;
const PAGE_RATE_MIN: f64 = 200.0;
/// A recovery of less says little.
const LOG_BYTES_MIN: u64 = 8 << 20;
const PAGES_MIN: u64 = 1000;

/// The rates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    /// Bytes of log read and taken apart per second.
    log: f64,
    /// Pages read per second.
    pages: f64,
}

/// What was measured, and the target.
#[derive(Debug)]
pub(crate) struct RestartTime {
    rates: Mutex<Rates>,
    /// Seconds; `None`: by the machine.
    target: Mutex<Option<f64>>,
}

/// What the target allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Allowed {
    /// Bytes of log from the oldest change that is not in its file.
    pub(crate) age: f64,
    /// Dirty pages.
    pub(crate) dirty: f64,
}

impl RestartTime {
    pub(crate) fn new(target: Option<Duration>) -> RestartTime {
        let rates = Mutex::new(Rates { log: LOG_RATE_GUESS, pages: PAGE_RATE_GUESS });
        let time = RestartTime { rates, target: Mutex::new(None) };
        time.set_target(target);
        time
    }

    /// Sets the target; `None` leaves it to the machine.
    pub(crate) fn set_target(&self, target: Option<Duration>) {
        *self.target.lock() = target.map(|target| target.as_secs_f64().clamp(TARGET_MIN, TARGET_MAX));
    }

    /// The target for a pool of this size.
    pub(crate) fn target(&self, pool_pages: usize) -> Duration {
        let pages = self.rates.lock().pages;
        let by_machine = || BASE + pool_pages as f64 / pages;
        Duration::from_secs_f64(self.target.lock().unwrap_or_else(by_machine))
    }

    /// What a restart would take now.
    pub(crate) fn estimate(&self, age: u64, dirty: usize) -> Duration {
        let rates = *self.rates.lock();
        Duration::from_secs_f64(age as f64 / rates.log + dirty as f64 / rates.pages)
    }

    /// How old and how many dirty pages may be.
    pub(crate) fn allowed(&self, dirty: usize) -> Allowed {
        let rates = *self.rates.lock();
        let Some(target) = *self.target.lock() else {
            return Allowed { age: BASE * rates.log, dirty: f64::INFINITY };
        };
        let for_pages = (dirty as f64 / rates.pages).min(PAGES_PART * target);
        Allowed { age: (target - for_pages) * rates.log, dirty: PAGES_PART * target * rates.pages }
    }

    /// A recovery took these times: to read this much log, and to apply it to this many pages.
    pub(crate) fn recovered(&self, log: (u64, Duration), pages: (u64, Duration)) {
        let mut rates = self.rates.lock();
        if log.0 >= LOG_BYTES_MIN && !log.1.is_zero() {
            rates.log = (log.0 as f64 / log.1.as_secs_f64()).max(LOG_RATE_MIN);
        }
        if pages.0 >= PAGES_MIN && !pages.1.is_zero() {
            rates.pages = (pages.0 as f64 / pages.1.as_secs_f64()).max(PAGE_RATE_MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rates_are_what_a_recovery_showed() {
        let time = RestartTime::new(None);
        time.recovered((100 << 20, SECOND), (5000, 2 * SECOND));
        let estimate = time.estimate(200 << 20, 2500).as_secs_f64();
        assert!((estimate - 3.0).abs() < 1e-6, "{estimate}");
        // A disk that stumbled.
        let slow = RestartTime::new(None);
        slow.recovered((100 << 20, 1000 * SECOND), (5000, 1000 * SECOND));
        assert!(slow.estimate(0, 2000) <= 10 * SECOND);
        // Too little to tell.
        time.recovered((1 << 20, SECOND), (10, 20 * SECOND));
        assert_eq!(time.estimate(200 << 20, 2500).as_secs_f64(), estimate);
    }

    #[test]
    fn by_itself_the_target_is_the_time_to_read_the_pool_and_a_little() {
        let time = RestartTime::new(None);
        time.recovered((100 << 20, SECOND), (2000, SECOND));
        assert_eq!(time.target(20_000), Duration::from_secs(20));
        let allowed = time.allowed(1 << 20);
        assert_eq!((allowed.age, allowed.dirty), ((1000 << 20) as f64, f64::INFINITY));
        time.set_target(Some(Duration::from_secs(3)));
        assert_eq!(time.target(20_000), Duration::from_secs(3));
    }

    #[test]
    fn the_extreme_targets_are_harmless() {
        for target in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX), Duration::MAX]
        {
            let time = RestartTime::new(Some(target));
            assert!(time.target(usize::MAX) >= SECOND, "{target:?}");
            let allowed = time.allowed(usize::MAX);
            assert!(allowed.age.is_finite() && allowed.age > 0.0, "{target:?}: {allowed:?}");
            assert!(allowed.dirty.is_finite() && allowed.dirty > 0.0, "{target:?}: {allowed:?}");
        }
    }

    #[test]
    fn what_is_allowed_keeps_the_target() {
        let time = RestartTime::new(Some(Duration::from_secs(8)));
        time.recovered((100 << 20, SECOND), (2000, SECOND));
        for dirty in [0, 4000, 12_000] {
            let allowed = time.allowed(dirty);
            let restart = time.estimate(allowed.age as u64, dirty).as_secs_f64();
            assert!((restart - 8.0).abs() < 0.01, "{dirty} dirty pages: {restart}");
        }
        // More pages than the target has time for are to be written: the log is not squeezed to nothing.
        assert_eq!(time.allowed(1 << 20), time.allowed(12_000));
        assert_eq!(time.allowed(0).dirty, 12_000.0);
    }
}
