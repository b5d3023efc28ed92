//! The real storage with a limit on its room, and files that fail when a test says so. The engine above is
//! the real one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use disk::{
    Entry, Environment, Error, Event, File, Io, IoCounters, IoKind, OpenHow, RealEnvironment, RealOptions,
    Result, Storage, TaskFuture,
};
use parking_lot::Mutex;

/// What is wrong with the disk.
#[derive(Default)]
pub struct Trouble {
    /// Bytes by which files may still grow.
    room: AtomicI64,
    /// Reads of files with this in their names fail.
    failing_reads: Mutex<Option<String>>,
    /// Writes and syncs of them.
    failing_writes: Mutex<Option<String>>,
    /// What the system says to every reservation of blocks: 0, nothing.
    allocation_refusal: AtomicI32,
    /// How often that was asked for.
    allocations: AtomicU64,
}

impl Trouble {
    /// From now on files may grow by this number of bytes.
    pub fn limit_room(&self, bytes: u64) {
        self.room.store(bytes as i64, Ordering::SeqCst);
    }

    pub fn unlimited_room(&self) {
        self.limit_room(1 << 50);
    }

    pub fn fail_reads(&self, part_of_name: &str) {
        *self.failing_reads.lock() = Some(part_of_name.to_owned());
    }

    pub fn fail_writes(&self, part_of_name: &str) {
        *self.failing_writes.lock() = Some(part_of_name.to_owned());
    }

    /// The system answers reservations of blocks with this error. One that is not about room or the device
    /// (EOPNOTSUPP) makes the engine write zeros.
    pub fn refuse_allocations(&self, code: i32) {
        self.allocation_refusal.store(code, Ordering::SeqCst);
    }

    /// How often blocks were to be reserved.
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::SeqCst)
    }

    pub fn heal(&self) {
        self.refuse_allocations(0);
        *self.failing_reads.lock() = None;
        *self.failing_writes.lock() = None;
    }

    fn check(&self, which: &Mutex<Option<String>>, path: &Path, operation: &'static str) -> Result<()> {
        let named = which.lock().as_ref().is_some_and(|part| path.to_string_lossy().contains(part.as_str()));
        if named {
            return Err(Error::new(operation, path, io::Error::from_raw_os_error(libc::EIO)));
        }
        Ok(())
    }

    /// Whether a reservation of blocks up to `end` is to be passed on; if not, it was not done.
    fn allocate(&self, file: &FaultyFile, end: u64) -> Result<bool> {
        self.allocations.fetch_add(1, Ordering::SeqCst);
        self.check(&self.failing_writes, &file.path, "allocate")?;
        match self.allocation_refusal.load(Ordering::SeqCst) {
            0 => self.grow(&*file.real, end).map(|()| true),
            code @ (libc::ENOSPC | libc::EIO) => {
                Err(Error::new("allocate", &file.path, io::Error::from_raw_os_error(code)))
            }
            _ => Ok(false),
        }
    }

    /// Takes the room that a write up to `end` needs beyond what the file has.
    fn grow(&self, file: &dyn File, end: u64) -> Result<()> {
        let more = end.saturating_sub(file.len()?) as i64;
        if more == 0 {
            return Ok(());
        }
        if self.room.fetch_sub(more, Ordering::SeqCst) >= more {
            return Ok(());
        }
        self.room.fetch_add(more, Ordering::SeqCst);
        Err(Error::new("write", file.path(), io::Error::from_raw_os_error(libc::ENOSPC)))
    }
}

pub struct FaultyEnvironment {
    real: Arc<RealEnvironment>,
    storage: Arc<dyn Storage>,
}

impl FaultyEnvironment {
    pub fn new() -> (Arc<FaultyEnvironment>, Arc<Trouble>) {
        let real = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
        let trouble = Arc::new(Trouble::default());
        trouble.unlimited_room();
        let storage = FaultyStorage { real: real.storage().clone(), trouble: trouble.clone() };
        (Arc::new(FaultyEnvironment { real, storage: Arc::new(storage) }), trouble)
    }

    pub fn shutdown(&self) {
        self.real.shutdown();
    }
}

impl Environment for FaultyEnvironment {
    fn now(&self) -> Duration {
        self.real.now()
    }
    fn unix_time(&self) -> Duration {
        self.real.unix_time()
    }
    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }
    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.real.spawn(name, task);
    }
    fn spawn_blocking(&self, name: &'static str, task: TaskFuture) {
        self.real.spawn_blocking(name, task);
    }
    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.real.spawn_worker(name, task);
    }
    fn sleep(&self, duration: Duration) -> TaskFuture {
        self.real.sleep(duration)
    }
    fn block_until(&self, event: &Event) {
        self.real.block_until(event);
    }
    fn random_u64(&self) -> u64 {
        self.real.random_u64()
    }
}

struct FaultyStorage {
    real: Arc<dyn Storage>,
    trouble: Arc<Trouble>,
}

struct FaultyFile {
    real: Arc<dyn File>,
    path: PathBuf,
    trouble: Arc<Trouble>,
}

impl Storage for FaultyStorage {
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        let real = self.real.open(path, how)?;
        Ok(Arc::new(FaultyFile { real, path: path.to_owned(), trouble: self.trouble.clone() }))
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.real.exists(path)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.real.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.real.remove_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.real.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.real.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.real.sync_dir(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        self.real.list(path)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.real.lock(path)
    }
    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        let mut passed = Vec::new();
        for (file, io) in batch {
            let file = file.as_any().downcast_ref::<FaultyFile>().expect("a file of this storage");
            let trouble = &self.trouble;
            let is_passed = match &io.kind {
                IoKind::Read { .. } => {
                    trouble.check(&trouble.failing_reads, &file.path, "read").map(|()| true)
                }
                IoKind::Write { buf, offset, .. } => trouble
                    .check(&trouble.failing_writes, &file.path, "write")
                    .and_then(|()| trouble.grow(&*file.real, offset + buf.len() as u64))
                    .map(|()| true),
                IoKind::AllocateZeros { to, .. } => trouble.allocate(file, *to),
                IoKind::Sync => trouble.check(&trouble.failing_writes, &file.path, "sync").map(|()| true),
            };
            match is_passed {
                Ok(true) => passed.push((file.real.clone(), io)),
                Ok(false) => (io.done)(Ok(io.kind)),
                Err(error) => (io.done)(Err(error)),
            }
        }
        if !passed.is_empty() {
            self.real.submit(passed);
        }
    }
    fn counters(&self) -> IoCounters {
        self.real.counters()
    }
}

impl File for FaultyFile {
    fn path(&self) -> &Path {
        self.real.path()
    }
    fn len(&self) -> Result<u64> {
        self.real.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.trouble.check(&self.trouble.failing_reads, &self.path, "read")?;
        self.real.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.trouble.check(&self.trouble.failing_writes, &self.path, "write")?;
        self.trouble.grow(&*self.real, offset + buf.len() as u64)?;
        self.real.write_at(buf, offset)
    }
    fn sync_data(&self) -> Result<()> {
        self.trouble.check(&self.trouble.failing_writes, &self.path, "sync")?;
        self.real.sync_data()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.trouble.grow(&*self.real, len)?;
        self.real.set_len(len)
    }
    fn write_zeros(&self, from: u64, to: u64) -> Result<()> {
        self.trouble.check(&self.trouble.failing_writes, &self.path, "write")?;
        self.trouble.grow(&*self.real, to)?;
        self.real.write_zeros(from, to)
    }
    fn allocate_zeros(&self, from: u64, to: u64) -> Result<bool> {
        if self.trouble.allocate(self, to)? { self.real.allocate_zeros(from, to) } else { Ok(false) }
    }
    fn is_direct(&self) -> bool {
        self.real.is_direct()
    }
    fn io_alignment(&self) -> usize {
        self.real.io_alignment()
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
