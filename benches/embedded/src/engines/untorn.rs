//! Untorn's key-value face, at its default durability: a commit is one write and one `fdatasync` of the
//! redo log. Many puts of one transaction go by `put_all`, which sorts them.

use std::path::Path;

use anyhow::Result;
use untorn::{Database, KeyValue, Options, Transaction};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of};

type Table = KeyValue<Vec<u8>, Vec<u8>>;

pub struct Untorn {
    database: Database,
    table: Table,
}

impl Untorn {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Untorn> {
        let database = Database::open(Options::new(directory).buffer_pool_bytes(cache_bytes))?;
        let table = database.key_value("pairs")?;
        Ok(Untorn { database, table })
    }
}

impl Engine for Untorn {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(UntornSession(self)))
    }

    fn count(&self) -> Result<u64> {
        Ok(self.table.count(&mut self.database.begin())?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.close()?)
    }
}

struct UntornSession<'e>(&'e Untorn);

impl UntornSession<'_> {
    /// Puts what has come since the last removal: what is many goes in the order of its keys.
    fn put(&self, transaction: &mut Transaction, puts: &mut Vec<(Key, Value)>) -> Result<()> {
        match &puts[..] {
            [] => {}
            [(key, value)] => drop(self.0.table.put(transaction, key, &value[..])?),
            many => {
                let pairs = many.iter().map(|(key, value)| (&key[..], &value[..]));
                self.0.table.put_all(transaction, pairs)?;
            }
        }
        puts.clear();
        Ok(())
    }
}

impl Session for UntornSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        let mut transaction = self.0.database.begin();
        let mut puts: Vec<(Key, Value)> = Vec::new();
        for change in changes {
            match change {
                Change::Put(key, value) => puts.push((key, *value)),
                Change::Remove(key) => {
                    self.put(&mut transaction, &mut puts)?;
                    self.0.table.remove(&mut transaction, &key)?;
                }
            };
        }
        self.put(&mut transaction, &mut puts)?;
        Ok(transaction.commit()?)
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let mut transaction = self.0.database.begin();
        let mut outcome = Err(anyhow::anyhow!(GONE));
        self.0.table.change(&mut transaction, key, |found| {
            outcome = value_of(&found?).map(|mut value| {
                change(&mut value);
                value
            });
            outcome.as_ref().ok().map(|value| value.to_vec())
        })?;
        outcome?;
        Ok(transaction.commit()?)
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        let transaction = self.0.database.begin();
        reads(&mut UntornReads { table: &self.0.table, transaction })
    }
}

struct UntornReads<'e> {
    table: &'e Table,
    transaction: Transaction,
}

impl Reads for UntornReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.table.look(&mut self.transaction, key, |value| show(value))?.is_some())
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut pairs = self.table.range(&mut self.transaction, &from[..]..);
        for _ in 0..most {
            let Some((key, value)) = pairs.next_in_place()? else { break };
            show(key, value);
        }
        Ok(())
    }
}
