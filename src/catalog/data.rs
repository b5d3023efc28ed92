//! What the catalog knows, and the edits that change it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};

use super::FORMAT;
use super::ddl_log::{DdlLog, DdlLogEntry};
use crate::error::Error;
use crate::file_names::{file_name, table_file};
use crate::provenance::LastRun;
use crate::schema::TableDef;
use crate::types::Collation;
use crate::view::ViewDef;

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseDef {
    /// Default collation of its tables.
    pub collation: Collation,
    /// Its tables by name.
    pub tables: RedBlackTreeMapSync<String, Arc<TableDef>>,
    /// Its views by name; no table has one of these names.
    pub views: RedBlackTreeMapSync<String, Arc<ViewDef>>,
}

/// One change of the catalog. A record of the file is a list of them, which happen together or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Edit {
    /// What holds for the whole directory.
    Directory {
        page_size: u32,
        identity: Option<String>,
    },
    /// The next unused ids.
    NextIds {
        table: u64,
        index: u64,
        space: u32,
    },
    PutDatabase {
        name: String,
        collation: Collation,
    },
    /// A database is gone with all its tables: their files are to be removed, and its directory. Those files
    /// that are not where the names of their tables say come with their tablespaces.
    DropDatabase {
        name: String,
        elsewhere: Vec<(u32, PathBuf)>,
    },
    PutTable {
        database: String,
        name: String,
        #[serde(with = "shared")]
        def: Arc<TableDef>,
    },
    /// A table that has another name from now on.
    RemoveTable {
        database: String,
        name: String,
    },
    /// A table is gone and its file is to be removed, which is where the table's name says or `at` another
    /// place.
    DropTable {
        database: String,
        name: String,
        at: Option<PathBuf>,
    },
    PutView {
        database: String,
        name: String,
        #[serde(with = "shared")]
        def: Arc<ViewDef>,
    },
    DropView {
        database: String,
        name: String,
    },
    /// Secondary indexes are gone, by their ids: their pages are to be freed.
    DropIndexes {
        database: String,
        name: String,
        indexes: Vec<u64>,
    },
    /// The file of a table that is about to be discarded gives up its name.
    SetAside {
        space: u32,
        from: PathBuf,
        to: PathBuf,
    },
    /// A table has no tablespace any more: its file, which is there, is to be removed.
    Discard {
        database: String,
        name: String,
        at: PathBuf,
    },
    /// See [`LastRun`].
    LastRun(LastRun),
    /// A tablespace has lost changes, and why.
    Lost {
        space: u32,
        why: String,
    },
    /// Tablespaces and their marks.
    Marks(Vec<(u32, u64)>),
    AddPending(DdlLogEntry),
    RemovePending(DdlLogEntry),
    /// The files of these tablespaces, which were to be removed, are gone.
    FilesGone(Vec<u32>),
    /// The end of what a newly written file begins with.
    SnapshotEnd,
}

impl Edit {
    /// Whether it may take from the room that is kept: it removes something, or the directory could not be
    /// opened without it.
    pub(super) fn may_take_the_reserve(&self) -> bool {
        match self {
            Edit::DropDatabase { .. }
            | Edit::DropTable { .. }
            | Edit::DropView { .. }
            | Edit::DropIndexes { .. }
            | Edit::SetAside { .. }
            | Edit::Discard { .. }
            | Edit::RemovePending(_)
            | Edit::FilesGone(_)
            | Edit::LastRun(_)
            | Edit::Lost { .. } => true,
            Edit::Directory { .. }
            | Edit::NextIds { .. }
            | Edit::PutDatabase { .. }
            | Edit::PutTable { .. }
            | Edit::PutView { .. }
            | Edit::RemoveTable { .. }
            | Edit::Marks(_)
            | Edit::AddPending(_)
            | Edit::SnapshotEnd => false,
        }
    }

    /// Whether it announces this work, which may have been announced and done before.
    pub(super) fn announces(&self, work: &DdlLogEntry) -> bool {
        match self {
            Edit::AddPending(announced) => announced == work,
            Edit::DropDatabase { name, .. } => *work == drop_directory(name),
            Edit::DropIndexes { indexes, .. } => {
                matches!(work, DdlLogEntry::BuildIndex { index, .. } if indexes.contains(index))
            }
            Edit::SetAside { space, from, to } => *work == set_aside(*space, from, to),
            _ => false,
        }
    }
}

fn set_aside(space: u32, from: &Path, to: &Path) -> DdlLogEntry {
    DdlLogEntry::Rename { space, from: from.to_owned(), to: to.to_owned() }
}

fn drop_directory(database: &str) -> DdlLogEntry {
    DdlLogEntry::DropDirectory { path: file_name(database).into() }
}

/// Serde for what is shared.
mod shared {
    use super::Arc;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<T: Serialize, S: Serializer>(def: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
        T::serialize(def, serializer)
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// The catalog as it is at one moment. Cloning it copies no definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogData {
    /// Bytes of a page in every file of the directory.
    pub page_size: u32,
    /// Next unused table id.
    pub next_table: u64,
    /// Next unused index id.
    pub next_index: u64,
    /// Next unused tablespace id.
    pub next_space: u32,
    /// What tells this data directory from all others: 32 random hexadecimal digits. Missing in directories
    /// made by early versions, until they are opened again.
    pub identity: Option<String>,
    /// Databases by name.
    pub databases: RedBlackTreeMapSync<String, DatabaseDef>,
    /// Unfinished work on files.
    pub pending: DdlLog,
    /// The last time the directory was open. Missing in directories of earlier versions.
    pub last_run: Option<LastRun>,
    /// Tablespaces that lost changes because their file was not there when the redo log was applied, and why.
    /// Whatever lies in their places now is without them.
    pub lost: BTreeMap<u32, String>,
    /// Which mark the file of each tablespace has at least. May name some that are gone: their ids are not
    /// used again.
    pub marks: RedBlackTreeMapSync<u32, u64>,
    /// By the name of a table, which need not exist: the tables with a foreign key to it. Follows from the
    /// definitions.
    children: RedBlackTreeMapSync<Name, Arc<BTreeSet<Name>>>,
}

/// Database and table.
type Name = (String, String);

impl CatalogData {
    /// The catalog of an empty data directory.
    pub(super) fn empty(page_size: u32) -> CatalogData {
        CatalogData {
            page_size,
            next_table: 1,
            next_index: 1,
            next_space: 1,
            identity: None,
            databases: RedBlackTreeMapSync::new_sync(),
            pending: DdlLog::default(),
            last_run: None,
            lost: BTreeMap::new(),
            marks: RedBlackTreeMapSync::new_sync(),
            children: RedBlackTreeMapSync::new_sync(),
        }
    }

    /// The tables that have a foreign key to this name, as database and table; itself too.
    pub fn children_of(&self, database: &str, name: &str) -> Arc<BTreeSet<Name>> {
        if self.children.is_empty() {
            return Arc::default();
        }
        self.children.get(&(database.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// A table gets a definition, or goes.
    fn note_children(&mut self, database: &str, name: &str, old: Option<&TableDef>, new: Option<&TableDef>) {
        let parents = |def: Option<&TableDef>| -> BTreeSet<Name> {
            let keys = def.into_iter().flat_map(|def| &def.foreign_keys);
            keys.map(|key| (key.database.clone(), key.table.clone())).collect()
        };
        let (old, new) = (parents(old), parents(new));
        let own = (database.to_owned(), name.to_owned());
        for parent in old.difference(&new) {
            let mut left = self.children.get(parent).map(|set| BTreeSet::clone(set)).unwrap_or_default();
            left.remove(&own);
            match left.is_empty() {
                true => drop(self.children.remove_mut(parent)),
                false => self.children.insert_mut(parent.clone(), Arc::new(left)),
            }
        }
        for parent in new.difference(&old) {
            let mut more = self.children.get(parent).map(|set| BTreeSet::clone(set)).unwrap_or_default();
            more.insert(own.clone());
            self.children.insert_mut(parent.clone(), Arc::new(more));
        }
    }

    /// A table's definition.
    pub fn table(&self, database: &str, name: &str) -> Option<&Arc<TableDef>> {
        self.databases.get(database)?.tables.get(name)
    }

    /// A view.
    pub fn view(&self, database: &str, name: &str) -> Option<&Arc<ViewDef>> {
        self.databases.get(database)?.views.get(name)
    }

    /// Every table with its database's name and its own.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str, &TableDef)> {
        self.databases.iter().flat_map(|(database, def)| {
            def.tables.iter().map(move |(name, table)| (database.as_str(), name.as_str(), &**table))
        })
    }

    /// Makes one change; `Err` says why it cannot be.
    pub(super) fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        match edit {
            Edit::Directory { page_size, identity } => {
                self.page_size = *page_size;
                self.identity.clone_from(identity);
            }
            Edit::NextIds { table, index, space } => {
                (self.next_table, self.next_index, self.next_space) = (*table, *index, *space);
            }
            Edit::PutDatabase { name, collation } => {
                let (tables, views) = self
                    .databases
                    .get(name)
                    .map(|def| (def.tables.clone(), def.views.clone()))
                    .unwrap_or_default();
                self.databases.insert_mut(name.clone(), DatabaseDef { collation: *collation, tables, views });
            }
            Edit::DropDatabase { name, elsewhere } => {
                let owner = self.databases.get(name).cloned();
                let owner =
                    owner.ok_or_else(|| format!("database '{name}' is dropped, but did not exist"))?;
                let spaces: BTreeSet<u32> = owner.tables.values().map(|def| def.space).collect();
                self.forget_work(&spaces);
                let elsewhere: BTreeMap<_, _> =
                    elsewhere.iter().map(|(space, path)| (*space, path)).collect();
                for (table, def) in owner.tables.iter().filter(|(_, def)| !def.discarded) {
                    let at = elsewhere.get(&def.space).map(|path| (*path).clone());
                    let path = at.unwrap_or_else(|| table_file(name, table));
                    self.pending.add(DdlLogEntry::Drop { space: def.space, path });
                }
                self.pending.add(drop_directory(name));
                for (table, def) in owner.tables.iter().filter(|(_, def)| !def.foreign_keys.is_empty()) {
                    self.note_children(name, table, Some(def), None);
                }
                self.databases.remove_mut(name);
            }
            Edit::PutTable { database, name, def } => self.put_table(database, name, def.clone())?,
            Edit::RemoveTable { database, name } => drop(self.remove_table(database, name)?),
            Edit::PutView { database, name, def } => {
                let mut owner = self.owner_of("view", database, name)?;
                owner.views.insert_mut(name.clone(), def.clone());
                self.databases.insert_mut(database.clone(), owner);
            }
            Edit::DropView { database, name } => {
                let mut owner = self.owner_of("view", database, name)?;
                if !owner.views.remove_mut(name) {
                    return Err(format!("view '{database}.{name}' is removed, but did not exist"));
                }
                self.databases.insert_mut(database.clone(), owner);
            }
            Edit::DropTable { database, name, at } => {
                let def = self.remove_table(database, name)?;
                self.forget_work(&BTreeSet::from([def.space]));
                if !def.discarded {
                    let path = at.clone().unwrap_or_else(|| table_file(database, name));
                    self.pending.add(DdlLogEntry::Drop { space: def.space, path });
                }
            }
            Edit::DropIndexes { database, name, indexes } => {
                let mut def = TableDef::clone(self.table_to_change(database, name)?);
                let (gone, left): (Vec<_>, Vec<_>) =
                    def.keys.into_iter().partition(|key| indexes.contains(&key.id));
                for key in gone {
                    self.pending.add(DdlLogEntry::BuildIndex {
                        space: def.space,
                        index: key.id,
                        root: key.root,
                    });
                }
                // In the order in which they are: another version may have sorted them otherwise.
                def.keys = left;
                self.put_table(database, name, Arc::new(def))?;
            }
            Edit::SetAside { space, from, to } => self.pending.add(set_aside(*space, from, to)),
            Edit::Discard { database, name, at } => {
                let mut def = TableDef::clone(self.table_to_change(database, name)?);
                self.forget_work(&BTreeSet::from([def.space]));
                self.pending.add(DdlLogEntry::Drop { space: def.space, path: at.clone() });
                def.discarded = true;
                self.put_table(database, name, Arc::new(def))?;
            }
            Edit::LastRun(run) => self.last_run = Some(run.clone()),
            Edit::Lost { space, why } => drop(self.lost.insert(*space, why.clone())),
            Edit::Marks(marks) => {
                for (space, number) in marks {
                    self.marks.insert_mut(*space, *number);
                }
            }
            Edit::AddPending(work) => self.pending.add(work.clone()),
            Edit::RemovePending(work) => self.pending.retain(|other| other != work),
            Edit::FilesGone(spaces) => {
                let spaces: BTreeSet<u32> = spaces.iter().copied().collect();
                self.pending.retain(|work| !work.drops_one_of(&spaces));
            }
            Edit::SnapshotEnd => {}
        }
        Ok(())
    }

    fn put_table(&mut self, database: &str, name: &str, def: Arc<TableDef>) -> Result<(), String> {
        let mut owner = self.owner_of("table", database, name)?;
        let old = owner.tables.get(name).cloned();
        self.note_children(database, name, old.as_deref(), Some(&*def));
        owner.tables.insert_mut(name.to_owned(), def);
        self.databases.insert_mut(database.to_owned(), owner);
        Ok(())
    }

    fn owner_of(&self, what: &str, database: &str, name: &str) -> Result<DatabaseDef, String> {
        let owner = self.databases.get(database).cloned();
        owner.ok_or_else(|| format!("{what} '{name}' belongs to a database '{database}' that does not exist"))
    }

    fn table_to_change(&self, database: &str, name: &str) -> Result<&Arc<TableDef>, String> {
        let gone = || format!("table '{database}.{name}' is changed, but did not exist");
        self.table(database, name).ok_or_else(gone)
    }

    fn remove_table(&mut self, database: &str, name: &str) -> Result<Arc<TableDef>, String> {
        let owner = self.databases.get(database).cloned();
        let gone = || format!("table '{database}.{name}' is removed, but did not exist");
        let mut owner = owner.ok_or_else(gone)?;
        let def = owner.tables.get(name).cloned().ok_or_else(gone)?;
        self.note_children(database, name, Some(&def), None);
        owner.tables.remove_mut(name);
        self.databases.insert_mut(database.to_owned(), owner);
        Ok(def)
    }

    /// Whatever was still to be done with the files of these tables is not, now that they go; but what is to
    /// be removed is.
    fn forget_work(&mut self, spaces: &BTreeSet<u32>) {
        let concerns = |work: &DdlLogEntry| work.space().is_some_and(|space| spaces.contains(&space));
        self.pending.retain(|work| !concerns(work) || work.drops_one_of(spaces));
    }

    /// The edits that make this catalog of an empty one; one list for each record.
    pub(super) fn snapshot_records(&self) -> impl Iterator<Item = Vec<Edit>> + '_ {
        let directory = Edit::Directory { page_size: self.page_size, identity: self.identity.clone() };
        let mut first = vec![directory, self.next_ids()];
        first.extend(
            self.databases
                .iter()
                .map(|(name, def)| Edit::PutDatabase { name: name.clone(), collation: def.collation }),
        );
        first.extend(self.pending.iter().cloned().map(Edit::AddPending));
        first.extend(self.last_run.clone().map(Edit::LastRun));
        let spaces: BTreeSet<u32> = self.tables().map(|(_, _, def)| def.space).collect();
        let lost = self.lost.iter().filter(|(space, _)| spaces.contains(space));
        first.extend(lost.map(|(space, why)| Edit::Lost { space: *space, why: why.clone() }));
        let marks = self.marks.iter().filter(|(space, _)| spaces.contains(space));
        let marks: Vec<(u32, u64)> = marks.map(|(space, number)| (*space, *number)).collect();
        first.extend(marks.chunks(MARKS_PER_EDIT).map(|some| Edit::Marks(some.to_vec())));
        let table = |(database, name, def): (&String, &String, &Arc<TableDef>)| {
            vec![Edit::PutTable { database: database.clone(), name: name.clone(), def: def.clone() }]
        };
        let tables = self
            .databases
            .iter()
            .flat_map(|(database, def)| def.tables.iter().map(move |(name, def)| (database, name, def)));
        let views = self
            .databases
            .iter()
            .flat_map(|(database, def)| def.views.iter().map(move |(name, def)| (database, name, def)));
        let view = |(database, name, def): (&String, &String, &Arc<ViewDef>)| {
            vec![Edit::PutView { database: database.clone(), name: name.clone(), def: def.clone() }]
        };
        std::iter::once(first)
            .chain(tables.map(table))
            .chain(views.map(view))
            .chain(std::iter::once(vec![Edit::SnapshotEnd]))
    }

    fn next_ids(&self) -> Edit {
        Edit::NextIds { table: self.next_table, index: self.next_index, space: self.next_space }
    }
}

/// A change being made: a copy of the catalog to look at and to edit.
pub struct Change {
    data: CatalogData,
    edits: Vec<Edit>,
    /// Ids were taken.
    takes_ids: bool,
}

impl Deref for Change {
    type Target = CatalogData;
    fn deref(&self) -> &CatalogData {
        &self.data
    }
}

impl Change {
    pub(super) fn of(data: &CatalogData) -> Change {
        Change { data: data.clone(), edits: Vec::new(), takes_ids: false }
    }

    /// The catalog after the change, and what makes it so.
    pub(super) fn into_parts(mut self) -> (CatalogData, Vec<Edit>) {
        if self.takes_ids {
            self.edits.push(self.data.next_ids());
        }
        (self.data, self.edits)
    }

    fn edit(&mut self, edit: Edit) -> Result<(), Error> {
        self.data.apply(&edit).map_err(|why| Error::Internal(format!("a change of the catalog: {why}")))?;
        self.edits.push(edit);
        Ok(())
    }

    /// Takes a table id.
    pub fn take_table_id(&mut self) -> u64 {
        self.takes_ids = true;
        self.data.next_table += 1;
        self.data.next_table - 1
    }

    /// Takes an index id.
    pub fn take_index_id(&mut self) -> u64 {
        self.takes_ids = true;
        self.data.next_index += 1;
        self.data.next_index - 1
    }

    /// Takes a tablespace id.
    pub fn take_space_id(&mut self) -> u32 {
        self.takes_ids = true;
        self.data.next_space += 1;
        self.data.next_space - 1
    }

    /// A database that must be there.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    pub fn expect_database(&self, name: &str) -> Result<&DatabaseDef, Error> {
        self.data.databases.get(name).ok_or_else(|| Error::NoSuchDatabase(name.to_owned()))
    }

    /// Makes a database, or changes its collation.
    pub fn put_database(&mut self, name: &str, collation: Collation) -> Result<(), Error> {
        self.edit(Edit::PutDatabase { name: name.to_owned(), collation })
    }

    /// Drops a database with all its tables, and announces that their files go. `elsewhere` has those, by
    /// tablespace, that are not where the names of their tables say.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    pub fn drop_database(&mut self, name: &str, elsewhere: Vec<(u32, PathBuf)>) -> Result<(), Error> {
        self.expect_database(name)?;
        self.edit(Edit::DropDatabase { name: name.to_owned(), elsewhere })
    }

    /// Drops a table, which is returned, and announces that its file goes; that is where its name says, or
    /// `at` another place.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn drop_table(
        &mut self,
        database: &str,
        name: &str,
        at: Option<PathBuf>,
    ) -> Result<Arc<TableDef>, Error> {
        let def = self.expect_table(database, name)?;
        self.edit(Edit::DropTable { database: database.to_owned(), name: name.to_owned(), at })?;
        Ok(def)
    }

    /// A table that must be there.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn expect_table(&self, database: &str, name: &str) -> Result<Arc<TableDef>, Error> {
        let def = self.expect_database(database)?.tables.get(name).cloned();
        def.ok_or_else(|| Error::NoSuchTable(database.to_owned(), name.to_owned()))
    }

    /// Makes a table, or changes its definition.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    pub fn put_table(&mut self, database: &str, name: &str, def: Arc<TableDef>) -> Result<(), Error> {
        self.expect_database(database)?;
        self.edit(Edit::PutTable { database: database.to_owned(), name: name.to_owned(), def })
    }

    /// Takes a table's name away, which is to get another one. The table is returned.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn remove_table(&mut self, database: &str, name: &str) -> Result<Arc<TableDef>, Error> {
        let def = self.expect_table(database, name)?;
        self.edit(Edit::RemoveTable { database: database.to_owned(), name: name.to_owned() })?;
        Ok(def)
    }

    /// Makes a view, or replaces it.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    pub fn put_view(&mut self, database: &str, name: &str, def: Arc<ViewDef>) -> Result<(), Error> {
        self.expect_database(database)?;
        self.edit(Edit::PutView { database: database.to_owned(), name: name.to_owned(), def })
    }

    /// Drops a view, which is returned.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn drop_view(&mut self, database: &str, name: &str) -> Result<Arc<ViewDef>, Error> {
        let def = self.expect_database(database)?.views.get(name).cloned();
        let def = def.ok_or_else(|| Error::NoSuchTable(database.to_owned(), name.to_owned()))?;
        self.edit(Edit::DropView { database: database.to_owned(), name: name.to_owned() })?;
        Ok(def)
    }

    /// Takes secondary indexes out of a table's definition, and announces that their pages are freed.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn drop_indexes(&mut self, database: &str, name: &str, indexes: Vec<u64>) -> Result<(), Error> {
        self.expect_table(database, name)?;
        self.edit(Edit::DropIndexes { database: database.to_owned(), name: name.to_owned(), indexes })
    }

    /// Announces that the file of a table that is about to be discarded gives up its name.
    pub fn set_aside(&mut self, space: u32, from: PathBuf, to: PathBuf) -> Result<(), Error> {
        self.edit(Edit::SetAside { space, from, to })
    }

    /// Takes a table's tablespace away, and announces that its file goes, which is `at` this place.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn discard_table(&mut self, database: &str, name: &str, at: PathBuf) -> Result<(), Error> {
        self.expect_table(database, name)?;
        self.edit(Edit::Discard { database: database.to_owned(), name: name.to_owned(), at })
    }

    /// Announces work on files.
    pub fn begin(&mut self, work: DdlLogEntry) -> Result<(), Error> {
        self.edit(Edit::AddPending(work))
    }

    /// Takes work out that is done, or need not be done any more.
    pub fn finish(&mut self, done: impl Fn(&DdlLogEntry) -> bool) -> Result<(), Error> {
        let mut files = Vec::new();
        let works = self.data.pending.clone();
        for work in works.iter().filter(|work| done(work)) {
            match work {
                DdlLogEntry::Drop { space, .. } => files.push(*space),
                _ => self.edit(Edit::RemovePending(work.clone()))?,
            }
        }
        if files.is_empty() { Ok(()) } else { self.edit(Edit::FilesGone(files)) }
    }

    /// Gives the directory its identity.
    pub fn set_identity(&mut self, identity: &str) -> Result<(), Error> {
        self.edit(Edit::Directory { page_size: self.data.page_size, identity: Some(identity.to_owned()) })
    }

    /// Remembers how far this opening of the directory has come.
    pub fn set_last_run(&mut self, run: LastRun) -> Result<(), Error> {
        self.edit(Edit::LastRun(run))
    }

    /// Remembers that a tablespace has lost changes, unless that is known.
    pub fn note_lost(&mut self, space: u32, why: &str) -> Result<(), Error> {
        if self.data.lost.contains_key(&space) {
            return Ok(());
        }
        self.edit(Edit::Lost { space, why: why.to_owned() })
    }

    /// Remembers that these files have a mark of this number.
    pub fn note_marks(&mut self, spaces: &[u32], number: u64) -> Result<(), Error> {
        for some in spaces.chunks(MARKS_PER_EDIT) {
            self.edit(Edit::Marks(some.iter().map(|space| (*space, number)).collect()))?;
        }
        Ok(())
    }
}

/// Marks in one edit.
const MARKS_PER_EDIT: usize = 1000;

/// The catalog as one JSON document: what format 1 had on disk, and what people are shown.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    pub format: u32,
    pub written_by: String,
    pub page_size: u32,
    pub next_table: u64,
    pub next_index: u64,
    pub next_space: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<u32, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<u32, u64>,
    pub databases: BTreeMap<String, DocumentDatabase>,
    #[serde(default)]
    pub pending: Vec<DdlLogEntry>,
}

/// A database of a [`Document`].
#[derive(Serialize, Deserialize)]
pub(super) struct DocumentDatabase {
    pub collation: Collation,
    #[serde(default)]
    pub tables: BTreeMap<String, TableDef>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub views: BTreeMap<String, ViewDef>,
}

impl From<&CatalogData> for Document {
    fn from(data: &CatalogData) -> Document {
        let tables = |def: &DatabaseDef| {
            def.tables.iter().map(|(name, table)| (name.clone(), TableDef::clone(table))).collect()
        };
        let views = |def: &DatabaseDef| {
            def.views.iter().map(|(name, view)| (name.clone(), ViewDef::clone(view))).collect()
        };
        let database = |(name, def): (&String, &DatabaseDef)| {
            let def = DocumentDatabase { collation: def.collation, tables: tables(def), views: views(def) };
            (name.clone(), def)
        };
        Document {
            format: FORMAT,
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            page_size: data.page_size,
            next_table: data.next_table,
            next_index: data.next_index,
            next_space: data.next_space,
            identity: data.identity.clone(),
            last_run: data.last_run.clone(),
            lost: data.lost.clone(),
            marks: data.marks.iter().map(|(space, number)| (*space, *number)).collect(),
            databases: data.databases.iter().map(database).collect(),
            pending: data.pending.iter().cloned().collect(),
        }
    }
}

impl From<Document> for CatalogData {
    fn from(document: Document) -> CatalogData {
        let tables = |tables: BTreeMap<String, TableDef>| {
            tables.into_iter().map(|(name, def)| (name, Arc::new(def))).collect()
        };
        let views = |views: BTreeMap<String, ViewDef>| {
            views.into_iter().map(|(name, def)| (name, Arc::new(def))).collect()
        };
        let database = |(name, def): (String, DocumentDatabase)| {
            let (tables, views) = (tables(def.tables), views(def.views));
            (name, DatabaseDef { collation: def.collation, tables, views })
        };
        CatalogData {
            page_size: document.page_size,
            next_table: document.next_table,
            next_index: document.next_index,
            next_space: document.next_space,
            identity: document.identity,
            last_run: document.last_run,
            lost: document.lost,
            marks: document.marks.into_iter().collect(),
            databases: document.databases.into_iter().map(database).collect(),
            pending: document.pending.into_iter().collect(),
            // Documents are of a time without foreign keys.
            children: RedBlackTreeMapSync::new_sync(),
        }
    }
}
