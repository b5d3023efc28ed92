//! Implicit locks: a row that an active transaction has changed is locked by that fact, and the first who
//! meets it writes the lock down.
//!
//! A clustered record names its last writer (DB_TRX_ID). While that transaction is active, the lock table may
//! have no lock of it on the record; before somebody else asks for one, the writer's is made explicit, so
//! that there is something to wait for. A secondary entry names no writer: PAGE_MAX_TRX_ID of its page rules
//! most of them out, and the row is asked for the rest.

use std::sync::Arc;

use btree::{FieldRef, KeyFields, RecordRef};

use super::WaitPolicy;
use super::write::{Writer, describe};
use crate::error::Interrupt;
use crate::lock::{Acquired, LockMode, LockTarget, Owner};
use crate::system::System;
use crate::table::{Secondary, Table};

impl Writer<'_> {
    /// The right to change a clustered record: waits for others' locks; the change will be the lock.
    pub fn lock_row_for_change(&self, record: RecordRef<'_>) -> Acquired {
        let trx_id = record.trx_id();
        if trx_id == self.undo_log.trx_id {
            return Acquired::Granted { new: false };
        }
        let target = self.system.locks.target_of(record);
        if let Some(writer) = self.system.active.find(trx_id) {
            self.system.locks.make_explicit(&writer, target);
        }
        self.system.locks.request_change(self.owner, target, WaitPolicy::Wait, &|| describe(record))
    }
}

/// Locks a clustered record, making its writer's implicit lock explicit first.
pub(super) fn lock_clustered(
    system: &System,
    owner: &Arc<Owner>,
    own_id: u64,
    record: RecordRef<'_>,
    mode: LockMode,
    policy: WaitPolicy,
) -> Acquired {
    let target = system.locks.target_of(record);
    let trx_id = record.trx_id();
    if trx_id == own_id && own_id != 0 {
        // The own change is a lock on the record, but not on the gap.
        if !mode.guards_gap() {
            return Acquired::Granted { new: false };
        }
    } else if let Some(writer) = system.active.find(trx_id) {
        system.locks.make_explicit(&writer, target);
    }
    system.locks.request(owner, target, mode, policy, &|| describe(record))
}

/// An entry has no writer's id; its row has. If an active transaction was the last to write the row, it is
/// taken to have the entry locked too (it may have changed other columns only; then the wait would come at
/// the row).
pub(super) fn make_entry_lock_explicit(
    system: &System,
    own_id: u64,
    table: &Table,
    secondary: &Secondary,
    record: RecordRef<'_>,
    page_max_trx_id: u64,
    target: LockTarget,
) -> Result<(), Interrupt> {
    if page_max_trx_id < system.active.oldest() {
        return Ok(());
    }
    let entry: KeyFields<'_> = record.fields().map(FieldRef::inline).collect();
    let key = secondary.clustered_key(table, &entry);
    let writer = table.clustered.get(&key, |row| row.trx_id())?;
    if let Some(writer) = writer.filter(|id| *id != own_id).and_then(|id| system.active.find(id)) {
        system.locks.make_explicit(&writer, target);
    }
    Ok(())
}
