//! Each anomaly in the smallest history that has it, and none in those beside it.

use super::*;
use crate::list_append::history::Step;

const COMMITTED: Outcome = Outcome::Committed;

fn append(key: Key, element: Element) -> Action {
    Action::Append(key, element)
}

fn read(key: Key, seen: &[Element]) -> Action {
    Action::Read(key, seen.to_vec())
}

/// Transactions that overlap with all others.
fn history(transactions: &[(Outcome, &[Action])], lists: &[(Key, &[Element])]) -> History {
    let transactions = transactions
        .iter()
        .map(|(outcome, actions)| Transaction {
            began: 0,
            ended: 100,
            outcome: *outcome,
            steps: actions.iter().map(|action| Step { sent: 1, action: action.clone() }).collect(),
        })
        .collect();
    History { transactions, lists: lists.iter().map(|(key, list)| (*key, list.to_vec())).collect() }
}

/// What is found at a level, without the numbers.
fn found(history: &History, level: Level) -> Vec<Anomaly> {
    check(history, level).counts.into_keys().collect()
}

#[test]
fn a_serial_history_has_none() {
    let history = history(
        &[
            (COMMITTED, &[append(1, 10), append(2, 11)]),
            (COMMITTED, &[read(1, &[10]), append(1, 12), read(1, &[10, 12])]),
            (Outcome::Aborted, &[append(1, 13), read(1, &[10, 12, 13])]),
            (Outcome::Unknown, &[append(2, 14)]),
        ],
        &[(1, &[10, 12]), (2, &[11])],
    );
    assert_eq!(found(&history, Level::Serializable), []);
}

#[test]
fn lost_doubled_revived_and_half_appends() {
    let lost = history(&[(COMMITTED, &[append(1, 10)])], &[(1, &[])]);
    assert_eq!(found(&lost, Level::ReadUncommitted), [Anomaly::Contents]);
    let revived = history(&[(Outcome::Aborted, &[append(1, 10)])], &[(1, &[10])]);
    assert_eq!(found(&revived, Level::ReadUncommitted), [Anomaly::Contents]);
    let doubled = history(&[(COMMITTED, &[append(1, 10)])], &[(1, &[10, 10])]);
    assert_eq!(found(&doubled, Level::ReadUncommitted), [Anomaly::Contents]);
    let half = history(&[(Outcome::Unknown, &[append(1, 10), append(2, 11)])], &[(1, &[10])]);
    assert_eq!(found(&half, Level::ReadUncommitted), [Anomaly::Contents]);
}

#[test]
fn appends_in_two_orders_are_a_cycle() {
    let history = history(
        &[(COMMITTED, &[append(1, 10), append(2, 11)]), (COMMITTED, &[append(1, 12), append(2, 13)])],
        &[(1, &[10, 12]), (2, &[13, 11])],
    );
    assert!(found(&history, Level::ReadUncommitted).contains(&Anomaly::WriteCycle));
}

#[test]
fn reads_of_what_was_rolled_back_or_changed_again_are_dirty() {
    let aborted =
        history(&[(Outcome::Aborted, &[append(1, 10)]), (COMMITTED, &[read(1, &[10])])], &[(1, &[])]);
    assert_eq!(found(&aborted, Level::ReadCommitted), [Anomaly::DirtyRead]);
    let intermediate = history(
        &[(COMMITTED, &[append(1, 10), append(1, 11)]), (COMMITTED, &[read(1, &[10])])],
        &[(1, &[10, 11])],
    );
    assert!(found(&intermediate, Level::ReadCommitted).contains(&Anomaly::DirtyRead));
    let own = history(&[(COMMITTED, &[append(1, 10), read(1, &[10]), append(1, 11)])], &[(1, &[10, 11])]);
    assert_eq!(found(&own, Level::ReadCommitted), []);
}

#[test]
fn a_reader_may_see_a_commit_that_a_crash_takes_away_and_a_writer_may_not() {
    let read_only =
        history(&[(Outcome::Unknown, &[append(1, 10)]), (COMMITTED, &[read(1, &[10])])], &[(1, &[])]);
    assert_eq!(found(&read_only, Level::Serializable), [Anomaly::UndurableRead]);
    let writing = history(
        &[(Outcome::Unknown, &[append(1, 10)]), (COMMITTED, &[read(1, &[10]), append(2, 11)])],
        &[(1, &[]), (2, &[11])],
    );
    assert_eq!(found(&writing, Level::Serializable), [Anomaly::DirtyRead]);
}

#[test]
fn own_appends_must_be_seen() {
    let history = history(&[(COMMITTED, &[append(1, 10), read(1, &[])])], &[(1, &[10])]);
    assert!(found(&history, Level::ReadUncommitted).contains(&Anomaly::OwnAppends));
}

#[test]
fn two_transactions_that_see_each_other_are_a_cycle_of_information() {
    let history = history(
        &[(COMMITTED, &[append(1, 10), read(2, &[11])]), (COMMITTED, &[append(2, 11), read(1, &[10])])],
        &[(1, &[10]), (2, &[11])],
    );
    assert!(found(&history, Level::ReadCommitted).contains(&Anomaly::InformationCycle));
}

#[test]
fn a_reader_that_sees_half_of_a_transaction_has_read_skew() {
    let history = history(
        &[(COMMITTED, &[append(1, 10), append(2, 11)]), (COMMITTED, &[read(1, &[10]), read(2, &[])])],
        &[(1, &[10]), (2, &[11])],
    );
    let findings = check(&history, Level::RepeatableRead);
    assert_eq!(findings.count(Anomaly::ReadSkew), 1);
    assert_eq!(findings.forbidden(Level::RepeatableRead).len(), 1);
    assert!(findings.forbidden(Level::ReadCommitted).is_empty());
}

#[test]
fn an_append_after_an_old_read_is_allowed_below_serializable_only() {
    let history = history(
        &[(COMMITTED, &[read(1, &[]), append(1, 10)]), (COMMITTED, &[append(1, 11)])],
        &[(1, &[11, 10])],
    );
    let findings = check(&history, Level::RepeatableRead);
    assert_eq!(findings.count(Anomaly::StaleWrite), 1);
    assert!(findings.forbidden(Level::RepeatableRead).is_empty());
    assert!(!findings.forbidden(Level::Serializable).is_empty());
}

#[test]
fn write_skew_is_a_cycle_of_two_reads() {
    let history = history(
        &[(COMMITTED, &[read(1, &[]), append(2, 10)]), (COMMITTED, &[read(2, &[]), append(1, 11)])],
        &[(1, &[11]), (2, &[10])],
    );
    assert_eq!(found(&history, Level::RepeatableRead), [Anomaly::Cycle]);
}

#[test]
fn what_was_acknowledged_before_is_seen() {
    let mut history = history(&[(COMMITTED, &[append(1, 10)]), (COMMITTED, &[read(1, &[])])], &[(1, &[10])]);
    (history.transactions[0].began, history.transactions[0].ended) = (0, 5);
    let reader = &mut history.transactions[1];
    (reader.began, reader.ended, reader.steps[0].sent) = (3, 20, 10);
    assert_eq!(found(&history, Level::ReadCommitted), [Anomaly::StaleRead]);
    assert_eq!(found(&history, Level::RepeatableRead), []);
    history.transactions[1].began = 6;
    assert_eq!(found(&history, Level::RepeatableRead), [Anomaly::StaleRead, Anomaly::Cycle]);
}
