//! CREATE INDEX and DROP INDEX.
//!
//! A new index is built while nobody else uses the table: its entries are read from the clustered index,
//! sorted (with temporary files where they do not fit into memory) and loaded into a new tree from left to
//! right. The index exists from the moment the catalog lists it; until then an entry of the DDL log makes the
//! next start free the pages of a half-built one.

use std::future::Future;
use std::sync::Arc;

use btree::compare::compare_values;
use btree::page::header;
use btree::{BulkLoader, Field, FieldRef, IndexDef, OwnedKey, RecordBuffer, Tree};
use page::PageId;
use pagestore::fsp;
use smallvec::SmallVec;
use txn::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex, ScanState, TimeSlice};

use crate::catalog::DdlLogEntry;
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::foreign_key::{ColumnChange, RelatedTables, validate_change};
use crate::index_entry::{Entry, IndexOrder, OffPage, encode, entry_of, fields};
use crate::layout;
use crate::metadata_lock::MetadataExclusive;
use crate::retry::retry;
use crate::schema::{ForeignKey, KeyDef, KeyKind, SchemaError, TableDef};
use crate::sort::{Place, Sorted, Sorter};
use crate::table::Table;
use crate::table_change::in_place;
use crate::transaction::Transaction;

/// Memory for sorting the entries of one index, in bytes.
const SORT_BYTES: usize = 8 << 20;

/// Units of work that a step on a page counts for.
pub(crate) const PAGE_UNITS: u32 = 16;

/// Rows read between two looks at the sorter.
const ROWS_PER_PAUSE: usize = 512;

/// Indexes that are being built. Dropped unfinished, with the statement, their pages are freed in the
/// background; until then the table stays locked.
struct HalfBuilt {
    database: Database,
    trees: Vec<(Tree, DdlLogEntry)>,
    lock: Option<MetadataExclusive>,
}

impl HalfBuilt {
    /// Frees the pages of what was built. What fails is left for the next start.
    fn give_up(&mut self) -> impl Future<Output = Result<()>> + Send + 'static {
        let (database, lock) = (self.database.clone(), self.lock.take());
        let trees = std::mem::take(&mut self.trees);
        async move {
            for (tree, pending) in trees {
                match database.free_tree(&tree, &pending).await {
                    Ok(()) => {}
                    Err(error) => tracing::error!(
                        "the pages of a failed index build will be freed at the next start: {error}"
                    ),
                }
            }
            drop(lock);
            Ok(())
        }
    }
}

impl Drop for HalfBuilt {
    fn drop(&mut self) {
        if !self.trees.is_empty() {
            let work = self.give_up();
            let environment = self.database.0.environment.clone();
            environment.spawn_blocking("half-built index", Box::pin(async move { drop(work.await) }));
        }
    }
}

impl Definitions<'_> {
    /// Adds a secondary index. The table cannot be changed while its entries are sorted and loaded.
    ///
    /// # Errors
    /// As [`Definitions::change_indexes`].
    pub async fn create_index(self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        self.change_indexes(database, name, vec![key], &[]).await
    }

    /// Drops a secondary index.
    ///
    /// # Errors
    /// As [`Definitions::change_indexes`].
    pub async fn drop_index(self, database: &str, name: &str, index: &str) -> Result<()> {
        self.change_indexes(database, name, Vec::new(), &[index]).await
    }

    /// Drops secondary indexes and adds others, all at once or not at all. What is dropped goes first, so
    /// that a new index may have its name.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`]; a definition that does not fit, a duplicate key for a unique index, a full
    /// disk, a timeout, a deadlock; the table is as before.
    pub async fn change_indexes(
        self,
        database: &str,
        name: &str,
        added: Vec<KeyDef>,
        dropped: &[&str],
    ) -> Result<()> {
        let (table, lock) = self.lock_current(database, name).await?;
        let foreign_keys = table.def.foreign_keys.clone();
        self.change_indexes_locked(&table, lock, added, dropped, foreign_keys).await
    }

    pub(crate) async fn change_indexes_locked(
        self,
        table: &Arc<Table>,
        lock: MetadataExclusive,
        added: Vec<KeyDef>,
        dropped: &[&str],
        foreign_keys: Vec<ForeignKey>,
    ) -> Result<()> {
        let engine = self.database;
        if added.iter().any(|key| key.kind == KeyKind::Primary) {
            return Err(Error::Schema(SchemaError::MultiplePrimary));
        }
        let mut def = TableDef { foreign_keys, ..table.def.clone() };
        let mut old_trees = Vec::new();
        for index in dropped {
            let named = |key: &KeyDef| key.name.eq_ignore_ascii_case(index);
            let at = table.def.secondary_keys().iter().position(named);
            let at = at.ok_or_else(|| Error::NoSuchIndex((*index).to_owned()))?;
            let key = &table.def.secondary_keys()[at];
            def.keys.retain(|other| other.id != key.id);
            let pending = DdlLogEntry::BuildIndex { space: def.space, index: key.id, root: key.root };
            if old_trees.iter().all(|(_, other)| *other != pending) {
                old_trees.push((table.rows.secondaries[at].tree.clone(), pending));
            }
        }
        let mut added = engine.with_ids(added).await?;
        if !added.is_empty() {
            // The rows are read as they are now. What views see that are open already is not among the
            // entries.
            let born = engine.0.system.birth_number().await?;
            added.iter_mut().for_each(|key| key.born = born);
        }
        let new_ids: Vec<u64> = added.iter().map(|key| key.id).collect();
        added.into_iter().for_each(|key| def.insert_key(key));
        def.validate_for(engine.0.store.page_size().bytes())?;
        let origins = in_place(&def);
        let change = ColumnChange { before: &table.def, after: &def, origins: &origins };
        let data = engine.0.catalog.snapshot();
        validate_change(&data, (&table.database, &table.name), &change, !self.checks_foreign_keys())?;
        if def.clustered_key().map(|key| key.id) != table.def.clustered_key().map(|key| key.id) {
            // InnoDB would rebuild the table around it; as a secondary index it is as good for look-ups.
            return Err(Error::Setting {
                setting: "CREATE UNIQUE INDEX",
                why: "a unique index over NOT NULL columns of a table without primary key would become its clustered index; declare it when the table is created".to_owned(),
            });
        }
        let mut built = HalfBuilt { database: engine.clone(), trees: Vec::new(), lock: Some(lock) };
        let made = async {
            engine.build_indexes(table, &mut def, &new_ids, &mut built, self.session).await?;
            let rows = engine.assemble_table(&table.database, &table.name, def.clone()).await?;
            self.lock_related_tables(table, &rows, &origins).await
        };
        let related = match made.await {
            Ok(related) => related,
            Err(error) => {
                engine.run_to_the_end(built.give_up()).await?;
                return Err(error);
            }
        };
        let (worker, table) = (engine.clone(), table.clone());
        engine
            .run_to_the_end(async move {
                match worker.list_indexes(&table, def, &built, &old_trees, &related).await {
                    Ok(()) => built.trees.clear(),
                    Err(error) => {
                        if worker.0.catalog.is_uncertain() {
                            // After a crash the table may have them.
                            built.trees.clear();
                        }
                        built.give_up().await?;
                        return Err(error);
                    }
                }
                for (tree, pending) in &old_trees {
                    if let Err(error) = worker.free_tree(tree, pending).await {
                        tracing::error!("the pages of a dropped index are freed at the next start: {error}");
                    }
                }
                Ok(())
            })
            .await
    }
}

impl Database {
    async fn with_ids(&self, mut keys: Vec<KeyDef>) -> Result<Vec<KeyDef>> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let engine = self.clone();
        self.run_to_the_end(async move {
            engine.0.catalog.change(|change| {
                for key in &mut keys {
                    (key.id, key.root) = (change.take_index_id(), 0);
                }
                Ok(keys)
            })
        })
        .await
    }

    /// Makes and fills the trees of the keys of these ids.
    async fn build_indexes(
        &self,
        table: &Table,
        def: &mut TableDef,
        ids: &[u64],
        built: &mut HalfBuilt,
        session: Option<&Transaction>,
    ) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut places = Vec::new();
        for at in 0..def.keys.len() {
            if !ids.contains(&def.keys[at].id) {
                continue;
            }
            let index = Arc::new(layout::secondary(def, &def.keys[at]).def);
            let engine = self.clone();
            let (space, id, fresh) = (def.space, def.keys[at].id, index.clone());
            let (tree, pending) = self
                .run_to_the_end(async move { engine.create_announced_tree(space, id, fresh).await })
                .await?;
            def.keys[at].root = tree.root();
            built.trees.push((tree, pending));
            places.push((at, index));
        }
        for ((at, index), (tree, _)) in places.into_iter().zip(&built.trees) {
            self.fill_index(table, def, at, index, tree, session).await?;
        }
        self.0.store.flush_space(def.space).await?;
        Ok(())
    }

    /// Makes an empty tree that a start after a crash frees. The catalog knows of it before the log does: a
    /// tree that is announced and is not there does no harm, but pages that nobody knows of would be lost.
    async fn create_announced_tree(
        &self,
        space: u32,
        index: u64,
        def: Arc<IndexDef>,
    ) -> Result<(Tree, DdlLogEntry)> {
        let store = &self.0.store;
        // The pages are latched for as long as the catalog takes.
        let purge = self.0.system.pause_purge().await;
        let (tree, pending, announced) = retry(|| {
            let mut mtr = store.mtr_sized(256 << 10)?;
            let tree = Tree::create(&mut mtr, store, space, def.clone())?;
            let pending = DdlLogEntry::BuildIndex { space, index, root: tree.root() };
            let announced = self.0.catalog.change(|change| change.begin(pending.clone()));
            mtr.commit();
            Ok::<_, pagestore::Interrupt>((tree, pending, announced))
        })
        .await?;
        drop(purge);
        if let Err(error) = announced {
            if let Err(left) = self.destroy_tree(&tree).await {
                tracing::error!(
                    "the pages of an index that could not be announced are lost (tablespace {space}): {left}"
                );
            }
            return Err(error);
        }
        Ok((tree, pending))
    }

    /// Makes `def` the table's definition, in the catalog and in memory.
    async fn list_indexes(
        &self,
        table: &Arc<Table>,
        def: TableDef,
        built: &HalfBuilt,
        dropped: &[(Arc<Tree>, DdlLogEntry)],
        related: &RelatedTables,
    ) -> Result<()> {
        // Purge may be at work on the old trees; it goes on with the new definition.
        let _purge = self.0.system.pause_purge().await;
        self.store_counter(table).await?;
        let fresh = self.assemble_table(&table.database, &table.name, def).await?;
        fresh.continue_counts(table);
        self.0.catalog.change(|change| {
            related.put(change)?;
            if built.trees.is_empty() && fresh.def.foreign_keys == table.def.foreign_keys {
                // Said so, it finds room on a full disk.
                let gone = table.def.keys.iter().map(|key| key.id);
                let gone = gone.filter(|id| fresh.def.keys.iter().all(|key| key.id != *id)).collect();
                return change.drop_indexes(&table.database, &table.name, gone);
            }
            change.finish(|work| built.trees.iter().any(|(_, built)| built == work))?;
            dropped.iter().try_for_each(|(_, work)| change.begin(work.clone()))?;
            change.put_table(&table.database, &table.name, Arc::new(fresh.def.clone()))
        })?;
        self.publish_table(&fresh);
        related.publish(self);
        self.definitions_changed();
        Ok(())
    }

    /// Frees the pages of a tree that no definition has, and takes its entry out of the DDL log.
    async fn free_tree(&self, tree: &Tree, pending: &DdlLogEntry) -> Result<()> {
        self.destroy_tree(tree).await?;
        self.make_durable().await?;
        self.finish_pending(|work| work == pending);
        Ok(())
    }

    /// Reads, sorts and loads the entries of `def.keys[at]`.
    pub(crate) async fn fill_index(
        &self,
        table: &Table,
        def: &TableDef,
        at: usize,
        index: Arc<IndexDef>,
        tree: &Tree,
        session: Option<&Transaction>,
    ) -> Result<()> {
        let place = Place::new(self.0.environment.storage().clone(), &self.0.directory);
        let mut sorter = Sorter::new(IndexOrder(index.clone()), place, SORT_BYTES);
        let sources = layout::secondary(def, &def.keys[at]).sources;
        let mut transaction = self.transaction_for(session);
        let rows = transaction.engine_mut();
        let slice = rows.slice().clone();
        let mut scan = Scan::new(
            table.rows.clone(),
            ScanIndex::Clustered,
            KeyRange::all(),
            Direction::Forward,
            ReadMode::Uncommitted,
            false,
        );
        let mut deferred: Vec<OffPage> = Vec::new();
        let mut key = OwnedKey::new();
        loop {
            let mut count = 0;
            let state = scan
                .run(rows, &mut |row| {
                    count += 1;
                    row.clustered_key(&mut key);
                    match entry_of(row, &sources, &key) {
                        Entry::Whole(entry) => add(&mut sorter, &entry),
                        Entry::OffPage(entry) => {
                            deferred.push(entry);
                            return Control::Pause;
                        }
                    }
                    if count < ROWS_PER_PAUSE { Control::Continue } else { Control::Pause }
                })
                .await?;
            for entry in deferred.drain(..) {
                let fields = entry.fetch(rows, &table.rows, &sources).await?;
                let fields: SmallVec<[Field<'_>; 8]> = fields.iter().map(Option::as_deref).collect();
                add(&mut sorter, &fields);
            }
            if sorter.is_full() {
                sorter.spill(&slice).await?;
            }
            if state == ScanState::Finished {
                break;
            }
        }
        self.load_index(tree, &index, sorter.finish().await?, &slice).await
    }

    /// Loads sorted entries into an empty tree, refusing duplicates of a unique key.
    async fn load_index(
        &self,
        tree: &Tree,
        index: &IndexDef,
        mut sorted: Sorted<IndexOrder>,
        slice: &TimeSlice,
    ) -> Result<()> {
        let mut loader = BulkLoader::new(tree);
        let mut record = RecordBuffer::new();
        let mut before = Vec::new();
        while let Some(entry) = sorted.next().await? {
            let values = fields(entry);
            if index.unique && !before.is_empty() {
                refuse_duplicate(index, &fields(&before), &values)?;
            }
            let values: SmallVec<[FieldRef<'_>; 8]> = values.into_iter().map(FieldRef::from).collect();
            record.encode(index, &values).map_err(|error| Error::Internal(error.to_string()))?;
            let bytes = record.size();
            if bytes > tree.max_record_size() {
                return Err(Error::Transaction(txn::Error::RowTooLarge { table: index.id, bytes }));
            }
            if index.unique {
                before.clear();
                before.extend_from_slice(entry);
            }
            retry(|| loader.add(&record)).await?;
            slice.work(1).await?;
        }
        retry(|| loader.finish()).await
    }

    /// Frees the pages of a tree. No kill ends it midway: the session's slice only says when to give way.
    pub(crate) async fn destroy_tree(&self, tree: &Tree) -> Result<()> {
        let transaction = self.transaction();
        let slice = transaction.engine().slice();
        while !retry(|| tree.destroy_step()).await? {
            slice.work(PAGE_UNITS).await?;
        }
        Ok(())
    }

    /// Makes everything logged so far durable.
    pub(crate) async fn make_durable(&self) -> Result<()> {
        let upto = self.0.redo.current();
        retry(|| self.0.redo.flush(upto, redo::Flush::Sync)).await
    }

    /// Frees the pages of indexes that were being built or dropped when the process ended.
    pub(crate) async fn free_unfinished_indexes(&self) -> Result<()> {
        for pending in self.0.catalog.snapshot().pending.iter() {
            let DdlLogEntry::BuildIndex { space, index, root } = *pending else { continue };
            let data = self.0.catalog.snapshot();
            let unlisted = |table: &TableDef| {
                table.space == space && !table.discarded && table.keys.iter().all(|key| key.id != index)
            };
            if data.tables().any(|(_, _, table)| unlisted(table))
                && let Err(error) = self.free_unfinished_index(space, index, root).await
            {
                // Its table's trouble, and nobody else's.
                tracing::error!(
                    "the pages of index {index} (tablespace {space}), unfinished at the last stop, remain until the next start: {error}"
                );
                continue;
            }
            self.finish_pending(|work| work == pending);
        }
        Ok(())
    }

    /// Frees one. Where the crash came after its last page was freed there is nothing left to do.
    async fn free_unfinished_index(&self, space: u32, index: u64, root: u32) -> Result<()> {
        if !retry(|| is_root_of(&self.0.store, space, root, index)).await? {
            tracing::info!("index {index}, unfinished at the last stop, had been freed already");
            return Ok(());
        }
        let def = Arc::new(IndexDef::new(index, "", false, false, vec![btree::FieldDef::fixed("", 1)], 1, 1));
        let tree = retry(|| Tree::open(&self.0.store, space, root, def.clone())).await?;
        self.destroy_tree(&tree).await?;
        tracing::info!("freed the pages of index {index}, which was unfinished at the last stop");
        self.make_durable().await
    }
}

/// Whether a page is the root of an index. It is not when it is free, or has another owner by now; that it
/// cannot be read says neither.
fn is_root_of(
    store: &pagestore::PageStore,
    space: u32,
    root: u32,
    index: u64,
) -> std::result::Result<bool, pagestore::Interrupt> {
    if !fsp::is_allocated(store, space, root)? {
        return Ok(false);
    }
    let page = store.read(PageId::new(space, root))?;
    Ok(page::page_type(&page) == page::kind::INDEX && header::index_id(&page) == index)
}

fn add(sorter: &mut Sorter<IndexOrder>, entry: &[Field<'_>]) {
    let added: std::result::Result<(), std::convert::Infallible> = sorter.add(|out| {
        encode(entry, out);
        Ok(())
    });
    match added {
        Ok(()) => {}
    }
}

fn refuse_duplicate(index: &IndexDef, a: &[Field<'_>], b: &[Field<'_>]) -> Result<()> {
    let user = index.n_user_key;
    let equal = index.fields.iter().take(user).zip(a.iter().zip(b)).all(|(def, (a, b))| match (a, b) {
        (Some(a), Some(b)) => compare_values(def.compare, a, b).is_eq(),
        _ => false,
    });
    if !equal {
        return Ok(());
    }
    let entry = b[..user].iter().map(|field| field.map(<[u8]>::to_vec)).collect();
    Err(Error::Transaction(txn::Error::DuplicateKey { index: index.name.clone(), entry }))
}
