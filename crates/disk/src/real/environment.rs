//! The real machine's environment: time, and the background threads. Which timer fires next is decided in
//! `timer.rs`.
//!
//! A thread named `untorn-tasks` runs the background tasks of an engine (page cleaner, checkpoints, log),
//! several named `untorn-workers` those that change pages (purge, rollback): as many as there are processors,
//! two at least, so that a long rollback does not keep purge waiting, and eight at most. They are apart
//! because a worker may block on a page latch whose holder waits for the cleaner. One named `untorn-files`
//! runs what may block for files (statements that change definitions). A copy has a thread of its own, named
//! `untorn-copies`, which ends with it: its disk may never answer.

use crate::environment::TaskFuture;
use crate::executor::{Next, Scheduler};
use crate::real::backend::Backend;
use crate::real::storage::RealStorage;
use crate::timer::Sleep;
use crate::{Environment, Error, Event, Result, Storage, block_on};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Settings of a [`RealEnvironment`].
#[derive(Clone, Debug, Default)]
pub struct RealOptions {
    /// Forces a backend; `None` tries io_uring first (environment variable `UNTORN_IO=threads` forces
    /// threads).
    pub backend: Option<Backend>,
    /// Never bypass the page cache.
    pub buffered: bool,
}

/// Threads for tasks that change pages: at least and at most.
const WORKERS: (usize, usize) = (2, 8);

/// How often, and how long each time, a shutdown waits for a task that may not return.
const APART_PATIENCE: (u32, Duration) = (100, Duration::from_millis(10));

/// The environment of a production engine.
pub struct RealEnvironment {
    start: Instant,
    real_storage: Arc<RealStorage>,
    storage: Arc<dyn Storage>,
    scheduler: Arc<Scheduler>,
    workers: Arc<Scheduler>,
    blocking: Arc<Scheduler>,
    apart: Mutex<Vec<Apart>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A task that may be in a call that does not return, and its thread.
struct Apart {
    scheduler: Arc<Scheduler>,
    thread: JoinHandle<()>,
}

impl RealEnvironment {
    /// Starts the background threads.
    pub fn new(options: RealOptions) -> Result<RealEnvironment> {
        let real_storage = Arc::new(RealStorage::new(options)?);
        let storage: Arc<dyn Storage> = real_storage.clone();
        let start = Instant::now();
        let environment = RealEnvironment {
            start,
            real_storage,
            storage,
            scheduler: Arc::default(),
            workers: Arc::default(),
            blocking: Arc::default(),
            apart: Mutex::default(),
            threads: Mutex::default(),
        };
        let processors = std::thread::available_parallelism().map_or(WORKERS.0, usize::from);
        let workers = processors.clamp(WORKERS.0, WORKERS.1);
        let tasks = std::iter::once(("untorn-tasks", &environment.scheduler));
        let workers = std::iter::repeat_n(("untorn-workers", &environment.workers), workers);
        let files = std::iter::once(("untorn-files", &environment.blocking));
        for (name, scheduler) in tasks.chain(workers).chain(files) {
            environment.threads.lock().push(start_thread(name, scheduler, Until::Stopped, start)?);
        }
        Ok(environment)
    }

    /// How asynchronous requests reach the kernel.
    pub fn backend(&self) -> Backend {
        self.real_storage.backend()
    }

    /// Drops every background task and joins their thread. Tasks that hold the environment keep it alive
    /// until this is called. Requests under way still complete.
    pub fn shutdown(&self) {
        self.blocking.stop();
        // Nobody adds to them now.
        let mut apart = std::mem::take(&mut *self.apart.lock());
        apart.iter().for_each(|apart| apart.scheduler.stop());
        self.workers.stop();
        self.scheduler.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A task that drops the last reference to its own environment cannot join itself; its thread ends
            // anyway.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
        // They may be in calls that do not return. What they have they keep by themselves.
        let this = std::thread::current().id();
        apart.retain(|apart| apart.thread.thread().id() != this);
        for _ in 0..APART_PATIENCE.0 {
            apart.retain(|apart| !apart.thread.is_finished());
            if apart.is_empty() {
                return;
            }
            std::thread::sleep(APART_PATIENCE.1);
        }
        tracing::warn!("{} copies under way are left behind in calls that do not return", apart.len());
    }
}

/// When a background thread ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Stopped,
    /// With the last of its tasks, once it has got one; or stopped.
    Idle,
}

fn start_thread(
    name: &str,
    scheduler: &Arc<Scheduler>,
    until: Until,
    start: Instant,
) -> Result<JoinHandle<()>> {
    let scheduler = scheduler.clone();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || run_tasks(&scheduler, until, start))
        .map_err(|error| Error::new("start a background thread of", "the engine", error))
}

fn run_tasks(scheduler: &Arc<Scheduler>, until: Until, start: Instant) {
    let now = || start.elapsed();
    while let Next::Run(task) = scheduler.next(&now) {
        // One broken task must not take the cleaner, the purge and the checkpoints with it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.run()));
        if outcome.is_err() {
            tracing::error!(task = task.name, "a background task panicked and has ended");
            task.give_up();
        }
        if until == Until::Idle && scheduler.is_idle() {
            return;
        }
    }
}

impl Drop for RealEnvironment {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Environment for RealEnvironment {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.scheduler.spawn(name, false, task);
    }

    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.workers.spawn(name, true, task);
    }

    fn spawn_blocking(&self, name: &'static str, task: TaskFuture) {
        self.blocking.spawn(name, true, task);
    }

    fn spawn_apart(&self, name: &'static str, task: TaskFuture) {
        let mut apart = self.apart.lock();
        if self.blocking.is_stopped() {
            return self.blocking.spawn(name, true, task);
        }
        apart.retain(|other| !other.thread.is_finished());
        let scheduler: Arc<Scheduler> = Arc::default();
        match start_thread("untorn-copies", &scheduler, Until::Idle, self.start) {
            Ok(thread) => {
                scheduler.spawn(name, true, task);
                apart.push(Apart { scheduler, thread });
            }
            Err(error) => {
                tracing::warn!(%error, "a copy shares the thread of others");
                self.blocking.spawn(name, true, task);
            }
        }
    }

    fn sleep(&self, duration: Duration) -> TaskFuture {
        Box::pin(Sleep::until(&self.scheduler, self.now().saturating_add(duration)))
    }

    fn block_until(&self, event: &Event) {
        if !event.is_set() {
            block_on(event.wait());
        }
    }

    fn random_u64(&self) -> u64 {
        let mut bytes = [0u8; 8];
        loop {
            // SAFETY: the pointer and the length describe `bytes`.
            let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
            // Eight bytes come whole or not at all; only an early signal can interrupt.
            if got == 8 {
                return u64::from_ne_bytes(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Poll;

    /// Longer than anything takes that does not hang.
    const LONG: Duration = Duration::from_secs(60);

    /// Sleeps are over at once when everything is stopped: what works and sleeps in turns ends all the same.
    #[test]
    fn a_task_that_sleeps_again_and_again_ends_with_a_shutdown() {
        let environment = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
        let (go, goes) = std::sync::mpsc::channel::<()>();
        let begun = Event::new();
        let (told, sleeper) = (begun.clone(), environment.clone());
        let task = async move {
            told.set();
            let _ = goes.recv();
            loop {
                sleeper.sleep(Duration::from_millis(1)).await;
            }
        };
        environment.spawn_worker("sleeps", Box::pin(task));
        block_on(begun.wait());
        let stopped = environment.clone();
        let stopping = std::thread::spawn(move || stopped.shutdown());
        block_on(environment.sleep(Duration::from_secs(3600)));
        drop(go);
        stopping.join().unwrap();
    }

    /// A disk that does not answer keeps the thread of a copy, and nothing else: not the next copy either.
    #[test]
    fn a_task_apart_that_does_not_return_holds_up_neither_others_nor_a_shutdown() {
        let environment = RealEnvironment::new(RealOptions::default()).unwrap();
        let (hangs, hung) = std::sync::mpsc::channel::<()>();
        let begun = Event::new();
        let told = begun.clone();
        environment.spawn_apart(
            "hangs",
            Box::pin(async move {
                told.set();
                let _ = hung.recv();
            }),
        );
        environment.block_until(&begun);
        let (tell, told) = std::sync::mpsc::channel();
        let also = tell.clone();
        environment.spawn_blocking("goes on", Box::pin(async move { also.send("files").unwrap() }));
        assert_eq!(told.recv_timeout(LONG), Ok("files"));
        environment.spawn_apart("goes on", Box::pin(async move { tell.send("a copy").unwrap() }));
        assert_eq!(told.recv_timeout(LONG), Ok("a copy"));
        environment.shutdown();
        drop(hangs);
    }

    /// Nor do threads gather: each ends with its task, also with one that panics.
    #[test]
    fn the_thread_of_a_task_apart_ends_with_it() {
        let environment = RealEnvironment::new(RealOptions::default()).unwrap();
        let sleep = environment.sleep(Duration::from_millis(1));
        environment.spawn_apart("sleeps", sleep);
        environment.spawn_apart("panics", Box::pin(async { panic!("as it is meant to") }));
        for ended in std::mem::take(&mut *environment.apart.lock()) {
            ended.thread.join().unwrap();
        }
        environment.shutdown();
        let dropped = Arc::new(());
        let kept = dropped.clone();
        environment.spawn_apart("is dropped", Box::pin(async move { drop(kept) }));
        assert_eq!(Arc::strong_count(&dropped), 1);
        assert!(environment.apart.lock().is_empty(), "it has no thread");
    }

    /// A task that was woken while another thread polled it must be polled again.
    #[test]
    fn no_wake_up_is_lost_between_the_threads_of_the_workers() {
        let environment = RealEnvironment::new(RealOptions::default()).unwrap();
        let (turns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let all = Event::new();
        const TASKS: u64 = 8;
        const TURNS: u64 = 2000;
        for _ in 0..TASKS {
            let (turns, done, all) = (turns.clone(), done.clone(), all.clone());
            let task = async move {
                for _ in 0..TURNS {
                    let mut yielded = false;
                    std::future::poll_fn(|context| {
                        if std::mem::replace(&mut yielded, true) {
                            return Poll::Ready(());
                        }
                        // Ready again before this poll is over: the other threads are free to take it.
                        context.waker().wake_by_ref();
                        std::thread::yield_now();
                        Poll::Pending
                    })
                    .await;
                    turns.fetch_add(1, Ordering::Relaxed);
                }
                if done.fetch_add(1, Ordering::SeqCst) + 1 == TASKS {
                    all.set();
                }
            };
            environment.spawn_worker("test", Box::pin(task));
        }
        environment.block_until(&all);
        assert_eq!(turns.load(Ordering::Relaxed), TASKS * TURNS);
        environment.shutdown();
    }
}
