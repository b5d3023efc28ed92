//! Sorting index entries that need not fit into memory.
//!
//! Entries are collected in one arena; when it is full it is sorted and written to a temporary file as a *run*.
//! At the end the runs and what is still in memory are merged. Memory stays within the budget plus one read
//! buffer per run. The temporary files carry no data that a crash would need: they are removed at the next start.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};

use btree::compare::compare_keys;
use btree::{Field, IndexDef};
use disk::{File, OpenHow, Storage};
use smallvec::SmallVec;

use crate::error::{Error, Result};

/// Prefix of temporary files in the data directory.
pub(crate) const TEMPORARY_PREFIX: &str = "#untorn-sort-";

/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

/// Bytes read from a run at a time.
const READ_BYTES: usize = 64 << 10;

static NEXT_FILE: AtomicU64 = AtomicU64::new(0);

/// The fields of one entry.
pub(crate) type Fields<'a> = SmallVec<[Field<'a>; 8]>;

/// Appends an entry: the number of bytes that follow, then each field's length and bytes.
fn encode(fields: &[Field<'_>], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for field in fields {
        let len = field.map_or(NULL, |bytes| bytes.len() as u32);
        out.extend_from_slice(&len.to_ne_bytes());
        out.extend_from_slice(field.unwrap_or_default());
    }
    let len = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&len.to_ne_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The fields of an encoded entry (without its leading length).
pub(crate) fn fields(mut entry: &[u8]) -> Fields<'_> {
    let mut fields = Fields::new();
    while entry.len() >= 4 {
        let len = u32_at(entry, 0);
        if len == NULL {
            fields.push(None);
            entry = &entry[4..];
        } else {
            let end = 4 + len as usize;
            fields.push(Some(&entry[4..end]));
            entry = &entry[end..];
        }
    }
    fields
}

/// The order of two entries of an index.
pub(crate) fn compare(def: &IndexDef, a: &[u8], b: &[u8]) -> Ordering {
    compare_keys(def, &fields(a), &fields(b))
}

/// Collects entries, to be read back in the order of an index.
pub(crate) struct Sorter {
    def: Arc<IndexDef>,
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    arena: Vec<u8>,
    starts: Vec<u32>,
    budget: usize,
    runs: Vec<Run>,
}

/// A sorted temporary file; removed when dropped.
struct Run {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Arc<dyn File>,
    len: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        // If it stays behind, the next start removes it.
        let _ = self.storage.remove(&self.path);
    }
}

impl Sorter {
    /// A sorter for entries of this index that takes about `budget` bytes of memory.
    pub fn new(def: Arc<IndexDef>, storage: Arc<dyn Storage>, directory: &Path, budget: usize) -> Sorter {
        Sorter {
            def,
            storage,
            directory: directory.to_owned(),
            arena: Vec::new(),
            starts: Vec::new(),
            budget,
            runs: Vec::new(),
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, fields: &[Field<'_>]) {
        self.starts.push(self.arena.len() as u32);
        encode(fields, &mut self.arena);
    }

    /// Writes a run if the memory is used up. Blocks for file I/O.
    pub fn spill_if_full(&mut self) -> Result<()> {
        if self.arena.len() + 4 * self.starts.len() < self.budget {
            return Ok(());
        }
        self.spill()
    }

    fn sort(&mut self) {
        let (def, arena) = (&self.def, &self.arena);
        let entry = |start: u32| {
            let at = start as usize;
            &arena[at + 4..at + 4 + u32_at(arena, at) as usize]
        };
        self.starts.sort_unstable_by(|a, b| compare(def, entry(*a), entry(*b)));
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let number = NEXT_FILE.fetch_add(1, AtomicOrdering::Relaxed);
        let path = self.directory.join(format!("{TEMPORARY_PREFIX}{number}"));
        let file = self.storage.open(&path, OpenHow::CREATE.buffered())?;
        let mut run = Run { storage: self.storage.clone(), path, file, len: 0 };
        let mut out = Vec::with_capacity(2 * READ_BYTES);
        for start in &self.starts {
            let at = *start as usize;
            out.extend_from_slice(&self.arena[at..at + 4 + u32_at(&self.arena, at) as usize]);
            if out.len() >= READ_BYTES {
                run.file.write_at(&out, run.len)?;
                run.len += out.len() as u64;
                out.clear();
            }
        }
        run.file.write_at(&out, run.len)?;
        run.len += out.len() as u64;
        self.runs.push(run);
        self.arena.clear();
        self.starts.clear();
        Ok(())
    }

    /// The entries in order.
    pub fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted {
                def: self.def,
                memory: Memory { arena: self.arena, starts: self.starts, at: 0 },
                readers: Vec::new(),
                heap: BinaryHeap::new(),
            });
        }
        self.spill()?;
        let mut readers = Vec::with_capacity(self.runs.len());
        for run in std::mem::take(&mut self.runs) {
            readers.push(Reader { run, buffer: Vec::new(), at: 0, offset: 0 });
        }
        let mut sorted =
            Sorted { def: self.def.clone(), memory: Memory::default(), readers, heap: BinaryHeap::new() };
        for reader in 0..sorted.readers.len() {
            sorted.refill(reader)?;
        }
        Ok(sorted)
    }
}

#[derive(Default)]
struct Memory {
    arena: Vec<u8>,
    starts: Vec<u32>,
    at: usize,
}

struct Reader {
    run: Run,
    buffer: Vec<u8>,
    at: usize,
    offset: u64,
}

impl Reader {
    /// Copies the next entry, `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if !self.have(4)? {
            return Ok(None);
        }
        let len = u32_at(&self.buffer, self.at) as usize;
        if !self.have(4 + len)? {
            return Err(Error::Internal(format!("{} ends within an entry", self.run.path.display())));
        }
        let entry = self.buffer[self.at + 4..self.at + 4 + len].to_vec();
        self.at += 4 + len;
        Ok(Some(entry))
    }

    /// Makes so many bytes available at `at`; false at the end of the run.
    fn have(&mut self, bytes: usize) -> Result<bool> {
        while self.buffer.len() - self.at < bytes {
            let left = self.run.len - self.offset;
            if left == 0 {
                return Ok(false);
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let old = self.buffer.len();
            let more = left.min(READ_BYTES as u64) as usize;
            self.buffer.resize(old + more, 0);
            self.run.file.read_at(&mut self.buffer[old..], self.offset)?;
            self.offset += more as u64;
        }
        Ok(true)
    }
}

/// The head of a run in the merge; the smallest comes out of the heap first.
struct Head {
    def: Arc<IndexDef>,
    entry: Vec<u8>,
    reader: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        compare(&self.def, &other.entry, &self.entry)
    }
}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Head {}

/// Sorted entries, read once.
pub(crate) struct Sorted {
    def: Arc<IndexDef>,
    memory: Memory,
    readers: Vec<Reader>,
    heap: BinaryHeap<Head>,
}

impl Sorted {
    fn refill(&mut self, reader: usize) -> Result<()> {
        if let Some(entry) = self.readers[reader].next()? {
            self.heap.push(Head { def: self.def.clone(), entry, reader });
        }
        Ok(())
    }

    /// Puts the next entry into `entry`; false at the end.
    pub fn next(&mut self, entry: &mut Vec<u8>) -> Result<bool> {
        entry.clear();
        if self.readers.is_empty() {
            let Some(start) = self.memory.starts.get(self.memory.at) else { return Ok(false) };
            let at = *start as usize;
            let len = u32_at(&self.memory.arena, at) as usize;
            entry.extend_from_slice(&self.memory.arena[at + 4..at + 4 + len]);
            self.memory.at += 1;
            return Ok(true);
        }
        let Some(head) = self.heap.pop() else { return Ok(false) };
        *entry = head.entry;
        self.refill(head.reader)?;
        Ok(true)
    }
}
