//! `information_schema.INNODB_METRICS`: the engine's table of metrics under the names of InnoDB's counters.
//!
//! Every metric of the engine is here, and nothing that is not measured. One that InnoDB has as a counter has
//! that counter's name and subsystem; the others are called as in SHOW GLOBAL STATUS, in small letters.
//! Counters cannot be switched off or reset, so the columns of a reset repeat those of the start.
//!
//! InnoDB has no histogram; one of the engine's is four rows here: how many times it has (a counter), and the
//! time in microseconds that half of them, 99 % and all of them did not exceed (values), by the end of a
//! bucket and so a quarter too long at most.

use std::time::Duration;

use untorn::metrics::{Kind, Metric, Series};

use super::ViewType::{Integer, Real, Text, Time};
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, moment, text};
use crate::context::SqlContext;
use crate::value::Value;

/// A status variable, InnoDB's counter, its subsystem.
const COUNTERS: &[(&str, &str, &str)] = &[
    ("Innodb_deadlocks", "lock_deadlocks", "lock"),
    ("Untorn_row_lock_timeouts", "lock_timeouts", "lock"),
    ("Untorn_row_locks", "lock_rec_locks", "lock"),
    ("Innodb_row_lock_current_waits", "lock_row_lock_current_waits", "lock"),
    ("Innodb_row_lock_time", "lock_row_lock_time", "lock"),
    ("Innodb_row_lock_time_max", "lock_row_lock_time_max", "lock"),
    ("Innodb_row_lock_waits", "lock_row_lock_waits", "lock"),
    ("Innodb_row_lock_time_avg", "lock_row_lock_time_avg", "lock"),
    ("Innodb_buffer_pool_reads", "buffer_pool_reads", "buffer"),
    ("Innodb_buffer_pool_read_requests", "buffer_pool_read_requests", "buffer"),
    ("Innodb_buffer_pool_write_requests", "buffer_pool_write_requests", "buffer"),
    ("Innodb_buffer_pool_wait_free", "buffer_pool_wait_free", "buffer"),
    ("Innodb_buffer_pool_read_ahead", "buffer_pool_read_ahead", "buffer"),
    ("Innodb_buffer_pool_read_ahead_evicted", "buffer_pool_read_ahead_evicted", "buffer"),
    ("Innodb_buffer_pool_pages_total", "buffer_pool_pages_total", "buffer"),
    ("Innodb_buffer_pool_pages_data", "buffer_pool_pages_data", "buffer"),
    ("Innodb_buffer_pool_bytes_data", "buffer_pool_bytes_data", "buffer"),
    ("Innodb_buffer_pool_pages_dirty", "buffer_pool_pages_dirty", "buffer"),
    ("Innodb_buffer_pool_bytes_dirty", "buffer_pool_bytes_dirty", "buffer"),
    ("Innodb_buffer_pool_pages_free", "buffer_pool_pages_free", "buffer"),
    ("Innodb_pages_created", "buffer_pages_created", "buffer"),
    ("Innodb_pages_written", "buffer_pages_written", "buffer"),
    ("Untorn_pages_written_for_age", "buffer_flush_adaptive_total_pages", "buffer"),
    ("Untorn_pages_written_for_log_short", "buffer_flush_sync_total_pages", "buffer"),
    ("Untorn_pages_written_for_idle", "buffer_flush_background_total_pages", "buffer"),
    ("Untorn_pages_written_for_frames", "buffer_LRU_batch_flush_total_pages", "buffer"),
    ("Innodb_pages_read", "buffer_pages_read", "buffer"),
    ("Innodb_data_read", "buffer_data_reads", "buffer"),
    ("Innodb_data_written", "buffer_data_written", "buffer"),
    ("Innodb_data_reads", "os_data_reads", "os"),
    ("Innodb_data_writes", "os_data_writes", "os"),
    ("Innodb_data_fsyncs", "os_data_fsyncs", "os"),
    ("Innodb_data_pending_reads", "os_pending_reads", "os"),
    ("Innodb_data_pending_writes", "os_pending_writes", "os"),
    ("Innodb_os_log_written", "os_log_bytes_written", "os"),
    ("Innodb_os_log_fsyncs", "os_log_fsyncs", "os"),
    ("Untorn_commits", "trx_rw_commits", "transaction"),
    ("Untorn_rollbacks", "trx_rollbacks", "transaction"),
    ("Untorn_transactions_active", "trx_active_transactions", "transaction"),
    ("Innodb_history_list_length", "trx_rseg_history_len", "transaction"),
    ("Untorn_undo_pages", "trx_rseg_current_size", "transaction"),
    ("Untorn_undo_truncations", "undo_truncate_count", "undo"),
    ("Innodb_lsn_flushed", "log_lsn_last_flush", "log"),
    ("Innodb_lsn_last_checkpoint", "log_lsn_last_checkpoint", "log"),
    ("Innodb_lsn_current", "log_lsn_current", "log"),
    ("Innodb_checkpoint_age", "log_lsn_checkpoint_age", "log"),
    ("Innodb_log_waits", "log_waits", "log"),
    ("Innodb_log_write_requests", "log_write_requests", "log"),
    ("Innodb_log_writes", "log_writes", "log"),
    ("Untorn_checkpoints", "log_checkpoints", "log"),
    ("Innodb_dblwr_writes", "innodb_dblwr_writes", "server"),
    ("Innodb_dblwr_pages_written", "innodb_dblwr_pages_written", "server"),
    ("Innodb_page_size", "innodb_page_size", "server"),
    ("Innodb_rows_read", "dml_reads", "dml"),
    ("Innodb_rows_inserted", "dml_inserts", "dml"),
    ("Innodb_rows_deleted", "dml_deletes", "dml"),
    ("Innodb_rows_updated", "dml_updates", "dml"),
];

fn name(metric: &Metric) -> (String, &'static str) {
    match COUNTERS.iter().find(|(status, ..)| *status == metric.name) {
        Some((_, counter, subsystem)) => ((*counter).to_owned(), *subsystem),
        None => (metric.name.to_ascii_lowercase(), "untorn"),
    }
}

/// A histogram's rows: name, kind, value.
fn quantiles(series: &Series) -> [(String, Kind, u64); 4] {
    let base = series.rows[0].trim_end_matches("_p50_us").to_ascii_lowercase();
    let micros = |share: f64| {
        let time = series.times.quantile(share).unwrap_or_default();
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
    };
    [
        (format!("{base}_count"), Kind::Counter, series.times.count()),
        (format!("{base}_p50_us"), Kind::Gauge, micros(0.5)),
        (format!("{base}_p99_us"), Kind::Gauge, micros(0.99)),
        (format!("{base}_max_us"), Kind::Gauge, micros(1.0)),
    ]
}

fn metrics(state: &SqlContext) -> RowSource {
    let environment = state.database.environment();
    let open = environment.now();
    let seconds = open.as_secs();
    let since = environment.unix_time().saturating_sub(open).as_secs();
    let since = Value::DateTime(moment(Duration::from_secs(since), state.time_zone_offset()), 0);
    let values = state.database.status();
    let row = move |(name, subsystem, kind, help, value): (String, &'static str, Kind, String, u64)| {
        let counts = kind == Kind::Counter;
        let count = Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let average = match counts && seconds > 0 {
            true => Value::Double(value as f64 / seconds as f64),
            false => Value::Null,
        };
        // Of greatest and least values nothing is kept.
        let half = [count, Value::Null, Value::Null, average];
        let mut row = vec![text(name), text(subsystem)];
        row.extend(half.clone());
        row.extend(half);
        row.extend([since.clone(), Value::Null, Value::Int(seconds as i64), Value::Null, text("enabled")]);
        row.extend([text(if counts { "status_counter" } else { "value" }), text(help)]);
        row
    };
    let figures = untorn::metrics::all().zip(values).map(|(metric, (_, value))| {
        let (name, subsystem) = name(metric);
        (name, subsystem, metric.kind, metric.help.to_owned(), value)
    });
    let histograms = state.database.times().into_iter().flat_map(|series| {
        let rows = quantiles(&series).map(|(name, kind, value)| {
            let help = match kind {
                Kind::Counter => format!("How many. {}", series.help),
                Kind::Gauge => format!("Microseconds. {}", series.help),
            };
            (name, "untorn", kind, help, value)
        });
        rows.to_vec()
    });
    Box::new(figures.chain(histograms).map(row))
}

pub(super) static VIEWS: &[View] = &[view!("INNODB_METRICS", [
    "NAME" Text(193), "SUBSYSTEM" Text(193), "COUNT" Integer, "MAX_COUNT" Integer, "MIN_COUNT" Integer,
    "AVG_COUNT" Real, "COUNT_RESET" Integer, "MAX_COUNT_RESET" Integer, "MIN_COUNT_RESET" Integer,
    "AVG_COUNT_RESET" Real, "TIME_ENABLED" Time, "TIME_DISABLED" Time, "TIME_ELAPSED" Integer,
    "TIME_RESET" Time, "STATUS" Text(193), "TYPE" Text(193), "COMMENT" Text(193),
], metrics)];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn counters_are_of_metrics_that_exist_and_names_are_single() {
        for (status, counter, _) in COUNTERS {
            assert!(untorn::metrics::all().any(|metric| metric.name == *status), "{status} of {counter}");
        }
        let names: BTreeSet<String> = untorn::metrics::all().map(|metric| name(metric).0).collect();
        assert_eq!(names.len(), untorn::metrics::all().count());
    }

    #[test]
    fn a_histogram_is_a_count_and_three_times() {
        let mut times = untorn::metrics::Times::default();
        for micros in [100, 100, 100, 5000] {
            times.record(std::time::Duration::from_micros(micros));
        }
        let rows = ["Untorn_x_p50_us", "Untorn_x_p99_us"];
        let rows = quantiles(&Series { family: "Untorn_x", label: None, help: "", rows, times });
        let names = rows.each_ref().map(|(name, ..)| name.as_str());
        assert_eq!(names, ["untorn_x_count", "untorn_x_p50_us", "untorn_x_p99_us", "untorn_x_max_us"]);
        let values = rows.map(|(.., value)| value);
        assert_eq!(values[0], 4);
        assert!((100..=125).contains(&values[1]) && (5000..=6250).contains(&values[3]), "{values:?}");
    }
}
