//! Filling: copies of clean pages gather in a buffer and go to the file front to back, a region at a time.
//!
//! ```text
//!   offer ──copy──▶ chunk (a buffer for the rest of the region) ──full, or a second old──▶ one asynchronous write
//!   free regions ◀── cleaning ◀── oldest region of the FIFO ◀── region written to its end
//! ```
//!
//! Nothing waits: no buffer or no free region means that the page is refused. A page is in the table from the moment
//! it is copied, *pending*, so that a change of it in the meantime drops it; it can be found when the write is over.
//!
//! **Second chance.** Two regions are kept free by cleaning the oldest. If at least half of its slots were hit since they
//! were written, the region goes to the young end of the FIFO as it is, at most [`KEEP_MAX`] times in a row.
//! Otherwise the pages that were hit are read with one read of the region and copied like offered ones (so a
//! region that is cleaned costs at most half a region of writes, which the write budget must allow), and the rest is dropped.
//! A page that was saved has to be hit again to be saved again.
//!
//! **Order with the kept map.** A page that leaves its slot here can no longer be dropped by a change. So its drop is
//! recorded like that of a changed page: under the lock of its shard, while it leaves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use disk::{AlignedBuf, Event, Io, IoBuf, IoKind};
use pagestore::tier::{Offered, Refusal};
use pagestore::{Lsn, PageId};

use crate::counters::Counter;
use crate::geometry::Geometry;
use crate::image;
use crate::record::Record;
use crate::store::Store;
use crate::table::{Entry, Inserted, LSN_LIMIT};
use crate::tier::Tier;

/// Regions that are kept free.
const FREE_REGIONS: usize = 2;
/// Regions in a row that get a second chance as a whole.
const KEEP_MAX: u32 = 8;
/// A buffer that is not full is written when its first page is this old.
pub(crate) const PARTIAL_AFTER: Duration = Duration::from_secs(1);

/// A buffer being filled: the slots from `first` on.
struct Chunk {
    buf: AlignedBuf,
    first: u32,
    count: u32,
    /// Slots up to the end of the region.
    room: u32,
    since: Duration,
}

/// A chunk to be written.
pub(crate) struct Full {
    chunk: Chunk,
    region: u32,
    ends_region: bool,
}

/// A region to be read for its hot pages.
pub(crate) struct Salvage {
    region: u32,
    buf: AlignedBuf,
}

/// What one who filled has to submit after letting go of the lock.
#[derive(Default)]
pub(crate) struct Work {
    full: Option<Full>,
    salvage: Option<Salvage>,
}

/// Which region is filled, which come next, and which hold pages, oldest first.
pub(crate) struct Filler {
    open: Option<Chunk>,
    /// The region being filled and how many of its slots were given out, apart from the open chunk.
    position: Option<(u32, u32)>,
    free: VecDeque<u32>,
    fifo: VecDeque<u32>,
    /// Regions with writes under way, once for each.
    writing: Vec<u32>,
    cleaning: Option<u32>,
    kept_in_a_row: u32,
    spare: Vec<AlignedBuf>,
    buffers: usize,
    /// Nothing is taken any more; set when nothing is under way.
    closed: Option<Event>,
}

impl Filler {
    /// `fifo` are the regions that hold pages, oldest first.
    pub(crate) fn new(geometry: &Geometry, fifo: VecDeque<u32>) -> Filler {
        let mut used = vec![false; geometry.regions as usize];
        for region in &fifo {
            used[*region as usize] = true;
        }
        let free = (0..geometry.regions).filter(|region| !used[*region as usize]).collect();
        Filler {
            open: None,
            position: None,
            free,
            fifo,
            writing: Vec::new(),
            cleaning: None,
            kept_in_a_row: 0,
            spare: Vec::new(),
            buffers: 0,
            closed: None,
        }
    }

    /// Whether there are regions that hold nothing, beyond those kept free by cleaning.
    pub(crate) fn has_unused_room(&self) -> bool {
        self.free.len() > FREE_REGIONS
    }

    /// The regions that hold pages, oldest first.
    pub(crate) fn order(&self) -> VecDeque<u32> {
        let mut order = self.fifo.clone();
        order.extend(self.position.map(|(region, _)| region));
        order
    }

    fn buffer(&mut self, geometry: &Geometry) -> Option<AlignedBuf> {
        if let Some(buf) = self.spare.pop() {
            return Some(buf);
        }
        (self.buffers < geometry.buffers()).then(|| {
            self.buffers += 1;
            AlignedBuf::zeroed(geometry.region_bytes)
        })
    }

    /// Makes sure that a chunk with room is open. While a region is being cleaned the last free one is for what is saved.
    fn open_chunk(&mut self, geometry: &Geometry, now: Duration, saving: bool) -> Option<&mut Chunk> {
        if self.open.is_none() {
            let (region, given) = match self.position {
                Some(position) => position,
                None if !saving && self.free.len() <= 1 && self.cleaning.is_some() => return None,
                None => (self.free.pop_front()?, 0),
            };
            let Some(buf) = self.buffer(geometry) else {
                if self.position.is_none() {
                    self.free.push_front(region);
                }
                return None;
            };
            self.position = Some((region, given));
            let first = geometry.slots_of(region).start + given;
            let room = geometry.slots_per_region() - given;
            self.open = Some(Chunk { buf, first, count: 0, room, since: now });
        }
        self.open.as_mut()
    }

    /// Takes the open chunk away for writing.
    fn cut(&mut self, geometry: &Geometry) -> Option<Full> {
        let chunk = self.open.take()?;
        let Some((region, given)) = self.position else { unreachable!("an open chunk lies in a region") };
        if chunk.count == 0 {
            self.spare.push(chunk.buf);
            return None;
        }
        let given = given + chunk.count;
        let ends_region = given == geometry.slots_per_region();
        self.position = (!ends_region).then_some((region, given));
        self.writing.push(region);
        Some(Full { chunk, region, ends_region })
    }

    /// A buffer is used up. One who does not keep it gives its memory back.
    fn take_back(&mut self, buf: AlignedBuf, keep: bool) {
        if keep {
            self.spare.push(buf);
        } else {
            self.buffers -= 1;
        }
    }

    /// Gives the memory of the buffers back that nobody uses.
    pub(crate) fn give_back_spare(&mut self) {
        self.buffers -= self.spare.len();
        self.spare = Vec::new();
    }

    /// Buffers there are, in use or spare.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers
    }

    fn is_idle(&self) -> bool {
        self.writing.is_empty() && self.cleaning.is_none()
    }

    fn tell_when_closed(&self) {
        if let (Some(event), true) = (&self.closed, self.is_idle()) {
            event.set();
        }
    }
}

impl Tier {
    /// Copies a page into the region being filled.
    pub(crate) fn fill(&self, store: &Arc<Store>, page: PageId, lsn: Lsn, image: &[u8]) -> Offered {
        let refused = |why: Refusal| Offered::Refused(why);
        let page_bytes = store.geometry.page_bytes;
        if image.len() != page_bytes || lsn.0 >= LSN_LIMIT || !image::can_be_stored(image, page) {
            return refused(Refusal::Busy);
        }
        let now = self.env.now();
        let mut filler = store.filler.lock();
        if filler.closed.is_some() {
            return refused(Refusal::Busy);
        }
        if store.table.contains(page) {
            return refused(Refusal::Present);
        }
        if !self.budget.has(page_bytes as u64, now) {
            return refused(Refusal::Budget);
        }
        let Some(chunk) = filler.open_chunk(&store.geometry, now, false) else {
            return refused(Refusal::Busy);
        };
        let copy = chunk.place(page_bytes);
        copy.copy_from_slice(image);
        let check = image::stamp(copy, lsn.0);
        let entry = Entry { page, slot: chunk.first + chunk.count, lsn: lsn.0, check };
        match store.table.insert(&entry, false) {
            Inserted::Present => return refused(Refusal::Present),
            Inserted::Full => return refused(Refusal::Busy),
            Inserted::Done => {}
        }
        chunk.count += 1;
        self.budget.take(page_bytes as u64, now);
        let work = self.after_taking(store, &mut filler);
        drop(filler);
        self.submit(store, work);
        Offered::Taken
    }

    /// Cuts a full chunk and cleans ahead.
    fn after_taking(&self, store: &Arc<Store>, filler: &mut Filler) -> Work {
        let is_full = filler.open.as_ref().is_some_and(|chunk| chunk.count == chunk.room);
        let full = if is_full { filler.cut(&store.geometry) } else { None };
        Work { full, salvage: self.clean(store, filler) }
    }

    /// Writes what has waited too long in a buffer that is not full.
    pub(crate) fn write_partial(&self, store: &Arc<Store>, older_than: Duration) {
        let now = self.env.now();
        let mut filler = store.filler.lock();
        let is_old = |chunk: &Chunk| chunk.count > 0 && now.saturating_sub(chunk.since) >= older_than;
        let full = if filler.open.as_ref().is_some_and(is_old) { filler.cut(&store.geometry) } else { None };
        let salvage = if filler.closed.is_none() { self.clean(store, &mut filler) } else { None };
        drop(filler);
        self.submit(store, Work { full, salvage });
    }

    /// Takes nothing more. The event is set when all that is under way is over.
    pub(crate) fn close_filler(&self, store: &Arc<Store>) -> Event {
        let mut filler = store.filler.lock();
        let event = filler.closed.get_or_insert_with(Event::new).clone();
        let full = filler.cut(&store.geometry);
        filler.tell_when_closed();
        drop(filler);
        self.submit(store, Work { full, salvage: None });
        event
    }

    fn submit(&self, store: &Arc<Store>, work: Work) {
        let (Some(tier), true) = (self.me.upgrade(), work.full.is_some() || work.salvage.is_some()) else {
            return;
        };
        let mut batch = Vec::with_capacity(2);
        if let Some(Full { chunk, region, ends_region }) = work.full {
            let Chunk { buf, first, count, .. } = chunk;
            let bytes = count as usize * store.geometry.page_bytes;
            self.counters.add(Counter::BytesWritten, bytes as u64);
            self.counters.count(Counter::Writes);
            let kind = IoKind::Write {
                buf: IoBuf::Owned(buf, bytes),
                offset: store.geometry.offset_of(first),
                atomic: false,
                sync: false,
            };
            let write = Written { region, ends_region, slots: first..first + count };
            let (tier, store_of_write) = (tier.clone(), store.clone());
            let io = Io::new(kind, move |result| tier.written(&store_of_write, write, result));
            batch.push((store.file.clone(), io));
        }
        if let Some(Salvage { region, buf }) = work.salvage {
            let offset = store.geometry.offset_of(store.geometry.slots_of(region).start);
            self.counters.add(Counter::BytesRead, buf.len() as u64);
            let store_of_read = store.clone();
            let io = Io::new(IoKind::Read { buf: IoBuf::owned(buf), offset }, move |result| {
                tier.salvaged(&store_of_read, region, result);
            });
            batch.push((store.file.clone(), io));
        }
        self.env.storage().submit(batch);
    }

    /// A chunk was written: its pages can be found from now on.
    fn written(&self, store: &Arc<Store>, write: Written, result: disk::Result<IoKind>) {
        let buf = match result {
            Ok(IoKind::Write { buf: IoBuf::Owned(buf, _), .. }) => Some(buf),
            Ok(_) => None,
            Err(error) => {
                self.fail(store.id, &error.to_string());
                None
            }
        };
        if buf.is_some() {
            for slot in write.slots {
                store.table.publish(slot, |entry| store.record_add(entry, &self.dead));
            }
        }
        let mut filler = store.filler.lock();
        match buf {
            Some(buf) => filler.take_back(buf, !self.adapt.is_suspended()),
            None => filler.buffers -= 1,
        }
        if let Some(at) = filler.writing.iter().position(|region| *region == write.region) {
            filler.writing.swap_remove(at);
        }
        if write.ends_region {
            filler.fifo.push_back(write.region);
        }
        filler.tell_when_closed();
    }

    /// Keeps regions free. Returns the region whose hot pages are to be read, if there is one.
    fn clean(&self, store: &Arc<Store>, filler: &mut Filler) -> Option<Salvage> {
        let page_bytes = store.geometry.page_bytes as u64;
        // Each region is looked at once at most.
        for _ in 0..filler.fifo.len() {
            if filler.free.len() >= FREE_REGIONS || filler.cleaning.is_some() {
                return None;
            }
            let region = filler.fifo.pop_front()?;
            if filler.writing.contains(&region) {
                filler.fifo.push_back(region);
                continue;
            }
            let slots = store.geometry.slots_of(region);
            let hot =
                slots.clone().filter(|slot| store.table.peek(*slot).is_some_and(|(_, hit)| hit)).count();
            if hot * 2 >= slots.len() && filler.kept_in_a_row < KEEP_MAX {
                slots.for_each(|slot| store.table.forget_reference(slot));
                filler.fifo.push_back(region);
                filler.kept_in_a_row += 1;
                self.counters.count(Counter::RegionsKept);
                continue;
            }
            filler.kept_in_a_row = 0;
            let saved_max = hot.min(slots.len() / 2) as u64;
            if hot > 0
                && !self.adapt.is_suspended()
                && self.budget.has(saved_max * page_bytes, self.env.now())
                && let Some(buf) = filler.buffer(&store.geometry)
            {
                filler.cleaning = Some(region);
                return Some(Salvage { region, buf });
            }
            self.evict(store, region);
            filler.free.push_back(region);
        }
        None
    }

    /// Drops what a region holds.
    fn evict(&self, store: &Store, region: u32) {
        let drop_slot = |slot: u32| store.table.remove_slot(slot, || store.record(&Record::Drop { slot }));
        let dropped = store.geometry.slots_of(region).filter_map(drop_slot).count();
        self.counters.add(Counter::Evicted, dropped as u64);
        self.counters.count(Counter::RegionsCleaned);
    }

    /// The region was read: copies its hot pages, drops the rest.
    fn salvaged(&self, store: &Arc<Store>, region: u32, result: disk::Result<IoKind>) {
        let buf = match result {
            Ok(IoKind::Read { buf: IoBuf::Owned(buf, _), .. }) => Some(buf),
            Ok(_) => None,
            Err(error) => {
                self.fail(store.id, &error.to_string());
                None
            }
        };
        let mut works = Vec::new();
        let mut filler = store.filler.lock();
        if let Some(buf) = &buf
            && filler.closed.is_none()
        {
            let slots = store.geometry.slots_of(region);
            let mut left = slots.len() / 2;
            for slot in slots {
                let Some((entry, true)) = store.table.peek(slot) else { continue };
                if left > 0 && self.save(store, &mut filler, region, &entry, buf) {
                    left -= 1;
                    works.push(self.cut_if_full(store, &mut filler));
                }
            }
        }
        if buf.is_some() && filler.closed.is_none() {
            self.evict(store, region);
            filler.free.push_back(region);
        } else {
            filler.fifo.push_front(region);
        }
        filler.cleaning = None;
        match buf {
            Some(buf) => filler.take_back(buf, !self.adapt.is_suspended()),
            None => filler.buffers -= 1,
        }
        filler.tell_when_closed();
        drop(filler);
        for full in works {
            self.submit(store, Work { full, salvage: None });
        }
    }

    fn cut_if_full(&self, store: &Store, filler: &mut Filler) -> Option<Full> {
        let is_full = filler.open.as_ref().is_some_and(|chunk| chunk.count == chunk.room);
        if is_full { filler.cut(&store.geometry) } else { None }
    }

    /// Copies one page of a region that is being cleaned into the chunk being filled.
    fn save(&self, store: &Store, filler: &mut Filler, region: u32, entry: &Entry, buf: &AlignedBuf) -> bool {
        let (page_bytes, now) = (store.geometry.page_bytes, self.env.now());
        let at = (entry.slot - store.geometry.slots_of(region).start) as usize * page_bytes;
        let bytes = &buf[at..at + page_bytes];
        if let Err(mismatch) = image::compare(bytes, entry) {
            self.count_mismatch(mismatch);
            return false;
        }
        if !self.budget.take(page_bytes as u64, now) {
            return false;
        }
        let Some(chunk) = filler.open_chunk(&store.geometry, now, true) else { return false };
        chunk.place(page_bytes).copy_from_slice(bytes);
        let drop_old = || store.record(&Record::Drop { slot: entry.slot });
        if store.table.relocate(entry, chunk.first + chunk.count, drop_old) {
            chunk.count += 1;
            self.counters.count(Counter::Saved);
            return true;
        }
        false
    }
}

impl Chunk {
    /// Where the next page goes.
    fn place(&mut self, page_bytes: usize) -> &mut [u8] {
        let at = self.count as usize * page_bytes;
        &mut self.buf[at..at + page_bytes]
    }
}

/// A write under way.
struct Written {
    region: u32,
    ends_region: bool,
    slots: std::ops::Range<u32>,
}
