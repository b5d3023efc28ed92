//! What was measured, as a record and as a table.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engine::Kind;

/// What the engines do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// That of redb's benchmark: steps that end when they are done.
    Steps,
    /// YCSB's: loads that end when their time is up.
    Ycsb,
}

/// One step of one engine in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// Operations of the step.
    pub count: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Bytes that the process has sent towards the disk. Engines that write through the page cache are
    /// charged when a page becomes dirty.
    pub written_bytes: u64,
}

/// What an engine's process tells the one that has started it, each as a line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    Step(Step),
    /// Memory that belongs to no file.
    Resident(u64),
    /// The work is done; the process ends, or waits for its kill.
    Done,
    Failed(String),
}

impl Told {
    pub fn tell(&self) -> Result<()> {
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", serde_json::to_string(self)?)?;
        Ok(output.flush()?)
    }
}

/// What the processes of a run measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    pub steps: Vec<Step>,
    /// Memory that belongs to no file: after the last reads, of YCSB after all workloads.
    pub resident_bytes: Option<u64>,
}

/// One engine in one round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub engine: Kind,
    pub round: u32,
    #[serde(flatten)]
    pub part: Part,
    pub empty_bytes: Option<u64>,
    pub disk_bytes: Option<u64>,
    /// Why there is nothing behind the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// All that a comparison measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub workload: Workload,
    pub keys: u64,
    pub cache_bytes: u64,
    /// The most that a process may have, with its page cache.
    pub memory_bytes: Option<u64>,
    /// The most changes of a transaction of the bulk load and the removals, and of the reinsertion.
    pub transaction_pairs: Option<u64>,
    pub seed: u64,
    pub runs: Vec<Run>,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Record {
    /// Markdown tables with the medians of the rounds, and a line for each run that failed.
    pub fn tables(&self) -> String {
        let mut engines: Vec<Kind> = Vec::new();
        let mut steps: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !engines.contains(&run.engine) {
                engines.push(run.engine);
            }
            for step in &run.part.steps {
                if !steps.contains(&step.name.as_str()) {
                    steps.push(&step.name);
                }
            }
        }
        let mut text = String::new();
        let mut table = |title: &str, rows: &[&str], value: &dyn Fn(&Run, &str) -> Option<f64>| {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            text += &format!("\n| {title} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
            for row in rows {
                text += &format!("| {row} |");
                for engine in &engines {
                    let runs = self.runs.iter().filter(|run| run.engine == *engine);
                    let value = median(runs.filter_map(|run| value(run, row)).collect());
                    text += &value.map_or(" – |".to_owned(), |value| {
                        let digits = if value < 1000.0 { 3 } else { 0 };
                        format!(" {value:.digits$} |")
                    });
                }
                text += "\n";
            }
        };
        let step = |run: &Run, name: &str| run.part.steps.iter().find(|step| step.name == name).cloned();
        match self.workload {
            Workload::Steps => table("seconds", &steps, &|run, name| Some(step(run, name)?.seconds)),
            Workload::Ycsb => table("operations per second", &steps, &|run, name| {
                step(run, name).map(|step| step.count as f64 / step.seconds)
            }),
        }
        table("µs CPU per operation", &steps, &|run, name| {
            step(run, name).map(|step| step.cpu_seconds * 1e6 / step.count.max(1) as f64)
        });
        let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        table("MiB written in the whole step", &steps, &|run, name| {
            Some(mib(step(run, name)?.written_bytes))
        });
        let memory = match self.workload {
            Workload::Steps => "memory after the reads, before the removals",
            Workload::Ycsb => "memory after all workloads",
        };
        let sizes = ["files of an empty database", "files after the close", memory];
        table("MiB", &sizes, &|run, name| match name {
            "files of an empty database" => run.empty_bytes.map(mib),
            "files after the close" => run.disk_bytes.map(mib),
            _ => run.part.resident_bytes.map(mib),
        });
        for run in &self.runs {
            if let Some(failed) = &run.failed {
                text += &format!("\nFailed: {}, round {}, {failed}\n", run.engine.name(), run.round + 1);
            }
        }
        text
    }
}
