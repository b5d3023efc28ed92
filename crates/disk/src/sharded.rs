//! Counters that cost nothing to count: each thread adds to a shard of its own cache line, a reader sums them
//! up.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::histogram::{Histogram, Times};

/// Parts that threads are spread over.
pub const SHARDS: usize = 32;

#[repr(align(128))]
struct Shard<const N: usize>([AtomicU64; N]);

/// `N` counters.
pub struct ShardedCounters<const N: usize>([Shard<N>; SHARDS]);

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = Cell::new(NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS);
}

/// This thread's part of what is kept in [`SHARDS`] of them.
#[inline]
pub fn thread_shard() -> usize {
    SHARD.get()
}

impl<const N: usize> Default for ShardedCounters<N> {
    fn default() -> Self {
        Self([const { Shard([const { AtomicU64::new(0) }; N]) }; SHARDS])
    }
}

impl<const N: usize> ShardedCounters<N> {
    /// Adds to a counter.
    #[inline]
    pub fn add(&self, counter: usize, count: u64) {
        self.0[thread_shard()].0[counter].fetch_add(count, Ordering::Relaxed);
    }

    /// What all threads have counted.
    pub fn sum(&self, counter: usize) -> u64 {
        self.0.iter().map(|shard| shard.0[counter].load(Ordering::Relaxed)).sum()
    }
}

/// A histogram to which many threads record, each to a part of its own.
pub struct ShardedHistogram([Histogram; SHARDS]);

impl Default for ShardedHistogram {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Histogram::default()))
    }
}

impl ShardedHistogram {
    /// Counts a time.
    #[inline]
    pub fn record(&self, took: Duration) {
        self.0[thread_shard()].record(took);
    }

    /// What all threads have recorded.
    pub fn times(&self) -> Times {
        let mut sum = Times::default();
        self.0.iter().for_each(|shard| sum.add(&shard.times()));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_summed_up_and_lies_apart() {
        let counters = ShardedCounters::<2>::default();
        std::thread::scope(|scope| {
            for _ in 0..SHARDS {
                scope.spawn(|| (0..100).for_each(|_| counters.add(1, 2)));
            }
        });
        assert_eq!([counters.sum(0), counters.sum(1)], [0, 200 * SHARDS as u64]);
        let used = counters.0.iter().filter(|shard| shard.0[1].load(Ordering::Relaxed) > 0);
        assert!(used.count() > 1, "one thread has counted for all");
    }
}
