//! Roles: accounts that are granted to accounts.
//!
//! A role is an account like any other; CREATE ROLE makes one that nobody can log in to. A session may do
//! what its account holds and what its active roles hold, with the roles that are granted to those. An
//! active role counts only as long as it is granted: a REVOKE acts on sessions at once, as it does for the
//! privileges themselves, and so does DROP ROLE. CURRENT_ROLE() goes on naming it, as in MySQL.
//!
//! Grants of roles make no circles (4027), so what a role brings with it can be followed to its end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use sql::ast::Account as Named;
use sql::errors::{self, error};
use sql::privilege::{Privileges, Rights, RoleName};
use sql::result::SqlError;

use super::account_file::{GrantedRole, StoredRole};
use super::accounts::{Account, Accounts, Authority};
use crate::server::shared::Server;
use crate::variables::Value;

/// The variable.
const MANDATORY_ROLES: &str = "mandatory_roles";

/// `mandatory_roles`: granted to everybody.
#[derive(Default)]
pub(super) struct Mandatory(RwLock<Vec<RoleName>>);

/// Which roles are to become active, or default roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All that are granted but these.
    AllBut(Vec<RoleName>),
    /// These.
    List(Vec<RoleName>),
}

/// Error 3523.
fn unknown(name: &RoleName) -> SqlError {
    error(errors::UNKNOWN_AUTHID, &[name])
}

/// Error 3530.
fn not_granted(role: &RoleName, account: &RoleName) -> SqlError {
    error(errors::ROLE_NOT_GRANTED, &[role, account])
}

impl StoredRole {
    pub(super) fn new(name: &RoleName) -> StoredRole {
        StoredRole { user: name.user.clone(), host: name.host.clone() }
    }

    pub(super) fn name(&self) -> RoleName {
        RoleName { user: self.user.clone(), host: self.host.clone() }
    }
}

impl Account {
    /// Its name.
    pub(super) fn name(&self) -> RoleName {
        RoleName { user: self.user.clone(), host: self.host.clone() }
    }

    fn has_role(&self, role: &RoleName) -> bool {
        self.roles.iter().any(|granted| role.is(&granted.role.user, &granted.role.host))
    }

    fn lose_role(&mut self, role: &RoleName) {
        self.roles.retain(|granted| !role.is(&granted.role.user, &granted.role.host));
        self.default_roles.retain(|default| !role.is(&default.user, &default.host));
    }
}

/// The accounts by their names.
struct ByName<'a>(HashMap<(&'a str, String), &'a Account>);

impl<'a> ByName<'a> {
    fn new(accounts: &'a [Account]) -> ByName<'a> {
        let key = |account: &'a Account| (&*account.user, account.host.to_lowercase());
        ByName(accounts.iter().map(|account| (key(account), account)).collect())
    }

    fn get(&self, user: &str, host: &str) -> Option<&'a Account> {
        self.0.get(&(user, host.to_lowercase())).copied()
    }

    /// These accounts, and the roles that come with them.
    fn with_their_roles(&self, first: impl IntoIterator<Item = &'a Account>) -> Vec<&'a Account> {
        let (mut left, mut found) = (first.into_iter().collect::<Vec<_>>(), Vec::new());
        let mut seen = HashSet::new();
        while let Some(account) = left.pop() {
            if seen.insert(std::ptr::from_ref(account)) {
                found.push(account);
                let roles = account.roles.iter();
                left.extend(roles.filter_map(|granted| self.get(&granted.role.user, &granted.role.host)));
            }
        }
        found
    }
}

/// What an account may do with all of its roles.
pub(super) fn rights_with_all_roles(accounts: &[Account], account: &Account) -> Rights {
    let found = ByName::new(accounts).with_their_roles([account]);
    let mut rights = Rights::default();
    rights.add(&found.into_iter().map(Account::rights).collect::<Vec<_>>());
    rights
}

/// `mandatory_roles` is followed from now on. A value that is no list of roles is refused where it is set,
/// and said in the log where the server is started with it.
pub fn connect(server: &Server) {
    let set = server.accounts.mandatory_setter();
    if let Err(error) = set(&server.variables.text(MANDATORY_ROLES)) {
        tracing::error!(%error, "no role is mandatory");
    }
    let hook = move |value: &Value| set(value.as_str().unwrap_or_default());
    server.variables.on_change(MANDATORY_ROLES, Box::new(hook));
}

impl Accounts {
    /// The roles that are granted to everybody.
    pub fn mandatory_roles(&self) -> Vec<RoleName> {
        self.mandatory.0.read().clone()
    }

    /// Sets `mandatory_roles`. It shares no lock with the accounts: the setting changes without them.
    ///
    /// # Errors
    /// The text is no list of roles.
    fn mandatory_setter(&self) -> impl Fn(&str) -> Result<(), SqlError> + Send + Sync + use<> {
        let (mandatory, generation): (Arc<Mandatory>, Arc<AtomicU64>) =
            (Arc::clone(&self.mandatory), Arc::clone(&self.generation));
        move |text| {
            let refused = || error(errors::WRONG_VALUE_FOR_VAR, &[&"mandatory_roles", &text]);
            let roles = sql::parser::parse_roles(text).map_err(|_| refused())?;
            let name = |role: Named| RoleName { user: role.user, host: role.host };
            *mandatory.0.write() = roles.into_iter().map(name).collect();
            generation.fetch_add(1, Ordering::AcqRel);
            Ok(())
        }
    }

    /// What an account may do while these roles are active.
    pub fn rights_with(&self, user: &str, host: &str, active: &[RoleName]) -> Rights {
        let stored = self.stored.read();
        let Some(account) = stored.accounts.iter().find(|account| account.is(user, host)) else {
            return Rights::default();
        };
        let mut rights = account.rights();
        if active.is_empty() {
            return rights;
        }
        let mandatory = self.mandatory.0.read();
        let accounts = ByName::new(&stored.accounts);
        let granted: HashSet<(&str, String)> = account
            .roles
            .iter()
            .map(|granted| (&*granted.role.user, granted.role.host.to_lowercase()))
            .chain(mandatory.iter().map(|role| (&*role.user, role.host.to_lowercase())))
            .collect();
        let counts = |role: &&RoleName| granted.contains(&(&*role.user, role.host.to_lowercase()));
        let roles = active.iter().filter(counts).filter_map(|role| accounts.get(&role.user, &role.host));
        let found = accounts.with_their_roles(roles);
        rights.add(&found.into_iter().map(Account::rights).collect::<Vec<_>>());
        rights
    }

    /// What an account may do with the roles that are active when it has logged in.
    pub fn rights_by_default(&self, user: &str, host: &str, all: bool) -> Rights {
        self.rights_with(user, host, &self.roles_after_login(user, host, all))
    }

    /// The roles that become active with a login: the default ones, or all.
    pub fn roles_after_login(&self, user: &str, host: &str, all: bool) -> Vec<RoleName> {
        if all {
            return self.granted_roles(user, host);
        }
        let stored = self.stored.read();
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        let mut roles: Vec<_> =
            account.into_iter().flat_map(|account| &account.default_roles).map(StoredRole::name).collect();
        roles.sort();
        roles
    }

    /// The roles that are granted to an account, the mandatory ones that exist included.
    fn granted_roles(&self, user: &str, host: &str) -> Vec<RoleName> {
        let (stored, mandatory) = (self.stored.read(), self.mandatory.0.read());
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        let own = account.into_iter().flat_map(|account| &account.roles).map(|granted| granted.role.name());
        let accounts = ByName::new(&stored.accounts);
        let of_all = mandatory
            .iter()
            .filter(|role| accounts.get(&role.user, &role.host).is_some() && !role.is(user, host));
        let mut roles: Vec<_> = own.chain(of_all.cloned()).collect();
        roles.sort();
        roles.dedup();
        roles
    }

    /// SET ROLE: what becomes active; 3530 for a role that is not granted to the account.
    pub fn chosen(&self, account: &RoleName, choice: &Choice) -> Result<Vec<RoleName>, SqlError> {
        let granted = self.granted_roles(&account.user, &account.host);
        let is_granted = |role: &RoleName| granted.iter().any(|known| known.is(&role.user, &role.host));
        Ok(match choice {
            Choice::AllBut(excepted) => {
                let excepted =
                    |role: &RoleName| excepted.iter().any(|other| other.is(&role.user, &role.host));
                granted.into_iter().filter(|role| !excepted(role)).collect()
            }
            Choice::List(roles) => {
                if let Some(missing) = roles.iter().find(|role| !is_granted(role)) {
                    return Err(not_granted(missing, account));
                }
                let mut roles = roles.clone();
                roles.sort();
                roles.dedup();
                roles
            }
        })
    }

    /// SET DEFAULT ROLE: for all of these accounts or none.
    pub fn set_default_roles(
        &self,
        list: &[RoleName],
        choice: &Choice,
        authority: Authority,
    ) -> Result<(), SqlError> {
        let mut chosen = Vec::with_capacity(list.len());
        for account in list {
            let roles = self.chosen(account, choice)?;
            if !self.exists(&account.user, &account.host) {
                return Err(unknown(account));
            }
            chosen.push(roles);
        }
        self.change(|accounts| {
            for (name, roles) in list.iter().zip(chosen) {
                let at = position(accounts, name)?;
                authority.check(accounts, at)?;
                accounts[at].default_roles = roles.iter().map(StoredRole::new).collect();
            }
            Ok(())
        })
    }

    /// GRANT of roles: all of them to all of the accounts, or nothing.
    pub fn grant_roles(
        &self,
        roles: &[RoleName],
        list: &[RoleName],
        admin: bool,
        authority: Authority,
    ) -> Result<(), SqlError> {
        self.change(|accounts| {
            for name in list {
                let at = position(accounts, name)?;
                authority.check(accounts, at)?;
                for role in roles {
                    let role_at = position(accounts, role)?;
                    authority.check(accounts, role_at)?;
                    let below = ByName::new(accounts).with_their_roles([&accounts[role_at]]);
                    if below.iter().any(|account| account.is(&name.user, &name.host)) {
                        return Err(error(errors::ROLE_GRANTED_TO_ITSELF, &[name, role]));
                    }
                    accounts[at].roles.retain(|granted| !role.is(&granted.role.user, &granted.role.host));
                    let role = StoredRole::new(&accounts[role_at].name());
                    accounts[at].roles.push(GrantedRole { role, admin });
                }
            }
            Ok(())
        })
    }

    /// REVOKE of roles, from all of the accounts or none. What is unknown is an error 3523, or with
    /// `tolerant` returned: roles for the first, accounts for the second.
    pub fn revoke_roles(
        &self,
        roles: &[RoleName],
        list: &[RoleName],
        tolerant: (bool, bool),
        authority: Authority,
    ) -> Result<Vec<RoleName>, SqlError> {
        self.refuse_mandatory(roles)?;
        self.change(|accounts| {
            let mut missing = Vec::new();
            let mut known = Vec::new();
            for role in roles {
                match position(accounts, role) {
                    Ok(at) => {
                        authority.check(accounts, at)?;
                        known.push(role);
                    }
                    Err(_) if tolerant.0 => missing.push(role.clone()),
                    Err(error) => return Err(error),
                }
            }
            for name in list {
                match position(accounts, name) {
                    Ok(at) => {
                        authority.check(accounts, at)?;
                        known.iter().for_each(|role| accounts[at].lose_role(role));
                    }
                    Err(_) if tolerant.1 => missing.push(name.clone()),
                    Err(error) => return Err(error),
                }
            }
            Ok(missing)
        })
    }

    /// Whether an account may hand a role on: it has the role, or one of the active roles has it, with ADMIN
    /// OPTION.
    pub fn may_administer(&self, account: &RoleName, active: &[RoleName], role: &RoleName) -> bool {
        let stored = self.stored.read();
        let accounts = ByName::new(&stored.accounts);
        let Some(own) = accounts.get(&account.user, &account.host) else { return false };
        let counted = active.iter().filter(|active| own.has_role(active));
        let counted = counted.filter_map(|active| accounts.get(&active.user, &active.host));
        let holders = accounts.with_their_roles(counted).into_iter().chain([own]);
        holders
            .flat_map(|holder| &holder.roles)
            .any(|granted| granted.admin && role.is(&granted.role.user, &granted.role.host))
    }

    /// Whether only holders of SYSTEM_USER may change this account.
    pub fn is_system_user(&self, name: &RoleName) -> bool {
        let stored = self.stored.read();
        let found = stored.accounts.iter().find(|account| account.is(&name.user, &name.host));
        found.is_some_and(|account| {
            rights_with_all_roles(&stored.accounts, account).global().has(Privileges::SYSTEM_USER)
        })
    }

    /// Error 3628 for a role that everybody has.
    pub(super) fn refuse_mandatory(&self, roles: &[RoleName]) -> Result<(), SqlError> {
        let mandatory = self.mandatory.0.read();
        let is_mandatory = |role: &&RoleName| mandatory.iter().any(|known| known.is(&role.user, &role.host));
        match roles.iter().find(is_mandatory) {
            Some(role) => Err(error(errors::MANDATORY_ROLE, &[role])),
            None => Ok(()),
        }
    }

    /// Whether all of these accounts are locked, as roles are: an account that may only drop roles may drop
    /// nothing else. Those that do not exist are nobody's.
    pub fn are_roles(&self, list: &[RoleName]) -> bool {
        let stored = self.stored.read();
        let accounts = ByName::new(&stored.accounts);
        list.iter().filter_map(|name| accounts.get(&name.user, &name.host)).all(|account| account.locked)
    }
}

/// Where an account is; 3523.
fn position(accounts: &[Account], name: &RoleName) -> Result<usize, SqlError> {
    let found = accounts.iter().position(|account| account.is(&name.user, &name.host));
    found.ok_or_else(|| unknown(name))
}

/// Takes an account that is dropped from all to whom it was granted.
pub(super) fn forget(accounts: &mut [Account], dropped: &RoleName) {
    accounts.iter_mut().for_each(|account| account.lose_role(dropped));
}

impl Authority {
    /// Error 1227 when the account is one that only holders of SYSTEM_USER may change. Roles that it might
    /// make active count: who may change it might log in to it.
    pub(super) fn check(self, accounts: &[Account], at: usize) -> Result<(), SqlError> {
        let system = || rights_with_all_roles(accounts, &accounts[at]).global().has(Privileges::SYSTEM_USER);
        if self == Authority::Ordinary && system() {
            return Err(error(errors::SPECIFIC_ACCESS_DENIED, &[&"SYSTEM_USER"]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use sql::privilege::Object;

    use super::super::accounts::AccountChange;
    use super::*;

    fn named(user: &str) -> RoleName {
        RoleName { user: user.into(), host: "%".into() }
    }

    fn granting(accounts: &Accounts, user: &str, what: Privileges, on: &str) {
        let to = AccountChange { user: user.into(), host: "%".into(), ..Default::default() };
        accounts.grant_all(&[to], what, &Object::Database(on.into()), Authority::System).unwrap();
    }

    fn some(users: &[&str]) -> Accounts {
        let accounts = Accounts::in_memory();
        for user in users {
            accounts.create(user, "%", &Default::default(), false).unwrap();
        }
        accounts
    }

    #[test]
    fn a_role_counts_while_it_is_granted_and_active() {
        let accounts = some(&["u", "r", "s"]);
        granting(&accounts, "s", Privileges::SELECT, "d");
        accounts.grant_roles(&[named("s")], &[named("r")], false, Authority::System).unwrap();
        accounts.grant_roles(&[named("r")], &[named("u")], false, Authority::System).unwrap();
        let held = |active: &[RoleName]| accounts.rights_with("u", "%", active).on_database("d");
        assert_eq!(held(&[]), Privileges::NONE);
        assert_eq!(held(&[named("r")]), Privileges::SELECT, "by the role of the role");
        assert_eq!(held(&[named("s")]), Privileges::NONE, "not granted to the account itself");
        accounts.revoke_roles(&[named("r")], &[named("u")], (false, false), Authority::System).unwrap();
        assert_eq!(held(&[named("r")]), Privileges::NONE);
    }

    #[test]
    fn circles_are_refused() {
        let accounts = some(&["a", "b", "c"]);
        let grant = |role: &str, to: &str| {
            accounts.grant_roles(&[named(role)], &[named(to)], false, Authority::System)
        };
        grant("a", "b").unwrap();
        grant("b", "c").unwrap();
        assert_eq!(grant("c", "a").unwrap_err().code, 4027);
        assert_eq!(grant("a", "a").unwrap_err().code, 4027);
        assert_eq!(grant("x", "a").unwrap_err().code, 3523);
    }

    #[test]
    fn a_role_with_everything_protects_those_who_have_it() {
        let accounts = some(&["u", "r"]);
        let all = AccountChange { user: "r".into(), host: "%".into(), ..Default::default() };
        accounts.grant_all(&[all], Privileges::SYSTEM_USER, &Object::Everything, Authority::System).unwrap();
        accounts.grant_roles(&[named("r")], &[named("u")], false, Authority::System).unwrap();
        let drop = accounts.drop_all(&[("u".into(), "%".into())], false, Authority::Ordinary);
        assert_eq!(drop.unwrap_err().code, 1227);
        let hand_on = accounts.grant_roles(&[named("r")], &[named("u")], true, Authority::Ordinary);
        assert_eq!(hand_on.unwrap_err().code, 1227);
    }

    #[test]
    fn a_thousand_roles_are_added_in_no_time() {
        let names: Vec<String> = (0..1000).map(|number| format!("r{number}")).collect();
        let users: Vec<&str> = names.iter().map(String::as_str).collect();
        let accounts = some(&[]);
        let change =
            |user: &&str| AccountChange { user: (*user).into(), host: "%".into(), ..Default::default() };
        let list: Vec<_> = users.iter().map(change).collect();
        accounts.create_all(&list, false).unwrap();
        accounts.create("u", "%", &Default::default(), false).unwrap();
        for (number, _) in users.iter().enumerate() {
            let to = list[number].clone();
            let on = Object::Table("d".into(), format!("t{number}"));
            if number % 100 == 0 {
                accounts.grant_all(&[to], Privileges::SELECT, &on, Authority::System).unwrap();
            }
        }
        let roles: Vec<_> = users.iter().map(|user| named(user)).collect();
        accounts.grant_roles(&roles, &[named("u")], false, Authority::System).unwrap();
        let begin = Instant::now();
        let rights = accounts.rights_with("u", "%", &roles);
        assert!(begin.elapsed().as_millis() < 500, "{:?}", begin.elapsed());
        assert!(rights.on_table("d", "t900").has(Privileges::SELECT));
    }
}
