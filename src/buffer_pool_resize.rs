//! Resizing the buffer pool of an open database.

use crate::database::Database;
use crate::error::{Error, Result};

const SETTING: &str = "innodb_buffer_pool_size";

/// Refuses a pool that is too small to work with: splits of several trees and open scans, each with its pages
/// pinned, must leave frames for each other.
pub(crate) fn check_size(bytes: u64) -> Result<()> {
    const LEAST: u64 = 5 << 20;
    if bytes < LEAST {
        return Err(Error::Setting {
            setting: SETTING,
            why: format!("{bytes} bytes is too small; the minimum is 5 MiB"),
        });
    }
    Ok(())
}

impl Database {
    /// Gives the buffer pool another size in bytes, rounded down to whole pages, under any load; returns when
    /// that is done. A smaller pool is there when the pages beyond it have been written and nobody uses them
    /// any more. A resize that is under way goes on to this size instead;
    /// [`Database::buffer_pool_resize_status`] says how the last one ended.
    ///
    /// **Dropped**, the future leaves the resize to the background.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # untorn::asynchronous::block_on(async {
    /// let db = untorn::asynchronous::Database::in_memory().await?;
    /// db.resize_buffer_pool(24 << 20).await?;
    /// assert_eq!(
    ///     db.buffer_pool_resize_status(),
    ///     "Completed resizing buffer pool from 16777216 to 25165824 bytes"
    /// );
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// When that is too small, for itself or for the buffer pool extension's tables; when the memory is not
    /// available; when the engine writes nothing any more. Nothing has changed then.
    pub async fn resize_buffer_pool(&self, bytes: u64) -> Result<()> {
        self.start_buffer_pool_resize(bytes)?.wait().await;
        Ok(())
    }

    /// [`Database::resize_buffer_pool`] in the background; the event is set when it is over.
    #[doc(hidden)]
    pub fn start_buffer_pool_resize(&self, bytes: u64) -> Result<disk::Event> {
        if !self.0.unchecked_sizes {
            check_size(bytes)?;
        }
        let refused = |why: String| Error::Setting { setting: SETTING, why };
        let wanted = usize::try_from(bytes).map_err(|_| refused(format!("{bytes} bytes is too large")))?;
        let over = self.0.store.resize(wanted).map_err(|error| match error {
            pagestore::Error::Options(why) => refused(why),
            other => other.into(),
        })?;
        self.0.extension.pool_resized(bytes);
        Ok(over)
    }

    /// The size of the buffer pool that was last requested, in bytes.
    pub fn buffer_pool_bytes(&self) -> u64 {
        self.0.store.pool_bytes() as u64
    }

    /// Progress or outcome of the last resize (`Innodb_buffer_pool_resize_status`); empty if there was none.
    pub fn buffer_pool_resize_status(&self) -> String {
        self.0.store.resize_status()
    }
}
