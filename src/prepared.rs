//! Prepared transactions: who decides is outside, as a coordinator that commits in several databases or in
//! none.
//!
//! A name (XID) is **reserved** from the moment that somebody means to prepare under it (XA START), so that
//! two do not; then it is **prepared**, and while it is being committed or rolled back, **ending**. What the
//! engine does with such a transaction is in `crates/txn/src/prepared.rs`.
//!
//! A coordinator takes "unknown" for an answer: it forgets what it has decided, as that must have been done
//! by an earlier try. So a name is unknown only when its end is durable. Who asks for one that is ending
//! waits, as for a row lock: it may yet stay prepared.
//!
//! The transaction leaves its session when it is prepared. It takes its row locks along, and the uses of its
//! tables: definitions wait for it. After a start it uses the tables that it changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use disk::{Event, Wait};
use parking_lot::Mutex;
use redo::Flush;
use txn::{Durability, PREPARED_MAX, RecoveredTransaction, TimeSlice, Xid};

use crate::changes::set_aside;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::metadata_lock_wait::wait_until;
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
    /// Set when it has ended, or is prepared as before.
    Ending(Event),
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

    /// The ids of those that have changed nothing, ascending.
    pub fn without_changes(&self) -> Vec<u64> {
        let names = self.0.lock();
        let ids = names.values().filter_map(|entry| match entry {
            Entry::Prepared(_, transaction) if !transaction.has_changes() => transaction.id(),
            _ => None,
        });
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        ids
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
    /// Others wait for it.
    over: Event,
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
        self.over.set();
    }
}

/// How long somebody waits for another who ends the same prepared transaction.
#[doc(hidden)]
pub struct Patience {
    /// `innodb_lock_wait_timeout`.
    pub timeout: Duration,
    /// That of the session, a kill of which ends the wait.
    pub slice: Option<Arc<TimeSlice>>,
}

/// What becomes of an attempt to end a prepared transaction.
enum End<'d> {
    Begun(Ending<'d>),
    /// Another is at it.
    Another(Event),
    Unknown,
}

impl Database {
    /// The prepared transactions ([`Transaction::prepare`]) that nobody has committed or rolled back, also
    /// those from before the last start; in no order.
    pub fn prepared_transactions(&self) -> Vec<Xid> {
        let names = self.0.prepared.0.lock();
        let prepared = names.values().filter_map(|entry| match entry {
            Entry::Prepared(xid, _) => Some(xid.clone()),
            Entry::Reserved | Entry::Ending(_) => None,
        });
        prepared.collect()
    }

    /// Whether there is a prepared transaction of this name, or one that is being ended.
    #[doc(hidden)]
    pub fn may_be_prepared(&self, xid: &Xid) -> bool {
        match self.0.prepared.0.lock().get(&key(xid)) {
            Some(Entry::Prepared(found, _)) => found == xid,
            Some(Entry::Ending(_)) => true,
            Some(Entry::Reserved) | None => false,
        }
    }

    /// Says that the name is unknown, once that is durable. Should the log fail, it says so instead.
    #[doc(hidden)]
    pub async fn unknown_xid(&self, xid: &Xid) -> Error {
        let (redo, end) = (&self.0.redo, self.0.redo.current());
        match retry(|| redo.flush(end, Flush::Sync)).await {
            Ok(()) => Error::UnknownXid(xid.clone()),
            Err(error) => error,
        }
    }

    /// Commits a prepared transaction. Waits for another call that ends it, which may yet fail.
    ///
    /// **Dropped**, the future has left it prepared, or it is committed and what is missing is the wait for
    /// durability.
    ///
    /// # Errors
    /// [`Error::UnknownXid`] when there is no prepared transaction of this name (any more; its end is durable
    /// then), [`txn::Error::LockWaitTimeout`] when another call has not ended it after
    /// [`Options::lock_wait_timeout`](crate::Options::lock_wait_timeout), [`Error::Closed`],
    /// [`Error::ForcedRecovery`] from level 3 on, a log that cannot be written.
    pub async fn commit_prepared(&self, xid: &Xid, durability: Durability) -> Result<()> {
        self.commit_prepared_for(xid, durability, self.patience()).await
    }

    /// The same for somebody who has this much `patience` with another call.
    #[doc(hidden)]
    pub async fn commit_prepared_for(
        &self,
        xid: &Xid,
        durability: Durability,
        patience: Patience,
    ) -> Result<()> {
        let mut ending = self.end_prepared(xid, patience).await?;
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
        self.rollback_prepared_for(xid, durability, self.patience()).await
    }

    /// The same for somebody who has this much `patience` with another call.
    #[doc(hidden)]
    pub async fn rollback_prepared_for(
        &self,
        xid: &Xid,
        durability: Durability,
        patience: Patience,
    ) -> Result<()> {
        let mut ending = self.end_prepared(xid, patience).await?;
        let Some(transaction) = &mut ending.transaction else { return Ok(()) };
        transaction.rollback().await?;
        let (redo, end) = (&self.0.redo, self.0.redo.current());
        match durability {
            Durability::NoSync => {}
            Durability::Write => retry(|| redo.flush(end, Flush::Write)).await?,
            Durability::Sync => retry(|| redo.flush(end, Flush::Sync)).await?,
        }
        Ok(())
    }

    fn patience(&self) -> Patience {
        Patience { timeout: self.0.system.lock_wait_timeout(), slice: None }
    }

    async fn end_prepared(&self, xid: &Xid, patience: Patience) -> Result<Ending<'_>> {
        let environment = self.environment();
        let mut deadline = None;
        loop {
            self.refuse_after_close()?;
            match self.try_end_prepared(xid)? {
                End::Begun(ending) => return Ok(ending),
                End::Another(over) => {
                    let from_now = || environment.now().saturating_add(patience.timeout);
                    let until = *deadline.get_or_insert_with(from_now);
                    let waited =
                        wait_until(&**environment, Wait::new(over), until, patience.slice.as_deref());
                    waited.await.map_err(|error| match error {
                        Error::MetadataLockTimeout => txn::Error::LockWaitTimeout.into(),
                        other => other,
                    })?;
                }
                End::Unknown => return Err(self.unknown_xid(xid).await),
            }
        }
    }

    fn try_end_prepared(&self, xid: &Xid) -> Result<End<'_>> {
        let mut names = self.0.prepared.0.lock();
        let entry = match names.get_mut(&key(xid)) {
            Some(Entry::Ending(over)) => return Ok(End::Another(over.clone())),
            Some(entry) if matches!(&*entry, Entry::Prepared(found, _) if found == xid) => entry,
            _ => return Ok(End::Unknown),
        };
        let level = self.0.forced_recovery.0;
        if level >= FORCED_RECOVERY_LEAVES {
            return Err(Error::ForcedRecovery(level));
        }
        let over = Event::new();
        let Entry::Prepared(xid, transaction) = std::mem::replace(entry, Entry::Ending(over.clone())) else {
            unreachable!("it was prepared")
        };
        Ok(End::Begun(Ending { database: self, xid, over, transaction: Some(transaction) }))
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
            set_aside(self.session);
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
    /// on. [`Error::Closed`], [`Error::ReadOnly`]. After a storage error it goes on as well if it is still
    /// active; if not it is prepared ([`Database::prepared_transactions`] has it), and when the log could not
    /// be made durable, only the next start tells whether it stays so.
    pub async fn prepare(&mut self, xid: &Xid, durability: Durability) -> Result<()> {
        let reservation = self.database().reserve_xid(xid)?;
        self.prepare_as(reservation, durability).await
    }

    /// As [`Transaction::prepare`], under a name taken before.
    #[doc(hidden)]
    pub async fn prepare_as(&mut self, reservation: XidReservation, durability: Durability) -> Result<()> {
        self.database().refuse_after_close()?;
        self.may_write()?;
        // The names include those of transactions that are not prepared yet, which have undo slots as well.
        if reservation.names.0.lock().len() > PREPARED_MAX {
            return Err(txn::Error::TooManyTransactions(PREPARED_MAX).into());
        }
        let xid = reservation.xid.clone();
        let preparing = Preparing { session: self, reservation };
        Ok(preparing.session.engine_mut().prepare(&xid, durability).await?)
    }
}
