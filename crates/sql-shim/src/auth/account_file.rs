//! The file of accounts: what is in it, and which versions of it are read.
//!
//! A program refuses a file of a newer version: what that has learnt to restrict it would overlook. So each
//! thing that an older program would drop or not keep raises the version.

use serde::{Deserialize, Serialize};
use sql::privilege::{Level, Object, Privileges, Rights, RoleName};

use super::DEFAULT_PLUGIN;
use super::accounts::Account;

/// What is held on one object, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    /// No database: `*.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// No table: `db.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    /// Privileges on single columns of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<ColumnGrant>,
    /// Names of the privileges; `ALL PRIVILEGES` for all of the level, which is more in a version that knows
    /// more.
    privileges: Vec<String>,
}

/// What is held on a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnGrant {
    column: String,
    privileges: Vec<String>,
}

/// A role, and whether who has it may hand it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GrantedRole {
    /// Which.
    #[serde(flatten)]
    pub(super) role: StoredRole,
    /// `WITH ADMIN OPTION`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) admin: bool,
}

impl GrantedRole {
    /// A role that may not be handed on.
    pub(super) fn new(role: &RoleName) -> GrantedRole {
        GrantedRole { role: StoredRole::new(role), admin: false }
    }
}

/// The name of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRole {
    pub(super) user: String,
    pub(super) host: String,
}

pub(super) const ALL: &str = "ALL PRIVILEGES";

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
        Grant { database, table, columns: Vec::new(), privileges }
    }

    fn object(&self) -> Object {
        match (&self.database, &self.table) {
            (None, _) => Object::Everything,
            (Some(database), None) => Object::Database(database.clone()),
            (Some(database), Some(table)) => Object::Table(database.clone(), table.clone()),
        }
    }

    /// What these grants come to.
    pub(super) fn rights(grants: &[Grant]) -> Rights {
        let on_objects = grants.iter().map(|grant| (grant.object(), grant.what()));
        let mut rights = Rights::new(on_objects.filter(|(_, what)| !what.is_empty()).collect());
        for grant in grants {
            let (Some(database), Some(table)) = (&grant.database, &grant.table) else { continue };
            for ColumnGrant { column, privileges } in &grant.columns {
                let what = Privileges::from_names(privileges.iter().map(String::as_str));
                let what = what.only(Privileges::of_columns());
                rights.grant_columns(database, table, &[(what, vec![column.clone()])]);
            }
        }
        rights
    }

    /// These rights, as the file has them.
    pub(super) fn all_of(rights: &Rights) -> Vec<Grant> {
        let mut grants: Vec<_> = rights.all().iter().map(|(object, what)| Grant::of(object, *what)).collect();
        for (database, table, columns) in rights.all_columns() {
            let object = Object::Table(database.to_owned(), table.to_owned());
            let known = grants.iter().position(|grant| grant.object() == object);
            let at = known.unwrap_or_else(|| {
                grants.push(Grant::of(&object, Privileges::NONE));
                grants.len() - 1
            });
            let column = |(name, what): &(String, Privileges)| ColumnGrant {
                column: name.clone(),
                privileges: what.names().map(str::to_owned).collect(),
            };
            grants[at].columns = columns.values().map(column).collect();
        }
        grants
    }

    /// Whether what it is held on is said whole. What is left out must not make it one on more.
    fn is_whole(&self) -> bool {
        (self.table.is_none() || self.database.is_some()) && (self.columns.is_empty() || self.table.is_some())
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

/// Version of the file. 3 has `locked`, 4 has `requires`, 5 has roles, privileges on columns and `expired`, 6
/// rules for passwords, their ages, and limits, all of which older programs would overlook.
const VERSION: u64 = 6;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Stored {
    version: u64,
    pub(super) accounts: Vec<Account>,
}

impl Stored {
    /// A new directory's.
    pub(super) fn fresh() -> Stored {
        Stored { version: VERSION, accounts: vec![first_account()] }
    }
}

fn first_account() -> Account {
    let without_password = (DEFAULT_PLUGIN.to_owned(), String::new());
    Account { grants: vec![administrator()], ..Account::new("root", "localhost", without_password) }
}

fn administrator() -> Grant {
    Grant::of(&Object::Everything, Privileges::all(Level::Global) | Privileges::GRANT_OPTION)
}

/// The file's content. Version 1 kept grants as texts that nobody enforced: only the one that makes an
/// administrator is taken over, and the others are named in an error rather than dropped or, worse, read as
/// more than was meant. Passwords in files before version 6 count as set now. Also: whether the file is of an
/// older version.
pub(super) fn read_stored(bytes: &[u8], now_unix_s: u64) -> Result<(Stored, bool), String> {
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
    let is_whole = |account: &&Account| account.grants.iter().all(Grant::is_whole);
    if let Some(account) = stored.accounts.iter().find(|account| !is_whole(account)) {
        return Err(format!(
            "a grant of '{}'@'{}' names a table without its database, or columns without their table",
            account.user, account.host
        ));
    }
    let is_older = stored.version < VERSION;
    if stored.version < 6 {
        for account in &mut stored.accounts {
            // What had expired then was a role.
            (account.password_set_unix_s, account.closed) = (now_unix_s, account.expired);
        }
    }
    stored.version = VERSION;
    Ok((stored, is_older))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(bytes: &[u8]) -> Result<Stored, String> {
        read_stored(bytes, 77).map(|(stored, _)| stored)
    }

    #[test]
    fn files_of_version_1() {
        let grant = |privileges: &str, object: &str| {
            format!(
                r#"{{"version":1,"accounts":[{{"user":"root","host":"localhost","plugin":"x","authentication_string":"",
                "grants":[{{"privileges":"{privileges}","object":"{object}","with_grant":true}}]}}]}}"#
            )
        };
        let stored = read(grant("ALL PRIVILEGES", "*.*").as_bytes()).unwrap();
        assert!(stored.accounts[0].rights().global().has(Privileges::GRANT_OPTION | Privileges::SUPER));
        assert!(read(grant("SELECT", "`a`.*").as_bytes()).unwrap_err().contains("grant it again"));
        assert!(read(br#"{"version":7,"accounts":[]}"#).unwrap_err().contains("version 7"));
    }

    #[test]
    fn files_of_version_4_have_no_roles_and_no_columns() {
        let text =
            br#"{"version":4,"accounts":[{"user":"u","host":"%","plugin":"x","authentication_string":"",
            "locked":true,"grants":[{"database":"d","table":"t","privileges":["SELECT"]}]}]}"#;
        let stored = read(text).unwrap();
        let rights = stored.accounts[0].rights();
        assert_eq!(rights.on_table("d", "t"), Privileges::SELECT);
        assert!(stored.accounts[0].roles.is_empty() && !stored.accounts[0].expired);
        assert_eq!(stored.accounts[0].password_set_unix_s, 77, "its password has an age from now on");
        // What is written next is of this version.
        assert!(serde_json::to_string(&stored).unwrap().contains("\"version\":6"));
    }

    #[test]
    fn what_is_misspelt_gives_no_more() {
        let with_grant = |grant: &str| {
            let text = format!(
                r#"{{"version":5,"accounts":[{{"user":"u","host":"%","plugin":"x","authentication_string":"",
                "grants":[{grant}]}}]}}"#
            );
            read(text.as_bytes())
        };
        for grant in [
            r#"{"databse":"d","privileges":["SELECT"]}"#,
            r#"{"table":"t","privileges":["SELECT"]}"#,
            r#"{"database":"d","columns":[{"column":"c","privileges":["SELECT"]}],"privileges":[]}"#,
            r#"{"database":"d","table":"t","columns":[{"column":"c","privileges":[],"on":1}],"privileges":[]}"#,
        ] {
            assert!(with_grant(grant).is_err(), "{grant}");
        }
        let stored = with_grant(
            r#"{"database":"d","table":"t","columns":[{"column":"c","privileges":["DELETE","SELECT"]}],
            "privileges":[]}"#,
        );
        let rights = stored.unwrap().accounts[0].rights();
        assert_eq!(rights.on_column("d", "t", "c"), Privileges::SELECT);
        let unknown = br#"{"version":5,"accounts":[{"user":"u","host":"%","plugin":"x","lokced":true,
            "authentication_string":"","grants":[]}]}"#;
        assert!(read(unknown).unwrap_err().contains("lokced"));
    }

    #[test]
    fn columns_are_kept() {
        let mut rights = Rights::default();
        rights.grant_columns("d", "t", &[(Privileges::SELECT, vec!["a".into(), "B".into()])]);
        rights.grant_columns("d", "u", &[(Privileges::UPDATE, vec!["x".into()])]);
        rights.grant(&Object::Table("d".into(), "u".into()), Privileges::INSERT);
        let json = serde_json::to_string(&Grant::all_of(&rights)).unwrap();
        let read: Vec<Grant> = serde_json::from_str(&json).unwrap();
        assert_eq!(Grant::rights(&read), rights, "{json}");
    }
}
