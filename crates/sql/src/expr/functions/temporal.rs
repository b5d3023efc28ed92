//! Functions of dates, times and intervals.

use untorn::types::{Date, DateTime, Time};

use super::{Function, any_null, function, index};
use crate::ast::IntervalUnit;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::{Value, temporal};

/// A function of one moment that makes a number.
fn of_date<'a>(values: &[Value<'a>], cx: &Context<'a>, apply: impl Fn(DateTime) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(match value.to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) => Value::Int(apply(moment)),
            None => Value::Null,
        }),
    }
}

fn of_time<'a>(values: &[Value<'a>], apply: impl Fn(Time) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(value.to_time().map_or(Value::Null, |(span, _)| Value::Int(apply(span)))),
    }
}

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("YEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.year.into())),
    function!("MONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.month.into())),
    function!("DAY", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("DAYOFMONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("QUARTER", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| (i64::from(d.date.month) + 2) / 3)),
    function!("DAYOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::day_of_year(d.date))),
    function!("DAYOFWEEK", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| (temporal::weekday(d.date) + 1)
        % 7
        + 1)),
    function!("WEEKDAY", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::weekday(d.date))),
    function!("WEEK", 1..=2, |_| Type::INT, |v, cx| {
        let mode = index(v, 1) as u8;
        of_date(v, cx, |d| temporal::week(d.date, mode).0)
    }),
    function!("WEEKOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::week(d.date, 3).0)),
    function!("YEARWEEK", 1..=2, |_| Type::INT, |v, cx| {
        let mode = index(v, 1) as u8 | 2;
        of_date(v, cx, |d| {
            let (week, year) = temporal::week(d.date, mode);
            year * 100 + week
        })
    }),
    function!("TO_DAYS", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| temporal::day_number(d.date))),
    function!("TO_SECONDS", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.to_unix() + 62_167_219_200)),
    function!("FROM_DAYS", 1..=1, |_| Type::DATE, |v, _| {
        let date = if v[0].is_null() { None } else { temporal::from_day_number(index(v, 0)) };
        Ok(date.map_or(Value::Null, Value::Date))
    }),
    function!("HOUR", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.hours.into())),
    function!("MINUTE", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.minutes.into())),
    function!("SECOND", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.seconds.into())),
    function!("MICROSECOND", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| t.micros.into())),
    function!("TIME_TO_SEC", 1..=1, |_| Type::INT, |v, _| of_time(v, |t| temporal::time_micros(t)
        / 1_000_000)),
    function!("SEC_TO_TIME", 1..=1, |_| Type::time(0), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::Time(temporal::time_from_micros(index(v, 0).saturating_mul(1_000_000)), 0),
    })),
    function!("DATE", 1..=1, |_| Type::DATE, |v, cx| Ok(match v[0].to_datetime(crate::expr::today(cx)) {
        Some((moment, _)) => Value::Date(moment.date),
        None => Value::Null,
    })),
    function!("TIME", 1..=1, |_| Type::time(6), |v, _| Ok(match v[0].to_time() {
        Some((span, digits)) => Value::Time(span, digits),
        None => Value::Null,
    })),
    function!("TIMESTAMP", 1..=2, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = v[0].to_datetime(crate::expr::today(cx)) else {
            return Ok(Value::Null);
        };
        let Some(span) = v.get(1) else { return Ok(Value::DateTime(moment, digits)) };
        let Some((span, more)) = span.to_time() else { return Ok(Value::Null) };
        let sum = temporal::datetime_micros(moment) + temporal::time_micros(span);
        Ok(temporal::datetime_from_micros(sum)
            .map_or(Value::Null, |sum| Value::DateTime(sum, digits.max(more))))
    }),
    function!("DATEDIFF", 2..=2, |_| Type::INT, |v, cx| {
        let day = |value: &Value<'_>| {
            value.to_datetime(crate::expr::today(cx)).map(|(m, _)| temporal::day_number(m.date))
        };
        Ok(day(&v[0]).zip(day(&v[1])).map_or(Value::Null, |(a, b)| Value::Int(a - b)))
    }),
    function!("TIMEDIFF", 2..=2, |_| Type::time(6), |v, cx| time_diff(v, cx)),
    function!("ADDTIME", 2..=2, |t| t[0], |v, _| add_time(v, 1)),
    function!("SUBTIME", 2..=2, |t| t[0], |v, _| add_time(v, -1)),
    function!("LAST_DAY", 1..=1, |_| Type::DATE, |v, cx| Ok(
        match v[0].to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) if moment.date.month > 0 => {
                let day = temporal::days_in_month(moment.date.year, moment.date.month);
                Value::Date(Date { day, ..moment.date })
            }
            _ => Value::Null,
        }
    )),
    function!("MAKEDATE", 2..=2, |_| Type::DATE, |v, _| {
        let first = Date { year: index(v, 0).clamp(0, 9999) as u16, month: 1, day: 1 };
        let date = temporal::from_day_number(temporal::day_number(first) + index(v, 1) - 1);
        Ok(if any_null(v) || index(v, 1) < 1 { Value::Null } else { date.map_or(Value::Null, Value::Date) })
    }),
    function!("DAYNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(
        match v[0].to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) => Value::text(DAYS[temporal::weekday(moment.date) as usize]),
            None => Value::Null,
        }
    )),
    function!("MONTHNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(
        match v[0].to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) if moment.date.month > 0 =>
                Value::text(MONTHS[usize::from(moment.date.month) - 1]),
            _ => Value::Null,
        }
    )),
    function!("DATE_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((moment, _)) = v[0].to_datetime(crate::expr::today(cx)) else { return Ok(Value::Null) };
        Ok(Value::text(date_format(moment, &v[1].to_string_lossy())))
    }),
    function!("TIME_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((moment, _)) = v[0].to_datetime(crate::expr::today(cx)) else { return Ok(Value::Null) };
        Ok(Value::text(date_format(moment, &v[1].to_string_lossy())))
    }),
    function!("UNIX_TIMESTAMP", 0..=1, |_| Type::INT, |v, cx| match v.first() {
        None => Ok(Value::Int(cx.state.now_utc().to_unix())),
        Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(match value.to_datetime(crate::expr::today(cx)) {
            Some((moment, _)) =>
                Value::Int((moment.to_unix() - i64::from(cx.state.time_zone_offset())).max(0)),
            None => Value::Int(0),
        }),
    }),
    function!(
        "FROM_UNIXTIME",
        1..=2,
        |t| if t.len() == 2 { Type::text(255) } else { Type::datetime(0) },
        |v, cx| {
            if any_null(v) || v[0].to_double() < 0.0 {
                return Ok(Value::Null);
            }
            let micros =
                (v[0].to_double() * 1e6).round() as i64 + i64::from(cx.state.time_zone_offset()) * 1_000_000;
            let Some(moment) = temporal::datetime_from_micros(micros) else { return Ok(Value::Null) };
            Ok(match v.get(1) {
                Some(format) => Value::text(date_format(moment, &format.to_string_lossy())),
                None => Value::DateTime(moment, if moment.micros > 0 { 6 } else { 0 }),
            })
        }
    ),
    function!("CONVERT_TZ", 3..=3, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = v[0].to_datetime(crate::expr::today(cx)) else {
            return Ok(Value::Null);
        };
        let offset = |zone: &Value<'_>| crate::context::zone_offset(&zone.to_string_lossy());
        let (Some(from), Some(to)) = (offset(&v[1]), offset(&v[2])) else { return Ok(Value::Null) };
        let micros = temporal::datetime_micros(moment) + i64::from(to - from) * 1_000_000;
        Ok(temporal::datetime_from_micros(micros).map_or(Value::Null, |m| Value::DateTime(m, digits)))
    }),
];

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Microseconds cut to this many digits, rounded half up; may carry.
pub fn round_datetime(value: DateTime, digits: u8) -> DateTime {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    if i64::from(value.micros) % unit == 0 || value.date.month == 0 || value.date.day == 0 {
        let micros = i64::from(value.micros) / unit * unit;
        return DateTime { micros: micros as u32, ..value };
    }
    let micros = (temporal::datetime_micros(value) + unit / 2).div_euclid(unit) * unit;
    temporal::datetime_from_micros(micros).unwrap_or(value)
}

/// As [`round_datetime`], for spans.
pub fn round_time(value: Time, digits: u8) -> Time {
    let unit = 10i64.pow(6 - u32::from(digits.min(6)));
    let micros = temporal::time_micros(Time { negative: false, ..value });
    let rounded = (micros + unit / 2) / unit * unit;
    temporal::time_from_micros(if value.negative { -rounded } else { rounded })
}

/// `date ± INTERVAL amount unit`: text stays text, a DATE stays one unless the unit is finer than a day.
pub fn date_shift<'a>(
    date: Value<'a>,
    amount: &Value<'_>,
    unit: IntervalUnit,
    subtract: bool,
    cx: &Context<'a>,
) -> Evaluated<'a> {
    if date.is_null() || amount.is_null() {
        return Ok(Value::Null);
    }
    let (months, micros) = temporal::interval(&amount.to_string_lossy(), unit);
    let sign = if subtract { -1 } else { 1 };
    if let Value::Time(span, digits) = date
        && months == 0
    {
        let sum = temporal::time_micros(span) + sign * micros;
        return Ok(Value::Time(temporal::time_from_micros(sum), digits));
    }
    let Some((moment, digits)) = date.to_datetime(crate::expr::today(cx)) else {
        return Ok(Value::Null);
    };
    let moved = if months == 0 { Some(moment) } else { temporal::add_months(moment, sign * months) };
    let moved = moved.and_then(|moment| {
        let sum = temporal::datetime_micros(moment).checked_add(sign * micros)?;
        temporal::datetime_from_micros(sum)
    });
    let Some(moved) = moved else {
        cx.state.warn(errors::error(errors::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]));
        return Ok(Value::Null);
    };
    let whole_days = micros % 86_400_000_000 == 0 && !finer_than_day(unit);
    let digits = if moved.micros > 0 { 6 } else { digits };
    let text_is_date = matches!(&date, Value::Text(text, _) if text.len() <= 10);
    Ok(match date {
        Value::Date(_) if whole_days => Value::Date(moved.date),
        Value::Text(..) if whole_days && text_is_date => Value::text(moved.date.to_string()),
        Value::Text(..) => Value::text(temporal::format_datetime(moved, digits)),
        _ => Value::DateTime(moved, digits),
    })
}

/// Whether an interval of this unit changes the time of day.
pub fn finer_than_day(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    !matches!(unit, Day | Week | Month | Quarter | Year | YearMonth)
}

/// EXTRACT.
pub fn extract(unit: IntervalUnit, value: &Value<'_>) -> Value<'static> {
    use IntervalUnit::*;
    let moment = value.to_datetime(Date::default()).map(|(moment, _)| moment);
    let span = || value.to_time().map(|(span, _)| span).unwrap_or_default();
    let date = |f: fn(Date) -> i64| moment.map_or(Value::Null, |moment| Value::Int(f(moment.date)));
    if value.is_null() {
        return Value::Null;
    }
    match unit {
        Year => date(|d| d.year.into()),
        Month => date(|d| d.month.into()),
        Quarter => date(|d| (i64::from(d.month) + 2) / 3),
        Day => date(|d| d.day.into()),
        Week => date(|d| temporal::week(d, 0).0),
        YearMonth => date(|d| i64::from(d.year) * 100 + i64::from(d.month)),
        Hour => Value::Int(span().hours.into()),
        Minute => Value::Int(span().minutes.into()),
        Second => Value::Int(span().seconds.into()),
        Microsecond => Value::Int(span().micros.into()),
        MinuteSecond => Value::Int(temporal::time_number(span()) % 10_000),
        HourMinute => Value::Int(temporal::time_number(span()) / 100),
        HourSecond => Value::Int(temporal::time_number(span())),
        DayHour | DayMinute | DaySecond => moment.map_or(Value::Null, |moment| {
            let whole = temporal::datetime_number(moment) % 100_000_000;
            Value::Int(match unit {
                DayHour => whole / 10_000,
                DayMinute => whole / 100,
                _ => whole,
            })
        }),
    }
}

/// TIMESTAMPDIFF.
pub fn timestamp_diff(unit: IntervalUnit, from: &Value<'_>, to: &Value<'_>) -> Value<'static> {
    use IntervalUnit::*;
    let moment = |value: &Value<'_>| value.to_datetime(Date::default()).map(|(moment, _)| moment);
    let (Some(from), Some(to)) = (moment(from), moment(to)) else { return Value::Null };
    let micros = temporal::datetime_micros(to) - temporal::datetime_micros(from);
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

fn time_diff<'a>(values: &[Value<'a>], cx: &Context<'a>) -> Evaluated<'a> {
    let moments = values.iter().any(|v| matches!(v, Value::DateTime(..) | Value::Date(_)));
    let date_text = |v: &Value<'_>| matches!(v, Value::Text(t, _) if t.contains(&b'-') && t.len() >= 10);
    if moments || values.iter().all(date_text) {
        let moment = |v: &Value<'_>| v.to_datetime(crate::expr::today(cx));
        let (Some((a, da)), Some((b, db))) = (moment(&values[0]), moment(&values[1])) else {
            return Ok(Value::Null);
        };
        let micros = temporal::datetime_micros(a) - temporal::datetime_micros(b);
        return Ok(Value::Time(temporal::time_from_micros(micros), da.max(db)));
    }
    let (Some((a, da)), Some((b, db))) = (values[0].to_time(), values[1].to_time()) else {
        return Ok(Value::Null);
    };
    let micros = temporal::time_micros(a) - temporal::time_micros(b);
    Ok(Value::Time(temporal::time_from_micros(micros), da.max(db)))
}

fn add_time<'a>(values: &[Value<'a>], sign: i64) -> Evaluated<'a> {
    let Some((span, digits)) = values[1].to_time() else { return Ok(Value::Null) };
    let micros = sign * temporal::time_micros(span);
    Ok(match &values[0] {
        Value::DateTime(moment, shown) => {
            temporal::datetime_from_micros(temporal::datetime_micros(*moment) + micros)
                .map_or(Value::Null, |moment| Value::DateTime(moment, digits.max(*shown)))
        }
        value => match value.to_time() {
            Some((base, shown)) => Value::Time(
                temporal::time_from_micros(temporal::time_micros(base) + micros),
                digits.max(shown),
            ),
            None => Value::Null,
        },
    })
}

/// DATE_FORMAT's specifiers.
fn date_format(moment: DateTime, format: &str) -> String {
    use std::fmt::Write as _;
    let date = moment.date;
    let day_name = DAYS[temporal::weekday(date).clamp(0, 6) as usize];
    let month_name = MONTHS.get(usize::from(date.month).wrapping_sub(1)).copied().unwrap_or("");
    let hour12 = (moment.hour + 11) % 12 + 1;
    let half = if moment.hour < 12 { "AM" } else { "PM" };
    let mut result = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match chars.next() {
            Some('Y') => write!(result, "{:04}", date.year),
            Some('y') => write!(result, "{:02}", date.year % 100),
            Some('m') => write!(result, "{:02}", date.month),
            Some('c') => write!(result, "{}", date.month),
            Some('d') => write!(result, "{:02}", date.day),
            Some('e') => write!(result, "{}", date.day),
            Some('H') => write!(result, "{:02}", moment.hour),
            Some('k') => write!(result, "{}", moment.hour),
            Some('h' | 'I') => write!(result, "{hour12:02}"),
            Some('l') => write!(result, "{hour12}"),
            Some('i') => write!(result, "{:02}", moment.minute),
            Some('s' | 'S') => write!(result, "{:02}", moment.second),
            Some('f') => write!(result, "{:06}", moment.micros),
            Some('p') => write!(result, "{half}"),
            Some('T') => write!(result, "{:02}:{:02}:{:02}", moment.hour, moment.minute, moment.second),
            Some('r') => write!(result, "{hour12:02}:{:02}:{:02} {half}", moment.minute, moment.second),
            Some('W') => write!(result, "{day_name}"),
            Some('a') => write!(result, "{}", &day_name[..3]),
            Some('M') => write!(result, "{month_name}"),
            Some('b') => write!(result, "{}", month_name.get(..3).unwrap_or("")),
            Some('j') => write!(result, "{:03}", temporal::day_of_year(date)),
            Some('w') => write!(result, "{}", (temporal::weekday(date) + 1) % 7),
            Some('u') => write!(result, "{:02}", temporal::week(date, 1).0),
            Some('U') => write!(result, "{:02}", temporal::week(date, 0).0),
            Some('v') => write!(result, "{:02}", temporal::week(date, 3).0),
            Some('V') => write!(result, "{:02}", temporal::week(date, 2).0),
            Some('x') => write!(result, "{:04}", temporal::week(date, 3).1),
            Some('X') => write!(result, "{:04}", temporal::week(date, 2).1),
            Some('D') => write!(result, "{}{}", date.day, ordinal(date.day)),
            Some(other) => write!(result, "{other}"),
            None => write!(result, "%"),
        };
    }
    result
}

fn ordinal(day: u8) -> &'static str {
    match (day % 10, day / 10) {
        (1, 0 | 2 | 3) => "st",
        (2, 0 | 2) => "nd",
        (3, 0 | 2) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let moment =
            DateTime { date: Date { year: 2024, month: 2, day: 3 }, hour: 13, ..DateTime::default() };
        assert_eq!(date_format(moment, "%W %D %M %Y %h%p"), "Saturday 3rd February 2024 01PM");
    }
}
