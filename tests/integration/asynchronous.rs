//! The face of programs with an executor: its futures may go to other threads, and be dropped at any await.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;
use untorn::asynchronous::{Database, KeyValue, Transaction, block_on};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType};
use untorn::{Error, Options, WaitPolicy};

fn assert_send<T: Send>(_: &T) {}

fn table_def() -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"])
}

#[test]
fn futures_go_to_other_threads() {
    block_on(async {
        let db = Database::in_memory().await.unwrap();
        let parts = vec![KeyPart::whole(0)];
        let key = || KeyDef::new("k", KeyKind::Secondary, parts.clone());
        let session = db.begin();
        let definitions = db.definitions().session(&session).timeout(Duration::ZERO);
        let t = ("test", "t");
        assert_send(&definitions.create_database("test", Collation::Utf8mb4Bin));
        assert_send(&definitions.drop_database("test"));
        assert_send(&definitions.create_table("test", "t", table_def()));
        assert_send(&definitions.create_table_if_missing("test", "t", table_def()));
        assert_send(&definitions.drop_table("test", "t"));
        assert_send(&definitions.drop_tables(&[t]));
        assert_send(&definitions.rename_table(t, t));
        assert_send(&definitions.rename_tables(&[(t, t)]));
        assert_send(&definitions.truncate_table("test", "t"));
        assert_send(&definitions.create_index("test", "t", key()));
        assert_send(&definitions.drop_index("test", "t", "k"));
        assert_send(&definitions.change_indexes("test", "t", vec![key()], &["k"]));
        assert_send(&definitions.set_auto_increment("test", "t", 1));
        assert_send(&definitions.check_table("test", "t"));
        assert_send(&definitions.export_table("test", "t"));
        assert_send(&definitions.discard_tablespace("test", "t"));
        assert_send(&definitions.import_tablespace("test", "t"));
        assert_send(&Database::in_memory());
        assert_send(&db.key_value::<u32, u32>("numbers"));
        let names = db.key_value::<(String, u32), Option<String>>("names").await.unwrap();
        let mut t = db.begin();
        assert_send(&names.get(&mut t, ("a", 1)));
        assert_send(&names.get_for_update_or(&mut t, ("a", 1), WaitPolicy::NoWait));
        assert_send(&names.put(&mut t, ("a", 1), Some("x")));
        assert_send(&names.insert(&mut t, ("a", 1), None));
        assert_send(&names.insert_all(&mut t, [(("a", 1), None)]));
        assert_send(&names.put_all(&mut t, [(("a", 1), None)]));
        assert_send(&names.change(&mut t, ("a", 1), |old| old));
        assert_send(&names.remove(&mut t, ("a", 1)));
        assert_send(&names.clear(&db));
        assert_send(&names.last(&mut t));
        assert_send(&names.of(&mut t, "a").next_back());
        let spawned = {
            let (db, names) = (db.clone(), names.clone());
            async move {
                let (key, value) = ("a".to_owned(), "spawned".to_owned());
                db.transact(async |mut t| names.put(&mut t, (&key, 1), Some(&value)).await).await
            }
        };
        assert_send(&spawned);
        // And really does.
        let (db, names) = (db.clone(), names.clone());
        let there = std::thread::spawn(move || {
            block_on(db.transact(async |mut t| names.put(&mut t, ("a", 1), Some("there")).await))
        });
        assert!(there.join().unwrap().unwrap());
    });
}

/// What a program calls its errors.
#[derive(Debug)]
enum Refused {
    Empty,
    Database(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Database(error)
    }
}

#[test]
fn transact_repeats_conflicts_and_returns_other_errors_as_they_are() {
    block_on(async {
        let db = Database::in_memory().await.unwrap();
        let stock = db.key_value::<u32, u32>("stock").await.unwrap();
        let runs = AtomicU32::new(0);
        let refused = db.transact(async |mut t| {
            runs.fetch_add(1, Ordering::Relaxed);
            stock.put(&mut t, 2, 2).await?;
            match stock.get_for_update(&mut t, 1).await? {
                Some(left) => Ok(left),
                None => Err(Refused::Empty),
            }
        });
        assert!(matches!(refused.await, Err(Refused::Empty)));
        assert_eq!(stock.get(&mut db.begin(), 2).await.unwrap(), None);
        let mut holder = db.begin();
        stock.put(&mut holder, 1, 1).await.unwrap();
        let late = db.transact(async |mut t| {
            runs.fetch_add(1, Ordering::Relaxed);
            t.engine_mut().set_lock_wait_timeout(Duration::ZERO);
            stock.put(&mut t, 1, 5).await?;
            Err::<(), Refused>(Refused::Empty)
        });
        assert!(matches!(late.await, Err(Refused::Database(error)) if error.is_retryable()));
        assert_eq!(runs.load(Ordering::Relaxed), 3, "once, and twice");
        let kept = std::sync::Mutex::new(None);
        let lost = db.transact(async |t| {
            *kept.lock().unwrap() = Some(t);
            Ok::<(), Error>(())
        });
        assert!(matches!(lost.await, Err(Error::Setting { .. })));
        drop(kept);
        holder.commit(untorn::Durability::Sync).await.unwrap();
        db.transact(async |mut t| stock.change(&mut t, 1, |left| left.map(|left| left + 1)).await)
            .await
            .unwrap();
        assert_eq!(stock.get(&mut db.begin(), 1).await.unwrap(), Some(2));
    });
}

/// Polls `future` this many times at most, and drops it where it waits then.
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

const ACCOUNTS: u32 = 600;

async fn accounts(environment: &Arc<SimulatedEnvironment>) -> (Database, KeyValue<u32, i64>) {
    let shared: Arc<dyn Environment> = environment.clone();
    // A pool of few pages, so that reads wait for the disk.
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    let db = Database::open_in(shared, options).await.unwrap();
    let accounts = db.key_value::<u32, i64>("accounts").await.unwrap();
    db.transact(async |mut t| accounts.insert_all(&mut t, (0..ACCOUNTS).map(|id| (id, 10))).await)
        .await
        .unwrap();
    (db, accounts)
}

async fn sum(t: &mut Transaction, accounts: &KeyValue<u32, i64>) -> (usize, i64) {
    let (mut count, mut sum) = (0, 0);
    let mut pairs = accounts.iter(t);
    while let Some((_, balance)) = pairs.next().await.unwrap() {
        (count, sum) = (count + 1, sum + balance);
    }
    (count, sum)
}

/// All of the transaction is there, or nothing of it; and the rows are free afterwards.
#[test]
fn a_transact_may_be_dropped_at_any_await() {
    for waits_for_another in [false, true] {
        let mut cut = 0;
        for polls in 1.. {
            let environment = SimulatedEnvironment::new(polls as u64);
            let done = environment.run_until_complete(async {
                let (db, accounts) = accounts(&environment).await;
                let mut other = db.begin();
                if waits_for_another {
                    accounts.get_for_update(&mut other, 500).await.unwrap();
                }
                let moved = db.transact(async |mut t| -> Result<_, Error> {
                    accounts.change(&mut t, 3, |balance| balance.map(|balance| balance - 7)).await?;
                    accounts.change(&mut t, 500, |balance| balance.map(|balance| balance + 7)).await
                });
                let moved = async {
                    let moved = pin!(moved);
                    if waits_for_another {
                        let release = async {
                            environment.sleep(Duration::from_millis(1)).await;
                            other.rollback().await.unwrap();
                        };
                        return both(moved, release).await;
                    }
                    moved.await
                };
                let done = for_polls(moved, polls).await;
                drop(other);
                // Its rows are given back in the background.
                environment.sleep(Duration::from_millis(100)).await;
                let mut t = db.begin();
                let all = (ACCOUNTS as usize, 10 * i64::from(ACCOUNTS));
                assert_eq!(sum(&mut t, &accounts).await, all, "{polls} polls");
                let first = accounts.get(&mut t, 3).await.unwrap();
                assert!(matches!(first, Some(3 | 10)), "{polls} polls: {first:?}");
                if let Some(result) = &done {
                    assert_eq!((result.as_ref().unwrap(), first), (&Some(17), Some(3)));
                }
                for id in [3, 500] {
                    accounts.get_for_update_or(&mut t, id, WaitPolicy::NoWait).await.unwrap();
                }
                t.rollback().await.unwrap();
                db.close().await.unwrap();
                done.is_some()
            });
            environment.shutdown();
            cut += usize::from(!done);
            if done {
                break;
            }
        }
        assert!(cut > 0);
    }
}

/// Drives both to their ends; the answer of the first.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> A {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut answer, mut over) = (None, false);
    std::future::poll_fn(|context| {
        over = over || second.as_mut().poll(context).is_ready();
        if answer.is_none()
            && let Poll::Ready(ready) = first.as_mut().poll(context)
        {
            answer = Some(ready);
        }
        if over && answer.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answer.expect("it is there")
}

/// A step that was dropped is made again: no pair is left out, and none comes twice.
#[test]
fn a_step_of_pairs_may_be_dropped_at_any_await() {
    let environment = SimulatedEnvironment::new(7);
    environment.run_until_complete(async {
        let (db, accounts) = accounts(&environment).await;
        let (mut t, mut cut) = (db.begin(), 0);
        let mut holder = db.begin();
        accounts.get_for_update(&mut holder, 300).await.unwrap();
        // Reads that lock wait for the holder, again and again.
        let mut reader = db.begin_at(untorn::Isolation::Serializable);
        let mut pairs = accounts.range(&mut reader, 290..);
        let mut keys = Vec::new();
        while keys.len() < 20 {
            match for_polls(pairs.next(), 1).await {
                Some(pair) => keys.push(pair.unwrap().unwrap().0),
                None => {
                    cut += 1;
                    if cut == 3 {
                        holder.rollback().await.unwrap();
                    }
                }
            }
        }
        assert!(cut >= 3);
        assert_eq!(keys, (290..310).collect::<Vec<_>>());
        reader.rollback().await.unwrap();
        assert_eq!(sum(&mut t, &accounts).await.0, ACCOUNTS as usize);
        t.rollback().await.unwrap();
        db.close().await.unwrap();
    });
    environment.shutdown();
}
