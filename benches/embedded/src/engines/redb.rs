//! redb with its default durability, `Immediate`.

use std::path::Path;

use anyhow::{Context, Result};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

pub struct Redb(Database);

impl Redb {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Redb> {
        let file = directory.join("data.redb");
        let database = Database::builder().set_cache_size(cache_bytes as usize).create(file)?;
        let transaction = database.begin_write()?;
        transaction.open_table(PAIRS)?;
        transaction.commit()?;
        Ok(Redb(database))
    }
}

impl Engine for Redb {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession(&self.0)))
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.begin_read()?.open_table(PAIRS)?.len()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct RedbSession<'e>(&'e Database);

impl Session for RedbSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        let transaction = self.0.begin_write()?;
        let mut table = transaction.open_table(PAIRS)?;
        for change in changes {
            match change {
                Change::Put(key, value) => drop(table.insert(&key[..], &value[..])?),
                Change::Remove(key) => drop(table.remove(&key[..])?),
            }
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let transaction = self.0.begin_write()?;
        let mut table = transaction.open_table(PAIRS)?;
        let mut value = value_of(table.get(&key[..])?.context(GONE)?.value())?;
        change(&mut value);
        drop(table.insert(&key[..], &value[..])?);
        drop(table);
        Ok(transaction.commit()?)
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        reads(&mut RedbReads(self.0.begin_read()?.open_table(PAIRS)?))
    }
}

struct RedbReads(redb::ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reads for RedbReads {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get(&key[..])?;
        Ok(value.inspect(|value| show(value.value())).is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for pair in self.0.range(&from[..]..)?.take(most) {
            let (key, value) = pair?;
            show(key.value(), value.value());
        }
        Ok(())
    }
}
