//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};

use page::extension::Refusal;

use crate::image::Mismatch;

/// The counters of a tier, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Counter {
    Hits,
    Misses,
    Admitted,
    RefusedOff,
    RefusedPresent,
    RefusedTouchedOnce,
    RefusedScan,
    RefusedReadAhead,
    RefusedBudget,
    RefusedBusy,
    Writes,
    BytesWritten,
    BytesRead,
    Invalidated,
    SpacesInvalidated,
    Evicted,
    RegionsCleaned,
    RegionsKept,
    Saved,
    Misdirected,
    Stale,
    Corrupt,
    Overtaken,
    ReadErrors,
    Trials,
    Suspensions,
    Resumptions,
    Failures,
    Restored,
    DroppedAtRestart,
    #[doc(hidden)]
    Count,
}

pub(crate) struct Counters([AtomicU64; Counter::Count as usize]);

impl Default for Counters {
    fn default() -> Counters {
        Counters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counters {
    pub(crate) fn add(&self, counter: Counter, by: u64) {
        self.0[counter as usize].fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count_refusal(&self, why: Refusal) {
        self.count(match why {
            Refusal::Off => Counter::RefusedOff,
            Refusal::Present => Counter::RefusedPresent,
            Refusal::TouchedOnce => Counter::RefusedTouchedOnce,
            Refusal::Scan => Counter::RefusedScan,
            Refusal::ReadAheadUnused => Counter::RefusedReadAhead,
            Refusal::Budget => Counter::RefusedBudget,
            Refusal::Busy => Counter::RefusedBusy,
        });
    }

    pub(crate) fn count_mismatch(&self, mismatch: Mismatch) {
        self.count(match mismatch {
            Mismatch::Misdirected => Counter::Misdirected,
            Mismatch::Stale => Counter::Stale,
            Mismatch::Corrupt => Counter::Corrupt,
        });
    }
}
