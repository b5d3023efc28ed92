//! Tables of `performance_schema` without rows, for monitoring that reads them: of these things nothing is
//! counted (work on each table and index, waits for a table, allocations), or there is no such thing
//! (replication). A row of zeros would say that nothing happened.

use super::declared::{keyed, nullable, required, timed_columns};
use super::{PERFORMANCE_SCHEMA, View, empty};

pub(super) static VIEWS: &[View] = &[
    empty(
        PERFORMANCE_SCHEMA,
        "table_io_waits_summary_by_table",
        timed_columns!(
            [
                ("OBJECT_TYPE", keyed("MUL", nullable("varchar(64)"))),
                ("OBJECT_SCHEMA", nullable("varchar(64)")),
                ("OBJECT_NAME", nullable("varchar(64)")),
            ];
            "COUNT_STAR", "WAIT";
            "COUNT_READ", "READ";
            "COUNT_WRITE", "WRITE";
            "COUNT_FETCH", "FETCH";
            "COUNT_INSERT", "INSERT";
            "COUNT_UPDATE", "UPDATE";
            "COUNT_DELETE", "DELETE"
        ),
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "table_io_waits_summary_by_index_usage",
        timed_columns!(
            [
                ("OBJECT_TYPE", keyed("MUL", nullable("varchar(64)"))),
                ("OBJECT_SCHEMA", nullable("varchar(64)")),
                ("OBJECT_NAME", nullable("varchar(64)")),
                ("INDEX_NAME", nullable("varchar(64)")),
            ];
            "COUNT_STAR", "WAIT";
            "COUNT_READ", "READ";
            "COUNT_WRITE", "WRITE";
            "COUNT_FETCH", "FETCH";
            "COUNT_INSERT", "INSERT";
            "COUNT_UPDATE", "UPDATE";
            "COUNT_DELETE", "DELETE"
        ),
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "table_lock_waits_summary_by_table",
        timed_columns!(
            [
                ("OBJECT_TYPE", keyed("MUL", nullable("varchar(64)"))),
                ("OBJECT_SCHEMA", nullable("varchar(64)")),
                ("OBJECT_NAME", nullable("varchar(64)")),
            ];
            "COUNT_STAR", "WAIT";
            "COUNT_READ", "READ";
            "COUNT_WRITE", "WRITE";
            "COUNT_READ_NORMAL", "READ_NORMAL";
            "COUNT_READ_WITH_SHARED_LOCKS", "READ_WITH_SHARED_LOCKS";
            "COUNT_READ_HIGH_PRIORITY", "READ_HIGH_PRIORITY";
            "COUNT_READ_NO_INSERT", "READ_NO_INSERT";
            "COUNT_READ_EXTERNAL", "READ_EXTERNAL";
            "COUNT_WRITE_ALLOW_WRITE", "WRITE_ALLOW_WRITE";
            "COUNT_WRITE_CONCURRENT_INSERT", "WRITE_CONCURRENT_INSERT";
            "COUNT_WRITE_LOW_PRIORITY", "WRITE_LOW_PRIORITY";
            "COUNT_WRITE_NORMAL", "WRITE_NORMAL";
            "COUNT_WRITE_EXTERNAL", "WRITE_EXTERNAL"
        ),
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "memory_summary_global_by_event_name",
        &[
            ("EVENT_NAME", keyed("PRI", required("varchar(128)"))),
            ("COUNT_ALLOC", required("bigint unsigned")),
            ("COUNT_FREE", required("bigint unsigned")),
            ("SUM_NUMBER_OF_BYTES_ALLOC", required("bigint unsigned")),
            ("SUM_NUMBER_OF_BYTES_FREE", required("bigint unsigned")),
            ("LOW_COUNT_USED", required("bigint")),
            ("CURRENT_COUNT_USED", required("bigint")),
            ("HIGH_COUNT_USED", required("bigint")),
            ("LOW_NUMBER_OF_BYTES_USED", required("bigint")),
            ("CURRENT_NUMBER_OF_BYTES_USED", required("bigint")),
            ("HIGH_NUMBER_OF_BYTES_USED", required("bigint")),
        ],
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "replication_group_members",
        &[
            ("CHANNEL_NAME", required("char(64)")),
            ("MEMBER_ID", required("char(36)")),
            ("MEMBER_HOST", required("char(255)")),
            ("MEMBER_PORT", nullable("int")),
            ("MEMBER_STATE", required("char(64)")),
            ("MEMBER_ROLE", required("char(64)")),
            ("MEMBER_VERSION", required("char(64)")),
            ("MEMBER_COMMUNICATION_STACK", required("char(64)")),
        ],
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "replication_group_member_stats",
        &[
            ("CHANNEL_NAME", required("char(64)")),
            ("VIEW_ID", required("char(60)")),
            ("MEMBER_ID", required("char(36)")),
            ("COUNT_TRANSACTIONS_IN_QUEUE", required("bigint unsigned")),
            ("COUNT_TRANSACTIONS_CHECKED", required("bigint unsigned")),
            ("COUNT_CONFLICTS_DETECTED", required("bigint unsigned")),
            ("COUNT_TRANSACTIONS_ROWS_VALIDATING", required("bigint unsigned")),
            ("TRANSACTIONS_COMMITTED_ALL_MEMBERS", required("longtext")),
            ("LAST_CONFLICT_FREE_TRANSACTION", required("text")),
            ("COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE", required("bigint unsigned")),
            ("COUNT_TRANSACTIONS_REMOTE_APPLIED", required("bigint unsigned")),
            ("COUNT_TRANSACTIONS_LOCAL_PROPOSED", required("bigint unsigned")),
            ("COUNT_TRANSACTIONS_LOCAL_ROLLBACK", required("bigint unsigned")),
        ],
    ),
    empty(
        PERFORMANCE_SCHEMA,
        "replication_applier_status_by_worker",
        &[
            ("CHANNEL_NAME", keyed("PRI", required("char(64)"))),
            ("WORKER_ID", keyed("PRI", required("bigint unsigned"))),
            ("THREAD_ID", keyed("MUL", nullable("bigint unsigned"))),
            ("SERVICE_STATE", required("enum('ON','OFF')")),
            ("LAST_ERROR_NUMBER", required("int")),
            ("LAST_ERROR_MESSAGE", required("varchar(1024)")),
            ("LAST_ERROR_TIMESTAMP", required("timestamp(6)")),
            ("LAST_APPLIED_TRANSACTION", nullable("char(90)")),
            ("LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", required("timestamp(6)")),
            ("LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", required("timestamp(6)")),
            ("LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP", required("timestamp(6)")),
            ("LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP", required("timestamp(6)")),
            ("APPLYING_TRANSACTION", nullable("char(90)")),
            ("APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", required("timestamp(6)")),
            ("APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", required("timestamp(6)")),
            ("APPLYING_TRANSACTION_START_APPLY_TIMESTAMP", required("timestamp(6)")),
            ("LAST_APPLIED_TRANSACTION_RETRIES_COUNT", required("bigint unsigned")),
            ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER", required("int")),
            ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", nullable("varchar(1024)")),
            ("LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", required("timestamp(6)")),
            ("APPLYING_TRANSACTION_RETRIES_COUNT", required("bigint unsigned")),
            ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER", required("int")),
            ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE", nullable("varchar(1024)")),
            ("APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP", required("timestamp(6)")),
        ],
    ),
];
