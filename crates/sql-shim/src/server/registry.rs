//! The register of who is connected.
//!
//! Each connection has one [`Connection`] entry for as long as it lives: SHOW PROCESSLIST reads it, KILL sets
//! its switch, and the connection's own task is the only one that writes the rest, so its mutex is never
//! contended in practice.
//!
//! Rows of SHOW PROCESSLIST are made from the entries in `session/state.rs`; who may see which is decided in
//! `crates/sql/src/catalog_views/server_tables.rs`.

use sql::named_locks::NamedLocks;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use sql::errors::{self, error};
use sql::kill::{Kill, KillSwitch};
use sql::memory::ServerMemory;
use sql::privilege::{Privileges, Rights};
use sql::result::SqlError;
use tokio::sync::{Notify, Semaphore};

use super::clock::CoarseClock;
use super::files::FileDirectory;
use super::lost_clients::Attention;
use super::read_lock::GlobalReadLock;
use super::waits::Waits;
use crate::auth::Peer;
use crate::auth::accounts::Accounts;
use crate::options::machine;
use crate::statements::digests::Digests;
use crate::statements::slow_log::SlowLog;
use crate::status::averages::Averages;
use crate::status::{Counters, Status};
use crate::tls::stream::TlsFacts;
use crate::variables::{GlobalVariables, Value};
use crate::wire::packets;

/// A connection's number, unique while the server runs; what CONNECTION_ID() and KILL mean.
pub type ConnectionId = u32;

/// State shared by every connection.
pub struct Server {
    /// Who may log in.
    pub accounts: Accounts,
    /// Who is connected.
    pub connections: Registry,
    /// Permits for hashing passwords and for the RSA key: work of milliseconds that anybody may ask for
    /// before login.
    pub password_work: Semaphore,
    /// Global system variables.
    pub variables: GlobalVariables,
    /// Status counters.
    pub status: Status,
    /// What averages of SHOW ENGINE INNODB STATUS are counted from.
    pub averages: Averages,
    /// Coarse time, for timeouts and SHOW PROCESSLIST.
    pub clock: CoarseClock,
    /// Open prepared statements of all connections.
    pub prepared_statements: Arc<AtomicUsize>,
    /// FLUSH TABLES WITH READ LOCK.
    pub read_lock: Arc<GlobalReadLock>,
    /// The locks of GET_LOCK.
    pub named_locks: Arc<NamedLocks>,
    /// Memory of all statements.
    pub memory: Arc<ServerMemory>,
    /// Statements by digest.
    pub digests: Arc<Digests>,
    /// The log of slow statements.
    pub slow_log: Arc<SlowLog>,
    /// Asks the server to stop.
    pub shutdown: Shutdown,
    /// What connections are encrypted with; set before the first one, or never.
    pub tls: OnceLock<Arc<rustls::ServerConfig>>,
    /// Handshakes of TLS that fail are logged at most once a second: anybody can make them fail.
    pub(super) failed_handshakes: LogRate,
    /// Where files are that statements name; set before the first connection, or never.
    pub files: OnceLock<FileDirectory>,
}

const REQUIRE_SECURE_TRANSPORT: &str = "require_secure_transport";

/// Half of the cores may be busy with passwords.
fn password_work_max() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2)
}

impl Server {
    /// A server nobody is connected to yet.
    pub fn new(accounts: Accounts, variables: GlobalVariables) -> Arc<Self> {
        Arc::new(Self {
            accounts,
            connections: Registry::default(),
            password_work: Semaphore::new(password_work_max()),
            variables,
            status: Status::default(),
            averages: Averages::default(),
            clock: CoarseClock::default(),
            prepared_statements: Arc::default(),
            named_locks: Arc::default(),
            read_lock: Arc::default(),
            memory: Arc::new(ServerMemory::new(machine::memory_bytes().0 / 4)),
            digests: Arc::default(),
            slow_log: SlowLog::new(),
            shutdown: Shutdown::default(),
            tls: OnceLock::new(),
            failed_handshakes: LogRate::default(),
            files: OnceLock::new(),
        })
    }
}

impl Server {
    /// Opens the directory that `secure_file_priv` names, if it names one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_files(&self) -> Result<(), String> {
        let Value::Text(path) = self.variables.value("secure_file_priv") else { return Ok(()) };
        let opened = FileDirectory::open(Path::new(&*path));
        // Nobody has set it before.
        let _ = self.files.set(opened.map_err(|error| format!("secure-file-priv={path}: {error}"))?);
        Ok(())
    }

    /// Whether a client may come that way: 3159 when `require_secure_transport` wants TLS or a local socket.
    /// Asked at each login, COM_CHANGE_USER included.
    pub fn admits(&self, peer: &Peer) -> Result<(), SqlError> {
        let insecure = peer.security.is_none() && peer.address.is_some();
        if insecure && self.variables.number(REQUIRE_SECURE_TRANSPORT) == 1 {
            return Err(error(errors::SECURE_TRANSPORT_REQUIRED, &[]));
        }
        Ok(())
    }

    /// Without TLS nobody but clients of the local socket could come: `require_secure_transport` is refused.
    ///
    /// # Errors
    /// It is on already.
    pub fn serve_without_tls(&self) -> Result<(), String> {
        if self.variables.number(REQUIRE_SECURE_TRANSPORT) == 1 {
            return Err(
                "require-secure-transport: there is no TLS (--skip-ssl, or tls-version is empty)".to_owned()
            );
        }
        let hook = |value: &Value| match value.as_u64() {
            Some(1) => Err(error(errors::NO_SECURE_TRANSPORTS_CONFIGURED, &[])),
            _ => Ok(()),
        };
        self.variables.on_change(REQUIRE_SECURE_TRANSPORT, Box::new(hook));
        Ok(())
    }

    /// What the connection's account may do.
    pub fn rights_of(&self, connection: &Connection) -> Rights {
        connection.with_activity(|activity| self.accounts.rights(&activity.user, &activity.account_host))
    }

    /// KILL on behalf of a connection: 1094 without such a connection, 1095 when it belongs to somebody else.
    pub fn kill_by(&self, killer: &Connection, id: ConnectionId, how: Kill) -> Result<(), SqlError> {
        let Some(victim) = self.connections.get(id) else { return Err(packets::error::no_such_thread(id)) };
        // Accounts of one name and different hosts are different, and who logs in still is nobody.
        let account = |connection: &Connection| {
            connection.with_activity(|of| (Arc::clone(&of.user), Arc::clone(&of.account_host)))
        };
        let same = account(killer) == account(&victim);
        let others = Privileges::CONNECTION_ADMIN | Privileges::SUPER;
        let held = self.rights_of(killer).global();
        let protected = self.rights_of(&victim).global().has(Privileges::SYSTEM_USER);
        if !same && (!held.has_any(others) || (protected && !held.has(Privileges::SYSTEM_USER))) {
            return Err(error(errors::KILL_DENIED, &[&id]));
        }
        victim.kill(how);
        Ok(())
    }
}

/// Lets one line a second through.
#[derive(Default)]
pub(super) struct LogRate {
    next_ms: AtomicU64,
}

impl LogRate {
    /// Whether a line may be written now.
    pub(super) fn allows(&self, now_ms: u64) -> bool {
        let next = self.next_ms.load(Ordering::Relaxed);
        let (relaxed, after) = (Ordering::Relaxed, now_ms + 1000);
        // Who loses the race writes none.
        now_ms >= next && self.next_ms.compare_exchange(next, after, relaxed, relaxed).is_ok()
    }
}

/// The request to stop: from a signal, COM_SHUTDOWN or SQL.
#[derive(Default)]
pub struct Shutdown {
    requested: AtomicBool,
    notify: Notify,
}

impl Shutdown {
    /// Asks.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether somebody asked.
    fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Resolves when somebody asks; for the listener only.
    pub async fn requested(&self) {
        while !self.is_requested() {
            self.notify.notified().await;
        }
    }
}

/// What a client asked for in its handshake that a session has to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientFlags {
    /// Affected rows of an UPDATE are the matched ones.
    pub found_rows: bool,
    /// COM_QUERY may hold several statements (also by COM_SET_OPTION).
    pub multi_statements: bool,
    /// `interactive_timeout` instead of `wait_timeout`.
    pub interactive: bool,
    /// IGNORE_SPACE of the client: sets sql_mode IGNORE_SPACE.
    pub ignore_space: bool,
    /// Collation id of the handshake.
    pub charset: u16,
}

/// The changing part of a connection's entry.
#[derive(Debug, Clone)]
pub struct Activity {
    /// Account name as logged in.
    pub user: Arc<str>,
    /// `host:port`, or `localhost` over the socket.
    pub host: Arc<str>,
    /// Host part of the matched account (`%` or `localhost`), for CURRENT_USER().
    pub account_host: Arc<str>,
    /// Current database.
    pub database: Option<Arc<str>>,
    /// `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// What the session does right now (`executing`, `waiting for row lock`, ...).
    pub state: &'static str,
    /// Statement text, cut after [`INFO_BYTES_MAX`] bytes; empty when idle.
    pub info: Vec<u8>,
    /// Since when it is in this command, on the server's [`CoarseClock`].
    pub since_ms: u64,
}

/// Longest statement text kept for SHOW PROCESSLIST, bytes.
pub const INFO_BYTES_MAX: usize = 4096;

/// One connection's entry.
pub struct Connection {
    /// Its number.
    pub id: ConnectionId,
    /// Counters of the runtime thread that carries it.
    pub counters: Arc<Counters>,
    /// How it is encrypted, if it is.
    pub tls: OnceLock<TlsFacts>,
    reserve: bool,
    kill_switch: Arc<KillSwitch>,
    timed_out: AtomicBool,
    /// When the connection is given up on the coarse clock; 0 for never.
    deadline_ms: AtomicU64,
    /// A statement that changes something is at work (see [`crate::server::read_lock`]).
    changing: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// What is to be known of a client that hangs up.
    pub(crate) attention: Attention,
    /// Where its time goes.
    pub waits: Waits,
    flags: Mutex<ClientFlags>,
    activity: Mutex<Activity>,
}

impl Connection {
    /// Whether it came when all of `max_connections` were taken.
    pub fn is_reserve(&self) -> bool {
        self.reserve
    }

    /// What the client asked for.
    pub fn client_flags(&self) -> ClientFlags {
        *self.flags.lock()
    }

    /// Changes what the client asked for (handshake, COM_SET_OPTION).
    pub fn set_client_flags(&self, flags: ClientFlags) {
        *self.flags.lock() = flags;
    }

    /// A copy of the entry for SHOW PROCESSLIST.
    pub fn activity(&self) -> Activity {
        self.activity.lock().clone()
    }

    /// Reads the entry without a copy.
    pub fn with_activity<R>(&self, read: impl FnOnce(&Activity) -> R) -> R {
        read(&self.activity.lock())
    }

    /// Changes the entry.
    pub fn update(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut self.activity.lock());
    }

    /// The session's current database changed.
    pub fn set_database(&self, name: Option<&str>) {
        self.activity.lock().database = name.map(Arc::from);
    }

    /// Whether a change is at work.
    pub(super) fn is_changing(&self) -> bool {
        self.changing.load(Ordering::SeqCst)
    }

    /// A change begins or ends.
    #[inline]
    pub(super) fn set_changing(&self, changing: bool) {
        self.changing.store(changing, Ordering::SeqCst);
    }

    /// Enters a command and its statement.
    pub(crate) fn begin_command(&self, clock: &CoarseClock, command: &'static str, sql: &[u8]) {
        self.attention.set_working(true);
        self.update(|activity| {
            activity.command = command;
            activity.state = "executing";
            activity.since_ms = clock.now_ms();
            activity.info.clear();
            activity.info.extend_from_slice(sql.get(..sql.len().min(INFO_BYTES_MAX)).unwrap_or_default());
        });
    }

    /// The command is over.
    pub(crate) fn end_command(&self, clock: &CoarseClock) {
        self.attention.set_working(false);
        self.update(|activity| {
            activity.command = "Sleep";
            activity.state = "";
            activity.since_ms = clock.now_ms();
            activity.info.clear();
        });
    }

    /// What the session does right now.
    pub fn set_state(&self, state: &'static str) {
        self.activity.lock().state = state;
    }

    /// Asks the connection to stop and wakes it.
    pub fn kill(&self, how: Kill) {
        self.kill_switch.set(how);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// The connection waits for its client until then (milliseconds of the coarse clock, 0 for ever).
    #[inline]
    pub fn set_deadline(&self, deadline_ms: u64) {
        self.deadline_ms.store(deadline_ms, Ordering::Relaxed);
    }

    /// What [`set_deadline`](Self::set_deadline) said.
    pub fn deadline(&self) -> u64 {
        self.deadline_ms.load(Ordering::Relaxed)
    }

    /// Ends the connection if it has waited too long.
    pub fn expire(&self, now_ms: u64) {
        let deadline = self.deadline_ms.load(Ordering::Relaxed);
        if deadline != 0 && deadline <= now_ms {
            self.timed_out.store(true, Ordering::Release);
            self.kill(Kill::Connection);
        }
    }

    /// Whether the connection ended because its client was silent.
    pub fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }

    /// What a statement of the connection looks at.
    pub fn kill_switch(&self) -> &Arc<KillSwitch> {
        &self.kill_switch
    }

    /// How urgently this connection is to stop.
    #[inline]
    pub fn kill_level(&self) -> Kill {
        self.kill_switch.level()
    }

    /// A KILL QUERY applies to the statement it met: forget it when a statement begins.
    #[inline]
    pub fn clear_query_kill(&self) {
        self.kill_switch.clear_query();
    }

    /// Resolves once the connection is to stop at least as urgently as `at_least`. One waiter at a time: the
    /// connection's own task.
    pub fn killed(&self, at_least: Kill) -> Killed<'_> {
        Killed { connection: self, at_least }
    }
}

/// Future of [`Connection::killed`].
pub struct Killed<'a> {
    connection: &'a Connection,
    at_least: Kill,
}

impl Future for Killed<'_> {
    type Output = Kill;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Kill> {
        let level = self.connection.kill_level();
        if level >= self.at_least {
            return Poll::Ready(level);
        }
        let mut slot = self.connection.waker.lock();
        match &mut *slot {
            Some(waker) if waker.will_wake(context.waker()) => {}
            other => *other = Some(context.waker().clone()),
        }
        drop(slot);
        let level = self.connection.kill_level();
        if level >= self.at_least { Poll::Ready(level) } else { Poll::Pending }
    }
}

/// All connections by number.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<BTreeMap<ConnectionId, Arc<Connection>>>,
    last_id: AtomicU32,
    most: AtomicUsize,
}

impl Registry {
    /// Enters a new connection, or `None` when there are already `max` and one more: that one is for an
    /// administrator, which shows at its login ([`Connection::is_reserve`]).
    pub fn enter(
        &self,
        max: usize,
        host: &str,
        now_ms: u64,
        counters: Arc<Counters>,
    ) -> Option<Arc<Connection>> {
        let mut entries = self.entries.lock();
        if entries.len() > max {
            return None;
        }
        let reserve = entries.len() == max;
        let mut id = self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        while id == 0 || entries.contains_key(&id) {
            id = self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        }
        let connection = Arc::new(Connection {
            id,
            reserve,
            counters,
            tls: OnceLock::new(),
            kill_switch: Arc::default(),
            timed_out: AtomicBool::new(false),
            deadline_ms: AtomicU64::new(0),
            changing: AtomicBool::new(false),
            waker: Mutex::new(None),
            attention: Attention::default(),
            waits: Waits::default(),
            flags: Mutex::new(ClientFlags::default()),
            activity: Mutex::new(Activity {
                user: Arc::from("unauthenticated user"),
                host: Arc::from(host),
                // Of no account: not even of one that is called so.
                account_host: Arc::from(""),
                database: None,
                command: "Connect",
                state: "login",
                info: Vec::new(),
                since_ms: now_ms,
            }),
        });
        entries.insert(id, Arc::clone(&connection));
        self.most.fetch_max(entries.len(), Ordering::Relaxed);
        Some(connection)
    }

    /// Removes a connection that ended.
    pub fn leave(&self, id: ConnectionId) {
        self.entries.lock().remove(&id);
    }

    /// A connection by number.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        self.entries.lock().get(&id).cloned()
    }

    /// All connections in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.entries.lock().values().cloned().collect()
    }

    /// Visits every connection; short work only.
    pub fn for_each(&self, mut visit: impl FnMut(&Connection)) {
        for connection in self.entries.lock().values() {
            visit(connection);
        }
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    /// Most connections there ever were at once.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Connection attempts so far, by the numbers given out.
    pub fn attempts(&self) -> u32 {
        self.last_id.load(Ordering::Relaxed)
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second() {
        let rate = LogRate::default();
        let allowed = [0, 1, 999, 1000, 1500, 5000].map(|now_ms| rate.allows(now_ms));
        assert_eq!(allowed, [true, false, false, true, false, true]);
    }

    #[test]
    fn without_tls_it_cannot_be_required() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        assert_eq!(server.serve_without_tls(), Ok(()));
        let mut session = server.variables.session();
        let mut set = |on| {
            let scope = crate::variables::Scope::Global;
            let outcome =
                session.set(&server.variables, REQUIRE_SECURE_TRANSPORT, scope, Some(Value::Bool(on)));
            outcome.map(drop).map_err(|error| error.code)
        };
        assert_eq!(set(true), Err(3160));
        assert_eq!(set(false), Ok(()));
        assert_eq!(server.variables.number(REQUIRE_SECURE_TRANSPORT), 0);
        let variables = GlobalVariables::default();
        assert!(variables.set_at_start(REQUIRE_SECURE_TRANSPORT, "ON").is_ok());
        assert!(Server::new(Accounts::in_memory(), variables).serve_without_tls().is_err());
    }

    #[test]
    fn who_kills_is_the_same_account_and_not_the_same_name() {
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let enter = |user: &str, host: &str| {
            let connection = server.connections.enter(10, "localhost", 0, server.status.thread())?;
            connection.update(|activity| {
                activity.user = Arc::from(user);
                activity.account_host = Arc::from(host);
            });
            Some(connection)
        };
        let connections = [("app", "localhost"), ("app", "%"), ("app", "%"), ("unauthenticated user", "%")];
        let entered: Option<Vec<_>> = connections.iter().map(|(user, host)| enter(user, host)).collect();
        let newcomer = server.connections.enter(10, "localhost", 0, server.status.thread());
        let (Some(entered), Some(newcomer)) = (entered, newcomer) else { return };
        let kill = |killer: usize, victim: &Connection| {
            server.kill_by(&entered[killer], victim.id, Kill::Query).map_err(|error| error.code)
        };
        assert_eq!(kill(1, &entered[0]), Err(1095));
        assert_eq!(kill(1, &entered[2]), Ok(()));
        assert_eq!(kill(3, &newcomer), Err(1095));
    }
}
