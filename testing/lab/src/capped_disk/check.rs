//! Does the cap hold, and what does it cost: direct reads and writes, many under way, counted and timed.

use super::{Cap, CapKind, CappedDisk};
use crate::block_device::Counters;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use disk::{AlignedBuf, Random};
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FILE_BYTES: u64 = 512 << 20;
const SMALL: usize = 16 << 10;
const LARGE: usize = 256 << 10;
/// The measured rate may differ from the cap by this factor.
const TOLERANCE: f64 = 0.02;
/// The queue fills before a measurement.
const SETTLING: Duration = Duration::from_secs(1);

/// What the check is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct CheckArguments {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Requests under way.
    #[arg(long, default_value_t = 64)]
    threads: u32,
    /// Requests per second, reads and writes together.
    #[arg(long, default_value_t = 3000)]
    iops: u64,
    /// MB per second, reads and writes together.
    #[arg(long, default_value_t = 160)]
    mb_per_second: u64,
    /// Flushes are answered at once.
    #[arg(long)]
    no_flushes: bool,
}

/// One load, with the percentage of requests that are reads.
struct Case {
    name: &'static str,
    bytes: usize,
    reads: usize,
}

const CASES: [Case; 5] = [
    Case { name: "reads of 16 KiB", bytes: SMALL, reads: 100 },
    Case { name: "writes of 16 KiB", bytes: SMALL, reads: 0 },
    Case { name: "both of 16 KiB", bytes: SMALL, reads: 50 },
    Case { name: "reads of 256 KiB", bytes: LARGE, reads: 100 },
    Case { name: "both of 256 KiB", bytes: LARGE, reads: 50 },
];

/// Runs all cases; fails when a rate is not the cap's.
pub fn check(arguments: &CheckArguments) -> Result<()> {
    Scratch::with("experiment-disk", |place| check_in(arguments, place))
}

fn check_in(arguments: &CheckArguments, place: &Path) -> Result<()> {
    let mut disk = CappedDisk::create(place, 2 * FILE_BYTES, CapKind::Shared, !arguments.no_flushes)?;
    let path = disk.path().join("load");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(nix::fcntl::OFlag::O_DIRECT.bits())
        .open(&path)?;
    let block = AlignedBuf::zeroed(1 << 20);
    for offset in (0..FILE_BYTES).step_by(block.len()) {
        file.write_all_at(&block, offset)?;
    }
    file.sync_all()?;
    let cap = Cap { operations: arguments.iops, bytes: arguments.mb_per_second * 1_000_000 };
    disk.limit(cap)?;
    println!(
        "cap {} requests/s and {} MB/s, reads and writes together; {} under way",
        arguments.iops, arguments.mb_per_second, arguments.threads
    );
    println!(
        "\n| load | requests/s | MB/s | of the cap | longest ms | CPU of the volume, % of a core | seen by the device |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|");
    let mut wrong = Vec::new();
    for case in &CASES {
        let share = measure(arguments, case, &disk, &file, cap)?;
        if (share - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{}: {share:.3} of the cap", case.name));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// Runs one case, prints its row, and returns which share of the cap it reached.
fn measure(arguments: &CheckArguments, case: &Case, disk: &CappedDisk, file: &File, cap: Cap) -> Result<f64> {
    let running = AtomicBool::new(true);
    let time = Duration::from_secs(arguments.seconds);
    let (device, took, processor, longest) = std::thread::scope(|scope| -> Result<_> {
        let running = &running;
        let workers: Vec<_> = (0..arguments.threads)
            .map(|number| scope.spawn(move || work(case, file, u64::from(number), running)))
            .collect();
        std::thread::sleep(SETTLING);
        let (before, processor, begin) =
            (Counters::of(disk.device()?)?, disk.processor_time()?, Instant::now());
        std::thread::sleep(time);
        let device = Counters::of(disk.device()?)?.since(&before);
        let (took, processor) = (begin.elapsed(), disk.processor_time()?.saturating_sub(processor));
        running.store(false, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for worker in workers {
            match worker.join() {
                Ok(result) => longest = longest.max(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok((device, took, processor, longest))
    })
    .with_context(|| case.name.to_owned())?;
    let seconds = took.as_secs_f64();
    let requests = (device.reads + device.writes) as f64 / seconds;
    let bytes = (device.bytes_read + device.bytes_written) as f64 / seconds;
    let part = |value: f64, of: u64| if of == 0 { 0.0 } else { value / of as f64 };
    let share = part(requests, cap.operations).max(part(bytes, cap.bytes));
    println!(
        "| {} | {requests:.0} | {:.1} | {:.3} | {:.0} | {:.1} | {:.0} reads/s, {:.0} writes/s |",
        case.name,
        bytes / 1e6,
        share,
        longest.as_secs_f64() * 1e3,
        processor.as_secs_f64() / seconds * 100.0,
        device.reads as f64 / seconds,
        device.writes as f64 / seconds
    );
    Ok(share)
}

/// One request after the other; returns how long the longest took.
fn work(case: &Case, file: &File, seed: u64, running: &AtomicBool) -> Result<Duration> {
    let mut random = Random::new(seed);
    let mut buffer = AlignedBuf::zeroed(case.bytes);
    let mut longest = Duration::ZERO;
    while running.load(Ordering::Relaxed) {
        let offset = random.below(FILE_BYTES as usize / case.bytes) as u64 * case.bytes as u64;
        let begin = Instant::now();
        if random.below(100) < case.reads {
            file.read_exact_at(&mut buffer, offset)?;
        } else {
            file.write_all_at(&buffer, offset)?;
        }
        longest = longest.max(begin.elapsed());
    }
    Ok(longest)
}
