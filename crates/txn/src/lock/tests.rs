//! The lock table by itself: who waits for whom, what the search finds and what it costs.

use std::sync::Arc;

use disk::sync::atomic::Ordering;

use super::description::LockDescription;
use super::mode::{Extent, LockMode, WaitPolicy};
use super::outside_waits::{RowOwner, RowWaits};
use super::owner::Owner;
use super::table::{Acquired, LockTable};
use super::target::LockTarget;
use super::wait::{LockWait, WaitState};

const X: LockMode = LockMode::X_RECORD;

fn record(number: u64) -> LockTarget {
    LockTarget { index: 1, place: number << 2 | 1 }
}

fn owner() -> Arc<Owner> {
    Arc::new(Owner::default())
}

fn next_key(exclusive: bool) -> LockMode {
    LockMode::new(exclusive, Extent::NextKey)
}

fn ask(table: &Arc<LockTable>, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) -> Acquired {
    table.request(owner, target, mode, WaitPolicy::Wait, &LockDescription::default)
}

#[track_caller]
fn take(table: &Arc<LockTable>, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) {
    assert!(matches!(ask(table, owner, target, mode), Acquired::Granted { .. }), "nobody is in the way");
}

/// Asks for a lock that others have, and searches for deadlocks as the await would.
#[track_caller]
fn wait(table: &Arc<LockTable>, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) -> LockWait {
    let Acquired::Wait(wait) = ask(table, owner, target, mode) else { panic!("somebody is in the way") };
    wait.search();
    wait
}

fn steps(table: &LockTable) -> u64 {
    table.detector.lock().steps
}

/// What the search of the last of `waiters` on one row looks at.
fn cost_of_last_wait(waiters: u64, mode_of: impl Fn(u64) -> LockMode) -> u64 {
    let table = LockTable::new(1);
    let (holder, first) = (owner(), owner());
    take(&table, &holder, record(1), X);
    take(&table, &first, record(2), X);
    // The holder waits elsewhere, so that the search must go on behind it.
    let held_up = wait(&table, &holder, record(2), X);
    let owners: Vec<Arc<Owner>> = (0..waiters).map(|_| owner()).collect();
    let mut waits: Vec<LockWait> = owners
        .iter()
        .zip(0..)
        .map(|(owner, number)| wait(&table, owner, record(1), mode_of(number)))
        .collect();
    let before = steps(&table);
    let last = owner();
    waits.push(wait(&table, &last, record(1), X));
    let cost = steps(&table) - before;
    assert!(waits.iter().all(|wait| wait.cell.state() == WaitState::Waiting));
    assert_eq!(table.counters.deadlocks.load(Ordering::Relaxed), 0);
    drop((waits, held_up));
    cost
}

#[test]
fn a_search_looks_at_each_waiter_a_few_times_only() {
    let modes: [fn(u64) -> LockMode; 2] = [
        |_| X,
        // Every fourth wants to share.
        |number| LockMode::new(number % 4 != 0, [Extent::Record, Extent::NextKey][(number % 2) as usize]),
    ];
    for mode_of in modes {
        let (few, many) = (cost_of_last_wait(100, mode_of), cost_of_last_wait(1000, mode_of));
        assert!(many <= 11 * few, "100 waiters: {few}, 1000 waiters: {many}");
        assert!(many <= 8 * 1000, "{many}");
    }
}

/// A chain of waits, each on a row of its own.
#[test]
fn a_search_from_outside_is_given_each_owner_once() {
    let table = LockTable::new(1);
    let holder = owner();
    take(&table, &holder, record(1), X);
    let owners: Vec<Arc<Owner>> = (0..100).map(|_| owner()).collect();
    let _waits: Vec<LockWait> = owners.iter().map(|owner| wait(&table, owner, record(1), X)).collect();
    let rows = RowWaits(Arc::downgrade(&table));
    let mut search = rows.search();
    let mut given = Vec::new();
    for waiter in owners.iter().rev().cloned().map(RowOwner) {
        let wait = rows.wait_of(&waiter).unwrap();
        given.extend(search.new_blockers(&waiter, &wait));
    }
    // The holder, and all but the last.
    assert_eq!(given.len(), owners.len());
}

#[test]
fn a_search_along_a_chain_is_linear_and_finds_its_end() {
    let table = LockTable::new(1);
    let owners: Vec<Arc<Owner>> = (0..500).map(|_| owner()).collect();
    for (owner, number) in owners.iter().zip(0..) {
        take(&table, owner, record(number), X);
    }
    let waits: Vec<LockWait> =
        owners.iter().zip(1..500).map(|(owner, number)| wait(&table, owner, record(number), X)).collect();
    let before = steps(&table);
    owners[499].undo_records.store(1, Ordering::Relaxed);
    let closing = wait(&table, &owners[499], record(0), X);
    assert!(steps(&table) - before <= 8 * 500);
    assert_eq!(table.counters.deadlocks.load(Ordering::Relaxed), 1);
    // The one with the most work goes on.
    assert_eq!(closing.cell.state(), WaitState::Waiting);
    let victims = waits.iter().filter(|wait| wait.cell.state() == WaitState::Deadlock).count();
    assert_eq!(victims, 1);
}

/// T5 waits for T2's lock on a gap; T1 waits for T5 elsewhere; then T1 inherits a lock on that gap.
#[test]
fn a_cycle_closed_by_an_inherited_lock_is_found() {
    let table = LockTable::new(1);
    let (t1, t2, t5) = (owner(), owner(), owner());
    let (entry, elsewhere, removed) = (record(1), record(2), record(3));
    take(&table, &t2, entry, next_key(false));
    take(&table, &t1, removed, next_key(false));
    take(&table, &t5, elsewhere, X);
    let insert = || {
        let asked = table.request_insert(&t5, entry, &LockDescription::default);
        let Acquired::Wait(wait) = asked else { panic!("the gap is locked") };
        wait.search();
        wait
    };
    let mut t5_waits = insert();
    let t1_waits = wait(&table, &t1, elsewhere, X);
    table.bequeath(removed, entry);
    assert_eq!(t5_waits.finish(), WaitState::Retry, "it must look for cycles again");
    t1.undo_records.store(5, Ordering::Relaxed);
    assert_eq!(insert().cell.state(), WaitState::Deadlock);
    assert_eq!(t1_waits.cell.state(), WaitState::Waiting);
}

/// The writer of a row may not have come to this entry of it yet. Were it given the lock, it would pass by
/// who has the entry locked.
#[test]
fn a_lock_that_would_have_been_waited_for_is_not_implicit() {
    let table = LockTable::new(1);
    let (scan, other, writer) = (owner(), owner(), owner());
    take(&table, &scan, record(1), next_key(false));
    assert!(!table.make_explicit(&writer.current(), record(1)));
    // The same when there is a queue.
    take(&table, &other, record(1), next_key(false));
    assert!(!table.make_explicit(&writer.current(), record(1)));
    let asked = table.request_change(&writer, record(1), WaitPolicy::Wait, &LockDescription::default);
    let Acquired::Wait(wait) = asked else { panic!("two have the entry locked") };
    table.release_all(&other);
    assert_eq!(wait.cell.state(), WaitState::Waiting);
    table.release_all(&scan);
    assert_eq!(wait.cell.state(), WaitState::Granted);
}

/// Who waits for me does not stand in my way.
#[test]
fn a_holder_passes_by_those_who_wait_for_it() {
    let table = LockTable::new(1);
    let (holder, waiter, reader) = (owner(), owner(), owner());
    take(&table, &holder, record(1), X);
    let waits = wait(&table, &waiter, record(1), next_key(true));
    take(&table, &holder, record(1), next_key(true));
    assert!(matches!(
        table.request_insert(&holder, record(1), &LockDescription::default),
        Acquired::Granted { .. }
    ));
    // Others still come one after the other.
    let also_waits = wait(&table, &reader, record(1), next_key(false));
    table.release_all(&holder);
    assert_eq!(waits.cell.state(), WaitState::Granted);
    assert_eq!(also_waits.cell.state(), WaitState::Waiting);
}

/// Two who share and both want more are a deadlock, no matter who else is in the queue.
#[test]
fn two_who_share_and_want_it_alone_are_a_deadlock() {
    let table = LockTable::new(1);
    let (a, b, c) = (owner(), owner(), owner());
    take(&table, &a, record(1), LockMode::new(false, Extent::Record));
    take(&table, &b, record(1), LockMode::new(false, Extent::Record));
    let other = wait(&table, &c, record(1), X);
    let first = wait(&table, &a, record(1), X);
    assert_eq!(first.cell.state(), WaitState::Waiting);
    let second = wait(&table, &b, record(1), X);
    assert_eq!(second.cell.state(), WaitState::Deadlock);
    table.release_all(&b);
    // It passes by the one who waits for its share.
    assert_eq!(first.cell.state(), WaitState::Granted);
    assert_eq!(other.cell.state(), WaitState::Waiting);
}

/// A waiter goes out of the queue because it must wait for one more: those who waited for it alone go on.
#[test]
fn who_waited_only_for_a_waiter_that_left_goes_on() {
    let table = LockTable::new(1);
    let (holder, scan, insert) = (owner(), owner(), owner());
    take(&table, &holder, record(1), LockMode::new(false, Extent::Record));
    let mut scan_waits = wait(&table, &scan, record(1), next_key(true));
    let Acquired::Wait(mut insert_waits) =
        table.request_insert(&insert, record(1), &LockDescription::default)
    else {
        panic!("the scan stands before it")
    };
    assert!(table.make_explicit(&holder.current(), record(1)));
    assert_eq!(scan_waits.finish(), WaitState::Retry);
    assert_eq!(insert_waits.finish(), WaitState::Granted);
}

/// A transaction that dropped its wait knows of no guard, and could not release it.
#[test]
fn the_guard_of_a_key_does_not_stay_with_one_who_gave_up() {
    let table = LockTable::new(1);
    let guard = LockTarget { index: 1, place: 1 << 2 | 3 };
    assert!(guard.is_key_guard());
    let (first, gone, next) = (owner(), owner(), owner());
    take(&table, &first, guard, X);
    let waits = wait(&table, &gone, guard, X);
    table.release(&first, guard, X);
    assert_eq!(waits.cell.state(), WaitState::Granted);
    drop(waits);
    take(&table, &next, guard, X);
    assert_eq!(gone.lock_count(), 0);
}

/// The wait that was seen in a cycle has ended, and its owner waits for something else.
#[test]
fn only_the_wait_that_was_in_the_cycle_is_a_victims() {
    let table = LockTable::new(1);
    let (first, victim, other) = (owner(), owner(), owner());
    take(&table, &first, record(1), X);
    take(&table, &other, record(2), X);
    let mut waits = wait(&table, &victim, record(1), X);
    let seen = victim.waiting.lock().clone().expect("it waits");
    table.release_all(&first);
    assert_eq!(waits.finish(), WaitState::Granted);
    let waits = wait(&table, &victim, record(2), X);
    assert!(!table.abort_this_wait(&victim, &seen, WaitState::Deadlock));
    assert_eq!(waits.cell.state(), WaitState::Waiting);
}

/// Keys as fingerprints are: spread over all bits.
fn scattered(number: u64) -> LockTarget {
    record(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2)
}

const MANY: u64 = 100_000;

fn lock_many(table: &Arc<LockTable>, owner: &Arc<Owner>, count: u64) {
    (0..count).for_each(|number| take(table, owner, scattered(number), X));
}

#[test]
fn many_locks_take_little_memory_and_give_it_back() {
    let table = LockTable::new(1);
    let (large, small) = (owner(), owner());
    take(&table, &small, scattered(MANY), X);
    lock_many(&table, &large, MANY);
    let held = large.held.lock().places.capacity() * size_of::<u64>();
    assert_eq!(large.lock_count() as u64, MANY);
    // Twice sixteen bytes and a byte of control at worst, just after the tables have grown.
    assert!(table.bytes() + held <= 40 * MANY as usize, "{} and {held}", table.bytes());
    let peak = table.bytes();
    table.release_all(&large);
    assert!(table.bytes() <= peak / 10, "{} of {peak}", table.bytes());
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 1);
    assert_eq!((large.lock_count(), small.lock_count()), (0, 1));
    table.release_all(&small);
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 0);
}

/// Purge takes entries away that a large transaction has locked: no list of that transaction is searched from
/// end to end.
#[test]
fn one_of_many_locks_goes_without_a_search() {
    let table = LockTable::new(1);
    let large = owner();
    large.record_locks_only.store(true, Ordering::Relaxed);
    lock_many(&table, &large, MANY);
    assert!(large.held.lock().places.len() <= 4096);
    for number in 0..MANY {
        table.bequeath(scattered(number), scattered(MANY + number));
    }
    assert_eq!(large.lock_count(), 0);
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 0);
    table.release_all(&large);
    lock_many(&table, &large, 3);
    assert_eq!(large.held.lock().places.len(), 3, "the next transaction is listed");
    table.release_all(&large);
}

#[test]
fn a_large_release_comes_in_slices_and_wakes_who_waits() {
    let table = LockTable::new(1);
    let large = owner();
    lock_many(&table, &large, MANY);
    let others: Vec<Arc<Owner>> = (0..50).map(|_| owner()).collect();
    let waits: Vec<LockWait> =
        others.iter().zip(0..).map(|(other, number)| wait(&table, other, scattered(number), X)).collect();
    let epoch = large.current();
    let mut rest = table.release_in_slices(&large).expect("very many");
    assert!(!table.make_explicit(&epoch, record(1)), "the transaction has ended");
    assert!(rest.step());
    let granted =
        |waits: &[LockWait]| waits.iter().filter(|wait| wait.cell.state() == WaitState::Granted).count();
    assert!(granted(&waits) < waits.len());
    drop(rest);
    assert_eq!(granted(&waits), waits.len());
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 50);
    drop(waits);
    others.iter().for_each(|other| table.release_all(other));
    assert_eq!(table.counters.locks.load(Ordering::Relaxed), 0);
}

#[test]
fn no_locks_are_given_when_their_memory_is_used_up() {
    let table = LockTable::new(1);
    table.set_bytes_max(256 << 10);
    let (large, other) = (owner(), owner());
    let refused = (0..MANY).find_map(|number| match ask(&table, &large, scattered(number), X) {
        Acquired::Wait(wait) => Some((number, wait)),
        _ => None,
    });
    let (number, mut refused) = refused.expect("the memory is used up");
    assert_eq!(refused.finish(), WaitState::NoRoom);
    assert!((5_000..30_000).contains(&number), "{number}");
    // What it has it keeps, and changes that need no lock go on.
    take(&table, &large, scattered(0), X);
    assert!(matches!(
        table.request_change(&other, scattered(MANY), WaitPolicy::Wait, &LockDescription::default),
        Acquired::Granted { .. }
    ));
    table.release_all(&large);
    take(&table, &other, scattered(0), X);
    table.release_all(&other);
}

/// An owner that has gone with its locks (a rollback that failed) keeps them.
#[test]
fn locks_outlive_whoever_asked_for_them() {
    let table = LockTable::new(1);
    let (gone, other, third) = (owner(), owner(), owner());
    take(&table, &gone, record(1), X);
    drop(gone);
    take(&table, &third, record(2), X);
    let waits = wait(&table, &other, record(1), X);
    assert_eq!(waits.cell.state(), WaitState::Waiting);
}
