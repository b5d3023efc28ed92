//! The model: pages with versions, which of them are in the pool, a redo log, a checkpoint, and what a crash
//! leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, Random, SimulatedEnvironment, SimulatedStorage, Storage, read_async};
use page::extension::{BufferPoolExtension, Found, History, Offered};
use page::{Lsn, PageId, PageSize};

use crate::options::{Options, Restart};
use crate::status::Status;
use crate::tier::Tier;

pub(super) const PAGE_SIZE: PageSize = match PageSize::new(4096) {
    Some(size) => size,
    None => unreachable!(),
};
pub(super) const REGION_BYTES: usize = 256 << 10;
pub(super) const SLOTS_PER_REGION: usize = REGION_BYTES / 4096;
/// The pool said that the page was wanted again.
pub(super) const WANTED: History =
    History { touched_again: true, read_ahead_unused: false, from_scan: false };

/// A page of the model.
#[derive(Clone, Debug, Default)]
struct Model {
    /// End LSNs of its changes, oldest first; the first is how the history found it.
    versions: Vec<u64>,
    in_pool: bool,
    /// Start LSN of the first change that is not in the data file.
    dirty_since: Option<u64>,
}

impl Model {
    fn lsn(&self) -> u64 {
        *self.versions.last().unwrap()
    }
}

/// One change in the log.
#[derive(Clone, Copy, Debug)]
struct Change {
    start: u64,
    end: u64,
    page: PageId,
}

/// See the module's essay.
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) env: Arc<SimulatedEnvironment>,
    pub(super) tier: Arc<Tier>,
    pub(super) options: Options,
    pub(super) random: Random,
    pages: BTreeMap<PageId, Model>,
    log: Vec<Change>,
    /// End of the log, and how far it is durable.
    lsn: u64,
    durable: u64,
    checkpoint: Arc<AtomicU64>,
    run: u32,
    /// Pages that came from the tier and were right.
    pub(super) served: u64,
}

/// The bytes of a version of a page, as they lie in its file.
pub(super) fn image(id: PageId, lsn: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_SIZE.bytes()];
    let mut random = Random::new(lsn ^ u64::from(id.page) << 20 ^ u64::from(id.space) << 50);
    for word in bytes[page::HEADER_LEN..].chunks_mut(8) {
        let number = random.next_u64().to_le_bytes();
        word.copy_from_slice(&number[..word.len()]);
    }
    bytes[page::PAGE_NUMBER..page::PAGE_NUMBER + 4].copy_from_slice(&id.page.to_be_bytes());
    bytes[page::SPACE_ID..page::SPACE_ID + 4].copy_from_slice(&id.space.to_be_bytes());
    crate::image::seal(&mut bytes, Lsn(lsn));
    bytes
}

pub(super) fn options(regions: usize) -> Options {
    Options {
        file: Some(PathBuf::from("fast/tier")),
        size: ((regions + 1) * REGION_BYTES) as u64,
        enabled: true,
        region_bytes: Some(REGION_BYTES),
        ..Options::new(PAGE_SIZE, *b"database of test")
    }
}

impl World {
    /// A world of `pages` pages in two tablespaces, with an empty tier.
    pub(super) fn new(seed: u64, pages: u32, options: Options) -> World {
        let env = SimulatedEnvironment::new(seed);
        env.disk().create_dir_all(Path::new("fast")).unwrap();
        let tier = Tier::open(env.clone(), options.clone());
        tier.recovered(Lsn(1000), Lsn(1000), 1);
        let page = |number: u32| {
            (PageId::new(7 + number % 2, number / 2), Model { versions: vec![900], ..Model::default() })
        };
        World {
            seed,
            env,
            tier,
            options,
            random: Random::new(seed ^ 0xB9E),
            pages: (0..pages).map(page).collect(),
            log: Vec::new(),
            lsn: 1000,
            durable: 1000,
            checkpoint: Arc::new(AtomicU64::new(1000)),
            run: 1,
            served: 0,
        }
    }

    pub(super) fn status(&self) -> Status {
        self.tier.status()
    }

    pub(super) fn all(&self) -> Vec<PageId> {
        self.pages.keys().copied().collect()
    }

    pub(super) fn any(&mut self) -> PageId {
        let at = self.random.below(self.pages.len());
        *self.pages.keys().nth(at).unwrap()
    }

    /// End of the log, and its run.
    pub(super) fn end(&self) -> u64 {
        self.lsn
    }

    pub(super) fn run(&self) -> u32 {
        self.run
    }

    pub(super) fn lsn_of(&self, id: PageId) -> u64 {
        self.pages[&id].lsn()
    }

    /// Brings a page into the pool: from the tier, where it is compared with the model, or from its data
    /// file.
    pub(super) fn access(&mut self, id: PageId) -> Result<(), String> {
        if self.pages[&id].in_pool {
            return Ok(());
        }
        self.look(id)?;
        self.pages.get_mut(&id).unwrap().in_pool = true;
        Ok(())
    }

    /// Reads a page from the tier, if it is there. Whether it was used.
    pub(super) fn look(&mut self, id: PageId) -> Result<bool, String> {
        let Some(Found { file, offset, ticket }) = self.tier.find(id) else { return Ok(false) };
        let storage = self.env.storage().clone();
        let read = read_async(&*storage, &file, offset, PAGE_SIZE.bytes());
        let bytes = match self.env.run_until_complete(read) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.tier.read_failed(ticket, &error);
                return Ok(false);
            }
        };
        if !self.tier.verify(&ticket, &bytes) {
            return Ok(false);
        }
        let lsn = self.pages[&id].lsn();
        if bytes[..] != image(id, lsn)[..] {
            let found = (page::identity(&bytes), page::lsn(&bytes));
            return Err(format!("seed {}: page {id} at LSN {lsn} was served as {found:?}", self.seed));
        }
        self.served += 1;
        Ok(true)
    }

    /// Looks at every page that is not in the pool.
    pub(super) fn look_at_all(&mut self) -> Result<usize, String> {
        let mut used = 0;
        for id in self.all() {
            if !self.pages[&id].in_pool {
                used += usize::from(self.look(id)?);
            }
        }
        Ok(used)
    }

    /// Changes a page, which comes into the pool for that.
    pub(super) fn change(&mut self, id: PageId) -> Result<(), String> {
        self.access(id)?;
        self.change_unread(id);
        Ok(())
    }

    /// Changes a page that comes into the pool without anything else happening meanwhile, as from its data
    /// file.
    pub(super) fn change_unread(&mut self, id: PageId) {
        self.pages.get_mut(&id).unwrap().in_pool = true;
        self.tier.invalidate(id);
        let start = self.lsn;
        self.lsn += 1 + self.random.below(300) as u64;
        self.log.push(Change { start, end: self.lsn, page: id });
        let model = self.pages.get_mut(&id).unwrap();
        model.versions.push(self.lsn);
        model.dirty_since.get_or_insert(start);
    }

    /// Makes the log durable to its end.
    pub(super) fn write_log(&mut self) {
        self.durable = self.lsn;
    }

    /// Writes a page to its file, after the log.
    pub(super) fn flush(&mut self, id: PageId) {
        let model = self.pages.get_mut(&id).unwrap();
        if model.dirty_since.take().is_some() {
            self.durable = self.durable.max(model.lsn());
        }
    }

    /// Offers a page, clean by then, and takes it out of the pool.
    pub(super) fn evict(&mut self, id: PageId, history: History) -> Option<Offered> {
        self.flush(id);
        let model = self.pages.get_mut(&id).unwrap();
        if !model.in_pool {
            return None;
        }
        model.in_pool = false;
        let lsn = model.lsn();
        // In memory the LSN is right and the checksum is not.
        let mut bytes = image(id, lsn);
        bytes[page::CHECKSUM..page::PAGE_NUMBER].fill(0xEE);
        Some(self.tier.offer(id, Lsn(lsn), &bytes, history))
    }

    /// Puts pages into the tier and waits until they can be found.
    pub(super) fn fill(&mut self, ids: &[PageId]) {
        for id in ids {
            self.access(*id).unwrap();
            self.evict(*id, WANTED);
            self.env.run_until_idle();
        }
        self.settle();
    }

    /// Lets everything under way come to its end.
    pub(super) fn settle(&self) {
        self.env.advance(Duration::from_secs(3));
    }

    /// Moves the checkpoint in the background, as far as it may.
    pub(super) fn start_checkpoint(&mut self) {
        let oldest = self.pages.values().filter_map(|model| model.dirty_since).min();
        let target = oldest.unwrap_or(self.lsn);
        if target <= self.checkpoint.load(Ordering::Relaxed) {
            return;
        }
        let covered = self.tier.before_checkpoint(Lsn(target));
        // The log is made durable up to the checkpoint after the tier was asked.
        let checkpoint = self.checkpoint.clone();
        self.env.spawn(
            "checkpoint",
            Box::pin(async move {
                covered.await;
                checkpoint.fetch_max(target, Ordering::Relaxed);
            }),
        );
    }

    /// The end of the log that a crash leaves: anything from what is durable on.
    fn crashed_end(&mut self) -> u64 {
        let durable = self.durable.max(self.checkpoint.load(Ordering::Relaxed));
        let ends: Vec<u64> = self.log.iter().map(|change| change.end).filter(|end| *end > durable).collect();
        match ends.len() {
            0 => durable,
            count => [&[durable], &ends[..]].concat()[self.random.below(count + 1)],
        }
    }

    /// The power fails, and the database opens again, with the tier or without it.
    pub(super) fn crash(&mut self, with_tier: bool) {
        let seed = self.random.next_u64();
        let disk = self.env.disk().crash(seed);
        let end = self.crashed_end();
        self.reopen(disk, end, with_tier);
    }

    /// The process is killed: what it wrote stays, what was on its way may be lost.
    pub(super) fn kill(&mut self, with_tier: bool) {
        self.env.run_until_idle();
        let end = self.crashed_end();
        let disk = self.env.disk().clone();
        self.reopen(disk, end, with_tier);
    }

    /// Stops cleanly and starts again.
    pub(super) fn restart(&mut self) {
        for id in self.all() {
            self.flush(id);
        }
        self.durable = self.lsn;
        let (tier, lsn) = (self.tier.clone(), Lsn(self.lsn));
        self.env.run_until_complete(async {
            tier.before_checkpoint(lsn).await;
            tier.close_clean(lsn).await;
        });
        self.checkpoint.store(self.lsn, Ordering::Relaxed);
        let disk = self.env.disk().clone();
        self.reopen(disk, self.lsn, true);
    }

    fn reopen(&mut self, disk: Arc<SimulatedStorage>, end: u64, with_tier: bool) {
        self.env.shutdown();
        self.seed = self.seed.wrapping_add(1);
        self.env = SimulatedEnvironment::with_storage(self.seed, disk);
        let options = Options { enabled: with_tier, ..self.options.clone() };
        // The old one first: it holds the lock of the file.
        self.tier = Tier::open(SimulatedEnvironment::new(0), Options::new(PAGE_SIZE, [0; 16]));
        self.tier = Tier::open(self.env.clone(), options);
        let checkpoint = self.checkpoint.load(Ordering::Relaxed);
        self.log.retain(|change| change.end <= end);
        (self.lsn, self.durable) = (end, end);
        self.checkpoint = Arc::new(AtomicU64::new(checkpoint));
        for model in self.pages.values_mut() {
            model.versions.retain(|lsn| *lsn <= end);
            model.in_pool = false;
            model.dirty_since = None;
        }
        // Recovery: every page found in the log is dropped, read from its file, and dirty.
        for change in self.log.clone() {
            if change.start >= checkpoint {
                self.tier.invalidate(change.page);
                let model = self.pages.get_mut(&change.page).unwrap();
                model.in_pool = true;
                model.dirty_since.get_or_insert(change.start);
            }
        }
        self.run += 1;
        self.tier.recovered(Lsn(checkpoint), Lsn(end), self.run);
    }

    /// One step of a history: anything may happen but a crash.
    pub(super) fn step(&mut self) -> Result<(), String> {
        let id = self.any();
        match self.random.below(100) {
            0..35 => self.access(id)?,
            35..50 => self.change(id)?,
            50..60 => self.flush(id),
            60..90 => {
                let history = History {
                    touched_again: !self.random.one_in(4),
                    read_ahead_unused: self.random.one_in(10),
                    from_scan: self.random.one_in(10),
                };
                self.evict(id, history);
            }
            90..93 => self.start_checkpoint(),
            93..96 => self.env.advance(Duration::from_millis(self.random.below(400) as u64)),
            _ => {
                for _ in 0..self.random.below(20) {
                    self.env.step();
                }
            }
        }
        Ok(())
    }

    /// An engine that keeps nothing.
    pub(super) fn discarding(options: Options) -> Options {
        Options { restart: Restart::Discard, ..options }
    }
}
