//! What CREATE USER, ALTER USER, SET PASSWORD and GRANT … IDENTIFIED say of an account.

use sql::ast::{PasswordOptions, ResourceLimits};
use sql::privilege::RoleName;
use sql::result::SqlError;

use super::password_rules::UsedPassword;
use super::{Security, native, sha2_password};

/// One account of CREATE USER or ALTER USER.
#[derive(Debug, Clone, Default)]
pub struct AccountChange {
    /// User name.
    pub user: String,
    /// Host part.
    pub host: String,
    /// Its password from now on; `None` leaves it (ALTER USER) or is no password (CREATE USER).
    pub by: Option<Identification>,
    /// `REPLACE`: the one that it has, as who changes it says.
    pub replaced: Option<Vec<u8>>,
    /// Passwords of the account that the new one has been found not to be.
    pub compared: Vec<UsedPassword>,
    /// `ACCOUNT LOCK` or `UNLOCK`.
    pub locked: Option<bool>,
    /// `REQUIRE`.
    pub requires: Option<Security>,
    /// `PASSWORD …` and what belongs to it.
    pub password: PasswordOptions,
    /// `WITH MAX_…`.
    pub limits: ResourceLimits,
    /// CREATE ROLE.
    pub is_role: bool,
    /// CREATE USER: the roles that it gets and that are active after a login.
    pub default_roles: Vec<RoleName>,
}

/// How CREATE USER / ALTER USER name the password.
#[derive(Debug, Clone, Default)]
pub struct Identification {
    /// `IDENTIFIED WITH <plugin>`.
    pub plugin: Option<String>,
    /// `BY '...'`: the clear password.
    pub password: Option<Vec<u8>>,
    /// `AS '...'`: the stored hash.
    pub hash: Option<Vec<u8>>,
}

impl Identification {
    /// Method and stored form, for an account that has that method.
    pub(super) fn resolve(&self, current_plugin: &str) -> Result<(String, String), SqlError> {
        let plugin = match self.plugin.as_deref() {
            None => current_plugin,
            Some(name) if name.eq_ignore_ascii_case(native::PLUGIN) => native::PLUGIN,
            Some(name) if name.eq_ignore_ascii_case(sha2_password::PLUGIN) => sha2_password::PLUGIN,
            Some(name) => {
                return Err(SqlError::new(1524, b"HY000", format!("Plugin '{name}' is not loaded")));
            }
        };
        let stored = match (&self.password, &self.hash) {
            (Some(password), _) if password.len() > sha2_password::PASSWORD_BYTES_MAX => {
                return Err(SqlError::new(1819, b"HY000", "The password is longer than 256 bytes"));
            }
            (Some(password), _) if plugin == native::PLUGIN => native::stored(password),
            (Some(password), _) => sha2_password::stored(password),
            (None, Some(hash)) => {
                let text = String::from_utf8_lossy(hash).into_owned();
                let fits = if plugin == native::PLUGIN {
                    native::is_stored(&text)
                } else {
                    sha2_password::is_stored(&text)
                };
                if !fits {
                    return Err(SqlError::new(
                        1827,
                        b"HY000",
                        "The password hash doesn't have the expected format.",
                    ));
                }
                text
            }
            (None, None) => String::new(),
        };
        Ok((plugin.to_owned(), stored))
    }
}
