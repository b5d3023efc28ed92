//! The end of a query: duplicates removed, rows sorted, LIMIT counted, what is left handed on.
//!
//! Rows of a SELECT ([`super::result_row`]) come here, and those of all parts of a UNION together. A row is
//! taken with everything latched that its scan latches, so taking it never waits; it asks for a pause
//! ([`Flow::Pause`]) where something is full, and [`OrderLimit::make_room`] then spills.

use super::Flow;
use super::distinct::{Distinct, Seen};
use super::result_row::{OutputRow, compute_and_hand_on, hand_on};
use super::sort::RowSorter;
use super::spilled_values::{put_bytes, take_bytes};
use super::{Executor, Target};
use crate::context::SqlContext;
use crate::expr::Context;
use crate::failure::Failure;
use crate::handler_counts::Handled;
use crate::plan::SelectPlan;
use crate::result::ResultSink;

/// See the module's text.
pub struct OrderLimit<'p> {
    plan: &'p SelectPlan,
    state: &'p SqlContext,
    /// What items that wait for the sort are computed in.
    late: Option<Context<'p>>,
    /// Rows that have been seen, while duplicates are removed.
    pub distinct: Option<Box<Distinct<'p>>>,
    /// Equal sort keys are equal rows: DISTINCT is done by the sort.
    distinct_by_sort: bool,
    sorter: Option<Box<RowSorter<'p>>>,
    skip: u64,
    left: u64,
    /// Rows that the LIMIT lets pass or skips, and those behind it as far as they are counted.
    seen: u64,
    key: Vec<u8>,
}

impl<'p> OrderLimit<'p> {
    /// The end of `plan`, which hands on `left` rows after the first `skip`.
    pub fn new(
        plan: &'p SelectPlan,
        state: &'p SqlContext,
        distinct: bool,
        distinct_by_sort: bool,
        sorts: bool,
        (skip, left): (u64, u64),
    ) -> OrderLimit<'p> {
        let sorter = sorts.then(|| match distinct_by_sort || plan.counts_all {
            true => Box::new(RowSorter::new(state)),
            false => Box::new(RowSorter::of_first(state, skip.saturating_add(left))),
        });
        if distinct {
            state.handled.add(Handled::TemporaryTables, 1);
        }
        let distinct = distinct.then(|| Box::new(Distinct::new(state)));
        let (late, seen, key) = (None, 0, Vec::new());
        OrderLimit { plan, state, late, distinct, distinct_by_sort, sorter, skip, left, seen, key }
    }

    /// The same; items that wait for the sort are computed in this context.
    pub fn computing_in(self, constant: Context<'p>) -> OrderLimit<'p> {
        OrderLimit { late: Some(constant), ..self }
    }

    /// Whether no further row can matter.
    pub fn is_done(&self) -> bool {
        self.left == 0 && !self.plan.counts_all
    }

    /// Counts a row that is about to be handed on. Whether it is among those wanted.
    #[inline]
    fn count(&mut self) -> bool {
        if self.left == 0 {
            self.seen += u64::from(self.plan.counts_all);
            return false;
        }
        self.seen += 1;
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Whether something is to be spilled.
    pub fn is_full(&self) -> bool {
        self.distinct.as_ref().is_some_and(|distinct| distinct.is_full())
            || self.sorter.as_ref().is_some_and(|sorter| sorter.is_full())
    }

    /// Takes a row.
    pub fn take<S: ResultSink>(
        &mut self,
        row: &impl OutputRow,
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        if let Some(distinct) = &mut self.distinct {
            self.key.clear();
            row.group_key(&mut self.key)?;
            match distinct.look(&self.key)? {
                Seen::New => {}
                Seen::Before => return Ok(Flow::Next),
                Seen::Unknown => {
                    let Some(later) = &mut distinct.later else { return Ok(Flow::Next) };
                    let key = &self.key;
                    let sorts = self.sorter.is_some();
                    later.add(
                        |out| {
                            out.extend_from_slice(key);
                            Ok(())
                        },
                        |out| {
                            let mut sort_key = Vec::new();
                            if sorts {
                                row.sort_key(&mut sort_key)?;
                            }
                            put_bytes(&sort_key, out);
                            row.pack(out)
                        },
                    )?;
                    return Ok(if later.is_full() { Flow::Pause } else { Flow::Next });
                }
            }
        }
        if let Some(sorter) = &mut self.sorter {
            sorter.add(|out| row.sort_key(out), |out| row.pack(out))?;
            return Ok(if sorter.is_full() { Flow::Pause } else { Flow::Next });
        }
        if self.count() {
            row.emit(target)?;
        }
        Ok(match self.is_done() {
            true => Flow::Stop,
            _ if target.is_done() => Flow::Stop,
            _ if target.is_full() => Flow::Pause,
            _ => Flow::Next,
        })
    }

    /// Spills what is full.
    pub async fn make_room(&mut self, executor: &Executor<'_>) -> Result<(), Failure> {
        if let Some(later) = self.distinct.as_mut().and_then(|distinct| distinct.later.as_mut())
            && later.is_full()
        {
            later.spill(executor.slice()).await?;
        }
        if let Some(sorter) = &mut self.sorter
            && sorter.is_full()
        {
            sorter.spill(executor.slice()).await?;
        }
        Ok(())
    }

    /// No further row has to be compared with those seen: hands on what could not be decided before.
    pub async fn end_distinct<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let Some(later) = self.distinct.take().and_then(|distinct| distinct.later) else { return Ok(()) };
        let mut rows = later.finish().await?;
        let mut before: Option<Vec<u8>> = None;
        loop {
            executor.tick(1).await?;
            let Some((key, mut row)) = rows.next().await? else { return Ok(()) };
            if before.as_deref() == Some(key) {
                continue;
            }
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
            let sort_key = take_bytes(&mut row).unwrap_or_default();
            if let Some(sorter) = &mut self.sorter {
                let put = |bytes: &[u8], out: &mut Vec<u8>| {
                    out.extend_from_slice(bytes);
                    Ok(())
                };
                sorter.add(|out| put(sort_key, out), |out| put(row, out))?;
                if sorter.is_full() {
                    sorter.spill(executor.slice()).await?;
                }
            } else if !self.send(row, target)? {
                return Ok(());
            }
            target.flush(executor).await?;
        }
    }

    /// Hands on what waits. Returns how many rows there were.
    pub async fn finish<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        if self.distinct.is_some() {
            self.end_distinct(executor, target).await?;
        }
        let Some(sorter) = self.sorter.take() else { return Ok(self.seen) };
        let wanted = if self.plan.counts_all { u64::MAX } else { self.skip.saturating_add(self.left) };
        self.state.handled.add(Handled::SortScan, 1);
        self.state.handled.add(Handled::SortRows, sorter.count().min(wanted));
        let mut rows = sorter.finish().await?;
        let mut before: Option<Vec<u8>> = None;
        loop {
            executor.tick(1).await?;
            let Some((key, row)) = rows.next().await? else { return Ok(self.seen) };
            if self.distinct_by_sort {
                if before.as_deref() == Some(key) {
                    continue;
                }
                let before = before.get_or_insert_default();
                before.clear();
                before.extend_from_slice(key);
            }
            if !self.send(row, target)? {
                return Ok(self.seen);
            }
            target.flush(executor).await?;
        }
    }

    /// Counts a packed row, and hands it on if it is among those wanted; false when no more are.
    fn send<S: ResultSink>(&mut self, row: &[u8], target: &mut Target<'_, S>) -> Result<bool, Failure> {
        if self.count() {
            match (&self.plan.late_columns, self.late) {
                (Some(columns), Some(cx)) => compute_and_hand_on(row, self.plan, columns, cx, target)?,
                _ => hand_on(row, self.plan, self.state, target)?,
            }
        }
        Ok(!self.is_done() && !target.is_done())
    }
}
