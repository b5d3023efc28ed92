//! The tables that a table's foreign keys lead to, in both directions, in use by a transaction.

use std::sync::Arc;
use std::time::Duration;

use txn::ScanIndex;

use super::{BrokenForeignKey, ForeignKey, covering_index};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::metadata_lock::Access;
use crate::metadata_lock_wait::wait_until;
use crate::schema::TableDef;
use crate::table::Table;
use crate::transaction::{NotUsable, Transaction};

/// A foreign key of a table, with its parent.
pub(crate) struct Parent {
    pub key: ForeignKey,
    /// Numbers of the child's columns, in the order of the key.
    pub columns: Vec<u16>,
    /// The parent and its index; `None` if there is no such table, or it has no rows that could be found.
    pub found: Option<(Arc<Table>, ScanIndex)>,
    /// The parent is the table itself.
    pub is_own: bool,
}

/// A foreign key to a table, with its child.
pub(crate) struct Child {
    pub key: ForeignKey,
    pub table: Arc<Table>,
    pub index: ScanIndex,
    /// Numbers of the child's columns, in the order of the key.
    pub columns: Vec<u16>,
    /// Numbers of the parent's.
    pub referenced: Vec<u16>,
}

impl Child {
    /// The key, as an error names it.
    pub fn broken(&self) -> Box<BrokenForeignKey> {
        Box::new(BrokenForeignKey {
            database: self.table.database.clone(),
            table: self.table.name.clone(),
            key: self.key.clone(),
        })
    }
}

/// The foreign keys of a table and those to it. They stay as they are while the transaction uses the tables.
#[derive(Default)]
pub(crate) struct Relations {
    pub parents: Vec<Parent>,
    pub children: Vec<Child>,
}

fn numbers(def: &TableDef, names: &[String]) -> Option<Vec<u16>> {
    names.iter().map(|name| def.column_number(name)).collect()
}

/// The index that finds rows by these columns.
pub(super) fn index_of(def: &TableDef, columns: &[u16]) -> Option<ScanIndex> {
    let key = covering_index(def, columns)?;
    if def.clustered_key().is_some_and(|clustered| clustered.name == key.name) {
        return Some(ScanIndex::Clustered);
    }
    def.secondary_keys().iter().position(|other| other.name == key.name).map(ScanIndex::Secondary)
}

impl Relations {
    /// Finds the related tables of a table that the transaction uses, and uses them too.
    ///
    /// # Errors
    /// A wait for a definition that takes too long, a deadlock.
    pub async fn of(transaction: &mut Transaction, table: &Arc<Table>) -> Result<Relations> {
        let mut deadline = None;
        // Again whenever a definition has changed before its table was in use.
        loop {
            if let Some(relations) = Relations::attempt(transaction, table, &mut deadline).await? {
                return Ok(relations);
            }
        }
    }

    async fn attempt(
        transaction: &mut Transaction,
        table: &Arc<Table>,
        deadline: &mut Option<Duration>,
    ) -> Result<Option<Relations>> {
        let engine = transaction.database().clone();
        let mut relations = Relations::default();
        for key in &table.def.foreign_keys {
            let is_own = key.refers_to(&table.database, &table.name);
            let parent = match is_own {
                true => Some(table.clone()),
                false => match use_related(transaction, &engine, key.parent(), Access::Read, deadline).await?
                {
                    Use::Changed => return Ok(None),
                    Use::Absent => None,
                    Use::Used(parent) => Some(parent),
                },
            };
            let found = parent.and_then(|parent| {
                let index = index_of(&parent.def, &numbers(&parent.def, &key.referenced)?)?;
                Some((parent, index))
            });
            let Some(columns) = numbers(&table.def, &key.columns) else { return Err(misses(table, key)) };
            relations.parents.push(Parent { key: key.clone(), columns, found, is_own });
        }
        if !table.is_referenced() {
            return Ok(Some(relations));
        }
        let names = engine.0.catalog.snapshot().children_of(&table.database, &table.name);
        for (database, name) in names.iter() {
            let snapshot = engine.0.catalog.snapshot();
            let Some(def) = snapshot.table(database, name) else { return Ok(None) };
            let refers = |key: &&ForeignKey| key.refers_to(&table.database, &table.name);
            let changes = |key: &ForeignKey| key.on_delete.changes_rows() || key.on_update.changes_rows();
            let writes = def.foreign_keys.iter().filter(refers).any(changes);
            let access = if writes { Access::Write } else { Access::Read };
            let child = match (database, name) == (&table.database, &table.name) {
                true => table.clone(),
                false => match use_related(transaction, &engine, (database, name), access, deadline).await? {
                    Use::Changed => return Ok(None),
                    Use::Absent => continue,
                    Use::Used(child) => child,
                },
            };
            for key in child.def.foreign_keys.iter().filter(refers) {
                let (columns, referenced) =
                    (numbers(&child.def, &key.columns), numbers(&table.def, &key.referenced));
                let (Some(columns), Some(referenced)) = (columns, referenced) else {
                    return Err(misses(&child, key));
                };
                let index = index_of(&child.def, &columns).ok_or_else(|| misses(&child, key))?;
                let (key, table) = (key.clone(), child.clone());
                relations.children.push(Child { key, table, index, columns, referenced });
            }
        }
        Ok(Some(relations))
    }
}

impl ForeignKey {
    fn parent(&self) -> (&str, &str) {
        (&self.database, &self.table)
    }
}

fn misses(table: &Table, key: &ForeignKey) -> Error {
    let (database, name) = (&table.database, &table.name);
    Error::Internal(format!("foreign key '{}' of '{database}.{name}' lacks a column or its index", key.name))
}

enum Use {
    Used(Arc<Table>),
    /// There is no such table, or it has no tablespace.
    Absent,
    /// It has been replaced meanwhile.
    Changed,
}

async fn use_related(
    transaction: &mut Transaction,
    engine: &Database,
    (database, name): (&str, &str),
    access: Access,
    deadline: &mut Option<Duration>,
) -> Result<Use> {
    let Ok(table) = engine.table(database, name) else { return Ok(Use::Absent) };
    loop {
        match transaction.use_table_for(&table, access) {
            Ok(()) => return Ok(Use::Used(table)),
            Err(NotUsable::Stale) => return Ok(Use::Changed),
            Err(NotUsable::Discarded) => return Ok(Use::Absent),
            Err(NotUsable::Deadlock) => {
                transaction.engine_mut().roll_back_as_victim().await?;
                return Err(Error::Transaction(txn::Error::Deadlock));
            }
            Err(NotUsable::Wait(wait)) => {
                let environment = engine.environment().clone();
                let patience = transaction.engine().lock_wait_timeout();
                let until = *deadline.get_or_insert_with(|| environment.now().saturating_add(patience));
                let slice = transaction.engine().slice().clone();
                wait_until(&*environment, wait, until, Some(&slice)).await?;
            }
        }
    }
}
