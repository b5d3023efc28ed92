//! What three answers to one statement say about the first of them.
//!
//! Stock servers differ from each other, and a script says nothing about which is right. So ours is held
//! wrong only where it is unlike both: either the two agree, or all three differ, which is counted apart,
//! as it is mostly a matter of the time, of chance or of a version.

use crate::peers::{Answer, whole};
use mysql::Value;

/// What is held of our answer, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Same,
    /// Not judged: a feature that is excluded, or that only one of the others has.
    Excluded,
    /// Names a table or variable whose making was refused, or that was already found different.
    Cascade,
    /// All three differ.
    Unsettled,
    /// Another number of affected rows.
    Affected,
    /// All refuse, with another error.
    OtherError,
    /// The others refuse.
    NotRefused,
    /// Ours alone refuses: not there yet, or wrongly.
    Refused,
    /// The same rows in another order, where both others have one.
    WrongOrder,
    WrongRows,
    WrongContents,
    /// Ours gave no answer.
    Lost,
}

/// All of them, with what they are called in tables.
pub const VERDICTS: [(Verdict, &str); 12] = [
    (Verdict::Same, "same"),
    (Verdict::Excluded, "excluded"),
    (Verdict::Cascade, "cascade"),
    (Verdict::Unsettled, "unsettled"),
    (Verdict::Affected, "affected"),
    (Verdict::OtherError, "other error"),
    (Verdict::NotRefused, "not refused"),
    (Verdict::Refused, "refused"),
    (Verdict::WrongOrder, "wrong order"),
    (Verdict::WrongRows, "wrong rows"),
    (Verdict::WrongContents, "wrong contents"),
    (Verdict::Lost, "lost"),
];

/// How rows are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows {
    Ordered,
    /// As a multiset.
    Unordered,
    /// Not at all: each server describes itself.
    Text,
}

/// A syntax error: the others' own syntax.
const SYNTAX: u16 = 1064;

/// Judges our answer beside two others.
pub fn judge(ours: &Answer, peers: [&Answer; 2], rows: Rows) -> Verdict {
    let lost = |answer: &Answer| matches!(answer, Answer::Lost(_));
    // A wait for another session of the script, for instance, which it ends in its own way.
    if peers.iter().all(|peer| lost(peer)) {
        return Verdict::Excluded;
    }
    if lost(ours) {
        return Verdict::Lost;
    }
    if peers.iter().any(|peer| lost(peer)) {
        return Verdict::Excluded;
    }
    if peers.iter().any(|peer| alike(ours, peer, rows)) {
        return Verdict::Same;
    }
    // What one of them cannot parse is the other's own.
    let syntax = |answer: &Answer| matches!(answer, Answer::Error(SYNTAX, _));
    if syntax(peers[0]) != syntax(peers[1]) {
        return Verdict::Excluded;
    }
    let refused = |answer: &&Answer| matches!(answer, Answer::Error(..));
    match (refused(&ours), peers.iter().filter(|peer| refused(peer)).count()) {
        (true, 2) => return Verdict::OtherError,
        (true, 0) => return Verdict::Refused,
        (false, 2) => return Verdict::NotRefused,
        (_, 1) => return Verdict::Unsettled,
        _ => {}
    }
    if !alike(peers[0], peers[1], rows) {
        return Verdict::Unsettled;
    }
    match (ours, peers[0]) {
        (Answer::Rows(_), Answer::Rows(_)) if alike(ours, peers[0], Rows::Unordered) => Verdict::WrongOrder,
        (Answer::Done(_), Answer::Done(_)) => Verdict::Affected,
        _ => Verdict::WrongRows,
    }
}

/// Whether two answers are the same.
pub fn alike(one: &Answer, other: &Answer, rows: Rows) -> bool {
    match (one, other) {
        (Answer::Rows(one), Answer::Rows(other)) => match rows {
            Rows::Ordered => one == other,
            Rows::Unordered => sorted(one) == sorted(other),
            Rows::Text => true,
        },
        (Answer::Error(one, _), Answer::Error(other, _)) => one == other,
        (Answer::Done(one), Answer::Done(other)) => rows == Rows::Text || one == other,
        (Answer::Rows(_), Answer::Done(_)) | (Answer::Done(_), Answer::Rows(_)) => rows == Rows::Text,
        _ => false,
    }
}

fn sorted(rows: &[Vec<Value>]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(|row| whole(row)).collect();
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[i64]) -> Answer {
        Answer::Rows(values.iter().map(|value| vec![Value::Int(*value)]).collect())
    }

    fn error(number: u16) -> Answer {
        Answer::Error(number, String::new())
    }

    #[test]
    fn ours_is_right_when_it_is_as_one_of_the_others() {
        for (ours, one, other) in [
            (rows(&[1]), rows(&[1]), rows(&[2])),
            (rows(&[1]), error(1235), rows(&[1])),
            (error(1062), error(1062), error(1586)),
            (Answer::Done(1), Answer::Done(2), Answer::Done(1)),
        ] {
            assert_eq!(judge(&ours, [&one, &other], Rows::Ordered), Verdict::Same);
        }
    }

    #[test]
    fn ours_is_wrong_when_both_others_agree() {
        for (ours, peer, verdict) in [
            (rows(&[1]), rows(&[2]), Verdict::WrongRows),
            (rows(&[1, 2]), rows(&[2, 1]), Verdict::WrongOrder),
            (rows(&[1, 1]), rows(&[1]), Verdict::WrongRows),
            (error(1235), rows(&[1]), Verdict::Refused),
            (rows(&[1]), error(1054), Verdict::NotRefused),
            (error(1235), error(1054), Verdict::OtherError),
            (Answer::Done(1), Answer::Done(2), Verdict::Affected),
            (Answer::Lost(String::new()), rows(&[1]), Verdict::Lost),
            (Answer::Lost(String::new()), Answer::Lost(String::new()), Verdict::Excluded),
        ] {
            assert_eq!(judge(&ours, [&peer, &peer], Rows::Ordered), verdict, "{ours:?} {peer:?}");
        }
    }

    #[test]
    fn rows_without_an_order_are_a_multiset() {
        let (ours, peer) = (rows(&[1, 2, 2]), rows(&[2, 1, 2]));
        assert_eq!(judge(&ours, [&peer, &peer], Rows::Unordered), Verdict::Same);
        let peer = rows(&[1, 1, 2]);
        let text = |text: &str| Answer::Rows(vec![vec![Value::Bytes(text.into())]]);
        assert!(!alike(&text("2020-01-01"), &text("2020-01-02"), Rows::Unordered));
        assert_eq!(judge(&ours, [&peer, &peer], Rows::Unordered), Verdict::WrongRows);
        assert_eq!(judge(&ours, [&peer, &peer], Rows::Text), Verdict::Same);
        let (ours, peer) = (Answer::Done(0), Answer::Done(2));
        assert_eq!(judge(&ours, [&peer, &peer], Rows::Text), Verdict::Same);
    }

    #[test]
    fn what_the_others_differ_in_is_not_held_against_ours() {
        assert_eq!(judge(&rows(&[1]), [&rows(&[2]), &rows(&[3])], Rows::Ordered), Verdict::Unsettled);
        assert_eq!(judge(&error(1235), [&rows(&[1]), &error(1064)], Rows::Ordered), Verdict::Excluded);
        assert_eq!(judge(&rows(&[1]), [&rows(&[2]), &error(1054)], Rows::Ordered), Verdict::Unsettled);
    }

    #[test]
    fn every_verdict_has_a_name_and_they_are_in_order() {
        assert!(VERDICTS.is_sorted_by_key(|(verdict, _)| *verdict));
    }
}
