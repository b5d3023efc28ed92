//! The list of `session_track_system_variables`: names that a client wants to hear of.

use sql::result::SqlError;

use super::table::{ALIASES, DEFINITIONS, find};

/// Longest list, bytes: several times all names.
pub const LIST_BYTES_MAX: usize = 16 << 10;

/// Which variables a client hears of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrackedNames {
    /// `*`.
    all: bool,
    /// As the list spells them, and what they are.
    listed: Vec<(String, usize)>,
}

/// A list taken apart.
pub struct Parsed {
    /// Variables there are.
    pub names: TrackedNames,
    /// Names of none.
    pub unknown: Vec<String>,
    /// A variable that is listed twice.
    pub twice: Option<String>,
}

/// The variable of this name. Of the other names that MySQL 8 gave up it knows none, so that a list means the
/// same here.
fn known(name: &str) -> Option<usize> {
    let is_alias = ALIASES.iter().any(|(alias, _)| alias.eq_ignore_ascii_case(name));
    find(name).filter(|_| !is_alias || name.eq_ignore_ascii_case("identity"))
}

impl TrackedNames {
    /// Takes a list apart.
    pub fn parse(list: &str) -> Parsed {
        let mut parsed = Parsed { names: TrackedNames::default(), unknown: Vec::new(), twice: None };
        if list == "*" {
            parsed.names.all = true;
            return parsed;
        }
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match known(name) {
                None => parsed.unknown.push(name.to_owned()),
                Some(index) if parsed.names.listed.iter().any(|(_, other)| *other == index) => {
                    parsed.twice.get_or_insert_with(|| name.to_owned());
                }
                Some(index) => parsed.names.listed.push((name.to_owned(), index)),
            }
        }
        parsed
    }

    /// How the client wants a variable to be named; `None`: it does not want to hear of it.
    pub fn shown(&self, name: &'static str) -> Option<&str> {
        if self.all {
            return Some(name);
        }
        let is_it = |index: &usize| DEFINITIONS.get(*index).is_some_and(|found| found.name == name);
        self.listed.iter().find(|(_, index)| is_it(index)).map(|(shown, _)| shown.as_str())
    }
}

/// What is said of a name of no variable.
pub fn not_known(name: &str) -> SqlError {
    let shown: String = name.chars().take(128).collect();
    SqlError::new(1231, b"42000", format!("{shown} is not a valid system variable and will be ignored."))
}

/// 3026.
pub(super) fn listed_twice(name: &str) -> SqlError {
    SqlError::new(3026, b"HY000", format!("Duplicate entry '{name}'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_case_and_kept_as_they_are_spelt() {
        let parsed = TrackedNames::parse(" TIME_zone ,, autocommit,nonsense, tx_isolation,*");
        assert_eq!(parsed.names.shown("time_zone"), Some("TIME_zone"));
        assert_eq!(parsed.names.shown("autocommit"), Some("autocommit"));
        assert_eq!(parsed.names.shown("sql_mode"), None);
        assert_eq!(parsed.unknown, ["nonsense", "tx_isolation", "*"]);
        assert_eq!(parsed.twice, None);
        assert_eq!(TrackedNames::parse("autocommit,AUTOCOMMIT").twice.as_deref(), Some("AUTOCOMMIT"));
        assert_eq!(TrackedNames::parse("*").names.shown("sql_mode"), Some("sql_mode"));
        assert_eq!(TrackedNames::parse("").names, TrackedNames::default());
    }
}
