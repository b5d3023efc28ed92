//! Transfers between accounts from several threads: transactions, row locks, deadlocks and retries.
//!
//! `cargo run --release --example bank [directory]`

use std::sync::Arc;
use std::thread;

use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, Options, Range, Result, Table, Transaction};

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

    let sum = db.transact(|t| -> untorn::Result<i64> {
        let mut sum = 0;
        for row in t.scan(&table, &Range::all())? {
            if let Value::Int(balance) = row?[1] {
                sum += balance;
            }
        }
        Ok(sum)
    })?;
    println!("sum of all balances: {sum}, as it was: {}", sum == ACCOUNTS * START_BALANCE);
    db.close()
}

/// Moves money about; returns how often a deadlock made it try again.
fn transfers(db: &Database, table: &Arc<Table>, seed: u64) -> Result<u64> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (mut transfers, mut attempts) = (0, 0);
    for _ in 0..TRANSFERS_PER_THREAD {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let from = ((random >> 33) as i64 % ACCOUNTS).abs();
        let to = ((random >> 13) as i64 % ACCOUNTS).abs();
        if from == to {
            continue;
        }
        transfers += 1;
        db.transact(|t| {
            attempts += 1;
            transfer(t, table, from, to, 1)
        })?;
    }
    Ok(attempts - transfers)
}

fn transfer(t: &mut Transaction, table: &Arc<Table>, from: i64, to: i64, sum: i64) -> Result<()> {
    for (id, change) in [(from, -sum), (to, sum)] {
        let row = t.get_for_update(table, &[Value::Int(id)])?;
        if let Some(Value::Int(balance)) = row.as_ref().map(|row| &row[1]) {
            t.update(table, &[Value::Int(id)], &[("balance", Value::Int(balance + change))])?;
        }
    }
    Ok(())
}
