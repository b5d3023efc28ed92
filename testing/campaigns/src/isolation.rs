//! Scripts of interleaved sessions (`testing/campaigns/isolation/*.case`), run against a server over the
//! wire. A line is a session, its statement and the answer, which may be that it waits.
//!
//! The same scripts run against a stock MariaDB, so the expectations are not ours alone. A statement that
//! must wait is recognised by the server's own count of row lock waits, not by time passing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use lab::command::root;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};

/// How long a statement that must answer may take, and how long to look for a wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// One step of a case.
struct Step {
    line: usize,
    session: String,
    /// `None`: take the answer of the statement that waited.
    sql: Option<String>,
    expectation: String,
}

struct Case {
    name: String,
    level: String,
    steps: Vec<Step>,
}

/// Answer of a statement, in the form expectations are written.
type Answer = String;

struct Session {
    statements: Sender<String>,
    answers: Receiver<Answer>,
    pending: bool,
}

fn parse(text: &str) -> Result<Vec<Case>> {
    let mut cases: Vec<(String, Vec<String>, Vec<Step>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let number = number + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix("case ") {
            let (name, levels) =
                head.split_once('[').with_context(|| format!("line {number}: no [levels]"))?;
            let levels = levels.trim_end_matches(']').split(',').map(|level| level.trim().to_owned());
            cases.push((name.trim().to_owned(), levels.collect(), Vec::new()));
            continue;
        }
        let (step, expectation) = line.split_once("->").unwrap_or((line, ""));
        let (session, sql) = match step.split_once(':') {
            Some((session, sql)) => (session, Some(sql.trim().to_owned())),
            None => (step.trim().trim_end_matches("resumes"), None),
        };
        let (_, _, steps) = cases.last_mut().with_context(|| format!("line {number}: no case yet"))?;
        steps.push(Step {
            line: number,
            session: session.trim().to_owned(),
            sql,
            expectation: expectation.trim().to_owned(),
        });
    }
    let mut all = Vec::new();
    for (name, levels, steps) in cases {
        for level in levels {
            let steps = steps.iter().map(|step| Step {
                line: step.line,
                session: step.session.clone(),
                sql: step.sql.clone(),
                expectation: step.expectation.clone(),
            });
            all.push(Case { name: name.clone(), level, steps: steps.collect() });
        }
    }
    Ok(all)
}

fn text(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        other => format!("{other:?}"),
    }
}

fn answer(connection: &mut Conn, sql: &str) -> Answer {
    let is_query = sql.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
    match connection.query::<Row, _>(sql) {
        Ok(rows) if is_query => {
            let rows: Vec<String> = rows
                .into_iter()
                .map(|row| {
                    row.unwrap_raw().into_iter().flatten().map(|v| text(&v)).collect::<Vec<_>>().join(",")
                })
                .collect();
            if rows.is_empty() { "empty".to_owned() } else { rows.join(" | ") }
        }
        Ok(_) => String::new(),
        Err(mysql::Error::MySqlError(error)) => format!("error {}", error.code),
        Err(error) => format!("broken connection: {error}"),
    }
}

fn open_session(server: &ServerProcess, level: &str) -> Result<Session> {
    let mut connection = server.connect(Some("untorn_isolation"))?;
    connection.query_drop(format!("set session transaction isolation level {level}"))?;
    let (statements, inbox) = channel::<String>();
    let (outbox, answers) = channel();
    thread::spawn(move || {
        for sql in inbox {
            if outbox.send(answer(&mut connection, &sql)).is_err() {
                return;
            }
        }
    });
    Ok(Session { statements, answers, pending: false })
}

fn lock_waits(admin: &mut Conn) -> Result<u64> {
    let row: Option<(String, String)> =
        admin.query_first("show global status like 'Innodb_row_lock_current_waits'")?;
    Ok(row.context("the server does not say how many row locks are waited for")?.1.parse()?)
}

fn run_case(server: &ServerProcess, admin: &mut Conn, case: &Case) -> Result<()> {
    admin.query_drop("drop table if exists untorn_isolation.test")?;
    admin.query_drop("create table untorn_isolation.test (id int primary key, value int) engine=innodb")?;
    admin.query_drop("insert into untorn_isolation.test (id, value) values (1, 10), (2, 20)")?;
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    for step in &case.steps {
        if !sessions.contains_key(&step.session) {
            sessions.insert(step.session.clone(), open_session(server, &case.level)?);
        }
        let waiting = sessions.values().filter(|session| session.pending).count() as u64;
        let session = sessions.get_mut(&step.session).context("no such session")?;
        if let Some(sql) = &step.sql {
            ensure!(!session.pending, "line {}: {} still waits", step.line, step.session);
            session.statements.send(sql.clone())?;
        }
        if step.expectation == "waits" {
            expect_wait(admin, session, waiting).with_context(|| format!("line {}", step.line))?;
            session.pending = true;
            continue;
        }
        let answer = session
            .answers
            .recv_timeout(PATIENCE)
            .with_context(|| format!("line {}: {} does not answer", step.line, step.session))?;
        session.pending = false;
        ensure!(
            answer == step.expectation,
            "line {}: {} expected `{}`, the answer is `{answer}`",
            step.line,
            step.session,
            step.expectation
        );
    }
    Ok(())
}

/// Returns when the server counts one more row lock wait; an answer instead is a failure.
fn expect_wait(admin: &mut Conn, session: &Session, waiting: u64) -> Result<()> {
    let start = Instant::now();
    loop {
        match session.answers.recv_timeout(Duration::from_millis(2)) {
            Ok(answer) => bail!("it should wait, but the answer is `{answer}`"),
            Err(RecvTimeoutError::Disconnected) => bail!("the session is gone"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if lock_waits(admin)? > waiting {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "it neither waits for a row lock nor answers");
    }
}

/// Runs all scripts against a fresh server.
pub fn run(program: &Program) -> Result<()> {
    Scratch::with("isolation", |place| run_in(program, place))
}

fn run_in(program: &Program, place: &Path) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    let mut admin = server.connect(None)?;
    admin.query_drop("create database untorn_isolation")?;
    let directory = root().join("testing/campaigns/isolation");
    let mut files: Vec<_> = std::fs::read_dir(&directory)?.collect::<std::io::Result<Vec<_>>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let (mut passed, mut failed) = (0, Vec::new());
    for file in files.iter().filter(|file| file.path().extension().is_some_and(|e| e == "case")) {
        for case in parse(&std::fs::read_to_string(file.path())?)? {
            match run_case(&server, &mut admin, &case) {
                Ok(()) => passed += 1,
                Err(error) => failed.push(format!("{} [{}]: {error:#}", case.name, case.level)),
            }
        }
    }
    println!("{passed} cases of isolation and locking as expected");
    ensure!(failed.is_empty(), "{passed} cases passed, {} failed:\n{}", failed.len(), failed.join("\n"));
    ensure!(passed > 0, "no cases in {}", directory.display());
    server.stop()?;
    Ok(())
}
