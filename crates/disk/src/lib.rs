//! The ground floor: the only crate that touches files, threads and clocks.
//!
//! Everything above sees three small faces. [`Storage`] and [`File`] are durable bytes: blocking calls for
//! start-up and rare paths, and one asynchronous call, [`Storage::submit`], that takes a whole batch.
//! [`Environment`] is time, background tasks and the way a real thread may block. [`Event`] and [`Wait`] are
//! how anything in the engine waits without blocking a thread. Each face exists twice: once real (direct I/O,
//! io_uring with a thread pool where it is refused) and once simulated (one thread, a seed, a disk that loses
//! and tears what was not synced), so that the engine above cannot tell them apart.
//!
//! Rules the crate keeps for those above: a transfer is whole or an error (short transfers are continued); an
//! error of a sync is reported exactly once and the sync is never retried, because after a failed `fsync` the
//! kernel may have dropped the dirty pages; a buffer given to [`Storage::submit`] lives until its completion
//! ran.
//!
//! `unsafe` is allowed in this crate for page-aligned memory, the ring and raw system calls.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[cfg(not(target_os = "linux"))]
compile_error!("Untorn runs on Linux only: its files need io_uring or Linux's direct I/O");

mod buffer;
mod environment;
mod error;
mod event;
mod executor;
mod file_io;
mod histogram;
mod on_panic;
pub mod probe;
mod random;
mod real;
mod retry;
mod sharded;
mod simulated;
mod storage;
mod submit_and_wait;
pub mod sync;
mod thread_time;
mod timer;
mod wait_kind;

pub use buffer::{ALIGNMENT, AlignedBuf, IoBuf, RawBuf};
pub use environment::{Environment, TaskFuture};
pub use error::{Error, Result};
pub use event::{Event, EventWait, Wait, block_on};
pub use file_io::{FileIo, FileOperations, Operations};
pub use histogram::{Histogram, Times};
pub use on_panic::OnPanic;
pub use random::Random;
pub use real::{
    Backend, RealEnvironment, RealOptions, RealStorage, lock_holder, network_file_system, raise_file_limit,
    room_at,
};
pub use retry::{HeldWaits, Interrupted, retry};
pub use sharded::{SHARDS, ShardedCounters, ShardedHistogram, thread_shard};
pub use simulated::{
    Crash, CrashOutcome, FalseRead, Fault, FaultKind, Misbehaviour, Moment, SimulatedEnvironment,
    SimulatedStorage, interleave,
};
pub use storage::{Entry, File, FileSize, Io, IoCounters, IoDone, IoKind, OpenHow, OpenMode, Storage};
pub use submit_and_wait::{
    FileRequest, Submitted, allocate_zeros_async, read_async, submit_all, submit_each, submit_one,
    sync_async, write_async,
};
pub use thread_time::thread_cpu_time;
pub use wait_kind::{NotedWait, WaitKind};
