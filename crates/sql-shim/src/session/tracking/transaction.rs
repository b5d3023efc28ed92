//! What a client hears of its transaction: which statements would begin one like it elsewhere, and what it
//! has done so far.
//!
//! The state has eight places; those of tables without transactions (`r`, `w`) and of statements that could
//! not be replicated by their text (`s`) stay empty here.
//!
//! That BEGIN and the end of what it begins are said even if nobody asked (`OFF`) is MySQL's way.

use untorn::Xid;

use crate::variables::{Isolation, TransactionTracking};

mod place {
    /// BEGIN.
    pub(super) const EXPLICIT: u8 = 1;
    /// Begun by a statement, with `autocommit = 0`.
    pub(super) const IMPLICIT: u8 = 2;
    pub(super) const READS: u8 = 4;
    pub(super) const WRITES: u8 = 8;
    /// Rows were sent.
    pub(super) const RESULTS: u8 = 16;
    /// LOCK TABLES.
    pub(super) const LOCKS: u8 = 32;
}

const OPEN: u8 = place::EXPLICIT | place::IMPLICIT;

/// What a statement does to tables.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Accesses {
    pub(in crate::session) reads: bool,
    pub(in crate::session) writes: bool,
}

/// What was said of a transaction, beside what the session's variables say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Characteristics {
    isolation: Option<Isolation>,
    read_only: Option<bool>,
    snapshot: bool,
}

/// Of one session. What returns a flag says whether the client is to hear of it.
#[derive(Debug, Default)]
pub(in crate::session) struct TransactionTracker {
    state: u8,
    /// What the client has heard.
    said: u8,
    characteristics: Characteristics,
    /// XA START has begun it.
    xid: Option<Xid>,
    /// The client is to hear them again.
    characteristics_changed: bool,
    /// `session_track_transaction_info`.
    tracking: TransactionTracking,
}

impl TransactionTracker {
    /// With this setting, of which the client has not to hear: a fresh session's.
    pub(super) fn start(&mut self, tracking: TransactionTracking) {
        self.tracking = tracking;
    }

    /// `session_track_transaction_info` was set. What was done before anybody followed is not said.
    pub(super) fn begin_tracking(&mut self, tracking: TransactionTracking) -> bool {
        if self.tracking == TransactionTracking::Off && tracking != self.tracking {
            (self.state, self.said) = (0, 0);
        }
        self.tracking = tracking;
        self.characteristics_changed = tracking != TransactionTracking::Off;
        self.characteristics_changed
    }

    fn is_followed(&self) -> bool {
        self.tracking != TransactionTracking::Off
    }

    /// BEGIN.
    pub(in crate::session) fn begun(&mut self, snapshot: bool, read_only: Option<bool>) -> bool {
        self.state = place::EXPLICIT | if snapshot { place::READS } else { 0 };
        self.xid = None;
        self.characteristics.snapshot = snapshot;
        self.characteristics.read_only = read_only.or(self.characteristics.read_only);
        self.characteristics_changed = true;
        true
    }

    /// XA START.
    pub(in crate::session) fn begun_xa(&mut self, xid: &Xid) -> bool {
        let told = self.begun(false, None);
        self.xid = Some(xid.clone());
        told
    }

    /// COMMIT, ROLLBACK, or what commits by itself.
    pub(in crate::session) fn ended(&mut self, chain: bool) -> bool {
        let before = (self.state, self.characteristics);
        let kept = self.state & place::LOCKS;
        if chain {
            self.state = kept | place::EXPLICIT;
            self.characteristics.snapshot = false;
            self.characteristics_changed = true;
            return true;
        }
        self.state = kept;
        self.xid = None;
        self.characteristics = Characteristics::default();
        let said = before.0 & place::EXPLICIT != 0 || before.1 != self.characteristics;
        self.characteristics_changed |= said;
        said || before.0 != self.state
    }

    /// Rolled back without being asked; what is said of the next one holds.
    pub(in crate::session) fn lost(&mut self) -> bool {
        let before = self.state;
        self.state &= place::LOCKS;
        before != self.state
    }

    /// SET TRANSACTION, for one.
    pub(in crate::session) fn characterized(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    ) -> bool {
        if self.is_followed() {
            self.characteristics.isolation = isolation.or(self.characteristics.isolation);
            self.characteristics.read_only = read_only.or(self.characteristics.read_only);
            self.characteristics_changed = true;
        }
        self.is_followed()
    }

    /// What was said of one does not hold any more.
    pub(in crate::session) fn forgotten(&mut self, isolation: bool, read_only: bool) -> bool {
        let before = self.characteristics;
        if isolation {
            self.characteristics.isolation = None;
        }
        if read_only {
            self.characteristics.read_only = None;
        }
        let changed = before != self.characteristics;
        self.characteristics_changed |= changed;
        changed
    }

    /// A statement outside transactions has used up what was said.
    pub(in crate::session) fn used_up(&mut self) -> bool {
        let changed = self.characteristics != Characteristics::default();
        self.characteristics = Characteristics::default();
        self.characteristics_changed |= changed;
        changed
    }

    /// A statement uses tables; `implicit`: with `autocommit = 0`.
    pub(super) fn accesses(&mut self, accesses: impl FnOnce() -> Accesses, implicit: bool) -> bool {
        if !self.is_followed() || self.state & OPEN == 0 && !implicit {
            return false;
        }
        let (before, accesses) = (self.state, accesses());
        if self.state & OPEN == 0 && (accesses.reads || accesses.writes) {
            self.state |= place::IMPLICIT;
        }
        self.state |= if accesses.reads { place::READS } else { 0 };
        self.state |= if accesses.writes { place::WRITES } else { 0 };
        before != self.state
    }

    /// Rows were sent.
    pub(in crate::session) fn rows_sent(&mut self) -> bool {
        let before = self.state;
        if self.is_followed() && self.state & OPEN != 0 {
            self.state |= place::RESULTS;
        }
        before != self.state
    }

    /// LOCK TABLES, or UNLOCK TABLES.
    pub(in crate::session) fn locked(&mut self, locks: bool) -> bool {
        let before = self.state;
        match locks {
            true if self.is_followed() => self.state |= place::LOCKS,
            true => {}
            false => self.state &= !place::LOCKS,
        }
        before != self.state
    }

    /// What is to be said of state and characteristics.
    pub(super) fn take(&mut self) -> (Option<[u8; 8]>, Option<Vec<u8>>) {
        let state = (self.state != self.said).then(|| self.places());
        self.said = self.state;
        let changed = std::mem::take(&mut self.characteristics_changed);
        let characteristics = changed && self.tracking == TransactionTracking::Characteristics;
        (state, characteristics.then(|| self.statements()))
    }

    fn places(&self) -> [u8; 8] {
        let is = |place: u8, letter: u8| if self.state & place != 0 { letter } else { b'_' };
        let begun = if self.state & place::EXPLICIT != 0 { b'T' } else { is(place::IMPLICIT, b'I') };
        let [reads, writes] = [is(place::READS, b'R'), is(place::WRITES, b'W')];
        let [results, locks] = [is(place::RESULTS, b'S'), is(place::LOCKS, b'L')];
        [begun, b'_', reads, b'_', writes, b'_', results, locks]
    }

    /// Statements that begin a transaction like this one.
    fn statements(&self) -> Vec<u8> {
        let Characteristics { isolation, read_only, snapshot } = self.characteristics;
        let mut statements = Vec::new();
        if let Some(level) = isolation {
            let level = match level {
                Isolation::ReadUncommitted => "READ UNCOMMITTED",
                Isolation::ReadCommitted => "READ COMMITTED",
                Isolation::RepeatableRead => "REPEATABLE READ",
                Isolation::Serializable => "SERIALIZABLE",
            };
            statements.push(format!("SET TRANSACTION ISOLATION LEVEL {level};"));
        }
        let access = read_only.map(|read_only| if read_only { "READ ONLY" } else { "READ WRITE" });
        if let Some(xid) = &self.xid {
            statements.extend(access.map(|access| format!("SET TRANSACTION {access};")));
            let mut statements = statements.into_iter().fold(Vec::new(), |mut all, statement| {
                all.extend_from_slice(statement.as_bytes());
                all.push(b' ');
                all
            });
            put_xa_start(&mut statements, xid);
            return statements;
        }
        if self.state & place::EXPLICIT != 0 {
            let snapshot = snapshot.then_some("WITH CONSISTENT SNAPSHOT");
            let parts: Vec<&str> = snapshot.into_iter().chain(access).collect();
            let space = if parts.is_empty() { "" } else { " " };
            statements.push(format!("START TRANSACTION{space}{};", parts.join(", ")));
        } else if let Some(access) = access {
            statements.push(format!("SET TRANSACTION {access};"));
        }
        statements.join(" ").into_bytes()
    }
}

/// A name is said byte for byte, quotes and all, which is MySQL's way; one without a first part, not at all.
fn put_xa_start(statements: &mut Vec<u8>, xid: &Xid) {
    statements.extend_from_slice(b"XA START");
    if !xid.gtrid().is_empty() {
        statements.extend_from_slice(&[b" '", xid.gtrid(), b"'"].concat());
        if !xid.bqual().is_empty() {
            statements.extend_from_slice(&[b",'", xid.bqual(), b"'"].concat());
        }
        if xid.format_id() != 1 {
            statements.extend_from_slice(format!(",{}", xid.format_id()).as_bytes());
        }
    }
    statements.push(b';');
}
