//! Units of time: what they are to a span, and what EXTRACT and TIMESTAMPDIFF make of them.

use untorn::types::{DateTime, Time};

use super::temporal::{is_moment, is_refused_zero, whole_date};
use crate::ast::IntervalUnit;
use crate::expr::Context;
use crate::value::{Value, temporal};

/// Whether an interval of this unit has microseconds.
pub(super) fn has_micros(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    matches!(unit, Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond)
}

/// Whether an interval of this unit is added to a span as a span; with any other it is a moment of today.
pub fn is_of_clock(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    finer_than_day(unit) && !matches!(unit, DayHour | DayMinute | DaySecond | DayMicrosecond)
}

/// Whether an interval of this unit changes the time of day.
pub fn finer_than_day(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    !matches!(unit, Day | Week | Month | Quarter | Year | YearMonth)
}

/// EXTRACT. Parts of a clock are negative in a negative span, whose hours go beyond a day's.
pub fn extract(unit: IntervalUnit, value: &Value<'_>, cx: &Context<'_>) -> Value<'static> {
    use IntervalUnit::*;
    let today = crate::expr::today(cx);
    if matches!(unit, Year | Month | Quarter | Day | Week | YearMonth) {
        let moment = value.to_datetime(today).map(|(moment, _)| moment);
        let moment = moment.filter(|moment| !is_refused_zero(value, moment.date, cx));
        return moment.map_or(Value::Null, |DateTime { date: d, .. }| {
            Value::Int(match unit {
                Year => d.year.into(),
                Month => d.month.into(),
                Quarter => (i64::from(d.month) + 2) / 3,
                Day => d.day.into(),
                Week => temporal::week(d, cx.state.settings().default_week_format).0,
                _ => i64::from(d.year) * 100 + i64::from(d.month),
            })
        });
    }
    let digits = |text: &[u8]| text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let is_moment = match value {
        Value::Text(text, _) => is_moment(text.trim_ascii()) || digits(text.trim_ascii()),
        Value::DateTime(..) | Value::Date(_) => true,
        number => number.is_number(),
    };
    let read = match is_moment {
        true => value.to_datetime(today).map(|(m, _)| (i64::from(m.date.day), temporal::time_of_day(m))),
        false => None,
    };
    let read = read.or_else(|| value.to_time(today).map(|(span, _)| (0, span)));
    let Some((day, span)) = read else { return Value::Null };
    let clock = temporal::time_number(Time { negative: false, ..span });
    let part = match unit {
        Hour => clock / 10_000,
        Minute => clock / 100 % 100,
        Second => clock % 100,
        MinuteSecond | MinuteMicrosecond => clock % 10_000,
        SecondMicrosecond => clock % 100,
        HourMinute => clock / 100,
        HourSecond | HourMicrosecond => clock,
        DayHour => day * 100 + clock / 10_000,
        DayMinute => day * 10_000 + clock / 100,
        DaySecond | DayMicrosecond => day * 1_000_000 + clock,
        _ => 0,
    };
    let part = if has_micros(unit) { part * 1_000_000 + i64::from(span.micros) } else { part };
    Value::Int(if span.negative { -part } else { part })
}

/// TIMESTAMPDIFF.
pub fn timestamp_diff(
    unit: IntervalUnit,
    from: &Value<'_>,
    to: &Value<'_>,
    cx: &Context<'_>,
) -> Value<'static> {
    use IntervalUnit::*;
    let moment = |value| whole_date(value, cx);
    let (Some(from), Some(to)) = (moment(from), moment(to)) else { return Value::Null };
    let days = temporal::day_number(to.date) - temporal::day_number(from.date);
    let of_day = |moment| temporal::time_micros(temporal::time_of_day(moment));
    let micros = days * 86_400_000_000 + of_day(to) - of_day(from);
    const SECOND: i64 = 1_000_000;
    let months = || {
        let (early, late, sign) = if micros >= 0 { (from, to, 1) } else { (to, from, -1) };
        let whole = (i64::from(late.date.year) - i64::from(early.date.year)) * 12
            + i64::from(late.date.month)
            - i64::from(early.date.month);
        let rest = |m: DateTime| (m.date.day, m.hour, m.minute, m.second, m.micros);
        sign * if rest(late) < rest(early) { whole - 1 } else { whole }
    };
    Value::Int(match unit {
        Microsecond => micros,
        Second => micros / SECOND,
        Minute => micros / (60 * SECOND),
        Hour => micros / (3600 * SECOND),
        Day => micros / (86_400 * SECOND),
        Week => micros / (7 * 86_400 * SECOND),
        Month => months(),
        Quarter => months() / 3,
        Year => months() / 12,
        _ => return Value::Null,
    })
}
