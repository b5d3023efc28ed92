//! Rivals: actors that make, rename, empty, fill and drop tables of the *same* names.
//!
//! Nobody owns these tables, so no actor knows alone what must be there. What is known is every statement's
//! beginning and answer. [`Worlds`] keeps every state the names can be in: each statement happens at one
//! instant between its beginning and its answer, with the outcome it was answered with, and a crash may fall
//! before or after that instant. (Herlihy, Wing: *Linearizability*, 1990.) When no state is left, an answer
//! was wrong.
//!
//! Each table carries the number of its CREATE in the name of a column and in every row. A table whose rows
//! have another number lies in another's file.

use crate::check::Wrong;
use crate::workload::{PATIENCE, Stage, is_conflict};
use disk::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{ColumnType, Value};
use untorn::{Error, Range};

/// Their database.
pub const RIVALS_DATABASE: &str = "rivals";
/// How many act at a time.
pub const RIVALS: usize = 3;
const NAMES: usize = 3;

/// What a name stands for: the number of its CREATE, and how many rows were put in.
type Tables = BTreeMap<u8, (u32, u32)>;

/// A statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statement {
    /// CREATE TABLE, with its number.
    Create(u8, u32),
    /// DROP TABLE.
    Drop(u8),
    /// RENAME TABLE.
    Rename(u8, u8),
    /// TRUNCATE TABLE.
    Truncate(u8),
    /// One row, committed.
    Insert(u8),
}

/// How a statement was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It was done.
    Done,
    /// There is such a table already.
    Exists,
    /// There is no such table.
    Missing,
}

impl Statement {
    /// What it does to the tables, and how it is answered then.
    fn apply(self, tables: &mut Tables) -> Answer {
        match self {
            Statement::Create(name, _) if tables.contains_key(&name) => Answer::Exists,
            Statement::Create(name, number) => {
                tables.insert(name, (number, 0));
                Answer::Done
            }
            Statement::Drop(name) => match tables.remove(&name) {
                Some(_) => Answer::Done,
                None => Answer::Missing,
            },
            Statement::Rename(from, _) if !tables.contains_key(&from) => Answer::Missing,
            Statement::Rename(_, to) if tables.contains_key(&to) => Answer::Exists,
            Statement::Rename(from, to) => {
                if let Some(table) = tables.remove(&from) {
                    tables.insert(to, table);
                }
                Answer::Done
            }
            Statement::Truncate(name) | Statement::Insert(name) => match tables.get_mut(&name) {
                Some((_, rows)) => {
                    *rows = if matches!(self, Statement::Insert(_)) { *rows + 1 } else { 0 };
                    Answer::Done
                }
                None => Answer::Missing,
            },
        }
    }
}

/// One way in which everything may have gone so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    tables: Tables,
    /// Statements without an answer that have not happened yet, by number.
    waiting: BTreeMap<u32, Statement>,
    /// Those that have happened, with the answer they must get.
    done: BTreeMap<u32, Answer>,
}

/// Every way in which everything may have gone so far.
#[derive(Clone, Debug)]
pub struct Worlds {
    worlds: BTreeSet<World>,
    next: u32,
}

impl Default for Worlds {
    fn default() -> Worlds {
        Worlds { worlds: BTreeSet::from([World::default()]), next: 0 }
    }
}

impl Worlds {
    /// The tables are these, and nothing is under way.
    fn exactly(tables: Tables, next: u32) -> Worlds {
        Worlds { worlds: BTreeSet::from([World { tables, ..World::default() }]), next }
    }

    /// A number that no other statement has.
    fn take_number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn begin(&mut self, number: u32, statement: Statement) {
        let worlds = std::mem::take(&mut self.worlds);
        for mut world in worlds {
            world.waiting.insert(number, statement);
            self.worlds.insert(world);
        }
    }

    /// All worlds with any of what is under way having happened, in any order.
    fn all(&self) -> BTreeSet<World> {
        let mut all = self.worlds.clone();
        let mut fresh: Vec<World> = all.iter().cloned().collect();
        while let Some(world) = fresh.pop() {
            for (number, statement) in &world.waiting {
                let mut next = world.clone();
                next.waiting.remove(number);
                let answer = statement.apply(&mut next.tables);
                next.done.insert(*number, answer);
                if all.insert(next.clone()) {
                    fresh.push(next);
                }
            }
        }
        all
    }

    /// A statement was answered, or given up without having happened.
    fn end(&mut self, number: u32, answer: Option<Answer>) -> Result<(), String> {
        let before = self.all();
        self.worlds = before
            .iter()
            .filter(|world| match answer {
                Some(answer) => world.done.get(&number) == Some(&answer),
                None => world.waiting.contains_key(&number),
            })
            .cloned()
            .map(|mut world| {
                world.done.remove(&number);
                world.waiting.remove(&number);
                world
            })
            .collect();
        match self.worlds.is_empty() {
            false => Ok(()),
            true => Err(format!("statement {number} was answered {answer:?}, which fits none of {before:?}")),
        }
    }

    /// Whether a crash right now may leave these tables.
    fn allows(&self, tables: &Tables) -> bool {
        self.all().iter().any(|world| world.tables == *tables)
    }

    /// Whether statements are under way.
    pub fn is_busy(&self) -> bool {
        self.worlds.iter().any(|world| !world.waiting.is_empty() || !world.done.is_empty())
    }
}

fn name_of(name: u8) -> String {
    format!("r{name}")
}

/// One rival: statement after statement, until the disk fails it.
pub async fn rival(stage: Stage, seed: u64) {
    let mut random = Random::new(seed);
    loop {
        stage.sleep(Duration::from_micros(random.below(3_000) as u64)).await;
        let name = random.below(NAMES) as u8;
        let number = stage.model.lock().rivals.take_number();
        let statement = match random.below(8) {
            0 | 1 => Statement::Create(name, number),
            2 => Statement::Drop(name),
            3 | 4 => Statement::Rename(name, (name + 1 + random.below(NAMES - 1) as u8) % NAMES as u8),
            5 => Statement::Truncate(name),
            _ => Statement::Insert(name),
        };
        stage.model.lock().rivals.begin(number, statement);
        let answer = match run(&stage.db, statement).await {
            Ok(()) => Some(Answer::Done),
            Err(Error::TableExists(..)) => Some(Answer::Exists),
            Err(Error::NoSuchTable(..)) => Some(Answer::Missing),
            Err(error) if is_conflict(&error) => None,
            Err(error) => return stage.fail("rival", &error),
        };
        if let Err(wrong) = stage.model.lock().rivals.end(number, answer) {
            return stage.fail("rival", &Error::Internal(wrong));
        }
    }
}

async fn run(db: &Database, statement: Statement) -> Result<(), Error> {
    let database = RIVALS_DATABASE;
    match statement {
        Statement::Create(name, number) => {
            db.create_table(database, &name_of(name), definition(number)).await.map(drop)
        }
        Statement::Drop(name) => {
            db.definitions().timeout(PATIENCE).drop_table(database, &name_of(name)).await
        }
        Statement::Rename(from, to) => {
            let (from, to) = (name_of(from), name_of(to));
            db.definitions().timeout(PATIENCE).rename_table((database, &from), (database, &to)).await
        }
        Statement::Truncate(name) => {
            db.definitions().timeout(PATIENCE).truncate_table(database, &name_of(name)).await
        }
        Statement::Insert(name) => {
            let mut transaction = db.transaction();
            transaction.begin();
            let outcome = async {
                let table = transaction.open_table(database, &name_of(name), PATIENCE).await?;
                let number = number_of(&table.def)?;
                transaction.insert(&table, &[Value::Null, Value::Int(number.into())]).await?;
                Ok(())
            };
            match outcome.await {
                Ok(()) => transaction.commit(Durability::Sync).await,
                Err(error) => {
                    transaction.rollback().await?;
                    Err(error)
                }
            }
        }
    }
}

fn definition(number: u32) -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new(format!("m{number}"), ColumnType::bigint()),
    ])
    .primary_key(&["id"])
}

/// The number of the CREATE that made a table.
fn number_of(def: &TableDef) -> Result<u32, Error> {
    let number = def.columns.get(1).and_then(|column| column.name.strip_prefix('m'));
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| Error::Internal(format!("a rival's table has the columns {:?}", def.columns)))
}

/// Reads the rivals' tables and compares them with what may be there. Returns the model that goes on from
/// them.
///
/// # Errors
/// What is wrong.
pub async fn compare(db: &Database, worlds: &Worlds) -> Result<Worlds, Wrong> {
    let mut tables = Tables::new();
    for found in db.tables(RIVALS_DATABASE) {
        let name = found.name.strip_prefix('r').and_then(|name| name.parse().ok());
        let name: u8 = name.ok_or_else(|| Wrong::Silent(format!("a table {} of nobody's", found.name)))?;
        let number = number_of(&found.def)?;
        let table = db.table(RIVALS_DATABASE, &found.name)?;
        let (mut rows, mut strange) = (0, None);
        let mut transaction = db.transaction();
        transaction
            .for_each(&table, &Range::all(), |row| {
                rows += 1;
                if row.get(1) != Some(&Value::Int(number.into())) {
                    strange = Some(format!("{} of CREATE {number} has the row {row:?}", found.name));
                }
                strange.is_none()
            })
            .await?;
        if let Some(strange) = strange {
            return Err(Wrong::Silent(strange));
        }
        tables.insert(name, (number, rows));
    }
    if !worlds.allows(&tables) {
        return Err(Wrong::Silent(format!("rivals: {tables:?} are there, allowed are {:?}", worlds.all())));
    }
    Ok(Worlds::exactly(tables, worlds.next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_no_order_explains_is_noticed() {
        let mut worlds = Worlds::default();
        worlds.begin(1, Statement::Create(0, 1));
        worlds.begin(2, Statement::Rename(0, 1));
        // The rename may come first or second, until it is answered.
        assert!(worlds.allows(&Tables::from([(0, (1, 0))])));
        assert!(worlds.allows(&Tables::from([(1, (1, 0))])));
        assert!(worlds.end(2, Some(Answer::Missing)).is_ok());
        assert!(worlds.end(1, Some(Answer::Done)).is_ok());
        assert!(!worlds.allows(&Tables::from([(1, (1, 0))])));
        assert!(!worlds.is_busy());
        worlds.begin(3, Statement::Drop(0));
        assert!(worlds.end(3, Some(Answer::Missing)).is_err());
    }

    #[test]
    fn what_was_given_up_has_not_happened() {
        let mut worlds = Worlds::default();
        worlds.begin(1, Statement::Create(0, 1));
        assert!(worlds.end(1, None).is_ok());
        assert!(!worlds.allows(&Tables::from([(0, (1, 0))])));
    }
}
