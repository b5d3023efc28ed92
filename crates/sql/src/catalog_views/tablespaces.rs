//! `information_schema.INNODB_TABLESPACES`: the files of tables and of the undo logs.
//!
//! Columns are MySQL's. Which version of a server made a file is not written in it here: SERVER_VERSION is
//! NULL, and SPACE_VERSION, which cannot be, is 0.

use untorn::tablespaces::Tablespace;

use super::declared::{nullable, preset, required};
use super::{INFORMATION_SCHEMA, RowSource, View, number, text};
use crate::context::SqlContext;
use crate::value::Value;

fn tablespaces(state: &SqlContext) -> RowSource {
    let page_bytes = state.database.store().page_size().bytes();
    Box::new(state.database.tablespaces().map(move |of: Tablespace| {
        let is_table = of.table.is_some();
        let size = |part: fn(&untorn::tablespaces::FileSize) -> u64| number(of.size.as_ref().map_or(0, part));
        vec![
            number(of.space),
            text(&*of.name),
            number(of.flags),
            if is_table { text("Dynamic") } else { text("Undo") },
            number(page_bytes),
            number(0u64),
            text(if is_table { "Single" } else { "Undo" }),
            size(|size| size.block),
            size(|size| size.bytes),
            size(|size| size.allocated),
            number(0u64),
            Value::Null,
            number(0u64),
            text("N"),
            text(match of.size {
                Some(_) if is_table => "normal",
                Some(_) => "active",
                None => "discarded",
            }),
        ]
    }))
}

pub(super) static VIEWS: &[View] = &[View {
    database: INFORMATION_SCHEMA,
    name: "INNODB_TABLESPACES",
    columns: &[
        ("SPACE", preset("", required("int unsigned"))),
        ("NAME", preset("", required("varchar(655)"))),
        ("FLAG", preset("", required("int unsigned"))),
        ("ROW_FORMAT", preset("", nullable("varchar(22)"))),
        ("PAGE_SIZE", preset("", required("int unsigned"))),
        ("ZIP_PAGE_SIZE", preset("", required("int unsigned"))),
        ("SPACE_TYPE", preset("", nullable("varchar(10)"))),
        ("FS_BLOCK_SIZE", preset("", required("int unsigned"))),
        ("FILE_SIZE", preset("", required("bigint unsigned"))),
        ("ALLOCATED_SIZE", preset("", required("bigint unsigned"))),
        ("AUTOEXTEND_SIZE", preset("", required("bigint unsigned"))),
        ("SERVER_VERSION", preset("", nullable("varchar(10)"))),
        ("SPACE_VERSION", preset("", required("int unsigned"))),
        ("ENCRYPTION", preset("", nullable("varchar(1)"))),
        ("STATE", preset("", nullable("varchar(10)"))),
    ],
    make: tablespaces,
}];
