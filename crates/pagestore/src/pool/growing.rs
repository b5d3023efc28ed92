//! Arrays that grow by doubling and never move, so that they are read without a lock.
//!
//! Elements 0..2^32 lie in [`Buckets`], each as large as all before it together. A bucket is made when its
//! first element is asked for and stays where it is until the array is dropped, so a look-up is two loads.
//! Where its memory comes from is the user's business: from the heap for a [`Growing`], from the system for
//! what is given back to it (`heads_memory.rs`). Either backs only what is touched.

use std::alloc::Layout;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

const FIRST_BUCKET: usize = 64;
const BUCKETS: usize = 27;
/// As many elements as there can be.
const LEN_MAX: usize = 1 << 32;

/// The bucket of an element, and its place in it.
#[inline]
fn place_of(index: u32) -> (usize, usize) {
    let index = index as usize;
    if index < FIRST_BUCKET {
        return (0, index);
    }
    let bucket = (index.ilog2() - FIRST_BUCKET.ilog2()) as usize + 1;
    (bucket, index - (FIRST_BUCKET << (bucket - 1)))
}

/// How many elements a bucket has.
fn bucket_len(bucket: usize) -> usize {
    if bucket == 0 { FIRST_BUCKET } else { FIRST_BUCKET << (bucket - 1) }
}

/// The buckets of an array, no matter who owns their memory.
pub(super) struct Buckets<T> {
    starts: [AtomicPtr<T>; BUCKETS],
    grow: Mutex<()>,
}

impl<T> Buckets<T> {
    pub(super) fn new() -> Self {
        Self { starts: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS], grow: Mutex::new(()) }
    }

    /// An element, if its bucket is there.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (bucket, place) = place_of(index);
        let start = self.starts[bucket].load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a bucket that is not null has `bucket_len` elements and lives as long as self; place is
        // below that.
        Some(unsafe { &*start.add(place) })
    }

    /// An element. Unless its bucket is there, `make` is asked for memory for that number of elements; `None`
    /// where it has none.
    ///
    /// # Safety
    /// What `make` gives are that many valid elements, and they live until [`Buckets::take`].
    pub(super) unsafe fn get_or_make(
        &self,
        index: u32,
        make: impl FnOnce(usize) -> Option<NonNull<T>>,
    ) -> Option<&T> {
        if let Some(element) = self.get(index) {
            return Some(element);
        }
        let (bucket, _) = place_of(index);
        let growing = self.grow.lock();
        if self.starts[bucket].load(Ordering::Acquire).is_null() {
            self.starts[bucket].store(make(bucket_len(bucket))?.as_ptr(), Ordering::Release);
        }
        drop(growing);
        self.get(index)
    }

    /// The elements of `range` that are in buckets, by bucket.
    pub(super) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = NonNull<[T]>> {
        let mut end = 0;
        self.starts.iter().enumerate().filter_map(move |(bucket, start)| {
            let first = end;
            end += bucket_len(bucket);
            let part = range.start.max(first)..range.end.min(end);
            let start = NonNull::new(start.load(Ordering::Acquire)).filter(|_| !part.is_empty())?;
            // SAFETY: the part lies in the bucket.
            let start = unsafe { start.add(part.start - first) };
            Some(NonNull::slice_from_raw_parts(start, part.len()))
        })
    }

    /// Takes all buckets out, for their owner to free.
    pub(super) fn take(&mut self) -> impl Iterator<Item = NonNull<[T]>> {
        self.starts.iter_mut().enumerate().filter_map(|(bucket, start)| {
            let start = NonNull::new(std::mem::replace(start.get_mut(), ptr::null_mut()))?;
            Some(NonNull::slice_from_raw_parts(start, bucket_len(bucket)))
        })
    }
}

/// Types whose all-zero bytes are a valid, empty value.
///
/// # Safety
/// All-zero bytes must be a valid value, and dropping a value must need no code.
pub(crate) unsafe trait Zeroed {}

// SAFETY: zero is a valid AtomicU32.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: zero is a valid AtomicU64.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: a null pointer is a valid AtomicPtr.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// A zeroed array on the heap that grows and never moves.
pub(crate) struct Growing<T>(Buckets<T>);

impl<T: Zeroed> Growing<T> {
    pub(crate) fn new() -> Self {
        Self(Buckets::new())
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.0.get(index)
    }

    /// As [`Growing::try_get_or_grow`], where nothing can go on without memory.
    pub(crate) fn get_or_grow(&self, index: u32) -> &T {
        match self.try_get_or_grow(index) {
            Some(element) => element,
            None => std::alloc::handle_alloc_error(Layout::new::<T>()),
        }
    }

    /// The element, in a bucket that is allocated for it if there is none; `None` without memory for that.
    pub(crate) fn try_get_or_grow(&self, index: u32) -> Option<&T> {
        let zeroed = |len| {
            let layout = Layout::array::<T>(len).ok()?;
            if layout.size() == 0 {
                return None;
            }
            // SAFETY: of a size that is not zero. Zeros are valid elements by the trait's contract.
            NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>())
        };
        // SAFETY: allocated as a box of that many elements is, freed as one by `drop` alone.
        unsafe { self.0.get_or_make(index, zeroed) }
    }

    /// Calls `f` for the elements below `end` that are in allocated buckets.
    pub(super) fn for_each_below(&self, end: u32, mut f: impl FnMut(&T)) {
        for part in self.0.parts(0..end as usize) {
            // SAFETY: elements of a bucket, which lives as long as self.
            unsafe { part.as_ref() }.iter().for_each(&mut f);
        }
    }

    /// Calls `f` for every element of allocated buckets.
    pub(super) fn for_each(&self, mut f: impl FnMut(&T)) {
        for part in self.0.parts(0..LEN_MAX) {
            // SAFETY: as above.
            unsafe { part.as_ref() }.iter().for_each(&mut f);
        }
    }
}

impl<T> Drop for Growing<T> {
    fn drop(&mut self) {
        for bucket in self.0.take() {
            // SAFETY: made by `get_or_grow` from a box of exactly this many elements.
            drop(unsafe { Box::from_raw(bucket.as_ptr()) });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
        assert_eq!((0..BUCKETS).map(bucket_len).sum::<usize>(), LEN_MAX);
    }

    #[test]
    fn parts_are_what_is_there_of_a_range() {
        let array = Growing::<AtomicU32>::new();
        for index in [0, 130, 300] {
            array.get_or_grow(index).store(index + 1, Ordering::Relaxed);
        }
        let lengths = |range| array.0.parts(range).map(|part| part.len()).collect::<Vec<_>>();
        // 0..64, 128..256 and 256..512 are there, 64..128 is not.
        assert_eq!(lengths(0..LEN_MAX), [64, 128, 256]);
        assert_eq!(lengths(10..257), [54, 128, 1]);
        assert_eq!(lengths(64..128), []);
        assert_eq!(lengths(130..130), []);
        let part = array.0.parts(130..131).next().unwrap();
        // SAFETY: it lives as long as the array.
        assert_eq!(unsafe { part.as_ref() }[0].load(Ordering::Relaxed), 131);
        let (mut sum, mut all) = (0, 0);
        array.for_each_below(300, |element| sum += element.load(Ordering::Relaxed));
        array.for_each(|element| all += element.load(Ordering::Relaxed));
        assert_eq!((sum, all), (132, 433));
    }

    #[test]
    fn without_memory_there_is_no_bucket() {
        let mut buckets = Buckets::<AtomicU32>::new();
        // SAFETY: nothing is given.
        assert!(unsafe { buckets.get_or_make(5, |_| None) }.is_none() && buckets.get(5).is_none());
        assert_eq!(buckets.take().count(), 0);
    }
}
