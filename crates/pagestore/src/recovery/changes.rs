//! Changes of a stretch of log, by page, as they are kept until they are applied.
//!
//! A log that is full when its server is killed has millions of them, mostly of a few bytes. So a page's list
//! has 8 bytes for a change, and what it does stands in one buffer, in a form of its own:
//!
//! ```text
//!   write  0 | offset u16 | length u32 | the bytes        fill  1 | offset u16 | length u32 | the byte
//!   move   2 | to u16 | from u16 | length u32             init  3
//! ```

use std::collections::BTreeMap;

use page::PageId;
use redo::{Lsn, Record};

use crate::mtr;
use crate::recovery::page_map::PageMap;

const WRITE: u8 = 0;
const FILL: u8 = 1;
const MOVE: u8 = 2;
const INIT: u8 = 3;

/// Bytes that a page takes in the map beside its list.
const PAGE_BYTES: usize = 96;

/// A change of a page.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Which mini-transaction it belongs to.
    transaction: u32,
    /// Where in the buffer it is.
    at: u32,
}

/// What the changes do, and the mini-transactions they belong to.
#[derive(Default)]
pub(super) struct Changes {
    bytes: Vec<u8>,
    /// Start and end.
    transactions: Vec<(Lsn, Lsn)>,
}

/// Changes of a stretch of log, by page.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) pages: PageMap<Vec<Entry>>,
    pub(super) changes: Changes,
    /// Sizes tablespaces must have.
    pub(super) sizes: BTreeMap<u32, u32>,
    /// Bytes of all lists.
    lists: usize,
}

impl Batch {
    /// Whether it takes more bytes, or has more pages.
    pub(super) fn is_larger_than(&self, bytes: usize, pages: usize) -> bool {
        let transactions = self.changes.transactions.len() * size_of::<(Lsn, Lsn)>();
        let taken = self.changes.bytes.len() + transactions + self.lists + self.pages.len() * PAGE_BYTES;
        taken > bytes || self.pages.len() > pages
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.sizes.is_empty()
    }

    /// Adds a change of the mini-transaction from `start` to `end`, which is the last one added or comes
    /// after it.
    pub(super) fn add(&mut self, start: Lsn, end: Lsn, record: Record<'_>) {
        let page = match record {
            Record::Write { page, .. }
            | Record::Fill { page, .. }
            | Record::Move { page, .. }
            | Record::Init { page } => page,
            // The bytes do not matter, which is no reason to change them.
            Record::Free { .. } => return,
            Record::SpaceSize { space, pages } => return self.needs_size(space, pages),
        };
        self.needs_size(page.space, page.page.saturating_add(1));
        let entry = self.changes.keep(start, end, record);
        let entries = self.pages.entry(page).or_default();
        self.lists -= entries.capacity() * size_of::<Entry>();
        if matches!(record, Record::Init { .. }) {
            // Nothing before it matters.
            entries.clear();
        }
        entries.push(entry);
        self.lists += entries.capacity() * size_of::<Entry>();
    }

    fn needs_size(&mut self, space: u32, pages: u32) {
        let size = self.sizes.entry(space).or_default();
        *size = (*size).max(pages);
    }

    /// Leaves out what comes before the last initialisation of its page.
    pub(super) fn forget_superseded(&mut self, inits: &PageMap<Lsn>) {
        let Batch { pages, changes, .. } = self;
        pages.retain(|page, entries| {
            if let Some(init) = inits.get(page) {
                entries.retain(|entry| changes.lsns(entry).0 >= *init);
            }
            !entries.is_empty()
        });
    }
}

impl Changes {
    fn keep(&mut self, start: Lsn, end: Lsn, record: Record<'_>) -> Entry {
        if self.transactions.last() != Some(&(start, end)) {
            self.transactions.push((start, end));
        }
        let transaction = self.transactions.len() as u32 - 1;
        let at = self.bytes.len() as u32;
        let bytes = &mut self.bytes;
        let mut put = |kind: u8, numbers: &[u16], length: usize| {
            bytes.push(kind);
            numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_ne_bytes()));
            bytes.extend_from_slice(&(length as u32).to_ne_bytes());
        };
        match record {
            Record::Write { offset, bytes: new, .. } => {
                put(WRITE, &[offset], new.len());
                bytes.extend_from_slice(new);
            }
            Record::Fill { offset, length, byte, .. } => {
                put(FILL, &[offset], length as usize);
                bytes.push(byte);
            }
            Record::Move { to, from, length, .. } => put(MOVE, &[to, from], length as usize),
            Record::Init { .. } => bytes.push(INIT),
            Record::Free { .. } | Record::SpaceSize { .. } => unreachable!("changes no page"),
        }
        Entry { transaction, at }
    }

    /// Start and end of the change's mini-transaction.
    pub(super) fn lsns(&self, entry: &Entry) -> (Lsn, Lsn) {
        self.transactions[entry.transaction as usize]
    }

    /// Whether the first of these changes initialises the page, so that what is in its file does not matter.
    pub(super) fn begin_with_init(&self, entries: &[Entry]) -> bool {
        entries.first().is_some_and(|entry| self.bytes[entry.at as usize] == INIT)
    }

    /// Does to the page what the mini-transaction did.
    ///
    /// # Errors
    /// What is to be changed lies outside the page.
    pub(super) fn apply(&self, entry: &Entry, page: &mut [u8], id: PageId) -> Result<(), String> {
        let outside = || "a change lies outside the page".to_owned();
        let mut change = Reader(&self.bytes[entry.at as usize..]);
        match change.byte() {
            WRITE => {
                let (offset, length) = (change.place(), change.length());
                let to = page.get_mut(offset..offset + length).ok_or_else(outside)?;
                to.copy_from_slice(change.bytes(length));
            }
            FILL => {
                let (offset, length) = (change.place(), change.length());
                page.get_mut(offset..offset + length).ok_or_else(outside)?.fill(change.byte());
            }
            MOVE => {
                let (to, from, length) = (change.place(), change.place(), change.length());
                if to.max(from) + length > page.len() {
                    return Err(outside());
                }
                page.copy_within(from..from + length, to);
            }
            kind => {
                assert_eq!(kind, INIT, "a change is what was kept");
                mtr::initialise(page, id);
            }
        }
        Ok(())
    }
}

/// Reads a kept change.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, length: usize) -> &'b [u8] {
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn byte(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    fn place(&mut self) -> usize {
        let bytes = self.bytes(2);
        usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
    }

    fn length(&mut self) -> usize {
        let bytes = self.bytes(4);
        u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PAGE: PageId = PageId::new(3, 7);

    fn applied(batch: &Batch, page: &mut [u8]) -> Result<(), String> {
        batch.pages[&PAGE].iter().try_for_each(|entry| batch.changes.apply(entry, page, PAGE))
    }

    #[test]
    fn what_is_kept_is_what_was_logged() {
        let mut batch = Batch::default();
        let (start, end) = (Lsn(100), Lsn(150));
        batch.add(start, end, Record::Write { page: PAGE, offset: 65_000, bytes: b"changed" });
        batch.add(start, end, Record::Fill { page: PAGE, offset: 0, length: 65_536, byte: 9 });
        batch.add(start, end, Record::Write { page: PAGE, offset: 10, bytes: b"abc" });
        batch.add(Lsn(150), Lsn(170), Record::Move { page: PAGE, to: 11, from: 10, length: 3 });
        assert_eq!(batch.changes.transactions.len(), 2);
        let mut page = vec![1; 65_536];
        applied(&batch, &mut page).unwrap();
        let mut expected = vec![9; 65_536];
        expected[10..14].copy_from_slice(b"aabc");
        assert!(page == expected);
        assert_eq!(batch.changes.lsns(&batch.pages[&PAGE][3]), (Lsn(150), Lsn(170)));
        assert!(applied(&batch, &mut [0; 4096]).is_err(), "the page is smaller than what is changed");
        assert!(batch.is_larger_than(10, 1) && batch.is_larger_than(1 << 20, 0));
        assert!(!batch.is_larger_than(1 << 20, 1));
    }

    #[test]
    fn nothing_before_an_initialisation_matters() {
        let mut batch = Batch::default();
        let write = |byte| Record::Write { page: PAGE, offset: 100, bytes: std::slice::from_ref(byte) };
        batch.add(Lsn(1), Lsn(2), write(&1));
        batch.add(Lsn(2), Lsn(3), Record::Init { page: PAGE });
        batch.add(Lsn(3), Lsn(4), write(&2));
        let entries = &batch.pages[&PAGE];
        assert!(entries.len() == 2 && batch.changes.begin_with_init(entries));

        // One that was found later, beyond what was collected.
        let mut inits = PageMap::default();
        inits.insert(PAGE, Lsn(3));
        batch.forget_superseded(&inits);
        assert_eq!(batch.pages[&PAGE].len(), 1);
        inits.insert(PAGE, Lsn(4));
        batch.forget_superseded(&inits);
        assert!(batch.pages.is_empty());
    }
}
