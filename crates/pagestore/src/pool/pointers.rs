//! The way down through a page above the leaves, read with neither pin nor latch.
//!
//! Every search of a tree begins at its root. To pin and latch that is four writes to the same memory by all
//! threads, each of which waits for the others' caches. Where the heads of such a page say which page is next
//! (`heads.rs`), they are read alone, and looked at once more when the next page is held: see the essay of
//! `heads_word.rs` for why that is enough. It may fail at any time, and then says so; then the page is latched
//! as any other.

use page::PageId;

use crate::counters::Counter;
use crate::pool::frame::FrameRef;
use crate::pool::guard::PageRead;
use crate::pool::heads::{Heads, HeadsRoomAbove, page_at};
use crate::pool::heads_word::Made;
use crate::store::PageStore;

/// The heads of a page above the leaves, and where they lead. All of it may be wrong until
/// [`Pointers::are_still_true`], asked when the page below is held, says that it was not.
pub struct Pointers<'p> {
    heads: Heads<'p>,
    room: &'p HeadsRoomAbove,
    level: u16,
    frame: FrameRef,
    made: Made,
}

impl<'p> Pointers<'p> {
    /// The heads, one for each record.
    #[inline]
    #[must_use]
    pub fn heads(&self) -> &Heads<'p> {
        &self.heads
    }

    /// The page that an entry leads to.
    #[inline]
    #[must_use]
    pub fn page(&self, at: usize) -> u32 {
        page_at(self.room, at)
    }

    /// The level of the page, above 0.
    #[inline]
    #[must_use]
    pub fn level(&self) -> u16 {
        self.level
    }

    /// Whether the page has not been changed, and not left its place, since it was looked for. To be asked
    /// when the page below is latched, or its own pointers are there.
    #[inline]
    #[must_use]
    pub fn are_still_true(&self) -> bool {
        self.frame.heads.is_still(self.made)
    }
}

impl PageStore {
    /// The pointers of a page above the leaves, if it is in memory, was searched often enough, and its heads
    /// mostly tell where to go. The access is for the caller to count
    /// ([`PageStore::count_descent_by_pointers`]).
    #[inline]
    pub fn pointers(&self, page: PageId) -> Option<Pointers<'_>> {
        let index = self.spaces.directory.get(page.space)?.get(page.page)?;
        let frame = self.frames.get(index);
        let made = frame.heads.made()?;
        let level = made.leads_from()?;
        // Behind the look at the word: who gives the frame to another page forgets the heads first.
        if !frame.holds(page) {
            return None;
        }
        let room = self.frames.heads_above.get(index)?;
        self.touch(frame);
        Some(Pointers { heads: Heads::above(room, made), room, level, frame, made })
    }

    /// [`PageStore::read_to_search`] of a leaf that is in memory and that no writer holds or wants.
    ///
    /// Never waits: as long as the pointers that led here are unproven this may be any page, also one that
    /// this thread has latched, or one above those it has in the order of latches.
    #[inline]
    pub fn try_read_leaf(&self, page: PageId) -> Option<PageRead> {
        let leaf = self.try_look_up_to_search(page)?.try_into_read()?;
        self.touch(leaf.frame());
        Some(leaf)
    }

    /// Counts a descent through this many pages of which only the leaf was latched.
    #[inline]
    pub fn count_descent_by_pointers(&self, pages: u64) {
        self.count_reads(pages);
        self.counters.count(Counter::DescentsByPointers);
    }
}
