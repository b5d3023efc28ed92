//! The table of system variables: what exists, for whom, of which type, with which default.
//!
//! Names, types and defaults are those of MySQL 8.0 wherever MySQL has the variable; `untorn_*` is ours. Values the
//! machine or the command line decides (data directory, sizes) get their default at start.

/// Who has a value of the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The server only.
    Global,
    /// The server, and each session its own.
    Both,
    /// Sessions only.
    Session,
}

/// What values a variable takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool,
    /// Unsigned within bounds; out of bounds is cut, as MySQL does.
    UInt(u64, u64),
    /// Signed within bounds.
    Int(i64, i64),
    /// Floating point within bounds.
    Double(f64, f64),
    /// Any text; `true` allows NULL.
    Text(bool),
    /// One of these words, or its number.
    Enum(&'static [&'static str]),
    /// `sql_mode`.
    SqlMode,
    /// `name=on,name=off,...` over the flags of the default.
    Switches,
    /// A character set; `true` allows NULL.
    Charset(bool),
    /// A collation.
    Collation,
    /// `SYSTEM`, `UTC` or an offset.
    TimeZone,
}

/// One variable.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Lower-case name.
    pub name: &'static str,
    /// Who has it.
    pub reach: Reach,
    /// Whether SET may change it (all may be given at start).
    pub dynamic: bool,
    /// Its type.
    pub kind: Kind,
    /// Default as it would be written in my.cnf; `\0` for NULL.
    pub default: &'static str,
}

/// Default that stands for NULL.
pub const NULL: &str = "\0";
const MAX: u64 = u64::MAX;
const YEAR_SECONDS: u64 = 31_536_000;
const GIB: u64 = 1 << 30;

const fn global(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Global, dynamic: true, kind, default }
}

const fn fixed(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Global, dynamic: false, kind, default }
}

const fn both(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Both, dynamic: true, kind, default }
}

const fn session(name: &'static str, dynamic: bool, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Session, dynamic, kind, default }
}

const TEXT: Kind = Kind::Text(false);
const ANY: Kind = Kind::UInt(0, MAX);
const SECONDS: Kind = Kind::UInt(1, YEAR_SECONDS);

/// Levels in the order of their numbers.
pub const ISOLATION_LEVELS: &[&str] =
    &["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

const SWITCHES: &str = "index_merge=on,index_merge_union=on,index_merge_sort_union=on,index_merge_intersection=on,\
engine_condition_pushdown=on,index_condition_pushdown=on,mrr=on,mrr_cost_based=on,block_nested_loop=on,\
batched_key_access=off,materialization=on,semijoin=on,loosescan=on,firstmatch=on,duplicateweedout=on,\
subquery_materialization_cost_based=on,use_index_extensions=on,condition_fanout_filter=on,derived_merge=on,\
use_invisible_indexes=off,skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on,\
hypergraph_optimizer=off,derived_condition_pushdown=on";

/// All variables but the aliases, in the order of their names.
pub const DEFINITIONS: &[Definition] = &[
    both("auto_increment_increment", Kind::UInt(1, 65_535), "1"),
    both("auto_increment_offset", Kind::UInt(1, 65_535), "1"),
    both("autocommit", Kind::Bool, "ON"),
    global("automatic_sp_privileges", Kind::Bool, "OFF"),
    fixed("back_log", Kind::UInt(1, 65_535), "4096"),
    fixed("basedir", TEXT, "/usr/"),
    both("big_tables", Kind::Bool, "OFF"),
    fixed("bind_address", TEXT, "127.0.0.1"),
    global("binlog_checksum", Kind::Enum(&["NONE", "CRC32"]), "CRC32"),
    global("binlog_expire_logs_seconds", Kind::UInt(0, 4_294_967_295), "2592000"),
    both("binlog_format", Kind::Enum(&["MIXED", "STATEMENT", "ROW"]), "ROW"),
    both("binlog_row_image", Kind::Enum(&["MINIMAL", "NOBLOB", "FULL"]), "FULL"),
    global("binlog_row_metadata", Kind::Enum(&["MINIMAL", "FULL"]), "MINIMAL"),
    both("bulk_insert_buffer_size", ANY, "8388608"),
    both("character_set_client", Kind::Charset(false), "utf8mb4"),
    both("character_set_connection", Kind::Charset(false), "utf8mb4"),
    both("character_set_database", Kind::Charset(false), "utf8mb4"),
    both("character_set_filesystem", Kind::Charset(false), "binary"),
    both("character_set_results", Kind::Charset(true), "utf8mb4"),
    both("character_set_server", Kind::Charset(false), "utf8mb4"),
    fixed("character_set_system", Kind::Charset(false), "utf8mb3"),
    fixed("character_sets_dir", TEXT, ""),
    both("collation_connection", Kind::Collation, "utf8mb4_general_ci"),
    both("collation_database", Kind::Collation, "utf8mb4_general_ci"),
    both("collation_server", Kind::Collation, "utf8mb4_general_ci"),
    both("completion_type", Kind::Enum(&["NO_CHAIN", "CHAIN", "RELEASE"]), "NO_CHAIN"),
    global("concurrent_insert", Kind::Enum(&["NEVER", "AUTO", "ALWAYS"]), "AUTO"),
    global("connect_timeout", Kind::UInt(2, YEAR_SECONDS), "10"),
    both("cte_max_recursion_depth", Kind::UInt(0, 4_294_967_295), "1000"),
    fixed("datadir", TEXT, "./untorn-data/"),
    global("default_authentication_plugin", TEXT, "caching_sha2_password"),
    both("default_collation_for_utf8mb4", Kind::Collation, "utf8mb4_general_ci"),
    global("default_password_lifetime", Kind::UInt(0, 65_535), "0"),
    both("default_storage_engine", Kind::Enum(&["InnoDB"]), "InnoDB"),
    both("default_tmp_storage_engine", Kind::Enum(&["InnoDB"]), "InnoDB"),
    both("default_week_format", Kind::UInt(0, 7), "0"),
    global("delay_key_write", Kind::Enum(&["OFF", "ON", "ALL"]), "ON"),
    fixed("disabled_storage_engines", TEXT, ""),
    both("div_precision_increment", Kind::UInt(0, 30), "4"),
    global("enforce_gtid_consistency", Kind::Enum(&["OFF", "ON", "WARN"]), "OFF"),
    session("error_count", false, ANY, "0"),
    global("event_scheduler", Kind::Enum(&["OFF", "ON", "DISABLED"]), "OFF"),
    global("expire_logs_days", Kind::UInt(0, 99), "0"),
    both("explicit_defaults_for_timestamp", Kind::Bool, "ON"),
    global("flush", Kind::Bool, "OFF"),
    global("flush_time", Kind::UInt(0, YEAR_SECONDS), "0"),
    both("foreign_key_checks", Kind::Bool, "ON"),
    fixed("ft_max_word_len", Kind::UInt(10, 84), "84"),
    fixed("ft_min_word_len", Kind::UInt(1, 84), "4"),
    global("general_log", Kind::Bool, "OFF"),
    global("general_log_file", TEXT, ""),
    both("group_concat_max_len", Kind::UInt(4, MAX), "1024"),
    global("gtid_executed", TEXT, ""),
    global("gtid_mode", Kind::Enum(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]), "OFF"),
    session("gtid_next", true, TEXT, "AUTOMATIC"),
    global("gtid_purged", TEXT, ""),
    fixed("have_compress", TEXT, "NO"),
    fixed("have_dynamic_loading", TEXT, "NO"),
    fixed("have_geometry", TEXT, "NO"),
    fixed("have_openssl", TEXT, "DISABLED"),
    fixed("have_profiling", TEXT, "NO"),
    fixed("have_query_cache", TEXT, "NO"),
    fixed("have_ssl", TEXT, "DISABLED"),
    fixed("have_symlink", TEXT, "DISABLED"),
    fixed("hostname", TEXT, "localhost"),
    both("information_schema_stats_expiry", Kind::UInt(0, YEAR_SECONDS), "86400"),
    global("init_connect", TEXT, ""),
    fixed("init_file", TEXT, ""),
    global("innodb_adaptive_flushing", Kind::Bool, "ON"),
    global("innodb_adaptive_flushing_lwm", Kind::UInt(0, 70), "10"),
    global("innodb_adaptive_hash_index", Kind::Bool, "OFF"),
    fixed("innodb_autoinc_lock_mode", Kind::UInt(0, 2), "2"),
    fixed("innodb_buffer_pool_chunk_size", Kind::UInt(1 << 20, MAX), "134217728"),
    global("innodb_buffer_pool_dump_at_shutdown", Kind::Bool, "OFF"),
    fixed("innodb_buffer_pool_instances", Kind::UInt(1, 64), "1"),
    fixed("innodb_buffer_pool_load_at_startup", Kind::Bool, "OFF"),
    global("innodb_buffer_pool_size", Kind::UInt(5 << 20, MAX), "134217728"),
    global(
        "innodb_change_buffering",
        Kind::Enum(&["none", "inserts", "deletes", "changes", "purges", "all"]),
        "none",
    ),
    global("innodb_checksum_algorithm", Kind::Enum(&["crc32", "strict_crc32"]), "crc32"),
    global("innodb_cmp_per_index_enabled", Kind::Bool, "OFF"),
    global("innodb_concurrency_tickets", Kind::UInt(1, 4_294_967_295), "5000"),
    fixed("innodb_data_file_path", TEXT, ""),
    fixed("innodb_data_home_dir", TEXT, ""),
    global("innodb_deadlock_detect", Kind::Bool, "ON"),
    fixed("innodb_dedicated_server", Kind::Bool, "OFF"),
    global("innodb_default_row_format", Kind::Enum(&["REDUNDANT", "COMPACT", "DYNAMIC"]), "DYNAMIC"),
    global("innodb_disable_sort_file_cache", Kind::Bool, "OFF"),
    global(
        "innodb_doublewrite",
        Kind::Enum(&["OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "AUTO"]),
        "AUTO",
    ),
    fixed("innodb_doublewrite_dir", TEXT, ""),
    fixed("innodb_doublewrite_files", Kind::UInt(0, 256), "2"),
    fixed("innodb_doublewrite_pages", Kind::UInt(1, 512), "128"),
    global("innodb_fast_shutdown", Kind::UInt(0, 2), "1"),
    global("innodb_file_per_table", Kind::Bool, "ON"),
    global("innodb_fill_factor", Kind::UInt(10, 100), "100"),
    global("innodb_flush_log_at_timeout", Kind::UInt(0, 2700), "1"),
    global("innodb_flush_log_at_trx_commit", Kind::UInt(0, 2), "1"),
    fixed(
        "innodb_flush_method",
        Kind::Enum(&["fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"]),
        "O_DIRECT",
    ),
    global("innodb_flush_neighbors", Kind::UInt(0, 2), "0"),
    global("innodb_flush_sync", Kind::Bool, "ON"),
    fixed("innodb_force_recovery", Kind::UInt(0, 6), "0"),
    both("innodb_ft_enable_stopword", Kind::Bool, "OFF"),
    global("innodb_io_capacity", Kind::UInt(100, 4_294_967_295), "200"),
    // The largest value: no limit, the cleaner decides by itself.
    global("innodb_io_capacity_max", Kind::UInt(100, 4_294_967_295), "4294967295"),
    both("innodb_lock_wait_timeout", Kind::UInt(1, 1_073_741_824), "50"),
    global("innodb_log_buffer_size", Kind::UInt(1 << 20, 4 * GIB - 1), "16777216"),
    global("innodb_log_checksums", Kind::Bool, "ON"),
    fixed("innodb_log_files_in_group", Kind::UInt(1, 100), "1"),
    fixed("innodb_log_group_home_dir", TEXT, "./"),
    global("innodb_log_write_ahead_size", Kind::UInt(512, 65_536), "512"),
    global("innodb_lru_scan_depth", Kind::UInt(100, MAX), "1024"),
    global("innodb_max_dirty_pages_pct", Kind::Double(0.0, 99.999), "90"),
    global("innodb_max_dirty_pages_pct_lwm", Kind::Double(0.0, 99.999), "10"),
    global("innodb_max_purge_lag", Kind::UInt(0, 4_294_967_295), "0"),
    global("innodb_max_undo_log_size", Kind::UInt(10 << 20, MAX), "1073741824"),
    global("innodb_monitor_disable", TEXT, ""),
    global("innodb_monitor_enable", TEXT, ""),
    global("innodb_old_blocks_pct", Kind::UInt(5, 95), "37"),
    global("innodb_old_blocks_time", Kind::UInt(0, 4_294_967_295), "1000"),
    global("innodb_online_alter_log_max_size", Kind::UInt(65_536, MAX), "134217728"),
    fixed("innodb_open_files", Kind::UInt(10, 2_147_483_647), "4000"),
    fixed("innodb_page_cleaners", Kind::UInt(1, 64), "1"),
    fixed("innodb_page_size", Kind::UInt(4096, 65_536), "16384"),
    global("innodb_print_all_deadlocks", Kind::Bool, "OFF"),
    fixed("innodb_purge_threads", Kind::UInt(1, 32), "4"),
    global("innodb_random_read_ahead", Kind::Bool, "OFF"),
    global("innodb_read_ahead_threshold", Kind::UInt(0, 64), "56"),
    fixed("innodb_read_io_threads", Kind::UInt(1, 64), "4"),
    fixed("innodb_read_only", Kind::Bool, "OFF"),
    fixed("innodb_redo_log_capacity", Kind::UInt(8 << 20, 512 * GIB), "104857600"),
    fixed("innodb_rollback_on_timeout", Kind::Bool, "OFF"),
    fixed("innodb_sort_buffer_size", Kind::UInt(65_536, 64 << 20), "1048576"),
    global("innodb_spin_wait_delay", Kind::UInt(0, 1000), "6"),
    global("innodb_stats_auto_recalc", Kind::Bool, "OFF"),
    global(
        "innodb_stats_method",
        Kind::Enum(&["nulls_equal", "nulls_unequal", "nulls_ignored"]),
        "nulls_equal",
    ),
    global("innodb_stats_on_metadata", Kind::Bool, "OFF"),
    global("innodb_stats_persistent", Kind::Bool, "OFF"),
    global("innodb_stats_persistent_sample_pages", Kind::UInt(1, MAX), "20"),
    global("innodb_stats_transient_sample_pages", Kind::UInt(1, MAX), "8"),
    global("innodb_status_output", Kind::Bool, "OFF"),
    global("innodb_status_output_locks", Kind::Bool, "OFF"),
    both("innodb_strict_mode", Kind::Bool, "ON"),
    both("innodb_table_locks", Kind::Bool, "ON"),
    global("innodb_thread_concurrency", Kind::UInt(0, 1000), "0"),
    global("innodb_undo_log_truncate", Kind::Bool, "ON"),
    global("innodb_undo_tablespaces", Kind::UInt(0, 127), "2"),
    fixed("innodb_use_native_aio", Kind::Bool, "ON"),
    fixed("innodb_version", TEXT, "8.0.36"),
    fixed("innodb_write_io_threads", Kind::UInt(1, 64), "4"),
    session("insert_id", true, ANY, "0"),
    both("interactive_timeout", SECONDS, "28800"),
    both("join_buffer_size", Kind::UInt(128, MAX), "262144"),
    global("key_buffer_size", ANY, "8388608"),
    fixed("large_pages", Kind::Bool, "OFF"),
    session("last_insert_id", true, ANY, "0"),
    both("lc_messages", TEXT, "en_US"),
    both("lc_time_names", TEXT, "en_US"),
    fixed("license", TEXT, "MIT OR Apache-2.0"),
    global("local_infile", Kind::Bool, "OFF"),
    both("lock_wait_timeout", SECONDS, "31536000"),
    fixed("log_bin", Kind::Bool, "OFF"),
    fixed("log_bin_basename", TEXT, ""),
    fixed("log_error", TEXT, "stderr"),
    global("log_error_verbosity", Kind::UInt(1, 3), "2"),
    global("log_output", TEXT, "FILE"),
    global("log_queries_not_using_indexes", Kind::Bool, "OFF"),
    fixed("log_replica_updates", Kind::Bool, "OFF"),
    fixed("log_slave_updates", Kind::Bool, "OFF"),
    both("long_query_time", Kind::Double(0.0, 31_536_000.0), "10"),
    both("low_priority_updates", Kind::Bool, "OFF"),
    fixed("lower_case_file_system", Kind::Bool, "OFF"),
    fixed("lower_case_table_names", Kind::UInt(0, 2), "0"),
    both("max_allowed_packet", Kind::UInt(1024, GIB), "67108864"),
    global("max_binlog_size", Kind::UInt(4096, GIB), "1073741824"),
    global("max_connect_errors", Kind::UInt(1, MAX), "100"),
    global("max_connections", Kind::UInt(1, 100_000), "4096"),
    both("max_error_count", Kind::UInt(0, 65_535), "1024"),
    both("max_execution_time", Kind::UInt(0, 4_294_967_295), "0"),
    both("max_heap_table_size", Kind::UInt(16_384, MAX), "16777216"),
    both("max_join_size", Kind::UInt(1, MAX), "18446744073709551615"),
    both("max_length_for_sort_data", Kind::UInt(4, 8 << 20), "4096"),
    both("max_points_in_geometry", Kind::UInt(3, 1 << 20), "65536"),
    // MySQL's default, 16382, is used up by 1,024 clients with 16 statements each.
    global("max_prepared_stmt_count", Kind::UInt(0, 4_194_304), "262144"),
    both("max_seeks_for_key", Kind::UInt(1, MAX), "18446744073709551615"),
    both("max_sort_length", Kind::UInt(4, 8 << 20), "1024"),
    both("max_sp_recursion_depth", Kind::UInt(0, 255), "0"),
    both("max_user_connections", Kind::UInt(0, 4_294_967_295), "0"),
    global("max_write_lock_count", Kind::UInt(1, MAX), "18446744073709551615"),
    both("min_examined_row_limit", ANY, "0"),
    both("net_buffer_length", Kind::UInt(1024, 1 << 20), "16384"),
    both("net_read_timeout", SECONDS, "30"),
    both("net_retry_count", Kind::UInt(1, MAX), "10"),
    both("net_write_timeout", SECONDS, "60"),
    both("old_alter_table", Kind::Bool, "OFF"),
    both("old_passwords", Kind::UInt(0, 2), "0"),
    fixed("open_files_limit", ANY, "1048576"),
    both("optimizer_prune_level", Kind::UInt(0, 1), "1"),
    both("optimizer_search_depth", Kind::UInt(0, 62), "62"),
    both("optimizer_switch", Kind::Switches, SWITCHES),
    fixed("performance_schema", Kind::Bool, "OFF"),
    fixed("pid_file", TEXT, ""),
    fixed("plugin_dir", TEXT, ""),
    fixed("port", Kind::UInt(0, 65_535), "3306"),
    both("preload_buffer_size", Kind::UInt(1024, GIB), "32768"),
    both("profiling", Kind::Bool, "OFF"),
    both("profiling_history_size", Kind::UInt(0, 100), "15"),
    fixed("protocol_version", ANY, "10"),
    session("proxy_user", false, Kind::Text(true), NULL),
    session("pseudo_thread_id", true, ANY, "0"),
    both("query_alloc_block_size", Kind::UInt(1024, 4_294_966_272), "8192"),
    both("query_prealloc_size", Kind::UInt(8192, MAX), "8192"),
    session("rand_seed1", true, ANY, "0"),
    session("rand_seed2", true, ANY, "0"),
    both("range_alloc_block_size", Kind::UInt(4096, MAX), "4096"),
    both("range_optimizer_max_mem_size", ANY, "8388608"),
    both("read_buffer_size", Kind::UInt(8192, 2_147_479_552), "131072"),
    global("read_only", Kind::Bool, "OFF"),
    both("read_rnd_buffer_size", Kind::UInt(1, 2_147_483_647), "262144"),
    fixed("relay_log", TEXT, ""),
    fixed("report_host", TEXT, ""),
    fixed("report_port", Kind::UInt(0, 65_535), "3306"),
    global("require_secure_transport", Kind::Bool, "OFF"),
    fixed("secure_file_priv", Kind::Text(true), NULL),
    global("server_id", Kind::UInt(0, 4_294_967_295), "1"),
    fixed("server_uuid", TEXT, ""),
    both("session_track_gtids", Kind::Enum(&["OFF", "OWN_GTID", "ALL_GTIDS"]), "OFF"),
    both("session_track_schema", Kind::Bool, "OFF"),
    both("session_track_state_change", Kind::Bool, "OFF"),
    both(
        "session_track_system_variables",
        TEXT,
        "time_zone,autocommit,character_set_client,character_set_results,character_set_connection",
    ),
    both("session_track_transaction_info", Kind::Enum(&["OFF", "STATE", "CHARACTERISTICS"]), "OFF"),
    both("show_create_table_skip_secondary_engine", Kind::Bool, "OFF"),
    both("show_create_table_verbosity", Kind::Bool, "OFF"),
    both("show_gipk_in_create_table_and_information_schema", Kind::Bool, "OFF"),
    fixed("skip_external_locking", Kind::Bool, "ON"),
    fixed("skip_name_resolve", Kind::Bool, "ON"),
    fixed("skip_networking", Kind::Bool, "OFF"),
    fixed("skip_show_database", Kind::Bool, "OFF"),
    global("slow_launch_time", Kind::UInt(0, YEAR_SECONDS), "2"),
    global("slow_query_log", Kind::Bool, "OFF"),
    global("slow_query_log_file", TEXT, ""),
    fixed("socket", TEXT, "/tmp/mysql.sock"),
    both("sort_buffer_size", Kind::UInt(32_768, MAX), "262144"),
    both("sql_auto_is_null", Kind::Bool, "OFF"),
    both("sql_big_selects", Kind::Bool, "ON"),
    both("sql_buffer_result", Kind::Bool, "OFF"),
    session("sql_log_bin", true, Kind::Bool, "OFF"),
    both("sql_log_off", Kind::Bool, "OFF"),
    both(
        "sql_mode",
        Kind::SqlMode,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
         NO_ENGINE_SUBSTITUTION",
    ),
    both("sql_notes", Kind::Bool, "ON"),
    both("sql_quote_show_create", Kind::Bool, "ON"),
    both("sql_require_primary_key", Kind::Bool, "OFF"),
    both("sql_safe_updates", Kind::Bool, "OFF"),
    both("sql_select_limit", ANY, "18446744073709551615"),
    both("sql_warnings", Kind::Bool, "OFF"),
    fixed("ssl_ca", TEXT, ""),
    fixed("ssl_capath", TEXT, ""),
    fixed("ssl_cert", TEXT, ""),
    fixed("ssl_cipher", TEXT, ""),
    fixed("ssl_crl", TEXT, ""),
    fixed("ssl_crlpath", TEXT, ""),
    fixed("ssl_key", TEXT, ""),
    global("stored_program_cache", Kind::UInt(16, 524_288), "256"),
    global("super_read_only", Kind::Bool, "OFF"),
    global("sync_binlog", Kind::UInt(0, 4_294_967_295), "1"),
    fixed("system_time_zone", TEXT, "UTC"),
    global("table_definition_cache", Kind::UInt(400, 524_288), "2000"),
    global("table_open_cache", Kind::UInt(1, 524_288), "4000"),
    fixed("table_open_cache_instances", Kind::UInt(1, 64), "16"),
    global("thread_cache_size", Kind::UInt(0, 16_384), "0"),
    fixed("thread_handling", TEXT, "one-runtime-per-core"),
    fixed("thread_stack", Kind::UInt(131_072, MAX), "2097152"),
    both("time_zone", Kind::TimeZone, "SYSTEM"),
    session("timestamp", true, Kind::Double(0.0, 4_294_967_295.0), "0"),
    fixed("tls_version", TEXT, ""),
    both("tmp_table_size", Kind::UInt(1024, MAX), "16777216"),
    fixed("tmpdir", TEXT, "/tmp"),
    both("transaction_alloc_block_size", Kind::UInt(1024, 131_072), "8192"),
    both("transaction_isolation", Kind::Enum(ISOLATION_LEVELS), "REPEATABLE-READ"),
    both("transaction_prealloc_size", Kind::UInt(1024, 131_072), "4096"),
    both("transaction_read_only", Kind::Bool, "OFF"),
    both("unique_checks", Kind::Bool, "ON"),
    global("untorn_bpe", Kind::Bool, "ON"),
    fixed("untorn_bpe_dir", TEXT, ""),
    global("untorn_bpe_file", TEXT, ""),
    fixed("untorn_bpe_restart", Kind::Enum(&["keep", "discard"]), "keep"),
    global("untorn_bpe_size", ANY, "0"),
    global("untorn_bpe_write_budget", ANY, "0"),
    fixed("untorn_init_accounts", Kind::Bool, "OFF"),
    global("untorn_lock_memory", ANY, "0"),
    global("untorn_memory_limit", ANY, "0"),
    fixed("untorn_passwordless_tcp", Kind::Bool, "ON"),
    both("untorn_statement_memory_limit", ANY, "0"),
    fixed("untorn_threads", Kind::UInt(1, 1024), "1"),
    both("updatable_views_with_limit", Kind::Bool, "ON"),
    fixed("version", TEXT, crate::server::login::SERVER_VERSION),
    fixed("version_comment", TEXT, "Untorn server"),
    fixed("version_compile_machine", TEXT, std::env::consts::ARCH),
    fixed("version_compile_os", TEXT, "Linux"),
    both("wait_timeout", SECONDS, "28800"),
    session("warning_count", false, ANY, "0"),
];

/// Other names that mean the same variable. They work in SET and @@ and at start, and are no rows of SHOW VARIABLES.
pub const ALIASES: &[(&str, &str)] = &[
    ("bind", "bind_address"),
    ("character_set", "character_set_server"),
    ("default_character_set", "character_set_server"),
    ("identity", "last_insert_id"),
    ("innodb_log_file_size", "innodb_redo_log_capacity"),
    ("storage_engine", "default_storage_engine"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// Index of a variable in [`DEFINITIONS`]; any case, aliases included.
pub fn find(name: &str) -> Option<usize> {
    let lower = name.to_ascii_lowercase();
    let name = ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |(_, name)| *name);
    DEFINITIONS.binary_search_by(|definition| definition.name.cmp(name)).ok()
}

/// The known name most like `name`, if any is like it at all.
pub fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let names =
        DEFINITIONS.iter().map(|definition| definition.name).chain(ALIASES.iter().map(|(alias, _)| *alias));
    let (distance, best) = names.map(|known| (edit_distance(&lower, known), known)).min()?;
    (distance <= 2 + lower.len() / 4).then_some(best)
}

/// Levenshtein distance.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_aliases_mean_something() {
        for pair in DEFINITIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for (alias, name) in ALIASES {
            assert!(find(name).is_some() && find(alias) == find(name), "{alias}");
            assert!(
                DEFINITIONS.iter().all(|definition| definition.name != *alias),
                "{alias} is a variable too"
            );
        }
    }

    #[test]
    fn a_misspelt_name_is_recognised() {
        assert_eq!(nearest("inodb_buffer_pool_size"), Some("innodb_buffer_pool_size"));
        assert_eq!(nearest("max_conections"), Some("max_connections"));
        assert_eq!(nearest("zzzzzzzzzzzzzzzzz"), None);
    }
}
