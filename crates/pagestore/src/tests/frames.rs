//! Waiting for frames: a wait ends when there is a frame and not before, and everybody gets one in the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, Event, File, Random, SimulatedEnvironment, Wait, block_on};
use page::{PageId, PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch};
use redo::RedoLog;

use super::support::{
    PlainWriter, TempDir, create_page, new_store, options, real_environment, redo_options, retry, update_page,
};
use crate::error::Interrupt;
use crate::store::PageStore;

const SPACE: u32 = 5;

/// A writer that starts nothing before the gate is open: until then whatever is being written stays in
/// flight.
struct GatedWriter {
    gate: Event,
    writer: PlainWriter,
}

impl PageWriter for GatedWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let opened = self.gate.wait();
        let written = self.writer.write(batch);
        Box::pin(async move {
            opened.await;
            written.await
        })
    }

    fn sync_written(&self) -> PageSyncFuture {
        self.writer.sync_written()
    }

    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture {
        self.writer.sync_file(file)
    }

    fn forget(&self, file: &Arc<dyn File>) {
        self.writer.forget(file);
    }
}

/// A store on the simulated machine whose page writes wait for the gate.
fn gated_store(env: &Arc<SimulatedEnvironment>, frames: usize, gate: &Event) -> Arc<PageStore> {
    let dynamic: Arc<dyn Environment> = env.clone();
    let directory = PathBuf::from("/data");
    dynamic.storage().create_dir_all(&directory).unwrap();
    let redo = RedoLog::create(&dynamic, &directory, redo_options(8 << 20)).unwrap();
    let writer = Arc::new(GatedWriter { gate: gate.clone(), writer: PlainWriter(dynamic.clone()) });
    let store = PageStore::open(dynamic, redo, options(frames, 4096), writer).unwrap();
    store.create_space(SPACE, &directory.join("t.ibd"), 400).unwrap();
    store
}

fn create(store: &PageStore, page: u32) -> Result<redo::Lsn, Interrupt> {
    create_page(store, PageId::new(SPACE, page), u64::from(page))
}

#[test]
fn a_wait_for_a_frame_ends_when_there_is_one_and_not_before() {
    const WAITERS: usize = 40;
    for seed in 0..10 {
        let (env, gate) = (SimulatedEnvironment::new(seed), Event::new());
        let store = gated_store(&env, 64, &gate);
        let mut pages = 0..400;
        let mut page = pages.next().unwrap();
        let mut waits: Vec<Wait> = Vec::new();
        let mut early = 0;
        while waits.len() < WAITERS {
            match create(&store, page) {
                Ok(_) => page = pages.next().unwrap(),
                Err(Interrupt::Error(error)) => panic!("{error}"),
                Err(Interrupt::Wait(wait)) => {
                    // Many looks of the cleaner, and nothing becomes free: every page is dirty.
                    env.advance(Duration::from_millis(200));
                    early += usize::from(wait.is_done());
                    assert!(
                        early < 10,
                        "seed {seed}: waits end, but there is no frame: {:?}",
                        store.status()
                    );
                    assert!(wait.lets_go());
                    waits.push(wait);
                }
            }
        }
        let before = store.status();
        assert!(before.pages_in_flight > 0 && before.pages_in_flight <= 32, "seed {seed}: {before:?}");
        assert_eq!(before.wait_free, WAITERS as u64, "seed {seed}");
        gate.set();
        let opened = env.now();
        for mut wait in waits {
            env.run_until_complete(wait.done());
            env.run_until_complete(retry(|| create(&store, page))).unwrap();
            page = pages.next().unwrap();
        }
        let (after, took) = (store.status(), env.now() - opened);
        assert!(after.wait_free - before.wait_free <= WAITERS as u64, "seed {seed}: {after:?}");
        assert!(took < Duration::from_secs(1), "seed {seed}: {took:?}");
        env.shutdown();
    }
}

/// A waiter that was woken and goes away instead of taking the frame passes the wake-up on.
#[test]
fn a_cancelled_wait_leaves_the_frame_to_others() {
    for seed in 0..10 {
        let (env, gate) = (SimulatedEnvironment::new(seed), Event::new());
        let store = gated_store(&env, 64, &gate);
        let mut waits: Vec<Wait> = Vec::new();
        let mut page = 0;
        while waits.len() < 100 {
            match create(&store, page) {
                Ok(_) => page += 1,
                Err(Interrupt::Error(error)) => panic!("{error}"),
                Err(Interrupt::Wait(wait)) => waits.push(wait),
            }
        }
        let mut last = waits.pop().unwrap();
        drop(waits);
        gate.set();
        env.run_until_complete(last.done());
        env.run_until_complete(retry(|| create(&store, page))).unwrap();
        env.shutdown();
    }
}

/// The oldest pages are latched by a writer, and somebody (in life that writer) waits for a frame: the
/// cleaner must leave them alone and write others, and its fruitless attempts must not keep its thread from
/// those who have work.
#[test]
fn latched_pages_keep_no_others_from_being_written() {
    for seed in 0..10 {
        let (env, gate) = (SimulatedEnvironment::new(seed), Event::new());
        let store = gated_store(&env, 64, &gate);
        for page in 0..44 {
            create(&store, page).unwrap();
        }
        let mut latched = store.mtr().unwrap();
        for page in 0..40 {
            latched.x(PageId::new(SPACE, page)).unwrap();
        }
        let mut page = 44;
        let mut wait = loop {
            match create(&store, page) {
                Ok(_) => page += 1,
                Err(Interrupt::Error(error)) => panic!("{error}"),
                Err(Interrupt::Wait(wait)) => break wait,
            }
        };
        // Comes back only if the cleaner does.
        env.advance(Duration::from_millis(200));
        assert!(!wait.is_done(), "seed {seed}: {:?}", store.status());
        gate.set();
        env.run_until_complete(wait.done());
        drop(latched);
        env.run_until_complete(retry(|| create(&store, page))).unwrap();
        env.shutdown();
    }
}

/// More operations at a time than the pool has frames for: they hold pins on what they have read while they
/// wait for the rest, and must let go of it when frames run out.
#[test]
fn many_operations_at_a_time_in_a_small_pool() {
    const THREADS: u64 = 48;
    const OPERATIONS: u64 = 40;
    const PAGES: u32 = 600;
    let (env, dir) = (real_environment(), TempDir::new("crowd"));
    let store = new_store(&env, &dir.0, options(80, 4096), 8 << 20);
    store.create_space(SPACE, &dir.0.join("t.ibd"), PAGES).unwrap();
    block_on(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 0)).await.unwrap();
        }
    });
    let before = store.status();
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..OPERATIONS {
                    let mut ids: Vec<u32> =
                        (0..4).map(|_| (random.next_u64() % u64::from(PAGES)) as u32).collect();
                    ids.sort_unstable();
                    ids.dedup();
                    let increment = || {
                        let mut mtr = store.mtr()?;
                        let pages = ids
                            .iter()
                            .map(|page| mtr.x(PageId::new(SPACE, *page)))
                            .collect::<Result<Vec<_>, _>>()?;
                        for page in pages {
                            let value = page::u64_at(mtr.page(page), 100);
                            mtr.write_u64(page, 100, value + 1);
                        }
                        mtr.commit();
                        Ok(())
                    };
                    block_on(retry(increment)).unwrap();
                }
            });
        }
    });
    let status = store.status();
    println!("{status:?}");
    let (waits, evicted) = (status.wait_free - before.wait_free, status.pages_evicted - before.pages_evicted);
    // A frame that became free ends one wait. A herd would be 48 times as many.
    assert!(waits <= 2 * evicted, "{waits} waits for {evicted} frames: {status:?}");
    block_on(async {
        retry(|| update_page(&store, PageId::new(SPACE, 0), 1)).await.unwrap();
        store.shutdown().await.unwrap();
    });
    assert_eq!(store.status().pages_in_flight, 0);
}
