//! What a lock is on: an index and a fingerprint of a key, so that nothing has to be moved when pages split.

use std::hash::Hasher;

#[cfg(not(loom))]
use btree::compare::hash_field;
#[cfg(not(loom))]
use btree::{Field, FieldRef, IndexDef, RecordRef};

#[cfg(not(loom))]
use super::table::LockTable;

/// What a lock is on: a 62-bit keyed fingerprint of an index and a key's bytes. Two keys with
/// the same fingerprint would share their locks: rows would wait for each other needlessly, nothing would be
/// missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LockTarget {
    pub(super) index: u64,
    /// The fingerprint, which covers the index, with the kind in the two low bits.
    pub(super) place: u64,
}

const KIND: u64 = 3;
const SUPREMUM_KIND: u64 = 0;
const RECORD_KIND: u64 = 1;
const TURN_KIND: u64 = 2;
const UNIQUE_KIND: u64 = 3;

impl LockTarget {
    /// The end of an index.
    pub fn supremum(index: u64) -> LockTarget {
        LockTarget { index, place: mix(index) << 2 | SUPREMUM_KIND }
    }

    pub fn is_supremum(self) -> bool {
        self.place & KIND == SUPREMUM_KIND
    }

    /// Whether it is a turn or a guard: nothing that InnoDB would have a lock on.
    pub(super) fn is_own_kind(self) -> bool {
        matches!(self.place & KIND, TURN_KIND | UNIQUE_KIND)
    }

    /// Whether it is a key whose insertions are serialised. Its holder waits for no row lock, so nobody can
    /// be in a deadlock with it.
    pub(super) fn is_key_guard(self) -> bool {
        self.place & KIND == UNIQUE_KIND
    }
}

/// Multiplies to 128 bits and folds: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let wide = u128::from(value ^ 0x2545_F491_4F6C_DD1D) * 0x9FB2_1C65_1E98_DF25_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[derive(Default)]
pub(super) struct TargetHasher(u64);

impl Hasher for TargetHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = mix(self.0 ^ u64::from_le_bytes(word)).wrapping_add(self.0.rotate_left(23));
        }
        self.write_u64(bytes.len() as u64);
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }
}

#[cfg(not(loom))]
impl LockTable {
    /// The target of an index entry with this key (all unique fields). Keys that compare equal have one
    /// target.
    pub fn target<'a>(&self, def: &IndexDef, key: impl Iterator<Item = Field<'a>>) -> LockTarget {
        LockTarget { index: def.id, place: self.fingerprint(def, key) << 2 | RECORD_KIND }
    }

    /// The target of a record.
    pub fn target_of(&self, record: RecordRef<'_>) -> LockTarget {
        let def = record.def();
        self.target(def, record.fields().take(def.n_unique).map(FieldRef::inline))
    }

    /// The target that serialises insertions of one key (the fields SQL declared) into a unique secondary
    /// index.
    pub fn unique_target<'a>(&self, def: &IndexDef, key: impl Iterator<Item = Field<'a>>) -> LockTarget {
        LockTarget { index: def.id, place: self.fingerprint(def, key) << 2 | UNIQUE_KIND }
    }

    /// The target for which those who will change the row with a key of a unique secondary index take turns.
    pub fn turn_target<'a>(&self, def: &IndexDef, key: impl Iterator<Item = Field<'a>>) -> LockTarget {
        LockTarget { index: def.id, place: self.fingerprint(def, key) << 2 | TURN_KIND }
    }

    fn fingerprint<'a>(&self, def: &IndexDef, key: impl Iterator<Item = Field<'a>>) -> u64 {
        let mut hasher = TargetHasher(self.seed ^ mix(def.id));
        for (field, definition) in key.zip(&def.fields) {
            hash_field(definition.compare, field, &mut hasher);
        }
        hasher.finish()
    }
}
