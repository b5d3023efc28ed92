//! The bytes of a file as a persistent value: a copy costs one reference count, and a write copies only the
//! blocks it touches.
//!
//! That is what makes crash exploration cheap: thousands of possible states of a disk share all blocks in
//! which they do not differ. A block that was never written is not stored and reads as zeros, as in a sparse
//! file.

use std::sync::Arc;

/// Bytes that two copies share or do not share together.
const BLOCK: usize = 4096;

type Block = [u8; BLOCK];

static ZEROS: Block = [0; BLOCK];

/// A sequence of bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    len: usize,
    /// May be shorter than the file: what is beyond is zero.
    blocks: Arc<Vec<Option<Arc<Block>>>>,
}

impl Content {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Fills `buf` from `offset`; false when the content ends before. Nothing can be read from anywhere.
    pub(crate) fn read(&self, offset: usize, buf: &mut [u8]) -> bool {
        if buf.is_empty() {
            return true;
        }
        match offset.checked_add(buf.len()) {
            Some(end) if end <= self.len => {}
            _ => return false,
        }
        for (block, within, part) in parts(offset, buf.len()) {
            let target = &mut buf[part];
            match self.blocks.get(block).and_then(Option::as_ref) {
                Some(bytes) => target.copy_from_slice(&bytes[within..within + target.len()]),
                None => target.fill(0),
            }
        }
        true
    }

    /// Puts `bytes` at `offset`, growing as needed.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.len = self.len.max(offset + bytes.len());
        let blocks = Arc::make_mut(&mut self.blocks);
        let needed = (offset + bytes.len()).div_ceil(BLOCK);
        if blocks.len() < needed {
            blocks.resize(needed, None);
        }
        for (block, within, part) in parts(offset, bytes.len()) {
            let source = &bytes[part];
            let slot = &mut blocks[block];
            match slot {
                None if *source == ZEROS[..source.len()] => {}
                Some(known) => Arc::make_mut(known)[within..within + source.len()].copy_from_slice(source),
                None => {
                    let mut fresh = Arc::new([0; BLOCK]);
                    Arc::make_mut(&mut fresh)[within..within + source.len()].copy_from_slice(source);
                    *slot = Some(fresh);
                }
            }
        }
    }

    /// Cuts, or extends with zeros.
    pub(crate) fn set_len(&mut self, len: usize) {
        if len < self.len {
            let blocks = Arc::make_mut(&mut self.blocks);
            blocks.truncate(len.div_ceil(BLOCK));
            if let Some(Some(last)) = blocks.get_mut(len / BLOCK) {
                Arc::make_mut(last)[len % BLOCK..].fill(0);
            }
        }
        self.len = len;
    }

    /// The bytes in one piece.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Copies a range of another content, zeros where that one ends before.
    pub(crate) fn copy_range(&mut self, from: &Content, offset: usize, len: usize) {
        let mut bytes = vec![0; len];
        let there = from.len.saturating_sub(offset).min(len);
        from.read(offset, &mut bytes[..there]);
        self.write(offset, &bytes);
    }
}

/// A range of bytes cut at block boundaries: the block, the offset in it, and the part of the range.
fn parts(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let (block, within) = ((offset + at) / BLOCK, (offset + at) % BLOCK);
        let size = (BLOCK - within).min(len - at);
        let part = at..at + size;
        at += size;
        Some((block, within, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn behaves_as_a_vector_of_bytes_and_copies_do_not_see_each_other() {
        let mut random = Random::new(3);
        let (mut content, mut model) = (Content::default(), Vec::<u8>::new());
        let mut copies = Vec::new();
        for round in 0..400 {
            if random.one_in(8) {
                let len = random.below(5 * BLOCK);
                content.set_len(len);
                model.resize(len, 0);
            } else {
                let (offset, len) = (random.below(4 * BLOCK), random.below(2 * BLOCK));
                let byte = if random.one_in(4) { 0 } else { round as u8 };
                content.write(offset, &vec![byte; len]);
                if len > 0 {
                    model.resize(model.len().max(offset + len), 0);
                    model[offset..offset + len].fill(byte);
                }
            }
            assert_eq!(content.to_vec(), model, "round {round}");
            if round % 50 == 0 {
                copies.push((content.clone(), model.clone()));
            }
        }
        for (copy, model) in copies {
            assert_eq!(copy.to_vec(), model);
        }
    }
}
