//! Futures of statements that change definitions, dropped at any await: done or not done, in memory and on
//! disk alike, and under their locks to the end.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use untorn::asynchronous::{Database, TableLockRequest, Transaction};
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Access, Error, Options, Range};

const PATIENCE: Duration = Duration::from_secs(1);
const ROWS: usize = 60;

/// Polls `future` at most `polls` times, and drops it where it waits then.
async fn for_polls<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Pending if left == 0 => Poll::Ready(None),
            answer => answer.map(Some),
        }
    })
    .await
}

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
        ColumnDef::new("filler", ColumnType::VarBinary { bytes: 500 }),
    ])
    .primary_key(&["id"])
    .key("old", KeyKind::Secondary, &["n"])
}

#[derive(Clone, Copy, Debug)]
enum Statement {
    Create,
    Drop,
    Truncate,
    Rename,
    Index,
    DropIndex,
    Discard,
    CreateDatabase,
    DropDatabase,
    SwapIndexes,
    DropColumn,
    RenameColumn,
    Check,
    Export,
}

async fn run(statement: Statement, db: &Database, session: Option<&Transaction>) -> Result<(), Error> {
    match statement {
        Statement::Create => db.create_table("test", "new", table_def()).await.map(drop),
        Statement::Drop => db.definitions().session(session).drop_table("test", "t").await,
        Statement::Truncate => db.definitions().session(session).truncate_table("test", "t").await,
        Statement::Rename => {
            db.definitions().session(session).rename_table(("test", "t"), ("test", "new")).await
        }
        Statement::Index => {
            let parts = vec![KeyPart::whole(2)];
            let name = "extra".to_owned();
            let key = KeyDef::new(name, KeyKind::Secondary, parts);
            db.definitions().session(session).create_index("test", "t", key).await
        }
        Statement::DropIndex => db.definitions().session(session).drop_index("test", "t", "old").await,
        Statement::Discard => db.definitions().session(session).discard_tablespace("test", "t").await,
        Statement::CreateDatabase => db.create_database("new", Collation::Utf8mb4Bin).await,
        Statement::DropDatabase => {
            db.definitions().session(session).drop_database("test").await.map(|count| assert_eq!(count, 1))
        }
        Statement::SwapIndexes => {
            let parts = vec![KeyPart::whole(2)];
            let (first, second) = ("old".to_owned(), "new".to_owned());
            let key = |name| KeyDef::new(name, KeyKind::Secondary, parts.clone());
            let added = vec![key(first), key(second)];
            db.definitions().session(session).change_indexes("test", "t", added, &["old"]).await
        }
        Statement::DropColumn => db.definitions().session(session).drop_column("test", "t", "n").await,
        Statement::RenameColumn => {
            db.definitions().session(session).rename_column("test", "t", "filler", "more").await
        }
        Statement::Check => {
            let report = db.definitions().session(session).check_table("test", "t").await;
            report.map(|report| assert!(report.is_sound()))
        }
        Statement::Export => db.definitions().session(session).export_table("test", "t").await.map(drop),
    }
}

fn row(id: i64) -> [Value<'static>; 3] {
    [Value::Int(id), Value::Int(id % 7), Value::bytes(&[7; 400])]
}

async fn with_rows(environment: &Arc<SimulatedEnvironment>) -> Database {
    let db = open(environment).await;
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "t", table_def()).await.unwrap();
    let (mut transaction, table) = (db.transaction(), db.table("test", "t").unwrap());
    transaction.begin();
    for id in 0..ROWS as i64 {
        transaction.insert(&table, &row(id)).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db
}

/// What there is: name, rows (none for a discarded table) and secondary indexes of each table, then the
/// databases.
async fn look(db: &Database) -> Vec<(String, Option<usize>, usize)> {
    let mut found = Vec::new();
    for table in db.tables("test") {
        if table.def.discarded {
            found.push((table.name.clone(), None, table.def.secondary_keys().len()));
            continue;
        }
        let report = db.check_table("test", &table.name).await.unwrap();
        assert!(report.is_sound(), "{}: {:?}", table.name, report.problems);
        let (mut transaction, mut rows) = (db.transaction(), 0);
        let (all, table) = (Range::all(), db.table("test", &table.name).unwrap());
        let count = transaction.for_each(&table, &all, |_| {
            rows += 1;
            true
        });
        count.await.unwrap();
        assert_eq!(report.rows, rows as u64);
        found.push((table.name.clone(), Some(rows), table.def.secondary_keys().len()));
    }
    found.extend(db.databases().into_iter().map(|name| (format!("{name}/"), None, 0)));
    found
}

fn after(statement: Statement) -> Vec<(String, Option<usize>, usize)> {
    let table = |name: &str, rows, indexes| (name.to_owned(), rows, indexes);
    let mut tables = match statement {
        Statement::Create => vec![table("new", Some(0), 1), table("t", Some(ROWS), 1)],
        Statement::Drop => vec![],
        Statement::Truncate => vec![table("t", Some(0), 1)],
        Statement::Rename => vec![table("new", Some(ROWS), 1)],
        Statement::Index => vec![table("t", Some(ROWS), 2)],
        Statement::DropIndex => vec![table("t", Some(ROWS), 0)],
        Statement::Discard => vec![table("t", None, 1)],
        Statement::SwapIndexes => vec![table("t", Some(ROWS), 2)],
        Statement::DropColumn => vec![table("t", Some(ROWS), 0)],
        Statement::CreateDatabase => {
            return vec![table("t", Some(ROWS), 1), table("new/", None, 0), table("test/", None, 0)];
        }
        Statement::DropDatabase => return vec![],
        Statement::RenameColumn | Statement::Check | Statement::Export => before(),
    };
    tables.retain(|(name, ..)| name != "test/");
    tables.push(table("test/", None, 0));
    tables
}

fn before() -> Vec<(String, Option<usize>, usize)> {
    vec![("t".to_owned(), Some(ROWS), 1), ("test/".to_owned(), None, 0)]
}

#[test]
fn every_definition_may_be_dropped_at_any_await() {
    use Statement::*;
    let with_the_table =
        [Create, Drop, Truncate, Rename, Index, DropIndex, Discard, SwapIndexes, DropColumn, RenameColumn];
    for statement in with_the_table.into_iter().chain([CreateDatabase, DropDatabase, Check, Export]) {
        let before = before();
        let mut cut = 0;
        for polls in 1.. {
            let environment = SimulatedEnvironment::new(polls as u64);
            let (db, done) = environment.run_until_complete(async {
                let db = with_rows(&environment).await;
                let done = for_polls(run(statement, &db, None), polls).await;
                (db, done)
            });
            cut += usize::from(done.is_none());
            // What goes on without the future comes to its end.
            environment.run_until_idle();
            environment.run_until_complete(async {
                // Whatever it has become, the same names and rows are there for everybody.
                let found = look(&db).await;
                assert!(
                    found == before || found == after(statement),
                    "{statement:?}, {polls} polls: {found:?}"
                );
                if let Some(result) = &done {
                    assert!(result.is_ok(), "{statement:?}: {result:?}");
                    assert_eq!(found, after(statement));
                }
                db.close().await.unwrap();
            });
            drop(db);
            environment.run_until_idle();
            // The directory agrees: it opens, and has the one or the other.
            environment.run_until_complete(async {
                let db = open(&environment).await;
                let found = look(&db).await;
                assert!(
                    found == before || found == after(statement),
                    "{statement:?}, {polls} polls, opened again: {found:?}"
                );
                db.close().await.unwrap();
            });
            if done.is_some() {
                break;
            }
        }
        // Those two do not wait for a disk when all pages are in memory.
        assert!(cut > 0 || matches!(statement, Check | Export), "{statement:?} was never cut");
    }
}

/// While it waits for those who use the table, a change that is dropped has done nothing, and is in nobody's
/// way afterwards.
#[test]
fn a_definition_that_waits_is_dropped_without_a_trace() {
    use Statement::*;
    for statement in [
        Drop,
        Truncate,
        Rename,
        Index,
        DropIndex,
        SwapIndexes,
        DropColumn,
        RenameColumn,
        Discard,
        DropDatabase,
        Check,
        Export,
    ] {
        let environment = SimulatedEnvironment::new(1);
        environment.run_until_complete(async {
            let db = with_rows(&environment).await;
            let mut user = db.begin();
            user.open_table("test", "t", Duration::ZERO).await.unwrap();
            let done = for_polls(run(statement, &db, None), 1).await;
            assert!(done.is_none(), "{statement:?} did not wait: {done:?}");
            let mut another = db.begin();
            another.open_table("test", "t", Duration::ZERO).await.unwrap();
            another.commit(Durability::Sync).await.unwrap();
            user.commit(Durability::Sync).await.unwrap();
            assert_eq!(look(&db).await, before(), "{statement:?}");
            let at_once = db.definitions().timeout(Duration::ZERO);
            assert_eq!(at_once.drop_database("test").await.unwrap(), 1, "{statement:?}");
            db.close().await.unwrap();
        });
        environment.shutdown();
    }
}

/// Who works on the table while a statement that was dropped comes to its end.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    /// Another session; the one that had LOCK TABLES … WRITE is gone.
    Another,
    /// The session that has LOCK TABLES … WRITE.
    Holder,
    /// The session, whose transaction used the table before.
    User,
}

/// Places in the background part of a statement at which others come.
const SEEDS: u64 = 6;

/// Inserts a few rows into the table, whatever its name has become. The ids of those that were acknowledged.
async fn insert_some(db: &Database, session: &mut Transaction) -> Vec<usize> {
    let mut acknowledged = Vec::new();
    for id in ROWS..ROWS + 4 {
        let Some(table) = db.tables("test").pop() else { break };
        if !session.is_active() {
            session.begin();
        }
        let mut values = row(id as i64).to_vec();
        if table.def.columns.len() == 2 {
            values.remove(1);
        }
        match session.insert(&table, &values).await {
            Ok(_) => acknowledged.push(id),
            Err(Error::NoSuchTable(..) | Error::TablespaceDiscarded(..)) => {}
            Err(error) => panic!("{error}"),
        }
        session.commit(Durability::Sync).await.unwrap();
    }
    acknowledged
}

/// What the dropped statement still does is done under its locks: nobody comes between, the session itself
/// included.
#[test]
fn a_dropped_definition_keeps_its_locks_to_its_end() {
    use Statement::{Discard, Drop, DropColumn, DropIndex, Index, Rename, Truncate};
    for meanwhile in [Meanwhile::Another, Meanwhile::Holder, Meanwhile::User] {
        for statement in [Drop, Truncate, Rename, Index, DropIndex, Discard, DropColumn] {
            let seeds =
                (1..).map(|polls| (0..SEEDS).filter(move |seed| !ends(meanwhile, statement, polls, *seed)));
            let cut: usize = seeds.map(Iterator::count).take_while(|cut| *cut > 0).sum();
            assert!(cut > 0, "{meanwhile:?}, {statement:?} was never cut");
        }
    }
}

/// Drops the statement after `polls` polls while others are at work on the table. Whether it had ended
/// before.
fn ends(meanwhile: Meanwhile, statement: Statement, polls: usize, seed: u64) -> bool {
    let what = format!("{meanwhile:?}, {statement:?}, {polls} polls, seed {seed}");
    let environment = SimulatedEnvironment::new(seed);
    let (db, done, acknowledged) = environment.run_until_complete(async {
        let db = with_rows(&environment).await;
        let mut session = db.transaction();
        let table = db.table("test", "t").unwrap();
        match meanwhile {
            Meanwhile::User => {
                session.begin();
                session.open_table("test", "t", PATIENCE).await.unwrap();
            }
            Meanwhile::Another | Meanwhile::Holder => {
                let lock = TableLockRequest::new(&session, &table, Access::Write).grant();
                session.hold_table(lock.ok().unwrap());
            }
        }
        let done = for_polls(run(statement, &db, Some(&session)), polls).await;
        if let Meanwhile::Another = meanwhile {
            session = db.transaction();
        }
        environment.sleep(Duration::from_micros(environment.random_u64() % 400)).await;
        let acknowledged = insert_some(&db, &mut session).await;
        (db, done, acknowledged)
    });
    environment.run_until_idle();
    environment.run_until_complete(async {
        let found = look(&db).await;
        let rows = found.first().and_then(|(_, rows, _)| *rows).unwrap_or(0);
        let before = rows.checked_sub(acknowledged.len());
        assert!(
            before.is_some_and(|before| [0, ROWS].contains(&before)),
            "{what}: {acknowledged:?} were acknowledged, there is {found:?}"
        );
        db.close().await.unwrap();
    });
    done.is_some()
}

/// A session with rows that it has changed gives nobody the table, itself included, to change what it is: it
/// would undo them with the definition that it knew. It is told at once, whether it uses the table or holds
/// it.
#[test]
fn a_session_with_uncommitted_changes_gets_no_table_for_itself() {
    use Statement::{Discard, Drop, DropIndex, Index, Rename, Truncate};
    for holds in [false, true] {
        for statement in [Drop, Truncate, Rename, Index, DropIndex, Discard] {
            let environment = SimulatedEnvironment::new(1);
            environment.run_until_complete(async {
                let db = with_rows(&environment).await;
                let mut session = db.transaction();
                let table = db.table("test", "t").unwrap();
                if holds {
                    let lock = TableLockRequest::new(&session, &table, Access::Write).grant();
                    session.hold_table(lock.ok().unwrap());
                }
                session.begin();
                session.open_table("test", "t", PATIENCE).await.unwrap();
                session.insert(&table, &row(1000)).await.unwrap();
                let started = environment.now();
                let outcome = run(statement, &db, Some(&session)).await;
                assert!(matches!(outcome, Err(Error::UncommittedChanges)), "{statement:?}: {outcome:?}");
                assert!(environment.now() - started < PATIENCE / 10, "{statement:?}, holds: {holds}");
                session.rollback().await.unwrap();
                run(statement, &db, Some(&session)).await.unwrap();
                drop(session);
                assert_eq!(look(&db).await, after(statement), "holds: {holds}");
                db.close().await.unwrap();
            });
            environment.shutdown();
        }
    }
}
