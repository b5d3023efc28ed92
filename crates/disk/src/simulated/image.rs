//! One simulated file: what a reader sees, what is durable, and the changes between the two.
//!
//! A sync moves changes, in their order, into the durable content. A failed sync decides at once, for each
//! change, whether it happens to be durable or is lost for good: that is how Linux page caches behave, and
//! why a sync must not be retried. What a power loss makes of the rest is [`crate::simulated::crash`]'s
//! business.

use crate::Random;
use crate::simulated::content::Content;
use std::sync::Arc;

/// One change that is not durable yet.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Bytes at an offset.
    Write { offset: usize, bytes: Arc<[u8]>, atomic: bool },
    /// A new length.
    SetLen(usize),
}

impl Change {
    pub(crate) fn apply(&self, content: &mut Content) {
        match self {
            Change::Write { offset, bytes, .. } => content.write(*offset, bytes),
            Change::SetLen(length) => content.set_len(*length),
        }
    }
}

/// One file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileImage {
    current: Content,
    durable: Content,
    changes: Vec<(u64, Change)>,
    next_number: u64,
    /// What stood in each place before its last write; kept only when somebody wants stale reads.
    before: Option<Content>,
    /// What an honest disk would hold; kept only when somebody wants to know what lies come to.
    honest: Option<Content>,
}

impl FileImage {
    /// A file whose content is durable.
    pub(crate) fn durable(content: Content) -> FileImage {
        FileImage { current: content.clone(), durable: content, ..FileImage::default() }
    }

    pub(crate) fn current(&self) -> &Content {
        &self.current
    }

    pub(crate) fn durable_content(&self) -> &Content {
        &self.durable
    }

    /// The changes that are not durable, oldest first.
    pub(crate) fn unsynced(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().map(|(_, change)| change)
    }

    /// From now on remember what stood where something is written.
    pub(crate) fn remember_before(&mut self) {
        self.before.get_or_insert_with(|| self.durable.clone());
    }

    /// The content as it was before the last write to each place.
    pub(crate) fn before(&self) -> Option<&Content> {
        self.before.as_ref()
    }

    /// From now on remember what an honest disk would hold.
    pub(crate) fn remember_honest(&mut self) {
        self.honest.get_or_insert_with(|| self.current.clone());
    }

    /// What an honest disk would hold.
    pub(crate) fn honest(&self) -> Option<&Content> {
        self.honest.as_ref()
    }

    /// Makes changes that are, taken together, what the disk does instead of `asked`.
    pub(crate) fn change_falsely(&mut self, asked: &Change, instead: impl FnOnce(&mut FileImage)) {
        let mut honest = self.honest.take();
        if let Some(honest) = &mut honest {
            asked.apply(honest);
        }
        instead(self);
        self.honest = honest;
    }

    /// Overwrites bytes in all images, as a failing device or an attacker would.
    pub(crate) fn corrupt(&mut self, offset: usize, bytes: &[u8]) {
        self.current.write(offset, bytes);
        self.durable.write(offset, bytes);
    }

    pub(crate) fn change(&mut self, change: Change) {
        if let (Some(before), Change::Write { offset, bytes, .. }) = (&mut self.before, &change) {
            before.copy_range(&self.current, *offset, bytes.len());
        }
        change.apply(&mut self.current);
        if let Some(honest) = &mut self.honest {
            change.apply(honest);
        }
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
        let covered = self.changes.partition_point(|(number, _)| *number < mark);
        for (_, change) in self.changes.drain(..covered) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync that fails: each change is durable by luck or lost for good.
    pub(crate) fn fail_sync(&mut self, random: &mut Random) {
        for (_, change) in std::mem::take(&mut self.changes) {
            if random.one_in(2) {
                change.apply(&mut self.durable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_only_what_was_there_when_it_was_asked_for() {
        let write =
            |offset, byte: u8| Change::Write { offset, bytes: Arc::from(vec![byte; 4]), atomic: false };
        let mut image = FileImage::default();
        image.change(write(0, 1));
        let mark = image.mark();
        image.change(write(2, 2));
        image.sync(mark);
        assert_eq!(image.durable.to_vec(), [1, 1, 1, 1]);
        assert_eq!(image.current.to_vec(), [1, 1, 2, 2, 2, 2]);
        image.sync(image.mark());
        assert_eq!(image.durable.to_vec(), image.current.to_vec());
        assert!(image.changes.is_empty());
    }
}
