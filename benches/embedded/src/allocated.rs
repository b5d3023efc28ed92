//! What a directory occupies on its disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;

/// Bytes that a directory occupies.
pub fn allocated(directory: &Path) -> Result<u64> {
    std::fs::read_dir(directory)?.try_fold(0, |sum, entry| {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let inside = if metadata.is_dir() { allocated(&entry.path())? } else { metadata.blocks() * 512 };
        Ok(sum + inside)
    })
}
