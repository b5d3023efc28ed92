//! A load that keeps what was acknowledged to its clients, outside the server, for campaigns that take the
//! server away from it; and the comparison with what is there afterwards ([`Acknowledged::verify`]).
//!
//! Two loads at once. *Transfers* move money between accounts and note each transfer in a table, in one
//! transaction: afterwards every acknowledged transfer is noted, none is that was never sent, and every
//! balance is what the noted transfers make it, so a transaction is there wholly or not at all. *Rows*
//! insert, update and delete rows that only one worker touches, so that the expected contents are known
//! exactly; only the transaction whose COMMIT was under way may have happened or not.

use anyhow::{Result, bail, ensure};
use disk::Random;
use lab::server_process::ServerProcess;
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where its tables are.
pub const DATABASE: &str = "crash";
const ACCOUNTS: usize = 50;
const OPENING_BALANCE: i64 = 1000;
const WORKERS: usize = 4;
/// Keys of row worker `w` are `w * KEYS .. (w + 1) * KEYS`.
const KEYS: usize = 400;

/// One transfer, by its worker's serial number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Transfer {
    serial: u32,
    source: usize,
    target: usize,
    amount: i64,
}

#[derive(Default)]
struct TransferWorker {
    number: usize,
    next_serial: u32,
    acknowledged: BTreeSet<Transfer>,
    /// Its COMMIT was sent and not answered.
    in_doubt: Option<Transfer>,
}

/// A row as the worker knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    k: i32,
    version: u32,
    text: String,
}

/// New states of some keys; `None` is "deleted".
type Changes = BTreeMap<usize, Option<Row>>;

#[derive(Default)]
struct RowWorker {
    number: usize,
    next_version: u32,
    rows: BTreeMap<usize, Row>,
    in_doubt: Option<Changes>,
    transactions: u64,
}

/// How a worker's transaction ended.
enum Outcome {
    Committed,
    /// Deadlock or lock wait timeout: rolled back, nothing happened.
    RolledBack,
    /// The connection broke before COMMIT was sent: nothing may have happened.
    CutOff,
    /// The connection broke with COMMIT under way.
    InDoubt,
}

/// Everything the clients know.
pub struct Acknowledged {
    transfers: Vec<TransferWorker>,
    rows: Vec<RowWorker>,
}

impl Acknowledged {
    pub fn new() -> Acknowledged {
        Acknowledged {
            transfers: (0..WORKERS).map(|number| TransferWorker { number, ..Default::default() }).collect(),
            rows: (0..WORKERS).map(|number| RowWorker { number, ..Default::default() }).collect(),
        }
    }

    /// Transfers and row transactions acknowledged so far.
    pub fn totals(&self) -> (usize, u64) {
        let transfers = self.transfers.iter().map(|worker| worker.acknowledged.len()).sum();
        (transfers, self.rows.iter().map(|worker| worker.transactions).sum())
    }

    /// Lets all workers run for `load`, then calls `take_away`, which must leave no server they could talk
    /// to, and waits until they have noticed. From that call on every error they get is taken as the end,
    /// before it as a failure of the test.
    pub fn load(
        &mut self,
        server: &mut ServerProcess,
        load: Duration,
        random: &mut Random,
        take_away: impl FnOnce(&mut ServerProcess) -> Result<()>,
    ) -> Result<()> {
        let mut connections = Vec::new();
        for _ in 0..2 * WORKERS {
            connections.push((server.connect(Some(DATABASE))?, Random::new(random.next_u64())));
        }
        let ending = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (worker, (connection, random)) in self.transfers.iter_mut().zip(connections.drain(..WORKERS))
            {
                workers.push(scope.spawn(move || worker.work(connection, random, ending)));
            }
            for (worker, (connection, random)) in self.rows.iter_mut().zip(connections) {
                workers.push(scope.spawn(move || worker.work(connection, random, ending)));
            }
            std::thread::sleep(load);
            let ended = server.ended();
            ending.store(true, Ordering::SeqCst);
            let taken_away = take_away(server);
            server.kill();
            for worker in workers {
                worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
            }
            if let Some(status) = ended? {
                bail!("the server ended by itself with {status}");
            }
            taken_away
        })
    }

    /// Everything that must hold after recovery; what was in doubt is settled by what is found.
    pub fn verify(&mut self, server: &ServerProcess) -> Result<()> {
        let mut connection = server.connect(Some(DATABASE))?;
        let noted: Vec<(usize, u32, usize, usize, i64)> = connection
            .query("SELECT worker, serial, source, target, amount FROM transfer ORDER BY worker, serial")?;
        let mut balances = vec![OPENING_BALANCE; ACCOUNTS];
        let mut found = vec![BTreeSet::new(); WORKERS];
        for (worker, serial, source, target, amount) in noted {
            balances[source] -= amount;
            balances[target] += amount;
            found[worker].insert(Transfer { serial, source, target, amount });
        }
        for worker in &mut self.transfers {
            worker.verify(&found[worker.number])?;
        }
        let accounts: Vec<(usize, i64)> = connection.query("SELECT id, balance FROM account ORDER BY id")?;
        ensure!(accounts.len() == ACCOUNTS, "{} accounts", accounts.len());
        for (id, balance) in accounts {
            ensure!(
                balance == balances[id],
                "account {id} has {balance}, its transfers make {}",
                balances[id]
            );
        }
        let items: Vec<(usize, i32, u32, String)> =
            connection.query("SELECT id, k, version, text FROM item ORDER BY id")?;
        let mut found = vec![BTreeMap::new(); WORKERS];
        for (id, k, version, text) in items {
            found[id / KEYS].insert(id, Row { k, version, text });
        }
        for worker in &mut self.rows {
            worker.verify(&found[worker.number])?;
        }
        let by_primary: Option<(u64, Option<i64>)> = connection
            .query_first("SELECT COUNT(*), CAST(SUM(k) AS SIGNED) FROM item FORCE INDEX (PRIMARY)")?;
        let by_k: Option<(u64, Option<i64>)> =
            connection.query_first("SELECT COUNT(k), CAST(SUM(k) AS SIGNED) FROM item FORCE INDEX (by_k)")?;
        ensure!(by_primary == by_k, "item: the primary key says {by_primary:?}, index by_k says {by_k:?}");
        for table in ["account", "transfer", "item"] {
            let verdict: Vec<(String, String, String, String)> =
                connection.query(format!("CHECK TABLE {table}"))?;
            ensure!(verdict.last().is_some_and(|last| last.3 == "OK"), "CHECK TABLE {table}: {verdict:?}");
        }
        Ok(())
    }
}

/// The tables of the load.
pub fn create_tables(server: &ServerProcess) -> Result<()> {
    let mut connection = server.connect(None)?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    connection.query_drop(format!("USE {DATABASE}"))?;
    connection.query_drop(
        "CREATE TABLE account (id INT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB",
    )?;
    connection.query_drop(
        "CREATE TABLE transfer (worker INT NOT NULL, serial INT NOT NULL, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, PRIMARY KEY (worker, serial), KEY by_source (source)) ENGINE=InnoDB",
    )?;
    connection.query_drop(
        "CREATE TABLE item (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, version INT NOT NULL, text VARCHAR(600) NOT NULL, KEY by_k (k)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    )?;
    let accounts = (0..ACCOUNTS).map(|id| format!("({id}, {OPENING_BALANCE})")).collect::<Vec<_>>();
    connection.query_drop(format!("INSERT INTO account VALUES {}", accounts.join(", ")))?;
    Ok(())
}

/// Sorts an error: `Err` for one that no load should see.
fn sort(error: Error, committing: bool, ending: &AtomicBool) -> Result<Outcome> {
    match error {
        Error::MySqlError(error) if matches!(error.code, 1205 | 1213) => Ok(Outcome::RolledBack),
        // The server went away in the middle: "server shutdown in progress" and "connection was killed".
        Error::MySqlError(error) if matches!(error.code, 1053 | 1317 | 1927) => {
            Ok(if committing { Outcome::InDoubt } else { Outcome::CutOff })
        }
        // The disk went away: the server must say so, and whether a COMMIT it refuses happened is open.
        Error::MySqlError(_) if ending.load(Ordering::SeqCst) => {
            Ok(if committing { Outcome::InDoubt } else { Outcome::CutOff })
        }
        Error::MySqlError(error) => bail!("the server answered {error}"),
        _ if committing => Ok(Outcome::InDoubt),
        _ => Ok(Outcome::CutOff),
    }
}

/// Runs the statements between BEGIN and COMMIT; each must change one row.
fn transaction(connection: &mut Conn, statements: &[String], ending: &AtomicBool) -> Result<Outcome> {
    let begun = (|| {
        connection.query_drop("BEGIN")?;
        for statement in statements {
            connection.query_drop(statement)?;
            if connection.affected_rows() != 1 {
                return Ok(Some(format!("{} rows affected by {statement}", connection.affected_rows())));
            }
        }
        Ok(None)
    })();
    match begun {
        Ok(None) => {}
        Ok(Some(wrong)) => bail!(wrong),
        Err(error) => {
            let outcome = sort(error, false, ending)?;
            if matches!(outcome, Outcome::RolledBack)
                && let Err(error) = connection.query_drop("ROLLBACK")
            {
                return sort(error, false, ending);
            }
            return Ok(outcome);
        }
    }
    match connection.query_drop("COMMIT") {
        Ok(()) => Ok(Outcome::Committed),
        Err(error) => sort(error, true, ending),
    }
}

impl TransferWorker {
    fn work(&mut self, mut connection: Conn, mut random: Random, ending: &AtomicBool) -> Result<()> {
        loop {
            let source = random.below(ACCOUNTS);
            let target = (source + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
            let transfer =
                Transfer { serial: self.next_serial, source, target, amount: 1 + random.below(20) as i64 };
            self.next_serial += 1;
            let Transfer { serial, amount, .. } = transfer;
            let statements = [
                format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
                format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
                format!(
                    "INSERT INTO transfer VALUES ({}, {serial}, {source}, {target}, {amount})",
                    self.number
                ),
            ];
            match transaction(&mut connection, &statements, ending)? {
                Outcome::Committed => drop(self.acknowledged.insert(transfer)),
                Outcome::RolledBack => {}
                Outcome::CutOff => return Ok(()),
                Outcome::InDoubt => {
                    self.in_doubt = Some(transfer);
                    return Ok(());
                }
            }
        }
    }

    /// Compares with what the table has of this worker.
    fn verify(&mut self, found: &BTreeSet<Transfer>) -> Result<()> {
        if let Some(lost) = self.acknowledged.difference(found).next() {
            bail!("worker {}: acknowledged and lost: {lost:?}", self.number);
        }
        for extra in found.difference(&self.acknowledged) {
            ensure!(
                Some(*extra) == self.in_doubt,
                "worker {}: never committed, but there: {extra:?}",
                self.number
            );
        }
        self.acknowledged.clone_from(found);
        self.in_doubt = None;
        Ok(())
    }
}

impl RowWorker {
    fn work(&mut self, mut connection: Conn, mut random: Random, ending: &AtomicBool) -> Result<()> {
        loop {
            let (changes, statements) = self.plan(&mut random);
            let outcome = if statements.len() == 1 && random.one_in(2) {
                // Autocommit: the statement is its own COMMIT.
                match connection.query_drop(&statements[0]) {
                    Ok(()) => Outcome::Committed,
                    Err(error) => sort(error, true, ending)?,
                }
            } else if random.one_in(10) {
                match self.roll_back(&mut connection, &statements) {
                    Ok(()) => Outcome::RolledBack,
                    Err(error) => sort(error, false, ending)?,
                }
            } else {
                transaction(&mut connection, &statements, ending)?
            };
            match outcome {
                Outcome::Committed => {
                    self.transactions += 1;
                    apply(&mut self.rows, changes);
                }
                Outcome::RolledBack => {}
                Outcome::CutOff => return Ok(()),
                Outcome::InDoubt => {
                    self.in_doubt = Some(changes);
                    return Ok(());
                }
            }
        }
    }

    fn roll_back(&self, connection: &mut Conn, statements: &[String]) -> std::result::Result<(), Error> {
        connection.query_drop("BEGIN")?;
        for statement in statements {
            connection.query_drop(statement)?;
        }
        connection.query_drop("ROLLBACK")
    }

    /// One to four changes of keys of this worker, each key once, and the statements that make them.
    fn plan(&mut self, random: &mut Random) -> (Changes, Vec<String>) {
        let (mut changes, mut statements) = (Changes::new(), Vec::new());
        for _ in 0..1 + random.below(4) {
            let id = self.number * KEYS + random.below(KEYS);
            if changes.contains_key(&id) {
                continue;
            }
            self.next_version += 1;
            let version = self.next_version;
            let text = format!("{id}:{version} ").repeat(1 + random.below(40));
            let new = Row { k: random.below(1000) as i32, version, text };
            let insert = format!("INSERT INTO item VALUES ({id}, {}, {version}, '{}')", new.k, new.text);
            let (statement, row) = match (self.rows.get(&id), random.below(4)) {
                (None, _) => (insert, Some(new)),
                (Some(_), 0) => (format!("DELETE FROM item WHERE id = {id}"), None),
                (Some(old), 1) => (
                    format!("UPDATE item SET k = {}, version = {version} WHERE id = {id}", new.k),
                    Some(Row { text: old.text.clone(), ..new }),
                ),
                (Some(old), 2) => (
                    format!("UPDATE item SET text = '{}', version = {version} WHERE id = {id}", new.text),
                    Some(Row { k: old.k, ..new }),
                ),
                (Some(_), _) => {
                    statements.push(format!("DELETE FROM item WHERE id = {id}"));
                    (insert, Some(new))
                }
            };
            statements.push(statement);
            changes.insert(id, row);
        }
        (changes, statements)
    }

    /// Compares with what the table has of this worker.
    fn verify(&mut self, found: &BTreeMap<usize, Row>) -> Result<()> {
        if *found != self.rows {
            let mut with_doubt = self.rows.clone();
            apply(&mut with_doubt, self.in_doubt.clone().unwrap_or_default());
            if *found != with_doubt {
                let keys = self.rows.keys().chain(found.keys()).collect::<BTreeSet<_>>();
                let wrong = keys.into_iter().filter(|id| found.get(id) != self.rows.get(id));
                let wrong = wrong.map(|id| {
                    let doubt = self.in_doubt.as_ref().and_then(|changes| changes.get(id));
                    format!(
                        "row {id}: expected {:?}, in doubt {doubt:?}, found {:?}",
                        self.rows.get(id),
                        found.get(id)
                    )
                });
                bail!("row worker {}:\n{}", self.number, wrong.take(5).collect::<Vec<_>>().join("\n"));
            }
        }
        self.rows.clone_from(found);
        self.in_doubt = None;
        Ok(())
    }
}

fn apply(rows: &mut BTreeMap<usize, Row>, changes: Changes) {
    for (id, row) in changes {
        match row {
            Some(row) => drop(rows.insert(id, row)),
            None => drop(rows.remove(&id)),
        }
    }
}
