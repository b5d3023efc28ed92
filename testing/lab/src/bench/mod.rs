//! The benchmark: sysbench on this server beside running stock servers.
//!
//! A comparison measures (`run`, in `rounds` of `sample`s) and writes down everything it saw as a `record`,
//! which nobody edits afterwards. What people read is made from the record: the `table`, the `chart`, and
//! the lines of the `history`. The method is in `docs/benchmarks/method.md`.

mod chart;
mod history;
pub(crate) mod provenance;
mod record;
mod rounds;
mod run;
mod sample;
mod server_under_test;
mod summary;
mod table;
mod workload;

pub use run::{Arguments, Comparison};
pub use server_under_test::Peer;

use crate::command::root;
use anyhow::{Context, Result};
use record::Record;
use std::path::Path;

/// Draws the chart of a record, into the one of the README by default.
pub fn chart_of(record: &Path, output: Option<&Path>) -> Result<()> {
    let record = Record::read(record)?;
    match output {
        Some(output) => draw(&record, output),
        None => draw(&record, &root().join("docs/img/sysbench.svg")),
    }
}

/// Prints the table of a record as Markdown.
pub fn table_of(record: &Path) -> Result<()> {
    print!("{}", table::markdown(&Record::read(record)?));
    Ok(())
}

/// Writes the chart of a record to a file.
fn draw(record: &Record, output: &Path) -> Result<()> {
    std::fs::write(output, chart::svg(record)?).with_context(|| output.display().to_string())?;
    println!("{}", output.display());
    Ok(())
}
