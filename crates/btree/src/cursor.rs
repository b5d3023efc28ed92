//! Reading: one record by its key (`Tree::get`), and along the leaves.
//!
//! A cursor S-latches one leaf. It moves right by latching the right sibling while it holds the left one. It
//! moves left the other way round: it lets its page go, latches the left sibling and then its old page again,
//! and if that one was changed meanwhile it searches again, so no record can slip through.
//!
//! A cursor is on a record, or in the gap behind one (after a search that found nothing, or at an end). A
//! position that is to survive the latch is the key of a record, with a pin on its page and the page's LSN as
//! a modify clock: while the LSN is the same, so is the record's place.

use std::ops::ControlFlow;

use pagestore::page as fil;
use pagestore::{Interrupt, PageRead, Pin};

use crate::compare::SearchKey;
use crate::descend::Target;
use crate::field::Field;
use crate::key::OwnedKey;
use crate::page::heads::FoundByHeads;
use crate::page::prefetch::prefetch_row;
use crate::page::search::Bound;
use crate::page::{self, header};
use crate::record::RecordRef;
use crate::record::header::HEADER_SIZE;
use crate::tree::Tree;

/// Where to start reading. Keys may be prefixes of the unique key; a record equals a prefix if its first
/// fields do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The first record of the tree (the key is ignored).
    First,
    /// The last record of the tree (the key is ignored).
    Last,
    /// The first record that is not below the key.
    AtLeast,
    /// The first record above the key.
    After,
    /// The last record that is not above the key.
    AtMost,
    /// The last record below the key.
    Before,
}

/// A position on a leaf that is latched for reading. Short-lived: save it before anything that may wait.
pub struct LeafCursor<'t> {
    tree: &'t Tree,
    /// `None` after an interrupt, when `resume` says where to go on.
    page: Option<PageRead>,
    offset: usize,
    /// Between the record at `offset` (or infimum) and the next one.
    in_gap: bool,
    /// The first entry behind the place that was sought among the heads of the page, if each record has one.
    next_entry: Option<usize>,
    resume: SavedPosition,
}

/// A remembered position: the key, a pin on the page and its LSN, by which an unchanged page is recognised.
#[derive(Clone, Default)]
pub struct SavedPosition {
    key: OwnedKey,
    place: Option<(Pin, u64, usize)>,
}

impl SavedPosition {
    /// Nothing remembered yet.
    pub fn new() -> SavedPosition {
        SavedPosition::default()
    }

    /// The key of the saved record (its unique fields).
    pub fn key(&self) -> &OwnedKey {
        &self.key
    }

    /// Whether a place is remembered.
    pub fn is_set(&self) -> bool {
        self.place.is_some()
    }

    /// Forgets what was remembered, and gives the pin back.
    pub fn clear(&mut self) {
        self.place = None;
    }

    /// The page, its LSN then, and the record's origin.
    pub(crate) fn place(&self) -> Option<(&Pin, u64, usize)> {
        self.place.as_ref().map(|(pin, lsn, origin)| (pin, *lsn, *origin))
    }

    fn set(&mut self, page: &PageRead, record: RecordRef<'_>) {
        self.key.set_from_record(record, record.def().n_unique);
        self.place = Some((page.pin(), fil::lsn(page), record.origin()));
    }
}

impl Tree {
    /// Positions a cursor. Check [`LeafCursor::is_valid`]: there may be no such record.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    pub fn seek(&self, key: &[Field<'_>], how: Seek) -> Result<LeafCursor<'_>, Interrupt> {
        let key = SearchKey::new(&self.def, key);
        let bound = match how {
            Seek::Before => Bound::Less,
            Seek::AtLeast if !key.complete => Bound::Less,
            _ => Bound::LessOrEqual,
        };
        let target = match how {
            Seek::First => Target::Leftmost,
            Seek::Last => Target::Rightmost,
            _ => Target::Key(&key, bound),
        };
        let page = self.leaf(target)?;
        let number = page.page_id().page;
        let damaged = |what| self.malformed(number, what);
        let (offset, exact, next) = match how {
            Seek::First => (header::INFIMUM, false, None),
            Seek::Last => (page::last_record(&page).map_err(damaged)?, false, None),
            _ => {
                let FoundByHeads { found, next } = self.search(&page, &key, bound).map_err(damaged)?;
                (found.offset, found.exact, next)
            }
        };
        let mut cursor = LeafCursor {
            tree: self,
            page: Some(page),
            offset,
            in_gap: true,
            next_entry: next,
            resume: SavedPosition::new(),
        };
        match how {
            Seek::AtLeast if exact => cursor.in_gap = false,
            Seek::AtLeast | Seek::After if cursor.go_to_next_entry() => {}
            Seek::First | Seek::AtLeast | Seek::After => drop(cursor.next()?),
            Seek::Last | Seek::AtMost | Seek::Before => drop(cursor.prev()?),
        }
        Ok(cursor)
    }

    /// Shows the record with exactly this unique key to `f`, delete-marked or not. Does not allocate.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    #[inline]
    pub fn get<R>(
        &self,
        key: &[Field<'_>],
        f: impl FnOnce(RecordRef<'_>) -> R,
    ) -> Result<Option<R>, Interrupt> {
        let key = SearchKey::new(&self.def, key);
        debug_assert!(key.complete, "a record is found by all fields of its unique key");
        let page = self.leaf(Target::Key(&key, Bound::LessOrEqual))?;
        let found = self
            .search(&page, &key, Bound::LessOrEqual)
            .map_err(|what| self.malformed(page.page_id().page, what))?
            .found;
        Ok(found.exact.then(|| f(RecordRef::new(&page, found.offset, &self.def))))
    }

    /// Returns to a saved position. `true`: the cursor is on the very record that was saved. `false`: that
    /// record is gone and the cursor is in its gap: not valid, `next` goes to the first record above the
    /// saved key, `prev` to the last below it.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    pub fn restore(&self, position: &SavedPosition) -> Result<(LeafCursor<'_>, bool), Interrupt> {
        let (page, offset, exact) = self.find_again(position)?;
        let resume = SavedPosition::new();
        Ok((
            LeafCursor { tree: self, page: Some(page), offset, in_gap: !exact, next_entry: None, resume },
            exact,
        ))
    }

    fn find_again(&self, position: &SavedPosition) -> Result<(PageRead, usize, bool), Interrupt> {
        if let Some((pin, lsn, offset)) = &position.place {
            let page = pin.read();
            if fil::lsn(&page) == *lsn {
                return Ok((page, *offset, true));
            }
        }
        let fields = position.key.fields();
        let key = SearchKey::new(&self.def, &fields);
        let page = self.leaf(Target::Key(&key, Bound::LessOrEqual))?;
        let found = self
            .search(&page, &key, Bound::LessOrEqual)
            .map_err(|what| self.malformed(page.page_id().page, what))?
            .found;
        Ok((page, found.offset, found.exact))
    }
}

impl LeafCursor<'_> {
    /// Whether the cursor is on a record.
    #[inline]
    pub fn is_valid(&self) -> bool {
        !self.in_gap && self.page.is_some()
    }

    fn page(&self) -> &PageRead {
        match &self.page {
            Some(page) => page,
            None => panic!("a cursor was used after an interrupt without moving it again"),
        }
    }

    /// The record under the cursor, delete-marked ones included.
    ///
    /// # Panics
    /// When the cursor is not on a record.
    #[inline]
    pub fn record(&self) -> RecordRef<'_> {
        assert!(!self.in_gap, "the cursor is not on a record");
        RecordRef::new(self.page(), self.offset, &self.tree.def)
    }

    /// Goes to the record behind the place that was sought without a look at the one in front of it, which
    /// may be in no cache. False: the heads of the page do not say where it is.
    fn go_to_next_entry(&mut self) -> bool {
        let Some((page, at)) = self.page.as_ref().zip(self.next_entry) else { return false };
        let Some(heads) = self.tree.store.made_heads(page).filter(|heads| at < heads.len()) else {
            return false;
        };
        self.offset = heads.origin(at);
        self.in_gap = false;
        true
    }

    /// Asks for the memory of the next rows, after a search for the first: each says only where the one
    /// behind it is, but the heads of a page know all of them.
    #[inline]
    pub fn prefetch_rows(&self, rows: usize) {
        let (Some(page), Some(first)) = (&self.page, self.next_entry) else { return };
        if let Some(heads) = self.tree.store.made_heads(page) {
            let end = heads.len().min(first.saturating_add(rows));
            (first..end).for_each(|at| prefetch_row(page, heads.origin(at)));
        }
    }

    fn damaged(&self, what: page::Malformed) -> Interrupt {
        let number = self.page.as_ref().map_or(self.tree.root, |page| page.page_id().page);
        self.tree.malformed(number, what)
    }

    /// After an interrupt: latches again.
    #[inline]
    fn wake(&mut self) -> Result<(), Interrupt> {
        if self.page.is_none() {
            let (page, offset, exact) = self.tree.find_again(&self.resume)?;
            (self.page, self.offset, self.in_gap) = (Some(page), offset, !exact);
        }
        Ok(())
    }

    /// Gives up the latch, remembering the record at `offset`.
    fn sleep(&mut self, offset: usize) {
        if let Some(page) = self.page.take() {
            self.resume.set(&page, RecordRef::new(&page, offset, &self.tree.def));
        }
    }

    /// Moves to the next record; `false` at the end of the tree. After an `Err(Wait)` the cursor has given up
    /// its latch and remembers its position: await and call again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    #[inline]
    #[allow(clippy::should_implement_trait)] // A cursor lends its record from the page, which an iterator cannot.
    pub fn next(&mut self) -> Result<bool, Interrupt> {
        self.wake()?;
        let next = page::next_record(self.page(), self.offset).map_err(|what| self.damaged(what))?;
        if next == header::SUPREMUM {
            return self.next_page();
        }
        self.offset = next;
        self.in_gap = false;
        Ok(true)
    }

    /// Shows the record under the cursor and those behind it on its page to `f`, under the one latch, until
    /// `f` breaks off. The cursor goes along: it is on the last one shown then, or on the one that `f` failed
    /// for.
    ///
    /// # Errors
    /// Those of `f`; a damaged page.
    pub fn rest_of_page<E: From<Interrupt>>(
        &mut self,
        mut f: impl FnMut(RecordRef<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let mut offset = self.offset;
        let page = self.page();
        let mut show = || {
            // As many records as a page can have: a damaged one may go round in a circle.
            for _ in 0..page.len() / HEADER_SIZE {
                if f(RecordRef::new(page, offset, &self.tree.def))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                match page::next_record(page, offset).map_err(|what| self.damaged(what))? {
                    header::SUPREMUM => return Ok(ControlFlow::Continue(())),
                    next => offset = next,
                }
            }
            Err(self.damaged(page::Malformed("the record chain has a loop")).into())
        };
        let shown = show();
        self.offset = offset;
        shown
    }

    fn next_page(&mut self) -> Result<bool, Interrupt> {
        loop {
            let right = fil::next(self.page());
            if right == fil::NULL_PAGE {
                self.in_gap = true;
                return Ok(false);
            }
            let page = match self.tree.store.read(self.tree.page_id(right)) {
                Ok(page) => page,
                Err(interrupt) => {
                    // The last record of a leaf with a sibling exists: only a root may be empty.
                    self.sleep(self.offset);
                    return Err(interrupt);
                }
            };
            self.tree.check_child(&page, right, 0)?;
            // Else a damaged file could lead round in a circle. Both are latched: nothing is just changing. A
            // forced recovery reads on: going forward needs the other link only, and rows are to be saved.
            let number = self.page().page_id().page;
            if fil::previous(&page) != number && !self.tree.store.takes_damaged_pages() {
                return Err(self
                    .tree
                    .malformed(right, page::Malformed("its left neighbour is another page")));
            }
            if right == number.wrapping_add(1) {
                self.tree.store.scan_reached(page.page_id());
            }
            self.page = Some(page);
            let first = page::next_record(self.page(), header::INFIMUM).map_err(|what| self.damaged(what))?;
            self.offset = if first == header::SUPREMUM { header::INFIMUM } else { first };
            self.in_gap = first == header::SUPREMUM;
            if !self.in_gap {
                return Ok(true);
            }
        }
    }

    /// Moves to the previous record; `false` at the start of the tree. Interrupts as [`Self::next`].
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    #[inline]
    pub fn prev(&mut self) -> Result<bool, Interrupt> {
        // As often as the page changes while its left neighbour is latched.
        loop {
            self.wake()?;
            if !self.in_gap {
                self.offset =
                    page::previous_record(self.page(), self.offset).map_err(|what| self.damaged(what))?;
            }
            if self.offset != header::INFIMUM {
                self.in_gap = false;
                return Ok(true);
            }
            if let Some(found) = self.previous_page()? {
                return Ok(found);
            }
        }
    }

    /// Goes to the last record of the page before. `None`: look again from where the cursor is now.
    fn previous_page(&mut self) -> Result<Option<bool>, Interrupt> {
        let left = fil::previous(self.page());
        self.offset = header::INFIMUM;
        self.in_gap = true;
        if left == fil::NULL_PAGE {
            return Ok(Some(false));
        }
        let first = page::next_record(self.page(), header::INFIMUM).map_err(|what| self.damaged(what))?;
        if first == header::SUPREMUM {
            return Err(self.damaged(page::Malformed("a leaf with neighbours is empty")));
        }
        let number = self.page().page_id().page;
        self.sleep(first);
        let page = self.tree.store.read(self.tree.page_id(left))?;
        // Who changes the left neighbour's place changes the page that we came from.
        if !self.resume_unchanged() {
            return Ok(None);
        }
        self.tree.check_child(&page, left, 0)?;
        if fil::next(&page) != number {
            return Err(self.tree.malformed(left, page::Malformed("its right neighbour is another page")));
        }
        self.offset = page::last_record(&page).map_err(|what| self.tree.malformed(left, what))?;
        self.page = Some(page);
        self.in_gap = self.offset == header::INFIMUM;
        Ok((!self.in_gap).then_some(true))
    }

    /// Whether the page we came from is as it was, now that its left sibling is latched.
    fn resume_unchanged(&self) -> bool {
        self.resume.place.as_ref().is_some_and(|(pin, lsn, _)| fil::lsn(&pin.read()) == *lsn)
    }

    /// Remembers the position (the cursor must be on a record) in `position`, whose buffers are reused. After
    /// an interrupted move it is the record that was to be left.
    pub fn save(&self, position: &mut SavedPosition) {
        match &self.page {
            Some(page) => position.set(page, self.record()),
            None => position.clone_from(&self.resume),
        }
    }

    /// The leaf under the cursor; `None` after an interrupt.
    pub fn leaf(&self) -> Option<pagestore::PageId> {
        self.page.as_ref().map(|page| page.page_id())
    }

    /// The largest id of a transaction that changed the leaf under the cursor (secondary indexes only).
    pub fn page_max_trx_id(&self) -> u64 {
        header::max_trx_id(self.page())
    }
}
