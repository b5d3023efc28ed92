//! Hot backup: a copy of an open database, and making a data directory of it again.
//!
//! The copy is *fuzzy and repaired by redo*. Pages are read from the tablespace files one stretch after the
//! other while they change; each is whole (its checksum says so, else it is read again) but they are of
//! different moments. Beside them the redo log is copied, from the checkpoint that was in force before the
//! first page was read to an end that was durable after the last one. That is what a crash leaves: opening
//! the copy is a crash recovery to that end, and everything that was acknowledged before it is there.
//!
//! Why it is complete:
//! - a page in its file has every change from before the checkpoint, whenever it is read after that moment;
//! - a page reaches its file only when the log is durable up to the page's LSN, so no page is newer than the
//!   end of the copied log;
//! - the log gives up nothing that was not copied ([`redo::Archive`]), or the backup fails;
//! - definitions do not change between the copy of the catalog and the end of the log ([`gate`]), and files
//!   are not cut ([`pagestore::PageStore::hold_still`]); what grows is in the log.
//!
//! The work is a task of the engine, not of the future that asked for it: a caller that polls seldom does not
//! hold up the log. Dropping the future ends the task at the next stretch, and lets go at once of what it
//! holds of the database ([`hold`]): a backup's disk that is slow, or does not answer, keeps nobody waiting
//! for longer than [`BackupOptions::writers_wait`] says.
//!
//! **Incomplete copies cannot be mistaken.** The first thing in the target is [`INCOMPLETE`]; the manifest
//! ([`manifest`]) comes last, when everything that it names is durable. A directory with either is refused as
//! a data directory: one is not whole, and the other would no longer be the backup that its manifest
//! describes. [`restore()`] compares every byte with the manifest, and marks its own target the same way.
//!
//! A backup may hold only the pages that an earlier one does not have: [`incremental`].

mod contents;
mod copy;
pub(crate) mod gate;
mod hold;
mod incremental;
#[cfg(test)]
mod incremental_tests;
mod manifest;
mod page_list;
#[cfg(test)]
mod place_tests;
mod restore;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use disk::Storage;

pub use self::contents::{BackupBase, BackupContents, BackupFile};
use self::hold::{Holds, Over, Watched, watch};
pub use self::restore::{RestoreReport, restore, restore_in};
use crate::database::Database;
use crate::definitions::TIMEOUT;
use crate::error::{Error, Result};

/// In a directory that a backup or a restore has not finished.
pub(crate) const INCOMPLETE: &str = "untorn.backup.incomplete";
/// In a finished backup.
pub(crate) const MANIFEST: &str = "untorn.backup";

/// How long changes wait for a backup in total, by default.
const WRITERS_WAIT: Duration = Duration::from_secs(10);

/// How far a backup or a restore is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Bytes of files copied.
    pub bytes: u64,
    /// Bytes there are to copy, as far as is known: files grow, and the redo log comes on top.
    pub bytes_expected: u64,
}

type OnProgress = Arc<dyn Fn(BackupProgress) + Send + Sync>;

/// How to make a backup.
#[derive(Clone)]
#[must_use = "it does nothing by itself: give it to `backup_with`"]
pub struct BackupOptions {
    timeout: Duration,
    writers_wait: Duration,
    bytes_per_second: Option<u64>,
    progress: OnProgress,
    small_files: Vec<PathBuf>,
    since: Option<PathBuf>,
    #[cfg(test)]
    broken: Option<Broken>,
}

/// A part of the protocol that a test leaves out, to see that its checks notice.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The redo log is copied up to where it was before the first page.
    LogEndsAtStart,
    /// Definitions change meanwhile.
    DefinitionsGoOn,
    /// An incremental one lacks the first changed page of each tablespace.
    LeavesOutAPage,
}

impl Default for BackupOptions {
    fn default() -> BackupOptions {
        BackupOptions {
            timeout: TIMEOUT,
            writers_wait: WRITERS_WAIT,
            bytes_per_second: None,
            progress: Arc::new(|_| {}),
            small_files: Vec::new(),
            since: None,
            #[cfg(test)]
            broken: None,
        }
    }
}

impl BackupOptions {
    /// Waits at most this long for changes of definitions that are under way, then fails with
    /// [`Error::MetadataLockTimeout`]. A minute by default.
    pub fn timeout(mut self, timeout: Duration) -> BackupOptions {
        self.timeout = timeout;
        self
    }

    /// Lets changes wait at most this long, in total, for redo log that was not copied yet; then the backup
    /// fails and they go on. It comes to that where the target takes less per second than the log grows, and
    /// the log has gone round since. Ten seconds by default.
    pub fn writers_wait(mut self, most: Duration) -> BackupOptions {
        self.writers_wait = most;
        self
    }

    /// Reads at most this much of the tablespaces per second, to leave the disk to others.
    pub fn bytes_per_second(mut self, bytes: u64) -> BackupOptions {
        self.bytes_per_second = Some(bytes.max(1));
        self
    }

    /// Copies this file of the program's, too, if it is there: its name in the data directory. It is read
    /// whole, at the end, and must be replaced whole when it changes.
    pub fn small_file(mut self, name: impl Into<PathBuf>) -> BackupOptions {
        self.small_files.push(name.into());
        self
    }

    /// Copies only the pages that differ from those in this finished backup, its *base*, which may be an
    /// incremental one itself. Every page is read, as for a whole backup. Restoring needs the base and what
    /// that adds to; each is found where it is now, or beside the new one if it is beside it now.
    pub fn since(mut self, base: impl Into<PathBuf>) -> BackupOptions {
        self.since = Some(base.into());
        self
    }

    /// Is called after each stretch that was copied, on a thread of the engine: it must be short. The backup
    /// fails if it panics.
    pub fn progress(mut self, progress: impl Fn(BackupProgress) + Send + Sync + 'static) -> BackupOptions {
        self.progress = Arc::new(progress);
        self
    }
}

/// What a backup has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Where it is.
    pub directory: PathBuf,
    /// Files that are restored from it.
    pub files: usize,
    /// Bytes that it holds of them: all, or of an incremental backup what its base does not have.
    pub bytes: u64,
    /// Bytes of the files as they are restored.
    pub bytes_restored: u64,
    /// Those of them that are redo log.
    pub redo_bytes: u64,
    /// LSN of the checkpoint it begins at.
    pub checkpoint: u64,
    /// LSN up to which it has everything.
    pub end: u64,
}

impl Database {
    /// Copies the open database into a new or empty directory, while it works: everything that was
    /// acknowledged before this is called is in it; later commits may be too. [`crate::restore`] makes a
    /// data directory of it.
    ///
    /// Changes of definitions wait until the copy is made, and the copy for those under way. Old redo log is
    /// kept until it has been copied, for as long as [`BackupOptions::writers_wait`] says.
    ///
    /// **Dropped**, the future ends the copy; what there is of it stays, marked as incomplete, and may be
    /// removed.
    ///
    /// # Errors
    /// A target that is not empty or cannot be written; a base that is not finished or damaged; a table's
    /// file that is missing or damaged; a timeout; [`Error::ForcedRecovery`]. The database goes on in any
    /// case.
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(target, BackupOptions::default()).await
    }

    /// The same, with a limit to its speed, with progress, or with other timeouts.
    ///
    /// # Errors
    /// As [`Database::backup`].
    pub async fn backup_with(
        &self,
        target: impl AsRef<Path>,
        options: BackupOptions,
    ) -> Result<BackupReport> {
        self.refuse_after_close()?;
        let holds = Arc::new(Holds::default());
        let _cancel = CancelOnDrop(holds.clone());
        let (database, target, held) = (self.clone(), target.as_ref().to_owned(), holds.clone());
        let name = target.clone();
        // Before the first call that may not return.
        let (environment, inner) = (self.environment(), Arc::downgrade(&self.0));
        let watching = watch(Watched::new(&holds), environment.clone(), inner, options.writers_wait);
        environment.spawn("watch of a backup", Box::pin(watching));
        let work = self.run_apart(async move { copy::run(&database, target, &options, &held).await });
        holds.or_broken(&name, work).await
    }
}

/// Nobody waits for it any more.
struct CancelOnDrop(Arc<Holds>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.let_go(Over::Cancelled);
    }
}

/// A directory that holds a backup, or a part of one, is no data directory.
pub(crate) fn refuse_backup(exists: &dyn Fn(&Path) -> Result<bool>, directory: &Path) -> Result<()> {
    if exists(&directory.join(INCOMPLETE))? {
        return Err(failed(
            directory,
            "it is a backup or a restore that was not finished: remove the directory, and begin again",
        ));
    }
    if exists(&directory.join(MANIFEST))? {
        return Err(failed(
            directory,
            "it is a backup, which stays as it is: restore it into another directory (`untorn restore`)",
        ));
    }
    Ok(())
}

fn failed(path: &Path, why: impl Into<String>) -> Error {
    Error::Backup { path: path.to_owned(), why: why.into() }
}

/// Whether the target is there; it must be empty then.
fn is_there_and_empty(storage: &dyn Storage, directory: &Path) -> Result<bool> {
    if !storage.exists(directory)? {
        return Ok(false);
    }
    // What a file system makes for itself.
    if storage.list(directory)?.iter().any(|entry| entry.name != "lost+found") {
        return Err(failed(directory, "the directory is not empty: choose a new one"));
    }
    Ok(true)
}

/// Makes the target, or takes an empty one, and marks it as incomplete. What is made is open to nobody to
/// whom `like` is not.
fn begin_directory(storage: &dyn Storage, directory: &Path, like: &Path) -> Result<()> {
    if !is_there_and_empty(storage, directory)? {
        crate::open::create_directory(storage, directory)?;
        storage.restrict_like(directory, like)?;
    }
    let marker = storage.open(&directory.join(INCOMPLETE), disk::OpenHow::CREATE_NEW.buffered())?;
    marker.sync_data()?;
    storage.sync_dir(directory)?;
    Ok(())
}

/// From here on it is whole.
fn finish_directory(storage: &dyn Storage, directory: &Path) -> Result<()> {
    storage.remove(&directory.join(INCOMPLETE))?;
    storage.sync_dir(directory)?;
    Ok(())
}
