//! RENAME USER: an account keeps everything but its name.

use sql::errors::{self, error};
use sql::privilege::RoleName;
use sql::result::SqlError;

use super::accounts::{Account, Accounts, Authority, check_name, shown, unless_tolerated};
use super::usage::Usages;

impl Accounts {
    /// Renames accounts one after the other, all of them or none; 1396 names those that do not exist or whose
    /// new name is taken.
    ///
    /// # Errors
    /// These; 3532 for an account that is somebody's role.
    pub fn rename_all(&self, pairs: &[(RoleName, RoleName)], authority: Authority) -> Result<(), SqlError> {
        pairs.iter().try_for_each(|(_, to)| check_name(&to.user, &to.host))?;
        let mandatory = self.mandatory_roles();
        let move_usage = |usages: &Usages| pairs.iter().for_each(|(from, to)| usages.rename(from, to));
        let rename = |accounts: &mut Vec<Account>| {
            let mut failed = Vec::new();
            for (from, to) in pairs {
                let granted = accounts.iter().flat_map(|account| &account.roles);
                let mut roles = granted.map(|granted| granted.role.name()).chain(mandatory.iter().cloned());
                if roles.any(|role| role.is(&from.user, &from.host)) {
                    return Err(error(errors::RENAME_ROLE, &[]));
                }
                let at = accounts.iter().position(|account| account.is(&from.user, &from.host));
                let taken = accounts.iter().any(|account| account.is(&to.user, &to.host));
                match at.filter(|_| !taken) {
                    Some(at) => {
                        authority.check(accounts, at)?;
                        let account = &mut accounts[at];
                        account.user.clone_from(&to.user);
                        account.host.clone_from(&to.host);
                    }
                    None => failed.push(shown(&from.user, &from.host)),
                }
            }
            unless_tolerated("RENAME USER", failed, false).map(drop)
        };
        self.change_then(rename, move_usage)
    }
}
