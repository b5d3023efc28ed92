//! Reads, writes and both with the extension off and on, in turn on the same running server; and stock
//! servers beside.

use super::stage::Stage;
use super::workload::{Load, Run, status};
use super::{MIB, Settings, UNIT, describe_machine, line, write_charts};
use crate::server_process::{Kind, Program, ServerProcess};
use crate::statistics::median;
use crate::time_chart::Chart;
use anyhow::{Context, Result};
use std::path::PathBuf;

const SCRIPTS: [&str; 3] = ["oltp_read_only", "oltp_write_only", "oltp_read_write"];
/// What the extension should give, per script.
const GOALS: [f64; 3] = [1.80, 1.33, 2.03];
/// Measured once more with `innodb_doublewrite=AUTO` instead of ON, against ON without the extension.
const ATOMIC_SCRIPT: &str = "oltp_write_only";
const ATOMIC_GOAL: f64 = 1.93;

/// What is measured in turn, round after round, so that a pool that becomes warmer, or a drift of the
/// machine, hits all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Doublewrite, no extension.
    Off,
    /// Doublewrite and extension.
    On,
    /// `innodb_doublewrite=AUTO` and extension.
    Atomic,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Off => "extension off",
            State::On => "extension on",
            State::Atomic => "extension on, AUTO",
        }
    }

    fn set(self, stage: &Stage) -> Result<()> {
        let way = if self == State::Atomic { "AUTO" } else { "ON" };
        stage.server.feed("", &format!("SET GLOBAL innodb_doublewrite = '{way}';"))?;
        stage.switch(self != State::Off)
    }
}

/// The runs in each state.
#[derive(Default)]
struct Comparison {
    off: Vec<Run>,
    on: Vec<Run>,
    atomic: Vec<Run>,
}

impl Comparison {
    fn of(&mut self, state: State) -> &mut Vec<Run> {
        match state {
            State::Off => &mut self.off,
            State::On => &mut self.on,
            State::Atomic => &mut self.atomic,
        }
    }
}

fn median_rate(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.queries_per_second).collect())
}

fn compare_script(stage: &Stage, load: &Load, script: &str, settings: &Settings) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    let states = [State::Off, State::On, State::Atomic];
    let measured = if script == ATOMIC_SCRIPT { 3 } else { 2 };
    for round in 1..=settings.rounds {
        for state in &states[..measured] {
            state.set(stage)?;
            load.run(&stage.server, script, settings.warm_up)?;
            let (hits, misses) = extension_counts(&stage.server)?;
            let run = stage.measure(load, script, settings.seconds)?;
            let (hits_after, misses_after) = extension_counts(&stage.server)?;
            let looked_up = (hits_after - hits + misses_after - misses).max(1.0);
            println!(
                "{script:<18} round {round} {:<18} {:>9.0} queries/s  p99 {:>7.1} ms  extension hits {:>5.1} %  state {}",
                state.name(),
                run.queries_per_second,
                run.p99,
                (hits_after - hits) / looked_up * 100.0,
                stage.extension_state()?,
            );
            if *state == State::Atomic {
                println!("{}", page_protection(&stage.server)?);
            }
            comparison.of(*state).push(run);
        }
    }
    Ok(comparison)
}

fn extension_counts(server: &ServerProcess) -> Result<(f64, f64)> {
    Ok((status(server, "Untorn_bpe_hits")?, status(server, "Untorn_bpe_misses")?))
}

/// Reads, writes and both with the extension off and on, and optionally a stock server: a table and a chart.
pub fn compare(program: &Program, settings: &Settings) -> Result<()> {
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let load = Load::of_bytes(16 * pool, settings.threads);
    let mut results = Vec::new();
    {
        let stage = Stage::new(program, settings, "extension", pool, &load, 8 * pool)?;
        println!("{}", stage.server.log_tail());
        for script in SCRIPTS {
            results.push((script, compare_script(&stage, &load, script, settings)?, Vec::new()));
        }
        stage.server.stop()?;
    }
    let peers = settings.peer.iter().map(|peer| peer_of(peer)).collect::<Result<Vec<_>>>()?;
    for (name, peer) in &peers {
        let stage = Stage::new(peer, settings, "extension-peer", pool, &load, 0)?;
        for (script, _, theirs) in &mut results {
            load.run(&stage.server, script, settings.warm_up)?;
            let run = stage.measure(&load, script, settings.seconds)?;
            println!(
                "{script:<18} {name} {:>9.0} queries/s  p99 {:>7.1} ms",
                run.queries_per_second, run.p99
            );
            theirs.push((name.clone(), run));
        }
        stage.server.stop()?;
    }
    let names: String = peers.iter().map(|(name, _)| format!(" {name} |")).collect();
    println!("\ncap of {} requests/s and {} MB/s, {}", settings.iops, settings.mb_per_second, settings.cap);
    println!("\n| script | extension off, queries/s | extension on | ratio | goal |{names}");
    println!("|---|---|---|---|---|{}", "---|".repeat(peers.len()));
    let mut charts = Vec::new();
    for ((script, ours, theirs), goal) in results.iter().zip(GOALS) {
        let (off, on) = (median_rate(&ours.off), median_rate(&ours.on));
        let peer: String =
            theirs.iter().map(|(_, run)| format!(" {:.0} |", run.queries_per_second)).collect();
        println!("| {script} | {off:.0} | {on:.0} | {:.2} | {goal:.2} |{peer}", on / off);
        let mut lines = vec![line("extension off", &ours.off), line("extension on", &ours.on)];
        if *script == ATOMIC_SCRIPT {
            let rate = median_rate(&ours.atomic);
            println!(
                "| {script}, atomic page writes | {off:.0} | {rate:.0} | {:.2} | {ATOMIC_GOAL:.2} |",
                rate / off
            );
            lines.push(line("extension on, atomic page writes", &ours.atomic));
        }
        lines.extend(theirs.iter().map(|(name, run)| line(name, std::slice::from_ref(run))));
        charts.push(Chart { title: (*script).to_owned(), unit: UNIT, lines });
    }
    write_charts(settings, &charts)
}

/// How the server writes pages: verdicts and ways of its files.
fn page_protection(server: &ServerProcess) -> Result<String> {
    let sql = "SELECT MODE, VERDICT, COUNT(*) FROM information_schema.UNTORN_PAGE_PROTECTION GROUP BY MODE, VERDICT";
    let ways = server.ask("", sql)?;
    let ways: Vec<String> = ways
        .lines()
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [mode, verdict, files] => format!("{files} files {mode} ({verdict})"),
            _ => line.to_owned(),
        })
        .collect();
    Ok(format!("    pages written: {}", ways.join(", ")))
}

/// A name, and the server it stands for.
fn peer_of(text: &str) -> Result<(String, Program)> {
    if text == "mariadb" {
        return Ok(("MariaDB".to_owned(), Program::mariadb()?));
    }
    let (name, command) = text.split_once('=').context("--peer mariadb, or --peer NAME=COMMAND")?;
    Ok((name.to_owned(), Program::new(Kind::Command, PathBuf::from(command))))
}
