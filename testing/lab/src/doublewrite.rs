//! What writing pages twice costs, on a disk like a cloud volume: ours with doublewrite, with the file
//! system's atomic writes, and without protection, beside stock servers with and without their doublewrite,
//! in turn on the same disk.
//!
//! The disk is an XFS image on a loop device, capped for the server process alone. All servers get the same
//! pool, a sixteenth of the data; rounds go through all of them so that a drift of the machine hits all
//! alike. Figures come from sysbench, from `/proc/<pid>/stat` and from the block device's own counters.

use crate::block_device::Counters;
use crate::capped_disk::{Cap, Throttle};
use crate::experiment::in_place;
use crate::experiment::servers::{Contestant, Peers, stock};
use crate::file_system::{FileSystem, FileSystemKind};
use crate::server_process::{Program, ServerProcess, processor_time};
use crate::statistics;
use crate::sysbench::{self, Sysbench};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    /// Buffer pool in MiB; the data are sixteen times as large.
    #[arg(long, default_value_t = 64)]
    pool: u64,
    #[arg(long, default_value_t = 64)]
    threads: u32,
    /// Seconds of each measured run.
    #[arg(long, default_value_t = 60)]
    time: u32,
    /// Seconds of each run before it, not measured.
    #[arg(long, default_value_t = 30)]
    warm_up: u32,
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Read and write operations per second of the disk, each.
    #[arg(long, default_value_t = 4000)]
    operations: u64,
    /// MB read and written per second, each.
    #[arg(long, default_value_t = 50)]
    megabytes: u64,
    #[command(flatten)]
    peers: Peers,
    /// Where the disk image is made.
    #[arg(long)]
    place: Option<PathBuf>,
}

const TABLES: u32 = 4;
/// Bytes of a sysbench row with its share of both indexes, as files grow by it.
const ROW_BYTES: u64 = 240;

/// One measured run.
#[derive(Clone, Copy)]
struct Figures {
    transactions_per_second: f64,
    processor_us: f64,
    written_kib: f64,
    flushes: f64,
    percentile_ms: f64,
}

/// Runs all contestants and prints the table.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("doublewrite", setup.place.as_deref(), |place| run_in(program, setup, place))
}

fn contestants(program: &Program, setup: &Setup) -> Result<Vec<Contestant>> {
    let mut all = Vec::new();
    let pool = format!("--innodb-buffer-pool-size={}M", setup.pool);
    for server in setup.peers.beside(program)? {
        let modes: &[&str] = if server.is_ours() { &["ON", "AUTO", "OFF"] } else { &["ON", "OFF"] };
        for mode in modes {
            let mut settings = vec![pool.clone(), server.redo(1024)];
            settings.push(format!("--innodb-doublewrite={mode}"));
            settings.extend(if server.is_ours() { Vec::new() } else { stock(4000) });
            all.push(Contestant {
                name: format!("{}, doublewrite {mode}", server.name),
                ..server.with(settings)
            });
        }
    }
    Ok(all)
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let contestants = contestants(program, setup)?;
    let servers = setup.peers.beside(program)?.len() as u64;
    // Room for the redo logs and growth besides the data.
    let mut disk =
        FileSystem::create(place, "disk", FileSystemKind::Xfs, servers * (setup.pool * 24 + 3072))?;
    for (at, contestant) in contestants.iter().enumerate() {
        // The variants of a server share its data.
        if contestants[..at].iter().all(|before| before.directory != contestant.directory) {
            prepare(contestant, setup, place, &disk)?;
        }
    }
    let cap = Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 };
    let throttle = Throttle::new(disk.device()?)?;
    throttle.limit(cap)?;
    let mut figures: Vec<Vec<Figures>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 1..=setup.rounds {
        for (contestant, figures) in contestants.iter().zip(&mut figures) {
            let measured = measure(contestant, setup, place, &disk, &throttle)
                .with_context(|| contestant.name.clone())?;
            println!(
                "round {round}, {}: {:.0} transactions/s",
                contestant.name, measured.transactions_per_second
            );
            figures.push(measured);
        }
    }
    print_table(setup, &contestants, &figures);
    drop(throttle);
    disk.unmount()
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
    contestant: &Contestant,
    setup: &Setup,
    place: &Path,
    disk: &FileSystem,
    throttle: &Throttle,
) -> Result<Figures> {
    let server = contestant.start(place, disk.path())?;
    throttle.put_in(server.id())?;
    let load = load(&server, setup, setup.threads);
    let seconds = |time: u32| format!("--time={time}");
    let more = ["--rand-type=special", "--percentile=99"];
    load.run("oltp_write_only", "run", &[&*seconds(setup.warm_up), more[0]])?;
    let processor = processor_time(server.id())?;
    let before = Counters::of(disk.device()?)?;
    let output = load.run("oltp_write_only", "run", &[&*seconds(setup.time), more[0], more[1]])?;
    let processor = processor_time(server.id())?.saturating_sub(processor);
    let device = Counters::of(disk.device()?)?.since(&before);
    server.stop()?;
    let transactions =
        sysbench::figure(&output, "transactions:").context("no transactions: in the output")?;
    ensure!(transactions > 0.0, "no transaction");
    Ok(Figures {
        transactions_per_second: transactions / f64::from(setup.time),
        processor_us: Duration::as_secs_f64(&processor) * 1e6 / transactions,
        written_kib: device.bytes_written as f64 / 1024.0 / transactions,
        flushes: device.flushes as f64 / transactions,
        percentile_ms: sysbench::figure(&output, "99th percentile:").unwrap_or(f64::NAN),
    })
}

fn median(figures: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    statistics::median(figures.iter().map(of).collect())
}

fn print_table(setup: &Setup, contestants: &[Contestant], figures: &[Vec<Figures>]) {
    println!(
        "\noltp_write_only --rand-type=special, {} clients, pool {} MiB, data 16 times that, disk {} operations/s and {} MB/s, median of {} runs of {} s\n",
        setup.threads, setup.pool, setup.operations, setup.megabytes, setup.rounds, setup.time
    );
    let first = figures.first().map_or(f64::NAN, |figures| median(figures, |f| f.transactions_per_second));
    println!(
        "| server | transactions/s | to the first | p99 ms | CPU µs each | KiB written each | flushes each |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (contestant, figures) in contestants.iter().zip(figures) {
        let rate = median(figures, |f| f.transactions_per_second);
        println!(
            "| {} | {rate:.0} | {:.2} | {:.0} | {:.0} | {:.1} | {:.2} |",
            contestant.name,
            rate / first,
            median(figures, |f| f.percentile_ms),
            median(figures, |f| f.processor_us),
            median(figures, |f| f.written_kib),
            median(figures, |f| f.flushes),
        );
    }
}
