//! Prepared transactions as an embedder meets them.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment, Storage};
use untorn::asynchronous::Patience;
use untorn::changes::ChangeFeedOptions;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Database, Durability, Error, Options, TransactionError, Xid};

fn xid(name: &str) -> Xid {
    Xid::new(1, name.as_bytes(), b"branch").unwrap()
}

/// A directory of its own, removed at the end.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new() -> Directory {
        Directory(untorn::doc_test_directory())
    }

    fn options(&self) -> Options {
        Options::new(&self.0).buffer_pool_bytes(16 << 20)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn a_name_is_one_transactions_until_it_has_ended() {
    let db = Database::in_memory().unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let mut first = db.begin();
    map.put(&mut first, 1, 1).unwrap();
    first.prepare(&xid("a")).unwrap();
    // It is the parts that name it, whatever the format.
    let same = Xid::new(2, b"a", b"branch").unwrap();
    for taken in [&xid("a"), &same] {
        let refused = db.begin().prepare(taken);
        assert!(matches!(&refused, Err(Error::XidInUse(name)) if name == taken), "{refused:?}");
    }
    assert!(matches!(db.commit_prepared(&same), Err(Error::UnknownXid(_))));
    assert!(matches!(db.commit_prepared(&xid("b")), Err(Error::UnknownXid(_))));
    db.commit_prepared(&xid("a")).unwrap();
    assert!(matches!(db.rollback_prepared(&xid("a")), Err(Error::UnknownXid(_))));
    let mut second = db.begin();
    map.put(&mut second, 2, 2).unwrap();
    second.prepare(&xid("a")).unwrap();
    db.rollback_prepared(&xid("a")).unwrap();
    let mut reader = db.begin();
    assert_eq!([1, 2].map(|key| map.get(&mut reader, key).unwrap()), [Some(1), None]);
    assert!(db.prepared_transactions().is_empty());
}

/// Wherever the future is dropped, the transaction goes on, or is prepared.
#[test]
fn a_prepare_that_is_dropped_has_not_begun_or_is_done() {
    let db = Database::in_memory().unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let asynchronous = db.asynchronous();
    let table = db.table("untorn", "map").unwrap();
    let mut seen = [0, 0];
    for polls in 0..40 {
        let mut transaction = asynchronous.begin();
        let row = [Value::UInt(1000 + polls), Value::UInt(7)];
        untorn::asynchronous::block_on(transaction.insert(&table, &row)).unwrap();
        let name = xid(&polls.to_string());
        let mut prepare = Box::pin(transaction.prepare(&name, Durability::Sync));
        let mut context = Context::from_waker(Waker::noop());
        let ended = (0..polls).any(|_| matches!(prepare.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
        drop(prepare);
        let is_prepared = db.prepared_transactions().contains(&name);
        assert!(is_prepared || !ended);
        assert_eq!(transaction.is_active(), !is_prepared);
        seen[usize::from(is_prepared)] += 1;
        if is_prepared {
            db.commit_prepared(&name).unwrap();
        } else {
            untorn::asynchronous::block_on(transaction.commit(Durability::Sync)).unwrap();
        }
        assert_eq!(map.get(&mut db.begin(), 1000 + polls as u32).unwrap(), Some(7));
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// Who asks for one that is being ended hears how that has ended, and of nothing that may still be lost.
#[test]
fn a_name_is_unknown_when_its_end_is_durable() {
    let db = Database::in_memory().unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let asynchronous = db.asynchronous();
    let mut met = 0;
    for round in 0..40u32 {
        let name = xid(&round.to_string());
        let mut transaction = db.begin();
        map.put(&mut transaction, round, 1).unwrap();
        transaction.prepare(&name).unwrap();
        let commits = round % 2 == 0;
        let mut end: std::pin::Pin<Box<dyn Future<Output = untorn::Result<()>>>> = match commits {
            true => Box::pin(asynchronous.commit_prepared(&name, Durability::Sync)),
            false => Box::pin(asynchronous.rollback_prepared(&name, Durability::Sync)),
        };
        let mut context = Context::from_waker(Waker::noop());
        if end.as_mut().poll(&mut context).is_ready() {
            continue;
        }
        met += 1;
        let mut another = Box::pin(asynchronous.commit_prepared(&name, Durability::Sync));
        assert!(another.as_mut().poll(&mut context).is_pending(), "{round}");
        assert!(db.prepared_transactions().is_empty());
        drop(end);
        let value = || map.get(&mut db.begin(), round).unwrap();
        match untorn::asynchronous::block_on(another) {
            // The first had not begun.
            Ok(()) => assert_eq!(value(), Some(1)),
            Err(Error::UnknownXid(_)) => assert_eq!(value(), commits.then_some(1)),
            Err(other) => panic!("{other}"),
        }
        assert!(db.prepared_transactions().is_empty());
    }
    assert!(met > 0);
}

/// Who asks for one that another is ending waits no longer than for a row lock, and not when it is killed.
#[test]
fn a_wait_for_one_that_is_being_ended_has_an_end() {
    let environment = SimulatedEnvironment::new(3);
    let shared: Arc<dyn Environment> = environment.clone();
    let timeout = Duration::from_secs(7);
    environment.run_until_complete(async {
        let options = Options::new("/data").buffer_pool_bytes(8 << 20).lock_wait_timeout(timeout);
        let db = untorn::asynchronous::Database::open_in(shared, options).await.unwrap();
        let map = db.key_value::<u32, u32>("map").await.unwrap();
        let mut transaction = db.begin();
        map.put(&mut transaction, 1, 1).await.unwrap();
        transaction.prepare(&xid("a"), Durability::Sync).await.unwrap();
        let name = xid("a");
        let mut end = Box::pin(db.commit_prepared(&name, Durability::Sync));
        assert!(end.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let begun = environment.now();
        let late = db.rollback_prepared(&xid("a"), Durability::Sync).await;
        assert!(matches!(late, Err(Error::Transaction(TransactionError::LockWaitTimeout))), "{late:?}");
        assert!(environment.now() - begun >= timeout);
        let slice = db.begin().engine().slice().clone();
        slice.stop();
        let patience = Patience { timeout, slice: Some(slice) };
        let begun = environment.now();
        let killed = db.commit_prepared_for(&xid("a"), Durability::Sync, patience).await;
        assert!(matches!(killed, Err(Error::Transaction(TransactionError::Killed))), "{killed:?}");
        assert!(environment.now() - begun < timeout);
        // As long as it takes: an end that is beyond the clock's is no end.
        let patience = Patience { timeout: Duration::MAX, slice: None };
        let mut patient = Box::pin(db.rollback_prepared_for(&name, Durability::Sync, patience));
        let woken = std::future::poll_fn(|context| std::task::Poll::Ready(patient.as_mut().poll(context)));
        assert!(woken.await.is_pending());
        end.await.unwrap();
        let unknown = patient.await;
        assert!(matches!(unknown, Err(Error::UnknownXid(_))), "{unknown:?}");
        assert_eq!(map.get(&mut db.begin(), 1).await.unwrap(), Some(1));
        db.close().await.unwrap();
    });
    environment.shutdown();
}

/// When the log fails at the very end the transaction is prepared, as far as anybody can tell.
#[test]
fn a_prepare_whose_sync_fails_may_be_prepared() {
    let environment = SimulatedEnvironment::new(1);
    let shared: Arc<dyn Environment> = environment.clone();
    let options = || Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20);
    let database = environment.run_until_complete(async {
        let database = untorn::asynchronous::Database::open_in(shared, options()).await.unwrap();
        database.create_database("d", Collation::Utf8mb4Bin).await.unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        let table = database.create_table("d", "t", def).await.unwrap();
        let mut transaction = database.transaction();
        transaction.begin();
        transaction.insert(&table, &[Value::Int(1)]).await.unwrap();
        let disk = environment.disk();
        disk.fail_sync(disk.counters().syncs);
        let failed = transaction.prepare(&xid("a"), Durability::Sync).await;
        assert!(failed.is_err(), "{failed:?}");
        assert!(!transaction.is_active());
        assert_eq!(database.prepared_transactions(), [xid("a")]);
        // Nobody is told that it is unknown, nor that it is not.
        let ended = database.rollback_prepared(&xid("a"), Durability::Sync).await;
        assert!(!matches!(ended, Ok(()) | Err(Error::UnknownXid(_))), "{ended:?}");
        let unknown = database.commit_prepared(&xid("b"), Durability::Sync).await;
        assert!(!matches!(unknown, Ok(()) | Err(Error::UnknownXid(_))), "{unknown:?}");
        database
    });
    environment.shutdown();
    drop(database);
}

#[test]
fn preparing_leaves_half_of_the_undo_slots_to_others() {
    let db = Database::in_memory().unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let asynchronous = db.asynchronous();
    let name = |number: u32| Xid::new(1, &number.to_be_bytes(), b"").unwrap();
    let mut taken: Vec<_> =
        (0..1 << 15).map(|number| asynchronous.reserve_xid(&name(number)).unwrap()).collect();
    let mut transaction = asynchronous.begin();
    let table = db.table("untorn", "map").unwrap();
    let row = [Value::UInt(1), Value::UInt(7)];
    untorn::asynchronous::block_on(transaction.insert(&table, &row)).unwrap();
    let refused = untorn::asynchronous::block_on(transaction.prepare(&xid("a"), Durability::Sync));
    let too_many = matches!(refused, Err(Error::Transaction(TransactionError::TooManyTransactions(_))));
    assert!(too_many && transaction.is_active(), "{refused:?}");
    taken.pop();
    untorn::asynchronous::block_on(transaction.prepare(&xid("a"), Durability::Sync)).unwrap();
    db.commit_prepared(&xid("a")).unwrap();
    assert_eq!(map.get(&mut db.begin(), 1).unwrap(), Some(7));
}

#[test]
fn a_change_feed_begins_after_what_is_prepared_has_ended() {
    let directory = Directory::new();
    let db = Database::open(directory.options().lock_wait_timeout(Duration::from_millis(50))).unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let mut transaction = db.begin();
    map.put(&mut transaction, 1, 1).unwrap();
    transaction.prepare(&xid("a")).unwrap();
    let refused = db.change_feed(ChangeFeedOptions::new()).map(drop);
    let waited = matches!(refused, Err(Error::Transaction(TransactionError::LockWaitTimeout)));
    assert!(waited, "{refused:?}");
    db.commit_prepared(&xid("a")).unwrap();
    // One that has changed nothing is nobody's concern.
    db.begin().prepare(&xid("empty")).unwrap();
    let (_, mut feed) = db.change_feed(ChangeFeedOptions::new()).unwrap();
    // One that knows the feed is told like any other.
    let mut transaction = db.begin();
    map.put(&mut transaction, 2, 2).unwrap();
    transaction.prepare(&xid("b")).unwrap();
    assert!(!feed.is_waiting());
    db.commit_prepared(&xid("b")).unwrap();
    assert!(feed.next().unwrap().is_ok());
    db.close().unwrap();
}

#[test]
fn what_changed_very_many_tables_holds_all_of_them_after_a_start() {
    const TABLES: usize = 205;
    let directory = Directory::new();
    let db = Database::open(directory.options()).unwrap();
    db.create_database("many", Collation::Utf8mb4Bin).unwrap();
    let def = || TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
    let tables: Vec<_> =
        (0..TABLES).map(|number| db.create_table("many", &format!("t{number}"), def()).unwrap()).collect();
    let mut transaction = db.begin();
    for table in &tables {
        transaction.insert(table, &[Value::Int(1)]).unwrap();
    }
    transaction.prepare(&xid("a")).unwrap();
    db.close().unwrap();
    drop((tables, db));
    let db = Database::open(directory.options()).unwrap();
    let quick = || db.definitions().timeout(Duration::from_millis(1));
    for number in [0, 100, TABLES - 1] {
        let refused = quick().drop_table("many", &format!("t{number}"));
        assert!(matches!(refused, Err(Error::MetadataLockTimeout)), "{refused:?}");
    }
    db.rollback_prepared(&xid("a")).unwrap();
    for number in 0..TABLES {
        let table = db.table("many", &format!("t{number}")).unwrap();
        assert_eq!(db.begin().get(&table, &[Value::Int(1)]).unwrap(), None);
    }
    quick().drop_table("many", "t0").unwrap();
    db.close().unwrap();
}

#[test]
fn forced_recovery_lists_them_and_leaves_them() {
    let directory = Directory::new();
    let db = Database::open(directory.options()).unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    let mut transaction = db.begin();
    map.put(&mut transaction, 1, 1).unwrap();
    transaction.prepare(&xid("a")).unwrap();
    drop(map);
    db.close().unwrap();
    assert!(matches!(db.commit_prepared(&xid("a")), Err(Error::Closed)));
    drop(db);
    for level in [3, 4] {
        let db = Database::open(directory.options().force_recovery(level)).unwrap();
        assert_eq!(db.prepared_transactions(), [xid("a")]);
        for refused in [db.commit_prepared(&xid("a")), db.rollback_prepared(&xid("a"))] {
            assert!(matches!(refused, Err(Error::ForcedRecovery(of)) if of == level), "{refused:?}");
        }
        db.close().unwrap();
    }
    let db = Database::open(directory.options()).unwrap();
    db.commit_prepared(&xid("a")).unwrap();
    let map = db.key_value::<u32, u32>("map").unwrap();
    assert_eq!(map.get(&mut db.begin(), 1).unwrap(), Some(1));
    db.close().unwrap();
}
