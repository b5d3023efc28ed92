//! Finds out who owns a leftover or user-supplied file, and removes it only if it is ours.
//!
//! DDL leaves files that the next statement or the next start removes, under names where people put files as
//! well: to be imported, or back from a backup. A file is removed only where it says that it is the
//! tablespace that goes, or where it never said anything. What cannot be read is left, and asked again later.

use std::io::ErrorKind;
use std::path::Path;

use disk::{AlignedBuf, OpenHow, Storage};

use crate::error::Error;
use crate::space::first_page::{FSP_FLAGS, FSP_SPACE_ID, check_first_page, check_flags};
use page::PageSize;

/// Whose a file is.
#[derive(Debug)]
pub enum FileIdentity {
    /// There is no such file.
    Missing,
    /// Page 0 was never written, or torn when it was first: nothing is lost with it.
    Blank,
    /// The file of this tablespace. Page 0 may be damaged or torn otherwise.
    Space(u32),
    /// Something else, or of a kind this engine does not write.
    Foreign {
        /// The tablespace it says it is the file of, if it is a tablespace's.
        space: Option<u32>,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be read.
    Unreadable(disk::Error),
}

impl FileIdentity {
    /// Looks at a file that need not be open.
    pub fn of(storage: &dyn Storage, path: &Path, page_size: PageSize) -> FileIdentity {
        let mut first = AlignedBuf::zeroed(page_size.bytes());
        let mut read = || {
            // A stranger's file may end anywhere, and direct I/O reads whole sectors only.
            let file = storage.open(path, OpenHow::READ_ONLY.buffered())?;
            let len = file.len()?.min(page_size.bytes() as u64) as usize;
            if len > 0 {
                file.read_at(&mut first[..len], 0)?;
            }
            Ok(len)
        };
        let len: usize = match read() {
            Ok(len) => len,
            Err(error) if disk::Error::kind(&error) == ErrorKind::NotFound => return FileIdentity::Missing,
            Err(error) => return FileIdentity::Unreadable(error),
        };
        if len < page_size.bytes() && !page::is_all_zero(&first) {
            let why = format!("it is shorter than one page of {} bytes", page_size.bytes());
            return FileIdentity::Foreign { space: None, why };
        }
        // Behind the first sector a new page 0 has nothing but its trailer.
        let (body, _trailer) = first.split_at(page_size.bytes() - page::TRAILER_LEN);
        if page::is_all_zero(body) {
            return FileIdentity::Blank;
        }
        let (space, flags) = (page::space_id(&first), page::u32_at(&first, FSP_FLAGS));
        let is_named =
            page::page_type(&first) == page::kind::FSP_HDR && page::u32_at(&first, FSP_SPACE_ID) == space;
        match check_first_page(&first, page_size) {
            Ok(_) => FileIdentity::Space(space),
            // Damaged or torn: its first sector says whose it is all the same.
            Err(_) if is_named && check_flags(flags, page_size).is_ok() => FileIdentity::Space(space),
            Err(why) => FileIdentity::Foreign { space: is_named.then_some(space), why },
        }
    }

    /// Whether the file of tablespace `space` may take this one's name. `replaced` is the file, if any, that
    /// may have it still and is to go.
    pub fn gives_way_to(&self, space: u32, replaced: Option<Replaced>) -> bool {
        match (self, replaced) {
            (FileIdentity::Missing, _) => true,
            (FileIdentity::Blank, replaced) => replaced.is_some(),
            (FileIdentity::Space(found), _) if *found == space => true,
            (FileIdentity::Space(found), Some(Replaced::Own(old) | Replaced::Imported(old))) => *found == old,
            (FileIdentity::Foreign { space: Some(found), .. }, Some(Replaced::Imported(old))) => {
                *found == old
            }
            (FileIdentity::Space(_) | FileIdentity::Foreign { .. } | FileIdentity::Unreadable(_), _) => false,
        }
    }
}

/// A file whose name another one takes, by its tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// One that this engine wrote.
    Own(u32),
    /// One that was imported, in the format of the server that wrote it.
    Imported(u32),
}

/// Removes the file of a tablespace that is to go, and makes that durable, if the file at `path` is that one.
/// A file that is somebody else's stays, with a warning; that is no error.
///
/// # Errors
/// When it cannot be said whose the file is, or it cannot be removed: to be tried again at the next start.
pub fn remove_space_file(
    storage: &dyn Storage,
    path: &Path,
    space: u32,
    page_size: PageSize,
) -> Result<(), Error> {
    unlink_space_file(storage, path, space, page_size)?;
    // Also where it is gone already: whether that is durable is not known.
    match path.parent() {
        Some(directory) if storage.exists(directory)? => Ok(storage.sync_dir(directory)?),
        _ => Ok(()),
    }
}

/// The same, for one of many in a directory, which the caller syncs after the last.
///
/// # Errors
/// As [`remove_space_file`].
pub fn unlink_space_file(
    storage: &dyn Storage,
    path: &Path,
    space: u32,
    page_size: PageSize,
) -> Result<(), Error> {
    let stays = match FileIdentity::of(storage, path, page_size) {
        FileIdentity::Missing => None,
        FileIdentity::Space(found) if found != space => Some(format!("it is the file of tablespace {found}")),
        FileIdentity::Blank | FileIdentity::Space(_) => {
            storage.remove(path)?;
            None
        }
        FileIdentity::Foreign { why, .. } => Some(why),
        FileIdentity::Unreadable(error) => return Err(error.into()),
    };
    if let Some(why) = stays {
        tracing::warn!(
            "{} stays where a dropped table was: {why}; move it away if nobody needs it",
            path.display()
        );
    }
    Ok(())
}
