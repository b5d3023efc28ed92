//! What every benchmark stands on: a directory of its own, a table, and keys in an order no read-ahead helps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Database, Durability, Options, Table};

pub const MIB: u64 = 1 << 20;
/// Rows of a transaction that fills a table.
const BATCH: u64 = 1000;

/// Where databases lie.
pub fn directory() -> PathBuf {
    std::env::var_os("UNTORN_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from)
}

/// A directory that is removed with its value.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        Place::in_directory(directory(), name)
    }

    pub fn in_directory(parent: PathBuf, name: &str) -> Place {
        let path = parent.join(format!("bench-{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed harms nobody: the next run takes another name.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// An open database, closed and removed with its value.
///
/// A benchmark makes it when it is run, not when it is named: `-- commit` fills no tables for the others.
pub struct Stage {
    pub db: Database,
    _place: Place,
}

impl Stage {
    pub fn new(name: &str, options: impl FnOnce(&Path) -> Options) -> Stage {
        let place = Place::new(name);
        let db = Database::open(options(place.path())).unwrap();
        Stage { db, _place: place }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.db.close().unwrap();
    }
}

/// Pool and redo log with room for everything, unless the benchmark says otherwise.
pub fn options(directory: &Path) -> Options {
    Options::new(directory).buffer_pool_bytes(256 * MIB).redo_capacity_bytes(256 * MIB)
}

/// A table with a key and a value of `bytes` bytes, small enough to stay in the row's page.
pub fn table(db: &Database, name: &str, bytes: u32) -> Arc<Table> {
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("k", ColumnType::bigint()),
        ColumnDef::new("pad", ColumnType::Binary { bytes }),
    ];
    db.create_table_if_missing("bench", name, TableDef::new(columns).primary_key(&["id"])).unwrap()
}

/// Inserts the keys, and ends the last transaction durably.
pub fn fill(db: &Database, table: &Arc<Table>, keys: impl Iterator<Item = u64>) {
    let mut t = db.begin();
    for (number, key) in keys.enumerate() {
        if number as u64 % BATCH == BATCH - 1 {
            t.commit_with(Durability::NoSync).unwrap();
            t = db.begin();
        }
        t.insert(table, &row(key)).unwrap();
    }
    t.commit().unwrap();
}

/// The row of a key.
pub fn row(key: u64) -> [Value<'static>; 3] {
    [id(key), Value::Int(1), Value::bytes(b"pad")]
}

/// A key as a value.
pub fn id(key: u64) -> Value<'static> {
    Value::Int(key as i64)
}

/// Scatters numbers over all 32 bits: no two become the same.
pub fn scattered(number: u64) -> u64 {
    u64::from((number as u32).wrapping_mul(2_654_435_761))
}

/// One figure of the engine.
pub fn figure(db: &Database, name: &str) -> u64 {
    db.status().into_iter().find(|(known, _)| *known == name).expect("a figure of this name").1
}
