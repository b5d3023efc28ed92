//! From the root to a leaf.
//!
//! Readers hold the parent until they have the child ("latch coupling"), so a child cannot be split, merged
//! or freed between reading its number and latching it. No index-wide latch is taken: the root is only one
//! more page.
//!
//! Where the heads of the pages above the leaves tell the way, readers go it without any latch until they
//! have the leaf, and look then whether the way was right (`pagestore`'s `pool/pointers.rs`, which says why
//! that is enough). It demands of all who change a tree: a key leaves a page for another only with that page
//! and the one above, which says so, both latched exclusively to the end of the mini-transaction; all that
//! `structure_modification.rs` gathers is. A tree that is built (`bulk.rs`) or destroyed has no readers.

use pagestore::{Heads, Interrupt, Mtr, PageHandle, PageRead};

use crate::compare::SearchKey;
use crate::page::heads::{self, FoundByHeads, child_by_heads, search_by_heads};
use crate::page::prefetch::prefetch_directory;
use crate::page::search::{Bound, search};
use crate::page::{self, Malformed, header};
use crate::record::RecordRef;
use crate::tree::Tree;

/// Where a descent goes.
#[derive(Clone, Copy)]
pub(crate) enum Target<'k> {
    /// The first leaf.
    Leftmost,
    /// The last leaf.
    Rightmost,
    /// The leaf that has the last record within the bound, or would have it.
    Key(&'k SearchKey<'k>, Bound),
}

impl Tree {
    /// Origin of the node pointer to follow on a page above the leaves.
    pub(crate) fn pointer(&self, page: &[u8], target: Target<'_>) -> Result<usize, Malformed> {
        let offset = match target {
            Target::Leftmost => header::INFIMUM,
            Target::Rightmost => page::last_record(page)?,
            Target::Key(key, bound) => search(page, &self.def, key, bound)?.offset,
        };
        self.pointer_from(page, offset)
    }

    #[inline]
    fn pointer_from(&self, page: &[u8], offset: usize) -> Result<usize, Malformed> {
        // Keys below the first node pointer belong to its child too.
        let offset = if offset == header::INFIMUM { page::next_record(page, offset)? } else { offset };
        if offset == header::SUPREMUM {
            return Err(Malformed("a page above the leaves has no records"));
        }
        Ok(offset)
    }

    /// The heads of a page, made now if they are worth it.
    #[inline]
    fn heads<'p>(&'p self, page: &'p PageRead) -> Option<Heads<'p>> {
        self.store.heads(page, |page| header::level(page) == 0, |maker| heads::make(page, &self.def, maker))
    }

    /// [`search`] on a page, by its heads if it has any.
    #[inline]
    pub(crate) fn search(
        &self,
        page: &PageRead,
        key: &SearchKey<'_>,
        bound: Bound,
    ) -> Result<FoundByHeads, Malformed> {
        if let Some(sought) = key.head(&self.def)
            && let Some(heads) = self.heads(page)
        {
            return search_by_heads(page, &self.def, key, sought, bound, &heads);
        }
        Ok(FoundByHeads { found: search(page, &self.def, key, bound)?, next: None })
    }

    #[inline]
    fn child(&self, page: &PageRead, target: Target<'_>) -> Result<u32, Interrupt> {
        let damaged = |what| self.malformed(page.page_id().page, what);
        let offset = match target {
            Target::Key(key, bound) => {
                let found = self.search(page, key, bound).map_err(damaged)?.found;
                self.pointer_from(page, found.offset)
            }
            _ => self.pointer(page, target),
        };
        let offset = offset.map_err(damaged)?;
        Ok(RecordRef::new(page, offset, &self.def).child())
    }

    /// The leaf of `target`, S-latched.
    pub(crate) fn leaf(&self, target: Target<'_>) -> Result<PageRead, Interrupt> {
        if let Target::Key(key, _) = target
            && let Some(leaf) = self.leaf_by_pointers(key)
        {
            return Ok(leaf);
        }
        let mut pages = 0;
        let leaf = self.leaf_by_way_of(target, &mut pages);
        self.store.count_reads(pages);
        leaf
    }

    /// The leaf of a key, S-latched, if it is in memory, no writer is at it, and the heads of all pages above
    /// it tell the way: none of these is pinned or latched.
    ///
    /// Never waits, so that whatever the caller has latched is in nobody's way: until the way is proven the
    /// leaf may be any page.
    #[inline]
    fn leaf_by_pointers(&self, key: &SearchKey<'_>) -> Option<PageRead> {
        self.leaf_by_pointers_with(key, |_| ())
    }

    /// The same. `between` comes between reading on a page of a level where to go and going there, for tests.
    #[inline]
    pub(crate) fn leaf_by_pointers_with(
        &self,
        key: &SearchKey<'_>,
        mut between: impl FnMut(u16),
    ) -> Option<PageRead> {
        let sought = key.head(&self.def)?;
        // Who has never looked at the root does.
        if !self.knows_root() {
            return None;
        }
        let mut here = self.store.pointers(self.page_id(self.root))?;
        let levels = u64::from(here.level()) + 1;
        loop {
            let number = child_by_heads(&here, sought)?;
            between(here.level());
            let level = here.level() - 1;
            if level == 0 {
                let leaf = self.store.try_read_leaf(self.page_id(number))?;
                // Now that nobody changes the leaf; before, it may have been another.
                if !here.are_still_true() || self.check_child(&leaf, number, 0).is_err() {
                    return None;
                }
                if !leaf.has_heads() {
                    prefetch_directory(&leaf);
                }
                self.store.count_descent_by_pointers(levels);
                return Some(leaf);
            }
            let child = self.store.pointers(self.page_id(number))?;
            // Now that the child's heads are known: what is asked of them later is whether they are these.
            if !here.are_still_true() || child.level() != level {
                return None;
            }
            here = child;
        }
    }

    #[inline]
    fn leaf_by_way_of(&self, target: Target<'_>, pages: &mut u64) -> Result<PageRead, Interrupt> {
        *pages += 1;
        let mut page = self.store.read_to_search(self.page_id(self.root), false)?;
        self.check_page(&page, self.root)?;
        let mut level = header::level(&page);
        let by_heads = matches!(target, Target::Key(key, _) if key.head(&self.def).is_some());
        while level > 0 {
            let number = self.child(&page, target)?;
            *pages += 1;
            let child = self.store.read_to_search(self.page_id(number), by_heads && level == 1)?;
            if !child.has_heads() {
                prefetch_directory(&child);
            }
            level -= 1;
            self.check_child(&child, number, level)?;
            page = child;
        }
        Ok(page)
    }

    /// The leaf of `target`, X-latched in `mtr`.
    pub(crate) fn leaf_for_change(
        &self,
        mtr: &mut Mtr<'_>,
        target: Target<'_>,
    ) -> Result<PageHandle, Interrupt> {
        loop {
            let mut page = self.store.read(self.page_id(self.root))?;
            self.check_page(&page, self.root)?;
            let mut level = header::level(&page);
            if level == 0 {
                drop(page);
                let handle = mtr.x(self.page_id(self.root))?;
                if header::level(mtr.page(handle)) == 0 {
                    return Ok(handle);
                }
                // The root was raised in between.
                mtr.release(handle);
                continue;
            }
            loop {
                let number = self.child(&page, target)?;
                level -= 1;
                if level == 0 {
                    let handle = mtr.x(self.page_id(number))?;
                    prefetch_directory(mtr.page(handle));
                    self.check_child(mtr.page(handle), number, 0)?;
                    return Ok(handle);
                }
                let child = self.store.read(self.page_id(number))?;
                self.check_child(&child, number, level)?;
                page = child;
            }
        }
    }
}
