//! Time, background tasks and blocking, behind one trait, so that the simulator can own all three.
//!
//! The engine never starts a thread, reads a clock or sleeps by itself; it asks its environment. Tasks given
//! to [`Environment::spawn`] do short work between awaits: they share one thread.

use crate::{Event, Storage};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A background task or a sleep.
pub type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where an engine lives: clock, storage, tasks, randomness.
pub trait Environment: Send + Sync {
    /// Monotonic time since the environment was made.
    fn now(&self) -> Duration;

    /// Wall-clock time since 1970-01-01 00:00:00 UTC.
    fn unix_time(&self) -> Duration;

    /// The files.
    fn storage(&self) -> &Arc<dyn Storage>;

    /// Runs `task` in the background until it ends or the environment is shut down. `name` is for logs.
    fn spawn(&self, name: &'static str, task: TaskFuture);

    /// As [`Environment::spawn`], for tasks that change pages (purge, rollback). They have a few threads of
    /// their own: such a task may have to wait for a page latch whose holder waits, blocked, for what the
    /// page cleaner provides.
    fn spawn_worker(&self, name: &'static str, task: TaskFuture);

    /// As [`Environment::spawn`], for tasks that may block for files: statements that change definitions.
    /// Neither the page cleaner nor purge waits for them.
    fn spawn_blocking(&self, name: &'static str, task: TaskFuture) {
        self.spawn_worker(name, task);
    }

    /// As [`Environment::spawn_blocking`], for tasks that use somebody else's disk, which may not answer for
    /// longer than anybody may wait: neither do the tasks of the others, nor the next of this kind, nor a
    /// shutdown.
    fn spawn_apart(&self, name: &'static str, task: TaskFuture) {
        self.spawn_blocking(name, task);
    }

    /// A future that completes `duration` after its first poll or later.
    fn sleep(&self, duration: Duration) -> TaskFuture;

    /// Blocks the calling thread until `event` is set. Never call it from a background task or a completion
    /// callback: the thread that would set the event may be the one that blocks. (The simulator runs
    /// completions, then tasks, until the event is set.)
    fn block_until(&self, event: &Event);

    /// A random number: from the operating system, or from the seed of the simulation.
    fn random_u64(&self) -> u64;

    /// How many threads may work in this environment at a time. The simulator has one.
    fn threads_max(&self) -> usize {
        usize::MAX
    }
}
