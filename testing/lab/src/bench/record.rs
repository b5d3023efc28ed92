//! The record of a comparison: every figure of every round, and what is needed to judge it.
//!
//! One JSON file for a run, written once. Totals are kept as they were counted; what is per query is computed
//! by the reader of the record.

use super::provenance::Machine;
use super::workload::Load;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The layout that this program reads and writes.
pub const FORMAT: u32 = 1;

/// A whole run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Record {
    /// The layout of the file.
    pub format: u32,
    /// When the run began, in UTC: `2026-11-23T12:40:00Z`.
    pub began: String,
    /// Short hash of the commit.
    pub commit: String,
    /// The sources were not those of the commit, or nothing shows that the server was built from them.
    pub dirty: bool,
    pub machine: Machine,
    /// How this server kept pages from tearing, in its own words.
    pub page_protection: String,
    /// Version of sysbench.
    pub sysbench: String,
    pub load: Load,
    /// Ours first, then the peers.
    pub servers: Vec<Server>,
    /// In the order in which they were measured.
    pub samples: Vec<Sample>,
}

/// A server that was measured.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Server {
    pub name: String,
    /// `VERSION()` and `@@version_comment`.
    pub version: String,
    /// System variables that matter for speed and durability, where the server has them.
    pub settings: BTreeMap<String, String>,
}

/// One script on one server in one round. Counts are of the whole sample.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Sample {
    pub script: String,
    /// From 1.
    pub round: u32,
    /// Name of the server.
    pub server: String,
    pub queries: u64,
    pub queries_per_second: f64,
    /// 99 % of the script's transactions took at most this long, in milliseconds.
    pub p99_ms: f64,
    /// Errors that sysbench answers with another try: deadlocks, duplicate keys.
    pub ignored_errors: u64,
    /// Processor time of the server, user and system, in microseconds; `None` where its process is not known.
    pub processor_us: Option<u64>,
    /// Bytes that the server's process gave to the block layer; `None` where its process is not known, or
    /// another user's.
    pub bytes_written: Option<u64>,
    /// What the server's own counters moved by, for those that it has.
    pub status: BTreeMap<String, u64>,
}

impl Record {
    /// The name of its file: the day, the commit, and whether the sources were the commit's.
    pub fn file_name(&self) -> String {
        format!("{}-{}.json", self.day(), self.commit_name())
    }

    /// Writes a new file. One that exists already is left as it is, which is an error.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let mut file = match File::options().write(true).create_new(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                anyhow::bail!("{} exists; a record is never overwritten", path.display())
            }
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        file.write_all(text.as_bytes()).with_context(|| path.display().to_string())
    }

    /// Reads a file written by [`Record::write`].
    pub fn read(path: &Path) -> Result<Record> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let record: Record = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        ensure!(record.format == FORMAT, "{} has format {}, not {FORMAT}", path.display(), record.format);
        ensure!(!record.servers.is_empty(), "{} has no server", path.display());
        Ok(record)
    }

    /// The day of the run.
    pub fn day(&self) -> &str {
        self.began.split_once('T').map_or(&self.began, |(day, _)| day)
    }

    /// The commit, marked when the sources were not exactly its.
    pub fn commit_name(&self) -> String {
        format!("{}{}", self.commit, if self.dirty { "-dirty" } else { "" })
    }

    /// The servers that ours is compared with.
    pub fn peers(&self) -> &[Server] {
        self.servers.get(1..).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
pub mod tests {
    use super::{FORMAT, Record, Sample, Server};
    use crate::bench::provenance::Machine;
    use crate::bench::workload::Load;
    use crate::scratch::Scratch;
    use std::collections::BTreeMap;

    /// Two rounds of two scripts on ours and two peers. Ours does 100 and 400 queries/s; A half of it in the
    /// first script and as much in the second; B a quarter and the double. Each query takes ours 10 µs, A 20
    /// µs; B's process is not known.
    pub fn example() -> Record {
        let server = |name: &str| Server {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            settings: BTreeMap::from([("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned())]),
        };
        let rates = [("oltp_point_select", [100.0, 50.0, 25.0]), ("oltp_write_only", [400.0, 400.0, 800.0])];
        let mut samples = Vec::new();
        for round in 1..=2 {
            // The machine is slower in the second round, for all alike.
            let speed = 1.0 / f64::from(round);
            for (script, rates) in rates {
                for ((server, rate), processor) in
                    ["Untorn", "A", "B"].into_iter().zip(rates).zip([Some(10), Some(20), None])
                {
                    samples.push(Sample {
                        script: script.to_owned(),
                        round,
                        server: server.to_owned(),
                        queries: 1000,
                        queries_per_second: rate * speed,
                        p99_ms: 2.5,
                        ignored_errors: 0,
                        processor_us: processor.map(|each| each * 1000),
                        bytes_written: processor.map(|_| 4096 * 1000),
                        status: BTreeMap::from([("Innodb_data_fsyncs".to_owned(), 500)]),
                    });
                }
            }
        }
        Record {
            format: FORMAT,
            began: "2026-11-23T12:40:00Z".to_owned(),
            commit: "0123abc".to_owned(),
            dirty: false,
            machine: Machine {
                processor: "Abacus".to_owned(),
                cores: 2,
                memory_bytes: 24 << 30,
                kernel: "6.18".to_owned(),
            },
            page_protection: "doublewrite, 3 files".to_owned(),
            sysbench: "1.0.20".to_owned(),
            load: Load {
                rounds: 2,
                seconds: 10,
                threads: 16,
                tables: 4,
                rows: 100_000,
                scripts: rates.map(|(script, _)| script.to_owned()).to_vec(),
            },
            servers: ["Untorn", "A", "B"].map(server).to_vec(),
            samples,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let place = Scratch::new("record-round-trip").expect("a directory");
        let path = place.path().join("record.json");
        example().write(&path).expect("written");
        assert_eq!(Record::read(&path).expect("read"), example());
    }

    #[test]
    fn a_record_is_never_overwritten() {
        let place = Scratch::new("record-overwrite").expect("a directory");
        let path = place.path().join("record.json");
        example().write(&path).expect("written");
        let other = Record { commit: "fedcba9".to_owned(), ..example() };
        let error = other.write(&path).expect_err("refused");
        assert!(error.to_string().contains("never overwritten"), "{error}");
        assert_eq!(Record::read(&path).expect("read"), example());
    }

    #[test]
    fn another_format_is_refused() {
        let place = Scratch::new("record-format").expect("a directory");
        let path = place.path().join("record.json");
        Record { format: FORMAT + 1, ..example() }.write(&path).expect("written");
        assert!(Record::read(&path).is_err());
    }

    #[test]
    fn the_file_is_named_by_day_and_commit() {
        assert_eq!(example().file_name(), "2026-11-23-0123abc.json");
        assert_eq!(Record { dirty: true, ..example() }.file_name(), "2026-11-23-0123abc-dirty.json");
    }
}
