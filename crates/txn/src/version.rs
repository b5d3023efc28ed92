//! Older versions of a row.
//!
//! A version is the record on the page with an [`Overlay`]: the fields that undo records give back, from the newest change to
//! the version wanted. What no change touched is read from the page itself. The record's leaf stays latched meanwhile: the record's
//! DB_ROLL_PTR and what it leads to belong together only as long as nobody can roll the change back.
//!
//! An undo record is there as long as some view may need it: the walk goes from a version that the view does not
//! see to its undo record, and undo logs of transactions that a view does not see are not purged.

use btree::{FieldRef, RecordRef};
use pagestore::PageRead;
use smallvec::SmallVec;

use crate::error::Interrupt;
use crate::read_view::ReadView;
use crate::roll_pointer::RollPtr;
use crate::undo::record::bytes_at;
use crate::undo::slot::corrupt;
use crate::undo::{UndoRecord, UndoSpace};

#[derive(Debug, Clone, Copy)]
enum Old {
    Null,
    Inline {
        start: u32,
        len: u32,
    },
    /// The reference follows the prefix.
    External {
        start: u32,
        prefix: u32,
    },
}

/// Fields of an older version that differ from the record on the page.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    fields: SmallVec<[(u16, Old); 8]>,
    bytes: Vec<u8>,
    pub trx_id: u64,
    pub roll_ptr: u64,
    pub deleted: bool,
}

impl Overlay {
    /// The version on the page itself.
    pub fn start(&mut self, record: RecordRef<'_>) {
        self.fields.clear();
        self.bytes.clear();
        self.trx_id = record.trx_id();
        self.roll_ptr = record.roll_ptr();
        self.deleted = record.is_deleted();
    }

    /// Goes back over one change.
    pub fn apply(&mut self, undo: &UndoRecord<'_>) {
        self.trx_id = undo.old_trx_id;
        self.roll_ptr = undo.old_roll_ptr;
        self.deleted = undo.old_deleted;
        for (position, field) in &undo.changed {
            let start = self.bytes.len() as u32;
            let old = match field {
                FieldRef::Null => Old::Null,
                FieldRef::Inline(value) => {
                    self.bytes.extend_from_slice(value);
                    Old::Inline { start, len: value.len() as u32 }
                }
                FieldRef::External { prefix, reference } => {
                    self.bytes.extend_from_slice(prefix);
                    self.bytes.extend_from_slice(&reference[..]);
                    Old::External { start, prefix: prefix.len() as u32 }
                }
            };
            match self.fields.iter_mut().find(|(other, _)| other == position) {
                Some(entry) => entry.1 = old,
                None => self.fields.push((*position, old)),
            }
        }
    }

    fn field(&self, position: usize) -> Option<FieldRef<'_>> {
        let (_, old) = self.fields.iter().find(|(other, _)| usize::from(*other) == position)?;
        Some(match *old {
            Old::Null => FieldRef::Null,
            Old::Inline { start, len } => {
                FieldRef::Inline(&self.bytes[start as usize..(start + len) as usize])
            }
            Old::External { start, prefix } => {
                let (prefix, rest) = self.bytes[start as usize..].split_at(prefix as usize);
                match rest.first_chunk() {
                    Some(reference) => FieldRef::External { prefix, reference },
                    None => FieldRef::Null,
                }
            }
        })
    }
}

/// One version of a row.
#[derive(Clone, Copy)]
pub(crate) struct Version<'a> {
    pub record: RecordRef<'a>,
    pub overlay: Option<&'a Overlay>,
}

impl<'a> Version<'a> {
    /// A field of the clustered index.
    #[inline]
    pub fn field(&self, position: usize) -> FieldRef<'a> {
        self.overlay
            .and_then(|overlay| overlay.field(position))
            .unwrap_or_else(|| self.record.field(position))
    }

    /// All fields, in one pass.
    pub fn fields(self) -> impl Iterator<Item = FieldRef<'a>> + 'a {
        let overlay = self.overlay;
        self.record.fields().enumerate().map(move |(position, field)| {
            overlay.and_then(|overlay| overlay.field(position)).unwrap_or(field)
        })
    }
}

/// What a view shows of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visible {
    /// The version on the page.
    Newest,
    /// The version in the overlay.
    Older,
    /// Nothing: it did not exist, or was deleted.
    Nothing,
}

/// An undo record on its latched page.
pub(crate) struct UndoRead {
    page: PageRead,
    number: u32,
    offset: usize,
}

impl UndoRead {
    /// Latches the page of the undo record.
    pub fn new(space: &UndoSpace, roll_ptr: RollPtr) -> Result<UndoRead, Interrupt> {
        let page = space.read_page(roll_ptr.page())?;
        Ok(UndoRead { page, number: roll_ptr.page(), offset: roll_ptr.offset() })
    }

    /// Decodes it.
    pub fn record(&self) -> Result<UndoRecord<'_>, Interrupt> {
        let parsed = bytes_at(&self.page, self.offset).and_then(UndoRecord::parse);
        parsed.ok_or_else(|| {
            corrupt(self.number, "there is no undo record where a row's DB_ROLL_PTR points").into()
        })
    }
}

/// Goes one version back. False: the row did not exist before.
pub(crate) fn older(space: &UndoSpace, overlay: &mut Overlay) -> Result<bool, Interrupt> {
    let roll_ptr = RollPtr(overlay.roll_ptr);
    if roll_ptr.is_insert() {
        return Ok(false);
    }
    let read = UndoRead::new(space, roll_ptr)?;
    let undo = read.record()?;
    if !undo.kind.has_old_version() {
        return Err(corrupt(roll_ptr.page(), "an update's DB_ROLL_PTR leads to no older version").into());
    }
    overlay.apply(&undo);
    Ok(true)
}

/// Finds the version of `record` (on a latched leaf) that `view` shows.
pub(crate) fn find_visible(
    space: &UndoSpace,
    record: RecordRef<'_>,
    view: &ReadView,
    overlay: &mut Overlay,
) -> Result<Visible, Interrupt> {
    if view.sees(record.trx_id()) {
        return Ok(if record.is_deleted() { Visible::Nothing } else { Visible::Newest });
    }
    overlay.start(record);
    while !view.sees(overlay.trx_id) {
        if !older(space, overlay)? {
            return Ok(Visible::Nothing);
        }
    }
    Ok(if overlay.deleted { Visible::Nothing } else { Visible::Older })
}
