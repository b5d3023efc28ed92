//! MariaDB's own test suite, played statement by statement on ours and on two stock servers.
//!
//! What would prove ours wrong: rows, table contents or an error that neither MariaDB nor MySQL has. The
//! scripts are read where the packages `mariadb-test` and `mariadb-test-data` put them; their recorded
//! results are not used. `script` reads the language, `interpreter` plays it, `servers` asks the three,
//! `judge` compares their answers, and `statement` knows what is left out.
//!
//! Nothing here decides whether a campaign passes: it makes a table and a list to work from.

mod character_sets;
mod interpreter;
pub(crate) mod judge;
mod script;
mod servers;
mod statement;

use crate::peers::{Accounts, Address};
use anyhow::{Context, Result, ensure};
use clap::Args;
use interpreter::Interpreter;
use judge::{VERDICTS, Verdict};
use servers::{Difference, Servers};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that makes MySQL 9.7 end itself (`ALTER TABLE … FORCE`), and with it what is played beside.
const ENDS_A_PEER: &str = "innodb/default_row_format_alter";

/// Databases that may be left behind with files of a script in them.
const NAMES: u32 = 40;

/// What to play, and beside whom.
#[derive(Args, Clone)]
pub struct Arguments {
    /// Our server, running: its port on this machine. It is given a database of its own.
    #[arg(long)]
    pub port: u16,
    /// A stock MariaDB and a stock MySQL, running: NAME:PORT, twice. MariaDB first.
    #[arg(long = "peer", required = true, num_args = 1)]
    pub peers: Vec<String>,
    #[command(flatten)]
    accounts: Accounts,
    /// Remade at each server for each file.
    #[arg(long, default_value = "untorn_suites")]
    database: String,
    /// Where the suite is.
    #[arg(long, default_value = "/usr/share/mysql/mysql-test")]
    suite: PathBuf,
    /// Only files whose name has this in it (`main/select`, `innodb/`); more than one may be given.
    #[arg(long)]
    only: Vec<String>,
    /// Seconds for one file.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Where the list of differences goes.
    #[arg(long, default_value = "target/suites.txt")]
    list: PathBuf,
}

/// What came of one file.
struct Outcome {
    name: String,
    counts: BTreeMap<Verdict, usize>,
    /// Why it was not played to its end.
    ended: Option<String>,
}

/// Plays the files, prints a table and a summary, and writes the list.
pub fn run(arguments: &Arguments) -> Result<()> {
    let addresses = addresses(arguments)?;
    let files = files(arguments)?;
    ensure!(!files.is_empty(), "no script below {}: install mariadb-test-data", arguments.suite.display());
    let mut list = String::new();
    let mut outcomes = Vec::new();
    println!("{}", heading());
    for (name, path) in files {
        let (outcome, differences) = play(arguments, &addresses, &name, &path)?;
        println!("{}", line(&outcome));
        differences.iter().for_each(|difference| list.push_str(&described(difference)));
        outcomes.push(outcome);
        std::fs::write(&arguments.list, &list).with_context(|| arguments.list.display().to_string())?;
    }
    println!("{}", summary(&outcomes));
    println!("The list of differences is in {}.", arguments.list.display());
    Ok(())
}

fn addresses(arguments: &Arguments) -> Result<[Address; 3]> {
    let all = arguments.accounts.addresses(arguments.port, &arguments.peers)?;
    all.try_into().map_err(|_| anyhow::anyhow!("two peers are needed, no more"))
}

/// The scripts of `main` and of the suite of InnoDB.
fn files(arguments: &Arguments) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for (suite, folder) in [("main", "main"), ("innodb", "suite/innodb/t")] {
        let folder = arguments.suite.join(folder);
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("{}: install mariadb-test-data", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
                continue;
            };
            let name = format!("{suite}/{stem}");
            let wanted = arguments.only.is_empty() || arguments.only.iter().any(|only| name.contains(only));
            let wanted = wanted && name != ENDS_A_PEER;
            if wanted && path.extension().is_some_and(|extension| extension == "test") {
                files.push((name, path));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn play(
    arguments: &Arguments,
    addresses: &[Address; 3],
    name: &str,
    path: &Path,
) -> Result<(Outcome, Vec<Difference>)> {
    let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
    let mut places = vec![arguments.suite.clone()];
    places.extend(path.parent().map(Path::to_owned));
    // `suite/innodb/t` has its included files in `suite/innodb`.
    places.extend(path.parent().and_then(Path::parent).map(Path::to_owned));
    let limit = Duration::from_secs(arguments.seconds);
    // A file that a script left behind may keep a server from dropping its database: then another name.
    let mut names = (1..=NAMES).map(|number| match number {
        1 => arguments.database.clone(),
        number => format!("{}_{number}", arguments.database),
    });
    let mut servers = loop {
        let database = names.next().context("every name is taken")?;
        match Servers::new(addresses, &database, places.clone(), limit) {
            Err(_) if names.size_hint().0 > 0 => {}
            made => break made?,
        }
    };
    let ended = match Interpreter::new(&mut servers).play(name, &text) {
        Ok(ended) => ended,
        Err(error) => Some(format!("{error:#}")),
    };
    let ended = servers.finish().err().map(|error| format!("{error:#}")).or(ended);
    let Servers { counts, differences, .. } = servers;
    Ok((Outcome { name: name.to_owned(), counts, ended }, differences))
}

fn heading() -> String {
    let names = VERDICTS.iter().fold(String::new(), |line, (_, name)| line + &format!(" {name} |"));
    format!("| file |{names} ended early |\n|---|{}---|", "---|".repeat(VERDICTS.len()))
}

fn line(outcome: &Outcome) -> String {
    let mut line = format!("| {} |", outcome.name);
    for (verdict, _) in VERDICTS {
        let _ = write!(line, " {} |", outcome.counts.get(&verdict).unwrap_or(&0));
    }
    line + &format!(" {} |", outcome.ended.as_deref().unwrap_or(""))
}

fn summary(outcomes: &[Outcome]) -> String {
    let count = |verdict: Verdict| -> usize {
        outcomes.iter().filter_map(|outcome| outcome.counts.get(&verdict)).sum()
    };
    let judged: usize = VERDICTS.iter().map(|(verdict, _)| count(*verdict)).sum::<usize>()
        - count(Verdict::Excluded)
        - count(Verdict::Cascade);
    let mut text = format!("\n{} files, {judged} statements judged:\n", outcomes.len());
    for (verdict, name) in VERDICTS {
        let share = 100.0 * count(verdict) as f64 / judged.max(1) as f64;
        let of_judged = match verdict {
            Verdict::Excluded | Verdict::Cascade => "not judged".to_owned(),
            _ => format!("{share:.2} %"),
        };
        let _ = writeln!(text, "{:>8}  {name} ({of_judged})", count(verdict));
    }
    text
}

fn described(difference: &Difference) -> String {
    let Difference { file, line, verdict, sql, answers } = difference;
    let verdict = VERDICTS.iter().find(|(known, _)| known == verdict).map_or("", |(_, name)| name);
    let sql: String = sql.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(600).collect();
    let mut text = format!("{verdict} {file}:{line}\n    {sql}\n");
    for (server, answer) in ["ours", "1st", "2nd"].iter().zip(answers) {
        let _ = writeln!(text, "    {server:>6}: {answer}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_leaves_out_what_was_not_judged() {
        let counts = BTreeMap::from([(Verdict::Same, 3), (Verdict::Excluded, 5), (Verdict::WrongRows, 1)]);
        let text = summary(&[Outcome { name: "a".to_owned(), counts, ended: None }]);
        assert!(text.contains("1 files, 4 statements judged"), "{text}");
        assert!(text.contains("3  same (75.00 %)") && text.contains("1  wrong rows (25.00 %)"), "{text}");
    }
}
