//! Cutting a batch into requests: pages to their places in their files, or to a doublewrite segment.
//!
//! Pages that are neighbours both in the batch and in their file become one request, unless their being
//! written whole depends on a request of their own. An atomic request is what the kernel takes as one: a
//! power of two of pages that begins at a multiple of its own length.

use disk::{File, FileRequest, IoBuf, IoKind};
use page::WriteBatch;
use std::ops::Range;
use std::sync::Arc;

/// A request, and what it is for.
pub(crate) struct PageRequest {
    /// What its outcome means.
    pub(crate) part: Part,
    /// For the storage.
    pub(crate) request: FileRequest,
}

/// What a request of a batch is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// These pages (indices in the batch), atomically, in their places.
    Atomic(Range<usize>),
    /// Pages in their places.
    InPlace,
    /// Copies of pages.
    Copies,
}

/// Requests that copy pages to a segment.
pub(crate) struct Copies {
    /// For the storage.
    pub(crate) requests: Vec<PageRequest>,
    /// It is one request, which syncs as well; else the segment's file has to be synced behind them.
    pub(crate) synced: bool,
}

/// How requests are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Neighbours together.
    Merged,
    /// Neighbours together, this many pages at most.
    Slices(usize),
    /// Each page by itself.
    Single,
}

impl Cut {
    /// Pages of a request, at most.
    fn most(self) -> usize {
        match self {
            Cut::Merged => usize::MAX,
            Cut::Slices(pages) => pages.max(1),
            Cut::Single => 1,
        }
    }
}

/// A page to be written atomically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AtomicPage {
    /// Index in the batch.
    pub(crate) index: usize,
    /// Bytes that its file takes atomically, at most. At least a page is tried.
    pub(crate) longest: u64,
}

/// Requests for the pages (indices in the batch, ascending), in their places.
pub(crate) fn in_place(batch: &WriteBatch, pages: &[usize], cut: Cut) -> Vec<PageRequest> {
    let request = |run: &[usize]| {
        let request = in_file(batch, run[0]..run[run.len() - 1] + 1, false);
        PageRequest { part: Part::InPlace, request }
    };
    let runs = pages.chunk_by(|page, next| goes_on(batch, *page, *next));
    runs.flat_map(|run| run.chunks(cut.most())).map(request).collect()
}

/// Requests that write these pages (ascending) atomically in their places (`RWF_ATOMIC`: the kernel refuses
/// what the storage cannot keep whole).
pub(crate) fn atomic(batch: &WriteBatch, pages: &[AtomicPage]) -> Vec<PageRequest> {
    let size = batch.page_size() as u64;
    let mut requests = Vec::with_capacity(pages.len());
    for run in pages.chunk_by(|page, next| goes_on(batch, page.index, next.index)) {
        let (mut from, end) = (run[0].index, run[run.len() - 1].index + 1);
        while from < end {
            let number = batch.pages()[from].offset / size;
            let aligned = 1 << number.trailing_zeros().min(16);
            let room = 1 << ((end - from) as u64).ilog2();
            let pages = (run[0].longest / size).min(aligned).min(room).max(1) as usize;
            let stretch = from..from + pages;
            let request = in_file(batch, stretch.clone(), true);
            requests.push(PageRequest { part: Part::Atomic(stretch), request });
            from += pages;
        }
    }
    requests
}

/// Requests that copy the pages, back to back, to this place: one for each stretch of the batch that is
/// copied, or for each slice of it.
pub(crate) fn copies(batch: &WriteBatch, pages: &[usize], to: (&Arc<dyn File>, u64), cut: Cut) -> Copies {
    let synced = cut == Cut::Merged && pages.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let (file, mut offset) = to;
    let copy = |run: &[usize]| {
        let bytes = batch.range(run[0]).start..batch.range(run[run.len() - 1]).end;
        let at = offset;
        offset += bytes.len() as u64;
        let buf = IoBuf::Shared(batch.images().clone(), bytes);
        let request = (file.clone(), IoKind::Write { buf, offset: at, atomic: false, sync: synced });
        PageRequest { part: Part::Copies, request }
    };
    let runs = pages.chunk_by(|page, next| page + 1 == *next).flat_map(|run| run.chunks(cut.most()));
    let requests = runs.map(copy).collect::<Vec<_>>();
    assert!(!synced || requests.len() == 1, "one of {} requests would sync for all", requests.len());
    Copies { requests, synced }
}

/// Whether `next` lies behind `page` in the batch and in their file.
fn goes_on(batch: &WriteBatch, page: usize, next: usize) -> bool {
    let all = batch.pages();
    page + 1 == next
        && Arc::ptr_eq(&all[page].file, &all[next].file)
        && all[page].offset + batch.page_size() as u64 == all[next].offset
}

/// Writes these pages, which lie back to back in one file.
fn in_file(batch: &WriteBatch, pages: Range<usize>, atomic: bool) -> FileRequest {
    let first = &batch.pages()[pages.start];
    let bytes = batch.range(pages.start).start..batch.range(pages.end - 1).end;
    let one_write = bytes.len().is_power_of_two() && first.offset.is_multiple_of(bytes.len() as u64);
    assert!(one_write || !atomic, "{} bytes at {} are not written atomically", bytes.len(), first.offset);
    let buf = IoBuf::Shared(batch.images().clone(), bytes);
    (first.file.clone(), IoKind::Write { buf, offset: first.offset, atomic, sync: false })
}

/// Adds the files of the pages to `files`, each once.
pub(crate) fn add_files(
    batch: &WriteBatch,
    pages: impl IntoIterator<Item = usize>,
    files: &mut Vec<Arc<dyn File>>,
) {
    for page in pages {
        let file = &batch.pages()[page].file;
        if !files.iter().rev().any(|known| Arc::ptr_eq(known, file)) {
            files.push(file.clone());
        }
    }
}
