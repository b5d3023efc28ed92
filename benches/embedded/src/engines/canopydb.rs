//! canopydb with its write-ahead log; each commit waits for the sync. One transaction writes at a time.

use std::path::Path;

use anyhow::{Context, Result};
use canopydb::{Database, DbOptions, EnvOptions, Environment, Tree};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of, write_buffer_bytes};

const PAIRS: &[u8] = b"pairs";

pub struct Canopydb {
    database: Database,
    environment: Environment,
}

impl Canopydb {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Canopydb> {
        let mut options = EnvOptions::new(directory);
        options.page_cache_size = cache_bytes as usize;
        let environment = Environment::with_options(options)?;
        let mut options = DbOptions::default();
        let buffer_bytes = write_buffer_bytes(cache_bytes) as usize;
        options.write_txn_memory_limit = buffer_bytes;
        options.checkpoint_target_size = buffer_bytes;
        // Four times as much by default, too.
        options.throttle_memory_limit = 4 * buffer_bytes;
        options.stall_memory_limit = 4 * buffer_bytes;
        let database = environment.get_or_create_database_with("pairs", options)?;
        let transaction = database.begin_write()?;
        drop(transaction.get_or_create_tree(PAIRS)?);
        transaction.commit_with(true)?;
        Ok(Canopydb { database, environment })
    }
}

impl Engine for Canopydb {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(CanopydbSession(&self.database)))
    }

    fn count(&self) -> Result<u64> {
        Ok(self.database.begin_read()?.get_tree(PAIRS)?.context("no tree")?.len())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.database);
        drop(self.environment);
        Ok(())
    }
}

struct CanopydbSession<'e>(&'e Database);

impl Session for CanopydbSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        let transaction = self.0.begin_write()?;
        let mut tree = transaction.get_or_create_tree(PAIRS)?;
        for change in changes {
            match change {
                Change::Put(key, value) => tree.insert(&key, &value[..])?,
                Change::Remove(key) => drop(tree.delete(&key)?),
            }
        }
        drop(tree);
        transaction.commit_with(true)?;
        Ok(())
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let transaction = self.0.begin_write()?;
        let mut tree = transaction.get_or_create_tree(PAIRS)?;
        let mut value = value_of(&tree.get(key)?.context(GONE)?)?;
        change(&mut value);
        tree.insert(key, &value[..])?;
        drop(tree);
        transaction.commit_with(true)?;
        Ok(())
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        let transaction = self.0.begin_read()?;
        let tree = transaction.get_tree(PAIRS)?.context("no tree")?;
        reads(&mut CanopydbReads(&tree))
    }
}

struct CanopydbReads<'t>(&'t Tree<'t>);

impl Reads for CanopydbReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.inspect(|value| show(value)).is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for pair in self.0.range(&from[..]..)?.take(most) {
            let (key, value) = pair?;
            show(&key, &value);
        }
        Ok(())
    }
}
