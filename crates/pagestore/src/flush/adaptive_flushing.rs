//! How many pages to write now: a controller without an `io_capacity` to set.
//!
//! Let `age` be the distance from the oldest change that is not in its file to the end of the log, `C` the
//! most it may become, `r` the rate at which the log grows, and `d` how many dirty pages there are per byte
//! of log at the old end of the flush list. Writing `r * d` pages a second takes away the old end as fast as
//! the log grows, so the age stays what it is (feed-forward). Feedback steers the age towards a *goal*:
//!
//! ```text
//!   goal = max(C / 8, what a restart applies in a second), at most 3/4 C
//!   fill = 0 for a young log, 0.75 at the goal, 1 when the log is full
//!   pages per second = r * d * f(fill)
//!
//!   f   1.3 |              ___      written earlier than needed a page is likely to be dirtied again, so a
//!           |            _/         young log is not drained at all; well above the goal the age must shrink
//!       1.0 |          _/
//!           |        _/
//!       0   |_______/
//!           0     0.4  0.75  0.9
//! ```
//!
//! So a restart has about a second's work, or an eighth of the log where that is more.
//!
//! **Writing ahead.** Below the goal nothing has to be written, but a device with time to spare may as well
//! shorten the next restart. The cleaner writes one batch at a time for that and then rests three times as
//! long as it took: it takes a quarter of the device when nobody else wants it, and the slower the device
//! answers, the less. Whether it pays is a matter of density: where holding the age would take `r * d` pages
//! a second and that is more than half of what such batches can do, the pages at the old end are hot, and
//! writing them would be to write them again and again for nothing. Then they are left to grow old.
//!
//! From 7/8 on (async) at least one full batch is always under way; from 15/16 on (sync) there is no limit at
//! all, and `innodb_io_capacity_max`, if set, no longer holds. Writers wait only when the log is really full.
//! When the log has not grown for a second, the pool is drained gently, so that an idle server becomes clean.
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
    /// Age that a restart is meant to find at most, bytes: see [`goal`].
    pub(crate) goal: u64,
    /// Whether a batch may be written ahead now, and if so how many pages a second such batches manage.
    pub(crate) ahead: Option<f64>,
}

/// The age to steer for: what recovery applies in a second at `apply_rate` bytes per second, or 1/8 of the
/// capacity.
pub(crate) fn goal(capacity: u64, apply_rate: u64) -> u64 {
    apply_rate.max(capacity / 8).min(capacity / 4 * 3)
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
    /// The device has time to spare.
    Ahead,
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
/// Pages of one batch written ahead.
const AHEAD_STEP: usize = 128;
/// Writing ahead stops at this part of the goal: what is left costs a restart nothing, and a page that
/// is changed now and then is not written each time.
const AHEAD_FROM: u64 = 16;
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
        let mut urgency = self.urgency(&load);
        let mut pages = match urgency {
            Urgency::Sync => return Decision { pages: down_to_async(&load), urgency },
            Urgency::Idle => IDLE_STEP as f64,
            Urgency::Ahead | Urgency::Paced | Urgency::Async => self.paced(&load, seconds, urgency),
        };
        if pages < 1.0 && self.pays_to_write_ahead(&load) {
            urgency = Urgency::Ahead;
            pages = AHEAD_STEP as f64;
        }
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

    /// Pages a second that would keep the age what it is.
    fn to_hold(&self, load: &Load) -> f64 {
        self.rate * load.tail_pages as f64 / load.tail_bytes.max(1) as f64
    }

    fn pays_to_write_ahead(&self, load: &Load) -> bool {
        let Some(manages) = load.ahead else { return false };
        load.age > load.goal / AHEAD_FROM && self.to_hold(load) < manages / 2.0
    }

    fn paced(&mut self, load: &Load, seconds: f64, urgency: Urgency) -> f64 {
        self.credit += self.to_hold(load) * feedback(fill(load)) * seconds;
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

/// How far the age is: 0.75 at the goal, 1 at the capacity.
fn fill(load: &Load) -> f64 {
    let (age, goal, capacity) = (load.age as f64, load.goal.max(1) as f64, load.capacity.max(1) as f64);
    if age <= goal { 0.75 * age / goal } else { 0.75 + 0.25 * (age - goal) / (capacity - goal).max(1.0) }
}

/// The factor on the feed-forward rate at this fill.
fn feedback(fill: f64) -> f64 {
    let line = |x: f64, x0: f64, y0: f64, x1: f64, y1: f64| y0 + (y1 - y0) * (x - x0) / (x1 - x0);
    match fill {
        x if x < 0.4 => 0.0,
        x if x < 0.75 => line(x, 0.4, 0.0, 0.75, 1.0),
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
        goal: u64,
        ahead: Option<f64>,
    }

    fn plant() -> Plant {
        let capacity = 100 << 20;
        Plant {
            lsn: 1,
            oldest: 1,
            pages_per_byte: 1.0 / 3000.0,
            capacity,
            goal: capacity / 4 * 3,
            ahead: None,
        }
    }

    impl Plant {
        fn load(&self, elapsed: Duration) -> Load {
            let age = self.lsn - self.oldest;
            let dirty = (age as f64 * self.pages_per_byte) as usize;
            let tail_pages = dirty.min(256);
            let tail_bytes = (tail_pages as f64 / self.pages_per_byte) as u64;
            let (lsn, capacity, goal, ahead) = (self.lsn, self.capacity, self.goal, self.ahead);
            Load { elapsed, lsn, age, capacity, tail_pages, tail_bytes, dirty, goal, ahead }
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
    fn the_goal_is_a_second_of_recovery_or_an_eighth() {
        assert_eq!(goal(800, 50), 100);
        assert_eq!(goal(800, 300), 300);
        assert_eq!(goal(800, 5000), 600);
    }

    #[test]
    fn steady_load_settles_at_the_goal_without_bursts() {
        for part in [0.125, 0.4, 0.75] {
            settles(part);
        }
    }

    fn settles(part: f64) {
        let mut plant = plant();
        plant.goal = (plant.capacity as f64 * part) as u64;
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
        let near = part * 0.9..part + 0.05;
        assert!(ages.iter().all(|age| near.contains(age)), "{part}: {ages:?}");
        let needed = rate * plant.pages_per_byte;
        assert!(per_second.iter().all(|pages| (pages / needed - 1.0).abs() < 0.1), "{needed} {per_second:?}");
    }

    #[test]
    fn a_burst_never_fills_the_log() {
        let mut plant = plant();
        let mut controller = Controller::new(None);
        for step in 0..50 * 120 {
            let rate = if (step / 250) % 2 == 0 { 2e6 } else { 40e6 };
            plant.step(&mut controller, rate);
            assert!(plant.lsn - plant.oldest < plant.capacity * 97 / 100, "step {step}");
        }
    }

    #[test]
    fn an_idle_server_becomes_clean() {
        let mut plant = plant();
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
    fn a_light_load_leaves_time_to_write_ahead() {
        let mut ages = [None, Some(2000.0)].map(|ahead| {
            let mut plant = plant();
            plant.ahead = ahead;
            let mut controller = Controller::new(None);
            for _ in 0..50 * 120 {
                plant.step(&mut controller, 1e6);
            }
            (plant.lsn - plant.oldest, plant.goal)
        });
        let (ahead, goal) = ages[1];
        assert!(ahead <= goal / 16 + (1 << 20), "{ages:?}");
        // Negative control.
        ages[0].0 /= 4;
        assert!(ages[0].0 > ahead, "{ages:?}");
    }

    /// A set of pages that all change with every 2 MB of log. Written once per goal's worth of log they cost
    /// little; written as soon as there is time they would cost the more the more time there is.
    #[test]
    fn hot_pages_are_not_written_again_and_again() {
        const HOT: usize = 1000;
        const TURN: u64 = 2 << 20;
        let (rate, seconds, capacity) = (10_000_000u64, 120, 100u64 << 20);
        let goal = capacity / 2;
        let mut controller = Controller::new(None);
        let mut dirtied = [None; HOT];
        let (mut lsn, mut next, mut written) = (1u64, 0u64, 0u64);
        for _ in 0..50 * seconds {
            lsn += rate / 50;
            while next < lsn {
                dirtied[(next / (TURN / HOT as u64)) as usize % HOT].get_or_insert(next);
                next += TURN / HOT as u64;
            }
            let mut list: Vec<(u64, usize)> = dirtied
                .iter()
                .enumerate()
                .filter_map(|(page, start)| start.map(|start| (start, page)))
                .collect();
            list.sort_unstable();
            let oldest = list.first().map_or(lsn, |(start, _)| *start);
            let tail = &list[..list.len().min(512)];
            let tail_end = if list.len() < 512 { lsn } else { tail[511].0 };
            let decision = controller.decide(Load {
                elapsed: Duration::from_millis(20),
                lsn,
                age: lsn - oldest,
                capacity,
                tail_pages: tail.len(),
                tail_bytes: tail_end - oldest,
                dirty: list.len(),
                goal,
                ahead: Some(2000.0),
            });
            for (_, page) in list.into_iter().take(decision.pages) {
                dirtied[page] = None;
                written += 1;
            }
        }
        let turns_of_goal = rate * seconds / goal;
        assert!(written < 2 * turns_of_goal * HOT as u64, "{written} writes, {turns_of_goal} times the goal");
        assert!(written > turns_of_goal * HOT as u64 / 2, "{written} writes: the log would fill");
    }

    #[test]
    fn the_cap_holds_until_the_log_is_nearly_full() {
        let mut plant = plant();
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
