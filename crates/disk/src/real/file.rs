//! A file of the operating system, with blocking whole-or-error transfers.
//!
//! How it is opened, and whether with direct I/O: [`crate::real::direct_io`]. What follows a short transfer:
//! [`crate::real::transfer`].

use crate::error::ALLOCATE;
use crate::file_io::{AllFiles, FileCounts, Operation};
use crate::probe::{self, Verdict};
use crate::real::copy_on_write_extent;
use crate::real::descriptors::{Closable, Descriptors};
use crate::real::direct_io::{memory_is_aligned, open_descriptor};
use crate::real::transfer::{Direction, RWF_ATOMIC, advance, torn_atomic};
use crate::{AlignedBuf, Error, File, OpenHow, Result, Storage};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes written per call while preallocating.
const ZERO_STEP: usize = 1 << 20;

/// An open file of the operating system.
pub(crate) struct RealFile {
    descriptor: Descriptor,
    path: PathBuf,
    /// 1 when the page cache is used.
    alignment: usize,
    counts: FileCounts,
}

/// How it is kept open.
enum Descriptor {
    /// As long as it is used.
    Fixed(Arc<std::fs::File>),
    /// Only while it is used, when there are too many others.
    Closable(Arc<Closable>),
}

impl RealFile {
    /// Opens a file. The flag says whether direct I/O was wanted and refused.
    pub(crate) fn open(
        path: &Path,
        how: OpenHow,
        all: &Arc<Descriptors>,
        files: &Arc<AllFiles>,
    ) -> Result<(RealFile, bool)> {
        let (file, alignment, refused) = open_descriptor(path, how)?;
        let descriptor = if how.closable {
            let closable = Closable::new(all, file, path, alignment > 1);
            Descriptor::Closable(closable.map_err(|error| Error::new("open", path, error))?)
        } else {
            Descriptor::Fixed(Arc::new(file))
        };
        let counts = FileCounts::new(files, path);
        Ok((RealFile { descriptor, path: path.into(), alignment, counts }, refused))
    }

    /// A pipe, which [`Self::open`] refuses: something that can be waited for.
    #[cfg(test)]
    pub(crate) fn of_pipe(pipe: std::fs::File, path: &Path) -> RealFile {
        let (descriptor, counts) =
            (Descriptor::Fixed(Arc::new(pipe)), FileCounts::new(&Arc::default(), path));
        RealFile { descriptor, path: path.into(), alignment: 1, counts }
    }

    /// The descriptor, open for as long as the answer is held.
    pub(crate) fn descriptor(&self) -> io::Result<Arc<std::fs::File>> {
        match &self.descriptor {
            Descriptor::Fixed(file) => Ok(file.clone()),
            Descriptor::Closable(closable) => closable.get(),
        }
    }

    /// Where it is counted what was written and what synced, if that matters for this file.
    pub(crate) fn closable(&self) -> Option<&Arc<Closable>> {
        match &self.descriptor {
            Descriptor::Fixed(_) => None,
            Descriptor::Closable(closable) => Some(closable),
        }
    }

    /// What a sync that begins now syncs, and which writes it covers, see [`Closable::get_to_sync`]; `None`:
    /// there is nothing to sync.
    pub(crate) fn descriptor_to_sync(&self) -> io::Result<Option<(Arc<std::fs::File>, u64)>> {
        match &self.descriptor {
            Descriptor::Fixed(file) => Ok(Some((file.clone(), 0))),
            Descriptor::Closable(closable) => closable.get_to_sync(),
        }
    }

    /// Counts an operation that began then, whatever became of it.
    pub(crate) fn count(&self, operation: Operation, bytes: usize, begun: Instant) {
        self.counts.record(operation, bytes, begun.elapsed());
    }

    /// Runs a transfer of this many bytes and counts it.
    fn counted(
        &self,
        operation: Operation,
        bytes: usize,
        transfer: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let begun = Instant::now();
        let result = transfer();
        self.count(operation, if result.is_ok() { bytes } else { 0 }, begun);
        result
    }

    /// Counts a write that is over. The descriptor it used is still held: without it the file could be closed
    /// before the write counts.
    fn noting_write<T>(&self, _held: &std::fs::File, result: T) -> T {
        if let Some(closable) = self.closable() {
            closable.wrote();
        }
        result
    }

    /// Refuses a transfer that direct I/O cannot do, with a clearer word than EINVAL.
    pub(crate) fn check_aligned(&self, offset: u64, length: usize) -> io::Result<()> {
        if offset.is_multiple_of(self.alignment as u64) && length.is_multiple_of(self.alignment) {
            return Ok(());
        }
        let text = format!("direct transfers need multiples of {} bytes", self.alignment);
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    fn read_whole(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.descriptor()?;
        let mut done = 0;
        while done < buf.len() {
            match file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(count) => done = advance(done, count, buf.len(), self.alignment, Direction::Read)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_whole(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let file = self.descriptor()?;
        let mut done = 0;
        while done < buf.len() {
            match file.write_at(&buf[done..], offset + done as u64) {
                Ok(count) => done = advance(done, count, buf.len(), self.alignment, Direction::Write)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.noting_write(&file, Err(error)),
            }
        }
        self.noting_write(&file, Ok(()))
    }

    /// One all-or-nothing write.
    pub(crate) fn write_atomic(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let part = libc::iovec { iov_base: buf.as_ptr().cast_mut().cast(), iov_len: buf.len() };
        let position = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let file = self.descriptor()?;
        let fd = file.as_raw_fd();
        let begun = Instant::now();
        let written = loop {
            // SAFETY: one iovec that describes `buf`, which lives across the call and is only read.
            let count = unsafe { libc::pwritev2(fd, &raw const part, 1, position, RWF_ATOMIC) };
            match usize::try_from(count) {
                Ok(count) if count == buf.len() => break Ok(()),
                Ok(count) => break Err(torn_atomic(count, buf.len())),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        break Err(error);
                    }
                }
            }
        };
        self.count(Operation::Write, if written.is_ok() { buf.len() } else { 0 }, begun);
        self.noting_write(&file, written)
    }

    /// fdatasync, exactly once: after a failure the kernel may have marked the lost pages clean, so that a
    /// second call would succeed without having written anything.
    pub(crate) fn sync_once(&self) -> io::Result<()> {
        let Some((file, covered)) = self.descriptor_to_sync()? else { return Ok(()) };
        let begun = Instant::now();
        // SAFETY: a system call on a descriptor that `file` keeps open.
        let synced = unsafe { libc::fdatasync(file.as_raw_fd()) } == 0;
        let result = if synced { Ok(()) } else { Err(io::Error::last_os_error()) };
        self.count(Operation::Sync, 0, begun);
        if let Some(closable) = self.closable() {
            if synced { closable.synced(covered) } else { closable.sync_failed() }
        }
        result
    }
}

/// Has the file system say that these bytes are zeros, in blocks that are reserved for them; false where it
/// cannot. What the file had there is gone, as if zeros had been written.
fn zero_range(file: &std::fs::File, from: u64, length: u64) -> io::Result<bool> {
    let number = |bytes: u64| libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput);
    let (from, length) = (number(from)?, number(length)?);
    if length == 0 {
        return Ok(true);
    }
    loop {
        // SAFETY: a system call on a descriptor that `file` keeps open.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_ZERO_RANGE, from, length) };
        if done == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(code) if !fails_writes_too(code) => return Ok(false),
            _ => return Err(error),
        }
    }
}

/// Whether this error of an allocation would come of writing zeros as well. Any other one, also of a sandbox
/// that forbids the call, may be of this call alone.
pub(crate) fn fails_writes_too(code: i32) -> bool {
    matches!(code, libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::EIO)
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        self.descriptor()
            .and_then(|file| file.metadata())
            .map(|data| data.len())
            .map_err(|error| Error::new("look up the length of", &self.path, error))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let length = buf.len();
        let read = |buf: &mut [u8]| {
            self.check_aligned(offset, length)?;
            if self.alignment > 1 && !memory_is_aligned(buf.as_ptr()) {
                let mut bounce = AlignedBuf::zeroed(length);
                self.read_whole(&mut bounce, offset)?;
                buf.copy_from_slice(&bounce);
                return Ok(());
            }
            self.read_whole(buf, offset)
        };
        let read = self.counted(Operation::Read, length, || read(buf));
        read.map_err(|error| Error::at("read", &self.path, offset, length, error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let write = || {
            self.check_aligned(offset, buf.len())?;
            if self.alignment > 1 && !memory_is_aligned(buf.as_ptr()) {
                return self.write_whole(&AlignedBuf::copy_of(buf), offset);
            }
            self.write_whole(buf, offset)
        };
        let written = self.counted(Operation::Write, buf.len(), write);
        written.map_err(|error| Error::at("write", &self.path, offset, buf.len(), error))
    }

    fn sync_data(&self) -> Result<()> {
        self.sync_once().map_err(|error| Error::new("sync", &self.path, error))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let set = self.descriptor().and_then(|file| self.noting_write(&file, file.set_len(len)));
        set.map_err(|error| Error::new("set the length of", &self.path, error))
    }

    fn write_zeros(&self, from: u64, to: u64) -> Result<()> {
        let step = usize::try_from(to.saturating_sub(from)).unwrap_or(ZERO_STEP).min(ZERO_STEP);
        let zeros = AlignedBuf::zeroed(step);
        let mut at = from;
        while at < to {
            let length = usize::try_from(to - at).unwrap_or(step).min(step);
            self.write_at(&zeros[..length], at)?;
            at += length as u64;
        }
        Ok(())
    }

    fn allocate_zeros(&self, from: u64, to: u64) -> Result<bool> {
        let allocated = self.descriptor().and_then(|file| {
            let begun = Instant::now();
            let zeroed = zero_range(&file, from, to.saturating_sub(from));
            self.count(Operation::Write, 0, begun);
            self.noting_write(&file, zeroed)
        });
        let length = to.saturating_sub(from) as usize;
        allocated.map_err(|error| Error::at(ALLOCATE, &self.path, from, length, error))
    }

    fn is_direct(&self) -> bool {
        self.alignment > 1
    }

    fn io_alignment(&self) -> usize {
        self.alignment
    }

    fn protection(&self, page_bytes: usize) -> Verdict {
        if !self.is_direct() {
            return Verdict::none(
                "atomic writes need direct I/O, and this file is written through the page cache",
            );
        }
        match self.descriptor().and_then(|file| probe::facts_of(&self.path, file.as_fd())) {
            Ok(facts) => probe::verdict(&facts, page_bytes),
            Err(error) => Verdict::none(format!("the kernel has no information about this file: {error}")),
        }
    }

    fn expect_copy_on_write(&self) {
        let ask = |file: Arc<std::fs::File>| {
            copy_on_write_extent::ask_for_exact_copies(file.as_fd(), probe::block_bytes(file.as_fd()))
        };
        if let Err(error) = self.descriptor().and_then(ask) {
            tracing::debug!("no hint to the file system for {}: {error}", self.path.display());
        }
    }

    fn device(&self) -> u64 {
        if let Some(closable) = self.closable() {
            return closable.device();
        }
        let metadata = self.descriptor().and_then(|file| file.metadata());
        metadata.map_or(0, |metadata| std::os::unix::fs::MetadataExt::dev(&metadata))
    }

    fn rename(&self, storage: &dyn Storage, from: &Path, to: &Path) -> Result<()> {
        match self.closable() {
            Some(closable) => closable.rename(to, || storage.rename(from, to)),
            None => storage.rename(from, to),
        }
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
