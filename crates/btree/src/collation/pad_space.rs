//! Trailing spaces in collations that pad with spaces (PAD SPACE): comparison, hashes and sort keys.
//!
//! The shorter of two texts counts as if it were padded with spaces. In a sort key the end of a text weighs
//! as much as any number of spaces, and some weights are below that of a space. So what follows a run of
//! spaces decides about it: where that is a weight below the space, each space of the run has a zero behind
//! it; the end is a space and a 1. Thereby `a` and a tab comes before `a`, as does `a`, a space and a tab. A
//! weight below the space never stands directly behind one, so it is never taken for these marks, and no key
//! is the beginning of another.

use std::cmp::Ordering;
use std::hash::Hasher;

/// Order of what is left of two strings when one has ended: against spaces.
pub(super) fn compare_rest(a: &[u8], b: &[u8]) -> Ordering {
    let against_spaces =
        |rest: &[u8]| rest.iter().find(|byte| **byte != b' ').map_or(Ordering::Equal, |byte| byte.cmp(&b' '));
    if b.is_empty() { against_spaces(a) } else { against_spaces(b).reverse() }
}

/// Byte order with PAD SPACE: `utf8mb4_bin` (UTF-8 preserves code point order), `latin1_bin`, `ascii_bin`.
pub fn compare_bytes_pad_space(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.len().min(b.len());
    a[..common].cmp(&b[..common]).then_with(|| compare_rest(&a[common..], &b[common..]))
}

/// The text without the spaces at its end.
pub fn without_trailing_spaces(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Feeds to `hasher` what makes `bytes` equal to others under a PAD SPACE byte order.
pub fn hash_bytes_pad_space(bytes: &[u8], hasher: &mut impl Hasher) {
    hasher.write(without_trailing_spaces(bytes));
}

/// Hands the weights of the key to `put`: those of the text, and the end.
pub fn sort_key<W>(weights: impl Iterator<Item = W>, space: W, mut put: impl FnMut(W))
where
    W: Copy + Ord + From<u8>,
{
    let mut spaces = 0;
    for weight in weights {
        if weight == space {
            spaces += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut spaces) {
            put(space);
            if weight < space {
                put(W::from(0));
            }
        }
        put(weight);
    }
    put(space);
    put(W::from(1));
}
