//! Damage to the file of an extension: the whole of it, or single slots, while the server runs.
//!
//! The layout is that of the crate `bpe` (`geometry.rs`): a header of one region, then slots of a page each.
//! Every kind of damage to slots is done to many of them, since the extension only notices those it reads
//! again.

use disk::Random;
use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Of extensions below 16 GiB.
const HEADER: u64 = 256 << 10;
const PAGE: usize = 16 << 10;
/// Where a page says its number, its version and its tablespace.
const PAGE_NUMBER: std::ops::Range<usize> = page::PAGE_NUMBER..page::PREVIOUS;
const LSN: std::ops::Range<usize> = page::LSN..page::TYPE;
const SPACE: std::ops::Range<usize> = page::SPACE_ID..page::HEADER_LEN;
/// Slots damaged in one go.
const SLOTS: usize = 60;
/// Garbage written in one go.
const GARBAGE: usize = 200;
const CUT_TO: u64 = 1 << 20;

/// What can be done to single slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slots {
    /// Overwritten with another slot's page.
    Misdirected,
    /// The second half is of another slot, or zeros.
    Torn,
    /// Copied, to be put back when there may be newer versions.
    Remembered,
    /// Put back as they were copied, over a newer version where there is one.
    Stale,
    /// Overwritten with another slot's page that says it were this one's.
    Forged,
}

impl Slots {
    pub const ALL: [Slots; 5] =
        [Slots::Misdirected, Slots::Torn, Slots::Remembered, Slots::Stale, Slots::Forged];

    pub fn name(self) -> &'static str {
        match self {
            Slots::Misdirected => "misdirected slots",
            Slots::Torn => "torn slots",
            Slots::Remembered => "slots copied",
            Slots::Stale => "old slots put back",
            Slots::Forged => "forged slots",
        }
    }
}

/// Copies of slots as they were.
#[derive(Default)]
pub struct Remembered(Vec<(PathBuf, u64, Vec<u8>)>);

/// Damages slots; returns how many.
pub fn slots(path: &Path, what: Slots, random: &mut Random, remembered: &mut Remembered) -> Result<usize> {
    if what == Slots::Stale {
        return put_back(remembered);
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut damaged = 0;
    for _ in 0..SLOTS {
        let (Some((at, victim)), Some((_, other))) = (any_slot(&file, random)?, any_slot(&file, random)?)
        else {
            continue;
        };
        let mut page = other;
        match what {
            Slots::Misdirected => {}
            Slots::Torn => {
                if random.one_in(2) {
                    page[PAGE / 2..].fill(0);
                }
                page[..PAGE / 2].copy_from_slice(&victim[..PAGE / 2]);
            }
            Slots::Forged => {
                for field in [PAGE_NUMBER, SPACE] {
                    page[field.clone()].copy_from_slice(&victim[field]);
                }
            }
            Slots::Remembered => {
                remembered.0.push((path.to_path_buf(), at, victim));
                damaged += 1;
                continue;
            }
            Slots::Stale => return Err(Error::other("old slots are put back above")),
        }
        file.write_all_at(&page, at)?;
        damaged += 1;
    }
    Ok(damaged)
}

/// Old copies go where the extension has the same page now, mostly another slot than theirs: an extension
/// writes round and round. Those whose page is not there go back to their own slot.
fn put_back(remembered: &mut Remembered) -> Result<usize> {
    let mut damaged = 0;
    for (path, at, page) in remembered.0.drain(..) {
        // The file may have been deleted meanwhile.
        let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else { continue };
        let at = slot_of_newer(&file, &page)?.unwrap_or(at);
        file.write_all_at(&page, at)?;
        damaged += 1;
    }
    Ok(damaged)
}

/// Where another version of a page lies.
fn slot_of_newer(file: &File, old: &[u8]) -> Result<Option<u64>> {
    let mut header = [0; SPACE.end];
    for at in (HEADER..file.metadata()?.len()).step_by(PAGE) {
        // The last slot may be cut.
        if file.read_at(&mut header, at)? < header.len() {
            break;
        }
        let same = |field: std::ops::Range<usize>| header[field.clone()] == old[field];
        if same(PAGE_NUMBER) && same(SPACE) && !same(LSN) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// A slot with a page in it, if one is found at once.
fn any_slot(file: &File, random: &mut Random) -> Result<Option<(u64, Vec<u8>)>> {
    let count = (file.metadata()?.len().saturating_sub(HEADER) / PAGE as u64) as usize;
    if count == 0 {
        return Ok(None);
    }
    let at = HEADER + (random.below(count) * PAGE) as u64;
    let mut page = vec![0; PAGE];
    file.read_exact_at(&mut page, at)?;
    Ok(page.iter().any(|&byte| byte != 0).then_some((at, page)))
}

/// Garbage all over.
pub fn garbage(path: &Path, random: &mut Random) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let len = file.metadata()?.len();
    for _ in 0..GARBAGE {
        let garbage: Vec<u8> = (0..4096).map(|_| random.next_u64() as u8).collect();
        file.write_all_at(&garbage, random.below(len as usize + 1) as u64)?;
    }
    Ok(())
}

/// Cut short.
pub fn cut(path: &Path) -> Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(CUT_TO)
}

/// Deleted.
pub fn delete(path: &Path) -> Result<()> {
    std::fs::remove_file(path)
}
