//! Syncs that fail, or whose asker goes away: nothing that was acknowledged may be lost, and nobody may wait
//! for ever.
//!
//! A sync that fails here loses some of what was not durable, and the next one of the same file succeeds: as
//! a device or a kernel does it. On these disks pages are written without copies, so that files are left
//! unsynced for a while.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use disk::{Environment, Event, FaultKind, Misbehaviour, Random, Storage, block_on};
use page::PageId;
use redo::Lsn;

use super::crash::{
    Machine, Model, PAGE_SIZE, PAGES, SPACE, compare, create, create_with, directory, reopen,
};
use super::support::{TempDir, create_page, new_store, options, real_environment, retry, update_page};
use crate::error::{Error, Interrupt};
use crate::flush::collect::Which;

/// A model, and who changes pages by it.
struct Writer {
    model: Model,
    random: Random,
    value: u64,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        Writer { model: Model(vec![Vec::new(); PAGES as usize]), random: Random::new(seed), value: 0 }
    }

    /// Changes this number of pages, and makes that durable in the log.
    async fn change(&mut self, machine: &Machine, pages: usize) -> Result<(), Error> {
        let store = &machine.store;
        for _ in 0..pages {
            let page = self.random.below(PAGES as usize);
            self.value += 1;
            let (id, value, history) = (PageId::new(SPACE, page as u32), self.value, &mut self.model.0[page]);
            let change = || match history.is_empty() {
                true => create_page(store, id, value),
                false => update_page(store, id, value),
            };
            let end = retry(change).await?;
            history.push((end, value));
        }
        Ok(store.redo().flush_async(store.redo().current(), redo::Flush::Sync).await?)
    }

    /// What a power cut leaves has all that was acknowledged.
    fn check(mut self, machine: Machine, seed: u64) {
        let durable = machine.store.redo().flushed();
        let left = machine.env.disk().crash(seed);
        machine.env.shutdown();
        left.fail_sync(u64::MAX);
        let (reopened, end) = reopen(seed, left).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(end >= durable, "seed {seed}: the log ends at {end}, {durable} was acknowledged");
        self.model.cut(end);
        compare(&reopened, &self.model, end).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// Everything that syncs, with pages unsynced in the same files.
async fn everything(machine: &Machine, writer: &mut Writer) -> Result<(), Error> {
    let (store, env) = (&machine.store, &machine.env);
    let write_all = async || store.flush_until_clean(Which::OlderThan(store.redo().current())).await;
    for round in 1..4u32 {
        writer.change(machine, 30).await?;
        write_all().await?;
        store.extend_space_ahead(SPACE, PAGES + 300 * round);
        writer.change(machine, 10).await?;
        write_all().await?;
        retry(|| store.extend_space(SPACE, PAGES + 300 * round + 10)).await?;
        writer.change(machine, 10).await?;
        store.flush_space(SPACE).await?;
        writer.change(machine, 20).await?;
        env.sleep(Duration::from_millis(1500)).await;
        let (other, path) = (SPACE + round, directory().join(format!("{round}.ibd")));
        store.create_space(other, &path, 8)?;
        retry(|| create_page(store, PageId::new(other, 3), 1)).await?;
        store.close_space(other).await?;
        writer.change(machine, 10).await?;
        store.flush_all().await?;
        writer.change(machine, 10).await?;
        store.checkpoint().await?;
        store.rename_space(SPACE, &directory().join("other.ibd"))?;
        store.rename_space(SPACE, &super::crash::table())?;
        writer.change(machine, 10).await?;
        write_all().await?;
        store.settle_writes().await?;
        // Fills the log, so that it is prepared further and marked.
        writer.change(machine, 60).await?;
    }
    store.shutdown().await?;
    store.redo().close().await?;
    Ok(())
}

#[test]
fn whichever_sync_fails_nothing_acknowledged_is_lost() {
    let run = |failing: Option<u64>| {
        // A log that is still prepared while it is used.
        let machine = create_with(SEED, 12 << 20, options(64, PAGE_SIZE));
        let disk = machine.env.disk().clone();
        let first = disk.counters().syncs;
        if let Some(failing) = failing {
            disk.fail_sync(first + failing);
        }
        let mut writer = Writer::new(SEED);
        let outcome = machine.env.run_until_complete(everything(&machine, &mut writer));
        (machine, writer, outcome, disk.counters().syncs - first)
    };
    const SEED: u64 = 4;
    let (machine, writer, outcome, syncs) = run(None);
    outcome.unwrap();
    writer.check(machine, SEED);
    assert!(syncs > 50, "{syncs}");
    let mut got_over = 0;
    for failing in 0..syncs {
        let (machine, writer, outcome, _) = run(Some(failing));
        if outcome.is_ok() {
            got_over += 1;
        } else {
            let stopped = machine.store.poisoned().is_some() || machine.store.redo().poisoned().is_some();
            assert!(stopped || matches!(outcome, Err(Error::Io(_))), "sync {failing}: {outcome:?}");
        }
        writer.check(machine, failing);
    }
    assert_eq!(got_over, 0, "a sync failed and nobody was told");
}

#[test]
fn a_growth_whose_sync_fails_stops_all_changes() {
    for seed in 0..20 {
        for wanted in [true, false] {
            let machine = create(2 * seed);
            let (env, store) = (machine.env.clone(), machine.store.clone());
            let mut writer = Writer::new(seed);
            env.run_until_complete(writer.change(&machine, 30)).unwrap();
            env.run_until_complete(store.flush_until_clean(Which::OlderThan(Lsn(u64::MAX)))).unwrap();
            // The kernel says so once.
            env.disk().misbehave("t.ibd", Misbehaviour::FailSync(FaultKind::Eio), 1);
            let mut grow = || match wanted {
                true => store.extend_space(SPACE, PAGES + 600),
                false => {
                    store.extend_space_ahead(SPACE, PAGES + 600);
                    store.refuse_when_poisoned().map_err(Interrupt::from)
                }
            };
            if wanted {
                assert!(env.run_until_complete(retry(&mut grow)).is_err());
            } else {
                drop(grow());
                env.run_until_idle();
            }
            env.disk().behave();
            assert!(store.poisoned().is_some(), "seed {seed}, wanted {wanted}");
            assert!(env.run_until_complete(store.checkpoint()).is_err());
            drop(store);
            writer.check(machine, seed);
        }
    }
}

/// A lack of space fails the statement and nothing else.
#[test]
fn a_growth_without_room_stops_nothing() {
    let machine = create(2);
    let (env, store) = (&machine.env, &machine.store);
    let mut writer = Writer::new(2);
    env.run_until_complete(writer.change(&machine, 30)).unwrap();
    env.disk().misbehave("t.ibd", Misbehaviour::FailWrite(FaultKind::Enospc), 1);
    let refused = env.run_until_complete(retry(|| store.extend_space(SPACE, PAGES + 600))).unwrap_err();
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    env.disk().behave();
    assert!(store.poisoned().is_none());
    env.run_until_complete(retry(|| store.extend_space(SPACE, PAGES + 600))).unwrap();
    env.run_until_complete(writer.change(&machine, 30)).unwrap();
    env.run_until_complete(store.checkpoint()).unwrap();
    writer.check(machine, 2);
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn who_gives_up_a_flush_keeps_nobody_from_the_checkpoint() {
    let mut given_up = 0;
    for polls in 0..80 {
        let machine = create(2 * polls);
        let (env, store) = (&machine.env, &machine.store);
        let mut writer = Writer::new(polls);
        env.run_until_complete(writer.change(&machine, 40)).unwrap();
        let mut flush = Box::pin(store.flush_all());
        let over = (0..polls).any(|_| poll_once(flush.as_mut()) || !env.step());
        drop(flush);
        given_up += usize::from(!over);
        env.run_until_complete(store.checkpoint()).unwrap();
        assert!(store.flush_list.lock().oldest().is_none());
        writer.check(machine, polls);
    }
    assert!(given_up > 20, "{given_up}");
}

#[test]
fn what_is_flushed_is_durable_also_when_a_checkpoint_is_under_way() {
    for seed in 0..60 {
        let machine = create(2 * seed);
        let (env, store) = (&machine.env, machine.store.clone());
        let mut writer = Writer::new(seed);
        env.run_until_complete(writer.change(&machine, 40)).unwrap();
        let other = store.clone();
        env.spawn("test", Box::pin(async move { drop(other.checkpoint().await) }));
        for _ in 0..writer.random.below(200) {
            env.step();
        }
        let now = store.redo().current();
        env.run_until_complete(store.flush_all()).unwrap();
        let oldest = store.flush_list.lock().oldest();
        assert!(oldest.is_none_or(|oldest| oldest >= now), "seed {seed}: {oldest:?} is not durable");
    }
}

/// No page is written any more then, so no frame and no log would become free: those who wait for them must
/// be told.
#[test]
fn a_page_cleaner_that_dies_lets_nobody_wait_for_ever() {
    let (env, dir) = (real_environment(), TempDir::new("cleaner"));
    let store = new_store(&env, &dir.0, options(32, 4096), 1 << 20);
    store.create_space(SPACE, &dir.0.join("t.ibd"), 200).unwrap();
    store.broken.cleaner.store(true, Ordering::Relaxed);
    block_on(async {
        let mut changes = (0..).map(|step| PageId::new(SPACE, step % 200));
        let error = loop {
            let Some(id) = changes.next() else { unreachable!() };
            if let Err(error) = retry(|| create_page(&store, id, 1)).await {
                break error;
            }
        };
        assert!(matches!(&error, Error::Poisoned(why) if why.contains("page cleaner")), "{error}");
    });
}

#[test]
fn who_waits_for_room_in_the_log_is_told_that_the_store_is_poisoned() {
    let quiet = crate::store::Options { background: false, ..options(256, PAGE_SIZE) };
    let machine = create_with(2, 1 << 20, quiet);
    let (env, store) = (&machine.env, &machine.store);
    let over = Event::new();
    let mut fill = Box::pin(async {
        for step in 0.. {
            let id = PageId::new(SPACE, step % PAGES);
            if let Err(error) = retry(|| create_page(store, id, 1)).await {
                over.set();
                return error;
            }
        }
        unreachable!()
    });
    while !poll_once(fill.as_mut()) && store.redo().status().room_waits == 0 {
        env.step();
    }
    env.run_until_idle();
    assert!(!over.is_set(), "it waits");
    store.poison("a test");
    let error = env.run_until_complete(fill);
    assert!(matches!(error, Error::Poisoned(_)), "{error}");
}

/// The pages of a tablespace are found by its page table or by all frames, whichever is less.
#[test]
fn the_pages_of_a_tablespace_are_found_either_way() {
    let machine = create_with(2, 1 << 20, options(64, PAGE_SIZE));
    let (env, store) = (&machine.env, &machine.store);
    let huge = SPACE + 1;
    store.create_space(huge, Path::new("/data/huge.ibd"), 70 * 16).unwrap();
    let mut expected = Vec::new();
    for (space, pages) in [(SPACE, [0, 7, 159]), (huge, [0, 500, 70 * 16 - 1])] {
        for page in pages {
            let id = PageId::new(space, page);
            env.run_until_complete(retry(|| create_page(store, id, 1))).unwrap();
            expected.push(id);
        }
    }
    let found = |space| {
        let mut found: Vec<_> = store.frames_of(space).iter().map(|frame| frame.page_id()).collect();
        found.sort_unstable();
        found
    };
    assert_eq!([found(SPACE), found(huge)].concat(), expected);
    for space in [huge, SPACE] {
        env.run_until_complete(store.drop_space(space)).unwrap();
        assert!(found(space).is_empty());
    }
    assert_eq!(store.status().pages_data, 0);
}
