//! A simulated environment whose disk takes its time: one request after the other, each at the cost of a
//! request and of its bytes, in virtual time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::probe::Verdict;
use disk::{
    Entry, Environment, Event, FaultKind, File, Io, IoCounters, IoKind, Misbehaviour, OpenHow, Result,
    SimulatedEnvironment, Storage, TaskFuture, allocate_zeros_async,
};
use parking_lot::Mutex;

use super::support::{new_store, options, retry};
use crate::error::Interrupt;

/// What the disk does in a second.
#[derive(Clone, Copy)]
pub(super) struct Speed {
    pub(super) requests: f64,
    pub(super) bytes: f64,
}

/// When the disk is done with what it was asked for, and how fast it is now.
struct Queue {
    busy_until: Duration,
    speed: Option<Speed>,
}

#[derive(Clone)]
struct Disk {
    env: Arc<SimulatedEnvironment>,
    queue: Arc<Mutex<Queue>>,
}

impl Disk {
    /// How long a request of `bytes` takes that comes now.
    fn enter(&self, bytes: usize) -> Duration {
        let (now, mut queue) = (self.env.now(), self.queue.lock());
        let Some(Speed { requests, bytes: per_second }) = queue.speed else { return Duration::ZERO };
        let cost = Duration::from_secs_f64(1.0 / requests + bytes as f64 / per_second);
        queue.busy_until = queue.busy_until.max(now) + cost;
        queue.busy_until - now
    }

    /// Until a request of a thread that waits for it would be done.
    fn wait(&self, bytes: usize) {
        let takes = self.enter(bytes);
        if !takes.is_zero() {
            let (over, sleep) = (Event::new(), self.env.sleep(takes));
            let set = over.clone();
            self.env.spawn(
                "disk",
                Box::pin(async move {
                    sleep.await;
                    set.set();
                }),
            );
            self.env.block_until(&over);
        }
    }
}

/// The environment.
pub(super) struct PacedEnvironment {
    disk: Disk,
    storage: Arc<dyn Storage>,
}

impl PacedEnvironment {
    /// As fast as nothing is, until [`PacedEnvironment::pace`].
    pub(super) fn new(env: &Arc<SimulatedEnvironment>) -> Arc<PacedEnvironment> {
        let queue = Arc::new(Mutex::new(Queue { busy_until: Duration::ZERO, speed: None }));
        let disk = Disk { env: env.clone(), queue };
        let storage = PacedStorage { inner: env.storage().clone(), disk: disk.clone() };
        Arc::new(PacedEnvironment { disk, storage: Arc::new(storage) })
    }

    pub(super) fn pace(&self, speed: Speed) {
        self.disk.queue.lock().speed = Some(speed);
    }
}

impl Environment for PacedEnvironment {
    fn now(&self) -> Duration {
        self.disk.env.now()
    }
    fn unix_time(&self) -> Duration {
        self.disk.env.unix_time()
    }
    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }
    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.disk.env.spawn(name, task);
    }
    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.disk.env.spawn_worker(name, task);
    }
    fn sleep(&self, duration: Duration) -> TaskFuture {
        self.disk.env.sleep(duration)
    }
    fn block_until(&self, event: &Event) {
        self.disk.env.block_until(event);
    }
    fn random_u64(&self) -> u64 {
        self.disk.env.random_u64()
    }
    fn threads_max(&self) -> usize {
        1
    }
}

struct PacedStorage {
    inner: Arc<dyn Storage>,
    disk: Disk,
}

impl Storage for PacedStorage {
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        self.disk.wait(0);
        let inner = self.inner.open(path, how)?;
        Ok(Arc::new(PacedFile { inner, disk: self.disk.clone() }))
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        self.inner.list(path)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.inner.lock(path)
    }
    fn counters(&self) -> IoCounters {
        self.inner.counters()
    }

    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        for (file, io) in batch {
            let Some(file) = file.as_any().downcast_ref::<PacedFile>() else {
                panic!("another storage's file")
            };
            let (inner, storage, env) = (file.inner.clone(), self.inner.clone(), self.disk.env.clone());
            let takes = self.disk.enter(match &io.kind {
                IoKind::Read { buf, .. } | IoKind::Write { buf, .. } => buf.len(),
                // Whatever its length, no bytes go to the disk.
                IoKind::AllocateZeros { .. } | IoKind::Sync => 0,
            });
            let done = async move {
                env.sleep(takes).await;
                storage.submit(vec![(inner, io)]);
            };
            self.disk.env.spawn("disk", Box::pin(done));
        }
    }
}

struct PacedFile {
    inner: Arc<dyn File>,
    disk: Disk,
}

impl File for PacedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.disk.wait(buf.len());
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.disk.wait(buf.len());
        self.inner.write_at(buf, offset)
    }
    fn sync_data(&self) -> Result<()> {
        self.disk.wait(0);
        self.inner.sync_data()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }
    fn write_zeros(&self, from: u64, to: u64) -> Result<()> {
        self.disk.wait((to - from) as usize);
        self.inner.write_zeros(from, to)
    }
    fn allocate_zeros(&self, from: u64, to: u64) -> Result<bool> {
        self.disk.wait(0);
        self.inner.allocate_zeros(from, to)
    }
    fn is_direct(&self) -> bool {
        self.inner.is_direct()
    }
    fn io_alignment(&self) -> usize {
        self.inner.io_alignment()
    }
    fn protection(&self, page_bytes: usize) -> Verdict {
        self.inner.protection(page_bytes)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// It takes a request, and is done or refused by the disk behind.
#[test]
fn a_reservation_of_blocks_comes_to_the_disk() {
    let env = SimulatedEnvironment::new(1);
    let paced = PacedEnvironment::new(&env);
    let storage = paced.storage();
    storage.create_dir_all(Path::new("/data")).unwrap();
    let file = storage.open(Path::new("/data/t.ibd"), OpenHow::CREATE_NEW).unwrap();
    let allocate = || env.run_until_complete(allocate_zeros_async(&**storage, &file, 8192, 16384));
    assert!(!allocate().unwrap() && !file.allocate_zeros(0, 8192).unwrap(), "the disk cannot");
    env.disk().offer_allocation();
    assert!(file.allocate_zeros(0, 8192).unwrap());
    paced.pace(Speed { requests: 1.0, bytes: 1e9 });
    let begun = env.now();
    assert!(allocate().unwrap());
    assert!(env.now() - begun >= Duration::from_secs(1));
    assert_eq!(env.disk().allocations(), 2);
    for kind in [FaultKind::Enospc, FaultKind::Eio] {
        env.disk().misbehave("t.ibd", Misbehaviour::FailWrite(kind), 1);
        assert!(allocate().is_err() && file.allocate_zeros(0, 8192).is_err(), "{kind:?}");
        env.disk().behave();
    }
    env.shutdown();
}

/// Who asks for it has its thread back at once, and everybody goes on while the disk is at it.
#[test]
fn the_growth_of_a_file_blocks_nobody() {
    const TICK: Duration = Duration::from_millis(100);
    let env = SimulatedEnvironment::new(1);
    let paced = PacedEnvironment::new(&env);
    let dynamic: Arc<dyn Environment> = paced.clone();
    dynamic.storage().create_dir_all(Path::new("/data")).unwrap();
    let store = new_store(&dynamic, Path::new("/data"), options(64, 4096), 1 << 20);
    store.create_space(9, Path::new("/data/t.ibd"), 16).unwrap();
    let ticks = Arc::new(AtomicU64::new(0));
    let ticking = {
        let (env, ticks) = (env.clone(), ticks.clone());
        async move {
            loop {
                env.sleep(TICK).await;
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    env.spawn_worker("ticks", Box::pin(ticking));
    env.disk().offer_allocation();
    paced.pace(Speed { requests: 1.0, bytes: 1e9 });
    let begun = env.now();
    assert!(matches!(store.extend_space(9, 300), Err(Interrupt::Wait(_))));
    assert_eq!(env.now(), begun, "who asked has waited");
    env.run_until_complete(retry(|| store.extend_space(9, 300))).unwrap();
    let took = env.now() - begun;
    assert!(env.disk().allocations() == 1 && took >= Duration::from_secs(1), "{took:?}");
    let ticked = TICK * ticks.load(Ordering::Relaxed) as u32;
    assert!(ticked + 2 * TICK >= took, "others had {ticked:?} of {took:?}");
    env.shutdown();
}
