//! How pages are kept from tearing: the setting, and what it makes of one file.
//!
//! The setting may change while pages are being written: batches under way end in the mode they began with
//! (`ProtectedWriter::set_mode`).

use std::fmt;
use std::str::FromStr;

/// The setting (`innodb_doublewrite`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Mode {
    /// By file: atomic writes where the storage does them by itself, the doublewrite where it has none, and
    /// where the file system does them by copy-on-write whichever of the two is measured to be faster.
    #[default]
    Auto,
    /// Every page goes to a doublewrite file first, also where it could be written atomically.
    On,
    /// Only the numbers and LSNs of the pages go to a doublewrite file first: a start finds torn pages, but
    /// has no copies to restore them from.
    DetectOnly,
    /// Pages are written in place only. A crash in the middle of a page write can leave a page that nothing
    /// repairs.
    Off,
}

impl Mode {
    /// The value of `innodb_doublewrite`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Auto => "AUTO",
            Mode::On => "ON",
            Mode::DetectOnly => "DETECT_ONLY",
            Mode::Off => "OFF",
        }
    }

    /// The path of every file, where the mode leaves no choice.
    pub(crate) fn path(self) -> Option<WritePath> {
        match self {
            Mode::Auto => None,
            Mode::On => Some(WritePath::Doublewrite),
            Mode::DetectOnly => Some(WritePath::Detect),
            Mode::Off => Some(WritePath::Plain),
        }
    }

    pub(crate) fn from_number(number: u8) -> Mode {
        [Mode::Auto, Mode::On, Mode::DetectOnly, Mode::Off]
            .get(usize::from(number))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Mode::Auto => 0,
            Mode::On => 1,
            Mode::DetectOnly => 2,
            Mode::Off => 3,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not a value of `innodb_doublewrite`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownMode(String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "innodb_doublewrite={} is not one of AUTO, ON, DETECT_ONLY, DETECT_AND_RECOVER, OFF",
            self.0
        )
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Takes MySQL's values (`DETECT_AND_RECOVER` is its other name for ON) and ours, in any case.
    fn from_str(text: &str) -> Result<Mode, UnknownMode> {
        let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(text));
        if is(&["AUTO"]) {
            Ok(Mode::Auto)
        } else if is(&["ON", "TRUE", "1", "DETECT_AND_RECOVER"]) {
            Ok(Mode::On)
        } else if is(&["DETECT_ONLY"]) {
            Ok(Mode::DetectOnly)
        } else if is(&["OFF", "FALSE", "0"]) {
            Ok(Mode::Off)
        } else {
            Err(UnknownMode(text.to_owned()))
        }
    }
}

/// How the pages of one file are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum WritePath {
    /// Atomic writes (`RWF_ATOMIC`), of several pages where they lie side by side and the storage takes them;
    /// or a plain write for each page, where the storage keeps it whole without knowing the flag.
    Atomic,
    /// A copy in a doublewrite file first.
    Doublewrite,
    /// Number and LSN in a doublewrite file first.
    Detect,
    /// In place only.
    Plain,
}

impl WritePath {
    /// As shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            WritePath::Atomic => "atomic",
            WritePath::Doublewrite => "doublewrite",
            WritePath::Detect => "detect only",
            WritePath::Plain => "unprotected",
        }
    }
}

impl fmt::Display for WritePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_shown() {
        for mode in [Mode::Auto, Mode::On, Mode::DetectOnly, Mode::Off] {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(mode.name().to_lowercase().parse(), Ok(mode));
            assert_eq!(Mode::from_number(mode.number()), mode);
        }
        assert_eq!("DETECT_AND_RECOVER".parse(), Ok(Mode::On));
        assert!("SOMETIMES".parse::<Mode>().is_err_and(|error| error.to_string().contains("SOMETIMES")));
    }
}
