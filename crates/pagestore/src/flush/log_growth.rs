//! When the redo log may become larger by itself, where nobody has set its capacity.
//!
//! Under a load that keeps the log full each page is written when its age has reached the goal. Where most
//! pages that become dirty were changed not long before, the writes between were for nothing but the log's
//! room: with a log longer by half one write would have been for both changes. So from lap to lap of the log
//! this is counted:
//!
//! * pages written because of their age, and for other reasons (to make frames free, with time to spare);
//! * pages that became dirty, and those of them whose last change lay less than half of the log back
//!   ([`Rewrites`]).
//!
//! The capacity rises by half where all of these hold for a whole lap: the age was near its goal, most writes
//! were for the age, and more than a quarter of the pages was changed again so soon. If a write is due with
//! each `A` bytes of log and such a page is changed again after `m` bytes, it is written once for `A + m`;
//! with half of `A` more, once for `1.5 A + m`: less by up to a third.
//!
//! Bounds: what a restart within its target may find (`restart_time.rs`), and what the store's user allows,
//! who knows the pool's size and the room on the disk ([`PageStore::set_log_growth`]). A step that these
//! leave less than half of is not taken.
//!
//! **No back and forth.** The capacity never falls by itself. After a step the next lap at the new age shows
//! what page writes for a MiB of log have become; if they are not less by a sixteenth, nothing is tried for
//! an hour, and for twice as long after each further step that did not pay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::PageStore;

/// Says how many bytes the redo log may have at most. Asked when it would become larger.
pub type MostLog = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Is told the new capacity whenever it rose by itself.
pub type LogRose = Box<dyn Fn(u64) + Send + Sync>;

/// This part of the pages is changed again soon.
const AGAIN: f64 = 0.25;
/// This part of the page writes is for the age.
const FOR_AGE: f64 = 0.75;
/// The age is this part of its goal.
const NEAR: f64 = 0.75;
/// A step must bring the page writes down by this part.
const WORTH_IT: f64 = 1.0 / 16.0;
/// If it does not, nothing is tried for an hour, the first time.
const REST: Duration = Duration::from_secs(3600);
/// Doubled ten times at most: six weeks.
const REST_DOUBLED_MAX: u32 = 10;
const MIB: u64 = 1 << 20;

/// How many pages became dirty, and how many of them again. Under the flush list's mutex.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rewrites {
    /// Again is within this many bytes of log.
    pub(crate) within: u64,
    pub(crate) became_dirty: u64,
    pub(crate) again: u64,
}

impl Rewrites {
    /// A page became dirty by a mini-transaction that begins at `start`; its last change before ended at
    /// `changed` (0: never).
    pub(crate) fn enter(&mut self, start: u64, changed: u64) {
        self.became_dirty += 1;
        // Recovery enters pages with their last change.
        self.again += u64::from((1..=start).contains(&changed) && start - changed <= self.within);
    }
}

/// Pages whose writing was started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Started {
    /// Because of their age.
    pub(crate) for_age: u64,
    /// For another reason.
    pub(crate) otherwise: u64,
}

/// What the cleaner sees; counters as they stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) now: Duration,
    /// End of the log.
    pub(crate) lsn: u64,
    pub(crate) age: u64,
    /// What it is steered for once the log is full.
    pub(crate) goal: u64,
    /// Bytes that the log may have.
    pub(crate) capacity: u64,
    /// What a restart within its target may find, whatever the capacity.
    pub(crate) allowed: f64,
    pub(crate) started: Started,
    pub(crate) rewrites: Rewrites,
}

impl Seen {
    fn is_near_its_goal(&self) -> bool {
        self.age as f64 >= NEAR * self.goal as f64
    }
}

/// What a lap of the log has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lap {
    pages_per_mib: f64,
    for_age: f64,
    again: f64,
}

impl Lap {
    fn between(began: &Seen, seen: &Seen) -> Lap {
        let for_age = (seen.started.for_age - began.started.for_age) as f64;
        let otherwise = (seen.started.otherwise - began.started.otherwise) as f64;
        let became_dirty = seen.rewrites.became_dirty - began.rewrites.became_dirty;
        let again = seen.rewrites.again - began.rewrites.again;
        let part = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
        Lap {
            pages_per_mib: (for_age + otherwise) * MIB as f64 / (seen.lsn - began.lsn).max(1) as f64,
            for_age: part(for_age, for_age + otherwise),
            again: part(again as f64, became_dirty as f64),
        }
    }
}

/// What is to be done, or said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// The capacity becomes `to`, because page writes would fall.
    Raise { to: u64, pages_per_mib: f64, again: f64 },
    /// What page writes for a MiB of log were before the last step, and are now.
    Judged { before: f64, now: f64 },
}

/// Remembers laps between looks.
#[derive(Debug, Default)]
pub(crate) struct LogGrowth {
    began: Option<Seen>,
    /// Page writes for a MiB of log before the step that is still to be judged.
    before: Option<f64>,
    rests_until: Duration,
    /// Steps that did not pay.
    in_vain: u32,
}

impl LogGrowth {
    /// One look. `most`: the most the log may have besides.
    pub(crate) fn look(&mut self, seen: Seen, most: impl Fn() -> u64) -> Option<Step> {
        let began = match self.began {
            Some(began) if began.capacity == seen.capacity && began.lsn <= seen.lsn => began,
            _ => return self.begin(seen),
        };
        if !seen.is_near_its_goal() {
            // Not this load's lap, or the log is not full yet.
            return self.begin(seen);
        }
        if seen.lsn - began.lsn < seen.capacity {
            return None;
        }
        self.began = Some(seen);
        let lap = Lap::between(&began, &seen);
        if let Some(before) = self.before.take() {
            if lap.pages_per_mib > before * (1.0 - WORTH_IT) {
                self.rests_until = seen.now + REST * (1 << self.in_vain.min(REST_DOUBLED_MAX));
                self.in_vain += 1;
            }
            return Some(Step::Judged { before, now: lap.pages_per_mib });
        }
        let pays = lap.again >= AGAIN && lap.for_age >= FOR_AGE && seen.now >= self.rests_until;
        let to = if pays { next_capacity(&seen, most) } else { None }?;
        self.before = Some(lap.pages_per_mib);
        Some(Step::Raise { to, pages_per_mib: lap.pages_per_mib, again: lap.again })
    }

    fn begin(&mut self, seen: Seen) -> Option<Step> {
        self.began = Some(seen);
        None
    }
}

/// A step further, as far as it may go, if that is worth it.
fn next_capacity(seen: &Seen, most: impl Fn() -> u64) -> Option<u64> {
    let worth_it = |to: u64| to >= seen.capacity / 4 * 5;
    let to = (seen.capacity / 2 * 3).min(seen.allowed as u64);
    let to = Some(to).filter(|to| worth_it(*to))?;
    Some(to.min(most()) / MIB * MIB).filter(|to| worth_it(*to))
}

/// Whether the log may grow by itself, and what has become of it.
#[derive(Default)]
pub(crate) struct LogGrowthPlace {
    most: Mutex<Option<MostLog>>,
    rose: Mutex<Option<LogRose>>,
    raises: AtomicU64,
    last: Mutex<String>,
}

impl LogGrowthPlace {
    pub(crate) fn raises(&self) -> u64 {
        self.raises.load(Ordering::Relaxed)
    }
}

impl PageStore {
    /// Lets the capacity of the redo log rise by itself, as far as `most` says whenever it would; `None`:
    /// somebody has set it, and it stays. Returns what was so before.
    pub fn set_log_growth(&self, most: Option<MostLog>) -> Option<MostLog> {
        std::mem::replace(&mut *self.log_growth.most.lock(), most)
    }

    /// Tells of it each time; not after somebody has set the capacity ([`PageStore::set_log_growth`]).
    pub fn when_log_rose(&self, rose: LogRose) {
        *self.log_growth.rose.lock() = Some(rose);
    }

    /// Whether the capacity of the redo log may rise by itself.
    pub fn log_grows_by_itself(&self) -> bool {
        self.log_growth.most.lock().is_some()
    }

    /// The last time that it did, and why; empty if it never did.
    pub fn log_growth_status(&self) -> String {
        self.log_growth.last.lock().clone()
    }

    /// Looks whether it should, and has it rise.
    pub(crate) fn grow_log_if_it_pays(&self, growth: &mut LogGrowth, seen: Seen) {
        // Held to the end: who sets the capacity meanwhile comes after, and has the last word.
        let most = self.log_growth.most.lock();
        let Some(most) = &*most else {
            *growth = LogGrowth::default();
            return;
        };
        match growth.look(seen, || most()) {
            Some(Step::Raise { to, pages_per_mib, again }) => {
                if self.redo.raise_capacity(to).is_err() {
                    return;
                }
                let text = format!(
                    "redo log from {} to {} MiB by itself: of {pages_per_mib:.0} page writes per MiB of log {:.0} % were of pages that \
                     changed again within half of it",
                    seen.capacity / MIB,
                    to / MIB,
                    again * 100.0
                );
                tracing::info!("innodb_redo_log_capacity is not set: {text}");
                *self.log_growth.last.lock() = text;
                self.log_growth.raises.fetch_add(1, Ordering::Relaxed);
                if let Some(rose) = &*self.log_growth.rose.lock() {
                    rose(to);
                }
            }
            Some(Step::Judged { before, now }) => {
                let fell = if now < before { "fell" } else { "did not fall" };
                tracing::info!(
                    "page writes per MiB of log {fell} from {before:.0} to {now:.0} with {} MiB of redo log",
                    seen.capacity / MIB
                );
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 100 * MIB;

    /// A load under which the log is full: a tenth of a lap for each look.
    struct Machine {
        growth: LogGrowth,
        seen: Seen,
        most: u64,
    }

    impl Machine {
        fn new() -> Machine {
            let rewrites = Rewrites { within: 0, became_dirty: 0, again: 0 };
            let seen = Seen {
                now: Duration::ZERO,
                lsn: 1,
                age: CAPACITY / 10 * 9,
                goal: CAPACITY / 10 * 9,
                capacity: CAPACITY,
                allowed: 1e12,
                started: Started::default(),
                rewrites,
            };
            Machine { growth: LogGrowth::default(), seen, most: u64::MAX }
        }

        /// Steps in a stretch in which pages are written at this rate for each MiB, this part of them for the
        /// age, and this part becomes dirty again soon.
        fn run(&mut self, looks: u32, per_mib: f64, for_age: f64, again: f64) -> Vec<Step> {
            let mut steps = Vec::new();
            for _ in 0..looks {
                let (log, written) = (self.seen.capacity / 10, per_mib * self.seen.capacity as f64 / 10.0);
                let written = written / MIB as f64;
                self.seen.now += Duration::from_secs(1);
                self.seen.lsn += log;
                self.seen.started.for_age += (written * for_age) as u64;
                self.seen.started.otherwise += (written * (1.0 - for_age)) as u64;
                self.seen.rewrites.became_dirty += written as u64;
                self.seen.rewrites.again += (written * again) as u64;
                if let Some(step) = self.growth.look(self.seen, || self.most) {
                    if let Step::Raise { to, .. } = step {
                        self.seen.capacity = to;
                        (self.seen.age, self.seen.goal) = (to / 10 * 9, to / 10 * 9);
                    }
                    steps.push(step);
                }
            }
            steps
        }

        fn capacities(&mut self, looks: u32, again: f64) -> Vec<u64> {
            let steps = self.run(looks, 100.0, 1.0, again);
            let raised = steps.iter().filter_map(|step| match step {
                Step::Raise { to, .. } => Some(to / MIB),
                Step::Judged { .. } => None,
            });
            raised.collect()
        }
    }

    #[test]
    fn pages_that_change_again_soon_make_the_log_longer() {
        let mut machine = Machine::new();
        let steps = machine.run(12, 100.0, 1.0, 0.5);
        let [Step::Raise { to, pages_per_mib, again }] = steps[..] else { panic!("{steps:?}") };
        assert_eq!(to, 150 * MIB);
        assert!((pages_per_mib - 100.0).abs() < 1.0 && (again - 0.5).abs() < 0.01);
        let steps = machine.run(12, 70.0, 1.0, 0.1);
        let [Step::Judged { before, now }] = steps[..] else { panic!("{steps:?}") };
        assert!(before > 99.0 && now < 71.0, "{before} {now}");
        assert!(machine.run(100, 70.0, 1.0, 0.1).is_empty(), "few change again");
    }

    #[test]
    fn what_would_not_save_writes_leaves_it() {
        assert!(Machine::new().run(100, 100.0, 1.0, 0.2).is_empty(), "few change again");
        assert!(Machine::new().run(100, 100.0, 0.5, 0.9).is_empty(), "written to make frames free");
        let mut idle = Machine::new();
        idle.seen.age = CAPACITY / 2;
        assert!(idle.run(100, 100.0, 1.0, 0.9).is_empty(), "the log is not full");
    }

    #[test]
    fn a_step_that_did_not_pay_is_the_last_for_an_hour_and_then_for_longer() {
        let mut machine = Machine::new();
        assert_eq!(machine.run(60, 100.0, 1.0, 0.5).len(), 2, "raised and judged");
        assert_eq!(machine.capacities(3600, 0.5), [225]);
        assert_eq!(machine.capacities(3600, 0.5), [], "then for two");
        assert_eq!(machine.capacities(3700, 0.5), [337]);
    }

    #[test]
    fn target_and_room_are_bounds() {
        let mut machine = Machine::new();
        machine.seen.allowed = 1.2 * CAPACITY as f64;
        assert!(machine.capacities(50, 0.9).is_empty(), "less than half a step");
        machine.seen.allowed = 1.3 * CAPACITY as f64;
        assert_eq!(machine.capacities(50, 0.9), [130]);
        let mut machine = Machine::new();
        machine.most = CAPACITY;
        assert!(machine.capacities(50, 0.9).is_empty());
        machine.most = 140 * MIB + 5;
        assert_eq!(machine.capacities(50, 0.9), [140]);
    }

    #[test]
    fn again_is_within_half_of_the_log() {
        let mut rewrites = Rewrites { within: 50, ..Rewrites::default() };
        for (start, changed) in [(1000, 0), (1000, 940), (1000, 950), (1000, 1000), (1000, 1050)] {
            rewrites.enter(start, changed);
        }
        assert_eq!((rewrites.became_dirty, rewrites.again), (5, 2));
    }
}
