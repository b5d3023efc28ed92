//! From page number to frame, without a lock, in arrays that grow and never move (`growing.rs`).
//!
//! A [`PageTable`] maps the page numbers of one tablespace to frames; a [`SpaceDirectory`] maps tablespace
//! ids to page tables.
//!
//! A look-up may race with the removal of its tablespace: page tables are therefore never freed while the
//! store lives but emptied and used again for another tablespace. Whatever a stale look-up finds is checked
//! against the page id in the frame (see [`crate::pool::frame`]): `look_up` in `present_page.rs`.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::pool::growing::Growing;

/// Page number to frame index of one tablespace.
pub(crate) struct PageTable(Growing<AtomicU32>);

impl PageTable {
    fn new() -> Self {
        Self(Growing::new())
    }

    /// The frame that was last said to hold the page. Pin it, then compare the page id.
    #[inline]
    pub(crate) fn get(&self, page: u32) -> Option<u32> {
        match self.0.get(page)?.load(Ordering::Acquire) {
            0 => None,
            entry => Some(entry - 1),
        }
    }

    pub(crate) fn set(&self, page: u32, frame: u32) {
        self.0.get_or_grow(page).store(frame + 1, Ordering::Release);
    }

    /// Removes the page if that frame holds it.
    pub(crate) fn remove(&self, page: u32, frame: u32) {
        if let Some(entry) = self.0.get(page) {
            // Fails only when another frame was entered since, which then stays.
            let _ = entry.compare_exchange(frame + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Calls `f` with each frame that is said to hold a page below `end`.
    pub(crate) fn for_each_frame(&self, end: u32, mut f: impl FnMut(u32)) {
        self.0.for_each_below(end, |entry| match entry.load(Ordering::Acquire) {
            0 => {}
            entry => f(entry - 1),
        });
    }

    fn assert_empty(&self) {
        if cfg!(debug_assertions) {
            self.0.for_each(|entry| {
                assert_eq!(entry.load(Ordering::Relaxed), 0, "a dropped tablespace has pages")
            });
        }
    }
}

/// Tablespace id to page table.
pub(crate) struct SpaceDirectory {
    low: Growing<AtomicPtr<PageTable>>,
    /// Ids from 0xFFFF_0000 on (undo and system tablespaces), counted downwards.
    high: Growing<AtomicPtr<PageTable>>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    all: Vec<*mut PageTable>,
    spare: Vec<*mut PageTable>,
}

// SAFETY: the pointers are owned boxes of a Sync type, freed only when the directory is dropped.
unsafe impl Send for Tables {}

const HIGH: u32 = 0xFFFF_0000;

/// No tablespace of a sound database has an id from here on, below the high ones: ids are counted up, one for
/// each table made. The directory of ids would take gigabytes for it.
pub(crate) const LOW_IDS_END: u32 = 1 << 28;

/// Whether a tablespace can have this id.
pub(crate) fn is_possible(space: u32) -> bool {
    !(LOW_IDS_END..HIGH).contains(&space)
}

impl SpaceDirectory {
    pub(crate) fn new() -> Self {
        Self { low: Growing::new(), high: Growing::new(), tables: Mutex::default() }
    }

    #[inline]
    fn slot(&self, space: u32) -> Option<&AtomicPtr<PageTable>> {
        if space < HIGH { self.low.get(space) } else { self.high.get(!space) }
    }

    /// The page table of an open tablespace.
    #[inline]
    pub(crate) fn get(&self, space: u32) -> Option<&PageTable> {
        let table = self.slot(space)?.load(Ordering::Acquire);
        // SAFETY: page tables are freed only when the directory is dropped.
        unsafe { table.as_ref() }
    }

    /// Gives the tablespace an empty page table.
    pub(crate) fn insert(&self, space: u32) {
        let mut tables = self.tables.lock();
        let table = tables.spare.pop().unwrap_or_else(|| {
            let fresh = Box::into_raw(Box::new(PageTable::new()));
            tables.all.push(fresh);
            fresh
        });
        let slot = if space < HIGH { self.low.get_or_grow(space) } else { self.high.get_or_grow(!space) };
        let before = slot.swap(table, Ordering::AcqRel);
        assert!(before.is_null(), "tablespace {space} was opened twice");
    }

    /// Takes the page table away; all its pages must have been removed.
    pub(crate) fn remove(&self, space: u32) {
        let Some(slot) = self.slot(space) else { return };
        let table = slot.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: as in `get`.
        if let Some(reference) = unsafe { table.as_ref() } {
            reference.assert_empty();
            self.tables.lock().spare.push(table);
        }
    }
}

impl Drop for SpaceDirectory {
    fn drop(&mut self) {
        for table in self.tables.get_mut().all.drain(..) {
            // SAFETY: made by `insert` from a box; `all` holds each once.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_entered_and_removed_by_frame() {
        // Miri goes through the pages one by one.
        const FAR: u32 = if cfg!(miri) { 5_000 } else { 1_000_000 };
        let directory = SpaceDirectory::new();
        for space in [0, 5, 70_000, 0xFFFF_FFF0, u32::MAX] {
            assert!(directory.get(space).is_none());
            directory.insert(space);
            let table = directory.get(space).unwrap_or_else(|| panic!("space {space}"));
            assert_eq!(table.get(9), None);
            table.set(9, 0);
            table.set(FAR, 7);
            table.remove(9, 3);
            assert_eq!((table.get(9), table.get(FAR)), (Some(0), Some(7)));
            for (end, frames) in [(9, vec![]), (10, vec![0]), (FAR, vec![0]), (u32::MAX, vec![0, 7])] {
                let mut found = Vec::new();
                table.for_each_frame(end, |frame| found.push(frame));
                assert_eq!(found, frames, "below {end}");
            }
            table.remove(9, 0);
            table.remove(FAR, 7);
            directory.remove(space);
            assert!(directory.get(space).is_none());
        }
    }
}
