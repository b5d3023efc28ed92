//! Who may log in: a small JSON file in the data directory, written whole and atomically on every change.
//!
//! An account is a user name and a host part: `localhost` (the local socket and the loopback interface), `%`, an
//! address, or a pattern with `%` and `_`. Of several that fit the most specific wins, as in MySQL. Privileges are kept
//! as granted and listed by SHOW GRANTS; what is enforced is in `docs` of the SQL layer.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_PLUGIN, Peer, native, sha2_password};
use crate::result::SqlError;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "untorn-accounts.json";

/// A grant as given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// `ALL PRIVILEGES`, or a list such as `SELECT, INSERT`.
    pub privileges: String,
    /// `*.*`, `` `db`.* `` or `` `db`.`table` ``.
    pub object: String,
    /// WITH GRANT OPTION.
    #[serde(default)]
    pub with_grant: bool,
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
    /// What was granted.
    #[serde(default)]
    pub grants: Vec<Grant>,
}

impl Account {
    /// The authentication method.
    pub fn plugin(&self) -> &'static str {
        if self.plugin == native::PLUGIN { native::PLUGIN } else { sha2_password::PLUGIN }
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
        like(self.host.to_ascii_lowercase().as_bytes(), peer.host.to_ascii_lowercase().as_bytes())
    }

    /// Literal hosts before patterns, longer patterns before shorter.
    fn specificity(&self) -> (bool, usize) {
        let literal = !self.host.contains(['%', '_']);
        (literal, self.host.bytes().filter(|byte| !matches!(byte, b'%' | b'_')).count())
    }
}

fn like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'%', rest)), _) => {
            (0..=text.len()).any(|from| text.get(from..).is_some_and(|text| like(rest, text)))
        }
        (Some((b'_', rest)), Some((_, text))) => like(rest, text),
        (Some((wanted, rest)), Some((got, text))) => wanted == got && like(rest, text),
        _ => false,
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

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Stored {
    version: u32,
    accounts: Vec<Account>,
}

/// The accounts.
#[derive(Default)]
pub struct Accounts {
    path: Option<PathBuf>,
    stored: RwLock<Stored>,
    remembered: RwLock<HashMap<(String, String), (String, sha2_password::Digest)>>,
}

impl Accounts {
    /// Reads the accounts of a data directory; a new one gets `root@localhost` without a password.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE_NAME);
        let stored = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Stored { version: 1, accounts: vec![first_account()] }
            }
            Err(error) => return Err(error),
        };
        let accounts = Self { path: Some(path), stored: RwLock::new(stored), remembered: RwLock::default() };
        accounts.save(&accounts.stored.read())?;
        Ok(accounts)
    }

    /// Accounts that live in memory only, with `root@localhost` (measuring, tests).
    pub fn in_memory() -> Self {
        let stored = Stored { version: 1, accounts: vec![first_account()] };
        Self { path: None, stored: RwLock::new(stored), remembered: RwLock::default() }
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

    /// Whether the account may do everything.
    pub fn is_administrator(&self, user: &str, host: &str) -> bool {
        let stored = self.stored.read();
        stored.accounts.iter().filter(|account| account.is(user, host)).any(|account| {
            account.grants.iter().any(|grant| grant.object == "*.*" && grant.privileges == "ALL PRIVILEGES")
        })
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

    /// GRANT `privileges` ON `object` TO user (`object` as `*.*`, `db.*` or `db.table`).
    pub fn grant(
        &self,
        user: &str,
        host: &str,
        privileges: &str,
        object: &str,
        with_grant: bool,
    ) -> Result<(), SqlError> {
        let privileges = normal_privileges(privileges);
        self.change(|accounts| {
            let account = accounts.iter_mut().find(|account| account.is(user, host));
            let account = account.ok_or_else(|| {
                SqlError::new(1410, b"42000", "You are not allowed to create a user with GRANT")
            })?;
            let granted = account
                .grants
                .iter_mut()
                .find(|grant| grant.object == object && grant.privileges == privileges);
            match granted {
                Some(grant) => grant.with_grant |= with_grant,
                None => account.grants.push(Grant { privileges, object: object.into(), with_grant }),
            }
            Ok(())
        })
    }

    /// REVOKE: takes back the named privileges on that object; `ALL PRIVILEGES` takes back whatever was given there.
    pub fn revoke(&self, user: &str, host: &str, privileges: &str, object: &str) -> Result<(), SqlError> {
        let privileges = normal_privileges(privileges);
        self.change(|accounts| {
            let account = accounts.iter_mut().find(|account| account.is(user, host));
            let account = account.ok_or_else(|| no_such_grant(user, host))?;
            let before = account.grants.len();
            account.grants.retain(|grant| {
                grant.object != object || (privileges != "ALL PRIVILEGES" && grant.privileges != privileges)
            });
            if account.grants.len() == before { Err(no_such_grant(user, host)) } else { Ok(()) }
        })
    }

    /// Rows of SHOW GRANTS.
    pub fn grants(&self, user: &str, host: &str) -> Result<Vec<String>, SqlError> {
        let stored = self.stored.read();
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        let account = account.ok_or_else(|| no_such_grant(user, host))?;
        let mut rows = Vec::new();
        if !account.grants.iter().any(|grant| grant.object == "*.*") {
            rows.push(format!("GRANT USAGE ON *.* TO `{user}`@`{host}`"));
        }
        for grant in &account.grants {
            let option = if grant.with_grant { " WITH GRANT OPTION" } else { "" };
            rows.push(format!("GRANT {} ON {} TO `{user}`@`{host}`{option}", grant.privileges, grant.object));
        }
        Ok(rows)
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
        grants: vec![Grant { privileges: "ALL PRIVILEGES".into(), object: "*.*".into(), with_grant: true }],
    }
}

fn normal_privileges(privileges: &str) -> String {
    let upper = privileges.trim().to_ascii_uppercase();
    if upper == "ALL" { "ALL PRIVILEGES".into() } else { upper }
}

fn failed(operation: &str, user: &str, host: &str) -> SqlError {
    SqlError::new(1396, b"HY000", format!("Operation {operation} failed for '{user}'@'{host}'"))
}

fn no_such_grant(user: &str, host: &str) -> SqlError {
    SqlError::new(
        1141,
        b"42000",
        format!("There is no such grant defined for user '{user}' on host '{host}'"),
    )
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
        accounts.grant("root", "localhost", "select", "`a`.*", false).unwrap();
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
        assert!(again.is_administrator("root", "localhost") && !again.is_administrator("x", "%"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
