//! SHOW STATUS counters of the server: one set per runtime thread, summed on demand. Those of the engine come
//! from `src/metrics/`.
//!
//! A counter is written by one thread only, so counting is a plain load and store without a bus lock; readers
//! see values that are a moment old.

pub mod averages;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sql::latency_buckets::{BUCKETS, Latencies};
use untorn::metrics::{Histogram, Series, Times};

use crate::server::shared::Server;
use crate::server::waits::{CoreShare, KINDS};

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
    ConnectionPanics => "Untorn_connection_panics",
    ComAdminCommands => "Com_admin_commands",
    ComAlterDb => "Com_alter_db",
    ComAlterEvent => "Com_alter_event",
    ComAlterFunction => "Com_alter_function",
    ComAlterProcedure => "Com_alter_procedure",
    ComAlterTable => "Com_alter_table",
    ComAlterUser => "Com_alter_user",
    ComAlterUserDefaultRole => "Com_alter_user_default_role",
    ComAnalyze => "Com_analyze",
    ComAssignToKeycache => "Com_assign_to_keycache",
    ComBegin => "Com_begin",
    ComCallProcedure => "Com_call_procedure",
    ComChangeDb => "Com_change_db",
    ComCheck => "Com_check",
    ComChecksum => "Com_checksum",
    ComCommit => "Com_commit",
    ComCreateDb => "Com_create_db",
    ComCreateEvent => "Com_create_event",
    ComCreateFunction => "Com_create_function",
    ComCreateIndex => "Com_create_index",
    ComCreateProcedure => "Com_create_procedure",
    ComCreateRole => "Com_create_role",
    ComCreateTable => "Com_create_table",
    ComCreateTrigger => "Com_create_trigger",
    ComCreateUser => "Com_create_user",
    ComCreateView => "Com_create_view",
    ComDeallocSql => "Com_dealloc_sql",
    ComDelete => "Com_delete",
    ComDeleteMulti => "Com_delete_multi",
    ComDo => "Com_do",
    ComDropDb => "Com_drop_db",
    ComDropEvent => "Com_drop_event",
    ComDropFunction => "Com_drop_function",
    ComDropIndex => "Com_drop_index",
    ComDropProcedure => "Com_drop_procedure",
    ComDropRole => "Com_drop_role",
    ComDropTable => "Com_drop_table",
    ComDropTrigger => "Com_drop_trigger",
    ComDropUser => "Com_drop_user",
    ComDropView => "Com_drop_view",
    ComExecuteSql => "Com_execute_sql",
    ComExplainOther => "Com_explain_other",
    ComFlush => "Com_flush",
    ComGetDiagnostics => "Com_get_diagnostics",
    ComGrant => "Com_grant",
    ComGrantRoles => "Com_grant_roles",
    ComHelp => "Com_help",
    ComInsert => "Com_insert",
    ComInsertSelect => "Com_insert_select",
    ComKill => "Com_kill",
    ComLoad => "Com_load",
    ComLockTables => "Com_lock_tables",
    ComOptimize => "Com_optimize",
    ComPreloadKeys => "Com_preload_keys",
    ComPrepareSql => "Com_prepare_sql",
    ComReleaseSavepoint => "Com_release_savepoint",
    ComRenameTable => "Com_rename_table",
    ComRenameUser => "Com_rename_user",
    ComRepair => "Com_repair",
    ComReplace => "Com_replace",
    ComReplaceSelect => "Com_replace_select",
    ComRevoke => "Com_revoke",
    ComRevokeAll => "Com_revoke_all",
    ComRevokeRoles => "Com_revoke_roles",
    ComRollback => "Com_rollback",
    ComRollbackToSavepoint => "Com_rollback_to_savepoint",
    ComSavepoint => "Com_savepoint",
    ComSelect => "Com_select",
    ComSetOption => "Com_set_option",
    ComSetPassword => "Com_set_password",
    ComSetRole => "Com_set_role",
    ComShowBinlogEvents => "Com_show_binlog_events",
    ComShowBinlogs => "Com_show_binlogs",
    ComShowCharsets => "Com_show_charsets",
    ComShowCollations => "Com_show_collations",
    ComShowCreateDb => "Com_show_create_db",
    ComShowCreateFunc => "Com_show_create_func",
    ComShowCreateProc => "Com_show_create_proc",
    ComShowCreateTable => "Com_show_create_table",
    ComShowCreateTrigger => "Com_show_create_trigger",
    ComShowCreateUser => "Com_show_create_user",
    ComShowDatabases => "Com_show_databases",
    ComShowEngineMutex => "Com_show_engine_mutex",
    ComShowEngineStatus => "Com_show_engine_status",
    ComShowErrors => "Com_show_errors",
    ComShowEvents => "Com_show_events",
    ComShowFields => "Com_show_fields",
    ComShowFunctionStatus => "Com_show_function_status",
    ComShowGrants => "Com_show_grants",
    ComShowKeys => "Com_show_keys",
    ComShowMasterStatus => "Com_show_master_status",
    ComShowOpenTables => "Com_show_open_tables",
    ComShowPlugins => "Com_show_plugins",
    ComShowPrivileges => "Com_show_privileges",
    ComShowProcedureStatus => "Com_show_procedure_status",
    ComShowProcesslist => "Com_show_processlist",
    ComShowProfiles => "Com_show_profiles",
    ComShowReplicaStatus => "Com_show_replica_status",
    ComShowReplicas => "Com_show_replicas",
    ComShowStatus => "Com_show_status",
    ComShowStorageEngines => "Com_show_storage_engines",
    ComShowTableStatus => "Com_show_table_status",
    ComShowTables => "Com_show_tables",
    ComShowTriggers => "Com_show_triggers",
    ComShowVariables => "Com_show_variables",
    ComShowWarnings => "Com_show_warnings",
    ComShutdown => "Com_shutdown",
    ComStmtClose => "Com_stmt_close",
    ComStmtExecute => "Com_stmt_execute",
    ComStmtPrepare => "Com_stmt_prepare",
    ComStmtReset => "Com_stmt_reset",
    ComStmtSendLongData => "Com_stmt_send_long_data",
    ComTruncate => "Com_truncate",
    ComUnlockTables => "Com_unlock_tables",
    ComUpdate => "Com_update",
    ComUpdateMulti => "Com_update_multi",
    ComXaCommit => "Com_xa_commit",
    ComXaEnd => "Com_xa_end",
    ComXaPrepare => "Com_xa_prepare",
    ComXaRecover => "Com_xa_recover",
    ComXaRollback => "Com_xa_rollback",
    ComXaStart => "Com_xa_start",
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
    /// How long statements took; recorded to by the owning thread only.
    pub(crate) statement_times: Histogram,
    /// The same in the buckets of `performance_schema`.
    latencies: Vec<AtomicU64>,
    /// How long waits took, by kind; the same.
    pub(crate) wait_times: [Histogram; KINDS],
    /// Processor time of statements, nanoseconds; the same.
    cpu_nanoseconds: AtomicU64,
    pub(crate) core_share: CoreShare,
    /// Of the thread, from 0.
    pub(crate) thread: usize,
}

impl Default for Counters {
    fn default() -> Self {
        let values = COUNTER_NAMES.iter().map(|_| AtomicU64::new(0)).collect();
        Self {
            values,
            statement_times: Histogram::default(),
            latencies: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            wait_times: Default::default(),
            cpu_nanoseconds: AtomicU64::new(0),
            core_share: CoreShare::default(),
            thread: 0,
        }
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

    /// A statement took a time of this bucket; called as [`Counters::add`].
    #[inline]
    pub(crate) fn add_latency(&self, bucket: usize) {
        if let Some(count) = self.latencies.get(bucket) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// A statement took so much of the processor; called as [`Counters::add`].
    #[inline]
    pub(crate) fn add_cpu(&self, nanoseconds: u64) {
        let sum = self.cpu_nanoseconds.load(Ordering::Relaxed).wrapping_add(nanoseconds);
        self.cpu_nanoseconds.store(sum, Ordering::Relaxed);
    }

    /// Processor time of statements, nanoseconds.
    pub(crate) fn cpu_nanoseconds(&self) -> u64 {
        self.cpu_nanoseconds.load(Ordering::Relaxed)
    }

    /// The value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

/// What is counted for a connection and, by the same calls, for the thread that carries it.
pub struct ConnectionCounters {
    thread: Arc<Counters>,
    own: Vec<AtomicU64>,
}

impl ConnectionCounters {
    /// Of a new connection on that thread.
    pub fn new(thread: Arc<Counters>) -> Self {
        Self { thread, own: COUNTER_NAMES.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts; only the owning thread may call it, as with [`Counters::add`].
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.thread.add(counter, by);
        if let Some(value) = self.own.get(counter as usize) {
            value.store(value.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }

    /// Puts the connection's own values into rows of SHOW STATUS that are counted for sessions. `Queries` and
    /// what befalls connections is the server's alone, as in MySQL.
    pub fn put_own(&self, rows: &mut [(String, String)]) {
        const OF_SERVER: [&str; 4] =
            ["Queries", "Aborted_clients", "Aborted_connects", "Untorn_connection_panics"];
        for (name, value) in COUNTER_NAMES.iter().zip(&self.own) {
            if OF_SERVER.contains(name) {
                continue;
            }
            // They are in the order of their names in lower case.
            let lower = name.to_ascii_lowercase();
            let found = rows.binary_search_by(|(row, _)| row.to_ascii_lowercase().cmp(&lower));
            if let Some((_, shown)) = found.ok().and_then(|index| rows.get_mut(index)) {
                *shown = value.load(Ordering::Relaxed).to_string();
            }
        }
    }

    /// The connection's own start again at 0 (FLUSH STATUS, COM_RESET_CONNECTION).
    pub fn forget_own(&self) {
        self.own.iter().for_each(|value| value.store(0, Ordering::Relaxed));
    }
}

impl std::ops::Deref for ConnectionCounters {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.thread
    }
}

/// All threads' counters and what is counted once.
#[derive(Default)]
pub struct Status {
    threads: Mutex<Vec<Arc<Counters>>>,
    /// Logins refused at the dashboard, whose thread has no counters.
    refused_at_dashboard: AtomicU64,
    sources: Mutex<Vec<Source>>,
    time_sources: Mutex<Vec<TimeSource>>,
    /// What stood in the histogram of all statements when it was emptied.
    forgotten: Mutex<Vec<u64>>,
    /// The sums of waits, with those that last, as they were told last.
    waits_told: [AtomicU64; KINDS],
}

/// Adds rows of somebody else's (the engine's `Innodb_*`) to SHOW GLOBAL STATUS.
pub type Source = Box<dyn Fn(&mut Vec<(String, String)>) + Send + Sync>;

/// Gives histograms of somebody else's.
pub type TimeSource = Box<dyn Fn() -> Vec<Series> + Send + Sync>;

/// Status rows that this server has nothing to count for; tools divide by some of them and read the rest.
const ZEROES: &[&str] = &[
    "Binlog_cache_disk_use",
    "Binlog_cache_use",
    "Connection_errors_internal",
    "Connection_errors_max_connections",
    "Created_tmp_files",
    "Delayed_writes",
    "Flush_commands",
    "Key_blocks_not_flushed",
    "Key_blocks_unused",
    "Key_blocks_used",
    "Key_read_requests",
    "Key_reads",
    "Key_write_requests",
    "Key_writes",
    "Open_files",
    "Open_streams",
    "Open_table_definitions",
    "Open_tables",
    "Opened_files",
    "Opened_table_definitions",
    "Opened_tables",
    "Table_open_cache_hits",
    "Table_open_cache_misses",
    "Table_open_cache_overflows",
    "Threads_cached",
];

impl Status {
    /// A set for a new runtime thread.
    pub fn thread(&self) -> Arc<Counters> {
        let mut threads = self.threads.lock();
        let counters = Arc::new(Counters { thread: threads.len(), ..Counters::default() });
        threads.push(Arc::clone(&counters));
        counters
    }

    /// Somebody showed the dashboard a name and a password, and was not admitted.
    pub fn count_refusal_at_dashboard(&self) {
        self.refused_at_dashboard.fetch_add(1, Ordering::Relaxed);
    }

    /// What is counted for no thread.
    fn beside_threads(&self, index: usize) -> u64 {
        let refused = self.refused_at_dashboard.load(Ordering::Relaxed);
        if index == Counter::AbortedConnects as usize { refused } else { 0 }
    }

    /// Asks this source too from now on. A name it gives takes the place of a built-in row.
    pub fn add_source(&self, source: Source) {
        self.sources.lock().push(source);
    }

    /// Asks this source for histograms too from now on.
    pub fn add_time_source(&self, source: TimeSource) {
        self.time_sources.lock().push(source);
    }

    /// How long operations took: all histograms.
    pub fn times(&self) -> Vec<Series> {
        let mut times = Times::default();
        for counters in self.threads.lock().iter() {
            times.add(&counters.statement_times.times());
        }
        let statements = Series {
            family: "Untorn_statement",
            label: None,
            help: "Statements of clients, from their bytes to the answer.",
            rows: ["Untorn_statement_p50_us", "Untorn_statement_p99_us"],
            times,
        };
        let sources = self.time_sources.lock();
        std::iter::once(statements).chain(sources.iter().flat_map(|source| source())).collect()
    }

    fn latency_counts(&self) -> Vec<u64> {
        let mut counts = vec![0u64; BUCKETS];
        for counters in self.threads.lock().iter() {
            for (sum, count) in counts.iter_mut().zip(&counters.latencies) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        counts
    }

    /// How long statements took, since the start or since they were forgotten.
    pub fn latencies(&self) -> Latencies {
        let (counts, forgotten) = (self.latency_counts(), self.forgotten.lock());
        let mut latencies = Latencies::default();
        for (bucket, count) in counts.into_iter().enumerate() {
            let before = forgotten.get(bucket).copied().unwrap_or(0);
            let fresh = count.saturating_sub(before);
            if fresh > 0 {
                latencies.add_to(bucket, fresh);
            }
        }
        latencies
    }

    /// The histogram of all statements begins again.
    pub fn forget_latencies(&self) {
        *self.forgotten.lock() = self.latency_counts();
    }

    /// How long sessions waited, by kind.
    pub fn waits(&self) -> [Times; KINDS] {
        let mut sums: [Times; KINDS] = Default::default();
        for counters in self.threads.lock().iter() {
            sums.iter_mut().zip(&counters.wait_times).for_each(|(sum, waits)| sum.add(&waits.times()));
        }
        sums
    }

    /// A sum of waits of this kind, or what it was when it was told last: a wait that lasted is known better
    /// when it is over, and a counter must not go back.
    pub(crate) fn never_less(&self, kind: usize, sum: u64) -> u64 {
        self.waits_told[kind].fetch_max(sum, Ordering::Relaxed).max(sum)
    }

    /// Processor time of statements, nanoseconds.
    pub fn cpu_nanoseconds(&self) -> u64 {
        self.threads.lock().iter().fold(0, |sum, counters| sum.wrapping_add(counters.cpu_nanoseconds()))
    }

    /// The sum over all threads.
    pub fn sum(&self, counter: Counter) -> u64 {
        let beside = self.beside_threads(counter as usize);
        self.threads.lock().iter().fold(beside, |sum, counters| sum.wrapping_add(counters.get(counter)))
    }

    /// Every counter with its sum.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let threads = self.threads.lock();
        COUNTER_NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let sum = threads
                    .iter()
                    .filter_map(|counters| counters.values.get(index))
                    .fold(self.beside_threads(index), |sum, value| {
                        sum.wrapping_add(value.load(Ordering::Relaxed))
                    });
                (*name, sum)
            })
            .collect()
    }
}

/// All rows of SHOW GLOBAL STATUS in name order, no name twice (in any case: exporters fold the case).
pub fn collect(server: &Server) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for source in server.status.sources.lock().iter() {
        source(&mut rows);
    }
    rows.extend(
        server.status.counters().into_iter().map(|(name, value)| (name.to_owned(), value.to_string())),
    );
    let quantiles = server.status.times().into_iter().flat_map(|series| series.figures());
    rows.extend(quantiles.map(|(name, micros)| (name.to_owned(), micros.to_string())));
    let uptime = server.clock.advance() / 1000;
    let connections = server.connections.all();
    let running =
        connections.iter().filter(|connection| connection.with_activity(|now| now.command != "Sleep"));
    let attempts = u64::from(server.connections.attempts());
    let numbers = [
        ("Connections", attempts),
        ("Max_used_connections", server.connections.most() as u64),
        ("Prepared_stmt_count", server.prepared_statements.load(Ordering::Relaxed) as u64),
        ("Threads_connected", connections.len() as u64),
        ("Threads_created", server.status.threads.lock().len() as u64),
        ("Threads_running", running.count() as u64),
        ("Uptime", uptime),
        ("Uptime_since_flush_status", uptime),
    ];
    rows.extend(numbers.map(|(name, value)| (name.to_owned(), value.to_string())));
    rows.extend(crate::metrics::where_time_goes(server));
    rows.extend(ZEROES.iter().map(|name| ((*name).to_owned(), "0".to_owned())));
    // Of a connection: those of the one that asks are filled in by its session.
    rows.extend(["Ssl_cipher", "Ssl_version"].map(|name| (name.to_owned(), String::new())));
    // Stable: of rows with one name the first, a source's, stays.
    rows.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
    rows.dedup_by(|later, earlier| later.0.eq_ignore_ascii_case(&earlier.0));
    rows
}

/// The text of COM_STATISTICS.
pub fn statistics_line(server: &Server) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::accounts::Accounts;
    use crate::variables::GlobalVariables;

    #[test]
    fn rows_are_summed_ordered_and_single() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let (one, two) = (server.status.thread(), server.status.thread());
        one.add(Counter::Questions, 2);
        two.add(Counter::Questions, 3);
        server.status.add_source(Box::new(|rows| {
            rows.push(("Innodb_page_size".into(), "16384".into()));
            rows.push(("open_tables".into(), "7".into()));
        }));
        let rows = collect(&server);
        let get = |name: &str| {
            rows.iter().find(|(row, _)| row.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        assert_eq!((get("Questions"), get("Open_tables")), (Some("5"), Some("7")));
        assert_eq!(get("Innodb_page_size"), Some("16384"));
        for pair in rows.windows(2) {
            if let [first, second] = pair {
                assert!(first.0.to_ascii_lowercase() < second.0.to_ascii_lowercase());
            }
        }
        assert!(statistics_line(&server).contains("Questions: 5  Slow queries: 0"));
    }
}
