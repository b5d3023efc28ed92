//! Negative controls: promises that are broken on purpose, and must be found out (`tests/controls.rs`).

/// A negative control: one promise broken on purpose. A checker that does not notice is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sabotage {
    /// None: the engine as it is.
    #[default]
    None,
    /// Doublewrite off, on a disk that tears.
    NoDoublewrite,
    /// A disk that promises atomic writes and tears them.
    BrokenAtomicWrites,
    /// A disk that says it synced files of this name and has not.
    SkippedSyncs(&'static str),
    /// Pages reach the disk before their log: syncs of the log are skipped, and nobody waits for a commit, so
    /// that no acknowledged transaction is lost by that alone.
    PagesBeforeLog,
    /// Recovery finds no doublewrite files.
    NoDoublewriteFiles,
}
