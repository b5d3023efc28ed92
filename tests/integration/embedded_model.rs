//! The embedded API against a map: whatever sequence of calls proptest thinks of, with crashes of the machine
//! between them, what is read is what a `BTreeMap` with the same calls would hold, and what was committed
//! survives.
//!
//! A failure is shrunk to the shortest sequence that shows it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Lock, Options, Range};

/// One call.
#[derive(Clone, Debug)]
enum Call {
    Put { key: u8, counter: u8, length: u16 },
    Remove { key: u8 },
    Get { key: u8 },
    Scan { descending: bool, by_counter: bool },
    Savepoint,
    BackToSavepoint,
    Commit,
    Rollback,
    Checkpoint,
    Purge,
    Truncate,
    Index(bool),
    Close,
    Crash(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let length = prop_oneof![6 => 0_u16..200, 1 => 1000_u16..20_000];
    prop_oneof![
        10 => (0_u8..30, any::<u8>(), length).prop_map(|(key, counter, length)| Call::Put { key, counter, length }),
        4 => (0_u8..30).prop_map(|key| Call::Remove { key }),
        3 => (0_u8..30).prop_map(|key| Call::Get { key }),
        2 => any::<(bool, bool)>().prop_map(|(descending, by_counter)| Call::Scan { descending, by_counter }),
        1 => Just(Call::Savepoint),
        1 => Just(Call::BackToSavepoint),
        4 => Just(Call::Commit),
        1 => Just(Call::Rollback),
        1 => Just(Call::Checkpoint),
        1 => Just(Call::Purge),
        1 => Just(Call::Truncate),
        1 => any::<bool>().prop_map(Call::Index),
        1 => Just(Call::Close),
        3 => any::<u64>().prop_map(Call::Crash),
    ]
}

type Rows = BTreeMap<u8, (u8, u16)>;

/// The database with its model.
struct Subject {
    environment: Arc<SimulatedEnvironment>,
    db: Option<(Database, Transaction)>,
    committed: Rows,
    current: Rows,
    savepoint: Option<Rows>,
}

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    options
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
    .key("by_counter", KeyKind::Secondary, &["counter"])
}

fn text(key: u8, (counter, length): (u8, u16)) -> Vec<u8> {
    vec![key ^ counter; usize::from(length)]
}

fn values(key: u8, row: (u8, u16), text: &[u8]) -> [Value<'_>; 3] {
    [Value::Int(key.into()), Value::Int(row.0.into()), Value::bytes(text)]
}

impl Subject {
    fn new(seed: u64) -> Subject {
        let environment = SimulatedEnvironment::new(seed);
        let mut subject =
            Subject { environment, db: None, committed: Rows::new(), current: Rows::new(), savepoint: None };
        subject.open();
        let (db, _) = subject.db.as_ref().unwrap();
        subject.environment.run_until_complete(db.create_database("test", Collation::Utf8mb4Bin)).unwrap();
        subject.environment.run_until_complete(db.create_table("test", "t", table_def())).unwrap();
        subject
    }

    fn open(&mut self) {
        let shared: Arc<dyn Environment> = self.environment.clone();
        let db = self.environment.run_until_complete(Database::open_in(shared, options())).unwrap();
        let transaction = db.transaction();
        self.db = Some((db, transaction));
        self.current = self.committed.clone();
        self.savepoint = None;
    }

    fn restart(&mut self, environment: Arc<SimulatedEnvironment>) {
        self.db = None;
        self.environment.shutdown();
        self.environment = environment;
        self.open();
        self.check_whole();
    }

    /// Commits and compares everything.
    fn check_whole(&mut self) {
        let expected = self.current.clone();
        let found = self.scan(false, false);
        assert_eq!(found.into_iter().collect::<Rows>(), expected);
        self.commit();
        let (db, _) = self.db.as_ref().unwrap();
        let report = self.environment.run_until_complete(db.check_table("test", "t")).unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
    }

    fn scan(&mut self, descending: bool, by_counter: bool) -> Vec<(u8, (u8, u16))> {
        let environment = self.environment.clone();
        let (db, transaction) = self.db.as_mut().unwrap();
        let table = db.table("test", "t").unwrap();
        let mut range = Range::all();
        range.descending = descending;
        if by_counter {
            range = range.index("by_counter");
        }
        let mut rows = Vec::new();
        let scan = transaction.for_each(&table, &range, |row| {
            let (Value::Int(key), Value::Int(counter), Value::Bytes(bytes)) = (&row[0], &row[1], &row[2])
            else {
                panic!("a row of other types: {row:?}")
            };
            let (key, row) = (*key as u8, (*counter as u8, bytes.len() as u16));
            assert_eq!(bytes[..], text(key, row)[..]);
            rows.push((key, row));
            true
        });
        environment.run_until_complete(scan).unwrap();
        rows
    }

    /// Ends a transaction as the statement after it would.
    fn commit(&mut self) {
        let (_, transaction) = self.db.as_mut().unwrap();
        // Without a transaction there may still be uses of tables by reads, which end likewise.
        match transaction.is_active() {
            true => self.environment.run_until_complete(transaction.commit(Durability::Sync)).unwrap(),
            false => self.environment.run_until_complete(transaction.rollback()).unwrap(),
        }
        self.committed = self.current.clone();
        self.savepoint = None;
    }

    fn apply(&mut self, call: &Call) {
        let environment = self.environment.clone();
        let (db, transaction) = self.db.as_mut().unwrap();
        let table = db.table("test", "t").unwrap();
        let run = |future: std::pin::Pin<Box<dyn Future<Output = untorn::Result<bool>> + '_>>| {
            environment.run_until_complete(future).unwrap()
        };
        match call {
            Call::Put { key, counter, length } => {
                let row = (*counter, *length);
                let bytes = text(*key, row);
                let [id, counter, text] = values(*key, row, &bytes);
                if !transaction.is_active() {
                    transaction.begin();
                }
                if self.current.insert(*key, row).is_some() {
                    let changes = [("counter", counter), ("text", text)];
                    assert!(run(Box::pin(transaction.update(&table, &[id], &changes))));
                } else {
                    environment.run_until_complete(transaction.insert(&table, &[id, counter, text])).unwrap();
                }
            }
            Call::Remove { key } => {
                if !transaction.is_active() {
                    transaction.begin();
                }
                let there = self.current.remove(key).is_some();
                let id = [Value::Int((*key).into())];
                assert_eq!(run(Box::pin(transaction.delete(&table, &id))), there);
            }
            Call::Get { key } => {
                let id = [Value::Int((*key).into())];
                let row = environment.run_until_complete(transaction.get(&table, &id, Lock::None)).unwrap();
                let bytes = self.current.get(key).map(|row| text(*key, *row));
                let expected = self.current.get(key).zip(bytes.as_ref());
                let expected = expected.map(|(row, bytes)| values(*key, *row, bytes).to_vec());
                assert_eq!(row, expected);
            }
            Call::Scan { descending, by_counter } => {
                let mut expected: Vec<_> = self.current.clone().into_iter().collect();
                if *by_counter {
                    expected.sort_by_key(|(key, row)| (row.0, *key));
                }
                if *descending {
                    expected.reverse();
                }
                assert_eq!(self.scan(*descending, *by_counter), expected);
            }
            Call::Savepoint => {
                if transaction.is_active() {
                    transaction.engine_mut().savepoint("s");
                    self.savepoint = Some(self.current.clone());
                }
            }
            Call::BackToSavepoint => {
                if let Some(rows) = &self.savepoint {
                    let back = transaction.engine_mut().rollback_to_savepoint("s");
                    assert!(environment.run_until_complete(back).unwrap());
                    self.current = rows.clone();
                }
            }
            Call::Commit => self.commit(),
            Call::Rollback => {
                environment.run_until_complete(transaction.rollback()).unwrap();
                self.current = self.committed.clone();
                self.savepoint = None;
            }
            Call::Checkpoint => {
                environment.run_until_complete(db.store().checkpoint()).unwrap();
            }
            Call::Purge => {
                environment.run_until_complete(db.transaction_system().purge_all()).unwrap();
            }
            Call::Truncate => {
                self.commit();
                let (db, _) = self.db.as_ref().unwrap();
                environment.run_until_complete(db.truncate_table("test", "t")).unwrap();
                self.current.clear();
                self.committed.clear();
            }
            Call::Index(wanted) => {
                self.commit();
                let (db, _) = self.db.as_ref().unwrap();
                change_index(&environment, db, *wanted);
            }
            Call::Close => {
                let closed = environment.run_until_complete(db.close());
                closed.unwrap();
                let disk = environment.disk().crash(1);
                self.restart(SimulatedEnvironment::with_storage(2, disk));
            }
            Call::Crash(seed) => {
                let disk = environment.disk().crash(*seed);
                self.restart(SimulatedEnvironment::with_storage(*seed, disk));
            }
        }
    }
}

fn change_index(environment: &SimulatedEnvironment, db: &Database, wanted: bool) {
    let there = db.table("test", "t").unwrap().def.key_named("extra").is_some();
    if there == wanted {
        return;
    }
    environment
        .run_until_complete(async {
            if !wanted {
                return db.drop_index("test", "t", "extra").await;
            }
            let part = |column| KeyPart::whole(column);
            let key = KeyDef::new("extra", KeyKind::Secondary, vec![part(1), part(0)]);
            db.create_index("test", "t", key).await
        })
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_embedded_api_is_a_map_that_survives_crashes(
        seed in any::<u64>(),
        calls in prop::collection::vec(call(), 1..120),
    ) {
        let mut subject = Subject::new(seed);
        for call in &calls {
            subject.apply(call);
        }
        subject.check_whole();
        subject.apply(&Call::Crash(seed));
    }
}
