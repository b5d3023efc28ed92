//! Directories for test runs: removed after a success, kept after a failure, with the ends of the servers'
//! logs in the error.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A directory that is removed at the end, unless the thread panics or `KEEP_TEST_DIRECTORIES` is set.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory below the system's directory for temporary files.
    pub fn new(name: &str) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("untorn-{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs `work` in a new directory. When it fails the directory stays, and the error says where the
    /// servers' logs in it are and how they end.
    pub fn with<T>(name: &str, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let place = Scratch::new(name)?;
        let result = work(place.path());
        result.map_err(|error| {
            let told = logs_below(place.path());
            let path = place.0.clone();
            std::mem::forget(place);
            anyhow::anyhow!("{error:#}\nthe directory is kept: {}{told}", path.display())
        })
    }
}

/// Where the logs below a directory are and how each ends.
fn logs_below(place: &Path) -> String {
    let mut logs = Vec::new();
    let directories = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    for directory in directories.filter(|path| path.is_dir()).chain([place.to_path_buf()]) {
        let log = directory.join("server.log");
        if log.exists() {
            logs.push(format!("\n{} ends with:\n{}", log.display(), last_lines(&log)));
        }
    }
    logs.concat()
}

/// The last lines of a log.
pub fn last_lines(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os("KEEP_TEST_DIRECTORIES").is_none() && !std::thread::panicking() {
            // Nothing depends on it; the next run of the same name clears it too.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
