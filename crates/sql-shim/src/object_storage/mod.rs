//! Backups in object storage: the commands `untorn upload` and `untorn download`.
//!
//! There a backup is what it is on a disk: one object for each file, under its name, so that any tool that
//! copies objects to files makes a backup of them, too. Its manifest is the last object; without it nothing
//! under the name is a backup. So an upload or download that is cut off leaves nothing that could be taken for
//! one, and is begun again with the same words: what is there already and right stays.
//!
//! **One name, one backup.** An upload first puts an object of the name that also marks an unfinished
//! directory; the store takes it only if there is none. It holds the backup's checksum, so that the same
//! backup goes on where it was, and another one is refused before it has changed anything. Who has the mark
//! looks for a manifest once more: the one before may have finished in between.
//!
//! Every byte is compared with the manifest on its way up, and on its way down.

mod download;
mod location;
mod upload;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime: {error}"))?.block_on(work)
}

/// Says each tenth of the way.
struct Progress {
    verb: &'static str,
    expected: u64,
    bytes: AtomicU64,
    said: AtomicU64,
}

impl Progress {
    fn new(verb: &'static str, expected: u64) -> Progress {
        Progress { verb, expected, bytes: AtomicU64::new(0), said: AtomicU64::new(0) }
    }

    fn add(&self, bytes: u64) {
        let done = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let tenth = done.saturating_mul(10) / self.expected.max(1);
        if tenth > self.said.fetch_max(tenth, Ordering::Relaxed) {
            say(&format!("{} {} %", self.verb, tenth * 10));
        }
    }
}

/// Runs the tasks, a few at a time, until the first that fails: the others end before it returns.
async fn each<T, F>(items: Vec<T>, most: usize, mut task: impl FnMut(T) -> F) -> Result<(), String>
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let mut running = tokio::task::JoinSet::new();
    let mut items = items.into_iter();
    loop {
        while running.len() < most {
            let Some(item) = items.next() else { break };
            running.spawn(task(item));
        }
        match running.join_next().await {
            None => return Ok(()),
            Some(Ok(Ok(()))) => {}
            Some(outcome) => {
                running.shutdown().await;
                return outcome.unwrap_or_else(|error| Err(error.to_string()));
            }
        }
    }
}
