//! What a reader of committed changes is told: everything that was committed after its snapshot, in order,
//! and nothing that was undone or could still be lost.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use disk::{Environment, SimulatedEnvironment};
use untorn::asynchronous;
use untorn::changes::{ChangeEvent, ChangeFeedOptions, ChangeKind, RowChange};
use untorn::schema::{ColumnDef, ForeignKey, ReferentialAction, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{
    ChangeFeed, Database, Durability, Error, Lock, Options, Range, Table, Transaction, TransactionError, Xid,
};

fn numbers(db: &Database, name: &str) -> Arc<Table> {
    if db.databases().iter().all(|name| name != "test") {
        db.create_database("test", Collation::Utf8mb4Bin).unwrap();
    }
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::bigint()).nullable(),
    ];
    db.create_table_if_missing("test", name, TableDef::new(columns).primary_key(&["id"])).unwrap()
}

/// A change in a line.
fn line(change: &RowChange) -> String {
    let show = |value: &Value<'_>| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        other => format!("{other:?}"),
    };
    let columns = &change.table().def.columns;
    let key: Vec<_> = change.key().unwrap().unwrap_or_default().iter().map(show).collect();
    let values = change.values().unwrap();
    let values = values.iter().map(|(at, value)| format!("{}={}", columns[*at].name, show(value)));
    let values: Vec<_> = values.collect();
    let text = format!("{:?} {} {} {}", change.kind(), change.table().name, key.join(","), values.join(" "));
    text.trim_end().to_owned()
}

/// The changes of all commits that wait.
fn told(feed: &mut ChangeFeed) -> Vec<Vec<String>> {
    let mut commits = Vec::new();
    while feed.is_waiting() {
        match feed.next_event().unwrap().unwrap() {
            ChangeEvent::Commit(commit) => commits.push(commit.rows().iter().map(line).collect()),
            ChangeEvent::Redefined { database, table } => commits.push(vec![format!("{database}.{table}")]),
            other => panic!("{other:?}"),
        }
    }
    commits
}

#[test]
fn commits_are_told_whole_and_what_was_undone_is_not() {
    let db = Database::in_memory().unwrap();
    let table = numbers(&db, "t");
    let row = |id, n| [Value::Int(id), Value::Int(n)];
    let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).unwrap();

    let mut t = db.begin();
    t.insert(&table, &row(1, 10)).unwrap();
    t.savepoint("s");
    t.insert(&table, &row(2, 20)).unwrap();
    t.update(&table, &[Value::Int(1)], &[("n", Value::Int(11))]).unwrap();
    t.rollback_to_savepoint("s").unwrap();
    t.insert(&table, &row(3, 30)).unwrap();
    // Fails, and takes only itself back.
    assert!(t.insert(&table, &row(3, 31)).is_err());
    t.update(&table, &[Value::Int(3)], &[("n", Value::Null)]).unwrap();
    assert!(!feed.is_waiting(), "it is not committed");
    t.commit().unwrap();

    let mut t = db.begin();
    t.insert(&table, &row(4, 40)).unwrap();
    t.rollback().unwrap();
    let mut t = db.begin();
    t.insert(&table, &row(5, 50)).unwrap();
    t.savepoint("all");
    t.delete(&table, &[Value::Int(1)]).unwrap();
    t.rollback_to_savepoint("all").unwrap();
    t.commit().unwrap();
    let mut t = db.begin();
    t.delete(&table, &[Value::Int(1)]).unwrap();
    t.update(&table, &[Value::Int(5)], &[("id", Value::Int(6))]).unwrap();
    t.commit().unwrap();
    assert_eq!(
        told(&mut feed),
        [
            vec!["Insert t 1 id=1 n=10", "Insert t 3 id=3 n=30", "Update t 3 n=NULL"],
            vec!["Insert t 5 id=5 n=50"],
            vec!["Delete t 1", "Update t 5 id=6"],
        ]
    );
}

#[test]
fn an_operation_that_was_cut_is_not_told() {
    let environment = SimulatedEnvironment::new(11);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, Options::new("/data").buffer_pool_bytes(5 << 20));
        let db = db.await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let key = || vec![ColumnDef::new("id", ColumnType::bigint())];
        let parent = TableDef::new(key()).primary_key(&["id"]);
        let parent = db.create_table_if_missing("test", "parent", parent).await.unwrap();
        let mut columns = key();
        columns.push(ColumnDef::new("of", ColumnType::bigint()).nullable());
        let key = ForeignKey::new(&["of"], "parent", &["id"]).on_delete(ReferentialAction::Cascade);
        let child = TableDef::new(columns).primary_key(&["id"]).foreign_key(key);
        let child = db.create_table_if_missing("test", "child", child).await.unwrap();
        let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).await.unwrap();
        let mut t = db.begin();
        t.insert(&parent, &[Value::Int(1)]).await.unwrap();
        t.insert(&child, &[Value::Int(1), Value::Int(1)]).await.unwrap();
        t.insert(&child, &[Value::Int(2), Value::Int(1)]).await.unwrap();
        t.commit(Durability::Sync).await.unwrap();
        let lines = |event: Option<ChangeEvent>| match event {
            Some(ChangeEvent::Commit(commit)) => commit.rows().iter().map(line).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(lines(feed.next().await.unwrap()).len(), 3);

        // Another transaction keeps the second child locked: the cascade has deleted parent and first child
        // when its future is dropped.
        let mut other = db.begin();
        other.get(&child, &[Value::Int(2)], Lock::Exclusive).await.unwrap();
        let mut t = db.begin();
        t.insert(&parent, &[Value::Int(2)]).await.unwrap();
        {
            let key = [Value::Int(1)];
            let mut cascade = pin!(t.delete(&parent, &key));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..20 {
                assert!(cascade.as_mut().poll(&mut context).is_pending());
            }
        }
        t.insert(&parent, &[Value::Int(3)]).await.unwrap();
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(lines(feed.next().await.unwrap()), ["Insert parent 2 id=2", "Insert parent 3 id=3"]);

        other.rollback().await.unwrap();
        let mut t = db.begin();
        t.delete(&parent, &[Value::Int(1)]).await.unwrap();
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(
            lines(feed.next().await.unwrap()),
            ["Delete parent 1", "Delete child 1", "Delete child 2"]
        );
    });
}

/// Writers move amounts between accounts while a reader begins; its copy must be the table at the end.
#[test]
fn a_snapshot_and_its_feed_are_the_table() {
    for round in 0..8 {
        let db = Database::in_memory().unwrap();
        let table = numbers(&db, "t");
        let stop = AtomicBool::new(false);
        let write = |seed: u64| {
            let mut random = disk::Random::new(seed);
            while !stop.load(Ordering::Relaxed) {
                let work = |t: &mut Transaction| -> untorn::Result<()> {
                    for _ in 0..3 {
                        let id = [Value::Int(random.below(40) as i64)];
                        let n = Value::Int(random.below(1000) as i64);
                        if t.get_for_update(&table, &id)?.is_none() {
                            let [id] = id;
                            t.insert(&table, &[id, n])?;
                        } else if random.below(3) == 0 {
                            t.delete(&table, &id)?;
                        } else {
                            t.update(&table, &id, &[("n", n)])?;
                        }
                    }
                    if random.below(8) == 0 { Err(Error::ReadOnly) } else { Ok(()) }
                };
                match db.transact(work) {
                    Ok(()) | Err(Error::ReadOnly) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let (mut copy, mut feed) = std::thread::scope(|scope| {
            for seed in 0..3 {
                scope.spawn(move || write(round * 10 + seed));
            }
            let (snapshot, mut feed) = db.change_feed(ChangeFeedOptions::new()).unwrap();
            let mut copy = rows_in(db.begin_in(&snapshot).unwrap(), &table);
            drop(snapshot);
            // The writers go on meanwhile.
            for _ in 0..200 {
                apply(&mut copy, feed.next_event().unwrap().unwrap());
            }
            stop.store(true, Ordering::Relaxed);
            (copy, feed)
        });
        while feed.is_waiting() {
            apply(&mut copy, feed.next_event().unwrap().unwrap());
        }
        assert_eq!(copy, rows_in(db.begin(), &table), "round {round}");
    }
}

fn rows_in(mut t: Transaction, table: &Arc<Table>) -> BTreeMap<i64, i64> {
    let mut rows = BTreeMap::new();
    for row in t.scan(table, &Range::all()).unwrap() {
        let row = row.unwrap();
        let [Value::Int(id), Value::Int(n)] = row[..] else { panic!("{row:?}") };
        rows.insert(id, n);
    }
    rows
}

/// Makes a commit's changes to a copy, which must be as they say it is.
fn apply(copy: &mut BTreeMap<i64, i64>, event: ChangeEvent) {
    let ChangeEvent::Commit(commit) = event else { panic!("{event:?}") };
    for change in commit.rows() {
        let key = change.key().unwrap().unwrap();
        let [Value::Int(id)] = key[..] else { panic!("{key:?}") };
        let values = change.values().unwrap();
        let n = values.iter().find(|(column, _)| *column == 1).map(|(_, value)| value.clone());
        let before = match (change.kind(), n) {
            (ChangeKind::Insert, Some(Value::Int(n))) => {
                assert_eq!(copy.insert(id, n), None, "{}", line(change));
                continue;
            }
            (ChangeKind::Update, Some(Value::Int(n))) => copy.insert(id, n),
            (ChangeKind::Delete, None) => copy.remove(&id),
            other => panic!("{other:?}"),
        };
        assert!(before.is_some(), "{}", line(change));
    }
}

#[test]
fn a_feed_waits_for_those_who_do_not_know_of_it() {
    let environment = SimulatedEnvironment::new(12);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, Options::new("/data").buffer_pool_bytes(5 << 20));
        let db = db.await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        let table = db.create_table_if_missing("test", "t", def).await.unwrap();
        let mut t = db.begin();
        t.insert(&table, &[Value::Int(1)]).await.unwrap();
        {
            let mut feed = pin!(db.change_feed(ChangeFeedOptions::new()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(feed.as_mut().poll(&mut context).is_pending());
            // Recorded, as the feed has said that it is there: told, it would be half a transaction.
            t.insert(&table, &[Value::Int(2)]).await.unwrap();
            assert!(feed.as_mut().poll(&mut context).is_pending());
            t.commit(Durability::Sync).await.unwrap();
            let (snapshot, feed) = feed.await.unwrap();
            assert!(!feed.is_waiting());
            let mut reader = db.begin_in(&snapshot).unwrap();
            for id in 1..3 {
                assert!(reader.get(&table, &[Value::Int(id)], Lock::None).await.unwrap().is_some());
            }
        }
        // One that does not end.
        t.begin();
        t.insert(&table, &[Value::Int(3)]).await.unwrap();
        let refused = db.change_feed(ChangeFeedOptions::new()).await;
        assert!(matches!(refused, Err(Error::Transaction(TransactionError::LockWaitTimeout))));
        // Nor after a close.
        let mut feed = pin!(db.change_feed(ChangeFeedOptions::new()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(feed.as_mut().poll(&mut context).is_pending());
        db.close().await.unwrap();
        let refused = feed.await;
        assert!(matches!(refused, Err(Error::Closed)), "{:?}", refused.err());
    });
}

#[test]
fn more_than_a_feed_may_keep_ends_it() {
    let db = Database::in_memory().unwrap();
    let table = numbers(&db, "t");
    let other = numbers(&db, "other");
    let insert = |table: &Arc<Table>, ids: std::ops::Range<i64>| {
        db.transact(|t| {
            ids.clone().try_for_each(|id| t.insert(table, &[Value::Int(id), Value::Null]).map(drop))
        })
        .unwrap();
    };
    let small = ChangeFeedOptions::new().table("test", "t").memory_bytes(20_000);
    let (_, mut feed) = db.change_feed(small.clone()).unwrap();
    let (_, mut elsewhere) = db.change_feed(small.table("test", "other")).unwrap();
    let (_, mut roomy) = db.change_feed(ChangeFeedOptions::new()).unwrap();
    // Of a table it does not read: nothing.
    insert(&other, 0..1000);
    assert!(!feed.is_waiting());
    assert!(matches!(elsewhere.next_event(), Err(Error::ChangesLost)));
    insert(&table, 0..1);
    insert(&table, 1..1000);
    insert(&table, 1000..1001);
    assert_eq!(told(&mut feed), [["Insert t 0 id=0 n=NULL"]]);
    assert!(matches!(feed.next_event(), Err(Error::ChangesLost)));
    assert!(matches!(feed.next_event(), Err(Error::ChangesLost)), "nothing follows a gap");
    // An iterator ends with the error.
    assert!(matches!(feed.next(), Some(Err(Error::ChangesLost))));
    assert!(feed.next().is_none());
    assert_eq!(told(&mut roomy).iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1, 999, 1]);
}

/// More than a feed may keep, but undone before the commit: nothing is lost.
#[test]
fn what_was_too_much_and_undone_loses_nothing() {
    let db = Database::in_memory().unwrap();
    let table = numbers(&db, "t");
    let other = numbers(&db, "other");
    let small = || ChangeFeedOptions::new().memory_bytes(20_000);
    let (_, mut feed) = db.change_feed(small()).unwrap();
    let (_, mut first_only) = db.change_feed(small().table("test", "other")).unwrap();
    let fill = |t: &mut Transaction| {
        for id in 100..1100 {
            t.insert(&table, &[Value::Int(id), Value::Null]).unwrap();
        }
    };
    let mut t = db.begin();
    t.savepoint("s");
    fill(&mut t);
    t.rollback_to_savepoint("s").unwrap();
    t.insert(&table, &[Value::Int(1), Value::Null]).unwrap();
    t.commit().unwrap();
    assert_eq!(told(&mut feed), [["Insert t 1 id=1 n=NULL"]]);

    // What stood before the savepoint was forgotten with the rest, so it is lost.
    let mut t = db.begin();
    t.insert(&other, &[Value::Int(2), Value::Null]).unwrap();
    t.savepoint("s");
    fill(&mut t);
    t.rollback_to_savepoint("s").unwrap();
    t.commit().unwrap();
    assert!(matches!(feed.next_event(), Err(Error::ChangesLost)));
    assert!(matches!(first_only.next_event(), Err(Error::ChangesLost)));
}

/// However many there are, prepared transactions keep no more than a feed does; of the others only the tables
/// are known.
#[test]
fn prepared_transactions_together_keep_no_more_than_a_feed() {
    let db = Database::in_memory().unwrap();
    let table = numbers(&db, "t");
    let small = || ChangeFeedOptions::new().memory_bytes(20_000);
    let (_, mut feed) = db.change_feed(small()).unwrap();
    let xid = |number: u8| Xid::new(1, &[number], b"").unwrap();
    let prepare = |number: u8| {
        let mut t = db.begin();
        for id in 0..20 {
            t.insert(&table, &[Value::Int(i64::from(number) * 100 + id), Value::Null]).unwrap();
        }
        t.prepare(&xid(number)).unwrap();
    };
    (0..40).for_each(prepare);
    db.commit_prepared(&xid(0)).unwrap();
    assert_eq!(told(&mut feed).iter().map(Vec::len).collect::<Vec<_>>(), [20]);
    db.commit_prepared(&xid(39)).unwrap();
    assert!(matches!(feed.next_event(), Err(Error::ChangesLost)));
    // There is room again.
    (1..39).for_each(|number| db.rollback_prepared(&xid(number)).unwrap());
    let (_, mut feed) = db.change_feed(small()).unwrap();
    prepare(40);
    db.commit_prepared(&xid(40)).unwrap();
    assert_eq!(told(&mut feed).iter().map(Vec::len).collect::<Vec<_>>(), [20]);
}

/// Uses the database when it is woken, as an executor does that polls at once.
struct AtOnce {
    db: asynchronous::Database,
    seen: AtomicU64,
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        let snapshot = self.db.snapshot();
        let mut feed = pin!(self.db.change_feed(ChangeFeedOptions::new()));
        // The commit is over: nothing is in the way of another feed.
        let polled = feed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop((snapshot, polled));
        self.seen.fetch_add(1, Ordering::SeqCst);
    }
}

/// Neither a commit nor a definition holds a mutex while it wakes the reader.
#[test]
fn a_reader_that_is_woken_may_use_the_database() {
    let environment = SimulatedEnvironment::new(15);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, Options::new("/data").buffer_pool_bytes(5 << 20));
        let db = db.await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).await.unwrap();
        let waker = Arc::new(AtOnce { db: db.clone(), seen: AtomicU64::new(0) });
        let polled = Waker::from(waker.clone());
        let mut context = Context::from_waker(&polled);
        let table = {
            let mut next = pin!(feed.next());
            assert!(next.as_mut().poll(&mut context).is_pending());
            let table = db.create_table_if_missing("test", "t", def).await.unwrap();
            assert_eq!(waker.seen.load(Ordering::SeqCst), 1);
            assert!(matches!(next.await.unwrap(), Some(ChangeEvent::Redefined { .. })));
            table
        };
        let mut next = pin!(feed.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
        let mut t = db.begin();
        t.insert(&table, &[Value::Int(1)]).await.unwrap();
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(waker.seen.load(Ordering::SeqCst), 2);
        assert!(matches!(next.await.unwrap(), Some(ChangeEvent::Commit(_))));
    });
}

/// What is committed while a feed waits for others is in its snapshot, however much it is.
#[test]
fn a_feed_does_not_begin_with_a_loss_and_private_tables_are_not_told() {
    let environment = SimulatedEnvironment::new(13);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, Options::new("/data").buffer_pool_bytes(5 << 20));
        let db = db.await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        db.create_database("#sql-1-0", Collation::Utf8mb4Bin).await.unwrap();
        let def = || TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        let table = db.create_table_if_missing("test", "t", def()).await.unwrap();
        let mut t = db.begin();
        t.insert(&table, &[Value::Int(0)]).await.unwrap();
        let mut feed = {
            let small = ChangeFeedOptions::new().memory_bytes(2000);
            let mut feed = pin!(db.change_feed(small));
            let mut context = Context::from_waker(Waker::noop());
            assert!(feed.as_mut().poll(&mut context).is_pending());
            for id in 1..100 {
                t.insert(&table, &[Value::Int(id)]).await.unwrap();
            }
            t.commit(Durability::Sync).await.unwrap();
            feed.await.unwrap().1
        };
        let private = db.create_table_if_missing("#sql-1-0", "p", def()).await.unwrap();
        let mut t = db.begin();
        t.insert(&table, &[Value::Int(200)]).await.unwrap();
        t.savepoint("s");
        t.insert(&table, &[Value::Int(201)]).await.unwrap();
        t.rollback_to_savepoint("s").await.unwrap();
        // Its undo record stands where the one of row 201 stood.
        t.insert(&private, &[Value::Int(1)]).await.unwrap();
        t.commit(Durability::Sync).await.unwrap();
        match feed.next().await.unwrap() {
            Some(ChangeEvent::Commit(commit)) => {
                assert_eq!(commit.rows().iter().map(line).collect::<Vec<_>>(), ["Insert t 200 id=200"]);
            }
            other => panic!("{other:?}"),
        }
        assert!(!feed.is_waiting());
    });
}

#[test]
fn definitions_are_told_and_a_close_ends_the_feed() {
    let db = Database::in_memory().unwrap();
    let table = numbers(&db, "t");
    let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).unwrap();
    db.transact(|t| t.insert(&table, &[Value::Int(1), Value::Null])).unwrap();
    db.definitions().truncate_table("test", "t").unwrap();
    db.transact(|t| t.insert(&table, &[Value::Int(2), Value::Null])).unwrap();
    let told = told(&mut feed);
    assert_eq!(told.first().unwrap(), &["Insert t 1 id=1 n=NULL"]);
    assert_eq!(told.last().unwrap(), &["Insert t 2 id=2 n=NULL"]);
    let between = &told[1..told.len() - 1];
    assert!(!between.is_empty() && between.iter().all(|event| event == &["test.t"]), "{told:?}");
    db.close().unwrap();
    assert!(feed.next_event().unwrap().is_none());
}

/// A commit that did not sync: a reader that was told of it finds it after a power loss.
#[test]
fn what_is_told_is_durable() {
    let environment = SimulatedEnvironment::new(5);
    let shared: Arc<dyn Environment> = environment.clone();
    let options = || Options::new("/data").buffer_pool_bytes(5 << 20);
    environment.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, options()).await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        let table = db.create_table_if_missing("test", "t", def).await.unwrap();
        let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).await.unwrap();
        for id in 0..2 {
            let mut t = db.begin();
            t.insert(&table, &[Value::Int(id)]).await.unwrap();
            t.commit(Durability::NoSync).await.unwrap();
            if id == 0 {
                feed.next().await.unwrap().unwrap();
            }
        }
        std::mem::forget(db);
    });
    let disk = environment.disk().crash(5);
    let after = SimulatedEnvironment::with_storage(6, disk);
    let shared: Arc<dyn Environment> = after.clone();
    after.run_until_complete(async {
        let db = asynchronous::Database::open_in(shared, options()).await.unwrap();
        let table = db.table("test", "t").unwrap();
        let mut t = db.begin();
        assert!(t.get(&table, &[Value::Int(0)], Lock::None).await.unwrap().is_some(), "it was told");
        assert!(t.get(&table, &[Value::Int(1)], Lock::None).await.unwrap().is_none(), "nobody waited for it");
    });
}
