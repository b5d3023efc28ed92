//! The committed changes of rows, for programs that keep a copy of them: a cache, a search index, a replica.
//!
//! ```text
//! RowWriter, cascades          each change of a row, with the number of undo records before it
//!       |
//!   Recorder                   the changes of one transaction
//!       |   commit, in the order of commits
//!   ChangeFeed                 a queue for each reader
//!       |   once the redo log is durable up to the commit
//!   the reader
//! ```
//!
//! **A feed begins at a snapshot.** What the snapshot sees is not in the feed, and everything committed later
//! is. So a copy of the rows read in the snapshot, with the changes of the feed made to it, is the table.
//!
//! **What was undone is not in it.** A savepoint, a failed statement, a dropped future: all of them cut the
//! undo log back. A recorded change notes how many undo records stood before it. A later one that stands no
//! further on shows that the first has been undone, as does a commit of no more records than that.
//!
//! **No change of a transaction is missing.** A writer asks whether there are feeds after its transaction has
//! an id. A feed first says that it is there, then waits for all transactions whose ids were given out before
//! that, then takes its snapshot. So a writer that did not see the feed has ended before the snapshot.
//!
//! **Nobody waits for a reader.** What a feed keeps in memory is bounded, and so is what each transaction
//! under way records for the feeds (by the most that one of them keeps). So is what prepared transactions,
//! which may stay for days, have recorded together, by as much. Beyond that only the tables are known, and a
//! feed of them ends with [`Error::ChangesLost`](crate::Error::ChangesLost) when the transaction commits; its
//! reader begins again from a new snapshot.
//!
//! **Nothing is reported that a crash could take back**: a commit is handed out when it is durable, whatever
//! its own [`Durability`](crate::Durability).
//!
//! Temporary tables, and tables that CREATE TABLE … SELECT is still filling, belong to their session alone:
//! they are not told.
//!
//! Definitions are not rows. TRUNCATE, DROP, RENAME, ALTER and IMPORT of a table are one event,
//! [`ChangeEvent::Redefined`], after which a copy of that table is to be made again.

mod feed;
mod recorder;
mod row_change;

use std::sync::Arc;

#[doc(hidden)]
pub use self::feed::ChangeFeed;
pub(crate) use self::feed::Feeds;
pub(crate) use self::recorder::{Recorded, set_aside};
pub use self::row_change::{ChangeKind, RowChange};

/// What a feed tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ChangeEvent {
    /// A transaction has committed.
    Commit(CommittedChanges),
    /// A table was truncated, dropped, renamed, altered, imported or created.
    Redefined {
        /// Its database.
        database: String,
        /// Its name; of a renamed table there are two events.
        table: String,
    },
}

/// The changes of one transaction, in the order in which they were made.
#[derive(Debug, Clone)]
pub struct CommittedChanges(pub(crate) Arc<recorder::Commit>);

impl CommittedChanges {
    /// Its commit number: no other commit of this data directory has it.
    pub fn number(&self) -> u64 {
        self.0.committed.number
    }

    /// The changes.
    pub fn rows(&self) -> &[RowChange] {
        &self.0.rows
    }
}

/// What a feed reads, and how much it may keep.
#[derive(Debug, Clone)]
pub struct ChangeFeedOptions {
    pub(crate) tables: Vec<(String, String)>,
    pub(crate) memory_bytes: usize,
}

impl Default for ChangeFeedOptions {
    fn default() -> ChangeFeedOptions {
        ChangeFeedOptions { tables: Vec::new(), memory_bytes: 64 << 20 }
    }
}

impl ChangeFeedOptions {
    /// All tables, 64 MiB.
    pub fn new() -> ChangeFeedOptions {
        ChangeFeedOptions::default()
    }

    /// Only this table, and others that are named so. A transaction that changes none of them is left out; of
    /// one that does, all changes are reported.
    #[must_use]
    pub fn table(mut self, database: &str, name: &str) -> ChangeFeedOptions {
        self.tables.push((database.to_owned(), name.to_owned()));
        self
    }

    /// Bytes of changes that are kept for the reader, by default 64 MiB. When more come than it reads, the
    /// feed ends with [`Error::ChangesLost`](crate::Error::ChangesLost). So it does when a transaction commits
    /// that changed more than that, or was prepared while all prepared ones together had changed more.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> ChangeFeedOptions {
        self.memory_bytes = bytes;
        self
    }

    fn wants(&self, database: &str, name: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|(d, n)| d == database && n == name)
    }
}
