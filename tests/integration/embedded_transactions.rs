//! Transactions of programs that embed the engine: what lasts until their end, what their levels promise,
//! what may be dropped at any time, and which handles stay good.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::{Durability, Error as TransactionError, Isolation, block_on};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Error, Lock, Options, Range, Table};

const PATIENCE: Duration = Duration::from_secs(5);

struct World {
    environment: Arc<SimulatedEnvironment>,
    db: Database,
}

fn columns() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
}

fn key_on_n() -> KeyDef {
    let parts = vec![KeyPart::whole(1)];
    KeyDef::new("n", KeyKind::Secondary, parts)
}

fn row(id: i64, n: i64) -> [Value<'static>; 3] {
    [Value::Int(id), Value::Int(n), Value::Null]
}

impl World {
    fn new(seed: u64) -> World {
        let environment = SimulatedEnvironment::new(seed);
        let shared: Arc<dyn Environment> = environment.clone();
        let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(256 * 4096);
        options.unchecked_sizes = true;
        options.redo_capacity_bytes = 4 << 20;
        options.log_buffer_bytes = 1 << 20;
        let db = environment.run_until_complete(Database::open_in(shared, options)).unwrap();
        environment.run_until_complete(db.create_database("test", Collation::Utf8mb4Bin)).unwrap();
        World { environment, db }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.environment.run_until_complete(future)
    }

    fn table(&self, name: &str, rows: i64) -> Arc<Table> {
        self.run(async {
            self.db.create_table("test", name, columns()).await.unwrap();
            let table = self.db.table("test", name).unwrap();
            let mut transaction = self.begin(Isolation::RepeatableRead);
            for id in 1..=rows {
                transaction.insert(&table, &row(id, id * 10)).await.unwrap();
            }
            transaction.commit(Durability::Sync).await.unwrap();
            table
        })
    }

    fn begin(&self, isolation: Isolation) -> Transaction {
        let mut transaction = self.db.transaction();
        transaction.engine_mut().set_isolation(isolation);
        transaction.begin();
        transaction
    }

    /// Polls until the future is complete or nothing but the clock could bring it on.
    fn settle<T>(&self, future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Poll<T> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Poll::Ready(output);
            }
            if !self.environment.step() {
                return Poll::Pending;
            }
        }
    }

    fn check(&self, name: &str) {
        let report = self.run(self.db.check_table("test", name)).unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
    }
}

fn n_of(row: Option<Vec<Value<'static>>>) -> Option<i64> {
    row.map(|row| match row[1] {
        Value::Int(n) => n,
        ref other => panic!("{other:?}"),
    })
}

async fn n(transaction: &mut Transaction, table: &Arc<Table>, id: i64) -> Option<i64> {
    n_of(transaction.get(table, &[Value::Int(id)], Lock::None).await.unwrap())
}

/// DDL waits for the rollback of a transaction that was dropped: it would read rows that are being undone.
#[test]
fn an_index_made_right_after_a_transaction_was_dropped_is_sound() {
    let world = World::new(1);
    let table = world.table("t", 300);
    let mut dropped = world.begin(Isolation::RepeatableRead);
    world.run(async {
        for id in 1..=300 {
            let key = [Value::Int(id)];
            match id % 3 {
                0 => assert!(dropped.delete(&table, &key).await.unwrap()),
                1 => assert!(dropped.update(&table, &key, &[("n", Value::Int(-id))]).await.unwrap()),
                _ => assert_eq!(dropped.insert(&table, &row(id + 1000, id)).await.unwrap(), None),
            }
        }
    });
    drop(dropped);
    world.run(world.db.create_index("test", "t", key_on_n())).unwrap();
    world.environment.run_until_idle();
    assert_eq!(world.db.transaction_system().status().active, 0);
    world.check("t");
}

/// The locks that a dropped transaction has in one table are not stranded by what happens to another.
#[test]
fn dropping_a_table_waits_for_the_rollback_and_strands_no_lock() {
    let world = World::new(2);
    let (a, b) = (world.table("a", 100), world.table("b", 3));
    let mut dropped = world.begin(Isolation::RepeatableRead);
    world.run(async {
        dropped.update(&b, &[Value::Int(1)], &[("n", Value::Int(-1))]).await.unwrap();
        for id in 1..=100 {
            dropped.update(&a, &[Value::Int(id)], &[("n", Value::Int(-id))]).await.unwrap();
        }
    });
    drop(dropped);
    world.run(async {
        world.db.drop_table("test", "a").await.unwrap();
        let mut other = world.begin(Isolation::RepeatableRead);
        let found = other.get(&b, &[Value::Int(1)], Lock::Exclusive).await.unwrap();
        assert_eq!(n_of(found), Some(10));
    });
    assert_eq!(world.db.transaction_system().status().active, 0);
}

/// A commit whose future was dropped while it waited for the disk is a commit, and DDL need not wait for it.
#[test]
fn a_commit_dropped_while_it_waits_for_durability_lets_go_of_its_tables() {
    let world = World::new(3);
    let table = world.table("t", 3);
    let mut transaction = world.begin(Isolation::RepeatableRead);
    world.run(transaction.update(&table, &[Value::Int(1)], &[("n", Value::Int(11))])).unwrap();
    {
        let mut commit = pin!(transaction.commit(Durability::Sync));
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(!transaction.is_active(), "committed; only the wait was cut");
    world.run(world.db.create_index("test", "t", key_on_n())).unwrap();
    world.run(async {
        transaction.begin();
        assert_eq!(n(&mut transaction, &table, 1).await, Some(11));
        transaction.rollback().await.unwrap();
    });
    world.check("t");
}

#[test]
fn read_committed_sees_what_was_committed_before_each_statement() {
    let world = World::new(4);
    let table = world.table("t", 3);
    world.run(async {
        let mut reader = world.begin(Isolation::ReadCommitted);
        let mut repeatable = world.begin(Isolation::RepeatableRead);
        assert_eq!(n(&mut reader, &table, 1).await, Some(10));
        assert_eq!(n(&mut repeatable, &table, 1).await, Some(10));
        let mut writer = world.begin(Isolation::RepeatableRead);
        writer.update(&table, &[Value::Int(1)], &[("n", Value::Int(11))]).await.unwrap();
        writer.commit(Durability::Sync).await.unwrap();
        assert_eq!(n(&mut reader, &table, 1).await, Some(11));
        let mut sum = 0;
        let all = Range::all();
        reader
            .for_each(&table, &all, |row| {
                sum += n_of(Some(row)).unwrap();
                true
            })
            .await
            .unwrap();
        assert_eq!(sum, 11 + 20 + 30);
        assert_eq!(n(&mut repeatable, &table, 1).await, Some(10));
    });
}

/// Hermitage G2-item (write skew) and P4 (lost update) at SERIALIZABLE: one of the two must fail.
#[test]
fn serializable_prevents_write_skew_and_lost_updates() {
    for (reads, writes) in [([1, 2], [1, 2]), ([1, 1], [1, 1])] {
        let world = World::new(5);
        let table = world.table("t", 3);
        let (mut a, mut b) = (world.begin(Isolation::Serializable), world.begin(Isolation::Serializable));
        world.run(async {
            for id in reads {
                n(&mut a, &table, id).await;
                n(&mut b, &table, id).await;
            }
        });
        let (ids, change) = (writes.map(Value::Int), [("n", Value::Int(1))]);
        let mut first: Pin<Box<dyn Future<Output = _>>> = Box::pin(a.update(&table, &ids[..1], &change));
        assert!(world.settle(&mut first).is_pending(), "{writes:?}: the other has read it");
        let error = world.run(b.update(&table, &ids[1..], &change)).unwrap_err();
        assert!(matches!(error, Error::Transaction(TransactionError::Deadlock)), "{error}");
        assert!(world.run(first).unwrap());
        world.run(a.commit(Durability::Sync)).unwrap();
        let error = world.run(b.commit(Durability::Sync)).unwrap_err();
        assert!(matches!(error, Error::Transaction(TransactionError::RolledBack)), "{error}");
        world.run(b.rollback()).unwrap();
    }
}

/// A read that locks locks what it has shown, and nothing ahead of it.
#[test]
fn for_each_that_stops_has_locked_only_what_it_showed() {
    let world = World::new(6);
    let table = world.table("t", 50);
    let mut a = world.begin(Isolation::ReadCommitted);
    world.run(async {
        let all = Range::all().lock(Lock::Exclusive);
        a.for_each(&table, &all, |row| n_of(Some(row)).unwrap() < 20).await.unwrap();
        let mut b = world.begin(Isolation::ReadCommitted);
        assert!(b.update(&table, &[Value::Int(3)], &[("n", Value::Int(1))]).await.unwrap());
        b.rollback().await.unwrap();
    });
    let mut b = world.begin(Isolation::ReadCommitted);
    let ids = [Value::Int(2)];
    let mut waits: Pin<Box<dyn Future<Output = _>>> = Box::pin(b.delete(&table, &ids));
    assert!(world.settle(&mut waits).is_pending());
}

/// Handles go on through CREATE INDEX, RENAME and TRUNCATE, and wait while DDL is at work.
#[test]
fn handles_survive_definitions_that_change() {
    let world = World::new(7);
    let table = world.table("t", 10);
    world.run(world.db.create_index("test", "t", key_on_n())).unwrap();
    let mut t = world.begin(Isolation::RepeatableRead);
    world.run(async {
        t.insert(&table, &row(11, 110)).await.unwrap();
        assert!(t.update(&table, &[Value::Int(1)], &[("n", Value::Int(1))]).await.unwrap());
        t.commit(Durability::Sync).await.unwrap();
    });
    world.check("t");
    world.run(async {
        world.db.rename_table(("test", "t"), ("test", "u")).await.unwrap();
        t.begin();
        assert_eq!(n(&mut t, &table, 11).await, Some(110));
        t.commit(Durability::Sync).await.unwrap();
    });
    // While it is in use DDL waits; who comes then waits for DDL.
    t.begin();
    world.run(t.insert(&table, &row(12, 120))).unwrap();
    let mut truncate: Pin<Box<dyn Future<Output = _>>> = Box::pin(world.db.truncate_table("test", "u"));
    assert!(world.settle(&mut truncate).is_pending());
    let mut other = world.begin(Isolation::RepeatableRead);
    let ids = [Value::Int(1)];
    {
        let mut waits: Pin<Box<dyn Future<Output = _>>> = Box::pin(other.get(&table, &ids, Lock::None));
        assert!(world.settle(&mut waits).is_pending());
        world.run(t.commit(Durability::Sync)).unwrap();
        world.run(truncate).unwrap();
        assert_eq!(world.run(waits).unwrap(), None);
    }
    world.run(other.rollback()).unwrap();
    world.run(world.db.drop_table("test", "u")).unwrap();
    let error = world.run(other.get(&table, &ids, Lock::None)).unwrap_err();
    assert!(matches!(error, Error::NoSuchTable(..)), "{error}");
}

/// A view does not see into an index that is younger: it has nothing of the versions that the view should
/// see.
#[test]
fn an_index_or_table_younger_than_a_view_is_refused_to_it() {
    let world = World::new(8);
    let (first, table) = (world.table("first", 1), world.table("t", 10));
    world.run(async {
        let mut old = world.begin(Isolation::RepeatableRead);
        n(&mut old, &first, 1).await;
        let mut writer = world.begin(Isolation::RepeatableRead);
        writer.update(&table, &[Value::Int(1)], &[("n", Value::Int(7))]).await.unwrap();
        writer.delete(&table, &[Value::Int(2)]).await.unwrap();
        writer.commit(Durability::Sync).await.unwrap();
        world.db.create_index("test", "t", key_on_n()).await.unwrap();
        let by_n = Range::all().index("n");
        let error = old.for_each(&table, &by_n, |_| true).await.unwrap_err();
        assert!(matches!(error, Error::Transaction(TransactionError::TableChanged)), "{error}");
        // The rows themselves are as the view has them.
        assert_eq!((n(&mut old, &table, 1).await, n(&mut old, &table, 2).await), (Some(10), Some(20)));
        // Views of today see the index.
        let mut young = world.begin(Isolation::RepeatableRead);
        let mut found = Vec::new();
        young
            .for_each(&table, &by_n, |row| {
                found.push(n_of(Some(row)).unwrap());
                true
            })
            .await
            .unwrap();
        assert_eq!(found, [7, 30, 40, 50, 60, 70, 80, 90, 100]);
        young.rollback().await.unwrap();
        old.rollback().await.unwrap();

        // The same with a view from before a TRUNCATE.
        old.begin();
        n(&mut old, &first, 1).await;
        world.db.truncate_table("test", "t").await.unwrap();
        let error = old.get(&table, &[Value::Int(3)], Lock::None).await.unwrap_err();
        assert!(matches!(error, Error::Transaction(TransactionError::TableChanged)), "{error}");
        old.insert(&table, &row(1, 1)).await.unwrap();
        old.commit(Durability::Sync).await.unwrap();
        old.begin();
        assert_eq!(n(&mut old, &table, 1).await, Some(1));
        old.commit(Durability::Sync).await.unwrap();
    });
    world.check("t");
}

#[test]
fn a_closed_database_says_so() {
    let world = World::new(9);
    let table = world.table("t", 3);
    let mut open = world.begin(Isolation::RepeatableRead);
    world.run(open.update(&table, &[Value::Int(1)], &[("n", Value::Int(11))])).unwrap();
    world.run(world.db.close()).unwrap();
    let closed = |error: Error| assert!(matches!(error, Error::Closed), "{error}");
    closed(world.run(open.commit(Durability::Sync)).unwrap_err());
    closed(world.run(open.insert(&table, &row(4, 4))).unwrap_err());
    closed(world.run(open.get(&table, &[Value::Int(1)], Lock::None)).unwrap_err());
    closed(world.run(world.db.create_table("test", "u", columns())).unwrap_err());
    closed(world.run(world.db.drop_table("test", "t")).unwrap_err());
    closed(world.run(world.db.create_database("other", Collation::Utf8mb4Bin)).unwrap_err());
    drop(open);
    world.environment.run_until_idle();
}

fn assert_send<T: Send>(_: &T) {}

/// Every future can be given to an executor of several threads.
#[test]
fn every_future_is_send() {
    let world = World::new(10);
    let (table, db) = (world.table("t", 3), &world.db);
    let (mut t, key, all) = (world.begin(Isolation::RepeatableRead), [Value::Int(1)], Range::all());
    assert_send(&t.get(&table, &key, Lock::Exclusive));
    assert_send(&t.for_each(&table, &all, |_| true));
    assert_send(&t.insert(&table, &row(5, 5)));
    assert_send(&t.update(&table, &key, &[]));
    assert_send(&t.delete(&table, &key));
    assert_send(&t.open_table("test", "t", PATIENCE));
    assert_send(&t.commit(Durability::Sync));
    assert_send(&t.rollback());
    let mark = t.statement_mark();
    assert_send(&t.rollback_to(mark));
    assert_send(&t.engine_mut().rollback_to_savepoint("s"));
    assert_send(&db.create_table("test", "u", columns()));
    assert_send(&db.drop_table("test", "t"));
    assert_send(&db.truncate_table("test", "t"));
    assert_send(&db.rename_table(("test", "t"), ("test", "u")));
    assert_send(&db.create_index("test", "t", key_on_n()));
    assert_send(&db.drop_index("test", "t", "n"));
    assert_send(&db.drop_database("test"));
    assert_send(&db.check_table("test", "t"));
    assert_send(&db.discard_tablespace("test", "t"));
    assert_send(&db.import_tablespace("test", "t"));
    assert_send(&db.close());
    assert_send(&Database::open_in(world.environment.clone(), Options::new("/other")));
    let _ = block_on(async { t.rollback().await });
}

/// A read of the next row that is dropped, wherever it waits, loses none and shows none twice.
#[test]
fn a_scan_goes_on_where_it_was_cut() {
    const ROWS: i64 = 250;
    let text = |id: i64| vec![id as u8; 9_000 + id as usize];
    for lock in [Lock::None, Lock::Share] {
        let world = World::new(21);
        let table = world.table("t", 0);
        world.run(async {
            let mut writer = world.begin(Isolation::RepeatableRead);
            for id in 1..=ROWS {
                // Off-page, so that much has to be read.
                let values = [Value::Int(id), Value::Int(id), Value::bytes(&text(id)).into_owned()];
                writer.insert(&table, &values).await.unwrap();
            }
            writer.commit(Durability::Sync).await.unwrap();
            world.db.store().flush_all().await.unwrap();
        });
        let mut reader = world.begin(Isolation::RepeatableRead);
        let mut rows = world.run(reader.scan(&table, &Range::all().lock(lock))).unwrap();
        let (mut seen, mut cut) = (Vec::new(), 0);
        loop {
            let mut next: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(rows.next());
            let mut polls = 0;
            // Each row is asked for until it comes within three polls; what it waits for goes on without it.
            let answer = loop {
                polls += 1;
                match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => break Some(answer.unwrap()),
                    Poll::Pending if polls == 1 + seen.len() % 3 => break None,
                    Poll::Pending => _ = world.environment.step(),
                }
            };
            drop(next);
            match answer {
                Some(Some(row)) => seen.push(row),
                Some(None) => break,
                None => {
                    cut += 1;
                    world.environment.run_until_idle();
                }
            }
        }
        assert!(cut > 50, "only {cut} reads were cut");
        let wanted: Vec<_> = (1..=ROWS)
            .map(|id| vec![Value::Int(id), Value::Int(id), Value::bytes(&text(id)).into_owned()])
            .collect();
        assert!(seen == wanted, "{lock:?}: {:?}", seen.iter().map(|row| &row[0]).collect::<Vec<_>>());
    }
}

/// Rows that are inserted together and cut, wherever that is, are undone before anything else is done.
#[test]
fn rows_inserted_together_and_cut_are_undone_together() {
    let world = World::new(22);
    let table = world.table("t", 0);
    let row = |id: i64| [Value::Int(id), Value::Int(id), Value::bytes(&vec![id as u8; 9_000]).into_owned()];
    let mut cut = 0;
    loop {
        let mut writer = world.begin(Isolation::RepeatableRead);
        world.run(writer.insert(&table, &row(1))).unwrap();
        let rows: Vec<_> = (2..30).map(row).collect();
        let mut insert: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(writer.insert_all(&table, &rows));
        let mut polls = 0;
        let done = loop {
            polls += 1;
            match insert.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => break Some(answer.unwrap()),
                Poll::Pending if polls > cut => break None,
                Poll::Pending => _ = world.environment.step(),
            }
        };
        drop(insert);
        world.environment.run_until_idle();
        if done.is_none() {
            assert!(world.run(writer.get(&table, &[Value::Int(2)], Lock::None)).unwrap().is_none());
        }
        world.run(writer.insert(&table, &row(40))).unwrap();
        world.run(writer.commit(Durability::Sync)).unwrap();
        let ids: Vec<i64> = world.run(async {
            let (mut reader, mut ids) = (world.begin(Isolation::RepeatableRead), Vec::new());
            let mut rows = reader.scan(&table, &Range::all()).await.unwrap();
            while let Some(row) = rows.next().await.unwrap() {
                let Value::Int(id) = row[0] else { panic!("{row:?}") };
                ids.push(id);
            }
            ids
        });
        let mut wanted = if done.is_some() { (1..30).collect() } else { vec![1] };
        wanted.push(40);
        assert_eq!(ids, wanted, "cut after {cut} polls");
        if done.is_some() {
            break;
        }
        world.run(async {
            writer.begin();
            for id in [1, 40] {
                writer.delete(&table, &[Value::Int(id)]).await.unwrap();
            }
            writer.commit(Durability::Sync).await.unwrap();
        });
        cut += 1;
    }
    assert!(cut > 4, "cut {cut} times");
}
