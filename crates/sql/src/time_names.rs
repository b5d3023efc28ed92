//! Names of months and days by `lc_time_names`: all that MySQL has, as it writes them.

mod all;

use all::{ALL, NUMBERED};

/// Names in one language.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeNames {
    /// The locales that have them, the most known one first.
    locales: &'static str,
    /// From January on; `|` between them, here and in the others.
    months: &'static str,
    months_short: &'static str,
    /// From Monday on.
    days: &'static str,
    days_short: &'static str,
}

/// Its place among the names that plans may be made for.
const PLACE_BITS: u32 = 6;

impl TimeNames {
    /// Those of `en_US`.
    pub const fn default() -> &'static TimeNames {
        &ALL[0]
    }

    /// The names of a locale, and how that is written.
    pub fn of_locale(name: &str) -> Option<(&'static TimeNames, &'static str)> {
        ALL.iter().find_map(|names| {
            let mut locales = names.locales.split_ascii_whitespace();
            locales.find(|known| known.eq_ignore_ascii_case(name)).map(|known| (names, known))
        })
    }

    /// The locale of a number, as `SET lc_time_names = 4` has it.
    pub fn locale_numbered(number: i64) -> Option<&'static str> {
        NUMBERED.split_ascii_whitespace().nth(usize::try_from(number).ok()?)
    }

    /// A number that no others have.
    pub fn number(&self) -> u64 {
        const { assert!(ALL.len() < 1 << PLACE_BITS) };
        ALL.iter().position(|other| std::ptr::eq(other, self)).unwrap_or(0) as u64
    }

    /// The name of a month, from 1 on; short: as `%b` writes it.
    pub fn month(&self, month: u8, short: bool) -> Option<&'static str> {
        let names = if short { self.months_short } else { self.months };
        names.split('|').nth(usize::from(month).checked_sub(1)?)
    }

    /// The name of a day, from 0 for Monday on; short: as `%a` writes it.
    pub fn day(&self, day: usize, short: bool) -> Option<&'static str> {
        if short { self.days_short } else { self.days }.split('|').nth(day)
    }

    /// Characters of the longest name of a month.
    pub fn month_chars_max(&self) -> u32 {
        chars_max(self.months)
    }

    /// Characters of the longest name of a day.
    pub fn day_chars_max(&self) -> u32 {
        chars_max(self.days)
    }
}

fn chars_max(names: &str) -> u32 {
    names.split('|').map(|name| name.chars().count()).max().unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_their_names() {
        for names in &ALL {
            let months = [names.months, names.months_short].map(|list| list.split('|').count());
            let days = [names.days, names.days_short].map(|list| list.split('|').count());
            assert_eq!((months, days), ([12, 12], [7, 7]), "{}", names.locales);
        }
        assert_eq!(
            TimeNames::of_locale("DE_de").map(|(names, name)| (names.month(3, true), name)),
            Some((Some("Mär"), "de_DE"))
        );
        assert_eq!(TimeNames::of_locale("xx_YY"), None);
        assert_eq!(TimeNames::locale_numbered(109), Some("el_GR"));
        assert_eq!((TimeNames::locale_numbered(-1), TimeNames::locale_numbered(111)), (None, None));
        assert!(NUMBERED.split_ascii_whitespace().all(|locale| TimeNames::of_locale(locale).is_some()));
    }
}
