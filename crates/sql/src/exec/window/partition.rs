//! The rows of a partition, and which of them are equal in the order of the window.
//!
//! Where nothing has to see all of them, a partition comes in parts.

use super::{END_BYTES, Row, weight};
use crate::background_drop::discard;
use crate::errors;
use crate::exec::sort::SortedRows;
use crate::exec::spilled_values::take_all;
use crate::exec::{Executor, ROWS_APART};
use crate::failure::Failure;
use crate::memory::{Charge, row_weight};
use crate::result::SqlError;
use crate::value::Value;

/// Which rows are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Each for itself.
    Row,
    /// Those that are equal.
    Peers,
    /// All.
    Partition,
}

/// Rows of one partition that are computed together.
pub struct Partition<'a> {
    rows: Vec<Row>,
    /// For each row the first of those that are equal to it, and the one behind the last.
    peers: Vec<(usize, usize)>,
    charge: Charge<'a>,
    /// Before the first of them comes another partition.
    pub begins_partition: bool,
    /// The row before the first of them is not equal to it.
    pub begins_peers: bool,
}

impl<'a> Partition<'a> {
    /// How many rows it has.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// All of them.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// One of them.
    pub fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    /// One of them that is there.
    pub fn at(&self, at: usize) -> &[Value<'static>] {
        self.rows.get(at).map_or(&[], |row| row)
    }

    /// Which rows are equal to one: the first, and the one behind the last.
    pub fn peers(&self, at: usize) -> (usize, usize) {
        self.peers.get(at).copied().unwrap_or_default()
    }

    /// Sets a result.
    pub fn set(&mut self, at: usize, column: usize, value: Value<'static>) -> Result<(), SqlError> {
        self.charge.grow(weight(&value))?;
        if let Some(place) = self.rows.get_mut(at).and_then(|row| row.get_mut(column)) {
            *place = value;
        }
        Ok(())
    }

    /// What more is kept of it.
    pub fn charge(&mut self) -> &mut Charge<'a> {
        &mut self.charge
    }

    /// Takes one more row; `differs`: from the one before.
    fn push(&mut self, row: Row, differs: bool) -> Result<(), SqlError> {
        self.charge.grow(row_weight(&row) + size_of::<(usize, usize)>())?;
        let at = self.rows.len();
        if differs {
            self.end_peers();
        }
        let first = if differs { at } else { self.peers.last().map_or(at, |(first, _)| *first) };
        self.rows.push(row);
        self.peers.push((first, at));
        Ok(())
    }

    /// Ends a run of equal rows.
    fn end_peers(&mut self) {
        let end = self.peers.len();
        let Some((first, _)) = self.peers.last().copied() else { return };
        self.peers[first..].iter_mut().for_each(|(_, behind)| *behind = end);
    }
}

impl Drop for Partition<'_> {
    fn drop(&mut self) {
        if self.rows.len() >= ROWS_APART {
            discard(std::mem::take(&mut self.rows));
        }
    }
}

/// The partitions of sorted rows.
pub struct Partitions<'s> {
    rows: SortedRows<'s>,
    /// The first row of the next one, with its key.
    begun: Option<(Vec<u8>, Row)>,
    /// The key of the row before.
    before: Option<Vec<u8>>,
}

/// The part of a key that PARTITION BY made, and all of it.
fn parts(key: &[u8]) -> Result<(&[u8], &[u8]), SqlError> {
    let too_short = || errors::error(errors::INTERNAL_ERROR, &[&"a sorted key is too short"]);
    let (key, end) = key.split_last_chunk::<END_BYTES>().ok_or_else(too_short)?;
    let partition = key.get(..u32::from_be_bytes(*end) as usize).ok_or_else(too_short)?;
    Ok((partition, key))
}

impl<'s> Partitions<'s> {
    /// Before the first one.
    pub fn new(rows: SortedRows<'s>) -> Partitions<'s> {
        Partitions { rows, begun: None, before: None }
    }

    /// The next rows that are computed together.
    pub async fn next<'e>(
        &mut self,
        executor: &Executor<'e>,
        reach: Reach,
    ) -> Result<Option<Partition<'e>>, Failure> {
        if self.begun.is_none() {
            self.begun = self.rows.next().await?.map(|(key, row)| (key.to_vec(), take_all(row)));
        }
        let Some((mut before, row)) = self.begun.take() else { return Ok(None) };
        executor.tick(1).await?;
        let (begins_partition, begins_peers) = match &self.before {
            None => (true, true),
            Some(last) => {
                let ((of, all), (of_last, all_last)) = (parts(&before)?, parts(last)?);
                (of != of_last, all != all_last)
            }
        };
        let charge = executor.state.memory.charge();
        let (rows, peers) = (Vec::new(), Vec::new());
        let mut partition = Partition { rows, peers, charge, begins_partition, begins_peers };
        partition.push(row, true)?;
        loop {
            let next = if reach == Reach::Row { None } else { self.rows.next().await? };
            let Some((key, row)) = next else { break };
            executor.tick(1).await?;
            let ((of, all), (of_before, all_before)) = (parts(key)?, parts(&before)?);
            let row = take_all(row);
            let differs = all != all_before;
            if of != of_before || (reach == Reach::Peers && differs) {
                self.begun = Some((key.to_vec(), row));
                break;
            }
            partition.push(row, differs)?;
            if differs {
                before.clear();
                before.extend_from_slice(key);
            }
        }
        partition.end_peers();
        self.before = Some(before);
        Ok(Some(partition))
    }
}
