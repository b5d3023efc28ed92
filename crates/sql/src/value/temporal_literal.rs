//! What may stand in `DATE '…'`, `TIME '…'` and `TIMESTAMP '…'`: a text that is read elsewhere may say more
//! or less than that, or end in something else.

use super::temporal::{Today, is_day_and_time, parse_datetime, parse_time, time_micros};
use crate::ast::TemporalKind;

/// 838:59:59.
const LONGEST_SPAN_MICROS: i64 = 3_020_399_000_000;
/// Digits from which on a number without signs between them has a time.
const DIGITS_WITH_TIME: usize = 12;

/// Whether a text is a literal of this kind, whatever the SQL mode says of its day.
pub fn is_literal(kind: TemporalKind, text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let today = Today { any_day: true, ..Today::default() };
    let moment = |clock: bool| {
        let ends = !text.last().is_some_and(u8::is_ascii_alphabetic);
        ends && has_clock(text) == clock && parse_datetime(text, today).is_some_and(|(.., rest)| !rest)
    };
    match kind {
        TemporalKind::Date => moment(false),
        TemporalKind::DateTime => moment(true),
        TemporalKind::Time => {
            let is_moment = digits(text) >= DIGITS_WITH_TIME || is_day_and_time(text);
            !is_moment
                && parse_time(text, today)
                    .is_some_and(|(span, _, cut)| !cut && time_micros(span).abs() <= LONGEST_SPAN_MICROS)
        }
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Whether there is a time behind the day.
fn has_clock(text: &[u8]) -> bool {
    let run = digits(text);
    if run >= DIGITS_WITH_TIME || run >= 5 && text.get(run) == Some(&b'T') {
        return true;
    }
    let mut rest = text;
    for _ in 0..3 {
        rest = rest.get(digits(rest)..).and_then(|rest| rest.get(1..)).unwrap_or_default();
    }
    rest.trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_says_all_of_its_kind_and_no_more() {
        let literals = |kind: TemporalKind, list: &[&str]| {
            list.iter().map(|text| is_literal(kind, text.as_bytes())).collect::<Vec<_>>()
        };
        let dates = ["2001-01-01", "20010101", "2001:1:1", "2001-01-01 ", "2001-01-01.", "010101"];
        assert_eq!(literals(TemporalKind::Date, &dates), [true; 6]);
        let others = ["2001-01-01 00:00:00", "20010101101010", "2001-01-01xyz", "2001-01-01T", ""];
        assert_eq!(literals(TemporalKind::Date, &others), [false; 5]);
        let moments = ["2010-01-01 10", "2010-01-01T10:10:10", "100101101010", "2010-01-01 10:10:10+01:00"];
        assert_eq!(literals(TemporalKind::DateTime, &moments), [true; 4]);
        let others = ["2010-01-01", "20100101", "2010-01-01 ", "2010-01-01 10:10:10x"];
        assert_eq!(literals(TemporalKind::DateTime, &others), [false; 4]);
        let spans = ["838:59:59", "1 10:10:10", "101010", "10:10:10.1234567", "10"];
        assert_eq!(literals(TemporalKind::Time, &spans), [true; 5]);
        let others = ["838:59:59.5", "2001-01-01 10:10:10", "20010101101010", "10:10:10.5x", "40 24:00:00"];
        assert_eq!(literals(TemporalKind::Time, &others), [false; 5]);
    }
}
