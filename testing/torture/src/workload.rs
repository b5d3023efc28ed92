//! What happens in a history: sessions, definitions that change, and maintenance, each an endless future.
//!
//! All draw from seeds and run on one thread; who goes on when is decided by the simulator's seed and by
//! [`disk::interleave`]. An actor ends only when the engine gives it an error that is nobody's fault but the
//! disk's.

use crate::history::{OTHER_TIER, TIER, TIER_BYTES};
use crate::model::{
    ACCOUNT, ACCOUNTS, ActorState, BALANCE, DATABASE, DEFINER, INDEXER, Row, SESSIONS, SHARED, SharedModel,
    TableState, booking_key,
};
use crate::rivals::RIVALS_DATABASE;
use disk::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::{Database, Transaction};
use untorn::engine::{Durability, Error as TransactionError, Isolation};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Doublewrite, Error, Lock, Range, Table};

/// How long DDL and those it keeps out wait for each other, in virtual time.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Keys a session has in the shared table.
pub const KEYS: usize = 24;
/// Name of the index that comes and goes.
pub const EXTRA: &str = "extra";

/// What actors need.
#[derive(Clone)]
pub struct Stage {
    /// The database.
    pub db: Database,
    /// What it must hold.
    pub model: SharedModel,
    /// How commits are made durable.
    pub durability: Durability,
    /// How many times longer everybody sleeps.
    pub pace: u32,
    /// Keys a session has in the shared table.
    pub keys: usize,
    /// The first error that ended an actor.
    pub failure: Rc<RefCell<Option<String>>>,
}

impl Stage {
    /// A fatal error ends the history; the first one counts.
    pub(crate) fn fail(&self, who: &str, error: &Error) {
        self.failure.borrow_mut().get_or_insert_with(|| format!("{who}: {error}"));
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.db.environment().sleep(duration * self.pace).await;
    }
}

/// One part of a history.
pub type Part = Pin<Box<dyn Future<Output = ()>>>;

/// The table the sessions share.
fn shared_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
    .key("counter_1", KeyKind::Secondary, &["counter"])
}

fn own_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("text", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
}

fn account_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("balance", ColumnType::bigint()),
    ])
    .primary_key(&["id"])
}

/// Makes the tables every history begins with.
///
/// # Errors
/// Whatever the engine says.
pub async fn prepare(db: &Database, model: &SharedModel) -> Result<(), Error> {
    db.create_database(DATABASE, Collation::Utf8mb4Bin).await?;
    db.create_database(RIVALS_DATABASE, Collation::Utf8mb4Bin).await?;
    db.create_table(DATABASE, SHARED, shared_def()).await?;
    db.create_table(DATABASE, ACCOUNT, account_def()).await?;
    let accounts = db.table(DATABASE, ACCOUNT)?;
    let mut transaction = db.transaction();
    transaction.begin();
    for id in 0..ACCOUNTS {
        transaction.insert(&accounts, &[Value::Int(id), Value::Int(BALANCE)]).await?;
    }
    transaction.commit(Durability::Sync).await?;
    let mut model = model.lock();
    let with_shared = Arc::new(ActorState::from([(SHARED.to_owned(), TableState::default())]));
    for actor in 0..=INDEXER {
        model.journals[actor].acknowledged = with_shared.clone();
    }
    model.prepared = true;
    Ok(())
}

/// Errors that end a transaction without being anybody's fault.
pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::Transaction(
            TransactionError::Deadlock | TransactionError::LockWaitTimeout | TransactionError::TableChanged
        ) | Error::MetadataLockTimeout
            | Error::NoSuchTable(..)
    )
}

/// A session: transactions on its own rows, and transfers between accounts.
pub async fn session(stage: Stage, number: usize, seed: u64) {
    if let Err(error) = run_session(&stage, number, seed).await {
        stage.fail("session", &error);
    }
}

async fn run_session(stage: &Stage, number: usize, seed: u64) -> Result<(), Error> {
    let mut random = Random::new(seed);
    let mut transaction = stage.db.transaction();
    loop {
        let level =
            [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][random.below(3)];
        transaction.engine_mut().set_isolation(level);
        transaction.begin();
        let mut state = ActorState::clone(&stage.model.lock().journals[number].acknowledged);
        let rows = &mut state.entry(SHARED.to_owned()).or_default().rows;
        let outcome = match random.below(6) {
            0 | 1 => transfer(stage, &mut transaction, number, &mut random, rows).await,
            2 => audit(stage, &mut transaction, number, &mut random, rows).await,
            _ => change_rows(stage, &mut transaction, number, &mut random, rows).await,
        };
        match outcome {
            Ok(()) if random.one_in(8) => transaction.rollback().await?,
            Ok(()) => {
                let state = Arc::new(state);
                stage.model.lock().begin_step(number, state.clone());
                transaction.commit(stage.durability).await?;
                stage.model.lock().end_step(number, state);
            }
            Err(error) if is_conflict(&error) => transaction.rollback().await?,
            Err(error) => return Err(error),
        }
        if random.one_in(6) {
            stage.sleep(Duration::from_micros(random.below(3000) as u64)).await;
        }
    }
}

/// Goes away in the middle of a transaction, its locks held, so that the others run into them.
async fn hesitate(stage: &Stage, random: &mut Random) {
    if random.one_in(2) {
        stage.sleep(Duration::from_micros(random.below(400) as u64)).await;
    }
}

/// Locks all accounts against changes, sums them up, and then moves something between them: two that do so at
/// a time wait for each other, and one of them has to give up.
async fn audit(
    stage: &Stage,
    transaction: &mut Transaction,
    session: usize,
    random: &mut Random,
    rows: &mut BTreeMap<i64, Row>,
) -> Result<(), Error> {
    let accounts = transaction.open_table(DATABASE, ACCOUNT, PATIENCE).await?;
    let mut sum = 0;
    transaction
        .for_each(&accounts, &Range::all().lock(Lock::Share), |row| {
            if let Some(Value::Int(balance)) = row.get(1) {
                sum += balance;
            }
            true
        })
        .await?;
    if sum != ACCOUNTS * BALANCE {
        return Err(Error::Internal(format!("the balances, locked, sum up to {sum}")));
    }
    hesitate(stage, random).await;
    transfer(stage, transaction, session, random, rows).await
}

async fn transfer(
    stage: &Stage,
    transaction: &mut Transaction,
    session: usize,
    random: &mut Random,
    rows: &mut BTreeMap<i64, Row>,
) -> Result<(), Error> {
    let accounts = transaction.open_table(DATABASE, ACCOUNT, PATIENCE).await?;
    let table = transaction.open_table(DATABASE, SHARED, PATIENCE).await?;
    let from = random.below(ACCOUNTS as usize) as i64;
    let to = (from + 1 + random.below(ACCOUNTS as usize - 1) as i64) % ACCOUNTS;
    let amount = 1 + random.below(20) as i64;
    for (id, change) in [(from, -amount), (to, amount)] {
        let row = transaction.get(&accounts, &[Value::Int(id)], Lock::Exclusive).await?;
        let balance = match row.as_deref() {
            Some([_, Value::Int(balance)]) => *balance,
            other => return Err(Error::Internal(format!("account {id} reads {other:?}"))),
        };
        transaction
            .update(&accounts, &[Value::Int(id)], &[("balance", Value::Int(balance + change))])
            .await?;
        let key = booking_key(session, id);
        let counter = rows.get(&key).map_or(0, |row| row.counter) + change;
        let row = Row { counter, byte: 0, length: 0 };
        put(transaction, &table, key, row, rows).await?;
        hesitate(stage, random).await;
    }
    Ok(())
}

/// Inserts or updates a row.
async fn put(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: i64,
    row: Row,
    rows: &mut BTreeMap<i64, Row>,
) -> Result<(), Error> {
    let text = vec![row.byte; row.length as usize];
    let (id, counter, text) = (Value::Int(key), Value::Int(row.counter), Value::bytes(&text));
    if rows.contains_key(&key) {
        if !transaction.update(table, &[id], &[("counter", counter), ("text", text)]).await? {
            return Err(Error::Internal(format!("row {key} is gone")));
        }
    } else {
        transaction.insert(table, &[id, counter, text]).await?;
    }
    rows.insert(key, row);
    Ok(())
}

fn random_row(random: &mut Random) -> Row {
    let length = match random.below(12) {
        0 => 2_000 + random.below(9_000),
        1 | 2 => random.below(900),
        _ => random.below(60),
    };
    // An empty text has no byte to be full of.
    let byte = if length == 0 { 0 } else { random.below(256) as u8 };
    Row { counter: random.below(1000) as i64, byte, length: length as u32 }
}

/// Fills the shared table with long rows, so that what is there does not fit into the buffer pool.
///
/// # Errors
/// Whatever the engine says.
pub async fn stock_up(stage: &Stage, seed: u64) -> Result<(), Error> {
    const ROWS_AT_A_TIME: usize = 6;
    let mut random = Random::new(seed);
    let table = stage.db.table(DATABASE, SHARED)?;
    let mut transaction = stage.db.transaction();
    for session in 0..SESSIONS {
        for first in (0..stage.keys).step_by(ROWS_AT_A_TIME) {
            transaction.begin();
            let mut state = ActorState::clone(&stage.model.lock().journals[session].acknowledged);
            let rows = &mut state.entry(SHARED.to_owned()).or_default().rows;
            for key in first..stage.keys.min(first + ROWS_AT_A_TIME) {
                let length = 3_000 + random.below(8_000) as u32;
                let row = Row { counter: random.below(1000) as i64, byte: random.below(256) as u8, length };
                put(&mut transaction, &table, (key * SESSIONS + session) as i64, row, rows).await?;
            }
            let state = Arc::new(state);
            stage.model.lock().begin_step(session, state.clone());
            transaction.commit(stage.durability).await?;
            stage.model.lock().end_step(session, state);
        }
    }
    Ok(())
}

async fn change_rows(
    stage: &Stage,
    transaction: &mut Transaction,
    session: usize,
    random: &mut Random,
    rows: &mut BTreeMap<i64, Row>,
) -> Result<(), Error> {
    let table = transaction.open_table(DATABASE, SHARED, PATIENCE).await?;
    for _ in 0..1 + random.below(5) {
        let key = (random.below(stage.keys) * SESSIONS + session) as i64;
        let mark = transaction.statement_mark();
        let before = rows.clone();
        if rows.contains_key(&key) && random.one_in(3) {
            if !transaction.delete(&table, &[Value::Int(key)]).await? {
                return Err(Error::Internal(format!("row {key} is gone")));
            }
            rows.remove(&key);
        } else {
            put(transaction, &table, key, random_row(random), rows).await?;
        }
        if random.one_in(10) {
            transaction.rollback_to(mark).await?;
            *rows = before;
        }
    }
    Ok(())
}

/// Makes and drops a secondary index of the shared table, over and over.
pub async fn indexer(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_millis(1 + random.below(8) as u64)).await;
        let mut state = ActorState::clone(&stage.model.lock().journals[INDEXER].acknowledged);
        let indexed = &mut state.entry(SHARED.to_owned()).or_default().indexed;
        *indexed = !*indexed;
        let wanted = *indexed;
        if !definition_step(&stage, INDEXER, state, change_index(&stage.db, SHARED, wanted)).await {
            return;
        }
    }
}

/// Does a step that changes definitions; false when the disk failed it.
async fn definition_step(
    stage: &Stage,
    actor: usize,
    state: ActorState,
    step: impl Future<Output = Result<(), Error>>,
) -> bool {
    let state = Arc::new(state);
    stage.model.lock().begin_step(actor, state.clone());
    match step.await {
        Ok(()) => stage.model.lock().end_step(actor, state),
        Err(error) if is_conflict(&error) => stage.model.lock().cancel_step(actor),
        Err(error) => {
            stage.fail("definition", &error);
            return false;
        }
    }
    true
}

async fn change_index(db: &Database, table: &str, wanted: bool) -> Result<(), Error> {
    if !wanted {
        return db.definitions().timeout(PATIENCE).drop_index(DATABASE, table, EXTRA).await;
    }
    // The text is often off-page: the index has a part of it.
    let part = |column, prefix_chars| KeyPart { prefix_chars, ..KeyPart::whole(column) };
    let key = KeyDef::new(
        EXTRA.to_owned(),
        KeyKind::Secondary,
        vec![part(1, None), part(2, Some(40)), part(0, None)],
    );
    db.definitions().timeout(PATIENCE).create_index(DATABASE, table, key).await
}

/// Makes, fills, indexes, empties, renames and drops tables of its own.
pub async fn definer(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_millis(random.below(5) as u64)).await;
        let name = format!("d{}", random.below(3));
        let mut state = ActorState::clone(&stage.model.lock().journals[DEFINER].acknowledged);
        let db = &stage.db;
        let Some(table) = state.get_mut(&name) else {
            state.insert(name.clone(), TableState::default());
            let step = async { db.create_table(DATABASE, &name, own_def()).await.map(drop) };
            if !definition_step(&stage, DEFINER, state, step).await {
                return;
            }
            continue;
        };
        let goes_on = match random.below(10) {
            0 | 1 => {
                state.remove(&name);
                let step = db.definitions().timeout(PATIENCE).drop_table(DATABASE, &name);
                definition_step(&stage, DEFINER, state, step).await
            }
            2 | 3 => {
                table.rows.clear();
                let step = db.definitions().timeout(PATIENCE).truncate_table(DATABASE, &name);
                definition_step(&stage, DEFINER, state, step).await
            }
            4 => {
                let free = (0..4).map(|n| format!("d{n}")).find(|other| !state.contains_key(other));
                let (Some(to), Some(table)) = (free, state.remove(&name)) else { continue };
                state.insert(to.clone(), table);
                let step =
                    db.definitions().timeout(PATIENCE).rename_table((DATABASE, &name), (DATABASE, &to));
                definition_step(&stage, DEFINER, state, step).await
            }
            5 | 6 => {
                table.indexed = !table.indexed;
                let step = change_index(db, &name, table.indexed);
                definition_step(&stage, DEFINER, state, step).await
            }
            _ => {
                let rows: Vec<Row> = (0..1 + random.below(12)).map(|_| random_row(&mut random)).collect();
                fill(&stage, &name, &rows).await
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// Inserts rows with generated keys.
async fn fill(stage: &Stage, name: &str, rows: &[Row]) -> bool {
    let mut state = ActorState::clone(&stage.model.lock().journals[DEFINER].acknowledged);
    let mut transaction = stage.db.transaction();
    transaction.begin();
    let model = &mut state.entry(name.to_owned()).or_default().rows;
    let outcome = async {
        let table = transaction.open_table(DATABASE, name, PATIENCE).await?;
        for row in rows {
            let text = vec![row.byte; row.length as usize];
            let values = [Value::Null, Value::Int(row.counter), Value::bytes(&text)];
            let key = transaction.insert(&table, &values).await?.unwrap_or(0);
            if model.insert(key as i64, *row).is_some() {
                return Err(Error::Internal(format!("the key {key} was generated twice")));
            }
        }
        Ok(())
    };
    match outcome.await {
        Ok(()) => {
            let commit = transaction.commit(Durability::Sync);
            definition_step(stage, DEFINER, state, commit).await
        }
        Err(error) if is_conflict(&error) => transaction.rollback().await.is_ok(),
        Err(error) => {
            stage.fail("filler", &error);
            false
        }
    }
}

/// Checkpoints, purges, switches of `innodb_doublewrite`, and consistent reads that hold purge up.
pub async fn maintenance(stage: Stage, switches: bool, seed: u64) {
    if let Err(error) = maintain(&stage, switches, seed).await {
        stage.fail("maintenance", &error);
    }
}

async fn maintain(stage: &Stage, switches: bool, seed: u64) -> Result<(), Error> {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_micros(random.below(4_000) as u64)).await;
        match random.below(7) {
            0 | 1 => drop(stage.db.store().checkpoint().await?),
            2 => stage.db.store().flush_all().await?,
            3 => drop(stage.db.transaction_system().purge_all().await?),
            4 if switches => {
                stage.db.set_doublewrite([Doublewrite::On, Doublewrite::Auto][random.below(2)])?;
            }
            _ => read_accounts(stage, &mut random).await?,
        }
    }
}

/// Switches the buffer pool extension off and on, gives it other sizes and moves it to another file and back,
/// over and over. Each takes as long as it takes: the next may come before it is in force.
pub async fn tier_mover(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_millis(20 + random.below(60) as u64)).await;
        let change = match random.below(5) {
            0 => stage.db.switch_extension(false),
            1 | 2 => stage.db.switch_extension(true),
            3 => stage.db.resize_extension(TIER_BYTES * (2 + random.below(3) as u64) / 2),
            _ => stage.db.set_extension_file(Some(Path::new([TIER, OTHER_TIER][random.below(2)]))),
        };
        if random.one_in(2) {
            change.over().wait().await;
        }
    }
}

/// Changes the capacity of the redo log both ways, over and over, often before the last change is in force.
pub async fn log_resizer(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_micros(random.below(20_000) as u64)).await;
        let bytes = [5 << 18, 6 << 18, 2 << 20, 4 << 20][random.below(4)];
        if let Err(error) = stage.db.set_redo_capacity(bytes) {
            return stage.fail("capacity of the redo log", &error);
        }
        // To the end of some of the changes.
        let mut looks = if random.one_in(3) { 0 } else { 100 };
        while looks > 0 && stage.db.redo_capacity_reached() > bytes {
            stage.sleep(Duration::from_millis(1)).await;
            looks -= 1;
        }
    }
}

/// Reads the accounts twice in one read view, with a pause between.
async fn read_accounts(stage: &Stage, random: &mut Random) -> Result<(), Error> {
    let accounts = stage.db.table(DATABASE, ACCOUNT)?;
    let mut transaction = stage.db.transaction();
    transaction.engine_mut().set_isolation(Isolation::RepeatableRead);
    transaction.begin();
    for _ in 0..2 {
        let mut sum = 0;
        let outcome = transaction
            .for_each(&accounts, &Range::all(), |row| {
                if let Some(Value::Int(balance)) = row.get(1) {
                    sum += balance;
                }
                true
            })
            .await;
        match outcome {
            Err(error) if is_conflict(&error) => break,
            other => other?,
        }
        if sum != ACCOUNTS * BALANCE {
            return Err(Error::Internal(format!("a read view sees balances that sum up to {sum}")));
        }
        stage.sleep(Duration::from_micros(random.below(5_000) as u64)).await;
    }
    transaction.rollback().await
}

/// Transactions that need much undo and leave nothing: what they insert they delete, or roll back.
pub async fn large_transactions(stage: Stage, seed: u64) {
    if let Err(error) = run_large_transactions(&stage, seed).await {
        stage.fail("large transactions", &error);
    }
}

async fn run_large_transactions(stage: &Stage, seed: u64) -> Result<(), Error> {
    /// No session has such keys.
    const KEYS: std::ops::Range<i64> = -4..0;
    const CHANGES: usize = 130;
    let mut random = Random::new(seed);
    let mut transaction = stage.db.transaction();
    loop {
        transaction.begin();
        match change_much(&mut transaction, KEYS, CHANGES, &mut random).await {
            Ok(()) if random.one_in(3) => transaction.rollback().await?,
            Ok(()) => drop(transaction.commit(stage.durability).await?),
            Err(error) if is_conflict(&error) => transaction.rollback().await?,
            Err(error) => return Err(error),
        }
        stage.sleep(Duration::from_millis(20 + random.below(40) as u64)).await;
    }
}

async fn change_much(
    transaction: &mut Transaction,
    keys: std::ops::Range<i64>,
    changes: usize,
    random: &mut Random,
) -> Result<(), Error> {
    let table = transaction.open_table(DATABASE, SHARED, PATIENCE).await?;
    let mut rows = BTreeMap::new();
    for _ in 0..changes {
        for key in keys.clone() {
            let row = Row { counter: 0, byte: random.below(256) as u8, length: 800 };
            put(transaction, &table, key, row, &mut rows).await?;
        }
    }
    for key in keys {
        transaction.delete(&table, &[Value::Int(key)]).await?;
    }
    Ok(())
}
