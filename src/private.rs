//! Databases that no client names: what is in them belongs to one session, or to one statement.
//!
//! A temporary table is an ordinary table in a private database of its own, under its own name; and so is the
//! table that CREATE TABLE … SELECT fills, until it is moved to its place. A session drops its private
//! databases; what a crash has left of them goes at the next start ([`Database::drop_private`]).

use std::time::Duration;

use crate::database::Database;
use crate::error::{Error, Result};

/// What the names of private databases begin with.
pub const PREFIX: &str = "#sql-";

/// Of those for temporary tables. Nobody but their session meets them, so that views older than the table may
/// read it: they see none of its rows but their own transaction's.
pub const TEMPORARY: &str = "#sql-temporary-";

/// How long a drop in the background waits at a time, and how long it leaves others alone in between.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether no client may name this database.
pub fn is_private(database: &str) -> bool {
    database.starts_with(PREFIX)
}

/// Whether it is the database of a temporary table.
pub fn is_temporary(database: &str) -> bool {
    database.starts_with(TEMPORARY)
}

impl Database {
    /// The private databases, sorted; [`Database::databases`] does not name them.
    pub fn private_databases(&self) -> Vec<String> {
        self.database_names(is_private)
    }

    /// Drops the private databases that are there: at the start, before there are sessions.
    ///
    /// # Errors
    /// What dropping them meets.
    pub async fn drop_private(&self) -> Result<()> {
        let mut failed = Ok(());
        for name in &self.private_databases() {
            // One that cannot go yet, as a rollback holds it, must not keep the others.
            if let Err(error) = self.drop_database(name).await {
                failed = Err(error);
            }
        }
        failed
    }

    /// Drops a private database as soon as nothing is in the way, a backup under way for instance. Nobody
    /// waits for it; what a shutdown comes before goes at the next start.
    pub fn drop_private_later(&self, name: String) {
        let database = self.clone();
        let work = async move {
            loop {
                match database.definitions().timeout(PATIENCE).drop_database(&name).await {
                    Ok(_) | Err(Error::NoSuchDatabase(_) | Error::Closed) => return,
                    Err(error) if error.is_retryable() => database.environment().sleep(PATIENCE).await,
                    Err(error) => {
                        tracing::warn!(%error, "the private database {name} is dropped at the next start");
                        return;
                    }
                }
            }
        };
        self.environment().spawn("drop of a private database", Box::pin(work));
    }
}
