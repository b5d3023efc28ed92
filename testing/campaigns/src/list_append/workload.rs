//! Clients that append to lists and read them, in transactions of a few statements, and note everything.

use super::check::Level;
use super::history::{Action, Element, History, Key, Outcome, Step, Time, Transaction};
use anyhow::{Context, Result, ensure};
use disk::Random;
use lab::server_process::ServerProcess;
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

const DATABASE: &str = "list_append";
/// Lists that are worked on at a time: few, so that transactions meet.
const LISTS: u32 = 8;
/// Appends after which a list is left alone, on average.
const APPENDS_PER_LIST: u32 = 40;
/// ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK: the transaction did not happen, the client goes on.
const CONFLICTS: [u16; 2] = [1205, 1213];

/// Makes the table: lists by primary key and by a unique index that covers nothing.
pub fn create_table(server: &ServerProcess) -> Result<()> {
    let mut connection = server.connect(None)?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    Ok(connection.query_drop(format!(
        "CREATE TABLE {DATABASE}.lists (k INT PRIMARY KEY, other INT NOT NULL, list TEXT NOT NULL, UNIQUE KEY (other))"
    ))?)
}

/// What all clients share over the whole run.
pub struct Clients {
    level: Level,
    threads: usize,
    clock: Instant,
    next_element: AtomicU32,
    finished: AtomicU64,
}

/// Counts of a stretch.
#[derive(Default)]
pub struct Conflicts {
    pub deadlocks: usize,
    pub timeouts: usize,
}

/// Why a client stopped in the middle of a transaction.
enum Cut {
    /// The server rolled the transaction back: the next one can follow.
    Conflict(u16),
    /// The connection is gone.
    Connection(anyhow::Error),
}

impl Clients {
    pub fn new(level: Level, threads: usize) -> Clients {
        Clients {
            level,
            threads,
            clock: Instant::now(),
            next_element: AtomicU32::new(1),
            finished: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Time {
        self.clock.elapsed().as_nanos() as Time
    }

    /// Runs all clients until `transactions` more have ended; then `end` is called beside the clients that
    /// still work, and what they get after that may be the end of the server.
    pub fn run(
        &self,
        server: &mut ServerProcess,
        transactions: u64,
        random: &mut Random,
        history: &mut History,
        end: impl FnOnce(&mut ServerProcess),
    ) -> Result<Conflicts> {
        let goal = self.finished.load(Ordering::Relaxed) + transactions;
        let mut connections = Vec::new();
        for _ in 0..self.threads {
            let mut connection = server.connect(Some(DATABASE))?;
            let level = self.level.sql();
            connection.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
            connections.push((connection, Random::new(random.next_u64())));
        }
        let (ending, enough) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let mut conflicts = Conflicts::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = connections
                .into_iter()
                .map(|(connection, random)| {
                    scope.spawn(move || self.work(connection, random, ending, enough))
                })
                .collect();
            while self.finished.load(Ordering::Relaxed) < goal
                && !workers.iter().any(|worker| worker.is_finished())
            {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            ending.store(true, Ordering::SeqCst);
            end(server);
            enough.store(true, Ordering::SeqCst);
            for worker in workers {
                let (transactions, met) =
                    worker.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
                history.transactions.extend(transactions);
                conflicts.deadlocks += met.deadlocks;
                conflicts.timeouts += met.timeouts;
            }
            Ok(conflicts)
        })
    }

    /// One client, until there is enough or, once the end has begun, its connection breaks.
    fn work(
        &self,
        mut connection: Conn,
        mut random: Random,
        ending: &AtomicBool,
        enough: &AtomicBool,
    ) -> Result<(Vec<Transaction>, Conflicts)> {
        let mut done = Vec::new();
        let mut conflicts = Conflicts::default();
        while !enough.load(Ordering::SeqCst) {
            let mut transaction = Transaction {
                began: self.now(),
                ended: Time::MAX,
                outcome: Outcome::Aborted,
                steps: Vec::new(),
            };
            let cut = self.transaction(&mut connection, &mut random, &mut transaction);
            transaction.ended = self.now();
            done.push(transaction);
            self.finished.fetch_add(1, Ordering::Relaxed);
            match cut {
                Ok(()) => {}
                Err(Cut::Conflict(code)) => {
                    match code {
                        1213 => conflicts.deadlocks += 1,
                        _ => conflicts.timeouts += 1,
                    }
                    if connection.query_drop("ROLLBACK").is_err() && ending.load(Ordering::SeqCst) {
                        break;
                    }
                }
                Err(Cut::Connection(_)) if ending.load(Ordering::SeqCst) => break,
                Err(Cut::Connection(error)) => {
                    return Err(error.context("a client, before the server was stopped"));
                }
            }
        }
        Ok((done, conflicts))
    }

    fn transaction(
        &self,
        connection: &mut Conn,
        random: &mut Random,
        transaction: &mut Transaction,
    ) -> std::result::Result<(), Cut> {
        connection.query_drop("BEGIN").map_err(cut)?;
        // A third only reads: what read skew is looked for in.
        let only_reads = random.one_in(3);
        for _ in 0..1 + random.below(5) {
            let key = self.some_list(random);
            if only_reads || random.one_in(2) {
                self.read(connection, random, key, transaction)?;
            } else {
                let element = self.next_element.fetch_add(1, Ordering::Relaxed);
                // Noted before it is sent: whatever comes of it, nobody else appends this element.
                transaction.steps.push(Step { sent: self.now(), action: Action::Append(key, element) });
                append(connection, random, key, element)?;
            }
        }
        if random.one_in(12) {
            return connection.query_drop("ROLLBACK").map_err(cut);
        }
        transaction.outcome = Outcome::Unknown;
        match connection.query_drop("COMMIT").map_err(cut) {
            Ok(()) => transaction.outcome = Outcome::Committed,
            Err(Cut::Conflict(code)) => {
                transaction.outcome = Outcome::Aborted;
                return Err(Cut::Conflict(code));
            }
            Err(gone) => return Err(gone),
        }
        Ok(())
    }

    fn some_list(&self, random: &mut Random) -> Key {
        let generation = self.next_element.load(Ordering::Relaxed) / (LISTS * APPENDS_PER_LIST);
        generation * LISTS + random.below(LISTS as usize) as Key
    }

    /// Reads one list by one of several ways, or a range of all that are worked on.
    fn read(
        &self,
        connection: &mut Conn,
        random: &mut Random,
        key: Key,
        transaction: &mut Transaction,
    ) -> std::result::Result<(), Cut> {
        let sent = self.now();
        let other = other_key(key);
        let (first, count, condition) = match random.below(4) {
            0 => (key, 1, format!("other = {other}")),
            1 => (
                key - key % LISTS,
                LISTS,
                format!("k BETWEEN {} AND {}", key - key % LISTS, key - key % LISTS + LISTS - 1),
            ),
            _ => (key, 1, format!("k = {key}")),
        };
        let rows: Vec<(Key, String)> =
            connection.query(format!("SELECT k, list FROM lists WHERE {condition}")).map_err(cut)?;
        for key in first..first + count {
            let text = rows.iter().find(|(k, _)| *k == key).map_or("", |(_, text)| text);
            let list = parse(text).map_err(Cut::Connection)?;
            transaction.steps.push(Step { sent, action: Action::Read(key, list) });
        }
        Ok(())
    }
}

/// The value of the second unique index, in another order than the primary key.
fn other_key(key: Key) -> Key {
    key ^ 0x55
}

/// Appends by one of several statements.
fn append(
    connection: &mut Conn,
    random: &mut Random,
    key: Key,
    element: Element,
) -> std::result::Result<(), Cut> {
    let other = other_key(key);
    if random.one_in(3) {
        let by = if random.one_in(2) { format!("k = {key}") } else { format!("other = {other}") };
        connection
            .query_drop(format!("UPDATE lists SET list = CONCAT(list, ',', '{element}') WHERE {by}"))
            .map_err(cut)?;
        if connection.affected_rows() > 0 {
            return Ok(());
        }
    }
    connection
        .query_drop(format!(
            "INSERT INTO lists VALUES ({key}, {other}, '{element}') ON DUPLICATE KEY UPDATE list = CONCAT(list, ',', '{element}')"
        ))
        .map_err(cut)
}

fn cut(error: Error) -> Cut {
    match error {
        Error::MySqlError(error) if CONFLICTS.contains(&error.code) => Cut::Conflict(error.code),
        error => Cut::Connection(error.into()),
    }
}

fn parse(text: &str) -> Result<Vec<Element>> {
    let elements = text.split(',').filter(|element| !element.is_empty());
    elements.map(|element| element.parse().with_context(|| format!("{text:?} is no list"))).collect()
}

/// All lists as they are now, by the primary key and by the other index, which must agree.
pub fn read_all(server: &ServerProcess, history: &mut History) -> Result<()> {
    let mut connection = server.connect(Some(DATABASE))?;
    let rows: Vec<(Key, String)> = connection.query("SELECT k, list FROM lists ORDER BY k")?;
    let by_index: Vec<(Key, String)> =
        connection.query("SELECT k, list FROM lists FORCE INDEX (other) WHERE other >= 0 ORDER BY other")?;
    let mut sorted = by_index;
    sorted.sort_unstable();
    ensure!(sorted == rows, "the two indexes of the table do not agree");
    for (key, text) in rows {
        history.lists.insert(key, parse(&text)?);
    }
    Ok(())
}
