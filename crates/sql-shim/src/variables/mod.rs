//! System variables: one table of names, scopes, types and defaults.
//!
//! Global values live in [`GlobalVariables`]; a session starts with the same shared snapshot and copies it on
//! its first SET, so opening a session costs a reference count. Values a statement consults all the time are
//! kept decoded in [`SessionSettings`], and the few globals that hot paths read in [`GlobalVariables`]'
//! atomics.
//!
//! Most variables change nothing here. [`table::Effect`] says of each what setting it does; SET of one
//! without effect gives a warning, and at start it is in a line of the log.
//!
//! Whether a value may be set there (1238, 1229, 1231 and the like) is decided in `change.rs`.
//!
//! What only the session knows (`last_insert_id`, `warning_count`, `timestamp`, ...) is in the table for its
//! name and type; the SQL layer answers for its value.

mod change;
pub mod persisted;
pub mod table;
pub mod tracked_names;
pub mod value;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

pub use change::Change;
pub use value::Value;

use sql::context::Settings;
use sql::result::SqlError;
use sql::sql_mode;
use sql::time_names::TimeNames;
use sql::value::Collation;
use untorn::types::Charset;

use change::{warning_of_set, without_effect, wrong_scope};
use table::{DEFINITIONS, Definition, Effect, ISOLATION_LEVELS, Reach, find};

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

/// `session_track_transaction_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum TransactionTracking {
    #[default]
    Off,
    State,
    Characteristics,
}

/// Session variables in decoded form.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct SessionSettings {
    /// Those that SQL obeys.
    pub sql: Settings,
    /// In which the client wants texts; UTF-8 unless it is `latin1`.
    pub results_charset: Charset,
    pub autocommit: bool,
    pub isolation: Isolation,
    pub read_only: bool,
    pub foreign_key_checks: bool,
    /// Seconds.
    pub lock_wait_timeout_seconds: u64,
    /// Seconds.
    pub innodb_lock_wait_timeout_seconds: u64,
    /// Milliseconds, 0 is no limit.
    pub max_execution_time_ms: u64,
    /// A statement that took this long is slow.
    pub long_query_time: Duration,
    pub min_examined_row_limit: u64,
    /// Seconds.
    pub wait_timeout_seconds: u64,
    /// Seconds.
    pub interactive_timeout_seconds: u64,
    pub track_schema: bool,
    pub track_state_change: bool,
    pub track_transactions: TransactionTracking,
}

/// All values by index, and their decoded form.
#[derive(Debug, Clone)]
struct Snapshot {
    values: Vec<Value>,
    settings: SessionSettings,
}

impl Snapshot {
    fn new(values: Vec<Value>) -> Self {
        let settings = decode(&values);
        Self { values, settings }
    }

    fn get(&self, index: usize) -> Value {
        self.values.get(index).cloned().unwrap_or(Value::Null)
    }

    fn put(&mut self, name: &str, value: Value) {
        if let Some(slot) = find(name).and_then(|index| self.values.get_mut(index)) {
            *slot = value;
        }
    }

    /// Sets a value and what hangs on it.
    fn set(&mut self, definition: &Definition, value: Value) {
        self.put(definition.name, value.clone());
        let text = value.as_str().unwrap_or_default();
        let linked = match definition.name {
            "character_set_connection" => value::default_collation(text).map(|c| ("collation_connection", c)),
            "collation_connection" => {
                value::charset_of_collation(text).map(|c| ("character_set_connection", c))
            }
            "character_set_server" => value::default_collation(text).map(|c| ("collation_server", c)),
            "collation_server" => value::charset_of_collation(text).map(|c| ("character_set_server", c)),
            _ => None,
        };
        if let Some((name, text)) = linked {
            self.put(name, Value::text(text));
        }
        // A limit that is said counts, until big joins are allowed again.
        if definition.name == "max_join_size" {
            self.put("sql_big_selects", Value::Bool(value.as_u64() == Some(u64::MAX)));
        }
        self.settings = decode(&self.values);
    }
}

/// The isolation level of this name.
pub fn isolation_of(name: &str) -> Isolation {
    match ISOLATION_LEVELS.iter().position(|level| *level == name) {
        Some(0) => Isolation::ReadUncommitted,
        Some(1) => Isolation::ReadCommitted,
        Some(3) => Isolation::Serializable,
        _ => Isolation::RepeatableRead,
    }
}

fn decode(values: &[Value]) -> SessionSettings {
    let value = |name: &str| find(name).and_then(|index| values.get(index));
    let number = |name: &str| value(name).and_then(Value::as_u64).unwrap_or_default();
    let seconds = |name: &str| match value(name) {
        Some(Value::Double(seconds)) => *seconds,
        _ => 0.0,
    };
    let flag = |name: &str| number(name) != 0;
    let text = |name: &str| value(name).and_then(Value::as_str).unwrap_or_default();
    let charset = |name: &str| Charset::from_name(text(name)).unwrap_or(Charset::Utf8mb4);
    let isolation = isolation_of(text("transaction_isolation"));
    SessionSettings {
        sql: Settings {
            sql_mode: sql_mode::parse(text("sql_mode")).unwrap_or_default(),
            sql_safe_updates: flag("sql_safe_updates"),
            sql_notes: flag("sql_notes"),
            sql_select_limit: number("sql_select_limit"),
            group_concat_max_len: number("group_concat_max_len"),
            connection_collation: Collation::from_name(text("collation_connection"))
                .unwrap_or(Collation::Utf8mb4GeneralCi),
            client_charset: charset("character_set_client"),
            div_precision_increment: number("div_precision_increment").min(30) as u8,
            sort_buffer_size: number("sort_buffer_size"),
            tmp_table_size: number("tmp_table_size").min(number("max_heap_table_size")),
            auto_increment_increment: number("auto_increment_increment"),
            auto_increment_offset: number("auto_increment_offset"),
            cte_max_recursion_depth: number("cte_max_recursion_depth"),
            max_join_size: if flag("sql_big_selects") { u64::MAX } else { number("max_join_size") },
            max_error_count: number("max_error_count"),
            default_week_format: number("default_week_format").min(7) as u8,
            statement_memory_limit: number("untorn_statement_memory_limit"),
            time_zone_offset_seconds: value::time_zone_offset(text("time_zone")).flatten(),
            time_names: TimeNames::of_locale(text("lc_time_names"))
                .map_or(TimeNames::default(), |(names, _)| names),
        },
        results_charset: match value("character_set_results") {
            // Nothing is converted.
            Some(Value::Null) => Charset::Binary,
            _ => charset("character_set_results"),
        },
        autocommit: flag("autocommit"),
        isolation,
        read_only: flag("transaction_read_only"),
        foreign_key_checks: flag("foreign_key_checks"),
        lock_wait_timeout_seconds: number("lock_wait_timeout"),
        innodb_lock_wait_timeout_seconds: number("innodb_lock_wait_timeout"),
        max_execution_time_ms: number("max_execution_time"),
        long_query_time: Duration::from_secs_f64(seconds("long_query_time")),
        min_examined_row_limit: number("min_examined_row_limit"),
        wait_timeout_seconds: number("wait_timeout"),
        interactive_timeout_seconds: number("interactive_timeout"),
        track_schema: flag("session_track_schema"),
        track_state_change: flag("session_track_state_change"),
        track_transactions: match text("session_track_transaction_info") {
            "STATE" => TransactionTracking::State,
            "CHARACTERISTICS" => TransactionTracking::Characteristics,
            _ => TransactionTracking::Off,
        },
    }
}

/// Called after SET GLOBAL changed a variable; an error takes the change back.
pub type Hook = Box<dyn Fn(&Value) -> Result<(), SqlError> + Send + Sync>;

/// Called after SET GLOBAL gave a variable its DEFAULT, in place of a [`Hook`]: what that is the server
/// decides, and puts there.
pub type DefaultHook = Box<dyn Fn() -> Result<(), SqlError> + Send + Sync>;

/// Global values.
pub struct GlobalVariables {
    snapshot: RwLock<Arc<Snapshot>>,
    hooks: RwLock<HashMap<usize, Hook>>,
    defaults: RwLock<HashMap<usize, DefaultHook>>,
    flush_log_at_trx_commit: AtomicU64,
    net_write_timeout_ms: AtomicU64,
    packet_bytes_max: AtomicUsize,
    local_infile: AtomicBool,
    /// Held while a global value is stored and acted upon: of two who set a variable at the same time the
    /// later one's value is shown and in force, and what a refusal takes back is the refused one's.
    changing: parking_lot::Mutex<()>,
    /// Held while the file of persisted values is replaced.
    persisting: parking_lot::Mutex<()>,
}

impl Default for GlobalVariables {
    fn default() -> Self {
        let value = |definition: &Definition| value::from_text(definition, definition.default);
        let values = DEFINITIONS.iter().map(|definition| value(definition).unwrap_or(Value::Null)).collect();
        let variables = Self {
            snapshot: RwLock::new(Arc::new(Snapshot::new(values))),
            hooks: RwLock::default(),
            defaults: RwLock::default(),
            flush_log_at_trx_commit: AtomicU64::new(1),
            net_write_timeout_ms: AtomicU64::new(60_000),
            packet_bytes_max: AtomicUsize::new(0),
            local_infile: AtomicBool::new(false),
            changing: parking_lot::Mutex::new(()),
            persisting: parking_lot::Mutex::new(()),
        };
        variables.refresh(&variables.snapshot.read());
        variables
    }
}

impl GlobalVariables {
    /// The values a new session starts with.
    pub fn session(&self) -> SessionVariables {
        SessionVariables { snapshot: Arc::clone(&self.snapshot.read()) }
    }

    /// Acts on SET GLOBAL of that variable from now on.
    pub fn on_change(&self, name: &str, hook: Hook) {
        debug_assert!(find(name).is_some(), "a hook on an unknown variable");
        if let Some(index) = find(name) {
            self.hooks.write().insert(index, hook);
        }
    }

    /// Acts on SET GLOBAL … = DEFAULT of that variable from now on. Persisted, it is as if it had never been:
    /// the next start decides again.
    pub fn on_default(&self, name: &str, hook: DefaultHook) {
        debug_assert!(find(name).is_some(), "a hook on an unknown variable");
        if let Some(index) = find(name) {
            self.defaults.write().insert(index, hook);
        }
    }

    /// Sets any variable from its text, read-only ones too: command line, option file, and what the engine
    /// decided. 1193 for an unknown name. The answer is a warning when that changes nothing.
    pub fn set_at_start(&self, name: &str, text: &str) -> Result<Option<SqlError>, SqlError> {
        let (_, definition) = lookup(name)?;
        let value = value::from_text(definition, text)?;
        let warning = without_effect(definition, &value);
        if definition.effect != Effect::Constant {
            self.store(definition, value);
        }
        Ok(warning)
    }

    fn store(&self, definition: &Definition, value: Value) {
        let mut snapshot = self.snapshot.write();
        Arc::make_mut(&mut snapshot).set(definition, value);
        self.refresh(&snapshot);
    }

    /// Keeps decoded what is looked at often. Under the lock of the snapshot: of two who set variables at the
    /// same time the later one's values stay, in both.
    fn refresh(&self, snapshot: &Snapshot) {
        let number = |name| find(name).and_then(|index| snapshot.get(index).as_u64()).unwrap_or_default();
        self.flush_log_at_trx_commit.store(number("innodb_flush_log_at_trx_commit"), Ordering::Relaxed);
        self.net_write_timeout_ms.store(number("net_write_timeout") * 1000, Ordering::Relaxed);
        self.packet_bytes_max.store(number("max_allowed_packet") as usize, Ordering::Relaxed);
        self.local_infile.store(number("local_infile") == 1, Ordering::Relaxed);
    }

    /// A number by name; 0 when there is no such number.
    pub fn number(&self, name: &str) -> u64 {
        self.value(name).as_u64().unwrap_or_default()
    }

    /// A text by name; empty when there is no such text.
    pub fn text(&self, name: &str) -> String {
        self.value(name).as_str().unwrap_or_default().to_owned()
    }

    /// A value by name; NULL when there is no such variable.
    pub fn value(&self, name: &str) -> Value {
        find(name).map_or(Value::Null, |index| self.snapshot.read().get(index))
    }

    /// `innodb_flush_log_at_trx_commit` without a lock: 0, 1 or 2.
    #[inline]
    pub fn flush_log_at_trx_commit(&self) -> u64 {
        self.flush_log_at_trx_commit.load(Ordering::Relaxed)
    }

    /// `connect_timeout` in milliseconds.
    pub fn connect_timeout_ms(&self) -> u64 {
        self.number("connect_timeout") * 1000
    }

    /// `max_allowed_packet` in bytes. Every statement that changes something asks for it.
    #[inline]
    pub fn packet_bytes_max(&self) -> usize {
        self.packet_bytes_max.load(Ordering::Relaxed)
    }

    /// `net_write_timeout` in milliseconds.
    pub fn net_write_timeout_ms(&self) -> u64 {
        self.net_write_timeout_ms.load(Ordering::Relaxed)
    }

    /// `net_read_timeout` in milliseconds.
    pub fn net_read_timeout_ms(&self) -> u64 {
        self.number("net_read_timeout") * 1000
    }

    /// `local_infile`.
    #[inline]
    pub fn local_infile(&self) -> bool {
        self.local_infile.load(Ordering::Relaxed)
    }

    /// `max_connections`.
    pub fn max_connections(&self) -> usize {
        self.number("max_connections") as usize
    }

    /// `max_prepared_stmt_count`.
    pub fn max_prepared_stmt_count(&self) -> usize {
        self.number("max_prepared_stmt_count") as usize
    }

    /// Keeps a global value of a variable for later starts (SET PERSIST), or none.
    fn persist(&self, definition: &Definition, value: Option<&Value>) -> Result<(), SqlError> {
        let datadir = std::path::PathBuf::from(self.text("datadir"));
        let _one_at_a_time = self.persisting.lock();
        let kept = match value {
            Some(value) => persisted::keep(&datadir, definition.name, &value.show()),
            None => persisted::forget(&datadir, definition.name),
        };
        kept.map_err(|error| {
            let file = persisted::path(&datadir);
            SqlError::new(1105, b"HY000", format!("cannot save the value in {}: {error}", file.display()))
        })
    }

    /// Does a change that [acts on the server](Change::is_global). It takes as long as what acts on the
    /// variable and those who change one at the same time: not for a thread that others need.
    pub fn apply(&self, change: Change) -> Result<Option<SqlError>, SqlError> {
        self.session().apply(self, change)
    }

    fn trigger(&self, index: usize, value: &Value) -> Result<(), SqlError> {
        self.hooks.read().get(&index).map_or(Ok(()), |hook| hook(value))
    }

    fn set_global(&self, change: &Change, value: Value) -> Result<(), SqlError> {
        let Change { index, definition, persists, .. } = *change;
        let _one_at_a_time = self.changing.lock();
        let before = self.snapshot.read().get(index);
        self.store(definition, value.clone());
        let defaults = self.defaults.read();
        let decides = defaults.get(&index).filter(|_| change.is_default);
        let outcome = match decides {
            Some(decide) => decide(),
            None => self.trigger(index, &value),
        };
        // What the hook has put there instead stays.
        if outcome.is_err() && self.snapshot.read().get(index) == value {
            self.store(definition, before);
        }
        outcome?;
        // Before anybody sets another value: the one in force and the one in the file are the same
        // statement's.
        if persists { self.persist(definition, decides.is_none().then_some(&value)) } else { Ok(()) }
    }
}

fn lookup(name: &str) -> Result<(usize, &'static Definition), SqlError> {
    find(name)
        .and_then(|index| Some((index, DEFINITIONS.get(index)?)))
        .ok_or_else(|| SqlError::new(1193, b"HY000", format!("Unknown system variable '{name}'")))
}

/// One session's values.
#[derive(Debug, Clone)]
pub struct SessionVariables {
    snapshot: Arc<Snapshot>,
}

impl SessionVariables {
    /// Decoded values.
    #[inline]
    pub fn settings(&self) -> &SessionSettings {
        &self.snapshot.settings
    }

    /// Reads a variable; names are case-insensitive. 1193 unknown, 1238 wrong scope.
    pub fn get(&self, globals: &GlobalVariables, name: &str, scope: Scope) -> Result<Value, SqlError> {
        let (index, definition) = lookup(name)?;
        match (scope, definition.reach) {
            (Scope::Session, Reach::Global) => Err(wrong_scope(definition.name, "GLOBAL")),
            (Scope::Global, Reach::Session) => Err(wrong_scope(definition.name, "SESSION")),
            (Scope::Global, _) | (Scope::Either, Reach::Global) => Ok(globals.snapshot.read().get(index)),
            (Scope::Session | Scope::Either, _) => Ok(self.snapshot.get(index)),
        }
    }

    /// Sets a variable, `None` is DEFAULT. The answer is a warning when that changes nothing. Errors are
    /// those of [`Change::check`], and of what acts on a global variable.
    pub fn set(
        &mut self,
        globals: &GlobalVariables,
        name: &str,
        scope: Scope,
        value: Option<Value>,
    ) -> Result<Option<SqlError>, SqlError> {
        self.apply(globals, Change::check(name, scope, value)?)
    }

    /// Does a change. The answer is a warning when it changes nothing; only what acts on a global variable
    /// may refuse it.
    pub fn apply(&mut self, globals: &GlobalVariables, change: Change) -> Result<Option<SqlError>, SqlError> {
        let Change { index, definition, global, persists, .. } = change;
        let value = change.to.clone().unwrap_or_else(|| globals.snapshot.read().get(index));
        let warning = warning_of_set(definition, &value);
        match definition.effect {
            Effect::Constant | Effect::Triggers => {
                if definition.effect == Effect::Triggers {
                    globals.trigger(index, &value)?;
                }
                if persists {
                    globals.persist(definition, Some(&globals.value(definition.name)))?;
                }
            }
            _ if global => globals.set_global(&change, value)?,
            _ => Arc::make_mut(&mut self.snapshot).set(definition, value),
        }
        Ok(warning)
    }

    /// Rows of SHOW VARIABLES in name order (values as text, ON/OFF for booleans).
    pub fn show(&self, globals: &GlobalVariables, scope: Scope) -> Vec<(&'static str, String)> {
        let global = Arc::clone(&globals.snapshot.read());
        let mut rows = Vec::with_capacity(DEFINITIONS.len());
        for (index, definition) in DEFINITIONS.iter().enumerate() {
            let value = match (scope, definition.reach) {
                (Scope::Global, Reach::Session) => continue,
                (Scope::Global, _) | (_, Reach::Global) => global.get(index),
                _ => self.snapshot.get(index),
            };
            rows.push((definition.name, value.show()));
        }
        rows
    }
}

#[cfg(test)]
mod tests;
