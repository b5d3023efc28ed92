//! The table of system variables: what exists, for whom, of which type, with which default.
//!
//! Names, types and defaults are those of MySQL 8.0 wherever MySQL has the variable; `untorn_*` is ours.
//! Values the machine or the command line decides (data directory, sizes) get their default at start. A
//! definition also says what setting the variable does ([`Effect`]); most are here because programs and
//! option files name them.

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
    /// A locale, for names of days and months.
    TimeNames,
    /// Names of variables, or `*`; NULL is allowed.
    TrackedNames,
    /// Some of `zlib`, `zstd` and `uncompressed`.
    Compressions,
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
    /// What setting it does.
    pub effect: Effect,
}

/// What setting a variable does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// What its name says. The server reads the value, or writes there what it decided.
    Acts,
    /// ON does something once; the value is OFF again at once.
    Triggers,
    /// Nothing: the value is kept and shown, and nobody reads it.
    None,
    /// Nothing: the value says what this server is, does or lacks, and stays whatever is given. Switches of
    /// features that do not exist are of this kind and read OFF.
    Constant,
}

impl Effect {
    /// Whether somebody follows the variable.
    pub fn is_followed(self) -> bool {
        matches!(self, Effect::Acts | Effect::Triggers)
    }
}

/// Default that stands for NULL.
pub const NULL: &str = "\0";
const MAX: u64 = u64::MAX;
const YEAR_SECONDS: u64 = 31_536_000;
const GIB: u64 = 1 << 30;

const fn global(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Global, dynamic: true, kind, default, effect: Effect::Acts }
}

const fn fixed(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Global, dynamic: false, kind, default, effect: Effect::Acts }
}

const fn both(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Both, dynamic: true, kind, default, effect: Effect::Acts }
}

const fn session(name: &'static str, dynamic: bool, kind: Kind, default: &'static str) -> Definition {
    Definition { name, reach: Reach::Session, dynamic, kind, default, effect: Effect::Acts }
}

impl Definition {
    const fn trigger(self) -> Definition {
        Definition { effect: Effect::Triggers, ..self }
    }

    const fn without_effect(self) -> Definition {
        Definition { effect: Effect::None, ..self }
    }

    const fn constant(self) -> Definition {
        Definition { effect: Effect::Constant, ..self }
    }
}

const TEXT: Kind = Kind::Text(false);
const ANY: Kind = Kind::UInt(0, MAX);
const SECONDS: Kind = Kind::UInt(1, YEAR_SECONDS);

/// Levels in the order of their numbers.
pub const ISOLATION_LEVELS: &[&str] =
    &["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

/// What clients hear of where nobody says otherwise.
const TRACKED: &str =
    "time_zone,autocommit,character_set_client,character_set_results,character_set_connection";

/// How NULLs would count in statistics of MyISAM.
const MYISAM_STATISTICS: &[&str] = &["nulls_unequal", "nulls_equal", "nulls_ignored"];

/// What a trace of the optimizer would tell of.
const TRACED: &str = "greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on";

/// How AES_ENCRYPT encrypts.
const BLOCK_MODES: &[&str] = &[
    "aes-128-ecb",
    "aes-192-ecb",
    "aes-256-ecb",
    "aes-128-cbc",
    "aes-192-cbc",
    "aes-256-cbc",
    "aes-128-cfb1",
    "aes-192-cfb1",
    "aes-256-cfb1",
    "aes-128-cfb8",
    "aes-192-cfb8",
    "aes-256-cfb8",
    "aes-128-cfb128",
    "aes-192-cfb128",
    "aes-256-cfb128",
    "aes-128-ofb",
    "aes-192-ofb",
    "aes-256-ofb",
];

/// What of MySQL's optimizer there is: a subquery of IN is run once, and its rows are kept.
const SWITCHES: &str = "index_merge=off,index_merge_union=off,index_merge_sort_union=off,index_merge_intersection=off,\
engine_condition_pushdown=off,index_condition_pushdown=off,mrr=off,mrr_cost_based=off,block_nested_loop=off,\
batched_key_access=off,materialization=on,semijoin=off,loosescan=off,firstmatch=off,duplicateweedout=off,\
subquery_materialization_cost_based=off,use_index_extensions=off,condition_fanout_filter=off,derived_merge=off,\
use_invisible_indexes=off,skip_scan=off,hash_join=off,subquery_to_derived=off,prefer_ordering_index=off,\
hypergraph_optimizer=off,derived_condition_pushdown=off";

/// All variables but the aliases, in the order of their names.
pub const DEFINITIONS: &[Definition] = &[
    global("activate_all_roles_on_login", Kind::Bool, "OFF"),
    fixed("auto_generate_certs", Kind::Bool, "ON"),
    both("auto_increment_increment", Kind::UInt(1, 65_535), "1"),
    both("auto_increment_offset", Kind::UInt(1, 65_535), "1"),
    both("autocommit", Kind::Bool, "ON"),
    global("automatic_sp_privileges", Kind::Bool, "OFF").constant(),
    fixed("back_log", Kind::UInt(1, 65_535), "4096").constant(),
    fixed("basedir", TEXT, "/usr/").without_effect(),
    both("big_tables", Kind::Bool, "OFF").constant(),
    fixed("bind_address", TEXT, "127.0.0.1"),
    global("binlog_checksum", Kind::Enum(&["NONE", "CRC32"]), "NONE").constant(),
    global("binlog_expire_logs_seconds", Kind::UInt(0, 4_294_967_295), "0").constant(),
    both("binlog_format", Kind::Enum(&["MIXED", "STATEMENT", "ROW"]), "ROW").without_effect(),
    both("binlog_row_image", Kind::Enum(&["MINIMAL", "NOBLOB", "FULL"]), "FULL").without_effect(),
    global("binlog_row_metadata", Kind::Enum(&["MINIMAL", "FULL"]), "MINIMAL").without_effect(),
    both("block_encryption_mode", Kind::Enum(BLOCK_MODES), "aes-128-ecb"),
    both("bulk_insert_buffer_size", ANY, "8388608").without_effect(),
    both("character_set_client", Kind::Charset(false), "utf8mb4"),
    both("character_set_connection", Kind::Charset(false), "utf8mb4"),
    both("character_set_database", Kind::Charset(false), "utf8mb4").constant(),
    both("character_set_filesystem", Kind::Charset(false), "binary").constant(),
    both("character_set_results", Kind::Charset(true), "utf8mb4"),
    both("character_set_server", Kind::Charset(false), "utf8mb4"),
    fixed("character_set_system", Kind::Charset(false), "utf8mb3").constant(),
    fixed("character_sets_dir", TEXT, "").constant(),
    both("collation_connection", Kind::Collation, "utf8mb4_general_ci"),
    both("collation_database", Kind::Collation, "utf8mb4_general_ci").constant(),
    both("collation_server", Kind::Collation, "utf8mb4_general_ci"),
    both("completion_type", Kind::Enum(&["NO_CHAIN", "CHAIN", "RELEASE"]), "NO_CHAIN").constant(),
    global("concurrent_insert", Kind::Enum(&["NEVER", "AUTO", "ALWAYS"]), "NEVER").constant(),
    global("connect_timeout", Kind::UInt(2, YEAR_SECONDS), "10"),
    both("cte_max_recursion_depth", Kind::UInt(0, 4_294_967_295), "1000"),
    fixed("dashboard_account", TEXT, ""),
    fixed("dashboard_address", TEXT, ""),
    fixed("datadir", TEXT, "./untorn-data/"),
    global("default_authentication_plugin", TEXT, "caching_sha2_password").constant(),
    both("default_collation_for_utf8mb4", Kind::Collation, "utf8mb4_general_ci").constant(),
    global("default_password_lifetime", Kind::UInt(0, 65_535), "0"),
    both("default_storage_engine", Kind::Enum(&["InnoDB"]), "InnoDB").constant(),
    both("default_tmp_storage_engine", Kind::Enum(&["InnoDB"]), "InnoDB").constant(),
    both("default_week_format", Kind::UInt(0, 7), "0"),
    global("delay_key_write", Kind::Enum(&["OFF", "ON", "ALL"]), "OFF").constant(),
    fixed("disabled_storage_engines", TEXT, "").constant(),
    fixed("disconnect_on_expired_password", Kind::Bool, "ON"),
    both("div_precision_increment", Kind::UInt(0, 30), "4"),
    global("enforce_gtid_consistency", Kind::Enum(&["OFF", "ON", "WARN"]), "OFF").constant(),
    both("eq_range_index_dive_limit", Kind::UInt(0, 4_294_967_295), "200").without_effect(),
    session("error_count", false, ANY, "0"),
    global("event_scheduler", Kind::Enum(&["OFF", "ON", "DISABLED"]), "OFF").constant(),
    global("expire_logs_days", Kind::UInt(0, 99), "0").constant(),
    both("explicit_defaults_for_timestamp", Kind::Bool, "ON").constant(),
    global("flush", Kind::Bool, "OFF").constant(),
    global("flush_time", Kind::UInt(0, YEAR_SECONDS), "0").constant(),
    both("foreign_key_checks", Kind::Bool, "ON"),
    global("ft_boolean_syntax", TEXT, "+ -><()~*:\"\"&|").without_effect(),
    fixed("ft_max_word_len", Kind::UInt(10, 84), "84").without_effect(),
    fixed("ft_min_word_len", Kind::UInt(1, 84), "4").without_effect(),
    fixed("ft_query_expansion_limit", Kind::UInt(0, 1000), "20").constant(),
    global("general_log", Kind::Bool, "OFF").constant(),
    global("general_log_file", TEXT, "").constant(),
    both("group_concat_max_len", Kind::UInt(4, MAX), "1024"),
    global("gtid_executed", TEXT, "").constant(),
    global("gtid_mode", Kind::Enum(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]), "OFF").constant(),
    session("gtid_next", true, TEXT, "AUTOMATIC").constant(),
    global("gtid_purged", TEXT, "").constant(),
    fixed("have_compress", TEXT, "YES").constant(),
    fixed("have_dynamic_loading", TEXT, "NO").constant(),
    fixed("have_geometry", TEXT, "NO").constant(),
    fixed("have_openssl", TEXT, "DISABLED"),
    fixed("have_profiling", TEXT, "NO").constant(),
    fixed("have_query_cache", TEXT, "NO").constant(),
    fixed("have_ssl", TEXT, "DISABLED"),
    fixed("have_symlink", TEXT, "DISABLED").constant(),
    fixed("hostname", TEXT, "localhost"),
    both("information_schema_stats_expiry", Kind::UInt(0, YEAR_SECONDS), "0").constant(),
    global("init_connect", TEXT, "").constant(),
    fixed("init_file", TEXT, "").constant(),
    global("innodb_adaptive_flushing", Kind::Bool, "ON").constant(),
    global("innodb_adaptive_flushing_lwm", Kind::UInt(0, 70), "10").without_effect(),
    global("innodb_adaptive_hash_index", Kind::Bool, "OFF").constant(),
    fixed("innodb_autoinc_lock_mode", Kind::UInt(0, 2), "2").constant(),
    fixed("innodb_buffer_pool_chunk_size", Kind::UInt(1 << 20, MAX), "134217728").without_effect(),
    global("innodb_buffer_pool_dump_at_shutdown", Kind::Bool, "ON"),
    global("innodb_buffer_pool_dump_now", Kind::Bool, "OFF").trigger(),
    // InnoDB has 25; here what is read is the hottest first, and waits for nobody.
    global("innodb_buffer_pool_dump_pct", Kind::UInt(1, 100), "100"),
    fixed("innodb_buffer_pool_filename", TEXT, "ib_buffer_pool").constant(),
    fixed("innodb_buffer_pool_instances", Kind::UInt(1, 64), "1").constant(),
    global("innodb_buffer_pool_load_abort", Kind::Bool, "OFF").trigger(),
    fixed("innodb_buffer_pool_load_at_startup", Kind::Bool, "ON"),
    global("innodb_buffer_pool_load_now", Kind::Bool, "OFF").trigger(),
    global("innodb_buffer_pool_size", Kind::UInt(5 << 20, MAX), "134217728"),
    global(
        "innodb_change_buffering",
        Kind::Enum(&["none", "inserts", "deletes", "changes", "purges", "all"]),
        "none",
    )
    .constant(),
    global("innodb_checksum_algorithm", Kind::Enum(&["crc32", "strict_crc32"]), "crc32").constant(),
    global("innodb_cmp_per_index_enabled", Kind::Bool, "OFF").constant(),
    global("innodb_concurrency_tickets", Kind::UInt(1, 4_294_967_295), "5000").without_effect(),
    fixed("innodb_data_file_path", TEXT, "").constant(),
    fixed("innodb_data_home_dir", TEXT, "").constant(),
    global("innodb_deadlock_detect", Kind::Bool, "ON"),
    fixed("innodb_dedicated_server", Kind::Bool, "OFF").constant(),
    global("innodb_default_row_format", Kind::Enum(&["redundant", "compact", "dynamic"]), "dynamic")
        .constant(),
    global("innodb_disable_sort_file_cache", Kind::Bool, "OFF").constant(),
    global(
        "innodb_doublewrite",
        Kind::Enum(&["OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "AUTO"]),
        "AUTO",
    ),
    fixed("innodb_doublewrite_dir", TEXT, ""),
    fixed("innodb_doublewrite_files", Kind::UInt(0, 256), "2"),
    fixed("innodb_doublewrite_pages", Kind::UInt(1, 512), "128"),
    global("innodb_fast_shutdown", Kind::UInt(0, 2), "1").without_effect(),
    global("innodb_file_per_table", Kind::Bool, "ON").constant(),
    global("innodb_fill_factor", Kind::UInt(10, 100), "100").without_effect(),
    global("innodb_flush_log_at_timeout", Kind::UInt(0, 2700), "1").constant(),
    global("innodb_flush_log_at_trx_commit", Kind::UInt(0, 2), "1"),
    fixed(
        "innodb_flush_method",
        Kind::Enum(&["fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"]),
        "O_DIRECT",
    ),
    global("innodb_flush_neighbors", Kind::UInt(0, 2), "0").without_effect(),
    global("innodb_flush_sync", Kind::Bool, "ON").constant(),
    fixed("innodb_force_recovery", Kind::UInt(0, 6), "0"),
    both("innodb_ft_enable_stopword", Kind::Bool, "OFF").constant(),
    global("innodb_io_capacity", Kind::UInt(100, 4_294_967_295), "200").without_effect(),
    // The largest value: no limit, the cleaner decides by itself.
    global("innodb_io_capacity_max", Kind::UInt(100, 4_294_967_295), "4294967295"),
    both("innodb_lock_wait_timeout", Kind::UInt(1, 1_073_741_824), "50"),
    fixed("innodb_log_buffer_size", Kind::UInt(1 << 20, 4 * GIB - 1), "16777216"),
    global("innodb_log_checksums", Kind::Bool, "ON").constant(),
    // Acts at start, beside innodb_log_file_size: then their product, which stays, is the capacity.
    fixed("innodb_log_files_in_group", Kind::UInt(1, 100), "1"),
    fixed("innodb_log_group_home_dir", TEXT, "./").constant(),
    fixed("innodb_log_write_ahead_size", Kind::UInt(512, 65_536), "512"),
    global("innodb_lru_scan_depth", Kind::UInt(100, MAX), "1024").without_effect(),
    global("innodb_max_dirty_pages_pct", Kind::Double(0.0, 99.999), "90").without_effect(),
    global("innodb_max_dirty_pages_pct_lwm", Kind::Double(0.0, 99.999), "10").without_effect(),
    global("innodb_max_purge_lag", Kind::UInt(0, 4_294_967_295), "0").without_effect(),
    global("innodb_max_undo_log_size", Kind::UInt(10 << 20, MAX), "1073741824"),
    global("innodb_monitor_disable", TEXT, "").constant(),
    global("innodb_monitor_enable", TEXT, "").constant(),
    global("innodb_old_blocks_pct", Kind::UInt(5, 95), "37").without_effect(),
    global("innodb_old_blocks_time", Kind::UInt(0, 4_294_967_295), "1000").without_effect(),
    global("innodb_online_alter_log_max_size", Kind::UInt(65_536, MAX), "134217728").without_effect(),
    fixed("innodb_open_files", Kind::UInt(10, 2_147_483_647), "4000"),
    fixed("innodb_page_cleaners", Kind::UInt(1, 64), "1").constant(),
    fixed("innodb_page_size", Kind::UInt(4096, 65_536), "16384"),
    global("innodb_print_all_deadlocks", Kind::Bool, "OFF").constant(),
    fixed("innodb_purge_threads", Kind::UInt(1, 32), "4"),
    global("innodb_random_read_ahead", Kind::Bool, "OFF"),
    global("innodb_read_ahead_threshold", Kind::UInt(0, 64), "56"),
    fixed("innodb_read_io_threads", Kind::UInt(1, 64), "4").without_effect(),
    fixed("innodb_read_only", Kind::Bool, "OFF").constant(),
    global("innodb_redo_log_capacity", Kind::UInt(8 << 20, 512 * GIB), "104857600"),
    fixed("innodb_rollback_on_timeout", Kind::Bool, "OFF").constant(),
    fixed("innodb_sort_buffer_size", Kind::UInt(65_536, 64 << 20), "1048576").without_effect(),
    global("innodb_spin_wait_delay", Kind::UInt(0, 1000), "6").without_effect(),
    global("innodb_stats_auto_recalc", Kind::Bool, "OFF").constant(),
    global(
        "innodb_stats_method",
        Kind::Enum(&["nulls_equal", "nulls_unequal", "nulls_ignored"]),
        "nulls_equal",
    )
    .without_effect(),
    global("innodb_stats_on_metadata", Kind::Bool, "OFF").constant(),
    global("innodb_stats_persistent", Kind::Bool, "OFF").constant(),
    global("innodb_stats_persistent_sample_pages", Kind::UInt(1, MAX), "20").without_effect(),
    global("innodb_stats_transient_sample_pages", Kind::UInt(1, MAX), "8").without_effect(),
    global("innodb_status_output", Kind::Bool, "OFF").constant(),
    global("innodb_status_output_locks", Kind::Bool, "OFF").constant(),
    both("innodb_strict_mode", Kind::Bool, "OFF").constant(),
    both("innodb_table_locks", Kind::Bool, "ON").constant(),
    global("innodb_thread_concurrency", Kind::UInt(0, 1000), "0").constant(),
    global("innodb_undo_log_truncate", Kind::Bool, "ON"),
    global("innodb_undo_tablespaces", Kind::UInt(0, 127), "1").constant(),
    fixed("innodb_use_native_aio", Kind::Bool, "ON"),
    fixed("innodb_version", TEXT, "8.0.36").constant(),
    fixed("innodb_write_io_threads", Kind::UInt(1, 64), "4").without_effect(),
    session("insert_id", true, ANY, "0"),
    both("interactive_timeout", SECONDS, "28800"),
    both("join_buffer_size", Kind::UInt(128, MAX), "262144").without_effect(),
    both("keep_files_on_create", Kind::Bool, "OFF").constant(),
    global("key_buffer_size", ANY, "0").constant(),
    fixed("large_pages", Kind::Bool, "OFF").constant(),
    session("last_insert_id", true, ANY, "0"),
    both("lc_messages", TEXT, "en_US").constant(),
    both("lc_time_names", Kind::TimeNames, "en_US"),
    fixed("license", TEXT, "MIT OR Apache-2.0").constant(),
    global("local_infile", Kind::Bool, "OFF"),
    both("lock_wait_timeout", SECONDS, "31536000"),
    fixed("log_bin", Kind::Bool, "OFF").constant(),
    fixed("log_bin_basename", TEXT, "").constant(),
    fixed("log_error", TEXT, "stderr").constant(),
    global("log_error_verbosity", Kind::UInt(1, 3), "2").without_effect(),
    global("log_output", TEXT, "FILE").constant(),
    global("log_queries_not_using_indexes", Kind::Bool, "OFF"),
    fixed("log_replica_updates", Kind::Bool, "OFF").constant(),
    fixed("log_slave_updates", Kind::Bool, "OFF").constant(),
    both("long_query_time", Kind::Double(0.0, 31_536_000.0), "10"),
    both("low_priority_updates", Kind::Bool, "OFF").constant(),
    fixed("lower_case_file_system", Kind::Bool, "OFF").constant(),
    fixed("lower_case_table_names", Kind::UInt(0, 2), "0").constant(),
    global("mandatory_roles", TEXT, ""),
    both("max_allowed_packet", Kind::UInt(1024, GIB), "67108864"),
    global("max_binlog_size", Kind::UInt(4096, GIB), "1073741824").without_effect(),
    global("max_connect_errors", Kind::UInt(1, MAX), "100").without_effect(),
    global("max_connections", Kind::UInt(1, 100_000), "4096"),
    both("max_error_count", Kind::UInt(0, 65_535), "1024"),
    both("max_execution_time", Kind::UInt(0, 4_294_967_295), "0"),
    both("max_heap_table_size", Kind::UInt(16_384, MAX), "16777216"),
    both("max_join_size", Kind::UInt(1, MAX), "18446744073709551615"),
    both("max_length_for_sort_data", Kind::UInt(4, 8 << 20), "4096").without_effect(),
    both("max_points_in_geometry", Kind::UInt(3, 1 << 20), "65536").without_effect(),
    // MySQL's default, 16382, is used up by 1,024 clients with 16 statements each.
    global("max_prepared_stmt_count", Kind::UInt(0, 4_194_304), "262144"),
    both("max_seeks_for_key", Kind::UInt(1, MAX), "18446744073709551615").without_effect(),
    both("max_sort_length", Kind::UInt(4, 8 << 20), "1024").without_effect(),
    both("max_sp_recursion_depth", Kind::UInt(0, 255), "0").constant(),
    global("max_user_connections", Kind::UInt(0, 4_294_967_295), "0"),
    global("max_write_lock_count", Kind::UInt(1, MAX), "18446744073709551615").without_effect(),
    fixed("metrics_address", TEXT, ""),
    both("min_examined_row_limit", ANY, "0"),
    both("myisam_sort_buffer_size", Kind::UInt(4096, MAX), "8388608").without_effect(),
    both("myisam_stats_method", Kind::Enum(MYISAM_STATISTICS), "nulls_unequal").without_effect(),
    both("net_buffer_length", Kind::UInt(1024, 1 << 20), "16384").without_effect(),
    both("net_read_timeout", SECONDS, "30"),
    both("net_retry_count", Kind::UInt(1, MAX), "10").without_effect(),
    both("net_write_timeout", SECONDS, "60"),
    both("old_alter_table", Kind::Bool, "OFF").constant(),
    both("old_passwords", Kind::UInt(0, 2), "0").constant(),
    fixed("open_files_limit", ANY, "1048576"),
    both("optimizer_prune_level", Kind::UInt(0, 1), "1").without_effect(),
    both("optimizer_search_depth", Kind::UInt(0, 62), "62").without_effect(),
    both("optimizer_switch", Kind::Switches, SWITCHES).constant(),
    both("optimizer_trace", Kind::Switches, "enabled=off,one_line=off").constant(),
    both("optimizer_trace_features", Kind::Switches, TRACED).constant(),
    both("optimizer_trace_limit", Kind::Int(0, 2_147_483_647), "1").without_effect(),
    both("optimizer_trace_max_mem_size", Kind::UInt(0, 4_294_967_295), "1048576").without_effect(),
    both("optimizer_trace_offset", Kind::Int(-2_147_483_648, 2_147_483_647), "-1").without_effect(),
    global("password_history", Kind::UInt(0, 4_294_967_295), "0"),
    global("password_require_current", Kind::Bool, "OFF"),
    global("password_reuse_interval", Kind::UInt(0, 4_294_967_295), "0"),
    fixed("performance_schema", Kind::Bool, "ON"),
    fixed("performance_schema_digests_size", Kind::UInt(0, 1_048_576), "10000"),
    fixed("persisted_globals_load", Kind::Bool, "ON"),
    fixed("pid_file", TEXT, ""),
    fixed("plugin_dir", TEXT, "").constant(),
    fixed("port", Kind::UInt(0, 65_535), "3306"),
    both("preload_buffer_size", Kind::UInt(1024, GIB), "32768").without_effect(),
    both("print_identified_with_as_hex", Kind::Bool, "OFF"),
    both("profiling", Kind::Bool, "OFF").constant(),
    both("profiling_history_size", Kind::UInt(0, 100), "0").constant(),
    global("protocol_compression_algorithms", Kind::Compressions, "zlib,zstd,uncompressed"),
    fixed("protocol_version", ANY, "10").constant(),
    session("proxy_user", false, Kind::Text(true), NULL).constant(),
    session("pseudo_thread_id", true, ANY, "0").without_effect(),
    both("query_alloc_block_size", Kind::UInt(1024, 4_294_966_272), "8192").without_effect(),
    both("query_prealloc_size", Kind::UInt(8192, MAX), "8192").without_effect(),
    session("rand_seed1", true, ANY, "0"),
    session("rand_seed2", true, ANY, "0"),
    both("range_alloc_block_size", Kind::UInt(4096, MAX), "4096").without_effect(),
    both("range_optimizer_max_mem_size", ANY, "8388608").without_effect(),
    both("read_buffer_size", Kind::UInt(8192, 2_147_479_552), "131072").without_effect(),
    global("read_only", Kind::Bool, "OFF").constant(),
    both("read_rnd_buffer_size", Kind::UInt(1, 2_147_483_647), "262144").without_effect(),
    fixed("relay_log", TEXT, "").constant(),
    fixed("report_host", TEXT, "").constant(),
    fixed("report_port", Kind::UInt(0, 65_535), "3306").without_effect(),
    global("require_secure_transport", Kind::Bool, "OFF"),
    fixed("secure_file_priv", Kind::Text(true), NULL),
    global("server_id", Kind::UInt(0, 4_294_967_295), "1").without_effect(),
    fixed("server_uuid", TEXT, ""),
    both("session_track_gtids", Kind::Enum(&["OFF"]), "OFF").constant(),
    both("session_track_schema", Kind::Bool, "ON"),
    both("session_track_state_change", Kind::Bool, "OFF"),
    both("session_track_system_variables", Kind::TrackedNames, TRACKED),
    both("session_track_transaction_info", Kind::Enum(&["OFF", "STATE", "CHARACTERISTICS"]), "OFF"),
    both("show_create_table_skip_secondary_engine", Kind::Bool, "OFF").constant(),
    both("show_create_table_verbosity", Kind::Bool, "OFF").constant(),
    both("show_gipk_in_create_table_and_information_schema", Kind::Bool, "OFF").constant(),
    fixed("skip_external_locking", Kind::Bool, "ON").constant(),
    fixed("skip_name_resolve", Kind::Bool, "ON").constant(),
    fixed("skip_networking", Kind::Bool, "OFF"),
    fixed("skip_show_database", Kind::Bool, "OFF").constant(),
    global("slow_launch_time", Kind::UInt(0, YEAR_SECONDS), "2").without_effect(),
    global("slow_query_log", Kind::Bool, "OFF"),
    global("slow_query_log_file", TEXT, "untorn-slow.log"),
    fixed("socket", TEXT, "/tmp/mysql.sock"),
    both("sort_buffer_size", Kind::UInt(32_768, MAX), "262144"),
    both("sql_auto_is_null", Kind::Bool, "OFF").constant(),
    both("sql_big_selects", Kind::Bool, "ON"),
    both("sql_buffer_result", Kind::Bool, "OFF").constant(),
    session("sql_log_bin", true, Kind::Bool, "OFF").constant(),
    both("sql_log_off", Kind::Bool, "OFF").constant(),
    both(
        "sql_mode",
        Kind::SqlMode,
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
         NO_ENGINE_SUBSTITUTION",
    ),
    both("sql_notes", Kind::Bool, "ON"),
    both("sql_quote_show_create", Kind::Bool, "ON").constant(),
    both("sql_require_primary_key", Kind::Bool, "OFF").constant(),
    both("sql_safe_updates", Kind::Bool, "OFF"),
    both("sql_select_limit", ANY, "18446744073709551615"),
    both("sql_warnings", Kind::Bool, "OFF").constant(),
    fixed("ssl_ca", TEXT, ""),
    fixed("ssl_capath", TEXT, "").constant(),
    fixed("ssl_cert", TEXT, ""),
    fixed("ssl_cipher", TEXT, "").constant(),
    fixed("ssl_crl", TEXT, "").constant(),
    fixed("ssl_crlpath", TEXT, "").constant(),
    fixed("ssl_key", TEXT, ""),
    global("stored_program_cache", Kind::UInt(16, 524_288), "256").without_effect(),
    global("super_read_only", Kind::Bool, "OFF").constant(),
    global("sync_binlog", Kind::UInt(0, 4_294_967_295), "1").without_effect(),
    fixed("system_time_zone", TEXT, "UTC").constant(),
    global("table_definition_cache", Kind::UInt(400, 524_288), "2000").without_effect(),
    global("table_open_cache", Kind::UInt(1, 524_288), "4000").without_effect(),
    fixed("table_open_cache_instances", Kind::UInt(1, 64), "16").without_effect(),
    global("thread_cache_size", Kind::UInt(0, 16_384), "0").constant(),
    fixed("thread_handling", TEXT, "one-runtime-per-core").constant(),
    fixed("thread_stack", Kind::UInt(131_072, MAX), "33554432").constant(),
    both("time_zone", Kind::TimeZone, "SYSTEM"),
    session("timestamp", true, Kind::Double(0.0, 4_294_967_295.0), "0"),
    fixed("tls_version", TEXT, "TLSv1.2,TLSv1.3"),
    both("tmp_table_size", Kind::UInt(1024, MAX), "16777216"),
    fixed("tmpdir", TEXT, "/tmp"),
    both("transaction_alloc_block_size", Kind::UInt(1024, 131_072), "8192").without_effect(),
    both("transaction_isolation", Kind::Enum(ISOLATION_LEVELS), "REPEATABLE-READ"),
    both("transaction_prealloc_size", Kind::UInt(1024, 131_072), "4096").without_effect(),
    both("transaction_read_only", Kind::Bool, "OFF"),
    both("unique_checks", Kind::Bool, "ON").constant(),
    fixed("untorn_backup_dir", TEXT, ""),
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
    // Seconds; 0: by the machine.
    global("untorn_recovery_target", Kind::UInt(0, 86_400), "0"),
    both("untorn_statement_memory_limit", ANY, "0"),
    fixed("untorn_threads", Kind::UInt(1, 1024), "1"),
    both("updatable_views_with_limit", Kind::Bool, "OFF").constant(),
    fixed("version", TEXT, crate::server::login::SERVER_VERSION).constant(),
    fixed("version_comment", TEXT, "Untorn server").constant(),
    fixed("version_compile_machine", TEXT, std::env::consts::ARCH).constant(),
    fixed("version_compile_os", TEXT, "Linux").constant(),
    both("wait_timeout", SECONDS, "28800"),
    session("warning_count", false, ANY, "0"),
    both("xa_detach_on_prepare", Kind::Bool, "ON").constant(),
];

/// Variables without effect that clients set by themselves, and who does: a warning would be noise in every
/// session, and an error for clients that treat warnings as errors.
pub const SET_BY_CLIENTS: &[(&str, &str)] =
    &[("lc_messages", "phpMyAdmin, on connecting"), ("unique_checks", "every dump, in its first lines")];

/// Other names that mean the same variable. They work in SET and @@ and at start, and are no rows of SHOW
/// VARIABLES.
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

/// All names, aliases included.
pub fn names() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.iter().map(|definition| definition.name).chain(ALIASES.iter().map(|(alias, _)| *alias))
}

/// The one of these names most like `name`, if any is like it at all.
pub fn nearest_of(name: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let (distance, best) = names.map(|known| (edit_distance(&lower, known), known)).min()?;
    (distance <= 2 + lower.len() / 10).then_some(best)
}

/// Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
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

    fn nearest_of_all(name: &str) -> Option<&'static str> {
        nearest_of(name, names())
    }

    #[test]
    fn a_misspelt_name_is_recognised() {
        assert_eq!(nearest_of_all("inodb_buffer_pool_size"), Some("innodb_buffer_pool_size"));
        assert_eq!(nearest_of_all("max_conections"), Some("max_connections"));
        assert_eq!(nearest_of_all("prot"), Some("port"));
        assert_eq!(nearest_of_all("query_cache_size"), None);
        assert_eq!(nearest_of_all("zzzzzzzzzzzzzzzzz"), None);
    }
}
