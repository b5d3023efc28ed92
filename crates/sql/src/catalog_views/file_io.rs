//! `performance_schema.file_summary_by_event_name` and `file_summary_by_instance`: what was done with files.
//!
//! Columns are MySQL's, times picoseconds. Of files that are closed only the sums by event are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use untorn::tablespaces::{FileIo, FileOperations, FileUse, Operations};

use super::declared::{keyed, required, timed_columns};
use super::{PERFORMANCE_SCHEMA, RowSource, View, average, number, picoseconds, text};
use crate::context::SqlContext;
use crate::value::Value;

/// The event of a file: MySQL's where it has one.
fn event_name(of: FileUse) -> &'static str {
    match of {
        FileUse::Data => "wait/io/file/innodb/innodb_data_file",
        FileUse::Log => "wait/io/file/innodb/innodb_log_file",
        FileUse::Doublewrite => "wait/io/file/innodb/innodb_dblwr_file",
        FileUse::Sort => "wait/io/file/innodb/innodb_temp_file",
        FileUse::Extension => "wait/io/file/untorn/buffer_pool_extension",
        FileUse::Other => "wait/io/file/untorn/other",
    }
}

/// COUNT, SUM, MIN, AVG, MAX.
fn times(of: Operations) -> [Value<'static>; 5] {
    let average = average(of.sum, of.count);
    [number(of.count), picoseconds(of.sum), picoseconds(of.least), picoseconds(average), picoseconds(of.most)]
}

/// The columns that both tables end with.
fn operations(of: FileOperations) -> Vec<Value<'static>> {
    let mut columns = Vec::from(times(of.all()));
    for transfers in [of.reads, of.writes] {
        columns.extend(times(transfers));
        columns.push(Value::Int(i64::try_from(transfers.bytes).unwrap_or(i64::MAX)));
    }
    columns.extend(times(of.syncs));
    columns
}

/// Files, and what each is for.
fn files(state: &SqlContext) -> impl Iterator<Item = (FileUse, FileIo)> + 'static {
    let extension: Option<PathBuf> = state.database.extension().file;
    let list = state.database.file_io().into_iter();
    list.map(move |file| (FileUse::of(&file.name, extension.as_deref()), file))
}

fn by_event(state: &SqlContext) -> RowSource {
    let mut sums = BTreeMap::<FileUse, FileOperations>::new();
    for (of, file) in files(state) {
        let sum = sums.entry(of).or_default();
        *sum = sum.and(file.done);
    }
    Box::new(sums.into_iter().map(|(of, done)| {
        let mut row = vec![text(event_name(of))];
        row.extend(operations(done));
        row
    }))
}

fn by_instance(state: &SqlContext) -> RowSource {
    Box::new(files(state).filter_map(|(of, file)| {
        let number_of_opening = file.number?;
        let mut row =
            vec![text(file.name.display().to_string()), text(event_name(of)), number(number_of_opening)];
        row.extend(operations(file.done));
        Some(row)
    }))
}

pub(super) static VIEWS: &[View] = &[
    View {
        database: PERFORMANCE_SCHEMA,
        name: "file_summary_by_event_name",
        columns: timed_columns!(
            [
                ("EVENT_NAME", keyed("PRI", required("varchar(128)"))),
            ];
            "COUNT_STAR", "WAIT";
            "COUNT_READ", "READ", ("SUM_NUMBER_OF_BYTES_READ", required("bigint"));
            "COUNT_WRITE", "WRITE", ("SUM_NUMBER_OF_BYTES_WRITE", required("bigint"));
            "COUNT_MISC", "MISC"
        ),
        make: by_event,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: "file_summary_by_instance",
        columns: timed_columns!(
            [
                ("FILE_NAME", keyed("MUL", required("varchar(512)"))),
                ("EVENT_NAME", keyed("MUL", required("varchar(128)"))),
                ("OBJECT_INSTANCE_BEGIN", keyed("PRI", required("bigint unsigned"))),
            ];
            "COUNT_STAR", "WAIT";
            "COUNT_READ", "READ", ("SUM_NUMBER_OF_BYTES_READ", required("bigint"));
            "COUNT_WRITE", "WRITE", ("SUM_NUMBER_OF_BYTES_WRITE", required("bigint"));
            "COUNT_MISC", "MISC"
        ),
        make: by_instance,
    },
];
