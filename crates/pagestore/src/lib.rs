//! Tablespaces, the buffer pool and mini-transactions.
//!
//! Code above this crate sees page bytes only through guards ([`PageRead`], [`Mtr`]); a byte changes only
//! through [`Mtr`], whose methods both change and log it.
//!
//! | room | what lives there |
//! |---|---|
//! | `pool` | frames, their latches and pins; looking up, reading and evicting pages; the pool's size |
//! | `flush` | dirty pages: the list, batches, the page cleaner and how much it writes, syncing |
//! | `space` | tablespace files: which are open, how they grow and shrink, whose they are |
//! | `fsp` | what is inside a tablespace: extents, segments, free pages |
//! | `mtr` | mini-transactions |
//! | `recovery` | crash recovery: applies the redo log to pages |

#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
pub mod fsp;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod mtr;
#[cfg(not(loom))]
mod poison;
mod pool;
#[cfg(not(loom))]
mod prefetch;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod recovery;
#[cfg(not(loom))]
mod signal;
#[cfg(not(loom))]
mod space;
#[cfg(not(loom))]
mod status;
#[cfg(not(loom))]
mod store;
mod sync;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests;

#[cfg(not(loom))]
pub use error::{Error, Interrupt};
#[cfg(not(loom))]
pub use flush::log_growth::{LogRose, MostLog};
#[cfg(not(loom))]
pub use flush::reason::{WriteReason, WrittenFor};
#[cfg(not(loom))]
pub use mtr::{Mtr, PageHandle};
#[cfg(not(loom))]
pub use pool::guard::{PageRead, Pin};
#[cfg(not(loom))]
pub use pool::heads::{HEADS_MAX, HEADS_MAX_ABOVE, Heads, HeadsMaker, HeadsRoom, HeadsRoomAbove};
#[cfg(not(loom))]
pub use pool::pointers::Pointers;
#[cfg(not(loom))]
pub use pool::sample::SampledPage;
#[cfg(not(loom))]
pub use pool::warm_up::{WarmUp, warm_up};
#[cfg(not(loom))]
pub use prefetch::prefetch;
#[cfg(not(loom))]
pub use space::file_identity::{FileIdentity, Replaced, remove_space_file, unlink_space_file};
// What a page is, for those above.
#[cfg(not(loom))]
pub use ::page::{self, Lsn, PageId, PageSize};
#[cfg(not(loom))]
pub use recovery::{RecoverySummary, progress::RecoveryProgress, rates::RecoveryRates};
#[cfg(not(loom))]
pub use space::registry::SpaceInfo;
#[cfg(not(loom))]
pub use space::stamp::{FoundStamp, Stamp, read_stamp, stamp_of_file};
#[cfg(not(loom))]
pub use status::PoolStatus;
#[cfg(not(loom))]
pub use store::{Options, PageStore};
