//! The way down through the pages above the leaves, read with neither pin nor latch.
//!
//! Every search of a tree begins at its root. To pin and latch that is four writes to the same memory by all
//! threads, each of which waits for the others' caches. Where the heads of such a page say which page is next
//! (`heads.rs`), they are read alone. It may fail at any time, and then says so; then the pages are latched
//! as any other.
//!
//! **A step.** The reader finds the page's frame in the page table, notes the word of the heads
//! (`heads_word.rs`), looks that the frame has the page's name (`page_name.rs`), and reads which page is
//! next. When it has that one, a leaf by its latch, another page by its word noted, it asks whether the first
//! word is the same as before: whether the heads were forgotten since. What it read before that proves
//! nothing; and nothing follows from it but which page to look at, so whatever it was, no harm is done.
//!
//! **Why that is enough.** A key ceases to belong to a page, and goes to another, only in a mini-transaction
//! that has that page and the one above it latched exclusively, both to its end; a page gets another parent
//! only in one that changes the old one; and the heads of a page are forgotten before it is changed. (The
//! page that gets a key need not be latched: nobody goes there for it as long as the pages above say
//! otherwise.) The reader came from P to L.
//!
//! - *L is a leaf, and latched.* Who took the key from it before had forgotten the heads of the page above,
//!   and then gave L up; the latch carries that to the reader. If the page above was not P any more, P had
//!   lost L in an earlier change, which forgot P's heads and let go of the latches that the later change
//!   took. So if P's heads are still those noted, the key belongs to L. As long as L is latched that stays
//!   so.
//! - *L has heads of its own, and its word is noted.* If they were made after the key was taken from L, it
//!   was under L's latch, and their publication carries that P's heads were forgotten. If they were made
//!   before, both pages said at the same time what the reader read; that L loses the key later is found when
//!   L's own word is asked about, a step below.
//!
//! So from the root, to which all keys belong, down to the leaf. Case by case:
//!
//! - *Split, merge, the root raised or lowered, the tree emptied:* such changes. The root keeps its page; its
//!   heads are forgotten as it gets another level. A leaf that was merged into its neighbour was latched, as
//!   was its parent, which lost the pointer.
//! - *A page freed:* its last change is that (`fsp::free_page`), and its heads are forgotten. Of a segment
//!   that is freed as a whole (`fsp::free_segment_step`) pages are not looked at, and keep their heads;
//!   nobody may use that tree any more. The page's next user initialises it first, which forgets them.
//! - *P evicted, or moved to another frame:* its heads are forgotten before the page table lets go of the
//!   frame (`PageStore::detach`), or before the mover gives up the new one (`PageStore::relocate`); so before
//!   anybody can have the page elsewhere and change it there. Back in the same frame its heads have another
//!   version.
//! - *The frame goes to another page,* perhaps with the same number in another tablespace: the name has both,
//!   and is written after the heads are forgotten.
//! - *The frame leaves the pool,* and the memory of its heads with it: it is owned then, without a page, and
//!   its heads are forgotten. A late reader finds numbers or zeros (`Rooms::discard`).
//! - *The tablespace is dropped:* its pages are evicted. Its page table may become another's, so what it
//!   says is compared with the name, as in every look-up.
//! - *The leaf found is any page,* as long as the way is unproven: also one that this thread has latched, or
//!   one that comes before those it has in the order of latches. So it is never waited for
//!   ([`PageStore::try_read_leaf`]).
//!
//! The models of all this are in `pointer_models.rs`.

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
        // Behind the look at the word, so that the heads are this page's: see `page_name.rs`.
        if !frame.holds(page) {
            return None;
        }
        let room = self.frames.heads_above.get(index)?;
        // Without a pin this may be another page by now, which then is thought to be wanted: it does no harm.
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
