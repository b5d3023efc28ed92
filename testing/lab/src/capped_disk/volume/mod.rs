//! A volume whose cap counts reads and writes together, like a cloud volume: "3000 IOPS, 160 MB/s" in total.
//!
//! The kernel's control groups cap reads and writes each, which gives a load of half reads and half writes
//! twice as much. So requests are paced by ourselves: a FUSE file system shows one file, backed by an image,
//! and a loop device with direct I/O on that file is the disk. It is a process of its own ([`serve()`]),
//! this program with a hidden command: its processor time can be told from that of the loads, and it goes on
//! answering, so that mounts can be undone, whatever fails here.

mod pace;
mod serve;

pub use serve::serve;

use crate::capped_disk::Profile;
use crate::server_process::processor_time;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The only file of the file system.
const FILE: &str = "disk";
/// The hidden command with which a program that makes volumes calls [`serve()`].
pub const COMMAND: &str = "serve-volume";

/// What the process of a volume is told.
#[derive(clap::Args, Debug)]
pub struct ServeArguments {
    image: PathBuf,
    mount: PathBuf,
    /// Answers flushes at once, as a volume with a safe cache does.
    #[arg(long)]
    no_flushes: bool,
}

/// A volume being served. To be dropped after what is attached to its file.
pub struct Volume {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    mount: PathBuf,
}

impl Volume {
    /// Serves an image as a file below `mount`, uncapped.
    pub fn new(image: &Path, mount: &Path, flushes: bool) -> Result<Volume> {
        ensure!(
            Path::new("/dev/fuse").exists(),
            "no /dev/fuse, which a cap on reads and writes together needs"
        );
        std::fs::create_dir_all(mount)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(COMMAND).arg(image).arg(mount);
        if !flushes {
            command.arg("--no-flushes");
        }
        // Ctrl-C is for us: the volume must outlive what is mounted on it.
        let mut process = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().map(BufReader::new).context("a pipe was asked for")?;
        let mut volume = Volume { process, input, output, mount: mount.to_path_buf() };
        volume.expect("ready")?;
        Ok(volume)
    }

    /// The file that is the disk.
    pub fn file(&self) -> PathBuf {
        self.mount.join(FILE)
    }

    /// Behaves so from now on, with full buckets.
    pub fn behave_as(&mut self, profile: &Profile) -> Result<()> {
        let input = self.input.as_mut().context("the volume has ended")?;
        writeln!(input, "{}", serde_json::to_string(profile)?).context("the volume has ended")?;
        self.expect("ok")
    }

    /// What its process took so far.
    pub fn processor_time(&self) -> Result<Duration> {
        processor_time(self.process.id())
    }

    fn expect(&mut self, answer: &str) -> Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.trim_end() != answer {
            bail!("the process of the volume said {line:?} instead of {answer:?}");
        }
        Ok(())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The end of its input is its end; it unmounts by itself.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
