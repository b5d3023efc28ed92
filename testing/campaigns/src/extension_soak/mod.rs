//! A soak of the buffer pool extension: load, DDL, truncates and imports while the extension is switched,
//! moved, resized, and its file is cut, deleted, filled with garbage or single slots of it are exchanged, and
//! the buffer pool grows and shrinks; `kill -9` in the middle of all that; all contents checked.
//!
//! The pool is so small that nearly every read leaves it. Rows are compared all the time and after every
//! restart (`checker`, `tables`); sysbench runs beside them. A soak in which the extension served
//! nothing, or never had to refuse a page, tested nothing, so it fails.

mod checker;
mod damage;
mod tables;

use anyhow::{Context, Result, ensure};
use checker::{Checker, answered};
use damage::{Remembered, Slots};
use disk::Random;
use lab::command::Background;
use lab::extension::workload::Load;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, status_number};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tables::Tables;

const MIB: u64 = 1 << 20;
const CHECKERS: u32 = 3;
/// From this number of kills on, chance is no excuse for a counter that did not move.
const LONG: u32 = 20;
/// The first of what is done that leaves the extension and its file where they are, see [`Meddler::meddle`].
const KEEPS_THE_FILE: usize = 9;
const KINDS: usize = 24;
const PAUSE_MILLISECONDS: usize = 300;
/// Reasons for which a page from the extension is refused.
const REASONS: [&str; 3] = ["misdirected", "stale", "corrupt"];

/// The run of the test command.
pub const SHORT: Settings = Settings { seconds: 8, kills: 2, seed: None };

/// How long and how often.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    /// Seconds between kills.
    #[arg(long, default_value_t = 8)]
    pub seconds: u64,
    /// `kill -9` and restart this number of times.
    #[arg(long, default_value_t = 10)]
    pub kills: u32,
    /// Where the random numbers start; printed by every run.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What the extension did, over all lives.
#[derive(Default)]
struct Totals {
    /// Pages from the extension before kills.
    served: u64,
    refused: [u64; REASONS.len()],
    /// Restarts that found an extension to keep, the pages in it, and those served while everything was
    /// compared.
    restarts_kept: u64,
    kept: u64,
    served_kept: u64,
}

/// Who does things to the extension and beside it, and what there was done so far.
struct Meddler {
    files: [PathBuf; 2],
    random: Random,
    tables: Tables,
    remembered: Remembered,
    done: BTreeMap<&'static str, u64>,
    /// In this life the extension stays where it is and as large as it is, so that the next finds it.
    calm: bool,
}

impl Meddler {
    /// Until the server is gone.
    fn work(&mut self, connection: &mut Conn, data: &Path, killed: &AtomicBool) -> Result<()> {
        while !killed.load(Ordering::Acquire) && self.meddle(connection, data)? {
            // A pace, not a wait for anything: this is a soak.
            std::thread::sleep(Duration::from_millis(self.random.below(PAUSE_MILLISECONDS) as u64));
        }
        Ok(())
    }

    /// One thing; false when the server is gone.
    fn meddle(&mut self, connection: &mut Conn, data: &Path) -> Result<bool> {
        let Meddler { files, random, tables, remembered, done, calm } = self;
        let size = (random.below(6) + 1) as u64 * 16 * MIB;
        // Mostly the file the server starts with, which a restart can find.
        let file = &files[usize::from(!*calm && random.one_in(4))];
        let mut sql = |what, text: String| {
            answered(connection.query_drop(&text)).map(|go_on| (what, go_on)).with_context(|| text.clone())
        };
        let from = if *calm { KEEPS_THE_FILE } else { 0 };
        let (what, go_on) = match from + random.below(KINDS - from) {
            0 => sql("off", "SET GLOBAL untorn_bpe = OFF".to_owned())?,
            1..=3 => sql("on", "SET GLOBAL untorn_bpe = ON".to_owned())?,
            4 => sql("resize", format!("SET GLOBAL untorn_bpe_size = {size}"))?,
            5 => sql("move", format!("SET GLOBAL untorn_bpe_file = '{}'", file.display()))?,
            // A file may just not be there.
            6 => (damage::garbage(file, random).map_or("no file to damage", |()| "garbage"), true),
            7 => (damage::delete(file).map_or("no file to delete", |()| "delete"), true),
            8 => (damage::cut(file).map_or("no file to cut", |()| "cut"), true),
            9 | 10 => {
                let bytes = 8 * MIB + random.below(56 * MIB as usize + 1) as u64;
                sql("pool", format!("SET GLOBAL innodb_buffer_pool_size = {bytes}"))?
            }
            11 | 12 => ("import", tables.carry(connection, data, random)?),
            13..=15 => ("tables", tables.change(connection, random)?),
            _ => {
                let kind = Slots::ALL[random.below(Slots::ALL.len())];
                // Cut or deleted while it was read: nothing more to damage.
                let damaged = damage::slots(file, kind, random, remembered).unwrap_or(0);
                *done.entry(kind.name()).or_default() += damaged as u64;
                ("slots", true)
            }
        };
        *done.entry(what).or_default() += 1;
        Ok(go_on)
    }
}

/// One life of the server: load, checks, meddling, and `kill -9` in the middle of it.
fn life(
    server: &mut ServerProcess,
    checkers: &mut [Checker],
    meddler: &mut Meddler,
    time: Duration,
    totals: &mut Totals,
) -> Result<()> {
    let killed = AtomicBool::new(false);
    let data = server.data.clone();
    let mut watcher = server.connect(None)?;
    std::thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for checker in checkers.iter_mut() {
            let mut connection = server.connect(Some("soak"))?;
            let mut random = Random::new(meddler.random.next_u64());
            workers.push(scope.spawn(move || checker.work(&mut connection, &mut random)));
        }
        let mut connection = server.connect(Some("soak"))?;
        let (data, killed) = (&data, &killed);
        workers.push(scope.spawn(move || meddler.work(&mut connection, data, killed)));
        let begin = Instant::now();
        while begin.elapsed() < time && !workers.iter().any(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let early = workers.iter().any(|worker| worker.is_finished());
        let counted = count(&mut watcher, totals);
        killed.store(true, Ordering::Release);
        server.kill();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        ensure!(!early, "the server was gone before it was killed");
        counted
    })
}

fn count(connection: &mut Conn, totals: &mut Totals) -> Result<()> {
    totals.served += status_number(connection, "Untorn_bpe_hits")?;
    for (total, reason) in totals.refused.iter_mut().zip(REASONS) {
        *total += status_number(connection, &format!("Untorn_bpe_mismatches_{reason}"))?;
    }
    Ok(())
}

/// Everything there is, after a restart.
fn verify(
    server: &ServerProcess,
    checkers: &mut [Checker],
    tables: &mut Tables,
    totals: &mut Totals,
) -> Result<()> {
    let mut connection = server.connect(Some("soak"))?;
    let kept = status_number(&mut connection, "Untorn_bpe_pages_kept")?;
    for checker in checkers {
        checker.verify(&mut connection)?;
    }
    tables.verify(&mut connection)?;
    if kept > 0 {
        totals.restarts_kept += 1;
        totals.kept += kept;
        totals.served_kept += status_number(&mut connection, "Untorn_bpe_hits")?;
    }
    Ok(())
}

/// The soak.
pub fn run(program: &Program, settings: &Settings) -> Result<()> {
    let seed = settings.seed.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    println!("seed {seed}");
    Scratch::with("extension-soak", |place| soak_in(program, settings, seed, place))
        .with_context(|| format!("seed {seed}"))
}

fn soak_in(program: &Program, settings: &Settings, seed: u64, place: &Path) -> Result<()> {
    let files = [place.join("extension-a"), place.join("extension-b")];
    let options = [
        "--innodb-buffer-pool-size=8M".to_owned(),
        "--innodb-redo-log-capacity=32M".to_owned(),
        format!("--untorn-bpe-file={}", files[0].display()),
        format!("--untorn-bpe-size={}", 64 * MIB),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut server = ServerProcess::start(program, place, &options)?;
    let load = Load::of_bytes(32 * MIB, 4);
    load.prepare(&server)?;
    server.feed(
        "",
        "CREATE DATABASE soak; CREATE TABLE soak.checked (id INT PRIMARY KEY, v BIGINT, pad VARCHAR(1000), KEY (v));",
    )?;
    let mut checkers: Vec<Checker> = (0..CHECKERS).map(Checker::new).collect();
    for checker in &checkers {
        checker.create(&mut server.connect(Some("soak"))?)?;
    }
    let mut meddler = Meddler {
        files,
        random: Random::new(seed),
        tables: Tables::new(),
        remembered: Remembered::default(),
        done: BTreeMap::new(),
        calm: false,
    };
    let mut totals = Totals::default();
    let begin = Instant::now();
    for kill in 1..=settings.kills {
        meddler.calm = meddler.random.one_in(2);
        let mut command = load.run_command(&server, "oltp_read_write", 3600);
        let sysbench = Background(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let time = Duration::from_secs(settings.seconds);
        let lived = life(&mut server, &mut checkers, &mut meddler, time, &mut totals);
        drop(sysbench);
        lived.with_context(|| format!("life {kill}"))?;
        server = ServerProcess::start(program, place, &options)?;
        let verified = verify(&server, &mut checkers, &mut meddler.tables, &mut totals);
        verified.with_context(|| format!("after kill {kill}"))?;
        println!(
            "kill {kill} after {:.0} s: served {}, refused {}, kept {} in {} restarts",
            begin.elapsed().as_secs_f64(),
            totals.served,
            totals.refused.iter().sum::<u64>(),
            totals.kept,
            totals.restarts_kept
        );
    }
    let tables = server.ask("sbtest", "CHECK TABLE sbtest1, sbtest2, sbtest3, sbtest4, soak.checked")?;
    ensure!(tables.lines().all(|line| line.ends_with("OK")), "CHECK TABLE: {tables}");
    server.stop()?;
    let checked: u64 = checkers.iter().map(|checker| checker.checked).sum();
    report(settings.kills, checked, &meddler, &totals)
}

/// Prints all counts; fails when they say that nothing was tested.
fn report(kills: u32, checked: u64, meddler: &Meddler, totals: &Totals) -> Result<()> {
    let done: Vec<String> = meddler.done.iter().map(|(what, count)| format!("{what} {count}")).collect();
    println!("done: {}", done.join(", "));
    let tables = &meddler.tables.done;
    println!(
        "{kills} kills; {} restarts found a kept extension, {} pages kept",
        totals.restarts_kept, totals.kept
    );
    println!(
        "{} rows read and right, {} imports, {} truncates",
        checked + tables.rows,
        tables.imports,
        tables.truncates
    );
    println!(
        "{} pages served before kills, {} served after restarts that kept the extension",
        totals.served, totals.served_kept
    );
    let refused: Vec<String> =
        REASONS.iter().zip(totals.refused).map(|(reason, count)| format!("{reason} {count}")).collect();
    println!("pages refused: {}", refused.join(", "));
    ensure!(totals.served > 0, "the extension served nothing");
    if kills >= LONG {
        let [misdirected, stale, corrupt] = totals.refused;
        ensure!(misdirected + stale > 0, "no misdirected or stale page was refused");
        ensure!(corrupt > 0, "no corrupt page was refused");
        ensure!(totals.served_kept > 0, "nothing was served from a kept extension");
    }
    Ok(())
}
