//! What all connections share.
//!
//! [`Server`] is the wire's shared state; the SQL side's (open database, plan cache) lives in the
//! [`SessionFactory`](crate::session_interface::SessionFactory). It also holds what needs more than one connection to
//! decide: whom KILL may end, and which way clients may come.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use sql::errors::{self, error};
use sql::kill_switch::Kill;
use sql::memory::ServerMemory;
use sql::named_locks::NamedLocks;
use sql::privilege::{Privileges, Rights};
use sql::result::SqlError;
use tokio::sync::{Notify, Semaphore};

use super::clock::CoarseClock;
use super::files::FileDirectory;
use super::read_lock::GlobalReadLock;
use super::registry::{Connection, ConnectionId, Registry};
use crate::auth::Peer;
use crate::auth::accounts::Accounts;
use crate::options::machine;
use crate::statement_stats::digests::Digests;
use crate::statement_stats::slow_log::SlowLog;
use crate::status::Status;
use crate::status::averages::Averages;
use crate::variables::{GlobalVariables, Value};
use crate::wire::response_packets;

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
            return Err(crate::tls::NO_TLS.to_owned());
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
        let (user, host, roles) = connection.with_activity(|activity| {
            (activity.user.clone(), activity.account_host.clone(), activity.roles.clone())
        });
        self.accounts.rights_with(&user, &host, &roles)
    }

    /// Whether all roles are active after a login.
    pub fn activates_all_roles(&self) -> bool {
        self.variables.number("activate_all_roles_on_login") == 1
    }

    /// The roles that are active after a login are active again.
    pub fn activate_default_roles(&self, connection: &Connection) {
        let (user, host) =
            connection.with_activity(|activity| (activity.user.clone(), activity.account_host.clone()));
        let roles = self.accounts.roles_after_login(&user, &host, self.activates_all_roles());
        connection.update(|activity| activity.roles = roles.into());
    }

    /// KILL on behalf of a connection: 1094 without such a connection, 1095 when it belongs to somebody else.
    pub fn kill_by(&self, killer: &Connection, id: ConnectionId, how: Kill) -> Result<(), SqlError> {
        let Some(victim) = self.connections.get(id) else {
            return Err(response_packets::error::no_such_thread(id));
        };
        // The same user name with different hosts is different accounts; a client still logging in has none.
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
