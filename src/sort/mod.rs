//! Sorting what need not fit into memory.
//!
//! Entries are bytes to this module; an [`Order`] compares them. They are collected in one arena and sorted
//! in short *stretches* as they come, so that no step is long: there is never a big sort, only merging, which
//! gives way entry by entry. When the arena is full its stretches are merged into a *run* in a temporary
//! file, and when many runs of one level have gathered they are merged into one of the next. At the end what
//! is left is merged on the fly. Equal entries keep the order in which they came: of equal heads a merge
//! takes the older source's.
//!
//! The file is read and written by the environment's storage, off the threads that connections run on. Its
//! name is gone as soon as it is open, so nothing is left of it whatever happens.

mod merge;
mod run;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use disk::Storage;
use txn::TimeSlice;

use crate::error::Result;
use merge::{Merge, Source};
use run::{Run, TemporaryFile};

/// Prefix of temporary files.
pub(crate) const TEMPORARY_PREFIX: &str = "#untorn-sort-";

/// Entries sorted at a time.
const STRETCH: usize = 256;

/// Runs of a level that are merged into one.
const RUNS_MERGED: usize = 32;

/// How entries compare.
pub trait Order: Clone {
    /// The order of two entries.
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering;

    /// A number that decides where it differs: an entry with a smaller one comes first. Most comparisons of a
    /// sort end with it, without a look at the entries.
    fn head(&self, _entry: &[u8]) -> u64 {
        0
    }
}

/// Where temporary files go.
#[derive(Clone)]
pub struct Place {
    storage: Arc<dyn Storage>,
    directory: Arc<Path>,
}

impl Place {
    /// Files in `directory`.
    pub fn new(storage: Arc<dyn Storage>, directory: &Path) -> Place {
        Place { storage, directory: Arc::from(directory) }
    }
}

/// Where an entry begins.
#[derive(Clone, Copy)]
struct Start {
    head: u64,
    at: usize,
}

/// Entries in memory: their lengths and bytes back to back, and where each begins.
#[derive(Default)]
struct Entries {
    arena: Vec<u8>,
    starts: Vec<Start>,
}

impl Entries {
    fn at(&self, start: usize) -> &[u8] {
        let bytes = &self.arena[start..];
        let (length, rest) = bytes.split_at(4);
        &rest[..length_of(length)]
    }

    fn entry(&self, number: usize) -> &[u8] {
        self.at(self.starts[number].at)
    }
}

/// The length that stands before an entry.
fn length_of(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes) as usize)
}

/// Collects entries, to be read back in order.
pub struct Sorter<O> {
    order: O,
    place: Place,
    budget: usize,
    entries: Entries,
    /// Where the sorted stretches end, as numbers of entries.
    stretches: Vec<usize>,
    file: Option<TemporaryFile>,
    /// In the order of time, so of falling levels.
    runs: Vec<Run>,
}

impl<O: Order> Sorter<O> {
    /// A sorter that takes about `budget` bytes of memory.
    pub fn new(order: O, place: Place, budget: usize) -> Sorter<O> {
        let (entries, stretches, runs) = (Entries::default(), Vec::new(), Vec::new());
        Sorter { order, place, budget, entries, stretches, file: None, runs }
    }

    /// Adds the entry that `write` appends.
    ///
    /// # Errors
    /// Those of `write`; nothing is added then.
    pub fn add<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let arena = &mut self.entries.arena;
        let start = arena.len();
        arena.extend_from_slice(&[0; 4]);
        if let Err(error) = write(arena) {
            arena.truncate(start);
            return Err(error);
        }
        let length = (arena.len() - start - 4) as u32;
        arena[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        let head = self.order.head(&arena[start + 4..]);
        self.entries.starts.push(Start { head, at: start });
        if self.entries.starts.len() - self.sorted() >= STRETCH {
            self.sort_stretch();
        }
        Ok(())
    }

    /// Bytes of memory taken.
    pub fn memory(&self) -> usize {
        let Entries { arena, starts } = &self.entries;
        arena.capacity() + starts.capacity() * size_of::<Start>() + self.runs.len() * self.read_bytes()
    }

    /// Bytes that are read of a run at a time: all runs together take no more than the entries did.
    fn read_bytes(&self) -> usize {
        (self.budget / RUNS_MERGED).clamp(run::READ_BYTES_MIN, run::READ_BYTES_MAX)
    }

    /// How many entries are in memory.
    pub fn in_memory(&self) -> usize {
        self.entries.starts.len()
    }

    /// Whether the memory is used up: time for [`Sorter::spill`].
    pub fn is_full(&self) -> bool {
        self.entries.arena.len() + self.entries.starts.len() * size_of::<Start>() >= self.budget
    }

    /// Whether anything has been written to a file.
    pub fn has_spilled(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Forgets all but the first `count` entries in order; for sorters that never spilled.
    pub fn keep_first(&mut self, count: usize) {
        debug_assert!(self.runs.is_empty(), "a sorter with runs keeps everything");
        let (order, entries) = (&self.order, &mut self.entries);
        let mut starts = std::mem::take(&mut entries.starts);
        starts.sort_by(|left, right| {
            let exact = || order.compare(entries.at(left.at), entries.at(right.at));
            left.head.cmp(&right.head).then_with(exact).then(left.at.cmp(&right.at))
        });
        starts.truncate(count);
        let mut kept = Entries::default();
        for start in &starts {
            let end = start.at + 4 + entries.at(start.at).len();
            kept.starts.push(Start { at: kept.arena.len(), ..*start });
            kept.arena.extend_from_slice(&entries.arena[start.at..end]);
        }
        self.stretches = vec![kept.starts.len()];
        self.entries = kept;
    }

    /// The last entry, of a sorter that [kept](Sorter::keep_first) some and got no more since.
    pub fn last(&self) -> Option<&[u8]> {
        self.entries.starts.last().map(|start| self.entries.at(start.at))
    }

    /// How many entries lie in sorted stretches.
    fn sorted(&self) -> usize {
        self.stretches.last().copied().unwrap_or(0)
    }

    fn sort_stretch(&mut self) {
        let sorted = self.sorted();
        let (order, Entries { arena, starts }) = (&self.order, &mut self.entries);
        let entry = |start: usize| {
            let (length, rest) = arena[start..].split_at(4);
            &rest[..length_of(length)]
        };
        starts[sorted..].sort_by(|left, right| {
            left.head.cmp(&right.head).then_with(|| order.compare(entry(left.at), entry(right.at)))
        });
        self.stretches.push(starts.len());
    }

    /// The sorted stretches in memory, which the merge takes over.
    fn merge_of_memory(&mut self, older: Vec<Source>) -> Merge<O> {
        self.sort_stretch();
        let entries = std::mem::take(&mut self.entries);
        let mut sources = older;
        let mut at = 0;
        for end in self.stretches.drain(..) {
            sources.push(Source::memory(std::mem::replace(&mut at, end), end));
        }
        Merge::new(self.order.clone(), entries, sources)
    }

    /// Writes what is in memory to the file.
    ///
    /// # Errors
    /// Those of the file; a kill of `slice`'s session.
    pub async fn spill(&mut self, slice: &TimeSlice) -> Result<()> {
        if self.entries.starts.is_empty() {
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(TemporaryFile::create(&self.place)?).clone(),
        };
        let mut merge = self.merge_of_memory(Vec::new());
        self.runs.push(merge.write(&file, 0, slice).await?);
        self.entries = merge.into_buffers();
        self.merge_levels(&file, slice).await
    }

    /// Merges the newest runs while there are many of one level.
    async fn merge_levels(&mut self, file: &TemporaryFile, slice: &TimeSlice) -> Result<()> {
        while let Some(level) = self.runs.last().map(|run| run.level)
            && self.runs.iter().rev().take_while(|run| run.level == level).count() >= RUNS_MERGED
        {
            let merged = self.runs.split_off(self.runs.len() - RUNS_MERGED);
            let read_bytes = self.read_bytes();
            let sources = merged.into_iter().map(|run| Source::run(file, run, read_bytes)).collect();
            let mut merge = Merge::new(self.order.clone(), Entries::default(), sources);
            self.runs.push(merge.write(file, level + 1, slice).await?);
        }
        Ok(())
    }

    /// The entries in order.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn finish(mut self) -> Result<Sorted<O>> {
        let runs = std::mem::take(&mut self.runs);
        let read_bytes = self.read_bytes();
        let older = match &self.file {
            Some(file) => runs.into_iter().map(|run| Source::run(file, run, read_bytes)).collect(),
            None => Vec::new(),
        };
        let mut merge = self.merge_of_memory(older);
        merge.start().await?;
        Ok(Sorted { merge, begun: false })
    }
}

/// Sorted entries, read once.
pub struct Sorted<O> {
    merge: Merge<O>,
    begun: bool,
}

impl<O: Order> Sorted<O> {
    /// The next entry.
    ///
    /// # Errors
    /// Those of the file.
    #[inline]
    pub async fn next(&mut self) -> Result<Option<&[u8]>> {
        if std::mem::replace(&mut self.begun, true) && !self.merge.advance_in_memory() {
            self.merge.advance().await?;
        }
        Ok(self.merge.head())
    }
}

#[cfg(test)]
mod tests;
