//! Tables of `information_schema` about what is not there: stored programs, triggers, events, plugins, and
//! traces of the optimizer and profiles, which are never made. They have MySQL's columns and no rows, for
//! tools that ask.

use super::declared::{nullable, preset, required};
use super::{INFORMATION_SCHEMA, RowSource, View, ViewType};
use crate::context::SqlContext;

fn nothing(_: &SqlContext) -> RowSource {
    Box::new(std::iter::empty())
}

const fn empty(name: &'static str, columns: &'static [(&'static str, ViewType)]) -> View {
    View { database: INFORMATION_SCHEMA, name, columns, make: nothing }
}

/// The members of `sql_mode`.
const SQL_MODES: &str = concat!(
    "set('REAL_AS_FLOAT','PIPES_AS_CONCAT','ANSI_QUOTES','IGNORE_SPACE','NOT_USED',",
    "'ONLY_FULL_GROUP_BY','NO_UNSIGNED_SUBTRACTION','NO_DIR_IN_CREATE','NOT_USED_9','NOT_USED_10',",
    "'NOT_USED_11','NOT_USED_12','NOT_USED_13','NOT_USED_14','NOT_USED_15','NOT_USED_16',",
    "'NOT_USED_17','NOT_USED_18','ANSI','NO_AUTO_VALUE_ON_ZERO','NO_BACKSLASH_ESCAPES',",
    "'STRICT_TRANS_TABLES','STRICT_ALL_TABLES','NO_ZERO_IN_DATE','NO_ZERO_DATE',",
    "'ALLOW_INVALID_DATES','ERROR_FOR_DIVISION_BY_ZERO','TRADITIONAL','NOT_USED_29',",
    "'HIGH_NOT_PRECEDENCE','NO_ENGINE_SUBSTITUTION','PAD_CHAR_TO_FULL_LENGTH',",
    "'TIME_TRUNCATE_FRACTIONAL','INTERPRET_UTF8_AS_UTF8MB4')",
);

/// The units of an interval.
const INTERVAL_UNITS: &str = concat!(
    "enum('YEAR','QUARTER','MONTH','DAY','HOUR','MINUTE','WEEK','SECOND','MICROSECOND','YEAR_MONTH',",
    "'DAY_HOUR','DAY_MINUTE','DAY_SECOND','HOUR_MINUTE','HOUR_SECOND','MINUTE_SECOND',",
    "'DAY_MICROSECOND','HOUR_MICROSECOND','MINUTE_MICROSECOND','SECOND_MICROSECOND')",
);

pub(super) static VIEWS: &[View] = &[
    empty(
        "EVENTS",
        &[
            ("EVENT_CATALOG", required("varchar(64)")),
            ("EVENT_SCHEMA", required("varchar(64)")),
            ("EVENT_NAME", required("varchar(64)")),
            ("DEFINER", required("varchar(288)")),
            ("TIME_ZONE", required("varchar(64)")),
            ("EVENT_BODY", preset("", required("varchar(3)"))),
            ("EVENT_DEFINITION", required("longtext")),
            ("EVENT_TYPE", preset("", required("varchar(9)"))),
            ("EXECUTE_AT", nullable("datetime")),
            ("INTERVAL_VALUE", nullable("varchar(256)")),
            ("INTERVAL_FIELD", nullable(INTERVAL_UNITS)),
            ("SQL_MODE", required(SQL_MODES)),
            ("STARTS", nullable("datetime")),
            ("ENDS", nullable("datetime")),
            ("STATUS", preset("", required("varchar(21)"))),
            ("ON_COMPLETION", preset("", required("varchar(12)"))),
            ("CREATED", required("timestamp")),
            ("LAST_ALTERED", required("timestamp")),
            ("LAST_EXECUTED", nullable("datetime")),
            ("EVENT_COMMENT", required("varchar(2048)")),
            ("ORIGINATOR", required("int unsigned")),
            ("CHARACTER_SET_CLIENT", required("varchar(64)")),
            ("COLLATION_CONNECTION", required("varchar(64)")),
            ("DATABASE_COLLATION", required("varchar(64)")),
        ],
    ),
    empty(
        "TRIGGERS",
        &[
            ("TRIGGER_CATALOG", required("varchar(64)")),
            ("TRIGGER_SCHEMA", required("varchar(64)")),
            ("TRIGGER_NAME", required("varchar(64)")),
            ("EVENT_MANIPULATION", required("enum('INSERT','UPDATE','DELETE')")),
            ("EVENT_OBJECT_CATALOG", required("varchar(64)")),
            ("EVENT_OBJECT_SCHEMA", required("varchar(64)")),
            ("EVENT_OBJECT_TABLE", required("varchar(64)")),
            ("ACTION_ORDER", required("int unsigned")),
            ("ACTION_CONDITION", nullable("varbinary(0)")),
            ("ACTION_STATEMENT", required("longtext")),
            ("ACTION_ORIENTATION", preset("", required("varchar(3)"))),
            ("ACTION_TIMING", required("enum('BEFORE','AFTER')")),
            ("ACTION_REFERENCE_OLD_TABLE", nullable("varbinary(0)")),
            ("ACTION_REFERENCE_NEW_TABLE", nullable("varbinary(0)")),
            ("ACTION_REFERENCE_OLD_ROW", preset("", required("varchar(3)"))),
            ("ACTION_REFERENCE_NEW_ROW", preset("", required("varchar(3)"))),
            ("CREATED", required("timestamp(2)")),
            ("SQL_MODE", required(SQL_MODES)),
            ("DEFINER", required("varchar(288)")),
            ("CHARACTER_SET_CLIENT", required("varchar(64)")),
            ("COLLATION_CONNECTION", required("varchar(64)")),
            ("DATABASE_COLLATION", required("varchar(64)")),
        ],
    ),
    empty(
        "PLUGINS",
        &[
            ("PLUGIN_NAME", preset("", required("varchar(64)"))),
            ("PLUGIN_VERSION", preset("", required("varchar(20)"))),
            ("PLUGIN_STATUS", preset("", required("varchar(10)"))),
            ("PLUGIN_TYPE", preset("", required("varchar(80)"))),
            ("PLUGIN_TYPE_VERSION", preset("", required("varchar(20)"))),
            ("PLUGIN_LIBRARY", preset("", nullable("varchar(64)"))),
            ("PLUGIN_LIBRARY_VERSION", preset("", nullable("varchar(20)"))),
            ("PLUGIN_AUTHOR", preset("", nullable("varchar(64)"))),
            ("PLUGIN_DESCRIPTION", preset("", nullable("varchar(65535)"))),
            ("PLUGIN_LICENSE", preset("", nullable("varchar(80)"))),
            ("LOAD_OPTION", preset("", required("varchar(64)"))),
        ],
    ),
    empty(
        "ROUTINES",
        &[
            ("SPECIFIC_NAME", required("varchar(64)")),
            ("ROUTINE_CATALOG", required("varchar(64)")),
            ("ROUTINE_SCHEMA", required("varchar(64)")),
            ("ROUTINE_NAME", required("varchar(64)")),
            ("ROUTINE_TYPE", required("enum('FUNCTION','PROCEDURE','LIBRARY')")),
            ("DATA_TYPE", nullable("longtext")),
            ("CHARACTER_MAXIMUM_LENGTH", nullable("bigint")),
            ("CHARACTER_OCTET_LENGTH", nullable("bigint")),
            ("NUMERIC_PRECISION", nullable("int unsigned")),
            ("NUMERIC_SCALE", nullable("int unsigned")),
            ("DATETIME_PRECISION", nullable("int unsigned")),
            ("CHARACTER_SET_NAME", nullable("varchar(64)")),
            ("COLLATION_NAME", nullable("varchar(64)")),
            ("DTD_IDENTIFIER", nullable("longtext")),
            ("ROUTINE_BODY", preset("", required("varchar(8)"))),
            ("ROUTINE_DEFINITION", nullable("longtext")),
            ("EXTERNAL_NAME", nullable("varbinary(0)")),
            ("EXTERNAL_LANGUAGE", preset("SQL", required("varchar(64)"))),
            ("PARAMETER_STYLE", preset("", required("varchar(3)"))),
            ("IS_DETERMINISTIC", preset("", required("varchar(3)"))),
            (
                "SQL_DATA_ACCESS",
                required("enum('CONTAINS SQL','NO SQL','READS SQL DATA','MODIFIES SQL DATA')"),
            ),
            ("SQL_PATH", nullable("varbinary(0)")),
            ("SECURITY_TYPE", required("enum('DEFAULT','INVOKER','DEFINER')")),
            ("CREATED", required("timestamp")),
            ("LAST_ALTERED", required("timestamp")),
            ("SQL_MODE", required(SQL_MODES)),
            ("ROUTINE_COMMENT", required("text")),
            ("DEFINER", required("varchar(288)")),
            ("CHARACTER_SET_CLIENT", required("varchar(64)")),
            ("COLLATION_CONNECTION", required("varchar(64)")),
            ("DATABASE_COLLATION", required("varchar(64)")),
        ],
    ),
    empty(
        "PARAMETERS",
        &[
            ("SPECIFIC_CATALOG", required("varchar(64)")),
            ("SPECIFIC_SCHEMA", required("varchar(64)")),
            ("SPECIFIC_NAME", required("varchar(64)")),
            ("ORDINAL_POSITION", preset("0", required("bigint unsigned"))),
            ("PARAMETER_MODE", nullable("varchar(5)")),
            ("PARAMETER_NAME", nullable("varchar(64)")),
            ("DATA_TYPE", nullable("longtext")),
            ("CHARACTER_MAXIMUM_LENGTH", nullable("bigint")),
            ("CHARACTER_OCTET_LENGTH", nullable("bigint")),
            ("NUMERIC_PRECISION", nullable("int unsigned")),
            ("NUMERIC_SCALE", nullable("bigint")),
            ("DATETIME_PRECISION", nullable("int unsigned")),
            ("CHARACTER_SET_NAME", nullable("varchar(64)")),
            ("COLLATION_NAME", nullable("varchar(64)")),
            ("DTD_IDENTIFIER", required("mediumtext")),
            ("ROUTINE_TYPE", required("enum('FUNCTION','PROCEDURE','LIBRARY')")),
        ],
    ),
    empty(
        "OPTIMIZER_TRACE",
        &[
            ("QUERY", preset("", required("varchar(65535)"))),
            ("TRACE", preset("", required("varchar(65535)"))),
            ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", preset("", required("int"))),
            ("INSUFFICIENT_PRIVILEGES", preset("", required("tinyint(1)"))),
        ],
    ),
    empty(
        "PROFILING",
        &[
            ("QUERY_ID", preset("", required("int"))),
            ("SEQ", preset("", required("int"))),
            ("STATE", preset("", required("varchar(30)"))),
            ("DURATION", preset("", required("decimal(905,0)"))),
            ("CPU_USER", preset("", nullable("decimal(905,0)"))),
            ("CPU_SYSTEM", preset("", nullable("decimal(905,0)"))),
            ("CONTEXT_VOLUNTARY", preset("", nullable("int"))),
            ("CONTEXT_INVOLUNTARY", preset("", nullable("int"))),
            ("BLOCK_OPS_IN", preset("", nullable("int"))),
            ("BLOCK_OPS_OUT", preset("", nullable("int"))),
            ("MESSAGES_SENT", preset("", nullable("int"))),
            ("MESSAGES_RECEIVED", preset("", nullable("int"))),
            ("PAGE_FAULTS_MAJOR", preset("", nullable("int"))),
            ("PAGE_FAULTS_MINOR", preset("", nullable("int"))),
            ("SWAPS", preset("", nullable("int"))),
            ("SOURCE_FUNCTION", preset("", nullable("varchar(30)"))),
            ("SOURCE_FILE", preset("", nullable("varchar(20)"))),
            ("SOURCE_LINE", preset("", nullable("int"))),
        ],
    ),
];
