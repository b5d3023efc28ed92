//! Files with secrets in them: only their owner may read them, from their first byte on.
//!
//! What has a file's name beforehand is removed and never opened: a link would lead the bytes elsewhere, a
//! pipe to its reader, and a file of somebody else keeps its mode.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file that is durable when this returns; its name in the directory is not yet.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path, bytes).map(drop)
}

fn create(path: &Path, bytes: &[u8]) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

/// Puts a file in place of what has its name: whole or not at all, and durable when this returns.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with_mode(path, bytes, 0o600)
}

/// The same for a file without a secret, of that mode.
pub fn replace_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let file = create(Path::new(&temporary), bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_there_is_neither_followed_nor_kept() {
        let directory = std::env::temp_dir().join(format!("untorn-private-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (path, temporary) = (directory.join("secret"), directory.join("secret.new"));
        let foreign = directory.join("foreign");
        let prepare: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(&foreign, &temporary).unwrap(),
            &|| nix::unistd::mkfifo(&temporary, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            &|| {
                fs::write(&temporary, b"x").unwrap();
                fs::set_permissions(&temporary, fs::Permissions::from_mode(0o666)).unwrap();
            },
        ];
        for there in prepare {
            there();
            replace(&path, b"secret").unwrap();
            assert!(!foreign.exists());
            assert_eq!(fs::read(&path).unwrap(), b"secret");
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_file());
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
