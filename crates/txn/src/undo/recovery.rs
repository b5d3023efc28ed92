//! Finding the logs again after a restart.
//!
//! Each slot is walked from the oldest log the directory names: a committed log says where it ends, the next one
//! begins there, or at the start of the next page when its header did not fit. A log without the commit mark is the last of its
//! slot; it goes on over pages that name its transaction as owner. A log marked as purged says where what is not purged begins.

use super::log::{CommittedLog, UndoLog};
use super::page::*;
use super::slot::{UndoSpace, corrupt};
use crate::error::{Error, Interrupt};
use crate::retry::retry;

/// What the undo tablespace holds.
#[derive(Default)]
pub(crate) struct Found {
    /// Logs of transactions that had not committed.
    pub unfinished: Vec<UndoLog>,
    /// Committed logs with their commit numbers.
    pub history: Vec<(u64, CommittedLog)>,
    /// No id or commit number found is as large.
    pub above_all: u64,
    /// Pages in the chains.
    pub pages: u64,
}

enum NextLog {
    /// No further log; the next one will start here.
    End(Place),
    Log(Place, LogHeader),
}

/// Walks all slots. Slots of unfinished logs are taken.
pub(crate) async fn find_logs(space: &UndoSpace) -> Result<Found, Error> {
    let heads = retry(|| space.heads()).await?;
    let mut found = Found { above_all: retry(|| space.bound()).await?, ..Found::default() };
    for (slot, head) in heads.into_iter().enumerate() {
        if head.page == Place::NOWHERE.page {
            continue;
        }
        walk_slot(space, slot as u16, head, &mut found).await?;
        found.pages += count_pages(space, head.page).await?;
    }
    found.history.sort_unstable_by_key(|(number, _)| *number);
    Ok(found)
}

async fn walk_slot(space: &UndoSpace, slot: u16, head: Place, found: &mut Found) -> Result<(), Error> {
    let mut at = head;
    loop {
        match retry(|| next_log(space, at)).await? {
            NextLog::End(place) => {
                space.set(slot, Some(place));
                return Ok(());
            }
            NextLog::Log(place, header) => {
                found.above_all = found.above_all.max(header.trx_id + 1).max(header.commit_number + 1);
                if header.state == STATE_PURGED {
                    at = header.end;
                } else if header.state == STATE_COMMITTED {
                    let log = CommittedLog { slot, trx_id: header.trx_id, header: place, end: header.end };
                    found.history.push((header.commit_number, log));
                    at = header.end;
                } else {
                    let end = retry(|| end_of_unfinished(space, place, header.trx_id)).await?;
                    space.take_number(slot);
                    found.unfinished.push(UndoLog::resurrect(slot, header.trx_id, place, end));
                    return Ok(());
                }
            }
        }
    }
}

fn next_log(space: &UndoSpace, at: Place) -> Result<NextLog, Interrupt> {
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

fn end_of_unfinished(space: &UndoSpace, header: Place, trx_id: u64) -> Result<Place, Interrupt> {
    let mut page_number = header.page;
    loop {
        let page = space.read_page(page_number)?;
        let end = Place { page: page_number, offset: free_of(&page) };
        let next = pagestore::page::next(&page);
        drop(page);
        if next == pagestore::page::NULL_PAGE || owner_of(&space.read_page(next)?) != trx_id {
            return Ok(end);
        }
        page_number = next;
    }
}

async fn count_pages(space: &UndoSpace, head: u32) -> Result<u64, Error> {
    let (mut pages, mut number) = (0, head);
    while number != pagestore::page::NULL_PAGE {
        number = retry(|| Ok(pagestore::page::next(&space.read_page(number)?))).await?;
        pages += 1;
    }
    Ok(pages)
}
