//! The changes of one transaction, until it commits; then they go to the feeds, in the order of the commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use btree::Field;
use disk::Event;
use txn::{CommitObserver, Committed};

use super::feed::Feeds;
use super::row_change::RowChange;
use crate::private::is_private;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::write::Changes;

/// What one commit has changed.
#[derive(Debug)]
pub(crate) struct Commit {
    pub committed: Committed,
    pub rows: Vec<RowChange>,
    /// Memory that it takes, roughly.
    pub bytes: usize,
}

/// Changes that were recorded, each with the number of undo records before it.
struct Recorder {
    feeds: Arc<Feeds>,
    changes: Vec<(u64, RowChange)>,
    bytes: usize,
    /// The tables of more changes than any feed can keep, each with the undo records before its first change.
    beyond: Vec<(u64, Arc<Table>)>,
    /// Bytes that count among those of prepared transactions.
    of_prepared: usize,
    outcome: Outcome,
}

/// What is to be told of the commit, and who is to be woken then.
enum Outcome {
    Nothing,
    Changes { commit: Arc<Commit>, tables: Vec<Arc<Table>> },
    Lost { tables: Vec<Arc<Table>> },
    Queued(Vec<Event>),
}

impl Recorder {
    /// Takes off what stands at or behind a number of undo records: it has been undone.
    fn cut_back(&mut self, records: u64) {
        while let Some((_, change)) = self.changes.pop_if(|(before, _)| *before >= records) {
            self.bytes -= change.bytes();
        }
        self.beyond.retain(|(before, _)| *before < records);
    }

    fn record(&mut self, before: u64, change: RowChange) {
        self.cut_back(before);
        self.bytes += change.bytes();
        self.changes.push((before, change));
        if !self.beyond.is_empty() || self.bytes > self.feeds.memory_bytes() {
            self.keep_tables_only();
        }
    }

    fn keep_tables_only(&mut self) {
        for (before, change) in std::mem::take(&mut self.changes) {
            if !self.beyond.iter().any(|(_, table)| Arc::ptr_eq(table, change.table())) {
                self.beyond.push((before, change.table().clone()));
            }
        }
        self.bytes = 0;
    }

    /// The transaction is prepared, with this number of undo records: from now on it may stay for days, and
    /// there may be many.
    fn set_aside(&mut self, records: u64) {
        self.cut_back(records);
        if self.feeds.prepared.take(self.bytes, self.feeds.memory_bytes()) {
            self.of_prepared = self.bytes;
        } else {
            self.keep_tables_only();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // All transactions share the number; hardly one was prepared.
        if self.of_prepared > 0 {
            self.feeds.prepared.give_back(self.of_prepared);
        }
    }
}

/// Memory of what was recorded of prepared transactions, all together.
#[derive(Default)]
pub(super) struct PreparedBytes(AtomicUsize);

impl PreparedBytes {
    /// Whether there is room for so much more.
    fn take(&self, bytes: usize, most: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= most);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A transaction was prepared and leaves its session: what was recorded of it counts among what prepared ones
/// keep, or is not kept.
pub(crate) fn set_aside(transaction: &mut Transaction) {
    let records = transaction.engine().undo_records();
    if let Some(recorder) = recorder_of(transaction) {
        recorder.set_aside(records);
    }
}

impl CommitObserver for Recorder {
    fn committing(&mut self, committed: &Committed) {
        self.cut_back(committed.records);
        if !self.beyond.is_empty() {
            let tables = std::mem::take(&mut self.beyond).into_iter().map(|(_, table)| table).collect();
            self.outcome = Outcome::Lost { tables };
        } else if !self.changes.is_empty() {
            let rows: Vec<_> = std::mem::take(&mut self.changes).into_iter().map(|(_, row)| row).collect();
            let mut tables: Vec<Arc<Table>> = Vec::new();
            for row in &rows {
                if !tables.iter().any(|table| Arc::ptr_eq(table, row.table())) {
                    tables.push(row.table().clone());
                }
            }
            let commit = Arc::new(Commit { committed: *committed, rows, bytes: self.bytes });
            self.outcome = Outcome::Changes { commit, tables };
        }
    }

    fn committed(&mut self) {
        let to_wake = match &self.outcome {
            Outcome::Changes { commit, tables } => self.feeds.publish(commit, tables),
            Outcome::Lost { tables } => self.feeds.lose(tables),
            Outcome::Nothing | Outcome::Queued(_) => return,
        };
        self.outcome = Outcome::Queued(to_wake);
    }

    fn published(&mut self) {
        if let Outcome::Queued(to_wake) = std::mem::replace(&mut self.outcome, Outcome::Nothing) {
            to_wake.into_iter().for_each(|event| event.set());
        }
    }
}

/// Undo records of a transaction before a change of a row, for its record afterwards.
#[derive(Clone, Copy)]
pub(crate) struct Recorded(u64);

impl Recorded {
    /// A row is about to be changed.
    #[inline]
    pub fn before(transaction: &Transaction) -> Recorded {
        Recorded(transaction.engine().undo_records())
    }

    /// The row was inserted.
    #[inline]
    pub fn insert(self, transaction: &mut Transaction, table: &Arc<Table>, row: &[Field<'_>]) {
        if transaction.has_feeds() {
            self.note(transaction, RowChange::insert(table, row));
        }
    }

    /// Columns of the row were changed.
    #[inline]
    pub fn update(
        self,
        transaction: &mut Transaction,
        table: &Arc<Table>,
        key: &[Field<'_>],
        changes: &Changes<'_>,
    ) {
        if transaction.has_feeds() && !changes.is_empty() {
            self.note(transaction, RowChange::update(table, key, changes));
        }
    }

    /// The row was deleted.
    #[inline]
    pub fn delete(self, transaction: &mut Transaction, table: &Arc<Table>, key: &[Field<'_>]) {
        if transaction.has_feeds() {
            self.note(transaction, RowChange::delete(table, key));
        }
    }

    #[cold]
    fn note(self, transaction: &mut Transaction, change: RowChange) {
        if is_private(&change.table().database) {
            // Not told, but what stood behind it has been undone all the same.
            if let Some(recorder) = recorder_of(transaction) {
                recorder.cut_back(self.0);
            }
            return;
        }
        let feeds = transaction.database().0.tables.feeds.clone();
        transaction.engine_mut().observer().get_or_insert_with(|| {
            Box::new(Recorder {
                feeds,
                changes: Vec::new(),
                bytes: 0,
                beyond: Vec::new(),
                of_prepared: 0,
                outcome: Outcome::Nothing,
            })
        });
        match recorder_of(transaction) {
            Some(recorder) => recorder.record(self.0, change),
            None => debug_assert!(false, "a transaction has an observer of another kind"),
        }
    }
}

fn recorder_of(transaction: &mut Transaction) -> Option<&mut Recorder> {
    let observer: &mut dyn std::any::Any = &mut **transaction.engine_mut().observer().as_mut()?;
    observer.downcast_mut::<Recorder>()
}
