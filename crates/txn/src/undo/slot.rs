//! The undo tablespace and its slots.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::PageId;
use pagestore::fsp::{self, Direction, Reserve, SegmentHeader};
use pagestore::page::{self, kind};
use pagestore::{PageRead, PageStore};
use parking_lot::Mutex;

use super::page::*;
use crate::error::{Error, Interrupt};
use crate::retry::retry;

/// Where the next log of a slot starts. `None`: the slot has no page yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    pub next_log: Option<Place>,
}

/// The undo tablespace.
pub(crate) struct UndoSpace {
    store: Arc<PageStore>,
    segment: SegmentHeader,
    slots: Vec<Mutex<Slot>>,
    /// Slots without an active transaction; the most recently used is taken first, its page is warm.
    free: Mutex<Vec<u16>>,
    /// Slots with many spare pages behind where the next log starts.
    to_trim: Mutex<Vec<u16>>,
    /// Pages allocated to slots.
    pub pages: AtomicU64,
}

/// How far ahead the bound on ids is kept.
pub(crate) const ID_MARGIN: u64 = 4096;

impl UndoSpace {
    /// Creates the tablespace file.
    pub async fn create(store: Arc<PageStore>, path: &Path) -> Result<UndoSpace, Error> {
        store.create_space(UNDO_SPACE, path, fsp::INITIAL_PAGES)?;
        let slots = slot_count(store.page_size().bytes());
        let segment = retry(|| {
            let mut mtr = store.mtr()?;
            fsp::create_space_pages(&mut mtr, UNDO_SPACE, fsp::INITIAL_PAGES)?;
            let segment = fsp::create_segment(&mut mtr, UNDO_SPACE)?;
            let directory = fsp::allocate_page(&mut mtr, segment, 0, Direction::None)?;
            assert_eq!(mtr.page_id(directory).page, DIRECTORY_PAGE, "the first page of a new tablespace");
            mtr.write_u16(directory, page::TYPE, kind::TRX_SYS);
            mtr.write(directory, DIRECTORY_MAGIC, MAGIC);
            mtr.write_u64(directory, DIRECTORY_BOUND, 1);
            mtr.write(directory, DIRECTORY_SEGMENT, &segment.to_bytes());
            mtr.write_u16(directory, DIRECTORY_SLOTS, slots as u16);
            mtr.fill(directory, DIRECTORY_SLOT_ARRAY, slots * DIRECTORY_SLOT_LEN, 0xFF);
            mtr.commit();
            Ok(segment)
        })
        .await?;
        store.flush_space(UNDO_SPACE).await?;
        Ok(UndoSpace::new(store, segment, slots))
    }

    /// Opens the tablespace (its file may be open already, for redo).
    pub async fn open(store: Arc<PageStore>, path: &Path) -> Result<UndoSpace, Error> {
        if store.space(UNDO_SPACE).is_none() {
            store.open_space(UNDO_SPACE, path)?;
        }
        let (segment, slots) = retry(|| {
            let directory = store.read(directory_id())?;
            if directory[DIRECTORY_MAGIC..DIRECTORY_MAGIC + 8] != MAGIC[..] {
                return Err(corrupt(DIRECTORY_PAGE, "this is not the directory of an undo tablespace").into());
            }
            let slots = usize::from(page::u16_at(&directory, DIRECTORY_SLOTS));
            if slots > slot_count(directory.len()) {
                return Err(corrupt(DIRECTORY_PAGE, "more slots than fit").into());
            }
            Ok((SegmentHeader::read(&directory, DIRECTORY_SEGMENT), slots))
        })
        .await?;
        Ok(UndoSpace::new(store, segment, slots))
    }

    /// A tablespace that is not looked at, with no slot to write to.
    pub fn unread(store: Arc<PageStore>) -> UndoSpace {
        UndoSpace::new(store, SegmentHeader { space: UNDO_SPACE, page: 0, offset: 0 }, 0)
    }

    fn new(store: Arc<PageStore>, segment: SegmentHeader, slots: usize) -> UndoSpace {
        UndoSpace {
            store,
            segment,
            slots: (0..slots).map(|_| Mutex::default()).collect(),
            free: Mutex::new((0..slots as u16).rev().collect()),
            to_trim: Mutex::default(),
            pages: AtomicU64::new(0),
        }
    }

    pub fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// First byte of an undo page that no record may reach.
    pub fn limit(&self) -> usize {
        limit(self.store.page_size().bytes())
    }

    /// Takes a slot for a transaction. `None`: all are taken.
    pub fn take(&self) -> Option<(u16, Slot)> {
        let number = self.free.lock().pop()?;
        Some((number, *self.slots[usize::from(number)].lock()))
    }

    /// Takes one particular slot (recovery).
    pub fn take_number(&self, number: u16) {
        self.free.lock().retain(|free| *free != number);
    }

    /// Gives a slot back; the next log starts at `next_log`.
    pub fn give_back(&self, number: u16, next_log: Option<Place>) {
        self.set(number, next_log);
        self.free.lock().push(number);
    }

    /// Sets where the next log of a slot starts.
    pub fn set(&self, number: u16, next_log: Option<Place>) {
        self.slots[usize::from(number)].lock().next_log = next_log;
    }

    /// The oldest log of each slot, as the directory says.
    pub fn heads(&self) -> Result<Vec<Place>, Interrupt> {
        let directory = self.store.read(directory_id())?;
        Ok((0..self.slots.len()).map(|slot| read_head(&directory, slot as u16)).collect())
    }

    /// The persistent bound on ids.
    pub fn bound(&self) -> Result<u64, Interrupt> {
        Ok(page::u64_at(&self.store.read(directory_id())?, DIRECTORY_BOUND))
    }

    /// Raises the persistent bound on ids. It holds for what is logged after it.
    pub fn raise_bound(&self, bound: u64) -> Result<(), Interrupt> {
        let mut mtr = self.store.mtr()?;
        let directory = mtr.x(directory_id())?;
        if page::u64_at(mtr.page(directory), DIRECTORY_BOUND) < bound {
            mtr.write_u64(directory, DIRECTORY_BOUND, bound);
        }
        mtr.commit();
        Ok(())
    }

    /// Allocates a page for a slot, behind `last` or as the slot's first one.
    pub fn add_page(&self, slot: u16, last: Option<&pagestore::Pin>, owner: u64) -> Result<u32, Interrupt> {
        let mut mtr = self.store.mtr()?;
        let directory = if last.is_none() { Some(mtr.x(directory_id())?) } else { None };
        fsp::reserve(&mut mtr, UNDO_SPACE, 1, Reserve::Undo)?;
        let hint = last.map_or(0, |pin| pin.page_id().page + 1);
        let new = fsp::allocate_page(&mut mtr, self.segment, hint, Direction::Up)?;
        let number = mtr.page_id(new).page;
        mtr.write_u16(new, page::TYPE, kind::UNDO_LOG);
        mtr.write_u64(new, OWNER, owner);
        mtr.write_u16(new, FREE, RECORDS as u16);
        mtr.write_u16(new, SLOT, slot);
        if let Some(pin) = last {
            mtr.write_u32(new, page::PREVIOUS, pin.page_id().page);
            let last = mtr.x_pin(pin.clone());
            mtr.write_u32(last, page::NEXT, number);
        }
        if let Some(directory) = directory {
            write_head(&mut mtr, directory, slot, Place::start_of(number));
        }
        mtr.commit();
        self.pages.fetch_add(1, Ordering::Relaxed);
        Ok(number)
    }

    /// Purge has done with everything of the slot before `head`: remembers that and frees one page before it, if there is one. True when
    /// there is none left.
    ///
    /// After each step the directory names a place where a log begins, because a restart walks the slot from there. A page in
    /// the middle of a log is no such place: those are taken out of the chain one by one, behind the page that the directory names,
    /// whose oldest log header then says that everything up to `head` is purged.
    pub fn advance_head(&self, slot: u16, head: Place) -> Result<bool, Interrupt> {
        let mut mtr = self.store.mtr()?;
        let directory = mtr.x(directory_id())?;
        let oldest = read_head(mtr.page(directory), slot);
        if oldest.page == head.page {
            write_head(&mut mtr, directory, slot, head);
            mtr.commit();
            return Ok(true);
        }
        let next = self.page_behind(oldest.page)?;
        if next == head.page || self.begins_with_a_log(next)? {
            fsp::prepare_free(&mut mtr, self.segment, oldest.page)?;
            let freed = mtr.x(undo_id(oldest.page))?;
            fsp::free_page(&mut mtr, self.segment, freed)?;
            write_head(
                &mut mtr,
                directory,
                slot,
                if next == head.page { head } else { Place::start_of(next) },
            );
        } else {
            let behind = self.page_behind(next)?;
            fsp::prepare_free(&mut mtr, self.segment, next)?;
            let first = mtr.x(undo_id(oldest.page))?;
            let freed = mtr.x(undo_id(next))?;
            if !has_header(mtr.page(first), oldest) {
                return Err(corrupt(oldest.page, "the directory does not name an undo log header").into());
            }
            mtr.write(first, usize::from(oldest.offset) + LOG_END, &purged_mark(head));
            mtr.write_u32(first, page::NEXT, behind);
            fsp::free_page(&mut mtr, self.segment, freed)?;
        }
        mtr.commit();
        self.pages.fetch_sub(1, Ordering::Relaxed);
        Ok(next == head.page)
    }

    /// The page behind one that comes before the oldest log that is not purged.
    fn page_behind(&self, number: u32) -> Result<u32, Interrupt> {
        match page::next(&self.read_page(number)?) {
            page::NULL_PAGE => {
                Err(corrupt(number, "the chain of the slot ends before its oldest log").into())
            }
            next => Ok(next),
        }
    }

    fn begins_with_a_log(&self, number: u32) -> Result<bool, Interrupt> {
        let page = self.read_page(number)?;
        Ok(owner_of(&page) == 0 && has_header(&page, Place::start_of(number)))
    }

    /// A slot was given back with many spare pages (a large transaction that only inserted, or was rolled back).
    pub fn note_spare_pages(&self, slot: u16) {
        let mut to_trim = self.to_trim.lock();
        if !to_trim.contains(&slot) {
            to_trim.push(slot);
        }
    }

    /// Frees the spare pages of slots that are not in use.
    pub async fn trim(&self) -> Result<(), Error> {
        let slots = std::mem::take(&mut *self.to_trim.lock());
        for slot in slots {
            let taken = {
                let mut free = self.free.lock();
                let before = free.len();
                free.retain(|other| *other != slot);
                free.len() < before
            };
            if !taken {
                self.note_spare_pages(slot);
                continue;
            }
            let next_log = self.slots[usize::from(slot)].lock().next_log;
            let mut result = Ok(true);
            if let Some(place) = next_log {
                while matches!(result, Ok(true)) {
                    result = retry(|| self.trim_after(place.page)).await.map(|done| !done);
                }
            }
            self.give_back(slot, next_log);
            result?;
        }
        Ok(())
    }

    /// Frees the page behind `last`, if there is one; it must be a spare one. True when there is none left.
    fn trim_after(&self, last: u32) -> Result<bool, Interrupt> {
        let spare = page::next(&self.read_page(last)?);
        if spare == page::NULL_PAGE {
            return Ok(true);
        }
        let mut mtr = self.store.mtr()?;
        fsp::prepare_free(&mut mtr, self.segment, spare)?;
        let last = mtr.x(undo_id(last))?;
        let freed = mtr.x(undo_id(spare))?;
        let next = page::next(mtr.page(freed));
        fsp::free_page(&mut mtr, self.segment, freed)?;
        mtr.write_u32(last, page::NEXT, next);
        mtr.commit();
        self.pages.fetch_sub(1, Ordering::Relaxed);
        Ok(next == page::NULL_PAGE)
    }

    /// Reads an undo page, checking that it is one.
    pub fn read_page(&self, number: u32) -> Result<PageRead, Interrupt> {
        let read = self.store.read(undo_id(number))?;
        if page::page_type(&read) != kind::UNDO_LOG {
            return Err(corrupt(number, "this is not an undo page").into());
        }
        Ok(read)
    }
}

/// A page of the undo tablespace.
pub(crate) fn undo_id(page: u32) -> PageId {
    PageId { space: UNDO_SPACE, page }
}

fn directory_id() -> PageId {
    undo_id(DIRECTORY_PAGE)
}

fn slot_offset(slot: u16) -> usize {
    DIRECTORY_SLOT_ARRAY + usize::from(slot) * DIRECTORY_SLOT_LEN
}

fn slot_count(page_size: usize) -> usize {
    ((page_size - DIRECTORY_SLOT_ARRAY - page::TRAILER_LEN) / DIRECTORY_SLOT_LEN).min(SLOTS_MAX)
}

fn read_head(directory: &[u8], slot: u16) -> Place {
    let at = slot_offset(slot);
    Place { page: page::u32_at(directory, at), offset: page::u16_at(directory, at + 4) }
}

fn write_head(mtr: &mut pagestore::Mtr<'_>, directory: pagestore::PageHandle, slot: u16, head: Place) {
    let mut bytes = [0; 6];
    bytes[..4].copy_from_slice(&head.page.to_be_bytes());
    bytes[4..].copy_from_slice(&head.offset.to_be_bytes());
    mtr.write(directory, slot_offset(slot), &bytes);
}

/// A damaged undo page.
pub(crate) fn corrupt(page: u32, why: &str) -> Error {
    Error::UndoCorrupt { page: undo_id(page), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::UndoLog;
    use super::super::log::CommittedLog;
    use super::super::recovery::find_logs;
    use super::*;
    use disk::{Environment, SimulatedEnvironment};
    use pagestore::PageSize;

    /// Bytes of a record.
    const RECORD: usize = 900;

    async fn write_log(space: &UndoSpace, trx_id: u64, records: usize) -> CommittedLog {
        let (slot, state) = space.take().unwrap();
        let mut log = UndoLog::new(slot, state, trx_id);
        for _ in 0..records {
            retry(|| {
                log.make_room(space, RECORD)?;
                let mut mtr = space.store().mtr()?;
                let page = log.latch(&mut mtr).unwrap();
                log.append(&mut mtr, page, &[7; RECORD], false);
                mtr.commit();
                Ok(())
            })
            .await
            .unwrap();
        }
        let committed = retry(|| log.commit(space, trx_id + 1)).await.unwrap().unwrap();
        space.give_back(slot, log.end());
        committed
    }

    /// A crash may come between any two of the steps.
    #[test]
    fn after_each_step_of_freeing_pages_the_logs_that_are_left_are_found() {
        let env = SimulatedEnvironment::new(1);
        let dynamic: Arc<dyn Environment> = env.clone();
        let data = Path::new("/data");
        dynamic.storage().create_dir_all(data).unwrap();
        let settings = redo::Options { capacity: 16 << 20, ..redo::Options::default() };
        let redo = redo::RedoLog::create(&dynamic, data, settings).unwrap();
        let page_size = PageSize::new(4096).unwrap();
        let options = pagestore::Options { pool_bytes: 4 << 20, page_size, ..pagestore::Options::default() };
        let writer = Arc::new(dblwr::DirectWriter::new(dynamic.clone()));
        let store = PageStore::open(dynamic, redo, options, writer).unwrap();
        env.run_until_complete(async {
            let space = UndoSpace::create(store, &data.join("undo_001")).await.unwrap();
            // Short ones and such that go on over many pages, in the one slot that is always taken again.
            let mut logs = Vec::new();
            for (number, records) in [1, 30, 1, 2, 9, 5, 3, 17, 1, 1].into_iter().enumerate() {
                logs.push(write_log(&space, 100 + number as u64, records).await);
            }
            assert!(logs.iter().all(|log| log.slot == logs[0].slot));
            // Several at once, and one at a time.
            let mut steps = 0;
            for purged in [3, 4, 5, 8, 9] {
                let head = logs[purged - 1].end;
                loop {
                    let over = retry(|| space.advance_head(logs[0].slot, head)).await.unwrap();
                    steps += 1;
                    let found = find_logs(&space).await.unwrap();
                    let left: Vec<_> = found.history.iter().map(|(_, log)| *log).collect();
                    assert!(left.ends_with(&logs[purged..]), "{left:?} after step {steps} to {head:?}");
                    assert!(found.unfinished.is_empty());
                    assert_eq!(found.pages, space.pages.load(Ordering::Relaxed));
                    if over {
                        assert_eq!(left, logs[purged..]);
                        break;
                    }
                }
            }
            assert!(steps > 15, "{steps} steps");
        });
    }
}
