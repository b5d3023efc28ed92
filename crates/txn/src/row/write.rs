//! What all changes of rows need.

use std::sync::Arc;

use btree::{FieldRef, KeyFields, LastChange, OwnedKey, RecordBuffer, RecordRef};

use super::WaitPolicy;
use super::implicit_lock::lock_clustered;
use crate::error::{Error, Interrupt};
use crate::lock::{Acquired, LockDescription, LockMode, LockTarget, LockWait, Owner};
use crate::retry::retry;
use crate::system::System;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::undo::UndoLog;

/// Buffers kept from one change to the next.
#[derive(Default)]
pub(crate) struct WriteBuffers {
    pub record: RecordBuffer,
    pub undo: Vec<u8>,
    /// Where the last row was inserted, changed or delete-marked; the next one is often shortly behind it.
    pub last: Option<LastChange>,
}

/// Encodes a clustered record.
pub(crate) fn encode_record(
    buffer: &mut RecordBuffer,
    def: &btree::IndexDef,
    table: u64,
    fields: &[FieldRef<'_>],
) -> Result<(), Error> {
    buffer.encode(def, fields).map_err(|error| Error::RowTooLarge { table, bytes: error.size })
}

/// A transaction about to change something: its parts, borrowed apart.
pub(crate) struct Writer<'t> {
    pub system: &'t Arc<System>,
    pub owner: &'t Arc<Owner>,
    pub undo_log: &'t mut UndoLog,
    pub buffers: &'t mut WriteBuffers,
}

/// How a step of a change ended.
pub(crate) enum Step {
    Done,
    /// Done, and the row is a new one, where it might have been there.
    Inserted,
    /// Nothing was to be changed.
    Unchanged,
    /// A row lock must be waited for.
    Lock(LockWait),
    /// The pages must be split: once more with the structure lock, for a record of this size.
    Structure(usize),
    /// A live row has this key.
    Duplicate,
    /// There is no such row.
    NotFound,
    /// These fields must go off-page first; the row is locked.
    TooLarge(Vec<(usize, Vec<u8>)>),
}

/// A secondary index entry of a row that changed: before and after.
pub(crate) struct EntryChange {
    pub index: usize,
    pub old: Option<OwnedKey>,
    pub new: Option<OwnedKey>,
}

impl Transaction {
    /// The parts a change needs. Call after `begin_change`.
    pub(crate) fn writer(&mut self) -> Result<Writer<'_>, Error> {
        let (system, owner, log, buffers) = self.writing();
        match log {
            Some(log) => Ok(Writer { system, owner, undo_log: log, buffers }),
            None => Err(Error::Internal("a change was not prepared".to_owned())),
        }
    }
}

/// Repeats a step, waiting for row locks and changing the structure of the tree as it asks for. No wait holds
/// the pin of the undo page.
pub(super) async fn repeat(
    transaction: &mut Transaction,
    mut step: impl FnMut(&mut Writer<'_>, Option<usize>) -> Result<Step, Interrupt>,
) -> Result<Step, Error> {
    let mut structure: Option<usize> = None;
    loop {
        let mut writer = transaction.writer()?;
        let step = || step(&mut writer, structure).inspect_err(|_| writer.undo_log.unpin());
        match retry(step).await? {
            Step::Lock(wait) => transaction.wait_for_lock(wait).await?,
            Step::Structure(size) => structure = Some(structure.map_or(size, |before| before.max(size))),
            step => return Ok(step),
        }
    }
}

/// Repeats a step of a change that waits for pages only. No wait holds the pin of the undo page.
pub(super) async fn retry_change<R>(
    transaction: &mut Transaction,
    mut step: impl FnMut(&mut Writer<'_>) -> Result<R, Interrupt>,
) -> Result<R, Error> {
    let mut writer = transaction.writer()?;
    retry(|| step(&mut writer).inspect_err(|_| writer.undo_log.unpin())).await
}

impl Writer<'_> {
    /// A lock on a clustered record that stays until the transaction ends.
    pub fn lock_row(&self, record: RecordRef<'_>, mode: LockMode) -> Acquired {
        lock_clustered(self.system, self.owner, self.undo_log.trx_id, record, mode, WaitPolicy::Wait)
    }

    /// The right to change a secondary entry. Its row is locked by this transaction already, so only explicit
    /// locks of scans can stand in the way.
    pub fn lock_entry_for_change(&self, record: RecordRef<'_>, target: LockTarget) -> Acquired {
        self.system.locks.request_change(self.owner, target, WaitPolicy::Wait, &|| describe(record))
    }
}

/// A record as status texts name it.
pub(crate) fn describe(record: RecordRef<'_>) -> LockDescription {
    let def = record.def();
    LockDescription::entry(&def.name, def.id, record.fields().take(def.n_unique).map(FieldRef::inline))
}

/// The end of an index as status texts name it.
pub(crate) fn describe_end(def: &btree::IndexDef) -> LockDescription {
    LockDescription::end(&def.name, def.id)
}

/// Clustered key of a row given by clustered fields.
pub(crate) fn key_of<'f>(table: &Table, fields: &[FieldRef<'f>]) -> KeyFields<'f> {
    fields[..table.key_fields].iter().map(|field| field.inline()).collect()
}
