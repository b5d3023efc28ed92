//! Accounts that views name as their definers.
//!
//! A view goes on naming an account that is dropped or renamed: it can no longer be used, and it would act
//! with the rights of whatever account gets the name next. So DROP and RENAME leave no such view behind, and
//! CREATE and RENAME give none an account, unless who runs them may name anybody as a definer.

use std::collections::HashSet;

use sql::errors::{self, error};
use sql::privilege::Privileges;
use sql::result::SqlError;

use super::Session;

impl Session {
    /// Error 4006 for an account that is a view's definer; warning 4005 for holders of SUPER.
    pub(super) fn check_definers(
        &self,
        operation: &str,
        accounts: &[(String, String)],
    ) -> Result<(), SqlError> {
        let (engine, key) =
            (&self.state.database, |user: &str, host: &str| (user.to_owned(), host.to_lowercase()));
        let views = engine.databases().into_iter().flat_map(|database| engine.views(&database));
        let definers: HashSet<_> = views.map(|(_, def)| key(&def.definer.0, &def.definer.1)).collect();
        let may = self.state.rights().global().has(Privileges::SUPER);
        for (user, host) in accounts.iter().filter(|(user, host)| definers.contains(&key(user, host))) {
            let account = format!("'{user}'@'{host}'");
            if !may {
                let named: [&dyn std::fmt::Display; 3] = [&operation, &account, &"a view"];
                return Err(error(errors::CANNOT_USER_REFERENCED_AS_DEFINER, &named));
            }
            self.state.warn(error(errors::USER_REFERENCED_AS_DEFINER, &[&account, &"a view"]));
        }
        Ok(())
    }
}
