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

const LISTED: [(&str, Matches); 16] = [
    ("which rows an expression is computed for, and so which errors are met, is the plan's choice", |case| {
        // Out of range, no number or moment, nothing to divide by, a subquery of more than one row.
        let met = |answer: &Answer| {
            matches!(answer, Answer::Error(1690 | 1242 | 1292 | 1365 | 1411 | 1441 | 3020, _))
        };
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
    ("of several errors of a statement another one than that of two collations is named first", |case| {
        matches!((case.ours, case.peer), (Answer::Error(..), Answer::Error(1267 | 1270 | 1271, _)))
    }),
    ("a literal that NULLIF compared in another collation does not fit beside others (1267, 1270)", |case| {
        let text = case.statement.sql.written(Style::Plain);
        matches!(case.ours, Answer::Error(1267 | 1270, _)) && text.contains("NULLIF('")
    }),
    ("a text that is too long is 1265 where MySQL copies it from column to column, else 1406", |case| {
        matches!((case.ours, case.peer), (Answer::Error(1406, _), Answer::Error(1265, _)))
    }),
    ("bytes that are no text are NULL with a warning (3854)", |case| {
        matches!(case.peer, Answer::Error(3854, _)) && !matches!(case.ours, Answer::Error(..))
    }),
    ("columns that a condition of constants leaves out are held to ONLY_FULL_GROUP_BY (1055)", |case| {
        let text = case.statement.sql.written(Style::Plain);
        matches!(case.ours, Answer::Error(1055, _))
            && (text.contains("NULL AND ") || text.contains("AND NULL"))
    }),
    // It compares what stands below NULL, which is what was to be inserted, or the default.
    (
        "ON DUPLICATE KEY UPDATE of NULL with NULL counts as a change in MySQL where the bytes differ",
        |case| {
            let text = case.statement.sql.written(Style::Plain);
            matches!((case.ours, case.peer), (Answer::Done(ours), Answer::Done(peer)) if ours < peer)
                && text.contains(" ON DUPLICATE KEY UPDATE ")
        },
    ),
    (
        "a TIME column between a span and a text that is none is compared by numbers or texts in MySQL",
        |case| is_between_other_texts(&case.statement.sql.written(Style::Plain)),
    ),
    ("1093 is not given: the subquery is computed before the table changes", |case| {
        matches!(case.peer, Answer::Error(1093, _))
    }),
];

/// Whether there is a BETWEEN of two constants, of which one is a span and the other one a day.
fn is_between_other_texts(text: &str) -> bool {
    let is_day =
        |bound: &str| bound.starts_with('\'') && !bound.contains(':') && bound.matches('-').count() == 2;
    let is_span = |bound: &str| bound.starts_with('\'') && bound.contains(':') && !bound.contains(' ');
    text.split(" BETWEEN ").skip(1).any(|bounds| {
        let Some((from, rest)) = bounds.split_once(" AND ") else { return false };
        let to = rest.split(')').next().unwrap_or_default();
        is_day(from) && is_span(to) || is_span(from) && is_day(to)
    })
}

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
