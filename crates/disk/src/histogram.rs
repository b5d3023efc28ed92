//! How long operations took: counts in log-linear buckets.
//!
//! Each power of two has four buckets of equal width, so a bucket is at most a quarter wider than where it
//! begins, over nine orders of magnitude and with about a hundred counters. Recording is two additions; there
//! is no lock, and a reader may see a time that is counted and not yet in the sum.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a power of two: 2 to this.
const SPLIT_BITS: u32 = 2;
const SPLIT: usize = 1 << SPLIT_BITS;
/// The first bucket holds all times up to 2 to this nanoseconds (1 µs).
const FIRST_BITS: u32 = 10;
/// Times above 2 to this nanoseconds (137 s) are in the last bucket.
const LAST_BITS: u32 = 37;
const OCTAVES: usize = (LAST_BITS - FIRST_BITS) as usize;
const BUCKETS: usize = OCTAVES * SPLIT + 2;

/// The bucket of a time: one whose end it does not exceed.
#[inline]
fn bucket_of(nanoseconds: u64) -> usize {
    let within = nanoseconds.saturating_sub(1);
    let bits = within.max(1).ilog2();
    if bits < FIRST_BITS {
        return 0;
    }
    let part = (within >> (bits - SPLIT_BITS)) as usize % SPLIT;
    (1 + (bits - FIRST_BITS) as usize * SPLIT + part).min(BUCKETS - 1)
}

/// Where a bucket ends, in nanoseconds; the last one has no end.
fn end_of(bucket: usize) -> Option<u64> {
    let Some(above) = bucket.checked_sub(1) else { return Some(1 << FIRST_BITS) };
    let shift = FIRST_BITS + (above / SPLIT) as u32 - SPLIT_BITS;
    (bucket < BUCKETS - 1).then(|| ((SPLIT + above % SPLIT + 1) as u64) << shift)
}

/// Times as they are recorded.
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanoseconds: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_nanoseconds: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts a time; any thread may.
    #[inline]
    pub fn record(&self, took: Duration) {
        let nanoseconds = nanoseconds(took);
        self.buckets[bucket_of(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        self.sum_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// As [`Histogram::record`] without a bus lock: for a histogram that only one thread records to. What
    /// another records meanwhile may be lost.
    #[inline]
    pub fn record_alone(&self, took: Duration) {
        let nanoseconds = nanoseconds(took);
        let add = |counter: &AtomicU64, by: u64| {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        };
        add(&self.buckets[bucket_of(nanoseconds)], 1);
        add(&self.sum_nanoseconds, nanoseconds);
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn times(&self) -> Times {
        Times {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed)),
            sum_nanoseconds: self.sum_nanoseconds.load(Ordering::Relaxed),
        }
    }
}

#[inline]
fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

/// Times as they were at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    buckets: [u64; BUCKETS],
    sum_nanoseconds: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { buckets: [0; BUCKETS], sum_nanoseconds: 0 }
    }
}

impl Times {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanoseconds)
    }

    /// Counts a time.
    pub fn record(&mut self, took: Duration) {
        let nanoseconds = nanoseconds(took);
        self.buckets[bucket_of(nanoseconds)] += 1;
        self.sum_nanoseconds = self.sum_nanoseconds.wrapping_add(nanoseconds);
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Times) {
        for (bucket, count) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket = bucket.wrapping_add(count);
        }
        self.sum_nanoseconds = self.sum_nanoseconds.wrapping_add(other.sum_nanoseconds);
    }

    /// Those that were recorded since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Times) -> Times {
        let buckets = self.buckets.iter().zip(&earlier.buckets);
        let mut buckets = buckets.map(|(now, then)| now.wrapping_sub(*then));
        Times {
            buckets: std::array::from_fn(|_| buckets.next().unwrap_or(0)),
            sum_nanoseconds: self.sum_nanoseconds.wrapping_sub(earlier.sum_nanoseconds),
        }
    }

    /// The time that this share (0 to 1) of them does not exceed, as the end of its bucket: at most a quarter
    /// too long. `None` when there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        let wanted = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Duration::from_nanos(end_of(bucket).unwrap_or(1 << LAST_BITS)))
    }

    /// How many did not exceed each power of two of nanoseconds, shortest first.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut seen = 0;
        (0..=OCTAVES).map(move |octave| {
            let first = if octave == 0 { 0 } else { 1 + (octave - 1) * SPLIT };
            seen += self.buckets[first..=octave * SPLIT].iter().sum::<u64>();
            (Duration::from_nanos(1 << (FIRST_BITS as usize + octave)), seen)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_bucket_that_ends_at_or_after_it() {
        let mut times: Vec<u64> =
            (0..64).flat_map(|bits| [1 << bits, (1 << bits) + 1, 3 << bits >> 1]).collect();
        times.extend([0, u64::MAX, 1_000_000, 999_999_999]);
        for time in times {
            let bucket = bucket_of(time);
            assert!(end_of(bucket).is_none_or(|end| time <= end), "{time} in {bucket}");
            let before = bucket.checked_sub(1).and_then(end_of);
            assert!(before.is_none_or(|end| time > end), "{time} in {bucket}");
        }
        for bucket in 1..BUCKETS - 1 {
            let (begin, end) = (end_of(bucket - 1).unwrap(), end_of(bucket).unwrap());
            assert!(begin < end && (end - begin) * 4 <= begin, "bucket {bucket} from {begin} to {end}");
        }
    }

    #[test]
    fn quantiles_sums_and_powers_of_two_are_those_of_what_was_recorded() {
        let (histogram, alone) = (Histogram::default(), Histogram::default());
        assert_eq!(histogram.times().quantile(0.5), None);
        let earlier = histogram.times();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
            alone.record_alone(Duration::from_micros(micros));
        }
        let mut times = histogram.times();
        assert_eq!(times, alone.times());
        assert_eq!((times.count(), times.sum()), (1000, Duration::from_micros(500_500)));
        for share in [0.001, 0.5, 0.95, 0.99, 1.0] {
            let (exact, found) = (share * 1000.0, times.quantile(share).unwrap().as_secs_f64() * 1e6);
            assert!(exact <= found && found <= exact * 1.25 + 0.03, "{share}: {found} for {exact}");
        }
        let below: Vec<_> = times.cumulative().collect();
        assert!(below.contains(&(Duration::from_nanos(1 << 19), 524)), "{below:?}");
        assert_eq!(below.last().unwrap().1, 1000);
        assert_eq!(times.since(&earlier), times);
        times.add(&alone.times());
        times.record(Duration::from_secs(1000));
        assert_eq!(times.since(&alone.times()).count(), 1001);
        assert_eq!(times.cumulative().last().unwrap().1, 2000, "beyond the last power of two");
    }
}
