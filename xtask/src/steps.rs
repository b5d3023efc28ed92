//! Steps: run one after the other, timed, all of them even when one fails, and summed up at the end.

use anyhow::{Result, anyhow, bail};
use lab::command::{cargo, target_directory};
use lab::release_build;
use lab::server_process::{Kind, Program};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The tests. One build of everything: the feature is off in the lints, the documentation and the release
/// program.
const TESTS: [&str; 4] = ["test", "--workspace", "--features", "untorn-server/opensrv"];

/// A step that runs beside those after it.
pub struct Beside {
    name: &'static str,
    thread: JoinHandle<(Duration, Result<()>)>,
}

impl Beside {
    /// Begins it. It prints nothing unless something is wrong.
    pub fn begin(name: &'static str, run: impl FnOnce() -> Result<()> + Send + 'static) -> Beside {
        let begin = Instant::now();
        let thread = thread::spawn(move || {
            let done = run();
            (begin.elapsed(), done)
        });
        Beside { name, thread }
    }
}

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

    /// Waits for a step that was begun beside others.
    pub fn join(&mut self, beside: Beside) {
        println!("\n==> {}: to be finished", beside.name);
        let (took, done) =
            beside.thread.join().unwrap_or_else(|_| (Duration::ZERO, Err(anyhow!("its thread panicked"))));
        let failure = done.err().map(|error| format!("{error:#}"));
        self.done.push((format!("{}, beside others", beside.name), took, failure));
    }

    /// Format and lints; the tests are built.
    pub fn before_tests(&mut self) {
        self.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
        self.step("lints", || {
            cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
        });
        self.step("build of the tests", || cargo(&[&TESTS[..], &["--no-run", "--quiet"]].concat(), &[]));
    }

    /// Tests, models, packages, documentation.
    pub fn tests(&mut self) {
        self.step("tests", || cargo(&[&TESTS[..], &["--no-fail-fast"]].concat(), &[]));
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
        self.step("crates as they would be published", package);
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
        release_build::build()?;
        self.done.push(("release build".to_owned(), begin.elapsed(), None));
        Ok(Program::new(Kind::Untorn, release_build::program("untorn")?))
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

/// Makes the archives of all crates but those that are ours alone. They are not built: the workspace was, and
/// what an archive lacks shows in its list.
fn package() -> Result<()> {
    let ours = ["xtask", "untorn-torture", "untorn-campaigns", "untorn-lab"];
    let without = ours.iter().flat_map(|package| ["--exclude", package]);
    // The steps before have downloaded all that the versions are taken from.
    let arguments = ["package", "--workspace", "--no-verify", "--allow-dirty", "--offline"];
    cargo(&arguments.into_iter().chain(without).collect::<Vec<_>>(), &[])
}
