//! Making the pool larger and smaller while it is in use.
//!
//! [`PageStore::resize`] says how many bytes the pool shall have; the cleaner, at each of its looks, takes a
//! step towards that ([`Resizer`]), so that nobody waits for a resize and no step takes long. Frames have
//! numbers, and the pool consists of those below a limit ([`crate::pool::free_list`]).
//!
//! To grow, memory is asked for at once (it costs address space only, and a refusal is told to who asked);
//! then, some thousand frames at a time, descriptors are made and the limit is raised, which puts the frames
//! into the free list.
//!
//! To shrink, the limit is lowered first: from then on no frame above it is given to anybody, and
//! whichever is put back is withdrawn. The free ones have left with that. The resizer goes through
//! the rest, again and again: it moves the clean pages into frames below the limit
//! ([`crate::pool::relocation`]) or evicts them (offered to the buffer pool extension before), has
//! the dirty ones written and evicted, and passes by the pinned ones, which are looked at again in
//! the next round. What a smaller pool loses are the pages that would be evicted next and, of those
//! that lay in frames that left, the dirty ones and those of the old part. The memory of each goes
//! back to the system in the round in which it has left, so a page that is pinned for long keeps its
//! own frame's and no other's. Descriptors and links stay; they are less than 4 % of a page of 4 KiB
//! and 1 % of one of 16 KiB.
//!
//! The figures that follow from the number of frames (reserve, batches, pages in flight, drift, targets of
//! the cleaner) are computed from the limit when they are needed. The page tables do not depend on it.
//!
//! What the buffer pool extension takes is the pool's memory: there are that many frames fewer, and when the
//! tier is switched or resized the same steps follow it.
//!
//! A request while a resize is under way takes its place: steps go from where the pool is.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use disk::Event;
use page::PageSize;
use parking_lot::Mutex;

use crate::error::Error;
use crate::flush::feeder;
use crate::flush::reason::WriteReason;
use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::pool::lru::Lru;
use crate::store::PageStore;

/// Fewest frames a pool works with.
const FRAMES_MIN: usize = 32;
/// Frames dealt with in one step.
const STEP: u32 = 2048;
/// Frames looked at without letting the LRU list go: at 2 µs for copying a page, some 60 µs.
const LOCKED: u32 = 32;

/// The number of frames of a pool of this size, of which the tier takes some, but never more than half.
pub(crate) fn frames_of(pool_bytes: usize, tier_bytes: usize, page_size: PageSize) -> Result<usize, Error> {
    let count = (pool_bytes - tier_bytes.min(pool_bytes / 2)) / page_size.bytes();
    const FRAMES_MAX: usize = (u32::MAX / 2) as usize - 1;
    let refuse = |bound: String| {
        let size = page_size.bytes();
        Err(Error::Options(format!(
            "innodb_buffer_pool_size of {pool_bytes} bytes is {count} pages of {size} bytes; {bound}"
        )))
    };
    if count < FRAMES_MIN {
        return refuse(format!("at least {FRAMES_MIN} are needed"));
    }
    if count > FRAMES_MAX {
        return refuse(format!("there can be {FRAMES_MAX} at most"));
    }
    Ok(count)
}

/// What is wanted of the pool, and how far it is.
pub(crate) struct Resizing {
    /// Bytes of the pool, with what the tier takes.
    wanted: AtomicUsize,
    /// Bytes the tier takes, as the last step saw it.
    charged: AtomicUsize,
    progress: Mutex<Progress>,
}

struct Progress {
    /// While a resize that somebody asked for is under way: bytes before, and what to set when it is over.
    under_way: Option<(usize, Event)>,
    /// What was said last.
    text: String,
}

impl Resizing {
    pub(crate) fn new(bytes: usize, tier_bytes: usize) -> Self {
        Self {
            wanted: bytes.into(),
            charged: tier_bytes.into(),
            progress: Mutex::new(Progress { under_way: None, text: String::new() }),
        }
    }

    pub(crate) fn charge(&self, tier_bytes: usize) {
        self.charged.store(tier_bytes, Ordering::Relaxed);
    }

    fn begin(&self, bytes: usize) -> Event {
        let mut progress = self.progress.lock();
        let before = self.wanted.swap(bytes, Ordering::Relaxed);
        let (from, over) = match progress.under_way.take() {
            Some((from, over)) => (from, over),
            None => (before, Event::new()),
        };
        tracing::info!("the buffer pool is resized from {from} to {bytes} bytes");
        progress.text = format!("Resizing buffer pool from {from} to {bytes} bytes");
        progress.under_way = Some((from, over.clone()));
        over
    }

    fn end(&self, reached: Option<usize>, text: impl FnOnce(usize, usize) -> String) {
        let ended = {
            let mut progress = self.progress.lock();
            let wanted = self.wanted.load(Ordering::Relaxed);
            if reached.is_some_and(|reached| reached != wanted) {
                // Somebody has changed the wish meanwhile, and expects more steps.
                return;
            }
            let ended = progress.under_way.take();
            if let Some((from, _)) = &ended {
                progress.text = text(*from, wanted);
                tracing::info!("{}", progress.text);
            }
            ended
        };
        if let Some((_, over)) = ended {
            over.set();
        }
    }

    /// The pool has `reached` bytes.
    fn complete(&self, reached: usize) {
        self.end(Some(reached), |from, to| {
            format!("Completed resizing buffer pool from {from} to {to} bytes")
        });
    }

    /// No step follows any more.
    pub(crate) fn give_up(&self, why: &str) {
        self.end(None, |from, to| {
            format!("Resizing buffer pool from {from} to {to} bytes was given up: {why}")
        });
    }
}

impl Drop for Resizing {
    fn drop(&mut self) {
        self.give_up("the store was closed");
    }
}

impl PageStore {
    /// Gives the pool another size in bytes, rounded down to whole pages, in the background. A resize that is
    /// under way goes on to this size instead. The event is set when it is over; [`PageStore::resize_status`]
    /// says how.
    ///
    /// # Errors
    /// When that is too small or too large, when the memory is not available, and when nothing is
    /// written any more.
    pub fn resize(&self, bytes: usize) -> Result<Event, Error> {
        self.refuse_without_cleaner()?;
        let charged = self.resizing.charged.load(Ordering::Relaxed);
        if charged > bytes / 2 {
            return Err(Error::Options(format!(
                "a buffer pool of {bytes} bytes is too small for the buffer pool extension, which takes {charged} of them; make untorn_bpe_size smaller first"
            )));
        }
        let count = frames_of(bytes, charged, self.page_size)?;
        self.reserve_frames(count)?;
        self.begin_resize(bytes)
    }

    /// Memory for this number of frames, and room for them in all lists: what there is no memory for is
    /// refused here, where somebody can be told, and no list asks for any when the frames come.
    fn reserve_frames(&self, count: usize) -> Result<(), Error> {
        let room = self.lru.lock().make_room(count);
        let room = room.and_then(|()| self.flush_list.lock().make_room(count));
        let room = room.and_then(|()| self.free.make_room(count));
        room.map_err(|error| {
            Error::Options(format!(
                "there is no memory for the lists of a buffer pool of {count} pages: {error}"
            ))
        })?;
        // The last: frames that there are have their room in the lists.
        self.frames.reserve(count)
    }

    /// Whether the pool, which becomes smaller, waits for this pin: the page's frame is to leave it. Who can
    /// do without gives it back, and pins the page again when that is needed.
    #[must_use]
    pub fn wants_back(&self, pin: &Pin) -> bool {
        self.free.is_leaving(pin.frame())
    }

    /// The part that the cleaner sees. It may have ended since the request was looked at: then nobody would
    /// end the resize. Before it goes it gives up what has begun; what begins after that sees here that it
    /// has gone.
    pub(crate) fn begin_resize(&self, bytes: usize) -> Result<Event, Error> {
        let over = self.resizing.begin(bytes);
        if let Err(error) = self.refuse_without_cleaner() {
            self.resizing.give_up(&error.to_string());
            return Err(error);
        }
        self.wake_cleaner();
        Ok(over)
    }

    fn refuse_without_cleaner(&self) -> Result<(), Error> {
        self.refuse_when_poisoned()?;
        if !self.options.background || self.stopping.load(Ordering::Acquire) {
            return Err(Error::Options(
                "the buffer pool cannot be resized without a page cleaner".to_owned(),
            ));
        }
        Ok(())
    }

    /// Bytes of the pool as they were asked for last (`innodb_buffer_pool_size`).
    #[must_use]
    pub fn pool_bytes(&self) -> usize {
        self.resizing.wanted.load(Ordering::Relaxed)
    }

    /// How far the last resize is (`Innodb_buffer_pool_resize_status`); empty if there was none.
    #[must_use]
    pub fn resize_status(&self) -> String {
        let progress = self.resizing.progress.lock();
        let text = progress.text.clone();
        let leaving = self.free.end() - self.free.limit();
        if progress.under_way.is_none() || leaving == 0 {
            return text;
        }
        format!("{text}: withdrew {} of {leaving} pages", self.free.withdrawn())
    }
}

/// The cleaner's part: see the module's essay.
#[derive(Default)]
pub(crate) struct Resizer {
    /// The next frame to look at among those that are to leave.
    next: u32,
    /// All frames that have left, once the last of them has: what no round has come by since is given back,
    /// and the system's pages that lie in two frames.
    discard: Range<u32>,
    /// Frames that there was no memory for.
    refused: usize,
}

impl Resizer {
    /// Takes a step. Whether there is more to do.
    pub(crate) fn step(&mut self, store: &PageStore) -> bool {
        if let Some(tier) = store.tier.get() {
            store.resizing.charge(tier.memory_bytes());
        }
        let (wanted, limit) = (store.pool_bytes(), store.free.limit());
        let target = self.target(store, wanted);
        if limit != target && store.frames.made() < limit as usize {
            // Those that were never used: all of them are put on the list with the first change of the limit.
            store.frames.make_free((store.frames.made() + STEP as usize).min(limit as usize));
        } else if limit < target {
            Self::raise(store, target.min(limit + STEP));
        } else if limit > target {
            store.free.lower(&store.frames, target);
            store.frame_count_changed();
            // Pages that are to leave may be in batches that take their time. Once: what
            // is started later takes fractions of a second, and keeps its pace however
            // long the last pages take to leave.
            store.hurry_batches();
        }
        if store.free.limit() < store.free.end() {
            self.withdraw(store);
        }
        if let Some(left) = store.free.all_have_left().filter(|left| !left.is_empty()) {
            // What has left before and was not taken back is above the limit too.
            let end = if self.discard.is_empty() { left.end } else { self.discard.end.max(left.end) };
            self.discard = left.start..end;
        }
        self.give_back(store);
        let over = store.free.limit() == target && store.free.end() == target && self.discard.is_empty();
        if over {
            store.resizing.complete(wanted);
        }
        !over
    }

    /// How many frames a pool of the wanted bytes shall have.
    fn target(&mut self, store: &PageStore, wanted: usize) -> u32 {
        let charged = store.resizing.charged.load(Ordering::Relaxed);
        // The request was looked at; what the tier takes changes by itself.
        let Ok(count) = frames_of(wanted, charged, store.page_size) else { return store.free.limit() };
        if count > store.frames.reserved()
            && let Err(error) = store.reserve_frames(count)
        {
            if self.refused != count {
                tracing::warn!("{error}; it stays smaller than innodb_buffer_pool_size");
                self.refused = count;
            }
            return store.free.limit();
        }
        count as u32
    }

    /// The lists have room for it.
    fn raise(store: &PageStore, limit: u32) {
        store.free.raise(&store.frames, limit);
        store.frame_count_changed();
    }

    /// Goes on through the frames that are to leave.
    fn withdraw(&mut self, store: &PageStore) {
        let (limit, end) = (store.free.limit(), store.free.end());
        if !(limit..end).contains(&self.next) {
            self.next = limit;
        }
        let range = self.next..end.min(self.next.saturating_add(STEP));
        self.next = range.end;
        Self::offer(store, range.clone());
        let room = (2 * store.batch_pages()).min(store.flight_room());
        let mut dirty = Vec::new();
        for start in range.clone().step_by(LOCKED as usize) {
            let mut evicted = Vec::new();
            {
                let mut lru = store.lru.lock();
                for index in start..range.end.min(start + LOCKED) {
                    let frame = store.frames.get(index);
                    // A frame that is being read into comes with its page in the next round.
                    if !lru.is_listed(index) {
                        continue;
                    }
                    if move_away(store, &mut lru, frame) || store.evict(&mut lru, frame) {
                        evicted.push(frame);
                    } else if dirty.len() < room && store.reserve_for_flush(frame) {
                        dirty.push(frame);
                    }
                }
            }
            for frame in evicted {
                store.free.put(frame);
            }
        }
        if !dirty.is_empty() {
            store.start_batches(dirty, WriteReason::Resize, Duration::ZERO);
        }
        store.frames.discard_withdrawn(range);
    }

    /// Offers the clean pages that are not to be moved to the buffer pool extension.
    fn offer(store: &PageStore, range: Range<u32>) {
        let Some(tier) = store.tier_to_use().filter(|tier| tier.takes_pages()) else { return };
        let frames = range.map(|index| store.frames.get(index));
        let goes = |frame: &FrameRef| frame.is_old.load(Ordering::Relaxed) && feeder::is_new(*frame);
        let pinned = frames.filter(|frame| goes(frame) && frame.pins.try_pin()).collect();
        feeder::offer_each(store, &*tier, pinned);
    }

    fn give_back(&mut self, store: &PageStore) {
        // Not what was taken into the pool again.
        let start = self.discard.start.max(store.free.end());
        let end = self.discard.end.min(start.saturating_add(STEP));
        if start < end {
            store.frames.discard(start..end);
        }
        self.discard.start = end.max(start);
    }
}

/// Moves a page out of a frame that leaves; the frame is then owned and empty.
fn move_away(store: &PageStore, lru: &mut Lru, from: FrameRef) -> bool {
    if from.is_dirty() || from.pins.is_pinned() {
        return false;
    }
    let Some(to) = store.take_frame_for_moving(lru, from) else { return false };
    // The page that was evicted may have been this one.
    let moved = lru.is_listed(from.index()) && store.relocate(lru, from, to);
    if !moved {
        store.free.put(to);
    }
    moved
}
