//! DISTINCT and UNION: rows that have not been seen.
//!
//! What has been seen is a set in memory. When the set has used up its memory, rows that are not in it go to
//! a sorter by the same keys and are looked at again at the end: there equal ones stand beside each other.

use std::collections::HashSet;

use super::sort::RowSorter;
use crate::context::SqlContext;
use crate::memory::{Charge, refused};
use crate::result::SqlError;

/// Bytes that a key of the set takes beside its own.
const KEY_BYTES: usize = 48;

/// See the module's text.
pub struct Distinct<'a> {
    state: &'a SqlContext,
    seen: HashSet<Vec<u8>>,
    memory: usize,
    charge: Charge<'a>,
    /// Rows that may have been seen.
    pub later: Option<RowSorter<'a>>,
}

/// What is to be done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is new.
    New,
    /// It is a duplicate.
    Before,
    /// It may be either: to be put into [`Distinct::later`] with its key.
    Unknown,
}

impl<'a> Distinct<'a> {
    /// Nothing seen.
    pub fn new(state: &'a SqlContext) -> Distinct<'a> {
        Distinct { state, seen: HashSet::new(), memory: 0, charge: state.memory.charge(), later: None }
    }

    /// Looks a key up, and remembers it.
    pub fn look(&mut self, key: &[u8]) -> Result<Seen, SqlError> {
        if self.seen.contains(key) {
            return Ok(Seen::Before);
        }
        if self.later.is_some() {
            return Ok(Seen::Unknown);
        }
        self.memory += key.len() + KEY_BYTES;
        if self.memory > self.state.temporary_memory() {
            self.later = Some(RowSorter::new(self.state));
            return Ok(Seen::Unknown);
        }
        if !self.charge.reach(self.memory) {
            return Err(refused());
        }
        self.seen.insert(key.to_vec());
        Ok(Seen::New)
    }

    /// Whether it is time to spill what came later.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.later.as_ref().is_some_and(RowSorter::is_full)
    }
}
