//! Who may log in: a small JSON file in the data directory.

use crate::result::SqlError;

/// The accounts.
#[derive(Default)]
pub struct Accounts {}

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

impl Accounts {
    /// CREATE USER; 1396 when it exists and not `if_not_exists`.
    pub fn create(
        &self,
        user: &str,
        host: &str,
        by: &Identification,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let _ = (user, host, by, if_not_exists);
        Ok(())
    }
    /// DROP USER; 1396 when it does not exist and not `if_exists`.
    pub fn drop(&self, user: &str, host: &str, if_exists: bool) -> Result<(), SqlError> {
        let _ = (user, host, if_exists);
        Ok(())
    }
    /// ALTER USER ... IDENTIFIED, SET PASSWORD.
    pub fn alter(
        &self,
        user: &str,
        host: &str,
        by: &Identification,
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let _ = (user, host, by, if_exists);
        Ok(())
    }
    /// GRANT `privileges` ON `object` TO user (`object` as `*.*`, `db.*` or `db.table`).
    pub fn grant(
        &self,
        user: &str,
        host: &str,
        privileges: &str,
        object: &str,
        with_grant: bool,
    ) -> Result<(), SqlError> {
        let _ = (user, host, privileges, object, with_grant);
        Ok(())
    }
    /// REVOKE.
    pub fn revoke(&self, user: &str, host: &str, privileges: &str, object: &str) -> Result<(), SqlError> {
        let _ = (user, host, privileges, object);
        Ok(())
    }
    /// Rows of SHOW GRANTS.
    pub fn grants(&self, user: &str, host: &str) -> Result<Vec<String>, SqlError> {
        let _ = (user, host);
        Ok(Vec::new())
    }
    /// All accounts as (user, host, plugin), for `mysql.user`.
    pub fn list(&self) -> Vec<(String, String, String)> {
        Vec::new()
    }
}
