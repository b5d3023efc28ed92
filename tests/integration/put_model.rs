//! `put` searches once for the place of its row. Whatever it does must be what an update does that is
//! followed by an insert where there was no row: two databases get the same calls, one each way, and are
//! compared.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment};
use proptest::prelude::*;
use untorn::asynchronous::{ChangeFeed, Database, Transaction};
use untorn::changes::{ChangeEvent, ChangeFeedOptions};
use untorn::engine::{Durability, Isolation};
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Error, Lock, Options, Range, Table};

#[derive(Clone, Debug)]
enum Call {
    Put {
        who: usize,
        key: u8,
        group: u8,
        length: u16,
    },
    Remove {
        who: usize,
        key: u8,
    },
    /// A locking read: of a row, or of all from a key on, with the gaps.
    Lock {
        who: usize,
        key: u8,
        range: bool,
    },
    Savepoint(usize),
    BackToSavepoint(usize),
    End {
        who: usize,
        commit: bool,
    },
    Purge,
}

fn call() -> impl Strategy<Value = Call> {
    let (who, key) = (0_usize..2, 0_u8..24);
    let length = prop_oneof![6 => 0_u16..200, 1 => 1500_u16..3000];
    prop_oneof![
        12 => (who.clone(), key.clone(), 0_u8..3, length)
            .prop_map(|(who, key, group, length)| Call::Put { who, key, group, length }),
        4 => (who.clone(), key.clone()).prop_map(|(who, key)| Call::Remove { who, key }),
        2 => (who.clone(), key, any::<bool>()).prop_map(|(who, key, range)| Call::Lock { who, key, range }),
        1 => who.clone().prop_map(Call::Savepoint),
        1 => who.clone().prop_map(Call::BackToSavepoint),
        4 => (who, any::<bool>()).prop_map(|(who, commit)| Call::End { who, commit }),
        1 => Just(Call::Purge),
    ]
}

/// One of the two databases.
struct World {
    environment: Arc<SimulatedEnvironment>,
    db: Database,
    table: Arc<Table>,
    sessions: [Transaction; 2],
    feed: ChangeFeed,
    at_once: bool,
}

impl World {
    fn new(at_once: bool) -> World {
        let environment = SimulatedEnvironment::new(3);
        let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(128 * 4096);
        options.unchecked_sizes = true;
        options.redo_capacity_bytes = 2 << 20;
        options.log_buffer_bytes = 1 << 20;
        options.lock_wait_timeout = Duration::from_millis(1);
        let shared: Arc<dyn Environment> = environment.clone();
        let def = TableDef::new(vec![
            ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
            ColumnDef::new("id", ColumnType::VarBinary { bytes: 40 }),
            ColumnDef::new("group", ColumnType::int()),
        ])
        .primary_key(&["id"])
        .key("by_group", KeyKind::Secondary, &["group"]);
        let (db, table, feed) = environment.run_until_complete(async {
            let db = Database::open_in(shared, options).await.unwrap();
            db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
            let table = db.create_table("test", "t", def).await.unwrap();
            let (_, feed) = db.change_feed(ChangeFeedOptions::new()).await.unwrap();
            (db, table, feed)
        });
        let sessions = [db.begin_at(Isolation::RepeatableRead), db.begin_at(Isolation::ReadCommitted)];
        World { environment, db, table, sessions, feed, at_once }
    }

    fn apply(&mut self, call: &Call) -> String {
        let environment = self.environment.clone();
        environment.run_until_complete(self.run(call))
    }

    /// What came of a call, and how the transactions stand then.
    async fn run(&mut self, call: &Call) -> String {
        let table = &self.table.clone();
        let outcome = match call {
            Call::Put { who, key, group, length } => {
                let text = vec![key ^ group; usize::from(*length)];
                let text = if length % 7 == 0 { Value::Null } else { Value::bytes(&text) };
                let row = [text, key_of(*key), Value::Int((*group).into())];
                let session = &mut self.sessions[*who];
                let put = match self.at_once {
                    true => session.put(table, &row).await,
                    false => update_or_insert(session, table, &row).await,
                };
                format!("{put:?}")
            }
            Call::Remove { who, key } => {
                format!("{:?}", self.sessions[*who].delete(table, &[key_of(*key)]).await)
            }
            Call::Lock { who, key, range: false } => {
                format!("{:?}", self.sessions[*who].get(table, &[key_of(*key)], Lock::Exclusive).await)
            }
            Call::Lock { who, key, range: true } => {
                let range = Range::all().from(vec![key_of(*key)]).lock(Lock::Share);
                let mut rows = 0;
                let read = self.sessions[*who].for_each(table, &range, |_| {
                    rows += 1;
                    true
                });
                format!("{:?} {rows}", read.await)
            }
            Call::Savepoint(who) => {
                self.sessions[*who].savepoint("s");
                String::new()
            }
            Call::BackToSavepoint(who) => {
                format!("{:?}", self.sessions[*who].rollback_to_savepoint("s").await)
            }
            Call::End { who, commit } => {
                let session = &mut self.sessions[*who];
                let ended = match commit {
                    true => session.commit(Durability::NoSync).await,
                    false => session.rollback().await,
                };
                if ended.is_err() {
                    session.rollback().await.unwrap();
                }
                session.begin();
                format!("{ended:?}")
            }
            Call::Purge => format!("{:?}", self.db.transaction_system().purge_all().await),
        };
        let undo = self.sessions.each_ref().map(|session| session.engine().undo_records());
        let system = self.db.transaction_system().status();
        let changed = (system.rows_inserted + system.rows_updated, system.locks, system.lock_timeouts);
        format!("{outcome}; undo {undo:?}, changes and locks {changed:?}, {}", table.row_count_estimate())
    }

    /// All that is committed, by both indexes, and all that the feed was told.
    fn contents(&mut self) -> String {
        let environment = self.environment.clone();
        environment.run_until_complete(async {
            let mut text = String::new();
            for session in &mut self.sessions {
                session.rollback().await.unwrap();
            }
            for range in [Range::all(), Range::all().index("by_group")] {
                let mut t = self.db.begin();
                t.for_each(&self.table, &range, |row| {
                    text += &format!("{row:?}\n");
                    true
                })
                .await
                .unwrap();
            }
            let report = self.db.check_table("test", "t").await.unwrap();
            assert!(report.is_sound(), "{:?}", report.problems);
            self.db.close().await.unwrap();
            while let Some(event) = self.feed.next().await.unwrap() {
                let ChangeEvent::Commit(changes) = event else { continue };
                for change in changes.rows() {
                    let (key, values) = (change.key(), change.values());
                    text += &format!("{:?} {key:?} {values:?}\n", change.kind());
                }
            }
            text
        })
    }
}

fn key_of(key: u8) -> Value<'static> {
    // Of lengths on both sides of eight bytes, with a common beginning.
    Value::from(format!("{:0>1$}", key, 2 + usize::from(key % 3) * 8))
}

/// The two statements that `put` stands for.
async fn update_or_insert(
    t: &mut Transaction,
    table: &Arc<Table>,
    row: &[Value<'_>; 3],
) -> Result<bool, Error> {
    let changes = [("text", row[0].clone()), ("group", row[2].clone())];
    if t.update(table, &row[1..2], &changes).await? {
        return Ok(false);
    }
    t.insert(table, row).await.map(|_| true)
}

#[test]
fn the_place_of_a_new_row_is_looked_for_once() {
    let [put, two] = [true, false].map(|at_once| {
        let mut world = World::new(at_once);
        let mut put = |key, length| world.apply(&Call::Put { who: 0, key, group: 0, length });
        // More than one page.
        (0..120).step_by(2).for_each(|key| drop(put(key, 150)));
        let asked = |world: &World| world.db.store().status().read_requests;
        drop(put(51, 100));
        let before = asked(&world);
        let outcome = world.apply(&Call::Put { who: 0, key: 53, group: 0, length: 100 });
        assert!(outcome.starts_with("Ok(true)"), "{outcome}");
        asked(&world) - before
    });
    // A page above the leaves and a leaf.
    assert!(put + 2 <= two, "{put} pages are asked for, {two} by an update and an insert");
}

/// A table as [`World`] has it, for one test.
fn with_table(def: TableDef, run: impl AsyncFnOnce(&Database, Arc<Table>)) {
    let environment = SimulatedEnvironment::new(3);
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(128 * 4096);
    options.unchecked_sizes = true;
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = Database::open_in(shared, options).await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let table = db.create_table("test", "t", def).await.unwrap();
        run(&db, table).await;
        db.close().await.unwrap();
    });
}

/// A handle from before a change of columns: values are found by the names that they had, or refused.
#[test]
fn an_old_handle_puts_by_its_own_columns() {
    let numbers = ["id", "a", "b"].map(|name| ColumnDef::new(name, ColumnType::int()).nullable());
    let mut columns = numbers.to_vec();
    columns[0].nullable = false;
    for generated in [false, true] {
        columns[0].auto_increment = generated;
        let def = TableDef::new(columns.clone()).primary_key(&["id"]);
        with_table(def, async |db, old| {
            let mut t = db.begin();
            let row = |values: [i64; 3]| values.map(Value::Int);
            assert!(t.put(&old, &row([1, 10, 20])).await.unwrap());
            t.commit(Durability::Sync).await.unwrap();
            let added = ColumnDef::new("c", ColumnType::int()).nullable();
            db.add_column("test", "t", added, &Value::Null).await.unwrap();
            let mut t = db.begin();
            let four = [1, 2, 3, 4].map(Value::Int);
            assert!(matches!(t.put(&old, &four).await, Err(Error::WrongRowLength { .. })));
            assert!(!t.put(&old, &row([1, 11, 21])).await.unwrap(), "the row that was there");
            t.commit(Durability::Sync).await.unwrap();
            db.drop_column("test", "t", "a").await.unwrap();
            let mut t = db.begin();
            assert!(t.put(&old, &row([1, 12, 22])).await.is_err(), "there is no column a any more");
            t.rollback().await.unwrap();
        });
    }
}

/// The stored key stays, and may be longer than the one given that equals it: what fits with the one need not
/// fit with the other.
#[test]
fn a_put_whose_key_is_stored_longer_moves_the_value_off_the_page() {
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::VarChar { chars: 180, collation: Collation::Utf8mb4GeneralCi }),
        ColumnDef::new("v", ColumnType::Blob { size: SizeClass::Long }),
    ])
    .primary_key(&["id"]);
    with_table(def, async |db, table| {
        let padded = format!("a{}", " ".repeat(150));
        let mut t = db.begin();
        assert!(t.put(&table, &[Value::from(padded.as_str()), Value::bytes(b"short")]).await.unwrap());
        // Around the largest record of a page of 4096 bytes, with each key.
        for length in (1500..2100).step_by(10) {
            let value = vec![7; length];
            let put = t.put(&table, &[Value::from("a"), Value::bytes(&value)]).await;
            assert!(!put.unwrap(), "{length}");
            let row = t.get(&table, &[Value::from("a")], Lock::None).await.unwrap().unwrap();
            assert_eq!(row[1], Value::bytes(&value), "{length}");
        }
        t.commit(Durability::Sync).await.unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn put_is_an_update_or_an_insert(calls in prop::collection::vec(call(), 1..100)) {
        let mut worlds = [true, false].map(World::new);
        for (number, call) in calls.iter().enumerate() {
            let [put, two] = worlds.each_mut().map(|world| world.apply(call));
            prop_assert_eq!(put, two, "call {} {:?}", number, call);
        }
        let [put, two] = worlds.each_mut().map(World::contents);
        prop_assert_eq!(put, two);
    }
}
