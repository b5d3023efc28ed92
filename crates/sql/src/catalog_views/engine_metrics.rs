//! `information_schema.INNODB_METRICS`: the engine's table of metrics under the names of InnoDB's counters.
//!
//! Every metric of the engine is here, and nothing that is not measured. One that InnoDB has as a counter has
//! that counter's name and subsystem; the others are called as in SHOW GLOBAL STATUS, in small letters.
//! Counters cannot be switched off or reset, so the columns of a reset repeat those of the start.

use untorn::metrics::{Kind, Metric};
use untorn::types::DateTime;

use super::ViewType::{Integer, Real, Text, Time};
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, text};
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

fn metrics(state: &SqlContext) -> RowSource {
    let environment = state.database.environment();
    let open = environment.now();
    let seconds = open.as_secs();
    let since = environment.unix_time().saturating_sub(open).as_secs();
    let since = Value::DateTime(DateTime::from_unix(since as i64, 0), 0);
    let values = state.database.status();
    let row = move |(metric, (_, value)): (&Metric, (&str, u64))| {
        let (name, subsystem) = name(metric);
        let counts = metric.kind == Kind::Counter;
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
        row.extend([text(if counts { "status_counter" } else { "value" }), text(metric.help)]);
        row
    };
    Box::new(untorn::metrics::all().zip(values).map(row))
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
}
