//! Days, times and spans, and their packed forms.
//!
//! The packing is MySQL's since 5.6 ("DATETIME2"): `year*13+month` in 17 bits, day in 5, hour in 5, minute
//! and second in 6 each, 40 bits with the sign bit, followed by the fraction of a second in as few bytes as
//! its digits need. Zero days and months (`0000-00-00`) are values here, as they are in MySQL.

use std::fmt;

/// A calendar day, 0000-00-00 to 9999-12-31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date {
    /// Year, 0 to 9999.
    pub year: u16,
    /// Month, 0 to 12.
    pub month: u8,
    /// Day, 0 to 31.
    pub day: u8,
}

/// A day and a time of day, without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Microseconds, 0 to 999,999.
    pub micros: u32,
}

/// A span of time, -838:59:59.000000 to 838:59:59.000000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Time {
    /// Below zero?
    pub negative: bool,
    /// Hours, 0 to 838.
    pub hours: u16,
    /// Minutes, 0 to 59.
    pub minutes: u8,
    /// Seconds, 0 to 59.
    pub seconds: u8,
    /// Microseconds, 0 to 999,999.
    pub micros: u32,
}

const SECONDS_PER_DAY: i64 = 86_400;

impl DateTime {
    /// The moment `seconds` after 1970-01-01 00:00:00 UTC, in UTC. Civil-calendar arithmetic on the proleptic
    /// Gregorian calendar (days from civil, era of 400 years).
    pub fn from_unix(seconds: i64, micros: u32) -> DateTime {
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let rest = seconds.rem_euclid(SECONDS_PER_DAY) as u32;
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u8;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u8;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        DateTime {
            date: Date { year: year.clamp(0, 9999) as u16, month, day },
            hour: (rest / 3600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
            micros,
        }
    }

    /// Seconds from 1970-01-01 00:00:00 UTC to this moment, read as UTC. Zero days and months count as 1.
    pub fn to_unix(self) -> i64 {
        let month = i64::from(self.date.month.max(1));
        let year = i64::from(self.date.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted_month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.date.day.max(1)) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        days * SECONDS_PER_DAY
            + i64::from(self.hour) * 3600
            + i64::from(self.minute) * 60
            + i64::from(self.second)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for DateTime {
    /// `2026-11-20 10:00:00`, with `.micros` (6 digits, or as many as the precision asks) unless zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        fraction(f, self.micros)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        fraction(f, self.micros)
    }
}

/// `.123456`; the formatter's precision (`{:.3}`) cuts it, and without one a zero fraction is left out.
fn fraction(f: &mut fmt::Formatter<'_>, micros: u32) -> fmt::Result {
    let digits = match f.precision() {
        Some(0) => return Ok(()),
        Some(digits) => digits.min(6),
        None if micros == 0 => return Ok(()),
        None => 6,
    };
    write!(f, ".{:0digits$}", micros / 10u32.pow(6 - digits as u32))
}

/// Appends the bytes of a fraction of a second with this number of digits.
fn push_fraction(out: &mut Vec<u8>, micros: u32, digits: u8) {
    match digits {
        0 => {}
        1 | 2 => out.push((micros / 10_000) as u8),
        3 | 4 => out.extend_from_slice(&((micros / 100) as u16).to_be_bytes()),
        _ => out.extend_from_slice(&micros.to_be_bytes()[1..]),
    }
}

/// Reads what [`push_fraction`] wrote, in microseconds.
fn read_fraction(bytes: &[u8]) -> u32 {
    let scale = match bytes.len() {
        0 => return 0,
        1 => 10_000,
        2 => 100,
        _ => 1,
    };
    bytes.iter().fold(0u32, |sum, &b| sum << 8 | u32::from(b)) * scale
}

/// Microseconds without the digits beyond the declared ones.
fn truncated(micros: u32, digits: u8) -> u32 {
    let unit = 10u32.pow(6 - u32::from(digits.min(6)));
    micros / unit * unit
}

/// Packs a DATE: 3 bytes, sign bit flipped.
pub(super) fn encode_date(date: Date, out: &mut Vec<u8>) {
    let packed = u32::from(date.year) << 9 | u32::from(date.month) << 5 | u32::from(date.day) | 0x80_0000;
    out.extend_from_slice(&packed.to_be_bytes()[1..]);
}

/// Unpacks a DATE.
pub(super) fn decode_date(bytes: &[u8]) -> Option<Date> {
    let [a, b, c] = *bytes else { return None };
    let packed = (u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c)) ^ 0x80_0000;
    Some(Date { year: (packed >> 9) as u16, month: (packed >> 5 & 15) as u8, day: (packed & 31) as u8 })
}

/// Packs a DATETIME with this number of fractional digits.
pub(super) fn encode_datetime(value: DateTime, digits: u8, out: &mut Vec<u8>) {
    let year_month = u64::from(value.date.year) * 13 + u64::from(value.date.month);
    let packed = 1u64 << 39
        | year_month << 22
        | u64::from(value.date.day) << 17
        | u64::from(value.hour) << 12
        | u64::from(value.minute) << 6
        | u64::from(value.second);
    out.extend_from_slice(&packed.to_be_bytes()[3..]);
    push_fraction(out, truncated(value.micros, digits), digits);
}

/// Unpacks a DATETIME.
pub(super) fn decode_datetime(bytes: &[u8]) -> Option<DateTime> {
    let (head, tail) = bytes.split_at_checked(5)?;
    let packed = head.iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b)) & 0x7f_ffff_ffff;
    let year_month = packed >> 22;
    Some(DateTime {
        date: Date {
            year: (year_month / 13) as u16,
            month: (year_month % 13) as u8,
            day: (packed >> 17 & 31) as u8,
        },
        hour: (packed >> 12 & 31) as u8,
        minute: (packed >> 6 & 63) as u8,
        second: (packed & 63) as u8,
        micros: read_fraction(tail),
    })
}

/// Packs a TIMESTAMP (a moment in UTC); 0000-00-00 is zero seconds. `None` outside 1970 to 2106.
pub(super) fn encode_timestamp(value: DateTime, digits: u8, out: &mut Vec<u8>) -> Option<()> {
    let zero = value.date == Date::default();
    let seconds = if zero { 0 } else { u32::try_from(value.to_unix()).ok()? };
    out.extend_from_slice(&seconds.to_be_bytes());
    push_fraction(out, truncated(value.micros, digits), digits);
    Some(())
}

/// Unpacks a TIMESTAMP.
pub(super) fn decode_timestamp(bytes: &[u8]) -> Option<DateTime> {
    let (head, tail) = bytes.split_first_chunk::<4>()?;
    let seconds = u32::from_be_bytes(*head);
    let micros = read_fraction(tail);
    if seconds == 0 && micros == 0 {
        return Some(DateTime::default());
    }
    Some(DateTime::from_unix(i64::from(seconds), micros))
}

/// Packs a TIME with this number of fractional digits (`TIME2`): the signed value in units of 2^-24 s-fields.
pub(super) fn encode_time(value: Time, digits: u8, out: &mut Vec<u8>) {
    let whole = i64::from(value.hours) << 12 | i64::from(value.minutes) << 6 | i64::from(value.seconds);
    let magnitude = whole << 24 | i64::from(truncated(value.micros, digits));
    let packed = if value.negative { -magnitude } else { magnitude };
    match digits {
        0 => out.extend_from_slice(&((0x80_0000 + (packed >> 24)) as u32).to_be_bytes()[1..]),
        1 | 2 => {
            out.extend_from_slice(&((0x80_0000 + (packed >> 24)) as u32).to_be_bytes()[1..]);
            out.push(((packed % (1 << 24)) / 10_000) as u8);
        }
        3 | 4 => {
            out.extend_from_slice(&((0x80_0000 + (packed >> 24)) as u32).to_be_bytes()[1..]);
            out.extend_from_slice(&(((packed % (1 << 24)) / 100) as i16).to_be_bytes());
        }
        _ => out.extend_from_slice(&((packed + 0x8000_0000_0000) as u64).to_be_bytes()[2..]),
    }
}

/// Unpacks a TIME.
pub(super) fn decode_time(bytes: &[u8]) -> Option<Time> {
    let whole = |b: &[u8]| b.iter().fold(0i64, |sum, &b| sum << 8 | i64::from(b));
    let packed = match bytes.len() {
        3 => (whole(bytes) - 0x80_0000) << 24,
        4 | 5 => {
            let (units, bits) = if bytes.len() == 4 { (10_000, 8) } else { (100, 16) };
            let mut int = whole(&bytes[..3]) - 0x80_0000;
            let mut frac = whole(&bytes[3..]);
            if int < 0 && frac != 0 {
                // A negative value's fraction was stored as its two's complement: borrow from the whole part.
                int += 1;
                frac -= 1 << bits;
            }
            (int << 24) + frac * units
        }
        6 => whole(bytes) - 0x8000_0000_0000,
        _ => return None,
    };
    let magnitude = packed.unsigned_abs();
    let hms = magnitude >> 24;
    Some(Time {
        negative: packed < 0,
        hours: (hms >> 12 & 0x3ff) as u16,
        minutes: (hms >> 6 & 63) as u8,
        seconds: (hms & 63) as u8,
        micros: (magnitude & 0xff_ffff) as u32,
    })
}
