//! How fast this machine recovers: what recoveries have shown, kept from one start to the next.
//!
//! Of each kind of work the last few rates are kept, and the one in the middle counts (the slower one of
//! two): a disk that stumbled once is outvoted soon, and one that is slow is believed. The text form is for a
//! small file of the data directory: a line for each kind, its name and rates a second, oldest first. It is a
//! hint, and a reader who finds something else in it takes nothing from it.

use std::fmt;
use std::time::Duration;

/// Rates kept of each kind.
const KEPT: usize = 3;
/// Work that took less time than this says little, unless it was much.
const TOOK_MIN: Duration = Duration::from_millis(500);

/// What recovery does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of log read and taken apart.
    Log,
    /// Pages read, or written to make room for others.
    Pages,
    /// Files opened and synced.
    Files,
    /// Pages compared with their copies in the doublewrite files.
    Copies,
}

const KINDS: [(Kind, &str); 4] =
    [(Kind::Log, "log"), (Kind::Pages, "pages"), (Kind::Files, "files"), (Kind::Copies, "copies")];

impl Kind {
    /// A second's worth, before anything has shown it.
    pub(crate) fn guess(self) -> f64 {
        match self {
            Kind::Log => (64 << 20) as f64,
            Kind::Pages => 2000.0,
            Kind::Files => 500.0,
            Kind::Copies => 1000.0,
        }
    }

    /// So much says something however fast it went.
    fn is_much(self) -> u64 {
        match self {
            Kind::Log => 2 << 20,
            Kind::Pages => 1000,
            Kind::Files | Kind::Copies => 200,
        }
    }
}

/// Rates that recoveries have shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecoveryRates([Vec<f64>; KINDS.len()]);

impl RecoveryRates {
    /// What [`fmt::Display`] wrote. Anything else is as if nothing had been measured.
    #[must_use]
    pub fn parse(text: &str) -> RecoveryRates {
        let mut rates = RecoveryRates::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            let Some((kind, _)) = KINDS.iter().find(|(_, known)| *known == name) else { continue };
            let of_kind: Option<Vec<f64>> = words.map(parse_rate).collect();
            let Some(mut of_kind) = of_kind else { return RecoveryRates::default() };
            of_kind.truncate(KEPT);
            rates.0[*kind as usize] = of_kind;
        }
        rates
    }

    /// The rate to reckon with, if there was one.
    pub(crate) fn of(&self, kind: Kind) -> Option<f64> {
        let mut rates = self.0[kind as usize].clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len().saturating_sub(1) / 2).copied()
    }

    /// A recovery did so much in this time. False if that says too little.
    pub(crate) fn add(&mut self, kind: Kind, count: u64, took: Duration) -> bool {
        if count == 0 || took.is_zero() || (count < kind.is_much() && took < TOOK_MIN) {
            return false;
        }
        let rates = &mut self.0[kind as usize];
        if rates.len() == KEPT {
            rates.remove(0);
        }
        rates.push(count as f64 / took.as_secs_f64());
        true
    }
}

fn parse_rate(word: &str) -> Option<f64> {
    word.parse().ok().filter(|rate| (1e-3..1e15).contains(rate))
}

impl fmt::Display for RecoveryRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, name) in KINDS {
            let rates = &self.0[kind as usize];
            if !rates.is_empty() {
                write!(f, "{name}")?;
                rates.iter().try_for_each(|rate| write!(f, " {rate:.3}"))?;
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_rate_in_the_middle_counts_and_a_slow_disk_is_believed() {
        let mut rates = RecoveryRates::default();
        assert_eq!(rates.of(Kind::Pages), None);
        assert!(rates.add(Kind::Pages, 3000, SECOND));
        assert_eq!(rates.of(Kind::Pages), Some(3000.0));
        // It stumbles once.
        assert!(rates.add(Kind::Pages, 40, 2 * SECOND));
        assert_eq!(rates.of(Kind::Pages), Some(20.0));
        assert!(rates.add(Kind::Pages, 2800, SECOND));
        assert_eq!(rates.of(Kind::Pages), Some(2800.0));
        // It is slow from now on.
        assert!(rates.add(Kind::Pages, 90, SECOND) && rates.add(Kind::Pages, 80, SECOND));
        assert_eq!(rates.of(Kind::Pages), Some(90.0));
        assert!(!rates.add(Kind::Pages, 90, SECOND / 10), "too little to tell");
        assert!(!rates.add(Kind::Log, 8 << 20, Duration::ZERO));
    }

    #[test]
    fn they_are_read_as_they_were_written_and_nothing_is_read_from_nonsense() {
        let mut rates = RecoveryRates::default();
        for kind in [Kind::Log, Kind::Pages, Kind::Copies] {
            (1..5).for_each(|at| assert!(rates.add(kind, at << 24, SECOND)));
        }
        assert_eq!(RecoveryRates::parse(&rates.to_string()), rates);
        for text in ["", "log -1", "log NaN\npages 2", "pages 1e300", "pages 12,5", "\0\0\0\0"] {
            assert_eq!(RecoveryRates::parse(text), RecoveryRates::default(), "{text:?}");
        }
        let newer = RecoveryRates::parse("something 1 2\npages 5 6 7 8 9\n");
        assert_eq!(newer.of(Kind::Pages), Some(6.0));
    }
}
