//! What a task waits for, told to the one who polls it.
//!
//! A pending future records the kind of its wait in a thread-local. The one that polled it reads that after
//! the poll, and takes the time. Tasks that do not wait pay nothing.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

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
}

thread_local! {
    static LATEST: Cell<Option<WaitKind>> = const { Cell::new(None) };
}

impl WaitKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [WaitKind; 6] = [
        WaitKind::PageRead,
        WaitKind::FreeFrame,
        WaitKind::LogRoom,
        WaitKind::LogSync,
        WaitKind::RowLock,
        WaitKind::MetadataLock,
    ];

    /// The task that is being polled is not ready because of this.
    pub fn note(self) {
        LATEST.set(Some(self));
    }

    /// What was noted last on this thread; it is forgotten.
    #[inline]
    pub fn take_noted() -> Option<WaitKind> {
        LATEST.take()
    }

    /// The future, which notes this whenever it is not ready.
    pub async fn of<T>(self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            if polled.is_pending() {
                self.note();
            }
            polled
        })
        .await
    }
}
