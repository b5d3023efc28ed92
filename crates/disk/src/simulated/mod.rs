//! The simulated machine.

use crate::*;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How a faulty call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The device fails (EIO).
    Eio,
    /// The file system is full (ENOSPC).
    Enospc,
    /// The first attempt transfers less than asked; a correct storage goes on with the rest.
    Short,
    /// From this call on nothing reaches the disk and every call fails: the power is gone.
    PowerLoss,
}

/// A planned fault: the I/O call with this number (counted from 0 since the storage was made) fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Number of the call.
    pub call: u64,
    /// How it fails.
    pub kind: FaultKind,
}

/// A disk in memory that keeps what was synced apart from what was not.
pub struct SimulatedStorage {}

impl SimulatedStorage {
    /// An empty disk. The seed decides in which order requests complete.
    pub fn new(_seed: u64) -> Arc<SimulatedStorage> {
        todo!()
    }
    /// What a power loss at this moment leaves: any subset of the unsynced writes, torn and reordered as `seed` says.
    pub fn crash(&self, _seed: u64) -> Arc<SimulatedStorage> {
        todo!()
    }
    /// Plans a fault.
    pub fn plan(&self, _fault: Fault) {
        todo!()
    }
    /// Number of I/O calls so far.
    pub fn calls(&self) -> u64 {
        todo!()
    }
}

/// One thread, a seed, a virtual clock.
pub struct SimulatedEnvironment {}

impl SimulatedEnvironment {
    /// An environment with an empty disk.
    pub fn new(_seed: u64) -> Arc<SimulatedEnvironment> {
        todo!()
    }
    /// An environment on an existing disk (after a crash).
    pub fn with_storage(_seed: u64, _storage: Arc<SimulatedStorage>) -> Arc<SimulatedEnvironment> {
        todo!()
    }
    /// The disk.
    pub fn disk(&self) -> &Arc<SimulatedStorage> {
        todo!()
    }
    /// Runs tasks, completions and timers until `future` is complete.
    pub fn run_until_complete<F: Future>(&self, _future: F) -> F::Output {
        todo!()
    }
    /// Runs tasks and completions until only timers are left.
    pub fn run_until_idle(&self) {
        todo!()
    }
    /// Moves the clock on by `duration`, running what becomes due.
    pub fn advance(&self, _duration: Duration) {
        todo!()
    }
}

impl Environment for SimulatedEnvironment {
    fn now(&self) -> Duration {
        todo!()
    }
    fn unix_time(&self) -> Duration {
        todo!()
    }
    fn storage(&self) -> &Arc<dyn Storage> {
        todo!()
    }
    fn spawn(&self, _name: &'static str, _task: TaskFuture) {
        todo!()
    }
    fn sleep(&self, _duration: Duration) -> TaskFuture {
        todo!()
    }
    fn block_until(&self, _event: &Event) {
        todo!()
    }
    fn random_u64(&self) -> u64 {
        todo!()
    }
}
