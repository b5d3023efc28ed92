//! Statements that change definitions, with every call to the disk failing once, and life going on
//! afterwards.
//!
//! The campaign of `testing/torture` ends an actor at its first error. Here the same session goes on: what a
//! failed statement left behind must not take along what was done after it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, Fault, FaultKind, SimulatedEnvironment, SimulatedStorage};
use std::collections::BTreeMap;
use std::sync::Arc;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, ForeignKey, KeyDef, KeyKind, KeyPart, ReferentialAction, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options, Range};

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
    let mut row = vec![Value::Int(id), Value::Int(id * 7)];
    row.resize(table.def.columns.len(), Value::Null);
    transaction.insert(&table, &row).await?;
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
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
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
    AddColumn,
    RenameColumn,
}

impl Statement {
    async fn run(self, db: &Database) -> Result<(), Error> {
        match self {
            Statement::Create => db.create_table("test", "u", table_def()).await.map(drop),
            Statement::Drop => db.drop_table("test", "t").await,
            Statement::Truncate => db.truncate_table("test", "t").await,
            Statement::Index => {
                let parts = vec![KeyPart::whole(1)];
                let name = "extra".to_owned();
                let key = KeyDef::new(name, KeyKind::Secondary, parts);
                db.create_index("test", "t", key).await
            }
            Statement::AddColumn => {
                let column = ColumnDef::new("more", ColumnType::int()).nullable();
                db.add_column("test", "t", column, &Value::Null).await
            }
            Statement::RenameColumn => db.rename_column("test", "t", "counter", "other").await,
        }
    }
}

/// Runs the statement with its `call`-th call failing, goes on, crashes and compares. Whether there was such
/// a call.
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
                let report = db.check_table("test", &table.name).await.unwrap();
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
    use Statement::*;
    for statement in [Create, Drop, Truncate, Index, AddColumn, RenameColumn] {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            let calls = (0..).take_while(|call| with_a_failing_call(&start, statement, *call, kind)).count();
            assert!(calls > 1, "{statement:?} makes {calls} calls");
        }
    }
}

/// Table names, with the names of columns, and the ids of their rows; `None`: its tablespace is discarded.
type State = BTreeMap<String, Option<Vec<i64>>>;

async fn state(db: &Database, database: &str) -> State {
    let mut state = State::new();
    for table in db.tables(database) {
        let mut ids = Vec::new();
        let mut transaction = db.transaction();
        let all = Range::all();
        let read = transaction.for_each(&table, &all, |row| {
            let Value::Int(id) = row[0] else { panic!("a row of other types: {row:?}") };
            ids.push(id);
            true
        });
        let rows = match read.await {
            Ok(()) => Some(ids),
            Err(Error::TablespaceDiscarded(..)) => None,
            Err(error) => panic!("{}: {error}", table.name),
        };
        let columns: Vec<&str> = table.def.columns.iter().map(|column| &*column.name).collect();
        let keys: Vec<&str> = table.def.keys.iter().map(|key| &*key.name).collect();
        let foreign: Vec<String> = table.def.foreign_keys.iter().map(ToString::to_string).collect();
        state.insert(format!("{database}.{}({columns:?}, {keys:?}, {foreign:?})", table.name), None);
        state.insert(format!("{database}.{}", table.name), rows);
    }
    state
}

async fn everything(db: &Database) -> State {
    let mut all = State::new();
    for database in db.databases() {
        all.insert(database.clone(), None);
        all.append(&mut state(db, &database).await);
    }
    all
}

/// The counters that rows have are ids here.
fn parent_def() -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", ColumnType::int()), ColumnDef::new("n", ColumnType::int())])
        .primary_key(&["id"])
}

fn to_parent() -> ForeignKey {
    ForeignKey::new(&["counter"], "parent", &["id"]).on_update(ReferentialAction::Cascade)
}

/// A directory with the tables a, b (rows of their own) in `test`, and c in `other`, where a child refers to
/// its parent, and c could.
fn prepared_for_names() -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        for (database, name, first) in [("test", "a", 0), ("test", "b", 100), ("other", "c", 200)] {
            if db.database(database).is_none() {
                db.create_database(database, Collation::Utf8mb4Bin).await.unwrap();
            }
            db.create_table(database, name, table_def()).await.unwrap();
            for id in first..first + 5 {
                insert_into(&db, database, name, id).await.unwrap();
            }
        }
        db.create_table("other", "parent", parent_def()).await.unwrap();
        db.create_table("other", "child", table_def().foreign_key(to_parent())).await.unwrap();
        for id in 0..5 {
            insert_into(&db, "other", "parent", id * 7).await.unwrap();
            insert_into(&db, "other", "child", id).await.unwrap();
            insert_into(&db, "other", "parent", (200 + id) * 7).await.unwrap();
        }
        db.close().await.unwrap();
    });
    environment.shutdown();
    environment.disk().crash(1)
}

async fn insert_into(db: &Database, database: &str, name: &str, id: i64) -> Result<(), Error> {
    let table = db.table(database, name)?;
    let mut transaction = db.transaction();
    transaction.begin();
    transaction.insert(&table, &[Value::Int(id), Value::Int(id * 7)]).await?;
    transaction.commit(Durability::Sync).await
}

#[derive(Clone, Copy, Debug)]
enum OnNames {
    Create,
    Drop,
    DropBoth,
    Truncate,
    Rename,
    RenameAway,
    RenameSeveral,
    Swap,
    Discard,
    CreateDatabase,
    DropDatabase,
    TwoIndexes,
    AddColumn,
    DropColumn,
    RenameColumn,
    AddForeignKey,
    ExchangeForeignKey,
    RenameReferenced,
    RebuildReferenced,
}

impl OnNames {
    const ALL: [OnNames; 19] = [
        OnNames::Create,
        OnNames::Drop,
        OnNames::DropBoth,
        OnNames::Truncate,
        OnNames::Rename,
        OnNames::RenameAway,
        OnNames::RenameSeveral,
        OnNames::Swap,
        OnNames::Discard,
        OnNames::CreateDatabase,
        OnNames::DropDatabase,
        OnNames::TwoIndexes,
        OnNames::AddColumn,
        OnNames::DropColumn,
        OnNames::RenameColumn,
        OnNames::AddForeignKey,
        OnNames::ExchangeForeignKey,
        OnNames::RenameReferenced,
        OnNames::RebuildReferenced,
    ];

    async fn run(self, db: &Database) -> Result<(), Error> {
        let (a, b, t) = (("test", "a"), ("test", "b"), ("test", "t"));
        match self {
            OnNames::Create => db.create_table("test", "t", table_def()).await.map(drop),
            OnNames::Drop => db.drop_table("test", "a").await,
            OnNames::DropBoth => db.drop_tables(&[a, b]).await,
            OnNames::Truncate => db.truncate_table("test", "a").await,
            OnNames::Rename => db.rename_table(a, t).await,
            OnNames::RenameAway => db.rename_table(a, ("other", "a")).await,
            OnNames::RenameSeveral => {
                db.rename_tables(&[(a, t), (b, ("test", "u")), (("other", "c"), a)]).await
            }
            OnNames::Swap => db.rename_tables(&[(a, t), (b, a), (t, b)]).await,
            OnNames::Discard => db.discard_tablespace("test", "a").await,
            OnNames::CreateDatabase => db.create_database("third", Collation::Utf8mb4Bin).await,
            OnNames::DropDatabase => db.drop_database("test").await.map(drop),
            OnNames::TwoIndexes => {
                let key =
                    |name: &str| KeyDef::new(name.to_owned(), KeyKind::Secondary, vec![KeyPart::whole(1)]);
                db.change_indexes("test", "a", vec![key("k1"), key("k2")], &[]).await
            }
            OnNames::AddColumn => {
                let column = ColumnDef::new("more", ColumnType::int()).nullable();
                db.add_column("test", "a", column, &Value::Null).await
            }
            OnNames::DropColumn => db.drop_column("test", "a", "counter").await,
            OnNames::RenameColumn => db.rename_column("test", "a", "counter", "other").await,
            // It needs an index, which comes with it or not at all.
            OnNames::AddForeignKey => db.change_foreign_keys("other", "c", vec![to_parent()], &[]).await,
            OnNames::ExchangeForeignKey => {
                let other = to_parent().named("other");
                db.change_foreign_keys("other", "child", vec![other], &["child_ibfk_1"]).await
            }
            // The child's definition changes with it.
            OnNames::RenameReferenced => db.rename_column("other", "parent", "id", "key").await,
            OnNames::RebuildReferenced => {
                let column = ColumnDef::new("more", ColumnType::int()).nullable();
                db.add_column("other", "parent", column, &Value::Null).await
            }
        }
    }
}

/// What the statement makes of the tables when nothing fails.
fn done(start: &SimulatedStorage, statement: OnNames) -> (State, State) {
    let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
    let states = environment.run_until_complete(async {
        let db = open(&environment).await;
        let before = everything(&db).await;
        statement.run(&db).await.unwrap();
        (before, everything(&db).await)
    });
    environment.shutdown();
    states
}

/// Runs the statement with its `call`-th call failing: it is done or undone, in memory as on the disk, and
/// the directory opens. Whether there was such a call.
fn is_done_or_undone(
    start: &SimulatedStorage,
    statement: OnNames,
    (before, after): &(State, State),
    call: u64,
    kind: FaultKind,
) -> bool {
    let environment = SimulatedEnvironment::with_storage(call, start.crash(1));
    let disk = environment.disk().clone();
    let what = format!("{statement:?} with call {call} failing ({kind:?})");
    let (reached, mut states) = environment.run_until_complete(async {
        let db = open(&environment).await;
        let first = disk.calls();
        disk.plan(Fault { call: first + call, kind });
        let outcome = statement.run(&db).await;
        let reached = disk.calls() > first + call;
        disk.forget_faults();
        let mut found = everything(&db).await;
        let expected = if outcome.is_ok() { after } else { before };
        // Life goes on, or nothing can be changed any more, and then either is right.
        let mut states = vec![before.clone(), after.clone()];
        let insert = insert_into(&db, "other", if found.contains_key("other.c") { "c" } else { "none" }, 999);
        let goes_on = insert.await.is_ok();
        if goes_on || !found.contains_key("other.c") {
            assert_eq!(found, *expected, "{what} gave {outcome:?}");
        }
        if goes_on {
            found = everything(&db).await;
            states = vec![found];
        }
        (reached, states)
    });
    states.dedup();
    // Where the call was of another kind nothing has failed.
    let crashes = if disk.misbehaved() == 0 { 0 } else { 3 };
    for seed in 0..crashes {
        let after = SimulatedEnvironment::with_storage(seed, disk.crash(seed));
        after.run_until_complete(async {
            let db = open(&after).await;
            let mut found = everything(&db).await;
            if states.len() > 1 {
                found.values_mut().flatten().for_each(|ids| ids.retain(|id| *id != 999));
            }
            assert!(states.contains(&found), "{what}, crash {seed}: {found:?} is none of {states:?}");
            for database in db.databases() {
                let tables = db.tables(&database);
                let with_file = tables.iter().filter(|table| !table.def.discarded);
                let mut expected: Vec<String> =
                    with_file.clone().map(|table| format!("{}.ibd", table.name)).collect();
                expected.sort();
                for table in with_file {
                    let report = db.check_table(&database, &table.name).await.unwrap();
                    assert!(report.is_sound(), "{what}: {:?}", report.problems);
                }
                let path = std::path::Path::new("/data").join(&database);
                let files = disk::Storage::list(&**after.disk(), &path).unwrap();
                let files: Vec<String> = files.into_iter().map(|file| file.name).collect();
                assert_eq!(files, expected, "{what}, crash {seed}");
            }
        });
        after.shutdown();
    }
    environment.shutdown();
    reached
}

#[test]
fn whatever_call_fails_a_statement_is_done_or_undone() {
    let start = prepared_for_names();
    for statement in OnNames::ALL {
        let states = done(&start, statement);
        for kind in [
            FaultKind::Eio,
            FaultKind::Enospc,
            FaultKind::NameTooLong,
            FaultKind::OtherDevice,
            FaultKind::TooManyFiles,
            FaultKind::Denied,
        ] {
            let reached = |call: &u64| is_done_or_undone(&start, statement, &states, *call, kind);
            let calls = (0..).take_while(reached).count();
            assert!(calls > 1, "{statement:?} makes {calls} calls");
        }
    }
}

#[test]
fn a_name_that_no_file_can_have_is_refused_before_anything_happens() {
    let environment = SimulatedEnvironment::with_storage(3, prepared_for_names());
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let before = everything(&db).await;
        let first = environment.disk().calls();
        let long = "\u{8868}".repeat(51);
        let renamed = db.rename_table(("test", "a"), ("test", &long)).await;
        assert!(matches!(renamed, Err(Error::NameTooLong(_))), "{renamed:?}");
        let made = db.create_table("test", &long, table_def()).await;
        assert!(matches!(made, Err(Error::NameTooLong(_))), "{made:?}");
        assert!(matches!(
            db.create_database(&"\u{8868}".repeat(52), Collation::Utf8mb4Bin).await,
            Err(Error::NameTooLong(_))
        ));
        assert_eq!(environment.disk().calls(), first);
        assert_eq!(everything(&db).await, before);
        let fits = "\u{8868}".repeat(50);
        db.rename_table(("test", "a"), ("test", &fits)).await.unwrap();
        drop(db.export_table("test", &fits).await.unwrap());
    });
    environment.shutdown();
}

#[test]
fn a_file_in_the_way_is_no_target() {
    let environment = SimulatedEnvironment::with_storage(3, prepared_for_names());
    let stray = std::path::Path::new("/data/test/t.ibd");
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let before = everything(&db).await;
        let file = environment.storage().open(stray, disk::OpenHow::CREATE_NEW.buffered()).unwrap();
        file.write_at(b"somebody's", 0).unwrap();
        let refused = db.rename_table(("test", "a"), ("test", "t")).await.unwrap_err();
        assert!(refused.to_string().contains("t.ibd"), "{refused}");
        assert_eq!(environment.disk().content(stray).unwrap(), b"somebody's");
        assert_eq!(everything(&db).await, before);
    });
    environment.shutdown();
}

/// One entry that a start cannot work off keeps neither the other tables nor the directory from opening.
#[test]
fn work_that_cannot_be_done_at_a_start_is_left_for_the_next() {
    let start = prepared_for_names();
    let environment = SimulatedEnvironment::with_storage(4, start);
    let disk = environment.disk().clone();
    environment.run_until_complete(async {
        let db = open(&environment).await;
        // The power goes between the moment of the statement and the new names of its files.
        let swap = OnNames::Swap;
        let renamed = Arc::new(parking_lot::Mutex::new(None));
        let (seen, moments) = (renamed.clone(), Arc::new(parking_lot::Mutex::new(Vec::new())));
        disk.observe_syncs(move |moment| {
            moments.lock().push(moment.clone());
            *seen.lock() = Some(moments.lock().clone());
        });
        swap.run(&db).await.unwrap();
        disk.stop_observing();
        let moments = renamed.lock().take().unwrap();
        let mut waiting = 0;
        for moment in moments {
            let (left, _) = moment.crash(disk::Crash::ProcessOnly);
            let again = SimulatedEnvironment::with_storage(5, left);
            let names = disk::Storage::list(&**again.disk(), std::path::Path::new("/data/test")).unwrap();
            if !names.iter().any(|file| file.name.starts_with("#untorn-")) {
                continue;
            }
            // Not in a simulation within a simulation: a plain one after the other.
            waiting += 1;
            for call in 0..12 {
                let (left, _) = moment.crash(disk::Crash::ProcessOnly);
                opens_with_a_failing_rename(left, call);
            }
        }
        assert!(waiting > 0, "no crash left work behind");
    });
    environment.shutdown();
}

fn opens_with_a_failing_rename(disk: Arc<SimulatedStorage>, call: u64) {
    let environment = SimulatedEnvironment::with_storage(6, disk);
    let disk = environment.disk().clone();
    disk.plan(Fault { call: disk.calls() + call, kind: FaultKind::OtherDevice });
    let first = environment.run_until_complete(async {
        let db = open(&environment).await;
        everything(&db).await
    });
    assert_eq!(first.values().flatten().map(Vec::len).sum::<usize>(), 30, "{first:?}");
    environment.shutdown();
    let again = SimulatedEnvironment::with_storage(7, disk.crash(1));
    let second = again.run_until_complete(async {
        let db = open(&again).await;
        everything(&db).await
    });
    assert_eq!(first, second);
    again.shutdown();
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
