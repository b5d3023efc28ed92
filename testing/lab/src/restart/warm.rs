//! How soon the rate is back after a clean stop, with the buffer pool's dump loaded and without.
//!
//! The volume gives more bytes than pages of 16 KiB: a server that reads one page for each miss is held
//! by its requests. The start counts, as a client sees it.

use super::{Found, Setup, load, pool};
use crate::capped_disk::{Cap, CapKind, CappedDisk, Profile};
use crate::experiment::judgement::warm_after;
use crate::experiment::servers::{Contestant, Server, stock};
use crate::experiment::table::Table;
use crate::server_process::ServerProcess;
use crate::statistics::median;
use crate::sysbench::{self, figure};
use crate::time_chart::{Chart, Line};
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Reads only: what is missing is not hidden behind a log.
const SCRIPT: &str = "oltp_read_only";
/// How the keys are drawn: every page as likely as any other, and few pages that most ask for.
const DISTRIBUTIONS: [&str; 2] = ["uniform", "special"];
/// The part of the time without a dump that the one with it may take.
const GOAL: f64 = 1.0 / 3.0;

/// One restart.
#[derive(Clone, Serialize)]
struct Restart {
    server: String,
    distribution: &'static str,
    loaded: bool,
    round: u32,
    /// Queries a second before the stop.
    steady: f64,
    /// From the start of the process to the load.
    start_seconds: f64,
    /// From the start of the process until 90 % are back; `None` when the run was too short.
    warm_seconds: Option<f64>,
    #[serde(skip)]
    seconds: Vec<f64>,
}

/// All restarts of all servers.
pub fn run(servers: &[Server], setup: &Setup, place: &Path) -> Result<Found> {
    let sizes = &setup.sizes;
    let bytes = servers.len() as u64 * ((sizes.data_mib() * 2 + 1536) << 20);
    let mut disk = CappedDisk::create(place, bytes, CapKind::Shared, true)?;
    let volume = Profile::gp2(setup.volume, 1);
    let mut restarts = Vec::new();
    for server in servers {
        fill(server, setup, place, &disk)?;
        for distribution in DISTRIBUTIONS {
            let steady = steady(server, setup, place, &disk, distribution)?;
            for round in 1..=sizes.rounds {
                for loaded in [true, false] {
                    disk.behave_as(&volume)?;
                    let restart = restart(server, setup, place, &disk, distribution, loaded);
                    disk.limit(Cap::NONE)?;
                    let restart = Restart { round, steady, ..restart? };
                    let warm_seconds = warm_after(&restart.seconds, steady);
                    let restart = Restart {
                        warm_seconds: warm_seconds.map(|seconds| restart.start_seconds + seconds),
                        ..restart
                    };
                    println!(
                        "{}, {distribution}, {}, round {round}: {} s to 90 % of {steady:.0} queries/s",
                        server.name,
                        way(loaded),
                        told(restart.warm_seconds)
                    );
                    restarts.push(restart);
                }
            }
        }
    }
    Ok(found(&restarts, setup, &volume))
}

fn contestant(server: &Server, setup: &Setup, loaded: bool) -> Contestant {
    let mut settings = vec![pool(&setup.sizes), server.redo(setup.redo)];
    settings.push("--innodb-buffer-pool-dump-at-shutdown=ON".to_owned());
    settings.push("--innodb-buffer-pool-dump-pct=100".to_owned());
    settings.push(format!("--innodb-buffer-pool-load-at-startup={}", if loaded { "ON" } else { "OFF" }));
    settings.extend(if server.is_ours() { Vec::new() } else { stock(3000) });
    server.with(settings)
}

fn fill(server: &Server, setup: &Setup, place: &Path, disk: &CappedDisk) -> Result<()> {
    println!("{}: filling the tables", server.name);
    let running = contestant(server, setup, false).start(place, disk.path())?;
    sysbench::make_database(&running)?;
    load(&running, &setup.sizes, setup.sizes.tables.min(8)).run("oltp_read_write", "prepare", &[])?;
    running.stop().map(drop)
}

/// Queries of a second once everything is in memory; leaves the dump of it.
fn steady(
    server: &Server,
    setup: &Setup,
    place: &Path,
    disk: &CappedDisk,
    distribution: &str,
) -> Result<f64> {
    let running = contestant(server, setup, false).start(place, disk.path())?;
    queries(&running, setup, distribution, setup.sizes.warm_up.max(1))?;
    let rates = queries(&running, setup, distribution, setup.sizes.time)?;
    running.stop()?;
    Ok(median(rates))
}

fn restart(
    server: &Server,
    setup: &Setup,
    place: &Path,
    disk: &CappedDisk,
    distribution: &'static str,
    loaded: bool,
) -> Result<Restart> {
    let begin = Instant::now();
    let running = contestant(server, setup, loaded).start(place, disk.path())?;
    let start_seconds = begin.elapsed().as_secs_f64();
    let seconds = queries(&running, setup, distribution, 2 * setup.sizes.time)?;
    running.stop()?;
    let name = server.name.clone();
    Ok(Restart {
        server: name,
        distribution,
        loaded,
        round: 0,
        steady: 0.0,
        start_seconds,
        warm_seconds: None,
        seconds,
    })
}

/// Queries in each second of a run.
fn queries(server: &ServerProcess, setup: &Setup, distribution: &str, time: u32) -> Result<Vec<f64>> {
    let more = [format!("--time={time}"), format!("--rand-type={distribution}")];
    let more = [&*more[0], &*more[1], "--report-interval=1"];
    let output = load(server, &setup.sizes, setup.sizes.threads).run(SCRIPT, "run", &more)?;
    let reports = output.lines().filter(|line| line.starts_with("[ "));
    reports.map(|line| figure(line, " qps:").context("a report without qps")).collect()
}

fn way(loaded: bool) -> &'static str {
    if loaded { "loaded" } else { "cold" }
}

fn told(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "more than the run".to_owned(), |seconds| format!("{seconds:.1}"))
}

/// The middle of the rounds; a run that never got there counts as its length, which makes it a lower bound.
fn middle(restarts: &[Restart], server: &str, distribution: &str, loaded: bool) -> Option<f64> {
    let of = restarts.iter().filter(|restart| {
        restart.server == server && restart.distribution == distribution && restart.loaded == loaded
    });
    let seconds: Vec<f64> = of
        .map(|restart| restart.warm_seconds.unwrap_or(restart.start_seconds + restart.seconds.len() as f64))
        .collect();
    (!seconds.is_empty()).then(|| median(seconds))
}

fn found(restarts: &[Restart], setup: &Setup, volume: &Profile) -> Found {
    let sizes = &setup.sizes;
    let mut table = Table::new(
        &["server", "keys"],
        &["queries/s before", "s to 90 %, loaded", "s to 90 %, cold", "loaded ÷ cold"],
    );
    let (mut told, mut charts) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for restart in restarts {
        let key = (restart.server.clone(), restart.distribution);
        if seen.contains(&key) {
            continue;
        }
        let (server, distribution) = (restart.server.as_str(), restart.distribution);
        let (loaded, cold) =
            (middle(restarts, server, distribution, true), middle(restarts, server, distribution, false));
        let ratio = loaded.zip(cold).map_or(f64::NAN, |(loaded, cold)| loaded / cold);
        table.row(vec![
            server.to_owned(),
            distribution.to_owned(),
            format!("{:.0}", restart.steady),
            loaded.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
            cold.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
            format!("{ratio:.2}"),
        ]);
        told.push(format!("{server}, {distribution}: {ratio:.2}"));
        seen.push(key);
    }
    for distribution in DISTRIBUTIONS {
        let mut lines: Vec<Line> = Vec::new();
        for restart in restarts.iter().filter(|restart| restart.distribution == distribution) {
            let name = format!("{}, {}, {distribution}", restart.server, way(restart.loaded));
            lines.retain(|known| known.name != name);
            lines.push(Line::of_seconds(&name, &restart.seconds));
        }
        charts.push(Chart {
            title: format!("{SCRIPT}, {distribution}, after a restart: queries in each second"),
            unit: "queries",
            lines,
        });
    }
    let text = format!(
        "{SCRIPT}, {} × {} rows, all in memory, {} clients, a restart after a clean stop; gp2 volume of {} GiB: {} requests and {:.0} MB a second; seconds from the start of the process to 90 % of the rate before, medians of {} rounds.\n\n{table}\nWith the dump loaded, the part of the time without it (goal: {GOAL:.2} for Untorn): {}.\n",
        sizes.tables,
        sizes.rows,
        sizes.threads,
        setup.volume,
        volume.burst.map_or(volume.cap.operations, |burst| burst.operations),
        volume.cap.bytes as f64 / 1e6,
        sizes.rounds,
        told.join("; ")
    );
    Found { text, charts, record: json!({ "volume": volume, "restarts": restarts }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(loaded: bool, warm_seconds: Option<f64>) -> Restart {
        Restart {
            server: "Untorn".to_owned(),
            distribution: "uniform",
            loaded,
            round: 1,
            steady: 100.0,
            start_seconds: 0.5,
            warm_seconds,
            seconds: vec![50.0; 10],
        }
    }

    #[test]
    fn a_run_that_never_gets_warm_counts_as_its_length() {
        let restarts = [after(true, Some(2.0)), after(false, None)];
        assert_eq!(middle(&restarts, "Untorn", "uniform", true), Some(2.0));
        assert_eq!(middle(&restarts, "Untorn", "uniform", false), Some(10.5));
        assert_eq!(middle(&restarts, "MariaDB", "uniform", false), None);
    }
}
