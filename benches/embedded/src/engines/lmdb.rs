//! LMDB by heed with its defaults: each commit is synced. It has no cache of its own, but the page cache.
//! What the kernel reads ahead of a page that is missing is turned off where memory is limited, as LMDB's
//! documentation says: it would be 128 KiB for each page, and drop others.

use std::ops::Bound;
use std::path::Path;

use anyhow::{Context, Result};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of};

/// The most that the file may become.
const MAP_BYTES: usize = 16 << 30;

pub struct Lmdb {
    environment: Env<WithoutTls>,
    pairs: Database<Bytes, Bytes>,
}

impl Lmdb {
    pub fn open(directory: &Path, exceeds_memory: bool) -> Result<Lmdb> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_readers(256);
        if exceeds_memory {
            // SAFETY: this flag only says how pages are read.
            unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
        }
        // SAFETY: the directory is this program's own; nobody else opens or changes the file.
        let environment = unsafe { options.open(directory)? };
        let mut transaction = environment.write_txn()?;
        let pairs = environment.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Lmdb { environment, pairs })
    }
}

impl Engine for Lmdb {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession(self)))
    }

    fn count(&self) -> Result<u64> {
        let transaction = self.environment.read_txn()?;
        Ok(self.pairs.len(&transaction)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}

struct LmdbSession<'e>(&'e Lmdb);

impl Session for LmdbSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        let mut transaction = self.0.environment.write_txn()?;
        for change in changes {
            match change {
                Change::Put(key, value) => self.0.pairs.put(&mut transaction, &key, &value[..])?,
                Change::Remove(key) => drop(self.0.pairs.delete(&mut transaction, &key)?),
            }
        }
        Ok(transaction.commit()?)
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let mut transaction = self.0.environment.write_txn()?;
        let mut value = value_of(self.0.pairs.get(&transaction, key)?.context(GONE)?)?;
        change(&mut value);
        self.0.pairs.put(&mut transaction, key, &value[..])?;
        Ok(transaction.commit()?)
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        reads(&mut LmdbReads { pairs: self.0.pairs, transaction: self.0.environment.read_txn()? })
    }
}

struct LmdbReads<'e> {
    pairs: Database<Bytes, Bytes>,
    transaction: RoTxn<'e, WithoutTls>,
}

impl Reads for LmdbReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.pairs.get(&self.transaction, key)?.inspect(|value| show(value)).is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(from), Bound::Unbounded);
        for pair in self.pairs.range(&self.transaction, &range)?.take(most) {
            let (key, value) = pair?;
            show(key, value);
        }
        Ok(())
    }
}
