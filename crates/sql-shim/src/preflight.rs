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

use nix::unistd::{AccessFlags, access};

use crate::options::{ServerOptions, WITHOUT_PERSISTED, machine};
use crate::server::listener;
use crate::server::runtime::ListenOptions;
use crate::variables::{GlobalVariables, persisted};
use crate::{metrics, tls};

/// Checks what the server is to be started with. Makes nothing.
///
/// # Errors
/// The first thing that would stop the start, and the setting's name.
pub fn check(options: &ServerOptions, variables: &GlobalVariables) -> Result<(), String> {
    options.database.check().map_err(|error| error.to_string())?;
    check_memory(options)?;
    listener::check_addresses(&options.listen).map_err(|error| error.to_string())?;
    let of = |name: &'static str| move |why: String| format!("{}{why}", options.origins.before(name));
    let check_socket = |socket| check_socket(socket, &options.datadir).map_err(of("socket"));
    options.listen.socket.as_deref().map_or(Ok(()), check_socket)?;
    check_pages(variables, &options.listen)?;
    check_directories(variables, options)?;
    check_slow_log(variables, &options.datadir).map_err(of("slow_query_log_file"))?;
    tls::check(&options.datadir, variables, &options.origins, options.tls)
}

fn check_memory(options: &ServerOptions) -> Result<(), String> {
    let (memory, of) = machine::memory_bytes();
    let pool = options.database.buffer_pool_bytes;
    if pool <= memory {
        return Ok(());
    }
    let persisted = persisted::path(&options.datadir).display().to_string();
    let (origin, way_out) = match options.origins.get("innodb_buffer_pool_size") {
        Some(origin) if origin == persisted => (origin, WITHOUT_PERSISTED),
        Some(origin) => (origin, "give less, or leave it out: the default follows from the memory"),
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
    let directory = directory_of(socket, datadir).map_err(|why| refused(&why))?;
    if directory.is_dir() {
        let may = access(directory, AccessFlags::W_OK | AccessFlags::X_OK);
        may.map_err(|why| refused(&format!("no files can be made in {}: {why}", directory.display())))?;
    }
    match std::fs::symlink_metadata(socket) {
        Ok(found) if !found.file_type().is_socket() => Err(refused("there is a file that is no socket")),
        Ok(_) if UnixStream::connect(socket).is_ok() => Err(refused("another server listens there")),
        _ => Ok(()),
    }
}

/// Whether only one can listen.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    // 0 is any port that is free.
    let same_place = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && same_place
}

/// How the address of a page is read.
type ParseAddress<'p> = &'p dyn Fn(&str) -> Result<SocketAddr, String>;

/// The addresses of the pages for people and programs. Nobody listens yet: who is to listen on them besides
/// is compared.
fn check_pages(variables: &GlobalVariables, listen: &ListenOptions) -> Result<(), String> {
    let has_account = !variables.text("dashboard_account").is_empty();
    let dashboard = |text: &str| untorn::dashboard::parse_address(text, has_account);
    let pages: [(&str, ParseAddress<'_>); 2] =
        [("metrics_address", &metrics::parse_address), ("dashboard_address", &dashboard)];
    let server = listen.addresses.iter().map(|address| SocketAddr::new(*address, listen.port));
    let mut others: Vec<(SocketAddr, &str)> = server.map(|address| (address, "the server's port")).collect();
    for (name, parse) in pages {
        let text = variables.text(name);
        if text.is_empty() {
            continue;
        }
        let refused = |why: String| format!("{}={text}: {why}", name.replace('_', "-"));
        let address = parse(&text).map_err(refused)?;
        if let Some((_, other)) = others.iter().find(|(other, _)| collide(*other, address)) {
            return Err(refused(format!("the same address as {}", other.replace('_', "-"))));
        }
        TcpListener::bind(address).map_err(|error| refused(error.to_string()))?;
        others.push((address, name));
    }
    Ok(())
}

/// Directories that statements and the engine write to. Some are made when they are needed.
fn check_directories(variables: &GlobalVariables, options: &ServerOptions) -> Result<(), String> {
    for (name, is_made) in [("tmpdir", false), ("innodb_doublewrite_dir", true), ("untorn_backup_dir", true)]
    {
        let text = variables.text(name);
        let path = options.datadir.join(&text);
        let origin = options.origins.before(name);
        let refused = |why: &str| Err(format!("{origin}{}={text}: {why}", name.replace('_', "-")));
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
    let is_other = std::fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file());
    let outcome = match named.ends_with(".log") {
        true if is_other => Err("anything but a regular file is refused, a link too".to_owned()),
        true => directory_of(&path, datadir).map(drop),
        false => {
            Err("the name has to end in .log; without a directory it is in the data directory".to_owned())
        }
    };
    outcome.map_err(|why| format!("slow_query_log_file {named:?}: {why}"))
}
