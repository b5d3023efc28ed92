//! Memory accounting for statements.
//!
//! Every buffer of a statement that grows with data is charged to the [`Account`] of its context, and all
//! accounts draw on the [`ServerMemory`]. What is refused is error 1041 for that statement, long before an
//! allocation fails. An account takes from the server in portions, so that a row costs an addition; what it
//! has left goes back when nothing is charged any more. A [`Charge`] is what one buffer has been charged;
//! dropped, also by a failed statement, it gives everything back.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errors;
use crate::result::SqlError;
use crate::value::Value;

/// What an account takes from the server at a time.
const PORTION: u64 = 256 << 10;

/// Memory of all statements together.
#[derive(Debug)]
pub struct ServerMemory {
    used: AtomicU64,
    limit: AtomicU64,
    /// Where the limit is when nobody sets one.
    default_limit: u64,
}

impl ServerMemory {
    /// Nothing taken, and the limit where it is when nobody sets one.
    pub fn new(default_limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit: AtomicU64::new(default_limit), default_limit }
    }

    /// Sets the limit; 0 is the default.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(if bytes == 0 { self.default_limit } else { bytes }, Ordering::Relaxed);
    }

    /// The limit.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes taken by accounts.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        // What is refused must not be there for a moment either: others would be refused for it.
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit());
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Memory of the statements of one context.
#[derive(Debug)]
pub struct Account {
    server: Arc<ServerMemory>,
    /// Charged by the statement.
    used: Cell<u64>,
    /// Charged for what outlives statements: user variables, texts of PREPARE.
    kept: Cell<u64>,
    /// Charged for texts, trees and plans of statements, by their [`StatementCharge`]s.
    statements: Arc<AtomicU64>,
    /// Taken from the server.
    taken: Cell<u64>,
    /// `untorn_statement_memory_limit`; 0: half of the server's.
    limit: Cell<u64>,
}

impl Account {
    /// An account without a charge.
    pub fn new(server: Arc<ServerMemory>) -> Account {
        Account {
            server,
            used: Cell::new(0),
            kept: Cell::new(0),
            statements: Arc::default(),
            taken: Cell::new(0),
            limit: Cell::new(0),
        }
    }

    /// Sets the statement's limit; 0 is half of the server's.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.set(bytes);
    }

    /// What a statement may have at most.
    pub fn limit(&self) -> u64 {
        let server = self.server.limit();
        match self.limit.get() {
            0 => server / 2,
            limit => limit.min(server),
        }
    }

    /// Bytes charged by the statement that runs.
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Bytes charged for what outlives statements.
    pub fn kept(&self) -> u64 {
        self.kept.get() + self.statements.load(Ordering::Relaxed)
    }

    /// Nothing charged yet.
    pub fn charge(&self) -> Charge<'_> {
        Charge { account: self, bytes: 0 }
    }

    /// Charges a statement's text, tree and plan.
    pub fn statement(&self, bytes: usize) -> Result<StatementCharge, SqlError> {
        let bytes = bytes as u64;
        if self.kept().saturating_add(bytes) > self.limit() || !self.server.take(bytes) {
            return Err(refused());
        }
        self.statements.fetch_add(bytes, Ordering::Relaxed);
        Ok(StatementCharge { server: self.server.clone(), statements: self.statements.clone(), bytes })
    }

    /// Charges what outlives the statement, or gives it back.
    pub fn keep(&self, old_bytes: usize, new_bytes: usize) -> Result<(), SqlError> {
        let (old, new) = (old_bytes as u64, new_bytes as u64);
        let kept = (self.kept.get() + new).saturating_sub(old);
        if new > old && (kept > self.limit() || !self.cover(self.used.get() + kept)) {
            return Err(refused());
        }
        self.kept.set(kept);
        self.give_back_rest();
        Ok(())
    }

    pub(crate) fn add(&self, bytes: u64) -> bool {
        let used = self.used.get() + bytes;
        let fits = used <= self.limit() && self.cover(used + self.kept.get());
        if fits {
            self.used.set(used);
        }
        fits
    }

    /// Takes from the server what is missing.
    fn cover(&self, wanted: u64) -> bool {
        let missing = wanted.saturating_sub(self.taken.get());
        if missing == 0 {
            return true;
        }
        let portion = missing.next_multiple_of(PORTION);
        let fits = self.server.take(portion);
        if fits {
            self.taken.set(self.taken.get() + portion);
        }
        fits
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.used.set(self.used.get().saturating_sub(bytes));
        self.give_back_rest();
    }

    fn give_back_rest(&self) {
        if self.used.get() == 0 {
            let rest = self.taken.get().saturating_sub(self.kept.get());
            self.server.give_back(rest);
            self.taken.set(self.taken.get() - rest);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.server.give_back(self.taken.get());
    }
}

/// What a statement's text, tree and plan have been charged. It goes with them, to the thread that parses and
/// to the client's prepared statement, and gives everything back when it is dropped.
#[derive(Debug)]
pub struct StatementCharge {
    server: Arc<ServerMemory>,
    statements: Arc<AtomicU64>,
    bytes: u64,
}

impl StatementCharge {
    /// Takes over what another of the same account has been charged.
    pub fn join(&mut self, mut other: StatementCharge) {
        debug_assert!(Arc::ptr_eq(&self.statements, &other.statements), "charged to another account");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for StatementCharge {
    fn drop(&mut self) {
        self.statements.fetch_sub(self.bytes, Ordering::Relaxed);
        self.server.give_back(self.bytes);
    }
}

/// What one buffer has been charged.
#[derive(Debug)]
pub struct Charge<'a> {
    account: &'a Account,
    bytes: u64,
}

impl Charge<'_> {
    /// Charges more bytes: error 1041 when they are not available.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> Result<(), SqlError> {
        let bytes = bytes as u64;
        if !self.account.add(bytes) {
            return Err(refused());
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Charges what the buffer has grown to; `false` when the memory is not available.
    #[inline]
    #[must_use]
    pub fn reach(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        if bytes <= self.bytes {
            return true;
        }
        let fits = self.account.add(bytes - self.bytes);
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Gives back what the buffer does not need any more.
    pub fn shrink_to(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes < self.bytes {
            self.account.subtract(self.bytes - bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Error 1041.
pub fn refused() -> SqlError {
    errors::error(errors::OUT_OF_RESOURCES, &[])
}

/// Bytes that a value in memory takes.
pub fn weight(value: &Value<'_>) -> usize {
    let more = match value {
        Value::Text(text, _) | Value::Json(text) => text.len(),
        Value::Decimal(_) => 32,
        _ => 0,
    };
    size_of::<Value<'_>>() + more
}

/// Bytes that a row in memory takes.
pub fn row_weight(row: &[Value<'_>]) -> usize {
    size_of::<Vec<Value<'_>>>() + row.iter().map(weight).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(limit: u64) -> Account {
        Account::new(Arc::new(ServerMemory::new(limit)))
    }

    #[test]
    fn what_is_charged_comes_back() {
        let account = account(4 << 20);
        {
            let mut first = account.charge();
            let mut second = account.charge();
            assert_eq!(first.grow(1000), Ok(()));
            assert!(second.reach(500) && second.reach(200));
            assert_eq!(account.used(), 1500);
            assert_eq!(account.server.used(), PORTION);
            assert_eq!(account.keep(0, 700), Ok(()));
        }
        assert_eq!((account.used(), account.kept()), (0, 700));
        assert_eq!(account.server.used(), 700, "what is left goes back");
        assert_eq!(account.keep(700, 0), Ok(()));
        assert_eq!(account.server.used(), 0);
    }

    #[test]
    fn the_statement_and_the_server_have_limits() {
        let account = account(4 << 20);
        let mut charge = account.charge();
        assert_eq!(charge.grow((2 << 20) + 1).map_err(|error| error.code), Err(1041), "half of the server's");
        account.set_limit(64 << 20);
        assert_eq!(charge.grow(3 << 20), Ok(()));
        let other = Account::new(account.server.clone());
        other.set_limit(64 << 20);
        assert!(!other.charge().reach(2 << 20), "the server has one left");
        drop(charge);
        assert!(other.charge().reach(2 << 20));
        assert_eq!(other.keep(0, 5 << 20).map_err(|error| error.code), Err(1041));
        assert_eq!((account.server.used(), other.kept()), (0, 0), "a refusal charges nothing");
    }
}
