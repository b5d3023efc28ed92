//! Dirty pages, from the first change to the file.
//!
//! The **flush list** has them in the order of their first change. The **page cleaner** takes batches from
//! it, as many pages as [`adaptive_flushing`] says, and starts the [`checkpoint`]. It also writes pages that
//! are to be evicted, and their [`neighbours`] along with them. [`syncing`] makes durable what page writes
//! left unsynced. The **feeder** offers clean pages to the buffer pool extension before they are evicted.

pub(crate) mod adaptive_flushing;
pub(crate) mod age_bounds;
pub(crate) mod age_histogram;
pub(crate) mod batch;
pub(crate) mod checkpoint;
pub(crate) mod cleaner;
pub(crate) mod collect;
pub(crate) mod feeder;
pub(crate) mod flush_list;
pub(crate) mod log_growth;
pub(crate) mod named_pages;
pub(crate) mod neighbours;
pub(crate) mod reason;
pub(crate) mod reservation;
pub(crate) mod restart_time;
pub(crate) mod syncing;
pub(crate) mod until_clean;
