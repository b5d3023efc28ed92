//! The whole engine on one thread, from a seed: concurrent sessions on a simulated disk, a crash at a random
//! moment that loses, reorders and tears what was not synced, recovery, and a comparison with a model.
//!
//! What must hold after every crash:
//! - what a commit acknowledged is there, whole;
//! - of a transaction whose commit was under way all is there or nothing;
//! - the sum that transfers preserve is preserved;
//! - CHECK TABLE finds every tree, segment and secondary index sound.
//!
//! A failure prints its seed: `UNTORN_SEED=<seed> cargo test --test integration simulation` replays it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, Random, SimulatedEnvironment, interleave};
use untorn::asynchronous::Database;
use untorn::engine::{Durability, Error as TransactionError, Isolation};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{ColumnType, SizeClass, Value};
use untorn::{Error, Lock, Options, Range, Table};

const SESSIONS: usize = 4;
const ACCOUNTS: i64 = 12;
const BALANCE: i64 = 100;
const KEYS_PER_SESSION: i64 = 60;

/// A session's own rows: key to (counter, text).
type Rows = BTreeMap<i64, (i64, Vec<u8>)>;

#[derive(Default, Clone)]
struct Journal {
    /// State after the last acknowledged commit.
    acknowledged: Rows,
    /// State after the commit that is under way.
    under_way: Option<Rows>,
    commits: u64,
}

fn options() -> Options {
    Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20)
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
    .key("counter_1", KeyKind::Secondary, &["counter"])
}

fn account_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("balance", ColumnType::bigint()),
    ])
    .primary_key(&["id"])
}

/// Errors that end a transaction without being anybody's fault.
fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::Transaction(TransactionError::Deadlock | TransactionError::LockWaitTimeout)
            | Error::MetadataLockTimeout
    )
}

/// How long DDL and those it keeps out wait for each other, in virtual time.
const DDL_PATIENCE: Duration = Duration::from_secs(5);

/// Makes and drops a secondary index, over and over.
async fn definitions(db: Database) {
    loop {
        let exists = db.table("test", "t").unwrap().def.key_named("extra").is_some();
        let result = if exists {
            db.definitions().timeout(DDL_PATIENCE).drop_index("test", "t", "extra").await
        } else {
            let part = |column| KeyPart::whole(column);
            let key = KeyDef::new("extra", KeyKind::Secondary, vec![part(1), part(0)]);
            db.definitions().timeout(DDL_PATIENCE).create_index("test", "t", key).await
        };
        match result {
            Ok(()) => {}
            Err(error) if is_conflict(&error) => {}
            Err(error) => panic!("DDL: {error}"),
        }
        db.environment().sleep(Duration::from_millis(30)).await;
    }
}

async fn session(
    db: Database,
    accounts: Arc<Table>,
    number: usize,
    seed: u64,
    journal: Rc<RefCell<Journal>>,
    stop: Rc<Cell<bool>>,
) {
    let mut random = Random::new(seed);
    let mut transaction = db.transaction();
    while !stop.get() {
        let level =
            [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][random.below(3)];
        transaction.engine_mut().set_isolation(level);
        transaction.begin();
        let outcome = if random.one_in(3) {
            transfer(&mut transaction, &accounts, &mut random).await.map(|()| None)
        } else {
            let mut rows = journal.borrow().acknowledged.clone();
            change_rows(&mut transaction, number, &mut random, &mut rows).await.map(|()| Some(rows))
        };
        match outcome {
            Ok(_) if random.one_in(8) => transaction.rollback().await.unwrap(),
            Ok(rows) => {
                if let Some(rows) = &rows {
                    journal.borrow_mut().under_way = Some(rows.clone());
                }
                transaction.commit(Durability::Sync).await.unwrap();
                let mut journal = journal.borrow_mut();
                journal.commits += 1;
                journal.under_way = None;
                if let Some(rows) = rows {
                    journal.acknowledged = rows;
                }
            }
            Err(error) if is_conflict(&error) => transaction.rollback().await.unwrap(),
            Err(error) => panic!("session {number}: {error}"),
        }
    }
}

async fn transfer(
    transaction: &mut untorn::asynchronous::Transaction,
    accounts: &Arc<Table>,
    random: &mut Random,
) -> Result<(), Error> {
    let from = random.below(ACCOUNTS as usize) as i64;
    let to = (from + 1 + random.below(ACCOUNTS as usize - 1) as i64) % ACCOUNTS;
    for (id, change) in [(from, -1), (to, 1)] {
        let row = transaction.get(accounts, &[Value::Int(id)], Lock::Exclusive).await?.unwrap();
        let Value::Int(balance) = row[1] else { panic!("balance of {id}: {row:?}") };
        transaction.update(accounts, &[Value::Int(id)], &[("balance", Value::Int(balance + change))]).await?;
    }
    Ok(())
}

async fn change_rows(
    transaction: &mut untorn::asynchronous::Transaction,
    session: usize,
    random: &mut Random,
    rows: &mut Rows,
) -> Result<(), Error> {
    let table = &transaction.open_table("test", "t", DDL_PATIENCE).await?;
    for _ in 0..1 + random.below(6) {
        let id = (random.below(KEYS_PER_SESSION as usize) * SESSIONS + session) as i64;
        let counter = random.below(1000) as i64;
        let size = if random.one_in(12) { 9_000 + random.below(30_000) } else { random.below(300) };
        let text = vec![random.below(256) as u8; size];
        match rows.get(&id) {
            None => {
                transaction
                    .insert(table, &[Value::Int(id), Value::Int(counter), Value::bytes(&text)])
                    .await?;
                rows.insert(id, (counter, text));
            }
            Some(_) if random.one_in(3) => {
                assert!(transaction.delete(table, &[Value::Int(id)]).await?, "row {id} must be there");
                rows.remove(&id);
            }
            Some(_) => {
                let changes = [("counter", Value::Int(counter)), ("text", Value::bytes(&text))];
                assert!(
                    transaction.update(table, &[Value::Int(id)], &changes).await?,
                    "row {id} must be there"
                );
                rows.insert(id, (counter, text));
            }
        }
    }
    Ok(())
}

async fn prepare(environment: Arc<dyn Environment>) -> Database {
    let db = Database::open_in(environment, options()).await.unwrap();
    db.create_database("test", untorn::types::Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "t", table_def()).await.unwrap();
    db.create_table("test", "account", account_def()).await.unwrap();
    let accounts = db.table("test", "account").unwrap();
    let mut transaction = db.transaction();
    transaction.begin();
    for id in 0..ACCOUNTS {
        transaction.insert(&accounts, &[Value::Int(id), Value::Int(BALANCE)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db
}

async fn verify(db: &Database, journals: &[Journal]) -> Vec<Rows> {
    let (table, accounts) = (db.table("test", "t").unwrap(), db.table("test", "account").unwrap());
    let mut transaction = db.transaction();
    let mut sum = 0;
    transaction
        .for_each(&accounts, &Range::all(), |row| {
            if let Value::Int(balance) = row[1] {
                sum += balance;
            }
            true
        })
        .await
        .unwrap();
    assert_eq!(sum, ACCOUNTS * BALANCE, "transfers preserve the sum");
    let mut found: Vec<Rows> = journals.iter().map(|_| Rows::new()).collect();
    transaction
        .for_each(&table, &Range::all(), |row| {
            let (Value::Int(id), Value::Int(counter), Value::Bytes(text)) = (&row[0], &row[1], &row[2])
            else {
                panic!("a row of other types: {row:?}");
            };
            found[*id as usize % SESSIONS].insert(*id, (*counter, text.to_vec()));
            true
        })
        .await
        .unwrap();
    drop(transaction);
    for (session, (found, journal)) in found.iter().zip(journals).enumerate() {
        let whole = *found == journal.acknowledged || journal.under_way.as_ref() == Some(found);
        assert!(
            whole,
            "session {session} after {} commits: {} rows found, {} acknowledged, under way: {:?}",
            journal.commits,
            found.len(),
            journal.acknowledged.len(),
            journal.under_way.as_ref().map(BTreeMap::len),
        );
    }
    for name in ["t", "account"] {
        let report =
            db.definitions().timeout(Duration::from_secs(1)).check_table("test", name).await.unwrap();
        assert!(report.is_sound(), "{name}: {:#?}", report.problems);
    }
    found
}

/// One history: run, crash, recover, check; three times over on the same disk.
fn history(seed: u64) {
    let mut random = Random::new(seed);
    let mut environment = SimulatedEnvironment::new(random.next_u64());
    let mut journals: Vec<Journal> = (0..SESSIONS).map(|_| Journal::default()).collect();
    for round in 0..3 {
        let shared: Arc<dyn Environment> = environment.clone();
        let polls = 1 + random.below(6_000) as u64;
        let (order, seeds): (u64, Vec<u64>) =
            (random.next_u64(), (0..SESSIONS).map(|_| random.next_u64()).collect());
        let stop = Rc::new(Cell::new(false));
        let states: Vec<Rc<RefCell<Journal>>> =
            journals.iter().map(|journal| Rc::new(RefCell::new(journal.clone()))).collect();
        let db = environment.run_until_complete(async {
            let db = match round {
                0 => prepare(shared).await,
                _ => Database::open_in(shared, options()).await.unwrap(),
            };
            let found = verify(&db, &journals).await;
            for (state, found) in states.iter().zip(found) {
                *state.borrow_mut() = Journal { acknowledged: found, ..Journal::default() };
            }
            let accounts = db.table("test", "account").unwrap();
            let parts = states.iter().zip(&seeds).enumerate().map(|(number, (state, seed))| {
                let sessions =
                    session(db.clone(), accounts.clone(), number, *seed, state.clone(), stop.clone());
                Box::pin(sessions) as Pin<Box<dyn Future<Output = ()>>>
            });
            let ddl = Box::pin(definitions(db.clone())) as Pin<Box<dyn Future<Output = ()>>>;
            interleave(parts.chain([ddl]).collect(), order, polls).await;
            db
        });
        journals = states.iter().map(|state| state.borrow().clone()).collect();
        let after = environment.disk().crash(random.next_u64());
        drop(db);
        // A statement under way is a task, which has the database.
        environment.shutdown();
        environment = SimulatedEnvironment::with_storage(random.next_u64(), after);
    }
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = Database::open_in(shared, options()).await.unwrap();
        verify(&db, &journals).await;
        db.close().await.unwrap();
    });
}

#[test]
fn crashes_lose_nothing_acknowledged() {
    let seeds: Vec<u64> = match std::env::var("UNTORN_SEED") {
        Ok(seed) => vec![seed.parse().expect("UNTORN_SEED is a number")],
        Err(_) => {
            let count = std::env::var("UNTORN_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
            (1..=count).collect()
        }
    };
    for seed in seeds {
        println!("UNTORN_SEED={seed}");
        history(seed);
    }
}
