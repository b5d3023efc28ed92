//! An open file of the simulated disk.

use crate::probe::{Atomic, Verdict};
use crate::simulated::faults::error_of;
use crate::simulated::image::Change;
use crate::simulated::storage::{BLOCK, State};
use crate::simulated::transfer::check_aligned;
use crate::{Error, File, Result};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct SimulatedFile {
    pub(crate) state: Arc<Mutex<State>>,
    /// Number of its image.
    pub(crate) number: usize,
    pub(crate) path: PathBuf,
    pub(crate) direct: bool,
    pub(crate) writable: bool,
}

impl SimulatedFile {
    fn may_write(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.may_write()?;
        check_aligned(self.direct, offset, bytes.len())?;
        let mut state = self.state.lock();
        let fault = state.begin("write", &self.path, offset, bytes)?;
        state.write(&self.path, self.number, bytes, offset, false, fault)
    }

    fn resize(&self, len: u64) -> io::Result<()> {
        self.may_write()?;
        let mut state = self.state.lock();
        let fault = state.begin("set the length of", &self.path, len, &[])?;
        if let Some(error) = fault.and_then(error_of) {
            return Err(error);
        }
        let cut_off = state.files[self.number].current().len().saturating_sub(len as usize);
        if let Some(room) = &mut state.room {
            room.bytes += cut_off;
        }
        state.files[self.number].change(Change::SetLen(len as usize));
        Ok(())
    }
}

impl File for SimulatedFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        Ok(self.state.lock().files[self.number].current().len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let length = buf.len();
        let read = |buf: &mut [u8]| {
            check_aligned(self.direct, offset, length)?;
            let mut state = self.state.lock();
            let fault = state.begin("read", &self.path, offset, &(length as u64).to_le_bytes())?;
            let honest = state.watch.expect(&self.path, &state.files[self.number], offset, length);
            state.read(&self.path, self.number, buf, offset, fault)?;
            state.watch.judge(&self.path, offset, honest, buf);
            Ok(())
        };
        read(buf).map_err(|error| Error::at("read", &self.path, offset, length, error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.write(buf, offset).map_err(|error| Error::at("write", &self.path, offset, buf.len(), error))
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.state.lock();
        let outcome = state.begin("sync", &self.path, 0, &[]).and_then(|fault| {
            let everything = state.files[self.number].mark();
            state.sync(&self.path, self.number, everything, fault)
        });
        outcome.map_err(|error| Error::new("sync", &self.path, error))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.resize(len).map_err(|error| Error::new("set the length of", &self.path, error))
    }

    fn write_zeros(&self, from: u64, to: u64) -> Result<()> {
        self.write_at(&vec![0; to.saturating_sub(from) as usize], from)
    }

    fn allocate_zeros(&self, from: u64, to: u64) -> Result<bool> {
        if !self.state.lock().allocates {
            return Ok(false);
        }
        // Until a sync it is as uncertain as bytes that were written.
        self.write_zeros(from, to)?;
        self.state.lock().allocations += 1;
        Ok(true)
    }

    fn is_direct(&self) -> bool {
        self.direct
    }

    fn io_alignment(&self) -> usize {
        if self.direct { BLOCK } else { 1 }
    }

    fn protection(&self, page_bytes: usize) -> Verdict {
        let atomic = self.state.lock().atomic.offered;
        if atomic == Atomic::None {
            Verdict::none("this simulated disk has no atomic writes")
        } else if self.direct && page_bytes.is_power_of_two() {
            let longest = (4 * page_bytes) as u64;
            Verdict { atomic, flagged: true, longest, reason: "the simulated disk promises it".into() }
        } else {
            Verdict::none("atomic writes are direct and of a power of two")
        }
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
