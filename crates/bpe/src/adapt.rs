//! Is the tier worth it? Read latencies of the tier and of the data files, and the decision that follows.
//!
//! Latencies are summed up per look (about a second) and smoothed over looks. While it is active, the tier is suspended
//! after [`LOOKS`] looks in a row at which it was not [`SUSPEND_BELOW`] times faster than the data files; while it is
//! suspended, one look-up in [`PROBE_EVERY`] is still answered, which measures it, and after as many looks at which it
//! was [`RESUME_ABOVE`] times faster it is active again. Between the two ratios nothing changes. A suspended tier
//! that holds too little to be probed is tried again after [`RETRY_AFTER`].
//!
//! A tier that does its work makes the data files faster: they have next to nothing to do. Judged by that it would
//! suspend itself, the data files would be slow again, and so on. So what the data files take *alone* is measured while
//! the tier is suspended, and remembered: it halves every [`ALONE_HALVES_AFTER`], so that now and then it is tried again.
//!
//! Suspended means: nothing is admitted, and nothing but probes is found. Invalidation goes on as always, so what the
//! tier holds stays current.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pagestore::tier::Source;
use parking_lot::Mutex;

/// Suspended when data file latency / tier latency stays below this.
pub(crate) const SUSPEND_BELOW: f64 = 1.5;
/// Resumed when it stays above this.
pub(crate) const RESUME_ABOVE: f64 = 1.8;
/// Looks in a row it takes to change.
pub(crate) const LOOKS: u32 = 3;
/// Reads of a source that a look must have to count.
const SAMPLES_MIN: u64 = 8;
/// While suspended, one look-up in this many is answered.
pub(crate) const PROBE_EVERY: u32 = 128;
/// A suspended tier without enough probes is resumed on trial after this long.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(60);
/// What the data files took without the tier counts half after this long.
pub(crate) const ALONE_HALVES_AFTER: Duration = Duration::from_secs(600);
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
    /// What the data files took while the tier was suspended, and when that was.
    alone: Option<(f64, Duration)>,
    /// Looks in a row that spoke for a change.
    against: u32,
    changed_at: Duration,
    /// A look since the change had tier reads.
    measured: bool,
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
    Suspended,
    Resumed,
}

/// Measures and decides.
#[derive(Default)]
pub(crate) struct Adapt {
    tier: Window,
    data: Window,
    suspended: AtomicBool,
    look_ups: AtomicU32,
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

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Whether this look-up is to be answered.
    pub(crate) fn answers(&self) -> bool {
        !self.is_suspended() || self.look_ups.fetch_add(1, Ordering::Relaxed).is_multiple_of(PROBE_EVERY)
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
        self.suspended.store(false, Ordering::Relaxed);
    }

    /// Takes what was measured since the last look into account.
    pub(crate) fn look(&self, now: Duration) -> Verdict {
        let mut judgement = self.judgement.lock();
        let (tier, data) = (self.tier.take(), self.data.take());
        smooth(&mut judgement.tier, tier);
        smooth(&mut judgement.data, data);
        judgement.measured |= tier.is_some();
        let suspended = self.is_suspended();
        if suspended && data.is_some() {
            judgement.alone = judgement.data.map(|data| (data, now));
        }
        let speaks_for_change = match (judgement.tier, judgement.data) {
            // Only a fresh measurement of the tier counts; the data files may rest while everything is found.
            (Some(tier_time), Some(data_time)) if tier.is_some() => {
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
        let retry = suspended && !judgement.measured && now >= judgement.changed_at + RETRY_AFTER;
        if judgement.against < LOOKS && !retry {
            return Verdict::Unchanged;
        }
        judgement.against = 0;
        judgement.measured = false;
        judgement.changed_at = now;
        if retry {
            judgement.tier = None;
        }
        self.suspended.store(!suspended, Ordering::Relaxed);
        if suspended { Verdict::Resumed } else { Verdict::Suspended }
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

    /// Looks until the verdict or the limit; returns the number of looks.
    fn looks_until(
        adapt: &Adapt,
        wanted: Verdict,
        tier: Duration,
        data: Duration,
        start: u32,
    ) -> Option<u32> {
        (1..50).find(|look| {
            for _ in 0..10 {
                adapt.took(Source::Tier, tier);
                adapt.took(Source::DataFile, data);
            }
            adapt.look(Duration::from_secs(u64::from(start + look))) == wanted
        })
    }

    #[test]
    fn is_suspended_when_not_faster_and_resumed_when_clearly_faster() {
        let adapt = Adapt::default();
        assert_eq!(looks_until(&adapt, Verdict::Suspended, MS, 3 * MS, 0), None);
        assert!(looks_until(&adapt, Verdict::Suspended, MS, MS, 50).is_some_and(|looks| looks >= LOOKS));
        assert!(adapt.is_suspended());
        let answered = (0..PROBE_EVERY * 10).filter(|_| adapt.answers()).count();
        assert_eq!(answered, 10);
        // Between the two ratios it stays as it is, in either state.
        assert_eq!(looks_until(&adapt, Verdict::Resumed, 10 * MS, 16 * MS, 100), None);
        assert!(looks_until(&adapt, Verdict::Resumed, MS, 4 * MS, 150).is_some());
        assert!(adapt.answers());
        assert_eq!(looks_until(&adapt, Verdict::Suspended, 10 * MS, 16 * MS, 200), None);
    }

    #[test]
    fn a_tier_that_relieves_the_data_files_stays() {
        let adapt = Adapt::default();
        // They are fast as long as the tier does the work.
        assert!(looks_until(&adapt, Verdict::Suspended, 3 * MS, 4 * MS, 0).is_some());
        assert!(looks_until(&adapt, Verdict::Resumed, 3 * MS, 20 * MS, 50).is_some());
        assert_eq!(looks_until(&adapt, Verdict::Suspended, 3 * MS, 4 * MS, 100), None);
        // Long after that it is tried again.
        assert!(looks_until(&adapt, Verdict::Suspended, 3 * MS, 4 * MS, 5000).is_some());
    }

    #[test]
    fn a_few_slow_reads_change_nothing() {
        let adapt = Adapt::default();
        assert_eq!(looks_until(&adapt, Verdict::Suspended, MS, 10 * MS, 0), None);
        for _ in 0..SAMPLES_MIN - 1 {
            adapt.took(Source::Tier, 1000 * MS);
        }
        assert_eq!(adapt.look(Duration::from_secs(60)), Verdict::Unchanged);
        assert!(!adapt.is_suspended());
    }

    #[test]
    fn a_suspended_tier_that_cannot_be_probed_is_tried_again() {
        let adapt = Adapt::default();
        assert!(looks_until(&adapt, Verdict::Suspended, MS, MS, 0).is_some());
        assert_eq!(adapt.look(Duration::from_secs(30)), Verdict::Unchanged);
        assert_eq!(adapt.look(Duration::from_secs(200)), Verdict::Resumed);
        assert!(!adapt.is_suspended());
    }
}
