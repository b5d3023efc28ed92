//! Counters that cost nothing to count: each thread adds to a shard of its own cache line, a reader sums them
//! up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 32;

/// What is counted.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Counter {
    ReadRequests,
    Reads,
    WriteRequests,
    WaitFree,
    ReadAhead,
    ReadAheadEvicted,
    PagesFlushed,
    MadeYoung,
    NotMadeYoung,
    PagesCreated,
    PagesRead,
    PagesWritten,
    PagesEvicted,
    PagesRelocated,
    BlockingReads,
    CorruptPages,
    TierFallbacks,
}

const COUNTERS: usize = Counter::TierFallbacks as usize + 1;

#[repr(align(128))]
#[derive(Default)]
struct Shard([AtomicU64; COUNTERS]);

/// All counters of a pool.
#[derive(Default)]
pub(crate) struct Counters([Shard; SHARDS]);

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = Cell::new(NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS);
}

impl Counters {
    #[inline]
    pub(crate) fn add(&self, counter: Counter, count: u64) {
        let shard = SHARD.get();
        self.0[shard].0[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn sum(&self, counter: Counter) -> u64 {
        self.0.iter().map(|shard| shard.0[counter as usize].load(Ordering::Relaxed)).sum()
    }
}
