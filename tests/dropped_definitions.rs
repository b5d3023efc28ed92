//! Futures of statements that change definitions, dropped at any await: done or not done, in memory and on disk alike.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Database, Error, Options, Range};

const PATIENCE: Duration = Duration::from_secs(1);
const ROWS: usize = 60;

/// Polls `future` so many times at most.
async fn for_polls<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
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
}

/// The statement, and whether it has been done as far as `db` shows.
async fn run(statement: Statement, db: &Database) -> Result<(), Error> {
    match statement {
        Statement::Create => db.create_table("test", "new", table_def()).await,
        Statement::Drop => db.drop_table("test", "t", None, PATIENCE).await,
        Statement::Truncate => db.truncate_table("test", "t", None, PATIENCE).await,
        Statement::Rename => db.rename_table(("test", "t"), ("test", "new"), None, PATIENCE).await,
        Statement::Index => {
            let parts = vec![KeyPart { column: 2, prefix_chars: None }];
            let name = "extra".to_owned();
            let key = KeyDef { name, kind: KeyKind::Secondary, parts, id: 0, root: 0, born: 0 };
            db.create_index("test", "t", key, None, PATIENCE).await
        }
        Statement::DropIndex => db.drop_index("test", "t", "old", None, PATIENCE).await,
        Statement::Discard => db.discard_tablespace("test", "t", None, PATIENCE).await,
    }
}

/// What there is: name, rows (none for a discarded table) and secondary indexes of each table.
async fn look(db: &Database) -> Vec<(String, Option<usize>, usize)> {
    let mut found = Vec::new();
    for table in db.tables("test") {
        if table.def.discarded {
            found.push((table.name.clone(), None, table.def.secondary_keys().len()));
            continue;
        }
        let report = db.check_table("test", &table.name, None, PATIENCE).await.unwrap();
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
    found
}

fn after(statement: Statement) -> Vec<(String, Option<usize>, usize)> {
    let table = |name: &str, rows, indexes| (name.to_owned(), rows, indexes);
    match statement {
        Statement::Create => vec![table("new", Some(0), 1), table("t", Some(ROWS), 1)],
        Statement::Drop => vec![],
        Statement::Truncate => vec![table("t", Some(0), 1)],
        Statement::Rename => vec![table("new", Some(ROWS), 1)],
        Statement::Index => vec![table("t", Some(ROWS), 2)],
        Statement::DropIndex => vec![table("t", Some(ROWS), 0)],
        Statement::Discard => vec![table("t", None, 1)],
    }
}

#[test]
fn every_definition_may_be_dropped_at_any_await() {
    use Statement::{Create, Discard, Drop, DropIndex, Index, Rename, Truncate};
    for statement in [Create, Drop, Truncate, Rename, Index, DropIndex, Discard] {
        let before = vec![("t".to_owned(), Some(ROWS), 1)];
        let mut cut = 0;
        for polls in 1.. {
            let environment = SimulatedEnvironment::new(polls as u64);
            let (db, done) = environment.run_until_complete(async {
                let db = open(&environment).await;
                db.create_database("test", Collation::Utf8mb4Bin).unwrap();
                db.create_table("test", "t", table_def()).await.unwrap();
                let (mut transaction, table) = (db.transaction(), db.table("test", "t").unwrap());
                transaction.begin();
                for id in 0..ROWS as i64 {
                    let row = [Value::Int(id), Value::Int(id % 7), Value::bytes(&[7; 400])];
                    transaction.insert(&table, &row).await.unwrap();
                }
                transaction.commit(Durability::Sync).await.unwrap();
                let done = for_polls(run(statement, &db), polls).await;
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
        assert!(cut > 0, "{statement:?} was never cut");
    }
}
