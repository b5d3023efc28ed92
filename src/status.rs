//! Figures of the whole engine, under InnoDB's names where it has them and `Untorn_` where it has not.

use crate::database::Database;
use std::time::Duration;

/// One figure.
pub type Figure = (&'static str, u64);

impl Database {
    /// Counters and gauges as they are now. Bytes are bytes, times milliseconds, LSNs positions in the log.
    pub fn status(&self) -> Vec<Figure> {
        let mut figures = self.pool_figures();
        figures.extend(self.log_figures());
        figures.extend(self.transaction_figures());
        figures.extend(self.file_figures());
        figures.extend(self.extension_figures());
        figures
    }

    fn pool_figures(&self) -> Vec<Figure> {
        let pool = self.0.store.status();
        vec![
            ("Innodb_page_size", pool.page_size),
            ("Innodb_buffer_pool_pages_total", pool.pages_total),
            ("Innodb_buffer_pool_pages_data", pool.pages_data),
            ("Innodb_buffer_pool_bytes_data", pool.pages_data * pool.page_size),
            ("Innodb_buffer_pool_pages_dirty", pool.pages_dirty),
            ("Innodb_buffer_pool_bytes_dirty", pool.pages_dirty * pool.page_size),
            ("Innodb_buffer_pool_pages_free", pool.pages_free),
            ("Innodb_buffer_pool_pages_old", pool.pages_old),
            ("Innodb_buffer_pool_pages_flushed", pool.pages_flushed),
            ("Innodb_buffer_pool_pages_made_young", pool.pages_made_young),
            ("Innodb_buffer_pool_pages_made_not_young", pool.pages_made_not_young),
            ("Innodb_buffer_pool_read_requests", pool.read_requests),
            ("Innodb_buffer_pool_reads", pool.reads),
            ("Innodb_buffer_pool_write_requests", pool.write_requests),
            ("Innodb_buffer_pool_wait_free", pool.wait_free),
            ("Innodb_buffer_pool_read_ahead", pool.read_ahead),
            ("Innodb_buffer_pool_read_ahead_evicted", pool.read_ahead_evicted),
            ("Innodb_pages_created", pool.pages_created),
            ("Innodb_pages_read", pool.pages_read),
            ("Innodb_pages_written", pool.pages_written),
            ("Innodb_data_pending_reads", pool.pending_reads),
            ("Innodb_data_pending_writes", pool.pages_in_flight),
            ("Untorn_buffer_pool_pages_evicted", pool.pages_evicted),
            ("Untorn_blocking_reads", pool.blocking_reads),
            ("Untorn_corrupt_pages", pool.corrupt_pages),
        ]
    }

    fn log_figures(&self) -> Vec<Figure> {
        let log = self.0.redo.status();
        let age = log.current.0.saturating_sub(log.checkpoint.0);
        vec![
            ("Innodb_lsn_current", log.current.0),
            ("Innodb_lsn_flushed", log.flushed.0),
            ("Innodb_lsn_last_checkpoint", log.checkpoint.0),
            ("Innodb_checkpoint_age", age),
            ("Innodb_checkpoint_max_age", log.capacity),
            ("Innodb_redo_log_current_lsn", log.current.0),
            ("Innodb_redo_log_flushed_to_disk_lsn", log.flushed.0),
            ("Innodb_redo_log_checkpoint_lsn", log.checkpoint.0),
            ("Innodb_redo_log_logical_size", age),
            ("Innodb_log_write_requests", log.appends),
            ("Innodb_log_writes", log.groups_written),
            ("Innodb_log_waits", log.waits),
            ("Innodb_os_log_written", log.bytes_written),
            ("Innodb_os_log_fsyncs", log.syncs),
            ("Untorn_checkpoints", log.checkpoints),
            ("Untorn_recovery_target_ms", milliseconds(self.0.store.recovery_target())),
            ("Untorn_recovery_estimate_ms", milliseconds(self.0.store.recovery_estimate())),
        ]
    }

    fn transaction_figures(&self) -> Vec<Figure> {
        const NANOSECONDS_PER_MS: u64 = 1_000_000;
        let trx = self.0.system.status();
        let time = trx.lock_wait_nanoseconds / NANOSECONDS_PER_MS;
        vec![
            ("Innodb_max_trx_id", trx.next_trx_id),
            ("Innodb_history_list_length", trx.history_length),
            ("Innodb_deadlocks", trx.deadlocks),
            ("Innodb_row_lock_current_waits", trx.lock_waits_current),
            ("Innodb_row_lock_waits", trx.lock_waits),
            ("Innodb_row_lock_time", time),
            ("Innodb_row_lock_time_avg", time.checked_div(trx.lock_waits).unwrap_or(0)),
            ("Innodb_row_lock_time_max", trx.lock_wait_nanoseconds_max / NANOSECONDS_PER_MS),
            ("Innodb_rows_read", trx.rows_read),
            ("Innodb_rows_inserted", trx.rows_inserted),
            ("Innodb_rows_updated", trx.rows_updated),
            ("Innodb_rows_deleted", trx.rows_deleted),
            ("Untorn_transactions_active", trx.active as u64),
            ("Untorn_commits", trx.commits),
            ("Untorn_rollbacks", trx.rollbacks),
            ("Untorn_row_locks", trx.locks),
            ("Untorn_row_lock_timeouts", trx.lock_timeouts),
            ("Untorn_versions_built", trx.versions_built),
            ("Untorn_purged_records", trx.purged_records),
            // One tablespace, which is truncated in place.
            ("Innodb_undo_tablespaces_total", 1),
            ("Innodb_undo_tablespaces_implicit", 1),
            ("Innodb_undo_tablespaces_explicit", 0),
            ("Innodb_undo_tablespaces_active", 1),
            ("Untorn_undo_pages", trx.undo_pages),
            ("Untorn_undo_truncations", trx.undo_truncations),
            ("Untorn_undo_truncated_bytes", trx.undo_truncated_bytes),
            ("Untorn_purge_skipped", trx.purge_skipped),
            ("Untorn_unfinished_transactions", trx.unfinished_transactions),
            ("Untorn_unfinished_undo_records", trx.unfinished_records),
        ]
    }

    fn file_figures(&self) -> Vec<Figure> {
        let files = self.0.environment.storage().counters();
        let (pages, tier) = (self.0.writer.status(), self.extension());
        vec![
            ("Innodb_data_reads", files.reads),
            ("Innodb_data_read", files.bytes_read),
            ("Innodb_data_writes", files.writes),
            ("Innodb_data_written", files.bytes_written),
            ("Innodb_data_fsyncs", files.syncs),
            ("Innodb_dblwr_pages_written", pages.doublewrite_pages),
            ("Innodb_dblwr_writes", pages.doublewrite_writes),
            ("Untorn_atomic_writes", pages.atomic_writes),
            ("Untorn_atomic_write_refusals", pages.atomic_refusals),
            ("Untorn_atomic_writes_without_room", pages.atomic_without_room),
            ("Untorn_pages_written_without_copy", pages.recreatable_pages),
            ("Untorn_bytes_written_data", pages.bytes_data),
            ("Untorn_bytes_written_doublewrite", pages.bytes_doublewrite),
            ("Untorn_bytes_written_redo", self.0.redo.status().bytes_written),
            ("Untorn_bytes_written_undo", pages.bytes_undo),
            ("Untorn_bytes_written_tier", tier.bytes_written + tier.bytes_written_map),
        ]
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
