//! RocksDB, of the system's library, with `WriteOptions::sync`: each commit is synced. Threads write without
//! waiting for each other here: RocksDB makes one write and one sync of the commits that come together.
//!
//! Settings other than the defaults: a block cache of the size that was asked for, with the indexes and
//! filters of the files in it; bloom filters of 10 bits for each key; no compression, as nothing can be made
//! of random bytes; and where the cache is small, write buffers of a quarter of it instead of 64 MiB, of
//! which there may be two.
//!
//! A change (read and write) holds a lock of its key that is ours. `OptimisticTransactionDB` would have 40
//! MiB of locks, whose number the C interface cannot set, and `TransactionDB` would lock each key of every
//! plain write. No workload has plain writes of a pair while others change it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};

use crate::engine::{Change, Engine, GONE, Key, Reads, Session, Value, value_of, write_buffer_bytes};
use c_api::{Owned, checked, shown};

mod c_api;

/// So many that two keys that are changed at once seldom share one.
const LOCKS: usize = 4096;

pub struct Rocksdb {
    database: Owned<c_api::Database>,
    sync: Owned<c_api::WriteOptions>,
    /// Each of many keys.
    changing: Vec<Mutex<()>>,
}

// SAFETY: a database may be used by several threads at once, and the options are only read.
unsafe impl Sync for Rocksdb {}

/// The options of the database.
fn options(cache_bytes: u64) -> Result<Owned<c_api::Options>> {
    let write_buffer_bytes = write_buffer_bytes(cache_bytes);
    // SAFETY: each object is destroyed once, by the function for its kind. What is given to others is shared
    // with them (the cache, the table's options) or becomes theirs (the filter policy).
    unsafe {
        let options = Owned::new(c_api::rocksdb_options_create(), c_api::rocksdb_options_destroy)?;
        c_api::rocksdb_options_set_create_if_missing(options.as_ptr(), 1);
        c_api::rocksdb_options_set_compression(options.as_ptr(), c_api::NO_COMPRESSION);
        c_api::rocksdb_options_set_write_buffer_size(options.as_ptr(), write_buffer_bytes as usize);
        let table = c_api::rocksdb_block_based_options_create();
        let table = Owned::new(table, c_api::rocksdb_block_based_options_destroy)?;
        let cache = c_api::rocksdb_cache_create_lru(cache_bytes as usize);
        let cache = Owned::new(cache, c_api::rocksdb_cache_destroy)?;
        c_api::rocksdb_block_based_options_set_block_cache(table.as_ptr(), cache.as_ptr());
        let filter = c_api::rocksdb_filterpolicy_create_bloom_full(10.0);
        c_api::rocksdb_block_based_options_set_filter_policy(table.as_ptr(), filter);
        for set in [
            c_api::rocksdb_block_based_options_set_cache_index_and_filter_blocks,
            c_api::rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority,
            c_api::rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache,
        ] {
            set(table.as_ptr(), 1);
        }
        c_api::rocksdb_options_set_block_based_table_factory(options.as_ptr(), table.as_ptr());
        Ok(options)
    }
}

impl Rocksdb {
    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Rocksdb> {
        let options = options(cache_bytes)?;
        let name = CString::new(directory.as_os_str().as_bytes())?;
        // SAFETY: the options are valid, and the name ends with a zero byte.
        let database =
            checked(|error| unsafe { c_api::rocksdb_open(options.as_ptr(), name.as_ptr(), error) })?;
        // SAFETY: each object is destroyed once, by the function for its kind.
        unsafe {
            let database = Owned::new(database, c_api::rocksdb_close)?;
            let sync = c_api::rocksdb_writeoptions_create();
            let sync = Owned::new(sync, c_api::rocksdb_writeoptions_destroy)?;
            c_api::rocksdb_writeoptions_set_sync(sync.as_ptr(), 1);
            let changing = (0..LOCKS).map(|_| Mutex::new(())).collect();
            Ok(Rocksdb { database, sync, changing })
        }
    }
}

impl Engine for Rocksdb {
    fn session(&self, _of_as_many: u64) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RocksdbSession(self)))
    }

    /// Looks at every pair: there is no exact number elsewhere.
    fn count(&self) -> Result<u64> {
        let options = read_options()?;
        let mut pairs = Pairs::new(&self.database, &options)?;
        pairs.first();
        let mut count = 0;
        while pairs.pair()?.is_some() {
            count += 1;
            pairs.next();
        }
        Ok(count)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn read_options() -> Result<Owned<c_api::ReadOptions>> {
    // SAFETY: destroyed once, by the function for its kind.
    unsafe { Owned::new(c_api::rocksdb_readoptions_create(), c_api::rocksdb_readoptions_destroy) }
}

struct RocksdbSession<'e>(&'e Rocksdb);

impl Session for RocksdbSession<'_> {
    fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<()> {
        // SAFETY: destroyed once, by the function for its kind.
        let batch =
            unsafe { Owned::new(c_api::rocksdb_writebatch_create(), c_api::rocksdb_writebatch_destroy)? };
        for change in changes {
            // SAFETY: the batch is valid; key and value are copied.
            match change {
                Change::Put(key, value) => unsafe {
                    let (value, bytes) = (value.as_ptr(), value.len());
                    c_api::rocksdb_writebatch_put(batch.as_ptr(), key.as_ptr(), key.len(), value, bytes);
                },
                Change::Remove(key) => unsafe {
                    c_api::rocksdb_writebatch_delete(batch.as_ptr(), key.as_ptr(), key.len());
                },
            }
        }
        let (database, sync) = (self.0.database.as_ptr(), self.0.sync.as_ptr());
        // SAFETY: the objects are valid.
        checked(|error| unsafe { c_api::rocksdb_write(database, sync, batch.as_ptr(), error) })
    }

    fn modify(&mut self, key: &Key, change: &mut dyn FnMut(&mut Value)) -> Result<()> {
        let place = usize::from(u16::from_le_bytes([key[0], key[1]])) % LOCKS;
        let lock = self.0.changing.get(place).context("no lock")?;
        let changing = lock.lock().map_err(|_| anyhow!("a thread panicked"))?;
        let mut found = Err(anyhow!(GONE));
        get(&self.0.database, &read_options()?, key, &mut |value| found = value_of(value))?;
        let mut value = found?;
        change(&mut value);
        self.write(&mut std::iter::once(Change::Put(*key, Box::new(value))))?;
        drop(changing);
        Ok(())
    }

    fn read(&mut self, reads: &mut dyn FnMut(&mut dyn Reads) -> Result<()>) -> Result<()> {
        let database = &self.0.database;
        // SAFETY: the database is valid.
        let snapshot = unsafe { c_api::rocksdb_create_snapshot(database.as_ptr()) };
        let snapshot = Snapshot { database, snapshot };
        let options = read_options()?;
        // SAFETY: the options are valid, and destroyed before the snapshot is released.
        unsafe { c_api::rocksdb_readoptions_set_snapshot(options.as_ptr(), snapshot.snapshot) };
        reads(&mut RocksdbReads { pairs: None, options, snapshot })
    }
}

struct Snapshot<'e> {
    database: &'e Owned<c_api::Database>,
    snapshot: *const c_api::Snapshot,
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // SAFETY: the snapshot is of this database, and released once.
        unsafe { c_api::rocksdb_release_snapshot(self.database.as_ptr(), self.snapshot) }
    }
}

struct RocksdbReads<'e> {
    // What is declared first is dropped first.
    /// For the ranges, made by the first.
    pairs: Option<Pairs>,
    options: Owned<c_api::ReadOptions>,
    snapshot: Snapshot<'e>,
}

impl Reads for RocksdbReads<'_> {
    fn get(&mut self, key: &Key, show: &mut dyn FnMut(&[u8])) -> Result<bool> {
        get(self.snapshot.database, &self.options, key, show)
    }

    fn range(&mut self, from: &Key, most: usize, show: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let pairs = match &mut self.pairs {
            Some(pairs) => pairs,
            none => none.insert(Pairs::new(self.snapshot.database, &self.options)?),
        };
        pairs.seek(from);
        for shown in 0..most {
            if shown > 0 {
                pairs.next();
            }
            let Some((key, value)) = pairs.pair()? else { break };
            show(key, value);
        }
        Ok(())
    }
}

/// Shows the value of a key; false if there is none.
fn get(
    database: &Owned<c_api::Database>,
    options: &Owned<c_api::ReadOptions>,
    key: &Key,
    show: &mut dyn FnMut(&[u8]),
) -> Result<bool> {
    let (database, options) = (database.as_ptr(), options.as_ptr());
    // SAFETY: the objects and the key are valid.
    let found = checked(|error| unsafe {
        c_api::rocksdb_get_pinned(database, options, key.as_ptr(), key.len(), error)
    })?;
    if found.is_null() {
        return Ok(false);
    }
    // SAFETY: destroyed once, by the function for its kind.
    let found = unsafe { Owned::new(found, c_api::rocksdb_pinnableslice_destroy)? };
    // SAFETY: the value stays where it is until `found` is destroyed.
    show(unsafe { shown(|bytes| c_api::rocksdb_pinnableslice_value(found.as_ptr(), bytes)) });
    Ok(true)
}

/// A cursor over the pairs.
struct Pairs(Owned<c_api::Iterator>);

impl Pairs {
    /// The caller keeps database, options and their snapshot for as long as this.
    fn new(database: &Owned<c_api::Database>, options: &Owned<c_api::ReadOptions>) -> Result<Pairs> {
        // SAFETY: the objects are valid; destroyed once, by the function for its kind.
        Ok(Pairs(unsafe {
            let iterator = c_api::rocksdb_create_iterator(database.as_ptr(), options.as_ptr());
            Owned::new(iterator, c_api::rocksdb_iter_destroy)?
        }))
    }

    fn first(&mut self) {
        // SAFETY: the iterator is valid.
        unsafe { c_api::rocksdb_iter_seek_to_first(self.0.as_ptr()) }
    }

    fn seek(&mut self, key: &Key) {
        // SAFETY: iterator and key are valid.
        unsafe { c_api::rocksdb_iter_seek(self.0.as_ptr(), key.as_ptr(), key.len()) }
    }

    /// After [`Pairs::pair`] has found one.
    fn next(&mut self) {
        // SAFETY: the iterator is valid, and stands on a pair.
        unsafe { c_api::rocksdb_iter_next(self.0.as_ptr()) }
    }

    /// The pair at which this stands.
    fn pair(&self) -> Result<Option<(&[u8], &[u8])>> {
        let iterator = self.0.as_ptr();
        // SAFETY: the iterator is valid.
        if unsafe { c_api::rocksdb_iter_valid(iterator) } == 0 {
            // SAFETY: the iterator is valid.
            checked(|error| unsafe { c_api::rocksdb_iter_get_error(iterator, error) })?;
            return Ok(None);
        }
        // SAFETY: the iterator stands on a pair, whose bytes stay where they are until it moves.
        Ok(Some(unsafe {
            let key = shown(|bytes| c_api::rocksdb_iter_key(iterator, bytes));
            (key, shown(|bytes| c_api::rocksdb_iter_value(iterator, bytes)))
        }))
    }
}
