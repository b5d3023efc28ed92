//! ALTER TABLE, CREATE INDEX and DROP INDEX.
//!
//! The table is held ([`untorn::TableChange`]), its definition and the clauses make a new definition
//! (`target.rs`), and then the cheapest way that will do is taken: only the catalog changes, or secondary
//! indexes come and go, or every row is put through a conversion ([`RowConversion`]) into a new file. The
//! answer's `Records:` counts rows where MySQL copies them, not where we do.
//!
//! Foreign keys come and go with the rest: all of the statement happens in one record of the catalog. Only
//! RENAME TO is a step of its own at the end; a name that is taken is refused before anything is done.

mod columns;
mod keys;
mod target;

use std::sync::Arc;

use untorn::schema::{KeyDef, TableDef};
use untorn::{Rebuild, Table, TableChange};

use self::target::Target;
use super::definition::check_table_name;
use super::{Outcome, Session};
use sql::ast::{AlterTable, Alteration, TableName};
use sql::errors;
use sql::exec::insert::Changed;
use sql::exec::row_conversion::{Conversion, RowConversion};
use sql::failure::Failure;
use sql::failure::duplicate_key::duplicate_in;
use sql::result::SqlError;

/// How a table gets its new definition.
enum Algorithm {
    /// It has it.
    Nothing,
    /// By a change of the catalog.
    Redefine,
    /// Keys that are new, and names of those that go.
    Indexes(Vec<KeyDef>, Vec<String>),
    /// Row by row.
    Rebuild,
}

fn done(records: u64, warnings: u64) -> Outcome {
    let info = format!("Records: {records}  Duplicates: 0  Warnings: {warnings}");
    Outcome::Done(Changed { affected: records, info, ..Changed::default() })
}

impl Algorithm {
    /// The cheapest one.
    fn of(old: &TableDef, target: &Target) -> Algorithm {
        let new = &target.def;
        let in_place = target.origins.iter().enumerate().all(|(at, origin)| *origin == Some(at as u16))
            && target.origins.len() == old.columns.len();
        if !in_place || target.rebuild || target.verify {
            return Algorithm::Rebuild;
        }
        let numbers = |def: &TableDef| def.auto_increment_column();
        let generated = |def: &TableDef| -> Vec<Option<String>> {
            def.columns.iter().map(|column| column.generated.clone()).collect()
        };
        let newly_generated =
            generated(new).iter().zip(generated(old)).any(|(new, old)| new.is_some() && *new != old);
        if newly_generated || numbers(new).is_some() && numbers(new) != numbers(old) {
            return Algorithm::Rebuild;
        }
        if old == new {
            return if target.next_number.is_some() { Algorithm::Redefine } else { Algorithm::Nothing };
        }
        if old.stores_alike(new) {
            return Algorithm::Redefine;
        }
        let foreign_keys = old.foreign_keys.clone();
        let only_keys = TableDef { keys: old.keys.clone(), foreign_keys, ..new.clone() } == *old;
        let clustered = |def: &TableDef| def.clustered_key().cloned();
        let is_new = |key: &&KeyDef| key.id == 0;
        let kept = new.keys.iter().filter(|key| !is_new(key)).all(|key| old.keys.contains(key));
        if !only_keys || !kept || clustered(old) != clustered(new) {
            return Algorithm::Rebuild;
        }
        let gone = |key: &&KeyDef| new.keys.iter().all(|other| other.id != key.id);
        let dropped = old.keys.iter().filter(gone).map(|key| key.name.clone()).collect();
        Algorithm::Indexes(new.keys.iter().filter(is_new).cloned().collect(), dropped)
    }

    /// Whether ALGORITHM and LOCK go with it.
    fn allowed(&self, alter: &AlterTable, target: &Target) -> Result<(), SqlError> {
        let algorithm = alter.algorithm.as_deref().unwrap_or("DEFAULT");
        let lock = alter.lock.as_deref().unwrap_or("DEFAULT");
        if algorithm == "INSTANT" && lock != "DEFAULT" {
            let usage: [&dyn std::fmt::Display; 2] = [&"ALGORITHM=INSTANT", &"LOCK=NONE/SHARED/EXCLUSIVE"];
            return Err(errors::error(errors::WRONG_USAGE, &usage));
        }
        let refused = |what: &str, why: &str, instead: &str| {
            errors::error(errors::ALTER_OPERATION_NOT_SUPPORTED_REASON, &[&what, &why, &instead])
        };
        match (self, algorithm) {
            (Algorithm::Rebuild, "INSTANT") if target.converts => Err(refused(
                "ALGORITHM=INSTANT",
                "Need to rebuild the table to change column type",
                "ALGORITHM=COPY/INPLACE",
            )),
            (Algorithm::Rebuild | Algorithm::Indexes(..), "INSTANT") => {
                let instead = "ALGORITHM=COPY/INPLACE";
                Err(errors::error(errors::ALTER_OPERATION_NOT_SUPPORTED, &[&"ALGORITHM=INSTANT", &instead]))
            }
            (Algorithm::Rebuild, "INPLACE" | "NOCOPY") if target.converts => Err(refused(
                &format!("ALGORITHM={algorithm}"),
                "Cannot change column type INPLACE",
                "ALGORITHM=COPY",
            )),
            (Algorithm::Rebuild, _) if lock == "NONE" => {
                Err(refused("LOCK=NONE", "COPY algorithm requires a lock", "LOCK=SHARED"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether ALGORITHM goes with a temporary table, whose rows are always copied. Nobody else could wait for
/// it.
fn allowed_of_temporary(alter: &AlterTable) -> Result<(), SqlError> {
    let algorithm = alter.algorithm.as_deref().unwrap_or("DEFAULT");
    match algorithm {
        "DEFAULT" | "COPY" => Ok(()),
        _ => {
            let said = format!("ALGORITHM={algorithm}");
            Err(errors::error(errors::ALTER_OPERATION_NOT_SUPPORTED, &[&said, &"ALGORITHM=COPY"]))
        }
    }
}

/// Why a rebuild failed.
enum Ended {
    Engine(untorn::Error),
    Sql(SqlError),
}

impl From<untorn::Error> for Ended {
    fn from(error: untorn::Error) -> Ended {
        Ended::Engine(error)
    }
}

impl Session {
    pub(super) async fn alter_table(&mut self, alter: &AlterTable) -> Result<Outcome, Failure> {
        self.refuse_view(&alter.table)?;
        let table = self.planner().engine_table(&alter.table)?;
        let tablespace = |change: &Alteration| {
            matches!(change, Alteration::DiscardTablespace | Alteration::ImportTablespace)
        };
        if alter.changes.iter().any(tablespace) {
            return match &alter.changes[..] {
                [Alteration::DiscardTablespace] => {
                    self.discard_tablespace(&alter.table).await.map(|()| done(0, 0))
                }
                [Alteration::ImportTablespace] => {
                    self.import_tablespace(&alter.table).await?;
                    Ok(done(0, self.state.warning_count.get()))
                }
                _ => Err(errors::error(errors::WRONG_USAGE, &[&"TABLESPACE", &"other changes"]).into()),
            };
        }
        let renamed = self.new_name(&table, alter)?;
        let only_renamed =
            |change: &Alteration| matches!(change, Alteration::RenameTo(_) | Alteration::Nothing);
        let outcome = match alter.changes.iter().all(only_renamed) {
            true => Outcome::Done(Changed::default()),
            false => self.change_definition(alter).await?,
        };
        match renamed {
            Some(to) if untorn::private::is_private(&table.database) => {
                self.rename_temporary(&alter.table, &to, &table.database).await?;
            }
            Some(to) => self.rename(&[(alter.table.clone(), to)]).await?,
            None => {}
        }
        Ok(outcome)
    }

    /// The name that RENAME TO gives, if it is another one.
    fn new_name(&self, table: &Table, alter: &AlterTable) -> Result<Option<TableName>, SqlError> {
        let mut names = alter.changes.iter().filter_map(|change| match change {
            Alteration::RenameTo(to) => Some(to),
            _ => None,
        });
        let Some(to) = names.next_back() else { return Ok(None) };
        let (was_in, database) = (self.planner().database_of(&alter.table)?, self.planner().database_of(to)?);
        if database == was_in && to.name == table.name {
            return Ok(None);
        }
        check_table_name(&to.name)?;
        let engine = &self.state.database;
        if engine.database(&database).is_none() {
            return Err(errors::error(errors::BAD_DB, &[&database]));
        }
        let taken = match untorn::private::is_private(&table.database) {
            true => self.state.temporary.find(&database, &to.name).is_some(),
            false => engine.table(&database, &to.name).is_ok(),
        };
        if taken {
            return Err(errors::error(errors::TABLE_EXISTS, &[&to.name]));
        }
        Ok(Some(to.clone()))
    }

    /// CREATE INDEX and DROP INDEX.
    pub(super) async fn alter_one(
        &mut self,
        table: &TableName,
        change: Alteration,
    ) -> Result<Outcome, Failure> {
        let table = table.clone();
        let alter = AlterTable { table, changes: vec![change], algorithm: None, lock: None };
        self.change_definition(&alter).await
    }

    async fn change_definition(&mut self, alter: &AlterTable) -> Result<Outcome, Failure> {
        self.refuse_view(&alter.table)?;
        let named = self.planner().engine_table(&alter.table)?;
        let engine = self.state.database.clone();
        let timeout = self.lock_wait_timeout();
        let change = engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .change_table(&named.database, &named.name)
            .await?;
        let table = change.table().clone();
        let target = self.target_of(&table, &alter.changes)?;
        // Asked for, and what is always done to a temporary table, is to copy the rows, which are counted.
        let only_named = alter.changes.iter().all(|change| matches!(change, Alteration::RenameTo(_)));
        let is_private = untorn::private::is_private(&table.database);
        let copies = alter.algorithm.as_deref() == Some("COPY") || is_private;
        let copies = copies && !only_named;
        let algorithm = if copies { Algorithm::Rebuild } else { Algorithm::of(&table.def, &target) };
        match is_private {
            true => allowed_of_temporary(alter)?,
            false => algorithm.allowed(alter, &target)?,
        }
        let duplicate = |error: untorn::Error| match error {
            untorn::Error::Transaction(untorn::engine::Error::DuplicateKey { index, entry }) => {
                let zone = self.state.time_zone_offset();
                duplicate_in(&target.def, &table.name, &index, &entry, zone).into()
            }
            other => Failure::from(other),
        };
        let mut records = 0;
        match algorithm {
            Algorithm::Nothing => drop(change),
            Algorithm::Redefine => change.redefine(target.def, target.next_number).await?,
            Algorithm::Indexes(added, dropped) => {
                let dropped: Vec<&str> = dropped.iter().map(String::as_str).collect();
                let foreign_keys = Some(target.def.foreign_keys.clone());
                change.change_indexes(added, &dropped, foreign_keys).await.map_err(duplicate)?;
                if let Some(next) = target.next_number {
                    let definitions = engine.definitions().session(&self.transaction).timeout(timeout);
                    definitions.set_auto_increment(&table.database, &table.name, next).await?;
                }
            }
            Algorithm::Rebuild => {
                let rows = self.rebuild(change, &target).await.map_err(|ended| match ended {
                    Ended::Engine(error) => duplicate(error),
                    Ended::Sql(error) => error.into(),
                })?;
                records = if target.counts_rows || copies { rows } else { 0 };
            }
        }
        Ok(done(records, self.state.warning_count.get()))
    }

    async fn rebuild(&self, change: TableChange<'_>, target: &Target) -> Result<u64, Ended> {
        let table: Arc<Table> = change.table().clone();
        let next_number = match target.next_number {
            Some(next) => next,
            None if target.keeps_counter => change.next_number().await?,
            None => 1,
        };
        let numbers_from = (!target.keeps_counter).then_some(next_number);
        let conversion = Conversion { def: &target.def, origins: &target.origins, numbers_from };
        let mut conversion = RowConversion::new(&self.state, &table, conversion).map_err(Ended::Sql)?;
        let (def, origins) = (target.def.clone(), target.origins.clone());
        let plan = Rebuild { def, origins, copied: conversion.copied(), next_number };
        self.state.connection.set_state("copy to tmp table");
        change.rebuild(plan, |row, new| conversion.convert(row, new).map_err(Ended::Sql)).await
    }

    /// OPTIMIZE TABLE: the same definition, every row rewritten.
    pub(super) async fn recreate(&mut self, name: &TableName) -> Result<(), Failure> {
        self.alter_one(name, Alteration::Rebuild).await.map(|_| ())
    }
}
