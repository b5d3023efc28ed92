//! How soon the server is warm after `kill -9`: from the kill, the server's start included, to 90 % of the
//! steady rate.

use super::stage::Stage;
use super::workload::{Load, status};
use super::{MIB, Settings, UNIT, describe_machine, line, publish};
use crate::experiment::judgement::at_least;
use crate::experiment::judgement::warm_after;
use crate::experiment::table::Table;
use crate::server_process::Program;
use crate::time_chart::Chart;
use anyhow::{Context, Result};
use serde_json::json;
use std::time::Instant;

const SCRIPT: &str = "oltp_read_only";
const GOAL: f64 = 3.0;

/// Seconds with the extension kept and with it discarded.
pub fn ramp(program: &Program, settings: &Settings) -> Result<()> {
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let load = Load::of_bytes(16 * pool, settings.threads);
    let mut stage = Stage::new(program, settings, "extension-ramp", pool, &load, 8 * pool)?;
    println!("{} holds the extension", stage.extension.display());
    let mut lines = Vec::new();
    let mut runs = Vec::new();
    let mut taken = Vec::new();
    for (name, restart) in [("kept", "keep"), ("cold", "discard")] {
        load.run(&stage.server, SCRIPT, 2 * settings.warm_up)?;
        let steady = stage.measure(&load, SCRIPT, settings.seconds)?.queries_per_second;
        let killed = Instant::now();
        stage.restart(&[&format!("--untorn-bpe-restart={restart}")])?;
        // Nothing between the server's first answer and the load.
        let until_load = killed.elapsed().as_secs_f64();
        let run = stage.measure(&load, SCRIPT, 3 * settings.warm_up)?;
        let kept = status(&stage.server, "Untorn_bpe_pages_kept")?;
        let seconds = warm_after(&run.seconds, steady).map(|seconds| until_load + seconds);
        println!(
            "{name}: steady {steady:.0} queries/s, {kept:.0} pages kept, load {until_load:.2} s after the kill (the server's start {:.2} s), 90 % after {}",
            stage.server.started_in.as_secs_f64(),
            seconds.map_or("more than the run".to_owned(), |seconds| format!("{seconds:.1} s"))
        );
        lines.push(line(name, std::slice::from_ref(&run)));
        // A run that never got there counts as its length, which makes the factor a lower bound.
        taken.push(seconds.unwrap_or(until_load + run.seconds.len() as f64));
        runs.push((name.to_owned(), run));
    }
    let (kept, cold) = taken.first().zip(taken.get(1)).context("two restarts")?;
    let mut table = Table::new(&["restart"], &["seconds from the kill to 90 %"]);
    for (name, seconds) in [("kept", kept), ("cold", cold)] {
        table.row(vec![name.to_owned(), format!("{seconds:.1}")]);
    }
    let conclusion = format!(
        "With the extension kept the server is warm as many times as fast: {}.",
        at_least(cold / kept, GOAL)
    );
    let text = format!(
        "{SCRIPT} after kill -9, cap of {} requests/s and {} MB/s, {}\n\n{table}\n{conclusion}\n",
        settings.iops, settings.mb_per_second, settings.cap
    );
    let charts = [Chart { title: format!("{SCRIPT} after kill -9"), unit: UNIT, lines }];
    let named: Vec<_> = runs.iter().map(|(name, run)| (name.clone(), run)).collect();
    let found = json!({ "kept_seconds": kept, "cold_seconds": cold, "conclusion": conclusion });
    publish(settings, &text, &charts, &named, found)?;
    stage.server.stop().map(drop)
}
