//! The undo tablespace: its file, its slots, and the bound on transaction ids that it keeps.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pagestore::PageId;
use pagestore::fsp::{self, Direction, Reserve, SegmentHeader};
use pagestore::page::{self, kind};
use pagestore::{Mtr, PageHandle, PageRead, PageStore};
use parking_lot::{Mutex, RwLock};

use super::directory::{self, DIRECTORY_PAGE, HINT_PAGES, Layout, SLOTS_MAX};
use super::free_slots::FreeSlots;
use super::page::*;
use super::truncation::Truncation;
use crate::error::{Error, Interrupt};
use crate::retry::retry;

/// What is known of a slot without an active transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    /// Where the next log of the slot starts. `None`: it has no page yet.
    pub next_log: Option<Place>,
    /// Pages it got since the directory was given a hint.
    pub since_hint: u16,
}

/// Which hint the directory gets along with a new page of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// None.
    Keep,
    /// The new page, where a log will begin.
    NewPage,
    /// A log that goes on.
    Log(Place),
}

/// The undo tablespace.
pub(crate) struct UndoSpace {
    pub(super) store: Arc<PageStore>,
    pub(super) segment: SegmentHeader,
    pub(super) layout: Layout,
    /// The directory's pages, in order.
    pub(super) directory: RwLock<Vec<u32>>,
    /// Slots without an active transaction.
    pub free: FreeSlots,
    /// Slots with many spare pages after where the next log starts.
    pub(super) to_trim: Mutex<VecDeque<u16>>,
    /// Pages allocated to slots.
    pub pages: AtomicU64,
    /// Times that a transaction which goes on had its log cut back: it writes to the same places again.
    pub cut_back: AtomicU64,
    pub truncation: Truncation,
}

/// This part of the pool may be pinned by transactions at rest.
const PINNED_SHARE: usize = 16;

impl UndoSpace {
    /// Creates the tablespace file.
    pub async fn create(store: Arc<PageStore>, path: &Path) -> Result<UndoSpace, Error> {
        store.create_space(UNDO_SPACE, path, fsp::INITIAL_PAGES)?;
        let layout = Layout::of_page_size(store.page_size().bytes());
        let segment = retry(|| {
            let mut mtr = store.mtr()?;
            fsp::create_space_pages(&mut mtr, UNDO_SPACE, fsp::INITIAL_PAGES)?;
            let segment = fsp::create_segment(&mut mtr, UNDO_SPACE)?;
            let directory = fsp::allocate_page(&mut mtr, segment, 0, Direction::None)?;
            assert_eq!(mtr.page_id(directory).page, DIRECTORY_PAGE, "the first page of a new tablespace");
            layout.format(&mut mtr, directory, &segment.to_bytes());
            mtr.write_u64(directory, directory::BOUND, 1);
            mtr.commit();
            Ok(segment)
        })
        .await?;
        store.flush_space(UNDO_SPACE).await?;
        let space = UndoSpace::new(store, segment, layout, vec![DIRECTORY_PAGE]);
        space.free.add(space.slots_of(0).rev().map(|slot| (slot, Slot::default())));
        Ok(space)
    }

    /// Opens the tablespace (its file may be open already, for redo). No slot can be taken before they were
    /// looked at.
    pub async fn open(store: Arc<PageStore>, path: &Path) -> Result<UndoSpace, Error> {
        if store.space(UNDO_SPACE).is_none() {
            store.open_space(UNDO_SPACE, path)?;
        }
        let mut pages = vec![DIRECTORY_PAGE];
        let (segment, layout, mut next) = retry(|| {
            let first = store.read(undo_id(DIRECTORY_PAGE))?;
            let layout = Layout::read(DIRECTORY_PAGE, &first)?;
            Ok((SegmentHeader::read(&first, directory::SEGMENT), layout, directory::next(&first)))
        })
        .await?;
        while let Some(number) = next {
            if pages.len() * layout.slots_per_page >= SLOTS_MAX {
                return Err(corrupt(number, "the directory of the undo tablespace does not end"));
            }
            next = retry(|| {
                let page = store.read(undo_id(number))?;
                if Layout::read(number, &page)? != layout {
                    return Err(corrupt(number, "the directory's pages do not have the same form").into());
                }
                Ok(directory::next(&page))
            })
            .await?;
            pages.push(number);
        }
        Ok(UndoSpace::new(store, segment, layout, pages))
    }

    /// Makes a directory of an earlier version one of this.
    pub async fn upgrade(&self) -> Result<(), Error> {
        retry(|| {
            let mut mtr = self.store.mtr()?;
            let first = mtr.x(undo_id(DIRECTORY_PAGE))?;
            if directory::is_old(mtr.page(first)) {
                mtr.write(first, directory::MAGIC_AT, directory::MAGIC);
                directory::write_next(&mut mtr, first, 0);
                for slot in self.slots_of(0) {
                    self.layout.write_hint(&mut mtr, first, slot, None);
                }
            }
            mtr.commit();
            Ok(())
        })
        .await
    }

    /// A tablespace that is not looked at, with no slot to write to.
    pub fn unread(store: Arc<PageStore>) -> UndoSpace {
        let segment = SegmentHeader { space: UNDO_SPACE, page: 0, offset: 0 };
        let layout = Layout::of_page_size(store.page_size().bytes());
        UndoSpace::new(store, segment, layout, Vec::new())
    }

    fn new(store: Arc<PageStore>, segment: SegmentHeader, layout: Layout, directory: Vec<u32>) -> UndoSpace {
        UndoSpace {
            store,
            segment,
            layout,
            directory: RwLock::new(directory),
            free: FreeSlots::default(),
            to_trim: Mutex::default(),
            pages: AtomicU64::new(0),
            cut_back: AtomicU64::new(0),
            truncation: Truncation::default(),
        }
    }

    pub fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    /// First byte of an undo page that no record may reach.
    pub fn limit(&self) -> usize {
        limit(self.store.page_size().bytes())
    }

    /// The slots of one directory page.
    fn slots_of(&self, page: usize) -> impl DoubleEndedIterator<Item = u16> + use<> {
        let first = page * self.layout.slots_per_page;
        (first..(first + self.layout.slots_per_page).min(SLOTS_MAX)).map(|slot| slot as u16)
    }

    /// Takes a slot for a transaction; the directory grows when there is none. `None`: as many as there can
    /// be are taken.
    pub async fn take(&self, home: u16) -> Result<Option<(u16, Slot)>, Error> {
        loop {
            if let Some(taken) = self.free.take(home) {
                return Ok(Some(taken));
            }
            if let Some(taken) = self.take_set_aside() {
                return Ok(Some(taken));
            }
            if !retry(|| self.add_directory_page()).await? {
                return Ok(None);
            }
        }
    }

    /// Adds a page of slots. False: there are as many as can be.
    fn add_directory_page(&self) -> Result<bool, Interrupt> {
        let (count, last) = {
            let pages = self.directory.read();
            match pages.last() {
                Some(last) if pages.len() * self.layout.slots_per_page < SLOTS_MAX => (pages.len(), *last),
                _ => return Ok(false),
            }
        };
        let mut mtr = self.store.mtr()?;
        let last = mtr.x(undo_id(last))?;
        if self.directory.read().len() != count {
            // Somebody else was as short of slots.
            return Ok(true);
        }
        fsp::reserve(&mut mtr, UNDO_SPACE, 1, Reserve::Undo)?;
        // As far in front as can be: it stays, and a file is cut after what stays.
        let new = match fsp::allocate_page_below(&mut mtr, self.segment, u32::MAX)? {
            Some(new) => new,
            None => fsp::allocate_page(&mut mtr, self.segment, 0, Direction::None)?,
        };
        let number = mtr.page_id(new).page;
        self.layout.format(&mut mtr, new, &self.segment.to_bytes());
        directory::write_next(&mut mtr, last, number);
        // Known before the latch goes, so that nobody else adds one after the same page.
        self.directory.write().push(number);
        mtr.commit();
        self.free.add(self.slots_of(count).rev().map(|slot| (slot, Slot::default())));
        Ok(true)
    }

    /// What each slot's directory entry says: the oldest log, and the hint at the newest.
    pub async fn entries(&self) -> Result<Vec<(u16, Place, Option<Place>)>, Error> {
        let pages = self.directory.read().clone();
        let mut entries = Vec::new();
        for (number, page) in pages.into_iter().enumerate() {
            let read = || {
                let directory = self.store.read(undo_id(page))?;
                let entry =
                    |slot| (slot, self.layout.head(&directory, slot), self.layout.hint(&directory, slot));
                Ok(self.slots_of(number).map(entry).collect::<Vec<_>>())
            };
            entries.extend(retry(read).await?);
        }
        Ok(entries)
    }

    /// Pages of the undo segment that belong to slots.
    pub async fn count_pages(&self) -> Result<u64, Error> {
        let usage = retry(|| Ok(fsp::segment_usage(&self.store, self.segment)?)).await?;
        Ok(usage.used.saturating_sub(self.directory.read().len() as u64))
    }

    /// The persistent bound on ids.
    pub fn bound(&self) -> Result<u64, Interrupt> {
        Ok(page::u64_at(&self.store.read(undo_id(DIRECTORY_PAGE))?, directory::BOUND))
    }

    /// Raises the persistent bound on ids. It holds for what is logged after it.
    pub fn raise_bound(&self, bound: u64) -> Result<(), Interrupt> {
        let mut mtr = self.store.mtr()?;
        let directory = mtr.x(undo_id(DIRECTORY_PAGE))?;
        if page::u64_at(mtr.page(directory), directory::BOUND) < bound {
            mtr.write_u64(directory, directory::BOUND, bound);
        }
        mtr.commit();
        Ok(())
    }

    /// X-latches the directory page of a slot.
    pub(super) fn latch_directory(&self, mtr: &mut Mtr<'_>, slot: u16) -> Result<PageHandle, Interrupt> {
        let page = self.directory.read()[self.layout.page_of(slot)];
        Ok(mtr.x(undo_id(page))?)
    }

    /// Allocates a page for a slot, after `last` or as the slot's first one.
    pub fn add_page(
        &self,
        slot: u16,
        last: Option<&pagestore::Pin>,
        owner: u64,
        hint: Hint,
    ) -> Result<u32, Interrupt> {
        let mut mtr = self.store.mtr()?;
        let directory = match (last, hint) {
            (Some(_), Hint::Keep) => None,
            _ => Some(self.latch_directory(&mut mtr, slot)?),
        };
        fsp::reserve(&mut mtr, UNDO_SPACE, 1, Reserve::Undo)?;
        let near = last.map_or(0, |pin| pin.page_id().page + 1);
        let new = self.allocate(&mut mtr, near, Direction::Up)?;
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
            let layout = self.layout;
            if last.is_none() {
                layout.write_head(&mut mtr, directory, slot, Place::start_of(number));
            }
            match hint {
                Hint::Keep => {}
                Hint::NewPage => {
                    layout.write_hint(&mut mtr, directory, slot, Some(Place::start_of(number)));
                }
                Hint::Log(place) => layout.write_hint(&mut mtr, directory, slot, Some(place)),
            }
        }
        mtr.commit();
        self.pages.fetch_add(1, Ordering::Relaxed);
        Ok(number)
    }

    /// Whether a transaction with this slot may keep its undo page pinned between two changes. Low slots are
    /// taken first: so however many transactions there are, most of the pool stays for pages that are looked
    /// for.
    pub fn may_keep_pin(&self, slot: u16) -> bool {
        usize::from(slot) < self.store.frame_count() / PINNED_SHARE
    }

    /// Whether a slot that got this number of pages since its last hint needs one.
    pub fn wants_hint(&self, since_hint: u16) -> bool {
        self.layout.has_hints && since_hint >= HINT_PAGES
    }

    /// Purge has done with everything of the slot before `head`: remembers that and frees one page before it,
    /// if there is one. True when there is none left.
    ///
    /// After each step the directory names a place where a log begins, because a restart walks the slot from
    /// there. A page in the middle of a log is no such place: those are taken out of the chain one by one,
    /// after the page that the directory names, whose oldest log header then says that everything up to
    /// `head` is purged.
    pub fn advance_head(&self, slot: u16, head: Place) -> Result<bool, Interrupt> {
        let mut mtr = self.store.mtr()?;
        let layout = self.layout;
        let directory = self.latch_directory(&mut mtr, slot)?;
        let oldest = layout.head(mtr.page(directory), slot);
        if oldest.page == head.page {
            layout.write_head(&mut mtr, directory, slot, head);
            mtr.commit();
            return Ok(true);
        }
        let next = self.page_after(slot, oldest.page)?;
        if next == head.page || self.begins_with_a_log(next)? {
            fsp::prepare_free(&mut mtr, self.segment, oldest.page)?;
            let freed = mtr.x(undo_id(oldest.page))?;
            fsp::free_page(&mut mtr, self.segment, freed)?;
            let oldest_left = if next == head.page { head } else { Place::start_of(next) };
            layout.write_head(&mut mtr, directory, slot, oldest_left);
            layout.forget_hint(&mut mtr, directory, slot, oldest.page);
        } else {
            let after = self.page_after(slot, next)?;
            fsp::prepare_free(&mut mtr, self.segment, next)?;
            let first = mtr.x(undo_id(oldest.page))?;
            let freed = mtr.x(undo_id(next))?;
            if !has_header(mtr.page(first), oldest) {
                return Err(corrupt(oldest.page, "the directory does not name an undo log header").into());
            }
            mtr.write(first, usize::from(oldest.offset) + LOG_END, &purged_mark(head));
            mtr.write_u32(first, page::NEXT, after);
            fsp::free_page(&mut mtr, self.segment, freed)?;
            layout.forget_hint(&mut mtr, directory, slot, next);
        }
        mtr.commit();
        self.pages.fetch_sub(1, Ordering::Relaxed);
        Ok(next == head.page)
    }

    /// The page after one of this slot that comes before the oldest log that is not purged.
    fn page_after(&self, slot: u16, number: u32) -> Result<u32, Interrupt> {
        let page = self.read_page(number)?;
        if slot_of(&page) != slot {
            return Err(corrupt(number, "the chain of a slot leads to a page of another one").into());
        }
        match page::next(&page) {
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

    /// Whether a log of this slot begins there. A page where one did may have become the middle of another
    /// one, or empty.
    pub fn has_log_at(&self, slot: u16, at: Place) -> Result<bool, Interrupt> {
        let page = self.read_page(at.page)?;
        let goes_on = at == Place::start_of(at.page) && owner_of(&page) != 0;
        Ok(slot_of(&page) == slot && !goes_on && has_header(&page, at))
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

/// A damaged undo page.
pub(crate) fn corrupt(page: u32, why: &str) -> Error {
    Error::UndoCorrupt { page: undo_id(page), why: why.to_owned() }
}
