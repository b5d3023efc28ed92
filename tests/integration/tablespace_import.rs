//! IMPORT TABLESPACE: files of stock servers and of this engine become tables with the rows they had; what
//! does not fit or is damaged is refused and left as it was; a page of the table's earlier file is never
//! served again.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::definitions::names_in;
use disk::{Environment, OpenHow, SimulatedEnvironment};
use sha2::{Digest, Sha256};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Error, ImportReport, Lock, Options, Range};

const PATIENCE: Duration = Duration::from_secs(1);
const PAGE: usize = 16384;
const MIB: u64 = 1 << 20;

macro_rules! fixture {
    ($name:literal) => {
        &include_bytes!(concat!("../fixtures/", $name))[..]
    };
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

fn options() -> Options {
    Options::new("/data").buffer_pool_bytes(5 * MIB).redo_capacity_bytes(8 * MIB)
}

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options()).await.unwrap()
}

/// Puts a file where the DBA would copy it.
fn put(environment: &SimulatedEnvironment, name: &str, bytes: &[u8]) {
    let path = PathBuf::from("/data/test").join(name);
    let storage = environment.storage();
    if storage.exists(&path).unwrap() {
        storage.remove(&path).unwrap();
    }
    let file = storage.open(&path, OpenHow::CREATE_NEW.buffered()).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    storage.sync_dir(Path::new("/data/test")).unwrap();
}

fn content(environment: &SimulatedEnvironment, name: &str) -> Option<Vec<u8>> {
    environment.disk().content(&PathBuf::from("/data/test").join(name))
}

async fn discarded(db: &Database, def: TableDef) {
    if db.database("test").is_none() {
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    }
    db.create_table("test", "t", def).await.unwrap();
    db.discard_tablespace("test", "t").await.unwrap();
}

async fn import(db: &Database) -> Result<ImportReport, Error> {
    db.import_tablespace("test", "t").await
}

async fn check(db: &Database) -> untorn::CheckReport {
    let report = db.check_table("test", "t").await.unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    report
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::Decimal(v) => v.to_string(),
        Value::Bytes(v) => String::from_utf8_lossy(v).into_owned(),
        Value::Date(v) => v.to_string(),
        Value::DateTime(v) => format!("{v:.0}"),
        Value::Time(v) => v.to_string(),
    }
}

/// A row as the listing of the fixtures writes it.
fn listed(row: &[Value<'_>]) -> String {
    let digest = |value: &Value<'_>| match value {
        Value::Bytes(bytes) => hex(&Sha256::digest(bytes)).to_lowercase(),
        _ => "NULL".to_owned(),
    };
    let fields = row.iter().enumerate().map(|(column, value)| match (column, value) {
        (3 | 14, Value::Bytes(bytes)) => hex(bytes),
        (4, Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).trim_end().to_owned(),
        (9, Value::DateTime(time)) => format!("{time:.3}"),
        (13, Value::UInt(member)) => ["red", "green", "blue"][*member as usize - 1].to_owned(),
        (15, value) => digest(value),
        (16, Value::Bytes(bytes)) => format!("{}\t{}", bytes.len(), digest(value)),
        (16, _) => "NULL\tNULL".to_owned(),
        (_, value) => text(value),
    });
    fields.collect::<Vec<_>>().join("\t")
}

async fn rows(db: &Database, table: &str) -> Vec<Vec<Value<'static>>> {
    let table = db.table("test", table).unwrap();
    let mut rows = Vec::new();
    let mut transaction = db.transaction();
    let all = Range::all();
    let read = transaction.for_each(&table, &all, |row| {
        rows.push(row.iter().map(|value| value.clone().into_owned()).collect());
        true
    });
    read.await.unwrap();
    rows
}

/// Imports a file of a stock server, compares every row, and works with the table.
fn sample_is_imported(ibd: &[u8], cfg: Option<&[u8]>) {
    let expected = String::from_utf8(unpacked(fixture!("sample-rows.tsv.gz"))).unwrap();
    let expected: Vec<&str> = expected.lines().skip(1).collect();
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        discarded(&db, crate::sample::definition()).await;
        put(&environment, "t.ibd", &unpacked(ibd));
        if let Some(cfg) = cfg {
            put(&environment, "t.cfg", cfg);
        }
        let report = import(&db).await.unwrap();
        assert_eq!((report.rows as usize, report.missing_cfg.is_none()), (expected.len(), cfg.is_some()));
        // The copy has the name of the file that was imported, whatever that one's format.
        let put_there = if cfg.is_some() { &["t.cfg", "t.ibd"][..] } else { &["t.ibd"] };
        assert_eq!(names_in(&environment, "test"), put_there);
        let content = environment.disk().content(std::path::Path::new("/data/test/t.ibd")).unwrap();
        assert_ne!(content, unpacked(ibd));
        let checked = check(&db).await;
        assert_eq!(checked.lost_pages, 0, "pages that belong to nobody");
        let found = rows(&db, "t").await;
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(listed(found), *expected);
        }
        assert_eq!(db.table("test", "t").unwrap().next_auto_increment(), Some(701));
        change_rows(&db).await;
        check(&db).await;
        db.close().await.unwrap();
    });
    environment.shutdown();
    // What was changed after the import is there after a power loss, and the file opens as any other.
    let after = SimulatedEnvironment::with_storage(2, environment.disk().crash(7));
    after.run_until_complete(async {
        let db = open(&after).await;
        check(&db).await;
        assert_eq!(rows(&db, "t").await.len(), expected.len() - expected.len().div_ceil(3));
    });
    after.shutdown();
}

/// Deletes every third row and changes the others, off-page values too.
async fn change_rows(db: &Database) {
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.transaction();
    let doc = vec![7_u8; 40_000];
    for (at, row) in rows(db, "t").await.iter().enumerate() {
        transaction.begin();
        let key = &row[..1];
        if at % 3 == 0 {
            assert!(transaction.delete(&table, key).await.unwrap());
        } else {
            let changes = [("s", Value::Int(at as i64 % 100)), ("doc", Value::bytes(&doc))];
            assert!(transaction.update(&table, key, &changes).await.unwrap());
        }
        transaction.commit(Durability::Sync).await.unwrap();
    }
}

#[test]
fn a_file_of_mariadb_in_our_format() {
    sample_is_imported(fixture!("mariadb-crc32.ibd.gz"), Some(fixture!("mariadb-crc32.cfg")));
    sample_is_imported(fixture!("mariadb-crc32.ibd.gz"), None);
}

#[test]
fn a_file_of_mariadb_in_its_default_format() {
    sample_is_imported(fixture!("mariadb-full_crc32.ibd.gz"), Some(fixture!("mariadb-full_crc32.cfg")));
    sample_is_imported(fixture!("mariadb-full_crc32.ibd.gz"), None);
}

#[test]
fn a_file_of_mysql_with_its_dictionary_and_its_off_page_values() {
    sample_is_imported(fixture!("mysql-9.7.ibd.gz"), Some(fixture!("mysql-9.7.cfg")));
    sample_is_imported(fixture!("mysql-9.7.ibd.gz"), None);
}

fn own_def(clustered: bool) -> TableDef {
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("k", ColumnType::int()).nullable(),
        ColumnDef::new("name", ColumnType::varchar(60)),
        ColumnDef::new("doc", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ]);
    let def =
        if clustered { def.primary_key(&["id"]) } else { def.key("by_id", KeyKind::Secondary, &["id"]) };
    def.key("by_k", KeyKind::Secondary, &["k"]).key("by_name", KeyKind::Secondary, &["name", "k"])
}

/// An Untorn table with updates, deletes and off-page values.
async fn fill(db: &Database, name: &str) {
    let table = db.table("test", name).unwrap();
    let mut transaction = db.transaction();
    let doc = |id: i64| (id % 4 == 0).then(|| vec![id as u8; 9_000 + (id as usize * 977) % 50_000]);
    for id in 0..600_i64 {
        transaction.begin();
        let (doc, name) = (doc(id), format!("name {}", id * 7919 % 600));
        let row = [
            Value::Int(id),
            Value::from((id % 5 != 0).then_some(id % 50)),
            Value::from(name),
            doc.as_deref().map_or(Value::Null, Value::from),
        ];
        transaction.insert(&table, &row).await.unwrap();
        transaction.commit(Durability::Sync).await.unwrap();
    }
    if table.def.clustered_key().is_none() {
        return;
    }
    for id in 0..600_i64 {
        transaction.begin();
        let key = [Value::Int(id)];
        match id % 6 {
            0 => assert!(transaction.delete(&table, &key).await.unwrap()),
            1 => {
                let longer = doc(4 * id);
                let doc = longer.as_deref().map_or(Value::Null, Value::from);
                let changes = [("k", Value::Int(1000 + id)), ("doc", doc)];
                assert!(transaction.update(&table, &key, &changes).await.unwrap());
            }
            _ => {}
        }
        transaction.commit(Durability::Sync).await.unwrap();
    }
}

/// Exports an Untorn table and gives its two files.
async fn exported(db: &Database, environment: &SimulatedEnvironment, name: &str) -> (Vec<u8>, Vec<u8>) {
    let _hold = db.export_table("test", name).await.unwrap();
    let file = |suffix: &str| content(environment, &format!("{name}.{suffix}")).unwrap();
    (file("ibd"), file("cfg"))
}

/// A database whose table `source` is filled, and the files that it exports.
async fn with_source(environment: &Arc<SimulatedEnvironment>, def: TableDef) -> (Database, Vec<u8>, Vec<u8>) {
    let db = open(environment).await;
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "source", def).await.unwrap();
    fill(&db, "source").await;
    let (ibd, cfg) = exported(&db, environment, "source").await;
    (db, ibd, cfg)
}

#[test]
fn our_own_table_comes_back_as_another() {
    for (clustered, with_cfg) in [(true, true), (true, false), (false, true), (false, false)] {
        let environment = SimulatedEnvironment::new(3);
        environment.run_until_complete(async {
            let (db, ibd, cfg) = with_source(&environment, own_def(clustered)).await;
            discarded(&db, own_def(clustered)).await;
            put(&environment, "t.ibd", &ibd);
            if with_cfg {
                put(&environment, "t.cfg", &cfg);
            }
            import(&db).await.unwrap();
            check(&db).await;
            assert_eq!(rows(&db, "t").await, rows(&db, "source").await);
            // Both live on.
            fill_more(&db, "t").await;
            fill_more(&db, "source").await;
            check(&db).await;
            assert_eq!(rows(&db, "t").await, rows(&db, "source").await);
            assert!(db.discard_tablespace("test", "t").await.is_ok());
        });
        environment.shutdown();
    }
}

/// `FLUSH TABLES source, other FOR EXPORT`: the second cannot have purge clean up the file that is being
/// copied already. What is not purged is removed by the import.
#[test]
fn a_table_that_is_held_stays_as_it_is_while_another_is_exported() {
    let environment = SimulatedEnvironment::new(5);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for name in ["source", "other", "elsewhere"] {
            db.create_table("test", name, own_def(true)).await.unwrap();
        }
        // Its view keeps what is replaced and deleted.
        let mut reader = db.transaction();
        reader.begin();
        let elsewhere = db.table("test", "elsewhere").unwrap();
        reader.for_each(&elsewhere, &Range::all(), |_| true).await.unwrap();
        fill(&db, "source").await;
        fill(&db, "other").await;
        let hold = db.export_table("test", "source").await.unwrap();
        let held = content(&environment, "source.ibd").unwrap();
        reader.commit(Durability::Sync).await.unwrap();
        drop(reader);
        let (ibd, cfg) = exported(&db, &environment, "other").await;
        db.store().flush_all().await.unwrap();
        assert!(content(&environment, "source.ibd").unwrap() == held, "it was changed while it was held");
        drop(hold);
        discarded(&db, own_def(true)).await;
        put(&environment, "t.ibd", &ibd);
        put(&environment, "t.cfg", &cfg);
        import(&db).await.unwrap();
        check(&db).await;
        assert_eq!(rows(&db, "t").await, rows(&db, "other").await);
    });
    environment.shutdown();
}

async fn fill_more(db: &Database, name: &str) {
    let table = db.table("test", name).unwrap();
    let mut transaction = db.transaction();
    for id in 1000..1100_i64 {
        transaction.begin();
        let row = [Value::Int(id), Value::Null, Value::from("more"), Value::Null];
        transaction.insert(&table, &row).await.unwrap();
        transaction.commit(Durability::Sync).await.unwrap();
    }
}

/// A file copied while rows were delete-marked: nobody purged them.
#[test]
fn delete_marked_records_do_not_come_along() {
    let environment = SimulatedEnvironment::new(4);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("test", "source", own_def(true)).await.unwrap();
        // A view that sees all rows keeps purge away.
        let source = db.table("test", "source").unwrap();
        let mut viewer = db.transaction();
        {
            let mut transaction = db.transaction();
            transaction.begin();
            let row = [Value::Int(-1), Value::Null, Value::from(""), Value::Null];
            transaction.insert(&source, &row).await.unwrap();
            transaction.commit(Durability::Sync).await.unwrap();
        }
        viewer.begin();
        viewer.get(&source, &[Value::Int(-1)], Lock::None).await.unwrap().unwrap();
        fill(&db, "source").await;
        db.store().flush_space(source.def.space).await.unwrap();
        let ibd = content(&environment, "source.ibd").unwrap();
        discarded(&db, own_def(true)).await;
        put(&environment, "t.ibd", &ibd);
        let report = import(&db).await.unwrap();
        assert!(report.removed_records > 100, "{report:?}");
        assert_eq!(check(&db).await.lost_pages, 0);
        let found = rows(&db, "t").await;
        assert_eq!(found, rows(&db, "source").await);
        viewer.commit(Durability::Sync).await.unwrap();
    });
    environment.shutdown();
}

#[test]
fn a_discarded_table_refuses_work_and_survives_restarts() {
    let environment = SimulatedEnvironment::new(5);
    let is_discarded = |error: Error| assert!(matches!(error, Error::TablespaceDiscarded(..)), "{error}");
    environment.run_until_complete(async {
        let db = open(&environment).await;
        discarded(&db, own_def(true)).await;
        assert!(content(&environment, "t.ibd").is_none());
        db.close().await.unwrap();
    });
    environment.shutdown();
    let environment = SimulatedEnvironment::with_storage(6, environment.disk().crash(1));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let table = db.table("test", "t").unwrap();
        let mut transaction = db.transaction();
        transaction.begin();
        is_discarded(transaction.get(&table, &[Value::Int(1)], Lock::None).await.unwrap_err());
        is_discarded(transaction.open_table("test", "t", PATIENCE).await.err().unwrap());
        transaction.rollback().await.unwrap();
        is_discarded(db.check_table("test", "t").await.unwrap_err());
        is_discarded(db.truncate_table("test", "t").await.unwrap_err());
        is_discarded(db.export_table("test", "t").await.err().unwrap());
        assert!(matches!(import(&db).await.unwrap_err(), Error::TablespaceMissing { .. }));
        // Twice is once.
        db.discard_tablespace("test", "t").await.unwrap();
        put(&environment, "t.ibd", b"somebody's");
        db.drop_table("test", "t").await.unwrap();
        assert_eq!(content(&environment, "t.ibd").unwrap(), b"somebody's");
        environment.storage().remove(Path::new("/data/test/t.ibd")).unwrap();
        db.create_table("test", "t", own_def(true)).await.unwrap();
        assert!(matches!(import(&db).await.unwrap_err(), Error::TablespaceExists(..)));
        check(&db).await;
        db.close().await.unwrap();
    });
    environment.shutdown();
}

/// What is done to a good file, and a part of the text that must be said about it.
type Damage = (&'static str, fn(&mut Vec<u8>), &'static str);

fn seal(file: &mut [u8], page: usize) {
    let image = &mut file[page * PAGE..(page + 1) * PAGE];
    let lsn = page::Lsn(page::lsn(image));
    page::seal(image, lsn);
}

const DAMAGE: &[Damage] = &[
    ("a flipped bit", |file| file[5 * PAGE + 9000] ^= 4, "page 5: checksum"),
    ("a torn page", |file| file[6 * PAGE + 8192..7 * PAGE].fill(0), "page 6"),
    ("a cut file", |file| file.truncate(file.len() - 100), "its length of"),
    ("no pages", |file| file.truncate(PAGE), "its length of"),
    (
        "two pages exchanged",
        |file| {
            let page = file[5 * PAGE..6 * PAGE].to_vec();
            file.copy_within(6 * PAGE..7 * PAGE, 5 * PAGE);
            file[6 * PAGE..7 * PAGE].copy_from_slice(&page);
        },
        "page 5: its header says page 6",
    ),
    (
        "a page of another tablespace",
        |file| {
            file[5 * PAGE + 37] ^= 1;
            seal(file, 5);
        },
        "page 5: it belongs to tablespace",
    ),
    (
        "an unknown kind of page",
        |file| {
            file[4 * PAGE + 25] = 99;
            seal(file, 4);
        },
        "page 4: pages of type",
    ),
    (
        "another page size",
        |file| {
            file[54..58].copy_from_slice(&(0x21_u32 | 4 << 6).to_be_bytes());
            seal(file, 0);
        },
        "another page size",
    ),
    (
        "another row format",
        |file| {
            file[54..58].fill(0);
            seal(file, 0);
        },
        "another row format",
    ),
    (
        "a record outside the page",
        |file| {
            // The next record of infimum.
            file[4 * PAGE + 97..4 * PAGE + 99].copy_from_slice(&[0x7F, 0]);
            seal(file, 4);
        },
        "page 4: as a page of index",
    ),
    (
        "a descriptor that lies",
        |file| {
            // Pages 4 to 7 of the first extent become free.
            file[150 + 24 + 1] = 0xFF;
            seal(file, 0);
        },
        "",
    ),
    (
        "an index without its root",
        |file| {
            file[4 * PAGE + 8..4 * PAGE + 12].copy_from_slice(&7_u32.to_be_bytes());
            seal(file, 4);
        },
        "indexes",
    ),
];

#[test]
fn damaged_files_are_refused_and_stay_as_they_were() {
    let environment = SimulatedEnvironment::new(8);
    environment.run_until_complete(async {
        let (db, ibd, cfg) = with_source(&environment, own_def(true)).await;
        discarded(&db, own_def(true)).await;
        for (what, damage, said) in DAMAGE {
            for with_cfg in [false, true] {
                let mut bytes = ibd.clone();
                damage(&mut bytes);
                put(&environment, "t.ibd", &bytes);
                if with_cfg {
                    put(&environment, "t.cfg", &cfg);
                }
                let error = import(&db).await.map(|_| what).unwrap_err();
                let text = error.to_string();
                assert!(text.contains(said) && text.contains("t.ibd"), "{what} (.cfg: {with_cfg}): {text}");
                assert_eq!(content(&environment, "t.ibd").unwrap(), bytes, "{what}: the file was changed");
                if with_cfg {
                    environment.storage().remove(Path::new("/data/test/t.cfg")).unwrap();
                }
                let names = environment.storage().list(Path::new("/data/test")).unwrap();
                assert_eq!(names.len(), 2, "{what}: {names:?}");
            }
        }
        // The good one still goes in.
        put(&environment, "t.ibd", &ibd);
        import(&db).await.unwrap();
        assert_eq!(rows(&db, "t").await, rows(&db, "source").await);
    });
    environment.shutdown();
}

#[test]
fn a_file_of_another_definition_is_refused() {
    let environment = SimulatedEnvironment::new(9);
    environment.run_until_complete(async {
        let (db, ibd, cfg) = with_source(&environment, own_def(true)).await;
        let mut narrower = own_def(true);
        narrower.columns[2].kind = ColumnType::varchar(20);
        let mut other_type = own_def(true);
        other_type.columns[1].kind = ColumnType::SmallInt { unsigned: false };
        let fewer = TableDef::new(own_def(true).columns).primary_key(&["id"]);
        let swapped = TableDef::new(own_def(true).columns)
            .primary_key(&["id"])
            .key("by_name", KeyKind::Secondary, &["name", "k"])
            .key("by_k", KeyKind::Secondary, &["k"]);
        for (def, said) in
            [(narrower, "column name"), (other_type, "column k"), (fewer, "column k"), (swapped, "")]
        {
            for with_cfg in [false, true] {
                if def == own_def(true) {
                    continue;
                }
                discarded(&db, def.clone()).await;
                put(&environment, "t.ibd", &ibd);
                if with_cfg {
                    put(&environment, "t.cfg", &cfg);
                }
                let result = import(&db).await;
                match (result, with_cfg, said) {
                    // The .cfg file names the indexes, so their order does not matter.
                    (Ok(_), true, "") => {
                        check(&db).await;
                    }
                    (Err(Error::SchemaMismatch { why, .. }), true, said) => {
                        assert!(why.contains(said), "{why}")
                    }
                    (Err(Error::SchemaMismatch { .. } | Error::ImportRefused { .. }), false, _) => {}
                    // Trusted, and every value fits.
                    (Ok(_), false, "column name") => {
                        check(&db).await;
                    }
                    (result, ..) => panic!("{said}, .cfg {with_cfg}: {result:?}"),
                }
                db.drop_table("test", "t").await.unwrap();
                for name in ["t.ibd", "t.cfg"] {
                    let _ = environment.storage().remove(&PathBuf::from("/data/test").join(name));
                }
            }
        }
    });
    environment.shutdown();
}
