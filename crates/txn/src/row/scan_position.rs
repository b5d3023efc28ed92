//! Where a scan is between looks at its index, and the cursor that goes on from there.

use std::ops::Bound;

use btree::{Field, LeafCursor, OwnedKey, Tree};

use super::key_range::{Direction, End};
use super::scan::Scan;
use crate::error::Interrupt;

/// Where a scan is between looks at the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing seen yet.
    Start,
    /// The saved record is the next to be looked at.
    At,
    /// The saved record has been dealt with.
    After,
    Finished,
}

impl Scan {
    pub(super) fn end<'k>(&self, tree: &Tree, fields: &'k [Field<'k>]) -> End<'k> {
        End::new(tree, self.far_bound(), fields, self.direction)
    }

    pub(super) fn far_bound(&self) -> &Bound<OwnedKey> {
        self.range.far(self.direction)
    }

    pub(super) fn near_bound(&self) -> &Bound<OwnedKey> {
        self.range.near(self.direction)
    }

    /// Positions a cursor on the next record to be looked at (which may not exist, or be beyond the range).
    pub(super) fn open_cursor<'t>(&self, tree: &'t Tree) -> Result<LeafCursor<'t>, Interrupt> {
        if self.progress == Progress::Start {
            return self.range.open(tree, self.direction);
        }
        let (mut cursor, same) = tree.restore(&self.position)?;
        if !(same && self.progress == Progress::At) {
            advance(&mut cursor, self.direction)?;
        }
        Ok(cursor)
    }
}

/// Moves on in scan direction.
pub(super) fn advance(cursor: &mut LeafCursor<'_>, direction: Direction) -> Result<bool, Interrupt> {
    Ok(match direction {
        Direction::Forward => cursor.next()?,
        Direction::Backward => cursor.prev()?,
    })
}
