//! Prepared transactions: who decides is outside, as a coordinator that commits in several databases or in
//! none.
//!
//! A name (XID) is **reserved** from the moment that somebody means to prepare under it (XA START), so that
//! two do not; then it is **prepared**, and while it is being committed or rolled back, **ending**, which is
//! as unknown to others. What the engine does with such a transaction is in `crates/txn/src/prepared.rs`.
//!
//! The transaction leaves its session when it is prepared. It takes its row locks along, and the uses of its
//! tables: definitions wait for it. After a start it uses the tables that it changed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use redo::Flush;
use txn::{Durability, RecoveredTransaction, Xid};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::retry::retry;
use crate::transaction::Transaction;

/// From this level on unfinished transactions stay as they are.
const FORCED_RECOVERY_LEAVES: u8 = 3;

/// What a name is by: two that differ in their format alone are not told apart, as in MySQL.
type Key = (Box<[u8]>, Box<[u8]>);

fn key(xid: &Xid) -> Key {
    (xid.gtrid().into(), xid.bqual().into())
}

enum Entry {
    Reserved,
    Prepared(Xid, Box<txn::Transaction>),
    Ending,
}

/// The names in use.
#[derive(Default)]
pub(crate) struct PreparedTransactions(Mutex<HashMap<Key, Entry>>);

impl PreparedTransactions {
    pub fn found(&self, found: Vec<RecoveredTransaction>) {
        let mut names = self.0.lock();
        for RecoveredTransaction { xid, transaction } in found {
            names.insert(key(&xid), Entry::Prepared(xid, Box::new(transaction)));
        }
    }

    fn set(&self, xid: Xid, transaction: Box<txn::Transaction>) {
        self.0.lock().insert(key(&xid), Entry::Prepared(xid, transaction));
    }
}

/// A name that nobody else can take, until it is dropped or prepared.
#[doc(hidden)]
pub struct XidReservation {
    names: Arc<PreparedTransactions>,
    xid: Xid,
}

impl XidReservation {
    /// The name.
    pub fn xid(&self) -> &Xid {
        &self.xid
    }
}

impl Drop for XidReservation {
    fn drop(&mut self) {
        let mut names = self.names.0.lock();
        if matches!(names.get(&key(&self.xid)), Some(Entry::Reserved)) {
            names.remove(&key(&self.xid));
        }
    }
}

/// A prepared transaction that is being ended. It stays prepared unless that has begun.
struct Ending<'d> {
    database: &'d Database,
    xid: Xid,
    transaction: Option<Box<txn::Transaction>>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let names = &self.database.0.prepared;
        match self.transaction.take() {
            Some(transaction) if transaction.is_prepared() => names.set(self.xid.clone(), transaction),
            ended => {
                // What is left of a rollback goes on in the background.
                drop(ended);
                names.0.lock().remove(&key(&self.xid));
            }
        }
    }
}

impl Database {
    /// The prepared transactions ([`Transaction::prepare`]) that nobody has committed or rolled back, also
    /// those from before the last start; in no order.
    pub fn prepared_transactions(&self) -> Vec<Xid> {
        let names = self.0.prepared.0.lock();
        let prepared = names.values().filter_map(|entry| match entry {
            Entry::Prepared(xid, _) => Some(xid.clone()),
            Entry::Reserved | Entry::Ending => None,
        });
        prepared.collect()
    }

    /// Commits a prepared transaction.
    ///
    /// **Dropped**, the future has left it prepared, or it is committed and what is missing is the wait for
    /// durability.
    ///
    /// # Errors
    /// [`Error::UnknownXid`] when there is no prepared transaction of this name (any more),
    /// [`Error::Closed`], [`Error::ForcedRecovery`] from level 3 on, a log that cannot be written.
    pub async fn commit_prepared(&self, xid: &Xid, durability: Durability) -> Result<()> {
        let mut ending = self.end_prepared(xid)?;
        let Some(transaction) = &mut ending.transaction else { return Ok(()) };
        Ok(transaction.commit(durability).await?)
    }

    /// Rolls back a prepared transaction, which is durable as a commit would be.
    ///
    /// **Dropped**, the future has left it prepared, or it is rolled back in the background.
    ///
    /// # Errors
    /// Those of [`Database::commit_prepared`]; storage errors, after which it is rolled back in the
    /// background.
    pub async fn rollback_prepared(&self, xid: &Xid, durability: Durability) -> Result<()> {
        let mut ending = self.end_prepared(xid)?;
        let Some(transaction) = &mut ending.transaction else { return Ok(()) };
        transaction.rollback().await?;
        drop(ending);
        let (redo, end) = (&self.0.redo, self.0.redo.current());
        match durability {
            Durability::NoSync => {}
            Durability::Write => retry(|| redo.flush(end, Flush::Write)).await?,
            Durability::Sync => retry(|| redo.flush(end, Flush::Sync)).await?,
        }
        Ok(())
    }

    fn end_prepared(&self, xid: &Xid) -> Result<Ending<'_>> {
        self.refuse_after_close()?;
        let mut names = self.0.prepared.0.lock();
        let entry = names.get_mut(&key(xid));
        match entry {
            Some(entry) if matches!(&*entry, Entry::Prepared(found, _) if found == xid) => {
                let level = self.0.forced_recovery.0;
                if level >= FORCED_RECOVERY_LEAVES {
                    return Err(Error::ForcedRecovery(level));
                }
                let Entry::Prepared(xid, transaction) = std::mem::replace(entry, Entry::Ending) else {
                    unreachable!("it was prepared")
                };
                Ok(Ending { database: self, xid, transaction: Some(transaction) })
            }
            _ => Err(Error::UnknownXid(xid.clone())),
        }
    }

    /// Takes a name for a transaction that is to be prepared.
    ///
    /// # Errors
    /// [`Error::XidInUse`].
    #[doc(hidden)]
    pub fn reserve_xid(&self, xid: &Xid) -> Result<XidReservation> {
        let names = self.0.prepared.clone();
        {
            let mut taken = names.0.lock();
            if taken.contains_key(&key(xid)) {
                return Err(Error::XidInUse(xid.clone()));
            }
            taken.insert(key(xid), Entry::Reserved);
        }
        Ok(XidReservation { names, xid: xid.clone() })
    }
}

/// A transaction that is being prepared. Once it is, it leaves its session.
struct Preparing<'t> {
    session: &'t mut Transaction,
    reservation: XidReservation,
}

impl Drop for Preparing<'_> {
    fn drop(&mut self) {
        if self.session.engine().is_prepared() {
            let transaction = self.session.detach();
            self.reservation.names.set(self.reservation.xid.clone(), Box::new(transaction));
        }
    }
}

impl Transaction {
    /// Prepares the transaction under this name: its changes survive a crash from now on, nobody sees them,
    /// and its row locks stay, until [`Database::commit_prepared`] or [`Database::rollback_prepared`] ends
    /// it, on whatever handle and after however many starts. This object is then free for another
    /// transaction.
    ///
    /// A transaction without changes is prepared as well, and lets go of its locks.
    ///
    /// **Dropped**, the future has not begun to prepare (the transaction goes on:
    /// [`Transaction::is_active`]), or it is prepared and what is missing is the wait for durability.
    ///
    /// # Errors
    /// [`Error::XidInUse`], a deadlock met before, [`txn::Error::TooManyTransactions`]: the transaction goes
    /// on. [`Error::Closed`], [`Error::ReadOnly`], storage errors.
    pub async fn prepare(&mut self, xid: &Xid, durability: Durability) -> Result<()> {
        let reservation = self.database().reserve_xid(xid)?;
        self.prepare_as(reservation, durability).await
    }

    /// As [`Transaction::prepare`], under a name taken before.
    #[doc(hidden)]
    pub async fn prepare_as(&mut self, reservation: XidReservation, durability: Durability) -> Result<()> {
        self.database().refuse_after_close()?;
        self.may_write()?;
        let xid = reservation.xid.clone();
        let preparing = Preparing { session: self, reservation };
        Ok(preparing.session.engine_mut().prepare(&xid, durability).await?)
    }
}
