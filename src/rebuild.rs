//! A table gets another definition by being rewritten, row by row, into a file of its own beside the old one.
//!
//! ```text
//! old clustered index ──scan──▶ convert (the caller) ──▶ [sort] ──▶ new clustered index, from left to right
//!                                                                            │
//!                                        new secondary indexes ◀── sort ◀────┘
//! ```
//!
//! The caller turns each old row into a new one; that is where types change and columns come and go. Values
//! that do not fit a page go to the new file as they come, and what is sorted has references to them. Where
//! the clustered key stays what it is rows come in its order, and nothing is sorted.
//!
//! The new rows have no history: they are visible to every read view that may see the table at all, and older
//! views may not, because the table is born at that moment (error 1412, as after TRUNCATE).
//!
//! Until the catalog names the new file the table is as it was, whatever happens: a failure removes the file
//! ([`IntermediateFile`]), and so does the start after a crash. Then the old file goes, and the new one takes
//! its name ([`Database::replace_table`]).

use std::sync::Arc;

use btree::compare::compare_keys;
use btree::external::{ExternalWriter, plan_external};
use btree::{BulkLoader, Field, FieldRef, RecordBuffer, Tree};
use smallvec::SmallVec;
use txn::{
    ClusteredField, Control, Direction, KeyRange, OffPage, ReadMode, Row, Scan, ScanIndex, ScanState,
    TimeSlice,
};

use crate::catalog::DdlLogEntry;
use crate::database::Database;
use crate::ddl::{is_somebody_elses, take_ids};
use crate::error::{Error, Result};
use crate::foreign_key::RelatedTables;
use crate::index_entry::{encode, fields};
use crate::intermediate_file::IntermediateFile;
use crate::layout;
use crate::retry::retry;
use crate::schema::TableDef;
use crate::sort::{Order, Place, Sorter};
use crate::table::Table;
use crate::table_change::{ChangeLock, TableChange};
use crate::transaction::Transaction;
use crate::truncate::temporary_file;
use crate::write::{EncodedRow, check_row};

/// Memory for sorting rows, in bytes.
const SORT_BYTES: usize = 8 << 20;

/// Rows, and bytes of them, that are copied out of the pages of the old table at a time.
const BATCH_ROWS: usize = 128;
const BATCH_BYTES: usize = 256 << 10;

/// Units of work that a page of an off-page value counts for.
const OFF_PAGE_UNITS: u32 = 16;

/// A definition that a table gets by being rebuilt.
#[derive(Clone, Debug)]
pub struct Rebuild {
    /// The definition; ids are given to it.
    pub def: TableDef,
    /// For each column the old one that it was: foreign keys follow it.
    pub origins: Vec<Option<u16>>,
    /// For each column the old one whose bytes it gets as they are, if it does.
    pub copied: Vec<Option<u16>>,
    /// AUTO_INCREMENT goes on with this number, or behind the greatest that is there.
    pub next_number: u64,
}

impl Rebuild {
    /// Whether rows in the order of the old clustered key are in the order of the new one.
    fn keeps_order(&self, old: &TableDef) -> bool {
        let Some(key) = self.def.clustered_key() else { return true };
        let Some(old_key) = old.clustered_key() else { return false };
        let same = |(new, old_part): (&crate::schema::KeyPart, &crate::schema::KeyPart)| {
            let (at, old_at) = (usize::from(new.column), usize::from(old_part.column));
            self.copied[at] == Some(old_part.column)
                && self.def.columns[at].kind.comparison() == old.columns[old_at].kind.comparison()
        };
        key.parts.len() == old_key.parts.len() && key.parts.iter().zip(&old_key.parts).all(same)
    }
}

impl TableChange<'_> {
    /// Rebuilds the table. `convert` makes of a row of the old definition, with all its columns, one of the
    /// new; it does so for one after the other, with nothing latched. Answers how many there were.
    ///
    /// Others read the table meanwhile. Dropped before the end, it leaves the table as it was.
    ///
    /// # Errors
    /// What `convert` refuses; a definition that is not valid, [`Error::NullValue`], a duplicate key, a full
    /// disk, a kill, a timeout. The table is as it was then.
    pub async fn rebuild<E: From<Error>>(
        self,
        mut plan: Rebuild,
        mut convert: impl FnMut(&[Field<'_>], &mut EncodedRow) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        plan.def.sort_keys();
        plan.def.hidden_clustered = None;
        plan.def.validate_for(self.definitions.database.0.store.page_size().bytes()).map_err(Error::from)?;
        plan.def = self.with_foreign_keys(plan.def, &plan.origins)?;
        let TableChange { definitions, table, lock } = self;
        let engine = definitions.database;
        let (fresh, mut copy) = engine.begin_rebuild(&table, lock, plan.def.clone()).await?;
        let made = async {
            let rows = engine.copy_rows(&table, &fresh, &plan, definitions.session, &mut convert).await?;
            engine.complete(&fresh, plan.next_number, rows, definitions.session).await?;
            let related = definitions.lock_related_tables(&table, &fresh, &plan.origins).await?;
            if let Some(lock) = &mut copy.lock {
                lock.make_exclusive(definitions).await?;
            }
            Ok::<_, Failed<E>>((rows, related))
        };
        let (rows, related) = match made.await {
            Ok(made) => made,
            Err(failed) => {
                engine.run_to_the_end(copy.give_up(false)).await?;
                return Err(failed.into_error());
            }
        };
        let worker = engine.clone();
        engine
            .run_to_the_end(async move { worker.list_rebuilt(&table, &fresh, copy, &related).await })
            .await?;
        Ok(rows)
    }
}

/// Why a rebuild failed: the engine, or the caller's conversion.
enum Failed<E> {
    Engine(Error),
    Conversion(E),
}

impl<E, T: Into<Error>> From<T> for Failed<E> {
    fn from(error: T) -> Failed<E> {
        Failed::Engine(error.into())
    }
}

impl<E: From<Error>> Failed<E> {
    fn into_error(self) -> E {
        match self {
            Failed::Engine(error) => error.into(),
            Failed::Conversion(error) => error,
        }
    }
}

impl Database {
    /// Gives the new definition its ids, announces its file (should the process end, the next start removes
    /// it), and makes it, without rows. All of that comes to its end even if nobody waits for it any more:
    /// what is made is given up then.
    async fn begin_rebuild(
        &self,
        table: &Arc<Table>,
        lock: ChangeLock,
        mut def: TableDef,
    ) -> Result<(Arc<Table>, IntermediateFile<ChangeLock>)> {
        let (engine, table) = (self.clone(), table.clone());
        self.run_to_the_end(async move {
            let path = engine.0.catalog.change(|change| {
                take_ids(change, &mut def);
                let path = temporary_file(&table.database, def.space);
                change.begin(DdlLogEntry::Create { space: def.space, path: path.clone() })?;
                Ok(path)
            })?;
            let mut copy =
                IntermediateFile { database: engine.clone(), space: def.space, path, lock: Some(lock) };
            let made = async {
                engine.build_table(&copy.path, &mut def).await?;
                engine.assemble_table(&table.database, &table.name, def).await
            };
            match made.await {
                Ok(fresh) => Ok((fresh, copy)),
                Err(error) => {
                    copy.give_up(is_somebody_elses(&error)).await?;
                    Err(error)
                }
            }
        })
        .await
    }

    /// Reads, converts and writes all rows.
    async fn copy_rows<E>(
        &self,
        old: &Arc<Table>,
        fresh: &Table,
        plan: &Rebuild,
        session: Option<&Transaction>,
        convert: &mut impl FnMut(&[Field<'_>], &mut EncodedRow) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, Failed<E>> {
        let mut transaction = self.transaction_for(session);
        let rows = transaction.engine_mut();
        let slice = rows.slice().clone();
        let tree = &*fresh.rows.clustered;
        retry(|| tree.read_root()).await?;
        let place = Place::new(self.0.environment.storage().clone(), &self.0.directory);
        let order = RowOrder(tree.def().clone());
        let mut sorter = (!plan.keeps_order(&old.def)).then(|| Sorter::new(order, place, SORT_BYTES));
        let mut loader = RowLoader::new(fresh, &slice);
        let whole = KeyRange::all();
        let mut scan = Scan::new(
            old.rows.clone(),
            ScanIndex::Clustered,
            whole,
            Direction::Forward,
            ReadMode::Uncommitted,
            false,
        );
        let (mut batch, mut new, mut count) = (Vec::<OldRow>::new(), EncodedRow::default(), 0);
        loop {
            let mut bytes = 0;
            let columns = old.def.columns.len();
            let state = scan
                .run(rows, &mut |row| {
                    let row = OldRow::of(row, columns);
                    bytes += row.bytes;
                    batch.push(row);
                    let more = batch.len() < BATCH_ROWS && bytes < BATCH_BYTES;
                    if more { Control::Continue } else { Control::Pause }
                })
                .await?;
            for mut row in batch.drain(..) {
                slice.work(1).await?;
                for (at, value) in std::mem::take(&mut row.off_page) {
                    row.fields[at] = Some(value.fetch(rows, &old.rows).await?);
                }
                let given: SmallVec<[Field<'_>; 16]> = row.fields.iter().map(Option::as_deref).collect();
                new.clear();
                convert(&given, &mut new).map_err(Failed::Conversion)?;
                count += 1;
                let fields = new.fields();
                check_row(&fields, &fresh.def.columns)?;
                let entry = loader.entry(&fields, count).await?;
                match &mut sorter {
                    None => loader.add(&entry).await?,
                    Some(sorter) => {
                        let added: std::result::Result<(), std::convert::Infallible> = sorter.add(|out| {
                            out.extend_from_slice(&entry);
                            Ok(())
                        });
                        match added {
                            Ok(()) => {}
                        }
                        if sorter.is_full() {
                            sorter.spill(&slice).await?;
                        }
                    }
                }
            }
            if state == ScanState::Finished {
                break;
            }
        }
        if let Some(sorter) = sorter {
            let mut sorted = sorter.finish().await?;
            while let Some(entry) = sorted.next().await? {
                loader.add(entry).await?;
            }
        }
        retry(|| loader.bulk.finish()).await?;
        Ok(count)
    }

    /// Makes the secondary indexes and the counter, and flushes it all.
    async fn complete(
        &self,
        fresh: &Arc<Table>,
        next_number: u64,
        rows: u64,
        session: Option<&Transaction>,
    ) -> Result<()> {
        let first = usize::from(fresh.def.clustered_key().is_some());
        for (number, secondary) in fresh.rows.secondaries.iter().enumerate() {
            let index = Arc::new(layout::secondary(&fresh.def, &fresh.def.keys[first + number]).def);
            retry(|| secondary.tree.read_root()).await?;
            self.fill_index(fresh, &fresh.def, first + number, index, &secondary.tree, session).await?;
        }
        self.set_counter(fresh, next_number).await?;
        fresh.set_rows(rows);
        Ok(self.0.store.flush_space(fresh.def.space).await?)
    }

    async fn list_rebuilt(
        &self,
        table: &Arc<Table>,
        fresh: &Arc<Table>,
        mut copy: IntermediateFile<ChangeLock>,
        related: &RelatedTables,
    ) -> Result<()> {
        if let Err(error) = self.replace_table(table, fresh, &copy.path, related).await {
            copy.give_up(false).await?;
            return Err(error);
        }
        copy.finished();
        Ok(())
    }
}

/// A row of the old table, copied from its page.
struct OldRow {
    fields: SmallVec<[Option<Vec<u8>>; 16]>,
    /// Columns that are yet to be fetched.
    off_page: Vec<(usize, OffPage)>,
    bytes: usize,
}

impl OldRow {
    fn of(row: &Row<'_>, columns: usize) -> OldRow {
        let mut old = OldRow { fields: SmallVec::from_elem(None, columns), off_page: Vec::new(), bytes: 0 };
        row.for_each_column(|column, field| {
            let at = usize::from(column);
            match field {
                FieldRef::Null => {}
                FieldRef::Inline(value) => {
                    old.bytes += value.len();
                    old.fields[at] = Some(value.to_vec());
                }
                FieldRef::External { prefix, reference } => {
                    old.bytes += prefix.len();
                    old.off_page.push((at, OffPage::new(prefix, reference)));
                }
            }
        });
        old
    }
}

/// Rows by their clustered keys. Behind the fields of an encoded row comes one more, the numbers of those
/// that are references to off-page values.
#[derive(Clone)]
struct RowOrder(Arc<btree::IndexDef>);

impl Order for RowOrder {
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        let key = self.0.n_unique;
        compare_keys(&self.0, &fields(left)[..key], &fields(right)[..key])
    }
}

/// Fills the clustered index of the new table.
struct RowLoader<'t> {
    tree: &'t Tree,
    bulk: BulkLoader<'t>,
    sources: Vec<ClusteredField>,
    slice: &'t TimeSlice,
    record: RecordBuffer,
    /// The row before.
    before: Vec<u8>,
}

impl<'t> RowLoader<'t> {
    fn new(fresh: &'t Table, slice: &'t TimeSlice) -> RowLoader<'t> {
        let tree = &*fresh.rows.clustered;
        let sources = layout::clustered(&fresh.def).sources;
        let (record, before) = (RecordBuffer::new(), Vec::new());
        RowLoader { tree, bulk: BulkLoader::new(tree), sources, slice, record, before }
    }

    /// A row as its record will have it, encoded, after what does not fit was stored off-page. `number`
    /// counts the rows from 1.
    async fn entry(&self, row: &[Field<'_>], number: u64) -> Result<Vec<u8>> {
        let row_id = number.to_be_bytes();
        let values: SmallVec<[FieldRef<'_>; 16]> = self
            .sources
            .iter()
            .map(|source| match source {
                ClusteredField::Column(column) => FieldRef::from(row[usize::from(*column)]),
                ClusteredField::RowId => FieldRef::Inline(&row_id[2..]),
                ClusteredField::TrxId => FieldRef::Inline(&[0; 6]),
                // Inserted, and nothing before it.
                ClusteredField::RollPtr => FieldRef::Inline(&[0x80, 0, 0, 0, 0, 0, 0]),
            })
            .collect();
        let plan = plan_external(self.tree.def(), &values, self.tree.max_record_size()).map_err(|error| {
            Error::Transaction(txn::Error::RowTooLarge { table: self.tree.def().id, bytes: error.size })
        })?;
        let mut references: SmallVec<[(usize, [u8; 20]); 2]> = SmallVec::new();
        let mut positions: SmallVec<[u8; 16]> = SmallVec::new();
        for position in plan {
            let value = values[position].inline().unwrap_or_default();
            let mut chain = ExternalWriter::new(self.tree, value);
            retry(|| {
                let mut mtr = self.tree.store().mtr()?;
                chain.begin(&mut mtr)?;
                mtr.commit();
                Ok::<(), pagestore::Interrupt>(())
            })
            .await?;
            let reference = retry(|| chain.finish()).await?;
            self.slice.work(OFF_PAGE_UNITS).await?;
            references.push((position, reference.to_bytes()));
            positions.extend_from_slice(&(position as u16).to_ne_bytes());
        }
        let mut stored: SmallVec<[Field<'_>; 16]> = values.iter().map(|value| value.inline()).collect();
        for (position, reference) in &references {
            stored[*position] = Some(reference);
        }
        stored.push(Some(&positions));
        let mut entry = Vec::new();
        encode(&stored, &mut entry);
        Ok(entry)
    }

    /// Appends a row. Its key must be above the one before.
    async fn add(&mut self, entry: &[u8]) -> Result<()> {
        let def = self.tree.def();
        let row = fields(entry);
        if !self.before.is_empty() {
            let key = def.n_unique;
            match compare_keys(def, &fields(&self.before)[..key], &row[..key]) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => {
                    let entry = row[..key].iter().map(|field| field.map(<[u8]>::to_vec)).collect();
                    let index = def.name.clone();
                    return Err(Error::Transaction(txn::Error::DuplicateKey { index, entry }));
                }
                std::cmp::Ordering::Greater => {
                    return Err(Error::Internal(
                        "rows of a rebuild are not in the order of its key".to_owned(),
                    ));
                }
            }
        }
        let (positions, row) =
            row.split_last().map_or((&[][..], &row[..]), |(last, row)| (last.unwrap_or_default(), row));
        let mut record: SmallVec<[FieldRef<'_>; 16]> = row.iter().copied().map(FieldRef::from).collect();
        for position in positions.as_chunks::<2>().0 {
            let at = usize::from(u16::from_ne_bytes(*position));
            let reference = row[at].and_then(|bytes| <&[u8; 20]>::try_from(bytes).ok());
            let reference =
                reference.ok_or_else(|| Error::Internal("a row of a rebuild has no reference".to_owned()))?;
            record[at] = FieldRef::External { prefix: &[], reference };
        }
        self.record.encode(def, &record).map_err(|error| Error::Internal(error.to_string()))?;
        let (bulk, record) = (&mut self.bulk, &self.record);
        retry(|| bulk.add(record)).await?;
        self.before.clear();
        self.before.extend_from_slice(entry);
        Ok(self.slice.work(1).await?)
    }
}
