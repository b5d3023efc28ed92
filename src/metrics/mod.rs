//! The engine's figures, described once.
//!
//! A [`Metric`] says what a figure is called, whether it only grows, its unit, how a person reads it, and how
//! it is taken from a `Reading`. SHOW GLOBAL STATUS and the text that Prometheus scrapes come from this
//! table, so neither can have a figure that the other lacks. Names are InnoDB's where it has the figure,
//! `Untorn_` where it has not. How long operations took are histograms, a table of their own: [`TIMES`].
//!
//! A reading asks each layer once. Its figures are not of one instant, because the layers count without a
//! common lock; two figures of one layer are as close as that layer keeps them.
//!
//! To add a figure, add a line to the table of its layer: `pool`, `log`, `transactions`, `files` or `tier`;
//! a histogram to `times`.

mod extension;
mod files;
mod log;
mod openmetrics;
mod pool;
mod times;
mod transactions;

use std::time::Duration;

pub use disk::{Histogram, Times};
pub use openmetrics::{CONTENT_TYPE, text};
pub use times::{Series, TIMES, TimesMetric};

use crate::database::Database;

/// A figure's name and its value.
pub type Figure = (&'static str, u64);

/// How a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows while the database is open; its rate is what tells something.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events or things.
    Count,
    /// Bytes.
    Bytes,
    /// Pages of the database's page size.
    Pages,
    /// Rows of tables.
    Rows,
    /// A position in the redo log, in bytes.
    Lsn,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
}

/// A figure that the engine keeps.
pub struct Metric {
    /// As SHOW GLOBAL STATUS spells it.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// What it means, in a sentence or two.
    pub help: &'static str,
    read: fn(&Reading) -> u64,
}

/// A figure that somebody else keeps and puts among the rows of SHOW GLOBAL STATUS, for [`text()`].
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// As SHOW GLOBAL STATUS spells it.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// What it means.
    pub help: &'static str,
}

/// What the layers say of themselves.
struct Reading {
    pool: pagestore::PoolStatus,
    log: redo::Status,
    transactions: txn::Status,
    files: disk::IoCounters,
    pages: dblwr::Status,
    tier: bpe::Status,
    recovery_target: Duration,
    recovery_estimate: Duration,
}

impl Reading {
    fn checkpoint_age(&self) -> u64 {
        self.log.current.0.saturating_sub(self.log.checkpoint.0)
    }
}

const TABLES: [&[Metric]; 5] =
    [pool::METRICS, log::METRICS, transactions::METRICS, files::METRICS, extension::METRICS];

/// Every metric of the engine.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    TABLES.into_iter().flatten()
}

impl Database {
    /// Every figure of [`metrics::all`](all), in its order, as it is now.
    pub fn status(&self) -> Vec<Figure> {
        let now = Reading {
            pool: self.0.store.status(),
            log: self.0.redo.status(),
            transactions: self.0.system.status(),
            files: self.0.environment.storage().counters(),
            pages: self.0.writer.status(),
            tier: self.extension(),
            recovery_target: self.0.store.recovery_target(),
            recovery_estimate: self.0.store.recovery_estimate(),
        };
        all().map(|metric| (metric.name, (metric.read)(&now))).collect()
    }

    /// The engine's rows of SHOW GLOBAL STATUS but its histograms: every figure, and how files are protected.
    #[doc(hidden)]
    pub fn status_rows(&self) -> Vec<(String, String)> {
        let figures = self.status().into_iter();
        let protection = self.page_protection_summary().join("; ");
        figures
            .map(|(name, figure)| (name.to_owned(), figure.to_string()))
            .chain([("Untorn_page_protection".to_owned(), protection)])
            .collect()
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_single_in_any_case_and_helps_are_sentences() {
        let mut names = BTreeSet::new();
        for metric in all() {
            // It would look like a counter to Prometheus.
            let is_counter = metric.kind == Kind::Counter || !metric.name.starts_with("Untorn_");
            assert!(is_counter || !metric.name.ends_with("_total"), "{}", metric.name);
            assert!(names.insert(metric.name.to_ascii_lowercase()), "{} is there twice", metric.name);
            assert!(
                metric.help.ends_with('.') && !metric.help.contains(['\n', '\\', '"']),
                "{}",
                metric.name
            );
        }
        for row in TIMES.iter().flat_map(|metric| metric.rows) {
            assert!(names.insert(row.to_ascii_lowercase()), "{row} is there twice");
        }
    }
}
