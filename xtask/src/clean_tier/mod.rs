//! The clean tier on a slow data disk: what it gives, what it costs, how warm it is after `kill -9`, and a soak.
//!
//! The data disk is an XFS file system on a loop device, capped to so many requests and bytes per second for the server
//! only ([`disk`]); the tier is a file outside of it. Off and on are measured in turn on the same running server, which
//! is switched with `SET GLOBAL untorn_bpe`, so that a drift of the machine hits both.

mod chart;
mod disk;
mod load;
mod soak;

pub use disk::{CapKind, CappedDisk};
pub use soak::{SoakSettings, soak};

use crate::scratch::Scratch;
use crate::server_process::{Kind, Program, ServerProcess};
use crate::steps;
use crate::throttle::Cap;
use anyhow::{Context, Result};
use chart::Line;
use load::{Load, Run, status};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
const SCRIPTS: [&str; 3] = ["oltp_read_only", "oltp_write_only", "oltp_read_write"];
/// What the tier should give, per script.
const GOALS: [f64; 3] = [1.80, 1.33, 2.03];
/// Measured once more with `innodb_doublewrite=AUTO` instead of ON, against ON without the tier.
const ATOMIC_SCRIPT: &str = "oltp_write_only";
const ATOMIC_GOAL: f64 = 1.93;

/// What a stock server gets so that it does what ours does by itself.
const STOCK: [&str; 5] = [
    "--innodb-flush-method=O_DIRECT",
    "--innodb-flush-neighbors=0",
    "--innodb-io-capacity=3000",
    "--innodb-io-capacity-max=6000",
    "--skip-log-bin",
];

/// Sizes and times of an experiment.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    /// MiB of the buffer pool; the data is 16 times as large, the tier 8 times.
    #[arg(long, default_value_t = 64)]
    pub pool_mib: u64,
    /// Seconds of a measurement.
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// Seconds of load before a measurement.
    #[arg(long, default_value_t = 60)]
    pub warm_up: u32,
    /// Measurements of each kind.
    #[arg(long, default_value_t = 2)]
    pub rounds: u32,
    /// Clients.
    #[arg(long, default_value_t = 64)]
    pub threads: u32,
    /// What the cap of the data disk counts: reads and writes together, or each.
    #[arg(long, value_enum, default_value = "shared")]
    pub cap: CapKind,
    /// Flushes of the data disk are answered at once, as by a volume with a safe cache; with a shared cap.
    #[arg(long)]
    pub no_flushes: bool,
    /// Cap of the data disk: requests per second.
    #[arg(long, default_value_t = 3000)]
    pub iops: u64,
    /// Cap of the data disk: MB per second.
    #[arg(long, default_value_t = 160)]
    pub mb_per_second: u64,
    /// Also run a stock server on a disk like it: `mariadb` for the one of this machine, or `NAME=COMMAND` with a shell command
    /// that becomes the server (`exec`), on the directory $DATA (to be filled when it is empty), the port $PORT and the socket
    /// $SOCKET, with the options $SETTINGS and a root user without password.
    #[arg(long)]
    pub peer: Vec<String>,
    /// Where the chart goes.
    #[arg(long, default_value = "target/clean-tier.svg")]
    pub chart: PathBuf,
}

/// A slow disk with a server on it.
struct Stage {
    // Dropped in this order: the server ends before its disk goes.
    server: ServerProcess,
    program: Program,
    settings: Vec<String>,
    tier: PathBuf,
    disk: CappedDisk,
    _place: Scratch,
}

impl Stage {
    /// Makes the disk, starts the server without a cap, loads the data, caps.
    fn new(
        program: &Program,
        settings: &Settings,
        name: &str,
        pool: u64,
        load: &Load,
        tier_bytes: u64,
    ) -> Result<Stage> {
        let place = Scratch::new(name)?;
        let mut disk = CappedDisk::create(
            place.path(),
            3 * load.rows * 4 * 240 + 3072 * MIB,
            settings.cap,
            !settings.no_flushes,
        )?;
        let tier = place.path().join("tier");
        let program = disk.under_the_cap(program)?;
        let mut options =
            vec![format!("--innodb-buffer-pool-size={pool}"), "--max-connections=300".to_owned()];
        if program.kind == Kind::Untorn {
            options.push("--innodb-redo-log-capacity=512M".to_owned());
            options.push(format!("--untorn-bpe-file={}", tier.display()));
            options.push(format!("--untorn-bpe-size={tier_bytes}"));
        } else {
            let log = if program.kind == Kind::MariaDb { "log-file-size" } else { "redo-log-capacity" };
            options.push(format!("--innodb-{log}=512M"));
            options.extend(STOCK.map(str::to_owned));
        }
        let server = start(&program, disk.path(), &options)?;
        println!("loading {} rows into each of 4 tables", load.rows);
        load.prepare(&server)?;
        let took = server.stop()?;
        println!("orderly stop in {:.1} s", took.as_secs_f64());
        disk.limit(Cap { operations: settings.iops, bytes: settings.mb_per_second * 1_000_000 })?;
        let server = start(&program, disk.path(), &options)?;
        Ok(Stage { server, program, settings: options, tier, disk, _place: place })
    }

    fn restart(&mut self, more: &[&str]) -> Result<()> {
        self.server.kill();
        let mut options: Vec<String> = self.settings.clone();
        options.extend(more.iter().map(|option| (*option).to_owned()));
        self.server = start(&self.program, self.disk.path(), &options)?;
        Ok(())
    }

    fn switch(&self, on: bool) -> Result<()> {
        let value = if on { "ON" } else { "OFF" };
        self.server.feed("", &format!("SET GLOBAL untorn_bpe = {value};"))
    }
}

fn start(program: &Program, place: &Path, options: &[String]) -> Result<ServerProcess> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    ServerProcess::start(program, place, &options)
}

fn describe_machine(settings: &Settings) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "machine: {cores} cores, Linux {}, load {}; data disk capped at {} requests/s and {} MB/s, {}{}; tier not capped",
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or("?"),
        settings.iops,
        settings.mb_per_second,
        settings.cap,
        if settings.no_flushes { ", flushes answered at once" } else { "" },
    );
}

/// Off and on in turn.
struct Comparison {
    off: Vec<Run>,
    on: Vec<Run>,
}

fn median(runs: &[Run]) -> f64 {
    let mut rates: Vec<f64> = runs.iter().map(|run| run.queries_per_second).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

fn compare(stage: &Stage, load: &Load, script: &str, settings: &Settings) -> Result<Comparison> {
    let mut comparison = Comparison { off: Vec::new(), on: Vec::new() };
    for round in 1..=settings.rounds {
        for on in [false, true] {
            stage.switch(on)?;
            load.run(&stage.server, script, settings.warm_up)?;
            let (hits, misses) = tier_counts(&stage.server)?;
            let run = load.run(&stage.server, script, settings.seconds)?;
            let (hits_after, misses_after) = tier_counts(&stage.server)?;
            let looked_up = (hits_after - hits + misses_after - misses).max(1.0);
            println!(
                "{script:<18} round {round} tier {:<3} {:>9.0} queries/s  p99 {:>7.1} ms  tier hits {:>5.1} %  state {}",
                if on { "on" } else { "off" },
                run.queries_per_second,
                run.p99,
                (hits_after - hits) / looked_up * 100.0,
                stage
                    .server
                    .ask("", "SHOW GLOBAL STATUS LIKE 'Untorn_bpe_state'")?
                    .replace("Untorn_bpe_state\t", ""),
            );
            if on { comparison.on.push(run) } else { comparison.off.push(run) }
        }
    }
    Ok(comparison)
}

fn tier_counts(server: &ServerProcess) -> Result<(f64, f64)> {
    Ok((status(server, "Untorn_bpe_hits")?, status(server, "Untorn_bpe_misses")?))
}

fn line(name: &str, runs: &[Run]) -> Line {
    let seconds = runs.first().map_or(&[][..], |run| &run.seconds);
    Line {
        name: name.to_owned(),
        points: seconds.iter().enumerate().map(|(at, rate)| (at as f64 + 1.0, *rate)).collect(),
    }
}

/// Reads, writes and both with the tier off and on, and optionally a stock server: a table and a chart.
pub fn experiment(program: &Program, settings: &Settings) -> Result<()> {
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let load = Load::of_bytes(16 * pool, settings.threads);
    let (mut results, mut atomic) = (Vec::new(), Vec::new());
    {
        let stage = Stage::new(program, settings, "clean-tier", pool, &load, 8 * pool)?;
        println!("{}", stage.server.log_tail());
        stage.server.feed("", "SET GLOBAL innodb_doublewrite = 'ON';")?;
        for script in SCRIPTS {
            results.push((script, compare(&stage, &load, script, settings)?, Vec::new()));
        }
        stage.server.feed("", "SET GLOBAL innodb_doublewrite = 'AUTO';")?;
        for round in 1..=settings.rounds {
            load.run(&stage.server, ATOMIC_SCRIPT, settings.warm_up)?;
            let run = load.run(&stage.server, ATOMIC_SCRIPT, settings.seconds)?;
            println!(
                "{ATOMIC_SCRIPT:<18} round {round} tier on, innodb_doublewrite=AUTO {:>9.0} queries/s",
                run.queries_per_second
            );
            atomic.push(run);
        }
        stage.server.stop()?;
    }
    let peers = settings.peer.iter().map(|peer| peer_of(peer)).collect::<Result<Vec<_>>>()?;
    for (name, peer) in &peers {
        let stage = Stage::new(peer, settings, "clean-tier-peer", pool, &load, 0)?;
        for (script, _, theirs) in &mut results {
            load.run(&stage.server, script, settings.warm_up)?;
            let run = load.run(&stage.server, script, settings.seconds)?;
            println!(
                "{script:<18} {name} {:>9.0} queries/s  p99 {:>7.1} ms",
                run.queries_per_second, run.p99
            );
            theirs.push((name.clone(), run));
        }
        stage.server.stop()?;
    }
    let names: String = peers.iter().map(|(name, _)| format!(" {name} |")).collect();
    println!("\n| script | tier off, queries/s | tier on | ratio | goal |{names}");
    println!("|---|---|---|---|---|{}", "---|".repeat(peers.len()));
    let mut charts = Vec::new();
    for ((script, ours, theirs), goal) in results.iter().zip(GOALS) {
        let (off, on) = (median(&ours.off), median(&ours.on));
        let peer: String =
            theirs.iter().map(|(_, run)| format!(" {:.0} |", run.queries_per_second)).collect();
        println!("| {script} | {off:.0} | {on:.0} | {:.2} | {goal:.2} |{peer}", on / off);
        let mut lines = vec![line("tier off", &ours.off), line("tier on", &ours.on)];
        if *script == ATOMIC_SCRIPT {
            let rate = median(&atomic);
            println!(
                "| {script}, atomic page writes | {off:.0} | {rate:.0} | {:.2} | {ATOMIC_GOAL:.2} |",
                rate / off
            );
            lines.push(line("tier on, atomic page writes", &atomic));
        }
        lines.extend(theirs.iter().map(|(name, run)| line(name, std::slice::from_ref(run))));
        charts.push(((*script).to_owned(), lines));
    }
    write_chart(settings, &charts)
}

/// A name, and the server it stands for.
fn peer_of(text: &str) -> Result<(String, Program)> {
    if text == "mariadb" {
        return Ok(("MariaDB".to_owned(), Program::mariadb()?));
    }
    let (name, command) = text.split_once('=').context("--peer mariadb, or --peer NAME=COMMAND")?;
    Ok((name.to_owned(), Program::new(Kind::Command, PathBuf::from(command))))
}

fn write_chart(settings: &Settings, charts: &[(String, Vec<Line>)]) -> Result<()> {
    let path = steps::root().join(&settings.chart);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    chart::write(&path, charts)?;
    println!("chart: {}", path.display());
    Ok(())
}

/// Where the tier cannot help: data that fits the pool, and a tier on the data's own disk.
pub fn cost(program: &Program, settings: &Settings) -> Result<()> {
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    println!("\ndata fits the pool");
    let load = Load::of_bytes(pool / 3, settings.threads);
    let stage = Stage::new(program, settings, "clean-tier-fits", pool, &load, 8 * pool)?;
    let mut rows = Vec::new();
    for script in ["oltp_read_only", "oltp_read_write"] {
        rows.push((format!("fits, {script}"), compare(&stage, &load, script, settings)?));
    }
    stage.server.stop()?;
    println!("\ntier on the data's own capped disk");
    let load = Load::of_bytes(4 * pool, settings.threads);
    let stage = Stage::new(program, settings, "clean-tier-same", pool, &load, 8 * pool)?;
    let file = stage.disk.path().join("tier");
    stage.server.feed("", &format!("SET GLOBAL untorn_bpe_file = '{}';", file.display()))?;
    rows.push(("same disk, oltp_read_only".to_owned(), compare(&stage, &load, "oltp_read_only", settings)?));
    stage.server.stop()?;
    println!("\n| case | tier off, queries/s | tier on | ratio (goal at least 0.98) |\n|---|---|---|---|");
    for (name, comparison) in &rows {
        let (off, on) = (median(&comparison.off), median(&comparison.on));
        println!("| {name} | {off:.0} | {on:.0} | {:.3} |", on / off);
    }
    Ok(())
}

/// Seconds to 90 % of the steady rate after `kill -9`, with the tier kept and with it discarded.
pub fn ramp(program: &Program, settings: &Settings) -> Result<()> {
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let load = Load::of_bytes(16 * pool, settings.threads);
    let mut stage = Stage::new(program, settings, "clean-tier-ramp", pool, &load, 8 * pool)?;
    println!("{} holds the tier", stage.tier.display());
    let script = "oltp_read_only";
    let (mut lines, mut taken) = (Vec::new(), Vec::new());
    for (name, restart) in [("kept", "keep"), ("cold", "discard")] {
        load.run(&stage.server, script, 2 * settings.warm_up)?;
        let steady = load.run(&stage.server, script, settings.seconds)?.queries_per_second;
        stage.restart(&[&format!("--untorn-bpe-restart={restart}")])?;
        let kept = status(&stage.server, "Untorn_bpe_pages_kept")?;
        let run = load.run(&stage.server, script, 3 * settings.warm_up)?;
        // Three seconds together, against chance.
        let reached =
            run.seconds.windows(3).position(|three| three.iter().sum::<f64>() >= 3.0 * 0.9 * steady);
        let seconds = reached.map(|at| at as f64 + 1.0);
        println!(
            "{name}: steady {steady:.0} queries/s, {kept:.0} pages kept, ready in {:.2} s, 90 % after {}",
            stage.server.started_in.as_secs_f64(),
            seconds.map_or("more than the run".to_owned(), |seconds| format!("{seconds:.0} s"))
        );
        lines.push(line(name, std::slice::from_ref(&run)));
        taken.push(seconds.unwrap_or(f64::from(3 * settings.warm_up)));
    }
    let [kept, cold] = taken[..] else { unreachable!("two restarts") };
    println!("\n| restart | seconds to 90 % |\n|---|---|\n| kept | {kept:.0} |\n| cold | {cold:.0} |");
    println!("kept is {:.1} times as fast (goal: 3)", cold / kept);
    write_chart(settings, &[(format!("{script} after kill -9"), lines)])?;
    stage.server.stop().map(drop)
}
