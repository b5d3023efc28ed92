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

/// Another.
const ALL_AFTER_LOGIN: &str = "activate_all_roles_on_login";

/// How many roles one GRANT gives, counted for each account that gets them. Each is an entry of the file.
const GRANTED_MAX: usize = 65_536;

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

    fn holds_system_user(&self) -> bool {
        self.rights().global().has(Privileges::SYSTEM_USER)
    }

    fn lose_roles(&mut self, roles: &HashSet<(&str, String)>) {
        self.roles.retain(|granted| !roles.contains(&key(&granted.role.user, &granted.role.host)));
        self.default_roles.retain(|default| !roles.contains(&key(&default.user, &default.host)));
    }
}

/// What tells names apart.
fn key<'n>(user: &'n str, host: &str) -> (&'n str, String) {
    (user, host.to_lowercase())
}

/// A list without repeats, in its order.
fn unrepeated(list: &[RoleName]) -> Vec<&RoleName> {
    let mut seen = HashSet::new();
    list.iter().filter(|name| seen.insert(key(&name.user, &name.host))).collect()
}

/// The accounts by their names.
struct ByName<'a>(HashMap<(&'a str, String), &'a Account>);

impl<'a> ByName<'a> {
    fn new(accounts: &'a [Account]) -> ByName<'a> {
        ByName(accounts.iter().map(|account| (key(&account.user, &account.host), account)).collect())
    }

    fn get(&self, user: &str, host: &str) -> Option<&'a Account> {
        self.0.get(&key(user, host)).copied()
    }

    /// These accounts, and the roles that come with them.
    fn with_their_roles(&self, first: impl IntoIterator<Item = &'a Account>) -> Vec<&'a Account> {
        self.not_yet_seen(first, &mut HashSet::new())
    }

    /// The same without those that were found before, and what comes with them.
    fn not_yet_seen(
        &self,
        first: impl IntoIterator<Item = &'a Account>,
        seen: &mut HashSet<*const Account>,
    ) -> Vec<&'a Account> {
        let (mut left, mut found) = (first.into_iter().collect::<Vec<_>>(), Vec::new());
        while let Some(account) = left.pop() {
            if seen.insert(std::ptr::from_ref(account)) {
                found.push(account);
                let roles = account.roles.iter();
                left.extend(roles.filter_map(|granted| self.get(&granted.role.user, &granted.role.host)));
            }
        }
        found
    }

    /// Whether any of these accounts is one that only holders of SYSTEM_USER may change. Roles that it might
    /// make active count: who may change it might log in to it.
    fn any_system_user(&self, first: impl IntoIterator<Item = &'a Account>) -> bool {
        self.with_their_roles(first).into_iter().any(Account::holds_system_user)
    }

    /// The roles that everybody has: one that would make everybody such an account is nobody's by that.
    fn of_everybody(&self, mandatory: &[RoleName]) -> Vec<&'a Account> {
        let known = mandatory.iter().filter_map(|role| self.get(&role.user, &role.host));
        known.filter(|role| !self.any_system_user([*role])).collect()
    }
}

/// Which accounts only holders of SYSTEM_USER may change, in their order.
pub(super) fn system_users(accounts: &[Account]) -> Vec<bool> {
    let at: HashMap<_, _> =
        accounts.iter().enumerate().map(|(at, account)| (key(&account.user, &account.host), at)).collect();
    let mut holders = vec![Vec::new(); accounts.len()];
    for (holder, account) in accounts.iter().enumerate() {
        for granted in &account.roles {
            if let Some(role) = at.get(&key(&granted.role.user, &granted.role.host)) {
                holders[*role].push(holder);
            }
        }
    }
    let mut found: Vec<bool> = accounts.iter().map(Account::holds_system_user).collect();
    let mut left: Vec<usize> = (0..accounts.len()).filter(|at| found[*at]).collect();
    while let Some(role) = left.pop() {
        for holder in holders[role].drain(..) {
            if !std::mem::replace(&mut found[holder], true) {
                left.push(holder);
            }
        }
    }
    found
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
    // Views act with what their definers' roles after a login bring: plans that were checked with others end.
    let generation = Arc::clone(&server.accounts.generation);
    let hook = move |_: &Value| {
        generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    };
    server.variables.on_change(ALL_AFTER_LOGIN, Box::new(hook));
}

/// A value of `mandatory_roles`.
fn parsed(text: &str) -> Result<Vec<RoleName>, SqlError> {
    let refused = |_| error(errors::WRONG_VALUE_FOR_VAR, &[&MANDATORY_ROLES, &text]);
    let name = |role: Named| RoleName { user: role.user, host: role.host };
    let roles = sql::parser::parse_roles(text).map_err(refused)?;
    Ok(roles.into_iter().map(name).collect())
}

impl Accounts {
    /// Error 1227 for a value of `mandatory_roles` that names an account which only holders of SYSTEM_USER
    /// may change.
    pub fn check_mandatory(&self, text: &str, authority: Authority) -> Result<(), SqlError> {
        let roles = parsed(text)?;
        let stored = self.stored.read();
        let accounts = ByName::new(&stored.accounts);
        authority.check_all(&accounts, roles.iter().filter_map(|role| accounts.get(&role.user, &role.host)))
    }

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
            *mandatory.0.write() = parsed(text)?;
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
        let own = account.roles.iter().map(|granted| key(&granted.role.user, &granted.role.host));
        let of_all = accounts.of_everybody(&mandatory).into_iter().map(|role| key(&role.user, &role.host));
        let granted: HashSet<(&str, String)> = own.chain(of_all).collect();
        let counts = |role: &&RoleName| granted.contains(&key(&role.user, &role.host));
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
        let of_all = ByName::new(&stored.accounts).of_everybody(&mandatory).into_iter();
        let of_all = of_all.filter(|role| !role.is(user, host)).map(Account::name);
        let mut roles: Vec<_> = own.chain(of_all).collect();
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
        let (roles, list) = (unrepeated(roles), unrepeated(list));
        if roles.len().saturating_mul(list.len()) > GRANTED_MAX {
            return Err(errors::unsupported("more than 65536 grants of roles by one statement"));
        }
        self.change(|accounts| {
            let by_name = ByName::new(accounts);
            let known = |name: &&RoleName| by_name.get(&name.user, &name.host).ok_or_else(|| unknown(name));
            let found = list.iter().map(known).collect::<Result<Vec<_>, _>>()?;
            let found_roles = roles.iter().map(known).collect::<Result<Vec<_>, _>>()?;
            authority.check_all(&by_name, found.iter().chain(&found_roles).copied())?;
            // All get all roles: it is a circle when one of the roles brings one of the accounts with it.
            let grantees: HashSet<_> = found.iter().map(|account| std::ptr::from_ref(*account)).collect();
            let mut seen = HashSet::new();
            for role in &found_roles {
                let brought = by_name.not_yet_seen([*role], &mut seen);
                if let Some(account) =
                    brought.into_iter().find(|account| grantees.contains(&std::ptr::from_ref(*account)))
                {
                    return Err(error(errors::ROLE_GRANTED_TO_ITSELF, &[&account.name(), &role.name()]));
                }
            }
            let names: Vec<_> = found_roles.iter().map(|role| StoredRole::new(&role.name())).collect();
            let keys: HashSet<_> = names.iter().map(|role| key(&role.user, &role.host)).collect();
            let grantees: HashSet<_> = list.iter().map(|name| key(&name.user, &name.host)).collect();
            for account in accounts.iter_mut() {
                if grantees.contains(&key(&account.user, &account.host)) {
                    account.roles.retain(|held| !keys.contains(&key(&held.role.user, &held.role.host)));
                    account.roles.extend(names.iter().map(|role| GrantedRole { role: role.clone(), admin }));
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
        let (roles, list) = (unrepeated(roles), unrepeated(list));
        self.change(|accounts| {
            let by_name = ByName::new(accounts);
            let mut missing = Vec::new();
            let mut known = |names: &[&RoleName], tolerant: bool| {
                let mut found = Vec::new();
                for name in names {
                    match by_name.get(&name.user, &name.host) {
                        Some(account) => found.push(account),
                        None if tolerant => missing.push(RoleName::clone(name)),
                        None => return Err(unknown(name)),
                    }
                }
                Ok(found)
            };
            let (found_roles, found) = (known(&roles, tolerant.0)?, known(&list, tolerant.1)?);
            authority.check_all(&by_name, found.into_iter().chain(found_roles))?;
            let lost: HashSet<_> = roles.iter().map(|role| key(&role.user, &role.host)).collect();
            let losers: HashSet<_> = list.iter().map(|name| key(&name.user, &name.host)).collect();
            let loses = |account: &&mut Account| losers.contains(&key(&account.user, &account.host));
            accounts.iter_mut().filter(loses).for_each(|account| account.lose_roles(&lost));
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
        let accounts = ByName::new(&stored.accounts);
        accounts.any_system_user(accounts.get(&name.user, &name.host))
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
    let dropped = HashSet::from([key(&dropped.user, &dropped.host)]);
    accounts.iter_mut().for_each(|account| account.lose_roles(&dropped));
}

impl Authority {
    /// Error 1227 when the account is one that only holders of SYSTEM_USER may change.
    pub(super) fn check(self, accounts: &[Account], at: usize) -> Result<(), SqlError> {
        if self == Authority::System {
            return Ok(());
        }
        self.check_all(&ByName::new(accounts), [&accounts[at]])
    }

    /// The same of several.
    fn check_all<'a>(
        self,
        accounts: &ByName<'a>,
        changed: impl IntoIterator<Item = &'a Account>,
    ) -> Result<(), SqlError> {
        if self == Authority::Ordinary && accounts.any_system_user(changed) {
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

    #[test]
    fn a_list_of_repeats_is_as_short_as_without_them() {
        let accounts = some(&["a", "b", "c"]);
        let many = vec![named("a"); 200_000];
        let to = [named("b"), named("c"), named("b")];
        let begin = Instant::now();
        accounts.grant_roles(&many, &to, false, Authority::Ordinary).unwrap();
        assert_eq!(accounts.granted_roles("b", "%"), [named("a")]);
        assert_eq!(
            accounts.stored.read().accounts.iter().map(|account| account.roles.len()).sum::<usize>(),
            2
        );
        accounts.revoke_roles(&many, &to, (false, false), Authority::Ordinary).unwrap();
        assert!(accounts.granted_roles("b", "%").is_empty());
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }

    #[test]
    fn one_statement_grants_so_many_roles() {
        let accounts = some(&[]);
        let names: Vec<_> = (0..600).map(|number| named(&format!("r{number}"))).collect();
        let change = |name: &RoleName| AccountChange {
            user: name.user.clone(),
            host: name.host.clone(),
            ..Default::default()
        };
        accounts.create_all(&names.iter().map(change).collect::<Vec<_>>(), false).unwrap();
        let (roles, to) = names.split_at(300);
        assert!(accounts.grant_roles(roles, to, false, Authority::System).is_err());
        let begin = Instant::now();
        accounts.grant_roles(&roles[..200], to, false, Authority::Ordinary).unwrap();
        // To somebody who is brought along.
        let circle = accounts.grant_roles(to, &roles[..200], false, Authority::Ordinary);
        assert_eq!(circle.unwrap_err().code, 4027);
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }
}
