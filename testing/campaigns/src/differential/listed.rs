//! Differences that are known, each with its reason.

use super::query::Statement;
use super::servers::Outcome;
use super::tree::Style;
use crate::peers::{Answer, text_of};
use mysql::Value;

/// What two servers said: ours and MySQL.
struct Case<'a> {
    statement: &'a Statement,
    ours: &'a Answer,
    peer: &'a Answer,
}

type Matches = fn(&Case) -> bool;

const LISTED: [(&str, Matches); 9] = [
    ("which rows an expression is computed for, and so which errors are met, is the plan's choice", |case| {
        // Out of range, no number or moment, a subquery of more than one row.
        let met =
            |answer: &Answer| matches!(answer, Answer::Error(1690 | 1242 | 1292 | 1411 | 1441 | 3020, _));
        case.statement.planned && met(case.ours) != met(case.peer)
    }),
    ("a feature that is not there is refused by its name (1235)", |case| {
        matches!(case.ours, Answer::Error(1235, _))
    }),
    ("not every mix of two collations is refused (1267, 1270, 1271)", |case| {
        matches!(case.peer, Answer::Error(1267 | 1270 | 1271, _)) && !matches!(case.ours, Answer::Error(..))
    }),
    (
        "a constant that is no moment is not refused beside one (1525, 6527): it is compared as a text or NULL",
        |case| matches!(case.peer, Answer::Error(1525 | 6527, _)),
    ),
    ("ONLY_FULL_GROUP_BY is checked without GROUP BY only, and not in subqueries (1055, 1140)", |case| {
        matches!(case.peer, Answer::Error(1055 | 1140, _)) && !matches!(case.ours, Answer::Error(..))
    }),
    ("of several errors of a row a missing default is named first (1364)", |case| {
        matches!((case.ours, case.peer), (Answer::Error(1364, _), Answer::Error(..)))
    }),
    ("a subquery that follows the rows of the table it changes is refused (1093)", |case| {
        matches!(case.ours, Answer::Error(1093, _))
    }),
    ("IF and CASE show a DECIMAL with the digits of their type, MySQL with those of the value", |case| {
        let text = case.statement.sql.written(Style::Plain);
        let chooses = text.contains("IF(") || text.contains("CASE ");
        matches!((case.ours, case.peer), (Answer::Rows(ours), Answer::Rows(peer))
            if chooses && plain(ours) == plain(peer))
    }),
    ("1093 is not given: the subquery is computed before the table changes", |case| {
        matches!(case.peer, Answer::Error(1093, _))
    }),
];

/// Rows without zeros at the end of numbers, in any order.
fn plain(rows: &[Vec<Value>]) -> Vec<String> {
    let cell = |value: &Value| {
        let text = text_of(value);
        match text.parse::<f64>() {
            Ok(_) if text.contains('.') && !text.contains('e') => {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => text,
        }
    };
    let mut lines: Vec<String> =
        rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect();
    lines.sort_unstable();
    lines
}

/// The reason for which a difference is known.
pub fn reason(statement: &Statement, outcome: &Outcome) -> Option<&'static str> {
    let [(_, ours), (_, peer), ..] = &outcome.answers[..] else { return None };
    let case = Case { statement, ours, peer };
    LISTED.iter().find(|(_, matches)| matches(&case)).map(|(reason, _)| *reason)
}
