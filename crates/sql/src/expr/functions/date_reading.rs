//! STR_TO_DATE: texts read by a format; and GET_FORMAT, which names some.
//!
//! What the format asks for says what kind of value is read: a day, a span or a moment. What cannot be read
//! is NULL with warning 1411; text that is left over is warning 1292.

use untorn::types::{Date, DateTime, Time};

use super::temporal::{DAYS, MONTHS};
use super::{Function, any_null, function};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::sql_mode;
use crate::value::{Value, temporal};

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("STR_TO_DATE", 2..=2, |_| Type::datetime(6), |v, cx| str_to_date(v, cx)),
    function!("GET_FORMAT", 2..=2, |_| Type::text(17), |v, _| {
        let (kind, place) = (v[0].to_string_lossy(), v[1].to_string_lossy());
        Ok(format_of(&kind, &place).map_or(Value::Null, Value::text))
    }),
];

/// STR_TO_DATE with a format that is known for each row only: always a moment.
pub(super) static STR_TO_DATETIME: Function =
    function!("STR_TO_DATETIME", 2..=2, |_| Type::datetime(6), |v, cx| Ok(match str_to_date(v, cx)? {
        Value::DateTime(moment, _) => Value::DateTime(moment, 6),
        Value::Date(date) => Value::DateTime(DateTime { date, ..DateTime::default() }, 6),
        Value::Time(span, _) => match cx.state.refuses_zero_dates(Date::default()) {
            true => return refused(&v[0].to_text(), cx),
            false => {
                let (hour, minute, second) = (span.hours as u8, span.minutes, span.seconds);
                let date = Date::default();
                Value::DateTime(DateTime { date, hour, minute, second, micros: span.micros }, 6)
            }
        },
        other => other,
    }));

/// Warning 1411, or the error in a strict statement that changes rows.
fn refused<'a>(text: &[u8], cx: &Context<'_>) -> Evaluated<'a> {
    let shown = String::from_utf8_lossy(text);
    let error = errors::error(errors::WRONG_VALUE_FOR_TYPE, &[&"datetime", &shown, &"str_to_date"]);
    if cx.state.changes_strictly.get() {
        return Err(error);
    }
    cx.state.warn(error);
    Ok(Value::Null)
}

/// The format of a kind of value in a place.
fn format_of(kind: &str, place: &str) -> Option<&'static str> {
    const PLACES: [&str; 5] = ["USA", "JIS", "ISO", "EUR", "INTERNAL"];
    let at = PLACES.iter().position(|name| name.eq_ignore_ascii_case(place))?;
    let formats = match kind {
        "DATE" => ["%m.%d.%Y", "%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"],
        "TIME" => ["%h:%i:%s %p", "%H:%i:%s", "%H:%i:%s", "%H.%i.%s", "%H%i%s"],
        _ => [
            "%Y-%m-%d %H.%i.%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H:%i:%s",
            "%Y-%m-%d %H.%i.%s",
            "%Y%m%d%H%i%s",
        ],
    };
    formats.get(at).copied()
}

/// What a format reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    day: bool,
    time: bool,
    fraction: bool,
}

impl Kind {
    /// Of a format.
    pub(super) fn of_format(format: &[u8]) -> Kind {
        let mut kind = Kind { day: false, time: false, fraction: false };
        let mut bytes = format.iter();
        while let Some(byte) = bytes.next() {
            if *byte != b'%' {
                continue;
            }
            match bytes.next() {
                Some(b'f') => (kind.time, kind.fraction) = (true, true),
                Some(b'H' | b'h' | b'I' | b'i' | b'k' | b'l' | b'p' | b'r' | b'S' | b's' | b'T') => {
                    kind.time = true;
                }
                Some(
                    b'M' | b'b' | b'c' | b'j' | b'm' | b'U' | b'u' | b'V' | b'v' | b'W' | b'w' | b'a' | b'X'
                    | b'x' | b'Y' | b'y',
                ) => kind.day = true,
                // A day of the month alone is a number of days, behind which a time is a span.
                _ => {}
            }
        }
        kind
    }

    /// The type of what is read.
    pub(super) fn ty(self) -> Type {
        let digits = if self.fraction { 6 } else { 0 };
        match self {
            Kind { time: false, .. } => Type::DATE,
            Kind { day: false, .. } => Type::time(digits),
            _ => Type::datetime(digits),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind { time: false, .. } => "date",
            Kind { day: false, .. } => "time",
            _ => "datetime",
        }
    }
}

fn str_to_date<'a>(values: &[Value<'_>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let (text, format) = (values[0].to_text(), values[1].to_text());
    cx.state.work(text.len() + format.len())?;
    let kind = Kind::of_format(&format);
    let mut reader = Reader { text: &text, parts: Parts::default() };
    let read = reader.read(&format).and_then(|()| reader.parts.moment(cx.state.today().any_day));
    let left = !reader.text.trim_ascii().is_empty();
    let digits = if kind.fraction { 6 } else { 0 };
    let value = read.and_then(|(hours, moment)| {
        let days = moment.date.day;
        match kind {
            Kind { time: true, day: false, .. } if days == 0 || !cx.state.refuses_zero_dates(moment.date) => {
                let hours = hours + 24 * u16::from(moment.date.day);
                let span = Time { hours, ..temporal::time_of_day(moment) };
                Some(Value::Time(span, digits))
            }
            _ if is_refused_zero(moment.date, cx) => None,
            Kind { time: true, .. } => Some(Value::DateTime(moment, digits)),
            _ => Some(Value::Date(moment.date)),
        }
    });
    let Some(value) = value else { return refused(&text, cx) };
    if left {
        let shown = String::from_utf8_lossy(&text);
        cx.state.warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind.name(), &shown]));
    }
    Ok(value)
}

/// Whether the SQL mode refuses a date with a zero: NO_ZERO_DATE any such date, NO_ZERO_IN_DATE alone one
/// whose month or day is zero, unless all of it is.
fn is_refused_zero(date: Date, cx: &Context<'_>) -> bool {
    let mode = cx.state.settings().sql_mode;
    let in_date = date.month == 0 || date.day == 0;
    match mode & sql_mode::NO_ZERO_DATE != 0 {
        true => in_date || date.year == 0,
        false => mode & sql_mode::NO_ZERO_IN_DATE != 0 && in_date && date != Date::default(),
    }
}

/// Weeks of a year, and how they are counted.
#[derive(Clone, Copy)]
struct Week {
    number: i64,
    sunday_first: bool,
    /// It is of the year that `%X` or `%x` reads.
    strict: bool,
}

/// What has been read.
#[derive(Clone, Copy, Default)]
struct Parts {
    year: u16,
    month: u8,
    day: u8,
    hour: u16,
    minute: u8,
    second: u8,
    micros: u32,
    /// Hours are those of a half of the day.
    twelve: bool,
    afternoon: bool,
    /// From 1.
    day_of_year: Option<i64>,
    /// From 1, Monday.
    weekday: Option<i64>,
    week: Option<Week>,
    /// The year of `%X` (weeks begin on Sunday) or `%x`.
    week_year: Option<(i64, bool)>,
}

impl Parts {
    /// The hour, which may be one of a span, and the moment.
    fn moment(mut self, any_day: bool) -> Option<(u16, DateTime)> {
        if self.twelve {
            if !(1..=12).contains(&self.hour) {
                return None;
            }
            self.hour = self.hour % 12 + if self.afternoon { 12 } else { 0 };
        }
        if self.month > 12 || self.day > 31 || self.hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let mut date = Date { year: self.year, month: self.month, day: self.day };
        let first = |year: i64| {
            let year = u16::try_from(year).ok().filter(|year| *year <= 9999)?;
            Some(temporal::day_number(Date { year, month: 1, day: 1 }))
        };
        if let Some(day) = self.day_of_year.filter(|day| *day > 0) {
            date = temporal::from_day_number(first(self.year.into())? + day - 1)?;
        }
        if let (Some(week), Some(weekday)) = (self.week, self.weekday) {
            let year = match (week.strict, self.week_year) {
                (true, Some((year, sunday_first))) if sunday_first == week.sunday_first => year,
                (false, None) => i64::from(self.year),
                _ => return None,
            };
            date = temporal::from_day_number(first(year)? + days_into(first(year)?, week, weekday))?;
        }
        if date.month > 0 && !any_day && date.day > temporal::days_in_month(date.year, date.month) {
            return None;
        }
        let (hour, minute, second, micros) = (self.hour as u8, self.minute, self.second, self.micros);
        Some((self.hour, DateTime { date, hour, minute, second, micros }))
    }
}

/// Days from the first of a year to a day of a week.
fn days_into(first: i64, week: Week, weekday: i64) -> i64 {
    let monday_based = (first + 5).rem_euclid(7);
    let (begin, day) = match week.sunday_first {
        true => {
            let begins = (monday_based + 1) % 7;
            (if begins == 0 { 0 } else { 7 - begins }, weekday % 7)
        }
        false => (if monday_based <= 3 { -monday_based } else { 7 - monday_based }, weekday - 1),
    };
    begin + (week.number - 1) * 7 + day
}

struct Reader<'t> {
    /// What is left.
    text: &'t [u8],
    parts: Parts,
}

impl Reader<'_> {
    fn read(&mut self, format: &[u8]) -> Option<()> {
        let mut format = format.iter();
        while let Some(byte) = format.next() {
            self.text = self.text.trim_ascii_start();
            if self.text.is_empty() {
                break;
            }
            match format.as_slice().first() {
                Some(specifier) if *byte == b'%' => {
                    format.next();
                    self.part(*specifier)?;
                }
                _ if byte.is_ascii_whitespace() => {}
                _ => self.text = self.text.strip_prefix(&[*byte])?,
            }
        }
        Some(())
    }

    /// A number of at most this many digits, and how many there were.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let count = self.text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.text.split_at(count);
        self.text = rest;
        (count > 0).then(|| (digits.iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0')), count))
    }

    fn two(&mut self) -> Option<u8> {
        self.number(2).map(|(number, _)| number as u8)
    }

    /// Which of these names the text's first word is, or is the beginning of as of no other; from 1. Short
    /// ones are of three letters.
    fn name(&mut self, names: &[&str], short: bool) -> Option<u8> {
        let letters = self.text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, rest) = self.text.split_at(letters);
        let whole = |name: &str| if short { 3 } else { name.len() };
        let begins = |name: &str| {
            letters > 0 && letters <= whole(name) && name.as_bytes()[..letters].eq_ignore_ascii_case(word)
        };
        let mut of = (1..).zip(names).filter(|(_, name)| begins(name));
        let (at, name) = of.next()?;
        if of.next().is_some() && letters < whole(name) {
            return None;
        }
        self.text = rest;
        Some(at)
    }

    fn skip(&mut self, wanted: impl Fn(&u8) -> bool) {
        let count = self.text.iter().take_while(|byte| wanted(byte)).count();
        self.text = &self.text[count..];
    }

    fn part(&mut self, specifier: u8) -> Option<()> {
        match specifier {
            b'Y' | b'y' => {
                let (year, digits) = self.number(if specifier == b'Y' { 4 } else { 2 })?;
                // One digit means a year of this time as two do.
                self.parts.year = temporal::full_year(year.into(), digits.max(2)) as u16;
            }
            b'm' | b'c' => self.parts.month = self.two()?,
            b'M' => self.parts.month = self.name(&MONTHS, false)?,
            b'b' => self.parts.month = self.name(&MONTHS, true)?,
            b'd' | b'e' => self.parts.day = self.two()?,
            b'D' => {
                self.parts.day = self.two()?;
                // The letters of an ordinal number.
                self.text = self.text.get(2..).unwrap_or_default();
            }
            b'H' | b'k' => self.parts.hour = self.two()?.into(),
            b'h' | b'I' | b'l' => (self.parts.hour, self.parts.twelve) = (self.two()?.into(), true),
            b'i' => self.parts.minute = self.two()?,
            b's' | b'S' => self.parts.second = self.two()?,
            b'f' => {
                let (number, digits) = self.number(6)?;
                self.parts.micros = number * 10u32.pow(6 - digits as u32);
            }
            b'p' => {
                let (half, rest) = self.text.split_at_checked(2).filter(|_| self.parts.twelve)?;
                self.parts.afternoon = half.eq_ignore_ascii_case(b"PM");
                if !self.parts.afternoon && !half.eq_ignore_ascii_case(b"AM") {
                    return None;
                }
                self.text = rest;
            }
            b'W' => self.parts.weekday = Some(self.name(&DAYS, false)?.into()),
            b'a' => self.parts.weekday = Some(self.name(&DAYS, true)?.into()),
            b'w' => {
                let day = self.number(1)?.0;
                if day > 6 {
                    return None;
                }
                self.parts.weekday = Some(if day == 0 { 7 } else { i64::from(day) });
            }
            b'j' => self.parts.day_of_year = Some(self.number(3)?.0.into()),
            b'U' | b'u' | b'V' | b'v' => {
                let number = i64::from(self.two()?);
                let (sunday_first, strict) =
                    (matches!(specifier, b'U' | b'V'), matches!(specifier, b'V' | b'v'));
                if number > 53 || strict && number == 0 {
                    return None;
                }
                self.parts.week = Some(Week { number, sunday_first, strict });
            }
            b'X' | b'x' => self.parts.week_year = Some((self.number(4)?.0.into(), specifier == b'X')),
            b'r' => return self.read(b"%I:%i:%S %p"),
            b'T' => return self.read(b"%H:%i:%S"),
            b'.' => self.skip(u8::is_ascii_punctuation),
            b'@' => self.skip(u8::is_ascii_alphabetic),
            b'#' => self.skip(u8::is_ascii_digit),
            _ => return None,
        }
        Some(())
    }
}
