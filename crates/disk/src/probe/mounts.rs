//! `/proc/self/mountinfo`: which file system a file is on, and what is mounted there (proc_pid_mountinfo(5)).

use std::path::PathBuf;

/// One mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) device: (u32, u32),
    pub(crate) point: PathBuf,
    pub(crate) file_system: String,
    pub(crate) source: String,
}

/// The mount with this number, else the last one of this device (a later mount hides an earlier one).
pub(crate) fn find(mountinfo: &str, id: Option<u64>, device: (u32, u32)) -> Option<Mount> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(parse).collect();
    let numbered = mounts.iter().find(|mount| Some(mount.id) == id);
    numbered.or_else(|| mounts.iter().rev().find(|mount| mount.device == device)).cloned()
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw`: number, parent, device, root, point,
/// options, any number of tags, a dash, type, source, options of the file system.
fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let device = number(mount.nth(1)?)?;
    let point = PathBuf::from(unescape(mount.nth(1)?));
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    Some(Mount { id, device, point, file_system: kind, source: unescape(file_system.next()?) })
}

/// `major:minor`.
pub(crate) fn number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Blanks, tabs, line feeds and backslashes are written as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
31 22 7:0 / /mnt/my\\040disk rw shared:2 master:1 - xfs /dev/loop0 rw,attr2
32 22 0:45 /sub /mnt/b rw - btrfs /dev/sdb1 rw,subvol=/sub
33 22 7:0 / /mnt/again rw - xfs /dev/loop0 rw,attr2
not a mount
";

    #[test]
    fn finds_by_number_and_else_by_device() {
        let by_number = find(TEXT, Some(31), (0, 0)).unwrap();
        assert_eq!(by_number.point, PathBuf::from("/mnt/my disk"));
        assert_eq!((by_number.file_system.as_str(), by_number.device), ("xfs", (7, 0)));
        assert_eq!(find(TEXT, Some(99), (7, 0)).unwrap().id, 33);
        assert_eq!(find(TEXT, None, (0, 45)).unwrap().source, "/dev/sdb1");
        assert_eq!(find(TEXT, None, (9, 9)), None);
    }
}
