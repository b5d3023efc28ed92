//! The `untorn probe` command: how the pages of files at a path would be protected, and why.
//!
//! It shows what the engine itself decides from (`disk::probe`), so it cannot disagree with it: the facts of
//! the very file or of a new one in the directory, the verdict, and a short measurement in a file that has no
//! name and is gone when the command ends. Nothing else is written, and a running server is not disturbed by
//! more than that.
//!
//! Exit status: 0 when the question was answered, whatever the answer; 1 when it could not be; 2 for a wrong
//! command line.

mod text;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use disk::probe::{Facts, Measured, Verdict};
use serde::Serialize;

/// Longest time for one kind of operation.
const MEASURE_TIME: Duration = Duration::from_millis(400);

/// The answer; its keys are those of `--json` and stay.
#[derive(Debug, Serialize)]
struct Answer {
    /// The page size it is about, in bytes.
    page_bytes: usize,
    verdict: Verdict,
    /// What the server does with such a file by default (`innodb_doublewrite=AUTO`).
    advice: String,
    facts: Facts,
    measured: Option<Measured>,
    /// Why nothing was measured.
    not_measured: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    path: PathBuf,
    json: bool,
    page_bytes: usize,
    measure: bool,
}

/// Runs the command; `words` are what follows `probe`.
pub fn run(words: impl IntoIterator<Item = String>) -> ExitCode {
    let arguments = match parse(words) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print(text::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            let _ = writeln!(io::stderr(), "error: {message}\n`untorn probe --help` explains the command");
            return ExitCode::from(2);
        }
    };
    let answer = match answer(&arguments) {
        Ok(answer) => answer,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if arguments.json {
        match serde_json::to_string_pretty(&answer) {
            Ok(json) => print(&format!("{json}\n")),
            Err(error) => {
                let _ = writeln!(io::stderr(), "error: {error}");
                return ExitCode::FAILURE;
            }
        }
    } else {
        print(&text::describe(&answer));
    }
    ExitCode::SUCCESS
}

/// A closed pipe is the reader's business.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn answer(arguments: &Arguments) -> Result<Answer, disk::Error> {
    let facts = disk::probe::facts(&arguments.path)?;
    let verdict = disk::probe::verdict(&facts, arguments.page_bytes);
    let (measured, not_measured) = if arguments.measure {
        match disk::probe::measure(&directory_of(&arguments.path), arguments.page_bytes, MEASURE_TIME) {
            Ok(measured) => (Some(measured), None),
            Err(error) => (None, Some(error.to_string())),
        }
    } else {
        (None, Some("not asked for (--no-measure)".into()))
    };
    let advice = text::advice(&verdict).into();
    Ok(Answer { page_bytes: arguments.page_bytes, verdict, advice, facts, measured, not_measured })
}

/// Where a file can be made that lies on the same file system.
fn directory_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.into();
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => ".".into(),
    }
}

/// `None` when help is asked for.
fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let (mut path, mut json, mut measure, mut page_bytes) = (None, false, true, 16_384);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (word.clone(), None),
        };
        match (name.as_str(), value) {
            ("--help" | "-h" | "-?", _) => return Ok(None),
            ("--json", None) => json = true,
            ("--no-measure", None) => measure = false,
            ("--page-size" | "--innodb-page-size" | "--innodb_page_size", value) => {
                let text = value.or_else(|| words.next()).ok_or("--page-size needs a size")?;
                page_bytes = page_size(&text)?;
            }
            (option, _) if option.starts_with('-') && option.len() > 1 => {
                return Err(format!("unknown option {word}"));
            }
            _ if path.is_some() => return Err(format!("one path at a time, not also {word}")),
            _ => path = Some(PathBuf::from(word)),
        }
    }
    let path = path.ok_or("a path is missing: a tablespace file, or the directory where files will be")?;
    Ok(Some(Arguments { path, json, page_bytes, measure }))
}

fn page_size(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.to_ascii_lowercase() {
        text if text.ends_with('k') => (text[..text.len() - 1].to_owned(), 1024),
        text => (text, 1),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|bytes| [4096, 8192, 16_384, 32_768, 65_536].contains(bytes))
        .ok_or_else(|| format!("--page-size={text}: must be 4K, 8K, 16K, 32K or 64K"))
}

#[cfg(test)]
mod tests;
