//! System variables that the engine itself follows, from the start and whenever SET GLOBAL changes them.

use std::sync::Arc;

use untorn::Database;

use crate::server::registry::Server;
use crate::variables::Value;

/// As `innodb_io_capacity_max`: the cleaner decides by itself.
const NO_LIMIT: u64 = u32::MAX as u64;

type Apply = fn(&Database, u64);

/// Name, and what a value does.
const SETTINGS: &[(&str, Apply)] = &[
    ("innodb_deadlock_detect", |database, on| database.transaction_system().set_deadlock_detect(on != 0)),
    ("innodb_io_capacity_max", |database, pages| {
        let max = u32::try_from(pages).ok().filter(|pages| u64::from(*pages) < NO_LIMIT);
        database.store().set_io_capacity_max(max);
    }),
];

/// Applies the values as they are and those that come.
pub(super) fn connect(server: &Arc<Server>, database: &Database) {
    for (name, apply) in SETTINGS {
        apply(database, server.variables.number(name));
        let database = database.clone();
        let hook = move |value: &Value| {
            apply(&database, value.as_u64().unwrap_or_default());
            Ok(())
        };
        server.variables.on_change(name, Box::new(hook));
    }
}
