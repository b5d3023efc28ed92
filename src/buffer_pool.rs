//! Resizing the buffer pool of an open database.

use crate::database::Database;
use crate::error::{Error, Result};

const SETTING: &str = "innodb_buffer_pool_size";

/// Refuses a pool that is too small to work with.
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
    /// Resizes the buffer pool to this number of bytes, rounded down to whole pages, in the background and
    /// under any load. Shrinking completes once the pages past the new size are flushed and unpinned. A call
    /// during a resize retargets it. The event is set when the resize is over;
    /// [`Database::buffer_pool_resize_status`] tells the outcome.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = std::env::temp_dir().join(format!("untorn-doc-resize-{}", std::process::id()));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # let options = untorn::Options::new(&directory).buffer_pool_bytes(8 << 20);
    /// # let db = untorn::Database::open(options)?;
    /// # let db = db.asynchronous();
    /// let over = db.resize_buffer_pool(16 << 20)?;
    /// db.environment().block_until(&over);
    /// assert_eq!(
    ///     db.buffer_pool_resize_status(),
    ///     "Completed resizing buffer pool from 8388608 to 16777216 bytes"
    /// );
    /// # untorn::engine::block_on(db.close())?;
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors If the size is too small for the pool itself or for the buffer pool extension's tables; if
    /// the memory is not available; if the engine has stopped writing. Nothing has changed then.
    pub fn resize_buffer_pool(&self, bytes: u64) -> Result<disk::Event> {
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
