//! Purge: removing what no read view can see any more.
//!
//! Committed undo logs wait in the **history**, by commit number. Purge takes a [`PurgeView`] of the active
//! set and waits until no older read view is open; then every view sees at least what the snapshot sees, and
//! the logs below its commit limit may go. For each of their records it removes delete-marked entries of
//! secondary indexes that no version in sight has, then the delete-marked row itself if the record was its
//! last change, and frees off-page values that were replaced. Afterwards the directory of the undo tablespace
//! forgets the logs.
//!
//! Every step can be repeated after a crash: a removal looks for a delete mark and the right roll pointer, a
//! freed off-page value is struck out of the undo record in the same mini-transaction. Older records of the
//! row may name the same value; see [`record`].
//!
//! One task purges at a time ([`PurgeTurn`]), in batches ([`batch`]): their records are read, and worked off
//! by several workers and in several lanes of each. All records of one row are in one lane, in the order of
//! the commits. The turn lasts until the last of the workers has ended, also when the caller that began the
//! batch was dropped: who has the turn, or a [pause](PurgePause), is alone.
//!
//! While somebody has a pause no record is purged, by whomever it is asked for; a batch that meets a pause
//! ends there.
//!
//! A damaged page costs what is on it: the records that need it are passed over, a log that cannot be read is
//! left with its slot until the next start, both with an error in the log, and purge goes on.

mod batch;
mod record;
mod row_order;
mod turn;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use disk::Event;
use parking_lot::Mutex;

use crate::error::Error;
use crate::read_view::{ReadView, ViewSlot};
use crate::system::System;
use crate::table::TableSource;
use crate::transaction_ids::PurgeView;
use crate::undo::Place;
use batch::{BATCH_LOGS, run_batch};
use turn::PurgeTurn;
pub(crate) use turn::TurnGuard;

/// How long the task lets history gather, when it has caught up.
const PAUSE: Duration = Duration::from_millis(20);
/// The same when there is no history, but the undo tablespace waits to be cut.
const LONG_PAUSE: Duration = Duration::from_millis(200);
/// Empty rounds after which the task sleeps until a commit wakes it.
const IDLE_ROUNDS: u32 = 50;
/// How long it leaves alone what failed for a reason that may pass (a full disk, a read error).
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// State of purge.
#[derive(Default)]
pub(crate) struct Purge {
    tables: Mutex<Option<Arc<dyn TableSource>>>,
    /// What purge works with: every open view sees at least this.
    published: Mutex<Arc<PurgeView>>,
    /// Waits for older views to close.
    pending: Mutex<Option<PurgeView>>,
    /// How far the oldest log has been purged, when it is longer than a batch: its commit number, and where
    /// it goes on.
    resume: Mutex<Option<(u64, Place)>>,
    turn: Arc<PurgeTurn>,
    paused: AtomicUsize,
    stopped: AtomicBool,
    /// The task sleeps until `waker` is set.
    asleep: AtomicBool,
    waker: Mutex<Event>,
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
    snapshot: Arc<PurgeView>,
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
        self.slot.version.store(self.before, Ordering::SeqCst);
    }
}

impl Purge {
    /// Whether background work is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub fn set_tables(&self, tables: Arc<dyn TableSource>) {
        *self.tables.lock() = Some(tables);
    }

    /// Holds purge at its snapshot for a walk through old versions (rollback). The mutex makes this and
    /// `advance` see each other.
    pub fn pin<'s>(&self, slot: &'s ViewSlot) -> Pinned<'s> {
        let snapshot = self.published.lock();
        let before = slot.version.load(Ordering::SeqCst);
        slot.version.store(before.min(snapshot.view.version), Ordering::SeqCst);
        Pinned { snapshot: snapshot.clone(), slot, before }
    }

    /// What everybody sees before the first session begins: all that had committed when the system was
    /// opened. Without it a walk through old versions would not know where to stop, and run into logs that
    /// were purged before.
    pub fn publish_first(&self, system: &System) {
        *self.published.lock() = Arc::new(system.active.snapshot());
    }

    /// Takes a newer snapshot into use if no older view is open.
    fn advance(&self, system: &System) -> Arc<PurgeView> {
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

    /// Keeps purge from beginning a batch until the answer is dropped.
    pub async fn take_turn(&self) -> TurnGuard {
        self.turn.take().await
    }

    fn is_interrupted(&self) -> bool {
        self.paused.load(Ordering::SeqCst) != 0 || self.stopped.load(Ordering::SeqCst)
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
            let mut complained = false;
            while let Some(system) = weak.upgrade() {
                let purge = &system.purge;
                if purge.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let done = if purge.paused.load(Ordering::SeqCst) == 0 {
                    let turn = Arc::new(purge.turn.take().await);
                    run_batch(&system, &turn).await
                } else {
                    Ok(0)
                };
                match done {
                    Ok(0) => idle += 1,
                    Ok(_) => (idle, complained) = (0, false),
                    Err(error) if is_final(&error) => {
                        tracing::error!(%error, "purge stopped; old row versions gather until a restart");
                        return;
                    }
                    Err(error) => {
                        if !complained {
                            tracing::error!(%error, "purge failed and tries again");
                            complained = true;
                        }
                        let env = system.env.clone();
                        drop(system);
                        env.sleep(AFTER_FAILURE).await;
                        continue;
                    }
                }
                let env = system.env.clone();
                if idle < IDLE_ROUNDS || !system.history.is_empty() || system.undo.is_truncating() {
                    let has_caught_up = system.history.len() < BATCH_LOGS as u64;
                    // Nothing but a truncation that waits for somebody.
                    let only_waits = idle >= IDLE_ROUNDS && system.history.is_empty();
                    drop(system);
                    if has_caught_up || idle > 0 {
                        env.sleep(if only_waits { LONG_PAUSE } else { PAUSE }).await;
                    }
                    continue;
                }
                let event = Event::new();
                *purge.waker.lock() = event.clone();
                purge.asleep.store(true, Ordering::SeqCst);
                let nothing_came = system.history.is_empty() && !purge.stopped.load(Ordering::SeqCst);
                drop(system);
                if nothing_came {
                    event.wait().await;
                }
                idle = 0;
            }
        };
        env.spawn_worker("purge", Box::pin(task));
    }

    /// Purges until nothing is left that may go, or somebody pauses purge.
    pub async fn run_to_end(system: &Arc<System>) -> Result<u64, Error> {
        let mut total = 0;
        loop {
            // Asked for each batch: a rollback may wait for it.
            let turn = Arc::new(system.purge.turn.take().await);
            let before = system.history.len();
            let records = run_batch(system, &turn).await?;
            total += records;
            if system.history.is_empty() || records == 0 && system.history.len() >= before {
                // Once more, as the first look may have used up a snapshot taken long ago.
                total += run_batch(system, &turn).await?;
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

/// Whether nothing can be changed any more until a restart.
pub(crate) fn is_final(error: &Error) -> bool {
    matches!(error, Error::Store(pagestore::Error::Poisoned(_) | pagestore::Error::ReadOnly(_)))
}

/// Whether a page does not hold what it should. What else is on it, and on others, is not concerned.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::UndoCorrupt { .. } | Error::Store(pagestore::Error::Corrupt { .. }))
}
