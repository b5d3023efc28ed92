//! Making, changing and dropping databases and tables.
//!
//! Each operation takes the table's metadata lock exclusively, works on files under a pending entry of the
//! catalog, and happens at the moment the catalog file is replaced. See [`crate::catalog`] for what a start
//! does about one that was interrupted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use btree::Tree;
use disk::PageId;
use pagestore::fsp;

use crate::auto_increment::AutoIncrement;
use crate::catalog::{CatalogData, DatabaseDef, Pending};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::layout;
use crate::metadata_lock::{MetadataExclusive, MetadataLock};
use crate::retry::retry;
use crate::schema::TableDef;
use crate::table::{Table, file_name, table_file};
use crate::timeout;
use crate::transaction::Transaction;
use crate::types::Collation;

/// MySQL's limit of a name, in characters.
const NAME_CHARS_MAX: usize = 64;

fn check_name(name: &str) -> Result<()> {
    let wrong = name.is_empty()
        || name.chars().count() > NAME_CHARS_MAX
        || name.ends_with(' ')
        || name.contains(['\0', '\u{ffff}']);
    if wrong { Err(Error::WrongName(name.to_owned())) } else { Ok(()) }
}

pub(crate) fn database_mut<'a>(data: &'a mut CatalogData, name: &str) -> Result<&'a mut DatabaseDef> {
    data.databases.get_mut(name).ok_or_else(|| Error::NoSuchDatabase(name.to_owned()))
}

impl Database {
    /// Makes a database.
    ///
    /// # Errors
    /// [`Error::DatabaseExists`], [`Error::WrongName`], or a directory that cannot be made.
    pub fn create_database(&self, name: &str, collation: Collation) -> Result<()> {
        check_name(name)?;
        let storage = self.0.environment.storage();
        if self.database(name).is_some() {
            return Err(Error::DatabaseExists(name.to_owned()));
        }
        storage.create_dir_all(&self.0.directory.join(file_name(name)))?;
        storage.sync_dir(&self.0.directory)?;
        self.0.catalog.change(|data| {
            if data.databases.contains_key(name) {
                return Err(Error::DatabaseExists(name.to_owned()));
            }
            data.databases.insert(name.to_owned(), DatabaseDef { collation, tables: Default::default() });
            Ok(())
        })?;
        self.definitions_changed();
        Ok(())
    }

    /// Drops a database with all its tables; returns how many there were.
    pub async fn drop_database(
        &self,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<usize> {
        if self.database(name).is_none() {
            return Err(Error::NoSuchDatabase(name.to_owned()));
        }
        let tables = self.tables(name);
        for table in &tables {
            self.drop_table(name, &table.name, session, timeout).await?;
        }
        self.0.catalog.change(|data| {
            let def = database_mut(data, name)?;
            if let Some(left) = def.tables.keys().next() {
                return Err(Error::TableExists(name.to_owned(), left.clone()));
            }
            data.databases.remove(name);
            Ok(())
        })?;
        self.definitions_changed();
        // Files that are not ours keep the directory; that is no error.
        let _ = self.0.environment.storage().remove_dir(&self.0.directory.join(file_name(name)));
        Ok(tables.len())
    }

    /// Makes a table.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::NoSuchDatabase`], [`Error::Schema`], or a full disk; nothing is left
    /// behind then.
    pub async fn create_table(&self, database: &str, name: &str, def: TableDef) -> Result<()> {
        check_name(name)?;
        let mut def = def;
        def.sort_keys();
        def.validate()?;
        let path = table_file(database, name);
        let space = self.0.catalog.change(|data| {
            if database_mut(data, database)?.tables.contains_key(name) {
                return Err(Error::TableExists(database.to_owned(), name.to_owned()));
            }
            self.refuse_stray_file(data, name, &path)?;
            let space = data.take_space_id();
            data.pending.push(Pending::Create { space, path: path.clone() });
            Ok(space)
        })?;
        def.created_unix_s = self.0.environment.unix_time().as_secs();
        match self.build_table(&path, space, &mut def).await {
            Ok(()) => {}
            Err(error) => {
                // What was made is removed again; if that fails too, the entry stays and the next start does it.
                if self.discard_file(space, &path).await.is_ok() {
                    let _ =
                        self.finish_pending(|p| matches!(p, Pending::Create { space: s, .. } if *s == space));
                }
                return Err(error);
            }
        }
        self.0.catalog.change(|data| {
            data.pending.retain(|p| !matches!(p, Pending::Create { space: s, .. } if *s == space));
            database_mut(data, database)?.tables.insert(name.to_owned(), def.clone());
            Ok(())
        })?;
        self.open_table_handle(database, name, def, Arc::default()).await?;
        self.definitions_changed();
        Ok(())
    }

    /// Refuses a name whose file is there, or being made or removed by another statement: a file that no table owns is not
    /// ours to overwrite, nor to remove should making the table fail.
    fn refuse_stray_file(&self, data: &CatalogData, name: &str, path: &Path) -> Result<()> {
        let unfinished = data.pending.iter().any(|work| match work {
            Pending::Create { path: other, .. }
            | Pending::Drop { path: other, .. }
            | Pending::Replace { from: other, .. }
            | Pending::Rename { from: other, .. } => other == path,
            Pending::BuildIndex { .. } => false,
        });
        let file = self.0.directory.join(path);
        if !unfinished && !self.0.environment.storage().exists(&file)? {
            return Ok(());
        }
        Err(Error::Store(pagestore::Error::Tablespace {
            file,
            why: format!(
                "the file is there, though there is no table '{name}': move it away, or start the database again if a statement that makes or drops that table failed before"
            ),
        }))
    }

    /// Removes, durably, the file of a table that was not made after all.
    pub(crate) async fn discard_file(&self, space: u32, path: &Path) -> Result<()> {
        if self.0.store.space(space).is_some() {
            return Ok(self.0.store.drop_space(space).await?);
        }
        let storage = self.0.environment.storage();
        let path = self.0.directory.join(path);
        if storage.exists(&path)? {
            storage.remove(&path)?;
        }
        storage.sync_dir(path.parent().unwrap_or(&self.0.directory))?;
        Ok(())
    }

    /// Makes the tablespace of a table with empty trees and fills in its ids and roots.
    async fn build_table(&self, path: &Path, space: u32, def: &mut TableDef) -> Result<()> {
        let store = &self.0.store;
        self.0.catalog.change(|data| {
            def.id = data.take_table_id();
            def.space = space;
            if def.clustered_key().is_none() {
                def.hidden_clustered = Some((data.take_index_id(), 0));
            }
            for key in &mut def.keys {
                key.id = data.take_index_id();
            }
            Ok(())
        })?;
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
        metadata: Arc<MetadataLock>,
    ) -> Result<Arc<Table>> {
        let table = self.assemble_table(database, name, def, metadata).await?;
        self.publish_table(&table);
        Ok(table)
    }

    /// Puts together a table that nobody else knows of yet. Reads nothing: what is wrong with its file, or its pages, is told to
    /// who uses it.
    pub(crate) async fn assemble_table(
        &self,
        database: &str,
        name: &str,
        def: TableDef,
        metadata: Arc<MetadataLock>,
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
            });
        }
        let rows = Arc::new(txn::Table::new(def.id, tree, clustered.sources, secondaries, def.columns.len()));
        let auto_increment = match def.auto_increment_column().filter(|_| !def.discarded) {
            None => None,
            Some(column) => {
                let most = auto_increment_max(&def, column);
                Some(AutoIncrement::new(PageId::new(def.space, root), most))
            }
        };
        Ok(Arc::new(Table {
            database: database.to_owned(),
            name: name.to_owned(),
            def,
            rows,
            auto_increment,
            metadata,
            current: AtomicBool::new(true),
            row_count: AtomicU64::new(0),
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
        // Without pages it has nothing that purge or recovery could work on.
        if !table.def.discarded {
            tables.by_id.write().insert(table.def.id, table.rows.clone());
        }
        let key = (table.database.clone(), table.name.clone());
        if let Some(old) = tables.by_name.write().insert(key, table.clone()) {
            old.current.store(false, Ordering::Release);
        }
    }

    /// Stores a table's AUTO_INCREMENT counter exactly, before another handle takes over.
    pub(crate) async fn store_counter(&self, table: &Table) -> Result<()> {
        match &table.auto_increment {
            Some(counter) => counter.store_exact(&self.0.store).await,
            None => Ok(()),
        }
    }

    /// Takes a table's metadata lock exclusively; `session` may use the table itself.
    pub(crate) async fn lock_exclusively(
        &self,
        table: &Table,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<MetadataExclusive> {
        if session.is_some_and(|session| session.holds_exclusively(table)) {
            return Ok(MetadataExclusive::held_by_session());
        }
        let deadline = self.0.environment.now() + timeout;
        let own = session.map_or(0, |session| session.uses_of(table));
        let mut request = table.metadata.request_exclusive();
        loop {
            match request.grant(own) {
                Ok(lock) => return Ok(lock),
                Err(wait) => timeout::wait_until(&*self.0.environment, wait, deadline).await?,
            }
        }
    }

    /// Drops a table. Waits until no transaction uses it, at most so long.
    pub async fn drop_table(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<()> {
        let (table, _lock) = self.lock_any(database, name, session, timeout).await?;
        let space = table.def.space;
        if table.def.discarded {
            // A file that lies there to be imported is not ours to remove.
            self.0.catalog.change(|data| {
                database_mut(data, database)?.tables.remove(name);
                Ok(())
            })?;
            self.forget_table(&table);
            self.definitions_changed();
            return Ok(());
        }
        self.0.catalog.change(|data| {
            database_mut(data, database)?.tables.remove(name);
            data.pending.push(Pending::Drop { space, path: table.file() });
            Ok(())
        })?;
        // Purge must not be at work on the pages when they go.
        let _purge = self.0.system.pause_purge().await;
        self.forget_table(&table);
        self.definitions_changed();
        self.0.store.drop_space(space).await?;
        self.finish_pending(|p| matches!(p, Pending::Drop { space: s, .. } if *s == space))
    }

    /// The current table of this name, locked exclusively.
    ///
    /// # Errors
    /// [`Error::TablespaceDiscarded`] for one without a tablespace; no such table; a timeout.
    pub(crate) async fn lock_current(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<(Arc<Table>, MetadataExclusive)> {
        let (table, lock) = self.lock_any(database, name, session, timeout).await?;
        if table.def.discarded { Err(table.discarded_error()) } else { Ok((table, lock)) }
    }

    /// The same, also for a table whose tablespace was discarded.
    pub(crate) async fn lock_any(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<(Arc<Table>, MetadataExclusive)> {
        loop {
            let table = self.table(database, name)?;
            let lock = self.lock_exclusively(&table, session, timeout).await?;
            if table.is_current() {
                return Ok((table, lock));
            }
        }
    }

    pub(crate) fn forget_table(&self, table: &Table) {
        table.current.store(false, Ordering::Release);
        let key = (table.database.clone(), table.name.clone());
        self.0.tables.by_name.write().remove(&key);
        self.0.tables.by_id.write().remove(&table.def.id);
    }

    pub(crate) fn finish_pending(&self, done: impl Fn(&Pending) -> bool) -> Result<()> {
        self.0.catalog.change(|data| {
            data.pending.retain(|pending| !done(pending));
            Ok(())
        })
    }

    pub(crate) fn definitions_changed(&self) {
        self.0.tables.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Empties a table: it gets new trees in a new file, and its counter starts again.
    pub async fn truncate_table(
        &self,
        database: &str,
        name: &str,
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<()> {
        let (table, _lock) = self.lock_current(database, name, session, timeout).await?;
        let old_space = table.def.space;
        let final_path = table.file();
        let space = self.0.catalog.change(|data| Ok(data.take_space_id()))?;
        let fresh_path = Path::new(&file_name(database)).join(format!("#untorn-{space}.ibd"));
        self.0.catalog.change(|data| {
            data.pending.push(Pending::Create { space, path: fresh_path.clone() });
            Ok(())
        })?;
        let mut def = table.def.clone();
        self.build_table(&fresh_path, space, &mut def).await?;
        self.0.catalog.change(|data| {
            data.pending.retain(|p| !matches!(p, Pending::Create { space: s, .. } if *s == space));
            data.pending.push(Pending::Replace {
                space,
                from: fresh_path.clone(),
                to: final_path.clone(),
                replaced: old_space,
            });
            database_mut(data, database)?.tables.insert(name.to_owned(), def.clone());
            Ok(())
        })?;
        let _purge = self.0.system.pause_purge().await;
        self.forget_table(&table);
        self.0.store.drop_space(old_space).await?;
        self.0.store.rename_space(space, &self.0.directory.join(&final_path))?;
        self.finish_pending(|p| matches!(p, Pending::Replace { space: s, .. } if *s == space))?;
        self.open_table_handle(database, name, def, table.metadata.clone()).await?;
        self.definitions_changed();
        Ok(())
    }

    /// Renames a table, also to another database.
    pub async fn rename_table(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        session: Option<&Transaction>,
        timeout: Duration,
    ) -> Result<()> {
        check_name(to.1)?;
        let (table, _lock) = self.lock_current(from.0, from.1, session, timeout).await?;
        let (space, old_path, new_path) = (table.def.space, table.file(), table_file(to.0, to.1));
        self.0.catalog.change(|data| {
            if database_mut(data, to.0)?.tables.contains_key(to.1) {
                return Err(Error::TableExists(to.0.to_owned(), to.1.to_owned()));
            }
            let def = database_mut(data, from.0)?.tables.remove(from.1);
            let def = def.ok_or_else(|| Error::NoSuchTable(from.0.to_owned(), from.1.to_owned()))?;
            database_mut(data, to.0)?.tables.insert(to.1.to_owned(), def);
            data.pending.push(Pending::Rename { space, from: old_path.clone(), to: new_path.clone() });
            Ok(())
        })?;
        self.0.store.rename_space(space, &self.0.directory.join(&new_path))?;
        self.store_counter(&table).await?;
        self.finish_pending(|p| matches!(p, Pending::Rename { space: s, .. } if *s == space))?;
        self.forget_table(&table);
        self.open_table_handle(to.0, to.1, table.def.clone(), table.metadata.clone()).await?;
        self.definitions_changed();
        Ok(())
    }
}

/// Greatest value an AUTO_INCREMENT column can hold.
fn auto_increment_max(def: &TableDef, column: u16) -> u64 {
    match def.columns[usize::from(column)].kind.integer() {
        Some((width, unsigned)) => {
            let bits = 8 * width as u32 - u32::from(!unsigned);
            u64::MAX >> (64 - bits)
        }
        None => u64::MAX,
    }
}
