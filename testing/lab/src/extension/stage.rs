//! A server on a slow disk, and runs of load on it with what the disk did meanwhile.

use super::workload::{Load, Run};
use super::{MIB, Settings};
use crate::block_device::Counters;
use crate::capped_disk::{Cap, CappedDisk};
use crate::experiment::servers::stock;
use crate::scratch::Scratch;
use crate::server_process::{Kind, Program, ServerProcess};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A slow disk with a server on it.
pub struct Stage {
    // Dropped in this order: the server ends before its disk goes.
    pub server: ServerProcess,
    program: Program,
    settings: Vec<String>,
    pub extension: PathBuf,
    pub disk: CappedDisk,
    _place: Scratch,
}

impl Stage {
    /// Makes the disk, starts the server without a cap, loads the data, caps.
    pub fn new(
        program: &Program,
        settings: &Settings,
        name: &str,
        pool: u64,
        load: &Load,
        extension_bytes: u64,
    ) -> Result<Stage> {
        let place = Scratch::new(name)?;
        let mut disk = CappedDisk::create(
            place.path(),
            3 * load.rows * 4 * 240 + 3072 * MIB,
            settings.cap,
            !settings.no_flushes,
        )?;
        let extension = place.path().join("extension");
        let program = disk.under_the_cap(program)?;
        let mut options =
            vec![format!("--innodb-buffer-pool-size={pool}"), "--max-connections=300".to_owned()];
        if program.kind == Kind::Untorn {
            options.push("--innodb-redo-log-capacity=512M".to_owned());
            options.push(format!("--untorn-bpe-file={}", extension.display()));
            // Where SQL may move it: there, and onto the data's disk.
            let directories = [place.path(), disk.path()].map(|path| path.display().to_string());
            options.push(format!("--untorn-bpe-dir={}", directories.join(";")));
            options.push(format!("--untorn-bpe-size={extension_bytes}"));
        } else {
            let log = if program.kind == Kind::MariaDb { "log-file-size" } else { "redo-log-capacity" };
            options.push(format!("--innodb-{log}=512M"));
            options.extend(stock(3000));
        }
        let server = start(&program, disk.path(), &options)?;
        println!("loading {} rows into each of 4 tables", load.rows);
        load.prepare(&server)?;
        let took = server.stop()?;
        println!("orderly stop in {:.1} s", took.as_secs_f64());
        disk.limit(Cap { operations: settings.iops, bytes: settings.mb_per_second * 1_000_000 })?;
        let server = start(&program, disk.path(), &options)?;
        Ok(Stage { server, program, settings: options, extension, disk, _place: place })
    }

    /// Kills the server and starts it with more options.
    pub fn restart(&mut self, more: &[&str]) -> Result<()> {
        self.server.kill();
        let mut options: Vec<String> = self.settings.clone();
        options.extend(more.iter().map(|option| (*option).to_owned()));
        self.server = start(&self.program, self.disk.path(), &options)?;
        Ok(())
    }

    /// Runs a script, prints a line of what the device did, and what bounds the load can be seen from that.
    pub fn measure(&self, load: &Load, script: &str, seconds: u32) -> Result<Run> {
        let device = self.disk.device()?;
        let (before, begin) = (Counters::of(device)?, Instant::now());
        let run = load.run(&self.server, script, seconds)?;
        let (moved, took) = (Counters::of(device)?.since(&before), begin.elapsed());
        println!(
            "    {:.0} transactions/s; device: {}",
            run.transactions_per_second,
            moved.rates(took, run.transactions_per_second * took.as_secs_f64())
        );
        Ok(run)
    }

    /// ON, SUSPENDED and so on.
    pub fn extension_state(&self) -> Result<String> {
        let line = self.server.ask("", "SHOW GLOBAL STATUS LIKE 'Untorn_bpe_state'")?;
        Ok(line.replace("Untorn_bpe_state\t", ""))
    }

    /// Turns the extension on or off; it comes back empty.
    pub fn switch(&self, on: bool) -> Result<()> {
        let value = if on { "ON" } else { "OFF" };
        self.server.feed("", &format!("SET GLOBAL untorn_bpe = {value};"))
    }
}

fn start(program: &Program, place: &Path, options: &[String]) -> Result<ServerProcess> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    ServerProcess::start(program, place, &options)
}
