//! Requests that write pages of a batch to their places.
//!
//! Pages that are neighbours both in the batch and in their file become one request, unless their being written whole
//! depends on a request of their own.

use disk::{File, IoBuf, IoKind, WriteBatch};
use std::sync::Arc;

/// How requests are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Neighbours together.
    Merged,
    /// Each page by itself.
    Single,
    /// Each page by itself, asking the storage to keep it whole.
    Atomic,
}

/// Requests for the pages (indices in the batch, ascending).
pub(crate) fn requests(batch: &WriteBatch, pages: &[usize], cut: Cut) -> Vec<(Arc<dyn File>, IoKind)> {
    let size = batch.page_size() as u64;
    let all = batch.pages();
    let goes_on = |page: usize, next: usize| {
        cut == Cut::Merged
            && page + 1 == next
            && Arc::ptr_eq(&all[page].file, &all[next].file)
            && all[page].offset + size == all[next].offset
    };
    runs(pages, goes_on)
        .map(|run| {
            let (first, last) = (run[0], run[run.len() - 1]);
            let kind = IoKind::Write {
                buf: IoBuf::Shared(batch.images().clone(), batch.range(first).start..batch.range(last).end),
                offset: all[first].offset,
                atomic: cut == Cut::Atomic,
                sync: false,
            };
            (all[first].file.clone(), kind)
        })
        .collect()
}

/// Cuts `pages` into runs of which each page goes on after the one before.
pub(crate) fn runs<'a>(
    pages: &'a [usize],
    goes_on: impl Fn(usize, usize) -> bool + 'a,
) -> impl Iterator<Item = &'a [usize]> {
    pages.chunk_by(move |page, next| goes_on(*page, *next))
}

/// Adds the files of the pages to `files`, each once.
pub(crate) fn add_files(batch: &WriteBatch, pages: &[usize], files: &mut Vec<Arc<dyn File>>) {
    for page in pages {
        let file = &batch.pages()[*page].file;
        if !files.iter().rev().any(|known| Arc::ptr_eq(known, file)) {
            files.push(file.clone());
        }
    }
}
