//! How many pages to write now: a controller without an `io_capacity` to set.
//!
//! Let `age` be the distance from the oldest change that is not in its file to the end of the log, `C` the most it may
//! become, `r` the rate at which the log grows, and `d` how many dirty pages there are per byte of log at the old end
//! of the flush list. Writing `r * d` pages a second takes away the old end as fast as the log grows, so the age stays
//! what it is (feed-forward). Feedback steers the age towards three quarters of `C`:
//!
//! ```text
//!   pages per second = r * d * f(age / C)
//!
//!   f   1.3 |                 ___      written earlier than needed a page is likely to be dirtied again,
//!           |               _/         so a young log is drained hardly at all; near 90 % the age must shrink
//!       1.0 |             _/
//!           |        __--'
//!       0   |____---'
//!           0       0.6  0.75  0.9
//! ```
//!
//! From 7/8 on (async) at least one full batch is always under way; from 15/16 on (sync) there is no limit at all, and
//! `innodb_io_capacity_max`, if set, no longer holds. Writers wait only when the log is really full. When the log has
//! not grown for a second, the pool is drained gently, so that an idle server becomes clean.
//!
//! Pure: figures in, a number out. The cleaner feeds it every few milliseconds.

use std::time::Duration;

/// What the cleaner sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Time since the previous look.
    pub(crate) elapsed: Duration,
    /// End of the log, bytes.
    pub(crate) lsn: u64,
    /// Bytes of log from the oldest unwritten change to the end; 0 when clean.
    pub(crate) age: u64,
    /// The most the age may become, bytes.
    pub(crate) capacity: u64,
    /// Dirty pages at the old end that were counted, and the bytes of log they span.
    pub(crate) tail_pages: usize,
    pub(crate) tail_bytes: u64,
    /// All dirty pages.
    pub(crate) dirty: usize,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Pages to write now.
    pub(crate) pages: usize,
    /// How hard.
    pub(crate) urgency: Urgency,
}

/// How far the log is from full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Nothing happens: drain gently.
    Idle,
    /// Steady state.
    Paced,
    /// Above 7/8: always a batch under way.
    Async,
    /// Above 15/16: as much as the storage takes.
    Sync,
}

/// Time constant of the log rate's average.
const RATE_MEMORY: f64 = 2.0;
/// The log has not grown for this long: idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Pages of one gentle step when idle.
const IDLE_STEP: usize = 64;
/// Less than this is not worth a batch yet, unless it has waited this long.
const STEP_MIN: f64 = 64.0;
const STEP_WAIT_MAX: Duration = Duration::from_millis(200);

/// Remembers rates and fractions of pages between looks.
#[derive(Debug)]
pub(crate) struct Controller {
    io_capacity_max: Option<u32>,
    last_lsn: Option<u64>,
    /// Bytes of log per second.
    rate: f64,
    /// Pages owed.
    credit: f64,
    /// Pages that the optional cap allows.
    allowance: f64,
    quiet: Duration,
    since_step: Duration,
}

impl Controller {
    pub(crate) fn new(io_capacity_max: Option<u32>) -> Self {
        Self {
            io_capacity_max,
            last_lsn: None,
            rate: 0.0,
            credit: 0.0,
            allowance: 0.0,
            quiet: Duration::ZERO,
            since_step: Duration::ZERO,
        }
    }

    /// Changes the cap on pages per second.
    pub(crate) fn set_io_capacity_max(&mut self, max: Option<u32>) {
        self.io_capacity_max = max;
    }

    /// Decides for now.
    pub(crate) fn decide(&mut self, load: Load) -> Decision {
        let seconds = load.elapsed.as_secs_f64().max(1e-6);
        let grown = load.lsn.saturating_sub(self.last_lsn.replace(load.lsn).unwrap_or(load.lsn));
        let weight = 1.0 - (-seconds / RATE_MEMORY).exp();
        self.rate += (grown as f64 / seconds - self.rate) * weight;
        self.quiet = if grown == 0 { self.quiet + load.elapsed } else { Duration::ZERO };
        self.since_step += load.elapsed;
        if let Some(max) = self.io_capacity_max {
            let max = f64::from(max);
            self.allowance = (self.allowance + max * seconds).min(max);
        }
        if load.dirty == 0 {
            self.credit = 0.0;
            return Decision { pages: 0, urgency: Urgency::Paced };
        }
        let urgency = self.urgency(&load);
        let pages = match urgency {
            Urgency::Sync => return Decision { pages: down_to_async(&load), urgency },
            Urgency::Idle => IDLE_STEP as f64,
            Urgency::Paced | Urgency::Async => self.paced(&load, seconds, urgency),
        };
        let capped = if self.io_capacity_max.is_some() { pages.min(self.allowance) } else { pages };
        let pages = capped.min(load.dirty as f64).floor();
        if pages >= 1.0 {
            self.allowance -= pages;
            self.credit = (self.credit - pages).max(0.0);
            self.since_step = Duration::ZERO;
        }
        Decision { pages: pages as usize, urgency }
    }

    fn urgency(&self, load: &Load) -> Urgency {
        let sixteenths = load.age.saturating_mul(16) / load.capacity.max(1);
        match sixteenths {
            15.. => Urgency::Sync,
            14 => Urgency::Async,
            _ if self.quiet >= IDLE_AFTER => Urgency::Idle,
            _ => Urgency::Paced,
        }
    }

    fn paced(&mut self, load: &Load, seconds: f64, urgency: Urgency) -> f64 {
        let density = load.tail_pages as f64 / load.tail_bytes.max(1) as f64;
        let fill = load.age as f64 / load.capacity.max(1) as f64;
        self.credit += self.rate * density * feedback(fill) * seconds;
        self.credit = self.credit.min(load.dirty as f64);
        if urgency == Urgency::Async {
            self.credit = self.credit.max(2.0 * STEP_MIN);
        }
        if self.credit < STEP_MIN && self.since_step < STEP_WAIT_MAX { 0.0 } else { self.credit }
    }
}

/// Pages to write so that the age falls below the async limit.
fn down_to_async(load: &Load) -> usize {
    let surplus = load.age.saturating_sub(load.capacity / 8 * 7) as f64;
    let density = load.tail_pages as f64 / load.tail_bytes.max(1) as f64;
    ((surplus * density) as usize + 2 * STEP_MIN as usize).min(load.dirty)
}

/// The factor on the feed-forward rate at this fill of the log.
fn feedback(fill: f64) -> f64 {
    let line = |x: f64, x0: f64, y0: f64, x1: f64, y1: f64| y0 + (y1 - y0) * (x - x0) / (x1 - x0);
    match fill {
        x if x < 0.6 => line(x, 0.0, 0.0, 0.6, 0.8),
        x if x < 0.75 => line(x, 0.6, 0.8, 0.75, 1.0),
        x => line(x.min(0.9), 0.75, 1.0, 0.9, 1.3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log and a flush list: every page dirtied once, `pages_per_byte` of them.
    struct Plant {
        lsn: u64,
        oldest: u64,
        pages_per_byte: f64,
        capacity: u64,
    }

    impl Plant {
        fn load(&self, elapsed: Duration) -> Load {
            let age = self.lsn - self.oldest;
            let dirty = (age as f64 * self.pages_per_byte) as usize;
            let tail_pages = dirty.min(256);
            let tail_bytes = (tail_pages as f64 / self.pages_per_byte) as u64;
            Load { elapsed, lsn: self.lsn, age, capacity: self.capacity, tail_pages, tail_bytes, dirty }
        }

        fn step(&mut self, controller: &mut Controller, rate: f64) -> Decision {
            let period = Duration::from_millis(20);
            self.lsn += (rate * 0.02) as u64;
            let decision = controller.decide(self.load(period));
            let written = (decision.pages as f64 / self.pages_per_byte) as u64;
            self.oldest = (self.oldest + written).min(self.lsn);
            decision
        }
    }

    #[test]
    fn steady_load_settles_at_three_quarters_without_bursts() {
        let mut plant = Plant { lsn: 1, oldest: 1, pages_per_byte: 1.0 / 3000.0, capacity: 100 << 20 };
        let mut controller = Controller::new(None);
        let rate = 10e6;
        let mut ages = Vec::new();
        let mut per_second = Vec::new();
        for second in 0..300 {
            let pages: usize = (0..50).map(|_| plant.step(&mut controller, rate).pages).sum();
            if second >= 200 {
                ages.push((plant.lsn - plant.oldest) as f64 / plant.capacity as f64);
                per_second.push(pages as f64);
            }
        }
        assert!(ages.iter().all(|age| (0.70..0.80).contains(age)), "{ages:?}");
        let needed = rate * plant.pages_per_byte;
        assert!(per_second.iter().all(|pages| (pages / needed - 1.0).abs() < 0.1), "{needed} {per_second:?}");
    }

    #[test]
    fn a_burst_never_fills_the_log() {
        let mut plant = Plant { lsn: 1, oldest: 1, pages_per_byte: 1.0 / 3000.0, capacity: 100 << 20 };
        let mut controller = Controller::new(None);
        for step in 0..50 * 120 {
            let rate = if (step / 250) % 2 == 0 { 2e6 } else { 40e6 };
            plant.step(&mut controller, rate);
            assert!(plant.lsn - plant.oldest < plant.capacity * 97 / 100, "step {step}");
        }
    }

    #[test]
    fn an_idle_server_becomes_clean() {
        let mut plant = Plant { lsn: 1, oldest: 1, pages_per_byte: 1.0 / 3000.0, capacity: 100 << 20 };
        let mut controller = Controller::new(None);
        for _ in 0..250 {
            plant.step(&mut controller, 5e6);
        }
        for _ in 0..50 * 20 {
            plant.step(&mut controller, 0.0);
        }
        assert!(plant.load(Duration::ZERO).dirty == 0, "{}", plant.load(Duration::ZERO).dirty);
    }

    #[test]
    fn the_cap_holds_until_the_log_is_nearly_full() {
        let mut plant = Plant { lsn: 1, oldest: 1, pages_per_byte: 1.0 / 3000.0, capacity: 100 << 20 };
        let mut controller = Controller::new(Some(500));
        let mut second = 0;
        let mut reached_sync = false;
        for step in 0..50 * 60 {
            if step % 50 == 0 {
                second = 0;
            }
            let decision = plant.step(&mut controller, 10e6);
            reached_sync |= decision.urgency == Urgency::Sync;
            second += decision.pages;
            assert!(reached_sync || second <= 1010, "step {step}: {second}");
        }
        assert!(reached_sync, "500 pages a second are too few for this load");
    }
}
