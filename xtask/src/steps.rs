//! Steps: run one after the other, timed, all of them even when one fails, and summed up at the end.

use crate::server_process::{Kind, Program};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The steps done so far.
pub struct Steps {
    done: Vec<(String, Duration, Option<String>)>,
}

impl Steps {
    pub fn new() -> Steps {
        Steps { done: Vec::new() }
    }

    /// Runs one step; a failure is kept for the end.
    pub fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let begin = Instant::now();
        let failure = run().err().map(|error| format!("{error:#}"));
        let took = begin.elapsed();
        match &failure {
            None => println!("==> {name}: ok ({:.1} s)", took.as_secs_f64()),
            Some(error) => println!("==> {name}: FAILED ({:.1} s): {error}", took.as_secs_f64()),
        }
        self.done.push((name.to_owned(), took, failure));
    }

    /// Runs what needs a server program, or keeps the failure to get one.
    pub fn with(&mut self, program: Result<Program>, run: impl FnOnce(&mut Steps, &Program)) {
        match program {
            Ok(program) => run(self, &program),
            Err(error) => self.step("server program", || Err(error)),
        }
    }

    /// Format, lints, tests, documentation.
    pub fn sources(&mut self) {
        self.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
        self.step("lints", || {
            cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
        });
        self.step("tests", || cargo(&["test", "--workspace"], &[]));
        // The feature is off in the step before.
        self.step("tests of the feature opensrv", || {
            cargo(&["test", "--package", "untorn-server", "--features", "opensrv", "--test", "opensrv"], &[])
        });
        self.step("loom models", || {
            let target = target_directory().join("loom");
            let target = target.to_string_lossy();
            let crates = ["-p", "untorn-redo", "-p", "untorn-pagestore", "-p", "untorn-txn"];
            let arguments = [&["test", "--release", "--lib"], &crates[..], &["loom_"]].concat();
            // Each model is a program of its own: not worth optimizing through all crates.
            let quick = [("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];
            let place = [("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", &*target)];
            cargo(&arguments, &[place, quick].concat())
        });
        self.step("documentation", || {
            cargo(
                &["doc", "--workspace", "--no-deps", "--document-private-items"],
                &[("RUSTDOCFLAGS", "-D warnings")],
            )
        });
    }

    /// Builds the release server.
    pub fn build_server(&mut self) -> Result<Program> {
        println!("\n==> release build");
        let begin = Instant::now();
        cargo(&["build", "--release", "--bin", "untorn"], &[])?;
        self.done.push(("release build".to_owned(), begin.elapsed(), None));
        let path = target_directory().join("release/untorn");
        if !path.exists() {
            bail!("the build left no {}", path.display());
        }
        Ok(Program::new(Kind::Untorn, path))
    }

    /// The summary; an error if a step failed.
    pub fn finish(self) -> Result<()> {
        println!();
        let mut failed = 0;
        for (name, took, failure) in &self.done {
            let outcome = if failure.is_some() { "FAILED" } else { "ok" };
            println!("{:>8.1} s  {outcome:<6}  {name}", took.as_secs_f64());
            if let Some(error) = failure {
                println!("            {}", error.lines().next().unwrap_or_default());
                failed += 1;
            }
        }
        if failed > 0 {
            bail!("{failed} of {} steps failed", self.done.len());
        }
        Ok(())
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where cargo builds.
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs cargo in the repository.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    checked(&mut command)
}

/// Runs a command that must succeed; its output goes through.
pub fn checked(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// Runs a command that must succeed and returns what it printed. What it printed is in the error otherwise.
pub fn captured(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}\n{text}{errors}", output.status);
    }
    Ok(text)
}
