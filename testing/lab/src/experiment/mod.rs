//! What the experiments share: servers side by side, a slow disk that they use in turn, the seconds of a
//! load, what the seconds come to, and what an experiment leaves.
//!
//! An experiment is a list of runs. A run is one server with some settings on a disk of some kind: it is
//! started without a cap, warmed up under it, and measured from second to second. Runs that are to be
//! compared follow each other, round after round, so that a drift of the machine hits all of them.

pub mod judgement;
pub mod report;
pub mod room;
pub mod seconds;
pub mod servers;
pub mod table;

use crate::scratch::Scratch;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Sizes and times of an experiment.
#[derive(clap::Args, Clone, Debug)]
pub struct Sizes {
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub tables: u32,
    /// Rows of each table; a million of them are about 290 MiB.
    #[arg(long, default_value_t = 250_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub rows: u64,
    /// Clients.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Seconds of each measured run.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub time: u32,
    /// Seconds of load before each of them.
    #[arg(long, default_value_t = 30)]
    pub warm_up: u32,
    /// Runs of each kind, in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// A few seconds of small tables, one round, fewer settings: shows in minutes that it runs, and measures
    /// nothing.
    #[arg(long)]
    pub short: bool,
    /// Where chart (`.svg`), table (`.md`), every second (`.csv`) and record (`.json`) go, without the
    /// ending; `target/NAME-OF-THE-EXPERIMENT` by default.
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Where the disk image is made; a directory for temporary files by default.
    #[arg(long, value_name = "DIRECTORY")]
    pub place: Option<PathBuf>,
}

impl Sizes {
    /// Those of the short form where it is asked for; what is smaller already stays.
    pub fn settled(&self) -> Sizes {
        if !self.short {
            return self.clone();
        }
        Sizes {
            tables: self.tables.min(2),
            rows: self.rows.min(50_000),
            threads: self.threads.min(8),
            time: self.time.min(6),
            warm_up: self.warm_up.min(2),
            rounds: 1,
            ..self.clone()
        }
    }

    /// MiB of the tables, about.
    pub fn data_mib(&self) -> u64 {
        (u64::from(self.tables) * self.rows * 300) >> 20
    }

    /// Seconds of a run with its start and its stop, about.
    fn seconds_each(&self) -> u64 {
        u64::from(self.time + self.warm_up) + 5
    }
}

/// Says how long something takes that consists of this many runs.
pub fn announce(name: &str, runs: usize, sizes: &Sizes) {
    let minutes = (runs as u64 * sizes.seconds_each()).div_ceil(60);
    println!("{name}: {runs} runs, about {minutes} minutes, and the time to fill the tables");
}

/// Runs `work` in the directory that was asked for, or in one of its own.
pub fn in_place<T>(name: &str, place: Option<&Path>, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    match place {
        Some(place) => {
            std::fs::create_dir_all(place)?;
            work(place)
        }
        None => Scratch::with(&format!("experiment-{name}"), work),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
pub mod tests {
    use super::Sizes;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        sizes: Sizes,
    }

    /// Sizes as the command line gives them.
    pub fn sizes(arguments: &[&str]) -> Sizes {
        Arguments::try_parse_from(["experiment"].iter().chain(arguments)).expect("arguments").sizes
    }

    #[test]
    fn the_short_form_makes_nothing_larger() {
        let short = sizes(&["--short", "--rows", "1000", "--time", "60"]).settled();
        assert_eq!((short.rows, short.time, short.rounds), (1000, 6, 1));
        let long = sizes(&["--rows", "1000000"]).settled();
        assert_eq!((long.rows, long.time, long.data_mib()), (1_000_000, 60, 1144));
    }

    #[test]
    fn nothing_is_measured_in_no_time() {
        for arguments in [["--time", "0"], ["--rounds", "0"], ["--rows", "0"], ["--tables", "0"]] {
            assert!(Arguments::try_parse_from(["experiment"].iter().chain(&arguments)).is_err());
        }
    }
}
