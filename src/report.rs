//! What was decided and found when a database was opened.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use page::PageId;

/// What a start decided and why, and what recovery did. `Display` prints it a line each, for the start-up log.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// The data directory.
    pub directory: PathBuf,
    /// Was it made just now?
    pub created: bool,
    /// Bytes of a page.
    pub page_size: u32,
    /// Bytes of the buffer pool.
    pub buffer_pool_bytes: u64,
    /// The clean tier, if there is one: file, size, memory, pages kept.
    pub clean_tier: Option<String>,
    /// Bytes of the redo log.
    pub redo_capacity_bytes: u64,
    /// How page writes are protected, and why: a line for each kind of storage.
    pub protection: Vec<String>,
    /// How files are read and written, and why.
    pub io: String,
    /// Databases and tables found.
    pub tables: usize,
    /// Pages restored from the doublewrite files.
    pub restored_pages: Vec<PageId>,
    /// Damaged pages skipped by forced recovery.
    pub skipped_pages: Vec<PageId>,
    /// Tables that cannot be opened and were left out by forced recovery.
    pub left_out: Vec<String>,
    /// Level of forced recovery.
    pub force_recovery: u8,
    /// Bytes of redo applied.
    pub redo_applied_bytes: u64,
    /// Mini-transactions of redo applied.
    pub redo_applied: u64,
    /// Transactions that had not committed. They are rolled back in the background.
    pub rolled_back: usize,
    /// How long it all took.
    pub took: Duration,
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        let state = if self.created { "new" } else { "existing" };
        writeln!(f, "data directory   {} ({state}, {} tables)", self.directory.display(), self.tables)?;
        writeln!(f, "pages            {} KiB", self.page_size / 1024)?;
        for line in &self.protection {
            writeln!(f, "torn pages       {line}")?;
        }
        writeln!(f, "buffer pool      {} MiB", self.buffer_pool_bytes / MIB)?;
        if let Some(tier) = &self.clean_tier {
            writeln!(f, "clean tier       {tier}")?;
        }
        writeln!(f, "redo log         {} MiB", self.redo_capacity_bytes / MIB)?;
        writeln!(f, "file access      {}", self.io)?;
        if !self.restored_pages.is_empty() {
            let pages: Vec<String> = self.restored_pages.iter().map(PageId::to_string).collect();
            writeln!(
                f,
                "restored pages   {} torn, put back from the doublewrite: {}",
                pages.len(),
                pages.join(", ")
            )?;
        }
        if self.force_recovery > 0 {
            writeln!(
                f,
                "forced recovery  level {}: rows cannot be changed; {} damaged pages skipped, {} tables left out",
                self.force_recovery,
                self.skipped_pages.len(),
                self.left_out.len()
            )?;
        }
        if self.redo_applied > 0 || self.rolled_back > 0 {
            writeln!(
                f,
                "recovery         {} mini-transactions ({} KiB of redo) applied, {} transactions to be rolled back",
                self.redo_applied,
                self.redo_applied_bytes / 1024,
                self.rolled_back
            )?;
        }
        write!(f, "opened in        {:.2} s", self.took.as_secs_f64())
    }
}
