//! Locks of whole tables: LOCK TABLES, FLUSH TABLES … WITH READ LOCK and … FOR EXPORT, and what they do to
//! statements.
//!
//! Under LOCK TABLES a session may use the tables it named and no others, and change those it locked WRITE;
//! other sessions wait at the engine's metadata locks. FLUSH TABLES WITH READ LOCK stops the changes of all
//! sessions ([`crate::server::read_lock`]); the one that holds it gets an error for its own. UNLOCK TABLES,
//! the end of the connection and, for LOCK TABLES, the next transaction or LOCK TABLES let go.
//!
//! The locks of GET_LOCK are in `named_locks.rs` of `crates/sql`.

use sql::ast::{self, Flush, TableName};
use sql::errors;
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::plan::Plan;
use sql::result::SqlError;
use untorn::asynchronous::{NotUsable, TableLockRequest};
use untorn::engine::Wait;
use untorn::schema::KeyDef;
use untorn::{Access, Table};

use super::metadata_locks::{FOR_TABLE, discarded};
use super::tracking::Accesses;
use super::{Outcome, Session};

/// A table locked by LOCK TABLES.
pub(super) struct LockedTable {
    database: String,
    table: String,
    write: bool,
}

/// What SHOW PROCESSLIST says of those that wait.
const FOR_SLOW_LOG: &str = "Waiting for the slow query log";
const FOR_READ_LOCK: &str = "Waiting for global read lock";

impl Session {
    /// Begins a change of data or definitions, which waits while another session holds the global read lock.
    /// To be ended by [`Session::end_change`].
    pub(super) async fn begin_change(&mut self) -> Result<(), SqlError> {
        if self.read_lock.is_some() {
            return Err(errors::error(errors::CANT_UPDATE_WITH_READLOCK, &[]));
        }
        self.begin_commit().await
    }

    /// The same for the commit of changes, which the holder of the lock itself may do.
    pub(super) async fn begin_commit(&mut self) -> Result<(), SqlError> {
        if self.read_lock.is_some() {
            return Ok(());
        }
        let mut deadline = None;
        while let Err(wait) = self.change_mark.begin() {
            let deadline = *deadline.get_or_insert_with(|| self.metadata_deadline());
            self.wait_for(wait, FOR_READ_LOCK, deadline).await?;
        }
        Ok(())
    }

    /// Ends a change or commit.
    #[inline]
    pub(super) fn end_change(&self) {
        self.change_mark.end();
    }

    /// LOCK TABLES.
    pub(super) async fn lock_tables(&mut self, locks: &[ast::LockTable]) -> Result<Outcome, Failure> {
        self.release_table_locks();
        self.export_holds.clear();
        self.implicit_commit().await?;
        if self.read_lock.is_some() && locks.iter().any(|lock| lock.write) {
            return Err(errors::error(errors::CANT_UPDATE_WITH_READLOCK, &[]).into());
        }
        let mut wanted: Vec<(TableName, bool)> = Vec::new();
        for lock in locks {
            let planner = self.planner();
            // Of a view the tables below are locked.
            let tables = match planner.view_named(&lock.table)? {
                Some(view) => planner.view_tables(&view)?,
                None => std::iter::once(planner.engine_table(&lock.table)?).collect(),
            };
            // Nobody else has a temporary table: it needs no lock, and its owner may truncate it.
            for table in tables.into_iter().filter(|table| !untorn::private::is_private(&table.database)) {
                let name = TableName { database: Some(table.database.clone()), name: table.name.clone() };
                // Under several aliases: the stronger lock.
                match wanted.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, write)) => *write |= lock.write,
                    None => wanted.push((name, lock.write)),
                }
            }
        }
        self.take_table_locks(wanted).await
    }

    /// Takes locks in the order of names, so that sessions that lock the same tables do not wait for each
    /// other.
    async fn take_table_locks(&mut self, mut wanted: Vec<(TableName, bool)>) -> Result<Outcome, Failure> {
        wanted
            .sort_by(|(one, _), (other, _)| (&one.database, &one.name).cmp(&(&other.database, &other.name)));
        self.table_locks = Some(Vec::new());
        for (name, write) in wanted {
            if let Err(failure) = self.take_table_lock(&name, write).await {
                self.release_table_locks();
                return Err(failure);
            }
        }
        let locks = self.table_locks.iter().flatten();
        let (reads, writes) =
            locks.fold((false, false), |(reads, writes), lock| (reads || !lock.write, writes || lock.write));
        self.track_accesses(|| Accesses { reads, writes });
        self.track_transaction(|tracker| tracker.locked(true));
        Ok(Outcome::Done(Changed::default()))
    }

    async fn take_table_lock(&mut self, name: &TableName, write: bool) -> Result<(), Failure> {
        let deadline = self.metadata_deadline();
        let access = if write { Access::Write } else { Access::Read };
        'again: loop {
            let table = self.planner().engine_table(name)?;
            let mut request = TableLockRequest::new(&self.transaction, &table, access);
            loop {
                match request.grant() {
                    Ok(lock) => {
                        self.transaction.hold_table(lock);
                        let (database, table) = (table.database.clone(), table.name.clone());
                        self.table_locks.get_or_insert_default().push(LockedTable { database, table, write });
                        return Ok(());
                    }
                    Err(NotUsable::Stale) => continue 'again,
                    Err(NotUsable::Discarded) => return Err(discarded(&table)),
                    Err(NotUsable::Deadlock) => return Err(untorn::engine::Error::Deadlock.into()),
                    Err(NotUsable::Wait(wait)) => self.wait_for(wait, FOR_TABLE, deadline).await?,
                }
            }
        }
    }

    /// Lets go of LOCK TABLES; true if there was anything.
    pub(super) fn release_table_locks(&mut self) -> bool {
        self.transaction.release_tables();
        let held = self.table_locks.take().is_some();
        if held {
            self.track_transaction(|tracker| tracker.locked(false));
        }
        held
    }

    /// Forgets locked tables that are gone. With the last of them LOCK TABLES is over.
    pub(super) fn forget_locked(&mut self, gone: &[(&str, &str)]) {
        let Some(locks) = &mut self.table_locks else { return };
        let before = locks.len();
        locks.retain(|lock| !gone.contains(&(&*lock.database, &*lock.table)));
        if locks.is_empty() && before > 0 {
            self.release_table_locks();
        }
    }

    /// A locked table that has another name now stays locked under that. Both are named with their databases.
    pub(super) fn rename_locked(&mut self, from: (&str, &str), to: (&str, &str)) {
        let mut locks = self.table_locks.iter_mut().flatten();
        if let Some(lock) = locks.find(|lock| (&*lock.database, &*lock.table) == from) {
            to.0.clone_into(&mut lock.database);
            to.1.clone_into(&mut lock.table);
        }
    }

    /// UNLOCK TABLES.
    pub(super) async fn unlock_tables(&mut self) -> Result<Outcome, Failure> {
        if self.table_locks.is_some() {
            self.implicit_commit().await?;
        }
        self.release_table_locks();
        self.read_lock = None;
        self.export_holds.clear();
        Ok(Outcome::Done(Changed::default()))
    }

    /// Checks the tables of a plan against LOCK TABLES.
    pub(super) fn check_table_locks(&self, plan: &Plan) -> Result<(), SqlError> {
        if self.table_locks.is_none() {
            return Ok(());
        }
        for table in plan.tables() {
            self.check_locked(&table.database, &table.name, plan.changes(&table))?;
        }
        Ok(())
    }

    /// Under LOCK TABLES only the locked tables may be used, and only those locked WRITE changed.
    pub(super) fn check_locked(&self, database: &str, table: &str, writes: bool) -> Result<(), SqlError> {
        let Some(locks) = &self.table_locks else { return Ok(()) };
        if untorn::private::is_private(database) {
            return Ok(());
        }
        match locks.iter().find(|lock| lock.database == database && lock.table == table) {
            None => Err(errors::error(errors::TABLE_NOT_LOCKED, &[&table])),
            Some(lock) if writes && !lock.write => {
                Err(errors::error(errors::TABLE_NOT_LOCKED_FOR_WRITE, &[&table]))
            }
            Some(_) => Ok(()),
        }
    }

    /// DDL under LOCK TABLES needs the WRITE lock of its table, and is not for whole databases.
    pub(super) fn check_locked_definition(&self, name: Option<&TableName>) -> Result<(), SqlError> {
        match name {
            _ if self.table_locks.is_none() => Ok(()),
            Some(name) => self.check_locked(&self.planner().database_of(name)?, &name.name, true),
            None => Err(errors::error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[])),
        }
    }

    /// The same of a table that is there, which may be a temporary one: those need no lock.
    pub(super) fn check_locked_table(&self, name: &TableName, writes: bool) -> Result<(), SqlError> {
        if self.table_locks.is_none() {
            return Ok(());
        }
        let database = self.planner().database_of(name)?;
        match self.state.temporary.find(&database, &name.name) {
            Some(_) => Ok(()),
            None => self.check_locked(&database, &name.name, writes),
        }
    }

    /// FLUSH.
    pub(super) async fn flush(&mut self, flush: &Flush) -> Result<Outcome, Failure> {
        match flush {
            Flush::ForExport(tables) => {
                // Under LOCK TABLES the session itself could change what it copies.
                if self.table_locks.is_some() || !self.export_holds.is_empty() {
                    return Err(errors::error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[]).into());
                }
                self.implicit_commit().await?;
                for name in tables {
                    let table = self.planner().engine_table(name)?;
                    let timeout = self.lock_wait_timeout();
                    let database = self.state.database.clone();
                    let hold = database
                        .definitions()
                        .session(&self.transaction)
                        .timeout(timeout)
                        .export_table(&table.database, &table.name)
                        .await?;
                    self.warn_of_descending(hold.table());
                    self.export_holds.push(hold);
                }
            }
            Flush::ReadLock(tables) if tables.is_empty() => {
                if self.table_locks.is_some() {
                    return Err(errors::error(errors::LOCK_OR_ACTIVE_TRANSACTION, &[]).into());
                }
                self.implicit_commit().await?;
                self.take_global_read_lock().await?;
            }
            Flush::ReadLock(tables) => {
                let locks = tables.iter().map(|table| ast::LockTable {
                    table: table.clone(),
                    alias: None,
                    write: false,
                });
                return self.lock_tables(&locks.collect::<Vec<_>>()).await;
            }
            Flush::Tables(tables) => {
                for name in tables {
                    if self.planner().view_named(name)?.is_none() {
                        self.planner().engine_table(name)?;
                    }
                }
            }
            Flush::Logs => {
                let deadline = self.metadata_deadline();
                let written = self.state.server.slow_log.written();
                while let Some(event) = written.as_ref().filter(|event| !event.is_set()) {
                    self.wait_for(Wait::new((*event).clone()), FOR_SLOW_LOG, deadline).await?;
                }
            }
            Flush::Status => self.state.connection.counters.forget_own(),
            Flush::Privileges => self.state.server.accounts.forget_usage(),
            Flush::UserResources => self.state.server.accounts.begin_hours(),
            Flush::Other => {}
        }
        Ok(Outcome::Done(Changed::default()))
    }

    /// Trees are ascending here, whatever a key says. Another server believes the word: it would take the
    /// file, without its `.cfg`, and find nothing in it.
    fn warn_of_descending(&self, table: &Table) {
        let is_descending = |key: &&KeyDef| key.parts.iter().any(|part| part.descending);
        for key in table.def.keys.iter().filter(is_descending) {
            let what = format!(
                "DESC in files: key '{}' of table '{}' is ascending in this one, and has to be created without \
                 DESC where it is imported",
                key.name, table.name
            );
            self.state.warn(errors::unsupported(&what));
        }
    }

    async fn take_global_read_lock(&mut self) -> Result<(), SqlError> {
        if self.read_lock.is_some() {
            return Ok(());
        }
        let server = self.state.server.clone();
        let hold = server.read_lock.request(self.state.connection.id);
        let deadline = self.metadata_deadline();
        while let Err(wait) = hold.grant(&server.connections) {
            self.wait_for(wait, FOR_READ_LOCK, deadline).await?;
        }
        self.read_lock = Some(hold);
        Ok(())
    }
}
