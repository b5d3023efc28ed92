//! The temporary tables of a session: which private database holds the table of a name.

use std::cell::{Cell, RefCell};

/// A temporary table.
struct Temporary {
    database: String,
    name: String,
    /// The private database that holds it.
    private: String,
}

/// See the module's text.
#[derive(Default)]
pub struct TemporaryTables {
    tables: RefCell<Vec<Temporary>>,
    /// Counts changes: what a name means may be another table then.
    version: Cell<u64>,
}

impl TemporaryTables {
    /// The private database of the table that this name means, if it is a temporary one.
    pub fn find(&self, database: &str, name: &str) -> Option<String> {
        let tables = self.tables.borrow();
        let found = tables.iter().find(|table| table.database == database && table.name == name);
        found.map(|table| table.private.clone())
    }

    /// The name means the table of this private database from now on.
    pub fn add(&self, database: String, name: String, private: String) {
        self.tables.borrow_mut().push(Temporary { database, name, private });
        self.version.set(self.version.get() + 1);
    }

    /// Forgets a table; the private database that holds it.
    pub fn remove(&self, database: &str, name: &str) -> Option<String> {
        let mut tables = self.tables.borrow_mut();
        let at = tables.iter().position(|table| table.database == database && table.name == name)?;
        self.version.set(self.version.get() + 1);
        Some(tables.remove(at).private)
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.tables.borrow_mut().clear();
        self.version.set(self.version.get() + 1);
    }

    /// Another one after each change.
    pub fn version(&self) -> u64 {
        self.version.get()
    }
}
