//! The buckets in which `performance_schema` counts how long statements took, which are MySQL's: 450 of them,
//! fifty to a power of ten. The first ends at 10 µs, the last has no end.

use std::sync::LazyLock;
use std::time::Duration;

/// How many there are.
pub const BUCKETS: usize = 450;
const PER_DECADE: usize = 50;
const DECADES: usize = BUCKETS / PER_DECADE;
/// Where the first ends, picoseconds.
const FIRST_END: f64 = 1e7;

/// To find a bucket, each power of two of nanoseconds from this one on is looked up in 16 parts. A part
/// begins in the bucket that the table names, and is wider than two of them nowhere.
const OCTAVE_FIRST: u32 = 13;
const PART_BITS: u32 = 4;
const PARTS: usize = 1 << PART_BITS;
const OCTAVES: usize = 32;

struct Table {
    /// Where each ends, picoseconds.
    ends: [u64; BUCKETS],
    /// The same in nanoseconds: a time that is below is in it or before it.
    ends_ns: [u64; BUCKETS],
    begins: [u16; OCTAVES * PARTS],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let end = |bucket: usize| match bucket == BUCKETS - 1 {
        true => u64::MAX,
        false => (FIRST_END * 10f64.powf(bucket as f64 / PER_DECADE as f64)) as u64,
    };
    let ends: [u64; BUCKETS] = std::array::from_fn(end);
    let ends_ns = ends.map(|end| if end == u64::MAX { end } else { end.div_ceil(1000) });
    let begins = std::array::from_fn(|part| {
        let first = ((PARTS + part % PARTS) as u64) << (part / PARTS) << (OCTAVE_FIRST - PART_BITS);
        ends_ns.iter().position(|end| first < *end).unwrap_or(BUCKETS - 1) as u16
    });
    Table { ends, ends_ns, begins }
});

/// The bucket of a time.
#[inline]
pub fn bucket_of(took: Duration) -> usize {
    let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let bits = took.max(1).ilog2();
    if bits < OCTAVE_FIRST {
        return 0;
    }
    let table = &*TABLE;
    let part = (took >> (bits - PART_BITS)) as usize % PARTS;
    let at = (bits - OCTAVE_FIRST) as usize * PARTS + part;
    let mut bucket = table.begins.get(at).map_or(BUCKETS - 1, |begin| usize::from(*begin));
    while bucket < BUCKETS - 1 && took >= table.ends_ns[bucket] {
        bucket += 1;
    }
    bucket
}

/// From where to where a bucket goes, picoseconds.
pub fn range_of(bucket: usize) -> (u64, u64) {
    let ends = &TABLE.ends;
    (bucket.checked_sub(1).map_or(0, |before| ends[before]), ends[bucket])
}

/// How many times fell into each. The counters of a power of ten are made when they are needed: few
/// statements take microseconds now and hours then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies([Option<Box<[u64; PER_DECADE]>>; DECADES]);

impl Latencies {
    /// Counts one of this bucket.
    #[inline]
    pub fn count(&mut self, bucket: usize) {
        self.add_to(bucket, 1);
    }

    /// Counts some of this bucket.
    pub fn add_to(&mut self, bucket: usize, count: u64) {
        let decade = self.0[bucket / PER_DECADE].get_or_insert_with(|| Box::new([0; PER_DECADE]));
        decade[bucket % PER_DECADE] += count;
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Latencies) {
        for (mine, others) in self.0.iter_mut().zip(&other.0) {
            let Some(others) = others else { continue };
            let mine = mine.get_or_insert_with(|| Box::new([0; PER_DECADE]));
            mine.iter_mut().zip(&**others).for_each(|(mine, others)| *mine += others);
        }
    }

    /// How many there are of a bucket.
    pub fn of(&self, bucket: usize) -> u64 {
        self.0[bucket / PER_DECADE].as_ref().map_or(0, |decade| decade[bucket % PER_DECADE])
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.0.iter().flatten().flat_map(|decade| decade.iter()).sum()
    }

    /// Where the bucket ends that a share (0 to 1) of them does not go beyond, picoseconds; 0 without any.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.total() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = (0..BUCKETS).find(|bucket| {
            seen += self.of(*bucket);
            seen >= wanted
        });
        found.map_or(0, |bucket| range_of(bucket).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_where_mysql_has_them() {
        // As MySQL's manual shows them.
        assert_eq!(range_of(42), (66_069_344, 69_183_097));
        assert_eq!((range_of(0), range_of(1).0), ((0, 10_000_000), 10_000_000));
        assert_eq!(range_of(50).1, 100_000_000);
        assert_eq!(range_of(BUCKETS - 1).1, u64::MAX);
    }

    #[test]
    fn each_time_is_in_the_bucket_that_begins_at_or_before_it_and_ends_after_it() {
        let mut times: Vec<u64> =
            (0..64).flat_map(|bits| (16..32).map(move |part| (part << bits) >> 4)).collect();
        for bucket in 0..BUCKETS - 1 {
            let end = range_of(bucket).1 / 1000;
            times.extend([end - 1, end, end + 1]);
        }
        times.extend([0, 9_999, 10_000, u64::MAX]);
        for time in times {
            let (begin, end) = range_of(bucket_of(Duration::from_nanos(time)));
            let picoseconds = time.saturating_mul(1000);
            assert!(
                begin <= picoseconds && (picoseconds < end || end == u64::MAX),
                "{time}: {begin} to {end}"
            );
        }
    }

    #[test]
    fn counts_are_added_up_and_quantiles_are_ends_of_buckets() {
        let (mut all, mut other) = (Latencies::default(), Latencies::default());
        assert_eq!((all.total(), all.quantile(0.5)), (0, 0));
        for micros in 1..=100 {
            let one = if micros % 2 == 0 { &mut all } else { &mut other };
            one.count(bucket_of(Duration::from_micros(micros)));
        }
        all.add(&other);
        assert_eq!((all.total(), all.of(0)), (100, 9));
        assert_eq!(all.quantile(0.5), range_of(bucket_of(Duration::from_micros(50))).1);
        assert_eq!(all.quantile(1.0), range_of(bucket_of(Duration::from_micros(100))).1);
    }
}
