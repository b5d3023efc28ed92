//! The last hour, a sample a second, and the events of that time.
//!
//! A sample is the rows of [`FIELDS`] as they stood, counters as counters: rates are the viewer's to take,
//! over any span and with the true time between two samples; of histograms it has the quantiles of what was
//! recorded since the sample before. Samples are numbered from 1, so a viewer asks
//! for what follows the last one it has. Events are seen by comparing a reading with the one before. Both
//! rings are bounded: a few megabytes at most, however long the server runs.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::metrics::{Series, Times};
use serde::Serialize;

/// From a sample to the next.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// An hour.
const SAMPLES_MAX: usize = 3600;
const EVENTS_MAX: usize = 500;

/// Rows of SHOW GLOBAL STATUS that are kept.
const FIELDS: &[&str] = &[
    "Questions",
    "Threads_connected",
    "Threads_running",
    "Untorn_commits",
    "Untorn_rollbacks",
    "Untorn_transactions_active",
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Untorn_recovery_estimate_ms",
    "Untorn_recovery_target_ms",
    "Untorn_checkpoint_age_goal",
    "Untorn_checkpoint_age_limit",
    "Untorn_log_room_waits",
    "Innodb_log_waits",
    "Innodb_os_log_fsyncs",
    "Innodb_page_size",
    "Innodb_buffer_pool_pages_total",
    "Innodb_buffer_pool_pages_data",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_wait_free",
    "Untorn_pages_written_for_age",
    "Untorn_pages_written_for_dirty",
    "Untorn_pages_written_for_log_short",
    "Untorn_pages_written_for_ahead",
    "Untorn_pages_written_for_idle",
    "Untorn_pages_written_for_frames",
    "Untorn_pages_written_for_all",
    "Untorn_pages_written_for_tablespace",
    "Untorn_pages_written_for_resize",
    "Innodb_pages_written",
    "Untorn_pages_written_atomic",
    "Untorn_pages_written_plain",
    "Innodb_dblwr_pages_written",
    "Untorn_pages_written_without_copy",
    "Untorn_bytes_written_data",
    "Untorn_bytes_written_doublewrite",
    "Untorn_bytes_written_redo",
    "Untorn_bytes_written_undo",
    "Untorn_bytes_written_tier",
    "Untorn_time_cpu_us",
    "Untorn_time_page_read_us",
    "Untorn_time_free_page_us",
    "Untorn_time_log_room_us",
    "Untorn_time_log_sync_us",
    "Untorn_time_row_lock_us",
    "Untorn_time_metadata_lock_us",
    "Untorn_time_latch_us",
    "Innodb_history_list_length",
    "Innodb_row_lock_waits",
    "Innodb_row_lock_time",
    "Innodb_row_lock_current_waits",
    "Innodb_deadlocks",
    "Untorn_bpe_hits",
    "Untorn_bpe_misses",
    "Untorn_bpe_pages_max",
    "Untorn_bpe_hit_ratio",
    "Untorn_bpe_hit_ratio_half_size",
    "Untorn_bpe_hit_ratio_twice_size",
    "Untorn_unfinished_transactions",
    "Untorn_unfinished_undo_records",
];

/// Histograms of which the quantiles of the last second are kept, and under which names.
const TIMES: &[(&str, [(&str, f64); 2])] = &[
    ("Untorn_transaction", [("transaction_p50_us", 0.5), ("transaction_p99_us", 0.99)]),
    ("Untorn_statement", [("statement_p50_us", 0.5), ("statement_p99_us", 0.99)]),
    ("Untorn_commit", [("commit_p50_us", 0.5), ("commit_p99_us", 0.99)]),
];

/// How files are protected, with the number of files and what was measured.
const PROTECTION: &str = "Untorn_page_protection";

/// How far a resize of the buffer pool is.
pub(super) const RESIZE: &str = "Innodb_buffer_pool_resize_status";

/// The last step of the redo log's capacity by itself, and why.
pub(super) const LOG_ROSE: &str = "Untorn_redo_log_rose";
/// How far the recovery of a database that is being opened is; empty when it is open.
const RECOVERY: &str = "Untorn_recovery_progress";

/// Rows whose text is an event when it changes, and what changed.
const TEXTS: &[(&str, &str)] = &[
    (PROTECTION, "protection"),
    (RESIZE, "resize"),
    (LOG_ROSE, "resize"),
    ("Untorn_bpe_state", "tier"),
    (RECOVERY, "recovery"),
];

/// Counters that are an event when they grow.
const COUNTS: &[(&str, &str, &str)] = &[
    ("Untorn_log_room_waits", "stall", "writers waited for room in the log"),
    ("Innodb_log_waits", "log buffer", "writers waited for room in the log's buffer"),
    ("Innodb_deadlocks", "deadlock", "a deadlock was broken"),
    ("Untorn_corrupt_pages", "damage", "a damaged page was found"),
    ("Untorn_atomic_write_refusals", "protection", "the kernel refused an atomic write"),
];

struct Sample {
    unix_ms: u64,
    /// In the order of [`fields`]; NaN, which JSON writes as null, for a row that is not there and
    /// for a quantile of nothing.
    values: Vec<f64>,
}

/// Something that happened.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    number: u64,
    unix_ms: u64,
    kind: &'static str,
    text: String,
}

pub(super) struct Recorder {
    began_unix_ms: u64,
    /// Of the latest sample.
    number: u64,
    samples: VecDeque<Sample>,
    events: VecDeque<Event>,
    texts: HashMap<&'static str, String>,
    counts: HashMap<&'static str, u64>,
    times: HashMap<&'static str, Times>,
}

/// What a resize of the pool does, without how far it is.
fn without_progress(resize: &str) -> &str {
    resize.split_once(": withdrew ").map_or(resize, |(what, _)| what)
}

/// Whether nothing but figures has changed: files were opened, or times measured again.
fn differ_in_numbers_alone(before: &str, now: &str) -> bool {
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    before
        .split(is_of_number)
        .filter(|word| !word.is_empty())
        .eq(now.split(is_of_number).filter(|word| !word.is_empty()))
}

/// Names of what a sample has.
fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().copied().chain(TIMES.iter().flat_map(|(_, shares)| shares.map(|(name, _)| name)))
}

/// What follows a sample.
#[derive(Serialize)]
pub(super) struct Since<'r> {
    /// Another number than before: the server has been restarted.
    began_unix_ms: u64,
    fields: Vec<&'static str>,
    /// Number of the first sample.
    first: u64,
    samples: Vec<(u64, &'r [f64])>,
    /// Of these samples; `number` is that of the sample that showed it.
    events: Vec<&'r Event>,
    texts: &'r HashMap<&'static str, String>,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        Recorder {
            began_unix_ms: unix_ms(),
            number: 0,
            samples: VecDeque::new(),
            events: VecDeque::new(),
            texts: HashMap::new(),
            counts: HashMap::new(),
            times: HashMap::new(),
        }
    }

    /// Keeps a sample of these rows and histograms, and what they tell has happened.
    pub(super) fn record(&mut self, unix_ms: u64, rows: &[(String, String)], times: &[Series]) {
        let rows: HashMap<&str, &str> = rows.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.number += 1;
        if self.number == 1 {
            self.event(unix_ms, "start", "the server started".to_owned());
        }
        for &(name, kind) in TEXTS {
            let Some(text) = rows.get(name) else { continue };
            let before = self.texts.insert(name, (*text).to_owned());
            let is_same = |before: &str| match name {
                PROTECTION | RECOVERY => before == *text || differ_in_numbers_alone(before, text),
                RESIZE => without_progress(before) == without_progress(text),
                _ => before == *text,
            };
            if before.is_some_and(|before| !is_same(&before)) {
                let done = name == RECOVERY && text.is_empty();
                self.event(unix_ms, kind, if done { "it is over".to_owned() } else { (*text).to_owned() });
            }
        }
        for &(name, kind, text) in COUNTS {
            let Some(count) = rows.get(name).and_then(|value| value.parse().ok()) else { continue };
            let before = self.counts.insert(name, count);
            if before.is_some_and(|before| before < count) {
                self.event(unix_ms, kind, text.to_owned());
            }
        }
        let value = |name: &&str| rows.get(name).and_then(|value| value.parse().ok()).unwrap_or(f64::NAN);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        let mut values: Vec<f64> = FIELDS.iter().map(value).collect();
        values.extend(TIMES.iter().flat_map(|(family, shares)| self.quantiles(family, shares, times)));
        self.samples.push_back(Sample { unix_ms, values });
    }

    /// Of what was recorded since the last call, in microseconds.
    fn quantiles(&mut self, family: &'static str, shares: &[(&str, f64); 2], times: &[Series]) -> [f64; 2] {
        let series = times.iter().find(|series| series.family == family);
        let now = series.map(|series| series.times.clone()).unwrap_or_default();
        let before = self.times.insert(family, now.clone()).unwrap_or_default();
        let fresh = now.since(&before);
        shares.map(|(_, share)| fresh.quantile(share).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6))
    }

    /// An event of the sample that is being made; one that repeats the last one of a moment ago is the same.
    fn event(&mut self, unix_ms: u64, kind: &'static str, text: String) {
        let number = self.number;
        let lately = self.events.iter().rev().take_while(|event| event.number + 10 > number);
        if lately.into_iter().any(|event| event.kind == kind && event.text == text) {
            return;
        }
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Event { number, unix_ms, kind, text });
    }

    /// What follows sample `since`; all there is for 0.
    pub(super) fn since(&self, since: u64) -> Since<'_> {
        let oldest = self.number - self.samples.len() as u64 + 1;
        // A number of before a restart may be ahead of this one's.
        let since = if since > self.number { 0 } else { since };
        let first = oldest.max(since + 1);
        let skip = usize::try_from(first - oldest).unwrap_or(usize::MAX);
        let samples = self.samples.iter().skip(skip);
        Since {
            began_unix_ms: self.began_unix_ms,
            fields: fields().collect(),
            first,
            samples: samples.map(|sample| (sample.unix_ms, sample.values.as_slice())).collect(),
            events: self.events.iter().filter(|event| event.number >= first).collect(),
            texts: &self.texts,
        }
    }
}

pub(super) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rows(waits: u64, protection: &str) -> Vec<(String, String)> {
        vec![
            ("Untorn_log_room_waits".into(), waits.to_string()),
            ("Untorn_page_protection".into(), protection.into()),
            ("Untorn_bpe_hit_ratio".into(), "0.25".into()),
        ]
    }

    fn kinds(recorder: &Recorder) -> Vec<&'static str> {
        recorder.events.iter().map(|event| event.kind).collect()
    }

    #[test]
    fn changes_are_events_and_a_stall_of_many_seconds_is_one_until_it_rests() {
        let mut recorder = Recorder::new();
        recorder.record(1, &rows(5, "a"), &[]);
        assert_eq!(kinds(&recorder), ["start"]);
        recorder.record(2, &rows(6, "a"), &[]);
        recorder.record(3, &rows(7, "b"), &[]);
        assert_eq!(kinds(&recorder), ["start", "stall", "protection"]);
        for second in 4..20 {
            recorder.record(second, &rows(7, "b"), &[]);
        }
        recorder.record(20, &rows(8, "b"), &[]);
        assert_eq!(kinds(&recorder), ["start", "stall", "protection", "stall"]);
    }

    #[test]
    fn a_redo_log_that_becomes_larger_by_itself_is_an_event_with_its_reason() {
        let mut recorder = Recorder::new();
        for text in ["", "", "redo log from 128 to 192 MiB by itself: of 300 page writes"] {
            recorder.record(1, &[(LOG_ROSE.to_owned(), text.to_owned())], &[]);
        }
        assert_eq!(kinds(&recorder), ["start", "resize"]);
        assert!(recorder.events.back().unwrap().text.contains("of 300 page writes"));
    }

    #[test]
    fn how_far_a_resize_is_pushes_no_other_event_out() {
        let mut recorder = Recorder::new();
        let shrinking = |what: &str| [(RESIZE.to_owned(), what.to_owned())];
        for text in ["", "from 8 to 4 MiB: withdrew 1 of 9 pages", "from 8 to 4 MiB: withdrew 2 of 9 pages"] {
            recorder.record(1, &shrinking(text), &[]);
        }
        recorder.record(2, &shrinking("from 4 to 2 MiB: withdrew 2 of 9 pages"), &[]);
        assert_eq!(kinds(&recorder), ["start", "resize", "resize"]);
    }

    #[test]
    fn a_recovery_is_an_event_for_each_pass_over_the_log_and_its_end() {
        let mut recorder = Recorder::new();
        for (second, text) in
            ["", "reading 1 MiB", "reading 2 MiB", "applying 1 MiB", "applying 2 MiB", "", ""]
                .iter()
                .enumerate()
        {
            recorder.record(second as u64 + 1, &[(RECOVERY.to_owned(), (*text).to_owned())], &[]);
        }
        let texts: Vec<_> = recorder.events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["the server started", "reading 1 MiB", "applying 1 MiB", "it is over"]);
        assert_eq!(recorder.since(0).texts[RECOVERY], "");
    }

    #[test]
    fn another_file_or_another_time_is_no_event() {
        let mut recorder = Recorder::new();
        for (second, protection) in [
            "doublewrite (vda), 5 files, 12 µs",
            "doublewrite (vda), 16 files, 9.5 µs",
            "atomic (vda), 16 files, 9.5 µs",
            "atomic (vdb), 16 files, 10 µs",
        ]
        .iter()
        .enumerate()
        {
            recorder.record(second as u64 + 1, &rows(0, protection), &[]);
        }
        assert_eq!(kinds(&recorder), ["start", "protection", "protection"]);
    }

    #[test]
    fn the_rings_are_bounded_and_a_viewer_gets_what_it_lacks() {
        let mut recorder = Recorder::new();
        assert!(recorder.since(0).samples.is_empty());
        for second in 1..=SAMPLES_MAX as u64 + 10 {
            recorder.record(
                second,
                &rows(second * u64::from(second % 20 == 0), if second % 2 == 0 { "a" } else { "b" }),
                &[],
            );
        }
        assert_eq!((recorder.samples.len(), recorder.events.len()), (SAMPLES_MAX, EVENTS_MAX));
        let all = recorder.since(0);
        assert_eq!((all.first, all.samples.len()), (11, SAMPLES_MAX));
        let last = recorder.since(SAMPLES_MAX as u64 + 8);
        assert_eq!((last.first, last.samples.len()), (SAMPLES_MAX as u64 + 9, 2));
        assert_eq!(last.samples[0].0, SAMPLES_MAX as u64 + 9);
        assert!(recorder.since(SAMPLES_MAX as u64 + 10).samples.is_empty());
        assert_eq!(recorder.since(u64::MAX).samples.len(), SAMPLES_MAX, "the number is of an earlier server");
    }

    #[test]
    fn quantiles_are_those_of_the_last_second() {
        let mut times = Times::default();
        let mut recorder = Recorder::new();
        let mut median_after = |micros: &[u64]| {
            micros.iter().for_each(|micros| times.record(Duration::from_micros(*micros)));
            let rows = ["", ""];
            let series =
                Series { family: "Untorn_commit", label: None, help: "", rows, times: times.clone() };
            recorder.record(1, &[], &[series]);
            let at = fields().position(|field| field == "commit_p50_us").unwrap();
            recorder.samples.back().unwrap().values[at]
        };
        assert!((100.0..=125.0).contains(&median_after(&[100, 100, 100])));
        assert!((1000.0..=1250.0).contains(&median_after(&[1000])), "not a median of all");
        assert!(median_after(&[]).is_nan());
    }

    #[test]
    fn a_missing_row_is_null() {
        let mut recorder = Recorder::new();
        recorder.record(1, &rows(3, "a"), &[]);
        let json = serde_json::to_value(recorder.since(0)).unwrap();
        let at = |name| FIELDS.iter().position(|field| *field == name).unwrap();
        let values = &json["samples"][0][1];
        assert_eq!(values[at("Untorn_log_room_waits")], 3.0);
        assert_eq!(values[at("Untorn_bpe_hit_ratio")], 0.25);
        assert!(values[at("Questions")].is_null());
    }
}
