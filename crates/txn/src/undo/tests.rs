//! Slots and logs on a store of their own.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use disk::{Environment, SimulatedEnvironment};
use pagestore::{PageSize, PageStore, page};

use super::UndoLog;
use super::directory::SLOTS_MAX;
use super::history::History;
use super::log::CommittedLog;
use super::log::LogMark;
use super::page::*;
use super::recovery::{Survey, Unfinished, find_logs};
use super::tablespace::{Slot, undo_id};
use super::*;
use crate::error::Error;
use crate::retry::retry;

/// Bytes of a record.
const RECORD: usize = 900;

/// A log in the slot that is taken first.
async fn begin_log(space: &UndoSpace, trx_id: u64) -> UndoLog {
    let (slot, state) = space.take(0).await.unwrap().unwrap();
    UndoLog::new(0, slot, state, trx_id)
}

/// A record that cannot be taken for another one's.
fn record(trx_id: u64, number: u64) -> Vec<u8> {
    record_of(trx_id, number, RECORD)
}

/// The same with about this many bytes.
fn record_of(trx_id: u64, number: u64, bytes: usize) -> Vec<u8> {
    let mut record = Vec::new();
    let key = [trx_id.to_be_bytes(), number.to_be_bytes()].concat();
    let mut builder = super::record::UndoBuilder::new(&mut record, UndoKind::Insert, 7);
    let fields = [btree::FieldRef::Inline(&key), btree::FieldRef::Inline(&[0; RECORD][..bytes - 32])];
    builder.key(fields.into_iter());
    builder.finish();
    record
}

/// Appends records number `from` to `to`.
async fn append(space: &UndoSpace, log: &mut UndoLog, numbers: std::ops::Range<u64>, insert: bool) {
    for number in numbers {
        append_record(space, log, &record(log.trx_id, number), insert).await;
    }
}

async fn append_record(space: &UndoSpace, log: &mut UndoLog, record: &[u8], insert: bool) {
    retry(|| {
        log.make_room(space, record.len())?;
        let mut mtr = space.store().mtr()?;
        let page = log.latch(&mut mtr).unwrap();
        log.append(&mut mtr, page, record, insert);
        mtr.commit();
        Ok(())
    })
    .await
    .unwrap();
}

/// All records of a log, the last one first.
async fn walk_back(space: &UndoSpace, log: &UndoLog) -> Result<Vec<Vec<u8>>, Error> {
    let (mut found, mut bytes, mut end) = (Vec::new(), Vec::new(), log.end());
    while let Some(at) = end {
        end = retry(|| log.record_before(space, at, None, &mut bytes)).await?;
        found.extend(end.map(|_| bytes.clone()));
    }
    Ok(found)
}

fn records(trx_id: u64, numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    numbers.rev().map(|number| record(trx_id, number)).collect()
}

pub(crate) async fn write_log(space: &UndoSpace, trx_id: u64, records: usize) -> CommittedLog {
    let mut log = begin_log(space, trx_id).await;
    append(space, &mut log, 0..records as u64, false).await;
    let committed = retry(|| log.commit(space, trx_id + 1)).await.unwrap().unwrap();
    log.release(space);
    committed
}

/// Leaves many spare pages in the slot that is taken first: where the next log starts, and the page numbers
/// behind it.
async fn leave_spare_pages(space: &Arc<UndoSpace>, records: u64) -> (u16, Vec<u32>) {
    let mut log = begin_log(space, 50).await;
    append(space, &mut log, 0..records, true).await;
    assert_eq!(retry(|| log.commit(space, 51)).await.unwrap(), None);
    let (end, slot) = (log.end_of_slot().unwrap(), log.slot());
    log.release(space);
    (slot, chain(space, end.page).await)
}

/// Page numbers from `first` to the end of its slot's chain; each must name the one before it.
async fn chain(space: &UndoSpace, first: u32) -> Vec<u32> {
    let mut chain = vec![first];
    loop {
        let last = chain[chain.len() - 1];
        let next = retry(|| Ok(page::next(&space.read_page(last)?))).await.unwrap();
        if next == page::NULL_PAGE {
            return chain;
        }
        let previous = retry(|| Ok(page::previous(&space.read_page(next)?))).await.unwrap();
        assert_eq!(previous, last, "page {next} names another page before it, after {chain:?}");
        chain.push(next);
    }
}

pub(crate) fn store() -> (Arc<SimulatedEnvironment>, Arc<PageStore>) {
    let env = SimulatedEnvironment::new(1);
    let dynamic: Arc<dyn Environment> = env.clone();
    let data = Path::new("/data");
    dynamic.storage().create_dir_all(data).unwrap();
    let settings = redo::Options { capacity: 16 << 20, ..redo::Options::default() };
    let redo = redo::RedoLog::create(&dynamic, data, settings).unwrap();
    let page_size = PageSize::new(4096).unwrap();
    let options = pagestore::Options { pool_bytes: 4 << 20, page_size, ..pagestore::Options::default() };
    let writer = Arc::new(dblwr::UnprotectedWriter::new(dynamic.clone()));
    let store = PageStore::open(dynamic, redo, options, writer).unwrap();
    (env, store)
}

#[test]
fn there_are_as_many_slots_as_numbers_and_a_restart_finds_them() {
    let (env, store) = store();
    env.run_until_complete(async {
        let path = Path::new("/data/undo_001");
        let space = UndoSpace::create(store.clone(), path).await.unwrap();
        let mut taken = vec![false; SLOTS_MAX];
        let mut home = 0;
        while let Some((slot, _)) = space.take(home).await.unwrap() {
            assert!(!std::mem::replace(&mut taken[usize::from(slot)], true), "slot {slot} twice");
            home = (home + 1) % 16;
        }
        assert!(taken.iter().all(|taken| *taken));
        let opened = UndoSpace::open(store, path).await.unwrap();
        assert_eq!(find_logs(&opened).await.unwrap().free.len(), SLOTS_MAX);
    });
}

/// A transaction keeps the page that its next record goes to, but not from a pool that becomes smaller.
#[test]
fn a_smaller_pool_gets_the_undo_page_of_an_open_transaction() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = UndoSpace::create(store.clone(), Path::new("/data/undo_001")).await.unwrap();
        // The frames of the first pages stay.
        let _before = write_log(&space, 50, 400).await;
        let mut log = begin_log(&space, 100).await;
        append(&space, &mut log, 0..1, true).await;
        log.let_go(&space);
        assert!(log.is_pinned(), "there are frames enough");
        let over = store.resize(64 * 4096).unwrap();
        store.environment().sleep(std::time::Duration::from_secs(1)).await;
        assert!(!over.is_set() && store.resize_status().contains("withdrew"), "{}", store.resize_status());
        append(&space, &mut log, 1..2, true).await;
        log.let_go(&space);
        assert!(!log.is_pinned());
        over.wait().await;
        // In its new frame it may stay.
        append(&space, &mut log, 2..3, true).await;
        log.let_go(&space);
        assert!(log.is_pinned());
        assert_eq!(walk_back(&space, &log).await.unwrap(), records(100, 0..3));
        log.unpin();
    });
    env.shutdown();
}

/// A crash may come between any two of the steps.
#[test]
fn after_each_step_of_freeing_pages_the_logs_that_are_left_are_found() {
    let (env, store) = store();
    let data = Path::new("/data");
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, &data.join("undo_001")).await.unwrap());
        // Short ones and such that go on over many pages, in the one slot that is always taken again.
        let mut logs = Vec::new();
        for (number, records) in [1, 30, 1, 2, 9, 5, 3, 17, 1, 1].into_iter().enumerate() {
            logs.push(write_log(&space, 100 + number as u64, records).await);
        }
        assert!(logs.iter().all(|log| log.slot == logs[0].slot));
        // Several at once, and one at a time.
        let mut steps = 0;
        for purged in [3, 4, 5, 8, 9] {
            let head = logs[purged - 1].end;
            loop {
                let over = retry(|| space.advance_head(logs[0].slot, head)).await.unwrap();
                steps += 1;
                let found = find_logs(&space).await.unwrap();
                let history = History::new(found.history);
                let left = history.ready(&space, u64::MAX, usize::MAX).await.unwrap();
                let left: Vec<_> = left.into_iter().map(|(_, log)| log).collect();
                assert!(left.ends_with(&logs[purged..]), "{left:?} after step {steps} to {head:?}");
                assert!(found.unfinished.is_empty());
                assert_eq!(found.pages, space.pages.load(Ordering::Relaxed));
                if over {
                    assert_eq!(left, logs[purged..]);
                    break;
                }
            }
        }
        assert!(steps > 15, "{steps} steps");
    });
}

/// The undo tablespace after a start that went on in the slot of a long log which left nothing: the
/// directory's hint names the page where that log began, and the next one goes in front of it, on `page`.
async fn with_a_hint_ahead(store: &Arc<PageStore>, path: &Path) -> (Arc<UndoSpace>, u16) {
    let space = Arc::new(UndoSpace::create(store.clone(), path).await.unwrap());
    let before = write_log(&space, 100, 4).await;
    let mut long = begin_log(&space, 102).await;
    assert_eq!(long.slot(), before.slot);
    append(&space, &mut long, 0..4 * 40, true).await;
    assert_eq!(retry(|| long.commit(&space, 103)).await.unwrap(), None);
    long.release(&space);
    assert!(retry(|| space.advance_head(before.slot, before.end)).await.unwrap());

    let space = Arc::new(UndoSpace::open(store.clone(), path).await.unwrap());
    let found = find_logs(&space).await.unwrap();
    space.free.add(found.free.into_iter());
    let entries = space.entries().await.unwrap();
    let hint = entries.iter().find_map(|(slot, _, hint)| hint.filter(|_| *slot == before.slot));
    let next = space.free.take_number(before.slot).unwrap();
    assert_eq!(next.next_log, Some(before.end), "there is no room left after it");
    assert!(hint.is_some_and(|hint| hint.page != before.end.page), "{hint:?}");
    space.free.give_back(0, before.slot, next);
    (space, before.slot)
}

/// A hint that is ahead of where logs go on leads past an unfinished one, or into the middle of one.
#[test]
fn a_start_does_not_follow_a_hint_to_where_no_log_begins() {
    for goes_on_to_the_hint in [false, true] {
        let (env, store) = store();
        env.run_until_complete(async {
            let path = Path::new("/data/undo_001");
            let (space, slot) = with_a_hint_ahead(&store, path).await;
            let state = space.free.take_number(slot).unwrap();
            let mut committed = UndoLog::new(0, slot, state, 200);
            append_record(&space, &mut committed, &record_of(200, 0, 60), false).await;
            if goes_on_to_the_hint {
                append(&space, &mut committed, 1..6, false).await;
            }
            let log = retry(|| committed.commit(&space, 201)).await.unwrap().unwrap();
            committed.release(&space);
            let state = space.free.take_number(slot).unwrap();
            let mut unfinished = UndoLog::new(0, slot, state, 202);
            append_record(&space, &mut unfinished, &record_of(202, 0, 60), false).await;
            assert!(goes_on_to_the_hint || unfinished.end().unwrap().page == log.header.page);

            let opened = UndoSpace::open(store.clone(), path).await.unwrap();
            let found = find_logs(&opened).await.unwrap();
            let transactions: Vec<u64> = found.unfinished.iter().map(|log| log.trx_id).collect();
            assert_eq!(transactions, [202]);
            assert_eq!(found.history.iter().map(|found| found.oldest).collect::<Vec<_>>(), [log]);
        });
    }
}

/// A crash may come between any two of the steps; what is freed is another slot's soon.
#[test]
fn after_each_step_of_trimming_a_log_over_what_is_left_is_walked_back() {
    let (env, store) = store();
    env.run_until_complete(async {
        let path = Path::new("/data/undo_001");
        let space = Arc::new(UndoSpace::create(store, path).await.unwrap());
        let (slot, spare) = leave_spare_pages(&space, 40).await;
        assert!(spare.len() > 8, "{spare:?}");
        for step in 1..6 {
            let over = retry(|| space.trim_after(slot, spare[0])).await.unwrap();
            assert!(!over);
            assert_eq!(chain(&space, spare[0]).await, [&spare[..1], &spare[step + 1..]].concat());
            // Somebody else gets the page, and writes on it.
            let (log_slot, state) = space.take(0).await.unwrap().unwrap();
            assert_eq!(log_slot, slot);
            let mut other = begin_log(&space, 60 + step as u64).await;
            append(&space, &mut other, 0..6, true).await;
            let mut log = UndoLog::new(0, log_slot, state, 70 + step as u64);
            append(&space, &mut log, 0..10, true).await;
            assert_eq!(walk_back(&space, &log).await.unwrap(), records(log.trx_id, 0..10), "step {step}");
            assert_eq!(walk_back(&space, &other).await.unwrap(), records(other.trx_id, 0..6));
            // Both are given back as they are, without their own spare pages being noted.
            retry(|| log.commit(&space, 1000)).await.unwrap();
            space.free.give_back(0, slot, Slot { next_log: log.end_of_slot(), since_hint: 0 });
            drop(other);
        }
    });
}

/// Directories in which an earlier version stopped between two steps of trimming.
#[test]
fn a_spare_page_that_names_a_page_of_another_slot_is_put_right_when_it_is_used() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let (slot, spare) = leave_spare_pages(&space, 40).await;
        let mut log = begin_log(&space, 70).await;
        assert_eq!(log.slot(), slot);
        let mut other = begin_log(&space, 60).await;
        append(&space, &mut other, 0..6, true).await;
        let name_page_before = async |number: u32, previous: u32| {
            retry(|| {
                let mut mtr = space.store().mtr()?;
                let page = mtr.x(undo_id(number))?;
                mtr.write_u32(page, page::PREVIOUS, previous);
                mtr.commit();
                Ok(())
            })
            .await
            .unwrap();
        };
        let others = other.end_of_slot().unwrap().page;
        name_page_before(spare[1], others).await;
        append(&space, &mut log, 0..10, true).await;
        assert_eq!(walk_back(&space, &log).await.unwrap(), records(70, 0..10));
        // Damage that is there all the same is told, and nothing of the other's is undone.
        name_page_before(spare[1], others).await;
        assert!(matches!(walk_back(&space, &log).await, Err(Error::UndoCorrupt { .. })));
    });
}

/// As after a start, when a directory names a page of another slot.
#[test]
fn a_log_on_a_page_of_another_slot_is_not_undone() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let mut log = begin_log(&space, 70).await;
        append(&space, &mut log, 0..3, true).await;
        let unfinished = find_logs(&space).await.unwrap().unfinished[0];
        let end = log.end().unwrap();
        for (slot, is_its_own) in [(log.slot(), true), (log.slot() + 1, false)] {
            let log = UndoLog::resurrect(slot, 70, unfinished.header, end, 3);
            match walk_back(&space, &log).await {
                Ok(found) => assert_eq!((found, is_its_own), (records(70, 0..3), true)),
                Err(error) => assert!(!is_its_own && matches!(error, Error::UndoCorrupt { .. }), "{error}"),
            }
        }
    });
}

/// A page of one's own slot that an earlier log went on to is not one's own either.
#[test]
fn a_page_of_an_earlier_log_of_the_slot_is_not_undone() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let (_, spare) = leave_spare_pages(&space, 40).await;
        let mut log = begin_log(&space, 70).await;
        append(&space, &mut log, 0..5, true).await;
        retry(|| {
            let mut mtr = space.store().mtr()?;
            let page = mtr.x(undo_id(spare[1]))?;
            mtr.write_u32(page, page::PREVIOUS, spare[5]);
            mtr.commit();
            Ok(())
        })
        .await
        .unwrap();
        assert!(matches!(walk_back(&space, &log).await, Err(Error::UndoCorrupt { .. })));
    });
}

/// Written over, page by page, after ROLLBACK TO SAVEPOINT, and then the process ends.
#[test]
fn what_a_partial_rollback_cut_off_does_not_come_back() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        for kept in [0, 1] {
            let mut log = begin_log(&space, 70 + kept).await;
            append(&space, &mut log, 0..kept, true).await;
            let mark = log.mark();
            append(&space, &mut log, kept..40, true).await;
            retry(|| log.truncate(&space, mark)).await.unwrap();
            for number in kept..30 {
                append(&space, &mut log, number..number + 1, true).await;
                let unfinished = find_logs(&space).await.unwrap().unfinished;
                let [unfinished] = unfinished[..] else { panic!("{unfinished:?}") };
                let mut survey = Survey::new(Unfinished { ..unfinished });
                while !survey.step(&space).await.unwrap() {}
                assert_eq!(survey.records, number + 1, "of the log that kept {kept}");
                assert_eq!(survey.end, log.end());
            }
            retry(|| log.truncate(&space, LogMark { records: 0, end: None })).await.unwrap();
            log.release(&space);
        }
    });
}

/// Waits for pages during this number of polls, and is dropped then.
fn poll_once<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_slot_whose_trimming_is_dropped_or_told_to_stop_is_trimmed_later() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let (slot, spare) = leave_spare_pages(&space, 40).await;
        let log = begin_log(&space, 60).await;
        let (other, _) = leave_spare_pages(&space, 40).await;
        log.release(&space);
        // So much is written that the pages of both have left the pool.
        let mut large = begin_log(&space, 61).await;
        assert_eq!(large.slot(), slot);
        space.free.give_back(0, slot, Slot { next_log: Some(Place::start_of(spare[0])), since_hint: 0 });
        let taken = space.free.take_number(2).unwrap();
        large = UndoLog::new(0, 2, taken, 61);
        append(&space, &mut large, 0..5000, true).await;
        let counted = space.pages.load(Ordering::Relaxed);

        space.trim(|| true).await.unwrap();
        assert_eq!(space.pages.load(Ordering::Relaxed), counted, "it was told to stop");
        {
            let trimming = std::pin::pin!(space.trim(|| false));
            assert!(poll_once(trimming).is_none(), "no page had to be read");
        }
        for number in [slot, other] {
            let state = space.free.take_number(number).unwrap_or_else(|| panic!("slot {number} is lost"));
            space.free.give_back(0, number, state);
        }
        space.trim(|| false).await.unwrap();
        let left = space.pages.load(Ordering::Relaxed);
        assert!(left + 2 * (spare.len() as u64 - 1) <= counted, "{left} of {counted} pages are left");
        assert_eq!(chain(&space, spare[0]).await, spare[..1]);
    });
}

/// A slot whose pages lie far behind in a file that has become large, all of it free: the others, and the log
/// that is open there.
async fn make_large(space: &Arc<UndoSpace>) -> UndoLog {
    let mut large = begin_log(space, 50).await;
    append(space, &mut large, 0..4000, true).await;
    let mut behind = begin_log(space, 51).await;
    assert_ne!(behind.slot(), large.slot());
    append(space, &mut behind, 0..4, true).await;
    assert_eq!(retry(|| large.commit(space, 52)).await.unwrap(), None);
    large.release(space);
    space.trim(|| false).await.unwrap();
    space.truncation.set_on(true);
    space.truncation.set_max_bytes(1 << 20);
    behind
}

/// A log that is open goes on in front, so that its slot can be emptied in the end.
#[test]
fn a_log_that_goes_on_while_undo_is_truncated_goes_on_in_front() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let history = History::new(Vec::new());
        let mut log = make_large(&space).await;
        space.truncate(&history, || false).await.unwrap();
        assert!(space.is_truncating());
        let file_pages = space.store().space(UNDO_SPACE).unwrap().pages;
        let behind = log.end().unwrap().page;
        append(&space, &mut log, 4..12, true).await;
        let front = log.end().unwrap().page;
        assert!(
            behind > file_pages / 4 && front < file_pages / 4,
            "from {behind} to {front} of {file_pages}"
        );
        assert_eq!(walk_back(&space, &log).await.unwrap(), records(51, 0..12));
    });
}

/// What was set aside is there again when truncation is switched off, and for transactions that would get
/// none.
#[test]
fn slots_that_are_set_aside_are_not_lost() {
    let (env, store) = store();
    env.run_until_complete(async {
        let space = Arc::new(UndoSpace::create(store, Path::new("/data/undo_001")).await.unwrap());
        let mut log = make_large(&space).await;
        let slot = log.slot();
        // Its slot has history that purge has not done with.
        append(&space, &mut log, 4..6, false).await;
        let committed = retry(|| log.commit(&space, 60)).await.unwrap().unwrap();
        let history = History::new(Vec::new());
        history.committed(60, committed);
        log.release(&space);
        space.truncate(&history, || false).await.unwrap();
        assert!(space.is_truncating() && space.free.take_number(slot).is_none(), "it is not set aside");
        let mut others = Vec::new();
        while let Some(taken) = space.free.take(0) {
            others.push(taken);
        }
        let (taken, state) = space.take(0).await.unwrap().unwrap();
        assert_eq!(taken, slot, "the directory grew although a slot was there");
        space.give_back(0, slot, state);
        assert!(space.free.take_number(slot).is_none(), "it is not set aside again");
        space.truncation.set_on(false);
        space.truncate(&history, || false).await.unwrap();
        assert!(!space.is_truncating() && space.free.take_number(slot).is_some());
        assert_eq!(others.len() + 1, 251, "slots of a directory page");
    });
}
