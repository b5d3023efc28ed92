//! The command line, in mysqld's grammar.

use std::path::PathBuf;

use super::{OptionError, without_effect};
use crate::variables::table::{DEFINITIONS, Kind, find};

/// One setting as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Lower case with underscores.
    pub name: String,
    /// What follows `=`, if anything.
    pub value: Option<String>,
    /// Where it stands, for messages.
    pub origin: String,
}

/// The command line taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// `--defaults-file`.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-extra-file`, which is read after the other.
    pub defaults_extra_file: Option<PathBuf>,
    /// `--help`.
    pub help: bool,
    /// `--version`.
    pub version: bool,
    /// `--print-defaults`: print what the option files and the command line set, and end.
    pub print_defaults: bool,
    /// `--help --verbose`: list all variables.
    pub list_variables: bool,
    /// Everything else, in order.
    pub settings: Vec<Setting>,
}

/// A name as the table spells it.
pub fn normal_name(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

fn takes_separate_value(name: &str, next: Option<&String>) -> bool {
    let Some(next) = next else { return false };
    if next.starts_with("--") {
        return false;
    }
    let definition = find(name).and_then(|index| DEFINITIONS.get(index));
    match definition.map(|definition| definition.kind) {
        // A switch needs no value; a word after it belongs to it only if it can be its value.
        Some(Kind::Bool) => {
            matches!(next.to_ascii_uppercase().as_str(), "ON" | "OFF" | "0" | "1" | "TRUE" | "FALSE")
        }
        Some(_) => true,
        // Unknown names are reported with their value left alone.
        None => {
            matches!(name, "user" | "defaults_file" | "defaults_extra_file")
                || without_effect::why(name).is_some() && !next.starts_with('-')
        }
    }
}

/// A word that belongs to nothing. Behind an option that does not exist it is that option's value.
fn unexpected(argument: &str, parsed: &Arguments) -> OptionError {
    match parsed.settings.last() {
        Some(last) if last.value.is_none() && super::is_unknown(&last.name) => super::unknown(last),
        _ => OptionError(format!(
            "unexpected argument `{argument}`; the commands are serve, probe, restore and inspect, options start \
             with --, `untorn --help` lists them"
        )),
    }
}

/// Takes the command line apart.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, OptionError> {
    let mut parsed = Arguments::default();
    let mut rest = arguments.into_iter().peekable();
    let mut verbose = false;
    while let Some(argument) = rest.next() {
        let long = match argument.as_str() {
            "-h" | "-?" => "help",
            "-V" => "version",
            "-v" => "verbose",
            "-P" => "port",
            "-S" => "socket",
            other => match other.strip_prefix("--") {
                Some(long) if !long.is_empty() => long,
                _ => return Err(unexpected(&argument, &parsed)),
            },
        };
        let (name, mut value) = match long.split_once('=') {
            Some((name, value)) => (normal_name(name), Some(value.to_owned())),
            None => (normal_name(long), None),
        };
        if value.is_none() && takes_separate_value(&name, rest.peek()) {
            value = rest.next();
        }
        match (name.as_str(), value) {
            ("help", _) => parsed.help = true,
            ("version", None) => parsed.version = true,
            ("verbose", _) => verbose = true,
            ("print_defaults", _) => parsed.print_defaults = true,
            ("no_defaults", _) => (parsed.defaults_file, parsed.defaults_extra_file) = (None, None),
            ("defaults_file", Some(path)) => parsed.defaults_file = Some(path.into()),
            ("defaults_extra_file", Some(path)) => parsed.defaults_extra_file = Some(path.into()),
            ("defaults_file" | "defaults_extra_file", None) => {
                return Err(OptionError(format!("--{} needs the path of a file", name.replace('_', "-"))));
            }
            (_, value) => parsed.settings.push(Setting { name, value, origin: "command line".into() }),
        }
    }
    parsed.list_variables = parsed.help && verbose;
    Ok(parsed)
}
