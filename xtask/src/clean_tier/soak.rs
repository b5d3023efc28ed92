//! A soak of the clean tier: load, DDL, truncates and imports while the tier is switched, moved, resized, and its file is cut,
//! deleted or filled with garbage, and the buffer pool grows and shrinks; `kill -9` in between; all contents checked.
//!
//! Checkers know what their rows hold: each has rows of its own, counts every change that was acknowledged, and reads them
//! back all the time; after a kill the one change that was under way may or may not be there. The pool is so
//! small that nearly every read leaves it. sysbench runs beside them.

use super::load::{Load, status};
use crate::scratch::Scratch;
use crate::server_process::{Program, ServerProcess};
use anyhow::{Context, Result, ensure};
use disk::Random;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const CHECKERS: u32 = 3;
/// Rows of each checker, of about 1 KiB.
const ROWS: u32 = 12_000;
const PAD: usize = 1000;

/// How long and how often.
#[derive(clap::Args, Clone, Debug)]
pub struct SoakSettings {
    /// Seconds between kills.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,
    /// `kill -9` and restart so many times.
    #[arg(long, default_value_t = 10)]
    pub kills: u32,
    /// Where the random numbers start; printed by every run.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// One checker's rows: the value acknowledged last, and one that may be there instead.
struct Checker {
    number: u32,
    values: Vec<u64>,
    unsure: Option<(u32, u64)>,
    checked: u64,
}

fn pad(id: u32, value: u64) -> String {
    format!("{id}-{value}-").repeat(PAD / 4 + 1)[..PAD].to_owned()
}

impl Checker {
    fn id(&self, row: u32) -> u32 {
        self.number * ROWS + row
    }

    fn create(&self, connection: &mut Conn) -> Result<()> {
        for start in (0..ROWS).step_by(200) {
            let rows =
                (start..start + 200).map(|row| format!("({},0,'{}')", self.id(row), pad(self.id(row), 0)));
            connection
                .query_drop(format!("INSERT INTO checked VALUES {}", rows.collect::<Vec<_>>().join(",")))?;
        }
        Ok(())
    }

    /// Until the server is gone or time is up. An error of the connection is the kill; a wrong row is not.
    fn work(&mut self, connection: &mut Conn, random: &mut Random, running: &AtomicBool) -> Result<()> {
        while running.load(Ordering::Relaxed) {
            let row = random.below(ROWS as usize) as u32;
            let id = self.id(row);
            if random.one_in(3) {
                let value = self.values[row as usize] + 1;
                self.unsure = Some((row, value));
                let sql =
                    format!("UPDATE checked SET v = {value}, pad = '{}' WHERE id = {id}", pad(id, value));
                if connection.query_drop(sql).is_err() {
                    return Ok(());
                }
                self.values[row as usize] = value;
                self.unsure = None;
            } else {
                let sql = format!("SELECT v, pad FROM checked WHERE id = {id}");
                let Ok(found) = connection.query_first::<(u64, String), _>(sql) else { return Ok(()) };
                let (value, text) = found.with_context(|| format!("row {id} is gone"))?;
                let expected = self.values[row as usize];
                ensure!(
                    value == expected && text == pad(id, value),
                    "row {id} is {value}, expected {expected}"
                );
                self.checked += 1;
            }
        }
        Ok(())
    }

    /// Every row, after a restart.
    fn verify(&mut self, connection: &mut Conn) -> Result<()> {
        let (from, to) = (self.id(0), self.id(ROWS));
        let sql = format!("SELECT id, v, pad FROM checked WHERE id >= {from} AND id < {to} ORDER BY id");
        let rows: Vec<(u32, u64, String)> = connection.query(sql)?;
        ensure!(rows.len() == ROWS as usize, "{} rows of {ROWS}", rows.len());
        for (row, (id, value, text)) in rows.into_iter().enumerate() {
            let expected = self.values[row];
            let unsure = self.unsure == Some((row as u32, value));
            ensure!(
                value == expected || unsure,
                "after the restart row {id} is {value}, expected {expected}"
            );
            ensure!(text == pad(id, value), "after the restart row {id} is half of another version");
            self.values[row] = value;
        }
        self.unsure = None;
        self.checked += u64::from(ROWS);
        Ok(())
    }
}

fn damage(path: &Path, random: &mut Random) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let len = file.metadata()?.len();
    for _ in 0..200 {
        let garbage: Vec<u8> = (0..4096).map(|_| random.next_u64() as u8).collect();
        file.write_all_at(&garbage, random.below(len as usize + 1) as u64)?;
    }
    Ok(())
}

/// A table exported, copied, discarded and imported again under its name: its pages are those of the copy, not those
/// that pool and tier had of the table in between.
fn carry_table(connection: &mut Conn, data: &Path, round: u64) -> Result<()> {
    let mut sql = |text: &str| connection.query_drop(text).with_context(|| text.to_owned());
    sql("DROP TABLE IF EXISTS carried")?;
    sql("CREATE TABLE carried (id INT PRIMARY KEY, v BIGINT, pad VARCHAR(200), KEY (v))")?;
    for from in 0..4 {
        let rows = (0..250).map(|row| format!("({0},{round},REPEAT('{round} ', 5))", from * 250 + row));
        sql(&format!("INSERT INTO carried VALUES {}", rows.collect::<Vec<_>>().join(",")))?;
    }
    sql("FLUSH TABLES carried FOR EXPORT")?;
    let file = |suffix: &str| data.join("soak/carried").with_extension(suffix);
    for suffix in ["ibd", "cfg"] {
        std::fs::copy(file(suffix), data.join(format!("carried.{suffix}.copy")))?;
    }
    sql("UNLOCK TABLES")?;
    sql("UPDATE carried SET v = 0, pad = 'another'")?;
    sql("ALTER TABLE carried DISCARD TABLESPACE")?;
    for suffix in ["ibd", "cfg"] {
        std::fs::rename(data.join(format!("carried.{suffix}.copy")), file(suffix))?;
    }
    sql("ALTER TABLE carried IMPORT TABLESPACE")?;
    let pad = format!("{round} ").repeat(5);
    let counted = format!("SELECT COUNT(*) FROM carried WHERE v = {round} AND pad = '{pad}'");
    let found: Option<u64> = connection.query_first(counted)?;
    ensure!(found == Some(1000), "{found:?} of 1000 rows are those of the imported file");
    Ok(())
}

/// Things done to the tier and beside it.
fn meddle(
    connection: &mut Conn,
    data: &Path,
    files: &[PathBuf; 2],
    random: &mut Random,
    round: u64,
) -> Result<&'static str> {
    let size = (random.below(6) + 1) as u64 * 16 * MIB;
    let file = &files[random.below(2)];
    let mut sql = |text: String| connection.query_drop(text).map_err(anyhow::Error::from);
    Ok(match random.below(12) {
        0 => sql("SET GLOBAL untorn_bpe = OFF".to_owned()).map(|()| "off")?,
        1 | 2 => sql("SET GLOBAL untorn_bpe = ON".to_owned()).map(|()| "on")?,
        3 => sql(format!("SET GLOBAL untorn_bpe_size = {size}")).map(|()| "resize")?,
        4 => sql(format!("SET GLOBAL untorn_bpe_file = '{}'", file.display())).map(|()| "move")?,
        // The file may just not be there.
        5 => damage(file, random).map_or("no file to damage", |()| "garbage"),
        6 => std::fs::remove_file(file).map_or("no file to delete", |()| "delete"),
        7 => File::options()
            .write(true)
            .open(file)
            .and_then(|file| file.set_len(MIB))
            .map_or("no file to cut", |()| "cut"),
        8 | 9 => {
            let bytes = 8 * MIB + random.below(56 * MIB as usize + 1) as u64;
            sql(format!("SET GLOBAL innodb_buffer_pool_size = {bytes}")).map(|()| "pool")?
        }
        10 => carry_table(connection, data, round % 1_000_000).map(|()| "import")?,
        _ => {
            sql(format!(
                "CREATE TABLE IF NOT EXISTS t{} (id INT PRIMARY KEY, v VARCHAR(200), KEY (v))",
                round % 4
            ))?;
            sql(format!("TRUNCATE TABLE t{}", round % 4))?;
            for from in 0..4 {
                let rows = (0..250).map(|row| format!("({}, REPEAT('{}', 20))", from * 250 + row, row % 10));
                sql(format!("INSERT INTO t{} VALUES {}", round % 4, rows.collect::<Vec<_>>().join(",")))?;
            }
            sql(format!("DROP TABLE IF EXISTS t{}", (round + 2) % 4)).map(|()| "tables")?
        }
    })
}

/// One life of the server: load, checks, meddling, for some seconds.
fn life(
    server: &ServerProcess,
    checkers: &mut [Checker],
    files: &[PathBuf; 2],
    random: &mut Random,
    time: Duration,
) -> Result<String> {
    let running = AtomicBool::new(true);
    let mut meddler = server.connect(Some("soak"))?;
    let mut done = std::collections::BTreeMap::new();
    std::thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for checker in checkers.iter_mut() {
            let mut connection = server.connect(Some("soak"))?;
            let (mut random, running) = (Random::new(random.next_u64()), &running);
            workers.push(scope.spawn(move || checker.work(&mut connection, &mut random, running)));
        }
        let begin = Instant::now();
        let mut outcome = Ok(());
        while begin.elapsed() < time && outcome.is_ok() && !workers.iter().any(|worker| worker.is_finished())
        {
            let round = random.next_u64();
            outcome = meddle(&mut meddler, &server.data, files, random, round)
                .map(|what| *done.entry(what).or_insert(0) += 1);
            // A pace, not a wait for anything: this is a soak.
            std::thread::sleep(Duration::from_millis(random.below(700) as u64));
        }
        running.store(false, Ordering::Relaxed);
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome
    })?;
    Ok(done
        .into_iter()
        .map(|(what, count): (&str, u32)| format!("{what} {count}"))
        .collect::<Vec<_>>()
        .join(", "))
}

fn load_in_background(server: &ServerProcess, load: &Load) -> Result<Child> {
    let mut command = load.run_command(server, "oltp_read_write", 3600);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// The soak.
pub fn soak(program: &Program, settings: &SoakSettings) -> Result<()> {
    let seed = settings.seed.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let place = Scratch::new("clean-tier-soak")?;
    let files = [place.path().join("tier-a"), place.path().join("tier-b")];
    let options = [
        "--innodb-buffer-pool-size=8M".to_owned(),
        "--innodb-redo-log-capacity=32M".to_owned(),
        format!("--untorn-bpe-file={}", files[0].display()),
        format!("--untorn-bpe-size={}", 64 * MIB),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut server = ServerProcess::start(program, place.path(), &options)?;
    let load = Load::of_bytes(32 * MIB, 4);
    load.prepare(&server)?;
    server.feed(
        "",
        "CREATE DATABASE soak; CREATE TABLE soak.checked (id INT PRIMARY KEY, v BIGINT, pad VARCHAR(1000), KEY (v));",
    )?;
    let mut checkers: Vec<Checker> = (0..CHECKERS)
        .map(|number| Checker { number, values: vec![0; ROWS as usize], unsure: None, checked: 0 })
        .collect();
    for checker in &checkers {
        checker.create(&mut server.connect(Some("soak"))?)?;
    }
    let (mut served, mut refused, mut kept) = (0.0, 0.0, 0.0);
    for kill in 0..=settings.kills {
        let mut sysbench = load_in_background(&server, &load)?;
        let done = life(&server, &mut checkers, &files, &mut random, Duration::from_secs(settings.seconds));
        let done = done.with_context(|| {
            format!("seed {seed}, life {kill}; the log ends with:\n{}", server.log_tail())
        })?;
        served += status(&server, "Untorn_bpe_hits")?;
        for kind in ["misdirected", "stale", "corrupt"] {
            refused += status(&server, &format!("Untorn_bpe_mismatches_{kind}"))?;
        }
        server.kill();
        // It fails when it has ended by itself.
        let _ = sysbench.kill();
        let _ = sysbench.wait();
        server = ServerProcess::start(program, place.path(), &options)?;
        kept += status(&server, "Untorn_bpe_pages_kept")?;
        for checker in &mut checkers {
            let verified = checker.verify(&mut server.connect(Some("soak"))?);
            verified.with_context(|| format!("seed {seed}, after kill {kill}"))?;
        }
        println!("life {kill}: {done}");
    }
    let tables = server.ask("sbtest", "CHECK TABLE sbtest1, sbtest2, sbtest3, sbtest4, soak.checked")?;
    ensure!(tables.lines().all(|line| line.ends_with("OK")), "CHECK TABLE: {tables}");
    server.stop()?;
    let checked: u64 = checkers.iter().map(|checker| checker.checked).sum();
    println!(
        "{} kills, {checked} rows read and right, {served:.0} pages served by the tier, {refused:.0} refused, {kept:.0} kept over kills",
        settings.kills + 1
    );
    ensure!(served > 0.0, "the tier served nothing");
    Ok(())
}
