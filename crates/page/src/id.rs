//! The address of a page: which tablespace, and which page of it.

use std::fmt;

/// Address of one page, shown as `space:page`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId {
    /// Tablespace number.
    pub space: u32,
    /// Page number inside the tablespace; the page lies at byte `page * page_size` of its file.
    pub page: u32,
}

impl PageId {
    /// The page `page` of the tablespace `space`.
    pub const fn new(space: u32, page: u32) -> PageId {
        PageId { space, page }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space, self.page)
    }
}
