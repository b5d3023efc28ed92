//! CREATE USER, ALTER USER, DROP USER, SET PASSWORD, GRANT and REVOKE: whether the session's account may run
//! them, and the changes of accounts that they mean. The changes are made and kept by
//! [`crate::auth::accounts`].

use sql::ast::{self, Account, AccountSpecification, Identification, Statement};
use sql::catalog_views::{self, View, is_view_database};
use sql::errors;
use sql::failure::Failure;
use sql::privilege::{Object, Privileges, RoleName};
use sql::result::SqlError;

use super::commands::done;
use super::privileges::Granted;
use super::{Outcome, Session};
use crate::auth::Security;
use crate::auth::accounts::{self, AccountChange, Authority};

fn identification(said: &Identification) -> accounts::Identification {
    accounts::Identification {
        plugin: said.plugin.clone(),
        password: said.password.clone(),
        hash: said.hash.clone(),
    }
}

impl Session {
    /// User and host of an account as written.
    pub(super) fn account(&self, account: &Account) -> (String, String) {
        if !account.current {
            return (account.user.clone(), account.host.clone());
        }
        self.state
            .connection
            .with_activity(|activity| (activity.user.to_string(), activity.account_host.to_string()))
    }

    pub(super) async fn accounts(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let server = self.state.server.clone();
        let accounts = &server.accounts;
        let manages = || self.state.require_any(Privileges::CREATE_USER);
        let authority = self.authority();
        match statement {
            Statement::SetPassword { account, password, replaced } => {
                let (user, host) = self.account(account.as_ref().unwrap_or(&Account::current()));
                if self.state.connection.must_change_password() && !self.is_own(&user, &host) {
                    return Err(errors::error(errors::MUST_CHANGE_PASSWORD, &[]).into());
                }
                let by = accounts::Identification { password: Some(password.clone()), ..Default::default() };
                let replaced = replaced.clone();
                let change = AccountChange { user, host, by: Some(by), replaced, ..Default::default() };
                self.alter_accounts(vec![change], false, true).await?;
            }
            Statement::CreateUser { accounts: list, if_not_exists, options, default_roles } => {
                manages()?;
                let default_roles = self.role_names(default_roles);
                self.require_administration(&default_roles)?;
                let mut changes = self.account_changes(list, options);
                let names: Vec<_> =
                    changes.iter().map(|change| (change.user.clone(), change.host.clone())).collect();
                self.check_definers("CREATE USER", &names)?;
                for change in &mut changes {
                    change.default_roles.clone_from(&default_roles);
                }
                let existing = accounts.create_all(&changes, *if_not_exists)?;
                self.note_accounts(errors::USER_ALREADY_EXISTS, &existing);
            }
            Statement::AlterUser { accounts: list, if_exists, options } => {
                let changes = self.account_changes(list, options);
                let only_passwords = **options == ast::AccountOptions::default();
                let missing = self.alter_accounts(changes, *if_exists, only_passwords).await?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::DropUser { accounts: list, if_exists } => {
                manages()?;
                let list: Vec<_> = list.iter().map(|account| self.account(account)).collect();
                self.check_definers("DROP USER", &list)?;
                let missing = accounts.drop_all(&list, *if_exists, authority)?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::RenameUser(pairs) => {
                manages()?;
                let both = pairs.iter().flat_map(|(from, to)| [from, to]);
                let renamed: Vec<_> = both.map(|account| self.account(account)).collect();
                self.check_definers("RENAME USER", &renamed)?;
                let name = |account| {
                    let (user, host) = self.account(account);
                    RoleName { user, host }
                };
                let pairs: Vec<_> = pairs.iter().map(|(from, to)| (name(from), name(to))).collect();
                accounts.rename_all(&pairs, authority)?;
            }
            Statement::Grant(grant) => self.grant(grant).await?,
            Statement::Revoke(grant) => self.revoke(grant)?,
            roles => self.roles(roles)?,
        }
        Ok(done())
    }

    pub(super) fn authority(&self) -> Authority {
        let system = self.state.rights().global().has(Privileges::SYSTEM_USER);
        if system { Authority::System } else { Authority::Ordinary }
    }

    /// Whatever roles it might have: one's own account is not somebody else's.
    fn is_own(&self, user: &str, host: &str) -> bool {
        let own = self.account(&Account::current());
        own.0 == user && own.1.eq_ignore_ascii_case(host)
    }

    /// ALTER USER and SET PASSWORD; returns the accounts that are not there. Everybody may change the own
    /// password, said in clear, and nothing else of the account. Who has to may do nothing but that, whatever
    /// the privileges (1820).
    async fn alter_accounts(
        &self,
        mut changes: Vec<AccountChange>,
        if_exists: bool,
        only_passwords: bool,
    ) -> Result<Vec<String>, Failure> {
        let server = self.state.server.clone();
        let is_own = |change: &AccountChange| self.is_own(&change.user, &change.host);
        let is_clear = |change: &AccountChange| {
            change.by.as_ref().is_some_and(|by| by.plugin.is_none() && by.hash.is_none())
        };
        let only_own = only_passwords && changes.iter().all(|change| is_own(change) && is_clear(change));
        if !only_own {
            self.state.require_any(Privileges::CREATE_USER)?;
        }
        let sets_own = |change: &AccountChange| is_own(change) && change.by.is_some();
        if self.state.connection.must_change_password() && !changes.iter().any(sets_own) {
            return Err(errors::error(errors::MUST_CHANGE_PASSWORD, &[]).into());
        }
        let exempt = self.state.rights().global().has(Privileges::CREATE_USER);
        for change in &mut changes {
            if sets_own(change) {
                server.accounts.check_current(change, exempt)?;
            } else if change.replaced.is_some() {
                return Err(errors::error(errors::CURRENT_PASSWORD_NOT_REQUIRED, &[]).into());
            }
            self.compare_with_used(change).await?;
        }
        let authority = if only_own { Authority::System } else { self.authority() };
        let missing = server.accounts.alter_all(&changes, if_exists, authority)?;
        // Of an account that is not there IF EXISTS changes nothing.
        let is_there = |change: &AccountChange| server.accounts.exists(&change.user, &change.host);
        if changes.iter().any(|change| sets_own(change) && is_there(change)) {
            self.state.connection.set_must_change_password(false);
        }
        Ok(missing)
    }

    /// Error 3638 where the account may not have that password again. The accounts compare it with what this
    /// does not: passwords that are set meanwhile.
    async fn compare_with_used(&self, change: &mut AccountChange) -> Result<(), Failure> {
        if change.password_to_compare().is_none() {
            return Ok(());
        }
        let slice = self.transaction.engine().slice().clone();
        for used in self.state.server.accounts.used_passwords(change) {
            if change.password_to_compare().is_some_and(|password| used.is(password)) {
                return Err(change.contradicts_history().into());
            }
            change.compared.push(used);
            // Each takes milliseconds.
            slice.give_way().await?;
        }
        Ok(())
    }

    fn account_changes(
        &self,
        list: &[AccountSpecification],
        options: &ast::AccountOptions,
    ) -> Vec<AccountChange> {
        let requires = options.requires.map(|requirement| match requirement {
            ast::Requirement::None => Security::None,
            ast::Requirement::Ssl => Security::Encrypted,
            ast::Requirement::X509 => Security::Certificate,
        });
        let change = |said: &AccountSpecification| {
            let (user, host) = self.account(&said.account);
            AccountChange {
                user,
                host,
                by: said.identification.as_ref().map(identification),
                replaced: said.replaced.clone(),
                locked: options.lock,
                requires,
                password: options.password.clone(),
                limits: options.limits.clone(),
                ..Default::default()
            }
        };
        list.iter().map(change).collect()
    }

    pub(super) fn note_accounts(&self, code: u16, accounts: &[String]) {
        for account in accounts {
            self.state.note(errors::error(code, &[account]));
        }
    }

    async fn grant(&self, grant: &ast::Grant) -> Result<(), Failure> {
        let said = grant.object.as_ref().ok_or_else(|| errors::unsupported("GRANT on nothing"))?;
        let Granted { object, what, columns } = self.checked_grant(grant, said)?;
        // A table that is not there may only be granted on together with the right to make it.
        if let Object::Table(database, table) = &object
            && !(what.has(Privileges::CREATE) && columns.is_empty())
        {
            let name = ast::TableName { database: Some(database.clone()), name: table.clone() };
            self.require_columns(&name, &columns)?;
        }
        let grantee = |(account, said): &(Account, Option<Identification>)| {
            let (user, host) = self.account(account);
            AccountChange { user, host, by: said.as_ref().map(identification), ..Default::default() }
        };
        let mut to: Vec<_> = grant.accounts.iter().map(grantee).collect();
        // GRANT … IDENTIFIED BY makes the account or changes its password, as it did up to MySQL 5.7 and does
        // in MariaDB.
        if to.iter().any(|change| change.by.is_some()) {
            self.state.require_any(Privileges::CREATE_USER)?;
        }
        let accounts = &self.state.server.accounts;
        let made =
            |change: &&AccountChange| change.by.is_some() && !accounts.exists(&change.user, &change.host);
        let made: Vec<_> =
            to.iter().filter(made).map(|change| (change.user.clone(), change.host.clone())).collect();
        self.check_definers("GRANT", &made)?;
        for change in &mut to {
            self.compare_with_used(change).await?;
        }
        Ok(accounts.grant_with_columns(&to, what, &columns, &object, self.authority())?)
    }

    fn revoke(&self, grant: &ast::Grant) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        let from: Vec<_> = grant.accounts.iter().map(|(account, _)| self.account(account)).collect();
        let Some(said) = &grant.object else {
            self.state.require_any(Privileges::CREATE_USER)?;
            return accounts.revoke_everything(&from, self.authority());
        };
        let Granted { object, what, columns } = self.checked_grant(grant, said)?;
        accounts.revoke_all(&from, what, &columns, &object, self.authority())
    }

    /// Requires that a table, a view or a table of the catalog exists, with these columns (1146, 1054).
    fn require_columns(
        &self,
        name: &ast::TableName,
        columns: &[(Privileges, Vec<String>)],
    ) -> Result<(), SqlError> {
        let planner = self.planner();
        let names: Vec<String> = if let Some(view) = planner.view_named(name)? {
            // One that cannot be used may be granted on, but has no columns.
            let known = if columns.is_empty() { Vec::new() } else { planner.view_columns(&view)? };
            known.into_iter().map(|column| column.name).collect()
        } else if let Some(view) = planner.stand_in(name)?.or_else(|| virtual_table(name)) {
            view.columns.iter().map(|(column, _)| (*column).to_owned()).collect()
        } else if let Some(database) = name.database.as_deref().filter(|name| is_view_database(name)) {
            return Err(errors::error(errors::NO_SUCH_TABLE, &[&database, &name.name]));
        } else {
            let table = planner.engine_table(name)?;
            table.def.visible_columns().iter().map(|column| column.name.clone()).collect()
        };
        let mut said = columns.iter().flat_map(|(_, columns)| columns);
        match said.find(|said| !names.iter().any(|known| known.eq_ignore_ascii_case(said))) {
            Some(missing) => Err(errors::error(errors::BAD_FIELD, &[missing, &name.name])),
            None => Ok(()),
        }
    }
}

/// A table of `performance_schema`, whose letters' case counts in GRANT.
fn virtual_table(name: &ast::TableName) -> Option<&'static View> {
    let database = name.database.as_deref()?;
    let found = catalog_views::find(database, &name.name)?;
    (found.database == database && found.name == name.name).then_some(found)
}
