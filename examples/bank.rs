//! Transfers between accounts from several threads: transactions, row locks, deadlocks and retries.
//!
//! `cargo run --release --example bank [directory]`

use std::thread;

use untorn::engine::{Error as TransactionError, Isolation};
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, Error, Options, Range, Result};

const ACCOUNTS: i64 = 100;
const START_BALANCE: i64 = 1_000;
const TRANSFERS_PER_THREAD: u64 = 1_000;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "untorn-bank".to_owned());
    let db = Database::open(Options::new(directory).buffer_pool_bytes(64 << 20))?;
    println!("{}", db.report());
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("balance", ColumnType::bigint()),
    ])
    .primary_key(&["id"]);
    let table = db.create_table_if_missing("bank", "account", def)?;

    let mut t = db.begin();
    if t.get(&table, &[Value::Int(0)])?.is_none() {
        for id in 0..ACCOUNTS {
            t.insert(&table, &[Value::Int(id), Value::Int(START_BALANCE)])?;
        }
    }
    t.commit()?;

    thread::scope(|scope| {
        let workers: Vec<_> = (1..=4)
            .map(|seed| {
                let (db, table) = (&db, &table);
                scope.spawn(move || transfers(db, table, seed))
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(Ok(retries)) => println!("a thread is done, {retries} transfers were tried again"),
                Ok(Err(error)) => println!("a thread failed: {error}"),
                Err(_) => println!("a thread panicked"),
            }
        }
    });

    let mut t = db.begin();
    let mut sum = 0;
    t.for_each(&table, &Range::all(), |row| {
        if let Value::Int(balance) = row[1] {
            sum += balance;
        }
        true
    })?;
    drop(t);
    println!("sum of all balances: {sum}, as it was: {}", sum == ACCOUNTS * START_BALANCE);
    db.close_blocking()
}

/// Moves money about; returns how often a deadlock made it try again.
fn transfers(db: &Database, table: &std::sync::Arc<untorn::Table>, seed: u64) -> Result<u64> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut retries = 0;
    for _ in 0..TRANSFERS_PER_THREAD {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (from, to) = ((random >> 33) as i64 % ACCOUNTS, (random >> 13) as i64 % ACCOUNTS);
        let from = from.abs();
        let to = to.abs();
        if from == to {
            continue;
        }
        while let Err(error) = transfer(db, table, from, to, 1) {
            match error {
                Error::Transaction(TransactionError::Deadlock) => retries += 1,
                other => return Err(other),
            }
        }
    }
    Ok(retries)
}

fn transfer(
    db: &Database,
    table: &std::sync::Arc<untorn::Table>,
    from: i64,
    to: i64,
    sum: i64,
) -> Result<()> {
    let mut t = db.begin_at(Isolation::ReadCommitted);
    for (id, change) in [(from, -sum), (to, sum)] {
        let row = t.get_for_update(table, &[Value::Int(id)])?;
        if let Some(Value::Int(balance)) = row.as_ref().map(|row| &row[1]) {
            t.update(table, &[Value::Int(id)], &[("balance", Value::Int(balance + change))])?;
        }
    }
    t.commit()
}
