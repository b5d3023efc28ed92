//! Backups of a database that is being changed, on the simulated disk: what is restored after a power loss is
//! a moment of the history, no earlier than the end of the copy of the pages. The same with a part of the
//! protocol left out, which must be noticed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Environment, OpenHow, Random, SimulatedEnvironment, interleave};
use parking_lot::Mutex;
use txn::Durability;

use super::{BackupOptions, BackupReport, Broken, INCOMPLETE, MANIFEST, restore_in};
use crate::database::Database;
use crate::error::Error;
use crate::options::Options;
use crate::rows::{Lock, Range};
use crate::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use crate::types::{Collation, ColumnType, SizeClass, Value};

const SESSIONS: usize = 3;
const KEYS: usize = 80;
const ACCOUNTS: i64 = 8;
const BALANCE: i64 = 100;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const TARGET: &str = "/backups/one";

type Rows = BTreeMap<i64, (i64, Arc<[u8]>)>;
type Part = Pin<Box<dyn Future<Output = ()>>>;

/// What a session did: its rows after each commit, the last of which may not have been acknowledged.
#[derive(Default)]
struct Journal {
    states: Vec<Rows>,
    acknowledged: usize,
    /// Commits that were acknowledged when the last stretch of pages had been copied.
    copied: usize,
}

type Journals = Arc<Vec<Mutex<Journal>>>;

pub(super) fn options(directory: &str) -> Options {
    let mut options = Options::new(directory).page_size(4096).buffer_pool_bytes(1000 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 * MIB;
    options.log_buffer_bytes = MIB;
    options
}

fn definition() -> TableDef {
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ];
    TableDef::new(columns).primary_key(&["id"]).key("by_counter", KeyKind::Secondary, &["counter"])
}

pub(super) fn accounts() -> TableDef {
    let columns =
        vec![ColumnDef::new("id", ColumnType::bigint()), ColumnDef::new("balance", ColumnType::bigint())];
    TableDef::new(columns).primary_key(&["id"])
}

pub(super) async fn prepare(db: &Database) {
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "t", definition()).await.unwrap();
    let account = db.create_table_if_missing("test", "account", accounts()).await.unwrap();
    let mut transaction = db.begin();
    for id in 0..ACCOUNTS {
        transaction.insert(&account, &[Value::Int(id), Value::Int(BALANCE)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

/// Changes rows of its own and moves money, until it is told to stop.
async fn session(db: Database, number: usize, seed: u64, journals: Journals, stop: Arc<AtomicBool>) {
    let mut random = Random::new(seed);
    let account = db.table("test", "account").unwrap();
    while !stop.load(Ordering::Acquire) {
        let mut rows = journals[number].lock().states.last().cloned().unwrap_or_default();
        let mut transaction = db.begin();
        let outcome = async {
            let table = transaction.open_table("test", "t", Duration::from_secs(600)).await?;
            for _ in 0..1 + random.below(5) {
                let id = (random.below(KEYS) * SESSIONS + number) as i64;
                let counter = random.below(1000) as i64;
                let size = if random.one_in(6) { 3_000 + random.below(9_000) } else { random.below(400) };
                let text = vec![random.below(256) as u8; size];
                let key = [Value::Int(id)];
                if rows.contains_key(&id) && random.one_in(3) {
                    transaction.delete(&table, &key).await?;
                    rows.remove(&id);
                    continue;
                }
                if rows.contains_key(&id) {
                    let changes = [("counter", Value::Int(counter)), ("text", Value::bytes(&text))];
                    transaction.update(&table, &key, &changes).await?;
                } else {
                    let row = [Value::Int(id), Value::Int(counter), Value::bytes(&text)];
                    transaction.insert(&table, &row).await?;
                }
                rows.insert(id, (counter, text.into()));
            }
            let from = random.below(ACCOUNTS as usize - 1) as i64;
            for (id, change) in [(from, -1), (from + 1, 1)] {
                let key = [Value::Int(id)];
                let row = transaction.get(&account, &key, Lock::Exclusive).await?.unwrap();
                let Value::Int(balance) = row[1] else { panic!("{row:?}") };
                transaction.update(&account, &key, &[("balance", Value::Int(balance + change))]).await?;
            }
            Ok::<(), Error>(())
        };
        match outcome.await {
            Ok(()) if random.one_in(8) => transaction.rollback().await.unwrap(),
            Ok(()) => {
                journals[number].lock().states.push(rows);
                transaction.commit(Durability::Sync).await.unwrap();
                let mut journal = journals[number].lock();
                journal.acknowledged = journal.states.len();
            }
            Err(error) if error.is_retryable() => transaction.rollback().await.unwrap(),
            Err(error) => panic!("session {number}: {error}"),
        }
        db.environment().sleep(Duration::from_millis(random.below(8) as u64)).await;
    }
}

/// Makes and drops an index and tables, over and over.
async fn definitions(db: Database, stop: Arc<AtomicBool>) {
    let mut number = 0;
    while !stop.load(Ordering::Acquire) {
        number += 1;
        let change = db.definitions().timeout(Duration::from_secs(1));
        let part = |column| KeyPart::whole(column);
        let (kind, parts) = (KeyKind::Secondary, vec![part(1), part(0)]);
        let key = KeyDef::new("extra", kind, parts);
        let has_extra = db.table("test", "t").unwrap().def.key_named("extra").is_some();
        let made = format!("made_{}", number / 4);
        let result = match number % 4 {
            0 if has_extra => change.drop_index("test", "t", "extra").await,
            0 => change.create_index("test", "t", key).await,
            1 => change.create_table("test", &made, definition()).await.map(drop),
            2 => change.truncate_table("test", &made).await,
            _ => change.drop_table("test", &made).await,
        };
        match result {
            Err(error) if error.is_retryable() || matches!(error, Error::NoSuchTable(..)) => {}
            result => result.unwrap(),
        }
        db.environment().sleep(Duration::from_millis(20)).await;
    }
}

/// The database in the directory is a moment of the history, sound, and no older than `least` says.
async fn verify(db: &Database, journals: &Journals, least: impl Fn(&Journal) -> usize) {
    let account = db.table("test", "account").unwrap();
    let mut transaction = db.begin();
    let (all, mut sum) = (Range::all(), 0);
    let read = transaction.for_each(&account, &all, |row| {
        if let Value::Int(balance) = row[1] {
            sum += balance;
        }
        true
    });
    read.await.unwrap();
    assert_eq!(sum, ACCOUNTS * BALANCE, "transfers preserve the sum");
    let table = db.table("test", "t").unwrap();
    let mut found = vec![Rows::new(); SESSIONS];
    let read = transaction.for_each(&table, &all, |row| {
        let (Value::Int(id), Value::Int(counter), Value::Bytes(text)) = (&row[0], &row[1], &row[2]) else {
            panic!("a row of other types: {row:?}");
        };
        found[*id as usize % SESSIONS].insert(*id, (*counter, text.to_vec().into()));
        true
    });
    read.await.unwrap();
    transaction.rollback().await.unwrap();
    for (number, (found, journal)) in found.iter().zip(journals.iter()).enumerate() {
        let journal = journal.lock();
        let least = least(&journal);
        let before = least.saturating_sub(1);
        let known = (least == 0 && found.is_empty()) || journal.states[before..].contains(found);
        assert!(known, "session {number}: no state from commit {least} on, of {}", journal.states.len());
    }
    for table in db.tables("test") {
        let report = db.check_table("test", &table.name).await.unwrap();
        assert!(report.is_sound(), "{}: {:#?}", table.name, report.problems);
    }
}

/// What was made of it.
pub(super) struct History {
    pub environment: Arc<SimulatedEnvironment>,
    journals: Journals,
    /// Of the last backup.
    pub report: Option<BackupReport>,
}

/// A backup beside sessions and definitions, and a power loss after this many polls or when it is done.
fn history(seed: u64, polls: u64, broken: Option<Broken>) -> History {
    history_of(&[TARGET], seed, polls, broken)
}

/// Several, one after the other, each of which adds to the one before.
pub(super) fn history_of(
    targets: &'static [&'static str],
    seed: u64,
    polls: u64,
    broken: Option<Broken>,
) -> History {
    let mut random = Random::new(seed);
    let environment = SimulatedEnvironment::new(random.next_u64());
    let shared: Arc<dyn Environment> = environment.clone();
    let journals: Journals = Arc::new((0..SESSIONS).map(|_| Mutex::default()).collect());
    let stop = Arc::new(AtomicBool::new(false));
    let report = Arc::new(Mutex::new(None));
    let db = environment.run_until_complete(async {
        let db = Database::open_in(shared, options("/data")).await.unwrap();
        prepare(&db).await;
        let mut parts: Vec<Part> = Vec::new();
        for number in 0..SESSIONS {
            let work = session(db.clone(), number, random.next_u64(), journals.clone(), stop.clone());
            parts.push(Box::pin(work));
        }
        parts.push(Box::pin(definitions(db.clone(), stop.clone())));
        let (source, noted, seen) = (db.clone(), report.clone(), journals.clone());
        let (warm_up, speed) = (random.below(400) as u64, 1 << (21 + random.below(3)));
        parts.push(Box::pin(async move {
            let mut since = None;
            for &target in targets {
                source.environment().sleep(Duration::from_millis(warm_up)).await;
                let seen = seen.clone();
                let progress = move |_| {
                    for journal in seen.iter() {
                        let mut journal = journal.lock();
                        journal.copied = journal.acknowledged;
                    }
                };
                let options = BackupOptions { broken, ..BackupOptions::default() };
                let mut options = options.progress(progress).bytes_per_second(speed);
                if let Some(base) = since.replace(target) {
                    options = options.since(base);
                }
                let made = source.backup_with(target, options).await.unwrap();
                *noted.lock() = Some(made);
            }
            stop.store(true, Ordering::Release);
        }));
        interleave(parts, random.next_u64(), polls).await;
        db
    });
    let after = environment.disk().crash(random.next_u64());
    drop(db);
    environment.shutdown();
    let report = report.lock().take();
    History { environment: SimulatedEnvironment::with_storage(random.next_u64(), after), journals, report }
}

fn restore_and_verify(history: &History) {
    restore_and_verify_from(TARGET, history);
}

/// From the last backup of the history.
pub(super) fn restore_and_verify_from(target: &str, history: &History) {
    let shared: Arc<dyn Environment> = history.environment.clone();
    let storage = shared.storage().clone();
    history.environment.run_until_complete(async {
        restore_in(&*storage, Path::new(target), Path::new("/restored"), |_| {}).unwrap();
        let db = Database::open_in(shared, options("/restored")).await.unwrap();
        verify(&db, &history.journals, |journal| journal.copied).await;
        db.close().await.unwrap();
    });
}

pub(super) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("UNTORN_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=count).collect(),
    }
}

#[test]
fn a_backup_is_a_moment_of_the_history() {
    let mut laps = 0;
    for seed in seeds(5) {
        println!("UNTORN_SEED={seed}");
        let history = history(seed, u64::MAX, None);
        let report = history.report.as_ref().unwrap();
        laps += u64::from(report.redo_bytes > 2 * MIB);
        restore_and_verify(&history);
    }
    assert!(laps > 0, "no backup saw the log go round");
}

/// Whether a backup made without a part of the protocol fails the comparison. It is made in any case.
fn is_noticed(broken: Broken) -> bool {
    seeds(6).into_iter().any(|seed| {
        let history = history(seed, u64::MAX, Some(broken));
        assert!(history.report.is_some());
        catch_unwind(AssertUnwindSafe(|| restore_and_verify(&history))).is_err()
    })
}

#[test]
fn a_backup_without_the_redo_of_its_time_is_noticed() {
    assert!(is_noticed(Broken::LogEndsAtStart));
}

#[test]
fn a_backup_that_lets_definitions_change_is_noticed() {
    assert!(is_noticed(Broken::DefinitionsGoOn));
}

#[test]
fn a_power_loss_leaves_the_source_whole_and_the_target_incomplete_or_finished() {
    let (mut unfinished, mut random) = (0, Random::new(7));
    for seed in seeds(10) {
        let polls = 500 + random.below(12_000) as u64;
        println!("UNTORN_SEED={seed} polls {polls}");
        let history = history(seed, polls, None);
        let shared: Arc<dyn Environment> = history.environment.clone();
        let storage = shared.storage().clone();
        let has_manifest = storage.exists(&Path::new(TARGET).join(MANIFEST)).unwrap();
        assert!(has_manifest || history.report.is_none(), "a finished backup is durable");
        history.environment.run_until_complete(async {
            let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
            verify(&db, &history.journals, |journal| journal.acknowledged).await;
            db.close().await.unwrap();
            let target = Path::new(TARGET);
            if !has_manifest && storage.exists(&target.join(INCOMPLETE)).unwrap() {
                unfinished += 1;
                let restored = restore_in(&*storage, target, Path::new("/restored"), |_| {});
                assert!(matches!(restored, Err(Error::Backup { .. })));
                assert!(!storage.exists(Path::new("/restored")).unwrap());
                let opened = Database::open_in(shared, options(TARGET)).await;
                assert!(matches!(opened, Err(Error::Backup { .. })));
            }
        });
        if has_manifest {
            restore_and_verify(&history);
        }
    }
    assert!(unfinished > 0, "no power loss hit a backup");
}

#[test]
fn a_backup_that_is_dropped_holds_nothing_back() {
    let environment = SimulatedEnvironment::new(1);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = Database::open_in(shared, options("/data")).await.unwrap();
        prepare(&db).await;
        let (source, begun) = (db.clone(), Arc::new(AtomicBool::new(false)));
        let told = begun.clone();
        let slow = BackupOptions::default().bytes_per_second(1).progress(move |_| {
            told.store(true, Ordering::Release);
        });
        let mut backup = Box::pin(async move { source.backup_with(TARGET, slow).await });
        while !begun.load(Ordering::Acquire) {
            let once = std::future::poll_fn(|context| {
                assert!(backup.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            });
            once.await;
            db.environment().sleep(Duration::from_millis(1)).await;
        }
        let at_once = db.definitions().timeout(Duration::ZERO);
        let refused = at_once.create_table("test", "u", accounts()).await;
        assert!(matches!(refused, Err(Error::MetadataLockTimeout)));
        drop(backup);
        db.create_table("test", "u", accounts()).await.unwrap();
        let again = db.backup(TARGET).await;
        assert!(matches!(again, Err(Error::Backup { .. })), "the target is not empty");
        db.backup("/backups/two").await.unwrap();
        db.close().await.unwrap();
        assert!(matches!(db.backup("/backups/three").await, Err(Error::Closed)));
    });
    let storage = environment.storage().clone();
    assert!(storage.exists(&Path::new(TARGET).join(INCOMPLETE)).unwrap());
    assert!(!storage.exists(&Path::new(TARGET).join(MANIFEST)).unwrap());
}

#[test]
fn every_changed_byte_and_missing_file_of_a_backup_is_noticed() {
    let environment = SimulatedEnvironment::new(3);
    let shared: Arc<dyn Environment> = environment.clone();
    let storage = shared.storage().clone();
    environment.run_until_complete(async {
        let db = Database::open_in(shared.clone(), options("/data")).await.unwrap();
        prepare(&db).await;
        db.backup(TARGET).await.unwrap();
        db.close().await.unwrap();
    });
    let mut random = Random::new(5);
    for (number, file) in
        ["test/t.ibd", "undo_001", "untorn.catalog", "#untorn_redo", MANIFEST].iter().enumerate()
    {
        let path = Path::new(TARGET).join(file);
        let opened = storage.open(&path, OpenHow::EXISTING.buffered()).unwrap();
        let at = random.below(opened.len().unwrap() as usize) as u64;
        let mut byte = [0];
        opened.read_at(&mut byte, at).unwrap();
        opened.write_at(&[byte[0] ^ 4], at).unwrap();
        let target = format!("/restored-{number}");
        let result = restore_in(&*storage, Path::new(TARGET), Path::new(&target), |_| {});
        assert!(matches!(result, Err(Error::Backup { .. })), "{file} at {at}: {result:?}");
        if storage.exists(Path::new(&target)).unwrap() {
            let opened = environment.run_until_complete(Database::open_in(shared.clone(), options(&target)));
            assert!(
                matches!(opened, Err(Error::Backup { .. })),
                "a restore that failed is no data directory"
            );
        }
        opened.write_at(&byte, at).unwrap();
    }
    restore_in(&*storage, Path::new(TARGET), Path::new("/restored"), |_| {}).unwrap();
    storage.remove(&Path::new(TARGET).join("test/t.ibd")).unwrap();
    assert!(restore_in(&*storage, Path::new(TARGET), Path::new("/again"), |_| {}).is_err());
}
