//! The buffer pool: pages in memory.
//!
//! A **frame** is memory for a page with a descriptor. The **page table** leads from a page to its frame,
//! without a lock. A **pin** keeps the frame with its page, the **latch** orders those who read and change
//! it, a **guard** is both. [`lookup`] finds a page ([`present_page`]), [`missing_page`] reads it, from the
//! buffer pool extension where that has it, [`read_ahead`] before it is asked for; with [`publish`] it is
//! there. [`heads`] has what a search wants of it. [`foreground_reads`] says when what is ahead of need gives
//! way. The **LRU list** orders pages for eviction, the **free list** holds empty frames, which the page
//! cleaner replenishes ahead of demand. [`resize`] and [`relocation`] change the pool's size while it is
//! used. [`evict_space`] drops the pages of a dropped tablespace.

#[cfg(not(loom))]
mod evict_space;
#[cfg(not(loom))]
pub(crate) mod extension;
#[cfg(not(loom))]
pub(crate) mod foreground_reads;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod frame;
#[cfg(not(loom))]
pub(crate) mod free_list;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod growing;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod guard;
#[cfg(not(loom))]
pub(crate) mod heads;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod heads_memory;
#[cfg_attr(all(loom, not(test)), allow(dead_code))]
pub(crate) mod heads_word;
#[allow(unsafe_code)]
pub(crate) mod latch;
#[cfg(not(loom))]
pub(crate) mod lookup;
#[cfg(not(loom))]
pub(crate) mod lru;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod missing_page;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod page_memory;
#[cfg_attr(all(loom, not(test)), allow(dead_code))]
pub(crate) mod page_name;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod page_table;
#[allow(unsafe_code)]
pub(crate) mod pins;
#[cfg(all(test, loom))]
#[allow(unsafe_code)] // The cells of the models.
mod pointer_models;
#[cfg(not(loom))]
pub(crate) mod pointers;
#[cfg(not(loom))]
mod present_page;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod publish;
#[cfg(not(loom))]
pub(crate) mod read_ahead;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod relocation;
#[cfg(not(loom))]
mod resident_pages;
#[cfg(not(loom))]
pub(crate) mod resize;
#[cfg(not(loom))]
pub(crate) mod sample;
#[cfg(not(loom))]
pub(crate) mod warm_up;
mod warm_up_pace;
