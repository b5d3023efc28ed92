//! What must not happen may happen: a full disk, damaged pages, a disk that fails, files of a newer version,
//! two servers on one directory, lost accounts, names of files given by mistake, damaged files, clients that
//! talk nonsense. Each ends in an error that a client or a person can act on, in no panic, and nothing that
//! was acknowledged is lost.

mod damaged_files;
mod directory;
mod failing_disk;
mod full_disk;
mod packets;

use crate::seed::seed_or_time;
use anyhow::{Context, Result, bail, ensure};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, MySqlError};
use std::path::Path;

/// One check, in a directory of its own.
type Check = fn(&Program, &Path, u64) -> Result<()>;

const CHECKS: [(&str, Check); 11] = [
    ("full disk", full_disk::check),
    ("full disk with copy-on-write", full_disk::check_with_copy_on_write),
    ("damaged page", damaged_files::damaged_page),
    ("unreadable block", failing_disk::unreadable_block),
    ("writes that fail", failing_disk::failing_writes),
    ("newer version", directory::newer_version),
    ("second process", directory::second_process),
    ("lost accounts", directory::lost_accounts),
    ("files of others", directory::files_of_others),
    ("packets", packets::check),
    ("damaged files", damaged_files::anywhere),
];

/// Runs all checks, or the one named.
pub fn run(program: &Program, only: Option<&str>, seed: Option<u64>) -> Result<()> {
    let seed = seed_or_time(seed)?;
    println!("--seed {seed}");
    let mut failures = Vec::new();
    for (name, check) in CHECKS.iter().filter(|(name, _)| only.is_none_or(|only| *name == only)) {
        let result = Scratch::with(&name.replace(' ', "-"), |place| check(program, place, seed));
        if let Err(error) = result {
            println!("{name}: FAILED: {error:#}");
            failures.push(name.to_owned());
        }
    }
    ensure!(failures.is_empty(), "{} failures: {}", failures.len(), failures.join(", "));
    Ok(())
}

/// The statement must fail with a MySQL error, on a connection that lives on.
fn refused(connection: &mut Conn, sql: &str) -> Result<MySqlError> {
    // Not `query_drop`: an error may come after the first row, too.
    match connection.query::<mysql::Row, _>(sql) {
        Ok(rows) => bail!("no error but {rows:?} for: {sql}"),
        Err(Error::MySqlError(error)) => {
            connection.ping().with_context(|| format!("the connection is broken after: {error}"))?;
            Ok(error)
        }
        Err(error) => bail!("{sql}: {error}"),
    }
}

/// One number of a query.
fn number(connection: &mut Conn, sql: &str) -> Result<u64> {
    connection.query_first(sql)?.with_context(|| format!("no row: {sql}"))
}

/// A start that must fail by itself, without a panic. Returns what the server wrote.
fn refuses_to_start(program: &Program, place: &Path, data: &Path) -> Result<String> {
    let mut server = ServerProcess::spawn_on(program, place, data, &[])?;
    let before = server.log().len();
    let status = server.wait_for_end()?;
    let log = server.log();
    let told = log.get(before.min(log.len())..).unwrap_or_default().to_owned();
    ensure!(!status.success(), "the server started and ended well:\n{told}");
    ensure!(!told.contains("panicked at") && status.code().is_some(), "{status}:\n{told}");
    Ok(told)
}
