//! The command `untorn backup`: a backup of a directory that no server has open.
//!
//! It opens the directory with the server's own settings, as a start would: a crashed one is recovered first.
//! While a server runs, it is the server that copies: `BACKUP SERVER TO`.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use untorn::BackupOptions;
use untorn::asynchronous::Database;
use untorn::engine::block_on;

use crate::auth::accounts;
use crate::options::{self, ServerOptions, arguments};
use crate::program::say;
use crate::variables::{GlobalVariables, persisted};

const USAGE: &str = "usage: untorn backup TARGET [--since=BASE] [options of the server]";
const HELP: &str = "usage: untorn backup TARGET [--since=BASE] [options of the server]

Copies a data directory that no server has open into TARGET, which must be new or empty. Give it the options
that the server is started with (--datadir, --defaults-file ...). A directory after a crash is recovered first.
With --since only the pages are copied that BASE, a finished backup, does not have; restoring needs both.

  untorn backup /backups/monday --datadir=/var/lib/untorn
  untorn backup /backups/tuesday --since=/backups/monday --datadir=/var/lib/untorn
  untorn restore /backups/tuesday /var/lib/restored

Of a running server: BACKUP SERVER TO 'monday', BACKUP SERVER TO 'tuesday' SINCE 'monday'.
";

/// Runs the command with the words behind `backup`.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    match try_run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

fn try_run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut target, mut since, mut rest) = (None, None, Vec::new());
    for word in words {
        match word.strip_prefix("--since=") {
            Some(base) => since = Some(base.to_owned()),
            None if word == "--help" || word == "-h" => {
                let _ = io::stdout().write_all(HELP.as_bytes());
                return Ok(());
            }
            None if target.is_none() && !word.starts_with('-') => target = Some(word),
            None => rest.push(word),
        }
    }
    let target = target.ok_or(USAGE)?;
    let shown = |error: options::OptionError| format!("error: {error}");
    let arguments = arguments::parse(rest).map_err(shown)?;
    let options = options::load(&arguments, &GlobalVariables::default()).map_err(shown)?;
    backup(&options, Path::new(&target), since.as_deref().map(Path::new))
}

/// Says each tenth of the way.
fn backup(options: &ServerOptions, target: &Path, since: Option<&Path>) -> Result<(), String> {
    let failed = |error: untorn::Error| format!("error: {error}");
    // An empty directory would become a database.
    if !options.datadir.join("untorn.catalog").exists() {
        return Err(format!("error: there is no database in {}", options.datadir.display()));
    }
    let database = block_on(Database::open(options.database.clone())).map_err(failed)?;
    let said = std::sync::atomic::AtomicU64::new(0);
    let mut how = BackupOptions::default()
        .small_file(accounts::FILE_NAME)
        .small_file(persisted::FILE_NAME)
        .progress(move |progress| {
            let tenth = progress.bytes.saturating_mul(10) / progress.bytes_expected.max(1);
            if tenth > said.fetch_max(tenth, std::sync::atomic::Ordering::Relaxed) {
                say(&format!("read {} %", tenth * 10));
            }
        });
    if let Some(base) = since {
        how = how.since(base);
    }
    let made = block_on(database.backup_with(target, how));
    let closed = block_on(database.close());
    let made = made.map_err(failed)?;
    closed.map_err(failed)?;
    let _ = writeln!(
        io::stdout(),
        "{} holds {} bytes of {}, up to LSN {}",
        made.directory.display(),
        made.bytes,
        made.bytes_restored,
        made.end
    );
    Ok(())
}
