//! `performance_schema.events_statements_summary_by_digest`: statements counted by their text without values.
//!
//! A row is found by database and text ([`sql::digest`]) when a statement is planned; the session keeps it
//! with the plan, so that another run of the plan costs an uncontended mutex and a dozen additions. A row has
//! its figures several times, for threads that count at the same time, and the reader adds them up.
//!
//! The table is bounded (`performance_schema_digests_size`, and a KiB of text for each): when it is full, new
//! statements are counted together in a row without text. Beside its text a row has for each of up to
//! `STRIPES` sets of figures some 400 bytes, a sample of a KiB, and 400 bytes for each decade of times: 2 KiB
//! where one thread runs the statement, some 15 where all do, 40 at the very most. TRUNCATE TABLE begins a
//! new generation, and rows that plans still hold are seen to be of an older one. A reader gets the rows one
//! at a time, and none added after it started.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use sql::background_drop::Elsewhere;
use sql::facts::{DigestLatencies, StatementDigest};
use sql::latency_buckets::Latencies;

use super::{StatementStats, WallClock};
use crate::server::waits::ByKind;

/// Figures of a row that threads count side by side.
const STRIPES: usize = 8;
/// Bytes of a statement kept as a sample.
pub const SAMPLE_BYTES: usize = 1024;
/// A sample older than this makes room for the next statement.
const SAMPLE_AGE: Duration = Duration::from_secs(60);

/// Bytes of text, and of names of databases, for each row that there may be.
const TEXT_BYTES: usize = 1024;

/// Database and text.
type Key = (Option<Arc<str>>, Arc<str>);

/// All digests.
pub struct Digests {
    most: AtomicU64,
    generation: AtomicU64,
    rows: Mutex<Rows>,
}

struct Rows {
    by_text: HashMap<Key, Arc<DigestRow>>,
    /// In the order in which they were made; the first is for what did not fit in.
    all: Vec<Arc<DigestRow>>,
    rest: Arc<DigestRow>,
    /// Of the keys.
    text_bytes: usize,
}

impl Rows {
    fn new(generation: u64) -> Rows {
        let rest = Arc::new(DigestRow::new(generation, None));
        Rows { by_text: HashMap::new(), all: vec![rest.clone()], rest, text_bytes: 0 }
    }
}

/// One digest.
pub struct DigestRow {
    generation: u64,
    /// Database, text; the rest has none.
    key: Option<Key>,
    /// Of the text.
    digest: [u8; 32],
    stripes: [OnceLock<Box<Mutex<Figures>>>; STRIPES],
}

#[derive(Clone, Default)]
struct Figures {
    count: u64,
    least: Duration,
    most: Duration,
    lock_time: Duration,
    cpu: u64,
    waited: ByKind,
    errors: u64,
    warnings: u64,
    affected: u64,
    sent: u64,
    examined: u64,
    scans: u64,
    full_joins: u64,
    no_index: u64,
    sum: Duration,
    latencies: Latencies,
    first: Option<Instant>,
    last: Option<Instant>,
    sample: Vec<u8>,
    sample_seen: Option<Instant>,
    sample_took: Duration,
}

impl DigestRow {
    fn new(generation: u64, key: Option<Key>) -> DigestRow {
        let digest = key.as_ref().map(|(_, text)| Sha256::digest(text.as_bytes()).into());
        DigestRow { generation, key, digest: digest.unwrap_or_default(), stripes: Default::default() }
    }

    /// Counts a run that began then. `thread` is the number of the caller's thread. `sample` makes its text,
    /// which is seldom asked for.
    pub fn record<'s>(
        &self,
        thread: usize,
        stats: &StatementStats,
        began: Instant,
        sample: impl FnOnce() -> Cow<'s, [u8]>,
    ) {
        let figures = self.stripes[thread % STRIPES].get_or_init(Box::default);
        figures.lock().record(stats, began, sample);
    }

    /// Its text; the rest has none.
    pub fn text(&self) -> Option<&str> {
        self.key.as_ref().map(|(_, text)| &**text)
    }

    fn sum(&self) -> Figures {
        let mut sum = Figures::default();
        for figures in self.stripes.iter().filter_map(OnceLock::get) {
            sum.add(&figures.lock());
        }
        sum
    }
}

impl Figures {
    fn record<'s>(&mut self, run: &StatementStats, began: Instant, sample: impl FnOnce() -> Cow<'s, [u8]>) {
        self.least = if self.count == 0 { run.took } else { self.least.min(run.took) };
        self.most = self.most.max(run.took);
        self.count += 1;
        self.lock_time += run.lock_time;
        self.cpu += run.spent.cpu;
        self.wait(&run.spent.waited);
        self.errors += u64::from(run.failed);
        self.warnings += run.warnings;
        self.affected += run.affected;
        self.sent += run.sent;
        self.examined += run.examined;
        self.scans += run.reads.scans;
        self.full_joins += run.reads.full_joins;
        self.no_index += u64::from(run.reads.no_index_used());
        self.sum += run.took;
        self.latencies.count(run.bucket);
        self.first.get_or_insert(began);
        self.last = Some(began);
        let old = self.sample_seen.is_none_or(|seen| began.saturating_duration_since(seen) > SAMPLE_AGE);
        if old || run.took > self.sample_took {
            self.sample.clear();
            self.sample.extend_from_slice(&sample());
            (self.sample_seen, self.sample_took) = (Some(began), run.took);
        }
    }

    fn wait(&mut self, waited: &ByKind) {
        self.waited.iter_mut().zip(waited).for_each(|(sum, waited)| *sum += *waited);
    }

    fn add(&mut self, other: &Figures) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.lock_time += other.lock_time;
        self.cpu += other.cpu;
        self.wait(&other.waited);
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.affected += other.affected;
        self.sent += other.sent;
        self.examined += other.examined;
        self.scans += other.scans;
        self.full_joins += other.full_joins;
        self.no_index += other.no_index;
        self.sum += other.sum;
        self.latencies.add(&other.latencies);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        if other.sample_took > self.sample_took || self.sample_seen.is_none() {
            self.sample.clone_from(&other.sample);
            (self.sample_seen, self.sample_took) = (other.sample_seen, other.sample_took);
        }
    }
}

impl Default for Digests {
    fn default() -> Digests {
        Digests { most: AtomicU64::new(0), generation: AtomicU64::new(0), rows: Mutex::new(Rows::new(0)) }
    }
}

impl Digests {
    /// How many there may be (`performance_schema_digests_size`); 0: nothing is counted.
    pub fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    /// Whether the row is still of the table.
    pub fn is_current(&self, row: &DigestRow) -> bool {
        row.generation == self.generation.load(Ordering::Relaxed)
    }

    /// The row of a statement, by its text without values.
    pub fn row(&self, database: Option<Arc<str>>, text: String) -> Arc<DigestRow> {
        let most = self.most.load(Ordering::Relaxed);
        let key = (database, Arc::from(text));
        let generation = {
            let rows = self.rows.lock();
            if let Some(row) = rows.by_text.get(&key) {
                return row.clone();
            }
            if rows.is_full(&key, most) {
                return rows.rest.clone();
            }
            rows.rest.generation
        };
        // The digest is computed while nobody waits for the table.
        let row = Arc::new(DigestRow::new(generation, Some(key.clone())));
        let mut rows = self.rows.lock();
        if rows.rest.generation != generation || rows.is_full(&key, most) {
            return rows.rest.clone();
        }
        if let Some(row) = rows.by_text.get(&key) {
            return row.clone();
        }
        rows.text_bytes += bytes_of(&key);
        rows.all.push(row.clone());
        rows.by_text.insert(key, row.clone());
        row
    }

    /// Forgets all.
    pub fn clear(&self) {
        let mut rows = self.rows.lock();
        let generation = rows.rest.generation + 1;
        let old = std::mem::replace(&mut *rows, Rows::new(generation));
        self.generation.store(generation, Ordering::Relaxed);
        drop(rows);
        // There may be very many.
        drop(Elsewhere::new(old, true));
    }

    /// All that were counted, each as it stands when it is asked for; none any more after a TRUNCATE.
    pub fn all(self: &Arc<Self>) -> impl Iterator<Item = StatementDigest> + use<> {
        let clock = WallClock::now();
        self.rows().filter_map(move |row| row.shown(&clock))
    }

    /// How long they took; the same.
    pub fn latencies(self: &Arc<Self>) -> impl Iterator<Item = DigestLatencies> + use<> {
        self.rows().filter_map(|row| row.latencies())
    }

    fn rows(self: &Arc<Self>) -> impl Iterator<Item = Arc<DigestRow>> + use<> {
        let (generation, end) = {
            let rows = self.rows.lock();
            (rows.rest.generation, rows.all.len())
        };
        let digests = self.clone();
        let row = move |at: usize| {
            let row = digests.rows.lock().all.get(at).cloned();
            row.filter(|row: &Arc<DigestRow>| row.generation == generation)
        };
        (0..end).map_while(row)
    }

    /// Forgets how long they took.
    pub fn forget_latencies(self: &Arc<Self>) {
        self.rows().for_each(|row| row.forget_latencies());
    }
}

fn bytes_of((database, text): &Key) -> usize {
    database.as_ref().map_or(0, |name| name.len()) + text.len()
}

impl Rows {
    fn is_full(&self, key: &Key, most: u64) -> bool {
        let bytes = (self.text_bytes + bytes_of(key)) as u64;
        // One of the rows is that of the rest, as in MySQL.
        self.all.len() as u64 >= most || bytes > most.saturating_mul(TEXT_BYTES as u64)
    }
}

impl DigestRow {
    fn latencies(&self) -> Option<DigestLatencies> {
        let mut latencies = Latencies::default();
        for figures in self.stripes.iter().filter_map(OnceLock::get) {
            latencies.add(&figures.lock().latencies);
        }
        let (database, digest) = match &self.key {
            Some((database, _)) => (database.clone(), Some(hex(&self.digest))),
            None => (None, None),
        };
        (latencies.total() > 0).then_some(DigestLatencies { database, digest, latencies })
    }

    fn forget_latencies(&self) {
        let stripes = self.stripes.iter().filter_map(OnceLock::get);
        stripes.for_each(|figures| figures.lock().latencies = Latencies::default());
    }

    fn shown(&self, clock: &WallClock) -> Option<StatementDigest> {
        let sum = self.sum();
        let unix = |at: Option<Instant>| at.map(|at| clock.unix(at)).unwrap_or_default();
        let quantile = |share| sum.latencies.quantile(share);
        let (database, text) = match &self.key {
            Some((database, text)) => (database.clone(), Some(text.clone())),
            None => (None, None),
        };
        (sum.count > 0).then(|| StatementDigest {
            digest: text.as_ref().map(|_| hex(&self.digest)),
            database,
            text,
            count: sum.count,
            sum: sum.sum,
            least: sum.least,
            most: sum.most,
            lock_time: sum.lock_time,
            cpu: Duration::from_nanos(sum.cpu),
            waited: sum.waited.map(Duration::from_nanos),
            errors: sum.errors,
            warnings: sum.warnings,
            affected: sum.affected,
            sent: sum.sent,
            examined: sum.examined,
            scans: sum.scans,
            full_joins: sum.full_joins,
            no_index: sum.no_index,
            first_seen: unix(sum.first),
            last_seen: unix(sum.last),
            quantiles: [quantile(0.95), quantile(0.99), quantile(0.999)],
            sample: String::from_utf8_lossy(&sum.sample).into_owned(),
            sample_seen: unix(sum.sample_seen),
            sample_took: sum.sample_took,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(took_us: u64) -> StatementStats {
        StatementStats { took: Duration::from_micros(took_us), sent: 2, ..StatementStats::default() }
    }

    #[test]
    fn threads_are_added_up_and_the_slowest_is_the_sample() {
        let digests = Arc::new(Digests::default());
        digests.set_most(10);
        let row = digests.row(None, "SELECT ?".to_owned());
        let now = Instant::now();
        for thread in 0..20 {
            let text = format!("SELECT {thread}").into_bytes();
            row.record(thread, &run(100 + thread as u64), now, || text.into());
        }
        row.record(0, &StatementStats { failed: true, ..run(1) }, now + SAMPLE_AGE / 2, || {
            b"SELECT fast".into()
        });
        let all: Vec<_> = digests.all().collect();
        assert_eq!(all.len(), 1);
        let shown = &all[0];
        assert_eq!((shown.count, shown.sent, shown.errors), (21, 42, 1));
        assert_eq!((shown.least, shown.most), (Duration::from_micros(1), Duration::from_micros(119)));
        assert_eq!((&*shown.sample, shown.sample_took), ("SELECT 19", Duration::from_micros(119)));
        assert!(shown.first_seen < shown.last_seen);
        assert_eq!(shown.digest.as_ref().map(String::len), Some(64));
        row.record(4, &run(2), now + SAMPLE_AGE * 2, || b"SELECT later".into());
        assert!(row.sum().sample == b"SELECT 19", "another thread's is slower");
        row.record(3, &run(500), now, || b"SELECT slow".into());
        assert_eq!(digests.all().next().map(|row| row.sample).as_deref(), Some("SELECT slow"));
    }

    #[test]
    fn what_does_not_fit_is_counted_together_and_truncate_starts_again() {
        let digests = Arc::new(Digests::default());
        digests.set_most(3);
        let now = Instant::now();
        let rows: Vec<_> = (0..5).map(|n| digests.row(Some("d".into()), format!("S {n}"))).collect();
        rows.iter().for_each(|row| row.record(0, &run(1), now, || b"".into()));
        let counts = |digests: &Arc<Digests>| {
            let mut counts: Vec<_> = digests.all().map(|row| (row.text, row.count)).collect();
            counts.sort();
            counts
        };
        assert_eq!(counts(&digests), [(None, 3), (Some("S 0".into()), 1), (Some("S 1".into()), 1)]);
        assert!(digests.is_current(&rows[0]));
        digests.clear();
        assert!(
            digests.all().next().is_none() && !digests.is_current(&rows[0]) && !digests.is_current(&rows[4])
        );
        digests.row(None, "S 9".into()).record(0, &run(1), now, || b"".into());
        assert_eq!(counts(&digests), [(Some("S 9".into()), 1)]);
    }

    #[test]
    fn texts_have_as_many_kibibytes_as_there_may_be_rows() {
        let digests = Arc::new(Digests::default());
        digests.set_most(100);
        let long = |n: usize| format!("S {n} {}", "x".repeat(4080));
        let rows: Vec<_> = (0..99).map(|n| digests.row(None, long(n))).collect();
        let fit = rows.iter().filter(|row| row.text().is_some()).count();
        assert_eq!(fit, 100 * TEXT_BYTES / long(10).len());
        let again = digests.row(None, long(0));
        assert!(Arc::ptr_eq(&rows[0], &again));
        digests.clear();
        assert!(digests.row(None, long(50)).text().is_some(), "there is room again");
    }

    #[test]
    fn rows_are_made_one_by_one_and_end_with_a_truncate() {
        let digests = Arc::new(Digests::default());
        digests.set_most(10);
        let now = Instant::now();
        let row = |text: &str| digests.row(None, text.to_owned());
        let rows = ["a", "b", "c"].map(row);
        rows.iter().for_each(|row| row.record(0, &run(1), now, || b"".into()));
        let mut read = digests.all();
        assert_eq!(read.next().and_then(|row| row.text).as_deref(), Some("a"));
        rows[1].record(0, &run(1), now, || b"".into());
        row("late").record(0, &run(1), now, || b"".into());
        assert_eq!(read.next().map(|row| row.count), Some(2), "as it stands when it is asked for");
        digests.clear();
        ["d", "e", "f", "g"].map(row).iter().for_each(|row| row.record(0, &run(1), now, || b"".into()));
        assert!(read.next().is_none(), "the rows of after the TRUNCATE are not of this reading");
    }

    #[test]
    fn a_moment_stays_what_it_was_beside_the_clock_of_now() {
        let began = Instant::now();
        let late = WallClock { instant: began + Duration::from_secs(5), unix: Duration::from_secs(100) };
        assert_eq!(late.unix(began), Duration::from_secs(95));
        assert_eq!(late.unix(began + Duration::from_secs(6)), Duration::from_secs(101));
    }
}
