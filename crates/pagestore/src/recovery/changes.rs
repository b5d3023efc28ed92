//! Changes of a stretch of log, by page, as they are kept until they are applied.
//!
//! A log that is full when its server is killed has millions of them, mostly of a few bytes. So a change
//! has 12 bytes in a table of all, in which those of a page are chained, and what it does stands in one of
//! a few large buffers, in a form of its own:
//!
//! ```text
//!   write  0 | offset u16 | length u32 | the bytes        fill  1 | offset u16 | length u32 | the byte
//!   move   2 | to u16 | from u16 | length u32             init  3
//! ```
//!
//! A start waits for this and for reading the log, and for nothing else that takes time. So a change
//! allocates nothing, mostly looks up no page either, because that of the change before is the same, and
//! the buffers ask for huge pages.

use std::collections::BTreeMap;

use disk::AlignedBuf;
use page::PageId;
use redo::{Lsn, Record};

use crate::mtr;
use crate::recovery::page_map::PageMap;

const WRITE: u8 = 0;
const FILL: u8 = 1;
const MOVE: u8 = 2;
const INIT: u8 = 3;

/// Bytes that a page takes in the map and beside it.
const PAGE_BYTES: usize = 96;

/// Bytes of the first buffer of changes; each is twice as large as the one before, up to the second.
const BUFFER_MIN: usize = 1 << 20;
const BUFFER_MAX: usize = 32 << 20;

/// A change of a page.
#[derive(Clone, Copy)]
struct Entry {
    /// Which mini-transaction it belongs to.
    transaction: u32,
    /// Where it is: a buffer, and a place in it.
    at: Place,
    /// The next change of the page; of the last one itself.
    next: u32,
}

/// A buffer in the upper bits and a byte of it in the others.
#[derive(Clone, Copy)]
struct Place(u32);

const PLACE_BITS: u32 = BUFFER_MAX.trailing_zeros();

/// The changes of a page, in the order of the log: there is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    first: u32,
    last: u32,
}

/// What the changes do, and the mini-transactions they belong to.
#[derive(Default)]
pub(super) struct Changes {
    entries: Vec<Entry>,
    buffers: Vec<AlignedBuf>,
    /// Bytes of the last buffer that are used, and of those before it.
    used: usize,
    full: usize,
    /// Start and end.
    transactions: Vec<(Lsn, Lsn)>,
}

/// Changes of a stretch of log, by page.
#[derive(Default)]
pub(super) struct Batch {
    /// Which of the lists is a page's.
    pages: PageMap<u32>,
    lists: Vec<List>,
    changes: Changes,
    /// The page of the change that was added last, and its list.
    current: Option<(PageId, u32)>,
    /// Sizes tablespaces must have.
    sizes: BTreeMap<u32, u32>,
    /// The one that was looked at last.
    size: Option<(u32, u32)>,
}

impl Batch {
    /// Whether it takes more bytes, or has more pages.
    pub(super) fn is_larger_than(&self, bytes: usize, pages: usize) -> bool {
        self.changes.bytes() + self.pages.len() * PAGE_BYTES > bytes || self.pages.len() > pages
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
        let begins = matches!(record, Record::Init { .. });
        let entry = self.changes.keep(start, end, record);
        if let Some((_, list)) = self.current.filter(|(current, _)| *current == page) {
            return self.append(list, entry, begins);
        }
        self.needs_size(page.space, page.page.saturating_add(1));
        let new = self.lists.len() as u32;
        let list = *self.pages.entry(page).or_insert(new);
        self.current = Some((page, list));
        if list == new {
            self.lists.push(List { first: entry, last: entry });
        } else {
            self.append(list, entry, begins);
        }
    }

    /// `begins`: nothing before it matters.
    fn append(&mut self, list: u32, entry: u32, begins: bool) {
        let list = &mut self.lists[list as usize];
        if begins {
            list.first = entry;
        } else {
            self.changes.entries[list.last as usize].next = entry;
        }
        list.last = entry;
    }

    fn needs_size(&mut self, space: u32, pages: u32) {
        if self.size.is_some_and(|(last, size)| last == space && size >= pages) {
            return;
        }
        let size = self.sizes.entry(space).or_default();
        *size = (*size).max(pages);
        self.size = Some((space, *size));
    }

    /// Leaves out what comes before the last initialisation of its page.
    pub(super) fn forget_superseded(&mut self, inits: &PageMap<Lsn>) {
        let Batch { pages, lists, changes, current, .. } = self;
        *current = None;
        pages.retain(|page, list| {
            let (Some(init), list) = (inits.get(page), &mut lists[*list as usize]) else { return true };
            while changes.lsns(list.first).0 < *init {
                if list.first == list.last {
                    return false;
                }
                list.first = changes.entries[list.first as usize].next;
            }
            true
        });
    }

    /// The sizes that tablespaces must have, the pages with their changes, and what these do.
    pub(super) fn into_parts(self) -> (BTreeMap<u32, u32>, PageMap<List>, Changes) {
        let Batch { pages, lists, changes, sizes, .. } = self;
        let pages = pages.into_iter().map(|(page, list)| (page, lists[list as usize])).collect();
        (sizes, pages, changes)
    }
}

impl Changes {
    /// Memory that it takes.
    fn bytes(&self) -> usize {
        self.full
            + self.used
            + self.transactions.capacity() * size_of::<(Lsn, Lsn)>()
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// Keeps a change; the number of its entry, which is chained to no other.
    fn keep(&mut self, start: Lsn, end: Lsn, record: Record<'_>) -> u32 {
        if self.transactions.last() != Some(&(start, end)) {
            self.transactions.push((start, end));
        }
        let number = |number: u16| number.to_ne_bytes();
        let length = |length: u32| length.to_ne_bytes();
        let at = match record {
            Record::Write { offset, bytes, .. } => {
                self.put([&[WRITE], &number(offset), &length(bytes.len() as u32), bytes])
            }
            Record::Fill { offset, length: filled, byte, .. } => {
                self.put([&[FILL], &number(offset), &length(filled), &[byte]])
            }
            Record::Move { to, from, length: moved, .. } => {
                self.put([&[MOVE], &number(to), &number(from), &length(moved)])
            }
            Record::Init { .. } => self.put([&[INIT], &[], &[], &[]]),
            Record::Free { .. } | Record::SpaceSize { .. } => unreachable!("changes no page"),
        };
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { transaction: self.transactions.len() as u32 - 1, at, next: entry });
        entry
    }

    /// Puts these bytes into the last buffer, or into a new one.
    fn put(&mut self, parts: [&[u8]; 4]) -> Place {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let room = self.buffers.last().map_or(0, |buffer| buffer.len() - self.used);
        if room < length {
            let before = self.buffers.last().map_or(0, |buffer| buffer.len());
            let new = (2 * before).clamp(BUFFER_MIN, BUFFER_MAX).max(length);
            self.buffers.push(AlignedBuf::huge(new));
            self.full += std::mem::take(&mut self.used);
            assert!(self.buffers.len() <= 1 << (32 - PLACE_BITS), "a batch ends before that");
        }
        let place = Place((self.buffers.len() as u32 - 1) << PLACE_BITS | self.used as u32);
        if let Some(buffer) = self.buffers.last_mut() {
            let mut rest = &mut buffer[self.used..];
            for part in parts {
                let (to, after) = rest.split_at_mut(part.len());
                to.copy_from_slice(part);
                rest = after;
            }
        }
        self.used += length;
        place
    }

    fn at(&self, Place(place): Place) -> &[u8] {
        &self.buffers[(place >> PLACE_BITS) as usize][(place & (BUFFER_MAX as u32 - 1)) as usize..]
    }

    /// The changes of a page, from the first to the last.
    fn of(&self, list: List) -> impl Iterator<Item = u32> + Clone {
        std::iter::successors(Some(list.first), move |entry| {
            (*entry != list.last).then(|| self.entries[*entry as usize].next)
        })
    }

    /// Start and end of the mini-transaction of a change.
    pub(super) fn lsns(&self, entry: u32) -> (Lsn, Lsn) {
        self.transactions[self.entries[entry as usize].transaction as usize]
    }

    /// Where the first of these changes starts.
    pub(super) fn start(&self, list: List) -> Lsn {
        self.lsns(list.first).0
    }

    /// Where the last of these changes ends.
    pub(super) fn end(&self, list: List) -> Lsn {
        self.lsns(list.last).1
    }

    /// Whether the first of these changes initialises the page, so that what is in its file does not matter.
    pub(super) fn begin_with_init(&self, list: List) -> bool {
        self.at(self.entries[list.first as usize].at)[0] == INIT
    }

    /// Those of these changes that a page lacks which has what ends at `had`.
    pub(super) fn lacked(&self, list: List, had: Lsn) -> impl Iterator<Item = u32> + Clone {
        self.of(list).filter(move |entry| had < self.lsns(*entry).1)
    }

    /// Does to the page what one of its changes did.
    ///
    /// # Errors
    /// What is to be changed lies outside the page.
    pub(super) fn apply(&self, entry: u32, page: &mut [u8], id: PageId) -> Result<(), String> {
        let outside = || "a change lies outside the page".to_owned();
        let mut change = Reader(self.at(self.entries[entry as usize].at));
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

    fn list(batch: &Batch) -> List {
        batch.lists[batch.pages[&PAGE] as usize]
    }

    fn applied(batch: &Batch, page: &mut [u8]) -> Result<(), String> {
        let changes = &batch.changes;
        changes.of(list(batch)).try_for_each(|entry| changes.apply(entry, page, PAGE))
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
        assert_eq!(batch.changes.lsns(list(&batch).last), (Lsn(150), Lsn(170)));
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
        let changes = &batch.changes;
        assert!(changes.of(list(&batch)).count() == 2 && changes.begin_with_init(list(&batch)));

        // One that was found later, beyond what was collected.
        let mut inits = PageMap::default();
        inits.insert(PAGE, Lsn(3));
        batch.forget_superseded(&inits);
        assert_eq!(batch.changes.of(list(&batch)).count(), 1);
        inits.insert(PAGE, Lsn(4));
        batch.forget_superseded(&inits);
        assert!(batch.pages.is_empty());
    }

    /// Pages in turn and in runs, in more buffers than one: each has its own changes, in their order.
    #[test]
    fn changes_of_many_pages_stay_apart() {
        let mut batch = Batch::default();
        let mut random = disk::Random::new(7);
        let mut truth: BTreeMap<PageId, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
        let mut lsn = 1;
        while batch.changes.buffers.len() < 4 {
            let page = PageId::new(random.below(3) as u32, random.below(40) as u32);
            for _ in 0..1 + random.below(4) {
                let bytes = vec![random.next_u64() as u8; 1 + random.below(16_000)];
                batch.add(Lsn(lsn), Lsn(lsn + 1), Record::Write { page, offset: 0, bytes: &bytes });
                truth.entry(page).or_default().push((lsn, bytes));
                lsn += 1;
            }
        }
        let inits: PageMap<Lsn> = truth.keys().step_by(3).map(|page| (*page, Lsn(lsn / 2))).collect();
        batch.forget_superseded(&inits);
        let (sizes, pages, changes) = batch.into_parts();
        assert_eq!(sizes.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        for (page, expected) in truth {
            let from = inits.get(&page).map_or(0, |init| init.0);
            let expected: Vec<_> = expected.iter().filter(|(lsn, _)| *lsn >= from).collect();
            let Some(list) = pages.get(&page) else {
                assert!(expected.is_empty());
                continue;
            };
            assert!(sizes[&page.space] > page.page);
            let found: Vec<_> = changes.of(*list).collect();
            assert_eq!(found.len(), expected.len());
            for (entry, (lsn, bytes)) in found.iter().zip(expected) {
                assert_eq!(changes.lsns(*entry), (Lsn(*lsn), Lsn(lsn + 1)));
                let mut image = vec![0; 16_384];
                changes.apply(*entry, &mut image, page).unwrap();
                assert!(image[..bytes.len()] == bytes[..] && image[bytes.len()..].iter().all(|b| *b == 0));
            }
            let had = Lsn(changes.end(*list).0 - 1);
            assert_eq!(changes.lacked(*list, had).count(), 1, "only the last");
        }
    }
}
