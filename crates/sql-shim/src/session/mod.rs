//! One client's session: statements in, answers to the sink.
//!
//! A statement's life: its plan is found or made in the plan cache (`text.rs`, `plan_cache.rs`), made for
//! this once (`planning.rs`), or comes with it (`prepared.rs`). It runs (`run.rs`) inside the open
//! transaction or one of its own (`in_transaction.rs`), its tables in use (`metadata_locks.rs`), by the
//! executor (`execute.rs`). Its end is decided *before* the client hears of success: an autocommitted change
//! is durable first. A failed statement undoes its own changes; a deadlock has undone the whole transaction.
//! COM_QUERY enters in `serve.rs`, COM_STMT_EXECUTE in `prepared.rs`.

mod account_limits;
mod accounts;
mod alter;
mod backup;
mod com_counters;
mod commands;
mod definers;
mod definition;
mod diagnostics;
mod duplicate_members;
mod engine_settings;
mod execute;
mod foreign_keys;
mod functional_keys;
mod handler;
mod in_transaction;
mod into;
mod large_text;
mod load_data_source;
mod maintenance;
mod metadata_locks;
pub mod plan_cache;
mod planning;
mod prepared;
mod privileges;
mod resumable;
mod roles;
mod run;
mod serve;
mod set;
mod show;
pub mod state;
mod statement_stats;
mod stored_expressions;
mod table_locks;
mod temporary_tables;
#[cfg(test)]
mod tests;
mod text;
mod tracking;
mod transaction;
mod views;
mod watch;
mod xa;
pub mod yielding;

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::result::{ResultColumns, ResultSink, SqlError};
use untorn::asynchronous::{Database, Transaction};
use untorn::types::Charset;

use crate::server::read_lock::{ChangeMark, ReadLockHold};
use crate::server::registry::Connection;
use crate::server::runtime::{self, ListenOptions, Running};
use crate::server::shared::Server;
use crate::session_interface::{Param, Prepared, SessionFactory, SessionService};
use crate::variables;
use plan_cache::PlanCache;
use prepared::NamedStatement;
use state::SessionState;
use statement_stats::CurrentStatement;
use table_locks::LockedTable;
use temporary_tables::PrivateDatabases;
use tracking::Tracker;
use xa::XaTransaction;
use yielding::{YieldState, run_yielding};

pub use prepared::PlannedStatement;

/// Makes sessions over an open database.
pub struct Sessions {
    server: Arc<Server>,
    database: Database,
}

impl Sessions {
    /// Sessions of `server` over `database`.
    pub fn new(server: Arc<Server>, database: Database) -> Sessions {
        engine_settings::connect(&server, &database);
        crate::statement_stats::connect(&server);
        crate::auth::roles::connect(&server);
        crate::auth::password_rules::connect(&server);
        let connections = Arc::downgrade(&server);
        database.set_statement_source(move |session| {
            let id = u32::try_from(session).ok()?;
            let connection = connections.upgrade()?.connections.get(id)?;
            connection.with_activity(|now| {
                let statement = now.statement();
                (!statement.is_empty()).then(|| String::from_utf8_lossy(&statement).into_owned())
            })
        });
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

/// How often a statement is planned again because its tables have changed in between. Each time that other
/// has got something done.
const REPLANS_MAX: u32 = 100;

/// A session.
pub struct Session {
    /// What expressions may look at. Nobody shares it but a plan that is being made.
    pub state: Rc<SessionState>,
    transaction: Transaction,
    cache: PlanCache,
    /// Between BEGIN and COMMIT.
    explicit: bool,
    /// The open transaction is an XA transaction; it is `explicit`, too.
    xa: Option<XaTransaction>,
    /// The open transaction is READ ONLY.
    read_only: bool,
    /// SET TRANSACTION without scope: for the next transaction only.
    next_isolation: Option<variables::Isolation>,
    next_read_only: Option<bool>,
    /// Statements of PREPARE.
    named_statements: std::collections::HashMap<String, NamedStatement>,
    /// HANDLER.
    handlers: handler::Handlers,
    /// LOCK TABLES.
    table_locks: Option<Vec<LockedTable>>,
    /// FLUSH TABLES WITH READ LOCK.
    read_lock: Option<ReadLockHold>,
    change_mark: ChangeMark,
    /// FLUSH TABLES … FOR EXPORT.
    export_holds: Vec<untorn::export::ExportHold>,
    yield_state: Arc<YieldState>,
    /// Databases that hold temporary tables.
    private: PrivateDatabases,
    current: CurrentStatement,
    tracker: Tracker,
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
        transaction.set_session(u64::from(connection.id));
        let change_mark = ChangeMark::new(server.read_lock.clone(), connection.clone());
        let slice = transaction.engine().slice().clone();
        let state = Rc::new(SessionState::new(server, connection, database, slice));
        let mut session = Session {
            state,
            transaction,
            cache: PlanCache::default(),
            explicit: false,
            xa: None,
            read_only: false,
            next_isolation: None,
            next_read_only: None,
            named_statements: Default::default(),
            handlers: handler::Handlers::new(),
            table_locks: None,
            read_lock: None,
            change_mark,
            export_holds: Vec::new(),
            yield_state: Arc::default(),
            private: PrivateDatabases::default(),
            current: CurrentStatement::default(),
            tracker: Tracker::default(),
        };
        session.obey_handshake();
        session.start_tracking();
        session
    }

    fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.state.settings().lock_wait_timeout_seconds)
    }

    /// In which the client writes.
    fn client_charset(&self) -> Charset {
        self.state.settings().sql.client_charset
    }

    /// To change what no plan may see changing.
    fn state_mut(&mut self) -> &mut SessionState {
        let Some(state) = Rc::get_mut(&mut self.state) else {
            unreachable!("a plan is being made beside another statement")
        };
        state
    }
}

impl SessionService for Session {
    type Plan = PlannedStatement;

    async fn query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        let yield_state = self.yield_state.clone();
        let charset = self.client_charset();
        run_yielding(&yield_state, pin!(self.run_query(&charset.to_utf8(sql), out))).await
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<PlannedStatement>, SqlError> {
        // The one before has had its time.
        self.current.deadline = None;
        self.state.begin_statement();
        self.state.clear_warnings();
        let yield_state = self.yield_state.clone();
        let sql = self.client_charset().to_utf8(sql);
        let result =
            run_yielding(&yield_state, pin!(self.prepare_text(&sql))).await.map_err(Failure::into_error);
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
        let yield_state = self.yield_state.clone();
        run_yielding(&yield_state, pin!(self.run_prepared(statement, params, out))).await
    }

    async fn change_database(&mut self, name: &[u8]) -> Result<(), SqlError> {
        self.use_database(&String::from_utf8_lossy(&self.client_charset().to_utf8(name)))
    }

    async fn field_list(&mut self, table: &[u8], pattern: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        let charset = self.client_charset();
        let (table, pattern) = (charset.to_utf8(table), charset.to_utf8(pattern));
        self.field_definitions(&String::from_utf8_lossy(&table), &pattern)
    }

    async fn reset(&mut self) {
        let yield_state = self.yield_state.clone();
        run_yielding(&yield_state, pin!(self.end())).await;
        self.state_mut().reset();
        self.state.connection.counters.forget_own();
        self.named_statements.clear();
        self.handlers.clear();
        self.start_tracking();
    }

    async fn close(&mut self) {
        let yield_state = self.yield_state.clone();
        run_yielding(&yield_state, pin!(self.end())).await;
    }

    fn user_changed(&mut self) {
        self.state.forget_rights();
        self.cache = PlanCache::default();
    }

    fn status_flags(&self) -> u16 {
        self.flags()
    }

    fn take_changes(&mut self) -> Option<Box<[u8]>> {
        self.take_session_changes(false)
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
        self.forget_characteristics();
        // Before the locks that keep others from the tables.
        if let Err(error) = self.transaction.rollback().await {
            tracing::error!(%error, "cannot roll back at the end of a session; the transaction is abandoned");
            self.abandon_transaction();
        }
        self.xa = None;
        self.release_table_locks();
        self.read_lock = None;
        self.export_holds.clear();
        self.end_private().await;
    }
}
