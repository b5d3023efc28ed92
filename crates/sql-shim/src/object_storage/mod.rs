//! Backups in object storage: the commands `untorn upload` and `untorn download`.
//!
//! There a backup is what it is on a disk: one object for each file, under its name, so that any tool that
//! copies objects to files makes a backup of them, too. Its manifest is the last object; without it nothing
//! under the name is a backup. So an upload or download that is cut off leaves nothing that could be taken
//! for one, and is begun again with the same words: what is there already and right stays.
//!
//! **One name, one backup.** An upload that finds no manifest puts an object of the name that also marks an
//! unfinished directory; the store takes it only if there is none, and a store that does not know this
//! condition is refused. It holds the backup's checksum, so that the same backup goes on where it was, and
//! another one is refused before it has changed anything. Who has the mark looks for a manifest once more:
//! the one before may have finished in between.
//!
//! Every byte is compared with the manifest on its way up, and on its way down.

mod download;
mod location;
mod upload;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::stat::{Mode, umask};

use self::location::Location;
use crate::program::say;

const ABOUT_URLS: &str = "
URL is s3://BUCKET/NAME, also of what speaks S3 elsewhere, or file:///DIRECTORY. S3 takes what it needs from the
usual variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, for another store
AWS_ENDPOINT_URL (and AWS_ALLOW_HTTP=true if it has no TLS); on EC2 and ECS the role of the machine.
";

const UPLOAD: &str = "usage: untorn upload BACKUP URL";
const UPLOAD_HELP: &str = "usage: untorn upload BACKUP URL

Copies a finished backup (BACKUP SERVER TO, untorn backup) to object storage, a file an object. Every byte is
compared with the backup's manifest on the way. Cut off, it goes on when it is called again. An incremental
backup needs its base there, too: upload both, side by side.

  untorn upload /backups/monday s3://backups/monday
";

const DOWNLOAD: &str = "usage: untorn download URL DIRECTORY";
const DOWNLOAD_HELP: &str = "usage: untorn download URL DIRECTORY

Copies a backup from object storage into a new or empty directory. Every byte is compared with the backup's
manifest on the way. Cut off, it goes on when it is called again. The bases of an incremental backup come along
if they lie beside it there: they are put beside DIRECTORY.

  untorn download s3://backups/monday /backups/monday
  untorn restore /backups/monday /var/lib/untorn
";

/// Runs the command with the words behind `upload`.
pub fn upload(words: impl Iterator<Item = String>) -> ExitCode {
    command(words, UPLOAD, UPLOAD_HELP, |backup, url| async move {
        let location = Location::of(&url)?;
        let sent = upload::upload(Path::new(&backup), &location).await?;
        Ok(format!("{location} holds {} files, {} bytes, up to LSN {}", sent.files, sent.bytes, sent.end))
    })
}

/// Runs the command with the words behind `download`.
pub fn download(words: impl Iterator<Item = String>) -> ExitCode {
    command(words, DOWNLOAD, DOWNLOAD_HELP, |url, directory| async move {
        let location = Location::of(&url)?;
        let taken = download::download(&location, Path::new(&directory)).await?;
        let (files, bytes, end) = (taken.files, taken.bytes, taken.end);
        Ok(format!(
            "{directory} holds {files} files, {bytes} bytes, up to LSN {end}; restore it: untorn restore {directory} DIRECTORY"
        ))
    })
}

/// Bytes of a manifest at most; a longer one is not read into memory.
const MANIFEST_MAX: u64 = 256 << 20;

/// Files on their way at the same time.
const FILES: usize = 4;

/// What came to its place.
struct Moved {
    files: usize,
    bytes: u64,
    end: u64,
}

fn command<F>(
    words: impl Iterator<Item = String>,
    usage: &str,
    help: &str,
    work: impl FnOnce(String, String) -> F,
) -> ExitCode
where
    F: Future<Output = Result<String, String>>,
{
    let words: Vec<String> = words.collect();
    let outcome = match &words[..] {
        [word] if word == "--help" || word == "-h" => Ok(format!("{help}{}", ABOUT_URLS.trim_end())),
        [from, to] if !from.starts_with('-') && !to.starts_with('-') => {
            run(work(from.clone(), to.clone())).map_err(|why| format!("error: {why}"))
        }
        _ => Err(usage.to_owned()),
    };
    match outcome {
        Ok(text) => {
            let _ = writeln!(io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

fn run<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    // The one that the server has; a second call finds it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A backup is for its owner, whatever is made for it.
    umask(Mode::from_bits_truncate(0o077));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(FILES + 1).enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(work)
}

/// What the tasks of a command share: how far it is, said at each tenth, and whether one of them has failed.
struct Progress {
    verb: &'static str,
    expected: u64,
    bytes: AtomicU64,
    said: AtomicU64,
    has_failed: AtomicBool,
}

impl Progress {
    fn new(verb: &'static str, expected: u64) -> Arc<Progress> {
        let (bytes, said, has_failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Progress { verb, expected, bytes, said, has_failed })
    }

    /// An error when another task has failed: the others clear up behind them.
    fn add(&self, bytes: u64) -> Result<(), String> {
        let done = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let tenth = done.saturating_mul(10) / self.expected.max(1);
        if tenth > self.said.fetch_max(tenth, Ordering::Relaxed) {
            say(&format!("{} {} %", self.verb, tenth * 10));
        }
        match self.has_failed.load(Ordering::Relaxed) {
            true => Err("given up".to_owned()),
            false => Ok(()),
        }
    }
}

/// Runs a task for each item, a few at a time. When one fails, no more are begun, and those that run end
/// first.
async fn each<T, F>(items: Vec<T>, progress: &Progress, mut task: impl FnMut(T) -> F) -> Result<(), String>
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let (mut running, mut items, mut result) = (tokio::task::JoinSet::new(), items.into_iter(), Ok(()));
    loop {
        while running.len() < FILES && result.is_ok() {
            let Some(item) = items.next() else { break };
            running.spawn(task(item));
        }
        let Some(outcome) = running.join_next().await else { return result };
        if let Err(why) = outcome.unwrap_or_else(|error| Err(error.to_string())) {
            progress.has_failed.store(true, Ordering::Relaxed);
            result = result.and(Err(why));
        }
    }
}

/// Work with files, which the other tasks of this thread need not wait for.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
