//! `performance_schema.data_locks` and `data_lock_waits`: who holds and wants InnoDB's locks.
//!
//! Columns are MySQL's. Threads are named by their connection's number; there are no events to name.

use untorn::engine::RowLock;
use untorn::row_locks::ListedLock;

use super::ViewType::{Number, Text};
use super::{PERFORMANCE_SCHEMA, RowSource, View, number, text};
use crate::context::SqlContext;
use crate::value::Value;

const ENGINE: &str = "INNODB";

fn lock_row(lock: ListedLock) -> Vec<Value<'static>> {
    let maybe = |name: Option<String>| name.map_or(Value::Null, text);
    let (database, table) = lock.table.unzip();
    vec![
        text(ENGINE),
        text(lock.id),
        number(lock.transaction),
        number(lock.connection),
        Value::Null,
        maybe(database),
        maybe(table),
        Value::Null,
        Value::Null,
        maybe(lock.index),
        number(lock.place),
        text(if lock.is_row { "RECORD" } else { "TABLE" }),
        text(lock.mode),
        text(if lock.waiting { "WAITING" } else { "GRANTED" }),
        maybe(lock.data),
    ]
}

fn data_locks(state: &SqlContext) -> RowSource {
    Box::new(state.database.locks().map(lock_row))
}

fn data_lock_waits(state: &SqlContext) -> RowSource {
    let columns = |lock: &RowLock| {
        [
            text(lock.id()),
            number(lock.owner.shown_id()),
            number(lock.owner.tag()),
            Value::Null,
            number(lock.place()),
        ]
    };
    Box::new(state.database.lock_waits(false).map(move |edge| {
        let both = columns(&edge.wanted).into_iter().chain(columns(&edge.blocking));
        std::iter::once(text(ENGINE)).chain(both).collect()
    }))
}

pub(super) static VIEWS: &[View] = &[
    View {
        database: PERFORMANCE_SCHEMA,
        name: "data_locks",
        columns: &[
            ("ENGINE", Text(32)),
            ("ENGINE_LOCK_ID", Text(128)),
            ("ENGINE_TRANSACTION_ID", Number),
            ("THREAD_ID", Number),
            ("EVENT_ID", Number),
            ("OBJECT_SCHEMA", Text(64)),
            ("OBJECT_NAME", Text(64)),
            ("PARTITION_NAME", Text(64)),
            ("SUBPARTITION_NAME", Text(64)),
            ("INDEX_NAME", Text(64)),
            ("OBJECT_INSTANCE_BEGIN", Number),
            ("LOCK_TYPE", Text(32)),
            ("LOCK_MODE", Text(32)),
            ("LOCK_STATUS", Text(32)),
            ("LOCK_DATA", Text(8192)),
        ],
        make: data_locks,
    },
    View {
        database: PERFORMANCE_SCHEMA,
        name: "data_lock_waits",
        columns: &[
            ("ENGINE", Text(32)),
            ("REQUESTING_ENGINE_LOCK_ID", Text(128)),
            ("REQUESTING_ENGINE_TRANSACTION_ID", Number),
            ("REQUESTING_THREAD_ID", Number),
            ("REQUESTING_EVENT_ID", Number),
            ("REQUESTING_OBJECT_INSTANCE_BEGIN", Number),
            ("BLOCKING_ENGINE_LOCK_ID", Text(128)),
            ("BLOCKING_ENGINE_TRANSACTION_ID", Number),
            ("BLOCKING_THREAD_ID", Number),
            ("BLOCKING_EVENT_ID", Number),
            ("BLOCKING_OBJECT_INSTANCE_BEGIN", Number),
        ],
        make: data_lock_waits,
    },
];
