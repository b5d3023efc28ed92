//! What sysbench does in a comparison: options of the command, and part of the record.

use crate::sysbench::SCRIPTS;
use clap::builder::PossibleValuesParser;
use clap::value_parser;
use serde::{Deserialize, Serialize};

/// How much of which scripts.
#[derive(clap::Args, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Load {
    /// Times that every script runs on every server.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seconds of each run of a script.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Clients.
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Tables of each server.
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..))]
    pub tables: u32,
    /// Rows of each table.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Scripts, separated by commas, in the order in which they run.
    #[arg(
        long,
        value_name = "SCRIPT,…",
        value_delimiter = ',',
        default_values = scripts(),
        value_parser = PossibleValuesParser::new(scripts())
    )]
    pub scripts: Vec<String>,
}

/// All ten, in an order in which each finds the rows it needs.
pub fn scripts() -> [&'static str; 10] {
    SCRIPTS.map(|(script, _)| script)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Load, scripts};
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        load: Load,
    }

    fn parse(arguments: &[&str]) -> Result<Load, clap::Error> {
        let arguments = Arguments::try_parse_from(["bench"].iter().chain(arguments))?;
        Ok(arguments.load)
    }

    #[test]
    fn all_scripts_run_unless_some_are_named() {
        assert_eq!(parse(&[]).expect("no options").scripts, scripts());
        let some = parse(&["--scripts", "oltp_insert,oltp_read_only"]).expect("two scripts");
        assert_eq!(some.scripts, ["oltp_insert", "oltp_read_only"]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for arguments in
            [["--scripts", "oltp_nothing"], ["--rounds", "0"], ["--seconds", "0"], ["--rows", "-1"]]
        {
            assert!(parse(&arguments).is_err(), "{arguments:?}");
        }
    }
}
