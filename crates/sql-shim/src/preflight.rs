//! What is wrong with the settings, told before anything is made: a start that fails leaves the data
//! directory as it was.
//!
//! What each setting allows by itself was checked when it was read ([`crate::options`]). Here are the places
//! and addresses that settings name, and what the engine refuses. All of it is checked again where it is
//! used, under the directory's lock.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::options::{ServerOptions, WITHOUT_PERSISTED, machine};
use crate::server::listener;
use crate::variables::{GlobalVariables, persisted};
use crate::{dashboard, metrics, tls};

/// Checks what the server is to be started with. Makes nothing.
///
/// # Errors
/// The first thing that would stop the start, and the setting's name.
pub fn check(options: &ServerOptions, variables: &GlobalVariables) -> Result<(), String> {
    options.database.check().map_err(|error| error.to_string())?;
    check_memory(options)?;
    listener::check_addresses(&options.listen).map_err(|error| error.to_string())?;
    options.listen.socket.as_deref().map_or(Ok(()), |socket| check_socket(socket, &options.datadir))?;
    check_pages(variables)?;
    check_directories(variables, &options.datadir)?;
    check_slow_log(variables, &options.datadir)?;
    tls::check(&options.datadir, variables, options.tls)
}

fn check_memory(options: &ServerOptions) -> Result<(), String> {
    let (memory, of) = machine::memory_bytes();
    let pool = options.database.buffer_pool_bytes;
    if pool <= memory {
        return Ok(());
    }
    let persisted = persisted::path(&options.datadir).display().to_string();
    let (origin, way_out) = match &options.pool_origin {
        Some(origin) if *origin == persisted => (origin.as_str(), WITHOUT_PERSISTED),
        Some(origin) => (origin.as_str(), "give less, or leave it out: the default follows from the memory"),
        None => ("the default", "give less"),
    };
    Err(format!(
        "{origin}: innodb-buffer-pool-size={pool}: more than the {memory} bytes of memory of {of}; {way_out}"
    ))
}

/// The directory of a file that the server makes there. The data directory may have to be made itself.
fn directory_of<'p>(file: &'p Path, datadir: &Path) -> Result<&'p Path, String> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if directory == datadir || directory.is_dir() {
        return Ok(directory);
    }
    Err(format!("there is no directory {}", directory.display()))
}

fn check_socket(socket: &Path, datadir: &Path) -> Result<(), String> {
    let refused = |why: &str| format!("socket={}: {why}", socket.display());
    directory_of(socket, datadir).map_err(|why| refused(&why))?;
    match std::fs::symlink_metadata(socket) {
        Ok(found) if !found.file_type().is_socket() => Err(refused("there is a file that is no socket")),
        Ok(_) if UnixStream::connect(socket).is_ok() => Err(refused("another server listens there")),
        _ => Ok(()),
    }
}

/// The addresses of the pages for people and programs.
fn check_pages(variables: &GlobalVariables) -> Result<(), String> {
    type Parse = fn(&str) -> Result<SocketAddr, String>;
    let pages: [(&str, Parse); 2] =
        [("metrics_address", metrics::parse_address), ("dashboard_address", dashboard::parse_address)];
    for (name, parse) in pages {
        let text = variables.text(name);
        if !text.is_empty() {
            let free = |address| TcpListener::bind(address).map(drop).map_err(|error| error.to_string());
            let outcome = parse(&text).and_then(free);
            outcome.map_err(|why| format!("{}={text}: {why}", name.replace('_', "-")))?;
        }
    }
    Ok(())
}

/// Directories that statements and the engine write to. Some are made when they are needed.
fn check_directories(variables: &GlobalVariables, datadir: &Path) -> Result<(), String> {
    for (name, is_made) in [("tmpdir", false), ("innodb_doublewrite_dir", true), ("untorn_backup_dir", true)]
    {
        let text = variables.text(name);
        let path = datadir.join(&text);
        let refused = |why: &str| Err(format!("{}={text}: {why}", name.replace('_', "-")));
        if text.is_empty() || path.is_dir() {
            continue;
        }
        if path.exists() {
            return refused("it is not a directory");
        }
        if !is_made {
            return refused("there is no such directory");
        }
    }
    Ok(())
}

fn check_slow_log(variables: &GlobalVariables, datadir: &Path) -> Result<(), String> {
    let named = variables.text("slow_query_log_file");
    let path: PathBuf = datadir.join(&named);
    let outcome = match named.ends_with(".log") {
        true => directory_of(&path, datadir).map(drop),
        false => Err("the name has to end in .log".to_owned()),
    };
    outcome.map_err(|why| format!("slow_query_log_file {named:?}: {why}"))
}
