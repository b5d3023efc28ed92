//! Who may log in: a small JSON file in the data directory, written whole and atomically on every change.
//!
//! An account is a user name and a host part: `localhost` (the local socket and the loopback interface), `%`, an
//! address, or a pattern with `%` and `_`. Of several that fit the most specific wins, as in MySQL.
//!
//! What an account may do is its [`Rights`]. Every change of any account raises the [`generation`](Accounts::generation):
//! a session keeps the rights it looked up, and the plans it checked, for as long as the number stays the same, so a
//! GRANT or REVOKE counts from the next statement on and costs the statements in between nothing but reading a number.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::privilege::{Level, Object, Privileges, Rights, matches};
use super::{DEFAULT_PLUGIN, Peer, native, sha2_password};
use crate::errors::{self, error};
use crate::result::SqlError;

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
    /// Names of the privileges; `ALL PRIVILEGES` for all of the level, which is more in a version that knows more.
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

    fn fits(&self, user: &str, peer: &Peer) -> bool {
        if self.user != user {
            return false;
        }
        if self.host.eq_ignore_ascii_case("localhost") {
            return peer.local;
        }
        matches(self.host.to_ascii_lowercase().as_bytes(), peer.host.to_ascii_lowercase().as_bytes())
    }

    /// Literal hosts before patterns, longer patterns before shorter.
    fn specificity(&self) -> (bool, usize) {
        let literal = !self.host.contains(['%', '_']);
        (literal, self.host.bytes().filter(|byte| !matches!(byte, b'%' | b'_')).count())
    }
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

/// Version of the file.
const VERSION: u64 = 2;

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
}

impl Accounts {
    /// Reads the accounts of a data directory; a new one gets `root@localhost` without a password.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        let stored = match fs::read(&path) {
            Ok(bytes) => read_stored(&bytes).map_err(|why| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored::fresh(),
            Err(error) => return Err(error),
        };
        let accounts = Self { path: Some(path), stored: RwLock::new(stored), ..Self::default() };
        accounts.save(&accounts.stored.read())?;
        Ok(accounts)
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
        let fitting = stored.accounts.iter().filter(|account| account.fits(user, peer));
        fitting.max_by_key(|account| account.specificity()).cloned()
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

    /// CREATE USER; 1396 when it exists and not `if_not_exists`.
    pub fn create(
        &self,
        user: &str,
        host: &str,
        by: &Identification,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let (plugin, authentication_string) = by.resolve(DEFAULT_PLUGIN)?;
        self.change(|accounts| {
            if accounts.iter().any(|account| account.is(user, host)) {
                return if if_not_exists { Ok(()) } else { Err(failed("CREATE USER", user, host)) };
            }
            accounts.push(Account {
                user: user.into(),
                host: host.into(),
                plugin,
                authentication_string,
                grants: Vec::new(),
            });
            Ok(())
        })
    }

    /// DROP USER; 1396 when it does not exist and not `if_exists`.
    pub fn drop(&self, user: &str, host: &str, if_exists: bool) -> Result<(), SqlError> {
        self.change(|accounts| {
            let before = accounts.len();
            accounts.retain(|account| !account.is(user, host));
            if accounts.len() == before && !if_exists { Err(failed("DROP USER", user, host)) } else { Ok(()) }
        })
    }

    /// ALTER USER ... IDENTIFIED, SET PASSWORD.
    pub fn alter(
        &self,
        user: &str,
        host: &str,
        by: &Identification,
        if_exists: bool,
    ) -> Result<(), SqlError> {
        self.change(|accounts| {
            let Some(account) = accounts.iter_mut().find(|account| account.is(user, host)) else {
                return if if_exists { Ok(()) } else { Err(failed("ALTER USER", user, host)) };
            };
            (account.plugin, account.authentication_string) = by.resolve(account.plugin())?;
            Ok(())
        })
    }

    /// GRANT: gives privileges on an object. 1410 for an account that does not exist.
    pub fn grant(&self, user: &str, host: &str, what: Privileges, object: &Object) -> Result<(), SqlError> {
        self.change_rights(user, host, |account| {
            let account = account.ok_or_else(|| error(errors::CANT_CREATE_USER_WITH_GRANT, &[]))?;
            let mut rights = account.rights();
            if !what.is_empty() {
                rights.grant(object, what);
            }
            account.set_rights(&rights);
            Ok(())
        })
    }

    /// REVOKE: takes privileges on an object back. 1141 when nothing is granted there, 1147 for a table.
    pub fn revoke(&self, user: &str, host: &str, what: Privileges, object: &Object) -> Result<(), SqlError> {
        self.change_rights(user, host, |account| {
            let account = account.ok_or_else(|| no_such_grant(user, host))?;
            let mut rights = account.rights();
            if !rights.revoke(object, what) && *object != Object::Everything {
                return Err(match object {
                    Object::Table(_, table) => error(errors::NONEXISTING_TABLE_GRANT, &[&user, &host, table]),
                    _ => no_such_grant(user, host),
                });
            }
            account.set_rights(&rights);
            Ok(())
        })
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION: takes everything back.
    pub fn revoke_all(&self, user: &str, host: &str) -> Result<(), SqlError> {
        self.change_rights(user, host, |account| {
            let account = account.ok_or_else(|| error(errors::REVOKE_GRANTS, &[]))?;
            account.set_rights(&Rights::default());
            Ok(())
        })
    }

    fn change_rights(
        &self,
        user: &str,
        host: &str,
        change: impl FnOnce(Option<&mut Account>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.change(|accounts| change(accounts.iter_mut().find(|account| account.is(user, host))))
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

    /// Every account with what it holds on everything, for information_schema.
    pub fn list_rights(&self) -> Vec<(String, String, Rights)> {
        let stored = self.stored.read();
        stored.accounts.iter().map(|a| (a.user.clone(), a.host.clone(), a.rights())).collect()
    }

    /// All accounts as (user, host, plugin), for `mysql.user`.
    pub fn list(&self) -> Vec<(String, String, String)> {
        let stored = self.stored.read();
        stored.accounts.iter().map(|a| (a.user.clone(), a.host.clone(), a.plugin().to_owned())).collect()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Account>) -> Result<(), SqlError>) -> Result<(), SqlError> {
        let mut stored = self.stored.write();
        let mut changed = stored.clone();
        change(&mut changed.accounts)?;
        self.save(&changed).map_err(|error| {
            SqlError::new(1026, b"HY000", format!("Error writing file '{FILE_NAME}' ({error})"))
        })?;
        *stored = changed;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn save(&self, stored: &Stored) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let directory = path.parent().unwrap_or(Path::new("."));
        let temporary = path.with_extension("json.new");
        let mut file = create_private(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(stored)?)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        fs::File::open(directory)?.sync_all()
    }
}

/// The file holds password hashes: only its owner may read it.
fn create_private(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn first_account() -> Account {
    Account {
        user: "root".into(),
        host: "localhost".into(),
        plugin: DEFAULT_PLUGIN.into(),
        authentication_string: String::new(),
        grants: vec![administrator()],
    }
}

fn administrator() -> Grant {
    Grant::of(&Object::Everything, Privileges::all(Level::Global) | Privileges::GRANT_OPTION)
}

/// The file's content. Version 1 kept grants as texts that nobody enforced: only the one that makes an administrator is
/// taken over, and the others are named in an error rather than dropped or, worse, read as more than was meant.
fn read_stored(bytes: &[u8]) -> Result<Stored, String> {
    let mut json: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match json.get("version").and_then(serde_json::Value::as_u64) {
        Some(VERSION) => {}
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
                             file and grant it anew",
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
        None => return Err("it names no version: restore it from a backup".to_owned()),
    }
    let mut stored: Stored = serde_json::from_value(json).map_err(|error| error.to_string())?;
    stored.version = VERSION;
    Ok(stored)
}

fn failed(operation: &str, user: &str, host: &str) -> SqlError {
    error(errors::INVALID_PASSWORD, &[&operation, &format!("'{user}'@'{host}'")])
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
            let peer = Peer { host: address.into(), local, private: false };
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
        let accounts = Accounts::open(&directory).unwrap();
        assert_eq!(accounts.without_password(), ["'root'@'localhost'"]);
        accounts.grant("root", "localhost", Privileges::SELECT, &Object::Database("a".into())).unwrap();
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
        assert!(read_stored(grant("SELECT", "`a`.*").as_bytes()).unwrap_err().contains("grant it anew"));
        assert!(read_stored(br#"{"version":3,"accounts":[]}"#).unwrap_err().contains("version 3"));
    }
}
