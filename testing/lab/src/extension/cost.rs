//! What the extension costs where it cannot help: data that fits the pool, and an extension on the data's own
//! disk.
//!
//! To see 2 % on a machine that drifts by more, the load runs on without a break while the extension is
//! switched, every few seconds or, where it lies on the data's own disk, as soon as it has suspended itself
//! and settled; what counts is the mean of the ratios of neighbouring stretches, and its standard error.
//! Which of a pair comes first changes from pair to pair, so that a drift does not favour one of them.

use super::interval::Interval;
use super::stage::Stage;
use super::workload::Load;
use super::{MIB, Settings, describe_machine};
use crate::command::Background;
use crate::server_process::Program;
use crate::statistics::median;
use anyhow::{Result, ensure};
use mysql::Conn;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What a switch itself takes is not counted: also the memory that moves between pool and extension, whose
/// pages are read again.
const SETTLING: Duration = Duration::from_millis(500);
/// The same on a slow disk, where that takes longer: an extension that is switched on takes 7 % of the pool
/// until it is suspended.
const SETTLING_SLOWLY: Duration = Duration::from_secs(10);
/// An extension that has been suspended for a quarter of a minute gives the memory of its tables back.
const LETTING_GO: Duration = Duration::from_secs(15);
/// How long an extension on the data's own disk may take until it has suspended itself.
const JUDGEMENT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Seconds; longer than all pairs.
const DAY: u32 = 86_400;
const GOAL: f64 = 0.98;

/// Sizes and times.
#[derive(clap::Args, Clone, Debug)]
pub struct CostSettings {
    #[command(flatten)]
    settings: Settings,
    /// Pairs of stretches with the extension off and on, of each load.
    #[arg(long, default_value_t = 120)]
    pairs: u32,
    /// Seconds of a stretch.
    #[arg(long, default_value_t = 1.0)]
    stretch: f64,
    /// Pairs with an extension on the data's own disk. There a switch takes most of a minute, and the disk
    /// gives the pace.
    #[arg(long, default_value_t = 8)]
    slow_pairs: u32,
    /// Seconds of a stretch of these.
    #[arg(long, default_value_t = 15.0)]
    slow_stretch: f64,
    /// Only the cases whose name contains this.
    #[arg(long, default_value = "")]
    case: String,
}

/// A load and its pairs.
struct Case {
    name: &'static str,
    script: &'static str,
}

/// Data that fits the pool, or an extension on the data's own disk.
struct Kind {
    title: &'static str,
    database: &'static str,
    /// Bytes of data, in thirds of the pool.
    thirds: u64,
    /// The extension lies on the data's disk, and stretches with it begin when it has been judged.
    same_disk: bool,
    cases: [Case; 2],
}

const KINDS: [Kind; 2] = [
    Kind {
        title: "data fits the pool",
        database: "extension-fits",
        thirds: 1,
        same_disk: false,
        cases: [
            Case { name: "fits, read-only", script: "oltp_read_only" },
            Case { name: "fits, read-write", script: "oltp_read_write" },
        ],
    },
    Kind {
        title: "extension on the data's own capped disk",
        database: "extension-same",
        thirds: 12,
        same_disk: true,
        cases: [
            Case { name: "same disk, read-only", script: "oltp_read_only" },
            Case { name: "same disk, read-write", script: "oltp_read_write" },
        ],
    },
];

/// Neighbouring stretches.
struct Pair {
    off: Interval,
    on: Interval,
}

impl Pair {
    /// On against off.
    fn ratio(&self, of: impl Fn(&Interval) -> f64) -> f64 {
        of(&self.on) / of(&self.off)
    }

    fn speed(&self) -> f64 {
        self.ratio(|stretch| stretch.queries_per_second)
    }
}

/// Both cases, reads alone and with writes.
pub fn cost(program: &Program, arguments: &CostSettings) -> Result<()> {
    let settings = &arguments.settings;
    describe_machine(settings);
    let pool = settings.pool_mib * MIB;
    let mut rows = Vec::new();
    for kind in &KINDS {
        let cases: Vec<&Case> =
            kind.cases.iter().filter(|case| case.name.contains(&arguments.case)).collect();
        if cases.is_empty() {
            continue;
        }
        println!("\n{}", kind.title);
        let load = Load::of_bytes(kind.thirds * pool / 3, settings.threads);
        let stage = Stage::new(program, settings, kind.database, pool, &load, 8 * pool)?;
        if kind.same_disk {
            let file = stage.disk.path().join("extension");
            stage.server.feed("", &format!("SET GLOBAL untorn_bpe_file = '{}';", file.display()))?;
        }
        for case in cases {
            rows.push(pairs(&stage, &load, case, kind.same_disk, arguments)?);
        }
        stage.server.stop()?;
    }
    ensure!(!rows.is_empty(), "no case is called {:?}", arguments.case);
    println!("\ncap of {} requests/s and {} MB/s, {}", settings.iops, settings.mb_per_second, settings.cap);
    println!(
        "\n| case | extension off, queries/s | extension on | mean ratio (goal at least {GOAL}) | standard error | median ratio | processor time for a query, median ratio | instructions for a query, median ratio | pairs |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    rows.iter().for_each(|row| println!("{row}"));
    Ok(())
}

/// Runs the load of a case without a break, switches the extension under it, and returns its row.
fn pairs(
    stage: &Stage,
    load: &Load,
    case: &Case,
    same_disk: bool,
    arguments: &CostSettings,
) -> Result<String> {
    let (count, seconds) = if same_disk {
        (arguments.slow_pairs, arguments.slow_stretch)
    } else {
        (arguments.pairs, arguments.stretch)
    };
    let (count, stretch) = (count.max(2), Duration::from_secs_f64(seconds));
    stage.switch(true)?;
    load.run(&stage.server, case.script, arguments.settings.warm_up)?;
    let mut command = load.run_command(&stage.server, case.script, DAY);
    let mut sysbench = Background(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let mut connection = stage.server.connect(None)?;
    let (mut measured, mut suspended) = (Vec::new(), 0);
    for number in 0..count {
        let mut one = |on: bool| -> Result<Interval> {
            let stretch = measure(stage, &mut connection, on, same_disk, stretch)?;
            suspended += u32::from(on && stage.extension_state()? == "SUSPENDED");
            Ok(stretch)
        };
        let (off, on) = if number % 2 == 0 {
            let off = one(false)?;
            (off, one(true)?)
        } else {
            let on = one(true)?;
            (one(false)?, on)
        };
        ensure!(sysbench.0.try_wait()?.is_none(), "sysbench {} ended by itself", case.script);
        let pair = Pair { off, on };
        println!(
            "{:<22} pair {:>2}  off {:>8.0}  on {:>8.0} queries/s  ratio {:.3}",
            case.name,
            number + 1,
            pair.off.queries_per_second,
            pair.on.queries_per_second,
            pair.speed()
        );
        measured.push(pair);
    }
    println!(
        "{}: the extension was suspended at the end of {suspended} of {count} stretches with it on",
        case.name
    );
    let (ratio, error) = mean_and_error(&measured.iter().map(Pair::speed).collect::<Vec<_>>());
    let speed = |of: fn(&Pair) -> &Interval| {
        median(measured.iter().map(|pair| of(pair).queries_per_second).collect())
    };
    let middle = |of: fn(&Pair) -> f64| median(measured.iter().map(of).collect());
    let instructions = middle(|pair| pair.ratio(|stretch| stretch.instructions.unwrap_or(f64::NAN)));
    Ok(format!(
        "| {}{} | {:.0} | {:.0} | {ratio:.3} | {error:.3} | {:.3} | {:.3} | {} | {count} |",
        case.name,
        if suspended > 0 { format!(" (suspended in {suspended})") } else { String::new() },
        speed(|pair| &pair.off),
        speed(|pair| &pair.on),
        middle(Pair::speed),
        middle(|pair| pair.ratio(|stretch| stretch.processor_time)),
        if instructions.is_nan() { "not counted".to_owned() } else { format!("{instructions:.4}") },
    ))
}

/// Switches the extension, lets what follows from that pass, and measures.
fn measure(
    stage: &Stage,
    connection: &mut Conn,
    on: bool,
    same_disk: bool,
    stretch: Duration,
) -> Result<Interval> {
    stage.switch(on)?;
    if on && same_disk {
        wait_for_judgement(stage)?;
        std::thread::sleep(LETTING_GO);
    }
    std::thread::sleep(if same_disk { SETTLING_SLOWLY } else { SETTLING });
    Interval::measure(&stage.server, connection, stretch)
}

/// Mean of the ratios and its standard error.
fn mean_and_error(ratios: &[f64]) -> (f64, f64) {
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// An extension that stays on is an outcome too, which the count of suspended stretches shows.
fn wait_for_judgement(stage: &Stage) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < JUDGEMENT && stage.extension_state()? != "SUSPENDED" {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_mean() {
        let (mean, error) = mean_and_error(&[0.9, 1.0, 1.1]);
        assert!((mean - 1.0).abs() < 1e-9);
        assert!((error - 0.1 / 3.0_f64.sqrt()).abs() < 1e-9);
    }
}
