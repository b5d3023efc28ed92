//! Loom's models of the lock table: every interleaving of two or three sessions on few locks.
//!
//! Three things must hold in all models. Nobody has an exclusive lock together with anybody else. Every wait
//! ends (a lost wake-up is a modelled thread that blocks for ever, which loom reports). When all transactions
//! have ended the table is empty, so that no request was left behind.

use std::sync::Arc;

use disk::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::description::LockDescription;
use super::mode::{Extent, LockMode, WaitPolicy};
use super::owner::Owner;
use super::table::{Acquired, LockTable};
use super::target::LockTarget;
use super::wait::WaitState;

const INDEX: u64 = 1;

fn target(place: u64) -> LockTarget {
    LockTarget { index: INDEX, place }
}

/// Explores with a bounded number of preemptions: what two threads can do to each other needs few.
fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// Locks a record, as often as it takes. `false`: chosen as a deadlock's victim.
fn lock(table: &Arc<LockTable>, owner: &Arc<Owner>, target: LockTarget) -> bool {
    loop {
        match table.request(owner, target, LockMode::X_RECORD, WaitPolicy::Wait, &LockDescription::default) {
            Acquired::Granted { .. } => return true,
            Acquired::Refused => unreachable!("it may wait"),
            Acquired::Wait(wait) => match wait.wait_in_model() {
                WaitState::Deadlock => return false,
                WaitState::Granted | WaitState::Retry => {}
                state => panic!("{state:?}"),
            },
        }
    }
}

fn assert_empty(table: &LockTable) {
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 0);
    assert!((0..4).all(|place| !table.is_locked(target(place))));
}

#[test]
fn loom_an_exclusive_lock_has_one_owner_and_no_wake_up_is_lost() {
    model(3, || {
        let table = LockTable::new(1);
        let inside = Arc::new(AtomicUsize::new(0));
        let session = {
            let (table, inside) = (table.clone(), inside.clone());
            move || {
                let owner = Arc::new(Owner::default());
                assert!(lock(&table, &owner, target(1)));
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                inside.fetch_sub(1, Ordering::SeqCst);
                table.release_all(&owner);
            }
        };
        let other = thread::spawn(session.clone());
        session();
        other.join().unwrap();
        assert_empty(&table);
    });
}

#[test]
fn loom_a_cycle_has_one_victim_and_the_other_goes_on() {
    model(2, || {
        let table = LockTable::new(1);
        let session = |first: u64, second: u64| {
            let table = table.clone();
            move || {
                let owner = Arc::new(Owner::default());
                assert!(lock(&table, &owner, target(first)));
                let both = lock(&table, &owner, target(second));
                table.release_all(&owner);
                both
            }
        };
        let other = thread::spawn(session(2, 1));
        let mine = session(1, 2)();
        let theirs = other.join().unwrap();
        assert!(mine || theirs, "somebody goes on");
        assert_empty(&table);
    });
}

/// While one looks for a deadlock, the one that it waits for ends its transaction, and waits for it in the
/// next one.
#[test]
fn loom_who_waits_for_a_transaction_that_has_ended_is_in_no_cycle() {
    model(3, || {
        let table = LockTable::new(1);
        let (first, second) = (Arc::new(Owner::default()), Arc::new(Owner::default()));
        assert!(lock(&table, &first, target(1)));
        assert!(lock(&table, &second, target(2)));
        let other = {
            let table = table.clone();
            thread::spawn(move || {
                table.release_all(&second);
                let locked = lock(&table, &second, target(1));
                table.release_all(&second);
                locked
            })
        };
        let locked = lock(&table, &first, target(2));
        table.release_all(&first);
        let other_locked = other.join().unwrap();
        assert!(locked && other_locked, "there was no cycle");
        assert_empty(&table);
    });
}

/// A waiter gives up (its statement was dropped, or timed out) just when the lock is released to it.
#[test]
fn loom_giving_up_and_a_grant_do_not_both_happen() {
    model(3, || {
        let table = LockTable::new(1);
        let holder = Arc::new(Owner::default());
        assert!(lock(&table, &holder, target(1)));
        let releaser = {
            let table = table.clone();
            thread::spawn(move || table.release_all(&holder))
        };
        let owner = Arc::new(Owner::default());
        match table.request(
            &owner,
            target(1),
            LockMode::X_RECORD,
            WaitPolicy::Wait,
            &LockDescription::default,
        ) {
            Acquired::Wait(wait) => drop(wait),
            Acquired::Granted { .. } => {}
            Acquired::Refused => unreachable!(),
        }
        table.release_all(&owner);
        releaser.join().unwrap();
        assert_empty(&table);
    });
}

/// Somebody makes the implicit lock of a transaction explicit while that transaction ends.
#[test]
fn loom_no_lock_is_added_for_a_transaction_that_has_ended() {
    model(3, || {
        let table = LockTable::new(1);
        let writer = Arc::new(Owner::default());
        let epoch = writer.current();
        let ending = {
            let (table, writer) = (table.clone(), writer.clone());
            thread::spawn(move || table.release_all(&writer))
        };
        let owner = Arc::new(Owner::default());
        table.make_explicit(&epoch, target(1));
        // Waits for the writer, if it still had its lock, and for nobody otherwise.
        assert!(lock(&table, &owner, target(1)));
        ending.join().unwrap();
        table.release_all(&owner);
        assert!(!table.make_explicit(&epoch, target(1)), "it has ended");
        assert_empty(&table);
    });
}

/// A scan locks a gap while another session wants to insert into it: one of the two sees the other.
#[test]
fn loom_a_gap_lock_and_an_insertion_see_each_other() {
    model(3, || {
        let table = LockTable::new(1);
        // The leaf's latch: what the scan has seen of the gap, what the insertion has put there.
        let leaf = Arc::new(disk::sync::Mutex::new(Vec::new()));
        let scan = {
            let (table, leaf) = (table.clone(), leaf.clone());
            thread::spawn(move || {
                let owner = Arc::new(Owner::default());
                let gap = LockMode::new(false, Extent::Gap);
                let acquired =
                    table.request(&owner, target(2), gap, WaitPolicy::Wait, &LockDescription::default);
                assert!(matches!(acquired, Acquired::Granted { .. }), "a gap lock never waits");
                let first = leaf.lock().len();
                let second = leaf.lock().len();
                assert_eq!(first, second, "a phantom");
                table.release_all(&owner);
            })
        };
        let owner = Arc::new(Owner::default());
        loop {
            let mut page = leaf.lock();
            if table.has_gap_locks(INDEX)
                && let Acquired::Wait(wait) =
                    table.request_insert(&owner, target(2), &LockDescription::default)
            {
                drop(page);
                wait.wait_in_model();
                continue;
            }
            page.push(());
            break;
        }
        table.release_all(&owner);
        scan.join().unwrap();
        assert_empty(&table);
    });
}

/// A scan downwards locks the gap above its range, whose end is on another leaf than the range: a look at the
/// first leaf tells which entry follows, the gap is locked with the second leaf latched, and the lock stands
/// when the first leaf still says the same.
#[test]
fn loom_a_gap_that_reaches_over_to_the_next_leaf_is_guarded() {
    model(3, || {
        let table = LockTable::new(1);
        // Whether the end of the range's leaf has an entry behind the range; the entry after that is on the
        // next leaf.
        let leaf = Arc::new(disk::sync::Mutex::new(false));
        let (behind, next) = (target(1), target(2));
        let scan = {
            let (table, leaf) = (table.clone(), leaf.clone());
            thread::spawn(move || {
                let owner = Arc::new(Owner::default());
                let gap = LockMode::new(true, Extent::Gap);
                let mut confirm = None;
                loop {
                    let above = if *leaf.lock() { behind } else { next };
                    let acquired =
                        table.request(&owner, above, gap, WaitPolicy::Wait, &LockDescription::default);
                    assert!(matches!(acquired, Acquired::Granted { .. }), "a gap lock never waits");
                    if confirm == Some(above) {
                        break;
                    }
                    confirm = Some(above);
                }
                let first = *leaf.lock();
                let second = *leaf.lock();
                assert_eq!(first, second, "a phantom");
                assert!(!second || confirm == Some(behind), "the gap above the range is not guarded");
                table.release_all(&owner);
            })
        };
        let owner = Arc::new(Owner::default());
        loop {
            let mut page = leaf.lock();
            if table.has_gap_locks(INDEX)
                && let Acquired::Wait(wait) = table.request_insert(&owner, next, &LockDescription::default)
            {
                drop(page);
                wait.wait_in_model();
                continue;
            }
            *page = true;
            break;
        }
        table.release_all(&owner);
        scan.join().unwrap();
        assert_empty(&table);
    });
}
