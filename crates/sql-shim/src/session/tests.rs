//! What a statement takes: time by turns, memory by its account.
//!
//! Time is counted in units of work and polls, never by a clock: slices end after a number of units, so a
//! loop that does not count its work shows as too few polls.
#![allow(clippy::unwrap_used)]

mod catalog;
mod choices;
mod explained;
mod expressions;
mod kept_expressions;
mod planning;
mod settings;

use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use sql::kill_switch::Kill;
use sql::result::{Completion, Date, DateTime, ResultColumns, ResultSink, SqlError, Time};
use untorn::Options;
use untorn::asynchronous::Database;

use super::{Session, SessionService};
use crate::auth::accounts::Accounts;
use crate::server::registry::Connection;
use crate::server::shared::Server;
use crate::variables::GlobalVariables;

/// Rows of the tables.
const ROWS: usize = 3000;
/// Units of work of a slice.
const UNITS: u32 = 64;

/// Rows as text, and how much ever waited for the client.
#[derive(Default)]
struct Sink {
    rows: Vec<String>,
    row: String,
    affected: Option<u64>,
    error: Option<u16>,
    gathered: usize,
    most_gathered: usize,
    flushes: usize,
    /// Killed as soon as a text comes.
    kills: Option<Arc<Connection>>,
}

/// What the client's buffer holds.
const FULL: usize = 4096;

impl Sink {
    fn put(&mut self, value: impl std::fmt::Display) {
        let _ = write!(self.row, "{value}|");
    }
}

impl ResultSink for Sink {
    fn columns(&mut self, _: &Arc<ResultColumns>) {}
    fn row_begin(&mut self) {
        self.row.clear();
    }
    fn null(&mut self) {
        self.put("NULL");
    }
    fn int(&mut self, value: i64) {
        self.put(value);
    }
    fn uint(&mut self, value: u64) {
        self.put(value);
    }
    fn float(&mut self, value: f32) {
        self.put(value);
    }
    fn double(&mut self, value: f64) {
        self.put(value);
    }
    fn bytes(&mut self, value: &[u8]) {
        if let Some(connection) = &self.kills {
            connection.kill(Kill::Query);
        }
        self.put(String::from_utf8_lossy(value));
    }
    fn date(&mut self, value: Date) {
        self.put(format!("{value:?}"));
    }
    fn datetime(&mut self, value: DateTime, _: u8) {
        self.put(format!("{value:?}"));
    }
    fn time(&mut self, value: Time, _: u8) {
        self.put(format!("{value:?}"));
    }
    fn row_end(&mut self) {
        self.gathered += self.row.len();
        self.most_gathered = self.most_gathered.max(self.gathered);
        self.rows.push(std::mem::take(&mut self.row));
    }
    fn rows_end(&mut self, _: &Completion<'_>) {}
    fn ok(&mut self, completion: &Completion<'_>) {
        self.affected = Some(completion.affected);
    }
    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.code);
    }
    fn is_full(&self) -> bool {
        self.gathered >= FULL
    }
    async fn flush_if_full(&mut self) -> std::io::Result<()> {
        if self.is_full() {
            self.gathered = 0;
            self.flushes += 1;
        }
        Ok(())
    }
}

struct Fixture {
    directory: PathBuf,
    server: Arc<Server>,
    connection: Arc<Connection>,
    session: Session,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let directory = std::env::temp_dir().join(format!("untorn-statements-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let options = Options::new(&directory).buffer_pool_bytes(64 << 20).redo_capacity_bytes(64 << 20);
        let database = untorn::engine::block_on(Database::open(options)).unwrap();
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        super::engine_settings::connect(&server, &database);
        let connection = server.connections.enter(10, "localhost", 0, server.status.thread()).unwrap();
        connection.update(|activity| {
            activity.user = Arc::from("root");
            activity.account_host = Arc::from("localhost");
        });
        let session = Session::new(server.clone(), connection.clone(), database);
        let mut fixture = Fixture { directory, server, connection, session };
        fixture.good("CREATE DATABASE d");
        fixture.good("USE d");
        fixture
    }

    /// Runs a statement; it is killed before its poll of this number. Returns how many polls there were.
    fn drive(&mut self, sql: &str, kill_before: Option<usize>) -> (Sink, usize) {
        let mut sink = Sink::default();
        let mut polls = 0;
        let connection = self.connection.clone();
        connection.clear_query_kill();
        {
            let mut work = pin!(self.session.query(sql.as_bytes(), &mut sink));
            untorn::engine::block_on(poll_fn(|context| {
                polls += 1;
                if kill_before == Some(polls) {
                    connection.kill(Kill::Query);
                }
                work.as_mut().poll(context)
            }))
            .unwrap();
        }
        assert_eq!(self.session.state.memory.used(), 0, "something stayed charged after {sql:.60}");
        // A long statement's tree and plan give back their charge on another thread.
        let begin = Instant::now();
        while self.server.memory.used() > self.session.state.memory.kept() {
            assert!(begin.elapsed() < Duration::from_secs(10), "something stayed charged after {sql:.60}");
            std::thread::yield_now();
        }
        (sink, polls)
    }

    fn run(&mut self, sql: &str) -> Sink {
        self.drive(sql, None).0
    }

    fn good(&mut self, sql: &str) -> Sink {
        let sink = self.run(sql);
        assert_eq!(sink.error, None, "{sql:.200}");
        sink
    }

    fn measure_in_units(&self, units: u32) {
        self.session.transaction.engine().slice().measure_in_units(units);
    }

    /// `t`: a number, a number with few values, an exact number, a float, texts that fold, dates; NULLs among
    /// all but the first.
    fn fill(&mut self, seed: u64) {
        self.good(
            "CREATE TABLE t (id INT PRIMARY KEY, few INT, exact DECIMAL(10,3), f DOUBLE, word VARCHAR(40),
             day DATETIME(3), note TEXT)",
        );
        let mut random = seed | 1;
        let mut next = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        let mut sql = String::from("INSERT INTO t VALUES ");
        for id in 0..ROWS {
            let mut or_null = |text: String| if next(8) == 0 { "NULL".to_owned() } else { text };
            let few = or_null(format!("{}", id * 7 % 50));
            let exact = or_null(format!("-{}.{:03}", id * 31 % 97, id % 7));
            let float = or_null(format!("{}e-3", (id * 7919) % 4001));
            let word = or_null(format!("'{}{}'", if id % 2 == 0 { "Wörd " } else { "WÖRD " }, id * 13 % 700));
            let day = or_null(format!("'2024-0{}-1{} 01:02:03.{}'", 1 + id % 9, id % 7, id % 10));
            let comma = if id == 0 { "" } else { "," };
            let _ = write!(sql, "{comma}({id},{few},{exact},{float},{word},{day},'note {id}')");
        }
        self.good(&sql);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn rows(count: usize) -> usize {
    count / UNITS as usize
}

/// Slices that this number of tree nodes takes: each counts for a sixteenth of a row.
fn bound(nodes: usize) -> usize {
    rows(nodes / 16)
}

/// Statements with the slices they take at least. `o` is emptied and filled by them.
fn long_statements() -> Vec<(&'static str, usize)> {
    vec![
        ("SELECT COUNT(*), SUM(few) FROM t", rows(ROWS)),
        ("SELECT word FROM t WHERE f > 1e9", rows(ROWS)),
        ("SELECT id FROM t ORDER BY word, id", rows(2 * ROWS)),
        ("SELECT id FROM t ORDER BY word LIMIT 3", rows(ROWS)),
        ("SELECT word, COUNT(*) FROM t GROUP BY word, id", rows(2 * ROWS)),
        ("SELECT word, COUNT(*) FROM t GROUP BY word, id WITH ROLLUP", rows(3 * ROWS)),
        ("SELECT DISTINCT id, word FROM t", rows(ROWS)),
        ("SELECT id FROM t UNION SELECT few FROM t", rows(2 * ROWS)),
        ("SELECT id FROM t EXCEPT ALL SELECT few FROM t", rows(4 * ROWS)),
        ("SELECT id, RANK() OVER (ORDER BY word) FROM t", rows(3 * ROWS)),
        (
            "SELECT SUM(few) OVER w, MIN(f) OVER w FROM t WINDOW w AS (ORDER BY id ROWS 9 PRECEDING)",
            rows(15 * ROWS),
        ),
        ("SELECT COUNT(*) FROM (SELECT id FROM t) a", rows(2 * ROWS)),
        (
            "SELECT COUNT(*) FROM (SELECT id FROM t WHERE id < 300) a, (SELECT id FROM t WHERE id < 300) b",
            rows(90_000),
        ),
        ("SELECT COUNT(*) FROM t a JOIN t b ON b.id = a.id", rows(2 * ROWS)),
        ("SELECT COUNT(*) FROM t WHERE few IN (SELECT id FROM t)", rows(3 * ROWS)),
        ("SELECT GROUP_CONCAT(word ORDER BY f DESC) FROM t", rows(ROWS)),
        ("SELECT id FROM t FOR UPDATE", rows(ROWS)),
        ("INSERT INTO o SELECT id, word FROM t", rows(9 * ROWS)),
        ("UPDATE o SET w = CONCAT(w, 'x')", rows(8 * ROWS)),
        ("UPDATE o SET id = id + 10000", rows(8 * ROWS)),
        ("CREATE INDEX w ON o (w)", rows(2 * ROWS)),
        ("CHECK TABLE o", rows(ROWS)),
        ("DELETE FROM o WHERE id % 2 = 0", rows(5 * ROWS)),
        ("DELETE FROM o", rows(4 * ROWS)),
    ]
}

#[test]
fn every_kind_of_long_statement_gives_way() {
    let mut fixture = Fixture::new("turns");
    fixture.fill(11);
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY, w VARCHAR(60))");
    fixture.measure_in_units(UNITS);
    for (sql, slices) in long_statements() {
        let (sink, polls) = fixture.drive(sql, None);
        assert_eq!(sink.error, None, "{sql}");
        assert!(polls >= slices, "{sql}: {polls} polls where its work is {slices} slices");
    }
    let mut values = String::from("INSERT INTO o VALUES ");
    for id in 0..ROWS {
        let _ = write!(values, "{}({id},'w')", if id == 0 { "" } else { "," });
    }
    let (sink, polls) = fixture.drive(&values, None);
    assert_eq!(sink.affected, Some(ROWS as u64));
    assert!(
        polls >= rows(8 * ROWS) + bound(3 * ROWS),
        "rows of VALUES are bound, and inserted: {polls} polls"
    );
}

/// Statements that are long themselves, over an empty table, with the slices that planning them takes.
fn long_texts() -> Vec<(String, usize)> {
    let many = |count: usize, item: &dyn Fn(usize) -> String, between: &str| {
        (0..count).map(item).collect::<Vec<_>>().join(between)
    };
    let chain = many(ROWS, &|n| format!("id = {n} + 0"), " OR ");
    let cases = many(ROWS, &|n| format!("WHEN {n} THEN -id"), " ");
    vec![
        // Bound, walked through for columns and for keys.
        (format!("SELECT id FROM o WHERE {chain}"), bound(12 * ROWS)),
        (format!("DELETE FROM o WHERE {chain}"), bound(9 * ROWS)),
        (format!("UPDATE o SET id = CASE id {cases} ELSE id END"), bound(6 * ROWS)),
        (format!("SELECT {} FROM o", many(2 * ROWS, &|n| format!("{n}"), "+")), bound(4 * ROWS)),
        (many(ROWS, &|n| format!("SELECT id FROM o WHERE id = {n}"), " UNION "), bound(6 * ROWS)),
        (
            format!("SHOW TABLES WHERE {}", many(ROWS, &|_| "Tables_in_d = 'x'".into(), " OR ")),
            bound(6 * ROWS),
        ),
        (format!("SELECT COALESCE({}) FROM o", many(4 * ROWS, &|_| "id".into(), ",")), bound(6 * ROWS)),
        (format!("SELECT * FROM (SELECT id FROM o WHERE {chain}) AS d"), bound(9 * ROWS)),
        (
            format!("SELECT id FROM o ORDER BY {}", many(4 * ROWS, &|_| "id + 1".into(), ",")),
            bound(12 * ROWS),
        ),
    ]
}

#[test]
fn planning_a_long_text_gives_way() {
    let mut fixture = Fixture::new("texts");
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY)");
    fixture.measure_in_units(UNITS);
    for (sql, slices) in long_texts() {
        let (sink, polls) = fixture.drive(&sql, None);
        assert_eq!((sink.error, sink.rows.len()), (None, 0), "{sql:.60}");
        assert!(polls >= slices, "{sql:.60}: {polls} polls where planning is {slices} slices");
        let (sink, polls) = fixture.drive(&sql, Some(3));
        assert_eq!(sink.error, Some(1317), "{sql:.60}: killed");
        assert!(polls < slices, "{sql:.60}: {polls} polls, killed before the third of {slices}");
        // A client that is gone: the session is closed with its statement half planned.
        {
            let mut sink = Sink::default();
            fixture.connection.clear_query_kill();
            let mut work = pin!(fixture.session.query(sql.as_bytes(), &mut sink));
            untorn::engine::block_on(poll_fn(|context| {
                for _ in 0..3 {
                    assert!(work.as_mut().poll(context).is_pending());
                }
                Poll::Ready(())
            }));
        }
        fixture.good("SET autocommit = 1");
    }
}

/// Also one that comes before the session has looked at its command, or too late for planning itself to see
/// it.
#[test]
fn a_kill_is_remembered_whenever_it_comes_while_a_text_is_planned() {
    let mut fixture = Fixture::new("late-kills");
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY)");
    fixture.measure_in_units(UNITS);
    let sql = format!("SELECT {} FROM o", vec!["id"; 6 * ROWS].join("+"));
    let (sink, polls) = fixture.drive(&sql, None);
    assert!(sink.error.is_none() && polls > 3, "{polls} polls");
    for kill_before in 1..polls {
        assert_eq!(
            fixture.drive(&sql, Some(kill_before)).0.error,
            Some(1317),
            "before {kill_before} of {polls}"
        );
    }
}

#[test]
fn a_kill_is_seen_in_the_slice_it_comes_in() {
    let mut fixture = Fixture::new("kills");
    fixture.fill(12);
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY, w VARCHAR(60))");
    let mut expected = 0;
    for (sql, slices) in long_statements() {
        fixture.measure_in_units(UNITS);
        for kill_before in [2, 9] {
            let (sink, polls) = fixture.drive(sql, Some(kill_before));
            if polls < kill_before {
                continue;
            }
            if let Some(code) = sink.error {
                assert_eq!(code, 1317, "{sql}");
                expected += 1;
            }
            // Taking the changes back waits for pages and the log at most.
            assert!(
                polls <= kill_before + 24,
                "{sql}: {polls} polls, killed before {kill_before} of {slices}"
            );
        }
        // The table is as it was: the statement does its work now.
        fixture.measure_in_units(0);
        fixture.good(sql);
    }
    assert!(expected >= long_statements().len(), "{expected} kills were seen");
}

#[test]
fn a_select_ends_when_it_had_its_time() {
    let mut fixture = Fixture::new("time");
    fixture.fill(13);
    fixture.good("SET max_execution_time = 1");
    // 27 thousand million combinations.
    assert_eq!(fixture.run("SELECT COUNT(*) FROM t a, t b, t c").error, Some(3024));
    // Of a sleep MySQL says that it was ended.
    let slept = fixture.run("SELECT SLEEP(1000), 5, SLEEP(1000)");
    assert_eq!((slept.error, &slept.rows[..]), (None, &["1|5|1|".to_owned()][..]));
    fixture.good("SET max_execution_time = 0");
    fixture.good("SELECT COUNT(*) FROM t");
}

/// What leaves a frame is taken out of a sum; a minimum is looked for in all of it.
#[test]
fn sums_of_frames_slide() {
    let mut fixture = Fixture::new("frames");
    fixture.fill(15);
    fixture.measure_in_units(UNITS);
    let mut polls = |aggregate: &str| {
        let sql = format!("SELECT {aggregate}(few) OVER (ORDER BY id ROWS 500 PRECEDING) FROM t");
        let (sink, polls) = fixture.drive(&sql, None);
        assert_eq!((sink.error, sink.rows.len()), (None, ROWS), "{sql}");
        polls
    };
    let whole = polls("MIN");
    for slides in ["SUM", "AVG", "COUNT"] {
        assert!(20 * polls(slides) < whole, "{slides} reads whole frames: {whole} polls");
    }
}

#[test]
fn what_is_spilled_gives_the_rows_that_memory_gives() {
    for seed in [3, 1_000_003] {
        let mut fixture = Fixture::new(&format!("spill-{seed}"));
        fixture.fill(seed);
        let ordered = [
            "SELECT id, word FROM t ORDER BY word, few DESC",
            "SELECT * FROM t ORDER BY exact DESC, f, day DESC, id",
            "SELECT id + 1, day FROM t ORDER BY day, few LIMIT 2000, 700",
            "SELECT DISTINCT word FROM t ORDER BY word DESC",
            "SELECT DISTINCT few, exact FROM t ORDER BY exact, few",
            "SELECT word, COUNT(*), SUM(exact), MIN(day), AVG(f) FROM t GROUP BY word ORDER BY word",
            "SELECT word, few, COUNT(*), SUM(exact), GROUPING(few) FROM t GROUP BY word, few WITH ROLLUP",
            "SELECT id, few FROM t UNION SELECT few, id FROM t ORDER BY 1, 2",
            "SELECT id FROM t UNION ALL SELECT few FROM t ORDER BY 1 LIMIT 100, 3000",
            "SELECT id FROM t EXCEPT SELECT few FROM t ORDER BY 1 DESC LIMIT 10, 2000",
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY word ORDER BY id), LAG(day) OVER (PARTITION BY few ORDER BY id) \
             FROM t ORDER BY id",
            "SELECT id, SUM(exact) OVER (ORDER BY few, id ROWS 3 PRECEDING), RANK() OVER (ORDER BY word) FROM t ORDER BY 1",
            "SELECT word, few FROM t INTERSECT ALL SELECT word, few FROM t WHERE id % 3 = 0 ORDER BY 1, 2",
        ];
        let unordered = [
            "SELECT DISTINCT day, f FROM t",
            "SELECT word, few, COUNT(DISTINCT exact), GROUP_CONCAT(id ORDER BY id DESC) FROM t GROUP BY word, few",
            "SELECT few FROM t UNION SELECT id FROM t UNION ALL SELECT few FROM t",
            "SELECT a.word, COUNT(*) FROM t a LEFT JOIN t b ON b.id = a.few GROUP BY a.word HAVING COUNT(*) > 1",
        ];
        let wanted: Vec<Sink> = ordered.iter().chain(&unordered).map(|sql| fixture.good(sql)).collect();
        // The least that MySQL's ranges allow.
        fixture.good("SET sort_buffer_size = 32768, tmp_table_size = 1024");
        for (number, (sql, mut wanted)) in ordered.iter().chain(&unordered).zip(wanted).enumerate() {
            let mut found = fixture.good(sql);
            if number >= ordered.len() {
                found.rows.sort();
                wanted.rows.sort();
            }
            assert!(!found.rows.is_empty());
            assert!(found.rows == wanted.rows, "seed {seed}: {sql}");
        }
        fixture.good("CREATE TABLE copy LIKE t");
        fixture.good("INSERT INTO copy SELECT * FROM t ORDER BY word");
        fixture.good("UPDATE copy SET id = id + 5000, few = id ORDER BY id DESC");
        let moved = fixture.good("SELECT COUNT(*), SUM(id), COUNT(few) FROM copy").rows;
        assert_eq!(moved, [format!("{ROWS}|{}|{ROWS}|", ROWS * (ROWS - 1) / 2 + 5000 * ROWS)]);
    }
}

#[test]
fn what_may_not_be_had_is_an_error_of_that_statement() {
    let mut fixture = Fixture::new("limits");
    fixture.fill(14);
    fixture.good("SET untorn_statement_memory_limit = 300000");
    for sql in [
        "SELECT COUNT(*) FROM (SELECT * FROM t) a",
        "SELECT COUNT(*) FROM t WHERE note IN (SELECT note FROM t)",
        "SELECT COUNT(DISTINCT CONCAT(note, REPEAT('x', 100))) FROM t",
        "SELECT COUNT(DISTINCT CONCAT(note, REPEAT('x', 100))) FROM t GROUP BY few WITH ROLLUP",
        "SELECT LAST_VALUE(note) OVER () FROM t",
        "SET @a = REPEAT('a', 400000)",
    ] {
        assert_eq!(fixture.run(sql).error, Some(1041), "{sql}");
    }
    // A text whose tree would be as large: 100,000 rows of a byte each.
    let values = format!("INSERT INTO t (id) VALUES {}", vec!["(1)"; 100_000].join(","));
    assert_eq!(fixture.run(&values).error, Some(1041));
    // What goes to disk is not refused.
    for sql in [
        "SELECT * FROM t ORDER BY note",
        "SELECT note, word, COUNT(*) FROM t GROUP BY note, word",
        "SELECT note, word, id, COUNT(*) FROM t GROUP BY note, word, id WITH ROLLUP",
        "SELECT DISTINCT note, id FROM t",
        "SELECT note FROM t UNION SELECT word FROM t",
        "SELECT note, id FROM t EXCEPT SELECT word, id FROM t",
        "SELECT LAST_VALUE(note) OVER (PARTITION BY id), COUNT(*) OVER (PARTITION BY word, id) FROM t",
        "SELECT note, ROW_NUMBER() OVER (ORDER BY id), DENSE_RANK() OVER (ORDER BY note) FROM t",
        "SELECT note, SUM(few) OVER (ORDER BY id), MAX(few) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM t",
    ] {
        assert!(fixture.good(sql).rows.len() >= ROWS, "{sql}");
    }
    // A row that does not fit into a sort.
    fixture.good("SET untorn_statement_memory_limit = 0");
    fixture.good("CREATE TABLE wide (id INT PRIMARY KEY, b LONGTEXT)");
    fixture.good("INSERT INTO wide VALUES (1, REPEAT('b', 600000)), (2, 'c')");
    fixture.good("SET untorn_statement_memory_limit = 300000");
    assert_eq!(fixture.run("SELECT b FROM wide ORDER BY id + 1").error, Some(1038));
    fixture.good("SELECT b FROM wide WHERE id = 2");
    fixture.good("SET untorn_statement_memory_limit = 0");
    // Plans of earlier statements are kept.
    let before = fixture.session.state.memory.kept();
    fixture.good("SET @a = REPEAT('a', 200000)");
    assert!(fixture.session.state.memory.kept() > before + 200_000);
    fixture.good("SET @a = 1");
    fixture.good("PREPARE p FROM 'SELECT 1'");
    fixture.good("DEALLOCATE PREPARE p");
    assert!(fixture.session.state.memory.kept() < before + 200);
}

#[test]
fn rows_leave_by_bytes() {
    let mut fixture = Fixture::new("bytes");
    fixture.good("CREATE TABLE long_texts (id INT PRIMARY KEY, b TEXT)");
    for id in 0..40 {
        fixture.good(&format!("INSERT INTO long_texts VALUES ({id}, REPEAT('b', 20000))"));
    }
    // Off-page rows, groups, sorted rows, rows of views and joins.
    for (sql, least) in [
        ("SELECT * FROM long_texts", 40),
        ("SELECT id, MAX(b) FROM long_texts GROUP BY id", 40),
        ("SELECT b FROM long_texts ORDER BY id DESC", 40),
        ("SELECT a.b FROM long_texts a JOIN long_texts c ON a.id = c.id", 40),
        ("SELECT b FROM long_texts UNION ALL SELECT b FROM long_texts", 80),
        ("SELECT d.b FROM (SELECT b FROM long_texts) d", 40),
    ] {
        let sink = fixture.good(sql);
        assert!(sink.most_gathered <= FULL + 20_010, "{sql}: {} bytes waited", sink.most_gathered);
        assert!(sink.flushes + 1 >= least, "{sql}: {} flushes", sink.flushes);
    }
}

#[test]
fn a_join_that_wants_one_row_reads_one_path() {
    let mut fixture = Fixture::new("depth");
    fixture.fill(15);
    fixture.measure_in_units(UNITS);
    let (sink, polls) = fixture.drive("SELECT a.id, c.id FROM t a, t b, t c LIMIT 1", None);
    assert_eq!(sink.rows, ["0|0|"]);
    assert!(polls < 20, "{polls} polls for one row");
    let (sink, polls) = fixture.drive("SELECT EXISTS (SELECT 1 FROM t a, t b)", None);
    assert_eq!(sink.rows, ["1|"]);
    assert!(polls < 20, "{polls} polls to see that there is a row");
    assert_eq!(fixture.run("SELECT (SELECT id FROM t)").error, Some(1242));
    fixture.good("SET max_join_size = 100");
    assert_eq!(fixture.run("SELECT COUNT(*) FROM t a, t b").error, Some(1104));
}

/// MySQL 9 (statements that cause an implicit commit): all of the account management statements, also those
/// that fail.
#[test]
fn statements_of_accounts_commit_what_is_open() {
    let mut fixture = Fixture::new("accounts");
    fixture.good("CREATE TABLE t (id INT PRIMARY KEY)");
    let statements = [
        ("CREATE USER ann, bob", None),
        ("ALTER USER ann IDENTIFIED BY 'x'", None),
        ("SET PASSWORD FOR ann = 'y'", None),
        ("GRANT SELECT ON *.* TO ann, bob", None),
        ("REVOKE SELECT ON *.* FROM ann, bob", None),
        ("GRANT SELECT ON *.* TO nobody", Some(1410)),
        ("DROP USER ann, bob", None),
    ];
    for (id, (sql, error)) in statements.into_iter().enumerate() {
        fixture.good("BEGIN");
        fixture.good(&format!("INSERT INTO t VALUES ({id})"));
        assert_eq!(fixture.run(sql).error, error, "{sql}");
        fixture.good("ROLLBACK");
        let kept = fixture.good(&format!("SELECT id FROM t WHERE id = {id}")).rows;
        assert_eq!(kept, [format!("{id}|")], "{sql}");
    }
}

#[test]
fn what_is_granted_to_several_is_granted_to_all_or_none() {
    let mut fixture = Fixture::new("several");
    fixture.good("CREATE TABLE t (id INT PRIMARY KEY)");
    fixture.good("CREATE USER ann, bob");
    let grants = |fixture: &mut Fixture, user: &str| fixture.good(&format!("SHOW GRANTS FOR {user}")).rows;
    let none = grants(&mut fixture, "ann");
    assert_eq!(fixture.run("GRANT SELECT ON *.* TO ann, nobody").error, Some(1410));
    assert_eq!(grants(&mut fixture, "ann"), none);
    // The account that the password would have made is not there either.
    assert_eq!(fixture.run("GRANT SELECT ON *.* TO new IDENTIFIED BY 'x', nobody").error, Some(1410));
    assert_eq!(fixture.run("DROP USER new").error, Some(1396));
    fixture.good("GRANT SELECT ON *.* TO ann, bob, new IDENTIFIED BY 'x'");
    let some = grants(&mut fixture, "ann");
    assert_ne!(some, none);
    assert_eq!(grants(&mut fixture, "new").len(), 1);
    assert_eq!(fixture.run("REVOKE SELECT ON *.* FROM ann, nobody").error, Some(1141));
    assert_eq!(fixture.run("REVOKE ALL PRIVILEGES, GRANT OPTION FROM ann, nobody").error, Some(1269));
    assert_eq!(grants(&mut fixture, "ann"), some);
    fixture.good("REVOKE SELECT ON *.* FROM ann, bob");
    assert_eq!(grants(&mut fixture, "ann"), none);
    assert_eq!(fixture.run("DROP USER ann, nobody").error, Some(1396));
    fixture.good("DROP USER ann, bob, new");
}

/// What acts on a global variable may refuse a value that was checked.
#[test]
fn a_value_that_is_refused_late_leaves_the_session_as_it_was() {
    let mut fixture = Fixture::new("late");
    fixture.good("SET @v = 1, sql_safe_updates = 0");
    let bytes = 1u64 << 62;
    let sql = format!("SET @v = 2, sql_safe_updates = 1, GLOBAL innodb_buffer_pool_size = {bytes}");
    assert_eq!(fixture.run(&sql).error, Some(1231));
    assert_eq!(fixture.good("SELECT @v, @@sql_safe_updates").rows, ["1|0|"]);
}
