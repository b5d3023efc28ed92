//! `performance_schema`: what statements cost, and what they waited for.
//!
//! Columns are MySQL's. What is not measured here is 0, and docs/compatibility.md says what that is; times
//! are picoseconds, as there.

use std::time::Duration;

use untorn::engine::WaitKind;
use untorn::metrics::Times;

use super::ViewType::{Moment, Number, Text};
use super::declared::{keyed, nullable, required};
use super::server_tables::process_list;
use super::{PERFORMANCE_SCHEMA, RowSource, View, average, moment, number, picoseconds, text};
use crate::context::SqlContext;
use crate::facts::{DigestLatencies, StatementDigest};
use crate::latency_buckets::{BUCKETS, Latencies, range_of};
use crate::value::Value;

/// Name of the table of digests, which can be emptied.
pub const DIGESTS: &str = "events_statements_summary_by_digest";
/// The same of the histograms by digest.
pub const DIGEST_LATENCIES: &str = "events_statements_histogram_by_digest";
/// And of that of all statements.
pub const LATENCIES: &str = "events_statements_histogram_global";

fn digests(state: &SqlContext) -> RowSource {
    let unmeasured = || number(0u64);
    let zone = state.time_zone_offset();
    let moment = move |unix: Duration| Value::DateTime(moment(unix, zone), 6);
    let row = move |of: StatementDigest| {
        let mut row = vec![
            of.database.as_deref().map_or(Value::Null, text),
            of.digest.map_or(Value::Null, text),
            of.text.as_deref().map_or(Value::Null, text),
            number(of.count),
            picoseconds(of.sum),
            picoseconds(of.least),
            picoseconds(average(of.sum, of.count)),
            picoseconds(of.most),
            picoseconds(of.lock_time),
            number(of.errors),
            number(of.warnings),
            number(of.affected),
            number(of.sent),
            number(of.examined),
        ];
        row.extend([unmeasured(), unmeasured(), number(of.full_joins)]);
        row.extend([unmeasured(), unmeasured(), unmeasured(), number(of.scans)]);
        row.extend([unmeasured(), unmeasured(), unmeasured(), unmeasured(), number(of.no_index)]);
        row.extend([unmeasured(), picoseconds(of.cpu), unmeasured(), unmeasured(), unmeasured()]);
        row.extend([moment(of.first_seen), moment(of.last_seen)]);
        row.extend(of.quantiles.map(number));
        row.extend([text(of.sample), moment(of.sample_seen), picoseconds(of.sample_took)]);
        row
    };
    Box::new(state.facts.statement_digests().map(row))
}

/// The event of a kind of wait: MySQL's where it has one.
fn event_name(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::PageRead => "wait/io/file/innodb/innodb_data_file",
        WaitKind::FreeFrame => "wait/untorn/free_page",
        WaitKind::LogRoom => "wait/untorn/log_room",
        WaitKind::LogSync => "wait/io/file/innodb/innodb_log_file",
        WaitKind::RowLock => "wait/untorn/row_lock",
        WaitKind::MetadataLock => "wait/lock/metadata/sql/mdl",
        WaitKind::Latch => "wait/untorn/latch",
    }
}

fn waits(state: &SqlContext) -> RowSource {
    let row = |(kind, times): (WaitKind, Times)| {
        vec![
            text(event_name(kind)),
            number(times.count()),
            picoseconds(times.sum()),
            picoseconds(times.quantile(0.0).unwrap_or_default()),
            picoseconds(average(times.sum(), times.count())),
            picoseconds(times.quantile(1.0).unwrap_or_default()),
        ]
    };
    Box::new(WaitKind::ALL.into_iter().zip(state.facts.waits()).map(row))
}

fn statement_waits(state: &SqlContext) -> RowSource {
    let rows = |of: StatementDigest| {
        let (database, digest) = (of.database, of.digest);
        let waits = WaitKind::ALL.into_iter().zip(of.waited).filter(|(_, waited)| !waited.is_zero());
        waits.map(move |(kind, waited)| {
            vec![
                database.as_deref().map_or(Value::Null, text),
                digest.as_deref().map_or(Value::Null, text),
                text(event_name(kind)),
                picoseconds(waited),
            ]
        })
    };
    Box::new(state.facts.statement_digests().flat_map(rows))
}

/// A row for each bucket.
fn buckets(latencies: Latencies) -> impl Iterator<Item = Vec<Value<'static>>> {
    let total = latencies.total();
    (0..BUCKETS).scan(0, move |lower, bucket| {
        let ((low, high), count) = (range_of(bucket), latencies.of(bucket));
        *lower += count;
        let quantile = if total == 0 { 0.0 } else { *lower as f64 / total as f64 };
        let mut row = vec![number(bucket as u64), number(low), number(high), number(count), number(*lower)];
        // Six digits, as the column is declared.
        row.push(Value::Double((quantile * 1e6).round() / 1e6));
        Some(row)
    })
}

fn all_latencies(state: &SqlContext) -> RowSource {
    Box::new(buckets(state.facts.statement_latencies()))
}

fn digest_latencies(state: &SqlContext) -> RowSource {
    let rows = |of: DigestLatencies| {
        let database = of.database.as_deref().map_or(Value::Null, text);
        let digest = of.digest.map_or(Value::Null, text);
        buckets(of.latencies).map(move |row| {
            let mut named = vec![database.clone(), digest.clone()];
            named.extend(row);
            named
        })
    };
    Box::new(state.facts.digest_latencies().flat_map(rows))
}

macro_rules! of_buckets {
    ($number:expr; $($first:expr),*) => {
        &[
            $($first,)*
            ("BUCKET_NUMBER", $number),
            ("BUCKET_TIMER_LOW", required("bigint unsigned")),
            ("BUCKET_TIMER_HIGH", required("bigint unsigned")),
            ("COUNT_BUCKET", required("bigint unsigned")),
            ("COUNT_BUCKET_AND_LOWER", required("bigint unsigned")),
            ("BUCKET_QUANTILE", required("double(7,6)")),
        ]
    };
}

/// A view of names and values: of variables, or of SHOW STATUS.
macro_rules! names_and_values {
    ($name:literal, |$state:ident| $list:expr) => {
        View {
            database: PERFORMANCE_SCHEMA,
            name: $name,
            columns: &[
                ("VARIABLE_NAME", keyed("PRI", required("varchar(64)"))),
                ("VARIABLE_VALUE", nullable("varchar(1024)")),
            ],
            make: |$state| Box::new($list.into_iter().map(|(name, value)| vec![text(name), text(value)])),
        }
    };
}

pub(super) static VIEWS: &[View] = &[
    names_and_values!("global_variables", |state| state.facts.variables(true)),
    names_and_values!("session_variables", |state| state.facts.variables(false)),
    names_and_values!("global_status", |state| state.facts.status(true)),
    names_and_values!("session_status", |state| state.facts.status(false)),
    View {
        database: PERFORMANCE_SCHEMA,
        name: "processlist",
        columns: &[
            ("ID", keyed("PRI", required("bigint unsigned"))),
            ("USER", nullable("varchar(32)")),
            ("HOST", nullable("varchar(261)")),
            ("DB", nullable("varchar(64)")),
            ("COMMAND", nullable("varchar(16)")),
            ("TIME", nullable("bigint")),
            ("STATE", nullable("varchar(64)")),
            ("INFO", nullable("longtext")),
            ("EXECUTION_ENGINE", nullable("enum('PRIMARY','SECONDARY')")),
        ],
        make: |state| {
            Box::new(process_list(state).map(|mut row| {
                row.push(text("PRIMARY"));
                row
            }))
        },
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: DIGEST_LATENCIES,
        columns: of_buckets!(
            required("int unsigned");
            ("SCHEMA_NAME", keyed("MUL", nullable("varchar(64)"))),
            ("DIGEST", nullable("varchar(64)"))
        ),
        make: digest_latencies,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: LATENCIES,
        columns: of_buckets!(keyed("PRI", required("int unsigned"));),
        make: all_latencies,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: "events_waits_summary_global_by_event_name",
        columns: &[
            ("EVENT_NAME", Text(128)),
            ("COUNT_STAR", Number),
            ("SUM_TIMER_WAIT", Number),
            ("MIN_TIMER_WAIT", Number),
            ("AVG_TIMER_WAIT", Number),
            ("MAX_TIMER_WAIT", Number),
        ],
        make: waits,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: "untorn_waits_by_digest",
        columns: &[
            ("SCHEMA_NAME", Text(64)),
            ("DIGEST", Text(64)),
            ("EVENT_NAME", Text(128)),
            ("SUM_TIMER_WAIT", Number),
        ],
        make: statement_waits,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: DIGESTS,
        columns: &[
            ("SCHEMA_NAME", Text(64)),
            ("DIGEST", Text(64)),
            ("DIGEST_TEXT", Text(u32::MAX)),
            ("COUNT_STAR", Number),
            ("SUM_TIMER_WAIT", Number),
            ("MIN_TIMER_WAIT", Number),
            ("AVG_TIMER_WAIT", Number),
            ("MAX_TIMER_WAIT", Number),
            ("SUM_LOCK_TIME", Number),
            ("SUM_ERRORS", Number),
            ("SUM_WARNINGS", Number),
            ("SUM_ROWS_AFFECTED", Number),
            ("SUM_ROWS_SENT", Number),
            ("SUM_ROWS_EXAMINED", Number),
            ("SUM_CREATED_TMP_DISK_TABLES", Number),
            ("SUM_CREATED_TMP_TABLES", Number),
            ("SUM_SELECT_FULL_JOIN", Number),
            ("SUM_SELECT_FULL_RANGE_JOIN", Number),
            ("SUM_SELECT_RANGE", Number),
            ("SUM_SELECT_RANGE_CHECK", Number),
            ("SUM_SELECT_SCAN", Number),
            ("SUM_SORT_MERGE_PASSES", Number),
            ("SUM_SORT_RANGE", Number),
            ("SUM_SORT_ROWS", Number),
            ("SUM_SORT_SCAN", Number),
            ("SUM_NO_INDEX_USED", Number),
            ("SUM_NO_GOOD_INDEX_USED", Number),
            ("SUM_CPU_TIME", Number),
            ("MAX_CONTROLLED_MEMORY", Number),
            ("MAX_TOTAL_MEMORY", Number),
            ("COUNT_SECONDARY", Number),
            ("FIRST_SEEN", Moment),
            ("LAST_SEEN", Moment),
            ("QUANTILE_95", Number),
            ("QUANTILE_99", Number),
            ("QUANTILE_999", Number),
            ("QUERY_SAMPLE_TEXT", Text(u32::MAX)),
            ("QUERY_SAMPLE_SEEN", Moment),
            ("QUERY_SAMPLE_TIMER_WAIT", Number),
        ],
        make: digests,
    },
];
