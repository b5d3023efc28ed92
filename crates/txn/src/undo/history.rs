//! The history: committed logs that purge has not done with.
//!
//! It is on disk: the logs of a slot follow each other in the order of their commits, so the history as a
//! whole is the slots' chains merged by commit number. In memory is only each slot's oldest log. Its
//! successor is read from the undo pages when purge gets there, so that a snapshot that is open for a day
//! costs disk space, but no memory.
//!
//! A commit that finds its slot without history enters its log here; otherwise the log is found after the
//! older ones. Purge may look for a successor and find none just before one is committed: so each slot counts
//! its commits, and purge looks again when the count has moved ([`History::forget`]).

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::log::CommittedLog;
use super::page::{STATE_COMMITTED, STATE_PURGED};
use super::recovery::{NextLog, next_log};
use super::tablespace::{UndoSpace, corrupt};
use crate::error::Error;
use crate::retry::retry;

#[derive(Default)]
pub(crate) struct History(Mutex<State>);

#[derive(Default)]
struct State {
    /// The oldest log of each slot, by commit number.
    oldest: BTreeMap<u64, CommittedLog>,
    /// The slots that were ever in it, by their numbers.
    slots: Vec<SlotHistory>,
    length: u64,
}

#[derive(Default, Clone, Copy)]
struct SlotHistory {
    has_history: bool,
    /// Commits of logs with something to purge.
    commits: u32,
    /// Logs with smaller commit numbers were not looked at when the tablespace was opened, and are not in the
    /// length.
    counted_from: u64,
    /// A page of it is damaged: it stays as it is until the next start.
    parked: bool,
}

/// History of one slot, found when the tablespace is opened.
#[derive(Debug)]
pub(crate) struct FoundHistory {
    pub commit_number: u64,
    pub oldest: CommittedLog,
    /// Logs looked at: those with this commit number or a larger one.
    pub counted: u64,
    pub counted_from: u64,
}

impl State {
    fn slot(&mut self, number: u16) -> &mut SlotHistory {
        let number = usize::from(number);
        if self.slots.len() <= number {
            self.slots.resize(number + 1, SlotHistory::default());
        }
        &mut self.slots[number]
    }
}

impl History {
    /// The history of an opened tablespace.
    pub fn new(found: Vec<FoundHistory>) -> History {
        let mut state = State::default();
        for found in found {
            let slot = state.slot(found.oldest.slot);
            slot.has_history = true;
            slot.counted_from = found.counted_from;
            state.length += found.counted;
            state.oldest.insert(found.commit_number, found.oldest);
        }
        History(Mutex::new(state))
    }

    /// Committed logs. After a start with a long history those that nobody has looked at yet are not counted.
    pub fn len(&self) -> u64 {
        let state = self.0.lock();
        state.length.max(state.oldest.len() as u64)
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().oldest.is_empty()
    }

    /// Whether this slot has committed logs that purge has not done with, or may have.
    pub fn is_there(&self, slot: u16) -> bool {
        let state = self.0.lock();
        state.slots.get(usize::from(slot)).is_some_and(|slot| slot.has_history || slot.parked)
    }

    /// A log with something to purge was committed.
    pub fn committed(&self, number: u64, log: CommittedLog) {
        let mut state = self.0.lock();
        let slot = state.slot(log.slot);
        slot.commits = slot.commits.wrapping_add(1);
        if slot.parked {
            return;
        }
        let first = !std::mem::replace(&mut slot.has_history, true);
        state.length += 1;
        if first {
            state.oldest.insert(number, log);
        }
    }

    /// Up to `max` logs with commit numbers below `limit`, in the order of their commits.
    pub async fn ready(
        &self,
        undo: &UndoSpace,
        limit: u64,
        max: usize,
    ) -> Result<Vec<(u64, CommittedLog)>, Error> {
        let mut frontier: BTreeMap<u64, CommittedLog> = {
            let state = self.0.lock();
            state.oldest.range(..limit).take(max).map(|(number, log)| (*number, *log)).collect()
        };
        let mut ready = Vec::new();
        while let Some((number, log)) = frontier.pop_first() {
            ready.push((number, log));
            if ready.len() >= max {
                break;
            }
            match successor(undo, &log).await {
                Ok(Some((number, next))) if number < limit => {
                    frontier.insert(number, next);
                }
                Ok(_) => {}
                // Purge will run into it when the log before is done with, and park the slot.
                Err(Error::UndoCorrupt { .. } | Error::Store(pagestore::Error::Corrupt { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ready)
    }

    /// Purge has done with these logs of one slot, its oldest, in the order of their commits.
    pub async fn forget(&self, undo: &UndoSpace, done: &[(u64, CommittedLog)]) -> Result<(), Error> {
        let (Some((first_number, first)), Some((_, last))) = (done.first(), done.last()) else {
            return Ok(());
        };
        loop {
            let commits = self.0.lock().slot(first.slot).commits;
            let next = successor(undo, last).await?;
            let mut state = self.0.lock();
            let slot = state.slot(first.slot);
            if slot.commits != commits && next.is_none() {
                continue;
            }
            slot.has_history = next.is_some();
            let counted_from = slot.counted_from;
            let counted = done.iter().filter(|(number, _)| *number >= counted_from).count();
            state.length = state.length.saturating_sub(counted as u64);
            state.oldest.remove(first_number);
            state.oldest.extend(next);
            return Ok(());
        }
    }

    /// The oldest log of this slot cannot be gone on with.
    pub fn park(&self, slot: u16) {
        let mut state = self.0.lock();
        state.slot(slot).parked = true;
        state.oldest.retain(|_, log| log.slot != slot);
    }
}

/// The committed log after this one in its slot.
async fn successor(undo: &UndoSpace, log: &CommittedLog) -> Result<Option<(u64, CommittedLog)>, Error> {
    match retry(|| next_log(undo, log.end)).await? {
        NextLog::Log(header, next) if next.state == STATE_COMMITTED => {
            let log = CommittedLog { slot: log.slot, trx_id: next.trx_id, header, end: next.end };
            Ok(Some((next.commit_number, log)))
        }
        NextLog::Log(header, next) if next.state == STATE_PURGED => {
            Err(corrupt(header.page, "a log after one that is to be purged is purged already"))
        }
        NextLog::Log(..) | NextLog::End(_) => Ok(None),
    }
}
