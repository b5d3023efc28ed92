//! Statements of many pairs, and how many pairs there are.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment, SimulatedStorage};
use untorn::asynchronous::{Database, KeyValue, Transaction};
use untorn::engine::Durability;
use untorn::schema::{KeyDef, KeyKind, KeyPart};
use untorn::{Error, Options, Rebuild, TransactionError};

type Pairs = KeyValue<Vec<u8>, Vec<u8>>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(256 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    options.lock_wait_timeout = Duration::from_millis(1);
    options
}

async fn open(environment: &Arc<SimulatedEnvironment>) -> (Database, Pairs) {
    let shared: Arc<dyn Environment> = environment.clone();
    let db = Database::open_in(shared, options()).await.unwrap();
    let pairs = db.key_value("pairs").await.unwrap();
    (db, pairs)
}

async fn all(pairs: &Pairs, t: &mut Transaction) -> Model {
    let mut all = pairs.iter(t);
    let mut found = Model::new();
    while let Some((key, value)) = all.next().await.unwrap() {
        found.insert(key, value);
    }
    found
}

/// How many pairs there are, and whether they had to be counted.
async fn counted(pairs: &Pairs, t: &mut Transaction) -> (u64, bool) {
    let before = t.engine().rows_read();
    let counted = pairs.count(t).await.unwrap();
    (counted, t.engine().rows_read() > before)
}

/// Some pairs, in no order, some of them of the same key, and some with a value that is off-page.
fn some(random: &mut impl FnMut(u64) -> u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let one = |_| {
        let mut key = vec![b'k'; random(20) as usize];
        key.extend_from_slice(&random(400).to_be_bytes()[6..]);
        let length = if random(40) == 0 { 2000 + random(3000) } else { random(60) };
        (key, vec![random(256) as u8; length as usize])
    };
    (0..300).map(one).collect()
}

fn given(pairs: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> + Send {
    pairs.iter().map(|(key, value)| (&key[..], &value[..]))
}

#[test]
fn put_all_is_a_put_of_each() {
    for seed in 0..4 {
        let environment = SimulatedEnvironment::new(seed);
        let mut random = |most: u64| (environment.random_u64() >> 8) % most;
        environment.run_until_complete(async {
            let (db, pairs) = open(&environment).await;
            let mut model = Model::new();
            for round in 0..12 {
                let mut t = db.begin();
                let batch = some(&mut random);
                let mut changed = model.clone();
                changed.extend(batch.iter().cloned());
                let new = (changed.len() - model.len()) as u64;
                assert_eq!(pairs.put_all(&mut t, given(&batch)).await.unwrap(), new);
                assert_eq!(all(&pairs, &mut t).await, changed);
                if round % 3 == 1 {
                    t.rollback().await.unwrap();
                } else {
                    t.commit(Durability::Sync).await.unwrap();
                    model = changed;
                }
                let mut t = db.begin();
                assert_eq!(all(&pairs, &mut t).await, model);
                assert_eq!(counted(&pairs, &mut t).await, (model.len() as u64, false));
                // Some go, so that there is room in pages, and rows to be brought back.
                for key in model.keys().filter(|_| random(3) == 0).cloned().collect::<Vec<_>>() {
                    assert!(pairs.remove(&mut t, &key).await.unwrap());
                    model.remove(&key);
                }
                t.commit(Durability::Sync).await.unwrap();
            }
            let report = db.check_table("untorn", "pairs").await.unwrap();
            assert!(report.problems.is_empty(), "{report:?}");
            db.close().await.unwrap();
        });
        environment.shutdown();
    }
}

#[test]
fn a_statement_of_many_pairs_is_undone_whole() {
    let environment = SimulatedEnvironment::new(7);
    environment.run_until_complete(async {
        let (db, pairs) = open(&environment).await;
        let batch: Vec<_> = (0..200u16).rev().map(|n| (n.to_be_bytes().to_vec(), vec![1; 30])).collect();
        let mut t = db.begin();
        pairs.put(&mut t, &100u16.to_be_bytes(), b"old").await.unwrap();
        t.commit(Durability::Sync).await.unwrap();

        let mut t = db.begin();
        pairs.put(&mut t, b"before", b"1").await.unwrap();
        let refused = pairs.insert_all(&mut t, given(&batch)).await.unwrap_err();
        assert!(matches!(refused, Error::Transaction(TransactionError::DuplicateKey { .. })), "{refused}");
        assert_eq!(counted(&pairs, &mut t).await, (2, false));
        t.commit(Durability::Sync).await.unwrap();

        let mut other = db.begin();
        pairs.put(&mut other, &150u16.to_be_bytes(), b"locked").await.unwrap();
        let mut t = db.begin();
        let refused = pairs.put_all(&mut t, given(&batch)).await.unwrap_err();
        assert!(matches!(refused, Error::Transaction(TransactionError::LockWaitTimeout)), "{refused}");
        other.rollback().await.unwrap();
        assert_eq!(all(&pairs, &mut t).await.len(), 2);
        assert_eq!(pairs.put_all(&mut t, given(&batch)).await.unwrap(), 199);
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(counted(&pairs, &mut db.begin()).await, (201, false));
        db.close().await.unwrap();
    });
    environment.shutdown();
}

fn logged_by(db: &Database) -> u64 {
    let figures = db.status();
    let (_, end) = figures.iter().find(|(name, _)| *name == "Innodb_lsn_current").unwrap();
    end.to_string().parse().unwrap()
}

/// In order they fill page after page; at random they split pages, whose halves are logged.
#[test]
fn pairs_are_put_in_the_order_of_their_keys() {
    let logged = |sorted: bool| {
        let environment = SimulatedEnvironment::new(8);
        let logged = environment.run_until_complete(async {
            let (db, pairs) = open(&environment).await;
            let batch: Vec<_> = (0..5000u64)
                .map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec(), vec![7; 50]))
                .collect();
            let before = logged_by(&db);
            let mut t = db.begin();
            if sorted {
                assert_eq!(pairs.put_all(&mut t, given(&batch)).await.unwrap(), 5000);
            } else {
                for (key, value) in given(&batch) {
                    assert!(pairs.put(&mut t, key, value).await.unwrap());
                }
            }
            let logged = logged_by(&db) - before;
            t.commit(Durability::Sync).await.unwrap();
            db.close().await.unwrap();
            logged
        });
        environment.shutdown();
        logged
    };
    let (sorted, one_by_one) = (logged(true), logged(false));
    assert!(sorted * 10 < one_by_one * 8, "{sorted} bytes of log, and {one_by_one} one by one");
}

fn after_crash(environment: Arc<SimulatedEnvironment>, seed: u64) -> Arc<SimulatedEnvironment> {
    let disk: Arc<SimulatedStorage> = environment.disk().crash(seed);
    environment.shutdown();
    SimulatedEnvironment::with_storage(seed, disk)
}

/// Known from the first pair on and over an orderly stop; after a crash they are counted once.
#[test]
fn pairs_are_counted_only_after_a_crash() {
    let environment = SimulatedEnvironment::new(9);
    let put = async |db: &Database, pairs: &Pairs, keys: std::ops::Range<u16>| {
        let mut t = db.begin();
        for key in keys {
            pairs.put(&mut t, &key.to_be_bytes(), b"value").await.unwrap();
        }
        t.commit(Durability::Sync).await.unwrap();
    };
    environment.run_until_complete(async {
        let (db, pairs) = open(&environment).await;
        assert_eq!(counted(&pairs, &mut db.begin()).await, (0, false));
        put(&db, &pairs, 0..100).await;
        assert_eq!(counted(&pairs, &mut db.begin()).await, (100, false));
        db.close().await.unwrap();
    });
    environment.run_until_complete(async {
        let (db, pairs) = open(&environment).await;
        assert_eq!(counted(&pairs, &mut db.begin()).await, (100, false));
        put(&db, &pairs, 100..101).await;
    });
    // The file of the stop is there still, and says 100.
    let environment = after_crash(environment, 10);
    environment.run_until_complete(async {
        let (db, pairs) = open(&environment).await;
        assert_eq!(counted(&pairs, &mut db.begin()).await, (101, true));
        assert_eq!(counted(&pairs, &mut db.begin()).await, (101, false));
        pairs.clear(&db).await.unwrap();
        assert_eq!(counted(&pairs, &mut db.begin()).await, (0, false));
        put(&db, &pairs, 0..3).await;
        assert_eq!(counted(&pairs, &mut db.begin()).await, (3, false));
        db.close().await.unwrap();
    });
    environment.shutdown();
}

/// One pair gives free what the next one takes: in the order of the keys the first would meet it.
#[test]
fn pairs_that_depend_on_each_other_stay_in_their_order() {
    let environment = SimulatedEnvironment::new(11);
    environment.run_until_complete(async {
        let (db, _) = open(&environment).await;
        let pairs = db.key_value::<u32, u32>("each_once").await.unwrap();
        let parts = vec![KeyPart::whole(1)];
        let key = KeyDef::new("once", KeyKind::Unique, parts);
        db.create_index("untorn", "each_once", key).await.unwrap();
        let pairs = {
            drop(pairs);
            db.key_value::<u32, u32>("each_once").await.unwrap()
        };
        let mut t = db.begin();
        pairs.put_all(&mut t, [(1, 10), (2, 20)]).await.unwrap();
        assert_eq!(pairs.put_all(&mut t, [(2, 30), (1, 20)]).await.unwrap(), 0);
        assert_eq!(pairs.get(&mut t, 1).await.unwrap(), Some(20));
        t.commit(Durability::Sync).await.unwrap();
    });
    environment.shutdown();
}

/// A table's handle knows the columns that it had then.
#[test]
fn pairs_do_not_go_into_columns_that_changed_places() {
    let environment = SimulatedEnvironment::new(12);
    environment.run_until_complete(async {
        let (db, _) = open(&environment).await;
        let pairs = db.key_value::<u32, (u32, u32)>("two").await.unwrap();
        let change = db.definitions().change_table("untorn", "two").await.unwrap();
        let mut def = change.table().def.clone();
        def.columns.swap(1, 2);
        let origins = vec![Some(0), Some(2), Some(1)];
        let plan = Rebuild { def, origins: origins.clone(), copied: origins, next_number: 1 };
        change.rebuild(plan, |_, _| Ok::<(), Error>(())).await.unwrap();
        let refused = pairs.put_all(&mut db.begin(), [(1, (10, 20))]).await;
        assert!(matches!(refused, Err(Error::OtherDefinition { .. })), "{refused:?}");
    });
    environment.shutdown();
}
