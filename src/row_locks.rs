//! Lists of locks with the names of what is locked, for `performance_schema.data_locks` and the dashboard.
//!
//! The lock table knows fingerprints (`txn::RowLocks`). Here they get names. Only indexes of tables that the
//! transaction uses are candidates; the one with a record of that fingerprint is it. Records are looked for
//! in the pool's pages only, and in 512 of them for a list: a lock whose record was not found has no key, and
//! one that two indexes may have has no table.
//!
//! A list is made in batches, when its rows are asked for. So it takes the memory of a batch, and who reads
//! it may stop, or give way to others, between two rows.
//!
//! InnoDB's IX on a table is the use of a transaction that changes or locks rows, and IS a use by one that
//! only reads, but has row locks there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::vec;

use btree::{FieldRef, Tree};
use txn::{ClusteredField, LockDescription, RowLock, RowLocks, RowOwner, RowWaitEdge};

use crate::database::Database;
use crate::lock_data;
use crate::metadata_deadlock::{Hold, of_rows};
use crate::private::is_private;
use crate::table::Table;
use crate::types::ColumnType;

/// Locks that are described together.
const BATCH: usize = 4096;
/// Pages in which records are looked for, for one list.
const PAGES_MAX: usize = 512;

/// A lock as lists show it.
#[derive(Debug, Clone)]
pub struct ListedLock {
    /// Names the lock among all.
    pub id: String,
    /// The transaction; one without an id has a number of its own above 2^48.
    pub transaction: u64,
    /// The session's tag.
    pub connection: u64,
    /// Database and table, if they are known.
    pub table: Option<(String, String)>,
    /// The index of a row lock, if it is known.
    pub index: Option<String>,
    /// A number that locks on the same entry share.
    pub place: u64,
    /// Whether it is on a row, and not on a table.
    pub is_row: bool,
    /// As MySQL writes it: `X,REC_NOT_GAP`.
    pub mode: &'static str,
    /// Whether it is waited for.
    pub waiting: bool,
    /// The key, as MySQL writes it, if it is known.
    pub data: Option<String>,
}

/// An index that locks may be in.
struct Index {
    table: Arc<Table>,
    secondary: Option<usize>,
}

impl Index {
    fn tree(&self) -> &Arc<Tree> {
        let rows = &self.table.rows;
        self.secondary.map_or(&rows.clustered, |number| &rows.secondaries[number].tree)
    }

    /// The type of a field of its key; the hidden row id has none.
    fn column(&self, field: usize) -> Option<&ColumnType> {
        let rows = &self.table.rows;
        let column = match self.secondary {
            Some(number) => rows.secondaries[number].columns.get(field)?.column,
            None => match rows.clustered_columns.get(field)? {
                ClusteredField::Column(column) => *column,
                _ => return None,
            },
        };
        self.table.def.columns.get(usize::from(column)).map(|column| &column.kind)
    }

    /// The key of an entry. Of a unique index it is what the user declared, as in MySQL.
    fn key_text<'f>(&self, fields: impl Iterator<Item = Option<&'f [u8]>>) -> String {
        let def = self.tree().def();
        let shown = if def.unique { def.n_user_key } else { def.n_unique };
        lock_data::text(fields.take(shown).enumerate().map(|(at, field)| (field, self.column(at))))
    }
}

/// The tables that there are, to give locks names.
pub(crate) struct Names {
    tables: HashMap<usize, Arc<Table>>,
    /// By [`RowLock::index_bucket`].
    indexes: HashMap<u16, Vec<Index>>,
}

impl Names {
    pub(crate) fn new(database: &Database) -> Names {
        let mut names = Names { tables: HashMap::new(), indexes: HashMap::new() };
        for table in database.all_tables() {
            let secondaries = (0..table.rows.secondaries.len()).map(Some);
            for secondary in std::iter::once(None).chain(secondaries) {
                let index = Index { table: table.clone(), secondary };
                let bucket = RowLock::bucket(index.tree().def().id);
                names.indexes.entry(bucket).or_default().push(index);
            }
            names.tables.insert(Arc::as_ptr(&table.metadata).addr(), table);
        }
        names
    }

    /// The indexes that a lock may be in.
    fn of_lock(&self, lock: &RowLock) -> Vec<&Index> {
        let bucket = self.indexes.get(&lock.index_bucket()).map(Vec::as_slice).unwrap_or_default();
        let mut found: Vec<&Index> =
            bucket.iter().filter(|index| lock.may_be_in(index.tree().def().id)).collect();
        if found.len() > 1
            && let Some(owner) = of_rows(&lock.owner)
        {
            let held: HashSet<usize> = owner.held().into_iter().map(|(lock, _)| lock).collect();
            found.retain(|index| held.contains(&Arc::as_ptr(&index.table.metadata).addr()));
        }
        found
    }

    /// The table of what a lock is on, and the key as lists show it.
    pub(crate) fn index(&self, place: &LockDescription) -> Option<(&Arc<Table>, String)> {
        let bucket = self.indexes.get(&RowLock::bucket(place.index_id())).map(Vec::as_slice);
        let mut found = bucket.unwrap_or_default().iter().filter(|index| {
            let def = index.tree().def();
            def.id == place.index_id() && def.name == place.index()
        });
        // Imported files may bring numbers that another table's index has.
        let (Some(index), None) = (found.next(), found.next()) else { return None };
        Some((&index.table, index.key_text(place.key())))
    }

    /// Database, table and index of a lock, if they are known.
    pub(crate) fn place_of(&self, lock: &RowLock) -> Option<(String, String, String)> {
        let [index] = self.of_lock(lock)[..] else { return None };
        let table = &index.table;
        Some((table.database.clone(), table.name.clone(), index.tree().def().name.clone()))
    }

    /// Tables that a session uses.
    fn used_by<'n>(&'n self, owner: &RowOwner) -> impl Iterator<Item = (&'n Arc<Table>, Hold)> + use<'n> {
        let held = of_rows(owner).map(|owner| owner.held()).unwrap_or_default();
        held.into_iter().filter_map(|(lock, hold)| Some((self.tables.get(&lock)?, hold)))
    }
}

/// A list of locks that is made as it is read.
struct Locks {
    names: Names,
    rows: RowLocks,
    /// Those whose tables come last, when it is known where they have rows.
    owners: Vec<RowOwner>,
    shard: usize,
    pages: usize,
    /// Transactions, and tables in which they have row locks.
    with_rows: HashSet<(u64, u64)>,
    batch: vec::IntoIter<ListedLock>,
}

impl Iterator for Locks {
    type Item = ListedLock;

    fn next(&mut self) -> Option<ListedLock> {
        loop {
            if let Some(lock) = self.batch.next() {
                return Some(lock);
            }
            let batch = if self.shard < self.rows.shards() {
                let locks = self.next_locks();
                self.described(locks)
            } else if self.owners.is_empty() {
                return None;
            } else {
                self.table_locks()
            };
            self.batch = batch.into_iter();
        }
    }
}

impl Locks {
    fn next_locks(&mut self) -> Vec<RowLock> {
        let mut locks = Vec::new();
        while self.shard < self.rows.shards() && locks.len() < BATCH {
            locks.extend(self.rows.of_shard(self.shard));
            self.shard += 1;
        }
        locks
    }

    fn described(&mut self, locks: Vec<RowLock>) -> Vec<ListedLock> {
        let candidates: Vec<Vec<&Index>> = locks.iter().map(|lock| self.names.of_lock(lock)).collect();
        let found = look_up(&self.rows, &locks, &candidates, &mut self.pages);
        let mut listed = Vec::with_capacity(locks.len());
        for ((lock, candidates), found) in locks.iter().zip(&candidates).zip(found) {
            let (index, data) = match (found, &candidates[..]) {
                (Some((index, data)), _) => (Some(index), Some(data)),
                (None, [index]) if lock.is_end() => (Some(*index), Some(lock_data::END.to_owned())),
                (None, [index]) => (Some(*index), lock.key().map(|key| index.key_text(key))),
                (None, _) => (None, None),
            };
            if index.is_some_and(|index| is_private(&index.table.database)) {
                continue;
            }
            let transaction = lock.owner.shown_id();
            self.with_rows.extend(index.map(|index| (transaction, index.table.rows.id)));
            listed.push(ListedLock {
                id: lock.id(),
                transaction,
                connection: lock.owner.tag(),
                table: index.map(|index| (index.table.database.clone(), index.table.name.clone())),
                index: index.map(|index| index.tree().def().name.clone()),
                place: lock.place(),
                is_row: true,
                mode: lock.mode(),
                waiting: lock.waiting,
                data,
            });
        }
        listed
    }

    fn table_locks(&mut self) -> Vec<ListedLock> {
        let mut listed = Vec::new();
        for owner in self.owners.drain(..) {
            let transaction = owner.shown_id();
            for (table, hold) in self.names.used_by(&owner) {
                let mode = match hold {
                    Hold::Write => "IX",
                    Hold::Read if self.with_rows.contains(&(transaction, table.rows.id)) => "IS",
                    _ => continue,
                };
                if is_private(&table.database) {
                    continue;
                }
                listed.push(ListedLock {
                    id: format!("{transaction}:t{}:{mode}", table.rows.id),
                    transaction,
                    connection: owner.tag(),
                    table: Some((table.database.clone(), table.name.clone())),
                    index: None,
                    place: table.rows.id,
                    is_row: false,
                    mode,
                    waiting: false,
                    data: None,
                });
            }
        }
        listed
    }
}

/// Looks for the records of locks in the pages that are in memory: the index and the key of each that was
/// found.
fn look_up<'n>(
    rows: &RowLocks,
    locks: &[RowLock],
    candidates: &[Vec<&'n Index>],
    pages: &mut usize,
) -> Vec<Option<(&'n Index, String)>> {
    let mut found: Vec<Option<(&Index, String)>> = locks.iter().map(|_| None).collect();
    let mut wanted: HashMap<u64, (&'n Index, HashMap<u64, Vec<usize>>)> = HashMap::new();
    for (at, (lock, candidates)) in locks.iter().zip(candidates).enumerate() {
        if !lock.is_on_record() || lock.key().is_some() {
            continue;
        }
        for index in candidates {
            let (_, places) = wanted.entry(index.tree().def().id).or_insert_with(|| (index, HashMap::new()));
            places.entry(lock.place()).or_default().push(at);
        }
    }
    for (index, mut places) in wanted.into_values() {
        index.tree().visit_resident(pages, &mut |record| {
            for at in places.remove(&rows.place_of(record)).unwrap_or_default() {
                let key = record.fields().take(record.def().n_unique).map(FieldRef::inline);
                found[at] = Some((index, index.key_text(key)));
            }
            !places.is_empty()
        });
    }
    found
}

impl Database {
    /// The locks that there are, row locks first.
    #[doc(hidden)]
    pub fn locks(&self) -> impl Iterator<Item = ListedLock> + use<> {
        Locks {
            names: Names::new(self),
            rows: self.0.system.row_locks(),
            owners: self.0.system.owners(),
            shard: 0,
            pages: PAGES_MAX,
            with_rows: HashSet::new(),
            batch: Vec::new().into_iter(),
        }
    }

    /// Who waits for a row lock, and for whom: all, or those only who have it, where somebody has.
    #[doc(hidden)]
    pub fn lock_waits(&self, only_holders: bool) -> impl Iterator<Item = RowWaitEdge> + use<> {
        let rows = self.0.system.row_locks();
        (0..rows.shards()).flat_map(move |shard| rows.waits_of_shard(shard, only_holders))
    }
}
