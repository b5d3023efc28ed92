//! ADD FOREIGN KEY and DROP FOREIGN KEY, for a table that is there.
//!
//! Both tables are locked by their names, the rows are looked through, and one record of the catalog changes
//! the definition. An index that the key needs is made before, as CREATE INDEX makes it; should the key be
//! refused then, it is dropped again, and a crash in between leaves an index too many.

use std::sync::Arc;

use btree::OwnedKey;
use txn::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex, ScanState};

use super::{BrokenForeignKey, ForeignKey, ForeignKeyRefusal, validate};
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::name_locks::{NameLocks, WantedName};
use crate::schema::{KeyDef, TableDef};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::write::row_columns;

/// Rows looked at between two looks at the parent.
const BATCH_ROWS: usize = 256;

impl Definitions<'_> {
    /// Adds foreign keys to a table, after those named in `dropped` are gone. The rows that are there must
    /// obey them, unless the session does not check foreign keys.
    ///
    /// # Errors
    /// [`Error::ForeignKeyRefused`], [`Error::ForeignKeyParentMissing`] for a row without a parent; no such
    /// table, a timeout, a deadlock; the table is as it was.
    pub async fn change_foreign_keys(
        self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        let table = self.database.table(database, name)?;
        let mut def = changed(&table.def, added.clone(), dropped)?;
        let made = def.complete_foreign_keys(database, name);
        // What is wrong now need not wait for an index.
        let may_lack_parent = !self.checks_foreign_keys();
        let snapshot = self.database.0.catalog.snapshot();
        validate(&snapshot, database, name, &def, may_lack_parent)?;
        if !made.is_empty() {
            self.change_indexes(database, name, made.clone(), &[]).await?;
        }
        let changed = self.exchange_foreign_keys(database, name, added, dropped).await;
        if changed.is_err() && !made.is_empty() {
            let made: Vec<&str> = made.iter().map(|key: &KeyDef| key.name.as_str()).collect();
            if let Err(error) = self.change_indexes(database, name, Vec::new(), &made).await {
                tracing::warn!("the index of a refused foreign key of '{database}.{name}' stays: {error}");
            }
        }
        changed
    }

    async fn exchange_foreign_keys(
        self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        let engine = self.database;
        let parent = |key: &ForeignKey| {
            let owner = if key.database.is_empty() { database } else { &key.database };
            WantedName::table(owner, &key.table)
        };
        let mut names = vec![WantedName::table(database, name)];
        names.extend(added.iter().map(parent));
        let old = engine.table(database, name)?;
        let gone = |key: &&ForeignKey| dropped.iter().any(|name| name.eq_ignore_ascii_case(&key.name));
        names.extend(old.def.foreign_keys.iter().filter(gone).map(parent));
        let locks = self.lock_names(names).await?;
        let table = engine.table(database, name)?;
        if table.def.discarded {
            return Err(table.discarded_error());
        }
        let before = table.def.foreign_keys.len() - dropped.len().min(table.def.foreign_keys.len());
        let mut def = changed(&table.def, added, dropped)?;
        let fresh_from = before;
        let made = def.complete_foreign_keys(database, name);
        if !made.is_empty() {
            // It was there a moment ago: another session has dropped it.
            return Err(ForeignKeyRefusal::NeedsIndex(made[0].name.clone()).into());
        }
        validate(&engine.0.catalog.snapshot(), database, name, &def, !self.checks_foreign_keys())?;
        if self.checks_foreign_keys() && def.foreign_keys.len() > fresh_from {
            let known = |key: &&ForeignKey| !table.def.foreign_keys.contains(key);
            for key in def.foreign_keys.iter().filter(known) {
                engine.check_rows(&table, key, self.session).await?;
            }
        }
        let worker = engine.clone();
        engine.run_to_the_end(async move { worker.put_foreign_keys(&table, def, locks).await }).await
    }
}

/// The definition with other foreign keys.
fn changed(def: &TableDef, added: Vec<ForeignKey>, dropped: &[&str]) -> Result<TableDef> {
    let mut def = def.clone();
    for name in dropped {
        let is_it = |key: &ForeignKey| key.name.eq_ignore_ascii_case(name);
        let at = def.foreign_keys.iter().position(is_it);
        let at = at.ok_or_else(|| ForeignKeyRefusal::Missing((*name).to_owned()))?;
        def.foreign_keys.remove(at);
    }
    def.foreign_keys.extend(added);
    Ok(def)
}

impl Database {
    /// Makes a definition the table's, which is locked; only foreign keys differ.
    async fn put_foreign_keys(&self, table: &Arc<Table>, def: TableDef, _locks: NameLocks) -> Result<()> {
        self.store_counter(table).await?;
        let fresh = self.assemble_table(&table.database, &table.name, def).await?;
        fresh.note_rows(table.row_count_estimate() as i64);
        self.0
            .catalog
            .change(|change| change.put_table(&table.database, &table.name, Arc::new(fresh.def.clone())))?;
        self.publish_table(&fresh);
        self.note_references(&table.def.foreign_keys);
        self.note_references(&fresh.def.foreign_keys);
        self.definitions_changed();
        Ok(())
    }

    /// Checks that each row of a table, which nobody else uses, obeys a new foreign key.
    async fn check_rows(
        &self,
        table: &Arc<Table>,
        key: &ForeignKey,
        session: Option<&Transaction>,
    ) -> Result<()> {
        let refused = || {
            let (database, table) = (table.database.clone(), table.name.clone());
            Error::ForeignKeyParentMissing(Box::new(BrokenForeignKey { database, table, key: key.clone() }))
        };
        let parent = self.table(&key.database, &key.table)?;
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
                .run(transaction.rows(), &mut |row| {
                    rows.push(row_columns::Copied::of(row, &columns));
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
                look.run(transaction.rows(), &mut |_| {
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
