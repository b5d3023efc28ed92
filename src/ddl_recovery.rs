//! What a start does about files that statements were making, removing or renaming when the process ended, or
//! could not finish with while it ran.
//!
//! Each entry stands for itself: one that cannot be done now is left for the next start and said in the log,
//! and never keeps the others, or the directory, from opening. A table whose file could not be given its name
//! is opened where the file is. Nothing is removed or overwritten that is not known to be what the statement
//! was about ([`FileIdentity`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use disk::Storage;
use pagestore::{FileIdentity, PageSize, Replaced};

use crate::catalog::{Catalog, CatalogData, DdlLogEntry};
use crate::error::Result;
use crate::file_names::{file_name, table_file};
use crate::schema::TableDef;

/// Files of tables that are not where their names say, by tablespace.
pub(crate) type Elsewhere = BTreeMap<u32, PathBuf>;

/// Finishes or undoes what DDL was doing with files when the process ended. With `look_only` (a level of
/// forced recovery that changes nothing) it only finds out where the files are.
pub(crate) fn finish(
    storage: &dyn Storage,
    directory: &Path,
    catalog: &Catalog,
    look_only: bool,
) -> Result<Elsewhere> {
    let data = catalog.snapshot();
    let work = FileWork::new(storage, directory, &data);
    let mut elsewhere = Elsewhere::new();
    let mut done = HashSet::new();
    // Files that are removed, by their directories: each is synced once, however many went.
    let mut removed: BTreeMap<PathBuf, Vec<&DdlLogEntry>> = BTreeMap::new();
    for entry in data.pending.iter() {
        let finished = match entry {
            DdlLogEntry::BuildIndex { .. } | DdlLogEntry::DropDirectory { .. } => continue,
            DdlLogEntry::Replace { space, from, to, replaced, imported } => {
                let replaced =
                    if *imported { Replaced::Imported(*replaced) } else { Replaced::Own(*replaced) };
                work.settle_name(*space, (from, to), Some(replaced), look_only, &mut elsewhere)
            }
            DdlLogEntry::Rename { space, from, to } => {
                work.settle_name(*space, (from, to), None, look_only, &mut elsewhere)
            }
            _ if look_only => continue,
            DdlLogEntry::Create { space, path } | DdlLogEntry::Drop { space, path } => {
                work.unlink(*space, path).map(|()| {
                    let parent = path.parent().map(Path::to_owned).unwrap_or_default();
                    removed.entry(parent).or_default().push(entry);
                    false
                })
            }
        };
        note(entry, finished, &mut done);
    }
    for (parent, entries) in removed {
        match work.sync(&parent) {
            Ok(()) => entries.into_iter().for_each(|entry| note(entry, Ok(true), &mut done)),
            Err(error) => tracing::error!(
                "{} files of dropped tables in {} remain until the next start: {error}",
                entries.len(),
                parent.display()
            ),
        }
    }
    for entry in data.pending.iter().filter(|_| !look_only) {
        if let DdlLogEntry::DropDirectory { path } = entry {
            note(entry, work.remove_directory(path, &done), &mut done);
        }
    }
    if !look_only && !done.is_empty() {
        // Durably: somebody may put files where they were, which the next start must not take for them.
        if let Err(error) = catalog.change(|change| change.finish(|entry| done.contains(entry))) {
            tracing::warn!("could not record that file work is finished: {error}");
            catalog.change_later(|change| change.finish(|entry| done.contains(entry)))?;
        }
    }
    Ok(elsewhere)
}

fn note<'a>(entry: &'a DdlLogEntry, finished: Result<bool>, done: &mut HashSet<&'a DdlLogEntry>) {
    match finished {
        Ok(true) => {
            tracing::info!("finished file work that a statement had begun before the last stop: {entry:?}");
            done.insert(entry);
        }
        Ok(false) => {}
        Err(error) => {
            tracing::error!(
                "file work begun before the last stop remains until the next start: {entry:?}: {error}"
            )
        }
    }
}

/// Removes the directory of a database that was dropped. Whether that is all that can be done: files that are
/// not ours keep a directory, which is no error, but with files of the dropped tables that are still to be
/// removed (`awaits_files`) it stays to be removed with them.
pub(crate) fn remove_database_directory(
    storage: &dyn Storage,
    path: &Path,
    awaits_files: bool,
) -> disk::Result<bool> {
    if !storage.exists(path)? {
        return Ok(true);
    }
    match storage.remove_dir(path) {
        Ok(()) => Ok(true),
        Err(_) if awaits_files => Ok(false),
        // A link to one, which somebody made: it is theirs.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            tracing::warn!("{} is not a directory and was not removed; remove it by hand", path.display());
            Ok(true)
        }
        Err(error) if storage.list(path)?.is_empty() => Err(error),
        Err(_) => Ok(true),
    }
}

/// Whether a file is right in this directory.
pub(crate) fn is_in(work: &DdlLogEntry, directory: &Path) -> bool {
    work.paths().any(|path| path.parent() == Some(directory))
}

struct FileWork<'a> {
    storage: &'a dyn Storage,
    directory: &'a Path,
    data: &'a CatalogData,
    /// The tables by where their names say that their files are; none where nothing is to be done.
    owners: HashMap<PathBuf, &'a TableDef>,
}

impl<'a> FileWork<'a> {
    fn new(storage: &'a dyn Storage, directory: &'a Path, data: &'a CatalogData) -> FileWork<'a> {
        let tables = data.tables().filter(|_| !data.pending.is_empty());
        let owners = tables.map(|(database, name, def)| (table_file(database, name), def)).collect();
        FileWork { storage, directory, data, owners }
    }

    /// Also where a name is as it must be already, its directory is synced before the entry goes: the process
    /// may have been killed between the two.
    fn sync_parents(&self, paths: &[&Path]) -> disk::Result<()> {
        for path in paths {
            self.sync(path.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }

    fn sync(&self, parent: &Path) -> disk::Result<()> {
        let parent = self.directory.join(parent);
        if self.storage.exists(&parent)? { self.storage.sync_dir(&parent) } else { Ok(()) }
    }

    fn page_size(&self) -> PageSize {
        PageSize::new(self.data.page_size as usize).unwrap_or_default()
    }

    fn identity(&self, path: &Path) -> FileIdentity {
        FileIdentity::of(self.storage, &self.directory.join(path), self.page_size())
    }

    /// Removes the file of a table that is not to be.
    fn unlink(&self, space: u32, path: &Path) -> Result<()> {
        // A statement may have failed midway and its table been created again before the stop: that one's
        // file stays, unless it is the old one's still. Where a tablespace was discarded, another one may lie
        // by now, put there to be imported.
        if let Some(def) = self.owners.get(path) {
            match self.identity(path) {
                FileIdentity::Space(found) if found == space && (def.space != space || def.discarded) => {}
                FileIdentity::Unreadable(error) => return Err(error.into()),
                _ => return Ok(()),
            }
        }
        let file = self.directory.join(path);
        Ok(pagestore::unlink_space_file(self.storage, &file, space, self.page_size())?)
    }

    fn remove_directory(&self, path: &Path, done: &HashSet<&DdlLogEntry>) -> Result<bool> {
        if self.data.databases.keys().any(|name| path.as_os_str() == &*file_name(name)) {
            return Ok(true);
        }
        let awaits_files = self.data.pending.iter().any(|work| is_in(work, path) && !done.contains(work));
        Ok(remove_database_directory(self.storage, &self.directory.join(path), awaits_files)?)
    }

    /// Gives a table's file the name of its table, whichever of the two names it has. `replaced` is the
    /// file that may have that name still.
    fn settle_name(
        &self,
        space: u32,
        (from, to): (&Path, &Path),
        replaced: Option<Replaced>,
        look_only: bool,
        elsewhere: &mut Elsewhere,
    ) -> Result<bool> {
        let listed = self.data.tables().find(|(_, _, def)| def.space == space && !def.discarded);
        let Some((database, name, _)) = listed else { return Ok(true) };
        let belongs = table_file(database, name);
        // A file that replaces another one has its first name until it does; one on its way has one of both.
        let other = if replaced.is_some() || belongs == to { from } else { to };
        let moves = match self.identity(other) {
            _ if other == belongs => false,
            FileIdentity::Unreadable(error) => {
                if !matches!(self.identity(&belongs), FileIdentity::Space(found) if found == space) {
                    elsewhere.insert(space, other.to_owned());
                }
                return Err(error.into());
            }
            FileIdentity::Blank => true,
            FileIdentity::Space(found) => found == space,
            FileIdentity::Missing | FileIdentity::Foreign { .. } => false,
        };
        if moves {
            let there = self.identity(&belongs);
            // What a rename for the time being made way for is not replaced: nothing may be there.
            let taken = !there.gives_way_to(space, replaced.filter(|replaced| *replaced != Replaced::Own(0)));
            if matches!(there, FileIdentity::Space(found) if found == space) {
                // The other one is somebody's.
            } else if taken || look_only {
                if taken {
                    tracing::error!(
                        "{} is another tablespace's file or cannot be read, so '{database}.{name}' is in {}: move the former away and restart",
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
