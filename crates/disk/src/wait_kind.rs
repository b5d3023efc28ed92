//! What a task waits for, told to the one who polls it.
//!
//! A pending future records the kind of its wait in a thread-local, and whether that wait has only begun. The
//! one that polled it reads that after the poll, and takes the time. Tasks that do not wait pay nothing.
//! Where the thread itself sleeps (for a latch), it adds the time to another thread-local.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitKind {
    /// A page that is being read.
    PageRead,
    /// A free frame of the buffer pool.
    FreeFrame,
    /// Room in the redo log.
    LogRoom,
    /// The redo log to be written and synced.
    LogSync,
    /// A row lock.
    RowLock,
    /// The use of a name.
    MetadataLock,
    /// A page's latch. The thread sleeps, and all tasks of it with the one that wants the latch.
    Latch,
}

/// Why a poll has ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedWait {
    /// What is waited for.
    pub kind: WaitKind,
    /// A poll before has ended for the same wait: the task was woken to look up, or for something else.
    pub again: bool,
}

impl NotedWait {
    /// Whether this goes on with a wait of that kind, which the poll before has ended for.
    pub fn goes_on_with(self, kind: WaitKind) -> bool {
        self.kind == kind && (self.again || kind.is_for_room())
    }
}

thread_local! {
    static LATEST: Cell<Option<NotedWait>> = const { Cell::new(None) };
    /// Nanoseconds.
    static ASLEEP: Cell<u64> = const { Cell::new(0) };
}

impl WaitKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [WaitKind; 7] = [
        WaitKind::PageRead,
        WaitKind::FreeFrame,
        WaitKind::LogRoom,
        WaitKind::LogSync,
        WaitKind::RowLock,
        WaitKind::MetadataLock,
        WaitKind::Latch,
    ];

    /// Whether a wait of this kind that begins right after another one goes on with it. Notices of free
    /// frames and of room say that there may be enough now; who finds that there is not waits again for the
    /// same. Pages and locks have events of their own.
    fn is_for_room(self) -> bool {
        matches!(self, WaitKind::FreeFrame | WaitKind::LogRoom)
    }

    /// This thread has slept for `took` until it had a latch.
    pub fn add_latch_sleep(took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        ASLEEP.set(ASLEEP.get().saturating_add(nanoseconds));
    }

    /// For how many nanoseconds this thread has slept for latches since the last call.
    #[inline]
    pub fn take_latch_sleep() -> u64 {
        ASLEEP.take()
    }

    /// The task that is being polled is not ready because of this: a wait that begins, or one that was noted
    /// before and goes on.
    pub fn note(self, again: bool) {
        LATEST.set(Some(NotedWait { kind: self, again }));
    }

    /// What was noted last on this thread; it is forgotten.
    #[inline]
    pub fn take_noted() -> Option<NotedWait> {
        LATEST.take()
    }

    /// The future, which notes this whenever it is not ready.
    pub async fn of<T>(self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut again = false;
        poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            if polled.is_pending() {
                self.note(std::mem::replace(&mut again, true));
            }
            polled
        })
        .await
    }
}
