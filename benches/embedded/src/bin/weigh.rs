//! What an embedder takes on with each store: crates, processor time of a cold release build, size of the
//! program, memory and files of a small database.
//!
//! For each store a package is made that has nothing but it: `weigh/NAME.rs`, whose first line is the
//! dependency, and [`COMMON`] behind it. It is built in a target directory of its own, with the default
//! release profile, after the crates have been fetched. The program opens a database in an empty directory
//! with the store's defaults, puts 10,000 pairs of 24 and 150 bytes in one transaction, reads them all, and
//! tells its memory (`RssAnon`: what belongs to no file) after the open and at the end.

#[path = "../allocated.rs"]
mod allocated;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nix::sys::resource::{UsageWho, getrusage};

const PROGRAMS: [(&str, &str); 6] = [
    ("untorn", include_str!("../../weigh/untorn.rs")),
    ("redb", include_str!("../../weigh/redb.rs")),
    ("heed", include_str!("../../weigh/heed.rs")),
    ("fjall", include_str!("../../weigh/fjall.rs")),
    ("canopydb", include_str!("../../weigh/canopydb.rs")),
    ("rusqlite", include_str!("../../weigh/rusqlite.rs")),
];

/// Behind each program.
const COMMON: &str = r#"
fn pairs() -> impl Iterator<Item = [u8; 174]> {
    (0..10_000u64).map(|n| {
        let mut pair = [0; 174];
        for (at, chunk) in pair.chunks_mut(8).enumerate() {
            let mut word = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(at as u64 * 0x1234_5678_9ABC_DEF1);
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word ^= word >> 31;
            chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
        }
        pair
    })
}

fn report(what: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0 kB");
    println!("{what} {}", memory.split_whitespace().next().unwrap_or("0"));
}
"#;

#[derive(Parser)]
struct Arguments {
    /// Directory for packages, builds and databases; each run removes what it makes.
    #[arg(long)]
    directory: PathBuf,
    /// Only these stores.
    #[arg(long, value_delimiter = ',')]
    stores: Vec<String>,
}

/// What one store weighs.
struct Weight {
    crates: usize,
    build_seconds: f64,
    program_bytes: u64,
    opened_kib: u64,
    used_kib: u64,
    files_bytes: u64,
}

fn children_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn remade(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(std::fs::create_dir_all(directory)?)
}

fn cargo(package: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("cargo")
        .current_dir(package)
        .args(arguments)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {} in {}: {errors}", arguments.join(" "), package.display());
    Ok(String::from_utf8(output.stdout)?)
}

fn weigh(directory: &Path, name: &str, program: &str) -> Result<Weight> {
    let package = directory.join(name);
    remade(&package.join("src"))?;
    let dependency =
        program.lines().next().and_then(|line| line.strip_prefix("//! ")).context("a dependency")?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let dependency = dependency.replace('…', &here.to_string_lossy());
    std::fs::write(
        package.join("Cargo.toml"),
        format!(
            "[workspace]\n[package]\nname = \"weighed\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [profile.release]\nstrip = true\n[dependencies]\n{dependency}\n"
        ),
    )?;
    std::fs::write(package.join("src/main.rs"), format!("{program}{COMMON}"))?;
    // What must be fetched is fetched before the clock runs.
    let tree = cargo(&package, &["tree", "--edges", "normal", "--prefix", "none"])?;
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    // The package itself is none of them, and Untorn's own parts are not what somebody takes on besides.
    let external = crates.iter().filter(|line| !line.starts_with("weighed") && !line.starts_with("untorn"));
    let crates = external.count();
    let before = children_seconds()?;
    cargo(&package, &["build", "--release"])?;
    let build_seconds = children_seconds()? - before;
    let program = package.join("target/release/weighed");
    let program_bytes = program.metadata()?.len();
    let database = package.join("database");
    remade(&database)?;
    let output = Command::new(&program).arg(&database).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the program of {name}: {errors}");
    let told = String::from_utf8(output.stdout)?;
    let kib = |what: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(what));
        line.and_then(|kib| kib.trim().parse().ok()).with_context(|| format!("{name} does not say {what}"))
    };
    let (opened_kib, used_kib) = (kib("opened")?, kib("used")?);
    let allocated_bytes = allocated::allocated(&database)?;
    std::fs::remove_dir_all(&package)?;
    Ok(Weight { crates, build_seconds, program_bytes, opened_kib, used_kib, files_bytes: allocated_bytes })
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    println!(
        "| store | crates besides it | cold build, CPU s | program, MiB | memory opened, MiB | \
         memory used, MiB | files of 10,000 pairs, MiB |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    for (name, program) in PROGRAMS {
        if !arguments.stores.is_empty() && !arguments.stores.iter().any(|store| store == name) {
            continue;
        }
        let weight = weigh(&arguments.directory, name, program)?;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "| {name} | {} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} |",
            weight.crates,
            weight.build_seconds,
            mib(weight.program_bytes),
            mib(weight.opened_kib << 10),
            mib(weight.used_kib << 10),
            mib(weight.files_bytes)
        );
    }
    Ok(())
}
