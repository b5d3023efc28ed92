//! Reading a table by several indexes, one after the other, for the rows that meet one part or another of an
//! OR ([`crate::plan::index_merge`]). A row that was taken is remembered by its clustered key, and not shown
//! again.
//!
//! Only rows that were taken are: one that did not meet the conditions may meet them when it is read by the
//! next index, if rows are locked and somebody has changed it meanwhile.

use std::collections::{HashSet, VecDeque};

use untorn::engine::{OwnedKey, ScanIndex};

use super::keys::RangeList;
use super::multi_table_change::pack_key;
use crate::context::SqlContext;
use crate::memory::{Charge, refused};
use crate::result::SqlError;

/// Bytes that a key takes beside its own.
const KEY_BYTES: usize = 48;

/// The ranges of one index.
pub struct Leg {
    pub index: ScanIndex,
    pub ranges: RangeList,
}

/// Indexes that are still to be read.
pub(super) struct Legs<'e> {
    left: VecDeque<Leg>,
    taken: HashSet<Box<[u8]>>,
    charge: Charge<'e>,
    key: Vec<u8>,
}

impl<'e> Legs<'e> {
    pub(super) fn new(left: Vec<Leg>, state: &'e SqlContext) -> Legs<'e> {
        Legs { left: left.into(), taken: HashSet::new(), charge: state.memory.charge(), key: Vec::new() }
    }

    /// Begins again.
    pub(super) fn restart(&mut self, left: Vec<Leg>) {
        self.left = left.into();
        self.taken.clear();
        self.charge.shrink_to(0);
    }

    /// The next index.
    pub(super) fn next(&mut self) -> Option<Leg> {
        self.left.pop_front()
    }

    /// Whether the row with this key was taken.
    pub(super) fn has_taken(&mut self, key: &OwnedKey) -> bool {
        self.key.clear();
        pack_key(key, &mut self.key);
        self.taken.contains(self.key.as_slice())
    }

    /// Remembers the row that was asked for last. Behind the last index nothing is.
    pub(super) fn take(&mut self) -> Result<(), SqlError> {
        if !self.left.is_empty() {
            self.charge.grow(self.key.len() + KEY_BYTES).map_err(|_| refused())?;
            self.taken.insert(self.key.as_slice().into());
        }
        Ok(())
    }
}
