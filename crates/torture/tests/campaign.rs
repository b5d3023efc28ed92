//! The campaign in small: a history is its seed, a few crash states, a few failing calls. The large form is
//! `cargo xtask crash`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Crash, Fault};
use untorn_torture::coverage::Coverage;
use untorn_torture::explore::{Effort, Explorer, describe, parse};
use untorn_torture::faults::{KINDS, Play, SCENES};
use untorn_torture::history::{Plan, record};

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
    let mut coverage = Coverage::default();
    for seed in 1..=4 {
        let plan = Plan::new(seed);
        let history = record(&plan);
        assert_eq!(history.failure, None, "history {seed}");
        let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, 150, 1);
        explorer.run();
        assert!(explorer.failures.is_empty(), "{:?}", explorer.failures);
        coverage.merge(&explorer.coverage);
    }
    println!("{coverage}");
    for what in ["states with redo applied", "states: recovered a second time", "writes torn"] {
        assert!(coverage.count(what) > 0, "nothing of this came up: {what}\n{coverage}");
    }
}

#[test]
fn a_failing_call_ends_in_an_error_or_is_got_over_and_never_in_a_lie() {
    let mut coverage = Coverage::default();
    for scene in SCENES {
        let play = Play::new(scene, 11).unwrap();
        assert!(play.calls > 20, "{scene:?} makes {} calls", play.calls);
        for (at, call) in (0..play.calls).step_by(9).enumerate() {
            let fault = Fault { call, kind: KINDS[at % KINDS.len()] };
            play.try_fault(fault, &mut coverage).unwrap();
        }
    }
    println!("{coverage}");
    assert!(coverage.count("faults that ended in an error") > 0);
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
