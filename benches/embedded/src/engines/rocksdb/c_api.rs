//! RocksDB's C interface (`rocksdb/c.h`), as far as [`super`] uses it, from the library that the system has.
//!
//! A crate with bindings fits one version of the library, brings that version's sources or wants libclang.
//! The C interface stays as it is from version to version.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::ptr::NonNull;

use anyhow::{Context, Result, anyhow};

/// Kinds of objects that exist only behind pointers.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        })*
    };
}

opaque! {
    BlockOptions Cache Database FilterPolicy Iterator Options PinnedSlice ReadOptions Snapshot WriteBatch
    WriteOptions
}

/// `rocksdb_no_compression`
pub const NO_COMPRESSION: c_int = 0;

// A `char` is declared as a byte where it is part of a key or a value. Where there is `error`, it points to
// null, and to a text of the library's after a failure: `checked`.
#[link(name = "rocksdb")]
unsafe extern "C" {
    pub fn rocksdb_options_create() -> *mut Options;
    pub fn rocksdb_options_destroy(options: *mut Options);
    pub fn rocksdb_options_set_create_if_missing(options: *mut Options, to: c_uchar);
    pub fn rocksdb_options_set_compression(options: *mut Options, to: c_int);
    pub fn rocksdb_options_set_write_buffer_size(options: *mut Options, to: usize);
    pub fn rocksdb_options_set_block_based_table_factory(options: *mut Options, to: *mut BlockOptions);

    pub fn rocksdb_block_based_options_create() -> *mut BlockOptions;
    pub fn rocksdb_block_based_options_destroy(options: *mut BlockOptions);
    pub fn rocksdb_block_based_options_set_block_cache(options: *mut BlockOptions, to: *mut Cache);
    pub fn rocksdb_block_based_options_set_filter_policy(options: *mut BlockOptions, to: *mut FilterPolicy);
    pub fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        options: *mut BlockOptions,
        to: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
        options: *mut BlockOptions,
        to: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
        options: *mut BlockOptions,
        to: c_uchar,
    );
    pub fn rocksdb_cache_create_lru(capacity: usize) -> *mut Cache;
    pub fn rocksdb_cache_destroy(cache: *mut Cache);
    pub fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy;

    pub fn rocksdb_open(
        options: *const Options,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Database;
    pub fn rocksdb_close(database: *mut Database);

    pub fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub fn rocksdb_writeoptions_destroy(options: *mut WriteOptions);
    pub fn rocksdb_writeoptions_set_sync(options: *mut WriteOptions, to: c_uchar);
    pub fn rocksdb_writebatch_create() -> *mut WriteBatch;
    pub fn rocksdb_writebatch_destroy(batch: *mut WriteBatch);
    pub fn rocksdb_writebatch_put(
        batch: *mut WriteBatch,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
    );
    pub fn rocksdb_writebatch_delete(batch: *mut WriteBatch, key: *const u8, key_bytes: usize);
    pub fn rocksdb_write(
        database: *mut Database,
        options: *const WriteOptions,
        batch: *mut WriteBatch,
        error: *mut *mut c_char,
    );

    pub fn rocksdb_create_snapshot(database: *mut Database) -> *const Snapshot;
    pub fn rocksdb_release_snapshot(database: *mut Database, snapshot: *const Snapshot);
    pub fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub fn rocksdb_readoptions_destroy(options: *mut ReadOptions);
    pub fn rocksdb_readoptions_set_snapshot(options: *mut ReadOptions, to: *const Snapshot);
    /// Null if there is no such pair.
    pub fn rocksdb_get_pinned(
        database: *mut Database,
        options: *const ReadOptions,
        key: *const u8,
        key_bytes: usize,
        error: *mut *mut c_char,
    ) -> *mut PinnedSlice;
    pub fn rocksdb_pinnableslice_value(slice: *const PinnedSlice, bytes: *mut usize) -> *const u8;
    pub fn rocksdb_pinnableslice_destroy(slice: *mut PinnedSlice);
    pub fn rocksdb_create_iterator(database: *mut Database, options: *const ReadOptions) -> *mut Iterator;
    pub fn rocksdb_iter_destroy(iterator: *mut Iterator);
    pub fn rocksdb_iter_valid(iterator: *const Iterator) -> c_uchar;
    pub fn rocksdb_iter_seek(iterator: *mut Iterator, key: *const u8, key_bytes: usize);
    pub fn rocksdb_iter_seek_to_first(iterator: *mut Iterator);
    pub fn rocksdb_iter_next(iterator: *mut Iterator);
    pub fn rocksdb_iter_key(iterator: *const Iterator, bytes: *mut usize) -> *const u8;
    pub fn rocksdb_iter_value(iterator: *const Iterator, bytes: *mut usize) -> *const u8;
    pub fn rocksdb_iter_get_error(iterator: *const Iterator, error: *mut *mut c_char);

    fn rocksdb_free(memory: *mut c_void);
}

/// An object of the library's that is destroyed with this.
pub struct Owned<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

// SAFETY: no object of the library belongs to the thread that made it.
unsafe impl<T> Send for Owned<T> {}

impl<T> Owned<T> {
    /// # Safety
    /// The object is valid or null, nobody else destroys it, and this function does.
    pub unsafe fn new(object: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Result<Owned<T>> {
        let object = NonNull::new(object).context("RocksDB makes no object")?;
        Ok(Owned { object, destroy })
    }

    pub fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: as promised to `new`.
        unsafe { (self.destroy)(self.object.as_ptr()) }
    }
}

/// Makes a call that tells a failure by a text.
pub fn checked<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> Result<R> {
    let mut error = std::ptr::null_mut();
    let result = call(&mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: the text of a failure ends with a zero byte and is the caller's.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used any more.
    unsafe { rocksdb_free(error.cast()) };
    Err(anyhow!(text))
}

/// Bytes that the library shows.
///
/// # Safety
/// `bytes` stores the length of what it returns the address of, and the memory there is neither changed nor
/// freed for `'b`.
pub unsafe fn shown<'b>(bytes: impl FnOnce(&mut usize) -> *const u8) -> &'b [u8] {
    let mut length = 0;
    let address = bytes(&mut length);
    if address.is_null() {
        return &[];
    }
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts(address, length) }
}
