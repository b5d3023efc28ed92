//! `cargo xtask crash`: the crash campaign, built for release and run. What it does is in `testing/torture`.

use anyhow::Result;
use lab::command::{checked, root};
use lab::release_build::Profile;
use std::process::Command;

/// What to run.
#[derive(clap::Args, Clone, Debug)]
pub struct CrashArguments {
    /// How many crash states to recover and check. Above 200000 this is the long form: every moment with at
    /// most 12 unsynced writes is tried with all subsets of them (otherwise: with at most 5, now and then 8).
    /// The report counts the moments that were.
    #[arg(long, default_value_t = 1_000_000)]
    states: u64,
    /// Where the seeds of the histories begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead: let every n-th I/O call of the scenes of three seeds fail once, in every way (1: all calls).
    #[arg(long)]
    fail_calls: Option<u64>,
    /// Instead: try one state or failing call again, by the name a failure printed.
    #[arg(long)]
    replay: Option<String>,
}

/// Runs the campaign.
pub fn run(arguments: &CrashArguments) -> Result<()> {
    let CrashArguments { states, seed, fail_calls, replay } = arguments;
    let (release, seed) = (Profile::Release, seed.to_string());
    match (replay, fail_calls) {
        (Some(state), _) => torture(release, &["replay", state]),
        (None, Some(stride)) => {
            torture(release, &["faults", "--stride", &stride.to_string(), "--seed", &seed])
        }
        (None, None) => torture(release, &["states", "--states", &states.to_string(), "--seed", &seed]),
    }
}

/// The form that `cargo xtask test` runs.
pub fn quick(profile: Profile) -> Result<()> {
    torture(profile, &["states", "--states", "30000"])?;
    torture(profile, &["faults", "--stride", "5"])
}

/// For the C library's allocator: a state allocates and frees some megabytes, which need not go back to the
/// kernel and come back, page fault by page fault, each time.
const KEEP_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
    ("MALLOC_TOP_PAD_", "67108864"),
];

fn torture(profile: Profile, arguments: &[&str]) -> Result<()> {
    profile.build()?;
    let program = profile.program("untorn-torture")?;
    checked(Command::new(program).args(arguments).envs(KEEP_MEMORY).current_dir(root()))
}
