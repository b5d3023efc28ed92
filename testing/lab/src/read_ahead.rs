//! Whether read-ahead pays, on a volume that answers a read in a millisecond at the earliest, beside stock
//! servers.
//!
//! Linear: how long a cold scan takes, of a whole table, of half of its primary key, of half of a secondary
//! index, with `innodb_read_ahead_threshold` as it is and at 0, which switches it off. Random: how many
//! queries of single rows a server answers that has just been started, all pages as likely as any other, with
//! `innodb_random_read_ahead` on and off. Each measurement begins with a start of the server, and nothing is
//! loaded into the buffer pool.

use crate::block_device::Counters;
use crate::capped_disk::{Cap, CapKind, CappedDisk, Profile};
use crate::experiment::judgement::{percent, ratio};
use crate::experiment::report::{Files, points_as_csv};
use crate::experiment::servers::{Contestant, Peers, Server, stock};
use crate::experiment::table::Table;
use crate::experiment::{Sizes, announce, in_place};
use crate::server_process::{Program, ServerProcess};
use crate::statistics::median;
use crate::sysbench::{self, Sysbench, figure};
use crate::time_chart::{Chart, Line};
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    peers: Peers,
    /// Requests per second of the disk.
    #[arg(long, default_value_t = 3000)]
    operations: u64,
    /// MB per second of the disk.
    #[arg(long, default_value_t = 160)]
    megabytes: u64,
    /// Microseconds that a read takes at least.
    #[arg(long, default_value_t = 1000)]
    latency_us: u64,
}

/// The device is looked at this often during a scan.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The load on single rows.
const SCRIPT: &str = "oltp_point_select";

/// A scan, and its statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
enum Scan {
    Table,
    PrimaryRange,
    SecondaryRange,
}

impl Scan {
    const ALL: [Scan; 3] = [Scan::Table, Scan::PrimaryRange, Scan::SecondaryRange];

    fn name(self) -> &'static str {
        match self {
            Scan::Table => "whole table",
            Scan::PrimaryRange => "half of the primary key",
            Scan::SecondaryRange => "half of an index",
        }
    }

    /// Each of another tree: none finds the pages of the one before.
    fn statement(self, rows: u64) -> String {
        let (from, to) = (rows / 4, rows / 4 * 3);
        match self {
            Scan::Table => "SELECT SUM(LENGTH(pad)) FROM sbtest1".to_owned(),
            Scan::PrimaryRange => {
                format!("SELECT SUM(LENGTH(pad)) FROM sbtest2 WHERE id BETWEEN {from} AND {to}")
            }
            Scan::SecondaryRange => {
                format!("SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1) WHERE k BETWEEN {from} AND {to}")
            }
        }
    }
}

/// One measurement: the seconds of a scan, or the queries of a second.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    server: String,
    load: String,
    /// With read-ahead.
    ahead: bool,
    round: u32,
    figure: f64,
    /// Requests that the device got meanwhile, and MiB read.
    device_reads: u64,
    device_mib: f64,
    /// Second, and the MiB read from the device or the queries in it.
    #[serde(skip)]
    points: Vec<(f64, f64)>,
}

/// Runs all measurements and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("read-ahead", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let setup = Setup { sizes: setup.sizes.settled(), ..setup.clone() };
    let sizes = Sizes { tables: setup.sizes.tables.max(2), ..setup.sizes.clone() };
    let servers = setup.peers.beside(program)?;
    announce("read-ahead", servers.len() * 4 * sizes.rounds as usize, &sizes);
    let bytes = servers.len() as u64 * ((sizes.data_mib() * 2 + 1536) << 20);
    let mut disk = CappedDisk::create(place, bytes, CapKind::Shared, true)?;
    let latency = Duration::from_micros(setup.latency_us);
    let cap = Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 };
    let volume = Profile::capped(cap).answering_in(latency, latency);
    for server in &servers {
        println!("{}: filling the tables", server.name);
        let running = contestant(server, &sizes, &[]).start(place, disk.path())?;
        sysbench::make_database(&running)?;
        load(&running, &sizes, sizes.tables.min(8)).run(SCRIPT, "prepare", &[])?;
        running.stop()?;
    }
    let mut all = Vec::new();
    for round in 1..=sizes.rounds {
        for server in &servers {
            for ahead in [true, false] {
                let linear = if ahead { vec![] } else { vec!["--innodb-read-ahead-threshold=0"] };
                let running = contestant(server, &sizes, &linear).start(place, disk.path())?;
                for scan in Scan::ALL {
                    disk.behave_as(&volume)?;
                    let seen = scanned(&running, disk.device()?, scan, &sizes);
                    disk.limit(Cap::NONE)?;
                    all.push(Measured { server: server.name.clone(), ahead, round, ..seen? });
                }
                running.stop()?;
                let random = format!("--innodb-random-read-ahead={}", if ahead { "ON" } else { "OFF" });
                let running = contestant(server, &sizes, &[&*random]).start(place, disk.path())?;
                disk.behave_as(&volume)?;
                let seen = asked(&running, disk.device()?, &sizes);
                disk.limit(Cap::NONE)?;
                all.push(Measured { server: server.name.clone(), ahead, round, ..seen? });
                running.stop()?;
            }
        }
    }
    report(&setup, &sizes, &all)
}

fn contestant(server: &Server, sizes: &Sizes, more: &[&str]) -> Contestant {
    let pool = (2 * sizes.data_mib()).max(128);
    let mut settings = vec![format!("--innodb-buffer-pool-size={pool}M"), server.redo(512)];
    settings.push("--innodb-buffer-pool-load-at-startup=OFF".to_owned());
    settings.extend(if server.is_ours() { Vec::new() } else { stock(3000) });
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    server.with(settings)
}

fn load<'s>(server: &'s ServerProcess, sizes: &Sizes, threads: u32) -> Sysbench<'s> {
    let (tables, table_size) = (Some(sizes.tables), sizes.rows);
    Sysbench { server, statement_mode: "auto", threads, tables, table_size }
}

/// How long a scan takes, with what the device did in each part of it.
fn scanned(server: &ServerProcess, device: &str, scan: Scan, sizes: &Sizes) -> Result<Measured> {
    let mut connection = server.connect(Some(sysbench::DATABASE))?;
    let (before, begin, over) = (Counters::of(device)?, Instant::now(), AtomicBool::new(false));
    let (result, took, points) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(device, begin, &over));
        let result: mysql::Result<Option<Option<u64>>> = connection.query_first(scan.statement(sizes.rows));
        let took = begin.elapsed();
        over.store(true, Ordering::Release);
        (result, took, watcher.join())
    });
    result.with_context(|| scan.name())?;
    let points = points.map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
    let moved = Counters::of(device)?.since(&before);
    Ok(measured(scan.name().to_owned(), took.as_secs_f64(), &moved, points))
}

/// MiB read so far, by time.
fn watch(device: &str, begin: Instant, over: &AtomicBool) -> Result<Vec<(f64, f64)>> {
    let first = Counters::of(device)?;
    let mut points = Vec::new();
    while !over.load(Ordering::Acquire) {
        let read = Counters::of(device)?.since(&first).bytes_read;
        points.push((begin.elapsed().as_secs_f64(), mib(read)));
        thread::sleep(LOOK_EVERY);
    }
    let read = Counters::of(device)?.since(&first).bytes_read;
    points.push((begin.elapsed().as_secs_f64(), mib(read)));
    Ok(points)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Queries in each second, on single rows.
fn asked(server: &ServerProcess, device: &str, sizes: &Sizes) -> Result<Measured> {
    let before = Counters::of(device)?;
    let more = [format!("--time={}", sizes.time), "--rand-type=uniform".to_owned()];
    let output = load(server, sizes, sizes.threads).run(
        SCRIPT,
        "run",
        &[&*more[0], &*more[1], "--report-interval=1"],
    )?;
    let moved = Counters::of(device)?.since(&before);
    let reports = output.lines().filter(|line| line.starts_with("[ "));
    let rates: Vec<f64> = reports.filter_map(|line| figure(line, " qps:")).collect();
    let queries = figure(&output, "queries:").context("no queries: in the output")?;
    let points = Line::of_seconds("", &rates).points;
    Ok(measured("single rows".to_owned(), queries / f64::from(sizes.time), &moved, points))
}

fn measured(load: String, figure: f64, moved: &Counters, points: Vec<(f64, f64)>) -> Measured {
    Measured {
        server: String::new(),
        load,
        ahead: false,
        round: 0,
        figure,
        device_reads: moved.reads,
        device_mib: mib(moved.bytes_read),
        points,
    }
}

/// Loads, in the order in which they were measured.
fn loads() -> Vec<(&'static str, bool)> {
    let scans = Scan::ALL.iter().map(|scan| (scan.name(), true));
    scans.chain(std::iter::once(("single rows", false))).collect()
}

fn of<'m>(all: &'m [Measured], server: &str, load: &str, ahead: bool) -> Vec<&'m Measured> {
    let these = all.iter().filter(|one| one.server == server && one.load == load && one.ahead == ahead);
    these.collect()
}

/// How many times as fast it is with read-ahead, round by round.
fn gain(all: &[Measured], server: &str, load: &str, less_is_better: bool) -> f64 {
    let figures = |ahead| of(all, server, load, ahead).iter().map(|one| one.figure).collect::<Vec<_>>();
    let (with, without) = (figures(true), figures(false));
    if less_is_better { ratio(&without, &with) } else { ratio(&with, &without) }
}

fn names(all: &[Measured]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.server.as_str()) {
            names.push(&one.server);
        }
    }
    names
}

fn table(all: &[Measured]) -> Table {
    let mut table = Table::new(
        &["server", "load"],
        &["with", "without", "times as fast", "device reads with", "device reads without", "MiB with"],
    );
    for server in names(all) {
        for (load, is_scan) in loads() {
            let middle = |ahead, figure: fn(&Measured) -> f64| {
                median(of(all, server, load, ahead).into_iter().map(figure).collect())
            };
            let told = |ahead| {
                let figure = middle(ahead, |one| one.figure);
                if is_scan { format!("{figure:.2} s") } else { format!("{figure:.0} queries/s") }
            };
            table.row(vec![
                server.to_owned(),
                load.to_owned(),
                told(true),
                told(false),
                format!("{:.2}", gain(all, server, load, is_scan)),
                format!("{:.0}", middle(true, |one| one.device_reads as f64)),
                format!("{:.0}", middle(false, |one| one.device_reads as f64)),
                format!("{:.0}", middle(true, |one| one.device_mib)),
            ]);
        }
    }
    table
}

fn conclusion(all: &[Measured]) -> String {
    let sentences = names(all).into_iter().map(|server| {
        let told = loads().into_iter().map(|(load, is_scan)| {
            let gain = gain(all, server, load, is_scan);
            let saved = is_scan.then(|| format!(", {} less time", percent(Some(1.0 - 1.0 / gain))));
            format!("{load} {gain:.2} times as fast{}", saved.unwrap_or_default())
        });
        format!("{server} with read-ahead: {}.", told.collect::<Vec<_>>().join("; "))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// The last round of each: MiB read as a scan goes on, queries in each second.
fn charts(all: &[Measured]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (load, is_scan) in loads() {
        let mut lines: Vec<Line> = Vec::new();
        for one in all.iter().filter(|one| one.load == load) {
            let name = format!("{}, {}", one.server, if one.ahead { "read-ahead" } else { "without" });
            lines.retain(|known| known.name != name);
            lines.push(Line { name, points: one.points.clone() });
        }
        let (title, unit) = if is_scan {
            (format!("{load}: MiB read"), "MiB")
        } else {
            (format!("{load}: queries"), "queries")
        };
        charts.push(Chart { title, unit, lines });
    }
    charts
}

fn report(setup: &Setup, sizes: &Sizes, all: &[Measured]) -> Result<()> {
    let conclusion = conclusion(all);
    let text = format!(
        "{} × {} rows, nothing in memory at the beginning, disk {} requests/s and {} MB/s, a read takes {} µs at least; scans by one client, single rows by {} for {} s; medians of {} rounds.\n\n{}\n{conclusion}\n",
        sizes.tables,
        sizes.rows,
        setup.operations,
        setup.megabytes,
        setup.latency_us,
        sizes.threads,
        sizes.time,
        sizes.rounds,
        table(all)
    );
    let charts = charts(all);
    let record = json!({
        "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
        "rounds": sizes.rounds, "operations_per_second": setup.operations,
        "megabytes_per_second": setup.megabytes, "read_latency_us": setup.latency_us,
        "measured": all, "conclusion": conclusion,
    });
    let output = sizes.output.clone().unwrap_or_else(|| "target/read-ahead".into());
    Files::at(&output)?.write(&text, &charts, &points_as_csv(&charts), record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(load: &str, ahead: bool, figure: f64) -> Measured {
        let seen = measured(load.to_owned(), figure, &Counters::default(), vec![(1.0, figure)]);
        Measured { server: "Untorn".to_owned(), ahead, round: 1, ..seen }
    }

    #[test]
    fn less_time_and_more_queries_are_faster() {
        let mut all = Vec::new();
        for (load, is_scan) in loads() {
            all.push(one(load, true, if is_scan { 2.0 } else { 300.0 }));
            all.push(one(load, false, if is_scan { 4.0 } else { 100.0 }));
        }
        let told = conclusion(&all);
        assert!(told.contains("whole table 2.00 times as fast, 50.0 % less time"), "{told}");
        assert!(told.contains("single rows 3.00 times as fast."), "{told}");
        assert_eq!(charts(&all).len(), 4);
        assert!(charts(&all).iter().all(|chart| chart.lines.len() == 2));
        assert!(table(&all).to_string().contains("| Untorn | half of an index | 2.00 s | 4.00 s | 2.00 |"));
    }

    #[test]
    fn scans_are_of_trees_of_their_own() {
        let statements = Scan::ALL.map(|scan| scan.statement(1000));
        assert!(statements[1].contains("sbtest2") && statements[2].contains("k_1"), "{statements:?}");
        assert!(statements[1].contains("BETWEEN 250 AND 750"));
    }
}
