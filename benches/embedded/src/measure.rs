//! What a step took: time, processor, bytes towards the disk; and the memory of the process. A step is told
//! when it ends, so that the ones before a failure are known.

use std::time::Instant;

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};

use crate::report::{Step, Told};

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Memory of this process that belongs to no file.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Runs a step of `count` operations and tells what it took.
pub fn timed<R>(name: &str, count: u64, f: impl FnOnce() -> Result<R>) -> Result<R> {
    counted(name, || Ok((f()?, count)))
}

/// Runs a step that says how many operations it was, and tells what it took.
pub fn counted<R>(name: &str, f: impl FnOnce() -> Result<(R, u64)>) -> Result<R> {
    let (cpu, written, begun) = (cpu_seconds()?, written_bytes(), Instant::now());
    let (result, count) = f()?;
    let seconds = begun.elapsed().as_secs_f64();
    let step = Step {
        name: name.to_owned(),
        count,
        seconds,
        cpu_seconds: cpu_seconds()? - cpu,
        written_bytes: written_bytes() - written,
    };
    eprintln!("  {:<28} {seconds:>9.3} s  {:>9.3} s CPU", step.name, step.cpu_seconds);
    Told::Step(step).tell()?;
    Ok(result)
}
