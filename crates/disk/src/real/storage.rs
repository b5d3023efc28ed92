//! Files of the operating system: names, locks, and where requests go.

use crate::file_io::{AllFiles, FileIo};
use crate::real::backend::{Backend, Engine, start_engine};
use crate::real::descriptors::Descriptors;
use crate::real::directory_lock;
use crate::real::environment::RealOptions;
use crate::real::file::RealFile;
use crate::real::request::Request;
use crate::{Entry, Error, File, FileSize, Io, IoCounters, IoKind, OpenHow, Result, Storage};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What `stat` counts blocks in, whatever the file system's are.
const STAT_BLOCK: u64 = 512;

/// Files of the operating system.
pub struct RealStorage {
    engine: Engine,
    buffered: bool,
    told_buffered: AtomicBool,
    descriptors: Arc<Descriptors>,
    files: Arc<AllFiles>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
    batches: AtomicU64,
    atomic_writes: AtomicU64,
    atomic_refusals: Arc<AtomicU64>,
}

impl Counts {
    fn count(&self, kind: &IoKind) {
        let length = kind.place().1 as u64;
        let (requests, bytes, syncs) = match kind {
            IoKind::Read { .. } => (&self.reads, &self.bytes_read, 0),
            IoKind::Write { sync, .. } => (&self.writes, &self.bytes_written, u64::from(*sync)),
            IoKind::AllocateZeros { .. } => return,
            IoKind::Sync => {
                self.syncs.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        if let IoKind::Write { atomic: true, .. } = kind {
            self.atomic_writes.fetch_add(1, Ordering::Relaxed);
        }
        requests.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(length, Ordering::Relaxed);
        if syncs > 0 {
            self.syncs.fetch_add(syncs, Ordering::Relaxed);
        }
    }
}

impl RealStorage {
    /// A storage with its own completion thread or threads.
    pub fn new(options: RealOptions) -> Result<RealStorage> {
        let engine = start_engine(options.backend)?;
        let told_buffered = AtomicBool::new(options.buffered);
        Ok(RealStorage {
            engine,
            buffered: options.buffered,
            told_buffered,
            descriptors: Arc::default(),
            files: Arc::default(),
            counts: Counts::default(),
        })
    }

    /// How asynchronous requests reach the kernel.
    pub fn backend(&self) -> Backend {
        match self.engine {
            Engine::Ring(_) => Backend::IoUring,
            Engine::Threads(_) => Backend::Threads,
        }
    }
}

impl Storage for RealStorage {
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        let how = if self.buffered { how.buffered() } else { how };
        let (file, refused) = RealFile::open(path, how, &self.descriptors, &self.files)?;
        if refused && !self.told_buffered.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %path.display(), "the file system refuses direct I/O; the page cache is used");
        }
        Ok(Arc::new(file))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|error| Error::new("look for", path, error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|error| Error::new("remove", path, error))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(|error| Error::new("remove the directory", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let failed = |error: std::io::Error| {
            let text = format!("to {}: {error}", to.display());
            Error::new("rename", from, std::io::Error::new(error.kind(), text))
        };
        std::fs::rename(from, to).map_err(failed)?;
        self.files.renamed(from, to);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut make = std::fs::DirBuilder::new();
        make.recursive(true).mode(0o750);
        make.create(path).map_err(|error| Error::new("create the directory", path, error))
    }

    fn restrict_like(&self, path: &Path, like: &Path) -> Result<()> {
        let failed = |error| Error::new("restrict", path, error);
        let mode_of = |path| std::fs::metadata(path).map(|found| found.permissions().mode() & 0o7777);
        let mode = mode_of(path).map_err(failed)?;
        let wanted = mode & mode_of(like).map_err(failed)?;
        if wanted == mode {
            return Ok(());
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(wanted)).map_err(failed)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        let failed = |error| Error::new("look up", path, error);
        let mut missing = Vec::new();
        let whole = std::path::absolute(path).map_err(failed)?;
        for there in whole.ancestors() {
            match there.canonicalize() {
                Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
            let Some(name) = there.file_name() else {
                let why = "it goes up from a directory that does not exist: name it directly";
                return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, why)));
            };
            missing.push(name.to_owned());
        }
        Ok(whole)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        // An empty parent is what `Path::parent` gives for a bare file name: the current directory.
        let directory = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let synced = std::fs::File::open(directory).and_then(|file| file.sync_all());
        synced.map_err(|error| Error::new("sync the directory", path, error))
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let failed = |error| Error::new("list the directory", path, error);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.path().is_dir();
            // Names that are not UTF-8 are not ours.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry { name, is_directory });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        match directory_lock::lock(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(Error::new("lock", path, error)),
        }
    }

    fn lock_by_name(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        match directory_lock::lock_by_name(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(Error::new("lock", path, error)),
        }
    }

    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        let start = |(file, io): (Arc<dyn File>, Io)| {
            self.counts.count(&io.kind);
            Request::new(file, io, &self.counts.atomic_refusals)
        };
        let requests: Vec<Request> = batch.into_iter().filter_map(start).collect();
        match &self.engine {
            Engine::Ring(ring) => ring.submit(requests),
            Engine::Threads(threads) => threads.submit(requests),
        }
    }

    unsafe fn register_buffers(&self, buffers: &[(*mut u8, usize)]) -> bool {
        match &self.engine {
            // SAFETY: the caller promises that the memory stays mapped as long as the storage lives.
            Engine::Ring(ring) => unsafe { ring.register_buffers(buffers) },
            Engine::Threads(_) => false,
        }
    }

    fn set_open_files_max(&self, max: usize) {
        self.descriptors.set_limit(max);
    }

    fn counters(&self) -> IoCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoCounters {
            reads: get(&self.counts.reads),
            bytes_read: get(&self.counts.bytes_read),
            writes: get(&self.counts.writes),
            bytes_written: get(&self.counts.bytes_written),
            syncs: get(&self.counts.syncs),
            batches: get(&self.counts.batches),
            atomic_writes: get(&self.counts.atomic_writes),
            open_files: self.descriptors.open() as u64,
            atomic_refusals: self.counts.atomic_refusals.load(Ordering::Relaxed),
        }
    }

    fn file_io(&self) -> Vec<FileIo> {
        self.files.list()
    }

    fn file_size(&self, path: &Path) -> Result<FileSize> {
        let found =
            std::fs::metadata(path).map_err(|error| Error::new("look up the size of", path, error))?;
        Ok(FileSize { bytes: found.len(), allocated: found.blocks() * STAT_BLOCK, block: found.blksize() })
    }
}
