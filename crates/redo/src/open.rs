//! Creating and opening the file, and the two background tasks of a log.
//!
//! A new log is written under another name, synced and renamed, so that a file with the right name is always
//! complete. Its first part is written with real zeros: a commit then overwrites allocated blocks, and its
//! sync has no file metadata to write. The rest is prepared ahead of the log's end by a task; admissions
//! never promise room that is not prepared, so the task cannot overwrite log. Once all of the circle exists
//! the task ends.

use crate::layout::{CAPACITY_FLOOR, CHECKPOINT_BLOCK, CheckpointBlock, FRONT, Layout};
use crate::log::{Found, Options, Phase, RedoLog, State};
use crate::{Error, Flush, Lsn, Result};
use disk::{AlignedBuf, Environment, Event, File, IoBuf, OpenHow, write_async};
use std::path::Path;
use std::sync::{Arc, Weak};

/// Name of the log in the data directory.
pub(crate) const FILE_NAME: &str = "#untorn_redo";
const NEW_NAME: &str = "#untorn_redo.new";
/// One step of preparing.
const PREPARE_STEP: u64 = 4 << 20;
const ZEROS: usize = 1 << 20;

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
            area: Layout::area_of(options.capacity),
            origin: Lsn(options.begin_at.0.max(FRONT).next_multiple_of(CHECKPOINT_BLOCK as u64)),
            block: block_size(&options, &*file)?,
        };
        let prepared = layout.area.min(options.prewrite.max(PREPARE_STEP));
        file.write_zeros(0, FRONT + prepared)?;
        let epoch = options.first_epoch.max(1);
        let block = CheckpointBlock {
            layout,
            sequence: 1,
            epoch,
            epoch_floor: epoch,
            checkpoint: layout.origin,
            scan_start: layout.origin,
            flushed: layout.origin,
            reach: layout.reach(options.buffer_size),
            closed: false,
            owner: options.owner,
        };
        file.write_at(&block.encode(), block.place())?;
        file.sync_data()?;
        drop(file);
        storage.rename(&new_path, &path)?;
        storage.sync_dir(dir)?;
        let file = storage.open(&path, OpenHow::EXISTING)?;
        let found = Found { env: env.clone(), file, options, block, prepared, phase: Phase::Ready };
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
        let block = CheckpointBlock::newest(&front, &path)?;
        let prepared = block.layout.area.min((length - FRONT) & !4095);
        let end = block.flushed;
        if prepared < block.layout.area && end.since(block.layout.origin) > prepared {
            let why = format!(
                "it has {length} bytes, but the log reaches LSN {end}, for which it needs {}: it was cut short; restore it or the data directory",
                block.layout.file_size().min(block.layout.physical(end))
            );
            return Err(Error::Unusable { path, why });
        }
        let found = Found { env: env.clone(), file, options, block, prepared, phase: Phase::NeedsScan };
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

    /// Starts what runs in the background, once the end of the log is known.
    pub(crate) fn start_tasks(&self) {
        let wanted = {
            let mut state = self.state.lock();
            if state.prepared < state.layout.area {
                state.prepare_wanted = Some(Event::already_set());
            }
            state.prepare_wanted.is_some()
        };
        if wanted {
            self.env.spawn("redo log preparation", Box::pin(prepare(self.me.clone())));
        }
        let pause = self.options.background_sync;
        if !pause.is_zero() {
            self.env.spawn(
                "redo log sync",
                Box::pin(sync_now_and_then(self.me.clone(), self.env.clone(), pause)),
            );
        }
    }

    /// Prepares one step; `None` when there is nothing (more) to prepare.
    async fn prepare_step(&self, zeros: &Arc<AlignedBuf>) -> Option<()> {
        let (from, to) = {
            let state = self.state.lock();
            (state.prepared, state.layout.area.min(state.prepared + PREPARE_STEP))
        };
        let mut at = from;
        let mut complained = false;
        while at < to {
            let bytes = (to - at).min(ZEROS as u64);
            let buf = IoBuf::Shared(zeros.clone(), 0..bytes as usize);
            match write_async(&**self.env.storage(), &self.file, buf, FRONT + at, false).await {
                Ok(()) => at += bytes,
                Err(error) if is_full(&error) => {
                    // Nothing that was promised is lost: a reservation beyond the room that is left waits.
                    if !complained {
                        tracing::error!(%error, "the redo log file cannot grow; changes will wait when it is full");
                        complained = true;
                    }
                    self.env.sleep(FULL_RETRY).await;
                    if self.poisoned().is_some() || self.state.lock().phase >= Phase::Closing {
                        return None;
                    }
                }
                Err(error) => {
                    self.stop(&error.to_string());
                    return None;
                }
            }
        }
        // So that the size of the file is settled before the log needs it. By itself, because a sync of this
        // file that fails is the log's end whatever the reason: it may have been told of the loss of a
        // commit.
        if let Err(error) = disk::sync_async(&**self.env.storage(), &self.file).await {
            self.stop(&error.to_string());
            return None;
        }
        let mut state = self.state.lock();
        state.prepared = to;
        self.ends.ledger.set_file_limit(state.file_limit().0);
        (to < state.layout.area).then_some(())
    }
}

impl State {
    /// The event to set when the prepared part is nearly used up.
    pub(crate) fn prepare_if_due(&self, ahead: u64) -> Option<Event> {
        let event = self.prepare_wanted.as_ref()?;
        let used = self.groups.start.since(self.layout.origin);
        (self.prepared < used + ahead.max(PREPARE_STEP)).then(|| event.clone())
    }
}

/// How long a full file system is left alone before the log is made longer again.
const FULL_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

fn is_full(error: &disk::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// A task that panics must not leave its waiters waiting for ever.
fn stop_on_panic(log: &Weak<RedoLog>, what: &'static str) -> impl Drop + Send + use<> {
    let log = log.clone();
    disk::OnPanic::new(move || {
        if let Some(log) = log.upgrade() {
            log.stop(&format!("{what} ended by a panic"));
        }
    })
}

/// Prepares the circle step by step, ahead of the log.
async fn prepare(log: Weak<RedoLog>) {
    let _guard = stop_on_panic(&log, "its preparation");
    let zeros = Arc::new(AlignedBuf::zeroed(ZEROS));
    loop {
        // Only the event is held while waiting, so that the log can be dropped.
        let Some(wanted) = log.upgrade().and_then(|log| log.state.lock().prepare_wanted.clone()) else {
            return;
        };
        wanted.wait().await;
        let Some(log) = log.upgrade() else { return };
        if log.poisoned().is_some() {
            return;
        }
        let more = log.prepare_step(&zeros).await;
        let mut state = log.state.lock();
        state.prepare_wanted = more.map(|()| Event::new());
        if let Some(due) = state.prepare_if_due(log.options.prewrite) {
            due.set();
        }
    }
}

/// Bounds what a power cut may take from those who do not wait for durability.
async fn sync_now_and_then(log: Weak<RedoLog>, env: Arc<dyn Environment>, pause: std::time::Duration) {
    let _guard = stop_on_panic(&log, "its sync in the background");
    loop {
        env.sleep(pause).await;
        let Some(log) = log.upgrade() else { return };
        if log.poisoned().is_some() || log.state.lock().phase >= Phase::Closing {
            return;
        }
        // Nothing waits for it: an error stops the log, and the next one who asks hears of it.
        drop(log.flush(log.current(), Flush::Sync));
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
