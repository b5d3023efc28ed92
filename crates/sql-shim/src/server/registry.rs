//! The register of who is connected.
//!
//! Each connection has one [`Connection`] entry for as long as it lives: SHOW PROCESSLIST reads it, KILL sets
//! its switch, and the connection's own task is the only one that writes the rest, so its mutex is never
//! contended in practice.
//!
//! An entry is made by [`Registry::enter`] and removed when its [`Enrolled`] is dropped, after a panic too.
//!
//! Rows of SHOW PROCESSLIST are made from the entries in `session/state.rs`; who may see which is decided in
//! `crates/sql/src/catalog_views/server_tables.rs`. Who may kill whom: `shared.rs` (`kill_by`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use sql::kill_switch::{Kill, KillSwitch};
use sql::privilege::RoleName;

use super::clock::CoarseClock;
use super::lost_clients::Attention;
use super::shared::Server;
use super::waits::Waits;
use crate::statement_stats::secrets::{readable, without_values};
use crate::status::{ConnectionCounters, Counters};
use crate::tls::stream::TlsFacts;
use crate::wire::compression::Algorithm;

/// A connection's number, unique while the server runs; what CONNECTION_ID() and KILL mean.
pub type ConnectionId = u32;

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
    /// Tells the client what changes of its session.
    pub session_track: bool,
    /// Rows end with an OK.
    pub deprecate_eof: bool,
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
    /// The roles that are active.
    pub roles: Arc<[RoleName]>,
    /// Current database.
    pub database: Option<Arc<str>>,
    /// `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// What the session does right now (`executing`, `waiting for row lock`, ...).
    pub state: &'static str,
    /// Statement text, cut after [`INFO_BYTES_MAX`] bytes; empty when idle. What others may read of it is
    /// [`Activity::statement`].
    info: Vec<u8>,
    /// Since when it is in this command, on the server's [`CoarseClock`].
    pub since_ms: u64,
}

impl Activity {
    /// The statement that runs, without passwords; empty when idle.
    pub fn statement(&self) -> Cow<'_, [u8]> {
        readable(&self.info)
    }

    /// The same without any value.
    pub fn statement_without_values(&self) -> String {
        without_values(&self.info)
    }
}

/// Longest statement text kept for SHOW PROCESSLIST, bytes.
pub const INFO_BYTES_MAX: usize = 4096;

/// One connection's entry.
pub struct Connection {
    /// Its number.
    pub id: ConnectionId,
    /// Its counters, and those of the runtime thread that carries it.
    pub counters: Arc<ConnectionCounters>,
    /// How it is encrypted, if it is.
    pub tls: OnceLock<TlsFacts>,
    /// How it is compressed, if it is.
    pub compression: OnceLock<Algorithm>,
    reserve: bool,
    kill_switch: Arc<KillSwitch>,
    timed_out: AtomicBool,
    /// The client has asked for the end (`COMMIT RELEASE`).
    released: AtomicBool,
    /// When the connection is given up on the coarse clock; 0 for never.
    deadline_ms: AtomicU64,
    /// A statement that changes something is at work (see [`crate::server::read_lock`]).
    changing: AtomicBool,
    /// The account's password has expired: nothing may be done but to set another.
    must_change_password: AtomicBool,
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

    /// Whether the session may only set another password.
    #[inline]
    pub fn must_change_password(&self) -> bool {
        self.must_change_password.load(Ordering::Relaxed)
    }

    /// A login with an expired password, or another password.
    pub fn set_must_change_password(&self, must: bool) {
        self.must_change_password.store(must, Ordering::Relaxed);
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

    /// The client has `net_write_timeout` to take what is written, unless less is left of what it has
    /// already.
    pub(super) fn shorten_deadline(&self, server: &Server) {
        let until = server.clock.now_ms() + server.variables.net_write_timeout_ms();
        let before = self.deadline();
        self.set_deadline(if before == 0 { until } else { before.min(until) });
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

    /// Ends the connection behind the answer to the statement, without another word.
    pub fn release(&self) {
        self.released.store(true, Ordering::Release);
        self.kill(Kill::Connection);
    }

    /// Whether its own client has ended the connection.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
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

    /// A KILL QUERY applies to the command it met: the connection's task forgets it when the next command has
    /// come, and nobody later, so that none is lost.
    #[inline]
    pub fn clear_query_kill(&self) {
        self.kill_switch.clear_query();
    }

    /// Resolves once the connection is to stop at least as urgently as `at_least`. One waiter at a time: the
    /// connection's own task.
    pub fn killed(&self, at_least: Kill) -> Killed<'_> {
        Killed { connection: self, at_least }
    }

    /// Awaits the work, or `None` once the connection is killed; then the caller drops the work.
    ///
    /// The work comes pinned where it stands: otherwise it would be copied for each command.
    pub(super) async fn unless_killed<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut killed = self.killed(Kill::Connection);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => Pin::new(&mut killed).poll(context).map(|_| None),
        })
        .await
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
            counters: Arc::new(ConnectionCounters::new(counters)),
            tls: OnceLock::new(),
            compression: OnceLock::new(),
            kill_switch: Arc::default(),
            timed_out: AtomicBool::new(false),
            released: AtomicBool::new(false),
            deadline_ms: AtomicU64::new(0),
            changing: AtomicBool::new(false),
            must_change_password: AtomicBool::new(false),
            waker: Mutex::new(None),
            attention: Attention::default(),
            waits: Waits::default(),
            flags: Mutex::new(ClientFlags::default()),
            activity: Mutex::new(Activity {
                user: Arc::from("unauthenticated user"),
                host: Arc::from(host),
                // Of no account: not even of one that is called so.
                account_host: Arc::from(""),
                roles: Arc::default(),
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

/// A connection's place in the register and in its worker's count, given back when this is dropped.
pub struct Enrolled {
    server: Arc<Server>,
    id: ConnectionId,
    of_worker: Arc<AtomicUsize>,
}

impl Enrolled {
    /// For a connection that has been entered and counted.
    pub fn new(server: Arc<Server>, id: ConnectionId, of_worker: Arc<AtomicUsize>) -> Enrolled {
        Enrolled { server, id, of_worker }
    }
}

impl Drop for Enrolled {
    fn drop(&mut self) {
        self.server.connections.leave(self.id);
        self.of_worker.fetch_sub(1, Ordering::Release);
    }
}
