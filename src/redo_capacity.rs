//! Another capacity of the redo log of an open database.

use crate::database::Database;
use crate::error::{Error, Result};

const SETTING: &str = "innodb_redo_log_capacity";

/// Refuses a log that is too small.
pub(crate) fn check_capacity(bytes: u64) -> Result<()> {
    if bytes < redo::CAPACITY_MIN {
        let why = format!("{bytes} bytes is too small; the minimum is 8 MiB");
        return Err(Error::Setting { setting: SETTING, why });
    }
    Ok(())
}

impl Database {
    /// Changes the most bytes that the redo log may take (`innodb_redo_log_capacity`), under any load, until
    /// the database is closed. A larger capacity holds at once. A smaller one is reached in the background:
    /// pages are written sooner until so much log is enough, and its file is cut when the log has come round
    /// to its front or has nothing to recover. [`Database::redo_capacity_reached`] says how far that is.
    /// Another change on the way takes the place of the one before.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # untorn::asynchronous::block_on(async {
    /// let db = untorn::asynchronous::Database::in_memory().await?;
    /// db.set_redo_capacity(256 << 20)?;
    /// assert_eq!((db.redo_capacity_bytes(), db.redo_capacity_reached()), (256 << 20, 256 << 20));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// When that is less than 8 MiB, or the engine writes nothing any more. Nothing has changed then.
    pub fn set_redo_capacity(&self, bytes: u64) -> Result<()> {
        if !self.0.unchecked_sizes {
            check_capacity(bytes)?;
        }
        Ok(self.0.redo.set_capacity(bytes)?)
    }

    /// The capacity of the redo log that was last asked for, in bytes.
    pub fn redo_capacity_bytes(&self) -> u64 {
        self.0.redo.resize().wanted
    }

    /// The capacity of the redo log that holds, in bytes: more than [`Database::redo_capacity_bytes`] while
    /// the log becomes smaller.
    pub fn redo_capacity_reached(&self) -> u64 {
        self.0.redo.resize().reached
    }

    /// How often the log has become smaller since the start.
    #[doc(hidden)]
    pub fn redo_log_cuts(&self) -> u64 {
        self.0.redo.resize().cuts
    }
}
