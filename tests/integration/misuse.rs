//! What an embedding program may do wrong or at a bad moment: handles of other databases, parts of keys,
//! closing beside work.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, Durability, Error, Options, Range};

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("untorn-reader-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// Runs something that may never end.
fn within<T: Send + 'static>(seconds: u64, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = tell.send(work());
    });
    told.recv_timeout(Duration::from_secs(seconds)).ok()
}

fn unique_v() -> KeyDef {
    let parts = vec![KeyPart::whole(1)];
    KeyDef::new("v", KeyKind::Unique, parts)
}

#[test]
fn put_ends_when_another_key_has_the_value() {
    let answer = within(10, || {
        let db = Database::in_memory().unwrap();
        let emails = db.key_value::<u32, u32>("emails").unwrap();
        db.create_index("untorn", "emails", unique_v()).unwrap();
        let mut t = db.begin();
        emails.put(&mut t, 1, 100).unwrap();
        emails.put(&mut t, 2, 100).map_err(|error| error.to_string())
    });
    assert!(answer.is_some(), "put() never returns");
}

#[test]
fn insert_is_false_only_for_its_own_key() {
    let db = Database::in_memory().unwrap();
    let emails = db.key_value::<u32, u32>("emails").unwrap();
    db.create_index("untorn", "emails", unique_v()).unwrap();
    let mut t = db.begin();
    emails.put(&mut t, 1, 100).unwrap();
    let inserted = emails.insert(&mut t, 2, 100);
    assert!(inserted.is_err(), "key 2 is not there, but insert says {inserted:?}");
}

#[test]
fn change_ends_when_another_key_has_the_value() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let answer = within(10, move || {
        let db = Database::in_memory().unwrap();
        let emails = db.key_value::<u32, u32>("emails").unwrap();
        db.create_index("untorn", "emails", unique_v()).unwrap();
        let mut t = db.begin();
        emails.put(&mut t, 1, 100).unwrap();
        let changed = emails.change(&mut t, 2, |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(100)
        });
        changed.map_err(|error| error.to_string())
    });
    assert!(answer.is_some(), "change() never returns; asked {} times", asked.load(Ordering::Relaxed));
}

#[test]
fn several_threads_open_a_key_value_table_that_is_missing() {
    for round in 0..20 {
        let db = Database::in_memory().unwrap();
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        db.key_value::<u32, u32>("counts").map(drop).map_err(|error| error.to_string())
                    })
                })
                .collect();
            for thread in threads {
                let answer = thread.join().unwrap();
                assert_eq!(answer, Ok(()), "round {round}");
            }
        });
    }
}

fn composite(db: &Database) -> Arc<untorn::Table> {
    let def = TableDef::new(vec![
        ColumnDef::new("a", ColumnType::bigint()),
        ColumnDef::new("b", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::bigint()),
    ]);
    let table = db.create_table_if_missing("test", "t", def.primary_key(&["a", "b"])).unwrap();
    db.transact(|t| -> untorn::Result<()> {
        for b in 1..=3 {
            t.insert(&table, &[Value::Int(1), Value::Int(b), Value::Int(b)])?;
        }
        Ok(())
    })
    .unwrap();
    table
}

#[test]
fn a_part_of_the_key_is_no_key_to_delete_by() {
    let db = Database::in_memory().unwrap();
    let table = composite(&db);
    let mut t = db.begin();
    let deleted = t.delete(&table, &[Value::Int(1)]);
    let left = t.scan(&table, &Range::all()).unwrap().count();
    assert_eq!(left, 3, "delete(&[1]) answered {deleted:?}, and left {left} rows of 3");
}

#[test]
fn no_key_is_no_key_to_delete_by() {
    let db = Database::in_memory().unwrap();
    let table = composite(&db);
    let mut t = db.begin();
    let deleted = t.delete(&table, &[]);
    let left = t.scan(&table, &Range::all()).unwrap().count();
    assert_eq!(left, 3, "delete(&[]) answered {deleted:?}, and left {left} rows of 3");
}

#[test]
fn a_part_of_the_key_is_no_key_to_update_by() {
    let db = Database::in_memory().unwrap();
    let table = composite(&db);
    let mut t = db.begin();
    let updated = t.update(&table, &[Value::Int(1)], &[("n", Value::Int(9))]);
    let rows: Vec<_> = t.scan(&table, &Range::all()).unwrap().map(|row| row.unwrap()[2].clone()).collect();
    assert!(!rows.contains(&Value::Int(9)), "update(&[1]) answered {updated:?}: {rows:?}");
}

#[test]
fn a_part_of_the_key_does_not_panic() {
    let db = Database::in_memory().unwrap();
    let table = composite(&db);
    let mut t = db.begin();
    let updated = t.update(&table, &[Value::Int(1)], &[("b", Value::Int(9))]);
    assert!(updated.is_err(), "{updated:?}");
}

#[test]
fn a_part_of_the_key_is_no_key_to_get_by() {
    let db = Database::in_memory().unwrap();
    let table = composite(&db);
    let got = db.begin().get(&table, &[Value::Int(1)]);
    assert!(!matches!(got, Ok(Some(_))), "{got:?}");
}

/// Where a range would begin cannot be told from the first characters.
#[test]
fn a_table_without_a_primary_key_says_so() {
    let db = Database::in_memory().unwrap();
    let table =
        db.create_table_if_missing("test", "t", TableDef::new(vec![ColumnDef::new("n", ColumnType::int())]));
    let (table, mut t) = (table.unwrap(), db.begin());
    t.insert(&table, &[Value::Int(1)]).unwrap();
    let key = [Value::Int(1)];
    for error in [
        t.get(&table, &key).unwrap_err(),
        t.update(&table, &key, &[("n", Value::Int(2))]).unwrap_err(),
        t.delete(&table, &key).unwrap_err(),
        t.scan(&table, &Range::all().from(key.to_vec())).err().unwrap(),
    ] {
        assert!(
            matches!(&error, Error::NoPrimaryKey(database, name) if database == "test" && name == "t"),
            "{error}"
        );
        assert!(error.to_string().contains("'test.t'") && error.to_string().contains("`scan`"), "{error}");
    }
    assert_eq!(t.scan(&table, &Range::all()).unwrap().count(), 1);
}

#[test]
fn an_index_on_a_prefix_is_read_whole_or_not() {
    let db = Database::in_memory().unwrap();
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("name", ColumnType::VarBinary { bytes: 100 }),
    ]);
    let mut def = def.primary_key(&["id"]).key("p", KeyKind::Secondary, &["name"]);
    def.keys[1].parts[0].prefix_chars = Some(3);
    let table = db.create_table_if_missing("test", "t", def).unwrap();
    let mut t = db.begin();
    t.insert(&table, &[Value::Int(1), Value::bytes("abcdef")]).unwrap();
    let along = Range::all().index("p");
    assert_eq!(t.scan(&table, &along).unwrap().count(), 1);
    for range in [along.clone().equal(vec![Value::bytes("abcdef")]), along.from(vec![Value::bytes("abcd")])] {
        assert!(matches!(t.scan(&table, &range).err(), Some(Error::PrefixIndex(_))), "{range:?}");
    }
}

#[test]
fn after_an_error_there_are_no_more_pairs() {
    let db = Database::in_memory().unwrap();
    let numbers = db.key_value::<u32, u32>("numbers").unwrap();
    db.transact(|t| (0..50).try_for_each(|key| numbers.put(t, key, key).map(drop))).unwrap();
    let mut t = db.begin();
    let mut pairs = numbers.iter(&mut t);
    assert_eq!(pairs.next().unwrap().unwrap(), (0, 0));
    db.close().unwrap();
    let error = pairs.next_back().unwrap();
    assert!(matches!(error, Err(Error::Closed)), "{error:?}");
    let more = pairs.next();
    assert!(more.is_none(), "after the error: {more:?}");
}

#[test]
fn after_a_pair_of_another_type_there_are_no_more_pairs() {
    let db = Database::in_memory().unwrap();
    let bytes = db.key_value::<Vec<u8>, u32>("b").unwrap();
    db.transact(|t| {
        bytes.put(t, b"a", 1)?;
        bytes.put(t, b"\xff", 2)?;
        bytes.put(t, b"\xffz", 3)
    })
    .unwrap();
    let texts = match db.key_value::<String, u32>("b") {
        Err(_) => return,
        Ok(texts) => texts,
    };
    let mut t = db.begin();
    let got: Vec<_> = texts.iter(&mut t).map(|pair| pair.map_err(|error| error.to_string())).collect();
    assert_eq!(got.len(), 2, "{got:?}");
}

#[test]
fn a_key_value_table_whose_primary_key_is_another_column_is_refused() {
    let db = Database::in_memory().unwrap();
    let columns = || {
        vec![
            ColumnDef::new("k", ColumnType::Int { unsigned: true }),
            ColumnDef::new("v", ColumnType::Int { unsigned: true }),
        ]
    };
    db.create_table_if_missing("untorn", "t", TableDef::new(columns()).primary_key(&["v"])).unwrap();
    let opened = db.key_value::<u32, u32>("t");
    if let Ok(numbers) = opened {
        let mut t = db.begin();
        numbers.put(&mut t, 1, 100).unwrap();
        let got = numbers.get(&mut t, 1).unwrap();
        panic!("it is opened; put(1, 100), get(1) is {got:?}");
    }
}

#[test]
fn a_transaction_outlives_its_database_in_memory() {
    let db = Database::in_memory().unwrap();
    let numbers = db.key_value::<u32, u32>("numbers").unwrap();
    let place = db.directory().to_owned();
    let mut t = db.begin();
    drop(db);
    let there = place.exists();
    let put = numbers.put(&mut t, 1, 1);
    assert!(there, "a transaction is open, and its files are gone; put {put:?}");
}

#[test]
fn who_waits_for_a_row_is_told_of_the_close() {
    let db = Database::in_memory().unwrap();
    let numbers = db.key_value::<u32, u32>("numbers").unwrap();
    db.transact(|t| numbers.put(t, 1, 1)).unwrap();
    let mut holder = db.begin();
    numbers.put(&mut holder, 1, 2).unwrap();
    let waiter = {
        let (db, numbers) = (db.clone(), numbers.clone());
        move || {
            let mut t = db.begin();
            numbers.put(&mut t, 1, 3).map_err(|error| error.to_string())
        }
    };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(waiter()));
    while db.asynchronous().transaction_system().status().lock_waits_current == 0 {
        std::thread::yield_now();
    }
    db.close().unwrap();
    // Long before `innodb_lock_wait_timeout`, which is 50 s.
    let answer = told.recv_timeout(Duration::from_secs(30)).expect("it waits for ever");
    assert!(answer.is_err(), "{answer:?}");
}

#[test]
fn closing_from_two_threads_returns_when_it_is_closed() {
    let place = directory("close");
    for round in 0..10 {
        let db = Database::open(Options::new(&place).buffer_pool_bytes(64 << 20)).unwrap();
        let texts = db.key_value::<u32, String>("texts").unwrap();
        db.transact(|t| (0..300).try_for_each(|key| texts.put(t, key, &"x".repeat(5000)).map(drop))).unwrap();
        let barrier = Arc::new(Barrier::new(2));
        let done = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (db, barrier, done) = (db.clone(), barrier.clone(), done.clone());
                scope.spawn(move || {
                    barrier.wait();
                    db.close().unwrap();
                    let dirty = db.asynchronous().store().status().pages_dirty;
                    done.fetch_add(dirty as usize, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 0, "round {round}: close() returned with dirty pages");
    }
    let _ = std::fs::remove_dir_all(place);
}

#[test]
fn a_primary_key_that_may_be_null() {
    let db = Database::in_memory().unwrap();
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).nullable(),
        ColumnDef::new("n", ColumnType::int()),
    ]);
    let Ok(table) = db.create_table_if_missing("test", "t", def.primary_key(&["id"])) else { return };
    let mut t = db.begin();
    let first = t.insert(&table, &[Value::Null, Value::Int(1)]).map_err(|e| e.to_string());
    let second = t.insert(&table, &[Value::Null, Value::Int(2)]).map_err(|e| e.to_string());
    t.commit().unwrap();
    panic!("created; NULL, twice: {first:?}, {second:?}");
}

#[test]
fn a_key_with_a_column_twice() {
    let db = Database::in_memory().unwrap();
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::int()),
    ]);
    let def = def.primary_key(&["id"]).key("nn", KeyKind::Secondary, &["n", "n"]);
    let created = db.create_table_if_missing("test", "t", def);
    assert!(created.is_err(), "MySQL: 1060 Duplicate column name 'n'");
}

#[test]
fn a_bad_setting_is_found_before_anything_is_made() {
    let place = directory("settings");
    type Spoil = fn(&mut Options);
    let bad: [(&str, Spoil); 8] = [
        ("innodb_page_size", |options| options.page_size = Some(5000)),
        ("innodb_log_write_ahead_size", |options| options.redo_block_bytes = Some(1000)),
        ("innodb_doublewrite_files", |options| options.doublewrite_files = 0),
        ("innodb_doublewrite_files", |options| options.doublewrite_files = 257),
        ("innodb_doublewrite_pages", |options| options.doublewrite_pages = 513),
        ("innodb_buffer_pool_size", |options| options.buffer_pool_bytes = (5 << 20) - 1),
        ("innodb_redo_log_capacity", |options| options.redo_capacity_bytes = 1 << 20),
        ("innodb_force_recovery", |options| options.force_recovery = 7),
    ];
    for (name, spoil) in bad {
        let mut options = Options::new(&place).buffer_pool_bytes(16 << 20);
        spoil(&mut options);
        assert!(options.check().is_err(), "{name}");
        match Database::open(options) {
            Err(Error::Setting { setting, .. }) => assert_eq!(setting, name),
            other => panic!("{name}: {:?}", other.map(drop)),
        }
        assert!(!place.exists(), "{name}: the directory was made");
    }
}

fn numbered(kind: ColumnType) -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", kind), ColumnDef::new("v", ColumnType::int())])
        .primary_key(&["id"])
}

/// What another version of the program made is no table of this one.
#[test]
fn a_table_of_another_definition_is_not_handed_out() {
    let place = directory("definition");
    let options = || Options::new(&place).buffer_pool_bytes(16 << 20);
    let db = Database::open(options()).unwrap();
    db.create_table_if_missing("test", "t", numbered(ColumnType::int())).unwrap();
    let answer = db.create_table_if_missing("test", "t", numbered(ColumnType::bigint()));
    let Err(Error::OtherDefinition { table, difference }) = answer else { panic!("{answer:?}") };
    assert_eq!(table, "test.t");
    assert_eq!(difference, "its column 'id' is Int { unsigned: false }, not BigInt { unsigned: false }");
    // Ids and pages are numbered by the engine, and an index that was added is no difference.
    db.create_index("test", "t", unique_v()).unwrap();
    db.create_table_if_missing("test", "t", numbered(ColumnType::int())).unwrap();
    db.close().unwrap();
    let db = Database::open(options()).unwrap();
    db.create_table_if_missing("test", "t", numbered(ColumnType::int())).unwrap();
    let indexed = numbered(ColumnType::int()).key("w", KeyKind::Secondary, &["v"]);
    let answer = db.create_table_if_missing("test", "t", indexed);
    assert!(matches!(answer, Err(Error::OtherDefinition { .. })), "{answer:?}");
    db.close().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
}

/// A handle that outlives its database keeps the pool alive, and the pool writes: nobody else may open the
/// directory.
#[test]
fn a_directory_is_in_use_as_long_as_a_handle_is_kept() {
    let place = directory("kept");
    let options = || Options::new(&place).buffer_pool_bytes(16 << 20);
    let db = Database::open(options()).unwrap();
    let texts = db.key_value::<u32, String>("texts").unwrap();
    db.transact(|t| texts.insert_all(t, (0..300).map(|key| (key, "old")))).unwrap();
    drop(db);
    let refused = Database::open(options()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("this process: close that `Database`, or clone it"), "{refused}");
    assert!(refused.contains("handles of its tables"), "{refused}");
    // Who removes the file to get rid of the error has not got rid of who writes.
    std::fs::remove_file(place.join("untorn.lock")).unwrap();
    let refused = Database::open(options()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("a process whose lock file somebody has removed"), "{refused}");
    drop(texts);
    let db = Database::open(options()).unwrap();
    let texts = db.key_value::<u32, String>("texts").unwrap();
    assert_eq!(texts.iter(&mut db.begin()).count(), 300);
    // After a close nothing is written by anybody.
    db.close().unwrap();
    let again = Database::open(options()).unwrap();
    assert!(texts.first(&mut db.begin()).is_err(), "closed");
    assert!(matches!(texts.first(&mut again.begin()), Err(Error::ForeignTable(..))));
    again.close().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
}

/// After a close the directory may be another process's: a scan that has begun does not go on.
#[test]
fn a_scan_does_not_go_on_after_a_close() {
    let db = Database::in_memory().unwrap();
    let table = db.create_table_if_missing("test", "t", numbered(ColumnType::int())).unwrap();
    let rows: Vec<_> = (0..500).map(|id| [Value::Int(id), Value::Int(id)]).collect();
    db.transact(|t| t.insert_all(&table, &rows)).unwrap();
    let pairs = db.key_value::<u64, u64>("pairs").unwrap();
    db.transact(|t| pairs.insert_all(t, (0..2000).map(|key| (key, key)))).unwrap();
    let (mut t, mut u) = (db.begin(), db.begin());
    let mut rows = t.scan(&table, &Range::all()).unwrap();
    assert_eq!(rows.next().unwrap().unwrap()[0], Value::Int(0));
    let mut all = pairs.iter(&mut u);
    assert_eq!(all.next().unwrap().unwrap(), (0, 0));
    db.close().unwrap();
    assert!(matches!(rows.next(), Some(Err(Error::Closed))));
    assert!(rows.next().is_none());
    // What a batch has read is shown, and nothing else is read.
    let mut ends = all.by_ref().skip_while(Result::is_ok);
    assert!(matches!(ends.next(), Some(Err(Error::Closed))));
    assert!(all.next().is_none());
}

#[test]
fn a_directory_is_free_when_a_dropped_transaction_has_been_rolled_back() {
    let place = directory("rollback");
    let options = || Options::new(&place).buffer_pool_bytes(16 << 20);
    for round in 0..3 {
        let db = Database::open(options()).unwrap();
        let texts = db.key_value::<u32, String>("texts").unwrap();
        db.transact(|t| (0..300).try_for_each(|key| texts.put(t, key, "committed").map(drop))).unwrap();
        let mut t = db.begin();
        for key in 0..20_000 {
            texts.put(&mut t, key, &"never".repeat(60)).unwrap();
        }
        drop((t, texts, db));
        let db = loop {
            match Database::open(options()) {
                Ok(db) => break db,
                Err(Error::DirectoryInUse { .. }) => std::thread::yield_now(),
                Err(error) => panic!("round {round}: {error}"),
            }
        };
        let texts = db.key_value::<u32, String>("texts").unwrap();
        db.transact(|t| (0..300).try_for_each(|key| texts.put(t, key, "second").map(drop))).unwrap();
        db.close().unwrap();
        drop((db, texts));
        let db = Database::open(options()).unwrap();
        let texts = db.key_value::<u32, String>("texts").unwrap();
        assert!(db.check_table("untorn", "texts").unwrap().is_sound());
        let all: Vec<_> = texts.iter(&mut db.begin()).map(|pair| pair.unwrap().1).collect();
        assert!(
            all.len() == 300 && all.iter().all(|text| text == "second"),
            "round {round}: {} rows",
            all.len()
        );
        db.close().unwrap();
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_handle_of_another_database_writes_into_no_table() {
    let (one, other) = (Database::in_memory().unwrap(), Database::in_memory().unwrap());
    let numbers = one.key_value::<u64, u64>("numbers").unwrap();
    let names = other.key_value::<u32, String>("names").unwrap();
    other.transact(|t| names.put(t, 1, "Ada")).unwrap();
    let answer = other.transact(|t| numbers.put(t, 7, 8));
    assert!(matches!(answer, Err(Error::ForeignTable(..))), "{answer:?}");
    let read = other.transact(|t| numbers.get(t, 7));
    assert!(matches!(read, Err(Error::ForeignTable(..))), "{read:?}");
    // Both are the first table of their database.
    let cleared = numbers.clear(&other);
    assert!(matches!(cleared, Err(Error::ForeignTable(..))), "{cleared:?}");
    assert_eq!(other.transact(|t| names.get(t, 1)).unwrap().as_deref(), Some("Ada"));
    assert!(other.check_table("untorn", "names").unwrap().is_sound());
}

mod simulated {
    use super::*;
    use disk::{Environment, SimulatedEnvironment};
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    use untorn::asynchronous::Database;
    use untorn::engine::Durability;
    use untorn::types::Collation;

    /// A close that was cut can be begun again.
    #[test]
    fn a_close_that_was_cut_is_no_close() {
        let environment = SimulatedEnvironment::new(5);
        let shared: Arc<dyn Environment> = environment.clone();
        let options = || Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20);
        let db = environment.run_until_complete(Database::open_in(shared.clone(), options())).unwrap();
        environment.run_until_complete(db.create_database("test", Collation::Utf8mb4Bin)).unwrap();
        environment.run_until_complete(async {
            let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
            db.create_table("test", "t", def).await.unwrap();
            let table = db.table("test", "t").unwrap();
            let mut t = db.transaction();
            t.begin();
            for id in 0..2000 {
                t.insert(&table, &[Value::Int(id)]).await.unwrap();
            }
            t.commit(Durability::Sync).await.unwrap();
        });
        {
            let mut close = Box::pin(db.close());
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..3 {
                match close.as_mut().poll(&mut context) {
                    Poll::Pending => _ = environment.step(),
                    Poll::Ready(_) => unreachable!("not so soon"),
                }
            }
        }
        environment.run_until_idle();
        environment.run_until_complete(db.close()).unwrap();
        let dirty = db.store().status().pages_dirty;
        drop(db);
        let db = environment.run_until_complete(Database::open_in(shared, options())).unwrap();
        let report = db.report();
        assert_eq!(
            (dirty, report.redo_applied),
            (0, 0),
            "close() was Ok: dirty pages, mini-transactions to recover"
        );
    }
}

/// The example of the crate's page, by several threads with keys of their own.
#[test]
fn transact_ends_well_when_threads_change_keys_that_are_missing() {
    let db = Database::in_memory().unwrap();
    let counts = db.key_value::<u32, u64>("counts").unwrap();
    let runs = AtomicUsize::new(0);
    let failed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16u32)
            .map(|thread| {
                let (db, counts, runs) = (&db, &counts, &runs);
                scope.spawn(move || {
                    let one = |key: u32| {
                        db.transact(|t| {
                            runs.fetch_add(1, Ordering::Relaxed);
                            counts.change(t, key * 16 + thread, |count| Some(count.unwrap_or(0) + 1))
                        })
                    };
                    (0..200).filter(|key| one(*key).is_err()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(failed, 0, "of 3200, in {} runs of the closure", runs.load(Ordering::Relaxed));
}

#[test]
fn nobody_hangs_when_a_database_is_closed_beside_abandoned_transactions() {
    for round in 0..3 {
        let place = directory("abandoned");
        let options = || Options::new(&place).buffer_pool_bytes(8 << 20).redo_capacity_bytes(8 << 20);
        let db = Database::open(options()).unwrap();
        let texts = db.key_value::<u32, String>("texts").unwrap();
        db.transact(|t| (0..3000).try_for_each(|key| texts.put(t, key, &"x".repeat(3000)).map(drop)))
            .unwrap();
        let (tell, told) = mpsc::channel();
        let abandoned = Arc::new(AtomicUsize::new(0));
        for thread in 0..4u32 {
            let (db, texts, tell) = (db.clone(), texts.clone(), tell.clone());
            let abandoned = abandoned.clone();
            std::thread::spawn(move || {
                let abandon = |number: usize| -> untorn::Result<()> {
                    let mut t = db.begin();
                    for key in 0..50 {
                        texts.put(&mut t, thread * 700 + key, &"y".repeat(200 + number % 3000))?;
                    }
                    drop(t);
                    abandoned.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                };
                let failed = (0..).find_map(|number| abandon(number).err());
                drop((db, texts));
                tell.send(failed.map(|error| error.to_string()))
            });
        }
        while abandoned.load(Ordering::Relaxed) < 10 + 7 * round {
            std::thread::sleep(Duration::from_millis(1));
        }
        let closing = db.clone();
        let closed = within(60, move || closing.close()).expect("close() returns");
        closed.unwrap();
        for _ in 0..4 {
            told.recv_timeout(Duration::from_secs(60)).expect("a thread hangs after close()");
        }
        drop((db, texts));
        let db = Database::open(options()).unwrap();
        assert!(db.check_table("untorn", "texts").unwrap().is_sound());
        db.close().unwrap();
        std::fs::remove_dir_all(&place).unwrap();
    }
}

/// A database that is closed while others use it: they are told so, whatever they have in hand, in both
/// faces.
#[test]
fn whatever_is_in_use_when_a_database_is_closed_says_so() {
    let is_closed = |what: &str, error: Option<Error>| {
        assert!(matches!(error, Some(Error::Closed)), "{what}: {error:?}");
    };
    let db = Database::in_memory().unwrap();
    let clone = db.clone();
    let texts = db.key_value::<u32, String>("texts").unwrap();
    db.transact(|t| texts.insert_all(t, (0..300).map(|key| (key, "text")))).unwrap();
    let (mut changing, mut reading) = (db.begin(), db.begin());
    texts.put(&mut changing, 7, "never").unwrap();
    let mut pairs = texts.iter(&mut reading);
    assert!(pairs.next().unwrap().is_ok());
    db.close().unwrap();
    // A page of pairs may have been read before.
    is_closed("an iterator", pairs.find_map(Result::err));
    drop(pairs);
    is_closed("a read of an open transaction", texts.get(&mut reading, 7).err());
    is_closed("a change of an open transaction", texts.put(&mut changing, 8, "never").err());
    is_closed("a commit of changes", changing.commit().err());
    is_closed("a clone", clone.transact(|t| texts.put(t, 1, "never").map(drop)).err());
    is_closed("a new transaction of a clone", texts.get(&mut clone.begin(), 1).err());
    is_closed("a table", clone.key_value::<u32, String>("others").err());
    is_closed("a backup", clone.backup("/nowhere/backup").err());
    clone.close().unwrap();

    untorn::engine::block_on(async {
        let db = untorn::asynchronous::Database::in_memory().await.unwrap();
        let clone = db.clone();
        let texts = db.key_value::<u32, String>("texts").await.unwrap();
        let mut t = db.transaction();
        t.begin();
        texts.put(&mut t, 7, "never").await.unwrap();
        db.close().await.unwrap();
        is_closed("a read", texts.get(&mut t, 7).await.err());
        is_closed("a change", texts.put(&mut t, 8, "never").await.err());
        is_closed("a commit", t.commit(Durability::Sync).await.err());
        let mut fresh = clone.transaction();
        fresh.begin();
        is_closed("a new transaction", texts.put(&mut fresh, 8, "never").await.err());
        clone.close().await.unwrap();
    });
}

/// Also to read, a directory must be written to: opening it recovers it.
#[test]
fn a_directory_that_cannot_be_written_to_is_refused_in_words() {
    use disk::{Environment, Fault, FaultKind, SimulatedEnvironment};
    for made_before in [false, true] {
        let environment = SimulatedEnvironment::new(1);
        let shared: Arc<dyn Environment> = environment.clone();
        let options = || Options::new("/var/data").buffer_pool_bytes(16 << 20);
        let open = || {
            environment.run_until_complete(untorn::asynchronous::Database::open_in(shared.clone(), options()))
        };
        if made_before {
            environment.run_until_complete(open().unwrap().close()).unwrap();
        }
        let call = environment.disk().calls();
        environment.disk().plan(Fault { call, kind: FaultKind::Denied });
        let Err(error @ Error::NotWritable { .. }) = open().map(drop) else { panic!("it was not refused") };
        let text = error.to_string();
        assert!(text.contains("/var/data cannot be written to") && text.contains("give the user"), "{text}");
        environment.disk().forget_faults();
        environment.run_until_complete(open().unwrap().close()).unwrap();
    }
}

#[test]
fn a_key_that_is_too_long_is_named_by_every_operation() {
    let db = Database::in_memory().unwrap();
    let pairs = db.key_value::<String, u64>("pairs").unwrap();
    let long = "x".repeat(701);
    let mut t = db.begin();
    let wanted = "key-value table 'pairs': the key is longer than the 700 bytes that a string or byte vector in a key may have";
    let outcomes = [
        pairs.put(&mut t, &long, 1).map(drop),
        pairs.insert(&mut t, &long, 1).map(drop),
        pairs.insert_all(&mut t, [(&*long, 1)]),
        pairs.put_all(&mut t, [(&*long, 1)]).map(drop),
        pairs.change(&mut t, &long, |_| Some(1)).map(drop),
        pairs.get(&mut t, &long).map(drop),
        pairs.get_for_update(&mut t, &long).map(drop),
        pairs.remove(&mut t, &long).map(drop),
        pairs.range(&mut t, &*long..).next().unwrap().map(drop),
        pairs.prefix(&mut t, &long).next().unwrap().map(drop),
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error, wanted, "operation {at}");
    }
}

#[test]
fn a_key_that_is_no_text_says_how_to_read_it() {
    let db = Database::in_memory().unwrap();
    let bytes = db.key_value::<Vec<u8>, u32>("b").unwrap();
    db.transact(|t| bytes.put(t, b"\xff\xfe", 1)).unwrap();
    let texts = db.key_value::<String, u32>("b").unwrap();
    let mut t = db.begin();
    let outcomes = [texts.first(&mut t).map(drop), texts.iter(&mut t).next().unwrap().map(drop)];
    for outcome in outcomes {
        assert!(matches!(&outcome, Err(Error::UnreadablePair { table }) if table == "b"), "{outcome:?}");
    }
}

#[test]
fn a_column_that_is_not_there_is_named() {
    let db = Database::in_memory().unwrap();
    let def = || TableDef::new(vec![ColumnDef::new("id", ColumnType::int())]);
    let error = db.create_table_if_missing("d", "t", def().primary_key(&["nr"])).unwrap_err();
    assert_eq!(error.to_string(), "key 'PRIMARY' names a column that the table does not have");
    let table = db.create_table_if_missing("d", "t", def().primary_key(&["id"])).unwrap();
    let one = [Value::Int(1)];
    let error = db.transact(|t| t.update(&table, &one, &[("stat", Value::Int(1))])).unwrap_err();
    assert_eq!(error.to_string(), "the table has no column 'stat'");
}

#[test]
fn the_redo_log_follows_the_pool_unless_it_is_set() {
    let options = Options::new("/data").buffer_pool_bytes(16 << 20);
    assert_eq!(options.redo_capacity_bytes, 64 << 20);
    let options = options.buffer_pool_bytes(1 << 30);
    assert_eq!(options.redo_capacity_bytes, 512 << 20);
    let options = options.redo_capacity_bytes(100 << 20).buffer_pool_bytes(16 << 20);
    assert_eq!(options.redo_capacity_bytes, 100 << 20);
}

/// The current directory gets neither a lock file nor anything else.
#[test]
fn a_directory_that_is_none_is_refused() {
    let place = directory("no_directory");
    std::fs::create_dir_all(&place).unwrap();
    let file = place.join("file");
    std::fs::write(&file, "mine").unwrap();
    for (path, text) in
        [(std::path::Path::new(""), "no directory is named"), (&file, "is a file, and no directory")]
    {
        let error = Database::open(Options::new(path).buffer_pool_bytes(16 << 20)).map(drop).unwrap_err();
        assert!(matches!(error, Error::Setting { setting: "datadir", .. }), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(!std::path::Path::new("untorn.lock").exists());
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_table_of_other_types_says_which() {
    let db = Database::in_memory().unwrap();
    let name = "own";
    db.key_value::<(String, u32), Option<u64>>(name).unwrap();
    let error = db.key_value::<u64, u64>(name).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.ends_with("k1 is String or Vec<u8>, k2 is u32, v is Option of u64; the key is k1, k2"),
        "{error}"
    );
}
