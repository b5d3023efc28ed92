//! The copy of an open database, step by step; why it is complete is said in [`crate::backup`].

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use disk::{AlignedBuf, File, IoBuf, OpenHow, Storage, read_async, sync_async, write_async};
use page::PageId;
use pagestore::PageSize;
use redo::{Archive, Flush, RedoLog};

#[cfg(test)]
use super::Broken;
use super::gate::BackupPass;
use super::hold::{Holds, Over};
use super::incremental::{Destination, OpenBase};
use super::manifest::{FileEntry, Manifest, TablespaceEntry};
use super::page_list::{PageListWriter, PageMark};
use super::{
    BackupOptions, BackupProgress, BackupReport, begin_directory, failed, finish_directory,
    is_there_and_empty,
};
use crate::catalog::CATALOG_FILE;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::export::Still;
use crate::file_names::file_name;
use crate::metadata_lock_wait::wait_until;
use crate::retry::retry;
use crate::small_file::read_whole;

/// Bytes of a tablespace read at once.
const STRETCH: u64 = 1 << 20;
/// How often a page is read again that may be torn because it is being written, and the pause before that.
const REREADS: (u32, Duration) = (20, Duration::from_millis(1));
/// The longest pause of a copy that keeps to a speed, and how often the redo log is looked at.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Bytes of a redo log before its circle.
const ZEROS: [u8; 4096] = [0; 4096];

/// Makes the copy.
pub(super) async fn run(
    database: &Database,
    target: PathBuf,
    options: &BackupOptions,
    holds: &Arc<Holds>,
) -> Result<BackupReport> {
    let name = target.clone();
    let outcome = make(database, target, options, holds).await;
    // Whatever step it has failed at.
    match holds.broken() {
        Some(why) if outcome.is_err() => Err(why.error(&name)),
        _ => {
            holds.let_go(Over::Copied);
            outcome
        }
    }
}

async fn make(
    database: &Database,
    target: PathBuf,
    options: &BackupOptions,
    holds: &Arc<Holds>,
) -> Result<BackupReport> {
    let inner = &database.0;
    if inner.forced_recovery.refuses_row_changes() {
        return Err(Error::ForcedRecovery(inner.forced_recovery.0));
    }
    let storage = &**inner.environment.storage();
    refuse_one_in_the_other(storage, &target, &inner.directory)?;
    // Before anybody waits; those who wait have made nothing that would be in the way of another try.
    is_there_and_empty(storage, &target)?;
    let base = match &options.since {
        None => None,
        Some(directory) => {
            let go_on = || {
                database.refuse_after_close()?;
                holds.broken().map_or(Ok(()), |why| Err(why.error(&target)))
            };
            let page_bytes = inner.store.page_size().bytes();
            let base = OpenBase::open(storage, directory, &target, page_bytes, &go_on).await?;
            for directory in base.directories() {
                refuse_one_in_the_other(storage, &target, directory)?;
            }
            Some(base)
        }
    };
    holds.keep_pass(keep_definitions_out(database, options.timeout).await?);
    if let Some(why) = holds.broken() {
        return Err(why.error(&target));
    }
    begin_directory(storage, &target, &inner.directory)?;
    let mut copying = Copying::begin(database, target, options, holds, base.as_ref())?;
    let spaces = copying.spaces()?;
    holds.keep_still(spaces.iter().map(|space| Still::of(&inner.store, space.id)).collect());
    // Before the log, so that the marks it speaks of are in the files at the checkpoint.
    let catalog = inner.catalog.file_bytes()?;
    let archive = inner.redo.archive()?;
    holds.keep_log(archive.hold());
    let mut log = LogCopy::begin(archive, storage, &copying.target)?;
    #[cfg(test)]
    if options.broken == Some(Broken::DefinitionsGoOn) {
        holds.let_definitions_in();
    }
    #[cfg(test)]
    log.end_now_if(options.broken == Some(Broken::LogEndsAtStart), storage).await?;
    copying.copy_spaces(&spaces, &mut log).await?;
    let end = inner.redo.current();
    retry(|| inner.redo.flush(end, Flush::Sync)).await?;
    let end = inner.redo.flushed();
    while log.archive.end() < end && !log.is_cut() {
        copying.refuse_when_over()?;
        log.follow(storage).await?;
    }
    // Definitions may have changed if it was let go before.
    copying.refuse_when_over()?;
    holds.let_go(Over::Copied);
    copying.finish(log, &catalog).await
}

/// Two directories, by whatever names.
pub(super) fn refuse_one_in_the_other(storage: &dyn Storage, target: &Path, source: &Path) -> Result<()> {
    let (real, other) = (storage.real_path(target)?, storage.real_path(source)?);
    if real.starts_with(&other) || other.starts_with(&real) {
        let why = format!("it must not lie in {}, nor around it: choose another directory", source.display());
        return Err(failed(target, why));
    }
    Ok(())
}

/// Goes on with both until both are done, or one has failed.
async fn both(
    one: impl Future<Output = Result<()>> + Send,
    other: impl Future<Output = Result<()>> + Send,
) -> Result<()> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut one_is_over, mut other_is_over) = (false, false);
    poll_fn(move |context| {
        for (part, is_over) in [
            (one.as_mut() as Pin<&mut (dyn Future<Output = Result<()>> + Send)>, &mut one_is_over),
            (other.as_mut(), &mut other_is_over),
        ] {
            if *is_over {
                continue;
            }
            match part.poll(context) {
                Poll::Ready(Ok(())) => *is_over = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if one_is_over && other_is_over { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

async fn keep_definitions_out(database: &Database, timeout: Duration) -> Result<BackupPass> {
    let environment = &*database.0.environment;
    let deadline = environment.now().saturating_add(timeout);
    loop {
        match database.0.tables.gate.pass_backup() {
            Ok(pass) => return Ok(pass),
            Err(wait) => wait_until(environment, wait, deadline, None).await?,
        }
    }
}

/// A tablespace to be copied.
struct Tablespace {
    id: u32,
    file: Arc<dyn File>,
    /// In the data directory.
    path: PathBuf,
}

/// One backup under way.
struct Copying<'b> {
    database: &'b Database,
    storage: &'b dyn Storage,
    page_size: PageSize,
    target: PathBuf,
    options: &'b BackupOptions,
    holds: &'b Holds,
    started: Duration,
    progress: BackupProgress,
    /// In the copy, without itself.
    directories: BTreeSet<PathBuf>,
    files: Vec<FileEntry>,
    base: Option<&'b OpenBase>,
    page_list: PageListWriter,
}

impl<'b> Copying<'b> {
    fn begin(
        database: &'b Database,
        target: PathBuf,
        options: &'b BackupOptions,
        holds: &'b Holds,
        base: Option<&'b OpenBase>,
    ) -> Result<Copying<'b>> {
        let environment = &database.0.environment;
        let storage = &**environment.storage();
        Ok(Copying {
            database,
            storage,
            base,
            page_list: PageListWriter::create(storage, &target)?,
            page_size: database.0.store.page_size(),
            directories: BTreeSet::new(),
            target,
            options,
            holds,
            started: environment.now(),
            progress: BackupProgress::default(),
            files: Vec::new(),
        })
    }

    fn refuse_when_over(&self) -> Result<()> {
        self.database.refuse_after_close()?;
        self.holds.broken().map_or(Ok(()), |why| Err(why.error(&self.target)))
    }

    /// Every tablespace, with its file where it is now; makes the directories.
    fn spaces(&mut self) -> Result<Vec<Tablespace>> {
        let store = &self.database.0.store;
        let catalog = self.database.0.catalog.snapshot();
        let tables = catalog.tables().filter(|(_, _, def)| !def.discarded).map(|(_, _, def)| def.space);
        // Also of those without tables, which have no file that brings it along.
        for name in catalog.databases.keys() {
            self.create_directory(Path::new(&*file_name(name)))?;
        }
        let mut spaces = Vec::new();
        for id in std::iter::once(txn::UNDO_SPACE).chain(tables) {
            let file = store.file_of(id)?;
            let info = store.space(id).ok_or(pagestore::Error::NoSuchSpace(id))?;
            let path = info.path.strip_prefix(&self.database.0.directory);
            let path = path.map_err(|_| failed(&info.path, "it lies outside the data directory"))?;
            self.progress.bytes_expected += file.len()?;
            spaces.push(Tablespace { id, file, path: path.to_owned() });
        }
        Ok(spaces)
    }

    /// A new file of the copy.
    fn create(&mut self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        if let Some(parent) = path.parent() {
            self.create_directory(parent)?;
        }
        Ok(self.storage.open(&self.target.join(path), how)?)
    }

    /// A directory of the copy, open to nobody to whom that of the source is not.
    fn create_directory(&mut self, path: &Path) -> Result<()> {
        if path.as_os_str().is_empty() || self.directories.contains(path) {
            return Ok(());
        }
        let (copy, like) = (self.target.join(path), self.database.0.directory.join(path));
        self.storage.create_dir_all(&copy)?;
        if self.storage.exists(&like)? {
            self.storage.restrict_like(&copy, &like)?;
        }
        self.directories.insert(path.to_owned());
        Ok(())
    }

    /// All of them, and beside them the log as it becomes durable.
    async fn copy_spaces(&mut self, spaces: &[Tablespace], log: &mut LogCopy) -> Result<()> {
        let (pages_over, storage) = (AtomicBool::new(false), self.storage);
        let environment = self.database.0.environment.clone();
        let pages = async {
            for space in spaces {
                self.copy_space(space).await?;
            }
            pages_over.store(true, Ordering::Relaxed);
            Ok(())
        };
        let redo = async {
            while !pages_over.load(Ordering::Relaxed) {
                log.follow(storage).await?;
                environment.sleep(PAUSE_MAX).await;
            }
            Ok(())
        };
        both(pages, redo).await
    }

    async fn copy_space(&mut self, space: &Tablespace) -> Result<()> {
        if let Some(parent) = space.path.parent() {
            self.create_directory(parent)?;
        }
        let target = self.target.join(&space.path);
        #[cfg(test)]
        let mut copy = Destination::of(self.base, self.storage, space.id, &target, self.options.broken)?;
        #[cfg(not(test))]
        let mut copy = Destination::of(self.base, self.storage, space.id, &target)?;
        let (page_bytes, marks_at) = (self.page_size.bytes(), self.page_list.position());
        let (mut at, mut sum) = (0, 0);
        loop {
            self.refuse_when_over()?;
            // Asked each time: it grows, and a cut that had begun before may end now.
            let whole = space.file.len()? / page_bytes as u64 * page_bytes as u64;
            let left = whole.saturating_sub(at);
            if left == 0 {
                break;
            }
            let Some(stretch) = self.read_stretch(space, at, left.min(STRETCH)).await? else { continue };
            let bytes = stretch.len() as u64;
            sum = crc32c::crc32c_append(sum, &stretch);
            let marks: Vec<PageMark> = stretch.chunks_exact(page_bytes).map(PageMark::of).collect();
            copy.take(self.storage, at, stretch, &marks).await?;
            self.page_list.push(self.storage, &marks).await?;
            at += bytes;
            self.copied(bytes).await?;
        }
        let changed = copy.finish(self.storage).await?;
        let pages = (at >> self.page_size.shift()) as u32;
        let tablespace = Some(TablespaceEntry { id: space.id, pages, marks_at });
        let whole = FileEntry::whole(space.path.clone(), at, sum);
        self.files.push(FileEntry { tablespace, changed, ..whole });
        Ok(())
    }

    /// Whole pages; `None` when the file has just become shorter.
    async fn read_stretch(&self, space: &Tablespace, at: u64, bytes: u64) -> Result<Option<AlignedBuf>> {
        let mut stretch = match read_async(self.storage, &space.file, at, bytes as usize).await {
            Ok(stretch) => stretch,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let first = (at >> self.page_size.shift()) as u32;
        for (number, page) in stretch.chunks_exact_mut(self.page_size.bytes()).enumerate() {
            let id = PageId::new(space.id, first + number as u32);
            if page::verify_identity(page, id).is_err() {
                let whole = self.read_again(space, id).await?;
                page.copy_from_slice(&whole);
            }
        }
        Ok(Some(stretch))
    }

    /// A page that was torn when it was read: it is being written, or a crash tore it and the pool has it,
    /// rebuilt, or it is damaged.
    async fn read_again(&self, space: &Tablespace, id: PageId) -> Result<AlignedBuf> {
        let environment = &self.database.0.environment;
        let (rereads, pause) = REREADS;
        let mut why = String::new();
        for attempt in 0..=rereads {
            if attempt == rereads {
                self.database.0.store.checkpoint().await?;
            } else {
                environment.sleep(pause).await;
            }
            let bytes = self.page_size.bytes();
            let page =
                read_async(self.storage, &space.file, self.page_size.offset_of(id.page), bytes).await?;
            match page::verify_identity(&page, id) {
                Ok(()) => return Ok(page),
                Err(error) => why = error,
            }
        }
        Err(Error::Store(pagestore::Error::Corrupt { file: space.file.path().to_owned(), page: id, why }))
    }

    /// Says how far it is, and keeps to the speed that was asked for.
    async fn copied(&mut self, bytes: u64) -> Result<()> {
        self.progress.bytes += bytes;
        self.progress.bytes_expected = self.progress.bytes_expected.max(self.progress.bytes);
        let progress = self.progress;
        catch_unwind(AssertUnwindSafe(|| (self.options.progress)(progress)))
            .map_err(|_| failed(&self.target, "what is called with its progress has panicked"))?;
        let Some(speed) = self.options.bytes_per_second else { return Ok(()) };
        let environment = &self.database.0.environment;
        let due = self.started + Duration::from_secs_f64(self.progress.bytes as f64 / speed as f64);
        loop {
            let left = due.saturating_sub(environment.now());
            if left.is_zero() {
                return Ok(());
            }
            self.refuse_when_over()?;
            environment.sleep(left.min(PAUSE_MAX)).await;
        }
    }

    async fn put_small_file(&mut self, path: &Path, bytes: &[u8], private: bool) -> Result<()> {
        let how = OpenHow::CREATE_NEW.buffered();
        let file = self.create(path, if private { how.private() } else { how })?;
        file.write_at(bytes, 0)?;
        sync_async(self.storage, &file).await?;
        let (path, crc32c) = (path.to_owned(), crc32c::crc32c(bytes));
        self.files.push(FileEntry { private, ..FileEntry::whole(path, bytes.len() as u64, crc32c) });
        Ok(())
    }

    /// Everything is copied: makes it durable, and only then says so.
    async fn finish(mut self, log: LogCopy, catalog: &[u8]) -> Result<BackupReport> {
        let (checkpoint, end) = (log.archive.checkpoint().0, log.archive.end().0);
        let entry = log.finish(self.storage).await?;
        let redo_bytes = entry.bytes;
        self.files.push(entry);
        self.put_small_file(Path::new(CATALOG_FILE), catalog, false).await?;
        for name in &self.options.small_files {
            let path = self.database.0.directory.join(name);
            if self.storage.exists(&path)? {
                let bytes = read_whole(self.storage, &path)?;
                self.put_small_file(name, &bytes, true).await?;
            }
        }
        let page_list = self.page_list.finish(self.storage, self.page_size.bytes()).await?;
        for directory in self.directories.iter().rev() {
            self.storage.sync_dir(&self.target.join(directory))?;
        }
        self.storage.sync_dir(&self.target)?;
        self.database.refuse_after_close()?;
        if let Some(why) = self.holds.broken() {
            return Err(why.error(&self.target));
        }
        let directories = self.directories.into_iter().collect();
        let base = self.base.map(|base| base.entry(self.storage)).transpose()?;
        let manifest = Manifest::new(checkpoint, end, directories, self.files).with_pages(base, page_list);
        manifest.write(self.storage, &self.target)?;
        finish_directory(self.storage, &self.target)?;
        Ok(BackupReport {
            directory: self.target,
            files: manifest.files.len(),
            bytes: manifest.stored_bytes(),
            bytes_restored: manifest.bytes(),
            redo_bytes,
            checkpoint,
            end,
        })
    }
}

/// The copy of the redo log, which follows it.
struct LogCopy {
    archive: Archive,
    file: Arc<dyn File>,
    path: PathBuf,
    /// End of what was written.
    at: u64,
    /// Checksum of what lies behind the front.
    sum: u32,
    body: u64,
    #[cfg(test)]
    cut: bool,
}

impl LogCopy {
    fn begin(archive: Archive, storage: &dyn Storage, target: &Path) -> Result<LogCopy> {
        let path = RedoLog::path(target);
        // Its groups are as small as the source's blocks, which the target's disk may not take directly.
        let file = storage.open(&path, OpenHow::CREATE_NEW.buffered())?;
        let front = archive.front().0.len() as u64;
        Ok(LogCopy {
            archive,
            file,
            path,
            at: front,
            sum: 0,
            body: 0,
            #[cfg(test)]
            cut: false,
        })
    }

    /// Copies what is durable, and nothing of what becomes it.
    #[cfg(test)]
    async fn end_now_if(&mut self, cut: bool, storage: &dyn Storage) -> Result<()> {
        self.follow(storage).await?;
        self.cut = cut;
        Ok(())
    }

    /// Whether a test lets it end early.
    fn is_cut(&self) -> bool {
        #[cfg(test)]
        return self.cut;
        #[cfg(not(test))]
        false
    }

    /// Copies what has become durable.
    async fn follow(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.is_cut() {
            return Ok(());
        }
        // Not for as long as there is something: it may grow faster than it can be copied.
        let durable = self.archive.durable();
        while self.archive.end() < durable {
            let Some(piece) = self.archive.next_piece().await? else { return Ok(()) };
            self.pad_to(piece.offset)?;
            self.sum = crc32c::crc32c_append(self.sum, &piece.bytes);
            let bytes = piece.bytes.len() as u64;
            write_async(storage, &self.file, IoBuf::owned(piece.bytes), piece.offset, false).await?;
            self.at += bytes;
            self.body += bytes;
        }
        Ok(())
    }

    /// Zeros before the first group and behind the last, less than a block.
    fn pad_to(&mut self, end: u64) -> Result<()> {
        let zeros = &ZEROS[..(end - self.at) as usize];
        if !zeros.is_empty() {
            self.file.write_at(zeros, self.at)?;
            self.sum = crc32c::crc32c_append(self.sum, zeros);
            self.at = end;
            self.body += zeros.len() as u64;
        }
        Ok(())
    }

    async fn finish(mut self, storage: &dyn Storage) -> Result<FileEntry> {
        let (front, bytes) = self.archive.front();
        self.pad_to(bytes)?;
        let sum = crc32c::crc32c_combine(crc32c::crc32c(&front), self.sum, self.body as usize);
        write_async(storage, &self.file, IoBuf::owned(front), 0, false).await?;
        sync_async(storage, &self.file).await?;
        let path = self.path.file_name().map(PathBuf::from).unwrap_or_default();
        Ok(FileEntry::whole(path, bytes, sum))
    }
}
