//! `BACKUP SERVER TO 'name'`: a copy of the running server's data directory.
//!
//! The right to make a backup does not make a client the owner of the machine: the copy is a new directory
//! in the one that `untorn_backup_dir` named at start, and the statement has only its name.

use std::future::{Future, poll_fn};
use std::path::{Component, Path, PathBuf};
use std::pin::pin;
use std::task::Poll;

use sql::errors::{self, error};
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::kill_switch::Kill;
use sql::result::SqlError;
use untorn::BackupOptions;

use super::{Outcome, Session};
use crate::auth::accounts;
use crate::variables::persisted;

/// Where the copy goes.
fn target(directory: &str, name: &[u8]) -> Result<PathBuf, SqlError> {
    if directory.is_empty() {
        let mut refused = error(errors::OPTION_PREVENTS_STATEMENT, &[&"--untorn-backup-dir=''"]);
        refused.message = format!("{}; start it with --untorn-backup-dir=DIR", refused.message).into();
        return Err(refused);
    }
    let name = std::str::from_utf8(name).ok().map(Path::new);
    let alone = name.filter(|name| {
        let parts: Vec<_> = name.components().collect();
        matches!(parts[..], [Component::Normal(part)] if part == name.as_os_str())
    });
    let refused = "BACKUP SERVER TO takes the name of a new directory in untorn_backup_dir, without a path";
    alone.map(|name| Path::new(directory).join(name)).ok_or_else(|| error(errors::UNKNOWN_ERROR, &[&refused]))
}

impl Session {
    /// Returns when the copy is made and durable.
    pub(super) async fn backup(&mut self, name: &[u8]) -> Result<Outcome, Failure> {
        // A table held for export is a change of definitions that does not end before this does.
        if !self.export_holds.is_empty() {
            return Err(error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[]).into());
        }
        let target = target(&self.state.server.variables.text("untorn_backup_dir"), name)?;
        self.implicit_commit().await?;
        let options = BackupOptions::default()
            .timeout(self.lock_wait_timeout())
            .small_file(accounts::FILE_NAME)
            .small_file(persisted::FILE_NAME);
        let database = self.state.database.clone();
        self.unless_killed(database.backup_with(&target, options)).await??;
        Ok(Outcome::Done(Changed::default()))
    }

    /// Drops the work when somebody kills the statement: the backup lets go of the database at once then,
    /// also where its disk does not answer. The watch of statements would let it go on to its end.
    async fn unless_killed<T>(&self, work: impl Future<Output = T>) -> Result<T, SqlError> {
        let (mut work, mut killed) = (pin!(work), pin!(self.state.connection.killed(Kill::Query)));
        poll_fn(|context| {
            if let Poll::Ready(made) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(made));
            }
            if killed.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.state.check_killed().map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_lies_in_its_directory_and_nowhere_else() {
        assert_eq!(target("/backups", b"monday").ok(), Some(PathBuf::from("/backups/monday")));
        for name in ["", ".", "..", "../data", "/etc", "a/b", "monday/", "./monday"] {
            assert!(target("/backups", name.as_bytes()).is_err(), "{name}");
        }
        assert!(target("/backups", b"\xff").is_err());
        assert!(target("", b"monday").is_err(), "nobody allowed any");
    }
}
