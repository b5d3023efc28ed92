//! Creating and opening the file.
//!
//! A new log is written under another name, synced and renamed, so that a file with the right name is always
//! complete. It is small, and written with real zeros: a commit then overwrites allocated blocks, and its
//! sync has no file metadata to write. It becomes larger when that is needed ([`crate::growth`]).
//!
//! Earlier programs made a circle of the full capacity at once, and wrote the file past their log in the
//! first lap. Such a log is opened as one whose circle is as large as its file: it has not wrapped yet.
//! The copy of a log that a backup makes is like that, too.

use crate::checkpoint_block::CheckpointBlock;
use crate::layout::{AREA_MIN, CAPACITY_FLOOR, CHECKPOINT_BLOCK, FRONT, Layout};
use crate::log::{Found, Options, Phase, RedoLog};
use crate::{Error, Lsn, Result};
use disk::{AlignedBuf, Environment, File, OpenHow};
use std::path::Path;
use std::sync::Arc;

/// Name of the log in the data directory.
pub(crate) const FILE_NAME: &str = "#untorn_redo";
const NEW_NAME: &str = "#untorn_redo.new";

impl Options {
    /// The circle of the largest log.
    pub(crate) fn area_max(&self) -> u64 {
        Layout::area_of(self.capacity)
    }

    /// The circle of a new log.
    pub(crate) fn area_first(&self) -> u64 {
        Layout::area_of(self.first_size.max(AREA_MIN + FRONT)).min(self.area_max())
    }

    /// What an orderly shutdown leaves of the circle, which is empty then, if the log was never longer than
    /// `used` since the start: so much that such a log need not grow, which it does from two thirds on. So a
    /// server that is started again writes no zeros beside its load, and the directory of one that does
    /// little is small.
    pub(crate) fn area_at_rest(&self, used: u64) -> u64 {
        let used = (used + used / 2).next_multiple_of(CHECKPOINT_BLOCK as u64);
        Layout::area_of(self.capacity / 16 + FRONT).max(self.area_first()).max(used)
    }
}

impl RedoLog {
    /// Creates the log of a new data directory `dir`. Fails when there is one.
    pub fn create(env: &Arc<dyn Environment>, dir: &Path, options: Options) -> Result<Arc<RedoLog>> {
        check(&options)?;
        let storage = env.storage();
        let path = dir.join(FILE_NAME);
        if storage.exists(&path)? {
            let why = "it already exists; a new database needs an empty data directory".to_owned();
            return Err(Error::Unusable { path, why });
        }
        let new_path = dir.join(NEW_NAME);
        if storage.exists(&new_path)? {
            storage.remove(&new_path)?;
        }
        let file = storage.open(&new_path, OpenHow::CREATE_NEW)?;
        let layout = Layout {
            area: options.area_first(),
            origin: Lsn(options.begin_at.0.max(FRONT).next_multiple_of(CHECKPOINT_BLOCK as u64)),
            block: block_size(&options, &*file)?,
        };
        file.write_zeros(0, layout.file_size())?;
        let epoch = options.first_epoch.max(1);
        let block = CheckpointBlock {
            layout,
            sequence: 1,
            epoch,
            epoch_floor: epoch,
            checkpoint: layout.origin,
            scan_start: layout.origin,
            flushed: layout.origin,
            reach: layout.reach(&options),
            closed: false,
            owner: options.owner,
        };
        file.write_at(&block.encode(), block.place())?;
        file.sync_data()?;
        drop(file);
        storage.rename(&new_path, &path)?;
        storage.sync_dir(dir)?;
        let file = storage.open(&path, OpenHow::EXISTING)?;
        let area_max = options.area_max();
        let found = Found { env: env.clone(), file, options, block, area_max, phase: Phase::Ready };
        let log = RedoLog::assemble(found);
        log.start_tasks();
        Ok(log)
    }

    /// Opens the log of `dir`. [`RedoLog::scan`] must run before anything is appended.
    pub fn open(env: &Arc<dyn Environment>, dir: &Path, options: Options) -> Result<Arc<RedoLog>> {
        check(&options)?;
        let path = dir.join(FILE_NAME);
        let file = env.storage().open(&path, OpenHow::EXISTING)?;
        // What is read from here on must not vanish in a power cut after pages were recovered from it: an
        // earlier process may have left it in the page cache, unsynced.
        file.sync_data()?;
        let length = file.len()?;
        if length < FRONT {
            let why =
                format!("it has {length} bytes, less than its own header: restore it or the data directory");
            return Err(Error::Unusable { path, why });
        }
        let mut front = AlignedBuf::zeroed(FRONT as usize);
        file.read_at(&mut front, 0)?;
        let mut block = CheckpointBlock::newest(&front, &path)?;
        let area_max = options.area_max().max(block.layout.area);
        let exists = (length - FRONT) & !(CHECKPOINT_BLOCK as u64 - 1);
        if exists < block.layout.area {
            let end = block.flushed;
            // One that was closed starts over at its front.
            if !block.closed && end.since(block.layout.origin) > exists {
                let why = format!(
                    "it has {length} bytes, but the log reaches LSN {end}, for which it needs {}: it was cut short; restore it or the data directory",
                    block.layout.file_size().min(block.layout.physical(end))
                );
                return Err(Error::Unusable { path, why });
            }
            block.layout.area = exists.max(AREA_MIN);
        }
        let found = Found { env: env.clone(), file, options, block, area_max, phase: Phase::NeedsScan };
        Ok(RedoLog::assemble(found))
    }

    /// Where the log of `dir` lies.
    pub fn path(dir: &Path) -> std::path::PathBuf {
        dir.join(FILE_NAME)
    }

    /// Whether `dir` has a log.
    pub fn exists(env: &Arc<dyn Environment>, dir: &Path) -> Result<bool> {
        Ok(env.storage().exists(&dir.join(FILE_NAME))?)
    }
}

fn check(options: &Options) -> Result<()> {
    if options.capacity < CAPACITY_FLOOR {
        return Err(Error::Setting(format!(
            "innodb_redo_log_capacity is {}; the redo log needs at least {CAPACITY_FLOOR} bytes",
            options.capacity
        )));
    }
    if options.buffer_size < 64 << 10 {
        return Err(Error::Setting(format!(
            "innodb_log_buffer_size is {}; at least 65536 bytes are needed",
            options.buffer_size
        )));
    }
    Ok(())
}

/// 512 bytes, or what direct I/O asks for.
pub(crate) fn block_size(options: &Options, file: &dyn File) -> Result<u64> {
    let wanted = options.block_size.unwrap_or(512).max(file.io_alignment());
    match wanted {
        0..=512 => Ok(512),
        513..=4096 => Ok(4096),
        _ => Err(Error::Setting(format!(
            "{} needs direct I/O in units of {wanted} bytes; the redo log supports up to 4096",
            file.path().display()
        ))),
    }
}
