//! Time zones by their names, with the rules of the IANA database.
//!
//! The database is compiled in, so that a server knows the same zones on every machine. CONVERT_TZ follows
//! what MySQL does with its tables of zones: a local time that there was twice is the first of the two, and
//! one that was left out is the moment of the change, with its fraction. Unlike those tables, which end with
//! 2037, the rules go on.

use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, civil};

/// A zone as a function or a session names it.
#[derive(Clone, Debug)]
pub enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    /// One whose offset changes.
    Named(TimeZone),
}

impl Zone {
    /// `SYSTEM`, `+02:00`, `Europe/Berlin`; letter case does not count.
    pub fn of_name(name: &str) -> Option<Zone> {
        match crate::context::zone_offset(name) {
            Some(offset) => Some(Zone::Offset(offset)),
            // The library's name for a zone that is none.
            None if name.eq_ignore_ascii_case("Etc/Unknown") => None,
            None => TimeZone::get(name).ok().map(Zone::Named),
        }
    }

    /// Seconds since 1970 of a local time, which is given as if it were UTC.
    pub fn to_utc(&self, local: i64) -> Option<i64> {
        let zone = match self {
            Zone::Offset(offset) => return Some(local - i64::from(*offset)),
            Zone::Named(zone) => zone,
        };
        let moment: civil::DateTime = TimeZone::UTC.to_datetime(Timestamp::from_second(local).ok()?);
        Some(match zone.to_ambiguous_timestamp(moment).offset() {
            AmbiguousOffset::Unambiguous { offset } => local - i64::from(offset.seconds()),
            AmbiguousOffset::Fold { before, .. } => local - i64::from(before.seconds()),
            AmbiguousOffset::Gap { before, .. } => {
                let behind = Timestamp::from_second(local - i64::from(before.seconds()) + 1).ok()?;
                zone.preceding(behind).next()?.timestamp().as_second()
            }
        })
    }

    /// The local time, as if it were UTC, of a moment in seconds since 1970.
    pub fn to_local(&self, utc: i64) -> Option<i64> {
        let offset = match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(zone) => zone.to_offset(Timestamp::from_second(utc).ok()?).seconds(),
        };
        Some(utc + i64::from(offset))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A change of the hour in both directions, as MySQL 9.7 converts it with tables of zones.
    #[test]
    fn a_local_time_that_was_twice_is_the_first_and_one_that_was_not_is_the_change() {
        let zone = Zone::of_name("europe/BERLIN").unwrap();
        let hour = 3600;
        // 2014-10-26 01:00 UTC, and 2014-03-30 01:00 UTC.
        let (back, ahead) = (1_414_285_200, 1_396_141_200);
        assert_eq!(zone.to_local(back - 1), Some(back - 1 + 2 * hour));
        assert_eq!(zone.to_local(back), Some(back + hour));
        assert_eq!(zone.to_utc(back + hour + 1800), Some(back - 1800));
        assert_eq!(zone.to_utc(back + 2 * hour), Some(back + hour));
        for left_out in [0, 1, 1800, 3599] {
            assert_eq!(zone.to_utc(ahead + hour + left_out), Some(ahead), "{left_out}");
        }
        assert_eq!(zone.to_utc(ahead + hour - 1), Some(ahead - 1));
        assert_eq!(zone.to_utc(ahead + 2 * hour), Some(ahead));
    }

    #[test]
    fn what_is_no_zone_has_no_name_here() {
        for name in
            ["", " Europe/Berlin", "Nowhere", "../etc/passwd", "+15:00", "etc/unknown", "posix/Europe/Berlin"]
        {
            assert!(Zone::of_name(name).is_none(), "{name:?}");
        }
        assert!(matches!(Zone::of_name("+05:30"), Some(Zone::Offset(19_800))));
        assert!(matches!(Zone::of_name("utc"), Some(Zone::Offset(0))));
    }
}
