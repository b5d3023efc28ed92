//! Rounds: all scripts on all servers, in turn.
//!
//! Servers alternate within each script, so that what changes with time (heat, other programs, a disk that
//! fills) meets all of them alike. Tables are loaded again in each round.

use super::record::Sample;
use super::sample::{load_tables, sample};
use super::server_under_test::ServerUnderTest;
use super::table;
use super::workload::Load;
use anyhow::{Context, Result};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// After the tables were loaded, so that less of writing them falls into the first sample.
const SETTLING: Duration = Duration::from_secs(5);

/// All rounds. Within a round the servers take turns in each script; who begins changes from script to script
/// and, for the same script, from round to round.
pub fn samples(servers: &mut [ServerUnderTest], load: &Load) -> Result<Vec<Sample>> {
    let all = load.rounds as usize * load.scripts.len() * servers.len();
    let begin = Instant::now();
    let mut samples = Vec::with_capacity(all);
    for round in 1..=load.rounds {
        for server in &mut *servers {
            println!("round {round}: loading {}", server.name);
            load_tables(server, load)?;
        }
        sleep(SETTLING);
        for (at, script) in load.scripts.iter().enumerate() {
            for turn in turns(servers.len(), round, at) {
                let Some(server) = servers.get_mut(turn) else { continue };
                let sample = sample(server, script, load, round)
                    .with_context(|| format!("{script} on {}, round {round}", server.name))?;
                print_progress(&sample, load, samples.len() + 1, all, begin.elapsed());
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

/// The order in which the servers run a script in a round.
fn turns(servers: usize, round: u32, script: usize) -> impl Iterator<Item = usize> {
    let first = round as usize + script;
    (0..servers).map(move |turn| (first + turn) % servers)
}

fn print_progress(sample: &Sample, load: &Load, done: usize, all: usize, elapsed: Duration) {
    let left = elapsed.as_secs_f64() / done as f64 * (all - done) as f64;
    let Sample { script, server, round, queries_per_second, p99_ms, .. } = sample;
    println!(
        "{done:>3}/{all} round {round}/{} {script:<22} {server:<14} {queries_per_second:>8.0} queries/s  \
         p99 {p99_ms:>7.2} ms  CPU {:>6} µs/query  {:>7} KiB and {:>6} syncs/query  {:>3.0} min left",
        load.rounds,
        table::figure(sample.processor_us_per_query(), 1),
        table::figure(sample.kib_written_per_query(), 2),
        table::figure(sample.syncs_per_query(), 3),
        left / 60.0,
    );
}

#[cfg(test)]
mod tests {
    use super::turns;
    use crate::bench::workload::scripts;

    #[test]
    fn every_server_has_a_turn_and_each_begins_as_often() {
        for servers in 1..=4 {
            let mut begun = vec![0; servers];
            for round in 1..=servers as u32 {
                for script in 0..scripts().len() {
                    let order: Vec<usize> = turns(servers, round, script).collect();
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    assert_eq!(sorted, (0..servers).collect::<Vec<_>>());
                    begun[order[0]] += 1;
                }
            }
            assert!(begun.iter().all(|begun| *begun == scripts().len()), "{servers} servers: {begun:?}");
        }
    }
}
