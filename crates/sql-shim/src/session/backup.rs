//! `BACKUP SERVER TO 'name' [SINCE 'base']`: a copy of the running server's data directory, or of what an
//! earlier copy does not have.
//!
//! The right to make a backup does not make a client the owner of the machine: the copy is a new directory
//! in the one that `untorn_backup_dir` named at start, the base one that is there, and the statement has only
//! their names.

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

/// Where a copy lies.
fn place(directory: &str, name: &[u8]) -> Result<PathBuf, SqlError> {
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
    let refused = "BACKUP SERVER takes names of directories in untorn_backup_dir, without a path: TO a new one, SINCE a backup";
    alone.map(|name| Path::new(directory).join(name)).ok_or_else(|| error(errors::UNKNOWN_ERROR, &[&refused]))
}

impl Session {
    /// Returns when the copy is made and durable.
    pub(super) async fn backup(&mut self, name: &[u8], since: Option<&[u8]>) -> Result<Outcome, Failure> {
        // A table held for export is a change of definitions that does not end before this does.
        if !self.export_holds.is_empty() {
            return Err(error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[]).into());
        }
        let directory = self.state.server.variables.text("untorn_backup_dir");
        let target = place(&directory, name)?;
        let base = since.map(|name| place(&directory, name)).transpose()?;
        self.implicit_commit().await?;
        let mut options = BackupOptions::default()
            .timeout(self.lock_wait_timeout())
            .small_file(accounts::FILE_NAME)
            .small_file(persisted::FILE_NAME);
        if let Some(base) = base {
            options = options.since(base);
        }
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
        assert_eq!(place("/backups", b"monday").ok(), Some(PathBuf::from("/backups/monday")));
        for name in ["", ".", "..", "../data", "/etc", "a/b", "monday/", "./monday"] {
            assert!(place("/backups", name.as_bytes()).is_err(), "{name}");
        }
        assert!(place("/backups", b"\xff").is_err());
        assert!(place("", b"monday").is_err(), "nobody allowed any");
    }
}
