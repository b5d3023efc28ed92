//! What statements are read, planned and executed in: clock, zone, mode, warnings, memory, variables.
//!
//! SQL knows no session and no socket. The program that runs statements keeps an [`SqlContext`] from one to
//! the next, says when each begins ([`SqlContext::begin_statement`]), and hands it to the planner and the
//! executor beside a transaction. What rows look at is in it: settings decoded ([`Settings`]), a kill switch,
//! an account of memory, a slice of time. What is known around it and seldom asked for (accounts,
//! connections, the table of system variables) is behind [`ServerFacts`]; a program without accounts answers
//! there with all rights and one client.
//!
//! It is apart from the transaction, so that a row callback can evaluate expressions while the transaction is
//! borrowed by the scan. It lives on one thread: cells are enough.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use untorn::engine::{Event, TimeSlice};
use untorn::sort::Place;
use untorn::types::{Charset, Collation, Date, DateTime};
use untorn::write::StatementTime;

use crate::lexer::LexicalModes;

use crate::ast;
use crate::errors;
use crate::evaluation::Evaluation;
use crate::exec::measure::Measures;
use crate::facts::{ServerFacts, Terms};
use crate::handler_counts::HandlerCounts;
use crate::kill_switch::{Kill, KillSwitch};
use crate::memory::{self, Account};
use crate::named_locks::{self, GivenBack, NamedLocks, Taken};
use crate::parameters::Parameters;
use crate::random_sequences::{RandomSequences, SeededNumbers};
use crate::result::SqlError;
use crate::sql_mode;
use crate::temporary::TemporaryTables;
use crate::time_names::TimeNames;
use crate::value::Value;
use crate::value::regex::{Modes, Patterns, Regex};
use crate::value::temporal::Today;

/// How serious a line of SHOW WARNINGS is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `Note`.
    Note,
    /// `Warning`.
    Warning,
    /// `Error`.
    Error,
}

impl Level {
    /// As SHOW WARNINGS prints it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// Bytes that a held name takes beside its own.
const LOCK_BYTES: usize = 32;

/// The system variables that SQL obeys, decoded.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Settings {
    /// Bits of [`sql_mode`].
    pub sql_mode: u64,
    pub sql_safe_updates: bool,
    pub sql_notes: bool,
    /// Rows; `u64::MAX` is no limit.
    pub sql_select_limit: u64,
    pub group_concat_max_len: u64,
    /// Digits that a quotient has more than its dividend.
    pub div_precision_increment: u8,
    /// Of literals.
    pub connection_collation: Collation,
    /// In which the client writes statements; they come converted.
    pub client_charset: Charset,
    /// Bytes that a sort keeps in memory.
    pub sort_buffer_size: u64,
    /// Bytes that groups, or keys of rows seen, keep in memory.
    pub tmp_table_size: u64,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    pub cte_max_recursion_depth: u64,
    /// Rows of its outer tables that a join may look at: all with `sql_big_selects`.
    pub max_join_size: u64,
    /// Lines that SHOW WARNINGS keeps.
    pub max_error_count: u64,
    /// The mode of WEEK where none is given.
    pub default_week_format: u8,
    /// Bytes a statement may have; 0 is half of the server's limit.
    pub statement_memory_limit: u64,
    /// Offset from UTC in seconds, `None` for SYSTEM (UTC here).
    pub time_zone_offset_seconds: Option<i32>,
    /// `lc_time_names`.
    pub time_names: &'static TimeNames,
}

impl Settings {
    /// How texts become tokens.
    pub fn lexical_modes(&self) -> LexicalModes {
        let was_latin1 = self.client_charset == Charset::Latin1;
        LexicalModes { was_latin1, ..LexicalModes::of(self.sql_mode) }
    }

    /// What has a say in plans: the mode, and above its bits the collation of literals, whether the client
    /// writes in `latin1`, the names of days and months, and the digits of quotients.
    pub fn plan_modes(&self) -> u64 {
        let collation = u64::from(self.connection_collation.id()) << 40;
        let latin1 = u64::from(self.client_charset == Charset::Latin1) << 49;
        let names = self.time_names.number() << 50;
        let weeks = u64::from(self.default_week_format) << 61;
        self.sql_mode | collation | latin1 | names | u64::from(self.div_precision_increment) << 56 | weeks
    }
}

/// See the module's text.
pub struct SqlContext {
    /// The engine.
    pub database: untorn::asynchronous::Database,
    /// What only the server knows.
    pub facts: Rc<dyn ServerFacts>,
    /// CONNECTION_ID().
    pub connection_id: u32,
    kill: Arc<KillSwitch>,
    settings: Settings,
    /// Of the statement that runs, once it has asked.
    terms: Cell<Option<Terms>>,
    /// Memory of its statements.
    pub memory: Account,
    /// What its expressions cost.
    pub evaluation: Evaluation,
    sort_place: OnceCell<Place>,
    /// What EXPLAIN ANALYZE measures.
    pub measures: Measures,
    /// The statement has had the time it may take (`max_execution_time`).
    pub timed_out: Cell<bool>,
    /// What the statement has done with tables.
    pub handled: HandlerCounts,
    /// SLEEPs of the select list that were over before somebody ended one.
    pub(crate) sleeps: Cell<u32>,
    /// KILL QUERY or the time limit ended a SLEEP, and nothing else.
    sleep_cut: Cell<bool>,
    /// What is planned is held to ONLY_FULL_GROUP_BY or not, whatever the mode is by now: it is a statement
    /// that was prepared before.
    pub held_to_groups: Cell<Option<bool>>,
    current_database: RefCell<Option<Arc<str>>>,
    /// The session's temporary tables.
    pub temporary: TemporaryTables,
    user_variables: RefCell<HashMap<String, Value<'static>>>,
    /// Lines of SHOW WARNINGS.
    pub warnings: RefCell<Vec<(Level, SqlError)>>,
    /// How many there were, kept or not.
    pub warning_count: Cell<u64>,
    /// Of them those that were there when the statement began.
    warnings_before: Cell<u64>,
    statement_time: Cell<Option<DateTime>>,
    fixed_time: Cell<Option<f64>>,
    /// Of the prepared statement that is planned.
    pub parameters: Parameters,
    /// LAST_INSERT_ID().
    pub last_insert_id: Cell<u64>,
    /// What `LAST_INSERT_ID(expr)` said in this statement.
    pub said_insert_id: Cell<Option<u64>>,
    /// The first AUTO_INCREMENT value that the statement generated, else 0: LAST_INSERT_ID() of the next one.
    pub generated_insert_id: Cell<u64>,
    /// Warnings and errors of the statement before, for `@@warning_count` and `@@error_count`.
    counts_before: Cell<(u64, u64)>,
    /// `SET insert_id`: the next AUTO_INCREMENT value that is generated; 0: the table's own.
    pub insert_id: Cell<u64>,
    /// The statement changes tables in strict mode: a division by zero is its error.
    pub changes_strictly: Cell<bool>,
    /// The parameters of the statement are a client's, and not the literals of its text.
    pub sent_parameters: Cell<bool>,
    /// What was to be a warning while it did.
    refused: RefCell<Option<SqlError>>,
    /// ROW_COUNT().
    pub row_count: Cell<i64>,
    /// FOUND_ROWS().
    pub found_rows: Cell<u64>,
    random: Cell<u64>,
    /// Those of RAND(seed) in this statement.
    pub random_sequences: RandomSequences,
    /// Those of RAND() after `SET rand_seed1`.
    pub seeded_numbers: SeededNumbers,
    /// Patterns that this statement has compiled.
    patterns: Patterns,
    named_locks: Arc<NamedLocks>,
    /// Bytes that its named locks are charged.
    named_bytes: Cell<usize>,
    /// Named locks that were waited for: what GET_LOCK answers for them is known.
    waited_locks: RefCell<Vec<String>>,
}

/// Warnings that strict mode makes errors of.
const STRICT_ERRORS: &[u16] = &[
    errors::ALLOWED_PACKET_OVERFLOWED,
    errors::DATETIME_FUNCTION_OVERFLOW,
    errors::INVALID_ARGUMENT_FOR_LOGARITHM,
    errors::TRUNCATED_WRONG_VALUE,
    errors::WRONG_VALUE_FOR_TYPE,
];

/// Seconds east of UTC of a zone name (`SYSTEM` is UTC here).
pub fn zone_offset(name: &str) -> Option<i32> {
    if ["SYSTEM", "UTC", "GMT", "Etc/UTC"].iter().any(|zone| zone.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, rest) = match name.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<i32>().ok(),
        false => None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = sign * (hours.min(99) * 3600 + minutes * 60);
    (minutes < 60 && (-14 * 3600 + 60..=14 * 3600).contains(&seconds)).then_some(seconds)
}

impl SqlContext {
    /// Nothing has been executed in it yet.
    pub fn new(
        database: untorn::asynchronous::Database,
        facts: Rc<dyn ServerFacts>,
        connection: (u32, Arc<KillSwitch>),
        settings: Settings,
        memory: Account,
        slice: Arc<TimeSlice>,
    ) -> Self {
        let random = database.environment().random_u64();
        let named_locks = facts.named_locks();
        let (connection_id, kill) = connection;
        Self {
            database,
            facts,
            connection_id,
            kill,
            settings,
            terms: Cell::new(None),
            memory,
            evaluation: Evaluation::new(slice),
            sort_place: OnceCell::new(),
            measures: Measures::default(),
            timed_out: Cell::new(false),
            handled: HandlerCounts::default(),
            sleeps: Cell::new(0),
            sleep_cut: Cell::new(false),
            held_to_groups: Cell::new(None),
            current_database: RefCell::new(None),
            temporary: TemporaryTables::default(),
            user_variables: RefCell::new(HashMap::new()),
            warnings: RefCell::new(Vec::new()),
            warning_count: Cell::new(0),
            warnings_before: Cell::new(0),
            statement_time: Cell::new(None),
            fixed_time: Cell::new(None),
            parameters: Parameters::default(),
            last_insert_id: Cell::new(0),
            said_insert_id: Cell::new(None),
            generated_insert_id: Cell::new(0),
            counts_before: Cell::new((0, 0)),
            insert_id: Cell::new(0),
            changes_strictly: Cell::new(false),
            sent_parameters: Cell::new(false),
            refused: RefCell::default(),
            random_sequences: RandomSequences::default(),
            seeded_numbers: SeededNumbers::default(),
            patterns: Patterns::default(),
            row_count: Cell::new(0),
            found_rows: Cell::new(0),
            random: Cell::new(random | 1),
            named_bytes: Cell::new(0),
            waited_locks: RefCell::default(),
            named_locks,
        }
    }

    /// The system variables that SQL obeys.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The system variables have changed.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// A pattern, compiled unless this statement has compiled it before.
    ///
    /// # Errors
    /// What is wrong with it; memory.
    pub(crate) fn pattern(&self, pattern: &str, modes: Modes) -> Result<Rc<Regex>, SqlError> {
        self.patterns.compiled(pattern, modes, &self.memory)
    }

    /// What holds for this statement: asked for once.
    pub(crate) fn terms(&self) -> Terms {
        let terms = self.terms.get().unwrap_or_else(|| self.facts.terms());
        self.terms.set(Some(terms));
        terms
    }

    /// Forgets what belongs to a statement.
    pub fn begin_statement(&self) {
        self.statement_time.set(None);
        self.terms.set(None);
        self.timed_out.set(false);
        self.sleep_cut.set(false);
        self.held_to_groups.set(None);
        self.memory.set_limit(self.settings().statement_memory_limit);
        self.said_insert_id.set(None);
        if let id @ 1.. = self.generated_insert_id.take() {
            self.last_insert_id.set(id);
        }
        self.changes_strictly.set(false);
        self.sent_parameters.set(false);
        self.refused.replace(None);
        self.random_sequences.reset();
        self.patterns.reset(&self.memory);
        self.warnings_before.set(self.warning_count.get());
    }

    /// Whether a query may only name columns that its groups decide.
    pub fn is_held_to_groups(&self) -> bool {
        let mode = self.settings().sql_mode & sql_mode::ONLY_FULL_GROUP_BY != 0;
        self.held_to_groups.get().unwrap_or(mode)
    }

    /// Warnings of the statement that runs, and not of the one before, which some keep.
    pub fn warnings_raised(&self) -> u64 {
        self.warning_count.get().saturating_sub(self.warnings_before.get())
    }

    /// How many warnings there are, to forget those that come.
    pub(crate) fn warnings_so_far(&self) -> (u64, usize) {
        (self.warning_count.get(), self.warnings.borrow().len())
    }

    /// Forgets the warnings that have come since.
    pub(crate) fn forget_warnings_since(&self, (count, kept): (u64, usize)) {
        self.warning_count.set(count);
        self.warnings.borrow_mut().truncate(kept);
    }

    /// Forgets the last statement's warnings.
    pub fn clear_warnings(&self) {
        let errors = self.warnings.borrow().iter().filter(|(level, _)| *level == Level::Error).count();
        self.counts_before.set((self.warning_count.get(), errors as u64));
        if self.warning_count.get() != 0 {
            self.warnings.borrow_mut().clear();
            self.warning_count.set(0);
        }
        self.warnings_before.set(0);
    }

    /// Back to a fresh one (COM_RESET_CONNECTION), but for the settings.
    pub fn reset(&self) {
        self.user_variables.borrow_mut().clear();
        let _ = self.memory.keep(self.memory.kept() as usize, 0);
        self.named_bytes.set(0);
        self.named_locks.give_back_all(self.connection_id);
        self.clear_warnings();
        self.last_insert_id.set(0);
        self.insert_id.set(0);
        self.generated_insert_id.set(0);
        self.seeded_numbers.forget();
    }

    /// The statement's time in UTC: read once, so that NOW() is the same for all rows.
    pub fn now_utc(&self) -> DateTime {
        if let Some(now) = self.statement_time.get() {
            return now;
        }
        if let Some(seconds) = self.fixed_time.get() {
            let now = DateTime::from_unix(seconds as i64, (seconds.fract() * 1e6) as u32);
            self.statement_time.set(Some(now));
            return now;
        }
        let since = self.database.environment().unix_time();
        let now = DateTime::from_unix(since.as_secs() as i64, since.subsec_micros());
        self.statement_time.set(Some(now));
        now
    }

    /// `SET timestamp`: a fixed clock, in seconds since 1970; `None` for the real one.
    pub fn set_timestamp(&self, seconds: Option<f64>) {
        self.fixed_time.set(seconds.filter(|seconds| *seconds > 0.0));
        self.statement_time.set(None);
    }

    /// `@@timestamp`: the statement's time in seconds since 1970.
    pub fn timestamp(&self) -> f64 {
        let now = self.now_utc();
        now.to_unix() as f64 + f64::from(now.micros) / 1e6
    }

    /// The statement's time in the zone set.
    pub fn now_local(&self) -> DateTime {
        let now = self.now_utc();
        match self.time_zone_offset() {
            0 => now,
            offset => DateTime::from_unix(now.to_unix() + i64::from(offset), now.micros),
        }
    }

    /// When the statement began.
    pub fn statement_time(&self) -> StatementTime {
        StatementTime { utc: self.now_utc(), zone: self.time_zone_offset() }
    }

    /// Seconds east of UTC of the zone set.
    #[inline]
    pub fn time_zone_offset(&self) -> i32 {
        self.settings().time_zone_offset_seconds.unwrap_or(0)
    }

    /// DATABASE().
    pub fn current_database(&self) -> Option<Arc<str>> {
        self.current_database.borrow().clone()
    }

    /// Changes the current database.
    pub fn set_current_database(&self, name: Option<&str>) {
        *self.current_database.borrow_mut() = name.map(Arc::from);
    }

    /// `@name`, NULL when never set.
    pub fn user_variable<'a>(&self, name: &str) -> Value<'a> {
        self.user_variables.borrow().get(name).map_or(Value::Null, |value| value.clone().into_owned())
    }

    /// [`SqlContext::user_variable`] while an expression is evaluated: its copy is charged first.
    ///
    /// # Errors
    /// 1041: the memory is not available.
    pub(crate) fn user_variable_held<'a>(&self, name: &str) -> Result<Value<'a>, SqlError> {
        let variables = self.user_variables.borrow();
        let Some(value) = variables.get(name) else { return Ok(Value::Null) };
        self.hold(memory::weight(value))?;
        Ok(value.clone().into_owned())
    }

    /// Takes `@name` out.
    pub fn take_user_variable(&self, name: &str) -> Value<'static> {
        let Some(taken) = self.user_variables.borrow_mut().remove(name) else { return Value::Null };
        // Giving back always succeeds.
        let _ = self.memory.keep(name.len() + memory::weight(&taken), 0);
        taken
    }

    /// Sets `@name`.
    pub fn set_user_variable(&self, name: &str, value: Value<'static>) -> Result<(), SqlError> {
        let value = value.into_variable();
        let mut variables = self.user_variables.borrow_mut();
        let old = variables.get(name).map_or(0, |value| name.len() + memory::weight(value));
        self.memory.keep(old, name.len() + memory::weight(&value))?;
        variables.insert(name.to_owned(), value);
        Ok(())
    }

    /// Where sorts put what does not fit into memory (`tmpdir`).
    pub fn sort_place(&self) -> Place {
        let make = || {
            let storage = self.database.environment().storage().clone();
            Place::new(storage, &self.facts.temporary_directory())
        };
        self.sort_place.get_or_init(make).clone()
    }

    /// Bytes that a sort keeps in memory: no less than a temporary table may have.
    pub fn sort_memory(&self) -> usize {
        let settings = self.settings();
        self.within_limit(settings.sort_buffer_size.max(settings.tmp_table_size))
    }

    /// Bytes that groups, or the keys of rows that have been seen, keep in memory.
    pub fn temporary_memory(&self) -> usize {
        self.within_limit(self.settings().tmp_table_size)
    }

    /// A statement spills before its limit refuses it what it spills.
    fn within_limit(&self, bytes: u64) -> usize {
        usize::try_from(bytes.min(self.memory.limit() / 4)).unwrap_or(usize::MAX)
    }

    /// `@@name`.
    pub fn system_variable<'a>(&self, name: &str, scope: Option<ast::Scope>) -> Result<Value<'a>, SqlError> {
        match name {
            "last_insert_id" | "identity" => return Ok(Value::UInt(self.last_insert_id.get())),
            "insert_id" => return Ok(Value::UInt(self.insert_id.get())),
            "warning_count" => return Ok(Value::UInt(self.counts_before.get().0)),
            "error_count" => return Ok(Value::UInt(self.counts_before.get().1)),
            "timestamp" => return Ok(Value::Double(self.timestamp())),
            "character_set_database" | "collation_database" if scope != Some(ast::Scope::Global) => {
                let what =
                    if name == "collation_database" { "collation_server" } else { "character_set_server" };
                return Ok(match self.rule_of_current_database() {
                    Some(rule) if name == "collation_database" => Value::text(rule.name()),
                    Some(rule) => Value::text(rule.charset().name()),
                    None => self.facts.system_variable(what, scope)?,
                });
            }
            _ => {}
        }
        self.facts.system_variable(name, scope)
    }

    /// Names and values of the system variables, in the order of names: the global ones, or the session's.
    pub fn shown_variables(&self, global: bool) -> Vec<(&'static str, String)> {
        let mut variables = self.facts.variables(global);
        for (name, value) in variables.iter_mut().filter(|_| !global) {
            if let "character_set_database" | "collation_database" = *name
                && let Ok(current) = self.system_variable(name, None)
            {
                *value = String::from_utf8_lossy(&current.to_text()).into_owned();
            }
        }
        variables
    }

    /// The collation that new tables of the current database get.
    fn rule_of_current_database(&self) -> Option<Collation> {
        Some(self.database.database(&self.current_database()?)?.collation)
    }

    fn push(&self, level: Level, error: SqlError) {
        self.warning_count.set(self.warning_count.get() + 1);
        let mut warnings = self.warnings.borrow_mut();
        if (warnings.len() as u64) < self.settings.max_error_count {
            warnings.push((level, error));
        }
    }

    /// Adds a warning. In a statement that changes tables in strict mode most warnings are errors: the first
    /// of them is raised by [`SqlContext::check_strictly`].
    pub fn warn(&self, error: SqlError) {
        if self.changes_strictly.get() && STRICT_ERRORS.contains(&error.code) {
            self.refused.borrow_mut().get_or_insert(error);
            return;
        }
        self.push(Level::Warning, error);
    }

    /// Keeps an error for SHOW WARNINGS that does not stop the statement.
    pub fn warn_of_error(&self, error: SqlError) {
        self.push(Level::Error, error);
    }

    /// The error that strict mode makes of a warning, when what warned has been evaluated.
    #[inline]
    pub fn check_strictly(&self) -> Result<(), SqlError> {
        if self.changes_strictly.get() { self.refused.take().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Adds a note.
    pub fn note(&self, error: SqlError) {
        if self.settings().sql_notes {
            self.push(Level::Note, error);
        }
    }

    /// Adds an error.
    pub fn note_error(&self, error: &SqlError) {
        self.push(Level::Error, error.clone());
    }

    /// Warnings of the last statement, for the protocol's 16 bits.
    pub fn warnings_u16(&self) -> u16 {
        self.warning_count.get().min(u64::from(u16::MAX)) as u16
    }

    /// Whether values that do not fit are errors.
    pub fn is_strict(&self) -> bool {
        self.settings().sql_mode & (sql_mode::STRICT_TRANS_TABLES | sql_mode::STRICT_ALL_TABLES) != 0
    }

    /// Whether the SQL mode refuses this moment of a date with zero parts: with a time other than midnight it
    /// is not the zero one.
    pub fn refuses_zero_moments(&self, moment: DateTime) -> bool {
        let is_zero = moment == DateTime::default();
        let flag = if is_zero { sql_mode::NO_ZERO_DATE } else { sql_mode::NO_ZERO_IN_DATE };
        self.settings().sql_mode & flag != 0
    }

    /// Whether the SQL mode refuses this date with zero parts.
    pub fn refuses_zero_dates(&self, date: Date) -> bool {
        self.refuses_zero_moments(DateTime { date, ..DateTime::default() })
    }

    /// The day of the session's clock, and how the session reads moments.
    pub fn today(&self) -> Today {
        let any_day = self.settings().sql_mode & sql_mode::ALLOW_INVALID_DATES != 0;
        Today { date: self.now_local().date, zone: Some(self.time_zone_offset()), any_day }
    }

    /// xorshift64*.
    pub fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Error 1317 once somebody killed the statement or the connection.
    #[inline]
    pub fn check_killed(&self) -> Result<(), SqlError> {
        if self.kill.level() != Kill::No {
            return Err(errors::error(errors::QUERY_INTERRUPTED, &[]));
        }
        if self.timed_out.get() {
            return Err(errors::error(errors::QUERY_TIMEOUT, &[]));
        }
        Ok(())
    }

    /// What ended a SLEEP ends that alone, unless the connection is to end. Whether it is so.
    pub(crate) fn end_sleep(&self) -> bool {
        if self.kill.level() == Kill::Connection {
            return false;
        }
        self.kill.clear_query();
        self.timed_out.set(false);
        self.sleep_cut.set(true);
        true
    }

    /// Whether the next SLEEP of the select list was ended, or never begun because one before it was.
    pub(crate) fn was_sleep_cut(&self) -> bool {
        let whole = self.sleeps.get();
        self.sleeps.set(whole.saturating_sub(1));
        whole == 0 && self.sleep_cut.get()
    }

    /// The name of a lock as it is compared.
    ///
    /// # Errors
    /// 3057 for NULL and an empty name, 4163 for one of more than 64 characters.
    pub(crate) fn lock_name(&self, name: &Value<'_>) -> Result<String, SqlError> {
        named_locks::folded((!name.is_null()).then(|| name.to_string_lossy()).as_deref())
    }

    /// Takes a named lock, if it is free. With `waits` an executor waits for the event otherwise.
    ///
    /// # Errors
    /// Memory; a circle of connections that wait.
    pub(crate) fn take_lock(&self, name: &str, waits: bool) -> Result<Option<Event>, SqlError> {
        let bytes = LOCK_BYTES + name.len();
        self.memory.keep(0, bytes)?;
        let taken = self.named_locks.take(name, self.connection_id, waits);
        if matches!(taken, Taken::Yes) {
            self.named_bytes.set(self.named_bytes.get() + bytes);
        } else {
            let _ = self.memory.keep(bytes, 0);
        }
        match taken {
            Taken::Yes => Ok(None),
            Taken::Held(freed) => Ok(Some(freed)),
            Taken::Deadlock => Err(errors::error(errors::USER_LOCK_DEADLOCK, &[])),
        }
    }

    /// The lock that an executor has waited for is the connection's; GET_LOCK is about to answer that.
    pub(crate) fn lock_was_waited_for(&self, name: String) {
        self.waited_locks.borrow_mut().push(name);
    }

    /// The connection has waited long enough for a named lock.
    pub(crate) fn stop_waiting_for_lock(&self) {
        self.named_locks.stop_waiting(self.connection_id);
    }

    /// GET_LOCK, for which the executor has waited where it could.
    pub(crate) fn get_lock(&self, name: &Value<'_>) -> Result<bool, SqlError> {
        let name = self.lock_name(name)?;
        let mut waited = self.waited_locks.borrow_mut();
        if let Some(at) = waited.iter().position(|other| *other == name) {
            waited.remove(at);
            return Ok(true);
        }
        drop(waited);
        Ok(self.take_lock(&name, false)?.is_none())
    }

    /// RELEASE_LOCK: `None` when nobody has the lock.
    pub(crate) fn release_lock(&self, name: &Value<'_>) -> Result<Option<bool>, SqlError> {
        let name = self.lock_name(name)?;
        Ok(match self.named_locks.give_back(&name, self.connection_id) {
            GivenBack::Yes => {
                self.forget_lock_bytes(LOCK_BYTES + name.len());
                Some(true)
            }
            GivenBack::Foreign => Some(false),
            GivenBack::Unknown => None,
        })
    }

    /// RELEASE_ALL_LOCKS: how many there were.
    pub(crate) fn release_all_locks(&self) -> u64 {
        self.forget_lock_bytes(self.named_bytes.get());
        self.named_locks.give_back_all(self.connection_id)
    }

    /// IS_USED_LOCK.
    pub(crate) fn lock_owner(&self, name: &Value<'_>) -> Result<Option<u32>, SqlError> {
        Ok(self.named_locks.owner(&self.lock_name(name)?))
    }

    fn forget_lock_bytes(&self, bytes: usize) {
        let bytes = bytes.min(self.named_bytes.get());
        self.named_bytes.set(self.named_bytes.get() - bytes);
        // Giving back is never refused.
        let _ = self.memory.keep(bytes, 0);
    }
}

impl Drop for SqlContext {
    fn drop(&mut self) {
        self.named_locks.give_back_all(self.connection_id);
    }
}
