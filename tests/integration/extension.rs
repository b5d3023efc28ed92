//! The whole engine with a buffer pool extension, from a seed: sessions over data larger than the buffer
//! pool, while the tier is switched, resized, moved and its file damaged and the buffer pool grows and
//! shrinks; a power loss at a random moment; and the same again on what is left, with the tier kept. Every
//! row that is read must be the one written last.
//!
//! A failure prints its seed: `UNTORN_SEED=<seed> cargo test --test integration extension` replays it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, Random, SimulatedEnvironment};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{ExtensionChange, Lock, Options, Table};

/// About 9 MiB with the pool at its least, 5 MiB.
const ROWS: usize = 1200;
const TEXT: usize = 7_000;
const FILES: [&str; 2] = ["/fast/tier", "/fast/other"];
const MIB: u64 = 1 << 20;

/// What the rows hold: acknowledged, and perhaps instead.
#[derive(Clone)]
struct Model {
    values: Vec<i64>,
    unsure: Option<(usize, i64)>,
}

#[derive(Default, Debug)]
struct Seen {
    hits: u64,
    restored: u64,
    mismatches: u64,
}

fn options() -> Options {
    let options = Options::new("/data").buffer_pool_bytes(5 * MIB).redo_capacity_bytes(8 * MIB);
    options.extension(FILES[0], 16 * MIB)
}

fn text(id: usize, value: i64) -> Vec<u8> {
    let mut random = Random::new((id as u64) << 32 ^ value as u64);
    let mut text = vec![0; TEXT];
    text.chunks_mut(500).for_each(|part| part.fill(random.next_u64() as u8));
    text
}

async fn prepare(environment: Arc<dyn Environment>) -> Database {
    environment.storage().create_dir_all(Path::new("/fast")).unwrap();
    let db = Database::open_in(environment, options()).await.unwrap();
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("value", ColumnType::bigint()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }),
    ];
    db.create_table("test", "t", TableDef::new(columns).primary_key(&["id"])).await.unwrap();
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.transaction();
    for start in (0..ROWS).step_by(50) {
        transaction.begin();
        for id in start..start + 50 {
            let text = text(id, 0);
            let row = [Value::Int(id as i64), Value::Int(0), Value::bytes(&text)];
            transaction.insert(&table, &row).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
    }
    db
}

async fn read(transaction: &mut untorn::asynchronous::Transaction, table: &Arc<Table>, id: usize) -> i64 {
    let row = transaction.get(table, &[Value::Int(id as i64)], Lock::None).await.unwrap().unwrap();
    let (Value::Int(value), Value::Bytes(found)) = (&row[1], &row[2]) else {
        panic!("row {id}: other types")
    };
    assert!(**found == *text(id, *value), "row {id}: the text is not that of version {value}");
    *value
}

/// Changes and reads rows; ends when the steps are used up.
async fn work(db: &Database, model: &RefCell<Model>, random: &mut Random, steps: usize) {
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.transaction();
    for _ in 0..steps {
        let id = random.below(ROWS);
        transaction.begin();
        if random.one_in(3) {
            let value = model.borrow().values[id] + 1;
            model.borrow_mut().unsure = Some((id, value));
            let text = text(id, value);
            let changes = [("value", Value::Int(value)), ("text", Value::bytes(&text))];
            assert!(transaction.update(&table, &[Value::Int(id as i64)], &changes).await.unwrap());
            transaction.commit(Durability::Sync).await.unwrap();
            let mut model = model.borrow_mut();
            model.values[id] = value;
            model.unsure = None;
        } else {
            let expected = model.borrow().values[id];
            assert_eq!(read(&mut transaction, &table, id).await, expected, "row {id}");
            transaction.commit(Durability::Sync).await.unwrap();
        }
    }
}

async fn verify(db: &Database, model: &mut Model) {
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.transaction();
    for id in 0..ROWS {
        let (found, expected) = (read(&mut transaction, &table, id).await, model.values[id]);
        assert!(
            found == expected || model.unsure == Some((id, found)),
            "row {id} is {found}, expected {expected}"
        );
        model.values[id] = found;
    }
    model.unsure = None;
}

fn meddle(db: &Database, environment: &SimulatedEnvironment, random: &mut Random) {
    match random.below(14) {
        0 => drop(db.switch_extension(false)),
        1..=3 => drop(db.switch_extension(true)),
        4 => drop(db.resize_extension((random.below(4) as u64 + 1) * 4 * MIB)),
        5 => drop(db.set_extension_file(Some(Path::new(FILES[random.below(2)])))),
        6 | 7 => {
            for file in FILES {
                let garbage: Vec<u8> = (0..100_000).map(|_| random.next_u64() as u8).collect();
                environment.disk().corrupt(Path::new(file), random.below(8) * MIB as usize, &garbage);
            }
        }
        12 | 13 => {
            db.start_buffer_pool_resize((5 + random.below(8) as u64) * MIB).unwrap();
        }
        _ => {}
    }
}

/// One history; `meddling` says whether the tier is disturbed.
fn history(seed: u64, meddling: bool, seen: &mut Seen) {
    let mut random = Random::new(seed);
    let mut environment = SimulatedEnvironment::new(random.next_u64());
    let model = Rc::new(RefCell::new(Model { values: vec![0; ROWS], unsure: None }));
    for round in 0..3 {
        let shared: Arc<dyn Environment> = environment.clone();
        let db = environment.run_until_complete(async {
            if round == 0 {
                prepare(shared).await
            } else {
                let db = Database::open_in(shared, options()).await.unwrap();
                seen.restored += db.extension().restored;
                let mut found = model.borrow().clone();
                verify(&db, &mut found).await;
                *model.borrow_mut() = found;
                db
            }
        });
        for _ in 0..1 + random.below(8) {
            environment.run_until_complete(work(&db, &model, &mut random, 150));
            environment.advance(Duration::from_millis(random.below(300) as u64));
            if meddling {
                meddle(&db, &environment, &mut random);
            }
        }
        let tier = db.extension();
        seen.hits += tier.hits;
        seen.mismatches += tier.mismatches_corrupt + tier.mismatches_misdirected + tier.mismatches_stale;
        if random.one_in(4) {
            environment.run_until_complete(db.close()).unwrap();
        }
        let left = environment.disk().crash(random.next_u64());
        drop(db);
        environment = SimulatedEnvironment::with_storage(random.next_u64(), left);
    }
}

fn seeds(usual: std::ops::Range<u64>) -> Vec<u64> {
    match std::env::var("UNTORN_SEED") {
        Ok(seed) => vec![seed.parse().expect("UNTORN_SEED is a number")],
        Err(_) => usual.collect(),
    }
}

#[test]
fn a_kept_tier_serves_what_is_current() {
    let mut seen = Seen::default();
    for seed in seeds(1..4) {
        println!("UNTORN_SEED={seed}");
        history(seed, false, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.hits > 100 && seen.restored > 100, "{seen:?}");
}

#[test]
fn a_disturbed_tier_costs_speed_only() {
    let mut seen = Seen::default();
    for seed in seeds(50..54) {
        println!("UNTORN_SEED={seed}");
        history(seed, true, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.hits > 0 && seen.mismatches > 0, "{seen:?}");
}

/// What the tier's tables take is taken from the buffer pool's frames, at start and whenever the tier
/// changes.
#[test]
fn the_tiers_memory_comes_out_of_the_pool() {
    let environment = SimulatedEnvironment::new(7);
    let db = environment.run_until_complete(prepare(environment.clone()));
    let mut seen = Vec::new();
    let mut check = || {
        environment.advance(Duration::from_secs(3));
        let (pool, tier) = (db.buffer_pool_bytes(), db.extension().memory_bytes);
        assert_eq!(db.store().status().pages_total, (pool - tier) / (16 << 10), "{pool} {tier}");
        seen.push(tier);
    };
    check();
    let finish = |change: ExtensionChange| {
        environment.run_until_complete(change.over().wait());
        change.outcome().unwrap();
    };
    finish(db.resize_extension(64 * MIB));
    check();
    finish(db.switch_extension(false));
    check();
    let over = db.start_buffer_pool_resize(24 * MIB).unwrap();
    environment.run_until_complete(over.wait());
    // Eight times the pool as it is now; more than the pool at start would have had memory for.
    finish(db.switch_extension(true));
    check();
    finish(db.resize_extension(0));
    check();
    assert_eq!(db.extension().size_bytes / MIB, 8 * 24);
    println!("{seen:?}");
    assert!(seen[0] > 0 && seen[1] > seen[0] && seen[2] == 0 && seen[4] > seen[1], "{seen:?}");
    environment.run_until_complete(db.close()).unwrap();
}
