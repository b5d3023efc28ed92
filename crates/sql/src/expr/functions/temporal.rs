//! Functions of dates, times and intervals. The arithmetic is in `value/temporal.rs`.

use bigdecimal::BigDecimal;
use untorn::types::{Date, DateTime, Time};

use super::time_units::{finer_than_day, has_micros, is_of_clock};
use super::{Function, TextOf, any_null, function, index, text_fits, time_format};
use crate::ast::IntervalUnit;
use crate::context::SqlContext;
use crate::errors;
use crate::expr::types::{Type, whole_of_day};
use crate::expr::{Context, Evaluated, Expr};
use crate::result::{SqlError, kind};
use crate::sql_mode;
use crate::time_names::TimeNames;
use crate::value::time_zones::Zone;
use crate::value::{Value, decimal, temporal};

/// A function of one moment that makes a number.
fn of_date<'a>(values: &[Value<'a>], cx: &Context<'a>, apply: impl Fn(DateTime) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(loose_moment(value, cx).map_or(Value::Null, |moment| Value::Int(apply(moment)))),
    }
}

/// A moment some of whose parts may be zero. Numbers up to 100 are a month and a day of 2000.
pub(super) fn loose_moment(value: &Value<'_>, cx: &Context<'_>) -> Option<DateTime> {
    let number = if value.is_number() { temporal::whole_of(value) } else { -1 };
    let value = &whole_of_day(value);
    if let 0..=100 = number
        && (number > 0 || cx.state.refuses_zero_dates(Date::default()))
    {
        let (month, day) = ((number / 100) as u8, (number % 100) as u8);
        let date = Date { year: 2000, month, day };
        return (day <= 31).then_some(DateTime { date, ..DateTime::default() });
    }
    let (moment, _) = value.to_datetime(crate::expr::today(cx))?;
    (!is_refused_zero(value, moment.date, cx)).then_some(moment)
}

/// Whether a text or number is the date 0000-00-00, and the SQL mode takes none.
pub(super) fn is_refused_zero(value: &Value<'_>, date: Date, cx: &Context<'_>) -> bool {
    date == Date::default() && !value.is_temporal() && cx.state.refuses_zero_dates(date)
}

/// A moment that the SQL mode takes: in a text or number it may refuse zeros.
fn taken_moment(value: &Value<'_>, cx: &Context<'_>) -> Option<(DateTime, u8)> {
    let (moment, digits) = value.to_datetime(crate::expr::today(cx))?;
    let refused = !value.is_temporal() && is_refused(moment.date, cx);
    (!refused).then_some((moment, digits))
}

/// Whether a date has parts that are zero and that the mode refuses.
fn is_refused(date: Date, cx: &Context<'_>) -> bool {
    (date.month == 0 || date.day == 0) && cx.state.refuses_zero_dates(date)
}

/// Whether a stored date has parts that are zero and that the mode keeps from becoming another moment.
fn is_refused_stored(date: Date, cx: &Context<'_>) -> bool {
    let mode = cx.state.settings().sql_mode;
    let refuses = |flag: u64| mode & flag != 0;
    (date.month == 0 || date.day == 0) && refuses(sql_mode::NO_ZERO_IN_DATE)
        || date == Date::default() && refuses(sql_mode::NO_ZERO_DATE)
}

/// A date or moment that becomes a moment, if the SQL mode has such days. Not of SQL's.
pub static DAY_OF_MODE: Function = function!("DAY_OF_MODE", 1..=1, |t| t[0], |v, cx| Ok(match &v[0] {
    Value::Date(date) if is_refused_stored(*date, cx) => Value::Null,
    Value::DateTime(moment, _) if is_refused_stored(moment.date, cx) => Value::Null,
    other => other.clone(),
}));

/// A text beside a moment: one that names its offset is a moment of the session's zone. Not of SQL's.
pub static IN_ZONE: Function = function!("IN_ZONE", 1..=1, |t| t[0], |v, cx| Ok(match &v[0] {
    Value::Text(text, _) if temporal::has_offset(text) => match v[0].to_datetime(crate::expr::today(cx)) {
        Some((moment, digits)) => Value::DateTime(moment, digits),
        None => v[0].clone(),
    },
    other => other.clone(),
}));

/// The first moment of a YEAR: what functions of dates are given of such a column. Not of SQL's.
pub static YEAR_BEGINS: Function =
    function!("YEAR_BEGINS", 1..=1, |_| Type::datetime(0), |v, _| Ok(match &v[0] {
        Value::Null => Value::Null,
        year => {
            let date = Date { year: year.to_i64().clamp(0, 9999) as u16, month: 1, day: 1 };
            Value::DateTime(DateTime { date, ..DateTime::default() }, 0)
        }
    }));

/// Whether a function takes a YEAR for the day it begins with.
pub fn is_of_days(name: &str) -> bool {
    const NAMES: [&str; 21] = [
        "YEAR",
        "MONTH",
        "DAY",
        "DAYOFMONTH",
        "QUARTER",
        "DAYOFYEAR",
        "DAYOFWEEK",
        "WEEKDAY",
        "WEEK",
        "WEEKOFYEAR",
        "YEARWEEK",
        "TO_DAYS",
        "TO_SECONDS",
        "DATE",
        "TIMESTAMP",
        "DATEDIFF",
        "LAST_DAY",
        "DAYNAME",
        "MONTHNAME",
        "DATE_FORMAT",
        "UNIX_TIMESTAMP",
    ];
    NAMES.contains(&name)
}

/// Whether all six digits of a second are shown: of text whose digits are not known before it is read.
pub fn shows_six_digits(name: &str, arguments: &[Expr], types: &[Type]) -> bool {
    let read = match name {
        "TIME" | "TIMEDIFF" | "TIMESTAMP" => arguments.len(),
        "CONVERT_TZ" => 1,
        _ => return false,
    };
    let unknown = |(argument, ty): (&Expr, &Type)| ty.is_text() && !matches!(argument, Expr::Literal(_));
    arguments.iter().zip(types).take(read).any(unknown)
}

/// A function of one whole date: days and months that are zero give NULL.
fn of_day<'a>(values: &[Value<'a>], cx: &Context<'a>, apply: impl Fn(DateTime) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(whole_date(value, cx).map_or(Value::Null, |moment| Value::Int(apply(moment)))),
    }
}

/// A moment whose month and day are not zero.
pub(super) fn whole_date(value: &Value<'_>, cx: &Context<'_>) -> Option<DateTime> {
    let (moment, _) = value.to_datetime(crate::expr::today(cx))?;
    (moment.date.month > 0 && moment.date.day > 0).then_some(moment)
}

fn of_time<'a>(values: &[Value<'a>], cx: &Context<'a>, apply: impl Fn(Time) -> i64) -> Evaluated<'a> {
    match values.first() {
        None | Some(Value::Null) => Ok(Value::Null),
        Some(value) => {
            let span = value.to_time(crate::expr::today(cx));
            Ok(span.map_or(Value::Null, |(span, _)| Value::Int(apply(span))))
        }
    }
}

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("YEAR", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.year.into())),
    function!("MONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.month.into())),
    function!("DAY", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("DAYOFMONTH", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| d.date.day.into())),
    function!("QUARTER", 1..=1, |_| Type::INT, |v, cx| of_date(v, cx, |d| (i64::from(d.date.month) + 2) / 3)),
    function!("DAYOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_day(v, cx, |d| temporal::day_of_year(d.date))),
    function!("DAYOFWEEK", 1..=1, |_| Type::INT, |v, cx| of_day(v, cx, |d| (temporal::weekday(d.date) + 1)
        % 7
        + 1)),
    function!("WEEKDAY", 1..=1, |_| Type::INT, |v, cx| of_day(v, cx, |d| temporal::weekday(d.date))),
    function!("WEEK", 1..=2, |_| Type::INT, |v, cx| {
        if matches!(v, [day, Value::Null] if !day.is_null()) {
            return Ok(Value::Int(0));
        }
        let mode = if v.len() < 2 { cx.state.settings().default_week_format } else { index(v, 1) as u8 };
        of_day(v, cx, |d| temporal::week(d.date, mode).0)
    }),
    function!("WEEKOFYEAR", 1..=1, |_| Type::INT, |v, cx| of_day(v, cx, |d| temporal::week(d.date, 3).0)),
    function!("YEARWEEK", 1..=2, |_| Type::INT, |v, cx| {
        if matches!(v, [day, Value::Null] if !day.is_null()) {
            return Ok(Value::Int(0));
        }
        let mode = index(v, 1) as u8 | 2;
        of_day(v, cx, |d| {
            let (week, year) = temporal::week(d.date, mode);
            year * 100 + week
        })
    }),
    function!("TO_DAYS", 1..=1, |_| Type::INT, |v, cx| {
        of_day(&[whole_of_day(&v[0]).into_owned()], cx, |d| temporal::day_number(d.date))
    }),
    function!("TO_SECONDS", 1..=1, |_| Type::INT, |v, cx| of_day(v, cx, |d| {
        temporal::day_number(d.date) * 86_400 + d.to_unix().rem_euclid(86_400)
    })),
    function!("FROM_DAYS", 1..=1, |_| Type::DATE, |v, _| {
        let date = if v[0].is_null() { None } else { temporal::from_day_number(index(v, 0)) };
        Ok(date.map_or(Value::Null, Value::Date))
    }),
    function!("HOUR", 1..=1, |_| Type::INT, |v, cx| of_time(v, cx, |t| t.hours.into())),
    function!("MINUTE", 1..=1, |_| Type::INT, |v, cx| of_time(v, cx, |t| t.minutes.into())),
    function!("SECOND", 1..=1, |_| Type::INT, |v, cx| of_time(v, cx, |t| t.seconds.into())),
    function!("MICROSECOND", 1..=1, |_| Type::INT, |v, cx| of_time(v, cx, |t| t.micros.into())),
    function!("TIME_TO_SEC", 1..=1, |_| Type::INT, |v, cx| of_time(v, cx, |t| temporal::time_micros(t)
        / 1_000_000)),
    function!("SEC_TO_TIME", 1..=1, |t| Type::time(second_digits(t[0])), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => {
            let (micros, digits) = number_micros(&v[0]);
            let time = temporal::time_from_micros(micros.clamp(-SECONDS_FAR, SECONDS_FAR) as i64);
            Value::Time(time, digits)
        }
    })),
    function!("DATE", 1..=1, |_| Type::DATE, |v, cx| Ok(match taken_moment(&v[0], cx) {
        Some((moment, _)) if is_refused(moment.date, cx) => Value::Null,
        Some((moment, _)) => Value::Date(moment.date),
        None => Value::Null,
    })),
    function!("TIME", 1..=1, |_| Type::time(6), |v, cx| Ok(match v[0].to_time(crate::expr::today(cx)) {
        Some((span, digits)) => Value::Time(span, digits),
        None => Value::Null,
    })),
    function!("TIMESTAMP", 1..=2, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = taken_moment(&v[0], cx) else { return Ok(Value::Null) };
        if v[0].is_temporal() && is_refused_stored(moment.date, cx) {
            return Ok(Value::Null);
        }
        let Some(span) = v.get(1) else { return Ok(Value::DateTime(moment, digits)) };
        let Some((span, more)) = span.to_time(crate::expr::today(cx)) else { return Ok(Value::Null) };
        if moment.date.month == 0 || moment.date.day == 0 {
            return Ok(Value::Null);
        }
        let sum = temporal::datetime_micros(moment) + temporal::time_micros(span);
        Ok(temporal::datetime_from_micros(sum)
            .map_or(Value::Null, |sum| Value::DateTime(sum, digits.max(more))))
    }),
    function!("DATEDIFF", 2..=2, |_| Type::INT, |v, cx| {
        let day = |value: &Value<'_>| whole_date(value, cx).map(|moment| temporal::day_number(moment.date));
        Ok(day(&v[0]).zip(day(&v[1])).map_or(Value::Null, |(a, b)| Value::Int(a - b)))
    }),
    function!("TIMEDIFF", 2..=2, |_| Type::time(6), |v, cx| time_diff(v, cx)),
    function!("ADDTIME", 2..=2, add_time_type, |v, cx| add_time(v, 1, cx)).with_text_of(TextOf::Connection),
    function!("SUBTIME", 2..=2, add_time_type, |v, cx| add_time(v, -1, cx)).with_text_of(TextOf::Connection),
    function!("LAST_DAY", 1..=1, |_| Type::DATE, |v, cx| Ok(match loose_moment(&v[0], cx) {
        Some(moment) if moment.date.month > 0 => {
            let day = temporal::days_in_month(moment.date.year, moment.date.month);
            Value::Date(Date { day, ..moment.date })
        }
        _ => Value::Null,
    })),
    function!("MAKEDATE", 2..=2, |_| Type::DATE, |v, _| {
        let year = match index(v, 0) {
            year @ 0..=69 => 2000 + year,
            year @ 70..=99 => 1900 + year,
            year => year,
        };
        let (Ok(year @ 0..=9999), day @ 1..) = (u16::try_from(year), index(v, 1)) else {
            return Ok(Value::Null);
        };
        let first = temporal::day_number(Date { year, month: 1, day: 1 });
        let date = temporal::from_day_number(first.saturating_add(day - 1));
        Ok(if any_null(v) { Value::Null } else { date.map_or(Value::Null, Value::Date) })
    }),
    function!("DAYNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(match whole_date(&v[0], cx) {
        Some(moment) => {
            let name = cx.state.settings().time_names.day(temporal::weekday(moment.date) as usize, false);
            name.map_or(Value::Null, Value::text)
        }
        None => Value::Null,
    }))
    .with_text_of(TextOf::Connection),
    function!("MONTHNAME", 1..=1, |_| Type::text(9), |v, cx| Ok(match loose_moment(&v[0], cx) {
        Some(moment) => {
            cx.state.settings().time_names.month(moment.date.month, false).map_or(Value::Null, Value::text)
        }
        None => Value::Null,
    }))
    .with_text_of(TextOf::Connection),
    function!("DATE_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((moment, _)) = v[0].to_datetime(crate::expr::today(cx)) else { return Ok(Value::Null) };
        if is_refused_zero(&v[0], moment.date, cx) {
            return Ok(Value::Null);
        }
        date_format(moment, &v[1], &mut Formatted::new("date_format", cx))
    })
    .with_text_of(TextOf::Connection),
    function!("TIME_FORMAT", 2..=2, |_| Type::text(255), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let Some((span, date)) = time_format::span_and_date(&v[0], cx) else { return Ok(Value::Null) };
        time_format::time_format(span, date, &v[1], &mut Formatted::new("time_format", cx))
    }),
    function!("UNIX_TIMESTAMP", 0..=1, unix_timestamp_type, |v, cx| match v.first() {
        None => Ok(Value::Int(cx.state.now_utc().to_unix())),
        Some(Value::Null) => Ok(Value::Null),
        Some(value) => Ok(unix_timestamp(value, cx)),
    }),
    function!(
        "FROM_UNIXTIME",
        1..=2,
        |t| if t.len() == 2 { Type::text(255) } else { Type::datetime(second_digits(t[0])) },
        |v, cx| {
            if any_null(v) || v[0].to_double() < 0.0 {
                return Ok(Value::Null);
            }
            let (micros, digits) = number_micros(&v[0]);
            if micros > UNIX_SECONDS_MAX * 1_000_000 + 999_999 {
                return Ok(Value::Null);
            }
            let micros = micros as i64 + i64::from(cx.state.time_zone_offset()) * 1_000_000;
            let Some(moment) = temporal::datetime_from_micros(micros) else { return Ok(Value::Null) };
            match v.get(1) {
                Some(format) => date_format(moment, format, &mut Formatted::new("from_unixtime", cx)),
                None => Ok(Value::DateTime(moment, digits)),
            }
        }
    ),
    function!("CONVERT_TZ", 3..=3, |_| Type::datetime(6), |v, cx| {
        let Some((moment, digits)) = v[0].to_datetime(crate::expr::today(cx)) else {
            return Ok(Value::Null);
        };
        if moment.date.month == 0 || moment.date.day == 0 {
            return Ok(Value::Null);
        }
        let zone = |name: &Value<'_>| Zone::of_name(&name.to_string_lossy());
        let (Some(from), Some(to)) = (zone(&v[1]), zone(&v[2])) else { return Ok(Value::Null) };
        let local = moment.to_unix();
        let Some(utc) = from.to_utc(local) else { return Ok(Value::Null) };
        // What no TIMESTAMP can be stays where it is.
        if !(1..=UNIX_SECONDS_MAX as i64).contains(&utc) {
            return Ok(Value::DateTime(moment, digits));
        }
        let Some(there) = to.to_local(utc) else { return Ok(Value::Null) };
        let micros = temporal::datetime_micros(moment) + (there - local) * 1_000_000;
        Ok(temporal::datetime_from_micros(micros).map_or(Value::Null, |m| Value::DateTime(m, digits)))
    }),
];

/// The last second of FROM_UNIXTIME.
const UNIX_SECONDS_MAX: i128 = 32_536_771_199;

/// Microseconds beyond every TIME.
const SECONDS_FAR: i128 = 10_000_000_000_000;

/// Digits of a second in a number of this type.
fn second_digits(ty: Type) -> u8 {
    if ty.is_integer() {
        0
    } else if ty.kind == kind::NEWDECIMAL {
        ty.decimals.min(6)
    } else {
        6
    }
}

/// A number of seconds in microseconds, and how many digits of a second it has.
fn number_micros(value: &Value<'_>) -> (i128, u8) {
    let exact = value.to_decimal();
    let digits = match value {
        Value::Int(_) | Value::UInt(_) => 0,
        Value::Decimal(number) => decimal::scale(number).min(6),
        _ => 6,
    };
    (decimal::to_integer(&decimal::multiply(&exact, &1_000_000.into())), digits)
}

fn unix_timestamp_type(types: &[Type]) -> Type {
    match types.first() {
        Some(ty) if ty.is_text() => Type::decimal(18, 6),
        Some(ty) if matches!(ty.kind, kind::DATETIME | kind::TIMESTAMP | kind::TIME) && ty.decimals > 0 => {
            Type::decimal(12 + ty.decimals, ty.decimals)
        }
        Some(ty) if ty.kind == kind::NEWDECIMAL && ty.decimals > 0 => {
            let digits = ty.decimals.min(6);
            Type::decimal(12 + digits, digits)
        }
        _ => Type::INT,
    }
}

/// Seconds since 1970, with as many digits behind the point as the moment is written with.
fn unix_timestamp<'a>(value: &Value<'_>, cx: &Context<'_>) -> Value<'a> {
    let (micros, digits) = match value.to_datetime(crate::expr::today(cx)) {
        Some((moment, digits)) if moment.date.month > 0 && moment.date.day > 0 => {
            let zone = i64::from(cx.state.time_zone_offset()) * 1_000_000;
            let micros = temporal::datetime_micros(moment) - zone;
            let known = (0..(UNIX_SECONDS_MAX as i64 + 1) * 1_000_000).contains(&micros);
            (if known { micros } else { 0 }, digits)
        }
        _ => (0, 0),
    };
    if digits == 0 && !matches!(value, Value::Text(..)) {
        return Value::Int(micros / 1_000_000);
    }
    Value::Decimal(decimal::round(&BigDecimal::new(micros.into(), 6), i64::from(digits)))
}

pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

pub(super) const MONTHS: [&str; 12] = [
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

/// A moment as it is stored and cast: rounded, or cut under TIME_TRUNCATE_FRACTIONAL.
pub fn kept_datetime(value: DateTime, digits: u8, state: &SqlContext) -> DateTime {
    match state.settings().sql_mode & sql_mode::TIME_TRUNCATE_FRACTIONAL {
        0 => round_datetime(value, digits),
        _ => DateTime { micros: cut_micros(value.micros, digits), ..value },
    }
}

/// As [`kept_datetime`], for spans.
pub fn kept_time(value: Time, digits: u8, state: &SqlContext) -> Time {
    match state.settings().sql_mode & sql_mode::TIME_TRUNCATE_FRACTIONAL {
        0 => round_time(value, digits),
        _ => Time { micros: cut_micros(value.micros, digits), ..value },
    }
}

fn cut_micros(micros: u32, digits: u8) -> u32 {
    let unit = 10u32.pow(6 - u32::from(digits.min(6)));
    micros / unit * unit
}

/// A smaller number is a date alone: `20010101`, `10101`.
const FIRST_WITH_TIME: i128 = 100_000_000;

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
    let Some((months, micros)) = temporal::interval(amount, unit) else {
        cx.state.warn(errors::error(errors::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]));
        return Ok(Value::Null);
    };
    let fraction = interval_digits(amount, unit);
    let sign = if subtract { -1 } else { 1 };
    if let Value::Time(span, digits) = date
        && is_of_clock(unit)
    {
        let sum = temporal::time_micros(span).saturating_add(micros.saturating_mul(sign));
        return Ok(Value::Time(temporal::time_from_micros(sum), digits.max(fraction)));
    }
    let Some((moment, digits)) = date.to_datetime(crate::expr::today(cx)) else {
        return Ok(Value::Null);
    };
    if moment.date.month == 0 || moment.date.day == 0 {
        return Ok(Value::Null);
    }
    let moved =
        if months == 0 { Some(moment) } else { temporal::add_months(moment, months.saturating_mul(sign)) };
    let moved = moved.and_then(|moment| {
        let sum = temporal::datetime_micros(moment).checked_add(micros.checked_mul(sign)?)?;
        temporal::datetime_from_micros(sum)
    });
    let Some(moved) = moved else {
        cx.state.warn(errors::error(errors::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]));
        return Ok(Value::Null);
    };
    let whole_days = micros % 86_400_000_000 == 0 && !finer_than_day(unit);
    let is_date = match &date {
        Value::Text(text, _) => text.len() <= 10,
        number => number.to_whole().abs() < FIRST_WITH_TIME,
    };
    Ok(match date {
        Value::Date(_) if whole_days => Value::Date(moved.date),
        Value::Date(_) | Value::DateTime(..) | Value::Time(..) => {
            Value::DateTime(moved, digits.max(fraction))
        }
        _ if whole_days && is_date => Value::text(moved.date.to_string()),
        _ => {
            let digits = if moved.micros > 0 { 6 } else { 0 };
            Value::text(temporal::format_datetime(moved, digits))
        }
    })
}

/// Digits of a second that an interval brings along.
fn interval_digits(amount: &Value<'_>, unit: IntervalUnit) -> u8 {
    match (unit, amount) {
        (unit, _) if has_micros(unit) => 6,
        (IntervalUnit::Second, Value::Int(_) | Value::UInt(_)) => 0,
        (IntervalUnit::Second, Value::Decimal(number)) => decimal::scale(number).min(6),
        (IntervalUnit::Second, _) => 6,
        _ => 0,
    }
}

/// [`interval_digits`] of an amount of this type.
pub fn interval_type_digits(amount: Type, unit: IntervalUnit) -> u8 {
    match unit {
        unit if has_micros(unit) => 6,
        IntervalUnit::Second => second_digits(amount),
        _ => 0,
    }
}

fn time_diff<'a>(values: &[Value<'a>], cx: &Context<'a>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let today = crate::expr::today(cx);
    let read = |value: &Value<'_>| match reads_as_moment(value) {
        true => value.to_datetime(today).map(|(moment, digits)| (temporal::datetime_micros(moment), digits)),
        false => value.to_time(today).map(|(span, digits)| (temporal::time_micros(span), digits)),
    };
    // There is nothing between a moment and a span.
    if reads_as_moment(&values[0]) != reads_as_moment(&values[1]) {
        return Ok(Value::Null);
    }
    let (Some((a, da)), Some((b, db))) = (read(&values[0]), read(&values[1])) else {
        return Ok(Value::Null);
    };
    Ok(Value::Time(temporal::time_from_micros(a - b), da.max(db)))
}

fn add_time_type(types: &[Type]) -> Type {
    let more = if types[1].is_text() { 6 } else { types[1].decimals.min(6) };
    match types[0].kind {
        kind::DATE => Type::datetime(more),
        kind::DATETIME | kind::TIMESTAMP => Type::datetime(types[0].decimals.max(more)),
        kind::TIME => Type::time(types[0].decimals.max(more)),
        _ => Type::text(29),
    }
}

/// Whether a text is written as a day rather than as a span.
pub(super) fn is_moment(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    digits >= 12 || digits > 0 && matches!(text.get(digits), Some(b'-' | b'/'))
}

/// Whether a value is a moment where that or a span may stand.
fn reads_as_moment(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text, _) => is_moment(text.trim_ascii()),
        Value::DateTime(..) | Value::Date(_) => true,
        number => number.is_number() && number.to_i64().unsigned_abs() > 8_385_959,
    }
}

fn add_time<'a>(values: &[Value<'a>], sign: i64, cx: &Context<'_>) -> Evaluated<'a> {
    let today = crate::expr::today(cx);
    if any_null(values) {
        return Ok(Value::Null);
    }
    let Some((span, digits)) = values[1].to_time(today) else { return Ok(Value::Null) };
    let micros = sign * temporal::time_micros(span);
    let base = &values[0];
    let typed = base.is_temporal();
    let shown_digits = |micros: u32| if micros > 0 { 6 } else { 0 };
    if reads_as_moment(base) {
        let Some((start, shown)) = base.to_datetime(today) else { return Ok(Value::Null) };
        if start.date.month == 0 || start.date.day == 0 {
            return Ok(Value::Null);
        }
        let sum = temporal::datetime_from_micros(temporal::datetime_micros(start) + micros);
        let Some(sum) = sum else { return Ok(Value::Null) };
        return Ok(match typed {
            true => Value::DateTime(sum, digits.max(shown)),
            false => Value::text(temporal::format_datetime(sum, shown_digits(sum.micros))),
        });
    }
    let Some((start, shown)) = base.to_time(today) else { return Ok(Value::Null) };
    let sum = temporal::time_from_micros(temporal::time_micros(start) + micros);
    Ok(match typed {
        true => Value::Time(sum, digits.max(shown)),
        false => Value::text(temporal::format_time(sum, shown_digits(sum.micros))),
    })
}

/// DATE_FORMAT. NULL for the name of something that the date has not.
fn date_format<'a>(moment: DateTime, format: &Value<'_>, made: &mut Formatted<'_>) -> Evaluated<'a> {
    let format = made.begin(format)?;
    if format.is_empty() {
        return Ok(Value::Null);
    }
    let mut rest = &*format;
    while !rest.is_empty() {
        let names = made.cx.state.settings().time_names;
        let Some(next) = date_piece(moment, rest, names, &mut made.text) else { return Ok(Value::Null) };
        rest = next;
        if !made.has_grown()? {
            return Ok(Value::Null);
        }
    }
    Ok(made.finish())
}

/// A text that a format makes. It may be much longer than the format: its memory is charged as it grows, and
/// it ends at `max_allowed_packet`.
pub(super) struct Formatted<'c> {
    pub(super) text: String,
    charged: usize,
    function: &'static str,
    pub(super) cx: &'c Context<'c>,
}

/// Bytes of work that a piece of a format counts for: the number of a week takes the longest.
const PIECE_BYTES: usize = 64;
/// Bytes of a text that are charged at a time.
const CHARGED_BYTES: usize = 64 << 10;

impl<'c> Formatted<'c> {
    fn new(function: &'static str, cx: &'c Context<'c>) -> Formatted<'c> {
        Formatted { text: String::new(), charged: 0, function, cx }
    }

    pub(super) fn begin(&self, format: &Value<'_>) -> Result<String, SqlError> {
        let bytes = format.to_text();
        self.cx.state.hold(bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A piece was written. `false` when the text has become too long; the warning has been given.
    pub(super) fn has_grown(&mut self) -> Result<bool, SqlError> {
        self.cx.state.work(PIECE_BYTES)?;
        if self.text.len() > self.charged {
            // A String doubles when it is full.
            let more = self.text.len().max(CHARGED_BYTES);
            self.cx.state.hold(more)?;
            self.charged += more;
            return Ok(text_fits(self.text.len(), self.function, self.cx.state));
        }
        Ok(true)
    }

    pub(super) fn finish<'a>(&mut self) -> Value<'a> {
        match text_fits(self.text.len(), self.function, self.cx.state) {
            true => Value::text(std::mem::take(&mut self.text)),
            false => Value::Null,
        }
    }
}

/// Writes what the format begins with, a specifier or the text before one. What is left of it; `None` for the
/// name of something that the date has not.
pub(super) fn date_piece<'f>(
    moment: DateTime,
    format: &'f str,
    names: &TimeNames,
    result: &mut String,
) -> Option<&'f str> {
    use std::fmt::Write as _;
    let date = moment.date;
    // A date without year and month is no day of a week.
    let weekday = || (date.year > 0 || date.month > 0).then(|| temporal::weekday(date));
    let day_name = |short| names.day(weekday()? as usize, short);
    let time = temporal::time_of_day(moment);
    let Some((specifier, rest)) = specifier(format, result) else { return Some("") };
    let Some(specifier) = specifier else { return Some(rest) };
    // Writing to a String cannot fail.
    let _ = match specifier {
        'Y' => write!(result, "{:04}", date.year),
        'y' => write!(result, "{:02}", date.year % 100),
        'm' => write!(result, "{:02}", date.month),
        'c' => write!(result, "{}", date.month),
        'd' => write!(result, "{:02}", date.day),
        'e' => write!(result, "{}", date.day),
        'W' | 'a' => write!(result, "{}", day_name(specifier == 'a')?),
        'M' | 'b' => write!(result, "{}", names.month(date.month, specifier == 'b')?),
        'j' => write!(result, "{:03}", temporal::day_of_year(date)),
        'w' => write!(result, "{}", (weekday()? + 1) % 7),
        'u' => write!(result, "{:02}", temporal::week(date, 1).0),
        'U' => write!(result, "{:02}", temporal::week(date, 0).0),
        'v' => write!(result, "{:02}", temporal::week(date, 3).0),
        'V' => write!(result, "{:02}", temporal::week(date, 2).0),
        'x' => write!(result, "{:04}", temporal::week(date, 3).1),
        'X' => write!(result, "{:04}", temporal::week(date, 2).1),
        'D' => write!(result, "{}{}", date.day, ordinal(date.day)),
        other => {
            time_part(time, other, result);
            Ok(())
        }
    };
    Some(rest)
}

/// Writes the text before a specifier, or takes the specifier that the format begins with; and what is left
/// of it. `None` for a format that ends in a `%`, which stands for itself.
pub(super) fn specifier<'f>(format: &'f str, result: &mut String) -> Option<(Option<char>, &'f str)> {
    match format.strip_prefix('%') {
        None => {
            // Of a long text a piece at a time.
            let end = format.find('%').unwrap_or(format.len()).min(format.ceil_char_boundary(CHARGED_BYTES));
            result.push_str(&format[..end]);
            Some((None, &format[end..]))
        }
        Some(rest) => {
            let mut rest = rest.chars();
            let specifier = rest.next();
            if specifier.is_none() {
                result.push('%');
            }
            specifier.map(|specifier| (Some(specifier), rest.as_str()))
        }
    }
}

/// The specifiers of a time of day; any other stands for itself.
pub(super) fn time_part(time: Time, specifier: char, result: &mut String) {
    use std::fmt::Write as _;
    let (hours, minutes, seconds) = (time.hours, time.minutes, time.seconds);
    let twelve = (hours % 24 + 11) % 12 + 1;
    let half = if hours % 24 < 12 { "AM" } else { "PM" };
    // Writing to a String cannot fail.
    let _ = match specifier {
        'H' => write!(result, "{hours:02}"),
        'k' => write!(result, "{hours}"),
        'h' | 'I' => write!(result, "{twelve:02}"),
        'l' => write!(result, "{twelve}"),
        'i' => write!(result, "{minutes:02}"),
        's' | 'S' => write!(result, "{seconds:02}"),
        'f' => write!(result, "{:06}", time.micros),
        'p' => write!(result, "{half}"),
        'T' => write!(result, "{hours:02}:{minutes:02}:{seconds:02}"),
        'r' => write!(result, "{twelve:02}:{minutes:02}:{seconds:02} {half}"),
        other => write!(result, "{other}"),
    };
}

fn ordinal(day: u8) -> &'static str {
    match (day % 10, day / 10) {
        (1, 0 | 2 | 3) => "st",
        (2, 0 | 2) => "nd",
        (3, 0 | 2) => "rd",
        _ => "th",
    }
}
