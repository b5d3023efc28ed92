//! What the database must hold, as those who use it know it.
//!
//! Every actor of a history (a session, one that changes definitions) owns a part of the database that nobody
//! else changes, and keeps a [`Journal`] of it: the state after its last acknowledged step, and the states
//! that a step under way may also leave. A commit under way has one such state (all of it; nothing of it is
//! the acknowledged one). Rows that all sessions change together are the accounts: each transfer also books
//! itself into its session's own rows, so that the balances follow from those, and half a transfer is found
//! out.

use crate::backups::Copy;
use crate::prepared::Lanes;
use crate::rivals::Worlds;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sessions that change rows.
pub const SESSIONS: usize = 3;
/// Rows that all sessions change.
pub const ACCOUNTS: i64 = 6;
/// Balance of an account before the first transfer.
pub const BALANCE: i64 = 1000;
/// The database all tables are in.
pub const DATABASE: &str = "test";
/// The table the sessions share, each with keys of its own.
pub const SHARED: &str = "t";
/// The table of accounts.
pub const ACCOUNT: &str = "account";
/// Keys from here on are a session's bookings of its transfers, not plain rows.
pub const BOOKINGS: i64 = 1_000_000;
/// Number of the actor that makes and drops an index of the shared table.
pub const INDEXER: usize = SESSIONS;
/// Number of the actor that makes, empties, renames and drops tables of its own.
pub const DEFINER: usize = SESSIONS + 1;
/// Number of actors with journals.
pub const ACTORS: usize = SESSIONS + 2;

/// The part of a row besides its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// An indexed number.
    pub counter: i64,
    /// What the row's text is full of.
    pub byte: u8,
    /// How long the text is; long ones are stored off-page.
    pub length: u32,
}

/// A table, or an actor's part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableState {
    /// Rows by key.
    pub rows: BTreeMap<i64, Row>,
    /// Whether it has the index that comes and goes.
    pub indexed: bool,
}

/// Everything an actor owns, by table.
pub type ActorState = BTreeMap<String, TableState>;

/// What an actor knows of its own state.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// After the last acknowledged step.
    pub acknowledged: Arc<ActorState>,
    /// What a crash may leave instead.
    pub possible: Vec<Arc<ActorState>>,
}

impl Journal {
    /// A journal that allows this state and no other.
    pub fn exactly(state: Arc<ActorState>) -> Journal {
        Journal { acknowledged: state, possible: Vec::new() }
    }

    /// The allowed state equal to the one found.
    pub fn find(&self, found: &ActorState) -> Option<Arc<ActorState>> {
        std::iter::once(&self.acknowledged)
            .chain(self.possible.iter().rev())
            .find(|state| ***state == *found)
            .cloned()
    }
}

/// All journals.
#[derive(Clone, Debug)]
pub struct Model {
    /// Whether the tables that are made first are all there; before that only soundness is asked for.
    pub prepared: bool,
    /// By actor.
    pub journals: Vec<Journal>,
    /// The tables that several actors fight over.
    pub rivals: Worlds,
    /// Prepared transactions, and what they change.
    pub lanes: Lanes,
    /// The backups that were called for.
    pub copies: Vec<Arc<Copy>>,
    /// Commits are not waited for: any earlier state of a session may be found.
    pub relaxed: bool,
}

impl Model {
    /// The model of an empty directory.
    pub fn new(relaxed: bool) -> Model {
        Model {
            prepared: false,
            journals: vec![Journal::default(); ACTORS],
            rivals: Worlds::default(),
            lanes: None,
            copies: Vec::new(),
            relaxed,
        }
    }

    /// A model that allows only these states.
    pub fn exactly(states: Vec<Arc<ActorState>>, rivals: Worlds, lanes: Lanes) -> Model {
        let journals = states.into_iter().map(Journal::exactly).collect();
        Model { prepared: true, journals, rivals, lanes, copies: Vec::new(), relaxed: false }
    }

    /// The step of this actor that is about to be made leads to this state.
    pub fn begin_step(&mut self, actor: usize, state: Arc<ActorState>) {
        self.note_in_copies(actor, &state);
        self.journals[actor].possible.push(state);
    }

    /// The step was acknowledged.
    pub fn end_step(&mut self, actor: usize, state: Arc<ActorState>) {
        let journal = &mut self.journals[actor];
        if self.relaxed && actor < SESSIONS {
            // Durable some time or other; until then the states before may come back.
            let before = std::mem::replace(&mut journal.acknowledged, state);
            journal.possible.push(before);
        } else {
            *journal = Journal::exactly(state);
        }
    }

    /// The step did not happen.
    pub fn cancel_step(&mut self, actor: usize) {
        self.journals[actor].possible.pop();
    }
}

/// The model as actors and observers share it.
pub type SharedModel = Arc<Mutex<Model>>;

/// Which actor owns this row of the shared table.
pub fn owner_of(key: i64) -> usize {
    (key % SESSIONS as i64) as usize
}

/// The key under which a session books what it did to an account.
pub fn booking_key(session: usize, account: i64) -> i64 {
    let first = BOOKINGS - BOOKINGS % SESSIONS as i64;
    first + SESSIONS as i64 + account * SESSIONS as i64 + session as i64
}

/// Balances as the bookings of all sessions say.
pub fn balances(states: &[Arc<ActorState>]) -> Vec<i64> {
    let booked = |account: i64, session: usize| {
        let rows = states[session].get(SHARED).map(|table| &table.rows);
        rows.and_then(|rows| rows.get(&booking_key(session, account))).map_or(0, |row| row.counter)
    };
    (0..ACCOUNTS)
        .map(|account| BALANCE + (0..SESSIONS).map(|session| booked(account, session)).sum::<i64>())
        .collect()
}
