//! The flush list: dirty pages in the order in which they first became dirty, and what is on its way to the
//! files.
//!
//! Mini-transactions enter pages under the redo log's mutex, so the list is sorted by start LSN: newest at
//! the head, oldest at the tail. When a page is copied for writing it leaves the list, and the smallest start
//! LSN of each batch under way is remembered until the batch is written. Of batches that are written and not
//! durable one LSN is kept, the smallest of all, until they are synced. Hence the checkpoint rule: no change
//! that began before
//!
//! > min(oldest in the list, oldest of each batch under way, oldest of what is not synced, oldest of what
//! > recovery has not applied), or, when there is none of these, the end of the last mini-transaction this
//! > list has seen,
//!
//! can be missing from the files after a crash. A page changed again while its image is under way enters the
//! list again with the start LSN of that change; it is not collected a second time before the first write is
//! done (`Frame::in_flight`). Pages that get their changes from the log while they are read enter between
//! what was recovered before them and what was changed since (`recovery/unapplied.rs`).

use std::collections::TryReserveError;
use std::sync::atomic::Ordering;

use redo::Lsn;

use crate::flush::age_histogram::AgeHistogram;
use crate::flush::log_growth::Rewrites;
use crate::flush::named_pages::{Named, NamedPages};
#[cfg(test)]
use crate::pool::frame::Frames;
use crate::pool::frame::{FrameRef, reach};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
    start: u64,
}

const UNLISTED: Node = Node { newer: NONE, older: NONE, start: 0 };

/// Identifies a batch under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchId(u64);

/// The list. All methods run under the mutex that owns it.
pub(crate) struct FlushList {
    /// As far as frames were used.
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
    len: usize,
    ages: AgeHistogram,
    named: NamedPages,
    rewrites: Rewrites,
    /// Batches under way, and the oldest start LSN of each.
    batches: Vec<(BatchId, Option<u64>)>,
    /// Written, but not synced: the oldest start LSN.
    unsynced: Option<u64>,
    /// The same of what is being synced.
    syncing: Option<u64>,
    /// Syncs of all that was unsynced: begun, and well over. At most one is under way.
    syncs_begun: u64,
    syncs_over: u64,
    next_batch: u64,
    seen: Lsn,
    /// The smallest start LSN of changes that recovery has not applied yet.
    unapplied: Option<u64>,
    /// The newest of the pages that entered with such an LSN; the older ones are of the same kind.
    recovered: u32,
    /// Whether a test lets the checkpoint pass what is left (to see that its checks notice).
    #[cfg(test)]
    pub(crate) forgets_unapplied: bool,
}

impl FlushList {
    /// A list for this number of frames and a log of `capacity` bytes.
    pub(crate) fn new(frames: usize, now: Lsn, capacity: u64) -> Self {
        Self {
            nodes: Vec::with_capacity(frames),
            head: NONE,
            tail: NONE,
            len: 0,
            ages: AgeHistogram::new(capacity),
            named: NamedPages::new(capacity),
            rewrites: Rewrites::default(),
            batches: Vec::new(),
            unsynced: None,
            syncing: None,
            syncs_begun: 0,
            syncs_over: 0,
            next_batch: 0,
            seen: now,
            unapplied: None,
            recovered: NONE,
            #[cfg(test)]
            forgets_unapplied: false,
        }
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

    /// Number of dirty pages, those under way not counted.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A mini-transaction from `start` to `end` has been appended and its pages entered.
    pub(crate) fn saw(&mut self, end: Lsn) {
        self.seen = self.seen.max(end);
    }

    /// Enters a page that a mini-transaction starting at `start` made dirty; nothing if it is dirty already.
    pub(crate) fn enter(&mut self, frame: FrameRef, start: Lsn) {
        if frame.is_dirty() {
            return;
        }
        assert!(start.0 > 0, "LSN 0 means clean");
        let index = frame.index();
        self.link(index, start, self.head);
        self.became_dirty(frame, start);
    }

    fn became_dirty(&mut self, frame: FrameRef, start: Lsn) {
        let changed = frame.newest.load(Ordering::Relaxed);
        self.ages.enter(start.0, changed);
        self.named.enter(start.0, changed);
        self.rewrites.enter(start.0, changed);
        frame.oldest.store(start.0, Ordering::Relaxed);
    }

    /// Puts a page into the list as the next newer one of `older`.
    fn link(&mut self, index: u32, start: Lsn, older: u32) {
        let start_of = |list: &Self, index: u32| list.nodes[index as usize].start;
        let newer = if older == NONE { self.tail } else { self.nodes[older as usize].newer };
        let before = if older == NONE { 0 } else { start_of(self, older) };
        let after = if newer == NONE { u64::MAX } else { start_of(self, newer) };
        assert!(
            before <= start.0 && start.0 <= after,
            "flush list order: {start} between {before} and {after}"
        );
        reach(&mut self.nodes, index, UNLISTED);
        self.nodes[index as usize] = Node { newer, older, start: start.0 };
        match older {
            NONE => self.tail = index,
            older => self.nodes[older as usize].newer = index,
        }
        match newer {
            NONE => self.head = index,
            newer => self.nodes[newer as usize].older = index,
        }
        self.len += 1;
    }

    /// Changes from this LSN on are left for the time when their pages are read.
    pub(crate) fn begin_unapplied(&mut self, floor: Option<Lsn>) {
        assert!(self.unapplied.is_none(), "a recovery begins once");
        self.unapplied = floor.map(|Lsn(floor)| floor);
        self.recovered = self.head;
    }

    /// What is left begins there now.
    pub(crate) fn set_unapplied(&mut self, floor: Option<Lsn>) {
        let floor = floor.map(|Lsn(floor)| floor);
        let falls = floor.is_some_and(|floor| self.unapplied.is_none_or(|before| floor < before));
        assert!(!falls, "what is left cannot become more: {floor:?} after {:?}", self.unapplied);
        self.unapplied = floor;
    }

    /// Enters a page that has just got its changes, all behind `floor`, the start of what is left. Pages
    /// that were changed since recovery are newer.
    pub(crate) fn enter_recovered(&mut self, frame: FrameRef, floor: Lsn) {
        assert!(!frame.is_dirty(), "a page gets its changes before others can change it");
        assert_eq!(self.unapplied, Some(floor.0), "the checkpoint stays behind what is left");
        // Made by a mini-transaction since the start, it may have been another page's frame: behind the floor
        // there is no initialisation of this page that a recovery could rely on.
        frame.created.store(0, Ordering::Relaxed);
        let index = frame.index();
        self.link(index, floor, self.recovered);
        self.recovered = index;
        self.became_dirty(frame, floor);
    }

    /// Takes a dirty page out: it becomes clean, as far as the list knows. Returns its start LSN.
    fn take(&mut self, frame: FrameRef) -> Option<u64> {
        if !frame.is_dirty() {
            return None;
        }
        let index = frame.index();
        let node = self.nodes[index as usize];
        match node.newer {
            NONE => self.head = node.older,
            newer => self.nodes[newer as usize].older = node.older,
        }
        match node.older {
            NONE => self.tail = node.newer,
            older => self.nodes[older as usize].newer = node.newer,
        }
        if self.recovered == index {
            self.recovered = node.older;
        }
        self.len -= 1;
        self.ages.leave(node.start);
        // Released: a thread that finds the page clean also sees that it was marked as in flight before.
        frame.oldest.store(0, Ordering::Release);
        Some(node.start)
    }

    /// Forgets the changes of a page whose tablespace is dropped.
    pub(crate) fn discard_page_of(&mut self, frame: FrameRef, space: u32) {
        // A dirty page keeps its frame, so what is true under this lock stays true until it is taken out.
        if frame.is_dirty() && frame.page_id().space == space {
            self.take(frame);
        }
    }

    /// Starts a batch: what joins it still counts for the checkpoint.
    pub(crate) fn begin_batch(&mut self) -> BatchId {
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        self.batches.push((id, None));
        id
    }

    /// Moves a page (S-latched, its image about to be copied) from the list into the batch. Its start LSN;
    /// `None` when it is clean.
    pub(crate) fn move_to_batch(&mut self, batch: BatchId, frame: FrameRef) -> Option<Lsn> {
        let start = self.take(frame)?;
        self.named.write(frame.newest.load(Ordering::Relaxed));
        let entry = self.batches.iter_mut().find(|(id, _)| *id == batch);
        assert!(entry.is_some(), "a page joins a batch that has ended");
        if let Some((_, oldest)) = entry {
            *oldest = Some(oldest.map_or(start, |oldest| oldest.min(start)));
        }
        Some(Lsn(start))
    }

    /// The batch's pages are in their files, durable or to be synced.
    pub(crate) fn end_batch(&mut self, batch: BatchId, durable: bool) {
        let Some(index) = self.batches.iter().position(|(id, _)| *id == batch) else { return };
        let (_, oldest) = self.batches.swap_remove(index);
        if !durable {
            self.unsynced = self.unsynced.into_iter().chain(oldest).min();
        }
    }

    /// How many syncs must be over ([`FlushList::syncs_over`]) until all that is written now is durable.
    pub(crate) fn sync_wanted(&self) -> u64 {
        self.syncs_begun + u64::from(self.unsynced.is_some())
    }

    /// How many syncs of all that was unsynced are over.
    pub(crate) fn syncs_over(&self) -> u64 {
        self.syncs_over
    }

    /// Before what is written by now is synced. False when there is nothing, or another sync is under way.
    pub(crate) fn begin_sync(&mut self) -> bool {
        if self.syncs_begun > self.syncs_over || self.unsynced.is_none() {
            return false;
        }
        self.syncing = self.unsynced.take();
        self.syncs_begun += 1;
        true
    }

    /// The sync that began with [`FlushList::begin_sync`] is over.
    pub(crate) fn end_sync(&mut self) {
        assert!(self.syncs_begun > self.syncs_over, "a sync ends that did not begin");
        self.syncing = None;
        self.syncs_over += 1;
    }

    /// The oldest start LSN of a change that a crash can make miss in its file.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        self.oldest_unwritten().into_iter().chain(self.unsynced.map(Lsn)).min()
    }

    /// The same without what only has to be synced, unless that is under way.
    pub(crate) fn oldest_unwritten(&self) -> Option<Lsn> {
        let listed = self.oldest_listed().map(|Lsn(start)| start);
        let under_way = self.batches.iter().filter_map(|(_, oldest)| *oldest);
        let unapplied = self.unapplied;
        #[cfg(test)]
        let unapplied = unapplied.filter(|_| !self.forgets_unapplied);
        under_way.chain(self.syncing).chain(unapplied).chain(listed).min().map(Lsn)
    }

    /// The same without batches under way.
    pub(crate) fn oldest_listed(&self) -> Option<Lsn> {
        (self.tail != NONE).then(|| Lsn(self.nodes[self.tail as usize].start))
    }

    /// Counts the pages by age up to `age`, and those that the log names for a log that has this many bytes
    /// now: in ranges of the capacity, which may be much more, a short log would be a part of one.
    pub(crate) fn fit_ages(&mut self, circle: u64, age: u64) {
        self.ages.fit(age);
        self.named.fit(circle);
        self.rewrites.within = age / 2;
    }

    /// Recovery found a page whose last change, which ended there, is in its file.
    pub(crate) fn named_and_written(&mut self, changed: Lsn) {
        self.named.write(changed.0);
    }

    /// Recovery has changed a page that may have been written with its last change before, which ended there.
    pub(crate) fn named_again(&mut self, changed: Lsn) {
        self.named.change(changed.0);
    }

    /// What the log names from this checkpoint on, the dirty pages left out.
    pub(crate) fn named_since(&self, checkpoint: Lsn) -> Named {
        self.named.since(checkpoint.0)
    }

    /// How many pages became dirty, and again.
    pub(crate) fn rewrites(&self) -> Rewrites {
        self.rewrites
    }

    /// Pages by age, those under way not among them.
    pub(crate) fn ages(&self) -> &AgeHistogram {
        &self.ages
    }

    /// End of the last mini-transaction the list has seen.
    pub(crate) fn seen(&self) -> Lsn {
        self.seen
    }

    /// Where recovery may start: see the module's essay.
    pub(crate) fn checkpoint(&self) -> Lsn {
        self.oldest().unwrap_or(self.seen)
    }

    /// Where recovery may start as soon as what is written is synced.
    pub(crate) fn checkpoint_when_synced(&self) -> Lsn {
        self.oldest_unwritten().unwrap_or(self.seen)
    }

    /// Dirty pages from the oldest on, with their start LSNs.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = (u32, Lsn)> + '_ {
        let first = (self.tail != NONE).then_some(self.tail);
        std::iter::successors(first, |index| {
            let newer = self.nodes[*index as usize].newer;
            (newer != NONE).then_some(newer)
        })
        .map(|index| (index, Lsn(self.nodes[index as usize].start)))
    }

    /// Forgets all dirty pages without writing them.
    #[cfg(test)]
    pub(crate) fn clear(&mut self, frames: &Frames) {
        while self.tail != NONE {
            self.take(frames.get(self.tail));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use page::PageSize;

    #[test]
    fn checkpoint_waits_for_batches_under_way() {
        let frames = Frames::allocate(8, PageSize::new(4096).unwrap()).unwrap();
        let mut list = FlushList::new(8, Lsn(100), 1 << 20);
        assert_eq!(list.checkpoint(), Lsn(100));
        for (index, start) in [(3, 100), (1, 110), (5, 110), (2, 150)] {
            list.enter(frames.get(index), Lsn(start));
            list.saw(Lsn(start + 10));
        }
        assert_eq!((list.checkpoint(), list.len()), (Lsn(100), 4));
        let batch = list.begin_batch();
        assert_eq!(list.move_to_batch(batch, frames.get(3)), Some(Lsn(100)));
        assert_eq!(list.move_to_batch(batch, frames.get(5)), Some(Lsn(110)));
        assert_eq!(list.move_to_batch(batch, frames.get(5)), None, "clean now");
        assert_eq!(list.checkpoint(), Lsn(100), "still on its way");
        // Changed again while its image is under way.
        list.enter(frames.get(3), Lsn(170));
        list.enter(frames.get(3), Lsn(180));
        list.end_batch(batch, true);
        assert_eq!(list.checkpoint(), Lsn(110));
        let order: Vec<_> = list.oldest_first().collect();
        assert_eq!(order, [(1, Lsn(110)), (2, Lsn(150)), (3, Lsn(170))]);
        list.saw(Lsn(200));
        list.clear(&frames);
        assert_eq!((list.checkpoint(), list.len()), (Lsn(200), 0));
    }

    #[test]
    fn checkpoint_waits_for_the_sync_of_what_is_written() {
        let frames = Frames::allocate(8, PageSize::new(4096).unwrap()).unwrap();
        let mut list = FlushList::new(8, Lsn(100), 1 << 20);
        assert!(!list.begin_sync(), "nothing was written");
        for (index, start) in [(0, 100), (1, 110), (2, 120)] {
            list.enter(frames.get(index), Lsn(start));
            list.saw(Lsn(start + 10));
            let batch = list.begin_batch();
            list.move_to_batch(batch, frames.get(index));
            list.end_batch(batch, false);
        }
        assert_eq!((list.checkpoint(), list.checkpoint_when_synced()), (Lsn(100), Lsn(130)));
        assert!(list.begin_sync());
        assert!(!list.begin_sync(), "it is under way");
        // Written while the others are being synced: not among them.
        list.enter(frames.get(3), Lsn(140));
        list.saw(Lsn(150));
        let batch = list.begin_batch();
        list.move_to_batch(batch, frames.get(3));
        list.end_batch(batch, false);
        assert_eq!((list.checkpoint(), list.checkpoint_when_synced()), (Lsn(100), Lsn(100)));
        assert!(!list.begin_sync(), "one at a time");
        assert_eq!(
            (list.syncs_over(), list.sync_wanted()),
            (0, 2),
            "what was written since takes another sync"
        );
        list.end_sync();
        assert_eq!((list.checkpoint(), list.checkpoint_when_synced()), (Lsn(140), Lsn(150)));
        assert!(list.begin_sync());
        list.end_sync();
        assert_eq!(list.checkpoint(), Lsn(150));
    }

    #[test]
    fn a_sync_that_never_ends_holds_the_checkpoint() {
        let frames = Frames::allocate(8, PageSize::new(4096).unwrap()).unwrap();
        let mut list = FlushList::new(8, Lsn(100), 1 << 20);
        let write = |list: &mut FlushList, index, start| {
            list.enter(frames.get(index), Lsn(start));
            list.saw(Lsn(start + 10));
            let batch = list.begin_batch();
            list.move_to_batch(batch, frames.get(index));
            list.end_batch(batch, false);
        };
        write(&mut list, 0, 100);
        assert!(list.begin_sync());
        // It fails: nobody says that it is over.
        write(&mut list, 1, 140);
        assert!(!list.begin_sync());
        assert_eq!((list.checkpoint(), list.checkpoint_when_synced()), (Lsn(100), Lsn(100)));
    }
}
