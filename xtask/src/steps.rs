//! Steps: run one after the other, timed, all of them even when one fails, and summed up at the end. Which
//! ones the test command has is `test_command.rs`.

use anyhow::{Result, anyhow, bail};
use lab::release_build::Profile;
use lab::server_process::{Kind, Program};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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

    /// Builds the server.
    pub fn build_server(&mut self, profile: Profile) -> Result<Program> {
        println!("\n==> release build");
        let begin = Instant::now();
        profile.build()?;
        self.done.push(("release build".to_owned(), begin.elapsed(), None));
        Ok(Program::new(Kind::Untorn, profile.program("untorn")?))
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
