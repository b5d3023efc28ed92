//! Values stored off-page: chains of BLOB pages (type 10) in the leaf segment.

use pagestore::{Interrupt, Mtr};

use crate::definition::IndexDef;
use crate::field::{FieldRef, REFERENCE_SIZE};
use crate::record::RecordTooBig;
use crate::tree::Tree;

/// The 20 bytes in a record that say where the rest of a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Tablespace of the chain.
    pub space: u32,
    /// First page.
    pub page: u32,
    /// Bytes in the chain.
    pub len: u32,
    /// Whether this record version owns the chain, and so frees it when it goes.
    pub owner: bool,
    /// Whether the chain was taken over from an older version (an update rolled back must not free it).
    pub inherited: bool,
}

#[allow(unused_variables, clippy::todo)]
impl Reference {
    /// Decodes the bytes in the record.
    pub fn read(bytes: &[u8; REFERENCE_SIZE]) -> Reference {
        todo!()
    }

    /// The bytes for the record.
    pub fn to_bytes(self) -> [u8; REFERENCE_SIZE] {
        todo!()
    }
}

/// Chooses the fields that must go off-page so that the record is at most `size_max` bytes, in the order chosen.
///
/// # Errors
/// Even then the record would be too big.
#[allow(unused_variables, clippy::todo)]
pub fn plan_external(
    def: &IndexDef,
    fields: &[FieldRef<'_>],
    size_max: usize,
) -> Result<smallvec::SmallVec<[usize; 4]>, RecordTooBig> {
    todo!()
}

/// Writes one value off-page, a few pages per mini-transaction of its own. Resumable.
pub struct ExternalWriter<'t> {
    #[allow(dead_code)]
    tree: &'t Tree,
}

#[allow(unused_variables, clippy::todo)]
impl<'t> ExternalWriter<'t> {
    /// Starts a chain.
    pub fn new(tree: &'t Tree) -> ExternalWriter<'t> {
        ExternalWriter { tree }
    }

    /// Writes all of `value`; on an interrupt await and call again with the same value.
    pub fn write(&mut self, value: &[u8]) -> Result<Reference, Interrupt> {
        todo!()
    }

    /// What has been written so far, to be freed if the value is given up.
    pub fn written(&self) -> Option<Reference> {
        todo!()
    }
}

/// Reads one value. Resumable.
pub struct ExternalReader {
    #[allow(dead_code)]
    reference: Reference,
}

#[allow(unused_variables, clippy::todo)]
impl ExternalReader {
    /// Starts at the first byte.
    pub fn new(reference: Reference) -> ExternalReader {
        ExternalReader { reference }
    }

    /// Appends the value to `out`, which must be left alone between calls; on an interrupt await and call again.
    pub fn read(&mut self, tree: &Tree, out: &mut Vec<u8>) -> Result<(), Interrupt> {
        todo!()
    }
}

#[allow(unused_variables, clippy::todo)]
impl Tree {
    /// Frees pages of the chain behind its first, in a mini-transaction of its own; `true` when only the first is left. Safe
    /// to repeat after a crash, as the reference stays right.
    pub fn free_chain_step(&self, reference: Reference) -> Result<bool, Interrupt> {
        todo!()
    }

    /// Frees the first page of a chain: in the mini-transaction that also removes the reference.
    pub fn free_chain_head(&self, mtr: &mut Mtr<'_>, reference: Reference) -> Result<(), Interrupt> {
        todo!()
    }
}
