//! A stock Prometheus reads the server, by `--metrics-address` and by the stock `mysqld_exporter`, while
//! clients write: it takes every scrape, complains of nothing, and answers every expression of the Grafana
//! dashboard in `docs/grafana`.
//!
//! That a name is in the text is a test of the server's. Whether a scrape is taken, and whether an expression
//! finds anything, only Prometheus knows: a series that comes twice, a counter without `_total` or a bucket
//! that is missing goes unnoticed in the text.

use crate::exporter::Exporter;
use anyhow::{Context, Result, bail, ensure};
use lab::background_load::BackgroundLoad;
use lab::command::{Background, captured};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, free_port};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take until there is an answer to everything.
const PATIENCE: Duration = Duration::from_secs(180);

const DASHBOARD: &str = include_str!("../../../docs/grafana/untorn.json");

/// What the server says by itself, and what the exporter says of it.
const JOBS: [&str; 2] = ["untorn", "mysqld_exporter"];

/// Lets one read a server under load.
pub fn run(program: &Program) -> Result<()> {
    Scratch::with("prometheus", |place| run_in(program, place))
}

fn run_in(program: &Program, place: &Path) -> Result<()> {
    let metrics = format!("127.0.0.1:{}", free_port()?);
    let server = ServerProcess::start(program, place, &[&format!("--metrics-address={metrics}")])?;
    BackgroundLoad::prepare(&server)?;
    let load = BackgroundLoad::start(&server, 1)?;
    let exporter = Exporter::beside(&server, place)?;
    let prometheus = Prometheus::start(place, [&metrics, exporter.address()])?;
    let mut expressions = expressions(DASHBOARD, &metrics)?;
    ensure!(expressions.len() > 40, "the dashboard asks {} things", expressions.len());
    expressions.extend(JOBS.map(|job| format!("up{{job=\"{job}\"}} == 1")));
    let questions = |job: &str| format!("mysql_global_status_questions{{job=\"{job}\"}} > 0");
    expressions.extend(JOBS.map(questions));
    prometheus.wait_for_all(&expressions)?;
    // From the first scrape to the last one.
    let always_up = JOBS.map(|job| format!("min_over_time(up{{job=\"{job}\"}}[10m]) == 1"));
    ensure!(always_up.iter().all(|up| prometheus.answers(up)), "not every scrape was taken");
    complaint(&prometheus.log()?)?;
    println!("{} expressions answered, no complaint", expressions.len());
    drop((prometheus, exporter, load));
    server.stop().map(drop)
}

/// What the dashboard asks of one instance.
fn expressions(dashboard: &str, instance: &str) -> Result<Vec<String>> {
    let dashboard: Value = serde_json::from_str(dashboard)?;
    let panels = dashboard["panels"].as_array().context("a dashboard without panels")?;
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let asked = targets.map(|target| target["expr"].as_str().context("a target without an expression"));
    let filled = |asked: &str| asked.replace("$instance", instance).replace("$__rate_interval", "30s");
    asked.map(|asked| asked.map(filled)).collect()
}

/// An error if the log has a line above information.
fn complaint(log: &str) -> Result<()> {
    // Newer ones write levels in capitals.
    let complains = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["level=warn", "level=error"].iter().any(|level| line.contains(level))
    };
    match log.lines().find(complains) {
        Some(line) => bail!("in its log: {line}"),
        None => Ok(()),
    }
}

struct Prometheus {
    _process: Background,
    address: String,
    log: PathBuf,
}

impl Prometheus {
    fn start(place: &Path, targets: [&str; 2]) -> Result<Prometheus> {
        let jobs = JOBS.iter().zip(targets).map(|(job, target)| {
            format!("- {{job_name: {job}, static_configs: [{{targets: ['{target}']}}]}}\n")
        });
        let settings = place.join("prometheus.yml");
        let jobs: String = jobs.collect();
        std::fs::write(
            &settings,
            format!("global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n{jobs}"),
        )?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let log = place.join("prometheus.log");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", settings.display()));
        command.arg(format!("--storage.tsdb.path={}", place.join("prometheus").display()));
        command.arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let process = Background(command.spawn().context("cannot run prometheus")?);
        Ok(Prometheus { _process: process, address, log })
    }

    /// Asks what has no answer yet until everything has.
    fn wait_for_all(&self, expressions: &[String]) -> Result<()> {
        let begin = Instant::now();
        let mut left: Vec<&String> = expressions.iter().collect();
        loop {
            left.retain(|expression| !self.answers(expression));
            if left.is_empty() {
                return Ok(());
            }
            ensure!(begin.elapsed() < PATIENCE, "no answer to {left:#?}; its log:\n{}", self.log()?);
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Whether there is a series; quantiles of what has not happened are no number. While it starts nothing
    /// is answered.
    fn answers(&self, expression: &str) -> bool {
        let server = format!("http://{}", self.address);
        let mut asked = Command::new("promtool");
        asked.args(["query", "instant", &server, expression]);
        captured(&mut asked).is_ok_and(|answer| answer.contains(" => "))
    }

    fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_asks_of_one_instance() {
        let asked = expressions(DASHBOARD, "here:1").unwrap();
        assert!(asked.iter().all(|asked| asked.contains("instance=\"here:1\"") && !asked.contains('$')));
        assert!(asked.iter().any(|asked| asked.starts_with("rate(untorn_commits_total{")));
    }

    #[test]
    fn a_line_above_information_is_a_complaint() {
        complaint("ts=1 level=info msg=\"Server is ready\"\n").unwrap();
        let twice =
            "ts=1 level=info msg=x\nts=2 level=warn msg=\"Error on ingesting samples that are too old\"\n";
        assert!(complaint(twice).unwrap_err().to_string().contains("ts=2"));
        assert!(complaint("ts=1 level=error msg=x").is_err());
        assert!(complaint("time=1 level=ERROR msg=x").is_err());
    }
}
