//! The counters of a pool.

use disk::ShardedCounters;

/// What is counted.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Counter {
    ReadRequests,
    Reads,
    WriteRequests,
    WaitFree,
    ReadAhead,
    ReadAheadRandom,
    ReadAheadEvicted,
    PagesFlushed,
    MadeYoung,
    NotMadeYoung,
    PagesCreated,
    PagesRead,
    PagesEvicted,
    PagesRelocated,
    BlockingReads,
    CorruptPages,
    TierFallbacks,
    HeadsMade,
    DescentsByPointers,
}

const COUNTERS: usize = Counter::DescentsByPointers as usize + 1;

/// All counters of a pool.
#[derive(Default)]
pub(crate) struct Counters(ShardedCounters<COUNTERS>);

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, count: u64) {
        self.0.add(counter as usize, count);
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn sum(&self, counter: Counter) -> u64 {
        self.0.sum(counter as usize)
    }
}
