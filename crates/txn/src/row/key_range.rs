//! What a scan covers: an index, a range of its keys, a direction.

use std::ops::Bound;

use btree::compare::SearchKey;
use btree::{Field, KeyFields, LeafCursor, OwnedKey, RecordRef, Seek, Tree};

use crate::error::Interrupt;
use crate::table::Table;

/// Which index a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanIndex {
    /// The clustered index.
    Clustered,
    /// `table.secondaries[n]`.
    Secondary(usize),
}

/// Which way a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Ascending.
    #[default]
    Forward,
    /// Descending.
    Backward,
}

/// What a scan covers. A bound may have fewer fields than the index: it then stands for all entries that
/// start so (`Included` lower = from the first of them, `Excluded` lower = after the last of them, and so
/// on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Lower end.
    pub lower: Bound<OwnedKey>,
    /// Upper end.
    pub upper: Bound<OwnedKey>,
}

impl KeyRange {
    /// Everything.
    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }
    /// All entries that start with `key`.
    #[must_use]
    pub fn equal(key: OwnedKey) -> KeyRange {
        KeyRange { lower: Bound::Included(key.clone()), upper: Bound::Included(key) }
    }

    /// The end that a scan begins at.
    pub(super) fn near(&self, direction: Direction) -> &Bound<OwnedKey> {
        match direction {
            Direction::Forward => &self.lower,
            Direction::Backward => &self.upper,
        }
    }

    /// The end that a scan comes to last.
    pub(super) fn far(&self, direction: Direction) -> &Bound<OwnedKey> {
        match direction {
            Direction::Forward => &self.upper,
            Direction::Backward => &self.lower,
        }
    }

    /// A cursor on the first record that a scan looks at (which may not exist, or be beyond the range).
    pub(super) fn open<'t>(&self, tree: &'t Tree, direction: Direction) -> Result<LeafCursor<'t>, Interrupt> {
        let forward = direction == Direction::Forward;
        Ok(match self.near(direction) {
            Bound::Unbounded => tree.seek(&[], if forward { Seek::First } else { Seek::Last })?,
            Bound::Included(key) => {
                tree.seek(&key.fields(), if forward { Seek::AtLeast } else { Seek::AtMost })?
            }
            Bound::Excluded(key) => {
                tree.seek(&key.fields(), if forward { Seek::After } else { Seek::Before })?
            }
        })
    }
}

/// The end of the range in scan direction, ready for comparisons.
pub(super) struct End<'k> {
    key: Option<SearchKey<'k>>,
    inclusive: bool,
    direction: Direction,
}

impl<'k> End<'k> {
    /// `fields` are those of the bound.
    pub fn new(
        tree: &Tree,
        bound: &Bound<OwnedKey>,
        fields: &'k [Field<'k>],
        direction: Direction,
    ) -> End<'k> {
        let key = match bound {
            Bound::Unbounded => None,
            _ => Some(SearchKey::new(tree.def(), fields)),
        };
        End { key, inclusive: matches!(bound, Bound::Included(_)), direction }
    }

    /// Whether `record` is beyond the range.
    pub fn is_beyond(&self, record: RecordRef<'_>) -> bool {
        let Some(key) = &self.key else { return false };
        let order = key.compare_record(record);
        match self.direction {
            Direction::Forward => order.is_gt() || !self.inclusive && order.is_eq(),
            Direction::Backward => order.is_lt() || !self.inclusive && order.is_eq(),
        }
    }
}

/// The key fields of a bound.
pub(super) fn bound_fields(bound: &Bound<OwnedKey>) -> KeyFields<'_> {
    match bound {
        Bound::Unbounded => KeyFields::new(),
        Bound::Included(key) | Bound::Excluded(key) => key.fields(),
    }
}

/// The tree of an index.
pub(super) fn tree_of(table: &Table, index: ScanIndex) -> &Tree {
    match index {
        ScanIndex::Clustered => &table.clustered,
        ScanIndex::Secondary(number) => &table.secondaries[number].tree,
    }
}
