//! Older versions of a row.
//!
//! A version is the record on the page with an [`Overlay`]: the fields that undo records give back, from the
//! newest change to the version wanted. What no change touched is read from the page itself. The record's
//! leaf stays latched meanwhile: the record's DB_ROLL_PTR and what it leads to belong together only as long
//! as nobody can roll the change back.
//!
//! An undo record is there as long as some view may need it: the walk goes from a version that the view does
//! not see to its undo record, and undo logs of transactions that a view does not see are not purged.
//!
//! **Long chains.** A walk that needs a page that is not in memory, or that has gone on for long, lets go of
//! the leaf and comes back. It does not start over then: the overlay keeps what was found so far. If the
//! record is unchanged and no live transaction was partly rolled back, the next try resumes where the last
//! one stopped. Where it was changed meanwhile, it goes from the record to an *anchor* and on from there: the
//! first version that is not by the record's last writer. That one was committed, so it stays as it is and in
//! the chain. So the chain is walked once however many pages it has, and only the page that was waited for
//! last is pinned.
//!
//! The end of such a walk is kept as well. The caller may have to wait for other pages next and then asks
//! again: in a small pool those pages and the chain's would evict each other for ever.

use std::sync::atomic::Ordering;

use btree::field::REFERENCE_SIZE;
use btree::{FieldRef, RecordRef};
use disk::Wait;
use pagestore::PageRead;
use smallvec::SmallVec;

use crate::error::Interrupt;
use crate::read_view::ReadView;
use crate::roll_pointer::RollPtr;
use crate::undo::record::bytes_at;
use crate::undo::tablespace::corrupt;
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

type Fields = SmallVec<[(u16, Old); 8]>;

impl Old {
    /// Bytes it takes.
    fn len(self) -> usize {
        match self {
            Old::Null => 0,
            Old::Inline { len, .. } => len as usize,
            Old::External { prefix, .. } => prefix as usize + REFERENCE_SIZE,
        }
    }

    /// Copies its bytes and says where they are then.
    fn copied_to(self, from: &[u8], to: &mut Vec<u8>) -> Old {
        let new = to.len() as u32;
        let len = self.len();
        match self {
            Old::Null => Old::Null,
            Old::Inline { start, len: value } => {
                to.extend_from_slice(&from[start as usize..start as usize + len]);
                Old::Inline { start: new, len: value }
            }
            Old::External { start, prefix } => {
                to.extend_from_slice(&from[start as usize..start as usize + len]);
                Old::External { start: new, prefix }
            }
        }
    }
}

/// Fields of an older version that differ from the record on the page.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// From the anchor on, if there is one by now.
    fields: Fields,
    /// From the record to the anchor; what is among `fields` as well is older there.
    above: Fields,
    bytes: Vec<u8>,
    pub trx_id: u64,
    pub roll_ptr: u64,
    pub deleted: bool,
    anchor: Option<(u64, u64)>,
    paused: Option<Box<Paused>>,
    /// Undo records that walks went over, since somebody counted them as work.
    walked: u32,
}

/// A walk that is to go on.
#[derive(Debug)]
struct Paused {
    /// Whose walk it is.
    view: (u64, u64),
    /// The bytes that the record had.
    image: Vec<u8>,
    /// [`UndoSpace::cut_back`] then.
    cut_back: u64,
    /// As in [`Overlay`].
    fields: Fields,
    above: Fields,
    bytes: Vec<u8>,
    trx_id: u64,
    roll_ptr: u64,
    deleted: bool,
    anchor: Option<(u64, u64)>,
    /// An earlier walk, from a record with other bytes, to be joined at its anchor.
    beyond: Option<Box<Paused>>,
}

impl Paused {
    fn depth(&self) -> usize {
        1 + self.beyond.as_ref().map_or(0, |walk| walk.depth())
    }
}

/// Earlier walks that are kept at most: one for each time that the record was changed while one went on.
const BEYOND_MAX: usize = 8;
/// Versions gone through before the leaf is let go of.
const VERSIONS_PER_TURN: u32 = 512;
/// Bytes of replaced values that are kept before the overlay is tidied up.
const TIDY: usize = 64 << 10;

impl Overlay {
    /// The version on the page itself.
    pub fn start(&mut self, record: RecordRef<'_>) {
        self.fields.clear();
        self.above.clear();
        self.bytes.clear();
        self.anchor = None;
        self.trx_id = record.trx_id();
        self.roll_ptr = record.roll_ptr();
        self.deleted = record.is_deleted();
    }

    /// No walk is gone on with: the statement has ended. Long ones are not kept for a session that may do
    /// nothing for days.
    pub fn forget(&mut self) {
        self.paused = None;
        if self.bytes.capacity() > TIDY {
            *self = Overlay::default();
        }
    }

    /// Undo records gone over since this was asked last.
    pub fn take_walked(&mut self) -> u32 {
        std::mem::take(&mut self.walked)
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
            self.put(*position, old);
        }
        if self.bytes.len() > TIDY {
            self.tidy();
        }
    }

    fn put(&mut self, position: u16, old: Old) {
        match self.fields.iter_mut().find(|(other, _)| *other == position) {
            Some(entry) => entry.1 = old,
            None => self.fields.push((position, old)),
        }
    }

    /// Forgets values that older ones have replaced, if that is worth it.
    fn tidy(&mut self) {
        let live: usize = self.fields.iter().chain(&self.above).map(|(_, old)| old.len()).sum();
        if live * 2 > self.bytes.len() {
            return;
        }
        let mut bytes = Vec::with_capacity(live * 2);
        for (_, old) in self.fields.iter_mut().chain(&mut self.above) {
            *old = old.copied_to(&self.bytes, &mut bytes);
        }
        self.bytes = bytes;
    }

    fn field(&self, position: usize) -> Option<FieldRef<'_>> {
        let mut fields = self.fields.iter().chain(&self.above);
        let (_, old) = fields.find(|(other, _)| usize::from(*other) == position)?;
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

    /// Whether this is still the version on the page.
    pub fn is_newest(&self, record: RecordRef<'_>) -> bool {
        self.trx_id == record.trx_id() && self.roll_ptr == record.roll_ptr()
    }

    /// Keeps the walk, and leaves nothing of it in the overlay itself.
    fn pause(
        &mut self,
        space: &UndoSpace,
        view: &ReadView,
        record: RecordRef<'_>,
        mut beyond: Option<Box<Paused>>,
    ) {
        while let Some(walk) = &mut beyond
            && walk.depth() >= BEYOND_MAX
        {
            beyond = walk.beyond.take();
        }
        self.paused = Some(Box::new(Paused {
            view: (view.version, view.creator),
            image: image(record),
            cut_back: space.cut_back.load(Ordering::SeqCst),
            fields: std::mem::take(&mut self.fields),
            above: std::mem::take(&mut self.above),
            bytes: std::mem::take(&mut self.bytes),
            trx_id: self.trx_id,
            roll_ptr: self.roll_ptr,
            deleted: self.deleted,
            anchor: self.anchor,
            beyond,
        }));
    }

    /// Begins at the record, or where a walk from the same bytes stopped; returns one that is to be joined at
    /// its anchor.
    fn resume(
        &mut self,
        space: &UndoSpace,
        paused: Option<Box<Paused>>,
        record: RecordRef<'_>,
    ) -> Option<Box<Paused>> {
        self.start(record);
        let mut walk = paused?;
        // What is rolled back to a savepoint and done again may leave the very bytes, and other versions
        // behind them.
        if walk.cut_back != space.cut_back.load(Ordering::SeqCst) || walk.image != image(record) {
            return if walk.anchor.is_some() { Some(walk) } else { walk.beyond };
        }
        self.fields = std::mem::take(&mut walk.fields);
        self.above = std::mem::take(&mut walk.above);
        self.bytes = std::mem::take(&mut walk.bytes);
        (self.trx_id, self.roll_ptr, self.deleted) = (walk.trx_id, walk.roll_ptr, walk.deleted);
        self.anchor = walk.anchor;
        walk.beyond
    }

    /// Goes on where a walk was interrupted, whose anchor has been reached.
    fn join(&mut self, paused: &Paused) {
        for (position, old) in &paused.fields {
            let old = old.copied_to(&paused.bytes, &mut self.bytes);
            self.put(*position, old);
        }
        self.trx_id = paused.trx_id;
        self.roll_ptr = paused.roll_ptr;
        self.deleted = paused.deleted;
    }
}

/// The bytes of a record, those of different records being different.
fn image(record: RecordRef<'_>) -> Vec<u8> {
    let mut image = vec![u8::from(record.is_deleted())];
    for field in record.fields() {
        let (kind, value, reference): (u8, &[u8], &[u8]) = match field {
            FieldRef::Null => (0, &[], &[]),
            FieldRef::Inline(value) => (1, value, &[]),
            FieldRef::External { prefix, reference } => (2, prefix, reference),
        };
        image.push(kind);
        image.extend_from_slice(&(value.len() as u32).to_be_bytes());
        image.extend_from_slice(value);
        image.extend_from_slice(reference);
    }
    image
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
fn older(space: &UndoSpace, overlay: &mut Overlay) -> Result<bool, Interrupt> {
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

/// Goes back from `record` (on a latched leaf) to the first version at which `stop` says so; false: there is
/// none. Repeat it after a wait with the same overlay and view; `stop` must have the same answers then.
pub(crate) fn walk_back(
    space: &UndoSpace,
    record: RecordRef<'_>,
    view: &ReadView,
    overlay: &mut Overlay,
    mut stop: impl FnMut(&Overlay) -> Result<bool, Interrupt>,
) -> Result<bool, Interrupt> {
    let paused = overlay.paused.take().filter(|paused| paused.view == (view.version, view.creator));
    let was_paused = paused.is_some();
    let mut beyond = overlay.resume(space, paused, record);
    let mut versions = 0;
    loop {
        let version = (overlay.trx_id, overlay.roll_ptr);
        if overlay.anchor.is_none() && overlay.trx_id != record.trx_id() {
            overlay.anchor = Some(version);
            overlay.above = std::mem::take(&mut overlay.fields);
        }
        if let Some(mut walk) = beyond.take_if(|walk| walk.anchor == Some(version)) {
            overlay.join(&walk);
            beyond = walk.beyond.take();
        }
        let step = match stop(overlay) {
            Ok(true) => Ok(Some(true)),
            Ok(false) if versions == VERSIONS_PER_TURN => Err(Interrupt::Wait(Wait::yielding())),
            Ok(false) => older(space, overlay).map(|there| if there { None } else { Some(false) }),
            Err(interrupt) => Err(interrupt),
        };
        match step {
            Ok(None) => {
                versions += 1;
                overlay.walked = overlay.walked.saturating_add(1);
            }
            Ok(Some(found)) => {
                if was_paused {
                    let shown = (overlay.fields.clone(), overlay.above.clone(), overlay.bytes.clone());
                    overlay.pause(space, view, record, None);
                    (overlay.fields, overlay.above, overlay.bytes) = shown;
                }
                return Ok(found);
            }
            Err(Interrupt::Wait(wait)) => {
                overlay.pause(space, view, record, beyond);
                // What was waited for before is behind.
                return Err(Interrupt::Wait(wait.and_lets_go()));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Which versions of rows a read without locks shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'v> {
    /// Those that the view sees.
    Seen(&'v ReadView),
    /// READ UNCOMMITTED: the newest. A row with off-page values as the view sees it, though: they are read
    /// when the latch is gone, and a rollback frees those of what it takes back without asking for readers.
    Uncommitted(&'v ReadView),
    /// The newest. The caller knows that nobody changes them.
    Newest,
}

impl Shown<'_> {
    /// Whether a live index entry is that of the row's version, its page having this PAGE_MAX_TRX_ID.
    pub(crate) fn trusts(&self, page_max: u64) -> bool {
        match self {
            Shown::Seen(view) => page_max < view.up_limit,
            Shown::Uncommitted(_) | Shown::Newest => true,
        }
    }

    /// Finds the version of `record` (on a latched leaf) that is shown. Repeat it after a wait with the same
    /// overlay.
    #[inline]
    pub(crate) fn of(
        &self,
        space: &UndoSpace,
        record: RecordRef<'_>,
        overlay: &mut Overlay,
    ) -> Result<Visible, Interrupt> {
        match self {
            Shown::Seen(view) => find_visible(space, record, view, overlay),
            Shown::Uncommitted(view) if record.has_external() => find_visible(space, record, view, overlay),
            _ if record.is_deleted() => Ok(Visible::Nothing),
            _ => Ok(Visible::Newest),
        }
    }
}

/// Finds the version of `record` (on a latched leaf) that `view` shows. Repeat it after a wait with the same
/// overlay.
pub(crate) fn find_visible(
    space: &UndoSpace,
    record: RecordRef<'_>,
    view: &ReadView,
    overlay: &mut Overlay,
) -> Result<Visible, Interrupt> {
    if view.sees(record.trx_id()) {
        return Ok(if record.is_deleted() { Visible::Nothing } else { Visible::Newest });
    }
    let found = walk_back(space, record, view, overlay, |version| Ok(view.sees(version.trx_id)))?;
    Ok(if found && !overlay.deleted { Visible::Older } else { Visible::Nothing })
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::undo::UndoKind;

    #[test]
    fn a_long_walk_is_not_kept_when_its_statement_has_ended() {
        let old = |value: &'static [u8]| UndoRecord {
            kind: UndoKind::Update,
            table: 1,
            old_deleted: false,
            old_trx_id: 5,
            old_roll_ptr: 6,
            key: smallvec![],
            changed: smallvec![(3, FieldRef::Inline(value))],
            ordering: smallvec![],
        };
        for (value, kept) in [(&[1; 100][..], true), (&[1; TIDY + 1][..], false)] {
            let mut overlay = Overlay::default();
            overlay.apply(&old(value));
            overlay.forget();
            assert_eq!(overlay.bytes.capacity() > 0, kept, "the buffer of {} bytes", value.len());
        }
    }
}
