//! A batch: some of the oldest logs, or a part of one that is very long. How far purge may go is decided in
//! `mod.rs` (`advance`).
//!
//! First the undo records are read, of several logs side by side. Then those that leave something to remove
//! are sorted by the rows they are about and cut into **lanes**, which are worked off by the workers: each
//! lane in order, so that it goes through the pages of a table one after the other and finds most rows behind
//! the one before without a descent. The records of a row are in one lane, in the order of the commits, as
//! later ones rely on what the earlier ones have done. Several lanes of a worker go on side by side, because
//! each step waits for pages by itself: when history falls behind on a slow disk, the pages it needs have
//! left the pool and must be read again, so that it falls behind even more. When all lanes are done the
//! directory forgets the logs and their pages are freed.
//!
//! One client alone makes batches of a few logs, with every page in memory: what a batch costs beside its
//! records is a part of what each of its updates costs. So nothing is made for lanes that have no work.
//!
//! A batch ends with the first log that does not fit as a whole; the next one goes on within it. An
//! interrupted batch does not count; it is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use disk::Event;
use parking_lot::Mutex;

use super::record::Worker;
use super::row_order::{KnownTable, RowRecord, share_out};
use super::{TurnGuard, is_damage};
use crate::error::{Error, Interrupt};
use crate::join_all::try_join_all;
use crate::retry::{retry, yield_now};
use crate::row::remove::LastRemoval;
use crate::system::{Counters, System};
use crate::table::TableSource;
use crate::transaction_ids::PurgeView;
use crate::undo::Place;
use crate::undo::log::CommittedLog;
use crate::undo::page::{LOG_HEADER_LEN, free_of};
use crate::undo::record::bytes_at;
use crate::undo::tablespace::corrupt;

/// Logs in a batch at most.
pub(super) const BATCH_LOGS: usize = 300;
/// Bytes of undo records read for a batch, roughly. A rollback may have to wait for one, and a truncation of
/// the undo tablespace takes a step after each.
const BATCH_BYTES: usize = 1 << 20;
/// Logs read, and lanes of a worker gone through, side by side.
const LANES: usize = 16;
/// With fewer records it is not worth waking other workers.
const RECORDS_TO_SHARE: usize = 128;
/// Records of a lane between two looks at who else wants the thread.
const RECORDS_PER_TURN: usize = 8;

/// What was read of one log.
struct Piece {
    number: u64,
    log: CommittedLog,
    bytes: Vec<u8>,
    records: Vec<(Place, Range<usize>)>,
    /// Where the log goes on; `None`: all of it has been read.
    goes_on: Option<Place>,
    damaged: Option<Error>,
}

/// Purges some logs. Returns the number of undo records gone through.
pub(super) async fn run_batch(system: &Arc<System>, turn: &Arc<TurnGuard>) -> Result<u64, Error> {
    if system.purge.is_interrupted() {
        return Ok(0);
    }
    let Some(tables) = system.purge.tables.lock().clone() else { return Ok(0) };
    let snapshot = system.purge.advance(system);
    let logs = system.history.ready(&system.undo, snapshot.commit_limit, BATCH_LOGS).await?;
    if logs.is_empty() {
        give_pages_back(system).await?;
        return Ok(0);
    }
    let pieces = read(system, logs).await?;
    let records = pieces.iter().map(|piece| piece.records.len()).sum::<usize>();
    let work = Work::new(system, turn, tables, snapshot, &pieces);
    let finished: Vec<(u64, CommittedLog)> = pieces
        .iter()
        .filter(|piece| piece.goes_on.is_none())
        .map(|piece| (piece.number, piece.log))
        .collect();
    let resume = pieces.last().and_then(|piece| Some((piece.number, piece.goes_on?)));
    if !work.run(pieces).await? {
        return Ok(0);
    }
    forget(system, finished).await?;
    *system.purge.resume.lock() = resume;
    give_pages_back(system).await?;
    Counters::add(&system.counters.purged_records, records as u64);
    Ok(records as u64)
}

/// Frees pages that nobody needs, and gives the file's end back.
async fn give_pages_back(system: &System) -> Result<(), Error> {
    let must_stop = || system.purge.is_interrupted();
    system.undo.trim(must_stop).await?;
    system.undo.truncate(&system.history, must_stop).await
}

/// Reads the records of the logs until there are enough.
async fn read(system: &System, logs: Vec<(u64, CommittedLog)>) -> Result<Vec<Piece>, Error> {
    let resume = *system.purge.resume.lock();
    let start = |number: u64, log: &CommittedLog| match resume {
        Some((resumed, place)) if resumed == number => place,
        _ => Place { page: log.header.page, offset: log.header.offset + LOG_HEADER_LEN as u16 },
    };
    let pieces: Vec<Mutex<Piece>> = logs
        .into_iter()
        .map(|(number, log)| {
            let goes_on = Some(start(number, &log)).filter(|at| *at != log.end);
            Mutex::new(Piece { number, log, bytes: Vec::new(), records: Vec::new(), goes_on, damaged: None })
        })
        .collect();
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let lane = || async {
        while let Some(slot) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            loop {
                // Each lock is for one step; nobody else has this piece.
                let some = {
                    let piece = slot.lock();
                    if piece.goes_on.is_none() {
                        break;
                    }
                    !piece.records.is_empty()
                };
                if bytes.load(Ordering::Relaxed) >= BATCH_BYTES && some {
                    break;
                }
                match retry(|| slot.lock().read_page(system)).await {
                    Ok(read) => _ = bytes.fetch_add(read, Ordering::Relaxed),
                    Err(error) if is_damage(&error) => {
                        slot.lock().damaged = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    };
    // None where nothing is left to be read.
    let is_left = |_: &usize| next.load(Ordering::Relaxed) < pieces.len();
    try_join_all((0..LANES).take_while(is_left).map(|_| lane())).await?;
    let pieces = pieces.into_iter().map(Mutex::into_inner);
    Ok(cut(system, pieces))
}

/// Drops what follows the first log that was not read as a whole, and damaged logs, whose slots are left
/// alone from now on.
fn cut(system: &System, pieces: impl Iterator<Item = Piece>) -> Vec<Piece> {
    let mut batch: Vec<Piece> = Vec::new();
    let mut left = BTreeSet::new();
    for piece in pieces {
        if left.contains(&piece.log.slot) {
            continue;
        }
        if let Some(error) = &piece.damaged {
            let slot = piece.log.slot;
            if batch.iter().any(|other| other.log.slot == slot) {
                // When those before it are done with, it is the oldest of its slot.
                break;
            }
            left.insert(slot);
            leave_slot(system, &piece.log, error);
            continue;
        }
        let goes_on = piece.goes_on.is_some();
        if !goes_on || !piece.records.is_empty() {
            batch.push(piece);
        }
        if goes_on {
            break;
        }
    }
    batch
}

/// Damage in the undo log of a slot: nothing after it can be purged.
fn leave_slot(system: &System, log: &CommittedLog, error: &Error) {
    tracing::error!(
        slot = log.slot, transaction = log.trx_id, %error,
        "an undo log cannot be purged: its slot is not used again before a restart, and what its transactions replaced stays in the tables"
    );
    Counters::add(&system.counters.purge_skipped, 1);
    system.history.park(log.slot);
    system.undo.free.retire(log.slot);
}

impl Piece {
    /// Copies the records from where it goes on to the end of that page or of the log. Returns how many bytes
    /// they are.
    fn read_page(&mut self, system: &System) -> Result<usize, Interrupt> {
        let Some(at) = self.goes_on else { return Ok(0) };
        let end = self.log.end;
        let page = system.undo.read_page(at.page)?;
        if !self.log.is_on(&page, at.page) {
            return Err(corrupt(at.page, "a page of a log that is to be purged is not this log's").into());
        }
        let before = self.bytes.len();
        let stop = if at.page == end.page { end.offset } else { free_of(&page) };
        let mut offset = at.offset;
        while offset < stop {
            let Some(record) = bytes_at(&page, usize::from(offset)) else {
                return Err(corrupt(at.page, "no undo record starts where one should").into());
            };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(record);
            self.records.push((Place { page: at.page, offset }, start..self.bytes.len()));
            offset += record.len() as u16;
        }
        self.goes_on = if at.page == end.page {
            None
        } else {
            match pagestore::page::next(&page) {
                pagestore::page::NULL_PAGE => {
                    return Err(corrupt(at.page, "an undo log ends too early").into());
                }
                next => Some(Place::start_of(next)).filter(|next| *next != end),
            }
        };
        Ok(self.bytes.len() - before)
    }
}

/// The records of a batch in their lanes.
struct Work {
    shared: Arc<Shared>,
    lanes: Vec<Vec<(u32, u32)>>,
    workers: usize,
}

struct Shared {
    system: Arc<System>,
    tables: Arc<dyn TableSource>,
    snapshot: Arc<PurgeView>,
    /// The right to purge lasts as long as the last of the workers.
    _turn: Arc<TurnGuard>,
    /// Somebody failed or was interrupted: the batch has not been.
    broken: AtomicBool,
    error: Mutex<Option<Error>>,
    skipped: AtomicU64,
}

/// Sets the event when a worker, or who waits for them all, ends, however it ends.
struct Ends {
    shared: Arc<Shared>,
    event: Event,
    finished: bool,
}

impl Ends {
    fn new(shared: &Arc<Shared>) -> Ends {
        Ends { shared: shared.clone(), event: Event::new(), finished: false }
    }

    fn finish(&mut self) {
        self.finished = true;
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.broken.store(true, Ordering::SeqCst);
        }
        self.event.set();
    }
}

impl Work {
    fn new(
        system: &Arc<System>,
        turn: &Arc<TurnGuard>,
        tables: Arc<dyn TableSource>,
        snapshot: Arc<PurgeView>,
        pieces: &[Piece],
    ) -> Work {
        let count: usize = pieces.iter().map(|piece| piece.records.len()).sum();
        let workers = if count < RECORDS_TO_SHARE { 1 } else { system.options.purge_threads.max(1) };
        let mut known = KnownTable::new(&*tables);
        let mut records = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            for (record, (_, range)) in piece.records.iter().enumerate() {
                let place = (number as u32, record as u32);
                records.extend(RowRecord::new(&mut known, &piece.bytes[range.clone()], place));
            }
        }
        let lanes = share_out(records, &mut known, workers * LANES);
        let shared = Arc::new(Shared {
            system: system.clone(),
            tables,
            snapshot,
            _turn: turn.clone(),
            broken: AtomicBool::new(false),
            error: Mutex::default(),
            skipped: AtomicU64::new(0),
        });
        Work { shared, lanes, workers }
    }

    /// Works everything off. False: it was interrupted.
    async fn run(self, pieces: Vec<Piece>) -> Result<bool, Error> {
        let Work { shared, mut lanes, workers } = self;
        let pieces = Arc::new(pieces);
        // Dropped midway, the workers end at their next records.
        let mut all = Ends::new(&shared);
        let mut events = Vec::new();
        for _ in 1..workers {
            let lanes = lanes.split_off(lanes.len() - LANES);
            let (shared, pieces) = (shared.clone(), pieces.clone());
            let env = shared.system.env.clone();
            let ends = Ends::new(&shared);
            events.push(ends.event.clone());
            let task = async move {
                // As a whole, so that it is dropped with the task.
                let mut ends = ends;
                shared.work(&pieces, lanes).await;
                ends.finish();
            };
            env.spawn_worker("purge worker", Box::pin(task));
        }
        shared.work(&pieces, lanes).await;
        for event in events {
            event.wait().await;
        }
        all.finish();
        let skipped = shared.skipped.load(Ordering::Relaxed);
        Counters::add(&shared.system.counters.purge_skipped, skipped);
        match shared.error.lock().take() {
            Some(error) => Err(error),
            None => Ok(!shared.broken.load(Ordering::SeqCst)),
        }
    }
}

impl Shared {
    async fn work(&self, pieces: &[Piece], lanes: Vec<Vec<(u32, u32)>>) {
        let lane = |records: Vec<(u32, u32)>| async move {
            let (system, tables) = (&*self.system, &*self.tables);
            let snapshot = &*self.snapshot;
            let mut worker = Worker { system, tables, snapshot, last: LastRemoval::default() };
            for (done, (piece, record)) in records.into_iter().enumerate() {
                if self.system.purge.is_interrupted() {
                    self.broken.store(true, Ordering::SeqCst);
                }
                if self.broken.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let piece = &pieces[piece as usize];
                let (place, range) = &piece.records[record as usize];
                match worker.purge_record(&piece.log, *place, &piece.bytes[range.clone()]).await {
                    Ok(()) => {}
                    Err(error) if is_damage(&error) => {
                        if self.skipped.fetch_add(1, Ordering::Relaxed) == 0 {
                            tracing::error!(
                                transaction = piece.log.trx_id, %error,
                                "old versions of rows cannot be purged because of a damaged page and stay; CHECK TABLE tells more"
                            );
                        }
                    }
                    Err(error) => return Err(error),
                }
                if done % RECORDS_PER_TURN == RECORDS_PER_TURN - 1 {
                    yield_now().await;
                }
            }
            Ok(())
        };
        let lanes = lanes.into_iter().filter(|lane| !lane.is_empty());
        if let Err(error) = try_join_all(lanes.map(lane)).await {
            self.broken.store(true, Ordering::SeqCst);
            self.error.lock().get_or_insert(error);
        }
    }
}

/// The logs are done with: moves the heads of their slots on, which frees pages, and takes them off the
/// history.
async fn forget(system: &Arc<System>, finished: Vec<(u64, CommittedLog)>) -> Result<(), Error> {
    let mut slots: BTreeMap<u16, Vec<(u64, CommittedLog)>> = BTreeMap::new();
    for (number, log) in finished {
        slots.entry(log.slot).or_default().push((number, log));
    }
    let slots = Mutex::new(slots.into_iter());
    let lane = || async {
        loop {
            let Some((slot, logs)) = slots.lock().next() else { return Ok(()) };
            let result = forget_logs(system, slot, &logs).await;
            match (result, logs.first()) {
                (Err(error), Some((_, log))) if is_damage(&error) => leave_slot(system, log, &error),
                (result, _) => result?,
            }
        }
    };
    let is_left = |_: &usize| slots.lock().len() > 0;
    try_join_all((0..LANES).take_while(is_left).map(|_| lane())).await
}

async fn forget_logs(system: &System, slot: u16, logs: &[(u64, CommittedLog)]) -> Result<(), Error> {
    let Some((_, last)) = logs.last() else { return Ok(()) };
    // First the memory, which must never name pages that are free: this may be cut anywhere. What it has
    // forgotten and the directory has not is freed with the slot's next logs, or found again by a start.
    system.history.forget(&system.undo, logs).await?;
    while !retry(|| system.undo.advance_head(slot, last.end)).await? {}
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use disk::{FaultKind, Misbehaviour};

    use super::*;
    use crate::undo::tablespace::undo_id;
    use crate::undo::tests::{store, write_log};
    use crate::{Options, TransactionSystem};

    /// Forgetting is cut where the page after what is forgotten has to be read.
    #[test]
    fn history_never_names_pages_that_were_freed() {
        let (env, store) = store();
        env.run_until_complete(async {
            let opened = TransactionSystem::open(store.clone(), Options::new("/data/undo_001".into())).await;
            let system = &opened.unwrap().0;
            let logs = [write_log(&system.undo, 100, 10).await, write_log(&system.undo, 102, 10).await];
            for (number, log) in [101, 103].into_iter().zip(logs) {
                system.history.committed(number, log);
            }
            assert_eq!(logs[0].slot, logs[1].slot);
            let slot = system.undo.free.take_number(logs[0].slot).unwrap();
            // What the pool has after this is of another slot, and what freeing pages takes.
            write_log(&system.undo, 104, 6000).await;
            system.undo.free.give_back(0, logs[0].slot, slot);
            let last = logs[0].end.page;
            for page in (0..4).chain(logs[0].header.page..last) {
                retry(|| Ok(store.read(undo_id(page)).map(drop)?)).await.unwrap();
            }
            env.disk().misbehave("undo_001", Misbehaviour::FailRead(FaultKind::Eio), 1);
            let done = forget_logs(system, logs[0].slot, &[(101, logs[0])]).await;
            assert!(done.is_err(), "page {last} was in the pool");
            env.disk().behave();
            for (_, log) in system.history.ready(&system.undo, u64::MAX, 10).await.unwrap() {
                let is_on = || Ok(log.is_on(&system.undo.read_page(log.header.page)?, log.header.page));
                assert!(retry(is_on).await.unwrap(), "{log:?}");
            }
            forget_logs(system, logs[0].slot, &[(101, logs[0])]).await.unwrap();
            let left = system.history.ready(&system.undo, u64::MAX, 10).await.unwrap();
            assert_eq!(left.into_iter().map(|(_, log)| log).collect::<Vec<_>>(), logs[1..]);
        });
    }
}
