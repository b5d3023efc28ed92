//! SQLite in WAL mode with `synchronous = FULL`: each commit is synced. A connection per session, statements
//! cached, a table without row ids. Each connection has a cache of its own, a part of the whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::{Connection, OptionalExtension, params};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of};

/// A transaction that writes says so at its beginning: one that finds out later may have to be repeated.
const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";
const GET: &str = "SELECT v FROM pairs WHERE k = ?1";
const PUT: &str = "INSERT OR REPLACE INTO pairs VALUES (?1, ?2)";

pub struct Sqlite {
    file: PathBuf,
    cache_bytes: u64,
    /// Open for as long as the database is: the last connection to close ends the WAL.
    connection: std::sync::Mutex<Connection>,
}

fn connect(file: &Path, cache_bytes: u64) -> Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(600))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -((cache_bytes >> 10) as i64))?;
    Ok(connection)
}

impl Sqlite {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Sqlite> {
        let file = directory.join("data.sqlite");
        // This connection is for opening and counting; the cache is for the sessions.
        let connection = connect(&file, 2 << 20)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS pairs (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID",
        )?;
        Ok(Sqlite { file, cache_bytes, connection: connection.into() })
    }
}

impl Engine for Sqlite {
    fn session(&self, of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(SqliteSession(connect(&self.file, self.cache_bytes / of_as_many)?)))
    }

    fn count(&self) -> Result<u64> {
        let connection = self.connection.lock().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        let pairs: i64 = connection.query_row("SELECT count(*) FROM pairs", [], |row| row.get(0))?;
        Ok(pairs as u64)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let connection = self.connection.into_inner().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        connection.close().map_err(|(_, error)| error.into())
    }
}

struct SqliteSession(Connection);

impl SqliteSession {
    /// A transaction whose beginning and end are cached statements too: `rusqlite::Transaction` has them
    /// parsed each time.
    fn transaction(&self, begin: &str, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
        self.0.prepare_cached(begin)?.execute([])?;
        let done = work(&self.0).and_then(|()| Ok(self.0.prepare_cached("COMMIT")?.execute([]).map(drop)?));
        if done.is_err() {
            // What is told is what went wrong first.
            _ = self.0.execute_batch("ROLLBACK");
        }
        done
    }
}

impl Session for SqliteSession {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        self.transaction(BEGIN_WRITE, |connection| {
            let mut put = connection.prepare_cached(PUT)?;
            let mut remove = connection.prepare_cached("DELETE FROM pairs WHERE k = ?1")?;
            for change in changes {
                match change {
                    Change::Put(key, value) => put.execute(params![&key[..], &value[..]])?,
                    Change::Remove(key) => remove.execute(params![&key[..]])?,
                };
            }
            Ok(())
        })
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        self.transaction(BEGIN_WRITE, |connection| {
            let mut read = connection.prepare_cached(GET)?;
            let bytes = read.query_row(params![&key[..]], |row| row.get::<_, Vec<u8>>(0)).optional()?;
            let mut value = value_of(&bytes.context(GONE)?)?;
            change(&mut value);
            connection.prepare_cached(PUT)?.execute(params![&key[..], &value[..]])?;
            Ok(())
        })
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        self.transaction("BEGIN", |connection| reads(&mut SqliteReads(connection)))
    }
}

struct SqliteReads<'c>(&'c Connection);

impl Reads for SqliteReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut statement = self.0.prepare_cached(GET)?;
        let mut shown = |row: &rusqlite::Row<'_>| -> rusqlite::Result<()> {
            show(row.get_ref(0)?.as_blob().unwrap_or_default());
            Ok(())
        };
        Ok(statement.query_row(params![&key[..]], &mut shown).optional()?.is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let text = "SELECT k, v FROM pairs WHERE k >= ?1 ORDER BY k LIMIT ?2";
        let mut statement = self.0.prepare_cached(text)?;
        let mut rows = statement.query(params![&from[..], most as i64])?;
        while let Some(row) = rows.next()? {
            show(
                row.get_ref(0)?.as_blob().unwrap_or_default(),
                row.get_ref(1)?.as_blob().unwrap_or_default(),
            );
        }
        Ok(())
    }
}
