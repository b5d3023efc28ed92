//! The memory that heads lie in (`heads.rs`): a room for each frame, in the buckets of `growing.rs`.
//!
//! Mapped as the memory of pages is (`page_memory.rs`), so that it costs what was touched and is given back
//! to the system when its frames leave the pool. It is not to be of huge pages: few of the rooms are written
//! to, and each would take two megabytes. Where there is no memory a page has no heads, and is searched as it
//! always was.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pool::growing::{Buckets, Growing};
use crate::pool::page_memory::{give_back, map, system_page_bytes, unmap, without_huge_pages};

/// Rooms of `N` words, by frame.
pub(crate) struct Rooms<const N: usize> {
    rooms: Buckets<[AtomicU64; N]>,
    /// A bit for each frame: its room was written to, and not given back since. Beside the rooms, because a
    /// look at one that was never written to would have the system map a page for it.
    written: Growing<AtomicU64>,
    /// Bytes of those rooms.
    bytes: AtomicU64,
    #[cfg(test)]
    refused: std::sync::atomic::AtomicBool,
}

impl<const N: usize> Rooms<N> {
    const BYTES: usize = N * size_of::<AtomicU64>();

    pub(crate) fn new() -> Self {
        Self {
            rooms: Buckets::new(),
            written: Growing::new(),
            bytes: AtomicU64::new(0),
            #[cfg(test)]
            refused: false.into(),
        }
    }

    /// The room of a frame, if there is memory for it.
    #[inline]
    pub(crate) fn get(&self, frame: u32) -> Option<&[AtomicU64; N]> {
        self.rooms.get(frame)
    }

    /// Has `fill` write to the room of a frame; `None` where there is no memory for it. One caller at a time
    /// for each frame, who has its page latched; there may be readers without a latch, which believe nothing
    /// of what they read meanwhile.
    pub(crate) fn fill<'r, T>(
        &'r self,
        frame: u32,
        fill: impl FnOnce(&'r [AtomicU64; N]) -> Option<T>,
    ) -> Option<T> {
        // SAFETY: zeros are valid words; mapped until `drop`.
        let room = unsafe { self.rooms.get_or_make(frame, |rooms| self.map(rooms)) }?;
        let bit = 1 << (frame % u64::BITS);
        let before = self.written.try_get_or_grow(frame / u64::BITS)?.fetch_or(bit, Ordering::Relaxed);
        if before & bit == 0 {
            self.bytes.fetch_add(Self::BYTES as u64, Ordering::Relaxed);
        }
        fill(room)
    }

    fn map(&self, rooms: usize) -> Option<NonNull<[AtomicU64; N]>> {
        #[cfg(test)]
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let bytes = rooms.checked_mul(Self::BYTES)?;
        let start = map(bytes)?;
        without_huge_pages(start, bytes);
        NonNull::new(start.cast())
    }

    /// Gives the memory of frames that have left the pool back to the system. What lies on a page of the
    /// system's that others use too stays, and counts no more.
    pub(crate) fn discard(&self, frames: Range<u32>) {
        let mut gone = 0;
        for (word, bits) in words_of(&frames) {
            if let Some(written) = self.written.get(word) {
                gone += (written.fetch_and(!bits, Ordering::Relaxed) & bits).count_ones() as usize;
            }
        }
        self.bytes.fetch_sub((gone * Self::BYTES) as u64, Ordering::Relaxed);
        for rooms in self.rooms.parts(frames.start as usize..frames.end as usize) {
            // SAFETY: mapped by `map`, and stays mapped. The frames are withdrawn, so nobody has a pin or the
            // latch of one and nobody writes. Who has found such a frame too late may have a reference still,
            // to ask for the memory ahead of a use that then is none, or to read heads that it noted while
            // the frame had a page. It is to atomics, which others may change, here the system, to zeros; any
            // bits are valid words; and such a reader believes nothing of it, as the heads were forgotten
            // when the frame lost its page, before it was withdrawn.
            unsafe { give_back(rooms.cast().as_ptr(), rooms.len() * Self::BYTES, system_page_bytes()) };
        }
    }

    /// Bytes of rooms that were written to. The memory that they take is somewhat more: whole pages of the
    /// system's.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// From now on there is no more memory.
    #[cfg(test)]
    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// The words with bits of these frames, and those bits.
fn words_of(frames: &Range<u32>) -> impl Iterator<Item = (u32, u64)> {
    let (start, end) = (u64::from(frames.start), u64::from(frames.end.max(frames.start)));
    let width = u64::from(u64::BITS);
    (start / width..end.div_ceil(width)).map(move |word| {
        let first = word * width;
        let from = start.saturating_sub(first);
        let unused = (first + width).saturating_sub(end);
        // Of an empty range no word is looked at, but that which it begins within.
        let bits = if start == end { 0 } else { u64::MAX << from & u64::MAX >> unused };
        (word as u32, bits)
    })
}

impl<const N: usize> Drop for Rooms<N> {
    fn drop(&mut self) {
        for rooms in self.rooms.take() {
            // SAFETY: mapped by `map` with this length.
            unsafe { unmap(rooms.cast().as_ptr(), rooms.len() * Self::BYTES) };
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
    fn rooms_that_are_given_back_count_no_more() {
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
        if system_page_bytes() == 4096 {
            for frame in [64, 100, 127, 128] {
                assert_eq!(rooms.get(frame).unwrap()[0].load(Ordering::Relaxed), 0, "frame {frame}");
            }
        }
        rooms.discard(64..200);
        assert_eq!(rooms.bytes(), 3 * 4096, "once more");
        assert_eq!(put(&rooms, 100), Some(()));
        assert_eq!(rooms.bytes(), 4 * 4096);
    }

    #[test]
    fn each_frame_of_a_range_has_its_bit() {
        for (start, end) in [(0, 0), (5, 5), (0, 64), (1, 64), (0, 63), (63, 65), (10, 300), (64, 128)] {
            let mut frames = Vec::new();
            for (word, bits) in words_of(&(start..end)) {
                frames.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * 64 + bit));
            }
            assert_eq!(frames, (start..end).collect::<Vec<_>>(), "{start}..{end}");
        }
        let last = words_of(&(u32::MAX - 1..u32::MAX)).last();
        assert_eq!(last, Some((u32::MAX / 64, 1 << 62)));
    }

    #[test]
    fn without_memory_there_is_no_room() {
        let rooms = Rooms::<512>::new();
        assert_eq!(put(&rooms, 1), Some(()));
        rooms.refuse();
        assert_eq!((put(&rooms, 2), put(&rooms, 64)), (Some(()), None), "a bucket that is there stays");
    }

    /// One written room of very many takes a page of the system's; the others take none, not even when they
    /// are given back.
    #[test]
    #[cfg(not(miri))]
    fn rooms_that_nobody_wrote_to_take_no_memory() {
        use crate::pool::page_memory::has_small_huge_pages;
        use crate::pool::page_memory::tests::{flags_of, resident};
        const FRAMES: u32 = 1 << 15;
        let rooms = Rooms::<512>::new();
        put(&rooms, FRAMES).unwrap();
        let (first, bytes) = (rooms.get(FRAMES).unwrap().as_ptr().addr(), FRAMES as usize * 4096);
        if has_small_huge_pages() {
            let flags = flags_of(first);
            assert!(flags.split(' ').any(|flag| flag == "nh"), "{flags}");
        }
        let page = system_page_bytes();
        assert_eq!(resident(first, bytes), page.max(4096), "bytes of one room");
        rooms.discard(FRAMES + 1..2 * FRAMES);
        assert_eq!(resident(first, bytes), page.max(4096), "after a look at which there are");
    }
}
