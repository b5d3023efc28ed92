//! The LRU list with a midpoint: who is evicted next.
//!
//! ```text
//!   head (young end) ──── young part ──── | ──── old part ──── tail (evicted first)
//!                                      old_head
//! ```
//!
//! A page read from a file enters at the head of the old part, so that a scan passes through the old
//! part and leaves the young one alone; a page created in memory enters at the young end, and one
//! that is loaded because it was in memory before a restart at the tail, since each is colder than
//! the one before. An old page becomes young when it is wanted again some time after its first access
//! (`innodb_old_blocks_time`); a young page moves to the young end again only when it has drifted out
//! of the first quarter of the young part, measured by the number of evictions since its last move.
//! So pages that are hot take no lock when they are accessed. (Rules and constants are InnoDB's.)
//!
//! The list is two arrays of links by frame index, all under one mutex; only `Frame::is_old` and
//! `Frame::young_clock` are read outside it.

use std::collections::TryReserveError;
use std::sync::atomic::Ordering;

use crate::counters::Counter;
use crate::pool::frame::{FrameRef, Frames, history, reach};
use crate::store::PageStore;

/// No frame.
const NONE: u32 = u32::MAX;
/// No old part below this many pages.
const OLD_LEN_MIN: usize = 512;
/// The boundary moves only when it is off by more than this many pages.
const OLD_TOLERANCE: usize = 20;
/// The young part keeps at least this many pages beyond the tolerance.
const YOUNG_LEN_MIN: usize = 5;

#[derive(Clone, Copy)]
struct Node {
    /// Towards the young end.
    younger: u32,
    /// Towards the tail.
    older: u32,
    listed: bool,
}

const UNLISTED: Node = Node { younger: NONE, older: NONE, listed: false };

/// The list. All methods run under the mutex that owns it.
pub(crate) struct Lru {
    /// As far as frames were used.
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
    old_head: u32,
    len: usize,
    old_len: usize,
    old_percent: usize,
}

impl Lru {
    pub(crate) fn new(frames: usize, old_percent: u8) -> Self {
        let nodes = Vec::with_capacity(frames);
        let old_percent = usize::from(old_percent.clamp(5, 95));
        Self { nodes, head: NONE, tail: NONE, old_head: NONE, len: 0, old_len: 0, old_percent }
    }

    /// Makes room for this number of frames.
    pub(crate) fn make_room(&mut self, frames: usize) -> Result<(), TryReserveError> {
        self.nodes.try_reserve_exact(frames.saturating_sub(self.nodes.len()))
    }

    /// Frames there is room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.nodes.capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn old_len(&self) -> usize {
        self.old_len
    }

    /// Enters a page read from a file.
    pub(crate) fn insert_old(&mut self, frames: &Frames, index: u32) {
        if self.old_head == NONE {
            self.insert_young(frames, index);
            return;
        }
        let older = self.old_head;
        let younger = self.nodes[older as usize].younger;
        self.link(index, younger, older);
        self.old_head = index;
        self.old_len += 1;
        frames.get(index).is_old.store(true, Ordering::Relaxed);
        self.balance(frames);
    }

    /// Enters a page that is colder than all others.
    pub(crate) fn insert_coldest(&mut self, frames: &Frames, index: u32) {
        let is_old = self.old_head != NONE;
        self.link(index, self.tail, NONE);
        self.old_len += usize::from(is_old);
        frames.get(index).is_old.store(is_old, Ordering::Relaxed);
        self.balance(frames);
    }

    /// Enters a page created in memory.
    pub(crate) fn insert_young(&mut self, frames: &Frames, index: u32) {
        self.link(index, NONE, self.head);
        frames.get(index).is_old.store(false, Ordering::Relaxed);
        self.balance(frames);
    }

    pub(crate) fn remove(&mut self, frames: &Frames, index: u32) {
        let node = self.nodes[index as usize];
        assert!(node.listed, "frame {index} is not in the LRU list");
        if self.old_head == index {
            self.old_head = node.older;
        }
        if frames.get(index).is_old.swap(false, Ordering::Relaxed) {
            self.old_len -= 1;
        }
        match node.younger {
            NONE => self.head = node.older,
            younger => self.nodes[younger as usize].older = node.older,
        }
        match node.older {
            NONE => self.tail = node.younger,
            older => self.nodes[older as usize].younger = node.younger,
        }
        self.nodes[index as usize].listed = false;
        self.len -= 1;
        self.balance(frames);
    }

    /// Moves a listed page to the young end.
    pub(crate) fn make_young(&mut self, frames: &Frames, index: u32) {
        if self.is_listed(index) && self.head != index {
            self.remove(frames, index);
            self.insert_young(frames, index);
        }
    }

    /// Gives the place of a listed page to another frame, which takes its page over.
    pub(crate) fn replace(&mut self, frames: &Frames, from: u32, to: u32) {
        reach(&mut self.nodes, to, UNLISTED);
        let node = std::mem::replace(&mut self.nodes[from as usize], UNLISTED);
        assert!(node.listed && !self.nodes[to as usize].listed, "frame {from} gives its place to frame {to}");
        self.nodes[to as usize] = node;
        match node.younger {
            NONE => self.head = to,
            younger => self.nodes[younger as usize].older = to,
        }
        match node.older {
            NONE => self.tail = to,
            older => self.nodes[older as usize].younger = to,
        }
        if self.old_head == from {
            self.old_head = to;
        }
        let is_old = frames.get(from).is_old.swap(false, Ordering::Relaxed);
        frames.get(to).is_old.store(is_old, Ordering::Relaxed);
    }

    pub(crate) fn is_listed(&self, index: u32) -> bool {
        self.nodes.get(index as usize).is_some_and(|node| node.listed)
    }

    /// The first page to evict.
    pub(crate) fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// The next page towards the young end.
    pub(crate) fn younger(&self, index: u32) -> Option<u32> {
        let younger = self.nodes[index as usize].younger;
        (younger != NONE).then_some(younger)
    }

    /// The next page towards the tail; `None` also of a frame that is not listed.
    pub(crate) fn older(&self, index: u32) -> Option<u32> {
        let node = self.nodes.get(index as usize).filter(|node| node.listed && node.older != NONE);
        node.map(|node| node.older)
    }

    /// The pages behind this one, or all from the young end on.
    pub(crate) fn youngest_first_after(&self, index: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let head = || (self.head != NONE).then_some(self.head);
        let first = index.map_or_else(head, |index| self.older(index));
        std::iter::successors(first, |index| self.older(*index))
    }

    /// Pages from the young end on.
    #[cfg(test)]
    pub(crate) fn youngest_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.youngest_first_after(None)
    }

    fn link(&mut self, index: u32, younger: u32, older: u32) {
        reach(&mut self.nodes, index, UNLISTED);
        assert!(!self.nodes[index as usize].listed, "frame {index} is in the LRU list already");
        self.nodes[index as usize] = Node { younger, older, listed: true };
        match younger {
            NONE => self.head = index,
            younger => self.nodes[younger as usize].older = index,
        }
        match older {
            NONE => self.tail = index,
            older => self.nodes[older as usize].younger = index,
        }
        self.len += 1;
    }

    /// Keeps the old part at its share of the list.
    fn balance(&mut self, frames: &Frames) {
        if self.len < OLD_LEN_MIN {
            self.dissolve_old_part(frames);
            return;
        }
        let target = (self.len * self.old_percent / 100).min(self.len - (OLD_TOLERANCE + YOUNG_LEN_MIN));
        while self.old_len + OLD_TOLERANCE < target || (self.old_len == 0 && target > 0) {
            let next =
                if self.old_head == NONE { self.tail } else { self.nodes[self.old_head as usize].younger };
            frames.get(next).is_old.store(true, Ordering::Relaxed);
            self.old_head = next;
            self.old_len += 1;
        }
        while self.old_len > target + OLD_TOLERANCE {
            frames.get(self.old_head).is_old.store(false, Ordering::Relaxed);
            self.old_head = self.nodes[self.old_head as usize].older;
            self.old_len -= 1;
        }
    }

    fn dissolve_old_part(&mut self, frames: &Frames) {
        while self.old_head != NONE {
            frames.get(self.old_head).is_old.store(false, Ordering::Relaxed);
            self.old_head = self.nodes[self.old_head as usize].older;
        }
        self.old_len = 0;
    }

    /// Checks links, counts and the old part's boundary.
    #[cfg(test)]
    fn check(&self, frames: &Frames) {
        let order: Vec<u32> = self.youngest_first().collect();
        assert_eq!(order.len(), self.len);
        let old: Vec<bool> = order.iter().map(|i| frames.get(*i).is_old.load(Ordering::Relaxed)).collect();
        assert_eq!(old.iter().filter(|old| **old).count(), self.old_len);
        assert!(old.is_sorted(), "old pages must follow young ones");
        assert_eq!(order.iter().zip(&old).find(|(_, old)| **old).map_or(NONE, |(i, _)| *i), self.old_head);
        let mut backwards: Vec<u32> = std::iter::successors(self.tail(), |i| self.younger(*i)).collect();
        backwards.reverse();
        assert_eq!(backwards, order);
        if self.len >= OLD_LEN_MIN {
            let target = self.len * self.old_percent / 100;
            assert!(self.old_len.abs_diff(target) <= OLD_TOLERANCE + 1, "{} of {}", self.old_len, self.len);
        }
    }
}

impl PageStore {
    /// Notes an access for the LRU list; takes a lock only when the page has to move.
    #[inline]
    pub(crate) fn touch(&self, frame: FrameRef) {
        if frame.is_old.load(Ordering::Relaxed) {
            self.touch_old(frame);
        } else {
            // The boundary may have passed a page that nobody had wanted yet.
            if frame.read_ahead.load(Ordering::Relaxed) {
                frame.read_ahead.store(false, Ordering::Relaxed);
            }
            let drift = self
                .freed_clock
                .load(Ordering::Relaxed)
                .wrapping_sub(frame.young_clock.load(Ordering::Relaxed));
            if drift > self.young_drift.load(Ordering::Relaxed) {
                frame.note(history::TOUCHED_AGAIN);
                self.make_young(frame);
            }
        }
    }

    /// An access to a page of the old part: is it far enough from the first one (`innodb_old_blocks_time`)?
    fn touch_old(&self, frame: FrameRef) {
        frame.read_ahead.store(false, Ordering::Relaxed);
        let now = self.now_ms.load(Ordering::Relaxed);
        let first = frame.first_access.load(Ordering::Relaxed);
        if first == 0 {
            frame.first_access.store(now, Ordering::Relaxed);
            if self.options.old_blocks_time_ms > 0 {
                return;
            }
        }
        // Within one tick of the coarse clock it is most likely the same operation.
        if first != 0 && now != first {
            frame.note(history::TOUCHED_AGAIN);
        }
        if first != 0 && now.wrapping_sub(first) < self.options.old_blocks_time_ms {
            self.counters.count(Counter::NotMadeYoung);
            return;
        }
        // As long as nothing was ever evicted there is nothing to protect.
        if self.freed_clock.load(Ordering::Relaxed) != 0 {
            self.make_young(frame);
        }
    }

    #[cold]
    fn make_young(&self, frame: FrameRef) {
        // A busy list is no reason to wait: the next access tries again.
        if let Some(mut lru) = self.lru.try_lock() {
            lru.make_young(&self.frames, frame.index());
            frame.young_clock.store(self.freed_clock.load(Ordering::Relaxed), Ordering::Relaxed);
            self.counters.count(Counter::MadeYoung);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use page::PageSize;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn list_stays_whole_under_any_sequence(steps in proptest::collection::vec((0_u8..6, 0_u32..700), 1..1500)) {
            let frames = Frames::allocate(700, PageSize::new(4096).unwrap()).unwrap();
            let mut lru = Lru::new(700, 37);
            for index in 0..600 {
                lru.insert_old(&frames, index);
            }
            for (step, index) in steps {
                match (step, lru.is_listed(index)) {
                    (0, false) => lru.insert_old(&frames, index),
                    (1, false) => lru.insert_young(&frames, index),
                    (2, true) => lru.remove(&frames, index),
                    (3, true) => lru.make_young(&frames, index),
                    (5, false) => {
                        lru.insert_coldest(&frames, index);
                        prop_assert_eq!(lru.tail(), Some(index));
                    }
                    (4, true) => {
                        let order: Vec<u32> = lru.youngest_first().collect();
                        if let Some(free) = (0..700).find(|other| !lru.is_listed(*other)) {
                            lru.replace(&frames, index, free);
                            let moved = |other: &u32| if *other == index { free } else { *other };
                            prop_assert!(lru.youngest_first().eq(order.iter().map(moved)));
                        }
                    }
                    _ => {}
                }
            }
            lru.check(&frames);
        }
    }

    /// Those that come first stay longest, and are the young part.
    #[test]
    fn pages_that_become_colder_and_colder_keep_their_order() {
        let frames = Frames::allocate(2000, PageSize::new(4096).unwrap()).unwrap();
        let mut lru = Lru::new(2000, 37);
        for index in 0..2000 {
            lru.insert_coldest(&frames, index);
        }
        lru.check(&frames);
        assert!(lru.youngest_first().eq(0..2000));
        assert!((0..1200).all(|index| !frames.get(index).is_old.load(Ordering::Relaxed)));
    }

    #[test]
    fn a_scan_leaves_the_young_part_alone() {
        let frames = Frames::allocate(2000, PageSize::new(4096).unwrap()).unwrap();
        let mut lru = Lru::new(2000, 37);
        for index in 0..1000 {
            lru.insert_young(&frames, index);
        }
        let young: Vec<u32> = lru.youngest_first().take(600).collect();
        for index in 1000..2000 {
            lru.insert_old(&frames, index);
            let tail = lru.tail().unwrap();
            lru.remove(&frames, tail);
        }
        lru.check(&frames);
        let after: Vec<u32> = lru.youngest_first().take(600).collect();
        assert_eq!(young, after);
    }
}
