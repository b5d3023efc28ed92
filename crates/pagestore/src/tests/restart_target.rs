//! The promise of `untorn_recovery_target`: killed at the worst moment on a slow disk, a restart takes no
//! longer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
const PAGES: u32 = 6000;
const LOG: u64 = 24 << 20;
/// What a change logs.
const CHANGE: usize = 1500;
const SPEED: Speed = Speed { requests: 400.0, bytes: 12e6 };
/// More than the table has.
const FRAMES: usize = PAGES as usize + 200;
/// What pools have at the start, and targets. A pool that is smaller is made larger for the load, and small
/// again at the restart: the log names more pages than it has.
const SCENES: [(usize, Duration); 2] = [(FRAMES, Duration::from_secs(8)), (1000, Duration::from_secs(8))];
/// What a restart may take longer: from one look of the cleaner to the next, and by what rates that were
/// measured on another load are off.
const TOLERANCE: f64 = 1.1;

/// A machine with its disk, which a kill leaves as it is.
struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<PacedEnvironment>,
    dynamic: Arc<dyn Environment>,
}

impl Machine {
    fn on(simulated: Arc<SimulatedEnvironment>) -> Machine {
        let env = PacedEnvironment::new(&simulated);
        Machine { simulated, dynamic: env.clone(), env }
    }

    fn open(
        &self,
        frames: usize,
        redo: Arc<RedoLog>,
        target: Option<Duration>,
        rates: &str,
    ) -> Arc<PageStore> {
        let options = crate::store::Options {
            recovery_target: target,
            recovery_rates: RecoveryRates::parse(rates),
            ..options(frames, PAGE_SIZE)
        };
        let settings = dblwr::Options::new("/data", PAGE_SIZE).mode(dblwr::Mode::Off);
        let writer = dblwr::ProtectedWriter::open(self.dynamic.clone(), settings).unwrap();
        PageStore::open(self.dynamic.clone(), redo, options, Arc::new(writer)).unwrap()
    }

    /// A table, on a disk that is slow from then on.
    fn create(seed: u64, frames: usize) -> (Machine, Arc<PageStore>) {
        let machine = Machine::on(SimulatedEnvironment::new(seed));
        let dir = Path::new("/data");
        machine.dynamic.storage().create_dir_all(dir).unwrap();
        let redo = RedoLog::create(&machine.dynamic, dir, log_options()).unwrap();
        let store = machine.open(frames, redo, None, "");
        store.create_space(SPACE, &dir.join("t.ibd"), PAGES).unwrap();
        machine.simulated.run_until_complete(async {
            for page in 0..PAGES {
                retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
            }
            store.checkpoint().await.unwrap();
        });
        machine.env.pace(SPEED);
        (machine, store)
    }

    /// Eight writers change pages at random for this time, or until a restart would take `worst`.
    fn load(&self, store: &Arc<PageStore>, most: Duration, worst: Duration) {
        self.simulated.run_until_complete(store.resize(FRAMES * PAGE_SIZE).unwrap().wait());
        let until = self.env.now() + most;
        for seed in 0..8 {
            change_at_random(store, seed, SPACE, 0..PAGES, CHANGE, Duration::from_millis(4));
        }
        self.simulated.run_until_complete(async {
            while self.env.now() < until && store.recovery_estimate() < worst {
                self.env.sleep(Duration::from_millis(20)).await;
            }
        });
    }

    /// Kills the process, and starts it again with other frames. Returns how long it took until the last page
    /// was recovered.
    fn restart(
        self,
        frames: usize,
        target: Option<Duration>,
        rates: &str,
    ) -> (Machine, Arc<PageStore>, Duration) {
        self.simulated.shutdown();
        let disk = self.simulated.disk().crash(1);
        let machine = Machine::on(SimulatedEnvironment::with_storage(7, disk));
        machine.env.pace(SPEED);
        let began = machine.env.now();
        let redo = RedoLog::open(&machine.dynamic, Path::new("/data"), log_options()).unwrap();
        let store = machine.open(frames, redo, target, rates);
        store.recover(&[(SPACE, Path::new("/data/t.ibd").to_owned())]).unwrap();
        machine.simulated.run_until_complete(store.apply_the_rest()).unwrap();
        let took = machine.env.now() - began;
        (machine, store, took)
    }
}

fn log_options() -> redo::Options {
    redo::Options { first_size: LOG, ..redo_options(LOG) }
}

/// How long the restart takes, and what was estimated.
fn restart_after_the_worst_moment(
    frames: usize,
    target: Duration,
    target_counts: bool,
) -> (Duration, Duration) {
    // What the disk does is learnt by a recovery.
    let (machine, store) = Machine::create(3, frames);
    machine.load(&store, Duration::from_secs(30), Duration::MAX);
    drop(store);
    let (machine, store, _) = machine.restart(frames, None, "");
    let rates = store.take_recovery_rates().unwrap().to_string();
    drop(store);
    let (machine, store, _) = machine.restart(frames, Some(target), &rates);
    machine.simulated.run_until_complete(async { store.checkpoint().await.unwrap() });
    store.broken.target.store(!target_counts, Ordering::Relaxed);
    let worst = if target_counts { target.mul_f64(0.97) } else { Duration::MAX };
    machine.load(&store, Duration::from_secs(90), worst);
    let estimate = store.recovery_estimate();
    drop(store);
    let (machine, store, took) = machine.restart(frames, Some(target), &rates);
    drop(store);
    machine.simulated.shutdown();
    (took, estimate)
}

#[test]
fn a_restart_keeps_its_target_where_pages_are_written_too_slowly() {
    for (frames, target) in SCENES {
        let (took, estimate) = restart_after_the_worst_moment(frames, target, true);
        assert!(took <= target.mul_f64(TOLERANCE), "{frames} frames: {took:?}, estimated {estimate:?}");
        assert!(took >= target.mul_f64(0.7), "{frames} frames: {took:?} is no worst moment");
    }
}

/// A restart searches the circle that there is, however large the log may become.
#[test]
fn a_capacity_that_is_not_used_takes_a_restart_no_time() {
    let (machine, store) = Machine::create(3, 200);
    let before = store.recovery_estimate();
    store.redo.set_capacity(512 << 30).unwrap();
    store.set_recovery_target(Some(Duration::from_secs(60)));
    machine.simulated.advance(Duration::from_secs(1));
    let now = store.recovery_estimate();
    assert!(now <= before + Duration::from_secs(1), "{now:?}, and {before:?} before");
    let allowed = store.restart_time.allowed(&store.found_by_restart(&store.flush_list.lock()));
    assert!(allowed.dirty > 1000.0, "{allowed:?}");
    drop(store);
    machine.simulated.shutdown();
}

/// Negative control.
#[test]
fn without_the_target_it_takes_longer() {
    for (frames, target) in SCENES {
        let (took, estimate) = restart_after_the_worst_moment(frames, target, false);
        assert!(took > target.mul_f64(1.3), "{frames} frames: {took:?}, estimated {estimate:?}");
    }
}
