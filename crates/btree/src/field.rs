//! What one field of an index is, and the values that go into it.
//!
//! A field is described by its *storage* properties only (how many length bytes, may it be NULL, how two
//! values compare): SQL types live in the layers above, which encode a value into InnoDB's storage form
//! before it comes here. The rules are those of the COMPACT and DYNAMIC row formats.

use crate::collation::UnicodeRule;
use crate::collation::latin1::Latin1Rule;

/// How two stored values of a field are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Comparison {
    /// Byte by byte, a shorter value before its extensions: integers (with the flipped sign bit), temporal
    /// types, DECIMAL, BIT, ENUM, SET and all binary strings.
    Binary,
    /// IEEE-754 single precision, little-endian image.
    Float,
    /// IEEE-754 double precision, little-endian image.
    Double,
    /// `utf8mb4_general_ci`: one weight per code point, PAD SPACE.
    Utf8mb4GeneralCi,
    /// `utf8mb4_bin`: code point order, PAD SPACE.
    Utf8mb4Bin,
    /// A collation of `latin1` over its bytes: one weight each, PAD SPACE.
    Latin1(Latin1Rule),
    /// The same order over UTF-8: of values, never of stored fields.
    Latin1Utf8(Latin1Rule),
    /// Single-byte binary collations such as `latin1_bin` and `ascii_bin`: byte order, PAD SPACE.
    BytesPadSpace,
    /// A collation by the Unicode Collation Algorithm.
    Unicode(UnicodeRule),
    /// The same for CHAR, whose trailing spaces are no part of a value but are stored: a collation that does
    /// not pad must not see them.
    UnicodeTrimmed(UnicodeRule),
    /// Byte order without trailing spaces: CHAR in `utf8mb4_0900_bin`.
    BytesTrimmed,
}

/// The description of one index field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDef {
    /// Column name, for messages and reports.
    pub name: String,
    /// Size in bytes when the field is stored with a fixed length; `None` when a length byte is stored.
    /// Fixed columns above 768 bytes are stored as variable ones and must say `None`.
    pub fixed_len: Option<u16>,
    /// Declared maximum of the *column* in bytes (a prefix does not change it). Above 255 the length takes
    /// one or two bytes instead of one.
    pub max_len: u32,
    /// May hold NULL, and so owns a bit of the NULL bitmap.
    pub nullable: bool,
    /// BLOB or TEXT of any size, or a column whose maximum exceeds 255 bytes: it may be stored off-page.
    pub big: bool,
    /// The order of two values.
    pub compare: Comparison,
    /// For a prefix index: bytes of the column kept in this index. The values handed in are already cut.
    pub prefix_len: Option<u16>,
}

impl FieldDef {
    /// A NOT NULL field of `len` bytes ordered byte by byte: integers, dates, DB_TRX_ID and the like.
    pub fn fixed(name: &str, len: u16) -> FieldDef {
        FieldDef {
            name: name.to_owned(),
            fixed_len: Some(len),
            max_len: u32::from(len),
            nullable: false,
            big: false,
            compare: Comparison::Binary,
            prefix_len: None,
        }
    }

    /// A NOT NULL variable-length field of at most `max_len` bytes.
    pub fn variable(name: &str, max_len: u32, compare: Comparison) -> FieldDef {
        FieldDef {
            name: name.to_owned(),
            fixed_len: None,
            max_len,
            nullable: false,
            big: max_len > 255,
            compare,
            prefix_len: None,
        }
    }

    /// The same field, allowing NULL.
    pub fn nullable(mut self) -> FieldDef {
        self.nullable = true;
        self
    }

    /// The same field as BLOB or TEXT: two length bytes when needed, may go off-page.
    pub fn blob(mut self) -> FieldDef {
        self.big = true;
        self
    }

    /// Whether a length above 127 is written in two bytes. One-byte lengths are only used for columns that
    /// can never exceed 255 bytes and are not BLOBs.
    pub fn has_long_length(&self) -> bool {
        self.big || self.max_len > 255
    }
}

/// A value in storage encoding as part of a key; `None` is SQL NULL.
pub type Field<'a> = Option<&'a [u8]>;

/// Size in bytes of the reference that a record keeps to a value stored off-page.
pub const REFERENCE_SIZE: usize = 20;

/// A value in storage encoding as part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRef<'a> {
    /// SQL NULL.
    Null,
    /// The whole value is in the record.
    Inline(&'a [u8]),
    /// Only `prefix` (empty in DYNAMIC) is in the record, the rest is in a chain of pages.
    External {
        /// The bytes kept in the record before the reference.
        prefix: &'a [u8],
        /// Where the rest is; see [`crate::external::Reference`].
        reference: &'a [u8; REFERENCE_SIZE],
    },
}

impl<'a> FieldRef<'a> {
    /// The bytes in the record, without the reference; `None` for NULL.
    pub fn inline(self) -> Field<'a> {
        match self {
            FieldRef::Null => None,
            FieldRef::Inline(bytes) => Some(bytes),
            FieldRef::External { prefix, .. } => Some(prefix),
        }
    }

    /// Whether the value is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, FieldRef::Null)
    }
}

impl<'a> From<Field<'a>> for FieldRef<'a> {
    fn from(field: Field<'a>) -> FieldRef<'a> {
        match field {
            None => FieldRef::Null,
            Some(bytes) => FieldRef::Inline(bytes),
        }
    }
}
