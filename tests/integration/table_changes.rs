//! Tables whose columns and keys change while others use them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Access, Error, Options, Range, Rebuild, Table, TransactionError};

const ROWS: i64 = 700;
const PATIENCE: Duration = Duration::from_secs(5);

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    Database::open_in(shared, options).await.unwrap()
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("n", ColumnType::int()),
        ColumnDef::new("filler", ColumnType::VarBinary { bytes: 5000 }).nullable(),
    ])
    .primary_key(&["id"])
    .key("by_n", KeyKind::Secondary, &["n"])
}

/// Some fillers do not fit a page, some are NULL.
fn row(id: i64) -> [Value<'static>; 3] {
    let filler = match id % 50 {
        0 => Value::Null,
        7 => Value::Bytes(vec![id as u8; 4500].into()),
        _ => Value::Bytes(vec![id as u8; 60].into()),
    };
    [Value::Int(id), Value::Int((ROWS - id) * 3), filler]
}

async fn with_rows(environment: &Arc<SimulatedEnvironment>) -> Database {
    let db = open(environment).await;
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "t", table_def()).await.unwrap();
    let (mut transaction, table) = (db.transaction(), db.table("test", "t").unwrap());
    transaction.begin();
    for id in 0..ROWS {
        transaction.insert(&table, &row(id)).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db
}

async fn rows_in(
    transaction: &mut Transaction,
    table: &Arc<Table>,
) -> Result<Vec<Vec<Value<'static>>>, Error> {
    let mut rows = Vec::new();
    let all = Range::all();
    let read = transaction.for_each(table, &all, |row| {
        rows.push(row.iter().map(|value| value.clone().into_owned()).collect());
        true
    });
    read.await?;
    Ok(rows)
}

async fn all_rows(db: &Database) -> Vec<Vec<Value<'static>>> {
    let table = db.table("test", "t").unwrap();
    rows_in(&mut db.transaction(), &table).await.unwrap()
}

async fn is_sound(db: &Database) {
    let report = db.check_table("test", "t").await.unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.rows, ROWS as u64);
}

fn files(environment: &SimulatedEnvironment) -> Vec<String> {
    let path = std::path::Path::new("/data/test");
    let files = disk::Storage::list(&**environment.disk(), path).unwrap();
    files.into_iter().map(|file| file.name).collect()
}

fn more() -> ColumnDef {
    ColumnDef::new("more", ColumnType::int())
}

#[test]
fn a_column_comes_and_goes_and_rows_keep_the_others() {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        db.add_column("test", "t", more(), &Value::Int(5)).await.unwrap();
        is_sound(&db).await;
        for (id, found) in all_rows(&db).await.into_iter().enumerate() {
            let mut expected = row(id as i64).to_vec();
            expected.push(Value::Int(5));
            assert_eq!(found, expected);
        }
        db.rename_column("test", "t", "more", "less").await.unwrap();
        assert!(db.table("test", "t").unwrap().def.column_number("less").is_some());
        db.drop_column("test", "t", "n").await.unwrap();
        is_sound(&db).await;
        let table = db.table("test", "t").unwrap();
        assert_eq!((table.def.columns.len(), table.def.secondary_keys().len()), (3, 0));
        for (id, found) in all_rows(&db).await.into_iter().enumerate() {
            let [id, _, filler] = row(id as i64);
            assert_eq!(found, [id, filler, Value::Int(5)]);
        }
        let taken = db.rename_column("test", "t", "id", "FILLER").await.unwrap_err();
        assert!(matches!(taken, Error::Schema(_)), "{taken}");
        assert_eq!(files(&environment), ["t.ibd"]);
    });
    environment.shutdown();
}

#[test]
fn a_rebuilt_table_survives_the_crash_right_behind_it() {
    let environment = SimulatedEnvironment::new(3);
    let (before, disk) = environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        db.add_column("test", "t", more(), &Value::Int(5)).await.unwrap();
        (all_rows(&db).await, environment.disk().crash(1))
    });
    environment.shutdown();
    let again = SimulatedEnvironment::with_storage(4, disk);
    again.run_until_complete(async {
        let db = open(&again).await;
        assert_eq!(all_rows(&db).await, before);
        is_sound(&db).await;
        assert_eq!(files(&again), ["t.ibd"]);
        db.close().await.unwrap();
    });
    again.shutdown();
}

/// The new key is the other way round, so that rows are sorted, long values among them.
#[test]
fn rows_are_brought_into_the_order_of_another_primary_key() {
    let environment = SimulatedEnvironment::new(5);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let change = db.definitions().change_table("test", "t").await.unwrap();
        let mut def = change.table().def.clone();
        def.keys.remove(0);
        let part = KeyPart::whole(1);
        let name = "PRIMARY".to_owned();
        let key = KeyDef::new(name, KeyKind::Primary, vec![part]);
        def.keys.insert(0, key);
        let origins = vec![Some(0), Some(1), Some(2)];
        let plan = Rebuild { def, origins: origins.clone(), copied: origins, next_number: 1 };
        let rebuilt = change.rebuild(plan, |row, new| {
            for field in row {
                match field {
                    Some(bytes) => new.push_bytes(bytes),
                    None => new.push_null(),
                }
            }
            Ok::<(), Error>(())
        });
        assert_eq!(rebuilt.await.unwrap(), ROWS as u64);
        is_sound(&db).await;
        let expected: Vec<_> = (0..ROWS).rev().map(|id| row(id).to_vec()).collect();
        assert_eq!(all_rows(&db).await, expected);
    });
    environment.shutdown();
}

/// A key that is left with too few columns refuses the change, and nothing has happened.
#[test]
fn rows_that_would_be_the_same_refuse_the_change() {
    let environment = SimulatedEnvironment::new(6);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let def = TableDef::new(vec![
            ColumnDef::new("a", ColumnType::int()),
            ColumnDef::new("b", ColumnType::int()),
            ColumnDef::new("c", ColumnType::int()),
        ]);
        db.create_table("test", "t", def.primary_key(&["a", "b"])).await.unwrap();
        let (mut transaction, table) = (db.begin(), db.table("test", "t").unwrap());
        for b in 0..3 {
            transaction.insert(&table, &[Value::Int(1), Value::Int(b), Value::Int(b)]).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        let before = all_rows(&db).await;
        let refused = db.drop_column("test", "t", "b").await.unwrap_err();
        let Error::Transaction(TransactionError::DuplicateKey { index, .. }) = refused else {
            panic!("{refused}");
        };
        assert_eq!(index, "PRIMARY");
        assert_eq!(all_rows(&db).await, before);
        assert_eq!(files(&environment), ["t.ibd"]);
        // A conversion that refuses a row does the same.
        let change = db.definitions().change_table("test", "t").await.unwrap();
        let none = vec![None; 3];
        let plan = Rebuild { def: table.def.clone(), origins: none.clone(), copied: none, next_number: 1 };
        let refused = change.rebuild(plan, |_, _| Err::<(), _>(Error::NullValue("c".to_owned()))).await;
        assert!(matches!(refused, Err(Error::NullValue(_))), "{refused:?}");
        assert_eq!(all_rows(&db).await, before);
        assert_eq!(files(&environment), ["t.ibd"]);
    });
    environment.shutdown();
}

/// Polls a future until it waits for the `polls`-th time.
async fn some_way<F: Future + Unpin>(future: &mut F, polls: usize) -> Option<F::Output> {
    let mut left = polls;
    std::future::poll_fn(move |context| {
        left -= 1;
        match pin!(&mut *future).poll(context) {
            Poll::Pending if left == 0 => Poll::Ready(None),
            answer => answer.map(Some),
        }
    })
    .await
}

#[test]
fn others_read_but_do_not_write_while_rows_are_copied() {
    let environment = SimulatedEnvironment::new(7);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let expected = all_rows(&db).await;
        let old = db.table("test", "t").unwrap();
        let snapshot = db.snapshot();
        let mut change = Box::pin(db.add_column("test", "t", more(), &Value::Int(5)));
        assert!(some_way(&mut change, 3).await.is_none(), "the copy is done at once");
        // As SELECT does; the typed calls use a table also to change it.
        let mut reader = db.begin();
        assert!(reader.use_table_for(&old, Access::Read).is_ok(), "a reader has to wait");
        assert_eq!(count_of(&mut reader, &old).await, expected.len());
        let blocked = db.definitions().timeout(Duration::ZERO).change_table("test", "t").await;
        assert!(matches!(blocked, Err(Error::MetadataLockTimeout)), "two changes at once");
        let mut writer = db.begin();
        let insert = writer.open_table("test", "t", Duration::ZERO).await;
        assert!(matches!(insert, Err(Error::MetadataLockTimeout)), "a writer does not wait");
        // The change waits for the reader.
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let ended = done.clone();
        let end = async move {
            let outcome = change.await;
            ended.store(true, std::sync::atomic::Ordering::SeqCst);
            outcome
        };
        let clock = environment.clone();
        let release = async {
            clock.sleep(PATIENCE).await;
            assert!(!done.load(std::sync::atomic::Ordering::SeqCst), "a reader was not waited for");
            reader.commit(Durability::Sync).await.unwrap();
        };
        let (outcome, ()) = both(end, release).await;
        outcome.unwrap();
        let table = db.table("test", "t").unwrap();
        assert_eq!(table.def.columns.len(), 4);
        // A view from before cannot see this table.
        let mut late = db.begin_in(&snapshot).unwrap();
        let changed = rows_in(&mut late, &table).await.unwrap_err();
        let is_changed = |error: &Error| matches!(error, Error::Transaction(TransactionError::TableChanged));
        assert!(is_changed(&changed), "{changed}");
        late.rollback().await.unwrap();
        is_sound(&db).await;
    });
    environment.shutdown();
}

/// How many rows a transaction sees that uses the table only to read.
async fn count_of(transaction: &mut Transaction, table: &Arc<Table>) -> usize {
    use untorn::engine::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex};
    let (rows, all) = (table.rows.clone(), KeyRange::all());
    let mut scan =
        Scan::new(rows, ScanIndex::Clustered, all, Direction::Forward, ReadMode::Consistent, false);
    let mut count = 0;
    scan.run(transaction.engine_mut(), &mut |_| {
        count += 1;
        Control::Continue
    })
    .await
    .unwrap();
    count
}

/// Drives two futures to their ends.
async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut left, mut right) = (None, None);
    std::future::poll_fn(move |context| {
        if left.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            left = Some(output);
        }
        if right.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            right = Some(output);
        }
        match (left.take(), right.take()) {
            (Some(left), Some(right)) => Poll::Ready((left, right)),
            (one, other) => {
                (left, right) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

#[test]
fn two_changes_of_a_table_take_turns() {
    let environment = SimulatedEnvironment::new(8);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let other = ColumnDef::new("other", ColumnType::int());
        let (value, zero) = (Value::Int(5), Value::Int(0));
        let first = db.add_column("test", "t", more(), &value);
        let second = db.add_column("test", "t", other, &zero);
        let (first, second) = both(first, second).await;
        first.unwrap();
        second.unwrap();
        assert_eq!(db.table("test", "t").unwrap().def.columns.len(), 5);
        is_sound(&db).await;
    });
    environment.shutdown();
}

/// A kill of the session ends the copy, which leaves no trace.
#[test]
fn a_kill_ends_the_copy() {
    let environment = SimulatedEnvironment::new(9);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let before = all_rows(&db).await;
        let session = db.transaction();
        let slice = session.engine().slice().clone();
        let definitions = db.definitions().session(&session);
        let value = Value::Int(5);
        let mut change = Box::pin(definitions.add_column("test", "t", more(), &value));
        assert!(some_way(&mut change, 3).await.is_none(), "the copy is done at once");
        slice.stop();
        let killed = change.await.unwrap_err();
        assert!(matches!(killed, Error::Transaction(TransactionError::Killed)), "{killed}");
        slice.forget_stop();
        assert_eq!(all_rows(&db).await, before);
        assert_eq!(files(&environment), ["t.ibd"]);
        db.add_column("test", "t", more(), &Value::Int(5)).await.unwrap();
        is_sound(&db).await;
    });
    environment.shutdown();
}

/// A change that waits for somebody who uses the table hears of a kill, too.
#[test]
fn a_kill_ends_the_wait_for_others() {
    let environment = SimulatedEnvironment::new(10);
    environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let table = db.table("test", "t").unwrap();
        let mut holder = db.begin();
        holder.update(&table, &[Value::Int(1)], &[("n", Value::Int(5))]).await.unwrap();
        let session = db.transaction();
        let slice = session.engine().slice().clone();
        let definitions = db.definitions().session(&session);
        let mut change = Box::pin(definitions.rename_column("test", "t", "n", "m"));
        assert!(some_way(&mut change, 1).await.is_none(), "nobody is waited for");
        slice.stop();
        let killed = change.await.unwrap_err();
        assert!(matches!(killed, Error::Transaction(TransactionError::Killed)), "{killed}");
        assert!(environment.now() < PATIENCE, "it waited for its time to be up");
        holder.rollback().await.unwrap();
    });
    environment.shutdown();
}
