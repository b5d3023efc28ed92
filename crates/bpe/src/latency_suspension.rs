//! Is the tier worth it? (Errors switch it off elsewhere: `error_switch_off.rs`.) Read latencies of the tier
//! and of the data files, and the decision that follows.
//!
//! ```text
//!              LOOKS looks without advantage        too little advantage even so
//!   active ────────────────────────────────▶ trial ──────────────────────────────▶ suspended
//!     ▲  ◀──────────────────────────────────────┘ enough, or too few reads to tell      │
//!     └──────────────── LOOKS looks with a clear advantage, or RETRY_AFTER ─────────────┘
//! ```
//!
//! Latencies are summed up per look (about a second) and smoothed over looks. An active tier is doubted after
//! [`LOOKS`] looks in a row at which it was not [`SUSPEND_BELOW`] times faster than the data files; while it
//! is suspended, one look-up in [`PROBE_EVERY`] is still answered, which measures it, and after as many looks
//! at which it was [`RESUME_ABOVE`] times faster it is active again. Between the two ratios nothing changes.
//! A suspended tier that holds too little to be probed is believed to be as fast as it last was: it is
//! resumed when the data files have become that much slower, but not before it has been suspended for a time
//! that doubles with each time that this was wrong, from [`PATIENCE`] to [`PATIENCE_MAX`]; and in any case
//! after [`RETRY_AFTER`].
//!
//! A tier that does its work makes the data files faster: they have next to nothing to do. Judged by that it
//! would suspend itself, the data files would be slow again, and so on. What counts is what the data files
//! take *alone*, under the load that there is now. A warm tier after a restart finds everything, and nobody
//! knows that figure yet. So a tier that is doubted is put on **trial** first: for [`TRIAL_LASTS`] no look-up
//! is answered, and what the data files then take is what they take alone. The reads of the first half are
//! not counted: most of them were submitted while the data files were idle. Only if the tier is not
//! [`SUSPEND_BELOW`] times faster than that is it suspended.
//!
//! What the data files take alone is remembered, from trials and from the time the tier is suspended: it
//! halves every [`ALONE_HALVES_AFTER`], so that now and then it is measured again. A trial that sees fewer
//! than [`SAMPLES_MIN`] reads goes on until it has them, at most for [`TRIAL_LASTS_MAX`], and then decides
//! nothing: there is no load by which to judge. A trial costs reads of the data files, so there is one in
//! [`TRIAL_EVERY`] at most; until then a tier that is doubted stays as it is.
//!
//! Suspended means: nothing is admitted, and nothing but probes is found. Invalidation goes on as always, so
//! what the tier holds stays current. During a trial pages are admitted too. One that has been suspended for
//! [`PART_KEPT_AFTER`] keeps no more of its pages than a small share of the pool's memory can describe
//! ([`crate::options`]); the rest of its tables' memory is the pool's again until it is resumed.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use page::PageId;
use page::extension::Source;
use parking_lot::Mutex;

use crate::table::hash;

/// Suspended when data file latency / tier latency stays below this.
pub(crate) const SUSPEND_BELOW: f64 = 1.5;
/// Resumed when it stays above this.
pub(crate) const RESUME_ABOVE: f64 = 1.8;
/// Looks in a row it takes to change.
pub(crate) const LOOKS: u32 = 3;
/// Reads of a source that a look must have to count.
const SAMPLES_MIN: u64 = 8;
/// While suspended, one look-up in this many is answered.
pub(crate) const PROBE_EVERY: u32 = 32;
/// A tier suspended for this long keeps only part of its pages: long enough for a disk that stumbles to
/// recover.
pub(crate) const PART_KEPT_AFTER: Duration = Duration::from_secs(15);
/// A suspended tier without enough probes is resumed on trial after this long.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Least time of a suspension that ends because the data files have become slow, the tier not being probed,
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// and what that time grows to.
pub(crate) const PATIENCE_MAX: Duration = Duration::from_secs(320);
/// What the data files took without the tier counts half after this long.
pub(crate) const ALONE_HALVES_AFTER: Duration = Duration::from_secs(600);
/// The length of a trial, of which the first half does not count,
pub(crate) const TRIAL_LASTS: Duration = Duration::from_millis(200);
/// or until it has seen enough reads, but no longer than this.
pub(crate) const TRIAL_LASTS_MAX: Duration = Duration::from_millis(500);
/// Time from the beginning of a trial to that of the next, at least.
pub(crate) const TRIAL_EVERY: Duration = Duration::from_secs(30);
/// Weight of a new look in the smoothed latency.
const WEIGHT: f64 = 0.3;

/// Reads since the last look.
#[derive(Default)]
struct Window {
    nanoseconds: AtomicU64,
    reads: AtomicU64,
}

impl Window {
    fn add(&self, time: Duration) {
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets the reads so far.
    fn clear(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.nanoseconds.store(0, Ordering::Relaxed);
    }

    /// Mean in seconds, when there were enough reads; they then count as looked at.
    fn take(&self) -> Option<f64> {
        let reads = self.reads.load(Ordering::Relaxed);
        if reads < SAMPLES_MIN {
            return None;
        }
        self.reads.fetch_sub(reads, Ordering::Relaxed);
        let sum = self.nanoseconds.swap(0, Ordering::Relaxed);
        Some(sum as f64 / reads as f64 / 1e9)
    }
}

#[derive(Default)]
struct Judgement {
    tier: Option<f64>,
    data: Option<f64>,
    /// What the data files took without the tier, and when that was.
    alone: Option<(f64, Duration)>,
    /// Looks in a row that spoke for a change.
    against: u32,
    changed_at: Duration,
    /// How long the next suspension lasts at least, or this one.
    patience: Duration,
    /// A look since the change had tier reads.
    measured: bool,
    /// When the last trial began.
    tried_at: Option<Duration>,
    /// The first half of the trial under way is over.
    counting: bool,
}

impl Judgement {
    /// What the data files would take without the tier, in seconds, as far as that is remembered; 0 if not.
    fn alone_now(&self, now: Duration) -> f64 {
        self.alone.map_or(0.0, |(alone, then)| {
            let halvings = now.saturating_sub(then).as_secs_f64() / ALONE_HALVES_AFTER.as_secs_f64();
            alone * 0.5_f64.powf(halvings)
        })
    }
}

/// What a look led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Unchanged,
    /// It is not answering for a moment, to see what the data files take alone.
    Trial,
    /// The trial is over, and the tier goes on.
    Acquitted,
    Suspended,
    Resumed,
}

/// Whether look-ups are answered and pages taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Mode {
    Active,
    /// Pages are taken, and none is found.
    Trial,
    /// No page is taken, and few are found.
    Suspended,
}

/// Measures and decides.
#[derive(Default)]
pub(crate) struct Adapt {
    tier: Window,
    data: Window,
    /// A [`Mode`].
    mode: AtomicU8,
    /// Moves on with every look, so that others among the pages are probes.
    probed: AtomicU32,
    judgement: Mutex<Judgement>,
}

impl Adapt {
    /// A read is over.
    pub(crate) fn took(&self, from: Source, time: Duration) {
        match from {
            Source::Tier => self.tier.add(time),
            Source::DataFile => self.data.add(time),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Active,
            1 => Mode::Trial,
            _ => Mode::Suspended,
        }
    }

    fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.mode() == Mode::Suspended
    }

    /// How long it has been suspended; zero when it is not.
    pub(crate) fn suspended_for(&self, now: Duration) -> Duration {
        let judgement = self.judgement.lock();
        if self.is_suspended() { now.saturating_sub(judgement.changed_at) } else { Duration::ZERO }
    }

    /// Whether a look-up of the page is answered while the tier is suspended. By the page's hash, so that
    /// nothing that others use is written.
    pub(crate) fn probes(&self, page: PageId) -> bool {
        let turn = self.probed.load(Ordering::Relaxed);
        ((hash(page) >> 20) as u32).wrapping_add(turn).is_multiple_of(PROBE_EVERY)
    }

    /// Smoothed latencies of tier and data files in seconds, if they were measured.
    pub(crate) fn latencies(&self) -> (Option<f64>, Option<f64>) {
        let judgement = self.judgement.lock();
        (judgement.tier, judgement.data)
    }

    /// Forgets what was measured of the tier: it is another file now.
    pub(crate) fn start_over(&self, now: Duration) {
        let mut judgement = self.judgement.lock();
        let (data, alone) = (judgement.data, judgement.alone);
        *judgement = Judgement { data, alone, changed_at: now, ..Judgement::default() };
        self.set_mode(Mode::Active);
    }

    /// Takes what was measured since the last look into account.
    pub(crate) fn look(&self, now: Duration) -> Verdict {
        let mode = self.mode();
        if mode == Mode::Trial {
            return self.look_at_trial(now);
        }
        let mut judgement = self.judgement.lock();
        let (tier, data) = (self.tier.take(), self.data.take());
        smooth(&mut judgement.tier, tier);
        smooth(&mut judgement.data, data);
        judgement.measured |= tier.is_some();
        let suspended = mode == Mode::Suspended;
        if suspended {
            self.probed.fetch_add(1, Ordering::Relaxed);
            if data.is_some() {
                judgement.alone = judgement.data.map(|data| (data, now));
            }
        }
        let speaks_for_change = match (judgement.tier, judgement.data) {
            // Only a fresh measurement of the tier counts; the data files may rest while everything is found.
            // But a suspended tier that was not measured at all is compared by what it was.
            (Some(tier_time), Some(data_time))
                if tier.is_some() || (suspended && !judgement.measured && data.is_some()) =>
            {
                let ratio = data_time.max(judgement.alone_now(now)) / tier_time.max(1e-9);
                Some(if suspended { ratio > RESUME_ABOVE } else { ratio < SUSPEND_BELOW })
            }
            _ => None,
        };
        match speaks_for_change {
            Some(true) => judgement.against += 1,
            Some(false) => judgement.against = 0,
            None => {}
        }
        if suspended {
            return self.resume_if_due(&mut judgement, now);
        }
        let may_try = judgement.tried_at.is_none_or(|then| now >= then + TRIAL_EVERY);
        if judgement.against < LOOKS || !may_try {
            return Verdict::Unchanged;
        }
        judgement.against = 0;
        judgement.tried_at = Some(now);
        judgement.counting = false;
        self.set_mode(Mode::Trial);
        Verdict::Trial
    }

    fn resume_if_due(&self, judgement: &mut Judgement, now: Duration) -> Verdict {
        let lasted = now.saturating_sub(judgement.changed_at);
        let retry = !judgement.measured && lasted >= RETRY_AFTER;
        let may_resume = judgement.measured || lasted >= judgement.patience;
        if (judgement.against < LOOKS || !may_resume) && !retry {
            return Verdict::Unchanged;
        }
        if retry {
            judgement.tier = None;
        }
        self.change(judgement, Mode::Active, now);
        Verdict::Resumed
    }

    fn change(&self, judgement: &mut Judgement, mode: Mode, now: Duration) {
        judgement.against = 0;
        judgement.measured = false;
        judgement.changed_at = now;
        self.set_mode(mode);
    }

    /// Ends a trial when its time has come. To be called several times while it lasts.
    pub(crate) fn look_at_trial(&self, now: Duration) -> Verdict {
        if self.mode() != Mode::Trial {
            return Verdict::Unchanged;
        }
        let mut judgement = self.judgement.lock();
        let lasted = judgement.tried_at.map_or(TRIAL_LASTS_MAX, |then| now.saturating_sub(then));
        if lasted >= TRIAL_LASTS / 2 && !judgement.counting {
            judgement.counting = true;
            self.data.clear();
        }
        let measured = if lasted >= TRIAL_LASTS { self.data.take() } else { None };
        if measured.is_none() && lasted < TRIAL_LASTS_MAX {
            return Verdict::Unchanged;
        }
        if measured.is_none() {
            // Not to be mixed with what the data files take beside the tier.
            self.data.clear();
        }
        if let Some(alone) = measured {
            judgement.alone = Some((alone, now));
            let tier = judgement.tier.unwrap_or_default().max(1e-9);
            if alone / tier < SUSPEND_BELOW {
                judgement.data = Some(alone);
                judgement.patience = (2 * judgement.patience).clamp(PATIENCE, PATIENCE_MAX);
                self.change(&mut judgement, Mode::Suspended, now);
                return Verdict::Suspended;
            }
            judgement.patience = Duration::ZERO;
        }
        self.set_mode(Mode::Active);
        Verdict::Acquitted
    }
}

fn smooth(smoothed: &mut Option<f64>, new: Option<f64>) {
    if let Some(new) = new {
        *smoothed = Some(smoothed.map_or(new, |old| old + WEIGHT * (new - old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A machine: what the tier takes, and the data files beside the tier and alone.
    #[derive(Clone, Copy)]
    struct Machine {
        tier: Duration,
        beside: Duration,
        alone: Duration,
    }

    impl Machine {
        /// The data files do not care whether the tier helps.
        fn steady(tier: Duration, data: Duration) -> Machine {
            Machine { tier, beside: data, alone: data }
        }
    }

    struct Keeper {
        adapt: Adapt,
        now: Duration,
        looks: u32,
        trials: u32,
        /// Probes of the suspended tier find something.
        holds_pages: bool,
        /// Time spent on trials.
        on_trial: Duration,
    }

    impl Keeper {
        fn new() -> Keeper {
            Keeper {
                adapt: Adapt::default(),
                now: Duration::ZERO,
                looks: 0,
                trials: 0,
                holds_pages: true,
                on_trial: Duration::ZERO,
            }
        }

        /// A tenth of a second with `reads` pages wanted, and a look as the keeper takes them.
        fn tenth(&mut self, machine: Machine, reads: u32) -> Verdict {
            let mode = self.adapt.mode();
            // A few are not in the tier.
            for read in 0..reads {
                match mode {
                    Mode::Active if read % 4 > 0 => self.adapt.took(Source::Tier, machine.tier),
                    Mode::Active => self.adapt.took(Source::DataFile, machine.beside),
                    Mode::Suspended if read % 4 == 0 && self.holds_pages => {
                        self.adapt.took(Source::Tier, machine.tier)
                    }
                    _ => self.adapt.took(Source::DataFile, machine.alone),
                }
            }
            self.now += 100 * MS;
            self.looks += 1;
            if mode == Mode::Trial {
                self.on_trial += 100 * MS;
                return self.adapt.look_at_trial(self.now);
            }
            let verdict =
                if self.looks.is_multiple_of(10) { self.adapt.look(self.now) } else { Verdict::Unchanged };
            self.trials += u32::from(verdict == Verdict::Trial);
            verdict
        }

        /// Seconds until the verdict, if it comes within `seconds`.
        fn until(&mut self, wanted: Verdict, machine: Machine, seconds: u32) -> Option<u32> {
            (0..seconds * 10).find(|_| self.tenth(machine, 40) == wanted).map(|tenths| tenths / 10)
        }
    }

    #[test]
    fn is_suspended_when_not_faster_and_resumed_when_clearly_faster() {
        let mut keeper = Keeper::new();
        assert_eq!(keeper.until(Verdict::Trial, Machine::steady(MS, 3 * MS), 50), None);
        let seconds = keeper.until(Verdict::Suspended, Machine::steady(MS, MS), 50);
        assert!(seconds.is_some_and(|seconds| seconds >= LOOKS), "{seconds:?}");
        assert!(keeper.adapt.is_suspended());
        // Between the two ratios it stays as it is, in either state.
        assert_eq!(keeper.until(Verdict::Resumed, Machine::steady(10 * MS, 16 * MS), 50), None);
        assert!(keeper.until(Verdict::Resumed, Machine::steady(MS, 4 * MS), 50).is_some());
        assert_eq!(keeper.adapt.mode(), Mode::Active);
        assert_eq!(keeper.until(Verdict::Trial, Machine::steady(10 * MS, 16 * MS), 50), None);
    }

    /// A restart with a warm tier: the data files are idle, and nobody knows what they take alone.
    #[test]
    fn a_warm_tier_is_never_suspended_for_the_data_files_being_idle() {
        let mut keeper = Keeper::new();
        let machine = Machine { tier: 3 * MS, beside: 4 * MS, alone: 20 * MS };
        assert_eq!(keeper.until(Verdict::Suspended, machine, 1500), None);
        // What was measured is remembered: after more than two halvings it is measured again.
        assert!((1..=3).contains(&keeper.trials), "{} trials", keeper.trials);
        // Until the data files become faster.
        assert!(keeper.until(Verdict::Suspended, Machine::steady(3 * MS, 4 * MS), 3000).is_some());
        assert!(keeper.until(Verdict::Resumed, machine, 10).is_some());
    }

    /// Reads that were submitted while the data files were idle say nothing of what they take alone.
    #[test]
    fn the_first_half_of_a_trial_does_not_count() {
        let mut keeper = Keeper::new();
        let idle = Machine { tier: 3 * MS, beside: 3 * MS, alone: 3 * MS };
        assert!(keeper.until(Verdict::Trial, idle, 10).is_some());
        assert_eq!(keeper.tenth(idle, 400), Verdict::Unchanged);
        assert_eq!(keeper.tenth(Machine { alone: 20 * MS, ..idle }, 40), Verdict::Acquitted);
    }

    /// Nobody reads enough to tell: neither suspended, nor on trial all the time.
    #[test]
    fn a_trial_without_load_decides_nothing_and_is_rare() {
        let mut keeper = Keeper::new();
        let machine = Machine::steady(MS, MS);
        let seconds = 600;
        for tenth in 0..seconds * 10 {
            // Enough to be doubted, nothing during a trial.
            let reads = if keeper.adapt.mode() == Mode::Trial { tenth % 2 } else { 40 };
            assert_ne!(keeper.tenth(machine, reads), Verdict::Suspended);
        }
        assert!((10..=seconds / 30 + 1).contains(&keeper.trials), "{} trials", keeper.trials);
        assert!(keeper.on_trial <= Duration::from_secs(u64::from(seconds)) / 50, "{:?}", keeper.on_trial);
        // Few reads are waited for, as long as a trial may last.
        let mut keeper = Keeper::new();
        assert!(keeper.until(Verdict::Trial, machine, 10).is_some());
        let verdicts: Vec<Verdict> = (0..5).map(|_| keeper.tenth(machine, 3)).collect();
        assert_eq!(verdicts[..3], [Verdict::Unchanged; 3]);
        assert_eq!(verdicts[3], Verdict::Suspended, "9 reads are enough");
    }

    #[test]
    fn while_it_is_suspended_few_look_ups_are_answered_and_not_always_the_same() {
        let mut keeper = Keeper::new();
        assert!(keeper.until(Verdict::Suspended, Machine::steady(MS, MS), 50).is_some());
        let probes = |adapt: &Adapt| -> Vec<u32> {
            (0..PROBE_EVERY * 100).filter(|page| adapt.probes(PageId::new(3, *page))).collect()
        };
        let first = probes(&keeper.adapt);
        assert!((60..150).contains(&first.len()), "{}", first.len());
        keeper.until(Verdict::Resumed, Machine::steady(MS, MS), 1);
        assert!(first.iter().all(|page| !probes(&keeper.adapt).contains(page)));
    }

    #[test]
    fn a_few_slow_reads_change_nothing() {
        let adapt = Adapt::default();
        for look in 1..50 {
            (0..10).for_each(|_| adapt.took(Source::Tier, MS));
            (0..10).for_each(|_| adapt.took(Source::DataFile, 10 * MS));
            assert_eq!(adapt.look(Duration::from_secs(look)), Verdict::Unchanged);
        }
        for _ in 0..SAMPLES_MIN - 1 {
            adapt.took(Source::Tier, 1000 * MS);
        }
        assert_eq!(adapt.look(Duration::from_secs(60)), Verdict::Unchanged);
        assert_eq!(adapt.mode(), Mode::Active);
    }

    /// Suspended when there was little to do, and nearly empty: no probe finds anything when the load comes.
    #[test]
    fn a_tier_that_cannot_be_probed_is_resumed_when_the_data_files_become_slow() {
        let mut keeper = Keeper { holds_pages: false, ..Keeper::new() };
        assert!(keeper.until(Verdict::Suspended, Machine::steady(MS, MS), 50).is_some());
        assert_eq!(keeper.until(Verdict::Resumed, Machine::steady(MS, MS), 40), None, "nothing has changed");
        let resumed = keeper.until(Verdict::Resumed, Machine::steady(MS, 10 * MS), 15);
        assert!(resumed.is_some(), "the data files are ten times slower");
        // On a disk that both share it is wrong each time, and done less and less often.
        let (mut slow, mut times) = (20 * MS, Vec::new());
        for _ in 0..3 {
            assert!(keeper.until(Verdict::Suspended, Machine::steady(slow, slow), 100).is_some());
            slow *= 4;
            times.extend(keeper.until(Verdict::Resumed, Machine::steady(slow, slow), 59));
        }
        assert!(times.len() == 3 && times.is_sorted_by(|a, b| 2 * a <= b + 6), "{times:?}");
    }

    #[test]
    fn a_suspended_tier_that_cannot_be_probed_is_resumed_after_a_while() {
        let mut keeper = Keeper::new();
        assert!(keeper.until(Verdict::Suspended, Machine::steady(MS, MS), 50).is_some());
        assert_eq!(keeper.adapt.look(keeper.now + Duration::from_secs(30)), Verdict::Unchanged);
        assert_eq!(keeper.adapt.look(keeper.now + Duration::from_secs(200)), Verdict::Resumed);
        assert_eq!(keeper.adapt.mode(), Mode::Active);
    }
}
