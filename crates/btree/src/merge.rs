//! Removing records and what follows from it: merging pages, freeing them, and lowering the tree.
//!
//! A page whose records fill less than half of it moves in with a sibling of the same parent if all of them
//! fit there; otherwise it stays as it is, and tries again when it has lost a sixteenth of that half. Records
//! are never redistributed. A page that loses its last record is freed. When a level is down to one page,
//! that page's records move up into the root: files that other servers import must not have a level of a
//! single page below the root, as such a page cannot be told from a root.
//!
//! A leaf's node pointer may have a lower key than the leaf's first record; above the leaves both are always
//! equal.

use pagestore::fsp;
use pagestore::page::{self as fil, NEXT, NULL_PAGE, PREVIOUS};
use pagestore::{Interrupt, Mtr, PageHandle};

use crate::optimistic::Place;
use crate::page::builder::PageBuilder;
use crate::page::reorganize::reorganized;
use crate::page::{self, Malformed, MtrPage, PageEditor, header, image, insert};
use crate::record::{RecordBuffer, RecordRef, header as record_header};
use crate::structure_modification::StructureGuard;
use crate::tree::Tree;

/// Bytes of live records below which a page is to be merged.
pub(crate) fn merge_limit(page_size: usize) -> usize {
    page_size / 2
}

/// An underfull page looks for a sibling to merge with this many times on its way to being empty.
const MERGE_TRIES: usize = 16;

/// Whether a removal that takes the live records of a page from `before` to `after` bytes is one at which a
/// merge is tried. Not at every removal below the limit: a page between two full ones stays underfull for as
/// long as it lives, and each try latches three pages and walks their records.
pub(crate) fn is_merge_due(page_size: usize, before: usize, after: usize) -> bool {
    let limit = merge_limit(page_size);
    let step = limit / MERGE_TRIES;
    after < limit && before / step != after / step
}

impl Tree {
    /// Removes the record at `place`, merging or freeing pages as needed.
    ///
    /// # Errors
    /// [`Interrupt`] before anything was changed, unless the caller changed something first without
    /// [`StructureGuard::reserve`].
    pub fn remove_with_merge(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        place: Place,
    ) -> Result<(), Interrupt> {
        guard.reserve(mtr)?;
        debug_assert_eq!(guard.levels[0].page, place.page);
        let is_root = mtr.page_id(place.page).page == self.root;
        if header::n_recs(mtr.page(place.page)) == 1 && !is_root {
            return self.discard(mtr, guard, 0);
        }
        self.delete_on_page(mtr, place)?;
        if is_root { Ok(()) } else { self.compress(mtr, guard, 0) }
    }

    fn is_alone(&self, page: &[u8]) -> bool {
        fil::previous(page) == NULL_PAGE && fil::next(page) == NULL_PAGE
    }

    /// Merges the page of `level` with a sibling if it is underfull and fits there.
    fn compress(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let bytes = mtr.page(page);
        if self.is_alone(bytes) {
            return self.lift(mtr, guard, level, page);
        }
        if header::data_size(bytes) >= merge_limit(bytes.len()) {
            return Ok(());
        }
        let Some(parent) = guard.levels.get(level + 1).map(|level| level.page) else { return Ok(()) };
        let (size, n_recs) = (header::data_size(bytes), header::n_recs(bytes));
        let takes = |sibling: PageHandle| size <= header::max_insert_reorganized(mtr.page(sibling), n_recs);
        let of_parent =
            |sibling: PageHandle| self.find_pointer(mtr, parent, mtr.page_id(sibling).page).is_some();
        if !of_parent(page) {
            // The parent was split just now, by a key of this page that had to be replaced; no merge on top
            // of that.
            return Ok(());
        }
        let left = guard.levels[level].left.filter(|left| takes(*left) && of_parent(*left));
        let right = guard.levels[level].right.filter(|right| takes(*right) && of_parent(*right));
        match (left, right) {
            (Some(left), _) => self.merge_into(mtr, guard, level, left, Side::Left),
            (None, Some(right)) => self.merge_into(mtr, guard, level, right, Side::Right),
            (None, None) => Ok(()),
        }
    }

    /// Moves all records of the page of `level` to `sibling`, which lies on that `side` of it, and frees the
    /// page.
    fn merge_into(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        sibling: PageHandle,
        side: Side,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let merged = match side {
            Side::Left => append_all(mtr.page(sibling), mtr.page(page), self),
            Side::Right => put_before(mtr.page(page), mtr.page(sibling), self),
        };
        let merged = self.sound(mtr, sibling, merged)?;
        image::write_image(&mut MtrPage::new(mtr, sibling), &merged);
        self.copy_max_trx_id(mtr, page, sibling);
        self.unlink(mtr, guard, level);
        let parent = guard.levels[level + 1].page;
        let (number, sibling_number) = (mtr.page_id(page).page, mtr.page_id(sibling).page);
        let pointer = self.pointer_to(mtr, parent, number)?;
        let redundant = match side {
            Side::Left => pointer,
            // The page's node pointer has the key of what is now the first record: it is to lead to the
            // sibling, and the sibling's own pointer goes.
            Side::Right => self.pointer_to(mtr, parent, sibling_number)?,
        };
        fsp::free_page(mtr, self.segment_of(level as u16), page)?;
        if redundant != pointer {
            let at = RecordRef::new(mtr.page(parent), pointer, &self.def).child_offset();
            mtr.write_u32(parent, at, sibling_number);
        }
        self.delete_on_page(mtr, Place { page: parent, offset: redundant })?;
        self.pointer_removed(mtr, guard, level + 1)
    }

    fn copy_max_trx_id(&self, mtr: &mut Mtr<'_>, from: PageHandle, to: PageHandle) {
        if header::level(mtr.page(from)) == 0 {
            let trx_id = header::max_trx_id(mtr.page(from));
            self.note_trx_id(mtr, to, trx_id);
        }
    }

    /// Takes the page of `level` out of the list of its siblings.
    fn unlink(&self, mtr: &mut Mtr<'_>, guard: &StructureGuard<'_>, level: usize) {
        let here = guard.levels[level];
        let (left, right) = (fil::previous(mtr.page(here.page)), fil::next(mtr.page(here.page)));
        if let Some(handle) = here.left {
            mtr.write_u32(handle, NEXT, right);
        }
        if let Some(handle) = here.right {
            mtr.write_u32(handle, PREVIOUS, left);
        }
    }

    /// Frees the page of `level`, which is left without records.
    fn discard(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let number = mtr.page_id(page).page;
        if self.is_alone(mtr.page(page)) {
            return self.empty_tree(mtr, guard, level);
        }
        self.unlink(mtr, guard, level);
        let (left, right) = (guard.levels[level].left, guard.levels[level].right);
        if let (true, None, Some(right)) = (level > 0, left, right) {
            let first = self.sound(mtr, right, page::next_record(mtr.page(right), header::INFIMUM))?;
            set_min_rec(mtr, right, first);
        }
        let parent = match guard.levels.get(level + 1) {
            Some(level) => level.page,
            None => return Err(self.corrupt(number, "a page was freed whose parent is not latched")),
        };
        let pointer = self.pointer_to(mtr, parent, number)?;
        fsp::free_page(mtr, self.segment_of(level as u16), page)?;
        if header::n_recs(mtr.page(parent)) == 1 {
            return self.discard(mtr, guard, level + 1);
        }
        self.remove_pointer(mtr, guard, level + 1, pointer)?;
        self.pointer_removed(mtr, guard, level + 1)
    }

    /// Removes the node pointer at `pointer` from the page of `level`, which has others.
    fn remove_pointer(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        pointer: usize,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let first = self.sound(mtr, page, page::next_record(mtr.page(page), header::INFIMUM))?;
        if pointer != first {
            return self.delete_on_page(mtr, Place { page, offset: pointer });
        }
        let second = self.sound(mtr, page, page::next_record(mtr.page(page), first))?;
        if level == 1 {
            // Leaves may have a pointer with a lower key: the next leaf takes over this one, and no key above
            // changes.
            let child = RecordRef::new(mtr.page(page), second, &self.def).child();
            let at = RecordRef::new(mtr.page(page), first, &self.def).child_offset();
            mtr.write_u32(page, at, child);
            return self.delete_on_page(mtr, Place { page, offset: second });
        }
        let leftmost = fil::previous(mtr.page(page)) == NULL_PAGE;
        self.delete_on_page(mtr, Place { page, offset: first })?;
        if leftmost {
            set_min_rec(mtr, page, second);
            return Ok(());
        }
        self.replace_key(mtr, guard, level + 1, page)
    }

    /// Gives the node pointer to `child`, on the page of `level`, the key of the child's first record.
    fn replace_key(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        child: PageHandle,
    ) -> Result<(), Interrupt> {
        let number = mtr.page_id(child).page;
        let page = match guard.levels.get(level) {
            Some(level) => level.page,
            None => {
                return Err(
                    self.corrupt(number, "the first key of a page changed whose parent is not latched")
                );
            }
        };
        let pointer = self.pointer_to(mtr, page, number)?;
        let old = RecordRef::new(mtr.page(page), pointer, &self.def);
        if old.is_min_rec() {
            return Ok(());
        }
        let predecessor = self.sound(mtr, page, page::previous_record(mtr.page(page), pointer))?;
        let first = self.sound(mtr, child, page::next_record(mtr.page(child), header::INFIMUM))?;
        let mut record = RecordBuffer::new();
        record
            .encode_node_pointer(RecordRef::new(mtr.page(child), first, &self.def), number)
            .map_err(|_| self.corrupt(number, "a key is too long for a node pointer"))?;
        let replaced = self.replace_on_page(mtr, Place { page, offset: pointer }, &mut record);
        if self.sound(mtr, page, replaced)?.is_none() {
            self.delete_on_page(mtr, Place { page, offset: pointer })?;
            self.insert_pointer(mtr, guard, level, predecessor, &mut record)?;
        }
        let is_root = mtr.page_id(page).page == self.root;
        if predecessor == header::INFIMUM && !is_root {
            return self.replace_key(mtr, guard, level + 1, page);
        }
        Ok(())
    }

    /// After the page of `level` lost a node pointer: it may be underfull, or a root with only one child.
    fn pointer_removed(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        if mtr.page_id(page).page != self.root {
            return if guard.levels.len() > level + 1 { self.compress(mtr, guard, level) } else { Ok(()) };
        }
        if header::n_recs(mtr.page(page)) != 1 {
            return Ok(());
        }
        let only = self.sound(mtr, page, page::next_record(mtr.page(page), header::INFIMUM))?;
        let child = RecordRef::new(mtr.page(page), only, &self.def).child();
        // The survivor is a sibling of the page that went, so it is latched.
        match mtr.held(self.page_id(child)) {
            Some(child) if mtr.is_x(child) => self.lift(mtr, guard, level - 1, child),
            _ => Ok(()),
        }
    }

    /// Moves the records of `page`, the only one on its level, up into the root and frees it and all levels
    /// in between.
    fn lift(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        page: PageHandle,
    ) -> Result<(), Interrupt> {
        if !guard.reaches_root(mtr) || !self.is_alone(mtr.page(page)) {
            return Ok(());
        }
        let top = guard.levels.len() - 1;
        let root = guard.levels[top].page;
        let build = |mtr: &Mtr<'_>| {
            let mut target = PageBuilder::like(mtr.page(root));
            target.set_level(level as u16);
            if level == 0 && !self.def.clustered {
                target.set_max_trx_id(header::max_trx_id(mtr.page(page)));
            }
            for origin in page::record_list(mtr.page(page))? {
                target.append_record(RecordRef::new(mtr.page(page), origin, &self.def))?;
            }
            Ok(std::mem::take(target.finish(false)))
        };
        let built = build(mtr);
        let built = self.sound(mtr, page, built)?;
        image::write_image(&mut MtrPage::new(mtr, root), &built);
        fsp::free_page(mtr, self.segment_of(level as u16), page)?;
        for between in level + 1..top {
            let page = guard.levels[between].page;
            fsp::free_page(mtr, self.segment_of(between as u16), page)?;
        }
        self.root_level.store(level as u32, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// The last record of the tree goes: the root becomes an empty leaf, and its last descendants, from level
    /// `from` up, are freed.
    fn empty_tree(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &StructureGuard<'_>,
        from: usize,
    ) -> Result<(), Interrupt> {
        let top = guard.levels.len() - 1;
        let root = guard.levels[top].page;
        if !guard.reaches_root(mtr) {
            return Err(
                self.corrupt(self.root, "the only page of a level was freed without its ancestors latched")
            );
        }
        let mut target = PageBuilder::like(mtr.page(root));
        target.set_level(0);
        let max_trx_id = header::max_trx_id(mtr.page(guard.levels[0].page));
        if !self.def.clustered {
            target.set_max_trx_id(max_trx_id);
        }
        let target = std::mem::take(target.finish(false));
        image::write_image(&mut MtrPage::new(mtr, root), &target);
        for level in from..top {
            let page = guard.levels[level].page;
            fsp::free_page(mtr, self.segment_of(level as u16), page)?;
        }
        self.root_level.store(0, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

/// On which side of a page its sibling lies.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn set_min_rec(mtr: &mut Mtr<'_>, page: PageHandle, origin: usize) {
    let byte = mtr.page(page)[origin - 5] | record_header::MIN_REC_FLAG;
    mtr.write_u8(page, origin - 5, byte);
}

/// An image of `left` with all records of `right` behind its own.
fn append_all(left: &[u8], right: &[u8], tree: &Tree) -> Result<Vec<u8>, Malformed> {
    let contiguous = header::data_size(right) <= header::max_insert(left, header::n_recs(right));
    let mut target = if contiguous { left.to_vec() } else { reorganized(left, &tree.def)? };
    let mut record = RecordBuffer::new();
    let mut last = page::last_record(&target)?;
    for origin in page::record_list(right)? {
        record.copy_record(RecordRef::new(right, origin, &tree.def));
        let inserted = insert::insert_record(&mut target, &tree.def, last, &mut record)?;
        last = inserted.ok_or(Malformed("the records of a page are larger than its header says"))?;
    }
    target.write(header::LAST_INSERT, &[0, 0]);
    Ok(target)
}

/// An image of `right` with all records of `left` before its own.
fn put_before(left: &[u8], right: &[u8], tree: &Tree) -> Result<Vec<u8>, Malformed> {
    let mut merged = PageBuilder::like(right);
    for part in [left, right] {
        for origin in page::record_list(part)? {
            merged.append_record(RecordRef::new(part, origin, &tree.def))?;
        }
    }
    Ok(std::mem::take(merged.finish(false)))
}
