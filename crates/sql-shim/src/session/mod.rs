//! One client's session: statements in, answers to the sink.
//!
//! A statement's life: it is looked up in the statement cache (text) or comes planned (prepared), its tables
//! are put in use, it runs inside the open transaction or one of its own, and its end is decided *before* the
//! client hears of success: an autocommitted change is durable first. A failed statement undoes its own
//! changes; a deadlock has undone the whole transaction. COM_QUERY and COM_STMT_EXECUTE enter in `serve.rs`.

mod alter;
mod backup;
pub mod cache;
mod counters;
pub mod courtesy;
mod definition;
mod engine_settings;
mod foreign_keys;
mod into;
mod kept_expressions;
mod large_text;
mod load;
mod locks;
mod measure;
mod private_tables;
mod privileges;
mod resumable;
mod serve;
mod set;
mod show;
pub mod state;
mod table_use;
#[cfg(test)]
mod tests;
mod text;
mod utility;
mod views;
mod watch;

use std::borrow::Cow;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sql::ast::Statement;
use sql::discard::Elsewhere;
use sql::errors;
use sql::exec::insert::Changed;
use sql::exec::{Executor, Target};
use sql::expr::types::Type;
use sql::failure::Failure;
use sql::lexer::LexicalModes;
use sql::memory::StatementCharge;
use sql::parser;
use sql::plan::Plan;
use sql::result::{self, Completion, ResultColumns, ResultSink, SqlError, kind, status_flag};
use sql::sql_mode;
use sql::value::{Collation, Value, decimal};
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::Durability;
use untorn::types;

use crate::server::files::FileDirectory;
use crate::server::panics::CountedStatement;
use crate::server::read_lock::{ChangeMark, ReadLockHold};
use crate::server::registry::{Connection, Server};
use crate::server::runtime::{self, ListenOptions, Running};
use crate::service::{Param, Prepared, SessionFactory, SessionService};
use crate::statements::{self, digests::DigestRow};
use crate::variables;
use cache::StatementCache;
use courtesy::{Courtesy, courteous};
use locks::LockedTable;
use measure::Measured;
use private_tables::PrivateDatabases;
use state::SessionState;
use watch::{Ended, Watch};

/// Makes sessions over an open database.
pub struct Sessions {
    server: Arc<Server>,
    database: Database,
}

impl Sessions {
    /// Sessions of `server` over `database`.
    pub fn new(server: Arc<Server>, database: Database) -> Sessions {
        engine_settings::connect(&server, &database);
        statements::connect(&server);
        Sessions { server, database }
    }

    /// [`runtime::start`] with these sessions. It is compiled once, with this crate, and not with each
    /// program that serves them.
    ///
    /// # Errors
    /// An address or a socket that cannot be bound.
    pub fn serve(self: &Arc<Self>, options: &ListenOptions) -> io::Result<Running> {
        runtime::start(options, &self.server, self)
    }
}

impl SessionFactory for Sessions {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Session {
        Session::new(self.server.clone(), connection.clone(), self.database.clone())
    }
}

/// A planned statement with what it was planned for.
pub struct PlannedStatement {
    plan: Arc<Elsewhere<Plan>>,
    version: u64,
    sql: Arc<[u8]>,
    database: Option<Arc<str>>,
    /// Where its runs are counted.
    digest: Option<Arc<DigestRow>>,
    /// Charged until the client closes it.
    _charge: Arc<StatementCharge>,
}

/// How often a statement is planned again because its tables have changed in between. Each time that other
/// has got something done.
const REPLANS_MAX: u32 = 100;

/// A statement of PREPARE.
struct NamedStatement {
    text: Vec<u8>,
    /// The current database when it was prepared: it stays the statement's.
    database: Option<Arc<str>>,
    /// It counts like one of the protocol's.
    _counted: CountedStatement,
}

/// A session.
pub struct Session {
    /// What expressions may look at. Nobody shares it but a plan that is being made.
    pub state: Rc<SessionState>,
    transaction: Transaction,
    cache: StatementCache,
    /// Between BEGIN and COMMIT.
    explicit: bool,
    /// The open transaction is READ ONLY.
    read_only: bool,
    /// SET TRANSACTION without scope: for the next transaction only.
    next_isolation: Option<variables::Isolation>,
    next_read_only: Option<bool>,
    /// Statements of PREPARE.
    named_statements: std::collections::HashMap<String, NamedStatement>,
    /// LOCK TABLES.
    table_locks: Option<Vec<LockedTable>>,
    /// FLUSH TABLES WITH READ LOCK.
    read_lock: Option<ReadLockHold>,
    change_mark: ChangeMark,
    /// FLUSH TABLES … FOR EXPORT.
    export_holds: Vec<untorn::export::ExportHold>,
    courtesy: Arc<Courtesy>,
    /// Databases that hold temporary tables.
    private: PrivateDatabases,
    measured: Measured,
}

fn isolation(level: variables::Isolation) -> untorn::engine::Isolation {
    match level {
        variables::Isolation::ReadUncommitted => untorn::engine::Isolation::ReadUncommitted,
        variables::Isolation::ReadCommitted => untorn::engine::Isolation::ReadCommitted,
        variables::Isolation::RepeatableRead => untorn::engine::Isolation::RepeatableRead,
        variables::Isolation::Serializable => untorn::engine::Isolation::Serializable,
    }
}

/// How a statement ended well.
enum Outcome {
    /// Rows have been sent; their end has not.
    Rows,
    /// No rows.
    Done(Changed),
    /// The answer has been given whole.
    Answered,
}

impl Session {
    /// A fresh session.
    pub fn new(server: Arc<Server>, connection: Arc<Connection>, database: Database) -> Session {
        let mut transaction = database.transaction();
        transaction.engine_mut().set_tag(u64::from(connection.id));
        let change_mark = ChangeMark::new(server.read_lock.clone(), connection.clone());
        let slice = transaction.engine().slice().clone();
        let state = Rc::new(SessionState::new(server, connection, database, slice));
        Session {
            state,
            transaction,
            cache: StatementCache::default(),
            explicit: false,
            read_only: false,
            next_isolation: None,
            next_read_only: None,
            named_statements: Default::default(),
            table_locks: None,
            read_lock: None,
            change_mark,
            export_holds: Vec::new(),
            courtesy: Arc::default(),
            private: PrivateDatabases::default(),
            measured: Measured::default(),
        }
    }

    fn modes(&self) -> LexicalModes {
        let mode = self.state.settings().sql.sql_mode;
        LexicalModes {
            ansi_quotes: mode & sql_mode::ANSI_QUOTES != 0,
            no_backslash_escapes: mode & sql_mode::NO_BACKSLASH_ESCAPES != 0,
            pipes_as_concat: mode & sql_mode::PIPES_AS_CONCAT != 0,
            high_not_precedence: mode & sql_mode::HIGH_NOT_PRECEDENCE != 0,
        }
    }

    fn durability(&self) -> Durability {
        match self.state.server.variables.flush_log_at_trx_commit() {
            0 => Durability::NoSync,
            2 => Durability::Write,
            _ => Durability::Sync,
        }
    }

    fn in_transaction(&self) -> bool {
        self.explicit || !self.state.settings().autocommit
    }

    fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.state.settings().lock_wait_timeout_seconds)
    }

    /// Starts the transaction that the next statement runs in, if it is not open.
    fn ensure_transaction(&mut self) {
        let wait = Duration::from_secs(self.state.settings().innodb_lock_wait_timeout_seconds);
        self.transaction.set_foreign_key_checks(self.state.settings().foreign_key_checks);
        if !self.transaction.is_active() {
            let level = self.next_isolation.unwrap_or(self.state.settings().isolation);
            let in_transaction = self.in_transaction();
            let rows = self.transaction.engine_mut();
            rows.set_isolation(isolation(level));
            rows.set_lock_wait_timeout(wait);
            if in_transaction {
                self.next_isolation = None;
                self.read_only = self.next_read_only.take().unwrap_or(self.state.settings().read_only);
                self.transaction.begin();
            }
        } else {
            self.transaction.engine_mut().set_lock_wait_timeout(wait);
        }
    }

    /// Commits what is open.
    async fn commit(&mut self) -> Result<(), Failure> {
        self.explicit = false;
        self.read_only = false;
        let durability = self.durability();
        let committed = self.transaction.commit(durability).await;
        if committed.is_err() && (self.transaction.engine().has_log() || self.transaction.is_active()) {
            // The client is told that it failed: the next statement must not commit it.
            if let Err(error) = self.transaction.rollback().await {
                tracing::error!(%error, "cannot undo a transaction whose commit failed; it is abandoned");
                self.abandon_transaction();
            }
        }
        Ok(committed?)
    }

    /// To change what no plan may see changing.
    fn state_mut(&mut self) -> &mut SessionState {
        let Some(state) = Rc::get_mut(&mut self.state) else {
            unreachable!("a plan is being made beside another statement")
        };
        state
    }

    /// Rolls back what is open.
    async fn roll_back(&mut self) -> Result<(), Failure> {
        self.explicit = false;
        self.read_only = false;
        self.transaction.rollback().await?;
        Ok(())
    }

    /// Completion with this session's flags.
    fn completion<'c>(&self, changed: &'c Changed, more: bool) -> Completion<'c> {
        Completion {
            affected: changed.affected,
            last_insert_id: changed.insert_id,
            warnings: self.state.warnings_u16(),
            status: self.flags(),
            info: Cow::Borrowed(&changed.info),
            more_results: more,
        }
    }

    fn flags(&self) -> u16 {
        let mut flags = 0;
        if self.state.settings().autocommit {
            flags |= status_flag::AUTOCOMMIT;
        }
        if self.explicit || (!self.state.settings().autocommit && self.transaction.is_active()) {
            flags |= status_flag::IN_TRANS;
            if self.read_only {
                flags |= status_flag::IN_TRANS_READONLY;
            }
        }
        if self.state.settings().sql.sql_mode & sql_mode::NO_BACKSLASH_ESCAPES != 0 {
            flags |= status_flag::NO_BACKSLASH_ESCAPES;
        }
        flags
    }

    /// Executes a planned statement and answers it.
    async fn run<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
        more: bool,
    ) -> Result<(), Failure> {
        self.count(counters::of_plan(plan));
        self.measured.performed.reads = plan.reads();
        self.transaction.engine_mut().clear_kill();
        let held = self.state.held();
        let outcome = match plan {
            Plan::Command(statement) => {
                let watch = Watch::new(&self.state, &self.transaction, None);
                watch.over(pin!(self.command(statement, out, more))).await.0
            }
            plan => self.run_data(plan, parameters, out).await,
        };
        self.state.release_to(held);
        match outcome? {
            Outcome::Rows => {
                self.measured.performed.sent = self.state.found_rows.get();
                out.rows_end(&self.completion(&Changed::default(), more));
            }
            Outcome::Done(changed) => {
                self.measured.performed.affected = changed.affected;
                self.state.row_count.set(changed.affected as i64);
                out.ok(&self.completion(&changed, more));
            }
            Outcome::Answered => {}
        }
        Ok(())
    }

    /// SELECT, INSERT, UPDATE, DELETE: inside of the transaction.
    async fn run_data<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let writes = !matches!(plan, Plan::Select(_));
        self.check_table_locks(plan)?;
        self.ensure_transaction();
        if writes && self.read_only && self.in_transaction() {
            return Err(errors::error(errors::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[]).into());
        }
        if !writes {
            return self.run_in_transaction(plan, parameters, out, false).await;
        }
        self.begin_change().await?;
        let result = self.run_in_transaction(plan, parameters, out, true).await;
        self.end_change();
        if matches!(&result, Err(failure) if !matches!(failure, Failure::Gone(_))) {
            // The client of a LOAD hears of an error when it has sent everything, and not before. It may take
            // its time: by now it keeps nobody waiting.
            out.skip_file().await?;
        }
        result
    }

    async fn run_in_transaction<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
        writes: bool,
    ) -> Result<Outcome, Failure> {
        let stays_open = self.in_transaction();
        let mark = (stays_open && writes).then(|| self.transaction.statement_mark());
        let result = match self.use_tables(plan).await {
            Ok(()) => self.watched(plan, parameters, out).await,
            Err(failure) => Err(failure),
        };
        match result {
            Ok(outcome) => {
                if stays_open {
                    self.transaction.engine_mut().end_statement();
                } else {
                    self.commit().await?;
                }
                Ok(outcome)
            }
            Err(failure) => {
                let told = matches!(failure, Failure::RolledBack(_));
                let gone = !told && stays_open && self.transaction.engine().is_rolled_back();
                self.undo(&failure, stays_open, mark).await;
                // A deadlock whose rollback met an error of its own: the client must hear that nothing is
                // left.
                Err(if gone {
                    Failure::RolledBack(errors::error(errors::LOCK_DEADLOCK, &[]))
                } else {
                    failure
                })
            }
        }
    }

    async fn undo(&mut self, failure: &Failure, stays_open: bool, mark: Option<untorn::engine::UndoMark>) {
        let result = match failure {
            _ if matches!(failure, Failure::RolledBack(_)) || self.transaction.engine().is_rolled_back() => {
                self.explicit = false;
                // Of a row lock's deadlock nothing is left to undo; of a metadata lock's everything.
                self.transaction.rollback().await
            }
            _ if !stays_open => self.transaction.rollback().await,
            _ => {
                let result = match mark {
                    Some(mark) => self.transaction.rollback_to(mark).await,
                    None => Ok(()),
                };
                self.transaction.engine_mut().end_statement();
                result
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, "cannot undo a failed statement; its transaction is abandoned");
            self.abandon_transaction();
        }
    }

    /// Leaves a transaction that could not be taken back to the engine, which tries in the background and
    /// keeps its locks until then. Going on with it would commit half of a statement.
    fn abandon_transaction(&mut self) {
        self.explicit = false;
        self.read_only = false;
        // Tables held by LOCK TABLES go with it: the rollback still changes them.
        self.table_locks = None;
        self.transaction = self.state.database.transaction();
        self.state.evaluation.set_slice(self.transaction.engine().slice());
        self.transaction.engine_mut().set_tag(u64::from(self.state.connection.id));
    }

    /// Runs a plan while looking for a kill of this connection and at the time a SELECT may take.
    async fn watched<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let limit = if matches!(plan, Plan::Select(_)) { self.time_limit() } else { None };
        let watch = Watch::new(&self.state, &self.transaction, limit);
        self.state
            .evaluation
            .set_deadline(limit.map(|limit| self.state.database.environment().now() + limit));
        let (state, transaction) = (&self.state, &mut self.transaction);
        let mut executor = Executor::new(state, transaction, parameters);
        let timed_out = &self.state.timed_out;
        let files = self.state.server.files.get();
        let work = pin!(execute(&mut executor, plan, files, out));
        let (result, ended) = watch.over_until(work, || timed_out.set(true)).await;
        self.state.evaluation.set_deadline(None);
        match result {
            Err(Failure::Sql(error))
                if error.code == errors::QUERY_INTERRUPTED && ended == Ended::TimedOut =>
            {
                Err(errors::error(errors::QUERY_TIMEOUT, &[]).into())
            }
            result => result,
        }
    }

    /// How long a SELECT may take: `max_execution_time`.
    fn time_limit(&self) -> Option<Duration> {
        let limit_ms = self.state.settings().max_execution_time_ms;
        (limit_ms > 0).then(|| Duration::from_millis(limit_ms))
    }

    /// Answers a failure. A client that is gone is the caller's business.
    fn answer_failure<S: ResultSink>(&mut self, failure: Failure, out: &mut S) -> io::Result<()> {
        let error = match failure {
            Failure::Gone(error) => return Err(error),
            failure => failure.into_error(),
        };
        self.state.note_error(&error);
        self.state.row_count.set(-1);
        out.error(&error);
        Ok(())
    }
}

fn keeps_warnings(plan: &Plan) -> bool {
    matches!(plan, Plan::Command(Statement::Show(show)) if matches!(
        show.kind,
        sql::ast::ShowKind::Warnings { .. } | sql::ast::ShowKind::Errors { .. }
    ))
}

/// Runs a plan of data.
async fn execute<S: ResultSink>(
    executor: &mut Executor<'_>,
    plan: &Plan,
    files: Option<&FileDirectory>,
    out: &mut S,
) -> Result<Outcome, Failure> {
    match plan {
        Plan::Select(select) if !select.into.is_client() => {
            into::run(executor, select, files).await.map(Outcome::Done)
        }
        Plan::Select(select) => {
            out.columns(&select.columns);
            let sent = executor.select(select, &mut Target::Sink(out)).await?;
            executor.state.found_rows.set(sent);
            Ok(Outcome::Rows)
        }
        Plan::Insert(insert) => executor.insert(insert).await.map(Outcome::Done),
        Plan::Load(plan) => load::run(executor, plan, files, out).await.map(Outcome::Done),
        Plan::Update(update) => executor.update(update).await.map(Outcome::Done),
        Plan::Delete(delete) => executor.delete(delete).await.map(Outcome::Done),
        Plan::JoinedChange(change) => executor.joined_change(change).await.map(Outcome::Done),
        Plan::Command(_) => Ok(Outcome::Answered),
    }
}

/// A parameter of the protocol as a value.
fn value_of<'p>(param: &Param<'p>) -> Value<'p> {
    let date = |date: result::Date| types::Date { year: date.year, month: date.month, day: date.day };
    match *param {
        Param::Null => Value::Null,
        Param::Int(v) => Value::Int(v),
        Param::UInt(v) => Value::UInt(v),
        Param::Float(v) => Value::Float(v),
        Param::Double(v) => Value::Double(v),
        Param::Decimal(text) => {
            std::str::from_utf8(text).ok().and_then(decimal::parse).map_or(Value::Null, Value::Decimal)
        }
        Param::Bytes { value, binary } => {
            let rule = if binary { Collation::Binary } else { Collation::Utf8mb4GeneralCi };
            Value::Text(Cow::Borrowed(value), rule)
        }
        Param::Date(v) => Value::Date(date(v)),
        Param::DateTime(v) => Value::DateTime(
            types::DateTime {
                date: types::Date { year: v.year, month: v.month, day: v.day },
                hour: v.hour,
                minute: v.minute,
                second: v.second,
                micros: v.microsecond,
            },
            if v.microsecond > 0 { 6 } else { 0 },
        ),
        Param::Time(v) => Value::Time(
            types::Time {
                negative: v.negative,
                hours: v.hours.min(838) as u16,
                minutes: v.minutes,
                seconds: v.seconds,
                micros: v.microseconds,
            },
            if v.microseconds > 0 { 6 } else { 0 },
        ),
    }
}

impl SessionService for Session {
    type Plan = PlannedStatement;

    async fn query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let courtesy = self.courtesy.clone();
        courteous(&courtesy, pin!(self.run_query(sql, out))).await
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<PlannedStatement>, SqlError> {
        self.state.connection.clear_query_kill();
        self.state.begin_statement();
        self.state.clear_warnings();
        let courtesy = self.courtesy.clone();
        let result = courteous(&courtesy, pin!(self.prepare_text(sql))).await.map_err(Failure::into_error);
        if let Err(error) = &result {
            self.state.note_error(error);
        }
        result
    }

    async fn execute(
        &mut self,
        statement: &mut Prepared<PlannedStatement>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        let courtesy = self.courtesy.clone();
        courteous(&courtesy, pin!(self.run_prepared(statement, params, out))).await
    }

    async fn change_database(&mut self, name: &[u8]) -> Result<(), SqlError> {
        self.use_database(&String::from_utf8_lossy(name))
    }

    async fn field_list(&mut self, table: &[u8], pattern: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        self.field_definitions(&String::from_utf8_lossy(table), pattern)
    }

    async fn reset(&mut self) {
        let courtesy = self.courtesy.clone();
        courteous(&courtesy, pin!(self.end())).await;
        self.state_mut().reset();
        self.named_statements.clear();
    }

    async fn close(&mut self) {
        let courtesy = self.courtesy.clone();
        courteous(&courtesy, pin!(self.end())).await;
    }

    fn user_changed(&mut self) {
        self.state.forget_rights();
        self.cache = StatementCache::default();
    }

    fn status_flags(&self) -> u16 {
        self.flags()
    }

    fn warnings(&self) -> u16 {
        self.state.warnings_u16()
    }

    fn idle_timeout_seconds(&self) -> u64 {
        let settings = self.state.settings();
        match self.state.connection.client_flags().interactive {
            true => settings.interactive_timeout_seconds,
            false => settings.wait_timeout_seconds,
        }
    }
}

impl Session {
    /// Rolls back and gives up everything that is held.
    async fn end(&mut self) {
        self.explicit = false;
        self.read_only = false;
        self.next_isolation = None;
        self.next_read_only = None;
        // Before the locks that keep others from the tables.
        if let Err(error) = self.transaction.rollback().await {
            tracing::error!(%error, "cannot roll back at the end of a session; the transaction is abandoned");
            self.abandon_transaction();
        }
        self.release_table_locks();
        self.read_lock = None;
        self.export_holds.clear();
        self.end_private().await;
    }

    /// Prepares a text as it was when this database was the current one.
    async fn prepare_in(
        &mut self,
        database: Option<Arc<str>>,
        sql: &[u8],
    ) -> Result<Prepared<PlannedStatement>, Failure> {
        let current = self.state.current_database();
        if database == current {
            return self.prepare_text(sql).await;
        }
        self.state.set_current_database(database.as_deref());
        let prepared = self.prepare_text(sql).await;
        self.state.set_current_database(current.as_deref());
        prepared
    }

    async fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared<PlannedStatement>, Failure> {
        let sql = parser::trimmed(sql);
        let modes = self.modes();
        let charge = self.charge_kept_text(sql).await?;
        let parsed = self.parse_text(sql, modes, Some(&charge)).await?;
        if !parser::is_blank(sql.get(parsed.consumed..).unwrap_or_default(), modes) {
            return Err(errors::syntax(sql.get(parsed.consumed..).unwrap_or_default(), 1).into());
        }
        // They would run each other, and themselves, without end.
        if matches!(
            parsed.statement,
            Statement::Prepare { .. }
                | Statement::Execute { .. }
                | Statement::Deallocate(_)
                | Statement::LoadData(_)
        ) {
            return Err(errors::error(errors::UNSUPPORTED_PS, &[]).into());
        }
        let version = self.plan_version();
        let plan = self.plan_text(parsed.statement, sql.len()).await?;
        let columns = match &*plan {
            Plan::Select(select) if select.into.is_client() => select.columns.clone(),
            _ => ResultColumns::new(Vec::new()),
        };
        let parameter = Type { kind: kind::VAR_STRING, ..Type::text(0) }.meta("?");
        let params = ResultColumns::new(vec![parameter; usize::from(parsed.parameters)]);
        let sql: Arc<[u8]> = sql.into();
        Ok(Prepared {
            sql: sql.clone(),
            params,
            columns,
            plan: PlannedStatement {
                plan: Arc::new(plan),
                version,
                sql,
                database: self.state.current_database(),
                digest: None,
                _charge: charge,
            },
        })
    }
}
