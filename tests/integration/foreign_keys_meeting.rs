//! Transactions that meet at a foreign key, on one thread and the simulated machine: in a given order, in
//! orders that a seed decides, and with a power loss in the middle of a cascade.
//!
//! What must hold: no row is ever without its parent, a cascade is there whole or not at all, and the tables
//! are sound.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::definitions::{child_of, columns};
use disk::{Environment, Random, SimulatedEnvironment, interleave};
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::{Durability, Isolation};
use untorn::schema::ReferentialAction;
use untorn::types::{Collation, Value};
use untorn::{Error, Range, Table, TransactionError};

use ReferentialAction::{Cascade, NoAction, SetNull};

const LEVELS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// Longer than anything takes that does not wait for a lock, and shorter than such a wait may last.
const A_WHILE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(20);

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let mut options = crate::definitions::options();
    options.lock_wait_timeout = PATIENCE;
    Database::open_in(shared, options).await.unwrap()
}

fn row(id: i64, up: i64) -> [Value<'static>; 2] {
    [Value::Int(id), if up == 0 { Value::Null } else { Value::Int(up) }]
}

fn numbers(row: &[Value<'_>]) -> (i64, i64) {
    let number = |value: &Value<'_>| match value {
        Value::Int(number) => *number,
        _ => 0,
    };
    (number(&row[0]), number(&row[1]))
}

async fn rows(db: &Database, name: &str) -> Vec<(i64, i64)> {
    let (mut transaction, mut found) = (db.transaction(), Vec::new());
    let (table, all) = (db.table("d", name).unwrap(), Range::all());
    let read = transaction.for_each(&table, &all, |row| {
        found.push(numbers(&row));
        true
    });
    read.await.unwrap();
    found
}

async fn nobody_lacks_a_parent(db: &Database, what: &str) {
    for (parent, child) in [("p", "c"), ("c", "g")] {
        if db.table("d", child).is_err() {
            continue;
        }
        let parents = rows(db, parent).await;
        for (id, up) in rows(db, child).await {
            let has = up == 0 || parents.iter().any(|(parent, _)| *parent == up);
            assert!(has, "{what}: row {id} of {child} refers to {up}, which is not in {parent}: {parents:?}");
        }
        let report = db.check_table("d", child).await.unwrap();
        assert!(report.is_sound(), "{what}: {:?}", report.problems);
    }
}

async fn begun(db: &Database, level: Isolation) -> Transaction {
    let mut transaction = db.transaction();
    transaction.engine_mut().set_isolation(level);
    transaction.begin();
    transaction
}

/// Whether it is still going on after a while.
async fn waits<F: Future + Unpin>(environment: &SimulatedEnvironment, future: &mut F) -> Option<F::Output> {
    let mut sleep = Box::pin(environment.sleep(A_WHILE));
    poll_fn(|context| {
        if let Poll::Ready(output) = pin!(&mut *future).poll(context) {
            return Poll::Ready(Some(output));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// The first change is made, and not committed; the second has to wait, and finds what the end of the first
/// has left.
async fn one_behind_the_other(environment: &Arc<SimulatedEnvironment>, level: Isolation, commits: bool) {
    for (on_delete, child_first) in
        [NoAction, Cascade, SetNull].into_iter().flat_map(|action| [(action, true), (action, false)])
    {
        let db = open_with_tables(environment, on_delete).await;
        let (parent, child) = (db.table("d", "p").unwrap(), db.table("d", "c").unwrap());
        let what = format!("{level:?}, {on_delete:?}, child first {child_first}, commits {commits}");
        let (mut first, mut second) = (begun(&db, level).await, begun(&db, level).await);
        let end = async |transaction: &mut Transaction| match commits {
            true => transaction.commit(Durability::Sync).await.unwrap(),
            false => transaction.rollback().await.unwrap(),
        };
        if child_first {
            first.insert(&child, &row(1, 5)).await.unwrap();
            let key = [Value::Int(5)];
            let mut delete = Box::pin(second.delete(&parent, &key));
            assert!(waits(environment, &mut delete).await.is_none(), "{what}: the parent is not locked");
            end(&mut first).await;
            match delete.await {
                Ok(true) if !commits || on_delete != NoAction => {}
                Err(Error::ForeignKeyChildExists(_)) if commits && on_delete == NoAction => {}
                other => panic!("{what}: {other:?}"),
            }
        } else {
            assert!(first.delete(&parent, &[Value::Int(5)]).await.unwrap());
            let new = row(1, 5);
            let mut insert = Box::pin(second.insert(&child, &new));
            assert!(waits(environment, &mut insert).await.is_none(), "{what}: the parent is not locked");
            end(&mut first).await;
            match insert.await {
                Ok(_) if !commits => {}
                Err(Error::ForeignKeyParentMissing(_)) if commits => {}
                other => panic!("{what}: {other:?}"),
            }
        }
        second.commit(Durability::Sync).await.unwrap();
        drop((first, second));
        nobody_lacks_a_parent(&db, &what).await;
        let left = rows(&db, "c").await;
        let expected: &[(i64, i64)] = match (child_first, commits, on_delete) {
            (true, true, NoAction) | (false, false, _) => &[(1, 5)],
            (true, true, SetNull) => &[(1, 0)],
            _ => &[],
        };
        assert_eq!(left, expected, "{what}");
        db.drop_database("d").await.unwrap();
        db.close().await.unwrap();
    }
}

async fn open_with_tables(environment: &Arc<SimulatedEnvironment>, on_delete: ReferentialAction) -> Database {
    let db = open(environment).await;
    db.create_database("d", Collation::Utf8mb4Bin).await.unwrap();
    let parent = db.create_table("d", "p", columns()).await.unwrap();
    db.create_table("d", "c", child_of("p", on_delete, Cascade)).await.unwrap();
    let mut transaction = db.begin();
    for id in 3..8 {
        transaction.insert(&parent, &row(id, 0)).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db
}

#[test]
fn who_comes_second_waits_and_finds_what_the_first_left() {
    for (level, commits) in LEVELS.into_iter().flat_map(|level| [(level, true), (level, false)]) {
        let environment = SimulatedEnvironment::new(1);
        environment.run_until_complete(one_behind_the_other(&environment, level, commits));
        environment.shutdown();
    }
}

/// A child that somebody is about to remove, or to give another parent, counts until that is committed.
#[test]
fn a_child_that_goes_is_waited_for() {
    for (level, commits, deletes) in LEVELS.into_iter().flat_map(|level| {
        [(true, true), (true, false), (false, true), (false, false)].map(|(one, other)| (level, one, other))
    }) {
        let environment = SimulatedEnvironment::new(1);
        environment.run_until_complete(async {
            let db = open_with_tables(&environment, NoAction).await;
            let (parent, child) = (db.table("d", "p").unwrap(), db.table("d", "c").unwrap());
            let what = format!("{level:?}, commits {commits}, deletes {deletes}");
            let mut first = db.begin();
            first.insert(&child, &row(1, 5)).await.unwrap();
            first.commit(Durability::Sync).await.unwrap();
            let (mut first, mut second) = (begun(&db, level).await, begun(&db, level).await);
            match deletes {
                true => assert!(first.delete(&child, &[Value::Int(1)]).await.unwrap()),
                false => {
                    assert!(first.update(&child, &[Value::Int(1)], &[("up", Value::Null)]).await.unwrap())
                }
            }
            let key = [Value::Int(5)];
            let mut delete = Box::pin(second.delete(&parent, &key));
            assert!(waits(&environment, &mut delete).await.is_none(), "{what}: the child is not locked");
            match commits {
                true => first.commit(Durability::Sync).await.unwrap(),
                false => first.rollback().await.unwrap(),
            }
            match delete.await {
                Ok(true) if commits => {}
                Err(Error::ForeignKeyChildExists(_)) if !commits => {}
                other => panic!("{what}: {other:?}"),
            }
            second.commit(Durability::Sync).await.unwrap();
            drop((first, second));
            nobody_lacks_a_parent(&db, &what).await;
        });
        environment.shutdown();
    }
}

/// A cascade waits for a child that somebody else has locked, gives up after the time for that, and leaves
/// nothing; what the transaction did before stays, and a savepoint takes a cascade back.
#[test]
fn a_cascade_that_times_out_leaves_nothing() {
    let environment = SimulatedEnvironment::new(2);
    environment.run_until_complete(async {
        let db = open_with_tables(&environment, Cascade).await;
        let (parent, child) = (db.table("d", "p").unwrap(), db.table("d", "c").unwrap());
        let mut transaction = db.begin();
        for id in 1..=90 {
            transaction.insert(&child, &row(id, 3 + id % 2)).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        let mut other = db.begin();
        other.update(&child, &[Value::Int(80)], &[("up", Value::Null)]).await.unwrap();
        let mut transaction = db.begin();
        transaction.insert(&parent, &row(20, 0)).await.unwrap();
        let refused = transaction.delete(&parent, &[Value::Int(3)]).await.unwrap_err();
        assert!(
            matches!(refused, Error::Transaction(TransactionError::LockWaitTimeout)),
            "the child that somebody else has changed was not waited for: {refused}"
        );
        other.rollback().await.unwrap();
        transaction.engine_mut().savepoint("s");
        assert!(transaction.delete(&parent, &[Value::Int(4)]).await.unwrap());
        assert!(transaction.engine_mut().rollback_to_savepoint("s").await.unwrap());
        transaction.commit(Durability::Sync).await.unwrap();
        drop((other, transaction));
        assert_eq!(rows(&db, "c").await.len(), 90);
        assert_eq!(rows(&db, "p").await.len(), 6);
        nobody_lacks_a_parent(&db, "after a timeout").await;
    });
    environment.shutdown();
}

/// Errors that are nobody's fault.
fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::Transaction(TransactionError::Deadlock | TransactionError::LockWaitTimeout)
            | Error::ForeignKeyParentMissing(_)
            | Error::ForeignKeyChildExists(_)
            | Error::ForeignKeyDuplicate { .. }
    ) || error.is_duplicate_key()
}

struct Actor {
    db: Database,
    random: Random,
    stop: Rc<Cell<bool>>,
    done: Rc<Cell<u32>>,
}

impl Actor {
    /// Parents, children and grandchildren come, go and change, some of it all at once.
    async fn run(mut self) {
        while !self.stop.get() {
            let level = LEVELS[self.random.below(4)];
            let mut transaction = begun(&self.db, level).await;
            let mut failed = None;
            for _ in 0..1 + self.random.below(4) {
                if let Err(error) = self.step(&mut transaction).await {
                    assert!(is_conflict(&error), "{error}");
                    failed = Some(error);
                    break;
                }
            }
            // A row that was refused leaves the transaction to go on; some commit all the same.
            let gone = matches!(failed, Some(Error::Transaction(_)));
            match gone || self.random.one_in(5) {
                true => transaction.rollback().await.unwrap(),
                false => transaction.commit(Durability::Sync).await.unwrap(),
            }
            self.done.set(self.done.get() + 1);
        }
    }

    async fn step(&mut self, transaction: &mut Transaction) -> Result<(), Error> {
        let name = ["p", "c", "g"][self.random.below(3)];
        let table: Arc<Table> = self.db.table("d", name)?;
        let (id, up) = (1 + self.random.below(8) as i64, self.random.below(9) as i64);
        match self.random.below(6) {
            0..3 => transaction.insert(&table, &row(id, if name == "p" { 0 } else { up })).await.map(drop),
            3 => transaction.delete(&table, &[Value::Int(id)]).await.map(drop),
            4 => {
                let to = Value::Int(1 + self.random.below(8) as i64);
                transaction.update(&table, &[Value::Int(id)], &[("id", to)]).await.map(drop)
            }
            _ if name == "p" => Ok(()),
            _ => {
                let to = if up == 0 { Value::Null } else { Value::Int(up) };
                transaction.update(&table, &[Value::Int(id)], &[("up", to)]).await.map(drop)
            }
        }
    }
}

/// Sessions in an order that the seed decides, cut off after some polls by a power loss.
fn history(seed: u64) {
    let mut random = Random::new(seed);
    let environment = SimulatedEnvironment::new(random.next_u64());
    let actions = [NoAction, Cascade, SetNull];
    let (above, below) = (actions[random.below(3)], actions[random.below(3)]);
    let (polls, order) = (200 + random.below(4_000) as u64, random.next_u64());
    let done = Rc::new(Cell::new(0));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("d", Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("d", "p", columns()).await.unwrap();
        db.create_table("d", "c", child_of("p", above, Cascade)).await.unwrap();
        db.create_table("d", "g", child_of("c", below, below)).await.unwrap();
        let stop = Rc::new(Cell::new(false));
        let parts = (0..4).map(|_| {
            let random = Random::new(random.next_u64());
            let actor = Actor { db: db.clone(), random, stop: stop.clone(), done: done.clone() };
            Box::pin(actor.run()) as Pin<Box<dyn Future<Output = ()>>>
        });
        interleave(parts.collect(), order, polls).await;
    });
    let after = environment.disk().crash(seed);
    environment.shutdown();
    let again = SimulatedEnvironment::with_storage(seed, after);
    again.run_until_complete(async {
        let db = open(&again).await;
        nobody_lacks_a_parent(&db, &format!("UNTORN_SEED={seed} ({above:?}, {below:?})")).await;
        db.close().await.unwrap();
    });
    again.shutdown();
}

/// `UNTORN_SEED=<seed> cargo test --test integration foreign_keys_meeting` replays a failure.
#[test]
fn no_row_is_without_its_parent_after_a_power_loss() {
    let seeds: Vec<u64> = match std::env::var("UNTORN_SEED") {
        Ok(seed) => vec![seed.parse().expect("UNTORN_SEED is a number")],
        Err(_) => (1..=30).collect(),
    };
    for seed in seeds {
        println!("UNTORN_SEED={seed}");
        history(seed);
    }
}

/// A cascade of several batches over two tables, cut off after each number of polls.
#[test]
fn a_power_loss_leaves_a_cascade_whole_or_none_of_it() {
    let start = SimulatedEnvironment::new(3);
    start.run_until_complete(async {
        let db = open_with_tables(&start, Cascade).await;
        db.create_table("d", "g", child_of("c", SetNull, Cascade)).await.unwrap();
        let (child, grandchild) = (db.table("d", "c").unwrap(), db.table("d", "g").unwrap());
        let mut transaction = db.begin();
        for id in 1..=150 {
            transaction.insert(&child, &row(id, 3)).await.unwrap();
            transaction.insert(&grandchild, &row(id, id)).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        drop(transaction);
        db.close().await.unwrap();
    });
    let start_disk = start.disk().crash(3);
    start.shutdown();
    let (mut whole, mut none) = (0, 0);
    for polls in (1..).step_by(3) {
        let environment = SimulatedEnvironment::with_storage(polls, start_disk.crash(3));
        let ended = Rc::new(Cell::new(false));
        environment.run_until_complete(async {
            let db = open(&environment).await;
            let (parent, ended) = (db.table("d", "p").unwrap(), ended.clone());
            let cascade = async move {
                let mut transaction = db.begin();
                assert!(transaction.delete(&parent, &[Value::Int(3)]).await.unwrap());
                // Half of a cascade reaches the disk, too.
                db.store().flush_all().await.unwrap();
                transaction.commit(Durability::Sync).await.unwrap();
                ended.set(true);
            };
            interleave(vec![Box::pin(cascade)], polls, polls).await;
        });
        let after = environment.disk().crash(polls);
        environment.shutdown();
        let again = SimulatedEnvironment::with_storage(polls, after);
        again.run_until_complete(async {
            let db = open(&again).await;
            nobody_lacks_a_parent(&db, &format!("after {polls} polls")).await;
            let set_null = rows(&db, "g").await.iter().filter(|row| row.1 == 0).count();
            match (rows(&db, "p").await.len(), rows(&db, "c").await.len(), set_null) {
                (4, 0, 150) => whole += 1,
                (5, 150, 0) if !ended.get() => none += 1,
                other => panic!("after {polls} polls, ended {}: {other:?}", ended.get()),
            }
        });
        again.shutdown();
        if ended.get() {
            break;
        }
    }
    assert!(whole > 0 && none > 1, "{whole} whole, {none} none");
}
