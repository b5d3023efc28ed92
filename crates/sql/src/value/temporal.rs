//! Parsing, printing and computing dates and times, MySQL's way.
//!
//! Text is read with the relaxed rules (any punctuation between the parts, two-digit years,
//! `20240131123045`), and zero parts are values. Calendar arithmetic goes through day numbers of the
//! proleptic Gregorian calendar.
//!
//! Nothing here knows a time zone: a TIMESTAMP is moved into the session's when it is read from its stored
//! form, and out of it when it is stored ([`crate::stored_values`]).

use untorn::types::{Date, DateTime, Time};

use super::super::ast::IntervalUnit;
use super::{Value, decimal};

/// The day of a session, and how it reads moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Today {
    /// What spans count from.
    pub date: Date,
    /// Seconds that its zone is ahead: a text that names an offset is moved there. Without one, as where
    /// nothing knows the session, the offset says nothing.
    pub zone: Option<i32>,
    /// Every month has 31 days (ALLOW_INVALID_DATES).
    pub any_day: bool,
}

impl Today {
    /// Of a day, where neither zone nor mode matter.
    pub fn of(date: Date) -> Today {
        Today { date, ..Today::default() }
    }
}

/// Longest TIME.
pub const TIME_MAX: Time = Time { negative: false, hours: 838, minutes: 59, seconds: 59, micros: 0 };

/// Days of a month.
pub fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        // The year 0 has no such day.
        2 if year > 0
            && year.is_multiple_of(4)
            && (!year.is_multiple_of(100) || year.is_multiple_of(400)) =>
        {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether the parts name a day (zero parts allowed, as in the default SQL mode they are only warned about on
/// storing).
pub(crate) fn is_valid_date(date: Date, any_day: bool) -> bool {
    date.month <= 12
        && date.year <= 9999
        && (date.day <= 28
            || date.day <= days_in_month(date.year, date.month.max(1))
            || any_day && date.day <= 31)
}

/// Days since 0000-01-01 counted as MySQL's TO_DAYS does (0000-01-01 is day 1).
///
/// A month 0 is the last of the year before, and a day 0 the day before the first.
pub fn day_number(date: Date) -> i64 {
    if date.month == 0 && date.year == 0 {
        return 0;
    }
    if date.month == 0 {
        return day_number(Date { month: 1, day: 1, ..date }) - 32 + i64::from(date.day);
    }
    if date.day == 0 {
        return day_number(Date { day: 1, ..date }) - 1;
    }
    let midnight = DateTime { date, ..DateTime::default() };
    // MySQL's year 0 has no 29 February.
    let before_march = i64::from(date.year == 0 && date.month <= 2);
    midnight.to_unix().div_euclid(86_400) + 719_528 + before_march
}

/// Inverse of [`day_number`]; `None` outside years 0 to 9999.
pub fn from_day_number(days: i64) -> Option<Date> {
    if !(1..=3_652_424).contains(&days) {
        return None;
    }
    let before_march = i64::from(days < 60);
    Some(DateTime::from_unix((days - 719_528 - before_march) * 86_400, 0).date)
}

/// 0 = Monday.
pub fn weekday(date: Date) -> i64 {
    (day_number(date) + 5).rem_euclid(7)
}

/// Day of the year from 1.
pub fn day_of_year(date: Date) -> i64 {
    day_number(date) - day_number(Date { month: 1, day: 1, ..date }) + 1
}

/// WEEK(date, mode): the week and the year it belongs to.
pub fn week(date: Date, mode: u8) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    let with_year = mode & 2 != 0;
    let first_weekday = (mode & 4 != 0) == monday_first;
    let start = |year: i64| {
        let first = Date { year: year.clamp(0, 10_000) as u16, month: 1, day: 1 };
        let number = day_number(first);
        let offset = if monday_first { weekday(first) } else { (weekday(first) + 1) % 7 };
        // Week 1 is the first that begins in the year, or the first with four days in it.
        let begins_here = if first_weekday { offset == 0 } else { offset < 4 };
        if begins_here { number - offset } else { number - offset + 7 }
    };
    let number = day_number(date);
    let year = i64::from(date.year);
    if number < start(year) {
        if !with_year {
            return (0, year);
        }
        return ((number - start(year - 1)) / 7 + 1, year - 1);
    }
    if with_year && number >= start(year + 1) {
        return (1, year + 1);
    }
    ((number - start(year)) / 7 + 1, year)
}

/// Reads digits; the number and how many there were.
fn digits(text: &[u8]) -> (u64, usize) {
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count().min(18);
    (text[..count].iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')), count)
}

/// The year that a text means: two digits are one of this time.
pub fn full_year(year: u64, digits: usize) -> u64 {
    match (digits == 2, year) {
        (true, 0..=69) => 2000 + year,
        (true, _) => 1900 + year,
        _ => year,
    }
}

/// The digits behind a point.
struct Fraction {
    /// The six that are kept.
    micros: u32,
    /// How many of them are given.
    shown: u8,
    /// How long it is in the text.
    length: usize,
    /// The seventh digit rounds up.
    carries: bool,
}

/// Reads the point and digits that a text may begin with.
fn fraction(text: &[u8]) -> Fraction {
    let Some(text) = text.strip_prefix(b".") else {
        return Fraction { micros: 0, shown: 0, length: 0, carries: false };
    };
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut micros = 0;
    for digit in text[..count].iter().chain(std::iter::repeat(&b'0')).take(6) {
        micros = micros * 10 + u32::from(digit - b'0');
    }
    let carries = text[..count].get(6).is_some_and(|digit| *digit >= b'5');
    Fraction { micros, shown: count.min(6) as u8, length: 1 + count, carries }
}

/// One microsecond more, where a day is named.
pub fn carried(value: DateTime) -> Option<DateTime> {
    if value.date.month == 0 || value.date.day == 0 {
        return Some(value);
    }
    datetime_from_micros(datetime_micros(value) + 1)
}

/// The second that a moment is nearest to.
pub fn nearest_second(value: DateTime) -> DateTime {
    if value.micros < 500_000 {
        return value;
    }
    carried(DateTime { micros: 999_999, ..value }).unwrap_or(value)
}

fn check(value: DateTime, any_day: bool) -> Option<DateTime> {
    let valid =
        is_valid_date(value.date, any_day) && value.hour < 24 && value.minute < 60 && value.second < 60;
    valid.then_some(value)
}

/// Reads a date with or without a time of day; also how many digits of a second were given and whether
/// anything followed. `None` when it is no date.
pub fn parse_datetime(text: &[u8], today: Today) -> Option<(DateTime, u8, bool)> {
    let text = text.trim_ascii();
    let run = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let compact = matches!(text.get(run), None | Some(b'.' | b'T'));
    if compact && (run >= 5 || run == text.len() && run > 0) {
        return compact_datetime(text, today);
    }
    let mut parts = [0u64; 6];
    let mut at = 0;
    let mut year_digits = 0;
    let mut count = 0;
    while count < 6 {
        let (number, length) = digits(&text[at..]);
        if length == 0 {
            break;
        }
        if count == 0 {
            year_digits = length;
        }
        parts[count] = number;
        count += 1;
        at += length;
        let separator = match text.get(at) {
            None => break,
            Some(b'.') if count == 6 => break,
            Some(b'T' | b't' | b' ') if count == 3 => true,
            Some(byte) => {
                byte.is_ascii_punctuation() && *byte != b'+' || (count == 3 && byte.is_ascii_whitespace())
            }
        };
        if !separator || count == 6 {
            break;
        }
        at += 1;
        while count == 3 && text.get(at) == Some(&b' ') {
            at += 1;
        }
        // Several delimiters are one.
        while text.get(at).is_some_and(|byte| byte.is_ascii_punctuation() && *byte != b'+') {
            at += 1;
        }
    }
    if count < 3 {
        return None;
    }
    let fraction = fraction(if count == 6 { &text[at..] } else { b"" });
    at += fraction.length;
    let year = if parts.iter().all(|part| *part == 0) { 0 } else { full_year(parts[0], year_digits) };
    let value = assemble(year, &parts[1..], fraction.micros, today.any_day)?;
    let value = if fraction.carries { carried(value)? } else { value };
    if count == 6 && matches!(text.get(at), Some(b'+' | b'-')) {
        return Some((moved(value, offset(&text[at..])?, today)?, fraction.shown, false));
    }
    Some((value, fraction.shown, at < text.len()))
}

/// The seconds of `+hh:mm`, which is all there is: from -14:00 to +14:00.
fn offset(text: &[u8]) -> Option<i32> {
    let [sign, h, hh, b':', m, mm] = text else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
    let (hours, minutes) = (digit(h)? * 10 + digit(hh)?, digit(m)? * 10 + digit(mm)?);
    let seconds = hours * 3600 + minutes * 60;
    let negative = *sign == b'-';
    let known = minutes < 60 && seconds <= 14 * 3600 && !(negative && seconds == 0);
    known.then_some(if negative { -seconds } else { seconds })
}

/// Whether a text is a day and nothing else: three numbers with signs between them.
pub fn is_only_day(text: &[u8]) -> bool {
    let mut parts = text.trim_ascii().splitn(4, |byte| *byte == b'-');
    let mut number = |most: usize| {
        parts
            .next()
            .is_some_and(|part| (1..=most).contains(&part.len()) && part.iter().all(u8::is_ascii_digit))
    };
    number(4) && number(2) && number(2) && parts.next().is_none()
}

/// Whether a text is read as a moment where a span may stand.
pub fn is_moment_for_span(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    digits(text).1 >= 12 || is_day_and_time(text)
}

/// Whether a text may be a moment that names its offset.
pub fn has_offset(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), [.., b'+' | b'-', _, _, b':', _, _])
}

/// A moment with this offset in the session's zone. Days and months that are zero are in none.
fn moved(value: DateTime, offset: i32, today: Today) -> Option<DateTime> {
    if value.date.month == 0 || value.date.day == 0 {
        return None;
    }
    let Some(zone) = today.zone else { return Some(value) };
    datetime_from_micros(datetime_micros(value) + i64::from(zone - offset) * 1_000_000)
}

fn assemble(year: u64, rest: &[u64], micros: u32, any_day: bool) -> Option<DateTime> {
    let small = |n: u64| u8::try_from(n).ok();
    let part = |index: usize| small(rest.get(index).copied().unwrap_or(0));
    let moment = DateTime {
        date: Date { year: u16::try_from(year).ok()?, month: part(0)?, day: part(1)? },
        hour: part(2)?,
        minute: part(3)?,
        second: part(4)?,
        micros,
    };
    check(moment, any_day)
}

/// `YYYYMMDD`, `YYMMDD`, the same with `hhmmss` behind it, also behind a `T`, and a fraction at the end. Read
/// from the left; how long it is says whether the year has four digits.
fn compact_datetime(text: &[u8], today: Today) -> Option<(DateTime, u8, bool)> {
    let run = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'T').count();
    let year_digits = if matches!(run, 4 | 8 | 14..) { 4 } else { 2 };
    let (mut parts, mut at) = ([0u64; 6], 0);
    for (number, part) in parts.iter_mut().enumerate() {
        if number == 3 && text.get(at) == Some(&b'T') {
            at += 1;
        }
        let most = if number == 0 { year_digits } else { 2 };
        let rest = &text[at..];
        let length = rest.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if length == 0 && number < 3 {
            return None;
        }
        *part = digits(&rest[..length]).0;
        at += length;
    }
    let fraction = fraction(&text[at..]);
    at += fraction.length;
    let zero = parts.iter().all(|part| *part == 0);
    let year = if zero { 0 } else { full_year(parts[0], year_digits) };
    let value = assemble(year, &parts[1..], fraction.micros, today.any_day)?;
    let value = if fraction.carries { carried(value)? } else { value };
    Some((value, fraction.shown, at < text.len()))
}

/// A number without its fraction, cut at the ends of 64 bits.
pub fn whole_of(value: &Value<'_>) -> i64 {
    if matches!(value, Value::Int(_) | Value::UInt(_)) {
        return value.to_i64();
    }
    let limit = i128::from(i64::MAX);
    decimal::to_integer(&value.to_decimal().with_scale(0)).clamp(-limit, limit) as i64
}

/// A number such as 20240131 or 20240131123045 as a date.
pub fn datetime_from_number(number: i64, any_day: bool) -> Option<DateTime> {
    if number == 0 {
        return Some(DateTime::default());
    }
    let (date, time) = match number {
        101..=99_991_231 => (number, 0),
        number => (number / 1_000_000, number % 1_000_000),
    };
    // Two digits of a year are one of this time; three are none.
    let date = match date {
        101..=691_231 => 20_000_000 + date,
        700_101..=991_231 => 19_000_000 + date,
        10_000_101..=99_991_231 => date,
        _ => return None,
    };
    let [date, time] = [date, time].map(i64::unsigned_abs);
    let rest = [date / 100 % 100, date % 100, time / 10_000, time / 100 % 100, time % 100];
    assemble(date / 10_000, &rest, 0, any_day)
}

/// Reads a span: `[-][d ]h:m:s[.f]`, `h:m`, `hhmmss`, or the time of a full date. Also whether anything
/// followed or it was cut to the largest span.
pub fn parse_time(text: &[u8], today: Today) -> Option<(Time, u8, bool)> {
    let text = text.trim_ascii();
    let negative = text.first() == Some(&b'-');
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (first, length) = digits(text);
    if length == 0 {
        return None;
    }
    if length >= 12 || is_day_and_time(text) {
        // No moment is below zero.
        let (value, shown, rest) = parse_datetime(text, today).filter(|_| !negative)?;
        return Some((time_of_day(value), shown, rest));
    }
    let mut at = length;
    let (mut days, mut parts, mut count) = (None, [0u64; 3], 0);
    let blanks = text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    // One digit alone behind a blank is not taken for hours.
    if blanks > 0 && text.len() > at + blanks + 1 && text[at + blanks].is_ascii_digit() {
        days = Some(u64::from(u32::try_from(first).ok()?));
        at += blanks;
    } else {
        parts[0] = first;
        count = 1;
    }
    while count < 3 {
        if count > 0 {
            if text.get(at) != Some(&b':') || !text.get(at + 1).is_some_and(u8::is_ascii_digit) {
                break;
            }
            at += 1;
        }
        let (number, length) = digits(&text[at..]);
        parts[count] = number;
        count += 1;
        at += length;
    }
    if count == 1 && days.is_none() {
        // `hhmmss` without separators.
        parts = [parts[0] / 10_000, parts[0] / 100 % 100, parts[0] % 100];
    }
    let Fraction { micros, shown, length, carries } = fraction(&text[at..]);
    at += length;
    if parts[1] > 59 || parts[2] > 59 || is_exponent(&text[at..]) {
        return None;
    }
    let hours = days.unwrap_or(0).saturating_mul(24).saturating_add(parts[0]);
    // There are 32 bits for them.
    if parts[0] > u32::MAX.into() {
        return None;
    }
    if hours > 838 {
        return Some((Time { negative, ..TIME_MAX }, shown, true));
    }
    let time =
        Time { negative, hours: hours as u16, minutes: parts[1] as u8, seconds: parts[2] as u8, micros };
    let step = if negative { -1 } else { 1 };
    let time = if carries { time_from_micros(time_micros(time) + step) } else { time };
    Some((time, shown, at < text.len()))
}

/// Whether a text where a span may stand is a moment: twelve characters or more, three numbers and, behind a
/// blank, another one. A day alone is none: `2001-01-01` is 20 minutes and a second.
pub(super) fn is_day_and_time(text: &[u8]) -> bool {
    let mut rest = text;
    for number in 0..3 {
        let length = digits(rest).1;
        rest = &rest[length..];
        match rest.split_first() {
            Some((byte, _)) if length > 0 && number == 2 && byte.is_ascii_whitespace() => {}
            Some((byte, behind)) if length > 0 && number < 2 && byte.is_ascii_punctuation() => rest = behind,
            _ => return false,
        }
    }
    text.len() >= 12 && rest.trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
}

/// Whether a text begins with a number that has an exponent: no span, but not an error where it is stored.
pub fn has_exponent(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let number = text.iter().take_while(|byte| byte.is_ascii_digit() || b".: ".contains(byte)).count();
    number > 0 && is_exponent(&text[number..])
}

/// Whether `e` and digits stand here.
fn is_exponent(text: &[u8]) -> bool {
    match text {
        [b'e' | b'E', b'+' | b'-', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// A number such as 123045 as a span.
pub fn time_from_number(number: i64) -> Option<Time> {
    let magnitude = number.unsigned_abs();
    if magnitude > 8_385_959 {
        // A moment has a time of day, which a day alone does not have.
        return datetime_from_number(number, false).filter(|_| number >= 10_000_000_000).map(time_of_day);
    }
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    (minutes < 60 && seconds < 60).then_some(Time {
        negative: number < 0,
        hours: hours as u16,
        minutes: minutes as u8,
        seconds: seconds as u8,
        micros: 0,
    })
}

/// The time part.
pub fn time_of_day(value: DateTime) -> Time {
    Time {
        negative: false,
        hours: u16::from(value.hour),
        minutes: value.minute,
        seconds: value.second,
        micros: value.micros,
    }
}

/// Numbers below have no more digits than a day, `YYYYMMDD`.
pub const DAY_NUMBERS_END: i64 = 100_000_000;

/// As `YYYYMMDD`.
pub fn date_number(date: Date) -> i64 {
    i64::from(date.year) * 10_000 + i64::from(date.month) * 100 + i64::from(date.day)
}

/// Whether a moment is not the beginning of its day.
pub fn has_clock(moment: DateTime) -> bool {
    moment != DateTime { date: moment.date, ..DateTime::default() }
}

/// As `YYYYMMDDhhmmss`.
pub fn datetime_number(value: DateTime) -> i64 {
    date_number(value.date) * 1_000_000
        + i64::from(value.hour) * 10_000
        + i64::from(value.minute) * 100
        + i64::from(value.second)
}

/// As `hhmmss`, signed.
pub fn time_number(value: Time) -> i64 {
    let number = i64::from(value.hours) * 10_000 + i64::from(value.minutes) * 100 + i64::from(value.seconds);
    if value.negative { -number } else { number }
}

/// Microseconds of a span.
pub fn time_micros(value: Time) -> i64 {
    let seconds = i64::from(value.hours) * 3600 + i64::from(value.minutes) * 60 + i64::from(value.seconds);
    let micros = seconds * 1_000_000 + i64::from(value.micros);
    if value.negative { -micros } else { micros }
}

/// The span of this many microseconds, cut to the largest one.
pub fn time_from_micros(micros: i64) -> Time {
    let magnitude = micros.unsigned_abs();
    let seconds = magnitude / 1_000_000;
    if seconds / 3600 > 838 {
        return Time { negative: micros < 0, ..TIME_MAX };
    }
    Time {
        negative: micros < 0,
        hours: (seconds / 3600) as u16,
        minutes: (seconds / 60 % 60) as u8,
        seconds: (seconds % 60) as u8,
        micros: (magnitude % 1_000_000) as u32,
    }
}

/// Microseconds since 1970 of a moment without zone.
pub fn datetime_micros(value: DateTime) -> i64 {
    value.to_unix() * 1_000_000 + i64::from(value.micros)
}

/// Inverse of [`datetime_micros`]; `None` outside years 0 to 9999.
pub fn datetime_from_micros(micros: i64) -> Option<DateTime> {
    let seconds = micros.div_euclid(1_000_000);
    if !(-62_167_219_200..=253_402_300_799).contains(&seconds) {
        return None;
    }
    Some(DateTime::from_unix(seconds, micros.rem_euclid(1_000_000) as u32))
}

/// `value` moved by this many months, the day cut to the month's last.
pub fn add_months(value: DateTime, months: i64) -> Option<DateTime> {
    let total = (i64::from(value.date.year) * 12 + i64::from(value.date.month) - 1).checked_add(months)?;
    let year = u16::try_from(total.div_euclid(12)).ok().filter(|year| *year <= 9999)?;
    let month = (total.rem_euclid(12) + 1) as u8;
    let day = value.date.day.min(days_in_month(year, month));
    Some(DateTime { date: Date { year, month, day }, ..value })
}

/// An interval as months and microseconds. `None` when the amount has more numbers than the unit has parts.
pub fn interval(amount: &Value<'_>, unit: IntervalUnit) -> Option<(i64, i64)> {
    use IntervalUnit::*;
    const SECOND: i64 = 1_000_000;
    let text: &[u8] = &amount.to_text();
    let single = |scale: i64| match amount {
        // Only seconds have a fraction.
        _ if unit == Second => {
            let micros = decimal::multiply(&amount.to_decimal(), &scale.into());
            decimal::to_integer(&micros).clamp(i64::MIN.into(), i64::MAX.into()) as i64
        }
        number => number.to_i64().saturating_mul(scale),
    };
    Some(match unit {
        Microsecond => (0, single(1)),
        Second => (0, single(SECOND)),
        Minute => (0, single(60 * SECOND)),
        Hour => (0, single(3600 * SECOND)),
        Day => (0, single(86_400 * SECOND)),
        Week => (0, single(7 * 86_400 * SECOND)),
        Month => (single(1), 0),
        Quarter => (single(3), 0),
        Year => (single(12), 0),
        YearMonth => {
            let parts = compound(text, 2)?;
            (parts[0].saturating_mul(12).saturating_add(parts[1]), 0)
        }
        MinuteSecond => (0, weigh(text, &[60, 1])?),
        HourMinute => (0, weigh(text, &[3600, 60])?),
        HourSecond => (0, weigh(text, &[3600, 60, 1])?),
        DayHour => (0, weigh(text, &[86_400, 3600])?),
        DayMinute => (0, weigh(text, &[86_400, 3600, 60])?),
        DaySecond => (0, weigh(text, &[86_400, 3600, 60, 1])?),
        SecondMicrosecond => (0, weigh_micros(text, &[1])?),
        MinuteMicrosecond => (0, weigh_micros(text, &[60, 1])?),
        HourMicrosecond => (0, weigh_micros(text, &[3600, 60, 1])?),
        DayMicrosecond => (0, weigh_micros(text, &[86_400, 3600, 60, 1])?),
    })
}

/// As [`weigh`], with a last number that is a fraction of a second: in front of up to six digits there is a
/// point, so to say; more of them are a number of microseconds, as MySQL has it.
fn weigh_micros(text: &[u8], seconds: &[i64]) -> Option<i64> {
    let end = text.iter().rposition(u8::is_ascii_digit).map_or(0, |last| last + 1);
    let start = text[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |before| before + 1);
    let shown = &text[start..end];
    let next = |number: i64, digit: &u8| number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    let digits = shown.iter().fold(0, next);
    let micros = digits.saturating_mul(10i64.pow(6 - shown.len().min(6) as u32));
    let negative = text.trim_ascii_start().starts_with(b"-");
    Some(weigh(&text[..start], seconds)?.saturating_add(if negative { -micros } else { micros }))
}

/// The numbers of a compound amount, aligned to the right, all with the sign of the whole; `None` when there
/// are more of them. The text may be long: nothing is kept but what is wanted.
fn compound(text: &[u8], wanted: usize) -> Option<Vec<i64>> {
    let negative = text.trim_ascii_start().starts_with(b"-");
    let numbers = text.split(|byte| !byte.is_ascii_digit()).filter(|part| !part.is_empty());
    let number = |part: &[u8]| std::str::from_utf8(part).ok().and_then(|part| part.parse().ok()).unwrap_or(0);
    let numbers: Vec<i64> = numbers.take(wanted + 1).map(number).collect();
    let mut aligned = vec![0; wanted.checked_sub(numbers.len())?];
    aligned.extend(numbers.iter().map(|n| if negative { -n } else { *n }));
    Some(aligned)
}

fn weigh(text: &[u8], seconds: &[i64]) -> Option<i64> {
    let parts = compound(text, seconds.len())?;
    let sum = parts.iter().zip(seconds);
    let sum = sum.fold(0i64, |sum, (n, weight)| sum.saturating_add(n.saturating_mul(*weight)));
    Some(sum.saturating_mul(1_000_000))
}

/// Prints a span with this many digits of a second.
pub fn format_time(value: Time, digits: u8) -> String {
    format!("{value:.prec$}", prec = usize::from(digits))
}

/// Prints a day and time with this many digits of a second.
pub fn format_datetime(value: DateTime, digits: u8) -> String {
    format!("{value:.prec$}", prec = usize::from(digits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        parse_datetime(text.as_bytes(), Today::default())
            .map(|(value, digits, _)| format_datetime(value, digits))
    }

    #[test]
    fn dates_are_read_with_relaxed_rules() {
        for (text, expected) in [
            ("2024-01-31", Some("2024-01-31 00:00:00")),
            ("24-1-2 3:4:5", Some("2024-01-02 03:04:05")),
            ("2024/01/31T12.30.45", Some("2024-01-31 12:30:45")),
            ("20240131", Some("2024-01-31 00:00:00")),
            ("20240131123045.5", Some("2024-01-31 12:30:45.5")),
            ("2024-01-31 12:30:45.123456789", Some("2024-01-31 12:30:45.123457")),
            ("2024-02-30", None),
            ("0000-00-00", Some("0000-00-00 00:00:00")),
            ("00-00-00", Some("0000-00-00 00:00:00")),
            ("20090102T030405", Some("2009-01-02 03:04:05")),
            ("10101000000", Some("2010-10-10 00:00:00")),
            ("10101", Some("2010-10-01 00:00:00")),
            ("200901021", Some("2020-09-01 02:01:00")),
            ("2009", None),
            ("abc", None),
            ("2024-13-01", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    /// Offsets are those of MySQL 9.7, and moments come to the session's zone.
    #[test]
    fn offsets() {
        let here = Today { zone: Some(7200), ..Today::default() };
        let read = |text: &str| {
            parse_datetime(text.as_bytes(), here).map(|(value, digits, rest)| {
                assert!(!rest, "{text}");
                format_datetime(value, digits)
            })
        };
        for (text, expected) in [
            ("2024-02-29 10:11:12+01:00", Some("2024-02-29 11:11:12")),
            ("2024-02-29T23:11:12.5-05:30", Some("2024-03-01 06:41:12.5")),
            ("2024-02-29 10:11:12+14:00", Some("2024-02-28 22:11:12")),
            ("2024-02-29 10:11:12-14:00", Some("2024-03-01 02:11:12")),
            ("2024-02-29 10:11:12+14:01", None),
            ("2024-02-29 10:11:12-00:00", None),
            ("2024-02-29 10:11:12+1:00", None),
            ("2024-02-29 10:11:12+01:00x", None),
            ("2024-00-29 10:11:12+01:00", None),
            ("9999-12-31 23:59:59-01:00", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn spans() {
        let time = |text: &str| {
            parse_time(text.as_bytes(), Today::default()).map(|(value, digits, _)| format_time(value, digits))
        };
        assert_eq!(time("12:30").as_deref(), Some("12:30:00"));
        assert_eq!(time("123045").as_deref(), Some("12:30:45"));
        assert_eq!(time("-1 02:03:04.5").as_deref(), Some("-26:03:04.5"));
        assert_eq!(time("999:00:00").as_deref(), Some("838:59:59"));
        assert_eq!(time("12:61:00"), None);
    }

    #[test]
    fn day_numbers_match_to_days() {
        assert_eq!(day_number(Date { year: 1970, month: 1, day: 1 }), 719_528);
        assert_eq!(day_number(Date { year: 0, month: 1, day: 1 }), 1);
        assert_eq!(day_number(Date { year: 0, month: 3, day: 1 }), 60);
        assert_eq!(day_number(Date { year: 2007, month: 10, day: 7 }), 733_321);
        for days in (1..3_652_424).step_by(997) {
            assert_eq!(day_number(from_day_number(days).unwrap()), days);
        }
        assert_eq!(weekday(Date { year: 2024, month: 1, day: 1 }), 0);
    }

    #[test]
    fn weeks_match_the_manual() {
        let day = Date { year: 2008, month: 2, day: 20 };
        assert_eq!(week(day, 0).0, 7);
        assert_eq!(week(day, 1).0, 8);
        assert_eq!(week(Date { year: 2008, month: 12, day: 31 }, 1).0, 53);
        assert_eq!(week(Date { year: 2000, month: 1, day: 1 }, 2).0, 52);
    }

    #[test]
    fn intervals() {
        assert_eq!(interval(&Value::text("1:30"), IntervalUnit::MinuteSecond), Some((0, 90_000_000)));
        assert_eq!(interval(&Value::text("1:2:3"), IntervalUnit::MinuteSecond), None);
        assert_eq!(interval(&Value::text("9".repeat(99)), IntervalUnit::Day), Some((0, i64::MAX)));
        assert_eq!(interval(&Value::text("-2"), IntervalUnit::Month), Some((-2, 0)));
        let micros = |text| interval(&Value::text(text), IntervalUnit::SecondMicrosecond);
        assert_eq!(micros("1.05"), Some((0, 1_050_000)));
        assert_eq!(micros("-1.1234567"), Some((0, -2_234_567)));
        assert_eq!(micros("5"), Some((0, 500_000)));
        assert_eq!(micros("1.2.3"), None);
        let end = DateTime { date: Date { year: 2024, month: 1, day: 31 }, ..DateTime::default() };
        assert_eq!(add_months(end, 1).unwrap().date.day, 29);
    }
}
