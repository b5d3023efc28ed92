//! `cargo xtask fuzz`: every fuzz target, built and really run.
//!
//! The targets are ordinary programs with libFuzzer in them. They are built by the compiler that builds
//! everything else, with coverage counters and debug assertions and without AddressSanitizer, which only a
//! nightly compiler has (`cargo fuzz run` uses it; see `fuzz/README.md`). What was found stays in
//! `target/fuzz`: the corpus, from which the next run goes on, and inputs that ended in a panic.

use anyhow::{Context, Result, bail, ensure};
use lab::command::{Attention, cargo_with, root, target_directory};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Counters at every edge, operands of comparisons as hints; what `cargo fuzz` passes too.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";
/// A single input may take this long, in seconds, and this much memory, in MiB.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

/// What to run.
#[derive(clap::Args, Clone, Debug)]
pub struct FuzzArguments {
    /// Minutes for each target.
    #[arg(long, default_value_t = 10.0)]
    pub minutes: f64,
    /// Only this target.
    #[arg(long)]
    pub target: Option<String>,
    /// Where libFuzzer's random numbers start (0: its own choice, which it prints).
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// Programs that are built quickly rather than run quickly.
    #[arg(skip)]
    pub quick: bool,
}

/// What the test command runs: the targets are built in half the time, which is longer than they run.
pub const SHORT: FuzzArguments = FuzzArguments { minutes: 0.25, target: None, seed: 0, quick: true };

/// Builds the targets and runs them, as many at a time as there are processors.
pub fn run(arguments: &FuzzArguments) -> Result<()> {
    let time = Duration::from_secs_f64(arguments.minutes * 60.0);
    let mut names = targets()?;
    if let Some(only) = &arguments.target {
        names.retain(|name| name == only);
        ensure!(!names.is_empty(), "there is no fuzz target {only}: see fuzz/fuzz_targets");
    }
    let programs = build(Attention::Full, arguments.quick)?;
    println!("{} targets, {:.0} s each", names.len(), time.as_secs_f64());
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failed = Vec::new();
    for some in names.chunks(at_a_time) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let programs = &programs;
            let running: Vec<_> = some
                .iter()
                .map(|name| (name, scope.spawn(move || fuzz(programs, name, time, arguments.seed))))
                .collect();
            running
                .into_iter()
                .map(|(name, thread)| (name, thread.join().unwrap_or_else(|_| bail!("its thread panicked"))))
                .collect()
        });
        for (name, result) in results {
            match result {
                Ok(figures) => println!("{name:<16} {figures}"),
                Err(error) => {
                    println!("{name:<16} FAILED: {error:#}");
                    failed.push(name.clone());
                }
            }
        }
    }
    ensure!(failed.is_empty(), "fuzzing found something: {}", failed.join(", "));
    Ok(())
}

/// Names of the targets: one file each.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        if let (Some(name), Some("rs")) = (path.file_stem(), path.extension().and_then(|end| end.to_str())) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn place() -> PathBuf {
    target_directory().join("fuzz")
}

/// Builds all targets as [`SHORT`] runs them, beside something else.
pub fn build_beside() -> Result<()> {
    build(Attention::Beside, SHORT.quick).map(drop)
}

/// Builds all targets; returns where the programs are.
fn build(attention: Attention, quick: bool) -> Result<PathBuf> {
    let told = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let told = String::from_utf8(told.stdout)?;
    let host =
        told.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let manifest = root().join("fuzz/Cargo.toml");
    // With a target named, the flags are not for build scripts and macros.
    let arguments =
        ["build", "--release", "--bins", "--target", host, "--manifest-path", &manifest.to_string_lossy()];
    // Programs of a place of their own, so that neither kind makes the other's stale.
    let place = if quick { place().join("quick") } else { place() };
    let target = place.to_string_lossy();
    let level = if quick { "1" } else { "3" };
    let settings =
        [("RUSTFLAGS", COVERAGE), ("CARGO_TARGET_DIR", &*target), ("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)];
    cargo_with(attention, &arguments, &settings)?;
    Ok(place.join(host).join("release"))
}

/// Runs one target for a time; says what it did.
fn fuzz(programs: &Path, name: &str, time: Duration, seed: u32) -> Result<String> {
    let corpus = place().join("corpus").join(name);
    let first = place().join("first").join(name);
    let found = place().join("found").join(name);
    for directory in [&corpus, &first, &found] {
        std::fs::create_dir_all(directory)?;
    }
    first_inputs(name, &first)?;
    let output = Command::new(programs.join(name))
        .args([&corpus, &first])
        .args(LIMITS)
        .arg(format!("-max_total_time={}", time.as_secs().max(1)))
        .arg(format!("-seed={seed}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args(["-print_final_stats=1", "-verbosity=1"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{}\n{}", output.status, what_happened(&output));
    }
    let figure = |label: &str| {
        let line = told.lines().rev().find_map(|line| line.split_once(label).map(|(_, rest)| rest));
        line.and_then(|rest| rest.split_whitespace().next()).unwrap_or("0").to_owned()
    };
    let runs: u64 = figure("stat::number_of_executed_units:").parse().unwrap_or(0);
    ensure!(runs > 0, "it ran nothing:\n{}", what_happened(&output));
    Ok(format!("{runs} inputs, {} edges covered, {} MiB", figure(" cov:"), figure("stat::peak_rss_mb:")))
}

/// The end of what a target said: the panic, and where its input is.
fn what_happened(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = told.lines().collect();
    let from =
        lines.iter().position(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
    let from = from.unwrap_or(lines.len().saturating_sub(20));
    let short = |line: &&str| line.chars().take(400).collect::<String>();
    lines[from..].iter().take(40).map(short).collect::<Vec<_>>().join("\n")
}

/// Inputs to begin with, where the bytes have a form that chance would take long to find.
fn first_inputs(name: &str, directory: &Path) -> Result<()> {
    match name {
        "cfg_file" => {
            for entry in std::fs::read_dir(root().join("tests/fixtures"))? {
                let path = entry?.path();
                if let (Some(file), Some("cfg")) =
                    (path.file_name(), path.extension().and_then(|end| end.to_str()))
                {
                    std::fs::copy(&path, directory.join(file))?;
                }
            }
        }
        // The first byte chooses the lexical modes.
        name if name.starts_with("sql_") => {
            for entry in std::fs::read_dir(root().join("testing/campaigns/isolation"))? {
                let path = entry?.path();
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                for (number, line) in text.lines().filter(|line| line.len() > 8).enumerate() {
                    let file = format!("{}-{number}", path.file_stem().unwrap_or_default().to_string_lossy());
                    // Lines begin with the name of their session.
                    let statement = line.split_once(' ').map_or(line, |(_, rest)| rest);
                    std::fs::write(directory.join(file), [b"\0", statement.as_bytes()].concat())?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
