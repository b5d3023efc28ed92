//! The disk under the buffer pool extension lies, the whole engine works on it: no false page is served, and
//! each is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use untorn_torture::explore::{Effort, Explorer};
use untorn_torture::extension_lies::Account;
use untorn_torture::history::{LIES, Plan, TierPlan, record};

/// Histories for each kind of lie.
const HISTORIES: u64 = 3;
/// One call in this many goes wrong: often, so that a slot gives an older version of its own page now and
/// then.
const ONE_IN: usize = 2;
/// Crash states of each, recovered on the same lying disk.
const STATES: u64 = 25;

/// Records a history on a disk that lies, settles the account, and recovers states that crashes of it leave.
fn account_of(seed: u64, tier: TierPlan) -> Account {
    let plan = Plan::new(seed).with_tier(tier);
    let history = record(&plan);
    assert_eq!(history.failure, None, "{tier:?}, history {seed}");
    let account = Account::of(&plan, &history).unwrap();
    println!("{tier:?}, history {seed}: {account:?}");
    account.settle().unwrap_or_else(|why| panic!("{tier:?}, history {seed}: {why}"));
    let mut explorer = Explorer::new(&plan, &history, Effort::QUICK, STATES, 1);
    explorer.run();
    assert!(explorer.failures.is_empty(), "{tier:?}, history {seed}: {:?}", explorer.failures);
    account
}

/// Also while the tier is switched off and on, resized and moved to another file and back.
#[test]
fn a_tier_that_is_moved_about_counts_them_too() {
    let mut total = Account::default();
    for (seed, lie) in (41..).zip(LIES) {
        total.add(&account_of(seed, TierPlan::LyingMoved(lie, ONE_IN)));
    }
    assert!(total.slots.sum() > 0 && total.served > 0, "{total:?}");
}

#[test]
fn no_false_page_is_served_and_each_is_counted() {
    let mut all = Account::default();
    for (number, lie) in LIES.into_iter().enumerate() {
        let mut total = Account::default();
        for history in 0..HISTORIES {
            let seed = 1 + number as u64 * HISTORIES + history;
            total.add(&account_of(seed, TierPlan::Lying(lie, ONE_IN)));
        }
        println!("{lie:?}: {total:?}");
        assert!(total.slots.sum() > 0, "{lie:?}: the disk has fooled nobody: {total:?}");
        assert!(total.served > 0, "{lie:?}: nothing was served: {total:?}");
        all.add(&total);
    }
    // The kind that nobody but the tier can know.
    println!("all: {all:?}");
    assert!(all.counted.stale > 0, "no page came back in an older version: {all:?}");
}
