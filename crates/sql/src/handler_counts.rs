//! What a statement does with tables, for SHOW STATUS: rows read by key, in order and in a scan, rows
//! written, sorts and temporary tables, counted as MySQL's storage engine interface would be called for them.
//!
//! The numbers are the session's own and plain; the server adds them up when the statement has ended. Readers
//! of many rows count in a variable and tell the sum.

use std::cell::Cell;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Handled {
    Delete,
    ReadFirst,
    ReadKey,
    ReadLast,
    ReadNext,
    ReadPrevious,
    ReadRandomNext,
    Update,
    Write,
    SortRows,
    SortScan,
    TemporaryTables,
}

impl Handled {
    /// All of them, in their order.
    pub const ALL: [Handled; 12] = [
        Handled::Delete,
        Handled::ReadFirst,
        Handled::ReadKey,
        Handled::ReadLast,
        Handled::ReadNext,
        Handled::ReadPrevious,
        Handled::ReadRandomNext,
        Handled::Update,
        Handled::Write,
        Handled::SortRows,
        Handled::SortScan,
        Handled::TemporaryTables,
    ];
}

/// The counts of a statement.
#[derive(Debug, Default)]
pub struct HandlerCounts {
    counts: [Cell<u64>; Handled::ALL.len()],
    /// A bit for each that is not 0.
    some: Cell<u32>,
}

impl HandlerCounts {
    /// Counts.
    #[inline]
    pub fn add(&self, what: Handled, by: u64) {
        if let Some(count) = self.counts.get(what as usize) {
            count.set(count.get().wrapping_add(by));
            self.some.set(self.some.get() | 1 << what as u8);
        }
    }

    /// Calls `take` with what has been counted, and begins again.
    #[inline]
    pub fn drain(&self, mut take: impl FnMut(Handled, u64)) {
        let mut some = self.some.take();
        while some != 0 {
            let at = some.trailing_zeros() as usize;
            some &= some - 1;
            if let (Some(what), Some(count)) = (Handled::ALL.get(at), self.counts.get(at)) {
                take(*what, count.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told_once() {
        let counts = HandlerCounts::default();
        Handled::ALL.iter().zip(1..).for_each(|(what, by)| counts.add(*what, by));
        counts.add(Handled::Delete, 4);
        let mut told = Vec::new();
        counts.drain(|what, count| told.push((what, count)));
        let wanted: Vec<_> = Handled::ALL.iter().zip([5].into_iter().chain(2..)).collect();
        assert_eq!(told.iter().map(|(what, count)| (what, *count)).collect::<Vec<_>>(), wanted);
        counts.drain(|what, _| panic!("{what:?} again"));
    }
}
