//! fjall; each commit is a batch with `PersistMode::SyncAll`.

use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of, write_buffer_bytes};

pub struct Fjall {
    database: Database,
    pairs: Keyspace,
    /// Held by who reads, changes and writes, as a single writer of its transactional face would do.
    modifying: Mutex<()>,
}

impl Fjall {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Fjall> {
        let database = Database::builder(directory).cache_size(cache_bytes).open()?;
        let pairs = database.keyspace("pairs", || {
            KeyspaceCreateOptions::default().max_memtable_size(write_buffer_bytes(cache_bytes))
        })?;
        Ok(Fjall { database, pairs, modifying: Mutex::new(()) })
    }
}

impl Engine for Fjall {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession(self)))
    }

    fn count(&self) -> Result<u64> {
        Ok(self.pairs.len()? as u64)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

struct FjallSession<'e>(&'e Fjall);

impl Session for FjallSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        let mut batch = self.0.database.batch().durability(Some(PersistMode::SyncAll));
        for change in changes {
            match change {
                Change::Put(key, value) => batch.insert(&self.0.pairs, &key[..], &value[..]),
                Change::Remove(key) => batch.remove(&self.0.pairs, &key[..]),
            }
        }
        Ok(batch.commit()?)
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let modifying = self.0.modifying.lock().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        let found = self.0.database.snapshot().get(&self.0.pairs, key)?;
        let mut value = value_of(&found.context(GONE)?)?;
        change(&mut value);
        self.write(&mut std::iter::once(Change::Put(*key, Box::new(value))))?;
        drop(modifying);
        Ok(())
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        reads(&mut FjallReads { pairs: &self.0.pairs, snapshot: self.0.database.snapshot() })
    }
}

struct FjallReads<'e> {
    pairs: &'e Keyspace,
    snapshot: Snapshot,
}

impl Reads for FjallReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.snapshot.get(self.pairs, key)?.inspect(|value| show(value)).is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for pair in self.snapshot.range(self.pairs, &from[..]..).take(most) {
            let (key, value) = pair.into_inner()?;
            show(&key, &value);
        }
        Ok(())
    }
}
