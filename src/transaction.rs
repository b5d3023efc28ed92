//! A session's transaction, with the tables it uses.
//!
//! Wraps [`txn::Transaction`] and adds the metadata uses: a table that a transaction has touched stays as it
//! is until the transaction ends. What a commit waits for, and what a savepoint takes back, is decided below
//! (`crates/txn/src/transaction.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::Wait;
use txn::{Durability, Error as TransactionError, Isolation, Snapshot, UndoMark};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::metadata_deadlock::MetadataOwner;
use crate::metadata_lock::{
    Access, Blocked, ExclusiveRequest, MetadataExclusive, MetadataLock, MetadataReadLock, MetadataUse,
    ReadLockRequest,
};
use crate::session::{OwnSession, Session};
use crate::table::Table;
use crate::transact::Conflict;
use crate::view::ViewDef;
use crate::write::EncodedRow;

/// Why a table cannot be used right now.
pub enum NotUsable {
    /// DDL is at work on it: await this and try again.
    Wait(Wait),
    /// DDL has replaced it: look the table up again.
    Stale,
    /// It has no tablespace (DISCARD TABLESPACE).
    Discarded,
    /// Waiting for it would never end: those it would wait for wait for this transaction, which must be
    /// rolled back.
    Deadlock,
}

impl From<Blocked> for NotUsable {
    fn from(blocked: Blocked) -> NotUsable {
        match blocked {
            Blocked::Wait(wait) => NotUsable::Wait(wait),
            Blocked::Deadlock => NotUsable::Deadlock,
        }
    }
}

/// A reusable transaction object that runs one transaction at a time.
///
/// If it is dropped while its transaction has changes, they are rolled back in the background; row locks and
/// metadata locks last until that is done.
///
/// **Every future of it may be dropped at any await** (a timeout, a `select!`). An interrupted operation is
/// undone completely before the next operation or the commit starts. An interrupted `rollback` can only be
/// repeated. An interrupted `commit` either has not begun (the transaction continues:
/// [`Transaction::is_active`]) or is complete except for the wait for durability.
///
/// **A deadlock rolls back the whole transaction.** The operation that met it fails with
/// [`txn::Error::Deadlock`]; every further call, including `commit`, fails with [`txn::Error::RolledBack`]
/// until [`Transaction::rollback`] or [`Transaction::begin`].
#[must_use = "dropped without commit it is rolled back"]
pub struct Transaction {
    database: Database,
    session: OwnSession,
    /// Names of views whose definitions must stay as they are.
    view_uses: Vec<MetadataUse>,
    /// Tables held beyond the transaction (LOCK TABLES).
    held: Vec<TableLock>,
    /// It reads a snapshot.
    read_only: bool,
    /// When it began, if it is timed.
    began: Option<Instant>,
    /// How the last operation failed, if that is why the transaction should be run again.
    conflict: Option<Conflict>,
    /// Foreign keys are not enforced.
    ignores_foreign_keys: bool,
}

/// A table held by a session until it releases it, as LOCK TABLES does.
pub struct TableLock {
    metadata: Arc<MetadataLock>,
    hold: Hold,
}

enum Hold {
    /// Others may read.
    Read { _lock: MetadataReadLock },
    /// Nobody else.
    Write(MetadataExclusive),
}

/// A request for a table lock. From its beginning, new conflicting uses wait.
pub struct TableLockRequest {
    table: Arc<Table>,
    request: Request,
}

enum Request {
    Read(ReadLockRequest),
    Write(ExclusiveRequest),
}

impl TableLockRequest {
    /// Requests the table for reading (`Access::Read`: others may read too) or exclusively.
    pub fn new(session: &Transaction, table: &Arc<Table>, access: Access) -> TableLockRequest {
        let owner = &session.session.owner;
        let request = match access {
            Access::Read => Request::Read(table.metadata.request_read_lock(owner)),
            Access::Write => Request::Write(table.metadata.request_exclusive(owner)),
        };
        TableLockRequest { table: table.clone(), request }
    }

    /// Takes the lock once conflicting uses have ended. The session itself must not use the table.
    pub fn grant(&mut self) -> std::result::Result<TableLock, NotUsable> {
        let hold = match &mut self.request {
            Request::Read(request) => Hold::Read { _lock: request.grant()? },
            Request::Write(request) => Hold::Write(request.grant(0)?),
        };
        if !self.table.is_current() {
            return Err(NotUsable::Stale);
        }
        if self.table.def.discarded {
            return Err(NotUsable::Discarded);
        }
        Ok(TableLock { metadata: self.table.metadata.clone(), hold })
    }
}

/// Whether a table that is protected from DDL may be used.
pub(crate) fn usable(table: &Table) -> std::result::Result<(), NotUsable> {
    match (table.is_current(), table.def.discarded) {
        (false, _) => Err(NotUsable::Stale),
        (true, true) => Err(NotUsable::Discarded),
        (true, false) => Ok(()),
    }
}

impl Database {
    /// A transaction object, with no transaction begun.
    pub fn transaction(&self) -> Transaction {
        let session = self.0.resting.take().unwrap_or_else(|| {
            let inner = txn::Transaction::new(&self.0.system);
            let owner = self.0.tables.graph.owner_of(inner.row_owner());
            OwnSession::new(Session::new(inner, owner))
        });
        Transaction {
            database: self.clone(),
            session,
            view_uses: Vec::new(),
            held: Vec::new(),
            read_only: false,
            began: None,
            conflict: None,
            ignores_foreign_keys: false,
        }
    }

    /// Begins a transaction, REPEATABLE READ.
    pub fn begin(&self) -> Transaction {
        self.begin_at(Isolation::RepeatableRead)
    }

    /// Begins a transaction of this isolation level.
    pub fn begin_at(&self, isolation: Isolation) -> Transaction {
        let mut transaction = self.transaction();
        transaction.session.inner.set_isolation(isolation);
        transaction.begin();
        transaction
    }

    /// This moment, to be read by any number of transactions: what is committed from now on is not in it. Old
    /// row versions are kept for as long as it lives.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.0.system)
    }

    /// Begins a transaction that reads a snapshot of this database. It is read-only and takes no locks:
    /// [`Error::ReadOnly`].
    ///
    /// # Errors
    /// [`Error::Setting`] for a snapshot of another database.
    pub fn begin_in(&self, snapshot: &Snapshot) -> Result<Transaction> {
        let mut transaction = self.transaction();
        if !transaction.session.inner.begin_in(snapshot) {
            let why = "it belongs to another database".to_owned();
            return Err(Error::Setting { setting: "snapshot", why });
        }
        transaction.read_only = true;
        Ok(transaction)
    }

    /// A transaction that works on behalf of a session: it is charged to that session's time slice, and a
    /// kill of the session ends it.
    pub(crate) fn transaction_for(&self, session: Option<&Transaction>) -> Transaction {
        let mut transaction = self.transaction();
        if let Some(session) = session {
            transaction.session.inner.share_slice(session.session.inner.slice());
        }
        transaction
    }
}

impl Transaction {
    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The engine's transaction: scans, row changes, isolation.
    #[doc(hidden)]
    pub fn engine_mut(&mut self) -> &mut txn::Transaction {
        &mut self.session.inner
    }

    /// Whether somebody wants to know what it commits.
    #[inline]
    pub(crate) fn has_feeds(&self) -> bool {
        self.database.0.tables.feeds.any()
    }

    /// The buffer for the key of a read, and the engine's transaction.
    pub(crate) fn reading(&mut self) -> (&mut EncodedRow, &mut txn::Transaction) {
        let session = &mut *self.session;
        (&mut session.key, &mut session.inner)
    }

    /// Whether the table is in use by this transaction, as it is, and no definition of its own is at work.
    #[inline]
    pub(crate) fn uses_already(&self, table: &Arc<Table>) -> bool {
        self.session.uses.iter().any(|(used, _)| Arc::ptr_eq(used, table))
            && !self.session.owner.has_definitions()
            && usable(table).is_ok()
    }

    /// As [`Self::uses_already`], or the table is now, because there was nothing to wait for.
    #[inline]
    pub(crate) fn uses_at_once(&mut self, table: &Arc<Table>) -> bool {
        if self.session.uses.iter().any(|(used, _)| Arc::ptr_eq(used, table)) {
            return self.uses_already(table);
        }
        // What the session holds beyond the transaction is looked at by who can wait for it.
        let may_begin = self.held.is_empty() && self.database.owns(table);
        may_begin && self.session.use_at_once(table)
    }

    /// It is a session's of this number, which lists of sessions show.
    #[doc(hidden)]
    pub fn set_session(&mut self, number: u64) {
        self.session.inner.set_tag(number);
        self.database.0.tables.graph.list(&self.session.owner);
    }

    /// The engine's transaction, to look at.
    #[doc(hidden)]
    pub fn engine(&self) -> &txn::Transaction {
        &self.session.inner
    }

    /// Uses a table until the end of the transaction, to read and change its rows.
    pub fn use_table(&mut self, table: &Arc<Table>) -> std::result::Result<(), NotUsable> {
        self.use_table_for(table, Access::Write)
    }

    /// Uses a table until the end of the transaction. Costs nothing if this transaction already uses it or
    /// its session holds it.
    #[inline]
    pub fn use_table_for(
        &mut self,
        table: &Arc<Table>,
        access: Access,
    ) -> std::result::Result<(), NotUsable> {
        let session = &mut *self.session;
        if let Some((_, used)) = session.uses.iter_mut().find(|(used, _)| Arc::ptr_eq(used, table)) {
            // Only DDL of this very session can be replacing it, or have done so.
            if session.owner.has_definitions() {
                table.metadata.not_being_changed().map_err(NotUsable::Wait)?;
            }
            usable(table)?;
            return match access {
                Access::Read => Ok(()),
                Access::Write => used.upgrade().map_err(NotUsable::from),
            };
        }
        let mut held = self.held.iter();
        if let Some(held) = held.find(|held| Arc::ptr_eq(&held.metadata, &table.metadata)) {
            if let Hold::Write(lock) = &held.hold {
                lock.is_back().map_err(NotUsable::Wait)?;
            }
            return usable(table);
        }
        let metadata_use = table.metadata.share(access, &self.session.owner)?;
        usable(table)?;
        self.session.uses.push((table.clone(), metadata_use));
        Ok(())
    }

    /// Uses a view until the end of the transaction: nobody replaces or drops it.
    pub fn use_view(
        &mut self,
        database: &str,
        name: &str,
        def: &Arc<ViewDef>,
    ) -> std::result::Result<(), NotUsable> {
        let lock = self.database.name_lock(database, name);
        if !self.view_uses.iter().any(|used| used.is_of(&lock)) {
            self.view_uses.push(lock.share(Access::Read, &self.session.owner)?);
        }
        let current = self.database.view(database, name);
        if current.is_some_and(|current| Arc::ptr_eq(&current, def)) { Ok(()) } else { Err(NotUsable::Stale) }
    }

    /// Looks a table up and uses it, waiting up to `timeout` for DDL.
    ///
    /// # Errors
    /// No such table, or [`Error::MetadataLockTimeout`].
    pub async fn open_table(&mut self, database: &str, name: &str, timeout: Duration) -> Result<Arc<Table>> {
        self.conflict = None;
        let environment = self.database.environment().clone();
        let deadline = environment.now().saturating_add(timeout);
        loop {
            let table = self.database.table(database, name)?;
            match self.use_table(&table) {
                Ok(()) => return Ok(table),
                Err(NotUsable::Stale) => {}
                Err(NotUsable::Discarded) => return Err(table.discarded_error()),
                Err(NotUsable::Wait(wait)) => {
                    let slice = self.engine().slice().clone();
                    let waited =
                        crate::metadata_lock_wait::wait_until(&*environment, wait, deadline, Some(&slice))
                            .await;
                    waited.map_err(|error| self.failed(error))?;
                }
                Err(NotUsable::Deadlock) => {
                    let ending = Ending(self);
                    ending.0.session.inner.roll_back_as_victim().await?;
                    return Err(ending.0.failed(Error::Transaction(TransactionError::Deadlock)));
                }
            }
        }
    }

    /// In whose name it takes metadata locks.
    pub(crate) fn metadata_owner(&self) -> &Arc<MetadataOwner> {
        &self.session.owner
    }

    /// How many uses of this name the transaction holds (for DDL of the same session).
    pub(crate) fn uses_of(&self, lock: &Arc<MetadataLock>) -> u32 {
        let views = self.view_uses.iter().filter(|used| used.is_of(lock)).count();
        (self.session.uses.iter().filter(|(_, used)| used.is_of(lock)).count() + views) as u32
    }

    /// Holds a table from now on, beyond the end of transactions.
    pub fn hold_table(&mut self, lock: TableLock) {
        self.held.push(lock);
    }

    /// Lets go of all tables that are held.
    pub fn release_tables(&mut self) {
        self.held.clear();
    }

    /// The session's hold of a name that it has for itself.
    pub(crate) fn exclusive_hold(&self, lock: &Arc<MetadataLock>) -> Option<&MetadataExclusive> {
        let same = |held: &&TableLock| Arc::ptr_eq(&held.metadata, lock);
        self.held.iter().filter(same).find_map(|held| match &held.hold {
            Hold::Write(lock) => Some(lock),
            Hold::Read { .. } => None,
        })
    }

    /// What the last operation met, if the transaction should be run again for it.
    pub(crate) fn conflict(&self) -> Option<Conflict> {
        self.conflict
    }

    /// An operation begins: nothing has failed yet.
    pub(crate) fn forget_conflict(&mut self) {
        self.conflict = None;
    }

    /// Remembers how an operation has failed.
    pub(crate) fn failed(&mut self, error: Error) -> Error {
        self.conflict = error.conflict();
        error
    }

    /// [`Error::ReadOnly`] where nothing may be changed or locked.
    pub(crate) fn may_write(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Begins a transaction that lasts until commit or rollback.
    pub fn begin(&mut self) {
        self.read_only = false;
        self.conflict = None;
        self.began = self.database.0.transaction_times.begin();
        self.session.inner.begin();
    }

    /// Whether reads lock what they read: SERIALIZABLE, in a transaction of more than one statement.
    #[inline]
    pub fn reads_lock(&self) -> bool {
        self.session.inner.isolation() == Isolation::Serializable && self.session.inner.is_active()
    }

    /// Whether a transaction has begun.
    pub fn is_active(&self) -> bool {
        self.session.inner.is_active()
    }

    /// Where the transaction is now, to roll a statement back to.
    #[doc(hidden)]
    pub fn statement_mark(&self) -> UndoMark {
        self.session.inner.statement_mark()
    }

    /// How long an operation waits for a row or a table that another transaction keeps, from now on:
    /// [`Options::lock_wait_timeout`](crate::Options::lock_wait_timeout) unless set here.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.session.inner.set_lock_wait_timeout(timeout);
    }

    /// Whether foreign keys are enforced from now on (`foreign_key_checks`): rows are checked, and cascades
    /// follow. Without it rows may be written in any order, as a dump is loaded; nobody looks at them later.
    /// It also holds for definitions in the name of this transaction
    /// ([`Definitions::session`](crate::asynchronous::Definitions::session)): a parent may be missing, or be
    /// dropped.
    pub fn set_foreign_key_checks(&mut self, enforced: bool) {
        self.ignores_foreign_keys = !enforced;
    }

    /// Whether foreign keys are enforced; they are by default.
    pub fn foreign_key_checks(&self) -> bool {
        !self.ignores_foreign_keys
    }

    /// Sets a savepoint; one of the same name is replaced.
    pub fn savepoint(&mut self, name: &str) {
        self.session.inner.savepoint(name);
    }

    /// Undoes everything since the savepoint; false if there is none of that name.
    ///
    /// **Dropped**, the future leaves it to the next operation of the transaction, or its end.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn rollback_to_savepoint(&mut self, name: &str) -> Result<bool> {
        Ok(self.session.inner.rollback_to_savepoint(name).await?)
    }

    /// Commits, and ends the uses of tables. When it fails before anything is committed the transaction goes
    /// on.
    ///
    /// **Dropped**, the future has not begun to commit (the transaction goes on: [`Transaction::is_active`]),
    /// or is complete but for the wait for durability.
    ///
    /// # Errors
    /// A deadlock met before, [`Error::Closed`], or a log that cannot be written.
    pub async fn commit(&mut self, durability: Durability) -> Result<()> {
        self.database.refuse_after_close()?;
        let ending = Ending(self);
        ending.0.session.inner.commit(durability).await.map_err(Error::Transaction)?;
        ending.0.committed();
        Ok(())
    }

    /// Commits in the calling thread, which leads the log write itself when the log is idle.
    #[doc(hidden)]
    pub fn commit_blocking(&mut self, durability: Durability) -> Result<()> {
        self.database.refuse_after_close()?;
        let ending = Ending(self);
        ending.0.session.inner.commit_blocking(durability).map_err(Error::Transaction)?;
        ending.0.committed();
        Ok(())
    }

    fn committed(&mut self) {
        self.database.0.transaction_times.committed(self.began.take());
    }

    /// Rolls back, and ends the uses of tables. When it fails everything stays as it is: repeat it, or drop
    /// the transaction, which leaves it to the background.
    ///
    /// **Dropped**, the future can only be repeated.
    ///
    /// # Errors
    /// Storage errors, [`Error::Closed`].
    pub async fn rollback(&mut self) -> Result<()> {
        self.database.refuse_after_close()?;
        let ending = Ending(self);
        ending.0.session.inner.rollback().await.map_err(Error::Transaction)
    }

    /// Undoes what was done since the mark (a failed statement).
    #[doc(hidden)]
    pub async fn rollback_to(&mut self, mark: UndoMark) -> Result<()> {
        self.session.inner.rollback_to(mark).await.map_err(Error::Transaction)
    }

    /// Parts with the transaction that it has prepared, and is as new.
    pub(crate) fn detach(&mut self) -> txn::Transaction {
        let mut fresh = txn::Transaction::new(&self.database.0.system);
        fresh.set_isolation(self.session.inner.isolation());
        fresh.set_lock_wait_timeout(self.session.inner.lock_wait_timeout());
        fresh.share_slice(self.session.inner.slice());
        fresh.set_tag(self.session.inner.row_owner().tag());
        let mut prepared = std::mem::replace(&mut self.session.inner, fresh);
        // It is of the owner that goes.
        self.session.last = None;
        self.session.owner = self.database.0.tables.graph.owner_of(self.session.inner.row_owner());
        // It has no session any more.
        prepared.set_tag(0);
        let uses = (std::mem::take(&mut self.session.uses), std::mem::take(&mut self.view_uses));
        prepared.keep_for_rollback(Box::new(uses));
        prepared
    }

    /// Ends the uses of tables if nothing left of the transaction needs them.
    pub(crate) fn release_ended(&mut self) {
        if !self.session.inner.has_log() && !self.session.inner.is_active() {
            self.session.end_uses();
            self.view_uses.clear();
            self.began = None;
        }
    }
}

/// An end under way. Whether it succeeds, fails or is dropped: the uses of tables end with the transaction.
struct Ending<'t>(&'t mut Transaction);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.release_ended();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.session.inner.has_log() {
            // It is rolled back in the background: until then the tables are still being changed.
            let uses = (std::mem::take(&mut self.session.uses), std::mem::take(&mut self.view_uses));
            let kept = (uses, std::mem::take(&mut self.held));
            self.session.inner.keep_for_rollback(Box::new(kept));
        }
        // Before the names that it holds: row locks and the view end first.
        if let Some(session) = self.session.take() {
            self.database.0.resting.give(session);
        }
    }
}
