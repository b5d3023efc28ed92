//! Whether a path lies on a file system of another machine.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The name of the network file system that the path lies on; `None` for local ones, and where the kernel
/// does not tell.
#[must_use]
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero byte and the buffer has room for the answer.
    let answered = unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } == 0;
    // SAFETY: the call has filled it.
    let kind = answered.then(|| unsafe { found.assume_init() }.f_type)?;
    // Numbers of 32 bits, which some architectures extend with their sign.
    name_of(kind as u32)
}

/// As in `statfs(2)`.
fn name_of(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "NFS",
        0x517B => "SMB",
        0xFF53_4D42 => "CIFS",
        0xFE53_4D42 => "SMB2",
        0x5346_414F => "AFS",
        0x0102_1997 => "9P",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        assert_eq!(name_of(0x6969), Some("NFS"));
        assert_eq!(name_of(0xFF53_4D42_u32 as i32 as i64 as u32), Some("CIFS"));
        // ext4, tmpfs, xfs, btrfs.
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E] {
            assert_eq!(name_of(local), None);
        }
        assert_eq!(network_file_system(Path::new("/proc")), None);
        assert_eq!(network_file_system(Path::new("/nowhere/at/all")), None);
    }
}
