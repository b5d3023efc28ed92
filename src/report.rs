//! Decisions made at open, and what was found.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use page::PageId;

/// Decisions made at open and why, and what recovery did. `Display` prints one line per item, for the
/// startup log.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// The data directory.
    pub directory: PathBuf,
    /// Whether it was created by this start.
    pub created: bool,
    /// Bytes of a page.
    pub page_size: u32,
    /// Bytes of the buffer pool.
    pub buffer_pool_bytes: u64,
    /// The buffer pool extension, if there is one: file, size, memory, pages kept.
    pub extension: Option<String>,
    /// Bytes of the redo log.
    pub redo_capacity_bytes: u64,
    /// How page writes are protected, and why: a line for each kind of storage.
    pub protection: Vec<String>,
    /// How files are read and written, and why.
    pub io: String,
    /// Tables found.
    pub tables: usize,
    /// Pages restored from the doublewrite files.
    pub restored_pages: Vec<PageId>,
    /// Damaged pages skipped by forced recovery.
    pub skipped_pages: Vec<PageId>,
    /// Tables that cannot be opened and were left out by forced recovery.
    pub left_out: Vec<String>,
    /// Level of forced recovery.
    pub force_recovery: u8,
    /// Bytes of redo found.
    pub redo_applied_bytes: u64,
    /// Mini-transactions of redo found.
    pub redo_applied: u64,
    /// Pages that get their changes from it when they are read, or in the background.
    pub recovery_pages_left: u64,
    /// Transactions that had not committed. They are rolled back in the background.
    pub rolled_back: usize,
    /// Prepared transactions, which wait for somebody to commit them or roll them back.
    pub prepared: usize,
    /// How long the start took.
    pub took: Duration,
}

/// A number of things by their name, which takes an s.
fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

impl OpenReport {
    /// A line for each decision and finding: what it is about, and what it is.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        const MIB: u64 = 1 << 20;
        let state = if self.created { "new" } else { "existing" };
        let tables = counted(self.tables as u64, "table");
        let directory = self.directory.display();
        let mut lines = vec![
            ("data directory", format!("{directory} ({state}, {tables})")),
            ("pages", format!("{} KiB", self.page_size / 1024)),
        ];
        lines.extend(self.protection.iter().map(|line| ("torn pages", line.clone())));
        lines.push(("buffer pool", format!("{} MiB", self.buffer_pool_bytes / MIB)));
        lines.extend(self.extension.iter().map(|line| ("pool extension", line.clone())));
        lines.push(("redo log", format!("{} MiB usable", self.redo_capacity_bytes / MIB)));
        lines.push(("file access", self.io.clone()));
        if !self.restored_pages.is_empty() {
            let pages: Vec<String> = self.restored_pages.iter().map(PageId::to_string).collect();
            let (count, pages) = (pages.len(), pages.join(", "));
            lines.push((
                "restored pages",
                format!("{count} torn, restored from the doublewrite files: {pages}"),
            ));
        }
        if self.force_recovery > 0 {
            lines.push((
                "forced recovery",
                format!(
                    "level {}: rows cannot be changed; {} skipped, {} left out",
                    self.force_recovery,
                    counted(self.skipped_pages.len() as u64, "damaged page"),
                    counted(self.left_out.len() as u64, "table")
                ),
            ));
        }
        if self.redo_applied > 0 || self.rolled_back > 0 {
            lines.push((
                "recovery",
                format!(
                    "{} ({} KiB of redo) read, {} left to be changed in the background, {} to be rolled back",
                    counted(self.redo_applied, "mini-transaction"),
                    self.redo_applied_bytes.div_ceil(1024),
                    counted(self.recovery_pages_left, "page"),
                    counted(self.rolled_back as u64, "transaction")
                ),
            ));
        }
        if self.prepared > 0 {
            let count = counted(self.prepared as u64, "prepared transaction");
            lines.push((
                "prepared",
                format!(
                    "{count} found, whose rows stay locked and whose tables cannot be altered: end each with XA COMMIT or XA ROLLBACK, \
                     XA RECOVER CONVERT XID names them"
                ),
            ));
        }
        lines.push(("opened in", format!("{:.2} s", self.took.as_secs_f64())));
        lines
    }
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines().into_iter().map(|(what, line)| format!("{what:<16} {line}"));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let report = OpenReport { rolled_back: 1, redo_applied: 1, tables: 1, ..OpenReport::default() };
        let text = report.to_string();
        assert!(text.contains("1 mini-transaction (0 KiB of redo) read, 0 pages left to be"), "{text}");
        assert!(text.contains(", 1 table)"), "{text}");
        let report = OpenReport { rolled_back: 2, ..report };
        assert!(report.to_string().contains("background, 2 transactions to be"));
    }
}
