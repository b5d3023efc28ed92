//! Block devices as `/sys` shows them, from the mounted one down to the disks.
//!
//! A partition is a directory in that of its disk, and the disk has the queue. Device-mapper volumes and
//! arrays list what they are made of under `slaves/`. A loop device names its file, which lies on a file
//! system of its own, on a device of its own. The kernel stacks the limits of atomic writes itself (a volume
//! that begins at an odd place has none); what is below is gathered to explain that, and for devices whose
//! sectors are the answer.
//!
//! The root of the tree is a parameter, so that recorded trees can be read like the live one.

use crate::probe::{Backing, Device, DeviceKind, QueueLimits};
use std::fs;
use std::path::{Path, PathBuf};

/// Chains are shorter than this; a loop device on itself would not end.
const DEPTH_MAX: usize = 16;
/// sysfs counts the start of a partition in sectors of 512 bytes whatever the disk's sectors are.
const SYSFS_SECTOR: u64 = 512;

/// Says on which file system and device a file is.
pub(crate) type Locate<'a> = &'a dyn Fn(&Path) -> Option<(String, (u32, u32))>;

/// The tree, and how to find out where the file of a loop device is.
pub(crate) struct Sysfs<'a> {
    pub(crate) root: &'a Path,
    pub(crate) locate: Locate<'a>,
}

impl Sysfs<'_> {
    /// The device with this number and what it is made of.
    pub(crate) fn device(&self, (major, minor): (u32, u32)) -> Option<Device> {
        self.read(&self.root.join(format!("dev/block/{major}:{minor}")), DEPTH_MAX)
    }

    fn read(&self, place: &Path, depth: usize) -> Option<Device> {
        if depth == 0 {
            return None;
        }
        let directory = fs::canonicalize(place).ok()?;
        let name = directory.file_name()?.to_string_lossy().into_owned();
        let number = text(&directory, "dev").unwrap_or_default();
        let partition = directory.join("partition").exists();
        let queue = if partition { directory.join("../queue") } else { directory.join("queue") };
        let start = if partition { count(&directory, "start").unwrap_or(0) * SYSFS_SECTOR } else { 0 };
        let (kind, detail) = classify(&directory, partition);
        let below = if partition {
            self.read(&directory.join(".."), depth - 1).into_iter().collect()
        } else {
            self.members(&directory, depth - 1)
        };
        Some(Device {
            number,
            name,
            kind,
            detail,
            start,
            logical_block: block(&queue, "logical_block_size"),
            physical_block: block(&queue, "physical_block_size"),
            rotational: count(&queue, "rotational") == Some(1),
            write_cache: text(&queue, "write_cache"),
            atomic: limits(&queue),
            below,
            backing: if kind == DeviceKind::Loop { self.backing(&directory, depth - 1) } else { None },
        })
    }

    /// What an array or volume is made of, by name.
    fn members(&self, directory: &Path, depth: usize) -> Vec<Device> {
        let Ok(entries) = fs::read_dir(directory.join("slaves")) else { return Vec::new() };
        let mut places: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        places.sort();
        places.iter().filter_map(|place| self.read(place, depth)).collect()
    }

    fn backing(&self, directory: &Path, depth: usize) -> Option<Box<Backing>> {
        let path = PathBuf::from(text(directory, "loop/backing_file")?);
        let direct = count(directory, "loop/dio") == Some(1);
        let (file_system, number) = (self.locate)(&path).unwrap_or_else(|| ("unknown".into(), (0, 0)));
        let place = self.root.join(format!("dev/block/{}:{}", number.0, number.1));
        Some(Box::new(Backing { path, file_system, direct, device: self.read(&place, depth) }))
    }
}

/// What kind of device it is, and the word that tells it from others.
fn classify(directory: &Path, partition: bool) -> (DeviceKind, Option<String>) {
    if partition {
        return (DeviceKind::Partition, None);
    }
    if let Some(file) = text(directory, "loop/backing_file") {
        return (DeviceKind::Loop, Some(file));
    }
    if let Some(name) = text(directory, "dm/name") {
        // The part of the identity before the first dash says whose volume it is: LVM, CRYPT, mpath.
        let owner = text(directory, "dm/uuid").and_then(|uuid| Some(uuid.split_once('-')?.0.to_owned()));
        let detail = owner.map_or_else(|| name.clone(), |owner| format!("{name}, {owner}"));
        return (DeviceKind::DeviceMapper, Some(detail));
    }
    if let Some(level) = text(directory, "md/level") {
        return (DeviceKind::MdRaid, Some(level));
    }
    (DeviceKind::Disk, text(directory, "device/model"))
}

fn limits(queue: &Path) -> Option<QueueLimits> {
    Some(QueueLimits {
        unit_min: count(queue, "atomic_write_unit_min_bytes")?,
        unit_max: count(queue, "atomic_write_unit_max_bytes")?,
        max: count(queue, "atomic_write_max_bytes").unwrap_or(0),
        boundary: count(queue, "atomic_write_boundary_bytes").unwrap_or(0),
    })
}

/// An attribute without the blanks around it; `None` when it is missing or empty.
fn text(directory: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(directory.join(name)).ok()?;
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn count(directory: &Path, name: &str) -> Option<u64> {
    text(directory, name)?.parse().ok()
}

fn block(queue: &Path, name: &str) -> u32 {
    count(queue, name).and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::mounts;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// A tree of `/sys`, and the device it shows. Links name their target from the root.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tree {
        origin: String,
        number: String,
        files: BTreeMap<String, String>,
        links: BTreeMap<String, String>,
        files_of_loops: BTreeMap<PathBuf, (String, String)>,
        device: Device,
    }

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn build(name: &str, files: &BTreeMap<String, String>, links: &BTreeMap<String, String>) -> Scratch {
        let root = std::env::temp_dir().join(format!("untorn-sysfs-{name}-{}", std::process::id()));
        let place = |path: &str| {
            let place = root.join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            place
        };
        files.iter().for_each(|(path, text)| fs::write(place(path), text).unwrap());
        for (path, target) in links {
            std::os::unix::fs::symlink(root.join(target), place(path)).unwrap();
        }
        Scratch(root)
    }

    #[test]
    fn recorded_trees_are_read_down_to_the_disks() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded-sysfs");
        let mut read = 0;
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let tree: Tree = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert!(tree.origin.starts_with("recorded: ") || tree.origin.starts_with("constructed: "));
            let scratch = build(name, &tree.files, &tree.links);
            let locate = |path: &Path| {
                let (file_system, number) = tree.files_of_loops.get(path)?;
                Some((file_system.clone(), mounts::number(number).unwrap()))
            };
            let sysfs = Sysfs { root: &scratch.0, locate: &locate };
            let found = sysfs.device(mounts::number(&tree.number).unwrap());
            assert_eq!(found.as_ref(), Some(&tree.device), "{name}");
            assert_eq!(sysfs.device((1, 99)), None);
            read += 1;
        }
        assert!(read >= 5, "{read} trees");
    }

    #[test]
    fn a_loop_device_on_itself_comes_to_an_end() {
        let device = "devices/virtual/block/loop9";
        let files = BTreeMap::from([
            (format!("{device}/dev"), "7:9\n".to_owned()),
            (format!("{device}/loop/backing_file"), "/mnt/itself\n".to_owned()),
        ]);
        let links = BTreeMap::from([("dev/block/7:9".to_owned(), device.to_owned())]);
        let scratch = build("itself", &files, &links);
        let locate = |_: &Path| Some(("xfs".to_owned(), (7, 9)));
        let sysfs = Sysfs { root: &scratch.0, locate: &locate };
        let mut depth = 0;
        let mut device = sysfs.device((7, 9));
        while let Some(found) = device {
            depth += 1;
            device = found.backing.and_then(|backing| backing.device);
        }
        assert_eq!(depth, DEPTH_MAX);
    }
}
