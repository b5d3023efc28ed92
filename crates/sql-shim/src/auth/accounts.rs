//! Who may log in: a small JSON file in the data directory, written whole and atomically on every change.
//!
//! An account is a user name and a host part: `localhost` (the local socket and the loopback interface), `%`,
//! an address, or a pattern with `%` and `_`. Of several that fit the most specific wins, as in MySQL.
//!
//! What an account may do is its [`Rights`]. Every change of any account raises the
//! [`generation`](Accounts::generation): a session keeps the rights it looked up, and the plans it checked,
//! for as long as the number stays the same, so a GRANT or REVOKE counts from the next statement on and costs
//! the statements in between nothing but reading a number.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use sql::errors::{self, error};
use sql::facts::KnownAccount;
use sql::privilege::{Object, OnColumns, Privileges, Rights, RoleName};
use sql::result::SqlError;

use crate::private_file;

pub use super::account_change::{AccountChange, Identification};
use super::account_file::{Grant, GrantedRole, Stored, StoredRole, read_stored};
use super::password_rules::{Defaults, PasswordRules, UsedPassword, now_unix_s};
use super::roles::{self, Mandatory};
use super::usage::{Limits, Usages};
use super::{DEFAULT_PLUGIN, Peer, Security, host, native, sha2_password};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "untorn-accounts.json";

/// One account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User name.
    pub user: String,
    /// Host part.
    pub host: String,
    pub(super) plugin: String,
    /// Stored form of the password; empty for none.
    pub authentication_string: String,
    /// `ACCOUNT LOCK`: nobody may log in to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// `REQUIRE`: what a connection needs to be served.
    #[serde(default, skip_serializing_if = "Security::is_none")]
    pub requires: Security,
    /// `PASSWORD EXPIRE`: it needs another password.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) expired: bool,
    /// Made expired and without a password, as CREATE ROLE makes accounts: nobody may log in to it before it
    /// has been given one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) closed: bool,
    /// When it got its password, in seconds since 1970.
    #[serde(default)]
    pub(super) password_set_unix_s: u64,
    /// `PASSWORD …`, `FAILED_LOGIN_ATTEMPTS`, `PASSWORD_LOCK_TIME`.
    #[serde(default, skip_serializing_if = "PasswordRules::say_nothing")]
    pub(super) password: PasswordRules,
    /// The newest first; those that a rule needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) used_passwords: Vec<UsedPassword>,
    /// `WITH MAX_…`.
    #[serde(default, skip_serializing_if = "Limits::are_none")]
    pub(super) limits: Limits,
    /// The roles that are granted to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) roles: Vec<GrantedRole>,
    /// Those of them that are active after a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) default_roles: Vec<StoredRole>,
    #[serde(default)]
    pub(super) grants: Vec<Grant>,
}

impl Account {
    /// One that may do nothing.
    pub(super) fn new(user: &str, host: &str, (plugin, authentication_string): (String, String)) -> Account {
        Account {
            user: user.to_owned(),
            host: host.to_owned(),
            plugin,
            authentication_string,
            locked: false,
            requires: Security::None,
            expired: false,
            closed: false,
            password_set_unix_s: now_unix_s(),
            password: PasswordRules::default(),
            used_passwords: Vec::new(),
            limits: Limits::default(),
            roles: Vec::new(),
            default_roles: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// The authentication method.
    pub fn plugin(&self) -> &'static str {
        if self.plugin == native::PLUGIN { native::PLUGIN } else { sha2_password::PLUGIN }
    }

    /// What it may do by itself.
    pub(super) fn rights(&self) -> Rights {
        Grant::rights(&self.grants)
    }

    /// What else is said of it than its password.
    fn take_options(&mut self, change: &AccountChange) {
        self.password.take(&change.password);
        self.limits.take(&change.limits);
        self.expired |= change.password.expire;
        self.locked = change.locked.unwrap_or(self.locked);
        self.requires = change.requires.unwrap_or(self.requires);
    }

    pub(super) fn set_rights(&mut self, rights: &Rights) {
        self.grants = Grant::all_of(rights);
    }

    pub(super) fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }
}

/// Who asks for a change of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Holds SYSTEM_USER: may change any account.
    System,
    /// May change accounts that do not hold SYSTEM_USER, so that CREATE USER alone does not make an
    /// administrator.
    Ordinary,
}

/// The accounts.
#[derive(Default)]
pub struct Accounts {
    path: Option<PathBuf>,
    /// The file is of an older version.
    is_older: AtomicBool,
    /// Held by who changes accounts until the file has the change; who reads them waits for no file.
    changes: Mutex<()>,
    pub(super) stored: RwLock<Stored>,
    remembered: RwLock<HashMap<(String, String), (String, sha2_password::Digest)>>,
    pub(super) generation: Arc<AtomicU64>,
    pub(super) mandatory: Arc<Mandatory>,
    pub(super) defaults: Arc<Defaults>,
    pub(super) usages: Arc<Usages>,
    socket_only_without_password: AtomicBool,
    hasher: RandomState,
}

/// What to do in a data directory without a file of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// A new directory: `root@localhost` without a password.
    Create,
    /// The directory has tables: the first to log in must not become their administrator.
    Refuse,
}

impl Accounts {
    /// Makes the file of accounts in a data directory that has none, before the engine makes anything there:
    /// a directory with tables and without accounts is one that has lost them.
    ///
    /// # Errors
    /// It is missing where it must not be; or the file system's.
    pub fn prepare(directory: &Path, missing: WhenMissing) -> io::Result<()> {
        let path = directory.join(FILE_NAME);
        if path.try_exists()? {
            return Ok(());
        }
        if missing == WhenMissing::Refuse {
            let advice = "is missing, but the directory has a catalog of tables. Without it anybody on this machine could \
                          log in as root. Restore the file from a backup, or start once with --untorn-init-accounts to \
                          begin again with root@localhost without a password";
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{} {advice}", path.display())));
        }
        let temporary = path.with_extension("json.first");
        private_file::write(&temporary, &serde_json::to_vec_pretty(&Stored::fresh())?)?;
        // A link, not a rename: it does not replace what another process has made meanwhile.
        let made = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary)?;
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::File::open(directory)?.sync_all(),
        }
    }

    /// Reads the accounts of a data directory. Nothing is written before
    /// [`upgrade_file`](Self::upgrade_file) or a change, for which the caller holds the directory's lock.
    ///
    /// # Errors
    /// There is no file ([`prepare`](Self::prepare)), or it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        let context =
            |kind, why: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {why}", path.display()));
        let bytes = fs::read(&path).map_err(|error| context(error.kind(), &error))?;
        let read = read_stored(&bytes, now_unix_s());
        let (stored, is_older) = read.map_err(|why| context(io::ErrorKind::InvalidData, &why))?;
        let limited = stored.accounts.iter().any(|account| account.limits.limit_statements());
        let is_older = AtomicBool::new(is_older);
        let accounts = Self { path: Some(path), is_older, stored: RwLock::new(stored), ..Self::default() };
        accounts.usages.set_limited(limited);
        Ok(accounts)
    }

    /// Writes a file of an older version as one of this version: the ages of its passwords are known from
    /// then on. The caller holds the directory's lock.
    ///
    /// # Errors
    /// The file system's.
    pub fn upgrade_file(&self) -> io::Result<()> {
        let _one = self.changes.lock();
        if self.is_older.load(Ordering::Relaxed) {
            let stored = self.stored.read().clone();
            self.save(&stored)?;
        }
        Ok(())
    }

    /// Accounts that live in memory only, with `root@localhost` (measuring, tests).
    pub fn in_memory() -> Self {
        Self { stored: RwLock::new(Stored::fresh()), ..Self::default() }
    }

    /// Accounts without a password, as `'user'@'host'`.
    pub fn without_password(&self) -> Vec<String> {
        let stored = self.stored.read();
        // Nobody gets in to a role.
        let of_somebody = stored.accounts.iter().filter(|account| !account.closed);
        let open = of_somebody.filter(|account| account.authentication_string.is_empty());
        open.map(|account| format!("'{}'@'{}'", account.user, account.host)).collect()
    }

    /// The account a client logs in to.
    pub fn find(&self, user: &str, peer: &Peer) -> Option<Account> {
        let stored = self.stored.read();
        let of_user = stored.accounts.iter().filter(|account| account.user == user);
        let fitting = of_user.filter_map(|account| Some((host::fit(&account.host, peer)?, account)));
        fitting.max_by_key(|(specificity, _)| *specificity).map(|(_, account)| account.clone())
    }

    /// The account of this name.
    pub(super) fn named(&self, user: &str, host: &str) -> Option<Account> {
        self.stored.read().accounts.iter().find(|account| account.is(user, host)).cloned()
    }

    /// The authentication method shown to a user who does not exist: one that accounts have, always the same
    /// for a name, so that the method does not tell who exists.
    pub fn plugin_of_nobody(&self, user: &str) -> &'static str {
        let stored = self.stored.read();
        let count = stored.accounts.len() as u64;
        let index = self.hasher.hash_one(user).checked_rem(count).unwrap_or(0) as usize;
        stored.accounts.get(index).map_or(DEFAULT_PLUGIN, Account::plugin)
    }

    /// Whether accounts without a password are served over the local socket only.
    pub fn socket_only_without_password(&self) -> bool {
        self.socket_only_without_password.load(Ordering::Relaxed)
    }

    /// Keeps accounts without a password from the loopback interface, or lets them in.
    pub fn set_socket_only_without_password(&self, only: bool) {
        self.socket_only_without_password.store(only, Ordering::Relaxed);
    }

    /// What the account may do; nothing when it does not exist (any more).
    pub fn rights(&self, user: &str, host: &str) -> Rights {
        let stored = self.stored.read();
        stored.accounts.iter().find(|account| account.is(user, host)).map(Account::rights).unwrap_or_default()
    }

    /// Changes whenever an account does.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the account has a password.
    pub fn has_password(&self, user: &str, host: &str) -> bool {
        let stored = self.stored.read();
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        account.is_some_and(|account| !account.authentication_string.is_empty())
    }

    /// The digest remembered for the account as it is now.
    pub fn remembered(&self, account: &Account) -> Option<sha2_password::Digest> {
        let remembered = self.remembered.read();
        let (stored, digest) = remembered.get(&(account.user.clone(), account.host.clone()))?;
        (*stored == account.authentication_string).then_some(*digest)
    }

    /// Remembers a digest for the fast path.
    pub fn remember(&self, account: &Account, digest: sha2_password::Digest) {
        let key = (account.user.clone(), account.host.clone());
        self.remembered.write().insert(key, (account.authentication_string.clone(), digest));
    }

    /// CREATE USER and CREATE ROLE: all of them or none; 1396 names those that exist. With `if_not_exists`
    /// they are left as they are and returned.
    pub fn create_all(&self, list: &[AccountChange], if_not_exists: bool) -> Result<Vec<String>, SqlError> {
        let are_roles = list.iter().any(|change| change.is_role);
        let statement = if are_roles { "CREATE ROLE" } else { "CREATE USER" };
        let mut made = Vec::with_capacity(list.len());
        for change in list {
            check_name(&change.user, &change.host)?;
            let by = change.by.as_ref();
            let none = || Ok((DEFAULT_PLUGIN.to_owned(), String::new()));
            let by = by.map_or_else(none, |by| by.resolve(DEFAULT_PLUGIN))?;
            let mut account = Account::new(&change.user, &change.host, by);
            account.take_options(change);
            account.closed = account.expired && account.authentication_string.is_empty();
            account.note_password(&self.defaults);
            account.roles = change.default_roles.iter().map(GrantedRole::new).collect();
            account.default_roles = change.default_roles.iter().map(StoredRole::new).collect();
            made.push(account);
        }
        self.change(|accounts| {
            let roles = list.iter().flat_map(|change| &change.default_roles);
            if let Some(missing) =
                roles.clone().find(|role| !accounts.iter().any(|of| role.is(&of.user, &of.host)))
            {
                return Err(error(errors::USER_DOES_NOT_EXIST, &[missing]));
            }
            let mut existing = Vec::new();
            for account in made {
                if accounts.iter().any(|other| other.is(&account.user, &account.host)) {
                    existing.push(shown(&account.user, &account.host));
                } else {
                    accounts.push(account);
                }
            }
            unless_tolerated(statement, existing, if_not_exists)
        })
    }

    /// DROP USER: all of them or none; 1396 names those that do not exist, which are returned with
    /// `if_exists`.
    pub fn drop_all(
        &self,
        list: &[(String, String)],
        if_exists: bool,
        authority: Authority,
    ) -> Result<Vec<String>, SqlError> {
        self.drop_named(list, if_exists, authority, "DROP USER")
    }

    /// DROP USER and DROP ROLE, which take the account from all to whom it was granted as well.
    pub fn drop_named(
        &self,
        list: &[(String, String)],
        if_exists: bool,
        authority: Authority,
        statement: &str,
    ) -> Result<Vec<String>, SqlError> {
        let name = |(user, host): &(String, String)| RoleName { user: user.clone(), host: host.clone() };
        let names: Vec<RoleName> = list.iter().map(name).collect();
        self.refuse_mandatory(&names)?;
        let forget = |usages: &Usages| names.iter().for_each(|name| usages.forget(&name.user, &name.host));
        let drop = |accounts: &mut Vec<Account>| {
            let mut missing = Vec::new();
            for name in &names {
                match accounts.iter().position(|account| account.is(&name.user, &name.host)) {
                    Some(index) => {
                        authority.check(accounts, index)?;
                        accounts.remove(index);
                        roles::forget(accounts, name);
                    }
                    None => missing.push(shown(&name.user, &name.host)),
                }
            }
            unless_tolerated(statement, missing, if_exists)
        };
        self.change_then(drop, forget)
    }

    /// ALTER USER, SET PASSWORD: all of them or none; 1396 names those that do not exist, which are returned
    /// with `if_exists`. What is not said stays as it is.
    pub fn alter_all(
        &self,
        list: &[AccountChange],
        if_exists: bool,
        authority: Authority,
    ) -> Result<Vec<String>, SqlError> {
        // Each hash takes milliseconds: one for an account.
        let mut named = std::collections::HashSet::new();
        let name = |change: &AccountChange| (change.user.clone(), change.host.to_ascii_lowercase());
        let twice = list.iter().filter(|change| !named.insert(name(change)));
        unless_tolerated(
            "ALTER USER",
            twice.map(|change| shown(&change.user, &change.host)).collect(),
            false,
        )?;
        let (resolved, now) = (self.resolve(list)?, now_unix_s());
        let forget = |usages: &Usages| list.iter().for_each(|change| usages.forget_by(change));
        let alter = |accounts: &mut Vec<Account>| {
            let mut missing = Vec::new();
            for (change, by) in list.iter().zip(resolved) {
                match accounts.iter().position(|account| account.is(&change.user, &change.host)) {
                    Some(index) => {
                        authority.check(accounts, index)?;
                        let account = &mut accounts[index];
                        // First: a new password is kept by the new rules, and it may expire at once.
                        account.password.take(&change.password);
                        if let Some(by) = by {
                            account.refuse_used(change, &self.defaults, now)?;
                            account.set_password(by, &self.defaults, now);
                        }
                        account.take_options(change);
                    }
                    None => missing.push(shown(&change.user, &change.host)),
                }
            }
            unless_tolerated("ALTER USER", missing, if_exists)
        };
        self.change_then(alter, forget)
    }

    /// [`create_all`](Self::create_all) of one account.
    pub fn create(
        &self,
        user: &str,
        host: &str,
        by: &Identification,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let by = Some(by.clone());
        let change = AccountChange { user: user.into(), host: host.into(), by, ..Default::default() };
        self.create_all(&[change], if_not_exists).map(drop)
    }

    /// Whether there is such an account.
    pub fn exists(&self, user: &str, host: &str) -> bool {
        self.stored.read().accounts.iter().any(|account| account.is(user, host))
    }

    /// What is to be stored for each: hashed outside the lock that logins read under.
    fn resolve(&self, list: &[AccountChange]) -> Result<Vec<Option<(String, String)>>, SqlError> {
        let plugin_now = |change: &AccountChange| {
            let stored = self.stored.read();
            let found = stored.accounts.iter().find(|account| account.is(&change.user, &change.host));
            found.map_or(DEFAULT_PLUGIN, Account::plugin)
        };
        list.iter()
            .map(|change| change.by.as_ref().map(|by| by.resolve(plugin_now(change))).transpose())
            .collect()
    }

    /// GRANT: gives privileges on an object to all of them or none, and makes those that come with a
    /// password. 1410 for an account that does not exist.
    pub fn grant_all(
        &self,
        list: &[AccountChange],
        what: Privileges,
        object: &Object,
        authority: Authority,
    ) -> Result<(), SqlError> {
        self.grant_with_columns(list, what, &[], object, authority)
    }

    /// The same, with privileges on columns of the object, which is a table.
    pub fn grant_with_columns(
        &self,
        list: &[AccountChange],
        what: Privileges,
        columns: &OnColumns,
        object: &Object,
        authority: Authority,
    ) -> Result<(), SqlError> {
        let (resolved, now) = (self.resolve(list)?, now_unix_s());
        self.change(|accounts| {
            for (change, by) in list.iter().zip(resolved) {
                let (user, host) = (&change.user, &change.host);
                let index = match accounts.iter().position(|account| account.is(user, host)) {
                    Some(index) => {
                        authority.check(accounts, index)?;
                        if let Some(by) = by {
                            accounts[index].refuse_used(change, &self.defaults, now)?;
                            accounts[index].set_password(by, &self.defaults, now);
                        }
                        index
                    }
                    None => {
                        let missing = || error(errors::CANT_CREATE_USER_WITH_GRANT, &[]);
                        let by = by.ok_or_else(missing)?;
                        check_name(user, host)?;
                        let mut account = Account::new(user, host, by);
                        account.note_password(&self.defaults);
                        accounts.push(account);
                        accounts.len() - 1
                    }
                };
                let mut rights = accounts[index].rights();
                if !what.is_empty() {
                    rights.grant(object, what);
                }
                if let Object::Table(database, table) = object {
                    rights.grant_columns(database, table, columns);
                }
                accounts[index].set_rights(&rights);
            }
            Ok(())
        })
    }

    /// REVOKE: takes privileges on an object back from all of them or none. 1141 when nothing is granted
    /// there, 1147 for a table.
    pub fn revoke_all(
        &self,
        list: &[(String, String)],
        what: Privileges,
        columns: &OnColumns,
        object: &Object,
        authority: Authority,
    ) -> Result<(), SqlError> {
        self.change_rights(list, authority, no_such_grant, |user, host, rights| {
            let on_columns = match object {
                Object::Table(database, table) => rights.revoke_columns(database, table, columns),
                _ => true,
            };
            let only_columns = what.is_empty() && !columns.is_empty();
            let on_object = only_columns || rights.revoke(object, what) || *object == Object::Everything;
            if on_columns && on_object {
                return Ok(());
            }
            Err(match object {
                Object::Table(_, table) => error(errors::NONEXISTING_TABLE_GRANT, &[&user, &host, table]),
                _ => no_such_grant(user, host),
            })
        })
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION: takes everything back, from all of them or none.
    pub fn revoke_everything(&self, list: &[(String, String)], authority: Authority) -> Result<(), SqlError> {
        let missing = |_: &str, _: &str| error(errors::REVOKE_GRANTS, &[]);
        self.change_rights(list, authority, missing, |_, _, rights| {
            *rights = Rights::default();
            Ok(())
        })
    }

    fn change_rights(
        &self,
        list: &[(String, String)],
        authority: Authority,
        missing: impl Fn(&str, &str) -> SqlError,
        change: impl Fn(&str, &str, &mut Rights) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.change(|accounts| {
            for (user, host) in list {
                let index = accounts.iter().position(|account| account.is(user, host));
                let index = index.ok_or_else(|| missing(user, host))?;
                authority.check(accounts, index)?;
                let account = &mut accounts[index];
                let mut rights = account.rights();
                change(user, host, &mut rights)?;
                account.set_rights(&rights);
            }
            Ok(())
        })
    }

    /// Rows of SHOW GRANTS, without roles.
    pub fn grants(&self, user: &str, host: &str) -> Result<Vec<String>, SqlError> {
        self.grants_with(&RoleName { user: user.into(), host: host.into() }, &[])
    }

    /// Every account, for information_schema and `mysql.user`.
    pub fn known(&self) -> Vec<KnownAccount> {
        let known = |(account, is_system_user): (&Account, bool)| KnownAccount {
            is_system_user,
            user: account.user.clone(),
            host: account.host.clone(),
            rights: account.rights(),
            roles: account.roles.iter().map(|granted| (granted.role.name(), granted.admin)).collect(),
            default_roles: account.default_roles.iter().map(StoredRole::name).collect(),
            expired: account.expired,
            password_set_unix_s: account.password_set_unix_s,
            password_lifetime_days: account.password.lifetime_days,
            password_history: account.password.history,
            password_reuse_days: account.password.reuse_days,
            requires_current: account.password.requires_current,
            failed_attempts: account.password.failed_attempts,
            lock_days: account.password.lock_days,
            limits: account.limits.all(),
            plugin: account.plugin(),
            authentication: account.authentication_string.clone(),
            locked: account.locked,
            ssl_type: match account.requires {
                Security::None => "",
                Security::Encrypted => "ANY",
                Security::Certificate => "X509",
            },
        };
        let stored = self.stored.read();
        stored.accounts.iter().zip(roles::system_users(&stored.accounts)).map(known).collect()
    }

    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Account>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.change_then(change, |_| ())
    }

    /// The same; `then` changes what has been used up, when the accounts have changed.
    pub(super) fn change_then<T>(
        &self,
        change: impl FnOnce(&mut Vec<Account>) -> Result<T, SqlError>,
        then: impl FnOnce(&Usages),
    ) -> Result<T, SqlError> {
        let _one = self.changes.lock();
        let mut changed = self.stored.read().clone();
        let outcome = change(&mut changed.accounts)?;
        self.save(&changed).map_err(|error| {
            SqlError::new(1026, b"HY000", format!("Error writing file '{FILE_NAME}' ({error})"))
        })?;
        self.usages.set_limited(changed.accounts.iter().any(|account| account.limits.limit_statements()));
        *self.stored.write() = changed;
        then(&self.usages);
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(outcome)
    }

    fn save(&self, stored: &Stored) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        private_file::replace(path, &serde_json::to_vec_pretty(stored)?)?;
        self.is_older.store(false, Ordering::Relaxed);
        Ok(())
    }
}

pub(super) fn shown(user: &str, host: &str) -> String {
    format!("'{user}'@'{host}'")
}

/// Accounts that were there (or not there) against what the statement supposed: returned, or error 1396.
pub(super) fn unless_tolerated(
    operation: &str,
    accounts: Vec<String>,
    tolerated: bool,
) -> Result<Vec<String>, SqlError> {
    if tolerated || accounts.is_empty() {
        return Ok(accounts);
    }
    Err(error(errors::INVALID_PASSWORD, &[&operation, &accounts.join(",")]))
}

/// Longest user name and host part, in characters, as MySQL has them.
const USER_CHARS_MAX: usize = 32;
const HOST_CHARS_MAX: usize = 255;

pub(super) fn check_name(user: &str, host: &str) -> Result<(), SqlError> {
    let named = [("user name", user, USER_CHARS_MAX), ("host name", host, HOST_CHARS_MAX)];
    for (what, name, max) in named {
        if name.chars().count() > max {
            return Err(error(errors::WRONG_STRING_LENGTH, &[&name, &what, &max]));
        }
    }
    Ok(())
}

pub(super) fn no_such_grant(user: &str, host: &str) -> SqlError {
    error(errors::NONEXISTING_GRANT, &[&user, &host])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use sql::privilege::Level;

    use super::*;

    #[test]
    fn the_most_specific_host_wins() {
        let accounts = Accounts::default();
        for host in ["%", "10.0.%", "10.0.0.9", "localhost"] {
            accounts.create("u", host, &Identification::default(), false).unwrap();
        }
        let host = |address: &str, local| {
            let peer = Peer { local, ..Peer::over_network(address.parse().unwrap()) };
            accounts.find("u", &peer).map(|account| account.host)
        };
        assert_eq!(host("10.0.0.9", false).as_deref(), Some("10.0.0.9"));
        assert_eq!(host("10.0.1.1", false).as_deref(), Some("10.0.%"));
        assert_eq!(host("192.168.1.1", false).as_deref(), Some("%"));
        assert_eq!(host("127.0.0.1", true).as_deref(), Some("localhost"));
    }

    #[test]
    fn changes_survive_reopening() {
        let directory = std::env::temp_dir().join(format!("untorn-accounts-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let lost = Accounts::prepare(&directory, WhenMissing::Refuse).unwrap_err().to_string();
        assert!(lost.contains("--untorn-init-accounts"), "{lost}");
        assert!(Accounts::open(&directory).is_err(), "made out of nothing");
        Accounts::prepare(&directory, WhenMissing::Create).unwrap();
        Accounts::prepare(&directory, WhenMissing::Refuse).unwrap();
        let accounts = Accounts::open(&directory).unwrap();
        assert_eq!(accounts.without_password(), ["'root'@'localhost'"]);
        let object = Object::Database("a".into());
        let root = AccountChange { user: "root".into(), host: "localhost".into(), ..Default::default() };
        accounts.grant_all(&[root], Privileges::SELECT, &object, Authority::System).unwrap();
        accounts.create("x", "%", &Identification::default(), false).unwrap();
        assert_eq!(accounts.create("x", "%", &Identification::default(), false).unwrap_err().code, 1396);
        let again = Accounts::open(&directory).unwrap();
        assert_eq!(
            again.grants("root", "localhost").unwrap(),
            [
                "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
                "GRANT SELECT ON `a`.* TO `root`@`localhost`"
            ]
        );
        assert_eq!(again.grants("x", "%").unwrap(), ["GRANT USAGE ON *.* TO `x`@`%`"]);
        let all = Privileges::all(Level::Global) | Privileges::GRANT_OPTION;
        assert_eq!(again.rights("root", "localhost"), accounts.rights("root", "localhost"));
        assert!(again.rights("root", "localhost").global().has(all));
        assert_eq!(again.rights("x", "%"), Rights::default());
        fs::remove_dir_all(&directory).unwrap();
    }
}
