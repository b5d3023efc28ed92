//! Putting torn pages right, before redo is applied.
//!
//! For every whole copy in a doublewrite slot the data page is read. Only a page that is damaged, or all zero while
//! its copy is not, is restored; a whole page is never overwritten, however old it is, because redo brings it forward.
//! Of several copies the one with the greatest LSN counts. A copy that is itself torn means that the crash came before
//! its batch was durable in the doublewrite file, so the data pages of that batch had not been touched yet.
//!
//! Offsets in a page (FIL header): page number at 4, LSN at 16, space number at 34, all big-endian.

use crate::area::{Sort, file_name};
use disk::{AlignedBuf, File, OpenHow, PageId, Result, Storage};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Slots are read in steps of this many bytes.
const READ_STEP: usize = 1 << 20;

/// What [`recover`] did.
#[derive(Clone, Default, Debug)]
pub struct Recovered {
    /// Pages restored from their copies, in ascending order.
    pub restored: Vec<PageId>,
    /// Valid copies looked at.
    pub copies: usize,
    /// Slots that hold something which is not a whole page: the traces of a batch the crash interrupted.
    pub damaged_copies: usize,
}

/// Finds the data file of a page: its file, and the byte offset of the page in it. `None` for a page of a tablespace
/// that is no more.
pub type Locate<'a> = &'a mut dyn FnMut(PageId) -> Result<Option<(Arc<dyn File>, u64)>>;

/// Restores torn pages from the doublewrite files in `directory`; before redo is applied. `verify` says whether a page
/// image is valid (checksum and LSN fields agree).
pub fn recover(
    storage: &dyn Storage,
    directory: &Path,
    page_size: usize,
    verify: &dyn Fn(&[u8]) -> bool,
    locate: Locate<'_>,
) -> Result<Recovered> {
    recover_since(storage, directory, page_size, 0, verify, locate)
}

/// The same, using only copies whose LSN is at least `checkpoint_lsn`. A page whose write a crash interrupted was
/// dirty, so its LSN is not below the checkpoint; an older copy is a leftover, and putting it in the place of a page
/// that was damaged by something else would lose changes that redo no longer holds.
pub fn recover_since(
    storage: &dyn Storage,
    directory: &Path,
    page_size: usize,
    checkpoint_lsn: u64,
    verify: &dyn Fn(&[u8]) -> bool,
    locate: Locate<'_>,
) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    let mut newest: BTreeMap<PageId, Copy> = BTreeMap::new();
    for file in files(storage, directory, page_size)? {
        visit_slots(&file, page_size, &mut |offset, image| {
            if image.iter().all(|byte| *byte == 0) {
                return;
            }
            if !verify(image) {
                recovered.damaged_copies += 1;
                return;
            }
            recovered.copies += 1;
            let (page, lsn) = (page_id(image), lsn(image));
            let is_newest = newest.get(&page).is_none_or(|known| known.lsn < lsn);
            if lsn >= checkpoint_lsn && is_newest {
                newest.insert(page, Copy { lsn, file: file.clone(), offset });
            }
        })?;
    }
    let mut changed: Vec<Arc<dyn File>> = Vec::new();
    let mut image = AlignedBuf::zeroed(page_size);
    let mut data = AlignedBuf::zeroed(page_size);
    for (page, copy) in newest {
        let Some((file, offset)) = locate(page)? else { continue };
        // Beyond the end of the file: the extension was lost with the crash, and redo repeats it.
        if offset >= file.len()? || is_whole(&*file, offset, &mut data, verify) {
            continue;
        }
        copy.file.read_at(&mut image, copy.offset)?;
        file.write_at(&image, offset)?;
        recovered.restored.push(page);
        if !changed.iter().any(|known| Arc::ptr_eq(known, &file)) {
            changed.push(file);
        }
    }
    for file in changed {
        file.sync_data()?;
    }
    Ok(recovered)
}

/// Where a copy lies.
struct Copy {
    lsn: u64,
    file: Arc<dyn File>,
    offset: u64,
}

/// Opens the doublewrite files of this page size, in the order of their numbers.
fn files(storage: &dyn Storage, directory: &Path, page_size: usize) -> Result<Vec<Arc<dyn File>>> {
    let mut found = Vec::new();
    for entry in storage.list(directory)? {
        let Some(middle) = entry.name.strip_prefix("#ib_").and_then(|rest| rest.strip_suffix(".dblwr"))
        else {
            continue;
        };
        let number = middle.split_once('_').and_then(|(_, number)| number.parse::<usize>().ok());
        match number {
            Some(number) if entry.name == file_name(page_size, number, Sort::Copies) => {
                found.push((number, entry.name))
            }
            _ => {
                tracing::warn!(name = entry.name, "a doublewrite file of another page size is not looked at")
            }
        }
    }
    found.sort();
    found.iter().map(|(_, name)| storage.open(&directory.join(name), OpenHow::READ_ONLY)).collect()
}

/// Calls `visit` with the offset and the image of every slot. A slot that the file ends in is no slot.
fn visit_slots(file: &Arc<dyn File>, page_size: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
    let end = file.len()? / page_size as u64 * page_size as u64;
    let mut buf = AlignedBuf::zeroed(READ_STEP.max(page_size));
    let mut at = 0;
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(buf.len()).min(buf.len());
        file.read_at(&mut buf[..length], at)?;
        for (index, image) in buf[..length].chunks_exact(page_size).enumerate() {
            visit(at + (index * page_size) as u64, image);
        }
        at += length as u64;
    }
    Ok(())
}

/// Whether the data page can stay as it is: readable, not all zero, and valid.
fn is_whole(file: &dyn File, offset: u64, data: &mut [u8], verify: &dyn Fn(&[u8]) -> bool) -> bool {
    match file.read_at(data, offset) {
        Ok(()) => data.iter().any(|byte| *byte != 0) && verify(data),
        Err(error) => {
            // A file that ends inside the page, or a sector that the device gave up: writing the copy mends both.
            tracing::warn!(%error, "a page is to be restored because it cannot be read");
            false
        }
    }
}

fn page_id(image: &[u8]) -> PageId {
    PageId::new(u32_at(image, 34), u32_at(image, 4))
}

fn lsn(image: &[u8]) -> u64 {
    u64::from(u32_at(image, 16)) << 32 | u64::from(u32_at(image, 20))
}

fn u32_at(image: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([image[at], image[at + 1], image[at + 2], image[at + 3]])
}
