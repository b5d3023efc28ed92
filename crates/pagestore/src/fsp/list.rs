//! File lists: doubly linked lists whose nodes lie in pages (InnoDB's FLST).
//!
//! ```text
//! base (16 bytes)  +0 length   +4 first (page 4, offset 2)   +10 last (page 4, offset 2)
//! node (12 bytes)  +0 previous (page 4, offset 2)            +6  next (page 4, offset 2)
//! ```
//!
//! An address points to the node itself. "None" is page FFFFFFFF, offset 0. A change first latches both
//! neighbours, then writes.

use super::context::{Latched, Place};
use super::layout::{LIST_BASE_LEN, LIST_NODE_LEN};
use crate::Interrupt;
use page::NULL_PAGE;

/// Address of a list node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    pub page: u32,
    pub offset: u16,
}

impl Address {
    /// Length on disk.
    pub const LEN: usize = 6;
    /// No node.
    pub const NONE: Address = Address { page: NULL_PAGE, offset: 0 };

    pub fn read(bytes: &[u8], offset: usize) -> Self {
        Self { page: page::u32_at(bytes, offset), offset: page::u16_at(bytes, offset + 4) }
    }

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.page.to_be_bytes());
        bytes[4..].copy_from_slice(&self.offset.to_be_bytes());
        bytes
    }

    /// This address, unless it is none.
    pub fn some(self) -> Option<Self> {
        (self.page != NULL_PAGE).then_some(self)
    }
}

/// Offset of the first address in a base node, and of the last.
pub(super) const FIRST: usize = 4;
pub(super) const LAST: usize = 10;
/// Offset of the previous address in a node, and of the next.
pub(super) const PREVIOUS: usize = 0;
pub(super) const NEXT: usize = 6;

/// Bytes of an empty list's base node.
pub(super) const EMPTY_BASE: [u8; LIST_BASE_LEN] =
    [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 255, 255, 255, 255, 0, 0];

impl Latched<'_, '_> {
    /// Length of a list.
    pub fn list_len(&self, base: Place) -> u32 {
        self.u32(base)
    }

    /// First node of a list.
    pub fn list_first(&self, base: Place) -> Option<Address> {
        self.address(base.plus(FIRST)).some()
    }

    /// Last node of a list.
    pub fn list_last(&self, base: Place) -> Option<Address> {
        self.address(base.plus(LAST)).some()
    }

    pub fn address(&self, place: Place) -> Address {
        Address::read(self.mtr.page(place.page), place.offset)
    }

    /// Latches the page of a node.
    pub fn node(&mut self, address: Address) -> Result<Place, Interrupt> {
        let offset = usize::from(address.offset);
        if offset < page::HEADER_LEN || offset + LIST_NODE_LEN > self.layout.page_end() {
            return Err(
                self.corrupt(address.page, format!("a list leads to offset {offset}, where no node can be"))
            );
        }
        Ok(Place { page: self.latch(address.page)?, offset })
    }

    fn node_if(&mut self, address: Address) -> Result<Option<Place>, Interrupt> {
        address.some().map(|some| self.node(some)).transpose()
    }

    fn set_address(&mut self, place: Place, address: Address) {
        self.mtr.write(place.page, place.offset, &address.to_bytes());
    }

    fn set_node(&mut self, node: Place, previous: Address, next: Address) {
        let mut bytes = [0; LIST_NODE_LEN];
        bytes[..Address::LEN].copy_from_slice(&previous.to_bytes());
        bytes[Address::LEN..].copy_from_slice(&next.to_bytes());
        self.mtr.write(node.page, node.offset, &bytes);
    }

    /// Appends a node that is in no list.
    pub fn push_last(&mut self, base: Place, address: Address) -> Result<(), Interrupt> {
        let last = self.address(base.plus(LAST));
        let old_last = self.node_if(last)?;
        let node = self.node(address)?;
        self.set_node(node, last, Address::NONE);
        match old_last {
            Some(old_last) => self.set_address(old_last.plus(NEXT), address),
            None => self.set_address(base.plus(FIRST), address),
        }
        self.set_address(base.plus(LAST), address);
        self.add(base, 1, "the length of a list")
    }

    /// Takes a node out of its list. Its own bytes stay; [`Latched::push_last`] overwrites them.
    pub fn remove(&mut self, base: Place, address: Address) -> Result<(), Interrupt> {
        let node = self.node(address)?;
        let (before, after) = (self.address(node.plus(PREVIOUS)), self.address(node.plus(NEXT)));
        let (previous, next) = (self.node_if(before)?, self.node_if(after)?);
        let linked = match (previous, next) {
            (Some(previous), _) if self.address(previous.plus(NEXT)) != address => false,
            (None, _) if self.address(base.plus(FIRST)) != address => false,
            (_, Some(next)) if self.address(next.plus(PREVIOUS)) != address => false,
            (_, None) if self.address(base.plus(LAST)) != address => false,
            _ => self.list_len(base) > 0,
        };
        if !linked {
            let why = format!("the list around offset {} is not linked both ways", address.offset);
            return Err(self.corrupt(address.page, why));
        }
        self.set_address(previous.map_or(base.plus(FIRST), |place| place.plus(NEXT)), after);
        self.set_address(next.map_or(base.plus(LAST), |place| place.plus(PREVIOUS)), before);
        self.add(base, -1, "the length of a list")
    }
}
