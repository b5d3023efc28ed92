//! The session's transaction: when one begins, with which isolation level, and what commits it.
//!
//! `explicit` is what lies between BEGIN and COMMIT; with `autocommit = 0` a transaction is open from its
//! first statement on. What SET TRANSACTION says of the next transaction holds until that one ends, and for
//! those that follow it by AND CHAIN or BEGIN.
//!
//! Definitions and other commands commit what is open first (`implicit_commit`, called from `commands.rs`).
//! What the client hears of it are the status flags of each answer. Undoing one failed statement is
//! `in_transaction.rs`.

use std::sync::Arc;
use std::time::Duration;

use sql::ast::{self, Scope};
use sql::errors;
use sql::failure::Failure;
use sql::result::{SqlError, status_flag};
use sql::sql_mode;
use untorn::engine::Durability;

use super::commands::done;
use super::tracking::TransactionTracker;
use super::{Outcome, Session};
use crate::variables::{self, GlobalVariables, SessionVariables};

fn isolation(level: variables::Isolation) -> untorn::engine::Isolation {
    match level {
        variables::Isolation::ReadUncommitted => untorn::engine::Isolation::ReadUncommitted,
        variables::Isolation::ReadCommitted => untorn::engine::Isolation::ReadCommitted,
        variables::Isolation::RepeatableRead => untorn::engine::Isolation::RepeatableRead,
        variables::Isolation::Serializable => untorn::engine::Isolation::Serializable,
    }
}

impl Session {
    pub(super) fn in_transaction(&self) -> bool {
        self.explicit || !self.state.settings().autocommit
    }

    /// Starts the transaction that the next statement runs in, if it is not open.
    pub(super) fn ensure_transaction(&mut self) {
        let wait = Duration::from_secs(self.state.settings().innodb_lock_wait_timeout_seconds);
        self.transaction.set_foreign_key_checks(self.state.settings().foreign_key_checks);
        if !self.transaction.is_active() {
            let level = self.next_isolation.unwrap_or(self.state.settings().isolation);
            let in_transaction = self.in_transaction();
            let rows = self.transaction.engine_mut();
            rows.set_isolation(isolation(level));
            rows.set_lock_wait_timeout(wait);
            if in_transaction {
                self.read_only = self.next_read_only.unwrap_or(self.state.settings().read_only);
                // A transaction that follows this one by AND CHAIN or BEGIN is alike.
                (self.next_isolation, self.next_read_only) = (Some(level), Some(self.read_only));
                self.transaction.begin();
            }
        } else {
            self.transaction.engine_mut().set_lock_wait_timeout(wait);
        }
    }

    pub(super) async fn begin(
        &mut self,
        snapshot: bool,
        read_only: Option<bool>,
    ) -> Result<Outcome, Failure> {
        self.commit_open().await?;
        self.release_table_locks();
        self.explicit = true;
        if read_only.is_some() {
            self.next_read_only = read_only;
        }
        self.ensure_transaction();
        if snapshot {
            self.transaction.engine_mut().begin_with_snapshot();
        }
        self.track_transaction(|tracker| tracker.begun(snapshot, read_only));
        Ok(done())
    }

    /// COMMIT.
    pub(super) async fn end_by_commit(&mut self, chain: bool, release: bool) -> Result<Outcome, Failure> {
        self.commit_open().await?;
        self.drop_unused_private().await;
        self.ended(chain, release)
    }

    /// ROLLBACK.
    pub(super) async fn end_by_rollback(&mut self, chain: bool, release: bool) -> Result<Outcome, Failure> {
        self.roll_back().await?;
        self.drop_unused_private().await;
        self.ended(chain, release)
    }

    /// `chain`: another transaction begins that is as this one was.
    fn ended(&mut self, chain: bool, release: bool) -> Result<Outcome, Failure> {
        if chain {
            self.explicit = true;
            self.ensure_transaction();
        } else {
            self.forget_characteristics();
        }
        self.track_transaction(|tracker| tracker.ended(chain));
        if release {
            self.state.connection.release();
        }
        Ok(done())
    }

    pub(super) fn set_transaction(
        &mut self,
        scope: Option<Scope>,
        level: Option<ast::Isolation>,
        read_only: Option<bool>,
    ) -> Result<Outcome, Failure> {
        let Some(scope) = scope else {
            if self.is_within_transaction() {
                return Err(errors::error(errors::CANT_CHANGE_TX_CHARACTERISTICS, &[]).into());
            }
            if let Some(level) = level {
                self.next_isolation = Some(match level {
                    ast::Isolation::ReadUncommitted => variables::Isolation::ReadUncommitted,
                    ast::Isolation::ReadCommitted => variables::Isolation::ReadCommitted,
                    ast::Isolation::RepeatableRead => variables::Isolation::RepeatableRead,
                    ast::Isolation::Serializable => variables::Isolation::Serializable,
                });
            }
            self.next_read_only = read_only.or(self.next_read_only);
            let said = level.is_some().then_some(self.next_isolation).flatten();
            self.track_transaction(|tracker| tracker.characterized(said, read_only));
            return Ok(done());
        };
        let scope = if scope == Scope::Global { variables::Scope::Global } else { variables::Scope::Session };
        if let Some(level) = level {
            let text = match level {
                ast::Isolation::ReadUncommitted => "READ-UNCOMMITTED",
                ast::Isolation::ReadCommitted => "READ-COMMITTED",
                ast::Isolation::RepeatableRead => "REPEATABLE-READ",
                ast::Isolation::Serializable => "SERIALIZABLE",
            };
            let value = variables::Value::Text(Arc::from(text));
            self.set_variable("transaction_isolation", scope, value)?;
            if scope == variables::Scope::Session {
                self.characteristic_is_set("transaction_isolation");
                self.variable_is_set("transaction_isolation");
            }
        }
        if let Some(read_only) = read_only {
            let value = variables::Value::Bool(read_only);
            self.set_variable("transaction_read_only", scope, value)?;
            if scope == variables::Scope::Session {
                self.characteristic_is_set("transaction_read_only");
                self.variable_is_set("transaction_read_only");
            }
        }
        Ok(done())
    }

    /// `SET @@transaction_isolation`, `SET @@transaction_read_only`: of the next transaction alone.
    pub(super) fn characterize_next(&mut self, change: &variables::Change) -> Result<(), SqlError> {
        if self.is_within_transaction() {
            return Err(errors::error(errors::CANT_CHANGE_TX_CHARACTERISTICS, &[]));
        }
        let (mut level, mut read_only) = (None, None);
        match change.value() {
            Some(variables::Value::Text(name)) => level = Some(variables::isolation_of(name)),
            Some(flag) => read_only = flag.as_u64().map(|flag| flag != 0),
            None => {}
        }
        (self.next_isolation, self.next_read_only) =
            (level.or(self.next_isolation), read_only.or(self.next_read_only));
        self.track_transaction(|tracker| tracker.characterized(level, read_only));
        Ok(())
    }

    fn set_variable(
        &mut self,
        name: &str,
        scope: variables::Scope,
        to: variables::Value,
    ) -> Result<(), SqlError> {
        let set =
            |of: &mut SessionVariables, globals: &GlobalVariables| of.set(globals, name, scope, Some(to));
        self.state_mut().change_variables(set)?;
        Ok(())
    }

    /// SAVEPOINT.
    pub(super) fn savepoint(&mut self, name: &str) -> Outcome {
        self.ensure_transaction();
        self.transaction.engine_mut().savepoint(name);
        done()
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(super) async fn roll_back_to(&mut self, name: &str) -> Result<Outcome, Failure> {
        if !self.transaction.engine_mut().rollback_to_savepoint(name).await? {
            return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &name]).into());
        }
        Ok(done())
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<Outcome, Failure> {
        if !self.transaction.engine_mut().release_savepoint(name) {
            return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &name]).into());
        }
        Ok(done())
    }

    /// Whether the transaction that is open, or else the next one, is READ ONLY.
    pub(super) fn is_read_only(&self) -> bool {
        match self.is_within_transaction() {
            true => self.read_only,
            false => self.next_read_only.unwrap_or(self.state.settings().read_only),
        }
    }

    pub(super) fn is_within_transaction(&self) -> bool {
        self.explicit || self.transaction.is_active()
    }

    /// Refuses what a READ ONLY transaction may not do.
    pub(super) fn check_writable(&self) -> Result<(), SqlError> {
        match self.is_read_only() {
            true => Err(errors::error(errors::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[])),
            false => Ok(()),
        }
    }

    /// A session's variable was set: outside a transaction it is newer than what was said of the next one
    /// alone.
    pub(super) fn characteristic_is_set(&mut self, variable: &str) {
        if !self.is_within_transaction() {
            match variable {
                "transaction_isolation" => {
                    self.next_isolation = None;
                    self.track_transaction(|tracker| tracker.forgotten(true, false));
                }
                "transaction_read_only" => {
                    self.next_read_only = None;
                    self.track_transaction(|tracker| tracker.forgotten(false, true));
                }
                _ => {}
            }
        }
    }

    /// What is said of one transaction ends with it.
    pub(super) fn forget_characteristics(&mut self) {
        (self.next_isolation, self.next_read_only) = (None, None);
    }

    /// Outside a transaction, a statement that `reads` tables is the next transaction: what was said of it
    /// counts no longer.
    pub(super) fn use_up_characteristics(&mut self, reads: impl FnOnce() -> bool) {
        let said = self.next_isolation.is_some() || self.next_read_only.is_some();
        if said && !self.in_transaction() && reads() {
            self.forget_characteristics();
            self.track_transaction(TransactionTracker::used_up);
        }
    }

    /// Commits what is open: DDL and the like.
    pub(super) async fn implicit_commit(&mut self) -> Result<(), Failure> {
        let result = self.commit_open().await;
        self.forget_characteristics();
        self.track_transaction(|tracker| tracker.ended(false));
        result
    }

    /// Commits what is open, and keeps what the next transaction is to be like.
    pub(super) async fn commit_open(&mut self) -> Result<(), Failure> {
        if !self.transaction.is_active() {
            self.explicit = false;
            self.read_only = false;
            return Ok(());
        }
        self.begin_commit().await?;
        let result = self.commit().await;
        self.end_change();
        result
    }

    /// Commits what is open.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.explicit = false;
        self.read_only = false;
        let durability = self.durability();
        let committed = self.transaction.commit(durability).await;
        if committed.is_err() && (self.transaction.engine().has_log() || self.transaction.is_active()) {
            // The client is told that it failed: the next statement must not commit it.
            if let Err(error) = self.transaction.rollback().await {
                tracing::error!(%error, "cannot undo a transaction whose commit failed; it is abandoned");
                self.abandon_transaction();
            }
        }
        Ok(committed?)
    }

    /// Rolls back what is open.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.explicit = false;
        self.read_only = false;
        self.transaction.rollback().await?;
        Ok(())
    }

    /// Leaves a transaction that could not be taken back to the engine, which tries in the background and
    /// keeps its locks until then. Going on with it would commit half of a statement.
    pub(super) fn abandon_transaction(&mut self) {
        self.forget_characteristics();
        self.explicit = false;
        self.read_only = false;
        self.track_transaction(|tracker| tracker.lost());
        // Tables held by LOCK TABLES go with it: the rollback still changes them.
        self.table_locks = None;
        self.transaction = self.state.database.transaction();
        self.state.evaluation.set_slice(self.transaction.engine().slice());
        self.transaction.set_session(u64::from(self.state.connection.id));
    }

    pub(super) fn durability(&self) -> Durability {
        match self.state.server.variables.flush_log_at_trx_commit() {
            0 => Durability::NoSync,
            2 => Durability::Write,
            _ => Durability::Sync,
        }
    }

    pub(super) fn flags(&self) -> u16 {
        let mut flags = 0;
        if self.state.settings().autocommit {
            flags |= status_flag::AUTOCOMMIT;
        }
        if self.explicit || (!self.state.settings().autocommit && self.transaction.is_active()) {
            flags |= status_flag::IN_TRANS;
            if self.read_only {
                flags |= status_flag::IN_TRANS_READONLY;
            }
        }
        if self.state.settings().sql.sql_mode & sql_mode::NO_BACKSLASH_ESCAPES != 0 {
            flags |= status_flag::NO_BACKSLASH_ESCAPES;
        }
        flags
    }
}
