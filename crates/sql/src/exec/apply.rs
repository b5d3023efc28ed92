//! Correlated subqueries, executed for the row at hand ([`crate::plan::apply`]).

use std::sync::Arc;

use super::Flow;
use super::hashed_subquery::HashedTable;
use super::join::Views;
use super::measure::{Measured, Part};
use super::select::Consumer;
use super::{Executor, Subqueries, SubqueryResult, Target, are_identical};
use crate::expr::{Context, ValueSet};
use crate::failure::Failure;
use crate::memory::Charge;
use crate::plan::SelectPlan;
use crate::plan::apply::{AppliedCondition, Apply};
use crate::result::ResultSink;
use crate::value::Value;

/// The results of a query's subqueries, some of them for the row at hand.
pub struct Applied<'p, 'e> {
    subqueries: &'p [SelectPlan],
    /// What is done with each row.
    pub apply: &'p Apply,
    /// By number.
    pub results: Vec<Arc<ValueSet>>,
    /// By number: of which captured values the result is, and what it is charged.
    of: Vec<Option<(Vec<Value<'static>>, Charge<'e>)>>,
    /// By number: its table in memory.
    tables: Vec<HashedTable<'p, 'e>>,
    /// What they read may change from row to row.
    reads_anew: bool,
}

impl<'p, 'e> Applied<'p, 'e> {
    /// Before the first row; `executed` has the results of the subqueries that follow no rows. The steps of
    /// the join look at them, too, so they are shared.
    pub fn new(
        subqueries: &'p [SelectPlan],
        apply: Option<&'p Apply>,
        executed: &Subqueries<'e>,
    ) -> Option<Self> {
        let apply = apply?;
        let of = subqueries.iter().map(|_| None).collect();
        let tables = subqueries.iter().map(|_| HashedTable::New).collect();
        Some(Applied { subqueries, apply, results: executed.to_vec(), of, tables, reads_anew: false })
    }

    /// From here on each is executed for each row: the statement changes rows that they may read.
    pub fn read_anew(&mut self) {
        self.reads_anew = true;
        self.tables.iter_mut().for_each(|table| *table = HashedTable::No);
    }

    /// Tests the conditions on the row of `cx`, and executes what a row needs that meets them.
    pub async fn meets_conditions(
        &mut self,
        executor: &mut Executor<'e>,
        cx: &Context<'_>,
    ) -> Result<bool, Failure> {
        let apply = self.apply;
        if !self.meets(executor, &apply.conditions, cx).await? {
            return Ok(false);
        }
        self.run(executor, &apply.rows, cx).await?;
        Ok(true)
    }

    /// Whether the row of `cx` meets these conditions.
    pub async fn meets(
        &mut self,
        executor: &mut Executor<'e>,
        conditions: &[AppliedCondition],
        cx: &Context<'_>,
    ) -> Result<bool, Failure> {
        for (numbers, condition) in conditions {
            self.run(executor, numbers, cx).await?;
            if condition.truth(&Context { subqueries: &self.results, ..*cx })? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Executes these subqueries for the row of `cx`. One that reads what it read for the row before has its
    /// result already.
    pub async fn run(
        &mut self,
        executor: &mut Executor<'e>,
        numbers: &[u16],
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        for number in numbers {
            let at = usize::from(*number);
            let plan = &self.subqueries[at];
            let captured = Executor::captured(plan, &Context { subqueries: &self.results, ..*cx })?;
            let has_result = |(of, _): &(Vec<Value<'static>>, Charge<'e>)| are_identical(of, &captured);
            if !self.reads_anew && self.of[at].as_ref().is_some_and(has_result) {
                continue;
            }
            self.of[at] = None;
            let SubqueryResult { values, charge } =
                executor.subquery_of_row(plan, &captured, &mut self.tables[at]).await?;
            self.results[at] = Arc::new(values);
            self.of[at] = Some((captured, charge));
        }
        Ok(())
    }
}

/// The context of a row that was put aside and has come back, with what its aggregates need of subqueries.
pub async fn with_results<'c, 'e>(
    applied: &'c mut Option<Applied<'_, 'e>>,
    executor: &mut Executor<'e>,
    cx: Context<'c>,
) -> Result<Context<'c>, Failure> {
    let Some(applied) = applied else { return Ok(cx) };
    let apply = applied.apply;
    applied.run(executor, &apply.rows, &cx).await?;
    Ok(Context { subqueries: &applied.results, ..cx })
}

impl<'e> Executor<'e> {
    /// Takes a row of the join: tests the conditions that are left, and gives it to the consumer.
    pub(super) async fn applied_row<S: ResultSink>(
        &mut self,
        views: &Views<'_>,
        applied: &mut Applied<'_, 'e>,
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        if !applied.meets_conditions(self, &Context { rows: views, ..*cx }).await? {
            return Ok(Flow::Skip);
        }
        if self.state.measures.is_on() {
            self.state.measures.note(consumer.plan(), Part::Applied, &Measured::ROW);
        }
        let flow = consumer.row_with(views, &applied.results, target)?;
        consumer.make_room(self, target).await?;
        Ok(flow)
    }
}
