//! The memory that heads lie in (`heads.rs`): a room for each frame, in buckets as those of a page table.
//!
//! Mapped as the memory of pages is (`page_memory.rs`), so that it costs what was touched and is given back
//! to the system when its frames leave the pool. Where there is none a page has no heads, and is searched as
//! it always was.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::pool::page_memory::{give_back, map, system_page_bytes, unmap};
use crate::pool::page_table::{BUCKETS, bucket_len, place_of};

/// Rooms of `N` words, by frame. The first word of one that holds heads is not zero, nor of one that did.
pub(crate) struct Rooms<const N: usize> {
    buckets: [AtomicPtr<[AtomicU64; N]>; BUCKETS],
    mapping: Mutex<Mapping>,
    /// Bytes of rooms that hold heads, or did.
    bytes: AtomicU64,
}

/// Whether the system is asked for memory.
enum Mapping {
    Asks,
    #[cfg(test)]
    Refused,
}

impl<const N: usize> Rooms<N> {
    const BYTES: usize = N * size_of::<AtomicU64>();

    pub(crate) fn new() -> Self {
        Self {
            buckets: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS],
            mapping: Mutex::new(Mapping::Asks),
            bytes: AtomicU64::new(0),
        }
    }

    /// The room of a frame, if there is memory for it.
    #[inline]
    pub(crate) fn get(&self, frame: u32) -> Option<&[AtomicU64; N]> {
        let (bucket, place) = place_of(frame);
        let start = self.buckets[bucket].load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a bucket that is not null has `bucket_len` rooms, zeros are valid ones, and it lives as
        // long as self; place is below that.
        Some(unsafe { &*start.add(place) })
    }

    /// Has `fill` write to the room of a frame; `None` where there is no memory for it. One caller at a time
    /// for each frame.
    pub(crate) fn fill<'r, T>(
        &'r self,
        frame: u32,
        fill: impl FnOnce(&'r [AtomicU64; N]) -> Option<T>,
    ) -> Option<T> {
        let room = self.get_or_map(frame)?;
        let was_empty = room[0].load(Ordering::Relaxed) == 0;
        let filled = fill(room);
        if was_empty && room[0].load(Ordering::Relaxed) != 0 {
            self.bytes.fetch_add(Self::BYTES as u64, Ordering::Relaxed);
        }
        filled
    }

    fn get_or_map(&self, frame: u32) -> Option<&[AtomicU64; N]> {
        if let Some(room) = self.get(frame) {
            return Some(room);
        }
        let (bucket, _) = place_of(frame);
        let mapping = self.mapping.lock();
        if self.buckets[bucket].load(Ordering::Acquire).is_null() {
            let start = match *mapping {
                Mapping::Asks => map(bucket_len(bucket).checked_mul(Self::BYTES)?)?,
                #[cfg(test)]
                Mapping::Refused => return None,
            };
            self.buckets[bucket].store(start.cast(), Ordering::Release);
        }
        drop(mapping);
        self.get(frame)
    }

    /// Gives the memory of frames that have left the pool back to the system.
    pub(crate) fn discard(&self, frames: Range<u32>) {
        let mut first = 0;
        for (bucket, start) in self.buckets.iter().enumerate() {
            let len = bucket_len(bucket);
            let part = (frames.start as usize).max(first)..(frames.end as usize).min(first + len);
            let start = start.load(Ordering::Acquire);
            if !part.is_empty() && !start.is_null() {
                for frame in part.clone() {
                    // What lies on a page of the system that others use too stays, as an empty one.
                    if let Some(room) = self.get(frame as u32)
                        && room[0].load(Ordering::Relaxed) != 0
                    {
                        room[0].store(0, Ordering::Relaxed);
                        self.bytes.fetch_sub(Self::BYTES as u64, Ordering::Relaxed);
                    }
                }
                // SAFETY: rooms of this bucket. Nobody has a frame of theirs, so nobody refers to them: who
                // comes too late asks for their memory ahead of a use, which is none, and has no reference.
                unsafe {
                    let rooms = start.add(part.start - first).cast::<u8>();
                    give_back(rooms, part.len() * Self::BYTES, system_page_bytes());
                }
            }
            first += len;
        }
    }

    /// Bytes of rooms that hold heads, or did.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// From now on there is no more memory.
    #[cfg(test)]
    pub(crate) fn refuse(&self) {
        *self.mapping.lock() = Mapping::Refused;
    }
}

impl<const N: usize> Drop for Rooms<N> {
    fn drop(&mut self) {
        for (bucket, start) in self.buckets.iter_mut().enumerate() {
            let start = *start.get_mut();
            if !start.is_null() {
                // SAFETY: mapped by `get_or_map` with this length.
                unsafe { unmap(start.cast(), bucket_len(bucket) * Self::BYTES) };
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn put(rooms: &Rooms<512>, frame: u32) -> Option<()> {
        rooms.fill(frame, |room| {
            room.iter().for_each(|word| word.store(7, Ordering::Relaxed));
            Some(())
        })
    }

    #[test]
    fn rooms_that_are_given_back_count_no_more_and_are_zero() {
        let rooms = Rooms::<512>::new();
        assert!(rooms.get(0).is_none() && rooms.bytes() == 0);
        for frame in [3, 63, 64, 100, 127, 128, 300] {
            assert_eq!(put(&rooms, frame), Some(()));
            assert_eq!(put(&rooms, frame), Some(()), "again");
        }
        assert_eq!(rooms.bytes(), 7 * 4096);
        rooms.discard(64..200);
        assert_eq!(rooms.bytes(), 3 * 4096);
        for frame in [3, 63, 300] {
            assert_eq!(rooms.get(frame).unwrap()[511].load(Ordering::Relaxed), 7, "frame {frame}");
        }
        for frame in [64, 100, 127, 128] {
            assert_eq!(rooms.get(frame).unwrap()[0].load(Ordering::Relaxed), 0, "frame {frame}");
        }
        assert_eq!(put(&rooms, 100), Some(()));
        assert_eq!(rooms.bytes(), 4 * 4096);
    }

    #[test]
    fn without_memory_there_is_no_room() {
        let rooms = Rooms::<512>::new();
        assert_eq!(put(&rooms, 1), Some(()));
        rooms.refuse();
        assert_eq!((put(&rooms, 2), put(&rooms, 64)), (Some(()), None), "a bucket that is there stays");
    }
}
