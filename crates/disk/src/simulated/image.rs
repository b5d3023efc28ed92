//! The bytes of one simulated file: what a reader sees, what is durable, and the changes between the two.
//!
//! A sync moves changes, in their order, into the durable image. A power loss takes the durable image and any subset
//! of the changes, in any order, each whole or torn at sectors; an atomic write is never torn (unless the disk was told
//! to break that promise). A failed sync decides at once, for each change, whether it happens to be durable or is lost
//! for good: that is how Linux page caches behave, and why a sync must not be retried.

use crate::Random;

/// One change that is not durable yet.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Bytes at an offset.
    Write { offset: usize, bytes: Vec<u8>, atomic: bool },
    /// A new length.
    SetLen(usize),
}

/// One file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileImage {
    current: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<(u64, Change)>,
    next_number: u64,
}

/// How a crash tears: decided once per crash.
pub(crate) struct Tearing {
    /// Of four unsynced changes, this many survive on average.
    pub(crate) keep_of_four: usize,
    /// 512 or 4096 bytes.
    pub(crate) sector: usize,
    /// Whether changes may be applied out of order.
    pub(crate) reorder: bool,
    /// Negative control: atomic writes tear like any other.
    pub(crate) tear_atomic: bool,
}

impl FileImage {
    /// A file whose content is durable.
    pub(crate) fn durable(content: Vec<u8>) -> FileImage {
        FileImage { current: content.clone(), durable: content, changes: Vec::new(), next_number: 0 }
    }

    pub(crate) fn current(&self) -> &[u8] {
        &self.current
    }

    pub(crate) fn durable_bytes(&self) -> &[u8] {
        &self.durable
    }

    /// Overwrites bytes in all images, as a failing device or an attacker would.
    pub(crate) fn corrupt(&mut self, offset: usize, bytes: &[u8]) {
        apply(&mut self.current, &Change::Write { offset, bytes: bytes.to_vec(), atomic: false });
        apply(&mut self.durable, &Change::Write { offset, bytes: bytes.to_vec(), atomic: false });
    }

    pub(crate) fn change(&mut self, change: Change) {
        apply(&mut self.current, &change);
        self.remember(change);
    }

    /// A change that was on its way when the power went: nobody sees it, a crash may keep it.
    pub(crate) fn remember(&mut self, change: Change) {
        self.changes.push((self.next_number, change));
        self.next_number += 1;
    }

    /// The changes made so far; a sync submitted now covers those.
    pub(crate) fn mark(&self) -> u64 {
        self.next_number
    }

    /// Makes the changes before `mark` durable.
    pub(crate) fn sync(&mut self, mark: u64) {
        let durable = &mut self.durable;
        self.changes.retain(|(number, change)| {
            if *number >= mark {
                return true;
            }
            apply(durable, change);
            false
        });
    }

    /// A sync that fails: each change is durable by luck or lost for good.
    pub(crate) fn fail_sync(&mut self, random: &mut Random) {
        for (_, change) in std::mem::take(&mut self.changes) {
            if random.one_in(2) {
                apply(&mut self.durable, &change);
            }
        }
    }

    /// What a power loss leaves of the file.
    pub(crate) fn after_crash(
        &self,
        in_flight: &[Change],
        tearing: &Tearing,
        random: &mut Random,
    ) -> Vec<u8> {
        let mut left = self.durable.clone();
        let mut changes: Vec<&Change> =
            self.changes.iter().map(|(_, change)| change).chain(in_flight).collect();
        if tearing.reorder {
            for index in (1..changes.len()).rev() {
                changes.swap(index, random.below(index + 1));
            }
        }
        for change in changes {
            if random.below(4) < tearing.keep_of_four {
                keep(&mut left, change, tearing, random);
            }
        }
        left
    }
}

/// Applies a surviving change, whole or torn.
fn keep(image: &mut Vec<u8>, change: &Change, tearing: &Tearing, random: &mut Random) {
    let Change::Write { offset, bytes, atomic } = change else { return apply(image, change) };
    let whole = (*atomic && !tearing.tear_atomic) || !random.one_in(3);
    if whole {
        return apply(image, change);
    }
    // Either a prefix of the sectors reached the medium, or any of them.
    let sectors = sectors(*offset, bytes.len(), tearing.sector);
    let prefix = random.one_in(2).then(|| random.below(sectors.len().max(1)));
    for (index, (from, to)) in sectors.into_iter().enumerate() {
        let kept = prefix.map_or_else(|| random.one_in(2), |count| index < count);
        if kept {
            let part =
                Change::Write { offset: offset + from, bytes: bytes[from..to].to_vec(), atomic: false };
            apply(image, &part);
        }
    }
}

/// The parts of a write between sector boundaries, as ranges of its bytes.
fn sectors(offset: usize, length: usize, sector: usize) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < length {
        let to = (from + sector - (offset + from) % sector).min(length);
        parts.push((from, to));
        from = to;
    }
    parts
}

fn apply(image: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes, .. } => {
            let end = offset + bytes.len();
            if image.len() < end {
                image.resize(end, 0);
            }
            image[*offset..end].copy_from_slice(bytes);
        }
        Change::SetLen(length) => image.resize(*length, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_at_sector_boundaries_of_the_file() {
        assert_eq!(sectors(512, 1024, 512), [(0, 512), (512, 1024)]);
        assert_eq!(sectors(500, 1024, 512), [(0, 12), (12, 524), (524, 1024)]);
        assert_eq!(sectors(0, 100, 4096), [(0, 100)]);
    }

    #[test]
    fn a_sync_covers_only_what_was_there_when_it_was_asked_for() {
        let mut image = FileImage::default();
        image.change(Change::Write { offset: 0, bytes: vec![1; 4], atomic: false });
        let mark = image.mark();
        image.change(Change::Write { offset: 2, bytes: vec![2; 4], atomic: false });
        image.sync(mark);
        assert_eq!(image.durable, [1, 1, 1, 1]);
        assert_eq!(image.current, [1, 1, 2, 2, 2, 2]);
        image.sync(image.mark());
        assert_eq!(image.durable, image.current);
        assert!(image.changes.is_empty());
    }
}
