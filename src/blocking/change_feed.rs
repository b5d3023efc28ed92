//! A change feed for programs without an executor.

use disk::block_on;

use crate::asynchronous;
use crate::changes::ChangeEvent;
use crate::error::Result;

/// Reads the committed changes of rows, in the order of their commits, and blocks the calling thread while
/// there are none. It ends when the database is closed; as an iterator also after an error. See
/// [`crate::changes`].
///
/// ```
/// use untorn::changes::{ChangeEvent, ChangeFeedOptions, ChangeKind};
/// # fn main() -> untorn::Result<()> {
/// let db = untorn::Database::in_memory()?;
/// let visits = db.key_value::<String, u64>("visits")?;
///
/// let (snapshot, mut feed) = db.change_feed(ChangeFeedOptions::new())?;
/// // Here a copy would be made of what the snapshot sees: `db.begin_in(&snapshot)`.
/// drop(snapshot);
/// db.transact(|t| visits.put(t, "Ada", 1))?;
///
/// if let Some(ChangeEvent::Commit(commit)) = feed.next_event()? {
///     for change in commit.rows() {
///         assert_eq!(change.table().name, "visits");
///         assert_eq!(change.kind(), ChangeKind::Insert);
///         println!("{:?}: {:?}", change.key()?, change.values()?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct ChangeFeed {
    inner: asynchronous::ChangeFeed,
    /// As an iterator.
    ended: bool,
}

impl From<asynchronous::ChangeFeed> for ChangeFeed {
    fn from(inner: asynchronous::ChangeFeed) -> ChangeFeed {
        ChangeFeed { inner, ended: false }
    }
}

impl ChangeFeed {
    /// The next event; `None` when the database is closed and everything is read.
    ///
    /// # Errors
    /// [`Error::ChangesLost`](crate::Error::ChangesLost) when more was committed than the feed may keep while
    /// nobody read. A redo log that cannot be written.
    pub fn next_event(&mut self) -> Result<Option<ChangeEvent>> {
        block_on(self.inner.next())
    }

    /// Whether an event waits to be read.
    pub fn is_waiting(&self) -> bool {
        self.inner.is_waiting()
    }
}

impl Iterator for ChangeFeed {
    type Item = Result<ChangeEvent>;

    fn next(&mut self) -> Option<Result<ChangeEvent>> {
        if self.ended {
            return None;
        }
        let next = self.next_event().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
