//! How much room there is for a file.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a block in `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// Bytes that a file at `path` may come to have: what its file system has free for this process, and what the
/// file has already. Of the nearest directory that is there; `None` if that cannot be asked.
#[must_use]
pub fn room_at(path: &Path) -> Option<u64> {
    let has = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file);
    let there = path.ancestors().skip(1).find(|directory| directory.is_dir())?;
    let there = CString::new(there.as_os_str().as_bytes()).ok()?;
    // SAFETY: statvfs is plain integers, for which zero is a value.
    let mut told: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string, and a statvfs to fill.
    if unsafe { libc::statvfs(there.as_ptr(), &raw mut told) } != 0 {
        return None;
    }
    let free = told.f_bavail.saturating_mul(told.f_frsize);
    Some(free.saturating_add(has.map_or(0, |file| file.blocks() * BLOCK_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_has_already_is_room_for_it() {
        let directory = std::env::temp_dir().join(format!("untorn-room-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("tier");
        let before = room_at(&path).unwrap();
        assert!(before > 0);
        assert!(room_at(&directory.join("not/there/tier")).is_some());
        // A sparse file has nothing.
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(room_at(&path).unwrap() < before + (1 << 39));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
