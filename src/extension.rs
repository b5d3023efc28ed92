//! The buffer pool extension of a database: a fast local disk as the second half of the buffer pool.
//!
//! The tier itself is the crate `bpe`, and its hooks are in the buffer pool; this module decides when things
//! happen. Open: the tier is created before recovery, so that recovery can tell it about every page in the
//! log, and serves reads afterwards. Close: its map is completed after the last checkpoint. In between it may
//! be switched, moved and resized at any time; the work is done in the background, and pages lost by it are
//! read from the data files again.
//!
//! A kept tier belongs to one data directory: to its identity, a random number in the catalog, and to the
//! directory's path, so that a copy of the directory does not take the original's tier for its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Environment;
use page::BufferPoolExtension;
use pagestore::{PageSize, PageStore, RecoverySummary};
use parking_lot::Mutex;

use crate::database::Database;
use crate::extension_size::{Planned, Room, plan};
use crate::forced_recovery::Level;
use crate::options::Options;

pub use bpe::{
    Change as ExtensionChange, Restart as ExtensionRestart, State as ExtensionState,
    Status as ExtensionStatus,
};

/// The tier's tables may take this share of the buffer pool's memory, at most.
const MEMORY_SHARE: u64 = 4;

/// Bytes of memory a tier may take beside a pool of that size.
fn memory_max(pool_bytes: u64) -> usize {
    (pool_bytes / MEMORY_SHARE) as usize
}

/// Settings of the buffer pool extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionOptions {
    /// The file (`untorn_bpe_file`), on a disk that is clearly faster than the data's; relative to the data
    /// directory. `None`: no extension.
    pub file: Option<PathBuf>,
    /// Bytes of the file (`untorn_bpe_size`); 0 is eight times the buffer pool, and at most half of the room
    /// that the file's disk has for it then.
    pub size_bytes: u64,
    /// Whether it is in use (`untorn_bpe`).
    pub enabled: bool,
    /// What happens to its pages at a restart (`untorn_bpe_restart`).
    pub restart: ExtensionRestart,
    /// Bytes that may be written to it per second (`untorn_bpe_write_budget`); 0 is no limit.
    pub write_budget: u64,
}

impl Default for ExtensionOptions {
    fn default() -> Self {
        Self { file: None, size_bytes: 0, enabled: true, restart: ExtensionRestart::Keep, write_budget: 0 }
    }
}

/// What was asked for, at open or since.
struct Asked {
    file: Option<PathBuf>,
    size_bytes: u64,
}

/// The tier of an open database, and how to find its way about.
pub(crate) struct Extension {
    tier: Arc<bpe::Tier>,
    directory: PathBuf,
    asked: Mutex<Asked>,
    room: Room,
    /// How the size at open was found.
    planned: Planned,
}

impl Extension {
    /// Opens the tier, which serves nothing yet.
    pub fn open(
        environment: &Arc<dyn Environment>,
        identity: &str,
        page_size: PageSize,
        options: &Options,
        room: Room,
    ) -> Extension {
        let wanted = &options.extension;
        let mut settings = bpe::Options::new(page_size, identity_at(identity, &options.directory));
        settings.file = wanted.file.as_ref().map(|file| options.directory.join(file));
        let free = settings.file.as_deref().and_then(room);
        let planned = plan(wanted.size_bytes, options.buffer_pool_bytes, free);
        settings.size = planned.bytes;
        // A forced recovery may leave changes out that the tier's pages have.
        settings.enabled = wanted.enabled && !Level(options.force_recovery).skips_damaged();
        settings.restart = wanted.restart;
        settings.write_budget = wanted.write_budget;
        settings.memory_max = Some(memory_max(options.buffer_pool_bytes));
        let asked = Asked { file: settings.file.clone(), size_bytes: wanted.size_bytes };
        Extension {
            tier: bpe::Tier::open(environment.clone(), settings),
            directory: options.directory.clone(),
            asked: Mutex::new(asked),
            room,
            planned,
        }
    }

    /// Notes what is asked for now, and finds the size for it.
    fn plan(&self, pool_bytes: u64, change: impl FnOnce(&mut Asked)) -> (Option<PathBuf>, u64) {
        let mut asked = self.asked.lock();
        change(&mut asked);
        let planned = plan(asked.size_bytes, pool_bytes, asked.file.as_deref().and_then(self.room));
        if let Some(file) = &asked.file {
            tracing::info!(
                "the buffer pool extension {}: {} MiB ({})",
                file.display(),
                planned.bytes >> 20,
                planned.why
            );
        }
        (asked.file.clone(), planned.bytes)
    }

    /// Bytes of memory it takes out of the buffer pool's.
    pub fn memory_bytes(&self) -> u64 {
        self.tier.status().memory_bytes
    }

    /// The buffer pool has this size now.
    pub fn pool_resized(&self, pool_bytes: u64) {
        self.tier.set_memory_max(memory_max(pool_bytes));
    }

    /// Gives it to the store, before recovery, if it is in use.
    pub fn attach(&self, store: &PageStore) {
        if self.tier.status().file.is_some() {
            self.use_in(store);
        }
    }

    fn use_in(&self, store: &PageStore) {
        let tier: Arc<dyn BufferPoolExtension> = self.tier.clone();
        store.set_extension(Some(tier));
    }

    /// Recovery is over.
    pub fn recovered(&self, summary: &RecoverySummary) {
        self.tier.recovered(summary.checkpoint, summary.end, summary.run);
    }

    /// For the start-up log: nothing without a tier.
    pub fn describe(&self) -> Option<String> {
        const MIB: u64 = 1 << 20;
        let status = self.tier.status();
        match status.state {
            bpe::State::Off => None,
            bpe::State::Failed(_) if self.planned.bytes == 0 => Some(format!("OFF: {}", self.planned.why)),
            bpe::State::Failed(why) => Some(format!("OFF: {why}")),
            _ => Some(format!(
                "{}, {} MiB ({}{}; {} pages), {} kept, {:.1} MiB of the buffer pool's memory",
                status.file.unwrap_or_default().display(),
                status.size_bytes / MIB,
                self.planned.why,
                self.cut_for_memory(status.size_bytes),
                status.pages_max,
                status.restored,
                status.memory_bytes as f64 / MIB as f64
            )),
        }
    }

    /// That the tier is clearly smaller than planned, and why. A kept tier is of whole regions, and so is a
    /// new one.
    fn cut_for_memory(&self, bytes: u64) -> &'static str {
        let is_cut = bytes < self.planned.bytes / 10 * 9;
        if is_cut { ", as far as a quarter of the buffer pool's memory describes it" } else { "" }
    }

    /// The last checkpoint is at the end of the log.
    pub async fn close(&self, end: pagestore::Lsn) {
        self.tier.close_clean(end).await;
    }
}

/// The identity of a data directory at this place.
fn identity_at(identity: &str, directory: &Path) -> [u8; 16] {
    // Two FNV-1a hashes of 64 bits: to tell directories apart, not to withstand anybody.
    let hash = |start: u64| {
        let bytes = identity.bytes().chain(directory.as_os_str().as_encoded_bytes().iter().copied());
        bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let mut both = [0; 16];
    both[..8].copy_from_slice(&hash(0xcbf2_9ce4_8422_2325).to_be_bytes());
    both[8..].copy_from_slice(&hash(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    both
}

impl Database {
    /// The state and counters of the buffer pool extension.
    pub fn extension(&self) -> ExtensionStatus {
        self.0.extension.tier.status()
    }

    /// Switches the buffer pool extension on (empty) or off, in the background.
    pub fn switch_extension(&self, on: bool) -> ExtensionChange {
        self.use_extension();
        let tier = &self.0.extension;
        if on && tier.tier.status().file.is_none() {
            // The room may be another one than when it was last on.
            let (_, size) = tier.plan(self.buffer_pool_bytes(), |_| {});
            tier.tier.resize(size);
        }
        tier.tier.switch(on)
    }

    /// Moves the buffer pool extension to another file (relative to the data directory), in the background.
    /// The new one starts empty; `None` switches the extension off.
    pub fn set_extension_file(&self, file: Option<&Path>) -> ExtensionChange {
        self.use_extension();
        let tier = &self.0.extension;
        let file = file.map(|file| tier.directory.join(file));
        let (file, size) = tier.plan(self.buffer_pool_bytes(), |asked| asked.file = file);
        tier.tier.move_to(file, size)
    }

    /// Resizes the buffer pool extension in the background (0: eight times the current buffer pool, at most
    /// half of the room there is). Pages that still fit stay. When it is done, the memory for its tables is
    /// taken from or returned to the buffer pool.
    pub fn resize_extension(&self, bytes: u64) -> ExtensionChange {
        self.use_extension();
        let tier = &self.0.extension;
        let (_, size) = tier.plan(self.buffer_pool_bytes(), |asked| asked.size_bytes = bytes);
        tier.tier.resize(size)
    }

    /// Sets how many bytes per second may be written to the buffer pool extension; 0 is no limit.
    pub fn set_extension_write_budget(&self, bytes_per_second: u64) {
        self.0.extension.tier.set_write_budget(bytes_per_second);
    }

    /// From the first change on the store knows the tier: until then it had no page.
    fn use_extension(&self) {
        if self.0.store.extension().is_none() {
            self.0.extension.use_in(&self.0.store);
        }
    }
}
