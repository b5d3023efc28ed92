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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use sql::errors::{self, error};
use sql::facts::KnownAccount;
use sql::privilege::{Level, Object, Privileges, Rights};
use sql::result::SqlError;

use crate::private_file;

use super::{DEFAULT_PLUGIN, Peer, Security, host, native, sha2_password};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "untorn-accounts.json";

/// What is held on one object, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Grant {
    /// No database: `*.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// No table: `db.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    /// Names of the privileges; `ALL PRIVILEGES` for all of the level, which is more in a version that knows
    /// more.
    privileges: Vec<String>,
}

const ALL: &str = "ALL PRIVILEGES";

impl Grant {
    fn of(object: &Object, what: Privileges) -> Grant {
        let (database, table) = match object {
            Object::Everything => (None, None),
            Object::Database(database) => (Some(database.clone()), None),
            Object::Table(database, table) => (Some(database.clone()), Some(table.clone())),
        };
        let all = Privileges::all(object.level());
        let (first, rest) = if what.has(all) { (Some(ALL), what.without(all)) } else { (None, what) };
        let privileges = first.into_iter().chain(rest.names()).map(str::to_owned).collect();
        Grant { database, table, privileges }
    }

    fn object(&self) -> Object {
        match (&self.database, &self.table) {
            (None, _) => Object::Everything,
            (Some(database), None) => Object::Database(database.clone()),
            (Some(database), Some(table)) => Object::Table(database.clone(), table.clone()),
        }
    }

    fn what(&self) -> Privileges {
        let named = Privileges::from_names(self.privileges.iter().map(String::as_str));
        if self.privileges.iter().any(|name| name == ALL) {
            named | Privileges::all(self.object().level())
        } else {
            named
        }
    }
}

/// One account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// User name.
    pub user: String,
    /// Host part.
    pub host: String,
    plugin: String,
    /// Stored form of the password; empty for none.
    pub authentication_string: String,
    /// `ACCOUNT LOCK`: nobody may log in to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// `REQUIRE`: what a connection needs to be served.
    #[serde(default, skip_serializing_if = "Security::is_none")]
    pub requires: Security,
    #[serde(default)]
    grants: Vec<Grant>,
}

impl Account {
    /// The authentication method.
    pub fn plugin(&self) -> &'static str {
        if self.plugin == native::PLUGIN { native::PLUGIN } else { sha2_password::PLUGIN }
    }

    fn rights(&self) -> Rights {
        Rights::new(self.grants.iter().map(|grant| (grant.object(), grant.what())).collect())
    }

    fn set_rights(&mut self, rights: &Rights) {
        self.grants = rights.all().iter().map(|(object, what)| Grant::of(object, *what)).collect();
    }

    fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }

    /// Whether only accounts with SYSTEM_USER may change it.
    fn is_system_user(&self) -> bool {
        self.rights().global().has(Privileges::SYSTEM_USER)
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

impl Authority {
    fn check(self, account: &Account) -> Result<(), SqlError> {
        if self == Authority::Ordinary && account.is_system_user() {
            return Err(error(errors::SPECIFIC_ACCESS_DENIED, &[&"SYSTEM_USER"]));
        }
        Ok(())
    }
}

/// One account of CREATE USER or ALTER USER.
#[derive(Debug, Clone, Default)]
pub struct AccountChange {
    /// User name.
    pub user: String,
    /// Host part.
    pub host: String,
    /// Its password from now on; `None` leaves it (ALTER USER) or is no password (CREATE USER).
    pub by: Option<Identification>,
    /// `ACCOUNT LOCK` or `UNLOCK`.
    pub locked: Option<bool>,
    /// `REQUIRE`.
    pub requires: Option<Security>,
}

/// How CREATE USER / ALTER USER name the password.
#[derive(Debug, Clone, Default)]
pub struct Identification {
    /// `IDENTIFIED WITH <plugin>`.
    pub plugin: Option<String>,
    /// `BY '...'`: the clear password.
    pub password: Option<Vec<u8>>,
    /// `AS '...'`: the stored hash.
    pub hash: Option<Vec<u8>>,
}

impl Identification {
    fn resolve(&self, current_plugin: &str) -> Result<(String, String), SqlError> {
        let plugin = match self.plugin.as_deref() {
            None => current_plugin,
            Some(name) if name.eq_ignore_ascii_case(native::PLUGIN) => native::PLUGIN,
            Some(name) if name.eq_ignore_ascii_case(sha2_password::PLUGIN) => sha2_password::PLUGIN,
            Some(name) => {
                return Err(SqlError::new(1524, b"HY000", format!("Plugin '{name}' is not loaded")));
            }
        };
        let stored = match (&self.password, &self.hash) {
            (Some(password), _) if password.len() > sha2_password::PASSWORD_BYTES_MAX => {
                return Err(SqlError::new(1819, b"HY000", "The password is longer than 256 bytes"));
            }
            (Some(password), _) if plugin == native::PLUGIN => native::stored(password),
            (Some(password), _) => sha2_password::stored(password),
            (None, Some(hash)) => {
                let text = String::from_utf8_lossy(hash).into_owned();
                let fits = if plugin == native::PLUGIN {
                    native::is_stored(&text)
                } else {
                    sha2_password::is_stored(&text)
                };
                if !fits {
                    return Err(SqlError::new(
                        1827,
                        b"HY000",
                        "The password hash doesn't have the expected format.",
                    ));
                }
                text
            }
            (None, None) => String::new(),
        };
        Ok((plugin.to_owned(), stored))
    }
}

/// Version of the file. 3 has `locked`, 4 has `requires`, which older programs would overlook.
const VERSION: u64 = 4;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Stored {
    version: u64,
    accounts: Vec<Account>,
}

impl Stored {
    fn fresh() -> Stored {
        Stored { version: VERSION, accounts: vec![first_account()] }
    }
}

/// The accounts.
#[derive(Default)]
pub struct Accounts {
    path: Option<PathBuf>,
    stored: RwLock<Stored>,
    remembered: RwLock<HashMap<(String, String), (String, sha2_password::Digest)>>,
    generation: AtomicU64,
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

    /// Reads the accounts of a data directory, whose lock the caller holds.
    ///
    /// # Errors
    /// There is no file ([`prepare`](Self::prepare)), or it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        let context =
            |kind, why: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {why}", path.display()));
        let bytes = fs::read(&path).map_err(|error| context(error.kind(), &error))?;
        let stored = read_stored(&bytes).map_err(|why| context(io::ErrorKind::InvalidData, &why))?;
        Ok(Self { path: Some(path), stored: RwLock::new(stored), ..Self::default() })
    }

    /// Accounts that live in memory only, with `root@localhost` (measuring, tests).
    pub fn in_memory() -> Self {
        Self { stored: RwLock::new(Stored::fresh()), ..Self::default() }
    }

    /// Accounts without a password, as `'user'@'host'`.
    pub fn without_password(&self) -> Vec<String> {
        let stored = self.stored.read();
        let open = stored.accounts.iter().filter(|account| account.authentication_string.is_empty());
        open.map(|account| format!("'{}'@'{}'", account.user, account.host)).collect()
    }

    /// The account a client logs in to.
    pub fn find(&self, user: &str, peer: &Peer) -> Option<Account> {
        let stored = self.stored.read();
        let of_user = stored.accounts.iter().filter(|account| account.user == user);
        let fitting = of_user.filter_map(|account| Some((host::fit(&account.host, peer)?, account)));
        fitting.max_by_key(|(specificity, _)| *specificity).map(|(_, account)| account.clone())
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

    /// CREATE USER: all of them or none; 1396 names those that exist. With `if_not_exists` they are left as
    /// they are and returned.
    pub fn create_all(&self, list: &[AccountChange], if_not_exists: bool) -> Result<Vec<String>, SqlError> {
        let mut made = Vec::with_capacity(list.len());
        for change in list {
            check_name(&change.user, &change.host)?;
            let by = change.by.as_ref();
            let (plugin, authentication_string) = by.map_or_else(
                || Ok((DEFAULT_PLUGIN.to_owned(), String::new())),
                |by| by.resolve(DEFAULT_PLUGIN),
            )?;
            made.push(Account {
                user: change.user.clone(),
                host: change.host.clone(),
                plugin,
                authentication_string,
                locked: change.locked.unwrap_or(false),
                requires: change.requires.unwrap_or_default(),
                grants: Vec::new(),
            });
        }
        self.change(|accounts| {
            let mut existing = Vec::new();
            for account in made {
                if accounts.iter().any(|other| other.is(&account.user, &account.host)) {
                    existing.push(shown(&account.user, &account.host));
                } else {
                    accounts.push(account);
                }
            }
            unless_tolerated("CREATE USER", existing, if_not_exists)
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
        self.change(|accounts| {
            let mut missing = Vec::new();
            for (user, host) in list {
                match accounts.iter().position(|account| account.is(user, host)) {
                    Some(index) => {
                        authority.check(&accounts[index])?;
                        accounts.remove(index);
                    }
                    None => missing.push(shown(user, host)),
                }
            }
            unless_tolerated("DROP USER", missing, if_exists)
        })
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
        let twice = list.iter().filter(|change| !named.insert((&change.user, &change.host)));
        unless_tolerated(
            "ALTER USER",
            twice.map(|change| shown(&change.user, &change.host)).collect(),
            false,
        )?;
        let resolved = self.resolve(list)?;
        self.change(|accounts| {
            let mut missing = Vec::new();
            for (change, by) in list.iter().zip(resolved) {
                match accounts.iter_mut().find(|account| account.is(&change.user, &change.host)) {
                    Some(account) => {
                        authority.check(account)?;
                        if let Some(by) = by {
                            (account.plugin, account.authentication_string) = by;
                        }
                        account.locked = change.locked.unwrap_or(account.locked);
                        account.requires = change.requires.unwrap_or(account.requires);
                    }
                    None => missing.push(shown(&change.user, &change.host)),
                }
            }
            unless_tolerated("ALTER USER", missing, if_exists)
        })
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
        let resolved = self.resolve(list)?;
        self.change(|accounts| {
            for (change, by) in list.iter().zip(resolved) {
                let (user, host) = (&change.user, &change.host);
                let index = match accounts.iter().position(|account| account.is(user, host)) {
                    Some(index) => {
                        authority.check(&accounts[index])?;
                        if let Some(by) = by {
                            (accounts[index].plugin, accounts[index].authentication_string) = by;
                        }
                        index
                    }
                    None => {
                        let missing = || error(errors::CANT_CREATE_USER_WITH_GRANT, &[]);
                        let (plugin, authentication_string) = by.ok_or_else(missing)?;
                        check_name(user, host)?;
                        accounts.push(Account {
                            user: user.clone(),
                            host: host.clone(),
                            plugin,
                            authentication_string,
                            locked: false,
                            requires: Security::None,
                            grants: Vec::new(),
                        });
                        accounts.len() - 1
                    }
                };
                let mut rights = accounts[index].rights();
                if !what.is_empty() {
                    rights.grant(object, what);
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
        object: &Object,
        authority: Authority,
    ) -> Result<(), SqlError> {
        self.change_rights(list, authority, no_such_grant, |user, host, rights| {
            if rights.revoke(object, what) || *object == Object::Everything {
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
                let account = accounts.iter_mut().find(|account| account.is(user, host));
                let account = account.ok_or_else(|| missing(user, host))?;
                authority.check(account)?;
                let mut rights = account.rights();
                change(user, host, &mut rights)?;
                account.set_rights(&rights);
            }
            Ok(())
        })
    }

    /// Rows of SHOW GRANTS.
    pub fn grants(&self, user: &str, host: &str) -> Result<Vec<String>, SqlError> {
        let stored = self.stored.read();
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        let rights = account.ok_or_else(|| no_such_grant(user, host))?.rights();
        let line = |object: &Object, what: Privileges| {
            let all = Privileges::all(object.level());
            let plain = what.without(Privileges::GRANT_OPTION);
            let names = match plain {
                Privileges::NONE => "USAGE".to_owned(),
                plain if plain == all => ALL.to_owned(),
                plain => plain.list(),
            };
            let option = if what.has(Privileges::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" };
            format!("GRANT {names} ON {object} TO `{user}`@`{host}`{option}")
        };
        let mut rows = vec![line(&Object::Everything, rights.global())];
        let deeper = rights.all().iter().filter(|(object, _)| *object != Object::Everything);
        rows.extend(deeper.map(|(object, what)| line(object, *what)));
        Ok(rows)
    }

    /// Every account, for information_schema and `mysql.user`.
    pub fn known(&self) -> Vec<KnownAccount> {
        let known = |account: &Account| KnownAccount {
            user: account.user.clone(),
            host: account.host.clone(),
            rights: account.rights(),
            plugin: account.plugin(),
            authentication: account.authentication_string.clone(),
            locked: account.locked,
            ssl_type: match account.requires {
                Security::None => "",
                Security::Encrypted => "ANY",
                Security::Certificate => "X509",
            },
        };
        self.stored.read().accounts.iter().map(known).collect()
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Account>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let mut stored = self.stored.write();
        let mut changed = stored.clone();
        let outcome = change(&mut changed.accounts)?;
        self.save(&changed).map_err(|error| {
            SqlError::new(1026, b"HY000", format!("Error writing file '{FILE_NAME}' ({error})"))
        })?;
        *stored = changed;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(outcome)
    }

    fn save(&self, stored: &Stored) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        private_file::replace(path, &serde_json::to_vec_pretty(stored)?)
    }
}

fn first_account() -> Account {
    Account {
        user: "root".into(),
        host: "localhost".into(),
        plugin: DEFAULT_PLUGIN.into(),
        authentication_string: String::new(),
        locked: false,
        requires: Security::None,
        grants: vec![administrator()],
    }
}

fn administrator() -> Grant {
    Grant::of(&Object::Everything, Privileges::all(Level::Global) | Privileges::GRANT_OPTION)
}

/// The file's content. Version 1 kept grants as texts that nobody enforced: only the one that makes an
/// administrator is taken over, and the others are named in an error rather than dropped or, worse, read as
/// more than was meant.
fn read_stored(bytes: &[u8]) -> Result<Stored, String> {
    let mut json: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match json.get("version").and_then(serde_json::Value::as_u64) {
        Some(2..=VERSION) => {}
        Some(1) => {
            let administrator = administrator();
            for account in json.get_mut("accounts").and_then(|list| list.as_array_mut()).into_iter().flatten()
            {
                for grant in
                    account.get_mut("grants").and_then(|list| list.as_array_mut()).into_iter().flatten()
                {
                    let text = |name: &str| grant.get(name).and_then(|text| text.as_str()).unwrap_or("");
                    if (text("privileges"), text("object")) != (ALL, "*.*") {
                        return Err(format!(
                            "the grant of {} on {} is of version 1, where grants were not enforced: remove it from the \
                             file and grant it again",
                            text("privileges"),
                            text("object")
                        ));
                    }
                    *grant = serde_json::to_value(&administrator).map_err(|error| error.to_string())?;
                }
            }
        }
        Some(newer) => {
            return Err(format!("it is of version {newer}: start it with the program that wrote it"));
        }
        None => return Err("it contains no version: restore it from a backup".to_owned()),
    }
    let mut stored: Stored = serde_json::from_value(json).map_err(|error| error.to_string())?;
    stored.version = VERSION;
    Ok(stored)
}

fn shown(user: &str, host: &str) -> String {
    format!("'{user}'@'{host}'")
}

/// Accounts that were there (or not there) against what the statement supposed: returned, or error 1396.
fn unless_tolerated(
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

fn check_name(user: &str, host: &str) -> Result<(), SqlError> {
    let named = [("user name", user, USER_CHARS_MAX), ("host name", host, HOST_CHARS_MAX)];
    for (what, name, max) in named {
        if name.chars().count() > max {
            return Err(error(errors::WRONG_STRING_LENGTH, &[&name, &what, &max]));
        }
    }
    Ok(())
}

fn no_such_grant(user: &str, host: &str) -> SqlError {
    error(errors::NONEXISTING_GRANT, &[&user, &host])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    #[test]
    fn files_of_version_1() {
        let grant = |privileges: &str, object: &str| {
            format!(
                r#"{{"version":1,"accounts":[{{"user":"root","host":"localhost","plugin":"x","authentication_string":"",
                "grants":[{{"privileges":"{privileges}","object":"{object}","with_grant":true}}]}}]}}"#
            )
        };
        let stored = read_stored(grant("ALL PRIVILEGES", "*.*").as_bytes()).unwrap();
        assert!(stored.accounts[0].rights().global().has(Privileges::GRANT_OPTION | Privileges::SUPER));
        assert!(read_stored(grant("SELECT", "`a`.*").as_bytes()).unwrap_err().contains("grant it again"));
        assert!(read_stored(br#"{"version":5,"accounts":[]}"#).unwrap_err().contains("version 5"));
    }
}
