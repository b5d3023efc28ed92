//! The command `untorn inspect`: what a file of a data directory says, for people.
//!
//! `untorn inspect catalog DIRECTORY` prints the catalog of a stopped or crashed directory as JSON, and what
//! is damaged in it. It changes nothing.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use crate::program::has_catalog;
use untorn::engine::{Environment as _, RealEnvironment, RealOptions};

const USAGE: &str = "usage: untorn inspect catalog DIRECTORY";

/// Runs the command with the words behind `inspect`.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["catalog", directory] => catalog(Path::new(directory)),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what can be read; damage is said afterwards, and makes the command fail.
fn catalog(directory: &Path) -> Result<(), String> {
    if !has_catalog(directory) {
        return Err(format!(
            "error: {} is not an Untorn data directory: it has no file untorn.catalog",
            directory.display()
        ));
    }
    let environment = RealEnvironment::new(RealOptions::default()).map_err(|error| error.to_string())?;
    let inspected = untorn::catalog::inspect(&**environment.storage(), directory);
    environment.shutdown();
    let inspected = inspected.map_err(|error| format!("error: {error}"))?;
    writeln!(io::stdout(), "{}", inspected.json).map_err(|error| error.to_string())?;
    inspected.damage.map_or(Ok(()), |damage| Err(format!("damaged: {damage}")))
}
