//! Page images on their way to their files.
//!
//! A [`WriteBatch`] holds the page images back to back in one aligned allocation, so that a doublewrite is
//! one contiguous write of it. The allocation is reused: the writer gives the batch back.

use crate::PageId;
use disk::{AlignedBuf, Event, File};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Why pages are written; each purpose has doublewrite segments of its own, so that neither waits for the
/// other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlushPurpose {
    /// To move the checkpoint on (oldest changes first).
    #[default]
    Checkpoint,
    /// To make frames free (least recently used first).
    Lru,
}

/// Where one page image of a batch goes.
#[derive(Clone)]
pub struct PageWrite {
    /// The page.
    pub id: PageId,
    /// Its file.
    pub file: Arc<dyn File>,
    /// Byte offset in that file.
    pub offset: u64,
    /// Whether recovery would rebuild this page from the redo log without reading it: then it may tear.
    pub recreatable: bool,
}

/// How much time the writes of a batch may take. The writer should spread its requests over it, so that
/// others find the device's queue short.
#[derive(Clone, Default)]
pub struct Spread {
    /// Zero: as fast as it can.
    pub time: Duration,
    /// Set when somebody waits for the batch: from then on as fast as it can.
    pub hurry: Event,
}

/// Page images on their way to their files: [sealed](crate::seal()), back to back.
pub struct WriteBatch {
    images: Arc<AlignedBuf>,
    page_size: usize,
    pages: Vec<PageWrite>,
    /// Why they are written.
    pub purpose: FlushPurpose,
    /// How much time the writer may take.
    pub spread: Spread,
}

impl WriteBatch {
    /// An empty batch with room for `capacity` pages of `page_size` bytes.
    pub fn new(page_size: usize, capacity: usize, purpose: FlushPurpose) -> WriteBatch {
        WriteBatch {
            images: Arc::new(AlignedBuf::zeroed(page_size * capacity)),
            page_size,
            pages: Vec::with_capacity(capacity),
            purpose,
            spread: Spread::default(),
        }
    }

    /// Adds a page and gives the place for its image, `page_size` bytes to be filled whole by the caller
    /// (they hold what an earlier use of the batch left there).
    ///
    /// # Panics
    /// When the batch is full, or still used by a writer.
    pub fn push(&mut self, id: PageId, file: Arc<dyn File>, offset: u64) -> &mut [u8] {
        assert!(self.pages.len() < self.capacity(), "a write batch holds {} pages", self.capacity());
        let range = self.range(self.pages.len());
        self.pages.push(PageWrite { id, file, offset, recreatable: false });
        match Arc::get_mut(&mut self.images) {
            Some(images) => &mut images[range],
            None => unreachable!("a write batch is filled by its only owner"),
        }
    }

    /// Says of the page added last that recovery would rebuild it from the redo log without reading it.
    pub fn mark_recreatable(&mut self) {
        if let Some(page) = self.pages.last_mut() {
            page.recreatable = true;
        }
    }

    /// Forgets the pages and keeps the memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.spread = Spread::default();
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether it has no page.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Number of pages it has room for.
    pub fn capacity(&self) -> usize {
        self.images.len() / self.page_size
    }

    /// Bytes per page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The pages, in the order of their images.
    pub fn pages(&self) -> &[PageWrite] {
        &self.pages
    }

    /// The image of page `index`.
    pub fn image(&self, index: usize) -> &[u8] {
        assert!(index < self.pages.len());
        &self.images[self.range(index)]
    }

    /// The allocation that holds all images, for writers.
    pub fn images(&self) -> &Arc<AlignedBuf> {
        &self.images
    }

    /// Where in [`WriteBatch::images`] the image of page `index` lies.
    pub fn range(&self, index: usize) -> Range<usize> {
        index * self.page_size..(index + 1) * self.page_size
    }
}

/// A batch whose pages are in their files.
pub struct WrittenBatch {
    /// The batch, still filled.
    pub batch: WriteBatch,
    /// Whether a crash cannot undo any of the writes; else only when the next
    /// [`PageWriter::sync_written`](crate::PageWriter::sync_written) is over.
    pub durable: bool,
}
