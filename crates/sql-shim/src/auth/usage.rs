//! What accounts have used up: connections, statements of the hour, failed logins in a row.
//!
//! It is in memory: a restart begins at nothing, as in MySQL. An hour begins with the first thing that is
//! counted in it. A connection counts with what is its account's when it comes, under whatever name the
//! account goes when it ends. Who is blocked after too many failed logins is told so whatever the password,
//! and nobody else learns more than that the account is there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sql::ast::ResourceLimits;
use sql::errors::{self, error};
use sql::privilege::RoleName;
use sql::result::SqlError;

use super::accounts::{Account, AccountChange, Accounts};
use super::password_rules::now_unix_s;

const DAY_SECONDS: u64 = 86_400;
const HOUR_SECONDS: u64 = 3600;

/// `WITH MAX_…` of an account; 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// `MAX_QUERIES_PER_HOUR`.
    #[serde(default)]
    queries: u32,
    /// `MAX_UPDATES_PER_HOUR`.
    #[serde(default)]
    updates: u32,
    /// `MAX_CONNECTIONS_PER_HOUR`.
    #[serde(default)]
    connections: u32,
    /// `MAX_USER_CONNECTIONS`.
    #[serde(default)]
    pub(crate) user_connections: u32,
}

impl Limits {
    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        *self == Limits::default()
    }

    /// Whether statements are counted.
    pub fn limit_statements(&self) -> bool {
        self.queries > 0 || self.updates > 0
    }

    /// In the order of `mysql.user` and SHOW CREATE USER.
    pub(super) fn all(&self) -> [u32; 4] {
        [self.queries, self.updates, self.connections, self.user_connections]
    }

    /// What is not said stays as it is.
    pub(super) fn take(&mut self, said: &ResourceLimits) {
        self.queries = said.queries.unwrap_or(self.queries);
        self.updates = said.updates.unwrap_or(self.updates);
        self.connections = said.connections.unwrap_or(self.connections);
        self.user_connections = said.user_connections.unwrap_or(self.user_connections);
    }
}

/// Of one account.
#[derive(Debug, Default)]
struct Usage {
    /// Connections that are open.
    open: u32,
    /// When its hour began, in seconds since 1970.
    hour_unix_s: u64,
    queries: u32,
    updates: u32,
    connections: u32,
    /// Failed logins since the last one that was none.
    failed: u16,
    /// Since when it is blocked, in seconds since 1970.
    blocked_unix_s: Option<u64>,
}

impl Usage {
    fn begin_hour(&mut self, now_unix_s: u64) {
        if now_unix_s.abs_diff(self.hour_unix_s) >= HOUR_SECONDS {
            self.hour_unix_s = now_unix_s;
            (self.queries, self.updates, self.connections) = (0, 0, 0);
        }
    }

    fn forget_failures(&mut self) {
        (self.failed, self.blocked_unix_s) = (0, None);
    }

    /// Days until it is no longer blocked, -1: without end.
    fn blocked_days(&mut self, lock_days: i16, now_unix_s: u64) -> Option<i64> {
        let since = self.blocked_unix_s?;
        if lock_days < 0 {
            return Some(-1);
        }
        let passed = now_unix_s.saturating_sub(since) / DAY_SECONDS;
        let left = i64::from(lock_days) - i64::try_from(passed).unwrap_or(i64::MAX);
        if left > 0 {
            return Some(left);
        }
        self.forget_failures();
        None
    }
}

/// User and host.
type AccountName = (String, String);

/// Of all accounts.
#[derive(Default)]
pub(super) struct Usages {
    of: Mutex<HashMap<AccountName, Arc<Mutex<Usage>>>>,
    /// Some account has limits on statements.
    limited: AtomicBool,
}

impl Usages {
    fn of(&self, user: &str, host: &str) -> Arc<Mutex<Usage>> {
        Arc::clone(self.of.lock().entry(name(user, host)).or_default())
    }

    fn with<R>(&self, user: &str, host: &str, change: impl FnOnce(&mut Usage) -> R) -> R {
        change(&mut self.of(user, host).lock())
    }

    fn for_each(&self, change: impl Fn(&mut Usage)) {
        self.of.lock().values().for_each(|usage| change(&mut usage.lock()));
    }

    pub(super) fn set_limited(&self, limited: bool) {
        self.limited.store(limited, Ordering::Relaxed);
    }

    /// The account is gone; its connections are not.
    pub(super) fn forget(&self, user: &str, host: &str) {
        let (mut all, name) = (self.of.lock(), name(user, host));
        let Some(usage) = all.get(&name).cloned() else { return };
        let mut usage = usage.lock();
        *usage = Usage { open: usage.open, ..Usage::default() };
        if usage.open == 0 {
            all.remove(&name);
        }
    }

    /// The account goes by another name.
    pub(super) fn rename(&self, from: &RoleName, to: &RoleName) {
        let mut all = self.of.lock();
        if let Some(usage) = all.remove(&name(&from.user, &from.host)) {
            all.insert(name(&to.user, &to.host), usage);
        }
    }

    /// ALTER USER: the hours of limits that are said begin again; so does who is unlocked, or has other
    /// rules.
    pub(super) fn forget_by(&self, change: &AccountChange) {
        let unblocked = change.locked == Some(false)
            || change.password.failed_attempts.is_some()
            || change.password.lock_days.is_some();
        if !unblocked && !change.limits.are_said() {
            return;
        }
        let usage = self.of.lock().get(&name(&change.user, &change.host)).cloned();
        let Some(usage) = usage else { return };
        let mut usage = usage.lock();
        if unblocked {
            usage.forget_failures();
        }
        if change.limits.are_said() {
            usage.hour_unix_s = 0;
        }
    }
}

/// What tells accounts apart.
fn name(user: &str, host: &str) -> (String, String) {
    (user.to_owned(), host.to_ascii_lowercase())
}

/// A connection that is counted while this lives.
pub struct CountedConnection(Arc<Mutex<Usage>>);

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut usage = self.0.lock();
        usage.open = usage.open.saturating_sub(1);
    }
}

/// A statement, as limits count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// One that changes nothing.
    Read,
    /// One that changes something.
    Change,
    /// The change of an EXECUTE, which has been counted as a statement.
    ChangeWithin,
}

fn exceeded(user: &str, resource: &str, limit: u32) -> SqlError {
    error(errors::USER_LIMIT_REACHED, &[&user, &resource, &limit])
}

impl Account {
    fn blocked(&self, peer: &str, left: i64) -> SqlError {
        let days = |days: i64| if days < 0 { "unlimited".to_owned() } else { days.to_string() };
        let lasts = days(i64::from(self.password.lock_days));
        let attempts = self.password.failed_attempts;
        error(errors::ACCOUNT_BLOCKED, &[&self.user, &peer, &lasts, &days(left), &attempts])
    }
}

impl Accounts {
    /// Counts a connection of an account that has logged in.
    ///
    /// # Errors
    /// It has reached a limit of its own (1226), or the server's (1203).
    pub fn count_connection(&self, user: &str, host: &str) -> Result<CountedConnection, SqlError> {
        let limits = self.limits_of(user, host);
        let of_all = self.defaults.user_connections.load(Ordering::Relaxed);
        let (own, now) = (limits.user_connections, now_unix_s());
        let shared = self.usages.of(user, host);
        let mut usage = shared.lock();
        usage.begin_hour(now);
        if own == 0 && of_all > 0 && usage.open >= of_all {
            return Err(error(errors::TOO_MANY_USER_CONNECTIONS, &[&user]));
        }
        if own > 0 && usage.open >= own {
            return Err(exceeded(user, "max_user_connections", own));
        }
        if limits.connections > 0 && usage.connections >= limits.connections {
            return Err(exceeded(user, "max_connections_per_hour", limits.connections));
        }
        usage.open = usage.open.saturating_add(1);
        usage.connections = usage.connections.saturating_add(1);
        drop(usage);
        Ok(CountedConnection(shared))
    }

    /// Whether statements of some account are counted.
    #[inline]
    pub fn limit_statements(&self) -> bool {
        self.usages.limited.load(Ordering::Relaxed)
    }

    /// The limits of an account; none when it does not exist (any more).
    pub fn limits_of(&self, user: &str, host: &str) -> Limits {
        let stored = self.stored.read();
        let account = stored.accounts.iter().find(|account| account.is(user, host));
        account.map(|account| account.limits.clone()).unwrap_or_default()
    }

    /// Counts a statement of an account with these limits (1226).
    ///
    /// # Errors
    /// The account has reached a limit.
    pub fn count_statement(
        &self,
        user: &str,
        host: &str,
        limits: &Limits,
        counted: Counted,
    ) -> Result<(), SqlError> {
        if !limits.limit_statements() {
            return Ok(());
        }
        let now = now_unix_s();
        self.usages.with(user, host, |usage| {
            usage.begin_hour(now);
            if counted != Counted::ChangeWithin {
                if limits.queries > 0 && usage.queries >= limits.queries {
                    return Err(exceeded(user, "max_questions", limits.queries));
                }
                usage.queries = usage.queries.saturating_add(1);
            }
            if counted != Counted::Read {
                if limits.updates > 0 && usage.updates >= limits.updates {
                    return Err(exceeded(user, "max_updates", limits.updates));
                }
                usage.updates = usage.updates.saturating_add(1);
            }
            Ok(())
        })
    }

    /// `FLUSH USER_RESOURCES`: all hours begin again.
    pub fn begin_hours(&self) {
        self.usages.for_each(|usage| usage.hour_unix_s = 0);
    }

    /// `FLUSH PRIVILEGES`: nobody is blocked any more, and all hours begin again.
    pub fn forget_usage(&self) {
        self.begin_hours();
        self.usages.for_each(Usage::forget_failures);
    }

    /// A client has shown a wrong password: the error, if the account is blocked by that or was (3955).
    pub(super) fn login_failed(&self, account: &Account, peer: &str, now_unix_s: u64) -> Option<SqlError> {
        let rules = &account.password;
        if !rules.block() {
            return None;
        }
        let left = self.usages.with(&account.user, &account.host, |usage| {
            if let Some(left) = usage.blocked_days(rules.lock_days, now_unix_s) {
                return Some(left);
            }
            usage.failed = usage.failed.saturating_add(1);
            if usage.failed >= rules.failed_attempts {
                usage.blocked_unix_s = Some(now_unix_s);
            }
            usage.blocked_days(rules.lock_days, now_unix_s)
        })?;
        Some(account.blocked(peer, left))
    }

    /// A client has shown the right password: the error, if the account is blocked all the same (3955).
    pub(super) fn login_succeeded(&self, account: &Account, peer: &str, now_unix_s: u64) -> Option<SqlError> {
        let rules = &account.password;
        if !rules.block() {
            return None;
        }
        let left = self.usages.with(&account.user, &account.host, |usage| {
            let left = usage.blocked_days(rules.lock_days, now_unix_s);
            if left.is_none() {
                usage.forget_failures();
            }
            left
        })?;
        Some(account.blocked(peer, left))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use sql::ast::PasswordOptions;

    use super::*;
    use crate::auth::accounts::{Authority, Identification};

    fn with_rules(failed_attempts: u16, lock_days: i16) -> Accounts {
        let accounts = Accounts::in_memory();
        accounts.create("app", "%", &Identification::default(), false).unwrap();
        let password = PasswordOptions {
            failed_attempts: Some(failed_attempts),
            lock_days: Some(lock_days),
            ..PasswordOptions::default()
        };
        let (user, host) = ("app".to_owned(), "%".to_owned());
        let change = AccountChange { user, host, password, ..AccountChange::default() };
        accounts.alter_all(&[change], false, Authority::System).unwrap();
        accounts
    }

    /// What is said to wrong (`x`) and right passwords, each on a day: days that are left.
    fn told(accounts: &Accounts, tries: &[(char, u64)]) -> Vec<Option<String>> {
        let account = accounts.named("app", "%").unwrap();
        let told = |(password, day): &(char, u64)| {
            let now = 1_000_000_000 + day * DAY_SECONDS;
            let said = match password {
                'x' => accounts.login_failed(&account, "here", now),
                _ => accounts.login_succeeded(&account, "here", now),
            };
            said.map(|error| error.message.split_once('(').unwrap().1.split(')').nth(1).unwrap().to_owned())
        };
        tries.iter().map(told).collect()
    }

    #[test]
    fn a_block_ends_after_its_days() {
        let accounts = with_rules(2, 3);
        let left = |days: &str| Some(format!(" ({days} day(s"));
        let said = told(&accounts, &[('x', 0), ('r', 0), ('x', 0), ('x', 0), ('r', 1), ('x', 2), ('r', 3)]);
        assert_eq!(said, [None, None, None, left("3"), left("2"), left("1"), None]);
        // And those in a row are counted from the beginning.
        assert_eq!(told(&accounts, &[('x', 4), ('x', 4), ('x', 7)]), [None, left("3"), None]);
        let accounts = with_rules(1, -1);
        assert_eq!(told(&accounts, &[('x', 0), ('r', 100_000)]), [left("unlimited"), left("unlimited")]);
        for (attempts, days) in [(0, 1), (1, 0)] {
            assert_eq!(told(&with_rules(attempts, days), &[('x', 0), ('x', 0)]), [None, None]);
        }
    }

    #[test]
    fn an_hour_begins_with_what_is_counted_first() {
        let mut usage = Usage { queries: 5, hour_unix_s: 10_000, ..Usage::default() };
        usage.begin_hour(10_000 + HOUR_SECONDS - 1);
        assert_eq!((usage.queries, usage.hour_unix_s), (5, 10_000));
        usage.begin_hour(10_000 + HOUR_SECONDS);
        assert_eq!((usage.queries, usage.hour_unix_s), (0, 10_000 + HOUR_SECONDS));
    }

    #[test]
    fn a_connection_counts_until_it_ends() {
        let accounts = with_rules(0, 0);
        let refused = || accounts.count_connection("app", "%").err().map(|error| error.code);
        accounts.defaults.user_connections.store(1, Ordering::Relaxed);
        let first = accounts.count_connection("app", "%").ok().unwrap();
        assert_eq!(refused(), Some(1203), "the server's limit");
        limit(&accounts, 1);
        assert_eq!(refused(), Some(1226), "its own");
        drop(first);
        assert_eq!(refused(), None);
    }

    fn limit(accounts: &Accounts, connections: u32) {
        let limits = ResourceLimits { user_connections: Some(connections), ..ResourceLimits::default() };
        let (user, host) = ("app".to_owned(), "%".to_owned());
        let change = AccountChange { user, host, limits, ..AccountChange::default() };
        accounts.alter_all(&[change], false, Authority::System).unwrap();
    }

    #[test]
    fn what_is_used_up_goes_with_the_name() {
        let accounts = with_rules(1, -1);
        limit(&accounts, 1);
        let name = |user: &str| RoleName { user: user.into(), host: "%".into() };
        let open = accounts.count_connection("app", "%").ok().unwrap();
        told(&accounts, &[('x', 0)]);
        accounts.rename_all(&[(name("app"), name("b")), (name("b"), name("c"))], Authority::System).unwrap();
        let account = accounts.named("c", "%").unwrap();
        assert_eq!(accounts.login_succeeded(&account, "here", now_unix_s()).unwrap().code, 3955);
        assert_eq!(accounts.count_connection("c", "%").err().unwrap().code, 1226);
        drop(open);
        assert!(accounts.count_connection("c", "%").is_ok());
        // Another account of the old name begins at nothing.
        accounts.create("app", "%", &Identification::default(), false).unwrap();
        limit(&accounts, 1);
        assert!(accounts.count_connection("app", "%").is_ok());
    }

    #[test]
    fn a_statement_that_fails_leaves_what_is_used_up() {
        let accounts = with_rules(1, -1);
        told(&accounts, &[('x', 0)]);
        let change = |user: &str| {
            let (user, host) = (user.to_owned(), "%".to_owned());
            AccountChange { user, host, locked: Some(false), ..AccountChange::default() }
        };
        let altered = accounts.alter_all(&[change("app"), change("nobody")], false, Authority::System);
        assert_eq!(altered.unwrap_err().code, 1396);
        let names = ["app", "nobody"].map(|user| (user.to_owned(), "%".to_owned()));
        assert_eq!(accounts.drop_all(&names, false, Authority::System).unwrap_err().code, 1396);
        assert!(told(&accounts, &[('r', 0)])[0].is_some(), "still blocked");
        accounts.alter_all(&[change("app")], false, Authority::System).unwrap();
        assert_eq!(told(&accounts, &[('r', 0)]), [None]);
    }
}
