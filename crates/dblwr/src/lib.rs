//! The doublewrite buffer: a page image reaches a doublewrite file, durably, before it may tear in its own file.
//! (Stub; see the `disk::PageWriter` trait.)
use disk::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of a [`Doublewrite`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the `#ib_<page_size>_<n>.dblwr` files live: the data directory.
    pub directory: PathBuf,
    /// Bytes per page.
    pub page_size: usize,
    /// Pages per segment; larger batches are split.
    pub batch_pages: usize,
    /// Segments for each purpose: how many batches may be under way at once.
    pub segments: usize,
}

/// Writes pages through the doublewrite files.
pub struct Doublewrite {}
impl Doublewrite {
    /// Creates or reuses the files. Call [`recover`] first: this overwrites the copies.
    pub fn open(_env: Arc<dyn Environment>, _options: Options) -> Result<Doublewrite> {
        todo!()
    }
    /// Counters.
    pub fn status(&self) -> Status {
        todo!()
    }
}
impl PageWriter for Doublewrite {
    fn write(&self, _batch: WriteBatch) -> PageWriteFuture {
        todo!()
    }
}
/// Writes pages in place and syncs, without doublewrite: for storage that never tears a page, or a user who says OFF.
pub struct DirectWriter {}
impl DirectWriter {
    /// A writer on this environment.
    pub fn new(_env: Arc<dyn Environment>) -> DirectWriter {
        todo!()
    }
    /// Counters.
    pub fn status(&self) -> Status {
        todo!()
    }
}
impl PageWriter for DirectWriter {
    fn write(&self, _batch: WriteBatch) -> PageWriteFuture {
        todo!()
    }
}
/// Work done so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Status {
    /// Pages written to their place (`Innodb_dblwr_pages_written` for the doublewrite).
    pub pages: u64,
    /// Batches (`Innodb_dblwr_writes` for the doublewrite).
    pub batches: u64,
    /// Syncs of doublewrite and data files.
    pub syncs: u64,
    /// Bytes written to doublewrite and data files.
    pub bytes: u64,
}
/// What [`recover`] did.
#[derive(Clone, Default, Debug)]
pub struct Recovered {
    /// Pages restored from their copies, in ascending order.
    pub restored: Vec<PageId>,
    /// Valid copies looked at.
    pub copies: usize,
}
/// Finds the data file of a page: its file, and the byte offset of the page in it.
pub type Locate<'a> = &'a mut dyn FnMut(PageId) -> Result<Option<(Arc<dyn File>, u64)>>;
/// Restores torn pages from the doublewrite files in `directory`; before redo is applied. `verify` says whether a page
/// image is valid (checksum and LSN fields agree).
pub fn recover(
    _storage: &dyn Storage,
    _directory: &Path,
    _page_size: usize,
    _verify: &dyn Fn(&[u8]) -> bool,
    _locate: Locate<'_>,
) -> Result<Recovered> {
    todo!()
}
