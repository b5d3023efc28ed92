//! How many pages to write now: a controller without an `io_capacity` to set.
//!
//! Let `age` be the distance from the oldest change that is not in its file to the end of the log, `L` the
//! most it may become (the log's capacity, or what a restart within its target may find), and `r` the rate at
//! which the log grows. The age is steered for a **goal**, as near to `L` as is safe: the older a page is
//! when it is written, the more changes the one write is for.
//!
//! ```text
//!   goal = min(29/32 L, L - two seconds of r), but not less than L/4
//! ```
//!
//! **Feed-forward.** Every dirty page has a deadline: the moment when its age reaches the goal. The
//! [histogram of ages](crate::flush::age_histogram) says how many pages must be written with each byte of
//! log so that all deadlines are kept, the far ones included. This *pressure* times `r` is the rate at which
//! pages are written. It is even from the first seconds of a load on, and it is its own feedback: below the
//! goal less is written than would hold the age, above it more.
//!
//! **Pace.** What is due is not written in one go: a batch is spread over the time until the next one is due
//! ([`Decision::spread`]), so that commits and reads find the device's queue short.
//!
//! **Writing ahead.** Below the goal a device with time to spare may as well shorten the next restart. The
//! cleaner writes one batch at a time for that and then rests three times as long as it took: it takes a
//! quarter of the device when nobody else wants it, and the slower the device answers, the less. Whether it
//! pays depends on the pages. Where many of those that become dirty were changed shortly before, or where
//! holding the age would take more than half of what such batches can do, they are hot, and writing them
//! early only means writing them again soon. Then they are left to grow old, unless the load is so light
//! that this costs next to nothing and a restart would take more than a sixteenth of its target.
//!
//! From 15/16 of the **bound** on (async) at least one full batch is always under way; from 31/32 on (sync)
//! there is no limit at all. The bound is `L` if the target was set by somebody, and the log's capacity
//! otherwise. Writers wait only when it is really reached. A mini-transaction that may log a quarter of the
//! log is refused long before the goal, so anybody who waits for room puts the controller into the sync state
//! too. When the log has not grown for a second, the pool is drained gently, so that an idle server becomes
//! clean.
//!
//! **The cap** (`innodb_io_capacity_max`) holds below 15/16 of the bound. Above it would not make fewer pages
//! be written, because writers wait for them; it would only make them wait. So there it is passed over.
//! Pages written to make frames free are not held back by it, and count.
//!
//! Pure: figures in, a decision out. The cleaner feeds it every few milliseconds.

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
    /// What has to be free of the log for those who wait for room in it, bytes; 0 when nobody waits.
    pub(crate) room_wanted: u64,
    /// The log's capacity, bytes.
    pub(crate) capacity: u64,
    /// The most the age should become, bytes: see the essay.
    pub(crate) limit: u64,
    /// The most it may become before writers wait.
    pub(crate) bound: u64,
    /// Pages that must be written with each byte of log so that none grows older than
    /// [`Controller::goal`].
    pub(crate) pressure: f64,
    /// Dirty pages that are older than [`async_age`] of the bound.
    pub(crate) overdue: usize,
    /// All dirty pages.
    pub(crate) dirty: usize,
    /// Many of the pages that become dirty now were changed shortly before.
    pub(crate) hot: bool,
    /// Dirty pages that a restart within its target may find.
    pub(crate) dirty_max: f64,
    /// What a restart would take now, as a part of its target.
    pub(crate) restart: f64,
    /// Whether a batch may be written ahead now, and if so how many pages a second such batches manage.
    pub(crate) ahead: Option<f64>,
    /// Pages that may be started now.
    pub(crate) room: Room,
}

/// Pages for which there are batches left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// In the steady state.
    pub(crate) paced: usize,
    /// When the log is nearly full.
    pub(crate) urgent: usize,
}

/// From this age on a batch is always under way.
pub(crate) fn async_age(bound: u64) -> u64 {
    bound / 16 * 15
}

/// Whether somebody waits for room in the log that begins with a dirty page. Where the age is too small for
/// that, the room will come without another page being written: from a sync under way, say.
fn pages_are_in_the_way(load: &Load) -> bool {
    load.capacity.saturating_sub(load.age) < load.room_wanted
}

/// Pages a second that are due because a restart within its target may not find all that are dirty.
fn surplus(load: &Load) -> f64 {
    (load.dirty as f64 - load.dirty_max).max(0.0) / SURPLUS_WITHIN
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Pages to write now.
    pub(crate) pages: usize,
    /// How hard.
    pub(crate) urgency: Urgency,
    /// How long the writes may take: zero for as fast as the storage does them.
    pub(crate) spread: Duration,
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
    /// Above 15/16 of the bound: always a batch under way.
    Async,
    /// Above 31/32 of it, or somebody waits for room in the log: as much as the storage takes.
    Sync,
}

/// Time constant of the log rate's average, seconds.
const RATE_MEMORY: f64 = 2.0;
/// The checkpoint follows the age after the pages are synced: log that grows in this time is kept free.
const CHECKPOINT_LAG: f64 = 2.0;
/// The log has not grown for this long: idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Pages of one gentle step when idle.
const IDLE_STEP: usize = 64;
/// Pages of one batch written ahead.
const AHEAD_STEP: usize = 128;
/// Writing ahead stops at this part of the goal: what is left costs a restart nothing, and a page that
/// is changed now and then is not written each time.
const AHEAD_FROM: f64 = 16.0;
/// Hot pages are written ahead only when a restart would take more than this part of its target.
const HOT_FROM: f64 = 1.0 / 16.0;
/// Less than this is not worth a batch yet, unless it has waited this long.
const STEP_MIN: f64 = 64.0;
const STEP_WAIT_MAX: Duration = Duration::from_millis(200);
/// Part of the time until the next batch over which one is spread: the rest is for its syncs.
const SPREAD: f64 = 0.75;
/// Pages that are more than the restart's target allows are written within this time, seconds.
const SURPLUS_WITHIN: f64 = 2.0;

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
        if self.io_capacity_max != max {
            (self.io_capacity_max, self.allowance) = (max, 0.0);
        }
    }

    /// This many of the pages that were decided on have not been started: the cap has them left, and they are
    /// still due.
    pub(crate) fn give_back(&mut self, decision: Decision, pages: usize) {
        if decision.urgency == Urgency::Sync {
            return;
        }
        if self.io_capacity_max.is_some() {
            self.allowance += pages as f64;
        }
        if matches!(decision.urgency, Urgency::Paced | Urgency::Async) {
            self.credit += pages as f64;
        }
    }

    /// Pages were started to make frames free: the cap has fewer left by that number.
    pub(crate) fn charge(&mut self, pages: usize) {
        if let Some(max) = self.io_capacity_max {
            self.allowance = (self.allowance - pages as f64).max(-f64::from(max));
        }
    }

    /// The age to steer for where it should not be more than `limit`, bytes.
    pub(crate) fn goal(&self, limit: u64) -> u64 {
        let safe = limit as f64 * 29.0 / 32.0;
        let with_lag = limit as f64 - CHECKPOINT_LAG * self.rate;
        (safe.min(with_lag).max(limit as f64 / 4.0) as u64).max(1)
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
            return Decision { pages: 0, urgency: Urgency::Paced, spread: Duration::ZERO };
        }
        let mut urgency = self.urgency(&load);
        let mut pages = match urgency {
            Urgency::Sync => {
                let pages = (load.overdue + 2 * STEP_MIN as usize).min(load.dirty).min(load.room.urgent);
                self.charge(pages);
                return Decision { pages, urgency, spread: Duration::ZERO };
            }
            Urgency::Idle => IDLE_STEP as f64,
            Urgency::Ahead | Urgency::Paced | Urgency::Async => self.paced(&load, seconds, urgency),
        };
        if pages < 1.0 && self.pays_to_write_ahead(&load) {
            urgency = Urgency::Ahead;
            pages = AHEAD_STEP as f64;
        }
        let capped = if urgency < Urgency::Async { self.capped(pages) } else { pages };
        let room = if urgency == Urgency::Async { load.room.urgent } else { load.room.paced };
        // What finds no room is not forgotten: the credit stays.
        let pages = capped.min(load.dirty.min(room) as f64).floor();
        if pages >= 1.0 {
            self.charge(pages as usize);
            self.credit = (self.credit - pages).max(0.0);
            self.since_step = Duration::ZERO;
        }
        let spread = if urgency == Urgency::Paced { self.spread(pages, &load) } else { Duration::ZERO };
        Decision { pages: pages as usize, urgency, spread }
    }

    fn urgency(&self, load: &Load) -> Urgency {
        match load.age {
            _ if pages_are_in_the_way(load) => Urgency::Sync,
            age if age >= load.bound / 32 * 31 => Urgency::Sync,
            age if age >= async_age(load.bound) => Urgency::Async,
            _ if self.quiet >= IDLE_AFTER => Urgency::Idle,
            _ => Urgency::Paced,
        }
    }

    /// As many of the pages as the cap leaves. No batch that is too small to be worth it: what is capped is
    /// written later, not in more pieces.
    fn capped(&self, pages: f64) -> f64 {
        if self.io_capacity_max.is_none() || pages <= self.allowance {
            return pages;
        }
        let is_worth_it = self.allowance >= STEP_MIN || self.since_step >= STEP_WAIT_MAX;
        if is_worth_it { self.allowance.max(0.0) } else { 0.0 }
    }

    /// Whether the cap would hold back what has to be written.
    pub(crate) fn is_passed_over(&self, decision: Decision) -> bool {
        self.allowance <= 0.0 && self.io_capacity_max.is_some() && decision.urgency >= Urgency::Async
    }

    /// Pages a second that are due.
    fn due(&self, load: &Load) -> f64 {
        self.rate * load.pressure + surplus(load)
    }

    /// Whether more is due because too many pages are dirty than because of their age.
    pub(crate) fn is_mostly_surplus(&self, load: &Load) -> bool {
        surplus(load) > self.rate * load.pressure
    }

    /// Until about as many pages are due again.
    fn spread(&self, pages: f64, load: &Load) -> Duration {
        Duration::from_secs_f64((pages / self.due(load).max(1.0) * SPREAD).min(STEP_WAIT_MAX.as_secs_f64()))
    }

    /// Writing ahead pays where the pages do not become dirty again too fast: at this age, as many pages as
    /// are dirty now would have to be written with each `age` bytes of log.
    fn pays_to_write_ahead(&self, load: &Load) -> bool {
        let Some(manages) = load.ahead else { return false };
        let to_hold = self.rate * load.dirty as f64 / load.age.max(1) as f64;
        if load.hot {
            return load.restart > HOT_FROM && to_hold < manages / 16.0;
        }
        let least = self.goal(load.limit) as f64 / AHEAD_FROM;
        load.age as f64 > least && to_hold < manages / 2.0
    }

    fn paced(&mut self, load: &Load, seconds: f64, urgency: Urgency) -> f64 {
        self.credit += self.due(load) * seconds;
        self.credit = self.credit.min(load.dirty as f64);
        if urgency == Urgency::Async {
            self.credit = self.credit.max(2.0 * STEP_MIN);
        }
        if self.credit < STEP_MIN && self.since_step < STEP_WAIT_MAX { 0.0 } else { self.credit }
    }
}

#[cfg(test)]
mod tests;
