//! SET, SHOW, accounts and administration.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use std::sync::Arc;

use super::{Expr, Limit, Scope, TableName};

/// One element of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@x = …`.
    User(String, Arc<Expr>),
    /// `[scope] x = …`; `None` as value: DEFAULT. `unscoped`: written `@@x`.
    System { scope: Option<Scope>, name: String, value: Option<Arc<Expr>>, unscoped: bool },
    /// `NAMES x [COLLATE y]` (`None`: DEFAULT).
    Names(Option<String>, Option<String>),
    /// `CHARACTER SET x`.
    CharacterSet(Option<String>),
}

/// What to lock in `LOCK TABLES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    /// Table.
    pub table: TableName,
    /// Alias.
    pub alias: Option<String>,
    /// `WRITE`.
    pub write: bool,
}

/// Filter of a SHOW statement.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    /// `LIKE 'pattern'`.
    Like(Vec<u8>),
    /// `WHERE expr`.
    Where(Arc<Expr>),
}

/// The object of a SHOW statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ShowKind {
    Databases,
    Tables {
        full: bool,
        database: Option<String>,
    },
    TableStatus {
        database: Option<String>,
    },
    OpenTables {
        database: Option<String>,
    },
    Columns {
        full: bool,
        table: TableName,
    },
    Index {
        table: TableName,
    },
    CreateTable(TableName),
    CreateView(TableName),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    Variables {
        global: bool,
    },
    Status {
        global: bool,
    },
    ProcessList {
        full: bool,
    },
    Warnings {
        limit: Option<Limit>,
        count: bool,
    },
    Errors {
        limit: Option<Limit>,
        count: bool,
    },
    Engines,
    EngineStatus {
        engine: String,
        what: String,
    },
    Plugins,
    Privileges,
    CharacterSets,
    Collations,
    /// Of whom; with the privileges of these roles (USING).
    Grants(Option<Account>, Vec<Account>),
    CreateUser(Account),
    /// Replication and stored programs: always empty. What was asked for, and the columns' names, which
    /// answer the question.
    Empty(&'static str, &'static [&'static str]),
}

/// `SHOW …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    /// What.
    pub kind: ShowKind,
    /// Which rows.
    pub filter: Option<ShowFilter>,
}

/// `'user'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    /// User; empty: anonymous.
    pub user: String,
    /// Host pattern, `%` when not given.
    pub host: String,
    /// `CURRENT_USER()`.
    pub current: bool,
}

impl Account {
    /// `CURRENT_USER()`.
    pub fn current() -> Account {
        Account { user: String::new(), host: String::new(), current: true }
    }
}

/// What privileges are granted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantObject {
    /// `*.*`.
    Everything,
    /// `*`: the current database.
    CurrentDatabase,
    /// `db.*`.
    Database(String),
    /// `[db.]table`.
    Table(TableName),
}

/// How an account proves itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Identification {
    /// Plug-in name.
    pub plugin: Option<String>,
    /// `BY 'password'`.
    pub password: Option<Vec<u8>>,
    /// `AS 'hash'` (or `BY PASSWORD 'hash'`).
    pub hash: Option<Vec<u8>>,
    /// `BY RANDOM PASSWORD`.
    pub random: bool,
}

/// One account of CREATE USER or ALTER USER, and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSpecification {
    /// Which account.
    pub account: Account,
    /// `IDENTIFIED …`; without it ALTER USER leaves the password as it is.
    pub identification: Option<Identification>,
    /// ALTER USER: `REPLACE`, the password as it was.
    pub replaced: Option<Vec<u8>>,
}

/// What CREATE USER and ALTER USER say of accounts behind their list; nothing is said of what is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccountOptions {
    /// `ACCOUNT LOCK` (true) or `UNLOCK`; the last one said counts, as in MySQL.
    pub lock: Option<bool>,
    /// `REQUIRE`.
    pub requires: Option<Requirement>,
    /// How long passwords last, and what new ones must be like.
    pub password: PasswordOptions,
    /// `WITH MAX_…`.
    pub limits: ResourceLimits,
}

/// `PASSWORD …`, `FAILED_LOGIN_ATTEMPTS`, `PASSWORD_LOCK_TIME`. `Some(None)` is DEFAULT: as the server's
/// variable says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PasswordOptions {
    /// `EXPIRE` without more: at once.
    pub expire: bool,
    /// `EXPIRE DEFAULT`, `EXPIRE INTERVAL n DAY`; 0: `EXPIRE NEVER`.
    pub lifetime_days: Option<Option<u16>>,
    /// `HISTORY`.
    pub history: Option<Option<u32>>,
    /// `REUSE INTERVAL`.
    pub reuse_days: Option<Option<u32>>,
    /// `REQUIRE CURRENT`, or `OPTIONAL`.
    pub requires_current: Option<Option<bool>>,
    /// `FAILED_LOGIN_ATTEMPTS`.
    pub failed_attempts: Option<u16>,
    /// `PASSWORD_LOCK_TIME`; -1: UNBOUNDED.
    pub lock_days: Option<i16>,
}

/// `WITH MAX_QUERIES_PER_HOUR n …`; 0 is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResourceLimits {
    /// `MAX_QUERIES_PER_HOUR`.
    pub queries: Option<u32>,
    /// `MAX_UPDATES_PER_HOUR`.
    pub updates: Option<u32>,
    /// `MAX_CONNECTIONS_PER_HOUR`.
    pub connections: Option<u32>,
    /// `MAX_USER_CONNECTIONS`.
    pub user_connections: Option<u32>,
}

impl ResourceLimits {
    /// Whether any of them is said.
    pub fn are_said(&self) -> bool {
        *self != ResourceLimits::default()
    }

    /// Whether any of them is a limit.
    pub fn limit_anything(&self) -> bool {
        let said = [self.queries, self.updates, self.connections, self.user_connections];
        said.into_iter().flatten().any(|limit| limit > 0)
    }
}

/// `REQUIRE` of an account: what a connection must have to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing.
    None,
    /// TLS.
    Ssl,
    /// TLS, and a verified certificate of the client.
    X509,
}

/// `GRANT`/`REVOKE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Upper-case privilege names; `ALL` for all.
    pub privileges: Vec<String>,
    /// Those that are for columns, with their names.
    pub columns: Vec<(String, Vec<String>)>,
    /// On what; `None`: REVOKE ALL PRIVILEGES, GRANT OPTION.
    pub object: Option<GrantObject>,
    /// To whom.
    pub accounts: Vec<(Account, Option<Identification>)>,
    /// `WITH GRANT OPTION`.
    pub grant_option: bool,
}

/// `GRANT` and `REVOKE` of roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// Which roles.
    pub roles: Vec<Account>,
    /// To whom or from whom.
    pub accounts: Vec<Account>,
    /// `WITH ADMIN OPTION`.
    pub admin_option: bool,
    /// `REVOKE IF EXISTS`: roles that do not exist are warnings.
    pub if_exists: bool,
    /// `IGNORE UNKNOWN USER`.
    pub ignore_unknown: bool,
}

/// Which roles are to be active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleChoice {
    /// `DEFAULT`.
    Default,
    /// `NONE`.
    None,
    /// `ALL [EXCEPT …]`.
    All(Vec<Account>),
    /// These.
    List(Vec<Account>),
}

/// Maintenance statements on tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Maintenance {
    Analyze,
    Check,
    Optimize,
    Repair,
    Checksum,
    /// CHECKSUM TABLE … QUICK.
    KeptChecksum,
    /// CACHE INDEX.
    AssignToKeyCache,
    /// LOAD INDEX INTO CACHE.
    PreloadKeys,
}

/// `FLUSH …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `FLUSH TABLES [list]`.
    Tables(Vec<TableName>),
    /// `FLUSH TABLES list FOR EXPORT`.
    ForExport(Vec<TableName>),
    /// `FLUSH TABLES [list] WITH READ LOCK`.
    ReadLock(Vec<TableName>),
    /// `FLUSH PRIVILEGES`.
    Privileges,
    /// `FLUSH USER_RESOURCES`.
    UserResources,
    /// `FLUSH STATUS`.
    Status,
    /// `FLUSH LOGS`, `FLUSH SLOW LOGS`.
    Logs,
    /// `FLUSH HOSTS` and the like: accepted.
    Other,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// `GET DIAGNOSTICS`.
#[derive(Clone, Debug, PartialEq)]
pub struct GetDiagnostics {
    /// `CONDITION n`: of the n-th warning or error.
    pub condition: Option<Arc<Expr>>,
    /// User variables, and the item that each gets, in upper case.
    pub items: Vec<(String, &'static str)>,
}
