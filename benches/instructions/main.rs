//! What one call of the key-value face costs in instructions, which no neighbour on the machine can change:
//!
//! ```sh
//! cargo bench --bench instructions --no-run          # names the program
//! PROGRAM DIRECTORY load 400000
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='instructions::measured_*' \
//!     PROGRAM DIRECTORY get 1000 400000              # the second number is that of the load
//! PROGRAM DIRECTORY open 20                          # this one in time
//! ```
//!
//! Pairs as in `benches/embedded`: keys of 24 random bytes, values of 150. Each call is made twice and
//! counted the second time, when all pages are in memory. The number that callgrind gives, divided by that of
//! the calls, includes the making of the key and the look at the value. Only `open` uses io_uring, for which
//! valgrind cannot wait.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use untorn::{Database, KeyValue, Options, Transaction};

type Table = KeyValue<Vec<u8>, Vec<u8>>;

const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 150;

/// A random number that is a function of two others (splitmix64).
fn mixed(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

fn key(n: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for (at, chunk) in key.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&mixed(mixed(1, n), at as u64).to_le_bytes());
    }
    key
}

fn open(directory: &Path, io_uring: bool) -> (Database, Table) {
    let mut options = Options::new(directory).buffer_pool_bytes(512 << 20);
    options.io_uring = io_uring;
    let db = Database::open(options).unwrap();
    let table = db.key_value("pairs").unwrap();
    (db, table)
}

#[inline(never)]
fn measured_get(table: &Table, t: &mut Transaction, n: u64) {
    let value = table.get(t, &key(n)).unwrap().unwrap();
    assert_eq!(black_box(value).len(), VALUE_BYTES);
}

#[inline(never)]
fn measured_range(table: &Table, t: &mut Transaction, n: u64, rows: usize) {
    for pair in table.range(t, &key(n)[..]..).take(rows) {
        black_box(pair.unwrap());
    }
}

#[inline(never)]
fn measured_put(table: &Table, t: &mut Transaction, n: u64) {
    table.put(t, &key(n), &[7; VALUE_BYTES]).unwrap();
}

#[inline(never)]
fn measured_remove(table: &Table, t: &mut Transaction, n: u64) {
    assert!(table.remove(t, &key(n)).unwrap());
}

#[inline(never)]
fn measured_count(table: &Table, t: &mut Transaction) -> u64 {
    table.count(t).unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let [directory, step, calls, rest @ ..] = &arguments[..] else {
        println!(
            "arguments: DIRECTORY load|get|range1|range10|range100|put|replace|remove|count|open CALLS [PAIRS]"
        );
        return;
    };
    let (directory, calls) = (Path::new(directory), calls.parse::<u64>().unwrap());
    let pairs = rest.first().map_or(0, |pairs| pairs.parse::<u64>().unwrap());
    if step == "open" {
        for _ in 0..calls {
            let begun = Instant::now();
            let (db, _) = open(directory, true);
            println!("open {:>7} µs", begun.elapsed().as_micros());
            db.close().unwrap();
        }
        return;
    }
    let (db, table) = open(directory, false);
    let mut t = db.begin();
    // Also what only a split looks at is in memory then.
    assert!(step == "load" || table.count(&mut t).unwrap() >= pairs);
    let some = |call| mixed(2, call) % pairs.max(1);
    let rows = step.strip_prefix("range").and_then(|rows| rows.parse().ok()).unwrap_or(0);
    let mut begun = Instant::now();
    for call in 0..2 * calls {
        let (counted, call) = (call >= calls, call % calls);
        if counted && call == 0 {
            begun = Instant::now();
        }
        match (step.as_str(), counted) {
            ("load", true) => measured_put(&table, &mut t, call),
            ("put", true) => measured_put(&table, &mut t, pairs + call),
            ("replace", true) => measured_put(&table, &mut t, call * (pairs / calls)),
            ("remove", true) => measured_remove(&table, &mut t, call * (pairs / calls)),
            ("count", true) => assert_eq!(measured_count(&table, &mut t), pairs),
            ("load" | "count", false) => {}
            ("put", false) => assert!(table.get(&mut t, &key(pairs + call)).unwrap().is_none()),
            ("replace" | "remove", false) => {
                assert!(table.get(&mut t, &key(call * (pairs / calls))).unwrap().is_some())
            }
            ("get", false) => assert!(table.get(&mut t, &key(some(call))).unwrap().is_some()),
            ("get", true) => measured_get(&table, &mut t, some(call)),
            (_, false) => {
                assert!(table.range(&mut t, &key(some(call))[..]..).take(rows).all(|pair| pair.is_ok()))
            }
            (_, true) => measured_range(&table, &mut t, some(call), rows),
        }
    }
    println!("{calls} × {step}: {} ns each", begun.elapsed().as_nanos() / u128::from(calls));
    match step.as_str() {
        "load" => t.commit().unwrap(),
        _ => t.rollback().unwrap(),
    }
    db.close().unwrap();
}
