//! Foreign keys, applied to each row that is written.
//!
//! **A row that refers** is checked before it is written: its parent is looked up with a shared lock on the
//! entry found, and on its row. So the parent stays until the transaction ends; one that is being deleted by
//! somebody else is waited for. A parent that is missing refuses the row only after the row was tried: a
//! duplicate key is reported before it, as in InnoDB, and a row may refer to itself.
//!
//! **A row that is referred to** is locked and its key is copied, then it is changed, and only then are its
//! children looked for, through their index: so rows that refer to each other in a circle can be deleted.
//! RESTRICT looks for one child with a shared lock; at the levels that lock gaps also the gap is locked where
//! there is none. CASCADE and SET NULL lock the children exclusively, some at a time, and change them as if a
//! statement had, with their own parents and children. The lock on the parent's row closes the race with an
//! insert of a child at every level: an insert of a child has to lock that row first.
//!
//! As in InnoDB: a row with NULL in a column of the key refers to nothing; a cascade does not become
//! [`DEPTH_MAX`] rows deep; one that would update a table which an update further up has changed is
//! refused like RESTRICT, so that updates end; ON UPDATE CURRENT_TIMESTAMP does not see cascades, nor do
//! counts of rows.
//!
//! Whatever fails midway is undone to where the row's change began. What waits keeps no latch and no state of
//! its own: everything here is a sequence of operations of [`txn`], each of which is repeated by itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use btree::{Field, OwnedKey};
use smallvec::SmallVec;
use txn::{Control, Direction, KeyRange, OnDuplicate, ReadMode, Scan, ScanIndex, ScanState, WaitPolicy};

use super::copied_columns::Copied;
use super::row_operations::{delete_row, insert_row, update_row};
use super::row_writer::{Changes, Written};
use super::statement_savepoint::StatementSavepoint;
use crate::error::{Error, Result};
use crate::foreign_key::{Child, Parent, Relations};
use crate::schema::{BrokenForeignKey, ReferentialAction};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::{self, ColumnType, Value};

/// A cascade ends before it is this many rows deep, as in InnoDB.
pub(crate) const DEPTH_MAX: usize = 15;
/// Children gathered before they are changed.
const BATCH_ROWS: usize = 64;

/// What a table's foreign keys, and those to it, make of a statement's rows.
#[derive(Default)]
pub(super) struct ForeignKeys {
    /// What is known of the tables met so far. They are in use: it stays so.
    known: Vec<(Arc<Table>, Arc<Relations>)>,
    /// Rows that cascades have removed, by table.
    removed: Vec<(Arc<Table>, i64)>,
}

/// The changes above one of a cascade.
#[derive(Clone, Copy)]
struct Chain<'c> {
    above: Option<&'c Chain<'c>>,
    table: &'c Arc<Table>,
    /// It is an update, by this foreign key unless it is the statement's own.
    updates: bool,
    by: Option<&'c str>,
    depth: usize,
}

impl Chain<'_> {
    fn updates(&self, table: &Arc<Table>) -> bool {
        self.updates && Arc::ptr_eq(self.table, table) || self.above.is_some_and(|above| above.updates(table))
    }
}

type Key = SmallVec<[Option<Vec<u8>>; 4]>;
type Boxed<'f, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'f>>;

fn scan_of(table: &Table, index: ScanIndex, fields: &[Field<'_>], exclusive: bool) -> Scan {
    let range = KeyRange::equal(OwnedKey::from_fields(fields));
    let mode = ReadMode::Locking { exclusive, wait: WaitPolicy::Wait };
    Scan::new(table.rows.clone(), index, range, Direction::Forward, mode, !exclusive)
}

/// Whether there is a row with this key; the first one is locked.
async fn exists(
    transaction: &mut Transaction,
    table: &Table,
    index: ScanIndex,
    key: &[Option<Vec<u8>>],
) -> Result<bool> {
    let fields: SmallVec<[Field<'_>; 4]> = key.iter().map(|field| field.as_deref()).collect();
    let mut scan = scan_of(table, index, &fields, false);
    let mut found = false;
    scan.run(transaction.engine_mut(), &mut |_| {
        found = true;
        Control::Stop
    })
    .await?;
    Ok(found)
}

/// Locks a row and copies some of its columns; `None` if there is no such row.
async fn columns_of_row(
    transaction: &mut Transaction,
    table: &Table,
    key: &[Field<'_>],
    columns: &[u16],
) -> Result<Option<Vec<Option<Vec<u8>>>>> {
    let mut scan = scan_of(table, ScanIndex::Clustered, key, true);
    let mut copied = None;
    scan.run(transaction.engine_mut(), &mut |row| {
        copied = Some(Copied::of(row, columns));
        Control::Stop
    })
    .await?;
    match copied {
        Some(copied) => copied.complete(transaction, &table.rows).await.map(Some),
        None => Ok(None),
    }
}

/// The key of a row, unless part of it is NULL.
fn whole_key<'f>(columns: &[u16], field: impl Fn(u16) -> Field<'f>) -> Option<Key> {
    columns.iter().map(|column| field(*column).map(|bytes| Some(bytes.to_vec()))).collect()
}

impl Parent {
    async fn exists(&self, transaction: &mut Transaction, key: &[Option<Vec<u8>>]) -> Result<bool> {
        match &self.found {
            Some((table, index)) => exists(transaction, table, *index, key).await,
            None => Ok(false),
        }
    }
}

/// The parents that a row lacks, and by which key.
type Missing<'r> = SmallVec<[(&'r Parent, Key); 1]>;

async fn missing_parents<'r, 'f>(
    transaction: &mut Transaction,
    parents: impl Iterator<Item = &'r Parent>,
    field: impl Fn(u16) -> Field<'f>,
) -> Result<Missing<'r>> {
    let mut missing = Missing::new();
    for parent in parents {
        if let Some(key) = whole_key(&parent.columns, &field)
            && !parent.exists(transaction, &key).await?
        {
            missing.push((parent, key));
        }
    }
    Ok(missing)
}

/// The row is written. It may be its own parent.
async fn refuse_missing(transaction: &mut Transaction, table: &Table, missing: &Missing<'_>) -> Result<()> {
    for (parent, key) in missing {
        if !(parent.is_own && parent.exists(transaction, key).await?) {
            let (database, name) = (table.database.clone(), table.name.clone());
            let broken = BrokenForeignKey { database, table: name, key: parent.key.clone() };
            return Err(Error::ForeignKeyParentMissing(Box::new(broken)));
        }
    }
    Ok(())
}

/// A value of the parent's column as the child's column stores it; `None` if it does not fit.
fn converted(value: &[u8], column: &ColumnType) -> Option<Vec<u8>> {
    let mut bytes = value.to_vec();
    let pad = if matches!(column, ColumnType::Binary { .. }) { 0 } else { b' ' };
    match column {
        ColumnType::Char { chars: length, .. } | ColumnType::Binary { bytes: length } => {
            let length = *length as usize;
            let blank = bytes.iter().rposition(|byte| *byte != pad).map_or(0, |last| last + 1);
            if characters(&bytes[..blank], column) > length {
                return None;
            }
            bytes.truncate(blank.max(length.min(bytes.len())));
            bytes.resize(bytes.len().max(length), pad);
        }
        ColumnType::VarChar { chars: length, .. } | ColumnType::VarBinary { bytes: length } => {
            if characters(&bytes, column) > *length as usize {
                let blank = bytes.iter().rposition(|byte| *byte != pad).map_or(0, |last| last + 1);
                bytes.truncate(blank);
            }
            if characters(&bytes, column) > *length as usize {
                return None;
            }
        }
        _ => {}
    }
    Some(bytes)
}

fn characters(bytes: &[u8], column: &ColumnType) -> usize {
    match column {
        ColumnType::Char { collation, .. } | ColumnType::VarChar { collation, .. }
            if collation.bytes_per_char_max() > 1 =>
        {
            bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
        }
        _ => bytes.len(),
    }
}

impl ForeignKeys {
    async fn relations(
        &mut self,
        transaction: &mut Transaction,
        table: &Arc<Table>,
    ) -> Result<Arc<Relations>> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, table)) {
            return Ok(known.clone());
        }
        let relations = Arc::new(Relations::of(transaction, table).await?);
        self.known.push((table.clone(), relations.clone()));
        Ok(relations)
    }

    /// As [`txn::insert_with`].
    pub async fn insert(
        &mut self,
        transaction: &mut Transaction,
        table: &Arc<Table>,
        row: &[Field<'_>],
        on_duplicate: OnDuplicate,
    ) -> Result<Written> {
        let relations = self.relations(transaction, table).await?;
        let savepoint = StatementSavepoint::new(transaction);
        let transaction = &mut *savepoint.transaction;
        let missing =
            missing_parents(transaction, relations.parents.iter(), |column| row[usize::from(column)]).await?;
        let done = insert_row(transaction, table, row, on_duplicate).await?;
        if done == Written::Done {
            refuse_missing(transaction, table, &missing).await?;
        }
        savepoint.keep();
        Ok(done)
    }

    /// As [`txn::delete`].
    pub async fn delete(
        &mut self,
        transaction: &mut Transaction,
        table: &Arc<Table>,
        key: &[Field<'_>],
    ) -> Result<()> {
        let savepoint = StatementSavepoint::new(transaction);
        let chain = Chain { above: None, table, updates: false, by: None, depth: 0 };
        self.delete_row(savepoint.transaction, key, chain).await?;
        savepoint.keep();
        Ok(())
    }

    /// As [`txn::update`].
    pub async fn update(
        &mut self,
        transaction: &mut Transaction,
        table: &Arc<Table>,
        key: &[Field<'_>],
        changes: &Changes<'_>,
    ) -> Result<Written> {
        let savepoint = StatementSavepoint::new(transaction);
        let chain = Chain { above: None, table, updates: true, by: None, depth: 0 };
        let done = self.update_row(savepoint.transaction, key, changes, chain).await?;
        savepoint.keep();
        Ok(done)
    }

    async fn delete_row(
        &mut self,
        transaction: &mut Transaction,
        key: &[Field<'_>],
        chain: Chain<'_>,
    ) -> Result<()> {
        let table = chain.table;
        let relations = self.relations(transaction, table).await?;
        let columns = columns_of(relations.children.iter().map(|child| &child.referenced));
        let old = match columns.is_empty() {
            true => None,
            false => columns_of_row(transaction, table, key, &columns).await?,
        };
        delete_row(transaction, table, key).await?;
        let Some(old) = old else { return Ok(()) };
        for child in &relations.children {
            let old = |column: u16| field_of(&columns, &old, column);
            if let Some(gone) = whole_key(&child.referenced, old) {
                self.follow(transaction, child, &gone, None, chain).await?;
            }
        }
        Ok(())
    }

    async fn update_row(
        &mut self,
        transaction: &mut Transaction,
        key: &[Field<'_>],
        changes: &Changes<'_>,
        chain: Chain<'_>,
    ) -> Result<Written> {
        let table = chain.table;
        let relations = self.relations(transaction, table).await?;
        let assigned = |column: &u16| changes.iter().any(|(changed, _)| changed == column);
        let is_by = |parent: &&Parent| chain.by != Some(parent.key.name.as_str());
        let parents: SmallVec<[&Parent; 4]> = relations
            .parents
            .iter()
            .filter(is_by)
            .filter(|parent| parent.columns.iter().any(assigned))
            .collect();
        let children: SmallVec<[&Child; 4]> =
            relations.children.iter().filter(|child| child.referenced.iter().any(assigned)).collect();
        let lists = parents.iter().map(|parent| &parent.columns);
        let columns = columns_of(lists.chain(children.iter().map(|child| &child.referenced)));
        if columns.is_empty() {
            return update_row(transaction, table, key, changes).await;
        }
        let Some(old) = columns_of_row(transaction, table, key, &columns).await? else {
            return Err(Error::Transaction(txn::Error::RowNotFound { table: table.rows.id }));
        };
        let old = |column: u16| field_of(&columns, &old, column);
        let new = |column: u16| match changes.iter().rev().find(|(changed, _)| *changed == column) {
            Some((_, field)) => *field,
            None => old(column),
        };
        let differs = |list: &[u16]| list.iter().any(|column| old(*column) != new(*column));
        let concerned = parents.iter().copied().filter(|parent| differs(&parent.columns));
        let missing = missing_parents(transaction, concerned, new).await?;
        let done = update_row(transaction, table, key, changes).await?;
        if done != Written::Done {
            return Ok(done);
        }
        refuse_missing(transaction, table, &missing).await?;
        for child in children.into_iter().filter(|child| differs(&child.referenced)) {
            if let Some(gone) = whole_key(&child.referenced, old) {
                let fresh: Key =
                    child.referenced.iter().map(|column| new(*column).map(<[u8]>::to_vec)).collect();
                self.follow(transaction, child, &gone, Some(&fresh), chain).await?;
            }
        }
        Ok(done)
    }

    /// A row has lost the key `gone`, and has `fresh` if it was updated: what that is to its children.
    fn follow<'f>(
        &'f mut self,
        transaction: &'f mut Transaction,
        child: &'f Child,
        gone: &'f Key,
        fresh: Option<&'f Key>,
        above: Chain<'f>,
    ) -> Boxed<'f, ()> {
        Box::pin(async move {
            let action = if fresh.is_some() { child.key.on_update } else { child.key.on_delete };
            let refused = || Error::ForeignKeyChildExists(child.broken());
            if !action.changes_rows() {
                return match exists(transaction, &child.table, child.index, gone).await? {
                    true => Err(refused()),
                    false => Ok(()),
                };
            }
            let deletes = fresh.is_none() && action == ReferentialAction::Cascade;
            let depth = above.depth + 1;
            let by = Some(child.key.name.as_str());
            let chain = Chain { above: Some(&above), table: &child.table, updates: !deletes, by, depth };
            let fields: SmallVec<[Field<'_>; 4]> = gone.iter().map(|field| field.as_deref()).collect();
            let mut scan = scan_of(&child.table, child.index, &fields, true);
            loop {
                let mut keys: Vec<OwnedKey> = Vec::new();
                let state = scan
                    .run(transaction.engine_mut(), &mut |row| {
                        let mut key = OwnedKey::default();
                        row.clustered_key(&mut key);
                        keys.push(key);
                        if keys.len() < BATCH_ROWS { Control::Continue } else { Control::Pause }
                    })
                    .await?;
                if !keys.is_empty() && !deletes && above.updates(&child.table) {
                    return Err(refused());
                }
                if !keys.is_empty() && depth >= DEPTH_MAX {
                    return Err(Error::ForeignKeyDepth(DEPTH_MAX));
                }
                for key in keys {
                    let changed = match deletes {
                        true => self.delete_child(transaction, &key.fields(), chain).await,
                        false => {
                            let fresh = fresh.filter(|_| action == ReferentialAction::Cascade);
                            self.update_child(transaction, child, &key.fields(), fresh, chain).await
                        }
                    };
                    match changed {
                        // Another way of the cascade has come by it.
                        Err(Error::Transaction(txn::Error::RowNotFound { .. })) => {}
                        changed => changed?,
                    }
                }
                if state == ScanState::Finished {
                    return Ok(());
                }
            }
        })
    }

    async fn delete_child(
        &mut self,
        transaction: &mut Transaction,
        key: &[Field<'_>],
        chain: Chain<'_>,
    ) -> Result<()> {
        self.delete_row(transaction, key, chain).await?;
        match self.removed.iter_mut().find(|(table, _)| Arc::ptr_eq(table, chain.table)) {
            Some((_, count)) => *count += 1,
            None => self.removed.push((chain.table.clone(), 1)),
        }
        Ok(())
    }

    /// Gives a child another key; NULL without one.
    async fn update_child(
        &mut self,
        transaction: &mut Transaction,
        child: &Child,
        key: &[Field<'_>],
        fresh: Option<&Key>,
        chain: Chain<'_>,
    ) -> Result<()> {
        let refused = || Error::ForeignKeyChildExists(child.broken());
        let mut values: SmallVec<[(u16, Option<Vec<u8>>); 4]> = SmallVec::new();
        for (at, column) in child.columns.iter().enumerate() {
            let def = &child.table.def.columns[usize::from(*column)];
            let value = match fresh.and_then(|fresh| fresh[at].as_ref()) {
                Some(value) => Some(converted(value, &def.kind).ok_or_else(refused)?),
                None if def.nullable => None,
                None => return Err(refused()),
            };
            values.push((*column, value));
        }
        let changes: SmallVec<[(u16, Field<'_>); 4]> =
            values.iter().map(|(column, value)| (*column, value.as_deref())).collect();
        match self.update_row(transaction, key, &changes, chain).await? {
            Written::Done => Ok(()),
            Written::Duplicate { index, .. } => Err(Error::ForeignKeyDuplicate {
                parent: chain.above.map_or_else(String::new, |above| above.table.name.clone()),
                record: shown(&child.table, &values),
                child: child.table.name.clone(),
                index,
            }),
        }
    }

    /// The statement has succeeded.
    pub fn finish(self) {
        for (table, count) in self.removed {
            table.note_rows(-count, count.unsigned_abs());
        }
    }
}

/// A key as an error shows it.
fn shown(table: &Table, values: &[(u16, Option<Vec<u8>>)]) -> String {
    let one = |(column, value): &(u16, Option<Vec<u8>>)| {
        let kind = &table.def.columns[usize::from(*column)].kind;
        match value.as_ref().map(|bytes| (types::decode(bytes, kind), bytes)) {
            None => "NULL".to_owned(),
            Some((Some(Value::Int(number)), _)) => number.to_string(),
            Some((Some(Value::UInt(number)), _)) => number.to_string(),
            Some((_, bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        }
    };
    values.iter().map(one).collect::<Vec<_>>().join("-")
}

/// All columns of these lists, once.
fn columns_of<'l>(lists: impl Iterator<Item = &'l Vec<u16>>) -> SmallVec<[u16; 8]> {
    let mut columns: SmallVec<[u16; 8]> = lists.flatten().copied().collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// A column of those that were copied.
fn field_of<'o>(columns: &[u16], fields: &'o [Option<Vec<u8>>], column: u16) -> Field<'o> {
    columns.binary_search(&column).ok().and_then(|at| fields[at].as_deref())
}
