//! Tables in private databases ([`untorn::private`]): CREATE TABLE … SELECT, and temporary tables.
//!
//! CREATE TABLE … SELECT fills a table that nobody else sees, commits its rows, and moves it to its place. So
//! neither an error nor a crash leaves a table behind, and nobody sees a half-filled one.
//!
//! A temporary table stays in its private database. When it is dropped its name is free at once; the table
//! goes when no open transaction of the session can have changed it. The session waits for none of that: a
//! backup keeps definitions as they are for as long as it takes, and what has to wait is left to a task.

use std::sync::Arc;
use std::time::Duration;

use sql::ast::{self, CreateTable, InsertSource, Query, TableName};
use sql::errors;
use sql::exec::NoSink;
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::plan::created_columns::created_columns;
use sql::plan::source::Source;
use sql::result::SqlError;
use untorn::Table;
use untorn::private;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::Collation;

use super::{Outcome, REPLANS_MAX, Session};

/// The private databases of a session.
#[derive(Default)]
pub(super) struct PrivateDatabases {
    /// How many there were.
    count: u64,
    /// Those that hold temporary tables, or a table that is being made.
    used: Vec<String>,
    /// To be dropped when no transaction is open.
    unused: Vec<String>,
}

/// A table that is to be made.
pub(super) struct NewTable<'c> {
    pub create: &'c CreateTable,
    /// The database that it is to be in.
    pub database: String,
    pub def: TableDef,
    pub auto_increment: Option<u64>,
    /// The names of the columns that the query gives values for.
    pub filled: Vec<String>,
}

impl Session {
    /// The columns of a table that is made of a query.
    pub(super) async fn columns_of_query(&mut self, query: &Query) -> Result<Vec<ColumnDef>, Failure> {
        let query = query.clone();
        let columns = self.planned(move |planner| {
            let plan = planner.select(&query)?;
            planner.check_texts_of_days()?;
            created_columns(&plan)
        });
        let columns = columns.await?;
        Ok(columns.into_inner())
    }

    /// Makes a temporary table, or one that is filled before anybody sees it.
    pub(super) async fn create_privately(&mut self, new: NewTable<'_>) -> Result<Outcome, Failure> {
        let temporary = new.create.temporary;
        if !new.def.foreign_keys.is_empty() {
            return Err(match temporary {
                true => errors::error(errors::CANNOT_ADD_FOREIGN, &[]),
                false => errors::unsupported("a foreign key in CREATE TABLE … SELECT"),
            }
            .into());
        }
        self.drop_unused_private().await;
        let private = self.make_private_database(temporary).await?;
        let made = self.make_in_private(&private, &new).await;
        let placed = match made {
            Ok(changed) if temporary => {
                let NewTable { create, database, .. } = new;
                self.state.temporary.add(database, create.name.name.clone(), private);
                self.state_is_changed();
                return Ok(Outcome::Done(changed));
            }
            Ok(changed) => self.move_to_its_place(&private, &new).await.map(|()| changed),
            Err(failure) => Err(failure),
        };
        self.private.used.retain(|used| *used != private);
        self.private.unused.push(private);
        self.drop_unused_private().await;
        match placed {
            // Another session was faster.
            Err(Failure::Sql(error)) if error.code == errors::TABLE_EXISTS && new.create.if_not_exists => {
                self.state.note(error);
                Ok(Outcome::Done(Changed::default()))
            }
            placed => placed.map(Outcome::Done),
        }
    }

    /// Gives a temporary table another name; it stays in its private database.
    pub(super) async fn rename_temporary(
        &mut self,
        from: &TableName,
        to: &TableName,
        private: &str,
    ) -> Result<(), Failure> {
        self.check_xa_temporary()?;
        let (database, other) = (self.planner().database_of(from)?, self.planner().database_of(to)?);
        if from.name != to.name {
            let (engine, timeout) = (self.state.database.clone(), self.lock_wait_timeout());
            let pair = ((private, &*from.name), (private, &*to.name));
            engine.definitions().session(&self.transaction).timeout(timeout).rename_tables(&[pair]).await?;
        }
        self.state.temporary.remove(&database, &from.name);
        self.state.temporary.add(other, to.name.clone(), private.to_owned());
        self.state_is_changed();
        Ok(())
    }

    async fn make_private_database(&mut self, temporary: bool) -> Result<String, Failure> {
        let prefix = if temporary { private::TEMPORARY } else { private::PREFIX };
        let timeout = self.lock_wait_timeout();
        let engine = self.state.database.clone();
        loop {
            let (id, number) = (self.state.connection.id, self.private.count);
            self.private.count += 1;
            let name = format!("{prefix}{id}-{number}");
            let definitions = engine.definitions().timeout(timeout);
            match definitions.create_database(&name, Collation::Utf8mb4GeneralCi).await {
                // One that a start could not remove yet.
                Err(untorn::Error::DatabaseExists(_)) => {}
                made => {
                    made?;
                    self.private.used.push(name.clone());
                    return Ok(name);
                }
            }
        }
    }

    async fn make_in_private(&mut self, private: &str, new: &NewTable<'_>) -> Result<Changed, Failure> {
        let engine = self.state.database.clone();
        let timeout = self.lock_wait_timeout();
        let name = &new.create.name.name;
        let table = engine
            .definitions()
            .session(&self.transaction)
            .timeout(timeout)
            .create_table(private, name, new.def.clone())
            .await?;
        if let (Some(next), Some(counter)) = (new.auto_increment, &table.auto_increment) {
            counter.used(engine.store(), next.saturating_sub(1)).await?;
        }
        match &new.create.as_query {
            Some(query) => self.fill(&table, query, new).await,
            None => Ok(Changed::default()),
        }
    }

    /// INSERT … SELECT into the new table. Of a temporary table the rows belong to the open transaction.
    async fn fill(
        &mut self,
        table: &Arc<Table>,
        query: &Query,
        new: &NewTable<'_>,
    ) -> Result<Changed, Failure> {
        let create = new.create;
        let insert = ast::Insert {
            table: create.name.clone(),
            columns: new.filled.clone(),
            source: InsertSource::Query(Box::new(query.clone())),
            ignore: create.ignore,
            replace: create.replace,
            on_duplicate: Vec::new(),
            row_alias: None,
        };
        for _ in 0..REPLANS_MAX {
            let (table, insert) = (table.clone(), insert.clone());
            let planned = self
                .planned(move |planner| planner.insert_into(Source::table(table.clone(), None), &insert))
                .await?;
            self.current.stats.reads = planned.unindexed_reads();
            self.ensure_transaction();
            let parameters = self.current.parameters.clone();
            let ran = Box::pin(self.run_in_transaction(&planned, &parameters, &mut NoSink, true)).await;
            match ran {
                Err(Failure::Stale) => {}
                Err(failure) => return Err(failure),
                Ok(outcome) => {
                    if !create.temporary {
                        self.commit().await?;
                    }
                    return Ok(match outcome {
                        Outcome::Done(changed) => changed,
                        _ => Changed::default(),
                    });
                }
            }
        }
        Err(Failure::Stale)
    }

    async fn move_to_its_place(&mut self, private: &str, new: &NewTable<'_>) -> Result<(), Failure> {
        let engine = self.state.database.clone();
        let (timeout, name) = (self.lock_wait_timeout(), &*new.create.name.name);
        let pair = ((private, name), (&*new.database, name));
        engine.definitions().session(&self.transaction).timeout(timeout).rename_tables(&[pair]).await?;
        Ok(())
    }

    /// Drops the temporary table of this name, if there is one.
    pub(super) fn forget_temporary(&mut self, database: &str, name: &str) -> bool {
        let Some(private) = self.state.temporary.remove(database, name) else { return false };
        self.private.used.retain(|used| *used != private);
        self.private.unused.push(private);
        true
    }

    /// Drops what is not used any more, unless a transaction is open that may have changed it.
    pub(super) async fn drop_unused_private(&mut self) {
        if self.transaction.is_active() {
            return;
        }
        let engine = self.state.database.clone();
        // Taken off when it is done: what is cut here is done the next time.
        while let Some(name) = self.private.unused.last().cloned() {
            let at_once = engine.definitions().session(&self.transaction).timeout(Duration::ZERO);
            if at_once.drop_database(&name).await.is_err() {
                engine.drop_private_later(name);
            }
            self.private.unused.pop();
        }
    }

    /// Drops all temporary tables, at the end of the session. The transaction is over.
    pub(super) async fn end_private(&mut self) {
        self.state.temporary.clear();
        let mut used = std::mem::take(&mut self.private.used);
        self.private.unused.append(&mut used);
        self.drop_unused_private().await;
    }

    /// CREATE TEMPORARY TABLE needs a privilege on the database, and none on the table.
    pub(super) fn require_temporary(&self, name: &TableName) -> Result<(), SqlError> {
        let database = self.planner().database_of(name)?;
        self.state.require_on_database(&database, sql::privilege::Privileges::CREATE_TEMPORARY_TABLES)
    }
}
