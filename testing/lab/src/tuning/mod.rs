//! What is left to those who tune: a server as it is, beside the best of a sweep over its settings, on four
//! kinds of machine.
//!
//! The sweep (`sweep.rs`) goes through one setting after the other and keeps what was faster. That it was may
//! be luck, and the more is tried, the luckier the best of it: so the sweep only chooses. What was chosen is
//! then measured again, in turn with the defaults, and only these runs count. How far the runs of the
//! defaults lie apart is the noise that a gain must exceed.
//!
//! The memory for the buffer pool is given, as that of a machine is: the sweep may use less of it, not more.

mod scene;
mod sweep;

use crate::experiment::judgement::{noise, percent, ratio};
use crate::experiment::report::Report;
use crate::experiment::room::{Room, Run, Trial, disk_mib, figures};
use crate::experiment::servers::{Peers, Server};
use crate::experiment::table::Table;
use crate::experiment::{Sizes, announce, in_place};
use crate::server_process::Program;
use crate::statistics::median;
use anyhow::Result;
use scene::{Machine, Scene, knobs};
use serde_json::{Value, json};
use std::path::Path;
use sweep::Sweep;

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    peers: Peers,
    /// Kinds of machine: the data in memory and a fast disk; the data in memory and a disk of little
    /// bandwidth; an eighth of the data in memory and a disk slow to read; the same with a buffer pool
    /// extension on a fast one, which stock servers do without.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Machine::ALL)]
    profiles: Vec<Machine>,
}

/// What the settings are called that a server has by itself.
const DEFAULTS: &str = "defaults";

/// What the sweep chose for one server in one scene, and how it did.
struct Outcome {
    scene: &'static str,
    server: String,
    /// Runs of the sweep.
    tried: usize,
    chosen: String,
    default: Figures,
    best: Figures,
    noise: Option<f64>,
    /// The best to the defaults.
    gain: f64,
}

struct Figures {
    transactions: f64,
    p99_ms: f64,
    processor_us: f64,
}

/// Sweeps, measures again and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("tuning", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let sizes = setup.sizes.settled();
    let servers = setup.peers.beside(program)?;
    let scenes: Vec<Scene> = setup.profiles.iter().map(|&machine| Scene::new(machine, &sizes)).collect();
    let plan = |server: &Server, scene: &Scene| Sweep::new(knobs(server, scene, sizes.short));
    let planned = scenes.iter().flat_map(|scene| servers.iter().map(|server| plan(server, scene).runs()));
    let runs: usize = planned.map(|sweep| sweep + 2 * sizes.rounds as usize).sum();
    announce("tuning", runs, &sizes);
    let mut room = Room::new(place, &sizes, servers.len() as u64 * disk_mib(&sizes, 1024), true)?;
    let (mut runs, mut outcomes) = (Vec::new(), Vec::new());
    for scene in &scenes {
        for server in &servers {
            let sweep = plan(server, scene);
            outcomes.push(explore(&mut room, &sizes, scene, server, sweep, &mut runs)?);
        }
    }
    drop(room);
    let report = Report {
        name: "tuning",
        described: format!(
            "{} × {} rows, {} clients; the best of a sweep beside the defaults, median of {} runs of {} s each, in turn.",
            sizes.tables, sizes.rows, sizes.threads, sizes.rounds, sizes.time
        ),
        tables: table(&outcomes).to_string(),
        conclusion: conclusion(&outcomes),
        setup: json!({
            "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
            "warm_up": sizes.warm_up, "rounds": sizes.rounds,
            "scenes": scenes.iter().map(Scene::record).collect::<Vec<Value>>(),
            "outcomes": outcomes.iter().map(Outcome::record).collect::<Vec<Value>>(),
        }),
    };
    report.publish(sizes.output.as_deref(), &runs)
}

/// The sweep, and the runs that count after it.
fn explore(
    room: &mut Room<'_>,
    sizes: &Sizes,
    scene: &Scene,
    server: &Server,
    mut sweep: Sweep,
    runs: &mut Vec<Run>,
) -> Result<Outcome> {
    let extension = room.uncapped().join("extension");
    let base = scene.settings(server, &extension);
    let mut measure = |settings: Vec<String>, setting: String, round: u32| -> Result<Run> {
        let contestant = server.with([base.clone(), settings].concat());
        let group = scene.name.to_owned();
        let (profile, script) = (scene.disk, scene.script);
        room.measure(&Trial { group, setting, round, contestant: &contestant, profile, script })
    };
    while let Some(candidate) = sweep.candidate() {
        // Not part of the report: they choose.
        let run = measure(candidate.settings, candidate.label, 0)?;
        sweep.tell(run.transactions_per_second);
    }
    let best = sweep.best();
    let (mut defaults, mut bests) = (Vec::new(), Vec::new());
    for round in 1..=sizes.rounds {
        defaults.push(measure(Vec::new(), DEFAULTS.to_owned(), round)?);
        bests.push(measure(best.settings.clone(), format!("best: {}", best.label), round)?);
    }
    let rates = |of: &[Run]| of.iter().map(|run| run.transactions_per_second).collect::<Vec<_>>();
    let outcome = Outcome {
        scene: scene.name,
        server: server.name.clone(),
        tried: sweep.runs(),
        chosen: best.label,
        default: Figures::of(&defaults),
        best: Figures::of(&bests),
        noise: noise(&rates(&defaults)),
        gain: ratio(&rates(&bests), &rates(&defaults)),
    };
    runs.extend(defaults);
    runs.extend(bests);
    // An extension that another server's runs do not know must not be taken for theirs.
    if extension.exists() {
        std::fs::remove_file(&extension)?;
    }
    Ok(outcome)
}

impl Figures {
    fn of(runs: &[Run]) -> Figures {
        let runs: Vec<&Run> = runs.iter().collect();
        Figures {
            transactions: median(figures(&runs, |run| run.transactions_per_second)),
            p99_ms: median(figures(&runs, |run| run.p99_ms)),
            processor_us: median(figures(&runs, |run| run.processor_us)),
        }
    }
}

impl Outcome {
    /// More than what runs of the same differ by; not known of one round.
    fn beyond_noise(&self) -> Option<bool> {
        self.noise.map(|noise| (self.gain - 1.0).abs() > noise)
    }

    fn record(&self) -> Value {
        json!({
            "profile": self.scene, "server": self.server, "settings_tried": self.tried,
            "best": self.chosen, "default_transactions_per_second": self.default.transactions,
            "best_transactions_per_second": self.best.transactions, "best_to_default": self.gain,
            "noise": self.noise,
        })
    }
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        &["profile", "server", "best of the sweep"],
        &[
            "defaults, transactions/s",
            "best",
            "best ÷ defaults",
            "noise",
            "p99 ms",
            "best",
            "CPU µs each",
            "best",
        ],
    );
    for outcome in outcomes {
        let Outcome { default, best, .. } = outcome;
        table.row(vec![
            outcome.scene.to_owned(),
            outcome.server.clone(),
            outcome.chosen.clone(),
            format!("{:.0}", default.transactions),
            format!("{:.0}", best.transactions),
            format!("{:.2}", outcome.gain),
            percent(outcome.noise),
            format!("{:.1}", default.p99_ms),
            format!("{:.1}", best.p99_ms),
            format!("{:.0}", default.processor_us),
            format!("{:.0}", best.processor_us),
        ]);
    }
    table
}

/// For each server, what is left to those who tune it.
fn conclusion(outcomes: &[Outcome]) -> String {
    let mut servers: Vec<&str> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.gain.is_finite()) {
        if !servers.contains(&outcome.server.as_str()) {
            servers.push(&outcome.server);
        }
    }
    let sentence = |server: &&str| {
        let of_server = || outcomes.iter().filter(|outcome| outcome.server == **server);
        let most = of_server().max_by(|a, b| a.gain.total_cmp(&b.gain))?;
        let gains = of_server().filter(|outcome| outcome.gain > 1.0 && outcome.beyond_noise() == Some(true));
        let told = match of_server().all(|outcome| outcome.beyond_noise().is_some()) {
            true => format!("beyond the noise in {} of {} profiles", gains.count(), of_server().count()),
            false => "whether that is noise takes two rounds or more".to_owned(),
        };
        Some(format!(
            "Tuning gains {server} {:+.1} % at most ({}, {}); {told}.",
            (most.gain - 1.0) * 100.0,
            most.scene,
            most.chosen
        ))
    };
    servers.iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(server: &str, scene: &'static str, gain: f64, noise: Option<f64>) -> Outcome {
        let figures = |transactions| Figures { transactions, p99_ms: 1.0, processor_us: 1.0 };
        Outcome {
            scene,
            server: server.to_owned(),
            tried: 9,
            chosen: "redo log 1 GiB".to_owned(),
            default: figures(100.0),
            best: figures(100.0 * gain),
            noise,
            gain,
        }
    }

    #[test]
    fn the_conclusion_names_the_largest_gain_of_each_server_and_how_many_are_none() {
        let text = conclusion(&[
            outcome("Untorn", "cached", 1.01, Some(0.02)),
            outcome("Untorn", "thin disk", 1.03, Some(0.05)),
            outcome("MariaDB", "cached", 2.0, Some(0.05)),
            outcome("MariaDB", "thin disk", 0.8, Some(0.05)),
        ]);
        assert!(
            text.contains(
                "Tuning gains Untorn +3.0 % at most (thin disk, redo log 1 GiB); beyond the noise in 0 of 2"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "Tuning gains MariaDB +100.0 % at most (cached, redo log 1 GiB); beyond the noise in 1 of 2"
            ),
            "{text}"
        );
    }

    #[test]
    fn one_round_does_not_tell_what_is_noise() {
        let text = conclusion(&[outcome("Untorn", "cached", 1.5, None)]);
        assert!(text.contains("takes two rounds"), "{text}");
    }

    #[test]
    fn the_table_has_a_row_for_each_server_and_profile() {
        let text = table(&[outcome("Untorn", "cached", 1.5, Some(0.02))]).to_string();
        assert!(text.contains("| cached | Untorn | redo log 1 GiB | 100 | 150 | 1.50 | 2.0 % |"), "{text}");
    }
}
