//! Filling: copies of clean pages gather in a buffer and go to the file front to back, a region at a time.
//!
//! ```text
//!   offer ──copy──▶ chunk (a buffer for the rest of the region) ──full, or a second old──▶ one asynchronous write
//!   free regions ◀── cleaning ◀── oldest region of the FIFO ◀── region written to its end
//! ```
//!
//! Nothing waits: no buffer or no free region means that the page is refused. A page is in the table from the
//! moment it is copied, *pending*, so that a change of it in the meantime drops it; it can be found when the
//! write is over.
//!
//! **Cleaning** keeps some regions free ([`Geometry::regions_kept_free`]), because pages come in bursts: a
//! batch of page writes ends, and those of its pages that are to be evicted are offered at once. What is
//! saved is read with one read of the region and copied like offered pages.
//!
//! - *Holes.* Where pages are changed, regions lose them: what is left of a region is worth its copy. So the
//!   emptiest of the [`LOOKED_AT`] oldest regions with at most half of their slots in use is taken first, and
//!   all that is in it is saved, like a log-structured file system compacts its segments. As long as the
//!   pages of the tier are no more than half of its slots there is such a region (those that are free or
//!   being filled aside), if not always among those looked at.
//! - *Second chance.* Where there is none the tier is full, and the oldest region goes. If at least half of
//!   its slots were hit since they were written, the region goes to the young end of the FIFO as it is, at
//!   most [`KEEP_MAX`] times in a row. Otherwise the pages that were hit are saved, half a region of them at
//!   most, and the rest is dropped. A page that was saved has to be hit again to be saved again.
//!
//! So a region that is cleaned costs at most half a region of writes. They count in the write budget, which
//! admissions then lack. Cleaning goes on by itself, from the end of a write or of a read to the next region,
//! until enough are free. For what is saved there are always room and a buffer: offers leave the last free
//! region alone, and, while a region is being cleaned, the last buffer. A tier that is suspended needs no
//! room and cleans nothing.
//!
//! **Order with the kept map.** A page that leaves its slot here can no longer be dropped by a change. So its
//! drop is recorded like that of a changed page: under the lock of its shard, while it leaves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use disk::{AlignedBuf, Event, Io, IoBuf, IoKind};
use page::extension::{Offered, Refusal};
use page::{Lsn, PageId};

use crate::counters::Counter;
use crate::geometry::Geometry;
use crate::image;
use crate::record::Record;
use crate::store::Store;
use crate::table::{Entry, Inserted, LSN_LIMIT};
use crate::tier::Tier;

/// Regions in a row that get a second chance as a whole.
const KEEP_MAX: u32 = 8;
/// Regions from the oldest on among which the one with the most holes is looked for.
const LOOKED_AT: usize = 512;
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

/// A region to be read for what is saved of it.
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

    /// Whether a page more costs none of those that are there: there are regions that hold nothing, beyond
    /// those kept free, or cleaning makes some out of holes.
    pub(crate) fn has_unused_room(&self, store: &Store) -> bool {
        let kept_free = store.geometry.regions_kept_free();
        let used = (store.geometry.regions as usize - kept_free) * store.geometry.slots_per_region() as usize;
        self.free.len() > kept_free || store.table.len() < used / 4 * 3
    }

    /// Regions that hold nothing.
    #[cfg(test)]
    pub(crate) fn free_regions(&self) -> usize {
        self.free.len()
    }

    /// The regions that hold pages, oldest first.
    pub(crate) fn order(&self) -> VecDeque<u32> {
        let mut order = self.fifo.clone();
        order.extend(self.position.map(|(region, _)| region));
        order
    }

    /// Buffers that are available now.
    fn buffers_left(&self, geometry: &Geometry) -> usize {
        self.spare.len() + geometry.buffers().saturating_sub(self.buffers)
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

    /// Makes sure that a chunk with room is open. The last free region is for what is saved, and so is the
    /// last buffer while a region is being cleaned.
    fn open_chunk(&mut self, geometry: &Geometry, now: Duration, saving: bool) -> Option<&mut Chunk> {
        if self.open.is_none() {
            let (region, given) = match self.position {
                Some(position) => position,
                None if !saving && self.free.len() <= 1 => return None,
                None => (self.free.pop_front()?, 0),
            };
            let reserved = usize::from(!saving && self.cleaning.is_some());
            let buf = if self.buffers_left(geometry) > reserved { self.buffer(geometry) } else { None };
            let Some(buf) = buf else {
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
        let check = image::seal(copy, lsn);
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
        let salvage = self.clean(store, &mut filler);
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
        let went_well = buf.is_some();
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
        let salvage = if went_well { self.clean(store, &mut filler) } else { None };
        drop(filler);
        self.submit(store, Work { full: None, salvage });
    }

    /// Keeps regions free. Returns the region that is to be read for what is saved of it, if there is one.
    fn clean(&self, store: &Arc<Store>, filler: &mut Filler) -> Option<Salvage> {
        if filler.closed.is_some() || self.adapt.is_suspended() {
            return None;
        }
        // Each region is looked at twice at most: as one with holes, and as the oldest.
        for _ in 0..=filler.fifo.len() {
            let geometry = &store.geometry;
            if filler.free.len() >= geometry.regions_kept_free() || filler.cleaning.is_some() {
                return None;
            }
            // One for the read and one for what is saved; until then the offers that come use up the room
            // there is.
            if filler.buffers_left(geometry) < 2 {
                return None;
            }
            let region = match emptiest_with_holes(store, filler) {
                Some(region) => region,
                None => match self.oldest_to_go(store, filler)? {
                    Oldest::Goes(region) => region,
                    Oldest::Stays => continue,
                },
            };
            filler.kept_in_a_row = 0;
            if self.worth_saving(store, region) {
                let buf = filler.buffer(geometry)?;
                filler.cleaning = Some(region);
                return Some(Salvage { region, buf });
            }
            self.evict(store, region);
            filler.free.push_back(region);
        }
        None
    }

    /// Takes the oldest region out of the FIFO, or gives it a second chance.
    fn oldest_to_go(&self, store: &Store, filler: &mut Filler) -> Option<Oldest> {
        let region = filler.fifo.pop_front()?;
        if filler.writing.contains(&region) {
            filler.fifo.push_back(region);
            return Some(Oldest::Stays);
        }
        let slots = store.geometry.slots_of(region);
        let hit = |slot: &u32| store.table.peek(*slot).is_some_and(|(_, hit)| hit);
        if filler.kept_in_a_row < KEEP_MAX && slots.clone().filter(hit).count() * 2 >= slots.len() {
            slots.for_each(|slot| store.table.forget_reference(slot));
            filler.fifo.push_back(region);
            filler.kept_in_a_row += 1;
            self.counters.count(Counter::RegionsKept);
            return Some(Oldest::Stays);
        }
        Some(Oldest::Goes(region))
    }

    /// Whether anything in a region would be saved.
    fn worth_saving(&self, store: &Store, region: u32) -> bool {
        let with_holes = is_with_holes(store, region);
        store
            .geometry
            .slots_of(region)
            .any(|slot| store.table.peek(slot).is_some_and(|(_, hit)| hit || with_holes))
    }

    /// Drops what a region holds.
    fn evict(&self, store: &Store, region: u32) {
        let drop_slot = |slot: u32| store.table.remove_slot(slot, || store.record(&Record::Drop { slot }));
        let dropped = store.geometry.slots_of(region).filter_map(drop_slot).count();
        self.counters.add(Counter::Evicted, dropped as u64);
        self.counters.count(Counter::RegionsCleaned);
    }

    /// The region was read: copies what is to be saved, drops the rest, and goes on with the next.
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
            // It may have lost pages while it was read.
            let with_holes = is_with_holes(store, region);
            for slot in slots {
                let Some((entry, hit)) = store.table.peek(slot) else { continue };
                if left > 0 && (hit || with_holes) && self.save(store, &mut filler, region, &entry, buf) {
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
        let went_well = buf.is_some();
        match buf {
            Some(buf) => filler.take_back(buf, !self.adapt.is_suspended()),
            None => filler.buffers -= 1,
        }
        let salvage = if went_well { self.clean(store, &mut filler) } else { None };
        filler.tell_when_closed();
        drop(filler);
        for full in works {
            self.submit(store, Work { full, salvage: None });
        }
        self.submit(store, Work { full: None, salvage });
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
        let Some(chunk) = filler.open_chunk(&store.geometry, now, true) else { return false };
        chunk.place(page_bytes).copy_from_slice(bytes);
        let drop_old = || store.record(&Record::Drop { slot: entry.slot });
        if store.table.relocate(entry, chunk.first + chunk.count, drop_old) {
            chunk.count += 1;
            self.budget.take_in_advance(page_bytes as u64, now);
            self.counters.count(Counter::Saved);
            return true;
        }
        false
    }
}

/// Takes the region with the most holes, of the oldest, out of the FIFO, if at most half of it is in use.
fn emptiest_with_holes(store: &Store, filler: &mut Filler) -> Option<u32> {
    let mut least = store.geometry.slots_per_region() / 2 + 1;
    let mut place = None;
    for (at, region) in filler.fifo.iter().enumerate().take(LOOKED_AT) {
        let live = store.table.live(*region);
        if live < least && !filler.writing.contains(region) {
            (least, place) = (live, Some(at));
        }
        if least == 0 {
            break;
        }
    }
    filler.fifo.remove(place?)
}

/// Whether at most half of a region is in use.
fn is_with_holes(store: &Store, region: u32) -> bool {
    store.table.live(region) <= store.geometry.slots_per_region() / 2
}

/// What becomes of the oldest region.
enum Oldest {
    Goes(u32),
    Stays,
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
