//! Negative controls: one promise broken at a time, and the checker must notice each. A checker that stays green here is
//! itself the bug.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use untorn_torture::explore::{Effort, Explorer, Failure};
use untorn_torture::history::{Plan, Sabotage, record};

/// States tried per history, and histories, before a control counts as not noticed. (The rarest is a copy lost from the
/// doublewrite file together with a page that is torn.)
const STATES: u64 = 300;
const HISTORIES: u64 = 60;

/// Explores histories until something is found.
fn first_failure(plan: impl Fn(u64) -> Plan) -> Option<Failure> {
    (1..=HISTORIES).find_map(|seed| {
        let plan = plan(seed);
        let history = record(&plan);
        assert_eq!(history.failure, None, "history {seed}");
        let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, STATES, 1);
        explorer.run();
        explorer.failures.pop()
    })
}

fn must_be_noticed(sabotage: Sabotage) {
    let failure = first_failure(|seed| Plan::new(seed).with(sabotage));
    let failure = failure.unwrap_or_else(|| panic!("{sabotage:?} was not noticed"));
    println!("{sabotage:?}: {} {:?}", failure.replay, failure.what);
}

#[test]
fn a_tearing_disk_without_doublewrite_is_noticed() {
    must_be_noticed(Sabotage::NoDoublewrite);
}

#[test]
fn a_broken_promise_of_atomic_writes_is_noticed() {
    must_be_noticed(Sabotage::BrokenAtomicWrites);
}

#[test]
fn a_skipped_sync_of_the_redo_log_is_noticed() {
    must_be_noticed(Sabotage::SkippedSyncs("#untorn_redo"));
}

#[test]
fn a_skipped_sync_of_the_doublewrite_is_noticed() {
    must_be_noticed(Sabotage::SkippedSyncs(".dblwr"));
}

#[test]
fn a_skipped_sync_of_the_data_files_is_noticed() {
    must_be_noticed(Sabotage::SkippedSyncs(".ibd"));
}

#[test]
fn pages_that_reach_the_disk_before_their_log_are_noticed() {
    must_be_noticed(Sabotage::PagesBeforeLog);
}

#[test]
fn a_recovery_without_doublewrite_files_is_noticed() {
    must_be_noticed(Sabotage::NoDoublewriteFiles);
}

/// The other side of [`pages_that_reach_the_disk_before_their_log_are_noticed`]: not waiting for commits is no fault by
/// itself.
#[test]
fn commits_that_are_not_waited_for_are_lost_in_order_or_not_at_all() {
    let relaxed = |seed| Plan { relaxed: true, ..Plan::new(seed) };
    for seed in 1..=3 {
        let plan = relaxed(seed);
        let history = record(&plan);
        let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, STATES, 1);
        explorer.run();
        assert!(explorer.failures.is_empty(), "{:?}", explorer.failures);
    }
}
