//! From page number to frame, without a lock: arrays that grow by doubling and never move.
//!
//! [`Growing`] holds elements 0..2^32 in buckets, each as large as all before it together. A bucket is
//! allocated zeroed when its first element is asked for (the kernel backs only what is touched), stays where
//! it is until the array is dropped, and so a look-up is two loads. A [`PageTable`] maps the page numbers of
//! one tablespace to frames; a [`SpaceDirectory`] maps tablespace ids to page tables.
//!
//! A look-up may race with the removal of its tablespace: page tables are therefore never freed while the
//! store lives but emptied and used again for another tablespace. Whatever a stale look-up finds is checked
//! against the page id in the frame (see [`crate::pool::frame`]): `look_up` in `present_page.rs`.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::Mutex;

const FIRST_BUCKET: usize = 64;
pub(super) const BUCKETS: usize = 27;

/// Types whose all-zero bytes are a valid, empty value.
///
/// # Safety
/// All-zero bytes must be a valid value, and dropping a value must need no code.
pub(crate) unsafe trait Zeroed {}

// SAFETY: zero is a valid AtomicU32.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: a null pointer is a valid AtomicPtr.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// The bucket of an element, and its place in it.
#[inline]
pub(super) fn place_of(index: u32) -> (usize, usize) {
    let index = index as usize;
    if index < FIRST_BUCKET {
        return (0, index);
    }
    let bucket = (index.ilog2() - FIRST_BUCKET.ilog2()) as usize + 1;
    (bucket, index - (FIRST_BUCKET << (bucket - 1)))
}

/// How many elements a bucket has.
pub(super) fn bucket_len(bucket: usize) -> usize {
    if bucket == 0 { FIRST_BUCKET } else { FIRST_BUCKET << (bucket - 1) }
}

/// A zeroed array that grows and never moves.
pub(crate) struct Growing<T> {
    buckets: [AtomicPtr<T>; BUCKETS],
    grow: Mutex<()>,
}

impl<T: Zeroed> Growing<T> {
    pub(crate) fn new() -> Self {
        Self { buckets: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS], grow: Mutex::new(()) }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (bucket, place) = place_of(index);
        let start = self.buckets[bucket].load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a bucket that is not null has `bucket_len` elements and lives as long as self; place is
        // below that.
        Some(unsafe { &*start.add(place) })
    }

    pub(crate) fn get_or_grow(&self, index: u32) -> &T {
        if let Some(element) = self.get(index) {
            return element;
        }
        let (bucket, place) = place_of(index);
        let _growing = self.grow.lock();
        let mut start = self.buckets[bucket].load(Ordering::Acquire);
        if start.is_null() {
            // SAFETY: all-zero is a valid T by the trait's contract.
            let fresh = unsafe { Box::<[T]>::new_zeroed_slice(bucket_len(bucket)).assume_init() };
            start = Box::into_raw(fresh).cast::<T>();
            self.buckets[bucket].store(start, Ordering::Release);
        }
        // SAFETY: as in `get`.
        unsafe { &*start.add(place) }
    }

    /// Calls `f` for the elements below `end` that are in allocated buckets.
    fn for_each_below(&self, end: u32, mut f: impl FnMut(&T)) {
        let mut first = 0;
        for (bucket, start) in self.buckets.iter().enumerate() {
            let len = bucket_len(bucket);
            let wanted = (end as usize).saturating_sub(first).min(len);
            let start = start.load(Ordering::Acquire);
            if wanted > 0 && !start.is_null() {
                // SAFETY: as in `get`.
                unsafe { std::slice::from_raw_parts(start, wanted) }.iter().for_each(&mut f);
            }
            first += len;
        }
    }

    /// Calls `f` for every element of allocated buckets.
    fn for_each(&self, mut f: impl FnMut(&T)) {
        for (bucket, start) in self.buckets.iter().enumerate() {
            let start = start.load(Ordering::Acquire);
            if !start.is_null() {
                // SAFETY: as in `get`.
                unsafe { std::slice::from_raw_parts(start, bucket_len(bucket)) }.iter().for_each(&mut f);
            }
        }
    }
}

impl<T> Drop for Growing<T> {
    fn drop(&mut self) {
        for (bucket, start) in self.buckets.iter_mut().enumerate() {
            let start = *start.get_mut();
            if !start.is_null() {
                // SAFETY: made by `get_or_grow` from a box of exactly this many elements.
                drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(start, bucket_len(bucket))) });
            }
        }
    }
}

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
    fn places_are_dense_and_distinct() {
        let mut expected = (0, 0);
        for index in 0..if cfg!(miri) { 3_000 } else { 100_000 } {
            let (bucket, place) = place_of(index);
            assert_eq!((bucket, place), expected);
            expected = if place + 1 == bucket_len(bucket) { (bucket + 1, 0) } else { (bucket, place + 1) };
        }
        let (bucket, place) = place_of(u32::MAX);
        assert_eq!((bucket, place), (BUCKETS - 1, bucket_len(BUCKETS - 1) - 1));
    }

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
