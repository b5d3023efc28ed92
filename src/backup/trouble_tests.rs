//! Backups on disks that hang, fail or are slow, by callers who go away, and into directories where they must
//! not be: the database goes on in every case, and what is not finished is not restored.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use disk::{
    Entry, Environment, Event, Fault, FaultKind, File, Io, IoCounters, IoKind, OpenHow, SimulatedEnvironment,
    Storage, TaskFuture,
};
use parking_lot::Mutex;
use txn::Durability;

use super::hold::{Holds, Over, Watched, watch};
use super::tests::{MIB, TARGET, options, prepare};
use super::{BackupOptions, BackupReport, MANIFEST, restore_in};
use crate::database::Database;
use crate::error::Error;
use crate::rows::Range;
use crate::types::Value;

/// The simulated disk with a part, everything under `/backups`, that takes writes as it is told.
struct SlowDisk {
    inner: Arc<dyn Storage>,
    /// Requests for it are kept until this is taken back.
    hangs: AtomicBool,
    kept: Mutex<Vec<(Arc<dyn File>, Io)>>,
}

impl SlowDisk {
    fn answer_again(&self) {
        self.hangs.store(false, Ordering::Release);
        self.inner.submit(std::mem::take(&mut *self.kept.lock()));
    }
}

impl Storage for SlowDisk {
    fn open(&self, path: &Path, how: OpenHow) -> disk::Result<Arc<dyn File>> {
        self.inner.open(path, how)
    }
    fn exists(&self, path: &Path) -> disk::Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &Path) -> disk::Result<()> {
        self.inner.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> disk::Result<()> {
        self.inner.remove_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> disk::Result<()> {
        self.inner.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> disk::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> disk::Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> disk::Result<Vec<Entry>> {
        self.inner.list(path)
    }
    fn lock(&self, path: &Path) -> disk::Result<Box<dyn Send + Sync>> {
        self.inner.lock(path)
    }
    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        let hangs = |file: &Arc<dyn File>, io: &Io| {
            let concerns = file.path().starts_with("/backups") && !matches!(io.kind, IoKind::Read { .. });
            concerns && self.hangs.load(Ordering::Acquire)
        };
        let (kept, passed): (Vec<_>, Vec<_>) = batch.into_iter().partition(|(file, io)| hangs(file, io));
        self.kept.lock().extend(kept);
        self.inner.submit(passed);
    }
    fn counters(&self) -> IoCounters {
        self.inner.counters()
    }
}

struct SlowEnvironment {
    inner: Arc<SimulatedEnvironment>,
    storage: Arc<dyn Storage>,
}

impl Environment for SlowEnvironment {
    fn now(&self) -> Duration {
        self.inner.now()
    }
    fn unix_time(&self) -> Duration {
        self.inner.unix_time()
    }
    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }
    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.inner.spawn(name, task);
    }
    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.inner.spawn_worker(name, task);
    }
    fn sleep(&self, duration: Duration) -> TaskFuture {
        self.inner.sleep(duration)
    }
    fn block_until(&self, event: &Event) {
        self.inner.block_until(event);
    }
    fn random_u64(&self) -> u64 {
        self.inner.random_u64()
    }
    fn threads_max(&self) -> usize {
        1
    }
}

fn slow_disk(seed: u64) -> (Arc<SimulatedEnvironment>, Arc<SlowDisk>, Arc<dyn Environment>) {
    let inner = SimulatedEnvironment::new(seed);
    inner.limit_steps(20_000_000);
    let storage = Arc::new(SlowDisk {
        inner: inner.storage().clone(),
        hangs: AtomicBool::new(false),
        kept: Mutex::default(),
    });
    let shared = Arc::new(SlowEnvironment { inner: inner.clone(), storage: storage.clone() });
    (inner, storage, shared)
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Changes one row; true when it is committed. What the log has then grew by several KiB.
async fn write(db: &Database, number: i64) -> Result<(), Error> {
    let table = db.table("test", "t")?;
    let mut transaction = db.begin();
    let text = vec![number as u8; 6000];
    let row = [Value::Int(number % 50), Value::Int(number), Value::bytes(&text)];
    if transaction.get(&table, &row[..1], crate::rows::Lock::Exclusive).await?.is_some() {
        let changes = [("counter", row[1].clone()), ("text", row[2].clone())];
        transaction.update(&table, &row[..1], &changes).await?;
    } else {
        transaction.insert(&table, &row).await?;
    }
    transaction.commit(Durability::Sync).await?;
    Ok(())
}

async fn sum_of_counters(db: &Database) -> i64 {
    let table = db.table("test", "t").unwrap();
    let (mut sum, mut transaction) = (0, db.begin());
    let all = Range::all();
    let read = transaction.for_each(&table, &all, |row| {
        let Value::Int(counter) = row[1] else { panic!("{row:?}") };
        sum += counter;
        true
    });
    read.await.unwrap();
    transaction.rollback().await.unwrap();
    assert!(db.check_table("test", "t").await.unwrap().is_sound());
    sum
}

#[test]
fn a_disk_that_does_not_answer_keeps_changes_waiting_no_longer_than_was_said() {
    let (inner, storage, shared) = slow_disk(21);
    inner.run_until_complete(async {
        let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
        prepare(&db).await;
        let patience = Duration::from_secs(3);
        storage.hangs.store(true, Ordering::Release);
        let (source, limits) = (db.clone(), BackupOptions::default().writers_wait(patience));
        let mut backup = Box::pin(async move { source.backup_with(TARGET, limits).await });
        assert!(poll_once(&mut backup).await.is_pending());
        // The log goes round, which it cannot before it is let go.
        let (start, mut longest, begin) = (db.redo().current(), Duration::ZERO, db.environment().now());
        for number in 0.. {
            let before = db.environment().now();
            write(&db, number).await.unwrap();
            longest = longest.max(db.environment().now() - before);
            if db.redo().current().0 - start.0 > 5 * MIB {
                break;
            }
        }
        assert!(longest > patience / 2, "nobody had to wait: {longest:?}");
        let all = db.environment().now() - begin;
        assert!(all < patience + Duration::from_secs(2), "changes waited for {all:?}");
        let Poll::Ready(Err(Error::Backup { why, .. })) = poll_once(&mut backup).await else {
            panic!("it has failed, though its disk does not answer")
        };
        assert!(why.contains("innodb_redo_log_capacity"), "{why}");
        // Nor does anybody else wait for it.
        let at_once = db.definitions().timeout(Duration::ZERO);
        at_once.create_table("test", "u", super::tests::accounts()).await.unwrap();
        storage.answer_again();
        db.environment().sleep(Duration::from_secs(1)).await;
        assert!(!shared.storage().exists(&Path::new(TARGET).join(MANIFEST)).unwrap());
        db.backup("/backups/two").await.unwrap();
        db.close().await.unwrap();
    });
}

/// A backup whose disk has stopped answering.
async fn hung_backup(
    db: &Database,
    storage: &SlowDisk,
) -> Pin<Box<dyn Future<Output = Result<BackupReport, Error>> + Send>> {
    prepare(db).await;
    storage.hangs.store(true, Ordering::Release);
    let source = db.clone();
    let mut backup: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(async move { source.backup(TARGET).await });
    while storage.kept.lock().is_empty() {
        assert!(poll_once(&mut backup).await.is_pending());
        db.environment().sleep(Duration::from_millis(1)).await;
    }
    backup
}

#[test]
fn a_caller_who_goes_away_lets_go_at_once_of_a_disk_that_does_not_answer() {
    let (inner, storage, shared) = slow_disk(22);
    inner.run_until_complete(async {
        let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
        let backup = hung_backup(&db, &storage).await;
        let refused = db.definitions().timeout(Duration::ZERO);
        let refused = refused.create_table("test", "u", super::tests::accounts()).await;
        assert!(matches!(refused, Err(Error::MetadataLockTimeout)), "{refused:?}");
        drop(backup);
        let at_once = db.definitions().timeout(Duration::ZERO);
        at_once.create_table("test", "u", super::tests::accounts()).await.unwrap();
        storage.answer_again();
        db.environment().sleep(Duration::from_secs(1)).await;
        assert!(!shared.storage().exists(&Path::new(TARGET).join(MANIFEST)).unwrap());
        db.close().await.unwrap();
    });
}

#[test]
fn a_database_is_closed_while_the_disk_of_its_backup_does_not_answer() {
    let (inner, storage, shared) = slow_disk(23);
    inner.run_until_complete(async {
        let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
        let mut backup = hung_backup(&db, &storage).await;
        db.close().await.unwrap();
        db.environment().sleep(Duration::from_secs(1)).await;
        assert!(matches!(poll_once(&mut backup).await, Poll::Ready(Err(Error::Closed))));
        storage.answer_again();
        db.environment().sleep(Duration::from_secs(1)).await;
        assert!(!shared.storage().exists(&Path::new(TARGET).join(MANIFEST)).unwrap());
    });
}

/// A close may be over before the watch has looked again: then it ends unfinished.
#[test]
fn a_backup_is_over_when_nobody_watches_it_any_more() {
    let (inner, _, shared) = slow_disk(24);
    inner.run_until_complete(async {
        let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
        let holds = Arc::new(Holds::default());
        let most = Duration::from_secs(10);
        let watching = watch(Watched::new(&holds), shared.clone(), Arc::downgrade(&db.0), most);
        assert_eq!(holds.broken(), None);
        drop(watching);
        assert_eq!(holds.broken(), Some(Over::Closed));
        db.close().await.unwrap();
    });
}

/// The log grows all the time, also while a piece of it is written: there is always something more to copy.
#[test]
fn a_backup_ends_although_the_log_grows_without_a_pause() {
    for seed in 41..=42 {
        let (inner, storage, shared) = slow_disk(seed);
        inner.limit_steps(2_000_000);
        inner.run_until_complete(async {
            let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
            prepare(&db).await;
            let done = AtomicBool::new(false);
            let mut backup = Box::pin(db.backup(TARGET));
            let writer = async |number: i64| {
                let mut at = number;
                while !done.load(Ordering::Acquire) {
                    match write(&db, at).await {
                        Err(error) if !error.is_retryable() => panic!("{error}"),
                        _ => at += 6,
                    }
                }
            };
            let mut writers: Vec<_> = (0..6).map(|number| Box::pin(writer(number))).collect();
            storage.hangs.store(true, Ordering::Release);
            let mut answers = Box::pin(async {
                loop {
                    db.environment().sleep(Duration::from_millis(3)).await;
                    storage.inner.submit(std::mem::take(&mut *storage.kept.lock()));
                }
            });
            let made = std::future::poll_fn(|context| {
                let _: Poll<std::convert::Infallible> = answers.as_mut().poll(context);
                writers.retain_mut(|writer| writer.as_mut().poll(context).is_pending());
                backup.as_mut().poll(context)
            });
            made.await.unwrap();
            done.store(true, Ordering::Release);
            storage.answer_again();
        });
    }
}

/// Every call of a backup fails once, in several ways.
#[test]
fn whatever_call_of_a_backup_fails_the_database_goes_on() {
    const KINDS: [FaultKind; 5] =
        [FaultKind::Eio, FaultKind::Enospc, FaultKind::Short, FaultKind::TooManyFiles, FaultKind::Denied];
    let perform = |fault: Option<Fault>| {
        let environment = SimulatedEnvironment::new(31);
        let shared: Arc<dyn Environment> = environment.clone();
        let storage = shared.storage().clone();
        environment.run_until_complete(async {
            let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
            prepare(&db).await;
            for number in 0..20 {
                write(&db, number).await.unwrap();
            }
            // What else writes by itself has done so.
            db.store().flush_all().await.unwrap();
            db.environment().sleep(Duration::from_secs(5)).await;
            let before = environment.disk().calls();
            if let Some(fault) = fault {
                environment.disk().plan(Fault { call: before + fault.call, ..fault });
            }
            let made = db.backup(TARGET).await;
            let calls = environment.disk().calls() - before;
            environment.disk().forget_faults();
            // Whatever became of the backup.
            write(&db, 20).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            db.create_table("test", "u", super::tests::accounts()).await.unwrap();
            let expected = (0..=20).sum::<i64>();
            assert_eq!(sum_of_counters(&db).await, expected, "{fault:?}");
            let restored = restore_in(&*storage, Path::new(TARGET), Path::new("/restored"), |_| {});
            assert!(restored.is_ok() || made.is_err(), "{fault:?}: {restored:?}");
            if restored.is_ok() {
                // A failure after the last step that counts is possible.
                let copy = Database::open_in(shared.clone(), options("/restored")).await.unwrap();
                assert_eq!(sum_of_counters(&copy).await, expected - 20, "{fault:?}");
            }
            db.backup("/backups/two").await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            restore_in(&*storage, Path::new("/backups/two"), Path::new("/second"), |_| {}).unwrap();
            let copy = Database::open_in(shared.clone(), options("/second")).await.unwrap();
            assert_eq!(sum_of_counters(&copy).await, expected, "{fault:?}");
            (calls, made.is_ok())
        })
    };
    let (calls, made) = perform(None);
    assert!(made && calls > 30, "{calls} calls");
    let mut failed = 0;
    for call in 0..calls {
        let kind = KINDS[call as usize % KINDS.len()];
        for kind in [FaultKind::Eio, kind] {
            failed += u64::from(!perform(Some(Fault { call, kind })).1);
        }
    }
    println!("{calls} calls, {failed} of the faults made the backup fail");
    assert!(failed > calls / 2);
}
