//! Who is written and evicted where writing is what everybody waits for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, Event, File, SimulatedEnvironment, Wait};
use page::{ContiguousRuns, FlushPurpose, PageId, PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch};
use parking_lot::Mutex;
use redo::RedoLog;

use super::reference_tier::ReferenceTier;
use super::support::{PlainWriter, create_page, options, redo_options, retry, update_page};
use crate::error::Interrupt;
use crate::store::PageStore;

const SPACE: u32 = 5;

/// Writes nothing before the gate of the time is open, and notes which pages were to be written to be
/// evicted.
struct Writer {
    gate: Mutex<Event>,
    victims: Mutex<Vec<Vec<u32>>>,
    writer: PlainWriter,
    /// What it says of pages side by side.
    stretches: ContiguousRuns,
}

impl PageWriter for Writer {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        if batch.purpose == FlushPurpose::Lru {
            self.victims.lock().push(batch.pages().iter().map(|page| page.id.page).collect());
        }
        let gate = self.gate.lock().clone();
        let written = self.writer.write(batch);
        Box::pin(async move {
            gate.wait().await;
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

    fn contiguous_runs(&self, _file: &Arc<dyn File>) -> ContiguousRuns {
        self.stretches
    }
}

fn store_of(env: &Arc<SimulatedEnvironment>, frames: usize, pages: u32) -> (Arc<PageStore>, Arc<Writer>) {
    store_that_writes(env, frames, pages, ContiguousRuns::Merged)
}

fn store_that_writes(
    env: &Arc<SimulatedEnvironment>,
    frames: usize,
    pages: u32,
    stretches: ContiguousRuns,
) -> (Arc<PageStore>, Arc<Writer>) {
    let dynamic: Arc<dyn Environment> = env.clone();
    let directory = PathBuf::from("/data");
    dynamic.storage().create_dir_all(&directory).unwrap();
    let redo = RedoLog::create(&dynamic, &directory, redo_options(64 << 20)).unwrap();
    let writer = PlainWriter(dynamic.clone());
    let writer = Arc::new(Writer { gate: Mutex::default(), victims: Mutex::default(), writer, stretches });
    let store = PageStore::open(dynamic, redo, options(frames, 4096), writer.clone()).unwrap();
    store.create_space(SPACE, &directory.join("t.ibd"), pages).unwrap();
    (store, writer)
}

/// Puts an empty buffer pool extension beside the pool.
fn extend(env: &Arc<SimulatedEnvironment>, store: &PageStore) {
    let tier = ReferenceTier::new(&**env, &PathBuf::from("/data/tier"), 4096);
    store.set_extension(Some(Arc::new(tier)));
}

fn id(page: u32) -> PageId {
    PageId::new(SPACE, page)
}

/// A pool of 2048 frames, after 4000 of 6000 pages were created and written. The writer's gate is open.
fn full_of_clean_pages(seed: u64) -> (Arc<SimulatedEnvironment>, Arc<PageStore>, Arc<Writer>) {
    let env = SimulatedEnvironment::new(seed);
    env.limit_steps(2_000_000);
    let (store, writer) = store_of(&env, 2048, 6000);
    writer.gate.lock().set();
    for page in 0..4000 {
        env.run_until_complete(retry(|| create_page(&store, id(page), 1))).unwrap();
    }
    env.run_until_complete(store.checkpoint()).unwrap();
    (env, store, writer)
}

/// Creates pages from this one on until there is no frame left. Returns the page that got none, and its wait.
fn create_until_one_waits(store: &PageStore, from: u32) -> (u32, Wait) {
    for page in from.. {
        match create_page(store, id(page), 1) {
            Ok(_) => {}
            Err(Interrupt::Wait(wait)) => return (page, wait),
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
    }
    unreachable!("a pool is full sooner or later")
}

#[test]
fn pages_just_read_are_not_given_away_while_others_are_being_written() {
    const YOUNG: std::ops::Range<u32> = 3900..3940;
    for seed in 0..3 {
        let (env, store, writer) = full_of_clean_pages(seed);
        *writer.gate.lock() = Event::new();
        // The older pages of those in memory become dirty, where they are in the list.
        for page in (0..3600).filter(|page| store.look_up(id(*page)).is_some()).collect::<Vec<_>>() {
            env.run_until_complete(retry(|| update_page(&store, id(page), 2))).unwrap();
        }
        // Until there is no frame left: somebody waits, everything old is dirty, and nothing is written yet.
        let (next, waits) = create_until_one_waits(&store, 4000);
        env.advance(Duration::from_millis(500));
        assert!(store.status().pages_in_flight > 0, "seed {seed}: {:?}", store.status());
        for page in YOUNG {
            assert!(store.look_up(id(page)).is_some(), "seed {seed}: page {page} was given away");
        }
        writer.gate.lock().set();
        drop(waits);
        env.run_until_complete(retry(|| create_page(&store, id(next), 1))).unwrap();
        env.shutdown();
    }
}

/// Pages are made in this order: all multiples of 4, then those one above them, and so on. So next to each of
/// the oldest lies one on the upper side that is old too, and one on the lower side that is young.
#[test]
fn old_neighbours_are_written_along_and_stay() {
    const FRAMES: usize = 1200;
    let mut evicted = 0;
    for seed in 0..3 {
        let env = SimulatedEnvironment::new(seed);
        env.limit_steps(2_000_000);
        let (store, writer) = store_of(&env, FRAMES, 6000);
        for page in (0..4).flat_map(|first| (first..1000).step_by(4)) {
            env.run_until_complete(retry(|| create_page(&store, id(page), 1))).unwrap();
        }
        let (next, wait) = create_until_one_waits(&store, 1000);
        env.advance(Duration::from_millis(200));
        let batches = writer.victims.lock().clone();
        let first = batches.first().expect("somebody waits for a frame, so something is written");
        let oldest: Vec<u32> = first.iter().copied().filter(|page| page % 4 == 0).collect();
        assert!(oldest.len() >= 8, "seed {seed}: {first:?}");
        for page in &oldest {
            assert!(first.contains(&(page + 1)), "seed {seed}: the neighbour of {page} is not in {first:?}");
        }
        assert!(first.iter().all(|page| page % 4 < 2), "seed {seed}: a young one is in {first:?}");
        writer.gate.lock().set();
        drop(wait);
        env.advance(Duration::from_millis(500));
        for page in next..next + 60 {
            env.run_until_complete(retry(|| create_page(&store, id(page), 1))).unwrap();
        }
        let left = |page: &u32| store.look_up(id(*page)).is_some();
        evicted += oldest.iter().filter(|page| !left(page)).count();
        assert!(
            oldest.iter().all(|page| left(&(page + 1))),
            "seed {seed}: a neighbour was evicted with them"
        );
        env.shutdown();
    }
    assert!(evicted > 0, "none of the oldest was evicted");
}

/// Pages are made in this order: all multiples of 4, then those two above them, and so on, so that the other
/// half of the pair of one of the oldest is young. It goes along only where pages are written in aligned
/// pairs and an extension is in use.
#[test]
fn the_young_half_of_a_pair_is_written_along_where_pairs_are_written() {
    const FRAMES: usize = 1200;
    use ContiguousRuns::{Aligned, Merged};
    for (seed, stretches, extension) in [(0, Aligned, true), (1, Merged, true), (2, Aligned, false)] {
        let env = SimulatedEnvironment::new(seed);
        env.limit_steps(2_000_000);
        let (store, writer) = store_that_writes(&env, FRAMES, 6000, stretches);
        if extension {
            extend(&env, &store);
        }
        for page in [0, 2, 3, 1].into_iter().flat_map(|first| (first..1000).step_by(4)) {
            env.run_until_complete(retry(|| create_page(&store, id(page), 1))).unwrap();
        }
        let (_, wait) = create_until_one_waits(&store, 1000);
        env.advance(Duration::from_millis(200));
        let batches = writer.victims.lock().clone();
        let first = batches.first().expect("somebody waits for a frame, so something is written");
        let oldest: Vec<u32> = first.iter().copied().filter(|page| page % 4 == 0).collect();
        assert!(oldest.len() >= 8, "{stretches:?}: {first:?}");
        let in_pairs = oldest.iter().filter(|page| first.contains(&(*page + 1))).count();
        let expected = if stretches == Aligned && extension { oldest.len() } else { 0 };
        assert_eq!(in_pairs, expected, "{stretches:?}, extension {extension}: {first:?}");
        writer.gate.lock().set();
        drop(wait);
        env.shutdown();
    }
}

/// Pages read from their file enter in the middle of the list. Their readers wait for another frame, which
/// comes from what is being written: until then they are the only clean ones. With an extension nobody takes
/// them; without one they serve those who wait, rather than that dirty pages are written far from their turn.
#[test]
fn pages_read_from_their_file_stay_until_the_writes_have_brought_frames() {
    for (seed, extension) in [(0, true), (1, true), (2, true), (3, false)] {
        let (env, store, writer) = full_of_clean_pages(seed);
        if extension {
            extend(&env, &store);
        }
        let read: Vec<u32> = (0..4000).filter(|page| store.look_up(id(*page)).is_none()).take(40).collect();
        for page in &read {
            env.run_until_complete(retry(|| store.read(id(*page)).map(drop))).unwrap();
        }
        *writer.gate.lock() = Event::new();
        let rest = (0..4000).filter(|page| !read.contains(page) && store.look_up(id(*page)).is_some());
        for page in rest.collect::<Vec<_>>() {
            env.run_until_complete(retry(|| update_page(&store, id(page), 2))).unwrap();
        }
        let (next, wait) = create_until_one_waits(&store, 4000);
        env.advance(Duration::from_millis(100));
        assert!(store.status().pages_in_flight > 0, "seed {seed}: {:?}", store.status());
        let there: Vec<u32> = read.into_iter().filter(|page| store.look_up(id(*page)).is_some()).collect();
        assert!(there.len() > if extension { 30 } else { 0 }, "seed {seed}: {} left", there.len());
        // As many wait as there are clean pages, and more.
        let waits: Vec<Interrupt> =
            (next + 1..next + 65).filter_map(|page| create_page(&store, id(page), 1).err()).collect();
        assert!(waits.len() > there.len(), "seed {seed}: {} wait", waits.len());
        env.advance(Duration::from_millis(500));
        let left = there.iter().filter(|page| store.look_up(id(**page)).is_some()).count();
        let stay = left == there.len();
        assert_eq!(stay, extension, "seed {seed}: {left} of {} pages just read are left", there.len());
        writer.gate.lock().set();
        drop((wait, waits));
        env.run_until_complete(retry(|| create_page(&store, id(next), 1))).unwrap();
        env.shutdown();
    }
}
