//! Averages per second since somebody last asked, as SHOW ENGINE INNODB STATUS prints them beside its totals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// Averages cover this long at least, so that two who ask at once do not spoil each other's.
const SHORTEST: Duration = Duration::from_secs(1);

type Figures = Arc<HashMap<&'static str, u64>>;

/// The figures at a point in time.
#[derive(Clone, Default)]
struct Printout {
    at: Duration,
    figures: Figures,
}

/// The last printouts, which averages are counted from.
#[derive(Default)]
pub struct Averages {
    printed: Mutex<LastTwo>,
}

/// Before the first printout, both are the start: nothing, at time 0.
#[derive(Default)]
struct LastTwo {
    last: Printout,
    /// At least [`SHORTEST`] older than `last`.
    earlier: Printout,
}

impl Averages {
    /// The figures of now, beside those of the last printout that is old enough. `at` is the time since the
    /// start.
    pub fn since_last(&self, at: Duration, figures: Vec<(&'static str, u64)>) -> Interval {
        let now = Printout { at, figures: Arc::new(figures.into_iter().collect()) };
        let mut printed = self.printed.lock();
        let before = if at.saturating_sub(printed.last.at) >= SHORTEST {
            let before = std::mem::replace(&mut printed.last, now.clone());
            printed.earlier = before.clone();
            before
        } else {
            printed.earlier.clone()
        };
        Interval { now, before }
    }
}

/// Figures at the two ends of a stretch of time. One that nobody counts is 0.
pub struct Interval {
    now: Printout,
    before: Printout,
}

impl Interval {
    /// Its length, at least a millisecond.
    pub fn seconds(&self) -> f64 {
        self.now.at.saturating_sub(self.before.at).as_secs_f64().max(0.001)
    }

    /// The figure at its end.
    pub fn total(&self, name: &str) -> u64 {
        debug_assert!(self.now.figures.contains_key(name), "nobody counts {name}");
        self.now.figures.get(name).copied().unwrap_or(0)
    }

    /// What a counter grew by in it.
    pub fn growth(&self, name: &str) -> u64 {
        self.total(name).saturating_sub(self.before.figures.get(name).copied().unwrap_or(0))
    }

    /// The same per second.
    pub fn rate(&self, name: &str) -> f64 {
        self.growth(name) as f64 / self.seconds()
    }

    /// Growth of one counter per thousand of another's; `None` if that did not grow.
    pub fn per_mille(&self, part: &str, whole: &str) -> Option<u64> {
        self.growth(part).saturating_mul(1000).checked_div(self.growth(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_counted_since_the_last_who_asked_a_second_ago() {
        let averages = Averages::default();
        let ask = |ms: u64, rows: u64| {
            let of = averages.since_last(Duration::from_millis(ms), vec![("rows", rows), ("gets", 2 * rows)]);
            (of.seconds(), of.growth("rows"), of.rate("rows"))
        };
        assert_eq!(ask(500, 10), (0.5, 10, 20.0), "since the start");
        assert_eq!(ask(2000, 40), (2.0, 40, 20.0), "one half a second after the start is not counted from");
        assert_eq!(ask(2500, 50), (2.5, 50, 20.0), "nor is one of half a second ago");
        assert_eq!(ask(4000, 100), (2.0, 60, 30.0));
        assert_eq!(ask(4000, 100), (2.0, 60, 30.0));
        assert_eq!(ask(5000, 100), (1.0, 0, 0.0));
    }

    #[test]
    fn shares_are_per_mille_of_what_grew() {
        let averages = Averages::default();
        let of =
            averages.since_last(Duration::from_secs(1), vec![("reads", 1), ("requests", 4), ("none", 0)]);
        assert_eq!(of.per_mille("reads", "requests"), Some(250));
        assert_eq!(of.per_mille("reads", "none"), None);
    }
}
