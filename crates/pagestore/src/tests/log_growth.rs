//! A redo log that becomes larger by itself: on a disk that takes its time, under writers that change the
//! same pages all the time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;
use redo::RedoLog;

use super::paced_disk::{PacedEnvironment, Speed};
use super::support::{change_at_random, create_page, options, redo_options, retry};
use crate::recovery::rates::RecoveryRates;
use crate::store::PageStore;

const SPACE: u32 = 5;
const PAGE_SIZE: usize = 4096;
const PAGES: u32 = 400;
const MIB: u64 = 1 << 20;
const LOG: u64 = 8 * MIB;
const SPEED: Speed = Speed { requests: 500.0, bytes: 50e6 };

/// What the log may become, and why not more.
struct Scene {
    most: Option<u64>,
    target: Option<Duration>,
    rates: &'static str,
    /// A few hundred pages are changed again and again; the others once each.
    hot: bool,
}

/// What came of it: the capacity in the end, how often it rose, page writes for a MiB of log in the first
/// seconds and in the last, and the capacities on the way.
struct Outcome {
    capacity: u64,
    status: String,
    raises: u64,
    per_mib: [f64; 2],
    told: u64,
    seen: Vec<u64>,
}

fn run(scene: &Scene) -> Outcome {
    let simulated = SimulatedEnvironment::new(3);
    let env = PacedEnvironment::new(&simulated);
    let dynamic: Arc<dyn Environment> = env.clone();
    let dir = Path::new("/data");
    dynamic.storage().create_dir_all(dir).unwrap();
    let log = redo::Options { first_size: LOG, ..redo_options(LOG) };
    let redo = RedoLog::create(&dynamic, dir, log).unwrap();
    let pages = if scene.hot { PAGES } else { 40 * PAGES };
    let options = crate::store::Options {
        recovery_target: scene.target,
        recovery_rates: RecoveryRates::parse(scene.rates),
        ..options(pages as usize + 600, PAGE_SIZE)
    };
    let settings = dblwr::Options::new("/data", PAGE_SIZE).mode(dblwr::Mode::Off);
    let writer = dblwr::ProtectedWriter::open(dynamic.clone(), settings).unwrap();
    let store = PageStore::open(dynamic.clone(), redo, options, Arc::new(writer)).unwrap();
    store.create_space(SPACE, &dir.join("t.ibd"), pages).unwrap();
    simulated.run_until_complete(async {
        for page in 0..pages {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        store.checkpoint().await.unwrap();
    });
    env.pace(SPEED);
    let told = Arc::new(AtomicU64::new(0));
    let heard = told.clone();
    store.when_log_rose(Box::new(move |bytes| heard.store(bytes, Ordering::Relaxed)));
    store.set_log_growth(scene.most.map(|most| -> crate::MostLog { Arc::new(move || most) }));
    for seed in 0..8 {
        change_at_random(&store, seed, SPACE, 0..pages, 1500, Duration::from_millis(4));
    }
    let counts = || (store.status().pages_flushed, store.redo.current().0);
    let per_mib = |(pages, lsn): (u64, u64), (before, from): (u64, u64)| {
        (pages - before) as f64 * MIB as f64 / (lsn - from) as f64
    };
    let (mut seen, mut all) = (Vec::new(), vec![counts()]);
    for _ in 0..60 {
        simulated.run_until_complete(env.sleep(Duration::from_secs(1)));
        all.push(counts());
        let now = store.redo.resize().wanted;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    // The first lap of the log makes everything dirty once.
    let per_mib = [per_mib(all[5], all[2]), per_mib(all[60], all[45])];
    let outcome = Outcome {
        capacity: store.redo.resize().wanted,
        status: store.log_growth_status(),
        raises: store.status().log_raises,
        per_mib,
        told: told.load(Ordering::Relaxed),
        seen,
    };
    drop(store);
    simulated.shutdown();
    outcome
}

const FREE: Scene = Scene { most: Some(1 << 40), target: None, rates: "", hot: true };

#[test]
fn the_log_becomes_larger_where_pages_are_written_again_and_again() {
    let outcome = run(&Scene { most: Some(20 * MIB), ..FREE });
    // From 8 to 12 and on to 18; the rest would be no step.
    assert_eq!(outcome.seen, [LOG, 12 * MIB, 18 * MIB]);
    assert_eq!((outcome.capacity, outcome.raises, outcome.told), (18 * MIB, 2, 18 * MIB));
    let [before, after] = outcome.per_mib;
    assert!(after < 0.6 * before, "page writes for a MiB of log: {before} before, {after} after");
    for part in ["redo log from", "to 18 MiB by itself", "page writes per MiB of log"] {
        assert!(outcome.status.contains(part), "{}", outcome.status);
    }
}

#[test]
fn it_stays_where_that_saves_no_writes() {
    let outcome = run(&Scene { hot: false, ..FREE });
    assert_eq!((outcome.capacity, outcome.raises), (LOG, 0), "{:?}", outcome.per_mib);
}

#[test]
fn it_stays_where_a_restart_would_take_too_long() {
    let target = Some(Duration::from_secs(3));
    let outcome = run(&Scene { target, rates: "log 4000000", ..FREE });
    assert_eq!((outcome.capacity, outcome.raises), (LOG, 0), "{}", outcome.status);
    // The rest of it allows more.
    let outcome = run(&Scene { target: Some(Duration::from_secs(30)), rates: "log 4000000", ..FREE });
    assert!(outcome.capacity > LOG);
}

#[test]
fn it_stays_where_the_disk_has_no_room() {
    let outcome = run(&Scene { most: Some(LOG + MIB), ..FREE });
    assert_eq!((outcome.capacity, outcome.raises), (LOG, 0));
}

#[test]
fn it_stays_where_somebody_has_set_it() {
    let outcome = run(&Scene { most: None, ..FREE });
    assert_eq!((outcome.capacity, outcome.raises, outcome.told), (LOG, 0, 0));
    assert_eq!(outcome.status, "");
}
