//! Handing tables to MySQL and MariaDB: the `.cfg` file that goes with an exported `.ibd`.
//!
//! An Untorn table is a file that those servers import as it is, if the `.cfg` beside it says what their own
//! `CREATE TABLE` would. [`describe`] derives that from the table's definition: InnoDB's main type, precise
//! type and length of each column, which columns order an index, and the fields of each index with their
//! roots.

pub mod cfg;
mod column_code;
mod hold;

pub use hold::ExportHold;
pub(crate) use hold::Still;

use btree::IndexDef;

use self::cfg::{Column, Description, Index, IndexField};
use crate::file_names::file_name;
use crate::layout;
use crate::schema::{KeyKind, TableDef};

/// Table flags of ROW_FORMAT=DYNAMIC: COMPACT record format and off-page columns without local prefix.
const TABLE_FLAGS_DYNAMIC: u32 = 0x21;
/// Bits of an index's type.
const INDEX_CLUSTERED: u32 = 1;
const INDEX_UNIQUE: u32 = 2;

/// What the `.cfg` file of a table says.
///
/// `auto_increment` is the next value (0 for a table that has no such column), `page_size` is in bytes.
pub fn describe(
    table: &TableDef,
    database: &str,
    name: &str,
    host: &str,
    auto_increment: u64,
    page_size: u32,
) -> Description {
    let indexes = indexes(table);
    let mut columns: Vec<Column> = table.columns.iter().map(column_code::column).collect();
    columns.extend(column_code::system_columns());
    for (at, column) in columns.iter_mut().enumerate() {
        column.ind = at as u32;
        note_order(column, &indexes);
    }
    Description {
        host: host.to_owned(),
        table: format!("{}/{}", file_name(database), file_name(name)),
        auto_increment,
        page_size,
        table_flags: TABLE_FLAGS_DYNAMIC,
        columns,
        indexes,
    }
}

/// Whether, and by what longest prefix, the column orders an index.
fn note_order(column: &mut Column, indexes: &[Index]) {
    let ordering = indexes.iter().flat_map(|index| &index.fields[..index.n_unique as usize]);
    let mut prefixes =
        ordering.filter(|field| field.name == column.name).map(|field| field.prefix_len).peekable();
    if prefixes.peek().is_some() {
        column.ord_part = 1;
        let whole_or_longest = prefixes.reduce(|a, b| if a == 0 || b == 0 { 0 } else { a.max(b) });
        column.max_prefix = whole_or_longest.unwrap_or(0);
    }
}

/// The indexes of a table, clustered first, then in key order.
fn indexes(table: &TableDef) -> Vec<Index> {
    let clustered = layout::clustered(table).def;
    let first = match (table.clustered_key(), table.hidden_clustered) {
        (Some(key), _) => index(table, &clustered, INDEX_CLUSTERED | INDEX_UNIQUE, key.root),
        (None, hidden) => index(table, &clustered, INDEX_CLUSTERED, hidden.map_or(0, |(_, root)| root)),
    };
    let secondaries = table.secondary_keys().iter().map(|key| {
        let kind = if key.kind == KeyKind::Secondary { 0 } else { INDEX_UNIQUE };
        index(table, &layout::secondary(table, key).def, kind, key.root)
    });
    std::iter::once(first).chain(secondaries).collect()
}

fn index(table: &TableDef, def: &IndexDef, kind: u32, root: u32) -> Index {
    let clustered = kind & INDEX_CLUSTERED != 0;
    let hidden = clustered && table.clustered_key().is_none();
    let n_unique = match (clustered, def.unique) {
        (true, _) => def.n_unique,
        (false, true) => def.n_user_key,
        (false, false) => def.fields.len(),
    };
    let key = &def.fields[..def.n_unique];
    let key_is_fixed = key.iter().all(|field| field.fixed_len.is_some() && !field.nullable);
    let trx_id_offset: u32 = match clustered && key_is_fixed {
        true => key.iter().filter_map(|field| field.fixed_len).map(u32::from).sum(),
        false => 0,
    };
    Index {
        id: def.id,
        space: table.space,
        root,
        kind,
        trx_id_offset,
        n_user_columns: if hidden { 0 } else { def.n_user_key as u32 },
        n_unique: n_unique as u32,
        n_nullable: def.fields.iter().filter(|field| field.nullable).count() as u32,
        name: def.name.clone(),
        fields: def
            .fields
            .iter()
            .map(|field| IndexField {
                prefix_len: field.prefix_len.map_or(0, u32::from),
                fixed_len: field.fixed_len.map_or(0, u32::from),
                name: field.name.clone(),
            })
            .collect(),
    }
}
