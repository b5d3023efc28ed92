//! How long passwords last, and what new ones must be like: `PASSWORD EXPIRE`, `HISTORY`, `REUSE INTERVAL`
//! and `REQUIRE CURRENT`, each as the account says, or as the server's variable does.
//!
//! A password that has expired lets its account in to do nothing but set another one, and that only where the
//! client says that it knows of this ([`exchange`](super::exchange); what may be done:
//! `session/account_limits.rs`). Old passwords are kept as their stored forms, only where a rule needs them,
//! and compared with a new one by hashing that for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sql::ast::PasswordOptions;
use sql::errors::{self, error};
use sql::result::SqlError;

use super::accounts::{Account, AccountChange, Accounts};
use super::{native, sha2_password};
use crate::server::shared::Server;
use crate::variables::Value;

const DAY_SECONDS: u64 = 86_400;

/// Seconds since 1970.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What an account says of its passwords.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasswordRules {
    /// `PASSWORD EXPIRE INTERVAL n DAY`; 0: NEVER. `None`: `default_password_lifetime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_days: Option<u16>,
    /// `PASSWORD HISTORY n`. `None`: `password_history`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// `PASSWORD REUSE INTERVAL n DAY`. `None`: `password_reuse_interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_days: Option<u32>,
    /// `PASSWORD REQUIRE CURRENT`, or OPTIONAL. `None`: `password_require_current`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_current: Option<bool>,
    /// `FAILED_LOGIN_ATTEMPTS n`: blocked after this many in a row. 0: never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_attempts: u16,
    /// `PASSWORD_LOCK_TIME n`: for this many days; -1: without end, 0: not at all.
    #[serde(default, skip_serializing_if = "is_not")]
    pub lock_days: i16,
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

fn is_not(days: &i16) -> bool {
    *days == 0
}

impl PasswordRules {
    /// Whether nothing is said.
    pub fn say_nothing(&self) -> bool {
        *self == PasswordRules::default()
    }

    /// What is not said stays as it is.
    pub(super) fn take(&mut self, said: &PasswordOptions) {
        self.lifetime_days = said.lifetime_days.unwrap_or(self.lifetime_days);
        self.history = said.history.unwrap_or(self.history);
        self.reuse_days = said.reuse_days.unwrap_or(self.reuse_days);
        self.requires_current = said.requires_current.unwrap_or(self.requires_current);
        self.failed_attempts = said.failed_attempts.unwrap_or(self.failed_attempts);
        self.lock_days = said.lock_days.unwrap_or(self.lock_days);
    }

    /// Whether failed logins are counted.
    pub(super) fn block(&self) -> bool {
        self.failed_attempts > 0 && self.lock_days != 0
    }
}

/// A password that the account has, or had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedPassword {
    plugin: String,
    authentication_string: String,
    /// When it was set, in seconds since 1970.
    set_unix_s: u64,
}

impl UsedPassword {
    /// Whether it is this one: some milliseconds of hashing.
    pub fn is(&self, password: &[u8]) -> bool {
        is_password(&self.plugin, &self.authentication_string, password)
    }
}

/// The variables that rules fall back on.
#[derive(Default)]
pub(super) struct Defaults {
    lifetime_days: AtomicU32,
    history: AtomicU32,
    reuse_days: AtomicU32,
    /// 1: ON.
    requires_current: AtomicU32,
    /// `max_user_connections`.
    pub(super) user_connections: AtomicU32,
}

impl Defaults {
    fn of(&self, variable: &str) -> Option<&AtomicU32> {
        Some(match variable {
            "default_password_lifetime" => &self.lifetime_days,
            "password_history" => &self.history,
            "password_reuse_interval" => &self.reuse_days,
            "password_require_current" => &self.requires_current,
            "max_user_connections" => &self.user_connections,
            _ => return None,
        })
    }
}

const VARIABLES: [&str; 5] = [
    "default_password_lifetime",
    "password_history",
    "password_reuse_interval",
    "password_require_current",
    "max_user_connections",
];

/// The variables that rules fall back on are followed from now on.
pub fn connect(server: &Server) {
    for name in VARIABLES {
        let defaults = Arc::clone(&server.accounts.defaults);
        let set = move |number: u64| {
            if let Some(default) = defaults.of(name) {
                default.store(u32::try_from(number).unwrap_or(u32::MAX), Ordering::Relaxed);
            }
        };
        set(server.variables.number(name));
        let hook = move |value: &Value| {
            set(value.as_u64().unwrap_or_default());
            Ok(())
        };
        server.variables.on_change(name, Box::new(hook));
    }
}

impl Account {
    /// Whether its password has expired by `now`.
    pub(super) fn has_expired(&self, defaults: &Defaults, now_unix_s: u64) -> bool {
        let default = || defaults.lifetime_days.load(Ordering::Relaxed);
        let days = self.password.lifetime_days.map_or_else(default, u32::from);
        let lasts = u64::from(days) * DAY_SECONDS;
        self.expired || days > 0 && now_unix_s > self.password_set_unix_s.saturating_add(lasts)
    }

    /// Gives it another password. The old ones are kept that rules need.
    pub(super) fn set_password(&mut self, by: (String, String), defaults: &Defaults, now_unix_s: u64) {
        (self.plugin, self.authentication_string) = by;
        (self.expired, self.closed, self.password_set_unix_s) = (false, false, now_unix_s);
        self.note_password(defaults);
    }

    /// Notes the password that it has, and forgets those that no rule needs. One that is empty is not noted.
    pub(super) fn note_password(&mut self, defaults: &Defaults) {
        let now_unix_s = self.password_set_unix_s;
        if !self.authentication_string.is_empty() {
            let (plugin, authentication_string) = (self.plugin.clone(), self.authentication_string.clone());
            let used = UsedPassword { plugin, authentication_string, set_unix_s: now_unix_s };
            self.used_passwords.insert(0, used);
        }
        let counting: Vec<_> = self.used_passwords_that_count(defaults, now_unix_s).cloned().collect();
        self.used_passwords = counting;
    }

    /// Error 3638 where it may not have the password of this change (again). What the change has not been
    /// compared with yet is hashed here: what came in between.
    pub(super) fn refuse_used(
        &self,
        change: &AccountChange,
        defaults: &Defaults,
        now_unix_s: u64,
    ) -> Result<(), SqlError> {
        let Some(password) = change.password_to_compare() else { return Ok(()) };
        let mut left = self.used_passwords_that_count(defaults, now_unix_s);
        match left.any(|used| !change.compared.contains(used) && used.is(password)) {
            true => Err(change.contradicts_history()),
            false => Ok(()),
        }
    }

    /// The passwords that a new one may not be, the newest first.
    fn used_passwords_that_count(
        &self,
        defaults: &Defaults,
        now_unix_s: u64,
    ) -> impl Iterator<Item = &UsedPassword> {
        let history = self.password.history.unwrap_or_else(|| defaults.history.load(Ordering::Relaxed));
        let days = self.password.reuse_days.unwrap_or_else(|| defaults.reuse_days.load(Ordering::Relaxed));
        let reach = u64::from(days) * DAY_SECONDS;
        let counts = move |(at, used): &(usize, &UsedPassword)| {
            *at < history as usize || days > 0 && now_unix_s <= used.set_unix_s.saturating_add(reach)
        };
        // A clock that was set back may have left a newer one that no longer counts.
        self.used_passwords.iter().enumerate().filter(counts).map(|(_, used)| used)
    }
}

impl AccountChange {
    /// Its new password, if that is compared with old ones: one that is empty is not.
    pub fn password_to_compare(&self) -> Option<&[u8]> {
        let password = self.by.as_ref().and_then(|by| by.password.as_deref());
        password.filter(|password| !password.is_empty())
    }

    /// Error 3638.
    pub fn contradicts_history(&self) -> SqlError {
        error(errors::CREDENTIALS_CONTRADICT_TO_HISTORY, &[&self.user, &self.host])
    }
}

/// Whether this is the password behind a stored form.
fn is_password(plugin: &str, stored: &str, password: &[u8]) -> bool {
    if stored.is_empty() || password.is_empty() {
        return stored.is_empty() && password.is_empty();
    }
    if plugin == native::PLUGIN {
        return native::stored(password).eq_ignore_ascii_case(stored);
    }
    sha2_password::verify_slow(stored, &[password, b"\0"].concat()).is_some()
}

impl Accounts {
    /// The passwords that the account may not get with this change, by its rules or those that it gets with
    /// it.
    pub fn used_passwords(&self, change: &AccountChange) -> Vec<UsedPassword> {
        let Some(mut account) = self.named(&change.user, &change.host) else { return Vec::new() };
        account.password.take(&change.password);
        account.used_passwords_that_count(&self.defaults, now_unix_s()).cloned().collect()
    }

    /// Whether the session that changes its own account's password has shown the one that it has (3891),
    /// where it must (3892); `exempt`: it might change any account's.
    ///
    /// # Errors
    /// These.
    pub fn check_current(&self, change: &AccountChange, exempt: bool) -> Result<(), SqlError> {
        let Some(account) = self.named(&change.user, &change.host) else { return Ok(()) };
        let is_right = |shown: &Vec<u8>| is_password(&account.plugin, &account.authentication_string, shown);
        let by_default = || self.defaults.requires_current.load(Ordering::Relaxed) == 1;
        match &change.replaced {
            Some(shown) if !is_right(shown) => Err(error(errors::INCORRECT_CURRENT_PASSWORD, &[])),
            None if !exempt && account.password.requires_current.unwrap_or_else(by_default) => {
                Err(error(errors::MISSING_CURRENT_PASSWORD, &[]))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::auth::accounts::{Authority, Identification};

    const NOW: u64 = 1_000_000_000;

    fn stored(number: u32) -> (String, String) {
        (native::PLUGIN.to_owned(), native::stored(format!("{number}").as_bytes()))
    }

    #[test]
    fn a_password_lasts_as_long_as_its_account_says_or_the_server_does() {
        let defaults = Defaults::default();
        let mut account = Account::new("u", "%", stored(0));
        let expired =
            |account: &Account, days: u64| account.has_expired(&defaults, NOW + days * DAY_SECONDS + 1);
        account.password_set_unix_s = NOW;
        assert!(!expired(&account, 100_000), "0 days are no end");
        defaults.lifetime_days.store(2, Ordering::Relaxed);
        assert_eq!([0, 1, 2].map(|days| expired(&account, days)), [false, false, true]);
        account.password.lifetime_days = Some(3);
        assert_eq!([2, 3].map(|days| expired(&account, days)), [false, true]);
        account.password.lifetime_days = Some(0);
        assert!(!expired(&account, 100_000));
        account.expired = true;
        assert!(expired(&account, 0));
        account.set_password(stored(1), &defaults, NOW);
        assert!(!expired(&account, 0));
    }

    #[test]
    fn old_passwords_are_kept_while_a_rule_needs_them() {
        let defaults = Defaults::default();
        let mut account = Account::new("u", "%", stored(0));
        let set = |account: &mut Account, number: u32, day: u64| {
            account.set_password(stored(number), &defaults, NOW + day * DAY_SECONDS);
            let numbers = account.used_passwords.iter();
            let number_of = |used: &UsedPassword| {
                (0..10).find(|number| used.is(format!("{number}").as_bytes())).unwrap_or(99)
            };
            numbers.map(number_of).collect::<Vec<_>>()
        };
        assert_eq!(set(&mut account, 1, 0), [0; 0], "no rule");
        account.password.history = Some(2);
        assert_eq!(set(&mut account, 2, 1), [2]);
        assert_eq!(set(&mut account, 3, 2), [3, 2]);
        assert_eq!(set(&mut account, 4, 3), [4, 3]);
        account.password.reuse_days = Some(3);
        assert_eq!(set(&mut account, 5, 4), [5, 4, 3]);
        assert_eq!(set(&mut account, 6, 8), [6, 5], "by their number, and 4 days are too long ago");
        account.password.history = Some(0);
        assert_eq!(set(&mut account, 7, 8), [7, 6]);
        // The clock goes back by six days and on by four: the newest one no longer counts, one before does.
        assert_eq!(set(&mut account, 8, 2), [8, 7, 6]);
        assert_eq!(set(&mut account, 9, 6), [9, 7, 6]);
        assert_eq!(account.used_passwords_that_count(&defaults, NOW + 20 * DAY_SECONDS).count(), 0);
    }

    /// Passwords that another session sets after a statement has compared its own.
    #[test]
    fn what_has_not_been_compared_is_compared_with_the_change() {
        let accounts = Accounts::in_memory();
        accounts.create("u", "%", &Identification::default(), false).unwrap();
        let change = |password: &[u8], compared: Vec<UsedPassword>| {
            let plugin = Some(native::PLUGIN.to_owned());
            let by = Identification { plugin, password: Some(password.to_vec()), hash: None };
            let rules = PasswordOptions { history: Some(Some(2)), ..PasswordOptions::default() };
            let (user, host) = ("u".to_owned(), "%".to_owned());
            AccountChange { user, host, by: Some(by), password: rules, compared, ..Default::default() }
        };
        let alter = |change: AccountChange| {
            accounts.alter_all(&[change], false, Authority::System).err().map(|error| error.code)
        };
        assert_eq!(alter(change(b"a", Vec::new())), None);
        assert_eq!(alter(change(b"a", Vec::new())), Some(3638));
        let compared = accounts.used_passwords(&change(b"b", Vec::new()));
        assert_eq!(alter(change(b"b", Vec::new())), None);
        assert_eq!(alter(change(b"b", compared)), Some(3638));
    }
}
