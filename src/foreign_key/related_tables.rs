//! The tables around one whose definition changes.
//!
//! A foreign key that comes or goes concerns its parent, which has children from then on, or none any more; a
//! column that gets another name concerns the tables that refer to it. They are locked by their names, the
//! rows are checked by the keys that are new, and all definitions change in one record of the catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use btree::OwnedKey;
use txn::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex, ScanState};

use super::{BrokenForeignKey, ColumnChange, ForeignKey, validate_change};
use crate::catalog::Change;
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::name_locks::{NameLocks, WantedName};
use crate::schema::TableDef;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::write::copied_columns;

/// Rows looked at between two looks at the parent.
const BATCH_ROWS: usize = 256;

/// The tables related to one whose definition changes, locked until this is dropped.
#[derive(Default)]
pub(crate) struct RelatedTables {
    _locks: NameLocks,
    /// The tables that refer to a column which gets another name, as they will be.
    children: Vec<Arc<Table>>,
    /// The foreign keys that come or go.
    keys: Vec<ForeignKey>,
}

impl RelatedTables {
    /// Puts the definitions that change into the catalog.
    pub fn put(&self, change: &mut Change) -> Result<()> {
        for child in &self.children {
            change.put_table(&child.database, &child.name, Arc::new(child.def.clone()))?;
        }
        Ok(())
    }

    /// The catalog has been changed, and the table is known by its new definition.
    pub fn publish(&self, engine: &Database) {
        for child in &self.children {
            engine.publish_table(child);
        }
        engine.note_references(&self.keys);
    }
}

impl Definitions<'_> {
    /// Locks the tables around one whose definition is about to change. `rows` is where the rows are, under
    /// the new definition; nobody else knows of it yet.
    ///
    /// # Errors
    /// [`Error::ForeignKeyRefused`], [`Error::ForeignKeyParentMissing`] for a row that a new foreign key does
    /// not allow; a timeout, a deadlock, a kill.
    pub(crate) async fn lock_related_tables(
        self,
        table: &Table,
        rows: &Arc<Table>,
        origins: &[Option<u16>],
    ) -> Result<RelatedTables> {
        let engine = self.database;
        let change = ColumnChange { before: &table.def, after: &rows.def, origins };
        let name = (table.database.as_str(), table.name.as_str());
        let (added, gone) = change.exchanged(name);
        if added.is_empty() && gone.is_empty() && !table.is_referenced() {
            return Ok(RelatedTables::default());
        }
        let outside = |key: &&ForeignKey| !key.refers_to(name.0, name.1);
        let parents = added.iter().chain(&gone).filter(outside);
        let parents: Vec<_> = parents.map(|key| WantedName::table(&key.database, &key.table)).collect();
        let locks = loop {
            let known = engine.followers(name, &change);
            let children = known.iter().map(|(database, table)| WantedName::table(database, table));
            let locks = self.lock_names(parents.iter().cloned().chain(children).collect()).await?;
            // Else one has got another name while it was waited for. None comes: that takes this table's
            // name.
            if engine.followers(name, &change).is_subset(&known) {
                break locks;
            }
        };
        let checks = self.checks_foreign_keys();
        validate_change(&engine.0.catalog.snapshot(), name, &change, !checks)?;
        for key in added.iter().filter(|_| checks) {
            engine.check_rows(rows, key, self.session).await?;
        }
        let mut children = Vec::new();
        for (database, name) in engine.followers(name, &change) {
            let child = engine.table(&database, &name)?;
            let mut def = child.def.clone();
            for key in &mut def.foreign_keys {
                if key.refers_to(&table.database, &table.name) {
                    *key = change.followed(key);
                }
            }
            engine.store_counter(&child).await?;
            let fresh = engine.assemble_table(&database, &name, def).await?;
            fresh.continue_counts(&child);
            children.push(fresh);
        }
        Ok(RelatedTables { _locks: locks, children, keys: added.into_iter().chain(gone).collect() })
    }
}

impl Database {
    /// The other tables that refer to a column which gets another name.
    fn followers(&self, name: (&str, &str), change: &ColumnChange<'_>) -> BTreeSet<(String, String)> {
        let data = self.0.catalog.snapshot();
        let children = data.children_of(name.0, name.1);
        let follows = |def: &TableDef| {
            let mut keys = def.foreign_keys.iter().filter(|key| key.refers_to(name.0, name.1));
            keys.any(|key| change.followed(key) != *key)
        };
        let others = children.iter().filter(|(database, table)| (database.as_str(), table.as_str()) != name);
        others
            .filter(|(database, table)| data.table(database, table).is_some_and(|def| follows(def)))
            .cloned()
            .collect()
    }

    /// Checks that each row of a table, which nobody else uses, obeys a new foreign key of it.
    async fn check_rows(
        &self,
        table: &Arc<Table>,
        key: &ForeignKey,
        session: Option<&Transaction>,
    ) -> Result<()> {
        let parent = match key.refers_to(&table.database, &table.name) {
            true => table.clone(),
            false => match self.table(&key.database, &key.table) {
                Ok(parent) => parent,
                Err(Error::NoSuchTable(..) | Error::NoSuchDatabase(..)) => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let refused = || {
            let (database, table) = (table.database.clone(), table.name.clone());
            Error::ForeignKeyParentMissing(Box::new(BrokenForeignKey { database, table, key: key.clone() }))
        };
        let numbers = |def: &TableDef, names: &[String]| -> Vec<u16> {
            names.iter().filter_map(|name| def.column_number(name)).collect()
        };
        let columns = numbers(&table.def, &key.columns);
        let referenced = numbers(&parent.def, &key.referenced);
        let index = super::relations::index_of(&parent.def, &referenced).ok_or_else(refused)?;
        let mut transaction = self.transaction_for(session);
        let mode = ReadMode::Uncommitted;
        let (all, direction) = (KeyRange::all(), Direction::Forward);
        let mut scan = Scan::new(table.rows.clone(), ScanIndex::Clustered, all, direction, mode, false);
        loop {
            let mut rows = Vec::new();
            let state = scan
                .run(transaction.engine_mut(), &mut |row| {
                    rows.push(copied_columns::Copied::of(row, &columns));
                    if rows.len() < BATCH_ROWS { Control::Continue } else { Control::Pause }
                })
                .await?;
            for row in rows {
                let row = row.complete(&mut transaction, &table.rows).await?;
                let fields: Vec<_> = row.iter().map(|field| field.as_deref()).collect();
                if fields.iter().any(Option::is_none) {
                    continue;
                }
                let range = KeyRange::equal(OwnedKey::from_fields(&fields));
                let mut look = Scan::new(parent.rows.clone(), index, range, direction, mode, true);
                let mut found = false;
                look.run(transaction.engine_mut(), &mut |_| {
                    found = true;
                    Control::Stop
                })
                .await?;
                if !found {
                    return Err(refused());
                }
            }
            if state == ScanState::Finished {
                return Ok(());
            }
        }
    }
}
