//! Row locks.
//!
//! A lock belongs to an index entry named by *index id and key*, not to a slot of a page, so that page splits
//! and merges need not move it. The gap before an entry belongs to the entry; the gap at the end of an index
//! belongs to its **supremum**. A lock covers the entry, the gap before it, or both (next-key).
//!
//! Most changed rows have no lock here at all: a record whose DB_TRX_ID is an active transaction's is locked
//! by that fact (an **implicit** lock). The first transaction to run into it makes it explicit in the owner's
//! name ([`LockTable::make_explicit`], called by `row/implicit_lock.rs`).
//!
//! ```text
//!   mode      what conflicts with what           table         request and grant
//!   owner     a transaction as lock owner        inheritance   gaps of entries that come and go
//!   shard     where locks lie: singles, queues   release       one lock, or all of a transaction, goes
//!   owner_numbers   for short                 deadlock      the wait-for graph, searched when a wait begins
//!   target    what a lock is on                  wait          one waiting request, its timeout, how it ends
//!   description     the same for people          listing       lists of locks for people
//!   outside_waits   for locks of another kind, whose waits may close a cycle with those here
//! ```
//!
//! The module needs nothing of the rest of the crate, so that loom can explore its interleavings (`models`).
//!
//! Latch order: detector -> shard -> owner's list -> numbers. Never two shards at once. All of it is below
//! page latches: lock requests are made while a leaf is latched, and never wait there; they return a
//! [`LockWait`] to be awaited after the latches are gone. The search for deadlocks belongs to that await: no
//! latch is held while it runs.

mod deadlock;
mod description;
#[cfg(all(test, not(loom)))]
mod golden;
mod inheritance;
mod listing;
mod mode;
#[cfg(all(test, loom))]
mod models;
mod outside_waits;
mod owner;
mod owner_numbers;
mod release;
mod shard;
mod table;
mod target;
#[cfg(all(test, not(loom)))]
mod tests;
mod wait;

pub use deadlock::{Deadlock, DeadlockMember, DeadlockWitness};
pub use description::LockDescription;
#[cfg(not(loom))]
pub use listing::WaitInfo;
pub use listing::{RowLock, RowLocks, RowWaitEdge};
pub use mode::WaitPolicy;
pub(crate) use mode::{Extent, LockMode};
pub use outside_waits::{Companion, OutsideWaits, RowOwner, RowSearch, RowWait, RowWaits};
pub(crate) use owner::{Owner, OwnerEpoch};
pub(crate) use release::Release;
pub(crate) use table::{Acquired, LockTable};
pub(crate) use target::LockTarget;
#[cfg(not(loom))]
pub(crate) use wait::either;
pub(crate) use wait::{LockWait, WaitState};
