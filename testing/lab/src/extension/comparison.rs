//! Reads, writes and both with the extension off and on, in turn on the same running server; and stock
//! servers beside.

use super::stage::Stage;
use super::workload::{Load, Run, status};
use super::{MIB, Settings, UNIT, describe_machine, line, publish};
use crate::experiment::judgement::at_least;
use crate::experiment::servers::Peers;
use crate::experiment::table::Table;
use crate::server_process::{Program, ServerProcess};
use crate::statistics::median;
use crate::time_chart::Chart;
use anyhow::Result;
use serde_json::json;

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

/// What a script came to, in each state and on stock servers.
struct Scene {
    script: &'static str,
    goal: f64,
    ours: Comparison,
    theirs: Vec<(String, Run)>,
}

/// What the comparison is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct CompareSettings {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    peers: Peers,
}

/// Reads, writes and both with the extension off and on, and stock servers on a disk like it.
pub fn compare(program: &Program, setup: &CompareSettings) -> Result<()> {
    let settings = &setup.settings;
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let load = Load::of_bytes(16 * pool, settings.threads);
    let servers = setup.peers.beside(program)?;
    let mut scenes = Vec::new();
    {
        let stage = Stage::new(program, settings, "extension", pool, &load, 8 * pool)?;
        println!("{}", stage.server.log_tail());
        for (script, goal) in SCRIPTS.into_iter().zip(GOALS) {
            let ours = compare_script(&stage, &load, script, settings)?;
            scenes.push(Scene { script, goal, ours, theirs: Vec::new() });
        }
        stage.server.stop()?;
    }
    for peer in servers.iter().filter(|server| !server.is_ours()) {
        let stage = Stage::new(&peer.program, settings, "extension-peer", pool, &load, 0)?;
        for scene in &mut scenes {
            load.run(&stage.server, scene.script, settings.warm_up)?;
            let run = stage.measure(&load, scene.script, settings.seconds)?;
            println!(
                "{:<18} {} {:>9.0} queries/s  p99 {:>7.1} ms",
                scene.script, peer.name, run.queries_per_second, run.p99
            );
            scene.theirs.push((peer.name.clone(), run));
        }
        stage.server.stop()?;
    }
    let lines: Vec<Comparable> = scenes.iter().flat_map(Scene::lines).collect();
    let conclusion = conclusion(&lines);
    let text = format!(
        "pool {} MiB, data 16 times that, extension 8 times, {} clients; cap of {} requests/s and {} MB/s, {}; medians of {} runs of {} s\n\n{}\n{conclusion}\n",
        settings.pool_mib,
        settings.threads,
        settings.iops,
        settings.mb_per_second,
        settings.cap,
        settings.rounds,
        settings.seconds,
        table(&scenes, &lines)
    );
    let charts: Vec<Chart> = scenes.iter().map(Scene::chart).collect();
    let runs: Vec<_> = scenes.iter().flat_map(Scene::runs).collect();
    let found = lines.iter().map(|line| {
        json!({ "load": line.name, "off": line.off, "on": line.on, "goal": line.goal, "p99_ms": line.p99 })
    });
    let found = json!({ "loads": found.collect::<Vec<_>>(), "conclusion": conclusion });
    publish(settings, &text, &charts, &runs, found)
}

/// A load without the extension and with it.
struct Comparable {
    name: String,
    /// Queries a second.
    off: f64,
    on: f64,
    goal: f64,
    p99: [f64; 2],
}

impl Scene {
    fn is_measured_with_atomic_writes(&self) -> bool {
        !self.ours.atomic.is_empty()
    }

    fn lines(&self) -> Vec<Comparable> {
        let p99 = |runs: &[Run]| median(runs.iter().map(|run| run.p99).collect());
        let line = |name: String, runs: &[Run], goal| Comparable {
            name,
            off: median_rate(&self.ours.off),
            on: median_rate(runs),
            goal,
            p99: [p99(&self.ours.off), p99(runs)],
        };
        let mut lines = vec![line(self.script.to_owned(), &self.ours.on, self.goal)];
        if self.is_measured_with_atomic_writes() {
            let name = format!("{}, atomic page writes", self.script);
            lines.push(line(name, &self.ours.atomic, ATOMIC_GOAL));
        }
        lines
    }

    /// Every second of the first runs.
    fn chart(&self) -> Chart {
        let mut lines = vec![line("extension off", &self.ours.off), line("extension on", &self.ours.on)];
        if self.is_measured_with_atomic_writes() {
            lines.push(line("extension on, atomic page writes", &self.ours.atomic));
        }
        lines.extend(self.theirs.iter().map(|(name, run)| line(name, std::slice::from_ref(run))));
        Chart { title: self.script.to_owned(), unit: UNIT, lines }
    }

    /// All runs, with their names.
    fn runs(&self) -> Vec<(String, &Run)> {
        let ours = [State::Off, State::On, State::Atomic].into_iter().flat_map(|state| {
            let runs = match state {
                State::Off => &self.ours.off,
                State::On => &self.ours.on,
                State::Atomic => &self.ours.atomic,
            };
            runs.iter().enumerate().map(move |(at, run)| (format!("{} round {}", state.name(), at + 1), run))
        });
        let theirs = self.theirs.iter().map(|(name, run)| (name.clone(), run));
        ours.chain(theirs).map(|(name, run)| (format!("{} {name}", self.script), run)).collect()
    }
}

fn table(scenes: &[Scene], lines: &[Comparable]) -> Table {
    let figures = [
        "extension off, queries/s",
        "extension on",
        "ratio",
        "goal",
        "p99 ms off",
        "p99 ms on",
        "stock servers",
    ];
    let mut table = Table::new(&["load"], &figures);
    for line in lines {
        let theirs = scenes.iter().find(|scene| scene.script == line.name).map(|scene| {
            let told = scene.theirs.iter().map(|(name, run)| format!("{name} {:.0}", run.queries_per_second));
            told.collect::<Vec<_>>().join("; ")
        });
        table.row(vec![
            line.name.clone(),
            format!("{:.0}", line.off),
            format!("{:.0}", line.on),
            format!("{:.2}", line.on / line.off),
            format!("{:.2}", line.goal),
            format!("{:.1}", line.p99[0]),
            format!("{:.1}", line.p99[1]),
            theirs.unwrap_or_default(),
        ]);
    }
    table
}

fn conclusion(lines: &[Comparable]) -> String {
    let told: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {}", line.name, at_least(line.on / line.off, line.goal)))
        .collect();
    format!("With the extension, queries as a multiple of those without: {}.", told.join("; "))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rate: f64) -> Vec<Run> {
        vec![Run { queries_per_second: rate, seconds: vec![rate; 3], ..Run::default() }]
    }

    #[test]
    fn each_load_is_judged_by_its_goal_and_each_run_has_its_seconds() {
        let ours = Comparison { off: runs(100.0), on: runs(140.0), atomic: runs(150.0) };
        let theirs = vec![("MySQL".to_owned(), Run::default())];
        let scene = Scene { script: ATOMIC_SCRIPT, goal: 1.33, ours, theirs };
        let lines = scene.lines();
        let told = conclusion(&lines);
        assert!(told.contains("oltp_write_only 1.40 (goal at least 1.33: reached)"), "{told}");
        assert!(told.contains("atomic page writes 1.50 (goal at least 1.93: missed)"), "{told}");
        assert_eq!((scene.chart().lines.len(), scene.runs().len()), (4, 4));
        assert!(table(&[scene], &lines).to_string().contains("MySQL 0"));
    }
}
