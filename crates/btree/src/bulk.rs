//! Building a tree from sorted records.

use pagestore::Interrupt;

use crate::record::RecordBuffer;
use crate::tree::Tree;

/// Fills an empty tree from left to right. Pages are written in bounded mini-transactions.
pub struct BulkLoader<'t> {
    #[allow(dead_code)]
    tree: &'t Tree,
}

#[allow(unused_variables, clippy::todo)]
impl<'t> BulkLoader<'t> {
    /// Starts loading into `tree`, which must be empty and used by nobody else.
    pub fn new(tree: &'t Tree) -> BulkLoader<'t> {
        BulkLoader { tree }
    }

    /// Appends a record, which must be above all before it. On an interrupt nothing was appended: await and call again.
    pub fn add(&mut self, record: &RecordBuffer) -> Result<(), Interrupt> {
        todo!()
    }

    /// Writes what is still in memory, root last. On an interrupt await and call again.
    pub fn finish(&mut self) -> Result<(), Interrupt> {
        todo!()
    }
}
