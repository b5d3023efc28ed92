//! An actor that prepares transactions, and commits them or rolls them back later: over a crash, an
//! acknowledged PREPARE is there, so is an acknowledged end, and none is there by half.
//!
//! It works in **lanes**. A lane has a few rows, which always have the same value, and at most one branch at
//! a time: a transaction that gives all of them the branch's number, one row by deleting it and making it
//! again. So what is committed says which branch was the last, and half a branch is found out by itself.

use crate::check::Wrong;
use crate::workload::{PATIENCE, Stage, is_conflict};
use disk::Random;
use std::collections::BTreeSet;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::{Durability, Error as TransactionError};
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Error, Range, Xid};

/// Its database.
pub const BRANCHES_DATABASE: &str = "branches";
const TABLE: &str = "b";
/// Lanes.
pub const LANES: usize = 3;
/// Rows of a lane.
const ROWS: i64 = 4;

/// What is known of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// The last branch that was committed.
    committed: i64,
    /// The branch that was begun, and how far it is.
    open: Option<(i64, Phase)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// PREPARE has been said and not answered.
    Preparing,
    Prepared,
    Committing,
    RollingBack,
}

/// All lanes; `None` before their rows are there.
pub type Lanes = Option<[Lane; LANES]>;

impl Lane {
    /// Whether this may be found: the value of its rows, and whether a branch is prepared.
    fn allows(self, value: i64, prepared: Option<i64>) -> bool {
        let Some((number, phase)) = self.open else { return (value, prepared) == (self.committed, None) };
        let before = value == self.committed;
        let (is_there, is_gone) = (prepared == Some(number), prepared.is_none());
        match phase {
            Phase::Preparing | Phase::RollingBack => before && (is_there || is_gone),
            Phase::Prepared => before && is_there,
            Phase::Committing => before && is_there || value == number && is_gone,
        }
    }
}

fn xid(lane: usize, number: i64) -> Xid {
    let name = Xid::new(1, format!("lane {lane}").as_bytes(), number.to_string().as_bytes());
    name.unwrap_or_else(|| unreachable!("it is short"))
}

/// A text as long as the number says; some are off-page.
fn text_of(number: i64) -> Vec<u8> {
    let length = if number % 3 == 0 { 3_000 } else { 20 };
    vec![number as u8; length]
}

/// The actor. `durability` is how it prepares.
pub async fn coordinator(stage: Stage, seed: u64, durability: Durability) {
    if let Err(error) = run(&stage, seed, durability).await {
        stage.fail("coordinator", &error);
    }
}

async fn begin(db: &Database) -> Result<(), Error> {
    db.create_database(BRANCHES_DATABASE, Collation::Utf8mb4Bin).await?;
    let def = TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("branch", ColumnType::bigint()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }),
    ]);
    let table = db.create_table(BRANCHES_DATABASE, TABLE, def.primary_key(&["id"])).await?;
    let mut transaction = db.begin();
    for id in 0..ROWS * LANES as i64 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(0), Value::bytes(&text_of(0))]).await?;
    }
    transaction.commit(Durability::Sync).await
}

async fn run(stage: &Stage, seed: u64, durability: Durability) -> Result<(), Error> {
    let mut random = Random::new(seed);
    let db = &stage.db;
    begin(db).await?;
    let mut lanes = [Lane::default(); LANES];
    stage.model.lock().lanes = Some(lanes);
    let mut next = 0;
    loop {
        let at = random.below(LANES);
        let lane = &mut lanes[at];
        let note = |lane: Lane| {
            if let Some(lanes) = &mut stage.model.lock().lanes {
                lanes[at] = lane;
            }
        };
        match lane.open {
            None => {
                next += 1;
                lane.open = Some((next, Phase::Preparing));
                match prepare(stage, at, next, durability, || note(*lane)).await {
                    Ok(()) => lane.open = Some((next, Phase::Prepared)),
                    Err(error) if is_conflict(&error) => lane.open = None,
                    Err(error) => return Err(error),
                }
            }
            Some((number, _)) => {
                let commits = random.one_in(2);
                let phase = if commits { Phase::Committing } else { Phase::RollingBack };
                lane.open = Some((number, phase));
                note(*lane);
                match commits {
                    true => db.commit_prepared(&xid(at, number), Durability::Sync).await?,
                    false => db.rollback_prepared(&xid(at, number), Durability::Sync).await?,
                }
                if commits {
                    lane.committed = number;
                }
                lane.open = None;
            }
        }
        note(*lane);
        stage.sleep(Duration::from_micros(200 + random.below(6000) as u64)).await;
    }
}

async fn prepare(
    stage: &Stage,
    lane: usize,
    number: i64,
    durability: Durability,
    about_to: impl FnOnce(),
) -> Result<(), Error> {
    let mut transaction = stage.db.begin();
    let table = transaction.open_table(BRANCHES_DATABASE, TABLE, PATIENCE).await?;
    for row in 0..ROWS {
        let id = Value::Int(lane as i64 * ROWS + row);
        let (branch, text) = (Value::Int(number), text_of(number));
        if row == 0 {
            transaction.delete(&table, std::slice::from_ref(&id)).await?;
            transaction.insert(&table, &[id, branch, Value::bytes(&text)]).await?;
        } else {
            let changes = [("branch", branch), ("text", Value::bytes(&text))];
            transaction.update(&table, &[id], &changes).await?;
        }
    }
    about_to();
    transaction.prepare(&xid(lane, number), durability).await
}

/// Compares what is there with what was known.
///
/// # Errors
/// What is wrong.
pub async fn compare(db: &Database, lanes: &Lanes) -> Result<Lanes, Wrong> {
    let Some(lanes) = lanes else { return Ok(None) };
    let mut prepared: BTreeSet<Xid> = db.prepared_transactions().into_iter().collect();
    let mut found = *lanes;
    for (at, lane) in found.iter_mut().enumerate() {
        let value = value_of(db, at).await?;
        let open = lane.open.map(|(number, _)| number).filter(|number| prepared.remove(&xid(at, *number)));
        if !lane.allows(value, open) {
            return Err(Wrong::Silent(format!("lane {at}: {value}, prepared {open:?}, known is {lane:?}")));
        }
        *lane = Lane { committed: value, open: open.map(|number| (number, Phase::Prepared)) };
    }
    match prepared.pop_first() {
        Some(xid) => Err(Wrong::Silent(format!("nobody has left {xid} prepared"))),
        None => Ok(Some(found)),
    }
}

/// The value that all rows of a lane have.
async fn value_of(db: &Database, lane: usize) -> Result<i64, Wrong> {
    let table = db.table(BRANCHES_DATABASE, TABLE)?;
    let mut rows = Vec::new();
    let mut transaction = db.transaction();
    transaction
        .for_each(&table, &Range::all(), |row| {
            if let [Value::Int(id), Value::Int(branch), Value::Bytes(text)] = &row[..]
                && *id / ROWS == lane as i64
            {
                rows.push((*branch, **text == text_of(*branch)));
            }
            true
        })
        .await?;
    match rows.first() {
        Some((branch, true)) if rows.len() == ROWS as usize && rows.iter().all(|row| *row == rows[0]) => {
            Ok(*branch)
        }
        _ => Err(Wrong::Silent(format!("lane {lane} has the rows {rows:?}"))),
    }
}

/// Ends what is found prepared: until then its rows are locked and its table stays, and afterwards all of it
/// is there, or nothing.
///
/// # Errors
/// What is wrong.
pub async fn end_all(db: &Database, lanes: &Lanes) -> Result<(), Wrong> {
    for (at, lane) in lanes.iter().flatten().enumerate() {
        let Some((number, _)) = lane.open else { continue };
        let table = db.table(BRANCHES_DATABASE, TABLE)?;
        let mut transaction = db.begin();
        transaction.set_lock_wait_timeout(Duration::from_micros(10));
        let key = [Value::Int(at as i64 * ROWS + number % ROWS)];
        match transaction.update(&table, &key, &[("branch", Value::Int(-1))]).await {
            Err(Error::Transaction(TransactionError::LockWaitTimeout)) => {}
            other => return Err(Wrong::Silent(format!("lane {at}: a row is not locked: {other:?}"))),
        }
        transaction.rollback().await?;
        let definitions = db.definitions().timeout(Duration::from_micros(10));
        match definitions.drop_table(BRANCHES_DATABASE, TABLE).await {
            Err(Error::MetadataLockTimeout) => {}
            other => return Err(Wrong::Silent(format!("lane {at}: its table can be dropped: {other:?}"))),
        }
        let commits = number % 2 == 0;
        match commits {
            true => db.commit_prepared(&xid(at, number), Durability::Sync).await?,
            false => db.rollback_prepared(&xid(at, number), Durability::Sync).await?,
        }
        let (value, wanted) = (value_of(db, at).await?, if commits { number } else { lane.committed });
        if value != wanted {
            return Err(Wrong::Silent(format!("lane {at} is {value} and was to become {wanted}")));
        }
    }
    let checked = db.definitions().timeout(PATIENCE).check_table(BRANCHES_DATABASE, TABLE).await?;
    match checked.is_sound() {
        true => Ok(()),
        false => Err(Wrong::Reported(format!("CHECK TABLE {TABLE}: {:?}", checked.problems))),
    }
}
