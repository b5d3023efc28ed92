//! The latest deadlock with names: who waited for which row of which table, in which statement.
//!
//! The lock table finds deadlocks and knows numbers ([`txn::Deadlock`]). The names of tables are looked up
//! when somebody reads the report, so a table that was dropped since has none. What a session was running is
//! asked when the deadlock is found, of whom the server has named ([`Database::set_statement_source`]); a
//! program that embeds the crate has no texts of statements.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use disk::Environment;
use txn::{DeadlockMember, DeadlockWitness, LockDescription, TransactionSystem};

use crate::asynchronous::Database;
use crate::lock_data;
use crate::row_locks::Names;
use crate::types::DateTime;

/// A deadlock that was broken: its transactions waited for each other in a circle, and one was rolled back.
///
/// Its text is that of `SHOW ENGINE INNODB STATUS`.
#[derive(Debug, Clone)]
pub struct DeadlockReport {
    /// When it was found, since 1970 (UTC).
    pub found: Duration,
    /// The transactions. Each waited for the next one, the last for the first.
    pub transactions: Vec<DeadlockedTransaction>,
    /// Which of them was rolled back.
    pub victim: usize,
}

/// A transaction of a [`DeadlockReport`].
#[derive(Debug, Clone)]
pub struct DeadlockedTransaction {
    /// Its id; 0 if it had changed nothing.
    pub id: u64,
    /// The session: the server's connection id.
    pub session: u64,
    /// What the session was running, in the server.
    pub statement: Option<String>,
    /// Row locks that it had.
    pub row_locks: usize,
    /// Rows that it had changed, about.
    pub undo_records: u64,
    /// Database and table of the lock it waited for, if the table is still there.
    pub table: Option<(String, String)>,
    /// The index.
    pub index: String,
    /// The key of the row, as `performance_schema.data_locks` writes it.
    pub key: String,
    /// The kind of lock, in InnoDB's words.
    pub mode: &'static str,
}

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.found.as_secs()).unwrap_or(i64::MAX);
        writeln!(f, "{}", DateTime::from_unix(seconds, 0))?;
        for (at, transaction) in self.transactions.iter().enumerate() {
            let number = at + 1;
            let DeadlockedTransaction { id, session, row_locks, undo_records, .. } = transaction;
            writeln!(f, "*** ({number}) TRANSACTION:")?;
            writeln!(f, "TRANSACTION {id}")?;
            writeln!(f, "{row_locks} row lock(s), undo log entries {undo_records}")?;
            writeln!(f, "MySQL thread id {session}")?;
            if let Some(statement) = &transaction.statement {
                writeln!(f, "{statement}")?;
            }
            writeln!(f, "*** ({number}) WAITING FOR THIS LOCK TO BE GRANTED:")?;
            write!(f, "RECORD LOCKS index {} of table ", transaction.index)?;
            match &transaction.table {
                Some((database, table)) => write!(f, "`{database}`.`{table}`")?,
                None => f.write_str("(dropped since)")?,
            }
            writeln!(f, " {} waiting", transaction.mode)?;
            writeln!(f, "Record: {}", transaction.key)?;
        }
        writeln!(f, "*** WE ROLL BACK TRANSACTION ({})", self.victim + 1)
    }
}

/// What a session is running, by its tag.
type StatementSource = Box<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// What the lock table asks when it finds a deadlock.
pub(crate) struct Witness {
    environment: Arc<dyn Environment>,
    statements: OnceLock<StatementSource>,
}

impl Witness {
    /// One that this system asks from now on.
    pub(crate) fn of(system: &TransactionSystem, environment: &Arc<dyn Environment>) -> Arc<Witness> {
        let witness = Arc::new(Witness { environment: environment.clone(), statements: OnceLock::new() });
        system.set_deadlock_witness(witness.clone());
        witness
    }
}

impl DeadlockWitness for Witness {
    fn unix_time(&self) -> Duration {
        self.environment.unix_time()
    }

    fn statement(&self, session: u64) -> Option<String> {
        self.statements.get().and_then(|statement| statement(session))
    }
}

impl Database {
    /// The latest deadlock since the database was opened, with the tables and keys that were waited for.
    pub fn latest_deadlock(&self) -> Option<DeadlockReport> {
        let deadlock = self.0.system.latest_deadlock()?;
        let names = Names::new(self);
        let transactions = deadlock.members.iter().map(|member| describe(member, &names)).collect();
        Some(DeadlockReport { found: deadlock.found, transactions, victim: deadlock.victim })
    }

    /// Asks this what a session is running when it takes part in a deadlock. Row locks cannot be taken or
    /// given back meanwhile, so it must not. The first source stays.
    #[doc(hidden)]
    pub fn set_statement_source(&self, source: impl Fn(u64) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.deadlock_witness.statements.set(Box::new(source));
    }
}

fn describe(member: &DeadlockMember, names: &Names) -> DeadlockedTransaction {
    let place: &LockDescription = &member.waits_for;
    let found = names.index(place);
    DeadlockedTransaction {
        id: member.transaction,
        session: member.session,
        statement: member.statement.clone(),
        row_locks: member.row_locks,
        undo_records: member.undo_records,
        table: found.as_ref().map(|(table, _)| (table.database.clone(), table.name.clone())),
        index: place.index().to_owned(),
        key: match found {
            _ if place.is_end() => lock_data::END.to_owned(),
            Some((_, key)) => key,
            None => lock_data::text(place.key().map(|field| (field, None))),
        },
        mode: member.mode,
    }
}
