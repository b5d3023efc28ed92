//! Where figures come from: the machine, the commit, the time.

use crate::command::{captured, root};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The machine on which servers and clients ran.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Machine {
    /// As the processor calls itself.
    pub processor: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// Release of Linux.
    pub kernel: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Result<Machine> {
        let read = |path: &str| std::fs::read_to_string(path).with_context(|| path.to_owned());
        let memory = field(&read("/proc/meminfo")?, "MemTotal").context("no MemTotal in /proc/meminfo")?;
        Ok(Machine {
            processor: field(&read("/proc/cpuinfo")?, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism()?.get(),
            memory_bytes: kib(&memory).with_context(|| format!("MemTotal is {memory:?}"))?,
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        })
    }
}

/// The first value of a name in the files of /proc that have a line `name: value` for each.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Bytes of a size like `24683012 kB`.
fn kib(size: &str) -> Option<u64> {
    size.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The commit that is checked out, and whether the sources differ from it. Documents do not count: a run
/// writes its record and its history there.
pub fn commit() -> Result<(String, bool)> {
    let git = |arguments: &[&str]| captured(Command::new("git").args(arguments).current_dir(root()));
    let commit = git(&["rev-parse", "--short=7", "HEAD"])?.trim().to_owned();
    let changes = git(&["status", "--porcelain", "--", ".", ":(exclude)docs"])?;
    Ok((commit, !changes.trim().is_empty()))
}

/// The time in UTC.
pub fn now() -> Result<String> {
    Ok(captured(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))?.trim().to_owned())
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Machine, field, kib};

    #[test]
    fn files_of_proc_are_read() {
        let text = "processor\t: 0\nmodel name\t: Abacus: fast\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Abacus: fast"));
        assert_eq!(field(text, "MemTotal"), None);
        assert_eq!(kib("24 kB"), Some(24 * 1024));
        assert_eq!(kib("24 MB"), None);
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::here().expect("a machine");
        assert!(machine.cores > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty());
    }
}
