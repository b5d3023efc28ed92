//! ALTER TABLE: the definition of a table that has rows becomes another one.
//!
//! A [`TableChange`] holds the table while a caller looks at its definition and makes the new one. Then there
//! are three ways, and the caller chooses (SQL does in `session/alter`):
//!
//! - [`TableChange::redefine`]: pages are not concerned (names, defaults, comments, a longer VARCHAR). One
//!   change of the catalog.
//! - [`TableChange::change_indexes`]: trees of secondary indexes come and go ([`crate::index_build`]).
//! - [`TableChange::rebuild`]: each row is read, converted and written to a new file ([`crate::rebuild`]).
//!
//! **Locks.** From the beginning of the change nobody else changes rows: it has a read lock of the table's
//! name, as LOCK TABLES … READ does. Others read on while rows are copied. Only at its end, for a moment, the
//! change needs the table alone, and takes the name exclusively without letting the read lock go; just before
//! that it locks the tables that its foreign keys concern ([`crate::foreign_key`]). Two changes
//! of one table would wait for each other there, so they take turns, by the lock of a name that no table can
//! have.

use std::sync::Arc;

use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::foreign_key::{self, ColumnChange, RelatedTables};
use crate::layout;
use crate::metadata_deadlock::MetadataOwner;
use crate::metadata_lock::{MetadataExclusive, MetadataLock, MetadataReadLock};
use crate::schema::{ForeignKey, KeyDef, TableDef};
use crate::table::Table;

/// Stands before a table's name in the name whose lock changes of the table take in turns.
const TURN: char = '\0';

/// A table whose definition is about to change. Nobody else changes its rows or its definition until this is
/// dropped.
#[must_use = "nothing changes before one of its methods is called"]
pub struct TableChange<'a> {
    pub(crate) definitions: Definitions<'a>,
    pub(crate) table: Arc<Table>,
    pub(crate) lock: ChangeLock,
}

/// The lock of a change.
pub(crate) struct ChangeLock {
    name: Arc<MetadataLock>,
    owner: Arc<MetadataOwner>,
    held: Held,
    _turn: Option<MetadataExclusive>,
}

enum Held {
    /// Others may read.
    Reading(MetadataReadLock),
    Exclusive(MetadataExclusive),
}

impl ChangeLock {
    /// Waits until nobody else uses the table.
    pub async fn make_exclusive(&mut self, definitions: Definitions<'_>) -> Result<()> {
        let Held::Reading(read_lock) = &self.held else { return Ok(()) };
        let own = definitions.session.map_or(0, |session| session.uses_of(&self.name));
        let deadline = definitions.now().saturating_add(definitions.timeout);
        let mut request = self.name.request_exclusive(&self.owner);
        let exclusive = loop {
            match request.grant_above(read_lock, own) {
                Ok(exclusive) => break exclusive,
                Err(blocked) => definitions.wait_for_name(blocked, deadline).await?,
            }
        };
        self.held = Held::Exclusive(exclusive);
        Ok(())
    }
}

impl<'a> Definitions<'a> {
    /// Begins to change a table's definition: waits until nobody has uncommitted changes in it.
    ///
    /// # Errors
    /// No such table, [`Error::TablespaceDiscarded`], [`Error::UncommittedChanges`] of the session, a
    /// timeout, a deadlock.
    pub async fn change_table(self, database: &str, name: &str) -> Result<TableChange<'a>> {
        self.database.table(database, name)?;
        let lock = self.lock_for_change(database, name).await?;
        let table = self.database.table(database, name)?;
        if table.def.discarded {
            return Err(table.discarded_error());
        }
        Ok(TableChange { definitions: self, table, lock })
    }

    async fn lock_for_change(self, database: &str, name: &str) -> Result<ChangeLock> {
        let (owner, deadline) = (self.owner(), self.now().saturating_add(self.timeout));
        let lock = self.database.name_lock(database, name);
        if self.session.is_some_and(|session| session.exclusive_hold(&lock).is_some()) {
            let held = Held::Exclusive(self.lock_exclusively(&lock, &owner, deadline).await?);
            return Ok(ChangeLock { name: lock, owner, held, _turn: None });
        }
        let used = self.session.is_some_and(|session| session.uses_of(&lock) > 0);
        if used && self.session.is_some_and(|session| session.engine().has_log()) {
            return Err(Error::UncommittedChanges);
        }
        let turn = self.database.name_lock(database, &format!("{TURN}{name}"));
        let turn = self.lock_exclusively(&turn, &owner, deadline).await?;
        let mut request = lock.request_read_lock(&owner);
        let read_lock = loop {
            match request.grant() {
                Ok(read_lock) => break read_lock,
                Err(blocked) => self.wait_for_name(blocked, deadline).await?,
            }
        };
        Ok(ChangeLock { name: lock, owner, held: Held::Reading(read_lock), _turn: Some(turn) })
    }
}

impl TableChange<'_> {
    /// The table as it is.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The AUTO_INCREMENT number that the next row would get; 1 without such a column.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn next_number(&self) -> Result<u64> {
        let Some(counter) = &self.table.auto_increment else { return Ok(1) };
        let store = &self.definitions.database.0.store;
        counter.load(store).await?;
        Ok(counter.next(store))
    }

    /// Gives the table a definition that says the same of its rows and indexes as they lie on pages:
    /// [`TableDef::stores_alike`]. `next_number`, if given, is what ALTER TABLE … AUTO_INCREMENT says.
    ///
    /// # Errors
    /// A definition that is not valid, or says something else; a timeout, a deadlock, a catalog that cannot
    /// be written. The table is as it was then.
    pub async fn redefine(mut self, def: TableDef, next_number: Option<u64>) -> Result<()> {
        let engine = self.definitions.database.clone();
        def.validate_for(engine.0.store.page_size().bytes())?;
        let origins = in_place(&self.table.def);
        let def = self.with_foreign_keys(def, &origins)?;
        if !self.table.def.stores_alike(&def) {
            return Err(Error::Internal(format!(
                "the new definition of '{}' does not fit the pages it has",
                self.table.name
            )));
        }
        let rows = engine.assemble_table(&self.table.database, &self.table.name, def.clone()).await?;
        let related = self.definitions.lock_related_tables(&self.table, &rows, &origins).await?;
        self.lock.make_exclusive(self.definitions).await?;
        let (table, lock) = (self.table, self.lock);
        self.definitions
            .database
            .run_to_the_end(async move {
                let _lock = lock;
                engine.redefine_locked(&table, def, next_number, &related).await
            })
            .await
    }

    /// The definition, with foreign keys that have followed their columns, unless one of them, on either
    /// side, forbids it. No foreign key to the table comes or goes as long as the change holds it: that would
    /// take its name exclusively.
    pub(crate) fn with_foreign_keys(&self, mut def: TableDef, origins: &[Option<u16>]) -> Result<TableDef> {
        let data = self.definitions.database.0.catalog.snapshot();
        let name = (self.table.database.as_str(), self.table.name.as_str());
        def.foreign_keys = ColumnChange { before: &self.table.def, after: &def, origins }.foreign_keys(name);
        let change = ColumnChange { before: &self.table.def, after: &def, origins };
        foreign_key::validate_change(&data, name, &change, !self.definitions.checks_foreign_keys())?;
        Ok(def)
    }

    /// Drops secondary indexes and adds others, as [`Definitions::change_indexes`] does, and in the same
    /// moment changes the table's foreign keys.
    ///
    /// # Errors
    /// As [`Definitions::change_indexes`] and [`Definitions::change_foreign_keys`].
    pub async fn change_indexes(
        mut self,
        added: Vec<KeyDef>,
        dropped: &[&str],
        foreign_keys: Option<Vec<ForeignKey>>,
    ) -> Result<()> {
        self.lock.make_exclusive(self.definitions).await?;
        let ChangeLock { held, _turn, .. } = self.lock;
        let Held::Exclusive(exclusive) = held else {
            return Err(Error::Internal("a change of a table has no lock".to_owned()));
        };
        let foreign_keys = foreign_keys.unwrap_or_else(|| self.table.def.foreign_keys.clone());
        self.definitions.change_indexes_locked(&self.table, exclusive, added, dropped, foreign_keys).await
    }
}

/// The columns stay where they are.
pub(crate) fn in_place(def: &TableDef) -> Vec<Option<u16>> {
    (0..def.columns.len() as u16).map(Some).collect()
}

impl Database {
    async fn redefine_locked(
        &self,
        table: &Arc<Table>,
        def: TableDef,
        next_number: Option<u64>,
        related: &RelatedTables,
    ) -> Result<()> {
        if let Some(next) = next_number {
            self.set_counter(table, next).await?;
        }
        // Purge may be at work on the table; it goes on with the new definition.
        let _purge = self.0.system.pause_purge().await;
        self.store_counter(table).await?;
        let fresh = self.assemble_table(&table.database, &table.name, def).await?;
        fresh.continue_counts(table);
        self.0.catalog.change(|change| {
            related.put(change)?;
            change.put_table(&table.database, &table.name, Arc::new(fresh.def.clone()))
        })?;
        self.publish_table(&fresh);
        related.publish(self);
        self.definitions_changed();
        Ok(())
    }
}

impl TableDef {
    /// Whether rows and entries of indexes lie on pages under this definition as under the other, with the
    /// same meaning: what differs, if anything, is only said in the catalog.
    pub fn stores_alike(&self, other: &TableDef) -> bool {
        let identity = |def: &TableDef| (def.id, def.space, def.hidden_clustered, def.discarded, def.born);
        let columns = self.columns.iter().zip(&other.columns);
        let same_columns = self.columns.len() == other.columns.len()
            && columns.clone().all(|(old, new)| old.nullable == new.nullable && old.stores_alike(new));
        let keys = self.keys.iter().zip(&other.keys);
        let same_keys = self.keys.len() == other.keys.len()
            && keys.clone().all(|(old, new)| old.as_stored() == new.as_stored());
        // Fields have one way of storing their lengths, which depends on the longest value.
        let same_fields = |old: btree::IndexDef, new: btree::IndexDef| {
            old.fields.iter().zip(&new.fields).all(|(old, new)| {
                (old.fixed_len, old.big, old.compare, old.prefix_len)
                    == (new.fixed_len, new.big, new.compare, new.prefix_len)
            })
        };
        identity(self) == identity(other)
            && same_columns
            && same_keys
            && same_fields(layout::clustered(self).def, layout::clustered(other).def)
            && keys.clone().all(|(old, new)| {
                same_fields(layout::secondary(self, old).def, layout::secondary(other, new).def)
            })
    }
}
