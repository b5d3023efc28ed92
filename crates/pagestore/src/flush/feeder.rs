//! Feeding the buffer pool extension: pages near the LRU tail are offered before they are evicted.
//!
//! The cleaner feeds at each look, before it evicts: it walks ahead of the tail, as far as frames are taken
//! until the next look or the one after, notes the clean pages it has not dealt with, lets the list go, and
//! offers them one by one. Pages that are written to be evicted are offered when they have reached their
//! file. Nobody waits for any of this: a page that is latched is passed by, and a page that is evicted before
//! the feeder came is just evicted.
//!
//! What is offered is in its file. Under the page's S latch the feeder looks once more: not dirty, not on its
//! way, not a page of a store that is poisoned (there a change may be in memory that is in no log). A change
//! that makes the page dirty needs the X latch, and
//! [invalidates](page::extension::BufferPoolExtension::invalidate) under it: so either the feeder finds the
//! page dirty, or the invalidation comes after the offer.

use std::sync::atomic::Ordering;

use redo::Lsn;

use crate::pool::frame::{FrameRef, history};
use crate::pool::guard::Pin;
use crate::store::PageStore;
use page::extension::{BufferPoolExtension, Offered, Refusal};

/// Pages ahead of the tail that are always looked at.
const DEPTH_MIN: usize = 256;
/// Pages offered per look, at most: a look must not take long.
const OFFERS_MAX: usize = 1024;

/// What a look at the tail came to.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// Pages the tier has taken.
    pub(crate) taken: usize,
    /// It would have taken more if it were done with writing what it has: worth another look soon.
    pub(crate) tier_busy: bool,
}

/// Offers clean pages ahead of the LRU tail; `demand` frames are taken from one look to the next.
pub(crate) fn feed(store: &PageStore, demand: f64) -> Fed {
    let Some(tier) = store.tier_to_use().filter(|tier| tier.takes_pages()) else { return Fed::default() };
    let depth = ((3.0 * demand) as usize + DEPTH_MIN).min(store.frame_count() / 4);
    offer_each(store, &*tier, ahead_of_tail(store, depth))
}

/// Offers pinned pages and gives the pins back.
pub(crate) fn offer_each(store: &PageStore, tier: &dyn BufferPoolExtension, frames: Vec<FrameRef>) -> Fed {
    let mut fed = Fed::default();
    let mut open = true;
    for frame in frames {
        // The rest is only given back.
        if open {
            match offer(store, tier, frame) {
                Some(Offered::Taken) => fed.taken += 1,
                Some(Offered::Refused(Refusal::Busy)) => (open, fed.tier_busy) = (false, true),
                Some(Offered::Refused(Refusal::Off | Refusal::Budget)) => open = false,
                _ => {}
            }
        }
        frame.pins.unpin();
    }
    fed
}

/// Clean pages near the tail that were not dealt with yet, pinned.
fn ahead_of_tail(store: &PageStore, depth: usize) -> Vec<FrameRef> {
    let mut frames = Vec::new();
    // Nothing is evicted soon then: what a warm-up loads at the tail, page by page, is not the tier's yet.
    let spare = store.free.len() >= depth;
    let lru = store.lru.lock();
    let mut next = lru.tail();
    for _ in 0..depth {
        let Some(index) = next else { break };
        next = lru.younger(index);
        let frame = store.frames.get(index);
        if spare && frame.is_noted(history::COLDER) {
            continue;
        }
        if is_new(frame) && frame.pins.try_pin() {
            frames.push(frame);
            if frames.len() == OFFERS_MAX {
                break;
            }
        }
    }
    frames
}

/// Whether the page is clean and was not dealt with yet.
pub(crate) fn is_new(frame: FrameRef) -> bool {
    !frame.offered.load(Ordering::Relaxed) && frame.is_in_its_file()
}

/// Offers a pinned page, if it is clean and nobody is changing it.
pub(crate) fn offer(store: &PageStore, tier: &dyn BufferPoolExtension, frame: FrameRef) -> Option<Offered> {
    if !tier.takes_pages() {
        // Not of this page's making: it is offered when the tier takes pages again.
        return None;
    }
    let (id, history) = (frame.page_id(), frame.history());
    if !tier.wants(id, history) {
        frame.offered.store(true, Ordering::Relaxed);
        return None;
    }
    let image = Pin::another(frame).try_into_read()?;
    let lsn = page::lsn(&image);
    // A page that was never written is all zero, and costs nothing to make again.
    let offerable =
        frame.is_in_its_file() && store.poisoned().is_none() && lsn > 0 && page::identity(&image) == id;
    let offered = offerable.then(|| tier.offer(id, Lsn(lsn), &image, history));
    drop(image);
    match offered {
        None | Some(Offered::Refused(Refusal::Off | Refusal::Busy | Refusal::Budget)) => {}
        Some(_) => frame.offered.store(true, Ordering::Relaxed),
    }
    offered
}
