//! Prepared transactions: their changes are complete and durable, and whether they are committed is somebody
//! else's to decide, who may take days for it.
//!
//! Preparing writes, in one mini-transaction, the state to the header of the undo log and a record with the
//! transaction's name (XID) behind its last one. From then on the log has no session: neither a start nor the
//! end of a connection rolls it back, its id stays active, so that nobody sees its changes and purge keeps
//! what they replaced, and its changes stay the locks that they are (`row/implicit_lock.rs`). The tables it
//! changed stay in use.
//!
//! Committing is the same as for every other, with the record cut off. A rollback first makes the log an
//! active one again: what is cut by a crash from there on, the next start finishes.
//!
//! A transaction that has changed nothing is prepared as well, so that its name is known after a crash too,
//! and lets go of its row locks: there is nothing that they could protect.

use std::collections::BTreeMap;
use std::sync::Arc;

use btree::FieldRef;
use redo::Flush;

use crate::error::{Error, Interrupt};
use crate::lock::Owner;
use crate::read_view::ReadView;
use crate::retry::retry;
use crate::row::WriteBuffers;
use crate::system::{System, TransactionSystem};
use crate::table::{TableHold, TableSource};
use crate::transaction::{Durability, Transaction};
use crate::undo::directory::SLOTS_MAX;
use crate::undo::record::{UndoBuilder, bytes_at};
use crate::undo::recovery::{PreparedMark, Survey, Unfinished};
use crate::undo::tablespace::corrupt;
use crate::undo::{Place, UndoKind, UndoLog, UndoRecord};
use crate::version::Overlay;
use crate::xid::Xid;

/// Prepared transactions at most: half of the undo slots, as nobody needs a privilege to prepare, and the
/// others must be able to change something.
pub const PREPARED_MAX: usize = SLOTS_MAX / 2;

/// Tables that the record names at most. With more of them a start reads the whole log.
const TABLES_MAX: usize = 200;

/// A prepared transaction that a start has found. It may only be committed or rolled back.
pub struct RecoveredTransaction {
    /// Its name.
    pub xid: Xid,
    /// The transaction. Dropped, it stays prepared.
    pub transaction: Transaction,
}

/// The record that names a transaction.
fn encode(xid: &Xid, tables: &[u64], bytes: &mut Vec<u8>) {
    let format = xid.format_id().to_be_bytes();
    let ids: Vec<u8> = tables.iter().flat_map(|id| id.to_be_bytes()).collect();
    let ids = if tables.len() <= TABLES_MAX { FieldRef::Inline(&ids) } else { FieldRef::Null };
    let [format, gtrid, bqual] = [&format, xid.gtrid(), xid.bqual()].map(FieldRef::Inline);
    let mut record = UndoBuilder::new(bytes, UndoKind::Prepared, 0);
    record.key([format, gtrid, bqual, ids].into_iter());
    record.finish();
}

/// The name, and the tables if they are in the record.
fn decode(record: &[u8]) -> Option<(Xid, Option<Vec<u64>>)> {
    let record = UndoRecord::parse(record).filter(|record| record.kind == UndoKind::Prepared)?;
    let [format, gtrid, bqual, ids] = &record.key[..] else { return None };
    let format = i64::from_be_bytes(format.inline()?.try_into().ok()?);
    let xid = Xid::new(format, gtrid.inline()?, bqual.inline()?)?;
    let id = |bytes: &[u8]| bytes.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
    let tables = ids.inline().map(|ids| ids.chunks_exact(8).map(id).collect());
    Some((xid, tables))
}

impl Transaction {
    /// Prepares the transaction under this name: when this returns, what it has changed survives a crash
    /// (with [`Durability::Sync`] also a power cut), and stays as it is until `commit` or `rollback`; nothing
    /// else may follow. That no other has the name is the caller's concern.
    ///
    /// When it fails and [`Self::is_prepared`] says no, the transaction goes on. Dropped, the future has
    /// either not begun, or what is missing is the wait for durability.
    ///
    /// # Errors
    /// [`Error::RolledBack`], [`Error::TooManyTransactions`], a full undo tablespace, storage errors. One of
    /// the log at the end leaves it prepared, and the next start tells whether it stays so.
    pub async fn prepare(&mut self, xid: &Xid, durability: Durability) -> Result<(), Error> {
        self.begin_operation().await?;
        if self.undo_log.is_none() {
            self.take_log().await?;
        }
        let system = self.inner().clone();
        let mut record = Vec::new();
        let mut ids: Vec<u64> = self.tables.iter().map(|table| table.id).collect();
        ids.sort_unstable();
        ids.dedup();
        encode(xid, &ids, &mut record);
        let Some(log) = &mut self.undo_log else { return Err(Error::RolledBack) };
        retry(|| log.prepare(&system.undo, &record)).await?;
        let end = system.store.redo().current();
        let has_changes = log.records > 0;
        self.rest();
        self.part_with_reading();
        if !has_changes {
            system.locks.release_all(&self.owner);
        }
        self.flush_to(end, durability).await
    }

    /// It may stay for days, and many may: what only a session needs goes. A read view has the ids of all
    /// that were active, and every slot for one is looked at again and again. A rollback, which reads, takes
    /// one again.
    fn part_with_reading(&mut self) {
        debug_assert!(!self.view_open, "a prepared transaction has no view");
        let creator = self.view.creator;
        self.give_slot_back();
        self.view = ReadView { creator, ..ReadView::default() };
        self.savepoints = Vec::new();
        (self.overlay, self.buffers) = (Overlay::default(), WriteBuffers::default());
    }

    /// Whether it is prepared.
    pub fn is_prepared(&self) -> bool {
        self.undo_log.as_ref().is_some_and(UndoLog::is_prepared)
    }

    /// Waits until the log is as durable as wanted, up to `end`.
    pub(crate) async fn flush_to(&self, end: pagestore::Lsn, durability: Durability) -> Result<(), Error> {
        let how = match durability {
            Durability::NoSync => return Ok(()),
            Durability::Write => Flush::Write,
            Durability::Sync => Flush::Sync,
        };
        let redo = self.inner().store.redo().clone();
        let step = || {
            redo.flush(end, how).map_err(|interrupt| match interrupt {
                redo::Interrupt::Wait(wait) => Interrupt::Wait(wait),
                redo::Interrupt::Error(error) => Interrupt::Error(error.into()),
            })
        };
        retry(step).await
    }
}

/// Makes a prepared log that a start has found a transaction again. Its id is active already.
pub(crate) async fn resurrect(
    system: &Arc<System>,
    tables: &Arc<dyn TableSource>,
    (found, mark, owner): (Unfinished, PreparedMark, Arc<Owner>),
) -> Result<RecoveredTransaction, Error> {
    let PreparedMark { records, end } = mark;
    let (xid, ids) = read(system, found, end).await?;
    let log = UndoLog::resurrect_prepared(found.slot, found.trx_id, found.header, end, records);
    let ids = match ids {
        Some(ids) => ids,
        None => survey(system, found).await?,
    };
    let mut holds: BTreeMap<u64, TableHold> = BTreeMap::new();
    for id in ids {
        // A table without its file is not known to be left alone until somebody has put it back: its name is
        // held all the same.
        holds.extend(tables.hold(id)?.map(|hold| (id, hold)));
    }
    owner.undo_records.store(records, std::sync::atomic::Ordering::Relaxed);
    let mut transaction = Transaction::new(&TransactionSystem(system.clone()));
    transaction.owner = owner;
    transaction.view.creator = log.trx_id;
    transaction.undo_log = Some(log);
    transaction.source = Some(tables.clone());
    transaction.begun = true;
    transaction.part_with_reading();
    transaction.holds = holds;
    Ok(RecoveredTransaction { xid, transaction })
}

async fn read(system: &System, log: Unfinished, at: Place) -> Result<(Xid, Option<Vec<u64>>), Error> {
    let step = || {
        let page = system.undo.read_page(at.page)?;
        let is_own = log.is_on(&page, at.page);
        let found = bytes_at(&page, usize::from(at.offset)).filter(|_| is_own).and_then(decode);
        found.ok_or_else(|| corrupt(at.page, "a prepared transaction has no name where one should be").into())
    };
    retry(step).await
}

/// The tables that a log is about.
async fn survey(system: &System, log: Unfinished) -> Result<Vec<u64>, Error> {
    let mut survey = Survey::new(log);
    while !survey.step(&system.undo).await? {}
    // Its own record is about no table.
    Ok(survey.tables.into_iter().filter(|id| *id != 0).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::undo::tests::store;

    /// Purge and every reader that ends look at all slots: those that are prepared, for days and by the
    /// thousands, are not among them, and one that is ended takes what waits.
    #[test]
    fn a_prepared_transaction_has_no_slot_for_a_view() {
        let (env, store) = store();
        env.run_until_complete(async {
            let opened = TransactionSystem::open(store, Options::new("/data/undo_001".into())).await;
            let system = opened.unwrap();
            let mut prepared = Vec::new();
            for number in 0_u32..100 {
                let mut transaction = Transaction::new(&system);
                transaction.begin();
                transaction.open_view();
                let xid = Xid::new(1, &number.to_be_bytes(), b"").unwrap();
                transaction.prepare(&xid, Durability::NoSync).await.unwrap();
                prepared.push(transaction);
            }
            assert_eq!(system.0.views.listed(), (1, 1));
            let mut ended = prepared.pop().unwrap();
            ended.rollback().await.unwrap();
            ended.begin();
            ended.open_view();
            assert_eq!(system.0.views.listed(), (1, 0));
            assert_eq!(ended.view.active.len(), prepared.len(), "their ids are active");
            ended.rollback().await.unwrap();
            for mut transaction in prepared {
                transaction.commit(Durability::NoSync).await.unwrap();
            }
        });
        env.shutdown();
    }

    #[test]
    fn a_name_comes_back_with_its_tables() {
        let xid = Xid::new(-7, &[0xFF; 64], b"").unwrap();
        let mut bytes = Vec::new();
        encode(&xid, &[1, 1 << 40], &mut bytes);
        assert_eq!(decode(&bytes), Some((xid.clone(), Some(vec![1, 1 << 40]))));
        let many: Vec<u64> = (0..=TABLES_MAX as u64).collect();
        encode(&xid, &many, &mut bytes);
        assert_eq!(decode(&bytes), Some((xid, None)));
        assert!(bytes.len() < 200, "fits the smallest page");
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None);
        }
    }
}
