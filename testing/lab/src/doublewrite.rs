//! What writing pages twice costs, on a disk like a cloud volume: ours with doublewrite, with the file
//! system's atomic writes, and without protection, beside stock servers with and without their doublewrite,
//! in turn on the same disk.
//!
//! The disk is an XFS image on a loop device, capped for the server process alone. All servers get the same
//! pool, a sixteenth of the data. The modes of a server share its tables, and these wear: CREATE INDEX leaves
//! full pages, which split under the load until a working set that fitted the pool does so no more. What runs
//! first runs on better tables. So every other round goes through all of them backwards; that is also what
//! makes a drift of the machine hit all alike. Figures come from sysbench, from `/proc/<pid>/stat` and from
//! the block device's own counters.

use crate::block_device::Counters;
use crate::capped_disk::{Cap, Throttle};
use crate::experiment::in_place;
use crate::experiment::judgement::{at_least, ratio};
use crate::experiment::report::Report;
use crate::experiment::room::{Of, Run, figures};
use crate::experiment::seconds::{self, Phase};
use crate::experiment::servers::{Contestant, Peers, stock};
use crate::experiment::table::Table;
use crate::file_system::{FileSystem, FileSystemKind};
use crate::server_process::{Program, ServerProcess, processor_time};
use crate::statistics::median;
use crate::sysbench::{self, Sysbench};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    /// Buffer pool in MiB; the data are sixteen times as large.
    #[arg(long, default_value_t = 64)]
    pool: u64,
    #[arg(long, default_value_t = 64)]
    threads: u32,
    /// Seconds of each measured run.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    time: u32,
    /// Seconds of each run before it, not measured.
    #[arg(long, default_value_t = 30)]
    warm_up: u32,
    /// Every other round goes through the modes backwards: an even number of them treats all alike.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Read and write operations per second of the disk, each.
    #[arg(long, default_value_t = 4000)]
    operations: u64,
    /// MB read and written per second, each.
    #[arg(long, default_value_t = 50)]
    megabytes: u64,
    #[command(flatten)]
    peers: Peers,
    /// Where chart (`.svg`), table (`.md`), every second (`.csv`) and record (`.json`) go, without the
    /// ending; `target/doublewrite` by default.
    #[arg(long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Where the disk image is made.
    #[arg(long)]
    place: Option<PathBuf>,
}

const TABLES: u32 = 4;
/// Bytes of a sysbench row with its share of both indexes, as files grow by it.
const ROW_BYTES: u64 = 240;

/// What AUTO must be, as a multiple of our ON.
const GOAL: f64 = 1.48;
/// And as a multiple of MySQL's ON.
const GOAL_TO_MYSQL: f64 = 1.9;
const DISTRIBUTION: &str = "special";

/// A server in one of its modes.
struct Side {
    server: String,
    mode: &'static str,
    contestant: Contestant,
}

/// Runs all contestants and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("doublewrite", setup.place.as_deref(), |place| run_in(program, setup, place))
}

fn sides(program: &Program, setup: &Setup) -> Result<Vec<Side>> {
    let mut all = Vec::new();
    let pool = format!("--innodb-buffer-pool-size={}M", setup.pool);
    for server in setup.peers.beside(program)? {
        let modes: &[&str] = if server.is_ours() { &["ON", "AUTO", "OFF"] } else { &["ON", "OFF"] };
        for mode in modes {
            let mut settings = vec![pool.clone(), server.redo(1024)];
            settings.push(format!("--innodb-doublewrite={mode}"));
            settings.extend(if server.is_ours() { Vec::new() } else { stock(4000) });
            all.push(Side { server: server.name.clone(), mode, contestant: server.with(settings) });
        }
    }
    Ok(all)
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let sides = sides(program, setup)?;
    let servers = setup.peers.beside(program)?.len() as u64;
    // Room for the redo logs and growth besides the data.
    let mut disk =
        FileSystem::create(place, "disk", FileSystemKind::Xfs, servers * (setup.pool * 24 + 3072))?;
    for (at, side) in sides.iter().enumerate() {
        // The variants of a server share its data.
        if sides[..at].iter().all(|before| before.server != side.server) {
            prepare(&side.contestant, setup, place, &disk)?;
        }
    }
    let cap = Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 };
    let throttle = Throttle::new(disk.device()?)?;
    throttle.limit(cap)?;
    let mut runs = Vec::new();
    for round in 1..=setup.rounds {
        for side in turn(&sides, round) {
            let named = || format!("{}, doublewrite {}", side.server, side.mode);
            let run = measure(side, round, setup, place, &disk, &throttle).with_context(named)?;
            println!("round {round}, {}: {:.0} transactions/s", named(), run.transactions_per_second);
            runs.push(run);
        }
    }
    drop(throttle);
    disk.unmount()?;
    report(setup, &sides, &runs).publish(setup.output.as_deref(), &runs)
}

/// In which order a round goes through the sides: forwards, then backwards.
fn turn(sides: &[Side], round: u32) -> Vec<&Side> {
    if round % 2 == 1 { sides.iter().collect() } else { sides.iter().rev().collect() }
}

fn load<'s>(server: &'s ServerProcess, setup: &Setup, threads: u32) -> Sysbench<'s> {
    let rows = setup.pool * 16 * (1 << 20) / ROW_BYTES / u64::from(TABLES);
    Sysbench { server, statement_mode: "auto", threads, tables: Some(TABLES), table_size: rows }
}

/// Fills the tables, without a cap.
fn prepare(contestant: &Contestant, setup: &Setup, place: &Path, disk: &FileSystem) -> Result<()> {
    let server = contestant.start(place, disk.path())?;
    sysbench::make_database(&server)?;
    load(&server, setup, TABLES).run("oltp_write_only", "prepare", &[])?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(server.data.join(sysbench::DATABASE))? {
        bytes += entry?.metadata()?.len();
    }
    println!("{}: {} MiB prepared", contestant.directory, bytes >> 20);
    ensure!(bytes >= (setup.pool * 15) << 20, "{bytes} bytes are less than 15 times the pool");
    server.stop().map(drop)
}

fn measure(
    side: &Side,
    round: u32,
    setup: &Setup,
    place: &Path,
    disk: &FileSystem,
    throttle: &Throttle,
) -> Result<Run> {
    let server = side.contestant.start(place, disk.path())?;
    throttle.put_in(server.id())?;
    let (script, threads) = ("oltp_write_only", setup.threads);
    let load = load(&server, setup, threads);
    if setup.warm_up > 0 {
        let more = [format!("--time={}", setup.warm_up), format!("--rand-type={DISTRIBUTION}")];
        load.run(script, "run", &[&*more[0], &*more[1]])?;
    }
    let before = (Counters::of(disk.device()?)?, processor_time(server.id())?);
    let phase = Phase { script, threads, distribution: DISTRIBUTION, time: setup.time };
    let seconds = seconds::seconds(&server, disk.device()?, &load, &phase)?;
    let processor = processor_time(server.id())?.saturating_sub(before.1);
    let moved = Counters::of(disk.device()?)?.since(&before.0);
    server.stop()?;
    let setting = setting(side.mode);
    let of = Of { group: script, server: &side.server, setting: &setting, round };
    Ok(Run::new(&of, seconds, &moved, processor))
}

fn setting(mode: &str) -> String {
    format!("doublewrite {mode}")
}

/// The runs of a server in a mode.
fn of<'r>(runs: &'r [Run], server: &str, mode: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.server == server && run.setting == setting(mode)).collect()
}

fn report(setup: &Setup, sides: &[Side], runs: &[Run]) -> Report {
    let mut table = Table::new(
        &["server", "mode"],
        &[
            "transactions/s",
            "to the first",
            "CoV",
            "p99 ms",
            "CPU µs each",
            "KiB written each",
            "flushes each",
        ],
    );
    let median = |runs: &[&Run], figure: fn(&Run) -> f64| median(figures(runs, figure));
    let rate = |run: &Run| run.transactions_per_second;
    let first = sides.first().map_or(f64::NAN, |side| median(&of(runs, &side.server, side.mode), rate));
    for side in sides {
        let these = of(runs, &side.server, side.mode);
        table.row(vec![
            side.server.clone(),
            setting(side.mode),
            format!("{:.0}", median(&these, rate)),
            format!("{:.2}", median(&these, rate) / first),
            format!("{:.3}", median(&these, |run| run.coefficient_of_variation)),
            format!("{:.0}", median(&these, |run| run.p99_ms)),
            format!("{:.0}", median(&these, |run| run.processor_us)),
            format!("{:.1}", median(&these, |run| run.device_kib_written)),
            format!("{:.2}", median(&these, |run| run.device_flushes)),
        ]);
    }
    Report {
        name: "doublewrite",
        described: format!(
            "oltp_write_only --rand-type={DISTRIBUTION}, {} clients, pool {} MiB, data 16 times that, disk {} operations/s and {} MB/s; medians of {} runs of {} s.",
            setup.threads, setup.pool, setup.operations, setup.megabytes, setup.rounds, setup.time
        ),
        tables: table.to_string(),
        conclusion: conclusion(sides, runs),
        setup: json!({
            "pool_mib": setup.pool, "threads": setup.threads, "time": setup.time, "warm_up": setup.warm_up,
            "rounds": setup.rounds, "operations_per_second": setup.operations,
            "megabytes_per_second": setup.megabytes,
        }),
    }
}

/// AUTO beside ON, ours and theirs.
fn conclusion(sides: &[Side], runs: &[Run]) -> String {
    let Some(ours) = sides.first().map(|side| side.server.as_str()) else { return String::new() };
    let rates = |server: &str, mode| figures(&of(runs, server, mode), |run| run.transactions_per_second);
    let auto = rates(ours, "AUTO");
    let mut told = format!(
        "With AUTO {ours} runs, as a multiple of its own transactions with ON, {}",
        at_least(ratio(&auto, &rates(ours, "ON")), GOAL)
    );
    for side in sides.iter().filter(|side| side.server != ours && side.mode == "ON") {
        let factor = ratio(&auto, &rates(&side.server, "ON"));
        let factor = if side.server.to_lowercase().contains("mysql") {
            at_least(factor, GOAL_TO_MYSQL)
        } else {
            format!("{factor:.2}")
        };
        told += &format!("; of {} with ON, {factor}", side.server);
    }
    told + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::room;
    use crate::experiment::servers::tests::ours;

    #[test]
    fn the_conclusion_is_about_auto_beside_on() {
        let side = |server: &str, mode| Side {
            server: server.to_owned(),
            mode,
            contestant: ours().with(Vec::new()),
        };
        let sides = [side("Untorn", "ON"), side("Untorn", "AUTO"), side("MySQL", "ON")];
        let run = |server: &str, mode, rate| {
            let run = room::tests::run("oltp_write_only", &setting(mode), 1, rate);
            Run { server: server.to_owned(), ..run }
        };
        let runs = [run("Untorn", "ON", 100.0), run("Untorn", "AUTO", 150.0), run("MySQL", "ON", 100.0)];
        let told = conclusion(&sides, &runs);
        assert!(told.contains("1.50 (goal at least 1.48: reached)"), "{told}");
        assert!(told.contains("of MySQL with ON, 1.50 (goal at least 1.90: missed)"), "{told}");
    }
}
