//! The real storage with a limit on its room, and files that fail when a test says so. The engine above is
//! the real one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
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

    pub fn heal(&self) {
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
            let refused = match &io.kind {
                IoKind::Read { .. } => self.trouble.check(&self.trouble.failing_reads, &file.path, "read"),
                IoKind::Write { buf, offset, .. } => self
                    .trouble
                    .check(&self.trouble.failing_writes, &file.path, "write")
                    .and_then(|()| self.trouble.grow(&*file.real, offset + buf.len() as u64)),
                IoKind::Sync => self.trouble.check(&self.trouble.failing_writes, &file.path, "sync"),
            };
            match refused {
                Ok(()) => passed.push((file.real.clone(), io)),
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
