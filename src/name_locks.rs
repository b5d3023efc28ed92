//! Names and their metadata locks, as changes of definitions take them.
//!
//! A statement first takes the metadata locks of every name it touches, old and new, in one order for all;
//! there it may wait, and be given up. What follows is a task of its own ([`crate::definition_task`]).

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::CatalogData;
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::file_names::{file_name, table_file};
use crate::metadata_deadlock::MetadataOwner;
use crate::metadata_lock::{Access, Blocked, MetadataExclusive, MetadataLock, MetadataUse};
use crate::metadata_lock_wait::wait_until;
use crate::table::Table;

/// MySQL's limit of a name, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Bytes of a file name at most, on every file system that matters.
const FILE_NAME_MAX: usize = 255;

fn check_name(name: &str, suffix: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') || name.contains(['\0', '\u{ffff}']) {
        return Err(Error::WrongName(name.to_owned()));
    }
    if name.chars().count() > NAME_CHARS_MAX || file_name(name).len() + suffix.len() > FILE_NAME_MAX {
        return Err(Error::NameTooLong(name.to_owned()));
    }
    Ok(())
}

/// Refuses what can be no table's name.
pub(crate) fn check_table_name(name: &str) -> Result<()> {
    check_name(name, ".ibd")
}

/// Refuses what can be no database's name.
pub(crate) fn check_database_name(name: &str) -> Result<()> {
    check_name(name, "")
}

/// A name to be locked: of a table, or of a database where `table` is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedName {
    pub database: String,
    pub table: String,
    pub exclusive: bool,
}

impl WantedName {
    /// A table's name, to change what it stands for.
    pub fn table(database: &str, table: &str) -> WantedName {
        WantedName { database: database.to_owned(), table: table.to_owned(), exclusive: true }
    }

    /// A database, to work on tables in it (`exclusive`: to make or drop it).
    pub fn database(database: &str, exclusive: bool) -> WantedName {
        WantedName { database: database.to_owned(), table: String::new(), exclusive }
    }
}

/// Locked names; unlocked when dropped.
#[derive(Default)]
pub(crate) struct NameLocks {
    _uses: Vec<MetadataUse>,
    _exclusive: Vec<MetadataExclusive>,
}

impl NameLocks {
    pub fn and(mut self, mut other: NameLocks) -> NameLocks {
        self._uses.append(&mut other._uses);
        self._exclusive.append(&mut other._exclusive);
        self
    }
}

impl Database {
    /// The lock of a name.
    pub(crate) fn name_lock(&self, database: &str, table: &str) -> Arc<MetadataLock> {
        self.0.tables.locks.of(database, table)
    }
}

impl Definitions<'_> {
    /// In whose name metadata locks are taken.
    pub(crate) fn owner(&self) -> Arc<MetadataOwner> {
        match self.session {
            Some(session) => session.metadata_owner().clone(),
            None => self.database.0.tables.graph.owner(),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.database.0.environment.now()
    }

    /// Takes a name exclusively; the session may use it itself.
    ///
    /// # Errors
    /// [`Error::UncommittedChanges`] where it does, or holds it, and has changed rows; a timeout, a deadlock.
    pub(crate) async fn lock_exclusively(
        self,
        lock: &Arc<MetadataLock>,
        owner: &Arc<MetadataOwner>,
        deadline: Duration,
    ) -> Result<MetadataExclusive> {
        self.database.refuse_after_close()?;
        let held = self.session.and_then(|session| session.exclusive_hold(lock));
        let own = self.session.map_or(0, |own| own.uses_of(lock));
        // It would undo its changes with the definition that it knows, and waiting would be for itself.
        if (held.is_some() || own > 0) && self.session.is_some_and(|session| session.engine().has_log()) {
            return Err(Error::UncommittedChanges);
        }
        let pass = loop {
            match self.database.0.tables.gate.pass_definition() {
                Ok(pass) => break pass,
                Err(wait) => self.wait_for_name(Blocked::Wait(wait), deadline).await?,
            }
        };
        if let Some(held) = held {
            loop {
                match held.lend() {
                    Ok(share) => return Ok(share.with_pass(pass)),
                    Err(wait) => self.wait_for_name(Blocked::Wait(wait), deadline).await?,
                }
            }
        }
        let mut request = lock.request_exclusive(owner);
        loop {
            match request.grant(own) {
                Ok(lock) => return Ok(lock.with_pass(pass)),
                Err(blocked) => self.wait_for_name(blocked, deadline).await?,
            }
        }
    }

    pub(crate) async fn wait_for_name(self, blocked: Blocked, deadline: Duration) -> Result<()> {
        match blocked {
            Blocked::Wait(wait) => {
                let slice = self.session.map(|session| session.engine().slice().clone());
                wait_until(&*self.database.0.environment, wait, deadline, slice.as_deref()).await
            }
            Blocked::Deadlock => Err(Error::Transaction(txn::Error::Deadlock)),
        }
    }

    /// Locks all these names, or none. They are taken in their order, so that statements on the same names
    /// wait one for the other and not for each other.
    pub(crate) async fn lock_names(self, mut wanted: Vec<WantedName>) -> Result<NameLocks> {
        self.database.refuse_after_close()?;
        // The stronger wish of the same name comes last.
        wanted.sort();
        wanted.dedup_by(|later, earlier| {
            let same = later.database == earlier.database && later.table == earlier.table;
            earlier.exclusive |= same && later.exclusive;
            same
        });
        let (owner, deadline) = (self.owner(), self.now().saturating_add(self.timeout));
        let mut locks = NameLocks::default();
        for name in wanted {
            let lock = self.database.name_lock(&name.database, &name.table);
            if name.exclusive {
                locks._exclusive.push(self.lock_exclusively(&lock, &owner, deadline).await?);
                continue;
            }
            let shared = loop {
                match lock.share(Access::Read, &owner) {
                    Ok(shared) => break shared,
                    Err(blocked) => self.wait_for_name(blocked, deadline).await?,
                }
            };
            locks._uses.push(shared);
        }
        Ok(locks)
    }

    /// The table of this name, locked exclusively.
    ///
    /// # Errors
    /// [`Error::TablespaceDiscarded`] for one without a tablespace; no such table; a timeout; a deadlock.
    pub(crate) async fn lock_current(
        self,
        database: &str,
        name: &str,
    ) -> Result<(Arc<Table>, MetadataExclusive)> {
        let (table, lock) = self.lock_any(database, name).await?;
        if table.def.discarded { Err(table.discarded_error()) } else { Ok((table, lock)) }
    }

    /// The same, also for a table whose tablespace was discarded.
    pub(crate) async fn lock_any(
        self,
        database: &str,
        name: &str,
    ) -> Result<(Arc<Table>, MetadataExclusive)> {
        // Nobody waits for a name without a table.
        self.database.table(database, name)?;
        let lock = self.database.name_lock(database, name);
        let lock =
            self.lock_exclusively(&lock, &self.owner(), self.now().saturating_add(self.timeout)).await?;
        Ok((self.database.table(database, name)?, lock))
    }
}

impl Database {
    /// Refuses a name whose file is there, or being made, removed or renamed by another statement: a file
    /// that no table owns is not ours to overwrite, nor to remove should the statement fail.
    pub(crate) fn refuse_stray_file(&self, data: &CatalogData, database: &str, name: &str) -> Result<()> {
        let path = table_file(database, name);
        let unfinished = data.pending.iter().any(|work| work.paths().any(|other| *other == path));
        let file = self.0.directory.join(&path);
        if !unfinished && !self.0.environment.storage().exists(&file)? {
            return Ok(());
        }
        Err(Error::Store(pagestore::Error::Tablespace {
            file,
            why: format!(
                "the file exists, but there is no table '{name}': move it away, or restart the database if an earlier CREATE or DROP of that table failed"
            ),
        }))
    }

    /// Where a table's file is, relative to the data directory. Usually where its name says; elsewhere when a
    /// file could not be given its name.
    pub(crate) fn present_file(&self, table: &Table) -> std::path::PathBuf {
        let named = table.file();
        let Some(space) = self.0.store.space(table.def.space) else { return named };
        space.path.strip_prefix(&self.0.directory).map_or(named, ToOwned::to_owned)
    }

    pub(crate) fn definitions_changed(&self) {
        self.0.tables.version.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }
}
