//! Statements that change definitions, with every call to the disk failing once, and life going on afterwards.
//!
//! The campaign of `crates/torture` ends an actor at its first error. Here the same session goes on: what a failed
//! statement left behind must not take along what was done after it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, Fault, FaultKind, SimulatedEnvironment, SimulatedStorage};
use std::sync::Arc;
use std::time::Duration;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Database, Error, Options, Range};

const PATIENCE: Duration = Duration::from_secs(1);

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    options
}

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options()).await.unwrap()
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
    ])
    .primary_key(&["id"])
}

async fn insert(db: &Database, id: i64) -> Result<(), Error> {
    let table = db.table("test", "t")?;
    let mut transaction = db.transaction();
    transaction.begin();
    transaction.insert(&table, &[Value::Int(id), Value::Int(id * 7)]).await?;
    transaction.commit(Durability::Sync).await
}

async fn ids(db: &Database) -> Vec<i64> {
    let Ok(table) = db.table("test", "t") else { return Vec::new() };
    let mut ids = Vec::new();
    let mut transaction = db.transaction();
    let all = Range::all();
    let read = transaction.for_each(&table, &all, |row| {
        let Value::Int(id) = row[0] else { panic!("a row of other types: {row:?}") };
        ids.push(id);
        true
    });
    read.await.unwrap();
    ids
}

/// A directory with a table of ten rows.
fn prepared() -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).unwrap();
        db.create_table("test", "t", table_def()).await.unwrap();
        for id in 0..10 {
            insert(&db, id).await.unwrap();
        }
        db.close().await.unwrap();
    });
    environment.shutdown();
    environment.disk().crash(1)
}

#[derive(Clone, Copy, Debug)]
enum Statement {
    Create,
    Drop,
    Truncate,
    Index,
}

impl Statement {
    async fn run(self, db: &Database) -> Result<(), Error> {
        match self {
            Statement::Create => db.create_table("test", "u", table_def()).await,
            Statement::Drop => db.drop_table("test", "t", None, PATIENCE).await,
            Statement::Truncate => db.truncate_table("test", "t", None, PATIENCE).await,
            Statement::Index => {
                let parts = vec![KeyPart { column: 1, prefix_chars: None }];
                let name = "extra".to_owned();
                let key = KeyDef { name, kind: KeyKind::Secondary, parts, id: 0, root: 0, born: 0 };
                db.create_index("test", "t", key, None, PATIENCE).await
            }
        }
    }
}

/// Runs the statement with its `call`-th call failing, goes on, crashes and compares. Whether there was such a call.
fn with_a_failing_call(start: &SimulatedStorage, statement: Statement, call: u64, kind: FaultKind) -> bool {
    let environment = SimulatedEnvironment::with_storage(call, start.crash(1));
    let disk = environment.disk().clone();
    let what = format!("{statement:?} with call {call} failing ({kind:?})");
    let (reached, outcome, acknowledged) = environment.run_until_complete(async {
        let db = open(&environment).await;
        let first = disk.calls();
        disk.plan(Fault { call: first + call, kind });
        let outcome = statement.run(&db).await;
        let reached = disk.calls() > first + call;
        // Life goes on: the table is there again, or still, or nothing can be changed any more.
        if db.table("test", "t").is_err() {
            let _ = db.create_table("test", "t", table_def()).await;
        }
        let mut acknowledged = Vec::new();
        for id in 100..110 {
            if insert(&db, id).await.is_ok() {
                acknowledged.push(id);
            }
        }
        (reached, outcome, acknowledged)
    });
    for seed in 0..4 {
        let after = SimulatedEnvironment::with_storage(seed, disk.crash(seed));
        after.run_until_complete(async {
            let db = open(&after).await;
            let found = ids(&db).await;
            assert!(
                acknowledged.iter().all(|id| found.contains(id)),
                "{what} gave {outcome:?}; then {acknowledged:?} were acknowledged, and {found:?} are there"
            );
            for table in db.tables("test") {
                let report = db.check_table("test", &table.name, None, PATIENCE).await.unwrap();
                assert!(report.is_sound(), "{what} gave {outcome:?}; {:?}", report.problems);
            }
            let files = after.disk().clone();
            let listed = disk::Storage::list(&*files, std::path::Path::new("/data/test")).unwrap();
            assert_eq!(listed.len(), db.tables("test").len(), "{what}: {listed:?}");
        });
        after.shutdown();
    }
    environment.shutdown();
    reached
}

#[test]
fn what_is_committed_after_a_failed_statement_survives_a_crash() {
    let start = prepared();
    for statement in [Statement::Create, Statement::Drop, Statement::Truncate, Statement::Index] {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            let calls = (0..).take_while(|call| with_a_failing_call(&start, statement, *call, kind)).count();
            assert!(calls > 5, "{statement:?} makes {calls} calls");
        }
    }
}

#[test]
fn a_file_that_no_table_owns_is_neither_overwritten_nor_removed() {
    let environment = SimulatedEnvironment::with_storage(3, prepared());
    let stray = std::path::Path::new("/data/test/u.ibd");
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let storage = environment.storage();
        let file = storage.open(stray, disk::OpenHow::CREATE_NEW.buffered()).unwrap();
        file.write_at(b"somebody's", 0).unwrap();
        let refused = db.create_table("test", "u", table_def()).await.unwrap_err();
        assert!(refused.to_string().contains("u.ibd"), "{refused}");
        assert_eq!(environment.disk().content(stray).unwrap(), b"somebody's");
        assert!(db.table("test", "u").is_err());
    });
    environment.shutdown();
}
