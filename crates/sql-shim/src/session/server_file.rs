//! Files of the server's machine that statements name, for accounts with FILE.
//!
//! All of them lie in the directory of `secure_file_priv`, which is named at start; without it there are
//! none. The kernel keeps the way to them inside of it (`openat2`): no `..` and no symbolic link leads out,
//! even if somebody changes the directory meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use sql::errors::{self, error};
use sql::facts::ServerFacts;
use sql::result::SqlError;
use sql::value::Value;

fn refused() -> SqlError {
    error(errors::OPTION_PREVENTS_STATEMENT, &[&"--secure-file-priv"])
}

/// The directory, and the name inside of it; a relative name is relative to the directory.
fn inside<'n>(facts: &dyn ServerFacts, name: &'n [u8]) -> Result<(PathBuf, &'n Path), SqlError> {
    let Value::Text(directory, _) = facts.system_variable("secure_file_priv", None)? else {
        return Err(refused());
    };
    let directory = PathBuf::from(OsStr::from_bytes(&directory));
    let name = Path::new(OsStr::from_bytes(name));
    let rest = if name.is_absolute() { name.strip_prefix(&directory).map_err(|_| refused())? } else { name };
    Ok((directory, rest))
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn open(directory: &Path, name: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    let directory = File::open(directory).map_err(|error| errno_of(&error))?;
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    openat2(directory, name, how)
}

/// Opens a file to be read.
pub(super) fn open_to_read(facts: &dyn ServerFacts, name: &[u8]) -> Result<File, SqlError> {
    let (directory, rest) = inside(facts, name)?;
    let shown = String::from_utf8_lossy(name);
    // Who opens a pipe must not wait for somebody at its other end.
    let opened = open(&directory, rest, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY);
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::EXDEV) => return Err(refused()),
        Err(errno) => {
            let (number, why) = (errno as i32, errno.desc());
            return Err(error(errors::CANNOT_GET_STAT, &[&shown, &number, &why]));
        }
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        _ => Err(error(errors::TEXT_FILE_NOT_READABLE, &[&shown])),
    }
}

/// A file that is being made: removed again, unless it is kept.
pub(super) struct NewFile {
    directory: OwnedFd,
    name: OsString,
    kept: bool,
}

impl NewFile {
    /// It is whole.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is left: the statement has failed already.
            let _ = unlinkat(&self.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Makes a file, which must not be there, readable by the server's user and group as its data is.
pub(super) fn create(facts: &dyn ServerFacts, name: &[u8]) -> Result<(File, NewFile), SqlError> {
    let (directory, rest) = inside(facts, name)?;
    let shown = String::from_utf8_lossy(name);
    let failed = |errno: Errno| match errno {
        Errno::EXDEV => refused(),
        Errno::EEXIST => error(errors::FILE_EXISTS, &[&shown]),
        errno => error(errors::CANNOT_CREATE_FILE, &[&shown, &(errno as i32), &errno.desc()]),
    };
    let last = rest.file_name().ok_or_else(|| failed(Errno::EISDIR))?;
    let parent = match rest.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let parent = open(&directory, parent, flags).map_err(failed)?;
    // O_EXCL follows no link in place of the file.
    let how = OpenHow::new()
        .flags(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC)
        .mode(Mode::from_bits_truncate(0o640))
        .resolve(ResolveFlag::RESOLVE_BENEATH);
    let file = openat2(&parent, Path::new(last), how).map_err(failed)?;
    Ok((File::from(file), NewFile { directory: parent, name: last.to_owned(), kept: false }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_way_leads_out() {
        let base = std::env::temp_dir().join(format!("untorn-server-file-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        let directory = base.join("inside");
        std::fs::create_dir_all(directory.join("deeper")).unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        std::fs::write(directory.join("open"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", directory.join("link")).unwrap();
        std::os::unix::fs::symlink(base.join("secret"), directory.join("absolute")).unwrap();
        std::os::unix::fs::symlink("..", directory.join("up")).unwrap();
        std::os::unix::fs::symlink("../open", directory.join("deeper/link")).unwrap();
        let read = |name: &str| open(&directory, Path::new(name), OFlag::O_RDONLY).map(drop);
        for name in ["../secret", "link", "absolute", "up/secret", "deeper/../../secret", "/etc/passwd"] {
            assert_eq!(read(name), Err(Errno::EXDEV), "{name}");
        }
        for name in ["open", "deeper/../open", "deeper/link"] {
            assert_eq!(read(name), Ok(()), "{name}");
        }
        std::fs::remove_dir_all(&base).unwrap();
    }
}
