//! Values stored off-page: chains of BLOB pages (type 10) in the leaf segment.
//!
//! ```text
//!   38 bytes of the value on this page (4) | 42 next page (4) or FFFFFFFF | 46 data
//! ```
//!
//! The record keeps a reference of 20 bytes: tablespace (4), first page (4), 38 (4), flags and length (8). In
//! the DYNAMIC format the whole value is off-page, but only if the record would not fit otherwise.
//!
//! A chain is written before the record that refers to it. Its first page comes into being in a
//! mini-transaction of the caller's ([`ExternalWriter::begin`]), which also notes the chain elsewhere (an
//! undo record): from then on somebody knows of every page, whenever a crash comes. Freeing goes from the
//! second page on, so that every reference to the chain is right at every moment, and ends with the first
//! page, in the mini-transaction that removes the last reference: a chain is never freed twice.

use pagestore::fsp::{self, Direction, Reserve};
use pagestore::page::{self as fil, NULL_PAGE, u32_at};
use pagestore::{Interrupt, Mtr, PageHandle};
use smallvec::SmallVec;

use crate::definition::{IndexDef, VARIABLE};
use crate::field::{FieldRef, REFERENCE_SIZE};
use crate::record::RecordTooBig;
use crate::record::build::record_size;
use crate::tree::Tree;
use crate::without_pin;

const PART_LENGTH: usize = fil::HEADER_LEN;
const NEXT_PAGE: usize = 42;
const DATA: usize = 46;
/// Bit of byte 12 of a reference: another version owns the chain.
const NOT_OWNER: u8 = 0x80;
/// Bit of byte 12 of a reference: the chain was taken over from an older version.
const INHERITED: u8 = 0x40;
/// A value this short is not moved off-page: it would not save much more than the reference costs.
const NOT_WORTH_MOVING: usize = 40;
/// Pages freed in one mini-transaction.
const PAGES_PER_STEP: usize = 8;

/// The 20 bytes in a record that say where the rest of a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Tablespace of the chain as written; the tree's own is used to follow it.
    pub space: u32,
    /// First page.
    pub page: u32,
    /// Bytes in the chain.
    pub len: u32,
    /// Whether this record version owns the chain, and so frees it when it goes.
    pub owner: bool,
    /// Whether the chain was taken over from an older version (an update rolled back must not free it).
    pub inherited: bool,
}

impl Reference {
    /// Decodes the bytes in the record.
    pub fn read(bytes: &[u8; REFERENCE_SIZE]) -> Reference {
        Reference {
            space: u32_at(bytes, 0),
            page: u32_at(bytes, 4),
            len: u32_at(bytes, 16),
            owner: bytes[12] & NOT_OWNER == 0,
            inherited: bytes[12] & INHERITED != 0,
        }
    }

    /// The bytes for the record.
    pub fn to_bytes(self) -> [u8; REFERENCE_SIZE] {
        let mut bytes = [0; REFERENCE_SIZE];
        bytes[..4].copy_from_slice(&self.space.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.page.to_be_bytes());
        bytes[8..12].copy_from_slice(&(PART_LENGTH as u32).to_be_bytes());
        bytes[12] = if self.owner { 0 } else { NOT_OWNER } | if self.inherited { INHERITED } else { 0 };
        bytes[16..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }
}

/// Chooses the fields that must go off-page so that the record is at most `size_max` bytes, in the order
/// chosen: always the longest one that may.
///
/// # Errors
/// Even then the record would be too big.
pub fn plan_external(
    def: &IndexDef,
    fields: &[FieldRef<'_>],
    size_max: usize,
) -> Result<SmallVec<[usize; 4]>, RecordTooBig> {
    const REFERENCE: [u8; REFERENCE_SIZE] = [0; REFERENCE_SIZE];
    let mut chosen = SmallVec::new();
    if record_size(def, fields) <= size_max {
        return Ok(chosen);
    }
    let mut fields: SmallVec<[FieldRef<'_>; 32]> = fields.iter().copied().collect();
    loop {
        let size = record_size(def, &fields);
        if size <= size_max {
            return Ok(chosen);
        }
        let mut longest: Option<(usize, usize)> = None;
        for (index, field) in fields.iter().enumerate().skip(def.n_unique) {
            let FieldRef::Inline(value) = field else { continue };
            let movable = def.fields[index].has_long_length() && def.layout[index].fixed_len == VARIABLE;
            if movable && value.len() > NOT_WORTH_MOVING && longest.is_none_or(|(len, _)| value.len() > len) {
                longest = Some((value.len(), index));
            }
        }
        let Some((_, index)) = longest else { return Err(RecordTooBig { size, max: size_max }) };
        fields[index] = FieldRef::External { prefix: &[], reference: &REFERENCE };
        chosen.push(index);
    }
}

/// Writes one value off-page, page by page. Resumable.
pub struct ExternalWriter<'t, 'v> {
    tree: &'t Tree,
    value: &'v [u8],
    /// First and last page of the chain, once there is one.
    ends: Option<(u32, u32)>,
    written: usize,
}

impl<'t, 'v> ExternalWriter<'t, 'v> {
    /// A writer for `value`, which must not be empty. Nothing is written yet.
    pub fn new(tree: &'t Tree, value: &'v [u8]) -> ExternalWriter<'t, 'v> {
        assert!(!value.is_empty() && u32::try_from(value.len()).is_ok(), "{} bytes off-page", value.len());
        ExternalWriter { tree, value, ends: None, written: 0 }
    }

    /// Writes the first page in the caller's mini-transaction, which has no changes yet. It must then be
    /// committed, with a note of the chain for the case that it must be freed because the value is not used.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, with nothing changed.
    pub fn begin(&mut self, mtr: &mut Mtr<'_>) -> Result<Reference, Interrupt> {
        assert!(self.ends.is_none(), "a chain begins once");
        self.tree.read_root()?;
        self.write_page(mtr)?;
        Ok(self.reference())
    }

    /// Writes the rest of the value, each page in a mini-transaction of its own; on an interrupt await and
    /// call again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store; what was written stays.
    pub fn finish(&mut self) -> Result<Reference, Interrupt> {
        assert!(self.ends.is_some(), "a chain has a beginning");
        while self.written < self.value.len() {
            let mut mtr = self.tree.store.mtr()?;
            self.write_page(&mut mtr).map_err(without_pin)?;
            mtr.commit();
        }
        Ok(self.reference())
    }

    fn reference(&self) -> Reference {
        let page = self.ends.map_or(NULL_PAGE, |(first, _)| first);
        Reference {
            space: self.tree.space,
            page,
            len: self.value.len() as u32,
            owner: true,
            inherited: false,
        }
    }

    fn write_page(&mut self, mtr: &mut Mtr<'_>) -> Result<(), Interrupt> {
        let tree = self.tree;
        let rest = &self.value[self.written..];
        let part = &rest[..rest.len().min(capacity(tree.page_size()))];
        let before = match self.ends {
            Some((_, last)) => Some(mtr.x(tree.page_id(last))?),
            None => None,
        };
        fsp::reserve(mtr, tree.space, 1, Reserve::OffPage)?;
        let hint = self.ends.map_or(0, |(_, last)| last + 1);
        let page = fsp::allocate_page(mtr, tree.leaf_segment(), hint, Direction::None)?;
        let number = mtr.page_id(page).page;
        mtr.write_u16(page, fil::TYPE, fil::kind::BLOB);
        let mut header = [0xFF; DATA - PART_LENGTH];
        header[..4].copy_from_slice(&(part.len() as u32).to_be_bytes());
        mtr.write(page, PART_LENGTH, &header);
        mtr.write(page, DATA, part);
        if let Some(before) = before {
            mtr.write_u32(before, NEXT_PAGE, number);
        }
        self.ends = Some((self.ends.map_or(number, |(first, _)| first), number));
        self.written += part.len();
        Ok(())
    }
}

/// Bytes of a value that a page holds.
fn capacity(page_size: usize) -> usize {
    page_size - DATA - fil::TRAILER_LEN
}

/// One page of a chain: the bytes it holds and the page after it.
pub(crate) fn part_of(page: &[u8]) -> Result<(&[u8], u32), &'static str> {
    if fil::page_type(page) != fil::kind::BLOB {
        return Err("an off-page value leads to a page that is no BLOB page");
    }
    let len = u32_at(page, PART_LENGTH) as usize;
    if len == 0 || len > capacity(page.len()) {
        return Err("a BLOB page says that it holds more than a page can, or nothing");
    }
    Ok((&page[DATA..DATA + len], u32_at(page, NEXT_PAGE)))
}

/// Reads one value. Resumable.
pub struct ExternalReader {
    next: u32,
    left: usize,
}

impl ExternalReader {
    /// Starts at the first byte.
    pub fn new(reference: Reference) -> ExternalReader {
        ExternalReader { next: reference.page, left: reference.len as usize }
    }

    /// Appends the value to `out`, which must be left alone between calls; on an interrupt await and call
    /// again.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store; a damaged chain.
    pub fn read(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Interrupt> {
        self.read_until(tree, out, usize::MAX)
    }

    /// The same, but stops once `out` has `enough` bytes or more: no page is read that is not needed for
    /// them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_until(&mut self, tree: &Tree, out: &mut Vec<u8>, enough: usize) -> Result<(), Interrupt> {
        while self.left > 0 && out.len() < enough {
            if self.next == NULL_PAGE {
                return Err(
                    tree.corrupt(NULL_PAGE, format!("an off-page value ends {} bytes too early", self.left))
                );
            }
            let page = tree.store.read(tree.page_id(self.next)).map_err(without_pin)?;
            let (part, next) = part_of(&page).map_err(|why| tree.corrupt(self.next, why))?;
            let part = &part[..part.len().min(self.left)];
            out.extend_from_slice(part);
            self.left -= part.len();
            self.next = next;
        }
        Ok(())
    }
}

impl Tree {
    /// Frees pages of the chain behind its first, in a mini-transaction of its own; `true` when only the
    /// first is left. Safe to repeat after a crash, as the reference stays right.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, with nothing changed.
    pub fn free_chain_step(&self, reference: Reference) -> Result<bool, Interrupt> {
        self.read_root()?;
        let mut mtr = self.store.mtr()?;
        let (head, mut next) = self.latch_part(&mut mtr, reference.page)?;
        let mut pages: SmallVec<[PageHandle; PAGES_PER_STEP]> = SmallVec::new();
        while next != NULL_PAGE && pages.len() < PAGES_PER_STEP {
            let (page, after) = self.latch_part(&mut mtr, next)?;
            pages.push(page);
            next = after;
        }
        for page in &pages {
            let number = mtr.page_id(*page).page;
            fsp::prepare_free(&mut mtr, self.leaf_segment(), number)?;
        }
        if !pages.is_empty() {
            mtr.write_u32(head, NEXT_PAGE, next);
            for page in pages {
                fsp::free_page(&mut mtr, self.leaf_segment(), page)?;
            }
        }
        mtr.commit();
        Ok(next == NULL_PAGE)
    }

    /// Frees a page of the leaf segment that nothing refers to, in a mini-transaction of its own.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store, with nothing changed; a page that the segment does not have.
    pub fn free_leaf_segment_page(&self, number: u32) -> Result<(), Interrupt> {
        self.read_root()?;
        let mut mtr = self.store.mtr()?;
        let page = mtr.x(self.page_id(number))?;
        fsp::prepare_free(&mut mtr, self.leaf_segment(), number)?;
        fsp::free_page(&mut mtr, self.leaf_segment(), page)?;
        mtr.commit();
        Ok(())
    }

    fn latch_part(&self, mtr: &mut Mtr<'_>, number: u32) -> Result<(PageHandle, u32), Interrupt> {
        if mtr.held(self.page_id(number)).is_some() {
            return Err(self.corrupt(number, "an off-page value leads back to a page of its own"));
        }
        let page = mtr.x(self.page_id(number))?;
        let (_, next) = part_of(mtr.page(page)).map_err(|why| self.corrupt(number, why))?;
        Ok((page, next))
    }

    /// Latches what [`Self::free_chain_head`] will change, while the mini-transaction has no changes.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store; a damaged chain.
    pub fn prepare_free_chain_head(&self, mtr: &mut Mtr<'_>, reference: Reference) -> Result<(), Interrupt> {
        self.read_root()?;
        self.latch_part(mtr, reference.page)?;
        fsp::prepare_free(mtr, self.leaf_segment(), reference.page)
    }

    /// Frees the first page of a chain: in the mini-transaction that also removes the reference.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store; a damaged chain.
    pub fn free_chain_head(&self, mtr: &mut Mtr<'_>, reference: Reference) -> Result<(), Interrupt> {
        let page = match mtr.held(self.page_id(reference.page)) {
            Some(page) => page,
            None => self.latch_part(mtr, reference.page)?.0,
        };
        fsp::free_page(mtr, self.leaf_segment(), page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Comparison, FieldDef};

    fn def() -> IndexDef {
        let text = |name| FieldDef::variable(name, 65535, Comparison::Binary).blob();
        let fields = vec![
            FieldDef::variable("id", 3000, Comparison::Binary),
            FieldDef::fixed("DB_TRX_ID", 6),
            FieldDef::fixed("DB_ROLL_PTR", 7),
            FieldDef::variable("short", 250, Comparison::Binary),
            text("a"),
            text("b"),
        ];
        IndexDef::new(1, "PRIMARY", true, true, fields, 1, 1)
    }

    #[test]
    fn the_longest_big_fields_go_first_and_keys_never() {
        let (key, long, longer) = (vec![1; 3000], vec![2; 5000], vec![3; 6000]);
        let fields = |a, b| [&key[..], &[0; 6], &[0; 7], &[5; 250], a, b].map(FieldRef::Inline);
        let plan = |a, b| plan_external(&def(), &fields(a, b), 8125).map(|chosen| chosen.to_vec());
        assert_eq!(plan(&long[..100], &longer[..200]), Ok(vec![]));
        assert_eq!(plan(&long, &longer), Ok(vec![5, 4]));
        assert_eq!(plan(&longer[..4000], &longer[..4000]), Ok(vec![4]));
        assert!(plan_external(&def(), &fields(&long, &longer), 3200).is_err());
    }

    #[test]
    fn references_have_the_servers_layout() {
        let reference = Reference { space: 4, page: 36, len: 45050, owner: false, inherited: true };
        let bytes = reference.to_bytes();
        assert_eq!(bytes, [0, 0, 0, 4, 0, 0, 0, 36, 0, 0, 0, 38, 0xC0, 0, 0, 0, 0, 0, 0xAF, 0xFA]);
        assert_eq!(Reference::read(&bytes), reference);
    }
}
