//! What a start does about files that statements were making, removing or renaming when the process ended, or could not
//! finish with while it ran.
//!
//! Each entry stands for itself: one that cannot be done now is left for the next start and said in the log, and never keeps
//! the others, or the directory, from opening. A table whose file could not be given its name is opened where the file is.
//! Nothing is removed or overwritten that is known to be another tablespace's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use disk::Storage;
use pagestore::{FileIdentity, PageSize};

use crate::catalog::{Catalog, CatalogData, Pending};
use crate::error::Result;
use crate::table::{file_name, table_file};

/// Files of tables that are not where their names say, by tablespace.
pub(crate) type Elsewhere = BTreeMap<u32, PathBuf>;

/// Finishes or undoes what DDL was doing with files when the process ended. With `look_only` (a level of forced recovery
/// that changes nothing) it only finds out where the files are.
pub(crate) fn finish(
    storage: &dyn Storage,
    directory: &Path,
    catalog: &Catalog,
    look_only: bool,
) -> Result<Elsewhere> {
    let data = catalog.snapshot();
    let work = FileWork { storage, directory, data: &data };
    let mut elsewhere = Elsewhere::new();
    let mut done = Vec::new();
    for entry in data.pending.iter() {
        let finished = match entry {
            Pending::BuildIndex { .. } => continue,
            Pending::Replace { space, from, to, replaced } => {
                work.settle_name(*space, (from, to), Some(*replaced), look_only, &mut elsewhere)
            }
            Pending::Rename { space, from, to } => {
                work.settle_name(*space, (from, to), None, look_only, &mut elsewhere)
            }
            _ if look_only => continue,
            Pending::Create { space, path } | Pending::Drop { space, path } => work.remove(*space, path),
            Pending::DropDirectory { path } => work.remove_directory(path),
        };
        match finished {
            Ok(true) => {
                tracing::info!("finished what a statement had begun before the last stop: {entry:?}");
                done.push(entry);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::error!("{entry:?}, begun before the last stop, is left for the next start: {error}")
            }
        }
    }
    if !look_only && !done.is_empty() {
        // Durably: somebody may put files where they were, which the next start must not take for them.
        if let Err(error) = catalog.change(|change| change.finish(|entry| done.contains(&entry))) {
            tracing::warn!("that work on files is finished could not be made durable: {error}");
            catalog.change_later(|change| change.finish(|entry| done.contains(&entry)))?;
        }
    }
    Ok(elsewhere)
}

struct FileWork<'a> {
    storage: &'a dyn Storage,
    directory: &'a Path,
    data: &'a CatalogData,
}

impl FileWork<'_> {
    fn exists(&self, path: &Path) -> disk::Result<bool> {
        self.storage.exists(&self.directory.join(path))
    }

    /// Also where a name is as it must be already, its directory is synced before the entry goes: the process may have been
    /// killed between the two.
    fn sync_parents(&self, paths: &[&Path]) -> disk::Result<()> {
        for path in paths {
            if let Some(parent) = self.directory.join(path).parent()
                && self.storage.exists(parent)?
            {
                self.storage.sync_dir(parent)?;
            }
        }
        Ok(())
    }

    fn page_size(&self) -> PageSize {
        PageSize::new(self.data.page_size as usize).unwrap_or_default()
    }

    fn identity(&self, path: &Path) -> FileIdentity {
        FileIdentity::of(self.storage, &self.directory.join(path), self.page_size())
    }

    /// Removes the file of a table that is not to be.
    fn remove(&self, space: u32, path: &Path) -> Result<bool> {
        // A statement may have failed half-way and its table been made anew before the stop: that one's file stays, unless it is
        // the old one's still. Where a tablespace was discarded, another one may lie by now, put there to be imported.
        let owner = self.data.tables().find(|(database, name, _)| table_file(database, name) == path);
        let keep = owner.is_some_and(|(_, _, def)| {
            def.space == space && !def.discarded
                || !matches!(self.identity(path), FileIdentity::Space(found) if found == space)
        });
        if keep {
            self.sync_parents(&[path])?;
        } else {
            pagestore::remove_space_file(self.storage, &self.directory.join(path), space, self.page_size())?;
        }
        Ok(true)
    }

    fn remove_directory(&self, path: &Path) -> Result<bool> {
        let is_used = self.data.databases.keys().any(|name| path.as_os_str() == &*file_name(name));
        let path = self.directory.join(path);
        if !is_used && self.storage.exists(&path)? {
            // Files that are not ours keep the directory; that is no error.
            let _ = self.storage.remove_dir(&path);
        }
        Ok(true)
    }

    /// Gives a table's file the name of its table, whichever of the two names it has. `replaced` is the tablespace whose file may
    /// have that name still.
    fn settle_name(
        &self,
        space: u32,
        (from, to): (&Path, &Path),
        replaced: Option<u32>,
        look_only: bool,
        elsewhere: &mut Elsewhere,
    ) -> Result<bool> {
        let listed = self.data.tables().find(|(_, _, def)| def.space == space && !def.discarded);
        let Some((database, name, _)) = listed else { return Ok(true) };
        let belongs = table_file(database, name);
        // A file that replaces another one has its first name until it does; one on its way has one of both.
        let other = if replaced.is_some() || belongs == to { from } else { to };
        if other != belongs && self.exists(other)? {
            let there = self.identity(&belongs);
            // What a rename for the time being made way for is not replaced: nothing may be there.
            let taken = !there.gives_way_to(space, replaced.filter(|space| *space != 0));
            if matches!(there, FileIdentity::Space(found) if found == space) {
                // The other one is somebody's.
            } else if taken || look_only {
                if taken {
                    tracing::error!(
                        "{} is another tablespace's file or cannot be read, so '{database}.{name}' is in {}: move the one away and start again",
                        belongs.display(),
                        other.display()
                    );
                }
                elsewhere.insert(space, other.to_owned());
                return Ok(false);
            } else if let Err(error) =
                self.storage.rename(&self.directory.join(other), &self.directory.join(&belongs))
            {
                elsewhere.insert(space, other.to_owned());
                return Err(error.into());
            }
        }
        if look_only {
            return Ok(false);
        }
        self.sync_parents(&[from, to, &belongs])?;
        Ok(true)
    }
}
