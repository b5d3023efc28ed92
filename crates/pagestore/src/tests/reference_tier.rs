//! The simplest honest buffer pool extension: a map in memory and a file that only grows, each page written
//! where the last one ended. What the hooks of the pool must guarantee shows here undisguised: there is no
//! second line of defence against a page that was changed and not invalidated, since such an entry verifies
//! perfectly.
//!
//! Over a crash it keeps what the contract allows a tier to keep, and no more kindly than that: everything
//! that was in the map, and any of the entries invalidated since the last
//! [`BufferPoolExtension::before_checkpoint`], whose invalidation may not have become durable.
//!
//! It can lie (hand out another slot than the page's, one beyond the end, or damage what it holds), to see
//! that the pool serves nothing that was not verified; and its parts can be switched off one by one, to see
//! that the tests notice.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use disk::{Environment, File, OpenHow, Random, TaskFuture};
use page::PageId;
use page::extension::{BufferPoolExtension, Found, History, Offered, Source, Ticket};
use parking_lot::Mutex;
use redo::Lsn;

#[derive(Clone, Copy)]
struct Entry {
    lsn: u64,
    checksum: u32,
    slot: u64,
}

#[derive(Default)]
struct State {
    map: HashMap<PageId, Entry>,
    /// Invalidated, perhaps not durably.
    unsure: Vec<(PageId, Entry)>,
    slots: u64,
}

/// What is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Broken {
    #[default]
    Nothing,
    /// Changed pages stay.
    Invalidation,
    /// What recovery finds in the log stays.
    RecoveryInvalidation,
    /// The checkpoint moves although invalidations are not durable.
    BeforeCheckpoint,
    /// Whatever is read is believed.
    Verification,
}

/// See the module's essay.
pub(super) struct ReferenceTier {
    file: Arc<dyn File>,
    page_size: usize,
    state: Mutex<State>,
    /// One read in this many gets a lie; 0: none.
    lies: usize,
    random: Mutex<Random>,
    broken: Broken,
    pub(super) recovering: AtomicBool,
    pub(super) served: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) offers: Mutex<Vec<(PageId, History)>>,
    /// It takes no page at present.
    pub(super) takes_nothing: AtomicBool,
    /// What it says it takes of the pool's memory.
    pub(super) memory: AtomicUsize,
}

impl ReferenceTier {
    pub(super) fn new(env: &dyn Environment, path: &Path, page_size: usize) -> Self {
        Self {
            file: env.storage().open(path, OpenHow::CREATE).unwrap(),
            page_size,
            state: Mutex::default(),
            lies: 0,
            random: Mutex::new(Random::new(1)),
            broken: Broken::Nothing,
            recovering: AtomicBool::new(false),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            offers: Mutex::default(),
            takes_nothing: AtomicBool::new(false),
            memory: AtomicUsize::new(0),
        }
    }

    pub(super) fn lying(mut self, one_in: usize, seed: u64) -> Self {
        self.lies = one_in;
        self.random = Mutex::new(Random::new(seed));
        self
    }

    pub(super) fn broken(mut self, broken: Broken) -> Self {
        self.broken = broken;
        self
    }

    /// What is left of this tier after a crash, on the disk that is left.
    pub(super) fn after_crash(&self, env: &dyn Environment, path: &Path, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let state = self.state.lock();
        let mut map = state.map.clone();
        for (page, entry) in &state.unsure {
            if random.one_in(2) {
                map.insert(*page, *entry);
            }
        }
        let fresh = Self::new(env, path, self.page_size).lying(self.lies, seed).broken(self.broken);
        *fresh.state.lock() = State { map, unsure: Vec::new(), slots: state.slots };
        fresh.recovering.store(true, Ordering::Relaxed);
        fresh
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().map.len()
    }

    pub(super) fn has(&self, page: PageId) -> bool {
        self.state.lock().map.contains_key(&page)
    }

    fn place(&self, slot: u64) -> u64 {
        slot * self.page_size as u64
    }
}

impl BufferPoolExtension for ReferenceTier {
    fn find(&self, page: PageId) -> Option<Found> {
        let state = self.state.lock();
        let entry = *state.map.get(&page)?;
        let mut slot = entry.slot;
        if self.lies > 0 {
            let mut random = self.random.lock();
            if random.one_in(self.lies) {
                // One of the slots, or one that is not there.
                slot = random.below(state.slots as usize + 2) as u64;
            }
        }
        let ticket = Ticket { page, entry: [entry.lsn, u64::from(entry.checksum), slot], hold: None };
        Some(Found { file: self.file.clone(), offset: self.place(slot), ticket })
    }

    fn verify(&self, ticket: &Ticket, image: &[u8]) -> bool {
        let is_it = page::verify(image).is_ok()
            && page::identity(image) == ticket.page
            && page::lsn(image) == ticket.entry[0]
            && u64::from(page::checksum(image)) == ticket.entry[1];
        if is_it || self.broken == Broken::Verification {
            self.served.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        false
    }

    fn read_failed(&self, _ticket: Ticket, _error: &disk::Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn read_took(&self, _from: Source, _time: Duration) {}

    fn wants(&self, page: PageId, history: History) -> bool {
        self.offers.lock().push((page, history));
        !self.has(page)
    }

    fn offer(&self, page: PageId, lsn: Lsn, image: &[u8], _history: History) -> Offered {
        let mut copy = image.to_vec();
        page::seal(&mut copy, lsn);
        let mut state = self.state.lock();
        let entry = Entry { lsn: lsn.0, checksum: page::checksum(&copy), slot: state.slots };
        state.slots += 1;
        if self.file.write_at(&copy, self.place(entry.slot)).is_ok() {
            state.map.insert(page, entry);
        }
        Offered::Taken
    }

    fn invalidate(&self, page: PageId) {
        let recovering = self.recovering.load(Ordering::Relaxed);
        if self.broken == Broken::Invalidation && !recovering
            || self.broken == Broken::RecoveryInvalidation && recovering
        {
            return;
        }
        let mut state = self.state.lock();
        if let Some(entry) = state.map.remove(&page) {
            state.unsure.push((page, entry));
        }
    }

    fn invalidate_space(&self, space: u32) {
        self.state.lock().map.retain(|page, _| page.space != space);
    }

    fn before_checkpoint(&self, _lsn: Lsn) -> TaskFuture {
        if self.broken != Broken::BeforeCheckpoint {
            self.state.lock().unsure.clear();
        }
        Box::pin(std::future::ready(()))
    }

    fn is_on(&self) -> bool {
        true
    }

    fn takes_pages(&self) -> bool {
        !self.takes_nothing.load(Ordering::Relaxed)
    }

    fn memory_bytes(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }
}
