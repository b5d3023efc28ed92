//! One waiting request, and the ways its wait can end.
//!
//! The one who ends a wait moves the cell out of `Waiting` exactly once, under the mutex of the lock's shard,
//! and takes the request out of the queue or marks it granted in the same critical section. So the waiter,
//! whatever woke it, looks at the cell under that mutex and finds the one truth: a grant and a timeout cannot
//! both happen.

use std::sync::Arc;
#[cfg(not(loom))]
use std::time::Duration;

use disk::sync::Notice;
use disk::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(not(loom))]
use disk::{Environment, WaitKind};

use super::owner::Owner;
use super::table::LockTable;
use super::target::LockTarget;
use super::{Extent, LockMode};
#[cfg(not(loom))]
use crate::error::Error;

/// How a wait stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitState {
    Waiting,
    Granted,
    /// The entry is gone or its gap has changed: look again.
    Retry,
    Deadlock,
    Killed,
    /// The memory for locks is used up.
    NoRoom,
}

impl WaitState {
    fn from_u8(value: u8) -> WaitState {
        use WaitState::*;
        [Waiting, Granted, Retry, Deadlock, Killed, NoRoom][usize::from(value)]
    }
}

/// Shared by the waiter and the one who ends the wait.
#[derive(Default)]
pub(crate) struct WaitCell {
    state: AtomicU8,
    /// When the await began (`Environment::now`, nanoseconds).
    began: AtomicU64,
    event: Notice,
}

impl WaitCell {
    pub fn state(&self) -> WaitState {
        WaitState::from_u8(self.state.load(Ordering::Acquire))
    }

    /// Ends the wait. Call with the shard locked; wake with [`Self::wake`] after unlocking.
    pub fn end(&self, state: WaitState) -> bool {
        let waiting = WaitState::Waiting as u8;
        self.state.compare_exchange(waiting, state as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn wake(&self) {
        self.event.set();
    }

    /// When the await began.
    pub fn began(&self) -> u64 {
        self.began.load(Ordering::Relaxed)
    }
}

/// A request that waits in a queue. Dropping it takes the request back.
pub(crate) struct LockWait {
    pub(super) table: Arc<LockTable>,
    pub(super) owner: Arc<Owner>,
    pub(super) target: LockTarget,
    pub(super) mode: LockMode,
    pub(super) cell: Arc<WaitCell>,
    pub(super) finished: bool,
}

impl LockWait {
    /// Waits for the lock. `Ok` means granted or worth another look; either way the caller must repeat its
    /// step, since the index may have changed meanwhile.
    #[cfg(not(loom))]
    pub async fn wait(mut self, env: &dyn Environment, timeout: Duration) -> Result<(), Error> {
        let counted = Counted::begin(self.table.clone(), self.owner.clone(), env);
        self.cell.began.store(counted.started.as_nanos() as u64, Ordering::Relaxed);
        self.search();
        let granted = self.cell.event.wait();
        {
            let table = self.table.clone();
            let _listed = table.outside.wait_begins(&self.owner);
            WaitKind::RowLock.of(either(granted, env.sleep(timeout))).await;
        }
        let result = match self.finish() {
            WaitState::Waiting => Err(Error::LockWaitTimeout),
            WaitState::Deadlock => Err(Error::Deadlock),
            WaitState::Killed => Err(Error::Killed),
            WaitState::NoRoom => Err(Error::LockTableFull),
            WaitState::Retry | WaitState::Granted => Ok(()),
        };
        if matches!(result, Err(Error::LockWaitTimeout)) {
            self.table.counters.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// The same in a model: without a timeout.
    #[cfg(all(test, loom))]
    pub fn wait_in_model(mut self) -> WaitState {
        self.search();
        self.cell.event.wait();
        self.finish()
    }

    /// Looks for a deadlock that this wait closes. It may end the wait.
    pub(super) fn search(&self) {
        if self.table.detect_deadlocks.load(Ordering::Relaxed) && self.cell.state() == WaitState::Waiting {
            self.table.search_deadlock(&self.owner);
        }
    }

    /// How the wait has ended; [`WaitState::Waiting`] when it has not: the request is taken back then.
    pub(super) fn finish(&mut self) -> WaitState {
        self.finished = true;
        let state = self.table.end_wait(&self.owner, self.target, &self.cell);
        // A granted wish to insert guards nothing: it only says that the way was free.
        if state == WaitState::Granted && self.mode.extent == Extent::InsertIntention {
            self.table.release(&self.owner, self.target, self.mode);
        }
        state
    }
}

/// A wait that is among the figures, however it ends.
#[cfg(not(loom))]
struct Counted<'e> {
    table: Arc<LockTable>,
    owner: Arc<Owner>,
    env: &'e dyn Environment,
    started: Duration,
}

#[cfg(not(loom))]
impl<'e> Counted<'e> {
    fn begin(table: Arc<LockTable>, owner: Arc<Owner>, env: &'e dyn Environment) -> Counted<'e> {
        table.counters.wait_started();
        Counted { table, owner, env, started: env.now() }
    }
}

#[cfg(not(loom))]
impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let took = self.env.now().saturating_sub(self.started);
        self.owner.lock_wait_nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.table.counters.wait_finished(took);
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // The session gave up (its future was dropped): a lock granted meanwhile stays until the transaction
        // ends. The guard of a key must not: its holder is not looked at when deadlocks are searched, as it
        // waits for nobody.
        if self.finish() == WaitState::Granted && self.target.is_key_guard() {
            self.table.release(&self.owner, self.target, self.mode);
        }
    }
}

/// Completes when one of the two does.
#[cfg(not(loom))]
pub(crate) async fn either(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let mut first = std::pin::pin!(first);
    let mut second = std::pin::pin!(second);
    std::future::poll_fn(|context| {
        if first.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        second.as_mut().poll(context)
    })
    .await;
}
