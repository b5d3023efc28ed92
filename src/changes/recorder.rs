//! The changes of one transaction, until it commits.

use std::sync::Arc;

use btree::Field;
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
    /// The tables of more changes than any feed can keep.
    beyond: Vec<Arc<Table>>,
}

impl Recorder {
    /// Takes off what stands at or behind a number of undo records: it has been undone.
    fn cut_back(&mut self, records: u64) {
        while let Some((_, change)) = self.changes.pop_if(|(before, _)| *before >= records) {
            self.bytes -= change.bytes();
        }
    }

    fn record(&mut self, before: u64, change: RowChange) {
        self.cut_back(before);
        self.bytes += change.bytes();
        self.changes.push((before, change));
        if !self.beyond.is_empty() || self.bytes > self.feeds.memory_bytes() {
            for (_, change) in std::mem::take(&mut self.changes) {
                if !self.beyond.iter().any(|table| Arc::ptr_eq(table, change.table())) {
                    self.beyond.push(change.table().clone());
                }
            }
            self.bytes = 0;
        }
    }
}

impl CommitObserver for Recorder {
    fn committed(&mut self, committed: &Committed) {
        if !self.beyond.is_empty() {
            self.feeds.lose(&self.beyond);
            return;
        }
        self.cut_back(committed.records);
        if self.changes.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.changes).into_iter().map(|(_, change)| change).collect();
        self.feeds.tell(Commit { committed: *committed, rows, bytes: self.bytes });
    }
}

/// Undo records of a transaction before a change of a row, for its record afterwards.
#[derive(Clone, Copy)]
pub(crate) struct Recorded(u64);

impl Recorded {
    /// A row is about to be changed.
    #[inline]
    pub fn before(transaction: &Transaction) -> Recorded {
        Recorded(transaction.state().undo_records())
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
        transaction.rows().observer().get_or_insert_with(|| {
            Box::new(Recorder { feeds, changes: Vec::new(), bytes: 0, beyond: Vec::new() })
        });
        match recorder_of(transaction) {
            Some(recorder) => recorder.record(self.0, change),
            None => debug_assert!(false, "a transaction has an observer of another kind"),
        }
    }
}

fn recorder_of(transaction: &mut Transaction) -> Option<&mut Recorder> {
    let observer: &mut dyn std::any::Any = &mut **transaction.rows().observer().as_mut()?;
    observer.downcast_mut::<Recorder>()
}
