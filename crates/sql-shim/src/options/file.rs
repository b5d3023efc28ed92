//! Option files: the groups `[mysqld]`, `[server]` and `[untorn]` of a my.cnf. What its names mean, and which
//! are unknown, is the business of `options/mod.rs`.
//!
//! Groups that other servers read may hold what protects an installation (`skip-networking`): they are named,
//! so that nobody takes them for read. Groups of clients and tools are passed over.

use std::path::{Path, PathBuf};

use super::OptionError;
use super::arguments::{Setting, normal_name};

/// Files that include each other are given up at this depth.
const DEPTH_MAX: usize = 8;

/// What a file and those that it includes hold.
#[derive(Debug, Default)]
pub struct Contents {
    /// In their order.
    pub settings: Vec<Setting>,
    /// Groups with settings that only other servers read: where, and the name.
    pub groups_of_others: Vec<(String, String)>,
}

/// Reads a file and what it includes.
pub fn read(path: &Path) -> Result<Contents, OptionError> {
    let mut contents = Contents::default();
    read_into(path, "", 0, &mut contents)?;
    Ok(contents)
}

/// Whether MySQL's or MariaDB's server reads that group, in some version or setup, and this one does not.
fn is_of_other_server(group: &str) -> bool {
    const NAMES: [&str; 5] = ["mariadb", "mariadbd", "client-server", "galera", "embedded"];
    let is_numbered = |rest: &str| {
        // `[mysqld-8.4]` is of that version, `[mysqld2]` of the second server of mysqld_multi.
        let number = rest.strip_prefix('-').unwrap_or(rest);
        number.starts_with(|char: char| char.is_ascii_digit())
    };
    let prefixes = ["mysqld", "mariadb", "mariadbd"].into_iter();
    NAMES.contains(&group) || prefixes.filter_map(|prefix| group.strip_prefix(prefix)).any(is_numbered)
}

/// `by` is where the file is included, and `: `; empty for one that the command line names.
fn read_into(path: &Path, by: &str, depth: usize, contents: &mut Contents) -> Result<(), OptionError> {
    if depth > DEPTH_MAX {
        return Err(OptionError(format!(
            "{by}{}: option files include each other too deeply",
            path.display()
        )));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| OptionError(format!("{by}cannot read option file {}: {error}", path.display())))?;
    // Each file begins without a group, an included one too, as in MySQL.
    let mut in_group = false;
    let mut ours = false;
    let mut of_others = None;
    for (number, line) in text.lines().enumerate() {
        let origin = format!("{}:{}", path.display(), number + 1);
        match parse_line(line) {
            Line::Nothing => {}
            Line::Group(name) => {
                in_group = true;
                ours = matches!(name, "mysqld" | "server" | "untorn");
                of_others = is_of_other_server(name).then(|| (origin, name.to_owned()));
            }
            Line::Include(file) => {
                read_into(&beside(path, file), &format!("{origin}: "), depth + 1, contents)?;
            }
            Line::IncludeDirectory(directory) => {
                let by = format!("{origin}: ");
                for file in option_files(&beside(path, directory), &by)? {
                    read_into(&file, &by, depth + 1, contents)?;
                }
            }
            // What is meant for which program nobody knows; mysqld refuses such a file too.
            Line::Setting(name, _) if !in_group => {
                return Err(OptionError(format!(
                    "{origin}: setting before the first group: put `{name}` below [mysqld], [server] or [untorn]"
                )));
            }
            Line::Setting(name, value) if ours => {
                contents.settings.push(Setting { name: normal_name(name), value, origin });
            }
            // Once for a group; one without settings is worth no line.
            Line::Setting(..) => contents.groups_of_others.extend(of_others.take()),
            Line::Wrong => return Err(OptionError(format!("{origin}: cannot read `{line}`"))),
        }
    }
    Ok(())
}

fn beside(path: &Path, other: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).join(other)
}

fn option_files(directory: &Path, by: &str) -> Result<Vec<PathBuf>, OptionError> {
    let entries = std::fs::read_dir(directory).map_err(|error| {
        OptionError(format!("{by}cannot read directory {}: {error}", directory.display()))
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cnf"))
        .collect();
    files.sort();
    Ok(files)
}

enum Line<'a> {
    Nothing,
    Group(&'a str),
    Include(&'a str),
    IncludeDirectory(&'a str),
    Setting(&'a str, Option<String>),
    Wrong,
}

fn parse_line(line: &str) -> Line<'_> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Line::Nothing;
    }
    if let Some(rest) = line.strip_prefix('[') {
        return rest.split_once(']').map_or(Line::Wrong, |(name, _)| Line::Group(name.trim()));
    }
    if let Some(directory) = line.strip_prefix("!includedir") {
        return Line::IncludeDirectory(directory.trim());
    }
    if let Some(file) = line.strip_prefix("!include") {
        return Line::Include(file.trim());
    }
    match line.split_once('=') {
        Some((name, value)) => Line::Setting(name.trim(), Some(unquoted(value))),
        None => Line::Setting(without_comment(line).trim(), None),
    }
}

fn without_comment(text: &str) -> &str {
    text.split_once('#').map_or(text, |(before, _)| before)
}

/// A value without its quotes and the comment after it; backslash escapes as my.cnf has them.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some((inner, _)) = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return unescaped(inner);
        }
    }
    unescaped(without_comment(value).trim())
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('s') => out.push(' '),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}
