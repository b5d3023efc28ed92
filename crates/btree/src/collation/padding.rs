//! Sort keys of collations that pad with spaces.
//!
//! The end of a text weighs as much as any number of spaces, and some weights are below that of a space. So
//! what follows a run of spaces decides about it: where that is a weight below the space, each space of the
//! run has a zero behind it; the end is a space and a 1. Thereby `a` and a tab comes before `a`, as does `a`,
//! a space and a tab. A weight below the space never stands directly behind one, so it is never taken for
//! these marks, and no key is the beginning of another.

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
