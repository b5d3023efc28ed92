//! `kill -9` under load, again and again, with what was acknowledged kept outside the server
//! (`acknowledged.rs`).
//!
//! SIGKILL takes the process, not the page cache: this tests recovery and that nothing is acknowledged too
//! early by the process. Writes a file system loses are the business of `shutdown_cycles.rs`, torn ones of
//! the simulator.

use crate::acknowledged::{Acknowledged, create_tables};
use crate::seed::seed_or_time;
use anyhow::{Context, Result};
use disk::Random;
use lab::background_load::{BackgroundLoad, SETTINGS};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use std::path::Path;
use std::time::Duration;

/// Runs `cycles` kills.
pub fn run(program: &Program, cycles: u32, seed: Option<u64>) -> Result<()> {
    let seed = seed_or_time(seed)?;
    println!("{cycles} cycles, --seed {seed}");
    Scratch::with("crash-kill", |place| cycles_in(program, place, cycles, seed))
}

fn cycles_in(program: &Program, place: &Path, cycles: u32, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut acknowledged = Acknowledged::new();
    let mut server = ServerProcess::start(program, place, &SETTINGS)?;
    create_tables(&server)?;
    BackgroundLoad::prepare(&server)?;
    for cycle in 1..=cycles {
        let load = Duration::from_millis(100 + random.below(700) as u64);
        let background = BackgroundLoad::start(&server, random.next_u64())?;
        acknowledged
            .load(&mut server, load, &mut random, |server| {
                server.kill();
                Ok(())
            })
            .with_context(|| format!("cycle {cycle}, under load"))?;
        drop((server, background));
        // Sometimes the recovery is killed, too.
        let mut recoveries_killed = 0;
        while random.one_in(4) {
            let mut recovering = ServerProcess::spawn(program, place, &SETTINGS)?;
            std::thread::sleep(Duration::from_millis(random.below(150) as u64));
            recovering.kill();
            recoveries_killed += 1;
        }
        server = ServerProcess::start(program, place, &SETTINGS)
            .with_context(|| format!("cycle {cycle}, restart"))?;
        acknowledged
            .verify(&server)
            .and_then(|()| BackgroundLoad::check(&server))
            .with_context(|| format!("cycle {cycle}, after recovery"))?;
        let (transfers, changed) = acknowledged.totals();
        println!(
            "cycle {cycle:>3}: {:>4} ms of load, {recoveries_killed} recoveries killed, restart {:>5.0} ms, {transfers} transfers and {changed} row transactions so far, all there",
            load.as_millis(),
            server.started_in.as_secs_f64() * 1e3,
        );
    }
    server.stop()?;
    Ok(())
}
