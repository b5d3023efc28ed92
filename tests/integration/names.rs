//! Two statements on the same names at a time, over seeds and crashes: no table is lost, none lies in
//! another's file, and the directory opens. And metadata locks that wait for each other.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{Crash, Environment, Event, Moment, SimulatedEnvironment, SimulatedStorage, Storage};
use parking_lot::Mutex;
use untorn::asynchronous::Database;
use untorn::engine::{Durability, Error as TransactionError};
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Lock, Options, Range};

const PATIENCE: Duration = Duration::from_secs(10);

/// Which statement, and how it was answered.
type Answer = (usize, Result<(), String>);

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options).await.unwrap()
}

fn table_def() -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"])
}

async fn insert(db: &Database, database: &str, name: &str, id: i64) -> Result<(), Error> {
    let mut transaction = db.transaction();
    transaction.begin();
    let table = transaction.open_table(database, name, PATIENCE).await?;
    transaction.insert(&table, &[Value::Int(id)]).await?;
    transaction.commit(Durability::Sync).await
}

/// Tables with the ids of their rows.
type State = BTreeMap<String, Vec<i64>>;

async fn state(db: &Database) -> State {
    let mut state = State::new();
    for database in db.databases() {
        for table in db.tables(&database) {
            let mut ids = Vec::new();
            let mut transaction = db.transaction();
            let all = Range::all();
            let read = transaction.for_each(&table, &all, |row| {
                let Value::Int(id) = row[0] else { panic!("a row of other types: {row:?}") };
                ids.push(id);
                true
            });
            read.await.unwrap();
            state.insert(format!("{database}.{}", table.name), ids);
        }
    }
    state
}

/// The tables a (rows 0..3) and b (100..103) in `test`, c (200..203) in `other`.
fn prepared() -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        for (database, name, first) in [("test", "a", 0), ("test", "b", 100), ("other", "c", 200)] {
            if db.database(database).is_none() {
                db.create_database(database, Collation::Utf8mb4Bin).await.unwrap();
            }
            db.create_table(database, name, table_def()).await.unwrap();
            for id in first..first + 3 {
                insert(&db, database, name, id).await.unwrap();
            }
        }
        db.close().await.unwrap();
    });
    environment.shutdown();
    environment.disk().crash(1)
}

#[derive(Clone, Copy, Debug)]
enum Statement {
    CreateB,
    DropB,
    RenameAToB,
    RenameBToA,
    Swap,
    TruncateB,
    DiscardB,
    DropOther,
    CreateInOther,
    RenameAToOther,
    CreateNew,
}

impl Statement {
    async fn run(self, db: &Database) -> Result<(), Error> {
        let (a, b, t) = (("test", "a"), ("test", "b"), ("test", "t"));
        match self {
            Statement::CreateB => db.create_table("test", "b", table_def()).await.map(drop),
            Statement::CreateNew => db.create_table("test", "new", table_def()).await.map(drop),
            Statement::DropB => db.drop_table("test", "b").await,
            Statement::RenameAToB => db.rename_table(a, b).await,
            Statement::RenameBToA => db.rename_table(b, a).await,
            Statement::Swap => db.rename_tables(&[(a, t), (b, a), (t, b)]).await,
            Statement::TruncateB => db.truncate_table("test", "b").await,
            Statement::DiscardB => {
                db.discard_tablespace("test", "b").await?;
                db.drop_table("test", "b").await
            }
            Statement::DropOther => db.drop_database("other").await.map(drop),
            Statement::CreateInOther => db.create_table("other", "n", table_def()).await.map(drop),
            Statement::RenameAToOther => db.rename_table(a, ("other", "a")).await,
        }
    }
}

/// Runs both at the same time; what they were answered.
async fn together(
    environment: &Arc<SimulatedEnvironment>,
    db: &Database,
    statements: [Statement; 2],
) -> Vec<Result<(), String>> {
    let answers: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let mut ends = Vec::new();
    for (number, statement) in statements.into_iter().enumerate() {
        let (db, answers, end) = (db.clone(), answers.clone(), Event::new());
        ends.push(end.clone());
        // The second begins a little later or earlier, by the seed.
        let delay = environment.sleep(Duration::from_micros(environment.random_u64() % 400));
        let task = async move {
            delay.await;
            let answer = statement.run(&db).await.map_err(|error| error.to_string());
            answers.lock().push((number, answer));
            end.set();
        };
        environment.spawn("actor", Box::pin(task));
    }
    for end in ends {
        end.wait().await;
    }
    let mut answers = std::mem::take(&mut *answers.lock());
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// What the statements leave one after the other, in both orders, and after the first only.
fn one_after_the_other(start: &SimulatedStorage, statements: [Statement; 2]) -> (Vec<State>, Vec<State>) {
    let (mut ends, mut between) = (Vec::new(), Vec::new());
    for order in [statements, [statements[1], statements[0]]] {
        let environment = SimulatedEnvironment::with_storage(1, start.crash(1));
        environment.run_until_complete(async {
            let db = open(&environment).await;
            between.push(state(&db).await);
            for statement in order {
                let _ = statement.run(&db).await;
                between.push(state(&db).await);
            }
            ends.push(state(&db).await);
        });
        environment.shutdown();
    }
    (ends, between)
}

fn reopened(disk: Arc<SimulatedStorage>, what: &str) -> State {
    let environment = SimulatedEnvironment::with_storage(3, disk);
    let found = environment.run_until_complete(async {
        let db = open(&environment).await;
        for database in db.databases() {
            let files = environment.disk().list(&Path::new("/data").join(&database)).unwrap();
            let tables: Vec<_> =
                db.tables(&database).iter().map(|table| format!("{}.ibd", table.name)).collect();
            let files: Vec<_> = files.into_iter().map(|file| file.name).collect();
            assert_eq!(files, tables, "{what}");
        }
        // Whatever was there can be gone on with.
        if db.database("test").is_some() {
            db.create_table("test", "afterwards", table_def()).await.unwrap();
            db.drop_table("test", "afterwards").await.unwrap();
        }
        state(&db).await
    });
    environment.shutdown();
    found
}

fn any_order(statements: [Statement; 2], seeds: u64) {
    let start = prepared();
    let (ends, between) = one_after_the_other(&start, statements);
    for seed in 0..seeds {
        let environment = SimulatedEnvironment::with_storage(seed, start.crash(1));
        let moments: Arc<Mutex<Vec<Moment>>> = Arc::default();
        let seen = moments.clone();
        let (found, answers) = environment.run_until_complete(async {
            let db = open(&environment).await;
            environment.disk().observe_syncs(move |moment| seen.lock().push(moment));
            let answers = together(&environment, &db, statements).await;
            environment.disk().stop_observing();
            (state(&db).await, answers)
        });
        let what = format!("{statements:?}, seed {seed}: {answers:?}");
        assert!(ends.contains(&found), "{what}: {found:?} is none of {ends:?}");
        let last = environment.disk().crash(seed);
        environment.shutdown();
        assert_eq!(reopened(last, &what), found, "{what}");
        let moments = moments.lock();
        // DISCARD and DROP are two statements: between them the table has no rows to read.
        // Nor is there a moment where both were refused.
        if moments.is_empty() || statements.iter().any(|statement| matches!(statement, Statement::DiscardB)) {
            continue;
        }
        for at in [seed as usize % moments.len(), (seed as usize * 7 + 3) % moments.len()] {
            let what = format!("{what}, crash at sync {at} of {}", moments.len());
            let found = reopened(moments[at].crash(Crash::Random(seed)).0, &what);
            assert!(between.contains(&found), "{what}: {found:?} is none of {between:?}");
        }
    }
}

#[test]
fn drop_and_rename_to_the_same_name() {
    any_order([Statement::DropB, Statement::RenameAToB], 25);
}

#[test]
fn create_and_rename_to_the_same_name() {
    any_order([Statement::CreateB, Statement::RenameAToB], 5);
    any_order([Statement::CreateNew, Statement::CreateNew], 15);
}

#[test]
fn renames_crosswise() {
    any_order([Statement::RenameAToB, Statement::RenameBToA], 5);
    any_order([Statement::Swap, Statement::Swap], 15);
    any_order([Statement::Swap, Statement::DropB], 15);
    any_order([Statement::Swap, Statement::TruncateB], 15);
}

#[test]
fn discard_and_rename_to_the_same_name() {
    any_order([Statement::DiscardB, Statement::RenameAToB], 15);
}

#[test]
fn a_database_is_dropped_while_tables_come_into_it() {
    any_order([Statement::DropOther, Statement::CreateInOther], 20);
    any_order([Statement::DropOther, Statement::RenameAToOther], 20);
}

/// B is dropped first, and then created by two at a time.
#[test]
fn create_and_rename_to_a_name_that_is_free() {
    let start = {
        let environment = SimulatedEnvironment::with_storage(1, prepared());
        environment.run_until_complete(async {
            let db = open(&environment).await;
            db.drop_table("test", "b").await.unwrap();
            db.close().await.unwrap();
        });
        environment.shutdown();
        environment.disk().crash(1)
    };
    for seed in 0..25 {
        let environment = SimulatedEnvironment::with_storage(seed, start.crash(1));
        let (found, answers) = environment.run_until_complete(async {
            let db = open(&environment).await;
            let answers = together(&environment, &db, [Statement::CreateB, Statement::RenameAToB]).await;
            (state(&db).await, answers)
        });
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "seed {seed}: {answers:?}");
        assert!(found.values().any(|rows| *rows == [0, 1, 2]), "seed {seed}: {found:?}");
        let what = format!("seed {seed}: {answers:?}");
        assert_eq!(reopened(environment.disk().crash(seed), &what), found, "{what}");
        environment.shutdown();
    }
}

/// Two transactions use a table each; definitions wait for both; then each transaction wants the other's
/// table.
#[test]
fn a_cycle_of_metadata_locks_ends_in_a_deadlock_at_once() {
    let environment = SimulatedEnvironment::with_storage(1, prepared());
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let (mut one, mut two) = (db.transaction(), db.transaction());
        one.begin();
        two.begin();
        one.open_table("test", "a", PATIENCE).await.unwrap();
        two.open_table("test", "b", PATIENCE).await.unwrap();
        let ends = [Event::new(), Event::new()];
        for (end, name) in ends.iter().zip(["a", "b"]) {
            let (db, end) = (db.clone(), end.clone());
            let task = async move {
                db.truncate_table("test", name).await.unwrap();
                end.set();
            };
            environment.spawn("definition", Box::pin(task));
        }
        let started = environment.now();
        environment.sleep(Duration::from_millis(5)).await;
        let waits = Event::new();
        let told = waits.clone();
        let task = async move {
            let outcome = one.open_table("test", "b", PATIENCE).await.map(drop);
            one.rollback().await.unwrap();
            told.set();
            outcome.unwrap();
        };
        environment.spawn("one", Box::pin(task));
        environment.sleep(Duration::from_millis(5)).await;
        let outcome = two.open_table("test", "a", PATIENCE).await.map(drop);
        assert!(
            matches!(outcome, Err(Error::Transaction(TransactionError::Deadlock))),
            "the wait that closed the cycle: {outcome:?}"
        );
        assert!(!two.is_active(), "it is rolled back");
        waits.wait().await;
        for end in &ends {
            end.wait().await;
        }
        assert!(environment.now() - started < Duration::from_secs(1));
        assert_eq!(state(&db).await["test.a"], Vec::<i64>::new());
    });
    environment.shutdown();
}

/// A transaction waits for a row of another one, that one for a table that a definition has asked for, and
/// the definition for the first transaction. Whichever wait is the last finds the cycle.
#[test]
fn a_cycle_through_a_row_lock_ends_in_a_deadlock_at_once() {
    for row_wait_last in [false, true] {
        let environment = SimulatedEnvironment::with_storage(1, prepared());
        environment.run_until_complete(async {
            let db = open(&environment).await;
            let started = environment.now();
            let (mut one, mut two) = (db.transaction(), db.transaction());
            one.begin();
            two.begin();
            // One uses a and c, two locks a row of c.
            one.open_table("test", "a", PATIENCE).await.unwrap();
            let c = one.open_table("other", "c", PATIENCE).await.unwrap();
            two.open_table("other", "c", PATIENCE).await.unwrap();
            assert!(two.delete(&c, &[Value::Int(200)]).await.unwrap());
            let truncated = Event::new();
            let (end, definer) = (truncated.clone(), db.clone());
            let task = async move {
                definer.truncate_table("test", "a").await.unwrap();
                end.set();
            };
            environment.spawn("definition", Box::pin(task));
            environment.sleep(Duration::from_millis(5)).await;
            let row_wait = async |mut one: untorn::asynchronous::Transaction| {
                let got = one.get(&c, &[Value::Int(200)], Lock::Exclusive).await.unwrap();
                assert!(got.is_some(), "the deletion was undone");
                one.rollback().await.unwrap();
            };
            let name_wait = async |mut two: untorn::asynchronous::Transaction| {
                let outcome = two.open_table("test", "a", PATIENCE).await.map(drop);
                assert!(
                    matches!(outcome, Err(Error::Transaction(TransactionError::Deadlock))),
                    "the wait for the name gives way: {outcome:?}"
                );
            };
            let mut waits = (Box::pin(row_wait(one)), Box::pin(name_wait(two)));
            let mut over = (false, false);
            std::future::poll_fn(|context| {
                // The order of the first polls is the order in which the waits begin.
                for turn in [row_wait_last, !row_wait_last] {
                    if turn && !over.1 {
                        over.1 = waits.1.as_mut().poll(context).is_ready();
                    } else if !turn && !over.0 {
                        over.0 = waits.0.as_mut().poll(context).is_ready();
                    }
                }
                if over == (true, true) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            truncated.wait().await;
            assert!(environment.now() - started < Duration::from_secs(1), "row wait last: {row_wait_last}");
        });
        environment.shutdown();
    }
}

/// A statement whose caller goes away comes to its end all the same.
#[test]
fn a_statement_that_nobody_waits_for_any_more_is_done_or_undone() {
    let start = prepared();
    let statements = [
        Statement::CreateNew,
        Statement::DropB,
        Statement::Swap,
        Statement::TruncateB,
        Statement::DropOther,
        Statement::RenameAToOther,
    ];
    for statement in statements {
        let (_, between) = one_after_the_other(&start, [statement, statement]);
        for polls in 0..12 {
            let environment = SimulatedEnvironment::with_storage(polls, start.crash(1));
            let found = environment.run_until_complete(async {
                let db = open(&environment).await;
                {
                    let mut work = Box::pin(statement.run(&db));
                    let mut left = polls;
                    std::future::poll_fn(|context| {
                        if left == 0 || work.as_mut().poll(context).is_ready() {
                            return std::task::Poll::Ready(());
                        }
                        left -= 1;
                        context.waker().wake_by_ref();
                        std::task::Poll::Pending
                    })
                    .await;
                }
                environment.sleep(Duration::from_secs(1)).await;
                state(&db).await
            });
            let what = format!("{statement:?} dropped after {polls} polls");
            assert!(between.contains(&found), "{what}: {found:?}");
            assert_eq!(reopened(environment.disk().crash(polls), &what), found, "{what}");
            environment.shutdown();
        }
    }
}

/// A database that has another collation keeps it and its tables over a power cut, and a missing one is not
/// made.
#[test]
fn a_database_gets_another_collation() {
    let environment = SimulatedEnvironment::with_storage(1, prepared());
    let before = environment.run_until_complete(async {
        let db = open(&environment).await;
        let missing = db.alter_database("nothing", Collation::Utf8mb4Bin).await;
        assert!(matches!(missing, Err(Error::NoSuchDatabase(_))), "{missing:?}");
        assert!(db.database("nothing").is_none());
        db.alter_database("test", Collation::Latin1SwedishCi).await.unwrap();
        assert_eq!(db.database("test").unwrap().collation, Collation::Latin1SwedishCi);
        state(&db).await
    });
    let disk = environment.disk().crash(2);
    environment.shutdown();
    let environment = SimulatedEnvironment::with_storage(2, disk);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let collations = ["test", "other"].map(|name| db.database(name).unwrap().collation);
        assert_eq!(collations, [Collation::Latin1SwedishCi, Collation::Utf8mb4Bin]);
        assert_eq!(state(&db).await, before);
    });
    environment.shutdown();
}
