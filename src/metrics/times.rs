//! How long operations took: the histograms of the table.
//!
//! Each is kept where the operation waits or does I/O, so that what does neither pays nothing. SHOW GLOBAL
//! STATUS has the median and the 99th percentile of all that was recorded since the start; the OpenMetrics
//! text has the buckets, from which any span's can be made.

use disk::Times;
use page::extension::Source;

use super::Figure;
use crate::database::Database;

/// A histogram that the engine keeps.
pub struct TimesMetric {
    /// As SHOW GLOBAL STATUS spells it, followed by `_p50_us` and `_p99_us`; OpenMetrics has `_seconds`.
    pub family: &'static str,
    /// Which of a family of several.
    pub label: Option<(&'static str, &'static str)>,
    /// What is measured, in a sentence or two; one for a family.
    pub help: &'static str,
    /// Names in SHOW GLOBAL STATUS.
    pub rows: [&'static str; 2],
    read: fn(&Database) -> Times,
}

/// A histogram as it was read.
pub struct Series {
    /// See [`TimesMetric::family`].
    pub family: &'static str,
    /// See [`TimesMetric::label`].
    pub label: Option<(&'static str, &'static str)>,
    /// See [`TimesMetric::help`].
    pub help: &'static str,
    /// See [`TimesMetric::rows`].
    pub rows: [&'static str; 2],
    /// What was recorded.
    pub times: Times,
}

impl Series {
    /// Median and 99th percentile in microseconds; 0 when nothing was recorded.
    pub fn figures(&self) -> [Figure; 2] {
        let micros = |share: f64| {
            let time = self.times.quantile(share).unwrap_or_default();
            u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
        };
        let [median, high] = self.rows;
        [(median, micros(0.5)), (high, micros(0.99))]
    }
}

macro_rules! rows {
    ($name:literal) => {
        [concat!($name, "_p50_us"), concat!($name, "_p99_us")]
    };
}

const PAGE_READ: &str = "Reads of pages, from the request to the page, by source.";
const PAGE_WRITE: &str = "Writes of pages by way: atomic and plain ones are requests, of the doublewrite a \
     batch at a time with its copies and syncs.";

/// Every histogram of the engine.
pub static TIMES: &[TimesMetric] = &[
    TimesMetric {
        family: "Untorn_transaction",
        label: None,
        help: "Transactions that were committed, from their beginning to the end of the commit.",
        rows: rows!("Untorn_transaction"),
        read: |database| database.0.transaction_times.times(),
    },
    TimesMetric {
        family: "Untorn_commit",
        label: None,
        help: "Commits of changes that waited for the log.",
        rows: rows!("Untorn_commit"),
        read: |database| database.0.system.commit_times(),
    },
    TimesMetric {
        family: "Untorn_log_sync",
        label: None,
        help: "Writes of the log with their sync.",
        rows: rows!("Untorn_log_sync"),
        read: |database| database.0.redo.sync_times(),
    },
    TimesMetric {
        family: "Untorn_page_read",
        label: Some(("source", "tier")),
        help: PAGE_READ,
        rows: rows!("Untorn_page_read_tier"),
        read: |database| database.0.store.read_times(Source::Tier),
    },
    TimesMetric {
        family: "Untorn_page_read",
        label: Some(("source", "file")),
        help: PAGE_READ,
        rows: rows!("Untorn_page_read_file"),
        read: |database| database.0.store.read_times(Source::DataFile),
    },
    TimesMetric {
        family: "Untorn_page_write",
        label: Some(("way", "atomic")),
        help: PAGE_WRITE,
        rows: rows!("Untorn_page_write_atomic"),
        read: |database| database.0.writer.write_times().atomic,
    },
    TimesMetric {
        family: "Untorn_page_write",
        label: Some(("way", "doublewrite")),
        help: PAGE_WRITE,
        rows: rows!("Untorn_page_write_doublewrite"),
        read: |database| database.0.writer.write_times().doublewrite,
    },
    TimesMetric {
        family: "Untorn_page_write",
        label: Some(("way", "plain")),
        help: PAGE_WRITE,
        rows: rows!("Untorn_page_write_plain"),
        read: |database| database.0.writer.write_times().plain,
    },
    TimesMetric {
        family: "Untorn_row_lock_wait",
        label: None,
        help: "Waits for row locks, however they ended.",
        rows: rows!("Untorn_row_lock_wait"),
        read: |database| database.0.system.lock_wait_times(),
    },
];

impl Database {
    /// Every histogram of [`metrics::TIMES`](TIMES), in its order, as it is now.
    pub fn times(&self) -> Vec<Series> {
        let series = |metric: &TimesMetric| Series {
            family: metric.family,
            label: metric.label,
            help: metric.help,
            rows: metric.rows,
            times: (metric.read)(self),
        };
        TIMES.iter().map(series).collect()
    }
}
