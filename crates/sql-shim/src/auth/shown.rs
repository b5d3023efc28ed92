//! What is shown of accounts: SHOW GRANTS and SHOW CREATE USER.

use std::collections::BTreeMap;

use sql::errors::{self, error};
use sql::privilege::{ColumnRights, Object, Privileges, RoleName};
use sql::result::SqlError;

use super::account_file::{ALL, StoredRole};
use super::accounts::{Accounts, no_such_grant, shown};
use super::password_rules::PasswordRules;
use super::{Security, roles::Choice};

/// How SHOW CREATE USER shows the stored form of the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAs {
    /// As text.
    Text,
    /// As hexadecimal digits (`print_identified_with_as_hex`).
    Hex,
    /// Not: who asks may not give the account another password.
    Secret,
}

/// The privileges of one object, those on columns behind each that has some.
fn privilege_list(object: &Object, what: Privileges, columns: Option<&ColumnRights>) -> String {
    let plain = what.without(Privileges::GRANT_OPTION);
    if plain == Privileges::all(object.level()) {
        return ALL.to_owned();
    }
    let on_columns = |privilege: Privileges| {
        let held = columns.into_iter().flat_map(BTreeMap::values).filter(|(_, what)| what.has(privilege));
        let names: Vec<String> = held.map(|(name, _)| quoted(name)).collect();
        (!names.is_empty()).then(|| format!("{} ({})", privilege.list(), names.join(", ")))
    };
    let with_columns = plain | Privileges::of_columns();
    let list: Vec<String> = with_columns
        .each()
        .flat_map(|privilege| [plain.has(privilege).then(|| privilege.list()), on_columns(privilege)])
        .flatten()
        .collect();
    if list.is_empty() { "USAGE".to_owned() } else { list.join(", ") }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn listed<'r>(roles: impl Iterator<Item = &'r RoleName>) -> String {
    roles.map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl Accounts {
    /// Rows of SHOW GRANTS, with what these roles bring (3530 for one that is not granted).
    pub fn grants_using(&self, account: &RoleName, using: &[RoleName]) -> Result<Vec<String>, SqlError> {
        let (user, host) = (&account.user, &account.host);
        if !self.exists(user, host) {
            return Err(no_such_grant(user, host));
        }
        self.chosen(account, &Choice::List(using.to_vec()))?;
        self.grants_with(account, using)
    }

    /// The same, where roles that are not granted (any more) bring nothing.
    pub fn grants_with(&self, account: &RoleName, active: &[RoleName]) -> Result<Vec<String>, SqlError> {
        let (user, host) = (&account.user, &account.host);
        let rights = self.rights_with(user, host, active);
        let mandatory = self.mandatory_roles();
        let stored = self.stored.read();
        let own = stored.accounts.iter().find(|known| known.is(user, host));
        let own = own.ok_or_else(|| no_such_grant(user, host))?;
        let mut objects = vec![Object::Everything];
        objects.extend(rights.all().iter().map(|(object, _)| object.clone()));
        let tables = rights.all_columns().map(|(database, table, _)| (database.to_owned(), table.to_owned()));
        objects.extend(tables.map(|(database, table)| Object::Table(database, table)));
        objects.sort();
        objects.dedup();
        let line = |object: &Object| {
            let what = rights.exactly_on(object);
            let columns = match object {
                Object::Table(database, table) => rights.columns_of(database, table),
                _ => None,
            };
            let names = privilege_list(object, what, columns);
            let option = if what.has(Privileges::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" };
            format!("GRANT {names} ON {object} TO {account}{option}")
        };
        let mut rows: Vec<String> = objects.iter().map(line).collect();
        for (wanted, option) in [(false, ""), (true, " WITH ADMIN OPTION")] {
            let granted = own.roles.iter().filter(|granted| granted.admin == wanted);
            let mut roles: Vec<RoleName> = granted.map(|granted| granted.role.name()).collect();
            let has = |role: &&RoleName| own.roles.iter().any(|of| role.is(&of.role.user, &of.role.host));
            let exists = |role: &&RoleName| stored.accounts.iter().any(|of| role.is(&of.user, &of.host));
            if !wanted {
                let of_all = mandatory.iter().filter(exists).filter(|role| !has(role) && *role != account);
                roles.extend(of_all.cloned());
            }
            roles.sort();
            if !roles.is_empty() {
                rows.push(format!("GRANT {} TO {account}{option}", listed(roles.iter())));
            }
        }
        Ok(rows)
    }

    /// The text of SHOW CREATE USER.
    pub fn create_text(&self, account: &RoleName, hash: HashAs) -> Result<String, SqlError> {
        let (user, host) = (&account.user, &account.host);
        let stored = self.stored.read();
        let found = stored
            .accounts
            .iter()
            .find(|known| known.is(user, host))
            .ok_or_else(|| error(errors::INVALID_PASSWORD, &[&"SHOW CREATE USER", &shown(user, host)]))?;
        let mut text = format!("CREATE USER {account} IDENTIFIED WITH '{}'", found.plugin());
        let secret = &*found.authentication_string;
        match hash {
            _ if secret.is_empty() => {}
            HashAs::Text => text.push_str(&format!(" AS '{}'", escaped(secret))),
            HashAs::Secret => text.push_str(" AS '<secret>'"),
            HashAs::Hex => {
                text.push_str(" AS 0x");
                text.extend(secret.bytes().map(|byte| format!("{byte:02X}")));
            }
        }
        if !found.default_roles.is_empty() {
            let mut roles: Vec<RoleName> = found.default_roles.iter().map(StoredRole::name).collect();
            roles.sort();
            text.push_str(&format!(" DEFAULT ROLE {}", listed(roles.iter())));
        }
        let requires = match found.requires {
            Security::None => "NONE",
            Security::Encrypted => "SSL",
            Security::Certificate => "X509",
        };
        text.push_str(&format!(" REQUIRE {requires}"));
        if !found.limits.are_none() {
            let names = ["QUERIES_PER_HOUR", "UPDATES_PER_HOUR", "CONNECTIONS_PER_HOUR", "USER_CONNECTIONS"];
            text.push_str(" WITH");
            for (name, limit) in names.iter().zip(found.limits.all()).filter(|(_, limit)| *limit > 0) {
                text.push_str(&format!(" MAX_{name} {limit}"));
            }
        }
        let lock = if found.locked { "LOCK" } else { "UNLOCK" };
        text.push_str(&found.password.text(found.expired, lock));
        Ok(text)
    }
}

impl PasswordRules {
    /// The end of SHOW CREATE USER.
    fn text(&self, expired: bool, lock: &str) -> String {
        let expire = match self.lifetime_days {
            _ if expired => String::new(),
            None => " DEFAULT".to_owned(),
            Some(0) => " NEVER".to_owned(),
            Some(days) => format!(" INTERVAL {days} DAY"),
        };
        let default = || "DEFAULT".to_owned();
        let history = self.history.map_or_else(default, |number| number.to_string());
        let reuse = self.reuse_days.map_or_else(default, |days| format!("{days} DAY"));
        let current = match self.requires_current {
            None => " DEFAULT",
            Some(true) => "",
            Some(false) => " OPTIONAL",
        };
        let mut text = format!(
            " PASSWORD EXPIRE{expire} ACCOUNT {lock} PASSWORD HISTORY {history} PASSWORD REUSE INTERVAL {reuse} \
             PASSWORD REQUIRE CURRENT{current}"
        );
        if self.failed_attempts > 0 {
            text.push_str(&format!(" FAILED_LOGIN_ATTEMPTS {}", self.failed_attempts));
        }
        match self.lock_days {
            0 => {}
            -1 => text.push_str(" PASSWORD_LOCK_TIME UNBOUNDED"),
            days => text.push_str(&format!(" PASSWORD_LOCK_TIME {days}")),
        }
        text
    }
}

/// A text between single quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => escaped.push_str("\\0"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\u{1a}' => escaped.push_str("\\Z"),
            '\\' | '\'' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
