//! What a page is: its address, its size, the header that every page has, and the form in which it lies in a
//! file.
//!
//! The room between those who know only files ([`disk`]) and those who know what is in a page. It holds facts
//! about page bytes, as functions without state, and two seams behind which other crates stand, so that they
//! and the buffer pool need not know each other: [`PageWriter`] gets pages to their files whole,
//! [`BufferPoolExtension`] keeps clean pages at a faster place than their files.
//!
//! - [`PageId`], [`PageSize`], [`Lsn`]: which page, how large, as of when.
//! - `header`: offsets and accessors of the FIL header and trailer; nobody else has numbers for these.
//! - `seal`: [`seal()`] and [`verify`], the only door between the bytes in memory and those in a file.
//! - `batch` and `writer`: pages on their way to their files.
//! - [`extension`]: what the buffer pool and its extension promise each other.

mod batch;
pub mod extension;
mod header;
mod id;
mod lsn;
mod seal;
mod size;
mod writer;

pub use batch::{FlushPurpose, PageWrite, Spread, WriteBatch, WrittenBatch};
pub use extension::BufferPoolExtension;
pub use header::{
    CHECKSUM, FLUSH_LSN, HEADER_LEN, LSN, NEXT, NULL_PAGE, PAGE_NUMBER, PREVIOUS, SPACE_ID, TRAILER_LEN,
    TYPE, identity, is_all_zero, kind, lsn, next, page_number, page_type, previous, space_id, u16_at, u32_at,
    u64_at,
};
pub use id::PageId;
pub use lsn::Lsn;
pub use seal::{checksum, seal, verify, verify_full_crc32, verify_identity};
pub use size::PageSize;
pub use writer::{ContiguousRuns, PageSyncFuture, PageWriteFuture, PageWriter};
