//! What a simulated disk does wrong, on request: calls that fail, and calls that lie.
//!
//! A [`Fault`] hits one call by its number, so that a loop can make every call of a history fail once. A
//! [`Misbehaviour`] hits calls on files by name, always or once in n: errors again, and the quiet kind, in
//! which the call succeeds and the disk has not done what it said.

use crate::Random;
use crate::simulated::crash::matches;
use std::io;
use std::path::Path;

/// How a faulty call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The device fails (EIO). A write may have happened in part; a sync loses what was not durable yet.
    Eio,
    /// The file system is full (ENOSPC). A write may have happened in part.
    Enospc,
    /// The transfer takes two steps inside the storage: it succeeds, but an atomic write fails instead, and a
    /// power loss may keep one step without the other.
    Short,
    /// The name is too long for the file system (ENAMETOOLONG). This and the next three hit calls on names
    /// only.
    NameTooLong,
    /// The two names are on different file systems (EXDEV).
    OtherDevice,
    /// The process has as many files open as it may (EMFILE).
    TooManyFiles,
    /// The process may not do that there (EACCES).
    Denied,
    /// From this call on nothing reaches the disk and every call fails: the power is gone.
    PowerLoss,
}

impl FaultKind {
    /// Whether it can hit this operation at all.
    pub(crate) fn concerns(self, operation: &str) -> bool {
        use FaultKind::{Denied, NameTooLong, OtherDevice, TooManyFiles};
        match self {
            OtherDevice => operation == "rename",
            // Syncing a directory opens it.
            TooManyFiles => matches!(operation, "open" | "sync the directory"),
            NameTooLong | Denied => matches!(
                operation,
                "open" | "remove" | "remove the directory" | "rename" | "create the directory"
            ),
            _ => true,
        }
    }
}

/// A planned fault: the I/O call with this number (counted from 0 since the storage was made) fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Number of the call.
    pub call: u64,
    /// How it fails.
    pub kind: FaultKind,
}

/// What a disk does wrong with calls on certain files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misbehaviour {
    /// Reads fail.
    FailRead(FaultKind),
    /// Writes fail.
    FailWrite(FaultKind),
    /// Syncs fail.
    FailSync(FaultKind),
    /// A read returns what stood there before the last write.
    StaleRead,
    /// A read returns some sectors as they are and some as they were before the last write.
    TornRead,
    /// A read returns one bit flipped; the medium is sound.
    FlippedRead,
    /// A read returns the bytes of another place of the same file.
    MisdirectedRead,
    /// A write does not happen.
    LostWrite,
    /// A write stores one bit flipped.
    FlippedWrite,
    /// A write lands in another place of the same file.
    MisdirectedWrite,
    /// A write lands in its place and in another one.
    DuplicatedWrite,
    /// A sync makes nothing durable.
    SkippedSync,
}

/// A [`Misbehaviour`] and what it concerns.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) files: String,
    pub(crate) what: Misbehaviour,
    pub(crate) one_in: usize,
}

/// All rules, and how often they struck.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) struck: u64,
}

impl Rules {
    /// The first misbehaviour among those `wanted` that strikes a call on this file.
    pub(crate) fn strike(
        &mut self,
        path: &Path,
        random: &mut Random,
        wanted: fn(Misbehaviour) -> bool,
    ) -> Option<Misbehaviour> {
        for rule in &self.rules {
            if wanted(rule.what) && matches(path, &rule.files) && random.one_in(rule.one_in) {
                self.struck += 1;
                return Some(rule.what);
            }
        }
        None
    }

    pub(crate) fn want_old_contents(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.what, Misbehaviour::StaleRead | Misbehaviour::TornRead))
    }
}

impl Misbehaviour {
    pub(crate) fn concerns_reads(self) -> bool {
        use Misbehaviour::{FailRead, FlippedRead, MisdirectedRead, StaleRead, TornRead};
        matches!(self, FailRead(_) | StaleRead | TornRead | FlippedRead | MisdirectedRead)
    }

    pub(crate) fn concerns_syncs(self) -> bool {
        matches!(self, Misbehaviour::FailSync(_) | Misbehaviour::SkippedSync)
    }

    pub(crate) fn concerns_writes(self) -> bool {
        !self.concerns_reads() && !self.concerns_syncs()
    }
}

pub(crate) fn power_is_gone() -> io::Error {
    io::Error::other("the power of the simulated disk is gone")
}

/// The error of a fault; `None` for a short transfer, which the storage hides.
pub(crate) fn error_of(fault: FaultKind) -> Option<io::Error> {
    match fault {
        FaultKind::Eio => Some(io::Error::from_raw_os_error(libc::EIO)),
        FaultKind::Enospc => Some(io::Error::from_raw_os_error(libc::ENOSPC)),
        FaultKind::NameTooLong => Some(io::Error::from_raw_os_error(libc::ENAMETOOLONG)),
        FaultKind::OtherDevice => Some(io::Error::from_raw_os_error(libc::EXDEV)),
        FaultKind::TooManyFiles => Some(io::Error::from_raw_os_error(libc::EMFILE)),
        FaultKind::Denied => Some(io::Error::from_raw_os_error(libc::EACCES)),
        FaultKind::PowerLoss => Some(power_is_gone()),
        FaultKind::Short => None,
    }
}

/// Flips one bit.
pub(crate) fn flip_a_bit(bytes: &mut [u8], random: &mut Random) {
    if !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

/// Another place of a file for a transfer of `length` bytes at `offset`: a multiple of the length, inside the
/// file.
pub(crate) fn elsewhere(offset: usize, length: usize, file: usize, random: &mut Random) -> Option<usize> {
    let places = file.checked_div(length)?;
    let own = offset / length;
    match places {
        0 | 1 => None,
        _ => Some(((own + 1 + random.below(places - 1)) % places) * length),
    }
}
