//! CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE, SET DEFAULT ROLE, SHOW GRANTS and SHOW CREATE
//! USER: whether the session's account may run them, and what they change. What roles bring is decided in
//! [`crate::auth::roles`].

use sql::ast::{Account, PasswordOptions, RoleChoice, RoleGrant, Statement};
use sql::errors::{self, error};
use sql::privilege::{Privileges, RoleName};
use sql::result::SqlError;

use super::Session;
use crate::auth::accounts::{AccountChange, Authority};
use crate::auth::roles::Choice;
use crate::auth::shown::HashAs;

impl Session {
    /// The session's account.
    fn own_name(&self) -> RoleName {
        self.role_name(&Account::current())
    }

    fn role_name(&self, account: &Account) -> RoleName {
        let (user, host) = self.account(account);
        RoleName { user, host }
    }

    pub(super) fn role_names(&self, accounts: &[Account]) -> Vec<RoleName> {
        accounts.iter().map(|account| self.role_name(account)).collect()
    }

    fn choice(&self, choice: &RoleChoice, account: &RoleName) -> Choice {
        let accounts = &self.state.server.accounts;
        match choice {
            RoleChoice::None => Choice::List(Vec::new()),
            RoleChoice::All(but) => Choice::AllBut(self.role_names(but)),
            RoleChoice::List(roles) => Choice::List(self.role_names(roles)),
            RoleChoice::Default => {
                let all = self.state.server.activates_all_roles();
                Choice::List(accounts.roles_after_login(&account.user, &account.host, all))
            }
        }
    }

    /// SET ROLE.
    pub(super) fn set_role(&self, choice: &RoleChoice) -> Result<(), SqlError> {
        let own = self.own_name();
        let roles = self.state.server.accounts.chosen(&own, &self.choice(choice, &own))?;
        self.state.activate_roles(roles);
        Ok(())
    }

    /// The other statements that change roles.
    pub(super) fn roles(&self, statement: &Statement) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        match statement {
            Statement::CreateRole { roles, if_not_exists } => {
                self.require_one(
                    Privileges::CREATE_USER | Privileges::CREATE_ROLE,
                    "CREATE USER, CREATE ROLE",
                )?;
                let role = |name: RoleName| AccountChange {
                    user: name.user,
                    host: name.host,
                    locked: Some(true),
                    password: PasswordOptions { expire: true, ..Default::default() },
                    is_role: true,
                    ..Default::default()
                };
                let list: Vec<_> = self.role_names(roles).into_iter().map(role).collect();
                if list.iter().any(|role| role.user.is_empty()) {
                    return Err(error(errors::INVALID_PASSWORD, &[&"CREATE ROLE", &"anonymous user"]));
                }
                let names: Vec<_> = list.iter().map(|role| (role.user.clone(), role.host.clone())).collect();
                self.check_definers("CREATE ROLE", &names)?;
                let existing = accounts.create_all(&list, *if_not_exists)?;
                self.note_accounts(errors::USER_ALREADY_EXISTS, &existing);
            }
            Statement::DropRole { roles, if_exists } => {
                self.require_one(Privileges::CREATE_USER | Privileges::DROP_ROLE, "CREATE USER, DROP ROLE")?;
                let names = self.role_names(roles);
                if !accounts.are_roles(&names) {
                    self.state.require_any(Privileges::CREATE_USER)?;
                }
                let list: Vec<_> = names.into_iter().map(|name| (name.user, name.host)).collect();
                self.check_definers("DROP ROLE", &list)?;
                let missing = accounts.drop_named(&list, *if_exists, self.authority(), "DROP ROLE")?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::GrantRoles(grant) => {
                let (roles, to) = (self.role_names(&grant.roles), self.role_names(&grant.accounts));
                self.require_administration(&roles)?;
                accounts.grant_roles(&roles, &to, grant.admin_option, self.authority())?;
            }
            Statement::RevokeRoles(grant) => self.revoke_roles(grant)?,
            Statement::SetDefaultRole { roles, accounts: list, if_exists } => {
                self.set_default_roles(roles, list, *if_exists)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn revoke_roles(&self, grant: &RoleGrant) -> Result<(), SqlError> {
        let (roles, from) = (self.role_names(&grant.roles), self.role_names(&grant.accounts));
        self.require_administration(&roles)?;
        let tolerant = (grant.if_exists, grant.ignore_unknown);
        let missing = self.state.server.accounts.revoke_roles(&roles, &from, tolerant, self.authority())?;
        for name in &missing {
            self.state.warn(error(errors::UNKNOWN_AUTHID, &[name]));
        }
        Ok(())
    }

    fn set_default_roles(
        &self,
        roles: &RoleChoice,
        list: &[Account],
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let (accounts, own) = (&self.state.server.accounts, self.own_name());
        let mut names = self.role_names(list);
        if names.iter().any(|name| *name != own) {
            self.state.require_any(Privileges::CREATE_USER)?;
        }
        if if_exists {
            let missing = |name: &RoleName| !accounts.exists(&name.user, &name.host);
            for name in names.iter().filter(|name| missing(name)) {
                self.state.note(error(errors::USER_DOES_NOT_EXIST, &[name]));
            }
            names.retain(|name| !missing(name));
        }
        let authority =
            if names.iter().all(|name| *name == own) { Authority::System } else { self.authority() };
        accounts.set_default_roles(&names, &self.choice(roles, &own), authority)
    }

    /// Requires that the account may hand these roles on, or take them back; 1227.
    pub(super) fn require_administration(&self, roles: &[RoleName]) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        if self.authority() == Authority::Ordinary && roles.iter().any(|role| accounts.is_system_user(role)) {
            return Err(error(errors::SPECIFIC_ACCESS_DENIED, &[&"SYSTEM_USER"]));
        }
        let (own, active) = (self.own_name(), self.state.facts.active_roles());
        if roles.iter().all(|role| accounts.may_administer(&own, &active, role)) {
            return Ok(());
        }
        self.require_one(Privileges::ROLE_ADMIN | Privileges::SUPER, "WITH ADMIN, ROLE_ADMIN, SUPER")
    }

    /// Requires one of these privileges on everything; 1227 names them so.
    fn require_one(&self, wanted: Privileges, named: &str) -> Result<(), SqlError> {
        match self.state.rights().global().has_any(wanted) {
            true => Ok(()),
            false => Err(error(errors::SPECIFIC_ACCESS_DENIED, &[&named])),
        }
    }

    /// Rows of SHOW GRANTS, and whose they are.
    pub(super) fn grants(
        &self,
        account: Option<&Account>,
        using: &[Account],
    ) -> Result<(RoleName, Vec<String>), SqlError> {
        let accounts = &self.state.server.accounts;
        let of_session = account.is_none_or(|account| account.current) && using.is_empty();
        let name = account.map_or_else(|| self.own_name(), |account| self.role_name(account));
        let rows = match of_session {
            true => accounts.grants_with(&name, &self.state.facts.active_roles())?,
            false => accounts.grants_using(&name, &self.role_names(using))?,
        };
        Ok((name, rows))
    }

    /// The text of SHOW CREATE USER. As in `mysql.user`, the stored form of a password is for those who may
    /// give the account another one.
    pub(super) fn create_user_text(&self, account: &Account) -> Result<(RoleName, String), SqlError> {
        let name = self.role_name(account);
        let accounts = &self.state.server.accounts;
        let may_change = || {
            let held = self.state.rights().global();
            let system = held.has(Privileges::SYSTEM_USER);
            held.has(Privileges::CREATE_USER) && (system || !accounts.is_system_user(&name))
        };
        let in_hex = self.state.system_variable("print_identified_with_as_hex", None)?.to_bits() == 1;
        let hash = match in_hex {
            _ if name != self.own_name() && !may_change() => HashAs::Secret,
            true => HashAs::Hex,
            false => HashAs::Text,
        };
        let text = accounts.create_text(&name, hash)?;
        Ok((name, text))
    }
}
