//! What a start does about files that statements were making, removing or renaming when the process ended, or could not
//! finish with while it ran.
//!
//! Each entry stands for itself: one that cannot be done now is left for the next start and said in the log, and never keeps
//! the others, or the directory, from opening. A table whose file could not be given its name is opened where the file is.
//! Nothing is removed or overwritten that is known to be another tablespace's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use disk::Storage;
use pagestore::PageSize;

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
        catalog.change_later(|change| change.finish(|entry| done.contains(&entry)))?;
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

    /// The tablespace that a file says it is; `None` where it does not say.
    fn says(&self, path: &Path) -> Option<u32> {
        let size = PageSize::new(self.data.page_size as usize).unwrap_or_default();
        let header = pagestore::identify_space(self.storage, &self.directory.join(path), size);
        header.ok().flatten().map(|header| header.space)
    }

    /// Removes the file of a table that is not to be.
    fn remove(&self, space: u32, path: &Path) -> disk::Result<bool> {
        // A statement may have failed half-way and its table been made anew before the stop: that one's file stays. Where a
        // tablespace was discarded, another one may lie by now, put there to be imported.
        let owner = self.data.tables().find(|(database, name, _)| table_file(database, name) == path);
        let keep = match owner {
            Some((_, _, def)) if def.discarded => self.says(path) != Some(space),
            Some((_, _, def)) => def.space != space && self.says(path) != Some(space),
            None => self.says(path).is_some_and(|found| found != space),
        };
        if !keep && self.exists(path)? {
            self.storage.remove(&self.directory.join(path))?;
        }
        self.sync_parents(&[path])?;
        Ok(true)
    }

    fn remove_directory(&self, path: &Path) -> disk::Result<bool> {
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
    ) -> disk::Result<bool> {
        let listed = self.data.tables().find(|(_, _, def)| def.space == space && !def.discarded);
        let Some((database, name, _)) = listed else { return Ok(true) };
        let belongs = table_file(database, name);
        // A file that replaces another one has its first name until it does; one on its way has one of both.
        let other = if replaced.is_some() || belongs == to { from } else { to };
        if other != belongs && self.exists(other)? {
            let says = if self.exists(&belongs)? { Some(self.says(&belongs)) } else { None };
            let taken = match says {
                None => false,
                // One that does not say what it is may be what was replaced.
                Some(None) => !matches!(replaced, Some(1..)),
                Some(Some(found)) => replaced != Some(found),
            };
            if says == Some(Some(space)) {
                // The other one is somebody's.
            } else if taken || look_only {
                if taken {
                    tracing::error!(
                        "{} is another tablespace's file, so '{database}.{name}' is in {}: move the one away and start again",
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
                return Err(error);
            }
        }
        if look_only {
            return Ok(false);
        }
        self.sync_parents(&[from, to, &belongs])?;
        Ok(true)
    }
}
