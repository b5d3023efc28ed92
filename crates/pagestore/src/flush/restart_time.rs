//! How long a restart after a crash would take now, and what may be left to it.
//!
//! Recovery looks for proof that the log ends where it seems to, reads whole copies of pages, opens and syncs
//! files, reads the log from the checkpoint to the end, and each page that it [names](super::named_pages):
//!
//! ```text
//!   part that does not depend on the age                      search / log rate + copies / copy rate
//!                                                             + files / file rate
//!   log                                                     + log / log rate
//!   pages                                                   + pages / page rate
//!   where that is more than recovery holds at a time:
//!     the log behind what fitted, once more                 + part behind * log / log rate
//!     pages of several parts, as far as the pool has        + (reads + writes) / page rate
//!       not kept them, and the writes that make room
//! ```
//!
//! The rates are this machine's: [measured](crate::recovery::rates) by recoveries, and pages also by what
//! this process has read itself. Before anything was measured, guesses stand in.
//!
//! A restart is to keep within a **target** (`untorn_recovery_target`). Without a setting it is ten seconds
//! and the time in which the storage reads the whole buffer pool: a restart has to read what was in use
//! anyway. Such a target steers how early pages are written. One that was set is a bound: where pages cannot
//! be written fast enough for it, writers wait, as they do for a log that is full
//! ([`RedoLog::set_age_limit`](redo::RedoLog::set_age_limit)).
//!
//! What a target allows is an age. Where the log takes most of the time, it is what is left for it when the
//! pages are read: with more log come few more pages. Where the pages take most of it, it is the age at which
//! as many are named as there is time for, if they are as dense all over the log. In between it is in
//! between. Either is the present age where a restart would take just the target.

use parking_lot::Mutex;
use std::time::Duration;

use crate::recovery::rates::{Kind, RecoveryRates};

/// Part of the default target that does not depend on the pool.
const BASE: f64 = 10.0;
/// The target a setting may ask for at least, seconds: less could not be kept.
const TARGET_MIN: f64 = 1.0;
/// And at most, seconds: a century is no bound, and a `Duration` near its own maximum could not be made from
/// seconds again.
const TARGET_MAX: f64 = 100.0 * 365.0 * 86_400.0;
/// Part of the target that dirty pages may take.
const PAGES_PART: f64 = 0.75;
/// The age may always be this part of the capacity: with less, writers would wait for each batch.
const AGE_PART_MIN: u64 = 32;
/// And at least this, for a few batches of pages.
const AGE_MIN: u64 = 1 << 20;
/// A change of a page logs this much at least, by and large.
const CHANGE_BYTES_MIN: f64 = 64.0;
/// What this process's reads have shown counts up to this age.
const SHOWN_FOR: Duration = Duration::from_secs(600);

/// What a restart would find now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// Bytes from the checkpoint to the end of the log.
    pub(crate) log: u64,
    /// Bytes behind the end that are searched.
    pub(crate) search: u64,
    /// Pages that the log names.
    pub(crate) pages: u64,
    /// Those of them that are not in their files.
    pub(crate) dirty: u64,
    /// How often a page of them became dirty.
    pub(crate) became_dirty: u64,
    /// Pages that recovery changes at a time.
    pub(crate) pages_at_a_time: u64,
    /// Bytes of log that a change of a page took by and large, as far as that is known.
    pub(crate) change_bytes: f64,
    /// Bytes of log whose changes it holds at a time.
    pub(crate) log_at_a_time: u64,
    /// Frames of the pool.
    pub(crate) frames: u64,
    /// Files that may have to be opened.
    pub(crate) files: u64,
    /// Copies in the doublewrite files whose pages are looked at.
    pub(crate) copies: u64,
}

/// How long that takes, seconds.
#[derive(Debug, Clone, Copy)]
struct Parts {
    fixed: f64,
    log: f64,
    pages: f64,
}

/// What the target allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Allowed {
    /// Bytes of log from the checkpoint on.
    pub(crate) age: f64,
    /// Dirty pages.
    pub(crate) dirty: f64,
    /// The target was set: writers wait for it.
    pub(crate) is_bound: bool,
}

impl Allowed {
    /// The most the age may become, bytes, in a log of this capacity.
    pub(crate) fn limit(&self, capacity: u64) -> u64 {
        (self.age as u64).max(least_age(capacity)).min(capacity)
    }

    /// The same if it is a bound, otherwise the capacity.
    pub(crate) fn bound(&self, capacity: u64) -> u64 {
        if self.is_bound { self.limit(capacity) } else { capacity }
    }

    /// Whether less would be needed than any load can do with.
    pub(crate) fn is_out_of_reach(&self, capacity: u64) -> bool {
        self.is_bound && self.age < least_age(capacity) as f64
    }
}

fn least_age(capacity: u64) -> u64 {
    (capacity / AGE_PART_MIN).max(AGE_MIN).min(capacity)
}

/// What was measured, and the target.
#[derive(Debug)]
pub(crate) struct RestartTime {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rates: RecoveryRates,
    /// A recovery has added to them.
    learned: bool,
    /// Pages a second that this process's own reads have shown, and when.
    shown: Option<(f64, Duration)>,
    /// Seconds; `None`: by the machine.
    target: Option<f64>,
}

impl State {
    /// Things of this kind that are done in a second.
    fn rate(&self, kind: Kind) -> f64 {
        let measured = self.rates.of(kind);
        match (kind, self.shown) {
            // A volume may have become slow since: what it does now counts. It shares what it does with
            // clients, so more than a recovery has shown is not expected of it.
            (Kind::Pages, Some((shown, _))) => measured.map_or(shown, |measured| measured.min(shown)),
            _ => measured.unwrap_or(kind.guess()),
        }
    }

    fn parts(&self, found: &Found) -> Parts {
        let rate = |kind| self.rate(kind);
        let fixed = found.search as f64 / rate(Kind::Log)
            + found.files.min(found.pages) as f64 / rate(Kind::Files)
            + found.copies.min(found.pages) as f64 / rate(Kind::Copies);
        let (log, pages) = (found.log as f64, found.pages as f64);
        let times = |of: f64, holds: u64| (of / holds.max(1) as f64).max(1.0);
        let batches = times(pages, found.pages_at_a_time).max(times(log, found.log_at_a_time));
        let behind = 1.0 - 1.0 / batches;
        // How often pages are wanted batch by batch, at most, beyond the first time.
        let change_bytes = found.change_bytes.max(CHANGE_BYTES_MIN);
        let changes_at_a_time = found.log_at_a_time as f64 / change_bytes;
        let at_a_time = pages.min(found.pages_at_a_time as f64).min(changes_at_a_time);
        let wanted = ((batches - 1.0) * at_a_time).min(log / change_bytes);
        let wanted = if batches > 1.0 { wanted.max(found.became_dirty as f64) } else { 0.0 };
        let again = (wanted - pages).max(0.0);
        let in_pool = (found.frames as f64 / pages.max(1.0)).min(1.0);
        let reads = pages + again * (1.0 - in_pool);
        // What comes next needs the frames of what came before; the last ones stay. What was in its file is
        // not written.
        let writes = (reads - found.frames as f64).max(0.0) * found.dirty as f64 / pages.max(1.0);
        Parts {
            fixed,
            log: log * (1.0 + behind) / rate(Kind::Log),
            pages: (reads + writes) / rate(Kind::Pages),
        }
    }

    fn target(&self, frames: u64) -> f64 {
        self.target.unwrap_or_else(|| BASE + frames as f64 / self.rate(Kind::Pages))
    }
}

impl RestartTime {
    pub(crate) fn new(target: Option<Duration>, rates: RecoveryRates) -> RestartTime {
        let state = State { rates, learned: false, shown: None, target: None };
        let time = RestartTime { state: Mutex::new(state) };
        time.set_target(target);
        time
    }

    /// Sets the target; `None` leaves it to the machine.
    pub(crate) fn set_target(&self, target: Option<Duration>) {
        self.state.lock().target = target.map(|target| target.as_secs_f64().clamp(TARGET_MIN, TARGET_MAX));
    }

    /// The target for a pool of this size.
    pub(crate) fn target(&self, frames: usize) -> Duration {
        Duration::from_secs_f64(self.state.lock().target(frames as u64))
    }

    /// What a restart would take that finds this.
    pub(crate) fn estimate(&self, found: &Found) -> Duration {
        let Parts { fixed, log, pages } = self.state.lock().parts(found);
        Duration::from_secs_f64((fixed + log + pages).min(TARGET_MAX))
    }

    /// How old and how many dirty pages may be, where a restart would find this now.
    pub(crate) fn allowed(&self, found: &Found) -> Allowed {
        let state = self.state.lock();
        let parts = state.parts(found);
        let is_bound = state.target.is_some();
        let target = state.target(found.frames);
        // By itself it leaves the time to read the pool to the pages.
        let pool = if is_bound { 0.0 } else { target - BASE };
        let fixed = if is_bound { parts.fixed } else { parts.fixed.min(BASE / 2.0) };
        let left = (target - fixed).max(0.0);
        let for_pages = PAGES_PART * left;
        let (log, log_rate) = match found.log {
            0 => (0.0, state.rate(Kind::Log)),
            log => (log as f64, log as f64 / parts.log),
        };
        // Both are the age that there is where a restart would take what is left, more where it would take
        // less, and less where more.
        let same_pages = ((left - parts.pages) * log_rate).max(0.0);
        let same_density = log * left / (parts.log + parts.pages).max(f64::MIN_POSITIVE);
        let weight = if for_pages > 0.0 { ((parts.pages - pool) / for_pages).clamp(0.0, 1.0) } else { 1.0 };
        let age = same_pages * (1.0 - weight) + same_density.min(f64::MAX / 4.0) * weight;
        let dirty = if is_bound { for_pages * state.rate(Kind::Pages) } else { f64::INFINITY };
        Allowed { age: age.max(1.0), dirty, is_bound }
    }

    /// A recovery took these times.
    pub(crate) fn recovered(&self, kind: Kind, count: u64, took: Duration) {
        let mut state = self.state.lock();
        state.learned |= state.rates.add(kind, count, took);
    }

    /// The rates, if this process has added to them since this was asked last.
    pub(crate) fn take_learned(&self) -> Option<RecoveryRates> {
        let mut state = self.state.lock();
        std::mem::take(&mut state.learned).then(|| state.rates.clone())
    }

    /// While as many reads were under way as recovery has, this many pages a second were read and written.
    pub(crate) fn shown(&self, pages_per_second: f64, now: Duration) {
        let mut state = self.state.lock();
        let rate = match state.shown {
            Some((rate, _)) => rate + (pages_per_second - rate) / 4.0,
            None => pages_per_second,
        };
        state.shown = Some((rate.max(1.0), now));
    }

    /// Forgets what reads have shown long ago, where a recovery says more.
    pub(crate) fn forget_old(&self, now: Duration) {
        let mut state = self.state.lock();
        let is_old = state.shown.is_some_and(|(_, at)| now.saturating_sub(at) > SHOWN_FOR);
        if is_old && state.rates.of(Kind::Pages).is_some() {
            state.shown = None;
        }
    }
}

#[cfg(test)]
mod tests;
