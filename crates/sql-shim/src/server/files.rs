//! Files of the server's machine that statements name, for accounts with FILE.
//!
//! All of them lie in the directory of `secure_file_priv`, which is named and opened at start; without it
//! there are none. What is reached is that directory, whatever its name leads to later. The kernel keeps the
//! way to files inside it (`openat2`): no `..` and no symbolic link leads out, even if somebody changes
//! the directory meanwhile.
//!
//! A new file has no name until it is whole (`O_TMPFILE`), so that one that fails leaves nothing and removes
//! nothing. Where the file system cannot do that the file has its name from the start, and is removed again
//! only while the name still leads to it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};
use sql::errors::{self, error};
use sql::result::SqlError;

fn refused() -> SqlError {
    error(errors::OPTION_PREVENTS_STATEMENT, &[&"--secure-file-priv"])
}

/// The directory that was named at start.
///
/// # Errors
/// 1290: none was.
pub fn named(directory: Option<&FileDirectory>) -> Result<&FileDirectory, SqlError> {
    directory.ok_or_else(refused)
}

fn open(directory: &OwnedFd, name: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    openat2(directory, name, how)
}

/// The directory of `secure_file_priv`.
#[derive(Debug)]
pub struct FileDirectory {
    path: PathBuf,
    opened: OwnedFd,
}

impl FileDirectory {
    /// Opens it.
    ///
    /// # Errors
    /// It is not there, or may not be entered.
    pub fn open(path: &Path) -> io::Result<FileDirectory> {
        Ok(FileDirectory { path: path.to_owned(), opened: File::open(path)?.into() })
    }

    /// The name inside the directory; a relative name is relative to it.
    fn inside<'n>(&self, name: &'n [u8]) -> Result<&'n Path, SqlError> {
        let name = Path::new(OsStr::from_bytes(name));
        if name.is_absolute() { name.strip_prefix(&self.path).map_err(|_| refused()) } else { Ok(name) }
    }

    /// Opens a file to be read.
    ///
    /// # Errors
    /// 1290: it lies elsewhere; 13, 1085: it cannot be opened, or is no file.
    pub fn open_to_read(&self, name: &[u8]) -> Result<File, SqlError> {
        let shown = String::from_utf8_lossy(name);
        // Who opens a pipe must not wait for somebody at its other end.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = match open(&self.opened, self.inside(name)?, flags) {
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

    /// Makes a file, which must not be there, readable by the server's user and group as its data is.
    ///
    /// # Errors
    /// 1290: it would lie elsewhere; 1086: it is there; 1: it cannot be made.
    pub fn create(&self, name: &[u8]) -> Result<(File, NewFile), SqlError> {
        let rest = self.inside(name)?;
        self.made(rest, name).map_err(|errno| cannot_create(name, errno))
    }

    fn made(&self, rest: &Path, name: &[u8]) -> Result<(File, NewFile), Errno> {
        // `Path` takes `x/` and `x/.` for `x`.
        let is_directory = name.ends_with(b"/") || name.ends_with(b"/.");
        let last = rest.file_name().filter(|_| !is_directory).ok_or(Errno::EISDIR)?;
        let parent = match rest.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = open(&self.opened, parent, OFlag::O_PATH | OFlag::O_DIRECTORY)?;
        if fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok() {
            return Err(Errno::EEXIST);
        }
        let shown = name.to_vec();
        let (file, identity) = match without_name(&parent) {
            Some(file) => (file, None),
            None => with_name(&parent, last)?,
        };
        Ok((file, NewFile { parent, name: last.to_owned(), shown, identity }))
    }
}

fn cannot_create(name: &[u8], errno: Errno) -> SqlError {
    let shown = String::from_utf8_lossy(name);
    match errno {
        Errno::EXDEV => refused(),
        Errno::EEXIST => error(errors::FILE_EXISTS, &[&shown]),
        errno => error(errors::CANNOT_CREATE_FILE, &[&shown, &(errno as i32), &errno.desc()]),
    }
}

const MODE: Mode = Mode::from_bits_truncate(0o640);

/// A file without a name; `None`: it could not be given one later.
fn without_name(parent: &OwnedFd) -> Option<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
    let file = openat(parent, ".", flags, MODE).ok()?;
    way_to(&file).exists().then(|| file.into())
}

/// A name of an open file.
fn way_to(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A file with its name, and which file it is.
fn with_name(parent: &OwnedFd, name: &OsStr) -> Result<(File, Option<(u64, u64)>), Errno> {
    // O_EXCL follows no link in place of the file.
    let how = OpenHow::new()
        .flags(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC)
        .mode(MODE)
        .resolve(ResolveFlag::RESOLVE_BENEATH);
    let file = File::from(openat2(parent, name, how)?);
    let identity = file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    Ok((file, Some(identity.unwrap_or_default())))
}

/// A file that is being made: nothing is left of it, unless it is kept.
#[derive(Debug)]
pub struct NewFile {
    parent: OwnedFd,
    name: OsString,
    /// As the statement names it.
    shown: Vec<u8>,
    /// Device and inode, while the file has its name before it is whole.
    identity: Option<(u64, u64)>,
}

impl NewFile {
    /// The file is whole.
    ///
    /// # Errors
    /// 1086: somebody else has made one of that name meanwhile.
    pub fn keep(mut self, file: &File) -> Result<(), SqlError> {
        if self.identity.take().is_some() {
            return Ok(());
        }
        linkat(AT_FDCWD, &way_to(file), &self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_FOLLOW)
            .map_err(|errno| cannot_create(&self.shown, errno))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let Some((device, inode)) = self.identity else { return };
        let found = fstatat(&self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| (found.st_dev, found.st_ino) == (device, inode)) {
            // What cannot be removed is left: the statement has failed already.
            let _ = unlinkat(&self.parent, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A directory in an empty one.
    fn inside(name: &str) -> (PathBuf, PathBuf) {
        let base = std::env::temp_dir().join(format!("untorn-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir_all(base.join("inside/deeper")).unwrap();
        (base.clone(), base.join("inside"))
    }

    #[test]
    fn no_way_leads_out() {
        let (base, directory) = inside("out");
        std::fs::write(base.join("secret"), "x").unwrap();
        std::fs::write(directory.join("open"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", directory.join("link")).unwrap();
        std::os::unix::fs::symlink(base.join("secret"), directory.join("absolute")).unwrap();
        std::os::unix::fs::symlink("..", directory.join("up")).unwrap();
        std::os::unix::fs::symlink("../open", directory.join("deeper/link")).unwrap();
        let files = FileDirectory::open(&directory).unwrap();
        let read = |name: &str| open(&files.opened, Path::new(name), OFlag::O_RDONLY).map(drop);
        for name in ["../secret", "link", "absolute", "up/secret", "deeper/../../secret", "/etc/passwd"] {
            assert_eq!(read(name), Err(Errno::EXDEV), "{name}");
        }
        for name in ["open", "deeper/../open", "deeper/link"] {
            assert_eq!(read(name), Ok(()), "{name}");
        }
        // What takes its name later is another directory.
        std::fs::rename(&directory, base.join("moved")).unwrap();
        std::fs::create_dir(&directory).unwrap();
        assert!(files.open_to_read(b"open").is_ok());
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_fails_removes_no_file_of_others() {
        let (base, directory) = inside("new");
        let files = FileDirectory::open(&directory).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        // Whether the file system knows files without names or not.
        for (name, nameless) in [("a", true), ("b", false)] {
            let make = || match nameless {
                true => files.create(name.as_bytes()).unwrap(),
                false => {
                    let parent = files.opened.try_clone().unwrap();
                    let (file, identity) = with_name(&parent, OsStr::new(name)).unwrap();
                    let (name, shown) = (name.into(), name.into());
                    (file, NewFile { parent, name, shown, identity })
                }
            };
            drop(make());
            assert!(!directory.join(name).exists(), "{name}");
            let (_file, new) = make();
            let _ = std::fs::remove_file(directory.join(name));
            std::fs::write(directory.join(name), "of others").unwrap();
            drop(new);
            assert_eq!(read(name), "of others");
            assert_eq!(files.create(name.as_bytes()).unwrap_err().code, 1086);
            std::fs::remove_file(directory.join(name)).unwrap();
            let (file, new) = make();
            assert_eq!(directory.join(name).exists(), !nameless, "no name before it is whole");
            std::io::Write::write_all(&mut &file, b"whole").unwrap();
            new.keep(&file).unwrap();
            assert_eq!(read(name), "whole");
        }
        for name in ["x/", "deeper/.", "x/.", ".", ".."] {
            assert_eq!(files.create(name.as_bytes()).unwrap_err().code, 1, "{name}");
        }
        std::fs::remove_dir_all(&base).unwrap();
    }
}
