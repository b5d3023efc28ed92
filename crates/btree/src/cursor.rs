//! Reading along the leaves.

use pagestore::Interrupt;

use crate::field::Field;
use crate::key::OwnedKey;
use crate::record::RecordRef;
use crate::tree::Tree;

/// Where to start reading. Keys may be prefixes of the unique key; a record equals a prefix if its first fields do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The first record of the tree (the key is ignored).
    First,
    /// The last record of the tree (the key is ignored).
    Last,
    /// The first record that is not below the key.
    AtLeast,
    /// The first record above the key.
    After,
    /// The last record that is not above the key.
    AtMost,
    /// The last record below the key.
    Before,
}

/// A position on a leaf that is latched for reading. Short-lived: save it before anything that may wait.
pub struct LeafCursor<'t> {
    tree: &'t Tree,
}

/// A remembered position: the key, a pin on the page and its LSN, by which an unchanged page is recognised.
#[derive(Default)]
pub struct SavedPosition {
    #[allow(dead_code)]
    key: OwnedKey,
}

#[allow(unused_variables, clippy::todo)]
impl Tree {
    /// Positions a cursor. Check [`LeafCursor::is_valid`]: there may be no such record.
    pub fn seek(&self, key: &[Field<'_>], how: Seek) -> Result<LeafCursor<'_>, Interrupt> {
        todo!()
    }

    /// Shows the record with exactly this unique key to `f`, delete-marked or not. Does not allocate.
    pub fn get<R>(
        &self,
        key: &[Field<'_>],
        f: impl FnOnce(RecordRef<'_>) -> R,
    ) -> Result<Option<R>, Interrupt> {
        todo!()
    }

    /// Returns to a saved position. `true`: the cursor is on the very record that was saved. `false`: that record is gone and
    /// the cursor is in its gap: not valid, `next` goes to the first record above the saved key, `prev` to the last below it.
    pub fn restore(&self, position: &SavedPosition) -> Result<(LeafCursor<'_>, bool), Interrupt> {
        todo!()
    }
}

#[allow(unused_variables, clippy::todo)]
impl<'t> LeafCursor<'t> {
    /// Whether the cursor is on a record.
    pub fn is_valid(&self) -> bool {
        todo!()
    }

    /// The record under the cursor, delete-marked ones included.
    ///
    /// # Panics
    /// When the cursor is not on a record.
    pub fn record(&self) -> RecordRef<'_> {
        let _ = self.tree;
        todo!()
    }

    /// Moves to the next record; `false` at the end of the tree. After an `Err(Wait)` the cursor has given up its latch and
    /// remembers its position: await and call again.
    pub fn next(&mut self) -> Result<bool, Interrupt> {
        todo!()
    }

    /// Moves to the previous record; `false` at the start of the tree. Interrupts as [`Self::next`].
    pub fn prev(&mut self) -> Result<bool, Interrupt> {
        todo!()
    }

    /// Remembers the position (the cursor must be on a record) in `position`, whose buffers are reused.
    pub fn save(&self, position: &mut SavedPosition) {
        todo!()
    }

    /// The largest id of a transaction that changed the leaf under the cursor (secondary indexes only).
    pub fn page_max_trx_id(&self) -> u64 {
        todo!()
    }
}

impl SavedPosition {
    /// The key of the saved record (its unique fields).
    pub fn key(&self) -> &OwnedKey {
        &self.key
    }
}
