//! What is ahead of need gives way to those who wait for reads, and what is needed does not: on a disk that
//! takes its time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use disk::{Environment, Random, SimulatedEnvironment};
use page::PageId;
use redo::RedoLog;

use super::paced_disk::{PacedEnvironment, Speed};
use super::support::{change_at_random, create_page, options, redo_options, retry};
use crate::store::PageStore;

const SPACE: u32 = 5;
const PAGE_SIZE: usize = 4096;
/// The first half is read at random, of the other half pages are changed or scanned.
const PAGES: u32 = 24_000;
const HALF: u32 = PAGES / 2;
const SPEED: Speed = Speed { requests: 2000.0, bytes: 50e6 };
const READERS: u64 = 16;
/// Frames of a pool in which the table has no room, and of one in which it has.
const SMALL: usize = 6000;
const LARGE: usize = PAGES as usize + 1000;

struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<PacedEnvironment>,
    store: Arc<PageStore>,
}

/// A table, none of it in the pool. What a read takes when nobody else reads has been seen.
fn machine(gives_way: bool, frames: usize, log: u64) -> Machine {
    let simulated = SimulatedEnvironment::new(5);
    let env = PacedEnvironment::new(&simulated);
    let dynamic: Arc<dyn Environment> = env.clone();
    let dir = Path::new("/data");
    dynamic.storage().create_dir_all(dir).unwrap();
    let redo = redo::Options { first_size: log, ..redo_options(log) };
    let redo = RedoLog::create(&dynamic, dir, redo).unwrap();
    let settings = dblwr::Options::new("/data", PAGE_SIZE).mode(dblwr::Mode::Off);
    let writer = dblwr::ProtectedWriter::open(dynamic.clone(), settings).unwrap();
    let store = PageStore::open(dynamic.clone(), redo, options(frames, PAGE_SIZE), Arc::new(writer)).unwrap();
    store.broken.give_way.store(!gives_way, Ordering::Relaxed);
    store.create_space(SPACE, &dir.join("t.ibd"), PAGES).unwrap();
    simulated.run_until_complete(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        store.close_space(SPACE).await.unwrap();
    });
    store.spaces.add(SPACE, &dir.join("t.ibd"), None).unwrap();
    env.pace(SPEED);
    simulated.run_until_complete(async {
        // Past the middle of no area: nothing is read ahead.
        for page in (0..HALF).step_by(100) {
            let page = PageId::new(SPACE, page);
            retry(|| Ok(store.read(page)?.len())).await.unwrap();
        }
    });
    Machine { simulated, env, store }
}

impl Machine {
    /// Readers of pages at random, who wait for nearly each.
    fn read_at_random(&self) {
        for seed in 0..READERS {
            let (store, mut random) = (self.store.clone(), Random::new(seed));
            self.env.spawn_worker(
                "reader",
                Box::pin(async move {
                    loop {
                        let page = PageId::new(SPACE, random.below(HALF as usize) as u32);
                        if retry(|| Ok(store.read(page)?.len())).await.is_err() {
                            return;
                        }
                    }
                }),
            );
        }
    }

    fn pass(&self, time: Duration) {
        self.simulated.run_until_complete(self.env.sleep(time));
    }

    fn end(self) {
        drop(self.store);
        self.simulated.shutdown();
    }
}

/// Pages read ahead of three scans, and reads of the others, in ten seconds.
fn scans(gives_way: bool) -> (u64, u64) {
    let machine = machine(gives_way, SMALL, 64 << 20);
    machine.read_at_random();
    machine.pass(Duration::from_secs(1));
    for scan in 0..3 {
        let store = machine.store.clone();
        machine.env.spawn_worker(
            "scan",
            Box::pin(async move {
                for page in (HALF + scan * HALF / 3)..PAGES {
                    let page = PageId::new(SPACE, page);
                    if retry(|| Ok(store.read(page)?.len())).await.is_err() {
                        return;
                    }
                    store.scan_reached(page);
                }
            }),
        );
    }
    let before = machine.store.status();
    machine.pass(Duration::from_secs(10));
    let after = machine.store.status();
    machine.end();
    (after.read_ahead - before.read_ahead, after.reads - before.reads)
}

#[test]
fn scans_read_less_ahead_where_others_wait_long() {
    let (ahead, others) = scans(true);
    let (ahead_in_the_way, others_in_the_way) = scans(false);
    assert!(ahead > 0, "it does not stop");
    assert!(ahead < ahead_in_the_way, "{ahead} and {ahead_in_the_way} pages ahead");
    assert!(others * 10 > others_in_the_way * 11, "{others} and {others_in_the_way} reads");
}

#[test]
fn a_scan_that_is_alone_reads_ahead_as_ever() {
    let read_ahead = |gives_way| {
        let machine = machine(gives_way, SMALL, 64 << 20);
        machine.simulated.run_until_complete(async {
            for page in HALF..HALF + 3200 {
                let page = PageId::new(SPACE, page);
                retry(|| Ok(machine.store.read(page)?.len())).await.unwrap();
                machine.store.scan_reached(page);
            }
        });
        let ahead = machine.store.status().read_ahead;
        machine.end();
        ahead
    };
    assert_eq!(read_ahead(true), read_ahead(false));
}

/// Pages written, and reads of the others, in five seconds in which pages are changed at random. With a log
/// that is large for it they are written ahead, with a small one because they must be. Nothing is evicted.
fn writes(gives_way: bool, log: u64) -> (u64, u64) {
    let machine = machine(gives_way, LARGE, log);
    for seed in 0..4 {
        let pause = Duration::from_millis(20);
        change_at_random(&machine.store, 100 + seed, SPACE, HALF..2 * HALF, 1500, pause);
    }
    machine.pass(Duration::from_secs(4));
    machine.read_at_random();
    machine.pass(Duration::from_millis(500));
    let before = machine.store.status();
    machine.pass(Duration::from_secs(5));
    let after = machine.store.status();
    machine.end();
    (after.pages_flushed - before.pages_flushed, after.reads - before.reads)
}

#[test]
fn less_is_written_ahead_where_others_wait_long() {
    let ((written, reads), (in_the_way, fewer)) = (writes(true, 8 << 20), writes(false, 8 << 20));
    assert!(written > 0 && written * 3 < in_the_way * 2, "{written} and {in_the_way} pages");
    assert!(reads > fewer, "{reads} and {fewer} reads");
}

#[test]
fn what_is_needed_is_written_all_the_same() {
    let (written, in_the_way) = (writes(true, 1 << 20).0, writes(false, 1 << 20).0);
    assert!(written * 10 > in_the_way * 9, "{written} and {in_the_way} pages");
}
