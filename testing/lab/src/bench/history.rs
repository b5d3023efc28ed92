//! The history: one line of CSV for each script and peer of each run, to see a ratio move over commits.

use super::record::Record;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

const HEADER: &str = "commit,date,script,peer,qps_ratio,cpu_ratio\n";

/// Adds the lines of a run to a file, which is made when it is missing.
pub fn append(path: &Path, record: &Record) -> Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    let new = file.metadata()?.len() == 0;
    let text = format!("{}{}", if new { HEADER } else { "" }, lines(record));
    file.write_all(text.as_bytes()).with_context(|| path.display().to_string())
}

/// Untorn's ratios to each peer; empty where a side was not measured. Names hold no comma and no quote.
fn lines(record: &Record) -> String {
    let ratio = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default();
    let mut text = String::new();
    for script in &record.load.scripts {
        for peer in record.peers() {
            let ratios = record.ratios(script, &peer.name);
            text += &format!(
                "{},{},{script},{},{},{}\n",
                record.commit_name(),
                record.day(),
                peer.name,
                ratio(ratios.speed),
                ratio(ratios.processor)
            );
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::append;
    use crate::bench::record::Record;
    use crate::bench::record::tests::example;
    use crate::scratch::Scratch;

    #[test]
    fn a_run_adds_a_line_for_each_script_and_peer() {
        let place = Scratch::new("bench-history").expect("a directory");
        let path = place.path().join("history.csv");
        append(&path, &example()).expect("the first run");
        append(&path, &Record { dirty: true, ..example() }).expect("the second run");
        let text = std::fs::read_to_string(&path).expect("read");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..5],
            [
                "commit,date,script,peer,qps_ratio,cpu_ratio",
                "0123abc,2026-11-23,oltp_point_select,A,2.0000,0.5000",
                "0123abc,2026-11-23,oltp_point_select,B,4.0000,",
                "0123abc,2026-11-23,oltp_write_only,A,1.0000,0.5000",
                "0123abc,2026-11-23,oltp_write_only,B,0.5000,",
            ]
        );
        assert_eq!((lines.len(), lines[5].split(',').next()), (9, Some("0123abc-dirty")));
    }
}
