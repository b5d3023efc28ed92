//! The probe against the kernel: XFS, ext4, overlay and partitions on loop devices made for it, and tmpfs.
//! What a verdict promises is tried out by writing, through io_uring and through threads.
//!
//! Only root may mount. As root these tests run and fail where something is missing (continuous integration
//! is root); for other users they say so and test nothing.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use untorn_disk::probe::{self, Atomic, DeviceKind, DirectIo, Verdict};
use untorn_disk::*;

const PAGE: usize = 16384;

/// Whether this process may mount; says so if not.
fn root() -> bool {
    // SAFETY: a system call without arguments.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("only root can mount file systems: not tested");
    }
    root
}

/// Runs a command and gives its output.
fn run(program: &str, arguments: &[&str]) -> String {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program} (xfsprogs, e2fsprogs, util-linux): {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a command whose failure is no failure of the test.
fn try_run(program: &str, arguments: &[&str]) {
    let _ = Command::new(program).args(arguments).output();
}

/// An empty directory that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("untorn-live-{number}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sparse file as a block device, without the page cache between.
struct LoopDevice(String);

impl LoopDevice {
    fn new(image: &Path, bytes: u64) -> LoopDevice {
        std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
        let image = image.to_str().unwrap();
        LoopDevice(run("losetup", &["--direct-io=on", "--find", "--show", image]))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        try_run("losetup", &["--detach", &self.0]);
    }
}

/// A mounted file system. Unmounted, then its device detached, then its image removed: the order of the
/// fields.
struct Mounted {
    point: Mount,
    device: LoopDevice,
    scratch: Scratch,
}

struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        try_run("umount", &[self.0.to_str().unwrap()]);
    }
}

impl Mounted {
    fn new(make: &str, options: &[&str]) -> Mounted {
        let scratch = Scratch::new();
        let device = LoopDevice::new(&scratch.0.join("image"), 400 << 20);
        Mounted::on(scratch, device, make, options)
    }

    fn on(scratch: Scratch, device: LoopDevice, make: &str, options: &[&str]) -> Mounted {
        run(make, &[&["-q"], options, &[device.0.as_str()]].concat());
        let point = scratch.0.join("mnt");
        std::fs::create_dir(&point).unwrap();
        run("mount", &[&device.0, point.to_str().unwrap()]);
        Mounted { point: Mount(point), device, scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.point.0.join(name)
    }

    fn device_name(&self) -> &str {
        self.device.0.trim_start_matches("/dev/")
    }
}

fn environments() -> Vec<RealEnvironment> {
    let backends = [Backend::IoUring, Backend::Threads];
    let options = backends.map(|backend| RealOptions { backend: Some(backend), buffered: false });
    options.into_iter().map(|options| RealEnvironment::new(options).unwrap()).collect()
}

/// Linux 6.16 taught XFS to write several blocks atomically.
fn kernel_has_xfs_atomic_writes() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse().unwrap_or(0));
    let (major, minor): (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
    (major, minor) >= (6, 16)
}

fn atomic_write(storage: &dyn Storage, file: &Arc<dyn File>, offset: u64, image: AlignedBuf) -> Result<()> {
    let kind = IoKind::Write { buf: IoBuf::owned(image), offset, atomic: true, sync: true };
    block_on(submit_one(storage, file, kind)).map(drop)
}

fn image(fill: u8, length: usize) -> AlignedBuf {
    let mut image = AlignedBuf::zeroed(length);
    image.fill(fill);
    image
}

fn read(file: &Arc<dyn File>, offset: u64, length: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(length);
    file.read_at(&mut buf, offset).unwrap();
    buf
}

/// Writes a page atomically and reads it back.
fn works_at(storage: &dyn Storage, file: &Arc<dyn File>, offset: u64, fill: u8) {
    atomic_write(storage, file, offset, image(fill, PAGE)).unwrap();
    assert!(read(file, offset, PAGE).iter().all(|byte| *byte == fill), "page at {offset}");
}

/// Every atomic write is refused, as a refusal, and leaves the page as it was.
fn refuses_everywhere(directory: &Path, expected: &str) {
    for env in environments() {
        let storage = env.storage();
        let file = storage.open(&directory.join("t.ibd"), OpenHow::CREATE).unwrap();
        file.write_at(&image(1, 4 * PAGE), 0).unwrap();
        file.sync_data().unwrap();
        let Verdict { atomic, flagged, reason, .. } = file.protection(PAGE);
        assert_eq!((atomic, flagged), (Atomic::None, false), "{reason}");
        assert!(reason.contains(expected), "{reason}");
        let error = atomic_write(&**storage, &file, PAGE as u64, image(2, PAGE)).unwrap_err();
        assert!(error.is_atomic_refusal(), "{error} by {:?}", env.backend());
        assert_eq!(error.io().raw_os_error(), Some(libc::EOPNOTSUPP), "{error}");
        assert!(read(&file, 0, 4 * PAGE).iter().all(|byte| *byte == 1));
        let counters = storage.counters();
        assert_eq!((counters.atomic_writes, counters.atomic_refusals), (1, 1), "{:?}", env.backend());
    }
}

#[test]
fn xfs_without_hardware_writes_pages_atomically_by_itself_and_refuses_what_it_cannot() {
    if !root() {
        return;
    }
    let xfs = Mounted::new("mkfs.xfs", &[]);
    let facts = probe::facts(&xfs.point.0).unwrap();
    assert_eq!((facts.file_system.as_str(), facts.reflink), ("xfs", Some(true)));
    assert_eq!(facts.mount_point.as_deref(), Some(&*xfs.point.0));
    assert!(matches!(facts.direct_io, DirectIo::Aligned { .. }), "{facts:?}");
    let device = facts.device.as_ref().unwrap();
    assert_eq!((device.name.as_str(), device.kind), (xfs.device_name(), DeviceKind::Loop));
    // Files of one file system share their measurement, files of others do not.
    let storage = environments()[0].storage().clone();
    let open = |directory: &Path| storage.open(&directory.join("device"), OpenHow::CREATE).unwrap().device();
    assert_eq!(open(&xfs.point.0), open(&xfs.point.0));
    assert_ne!(open(&xfs.point.0), open(&std::env::temp_dir()));
    std::fs::remove_file(std::env::temp_dir().join("device")).unwrap();
    let backing = device.backing.as_ref().unwrap();
    assert_eq!(backing.path, xfs.scratch.0.join("image"));
    assert!(backing.direct);
    if !kernel_has_xfs_atomic_writes() {
        return refuses_everywhere(&xfs.point.0, "");
    }
    // The trap: large units on a device that can do none of it.
    let told = facts.atomic.unwrap();
    assert!(told.unit_max as usize >= PAGE && told.unit_max_opt == 0, "{told:?}");
    assert_eq!(device.atomic.unwrap().unit_max, 0);
    let verdict = probe::verdict(&facts, PAGE);
    assert_eq!((verdict.atomic, verdict.flagged), (Atomic::FileSystem, true), "{}", verdict.reason);
    for (number, env) in environments().into_iter().enumerate() {
        let path = xfs.path(&format!("t{number}.ibd"));
        xfs_file(env.storage(), &path, verdict.clone());
        let counters = env.storage().counters();
        assert_eq!((counters.atomic_writes, counters.atomic_refusals), (15, 3), "{:?}", env.backend());
    }
    for env in environments() {
        from_registered_memory(&env, &xfs.path("t0.ibd"));
    }
    // Copies on write are no larger than what is written.
    let environment = environments().remove(0);
    let hinted = environment.storage().open(&xfs.path("hinted"), OpenHow::CREATE_NEW).unwrap();
    let asked = || run("xfs_io", &["-r", "-c", "cowextsize", xfs.path("hinted").to_str().unwrap()]);
    assert!(asked().starts_with("[0]"), "{}", asked());
    hinted.expect_copy_on_write();
    assert!(asked().starts_with("[4096]"), "{}", asked());
    let copy = xfs.path("copy.ibd");
    for (number, how) in ["--reflink=always", "--reflink=never", "--sparse=always"].into_iter().enumerate() {
        run("cp", &[how, xfs.path("t0.ibd").to_str().unwrap(), copy.to_str().unwrap()]);
        restored(&copy, &verdict, number as u8);
        std::fs::remove_file(&copy).unwrap();
    }
}

fn xfs_file(storage: &Arc<dyn Storage>, path: &Path, verdict: Verdict) {
    let file = storage.open(path, OpenHow::CREATE_NEW).unwrap();
    assert_eq!(file.protection(PAGE), verdict, "an empty file is like its directory");
    file.write_zeros(0, 8 * PAGE as u64).unwrap();
    for page in [0, 3, 7] {
        works_at(&**storage, &file, page * PAGE as u64, 10 + page as u8);
    }
    // Twice over the same page: the first write has remapped it.
    works_at(&**storage, &file, 0, 20);
    for (offset, length) in [(4096, PAGE), (0, 3 * 4096), (0, 8 << 20)] {
        let before = read(&file, 0, 8 * PAGE);
        let error = atomic_write(&**storage, &file, offset, image(99, length)).unwrap_err();
        assert!(error.is_atomic_refusal(), "{error}");
        assert_eq!(error.io().raw_os_error(), Some(libc::EINVAL), "{error}");
        assert_eq!(&read(&file, 0, 8 * PAGE)[..], &before[..]);
        assert_eq!(file.len().unwrap(), 8 * PAGE as u64);
    }
    // Extended by zeros as tablespaces are.
    file.write_zeros(8 * PAGE as u64, 16 * PAGE as u64).unwrap();
    assert_eq!(file.protection(PAGE), verdict);
    for page in [8, 15] {
        works_at(&**storage, &file, page * PAGE as u64, 30);
    }
    // Preallocated and never written; past the end; in a hole behind it; half written, half not.
    let open = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let allocate = |offset: usize, length: usize| {
        use std::os::fd::AsRawFd;
        // SAFETY: a system call on an open descriptor.
        unsafe { libc::fallocate(open.as_raw_fd(), 0, offset as i64, length as i64) }
    };
    assert_eq!(allocate(16 * PAGE, 8 * PAGE), 0);
    for page in [16, 20] {
        works_at(&**storage, &file, page * PAGE as u64, 40);
    }
    file.write_at(&image(5, 4096), 21 * PAGE as u64 + 4096).unwrap();
    works_at(&**storage, &file, 21 * PAGE as u64, 41);
    works_at(&**storage, &file, 24 * PAGE as u64, 50);
    works_at(&**storage, &file, 40 * PAGE as u64, 51);
    works_at(&**storage, &file, 30 * PAGE as u64, 52);
    assert!(read(&file, 29 * PAGE as u64, PAGE).iter().all(|byte| *byte == 0));
}

/// Linux refuses atomic writes out of buffers that a ring has registered; ours go around that.
fn from_registered_memory(env: &RealEnvironment, path: &Path) {
    // As `register_buffers` demands, the memory outlives the storage: it is never freed.
    let pool = Box::leak(Box::new(image(77, 4 * PAGE)));
    let address = pool.as_mut_ptr();
    // SAFETY: leaked.
    let registered = unsafe { env.storage().register_buffers(&[(address, 4 * PAGE)]) };
    assert_eq!(registered, env.backend() == Backend::IoUring);
    let file = env.storage().open(path, OpenHow::EXISTING).unwrap();
    for (page, atomic) in [(1, true), (2, false)] {
        // SAFETY: leaked, and written to by nobody.
        let buf = unsafe { IoBuf::raw(address.add(page * PAGE), PAGE) };
        let kind = IoKind::Write { buf, offset: (page * PAGE) as u64, atomic, sync: true };
        block_on(submit_one(&**env.storage(), &file, kind)).unwrap();
        assert!(read(&file, (page * PAGE) as u64, PAGE).iter().all(|byte| *byte == 77));
    }
}

/// A copy has other extents than its original, and is asked about again.
fn restored(path: &Path, verdict: &Verdict, fill: u8) {
    for env in environments() {
        let file = env.storage().open(path, OpenHow::EXISTING).unwrap();
        assert_eq!(&file.protection(PAGE), verdict);
        for page in 0..file.len().unwrap() / PAGE as u64 {
            works_at(&**env.storage(), &file, page * PAGE as u64, fill);
        }
        assert_eq!(env.storage().counters().atomic_refusals, 0);
    }
}

#[test]
fn a_file_in_the_page_cache_is_not_written_atomically() {
    if !root() {
        return;
    }
    let xfs = Mounted::new("mkfs.xfs", &[]);
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let file = env.storage().open(&xfs.path("b"), OpenHow::CREATE_NEW.buffered()).unwrap();
    let verdict = file.protection(PAGE);
    assert_eq!(verdict.atomic, Atomic::None);
    assert!(verdict.reason.contains("page cache"), "{}", verdict.reason);
    let error = atomic_write(&**env.storage(), &file, 0, image(1, PAGE)).unwrap_err();
    assert!(error.is_atomic_refusal(), "{error}");
}

#[test]
fn xfs_without_reflink_on_a_plain_device_needs_the_doublewrite() {
    if !root() {
        return;
    }
    let xfs = Mounted::new("mkfs.xfs", &["-m", "reflink=0"]);
    assert_eq!(probe::facts(&xfs.point.0).unwrap().reflink, Some(false));
    refuses_everywhere(&xfs.point.0, if kernel_has_xfs_atomic_writes() { "reflink" } else { "" });
}

#[test]
fn ext4_on_a_plain_device_needs_the_doublewrite_with_and_without_bigalloc() {
    if !root() {
        return;
    }
    for options in [&["-b", "4096"][..], &["-b", "4096", "-O", "bigalloc", "-C", "16384"]] {
        let ext4 = Mounted::new("mkfs.ext4", options);
        let facts = probe::facts(&ext4.point.0).unwrap();
        assert_eq!((facts.file_system.as_str(), facts.block_bytes), ("ext4", 4096));
        assert_eq!(facts.device.as_ref().unwrap().name, ext4.device_name());
        refuses_everywhere(&ext4.point.0, "ext4");
    }
}

#[test]
fn tmpfs_needs_the_doublewrite() {
    if !root() {
        return;
    }
    let scratch = Scratch::new();
    let point = scratch.0.join("mnt");
    std::fs::create_dir(&point).unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=8M", "tmpfs", point.to_str().unwrap()]);
    let mount = Mount(point);
    let facts = probe::facts(&mount.0).unwrap();
    assert_eq!((facts.file_system.as_str(), facts.device.is_none()), ("tmpfs", true));
    refuses_everywhere(&mount.0, "");
}

/// An overlay answers for the file system below it, and does not take the flag.
#[test]
fn an_overlay_over_a_capable_file_system_is_not_believed() {
    if !root() {
        return;
    }
    let xfs = Mounted::new("mkfs.xfs", &[]);
    let directories = ["lower", "upper", "work"].map(|name| {
        let path = xfs.path(name);
        std::fs::create_dir(&path).unwrap();
        path.display().to_string()
    });
    let [lower, upper, work] = &directories;
    let point = xfs.scratch.0.join("overlay");
    std::fs::create_dir(&point).unwrap();
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    run("mount", &["-t", "overlay", "overlay", "-o", &options, point.to_str().unwrap()]);
    let overlay = Mount(point);
    assert_eq!(probe::facts(&overlay.0).unwrap().file_system, "overlay");
    refuses_everywhere(&overlay.0, "overlay");
    drop(overlay);
}

#[test]
fn a_chain_of_devices_is_followed_to_the_disk() {
    if !root() {
        return;
    }
    let outer = Mounted::new("mkfs.xfs", &[]);
    // A partition at an odd place, in a file on the file system above.
    let disk = LoopDevice::new(&outer.path("disk"), 380 << 20);
    run("addpart", &[&disk.0, "1", "2049", "716800"]);
    let partition = LoopPartition(disk, 1);
    let scratch = Scratch::new();
    let node = format!("{}p1", partition.0.0);
    run("mkfs.xfs", &["-q", &node]);
    let point = scratch.0.join("mnt");
    std::fs::create_dir(&point).unwrap();
    run("mount", &[&node, point.to_str().unwrap()]);
    let inner = Mount(point);
    let facts = probe::facts(&inner.0).unwrap();
    assert_eq!(facts.mount_source.as_deref(), Some(node.as_str()));
    let part = facts.device.unwrap();
    assert_eq!((part.kind, part.start), (DeviceKind::Partition, 2049 * 512));
    let disk = &part.below[0];
    assert_eq!((disk.kind, disk.number.as_str()), (DeviceKind::Loop, number_of(&partition.0.0).as_str()));
    let backing = disk.backing.as_ref().unwrap();
    assert_eq!((backing.path.clone(), backing.file_system.as_str()), (outer.path("disk"), "xfs"));
    let outermost = backing.device.as_ref().unwrap();
    assert_eq!((outermost.kind, outermost.name.as_str()), (DeviceKind::Loop, outer.device_name()));
    drop(inner);
    drop(partition);
}

struct LoopPartition(LoopDevice, u32);

impl Drop for LoopPartition {
    fn drop(&mut self) {
        try_run("delpart", &[&self.0.0, &self.1.to_string()]);
    }
}

/// `major:minor` of a device node.
fn number_of(node: &str) -> String {
    use std::os::unix::fs::MetadataExt;
    let number = std::fs::metadata(node).unwrap().rdev();
    format!("{}:{}", libc::major(number), libc::minor(number))
}

#[test]
fn a_measurement_leaves_nothing_and_tells_whether_atomic_writes_work() {
    if !root() {
        return;
    }
    let mounts = [Mounted::new("mkfs.xfs", &[]), Mounted::new("mkfs.ext4", &[])];
    for mounted in &mounts {
        let time = std::time::Duration::from_millis(50);
        let entries = std::fs::read_dir(&mounted.point.0).unwrap().count();
        let measured = probe::measure(&mounted.point.0, PAGE, time).unwrap();
        assert_eq!(std::fs::read_dir(&mounted.point.0).unwrap().count(), entries);
        let flagged = probe::verdict(&probe::facts(&mounted.point.0).unwrap(), PAGE).flagged;
        assert_eq!(measured.atomic_write.is_some(), flagged, "{measured:?}");
        assert_eq!(measured.atomic_refusal.is_none(), flagged, "{measured:?}");
        assert!(measured.plain_write.count > 0 && measured.sync.count > 0);
    }
}
