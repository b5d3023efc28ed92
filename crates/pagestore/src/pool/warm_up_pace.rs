//! How eagerly the warm-up reads while clients miss pages as well.
//!
//! What the device gives decides. Where its requests are what is scarce, the warm-up's large ones bring many
//! times the pages that clients would have read with them, and everybody is warm soon. Where its bytes are,
//! a page read for later is one that somebody waits for now, and those who ask come first. Nobody says which
//! it is, so it is tried: for a moment the one way, for a moment the other, each judged by all pages that
//! came, the clients' among them. As long as clients miss nothing there is nobody to give way to.

use std::time::Duration;

/// Seconds of a trial of one way.
const TRIAL: f64 = 0.1;
/// Seconds for which the better one is kept.
const KEPT: f64 = 1.0;
/// Being eager must bring this many times the pages.
const WORTH_IT: f64 = 1.5;

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Several large requests under way all the time.
    Eager,
    /// One, then a rest as long as it took.
    Polite,
}

impl Way {
    /// Pages submitted together: one request if they are neighbours.
    pub(super) fn together(self) -> usize {
        match self {
            Way::Eager => 32,
            Way::Polite => 16,
        }
    }

    /// So many times that may be under way.
    pub(super) fn under_way(self) -> usize {
        match self {
            Way::Eager => 8,
            Way::Polite => 1,
        }
    }
}

/// Pages read so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// By anybody.
    pub(super) all: u64,
    /// Because somebody asked for them.
    pub(super) asked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    TryEager,
    /// And the pages a second that came by the other way.
    TryPolite(f64),
    Kept,
}

/// The way now, and what is being tried.
#[derive(Debug)]
pub(super) struct Pace {
    way: Way,
    phase: Phase,
    began: Duration,
    before: Seen,
}

impl Pace {
    pub(super) fn new(now: Duration, seen: Seen) -> Pace {
        Pace { way: Way::Eager, phase: Phase::TryEager, began: now, before: seen }
    }

    /// The way to read from now on.
    pub(super) fn way(&mut self, now: Duration, seen: Seen) -> Way {
        let seconds = now.saturating_sub(self.began).as_secs_f64();
        if seconds < if self.phase == Phase::Kept { KEPT } else { TRIAL } {
            return self.way;
        }
        let rate = seen.all.saturating_sub(self.before.all) as f64 / seconds;
        let alone = seen.asked == self.before.asked;
        (self.way, self.phase) = match self.phase {
            _ if alone => (Way::Eager, Phase::TryEager),
            Phase::TryEager => (Way::Polite, Phase::TryPolite(rate)),
            Phase::TryPolite(eager) if eager > WORTH_IT * rate => (Way::Eager, Phase::Kept),
            Phase::TryPolite(_) => (Way::Polite, Phase::Kept),
            Phase::Kept => (Way::Eager, Phase::TryEager),
        };
        (self.began, self.before) = (now, seen);
        self.way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of 60 seconds in which the warm-up was eager, on a device that gives this many pages a second
    /// by each way while clients ask for `asked` a second.
    fn eager_part(eager: u64, polite: u64, asked: u64) -> f64 {
        let step = Duration::from_millis(10);
        let (mut now, mut seen) = (Duration::ZERO, Seen::default());
        let mut pace = Pace::new(now, seen);
        let mut steps = 0;
        for _ in 0..6000 {
            let way = pace.way(now, seen);
            steps += u32::from(way == Way::Eager);
            now += step;
            seen.all += if way == Way::Eager { eager } else { polite } / 100;
            seen.asked += asked / 100;
        }
        f64::from(steps) / 6000.0
    }

    #[test]
    fn nobody_else_reads() {
        assert_eq!(eager_part(3000, 3000, 0), 1.0);
    }

    #[test]
    fn where_bytes_are_scarce_clients_come_first() {
        let part = eager_part(3000, 3000, 1000);
        assert!(part < 0.15, "{part}");
    }

    #[test]
    fn where_requests_are_scarce_large_ones_pay() {
        let part = eager_part(12_000, 4000, 1000);
        assert!(part > 0.85, "{part}");
    }
}
