//! Files as the engine sees them.
//!
//! Blocking calls transfer everything or fail. [`Storage::submit`] is the asynchronous door: a batch of
//! requests goes to the kernel together, and each request's `done` runs once, with the buffers back. Waiting
//! for a batch is `submit_and_wait.rs`. Within a batch there is no order: only a `Write` with `sync` is
//! ordered (write, then sync of that file).
//!
//! A name is durable only after [`Storage::sync_dir`]; the code that creates, renames or removes a file calls
//! it.

use crate::error::{ALLOCATE, ATOMIC_WRITE};
use crate::file_io::FileIo;
use crate::probe::Verdict;
use crate::{Error, IoBuf, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What must be true of a file for [`Storage::open`] to succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// Must exist; reading only.
    ReadOnly,
    /// Must exist.
    Existing,
    /// Is created when it does not exist.
    Create,
    /// Must not exist.
    CreateNew,
}

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenHow {
    /// Existing or new, read or write.
    pub mode: OpenMode,
    /// Bypass the page cache where the file system allows it. Transfers then have to be aligned (see
    /// [`File::io_alignment`]).
    pub direct: bool,
    /// The descriptor may be closed while nobody uses the file, and opened again by the file's name: see
    /// [`Storage::set_open_files_max`].
    pub closable: bool,
    /// Only a regular file that has this name and no other: not what a symbolic link leads to, and not a
    /// second name of somebody's file. Judged on the descriptor, so that nothing can be exchanged between the
    /// look and the use. Not with `closable`, which opens by name again. A storage without links has nothing
    /// to refuse.
    pub by_this_name: bool,
    /// A file that is made is for its owner alone from its first moment on, not for the group. A storage
    /// without users has nothing to keep from them.
    pub private: bool,
}

impl OpenHow {
    /// Existing file for reading and writing, direct.
    pub const EXISTING: OpenHow = OpenHow {
        mode: OpenMode::Existing,
        direct: true,
        closable: false,
        by_this_name: false,
        private: false,
    };
    /// Existing file for reading, direct.
    pub const READ_ONLY: OpenHow = OpenHow {
        mode: OpenMode::ReadOnly,
        direct: true,
        closable: false,
        by_this_name: false,
        private: false,
    };
    /// Existing or new file, direct.
    pub const CREATE: OpenHow = OpenHow {
        mode: OpenMode::Create,
        direct: true,
        closable: false,
        by_this_name: false,
        private: false,
    };
    /// New file, direct.
    pub const CREATE_NEW: OpenHow = OpenHow {
        mode: OpenMode::CreateNew,
        direct: true,
        closable: false,
        by_this_name: false,
        private: false,
    };

    /// The same through the page cache: any offset and length may be transferred.
    pub const fn buffered(self) -> OpenHow {
        OpenHow { direct: false, ..self }
    }

    /// The same with a descriptor that may be closed while nobody uses the file.
    pub const fn closable(self) -> OpenHow {
        OpenHow { closable: true, ..self }
    }

    /// The same, for its owner alone if it is made.
    pub const fn private(self) -> OpenHow {
        OpenHow { private: true, ..self }
    }

    /// The same, of a regular file that has this name and no other.
    pub const fn by_this_name(self) -> OpenHow {
        OpenHow { by_this_name: true, ..self }
    }
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// File name without its directory.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What was asked of a storage since it was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IoCounters {
    /// Read requests and their bytes.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Syncs of files (fdatasync).
    pub syncs: u64,
    /// Batches given to [`Storage::submit`].
    pub batches: u64,
    /// Write requests, among [`IoCounters::writes`], that were to be atomic.
    pub atomic_writes: u64,
    /// Atomic writes that were refused ([`Error::is_atomic_refusal`]).
    pub atomic_refusals: u64,
    /// Files that have a descriptor now, among those opened as [closable](OpenHow::closable).
    pub open_files: u64,
}

/// How large a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSize {
    /// Its length.
    pub bytes: u64,
    /// What it takes of the file system, which is less for a sparse file.
    pub allocated: u64,
    /// The file system's block, as it advises programs; 0 where there is none.
    pub block: u64,
}

/// A place for files.
pub trait Storage: Send + Sync {
    /// Opens or creates a file. A new file's name is durable only after [`Storage::sync_dir`] of its
    /// directory.
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>>;
    /// Whether a file or directory of this name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Removes a file. Durable after [`Storage::sync_dir`].
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory. Durable after [`Storage::sync_dir`] of its parent.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Renames a file, replacing `to` when it exists. Durable after [`Storage::sync_dir`] of both
    /// directories.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Creates a directory and its missing parents.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// Takes from everybody what they may not do with `like` either: both are directories. A storage without
    /// users has nothing to take.
    fn restrict_like(&self, _path: &Path, _like: &Path) -> Result<()> {
        Ok(())
    }
    /// The name without links and dots that leads to the same place, also where the end of it is not there
    /// yet: tells whether one directory lies in another. A storage without links has one name for each thing.
    fn real_path(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.components().filter(|part| !matches!(part, Component::CurDir)).collect())
    }
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> Result<Vec<Entry>>;
    /// Takes the exclusive lock on the file at `path` (created when missing), held until the value is dropped
    /// or the process ends. What is in the file stays. Fails for a symbolic link, and with `WouldBlock` when
    /// another process, or this one, holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
    /// As [`Storage::lock`] of a file that is there for nothing else: its text becomes who holds it, and is
    /// the text of the error that another gets. The directory that it lies in is locked as well, where that
    /// can be done: the file may be removed while it is locked.
    fn lock_by_name(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.lock(path)
    }
    /// Starts a batch of requests. Returns at once; every `done` is called exactly once, later or even before
    /// this returns, so hold no lock that `done` takes.
    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>);
    /// Names long-lived memory (the pool's frames) whose transfers may be made cheaper by telling the kernel
    /// once. Returns whether it was; transfers work either way.
    ///
    /// # Safety
    /// Each `(address, length)` must stay mapped until the storage is dropped.
    unsafe fn register_buffers(&self, _buffers: &[(*mut u8, usize)]) -> bool {
        false
    }
    /// How many files opened as [closable](OpenHow::closable) have a descriptor at a time
    /// (`innodb_open_files`), as far as they may be closed: not while they are used, or hold writes that were
    /// not synced.
    fn set_open_files_max(&self, _max: usize) {}
    /// What was asked of this storage so far.
    fn counters(&self) -> IoCounters;
    /// What was done with each file so far: open ones, then closed ones by kind. Nothing where that is not
    /// counted.
    fn file_io(&self) -> Vec<FileIo> {
        Vec::new()
    }
    /// How large the file of this name is, which need not be open.
    fn file_size(&self, path: &Path) -> Result<FileSize> {
        let bytes = self.open(path, OpenHow::READ_ONLY.buffered())?.len()?;
        Ok(FileSize { bytes, allocated: bytes, block: 0 })
    }
}

/// An open file. Closed when the last reference, including those of requests under way, is dropped.
pub trait File: Send + Sync {
    /// The name it was opened by.
    fn path(&self) -> &Path;
    /// Its length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether its length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buf` from byte `offset`. Reading past the end of the file is an error (`UnexpectedEof`).
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// Writes all of `buf` at byte `offset`.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;
    /// Makes what was written, and the length, durable. After an error nothing written since the last success
    /// may be assumed durable, even when a later call succeeds.
    fn sync_data(&self) -> Result<()>;
    /// Cuts or extends (sparsely) the file to `len` bytes.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Writes real zeros to the bytes `from..to`, so that later writes there allocate nothing.
    fn write_zeros(&self, from: u64, to: u64) -> Result<()>;
    /// As [`File::write_zeros`], without writing them: blocks are reserved that read as zeros, so that later
    /// writes need no room. The next sync after the first write to each of them has some metadata to write.
    /// False, and nothing is done, where the file system cannot do it.
    fn allocate_zeros(&self, _from: u64, _to: u64) -> Result<bool> {
        Ok(false)
    }
    /// Whether transfers bypass the page cache.
    fn is_direct(&self) -> bool;
    /// Offsets and lengths of transfers must be multiples of this many bytes (1 when not direct).
    fn io_alignment(&self) -> usize;
    /// By whom pages of `page_bytes` bytes are written whole into this file as it is now, and why. Asks the
    /// kernel each time: for a file's first write, not for every one.
    fn protection(&self, _page_bytes: usize) -> Verdict {
        Verdict::none("this storage has no atomic writes")
    }
    /// Tells the file system that pages are going to be written atomically by its copy-on-write, which it can
    /// prepare for. A hint: nothing depends on it.
    fn expect_copy_on_write(&self) {}
    /// Number of the device (of the file system) that the file lies on: what is measured for one file of a
    /// device holds for the others. 0 where that is not known.
    fn device(&self) -> u64 {
        0
    }
    /// Renames the file, which is open: nobody sees a moment in which it could not be opened again. Durable
    /// as after [`Storage::rename`].
    fn rename(&self, storage: &dyn Storage, from: &Path, to: &Path) -> Result<()> {
        storage.rename(from, to)
    }
    /// For the storage that opened the file, which needs its own type back in [`Storage::submit`].
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The completion of a request: `Ok` gives the request's kind and buffers back. Runs on a completion thread
/// or in [`Storage::submit`] itself: it must be short and must never block.
pub type IoDone = Box<dyn FnOnce(Result<IoKind>) + Send>;

/// One asynchronous request.
pub struct Io {
    /// What to do.
    pub kind: IoKind,
    /// Whom to tell.
    pub done: IoDone,
}

impl Io {
    /// A request with its completion.
    pub fn new(kind: IoKind, done: impl FnOnce(Result<IoKind>) + Send + 'static) -> Io {
        Io { kind, done: Box::new(done) }
    }
}

/// What a request does.
#[derive(Debug)]
pub enum IoKind {
    /// Fill the buffer from the file.
    Read {
        /// Where to (owned or raw).
        buf: IoBuf,
        /// Byte offset in the file.
        offset: u64,
    },
    /// Write the buffer to the file.
    Write {
        /// What.
        buf: IoBuf,
        /// Byte offset in the file.
        offset: u64,
        /// Write all or nothing (`RWF_ATOMIC`). The length is a power of two and the offset a multiple of it,
        /// or the write is refused, as it is where the kernel cannot keep the promise; the bytes in the file
        /// are then as they were ([`Error::is_atomic_refusal`]).
        atomic: bool,
        /// Make it durable (fdatasync of the file) before completing.
        sync: bool,
    },
    /// [`File::allocate_zeros`]: the file system may take its time, and nobody's thread has to wait for it.
    AllocateZeros {
        /// First byte.
        from: u64,
        /// End.
        to: u64,
        /// Whether it was done. The storage sets it; the file system may be unable to.
        allocated: bool,
    },
    /// Make everything written to the file, by requests completed before this one was submitted, durable.
    Sync,
}

impl IoKind {
    /// A verb for error messages.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            IoKind::Read { .. } => "read",
            IoKind::Write { atomic: true, .. } => ATOMIC_WRITE,
            IoKind::Write { .. } => "write",
            IoKind::AllocateZeros { .. } => ALLOCATE,
            IoKind::Sync => "sync",
        }
    }

    /// Byte offset and length, (0, 0) for a sync.
    pub(crate) fn place(&self) -> (u64, usize) {
        match self {
            IoKind::AllocateZeros { from, to, .. } => (*from, to.saturating_sub(*from) as usize),
            IoKind::Read { buf, offset } | IoKind::Write { buf, offset, .. } => (*offset, buf.len()),
            IoKind::Sync => (0, 0),
        }
    }

    /// An error of this request.
    pub(crate) fn error(&self, path: &Path, source: std::io::Error) -> Error {
        match self {
            IoKind::Sync => Error::new("sync", path, source),
            other => {
                let (offset, length) = other.place();
                Error::at(other.operation(), path, offset, length, source)
            }
        }
    }
}
