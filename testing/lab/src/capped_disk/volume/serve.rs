//! The process of a volume: a FUSE file system with one file, whose requests are paced and done on an image
//! by direct I/O.
//!
//! Each request has a thread: it reads the request from the kernel, does the I/O, sleeps until the request's
//! slot and answers. That is fewer wake-ups than a pool and a queue of timers beside it would take, and the
//! threads are enough for all that a loop device ever has under way. What the volume is like
//! comes over standard input, a line of JSON each time; its end is the end of the volume.

use super::pace::Pace;
use super::{FILE, ServeArguments};
use crate::capped_disk::Profile;
use crate::leftover;
use crate::system_packages::administration;
use anyhow::{Context, Result};
use disk::{ALIGNMENT, AlignedBuf};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, WriteFlags,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A loop device has 128 requests under way, and a flush.
const THREADS: usize = 160;
/// The kernel may hand over more than that; the rest waits in its queue.
const UNDER_WAY: u16 = 512;
/// The largest that the kernel's default for FUSE (256 pages) lets through in one piece.
const LARGEST: u32 = 1 << 20;
/// The kernel may keep names and attributes: nothing changes here.
const FOREVER: Duration = Duration::from_secs(1 << 20);
const FILE_NODE: INodeNo = INodeNo(2);
/// How long the mount may stay busy when the volume ends.
const PATIENCE: Duration = Duration::from_secs(5);

struct Served {
    image: File,
    bytes: u64,
    flushes: bool,
    pace: &'static Pace,
}

thread_local! {
    /// Direct I/O takes aligned memory, and the kernel's requests lie behind a header.
    static BUFFER: RefCell<AlignedBuf> = RefCell::new(AlignedBuf::zeroed(LARGEST as usize));
}

impl Served {
    fn attributes(&self, node: INodeNo) -> FileAttr {
        let file = node == FILE_NODE;
        FileAttr {
            ino: node,
            size: if file { self.bytes } else { 0 },
            blocks: self.bytes / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if file { FileType::RegularFile } else { FileType::Directory },
            perm: if file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: ALIGNMENT as u32,
            flags: 0,
        }
    }

    fn sync(&self, reply: ReplyEmpty) {
        match if self.flushes { self.image.sync_data() } else { Ok(()) } {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }
}

/// Sleeps until a moment, if it is to come.
fn wait_until(moment: Instant) {
    let left = moment.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}

impl Filesystem for Served {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let too_few = || std::io::Error::other("the kernel's FUSE takes too few requests at a time");
        config.set_max_write(LARGEST).map_err(|_| too_few())?;
        config.set_max_background(UNDER_WAY).map_err(|_| too_few())?;
        config.set_congestion_threshold(UNDER_WAY).map_err(|_| too_few())?;
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| std::io::Error::other("the kernel's FUSE has no asynchronous direct I/O"))
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&FOREVER, &self.attributes(FILE_NODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, node: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(node));
    }

    fn open(&self, _request: &Request, _node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // Past the page cache, and several writes at a time: what overlaps is the affair of the file system
        // on top.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let slot = self.pace.read(offset, u64::from(size), Instant::now());
        BUFFER.with_borrow_mut(|buffer| {
            let Some(bytes) = buffer.get_mut(..size as usize) else { return reply.error(Errno::EINVAL) };
            match self.image.read_at(bytes, offset) {
                Ok(read) => {
                    wait_until(slot);
                    reply.data(&bytes[..read]);
                }
                Err(error) => reply.error(error.into()),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let slot = self.pace.write(offset, data.len() as u64, Instant::now());
        BUFFER.with_borrow_mut(|buffer| {
            let Some(bytes) = buffer.get_mut(..data.len()) else { return reply.error(Errno::EINVAL) };
            bytes.copy_from_slice(data);
            match self.image.write_all_at(bytes, offset) {
                Ok(()) => {
                    wait_until(slot);
                    reply.written(data.len() as u32);
                }
                Err(error) => reply.error(error.into()),
            }
        });
    }

    fn flush(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.sync(reply);
    }

    fn fsync(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(reply);
    }
}

/// Serves until standard input ends: the hidden command `serve-volume`.
pub fn serve(arguments: &ServeArguments) -> Result<()> {
    let image = File::options()
        .read(true)
        .write(true)
        .custom_flags(nix::fcntl::OFlag::O_DIRECT.bits())
        .open(&arguments.image)
        .with_context(|| format!("cannot open {} for direct I/O", arguments.image.display()))?;
    let bytes = image.metadata()?.len();
    // As long as the process, as its threads are.
    let pace: &'static Pace = Box::leak(Box::new(Pace::new()));
    let served = Served { image, bytes, flushes: !arguments.no_flushes, pace };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("untorn-volume".to_owned())];
    config.n_threads = Some(THREADS);
    let session = Session::new(served, &arguments.mount, &config).context("cannot mount FUSE")?.spawn()?;
    answer("ready")?;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(profile) = serde_json::from_str::<Profile>(&line) else {
            answer("what?")?;
            continue;
        };
        pace.set(profile);
        answer("ok")?;
    }
    let umount = |options: &[&str]| {
        let mut command = administration("umount");
        command.args(options).arg(&arguments.mount).output().is_ok_and(|output| output.status.success())
    };
    let begin = Instant::now();
    while !umount(&[]) {
        if begin.elapsed() > PATIENCE {
            // Somebody was killed before the loop device on top was detached. That is done now, while its
            // requests are still answered.
            leftover::release(&arguments.mount.join(FILE));
            umount(&["--lazy"]);
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Nobody is left to be answered; threads that wait for requests of a busy mount would keep the process.
    drop(session);
    std::process::exit(0)
}

fn answer(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{text}")?;
    Ok(output.flush()?)
}
