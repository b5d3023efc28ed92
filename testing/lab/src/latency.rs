//! What one long statement does to everybody else: the answers of `SELECT 1` from a few clients beside a
//! join, a sort, a DELETE, an index build and the like, ours beside stock servers, on the same machine one
//! after the other.
//!
//! The clients ask with short pauses, so that they wait for the server and not for each other. Ours runs with
//! two runtimes: half of the clients share a thread with the long statement.

use crate::experiment::servers::{Peers, Server};
use crate::scratch::Scratch;
use crate::server_process::{Kind, Program, ServerProcess};
use anyhow::{Context, Result, anyhow};
use mysql::prelude::Queryable;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Clients that ask.
    #[arg(long, default_value_t = 6)]
    clients: u32,
    /// Megabytes of the text of the long INSERT.
    #[arg(long, default_value_t = 60)]
    insert: usize,
    #[command(flatten)]
    peers: Peers,
}

/// Between two questions of a client.
const PAUSE: Duration = Duration::from_millis(1);
/// How long nothing runs, for comparison.
const IDLE: Duration = Duration::from_secs(3);

/// A long statement: what is done before, the statement, what is done afterwards.
struct Case {
    name: &'static str,
    before: Vec<String>,
    statement: String,
    after: Vec<String>,
}

/// The answers beside one statement.
struct Answers {
    took: Duration,
    /// Sorted.
    times: Vec<Duration>,
}

impl Answers {
    fn worst_ms(&self) -> f64 {
        self.times.last().map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    fn percentile_99_ms(&self) -> f64 {
        let at = self.times.len() * 99 / 100;
        self.times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

fn case(name: &'static str, before: &[&str], statement: impl Into<String>, after: &[&str]) -> Case {
    let owned = |list: &[&str]| list.iter().map(|&sql| sql.to_owned()).collect();
    Case { name, before: owned(before), statement: statement.into(), after: owned(after) }
}

fn cases(setup: &Setup) -> Vec<Case> {
    let rows = setup.rows;
    let half = rows / 2;
    vec![
        case("a join", &[], "SELECT COUNT(*), MAX(b.pad) FROM big a JOIN big b ON b.id = a.k", &[]),
        case(
            "a join of derived tables",
            &[],
            "SELECT COUNT(*) FROM (SELECT id, k FROM big WHERE id <= 3000) a, (SELECT id, k FROM big WHERE id <= 3000) b WHERE a.k < b.k",
            &[],
        ),
        case(
            "GROUP BY",
            &[],
            "SELECT SUM(c) FROM (SELECT k, COUNT(*) c, MAX(pad) FROM big GROUP BY k) g",
            &[],
        ),
        case("ORDER BY", &[], format!("SELECT id FROM big ORDER BY pad DESC, k LIMIT {}, 1", rows - 1), &[]),
        case("DELETE of a half", &["BEGIN"], format!("DELETE FROM big WHERE id > {half}"), &["ROLLBACK"]),
        case("ROLLBACK", &["BEGIN", "UPDATE big SET k = k + 1"], "ROLLBACK", &[]),
        case("CREATE INDEX", &[], "CREATE INDEX by_k ON big (k, pad)", &["DROP INDEX by_k ON big"]),
        case(
            "a long INSERT",
            &["CREATE TABLE filled (id INT PRIMARY KEY, pad VARCHAR(200))"],
            long_insert(setup.insert << 20),
            &["DROP TABLE filled"],
        ),
        case("CHECK TABLE", &[], "CHECK TABLE big", &[]),
    ]
}

fn long_insert(bytes: usize) -> String {
    let mut sql = String::with_capacity(bytes + 256);
    sql.push_str("INSERT INTO filled VALUES ");
    let pad = "p".repeat(100);
    for id in 0.. {
        if sql.len() >= bytes {
            return sql;
        }
        if id > 0 {
            sql.push(',');
        }
        sql.push_str(&format!("({id},'{pad}')"));
    }
    sql
}

/// Runs all servers and prints the table.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    let servers = setup.peers.beside(program)?;
    let mut tables = Vec::new();
    for server in &servers {
        tables.push(Scratch::with("experiment-latency", |place| measure(server, setup, place))?);
    }
    print(&servers, &tables);
    Ok(())
}

fn print(servers: &[Server], tables: &[Vec<(&'static str, Answers)>]) {
    let heads: Vec<String> =
        servers.iter().map(|server| format!("{}: worst | 99 % | it takes", server.name)).collect();
    println!("| `SELECT 1` beside | {} |", heads.join(" | "));
    println!("|---|{}", "---|---|---|".repeat(servers.len()));
    let Some(first) = tables.first() else { return };
    for (row, (name, _)) in first.iter().enumerate() {
        let cells: Vec<String> = tables
            .iter()
            .filter_map(|table| table.get(row))
            .map(|(_, answers)| {
                format!(
                    "{:.1} ms | {:.1} ms | {:.1} s",
                    answers.worst_ms(),
                    answers.percentile_99_ms(),
                    answers.took.as_secs_f64()
                )
            })
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn settings(program: &Program) -> Vec<&'static str> {
    let mut settings = vec!["--innodb-buffer-pool-size=1G", "--max-allowed-packet=128M"];
    match program.kind {
        Kind::Untorn => settings.extend(["--untorn-threads=2", "--innodb-redo-log-capacity=1G"]),
        Kind::MariaDb => settings.extend(["--innodb-log-file-size=1G", "--skip-log-bin"]),
        Kind::Command => settings.extend(["--innodb-redo-log-capacity=1G", "--skip-log-bin"]),
    }
    settings
}

fn measure(contestant: &Server, setup: &Setup, place: &Path) -> Result<Vec<(&'static str, Answers)>> {
    let (name, program) = (&contestant.name, &contestant.program);
    let server = ServerProcess::start(program, place, &settings(program))?;
    server.feed("", "CREATE DATABASE latency")?;
    let mut worker = server.connect(Some("latency"))?;
    fill(&mut worker, setup.rows)?;
    let idle = || {
        thread::sleep(IDLE);
        Ok(())
    };
    let mut table = vec![("nothing", beside(&server, setup, idle)?)];
    for case in cases(setup) {
        eprintln!("{name}: {}", case.name);
        for sql in &case.before {
            worker.query_drop(sql)?;
        }
        let run = || worker.query_drop(&case.statement).with_context(|| case.name.to_owned());
        table.push((case.name, beside(&server, setup, run)?));
        for sql in &case.after {
            worker.query_drop(sql)?;
        }
    }
    drop(worker);
    server.stop()?;
    Ok(table)
}

fn fill(worker: &mut mysql::Conn, rows: u64) -> Result<()> {
    worker.query_drop("CREATE TABLE big (id INT PRIMARY KEY, k INT NOT NULL, pad CHAR(60) NOT NULL)")?;
    worker.query_drop("INSERT INTO big VALUES (1, 1, REPEAT('p', 40))")?;
    let mut count = 1;
    while count < rows {
        let more = count.min(rows - count);
        // 7919 is prime to the rows: every row is found once, all over the table.
        worker.query_drop(format!(
            "INSERT INTO big SELECT id + {count}, (id + {count}) * 7919 % {rows} + 1, LPAD(HEX((id + {count}) * 48271 % 1000003), 40, 'pad ') FROM big WHERE id <= {more}"
        ))?;
        count += more;
    }
    Ok(())
}

/// Lets the clients ask while `work` runs.
fn beside(server: &ServerProcess, setup: &Setup, work: impl FnOnce() -> Result<()>) -> Result<Answers> {
    let over = AtomicBool::new(false);
    let connections = (0..setup.clients).map(|_| server.connect(None)).collect::<Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let clients: Vec<_> =
            connections.into_iter().map(|connection| scope.spawn(|| ask(connection, &over))).collect();
        let begin = Instant::now();
        let outcome = work();
        let took = begin.elapsed();
        over.store(true, Ordering::Release);
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        times.sort_unstable();
        outcome.map(|()| Answers { took, times })
    })
}

fn ask(mut connection: mysql::Conn, over: &AtomicBool) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !over.load(Ordering::Acquire) {
        let begin = Instant::now();
        connection.query_drop("SELECT 1")?;
        times.push(begin.elapsed());
        thread::sleep(PAUSE);
    }
    Ok(times)
}
