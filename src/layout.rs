//! From a table's definition to the definitions of its B-trees.
//!
//! Clustered index: the columns of the clustered key (or the hidden `DB_ROW_ID`), `DB_TRX_ID`, `DB_ROLL_PTR`,
//! then all other columns in table order. Secondary index: its own columns, then those columns of the
//! clustered key that it does not have in full already. This is InnoDB's order, and `.cfg` files describe it
//! the same way.

use btree::{FieldDef, IndexDef};
use txn::{ClusteredField, ROW_ID_COLUMN, SecondaryField};

use crate::schema::{KeyDef, KeyKind, KeyPart, TableDef};

/// The clustered index of a table.
pub struct ClusteredLayout {
    /// For the B-tree.
    pub def: IndexDef,
    /// For each field where it comes from.
    pub sources: Vec<ClusteredField>,
}

/// A secondary index of a table.
pub struct SecondaryLayout {
    /// For the B-tree.
    pub def: IndexDef,
    /// For each field where it comes from.
    pub sources: Vec<SecondaryField>,
}

/// Name of the hidden clustered index, as in InnoDB.
pub const HIDDEN_CLUSTERED: &str = "GEN_CLUST_INDEX";

/// Wider fixed columns are stored like variable ones (InnoDB's DICT_MAX_FIXED_COL_LEN).
const FIXED_BYTES_MAX: u16 = 768;

/// The field of a column, cut to a prefix where one is given.
fn field(table: &TableDef, part: &KeyPart) -> FieldDef {
    let column = &table.columns[usize::from(part.column)];
    let kind = &column.kind;
    let bytes_max = kind.bytes_max();
    let prefix = part.prefix_chars.map(|_| table.key_part_bytes(part) as u16);
    let fixed = kind.fixed_len().filter(|len| *len <= FIXED_BYTES_MAX).map(|len| prefix.unwrap_or(len));
    FieldDef {
        name: column.name.clone(),
        fixed_len: fixed,
        max_len: bytes_max,
        nullable: column.nullable,
        big: kind.is_blob() || bytes_max > 255,
        compare: kind.comparison(),
        prefix_len: prefix,
    }
}

fn secondary_field(table: &TableDef, part: &KeyPart) -> SecondaryField {
    // Where each character is a byte, the bytes say it all.
    let text = table.columns[usize::from(part.column)].kind.collation().bytes_per_char_max() > 1;
    SecondaryField {
        column: part.column,
        prefix_bytes: part.prefix_chars.map(|_| table.key_part_bytes(part) as u16),
        prefix_characters: part.prefix_chars.filter(|_| text).map(|chars| chars as u16),
    }
}

/// The clustered index of a table.
pub fn clustered(table: &TableDef) -> ClusteredLayout {
    let key = table.clustered_key();
    let mut fields = Vec::new();
    let mut sources = Vec::new();
    match key {
        Some(key) => {
            for part in &key.parts {
                fields.push(field(table, part));
                sources.push(ClusteredField::Column(part.column));
            }
        }
        None => {
            fields.push(FieldDef::fixed("DB_ROW_ID", 6));
            sources.push(ClusteredField::RowId);
        }
    }
    let n_key = fields.len();
    fields.push(FieldDef::fixed("DB_TRX_ID", 6));
    sources.push(ClusteredField::TrxId);
    fields.push(FieldDef::fixed("DB_ROLL_PTR", 7));
    sources.push(ClusteredField::RollPtr);
    for column in 0..table.columns.len() as u16 {
        if !sources[..n_key].contains(&ClusteredField::Column(column)) {
            fields.push(field(table, &KeyPart::whole(column)));
            sources.push(ClusteredField::Column(column));
        }
    }
    let (id, name) = match key {
        Some(key) => (key.id, key.name.as_str()),
        None => (table.hidden_clustered.map_or(0, |(id, _)| id), HIDDEN_CLUSTERED),
    };
    ClusteredLayout { def: IndexDef::new(id, name, true, true, fields, n_key, n_key), sources }
}

/// A secondary index of a table.
pub fn secondary(table: &TableDef, key: &KeyDef) -> SecondaryLayout {
    let mut fields = Vec::new();
    let mut sources = Vec::new();
    for part in &key.parts {
        fields.push(field(table, part));
        sources.push(secondary_field(table, part));
    }
    let n_user = fields.len();
    match table.clustered_key() {
        Some(clustered) => {
            for part in &clustered.parts {
                let source = secondary_field(table, part);
                if !sources.contains(&source) {
                    fields.push(field(table, part));
                    sources.push(source);
                }
            }
        }
        None => {
            fields.push(FieldDef::fixed("DB_ROW_ID", 6));
            sources.push(SecondaryField {
                column: ROW_ID_COLUMN,
                prefix_bytes: None,
                prefix_characters: None,
            });
        }
    }
    let n_unique = fields.len();
    let unique = key.kind != KeyKind::Secondary;
    SecondaryLayout {
        def: IndexDef::new(key.id, &key.name, unique, false, fields, n_unique, n_user),
        sources,
    }
}
