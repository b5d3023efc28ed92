//! The definition of an index: its fields in storage order and what follows from them.
//!
//! Storage order is InnoDB's. Clustered: key columns, `DB_TRX_ID`, `DB_ROLL_PTR`, all other columns in table
//! order. Secondary: key columns, then those primary key columns that are not already present in full.
//!
//! Everything that record access needs per field (position of the NULL bit, constant offset while all fields
//! before are fixed) is worked out once here, so that reading a field of a record is arithmetic.

use crate::field::{Comparison, FieldDef};

/// Bytes of `DB_TRX_ID`.
pub const TRX_ID_SIZE: usize = 6;
/// Bytes of `DB_ROLL_PTR`.
pub const ROLL_PTR_SIZE: usize = 7;

/// What is known of a field before any record is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldLayout {
    /// Fixed size, or `VARIABLE`.
    pub fixed_len: u16,
    /// Number of the field's bit in the NULL bitmap, or `NOT_NULLABLE`.
    pub null_bit: u16,
    /// Offset from the record origin when all fields before are fixed and NOT NULL, or `UNKNOWN_OFFSET`.
    pub offset: u16,
    /// One or two length bytes.
    pub long_length: bool,
}

/// What the first eight bytes of a key's order are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// Nothing: the order of the first field is not that of its bytes.
    None,
    /// This number of bytes, of fields whose sizes are fixed and whose order is that of their bytes.
    Fixed(u8),
    /// The first field varies in length; bytes that it does not have count as zero.
    Varying,
}

pub(crate) const VARIABLE: u16 = u16::MAX;
pub(crate) const NOT_NULLABLE: u16 = u16::MAX;
pub(crate) const UNKNOWN_OFFSET: u16 = u16::MAX;

/// An index as the tree sees it. Made by [`IndexDef::new`], immutable, shared in an `Arc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// Index id as stored in every page of the tree.
    pub id: u64,
    /// Name for messages.
    pub name: String,
    /// Whether SQL declared it unique.
    pub unique: bool,
    /// Whether its leaves are the rows of the table.
    pub clustered: bool,
    /// All fields in storage order.
    pub fields: Vec<FieldDef>,
    /// How many leading fields make a key unique in the tree: the primary key columns in a clustered index,
    /// all fields in a secondary one. They are also the fields of a node pointer.
    pub n_unique: usize,
    /// How many leading fields the user declared (`n_user_key <= n_unique`); uniqueness in the SQL sense is
    /// over these.
    pub n_user_key: usize,
    pub(crate) layout: Vec<FieldLayout>,
    pub(crate) n_nullable: usize,
    /// Sum of field sizes when all fields are fixed and NOT NULL.
    pub(crate) fixed_data_size: Option<u16>,
    /// Size of the key part when all key fields are fixed, NOT NULL and compare byte by byte: such keys are
    /// compared without looking at the variable part of the record at all.
    pub(crate) memcmp_key_size: Option<u16>,
    pub(crate) head: HeadKind,
}

impl IndexDef {
    /// Builds a definition from the fields in storage order.
    ///
    /// # Panics
    /// When the counts do not fit the fields: that is an error of the caller's catalog code, not of data.
    pub fn new(
        id: u64,
        name: &str,
        unique: bool,
        clustered: bool,
        fields: Vec<FieldDef>,
        n_unique: usize,
        n_user_key: usize,
    ) -> IndexDef {
        assert!(n_unique >= 1 && n_unique <= fields.len() && n_user_key <= n_unique);
        assert!(clustered || n_unique == fields.len(), "all fields of a secondary index belong to its key");
        assert!(!clustered || fields.len() >= n_unique + 2, "a clustered index has two system fields");
        let mut layout = Vec::with_capacity(fields.len());
        let mut n_nullable = 0u16;
        let mut offset = Some(0u16);
        for field in &fields {
            let null_bit = if field.nullable {
                n_nullable += 1;
                n_nullable - 1
            } else {
                NOT_NULLABLE
            };
            layout.push(FieldLayout {
                fixed_len: field.fixed_len.unwrap_or(VARIABLE),
                null_bit,
                offset: offset.unwrap_or(UNKNOWN_OFFSET),
                long_length: field.has_long_length(),
            });
            offset = match (offset, field.fixed_len, field.nullable) {
                (Some(at), Some(len), false) => at.checked_add(len),
                _ => None,
            };
        }
        let memcmp_key_size = fields[..n_unique].iter().try_fold(0u16, |sum, field| {
            match (field.fixed_len, field.nullable, field.compare) {
                (Some(len), false, Comparison::Binary) => sum.checked_add(len),
                _ => None,
            }
        });
        IndexDef {
            id,
            name: name.to_owned(),
            unique,
            clustered,
            n_unique,
            n_user_key,
            layout,
            n_nullable: usize::from(n_nullable),
            fixed_data_size: offset,
            memcmp_key_size,
            head: head_kind(&fields[..n_unique]),
            fields,
        }
    }

    /// Number of the `DB_TRX_ID` field; `DB_ROLL_PTR` is the next one. `None` in a secondary index.
    pub fn trx_id_field(&self) -> Option<usize> {
        self.clustered.then_some(self.n_unique)
    }

    /// Bytes of the NULL bitmap, the same in leaf records and node pointers.
    pub(crate) fn null_bytes(&self) -> usize {
        self.n_nullable.div_ceil(8)
    }

    /// An upper bound of the size of a node pointer, in bytes, used to foresee whether a page could absorb
    /// one.
    pub fn node_pointer_size_max(&self) -> usize {
        let fields =
            self.fields[..self.n_unique].iter().map(|field| match (field.fixed_len, field.prefix_len) {
                (Some(len), _) => usize::from(len),
                (None, Some(prefix)) => usize::from(prefix) + 2,
                (None, None) => field.max_len.min(3072) as usize + 2,
            });
        5 + self.null_bytes() + fields.sum::<usize>() + 4
    }
}

fn head_kind(key: &[FieldDef]) -> HeadKind {
    let by_bytes = |field: &&FieldDef| field.compare == Comparison::Binary && !field.nullable;
    match key.first().filter(by_bytes).map(|field| field.fixed_len) {
        None => HeadKind::None,
        Some(None) => HeadKind::Varying,
        Some(Some(_)) => {
            let sizes = key.iter().take_while(by_bytes).map_while(|field| field.fixed_len);
            match sizes.fold(0u16, u16::saturating_add).min(8) {
                0 => HeadKind::None,
                bytes => HeadKind::Fixed(bytes as u8),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_offsets_end_at_the_first_field_that_varies() {
        let def = IndexDef::new(
            1,
            "PRIMARY",
            true,
            true,
            vec![
                FieldDef::fixed("id", 4),
                FieldDef::fixed("DB_TRX_ID", 6),
                FieldDef::fixed("DB_ROLL_PTR", 7),
                FieldDef::fixed("n", 2).nullable(),
                FieldDef::fixed("after", 1),
            ],
            1,
            1,
        );
        let offsets: Vec<u16> = def.layout.iter().map(|field| field.offset).collect();
        assert_eq!(offsets, [0, 4, 10, 17, UNKNOWN_OFFSET]);
        assert_eq!((def.memcmp_key_size, def.fixed_data_size, def.null_bytes()), (Some(4), None, 1));
        assert_eq!(def.trx_id_field(), Some(1));
    }
}
