//! Cycles of metadata locks.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::*;
use crate::asynchronous::Database;
use crate::asynchronous::Transaction;
use crate::metadata_lock::Access;
use crate::schema::{ColumnDef, TableDef};
use crate::types::{Collation, ColumnType, Value};
use crate::{Lock, Options};

fn waits<T>(outcome: Result<T, Blocked>) -> Wait {
    match outcome {
        Err(Blocked::Wait(wait)) => wait,
        Err(Blocked::Deadlock) => panic!("a deadlock"),
        Ok(_) => panic!("nothing to wait for"),
    }
}

fn is_deadlock<T>(outcome: Result<T, Blocked>) -> bool {
    matches!(outcome, Err(Blocked::Deadlock))
}

/// Two transactions use one table each, two definitions wait for them, and the transactions want each other's
/// table.
#[test]
fn a_cycle_through_two_waiting_definitions_ends_in_a_victim() {
    let graph = MetadataGraph::new();
    let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
    let [one, two, three, four] = [(); 4].map(|()| graph.owner());
    let use_a = a.share(Access::Read, &one).ok().unwrap();
    let _use_b = b.share(Access::Read, &two).ok().unwrap();
    let mut change_a = a.request_exclusive(&three);
    let waits_for_a = waits(change_a.grant(0));
    let mut change_b = b.request_exclusive(&four);
    let _waits_for_b = waits(change_b.grant(0));
    let _one_waits = waits(b.share(Access::Read, &one));
    assert!(is_deadlock(a.share(Access::Read, &two)), "its wait closes the cycle");
    // The others go on when the victim's holds are gone, or the first gives up.
    drop(use_a);
    assert!(waits_for_a.is_done());
    drop(waits_for_a);
    assert!(change_a.grant(0).is_ok());
}

#[test]
fn a_transaction_gives_way_to_the_definition_that_closes_the_cycle() {
    let graph = MetadataGraph::new();
    let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
    let (reader, definition) = (graph.owner(), graph.owner());
    let use_a = a.share(Access::Write, &reader).ok().unwrap();
    let _has_b = b.request_exclusive(&definition).grant(0).ok().unwrap();
    let wait = waits(b.share(Access::Read, &reader));
    let mut change_a = a.request_exclusive(&definition);
    let definition_waits = waits(change_a.grant(0));
    assert!(wait.is_done(), "the reader is woken to give up");
    drop(wait);
    assert!(is_deadlock(b.share(Access::Read, &reader)));
    drop(use_a);
    assert!(definition_waits.is_done());
    drop(definition_waits);
    assert!(change_a.grant(0).is_ok());
}

#[test]
fn a_wait_that_was_given_up_is_in_nobodys_way() {
    let graph = MetadataGraph::new();
    let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
    let (one, two) = (graph.owner(), graph.owner());
    let _use_a = a.share(Access::Read, &one).ok().unwrap();
    let _has_b = b.request_exclusive(&two).grant(0).ok().unwrap();
    drop(waits(b.share(Access::Read, &one)));
    let mut change_a = a.request_exclusive(&two);
    let _waits = waits(change_a.grant(0));
    assert!(is_deadlock(b.share(Access::Read, &one)));
}

#[test]
fn a_victim_that_gave_up_by_itself_waits_for_other_names_like_anybody() {
    let graph = MetadataGraph::new();
    let [a, b, c] = [(); 3].map(|()| Arc::new(MetadataLock::default()));
    let [reader, definition, third] = [(); 3].map(|()| graph.owner());
    let _use_a = a.share(Access::Write, &reader).ok().unwrap();
    let _has_b = b.request_exclusive(&definition).grant(0).ok().unwrap();
    let _has_c = c.request_exclusive(&third).grant(0).ok().unwrap();
    let wait = waits(b.share(Access::Read, &reader));
    let _definition_waits = waits(a.request_exclusive(&definition).grant(0));
    assert!(wait.is_done(), "the reader is woken to give up");
    // It does, but not because of that: its time had come, or it was killed.
    drop(wait);
    let _reader_waits = waits(c.share(Access::Read, &reader));
    // That it was a victim once keeps nobody from finding the next cycle.
    assert!(is_deadlock(a.request_exclusive(&third).grant(0)) || _reader_waits.is_done());
}

#[test]
fn more_holds_than_slots_are_all_known() {
    let graph = MetadataGraph::new();
    let locks: Vec<_> = (0..20).map(|_| Arc::new(MetadataLock::default())).collect();
    let (one, two) = (graph.owner(), graph.owner());
    let mut uses: Vec<_> = locks.iter().map(|lock| lock.share(Access::Read, &one).ok().unwrap()).collect();
    let extra = Arc::new(MetadataLock::default());
    let _has = extra.request_exclusive(&two).grant(0).ok().unwrap();
    for lock in &locks {
        let mut change = lock.request_exclusive(&two);
        let _waits = waits(change.grant(0));
        assert!(is_deadlock(extra.share(Access::Read, &one)));
    }
    uses.clear();
    for lock in &locks {
        assert!(lock.request_exclusive(&two).grant(0).is_ok());
    }
}

/// Two statements of one session wait at once: neither hides the other, and when one ends the other still
/// waits.
#[test]
fn two_statements_of_one_owner_wait_side_by_side() {
    let graph = MetadataGraph::new();
    let [a, b, c] = [(); 3].map(|()| Arc::new(MetadataLock::default()));
    for order in [[&a, &b], [&b, &a]] {
        let [session, one, two] = [(); 3].map(|()| graph.owner());
        let _use_c = c.share(Access::Read, &session).ok().unwrap();
        let _has_a = a.request_exclusive(&one).grant(0).ok().unwrap();
        let _has_b = b.request_exclusive(&two).grant(0).ok().unwrap();
        let first = waits(order[0].share(Access::Read, &session));
        let second = waits(order[1].share(Access::Read, &session));
        let _waits_for_c = waits(c.request_exclusive(&one).grant(0));
        let of_a = if std::ptr::eq(order[0], &raw const a) { &first } else { &second };
        assert!(of_a.is_done(), "the wait for a is in a cycle");
        assert!(!first.is_done() || !second.is_done(), "the other one is not");
        drop(first);
        drop(waits(c.request_exclusive(&two).grant(0)));
        assert!(second.is_done(), "both are now");
    }
}

/// That a wait ended in an error once means nothing to a wait for another lock, also where that is made in
/// the same memory.
#[test]
fn a_victims_mark_goes_with_its_lock() {
    let graph = MetadataGraph::new();
    for _ in 0..100 {
        let [reader, definition] = [(); 2].map(|()| graph.owner());
        let a = Arc::new(MetadataLock::default());
        let _use_a = a.share(Access::Write, &reader).ok().unwrap();
        let gone = Arc::new(MetadataLock::default());
        let has_it = gone.request_exclusive(&definition).grant(0).ok().unwrap();
        let wait = waits(gone.share(Access::Read, &reader));
        drop(waits(a.request_exclusive(&definition).grant(0)));
        assert!(wait.is_done(), "the reader is woken to give up");
        // It does, because it was killed.
        drop((wait, has_it, gone));
        let fresh = Arc::new(MetadataLock::default());
        let _has_it = fresh.request_exclusive(&definition).grant(0).ok().unwrap();
        drop(waits(fresh.share(Access::Read, &reader)));
    }
}

/// A database in a directory of its own, removed in the end.
struct Place(std::path::PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const PATIENCE: Duration = Duration::from_secs(600);

async fn lock_row(transaction: &mut Transaction, id: i64) {
    let rows = transaction.open_table("d", "rows", PATIENCE).await.unwrap();
    assert!(transaction.get(&rows, &[Value::Int(id)], Lock::Exclusive).await.unwrap().is_some());
}

/// Somebody uses a table that a definition waits for, and waits for a row. While the definition's session
/// looks for a cycle he gets the row, ends his transaction, and waits in his next one for a row that the
/// session has. At no moment is there a cycle, so nobody is a victim, between whichever two looks of the
/// search that happens.
#[test]
fn a_cycle_that_never_was_has_no_victim() {
    let place = Place(std::env::temp_dir().join(format!("untorn-cycle-{}", std::process::id())));
    let mut options = Options::new(&place.0).buffer_pool_bytes(8 << 20);
    options.redo_capacity_bytes = 8 << 20;
    let db = disk::block_on(Database::open(options)).unwrap();
    let def = || TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
    disk::block_on(async {
        db.create_database("d", Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("d", "rows", def()).await.unwrap();
        db.create_table("d", "named", def()).await.unwrap();
        let mut transaction = db.transaction();
        transaction.begin();
        let rows = transaction.open_table("d", "rows", PATIENCE).await.unwrap();
        for id in [1, 2] {
            transaction.insert(&rows, &[Value::Int(id)]).await.unwrap();
        }
        transaction.commit(txn::Durability::Sync).await.unwrap();
    });
    let graph = db.0.tables.graph.clone();
    let looks = Arc::new(AtomicU32::new(0));
    for moment in 0.. {
        assert!(moment < 100, "searches have no end");
        looks.store(0, Ordering::Relaxed);
        run_with_change_at(&db, &graph, &looks, moment);
        if looks.load(Ordering::Relaxed) <= moment {
            assert!(moment >= 2, "{moment} looks are no search");
            break;
        }
    }
    disk::block_on(db.close()).unwrap();
}

fn run_with_change_at(db: &Database, graph: &Arc<MetadataGraph>, looks: &Arc<AtomicU32>, moment: u32) {
    let mut keeper = db.transaction();
    keeper.begin();
    disk::block_on(lock_row(&mut keeper, 1));
    let mut user = db.transaction();
    user.begin();
    disk::block_on(user.open_table("d", "named", PATIENCE)).unwrap();
    let mut definer = db.transaction();
    definer.begin();
    disk::block_on(lock_row(&mut definer, 2));
    let (user_owner, definer_owner) = (user.metadata_owner().clone(), definer.metadata_owner().clone());
    let user_waits_for = {
        let graph = graph.clone();
        move |other: &Arc<MetadataOwner>| {
            let (rows, owner) = (graph.rows.get().unwrap(), user_owner.rows.as_ref().unwrap());
            let listed =
                rows.waiting().iter().filter_map(of_rows).any(|owner| Arc::ptr_eq(&owner, &user_owner));
            let wait = rows.wait_of(owner).filter(|_| listed);
            let blockers = wait.map(|wait| rows.blockers(owner, &wait)).unwrap_or_default();
            blockers.iter().filter_map(of_rows).any(|owner| Arc::ptr_eq(&owner, other))
        }
    };
    let until = |reached: &dyn Fn() -> bool| {
        while !reached() {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        let runs = scope.spawn(move || {
            disk::block_on(async {
                lock_row(&mut user, 1).await;
                user.rollback().await.unwrap();
                user.begin();
                lock_row(&mut user, 2).await;
                user.rollback().await.unwrap();
            });
        });
        until(&|| user_waits_for(keeper.metadata_owner()));
        let mut keeper = Some(keeper);
        let (counted, waits_for, begun) = (looks.clone(), user_waits_for.clone(), definer_owner.clone());
        *graph.before_look.lock() = Some(Box::new(move || {
            if counted.fetch_add(1, Ordering::Relaxed) == moment
                && let Some(mut keeper) = keeper.take()
            {
                disk::block_on(keeper.rollback()).unwrap();
                while !waits_for(&begun) {
                    std::thread::yield_now();
                }
            }
        }));
        let lock = db.name_lock("d", "named");
        let mut request = lock.request_exclusive(&definer_owner);
        let outcome = request.grant(0);
        // The keeper goes, if no look came to it.
        drop(graph.before_look.lock().take());
        match outcome {
            Err(Blocked::Deadlock) => panic!("a cycle was seen that never was (look {moment})"),
            Err(Blocked::Wait(wait)) => disk::block_on(wait),
            Ok(_) => panic!("the table was in use"),
        }
        assert!(request.grant(0).is_ok());
        drop(request);
        disk::block_on(definer.rollback()).unwrap();
        runs.join().unwrap();
    });
}
