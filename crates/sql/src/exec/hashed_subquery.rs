//! A correlated subquery over one table that no index leads into (`EXISTS (SELECT 1 FROM b WHERE b.x =
//! a.x)`): a semijoin or antijoin by hash.
//!
//! The table is read into memory when the subquery is executed for the second time, and looked up by what
//! its columns are equal to of the row around (`hash_lookup.rs`). Everything else is as if it had been
//! read.

use std::future::Future;
use std::pin::Pin;

use super::hash_lookup::{Found, Gathered, HashLookup};
use super::measure::WholeMeter;
use super::select::{Consumer, all_true};
use super::{Executor, Flow, KeptRows, NoSink, SubqueryResult, Target, result_of};
use crate::expr::{Context, RowView};
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::value::Value;

/// The table of a subquery.
pub(super) enum HashedTable<'p, 'e> {
    /// It has not been executed.
    New,
    /// Once: reading all is no more work then.
    ReadOnce,
    /// In memory.
    Rows(Box<(KeptRows<'e>, HashLookup<'p, 'e>)>),
    /// It is read each time.
    No,
}

impl<'e> Executor<'e> {
    /// Executes a subquery that reads these values of the query around it.
    pub(super) async fn subquery_of_row<'p>(
        &mut self,
        plan: &'p SelectPlan,
        outer: &[Value<'static>],
        table: &mut HashedTable<'p, 'e>,
    ) -> Result<SubqueryResult<'e>, Failure> {
        match table {
            HashedTable::New => {
                let simple = matches!(&plan.steps[..], [step] if step.by_hash)
                    && plan.subqueries.is_empty()
                    && plan.unions.is_empty()
                    && plan.windowed.is_none()
                    && plan.recursion.is_none()
                    && plan.apply.is_none();
                *table = if simple { HashedTable::ReadOnce } else { HashedTable::No };
            }
            HashedTable::ReadOnce => *table = self.hashed_table(plan).await?,
            HashedTable::Rows(_) | HashedTable::No => {}
        }
        let HashedTable::Rows(rows) = table else { return self.subquery(plan, outer).await };
        let (state, parameters, working) = (self.state, self.parameters, self.working);
        let mut found = KeptRows::new(state, usize::MAX);
        let mut inner = Executor { state, transaction: &mut *self.transaction, parameters, outer, working };
        // Boxed: what it runs may have subqueries of its own.
        let target = &mut Target::Taker(&mut found);
        let work: Pin<Box<dyn Future<Output = _> + '_>> =
            Box::pin(inner.select_hashed(plan, &rows.0, &mut rows.1, target));
        work.await?;
        result_of(&inner, state, plan, found).await
    }

    async fn hashed_table<'p>(&mut self, plan: &'p SelectPlan) -> Result<HashedTable<'p, 'e>, Failure> {
        let [step] = &plan.steps[..] else { return Ok(HashedTable::No) };
        let cx = Context::constant(self.state, self.parameters);
        let Gathered::Rows(rows) = self.table_in_memory(plan, step, &cx).await? else {
            return Ok(HashedTable::No);
        };
        Ok(match self.hash_lookup(step, &rows).await? {
            Some(lookup) => HashedTable::Rows(Box::new((rows, lookup))),
            None => HashedTable::No,
        })
    }

    async fn select_hashed(
        &mut self,
        plan: &SelectPlan,
        rows: &KeptRows<'_>,
        lookup: &mut HashLookup<'_, '_>,
        target: &mut Target<'_, NoSink>,
    ) -> Result<(), Failure> {
        let [step] = &plan.steps[..] else { return Ok(()) };
        let meter = WholeMeter::begin(self.state);
        let cx = Context { outer: self.outer, ..Context::constant(self.state, self.parameters) };
        let mut consumer = Consumer::new(plan, &cx, u64::MAX)?;
        if all_true(&plan.constant_conditions, &cx)? && !consumer.is_done() {
            let (mut at, chained) = match lookup.find(&cx)? {
                Found::Unknown => (Some(0), false),
                Found::Chain(first) => (first, true),
            };
            while let Some((number, row)) = at.and_then(|at| Some((at, rows.get(at)?))) {
                at = if chained { lookup.next(number) } else { Some(number + 1) };
                self.tick(1).await?;
                let views = [RowView::Values(row)];
                if !all_true(&step.all_conditions, &consumer.context(&views))? {
                    continue;
                }
                let flow = consumer.row(&views, target)?;
                consumer.make_room(self, target).await?;
                if flow == Flow::Stop {
                    break;
                }
            }
        }
        let rows = consumer.finish(self, &mut None, target).await?;
        meter.end(plan, self.state, rows, None);
        Ok(())
    }
}
