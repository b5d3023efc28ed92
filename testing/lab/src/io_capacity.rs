//! Whether `innodb_io_capacity` and `_max` matter: eight pairs of them and the defaults, in turn, on a disk
//! of little bandwidth with a redo log that is short for the load, so that pages must be written all the
//! time.
//!
//! The defaults run twice in each round, at its beginning and in its middle. How far these runs lie apart is
//! the noise. A pair whose maximum is below what the server writes by itself caps it; of any other pair
//! nothing is expected.

use crate::capped_disk::{Cap, Profile};
use crate::experiment::judgement::{noise, percent};
use crate::experiment::report::Report;
use crate::experiment::room::{Room, Run, Trial, disk_mib, figures};
use crate::experiment::servers::{Peers, Server};
use crate::experiment::table::Table;
use crate::experiment::{Sizes, announce, in_place};
use crate::server_process::Program;
use crate::statistics::median;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    peers: Peers,
    /// Redo log in MiB.
    #[arg(long, default_value_t = 128)]
    redo: u64,
    /// Operations per second of the disk, reads and writes together; 0: any number.
    #[arg(long, default_value_t = 4000)]
    operations: u64,
    /// MB read and written per second, together; 0: any number.
    #[arg(long, default_value_t = 50)]
    megabytes: u64,
}

/// `innodb_io_capacity` and `innodb_io_capacity_max`.
const PAIRS: [(u32, u32); 8] = [
    (100, 200),
    (200, 400),
    (200, 2000),
    (500, 1000),
    (1000, 2000),
    (2000, 4000),
    (5000, 10_000),
    (20_000, 40_000),
];
const DEFAULTS: &str = "defaults";

/// What a pair did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// No more than runs of the defaults differ from each other.
    None,
    /// It is slower, and its maximum is below the pages that the defaults write.
    Caps,
    /// It differs without being a cap.
    Differs,
}

impl Effect {
    fn of(ratio: f64, noise: f64, most: u32, pages: f64) -> Effect {
        if (ratio - 1.0).abs() <= noise {
            Effect::None
        } else if ratio < 1.0 && f64::from(most) < pages {
            Effect::Caps
        } else {
            Effect::Differs
        }
    }

    fn told(self) -> &'static str {
        match self {
            Effect::None => "within the noise",
            Effect::Caps => "caps",
            Effect::Differs => "differs",
        }
    }
}

/// The pairs of one server.
struct Verdict {
    server: String,
    noise: Option<f64>,
    /// Pages per second that the defaults write.
    pages: f64,
    /// Of each pair that ran: its figures, its rate to that of the defaults, what it did.
    pairs: Vec<(String, Option<Effect>, f64)>,
}

/// Runs all pairs and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("io-capacity", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

fn label((usual, most): (u32, u32)) -> String {
    format!("{usual}/{most}")
}

/// A round: the defaults, one half of the pairs, the defaults, the other half.
fn turns() -> Vec<Option<(u32, u32)>> {
    let (first, second) = PAIRS.split_at(PAIRS.len() / 2);
    let half = |pairs: &[(u32, u32)]| std::iter::once(None).chain(pairs.iter().copied().map(Some)).collect();
    let halves: [Vec<_>; 2] = [half(first), half(second)];
    halves.concat()
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let sizes = setup.sizes.settled();
    let servers = setup.peers.beside(program)?;
    announce("io-capacity", servers.len() * turns().len() * sizes.rounds as usize, &sizes);
    let cap = Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 };
    let mut room = Room::new(place, &sizes, servers.len() as u64 * disk_mib(&sizes, setup.redo), true)?;
    let pool = (2 * sizes.data_mib()).max(128);
    let contestant = |server: &Server, turn: Option<(u32, u32)>| {
        let mut settings = vec![format!("--innodb-buffer-pool-size={pool}M"), server.redo(setup.redo)];
        if !server.is_ours() {
            settings.push("--skip-log-bin".to_owned());
        }
        if let Some((usual, most)) = turn {
            settings.push(format!("--innodb-io-capacity={usual}"));
            settings.push(format!("--innodb-io-capacity-max={most}"));
        }
        server.with(settings)
    };
    for server in &servers {
        room.fill(&contestant(server, None))?;
    }
    let mut runs = Vec::new();
    for round in 1..=sizes.rounds {
        for server in &servers {
            for turn in turns() {
                runs.push(room.measure(&Trial {
                    group: server.name.clone(),
                    setting: turn.map_or_else(|| DEFAULTS.to_owned(), label),
                    round,
                    contestant: &contestant(server, turn),
                    profile: Profile::capped(cap),
                    script: "oltp_write_only",
                })?);
            }
        }
    }
    drop(room);
    let verdicts: Vec<Verdict> = servers.iter().map(|server| verdict(&server.name, &runs)).collect();
    let report = Report {
        name: "io-capacity",
        described: format!(
            "oltp_write_only, {} × {} rows, {} clients, pool {pool} MiB, redo log {} MiB, disk {} operations/s and {} MB/s; medians of {} runs of {} s, in turn.",
            sizes.tables,
            sizes.rows,
            sizes.threads,
            setup.redo,
            setup.operations,
            setup.megabytes,
            sizes.rounds,
            sizes.time
        ),
        tables: table(&verdicts, &runs).to_string(),
        conclusion: verdicts.iter().map(conclusion).collect::<Vec<_>>().join(" "),
        setup: json!({
            "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
            "warm_up": sizes.warm_up, "rounds": sizes.rounds, "pool_mib": pool, "redo_mib": setup.redo,
            "disk": cap,
        }),
    };
    report.publish(sizes.output.as_deref(), &runs)
}

fn of<'r>(runs: &'r [Run], server: &str, setting: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.server == server && run.setting == setting).collect()
}

fn verdict(server: &str, runs: &[Run]) -> Verdict {
    let rates = |setting: &str| figures(&of(runs, server, setting), |run| run.transactions_per_second);
    let defaults = rates(DEFAULTS);
    let pages = median(figures(&of(runs, server, DEFAULTS), |run| run.pages_written_per_second));
    let noise = noise(&defaults);
    let pairs = PAIRS.iter().map(|&pair| {
        let ratio = median(rates(&label(pair))) / median(defaults.clone());
        (label(pair), noise.map(|noise| Effect::of(ratio, noise, pair.1, pages)), ratio)
    });
    Verdict { server: server.to_owned(), noise, pages, pairs: pairs.collect() }
}

fn table(verdicts: &[Verdict], runs: &[Run]) -> Table {
    let mut table = Table::new(
        &["server", "io_capacity/_max"],
        &["transactions/s", "÷ defaults", "CoV", "p99 ms", "pages written/s", "effect"],
    );
    for verdict in verdicts {
        let mut row = |setting: &str, ratio: f64, told: String| {
            let runs = of(runs, &verdict.server, setting);
            let median = |figure: fn(&Run) -> f64| median(figures(&runs, figure));
            table.row(vec![
                verdict.server.clone(),
                setting.to_owned(),
                format!("{:.0}", median(|run| run.transactions_per_second)),
                format!("{ratio:.3}"),
                format!("{:.3}", median(|run| run.coefficient_of_variation)),
                format!("{:.1}", median(|run| run.p99_ms)),
                format!("{:.0}", median(|run| run.pages_written_per_second)),
                told,
            ]);
        };
        row(DEFAULTS, 1.0, format!("noise {}", percent(verdict.noise)));
        for (pair, effect, ratio) in &verdict.pairs {
            row(pair, *ratio, effect.map_or_else(|| "unknown".to_owned(), |effect| effect.told().to_owned()));
        }
    }
    table
}

fn conclusion(verdict: &Verdict) -> String {
    let named = |wanted: Effect| -> Vec<&str> {
        let such = verdict.pairs.iter().filter(|(_, effect, _)| *effect == Some(wanted));
        such.map(|(pair, _, _)| pair.as_str()).collect()
    };
    let Some(noise) = verdict.noise else {
        return format!("{}: one run of the defaults does not tell what is noise.", verdict.server);
    };
    let (none, caps, differ) = (named(Effect::None), named(Effect::Caps), named(Effect::Differs));
    let mut text = format!(
        "{}: {} of {} settings change nothing beyond the noise of {}",
        verdict.server,
        none.len(),
        verdict.pairs.len(),
        percent(Some(noise))
    );
    if !caps.is_empty() {
        text += &format!("; {:.0} pages/s of the defaults are capped by {}", verdict.pages, caps.join(", "));
    }
    if !differ.is_empty() {
        text += &format!("; without being a cap it is otherwise with {}", differ.join(", "));
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::room::tests::run;

    /// One round at a rate for each turn; the defaults write 1000 pages a second.
    fn round(rate: impl Fn(&str) -> f64) -> Vec<Run> {
        let mut defaults = [100.0, 102.0].into_iter();
        let setting = |turn: Option<(u32, u32)>| turn.map_or_else(|| DEFAULTS.to_owned(), label);
        let runs = turns().into_iter().map(setting).map(|setting| {
            let rate = if setting == DEFAULTS { defaults.next().unwrap_or(101.0) } else { rate(&setting) };
            run("Untorn", &setting, 1, rate)
        });
        runs.collect()
    }

    #[test]
    fn a_round_has_all_pairs_and_the_defaults_at_its_beginning_and_in_its_middle() {
        let turns = turns();
        assert_eq!(turns.len(), 10);
        assert_eq!((turns[0], turns[5]), (None, None));
        assert!(PAIRS.iter().all(|pair| turns.contains(&Some(*pair))));
    }

    #[test]
    fn what_changes_nothing_is_told_from_what_caps() {
        let runs = round(|setting| if setting == "100/200" { 60.0 } else { 101.5 });
        let verdict = verdict("Untorn", &runs);
        let text = conclusion(&verdict);
        assert!(
            text.contains("7 of 8 settings change nothing beyond the noise of 2.0 %; 1000 pages/s of the defaults are capped by 100/200."),
            "{text}"
        );
        let table = table(&[verdict], &runs).to_string();
        assert!(table.contains("| Untorn | 100/200 | 60 | 0.594 |") && table.contains("| caps |"), "{table}");
    }

    #[test]
    fn a_setting_that_matters_without_capping_is_named() {
        let text = conclusion(&verdict(
            "Untorn",
            &round(|setting| if setting == "2000/4000" { 150.0 } else { 101.0 }),
        ));
        assert!(text.ends_with("; without being a cap it is otherwise with 2000/4000."), "{text}");
        // Slow, but its maximum is above what the defaults write: no cap.
        assert_eq!(Effect::of(0.5, 0.1, 2000, 1000.0), Effect::Differs);
        // Faster below the maximum: no cap either.
        assert_eq!(Effect::of(1.5, 0.1, 200, 1000.0), Effect::Differs);
    }
}
