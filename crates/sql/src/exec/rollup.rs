//! WITH ROLLUP: rows sorted by all keys, aggregated on every level at once.
//!
//! A level is how many of the leading keys its groups have values of: none of them has one group, of all
//! rows. Where a row differs from the one before in a key, the groups of that level and of all above end,
//! the smallest first; one group of each level is enough. The sort key of a row comes with the places where
//! each of the keys ends in it.

use smallvec::SmallVec;

use super::Executor;
use super::apply::{Applied, with_results};
use super::group::{Group, gather, group_weight, new_group, unpacked};
use super::join::Views;
use super::sort::{SortedRows, push_key};
use crate::errors;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::memory::{Charge, refused};
use crate::plan::{Grouping, SelectPlan};
use crate::result::SqlError;
use crate::value::Value;

/// Bytes of a place in a key.
const END_BYTES: usize = size_of::<u32>();

/// Appends the keys of a row, in order, and behind them where each ends.
pub fn push_keys(keys: &[Expr], cx: &Context<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let mut ends: SmallVec<[u32; 8]> = SmallVec::new();
    for key in keys {
        let value = key.eval(cx)?;
        cx.state.hold(value.key_bytes_max())?;
        push_key(&value, false, out);
        ends.push(out.len() as u32);
    }
    ends.iter().for_each(|end| out.extend_from_slice(&end.to_be_bytes()));
    Ok(())
}

/// See the module's text.
pub struct Rollup<'p> {
    plan: &'p SelectPlan,
    grouping: &'p Grouping,
    /// The groups that have begun, by their level, each with the bytes it takes.
    open: Vec<(Group, usize)>,
    /// Those that have ended, the next one last.
    ended: Vec<(Group, usize)>,
    /// Of the row before.
    key: Vec<u8>,
    memory: usize,
    all_read: bool,
}

impl<'p> Rollup<'p> {
    /// Before the first row.
    pub fn new(plan: &'p SelectPlan, grouping: &'p Grouping) -> Rollup<'p> {
        let (open, ended, key) = (Vec::new(), Vec::new(), Vec::new());
        Rollup { plan, grouping, open, ended, key, memory: 0, all_read: false }
    }

    /// The next group of those that `rows` have.
    pub async fn next<'e>(
        &mut self,
        rows: &mut SortedRows<'_>,
        charge: &mut Charge<'_>,
        executor: &mut Executor<'e>,
        base: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<Option<Group>, Failure> {
        loop {
            if let Some((group, bytes)) = self.ended.pop() {
                self.memory -= bytes;
                charge.shrink_to(self.memory);
                return Ok(Some(group));
            }
            if self.all_read {
                return Ok(None);
            }
            executor.tick(1).await?;
            let Some((key, row)) = rows.next().await? else {
                self.all_read = true;
                if self.open.is_empty() {
                    // Without rows there is the group of all.
                    self.begin(&[], base, charge)?;
                }
                self.end_down_to(0);
                continue;
            };
            let ends = key.len().checked_sub(END_BYTES * self.grouping.keys.len());
            let Some((key, ends)) = ends.map(|at| key.split_at(at)) else {
                return Err(errors::error(errors::INTERNAL_ERROR, &[&"a sorted key is too short"]).into());
            };
            if !self.open.is_empty() {
                let common = key.iter().zip(&self.key).take_while(|(left, right)| left == right).count();
                let ends = ends
                    .chunks_exact(END_BYTES)
                    .map(|end| end.iter().fold(0, |n, b| n << 8 | usize::from(*b)));
                let equal = ends.take_while(|end| *end <= common).count();
                self.end_down_to(equal + 1);
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            let row = unpacked(self.plan, &mut &*row)?;
            let views: Views<'_> = row.iter().map(|values| RowView::Values(values)).collect();
            let held = base.state.held();
            let cx = with_results(applied, executor, Context { rows: &views, ..*base }).await?;
            self.add(&row, charge, executor, &cx).await?;
            base.state.release_to(held);
        }
    }

    /// Ends the groups of this level and of those above.
    fn end_down_to(&mut self, level: usize) {
        let kept = level.min(self.open.len());
        self.ended.extend(self.open.drain(kept..));
    }

    /// Begins a group of the next level, which starts with this row. What it takes is charged first: there is
    /// one for each key.
    fn begin(
        &mut self,
        row: &[Vec<Value<'static>>],
        base: &Context<'_>,
        charge: &mut Charge<'_>,
    ) -> Result<(), SqlError> {
        let bytes = group_weight(row, self.grouping.aggregates.len());
        self.reach(bytes, charge)?;
        let views: Views<'_> = row.iter().map(|values| RowView::Values(values)).collect();
        let group = new_group(self.plan, self.grouping, &views, base.state.time_zone_offset());
        self.open.push((Group { keys: self.open.len() as u16, ..group }, bytes));
        Ok(())
    }

    /// Charges that many bytes more.
    fn reach(&mut self, bytes: usize, charge: &mut Charge<'_>) -> Result<(), SqlError> {
        self.memory += bytes;
        if charge.reach(self.memory) { Ok(()) } else { Err(refused()) }
    }

    /// Adds a row to the groups of every level; each is a step of its own for who waits or kills.
    async fn add(
        &mut self,
        row: &[Vec<Value<'static>>],
        charge: &mut Charge<'_>,
        executor: &Executor<'_>,
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        let work = 1 + self.grouping.aggregates.len() as u32;
        while self.open.len() <= self.grouping.keys.len() {
            executor.tick(work).await?;
            self.begin(row, cx, charge)?;
        }
        for at in 0..self.open.len() {
            executor.tick(work).await?;
            let (group, bytes) = &mut self.open[at];
            let grown = gather(group, self.grouping, cx)?;
            *bytes += grown;
            self.reach(grown, charge)?;
        }
        Ok(())
    }
}
