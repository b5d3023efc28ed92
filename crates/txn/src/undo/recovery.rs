//! Finding the logs again after a restart.
//!
//! A committed log says where it ends, the next one begins there, or at the start of the next page when its
//! header did not fit. A log without the commit mark is the last of its slot; it goes on over pages that name
//! its transaction as owner. A log marked as purged says where what is not purged begins.
//!
//! Of each slot the oldest log is read, which the directory names, and those from its tail hint on, the last
//! of which may be unfinished. So a start reads a few pages for each slot, however long the history is.
//! Several slots are looked at side by side.
//!
//! A [`Survey`] finds, page by page, where an unfinished log ends and which tables it touches: it may be
//! long, and clients need not wait for it.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::history::FoundHistory;
use super::log::CommittedLog;
use super::page::*;
use super::record::{UndoRecord, bytes_at};
use super::tablespace::{Slot, UndoSpace, corrupt};
use crate::error::{Error, Interrupt};
use crate::join_all::try_join_all;
use crate::retry::retry;

/// Slots looked at at a time.
const LANES: usize = 32;

/// A log without the commit mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unfinished {
    pub slot: u16,
    pub trx_id: u64,
    pub header: Place,
    /// It is prepared, and not to be rolled back.
    pub prepared: Option<PreparedMark>,
}

/// What the header of a prepared log says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreparedMark {
    /// How many records can be undone.
    pub records: u64,
    /// Their end, where the record with the name begins.
    pub end: Place,
}

impl Unfinished {
    /// Whether the undo page with this number has something of it.
    pub fn is_on(&self, page: &[u8], number: u32) -> bool {
        slot_of(page) == self.slot && (number == self.header.page || owner_of(page) == self.trx_id)
    }
}

/// What the undo tablespace holds.
#[derive(Default)]
pub(crate) struct Found {
    /// Logs of transactions that had not committed.
    pub unfinished: Vec<Unfinished>,
    /// Slots with committed logs.
    pub history: Vec<FoundHistory>,
    /// The other slots, and those with committed logs only.
    pub free: Vec<(u16, Slot)>,
    /// No id or commit number found is as large.
    pub above_all: u64,
    /// Pages of all slots.
    pub pages: u64,
}

pub(crate) enum NextLog {
    /// No further log; the next one will start here.
    End(Place),
    Log(Place, LogHeader),
}

/// Looks at all slots.
pub(crate) async fn find_logs(space: &UndoSpace) -> Result<Found, Error> {
    let found = Mutex::new(Found {
        above_all: retry(|| space.bound()).await?,
        pages: space.count_pages().await?,
        ..Found::default()
    });
    let entries = Mutex::new(space.entries().await?.into_iter());
    let lane = || async {
        loop {
            let Some((slot, head, hint)) = entries.lock().next() else { return Ok::<(), Error>(()) };
            if head.page == Place::NOWHERE.page {
                found.lock().free.push((slot, Slot::default()));
            } else {
                look_at_slot(space, slot, head, hint, &found).await?;
            }
        }
    };
    try_join_all((0..LANES).map(|_| lane())).await?;
    let mut found = found.into_inner();
    // Not in the order in which pages happened to come; low slots are to be taken first.
    found.free.sort_unstable_by_key(|(slot, _)| std::cmp::Reverse(*slot));
    found.unfinished.sort_unstable_by_key(|log| log.trx_id);
    Ok(found)
}

async fn look_at_slot(
    space: &UndoSpace,
    slot: u16,
    head: Place,
    hint: Option<Place>,
    found: &Mutex<Found>,
) -> Result<(), Error> {
    let committed = |place, header: LogHeader| CommittedLog {
        slot,
        trx_id: header.trx_id,
        header: place,
        end: header.end,
    };
    let mut at = head;
    let mut oldest = None;
    // Logs looked at; those with this commit number or a larger one.
    let (mut counted, mut counted_from) = (0, 0);
    let free = loop {
        let (place, header) = match retry(|| next_log(space, at)).await? {
            NextLog::End(place) => break Some(place),
            NextLog::Log(place, header) => (place, header),
        };
        {
            let mut found = found.lock();
            let number = if header.state == STATE_PREPARED { 0 } else { header.commit_number };
            found.above_all = found.above_all.max(header.trx_id + 1).max(number + 1);
        }
        match header.state {
            STATE_PURGED => at = header.end,
            STATE_COMMITTED => {
                counted += 1;
                at = header.end;
                // On one page a hint may be behind the head: purge takes back only those of pages that it
                // frees.
                let ahead = hint.filter(|hint| hint.page != place.page && hint.page != head.page);
                if oldest.is_none() {
                    oldest = Some((header.commit_number, committed(place, header)));
                    // Nor need a log be there: one that left nothing behind may have been the first on the
                    // hint's page.
                    if let Some(hint) = ahead
                        && retry(|| space.has_log_at(slot, hint)).await?
                    {
                        at = hint;
                        counted_from = u64::MAX;
                        counted = 0;
                    }
                } else if counted_from == u64::MAX {
                    counted_from = header.commit_number;
                }
            }
            _ => {
                let mark = PreparedMark { records: header.commit_number, end: header.end };
                let prepared = (header.state == STATE_PREPARED).then_some(mark);
                let log = Unfinished { slot, trx_id: header.trx_id, header: place, prepared };
                found.lock().unfinished.push(log);
                break None;
            }
        }
    };
    let mut found = found.lock();
    if counted_from == u64::MAX {
        // All commits to come have larger numbers than any that was found.
        counted_from = found.above_all;
    }
    if let Some((commit_number, oldest)) = oldest {
        found.history.push(FoundHistory { commit_number, oldest, counted, counted_from });
    }
    if let Some(place) = free {
        found.free.push((slot, Slot { next_log: Some(place), since_hint: 0 }));
    }
    Ok(())
}

/// The log that begins at `at`, or at the start of the page after it.
pub(crate) fn next_log(space: &UndoSpace, at: Place) -> Result<NextLog, Interrupt> {
    let page = space.read_page(at.page)?;
    let free = free_of(&page);
    if at.offset < free {
        return read_header(&page, at);
    }
    let next = pagestore::page::next(&page);
    drop(page);
    if next == pagestore::page::NULL_PAGE {
        return Ok(NextLog::End(at));
    }
    let page = space.read_page(next)?;
    if owner_of(&page) == 0 && usize::from(free_of(&page)) > RECORDS {
        return read_header(&page, Place::start_of(next));
    }
    Ok(NextLog::End(at))
}

fn read_header(page: &[u8], at: Place) -> Result<NextLog, Interrupt> {
    let offset = usize::from(at.offset);
    if offset < RECORDS || offset + LOG_HEADER_LEN > limit(page.len()) {
        return Err(corrupt(at.page, "an undo log cannot start where one should").into());
    }
    let header = LogHeader::read(page, offset);
    if !header.is_one() {
        return Err(corrupt(at.page, "there is no undo log header where one should be").into());
    }
    Ok(NextLog::Log(at, header))
}

/// Goes through an unfinished log from its start: where it ends, how many records it has, which tables they
/// are about.
pub(crate) struct Survey {
    pub log: Unfinished,
    /// Where it goes on; the start of a page, or of the first record.
    at: Place,
    pub records: u64,
    pub tables: BTreeSet<u64>,
    /// Its end, once that is known.
    pub end: Option<Place>,
}

impl Survey {
    pub fn new(log: Unfinished) -> Survey {
        let at = Place { page: log.header.page, offset: log.header.offset + LOG_HEADER_LEN as u16 };
        Survey { log, at, records: 0, tables: BTreeSet::new(), end: None }
    }

    /// Looks at one page. True at the end.
    pub async fn step(&mut self, space: &UndoSpace) -> Result<bool, Error> {
        let step = || {
            let page = space.read_page(self.at.page)?;
            let free = free_of(&page);
            let (mut at, mut records) = (usize::from(self.at.offset), 0);
            let mut tables = BTreeSet::new();
            while at < usize::from(free) {
                let Some(record) = bytes_at(&page, at) else {
                    return Err(corrupt(self.at.page, "no undo record starts where one should").into());
                };
                let Some(undo) = UndoRecord::parse(record) else {
                    return Err(corrupt(self.at.page, "an undo record cannot be read").into());
                };
                tables.insert(undo.table);
                records += 1;
                at += record.len();
            }
            let next = pagestore::page::next(&page);
            drop(page);
            let goes_on =
                next != pagestore::page::NULL_PAGE && owner_of(&space.read_page(next)?) == self.log.trx_id;
            Ok((free, records, tables, goes_on.then_some(next)))
        };
        let (free, records, tables, next) = retry(step).await?;
        self.records += records;
        self.tables.extend(tables);
        match next {
            Some(next) => self.at = Place::start_of(next),
            None => self.end = Some(Place { page: self.at.page, offset: free }),
        }
        Ok(self.end.is_some())
    }
}
