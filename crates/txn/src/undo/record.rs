//! Undo records.
//!
//! ```text
//! length u16 | kind u8 | table id | [old info u8, old trx id 6, old roll pointer 7] |
//!     key fields | changed fields | ordering fields | length u16
//! ```
//!
//! Numbers are variable-length (7 bits a byte, low first). *Changed* fields hold the old values of the
//! clustered fields an update replaced. *Ordering* fields hold those fields of secondary indexes that are
//! neither in the key nor among the changed, so that purge can build the index entries of the old version
//! without the row. The length stands at both ends, so that a log can be read in both directions.
//!
//! A record of kind *off-page* is not about a row: its key is one field, the reference to a chain of BLOB
//! pages that the transaction has begun to write. It is written in the mini-transaction that makes the
//! chain's first page.
//!
//! A record of kind *prepared* names a prepared transaction (its key is the XID's format and parts) and the
//! tables it has changed, as far as they fit. It is the last of its log, behind the end of what can be
//! undone, and is not there any more once the log is committed or active again.

use btree::FieldRef;
use smallvec::SmallVec;

/// What a change did. The numbers are InnoDB's, but for [`UndoKind::OffPage`] and
/// [`UndoKind::Prepared`], which it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum UndoKind {
    /// A row appeared.
    Insert = 11,
    /// Fields changed.
    Update = 12,
    /// A delete-marked row was replaced by a live one.
    Revive = 13,
    /// A row was delete-marked.
    DeleteMark = 14,
    /// A chain of off-page pages was begun. Rolling back frees it; the row that was to refer to it is undone
    /// before.
    OffPage = 32,
    /// The transaction is prepared, and this is its name.
    Prepared = 33,
}

/// Every kind.
const KINDS: [UndoKind; 6] = [
    UndoKind::Insert,
    UndoKind::Update,
    UndoKind::Revive,
    UndoKind::DeleteMark,
    UndoKind::OffPage,
    UndoKind::Prepared,
];

impl UndoKind {
    fn from_u8(value: u8) -> Option<UndoKind> {
        KINDS.into_iter().find(|kind| *kind as u8 == value)
    }

    /// Whether the record has an older version of a row, which purge and read views may need.
    pub fn has_old_version(self) -> bool {
        !matches!(self, UndoKind::Insert | UndoKind::OffPage | UndoKind::Prepared)
    }
}

/// Bytes before the kind, and after the last field.
const LENGTH_LEN: usize = 2;
const REFERENCE: usize = btree::field::REFERENCE_SIZE;

/// Builds a record in a buffer that is reused.
pub(crate) struct UndoBuilder<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> UndoBuilder<'b> {
    /// Starts a record.
    pub fn new(bytes: &'b mut Vec<u8>, kind: UndoKind, table: u64) -> UndoBuilder<'b> {
        bytes.clear();
        bytes.extend_from_slice(&[0; LENGTH_LEN]);
        bytes.push(kind as u8);
        put_number(bytes, table);
        UndoBuilder { bytes }
    }

    /// The version that the change replaces (not for inserts).
    pub fn old_version(&mut self, deleted: bool, trx_id: u64, roll_ptr: u64) {
        self.bytes.push(u8::from(deleted));
        self.bytes.extend_from_slice(&trx_id.to_be_bytes()[2..]);
        self.bytes.extend_from_slice(&roll_ptr.to_be_bytes()[1..]);
    }

    /// The clustered key.
    pub fn key<'f>(&mut self, fields: impl ExactSizeIterator<Item = FieldRef<'f>>) {
        put_number(self.bytes, fields.len() as u64);
        fields.for_each(|field| put_field(self.bytes, field));
    }

    /// A list of clustered fields by position.
    pub fn fields<'f>(&mut self, fields: impl Iterator<Item = (u16, FieldRef<'f>)> + Clone) {
        put_number(self.bytes, fields.clone().count() as u64);
        for (position, field) in fields {
            put_number(self.bytes, u64::from(position));
            put_field(self.bytes, field);
        }
    }

    /// Completes the record.
    pub fn finish(self) {
        let length = (self.bytes.len() + LENGTH_LEN) as u16;
        self.bytes[..LENGTH_LEN].copy_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(&length.to_be_bytes());
    }
}

fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// 0 = NULL; otherwise (inline length * 2 + external) + 1, then the bytes.
fn put_field(bytes: &mut Vec<u8>, field: FieldRef<'_>) {
    match field {
        FieldRef::Null => put_number(bytes, 0),
        FieldRef::Inline(value) => {
            put_number(bytes, (value.len() as u64) * 2 + 1);
            bytes.extend_from_slice(value);
        }
        FieldRef::External { prefix, reference } => {
            put_number(bytes, (prefix.len() as u64) * 2 + 2);
            bytes.extend_from_slice(prefix);
            bytes.extend_from_slice(reference);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn big_endian(&mut self, len: usize) -> Option<u64> {
        Some(self.take(len)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn field(&mut self) -> Option<FieldRef<'a>> {
        let tag = self.number()?;
        if tag == 0 {
            return Some(FieldRef::Null);
        }
        let len = usize::try_from((tag - 1) / 2).ok()?;
        let value = self.take(len)?;
        if (tag - 1) % 2 == 0 {
            return Some(FieldRef::Inline(value));
        }
        let reference = <&[u8; REFERENCE]>::try_from(self.take(REFERENCE)?).ok()?;
        Some(FieldRef::External { prefix: value, reference })
    }
}

/// A field of the clustered index with its position.
pub(crate) type PositionedField<'a> = (u16, FieldRef<'a>);

/// A decoded record; borrows the bytes.
#[derive(Debug)]
pub(crate) struct UndoRecord<'a> {
    pub kind: UndoKind,
    pub table: u64,
    /// Whether the version before was delete-marked.
    pub old_deleted: bool,
    pub old_trx_id: u64,
    pub old_roll_ptr: u64,
    pub key: SmallVec<[FieldRef<'a>; 4]>,
    /// Old values of changed fields.
    pub changed: SmallVec<[PositionedField<'a>; 8]>,
    /// Values of fields of secondary indexes that did not change.
    pub ordering: SmallVec<[PositionedField<'a>; 8]>,
}

impl<'a> UndoRecord<'a> {
    /// Decodes a whole record. `None` when the bytes make no sense.
    pub fn parse(bytes: &'a [u8]) -> Option<UndoRecord<'a>> {
        let end = bytes.len().checked_sub(LENGTH_LEN)?;
        let mut reader = Reader { bytes: &bytes[..end], at: LENGTH_LEN };
        let kind = UndoKind::from_u8(reader.take(1)?[0])?;
        let table = reader.number()?;
        let mut record = UndoRecord {
            kind,
            table,
            old_deleted: false,
            old_trx_id: 0,
            old_roll_ptr: 0,
            key: SmallVec::new(),
            changed: SmallVec::new(),
            ordering: SmallVec::new(),
        };
        if kind.has_old_version() {
            record.old_deleted = reader.take(1)?[0] != 0;
            record.old_trx_id = reader.big_endian(6)?;
            record.old_roll_ptr = reader.big_endian(7)?;
        }
        for _ in 0..reader.number()? {
            record.key.push(reader.field()?);
        }
        if kind.has_old_version() {
            for list in [&mut record.changed, &mut record.ordering] {
                for _ in 0..reader.number()? {
                    let position = u16::try_from(reader.number()?).ok()?;
                    list.push((position, reader.field()?));
                }
            }
        }
        (reader.at == end).then_some(record)
    }

    /// The chain of an off-page record.
    pub fn chain(&self) -> Option<&'a [u8; REFERENCE]> {
        match (self.kind, self.key.first()) {
            (UndoKind::OffPage, Some(FieldRef::External { reference, .. })) => Some(reference),
            _ => None,
        }
    }

    /// The old value of a clustered field, if the record has it.
    pub fn old_field(&self, position: u16) -> Option<FieldRef<'a>> {
        if let Some(field) = self.key.get(usize::from(position)) {
            // A changed key field (other case, equal in the collation) is also among the changed.
            let changed = self.changed.iter().find(|(changed, _)| *changed == position);
            return Some(changed.map_or(*field, |(_, field)| *field));
        }
        let found = self.changed.iter().chain(&self.ordering).find(|(other, _)| *other == position);
        found.map(|(_, field)| *field)
    }
}

/// The record that starts at `offset` of `page`, as bytes.
pub(crate) fn bytes_at(page: &[u8], offset: usize) -> Option<&[u8]> {
    let length = usize::from(u16::from_be_bytes(page.get(offset..offset + LENGTH_LEN)?.try_into().ok()?));
    let bytes = page.get(offset..offset.checked_add(length)?)?;
    let tail = bytes.get(length.checked_sub(LENGTH_LEN)?..)?;
    (length > 2 * LENGTH_LEN && tail == &bytes[..LENGTH_LEN]).then_some(bytes)
}

/// Start of the record that ends at `end` of `page`.
pub(crate) fn start_before(page: &[u8], end: usize) -> Option<usize> {
    let tail = page.get(end.checked_sub(LENGTH_LEN)?..end)?;
    let start = end.checked_sub(usize::from(u16::from_be_bytes(tail.try_into().ok()?)))?;
    bytes_at(page, start).map(|_| start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_can_be_walked_backwards() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let reference = [7; 20];
        let mut builder = UndoBuilder::new(&mut first, UndoKind::Update, 300);
        builder.old_version(true, 77, 0x86_0000_012D_0110);
        builder.key([FieldRef::Inline(b"key"), FieldRef::Inline(b"")].into_iter());
        let changed =
            [(5, FieldRef::Null), (6, FieldRef::External { prefix: b"pre", reference: &reference })];
        builder.fields(changed.iter().copied());
        builder.fields([(4, FieldRef::Inline(&[9; 200]))].iter().copied());
        builder.finish();
        let mut builder = UndoBuilder::new(&mut second, UndoKind::Insert, 1);
        builder.key([FieldRef::Inline(b"other")].into_iter());
        builder.finish();

        let page = [vec![0; 10], first.clone(), second.clone()].concat();
        let record = UndoRecord::parse(bytes_at(&page, 10).unwrap()).unwrap();
        assert_eq!((record.kind, record.table, record.old_deleted), (UndoKind::Update, 300, true));
        assert_eq!((record.old_trx_id, record.old_roll_ptr), (77, 0x86_0000_012D_0110));
        assert_eq!(record.old_field(1), Some(FieldRef::Inline(b"")));
        assert_eq!(record.old_field(6), Some(changed[1].1));
        assert_eq!(record.old_field(4), Some(FieldRef::Inline(&[9; 200])));
        assert_eq!(record.old_field(7), None);
        assert_eq!(start_before(&page, page.len()), Some(10 + first.len()));
        assert_eq!(start_before(&page, 10 + first.len()), Some(10));
    }

    #[test]
    fn damaged_bytes_are_refused_not_trusted() {
        let mut bytes = Vec::new();
        let mut builder = UndoBuilder::new(&mut bytes, UndoKind::DeleteMark, 1 << 40);
        builder.old_version(false, 1, 2);
        builder.key([FieldRef::Inline(b"abc")].into_iter());
        builder.fields([].iter().copied());
        builder.fields([(3, FieldRef::Inline(b"xyz"))].iter().copied());
        builder.finish();
        assert!(UndoRecord::parse(&bytes).is_some());
        for length in 0..bytes.len() {
            assert!(UndoRecord::parse(&bytes[..length]).is_none(), "cut to {length} bytes");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xFF;
            let _ = UndoRecord::parse(&damaged); // must not panic
            let _ = bytes_at(&damaged, 0);
        }
    }
}
