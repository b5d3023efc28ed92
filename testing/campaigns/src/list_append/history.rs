//! What the clients of a run know: their transactions, what each read and appended, and how each ended.

use std::collections::HashMap;

/// A list, by the primary key of its row.
pub type Key = u32;
/// What is appended: a number used once in the whole run.
pub type Element = u32;
/// Nanoseconds since the beginning of the run.
pub type Time = u64;

/// One statement of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The element was put at the end of the list.
    Append(Key, Element),
    /// The list was read, and this was in it.
    Read(Key, Vec<Element>),
}

/// A statement, and when it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub sent: Time,
    pub action: Action,
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// COMMIT was acknowledged.
    Committed,
    /// It was rolled back, or the connection broke before COMMIT was sent.
    Aborted,
    /// The connection broke with COMMIT under way.
    Unknown,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// When its BEGIN was sent.
    pub began: Time,
    /// When its end was known.
    pub ended: Time,
    pub outcome: Outcome,
    pub steps: Vec<Step>,
}

impl Transaction {
    /// Whether it appended nothing.
    pub fn only_reads(&self) -> bool {
        self.steps.iter().all(|step| matches!(step.action, Action::Read(..)))
    }
}

/// Everything that happened, and what was there afterwards.
#[derive(Debug, Default)]
pub struct History {
    pub transactions: Vec<Transaction>,
    /// Every list as it was when nobody worked any more.
    pub lists: HashMap<Key, Vec<Element>>,
}
