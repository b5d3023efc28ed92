//! The queues of those who read changes. Their order is that of commits, made under the mutex of the active
//! transactions (`crates/txn/src/transaction.rs`), where `recorder.rs` publishes them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use disk::Event;
use parking_lot::Mutex;
use redo::Flush;
use txn::Snapshot;

use super::recorder::{Commit, PreparedBytes};
use super::{ChangeEvent, ChangeFeedOptions, CommittedChanges};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::private::is_private;
use crate::retry::retry;
use crate::table::Table;

/// The feeds of a database.
#[derive(Default)]
pub(crate) struct Feeds {
    /// There are some.
    any: AtomicBool,
    /// The most that one of them keeps.
    memory_bytes: AtomicUsize,
    pub(super) prepared: PreparedBytes,
    queues: Mutex<Vec<Arc<Queue>>>,
}

/// What one feed has not read.
struct Queue {
    options: ChangeFeedOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Queued>,
    bytes: usize,
    /// Why there is nothing behind the events.
    end: Option<End>,
    /// Set when something comes.
    arrived: Event,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lost,
    Closed,
}

#[derive(Clone)]
enum Queued {
    Commit(Arc<Commit>),
    Redefined { database: String, table: String },
}

impl Queued {
    /// Memory that it takes, roughly.
    fn bytes(&self) -> usize {
        let more = match self {
            Queued::Commit(commit) => commit.bytes,
            Queued::Redefined { database, table } => database.len() + table.len(),
        };
        size_of::<Queued>() + more
    }
}

impl Queue {
    /// Returns what is to be set, by a caller that holds no mutex: it wakes the reader.
    #[must_use]
    fn push(&self, event: Queued) -> Option<Event> {
        let mut state = self.state.lock();
        let bytes = event.bytes();
        if state.end.is_some() {
            return None;
        }
        if state.bytes + bytes > self.options.memory_bytes {
            state.end = Some(End::Lost);
        } else {
            state.bytes += bytes;
            state.events.push_back(event);
        }
        Some(std::mem::take(&mut state.arrived))
    }

    fn wants_any(&self, tables: &[Arc<Table>]) -> bool {
        tables.iter().any(|table| self.options.wants(&table.database, &table.name))
    }

    fn take_first(&self) {
        let mut state = self.state.lock();
        let bytes = state.events.pop_front().map_or(0, |event| event.bytes());
        state.bytes -= bytes;
    }

    /// Begins again.
    fn clear(&self) {
        let mut state = self.state.lock();
        state.events.clear();
        state.bytes = 0;
        if state.end == Some(End::Lost) {
            state.end = None;
        }
    }

    /// Takes off the commits of these transactions.
    fn forget(&self, seen: impl Fn(u64) -> bool) {
        let mut state = self.state.lock();
        state.events.retain(|event| match event {
            Queued::Commit(commit) => !seen(commit.committed.transaction),
            Queued::Redefined { .. } => true,
        });
        state.bytes = state.events.iter().map(Queued::bytes).sum();
    }

    /// As [`Queue::push`].
    #[must_use]
    fn end(&self, why: End) -> Event {
        let mut state = self.state.lock();
        state.end.get_or_insert(why);
        std::mem::take(&mut state.arrived)
    }
}

impl Feeds {
    /// Whether changes are to be recorded. Asked by a transaction that has its id.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    fn add(&self, options: ChangeFeedOptions) -> Arc<Queue> {
        let queue = Arc::new(Queue { options, state: Mutex::default() });
        let mut queues = self.queues.lock();
        queues.push(queue.clone());
        self.note(&queues);
        queue
    }

    fn remove(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|other| !Arc::ptr_eq(other, queue));
        self.note(&queues);
    }

    fn note(&self, queues: &[Arc<Queue>]) {
        let most = queues.iter().map(|queue| queue.options.memory_bytes).max();
        self.memory_bytes.store(most.unwrap_or(0), Ordering::Relaxed);
        self.any.store(most.is_some(), Ordering::Release);
    }

    /// A transaction that changed these tables has committed. Returns the readers to wake.
    pub fn publish(&self, commit: &Arc<Commit>, tables: &[Arc<Table>]) -> Vec<Event> {
        let queues = self.queues.lock();
        let wanting = queues.iter().filter(|queue| queue.wants_any(tables));
        wanting.filter_map(|queue| queue.push(Queued::Commit(commit.clone()))).collect()
    }

    /// A transaction has committed more changes of these tables than any feed can keep. Returns the readers
    /// to wake.
    pub fn lose(&self, tables: &[Arc<Table>]) -> Vec<Event> {
        let queues = self.queues.lock();
        queues.iter().filter(|queue| queue.wants_any(tables)).map(|queue| queue.end(End::Lost)).collect()
    }

    /// A table's definition has changed, or the table has come or gone.
    pub fn redefined(&self, database: &str, table: &str) {
        if !self.any() || is_private(database) {
            return;
        }
        let to_wake: Vec<_> = {
            let queues = self.queues.lock();
            let wanting = queues.iter().filter(|queue| queue.options.wants(database, table));
            let event = || Queued::Redefined { database: database.to_owned(), table: table.to_owned() };
            wanting.filter_map(|queue| queue.push(event())).collect()
        };
        to_wake.into_iter().for_each(|event| event.set());
    }

    /// The database is closed: nothing more will come.
    pub fn close(&self) {
        let to_wake: Vec<_> = self.queues.lock().iter().map(|queue| queue.end(End::Closed)).collect();
        to_wake.into_iter().for_each(|event| event.set());
    }
}

/// Reads the committed changes of rows, in the order of their commits. It ends when the database is closed.
///
/// Dropped, it is gone; what it had not read is forgotten.
pub struct ChangeFeed {
    database: Database,
    queue: Arc<Queue>,
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        self.database.0.tables.feeds.remove(&self.queue);
    }
}

/// Between looks at transactions that are to end.
const PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(20));

impl Database {
    /// A snapshot, and the feed of everything that is committed after it: see [`crate::changes`]. Waits until
    /// the transactions that have changed something have ended.
    ///
    /// # Errors
    /// [`txn::Error::LockWaitTimeout`] when one of them has not ended after
    /// [`Options::lock_wait_timeout`](crate::Options::lock_wait_timeout). [`Error::Closed`].
    pub async fn change_feed(&self, options: ChangeFeedOptions) -> Result<(Snapshot, ChangeFeed)> {
        self.refuse_after_close()?;
        let queue = self.0.tables.feeds.add(options);
        let system = &self.0.system;
        // From here on the queue is removed if this future is dropped.
        let feed = ChangeFeed { database: self.clone(), queue };
        let unaware = system.next_id();
        let environment = self.environment();
        let deadline = environment.now().saturating_add(system.lock_wait_timeout());
        let mut pause = PAUSES.0;
        // What has changed nothing, nobody is told of; prepared, it may stay for long.
        while !system.have_ended(unaware, || self.0.prepared.without_changes()) {
            // Then they never end, and a sleep may be over at once.
            self.refuse_after_close()?;
            if environment.now() >= deadline {
                return Err(Error::Transaction(txn::Error::LockWaitTimeout));
            }
            environment.sleep(pause).await;
            pause = PAUSES.1.min(pause * 2);
        }
        // All that was told by now the snapshot sees, however much it was.
        feed.queue.clear();
        let snapshot = self.snapshot();
        // A commit that it sees was told before it could be seen.
        feed.queue.forget(|transaction| snapshot.sees(transaction));
        // What is copied from the snapshot must be there after a crash, as what is reported must.
        let redo = &self.0.redo;
        let end = redo.current();
        retry(|| redo.flush(end, Flush::Sync)).await?;
        // A close in between has not met the queue.
        self.refuse_after_close()?;
        Ok((snapshot, feed))
    }
}

impl ChangeFeed {
    /// The next event; `None` when the database is closed and everything is read. Waits for it.
    ///
    /// **Dropped**, the future has taken nothing.
    ///
    /// # Errors
    /// [`Error::ChangesLost`] when more was committed than [`ChangeFeedOptions::memory_bytes`] while nobody
    /// read: what came before it has been told. A redo log that cannot be written.
    pub async fn next(&mut self) -> Result<Option<ChangeEvent>> {
        loop {
            let (first, arrived) = {
                let state = self.queue.state.lock();
                match (state.events.front(), state.end) {
                    (Some(first), _) => (Some(first.clone()), Event::already_set()),
                    (None, Some(End::Lost)) => return Err(Error::ChangesLost),
                    (None, Some(End::Closed)) => return Ok(None),
                    (None, None) => (None, state.arrived.clone()),
                }
            };
            let event = match first {
                None => {
                    arrived.wait().await;
                    continue;
                }
                Some(Queued::Redefined { database, table }) => ChangeEvent::Redefined { database, table },
                Some(Queued::Commit(commit)) => {
                    let redo = &self.database.0.redo;
                    retry(|| redo.flush(commit.committed.end, Flush::Sync)).await?;
                    ChangeEvent::Commit(CommittedChanges(commit))
                }
            };
            self.queue.take_first();
            return Ok(Some(event));
        }
    }

    /// Whether an event waits to be read.
    pub fn is_waiting(&self) -> bool {
        !self.queue.state.lock().events.is_empty()
    }
}
