//! The real machine: kernel files, io_uring or a thread pool, real threads and clocks.

use crate::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How asynchronous requests reach the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// One io_uring ring.
    IoUring,
    /// A few threads with blocking calls.
    Threads,
}

/// Settings of a [`RealEnvironment`].
#[derive(Clone, Debug, Default)]
pub struct RealOptions {
    /// Forces a backend; `None` tries io_uring first (environment variable `UNTORN_IO=threads` forces threads).
    pub backend: Option<Backend>,
    /// Never bypass the page cache.
    pub buffered: bool,
}

/// Files of the operating system.
pub struct RealStorage {}

/// The environment of a production engine.
pub struct RealEnvironment {}

impl RealEnvironment {
    /// Starts the background threads.
    pub fn new(_options: RealOptions) -> Result<RealEnvironment> {
        todo!()
    }
    /// How asynchronous requests reach the kernel.
    pub fn backend(&self) -> Backend {
        todo!()
    }
}

impl Environment for RealEnvironment {
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
#[allow(unused)]
fn unused(_: &Path) {}
