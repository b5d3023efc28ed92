//! The campaign in small: a history is its seed, a few crash states, a few failing calls. The large form is
//! `cargo xtask crash`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::Crash;
use untorn_torture::coverage::Coverage;
use untorn_torture::explore::{Effort, Explorer, describe, parse};
use untorn_torture::faults::{Play, SCENES};
use untorn_torture::history::{Plan, record};

/// Records histories and tries a number of states of each; what came up.
fn explored(seeds: impl IntoIterator<Item = u64>, states: u64) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let plan = Plan::new(seed);
        let history = record(&plan);
        assert_eq!(history.failure, None, "history {seed}");
        if let Some(account) = history.account(&plan) {
            account.settle().unwrap_or_else(|why| panic!("history {seed}: {why}"));
        }
        history.note(&plan, &mut coverage);
        let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, states, 1);
        explorer.run();
        assert!(explorer.failures.is_empty(), "{:?}", explorer.failures);
        coverage.merge(&explorer.coverage);
    }
    println!("{coverage}");
    coverage
}

fn all_came_up(coverage: &Coverage, wanted: &[&str]) {
    for what in wanted {
        assert!(coverage.count(what) > 0, "nothing of this came up: {what}\n{coverage}");
    }
}

#[test]
fn the_same_seed_is_the_same_history_to_the_byte() {
    for seed in [3, 4] {
        let (first, second) = (record(&Plan::new(seed)), record(&Plan::new(seed)));
        assert_eq!(first.failure, None);
        assert_eq!((first.digest, first.calls), (second.digest, second.calls), "seed {seed}");
        assert_eq!(first.points.len(), second.points.len());
    }
    assert_ne!(record(&Plan::new(5)).digest, record(&Plan::new(6)).digest);
}

#[test]
fn crash_states_recover_to_what_was_acknowledged() {
    let coverage = explored(1..=4, 150);
    all_came_up(&coverage, &["states with redo applied", "states: recovered a second time", "writes torn"]);
}

/// A backup is under way at any moment of these histories.
#[test]
fn backups_that_crashes_leave_are_whole_or_refused() {
    let seeds = (1..).filter(|seed| Plan::new(*seed).has_backups()).take(6);
    let wanted =
        ["backups restored", "backups restored that add to others", "backups cut by a crash that left files"];
    all_came_up(&explored(seeds, 100), &wanted);
}

/// Large transactions, a tiny limit: the undo tablespace is cut in the history, and again in what is
/// recovered.
#[test]
fn states_around_a_truncation_of_undo_recover() {
    let seeds = (1..).filter(|seed| Plan::new(*seed).has_large_transactions()).take(4);
    all_came_up(&explored(seeds, 60), &["truncations of undo in histories"]);
}

/// Prepared before the crash, found after it, ended then: all of it, or nothing.
#[test]
fn prepared_transactions_survive_crashes_whole() {
    let seeds = (1..).filter(|seed| Plan::new(*seed).has_prepared()).take(6);
    let wanted = ["states with prepared transactions", "states: prepared transactions ended"];
    all_came_up(&explored(seeds, 120), &wanted);
}

#[test]
fn sessions_wait_for_each_other_and_deadlock() {
    let mut coverage = Coverage::default();
    const HISTORIES: u64 = 6;
    for seed in 1..=HISTORIES {
        let plan = Plan::new(seed);
        record(&plan).note(&plan, &mut coverage);
    }
    println!("{coverage}");
    for (what, least) in [("histories with row lock waits", HISTORIES), ("histories with deadlocks", 1)] {
        assert!(coverage.count(what) >= least, "too few {what}\n{coverage}");
    }
}

/// Also that what the tier returns is what counts: every row is compared.
#[test]
fn recovered_states_are_served_from_a_kept_extension() {
    let coverage = explored((1..).filter(|seed| Plan::new(*seed).has_tier()).take(8), 150);
    let kept = [
        "states with pages of the buffer pool extension kept",
        "states with pages served from the buffer pool extension",
    ];
    all_came_up(&coverage, &kept);
}

/// Switched off and on, resized, moved; on disks that lie, where the account has to be settled all the same;
/// opened without its pages, or not at all, and then again.
#[test]
fn a_extension_that_is_moved_about_serves_what_is_current() {
    let coverage = explored((1..).filter(|seed| Plan::new(*seed).moves_tier()).take(8), 60);
    let moved = [
        "pages served from the buffer pool extension in recovered states",
        "states opened without the buffer pool extension",
        "states whose buffer pool extension discards what was kept",
    ];
    all_came_up(&coverage, &moved);
}

#[test]
fn a_moment_that_was_begun_is_tried_with_every_subset() {
    let effort = Effort { exhaustive_units: 6, whole_moments: true, ..Effort::QUICK };
    let mut coverage = Coverage::default();
    for seed in 2..=7 {
        let plan = Plan::new(seed);
        let history = record(&plan);
        let mut explorer = Explorer::new(&plan, &history, effort, 60, 1);
        explorer.run();
        assert!(explorer.failures.is_empty(), "{:?}", explorer.failures);
        coverage.merge(&explorer.coverage);
    }
    println!("{coverage}");
    all_came_up(&coverage, &["moments: every subset of up to 12 unsynced writes tried"]);
    assert_eq!(coverage.count("moments: broken off, the states were used up"), 0);
}

#[test]
fn a_failing_call_ends_in_an_error_or_is_got_over_and_never_in_a_lie() {
    let mut coverage = Coverage::default();
    for scene in SCENES {
        let play = Play::new(scene, 11).unwrap();
        assert!(play.calls > 20, "{scene:?} makes {} calls", play.calls);
        for (at, call) in (0..play.calls).step_by(9).enumerate() {
            let faults = play.faults(call);
            play.try_fault(faults[at % faults.len()], &mut coverage).unwrap();
        }
    }
    println!("{coverage}");
    all_came_up(&coverage, &["faults that ended in an error", "faults with a power loss soon after"]);
}

#[test]
fn the_name_of_a_crash_is_the_crash() {
    for crash in [
        Crash::Exactly(5),
        Crash::Torn { survivors: 7, seed: 9 },
        Crash::Random(3),
        Crash::Damaged { seed: 1, files: ".ibd" },
        Crash::ProcessOnly,
    ] {
        assert_eq!(parse(&describe(crash)), Some(crash));
    }
}
