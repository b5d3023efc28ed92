//! What the workload asks of an engine.
//!
//! A session belongs to one thread. [`Session::write`] is one transaction that is on the disk when it
//! returns; [`Session::read`] runs reads on one snapshot. Values are shown where they lie: an engine that
//! must copy to show a value pays for the copy, as its users do.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engines;

pub const KEY_BYTES: usize = 24;
pub const VALUE_BYTES: usize = 150;
pub type Key = [u8; KEY_BYTES];
pub type Value = [u8; VALUE_BYTES];

/// What an engine says that is to change a pair that is not there.
pub const GONE: &str = "a pair that is to be changed is not there";

/// One change of a transaction.
pub enum Change {
    Put(Key, Box<Value>),
    Remove(Key),
}

pub trait Engine: Sync {
    /// A session; where each one has a cache, it has this fraction of the whole.
    fn session(&self, of_as_many: u64) -> Result<Box<dyn Session + '_>>;
    /// A session for each of this many threads.
    fn sessions(&self, threads: u64) -> Result<Vec<Box<dyn Session + '_>>> {
        (0..threads).map(|_| self.session(threads)).collect()
    }
    /// Pairs that there are.
    fn count(&self) -> Result<u64>;
    fn close(self: Box<Self>) -> Result<()>;
}

/// Opened before a clock runs, and then given to a thread.
pub trait Session: Send {
    /// One transaction, durable when this returns.
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()>;
    /// Reads a pair that is there, changes its value and writes it, in one transaction that is durable when
    /// this returns; nobody else changes the pair in between.
    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()>;
    /// Reads on one snapshot.
    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()>;
}

pub trait Reads {
    /// Shows the value of a key; false if there is none.
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Shows up to `most` pairs from a key on.
    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[cfg(feature = "untorn")]
    Untorn,
    #[cfg(feature = "redb")]
    Redb,
    #[cfg(feature = "lmdb")]
    Lmdb,
    #[cfg(feature = "fjall")]
    Fjall,
    #[cfg(feature = "canopydb")]
    Canopydb,
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "untorn")]
            Kind::Untorn => "untorn",
            #[cfg(feature = "redb")]
            Kind::Redb => "redb",
            #[cfg(feature = "lmdb")]
            Kind::Lmdb => "lmdb",
            #[cfg(feature = "fjall")]
            Kind::Fjall => "fjall",
            #[cfg(feature = "canopydb")]
            Kind::Canopydb => "canopydb",
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => "sqlite",
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb => "rocksdb",
        }
    }

    /// Opens a database in this directory, where the engine has a cache, with one of this size. Whether the
    /// data is more than there is memory for is known to the settings of who reads by the page cache alone.
    pub fn open(self, directory: &Path, cache_bytes: u64, exceeds_memory: bool) -> Result<Box<dyn Engine>> {
        std::fs::create_dir_all(directory)?;
        Ok(match self {
            #[cfg(feature = "untorn")]
            Kind::Untorn => Box::new(engines::untorn::Untorn::open(directory, cache_bytes)?),
            #[cfg(feature = "redb")]
            Kind::Redb => Box::new(engines::redb::Redb::open(directory, cache_bytes)?),
            #[cfg(feature = "lmdb")]
            Kind::Lmdb => Box::new(engines::lmdb::Lmdb::open(directory, exceeds_memory)?),
            #[cfg(feature = "fjall")]
            Kind::Fjall => Box::new(engines::fjall::Fjall::open(directory, cache_bytes)?),
            #[cfg(feature = "canopydb")]
            Kind::Canopydb => Box::new(engines::canopydb::Canopydb::open(directory, cache_bytes)?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => Box::new(engines::sqlite::Sqlite::open(directory, cache_bytes)?),
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb => Box::new(engines::rocksdb::Rocksdb::open(directory, cache_bytes)?),
        })
    }
}

/// What an engine that gathers changes in memory beside its cache may gather before it writes them: what
/// fjall, RocksDB and canopydb have by default, and a quarter of a cache that is small.
pub fn write_buffer_bytes(cache_bytes: u64) -> u64 {
    (cache_bytes / 4).min(64 << 20)
}

/// The value in these bytes.
///
/// # Errors
/// When it has another length than every value.
pub fn value_of(bytes: &[u8]) -> Result<Value> {
    Value::try_from(bytes).with_context(|| format!("a value of {} bytes", bytes.len()))
}
