//! The simulated machine: one thread, a seed, a virtual clock and a disk that forgets what was not synced.
//!
//! Everything that is open on a real machine is decided by the seed: which ready task runs next, which request under
//! way completes next, how long it took, what a power loss leaves. Nothing depends on addresses, hash order or real
//! time, so the same seed gives the same history (`SimulatedStorage::history` proves it), and a failure found by a
//! seed is replayed by that seed.

mod environment;
mod file;
mod image;
mod names;
mod storage;

pub use environment::SimulatedEnvironment;
pub use storage::{Fault, FaultKind, SimulatedStorage};
