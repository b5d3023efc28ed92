//! The simulated machine: one thread, a seed, a virtual clock and a disk that forgets what was not synced.
//!
//! Everything that is open on a real machine is decided by the seed: which ready task runs next, which
//! request under way completes next, how long it took, what a power loss leaves. Nothing depends on
//! addresses, hash order or real time, so the same seed gives the same history (`SimulatedStorage::history`
//! proves it), and a failure found by a seed is replayed by that seed.
//!
//! Three things can be asked of the disk besides serving: the states that a crash at some moment may leave
//! ([`Moment`], [`Crash`]), calls that fail ([`Fault`]), and calls that lie ([`Misbehaviour`]; [`FalseRead`]
//! is what came of it).

mod content;
mod crash;
mod environment;
mod false_reads;
mod faults;
mod file;
mod image;
mod interleave;
mod names;
mod storage;
mod transfer;

pub use crash::{Crash, CrashOutcome, Moment};
pub use environment::SimulatedEnvironment;
pub use false_reads::FalseRead;
pub use faults::{Fault, FaultKind, Misbehaviour};
pub use interleave::interleave;
pub use storage::SimulatedStorage;
