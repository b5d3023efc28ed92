//! Transfers and syncs of the simulated disk: right, failing, or wrong without saying so.

use crate::IoKind;
use crate::simulated::faults::{FaultKind, Misbehaviour, elsewhere, error_of, flip_a_bit, power_is_gone};
use crate::simulated::image::{Change, FileImage};
use crate::simulated::storage::{BLOCK, State};
use std::io;
use std::path::Path;

/// What a request under way may change in its file.
pub(crate) fn change_of(kind: &IoKind) -> Option<Change> {
    match kind {
        IoKind::Write { buf, offset, atomic, .. } => {
            Some(Change::Write { offset: *offset as usize, bytes: buf.bytes().into(), atomic: *atomic })
        }
        IoKind::AllocateZeros { from, to, .. } => {
            let bytes = vec![0u8; to.saturating_sub(*from) as usize];
            Some(Change::Write { offset: *from as usize, bytes: bytes.into(), atomic: false })
        }
        IoKind::Read { .. } | IoKind::Sync => None,
    }
}

impl State {
    /// Does what a request under way asks for.
    pub(crate) fn perform(
        &mut self,
        path: &Path,
        number: usize,
        kind: &mut IoKind,
        fault: Option<FaultKind>,
        mark: u64,
    ) -> io::Result<()> {
        if self.dead {
            if let Some(change) = change_of(kind) {
                self.files[number].remember(change);
            }
            return Err(power_is_gone());
        }
        match kind {
            IoKind::Read { buf, offset } => match buf.bytes_mut() {
                Some(bytes) => self.read(path, number, bytes, *offset, fault),
                None => Err(io::Error::new(io::ErrorKind::InvalidInput, "reading into a shared buffer")),
            },
            IoKind::Write { buf, offset, atomic, sync } => {
                // The fault of a write with a sync hits either of the two.
                let hits_sync =
                    *sync && fault.is_some() && fault != Some(FaultKind::Short) && self.random.one_in(2);
                let (write_fault, sync_fault) = if hits_sync { (None, fault) } else { (fault, None) };
                self.write(path, number, buf.bytes(), *offset, *atomic, write_fault)?;
                let everything = self.files[number].mark();
                if *sync { self.sync(path, number, everything, sync_fault) } else { Ok(()) }
            }
            IoKind::AllocateZeros { from, to, allocated } => {
                // Until a sync it is as uncertain as bytes that were written.
                let zeros = vec![0; to.saturating_sub(*from) as usize];
                self.write(path, number, &zeros, *from, false, fault)?;
                self.allocations += 1;
                *allocated = true;
                Ok(())
            }
            IoKind::Sync => self.sync(path, number, mark, fault),
        }
    }

    pub(crate) fn read(
        &mut self,
        path: &Path,
        number: usize,
        buf: &mut [u8],
        offset: u64,
        fault: Option<FaultKind>,
    ) -> io::Result<()> {
        let wrong = self.rules.strike(path, &mut self.random, Misbehaviour::concerns_reads);
        let fault = match wrong {
            Some(Misbehaviour::FailRead(kind)) => fault.or(Some(kind)),
            _ => fault,
        };
        if let Some(error) = fault.and_then(error_of) {
            return Err(error);
        }
        self.counters.reads += 1;
        self.counters.bytes_read += buf.len() as u64;
        let image = &self.files[number];
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if !image.current().read(offset, buf) {
            let there = image.current().len().saturating_sub(offset);
            let text = format!("the file ends after {there} of these bytes");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        match wrong {
            Some(Misbehaviour::FlippedRead) => flip_a_bit(buf, &mut self.random),
            Some(Misbehaviour::MisdirectedRead) => {
                let other = elsewhere(offset, buf.len(), image.current().len(), &mut self.random);
                if let Some(other) = other {
                    image.current().read(other, buf);
                }
            }
            Some(Misbehaviour::StaleRead | Misbehaviour::TornRead) => {
                let mut old = vec![0; buf.len()];
                if image.before().is_some_and(|before| before.read(offset, &mut old)) {
                    for (now, before) in buf.chunks_mut(BLOCK).zip(old.chunks(BLOCK)) {
                        if wrong == Some(Misbehaviour::StaleRead) || self.random.one_in(2) {
                            now.copy_from_slice(before);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        path: &Path,
        number: usize,
        bytes: &[u8],
        offset: u64,
        atomic: bool,
        fault: Option<FaultKind>,
    ) -> io::Result<()> {
        if atomic {
            let nth = self.atomic_writes;
            self.atomic_writes += 1;
            self.counters.atomic_writes += 1;
            let possible = bytes.len().is_power_of_two() && offset.is_multiple_of(bytes.len() as u64);
            if !possible || self.atomic.refused_from.is_some_and(|from| nth >= from) {
                self.counters.atomic_refusals += 1;
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            if self.atomic.without_room {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
        }
        self.counters.writes += 1;
        self.counters.bytes_written += bytes.len() as u64;
        let offset = offset as usize;
        let wrong = self.rules.strike(path, &mut self.random, Misbehaviour::concerns_writes);
        let fault = match wrong {
            Some(Misbehaviour::FailWrite(kind)) => fault.or(Some(kind)),
            _ => fault,
        };
        self.take_room(number, bytes, offset)?;
        let cut = |state: &mut State| state.random.below(bytes.len() / BLOCK + 1) * BLOCK;
        match fault {
            None => self.write_rightly_or_not(number, bytes, offset, atomic, wrong),
            Some(FaultKind::Short) if !atomic => {
                let cut = cut(self);
                self.put(number, &bytes[..cut], offset, false);
                self.put(number, &bytes[cut..], offset + cut, false);
            }
            Some(fault) => {
                if !atomic {
                    let cut = cut(self);
                    self.put(number, &bytes[..cut], offset, false);
                }
                return Err(error_of(fault).unwrap_or_else(|| io::Error::other("an atomic write was torn")));
            }
        }
        Ok(())
    }

    /// The room that a write needs behind the end of its file.
    fn take_room(&mut self, number: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let longer = (offset + bytes.len()).saturating_sub(self.files[number].current().len());
        let Some(room) = &mut self.room else { return Ok(()) };
        if longer <= room.bytes {
            room.bytes -= longer;
            return Ok(());
        }
        let refusal = room.refusal;
        let fits = bytes.len().saturating_sub(longer - room.bytes) / BLOCK * BLOCK;
        room.bytes -= fits.saturating_sub(bytes.len() - longer.min(bytes.len()));
        self.put(number, &bytes[..fits], offset, false);
        Err(error_of(refusal).unwrap_or_else(|| io::ErrorKind::StorageFull.into()))
    }

    fn write_rightly_or_not(
        &mut self,
        number: usize,
        bytes: &[u8],
        offset: usize,
        atomic: bool,
        wrong: Option<Misbehaviour>,
    ) {
        if bytes.is_empty() {
            return;
        }
        let asked = Change::Write { offset, bytes: bytes.into(), atomic };
        let Some(wrong) = wrong else { return self.files[number].change(asked) };
        let (length, end) = (self.files[number].current().len(), offset + bytes.len());
        let put = |image: &mut FileImage, bytes: &[u8], offset: usize| {
            image.change(Change::Write { offset, bytes: bytes.into(), atomic });
        };
        // The file is as long as it would be: its length is the file system's, not the medium's.
        let lengthen = |image: &mut FileImage| {
            if end > length {
                image.change(Change::SetLen(end));
            }
        };
        let random = &mut self.random;
        self.files[number].change_falsely(&asked, |image| match wrong {
            Misbehaviour::LostWrite => lengthen(image),
            Misbehaviour::FlippedWrite => {
                let mut flipped = bytes.to_vec();
                flip_a_bit(&mut flipped, random);
                put(image, &flipped, offset);
            }
            Misbehaviour::MisdirectedWrite | Misbehaviour::DuplicatedWrite => {
                let other = elsewhere(offset, bytes.len(), length, random);
                put(image, bytes, other.unwrap_or(offset));
                if wrong == Misbehaviour::DuplicatedWrite {
                    put(image, bytes, offset);
                } else {
                    lengthen(image);
                }
            }
            _ => put(image, bytes, offset),
        });
    }

    fn put(&mut self, number: usize, bytes: &[u8], offset: usize, atomic: bool) {
        if !bytes.is_empty() {
            self.files[number].change(Change::Write { offset, bytes: bytes.into(), atomic });
        }
    }

    pub(crate) fn sync(
        &mut self,
        path: &Path,
        number: usize,
        mark: u64,
        fault: Option<FaultKind>,
    ) -> io::Result<()> {
        let fails = self.failing_sync == Some(self.counters.syncs);
        self.counters.syncs += 1;
        let fault = fault.or(fails.then_some(FaultKind::Eio));
        let wrong = self.rules.strike(path, &mut self.random, Misbehaviour::concerns_syncs);
        let fault = match wrong {
            Some(Misbehaviour::FailSync(kind)) => fault.or(Some(kind)),
            _ => fault,
        };
        self.observe();
        if let Some(error) = fault.and_then(error_of) {
            self.files[number].fail_sync(&mut self.random);
            return Err(error);
        }
        if wrong != Some(Misbehaviour::SkippedSync) {
            self.files[number].sync(mark);
        }
        Ok(())
    }
}

/// Fails unless a direct transfer is aligned, so that the engine finds out here and not on a real disk.
pub(crate) fn check_aligned(direct: bool, offset: u64, length: usize) -> io::Result<()> {
    if !direct || (offset.is_multiple_of(BLOCK as u64) && length.is_multiple_of(BLOCK)) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("direct transfers need multiples of {BLOCK} bytes"),
    ))
}
