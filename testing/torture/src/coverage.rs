//! What a run of the campaign came across, so that a green result can be told from an empty one.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    /// Counts `amount` more of `what`.
    pub fn add(&mut self, what: &'static str, amount: u64) {
        if amount > 0 {
            *self.counts.entry(what).or_default() += amount;
        }
    }

    /// Remembers the greatest value of `what`.
    pub fn most(&mut self, what: &'static str, value: u64) {
        let most = self.counts.entry(what).or_default();
        *most = value.max(*most);
    }

    /// How many of `what`.
    pub fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Takes the counts of another run in. Names that begin with `most` keep the greater value.
    pub fn merge(&mut self, other: &Coverage) {
        for (what, count) in &other.counts {
            if what.starts_with("most") { self.most(what, *count) } else { self.add(what, *count) }
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.counts {
            writeln!(f, "{count:>12}  {what}")?;
        }
        Ok(())
    }
}
