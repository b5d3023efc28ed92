//! What a client hears of its session's changes: CLIENT_SESSION_TRACK and the variables `session_track_*`.
//!
//! Changes are marked where they happen, and go with the next OK as a block of entries, the values as they
//! are then. An error packet has no place for them, and neither have rows that end with an EOF: they wait.
//! The entries, their order and when there is an empty block are MySQL 9.7's, as it sends them.

mod transaction;

use std::collections::BTreeSet;

use sql::plan::Plan;

use super::Session;
use crate::server::registry::ClientFlags;
use crate::variables::tracked_names::TrackedNames;
use crate::variables::{Scope, Value};
use crate::wire::output::put_length_encoded;

pub(super) use transaction::{Accesses, TransactionTracker};

/// Kinds of entries.
mod entry {
    pub(super) const SYSTEM_VARIABLE: u8 = 0;
    pub(super) const SCHEMA: u8 = 1;
    pub(super) const STATE_CHANGE: u8 = 2;
    pub(super) const TRANSACTION_CHARACTERISTICS: u8 = 4;
    pub(super) const TRANSACTION_STATE: u8 = 5;
}

/// What has changed of a session and was not said yet.
#[derive(Default)]
pub(super) struct Tracker {
    /// The client wants to hear of changes.
    wanted: bool,
    /// Rows end with an OK.
    rows_end_with_ok: bool,
    /// Something is to be said.
    dirty: bool,
    names: TrackedNames,
    /// Variables that have changed.
    variables: BTreeSet<&'static str>,
    schema: bool,
    state: bool,
    transaction: TransactionTracker,
}

impl Tracker {
    pub(super) fn new(flags: ClientFlags) -> Tracker {
        Tracker { wanted: flags.session_track, rows_end_with_ok: flags.deprecate_eof, ..Tracker::default() }
    }
}

fn put_entry(block: &mut Vec<u8>, kind: u8, data: &[u8]) {
    block.push(kind);
    put_text(block, data);
}

fn put_text(block: &mut Vec<u8>, text: &[u8]) {
    put_length_encoded(block, text.len() as u64);
    block.extend_from_slice(text);
}

/// A text with its length before it.
fn text_entry(text: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    put_text(&mut data, text);
    data
}

impl Session {
    /// A fresh session's: nothing is to be said.
    pub(super) fn start_tracking(&mut self) {
        self.tracker = Tracker::new(self.state.connection.client_flags());
        if self.tracker.wanted {
            self.read_tracked_names();
            let tracking = self.state.settings().track_transactions;
            self.tracker.transaction.start(tracking);
        }
    }

    fn read_tracked_names(&mut self) {
        let value = self.variable("session_track_system_variables");
        // NULL leaves the list as it was, as in MySQL.
        if let Value::Text(list) = value {
            self.tracker.names = TrackedNames::parse(&list).names;
        }
    }

    /// A SET that has failed in the middle gave the variables their values back.
    pub(super) fn variables_are_as_before(&mut self) {
        if self.tracker.wanted {
            self.read_tracked_names();
            let tracking = self.state.settings().track_transactions;
            self.tracker.transaction.start(tracking);
        }
    }

    fn variable(&self, name: &str) -> Value {
        let (variables, globals) = (self.state.variables(), &self.state.server.variables);
        variables.get(globals, name, Scope::Session).unwrap_or(Value::Null)
    }

    /// A session's variable was set.
    pub(super) fn variable_is_set(&mut self, name: &'static str) {
        if !self.tracker.wanted {
            return;
        }
        match name {
            "session_track_system_variables" => {
                self.tracker.variables.clear();
                self.read_tracked_names();
            }
            "session_track_transaction_info" => {
                let tracking = self.state.settings().track_transactions;
                self.tracker.dirty |= self.tracker.transaction.begin_tracking(tracking);
            }
            _ => {}
        }
        if self.tracker.names.shown(name).is_some() {
            self.tracker.variables.insert(name);
            self.tracker.dirty = true;
        }
        match name {
            "session_track_state_change" => self.tracker.state = false,
            _ => self.state_is_changed(),
        }
    }

    /// Something that a client would have to set again in another session: variables, the database, prepared
    /// statements, temporary tables.
    pub(super) fn state_is_changed(&mut self) {
        if self.tracker.wanted && self.state.settings().track_state_change {
            self.tracker.state = true;
            self.tracker.dirty = true;
        }
    }

    /// The current database was chosen.
    pub(super) fn schema_is_chosen(&mut self) {
        self.schema_is_changed();
        self.state_is_changed();
    }

    /// The current database is another one, or none.
    pub(super) fn schema_is_changed(&mut self) {
        if self.tracker.wanted && self.state.settings().track_schema {
            self.tracker.schema = true;
            self.tracker.dirty = true;
        }
    }

    /// Says something of the transaction to the tracker, which answers whether the client is to hear of it.
    pub(super) fn track_transaction(&mut self, change: impl FnOnce(&mut TransactionTracker) -> bool) {
        if self.tracker.wanted {
            self.tracker.dirty |= change(&mut self.tracker.transaction);
        }
    }

    /// A statement uses tables in the transaction.
    pub(super) fn track_accesses(&mut self, accesses: impl FnOnce() -> Accesses) {
        if self.tracker.wanted {
            let implicit = !self.state.settings().autocommit;
            self.tracker.dirty |= self.tracker.transaction.accesses(accesses, implicit);
        }
    }

    /// What is to be said with an OK; `rows`: with the one at the end of rows.
    #[inline]
    pub(super) fn take_session_changes(&mut self, rows: bool) -> Option<Box<[u8]>> {
        if !self.tracker.dirty || rows && !self.tracker.rows_end_with_ok {
            return None;
        }
        Some(self.encode_changes())
    }

    fn encode_changes(&mut self) -> Box<[u8]> {
        let mut block = Vec::new();
        let names = std::mem::take(&mut self.tracker.variables);
        let mut shown: Vec<_> =
            names.iter().filter_map(|name| Some((self.tracker.names.shown(name)?, *name))).collect();
        shown.sort_unstable();
        for (shown, name) in shown {
            let mut data = text_entry(shown.as_bytes());
            put_text(&mut data, self.tracked_value(name).as_bytes());
            put_entry(&mut block, entry::SYSTEM_VARIABLE, &data);
        }
        if std::mem::take(&mut self.tracker.schema) {
            let database = self.state.current_database();
            let database = database.as_deref().unwrap_or_default();
            put_entry(&mut block, entry::SCHEMA, &text_entry(database.as_bytes()));
        }
        if std::mem::take(&mut self.tracker.state) {
            put_entry(&mut block, entry::STATE_CHANGE, b"1");
        }
        let (state, characteristics) = self.tracker.transaction.take();
        if let Some(state) = state {
            put_entry(&mut block, entry::TRANSACTION_STATE, &text_entry(&state));
        }
        if let Some(text) = characteristics {
            put_entry(&mut block, entry::TRANSACTION_CHARACTERISTICS, &text_entry(&text));
        }
        self.tracker.dirty = false;
        block.into()
    }

    /// A variable's value as SHOW VARIABLES has it.
    fn tracked_value(&self, name: &str) -> String {
        match name {
            "last_insert_id" => self.state.last_insert_id.get().to_string(),
            "insert_id" => self.state.insert_id.get().to_string(),
            "timestamp" => Value::Double(self.state.timestamp()).show(),
            name => self.variable(name).show(),
        }
    }
}

/// What a plan does to tables.
pub(super) fn accesses_of(plan: &Plan) -> Accesses {
    if let Plan::Select(select) = plan {
        let (reads, writes) = select.accesses();
        return Accesses { reads, writes };
    }
    let tables = plan.tables();
    let changed = tables.iter().filter(|table| plan.changes(table)).count();
    // INSERT … SELECT from the same table has it twice.
    let reads = tables.len() > changed || changed > 1 && !matches!(plan, Plan::MultiTableChange(_));
    Accesses { reads, writes: changed > 0 }
}
