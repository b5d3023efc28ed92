//! Purge: removing what no read view can see any more.
//!
//! Committed undo logs wait in the **history**, by commit number. Purge takes a [`Snapshot`] of the active set and waits until no
//! older read view is open; then every view sees at least what the snapshot sees, and the logs below its commit
//! limit may go. For each of their records it removes delete-marked entries of secondary indexes that no
//! version in sight has, then the delete-marked row itself if the record was its last change, and frees
//! off-page values that were replaced. Afterwards the directory of the undo tablespace forgets the logs.
//!
//! Every step can be repeated after a crash: a removal looks for a delete mark and the right roll pointer, a freed off-page value is
//! struck out of the undo record in the same mini-transaction.
//!
//! One task purges at a time ([`Turn`]), several logs side by side: each step waits for pages by itself, and when history
//! falls behind on a slow disk, the pages it needs have left the pool and have to be read again, so that it falls behind
//! even more. The order within a batch does not matter: what is removed is decided from what the snapshot sees, and no log
//! of the batch is forgotten before all of it is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use btree::{FieldRef, KeyFields, OwnedKey, RecordRef, Reference};
use disk::Event;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::active::Snapshot;
use crate::entry::build_entry;
use crate::error::{Error, Interrupt};
use crate::read_view::{ReadView, ViewSlot};
use crate::retry::{retry, yield_now};
use crate::roll_pointer::RollPtr;
use crate::rollback::external_references;
use crate::row::physical::{free_chain_tails, free_noted_chain, is_entry_needed, remove_record};
use crate::side_by_side::side_by_side;
use crate::system::{Counters, System};
use crate::table::{Secondary, Table, TableSource};
use crate::undo::log::CommittedLog;
use crate::undo::page::{LOG_HEADER_LEN, free_of};
use crate::undo::record::bytes_at;
use crate::undo::slot::corrupt;
use crate::undo::{Place, UndoKind, UndoRecord};

/// Logs purged between looks at the snapshot and updates of the directory.
const BATCH_LOGS: usize = 300;
/// Logs gone through side by side.
const LANES: usize = 16;
/// How long the task lets history gather, when it has caught up.
const PAUSE: Duration = Duration::from_millis(20);
/// Empty rounds after which the task sleeps until a commit wakes it.
const IDLE_ROUNDS: u32 = 50;

/// A row that rollback made delete-marked again; the log of its deletion may have been purged while it was alive.
pub(crate) struct DeadRow {
    pub table: u64,
    pub key: OwnedKey,
    pub trx_id: u64,
    pub roll_ptr: u64,
}

/// State of purge.
#[derive(Default)]
pub(crate) struct Purge {
    tables: Mutex<Option<Arc<dyn TableSource>>>,
    /// What purge works with: every open view sees at least this.
    published: Mutex<Arc<Snapshot>>,
    /// Waits for older views to close.
    pending: Mutex<Option<Snapshot>>,
    dead_rows: Mutex<Vec<DeadRow>>,
    turn: Turn,
    paused: AtomicUsize,
    stopped: AtomicBool,
    /// The task sleeps until `waker` is set.
    asleep: AtomicBool,
    waker: Mutex<Event>,
}

/// The right to purge, one holder at a time.
#[derive(Default)]
struct Turn(Mutex<TurnState>);

#[derive(Default)]
struct TurnState {
    taken: bool,
    freed: Event,
}

struct TurnGuard<'t>(&'t Turn);

impl Turn {
    async fn take(&self) -> TurnGuard<'_> {
        loop {
            let freed = {
                let mut state = self.0.lock();
                if !state.taken {
                    state.taken = true;
                    state.freed = Event::new();
                    return TurnGuard(self);
                }
                state.freed.clone()
            };
            freed.wait().await;
        }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let freed = {
            let mut state = self.0.0.lock();
            state.taken = false;
            state.freed.clone()
        };
        freed.set();
    }
}

/// Keeps purge away while it lives (FLUSH TABLES ... FOR EXPORT).
pub struct PurgePause(Arc<System>);

impl Drop for PurgePause {
    fn drop(&mut self) {
        self.0.purge.paused.fetch_sub(1, Ordering::SeqCst);
        self.0.purge.wake();
    }
}

/// Purge's snapshot, which cannot move on while this lives.
pub(crate) struct Pinned<'s> {
    snapshot: Arc<Snapshot>,
    slot: &'s ViewSlot,
    before: u64,
}

impl Pinned<'_> {
    pub fn view(&self) -> &ReadView {
        &self.snapshot.view
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.slot.0.store(self.before, Ordering::SeqCst);
    }
}

impl Purge {
    pub fn set_tables(&self, tables: Arc<dyn TableSource>) {
        *self.tables.lock() = Some(tables);
    }

    /// Holds purge at its snapshot for a walk through old versions (rollback). The mutex makes this and `advance` see each other.
    pub fn pin<'s>(&self, slot: &'s ViewSlot) -> Pinned<'s> {
        let snapshot = self.published.lock();
        let before = slot.0.load(Ordering::SeqCst);
        slot.0.store(before.min(snapshot.view.version), Ordering::SeqCst);
        Pinned { snapshot: snapshot.clone(), slot, before }
    }

    /// Takes a newer snapshot into use if no older view is open.
    /// What everybody sees before the first session begins: all that had committed when the system was opened. Without
    /// it a walk through old versions would not know where to stop, and run into logs that were purged before.
    pub fn publish_first(&self, system: &System) {
        *self.published.lock() = Arc::new(system.active.snapshot());
    }

    fn advance(&self, system: &System) -> Arc<Snapshot> {
        let mut pending = self.pending.lock();
        let candidate = pending.take().unwrap_or_else(|| system.active.snapshot());
        let mut published = self.published.lock();
        if system.views.oldest() >= candidate.view.version {
            *published = Arc::new(candidate);
        } else {
            *pending = Some(candidate);
        }
        published.clone()
    }

    /// Whether background work is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub fn note_dead_row(&self, row: DeadRow) {
        self.dead_rows.lock().push(row);
    }

    /// There is history: a sleeping task wakes.
    pub fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.lock().set();
        }
    }

    /// Starts the task.
    pub fn spawn(system: &Arc<System>) {
        let weak = Arc::downgrade(system);
        let env = system.env.clone();
        let task = async move {
            let mut idle = 0;
            while let Some(system) = weak.upgrade() {
                let purge = &system.purge;
                if purge.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let done = if purge.paused.load(Ordering::SeqCst) == 0 {
                    let _turn = purge.turn.take().await;
                    run_batch(&system, true).await
                } else {
                    Ok(0)
                };
                match done {
                    Ok(0) => idle += 1,
                    Ok(_) => idle = 0,
                    Err(error) => {
                        tracing::error!(%error, "purge stopped; old row versions gather until a restart");
                        return;
                    }
                }
                let env = system.env.clone();
                if idle < IDLE_ROUNDS || !system.history.lock().is_empty() {
                    let has_caught_up = system.history.lock().len() < BATCH_LOGS;
                    drop(system);
                    if has_caught_up || idle > 0 {
                        env.sleep(PAUSE).await;
                    }
                    continue;
                }
                let event = Event::new();
                *purge.waker.lock() = event.clone();
                purge.asleep.store(true, Ordering::SeqCst);
                let nothing_came = system.history.lock().is_empty() && !purge.stopped.load(Ordering::SeqCst);
                drop(system);
                if nothing_came {
                    event.wait().await;
                }
                idle = 0;
            }
        };
        env.spawn_worker("purge", Box::pin(task));
    }

    /// Purges until nothing is left that may go.
    pub async fn run_to_end(system: &Arc<System>) -> Result<u64, Error> {
        let _turn = system.purge.turn.take().await;
        let mut total = 0;
        loop {
            let before = system.history.lock().len();
            total += run_batch(system, false).await?;
            let after = system.history.lock().len();
            if after == 0 || after >= before {
                // Once more, as the first look may have used up a snapshot taken long ago.
                total += run_batch(system, false).await?;
                return Ok(total);
            }
        }
    }

    pub async fn pause(system: &Arc<System>) -> PurgePause {
        system.purge.paused.fetch_add(1, Ordering::SeqCst);
        let pause = PurgePause(system.clone());
        drop(system.purge.turn.take().await);
        pause
    }

    pub async fn stop(system: &Arc<System>) {
        system.purge.stopped.store(true, Ordering::SeqCst);
        system.purge.wake();
        drop(system.purge.turn.take().await);
    }
}

/// Purges some logs. Returns the number of undo records gone through.
async fn run_batch(system: &Arc<System>, background: bool) -> Result<u64, Error> {
    let Some(tables) = system.purge.tables.lock().clone() else { return Ok(0) };
    let snapshot = system.purge.advance(system);
    let dead_rows = std::mem::take(&mut *system.purge.dead_rows.lock());
    let worker = Worker { system, tables: &*tables, snapshot: &snapshot };
    for row in dead_rows {
        worker.remove_dead_row(&row).await?;
    }
    let logs: Vec<(u64, CommittedLog)> = {
        let history = system.history.lock();
        let ready = history.range(..snapshot.commit_limit);
        ready.take(BATCH_LOGS).map(|(number, log)| (*number, *log)).collect()
    };
    let (next, records) = (Mutex::new(logs.into_iter()), AtomicU64::new(0));
    // Ordered, so that a simulation does the same for the same seed.
    let finished = Mutex::new(BTreeMap::new());
    let lane = || async {
        let interrupted =
            || system.purge.paused.load(Ordering::SeqCst) != 0 || system.purge.stopped.load(Ordering::SeqCst);
        while !(background && interrupted()) {
            let Some((number, log)) = next.lock().next() else { break };
            let gone_through = worker.purge_log(&log).await?;
            records.fetch_add(gone_through, Ordering::Relaxed);
            finished.lock().insert(number, log);
            yield_now().await;
        }
        Ok::<(), Error>(())
    };
    side_by_side((0..LANES).map(|_| lane())).await?;
    let (records, finished) = (records.into_inner(), finished.into_inner());
    let mut heads: BTreeMap<u16, Place> = BTreeMap::new();
    for log in finished.values() {
        heads.insert(log.slot, log.end);
    }
    for (slot, head) in heads {
        while !retry(|| system.undo.advance_head(slot, head)).await? {}
    }
    system.undo.trim().await?;
    let mut history = system.history.lock();
    for number in finished.keys() {
        history.remove(number);
    }
    Counters::add(&system.counters.purged_records, records);
    Ok(records)
}

struct Worker<'w> {
    system: &'w System,
    tables: &'w dyn TableSource,
    snapshot: &'w Snapshot,
}

impl Worker<'_> {
    async fn purge_log(&self, log: &CommittedLog) -> Result<u64, Error> {
        let mut at = Place { page: log.header.page, offset: log.header.offset + LOG_HEADER_LEN as u16 };
        let mut records = 0;
        let mut bytes = Vec::new();
        while at != log.end {
            let Some(place) = retry(|| self.read_record(at, log.end, &mut bytes)).await? else { break };
            self.purge_record(log, place, &bytes).await?;
            at = Place { page: place.page, offset: place.offset + bytes.len() as u16 };
            records += 1;
            if records % 64 == 0 {
                yield_now().await;
            }
        }
        Ok(records)
    }

    /// Copies the record at `at`, or at the start of the next page when this one has no more.
    fn read_record(&self, at: Place, end: Place, bytes: &mut Vec<u8>) -> Result<Option<Place>, Interrupt> {
        let mut at = at;
        loop {
            let page = self.system.undo.read_page(at.page)?;
            if at == end {
                return Ok(None);
            }
            if at.page != end.page && at.offset >= free_of(&page) {
                at = Place::start_of(pagestore::page::next(&page));
                continue;
            }
            let Some(record) = bytes_at(&page, usize::from(at.offset)) else {
                return Err(corrupt(at.page, "no undo record starts where one should").into());
            };
            bytes.clear();
            bytes.extend_from_slice(record);
            return Ok(Some(at));
        }
    }

    async fn purge_record(&self, log: &CommittedLog, place: Place, bytes: &[u8]) -> Result<(), Error> {
        let Some(undo) = UndoRecord::parse(bytes) else {
            return Err(corrupt(place.page, "an undo record cannot be read"));
        };
        if !undo.kind.has_old_version() {
            return Ok(());
        }
        let Some(table) = self.tables.table(undo.table) else { return Ok(()) };
        let roll_ptr = RollPtr::new(false, log.slot, place.page, place.offset).0;
        match self.purge_change(&table, &undo, log.trx_id, roll_ptr, place, bytes).await {
            // Dropped meanwhile.
            Err(Error::Store(pagestore::Error::NoSuchSpace(_))) => Ok(()),
            result => result,
        }
    }

    async fn purge_change(
        &self,
        table: &Table,
        undo: &UndoRecord<'_>,
        trx_id: u64,
        roll_ptr: u64,
        place: Place,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if undo.kind != UndoKind::Revive {
            for secondary in &table.secondaries {
                if undo.kind == UndoKind::DeleteMark || touches(table, secondary, undo) {
                    self.purge_entry(table, secondary, undo).await?;
                }
            }
        }
        if undo.kind == UndoKind::DeleteMark {
            let key: KeyFields<'_> = undo.key.iter().map(|field| field.inline()).collect();
            return self.remove_row(table, &key, trx_id, roll_ptr).await;
        }
        for (_, field) in &undo.changed {
            if let FieldRef::External { reference, .. } = field {
                free_noted_chain(self.system, &table.clustered, place, bytes, reference).await?;
            }
        }
        Ok(())
    }

    /// Removes the entry of the old version, if no version in sight has it.
    async fn purge_entry(
        &self,
        table: &Table,
        secondary: &Secondary,
        undo: &UndoRecord<'_>,
    ) -> Result<(), Error> {
        let known = |part: &crate::SecondaryField| {
            undo.old_field(table.field_of_column(part.column) as u16).is_some()
        };
        // An index that is younger than the undo record never had this entry.
        if !secondary.columns.iter().all(known) {
            return Ok(());
        }
        let mut entry = OwnedKey::new();
        let field = |position: usize| undo.old_field(position as u16).unwrap_or(FieldRef::Null);
        retry(|| build_entry(table, secondary, field, &mut entry)).await?;
        let fields = entry.fields();
        let wanted = |record: RecordRef<'_>| {
            Ok(record.is_deleted()
                && !is_entry_needed(self.system, table, secondary, &fields, false, &self.snapshot.view)?)
        };
        remove_record(self.system, &secondary.tree, &fields, wanted, &[]).await.map(drop)
    }

    /// Removes a row if its last change is the deletion with this roll pointer.
    async fn remove_row(
        &self,
        table: &Table,
        key: &KeyFields<'_>,
        trx_id: u64,
        roll_ptr: u64,
    ) -> Result<(), Error> {
        let is_dead = |record: RecordRef<'_>| {
            record.is_deleted() && record.trx_id() == trx_id && record.roll_ptr() == roll_ptr
        };
        let find = || {
            let found =
                table.clustered.get(key, |record| is_dead(record).then(|| external_references(record)))?;
            Ok(found.flatten())
        };
        let chains: Option<SmallVec<[Reference; 2]>> = retry(find).await?;
        let Some(chains) = chains else { return Ok(()) };
        free_chain_tails(&table.clustered, &chains).await?;
        remove_record(self.system, &table.clustered, key, |record| Ok(is_dead(record)), &chains)
            .await
            .map(drop)
    }

    async fn remove_dead_row(&self, row: &DeadRow) -> Result<(), Error> {
        // If its deletion is not seen by all, the log of the deletion has not been purged and will do it.
        if !self.snapshot.view.sees(row.trx_id) {
            return Ok(());
        }
        let Some(table) = self.tables.table(row.table) else { return Ok(()) };
        match self.remove_row(&table, &row.key.fields(), row.trx_id, row.roll_ptr).await {
            Err(Error::Store(pagestore::Error::NoSuchSpace(_))) => Ok(()),
            result => result,
        }
    }
}

/// Whether an update changed a field of the index.
fn touches(table: &Table, secondary: &Secondary, undo: &UndoRecord<'_>) -> bool {
    secondary.columns.iter().any(|part| {
        let position = table.field_of_column(part.column) as u16;
        undo.changed.iter().any(|(changed, _)| *changed == position)
    })
}
