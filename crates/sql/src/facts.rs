//! What only the server knows: who is connected, what accounts may do, the table of system variables.
//!
//! SQL asks for it while it plans (rights), for rows of `information_schema`, for `@@name` and for USER().
//! What rows of a table look at (settings, the kill switch) the server puts into the context itself.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use untorn::engine::WaitKind;
use untorn::metrics::Times;

use crate::ast::Scope;
use crate::latency_buckets::Latencies;
use crate::named_locks::NamedLocks;
use crate::privilege::{Rights, RoleName};
use crate::result::SqlError;
use crate::value::Value;

/// Who sends the statements.
#[derive(Clone, Debug)]
pub struct Client {
    /// Account name as logged in.
    pub user: Arc<str>,
    /// Host part of the account.
    pub account_host: Arc<str>,
    /// Where the client is, without its port.
    pub host: String,
}

/// What holds for a statement as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Affected rows of an UPDATE are the matched ones.
    pub found_rows: bool,
    /// `max_allowed_packet`: longest text that a function makes.
    pub packet_bytes_max: usize,
}

/// A row of PROCESSLIST.
#[derive(Clone, Debug)]
pub struct Process {
    /// The connection's number.
    pub id: u32,
    /// Account name as logged in.
    pub user: Arc<str>,
    /// `host:port`, or `localhost` over the socket.
    pub host: Arc<str>,
    /// Current database.
    pub database: Option<Arc<str>>,
    /// `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// How long it has been in this command.
    pub seconds: u64,
    /// What it does right now.
    pub state: &'static str,
    /// The statement; empty when idle.
    pub info: Vec<u8>,
}

/// A row of `performance_schema.events_statements_summary_by_digest`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct StatementDigest {
    /// Current database when it ran.
    pub database: Option<Arc<str>>,
    /// Of the text; `None` for the row of all that did not fit in.
    pub digest: Option<String>,
    /// See [`crate::digest`].
    pub text: Option<Arc<str>>,
    pub count: u64,
    pub sum: Duration,
    pub least: Duration,
    pub most: Duration,
    pub lock_time: Duration,
    /// On the processor.
    pub cpu: Duration,
    /// In waits, in the order of `WaitKind::ALL`.
    pub waited: [Duration; WaitKind::ALL.len()],
    pub errors: u64,
    pub warnings: u64,
    pub affected: u64,
    pub sent: u64,
    pub examined: u64,
    pub scans: u64,
    pub full_joins: u64,
    pub no_index: u64,
    /// Since 1970, as are the others.
    pub first_seen: Duration,
    pub last_seen: Duration,
    /// 95 %, 99 %, 99.9 %, picoseconds.
    pub quantiles: [u64; 3],
    pub sample: String,
    pub sample_seen: Duration,
    pub sample_took: Duration,
}

/// How long the statements of a digest took.
#[derive(Clone, Debug)]
pub struct DigestLatencies {
    /// Current database when they ran.
    pub database: Option<Arc<str>>,
    /// As in [`StatementDigest`].
    pub digest: Option<String>,
    /// How many took how long.
    pub latencies: Latencies,
}

/// A row of `mysql.user`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct KnownAccount {
    pub user: String,
    pub host: String,
    pub rights: Rights,
    /// Only holders of SYSTEM_USER may change it: it holds that, or a role of it does.
    pub is_system_user: bool,
    /// The roles that are granted to it, and whether it may hand them on.
    pub roles: Vec<(RoleName, bool)>,
    pub default_roles: Vec<RoleName>,
    /// It needs a new password before anything else.
    pub expired: bool,
    /// When it got its password, in seconds since 1970.
    pub password_set_unix_s: u64,
    /// `PASSWORD EXPIRE INTERVAL`; 0: NEVER. `None`, here and below: DEFAULT.
    pub password_lifetime_days: Option<u16>,
    pub password_history: Option<u32>,
    pub password_reuse_days: Option<u32>,
    pub requires_current: Option<bool>,
    /// `FAILED_LOGIN_ATTEMPTS`.
    pub failed_attempts: u16,
    /// `PASSWORD_LOCK_TIME`; -1: UNBOUNDED.
    pub lock_days: i16,
    /// Of questions, updates and connections in an hour, and of connections.
    pub limits: [u32; 4],
    /// The authentication method.
    pub plugin: &'static str,
    /// Stored form of the password; empty for none.
    pub authentication: String,
    /// Nobody may log in to it.
    pub locked: bool,
    /// REQUIRE: empty, `ANY` or `X509`.
    pub ssl_type: &'static str,
}

/// See the module's text.
pub trait ServerFacts {
    /// Who sends the statements.
    fn client(&self) -> Client;

    /// What that account may do now.
    fn rights(&self) -> Arc<Rights>;

    /// The roles that are active, in the order in which they are shown.
    fn active_roles(&self) -> Vec<RoleName>;

    /// The roles that are granted to everybody.
    fn mandatory_roles(&self) -> Vec<RoleName>;

    /// What this account may do now with its default roles; `None`: there is no such account.
    fn rights_of(&self, user: &str, host: &str) -> Option<Arc<Rights>>;

    /// What holds for the statement that begins.
    fn terms(&self) -> Terms;

    /// `@@name`, of the session if it has one when no scope is said.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1238 for the wrong scope.
    fn system_variable(&self, name: &str, scope: Option<Scope>) -> Result<Value<'static>, SqlError>;

    /// Names and values of the system variables, in the order of names: the global ones, or the session's.
    fn variables(&self, global: bool) -> Vec<(&'static str, String)>;

    /// Names and values of SHOW STATUS: the server's, or with the session's own counts.
    fn status(&self, global: bool) -> Vec<(String, String)>;

    /// All connections, in the order of their numbers.
    fn processes(&self) -> Box<dyn Iterator<Item = Process>>;

    /// Statements counted by digest, one after the other.
    fn statement_digests(&self) -> Box<dyn Iterator<Item = StatementDigest>>;

    /// How long those of each digest took.
    fn digest_latencies(&self) -> Box<dyn Iterator<Item = DigestLatencies>>;

    /// How long all statements took.
    fn statement_latencies(&self) -> Latencies;

    /// How long sessions waited, in the order of `WaitKind::ALL`.
    fn waits(&self) -> [Times; WaitKind::ALL.len()];

    /// All accounts.
    fn accounts(&self) -> Vec<KnownAccount>;

    /// The locks of GET_LOCK.
    fn named_locks(&self) -> Arc<NamedLocks>;

    /// A file of the server's machine that statements may read, and its length in bytes; `None`: there is
    /// none of this name, or it may not be read.
    fn open_file(&self, name: &[u8]) -> Option<(Box<dyn Read>, u64)>;

    /// Where sorts put what does not fit into memory (`tmpdir`).
    fn temporary_directory(&self) -> PathBuf;
}
