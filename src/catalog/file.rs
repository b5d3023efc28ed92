//! The catalog file on disk: reading it, appending to it, rewriting it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{File, OpenHow, Storage};
use serde::{Deserialize, Serialize};

use super::block::{self, BLOCK};
use super::data::{CatalogData, Document, Edit};
use super::{CATALOG_FILE, FORMAT};
use crate::error::Error;
use crate::small_file::read_whole;

/// Bytes that are made ready at a time.
const CHUNK: u64 = 64 << 10;
/// Bytes behind the last record that only some records may take ([`Edit::may_take_the_reserve`]).
const RESERVE: u64 = 64 << 10;
/// The file is rewritten when its records take more than this, and more than twice what a new file would.
const REWRITE_MIN: u64 = 512 << 10;

/// What the first block says: a line of JSON for people, blanks, and a checksum.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    #[serde(default)]
    written_by: String,
    #[serde(default)]
    read_it_with: String,
}

fn header_block() -> Result<Vec<u8>, Error> {
    let header = Header {
        format: FORMAT,
        written_by: env!("CARGO_PKG_VERSION").to_owned(),
        read_it_with: "untorn inspect catalog DIRECTORY".to_owned(),
    };
    let mut block = to_json(&header)?;
    block.push(b'\n');
    block.resize(BLOCK - 4, b' ');
    block.extend_from_slice(&crc32c::crc32c(&block).to_le_bytes());
    Ok(block)
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::Internal(format!("the catalog cannot be written as JSON: {error}")))
}

/// A catalog file as it was read.
pub(super) struct Contents {
    pub data: CatalogData,
    /// Format of the file.
    pub format: u32,
    end: block::End,
    /// Bytes of the file.
    len: u64,
    /// Bytes up to the end of what the file began with.
    snapshot_len: u64,
    /// Whether the last record is a note of how far an opening came, in one block.
    ends_in_note: bool,
}

/// Reads the bytes of a catalog file. `so_far` has what was understood, also when something is damaged.
pub(super) fn parse(path: &Path, bytes: &[u8], so_far: &mut CatalogData) -> Result<Contents, Error> {
    let damaged = |why: String| Error::Catalog {
        path: path.to_owned(),
        why: format!(
            "it is damaged: {why}. Nothing was changed. Restore this file from a backup that is as new as the tables, or the \
             whole directory; `untorn inspect catalog` shows what can still be read"
        ),
    };
    let len = bytes.len() as u64;
    let first_line = bytes.get(..BLOCK).and_then(|block| block.split(|byte| *byte == b'\n').next());
    let header: Option<Header> = first_line.and_then(|line| serde_json::from_slice(line).ok());
    let newer = |header: &Header| Error::NewerDirectory {
        path: path.to_owned(),
        found: header.format,
        known: FORMAT,
        written_by: header.written_by.clone(),
    };
    let Some(header) = header else {
        // The number first: a newer format need not have the fields we know.
        let head: Header = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if head.format > FORMAT {
            return Err(newer(&head));
        }
        let document: Document = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        *so_far = document.into();
        let end = block::End { tail: 0, sequence: 1, torn_until: 0 };
        let (data, format) = (so_far.clone(), head.format);
        return Ok(Contents { data, format, end, len, snapshot_len: len, ends_in_note: false });
    };
    if header.format > FORMAT {
        return Err(newer(&header));
    }
    let (text, sum) = bytes[..BLOCK].split_at(BLOCK - 4);
    if crc32c::crc32c(text).to_le_bytes() != sum {
        return Err(damaged("the checksum of its header is wrong".to_owned()));
    }
    let (mut read, mut snapshot_len, mut ends_in_note) = (BLOCK as u64, 0, false);
    let end = block::decode(bytes, |_, payload| {
        let edits: Vec<Edit> = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        let bytes = block_bytes(payload.len());
        read += bytes;
        ends_in_note = is_note(&edits) && bytes == BLOCK as u64;
        for edit in &edits {
            so_far.apply(edit)?;
            if *edit == Edit::SnapshotEnd {
                snapshot_len = read;
            }
        }
        Ok(())
    })
    .map_err(damaged)?;
    if snapshot_len == 0 {
        return Err(damaged("the end of its first snapshot is missing".to_owned()));
    }
    Ok(Contents { data: so_far.clone(), format: header.format, end, len, snapshot_len, ends_in_note })
}

/// Whether a record says how far an opening came, and nothing else. The next one of that kind makes it void.
fn is_note(edits: &[Edit]) -> bool {
    matches!(edits, [Edit::LastRun(_)])
}

/// Bytes of a record with a payload of this length.
fn block_bytes(payload: usize) -> u64 {
    let mut bytes = Vec::new();
    block::encode(&mut bytes, 0, &vec![0; payload]);
    bytes.len() as u64
}

/// How appending a record ended, if not well.
pub(super) enum Failure {
    /// Nothing has happened.
    Undone(Error),
    /// Nobody can say any more what a crash would leave.
    Uncertain(Error),
}

/// The file being appended to.
pub(super) struct CatalogFile {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    /// Not there in a new directory, and in one of an older format until the file is rewritten.
    file: Option<Arc<dyn File>>,
    /// Where the next record goes, and its number.
    tail: u64,
    sequence: u64,
    /// Up to here blocks of a torn record have to be made zeros before anything is appended.
    torn_until: u64,
    /// Bytes of the file; those behind the tail are zeros.
    allocated: u64,
    snapshot_len: u64,
    ends_in_note: bool,
    /// Edits that are made, but go into the file with the next record only.
    pub unwritten: Vec<Edit>,
}

impl CatalogFile {
    /// The file's bytes; its records are those of the catalog in memory, but for what may be written later.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        read_whole(&*self.storage, &self.directory.join(CATALOG_FILE))
    }

    /// One that is not there yet.
    pub fn new(storage: Arc<dyn Storage>, directory: &Path) -> CatalogFile {
        CatalogFile {
            storage,
            directory: directory.to_owned(),
            file: None,
            tail: 0,
            sequence: 1,
            torn_until: 0,
            allocated: 0,
            snapshot_len: 0,
            ends_in_note: false,
            unwritten: Vec::new(),
        }
    }

    /// Goes on behind what was read. A process that was killed may have written the last record and not
    /// synced it: what is done on the ground of it, to files or in the next record, must not outlive it.
    pub fn go_on(&mut self, contents: &Contents) -> Result<(), Error> {
        let file = self.storage.open(&self.path(), OpenHow::EXISTING.buffered())?;
        file.sync_data()?;
        if contents.format < FORMAT {
            return Ok(());
        }
        self.file = Some(file);
        self.tail = contents.end.tail as u64;
        self.sequence = contents.end.sequence;
        self.torn_until = contents.end.torn_until as u64;
        self.allocated = contents.len - contents.len % BLOCK as u64;
        self.snapshot_len = contents.snapshot_len;
        self.ends_in_note = contents.ends_in_note;
        Ok(())
    }

    /// Whether there is a file of today's format.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    fn path(&self) -> PathBuf {
        self.directory.join(CATALOG_FILE)
    }

    /// Writes a record durably. `before` is the catalog without it, `after` with it.
    pub fn append(
        &mut self,
        edits: &[Edit],
        before: &CatalogData,
        after: &CatalogData,
    ) -> Result<(), Failure> {
        let Some(file) = self.file.clone() else { return self.rewrite(after) };
        if self.tail > REWRITE_MIN && self.tail > 3 * self.snapshot_len {
            // That it fails for want of room is no harm yet.
            match self.rewrite(after) {
                Err(Failure::Undone(error)) => {
                    tracing::warn!("the catalog could not be rewritten: {error}")
                }
                other => return other,
            }
        }
        let encoded = |edits: &[&Edit], sequence| {
            let mut bytes = Vec::new();
            block::encode(&mut bytes, sequence, &to_json(&edits).map_err(Failure::Undone)?);
            Ok(bytes)
        };
        let all: Vec<&Edit> = self.unwritten.iter().chain(edits).collect();
        let mut is_note = self.unwritten.is_empty() && is_note(edits);
        let mut alone_in_it = false;
        let mut bytes = encoded(&all, self.sequence)?;
        if let Err(error) = self.make_room(&file, bytes.len() as u64) {
            if !edits.iter().all(Edit::may_take_the_reserve) {
                return Err(Failure::Undone(error.into()));
            }
            // What can wait does; it is found out again should the process end.
            let alone: Vec<&Edit> = edits.iter().collect();
            bytes = encoded(&alone, self.sequence)?;
            is_note = self::is_note(edits);
            if is_note && self.ends_in_note && bytes.len() == BLOCK {
                // Openings come and go on a full disk: they all take the place of the first.
                return self.overwrite_note(&*file, &encoded(&alone, self.sequence - 1)?, before);
            }
            if self.allocated < self.tail + (bytes.len() + BLOCK) as u64 {
                return Err(Failure::Undone(error.into()));
            }
            alone_in_it = true;
        }
        if self.torn_until > self.tail {
            let cleared = file.write_zeros(self.tail, self.torn_until).and_then(|()| file.sync_data());
            // Nothing was ever acknowledged there, and a torn record stays one.
            cleared.map_err(|error| Failure::Undone(error.into()))?;
            self.torn_until = self.tail;
        }
        let Err((error, synced)) = write_durably(&*file, &bytes, self.tail) else {
            self.tail += bytes.len() as u64;
            self.sequence += 1;
            self.ends_in_note = is_note && bytes.len() == BLOCK;
            // What is announced again is not to be taken for what was done.
            self.unwritten.retain(|edit| match edit {
                Edit::RemovePending(work) => alone_in_it && !edits.iter().any(|new| new.announces(work)),
                _ => alone_in_it,
            });
            return Ok(());
        };
        // What arrived of it must not be taken for a record. A sync that failed says nothing of what is
        // durable, and is not repeated: the file is rewritten as it was without the record.
        let end = self.tail + bytes.len() as u64;
        if !synced && file.write_zeros(self.tail, end).and_then(|()| file.sync_data()).is_ok() {
            return Err(Failure::Undone(error.into()));
        }
        match self.rewrite(before) {
            Ok(()) => Err(Failure::Undone(error.into())),
            Err(Failure::Undone(_) | Failure::Uncertain(_)) => Err(Failure::Uncertain(error.into())),
        }
    }

    /// Writes a note into the block of the last one. A disk writes a sector whole or not, so one of both is
    /// there.
    fn overwrite_note(&mut self, file: &dyn File, block: &[u8], before: &CatalogData) -> Result<(), Failure> {
        let Err((error, _)) = write_durably(file, block, self.tail - BLOCK as u64) else { return Ok(()) };
        // Which of both is there nobody knows.
        match self.rewrite(before) {
            Ok(()) => Err(Failure::Undone(error.into())),
            Err(_) => Err(Failure::Uncertain(error.into())),
        }
    }

    /// Makes sure that zeros are ready for `len` bytes, one more block, and the reserve.
    fn make_room(&mut self, file: &Arc<dyn File>, len: u64) -> disk::Result<()> {
        let wanted = self.tail + len + BLOCK as u64 + RESERVE;
        if self.allocated >= wanted {
            return Ok(());
        }
        let end = wanted.next_multiple_of(CHUNK);
        // A part of it may have been made; that does no harm, and is made again.
        file.write_zeros(self.allocated, end).and_then(|()| file.sync_data())?;
        self.allocated = end;
        Ok(())
    }

    /// Rewrites the file from the catalog in memory. After a crash either the old or the new file is there.
    pub fn rewrite(&mut self, data: &CatalogData) -> Result<(), Failure> {
        let made = self.write_beside(data).map_err(Failure::Undone)?;
        let path = self.path();
        if let Err(error) = self.storage.rename(&made.fresh, &path) {
            // It may have been done all the same: then what is written to the old file is written into a file
            // without a name.
            if !matches!(self.storage.exists(&made.fresh), Ok(true)) {
                return Err(Failure::Uncertain(error.into()));
            }
            // The name of the other file is not needed, nor does it do harm.
            let _ = self.storage.remove(&made.fresh);
            return Err(Failure::Undone(error.into()));
        }
        if let Err(error) = self.storage.sync_dir(&self.directory) {
            return Err(Failure::Uncertain(error.into()));
        }
        self.file = Some(made.file);
        (self.tail, self.sequence) = (made.tail, made.sequence);
        (self.torn_until, self.allocated) = (made.tail, made.allocated);
        self.snapshot_len = made.tail;
        self.ends_in_note = false;
        self.unwritten.clear();
        Ok(())
    }

    fn write_beside(&self, data: &CatalogData) -> Result<Fresh, Error> {
        let storage = &*self.storage;
        let mut fresh = self.path().into_os_string();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let mut bytes = header_block()?;
        let mut sequence = 1;
        for edits in data.snapshot_records() {
            block::encode(&mut bytes, sequence, &to_json(&edits)?);
            sequence += 1;
        }
        let tail = bytes.len() as u64;
        let allocated = (tail + BLOCK as u64 + RESERVE).next_multiple_of(CHUNK);
        if storage.exists(&fresh)? {
            storage.remove(&fresh)?;
        }
        let file = storage.open(&fresh, OpenHow::CREATE_NEW.buffered())?;
        let written = file
            .write_at(&bytes, 0)
            .and_then(|()| file.write_zeros(tail, allocated))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            drop(file);
            let _ = storage.remove(&fresh);
            return Err(error.into());
        }
        Ok(Fresh { fresh, file, tail, sequence, allocated })
    }
}

/// A new file beside the old one.
struct Fresh {
    fresh: PathBuf,
    file: Arc<dyn File>,
    tail: u64,
    sequence: u64,
    allocated: u64,
}

/// Writes and syncs; with an error comes whether it is the sync's.
fn write_durably(file: &dyn File, bytes: &[u8], at: u64) -> Result<(), (disk::Error, bool)> {
    file.write_at(bytes, at).map_err(|error| (error, false))?;
    file.sync_data().map_err(|error| (error, true))
}

/// Reads the catalog of a directory; `None` where there is none.
pub(super) fn read(storage: &dyn Storage, directory: &Path) -> Result<Option<Contents>, Error> {
    let path = directory.join(CATALOG_FILE);
    if !storage.exists(&path)? {
        return Ok(None);
    }
    parse(&path, &read_whole(storage, &path)?, &mut CatalogData::empty(0)).map(Some)
}
