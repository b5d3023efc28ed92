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

    pub(super) fn accounts(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let server = self.state.server.clone();
        let accounts = &server.accounts;
        let own = self.account(&Account::current());
        let manages = || self.state.require_any(Privileges::CREATE_USER);
        let authority = self.authority();
        // Whatever roles it might have: one's own account is not somebody else's.
        let is_own = |change: &AccountChange| (&change.user, &change.host) == (&own.0, &own.1);
        match statement {
            Statement::SetPassword { account, password } => {
                let (user, host) = account.as_ref().map_or_else(|| own.clone(), |said| self.account(said));
                if (&user, &host) != (&own.0, &own.1) {
                    manages()?;
                }
                let by = accounts::Identification { password: Some(password.clone()), ..Default::default() };
                let change = AccountChange { user, host, by: Some(by), ..Default::default() };
                let authority = if is_own(&change) { Authority::System } else { authority };
                accounts.alter_all(&[change], false, authority)?;
            }
            Statement::CreateUser {
                accounts: list,
                if_not_exists,
                lock,
                requires,
                expired,
                default_roles,
            } => {
                manages()?;
                let default_roles = self.role_names(default_roles);
                self.require_administration(&default_roles)?;
                let mut changes = self.account_changes(list, *lock, *requires);
                for change in &mut changes {
                    (change.expired, change.default_roles) = (*expired, default_roles.clone());
                }
                let existing = accounts.create_all(&changes, *if_not_exists)?;
                self.note_accounts(errors::USER_ALREADY_EXISTS, &existing);
            }
            Statement::AlterUser { accounts: list, if_exists, lock, requires } => {
                let changes = self.account_changes(list, *lock, *requires);
                // Everybody may change the own password, and nothing else of the account.
                let own_password = |change: &AccountChange| {
                    is_own(change) && change.locked.is_none() && change.requires.is_none()
                };
                let only_own = changes.iter().all(own_password);
                if !only_own {
                    manages()?;
                }
                let authority = if only_own { Authority::System } else { authority };
                let missing = accounts.alter_all(&changes, *if_exists, authority)?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::DropUser { accounts: list, if_exists } => {
                manages()?;
                let list: Vec<_> = list.iter().map(|account| self.account(account)).collect();
                let missing = accounts.drop_all(&list, *if_exists, authority)?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::RenameUser(pairs) => {
                manages()?;
                let name = |account| {
                    let (user, host) = self.account(account);
                    RoleName { user, host }
                };
                let pairs: Vec<_> = pairs.iter().map(|(from, to)| (name(from), name(to))).collect();
                accounts.rename_all(&pairs, authority)?;
            }
            Statement::Grant(grant) => self.grant(grant)?,
            Statement::Revoke(grant) => self.revoke(grant)?,
            roles => self.roles(roles)?,
        }
        Ok(done())
    }

    pub(super) fn authority(&self) -> Authority {
        let system = self.state.rights().global().has(Privileges::SYSTEM_USER);
        if system { Authority::System } else { Authority::Ordinary }
    }

    fn account_changes(
        &self,
        list: &[AccountSpecification],
        locked: Option<bool>,
        requires: Option<ast::Requirement>,
    ) -> Vec<AccountChange> {
        let requires = requires.map(|requirement| match requirement {
            ast::Requirement::None => Security::None,
            ast::Requirement::Ssl => Security::Encrypted,
            ast::Requirement::X509 => Security::Certificate,
        });
        let change = |said: &AccountSpecification| {
            let (user, host) = self.account(&said.account);
            let by = said.identification.as_ref().map(identification);
            AccountChange { user, host, by, locked, requires, ..Default::default() }
        };
        list.iter().map(change).collect()
    }

    pub(super) fn note_accounts(&self, code: u16, accounts: &[String]) {
        for account in accounts {
            self.state.note(errors::error(code, &[account]));
        }
    }

    fn grant(&self, grant: &ast::Grant) -> Result<(), SqlError> {
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
        let to: Vec<_> = grant.accounts.iter().map(grantee).collect();
        // GRANT … IDENTIFIED BY makes the account or changes its password, as it did up to MySQL 5.7 and does
        // in MariaDB.
        if to.iter().any(|change| change.by.is_some()) {
            self.state.require_any(Privileges::CREATE_USER)?;
        }
        self.state.server.accounts.grant_with_columns(&to, what, &columns, &object, self.authority())
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
            table.def.columns.iter().map(|column| column.name.clone()).collect()
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
