//! One transaction at a time per session.
//!
//! A [`Transaction`] costs nothing until it is used: the read view comes with the first consistent read, id
//! and undo slot with the first change. The object is reused from one transaction to the next without
//! allocation.
//!
//! **Any future may be dropped at any await.** An operation marks where it began (`unfinished`) and takes the
//! mark away when it has ended; what follows first undoes all after a mark that is still there. So half an
//! operation is never read on, built on or committed. What an operation holds besides, a guard gives back: a
//! commit number, a wait for a lock, a pin of purge. Locks stay, as after a statement that failed.
//!
//! A deadlock takes the whole transaction back. It says so to the operation that closed the circle, and once
//! more ([`Error::RolledBack`]) to everything that follows until `rollback` or `begin`: a caller who went on
//! would commit half of what it meant to.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use btree::SavedPosition;
use pagestore::Lsn;
use redo::Flush;
use smallvec::SmallVec;

use crate::commit_observer::{CommitObserver, Committed};
use crate::error::{Error, Interrupt};
use crate::lock::{LockWait, Owner, Release, RowOwner};
use crate::read_view::{OwnViewSlot, ReadView, slot_of};
use crate::retry::{retry, yield_now};
use crate::rollback::{self, Abandoned};
use crate::row::WriteBuffers;
use crate::shared_snapshot::Snapshot;
use crate::statement_counts::Counts;
use crate::system::{Counters, System, TransactionSystem};
use crate::table::{Table, TableHold, TableSource};
use crate::time_slice::TimeSlice;
use crate::undo::UndoLog;
use crate::undo::directory::SLOTS_MAX;
use crate::undo::log::LogMark;
use crate::version::{Overlay, Shown};

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Consistent reads see the newest version, committed or not.
    ReadUncommitted,
    /// A read view per statement; no gap locks.
    ReadCommitted,
    /// One read view per transaction; next-key locks.
    #[default]
    RepeatableRead,
    /// As REPEATABLE READ, and reads inside a transaction lock what they read (shared), in the crate and in
    /// SQL.
    Serializable,
}

impl Isolation {
    /// Whether locking scans lock records without their gaps.
    pub(crate) fn locks_records_only(self) -> bool {
        matches!(self, Isolation::ReadUncommitted | Isolation::ReadCommitted)
    }
}

/// How durable a commit is when it returns (`innodb_flush_log_at_trx_commit` 0, 2, 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// In the log buffer; lost when the process ends.
    NoSync,
    /// Handed to the operating system.
    Write,
    /// On the device.
    #[default]
    Sync,
}

/// A place in a transaction's undo log to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoMark(pub(crate) LogMark);

impl UndoMark {
    /// The start of the transaction.
    pub(crate) const START: UndoMark = UndoMark(LogMark { records: 0, end: None });
}

/// Interrupts what a transaction waits for, from another thread.
#[derive(Clone)]
pub struct KillHandle {
    system: Arc<System>,
    pub(crate) owner: Arc<Owner>,
    slice: Arc<TimeSlice>,
}

impl KillHandle {
    /// A row lock wait that is going on, or the next one, ends with [`Error::Killed`]; long work stops.
    pub fn kill(&self) {
        self.slice.stop();
        self.owner.killed.store(true, Ordering::SeqCst);
        self.system.locks.abort_wait(&self.owner, crate::lock::WaitState::Killed);
    }
}

/// A session's transaction: reusable, one at a time. Dropped while active, it is rolled back in the
/// background.
#[must_use = "dropped without commit it is rolled back"]
pub struct Transaction {
    pub(crate) system: TransactionSystem,
    pub(crate) owner: Arc<Owner>,
    /// From its first view on; none while it is prepared.
    pub(crate) slot: Option<OwnViewSlot>,
    pub(crate) view: ReadView,
    pub(crate) view_open: bool,
    pub(crate) isolation: Isolation,
    pub(crate) begun: bool,
    lock_wait_timeout: Duration,
    /// Where its undo slots come from first.
    undo_home: u16,
    pub(crate) undo_log: Option<UndoLog>,
    /// Tables changed, for rollback.
    pub(crate) tables: SmallVec<[Arc<Table>; 4]>,
    /// Knows them where a start has found the transaction.
    pub(crate) source: Option<Arc<dyn TableSource>>,
    /// And holds these then, by their ids.
    pub(crate) holds: BTreeMap<u64, TableHold>,
    pub(crate) savepoints: Vec<(String, UndoMark)>,
    /// Where the operation under way began. Still there when another one begins, its future was dropped.
    unfinished: Option<UndoMark>,
    /// Rolled back (or about to be) without the caller's `rollback` having been heard of.
    pub(crate) rolled_back: bool,
    /// See [`Transaction::keep_for_rollback`].
    pub(crate) kept: Option<Kept>,
    /// Who is told of the commit.
    observer: Option<Box<dyn CommitObserver>>,
    pub(crate) overlay: Overlay,
    /// See [`Self::take_seen`].
    pub(crate) seen: SavedPosition,
    pub(crate) buffers: WriteBuffers,
    pub(crate) counts: Counts,
    slice: Arc<TimeSlice>,
}

/// What must last as long as an abandoned transaction, opaque to this crate.
pub(crate) type Kept = Box<dyn Any + Send + Sync>;

impl Transaction {
    /// A session's transaction object. REPEATABLE READ, not begun.
    pub fn new(system: &TransactionSystem) -> Transaction {
        Transaction {
            system: system.clone(),
            owner: Arc::new(Owner::default()),
            slot: None,
            view: ReadView::default(),
            view_open: false,
            isolation: Isolation::default(),
            begun: false,
            lock_wait_timeout: system.0.options.lock_wait_timeout,
            undo_home: system.0.undo.free.choose_home(),
            undo_log: None,
            tables: SmallVec::new(),
            source: None,
            holds: BTreeMap::new(),
            savepoints: Vec::new(),
            unfinished: None,
            rolled_back: false,
            kept: None,
            observer: None,
            overlay: Overlay::default(),
            seen: SavedPosition::default(),
            buffers: WriteBuffers::default(),
            counts: Counts::default(),
            slice: Arc::new(TimeSlice::new(system.0.env.clone())),
        }
    }

    /// How long the session has kept its thread; its work that is no scan is to be counted here too.
    pub fn slice(&self) -> &Arc<TimeSlice> {
        &self.slice
    }

    /// Works on behalf of another session from now on: counts to its slice, and stops with it.
    pub fn share_slice(&mut self, slice: &Arc<TimeSlice>) {
        self.slice = slice.clone();
    }

    /// The system.
    pub fn system(&self) -> &TransactionSystem {
        &self.system
    }

    pub(crate) fn inner(&self) -> &Arc<System> {
        &self.system.0
    }

    /// Isolation of what comes next; takes effect at once, so set it between transactions.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
        self.owner.record_locks_only.store(isolation.locks_records_only(), Ordering::Relaxed);
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How long a row lock may be waited for (`innodb_lock_wait_timeout`).
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    /// How long a row lock may be waited for.
    pub fn lock_wait_timeout(&self) -> Duration {
        self.lock_wait_timeout
    }

    /// A number shown with this transaction (the connection id).
    pub fn set_tag(&mut self, tag: u64) {
        self.owner.tag.store(tag, Ordering::Relaxed);
    }

    /// Its session in the lock table.
    pub fn row_owner(&self) -> RowOwner {
        RowOwner(self.owner.clone())
    }

    /// A handle to kill it with.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle { system: self.system.0.clone(), owner: self.owner.clone(), slice: self.slice.clone() }
    }

    /// Forgets an earlier kill (start of the next statement).
    pub fn clear_kill(&mut self) {
        self.slice.forget_stop();
        self.owner.killed.store(false, Ordering::SeqCst);
    }

    /// Fails when the transaction was killed.
    pub(crate) fn check_killed(&self) -> Result<(), Error> {
        let killed = self.owner.killed.load(Ordering::Relaxed) || self.slice.is_stopped();
        if killed { Err(Error::Killed) } else { Ok(()) }
    }

    /// Starts a transaction that lasts to [`Transaction::commit`] or [`Transaction::rollback`]. Without it
    /// every statement must be ended by one of them (autocommit). Costs nothing: an id is taken at the first
    /// change.
    pub fn begin(&mut self) {
        let ended = !self.begun && self.undo_log.is_none();
        debug_assert!(ended || self.unfinished.is_some(), "the transaction before has not ended");
        self.close_view();
        self.savepoints.clear();
        self.begun = true;
        self.rolled_back = false;
    }

    /// As `begin`, if that has not been called, and opens the read view now (WITH CONSISTENT SNAPSHOT; only
    /// under REPEATABLE READ).
    pub fn begin_with_snapshot(&mut self) {
        if !self.begun {
            self.begin();
        }
        if self.isolation == Isolation::RepeatableRead {
            self.open_view();
        }
    }

    /// As `begin`, REPEATABLE READ, with the read view of a moment that has passed. False, and nothing is
    /// begun, if it is a moment of another database.
    #[must_use]
    pub fn begin_in(&mut self, snapshot: &Snapshot) -> bool {
        if !snapshot.is_of(&self.system) {
            return false;
        }
        self.begin();
        self.set_isolation(Isolation::RepeatableRead);
        self.view_open = true;
        let slot = slot_of(&mut self.slot, &mut self.view, &self.system.0.views);
        snapshot.copy_to(&mut self.view, slot);
        true
    }

    /// Whether `begin` was called and neither commit nor rollback (a deadlock rolls back) since.
    pub fn is_active(&self) -> bool {
        self.begun
    }

    /// Who is told of this transaction's commit; gone when the transaction has ended.
    pub fn observer(&mut self) -> &mut Option<Box<dyn CommitObserver>> {
        &mut self.observer
    }

    /// How many undo records stand before the next change.
    #[inline]
    pub fn undo_records(&self) -> u64 {
        match &self.unfinished {
            // What stands after an operation that was cut will be undone.
            Some(mark) => mark.0.records,
            None => self.undo_log.as_ref().map_or(0, |log| log.records),
        }
    }

    /// Whether it changed something.
    pub fn has_changes(&self) -> bool {
        self.undo_log.as_ref().is_some_and(|log| log.records > 0)
    }

    /// Its id, if it has one.
    pub fn id(&self) -> Option<u64> {
        self.undo_log.as_ref().map(|log| log.trx_id)
    }

    /// Where the last locking read by a whole key found its row; for the change that often follows at once.
    pub(crate) fn take_seen(&mut self) -> Option<SavedPosition> {
        self.seen.is_set().then(|| std::mem::take(&mut self.seen))
    }

    /// What reading needs, borrowed apart.
    pub(crate) fn reading(&mut self) -> (&System, Shown<'_>, &mut Overlay) {
        let shown = match self.isolation {
            Isolation::ReadUncommitted => Shown::Uncommitted(&self.view),
            _ => Shown::Seen(&self.view),
        };
        (&self.system.0, shown, &mut self.overlay)
    }

    /// What changing needs, borrowed apart.
    pub(crate) fn writing(&mut self) -> (&Arc<System>, &Arc<Owner>, Option<&mut UndoLog>, &mut WriteBuffers) {
        (&self.system.0, &self.owner, self.undo_log.as_mut(), &mut self.buffers)
    }

    /// Ends a statement: READ COMMITTED and autocommit give up the read view.
    pub fn end_statement(&mut self) {
        self.add_counts();
        self.seen.clear();
        self.buffers.last = None;
        self.overlay.forget();
        self.end_statement_view();
    }

    /// Where the transaction is now, for `rollback_to` (statement rollback and savepoints).
    pub fn statement_mark(&self) -> UndoMark {
        let end = || self.undo_log.as_ref().map_or(UndoMark::START, |log| UndoMark(log.mark()));
        // What stands after an operation that was cut will be undone.
        self.unfinished.unwrap_or_else(end)
    }

    /// Undoes all changes made since `mark`. Locks stay, as in InnoDB: a changed row that nobody but its
    /// change kept locked gets a lock of its own.
    ///
    /// # Errors
    /// Storage errors and damaged pages.
    pub async fn rollback_to(&mut self, mark: UndoMark) -> Result<(), Error> {
        if self.rolled_back {
            return self.settle().await;
        }
        // Further back, if an operation was cut before the mark.
        let mark =
            self.unfinished.map_or(mark, |cut| if cut.0.records < mark.0.records { cut } else { mark });
        self.unfinished = Some(mark);
        self.savepoints.retain(|(_, savepoint)| savepoint.0.records <= mark.0.records);
        let owner = self.owner.clone();
        self.undo_after(mark, Some(&owner)).await?;
        self.unfinished = None;
        Ok(())
    }

    async fn undo_after(&mut self, mark: UndoMark, locks_stay: Option<&Arc<Owner>>) -> Result<(), Error> {
        let Some(log) = &mut self.undo_log else { return Ok(()) };
        if log.records <= mark.0.records {
            return Ok(());
        }
        let (tables, source) = (&self.tables, self.source.as_deref());
        let find = |id: u64| rollback::find_table(tables, source, id);
        let slot = slot_of(&mut self.slot, &mut self.view, &self.system.0.views);
        rollback::roll_back(&self.system.0, log, &find, mark.0, slot, locks_stay).await?;
        // Before anything new is written there.
        self.system.0.undo.cut_back.fetch_add(1, Ordering::SeqCst);
        self.owner.undo_records.store(log.records, Ordering::Relaxed);
        Ok(())
    }

    /// What was done since the mark is undone before anything else is: for an operation of several steps that
    /// was cut.
    pub fn cut_back_to(&mut self, mark: UndoMark) {
        let further = |cut: UndoMark| if cut.0.records < mark.0.records { cut } else { mark };
        if !self.rolled_back && self.undo_log.is_some() {
            self.unfinished = Some(self.unfinished.map_or(mark, further));
        }
    }

    /// Sets a savepoint; one with the same name (ASCII case ignored) is replaced.
    pub fn savepoint(&mut self, name: &str) {
        self.savepoints.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        let mark = self.statement_mark();
        self.savepoints.push((name.to_owned(), mark));
    }

    fn find_savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().position(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// Whether there is a savepoint of this name.
    pub fn has_savepoint(&self, name: &str) -> bool {
        self.find_savepoint(name).is_some()
    }

    /// Rolls back to a savepoint and forgets later ones. `Ok(false)` when there is none of that name.
    ///
    /// # Errors
    /// Storage errors and damaged pages.
    pub async fn rollback_to_savepoint(&mut self, name: &str) -> Result<bool, Error> {
        let Some(position) = self.find_savepoint(name) else { return Ok(false) };
        // Before anything is undone: should that fail or be cut, the places of later ones are in the middle
        // of nothing.
        self.savepoints.truncate(position + 1);
        self.rollback_to(self.savepoints[position].1).await?;
        Ok(true)
    }

    /// Forgets a savepoint and later ones. False when there is none of that name.
    pub fn release_savepoint(&mut self, name: &str) -> bool {
        let Some(position) = self.find_savepoint(name) else { return false };
        self.savepoints.truncate(position);
        true
    }

    /// Commits. When the commit itself fails nothing is committed and the transaction goes on; when only the
    /// wait for durability fails, the engine is poisoned and a restart will tell. Dropped before it is
    /// complete, it has either not begun, or everything is committed and what is missing is the wait for
    /// durability.
    ///
    /// # Errors
    /// [`Error::RolledBack`]; storage errors.
    pub async fn commit(&mut self, durability: Durability) -> Result<(), Error> {
        let begun = self.inner().commit_begins(self.undo_log.is_some() && flush_of(durability).is_some());
        let lsn = self.commit_in_memory().await?;
        let redo = self.inner().store.redo().clone();
        if let (Some(lsn), Some(how)) = (lsn, flush_of(durability)) {
            retry(|| redo.flush(lsn, how).map_err(log_interrupt)).await?;
            self.inner().commit_ends(begun);
        }
        Ok(())
    }

    /// As `commit`, for a thread that may block: it leads the log write itself when the log is idle.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_blocking(&mut self, durability: Durability) -> Result<(), Error> {
        let begun = self.inner().commit_begins(self.undo_log.is_some() && flush_of(durability).is_some());
        let lsn = disk::block_on(self.commit_in_memory())?;
        if let (Some(lsn), Some(how)) = (lsn, flush_of(durability)) {
            self.inner().store.redo().flush_blocking(lsn, how)?;
            self.inner().commit_ends(begun);
        }
        Ok(())
    }

    /// Commits in memory and in the log buffer. Returns the LSN that must become durable, if anything was
    /// changed.
    async fn commit_in_memory(&mut self) -> Result<Option<Lsn>, Error> {
        self.settle().await?;
        if self.rolled_back {
            return Err(Error::RolledBack);
        }
        let system = self.system.0.clone();
        let Some(log) = &mut self.undo_log else {
            let rest = self.finish();
            release_rest(rest).await;
            return Ok(None);
        };
        let records = log.records;
        let changed = records > 0;
        // That a prepared one has ended must be known after a crash too.
        let prepared = log.is_prepared();
        let lasts = changed || prepared;
        let number = CommitNumber::take(&system).await?;
        // The log stays where it is until the mark is written: should the caller drop this future, it can be
        // rolled back.
        let committed = retry(|| log.commit(&system.undo, number.number)).await?;
        // No await from here on: it is committed.
        let end = system.store.redo().current();
        let lsn = lasts.then_some(end);
        let number = number.used();
        let transaction = log.trx_id;
        let mut observer = self.observer.as_deref_mut().filter(|_| changed);
        if let Some(observer) = &mut observer {
            observer.committing(&Committed { transaction, number, end, records });
        }
        let (tables, row_changes) = (&self.tables, &log.row_changes);
        system.active.end(transaction, Some(number), |version| {
            row_changes.publish(tables, &system.row_counts, version);
            if let Some(committed) = committed {
                system.history.committed(number, committed);
            }
            if let Some(observer) = &mut observer {
                observer.committed();
            }
        });
        if let Some(observer) = observer {
            observer.published();
        }
        if let Some(log) = self.undo_log.take() {
            log.release(&system.undo);
        }
        let rest = self.finish();
        Counters::add(&system.counters.commits, 1);
        if committed.is_some() {
            system.purge.wake();
        }
        release_rest(rest).await;
        Ok(lsn)
    }

    /// What is common to every end: locks, view, savepoints. Of very many locks a rest is left to be
    /// released.
    pub(crate) fn finish(&mut self) -> Option<Release> {
        let rest = self.system.0.locks.release_in_slices(&self.owner);
        self.owner.id.store(0, Ordering::Relaxed);
        self.owner.undo_records.store(0, Ordering::Relaxed);
        self.rest();
        self.begun = false;
        self.unfinished = None;
        self.observer = None;
        self.tables.clear();
        self.source = None;
        rest
    }

    /// It reads and writes no more.
    pub(crate) fn rest(&mut self) {
        self.close_view();
        self.add_counts();
        self.seen.clear();
        self.buffers.last = None;
        self.overlay.forget();
        self.savepoints.clear();
    }

    /// Rolls back everything and releases the locks.
    ///
    /// # Errors
    /// Storage errors and damaged pages: the transaction then stays as it is, locks included. Call it again,
    /// or drop the transaction, which leaves it to the background.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        self.roll_back_all().await?;
        self.rolled_back = false;
        Ok(())
    }

    /// Rolls back everything because a wait for something else than a row would close a circle. As after a
    /// deadlock of row locks, what follows says so.
    ///
    /// # Errors
    /// As [`Transaction::rollback`].
    pub async fn roll_back_as_victim(&mut self) -> Result<(), Error> {
        self.roll_back_all().await
    }

    async fn roll_back_all(&mut self) -> Result<(), Error> {
        let space = self.inner().undo.clone();
        if let Some(log) = self.undo_log.as_mut().filter(|log| log.is_prepared()) {
            retry(|| log.unprepare(&space)).await?;
        }
        self.unfinished = Some(UndoMark::START);
        self.rolled_back = true;
        self.undo_after(UndoMark::START, None).await?;
        let system = self.system.0.clone();
        if let Some(log) = &mut self.undo_log {
            retry(|| log.truncate(&system.undo, UndoMark::START.0)).await?;
        }
        if let Some(log) = self.undo_log.take() {
            system.active.end(log.trx_id, None, |_| ());
            log.release(&system.undo);
            Counters::add(&system.counters.rollbacks, 1);
        }
        let rest = self.finish();
        release_rest(rest).await;
        Ok(())
    }

    /// Undoes what is left of an operation or a rollback whose future was dropped. All that waits does so by
    /// itself first; [`crate::get_step`] and [`crate::get_at_once`] cannot.
    ///
    /// # Errors
    /// Storage errors and damaged pages.
    pub async fn settle(&mut self) -> Result<(), Error> {
        match self.unfinished {
            None => Ok(()),
            Some(_) if self.rolled_back => self.roll_back_all().await,
            Some(mark) => {
                let owner = self.owner.clone();
                self.undo_after(mark, Some(&owner)).await?;
                self.unfinished = None;
                Ok(())
            }
        }
    }

    /// Before an operation: nothing half done is left of the ones before, and the transaction is not one that
    /// a deadlock has ended.
    #[inline]
    pub(crate) async fn begin_operation(&mut self) -> Result<(), Error> {
        if self.unfinished.is_some() {
            self.settle().await?;
        }
        if self.rolled_back { Err(Error::RolledBack) } else { Ok(()) }
    }

    /// For an operation that cannot wait: whether [`Self::begin_operation`] has nothing to do.
    #[inline]
    pub(crate) fn check_settled(&self) -> Result<(), Error> {
        match (self.rolled_back, self.unfinished) {
            (true, _) => Err(Error::RolledBack),
            (false, Some(_)) => Err(Error::Unfinished),
            (false, None) => Ok(()),
        }
    }

    /// Whether the transaction was rolled back without the caller's asking, and nobody has acknowledged it.
    pub fn is_rolled_back(&self) -> bool {
        self.rolled_back
    }

    /// Whether something of it is still to be undone or committed: its locks, and whatever protects its
    /// tables, must last.
    pub fn has_log(&self) -> bool {
        self.undo_log.is_some()
    }

    /// What must last until the transaction, should it be dropped before its end, has been rolled back in the
    /// background.
    pub fn keep_for_rollback(&mut self, kept: Box<dyn Any + Send + Sync>) {
        self.kept = Some(kept);
    }

    /// Before a change: id and undo slot, the table is remembered, and where the operation begins. To be
    /// ended by [`Self::end_change`].
    pub(crate) async fn begin_change(&mut self, table: &Arc<Table>) -> Result<UndoMark, Error> {
        self.begin_operation().await?;
        if !self.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            self.tables.push(table.clone());
        }
        if self.undo_log.is_none() {
            self.take_log().await?;
        }
        let mark = self.statement_mark();
        self.unfinished = Some(mark);
        Ok(mark)
    }

    /// Takes an id and an undo slot.
    pub(crate) async fn take_log(&mut self) -> Result<(), Error> {
        let system = self.system.0.clone();
        if system.options.forced_recovery > 0 {
            return Err(Error::ForcedRecovery(system.options.forced_recovery));
        }
        loop {
            system.keep_bound_ahead().await?;
            let Some((slot, state)) = system.undo.take(self.undo_home).await? else {
                return Err(Error::TooManyTransactions(SLOTS_MAX));
            };
            // Nothing is waited for while the slot is nobody's: the caller may drop this future.
            let Some(id) = system.active.begin(self.owner.current()) else {
                system.undo.free.give_back(self.undo_home, slot, state);
                continue;
            };
            self.owner.started.store(system.env.unix_time().as_micros() as u64, Ordering::Relaxed);
            self.view.creator = id;
            self.undo_log = Some(UndoLog::new(self.undo_home, slot, state, id));
            return Ok(());
        }
    }

    /// Ends what [`Self::begin_change`] began. An operation that failed midway is taken back, and its error
    /// passed on.
    pub(crate) async fn end_change(
        &mut self,
        mark: UndoMark,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        match result {
            Ok(()) => {
                self.unfinished = None;
                self.note_undo_records();
                Ok(())
            }
            // Everything has been rolled back already.
            Err(error) if self.rolled_back && self.unfinished.is_none() => Err(error),
            Err(error) => {
                let undone = self.rollback_to(mark).await;
                self.let_go_of_undo_page();
                Err(undone.err().unwrap_or(error))
            }
        }
    }

    /// A change is complete: tells deadlock detection how much work would be lost.
    pub(crate) fn note_undo_records(&mut self) {
        self.let_go_of_undo_page();
        let records = self.undo_log.as_ref().map_or(0, |log| log.records);
        self.owner.undo_records.store(records, Ordering::Relaxed);
    }

    /// Before a wait for somebody else, and when a change is complete.
    fn let_go_of_undo_page(&mut self) {
        if let Some(log) = &mut self.undo_log {
            log.let_go(&self.system.0.undo);
        }
    }

    /// Waits for a row lock. A deadlock rolls the whole transaction back before it is reported, and so does a
    /// full lock table.
    pub(crate) async fn wait_for_lock(&mut self, wait: LockWait) -> Result<(), Error> {
        self.let_go_of_undo_page();
        let env = self.inner().env.clone();
        let result = wait.wait(&*env, self.lock_wait_timeout).await;
        if matches!(result, Err(Error::Deadlock | Error::LockTableFull)) {
            self.roll_back_all().await?;
        }
        result
    }
}

/// A commit number that purge waits for. Given up when dropped.
struct CommitNumber {
    system: Arc<System>,
    number: u64,
    used: bool,
}

impl CommitNumber {
    async fn take(system: &Arc<System>) -> Result<CommitNumber, Error> {
        let number = system.take_commit_number().await?;
        Ok(CommitNumber { system: system.clone(), number, used: false })
    }

    /// The end of the transaction takes it off.
    fn used(mut self) -> u64 {
        self.used = true;
        self.number
    }
}

impl Drop for CommitNumber {
    fn drop(&mut self) {
        if !self.used {
            self.system.active.give_up_commit(self.number);
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let system = self.system.0.clone();
        self.give_slot_back();
        let Some(log) = self.undo_log.take() else {
            system.locks.release_all(&self.owner);
            return;
        };
        if log.is_prepared() {
            // The engine goes; the next start finds it.
            return;
        }
        // A session that went away in the middle of a transaction: somebody has to undo it.
        let tables = std::mem::take(&mut self.tables);
        let (source, kept) = (self.source.take(), self.kept.take());
        let holds = std::mem::take(&mut self.holds);
        let abandoned = Abandoned { owner: self.owner.clone(), undo_log: log, tables, source, holds, kept };
        let env = system.env.clone();
        env.spawn_worker("rollback", Box::pin(rollback::roll_back_abandoned(system, abandoned)));
    }
}

/// Releases the locks of a transaction that had very many, with turns for other tasks. Everything else of its
/// end is done: should the future be dropped, they are released at once.
async fn release_rest(rest: Option<Release>) {
    let Some(mut rest) = rest else { return };
    while rest.step() {
        yield_now().await;
    }
}

fn flush_of(durability: Durability) -> Option<Flush> {
    match durability {
        Durability::NoSync => None,
        Durability::Write => Some(Flush::Write),
        Durability::Sync => Some(Flush::Sync),
    }
}

fn log_interrupt(interrupt: redo::Interrupt) -> Interrupt {
    match interrupt {
        redo::Interrupt::Wait(wait) => Interrupt::Wait(wait),
        redo::Interrupt::Error(error) => Interrupt::Error(error.into()),
    }
}
