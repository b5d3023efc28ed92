//! Tablespaces: which files are open, how large they are.

use std::path::PathBuf;

/// What is known of an open tablespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceInfo {
    /// Tablespace id.
    pub id: u32,
    /// Its file.
    pub path: PathBuf,
    /// Size of the file in pages.
    pub pages: u32,
    /// Tablespace flags of page 0 (0 while page 0 was never written).
    pub flags: u32,
}
