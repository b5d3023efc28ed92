//! Getting at the data of a damaged directory: what each level of `innodb_force_recovery` leaves out, and how
//! an ordinary start says which level gets past what stopped it.
//!
//! | level | InnoDB's name | here |
//! |---|---|---|
//! | 1 | `SRV_FORCE_IGNORE_CORRUPT` | damaged pages are left as they are, without their redo; tables that cannot be opened are left out |
//! | 2 | `SRV_FORCE_NO_BACKGROUND` | and nothing is purged |
//! | 3 | `SRV_FORCE_NO_TRX_UNDO` | and unfinished transactions are not rolled back; their changes are not seen |
//! | 4 | `SRV_FORCE_NO_IBUF_MERGE` | and no page is changed but by redo (there is no change buffer to leave out) |
//! | 5 | `SRV_FORCE_NO_UNDO_LOG_SCAN` | and undo logs are not read: unfinished transactions count as committed |
//! | 6 | `SRV_FORCE_NO_LOG_REDO` | and the redo log is neither applied nor touched: pages are as their files have them |
//!
//! From level 1 on rows cannot be changed (error 1881), from 4 on tables neither. At level 6 the engine runs
//! on an empty log of its own in a directory that is removed again, so that a later start finds the real one
//! as it was.
//!
//! The rest of this crate asks a [`Level`] what it leaves out. Purge, rollback and the reading of undo logs
//! are the transaction system's, which is given the number (`crates/txn/src/system.rs`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Environment, Storage};
use page::PageId;
use redo::RedoLog;

use crate::catalog::Catalog;
use crate::error::{Error, Result};

/// Directory of the log that is used while the real one is not.
const SCRATCH: &str = "#untorn-forced-recovery";
/// The scratch log is never written to.
const SCRATCH_BYTES: u64 = 8 << 20;

/// A level of forced recovery; 0 is an ordinary start. Each leaves out what those below it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level(pub u8);

impl Level {
    /// A level that exists.
    ///
    /// # Errors
    /// Above 6.
    pub fn check(self) -> Result<()> {
        match self.0 {
            0..=6 => Ok(()),
            level => Err(Error::Setting {
                setting: "innodb_force_recovery",
                why: format!("{level} is not one of 0 to 6; use the lowest level that gets past the damage"),
            }),
        }
    }

    /// Rows cannot be changed.
    pub fn refuses_row_changes(self) -> bool {
        self.0 >= 1
    }

    /// Damaged pages and tables are left out instead of failing the start.
    pub fn skips_damaged(self) -> bool {
        self.0 >= 1
    }

    /// No page is changed but by redo, nor the catalog.
    pub fn freezes_pages(self) -> bool {
        self.0 >= 4
    }

    /// Undo logs are not read.
    pub fn skips_undo(self) -> bool {
        self.0 >= 5
    }

    /// The redo log is neither applied nor touched.
    pub fn skips_redo(self) -> bool {
        self.0 >= 6
    }
}

/// The log in whose place the real one stays untouched.
pub(crate) fn scratch_log(environment: &Arc<dyn Environment>, directory: &Path) -> Result<Arc<RedoLog>> {
    let storage = environment.storage();
    remove_scratch_log(&**storage, directory)?;
    let scratch = directory.join(SCRATCH);
    storage.create_dir_all(&scratch)?;
    let settings = redo::Options { capacity: SCRATCH_BYTES, ..redo::Options::default() };
    Ok(RedoLog::create(environment, &scratch, settings)?)
}

/// Removes what a forced start left.
pub(crate) fn remove_scratch_log(storage: &dyn Storage, directory: &Path) -> Result<()> {
    let scratch = directory.join(SCRATCH);
    if storage.exists(&scratch)? {
        for entry in storage.list(&scratch)? {
            storage.remove(&scratch.join(entry.name))?;
        }
        storage.remove_dir(&scratch)?;
    }
    Ok(())
}

/// What helps to explain an error of the start.
pub(crate) struct Explainer<'a> {
    pub catalog: &'a Catalog,
    pub undo_file: PathBuf,
    pub unrestored: &'a [dblwr::Unrestored],
}

impl Explainer<'_> {
    /// Names the damaged page an error is about, says why it was not restored and what can be done.
    pub fn explain(&self, error: Error) -> Error {
        match error {
            Error::Store(pagestore::Error::Corrupt { file, page, why }) => self.damaged(file, page, why),
            Error::Transaction(txn::Error::Store(pagestore::Error::Corrupt { file, page, why })) => {
                self.damaged(file, page, why)
            }
            Error::Transaction(txn::Error::UndoCorrupt { page, why }) => {
                self.damaged(self.undo_file.clone(), page, why)
            }
            other => other,
        }
    }

    fn damaged(&self, file: PathBuf, page: PageId, why: String) -> Error {
        let why = match self.unrestored.iter().find(|known| known.page == page) {
            Some(known) => format!("{why}; {}", known.why),
            None => format!("{why}; the doublewrite files have no copy of it that can be used"),
        };
        let (level, what) = if page.space == txn::UNDO_SPACE {
            (5, "undo logs are not read, unfinished transactions count as committed")
        } else {
            (1, "damaged pages are skipped")
        };
        Error::Damaged { name: self.name(page), page, file, why, level, what }
    }

    /// What a page is, for people.
    fn name(&self, page: PageId) -> String {
        if page.space == txn::UNDO_SPACE {
            return match page.page {
                0 => "the header of the undo tablespace".to_owned(),
                3 => "the directory of the undo logs".to_owned(),
                _ => "a page of the undo tablespace".to_owned(),
            };
        }
        let data = self.catalog.snapshot();
        let Some((database, table, def)) = data.tables().find(|(_, _, def)| def.space == page.space) else {
            return "a page".to_owned();
        };
        let root = def.keys.iter().find(|key| key.root == page.page).map(|key| key.name.clone());
        let hidden = def.hidden_clustered.is_some_and(|(_, root)| root == page.page);
        match page.page {
            0 => format!("the header of table '{database}.{table}'"),
            1 => format!("the change-buffer bitmap of table '{database}.{table}'"),
            2 => format!("the segment inodes of table '{database}.{table}'"),
            _ if hidden => format!("the root of the clustered index of table '{database}.{table}'"),
            _ => match root {
                Some(index) => format!("the root of index '{index}' of table '{database}.{table}'"),
                None => format!("a page of table '{database}.{table}'"),
            },
        }
    }
}
