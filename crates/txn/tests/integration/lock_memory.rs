//! The memory for row locks has a limit, and is given back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use untorn_txn::*;

#[test]
fn a_statement_that_finds_no_room_for_locks_fails_and_its_transaction_is_rolled_back() {
    let world = World::new(21);
    let rows: Vec<(i32, i32)> = (0..20_000).map(|id| (id, id)).collect();
    world.fill(&rows);
    world.system.set_lock_memory_max(256 << 10);
    let (mut large, mut small) = (world.session(), world.session());
    large.begin();
    world.run(large.update(7, 70)).unwrap();
    let all = || KeyRange::all();
    let scan = large.try_scan(ScanIndex::Clustered, all(), Direction::Forward, for_update());
    let result = world.run(scan);
    assert!(matches!(result, Err(Error::LockTableFull)), "{result:?}");
    assert!(!large.trx.is_active(), "rolled back");
    assert_eq!(world.system.status().locks, 0);
    // The tables keep a few slots.
    assert!(world.system.status().lock_bytes < 2 << 20);
    small.begin();
    assert_eq!(world.run(small.lock(7)).unwrap(), Some(7));
    world.run(small.commit());
    world.system.set_lock_memory_max(64 << 20);
    large.begin();
    let scan = large.try_scan(ScanIndex::Clustered, all(), Direction::Forward, for_update());
    assert_eq!(world.run(scan).unwrap().len(), rows.len());
    world.run(large.commit());
    assert_eq!(world.system.status().locks, 0);
    world.check();
}
