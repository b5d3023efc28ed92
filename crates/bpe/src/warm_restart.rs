//! What an earlier process left of a tier: the header of its file, and its table, from the map files.
//!
//! ```text
//!   tier file   0  magic "UNTORNT1"    12  page bytes (u32)     20  encryption (u32), 0      28  tier, 16 bytes
//!               8  version (u32)       16  region bytes (u32)   24  key (u32), 0             44  database, 16 bytes
//!               4092  CRC-32C of the bytes before
//! ```
//!
//! The map files say what was in the table ([`crate::journal`]). Of the two the newer complete one counts.
//! A map that does not fit, or misses a byte, means: start empty. A file without our mark, or with the mark
//! of another data directory, is not a tier to start empty in but somebody's file ([`check_mark`]): it is
//! left alone, and the tier stays off.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use disk::{AlignedBuf, Environment, File, OpenHow, Storage};

use crate::geometry::Geometry;
use crate::record::{self, FRAME_ALIGNMENT, FRAME_HEADER, FrameHead, Identity, Record, VERSION};
use crate::store::map_path;
use crate::table::{Inserted, Table};

const MAGIC: &[u8; 8] = b"UNTORNT1";
const HEADER_BYTES: usize = 4096;

/// A kept table.
pub(crate) struct Loaded {
    pub(crate) identity: Identity,
    pub(crate) geometry: Geometry,
    pub(crate) table: Table,
    /// Regions that hold pages, those written first in front.
    pub(crate) fifo: VecDeque<u32>,
    pub(crate) covered: u64,
    pub(crate) run: u32,
    pub(crate) side: usize,
}

/// Writes the header of a new tier and cuts everything else off.
pub(crate) fn write_header(file: &dyn File, identity: &Identity) -> disk::Result<()> {
    file.set_len(0)?;
    stamp(file, identity)
}

/// Writes a header over the one that is there.
pub(crate) fn stamp(file: &dyn File, identity: &Identity) -> disk::Result<()> {
    let mut block = AlignedBuf::zeroed(HEADER_BYTES);
    block[0..8].copy_from_slice(MAGIC);
    block[8..12].copy_from_slice(&u32::from(VERSION).to_le_bytes());
    block[12..16].copy_from_slice(&identity.page_bytes.to_le_bytes());
    block[16..20].copy_from_slice(&identity.region_bytes.to_le_bytes());
    block[28..44].copy_from_slice(&identity.tier);
    block[44..60].copy_from_slice(&identity.database);
    let crc = crc32c::crc32c(&block[..HEADER_BYTES - 4]);
    block[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    file.write_at(&block, 0)?;
    file.sync_data()
}

/// What the first block of a file says.
struct Header {
    identity: Identity,
    version: u32,
    /// Encryption and key, which no version has.
    unknown: u32,
}

fn read_header(file: &dyn File) -> Result<Header, String> {
    let mut block = AlignedBuf::zeroed(HEADER_BYTES);
    file.read_at(&mut block, 0).map_err(|error| error.to_string())?;
    header_in(&block).ok_or_else(|| "its file does not begin with the header of a tier".into())
}

fn header_in(block: &[u8]) -> Option<Header> {
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| block[at + index]));
    if block[0..8] != MAGIC[..] || word(HEADER_BYTES - 4) != crc32c::crc32c(&block[..HEADER_BYTES - 4]) {
        return None;
    }
    let identity = Identity {
        page_bytes: word(12),
        region_bytes: word(16),
        tier: std::array::from_fn(|index| block[28 + index]),
        database: std::array::from_fn(|index| block[44 + index]),
    };
    Some(Header { identity, version: word(8), unknown: word(20) | word(24) })
}

/// Whether the file may be emptied and used: it is empty, or it is a tier of this data directory, or one that
/// holds nothing but its header (whose making was perhaps interrupted). Anything else is somebody's file, and
/// a name given by mistake.
///
/// # Errors
/// Why not, as the end of a sentence.
pub(crate) fn check_mark(file: &dyn File, database: [u8; 16]) -> Result<(), String> {
    let bytes = file.len().map_err(|error| error.to_string())?;
    if bytes == 0 {
        return Ok(());
    }
    let foreign = "it is not empty and does not begin with the header of a buffer pool extension. \
                   If it is of no use to anybody, remove it; otherwise choose another name";
    if bytes < HEADER_BYTES as u64 {
        return Err(foreign.into());
    }
    let mut block = AlignedBuf::zeroed(HEADER_BYTES);
    file.read_at(&mut block, 0).map_err(|error| error.to_string())?;
    let only_header = bytes == HEADER_BYTES as u64;
    let zeros = |range: std::ops::Range<usize>| block[range].iter().all(|byte| *byte == 0);
    let torn = zeros(60..HEADER_BYTES - 4) && (zeros(0..60) || block[0..8] == MAGIC[..]);
    match header_in(&block) {
        _ if only_header && torn => Ok(()),
        Some(header) if header.identity.database == database => Ok(()),
        Some(_) => Err(
            "it is the buffer pool extension of another data directory, or of this one at another place. \
                        If that is no longer in use, remove the file; otherwise choose another name"
                .into(),
        ),
        None => Err(foreign.into()),
    }
}

/// Whether a file is a map of some tier, or empty, so that it may be emptied or removed. Zeros are the mark
/// of nobody: only those of a [`mark_map`] that was interrupted count, which has written nothing else.
pub(crate) fn is_map(file: &dyn File) -> disk::Result<bool> {
    let bytes = file.len()?;
    if bytes < FRAME_ALIGNMENT as u64 {
        return Ok(bytes == 0);
    }
    let mut block = AlignedBuf::zeroed(FRAME_ALIGNMENT);
    file.read_at(&mut block, 0)?;
    let only_block = bytes == FRAME_ALIGNMENT as u64;
    Ok(FrameHead::decode(&block).is_some() || only_block && block.iter().all(|byte| *byte == 0))
}

/// Empties a map, and makes its mark durable: a frame that says nothing. The first frame of the stream goes
/// over it, and is one too, so that from here on the file is known for a map whatever a crash leaves of the
/// writes behind.
pub(crate) fn mark_map(file: &dyn File) -> disk::Result<()> {
    file.set_len(0)?;
    file.write_at(&record::frame(0, 0, &[]), 0)?;
    file.sync_data()
}

/// Whether the file that this name leads to is the one whose header was written with this number.
pub(crate) fn is_named(file: &dyn File, tier: [u8; 16]) -> bool {
    read_header(file).is_ok_and(|header| header.identity.tier == tier)
}

/// Reads what was kept.
///
/// # Errors
/// Why nothing can be used, as the end of a sentence.
pub(crate) fn load(
    env: &Arc<dyn Environment>,
    file: &dyn File,
    path: &Path,
    database: [u8; 16],
    geometry_of: impl FnOnce(usize) -> Geometry,
) -> Result<Loaded, String> {
    let header = read_header(file)?;
    if header.version != u32::from(VERSION) || header.unknown != 0 {
        return Err(format!("its file has version {} (this program knows {VERSION})", header.version));
    }
    let identity = header.identity;
    if identity.database != database {
        return Err("it belongs to another data directory".into());
    }
    let geometry = geometry_of(identity.region_bytes as usize);
    if identity.page_bytes as usize != geometry.page_bytes
        || identity.region_bytes as usize != geometry.region_bytes
    {
        return Err(format!("it holds pages of {} bytes", identity.page_bytes));
    }
    let mut best: Option<(usize, Survey, Arc<dyn File>)> = None;
    for side in 0..2 {
        let Some((survey, map)) = survey_of(&**env.storage(), &map_path(path, side), &identity) else {
            continue;
        };
        let newness = |survey: &Survey| (survey.run, survey.covered);
        if survey.complete && best.as_ref().is_none_or(|(_, other, _)| newness(&survey) > newness(other)) {
            best = Some((side, survey, map));
        }
    }
    let Some((side, _, map)) = best else { return Err("it has no complete map".into()) };
    // What the first reading found decides which map is read, and nothing else: a disk that lies once in a
    // while may have let it come further than this one, and an entry counts only with the records behind it
    // that were read with it.
    let (mut replay, mut survey) = (Replay::new(geometry), Survey::default());
    read_stream(&*map, &identity, |record| {
        survey.note(record);
        replay.apply(record);
    })
    .map_err(|error| error.to_string())?;
    if !survey.complete {
        return Err("its map could not be read a second time".into());
    }
    let (table, fifo) = replay.finish();
    Ok(Loaded { identity, geometry, table, fifo, covered: survey.covered, run: survey.run, side })
}

/// What a map file says about itself.
#[derive(Default)]
struct Survey {
    complete: bool,
    covered: u64,
    run: u32,
}

impl Survey {
    fn note(&mut self, record: &Record) {
        match *record {
            Record::Complete => self.complete = true,
            Record::Covered { lsn, run } => (self.covered, self.run) = (self.covered.max(lsn), run),
            _ => {}
        }
    }
}

fn survey_of(storage: &dyn Storage, path: &Path, identity: &Identity) -> Option<(Survey, Arc<dyn File>)> {
    let map = storage.open(path, OpenHow::EXISTING.by_this_name()).ok()?;
    let mut survey = Survey::default();
    read_stream(&*map, identity, |record| survey.note(record)).ok()?;
    Some((survey, map))
}

/// Hands the records of a map file to `each`, up to the first frame that is not whole. Nothing when it
/// belongs to another tier.
fn read_stream(file: &dyn File, identity: &Identity, mut each: impl FnMut(&Record)) -> disk::Result<()> {
    let (mut offset, mut sequence, mut stream) = (0, 0, None);
    let end = file.len()?;
    let mut buf = AlignedBuf::zeroed(FRAME_ALIGNMENT);
    while offset + FRAME_ALIGNMENT as u64 <= end {
        file.read_at(&mut buf[..FRAME_ALIGNMENT], offset)?;
        let Some(head) = FrameHead::decode(&buf) else { break };
        let length = head.frame_bytes();
        if head.sequence != sequence
            || *stream.get_or_insert(head.stream) != head.stream
            || offset + length as u64 > end
        {
            break;
        }
        if length > buf.len() {
            buf = AlignedBuf::zeroed(length);
        }
        if length > FRAME_ALIGNMENT {
            file.read_at(&mut buf[..length], offset)?;
        }
        let mut payload = &buf[FRAME_HEADER..FRAME_HEADER + head.payload_bytes];
        if !head.fits(payload) {
            break;
        }
        if sequence == 0 && Record::decode(&mut payload) != Some(Record::Header(*identity)) {
            break;
        }
        while let Some(record) = Record::decode(&mut payload) {
            each(&record);
        }
        if !payload.is_empty() {
            break;
        }
        offset += length as u64;
        sequence += 1;
    }
    Ok(())
}

/// Does again what the records say.
struct Replay {
    geometry: Geometry,
    table: Table,
    /// Dropped tablespaces whose pages are still in the table.
    dead: Vec<u32>,
    /// When a page was last added to each region.
    newest: Vec<u64>,
    records: u64,
}

impl Replay {
    fn new(geometry: Geometry) -> Replay {
        Replay {
            geometry,
            table: Table::new(geometry.slots(), geometry.slots_per_region()),
            dead: Vec::new(),
            newest: vec![0; geometry.regions as usize],
            records: 0,
        }
    }

    fn apply(&mut self, record: &Record) {
        self.records += 1;
        match *record {
            Record::Add(entry) if entry.slot >= self.geometry.slots() => {
                // Of a larger tier; wherever the page was before, it is there no more.
                self.table.remove(entry.page, |_| {});
            }
            Record::Add(entry) => {
                if self.dead.contains(&entry.page.space) {
                    self.bury();
                }
                self.table.remove_slot(entry.slot, || {});
                self.table.remove(entry.page, |_| {});
                if self.table.insert(&entry, true) == Inserted::Done {
                    self.newest[self.geometry.region_of(entry.slot) as usize] = self.records;
                }
            }
            Record::Drop { slot } if slot < self.geometry.slots() => {
                self.table.remove_slot(slot, || {});
            }
            Record::DropRegion { region } if region < self.geometry.regions => {
                for slot in self.geometry.slots_of(region) {
                    self.table.remove_slot(slot, || {});
                }
                self.newest[region as usize] = 0;
            }
            Record::DropSpace { space } if !self.dead.contains(&space) => self.dead.push(space),
            _ => {}
        }
    }

    /// Removes the pages of dropped tablespaces: done when it matters, not for each.
    fn bury(&mut self) {
        let dead = std::mem::take(&mut self.dead);
        for slot in 0..self.geometry.slots() {
            if self.table.peek(slot).is_some_and(|(entry, _)| dead.contains(&entry.page.space)) {
                self.table.remove_slot(slot, || {});
            }
        }
    }

    fn finish(mut self) -> (Table, VecDeque<u32>) {
        if !self.dead.is_empty() {
            self.bury();
        }
        let mut used: Vec<u32> =
            (0..self.geometry.regions).filter(|region| self.newest[*region as usize] > 0).collect();
        used.sort_unstable_by_key(|region| self.newest[*region as usize]);
        (self.table, used.into())
    }
}
