//! The transaction system: what all transactions share.
//!
//! ```text
//!   active set   ids, who is active, commit order        locks     row locks
//!   views        sessions' open read views               undo      undo tablespace and its slots
//!   history      committed undo logs, oldest first  -->  purge     removes what no view needs
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, Histogram, ShardedCounters, Times};
use pagestore::PageStore;
use parking_lot::Mutex;

use crate::crash_rollback::CrashRollback;
use crate::error::Error;
use crate::lock::{Deadlock, DeadlockWitness, LockTable, Owner, RowLocks, RowOwner, RowWaits, WaitInfo};
use crate::prepared::{RecoveredTransaction, resurrect};
use crate::purge::{Purge, PurgePause};
use crate::read_view::ViewRegistry;
use crate::retry::retry;
use crate::table::{TableHold, TableSource};
use crate::transaction_ids::{ActiveSet, ID_MARGIN};
use crate::undo::history::History;
use crate::undo::recovery::{PreparedMark, Unfinished};
use crate::undo::{UndoSpace, recovery};

/// Above every transaction id: they have six bytes in a row.
const LAST_ID: u64 = (1 << 48) - 1;

/// How to open a [`TransactionSystem`].
#[derive(Debug, Clone)]
pub struct Options {
    /// File of the undo tablespace (`undo_001` in the data directory).
    pub undo_path: PathBuf,
    /// `innodb_deadlock_detect`.
    pub deadlock_detect: bool,
    /// Whether the purge task runs in the background (tests may drive it with
    /// [`TransactionSystem::purge_all`]).
    pub background_purge: bool,
    /// `innodb_purge_threads`: tasks that purge the records of a batch side by side.
    pub purge_threads: usize,
    /// `innodb_lock_wait_timeout` of new transactions.
    pub lock_wait_timeout: Duration,
    /// `innodb_force_recovery`: above 0 rows cannot be changed; from 2 on nothing is purged, from 3 on
    /// unfinished transactions stay as they are (readers do not see their changes), from 4 on no page is
    /// changed, from 5 on undo logs are not read: all changes count as committed.
    pub forced_recovery: u8,
    /// `innodb_undo_log_truncate`.
    pub undo_log_truncate: bool,
    /// `innodb_max_undo_log_size`.
    pub max_undo_log_bytes: u64,
}

impl Options {
    /// Defaults, with the undo tablespace at `undo_path`.
    #[must_use]
    pub fn new(undo_path: PathBuf) -> Options {
        Options {
            undo_path,
            deadlock_detect: true,
            background_purge: true,
            purge_threads: 4,
            lock_wait_timeout: Duration::from_secs(50),
            forced_recovery: 0,
            undo_log_truncate: true,
            max_undo_log_bytes: 1 << 30,
        }
    }
}

/// What [`TransactionSystem::recover`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Unfinished transactions, which are being rolled back in the background.
    pub rolled_back: usize,
    /// Prepared transactions, which wait for [`Recovered::prepared`] to be ended.
    pub prepared: usize,
    /// Committed undo logs to be purged, without those of a long history that were not looked at.
    pub history: u64,
}

/// What [`TransactionSystem::recover`] found.
pub struct Recovered {
    /// What is done about it.
    pub report: RecoveryReport,
    /// Prepared transactions, oldest first.
    pub prepared: Vec<RecoveredTransaction>,
}

/// Counters and gauges (names in SHOW STATUS are the SQL layer's).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Next transaction id.
    pub next_trx_id: u64,
    /// Transactions with an id that have not ended.
    pub active: usize,
    /// Committed undo logs not yet purged (History list length); after a start with a long history without
    /// those not looked at yet.
    pub history_length: u64,
    /// Commits of transactions that changed something.
    pub commits: u64,
    /// Rollbacks of transactions that changed something.
    pub rollbacks: u64,
    /// Row lock waits that are going on (`Innodb_row_lock_current_waits`).
    pub lock_waits_current: u64,
    /// Row lock waits so far (`Innodb_row_lock_waits`).
    pub lock_waits: u64,
    /// Nanoseconds spent in finished row lock waits (`Innodb_row_lock_time`, there in milliseconds).
    pub lock_wait_nanoseconds: u64,
    /// Longest finished row lock wait in nanoseconds (`Innodb_row_lock_time_max`).
    pub lock_wait_nanoseconds_max: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Row lock waits that timed out.
    pub lock_timeouts: u64,
    /// Row locks held or waited for now.
    pub locks: u64,
    /// Bytes that row locks occupy, about.
    pub lock_bytes: u64,
    /// Rows read, inserted, updated, deleted (`Innodb_rows_*`).
    pub rows_read: u64,
    /// Rows inserted.
    pub rows_inserted: u64,
    /// Rows updated.
    pub rows_updated: u64,
    /// Rows deleted.
    pub rows_deleted: u64,
    /// Older row versions rebuilt for consistent reads.
    pub versions_built: u64,
    /// Undo records purged.
    pub purged_records: u64,
    /// Pages of the undo tablespace in use by undo logs.
    pub undo_pages: u64,
    /// Times the file of the undo tablespace was cut.
    pub undo_truncations: u64,
    /// Bytes that this gave back.
    pub undo_truncated_bytes: u64,
    /// Transactions that the last stop left unfinished and that have not been rolled back yet.
    pub unfinished_transactions: u64,
    /// Their undo records, as far as counted.
    pub unfinished_records: u64,
    /// Undo records and logs that could not be purged because of damaged pages.
    pub purge_skipped: u64,
}

/// One transaction for `information_schema.innodb_trx` and SHOW ENGINE INNODB STATUS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionInfo {
    /// Its id.
    pub id: u64,
    /// The session's tag ([`crate::Transaction::set_tag`]; the server sets the connection id).
    pub tag: u64,
    /// The row lock that it waits for.
    pub waits: Option<WaitInfo>,
    /// Row locks it holds or waits for.
    pub locks: usize,
    /// Undo records it wrote.
    pub undo_records: u64,
    /// When it got its id ([`disk::Environment::unix_time`]); `None`: it has none, as it has changed nothing.
    pub started: Option<Duration>,
}

/// Counts of what was done.
#[derive(Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    /// Rows read and versions built: there are programs whose threads do nothing but read, row after row.
    pub reads: ShardedCounters<2>,
    pub rows_inserted: AtomicU64,
    pub rows_updated: AtomicU64,
    pub rows_deleted: AtomicU64,
    pub purged_records: AtomicU64,
    pub purge_skipped: AtomicU64,
    pub commit_times: Histogram,
}

impl Counters {
    pub const ROWS_READ: usize = 0;
    pub const VERSIONS_BUILT: usize = 1;

    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

/// What all transactions share; see the module.
pub(crate) struct System {
    pub env: Arc<dyn Environment>,
    pub store: Arc<PageStore>,
    pub undo: Arc<UndoSpace>,
    pub active: ActiveSet,
    pub locks: Arc<LockTable>,
    pub views: ViewRegistry,
    /// Committed logs that purge has not done with.
    pub history: History,
    pub purge: Purge,
    pub crash_rollback: CrashRollback,
    /// Tables of transactions that could not be rolled back.
    pub crash_rollback_holds: Mutex<Vec<TableHold>>,
    pub background: crate::rollback::Background,
    pub row_counts: crate::row_count::RowCounts,
    pub counters: Counters,
    pub options: Options,
    unfinished: Mutex<Vec<Unfinished>>,
}

impl System {
    /// When a commit begins, if it will wait for the log; one that does not wait does not read the clock.
    pub fn commit_begins(&self, waits: bool) -> Option<Duration> {
        waits.then(|| self.env.now())
    }

    pub fn commit_ends(&self, begun: Option<Duration>) {
        if let Some(begun) = begun {
            self.counters.commit_times.record(self.env.now().saturating_sub(begun));
        }
    }
}

impl TransactionSystem {
    /// A number for a table or index that is made now, from what is committed now: read views that are open
    /// do not see it ([`crate::Error::TableChanged`]), those made from now on do.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn birth_number(&self) -> Result<u64, Error> {
        loop {
            if let Some(number) = self.0.active.birth() {
                return Ok(number);
            }
            self.0.keep_bound_ahead().await?;
        }
    }

    /// The id of no transaction yet: all that have changed something have smaller ones.
    pub fn next_id(&self) -> u64 {
        self.0.active.next()
    }

    /// Whether every transaction with a smaller id has ended, but those that are left out.
    pub fn have_ended(&self, before: u64, left_out: impl FnOnce() -> Vec<u64>) -> bool {
        let active = &self.0.active;
        active.oldest() >= before || active.all_below(before, &left_out())
    }
}

/// Everything transactions share. Clones are the same system.
#[derive(Clone)]
pub struct TransactionSystem(pub(crate) Arc<System>);

impl TransactionSystem {
    /// Opens the undo tablespace, or creates it when its file does not exist. Redo must have been applied.
    ///
    /// # Errors
    /// Storage errors; a file that is not an undo tablespace or is damaged.
    pub async fn open(store: Arc<PageStore>, options: Options) -> Result<TransactionSystem, Error> {
        let env = store.environment().clone();
        let path = &options.undo_path;
        let known = store.space(crate::UNDO_SPACE).is_some();
        let exists = known || env.storage().exists(path).map_err(pagestore::Error::from)?;
        let undo = if options.forced_recovery >= 5 {
            UndoSpace::unread(store.clone())
        } else if exists {
            UndoSpace::open(store.clone(), path).await?
        } else {
            UndoSpace::create(store.clone(), path).await?
        };
        let found = match options.forced_recovery {
            // Every id is below: all changes are seen.
            5.. => recovery::Found { above_all: LAST_ID, ..Default::default() },
            _ => recovery::find_logs(&undo).await?,
        };
        undo.pages.store(found.pages, Ordering::Relaxed);
        undo.truncation.set_on(options.undo_log_truncate);
        undo.truncation.set_max_bytes(options.max_undo_log_bytes);
        if exists {
            undo.free.add(found.free.into_iter());
        }
        let next = found.above_all.max(1);
        let bound = next + ID_MARGIN;
        if options.forced_recovery < 4 {
            undo.upgrade().await?;
            retry(|| undo.raise_bound(bound)).await?;
        }
        let active = ActiveSet::new(next, bound);
        let locks = LockTable::new(env.random_u64());
        locks.detect_deadlocks.store(options.deadlock_detect, Ordering::Relaxed);
        let system = System {
            env,
            store,
            undo: Arc::new(undo),
            active,
            locks,
            views: ViewRegistry::default(),
            history: History::new(found.history),
            purge: Purge::default(),
            crash_rollback: CrashRollback::default(),
            crash_rollback_holds: Mutex::default(),
            background: crate::rollback::Background::default(),
            row_counts: crate::row_count::RowCounts::default(),
            counters: Counters::default(),
            options,
            unfinished: Mutex::new(found.unfinished),
        };
        let system = Arc::new(system);
        // It may have to roll back after the database was dropped, and needs room in the log for it.
        let user: std::sync::Weak<System> = Arc::downgrade(&system);
        system.store.recover_for(user);
        Ok(TransactionSystem(system))
    }

    /// Begins to roll back what had not committed before a crash, and to purge, both in the background. Call
    /// once, when the catalog is loaded; until then nothing may be changed. Afterwards clients may be served:
    /// see [`Self::rolled_back`].
    ///
    /// # Errors
    /// Storage errors.
    pub async fn recover(&self, tables: Arc<dyn TableSource>) -> Result<Recovered, Error> {
        let system = &self.0;
        system.purge.set_tables(tables.clone());
        let (mut unfinished, mut prepared) = (Vec::new(), Vec::new());
        for log in std::mem::take(&mut *system.unfinished.lock()) {
            let owner = Arc::new(Owner::default());
            // When it began is not known any more.
            owner.started.store(system.env.unix_time().as_micros() as u64, Ordering::Relaxed);
            system.active.resurrect(log.trx_id, owner.current());
            match log.prepared {
                Some(mark) => prepared.push((log, mark, owner)),
                None => unfinished.push((log, owner)),
            }
        }
        system.purge.publish_first(system);
        if system.options.forced_recovery >= 3 {
            // They stay active, so readers do not see what they changed.
            unfinished.clear();
        }
        let prepared = self.recover_prepared(&tables, prepared).await;
        let report = RecoveryReport {
            rolled_back: unfinished.len(),
            prepared: prepared.len(),
            history: system.history.len(),
        };
        CrashRollback::start(system, tables, unfinished).await?;
        if system.options.background_purge && system.options.forced_recovery < 2 {
            Purge::spawn(system);
        }
        Ok(Recovered { report, prepared })
    }

    /// One that is damaged stays as it is, like the logs that cannot be rolled back.
    async fn recover_prepared(
        &self,
        tables: &Arc<dyn TableSource>,
        logs: Vec<(Unfinished, PreparedMark, Arc<Owner>)>,
    ) -> Vec<RecoveredTransaction> {
        let mut recovered = Vec::new();
        for found in logs {
            let transaction = found.0.trx_id;
            match resurrect(&self.0, tables, found).await {
                Ok(found) => recovered.push(found),
                Err(error) => {
                    tracing::error!(
                        transaction, %error,
                        "a prepared transaction cannot be read; its rows stay locked and all tables as they are until a restart"
                    );
                    let holds = tables.hold_all().into_iter().map(|(_, hold)| hold);
                    self.0.crash_rollback_holds.lock().extend(holds);
                }
            }
        }
        recovered
    }

    /// Waits until everything that had not committed before the last stop has been rolled back.
    pub async fn rolled_back(&self) {
        self.0.crash_rollback.ended().await;
    }

    /// How long a new transaction waits for a row lock ([`Options::lock_wait_timeout`]).
    pub fn lock_wait_timeout(&self) -> Duration {
        self.0.options.lock_wait_timeout
    }

    /// The store.
    pub fn store(&self) -> &Arc<PageStore> {
        &self.0.store
    }

    /// Purges everything no open read view needs, now. Returns the number of undo records purged. While
    /// somebody keeps purge
    /// [paused](Self::pause_purge) that is nothing.
    ///
    /// # Errors
    /// Storage errors and damaged pages.
    pub async fn purge_all(&self) -> Result<u64, Error> {
        Purge::run_to_end(&self.0).await
    }

    /// Removes every delete-marked record of a tree that nobody uses and no undo log knows of, with its
    /// off-page values. Returns how many there were.
    ///
    /// # Errors
    /// Storage errors and damaged pages.
    pub async fn remove_marked_records(&self, tree: &btree::Tree) -> Result<u64, Error> {
        crate::imported_delete_marks::remove_delete_marked(&self.0, tree).await
    }

    /// Stops purge until the answer is dropped; waits for the batch at work.
    pub async fn pause_purge(&self) -> PurgePause {
        Purge::pause(&self.0).await
    }

    /// Who waits for row locks, for the keeper of locks of another kind.
    pub fn row_waits(&self) -> RowWaits {
        RowWaits(Arc::downgrade(&self.0.locks))
    }

    /// Stops background work; wait for it before the store is shut down.
    ///
    /// # Errors
    /// None at present.
    pub async fn shutdown(&self) -> Result<(), Error> {
        Purge::stop(&self.0).await;
        self.0.background.ended().await;
        self.0.crash_rollback.stop().await;
        Ok(())
    }

    /// Counters.
    pub fn status(&self) -> Status {
        let system = &self.0;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (counters, locks) = (&system.counters, &system.locks.counters);
        Status {
            next_trx_id: system.active.next(),
            active: system.active.len(),
            history_length: system.history.len(),
            commits: load(&counters.commits),
            rollbacks: load(&counters.rollbacks),
            lock_waits_current: load(&locks.current_waits),
            lock_waits: load(&locks.waits),
            lock_wait_nanoseconds: load(&locks.wait_nanoseconds),
            lock_wait_nanoseconds_max: load(&locks.wait_nanoseconds_max),
            deadlocks: load(&locks.deadlocks),
            lock_timeouts: load(&locks.timeouts),
            locks: load(&locks.locks),
            lock_bytes: system.locks.bytes() as u64,
            rows_read: counters.reads.sum(Counters::ROWS_READ),
            rows_inserted: load(&counters.rows_inserted),
            rows_updated: load(&counters.rows_updated),
            rows_deleted: load(&counters.rows_deleted),
            versions_built: counters.reads.sum(Counters::VERSIONS_BUILT),
            purged_records: load(&counters.purged_records),
            undo_pages: load(&system.undo.pages),
            undo_truncations: load(&system.undo.truncation.cuts),
            undo_truncated_bytes: load(&system.undo.truncation.bytes),
            unfinished_transactions: load(&system.crash_rollback.transactions),
            unfinished_records: load(&system.crash_rollback.records),
            purge_skipped: load(&counters.purge_skipped),
        }
    }

    /// How long commits took that waited for the log.
    pub fn commit_times(&self) -> Times {
        self.0.counters.commit_times.times()
    }

    /// How long waits for row locks took, however they ended.
    pub fn lock_wait_times(&self) -> Times {
        self.0.locks.counters.wait_times.times()
    }

    /// The transactions that have an id, and those that have row locks.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        let info = |session: RowOwner| {
            let owner = &session.0;
            let started = Duration::from_micros(owner.started.load(Ordering::Relaxed));
            TransactionInfo {
                id: session.shown_id(),
                tag: session.tag(),
                waits: session.wait(&*self.0.env),
                locks: owner.lock_count(),
                undo_records: owner.undo_records.load(Ordering::Relaxed),
                started: (session.id() != 0).then_some(started),
            }
        };
        self.owners().into_iter().map(info).collect()
    }

    /// The sessions of these transactions.
    pub fn owners(&self) -> Vec<RowOwner> {
        let changing = self.0.active.owners();
        let mut others = self.0.locks.holders();
        others.retain(|owner| owner.id.load(Ordering::Relaxed) == 0);
        changing.into_iter().chain(others).map(RowOwner).collect()
    }

    /// The lock table, for lists of locks.
    pub fn row_locks(&self) -> RowLocks {
        RowLocks(self.0.locks.clone())
    }

    /// The latest deadlock since the start.
    pub fn latest_deadlock(&self) -> Option<Arc<Deadlock>> {
        self.0.locks.latest_deadlock()
    }

    /// Who is asked, from now on, what a report about a deadlock says beside the locks. The first one stays.
    pub fn set_deadlock_witness(&self, witness: Arc<dyn DeadlockWitness>) {
        self.0.locks.set_deadlock_witness(witness);
    }

    /// Limits the memory for row locks; those that find it used up fail with [`Error::LockTableFull`].
    pub fn set_lock_memory_max(&self, bytes: usize) {
        self.0.locks.set_bytes_max(bytes);
    }

    /// Whether a large undo tablespace is truncated (`innodb_undo_log_truncate`).
    pub fn set_undo_log_truncate(&self, on: bool) {
        self.0.undo.truncation.set_on(on);
        self.0.purge.wake();
    }

    /// How large the undo tablespace may get before it is truncated (`innodb_max_undo_log_size`).
    pub fn set_max_undo_log_size(&self, bytes: u64) {
        self.0.undo.truncation.set_max_bytes(bytes);
        self.0.purge.wake();
    }

    /// Turns deadlock detection on or off (`innodb_deadlock_detect`).
    pub fn set_deadlock_detect(&self, on: bool) {
        self.0.locks.detect_deadlocks.store(on, Ordering::Relaxed);
    }
}
