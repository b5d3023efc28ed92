//! Negative controls: one promise broken at a time, and the checker must notice each. A checker that stays
//! green here is itself the bug.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::process::Command;

use bpe::negative_control::{Promise, break_promise};
use disk::Misbehaviour;
use untorn_torture::backups::BACKUPS;
use untorn_torture::check::Wrong;
use untorn_torture::explore::{Effort, Explorer, Failure, catch};
use untorn_torture::history::{Plan, TierPlan, record};
use untorn_torture::sabotage::Sabotage;

/// States tried per history, and histories, before a control counts as not noticed. (The rarest is a copy
/// lost from the doublewrite file together with a page that is torn.)
const STATES: u64 = 300;
const HISTORIES: u64 = 60;
/// The same for the promises of the buffer pool extension. They come up all the time, but an older version of
/// the very page is rare (history 17).
const TIER_STATES: u64 = 40;
const TIER_HISTORIES: u64 = 24;

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

/// Runs histories with a buffer pool extension, and the states that crashes of them leave, until something is
/// found.
fn first_failure_with_tier(tier: TierPlan) -> Option<(u64, Failure)> {
    (1..=TIER_HISTORIES).find_map(|seed| {
        let plan = Plan::new(seed).with_tier(tier);
        let failed =
            |what| Some((seed, Failure { replay: format!("{seed}/run"), what: Wrong::Silent(what) }));
        let history = match catch(|| record(&plan)) {
            Ok(history) => history,
            Err(panic) => return failed(panic),
        };
        if let Some(failure) = history.failure {
            return failed(failure);
        }
        let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, TIER_STATES, 1);
        explorer.run();
        explorer.failures.pop().map(|failure| (seed, failure))
    })
}

/// With the promise broken the campaign finds something in few histories, and without that nothing in as
/// many.
fn must_be_noticed_with_tier(promise: Promise, tier: TierPlan) {
    let broken = break_promise(promise);
    let found = first_failure_with_tier(tier);
    drop(broken);
    let sound = first_failure_with_tier(tier);
    assert!(sound.is_none(), "nothing is broken, {tier:?}: {sound:?}");
    let (histories, failure) = found.unwrap_or_else(|| panic!("{promise:?} broken was not noticed"));
    println!(
        "{promise:?} broken, {tier:?}: noticed in history {histories}: {} {:?}",
        failure.replay, failure.what
    );
}

#[test]
fn a_extension_that_believes_its_disk_is_noticed() {
    // An older version of the very page has to come back: other pages the buffer pool refuses by itself.
    for lie in [Misbehaviour::StaleRead, Misbehaviour::MisdirectedRead] {
        must_be_noticed_with_tier(Promise::Compare, TierPlan::Lying(lie, 2));
    }
}

/// What can break promises is compiled for these tests and for nothing that anybody builds for use.
#[test]
fn nothing_but_these_tests_can_break_a_promise_of_the_tier() {
    let features = |edges: &str| {
        let arguments = ["tree", "--workspace", "--offline", "--locked", "-i", "untorn-bpe", "-e", edges];
        let output =
            Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("cargo writes text")
    };
    let feature = "feature \"negative-control\"";
    assert!(features("features,normal,build,dev").contains(feature), "the feature has another name by now");
    let without_tests = features("features,normal,build");
    assert!(!without_tests.contains(feature), "{without_tests}");
}

#[test]
fn a_extension_that_keeps_changed_pages_is_noticed() {
    must_be_noticed_with_tier(Promise::DropChanged, TierPlan::Undisturbed);
}

#[test]
fn a_extension_that_keeps_what_recovery_finds_in_the_log_is_noticed() {
    must_be_noticed_with_tier(Promise::DropRecovered, TierPlan::Undisturbed);
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
fn a_skipped_sync_of_a_backup_is_noticed() {
    must_be_noticed(Sabotage::SkippedSyncs(BACKUPS));
}

#[test]
fn pages_that_reach_the_disk_before_their_log_are_noticed() {
    must_be_noticed(Sabotage::PagesBeforeLog);
}

#[test]
fn a_prepare_that_is_answered_before_it_is_durable_is_noticed() {
    let failure = first_failure(|seed| Plan::new(seed).with(Sabotage::UnsyncedPrepare));
    let failure = failure.expect("it was not noticed");
    assert!(matches!(&failure.what, Wrong::Silent(what) if what.starts_with("lane")), "{failure:?}");
}

#[test]
fn a_recovery_without_doublewrite_files_is_noticed() {
    must_be_noticed(Sabotage::NoDoublewriteFiles);
}

/// The other side of [`pages_that_reach_the_disk_before_their_log_are_noticed`]: not waiting for commits is
/// no fault by itself.
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
