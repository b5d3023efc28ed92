//! What a statement cost: gathered while it runs, and handed on when it has been answered to its digest and
//! the slow log ([`crate::statement_stats`]).
//!
//! The clock is read when the first statement of a command begins and when each ends, so that what stands in
//! between (waiting for the client that takes a long answer, too) is the statement's. The row of its digest
//! is kept with the plan: a plan that runs again looks nothing up.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::ast::TableName;
use sql::catalog_views::PERFORMANCE_SCHEMA;
use sql::catalog_views::performance::{DIGEST_LATENCIES, DIGESTS, LATENCIES};
use sql::digest::Shape;
use sql::handler_counts::Handled;
use sql::latency_buckets::bucket_of;
use sql::value::Value;

use super::Session;
use crate::statement_stats::StatementStats;
use crate::statement_stats::digests::{DigestRow, SAMPLE_BYTES};
use crate::statement_stats::secrets::without_secrets;
use crate::statement_stats::slow_log::entry::{STATEMENT_BYTES_MAX, Sender};
use crate::status::Counter;

/// Views of `performance_schema` that TRUNCATE empties.
pub(super) const VIEWS_TO_EMPTY: [&str; 3] = [DIGESTS, DIGEST_LATENCIES, LATENCIES];

/// The statement that runs.
#[derive(Default)]
pub(super) struct CurrentStatement {
    pub(super) stats: StatementStats,
    /// Where it is counted, once that is known.
    digest: Option<Arc<DigestRow>>,
    /// It is a statement, and not what was refused as none.
    parsed: bool,
    /// Its run has begun: the warnings that there are, are its own.
    pub(super) run_begun: bool,
    /// When it has had the time that a SELECT may take, by the environment's clock.
    pub(super) deadline: Option<Duration>,
    /// Parameters of a definition's query.
    pub(super) parameters: Vec<Value<'static>>,
    /// It is SHOW with a condition: `max_execution_time` is for SELECT.
    pub(super) shows: bool,
    /// It has been added to a counter of its kind.
    counted: bool,
    /// It was a transaction, and has been committed.
    committed: bool,
    /// And the one that it executes.
    counted_inside: bool,
    /// What the session had cost when it began.
    rows_read: u64,
    lock_waited: Duration,
}

impl Session {
    /// A statement begins: what it costs is counted from here on.
    pub(super) fn begin_stats(&mut self) {
        self.state.connection.waits.begin_statement();
        let session = self.transaction.engine();
        self.current = CurrentStatement {
            rows_read: session.rows_read(),
            lock_waited: session.lock_waited(),
            ..CurrentStatement::default()
        };
    }

    /// The row of a statement of this text, with its values or without.
    pub(super) fn digest_of(
        &self,
        sql: &[u8],
        shape: Shape,
        database: Option<Arc<str>>,
    ) -> Option<Arc<DigestRow>> {
        let digests = &self.state.server.digests;
        let text = digests.is_on().then(|| sql::digest::text(sql, self.state.lexical_modes(), shape));
        // Comments are no statement.
        text.filter(|text| !text.is_empty()).map(|text| digests.row(database, text))
    }

    /// The statement has been parsed.
    pub(super) fn statement_is_parsed(&mut self) {
        self.current.parsed = true;
    }

    /// Where the statement that runs, which has been parsed and planned, is counted.
    pub(super) fn keep_digest(&mut self, digest: Option<Arc<DigestRow>>) {
        self.statement_is_parsed();
        self.current.digest = digest;
    }

    /// The statement has been a transaction of its own, which is committed.
    pub(super) fn is_transaction_by_itself(&mut self) {
        self.current.committed = true;
    }

    /// Counts the statement for SHOW STATUS, once however often it is planned.
    pub(super) fn count(&mut self, counter: Option<Counter>) {
        if let Some(counter) = counter
            && !std::mem::replace(&mut self.current.counted, true)
        {
            self.state.connection.counters.add(counter, 1);
        }
    }

    /// The same for the statement that EXECUTE runs: both count.
    pub(super) fn count_inside(&mut self, counter: Option<Counter>) {
        if let Some(counter) = counter
            && !std::mem::replace(&mut self.current.counted_inside, true)
        {
            self.state.connection.counters.add(counter, 1);
        }
    }

    /// Whether a plan that keeps this has to look its row up: it has none, or one of before a TRUNCATE.
    pub(super) fn lacks_digest(&self, kept: Option<&Arc<DigestRow>>) -> bool {
        let digests = &self.state.server.digests;
        digests.is_on() && !kept.is_some_and(|row| digests.is_current(row))
    }

    /// The view of this name, if it is one of those that can be emptied.
    pub(super) fn view_to_empty(&self, name: &TableName) -> Option<&'static str> {
        let database = self.planner().database_of(name);
        database.is_ok_and(|database| database.eq_ignore_ascii_case(PERFORMANCE_SCHEMA)).then_some(())?;
        VIEWS_TO_EMPTY.iter().find(|view| name.name.eq_ignore_ascii_case(view)).copied()
    }

    /// Empties one of them. Without the digests there is nothing to have a histogram of.
    pub(super) fn empty_view(&self, view: &'static str) {
        let server = &self.state.server;
        match view {
            LATENCIES => server.status.forget_latencies(),
            DIGEST_LATENCIES => server.digests.forget_latencies(),
            _ => server.digests.clear(),
        }
    }

    /// The statement that began then has been answered; returns when it was.
    pub(super) fn end_stats(&mut self, began: Instant, sql: &[u8], failed: bool) -> Instant {
        let now = Instant::now();
        let session = self.transaction.engine();
        let current = &mut self.current;
        let stats = &mut current.stats;
        stats.took = now.saturating_duration_since(began);
        stats.bucket = bucket_of(stats.took);
        stats.failed = failed;
        stats.lock_time = session.lock_waited().saturating_sub(current.lock_waited);
        let connection = &self.state.connection;
        stats.spent = connection.waits.end_statement(&connection.counters, stats.took);
        stats.examined = session.rows_read().saturating_sub(current.rows_read);
        stats.warnings = self.state.warnings_raised();
        let stats = *stats;
        if current.committed {
            self.state.database.record_transaction(stats.took);
        }
        let shape = if current.parsed { Shape::Whole } else { Shape::Broken };
        let counters = &self.state.connection.counters;
        counters.statement_times.record_alone(stats.took);
        counters.add_latency(stats.bucket);
        let reads = stats.reads;
        for (counter, more) in [
            (Counter::SelectScan, reads.scans),
            (Counter::SelectFullJoin, reads.full_joins),
            (Counter::SelectRange, reads.ranges),
        ] {
            if more > 0 {
                counters.add(counter, more);
            }
        }
        let mut handled = false;
        self.state.handled.drain(|what, count| {
            handled = true;
            counters.add(counter_of(what), count);
        });
        // Each statement that uses a table ends its part of the transaction.
        if handled {
            counters.add(if failed { Counter::HandlerRollback } else { Counter::HandlerCommit }, 1);
        }
        let server = &self.state.server;
        if server.digests.is_on() {
            let kept = self.current.digest.take().filter(|row| server.digests.is_current(row));
            let digest = kept.or_else(|| self.digest_of(sql, shape, self.state.current_database()));
            if let Some(row) = digest {
                let shown = row.text().filter(|_| shape == Shape::Whole);
                let sample = || without_secrets(first_bytes(sql, SAMPLE_BYTES), shown);
                row.record(counters.thread, &stats, began, sample);
            }
        }
        let settings = self.state.settings();
        let judgement =
            server.slow_log.judge(&stats, settings.long_query_time, settings.min_examined_row_limit);
        if judgement.slow {
            counters.add(Counter::SlowQueries, 1);
        }
        if judgement.logged {
            self.log_slow(&stats, began, sql, shape);
        }
        now
    }

    #[cold]
    fn log_slow(&self, stats: &StatementStats, began: Instant, sql: &[u8], shape: Shape) {
        let text = sql::digest::text(sql, self.state.lexical_modes(), shape);
        let database = self.state.current_database();
        let connection = &self.state.connection;
        let (user, host) =
            connection.with_activity(|activity| (activity.user.clone(), activity.host.clone()));
        let sender = Sender {
            user: &user,
            host: host.rsplit_once(':').map_or(&*host, |(host, _)| host),
            connection: connection.id,
            database: database.as_deref(),
        };
        let sql = match shape {
            Shape::Whole => without_secrets(first_bytes(sql, STATEMENT_BYTES_MAX), Some(&text)),
            Shape::Broken => Cow::Borrowed(text.as_bytes()),
        };
        self.state.server.slow_log.write(stats, began, &sender, &sql);
    }
}

/// Where SHOW STATUS has what a statement did with tables.
fn counter_of(what: Handled) -> Counter {
    match what {
        Handled::Delete => Counter::HandlerDelete,
        Handled::ReadFirst => Counter::HandlerReadFirst,
        Handled::ReadKey => Counter::HandlerReadKey,
        Handled::ReadLast => Counter::HandlerReadLast,
        Handled::ReadNext => Counter::HandlerReadNext,
        Handled::ReadPrevious => Counter::HandlerReadPrev,
        Handled::ReadRandomNext => Counter::HandlerReadRndNext,
        Handled::Update => Counter::HandlerUpdate,
        Handled::Write => Counter::HandlerWrite,
        Handled::SortRows => Counter::SortRows,
        Handled::SortScan => Counter::SortScan,
        Handled::TemporaryTables => Counter::CreatedTmpTables,
    }
}

fn first_bytes(sql: &[u8], most: usize) -> &[u8] {
    sql.get(..most).unwrap_or(sql)
}
