//! The pairs: keys of 24 random bytes and values of 150, after redb's own benchmark.
//!
//! Pair `n` is made from the seed and `n`, so every process knows the pairs that the ones before it wrote. A
//! value begins with eight bytes that its key decides, whatever its version: an engine that answers fast and
//! with another pair's value fails. What follows them is not checked.

use crate::engine::{Change, KEY_BYTES, Key, VALUE_BYTES, Value};

/// A random number that is a function of two others (splitmix64).
pub fn mixed(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

fn fill(bytes: &mut [u8], seed: u64) {
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&mixed(seed, at as u64).to_le_bytes()[..chunk.len()]);
    }
}

pub fn key(seed: u64, n: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    fill(&mut key, mixed(seed, n));
    key
}

fn value(seed: u64, n: u64) -> Value {
    let mut value = [0; VALUE_BYTES];
    fill(&mut value, !mixed(seed, n));
    value
}

/// Another value of pair `n`.
pub fn new_version(seed: u64, n: u64, version: u64) -> Value {
    let mut value = value(seed, n);
    fill(&mut value[8..], version);
    value
}

/// Whether these bytes are as long as a value, and begin as the one of pair `n` does, of any version.
pub fn is_value(seed: u64, n: u64, bytes: &[u8]) -> bool {
    bytes.len() == VALUE_BYTES && bytes[..8] == mixed(!mixed(seed, n), 0).to_le_bytes()
}

pub fn put(seed: u64, n: u64) -> Change {
    Change::Put(key(seed, n), Box::new(value(seed, n)))
}
