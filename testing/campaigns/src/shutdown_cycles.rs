//! Power cuts on a real file system: XFS shut down under load without its log being written, mounted again,
//! and every acknowledged commit compared.
//!
//! The file system is in an image on a loop device with direct I/O. `xfs_io -c shutdown` stops it at once:
//! what the server wrote and did not sync, and what XFS had only in its in-memory log, is gone. That is what
//! a power cut takes from a disk whose cache is empty; what a cache loses and tears besides is the
//! simulator's business.

use crate::acknowledged::{Acknowledged, create_tables};
use crate::seed::seed_or_time;
use anyhow::{Context, Result, ensure};
use disk::Random;
use lab::background_load::{self, BackgroundLoad};
use lab::file_system::{FileSystem, FileSystemKind};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, status_number};
use mysql::prelude::Queryable;
use std::path::Path;
use std::time::Duration;

/// How pages are protected in a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Mode {
    /// Each page through the doublewrite file.
    Doublewrite,
    /// Pages written once, in atomic writes of the file system.
    Atomic,
    /// Both in turn.
    Both,
}

impl Mode {
    /// The value of innodb_doublewrite. AUTO takes turns on XFS until it has measured which way is faster
    /// there.
    fn value(self) -> &'static str {
        if self == Mode::Atomic { "AUTO" } else { "ON" }
    }

    fn of_cycle(self, cycle: u32) -> Mode {
        match (self, cycle % 2) {
            (Mode::Both, 1) => Mode::Doublewrite,
            (Mode::Both, _) => Mode::Atomic,
            (mode, _) => mode,
        }
    }
}

/// Runs `cycles` shutdowns.
pub fn run(program: &Program, cycles: u32, mode: Mode, seed: Option<u64>) -> Result<()> {
    let seed = seed_or_time(seed)?;
    println!("{cycles} cycles, {mode:?}, --seed {seed}");
    Scratch::with("shutdown", |place| cycles_in(program, place, cycles, mode, seed))
}

fn cycles_in(program: &Program, place: &Path, cycles: u32, mode: Mode, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut acknowledged = Acknowledged::new();
    let mut disk = FileSystem::create(place, "disk", FileSystemKind::Xfs, 1024)?;
    let data = disk.path().join("data");
    let start = |mode: Mode| {
        let doublewrite = format!("--innodb-doublewrite={}", mode.value());
        let settings = [&background_load::SETTINGS[..], &[&doublewrite]].concat();
        ServerProcess::start_on(program, place, &data, &settings)
    };
    let mut server = start(mode.of_cycle(1))?;
    let mut atomic_writes = 0;
    create_tables(&server)?;
    BackgroundLoad::prepare(&server)?;
    for cycle in 1..=cycles {
        let load = Duration::from_millis(50 + random.below(600) as u64);
        let mut watcher = server.connect(None)?;
        let before = status_number(&mut watcher, "Innodb_pages_written")?;
        // For a moment the server lives on without its disk; it must not acknowledge anything then.
        let afterwards = Duration::from_millis(random.below(50) as u64);
        // Sometimes the other way of writing pages is chosen just before.
        let switched = (mode == Mode::Both && random.one_in(3)).then(|| mode.of_cycle(cycle + 1));
        let switched_for = Duration::from_millis(random.below(200) as u64);
        let mut pages = 0;
        let background = BackgroundLoad::start(&server, random.next_u64())?;
        acknowledged
            .load(&mut server, load, &mut random, |_| {
                if let Some(mode) = switched {
                    watcher.query_drop(format!("SET GLOBAL innodb_doublewrite = {}", mode.value()))?;
                    std::thread::sleep(switched_for);
                }
                pages = status_number(&mut watcher, "Innodb_pages_written")? - before;
                atomic_writes += status_number(&mut watcher, "Untorn_atomic_writes")?;
                disk.shut_down()?;
                std::thread::sleep(afterwards);
                Ok(())
            })
            .with_context(|| format!("cycle {cycle}, under load"))?;
        ensure!(
            !server.log().contains("panicked at"),
            "cycle {cycle}: the server panicked when its disk went away"
        );
        drop((server, background, watcher));
        disk.unmount()?;
        disk.mount()?;
        server = start(mode.of_cycle(cycle + 1)).with_context(|| format!("cycle {cycle}, restart"))?;
        acknowledged
            .verify(&server)
            .and_then(|()| BackgroundLoad::check(&server))
            .with_context(|| format!("cycle {cycle}, after recovery"))?;
        let (transfers, changed) = acknowledged.totals();
        println!(
            "cycle {cycle:>4}: {:>4} ms of load, {pages:>5} pages written, restart {:>5.0} ms, {transfers} transfers and {changed} row transactions so far, all there",
            load.as_millis(),
            server.started_in.as_secs_f64() * 1e3,
        );
    }
    server.stop()?;
    println!("{atomic_writes} pages were written by atomic writes before a shutdown");
    ensure!(mode == Mode::Doublewrite || atomic_writes > 0, "no page was ever written by an atomic write");
    disk.unmount()
}
