//! Torn and damaged pages at start, page by page and setting by setting, and what each level of forced
//! recovery leaves out. Each test damages a disk that a simulated power loss left, on purpose, and starts the
//! engine on it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use disk::probe::Atomic;
use disk::{Environment, SimulatedEnvironment, SimulatedStorage, Storage};
use page::PageId;
use untorn::asynchronous::Database;
use untorn::engine::{Durability, Error as TransactionError, UNDO_SPACE};
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Doublewrite, Error, Lock, Options, Range};

const PAGE: usize = 16384;
const ROWS: i64 = 2000;

fn options() -> Options {
    let mut options = Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20);
    options.doublewrite = Doublewrite::On;
    options
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
}

/// Runs `work` on a database opened on the disk, and gives back the environment with the database still open.
fn run<T>(
    disk: Arc<SimulatedStorage>,
    options: Options,
    work: impl AsyncFnOnce(&Database) -> T,
) -> (Arc<SimulatedEnvironment>, Database, T) {
    let environment = SimulatedEnvironment::with_storage(7, disk);
    let shared: Arc<dyn Environment> = environment.clone();
    let (database, result) = environment.run_until_complete(async {
        let database = Database::open_in(shared, options).await.unwrap();
        let result = work(&database).await;
        (database, result)
    });
    (environment, database, result)
}

fn open(
    disk: &Arc<SimulatedStorage>,
    options: Options,
) -> Result<(Arc<SimulatedEnvironment>, Database), Error> {
    let environment = SimulatedEnvironment::with_storage(8, disk.clone());
    let shared: Arc<dyn Environment> = environment.clone();
    let database = environment.run_until_complete(Database::open_in(shared, options))?;
    Ok((environment, database))
}

async fn update_all(database: &Database, counter: i64) {
    let table = database.table("test", "t").unwrap();
    let mut transaction = database.transaction();
    transaction.begin();
    for id in 0..ROWS {
        let changed =
            transaction.update(&table, &[Value::Int(id)], &[("counter", Value::Int(counter))]).await;
        assert!(changed.unwrap());
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

/// Counters of all rows.
async fn counters(database: &Database) -> Result<Vec<i64>, Error> {
    let table = database.table("test", "t")?;
    let mut transaction = database.transaction();
    let mut found = Vec::new();
    transaction
        .for_each(&table, &Range::all(), |row| {
            let Value::Int(counter) = row[1] else { panic!("{row:?}") };
            found.push(counter);
            true
        })
        .await?;
    Ok(found)
}

/// A disk after a clean stop: a table of rows with counter 1.
fn stopped(options: Options) -> Arc<SimulatedStorage> {
    let (environment, ..) = run(SimulatedStorage::new(3), options, async |database| {
        database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        database.create_table("test", "t", table_def()).await.unwrap();
        let table = database.table("test", "t").unwrap();
        let mut transaction = database.transaction();
        transaction.begin();
        for id in 0..ROWS {
            let text = [id as u8; 200];
            transaction.insert(&table, &[Value::Int(id), Value::Int(1), Value::bytes(&text)]).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        database.close().await.unwrap();
    });
    environment.disk().crash(1)
}

/// A disk after a power loss: all rows were updated to counter 2 and all pages written, the checkpoint not
/// moved since.
fn crashed(options: Options) -> Arc<SimulatedStorage> {
    let disk = stopped(options.clone());
    let (environment, ..) = run(disk, options, async |database| {
        update_all(database, 2).await;
        database.store().flush_all().await.unwrap();
    });
    environment.disk().crash(1)
}

fn file_of(page: PageId) -> PathBuf {
    if page.space == UNDO_SPACE { "/data/undo_001".into() } else { "/data/test/t.ibd".into() }
}

fn image(disk: &SimulatedStorage, page: PageId) -> Vec<u8> {
    disk.content(&file_of(page)).unwrap()[page.page as usize * PAGE..][..PAGE].to_vec()
}

/// Tears the page: its middle is of another time.
fn tear(disk: &SimulatedStorage, page: PageId) {
    assert!(disk.corrupt(&file_of(page), page.page as usize * PAGE + 4096, &[0xAB; 4096]));
}

/// Every whole copy: file, offset and page.
fn copies(disk: &SimulatedStorage, directory: &str) -> Vec<(PathBuf, usize, PageId)> {
    let mut found = Vec::new();
    for file in 0..8 {
        let path = Path::new(directory).join(format!("#ib_{PAGE}_{file}.dblwr"));
        let content = disk.content(&path).unwrap_or_default();
        for (slot, image) in content.chunks_exact(PAGE).enumerate() {
            if image.iter().any(|byte| *byte != 0) && page::verify(image).is_ok() {
                found.push((path.clone(), slot * PAGE, page::identity(image)));
            }
        }
    }
    found
}

/// Pages with a copy that a restart may use: the copy is what the file holds.
fn pages_with_copy(disk: &SimulatedStorage, directory: &str) -> Vec<PageId> {
    let mut pages: Vec<PageId> = copies(disk, directory)
        .into_iter()
        .filter(|(path, offset, page)| disk.content(path).unwrap()[*offset..][..PAGE] == image(disk, *page))
        .map(|(_, _, page)| page)
        .collect();
    pages.sort();
    pages.dedup();
    pages
}

fn page_type(disk: &SimulatedStorage, page: PageId) -> u16 {
    let image = image(disk, page);
    u16::from_be_bytes([image[24], image[25]])
}

/// A leaf page of the table that redo changes but does not reinitialise.
fn a_leaf(disk: &SimulatedStorage, directory: &str) -> PageId {
    let is_leaf = |page: &&PageId| {
        page.space != UNDO_SPACE && page_type(disk, **page) == 17855 && image(disk, **page)[64..66] == [0, 0]
    };
    *pages_with_copy(disk, directory).iter().filter(is_leaf).nth(2).expect("leaves were written")
}

#[test]
fn torn_pages_of_every_kind_are_restored_and_listed() {
    let disk = crashed(options());
    let pages = pages_with_copy(&disk, "/data");
    let undo = pages.iter().filter(|page| page.space == UNDO_SPACE).count();
    assert!(undo > 0 && pages.len() - undo > 5, "both kinds have copies: {pages:?}");
    // The header, the root, leaves, undo pages: each of them once, then all together.
    let mut victims: Vec<Vec<PageId>> = pages.iter().map(|page| vec![*page]).take(12).collect();
    victims.push(pages.clone());
    for torn in victims {
        let disk = disk.crash(5);
        for page in &torn {
            tear(&disk, *page);
        }
        let (environment, database) = open(&disk, options()).unwrap();
        assert_eq!(database.report().restored_pages, torn);
        assert!(database.report().to_string().contains(&torn[0].to_string()), "{}", database.report());
        let found = environment.run_until_complete(counters(&database)).unwrap();
        assert_eq!(found, vec![2; ROWS as usize]);
        let check = environment.run_until_complete(
            database.definitions().timeout(Duration::from_secs(1)).check_table("test", "t"),
        );
        assert!(check.unwrap().is_sound());
    }
}

#[test]
fn a_zeroed_page_is_restored() {
    let disk = crashed(options());
    let page = a_leaf(&disk, "/data");
    assert!(disk.corrupt(&file_of(page), page.page as usize * PAGE, &[0; PAGE]));
    let (environment, database) = open(&disk, options()).unwrap();
    assert_eq!(database.report().restored_pages, [page]);
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![2; ROWS as usize]);
}

#[test]
fn a_page_newer_than_its_copy_is_left_alone() {
    let (environment, ..) = run(stopped(options()), options(), async |database| {
        update_all(database, 2).await;
        database.store().flush_all().await.unwrap();
        // Newer images without copies.
        database.set_doublewrite(Doublewrite::Off).unwrap();
        update_all(database, 3).await;
        database.store().flush_all().await.unwrap();
    });
    let disk = environment.disk().crash(1);
    let newer = copies(&disk, "/data")
        .iter()
        .filter(|(path, offset, page)| {
            let (copy, file) = (disk.content(path).unwrap(), image(&disk, *page));
            page::lsn(&copy[*offset..*offset + PAGE]) < page::lsn(&file)
        })
        .count();
    assert!(newer > 5, "{newer} pages are newer than their copies");
    let (environment, database) = open(&disk, options()).unwrap();
    assert!(database.report().restored_pages.is_empty());
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![3; ROWS as usize]);
}

/// Atomic writes by copy-on-write need room for each page; a full file system has none, at run time and at a
/// start.
#[test]
fn a_full_file_system_that_writes_atomically_by_copy_stops_nothing_that_does_not_grow() {
    let auto = || options().doublewrite(Doublewrite::Auto);
    for offered in [Atomic::Hardware, Atomic::FileSystem] {
        let disk = stopped(auto());
        disk.offer(offered);
        disk.leave_no_room_for_atomic_writes(true);
        let (environment, database, ()) = run(disk, auto(), async |database| {
            for counter in 2..5 {
                update_all(database, counter).await;
                database.store().checkpoint().await.unwrap();
            }
            update_all(database, 5).await;
        });
        assert!(database.store().poisoned().is_none());
        let tried = environment.disk().counters().atomic_writes;
        assert!(tried > 10 || offered == Atomic::FileSystem, "{tried} atomic writes were tried");
        let disk = environment.disk().crash(1);
        let (environment, database) = open(&disk, auto()).unwrap();
        environment.run_until_complete(async {
            assert_eq!(counters(&database).await.unwrap(), vec![5; ROWS as usize]);
            update_all(&database, 6).await;
            database.close().await.unwrap();
        });
    }
}

/// Once the mode that protects is acknowledged, nothing that was written without protection may be torn by a
/// power cut.
#[test]
fn protection_that_is_switched_on_covers_what_was_written_before() {
    let off = || options().doublewrite(Doublewrite::Off);
    let disk = stopped(off());
    let torn_after = |switch_on: bool, seed: u64| {
        let (environment, _database, ()) = run(disk.crash(seed), off(), async |database| {
            update_all(database, 2).await;
            // The cleaner writes ahead, and leaves it to the next checkpoint to sync that.
            let written = database.store().status().pages_written;
            while database.store().status().pages_written < written + 20 {
                database.environment().sleep(Duration::from_millis(1)).await;
            }
            if switch_on {
                database.set_doublewrite(Doublewrite::On).unwrap();
            }
        });
        let left = environment.disk().crash(seed);
        match open(&left, off()) {
            Ok((environment, database)) => {
                let found = environment.run_until_complete(counters(&database)).unwrap();
                assert_eq!(found, vec![2; ROWS as usize], "seed {seed}");
                false
            }
            Err(_) => true,
        }
    };
    assert!((0..20).any(|seed| torn_after(false, seed)), "unprotected pages are torn by power cuts");
    for seed in 0..20 {
        assert!(!torn_after(true, seed), "seed {seed}: a page is torn");
    }
}

#[test]
fn a_page_torn_in_both_places_stops_the_start_and_level_1_gets_past_it() {
    let disk = crashed(options());
    let page = a_leaf(&disk, "/data");
    tear(&disk, page);
    for (path, offset, _) in copies(&disk, "/data").into_iter().filter(|(_, _, copy)| *copy == page) {
        assert!(disk.corrupt(&path, offset + 8192, &[0xCD; 512]));
    }
    let error = open(&disk, options()).err().expect("the start must stop");
    assert!(matches!(&error, Error::Damaged { page: named, level: 1, .. } if *named == page), "{error}");
    let text = error.to_string();
    for part in
        ["table 'test.t'", "t.ibd", "copy in the doublewrite file is damaged", "innodb_force_recovery=1"]
    {
        assert!(text.contains(part), "{text}");
    }
    let (environment, database) = open(&disk, options().force_recovery(1)).unwrap();
    assert_eq!(database.report().skipped_pages, [page]);
    environment.run_until_complete(async {
        let table = database.table("test", "t").unwrap();
        let mut transaction = database.transaction();
        // The first row is on another page; the scan meets the damage.
        assert!(transaction.get(&table, &[Value::Int(0)], Lock::None).await.unwrap().is_some());
        assert!(counters(&database).await.is_err());
        transaction.begin();
        let refused = transaction.update(&table, &[Value::Int(0)], &[("counter", Value::Int(9))]).await;
        let refused = refused.expect_err("rows cannot be changed");
        assert!(matches!(refused, Error::Transaction(TransactionError::ForcedRecovery(1))), "{refused}");
        transaction.rollback().await.unwrap();
        // A damaged table can be dropped.
        database.definitions().timeout(Duration::from_secs(1)).drop_table("test", "t").await.unwrap();
        database.close().await.unwrap();
    });
    assert!(open(&environment.disk().crash(3), options()).is_ok(), "the damage is gone with the table");
}

#[test]
fn detect_only_names_the_torn_page_and_cannot_restore_it() {
    let on = crashed(options());
    let page = a_leaf(&on, "/data");
    let disk = crashed(options().doublewrite(Doublewrite::DetectOnly));
    assert!(pages_with_copy(&disk, "/data").is_empty());
    let whole = open(&disk, options().doublewrite(Doublewrite::DetectOnly)).unwrap();
    assert!(whole.1.report().restored_pages.is_empty());
    let disk = crashed(options().doublewrite(Doublewrite::DetectOnly));
    tear(&disk, page);
    let text = open(&disk, options()).err().expect("torn").to_string();
    assert!(text.contains("DETECT_ONLY") && text.contains(&page.to_string()), "{text}");
}

#[test]
fn a_page_without_a_copy_is_made_anew_when_redo_initialises_it() {
    // Everything is created after the only checkpoint, so no page needs a copy, and none has one.
    let (environment, ..) = run(SimulatedStorage::new(3), options(), async |database| {
        database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        database.create_table("test", "t", table_def()).await.unwrap();
        let table = database.table("test", "t").unwrap();
        let mut transaction = database.transaction();
        transaction.begin();
        for id in 0..ROWS {
            transaction
                .insert(&table, &[Value::Int(id), Value::Int(1), Value::bytes(&[1; 200])])
                .await
                .unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        database.store().flush_all().await.unwrap();
        let figures = database.status();
        let skipped =
            figures.iter().find(|(name, _)| *name == "Untorn_pages_written_without_copy").unwrap().1;
        assert!(skipped > 20, "{skipped} new pages were written once");
    });
    let disk = environment.disk().crash(1);
    let pages = (disk.content(&file_of(PageId::new(1, 0))).unwrap().len() / PAGE) as u32;
    let space = page::space_id(&disk.content(Path::new("/data/test/t.ibd")).unwrap());
    let with_copy = pages_with_copy(&disk, "/data");
    let mut torn = 0;
    for page in (4..pages).map(|page| PageId::new(space, page)) {
        if page_type(&disk, page) == 17855 && !with_copy.contains(&page) {
            tear(&disk, page);
            torn += 1;
        }
    }
    assert!(torn > 10, "{torn}");
    let (environment, database) = open(&disk, options()).unwrap();
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![1; ROWS as usize]);
}

#[test]
fn copies_in_files_and_directories_of_an_older_setting_are_found() {
    let mut older = options();
    older.doublewrite_dir = Some("first".into());
    older.doublewrite_files = 5;
    let mut newer = options();
    newer.doublewrite_dir = Some("second".into());
    newer.doublewrite_files = 1;
    let disk = crashed(older);
    let page = a_leaf(&disk, "/data/first");
    tear(&disk, page);
    let (environment, database) = open(&disk, newer.clone()).unwrap();
    assert_eq!(database.report().restored_pages, [page]);
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![2; ROWS as usize]);
    drop(database);
    // And back to the data directory.
    let disk = crashed(newer);
    let page = a_leaf(&disk, "/data/second");
    tear(&disk, page);
    assert_eq!(open(&disk, options()).unwrap().1.report().restored_pages, [page]);
}

#[test]
fn level_2_purges_nothing() {
    let (environment, ..) = run(stopped(options()), options(), async |database| {
        let _paused = database.transaction_system().pause_purge().await;
        update_all(database, 2).await;
    });
    let disk = environment.disk().crash(1);
    let history = |level| {
        let (environment, database) = open(&disk.crash(2), options().force_recovery(level)).unwrap();
        environment.run_until_complete(environment.sleep(Duration::from_secs(20)));
        database.transaction_system().status().history_length
    };
    assert_eq!(history(0), 0);
    assert!(history(2) > 0);
}

/// A disk after a power loss during a transaction that set all counters to 9; its log is durable.
fn crashed_in_a_transaction() -> Arc<SimulatedStorage> {
    let (environment, database, transaction) = run(stopped(options()), options(), async |database| {
        let table = database.table("test", "t").unwrap();
        let mut transaction = database.transaction();
        transaction.begin();
        for id in 0..ROWS {
            transaction.update(&table, &[Value::Int(id)], &[("counter", Value::Int(9))]).await.unwrap();
        }
        database.store().flush_all().await.unwrap();
        transaction
    });
    let disk = environment.disk().crash(1);
    drop((transaction, database));
    disk
}

#[test]
fn level_3_rolls_nothing_back_and_readers_do_not_see_it() {
    let disk = crashed_in_a_transaction();
    let (environment, database) = open(&disk.crash(2), options().force_recovery(3)).unwrap();
    assert_eq!(database.report().rolled_back, 0);
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![1; ROWS as usize]);
    environment.run_until_complete(database.close()).unwrap();
    drop(database);
    // An ordinary start afterwards does what was left out.
    let (environment, database) = open(&environment.disk().crash(3), options()).unwrap();
    assert_eq!(database.report().rolled_back, 1);
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![1; ROWS as usize]);
}

#[test]
fn tables_can_be_made_and_dropped_up_to_level_3() {
    let disk = stopped(options());
    for level in 1..=6 {
        let (environment, database) = open(&disk.crash(2), options().force_recovery(level)).unwrap();
        let made = environment.run_until_complete(database.create_table("test", "u", table_def()));
        let dropped = environment.run_until_complete(
            database.definitions().timeout(Duration::from_secs(1)).drop_table("test", "t"),
        );
        if level <= 3 {
            made.unwrap();
            dropped.unwrap();
        } else {
            for result in [made.map(drop), dropped] {
                assert!(matches!(result, Err(Error::ForcedRecovery(l)) if l == level), "level {level}");
            }
            assert_eq!(environment.run_until_complete(counters(&database)).unwrap().len(), ROWS as usize);
        }
        environment.run_until_complete(database.close()).unwrap();
    }
    assert!(open(&disk, options().force_recovery(7)).is_err());
}

#[test]
fn level_5_reads_no_undo_log() {
    let disk = crashed_in_a_transaction();
    // The directory of the undo logs, and every copy of it.
    let page = PageId::new(UNDO_SPACE, 3);
    tear(&disk, page);
    for (path, offset, _) in copies(&disk, "/data").into_iter().filter(|(_, _, copy)| *copy == page) {
        assert!(disk.corrupt(&path, offset, &[0xCD; 512]));
    }
    let error = open(&disk, options()).err().expect("the start needs the undo logs");
    assert!(matches!(&error, Error::Damaged { level: 5, .. }), "{error}");
    let (environment, database) = open(&disk, options().force_recovery(5)).unwrap();
    // What had not committed counts as committed.
    assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![9; ROWS as usize]);
}

#[test]
fn level_6_does_without_the_redo_log_and_leaves_it_alone() {
    let (environment, ..) = run(stopped(options()), options(), async |database| {
        update_all(database, 2).await;
    });
    let disk = environment.disk().crash(1);
    let path = Path::new("/data/#untorn_redo");
    for damaged in [false, true] {
        let disk = disk.crash(2);
        if damaged {
            // Both checkpoint blocks.
            assert!(disk.corrupt(path, 0, &[0xEE; 512]) && disk.corrupt(path, 4096, &[0xEE; 512]));
            assert!(open(&disk, options()).is_err());
        }
        let before = disk.content(path).unwrap();
        let (environment, database) = open(&disk, options().force_recovery(6)).unwrap();
        // Some pages may have been written before the crash, the log not applied: every row is there, old or
        // new.
        let found = environment.run_until_complete(counters(&database)).unwrap();
        assert_eq!(found.len(), ROWS as usize);
        assert!(found.contains(&1), "the changes are in the log, which is not applied");
        environment.run_until_complete(database.close()).unwrap();
        drop(database);
        let left = environment.disk().clone();
        assert!(left.content(path).unwrap() == before, "the log was touched");
        if !damaged {
            let (environment, database) = open(&left, options()).unwrap();
            assert_eq!(environment.run_until_complete(counters(&database)).unwrap(), vec![2; ROWS as usize]);
        }
    }
}

/// Splits, merges, off-page values, a crash, recovery and a check, at every page size.
#[test]
fn every_page_size_works_end_to_end() {
    for bytes in [4096u32, 8192, 16384, 32768, 65536] {
        let mut options = options().page_size(bytes);
        options.doublewrite_pages = 32;
        options.buffer_pool_bytes = 8 << 20;
        // The least that may be set: less than a structure change of a high tree of large pages puts into the
        // log.
        options.log_buffer_bytes = 1 << 20;
        let size = |id: i64| if id % 50 == 0 { 3 * bytes as usize } else { 20 + (id as usize * 7) % 300 };
        let (environment, ..) = run(SimulatedStorage::new(3), options.clone(), async |database| {
            assert!(database.redo().mini_transaction_bytes_max() >= 30 * bytes as usize);
            database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
            let def = table_def().key("counter_1", untorn::schema::KeyKind::Secondary, &["counter"]);
            database.create_table("test", "t", def).await.unwrap();
            let table = database.table("test", "t").unwrap();
            for chunk in 0..10 {
                let mut transaction = database.transaction();
                transaction.begin();
                for id in (0..ROWS).filter(|id| id % 10 == chunk) {
                    let text = vec![id as u8; size(id)];
                    let row = [Value::Int(id), Value::Int(id % 7), Value::bytes(&text)];
                    transaction.insert(&table, &row).await.unwrap();
                }
                transaction.commit(Durability::Sync).await.unwrap();
            }
            database.store().flush_all().await.unwrap();
            let mut transaction = database.transaction();
            transaction.begin();
            for id in (0..ROWS).filter(|id| id % 3 == 0) {
                transaction.delete(&table, &[Value::Int(id)]).await.unwrap();
            }
            transaction.commit(Durability::Sync).await.unwrap();
        });
        for crash in 0..2 {
            let (environment, database) = open(&environment.disk().crash(crash), options.clone()).unwrap();
            environment.run_until_complete(async {
                let table = database.table("test", "t").unwrap();
                let mut transaction = database.transaction();
                let mut expected = (0..ROWS).filter(|id| id % 3 != 0);
                transaction
                    .for_each(&table, &Range::all(), |row| {
                        let id = expected.next().unwrap();
                        let (Value::Int(found), Value::Bytes(text)) = (&row[0], &row[2]) else {
                            panic!("{row:?}")
                        };
                        assert_eq!((*found, text.len()), (id, size(id)), "{bytes}-byte pages");
                        assert!(text.iter().all(|byte| *byte == id as u8));
                        true
                    })
                    .await
                    .unwrap();
                assert_eq!(expected.next(), None);
                drop(transaction);
                let report = database
                    .definitions()
                    .timeout(Duration::from_secs(1))
                    .check_table("test", "t")
                    .await
                    .unwrap();
                assert!(report.is_sound(), "{bytes}-byte pages: {:#?}", report.problems);
                database.close().await.unwrap();
            });
        }
        let length = environment.disk().content(Path::new("/data/test/t.ibd")).unwrap().len();
        assert!(length.is_multiple_of(bytes as usize), "{length}");
    }
}
