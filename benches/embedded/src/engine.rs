//! What the workload asks of an engine.
//!
//! A session belongs to one thread. [`Session::write`] is one transaction that is on the disk when it
//! returns; [`Session::read`] runs reads on one snapshot. Values are shown where they lie: an engine that
//! must copy to show a value pays for the copy, as its users do.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engines::{fjall::Fjall, lmdb::Lmdb, redb::Redb, sqlite::Sqlite, untorn::Untorn};

pub const KEY_BYTES: usize = 24;
pub const VALUE_BYTES: usize = 150;
pub type Key = [u8; KEY_BYTES];
pub type Value = [u8; VALUE_BYTES];

/// One change of a transaction.
pub enum Change {
    Put(Key, Box<Value>),
    Remove(Key),
}

pub trait Engine: Sync {
    fn session(&self) -> Result<Box<dyn Session + '_>>;
    /// Pairs that there are.
    fn count(&self) -> Result<u64>;
    fn close(self: Box<Self>) -> Result<()>;
}

pub trait Session {
    /// One transaction, durable when this returns.
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()>;
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
    Untorn,
    Redb,
    Lmdb,
    Fjall,
    Sqlite,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Untorn => "untorn",
            Kind::Redb => "redb",
            Kind::Lmdb => "lmdb",
            Kind::Fjall => "fjall",
            Kind::Sqlite => "sqlite",
        }
    }

    /// Opens a database in this directory, where the engine has a cache, with one of this size.
    pub fn open(self, directory: &Path, cache_bytes: u64) -> Result<Box<dyn Engine>> {
        std::fs::create_dir_all(directory)?;
        Ok(match self {
            Kind::Untorn => Box::new(Untorn::open(directory, cache_bytes)?),
            Kind::Redb => Box::new(Redb::open(directory, cache_bytes)?),
            Kind::Lmdb => Box::new(Lmdb::open(directory)?),
            Kind::Fjall => Box::new(Fjall::open(directory, cache_bytes)?),
            Kind::Sqlite => Box::new(Sqlite::open(directory, cache_bytes)?),
        })
    }
}
