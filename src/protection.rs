//! How pages are kept from tearing, as seen from outside: which way each file goes and why, and changing it
//! online.

use std::collections::BTreeMap;

use dblwr::{FileProtection, Way as WriteWay};

use crate::database::Database;
use crate::error::Result;
use crate::options::Doublewrite;

impl Database {
    /// Protects pages from tearing in another way from now on (`innodb_doublewrite`). Writes under way end in
    /// the way they began; when pages are to be protected that were not before, this waits for them and makes
    /// durable what was written unprotected (it blocks), so that from its return on no power cut leaves a
    /// page torn. [`Doublewrite::Auto`], also when it is set already, makes the engine ask every file's
    /// storage anew. Lasts until the database is closed.
    ///
    /// # Errors
    /// When the doublewrite files cannot be made; the mode stays as it was. When pages cannot be made
    /// durable; the engine then refuses changes.
    pub fn set_doublewrite(&self, mode: Doublewrite) -> Result<()> {
        let restores = |mode| matches!(mode, Doublewrite::Auto | Doublewrite::On);
        let was_protected = restores(self.doublewrite());
        self.0.writer.set_mode(mode)?;
        if restores(mode) && !was_protected {
            self.settle_writes()?;
        }
        tracing::info!("innodb_doublewrite is {mode} now");
        Ok(())
    }

    /// Blocks until the page writes under way are over and everything written is durable.
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

    /// How the pages of each tablespace file are written now, and the facts that rests on, by file.
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

    /// The same in short, a line for each way and reason, for the start-up log and status.
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
        files.into_iter().map(|(line, count)| format!("{line}, {count} {}", noun(count))).collect()
    }
}
