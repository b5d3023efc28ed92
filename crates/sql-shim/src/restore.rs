//! The command `untorn restore`: a data directory from a backup.
//!
//! `untorn restore BACKUP DIRECTORY` copies the backup into a new or empty directory and compares every file
//! with the backup's manifest. The server started on it recovers it.

use std::io::{self, Write as _};
use std::process::ExitCode;

const USAGE: &str = "usage: untorn restore BACKUP DIRECTORY";
const HELP: &str = "usage: untorn restore BACKUP DIRECTORY

Makes a data directory of a finished backup (BACKUP SERVER TO, or Database::backup of the crate).
DIRECTORY must be new or empty. Every byte is compared with the backup's manifest; a difference ends the
restore with the file's name. Run it as the server's user, then start the server on DIRECTORY: it recovers it.
";

/// Runs the command with the words behind `restore`.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let outcome = match &words[..] {
        [word] if word == "--help" || word == "-h" => {
            let _ = io::stdout().write_all(HELP.as_bytes());
            Ok(())
        }
        [backup, directory] => restore(backup, directory),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

/// Says each tenth of the way.
fn restore(backup: &str, directory: &str) -> Result<(), String> {
    let mut said = 0;
    let restored = untorn::restore(backup, directory, |progress| {
        let tenth = progress.bytes.saturating_mul(10) / progress.bytes_expected.max(1);
        if tenth > said {
            said = tenth;
            let _ = writeln!(io::stderr(), "restored and verified {} %", tenth * 10);
        }
    });
    let restored = restored.map_err(|error| format!("error: {error}"))?;
    let _ = writeln!(
        io::stdout(),
        "{} holds {} files, {} bytes, up to LSN {}; start the server on it",
        restored.directory.display(),
        restored.files,
        restored.bytes,
        restored.end
    );
    Ok(())
}
