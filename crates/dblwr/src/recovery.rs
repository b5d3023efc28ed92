//! Putting torn pages right, before redo is applied.
//!
//! For every whole copy in a doublewrite slot the data page is read. Only a page that is damaged, or all zero
//! while its copy is not, is restored; a whole page is never overwritten, however old it is, because redo
//! brings it forward. Of several copies the one with the greatest LSN counts. A copy that is itself torn
//! means that the crash came before its batch was durable in the doublewrite file, so the data pages of that
//! batch had not been touched yet.
//!
//! All files of this page size are read, also those with numbers beyond the present setting, in every
//! directory that was in use since the last start (see [`crate::directories`]), and the records of page
//! numbers that `DETECT_ONLY` leaves. A page that was under way, is damaged, and has no copy to restore it
//! from is reported as [`Unrestored`]: redo may still rebuild it; if it does not, the start has to stop, and
//! the report says why.

use crate::doublewrite_files::{Contents, file_name};
use crate::page_number_record;
use disk::{AlignedBuf, Environment, File, OpenHow, Result, Storage, Submitted};
use page::PageId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Slots are read in steps of this many bytes.
const READ_STEP: usize = 256 << 10;
/// Data pages that are read together, at most.
const READ_TOGETHER: usize = 64;

/// What [`recover`] did.
#[derive(Clone, Default, Debug)]
pub struct Recovered {
    /// Pages restored from their copies, in ascending order.
    pub restored: Vec<PageId>,
    /// Damaged pages without a copy to restore them from, in ascending order.
    pub unrestored: Vec<Unrestored>,
    /// Valid copies looked at.
    pub copies: usize,
    /// Pages compared with their copies.
    pub compared: usize,
    /// Slots that hold something which is not a whole page (the traces of a batch the crash interrupted), or
    /// that cannot be read.
    pub damaged_copies: usize,
}

/// A damaged page that stays damaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrestored {
    /// The page.
    pub page: PageId,
    /// Why it was not restored, a clause.
    pub why: &'static str,
}

const COPY_DAMAGED: &str = "its copy in the doublewrite file is damaged as well";
const COPY_TOO_OLD: &str = "its copy in the doublewrite file is older than the last checkpoint, so that redo no longer \
                            holds all later changes";
const COPY_UNREADABLE: &str = "its copy in the doublewrite file cannot be read";
const ONLY_NUMBER: &str = "it was written with innodb_doublewrite=DETECT_ONLY, which keeps no copies";

/// Finds the data file of a page: its file, and the byte offset of the page in it. `None` for a page of a
/// tablespace that is no more.
pub type Locate<'a> = &'a mut dyn FnMut(PageId) -> Result<Option<(Arc<dyn File>, u64)>>;

/// Restores torn pages from the doublewrite files in `directory`; before redo is applied.
pub fn recover(
    env: &dyn Environment,
    directory: &Path,
    page_size: usize,
    locate: Locate<'_>,
) -> Result<Recovered> {
    recover_since(env, &[directory.to_owned()], page_size, 0, locate)
}

/// The same for the files of several directories, of which some may be gone, using only copies whose LSN is
/// at least `checkpoint_lsn`. A page whose write a crash interrupted was dirty, so its LSN is not below the
/// checkpoint; an older copy is a leftover, and putting it in the place of a page that was damaged by
/// something else would lose changes that redo no longer holds.
///
/// Blocks, as [`Environment::block_until`] does.
pub fn recover_since(
    env: &dyn Environment,
    directories: &[PathBuf],
    page_size: usize,
    checkpoint_lsn: u64,
    locate: Locate<'_>,
) -> Result<Recovered> {
    let (mut found, storage) = (Found::default(), &**env.storage());
    for directory in directories {
        for file in files(storage, directory, page_size, Contents::Copies)? {
            found.recovered.damaged_copies += visit_slots(&file, page_size, &mut |offset, image| {
                found.copy(&file, offset, image, checkpoint_lsn);
            })?;
        }
        for file in files(storage, directory, page_size, Contents::Numbers)? {
            visit_slots(&file, page_number_record::RECORD, &mut |_, record| {
                found.record(record, checkpoint_lsn)
            })?;
        }
    }
    restore(env, found, page_size, locate)
}

/// Where a copy lies.
struct Copy {
    lsn: u64,
    file: Arc<dyn File>,
    offset: u64,
}

/// What the doublewrite files hold.
#[derive(Default)]
struct Found {
    recovered: Recovered,
    newest: BTreeMap<PageId, Copy>,
    /// Pages that were under way at some time and of which there is no usable copy, unless it is among
    /// `newest`.
    without_copy: BTreeMap<PageId, &'static str>,
}

impl Found {
    fn copy(&mut self, file: &Arc<dyn File>, offset: u64, image: &[u8], checkpoint_lsn: u64) {
        if page::is_all_zero(image) {
            return;
        }
        let (page, lsn) = (page::identity(image), page::lsn(image));
        if page::verify(image).is_err() {
            self.recovered.damaged_copies += 1;
            // If its first sector can be believed, this is the page; if not, the page is found whole or not
            // at all.
            self.without_copy.insert(page, COPY_DAMAGED);
            return;
        }
        self.recovered.copies += 1;
        if lsn < checkpoint_lsn {
            self.without_copy.entry(page).or_insert(COPY_TOO_OLD);
        } else if self.newest.get(&page).is_none_or(|known| known.lsn < lsn) {
            self.newest.insert(page, Copy { lsn, file: file.clone(), offset });
        }
    }

    fn record(&mut self, record: &[u8], checkpoint_lsn: u64) {
        // A torn record came before its pages were touched.
        for (page, lsn) in page_number_record::decode(record).unwrap_or_default() {
            if lsn >= checkpoint_lsn {
                self.without_copy.insert(page, ONLY_NUMBER);
            }
        }
    }
}

/// Restores the damaged ones of the pages found.
fn restore(env: &dyn Environment, found: Found, page_size: usize, locate: Locate<'_>) -> Result<Recovered> {
    let Found { mut recovered, newest, without_copy } = found;
    let mut places = Vec::with_capacity(newest.len());
    for (page, copy) in &newest {
        let Some((file, offset)) = locate(*page)? else { continue };
        recovered.compared += 1;
        // Beyond the end of the file: the extension was lost with the crash, and redo repeats it.
        if offset < file.len()? {
            places.push((*page, copy, file, offset));
        }
    }
    let mut changed: Vec<Arc<dyn File>> = Vec::new();
    let mut image = AlignedBuf::zeroed(page_size);
    for group in places.chunks(READ_TOGETHER) {
        let read = |(_, _, file, offset): &(_, _, Arc<dyn File>, u64)| {
            Submitted::read(&**env.storage(), file, AlignedBuf::zeroed(page_size), page_size, *offset)
        };
        let reads: Vec<_> = group.iter().map(read).collect();
        // All are waited for before anything is written.
        let read: Vec<_> = reads.into_iter().map(|read| read.wait_for_read(env)).collect();
        for ((page, copy, file, offset), data) in group.iter().zip(read) {
            // A request that failed says nothing of the page yet.
            let data = data.or_else(|_| file.read_at(&mut image, *offset).map(|()| image.clone()));
            if is_whole(data) {
                continue;
            }
            if let Err(error) = copy.file.read_at(&mut image, copy.offset) {
                tracing::warn!(%error, "a damaged page cannot be restored");
                recovered.unrestored.push(Unrestored { page: *page, why: COPY_UNREADABLE });
                continue;
            }
            file.write_at(&image, *offset)?;
            recovered.restored.push(*page);
            if !changed.iter().any(|known| Arc::ptr_eq(known, file)) {
                changed.push(file.clone());
            }
        }
    }
    for file in changed {
        file.sync_data()?;
    }
    let mut data = image;
    for (page, why) in without_copy {
        if newest.contains_key(&page) {
            continue;
        }
        let Some((file, offset)) = locate(page)? else { continue };
        // A page of zeros is one that was never written here.
        let whole =
            offset >= file.len()? || (file.read_at(&mut data, offset).is_ok() && page::verify(&data).is_ok());
        if !whole {
            recovered.unrestored.push(Unrestored { page, why });
        }
    }
    recovered.unrestored.sort_by_key(|unrestored| unrestored.page);
    Ok(recovered)
}

/// Opens the doublewrite files of this sort and page size, in the order of their numbers. A directory that is
/// gone has none.
fn files(
    storage: &dyn Storage,
    directory: &Path,
    page_size: usize,
    sort: Contents,
) -> Result<Vec<Arc<dyn File>>> {
    let mut found = Vec::new();
    if !storage.exists(directory)? {
        return Ok(Vec::new());
    }
    for entry in storage.list(directory)? {
        let Some(middle) = entry.name.strip_prefix("#ib_").and_then(|rest| rest.strip_suffix(sort.suffix()))
        else {
            continue;
        };
        let number = middle.split_once('_').and_then(|(_, number)| number.parse::<usize>().ok());
        match number {
            Some(number) if entry.name == file_name(page_size, number, sort) => {
                found.push((number, entry.name));
            }
            _ => {
                tracing::warn!(name = entry.name, "a doublewrite file of another page size is not looked at");
            }
        }
    }
    found.sort();
    found.iter().map(|(_, name)| storage.open(&directory.join(name), OpenHow::READ_ONLY)).collect()
}

/// Calls `visit` with the offset and the bytes of every slot that can be read, and returns how many cannot. A
/// slot that the file ends in is no slot.
///
/// What cannot be read is a damaged slot, not a reason to stop: hardly ever is a copy needed, and if this one
/// is, its page is damaged, which the start finds out.
fn visit_slots(file: &Arc<dyn File>, slot: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<usize> {
    let end = file.len()? / slot as u64 * slot as u64;
    let step = READ_STEP.min(usize::try_from(end).unwrap_or(READ_STEP)).max(slot);
    let mut buf = AlignedBuf::zeroed(step);
    let (mut at, mut unreadable) = (0, 0);
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(buf.len()).min(buf.len());
        let all = file.read_at(&mut buf[..length], at).is_ok();
        for (index, image) in buf[..length].chunks_exact_mut(slot).enumerate() {
            let offset = at + (index * slot) as u64;
            match if all { Ok(()) } else { file.read_at(image, offset) } {
                Ok(()) => visit(offset, image),
                Err(error) => {
                    tracing::warn!(%error, "a slot of a doublewrite file counts as damaged");
                    unreadable += 1;
                }
            }
        }
        at += length as u64;
    }
    Ok(unreadable)
}

/// Whether the data page can stay as it is: readable, not all zero, and valid.
fn is_whole(data: Result<AlignedBuf>) -> bool {
    match data {
        Ok(data) => !page::is_all_zero(&data) && page::verify(&data).is_ok(),
        Err(error) => {
            // A file that ends inside the page, or a sector that the device gave up: writing the copy mends
            // both.
            tracing::warn!(%error, "a page is to be restored because it cannot be read");
            false
        }
    }
}
