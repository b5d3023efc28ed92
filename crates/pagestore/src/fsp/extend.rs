//! How a tablespace begins and how it is extended.
//!
//! SIZE in the header is what the tablespace has; the file may be longer, never shorter. So a change that may
//! need room first makes the *file* long enough ([`super::reserve()`], nothing logged, waits allowed); taking
//! that room in later is a change of SIZE that cannot fail. When the disk cannot make the file longer:
//! [`crate::space::growth`].
//!
//! Rules of InnoDB: below one extent the file grows page by page; from there by one extent up to 32 extents,
//! then by four, or by what is wanted where the disk has no room for four. From one extent on its size is a
//! whole number of extents (servers round it down when they open the file). Descriptors are initialised in
//! steps of up to four extents, up to FREE_LIMIT.

use super::context::{Latched, under_latch};
use super::extent::State;
use super::reserve::PAGES_OF_A_CHANGE;
use super::{INITIAL_PAGES, Layout, layout, list};
use crate::{Error, Interrupt, Mtr, PageStore};
use page::kind;

/// Extents whose descriptors are initialised in one go.
const EXTENTS_AT_A_TIME: u32 = 4;
/// Below this many extents the file grows by one of them.
const SMALL_EXTENTS: u32 = 32;

/// By how much a tablespace grows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// By what is best.
    Usual,
    /// By no more than it must.
    Least,
}

/// Writes the structure of an empty tablespace into a file of `pages` zero pages (at least 3, usually
/// [`INITIAL_PAGES`]).
///
/// # Errors
/// [`Interrupt`] from the page store.
pub fn create_space_pages(mtr: &mut Mtr<'_>, space: u32, pages: u32) -> Result<(), Interrupt> {
    let structure = Layout::new(mtr.store().page_size());
    assert!(
        pages >= 3,
        "a tablespace has at least a header, a bitmap and an inode page, so {pages} pages are too few"
    );
    debug_assert!(INITIAL_PAGES < structure.extent_pages());
    let header = super::context::create_page(mtr, page::PageId { space, page: 0 }, kind::FSP_HDR)?;
    mtr.space_size(space, pages);

    let mut bytes = [0; layout::EXTENTS - layout::HEADER];
    let mut put =
        |at: usize, value: &[u8]| bytes[at - layout::HEADER..][..value.len()].copy_from_slice(value);
    put(layout::HEADER_SPACE_ID, &space.to_be_bytes());
    put(layout::HEADER_SIZE, &pages.to_be_bytes());
    put(layout::HEADER_FLAGS, &structure.flags().to_be_bytes());
    put(layout::HEADER_NEXT_SEGMENT_ID, &1u64.to_be_bytes());
    for base in [
        layout::HEADER_FREE,
        layout::HEADER_FREE_FRAGMENT,
        layout::HEADER_FULL_FRAGMENT,
        layout::HEADER_INODES_FULL,
        layout::HEADER_INODES_FREE,
    ] {
        put(base, &list::EMPTY_BASE);
    }
    mtr.write(header, layout::HEADER, &bytes);
    under_latch(mtr, space, Latched::describe_next_extent).map(drop)
}

/// Sets SIZE to what the file has (whole extents), for a file that is handed over, as FLUSH TABLES … FOR
/// EXPORT does: servers want both to agree.
///
/// # Errors
/// [`Interrupt`] from the page store.
pub fn adopt_file_size(mtr: &mut Mtr<'_>, space: u32) -> Result<(), Interrupt> {
    let mut space = Latched::new(mtr, space)?;
    let mut pages = file_pages(space.mtr.store(), space.space)?;
    if pages >= space.layout.extent_pages() {
        pages = space.layout.extent_start(pages);
    }
    if pages > space.size() { space.extend(pages) } else { Ok(()) }
}

/// Pages of the file, which may be more than the tablespace has.
pub(super) fn file_pages(store: &PageStore, space: u32) -> Result<u32, Error> {
    Ok(store.open_space_of(space)?.pages())
}

impl Latched<'_, '_> {
    /// The next size after `size` that is a whole number of extents.
    pub(super) fn grown(&self, size: u32, step: Step) -> Result<u32, Interrupt> {
        let extent_pages = self.layout.extent_pages();
        let step = match size / extent_pages {
            // The first extent is lent page by page; a free extent begins after it.
            0 => 2,
            extents if extents < SMALL_EXTENTS || step == Step::Least => 1,
            _ => EXTENTS_AT_A_TIME,
        };
        (size / extent_pages + step)
            .checked_mul(extent_pages)
            .ok_or_else(|| self.no_space("it has all pages a tablespace can have"))
    }

    /// The tablespace is full.
    pub fn no_space(&self, why: &str) -> Interrupt {
        let file = self.mtr.store().space(self.space).map(|info| info.path).unwrap_or_default();
        Error::NoSpace { file, why: why.to_owned() }.into()
    }

    /// Makes the file at least `least` pages long, and where the disk has room for it, `pages`. Waits only
    /// while nothing has changed; later it blocks.
    pub(super) fn ensure_file(&mut self, pages: u32, least: u32) -> Result<(), Interrupt> {
        let store = self.mtr.store();
        // Kept, as every wait is, until the retry has its answer.
        let mut waited = None;
        while file_pages(store, self.space)? < least {
            // A small file grows in larger steps than the tablespace in it, because each step is synced.
            let pages = if pages < self.layout.extent_pages() {
                pages.next_multiple_of(PAGES_OF_A_CHANGE)
            } else {
                pages
            };
            match store.extend_space_at_least(self.space, pages, least) {
                Err(Interrupt::Wait(wait)) if self.mtr.has_changes() => {
                    store.environment().block_until(wait.event());
                    waited = Some(wait);
                }
                Err(interrupt) => return Err(interrupt),
                Ok(()) => break,
            }
        }
        drop(waited);
        Ok(())
    }

    /// Gives the tablespace `pages` pages.
    pub fn extend(&mut self, pages: u32) -> Result<(), Interrupt> {
        debug_assert!(pages > self.size());
        self.ensure_file(pages, pages)?;
        self.mtr.space_size(self.space, pages);
        self.set_u32(self.header_at(layout::HEADER_SIZE), pages);
        Ok(())
    }

    /// Puts extents above FREE_LIMIT into the FREE list, growing the tablespace where it must or where it
    /// costs nothing.
    pub fn fill_free_list(&mut self) -> Result<(), Interrupt> {
        let extent_pages = self.layout.extent_pages();
        let mut added = 0;
        while added == 0 {
            let (size, limit) = (self.size(), self.free_limit());
            let room = size.saturating_sub(limit) / extent_pages;
            if room < EXTENTS_AT_A_TIME {
                let (least, usual) = (self.grown(size, Step::Least)?, self.grown(size, Step::Usual)?);
                if room == 0 {
                    self.ensure_file(usual, least)?;
                }
                // A file that was made longer beforehand is taken as it is, should it have less than a step:
                // it may not be possible to make it longer now, and something may have changed already.
                let has = self.layout.extent_start(file_pages(self.mtr.store(), self.space)?);
                let enough = if room == 0 { least } else { usual };
                if has >= enough {
                    self.extend(usual.min(has))?;
                }
            }
            while added < EXTENTS_AT_A_TIME && self.size().saturating_sub(self.free_limit()) >= extent_pages {
                added += u32::from(self.describe_next_extent()?);
            }
        }
        Ok(())
    }

    /// Initialises the descriptor of the extent at FREE_LIMIT. The extent goes to the FREE list (true), or,
    /// where a stretch of extents begins and its first two pages describe it, to FREE_FRAG (false).
    fn describe_next_extent(&mut self) -> Result<bool, Interrupt> {
        let first = self.free_limit();
        let begins_stretch = self.layout.begins_stretch(first);
        let end = first.checked_add(self.layout.extent_pages());
        let end = end.ok_or_else(|| self.no_space("it has all pages a tablespace can have"))?;
        if begins_stretch {
            if first > 0 {
                self.create(first, kind::XDES)?;
            }
            self.create(first + 1, kind::IBUF_BITMAP)?;
        }
        self.set_u32(self.header_at(layout::HEADER_FREE_LIMIT), end);
        let extent = self.extent(first)?;
        self.initialise_extent(extent);
        if begins_stretch {
            self.mark(extent, first, false)?;
            self.mark(extent, first + 1, false)?;
            self.set_state(extent, State::FreeFragment);
            self.push_last(self.header_at(layout::HEADER_FREE_FRAGMENT), self.extent_node(extent))?;
            self.add_fragments_used(2)?;
        } else {
            self.push_last(self.header_at(layout::HEADER_FREE), self.extent_node(extent))?;
        }
        Ok(!begins_stretch)
    }
}
