//! Unique keys of secondary indexes: the look for another row that has the key.
//!
//! **Unique keys.** A transaction that puts an entry into a unique index first takes a short lock on the
//! *key* (not on any entry), so that two insertions of one key come one after the other; then every entry
//! with that key is locked next-key and looked at, and the gap after the last of them, as InnoDB does: S, or
//! X at once when the statement will change the row that it finds ([`OnDuplicate::Change`]), since of several
//! that hold S and want X only one can get it. The short lock goes when the entry is in. It is never held
//! while a row lock is waited for, since the holder of that row lock may need the key itself: it is let go
//! first, and the check starts over.
//!
//! **Turns.** A key that is replaced again and again has several entries, deleted ones and a live one, and a
//! transaction that waits for one of them holds others: concurrent replacements of one key would often
//! deadlock, as they do in InnoDB. So statements that will change the row take turns first, by a lock on the
//! key that lasts as long as the others. Only who has neither locked nor changed anything yet waits for its
//! turn, so nobody can be waiting for it meanwhile; the rest go on without. The transaction takes its turn
//! before it inserts the row, because the insert is a change already: where a row of that primary key was
//! replaced before, its entry is still there, delete-marked, and the transaction that has the turn would wait
//! at it for the row's writer. Turns for several keys of one row are taken in the order of the indexes.

use std::sync::Arc;

use btree::compare::SearchKey;
use btree::{Field, FieldRef, OwnedKey, Seek, Tree};

use super::WaitPolicy;
use super::implicit_lock::make_entry_lock_explicit;
use super::insert::OnDuplicate;
use super::write::{Step, Writer, describe, describe_end, repeat, retry_change};
use crate::entry::build_entry;
use crate::error::{Error, Interrupt};
use crate::lock::{Acquired, Extent, LockDescription, LockMode, LockTarget, Owner};
use crate::system::System;
use crate::table::{Secondary, Table};
use crate::transaction::Transaction;

/// The short lock on a key of a unique index, from the look at its entries to the new entry.
struct KeyGuard {
    system: Arc<System>,
    owner: Arc<Owner>,
    target: LockTarget,
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        // After a deadlock everything is released already, which this finds out.
        self.system.locks.release(&self.owner, self.target, LockMode::X_RECORD);
    }
}

impl KeyGuard {
    /// Waits for nobody but others between their look and their entry, who wait for no row lock.
    async fn take(transaction: &mut Transaction, tree: &Tree, key: &[Field<'_>]) -> Result<KeyGuard, Error> {
        let system = transaction.inner().clone();
        let target = system.locks.unique_target(tree.def(), key.iter().copied());
        repeat(transaction, |writer, _| {
            let describe = || describe_end(tree.def());
            let locks = &writer.system.locks;
            Ok(match locks.request(writer.owner, target, LockMode::X_RECORD, WaitPolicy::Wait, &describe) {
                Acquired::Wait(wait) => Step::Lock(wait),
                _ => Step::Done,
            })
        })
        .await?;
        Ok(KeyGuard { system, owner: transaction.owner.clone(), target })
    }
}

/// Puts in an entry whose key, of a unique index, is new to the row.
pub(super) async fn insert_unique(
    transaction: &mut Transaction,
    table: &Table,
    secondary: &Secondary,
    entry: &OwnedKey,
    on_duplicate: OnDuplicate,
) -> Result<(), Error> {
    let fields = entry.fields();
    let key = &fields[..secondary.user_fields];
    loop {
        let guard = KeyGuard::take(transaction, &secondary.tree, key).await?;
        let step = insert_guarded(transaction, table, secondary, entry, on_duplicate).await?;
        drop(guard);
        match step {
            Step::Lock(wait) => transaction.wait_for_lock(wait).await?,
            Step::Duplicate => return Err(duplicate(secondary.tree.def(), key)),
            _ => return Ok(()),
        }
    }
}

/// Before a row goes in that will replace or change the one in its way: waits for those who do so with its
/// unique keys already, unless others may be waiting for this transaction.
pub(super) async fn take_turns(
    transaction: &mut Transaction,
    table: &Table,
    values: &[FieldRef<'_>],
) -> Result<(), Error> {
    let has_nothing = transaction.owner.lock_count() == 0 && !transaction.has_changes();
    let policy = if has_nothing { WaitPolicy::Wait } else { WaitPolicy::SkipLocked };
    let mut entry = OwnedKey::new();
    for secondary in table.secondaries.iter().filter(|secondary| secondary.unique) {
        let build =
            |_: &mut Writer<'_>| build_entry(table, secondary, |position| values[position], &mut entry);
        retry_change(transaction, build).await?;
        let (tree, fields) = (&*secondary.tree, entry.fields());
        let key = &fields[..secondary.user_fields];
        if key.iter().any(Option::is_none) {
            continue;
        }
        let turn = transaction.inner().locks.turn_target(tree.def(), key.iter().copied());
        repeat(transaction, |writer, _| {
            let describe = || describe_end(tree.def());
            Ok(match writer.system.locks.request(writer.owner, turn, LockMode::X_RECORD, policy, &describe) {
                Acquired::Wait(wait) => Step::Lock(wait),
                _ => Step::Done,
            })
        })
        .await?;
    }
    Ok(())
}

/// Looks for the key and puts the entry in. A row lock that is in the way is handed back, to be waited for
/// without the guard.
async fn insert_guarded(
    transaction: &mut Transaction,
    table: &Table,
    secondary: &Secondary,
    entry: &OwnedKey,
    on_duplicate: OnDuplicate,
) -> Result<Step, Error> {
    let check = |writer: &mut Writer<'_>| writer.check_unique_step(table, secondary, entry, on_duplicate);
    let found = retry_change(transaction, check).await?;
    if !matches!(found, Step::Done) {
        return Ok(found);
    }
    let mut structure: Option<usize> = None;
    loop {
        let insert = |writer: &mut Writer<'_>| writer.insert_entry_step(secondary, entry, structure);
        match retry_change(transaction, insert).await? {
            Step::Structure(size) => structure = Some(structure.map_or(size, |before| before.max(size))),
            step => return Ok(step),
        }
    }
}

/// The error for a key that exists already.
pub(super) fn duplicate(def: &btree::IndexDef, key: &[Field<'_>]) -> Error {
    let entry = key.iter().map(|field| field.map(<[u8]>::to_vec)).collect();
    Error::DuplicateKey { index: def.name.clone(), entry }
}

impl Writer<'_> {
    /// Looks at all entries with the key of `entry`, locking them.
    fn check_unique_step(
        &mut self,
        table: &Table,
        secondary: &Secondary,
        entry: &OwnedKey,
        on_duplicate: OnDuplicate,
    ) -> Result<Step, Interrupt> {
        let exclusive = on_duplicate == OnDuplicate::Change;
        let tree: &Tree = &secondary.tree;
        let fields = entry.fields();
        let prefix = &fields[..secondary.user_fields];
        let key = SearchKey::new(tree.def(), prefix);
        let mut cursor = tree.seek(prefix, Seek::AtLeast)?;
        let mut found = false;
        while cursor.is_valid() && key.compare_record(cursor.record()).is_eq() {
            found = true;
            let record = cursor.record();
            let target = self.system.locks.target_of(record);
            let (system, own_id) = (self.system, self.undo_log.trx_id);
            let max_id = cursor.page_max_trx_id();
            make_entry_lock_explicit(system, own_id, table, secondary, record, max_id, target)?;
            let mode = LockMode::new(exclusive, Extent::NextKey);
            if let Some(wait) = self.lock_scanned(target, mode, || describe(record)) {
                return Ok(wait);
            }
            if !record.is_deleted() {
                return Ok(Step::Duplicate);
            }
            cursor.next()?;
        }
        if found {
            let mode = LockMode::new(exclusive, Extent::Gap);
            let wait = if cursor.is_valid() {
                let record = cursor.record();
                self.lock_scanned(self.system.locks.target_of(record), mode, || describe(record))
            } else {
                let end = LockTarget::supremum(tree.def().id);
                self.lock_scanned(end, mode, || describe_end(tree.def()))
            };
            if let Some(wait) = wait {
                return Ok(wait);
            }
        }
        Ok(Step::Done)
    }

    fn lock_scanned(
        &self,
        target: LockTarget,
        mode: LockMode,
        describe: impl Fn() -> LockDescription,
    ) -> Option<Step> {
        match self.system.locks.request(self.owner, target, mode, WaitPolicy::Wait, &describe) {
            Acquired::Wait(wait) => Some(Step::Lock(wait)),
            _ => None,
        }
    }
}
