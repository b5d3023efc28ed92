//! Merging sorted sources: a heap of their heads.

use txn::TimeSlice;

use super::run::{Reader, Run, RunWriter, TemporaryFile};
use super::{Entries, Order};
use crate::error::Result;

/// Entries in order.
pub(super) enum Source {
    /// Those of this range of numbers in memory.
    Memory { at: usize, end: usize },
    /// A run.
    Run(Box<Reader>),
}

impl Source {
    pub fn memory(at: usize, end: usize) -> Source {
        Source::Memory { at, end }
    }

    pub fn run(file: &TemporaryFile, run: Run, read_bytes: usize) -> Source {
        Source::Run(Box::new(Reader::new(file, run, read_bytes)))
    }
}

/// See the module's text. Older sources come first.
pub(super) struct Merge<O> {
    order: O,
    entries: Entries,
    sources: Vec<Source>,
    /// Sources that have an entry left, the one with the smallest on top.
    heap: Vec<usize>,
}

impl<O: Order> Merge<O> {
    pub fn new(order: O, entries: Entries, sources: Vec<Source>) -> Merge<O> {
        Merge { order, entries, sources, heap: Vec::new() }
    }

    /// Reads the first entry of every source.
    pub async fn start(&mut self) -> Result<()> {
        for (number, source) in self.sources.iter_mut().enumerate() {
            let has_one = match source {
                Source::Memory { at, end } => at < end,
                Source::Run(reader) => reader.advance().await?,
            };
            if has_one {
                self.heap.push(number);
            }
        }
        for place in (0..self.heap.len() / 2).rev() {
            self.sink(place);
        }
        Ok(())
    }

    fn entry(&self, source: usize) -> &[u8] {
        match &self.sources[source] {
            Source::Memory { at, .. } => self.entries.entry(*at),
            Source::Run(reader) => reader.entry(),
        }
    }

    fn is_before(&self, left: usize, right: usize) -> bool {
        self.order.compare(self.entry(left), self.entry(right)).then(left.cmp(&right)).is_lt()
    }

    /// Moves the source at `place` of the heap down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }

    /// The smallest entry.
    #[inline]
    pub fn head(&self) -> Option<&[u8]> {
        self.heap.first().map(|source| self.entry(*source))
    }

    /// Leaves it, if it lies in memory; false if not.
    #[inline]
    pub fn advance_in_memory(&mut self) -> bool {
        let Some(source) = self.heap.first() else { return true };
        let Source::Memory { at, end } = &mut self.sources[*source] else { return false };
        *at += 1;
        if at == end {
            self.heap.swap_remove(0);
        }
        if self.heap.len() > 1 {
            self.sink(0);
        }
        true
    }

    /// Leaves it.
    pub async fn advance(&mut self) -> Result<()> {
        if self.advance_in_memory() {
            return Ok(());
        }
        if let Some(source) = self.heap.first()
            && let Source::Run(reader) = &mut self.sources[*source]
        {
            if !reader.advance().await? {
                self.heap.swap_remove(0);
            }
            self.sink(0);
        }
        Ok(())
    }

    /// Writes everything as one run.
    pub async fn write(&mut self, file: &TemporaryFile, level: u32, slice: &TimeSlice) -> Result<Run> {
        self.start().await?;
        let mut writer = RunWriter::new(file, level);
        while let Some(entry) = self.head() {
            if writer.put(entry) {
                writer.flush().await?;
            }
            slice.work(1).await?;
            self.advance().await?;
        }
        writer.finish().await
    }

    /// The memory's buffers, emptied, for the next entries.
    pub fn into_buffers(self) -> Entries {
        let Entries { mut arena, mut starts } = self.entries;
        arena.clear();
        starts.clear();
        Entries { arena, starts }
    }
}
