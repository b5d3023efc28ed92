//! Is a database what the model says, and sound?
//!
//! Asked of every database that came up after a crash: every row of every table is read and compared with the
//! journals, every table is checked page by page and index by index, the undo tablespace too, and the
//! directory is searched for files that nobody owns.

use crate::model::{
    ACCOUNT, ACTORS, ActorState, DATABASE, INDEXER, Model, Row, SESSIONS, SHARED, TableState, balances,
    owner_of,
};
use crate::prepared::{self, BRANCHES_DATABASE, Lanes};
use crate::rivals::{self, RIVALS_DATABASE, Worlds};
use crate::workload::EXTRA;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::types::Value;
use untorn::{Error, Range};

/// What is wrong with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The engine says so itself: an error, or a check that found damage.
    Reported(String),
    /// The engine says all is well, and it is not.
    Silent(String),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Wrong {
        match error {
            Error::Internal(_) => Wrong::Silent(error.to_string()),
            other => Wrong::Reported(other.to_string()),
        }
    }
}

/// What was found in a database that is as it must be.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By actor; empty before the first tables are all there.
    pub states: Vec<Arc<ActorState>>,
    /// The tables that several actors fight over.
    pub rivals: Worlds,
    /// Prepared transactions.
    pub lanes: Lanes,
    /// Pages that belong to nobody.
    pub lost_pages: u64,
    /// Rows read.
    pub rows: u64,
}

thread_local! {
    /// What is being done right now, for the message of a panic.
    pub static STAGE: Cell<&'static str> = const { Cell::new("") };
}

/// How long a check waits for a table.
const PATIENCE: Duration = Duration::from_secs(5);

/// Compares a database with the model and checks it.
///
/// # Errors
/// What is wrong.
pub async fn verify(db: &Database, model: &Model) -> Result<Found, Wrong> {
    check_files(db)?;
    verify_contents(db, model).await
}

/// The same without looking for files that nobody owns: a definition that was given up midway, by an actor
/// who does not act any more, is put in order by the next start only.
///
/// # Errors
/// What is wrong.
pub async fn verify_contents(db: &Database, model: &Model) -> Result<Found, Wrong> {
    STAGE.set("CHECK TABLE");
    let mut found = loop {
        if let Some(found) = check_tables(db).await? {
            break found;
        }
    };
    STAGE.set("reading the rows");
    if model.prepared {
        found.states = compare(db, model).await?;
        found.rivals = rivals::compare(db, &model.rivals).await?;
        found.lanes = prepared::compare(db, &model.lanes).await?;
    }
    Ok(found)
}

/// CHECK TABLE of all tables. `None` when one of them has gone meanwhile: an actor that does not act any more
/// was in the middle of a definition, which goes on by itself. The check has waited for it, and there is at
/// most one of each actor.
async fn check_tables(db: &Database) -> Result<Option<Found>, Wrong> {
    let mut found = Found::default();
    // The check of a table waits for those who change it: here until they are ended (`prepared::end_all`).
    let open = !db.prepared_transactions().is_empty();
    let branches = (!open).then_some(BRANCHES_DATABASE);
    for database in [DATABASE, RIVALS_DATABASE].into_iter().chain(branches) {
        for table in &db.tables(database) {
            let checked = db.definitions().timeout(PATIENCE).check_table(database, &table.name).await;
            let report = match checked {
                Err(Error::NoSuchTable(..)) if !db.tables(database).iter().any(|t| t.name == table.name) => {
                    return Ok(None);
                }
                checked => checked?,
            };
            if !report.is_sound() {
                return Err(Wrong::Reported(format!("CHECK TABLE {}: {:?}", table.name, report.problems)));
            }
            found.lost_pages += report.lost_pages;
            found.rows += report.rows;
        }
    }
    Ok(Some(found))
}

async fn compare(db: &Database, model: &Model) -> Result<Vec<Arc<ActorState>>, Wrong> {
    let mut actual: Vec<ActorState> = vec![ActorState::new(); ACTORS];
    let shared = read_table(db, SHARED).await?;
    for (session, state) in actual.iter_mut().enumerate().take(SESSIONS) {
        let rows = shared.rows.iter().filter(|(key, _)| owner_of(**key) == session);
        let rows = rows.map(|(key, row)| (*key, *row)).collect();
        state.insert(SHARED.to_owned(), TableState { rows, indexed: false });
    }
    let index_only = TableState { rows: BTreeMap::new(), indexed: shared.indexed };
    actual[INDEXER].insert(SHARED.to_owned(), index_only);
    for table in db.tables(DATABASE) {
        if table.name != SHARED && table.name != ACCOUNT {
            let state = read_table(db, &table.name).await?;
            actual[INDEXER + 1].insert(table.name.clone(), state);
        }
    }
    let mut states = Vec::with_capacity(ACTORS);
    for (actor, actual) in actual.into_iter().enumerate() {
        let journal = &model.journals[actor];
        match journal.find(&actual) {
            Some(state) => states.push(state),
            None => {
                return Err(Wrong::Silent(format!(
                    "actor {actor}: {}; {} other states would have been allowed",
                    difference(&journal.acknowledged, &actual),
                    journal.possible.len()
                )));
            }
        }
    }
    let accounts = read_accounts(db).await?;
    let wanted = balances(&states);
    if accounts != wanted {
        return Err(Wrong::Silent(format!("balances are {accounts:?}, the bookings say {wanted:?}")));
    }
    Ok(states)
}

/// What distinguishes the state found from the acknowledged one, for people.
fn difference(acknowledged: &ActorState, found: &ActorState) -> String {
    let mut differences = Vec::new();
    for name in acknowledged.keys().chain(found.keys()) {
        match (acknowledged.get(name), found.get(name)) {
            (Some(_), None) => differences.push(format!("table {name} is missing")),
            (None, Some(_)) => differences.push(format!("table {name} should not be there")),
            (Some(wanted), Some(found)) if wanted != found => {
                let keys = wanted.rows.keys().chain(found.rows.keys());
                let other = keys.filter(|key| wanted.rows.get(key) != found.rows.get(key));
                let some: Vec<_> =
                    other.take(4).map(|key| (key, wanted.rows.get(key), found.rows.get(key))).collect();
                let indexes = (wanted.indexed, found.indexed);
                differences
                    .push(format!("table {name}: (key, acknowledged, found) {some:?}, indexed {indexes:?}"));
            }
            _ => {}
        }
    }
    differences.dedup();
    differences.join("; ")
}

async fn read_table(db: &Database, name: &str) -> Result<TableState, Wrong> {
    let table = db.table(DATABASE, name)?;
    let mut state = TableState { rows: BTreeMap::new(), indexed: table.def.key_named(EXTRA).is_some() };
    let mut strange = None;
    let mut transaction = db.transaction();
    transaction
        .for_each(&table, &Range::all(), |row| {
            match row_of(&row) {
                Some((key, row)) => drop(state.rows.insert(key, row)),
                None => strange = Some(format!("table {name} has the row {row:?}")),
            }
            strange.is_none()
        })
        .await?;
    match strange {
        Some(what) => Err(Wrong::Silent(what)),
        None => Ok(state),
    }
}

fn row_of(values: &[Value<'_>]) -> Option<(i64, Row)> {
    let [Value::Int(key), Value::Int(counter), Value::Bytes(text)] = values else { return None };
    let byte = text.first().copied().unwrap_or(0);
    let whole = text.iter().all(|other| *other == byte);
    whole.then_some((
        *key,
        Row { counter: *counter, byte: if text.is_empty() { 0 } else { byte }, length: text.len() as u32 },
    ))
}

async fn read_accounts(db: &Database) -> Result<Vec<i64>, Wrong> {
    let accounts = db.table(DATABASE, ACCOUNT)?;
    let mut balances = Vec::new();
    let mut transaction = db.transaction();
    transaction
        .for_each(&accounts, &Range::all(), |row| {
            if let Some(Value::Int(balance)) = row.get(1) {
                balances.push(*balance);
            }
            true
        })
        .await?;
    Ok(balances)
}

/// Every file of a table belongs to a table, and nothing half done is left.
///
/// # Errors
/// The name of one that is nobody's.
pub fn check_files(db: &Database) -> Result<(), Wrong> {
    let storage = db.environment().storage().clone();
    let reported = |error: disk::Error| Wrong::Reported(error.to_string());
    for entry in storage.list(db.directory()).map_err(reported)? {
        if !entry.is_directory {
            continue;
        }
        let known: Vec<String> =
            db.tables(&entry.name).iter().map(|table| file_name(&table.file())).collect();
        for file in storage.list(&db.directory().join(&entry.name)).map_err(reported)? {
            if !known.contains(&file.name) {
                return Err(Wrong::Silent(format!("nobody owns the file {}/{}", entry.name, file.name)));
            }
        }
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Uses a database that came up after a crash: it must go on working, not only look well.
///
/// # Errors
/// What is wrong.
pub async fn go_on(db: &Database, found: &Found) -> Result<(), Wrong> {
    STAGE.set("going on with it");
    let mut transaction = db.transaction();
    for (name, state) in found.states[INDEXER + 1].iter() {
        let table = db.table(DATABASE, name)?;
        transaction.begin();
        let row = [Value::Null, Value::Int(1), Value::bytes(&[7; 3000])];
        let key = transaction.insert(&table, &row).await?.unwrap_or(0) as i64;
        if state.rows.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(Wrong::Silent(format!("table {name}: AUTO_INCREMENT gives {key} a second time")));
        }
        transaction.delete(&table, &[Value::Int(key)]).await?;
        transaction.commit(untorn::engine::Durability::Sync).await?;
    }
    for session in &found.states[..SESSIONS] {
        let table = db.table(DATABASE, SHARED)?;
        transaction.begin();
        for (key, _) in session.get(SHARED).into_iter().flat_map(|state| &state.rows) {
            transaction.update(&table, &[Value::Int(*key)], &[("counter", Value::Int(5))]).await?;
            transaction.delete(&table, &[Value::Int(*key)]).await?;
        }
        transaction.rollback().await?;
    }
    drop(transaction);
    db.transaction_system().purge_all().await.map_err(Error::from)?;
    db.store().checkpoint().await.map_err(Error::from)?;
    verify_contents(db, &Model::exactly(found.states.clone(), found.rivals.clone(), found.lanes))
        .await
        .map(drop)
}
