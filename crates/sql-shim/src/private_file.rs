//! Files with secrets in them: only their owner may read them, from their first byte on.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file that is durable when this returns; its name in the directory is not yet.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Puts a file in place of what has its name: whole or not at all, and durable when this returns.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    write(Path::new(&temporary), bytes)?;
    fs::rename(&temporary, path)?;
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
