//! Rows whose content is known: each checker has its own, counts every change that was acknowledged, and
//! reads them back all the time; after a kill the one change that was under way may or may not be there.

use anyhow::{Context, Result, ensure};
use disk::Random;
use mysql::Conn;
use mysql::prelude::Queryable;

/// Rows of each checker, of about 1 KiB.
const ROWS: u32 = 12_000;
const PAD: usize = 1000;

/// Whether the server answered. A connection that broke is the kill; a statement that was refused is a
/// failure.
pub fn answered(outcome: mysql::Result<()>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error @ mysql::Error::MySqlError(_)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// One checker's rows: the value acknowledged last, and one that may be there instead.
pub struct Checker {
    number: u32,
    values: Vec<u64>,
    unsure: Option<(u32, u64)>,
    pub checked: u64,
}

fn pad(id: u32, value: u64) -> String {
    format!("{id}-{value}-").repeat(PAD / 4 + 1)[..PAD].to_owned()
}

impl Checker {
    /// One of several; `number` gives it rows of its own.
    pub fn new(number: u32) -> Checker {
        Checker { number, values: vec![0; ROWS as usize], unsure: None, checked: 0 }
    }

    fn id(&self, row: u32) -> u32 {
        self.number * ROWS + row
    }

    pub fn create(&self, connection: &mut Conn) -> Result<()> {
        for start in (0..ROWS).step_by(200) {
            let rows =
                (start..start + 200).map(|row| format!("({},0,'{}')", self.id(row), pad(self.id(row), 0)));
            connection
                .query_drop(format!("INSERT INTO checked VALUES {}", rows.collect::<Vec<_>>().join(",")))?;
        }
        Ok(())
    }

    /// Until the server is gone.
    pub fn work(&mut self, connection: &mut Conn, random: &mut Random) -> Result<()> {
        loop {
            let row = random.below(ROWS as usize) as u32;
            let id = self.id(row);
            if random.one_in(3) {
                let value = self.values[row as usize] + 1;
                self.unsure = Some((row, value));
                let sql =
                    format!("UPDATE checked SET v = {value}, pad = '{}' WHERE id = {id}", pad(id, value));
                if !answered(connection.query_drop(sql))? {
                    return Ok(());
                }
                self.values[row as usize] = value;
                self.unsure = None;
            } else {
                let sql = format!("SELECT v, pad FROM checked WHERE id = {id}");
                let mut found = None;
                let asked = connection.query_first::<(u64, String), _>(sql).map(|row| found = row);
                if !answered(asked)? {
                    return Ok(());
                }
                let (value, text) = found.with_context(|| format!("row {id} is gone"))?;
                let expected = self.values[row as usize];
                ensure!(
                    value == expected && text == pad(id, value),
                    "row {id} is {value}, expected {expected}"
                );
                self.checked += 1;
            }
        }
    }

    /// Every row, after a restart.
    pub fn verify(&mut self, connection: &mut Conn) -> Result<()> {
        let (from, to) = (self.id(0), self.id(ROWS));
        let sql = format!("SELECT id, v, pad FROM checked WHERE id >= {from} AND id < {to} ORDER BY id");
        let rows: Vec<(u32, u64, String)> = connection.query(sql)?;
        ensure!(rows.len() == ROWS as usize, "{} rows of {ROWS}", rows.len());
        for (row, (id, value, text)) in rows.into_iter().enumerate() {
            let expected = self.values[row];
            let unsure = self.unsure == Some((row as u32, value));
            ensure!(
                value == expected || unsure,
                "after the restart row {id} is {value}, expected {expected}"
            );
            ensure!(text == pad(id, value), "after the restart row {id} is half of another version");
            self.values[row] = value;
        }
        self.unsure = None;
        self.checked += u64::from(ROWS);
        Ok(())
    }
}
