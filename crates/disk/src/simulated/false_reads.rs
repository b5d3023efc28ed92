//! Wrong bytes that a lying disk returned. (It lies by the rules of `faults.rs`, in `transfer.rs`.)
//!
//! How often a rule struck says little: a stale read of a place that was written once returns the right
//! bytes, and one lost write may spoil many reads or none. So the disk counts wrong reads, not lies. For the
//! files that are watched it keeps, beside what is stored, what an honest disk would have stored; a read that
//! is made remembers what an honest disk would have given at that instant; and when it has returned other
//! bytes, both are put down.
//!
//! A place that somebody writes while it is read counts, too, if the read gives the new bytes: the reader
//! asked for the old ones. And it does not count if a lie gives those after all.

use crate::simulated::crash::matches;
use crate::simulated::image::FileImage;
use std::path::{Path, PathBuf};

/// A read that returned other bytes than an honest disk held when it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FalseRead {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What would have been right.
    pub honest: Vec<u8>,
    /// What came.
    pub returned: Vec<u8>,
}

/// Which files are watched, and what was seen.
#[derive(Default)]
pub(crate) struct Watch {
    files: Option<String>,
    pub(crate) seen: Vec<FalseRead>,
}

impl Watch {
    pub(crate) fn begin(&mut self, files: &str) {
        self.files = Some(files.to_owned());
    }

    pub(crate) fn concerns(&self, path: &Path) -> bool {
        self.files.as_ref().is_some_and(|files| matches(path, files))
    }

    /// What a read that is made now ought to return; `None` when nobody wants to know, or when there is
    /// nothing to read.
    pub(crate) fn expect(
        &self,
        path: &Path,
        image: &FileImage,
        offset: u64,
        length: usize,
    ) -> Option<Vec<u8>> {
        if !self.concerns(path) {
            return None;
        }
        let mut bytes = vec![0; length];
        image.honest()?.read(usize::try_from(offset).ok()?, &mut bytes).then_some(bytes)
    }

    /// The read has returned this.
    pub(crate) fn judge(&mut self, path: &Path, offset: u64, honest: Option<Vec<u8>>, returned: &[u8]) {
        if let Some(honest) = honest.filter(|honest| honest[..] != *returned) {
            let (path, returned) = (path.to_path_buf(), returned.to_vec());
            self.seen.push(FalseRead { path, offset, honest, returned });
        }
    }
}
