//! Pages that a thread moves from frame to frame without end, while others read them and drop their
//! tablespaces.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Environment, Event, Random, TaskFuture};
use page::PageId;

use super::support::{TempDir, create_page, new_store, options, real_environment, retry, value_of};
use crate::pool::free_list::Need;
use crate::store::PageStore;

const PAGE: usize = 4096;
const FRAMES: usize = 400;
const PAGES: u32 = 100;
const STAYS: u32 = 1;

/// Lets others go on also when its owner panics.
struct Over<F: FnMut()>(F);

impl<F: FnMut()> Drop for Over<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn block_on(env: &Arc<dyn Environment>, task: TaskFuture) {
    let (over, done) = (Event::new(), Arc::new(AtomicBool::new(false)));
    let (ended, well) = (over.clone(), done.clone());
    let whole = async move {
        let _over = Over(move || ended.set());
        task.await;
        well.store(true, Ordering::Relaxed);
    };
    env.spawn("step", Box::pin(whole));
    env.block_until(&over);
    assert!(done.load(Ordering::Relaxed), "a task has panicked");
}

fn value(id: PageId) -> u64 {
    u64::from(id.space * 1000 + id.page)
}

/// A tablespace whose pages are in the pool, clean.
fn make(env: &Arc<dyn Environment>, store: &Arc<PageStore>, space: u32, directory: &Path) {
    store.create_space(space, &directory.join(format!("{space}.ibd")), PAGES).unwrap();
    let store = store.clone();
    let pages = async move {
        for page in 0..PAGES {
            let id = PageId::new(space, page);
            retry(|| create_page(&store, id, value(id))).await.unwrap();
        }
        store.flush_space(space).await.unwrap();
    };
    block_on(env, Box::pin(pages));
}

/// Moves one page after the other into a free frame.
fn move_pages(store: &PageStore, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        for index in 0..FRAMES as u32 {
            let Some(to) = store.take_frame(Need::Usual) else { continue };
            let mut lru = store.lru.lock();
            let listed = lru.is_listed(index).then(|| store.frames.get(index));
            let moved = listed.filter(|from| store.relocate(&mut lru, *from, to));
            drop(lru);
            store.free.put(moved.unwrap_or(to));
        }
    }
}

/// The page table of a tablespace that was dropped is asserted to be empty.
#[test]
fn pages_that_move_are_found_by_readers_and_by_a_drop() {
    let directory = TempDir::new("relocation");
    let env = real_environment();
    let store = new_store(&env, &directory.0, options(FRAMES, PAGE), 8 << 20);
    make(&env, &store, STAYS, &directory.0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let all_dropped = Over(|| over.store(true, Ordering::Relaxed));
        scope.spawn(|| move_pages(&store, &over));
        scope.spawn(|| {
            let mut random = Random::new(2);
            while !over.load(Ordering::Relaxed) {
                let id = PageId::new(STAYS, random.below(PAGES as usize) as u32);
                let pin = store.pin_present(id).expect("a page that moves is never absent");
                let frame = pin.frame();
                assert_eq!(value_of(&pin.read()), value(id));
                assert!(frame.holds(id), "a pinned page moved");
            }
        });
        for space in 2..150 {
            make(&env, &store, space, &directory.0);
            let dropping = store.clone();
            block_on(&env, Box::pin(async move { dropping.drop_space(space).await.unwrap() }));
        }
        drop(all_dropped);
    });
    let status = store.status();
    println!("{} moves", status.pages_relocated);
    assert!(status.pages_relocated > 10_000, "{status:?}");
    block_on(&env, Box::pin(async move { store.shutdown().await.unwrap() }));
}
