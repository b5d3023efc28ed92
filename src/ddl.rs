//! Making and dropping databases and tables, and opening tables.
//!
//! Each operation holds the metadata locks of all its names ([`crate::name_locks`]), works on files under an
//! entry of the DDL log ([`crate::catalog`]), and happens at the moment the catalog's record is durable. What
//! may fail is done before that moment: opening the table, too. After it nothing fails any more: files that
//! cannot be removed or renamed then are a start's work ([`crate::ddl_recovery`]).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use btree::Tree;
use page::PageId;
use pagestore::fsp;

use crate::auto_increment::AutoIncrement;
use crate::catalog::{Change, DdlLogEntry};
use crate::database::Database;
use crate::ddl_recovery;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::file_names::{file_name, table_file};
use crate::foreign_key;
use crate::layout;
use crate::name_locks::{WantedName, check_database_name, check_table_name};
use crate::private::is_temporary;
use crate::rename::NamedTable;
use crate::retry::retry;
use crate::schema::{ForeignKey, TableDef};
use crate::statistics::TableCounts;
use crate::table::Table;
use crate::types::Collation;

impl Definitions<'_> {
    /// Creates a database, the namespace that tables live in; `collation` is that of its text columns where
    /// a table does not say.
    ///
    /// # Errors
    /// [`Error::DatabaseExists`], [`Error::WrongName`], [`Error::NameTooLong`], a timeout, or a directory
    /// that cannot be made.
    pub async fn create_database(self, name: &str, collation: Collation) -> Result<()> {
        self.database.refuse_after_close()?;
        check_database_name(name)?;
        let locks = self.lock_names(vec![WantedName::database(name, true)]).await?;
        let (database, name) = (self.database.clone(), name.to_owned());
        self.database
            .run_to_the_end(async move {
                let _locks = locks;
                database.make_database(&name, collation)
            })
            .await
    }

    /// Gives a database another collation. Tables that are there keep theirs.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], a timeout, or a catalog that cannot be written.
    pub async fn alter_database(self, name: &str, collation: Collation) -> Result<()> {
        self.database.refuse_after_close()?;
        let locks = self.lock_names(vec![WantedName::database(name, true)]).await?;
        let (database, name) = (self.database.clone(), name.to_owned());
        self.database
            .run_to_the_end(async move {
                let _locks = locks;
                database.0.catalog.change(|change| {
                    change.expect_database(&name)?;
                    change.put_database(&name, collation)
                })?;
                database.definitions_changed();
                Ok(())
            })
            .await
    }

    /// Drops a database with all its tables and views, at once; returns how many there were.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], a timeout, a deadlock, or a catalog that cannot be written: nothing is
    /// dropped then.
    pub async fn drop_database(self, name: &str) -> Result<usize> {
        let engine = self.database;
        let missing = || Error::NoSuchDatabase(name.to_owned());
        if engine.database(name).is_none() {
            return Err(missing());
        }
        // With the database locked nobody makes tables in it or moves them there.
        let locks = self.lock_names(vec![WantedName::database(name, true)]).await?;
        let def = engine.database(name).ok_or_else(missing)?;
        let names = def.tables.keys().chain(def.views.keys());
        let names = names.map(|table| WantedName::table(name, table)).collect();
        let locks = locks.and(self.lock_names(names).await?);
        let def = engine.database(name).ok_or_else(missing)?;
        let tables: Vec<_> = def.tables.keys().map(|table| (name.to_owned(), table.clone())).collect();
        let (count, checks) = (tables.len() + def.views.size(), self.checks_foreign_keys());
        let (database, name) = (engine.clone(), name.to_owned());
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                database.drop_locked(&tables, Some(&name), checks).await
            })
            .await?;
        Ok(count)
    }

    /// Drops a table.
    ///
    /// # Errors
    /// As [`Definitions::drop_tables`].
    pub async fn drop_table(self, database: &str, name: &str) -> Result<()> {
        self.drop_tables(&[(database, name)]).await
    }

    /// Drops tables, given as database and name: all of them or none.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchDatabase`], a timeout, a deadlock, or a catalog that cannot be
    /// written.
    pub async fn drop_tables(self, tables: &[NamedTable<'_>]) -> Result<()> {
        let engine = self.database;
        for (database, name) in tables {
            engine.known_table(database, name)?;
        }
        let names = tables.iter().map(|(database, name)| WantedName::table(database, name)).collect();
        let locks = self.lock_names(names).await?;
        let tables: Vec<_> =
            tables.iter().map(|(database, name)| ((*database).to_owned(), (*name).to_owned())).collect();
        let (database, checks) = (engine.clone(), self.checks_foreign_keys());
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                database.drop_locked(&tables, None, checks).await
            })
            .await
    }

    /// Creates a table and opens it.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::NoSuchDatabase`], [`Error::Schema`] for a definition that no table
    /// can have, a timeout, a deadlock, a full disk. Nothing is left behind then.
    pub async fn create_table(self, database: &str, name: &str, mut def: TableDef) -> Result<Arc<Table>> {
        let engine = self.database;
        engine.refuse_after_close()?;
        check_table_name(name)?;
        def.sort_keys();
        def.complete_foreign_keys(database, name);
        def.validate_for(engine.0.store.page_size().bytes())?;
        let refuse = || match engine.known_table(database, name) {
            _ if engine.view(database, name).is_some() => {
                Err(Error::TableExists(database.to_owned(), name.to_owned()))
            }
            Ok(()) => Err(Error::TableExists(database.to_owned(), name.to_owned())),
            Err(Error::NoSuchTable(..)) => Ok(()),
            Err(error) => Err(error),
        };
        refuse()?;
        let may_lack_parent = !self.checks_foreign_keys();
        foreign_key::validate(&engine.0.catalog.snapshot(), database, name, &def, may_lack_parent)?;
        let mut names = vec![WantedName::database(database, false), WantedName::table(database, name)];
        // Who uses a parent must not see a child come.
        names.extend(def.foreign_keys.iter().map(|key| WantedName::table(&key.database, &key.table)));
        let locks = self.lock_names(names).await?;
        refuse()?;
        def.created_unix_s = engine.0.environment.unix_time().as_secs();
        let (worker, database, name) = (engine.clone(), database.to_owned(), name.to_owned());
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                worker.create_locked(&database, &name, def, may_lack_parent).await
            })
            .await
    }

    /// Opens a table, or creates it, and its database too.
    ///
    /// A table that is there must have the columns of `def` and no others, its primary key, and the indexes,
    /// foreign keys and CHECK constraints that `def` has; it may have more of these, but no CHECK constraint
    /// that is enforced: only SQL could write its rows. Comments, and the names of foreign keys and
    /// constraints, are not compared; constants are compared by value, and SQL expressions as the texts that
    /// SHOW CREATE TABLE shows. A table whose columns are not known beforehand is opened with
    /// [`Database::table`].
    ///
    /// # Errors
    /// [`Error::OtherDefinition`] with the first difference; [`Error::TablespaceDiscarded`] for a table
    /// without its tablespace; [`Error::TableExists`] for the name of a view or of a table that could not be
    /// opened; else as [`Definitions::create_table`].
    pub async fn create_table_if_missing(
        self,
        database: &str,
        name: &str,
        def: TableDef,
    ) -> Result<Arc<Table>> {
        let mut asked = def.clone();
        asked.complete_foreign_keys(database, name);
        // An index that a foreign key is made with is none that was asked for: a table with that foreign key
        // has one for it, of any name.
        asked.keys.clone_from(&def.keys);
        let table = self.open_or_create_table(database, name, def).await?;
        match asked.difference_in(&table.def) {
            None => Ok(table),
            Some(difference) => {
                Err(Error::OtherDefinition { table: format!("{database}.{name}"), difference })
            }
        }
    }

    /// Opens a table, whatever its definition, or creates it, and its database too. One whose tablespace was
    /// discarded is an error: none of its rows could be read or written.
    pub(crate) async fn open_or_create_table(
        self,
        database: &str,
        name: &str,
        def: TableDef,
    ) -> Result<Arc<Table>> {
        use Error::{DatabaseExists, NoSuchDatabase, NoSuchTable, TableExists};
        // Others may create and drop it meanwhile.
        loop {
            match self.database.table(database, name) {
                Err(NoSuchTable(..)) => match self.create_table(database, name, def.clone()).await {
                    Err(TableExists(..)) if self.is_no_open_table(database, name).await? => {
                        return Err(TableExists(database.to_owned(), name.to_owned()));
                    }
                    Err(TableExists(..) | NoSuchTable(..) | NoSuchDatabase(..)) => {}
                    created => return created,
                },
                Err(NoSuchDatabase(..)) => match self.create_database(database, def.collation).await {
                    Err(DatabaseExists(..)) => {}
                    created => created?,
                },
                Ok(table) if table.def.discarded => return Err(table.discarded_error()),
                found => return found,
            }
        }
    }
}

impl Definitions<'_> {
    /// Whether the name is that of a view, or of a table that could not be opened. Under the name's lock: who
    /// is just creating a table of this name comes to the end of it first.
    async fn is_no_open_table(self, database: &str, name: &str) -> Result<bool> {
        let _locks = self.lock_names(vec![WantedName::table(database, name)]).await?;
        let engine = self.database;
        let is_known = engine.view(database, name).is_some() || engine.known_table(database, name).is_ok();
        Ok(is_known && engine.table(database, name).is_err())
    }
}

impl Database {
    /// The database's name is locked.
    fn make_database(&self, name: &str, collation: Collation) -> Result<()> {
        if self.database(name).is_some() {
            return Err(Error::DatabaseExists(name.to_owned()));
        }
        let storage = self.0.environment.storage();
        let directory = self.0.directory.join(file_name(name));
        let was_there = storage.exists(&directory)?;
        let made = storage
            .create_dir_all(&directory)
            .and_then(|()| storage.sync_dir(&self.0.directory))
            .map_err(Error::Disk)
            .and_then(|()| {
                self.0.catalog.change(|change| {
                    let path = file_name(name);
                    change.finish(
                        |work| matches!(work, DdlLogEntry::DropDirectory { path: p } if p.as_os_str() == &*path),
                    )?;
                    change.put_database(name, collation)
                })
            });
        match made {
            Ok(()) => self.definitions_changed(),
            Err(_) if was_there || self.0.catalog.is_uncertain() => {}
            // An empty directory that stays does no harm.
            Err(_) => drop(storage.remove_dir(&directory)),
        }
        made
    }

    /// Whether the catalog has a table; it need not be one that can be opened.
    fn known_table(&self, database: &str, name: &str) -> Result<()> {
        let data = self.0.catalog.snapshot();
        if data.table(database, name).is_some() {
            return Ok(());
        }
        match data.databases.contains_key(database) {
            true => Err(Error::NoSuchTable(database.to_owned(), name.to_owned())),
            false => Err(Error::NoSuchDatabase(database.to_owned())),
        }
    }

    /// Drops tables whose names are locked, and their database.
    async fn drop_locked(
        &self,
        tables: &[(String, String)],
        database: Option<&str>,
        checks: bool,
    ) -> Result<()> {
        let mut dropped = Vec::new();
        self.0.catalog.change(|change| {
            let mut elsewhere = Vec::new();
            if checks {
                foreign_key::refuse_to_drop_parents(change, tables)?;
            }
            for (owner, name) in tables {
                let handle = self.table(owner, name).ok();
                let at = handle.as_ref().map(|table| self.present_file(table));
                let at = at.filter(|path| *path != table_file(owner, name));
                let def = match database {
                    // All at once, below.
                    Some(_) => change.expect_table(owner, name)?,
                    None => change.drop_table(owner, name, at.clone())?,
                };
                elsewhere.extend(at.map(|path| (def.space, path)));
                dropped.push((def, handle));
            }
            let Some(name) = database else { return Ok(()) };
            let locked: BTreeSet<&str> = tables.iter().map(|(_, table)| table.as_str()).collect();
            let mut all = change.expect_database(name)?.tables.keys();
            if let Some(left) = all.find(|table| !locked.contains(table.as_str())) {
                return Err(Error::TableExists(name.to_owned(), left.clone()));
            }
            change.drop_database(name, elsewhere)
        })?;
        // Purge must not be at work on the pages when they go.
        let _purge = self.0.system.pause_purge().await;
        for (def, handle) in &dropped {
            self.note_references(&def.foreign_keys);
            handle.iter().for_each(|table| self.forget_table(table));
        }
        self.definitions_changed();
        let mut gone = BTreeSet::new();
        for (def, _) in dropped.iter().filter(|(def, _)| !def.discarded) {
            // The table is gone, whatever becomes of the file: a start removes what is left here.
            let removed = match self.0.store.space(def.space) {
                Some(_) => self.0.store.drop_space(def.space).await.map_err(Error::Store),
                None => self.remove_closed_file(def.space),
            };
            match removed {
                Ok(()) => drop(gone.insert(def.space)),
                Err(error) => {
                    tracing::error!("the file of a dropped table will be removed at the next start: {error}")
                }
            }
        }
        // Noted for all at once: there may be thousands.
        self.finish_removals(|work| work.space().is_some_and(|space| gone.contains(&space)));
        if let Some(name) = database {
            let path = file_name(name);
            let pending = &self.0.catalog.snapshot().pending;
            let awaits_files = pending.iter().any(|work| ddl_recovery::is_in(work, Path::new(&*path)));
            let storage = &**self.0.environment.storage();
            let directory = self.0.directory.join(&*path);
            match ddl_recovery::remove_database_directory(storage, &directory, awaits_files) {
                Ok(true) => self.finish_pending(
                    |work| matches!(work, DdlLogEntry::DropDirectory { path: p } if p.as_os_str() == &*path),
                ),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!("{} is removed at the next start: {error}", directory.display());
                }
            }
        }
        Ok(())
    }

    /// Removes the file of a dropped table that could not be opened.
    fn remove_closed_file(&self, space: u32) -> Result<()> {
        let storage = self.0.environment.storage();
        for work in self.0.catalog.snapshot().pending.iter() {
            let DdlLogEntry::Drop { space: of, path } = work else { continue };
            if *of == space {
                let file = self.0.directory.join(path);
                pagestore::remove_space_file(&**storage, &file, space, self.0.store.page_size())?;
            }
        }
        Ok(())
    }

    /// Makes a table whose name is locked.
    async fn create_locked(
        &self,
        database: &str,
        name: &str,
        mut def: TableDef,
        may_lack_parent: bool,
    ) -> Result<Arc<Table>> {
        let path = table_file(database, name);
        self.0.catalog.change(|change| {
            self.refuse_stray_file(change, database, name)?;
            take_ids(change, &mut def);
            change.begin(DdlLogEntry::Create { space: def.space, path: path.clone() })
        })?;
        let space = def.space;
        let made = async {
            self.build_table(&path, &mut def).await?;
            if is_temporary(database) {
                def.born = 0;
            }
            let table = self.assemble_table(database, name, def).await?;
            self.0.system.set_row_count(&table.rows, 0);
            self.0.catalog.change(|change| {
                foreign_key::validate(change, database, name, &table.def, may_lack_parent)?;
                change.finish(|work| work.space() == Some(space))?;
                change.put_table(database, name, Arc::new(table.def.clone()))
            })?;
            Ok(table)
        };
        match made.await {
            Ok(table) => {
                self.publish_table(&table);
                self.note_references(&table.def.foreign_keys);
                self.definitions_changed();
                Ok(table)
            }
            Err(error) => {
                self.give_up_file(space, &path, is_somebody_elses(&error)).await;
                Err(error)
            }
        }
    }

    /// Removes the file that a failed statement was making, unless its name is somebody else's file. If that
    /// fails too, the next start does it.
    pub(crate) async fn give_up_file(&self, space: u32, path: &Path, not_ours: bool) {
        if self.0.catalog.is_uncertain() {
            // After a crash the table may be there.
            return;
        }
        let storage = self.0.environment.storage();
        let file = self.0.directory.join(path);
        let removed = if self.0.store.space(space).is_some() {
            self.0.store.drop_space(space).await.map_err(Error::Store)
        } else if not_ours {
            Ok(())
        } else {
            // Made, but not opened, or removed already.
            pagestore::remove_space_file(&**storage, &file, space, self.0.store.page_size())
                .map_err(Error::Store)
        };
        match removed {
            Ok(()) => self.finish_removals(|work| work.space() == Some(space)),
            Err(error) => tracing::error!("{} is removed at the next start: {error}", file.display()),
        }
    }

    /// Makes the tablespace of a table, which has its ids, with empty trees, and fills in their roots.
    pub(crate) async fn build_table(&self, path: &Path, def: &mut TableDef) -> Result<()> {
        let store = &self.0.store;
        let space = def.space;
        def.born = self.0.system.birth_number().await?;
        store.create_space(space, &self.0.directory.join(path), fsp::INITIAL_PAGES)?;
        retry(|| {
            let mut mtr = store.mtr_sized(256 << 10)?;
            fsp::create_space_pages(&mut mtr, space, fsp::INITIAL_PAGES)?;
            mtr.commit();
            Ok::<(), pagestore::Interrupt>(())
        })
        .await?;
        if let Some((id, _)) = def.hidden_clustered {
            let layout = layout::clustered(def);
            let tree = self.create_tree(space, Arc::new(layout.def)).await?;
            def.hidden_clustered = Some((id, tree.root()));
        }
        for at in 0..def.keys.len() {
            let clustered = at == 0 && def.clustered_key().is_some();
            let index = match clustered {
                true => layout::clustered(def).def,
                false => layout::secondary(def, &def.keys[at]).def,
            };
            let tree = self.create_tree(space, Arc::new(index)).await?;
            def.keys[at].root = tree.root();
        }
        store.flush_space(space).await?;
        self.0
            .environment
            .storage()
            .sync_dir(self.0.directory.join(path).parent().unwrap_or(&self.0.directory))?;
        Ok(())
    }

    pub(crate) async fn create_tree(&self, space: u32, def: Arc<btree::IndexDef>) -> Result<Tree> {
        let store = &self.0.store;
        retry(|| {
            let mut mtr = store.mtr_sized(256 << 10)?;
            let tree = Tree::create(&mut mtr, store, space, def.clone())?;
            mtr.commit();
            Ok::<Tree, pagestore::Interrupt>(tree)
        })
        .await
    }

    /// Opens a table of the catalog and makes it known. The handle it replaces must have stored its counter
    /// ([`Database::store_counter`]), or the new one goes on at the value stored ahead.
    pub(crate) async fn open_table_handle(
        &self,
        database: &str,
        name: &str,
        def: TableDef,
    ) -> Result<Arc<Table>> {
        let table = self.assemble_table(database, name, def).await?;
        self.publish_table(&table);
        Ok(table)
    }

    /// Puts together a table that nobody else knows of yet. Reads nothing: what is wrong with its file, or
    /// its pages, is told to who uses it.
    pub(crate) async fn assemble_table(
        &self,
        database: &str,
        name: &str,
        def: TableDef,
    ) -> Result<Arc<Table>> {
        let clustered = layout::clustered(&def);
        let root = match (def.clustered_key(), def.hidden_clustered) {
            (Some(key), _) => key.root,
            (None, Some((_, root))) => root,
            (None, None) => {
                return Err(Error::Internal(format!("table '{database}.{name}' has no clustered index")));
            }
        };
        let tree = self.tree_of(&def, root, Arc::new(clustered.def));
        let mut secondaries = Vec::with_capacity(def.secondary_keys().len());
        for key in def.secondary_keys() {
            let layout = layout::secondary(&def, key);
            secondaries.push(txn::Secondary {
                user_fields: layout.def.n_user_key,
                unique: layout.def.unique,
                tree: self.tree_of(&def, key.root, Arc::new(layout.def)),
                columns: layout.sources,
                born: key.born,
            });
        }
        let rows = txn::Table::new(def.id, tree, clustered.sources, secondaries, def.columns.len());
        let rows = Arc::new(rows.born_at(def.born));
        let auto_increment = match def.auto_increment_column().filter(|_| !def.discarded) {
            None => None,
            Some(column) => {
                let most = def.columns[usize::from(column)].kind.integer_max().unwrap_or(u64::MAX);
                Some(AutoIncrement::new(PageId::new(def.space, root), most))
            }
        };
        let kept = self.0.tables.statistics.kept.lock().take(def.id);
        if let Some(exactly) = kept.as_ref().and_then(|kept| kept.exactly).filter(|_| !def.discarded) {
            self.0.system.set_row_count(&rows, exactly);
        }
        let counts = TableCounts::new(kept, &self.0.tables.statistics.renewal);
        Ok(Arc::new(Table {
            database: database.to_owned(),
            name: name.to_owned(),
            def,
            rows,
            auto_increment,
            metadata: self.name_lock(database, name),
            current: AtomicBool::new(true),
            counts,
            referenced: AtomicBool::new(false),
        }))
    }

    fn tree_of(&self, def: &TableDef, root: u32, index: Arc<btree::IndexDef>) -> Arc<Tree> {
        let store = &self.0.store;
        Arc::new(match def.discarded {
            true => Tree::absent(store, def.space, index),
            false => Tree::unread(store, def.space, root, index),
        })
    }

    /// Makes an open table the one of its name.
    pub(crate) fn publish_table(&self, table: &Arc<Table>) {
        let tables = &self.0.tables;
        let children = self.0.catalog.snapshot().children_of(&table.database, &table.name);
        table.referenced.store(!children.is_empty(), Ordering::Relaxed);
        tables.by_id.write().insert(table.def.id, table.clone());
        let key = (table.database.clone(), table.name.clone());
        if let Some(old) = tables.by_name.write().insert(key, table.clone()) {
            old.current.store(false, Ordering::Release);
        }
        tables.feeds.redefined(&table.database, &table.name);
    }

    /// Foreign keys have come or gone: their parents learn whether they have children. The names of the
    /// parents are locked, or the children were dropped: who still takes a table for one that has some finds
    /// none.
    pub(crate) fn note_references(&self, keys: &[ForeignKey]) {
        let data = self.0.catalog.snapshot();
        for key in keys {
            if let Ok(parent) = self.table(&key.database, &key.table) {
                let referenced = !data.children_of(&key.database, &key.table).is_empty();
                parent.referenced.store(referenced, Ordering::Relaxed);
            }
        }
    }

    /// Stores a table's AUTO_INCREMENT counter exactly, before another handle takes over.
    pub(crate) async fn store_counter(&self, table: &Table) -> Result<()> {
        match &table.auto_increment {
            Some(counter) => counter.store_exact(&self.0.store).await,
            None => Ok(()),
        }
    }

    /// Takes a table that is replaced or gone out of those that can be found, unless another has taken its
    /// name or id.
    pub(crate) fn forget_table(&self, table: &Arc<Table>) {
        table.current.store(false, Ordering::Release);
        let tables = &self.0.tables;
        let key = (table.database.clone(), table.name.clone());
        let mut by_name = tables.by_name.write();
        if by_name.get(&key).is_some_and(|other| Arc::ptr_eq(other, table)) {
            by_name.remove(&key);
        }
        drop(by_name);
        let mut by_id = tables.by_id.write();
        if by_id.get(&table.def.id).is_some_and(|other| Arc::ptr_eq(other, table)) {
            by_id.remove(&table.def.id);
        }
        tables.feeds.redefined(&table.database, &table.name);
    }

    /// Notes, durably, that files are removed: somebody may put others where they were, which a start must
    /// not take for them.
    pub(crate) fn finish_removals(&self, done: impl Fn(&DdlLogEntry) -> bool) {
        if let Err(error) = self.0.catalog.change(|change| change.finish(&done)) {
            tracing::warn!("could not record that files were removed: {error}");
            self.finish_pending(done);
        }
    }

    /// Notes that work on files is done. A crash before that is durable makes a start do it again, which does
    /// nothing.
    pub(crate) fn finish_pending(&self, done: impl Fn(&DdlLogEntry) -> bool) {
        if let Err(error) = self.0.catalog.change_later(|change| change.finish(done)) {
            tracing::error!("could not record that file work is finished: {error}");
        }
    }
}

/// Gives a definition fresh ids for itself, its tablespace and its indexes.
pub(crate) fn take_ids(change: &mut Change, def: &mut TableDef) {
    def.origin = def.lineage();
    def.id = change.take_table_id();
    def.space = change.take_space_id();
    if def.clustered_key().is_none() {
        def.hidden_clustered = Some((change.take_index_id(), 0));
    }
    for key in &mut def.keys {
        (key.id, key.born) = (change.take_index_id(), 0);
    }
}

/// Whether a file could not be made because there is one of its name, which is then not ours.
pub(crate) fn is_somebody_elses(error: &Error) -> bool {
    matches!(error, Error::Store(pagestore::Error::Io(error)) | Error::Disk(error) if error.kind() == std::io::ErrorKind::AlreadyExists)
}
