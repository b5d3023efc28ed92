//! SHOW STATUS counters: one set per runtime thread, summed on demand.
//!
//! A counter is written by one thread only, so counting is a plain load and store without a bus lock; readers see
//! values that are a moment old.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

macro_rules! counters {
    ($($variant:ident => $name:literal,)*) => {
        /// A counter; the string is its name in SHOW STATUS.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        #[allow(missing_docs)]
        pub enum Counter { $($variant,)* }
        /// Names in the order of [`Counter`].
        pub const COUNTER_NAMES: &[&str] = &[$($name,)*];
    };
}

counters! {
    Questions => "Questions",
    Queries => "Queries",
    SlowQueries => "Slow_queries",
    BytesReceived => "Bytes_received",
    BytesSent => "Bytes_sent",
    AbortedClients => "Aborted_clients",
    AbortedConnects => "Aborted_connects",
    ComAdminCommands => "Com_admin_commands",
    ComAlterTable => "Com_alter_table",
    ComAlterUser => "Com_alter_user",
    ComAnalyze => "Com_analyze",
    ComBegin => "Com_begin",
    ComChangeDb => "Com_change_db",
    ComCheck => "Com_check",
    ComCommit => "Com_commit",
    ComCreateDb => "Com_create_db",
    ComCreateIndex => "Com_create_index",
    ComCreateTable => "Com_create_table",
    ComCreateUser => "Com_create_user",
    ComDelete => "Com_delete",
    ComDeleteMulti => "Com_delete_multi",
    ComDropDb => "Com_drop_db",
    ComDropIndex => "Com_drop_index",
    ComDropTable => "Com_drop_table",
    ComDropUser => "Com_drop_user",
    ComExplainOther => "Com_explain_other",
    ComFlush => "Com_flush",
    ComGrant => "Com_grant",
    ComInsert => "Com_insert",
    ComInsertSelect => "Com_insert_select",
    ComKill => "Com_kill",
    ComLoad => "Com_load",
    ComLockTables => "Com_lock_tables",
    ComOptimize => "Com_optimize",
    ComRenameTable => "Com_rename_table",
    ComReplace => "Com_replace",
    ComReplaceSelect => "Com_replace_select",
    ComReleaseSavepoint => "Com_release_savepoint",
    ComRevoke => "Com_revoke",
    ComRollback => "Com_rollback",
    ComRollbackToSavepoint => "Com_rollback_to_savepoint",
    ComSavepoint => "Com_savepoint",
    ComSelect => "Com_select",
    ComSetOption => "Com_set_option",
    ComShowBinlogs => "Com_show_binlogs",
    ComShowCharsets => "Com_show_charsets",
    ComShowCollations => "Com_show_collations",
    ComShowCreateDb => "Com_show_create_db",
    ComShowCreateTable => "Com_show_create_table",
    ComShowDatabases => "Com_show_databases",
    ComShowEngineStatus => "Com_show_engine_status",
    ComShowErrors => "Com_show_errors",
    ComShowFields => "Com_show_fields",
    ComShowGrants => "Com_show_grants",
    ComShowKeys => "Com_show_keys",
    ComShowMasterStatus => "Com_show_master_status",
    ComShowPlugins => "Com_show_plugins",
    ComShowProcesslist => "Com_show_processlist",
    ComShowReplicaStatus => "Com_show_replica_status",
    ComShowStatus => "Com_show_status",
    ComShowStorageEngines => "Com_show_storage_engines",
    ComShowTableStatus => "Com_show_table_status",
    ComShowTables => "Com_show_tables",
    ComShowTriggers => "Com_show_triggers",
    ComShowVariables => "Com_show_variables",
    ComShowWarnings => "Com_show_warnings",
    ComStmtClose => "Com_stmt_close",
    ComStmtExecute => "Com_stmt_execute",
    ComStmtPrepare => "Com_stmt_prepare",
    ComStmtReset => "Com_stmt_reset",
    ComStmtSendLongData => "Com_stmt_send_long_data",
    ComTruncate => "Com_truncate",
    ComUnlockTables => "Com_unlock_tables",
    ComUpdate => "Com_update",
    ComUpdateMulti => "Com_update_multi",
    CreatedTmpTables => "Created_tmp_tables",
    CreatedTmpDiskTables => "Created_tmp_disk_tables",
    HandlerCommit => "Handler_commit",
    HandlerDelete => "Handler_delete",
    HandlerReadFirst => "Handler_read_first",
    HandlerReadKey => "Handler_read_key",
    HandlerReadLast => "Handler_read_last",
    HandlerReadNext => "Handler_read_next",
    HandlerReadPrev => "Handler_read_prev",
    HandlerReadRnd => "Handler_read_rnd",
    HandlerReadRndNext => "Handler_read_rnd_next",
    HandlerRollback => "Handler_rollback",
    HandlerSavepoint => "Handler_savepoint",
    HandlerSavepointRollback => "Handler_savepoint_rollback",
    HandlerUpdate => "Handler_update",
    HandlerWrite => "Handler_write",
    SelectFullJoin => "Select_full_join",
    SelectFullRangeJoin => "Select_full_range_join",
    SelectRange => "Select_range",
    SelectRangeCheck => "Select_range_check",
    SelectScan => "Select_scan",
    SortMergePasses => "Sort_merge_passes",
    SortRange => "Sort_range",
    SortRows => "Sort_rows",
    SortScan => "Sort_scan",
    TableLocksImmediate => "Table_locks_immediate",
    TableLocksWaited => "Table_locks_waited",
}

/// One thread's counters.
pub struct Counters {
    values: Vec<AtomicU64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self { values: COUNTER_NAMES.iter().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Counters {
    /// Counts; only the owning thread may call it (another thread's addition could be lost, nothing worse).
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        if let Some(value) = self.values.get(counter as usize) {
            value.store(value.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }

    /// The value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

/// All threads' counters and what is counted once.
#[derive(Default)]
pub struct Status {
    threads: Mutex<Vec<Arc<Counters>>>,
}

impl Status {
    /// A set for a new runtime thread.
    pub fn thread(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.threads.lock().push(Arc::clone(&counters));
        counters
    }

    /// The sum over all threads.
    pub fn sum(&self, counter: Counter) -> u64 {
        self.threads.lock().iter().fold(0, |sum, counters| sum.wrapping_add(counters.get(counter)))
    }

    /// Every counter with its sum.
    pub fn collect(&self) -> Vec<(&'static str, u64)> {
        let threads = self.threads.lock();
        COUNTER_NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let sum = threads
                    .iter()
                    .filter_map(|counters| counters.values.get(index))
                    .fold(0u64, |sum, value| sum.wrapping_add(value.load(Ordering::Relaxed)));
                (*name, sum)
            })
            .collect()
    }
}

/// The text of COM_STATISTICS.
pub fn statistics_line(server: &crate::server::registry::Server) -> String {
    let uptime = server.clock.advance() / 1000;
    let questions = server.status.sum(Counter::Questions);
    let slow = server.status.sum(Counter::SlowQueries);
    let per_thousand_seconds = questions.saturating_mul(1000) / uptime.max(1);
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {slow}  Opens: 0  Flush tables: 0  \
         Open tables: 0  Queries per second avg: {}.{:03}",
        server.connections.len(),
        per_thousand_seconds / 1000,
        per_thousand_seconds % 1000,
    )
}
