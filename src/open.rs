//! Opening a data directory, step by step. The order matters and is explained in [`crate::database`].

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use disk::{Environment, OpenHow, Storage};
use page::{PageId, PageWriter};
use pagestore::{PageSize, PageStore, RecoverySummary};
use redo::RedoLog;
use txn::TransactionSystem;

use crate::buffer_pool_resize;
use crate::catalog::{CATALOG_FILE, Catalog};
use crate::database::{Closing, Database, Inner, Tables};
use crate::ddl_recovery::{self, Elsewhere};
use crate::deadlock_report::Witness;
use crate::error::{Error, Result};
use crate::extension::Extension;
use crate::extension_size::Room;
use crate::file_names::table_file;
use crate::forced_recovery::{self, Explainer, Level};
use crate::options::Options;
use crate::provenance::{self, Identity, Marks};
use crate::recovery_rates;
use crate::redo_capacity::{self, RoseTo};
use crate::report::OpenReport;
use crate::session::RestingSessions;
use crate::sort::TEMPORARY_PREFIX;
use crate::transaction_times::TransactionTimes;

/// File that a process locks while it works on the directory.
const LOCK_FILE: &str = "untorn.lock";

/// File of the undo tablespace.
const UNDO_FILE: &str = "undo_001";

const DEFAULT_PAGE_BYTES: u32 = 16 << 10;

pub(crate) async fn open(
    environment: Arc<dyn Environment>,
    options: Options,
    room: Room,
) -> Result<Database> {
    let started = environment.now();
    check_options(&options)?;
    let (storage, directory) = (environment.storage().clone(), options.directory.clone());
    let Taken { lock, catalog, exists, page_size } =
        take_directory(&environment, &options).map_err(|error| explain_unwritable(&directory, error))?;
    let page_bytes = page_size.bytes() as u32;
    let level = Level(options.force_recovery);
    let elsewhere = ddl_recovery::finish(&*storage, &directory, &catalog, level.freezes_pages())?;
    let spaces = space_files(&*storage, &directory, &catalog, &elsewhere)?;
    let identity = Identity::of(&catalog, &environment);
    let log = open_redo(&environment, (&options, room), exists.then_some(&*catalog), &identity, page_bytes)?;
    // Whatever writes here, now or in the background later, holds the log.
    log.keep(lock);
    let mut unlock = UnlockOnError { log: Some(log.clone()), store: Weak::new() };
    let (restored, restoring_took) = restore_torn_pages(&environment, &options, page_size, &log, &spaces)?;
    let undo_file = directory.join(UNDO_FILE);
    if exists && !level.skips_undo() {
        provenance::check_undo(&*storage, &undo_file, page_size, &catalog.snapshot(), &identity)?;
    }
    let writer = open_writer(&environment, page_bytes as usize, &options, exists)?;
    let extension = Extension::open(&environment, &identity.text, page_size, &options, room);
    let tier_bytes = extension.memory_bytes();
    let store = open_store(&environment, &log, page_size, (&options, tier_bytes), Arc::new(writer.clone()))?;
    connect(&store, &extension, &catalog, &mut unlock);
    let explainer =
        Explainer { catalog: &catalog, undo_file: undo_file.clone(), unrestored: &restored.unrestored };
    let recovered = apply_redo(&store, &identity, &spaces, &explainer, level)?;
    recovery_rates::keep(&directory, &store, (restored.compared, restoring_took));
    if exists && !level.skips_redo() {
        provenance::log_is_open(&catalog, &identity, &log)?;
    }
    extension.recovered(&recovered);
    if level.freezes_pages() {
        store.refuse_changes(&format!("innodb_force_recovery is {}", level.0));
    }
    let system = open_transactions(&store, undo_file, &options, &explainer).await?;
    let marks = Marks::new(&store, &catalog, &identity);
    if !level.freezes_pages() {
        marks.mark_undo().await?;
    }
    if !exists {
        // The first version of the catalog: from here on this is an Untorn data directory.
        provenance::log_is_open(&catalog, &identity, &log)?;
    }
    if !level.freezes_pages() {
        // A catalog of an older format is rewritten in the present one.
        catalog.settle()?;
    }
    let report = OpenReport {
        directory: directory.clone(),
        created: !exists,
        page_size: page_bytes,
        buffer_pool_bytes: options.buffer_pool_bytes,
        extension: extension.describe(),
        redo_capacity_bytes: log.capacity(),
        io: describe_io(&*storage, &directory, options.direct_io),
        tables: catalog.snapshot().tables().count(),
        restored_pages: restored.restored,
        skipped_pages: recovered.corrupt_pages,
        force_recovery: level.0,
        redo_applied_bytes: recovered.bytes,
        redo_applied: recovered.mini_transactions,
        recovery_pages_left: recovered.pages_left,
        ..OpenReport::default()
    };
    let inner = Inner {
        environment: environment.clone(),
        directory,
        catalog,
        tables: Arc::new(Tables::default()),
        store,
        redo: log,
        deadlock_witness: Witness::of(&system, &environment),
        transaction_times: TransactionTimes::default(),
        resting: RestingSessions::default(),
        system,
        writer,
        extension,
        marks,
        report: OpenReport::default(),
        forced_recovery: level,
        unchecked_sizes: options.unchecked_sizes,
        closed: AtomicBool::new(false),
        buffer_pool_dump: Arc::default(),
        prepared: Arc::default(),
        in_memory: AtomicBool::new(false),
        own_environment: OnceLock::new(),
        closing: Closing::default(),
        rose_to: RoseTo::new(&options.directory),
    };
    let (mut inner, report) = start(inner, &restored.unrestored, report).await?;
    unlock.log = None;
    inner.report = OpenReport { took: environment.now() - started, ..report };
    Ok(redo_capacity::let_grow(Database::opened(inner), &options, room))
}

/// A data directory that is locked for us.
struct Taken {
    lock: Box<dyn Send + Sync>,
    catalog: Arc<Catalog>,
    /// It was there before.
    exists: bool,
    page_size: PageSize,
}

/// Locks the data directory, made or cleaned up first, and reads its catalog.
fn take_directory(environment: &Arc<dyn Environment>, options: &Options) -> Result<Taken> {
    let storage = environment.storage();
    let directory = &*options.directory;
    let exists = |path: &Path| Ok(storage.exists(path)?);
    crate::backup::refuse_backup(&exists, directory)?;
    if !exists(&directory.join(CATALOG_FILE))? {
        refuse_foreign_directory(&exists, directory)?;
        match storage.exists(directory)? {
            true => sync_name(&**storage, directory)?,
            false => create_directory(&**storage, directory)?,
        }
    }
    let lock = lock_directory(&**storage, directory)?;
    // Asked again: another process may have made the directory in between.
    let exists = storage.exists(&directory.join(CATALOG_FILE))?;
    if !exists {
        clear_unfinished_directory(environment, options)?;
    }
    remove_temporary_files(&**storage, directory)?;
    forced_recovery::remove_scratch_log(&**storage, directory)?;
    let wanted_page = options.page_size.unwrap_or(DEFAULT_PAGE_BYTES);
    let catalog = Arc::new(Catalog::open(storage.clone(), directory, wanted_page)?);
    if exists {
        // A process that was killed may have replaced the catalog without making that durable. Files are
        // changed by what the catalog says, and these changes must not outlive it.
        storage.sync_dir(directory)?;
    }
    let page_size = check_page_size(catalog.snapshot().page_size, options)?;
    Ok(Taken { lock, catalog, exists, page_size })
}

/// What cannot be locked or made because nothing can be written there.
fn explain_unwritable(directory: &Path, error: Error) -> Error {
    match error {
        Error::Disk(error)
            if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Error::NotWritable { directory: directory.to_owned(), error }
        }
        other => other,
    }
}

fn check_page_size(page_bytes: u32, options: &Options) -> Result<PageSize> {
    let refuse = |why: String| Error::Setting { setting: "innodb_page_size", why };
    if options.page_size.is_some_and(|wanted| wanted != page_bytes) {
        return Err(refuse(format!(
            "the data directory has pages of {page_bytes} bytes, which cannot be changed; remove the setting or open another directory"
        )));
    }
    PageSize::new(page_bytes as usize).ok_or_else(|| refuse(no_page_size(page_bytes)))
}

/// Tells the store and those that it concerns of each other.
fn connect(store: &Arc<PageStore>, extension: &Extension, catalog: &Catalog, unlock: &mut UnlockOnError) {
    unlock.store = Arc::downgrade(store);
    extension.attach(store);
    poison_when_uncertain(catalog, store);
}

/// Nothing may be written once it is not known which catalog a restart would find.
fn poison_when_uncertain(catalog: &Catalog, store: &Arc<PageStore>) {
    let store = Arc::downgrade(store);
    catalog.when_uncertain(move |why| {
        if let Some(store) = store.upgrade() {
            store.poison(why);
        }
    });
}

/// Adds the tablespaces to the store and applies the redo log to them.
fn apply_redo(
    store: &PageStore,
    identity: &Identity,
    spaces: &BTreeMap<u32, PathBuf>,
    explainer: &Explainer<'_>,
    level: Level,
) -> Result<RecoverySummary> {
    let catalog = explainer.catalog;
    for (space, path) in spaces {
        let mark = provenance::expected_mark(&catalog.snapshot(), identity, *space);
        store.add_space(*space, path, mark)?;
    }
    if !level.skips_damaged() {
        for (space, why) in &catalog.snapshot().lost {
            store.refuse_space(*space, &lost_for_good(why));
        }
    }
    let recovered = if level.skips_redo() {
        Ok(RecoverySummary::default())
    } else {
        store.recover_noting(&[], &mut |space, why| note_lost(catalog, space, why))
    };
    let recovered = recovered.map_err(|error| explainer.explain(error.into()))?;
    // Damage that is known stops the start, and not the work after it.
    for known in explainer.unrestored {
        store.apply_now_to(known.page).map_err(|error| explainer.explain(error.into()))?;
    }
    for (space, why) in &recovered.lost_spaces {
        store.refuse_space(*space, &lost_for_good(why));
    }
    Ok(recovered)
}

async fn open_transactions(
    store: &Arc<PageStore>,
    undo_file: PathBuf,
    options: &Options,
    explainer: &Explainer<'_>,
) -> Result<TransactionSystem> {
    let mut settings = txn::Options::new(undo_file);
    settings.lock_wait_timeout = options.lock_wait_timeout;
    settings.purge_threads = options.purge_threads;
    settings.undo_log_truncate = options.undo_log_truncate;
    settings.max_undo_log_bytes = options.max_undo_log_bytes;
    settings.forced_recovery = options.force_recovery;
    let system = TransactionSystem::open(store.clone(), settings).await;
    let system = system.map_err(|error| explainer.explain(error.into()))?;
    system.set_lock_memory_max(usize::try_from(options.lock_memory_bytes).unwrap_or(usize::MAX));
    Ok(system)
}

/// Loads the tables, finishes interrupted index builds, and begins to roll back what had not committed.
async fn start(
    inner: Inner,
    unrestored: &[dblwr::Unrestored],
    report: OpenReport,
) -> Result<(Inner, OpenReport)> {
    inner.tables.graph.look_at_rows(inner.system.row_waits());
    let level = inner.forced_recovery;
    let opened = Database(Arc::new(inner));
    if level.freezes_pages() {
        opened.0.catalog.freeze(level.0);
    }
    // With less than all of the log, or of the rows, numbers of before do not hold.
    opened.read_statistics((level.0 == 0).then(|| opened.0.redo.epoch()));
    let left_out = load_tables(&opened, unrestored).await?;
    if !level.refuses_row_changes() {
        opened.free_unfinished_indexes().await?;
    }
    let tables = opened.0.tables.clone();
    let protection = opened.page_protection_summary();
    let recovered = opened.0.system.recover(tables).await?;
    let txn::RecoveryReport { rolled_back, prepared, .. } = recovered.report;
    opened.0.prepared.found(recovered.prepared);
    // Only the table handles were given a reference, and they do not keep the database.
    let inner = Arc::try_unwrap(opened.0)
        .map_err(|_| Error::Internal("the database was shared before it was open".to_owned()))?;
    if !level.refuses_row_changes() {
        inner.marks.spawn();
    }
    Ok((inner, OpenReport { rolled_back, prepared, protection, left_out, ..report }))
}

/// A start that fails lets go of the directory.
struct UnlockOnError {
    log: Option<Arc<RedoLog>>,
    store: Weak<PageStore>,
}

impl Drop for UnlockOnError {
    fn drop(&mut self) {
        let Some(log) = &self.log else { return };
        // Recovery would go on in the background, and write.
        if let Some(store) = self.store.upgrade() {
            store.give_up();
        }
        log.let_go();
    }
}

/// What can be refused before anything is made.
pub(crate) fn check(options: &Options) -> Result<()> {
    check_options(options)?;
    let exists = |path: &Path| Ok(path.exists());
    let directory = &*options.directory;
    // Before others look at addresses: of two servers on a directory, the second finds its socket taken, too.
    if let Some(holder) = disk::lock_holder(&directory.join(LOCK_FILE)) {
        return Err(Error::DirectoryInUse { directory: directory.to_owned(), holder });
    }
    crate::backup::refuse_backup(&exists, directory)?;
    if directory.join(CATALOG_FILE).exists() { Ok(()) } else { refuse_foreign_directory(&exists, directory) }
}

fn check_options(options: &Options) -> Result<()> {
    Level(options.force_recovery).check()?;
    let refuse = |setting: &'static str, why: String| Err(Error::Setting { setting, why });
    if options.directory.as_os_str().is_empty() {
        return refuse("datadir", "no directory is named; \".\" is the current one".to_owned());
    }
    if let Some(bytes) = options.page_size.filter(|bytes| PageSize::new(*bytes as usize).is_none()) {
        return refuse("innodb_page_size", no_page_size(bytes));
    }
    if let Some(bytes) = options.redo_block_bytes.filter(|bytes| !matches!(bytes, 512 | 4096)) {
        return refuse("innodb_log_write_ahead_size", format!("{bytes} is neither 512 nor 4096"));
    }
    let counts = [
        ("innodb_doublewrite_files", options.doublewrite_files, dblwr::FILES_MAX),
        ("innodb_doublewrite_pages", options.doublewrite_pages, dblwr::PAGES_MAX),
    ];
    for (setting, count, most) in counts {
        if !(1..=most).contains(&count) {
            return refuse(setting, format!("{count} is not in 1..{most}"));
        }
    }
    if options.unchecked_sizes {
        return Ok(());
    }
    buffer_pool_resize::check_size(options.buffer_pool_bytes)?;
    redo_capacity::check_capacity(options.redo_capacity_bytes)
}

fn no_page_size(bytes: u32) -> String {
    format!("{bytes} is not one of 4096, 8192, 16384, 32768, 65536")
}

/// Makes a directory, durably, and those above it that are missing.
pub(crate) fn create_directory(storage: &dyn Storage, directory: &Path) -> Result<()> {
    let mut above = Vec::new();
    for directory in directory.ancestors().take_while(|path| !path.as_os_str().is_empty()) {
        if storage.exists(directory)? {
            break;
        }
        above.push(parent_of(directory));
    }
    storage.create_dir_all(directory)?;
    above.into_iter().try_for_each(|directory| storage.sync_dir(directory)).map_err(Error::from)
}

/// Makes the name of a new data directory durable that is there already: the start that made it may have been
/// killed before it did. Where somebody else made it, that may not be ours to do.
fn sync_name(storage: &dyn Storage, directory: &Path) -> Result<()> {
    match storage.sync_dir(parent_of(directory)) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error.into()),
        _ => Ok(()),
    }
}

fn parent_of(directory: &Path) -> &Path {
    match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => directory,
    }
}

/// A directory with another server's files must not be mixed with ours.
fn refuse_foreign_directory(exists: &dyn Fn(&Path) -> Result<bool>, directory: &Path) -> Result<()> {
    for name in ["ibdata1", "mysql.ibd", "aria_log_control"] {
        if exists(&directory.join(name))? {
            return Err(Error::Setting {
                setting: "datadir",
                why: format!(
                    "{} holds {name}: it is the data directory of another server. Choose an empty one; move tables with FLUSH TABLES … FOR EXPORT and IMPORT TABLESPACE",
                    directory.display()
                ),
            });
        }
    }
    Ok(())
}

/// A directory without a catalog in which a first start was interrupted is started over. If there are
/// databases, or it has been open before, the catalog was lost, and nothing here may be touched.
fn clear_unfinished_directory(environment: &Arc<dyn Environment>, options: &Options) -> Result<()> {
    let storage = &**environment.storage();
    let (directory, doublewrite) = (&*options.directory, options.doublewrite_directory());
    let refuse = |what: String| {
        let why = format!(
            "it is missing, but {what}. Restore the file from a backup, or choose an empty directory"
        );
        Err(Error::Catalog { path: directory.join(CATALOG_FILE), why })
    };
    let mut ours = Vec::new();
    let mut database = None;
    for entry in storage.list(directory)? {
        let path = directory.join(&entry.name);
        if entry.is_directory {
            // What a file system makes for itself, and what an option names.
            if entry.name == "lost+found" || path == doublewrite {
                continue;
            }
            if storage.list(&path)?.iter().any(|file| file.name.ends_with(".ibd")) {
                return refuse(format!("{} holds tables", path.display()));
            }
            database = Some(path);
            continue;
        }
        let name = &entry.name;
        if name == UNDO_FILE || name.starts_with("#untorn_redo") || name.ends_with(".dblwr") {
            ours.push(path);
        }
    }
    if let Some(database) = database.filter(|_| !ours.is_empty()) {
        return refuse(format!("{} is a database's directory and there is a redo log", database.display()));
    }
    // The catalog is written at the end of the first opening. A log that is renamed into its place is whole.
    if RedoLog::exists(environment, directory)? {
        let openings = RedoLog::open(environment, directory, redo::Options::default())?.epoch();
        if openings > 1 {
            return refuse(format!("the redo log was opened {openings} times"));
        }
    }
    for path in ours {
        storage.remove(&path)?;
    }
    Ok(())
}

/// Sort runs of an index build that did not end.
fn remove_temporary_files(storage: &dyn Storage, directory: &Path) -> Result<()> {
    for entry in storage.list(directory)? {
        if entry.name.starts_with(TEMPORARY_PREFIX) {
            storage.remove(&directory.join(&entry.name))?;
        }
    }
    Ok(())
}

fn lock_directory(storage: &dyn Storage, directory: &Path) -> Result<Box<dyn Send + Sync>> {
    storage.lock_by_name(&directory.join(LOCK_FILE)).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            Error::DirectoryInUse { directory: directory.to_owned(), holder: error.io().to_string() }
        }
        _ => Error::Disk(error),
    })
}

/// Every tablespace file by its id. Those of tables are not looked at: a missing one is its table's trouble,
/// when that is used.
fn space_files(
    storage: &dyn Storage,
    directory: &Path,
    catalog: &Catalog,
    elsewhere: &Elsewhere,
) -> Result<BTreeMap<u32, PathBuf>> {
    let mut files = BTreeMap::new();
    let undo = directory.join(UNDO_FILE);
    if storage.exists(&undo)? {
        files.insert(txn::UNDO_SPACE, undo);
    }
    for (database, name, def) in catalog.snapshot().tables() {
        if def.discarded {
            continue;
        }
        let path = match elsewhere.get(&def.space) {
            Some(path) => directory.join(path),
            None => directory.join(table_file(database, name)),
        };
        files.insert(def.space, path);
    }
    Ok(files)
}

/// Repairs pages torn by a crash, and says how long that took. Copies older than the checkpoint are left
/// alone: redo no longer holds what came after them, so they could only hide another kind of damage.
fn restore_torn_pages(
    environment: &Arc<dyn Environment>,
    options: &Options,
    page_size: PageSize,
    log: &RedoLog,
    spaces: &BTreeMap<u32, PathBuf>,
) -> Result<(dblwr::Recovered, Duration)> {
    let (started, storage) = (environment.now(), &**environment.storage());
    // At the level that applies no redo, a copy without the redo that follows it is no better than the
    // damage. After an orderly shutdown every copy is older than the checkpoint.
    if Level(options.force_recovery).skips_redo() || log.found_closed() {
        return Ok(Default::default());
    }
    let directory = &options.directory;
    let mut directories = vec![directory.clone(), options.doublewrite_directory()];
    directories.extend(dblwr::directories::remembered(storage, directory)?);
    directories.sort();
    directories.dedup();
    let bytes = page_size.bytes();
    let mut open_files = BTreeMap::new();
    let mut locate = |page: PageId| -> disk::Result<_> {
        let Some(path) = spaces.get(&page.space) else { return Ok(None) };
        let file = match open_files.get(&page.space) {
            Some(file) => file,
            // Nothing can be put back into a file that is not there.
            None if !storage.exists(path)? => return Ok(None),
            None => open_files.entry(page.space).or_insert(storage.open(path, OpenHow::EXISTING)?),
        };
        Ok(Some((Arc::clone(file), u64::from(page.page) * bytes as u64)))
    };
    let checkpoint = log.checkpoint_lsn().0;
    let recovered = dblwr::recover_since(&**environment, &directories, bytes, checkpoint, &mut locate)?;
    for page in &recovered.restored {
        tracing::warn!("page {page} was torn and has been restored from the doublewrite file");
    }
    for page in &recovered.unrestored {
        tracing::warn!("page {} was torn and cannot be restored: {}", page.page, page.why);
    }
    Ok((recovered, environment.now() - started))
}

fn open_redo(
    environment: &Arc<dyn Environment>,
    (options, room): (&Options, Room),
    catalog: Option<&Catalog>,
    identity: &Identity,
    page_bytes: u32,
) -> Result<Arc<RedoLog>> {
    let directory = &*options.directory;
    if Level(options.force_recovery).skips_redo() {
        return forced_recovery::scratch_log(environment, directory);
    }
    let settings = redo::Options {
        capacity: redo_capacity::at_start(&**environment.storage(), options, room),
        // A mini-transaction fits half of it, and a structure change of a high tree rewrites up to 32 pages.
        buffer_size: options.log_buffer_bytes.max(64 * u64::from(page_bytes)) as usize,
        block_size: options.redo_block_bytes.map(|bytes| bytes as usize),
        resize_step: Duration::from_micros(if options.unchecked_sizes { 500 } else { 100_000 }),
        owner: identity.owner,
        ..redo::Options::default()
    };
    match catalog {
        Some(catalog) => provenance::open_log(environment, directory, settings, catalog, identity),
        None => Ok(RedoLog::create(environment, directory, settings)?),
    }
}

/// Remembers that a table lost the changes that the redo log has of it, before the log gives them up. The
/// undo tablespace cannot do without.
fn note_lost(catalog: &Catalog, space: u32, why: &str) -> std::result::Result<(), pagestore::Error> {
    let refuse = |why: String| Err(pagestore::Error::Recovery(why));
    if space == txn::UNDO_SPACE {
        return refuse(format!("the undo tablespace cannot be used: {why}"));
    }
    let noted = catalog.change(|change| change.note_lost(space, why));
    noted.or_else(|error| refuse(error.to_string()))
}

fn lost_for_good(why: &str) -> String {
    format!(
        "it lost changes when the redo log was applied, because at that time it could not be used ({why}); what is there now is without \
         them. DROP or TRUNCATE the table, or restore the whole data directory from a backup; innodb_force_recovery=1 reads what is there"
    )
}

fn open_writer(
    environment: &Arc<dyn Environment>,
    page_bytes: usize,
    options: &Options,
    directory_is_synced: bool,
) -> Result<dblwr::ProtectedWriter> {
    let directory = options.doublewrite_directory();
    create_directory(&**environment.storage(), &directory)?;
    dblwr::directories::remember(&**environment.storage(), &options.directory, &directory)?;
    let settings = dblwr::Options {
        directory,
        page_size: page_bytes,
        files: options.doublewrite_files,
        pages: options.doublewrite_pages,
        mode: options.doublewrite,
        undo_space: Some(txn::UNDO_SPACE),
        unsynced_files_max: options.open_files() / 2,
        directory_is_synced: directory_is_synced && options.doublewrite_dir.is_none(),
    };
    Ok(dblwr::ProtectedWriter::open(environment.clone(), settings)?)
}

fn open_store(
    environment: &Arc<dyn Environment>,
    log: &Arc<RedoLog>,
    page_size: PageSize,
    (options, tier_bytes): (&Options, u64),
    writer: Arc<dyn PageWriter>,
) -> Result<Arc<PageStore>> {
    let defaults = pagestore::Options::default();
    environment.storage().set_open_files_max(options.open_files());
    let settings = pagestore::Options {
        pool_bytes: options.buffer_pool_bytes as usize,
        tier_bytes: tier_bytes as usize,
        page_size,
        skip_corrupt: Level(options.force_recovery).skips_damaged(),
        recovery_target: options.recovery_target,
        recovery_progress: options.recovery_progress.clone(),
        recovery_rates: recovery_rates::read(&**environment.storage(), &options.directory),
        recovery_threads: defaults.recovery_threads.min(environment.threads_max()),
        ..defaults
    };
    Ok(PageStore::open(environment.clone(), log.clone(), settings, writer)?)
}

fn describe_io(storage: &dyn Storage, directory: &Path, wanted: bool) -> String {
    let direct = storage
        .open(&directory.join(CATALOG_FILE), OpenHow::READ_ONLY)
        .map(|file| file.is_direct())
        .unwrap_or(false);
    let how = match (direct, wanted) {
        (true, _) => "direct (the file system takes O_DIRECT)",
        (false, true) => "buffered (the file system refuses O_DIRECT)",
        (false, false) => "buffered (direct I/O is switched off)",
    };
    how.to_owned()
}

/// Makes the tables known. Their files are opened when they are used. Returns those that cannot be put
/// together, which forced recovery leaves out.
async fn load_tables(database: &Database, unrestored: &[dblwr::Unrestored]) -> Result<Vec<String>> {
    let inner = &database.0;
    let mut left_out = Vec::new();
    for (name, table, def) in inner.catalog.snapshot().tables() {
        let opened = database.open_table_handle(name, table, def.clone()).await;
        let Err(error) = opened else { continue };
        if !inner.forced_recovery.skips_damaged() {
            let undo_file = inner.directory.join(UNDO_FILE);
            return Err(Explainer { catalog: &inner.catalog, undo_file, unrestored }.explain(error));
        }
        tracing::error!("table '{name}.{table}' cannot be opened and is skipped: {error}");
        left_out.push(format!("{name}.{table}"));
    }
    Ok(left_out)
}
