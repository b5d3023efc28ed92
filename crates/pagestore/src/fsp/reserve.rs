//! Room reserved before a change: a split must not fail halfway because the tablespace or the disk is full.
//!
//! What may need extents asks for them first ([`reserve()`]), while nothing has changed: the *file* is made
//! long enough, which may wait or fail; taking that room in later cannot ([`super::extend`]). Some room has
//! to be left over ([`Reserve`]), and inserts must leave more than purge and rollback: on a full disk the
//! failed statement must still be taken back.

use super::context::Latched;
use super::extend::{Step, file_pages};
use super::layout;
use crate::{Interrupt, Mtr};

/// Pages a structure change may take in a tablespace that still lends single pages only.
pub(super) const PAGES_OF_A_CHANGE: u32 = 16;
/// The same for purge and rollback. Less, so that what the last insert left over is enough for them: when the
/// file system is full the failed statement must still be taken back.
const PAGES_OF_CLEANING: u32 = 8;
/// Extents by which the file is made longer in the background than was asked for.
const EXTENTS_AHEAD: u32 = 8;

/// What room is wanted for; decides how much has to be left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Inserts: leave 2 extents and 1 % of the tablespace.
    Normal,
    /// Undo logs: leave 1 extent and 0.5 %.
    Undo,
    /// Purge and rollback, which give space back in the end: leave nothing.
    Cleaning,
    /// A new tree's segments and root: single pages where the tablespace still lends no others, so that the
    /// file of a new table stays as small as it is; later as inserts.
    Tree,
    /// Off-page columns: leave the 2 extents that purge and rollback live on.
    OffPage,
}

impl Reserve {
    fn extents_left(self, size: u32, extent_pages: u32) -> u32 {
        let extents = size / extent_pages;
        match self {
            Reserve::Normal | Reserve::Tree => 2 + extents * 2 / 200,
            Reserve::Undo => 1 + extents / 200,
            Reserve::OffPage => 2,
            Reserve::Cleaning => 0,
        }
    }
}

/// Extents to [`reserve()`] before an insert that may split a tree of this height.
pub const fn extents_for_insert(height: u32) -> u32 {
    height / 16 + 3
}

/// Extents to [`reserve()`] before a delete that may merge pages of a tree of this height.
pub const fn extents_for_delete(height: u32) -> u32 {
    height / 32 + 1
}

/// Makes sure, before anything has changed, that this mini-transaction can get `extents` extents, by making
/// the file longer where it must be. Takes the space latch; what was found stays true until the
/// mini-transaction ends.
///
/// # Errors
/// [`Interrupt::Wait`] while the file is being extended; [`Error::NoSpace`](crate::Error::NoSpace) when it
/// cannot be.
pub fn reserve(mtr: &mut Mtr<'_>, space: u32, extents: u32, kind: Reserve) -> Result<(), Interrupt> {
    let mut space = Latched::new(mtr, space)?;
    let pages = space.pages_for(extents, kind, Step::Usual)?;
    if file_pages(space.mtr.store(), space.space)? < pages {
        let least = space.pages_for(extents, kind, Step::Least)?;
        space.ensure_file(pages, least)?;
    }
    if pages >= space.layout.extent_pages() {
        let ahead = space.pages_for(extents + EXTENTS_AHEAD, kind, Step::Usual)?;
        // Started, not waited for; should it fail, less may still do.
        space.mtr.store().extend_space_ahead(space.space, ahead);
    }
    Ok(())
}

impl Latched<'_, '_> {
    /// How long the file has to be to provide `extents` extents, when it grows in such steps.
    fn pages_for(&mut self, extents: u32, kind: Reserve, step: Step) -> Result<u32, Interrupt> {
        let extent_pages = self.layout.extent_pages();
        let size = self.size();
        if size < extent_pages {
            let first = self.extent(0)?;
            if kind == Reserve::Cleaning {
                return Ok((self.used_in(first) + PAGES_OF_CLEANING).max(size));
            }
            if kind == Reserve::Tree {
                // Its root, and a page of inodes where those there are have not two left.
                let wanted = self.used_in(first) + 1 + u32::from(!self.has_inodes_for_a_tree()?);
                return Ok(if wanted > extent_pages { 2 * extent_pages } else { wanted.max(size) });
            }
            let wanted = self.used_in(first) + PAGES_OF_A_CHANGE;
            // A segment takes whole extents once its fragment slots are full; before that single pages will
            // do.
            let whole_extents = wanted > self.layout.fragment_slots() as u32;
            return Ok(if whole_extents { 2 * extent_pages } else { wanted.max(size) });
        }
        let listed = self.list_len(self.header_at(layout::HEADER_FREE));
        // What gives space back takes single pages for what it may have to put above the leaves; leaves that
        // it puts back have been theirs before.
        if kind == Reserve::Cleaning && (listed >= extents || self.free_fragments() >= PAGES_OF_CLEANING) {
            return Ok(size);
        }
        let limit = self.free_limit();
        let mut size = size.max(file_pages(self.mtr.store(), self.space)?);
        loop {
            // One extent above the limit is not counted on, and neither are those that begin a stretch.
            let above = (size.saturating_sub(limit) / extent_pages).saturating_sub(1);
            let above = above - above / (self.layout.described_pages() / extent_pages);
            if listed + above > kind.extents_left(size, extent_pages) + extents {
                return Ok(size);
            }
            size = self.grown(size, step)?;
        }
    }

    /// Pages that are free in extents lent page by page.
    fn free_fragments(&self) -> u32 {
        let extents = self.list_len(self.header_at(layout::HEADER_FREE_FRAGMENT));
        let used = self.u32(self.header_at(layout::HEADER_FRAGMENTS_USED));
        (extents * self.layout.extent_pages()).saturating_sub(used)
    }
}
