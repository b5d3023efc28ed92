//! Splitting pages, and growing the tree by a level.
//!
//! A page that has no room for a record gets a new neighbour and gives it one part of its records. Where to
//! cut decides how full pages are in the end: behind the last insert when inserts ascend, before it when they
//! descend, else in the middle. The new page's key goes to the parent as a node pointer, which may split the
//! parent in turn. The root never moves: when it must be split, its records move to a new page first, and it
//! becomes that page's parent.

use pagestore::fsp::{self, Direction};
use pagestore::page::{self as fil, NEXT, NULL_PAGE, PREVIOUS};
use pagestore::{Interrupt, Mtr, PageHandle};

use crate::compare::SearchKey;
use crate::key::KeyFields;
use crate::optimistic::{ChangePosition, Outcome, Place};
use crate::page::builder::PageBuilder;
use crate::page::reorganize::{nth, ordinal};
use crate::page::search::{Bound, search};
use crate::page::{self, Malformed, MtrPage, PageEditor, delete, header, image, insert};
use crate::record::{RecordBuffer, RecordRef};
use crate::structure_modification::{Level, StructureGuard};
use crate::tree::Tree;

/// Where a page is cut: of its records with the new one among them, `lower` stay below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    lower: usize,
    direction: Direction,
}

impl Tree {
    /// Inserts `record` behind `position`, splitting as needed.
    ///
    /// # Errors
    /// [`Interrupt`] before anything was changed, unless the caller changed something first without
    /// [`StructureGuard::reserve`].
    pub fn insert_with_split(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        position: &ChangePosition,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<(), Interrupt> {
        if let Outcome::Done(_) = self.insert_here(mtr, position, record, trx_id)? {
            return Ok(());
        }
        guard.reserve(mtr)?;
        let Place { page, offset } = position.place;
        debug_assert_eq!(guard.levels[0].page, page);
        if self.insert_into_right_sibling(mtr, guard, offset, record, trx_id)? {
            return Ok(());
        }
        self.split(mtr, guard, 0, offset, record, trx_id)
    }

    /// Replaces the record at `place` by `record` of the same key, splitting as needed.
    ///
    /// # Errors
    /// As [`Self::insert_with_split`].
    pub fn update_with_split(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        place: Place,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<(), Interrupt> {
        guard.reserve(mtr)?;
        let replaced = self.replace_on_page(mtr, place, record);
        if self.sound(mtr, place.page, replaced)?.is_some() {
            self.note_trx_id(mtr, place.page, trx_id);
            return Ok(());
        }
        let predecessor =
            self.sound(mtr, place.page, page::previous_record(mtr.page(place.page), place.offset))?;
        self.delete_on_page(mtr, place)?;
        // A page that became empty was reinitialised, so infimum is in its place.
        self.split(mtr, guard, 0, predecessor, record, trx_id)
    }

    /// A record that would be the last of a full leaf goes to the right sibling if there is room, at the
    /// price of a new node pointer for that one. Only within one parent.
    fn insert_into_right_sibling(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &StructureGuard<'_>,
        predecessor: usize,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<bool, Interrupt> {
        let Level { page, right, .. } = guard.levels[0];
        let (Some(right), Some(parent)) = (right, guard.levels.get(1)) else { return Ok(false) };
        let parent = parent.page;
        let is_last = page::next_record(mtr.page(page), predecessor) == Ok(header::SUPREMUM);
        if !is_last || header::max_insert(mtr.page(right), 1) < record.size() {
            return Ok(false);
        }
        let right_number = mtr.page_id(right).page;
        let Some(pointer) = self.find_pointer(mtr, parent, right_number) else { return Ok(false) };
        let mut new_pointer = RecordBuffer::new();
        let encoded = new_pointer.encode_node_pointer(record.view(&self.def), right_number);
        let old_size = RecordRef::new(mtr.page(parent), pointer, &self.def).size();
        let room = header::max_insert_reorganized(mtr.page(parent), 1) + old_size;
        if encoded.is_err() || room < new_pointer.size() {
            return Ok(false);
        }
        let inserted = self.insert_on_page(mtr, right, header::INFIMUM, record);
        if self.sound(mtr, right, inserted)?.is_none() {
            return Ok(false);
        }
        self.note_trx_id(mtr, right, trx_id);
        let replaced = self.replace_on_page(mtr, Place { page: parent, offset: pointer }, &mut new_pointer);
        match self.sound(mtr, parent, replaced)? {
            Some(_) => Ok(true),
            None => Err(self
                .corrupt(mtr.page_id(parent).page, "a node pointer does not fit where there is room for it")),
        }
    }

    /// The node pointer to page `child` on `parent`.
    pub(crate) fn find_pointer(&self, mtr: &Mtr<'_>, parent: PageHandle, child: u32) -> Option<usize> {
        let page = mtr.page(parent);
        // Where a search for the child's first key leads, if the child is latched, else by going through all.
        let handle = mtr.held(self.page_id(child));
        let by_key = handle.and_then(|child| self.pointer_by_key(page, mtr.page(child)));
        let leads_there = |origin: &usize| RecordRef::new(page, *origin, &self.def).child() == child;
        if let Some(found) = by_key.filter(leads_there) {
            return Some(found);
        }
        page::records(page)
            .map_while(Result::ok)
            .find(|origin| RecordRef::new(page, *origin, &self.def).child() == child)
    }

    fn pointer_by_key(&self, parent: &[u8], child: &[u8]) -> Option<usize> {
        let first = page::next_record(child, header::INFIMUM).ok()?;
        if first == header::SUPREMUM {
            return None;
        }
        let record = RecordRef::new(child, first, &self.def);
        // The least key of its level is no key.
        record.raw().filter(|_| !record.is_min_rec())?;
        let fields: KeyFields<'_> =
            record.fields().take(self.def.n_unique).map(|field| field.inline()).collect();
        let key = SearchKey::new(&self.def, &fields);
        let found = search(parent, &self.def, &key, Bound::LessOrEqual).ok()?;
        (found.offset != header::INFIMUM).then_some(found.offset)
    }

    pub(crate) fn pointer_to(
        &self,
        mtr: &Mtr<'_>,
        parent: PageHandle,
        child: u32,
    ) -> Result<usize, Interrupt> {
        self.find_pointer(mtr, parent, child).ok_or_else(|| {
            self.corrupt(mtr.page_id(parent).page, format!("no node pointer leads to page {child}"))
        })
    }

    /// Inserts a record above the leaves, splitting as needed.
    pub(crate) fn insert_pointer(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        predecessor: usize,
        record: &mut RecordBuffer,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let inserted = self.insert_on_page(mtr, page, predecessor, record);
        if self.sound(mtr, page, inserted)?.is_some() {
            return Ok(());
        }
        self.split(mtr, guard, level, predecessor, record, 0)
    }

    /// Cuts the page of `level` and inserts `record` behind `predecessor` into the right part.
    fn split(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        mut predecessor: usize,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<(), Interrupt> {
        if mtr.page_id(guard.levels[level].page).page == self.root {
            predecessor = self.raise_root(mtr, guard, level, predecessor)?;
        }
        let page = guard.levels[level].page;
        let size = record.size();
        let planned = plan_cut(mtr.page(page), self, predecessor, size);
        let (list, position, cut) = self.sound(mtr, page, planned)?;
        let number = mtr.page_id(page).page;
        let hint = if cut.direction == Direction::Down { number.saturating_sub(1) } else { number + 1 };
        let new = fsp::allocate_page(mtr, self.segment_of(level as u16), hint, cut.direction)?;
        let moved = self.move_records(mtr, page, new, &list, position, cut, record);
        self.sound(mtr, page, moved)?;
        if level == 0 {
            self.note_trx_id(mtr, page, trx_id);
            self.note_trx_id(mtr, new, trx_id);
        }
        self.link_new_page(mtr, &mut guard.levels[level], new, cut.direction);
        self.attach_halves(mtr, guard, level, new, cut.direction)
    }

    /// Moves the root's records to a new page below it. Returns where `predecessor` is now.
    fn raise_root(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        predecessor: usize,
    ) -> Result<usize, Interrupt> {
        let root = guard.levels[level].page;
        let number = self.sound(mtr, root, ordinal(mtr.page(root), predecessor))?;
        let new = fsp::allocate_page(mtr, self.segment_of(level as u16), 0, Direction::None)?;
        let build = |mtr: &Mtr<'_>| {
            let page = mtr.page(root);
            let mut child = PageBuilder::fresh(page.len(), mtr.page_id(new), level as u16, self.def.id);
            if level == 0 && !self.def.clustered {
                child.set_max_trx_id(header::max_trx_id(page));
            }
            for origin in page::record_list(page)? {
                child.append_record(RecordRef::new(page, origin, &self.def))?;
            }
            let mut parent = PageBuilder::like(page);
            parent.set_level(level as u16 + 1);
            if !self.def.clustered {
                parent.set_max_trx_id(0);
            }
            if let Some(first) = child.first(&self.def) {
                let mut pointer = RecordBuffer::new();
                pointer
                    .encode_node_pointer(first, mtr.page_id(new).page)
                    .map_err(|_| Malformed("a key is too long for a node pointer"))?;
                pointer.set_min_rec(true);
                parent.append(pointer.as_bytes(), pointer.extra_size());
            }
            Ok((std::mem::take(child.finish(false)), std::mem::take(parent.finish(false))))
        };
        let built = build(mtr);
        let (child, parent) = self.sound(mtr, root, built)?;
        image::write_image(&mut MtrPage::new(mtr, new), &child);
        image::write_image(&mut MtrPage::new(mtr, root), &parent);
        let predecessor = self.sound(mtr, new, nth(&child, number))?;
        guard.levels[level] = Level { page: new, left: None, right: None };
        guard.levels.push(Level { page: root, left: None, right: None });
        self.root_level.store(level as u32 + 1, std::sync::atomic::Ordering::Relaxed);
        Ok(predecessor)
    }

    /// Distributes the records of `page` and the new one.
    #[allow(clippy::too_many_arguments)]
    fn move_records(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageHandle,
        new: PageHandle,
        list: &[usize],
        position: usize,
        cut: Cut,
        record: &mut RecordBuffer,
    ) -> Result<(), Malformed> {
        let new_is_lower = position < cut.lower;
        let first_upper = if new_is_lower { cut.lower - 1 } else { cut.lower };
        let (lower, upper) = list.split_at(first_upper);
        let (moved, kept) = if cut.direction == Direction::Down { (lower, upper) } else { (upper, lower) };
        let to_new_page = new_is_lower == (cut.direction == Direction::Down);

        let bytes = mtr.page(page);
        let mut target = PageBuilder::fresh(bytes.len(), mtr.page_id(new), header::level(bytes), self.def.id);
        if header::level(bytes) == 0 && !self.def.clustered {
            target.set_max_trx_id(header::max_trx_id(bytes));
        }
        for origin in moved {
            target.append_record(RecordRef::new(bytes, *origin, &self.def))?;
        }
        let mut target = std::mem::take(target.finish(false));
        if to_new_page {
            let before = if new_is_lower { position } else { position - cut.lower };
            let predecessor = nth(&target, before)?;
            insert::insert_record(&mut target, &self.def, predecessor, record)?.ok_or(NO_ROOM)?;
        }
        image::write_image(&mut MtrPage::new(mtr, new), &target);

        let mut editor = MtrPage::new(mtr, page);
        if cut.direction == Direction::Down {
            let mut rest = PageBuilder::like(editor.bytes());
            for origin in kept {
                rest.append_record(RecordRef::new(editor.bytes(), *origin, &self.def))?;
            }
            image::write_image(&mut editor, rest.finish(false));
        } else if let Some(first) = moved.first() {
            delete::delete_from(&mut editor, &self.def, *first)?;
        }
        if !to_new_page {
            let before = if new_is_lower { position } else { position - cut.lower };
            let predecessor = nth(mtr.page(page), before)?;
            self.insert_on_page(mtr, page, predecessor, record)?.ok_or(NO_ROOM)?;
        }
        Ok(())
    }

    /// Puts the new page between its neighbours.
    fn link_new_page(&self, mtr: &mut Mtr<'_>, level: &mut Level, new: PageHandle, direction: Direction) {
        let page = level.page;
        let (page_number, new_number) = (mtr.page_id(page).page, mtr.page_id(new).page);
        if direction == Direction::Down {
            let left_number = fil::previous(mtr.page(page));
            mtr.write_u32(new, PREVIOUS, left_number);
            mtr.write_u32(new, NEXT, page_number);
            mtr.write_u32(page, PREVIOUS, new_number);
            if let Some(left) = level.left {
                mtr.write_u32(left, NEXT, new_number);
            }
            debug_assert_eq!(level.left.is_none(), left_number == NULL_PAGE);
            level.left = Some(new);
        } else {
            let right_number = fil::next(mtr.page(page));
            mtr.write_u32(new, PREVIOUS, page_number);
            mtr.write_u32(new, NEXT, right_number);
            mtr.write_u32(page, NEXT, new_number);
            if let Some(right) = level.right {
                mtr.write_u32(right, PREVIOUS, new_number);
            }
            debug_assert_eq!(level.right.is_none(), right_number == NULL_PAGE);
            level.right = Some(new);
        }
    }

    /// Tells the parent about the new page.
    fn attach_halves(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        level: usize,
        new: PageHandle,
        direction: Direction,
    ) -> Result<(), Interrupt> {
        let page = guard.levels[level].page;
        let Some(parent) = guard.levels.get(level + 1).map(|level| level.page) else {
            return Err(self.corrupt(mtr.page_id(page).page, "a page was split whose parent is not latched"));
        };
        let pointer = self.pointer_to(mtr, parent, mtr.page_id(page).page)?;
        let upper = if direction == Direction::Down { page } else { new };
        if direction == Direction::Down {
            // The old pointer keeps its key, which is the lower part's now.
            let at = RecordRef::new(mtr.page(parent), pointer, &self.def).child_offset();
            let number = mtr.page_id(new).page;
            mtr.write_u32(parent, at, number);
        }
        let mut record = RecordBuffer::new();
        let first = self.sound(mtr, upper, page::next_record(mtr.page(upper), header::INFIMUM))?;
        let number = mtr.page_id(upper).page;
        record
            .encode_node_pointer(RecordRef::new(mtr.page(upper), first, &self.def), number)
            .map_err(|_| self.corrupt(number, "a key is too long for a node pointer"))?;
        self.insert_pointer(mtr, guard, level + 1, pointer, &mut record)
    }
}

const NO_ROOM: Malformed = Malformed("the records of a page are larger than its header says");

/// Chooses where to cut `page` so that both parts, one of them with a new record of `size` bytes behind
/// `predecessor`, fit a page. Returns the records, the new record's position among them, and the cut.
fn plan_cut(
    page: &[u8],
    tree: &Tree,
    predecessor: usize,
    size: usize,
) -> Result<(Vec<usize>, usize, Cut), Malformed> {
    let list = page::record_list(page)?;
    let position = ordinal(page, predecessor)?;
    let mut sizes: Vec<usize> =
        list.iter().map(|origin| RecordRef::new(page, *origin, &tree.def).size()).collect();
    sizes.insert(position, size);
    let total: usize = sizes.iter().sum();
    let fits = |lower: usize| {
        let bytes: usize = sizes[..lower].iter().sum();
        header::fits_empty(page.len(), lower, bytes)
            && header::fits_empty(page.len(), sizes.len() - lower, total - bytes)
    };
    let preferred = preferred_cut(page, &list, position);
    let cut = if (1..sizes.len()).contains(&preferred.lower) && fits(preferred.lower) {
        preferred
    } else {
        let mut bytes = 0;
        let balanced = (1..sizes.len()).filter(|lower| fits(*lower)).min_by_key(|lower| {
            bytes = sizes[..*lower].iter().sum();
            bytes.abs_diff(total - bytes)
        });
        Cut { lower: balanced.ok_or(NO_ROOM)?, direction: Direction::Up }
    };
    Ok((list, position, cut))
}

/// Where InnoDB cuts, by the page's last insert.
fn preferred_cut(page: &[u8], list: &[usize], position: usize) -> Cut {
    let last = header::last_insert(page);
    let n = list.len();
    if last != 0 && position > 0 && list[position - 1] == last {
        let follow = n - position;
        let lower = if follow <= 1 { position } else { position + 2 };
        return Cut { lower, direction: Direction::Up };
    }
    if last != 0 && list.get(position) == Some(&last) {
        let lower = if position >= 2 { position - 1 } else { position + 1 };
        return Cut { lower, direction: Direction::Down };
    }
    let middle = n / 2;
    let lower = if position <= middle { middle + 1 } else { middle.max(1) };
    Cut { lower, direction: Direction::Up }
}
