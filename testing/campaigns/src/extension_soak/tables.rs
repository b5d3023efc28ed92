//! Tables that are made, filled, changed, truncated, dropped, exported and imported, and what must be in
//! them.
//!
//! Before a statement is sent, its result joins the allowed states; once acknowledged, it is the only one.
//! After a kill a table must be, row by row, one of the allowed states.

use super::checker::answered;
use anyhow::{Context, Result, bail, ensure};
use disk::Random;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::Path;

const TABLES: usize = 4;
const BATCH: u32 = 250;
const BATCHES: u32 = 4;
/// The table that is exported and imported.
const CARRIED: &str = "carried";

#[derive(Clone, PartialEq, Eq, Debug)]
enum Content {
    Absent,
    /// Rows 0 to `count`, written in a round.
    Rows {
        round: u64,
        count: u32,
    },
    /// Without its file, or with another one under way.
    InTransit,
}

/// One table and what may be there.
struct Table {
    name: String,
    may: Vec<Content>,
}

/// Counts of what was done.
#[derive(Clone, Copy, Default)]
pub struct Done {
    pub truncates: u64,
    pub imports: u64,
    /// Rows compared.
    pub rows: u64,
}

/// All of them.
pub struct Tables {
    tables: Vec<Table>,
    pub done: Done,
}

/// Statements end at a server that is gone, which is no failure.
enum Stop {
    Gone,
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.into())
    }
}

type Outcome = std::result::Result<(), Stop>;

fn text(round: u64, row: u32) -> String {
    format!("{round}/{row} ").repeat(8)
}

impl Table {
    fn new(name: String) -> Table {
        Table { name, may: vec![Content::Absent] }
    }

    fn statement(&mut self, connection: &mut Conn, sql: &str, leaves: Content) -> Outcome {
        self.may.push(leaves.clone());
        if !answered(connection.query_drop(sql)).with_context(|| sql.to_owned())? {
            return Err(Stop::Gone);
        }
        self.may = vec![leaves];
        Ok(())
    }

    fn create(&mut self, connection: &mut Conn) -> Outcome {
        let sql = format!("CREATE TABLE {} (id INT PRIMARY KEY, v VARCHAR(300), KEY (v(20)))", self.name);
        self.statement(connection, &sql, Content::Rows { round: 0, count: 0 })
    }

    fn fill(&mut self, connection: &mut Conn, round: u64) -> Outcome {
        for batch in 0..BATCHES {
            let rows: Vec<String> = (batch * BATCH..(batch + 1) * BATCH)
                .map(|row| format!("({row}, '{}')", text(round, row)))
                .collect();
            let sql = format!("INSERT INTO {} VALUES {}", self.name, rows.join(","));
            self.statement(connection, &sql, Content::Rows { round, count: (batch + 1) * BATCH })?;
        }
        Ok(())
    }

    fn drop(&mut self, connection: &mut Conn) -> Outcome {
        let sql = format!("DROP TABLE IF EXISTS {}", self.name);
        self.statement(connection, &sql, Content::Absent)
    }

    /// Compares with what may be there, and remembers which it is.
    fn verify(&mut self, connection: &mut Conn) -> Result<u64> {
        if self.may.contains(&Content::InTransit) {
            self.may = vec![Content::InTransit];
            return Ok(0);
        }
        let exists: Option<String> = connection.query_first(format!("SHOW TABLES LIKE '{}'", self.name))?;
        if exists.is_none() {
            ensure!(
                self.may.contains(&Content::Absent),
                "{} is gone, it should be {:?}",
                self.name,
                self.may
            );
            self.may = vec![Content::Absent];
            return Ok(0);
        }
        let rows: Vec<(u32, String)> =
            connection.query(format!("SELECT id, v FROM {} ORDER BY id", self.name))?;
        let is = |content: &&Content| match content {
            Content::Rows { round, count } => {
                rows.len() == *count as usize
                    && rows.iter().zip(0..).all(|((id, v), row)| *id == row && *v == text(*round, row))
            }
            Content::Absent | Content::InTransit => false,
        };
        let Some(found) = self.may.iter().find(is).cloned() else {
            bail!(
                "{} has {} rows, the first {:?}; it should be one of {:?}",
                self.name,
                rows.len(),
                rows.first(),
                self.may
            );
        };
        self.may = vec![found];
        Ok(rows.len() as u64)
    }
}

impl Tables {
    pub fn new() -> Tables {
        let names = (0..TABLES).map(|number| format!("t{number}")).chain([CARRIED.to_owned()]);
        Tables { tables: names.map(Table::new).collect(), done: Done::default() }
    }

    /// One table truncated or made, and filled; another dropped now and then. False: the server is gone.
    pub fn change(&mut self, connection: &mut Conn, random: &mut Random) -> Result<bool> {
        let round = random.next_u64() % 1_000_000 + 1;
        let (number, other) = (random.below(TABLES), random.below(TABLES));
        let outcome = self.change_one(connection, number, round).and_then(|()| {
            let other = &mut self.tables[other];
            if random.one_in(3) { other.drop(connection) } else { Ok(()) }
        });
        finished(outcome)
    }

    fn change_one(&mut self, connection: &mut Conn, number: usize, round: u64) -> Outcome {
        let table = &mut self.tables[number];
        if table.may == [Content::Absent] {
            table.create(connection)?;
        } else {
            self.done.rows += table.verify(connection).map_err(gone_or)?;
            let sql = format!("TRUNCATE TABLE {}", table.name);
            table.statement(connection, &sql, Content::Rows { round: 0, count: 0 })?;
            self.done.truncates += 1;
        }
        table.fill(connection, round)
    }

    /// A table exported, copied, changed, discarded and imported again under its name: its pages are those of
    /// the copy, not those that pool and extension had of the table in between. False: the server is gone.
    pub fn carry(&mut self, connection: &mut Conn, data: &Path, random: &mut Random) -> Result<bool> {
        let round = random.next_u64() % 1_000_000 + 1;
        finished(self.carry_round(connection, data, round))
    }

    fn carry_round(&mut self, connection: &mut Conn, data: &Path, round: u64) -> Outcome {
        let Some(table) = self.tables.last_mut() else { return Ok(()) };
        let file = |suffix: &str| data.join("soak").join(CARRIED).with_extension(suffix);
        let copy = |suffix: &str| data.join(format!("{CARRIED}.{suffix}.copy"));
        table.drop(connection)?;
        for suffix in ["ibd", "cfg"] {
            // There only when a kill came between our copy and its import.
            let _ = std::fs::remove_file(file(suffix));
        }
        table.create(connection)?;
        table.fill(connection, round)?;
        let rows = |round| Content::Rows { round, count: BATCH * BATCHES };
        table.statement(connection, "FLUSH TABLES carried FOR EXPORT", rows(round))?;
        for suffix in ["ibd", "cfg"] {
            std::fs::copy(file(suffix), copy(suffix))?;
        }
        table.statement(connection, "UNLOCK TABLES", rows(round))?;
        table.statement(connection, "TRUNCATE TABLE carried", Content::Rows { round: 0, count: 0 })?;
        self.done.truncates += 1;
        table.fill(connection, round + 1)?;
        table.statement(connection, "ALTER TABLE carried DISCARD TABLESPACE", Content::InTransit)?;
        for suffix in ["ibd", "cfg"] {
            std::fs::rename(copy(suffix), file(suffix))?;
        }
        // Not acknowledged, it may be there or not.
        if !answered(connection.query_drop("ALTER TABLE carried IMPORT TABLESPACE"))? {
            return Err(Stop::Gone);
        }
        table.may = vec![rows(round)];
        self.done.imports += 1;
        self.done.rows += table.verify(connection).map_err(gone_or)?;
        Ok(())
    }

    /// All of them, after a restart.
    pub fn verify(&mut self, connection: &mut Conn) -> Result<()> {
        for table in &mut self.tables {
            self.done.rows += table.verify(connection)?;
        }
        Ok(())
    }
}

/// A read that broke off with the connection is the kill; everything else is a failure.
fn gone_or(error: anyhow::Error) -> Stop {
    match error.downcast_ref::<mysql::Error>() {
        Some(mysql::Error::MySqlError(_)) | None => Stop::Failed(error),
        Some(_) => Stop::Gone,
    }
}

fn finished(outcome: Outcome) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Stop::Gone) => Ok(false),
        Err(Stop::Failed(error)) => Err(error),
    }
}
