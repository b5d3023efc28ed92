//! Whether the files of a data directory belong together.
//!
//! A person may lose one file of a directory, or put back one file from an older copy, or one of another
//! directory. Page by page such files look well; applied or written to, they take acknowledged rows away
//! without a word. So the files name each other:
//!
//! - The catalog has the directory's *identity*. The redo log has a number made of it, the undo tablespace
//!   too.
//! - Each opening of the redo log has a number, one more than the one before. The catalog notes the number
//!   before an opening begins ([`RunState::Starting`]) and when it has ([`RunState::Running`]). A log with a
//!   smaller number is older than the catalog, a catalog with a smaller number is older than the log.
//! - At an orderly stop the catalog notes where the log ended ([`RunState::Stopped`]). An older log ends
//!   before.
//! - The undo tablespace is marked with the number of the opening, and when the mark is durable the catalog
//!   notes that. An older undo tablespace has an older mark.
//!
//! | | after an orderly stop | after a crash |
//! |---|---|---|
//! | redo log missing | a new one begins where the old one ended; nothing is lost | refused |
//! | undo tablespace missing | refused: it may have unfinished transactions | refused |
//! | one of them older, or another directory's | refused | refused |
//!
//! A table's file is marked in the same way when its first page of an opening has been written ([`Marks`]).
//! So an older copy of the file is known by its mark when the table is used. It is not known in the seconds
//! between the first write and the note, should they end in a crash: that would take the write of a page, and
//! two syncs, before every first write.
//!
//! Level 6 of forced recovery gets past the redo log, level 5 past the undo tablespace. Directories of
//! earlier versions lack these marks; that is accepted, and the marks are written from then on. Tables are
//! looked at when they are used: `pagestore` finds files that are missing, cut or another table's, and pages
//! of a later time than the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Environment, Storage};
use pagestore::{FoundStamp, PageSize, PageStore, Stamp};
use parking_lot::Mutex;
use redo::{Lsn, RedoLog};
use serde::{Deserialize, Serialize};

use crate::catalog::{CATALOG_FILE, Catalog, CatalogData, Change};
use crate::error::{Error, Result};
use crate::retry::retry;

/// What the catalog remembers of the last time the directory was open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// Number of the redo log's opening ([`RedoLog::epoch`]).
    pub opening: u32,
    /// How far that came.
    pub state: RunState,
    /// Checkpoint of the log at the last orderly stop.
    #[serde(default)]
    pub checkpoint: u64,
    /// End of the log at the last orderly stop.
    #[serde(default)]
    pub end: u64,
    /// Mark that the undo tablespace has at least; 0: none.
    #[serde(default)]
    pub undo: u64,
}

/// How far an opening of the directory came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The log may have the number of this opening already, or still the one before.
    #[default]
    Starting,
    /// The log has this number.
    Running,
    /// Closed cleanly: every page is in its file, and the log has nothing that the pages do not have.
    Stopped,
}

/// What tells a directory from all others.
pub(crate) struct Identity {
    /// As the catalog has it.
    pub text: String,
    /// As the other files have it; never 0.
    pub owner: u64,
}

impl Identity {
    /// The identity in the catalog, or a new one.
    pub fn of(catalog: &Catalog, environment: &Arc<dyn Environment>) -> Identity {
        let fresh = || format!("{:016x}{:016x}", environment.random_u64(), environment.random_u64());
        let text = catalog.snapshot().identity.clone().unwrap_or_else(fresh);
        let owner = text.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        Identity { owner: owner.unwrap_or_default().max(1), text }
    }
}

/// The redo log of a directory that has a catalog, if it is the one that belongs to it.
pub(crate) fn open_log(
    environment: &Arc<dyn Environment>,
    directory: &Path,
    settings: redo::Options,
    catalog: &Catalog,
    identity: &Identity,
) -> Result<Arc<RedoLog>> {
    let settings = redo::Options { owner: identity.owner, ..settings };
    if !RedoLog::exists(environment, directory)? {
        return replace_log(environment, directory, settings, catalog, identity);
    }
    let log = RedoLog::open(environment, directory, settings)?;
    let data = catalog.snapshot();
    check_log(&data, &log, directory, identity)?;
    let last = data.last_run.clone().unwrap_or_default();
    // Before the log takes the number.
    let run = LastRun { opening: log.epoch() + 1, state: RunState::Starting, ..last };
    note(catalog, identity, run)?;
    Ok(log)
}

fn wrong(file: PathBuf, why: String) -> Error {
    Error::WrongFile { file, why }
}

/// A log that is missing, recreated where nothing can be lost by that.
fn replace_log(
    environment: &Arc<dyn Environment>,
    directory: &Path,
    settings: redo::Options,
    catalog: &Catalog,
    identity: &Identity,
) -> Result<Arc<RedoLog>> {
    let path = RedoLog::path(directory);
    let last = catalog.snapshot().last_run.clone().filter(|last| last.state == RunState::Stopped);
    let Some(last) = last else {
        let why = format!(
            "the redo log is missing, and the directory was not closed cleanly: acknowledged changes are only in that log. Put \
             the file back, or restore the whole directory from a backup; {SALVAGE}"
        );
        return Err(wrong(path, why));
    };
    tracing::warn!(
        "{} is missing; the directory was closed cleanly, so nothing is lost, and a new redo log is created",
        path.display()
    );
    let run = LastRun { opening: last.opening + 1, ..last };
    let settings = redo::Options { begin_at: Lsn(run.end), first_epoch: run.opening, ..settings };
    note(catalog, identity, run)?;
    Ok(RedoLog::create(environment, directory, settings)?)
}

const SALVAGE: &str =
    "innodb_force_recovery=6 opens the directory without the redo log, to save the rows that can be read";

fn check_log(data: &CatalogData, log: &RedoLog, directory: &Path, identity: &Identity) -> Result<()> {
    let path = RedoLog::path(directory);
    // A directory that has no identity yet takes the log it finds.
    let owner = Some(log.owner()).filter(|owner| *owner != 0 && data.identity.is_some());
    if owner.is_some_and(|owner| owner != identity.owner) {
        let why = format!(
            "the redo log and the catalog ({}) are of different data directories: the log must not be applied to these pages. Put back the \
             one that belongs here, or restore the whole directory from one backup; {SALVAGE}",
            directory.join(CATALOG_FILE).display()
        );
        return Err(wrong(path, why));
    }
    let Some(last) = &data.last_run else { return Ok(()) };
    let found = log.epoch();
    let least = if last.state == RunState::Starting { last.opening.saturating_sub(1) } else { last.opening };
    if found < least || log.checkpoint_lsn().0 < last.checkpoint {
        let why = format!(
            "the redo log is older than the rest of the directory (opening {found} at LSN {}, the catalog has seen opening {least} and LSN \
             {}): what was acknowledged since is not in it. Put back the newest one, or restore the whole directory from one backup; \
             {SALVAGE}",
            log.checkpoint_lsn(),
            last.checkpoint
        );
        return Err(wrong(path, why));
    }
    if found > last.opening {
        let why = format!(
            "the catalog is older than the rest of the directory (it has seen opening {} of the redo log, which has had {found}): tables that \
             were made, changed or dropped since are not as it says. Put back the newest one, or restore the whole directory from \
             one backup; {SALVAGE}",
            last.opening
        );
        return Err(wrong(directory.join(CATALOG_FILE), why));
    }
    Ok(())
}

/// Refuses an undo tablespace that is missing, older than the catalog, or another directory's. Before redo is
/// applied to it, but after torn pages were restored.
pub(crate) fn check_undo(
    storage: &dyn Storage,
    path: &Path,
    page_size: PageSize,
    data: &CatalogData,
    identity: &Identity,
) -> Result<()> {
    const SALVAGE: &str = "innodb_force_recovery=5 opens the directory without undo logs (unfinished transactions count as committed), to \
                           save the rows that can be read";
    let refuse = |what: String| {
        let why = format!(
            "{what}. Put the right file back, or restore the whole directory from one backup; {SALVAGE}"
        );
        Err(wrong(path.to_owned(), why))
    };
    if !storage.exists(path)? {
        return refuse(
            "the undo tablespace is missing: transaction ids, old row versions and unfinished transactions exist only there".to_owned(),
        );
    }
    let expected = data.last_run.as_ref().map_or(0, |last| last.undo);
    match pagestore::stamp_of_file(storage, path, page_size)? {
        FoundStamp::Stamp(stamp) if data.identity.is_some() && stamp.owner != identity.owner => {
            refuse("the undo tablespace belongs to another data directory".to_owned())
        }
        FoundStamp::Stamp(stamp) if stamp.number < expected => refuse(format!(
            "the undo tablespace is older than the rest of the directory (its last opening is {}, the catalog knows {expected})",
            stamp.number
        )),
        FoundStamp::None if expected > 0 => refuse(
            "the undo tablespace is older than the rest of the directory (it lacks the mark that the catalog knows)".to_owned(),
        ),
        // Damage is told by who reads it.
        FoundStamp::Stamp(_) | FoundStamp::None | FoundStamp::Unreadable => Ok(()),
    }
}

/// The log has taken its number: from here on it is missed.
pub(crate) fn log_is_open(catalog: &Catalog, identity: &Identity, log: &RedoLog) -> Result<()> {
    let last = catalog.snapshot().last_run.clone().unwrap_or_default();
    note(catalog, identity, LastRun { opening: log.epoch(), state: RunState::Running, ..last })
}

/// The mark that the undo tablespace has; 0 for none.
pub(crate) async fn undo_mark(store: &PageStore) -> Result<u64> {
    let first = page::PageId::new(txn::UNDO_SPACE, 0);
    let found = retry(|| Ok::<_, pagestore::Interrupt>(pagestore::read_stamp(&store.read(first)?))).await?;
    Ok(found.map_or(0, |stamp| stamp.number))
}

/// Every page is in its file and the log is closed. With that, the marks that are durable now.
pub(crate) fn stopped(catalog: &Catalog, log: &RedoLog, undo: u64, marks: &Marks) -> Result<()> {
    let run = LastRun {
        opening: log.epoch(),
        state: RunState::Stopped,
        checkpoint: log.checkpoint_lsn().0,
        end: log.current().0,
        undo,
    };
    let marked = marks.take_durable(log.checkpoint_lsn());
    let noted = catalog.change(|change| {
        note_marks(change, &marked, marks.stamp.number)?;
        change.set_last_run(run.clone())
    });
    // On a full disk there is room for the end, but not for the marks.
    noted.or_else(|_| catalog.change(|change| change.set_last_run(run)))
}

/// Remembers which files have the mark by now.
fn note_marks(change: &mut Change, marked: &[u32], number: u64) -> Result<()> {
    if marked.contains(&txn::UNDO_SPACE) {
        let last = change.last_run.clone().unwrap_or_default();
        change.set_last_run(LastRun { undo: number, ..last })?;
    }
    let tables: Vec<u32> = marked.iter().copied().filter(|space| *space != txn::UNDO_SPACE).collect();
    change.note_marks(&tables, number)
}

/// The mark that a table's file has at least.
pub(crate) fn expected_mark(data: &CatalogData, identity: &Identity, space: u32) -> Option<Stamp> {
    data.marks.get(&space).map(|number| Stamp { owner: identity.owner, number: *number })
}

/// Marks the files that are written, and notes what is durable of that.
pub(crate) struct Marks {
    store: Arc<PageStore>,
    catalog: Arc<Catalog>,
    stamp: Stamp,
    /// Marked, but perhaps not durably: durable when the checkpoint is here.
    marked: Mutex<Vec<(Lsn, Vec<u32>)>>,
    stopped: AtomicBool,
}

/// Time between two looks for files that were written.
const PAUSE: Duration = Duration::from_secs(1);

impl Marks {
    /// For the opening of the directory that has just begun.
    pub fn new(store: &Arc<PageStore>, catalog: &Arc<Catalog>, identity: &Identity) -> Arc<Marks> {
        let stamp = Stamp { owner: identity.owner, number: u64::from(store.redo().epoch()) };
        let (store, catalog) = (store.clone(), catalog.clone());
        Arc::new(Marks { store, catalog, stamp, marked: Mutex::default(), stopped: AtomicBool::new(false) })
    }

    /// Marks the undo tablespace as this directory's, and in use at this opening.
    pub async fn mark_undo(&self) -> Result<()> {
        retry(|| self.store.stamp_space(txn::UNDO_SPACE, self.stamp)).await?;
        self.marked.lock().push((self.store.redo().current(), vec![txn::UNDO_SPACE]));
        Ok(())
    }

    /// Does its work in the background, until it is stopped or nobody else has it.
    pub fn spawn(self: &Arc<Marks>) {
        let env = self.store.environment().clone();
        let (this, clock) = (Arc::downgrade(self), env.clone());
        let work = async move {
            loop {
                clock.sleep(PAUSE).await;
                let Some(marks) = this.upgrade().filter(|marks| !marks.stopped.load(Ordering::Acquire))
                else {
                    return;
                };
                if let Err(error) = marks.work().await {
                    // The next commit reports what stops the engine; a mark less only means that an older
                    // copy is not known.
                    tracing::debug!("written files could not be marked: {error}");
                }
            }
        };
        env.spawn("marks of files", Box::pin(work));
    }

    async fn work(&self) -> Result<()> {
        self.mark().await;
        let durable = self.take_durable(self.store.redo().checkpoint_lsn());
        if durable.is_empty() {
            return Ok(());
        }
        let noted = self.catalog.change(|change| note_marks(change, &durable, self.stamp.number));
        if noted.is_err() {
            self.marked.lock().push((Lsn(0), durable));
        }
        noted
    }

    /// Marks the files that were written.
    pub async fn mark(&self) {
        let mut marked = Vec::new();
        for space in self.store.take_first_writes() {
            if space == txn::UNDO_SPACE {
                continue;
            }
            match retry(|| self.store.stamp_space(space, self.stamp)).await {
                Ok(true) => marked.push(space),
                Ok(false) => self.store.first_write_again(space),
                // Its page 0 is damaged, say, which others will be told.
                Err(error) => tracing::debug!("the file of tablespace {space} could not be marked: {error}"),
            }
        }
        if !marked.is_empty() {
            self.marked.lock().push((self.store.redo().current(), marked));
        }
    }

    /// Nothing more is done in the background.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn take_durable(&self, checkpoint: Lsn) -> Vec<u32> {
        let mut durable = Vec::new();
        self.marked.lock().retain(|(end, spaces)| {
            let is_durable = *end <= checkpoint;
            if is_durable {
                durable.extend(spaces);
            }
            !is_durable
        });
        durable
    }
}

fn note(catalog: &Catalog, identity: &Identity, run: LastRun) -> Result<()> {
    let data = catalog.snapshot();
    if data.last_run.as_ref() == Some(&run) && data.identity.as_ref() == Some(&identity.text) {
        return Ok(());
    }
    catalog.change(|change| {
        if data.identity.as_ref() != Some(&identity.text) {
            change.set_identity(&identity.text)?;
        }
        change.set_last_run(run)
    })
}
