//! The second half of every page write: the pages to their places, then a sync of every file touched.
//!
//! Pages that are neighbours both in the batch and in their file become one request. The syncs are submitted after
//! all writes have completed, because a sync covers only what was complete when it was asked for.

use crate::status::Counters;
use disk::{File, IoBuf, IoKind, Result, Storage, WriteBatch, submit_all};
use std::ops::Range;
use std::sync::Arc;

/// Whether and how page writes are all-or-nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Atomicity {
    /// Plain writes; neighbours are merged.
    Plain,
    /// One atomic write per page.
    PerPage,
}

/// Writes the pages `range` of the batch to their places and syncs their files.
pub(crate) async fn write_in_place(
    storage: &dyn Storage,
    batch: &WriteBatch,
    range: Range<usize>,
    atomicity: Atomicity,
    counters: &Counters,
) -> Result<()> {
    let requests = write_requests(batch, range.clone(), atomicity);
    submit_all(storage, requests).await?;
    let files = files_touched(batch, range.clone());
    let syncs = files.len();
    submit_all(storage, files.into_iter().map(|file| (file, IoKind::Sync)).collect()).await?;
    Counters::add(&counters.pages, range.len());
    Counters::add(&counters.bytes, range.len() * batch.page_size());
    Counters::add(&counters.syncs, syncs);
    Ok(())
}

fn write_requests(
    batch: &WriteBatch,
    range: Range<usize>,
    atomicity: Atomicity,
) -> Vec<(Arc<dyn File>, IoKind)> {
    let size = batch.page_size() as u64;
    let pages = batch.pages();
    let mut requests = Vec::new();
    let mut first = range.start;
    for index in range.clone() {
        let run_goes_on = atomicity == Atomicity::Plain
            && index + 1 < range.end
            && Arc::ptr_eq(&pages[index].file, &pages[index + 1].file)
            && pages[index].offset + size == pages[index + 1].offset;
        if run_goes_on {
            continue;
        }
        let part = batch.range(first).start..batch.range(index).end;
        let kind = IoKind::Write {
            buf: IoBuf::Shared(batch.images().clone(), part),
            offset: pages[first].offset,
            atomic: atomicity == Atomicity::PerPage,
            sync: false,
        };
        requests.push((pages[first].file.clone(), kind));
        first = index + 1;
    }
    requests
}

fn files_touched(batch: &WriteBatch, range: Range<usize>) -> Vec<Arc<dyn File>> {
    let mut files: Vec<Arc<dyn File>> = Vec::new();
    for page in &batch.pages()[range] {
        if !files.iter().any(|file| Arc::ptr_eq(file, &page.file)) {
            files.push(page.file.clone());
        }
    }
    files
}
