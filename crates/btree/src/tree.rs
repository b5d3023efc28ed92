//! The tree as an object.

use std::sync::Arc;

use pagestore::{Interrupt, Mtr, PageStore};

use crate::definition::IndexDef;

/// One B+ tree in a tablespace.
pub struct Tree {
    pub(crate) store: Arc<PageStore>,
    pub(crate) space: u32,
    pub(crate) root: u32,
    pub(crate) def: Arc<IndexDef>,
}

#[allow(unused_variables, clippy::todo)]
impl Tree {
    /// Creates an empty tree (two segments and a root page) within `mtr`.
    pub fn create(
        mtr: &mut Mtr<'_>,
        store: &Arc<PageStore>,
        space: u32,
        def: Arc<IndexDef>,
    ) -> Result<Tree, Interrupt> {
        todo!()
    }

    /// Opens the tree whose root is page `root`.
    pub fn open(
        store: &Arc<PageStore>,
        space: u32,
        root: u32,
        def: Arc<IndexDef>,
    ) -> Result<Tree, Interrupt> {
        todo!()
    }

    /// Frees some of the tree's pages in a mini-transaction of its own; `true` when nothing is left.
    pub fn destroy_step(&self) -> Result<bool, Interrupt> {
        todo!()
    }

    /// The index definition.
    pub fn def(&self) -> &Arc<IndexDef> {
        &self.def
    }

    /// Tablespace of the tree.
    pub fn space(&self) -> u32 {
        self.space
    }

    /// Page number of the root, which never changes.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The store the pages come from.
    pub fn store(&self) -> &Arc<PageStore> {
        &self.store
    }

    /// Largest record in bytes, header included, that this tree can hold (8125 at 16 KiB pages).
    pub fn max_record_size(&self) -> usize {
        todo!()
    }

    /// Redo space that a mini-transaction needs for a structure change of this tree (without the caller's own records).
    pub fn structure_redo_bytes(&self) -> usize {
        todo!()
    }
}
