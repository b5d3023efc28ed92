//! System variables: one table of names, scopes, types and defaults.
//!
//! Global values live in [`GlobalVariables`]; a session starts with a shared snapshot of the session-settable ones and
//! copies it on its first SET. Values a statement consults all the time are kept decoded in [`SessionSettings`].

use std::sync::Arc;

use crate::result::SqlError;

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL (a few variables allow it).
    Null,
    /// ON or OFF; 1 or 0 in a SELECT.
    Bool(bool),
    /// Signed.
    Int(i64),
    /// Unsigned.
    UInt(u64),
    /// Floating point.
    Double(f64),
    /// Text, enumeration or set.
    Text(Arc<str>),
}

/// Which of its two values is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `@@global.x`, SET GLOBAL.
    Global,
    /// `@@session.x`, SET SESSION.
    Session,
    /// `@@x`: the session's if it has one, else the global.
    Either,
}

/// Transaction isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

/// Session variables in decoded form.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct SessionSettings {
    pub autocommit: bool,
    pub isolation: Isolation,
    pub read_only: bool,
    /// Bits of [`sql_mode`].
    pub sql_mode: u64,
    pub foreign_key_checks: bool,
    pub unique_checks: bool,
    pub sql_safe_updates: bool,
    pub sql_auto_is_null: bool,
    pub sql_notes: bool,
    /// Rows; `u64::MAX` is no limit.
    pub sql_select_limit: u64,
    /// Seconds.
    pub lock_wait_timeout_seconds: u64,
    /// Seconds.
    pub innodb_lock_wait_timeout_seconds: u64,
    /// Milliseconds, 0 is no limit.
    pub max_execution_time_ms: u64,
    pub group_concat_max_len: u64,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    /// Offset from UTC in seconds, `None` for SYSTEM (UTC here).
    pub time_zone_offset_seconds: Option<i32>,
}

/// Bits of `sql_mode`.
pub mod sql_mode {
    #![allow(missing_docs)]
    pub const PIPES_AS_CONCAT: u64 = 1 << 0;
    pub const ANSI_QUOTES: u64 = 1 << 1;
    pub const IGNORE_SPACE: u64 = 1 << 2;
    pub const ONLY_FULL_GROUP_BY: u64 = 1 << 3;
    pub const NO_UNSIGNED_SUBTRACTION: u64 = 1 << 4;
    pub const NO_DIR_IN_CREATE: u64 = 1 << 5;
    pub const NO_AUTO_VALUE_ON_ZERO: u64 = 1 << 6;
    pub const NO_BACKSLASH_ESCAPES: u64 = 1 << 7;
    pub const STRICT_TRANS_TABLES: u64 = 1 << 8;
    pub const STRICT_ALL_TABLES: u64 = 1 << 9;
    pub const NO_ZERO_IN_DATE: u64 = 1 << 10;
    pub const NO_ZERO_DATE: u64 = 1 << 11;
    pub const ALLOW_INVALID_DATES: u64 = 1 << 12;
    pub const ERROR_FOR_DIVISION_BY_ZERO: u64 = 1 << 13;
    pub const TRADITIONAL: u64 = 1 << 14;
    pub const HIGH_NOT_PRECEDENCE: u64 = 1 << 15;
    pub const NO_ENGINE_SUBSTITUTION: u64 = 1 << 16;
    pub const PAD_CHAR_TO_FULL_LENGTH: u64 = 1 << 17;
    pub const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 18;
    pub const REAL_AS_FLOAT: u64 = 1 << 19;
    pub const ANSI: u64 = 1 << 20;
}

/// Global values.
#[derive(Default)]
pub struct GlobalVariables {}

/// One session's values.
pub struct SessionVariables {
    settings: SessionSettings,
}

impl GlobalVariables {
    /// `connect_timeout` in milliseconds.
    pub fn connect_timeout_ms(&self) -> u64 {
        10_000
    }

    /// `max_allowed_packet` in bytes.
    pub fn packet_bytes_max(&self) -> usize {
        64 << 20
    }

    /// `net_write_timeout` in milliseconds.
    pub fn net_write_timeout_ms(&self) -> u64 {
        60_000
    }

    /// `max_connections`.
    pub fn max_connections(&self) -> usize {
        4096
    }

    /// `max_prepared_stmt_count`.
    pub fn max_prepared_stmt_count(&self) -> usize {
        16_382
    }

    /// The values a new session starts with.
    pub fn session(&self) -> SessionVariables {
        todo!()
    }
}

impl SessionVariables {
    /// Decoded values.
    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// Reads a variable; names are case-insensitive. 1193 unknown, 1238 wrong scope.
    pub fn get(&self, globals: &GlobalVariables, name: &str, scope: Scope) -> Result<Value, SqlError> {
        let _ = (globals, name, scope);
        todo!()
    }

    /// Sets a variable, `None` is DEFAULT. 1193 unknown, 1238 read-only, 1231 wrong value, 1232 wrong type, 1228/1229
    /// wrong scope. `Either` means session.
    pub fn set(
        &mut self,
        globals: &GlobalVariables,
        name: &str,
        scope: Scope,
        value: Option<Value>,
    ) -> Result<(), SqlError> {
        let _ = (globals, name, scope, value);
        todo!()
    }

    /// Rows of SHOW VARIABLES in name order (values as text, ON/OFF for booleans).
    pub fn show(&self, globals: &GlobalVariables, scope: Scope) -> Vec<(&'static str, String)> {
        let _ = (globals, scope);
        todo!()
    }
}
