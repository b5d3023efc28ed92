//! Crashes on the simulated machine: redo log, doublewrite, cleaner and recovery together against a model.
//!
//! A history is a number of rounds. Each opens the database (recovering when it crashed), compares every
//! page with the model, at once or later or not at all, changes pages while background work runs at the
//! whim of the seed, and loses power. What must hold: with `E` the end of the recovered log, every page has
//! exactly the value of its last change that ended at or before `E`; and `E` is not before anything that
//! was reported durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::probe::Atomic;
use disk::{Environment, Random, SimulatedEnvironment, SimulatedStorage};
use page::{BufferPoolExtension, PageId};
use redo::{Flush, Lsn, RedoLog};

use super::support::{create_page, options, redo_options, retry, update_page};
use crate::error::Error;
use crate::store::{Broken, PageStore};

pub(super) const SPACE: u32 = 9;
pub(super) const PAGES: u32 = 160;
pub(super) const PAGE_SIZE: usize = 4096;
pub(super) const ROUNDS: usize = 3;
const LOG: u64 = 1 << 20;

/// What a page had after which LSN, oldest first.
pub(super) struct Model(pub(super) Vec<Vec<(Lsn, u64)>>);

impl Model {
    fn value_at(&self, page: u32, end: Lsn) -> Option<u64> {
        let history = &self.0[page as usize];
        history.iter().rev().find(|(lsn, _)| *lsn <= end).map(|(_, value)| *value)
    }

    /// Forgets what was lost with the end of the log.
    pub(super) fn cut(&mut self, end: Lsn) {
        for history in &mut self.0 {
            history.retain(|(lsn, _)| *lsn <= end);
        }
    }
}

pub(super) struct Machine {
    pub(super) env: Arc<SimulatedEnvironment>,
    pub(super) store: Arc<PageStore>,
}

pub(super) fn directory() -> PathBuf {
    PathBuf::from("/data")
}

pub(super) fn table() -> PathBuf {
    directory().join("t.ibd")
}

pub(super) fn writer(env: &Arc<dyn Environment>) -> Arc<dyn page::PageWriter> {
    let options = dblwr::Options::new(directory(), PAGE_SIZE).mode(dblwr::Mode::Auto);
    Arc::new(dblwr::ProtectedWriter::open(env.clone(), options).unwrap())
}

/// With every other seed the storage writes pages atomically: then they are written without copies, and
/// synced by checkpoints.
fn offer_by(seed: u64, env: &SimulatedEnvironment) {
    env.disk().offer(if seed.is_multiple_of(2) { Atomic::Hardware } else { Atomic::None });
}

pub(super) fn create(seed: u64) -> Machine {
    create_with(seed, LOG, options(64, PAGE_SIZE))
}

/// The same with a log of another size, and other options.
pub(super) fn create_with(seed: u64, log: u64, options: crate::store::Options) -> Machine {
    let env = SimulatedEnvironment::new(seed);
    let dynamic: Arc<dyn Environment> = env.clone();
    offer_by(seed, &env);
    let storage = dynamic.storage();
    storage.create_dir_all(&directory()).unwrap();
    let redo = RedoLog::create(&dynamic, &directory(), redo_options(log)).unwrap();
    let store = PageStore::open(dynamic.clone(), redo, options, writer(&dynamic)).unwrap();
    store.create_space(SPACE, &table(), PAGES).unwrap();
    storage.sync_dir(&directory()).unwrap();
    storage.sync_dir(Path::new("/")).unwrap();
    Machine { env, store }
}

/// Opens what a crash left; returns the end of the log too.
pub(super) fn reopen(seed: u64, disk: Arc<SimulatedStorage>) -> Result<(Machine, Lsn), Error> {
    reopen_with(seed, disk, |_| None)
}

/// The same with a buffer pool extension on the given disk.
pub(super) fn reopen_with(
    seed: u64,
    disk: Arc<SimulatedStorage>,
    tier: impl FnOnce(&Arc<dyn Environment>) -> Option<Arc<dyn BufferPoolExtension>>,
) -> Result<(Machine, Lsn), Error> {
    let env = SimulatedEnvironment::with_storage(seed, disk);
    offer_by(seed, &env);
    let dynamic: Arc<dyn Environment> = env.clone();
    let storage = dynamic.storage();
    let data = storage.open(&table(), disk::OpenHow::EXISTING)?;
    dblwr::recover(&*dynamic, &directory(), PAGE_SIZE, &mut |id| {
        Ok((id.space == SPACE).then(|| (data.clone(), u64::from(id.page) * PAGE_SIZE as u64)))
    })?;
    let redo = RedoLog::open(&dynamic, &directory(), redo_options(LOG))?;
    let store = PageStore::open(dynamic.clone(), redo, options(64, PAGE_SIZE), writer(&dynamic))?;
    store.set_extension(tier(&dynamic));
    let summary = store.recover(&[(SPACE, table()), (77, directory().join("gone.ibd"))])?;
    Ok((Machine { env, store }, summary.end))
}

pub(super) fn compare(machine: &Machine, model: &Model, end: Lsn) -> Result<(), String> {
    for page in 0..PAGES {
        let id = PageId::new(SPACE, page);
        let read = machine.env.run_until_complete(retry(|| Ok(machine.store.read(id)?.to_vec())));
        let bytes = read.map_err(|error| error.to_string())?;
        let expected = model.value_at(page, end);
        let found = (!page::is_all_zero(&bytes)).then(|| page::u64_at(&bytes, 100));
        if found != expected {
            return Err(format!("page {id} has {found:?}, expected {expected:?} at LSN {end}"));
        }
        if found.is_some_and(|value| page::u64_at(&bytes, PAGE_SIZE / 2) != value.wrapping_mul(3)) {
            return Err(format!("page {id} is half of one change and half of another"));
        }
        if page::lsn(&bytes) > end.0 {
            return Err(format!("page {id} has LSN {} beyond the log's end {end}", page::lsn(&bytes)));
        }
    }
    Ok(())
}

/// Changes pages, with background work in between; ends anywhere.
pub(super) fn work(
    machine: &Machine,
    model: &mut Model,
    random: &mut Random,
    next_value: &mut u64,
) -> Result<(), String> {
    let (env, store) = (&machine.env, &machine.store);
    for _ in 0..random.below(1500) {
        let page = random.below(PAGES as usize) as u32;
        let id = PageId::new(SPACE, page);
        *next_value += 1;
        let value = *next_value;
        let fresh = model.0[page as usize].is_empty() || random.below(40) == 0;
        let changed = env.run_until_complete(retry(|| {
            if fresh { create_page(store, id, value) } else { update_page(store, id, value) }
        }));
        model.0[page as usize].push((changed.map_err(|error| error.to_string())?, value));
        match random.below(60) {
            0 => drop(
                env.run_until_complete(store.redo().flush_async(store.redo().current(), redo::Flush::Sync)),
            ),
            1 => drop(store.redo().flush(store.redo().current(), Flush::Write)),
            2 => env.advance(std::time::Duration::from_millis(random.below(60) as u64)),
            3 => env.advance(std::time::Duration::from_millis(1000 + random.below(1000) as u64)),
            4 if random.below(20) == 0 => drop(env.run_until_complete(store.checkpoint())),
            _ => {
                for _ in 0..random.below(4) {
                    env.step();
                }
            }
        }
    }
    Ok(())
}

/// One history. `Err` says what recovery lost or mixed up; else how often work began before all changes of
/// the log were applied.
fn history(seed: u64, breaks: Option<fn(&Broken) -> &AtomicBool>) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let mut model = Model(vec![Vec::new(); PAGES as usize]);
    let mut machine = create(random.next_u64());
    let (mut next_value, mut left_over) = (0, 0);
    for _ in 0..ROUNDS {
        if let Some(promise) = breaks {
            promise(&machine.store.broken).store(true, Ordering::Relaxed);
        }
        work(&machine, &mut model, &mut random, &mut next_value)?;
        let durable = machine.store.redo().flushed();
        let mut left = machine.env.disk().crash(random.next_u64());
        machine.env.shutdown();
        // Sometimes the power fails again while the database recovers.
        if random.below(3) == 0 {
            let (halfway, _) = reopen(random.next_u64(), left).map_err(|error| error.to_string())?;
            for _ in 0..random.below(300) {
                halfway.env.step();
            }
            left = halfway.env.disk().crash(random.next_u64());
            halfway.env.shutdown();
        }
        let (reopened, end) = reopen(random.next_u64(), left).map_err(|error| error.to_string())?;
        if end < durable {
            return Err(format!("the log ends at {end}, but {durable} was durable"));
        }
        model.cut(end);
        machine = reopened;
        machine.store.broken.background.store(random.below(2) == 0, Ordering::Relaxed);
        // Or pages are changed, or the power fails again, while changes of the log are left.
        if random.below(3) == 0 {
            compare(&machine, &model, end)?;
        } else if random.below(2) == 0 {
            left_over += u64::from(machine.store.unapplied.get().is_some());
            work(&machine, &mut model, &mut random, &mut next_value)?;
            compare(&machine, &model, machine.store.redo().current())?;
        } else {
            left_over += u64::from(machine.store.unapplied.get().is_some());
        }
    }
    compare(&machine, &model, machine.store.redo().current())?;
    Ok(left_over)
}

#[test]
fn no_crash_loses_or_mixes_changes() {
    let mut left_over = 0;
    for seed in 0..60 {
        match history(seed, None) {
            Ok(times) => left_over += times,
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(left_over > 40, "changes were left for later {left_over} times only");
}

/// Negative control: pages written before their log must be noticed.
#[test]
fn a_broken_wal_rule_is_noticed() {
    let noticed = (0..20).filter(|seed| history(*seed, Some(|broken| &broken.wal)).is_err()).count();
    assert!(noticed > 0, "20 histories without the WAL rule, and nothing was noticed");
}

/// Negative control: a checkpoint that passes what recovery has not applied must be noticed.
#[test]
fn a_checkpoint_that_passes_what_is_left_is_noticed() {
    let noticed = (0..40).any(|seed| history(seed, Some(|broken| &broken.unapplied)).is_err());
    assert!(noticed, "40 histories whose checkpoints forget what is left, and nothing was noticed");
}

/// Negative control: a checkpoint that leaves behind pages which are not synced must be noticed.
#[test]
fn a_checkpoint_without_its_sync_is_noticed() {
    let noticed = (0..20).any(|seed| history(seed, Some(|broken| &broken.checkpoint_sync)).is_err());
    assert!(noticed, "20 histories without syncs before the checkpoint, and nothing was noticed");
}
