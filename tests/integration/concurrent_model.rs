//! Concurrent sessions of the embedded API against one model of the committed rows, on one thread, from a
//! seed.
//!
//! Operations are cut at random awaits, sessions are dropped in the middle of a transaction, and an index
//! comes and goes. What holds:
//! - a locking read by key, and at REPEATABLE READ a locking read of a range, shows what is committed and
//!   what the session changed itself;
//! - a consistent read at REPEATABLE READ shows what was committed when the snapshot was taken, and the
//!   session's own changes;
//! - a row that is refused for a duplicate key has one, and a row that goes in has none;
//! - an operation that was cut has left nothing, and a transaction that was dropped neither;
//! - in the end no lock, no transaction and no history is left, and the indexes agree with the rows.
//!
//! A failure prints its seed: `UNTORN_SEED=<seed> cargo test --test integration concurrent_model` replays it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, Random, SimulatedEnvironment, interleave};
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::{Durability, Error as TransactionError, Isolation, WaitPolicy};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{ColumnType, SizeClass, Value};
use untorn::{Error, Lock, Options, OwnedRow, Range, Table};

const SESSIONS: usize = 5;
const KEYS: i64 = 40;
const PATIENCE: Duration = Duration::from_millis(200);

/// `k`, `u`, and the text as (byte, length).
type Columns = (i64, Option<i64>, (u8, usize));
type Rows = BTreeMap<i64, Columns>;

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(128 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 4 << 20;
    options.log_buffer_bytes = 1 << 20;
    options
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("k", ColumnType::bigint()),
        ColumnDef::new("u", ColumnType::bigint()).nullable(),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }),
    ])
    .primary_key(&["id"])
    .key("k", KeyKind::Secondary, &["k"])
    .key("u", KeyKind::Unique, &["u"])
}

/// Polls at most `polls` times, and drops what has not ended then.
async fn cut<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

struct World {
    committed: RefCell<Rows>,
    stop: Cell<bool>,
    seen: RefCell<BTreeMap<&'static str, u64>>,
    trace: bool,
}

impl World {
    fn count(&self, what: &'static str) {
        *self.seen.borrow_mut().entry(what).or_default() += 1;
    }
}

type Own = BTreeMap<i64, Option<Columns>>;

fn overlay(base: &Rows, own: &Own) -> Rows {
    let mut rows = base.clone();
    for (id, row) in own {
        match row {
            Some(row) => rows.insert(*id, *row),
            None => rows.remove(id),
        };
    }
    rows
}

fn columns_of(row: &OwnedRow) -> (i64, Columns) {
    let int = |value: &Value<'_>| match value {
        Value::Int(value) => Some(*value),
        _ => None,
    };
    let Value::Bytes(text) = &row[3] else { panic!("{row:?}") };
    let byte = text.first().copied().unwrap_or(0);
    assert!(text.iter().all(|other| *other == byte), "a torn value");
    (int(&row[0]).unwrap(), (int(&row[1]).unwrap(), int(&row[2]), (byte, text.len())))
}

fn values<'v>(id: i64, row: Columns, text: &'v [u8]) -> [Value<'v>; 4] {
    [Value::Int(id), Value::Int(row.0), row.1.map_or(Value::Null, Value::Int), Value::bytes(text)]
}

struct Session {
    world: Rc<World>,
    db: Database,
    number: usize,
    random: Random,
    transaction: Transaction,
    table: Option<Arc<Table>>,
    own: Own,
    savepoint: Option<Own>,
    snapshot: Option<Rows>,
    isolation: Isolation,
}

enum Outcome {
    GoesOn,
    /// It has been rolled back.
    Gone,
}

impl Session {
    fn polls(&mut self) -> u64 {
        if self.random.one_in(4) { 1 + self.random.below(12) as u64 } else { u64::MAX }
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.world.trace {
            println!("{}: {}", self.number, what());
        }
    }

    fn current(&self) -> Rows {
        overlay(&self.world.committed.borrow(), &self.own)
    }

    fn columns(&mut self) -> Columns {
        let u = (!self.random.one_in(4)).then(|| self.random.below(KEYS as usize) as i64);
        let length =
            if self.random.one_in(8) { 3000 + self.random.below(12_000) } else { self.random.below(400) };
        let byte = if length == 0 { 0 } else { self.random.below(255) as u8 };
        (self.random.below(20) as i64, u, (byte, length))
    }

    async fn run(mut self) {
        while !self.world.stop.get() {
            self.one_transaction().await;
        }
        self.transaction.rollback().await.unwrap();
    }

    async fn one_transaction(&mut self) {
        self.own.clear();
        (self.savepoint, self.snapshot) = (None, None);
        self.isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
            [self.random.below(3)];
        self.transaction.engine_mut().set_isolation(self.isolation);
        let timeout = Duration::from_millis(1 + self.random.below(300) as u64);
        self.transaction.engine_mut().set_lock_wait_timeout(timeout);
        self.transaction.begin();
        self.table = match self.transaction.open_table("test", "t", PATIENCE).await {
            Ok(table) => Some(table),
            Err(Error::MetadataLockTimeout) => return self.roll_back().await,
            Err(Error::Transaction(TransactionError::Deadlock)) => return self.roll_back().await,
            Err(error) => panic!("{error}"),
        };
        if self.isolation == Isolation::RepeatableRead && self.random.one_in(2) {
            self.transaction.engine_mut().settle().await.unwrap();
            self.snapshot = Some(self.world.committed.borrow().clone());
            self.transaction.engine_mut().begin_with_snapshot();
        }
        for _ in 0..1 + self.random.below(10) {
            let outcome = self.operation().await;
            // An operation may have been cut while a deadlock was being rolled back.
            if matches!(outcome, Outcome::Gone) || self.transaction.engine().is_rolled_back() {
                self.world.count("deadlock");
                self.own.clear();
                if self.random.one_in(2) {
                    let committed = self.transaction.commit(Durability::NoSync).await;
                    assert!(
                        matches!(committed, Err(Error::Transaction(TransactionError::RolledBack))),
                        "{committed:?}"
                    );
                }
                return self.roll_back().await;
            }
        }
        match self.random.below(10) {
            0 => {
                self.say(|| "dropped".to_owned());
                self.world.count("dropped");
                self.transaction = self.db.transaction();
                self.own.clear();
            }
            1 | 2 => self.roll_back().await,
            _ => self.commit().await,
        }
    }

    async fn roll_back(&mut self) {
        self.own.clear();
        self.say(|| "rollback".to_owned());
        loop {
            let polls = self.polls();
            if let Some(result) = cut(polls, self.transaction.rollback()).await {
                return result.unwrap();
            }
            if self.random.one_in(3) {
                self.transaction = self.db.transaction();
                return;
            }
        }
    }

    async fn commit(&mut self) {
        loop {
            let polls = self.polls();
            let result = cut(polls, self.transaction.commit(Durability::NoSync)).await;
            match result {
                Some(result) => result.unwrap(),
                None if self.transaction.is_active() => {
                    self.world.count("commit cut");
                    continue;
                }
                None => {}
            }
            self.say(|| format!("commit {:?}", self.own));
            let mut committed = self.world.committed.borrow_mut();
            *committed = overlay(&committed, &self.own);
            self.own.clear();
            return;
        }
    }

    /// What an error means for the transaction.
    fn failed(&mut self, error: &Error) -> Outcome {
        self.say(|| format!("{error}"));
        match error {
            Error::Transaction(TransactionError::Deadlock) => Outcome::Gone,
            Error::Transaction(TransactionError::LockWaitTimeout) => {
                self.world.count("timeout");
                Outcome::GoesOn
            }
            Error::Transaction(TransactionError::NoWaitLocked) => Outcome::GoesOn,
            error => panic!("session {}: {error}", self.number),
        }
    }

    async fn operation(&mut self) -> Outcome {
        let table = self.table.clone().unwrap();
        let id = self.random.below(KEYS as usize) as i64;
        let polls = self.polls();
        match self.random.below(14) {
            0..3 => self.insert(&table, id, polls).await,
            3..6 => self.update(&table, id, polls).await,
            6..8 => self.delete(&table, id, polls).await,
            8 => self.get(&table, id, polls).await,
            9..12 => self.range(&table, polls).await,
            12 => {
                self.say(|| "savepoint".to_owned());
                self.transaction.engine_mut().savepoint("s");
                self.savepoint = Some(self.own.clone());
                Outcome::GoesOn
            }
            _ => self.back_to_savepoint(polls).await,
        }
    }

    async fn insert(&mut self, table: &Arc<Table>, id: i64, polls: u64) -> Outcome {
        let row = self.columns();
        let text = vec![row.2.0; row.2.1];
        self.say(|| format!("insert {id} {row:?} polls {polls}"));
        let result = cut(polls, self.transaction.insert(table, &values(id, row, &text))).await;
        let current = self.current();
        let clash =
            current.contains_key(&id) || row.1.is_some() && current.values().any(|other| other.1 == row.1);
        match result {
            None => self.world.count("insert cut"),
            Some(Ok(_)) => {
                assert!(!clash, "{}: {id} {row:?} went in beside {current:?}", self.number);
                self.own.insert(id, Some(row));
                self.world.count("insert");
            }
            Some(Err(Error::Transaction(TransactionError::DuplicateKey { .. }))) => {
                assert!(clash, "{}: {id} {row:?} is no duplicate in {current:?}", self.number);
                self.world.count("duplicate");
            }
            Some(Err(error)) => return self.failed(&error),
        }
        Outcome::GoesOn
    }

    async fn update(&mut self, table: &Arc<Table>, id: i64, polls: u64) -> Outcome {
        let new = self.columns();
        let text = vec![new.2.0; new.2.1];
        let which = self.random.below(4);
        let mut changes: Vec<(&str, Value<'_>)> = Vec::new();
        if which != 1 {
            changes.push(("k", Value::Int(new.0)));
        }
        if which == 1 || which == 3 {
            changes.push(("u", new.1.map_or(Value::Null, Value::Int)));
        }
        if which >= 2 {
            changes.push(("text", Value::bytes(&text)));
        }
        self.say(|| format!("update {id} {which} {new:?} polls {polls}"));
        let result = cut(polls, self.transaction.update(table, &[Value::Int(id)], &changes)).await;
        let current = self.current();
        match result {
            None => self.world.count("update cut"),
            Some(Ok(false)) => {
                assert!(!current.contains_key(&id), "{}: {id} not found in {current:?}", self.number);
            }
            Some(Ok(true)) => {
                let mut row = *current.get(&id).expect("a row that was updated");
                if which != 1 {
                    row.0 = new.0;
                }
                if which == 1 || which == 3 {
                    row.1 = new.1;
                    let clash = row.1.is_some()
                        && current.iter().any(|(other, columns)| *other != id && columns.1 == row.1);
                    assert!(!clash, "{}: update {id} {row:?} beside {current:?}", self.number);
                }
                if which >= 2 {
                    row.2 = new.2;
                }
                // What changes nothing makes no version: a snapshot shows the row as it was.
                if current.get(&id) != Some(&row) {
                    self.own.insert(id, Some(row));
                }
                self.world.count("update");
            }
            Some(Err(Error::Transaction(TransactionError::DuplicateKey { .. }))) => {
                let clash = current.iter().any(|(other, columns)| *other != id && columns.1 == new.1);
                assert!(clash, "{}: update {id} {new:?} no duplicate in {current:?}", self.number);
            }
            Some(Err(error)) => return self.failed(&error),
        }
        Outcome::GoesOn
    }

    async fn delete(&mut self, table: &Arc<Table>, id: i64, polls: u64) -> Outcome {
        self.say(|| format!("delete {id} polls {polls}"));
        let result = cut(polls, self.transaction.delete(table, &[Value::Int(id)])).await;
        let there = self.current().contains_key(&id);
        match result {
            None => self.world.count("delete cut"),
            Some(Ok(deleted)) => {
                assert_eq!(deleted, there, "{}: delete {id}", self.number);
                if deleted {
                    self.own.insert(id, None);
                    self.world.count("delete");
                }
            }
            Some(Err(error)) => return self.failed(&error),
        }
        Outcome::GoesOn
    }

    async fn get(&mut self, table: &Arc<Table>, id: i64, polls: u64) -> Outcome {
        let lock = if self.random.one_in(2) { Lock::Share } else { Lock::Exclusive };
        let wait = [WaitPolicy::Wait, WaitPolicy::NoWait, WaitPolicy::SkipLocked][self.random.below(3)];
        self.say(|| format!("get {id} {lock:?} {wait:?} polls {polls}"));
        let result = cut(polls, self.transaction.get_or(table, &[Value::Int(id)], lock, wait)).await;
        match result {
            None => {}
            Some(Ok(None)) if wait == WaitPolicy::SkipLocked => {}
            // Nothing keeps a row away that was not there.
            Some(Ok(None)) if self.isolation == Isolation::ReadCommitted => {}
            Some(Ok(row)) => {
                let row = row.as_ref().map(|row| columns_of(row).1);
                assert_eq!(
                    row,
                    self.current().get(&id).copied(),
                    "{}: get {id} at {:?}",
                    self.number,
                    self.isolation
                );
                self.world.count("get");
            }
            Some(Err(error)) => return self.failed(&error),
        }
        Outcome::GoesOn
    }

    async fn range(&mut self, table: &Arc<Table>, polls: u64) -> Outcome {
        let lock = [Lock::None, Lock::Share, Lock::Exclusive][self.random.below(3)];
        let index = ["PRIMARY", "k", "u"][self.random.below(3)];
        let lower = self.random.below(KEYS as usize) as i64;
        let upper = lower + [0, 3, 10, KEYS][self.random.below(4)];
        let mut range = Range::all().index(index).lock(lock);
        if !self.random.one_in(6) {
            range = range.from(vec![Value::Int(lower)]).to(vec![Value::Int(upper)]);
        }
        let whole = matches!(range.lower, std::ops::Bound::Unbounded);
        range.descending = self.random.one_in(3);
        self.say(|| format!("range {index} {lock:?} {lower}..={upper} {whole} polls {polls}"));
        let mut found = Vec::new();
        let read = self.transaction.for_each(table, &range, |row| {
            found.push(columns_of(&row));
            true
        });
        let result = cut(polls, read).await;
        match result {
            None => return Outcome::GoesOn,
            Some(Ok(())) => {}
            Some(Err(error)) => return self.failed(&error),
        }
        let locking = lock != Lock::None || self.isolation == Isolation::Serializable;
        let rows = match (&self.snapshot, locking) {
            (_, true) if self.isolation != Isolation::ReadCommitted => self.current(),
            (Some(snapshot), false) => overlay(snapshot, &self.own),
            _ => return Outcome::GoesOn,
        };
        let key = |(id, columns): (i64, Columns)| match index {
            "PRIMARY" => Some(id),
            "k" => Some(columns.0),
            _ => columns.1,
        };
        let inside =
            |row: &(i64, Columns)| whole || key(*row).is_some_and(|key| (lower..=upper).contains(&key));
        let mut expected: Vec<(i64, Columns)> = rows.into_iter().filter(inside).collect();
        expected.sort_by_key(|row| (key(*row), row.0));
        if range.descending {
            expected.reverse();
        }
        assert_eq!(
            found, expected,
            "{}: {index} {lower}..={upper} {lock:?} at {:?}",
            self.number, self.isolation
        );
        self.world.count(if locking { "locked range" } else { "snapshot range" });
        Outcome::GoesOn
    }

    async fn back_to_savepoint(&mut self, polls: u64) -> Outcome {
        let Some(savepoint) = self.savepoint.clone() else { return Outcome::GoesOn };
        self.say(|| format!("rollback to savepoint polls {polls}"));
        let back = self.transaction.engine_mut().rollback_to_savepoint("s");
        match cut(polls, back).await {
            Some(result) => assert!(result.unwrap()),
            None => self.world.count("savepoint cut"),
        }
        self.own = savepoint;
        self.world.count("savepoint");
        Outcome::GoesOn
    }
}

async fn definitions(db: Database, world: Rc<World>, mut random: Random) {
    while !world.stop.get() {
        let exists = db.table("test", "t").unwrap().def.key_named("extra").is_some();
        let polls = if random.one_in(3) { 1 + random.below(40) as u64 } else { u64::MAX };
        let result = if exists {
            cut(polls, db.definitions().timeout(PATIENCE).drop_index("test", "t", "extra")).await
        } else {
            let part = |column| KeyPart::whole(column);
            let key = KeyDef::new("extra", KeyKind::Secondary, vec![part(1), part(2)]);
            cut(polls, db.definitions().timeout(PATIENCE).create_index("test", "t", key)).await
        };
        match result {
            Some(Ok(())) => world.count("definition"),
            None | Some(Err(Error::MetadataLockTimeout | Error::Transaction(TransactionError::Deadlock))) => {
            }
            // One that was cut goes on.
            Some(Err(error)) => world.count(if format!("{error}").contains("extra") {
                "definition refused"
            } else {
                panic!("{error}")
            }),
        }
        db.environment().sleep(Duration::from_millis(random.below(60) as u64)).await;
    }
}

fn history(seed: u64) {
    let mut random = Random::new(seed);
    let environment = SimulatedEnvironment::new(random.next_u64());
    let shared: Arc<dyn Environment> = environment.clone();
    let trace = std::env::var("UNTORN_TRACE").is_ok();
    let world = Rc::new(World {
        committed: RefCell::default(),
        stop: Cell::new(false),
        seen: RefCell::default(),
        trace,
    });
    let inner = world.clone();
    environment.run_until_complete(async {
        let world = inner;
        let db = Database::open_in(shared, options()).await.unwrap();
        db.create_database("test", untorn::types::Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("test", "t", table_def()).await.unwrap();
        let mut parts: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
        for number in 0..SESSIONS {
            let session = Session {
                world: world.clone(),
                db: db.clone(),
                number,
                random: Random::new(random.next_u64()),
                transaction: db.transaction(),
                table: None,
                own: Own::new(),
                savepoint: None,
                snapshot: None,
                isolation: Isolation::default(),
            };
            parts.push(Box::pin(session.run()));
        }
        parts.push(Box::pin(definitions(db.clone(), world.clone(), Random::new(random.next_u64()))));
        let (end, clock) = (world.clone(), db.clone());
        let length = Duration::from_millis(200 + random.below(1500) as u64);
        parts.push(Box::pin(async move {
            clock.environment().sleep(length).await;
            end.stop.set(true);
        }));
        interleave(parts, random.next_u64(), u64::MAX).await;
        let figure = |name: &str| db.status().into_iter().find(|(other, _)| *other == name).unwrap().1;
        for _ in 0..200 {
            if figure("Untorn_transactions_active") == 0 {
                break;
            }
            db.environment().sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(figure("Untorn_transactions_active"), 0);
        db.transaction_system().purge_all().await.unwrap();
        assert_eq!(figure("Untorn_row_locks"), 0);
        assert_eq!(figure("Innodb_row_lock_current_waits"), 0);
        assert_eq!(figure("Innodb_history_list_length"), 0);
        assert_eq!(figure("Untorn_purge_skipped"), 0);
        let report = db.definitions().timeout(Duration::from_secs(1)).check_table("test", "t").await.unwrap();
        assert!(report.is_sound(), "{:#?}", report.problems);
        let table = db.table("test", "t").unwrap();
        for index in ["PRIMARY", "k", "u"] {
            let mut found = Rows::new();
            let mut transaction = db.transaction();
            let range = Range::all().index(index);
            let read = transaction.for_each(&table, &range, |row| {
                let (id, columns) = columns_of(&row);
                assert!(found.insert(id, columns).is_none());
                true
            });
            read.await.unwrap();
            assert_eq!(found, *world.committed.borrow(), "{index}");
        }
        db.definitions().timeout(Duration::from_millis(100)).drop_table("test", "t").await.unwrap();
        db.close().await.unwrap();
    });
    println!("{:?}", world.seen.borrow());
}

#[test]
fn sessions_agree_with_the_model() {
    let seeds: Vec<u64> = match std::env::var("UNTORN_SEED") {
        Ok(seed) => vec![seed.parse().expect("UNTORN_SEED is a number")],
        Err(_) => {
            let number =
                |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
            let first = number("UNTORN_FIRST", 1);
            (first..first + number("UNTORN_HISTORIES", 3)).collect()
        }
    };
    for seed in seeds {
        println!("UNTORN_SEED={seed}");
        history(seed);
    }
}
