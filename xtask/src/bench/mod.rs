//! Benchmarks: the criterion benches of every crate, and sysbench on this server beside running stock
//! servers.
//!
//! A comparison measures ([`compare`], [`measure`]) and writes down everything it saw as a [`record`], which
//! nobody edits afterwards. What people read is made from the record: the [`table`], the [`chart`], and the
//! lines of the [`history`]. The method is in `docs/benchmarks/method.md`.

mod chart;
mod compare;
mod contestant;
mod history;
mod load;
mod measure;
mod provenance;
mod record;
mod summary;
mod table;

use crate::packages;
use crate::server_process::{Kind, Program};
use crate::steps::{Steps, cargo, root};
use anyhow::{Context, Result};
use record::Record;
use std::path::{Path, PathBuf};

/// What is measured, or made from a record.
#[derive(clap::Subcommand)]
pub enum Benchmark {
    /// The criterion benchmarks of every crate.
    Criterion,
    /// sysbench on this server and on running stock servers, in turn: a table, a record, the history, a
    /// chart.
    Compare(compare::Arguments),
    /// Draws the chart of a record.
    Chart {
        /// A file of docs/benchmarks/runs.
        record: PathBuf,
        /// The SVG file; the one in the README by default.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Prints the table of a record as Markdown.
    Table {
        /// A file of docs/benchmarks/runs.
        record: PathBuf,
    },
}

/// Does what a `cargo xtask bench` command asks for.
pub fn run(benchmark: &Benchmark, steps: &mut Steps) -> Result<()> {
    match benchmark {
        Benchmark::Criterion => {
            steps.step("criterion benchmarks", || cargo(&["bench", "--workspace"], &[]));
            Ok(())
        }
        Benchmark::Compare(arguments) => {
            steps.step("packages", packages::install_missing);
            let comparison = compare::Comparison::new(arguments)?;
            let program = match &arguments.server_binary {
                Some(path) => Program::new(Kind::Untorn, path.clone()),
                None => steps.build_server()?,
            };
            steps.step("sysbench beside the peers", || comparison.run(&program));
            Ok(())
        }
        Benchmark::Chart { record, output } => {
            let output = output.clone().unwrap_or_else(|| root().join("docs/img/sysbench.svg"));
            draw(&Record::read(record)?, &output)
        }
        Benchmark::Table { record } => {
            print!("{}", table::markdown(&Record::read(record)?));
            Ok(())
        }
    }
}

/// Writes the chart of a record to a file.
fn draw(record: &Record, output: &Path) -> Result<()> {
    std::fs::write(output, chart::svg(record)?).with_context(|| output.display().to_string())?;
    println!("{}", output.display());
    Ok(())
}
