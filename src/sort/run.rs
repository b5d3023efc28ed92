//! Sorted runs in a temporary file (when to spill: `mod.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{AlignedBuf, File, IoBuf, IoKind, OpenHow, Storage, submit_one};
use parking_lot::Mutex;

use super::{Place, TEMPORARY_PREFIX, length_of};
use crate::error::{Error, Result};

/// Least and most bytes read from a run at a time.
pub(super) const READ_BYTES_MIN: usize = 4 << 10;
pub(super) const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes written at a time.
const WRITE_BYTES: usize = 256 << 10;

static NEXT_FILE: AtomicU64 = AtomicU64::new(0);

/// A file without a name: its bytes are given back when it is closed.
#[derive(Clone)]
pub(super) struct TemporaryFile {
    storage: Arc<dyn Storage>,
    file: Arc<dyn File>,
    end: Arc<Mutex<u64>>,
}

impl TemporaryFile {
    /// A new file.
    pub fn create(place: &Place) -> Result<TemporaryFile> {
        let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
        let path = place.directory.join(format!("{TEMPORARY_PREFIX}{}-{number}", std::process::id()));
        // What lies there under this name is of a process that ended before it could remove it.
        let how = OpenHow::CREATE_NEW.buffered();
        if place.storage.exists(&path)? {
            place.storage.remove(&path)?;
        }
        let file = place.storage.open(&path, how)?;
        place.storage.remove(&path)?;
        Ok(TemporaryFile { storage: place.storage.clone(), file, end: Arc::default() })
    }

    async fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let buf = IoBuf::owned(AlignedBuf::copy_of(bytes));
        let kind = IoKind::Write { buf, offset, atomic: false, sync: false };
        submit_one(&*self.storage, &self.file, kind).await?;
        Ok(())
    }

    async fn read(&self, length: usize, offset: u64) -> Result<AlignedBuf> {
        let buf = IoBuf::owned(AlignedBuf::zeroed(length));
        match submit_one(&*self.storage, &self.file, IoKind::Read { buf, offset }).await? {
            IoKind::Read { buf: IoBuf::Owned(buf, _), .. } => Ok(buf),
            _ => Err(Error::Internal("a read gave its buffer away".to_owned())),
        }
    }
}

/// A stretch of the file with entries in order, each with its length before it.
pub(super) struct Run {
    offset: u64,
    len: u64,
    /// How many times its entries have been merged.
    pub level: u32,
}

/// Writes a run. Only one is written at a time.
pub(super) struct RunWriter<'f> {
    file: &'f TemporaryFile,
    buffer: Vec<u8>,
    run: Run,
}

impl<'f> RunWriter<'f> {
    pub fn new(file: &'f TemporaryFile, level: u32) -> RunWriter<'f> {
        let offset = *file.end.lock();
        RunWriter { file, buffer: Vec::with_capacity(WRITE_BYTES), run: Run { offset, len: 0, level } }
    }

    /// Adds an entry; `true`: it is time for [`RunWriter::flush`].
    pub fn put(&mut self, entry: &[u8]) -> bool {
        self.buffer.extend_from_slice(&(entry.len() as u32).to_ne_bytes());
        self.buffer.extend_from_slice(entry);
        self.buffer.len() >= WRITE_BYTES
    }

    pub async fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.file.write(&self.buffer, self.run.offset + self.run.len).await?;
            self.run.len += self.buffer.len() as u64;
            *self.file.end.lock() = self.run.offset + self.run.len;
            self.buffer.clear();
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Run> {
        self.flush().await?;
        Ok(self.run)
    }
}

/// Reads a run.
pub(super) struct Reader {
    file: TemporaryFile,
    run: Run,
    read_bytes: usize,
    /// Bytes of the run that have been read.
    done: u64,
    buffer: Vec<u8>,
    /// Where the current entry begins in the buffer, behind its length.
    at: usize,
    length: usize,
}

impl Reader {
    pub fn new(file: &TemporaryFile, run: Run, read_bytes: usize) -> Reader {
        Reader { file: file.clone(), run, read_bytes, done: 0, buffer: Vec::new(), at: 0, length: 0 }
    }

    /// The current entry.
    pub fn entry(&self) -> &[u8] {
        &self.buffer[self.at..self.at + self.length]
    }

    /// Goes to the next entry; false at the end.
    pub async fn advance(&mut self) -> Result<bool> {
        let mut next = self.at + self.length;
        if self.buffer.len() - next < 4 && !self.load(&mut next, 4).await? {
            return Ok(false);
        }
        self.length = length_of(&self.buffer[next..]);
        next += 4;
        if self.buffer.len() - next < self.length && !self.load(&mut next, self.length).await? {
            return Err(Error::Internal("a sorted run ends within an entry".to_owned()));
        }
        self.at = next;
        Ok(true)
    }

    /// Makes `bytes` bytes available at `next`, which moves with the buffer; false at the end of the run.
    async fn load(&mut self, next: &mut usize, bytes: usize) -> Result<bool> {
        self.buffer.drain(..*next);
        *next = 0;
        while self.buffer.len() < bytes {
            let left = self.run.len - self.done;
            if left == 0 {
                (self.at, self.length) = (0, 0);
                return Ok(false);
            }
            let more = left.min(self.read_bytes as u64) as usize;
            let read = self.file.read(more, self.run.offset + self.done).await?;
            self.buffer.extend_from_slice(&read[..more]);
            self.done += more as u64;
        }
        Ok(true)
    }
}
