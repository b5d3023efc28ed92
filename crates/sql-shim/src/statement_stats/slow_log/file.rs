//! The file of the slow statements: where it may be, and entries at its end that are whole.
//!
//! An account names it (`slow_query_log_file`) that must not thereby write to the server's own files or to
//! anything else of the machine. So it is a `.log` in the data directory, where the server itself has none,
//! or below the directory of the file that was named at start, by who starts the server. Links are resolved
//! before that is judged, the file itself is none, and it is regular: a pipe would stop the writer.
//!
//! A write that fails half way (the disk is full) leaves no half entry, which would swallow the next: the
//! file is cut to its last whole entry, or, where that fails, what comes next begins on a line of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Where the file may be.
#[derive(Debug, Default)]
pub struct Place {
    /// The data directory.
    pub data: PathBuf,
    /// The file that was named at start.
    pub named: Option<PathBuf>,
}

impl Place {
    /// The file of this name, relative to the data directory; why not, if it is refused.
    pub fn file(&self, name: &str) -> Result<PathBuf, String> {
        let refused = |why: &str| format!("slow_query_log_file {name:?}: {why}");
        if name.chars().any(char::is_control) {
            return Err(refused("there are control characters in it"));
        }
        let path = self.data.join(name);
        let last = path.file_name().filter(|_| name.ends_with(".log"));
        let (Some(last), Some(directory)) = (last, path.parent()) else {
            return Err(refused("the name has to end in .log"));
        };
        let found = |path: &Path| path.canonicalize().map_err(|error| refused(&error.to_string()));
        let (directory, data) = (found(directory)?, found(&self.data)?);
        let named = self.named.as_deref().and_then(|named| data.join(named).parent()?.canonicalize().ok());
        // Directories below the data directory hold tables, unless one is named.
        let tables =
            |named: &Path| directory.starts_with(&data) && (named == data || data.starts_with(named));
        let below = |named: &Path| directory.starts_with(named) && !tables(named);
        if directory != data && !named.as_deref().is_some_and(below) {
            let places = "it is neither in the data directory nor below that of the file named at start";
            return Err(refused(places));
        }
        let file = directory.join(last);
        match file.symlink_metadata() {
            Ok(there) if !there.is_file() => Err(refused("there is something that is no regular file")),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused(&error.to_string())),
            _ => Ok(file),
        }
    }
}

/// A batch that was not written, or not whole.
#[derive(Debug)]
pub struct Failed {
    /// Entries of it that are not in the file.
    pub lost: usize,
    /// Why.
    pub error: io::Error,
}

/// Appends batches of entries.
#[derive(Default)]
pub struct Appender {
    /// The file's last entry is not whole.
    torn: bool,
}

impl Appender {
    /// Appends entries; a file that is empty begins with `header`.
    pub fn append(&mut self, path: &Path, header: &str, batch: &[Vec<u8>]) -> Result<(), Failed> {
        let nothing = |error| Failed { lost: batch.len(), error };
        let mut file = open(path).map_err(nothing)?;
        let before = file.metadata().map_err(nothing)?.len();
        let mut bytes = Vec::new();
        match before {
            0 => bytes.extend_from_slice(header.as_bytes()),
            _ if self.torn => bytes.push(b'\n'),
            _ => {}
        }
        let mut ends = Vec::with_capacity(batch.len());
        for entry in batch {
            bytes.extend_from_slice(entry);
            ends.push(bytes.len());
        }
        let (written, result) = write_counted(&mut file, &bytes);
        let whole = self.end_whole(&file, before, written, &ends);
        result.map_err(|error| Failed { lost: batch.len() - whole, error })
    }

    /// Makes the file end with an entry that is whole, if it can: of the batch `written` bytes came behind
    /// `before`, and its entries end there. Returns how many of them are in the file.
    fn end_whole(&mut self, file: &File, before: u64, written: usize, ends: &[usize]) -> usize {
        let whole = ends.iter().take_while(|end| **end <= written).count();
        let keep = ends[..whole].last().copied().unwrap_or(0);
        if written > keep {
            let cut = cut(file, before, written, keep);
            self.torn = cut.is_err() || (keep == 0 && self.torn);
        } else if written > 0 {
            self.torn = false;
        }
        whole
    }
}

/// Takes back the end of what was just written, unless somebody else wrote or cut the file.
fn cut(file: &File, before: u64, written: usize, keep: usize) -> io::Result<()> {
    if file.metadata()?.len() != before + written as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    file.set_len(before + keep as u64)
}

/// Writes all, and says how much of it was written if not.
fn write_counted(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn open(path: &Path) -> io::Result<File> {
    // It holds statements with their values: not for others than the owner and its group. A pipe without a
    // reader would stop the opening, one with a reader the writing.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().create(true).append(true).mode(0o640).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("untorn-slow-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("data/table")).unwrap();
        fs::create_dir_all(directory.join("named/below")).unwrap();
        fs::create_dir_all(directory.join("other")).unwrap();
        directory.canonicalize().unwrap()
    }

    #[test]
    fn only_a_log_in_the_data_directory_or_below_the_one_named_at_start_is_taken() {
        let root = directory("place");
        let path = |name: &str| root.join(name).display().to_string();
        let data = root.join("data");
        let (alone, named) = (
            Place { data: data.clone(), named: None },
            Place { data: data.clone(), named: Some(root.join("named/slow.log")) },
        );
        fs::write(data.join("there.log"), b"").unwrap();
        fs::write(root.join("other/there.log"), b"").unwrap();
        fs::create_dir(data.join("directory.log")).unwrap();
        symlink(root.join("other/there.log"), data.join("link.log")).unwrap();
        symlink(root.join("other"), data.join("elsewhere")).unwrap();
        symlink(root.join("other"), root.join("named/elsewhere")).unwrap();
        nix::unistd::mkfifo(&data.join("pipe.log"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["slow.log", "there.log", "./table/../slow.log", &path("data/slow.log")] {
            assert_eq!(alone.file(name).unwrap().parent(), Some(&*data), "{name}");
        }
        let refused = [
            "",
            ".",
            "..",
            "untorn.catalog",
            "t.ibd",
            "slow.log/",
            "slow.log.ibd",
            "table/slow.log",
            "missing/slow.log",
            "../other/slow.log",
            "../slow.log",
            "elsewhere/slow.log",
            "link.log",
            "directory.log",
            "pipe.log",
            "a\nb.log",
            "a\0.log",
            "a\u{1b}[2J.log",
        ];
        for name in refused {
            assert!(alone.file(name).is_err() && named.file(name).is_err(), "{name:?}");
        }
        for name in ["named/slow.log", "named/below/slow.log"].map(path) {
            assert!(alone.file(&name).is_err());
            assert_eq!(named.file(&name).unwrap(), Path::new(&name));
        }
        assert!(named.file(&path("named/elsewhere/slow.log")).is_err());
        assert!(alone.file("a\n.log").unwrap_err().contains(r"a\n.log"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_not_written_and_stops_nobody() {
        let root = directory("open");
        let (pipe, link) = (root.join("pipe.log"), root.join("link.log"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink(root.join("target"), &link).unwrap();
        let fails = |path: &Path| Appender::default().append(path, "h\n", &[b"one\n".to_vec()]).is_err();
        assert!(fails(&pipe) && fails(&link) && fails(&root));
        let _reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        assert!(fails(&pipe) && !root.join("target").exists());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_torn_entry_is_cut_off_or_ends_with_its_line() {
        let root = directory("torn");
        let path = root.join("slow.log");
        let mut appender = Appender::default();
        appender.append(&path, "h\n", &[b"one\n".to_vec()]).unwrap();
        let text = || fs::read_to_string(&path).unwrap();
        let before = text().len() as u64;
        // Two and a half of three entries reached the file.
        let file = open(&path).unwrap();
        (&file).write_all(b"two\nthree\nfo").unwrap();
        assert_eq!(appender.end_whole(&file, before, 12, &[4, 10, 15]), 2);
        assert_eq!(text(), "h\none\ntwo\nthree\n");
        // Somebody else wrote behind it.
        let before = text().len() as u64;
        (&file).write_all(b"fi").unwrap();
        (&file).write_all(b"x").unwrap();
        assert_eq!(appender.end_whole(&file, before, 2, &[5]), 0);
        appender.append(&path, "h\n", &[b"six\n".to_vec()]).unwrap();
        appender.append(&path, "h\n", &[b"seven\n".to_vec()]).unwrap();
        assert_eq!(text(), "h\none\ntwo\nthree\nfix\nsix\nseven\n");
        fs::remove_dir_all(&root).unwrap();
        let mut room = [0; 5];
        let (written, result) = write_counted(&mut room.as_mut_slice(), b"seven bytes");
        assert!(written == 5 && result.is_err());
    }
}
