//! Lock modes and their conflicts, as InnoDB defines them (docs/internals/row-locks.md).

/// What part of an index entry a lock covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Extent {
    /// The entry and the gap before it.
    NextKey,
    /// The entry only.
    Record,
    /// The gap before the entry.
    Gap,
    /// The wish to insert into the gap before the entry.
    InsertIntention,
}

/// What to do when a row to be locked is locked by another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Wait up to the lock wait timeout.
    #[default]
    Wait,
    /// Fail with an error.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// Strength and extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LockMode {
    pub exclusive: bool,
    pub extent: Extent,
}

impl LockMode {
    pub const X_RECORD: LockMode = LockMode { exclusive: true, extent: Extent::Record };
    pub const INSERT: LockMode = LockMode { exclusive: true, extent: Extent::InsertIntention };

    pub fn new(exclusive: bool, extent: Extent) -> LockMode {
        LockMode { exclusive, extent }
    }

    fn is_gap(self) -> bool {
        matches!(self.extent, Extent::Gap | Extent::InsertIntention)
    }

    /// Whether it keeps others from inserting into the gap.
    pub fn guards_gap(self) -> bool {
        matches!(self.extent, Extent::Gap | Extent::NextKey)
    }

    /// Whether a request for `self` must wait for another transaction's `held` lock on the same entry.
    pub fn conflicts(self, held: LockMode, supremum: bool) -> bool {
        if !self.exclusive && !held.exclusive {
            return false;
        }
        let insert = self.extent == Extent::InsertIntention;
        // The rules in InnoDB's order: gap locks never wait save for an insertion; nobody but an insertion
        // waits for a gap lock; a gap lock does not care for the record; nobody waits for a wish to insert.
        let harmless = [
            (self.is_gap() || supremum) && !insert,
            !insert && held.is_gap(),
            self.is_gap() && held.extent == Extent::Record,
            held.extent == Extent::InsertIntention,
        ];
        !harmless.contains(&true)
    }

    /// Whether holding `self` makes a request of the same transaction for `wanted` superfluous.
    pub fn covers(self, wanted: LockMode) -> bool {
        let strength = self.exclusive || !wanted.exclusive;
        let extent = match wanted.extent {
            Extent::InsertIntention => false,
            Extent::NextKey => self.extent == Extent::NextKey,
            Extent::Record => matches!(self.extent, Extent::NextKey | Extent::Record),
            Extent::Gap => matches!(self.extent, Extent::NextKey | Extent::Gap),
        };
        strength && extent
    }

    /// As MySQL writes it in `data_locks`. The end of an index has no entry: a lock there is plain.
    pub fn short_text(self, supremum: bool) -> &'static str {
        let extent = match self.extent {
            Extent::Gap if supremum => Extent::NextKey,
            extent => extent,
        };
        match (self.exclusive, extent) {
            (true, Extent::NextKey) => "X",
            (true, Extent::Record) => "X,REC_NOT_GAP",
            (true, Extent::Gap) => "X,GAP",
            (true, Extent::InsertIntention) if supremum => "X,INSERT_INTENTION",
            (true, Extent::InsertIntention) => "X,GAP,INSERT_INTENTION",
            (false, Extent::NextKey) => "S",
            (false, Extent::Record) => "S,REC_NOT_GAP",
            (false, _) => "S,GAP",
        }
    }

    /// As InnoDB writes it in its status texts.
    pub fn describe(self) -> &'static str {
        match (self.exclusive, self.extent) {
            (true, Extent::NextKey) => "lock_mode X",
            (true, Extent::Record) => "lock_mode X locks rec but not gap",
            (true, Extent::Gap) => "lock_mode X locks gap before rec",
            (true, Extent::InsertIntention) => "lock_mode X locks gap before rec insert intention",
            (false, Extent::NextKey) => "lock mode S",
            (false, Extent::Record) => "lock mode S locks rec but not gap",
            (false, _) => "lock mode S locks gap before rec",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conflict table written out by hand: rows are requests, columns held locks, both X.
    #[test]
    fn conflicts_follow_the_rules_for_gaps() {
        use Extent::*;
        let expected = [
            (NextKey, [(NextKey, true), (Record, true), (Gap, false), (InsertIntention, false)]),
            (Record, [(NextKey, true), (Record, true), (Gap, false), (InsertIntention, false)]),
            (Gap, [(NextKey, false), (Record, false), (Gap, false), (InsertIntention, false)]),
            (InsertIntention, [(NextKey, true), (Record, false), (Gap, true), (InsertIntention, false)]),
        ];
        for (request, row) in expected {
            for (held, conflict) in row {
                let (request, held) = (LockMode::new(true, request), LockMode::new(true, held));
                assert_eq!(request.conflicts(held, false), conflict, "{request:?} against {held:?}");
                let shared = LockMode { exclusive: false, ..held };
                assert_eq!(request.conflicts(shared, false), conflict, "{request:?} against {shared:?}");
                let both_shared = LockMode { exclusive: false, ..request };
                assert!(!both_shared.conflicts(shared, false));
            }
        }
        assert!(!LockMode::new(true, NextKey).conflicts(LockMode::new(true, Gap), true));
        assert!(LockMode::INSERT.conflicts(LockMode::new(false, Gap), true));
    }
}
