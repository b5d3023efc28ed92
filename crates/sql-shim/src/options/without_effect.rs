//! Settings of MySQL and MariaDB that this server takes and does nothing with, so that a stock option file
//! starts it, and why they have no effect.
//!
//! Some are variables here too, which say what the server does or lacks; the others exist at start only, and
//! no statement knows them. Each that asks for something is answered by one warning in the log; one that asks
//! for what is (a feature that does not exist is OFF) is not worth one. What is no setting of any server is a
//! spelling mistake and stops the start. Settings that make the server do one thing and end (`initialize`) or
//! take its protection away (`skip-grant-tables`) are not taken: who gives them relies on it. So it is with
//! those of `relied_on.rs`.

use super::arguments::Setting;
use super::relied_on;

/// Why, and the settings that it is true of; a name that ends in `*` is a family, of which no variable of
/// this server has an effect.
type Group = (&'static str, &'static str);

const GROUPS: &[Group] = &[
    (
        "there is no binary log",
        "binlog_* log_bin log_bin_* max_binlog_* sync_binlog sql_log_bin expire_logs_days encrypt_binlog \
         read_binlog_speed_limit log_statements_unsafe_for_binlog flashback sporadic_binlog_dump_fail \
         log_tc log_tc_size innodb_api_enable_binlog innodb_locks_unsafe_for_binlog \
         transaction_write_set_extraction debug_max_binlog_dump_events debug_sporadic_binlog_dump_fail",
    ),
    (
        "there is no replication",
        "gtid_* enforce_gtid_consistency server_id server_id_bits relay_log relay_log_* replicate_* replica_* \
         replication_* slave_* source_* master_* rpl_* report_host report_port report_user report_password \
         group_replication_* wsrep_* log_replica_updates log_slave_updates log_slow_replica_statements \
         log_slow_slave_statements skip_replica_start skip_slave_start init_replica init_slave init_rpl_role \
         show_replica_auth_info show_slave_auth_info sync_master_info sync_relay_log sync_relay_log_info \
         sync_source_info max_relay_log_size sql_replica_skip_counter sql_slave_skip_counter rbr_exec_mode \
         debug_abort_slave_event_count debug_disconnect_slave_event_count innodb_replication_delay \
         terminology_use_previous",
    ),
    ("there is no query cache", "query_cache_* have_query_cache"),
    (
        "InnoDB is the only storage engine",
        "myisam_* aria_* key_buffer_size key_cache_* concurrent_insert delay_key_write bulk_insert_buffer_size \
         default_storage_engine default_tmp_storage_engine disabled_storage_engines enforce_storage_engine \
         archive archive_* blackhole federated federated_* sequence bdb bdb_* ndb_* ndbcluster ndbinfo \
         ndbinfo_* innodb tokudb_* rocksdb_* spider_* partition external_locking skip_external_locking \
         delayed_insert_limit delayed_insert_timeout delayed_queue_size max_delayed_threads \
         max_insert_delayed_threads keep_files_on_create preload_buffer_size ignore_builtin_innodb \
         internal_tmp_mem_storage_engine internal_tmp_disk_storage_engine temptable_* sync_frm \
         encrypt_tmp_disk_tables tmp_disk_table_size tmp_memory_table_size big_tables",
    ),
    (
        "there are no full-text indexes",
        "ft_* innodb_ft_* innodb_optimize_fulltext_only ngram ngram_token_size",
    ),
    ("there is no X Protocol", "mysqlx mysqlx_*"),
    (
        "there are no plugins",
        "plugin_dir plugin_load plugin_load_add plugin_maturity early_plugin_load plugin_* validate_password* \
         audit_log* server_audit* keyring_* clone_* feedback feedback_* unix_socket simple_password_check* \
         cracklib_password_check* user_variables userstat allow_suspicious_udfs connection_control_* \
         authentication_ldap_*",
    ),
    (
        "messages go to standard error, all of them",
        "log_error log_error_* log_warnings log_raw log_timestamps log_isam log_short_format syslog* \
         log_syslog* silent_startup",
    ),
    ("there is no general log", "general_log general_log_file"),
    (
        "the slow query log has its own form",
        "log_slow_admin_statements log_slow_extra log_slow_filter log_slow_rate_limit log_slow_verbosity \
         log_slow_disabled_statements log_slow_max_warnings log_output log_throttle_queries_not_using_indexes \
         log_disabled_statements log_slow_queries",
    ),
    ("there are no events", "event_scheduler"),
    (
        "there are no stored programs",
        "stored_program_cache sp_cache_size \
         automatic_sp_privileges max_sp_recursion_depth stored_program_definition_cache",
    ),
    ("texts of errors are built in, in English", "lc_messages lc_messages_dir language"),
    (
        "the collation of a database that names none is collation_server",
        "character_set_database collation_database \
         default_collation_for_utf8mb4 character_set_filesystem character_sets_dir \
         character_set_client_handshake init_connect old_mode character_set_collations",
    ),
    ("names of hosts are not looked up", "host_cache_size host_cache skip_name_resolve name_resolve"),
    (
        "nothing is encrypted at rest",
        "default_table_encryption table_encryption_privilege_check innodb_encrypt_* innodb_encryption_* \
         innodb_redo_log_encrypt innodb_undo_log_encrypt innodb_default_encryption_key_id encrypt_tmp_files \
         innodb_tablespaces_encryption",
    ),
    (
        "passwords have no such rules",
        "generated_random_password_length max_password_errors strict_password_validation old_passwords secure_auth authentication_policy partial_revokes check_proxy_users \
         caching_sha2_password_* sha256_password_* safe_user_create old_style_user_limits max_connect_errors",
    ),
    (
        "an account whose method is not named has caching_sha2_password; IDENTIFIED WITH names another",
        "default_authentication_plugin",
    ),
    (
        "there is no second port for administrators",
        "admin_* create_admin_listener_thread extra_port extra_max_connections",
    ),
    (
        "the redo log is one file in the data directory",
        "innodb_log_group_home_dir innodb_redo_log_archive_dirs innodb_log_archive* \
         innodb_log_spin_* innodb_log_wait_for_flush_spin_hwm innodb_log_writer_threads \
         innodb_log_compressed_pages innodb_log_file_buffering innodb_log_file_mmap innodb_mirrored_log_groups",
    ),
    (
        "each table has a file in the data directory",
        "innodb_file_per_table innodb_data_file_path innodb_data_home_dir innodb_undo_directory \
         innodb_undo_tablespaces innodb_undo_logs innodb_temp_data_file_path innodb_temp_tablespaces_dir \
         innodb_directories innodb_tmpdir innodb_rollback_segments innodb_autoextend_increment \
         innodb_file_format innodb_file_format_check innodb_file_format_max innodb_large_prefix \
         innodb_open_files_limit innodb_validate_tablespace_paths symbolic_links",
    ),
    (
        "the page cleaner paces itself",
        "innodb_io_capacity innodb_flush_neighbors innodb_flushing_avg_loops innodb_lru_scan_depth \
         innodb_lru_flush_size innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm innodb_flush_sync \
         innodb_page_cleaners innodb_idle_flush_pct innodb_adaptive_flushing innodb_adaptive_flushing_lwm \
         innodb_adaptive_flushing_method innodb_fsync_threshold innodb_use_fdatasync \
         innodb_flush_log_at_timeout innodb_doublewrite_batch_size innodb_use_atomic_writes \
         innodb_use_trim innodb_read_io_threads innodb_write_io_threads innodb_purge_batch_size \
         innodb_max_purge_lag innodb_max_purge_lag_delay innodb_max_purge_lag_wait \
         innodb_purge_rseg_truncate_frequency",
    ),
    (
        "threads do not wait in queues of InnoDB",
        "innodb_thread_concurrency innodb_thread_sleep_delay innodb_concurrency_tickets \
         innodb_commit_concurrency innodb_adaptive_max_sleep_delay innodb_spin_wait_delay \
         innodb_spin_wait_pause_multiplier innodb_sync_spin_loops innodb_sync_array_size",
    ),
    (
        "connections share a thread for each core (untorn_threads)",
        "thread_cache_size thread_concurrency thread_handling thread_stack thread_pool_*",
    ),
];

/// What is on here whatever is given: who asks for OFF is told what stays.
const ALWAYS_ON: &[Group] = &[
    (
        "accounts with it log in as before; ALTER USER … IDENTIFIED WITH caching_sha2_password changes one",
        "mysql_native_password",
    ),
    ("CHECK constraints are always enforced; one that is NOT ENFORCED is not", "check_constraint_checks"),
];

/// The same of what the engine, the planner and the sessions settle by themselves or lack.
const MORE_GROUPS: &[Group] = &[
    ("names of databases and tables keep their case, and are told apart by it", "lower_case_*"),
    ("the program needs no other files", "basedir des_key_file"),
    (
        "definitions stay in memory, and innodb_open_files limits open files",
        "table_cache table_definition_cache table_open_cache table_open_cache_* schema_definition_cache \
         tablespace_definition_cache metadata_locks_cache_size metadata_locks_hash_instances flush flush_time \
         ignore_db_dirs",
    ),
    (
        "statements take memory as they need it (untorn_statement_memory_limit, untorn_memory_limit)",
        "join_buffer_size join_buffer_space_limit join_cache_level read_buffer_size read_rnd_buffer_size \
         query_alloc_block_size query_prealloc_size range_alloc_block_size range_optimizer_max_mem_size \
         transaction_alloc_block_size transaction_prealloc_size net_buffer_length mrr_buffer_size \
         rowid_merge_buff_size parser_max_mem_size set_operations_buffer_size select_into_buffer_size \
         connection_memory_* global_connection_memory_* max_session_mem_used max_tmp_tables server_memory \
         multi_range_count max_digest_length regexp_stack_limit temp_pool",
    ),
    ("texts are sorted and compared whole", "max_length_for_sort_data max_sort_length"),
    (
        "the planner has its own rules",
        "optimizer_* eq_range_index_dive_limit expensive_subquery_limit max_seeks_for_key \
         max_rowid_filter_size in_predicate_conversion_threshold engine_condition_pushdown \
         secondary_engine_cost_threshold standard_compliant_cte",
    ),
    (
        "EXPLAIN has the form that the statement names",
        "explain_format explain_json_format_version end_markers_in_json",
    ),
    (
        "statistics of tables are taken in one way",
        "innodb_stats_* histogram_* analyze_max_length analyze_sample_percentage use_stat_tables \
         information_schema_stats_expiry enable_secondary_engine_statistics",
    ),
    ("there are no GTIDs", "session_track_gtids"),
    ("there is no proxy, and no account to stand for", "proxy_user proxy_protocol_networks"),
    (
        "it only says what the server is",
        "version version_* innodb_version license protocol_version system_time_zone character_set_system \
         have_compress have_dynamic_loading have_geometry have_profiling have_symlink",
    ),
    ("only replication would need it", "pseudo_thread_id secure_timestamp"),
    ("AUTO_INCREMENT numbers are given without a lock on the table", "innodb_autoinc_lock_mode"),
    (
        "the buffer pool is a single one and grows by pages",
        "innodb_buffer_pool_chunk_size innodb_buffer_pool_instances innodb_buffer_pool_evict \
         innodb_buffer_pool_populate innodb_buffer_pool_size_auto_min innodb_buffer_pool_size_max \
         innodb_buffer_pool_stats innodb_additional_mem_pool_size innodb_numa_interleave",
    ),
    (
        "its file is always ib_buffer_pool",
        "innodb_buffer_pool_filename innodb_buffer_pool_restore_at_startup",
    ),
    ("sizes follow from the machine anyway", "innodb_dedicated_server container_aware"),
    ("huge pages are asked for where the machine has them", "large_pages large_page_size super_large_pages"),
    ("memory is not locked", "memlock locked_in_memory"),
    (
        "the system decides what a crash leaves behind",
        "core_file stack_trace innodb_buffer_pool_in_core_dump innodb_buffer_pool_in_core_file",
    ),
    ("there is no adaptive hash index", "innodb_adaptive_hash_index innodb_adaptive_hash_index_*"),
    ("there is no change buffer", "innodb_change_buffering innodb_change_buffer_*"),
    (
        "which pages go is decided by what is in use",
        "innodb_read_ahead innodb_old_blocks_pct innodb_old_blocks_time",
    ),
    (
        "checksums are always crc32, and always verified",
        "innodb_checksum_algorithm innodb_checksums innodb_log_checksums",
    ),
    ("new tables are always ROW_FORMAT=DYNAMIC", "innodb_default_row_format"),
    (
        "nothing is compressed on disk",
        "innodb_compression_* innodb_read_only_compressed innodb_cmp innodb_cmp_* innodb_cmpmem \
         innodb_cmpmem_reset column_compression_*",
    ),
    ("definitions are checked by one set of rules", "innodb_strict_mode restrict_fk_on_non_standard_key"),
    (
        "changes of definitions choose their buffers, threads and way by themselves",
        "innodb_sort_buffer_size innodb_ddl_buffer_size innodb_ddl_threads innodb_online_alter_log_max_size \
         innodb_fill_factor innodb_disable_sort_file_cache innodb_alter_copy_bulk old_alter_table \
         alter_algorithm innodb_instant_alter_column_allowed innodb_log_optimize_ddl \
         innodb_parallel_read_threads log_ddl_recovery innodb_print_ddl_logs innodb_extend_and_initialize \
         innodb_segment_reserve_factor innodb_merge_threshold_set_all_debug progress_report_time",
    ),
    (
        "an orderly stop writes every page, and leaves the rest of purge to the next start",
        "innodb_fast_shutdown",
    ),
    ("a wait that is given up undoes its statement only", "innodb_rollback_on_timeout"),
    (
        "locks are given in the order in which they were asked for",
        "low_priority_updates max_write_lock_count innodb_table_locks innodb_lock_schedule_algorithm \
         deadlock_search_depth_* deadlock_timeout_*",
    ),
    (
        "counters always count, and the log has no monitor's output; SHOW ENGINE INNODB STATUS has it",
        "innodb_monitor_* innodb_status_file innodb_status_output innodb_status_output_locks \
         innodb_print_all_deadlocks innodb_deadlock_report innodb_buf_dump_status_frequency \
         innodb_fatal_semaphore_wait_threshold",
    ),
    (
        "the views of information_schema are always there",
        "innodb_buffer_page innodb_buffer_page_lru innodb_lock_waits innodb_locks innodb_metrics innodb_sys_* \
         innodb_trx innodb_recovery_stats",
    ),
    (
        "the performance schema has no such part",
        "performance_schema_accounts_size performance_schema_consumer_* performance_schema_error_size \
         performance_schema_events_* performance_schema_hosts_size performance_schema_instrument \
         performance_schema_logger performance_schema_max_* performance_schema_meter \
         performance_schema_session_connect_attrs_size performance_schema_setup_* \
         performance_schema_show_processlist performance_schema_users_size timed_mutexes",
    ),
    ("there is no profiling", "profiling profiling_history_size"),
    ("COMMIT and ROLLBACK chain or release where the statement says so", "completion_type"),
    (
        "XA transactions are always there, and a prepared one belongs to no session",
        "innodb_support_xa xa_detach_on_prepare",
    ),
    ("a prepared transaction stays until somebody decides about it", "tc_heuristic_recover"),
    ("TIMESTAMP columns have no defaults of their own", "explicit_defaults_for_timestamp"),
    (
        "formats of dates and times are fixed",
        "date_format datetime_format time_format mysql56_temporal_format",
    ),
    ("SYSDATE() is always NOW()", "sysdate_is_now"),
    ("there are no spatial types", "max_points_in_geometry"),
    ("IS NULL does not look for the last inserted row", "sql_auto_is_null"),
    ("results are sent while they are made", "sql_buffer_result"),
    ("there is no general log", "sql_log_off log log_basename"),
    ("SHOW CREATE always quotes names", "sql_quote_show_create"),
    ("SHOW CREATE TABLE has one form", "show_create_table_* show_gipk_*"),
    ("SHOW DATABASES shows what an account may see", "skip_show_database"),
    (
        "tables need no primary key, and get none that was not asked for",
        "sql_require_primary_key sql_generate_invisible_primary_key innodb_force_primary_key",
    ),
    ("an INSERT of one row has no information string", "sql_warnings note_verbosity"),
    ("unique keys are always checked", "unique_checks"),
    ("views are changed by one set of rules", "updatable_views_*"),
    ("starting a connection starts no thread", "slow_launch_time"),
    (
        "the server's sockets have fixed settings",
        "back_log tcp_keepalive_* tcp_nodelay port_open_timeout net_retry_count",
    ),
    ("handshakes are whole: no TLS session is resumed", "ssl_session_cache_*"),
    ("expiry and names in certificates are not checked at start", "tls_certificates_enforced_validation"),
    (
        "wait_timeout ends idle sessions, in a transaction too",
        "idle_readonly_transaction_timeout idle_transaction_timeout idle_write_transaction_timeout",
    ),
    ("max_execution_time limits a SELECT", "max_statement_time"),
    ("cte_max_recursion_depth limits recursion", "max_recursive_iterations"),
    ("regular expressions are matched by another library", "regexp_time_limit default_regex_flags"),
    ("files of SELECT … INTO are written as the system writes them", "select_into_disk_sync*"),
    ("any value may be persisted, as plain text", "persist_only_* persist_sensitive_*"),
    ("there are no triggers", "enable_cascade_triggers"),
    ("tables have no history", "system_versioning_*"),
    ("all tables are the engine's own", "external_table_*"),
    ("a start upgrades no tables of another server", "check_table_functions"),
    ("IF EXISTS is written where it is meant", "sql_if_exists"),
    ("options are never shortened", "getopt_prefix_matching"),
    ("the server has no older behaviour to go back to", "new old windowing_use_high_precision"),
    (
        "the engine has no such part",
        "innodb_api_bk_commit_interval innodb_api_disable_rowlock innodb_api_enable_mdl innodb_api_trx_level \
         innodb_defragment innodb_defragment_* innodb_file_io_threads \
         innodb_force_load_corrupted innodb_immediate_scrub_data_uncompressed innodb_scrub_* innodb_linux_aio \
         innodb_log_checkpoint_now innodb_native_foreign_keys innodb_prefix_index_cluster_optimization \
         innodb_snapshot_isolation",
    ),
];

pub(super) fn is_named(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| match known.strip_suffix('*') {
        Some(family) => name.starts_with(family),
        None => name == known,
    })
}

fn groups() -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().chain(MORE_GROUPS).chain(ALWAYS_ON)
}

/// Why a setting has no effect. `None`: no server has such a setting, or it has an effect here.
pub fn why(name: &str) -> Option<&'static str> {
    let group = groups().find(|(_, names)| is_named(names, name));
    group.map(|(why, _)| *why).or_else(|| relied_on::why(name))
}

/// The warning about a setting of one of the variables here, which keeps its value if it `stays` so.
pub fn warning(setting: &Setting, name: &str, stays: Option<&str>) -> String {
    let why = why(name);
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let stays = match stays {
        Some("") => "; it stays empty".to_owned(),
        Some(value) => format!("; it stays {value}"),
        None => String::new(),
    };
    format!("{}: {} has no effect{why}{stays}", setting.origin, shown(setting))
}

/// A setting as it was given, without what nobody may read in a log.
pub fn shown(setting: &Setting) -> String {
    let name = setting.name.strip_prefix("loose_").unwrap_or(&setting.name);
    let is_secret = is_secret(name);
    match &setting.value {
        Some(_) if is_secret => {
            format!("{} (its value is not shown)", setting.name)
        }
        Some(value) => format!("{}={value}", setting.name),
        None => setting.name.clone(),
    }
}

/// Whether nobody may read the value of that setting in a log.
pub fn is_secret(name: &str) -> bool {
    let has_word = SECRETS.iter().any(|word| name.contains(word));
    has_word && !is_always_on(name) && !is_named(PLAIN, name)
}

/// Settings that hold none, whatever their names speak of: rules for passwords, names of methods, switches.
const PLAIN: &str = "authentication_policy caching_sha2_password_* connection_control_* \
                     cracklib_password_check_dictionary default_authentication_plugin default_password_lifetime \
                     disconnect_on_expired_password generated_random_password_length max_password_errors \
                     old_passwords password_history password_require_current password_reuse_interval secure_auth \
                     sha256_password_* show_replica_auth_info show_slave_auth_info simple_password_check_* \
                     strict_password_validation untorn_passwordless_tcp validate_password*";

/// In the names of settings whose values may hold passwords.
const SECRETS: &[&str] = &["password", "auth", "secret", "token", "provider_options"];

/// The same of a setting that is no variable here. `None`: no server has it. `Some(None)`: it asks for
/// nothing.
pub fn warning_of_other(setting: &Setting, name: &str) -> Option<Option<String>> {
    let (positive, on) = switched(setting, name)?;
    Some((on != is_always_on(positive)).then(|| warning(setting, positive, None)))
}

fn is_always_on(name: &str) -> bool {
    ALWAYS_ON.iter().any(|(_, names)| is_named(names, name))
}

/// The setting that is no variable here and is asked for, if it is not so anyway.
pub fn asked_for<'n>(setting: &Setting, name: &'n str) -> Option<&'n str> {
    let (positive, on) = switched(setting, name)?;
    (on && !is_always_on(positive)).then_some(positive)
}

/// The setting that is meant, and whether something is asked for. `None`: no server has it.
fn switched<'n>(setting: &Setting, name: &'n str) -> Option<(&'n str, bool)> {
    let off = setting.value.as_deref().is_some_and(is_off);
    if why(name).is_some() {
        return Some((name, !off));
    }
    let (positive, negated) = match name.strip_prefix("skip_").or_else(|| name.strip_prefix("disable_")) {
        Some(positive) => (positive, true),
        None => (name.strip_prefix("enable_")?, false),
    };
    why(positive).map(|_| (positive, off == negated))
}

/// Whether a value asks for nothing.
pub(super) fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_uppercase().as_str(), "" | "0" | "OFF" | "FALSE" | "NO" | "NONE" | "NULL")
}

/// All names that are no family, for guesses at what was meant.
pub fn names() -> impl Iterator<Item = &'static str> {
    groups().flat_map(|(_, names)| names.split_ascii_whitespace()).filter(|name| !name.ends_with('*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::table::{DEFINITIONS, Effect};

    #[test]
    fn whatever_has_no_effect_has_a_reason() {
        for definition in DEFINITIONS.iter().filter(|definition| !definition.effect.is_followed()) {
            let why = why(definition.name);
            assert!(why.is_some_and(|why| !why.is_empty()), "{} has no reason", definition.name);
        }
        for name in names() {
            assert!(
                groups().filter(|(_, names)| is_named(names, name)).count() < 2,
                "{name} has two reasons"
            );
        }
    }

    #[test]
    fn nothing_is_said_to_have_no_effect_that_has_one() {
        for definition in DEFINITIONS {
            let acts = definition.effect.is_followed();
            assert!(!acts || why(definition.name).is_none(), "{} has an effect", definition.name);
        }
        // Of the variables too: one reason for a setting, whether or not it is a variable.
        let log_bin = DEFINITIONS.iter().find(|definition| definition.name == "log_bin");
        assert!(log_bin.is_some_and(|definition| definition.effect == Effect::Constant));
        assert_eq!(why("log_bin"), Some("there is no binary log"));
        assert_eq!(why("temptable_max_ram"), Some("InnoDB is the only storage engine"));
        assert_eq!(why("basedir"), Some("the program needs no other files"));
        assert_eq!(why("initialize"), None);
        assert_eq!(why("skip_grant_tables"), None);
        assert_eq!(why("innodb_buffer_pool_sise"), None);
    }
}
