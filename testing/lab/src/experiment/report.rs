//! What an experiment leaves: the table and the conclusion as Markdown, a chart, every second as CSV, and a
//! record of what was run where.

use super::room::Run;
use crate::bench::provenance;
use crate::command;
use crate::time_chart::{self, Chart, Line};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Of one experiment.
pub struct Report {
    /// Its name on the command line.
    pub name: &'static str,
    /// What was measured, in a line.
    pub described: String,
    /// Tables and what stands between them.
    pub tables: String,
    /// What the figures say.
    pub conclusion: String,
    /// Sizes and settings, for the record.
    pub setup: Value,
}

impl Report {
    /// Prints table and conclusion and writes the files.
    pub fn publish(&self, output: Option<&Path>, runs: &[Run]) -> Result<()> {
        let text = format!("{}\n\n{}\n\n{}\n", self.described, self.tables.trim_end(), self.conclusion);
        let fallback = PathBuf::from("target").join(self.name);
        let files = Files::at(output.unwrap_or(&fallback))?;
        let mut record = self.setup.clone();
        if let Value::Object(fields) = &mut record {
            fields.insert("conclusion".to_owned(), json!(self.conclusion));
            fields.insert("runs".to_owned(), serde_json::to_value(runs)?);
        }
        files.write(&text, &charts(runs), &seconds_as_csv(runs), record)
    }
}

/// Files of one name and several endings.
pub struct Files(PathBuf);

impl Files {
    /// Below the repository, unless the path is absolute; makes the directory.
    pub fn at(output: &Path) -> Result<Files> {
        let base = command::root().join(output);
        base.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(|| base.display().to_string())?;
        Ok(Files(base))
    }

    /// Behind the name, which may have a dot of its own.
    fn path(&self, ending: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(format!(".{ending}"));
        path.into()
    }

    /// Prints the text and writes it, with chart, seconds and record; where and when it was run joins the
    /// record.
    pub fn write(&self, text: &str, charts: &[Chart], seconds: &str, mut record: Value) -> Result<()> {
        println!("\n{text}");
        std::fs::write(self.path("md"), text)?;
        time_chart::write(&self.path("svg"), charts)?;
        std::fs::write(self.path("csv"), seconds)?;
        let (commit, changed) = provenance::commit()?;
        if let Value::Object(fields) = &mut record {
            fields.insert("time".to_owned(), json!(provenance::now()?));
            fields.insert("commit".to_owned(), json!(commit));
            fields.insert("sources_changed".to_owned(), json!(changed));
            fields.insert("machine".to_owned(), serde_json::to_value(provenance::Machine::here()?)?);
        }
        std::fs::write(self.path("json"), serde_json::to_string_pretty(&record)? + "\n")?;
        println!("chart {}, table .md, seconds .csv, record .json", self.path("svg").display());
        Ok(())
    }
}

/// The groups, in the order of their first runs.
fn groups(runs: &[Run]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    runs.iter().map(|run| run.group.as_str()).filter(|group| seen.insert(*group)).collect()
}

/// A chart for each group: transactions in each second of the last run of each kind.
fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for group in groups(runs) {
        let mut lines: Vec<Line> = Vec::new();
        for run in runs.iter().filter(|run| run.group == group) {
            let rates: Vec<f64> = run.seconds.iter().map(|second| second.transactions).collect();
            let line = Line::of_seconds(&format!("{}, {}", run.server, run.setting), &rates);
            lines.retain(|known| known.name != line.name);
            lines.push(line);
        }
        let title = format!("{group}: transactions in each second");
        charts.push(Chart { title, unit: "transactions", lines });
    }
    charts
}

/// The points of all lines.
pub fn points_as_csv(charts: &[Chart]) -> String {
    let mut text = "chart,line,second,figure\n".to_owned();
    for chart in charts {
        let title = chart.title.replace(',', ";");
        for line in &chart.lines {
            let name = line.name.replace(',', ";");
            text.extend(line.points.iter().map(|(at, figure)| format!("{title},{name},{at},{figure}\n")));
        }
    }
    text
}

/// Every second of every run.
fn seconds_as_csv(runs: &[Run]) -> String {
    let mut text = "group,server,setting,round,second,transactions,p99_ms,age,age_max,pages_written,log_bytes,device_reads,device_writes,device_bytes_written,processor\n".to_owned();
    let plain = |words: &str| words.replace(',', ";");
    for run in runs {
        for (at, second) in run.seconds.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                plain(&run.group),
                plain(&run.server),
                plain(&run.setting),
                run.round,
                at + 1,
                second.transactions,
                second.p99_ms,
                second.age,
                second.age_max,
                second.pages,
                second.log_bytes,
                second.device_reads,
                second.device_writes,
                second.device_bytes_written,
                second.processor,
            );
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::experiment::room::tests::run;
    use crate::scratch::Scratch;

    fn runs() -> Vec<Run> {
        vec![run("b", "x, y", 1, 10.0), run("a", "z", 1, 20.0), run("b", "x, y", 2, 30.0)]
    }

    #[test]
    fn a_chart_for_each_group_has_the_last_run_of_each_kind() {
        let charts = charts(&runs());
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].lines.len(), 1);
        assert_eq!(charts[0].lines[0].points[0], (1.0, 30.0));
        assert!(charts[1].title.starts_with("a:"));
    }

    #[test]
    fn every_second_is_a_line_with_as_many_fields_as_the_head() {
        let text = seconds_as_csv(&runs());
        let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields, vec![15; 1 + 3 * 4]);
        assert!(text.contains("\nb,Untorn,x; y,2,4,30,"), "{text}");
    }

    #[test]
    fn a_report_leaves_table_chart_seconds_and_record() {
        let place = Scratch::new("experiment-report").expect("a directory");
        let report = Report {
            name: "nothing",
            described: "Nothing.".to_owned(),
            tables: "| a |\n|---|\n".to_owned(),
            conclusion: "All is well.".to_owned(),
            setup: json!({ "rows": 1 }),
        };
        let output = place.path().join("deep/v1.2");
        report.publish(Some(&output), &runs()).expect("published");
        let read = |ending: &str| {
            let path = place.path().join(format!("deep/v1.2.{ending}"));
            std::fs::read_to_string(&path).expect(ending)
        };
        assert_eq!(read("md"), "Nothing.\n\n| a |\n|---|\n\nAll is well.\n");
        assert!(read("svg").contains("prefers-color-scheme:dark") && read("csv").starts_with("group,"));
        let record: Value = serde_json::from_str(&read("json")).expect("JSON");
        assert_eq!((&record["rows"], &record["conclusion"]), (&json!(1), &json!("All is well.")));
        assert_eq!(record["runs"][2]["transactions_per_second"], json!(30.0));
        assert!(record["machine"]["cores"].is_u64());
    }
}
