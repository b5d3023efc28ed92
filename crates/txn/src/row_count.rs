//! How many rows a table has, exactly, without counting them.
//!
//! A transaction notes with its undo log by how many rows it has changed each table ([`RowChanges`]): what
//! writes an undo record notes it, what undoes one takes that back. A commit adds its changes to the table's
//! count in the moment in which it becomes visible, under the mutex of the active set, and with the version
//! of the set from which on views see it. So a view of that version or a later one sees exactly as many rows
//! as the count says, and what its own transaction has changed besides. A view from before goes through the
//! rows.
//!
//! Nothing of this is logged. A new table has no rows; of others the count is learnt when somebody has gone
//! through all rows, and kept over an orderly stop (the crate above does that). After a crash it is learnt
//! again. The changes of a prepared transaction that a start has found are not known: when it commits, all
//! counts are forgotten, and no view from before says how many there are.
//!
//! A change of rows that comes to nothing in sum, one removed and one added, is one too: a view from before
//! sees other rows than its own transaction may have changed since. And a table's next definition, with
//! another index or name, has the same rows and therefore the same count ([`RowCount::share`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::table::Table;
use crate::undo::UndoKind;

/// By how many rows a transaction has changed tables, by their ids.
#[derive(Debug, Default)]
pub(crate) struct RowChanges {
    tables: SmallVec<[(u64, i64); 2]>,
    /// A start has found the transaction, and what it did before is not known.
    unknown: bool,
}

/// By how many rows a change with such an undo record changes its table.
fn rows_of(kind: UndoKind) -> i64 {
    match kind {
        UndoKind::Insert | UndoKind::Revive => 1,
        UndoKind::DeleteMark => -1,
        UndoKind::Update | UndoKind::OffPage | UndoKind::Prepared => 0,
    }
}

impl RowChanges {
    /// Those of a transaction that a start has found.
    pub fn unknown() -> RowChanges {
        RowChanges { unknown: true, ..RowChanges::default() }
    }

    #[inline]
    fn add(&mut self, table: u64, rows: i64) {
        if rows == 0 {
            return;
        }
        match self.tables.iter_mut().find(|(id, _)| *id == table) {
            Some((_, sum)) => *sum += rows,
            None => self.tables.push((table, rows)),
        }
    }

    /// A row was changed, with an undo record of this kind.
    #[inline]
    pub fn note(&mut self, table: u64, kind: UndoKind) {
        self.add(table, rows_of(kind));
    }

    /// These records are not in the log any more.
    pub fn take_back(&mut self, undone: &mut RowChanges) {
        for (table, rows) in undone.tables.drain(..) {
            self.add(table, -rows);
        }
    }

    /// Rows that the table has more by this transaction.
    pub fn of(&self, table: u64) -> i64 {
        self.tables.iter().find(|(id, _)| *id == table).map_or(0, |(_, rows)| *rows)
    }

    /// The transaction commits; views of this version are the first to see it. Under the mutex of the active
    /// set.
    pub fn publish(&self, tables: &[Arc<Table>], counts: &RowCounts, version: u64) {
        if self.unknown {
            counts.forgotten_at.store(version, Ordering::SeqCst);
        }
        for (id, rows) in &self.tables {
            if let Some(table) = tables.iter().find(|table| table.id == *id) {
                table.row_count.counted().lock().commit(*rows, version);
            }
        }
    }
}

/// What is common to all tables' counts.
#[derive(Debug, Default)]
pub(crate) struct RowCounts {
    /// Views of this version are the first that see what made all be forgotten last.
    forgotten_at: AtomicU64,
}

/// The committed rows of a table, of all its definitions that follow each other.
#[derive(Debug, Default)]
pub(crate) struct RowCount(OnceLock<Arc<Mutex<Counted>>>);

#[derive(Debug, Default)]
struct Counted {
    /// How many there are, and the version of the view that it was learnt by.
    known: Option<(u64, u64)>,
    /// Views of this version are the first that see the last commit that added or removed rows.
    since: u64,
}

impl Counted {
    fn commit(&mut self, rows: i64, version: u64) {
        self.since = version;
        // What does not add up is not known.
        self.known = self.known.and_then(|(count, learnt)| Some((count.checked_add_signed(rows)?, learnt)));
    }
}

impl RowCount {
    fn counted(&self) -> &Mutex<Counted> {
        self.0.get_or_init(Arc::default)
    }

    /// This is a new definition, which nobody uses yet, of the rows that the old one has: a transaction that
    /// still changes them through that one counts here too.
    pub fn share(&self, old: &RowCount) {
        let shared = self.0.set(old.0.get_or_init(Arc::default).clone());
        assert!(shared.is_ok(), "a table was counted before it took over from the one before");
    }

    /// How many rows a view of this version sees, if that is known.
    pub fn seen_by(&self, version: u64, counts: &RowCounts) -> Option<u64> {
        let counted = self.counted().lock();
        let oldest = counted.since.max(counts.forgotten_at.load(Ordering::SeqCst));
        let (rows, learnt) = counted.known.filter(|_| oldest <= version)?;
        (learnt >= counts.forgotten_at.load(Ordering::SeqCst)).then_some(rows)
    }

    /// A view of this version was found to see this number of committed rows.
    pub fn learn(&self, rows: u64, version: u64) {
        let mut counted = self.counted().lock();
        if counted.since <= version {
            counted.known = Some((rows, version));
        }
    }
}

impl crate::TransactionSystem {
    /// Nobody uses the table yet, and it has this number of rows: it is new, or was closed with them.
    pub fn set_row_count(&self, table: &Table, rows: u64) {
        table.row_count.learn(rows, self.0.active.version());
    }

    /// Whether no transaction is between its commit in the log and the moment in which others see it: then,
    /// with the log closed, counts are of what the log has.
    pub fn commits_are_over(&self) -> bool {
        self.0.active.commits_are_over()
    }

    /// How many committed rows a table has, if that is known without counting.
    pub fn row_count(&self, table: &Table) -> Option<u64> {
        table.row_count.seen_by(u64::MAX, &self.0.row_counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_from_before_a_commit_is_not_told() {
        let (count, counts) = (RowCount::default(), RowCounts::default());
        assert_eq!(count.seen_by(9, &counts), None);
        count.learn(10, 3);
        assert_eq!(count.seen_by(3, &counts), Some(10));
        count.counted().lock().commit(-4, 5);
        assert_eq!((count.seen_by(4, &counts), count.seen_by(5, &counts)), (None, Some(6)));
        count.learn(10, 4);
        assert_eq!(count.seen_by(5, &counts), Some(6), "who counted at an earlier moment has another number");
        count.counted().lock().commit(-7, 6);
        assert_eq!(count.seen_by(6, &counts), None, "fewer than none");
    }

    #[test]
    fn a_commit_of_unknown_rows_makes_all_forgotten() {
        let (count, counts) = (RowCount::default(), RowCounts::default());
        count.learn(10, 3);
        RowChanges::unknown().publish(&[], &counts, 4);
        assert_eq!(count.seen_by(4, &counts), None);
        count.learn(10, 3);
        assert_eq!(count.seen_by(4, &counts), None, "by a view from before");
        count.learn(11, 4);
        assert_eq!((count.seen_by(3, &counts), count.seen_by(4, &counts)), (None, Some(11)));
    }

    #[test]
    fn definitions_that_follow_each_other_have_one_count() {
        let (old, new, counts) = (RowCount::default(), RowCount::default(), RowCounts::default());
        new.share(&old);
        old.counted().lock().commit(1, 5);
        new.learn(10, 4);
        assert_eq!(new.seen_by(5, &counts), None, "counted by a view from before the commit");
        new.learn(11, 5);
        assert_eq!(old.seen_by(5, &counts), Some(11));
    }

    #[test]
    fn what_is_undone_is_taken_back() {
        let (mut changes, mut undone) = (RowChanges::default(), RowChanges::default());
        for kind in [UndoKind::Insert, UndoKind::Insert, UndoKind::Update, UndoKind::Revive] {
            changes.note(7, kind);
        }
        changes.note(8, UndoKind::DeleteMark);
        assert_eq!((changes.of(7), changes.of(8), changes.of(9)), (3, -1, 0));
        undone.note(7, UndoKind::Insert);
        undone.note(8, UndoKind::DeleteMark);
        changes.take_back(&mut undone);
        changes.take_back(&mut undone);
        assert_eq!((changes.of(7), changes.of(8)), (2, 0));
    }
}
