//! Recursive common tables ([`crate::plan::with`]).

use std::collections::HashSet;

use untorn::schema::ColumnDef;

use super::{Executor, KeptRows, RowTaker, Rows};
use crate::errors;
use crate::failure::Failure;
use crate::memory::row_weight;
use crate::plan::SelectPlan;
use crate::plan::with::Recursion;
use crate::result::SqlError;
use crate::stored_values::{self, Storing};
use crate::value::{Value, compare};

/// The rows of a recursive common table that came new the last time.
pub struct Working<'w> {
    number: u32,
    rows: &'w Rows,
    /// Of a table that this one is computed for.
    before: Option<&'w Working<'w>>,
}

/// The rows of a table so far, as far as they must differ.
struct Seen {
    keys: Option<HashSet<Vec<u8>>>,
    key: Vec<u8>,
}

impl Seen {
    /// Whether the row is new.
    fn is_new(&mut self, row: &[Value<'static>]) -> bool {
        let Some(keys) = &mut self.keys else { return true };
        self.key.clear();
        row.iter().for_each(|value| compare::group_key(value, &mut self.key));
        !keys.contains(&self.key) && keys.insert(self.key.clone())
    }
}

impl<'e> Executor<'e> {
    /// The rows of a recursive common table; `plan` gives the first of them.
    pub(super) async fn recursive_rows(
        &mut self,
        plan: &SelectPlan,
        recursion: &Recursion,
    ) -> Result<KeptRows<'e>, Failure> {
        let mut seen = Seen { keys: recursion.distinct.then(HashSet::new), key: Vec::new() };
        let mut keys = self.state.memory.charge();
        let (mut skip, rows_max) = self.limit(recursion.limit.as_ref())?.unwrap_or((0, u64::MAX));
        let mut all = KeptRows::new(self.state, usize::try_from(rows_max).unwrap_or(usize::MAX));
        let mut new = self.rows(plan).await?;
        let rounds_max = self.state.settings().cte_max_recursion_depth;
        let mut round = 0;
        loop {
            // What the parts read next: charged twice, as long as it is there twice.
            let mut fresh = KeptRows::new(self.state, usize::MAX);
            for row in new.iter() {
                self.tick(1).await?;
                let mut row = row.clone();
                if round > 0 {
                    self.store(&mut row, &recursion.columns)?;
                }
                if !seen.is_new(&row) {
                    continue;
                }
                if recursion.distinct {
                    keys.grow(row_weight(&row))?;
                }
                if all.is_done() {
                    return Ok(all);
                }
                match skip.checked_sub(1) {
                    Some(rest) => skip = rest,
                    None => all.take(row.clone())?,
                }
                fresh.take(row)?;
            }
            if fresh.is_empty() || all.is_done() {
                return Ok(all);
            }
            round += 1;
            if round > rounds_max {
                return Err(errors::error(errors::CTE_MAX_RECURSION_DEPTH, &[&round]).into());
            }
            self.state.check_killed()?;
            new = KeptRows::new(self.state, usize::MAX);
            let working = Working { number: recursion.number, rows: &fresh, before: self.working };
            for part in &recursion.parts {
                let (state, parameters, outer) = (self.state, self.parameters, self.outer);
                let transaction = &mut *self.transaction;
                let mut inner = Executor { state, transaction, parameters, outer, working: Some(&working) };
                inner.select_into(part, &mut new).await?;
            }
        }
    }

    /// Makes values what INSERT would make of them in these columns.
    fn store(&self, row: &mut [Value<'static>], columns: &[ColumnDef]) -> Result<(), SqlError> {
        let storing = Storing { state: self.state, table: "", row: 1, lenient: !self.state.is_strict() };
        let mut bytes = Vec::new();
        for (value, column) in row.iter_mut().zip(columns).filter(|(value, _)| !value.is_null()) {
            bytes.clear();
            storing.encode(value, column, &mut bytes)?;
            *value = stored_values::decode(&bytes, &column.kind, self.state.time_zone_offset()).into_owned();
        }
        Ok(())
    }

    /// The rows that came new in the table of this number.
    pub(super) async fn working_rows(&self, number: u32) -> Result<KeptRows<'e>, Failure> {
        let mut next = self.working;
        while let Some(working) = next {
            if working.number == number {
                let mut rows = KeptRows::new(self.state, usize::MAX);
                for row in working.rows {
                    self.tick(1).await?;
                    rows.take(row.clone())?;
                }
                return Ok(rows);
            }
            next = working.before;
        }
        Err(errors::error(errors::INTERNAL_ERROR, &[&"a recursive table is read outside itself"]).into())
    }
}
