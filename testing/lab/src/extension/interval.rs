//! What a server does in a stretch of time under a load that goes on: queries per second, and what one of
//! them costs.
//!
//! On a machine that others share queries per second and processor time drift; the number of instructions
//! does not. It is counted by `perf`, where there is one and the processor lets it.

use crate::server_process::{ServerProcess, processor_time, status_number};
use anyhow::{Result, ensure};
use mysql::Conn;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Figures of one stretch.
pub struct Interval {
    pub queries_per_second: f64,
    /// Seconds of the server's processor time for a query.
    pub processor_time: f64,
    /// Instructions of the server for a query, those of the kernel included, if they can be counted.
    pub instructions: Option<f64>,
}

impl Interval {
    /// Lasts that long.
    pub fn measure(server: &ServerProcess, connection: &mut Conn, lasts: Duration) -> Result<Interval> {
        let (queries, time) = (status_number(connection, "Questions")?, processor_time(server.id())?);
        let begin = Instant::now();
        let instructions = instructions_during(server.id(), lasts);
        // The time it took to begin and end counting is part of the stretch.
        let took = begin.elapsed().as_secs_f64();
        let queries = status_number(connection, "Questions")?.saturating_sub(queries) as f64;
        ensure!(queries > 0.0, "no queries within {took:.1} s");
        let time = processor_time(server.id())?.saturating_sub(time);
        Ok(Interval {
            queries_per_second: queries / took,
            processor_time: time.as_secs_f64() / queries,
            // Counted for `lasts` only, while queries went on at the same rate.
            instructions: instructions.map(|count| count / (queries / took * lasts.as_secs_f64())),
        })
    }
}

/// Counts for a while; without a counter only the time passes.
fn instructions_during(process: u32, lasts: Duration) -> Option<f64> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ",", "--event", "instructions", "--pid"]);
    perf.args([&process.to_string(), "--", "sleep", &lasts.as_secs_f64().to_string()]);
    let begin = Instant::now();
    let output = perf.stdout(Stdio::null()).output();
    // One that may not count ends at once.
    std::thread::sleep(lasts.saturating_sub(begin.elapsed()));
    count_in(&String::from_utf8_lossy(&output.ok()?.stderr))
}

/// The count in a line like `123,,instructions,…`; not there when it could not be counted.
fn count_in(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.contains(",instructions"))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_or_missing() {
        assert_eq!(count_in("\n286684,,instructions:u,1000,100.00,0.30,insn per cycle\n"), Some(286_684.0));
        assert_eq!(count_in("<not supported>,,instructions,0,100.00,,\n"), None);
        assert_eq!(count_in("perf: no such process"), None);
    }
}
