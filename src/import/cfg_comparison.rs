//! Whether a `.cfg` file and the table's definition mean the same table.
//!
//! Everything the file says of columns and indexes is compared with what an export of the table would say;
//! the first difference refuses the import (MySQL's error 1808), since its pages would be misread.

use std::path::Path;

use crate::error::{Error, Result};
use crate::export::cfg::{Column, Description, IndexField};

/// Compares what a `.cfg` file says with our definition.
///
/// # Errors
/// [`Error::SchemaMismatch`] with the first thing that differs.
pub(super) fn compare(path: &Path, theirs: &Description, ours: &Description) -> Result<()> {
    let differ = |what: String, theirs: &dyn std::fmt::Debug, ours: &dyn std::fmt::Debug| {
        Err(Error::SchemaMismatch {
            file: path.to_owned(),
            why: format!("{what} is {theirs:?} there and {ours:?} in the table's definition"),
        })
    };
    if theirs.page_size != ours.page_size {
        return differ("the page size".to_owned(), &theirs.page_size, &ours.page_size);
    }
    if theirs.table_flags != ours.table_flags {
        return differ("the row format (table flags)".to_owned(), &theirs.table_flags, &ours.table_flags);
    }
    let names = |description: &Description| -> Vec<String> {
        description.columns.iter().map(|column| column.name.clone()).collect()
    };
    if theirs.columns.len() != ours.columns.len() {
        return differ("the list of columns".to_owned(), &names(theirs), &names(ours));
    }
    for (their, our) in theirs.columns.iter().zip(&ours.columns) {
        if !same_column(their, our) {
            return differ(format!("column {}", our.name), their, our);
        }
    }
    let names = |description: &Description| -> Vec<String> {
        description.indexes.iter().map(|index| index.name.clone()).collect()
    };
    if theirs.indexes.len() != ours.indexes.len() {
        return differ("the list of indexes".to_owned(), &names(theirs), &names(ours));
    }
    for our in &ours.indexes {
        let Some(their) = theirs.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(&our.name))
        else {
            return differ("the list of indexes".to_owned(), &names(theirs), &names(ours));
        };
        if !their.fields.iter().map(field_key).eq(our.fields.iter().map(field_key)) || their.kind != our.kind
        {
            return differ(
                format!("index {}", our.name),
                &(their.kind, &their.fields),
                &(our.kind, &our.fields),
            );
        }
    }
    Ok(())
}

/// Whether two descriptions mean the same column. Letter case of names does not count, nor whether bytes that
/// are compared as they are call themselves unsigned: TIMESTAMP does in MariaDB and does not in MySQL.
fn same_column(a: &Column, b: &Column) -> bool {
    const FIXED_BINARY: u32 = 3;
    const UNSIGNED: u32 = 512;
    let Column { prtype, mtype, len, mbminmaxlen, ind, ord_part, max_prefix, name } = a;
    let ignored = if *mtype == FIXED_BINARY { UNSIGNED } else { 0 };
    (prtype | ignored, *mtype, *len, *mbminmaxlen) == (b.prtype | ignored, b.mtype, b.len, b.mbminmaxlen)
        && (*ind, *ord_part, *max_prefix) == (b.ind, b.ord_part, b.max_prefix)
        && name.eq_ignore_ascii_case(&b.name)
}

fn field_key(field: &IndexField) -> (u32, u32, String) {
    (field.prefix_len, field.fixed_len, field.name.to_ascii_lowercase())
}
