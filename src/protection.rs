//! Page protection as seen from outside: how each file is protected and why, and changing that online.

use std::collections::BTreeMap;

use dblwr::{FileProtection, WritePath as WriteWay};

use crate::database::Database;
use crate::error::Result;
use crate::options::Doublewrite;

impl Database {
    /// Changes how pages are protected from tearing (`innodb_doublewrite`). Writes under way finish the way
    /// they began. A change to more protection blocks until those writes are over and everything written
    /// unprotected is durable; once it returns, no power failure leaves a torn page. [`Doublewrite::Auto`],
    /// even if it is already set, makes the engine ask every file's storage again. Lasts until the database
    /// is closed.
    ///
    /// # Errors
    /// If the doublewrite files cannot be created; the mode does not change. If pages cannot be made
    /// durable; the engine then refuses changes.
    pub fn set_doublewrite(&self, mode: Doublewrite) -> Result<()> {
        self.0.writer.set_mode(mode)?;
        // Also where it was protected before: another thread may just have changed that, or wait for the
        // same.
        if matches!(mode, Doublewrite::Auto | Doublewrite::On) {
            self.settle_writes()?;
        }
        tracing::info!("innodb_doublewrite is {mode} now");
        Ok(())
    }

    /// Blocks until page writes under way are over and everything written is durable.
    fn settle_writes(&self) -> Result<()> {
        let over = disk::Event::new();
        let (store, settled) = (self.0.store.clone(), over.clone());
        let settle = async move {
            // Should it fail, the store knows.
            drop(store.settle_writes().await);
            settled.set();
        };
        self.0.environment.spawn("unprotected page writes", Box::pin(settle));
        self.0.environment.block_until(&over);
        match self.0.store.poisoned() {
            Some(why) => Err(pagestore::Error::Poisoned(why).into()),
            None => Ok(()),
        }
    }

    /// The mode set.
    pub fn doublewrite(&self) -> Doublewrite {
        self.0.writer.mode()
    }

    /// How the pages of each tablespace file are written, and why.
    pub fn page_protection(&self) -> Vec<FileProtection> {
        let mut all: Vec<FileProtection> = self
            .0
            .store
            .space_files()
            .into_iter()
            .map(|(_, path, file)| FileProtection { file: path, ..self.0.writer.protection(&file) })
            .collect();
        all.sort_by(|a, b| a.file.cmp(&b.file));
        all
    }

    /// The same in short, one line per method and reason, for the startup log and status.
    pub fn page_protection_summary(&self) -> Vec<String> {
        let mode = self.doublewrite();
        let mut files: BTreeMap<String, usize> = BTreeMap::new();
        for file in self.page_protection() {
            let line = match file.mode {
                WriteWay::Atomic => {
                    format!("atomic writes, no doublewrite ({}: {})", file.verdict, file.reason)
                }
                WriteWay::Doublewrite if mode == Doublewrite::On => {
                    format!("doublewrite (innodb_doublewrite=ON; {}: {})", file.verdict, file.reason)
                }
                WriteWay::Doublewrite => format!("doublewrite ({}: {})", file.verdict, file.reason),
                WriteWay::Detect => {
                    "torn pages are found at the next start, NOT repaired (innodb_doublewrite=DETECT_ONLY)"
                        .to_owned()
                }
                WriteWay::Plain => "NOT protected from torn pages (innodb_doublewrite=OFF)".to_owned(),
            };
            *files.entry(line).or_default() += 1;
        }
        let noun = |count| if count == 1 { "file" } else { "files" };
        files
            .into_iter()
            .map(|(line, count)| format!("{line}, {count} tablespace {} open", noun(count)))
            .collect()
    }
}
