//! Opening a file for direct I/O, and what to do where the file system refuses it.
//!
//! Direct I/O is decided per file at open: asked for by flag, believed only after one aligned read went
//! through, because some file systems accept the flag and refuse the transfer. A file system that refuses
//! either (tmpfs, some overlays) gets the file through the page cache, and the storage says so once.

use crate::{AlignedBuf, Error, OpenHow, OpenMode, Result};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Transfer alignment assumed for direct I/O where the kernel does not tell.
const USUAL_BLOCK: usize = 512;

/// The descriptor, the alignment, and whether direct I/O was wanted and refused.
pub(super) fn open_descriptor(path: &Path, how: OpenHow) -> Result<(std::fs::File, usize, bool)> {
    debug_assert!(!(how.closable && how.by_this_name), "opened again by name, it could be another file");
    let failed = |error| Error::new("open", path, error);
    let flags = if how.by_this_name { libc::O_NOFOLLOW } else { 0 };
    let checked = |file: std::fs::File| {
        if how.by_this_name { only_named_so(&file).map(|()| file) } else { Ok(file) }
    };
    let existing = std::fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|there| there.file_type().is_fifo()) {
        // To open it would be to wait until somebody writes into it.
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, not a file")));
    }
    if !how.direct {
        let file = options(how, how.mode, flags).open(path).and_then(checked).map_err(failed)?;
        return Ok((file, 1, false));
    }
    match options(how, how.mode, flags | libc::O_DIRECT).open(path) {
        Ok(file) => {
            let file = checked(file).map_err(failed)?;
            if let Some(alignment) = direct_alignment(&file) {
                return Ok((file, alignment, false));
            }
        }
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        Err(error) => return Err(failed(error)),
    }
    // The refused attempt may have created the file; then it is ours although it now exists.
    let mode =
        if how.mode == OpenMode::CreateNew && existing.is_none() { OpenMode::Create } else { how.mode };
    let file = options(how, mode, flags).open(path).and_then(checked).map_err(failed)?;
    Ok((file, 1, true))
}

fn options(how: OpenHow, mode: OpenMode, flags: i32) -> OpenOptions {
    let mut options = OpenOptions::new();
    // Tables are for the owner and its group, as MySQL makes them, whatever the umask allows.
    let bits = if how.private { 0o600 } else { 0o640 };
    options.read(true).write(mode != OpenMode::ReadOnly).custom_flags(flags).mode(bits);
    match mode {
        OpenMode::ReadOnly | OpenMode::Existing => {}
        OpenMode::Create => drop(options.create(true).truncate(false)),
        OpenMode::CreateNew => drop(options.create_new(true)),
    }
    options
}

/// Refuses what is no regular file, and a file that has other names.
fn only_named_so(file: &std::fs::File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() == 1 {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file of one name"))
}

/// The transfer alignment of a file opened with `O_DIRECT`; `None` when direct transfers are refused after
/// all.
fn direct_alignment(file: &std::fs::File) -> Option<usize> {
    let mut buf = AlignedBuf::zeroed(crate::ALIGNMENT);
    let alignment = told_alignment(file);
    let mut attempt = |length: usize| file.read_at(&mut buf[..length], 0).is_ok();
    match alignment {
        Some(told) if told <= crate::ALIGNMENT => attempt(crate::ALIGNMENT).then_some(told),
        Some(_) => None,
        None if attempt(USUAL_BLOCK) => Some(USUAL_BLOCK),
        None => attempt(crate::ALIGNMENT).then_some(crate::ALIGNMENT),
    }
}

/// What statx says (`STATX_DIOALIGN`, Linux 6.1).
fn told_alignment(file: &std::fs::File) -> Option<usize> {
    // SAFETY: statx is plain integers, for which zero is a value.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty C string, an open descriptor, and a statx to fill.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &raw mut told)
    };
    let known = result == 0 && told.stx_mask & libc::STATX_DIOALIGN != 0 && told.stx_dio_offset_align != 0;
    known.then_some(told.stx_dio_offset_align as usize)
}

/// Whether memory at `address` can be handed to direct I/O as it is.
pub(super) fn memory_is_aligned(address: *const u8) -> bool {
    (address as usize).is_multiple_of(USUAL_BLOCK)
}
