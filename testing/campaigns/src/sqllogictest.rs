//! The corpus of sqllogictest, SQLite's seven million queries, played on ours and on stock servers.
//!
//! What would prove ours wrong: rows that MySQL does not have, or a statement that only ours refuses. The
//! corpus is not part of the project; `--corpus` says where a copy of it lies. Its recorded results are of
//! several databases and not used: what counts is what the first peer answers to the same statement on the
//! same rows. Records for other databases than MySQL (`onlyif`, `skipif`) are left out.
//!
//! The time that each server took for a file is summed up as well: a plan that is worse than the peers'
//! shows there.

use crate::peers::{Accounts, Address, Answer, answer, connect, whole};
use anyhow::{Context, Result, ensure};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to play, and beside whom.
#[derive(clap::Args, Clone)]
pub struct Arguments {
    /// Our server, running: its port on this machine. It is given a database of its own.
    #[arg(long)]
    port: u16,
    /// Stock servers, running: NAME:PORT. The first, a MySQL, has the right answers; of the others only the
    /// time counts.
    #[arg(long = "peer", required = true, num_args = 1)]
    peers: Vec<String>,
    #[command(flatten)]
    accounts: Accounts,
    /// Remade at each server for each file.
    #[arg(long, default_value = "untorn_logic")]
    database: String,
    /// A copy of the corpus: the folder with `evidence`, `index`, `random`.
    #[arg(long)]
    corpus: PathBuf,
    /// Only files whose path has this in it; more than one may be given.
    #[arg(long)]
    only: Vec<String>,
    /// One file of this many in each folder.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Queries of one file. The statements that make its tables do not count.
    #[arg(long, default_value_t = 1000)]
    queries: usize,
    /// Where the list of differences goes.
    #[arg(long, default_value = "target/sqllogictest.txt")]
    list: PathBuf,
}

/// Below this a server's time for a file says nothing.
const TELLING: Duration = Duration::from_millis(500);

/// A statement of a file.
#[derive(Debug, PartialEq)]
struct Record {
    line: usize,
    query: bool,
    sql: String,
}

/// What became of a folder, or of all.
#[derive(Default)]
struct Sums {
    files: usize,
    same: usize,
    wrong: usize,
    order: usize,
    refused: usize,
    not_refused: usize,
    times: Vec<Duration>,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.files += other.files;
        self.same += other.same;
        self.wrong += other.wrong;
        self.order += other.order;
        self.refused += other.refused;
        self.not_refused += other.not_refused;
        self.times.resize(other.times.len(), Duration::ZERO);
        self.times.iter_mut().zip(&other.times).for_each(|(sum, time)| *sum += *time);
    }
}

/// Plays the files, prints a table, and writes the list. An error if an answer was wrong or refused.
pub fn run(arguments: &Arguments) -> Result<()> {
    let addresses = arguments.accounts.addresses(arguments.port, &arguments.peers)?;
    let folders = folders(arguments)?;
    ensure!(!folders.is_empty(), "no .test file below {}", arguments.corpus.display());
    let mut list = String::new();
    let mut all = Sums::default();
    println!("{}", heading(&addresses));
    for (folder, files) in folders {
        let mut sums = Sums::default();
        for path in files {
            let outcome =
                play(arguments, &addresses, &path, &mut list).with_context(|| path.display().to_string())?;
            slow(&mut list, &path, &addresses, &outcome.times);
            sums.add(&outcome);
            std::fs::write(&arguments.list, &list).with_context(|| arguments.list.display().to_string())?;
        }
        println!("{}", line(&folder, &sums));
        all.add(&sums);
    }
    println!("{}", line("all", &all));
    println!("The list of differences is in {}.", arguments.list.display());
    let bad = all.wrong + all.order + all.refused;
    ensure!(bad == 0, "{bad} statements are wrong or refused");
    Ok(())
}

/// The files to be played, by their folders.
fn folders(arguments: &Arguments) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut open = vec![arguments.corpus.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "test") {
                let name = folder.strip_prefix(&arguments.corpus)?.display().to_string();
                folders.entry(name).or_default().push(path);
            }
        }
    }
    for files in folders.values_mut() {
        files.sort();
        *files = files.drain(..).step_by(arguments.every.max(1)).collect();
        files.retain(|path| {
            let path = path.to_string_lossy();
            arguments.only.is_empty() || arguments.only.iter().any(|only| path.contains(only.as_str()))
        });
    }
    folders.retain(|_, files| !files.is_empty());
    Ok(folders)
}

/// The records of a file that are for MySQL.
fn records(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, first)) = lines.next() {
        let mut head = first;
        let mut wanted = true;
        loop {
            let words: Vec<&str> = head.split_whitespace().collect();
            match words[..] {
                ["onlyif", name, ..] => wanted &= name == "mysql",
                ["skipif", name, ..] => wanted &= name != "mysql",
                _ => break,
            }
            match lines.next() {
                Some((_, next)) => head = next,
                None => return records,
            }
        }
        let kind = head.split_whitespace().next().unwrap_or_default();
        match kind {
            "halt" if wanted => return records,
            "statement" | "query" => {}
            _ => continue,
        }
        let mut sql = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            if line.starts_with("----") {
                // The recorded result, up to the next empty line.
                while lines.next_if(|(_, line)| !line.trim().is_empty()).is_some() {}
                break;
            }
            sql.push_str(line);
            sql.push('\n');
        }
        if wanted {
            let sql = sql.trim().to_owned();
            records.push(Record { line: number + 1, query: kind == "query", sql });
        }
    }
    records
}

fn play(arguments: &Arguments, addresses: &[Address], path: &Path, list: &mut String) -> Result<Sums> {
    let text = std::fs::read_to_string(path)?;
    let mut sessions =
        addresses.iter().map(|address| session(address, &arguments.database)).collect::<Result<Vec<_>>>()?;
    let mut sums = Sums { files: 1, times: vec![Duration::ZERO; sessions.len()], ..Sums::default() };
    let mut queries = 0;
    for record in records(&text) {
        if record.query {
            queries += 1;
            if queries > arguments.queries {
                break;
            }
        }
        let mut answers = Vec::new();
        for (index, session) in sessions.iter_mut().enumerate() {
            let begin = Instant::now();
            let answer = answer(session, &record.sql);
            sums.times[index] += begin.elapsed();
            if let Answer::Lost(_) = answer {
                *session = connect(&addresses[index], Some(&arguments.database))?;
            }
            answers.push(answer);
        }
        if let Some(what) = judge(&record, &answers[0], &answers[1], &mut sums) {
            let _ = writeln!(
                list,
                "{what}: {}:{}\n{}\n  ours: {}\n  {}: {}\n",
                path.display(),
                record.line,
                record.sql,
                described(&answers[0]),
                addresses[1].name,
                described(&answers[1]),
            );
        }
    }
    for mut session in sessions {
        session.query_drop(format!("DROP DATABASE {}", arguments.database))?;
    }
    Ok(sums)
}

/// A session in an empty database.
fn session(address: &Address, database: &str) -> Result<Conn> {
    let mut session = connect(address, None)?;
    session.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
    session.query_drop(format!("CREATE DATABASE {database}"))?;
    session.query_drop(format!("USE {database}"))?;
    Ok(session)
}

/// Counts an answer; says what is wrong with it.
fn judge(record: &Record, ours: &Answer, right: &Answer, sums: &mut Sums) -> Option<&'static str> {
    let (count, what) = match (ours, right) {
        (Answer::Rows(ours), Answer::Rows(right)) if ours == right => (&mut sums.same, None),
        (Answer::Rows(ours), Answer::Rows(right)) if sorted(ours) == sorted(right) => {
            // What an ORDER BY leaves open, and what none orders, is each server's own affair; but the rows
            // of an ORDER BY that names every column of them are in one order.
            match ordered_by_all(&record.sql, ours.first().map_or(0, Vec::len)) {
                true => (&mut sums.order, Some("wrong order")),
                false => (&mut sums.same, None),
            }
        }
        (Answer::Rows(_), Answer::Rows(_)) => (&mut sums.wrong, Some("wrong rows")),
        (Answer::Done(ours), Answer::Done(right)) if ours == right => (&mut sums.same, None),
        (Answer::Error(..), Answer::Error(..)) => (&mut sums.same, None),
        (_, Answer::Lost(_)) => (&mut sums.same, None),
        (Answer::Error(..) | Answer::Lost(_), _) => (&mut sums.refused, Some("refused")),
        (_, Answer::Error(..)) => (&mut sums.not_refused, Some("not refused")),
        _ => (&mut sums.wrong, Some("another kind of answer")),
    };
    *count += 1;
    what
}

fn sorted(rows: &[Vec<Value>]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| whole(row)).collect();
    rows.sort_unstable();
    rows
}

/// Whether ORDER BY names as many things as a row has columns.
fn ordered_by_all(sql: &str, columns: usize) -> bool {
    let Some((_, by)) = sql.rsplit_once("ORDER BY") else { return false };
    by.split(',').count() == columns
}

fn described(answer: &Answer) -> String {
    let mut text = match answer {
        Answer::Rows(rows) => {
            let shown: Vec<String> = rows.iter().take(5).map(|row| whole(row)).collect();
            format!("{} rows, {}", rows.len(), shown.join(" "))
        }
        other => format!("{other:?}"),
    };
    if let Some((end, _)) = text.char_indices().nth(600) {
        text.truncate(end);
    }
    text
}

/// Lists a file that took ours more than one and a half times as long as each peer.
fn slow(list: &mut String, path: &Path, addresses: &[Address], times: &[Duration]) {
    let ours = times[0];
    if ours < TELLING || times[1..].iter().any(|peer| ours.as_secs_f64() <= 1.5 * peer.as_secs_f64()) {
        return;
    }
    let told: Vec<String> = addresses
        .iter()
        .zip(times)
        .map(|(address, time)| format!("{} {:.2} s", address.name, time.as_secs_f64()))
        .collect();
    let _ = writeln!(list, "slow: {}: {}\n", path.display(), told.join(", "));
}

fn heading(addresses: &[Address]) -> String {
    let mut text = format!(
        "{:<26} {:>5} {:>8} {:>6} {:>6} {:>8} {:>12}",
        "folder", "files", "same", "wrong", "order", "refused", "not refused"
    );
    addresses.iter().for_each(|address| {
        let _ = write!(text, " {:>9}", format!("{} s", address.name));
    });
    text
}

fn line(folder: &str, sums: &Sums) -> String {
    let Sums { files, same, wrong, order, refused, not_refused, times } = sums;
    let mut text =
        format!("{folder:<26} {files:>5} {same:>8} {wrong:>6} {order:>6} {refused:>8} {not_refused:>12}");
    times.iter().for_each(|time| {
        let _ = write!(text, " {:>9.1}", time.as_secs_f64());
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_for_other_databases_and_recorded_results_are_left_out() {
        let text = "hash-threshold 8\n\nstatement ok\nCREATE TABLE t (a INT)\n\nonlyif sqlite\nstatement ok\n\
                    PRAGMA x\n\nskipif mysql # too\nquery I nosort\nSELECT 1\n----\n1\n\nonlyif mysql\n\
                    query II rowsort label-1\nSELECT 2,\n 3\n----\n2\n3\n\nhalt\n\nstatement ok\nDROP TABLE t\n";
        let found = records(text);
        let said: Vec<(usize, bool, &str)> =
            found.iter().map(|record| (record.line, record.query, &*record.sql)).collect();
        assert_eq!(said, [(3, false, "CREATE TABLE t (a INT)"), (16, true, "SELECT 2,\n 3")]);
    }

    #[test]
    fn other_rows_are_wrong_and_another_order_only_where_all_columns_order() {
        let rows =
            |numbers: &[i64]| Answer::Rows(numbers.iter().map(|number| vec![Value::Int(*number)]).collect());
        let judged = |sql: &str, ours: &Answer, right: &Answer| {
            let record = Record { line: 1, query: true, sql: sql.to_owned() };
            judge(&record, ours, right, &mut Sums::default())
        };
        assert_eq!(judged("SELECT a FROM t", &rows(&[1, 2]), &rows(&[2, 1])), None);
        assert_eq!(judged("SELECT a FROM t ORDER BY 1", &rows(&[1, 2]), &rows(&[2, 1])), Some("wrong order"));
        assert_eq!(judged("SELECT a FROM t", &rows(&[1, 1]), &rows(&[1])), Some("wrong rows"));
        let refusal = Answer::Error(1064, String::new());
        assert_eq!(judged("SELECT a FROM t", &refusal, &rows(&[1])), Some("refused"));
        assert_eq!(judged("SELECT a FROM t", &rows(&[1]), &refusal), Some("not refused"));
        assert_eq!(judged("SELECT a FROM t", &refusal, &refusal), None);
    }
}
