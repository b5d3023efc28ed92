//! Requests that write pages of a batch to their places.
//!
//! Pages that are neighbours both in the batch and in their file become one request, unless their being
//! written whole depends on a request of their own.

use disk::{File, IoBuf, IoKind};
use page::WriteBatch;
use std::ops::Range;
use std::sync::Arc;

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

/// Requests for the pages (indices in the batch, ascending).
pub(crate) fn requests(batch: &WriteBatch, pages: &[usize], cut: Cut) -> Vec<(Arc<dyn File>, IoKind)> {
    let size = batch.page_size() as u64;
    let all = batch.pages();
    let most = if let Cut::Slices(pages) = cut { pages.max(1) } else { usize::MAX };
    let goes_on = |page: usize, next: usize| {
        cut != Cut::Single
            && page + 1 == next
            && Arc::ptr_eq(&all[page].file, &all[next].file)
            && all[page].offset + size == all[next].offset
    };
    runs(pages, goes_on)
        .flat_map(|run| run.chunks(most))
        .map(|run| {
            let (first, last) = (run[0], run[run.len() - 1]);
            let kind = IoKind::Write {
                buf: IoBuf::Shared(batch.images().clone(), batch.range(first).start..batch.range(last).end),
                offset: all[first].offset,
                atomic: false,
                sync: false,
            };
            (all[first].file.clone(), kind)
        })
        .collect()
}

/// Requests that write each of these stretches (of indices in the batch; pages that lie back to back in one
/// file) atomically (`RWF_ATOMIC`: the kernel refuses what the storage cannot keep whole).
pub(crate) fn atomic_requests(
    batch: &WriteBatch,
    stretches: &[Range<usize>],
) -> Vec<(Arc<dyn File>, IoKind)> {
    let request = |stretch: &Range<usize>| {
        let first = &batch.pages()[stretch.start];
        let bytes = batch.range(stretch.start).start..batch.range(stretch.end - 1).end;
        let atomic_length = bytes.len().is_power_of_two() && first.offset.is_multiple_of(bytes.len() as u64);
        assert!(atomic_length, "{} bytes at {} are not written atomically", bytes.len(), first.offset);
        let buf = IoBuf::Shared(batch.images().clone(), bytes);
        (first.file.clone(), IoKind::Write { buf, offset: first.offset, atomic: true, sync: false })
    };
    stretches.iter().map(request).collect()
}

/// Cuts `pages` into runs of which each page goes on after the one before.
pub(crate) fn runs<'a>(
    pages: &'a [usize],
    goes_on: impl Fn(usize, usize) -> bool + 'a,
) -> impl Iterator<Item = &'a [usize]> {
    pages.chunk_by(move |page, next| goes_on(*page, *next))
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
