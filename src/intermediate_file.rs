//! A tablespace file that a statement is making beside a table's own: a copy, or what is imported.
//!
//! The catalog has announced it ([`DdlLogEntry::Create`](crate::catalog::DdlLogEntry::Create)), so a start after a
//! crash removes it. A statement that fails, or is dropped, gives it up; until its pages and its file are
//! gone the table stays locked.

use std::future::Future;
use std::path::PathBuf;

use crate::database::Database;
use crate::error::Result;

/// A file being made. Dropped unfinished, with the statement, it is removed in the background.
pub(crate) struct IntermediateFile<L: Send + 'static> {
    pub database: Database,
    pub space: u32,
    /// Relative to the data directory.
    pub path: PathBuf,
    /// What keeps the table locked; gone when the file is finished, or given up.
    pub lock: Option<L>,
}

impl<L: Send + 'static> IntermediateFile<L> {
    /// Nothing is left to be removed.
    pub fn finished(mut self) {
        self.lock = None;
    }

    /// Removes the file, unless its name was somebody else's. What fails is left for the next start.
    pub fn give_up(&mut self, not_ours: bool) -> impl Future<Output = Result<()>> + Send + 'static {
        let (database, space, path, lock) =
            (self.database.clone(), self.space, self.path.clone(), self.lock.take());
        async move {
            database.give_up_file(space, &path, not_ours).await;
            drop(lock);
            Ok(())
        }
    }
}

impl<L: Send + 'static> Drop for IntermediateFile<L> {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let work = self.give_up(false);
            let environment = self.database.0.environment.clone();
            environment.spawn_blocking("intermediate file", Box::pin(async move { drop(work.await) }));
        }
    }
}
