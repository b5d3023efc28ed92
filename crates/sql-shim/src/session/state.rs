//! What a session carries from statement to statement beside its transaction: SQL's context, and the server
//! around it.
//!
//! [`SessionState`] is a [`SqlContext`] to the planner and the executor. The context asks for what the server
//! knows through [`ConnectionFacts`], which the state shares with it. System variables live there; those that
//! SQL looks at for every row are copied into the context whenever any changes
//! ([`SessionState::change_variables`]).

use std::cell::{Cell, Ref, RefCell};
use std::io::Read;
use std::ops::Deref;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use sql::ast;
use sql::context::SqlContext;
use sql::facts::{Client, DigestLatencies, KnownAccount, Process, ServerFacts, StatementDigest, Terms};
use sql::latency_buckets::Latencies;
use sql::lexer::LexicalModes;
use sql::memory::Account;
use sql::named_locks::NamedLocks;
use sql::privilege::{Rights, RoleName};
use sql::result::SqlError;
use sql::value::Value;
use untorn::engine::{TimeSlice, WaitKind};
use untorn::metrics::Times;

use crate::auth::usage::Limits;
use crate::server::registry::Connection;
use crate::server::shared::Server;
use crate::variables::{self, GlobalVariables, SessionSettings, SessionVariables};

const MAX_USER_CONNECTIONS: &str = "max_user_connections";

/// What an account may do and use, as of a generation of the accounts.
struct KnownRules {
    generation: u64,
    rights: Arc<Rights>,
    limits: Limits,
}

/// What SQL may ask about the server, and about the connection it works for.
pub struct ConnectionFacts {
    server: Arc<Server>,
    connection: Arc<Connection>,
    variables: RefCell<SessionVariables>,
    /// What is kept of the account.
    account: RefCell<Option<KnownRules>>,
    /// How often other roles have become active.
    role_changes: Cell<u64>,
}

impl ConnectionFacts {
    /// Reads what is known of the account, which is looked up when accounts have changed.
    fn with_rules<R>(&self, read: impl FnOnce(&KnownRules) -> R) -> R {
        let generation = self.server.accounts.generation();
        let mut known = self.account.borrow_mut();
        if let Some(known) = known.as_ref().filter(|known| known.generation == generation) {
            return read(known);
        }
        let rights = Arc::new(self.server.rights_of(&self.connection));
        let limits =
            self.connection.with_activity(|who| self.server.accounts.limits_of(&who.user, &who.account_host));
        read(known.insert(KnownRules { generation, rights, limits }))
    }

    /// `@@max_user_connections` of a session: the account's own limit, or the server's.
    fn max_user_connections(&self) -> Option<u32> {
        Some(self.with_rules(|known| known.limits.user_connections)).filter(|limit| *limit > 0)
    }
}

impl ServerFacts for ConnectionFacts {
    fn client(&self) -> Client {
        self.connection.with_activity(|activity| Client {
            user: activity.user.clone(),
            account_host: activity.account_host.clone(),
            host: activity.host.rsplit_once(':').map_or(&*activity.host, |(host, _)| host).to_owned(),
        })
    }

    fn rights(&self) -> Arc<Rights> {
        self.with_rules(|known| known.rights.clone())
    }

    fn rights_of(&self, user: &str, host: &str) -> Option<Arc<Rights>> {
        let accounts = &self.server.accounts;
        let all = self.server.activates_all_roles();
        accounts.exists(user, host).then(|| Arc::new(accounts.rights_by_default(user, host, all)))
    }

    fn active_roles(&self) -> Vec<RoleName> {
        self.connection.with_activity(|activity| activity.roles.to_vec())
    }

    fn mandatory_roles(&self) -> Vec<RoleName> {
        self.server.accounts.mandatory_roles()
    }

    fn terms(&self) -> Terms {
        Terms {
            found_rows: self.connection.client_flags().found_rows,
            packet_bytes_max: self.server.variables.packet_bytes_max(),
        }
    }

    fn system_variable(&self, name: &str, scope: Option<ast::Scope>) -> Result<Value<'static>, SqlError> {
        // Of a session it is what counts for the account.
        let is_limit = name.eq_ignore_ascii_case(MAX_USER_CONNECTIONS);
        let scope = match scope {
            Some(ast::Scope::Global | ast::Scope::Persist) => variables::Scope::Global,
            _ if is_limit => match self.max_user_connections() {
                Some(own) => return Ok(Value::UInt(u64::from(own))),
                None => variables::Scope::Either,
            },
            Some(ast::Scope::Session) => variables::Scope::Session,
            None => variables::Scope::Either,
        };
        Ok(match self.variables.borrow().get(&self.server.variables, name, scope)? {
            variables::Value::Null => Value::Null,
            variables::Value::Bool(on) => Value::Int(i64::from(on)),
            variables::Value::Int(v) => Value::Int(v),
            variables::Value::UInt(v) => Value::UInt(v),
            variables::Value::Double(v) => Value::Double(v),
            variables::Value::Text(text) => Value::text(text.to_string()),
        })
    }

    fn variables(&self, global: bool) -> Vec<(&'static str, String)> {
        let scope = if global { variables::Scope::Global } else { variables::Scope::Either };
        let mut rows = self.variables.borrow().show(&self.server.variables, scope);
        if let Some(own) = self.max_user_connections().filter(|_| !global)
            && let Some(row) = rows.iter_mut().find(|(name, _)| *name == MAX_USER_CONNECTIONS)
        {
            row.1 = own.to_string();
        }
        rows
    }

    fn status(&self, global: bool) -> Vec<(String, String)> {
        let mut rows = crate::status::collect(&self.server);
        if !global {
            self.connection.counters.put_own(&mut rows);
        }
        if let Some(facts) = self.connection.tls.get() {
            for (name, value) in &mut rows {
                match name.as_str() {
                    "Ssl_cipher" => *value = facts.cipher.to_owned(),
                    "Ssl_version" => *value = facts.version.to_owned(),
                    _ => {}
                }
            }
        }
        if !global {
            let algorithm = self.connection.compression.get();
            let of_session = [
                ("Compression", algorithm.map_or("OFF", |_| "ON").to_owned()),
                ("Compression_algorithm", algorithm.map_or("", |algorithm| algorithm.name()).to_owned()),
                ("Compression_level", algorithm.map_or(0, |algorithm| algorithm.level()).to_string()),
            ];
            rows.extend(of_session.map(|(name, value)| (name.to_owned(), value)));
            rows.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
        }
        rows
    }

    fn processes(&self) -> Box<dyn Iterator<Item = Process>> {
        let now_ms = self.server.clock.now_ms();
        let process = move |connection: Arc<Connection>| {
            let activity = connection.activity();
            let info = activity.statement().into_owned();
            Process {
                id: connection.id,
                user: activity.user,
                host: activity.host,
                database: activity.database,
                command: activity.command,
                seconds: now_ms.saturating_sub(activity.since_ms) / 1000,
                state: activity.state,
                info,
            }
        };
        Box::new(self.server.connections.all().into_iter().map(process))
    }

    fn statement_digests(&self) -> Box<dyn Iterator<Item = StatementDigest>> {
        Box::new(self.server.digests.all())
    }

    fn digest_latencies(&self) -> Box<dyn Iterator<Item = DigestLatencies>> {
        Box::new(self.server.digests.latencies())
    }

    fn statement_latencies(&self) -> Latencies {
        self.server.status.latencies()
    }

    fn waits(&self) -> [Times; WaitKind::ALL.len()] {
        self.server.status.waits()
    }

    fn accounts(&self) -> Vec<KnownAccount> {
        self.server.accounts.known()
    }

    fn named_locks(&self) -> Arc<NamedLocks> {
        self.server.named_locks.clone()
    }

    fn open_file(&self, name: &[u8]) -> Option<(Box<dyn Read>, u64)> {
        let file = self.server.files.get()?.open_to_read(name).ok()?;
        let length = file.metadata().ok()?.len();
        let file: Box<dyn Read> = Box::new(file);
        Some((file, length))
    }

    fn temporary_directory(&self) -> PathBuf {
        self.server.variables.text("tmpdir").into()
    }
}

/// A session's state.
pub struct SessionState {
    context: SqlContext,
    /// What all connections share.
    pub server: Arc<Server>,
    /// This connection's entry.
    pub connection: Arc<Connection>,
    facts: Rc<ConnectionFacts>,
}

impl Deref for SessionState {
    type Target = SqlContext;

    fn deref(&self) -> &SqlContext {
        &self.context
    }
}

impl SessionState {
    /// A fresh session's.
    pub fn new(
        server: Arc<Server>,
        connection: Arc<Connection>,
        database: untorn::asynchronous::Database,
        slice: Arc<TimeSlice>,
    ) -> Self {
        let variables = server.variables.session();
        let settings = variables.settings().sql.clone();
        let facts = Rc::new(ConnectionFacts {
            server: server.clone(),
            connection: connection.clone(),
            variables: RefCell::new(variables),
            account: RefCell::new(None),
            role_changes: Cell::new(0),
        });
        let memory = Account::new(server.memory.clone());
        let number_and_switch = (connection.id, connection.kill_switch().clone());
        let context = SqlContext::new(database, facts.clone(), number_and_switch, settings, memory, slice);
        Self { context, server, connection, facts }
    }

    /// Decoded session variables.
    pub fn settings(&self) -> Ref<'_, SessionSettings> {
        Ref::map(self.facts.variables.borrow(), SessionVariables::settings)
    }

    /// How texts become tokens in this session.
    pub fn lexical_modes(&self) -> LexicalModes {
        self.settings().sql.lexical_modes()
    }

    /// A copy of the session's variables, to go back to.
    pub fn variables(&self) -> SessionVariables {
        self.facts.variables.borrow().clone()
    }

    /// Changes variables, and what SQL knows of them.
    pub fn change_variables<R>(
        &mut self,
        change: impl FnOnce(&mut SessionVariables, &GlobalVariables) -> R,
    ) -> R {
        let mut variables = self.facts.variables.borrow_mut();
        let outcome = change(&mut variables, &self.server.variables);
        self.context.set_settings(variables.settings().sql.clone());
        outcome
    }

    /// Back to a fresh session (COM_RESET_CONNECTION).
    pub fn reset(&mut self) {
        self.change_variables(|variables, globals| *variables = globals.session());
        self.context.reset();
        self.server.activate_default_roles(&self.connection);
        self.forget_rights();
    }

    /// What the account may use.
    pub fn limits(&self) -> Limits {
        self.facts.with_rules(|known| known.limits.clone())
    }

    /// These roles are active from now on.
    pub fn activate_roles(&self, roles: Vec<RoleName>) {
        self.connection.update(|activity| activity.roles = roles.into());
        self.forget_rights();
    }

    /// How often other rights have come with other roles, which only grows.
    pub fn role_changes(&self) -> u64 {
        self.facts.role_changes.get()
    }

    /// The connection is somebody else's now, or has other roles.
    pub fn forget_rights(&self) {
        *self.facts.account.borrow_mut() = None;
        self.facts.role_changes.set(self.facts.role_changes.get() + 1);
    }

    /// Changes the current database.
    pub fn set_current_database(&self, name: Option<&str>) {
        self.context.set_current_database(name);
        self.connection.set_database(name);
    }
}
