//! Structure changes: who may make them, and gathering everything they touch. The change itself is made by
//! `split.rs` and `merge.rs`. Who comes here when a leaf alone does not do: `row/clustered.rs` and
//! `row/secondary.rs` of the transaction layer.
//!
//! A split or merge changes more than its leaf: siblings' links, node pointers, perhaps all levels up to the
//! root. Those who do that take the tree's structure lock first. While it is held no node pointer and no
//! sibling link changes, so the path to the leaf can be read page by page at leisure to find out how far up
//! the change can reach: to the lowest page that certainly absorbs it ("safe"). Then everything from there
//! down is X-latched, top-down and left to right as all others latch, with both siblings of each page that
//! may be split or merged. Readers and single-leaf writers are kept out of those pages only, and only until
//! the commit.

use std::sync::atomic::Ordering;

use pagestore::fsp::{self, Reserve};
use pagestore::page::{self as fil, NULL_PAGE};
use pagestore::{Interrupt, Mtr, PageHandle};
use parking_lot::MutexGuard;

use crate::compare::SearchKey;
use crate::descend::Target;
use crate::field::Field;
use crate::merge::merge_limit;
use crate::optimistic::ChangePosition;
use crate::page::search::Bound;
use crate::page::{self, Malformed, header};
use crate::record::RecordRef;
use crate::tree::Tree;

/// What a structure change is for, which decides what is latched and reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructureChange {
    /// A record of up to `size` bytes will be inserted, or grow to `size` bytes.
    Insert {
        /// Size of the new record in bytes.
        size: usize,
    },
    /// As `Insert`, to put back what a change took away. It may use the room that is kept from inserts, so
    /// that a rollback does not need room that a full file system cannot give.
    Restore {
        /// Size of the record put back in bytes.
        size: usize,
    },
    /// A record will be removed.
    Remove,
}

impl StructureChange {
    /// Whether records of a page may move to its siblings. A split only links the new page between them.
    fn moves_siblings(self) -> bool {
        self == StructureChange::Remove
    }
}

/// A page of the path that is latched, with its siblings where they may change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    pub page: PageHandle,
    pub left: Option<PageHandle>,
    pub right: Option<PageHandle>,
}

/// The right to change the structure of one tree. Commit the mini-transaction first, then drop this.
pub struct StructureGuard<'t> {
    pub(crate) tree: &'t Tree,
    _lock: MutexGuard<'t, ()>,
    change: StructureChange,
    reserved: bool,
    /// Latched pages of the path, leaf first.
    pub(crate) levels: Vec<Level>,
}

/// A page above the leaves, as read on the way down.
struct Step {
    number: u32,
    left: u32,
    right: u32,
    /// Whether no change of a child can reach the levels above this page.
    safe: bool,
}

impl StructureGuard<'_> {
    /// Latches the space management pages and makes sure that there is room, while nothing has been changed
    /// yet. Call after all index and undo pages of the mini-transaction are latched, before the first change.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, with nothing changed.
    pub fn reserve(&mut self, mtr: &mut Mtr<'_>) -> Result<(), Interrupt> {
        if self.reserved {
            return Ok(());
        }
        let tree = self.tree;
        let leaf = self.levels.first().map_or(tree.root, |level| mtr.page_id(level.page).page);
        match self.change {
            StructureChange::Insert { .. } => {
                let extents = fsp::extents_for_insert(tree.height());
                fsp::reserve(mtr, tree.space, extents, Reserve::Normal)?;
                fsp::prepare(mtr, tree.leaf_segment(), leaf)?;
                fsp::prepare(mtr, tree.top_segment(), tree.root)?;
            }
            StructureChange::Restore { .. } => {
                let extents = fsp::extents_for_delete(tree.height());
                fsp::reserve(mtr, tree.space, extents, Reserve::Cleaning)?;
                fsp::prepare(mtr, tree.leaf_segment(), leaf)?;
                fsp::prepare(mtr, tree.top_segment(), tree.root)?;
            }
            StructureChange::Remove => {
                let extents = fsp::extents_for_delete(tree.height());
                fsp::reserve(mtr, tree.space, extents, Reserve::Cleaning)?;
                if leaf != tree.root {
                    fsp::prepare_free(mtr, tree.leaf_segment(), leaf)?;
                }
            }
        }
        self.reserved = true;
        Ok(())
    }

    /// Whether the highest latched page is the root.
    pub(crate) fn reaches_root(&self, mtr: &Mtr<'_>) -> bool {
        self.levels.last().is_some_and(|level| mtr.page_id(level.page).page == self.tree.root)
    }
}

impl Tree {
    /// As [`Self::seek_for_change`], and latches all pages that a split or merge from this leaf may change.
    /// Start `mtr` with [`Self::structure_redo_bytes`] and hold no latch of this tree. The record may
    /// meanwhile have changed since the attempt on the leaf alone: look at it again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn seek_for_structure_change(
        &self,
        mtr: &mut Mtr<'_>,
        key: &[Field<'_>],
        change: StructureChange,
    ) -> Result<(ChangePosition, StructureGuard<'_>), Interrupt> {
        assert!(!mtr.has_changes(), "a structure change begins before the first change");
        if let StructureChange::Insert { size } | StructureChange::Restore { size } = change {
            assert!(
                size <= self.max_record_size(),
                "a record of {size} bytes must first move fields off-page"
            );
        }
        let lock = self.structure.lock();
        let key = SearchKey::new(&self.def, key);
        let mut guard =
            StructureGuard { tree: self, _lock: lock, change, reserved: false, levels: Vec::new() };
        self.gather(mtr, &mut guard, Target::Key(&key, Bound::LessOrEqual), change)?;
        let leaf = guard.levels[0];
        let position = self.position_on(mtr, leaf.page, &key)?;
        if change.moves_siblings() && position.exact {
            self.check_siblings_to_merge(mtr, &leaf, position.place.offset)?;
        }
        if let (false, Some(right)) = (change.moves_siblings(), leaf.right)
            && page::next_record(mtr.page(leaf.page), position.place.offset) == Ok(header::SUPREMUM)
        {
            // The new record may become its first one.
            self.check_chain(mtr, right)?;
        }
        Ok((position, guard))
    }

    /// Makes sure before the first change that a sibling which the page may move in with, when it has lost
    /// the record at `offset`, can be walked. Most have no room for it, and to walk through all three pages
    /// is most of what a try costs.
    fn check_siblings_to_merge(&self, mtr: &Mtr<'_>, leaf: &Level, offset: usize) -> Result<(), Interrupt> {
        let page = mtr.page(leaf.page);
        let size = RecordRef::new(page, offset, &self.def).size();
        let n_recs = header::n_recs(page).saturating_sub(1);
        let left_over = header::data_size(page).saturating_sub(size);
        for sibling in [leaf.left, leaf.right].into_iter().flatten() {
            if header::max_insert_reorganized(mtr.page(sibling), n_recs) >= left_over {
                self.check_chain(mtr, sibling)?;
            }
        }
        Ok(())
    }

    fn gather(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        target: Target<'_>,
        change: StructureChange,
    ) -> Result<(), Interrupt> {
        let (steps, leaf) = self.read_path(target, change)?;
        self.root_level.store(steps.len() as u32, Ordering::Relaxed);
        self.structure_version.fetch_add(1, Ordering::Relaxed);
        let top = steps.iter().rposition(|step| step.safe).unwrap_or(0);
        for (index, step) in steps.iter().enumerate().skip(top) {
            let level = (steps.len() - index) as u16;
            let siblings = !step.safe;
            guard.levels.push(self.latch_level(mtr, step, level, siblings, change)?);
        }
        guard.levels.push(self.latch_level(mtr, &leaf, 0, true, change)?);
        guard.levels.reverse();
        Ok(())
    }

    /// Latches a page, and its siblings on both sides.
    fn latch_level(
        &self,
        mtr: &mut Mtr<'_>,
        step: &Step,
        level: u16,
        siblings: bool,
        change: StructureChange,
    ) -> Result<Level, Interrupt> {
        let mut latch = |number: u32| -> Result<Option<PageHandle>, Interrupt> {
            if number == NULL_PAGE {
                return Ok(None);
            }
            let handle = mtr.x(self.page_id(number))?;
            self.check_child(mtr.page(handle), number, level)?;
            if number == step.number || level > 0 && change.moves_siblings() {
                self.check_chain(mtr, handle)?;
            }
            Ok(Some(handle))
        };
        let (left, right) = if siblings { (step.left, step.right) } else { (NULL_PAGE, NULL_PAGE) };
        let left = latch(left)?;
        let page =
            latch(step.number)?.ok_or_else(|| self.corrupt(step.number, "a node pointer leads nowhere"))?;
        let right = latch(right)?;
        let linked = left.is_none_or(|left| fil::next(mtr.page(left)) == step.number)
            && right.is_none_or(|right| fil::previous(mtr.page(right)) == step.number);
        if linked {
            Ok(Level { page, left, right })
        } else {
            Err(self.corrupt(step.number, "the page's neighbours do not point back to it"))
        }
    }

    /// Makes sure before the first change that the records of a page can be walked and counted.
    fn check_chain(&self, mtr: &Mtr<'_>, handle: PageHandle) -> Result<(), Interrupt> {
        let page = mtr.page(handle);
        let check = || {
            let (mut count, mut bytes) = (0, 0);
            for origin in page::records(page) {
                let record = RecordRef::new(page, origin?, &self.def);
                let (record, _) = record.raw().ok_or(Malformed("a record leaves the page"))?;
                (count, bytes) = (count + 1, bytes + record.len());
            }
            if count != header::n_recs(page) || bytes != header::data_size(page) {
                return Err(Malformed("number or size of the records is not what the page header says"));
            }
            Ok(())
        };
        self.sound(mtr, handle, check())
    }

    /// Reads the path to a leaf: the pages above it from the root down, and the leaf's number and links.
    fn read_path(&self, target: Target<'_>, change: StructureChange) -> Result<(Vec<Step>, Step), Interrupt> {
        let mut steps = Vec::new();
        let mut number = self.root;
        let mut level = None;
        loop {
            let page = self.store.read(self.page_id(number))?;
            let here = level.unwrap_or_else(|| header::level(&page));
            self.check_child(&page, number, here)?;
            let mut step = Step { number, left: fil::previous(&page), right: fil::next(&page), safe: false };
            if here == 0 {
                return Ok((steps, step));
            }
            let damaged = |what| self.malformed(number, what);
            let pointer = self.pointer(&page, target).map_err(damaged)?;
            let child = RecordRef::new(&page, pointer, &self.def).child();
            let first = page::next_record(&page, header::INFIMUM).map_err(damaged)? == pointer;
            step.safe = self.absorbs(&page, change, here, first);
            steps.push(step);
            number = child;
            level = Some(here - 1);
        }
    }

    /// Whether a change of a child, whose node pointer is the first of the page or not, ends at this page.
    fn absorbs(&self, page: &[u8], change: StructureChange, level: u16, first: bool) -> bool {
        let pointer = self.def.node_pointer_size_max();
        let takes_pointers = header::max_insert_reorganized(page, 2) >= 2 * pointer;
        if matches!(change, StructureChange::Insert { .. } | StructureChange::Restore { .. }) {
            return takes_pointers;
        }
        let leftmost = fil::previous(page) == NULL_PAGE;
        let alone = leftmost && fil::next(page) == NULL_PAGE;
        let keeps_key = !first || leftmost || level == 1;
        let stays = header::data_size(page) >= merge_limit(page.len()) + pointer;
        takes_pointers && keeps_key && stays && !alone && header::n_recs(page) >= 3
    }
}
