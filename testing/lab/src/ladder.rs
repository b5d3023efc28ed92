//! What a transaction costs the device, step by step: page sizes from 4 to 64 KiB, by sizes of the redo log,
//! by doublewrite on and off.
//!
//! A small page writes less that did not change; a large redo log lets a page gather more changes before it
//! is written; without doublewrite each page is written once. Device figures are the kernel's counters of the
//! disk, redo log and file system included. A page size that a server refuses is a row that says so.

use crate::capped_disk::{Cap, Profile};
use crate::experiment::report::Report;
use crate::experiment::room::{Room, Run, Trial, disk_mib, figures};
use crate::experiment::servers::{Contestant, Peers, Server, stock};
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
    /// Page sizes in KiB: 4, 8, 16, 32 or 64 each.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8, 16, 32, 64],
          value_parser = page_size)]
    pages: Vec<u64>,
    /// Sizes of the redo log in MiB; in the short form only the first and the last.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1024],
          value_parser = clap::value_parser!(u64).range(8..))]
    redo: Vec<u64>,
    /// Ways of `innodb_doublewrite`.
    #[arg(long, value_delimiter = ',', default_values = ["ON", "OFF"])]
    doublewrite: Vec<String>,
    /// Buffer pool in MiB; by default the data fit in.
    #[arg(long)]
    pool: Option<u64>,
    /// Operations per second of the disk, reads and writes together; 0: any number.
    #[arg(long, default_value_t = 4000)]
    operations: u64,
    /// MB read and written per second, together; 0: any number.
    #[arg(long, default_value_t = 100)]
    megabytes: u64,
}

fn page_size(text: &str) -> Result<u64, String> {
    match text {
        "4" | "8" | "16" | "32" | "64" => text.parse().map_err(|error| format!("{error}")),
        _ => Err("page sizes are 4, 8, 16, 32 and 64 KiB".to_owned()),
    }
}

const SCRIPT: &str = "oltp_write_only";
/// What every server runs with unless it is told something else.
const USUAL_PAGE: u64 = 16;

/// A step of the ladder on one server, with its runs; or why there are none.
struct Step {
    server: String,
    page: u64,
    redo: u64,
    doublewrite: String,
    /// Medians.
    figures: Option<Figures>,
}

#[derive(Clone, Copy)]
struct Figures {
    transactions: f64,
    p99_ms: f64,
    writes: f64,
    kib: f64,
    flushes: f64,
    log_bytes: f64,
}

/// Whether the second step is the other end of a side that the first is on.
type Above = fn(&Step, &Step) -> bool;

/// A server that does not run with pages of this size, and what it says.
struct Refusal {
    server: String,
    page: u64,
    why: String,
}

/// Runs all steps and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("ladder", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

impl Setup {
    fn redo_sizes(&self) -> Vec<u64> {
        match self.redo[..] {
            [first, .., last] if self.sizes.short => vec![first, last],
            _ => self.redo.clone(),
        }
    }

    fn pool(&self, sizes: &Sizes) -> u64 {
        // The largest pages want a pool of some of their extents.
        self.pool.unwrap_or_else(|| (2 * sizes.data_mib()).max(128))
    }

    fn contestant(&self, server: &Server, page: u64, redo: u64, doublewrite: &str) -> Contestant {
        let pool = self.pool(&self.sizes.settled());
        let mut settings = vec![
            format!("--innodb-page-size={page}K"),
            format!("--innodb-buffer-pool-size={pool}M"),
            format!("--innodb-doublewrite={doublewrite}"),
            server.redo(redo),
        ];
        if !server.is_ours() {
            settings.extend(stock(2000));
        }
        let contestant = server.with(settings);
        Contestant { directory: format!("{}-{page}", contestant.directory), ..contestant }
    }
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let sizes = setup.sizes.settled();
    let servers = setup.peers.beside(program)?;
    let (redo_sizes, pool) = (setup.redo_sizes(), setup.pool(&sizes));
    let each = redo_sizes.len() * setup.doublewrite.len() * sizes.rounds as usize;
    announce("ladder", servers.len() * setup.pages.len() * each, &sizes);
    let most = redo_sizes.iter().copied().max().unwrap_or(0);
    // One page size is on the disk at a time, of all servers.
    let mut room = Room::new(place, &sizes, servers.len() as u64 * disk_mib(&sizes, most), true)?;
    let cap = Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 };
    let (mut runs, mut refusals) = (Vec::new(), Vec::new());
    for &page in &setup.pages {
        let mut fit = Vec::new();
        for server in &servers {
            let first = setup.contestant(server, page, most, "ON");
            match room.fill(&first) {
                Ok(()) => fit.push(server),
                // The usual size must work: there something else is wrong.
                Err(error) if page == USUAL_PAGE => return Err(error),
                Err(error) => {
                    let why = reason(&format!("{error:#}"));
                    println!("{}, pages of {page} KiB: {why}", server.name);
                    refusals.push(Refusal { server: server.name.clone(), page, why });
                }
            }
        }
        for round in 1..=sizes.rounds {
            for (redo, doublewrite) in steps(&redo_sizes, &setup.doublewrite) {
                for server in &fit {
                    runs.push(room.measure(&Trial {
                        group: format!("pages of {page} KiB"),
                        setting: setting(redo, doublewrite),
                        round,
                        contestant: &setup.contestant(server, page, redo, doublewrite),
                        profile: Profile::capped(cap),
                        script: SCRIPT,
                    })?);
                }
            }
        }
        for server in &servers {
            room.clear(&setup.contestant(server, page, most, "ON"))?;
        }
    }
    drop(room);
    let mut all = Vec::new();
    for server in &servers {
        for &page in &setup.pages {
            for (redo, doublewrite) in steps(&redo_sizes, &setup.doublewrite) {
                all.push(step(&server.name, page, redo, doublewrite, &runs));
            }
        }
    }
    let report = Report {
        name: "ladder",
        described: format!(
            "{SCRIPT}, {} × {} rows, {} clients, pool {pool} MiB, disk {} operations/s and {} MB/s; medians of {} runs of {} s, in turn. Device figures are for a transaction.",
            sizes.tables,
            sizes.rows,
            sizes.threads,
            setup.operations,
            setup.megabytes,
            sizes.rounds,
            sizes.time
        ),
        tables: table(&all, &refusals).to_string(),
        conclusion: conclusion(&servers, &all, &refusals),
        setup: json!({
            "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
            "warm_up": sizes.warm_up, "rounds": sizes.rounds, "pool_mib": pool, "disk": cap,
            "refusals": refusals.iter().map(|refusal| json!({
                "server": refusal.server, "page_kib": refusal.page, "why": refusal.why,
            })).collect::<Vec<_>>(),
        }),
    };
    report.publish(sizes.output.as_deref(), &runs)
}

fn setting(redo: u64, doublewrite: &str) -> String {
    format!("redo log {redo} MiB, doublewrite {doublewrite}")
}

/// Redo sizes by ways of doublewrite.
fn steps<'a>(redo: &'a [u64], doublewrite: &'a [String]) -> impl Iterator<Item = (u64, &'a str)> {
    redo.iter().flat_map(|&redo| doublewrite.iter().map(move |way| (redo, way.as_str())))
}

/// The line of an error that names the page size or is an error of the server, else the first.
fn reason(error: &str) -> String {
    let telling = |line: &&str| line.to_lowercase().replace(['-', '_'], " ").contains("page size");
    let line = error
        .lines()
        .find(telling)
        .or_else(|| error.lines().find(|line| line.contains("ERROR")))
        .or_else(|| error.lines().next());
    line.unwrap_or("no reason").trim().to_owned()
}

fn step(server: &str, page: u64, redo: u64, doublewrite: &str, runs: &[Run]) -> Step {
    let (group, setting) = (format!("pages of {page} KiB"), setting(redo, doublewrite));
    let runs: Vec<&Run> = runs
        .iter()
        .filter(|run| run.server == server && run.group == group && run.setting == setting)
        .collect();
    let of = |figure: fn(&Run) -> f64| median(figures(&runs, figure));
    let figures = (!runs.is_empty()).then(|| Figures {
        transactions: of(|run| run.transactions_per_second),
        p99_ms: of(|run| run.p99_ms),
        writes: of(|run| run.device_writes),
        kib: of(|run| run.device_kib_written),
        flushes: of(|run| run.device_flushes),
        log_bytes: of(|run| run.log_bytes),
    });
    Step { server: server.to_owned(), page, redo, doublewrite: doublewrite.to_owned(), figures }
}

fn table(steps: &[Step], refusals: &[Refusal]) -> Table {
    let mut table = Table::new(
        &["server", "page KiB", "redo log MiB", "doublewrite"],
        &["transactions/s", "p99 ms", "device writes", "KiB written", "flushes", "log bytes"],
    );
    for step in steps {
        let mut cells = vec![step.server.clone(), step.page.to_string(), step.redo.to_string()];
        cells.push(step.doublewrite.clone());
        if let Some(figures) = step.figures {
            cells.push(format!("{:.0}", figures.transactions));
            cells.push(format!("{:.1}", figures.p99_ms));
            cells.push(format!("{:.2}", figures.writes));
            cells.push(format!("{:.1}", figures.kib));
            cells.push(format!("{:.2}", figures.flushes));
            cells.push(format!("{:.0}", figures.log_bytes));
            table.row(cells);
        }
    }
    for refusal in refusals {
        let page = refusal.page.to_string();
        table.row(vec![refusal.server.clone(), page, String::new(), String::new(), "refused".to_owned()]);
    }
    table
}

/// For each server: from the top to the bottom of each side of the ladder, all else equal.
fn conclusion(servers: &[Server], steps: &[Step], refusals: &[Refusal]) -> String {
    let mut sentences = Vec::new();
    for server in servers {
        let of_server: Vec<&Step> = steps.iter().filter(|step| step.server == server.name).collect();
        let mut parts = Vec::new();
        let sides: [(&str, Above); 3] = [
            ("pages", |a, b| (a.redo, &a.doublewrite) == (b.redo, &b.doublewrite) && a.page < b.page),
            ("redo log", |a, b| (a.page, &a.doublewrite) == (b.page, &b.doublewrite) && a.redo < b.redo),
            ("doublewrite", |a, b| (a.page, a.redo) == (b.page, b.redo) && a.doublewrite != b.doublewrite),
        ];
        for (side, above) in sides {
            parts.extend(difference(&of_server, side, above));
        }
        let refused: Vec<String> = refusals
            .iter()
            .filter(|refusal| refusal.server == server.name)
            .map(|refusal| format!("{} KiB", refusal.page))
            .collect();
        if !refused.is_empty() {
            parts.push(format!("it refuses pages of {}", refused.join(", ")));
        }
        if !parts.is_empty() {
            sentences.push(format!("{}: {}.", server.name, parts.join("; ")));
        }
    }
    sentences.join(" ")
}

/// The two steps furthest apart of which one is above the other.
fn difference(steps: &[&Step], side: &str, above: Above) -> Option<String> {
    let first = steps.iter().find(|step| step.figures.is_some() && steps.iter().any(|b| above(step, b)))?;
    let last = steps.iter().rfind(|step| step.figures.is_some() && above(first, step))?;
    let (one, other) = (first.figures?, last.figures?);
    let told = |step: &Step| match side {
        "pages" => format!("{} KiB", step.page),
        "redo log" => format!("{} MiB", step.redo),
        _ => step.doublewrite.clone(),
    };
    Some(format!(
        "{side} {} to {}: KiB written for a transaction {:.1} to {:.1}, transactions/s × {:.2}",
        told(first),
        told(last),
        one.kib,
        other.kib,
        other.transactions / one.transactions
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::servers::tests::ours;

    fn example() -> Vec<Step> {
        let mut all = Vec::new();
        for page in [4, 16] {
            for redo in [64, 1024] {
                for doublewrite in ["ON", "OFF"] {
                    let kib = page as f64 * if doublewrite == "ON" { 2.0 } else { 1.0 } * 64.0 / redo as f64;
                    let figures = Figures {
                        transactions: 1000.0 / kib,
                        p99_ms: 1.0,
                        writes: 2.0,
                        kib,
                        flushes: 0.1,
                        log_bytes: 9.0,
                    };
                    let (server, doublewrite) = ("Untorn".to_owned(), doublewrite.to_owned());
                    all.push(Step { server, page, redo, doublewrite, figures: Some(figures) });
                }
            }
        }
        all
    }

    #[test]
    fn the_conclusion_goes_down_each_side_with_all_else_equal() {
        let text = conclusion(&[ours()], &example(), &[]);
        for part in [
            "pages 4 KiB to 16 KiB: KiB written for a transaction 8.0 to 32.0, transactions/s × 0.25",
            "redo log 64 MiB to 1024 MiB: KiB written for a transaction 8.0 to 0.5, transactions/s × 16.00",
            "doublewrite ON to OFF: KiB written for a transaction 8.0 to 4.0, transactions/s × 2.00",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_refused_size_is_a_row_and_a_part_of_the_sentence() {
        let mut steps = example();
        for step in steps.iter_mut().filter(|step| step.page == 4) {
            step.figures = None;
        }
        let refusals = [Refusal { server: "Untorn".to_owned(), page: 4, why: "page size 4096".to_owned() }];
        let text = conclusion(&[ours()], &steps, &refusals);
        assert!(text.contains("it refuses pages of 4 KiB") && !text.contains("pages 4 KiB to"), "{text}");
        let table = table(&steps, &refusals).to_string();
        assert_eq!(table.lines().count(), 2 + 4 + 1);
        assert!(table.contains("| Untorn | 4 |  |  | refused |"), "{table}");
    }

    #[test]
    fn the_reason_is_the_line_about_the_page_size() {
        let error =
            "the server did not start; its log ends with:\nnoise\n[ERROR] innodb-page-size=5K: no\nmore";
        assert_eq!(reason(error), "[ERROR] innodb-page-size=5K: no");
        assert_eq!(reason("first\nsecond [ERROR] x"), "second [ERROR] x");
        assert_eq!(reason("first\nsecond"), "first");
    }

    #[test]
    fn the_steps_are_all_pairs() {
        let ways = ["ON".to_owned(), "OFF".to_owned()];
        let all: Vec<_> = steps(&[64, 256], &ways).collect();
        assert_eq!(all, [(64, "ON"), (64, "OFF"), (256, "ON"), (256, "OFF")]);
    }
}
