//! Servers on the volumes of clouds: gp2 with its bucket of credits, io1, an ESSD, RAID 0 of several.
//!
//! The volumes are simulated on this machine's disk ([`crate::capped_disk::Profile`] has what their
//! documentation says of them): the rates, the credits and the least time of an answer are theirs, anything
//! else is not. They have a safe cache, so flushes are answered at once. Buckets are full when a run begins.
//! A real one lasts half an hour and more: here it holds a fraction, so that a run sees it full, emptying and
//! empty.

use crate::capped_disk::Profile;
use crate::experiment::judgement::judge;
use crate::experiment::report::Report;
use crate::experiment::room::{Room, Run, Trial, disk_mib, figures};
use crate::experiment::servers::{Peers, Server, stock};
use crate::experiment::table::Table;
use crate::experiment::{Sizes, announce, in_place};
use crate::server_process::Program;
use crate::statistics::median;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    peers: Peers,
    /// Which volumes: `gp2`, `io1`, `essd`, `raid0` (of gp2).
    #[arg(long, value_enum, value_delimiter = ',',
          default_values_t = [Kind::Gp2, Kind::Io1, Kind::Essd, Kind::Raid0])]
    volumes: Vec<Kind>,
    /// GiB that gp2 and ESSD are sold as, which decides their rates; the data need not be that large.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    gib: u64,
    /// Requests per second of io1.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u64).range(100..=64_000))]
    iops: u64,
    /// The bucket of gp2 holds one credit where a real one holds this many (5.4 million when it is full); by
    /// default it lasts a third of a run at full speed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    bucket_divisor: Option<u64>,
    /// Volumes of the RAID 0, each with its share of the GiB.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    members: u32,
    /// KiB on a member of the RAID 0 before the next one's turn.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(4..))]
    chunk: u64,
    /// Buffer pool in MiB; a quarter of the data by default.
    #[arg(long)]
    pool: Option<u64>,
    /// Redo log in MiB.
    #[arg(long, default_value_t = 256)]
    redo: u64,
}

/// A kind of volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kind {
    Gp2,
    Io1,
    Essd,
    Raid0,
}

/// A volume by its name.
struct Volume {
    name: String,
    profile: Profile,
}

const SCRIPT: &str = "oltp_read_write";
/// A bucket lasts this part of a run by default.
const BUCKET_PART: f64 = 1.0 / 3.0;

impl Setup {
    /// So that a bucket lasts a part of a run; 1 where the real one is empty sooner.
    fn divisor(&self, gib: u64, time: u32) -> u64 {
        self.bucket_divisor.unwrap_or_else(|| {
            let real = Profile::gp2(gib, 1).burst_seconds().unwrap_or(0.0);
            (real / (f64::from(time) * BUCKET_PART)).round().max(1.0) as u64
        })
    }

    fn volume(&self, kind: Kind, time: u32) -> Volume {
        let gp2 = |gib| Profile::gp2(gib, self.divisor(gib, time));
        let (name, profile) = match kind {
            Kind::Gp2 => (format!("gp2 of {} GiB", self.gib), gp2(self.gib)),
            Kind::Io1 => (format!("io1 of {} requests/s", self.iops), Profile::io1(self.iops)),
            Kind::Essd => (format!("ESSD PL1 of {} GiB", self.gib), Profile::essd(self.gib)),
            Kind::Raid0 => {
                let (members, gib) = (self.members, (self.gib / u64::from(self.members)).max(1));
                let name = format!("RAID 0 of {members} gp2 of {gib} GiB");
                (name, gp2(gib).striped(members, self.chunk << 10))
            }
        };
        Volume { name, profile }
    }
}

/// Runs all servers on all volumes and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("volumes", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let sizes = setup.sizes.settled();
    let servers = setup.peers.beside(program)?;
    let volumes: Vec<Volume> = setup.volumes.iter().map(|&kind| setup.volume(kind, sizes.time)).collect();
    announce("volumes", servers.len() * volumes.len() * sizes.rounds as usize, &sizes);
    for volume in &volumes {
        println!("{}: {}", volume.name, described(&volume.profile));
    }
    let pool = setup.pool.unwrap_or_else(|| (sizes.data_mib() / 4).max(16));
    let mut room = Room::new(place, &sizes, servers.len() as u64 * disk_mib(&sizes, setup.redo), false)?;
    let contestant = |server: &Server| {
        let mut settings = vec![format!("--innodb-buffer-pool-size={pool}M"), server.redo(setup.redo)];
        settings.extend(if server.is_ours() { Vec::new() } else { stock(2000) });
        server.with(settings)
    };
    for server in &servers {
        room.fill(&contestant(server))?;
    }
    let mut runs = Vec::new();
    for volume in &volumes {
        for round in 1..=sizes.rounds {
            for server in &servers {
                runs.push(room.measure(&Trial {
                    group: volume.name.clone(),
                    setting: "as it is".to_owned(),
                    round,
                    contestant: &contestant(server),
                    profile: volume.profile,
                    script: SCRIPT,
                })?);
            }
        }
    }
    drop(room);
    let report = Report {
        name: "volumes",
        described: format!(
            "{SCRIPT}, {} × {} rows, {} clients, pool {pool} MiB, redo log {} MiB; medians of {} runs of {} s, in turn. Simulated volumes: {}.",
            sizes.tables,
            sizes.rows,
            sizes.threads,
            setup.redo,
            sizes.rounds,
            sizes.time,
            volumes
                .iter()
                .map(|volume| format!("{} ({})", volume.name, described(&volume.profile)))
                .collect::<Vec<_>>()
                .join("; ")
        ),
        tables: table(&volumes, &servers, &runs).to_string(),
        conclusion: conclusion(&volumes, &servers, &runs),
        setup: json!({
            "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
            "warm_up": sizes.warm_up, "rounds": sizes.rounds, "pool_mib": pool, "redo_mib": setup.redo,
            "volumes": volumes.iter().map(|volume| json!({
                "name": volume.name, "profile": volume.profile,
            })).collect::<Vec<Value>>(),
        }),
    };
    report.publish(sizes.output.as_deref(), &runs)
}

/// What a volume promises, in words.
fn described(profile: &Profile) -> String {
    let mut text = format!("{} requests/s, {} MB/s", profile.cap.operations, profile.cap.bytes / 1_000_000);
    if let Some(burst) = profile.burst {
        let seconds = profile.burst_seconds().unwrap_or(0.0);
        text +=
            &format!(", {} requests/s for {seconds:.0} s from {} credits", burst.operations, burst.credits);
    }
    if profile.members > 1 {
        text = format!("{} times {text}, {} KiB in turn", profile.members, profile.chunk >> 10);
    }
    text
}

/// Transactions per second while a bucket is full and when it is empty; of a volume without credits in the
/// first and in the last third.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Halves {
    early: f64,
    late: f64,
    /// From this second on no more requests are done than the base rate allows, if it came to that.
    empty_after: Option<usize>,
}

/// Requests of a second may exceed the base rate by this part: what waited is answered with the next ones.
const SLACK: f64 = 1.2;

impl Halves {
    fn of(run: &Run, profile: &Profile) -> Halves {
        let seconds = &run.seconds;
        let base = profile.cap.operations as f64 * f64::from(profile.members) * SLACK;
        let requests: Vec<f64> =
            seconds.iter().map(|second| second.device_reads + second.device_writes).collect();
        let still = requests.iter().rposition(|&requests| requests > base);
        let third = seconds.len() / 3;
        let empty_after = match (profile.burst, still) {
            (Some(_), Some(last)) if last + 1 < seconds.len() => Some(last + 1),
            _ => None,
        };
        let (early, late) = match empty_after {
            // The second in which the bucket becomes empty belongs to neither.
            Some(at) => (&seconds[..at.saturating_sub(1).max(1)], &seconds[at..]),
            None => (
                &seconds[..third.max(1).min(seconds.len())],
                &seconds[seconds.len() - third.max(1).min(seconds.len())..],
            ),
        };
        Halves { early: judge(early).mean, late: judge(late).mean, empty_after }
    }
}

fn of<'r>(runs: &'r [Run], volume: &str, server: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.group == volume && run.server == server).collect()
}

fn table(volumes: &[Volume], servers: &[Server], runs: &[Run]) -> Table {
    let mut table = Table::new(
        &["volume", "server"],
        &[
            "transactions/s",
            "early",
            "late",
            "bucket empty after s",
            "CoV",
            "p99 ms",
            "device reads each",
            "writes each",
        ],
    );
    for volume in volumes {
        for server in servers {
            let runs = of(runs, &volume.name, &server.name);
            let halves: Vec<Halves> = runs.iter().map(|run| Halves::of(run, &volume.profile)).collect();
            let half = |figure: fn(&Halves) -> f64| median(halves.iter().map(figure).collect());
            let median = |figure: fn(&Run) -> f64| median(figures(&runs, figure));
            let emptied = halves.iter().find_map(|halves| halves.empty_after);
            table.row(vec![
                volume.name.clone(),
                server.name.clone(),
                format!("{:.0}", median(|run| run.transactions_per_second)),
                format!("{:.0}", half(|halves| halves.early)),
                format!("{:.0}", half(|halves| halves.late)),
                emptied.map_or_else(|| "–".to_owned(), |second| second.to_string()),
                format!("{:.2}", median(|run| run.coefficient_of_variation)),
                format!("{:.0}", median(|run| run.p99_ms)),
                format!("{:.2}", median(|run| run.device_reads)),
                format!("{:.2}", median(|run| run.device_writes)),
            ]);
        }
    }
    table
}

/// For each volume: ours beside the best of the others, and what an empty bucket leaves.
fn conclusion(volumes: &[Volume], servers: &[Server], runs: &[Run]) -> String {
    let mut sentences = Vec::new();
    for volume in volumes {
        let rate = |server: &Server| {
            median(figures(&of(runs, &volume.name, &server.name), |run| run.transactions_per_second))
        };
        let Some((first, others)) = servers.split_first() else { continue };
        let mut text = format!("{}: {} does {:.0} transactions/s", volume.name, first.name, rate(first));
        if let Some(best) = others.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))) {
            text += &format!(", {:.2} times as many as {}", rate(first) / rate(best), best.name);
        }
        for server in servers {
            let empty = of(runs, &volume.name, &server.name).into_iter().find_map(|run| {
                let halves = Halves::of(run, &volume.profile);
                halves.empty_after.map(|second| (second, halves.late / halves.early))
            });
            if let Some((second, left)) = empty {
                text += &format!(
                    "; {} keeps {:.0} % of its rate when the bucket is empty, after {second} s",
                    server.name,
                    left * 100.0
                );
            } else if volume.profile.burst.is_some() {
                text += &format!("; {} does not empty the bucket", server.name);
            }
        }
        sentences.push(text + ".");
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capped_disk::{Burst, Cap};
    use crate::experiment::room::tests::run;
    use crate::experiment::seconds::Second;
    use crate::experiment::servers::tests::ours;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        setup: Setup,
    }

    fn setup(arguments: &[&str]) -> Option<Setup> {
        let parsed = Arguments::try_parse_from(["volumes"].iter().chain(arguments));
        parsed.ok().map(|arguments| arguments.setup)
    }

    #[test]
    fn a_bucket_lasts_a_third_of_a_run_unless_it_is_told_how_long() {
        let seconds = |arguments: &[&str], kind, time| {
            setup(arguments).and_then(|setup| setup.volume(kind, time).profile.burst_seconds()).unwrap_or(0.0)
        };
        assert!((seconds(&[], Kind::Gp2, 60) - 20.0).abs() < 0.1);
        // 25 GiB each: 100 requests/s of base rate.
        assert!((seconds(&[], Kind::Raid0, 60) - 20.0).abs() < 0.2);
        assert_eq!(seconds(&["--bucket-divisor", "1"], Kind::Gp2, 60), 2000.0);
        assert_eq!(seconds(&[], Kind::Io1, 60), 0.0);
    }

    #[test]
    fn what_is_no_volume_is_refused() {
        for arguments in [["--volumes", "gp7"], ["--gib", "0"], ["--members", "1"], ["--bucket-divisor", "0"]]
        {
            assert!(setup(&arguments).is_none(), "{arguments:?}");
        }
    }

    fn volume() -> Volume {
        let plain = Profile::capped(Cap { operations: 100, bytes: 0 });
        let profile = Profile { burst: Some(Burst { operations: 500, credits: 800 }), ..plain };
        Volume { name: "gp2".to_owned(), profile }
    }

    /// A bucket that is empty after the second second: 50 transactions and 500 requests, then 10 and 100.
    fn emptied() -> Run {
        let second =
            |rate: f64| Second { transactions: rate, device_writes: 10.0 * rate, ..Second::default() };
        let seconds = [50.0, 50.0, 30.0, 10.0, 10.0].map(second).to_vec();
        Run { seconds, ..run("gp2", "as it is", 1, 30.0) }
    }

    #[test]
    fn an_empty_bucket_is_seen_in_the_requests() {
        let halves = Halves::of(&emptied(), &volume().profile);
        assert_eq!(halves, Halves { early: 50.0, late: 10.0, empty_after: Some(3) });
        let without = Profile { burst: None, ..volume().profile };
        assert_eq!(Halves::of(&emptied(), &without), Halves { early: 50.0, late: 10.0, empty_after: None });
    }

    #[test]
    fn the_conclusion_says_what_an_empty_bucket_leaves() {
        let mut slow = emptied();
        slow.server = "MariaDB".to_owned();
        slow.transactions_per_second = 15.0;
        let servers = [ours(), Server { name: "MariaDB".to_owned(), ..ours() }];
        let text = conclusion(&[volume()], &servers, &[emptied(), slow]);
        assert!(text.contains("gp2: Untorn does 30 transactions/s, 2.00 times as many as MariaDB; Untorn keeps 20 % of its rate when the bucket is empty, after 3 s"), "{text}");
        let full = Run { seconds: vec![Second::default(); 5], ..emptied() };
        let text = conclusion(&[volume()], &servers[..1], &[full]);
        assert!(text.contains("Untorn does not empty the bucket"), "{text}");
    }

    #[test]
    fn volumes_are_described_by_what_they_promise() {
        let raid = volume().profile.striped(4, 256 << 10);
        assert_eq!(
            described(&raid),
            "4 times 100 requests/s, 0 MB/s, 500 requests/s for 2 s from 800 credits, 256 KiB in turn"
        );
    }
}
