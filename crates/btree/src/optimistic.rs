//! Changing records of one leaf.
//!
//! Every function here either makes its whole change on the one leaf that is latched, or makes none and says
//! [`Outcome::NeedsStructureChange`]: the optimistic half. The caller then starts again with
//! `structure_modification.rs`, the pessimistic one. A page whose free room is garbage is reorganized
//! (`page/reorganize.rs`). The `*_fits` functions answer the same question beforehand, so
//! that a caller can write its undo record in between. When a leaf is said to be full, and when underfull,
//! follows InnoDB: clustered leaves that fill up in key order keep 1/16 free for later updates; a page below
//! half is merged if it can be (`merge.rs` says when that is tried).

use std::cmp::Ordering;

use pagestore::PageId;
use pagestore::{Interrupt, Mtr, PageHandle, page as fil};

use crate::compare::SearchKey;
use crate::cursor::SavedPosition;
use crate::definition::{ROLL_PTR_SIZE, TRX_ID_SIZE};
use crate::descend::Target;
use crate::field::Field;
use crate::merge::is_merge_due;
use crate::page::reorganize::{insert_reorganized, nth, ordinal};
use crate::page::search::{Bound, search};
use crate::page::{self, Malformed, MtrPage, PageEditor, delete, header, image, insert};
use crate::record::build::system_fields;
use crate::record::{RecordBuffer, RecordRef, header as record_header};
use crate::tree::Tree;

/// A record in a page that the mini-transaction holds. Offsets are those of record origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The latched page.
    pub page: PageHandle,
    /// Origin of the record.
    pub offset: usize,
}

/// What a search for a key in order to change something found. The leaf is X-latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePosition {
    /// The last record that is not above the key; the infimum if there is none on the page.
    pub place: Place,
    /// Whether that record has exactly the key.
    pub exact: bool,
}

/// Where a mini-transaction left a record that it had changed or inserted. Holds nothing: the page's LSN
/// tells whether anything was changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastChange {
    page: PageId,
    lsn: u64,
    offset: usize,
}

impl LastChange {
    /// The record at `position`, which `mtr` has changed where it lies. Commits `mtr`.
    pub fn after_commit(mtr: Mtr<'_>, position: &ChangePosition) -> LastChange {
        LastChange::at(mtr, position.place)
    }

    /// The record at `place`, on a page that is left as it is.
    pub fn unchanged(mtr: &Mtr<'_>, place: Place) -> LastChange {
        let lsn = fil::lsn(mtr.page(place.page));
        LastChange { page: mtr.page_id(place.page), lsn, offset: place.offset }
    }

    /// The record at `place`. Commits `mtr`.
    pub fn at(mtr: Mtr<'_>, place: Place) -> LastChange {
        let page = mtr.page_id(place.page);
        LastChange { page, lsn: mtr.commit().0, offset: place.offset }
    }
}

/// Records behind the last change that are looked at one by one.
const RECORDS_BEHIND: usize = 2;

/// Whether a change on one leaf was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It was; the record (for a removal: its predecessor) is here now.
    Done(Place),
    /// Nothing was changed: the page must be split or merged. Drop the mini-transaction and use
    /// [`Tree::seek_for_structure_change`].
    NeedsStructureChange,
}

impl Tree {
    /// Finds the place of `key` (all unique fields) and X-latches its leaf in `mtr`, which must be without
    /// changes.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn seek_for_change(&self, mtr: &mut Mtr<'_>, key: &[Field<'_>]) -> Result<ChangePosition, Interrupt> {
        let key = SearchKey::new(&self.def, key);
        debug_assert!(key.complete, "a place for a change is found by all fields of the unique key");
        let page = self.leaf_for_change(mtr, Target::Key(&key, Bound::LessOrEqual))?;
        self.position_on(mtr, page, &key)
    }

    /// As [`Tree::seek_for_change`] for a record that was seen at `seen` a moment ago: if its page has not
    /// changed since, this needs no descent.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn seek_for_change_at(
        &self,
        mtr: &mut Mtr<'_>,
        key: &[Field<'_>],
        seen: &SavedPosition,
    ) -> Result<ChangePosition, Interrupt> {
        if let Some((pin, lsn, offset)) = seen.place()
            && pin.page_id().space == self.space
        {
            let page = mtr.x_pin(pin.clone());
            let bytes = mtr.page(page);
            // The LSN tells every change of a page from the one before, so it is still a leaf and the record
            // still there.
            if fil::lsn(bytes) == lsn
                && header::index_id(bytes) == self.def.id
                && RecordRef::new(bytes, offset, &self.def).has_key(key)
            {
                return Ok(ChangePosition { place: Place { page, offset }, exact: true });
            }
            mtr.release(page);
        }
        self.seek_for_change(mtr, key)
    }

    /// As [`Tree::seek_for_change`] for a place that may be behind the record that was changed last, on its
    /// page, as when a statement goes through rows in the order of the index: then this needs no descent.
    /// `None` when it is not known to be there, with nothing latched.
    pub fn seek_behind(
        &self,
        mtr: &mut Mtr<'_>,
        key: &[Field<'_>],
        last: &LastChange,
    ) -> Option<ChangePosition> {
        if last.page.space != self.space {
            return None;
        }
        let page = mtr.x_present(last.page)?;
        let bytes = mtr.page(page);
        // The LSN tells every change of a page from the one before, being freed among them.
        let is_as_it_was = fil::lsn(bytes) == last.lsn && header::index_id(bytes) == self.def.id;
        let found = if is_as_it_was { self.place_behind(bytes, key, last.offset) } else { None };
        if let Some((offset, exact)) = found {
            return Some(ChangePosition { place: Place { page, offset }, exact });
        }
        mtr.release(page);
        None
    }

    /// The last record that is not above the key, and whether it has the key, if that is known to lie on the
    /// page of the record at `offset`, from there on: next to it, or further on below another record of the
    /// page. Behind the last one nobody knows whether the key belongs to the next page, unless there is none.
    fn place_behind(&self, bytes: &[u8], key: &[Field<'_>], offset: usize) -> Option<(usize, bool)> {
        let key = SearchKey::new(&self.def, key);
        let order = |offset: usize| key.compare_record(RecordRef::new(bytes, offset, &self.def));
        let mut below = match order(offset) {
            Ordering::Less => offset,
            Ordering::Equal => return Some((offset, true)),
            Ordering::Greater => return None,
        };
        let is_last_page = fil::next(bytes) == fil::NULL_PAGE;
        for _ in 0..RECORDS_BEHIND {
            let next = page::next_record(bytes, below).ok()?;
            if next == header::SUPREMUM {
                return is_last_page.then_some((below, false));
            }
            match order(next) {
                Ordering::Less => below = next,
                Ordering::Equal => return Some((next, true)),
                Ordering::Greater => return Some((below, false)),
            }
        }
        if is_last_page {
            return search(bytes, &self.def, &key, Bound::LessOrEqual)
                .ok()
                .map(|found| (found.offset, found.exact));
        }
        // The directory names a record of the page's end; no more than a group of records is behind it.
        let late = page::directory::slot(bytes, header::n_dir_slots(bytes).checked_sub(2)?);
        if late > header::SUPREMUM {
            match order(late) {
                Ordering::Less => below = late,
                Ordering::Equal => return Some((late, true)),
                Ordering::Greater => {
                    let found = search(bytes, &self.def, &key, Bound::LessOrEqual).ok()?;
                    return Some((found.offset, found.exact));
                }
            }
        }
        for _ in 0..page::directory::OWNED_MAX {
            let next = page::next_record(bytes, below).ok().filter(|next| *next != header::SUPREMUM)?;
            match order(next) {
                Ordering::Less => below = next,
                Ordering::Equal => return Some((next, true)),
                Ordering::Greater => return Some((below, false)),
            }
        }
        None
    }

    pub(crate) fn position_on(
        &self,
        mtr: &Mtr<'_>,
        page: PageHandle,
        key: &SearchKey<'_>,
    ) -> Result<ChangePosition, Interrupt> {
        let found = self.sound(mtr, page, search(mtr.page(page), &self.def, key, Bound::LessOrEqual))?;
        Ok(ChangePosition { place: Place { page, offset: found.offset }, exact: found.exact })
    }

    /// The record at `place`; `None` on infimum or supremum.
    #[inline]
    pub fn record_at<'m>(&'m self, mtr: &'m Mtr<'_>, place: Place) -> Option<RecordRef<'m>> {
        let user = place.offset != header::INFIMUM && place.offset != header::SUPREMUM;
        user.then(|| RecordRef::new(mtr.page(place.page), place.offset, &self.def))
    }

    /// The record after `place` on its page; `None` if it is the last one there.
    pub fn next_on_page(&self, mtr: &Mtr<'_>, place: Place) -> Option<Place> {
        let offset = page::next_record(mtr.page(place.page), place.offset).ok()?;
        (offset != header::SUPREMUM).then_some(Place { offset, ..place })
    }

    /// The record after `place`, S-latching the right sibling for the rest of the mini-transaction if it is
    /// there (so that the gap cannot change). `None` at the end of the tree.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store.
    pub fn successor(&self, mtr: &mut Mtr<'_>, place: Place) -> Result<Option<Place>, Interrupt> {
        let Place { mut page, offset } = place;
        let mut next = self.sound(mtr, page, page::next_record(mtr.page(page), offset))?;
        while next == header::SUPREMUM {
            let right = pagestore::page::next(mtr.page(page));
            if right == pagestore::page::NULL_PAGE {
                return Ok(None);
            }
            page = mtr.s(self.page_id(right))?;
            self.check_child(mtr.page(page), right, 0)?;
            next = self.sound(mtr, page, page::next_record(mtr.page(page), header::INFIMUM))?;
        }
        Ok(Some(Place { page, offset: next }))
    }

    /// Whether the leaf can take a new record of `size` bytes behind `position`.
    pub fn insert_fits(&self, mtr: &Mtr<'_>, position: &ChangePosition, size: usize) -> bool {
        let page = mtr.page(position.place.page);
        let room = header::max_insert_reorganized(page, 1);
        if size > self.max_record_size() || room < size {
            return false;
        }
        let contiguous = header::max_insert(page, 1) >= size;
        let n_recs = header::n_recs(page);
        // A reorganisation that gains little would soon be followed by the next one.
        if !contiguous && room < self.page_size() / 32 && n_recs > 1 {
            return false;
        }
        let keeps_reserve = room >= size + self.page_size() / 16;
        keeps_reserve || !self.def.clustered || n_recs < 2 || !is_sequential(page, position.place.offset)
    }

    /// Inserts `record` behind `position` if it fits the leaf. `trx_id` goes into PAGE_MAX_TRX_ID of
    /// secondary leaves.
    ///
    /// # Errors
    /// A damaged page.
    pub fn insert_here(
        &self,
        mtr: &mut Mtr<'_>,
        position: &ChangePosition,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<Outcome, Interrupt> {
        if !self.insert_fits(mtr, position, record.size()) {
            return Ok(Outcome::NeedsStructureChange);
        }
        let Place { page, offset } = position.place;
        let inserted = self.insert_on_page(mtr, page, offset, record);
        let Some(offset) = self.sound(mtr, page, inserted)? else {
            return Ok(Outcome::NeedsStructureChange);
        };
        self.note_trx_id(mtr, page, trx_id);
        Ok(Outcome::Done(Place { page, offset }))
    }

    /// Inserts where there is room at all, reorganising the page if the room is not contiguous. `None`, with
    /// nothing changed, when there is not enough.
    pub(crate) fn insert_on_page(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageHandle,
        predecessor: usize,
        record: &mut RecordBuffer,
    ) -> Result<Option<usize>, Malformed> {
        let mut editor = MtrPage::new(mtr, page);
        if let Some(offset) = insert::insert_record(&mut editor, &self.def, predecessor, record)? {
            return Ok(Some(offset));
        }
        if header::max_insert_reorganized(editor.bytes(), 1) < record.size() {
            return Ok(None);
        }
        let (target, offset) = insert_reorganized(editor.bytes(), &self.def, predecessor, record)?;
        if offset.is_some() {
            image::write_image(&mut editor, &target);
        }
        Ok(offset)
    }

    /// Whether the leaf can take `record` instead of the one at `place`.
    pub fn update_fits(&self, mtr: &Mtr<'_>, place: Place, record: &RecordBuffer) -> bool {
        let page = mtr.page(place.page);
        let old = RecordRef::new(page, place.offset, &self.def);
        if same_shape(old, record) {
            return true;
        }
        let room = old.size() + header::max_insert_reorganized(page, 1);
        let worthwhile = room >= self.page_size() / 32 || header::n_recs(page) <= 1;
        record.size() <= self.max_record_size() && room >= record.size() && worthwhile
    }

    /// Replaces the record at `place` by `record`, which has the same key, if it fits. Of a record of the
    /// same shape only the bytes that differ are logged.
    ///
    /// # Errors
    /// A damaged page.
    pub fn update_here(
        &self,
        mtr: &mut Mtr<'_>,
        place: Place,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<Outcome, Interrupt> {
        if !self.update_fits(mtr, place, record) {
            return Ok(Outcome::NeedsStructureChange);
        }
        let replaced = self.replace_on_page(mtr, place, record);
        let Some(offset) = self.sound(mtr, place.page, replaced)? else {
            return Ok(Outcome::NeedsStructureChange);
        };
        self.note_trx_id(mtr, place.page, trx_id);
        Ok(Outcome::Done(Place { offset, ..place }))
    }

    /// Replaces the record at `place` by `record`, a copy of it in which some bytes have been overwritten.
    /// Only those are logged.
    ///
    /// # Panics
    /// When the copy is of a record with another place in its page.
    pub fn overwrite_here(&self, mtr: &mut Mtr<'_>, place: Place, record: &RecordBuffer) {
        let old = RecordRef::new(mtr.page(place.page), place.offset, &self.def);
        let start = place.offset - record.extra_size();
        assert_eq!(
            record.view(&self.def).heap_no(),
            old.heap_no(),
            "a record is overwritten by a copy of another one"
        );
        debug_assert_eq!(old.bounds(), (start, start + record.size()));
        image::write_range(&mut MtrPage::new(mtr, place.page), start, record.as_bytes());
    }

    /// Replaces a record where there is room at all; `None`, with nothing changed, when there is not.
    pub(crate) fn replace_on_page(
        &self,
        mtr: &mut Mtr<'_>,
        place: Place,
        record: &mut RecordBuffer,
    ) -> Result<Option<usize>, Malformed> {
        let page = mtr.page(place.page);
        let old = RecordRef::new(page, place.offset, &self.def);
        if same_shape(old, record) {
            let n_owned = record_header::n_owned(page, place.offset);
            let (start, _) = old.bounds();
            let next = record_header::next_bytes(place.offset, record_header::next(page, place.offset));
            record.place(n_owned, old.heap_no(), next);
            image::write_range(&mut MtrPage::new(mtr, place.page), start, record.as_bytes());
            return Ok(Some(place.offset));
        }
        if old.size() + header::max_insert_reorganized(page, 1) < record.size() {
            return Ok(None);
        }
        let predecessor = page::previous_record(page, place.offset)?;
        let number = ordinal(page, predecessor)?;
        let mut editor = MtrPage::new(mtr, place.page);
        // Known before the first change: without the old record there is room, at the latest after a
        // reorganisation.
        let mut target = editor.bytes().to_vec();
        delete::delete_record(&mut target, &self.def, place.offset)?;
        if insert::insert_record(&mut target, &self.def, predecessor, record)?.is_none() {
            let (reorganized, offset) = insert_reorganized(&target, &self.def, predecessor, record)?;
            if offset.is_none() {
                return Ok(None);
            }
            target = reorganized;
        }
        image::write_image(&mut editor, &target);
        nth(&target, number + 1).map(Some)
    }

    /// Sets or clears the delete mark.
    pub fn set_delete_mark(&self, mtr: &mut Mtr<'_>, place: Place, deleted: bool, trx_id: u64) {
        let byte = mtr.page(place.page)[place.offset - 5];
        let flag = record_header::DELETED_FLAG;
        let new = if deleted { byte | flag } else { byte & !flag };
        if new != byte {
            mtr.write_u8(place.page, place.offset - 5, new);
        }
        self.note_trx_id(mtr, place.page, trx_id);
    }

    /// Overwrites `DB_TRX_ID` and `DB_ROLL_PTR` of a clustered leaf record, as one log record.
    pub fn set_system_fields(&self, mtr: &mut Mtr<'_>, place: Place, trx_id: u64, roll_ptr: u64) {
        let Some(field) = self.def.trx_id_field() else { return };
        let at = RecordRef::new(mtr.page(place.page), place.offset, &self.def).field_offset(field);
        debug_assert!(at + TRX_ID_SIZE + ROLL_PTR_SIZE <= mtr.page(place.page).len());
        mtr.write(place.page, at, &system_fields(trx_id, roll_ptr));
    }

    /// Whether the record can be removed without trying a merge.
    pub fn remove_fits(&self, mtr: &Mtr<'_>, place: Place) -> bool {
        let page = mtr.page(place.page);
        if mtr.page_id(place.page).page == self.root {
            return true;
        }
        let size = RecordRef::new(page, place.offset, &self.def).size();
        let alone = pagestore::page::previous(page) == pagestore::page::NULL_PAGE
            && pagestore::page::next(page) == pagestore::page::NULL_PAGE;
        let before = header::data_size(page);
        let merges = is_merge_due(page.len(), before, before.saturating_sub(size));
        header::n_recs(page) >= 2 && !merges && !alone
    }

    /// Removes the record at `place` if the page does not become underfull by it.
    ///
    /// # Errors
    /// A damaged page.
    pub fn remove_here(&self, mtr: &mut Mtr<'_>, place: Place) -> Result<Outcome, Interrupt> {
        if !self.remove_fits(mtr, place) {
            return Ok(Outcome::NeedsStructureChange);
        }
        let offset =
            self.sound(mtr, place.page, page::previous_record(mtr.page(place.page), place.offset))?;
        self.delete_on_page(mtr, place)?;
        Ok(Outcome::Done(Place { offset, ..place }))
    }

    pub(crate) fn delete_on_page(&self, mtr: &mut Mtr<'_>, place: Place) -> Result<(), Interrupt> {
        let deleted = delete::delete_record(&mut MtrPage::new(mtr, place.page), &self.def, place.offset);
        self.sound(mtr, place.page, deleted)
    }

    /// Raises PAGE_MAX_TRX_ID of a secondary leaf.
    pub(crate) fn note_trx_id(&self, mtr: &mut Mtr<'_>, page: PageHandle, trx_id: u64) {
        if !self.def.clustered && header::max_trx_id(mtr.page(page)) < trx_id {
            mtr.write_u64(page, header::MAX_TRX_ID, trx_id);
        }
    }
}

/// Whether an insert behind `predecessor` continues a run of ascending or descending inserts.
fn is_sequential(page: &[u8], predecessor: usize) -> bool {
    let last = header::last_insert(page);
    last != 0 && (last == predecessor || page::next_record(page, predecessor) == Ok(last))
}

/// Whether `record` takes exactly the bytes that `old` takes. NULLs and lengths may differ: they are
/// overwritten too.
fn same_shape(old: RecordRef<'_>, record: &RecordBuffer) -> bool {
    old.raw().is_some_and(|(bytes, extra)| bytes.len() == record.size() && extra == record.extra_size())
}
