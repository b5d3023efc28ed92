//! A tablespace under its space latch: the X latch of page 0, and typed access to the structure pages behind
//! it.

use page::{PageId, kind};

use super::extent::Extent;
use super::layout::{self, Layout};
use crate::{Error, Interrupt, Mtr, PageHandle};

/// A place in a latched page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub page: PageHandle,
    pub offset: usize,
}

impl Place {
    /// The place `distance` bytes further on.
    pub fn plus(self, distance: usize) -> Self {
        Self { page: self.page, offset: self.offset + distance }
    }
}

/// A tablespace whose page 0 this mini-transaction holds X-latched.
pub(super) struct Latched<'m, 's> {
    pub mtr: &'m mut Mtr<'s>,
    pub space: u32,
    pub layout: Layout,
    pub header: PageHandle,
}

impl<'m, 's> Latched<'m, 's> {
    /// Takes the space latch.
    pub fn new(mtr: &'m mut Mtr<'s>, space: u32) -> Result<Self, Interrupt> {
        let header = mtr.x(PageId { space, page: 0 })?;
        let layout = Layout::new(mtr.store().page_size());
        let latched = Self { mtr, space, layout, header };
        let bytes = latched.mtr.page(header);
        if page::page_type(bytes) != kind::FSP_HDR {
            return Err(
                latched.corrupt(0, format!("page type {} instead of 8 (FSP_HDR)", page::page_type(bytes)))
            );
        }
        let flags = page::u32_at(bytes, layout::HEADER_FLAGS);
        match Layout::from_flags(flags) {
            Ok(found) if found == layout => Ok(latched),
            Ok(found) => Err(latched.corrupt(
                0,
                format!(
                    "flags {flags:#x} mean pages of {} bytes, not {}",
                    found.page_size(),
                    layout.page_size()
                ),
            )),
            Err(error) => Err(latched.corrupt(0, error.to_string())),
        }
    }

    /// A damaged structure page.
    pub fn corrupt(&self, page: u32, why: impl Into<String>) -> Interrupt {
        let file = self.mtr.store().space(self.space).map(|info| info.path).unwrap_or_default();
        Error::Corrupt { file, page: PageId { space: self.space, page }, why: why.into() }.into()
    }

    /// Identity of a page of this tablespace.
    pub fn id(&self, page: u32) -> PageId {
        PageId { space: self.space, page }
    }

    /// X-latches a structure page.
    pub fn latch(&mut self, page: u32) -> Result<PageHandle, Interrupt> {
        if page >= self.size() {
            return Err(self
                .corrupt(0, format!("refers to page {page}, but the tablespace has {} pages", self.size())));
        }
        self.mtr.x(self.id(page))
    }

    /// A place on page 0.
    pub fn header_at(&self, offset: usize) -> Place {
        Place { page: self.header, offset }
    }

    pub fn u32(&self, place: Place) -> u32 {
        page::u32_at(self.mtr.page(place.page), place.offset)
    }

    pub fn u64(&self, place: Place) -> u64 {
        page::u64_at(self.mtr.page(place.page), place.offset)
    }

    pub fn set_u32(&mut self, place: Place, value: u32) {
        self.mtr.write_u32(place.page, place.offset, value);
    }

    /// Number of the page a handle stands for.
    pub fn page_number(&self, handle: PageHandle) -> u32 {
        self.mtr.page_id(handle).page
    }

    /// Pages of the tablespace.
    pub fn size(&self) -> u32 {
        self.u32(self.header_at(layout::HEADER_SIZE))
    }

    /// First page without an initialised descriptor.
    pub fn free_limit(&self) -> u32 {
        self.u32(self.header_at(layout::HEADER_FREE_LIMIT))
    }

    /// Changes FRAG_N_USED.
    pub fn add_fragments_used(&mut self, change: i64) -> Result<(), Interrupt> {
        self.add(self.header_at(layout::HEADER_FRAGMENTS_USED), change, "FRAG_N_USED")
    }

    /// Changes a page count by `change`.
    pub fn add(&mut self, place: Place, change: i64, name: &str) -> Result<(), Interrupt> {
        let old = self.u32(place);
        let Ok(new) = u32::try_from(i64::from(old) + change) else {
            let page = self.page_number(place.page);
            return Err(self.corrupt(page, format!("{name} is {old} and cannot change by {change}")));
        };
        self.set_u32(place, new);
        Ok(())
    }

    /// Descriptor of the extent of `page`.
    pub fn extent(&mut self, page: u32) -> Result<Extent, Interrupt> {
        if page >= self.free_limit() {
            let limit = self.free_limit();
            return Err(
                self.corrupt(0, format!("page {page} is in use, but descriptors end at page {limit}"))
            );
        }
        let handle = self.latch(self.layout.descriptor_page(page))?;
        Ok(Extent {
            place: Place { page: handle, offset: self.layout.descriptor_offset(page) },
            first: self.layout.extent_start(page),
        })
    }

    /// Makes a new page of this tablespace; see [`create_page`].
    pub fn create(&mut self, number: u32, kind: u16) -> Result<PageHandle, Interrupt> {
        create_page(self.mtr, self.id(number), kind)
    }
}

/// Does `work` under the space latch. A failure after the first change (damage found late, a disk full that
/// nobody reserved against) leaves the mini-transaction without a way out, which it has to know.
pub(super) fn under_latch<'m, 's, T>(
    mtr: &'m mut Mtr<'s>,
    space: u32,
    work: impl FnOnce(&mut Latched<'m, 's>) -> Result<T, Interrupt>,
) -> Result<T, Interrupt> {
    let mut space = Latched::new(mtr, space)?;
    let outcome = work(&mut space);
    if outcome.is_err() && space.mtr.has_changes() {
        space.mtr.note_failure();
    }
    outcome
}

/// Makes a new page: zero but for its number and space id (as [`Mtr::create`] leaves it), neighbours (none)
/// and type.
pub(super) fn create_page(mtr: &mut Mtr<'_>, id: PageId, kind: u16) -> Result<PageHandle, Interrupt> {
    let handle = mtr.create(id)?;
    mtr.fill(handle, page::PREVIOUS, page::LSN - page::PREVIOUS, 0xFF);
    if kind != page::kind::ALLOCATED {
        mtr.write_u16(handle, page::TYPE, kind);
    }
    Ok(handle)
}
