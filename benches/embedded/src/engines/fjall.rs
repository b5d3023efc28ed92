//! fjall; each commit is a batch with `PersistMode::SyncAll`.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use crate::engine::{Change, Engine, Key, Reads, Session};

pub struct Fjall {
    database: Database,
    pairs: Keyspace,
}

impl Fjall {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Fjall> {
        let database = Database::builder(directory).cache_size(cache_bytes).open()?;
        let pairs = database.keyspace("pairs", KeyspaceCreateOptions::default)?;
        Ok(Fjall { database, pairs })
    }
}

impl Engine for Fjall {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
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
