//! Figures of the pool, under the names InnoDB gives them where it has them.

use crate::flush::reason::WrittenFor;

/// A snapshot of the pool's state and counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// `Innodb_page_size`, bytes.
    pub page_size: u64,
    /// `Innodb_buffer_pool_pages_total`: frames.
    pub pages_total: u64,
    /// `Innodb_buffer_pool_pages_data`: frames holding a page.
    pub pages_data: u64,
    /// `Innodb_buffer_pool_pages_dirty`.
    pub pages_dirty: u64,
    /// `Innodb_buffer_pool_pages_free`.
    pub pages_free: u64,
    /// `Innodb_buffer_pool_read_requests`: logical reads.
    pub read_requests: u64,
    /// `Innodb_buffer_pool_reads`: logical reads that had to wait for a file.
    pub reads: u64,
    /// `Innodb_buffer_pool_write_requests`: pages changed by mini-transactions.
    pub write_requests: u64,
    /// `Innodb_buffer_pool_wait_free`: times nobody had a free frame.
    pub wait_free: u64,
    /// `Innodb_buffer_pool_read_ahead`: pages read ahead of scans and of those who named them.
    pub read_ahead: u64,
    /// `Innodb_buffer_pool_read_ahead_rnd`: pages read by random read-ahead.
    pub read_ahead_random: u64,
    /// `Innodb_buffer_pool_read_ahead_evicted`: pages read ahead and evicted untouched.
    pub read_ahead_evicted: u64,
    /// `Innodb_buffer_pool_pages_flushed`: dirty pages written.
    pub pages_flushed: u64,
    /// `Innodb_buffer_pool_pages_made_young`.
    pub pages_made_young: u64,
    /// `Innodb_buffer_pool_pages_made_not_young`.
    pub pages_made_not_young: u64,
    /// `Innodb_pages_created`.
    pub pages_created: u64,
    /// `Innodb_pages_read`.
    pub pages_read: u64,
    /// `Innodb_pages_written`.
    pub pages_written: u64,
    /// The same by reason.
    pub written_for: WrittenFor,
    /// The age of the log that pages are written to hold, bytes.
    pub age_goal: u64,
    /// The most that it may become so that a restart keeps its target, bytes.
    pub age_limit: u64,
    /// Pages evicted.
    pub pages_evicted: u64,
    /// Pages moved into another frame because their own left the pool.
    pub pages_relocated: u64,
    /// Pages of the old part of the LRU list.
    pub pages_old: u64,
    /// `Untorn_blocking_reads`: misses inside a mini-transaction that had already changed something.
    pub blocking_reads: u64,
    /// `Innodb_data_pending_reads`: page reads under way.
    pub pending_reads: u64,
    /// Pages being written.
    pub pages_in_flight: u64,
    /// Pages that have not got their changes from the log yet, since the start.
    pub pages_unapplied: u64,
    /// Oldest LSN whose change is in no file yet, if any page is dirty.
    pub oldest_modification: Option<u64>,
    /// Pages found damaged when read.
    pub corrupt_pages: u64,
    /// Reads of the buffer pool extension that did not give the page and went on with the data file.
    pub tier_fallbacks: u64,
    /// How often heads of a page's records were made.
    pub heads_made: u64,
    /// Descents of a tree that latched the leaf only.
    pub descents_by_pointers: u64,
    /// Bytes of memory that heads take, beside the pool's, at least: of the system's pages they lie on
    /// nothing else counts.
    pub heads_bytes: u64,
    /// How often the redo log's capacity rose by itself.
    pub log_raises: u64,
}
