//! Joins: nested loops in the order of the plan. The rows of the steps before the last are kept in memory; the last
//! step streams into the consumer.

use std::collections::HashMap;

use super::cursor::{Cursor, Flow};
use super::select::{Consumer, all_true};
use super::{Executor, Rows, Target, keys};
use crate::result::ResultSink;
use crate::session::failure::Failure;
use crate::sql::expr::{Context, RowView};
use crate::sql::plan::source::SourceKind;
use crate::sql::plan::{SelectPlan, Step};
use crate::sql::value::Value;

/// One combination of rows: a row of each source joined so far, `None` for the missing side of an outer join.
type Tuple = Vec<Option<Vec<Value<'static>>>>;

fn views<'t>(tuple: &'t Tuple, sources: usize) -> Vec<RowView<'t>> {
    let mut views = vec![RowView::Nulls; sources];
    for (view, row) in views.iter_mut().zip(tuple) {
        if let Some(values) = row {
            *view = RowView::Values(values);
        }
    }
    views
}

impl Executor<'_> {
    /// Runs the join of a plan.
    pub async fn join<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let mut materialised: HashMap<usize, Rows> = HashMap::new();
        for step in &plan.steps {
            let rows = match &plan.sources[step.source].kind {
                SourceKind::Derived(inner) => self.rows(inner).await?,
                SourceKind::View(view) => view.rows(self.state)?,
                SourceKind::Table(_) => continue,
            };
            materialised.insert(step.source, rows);
        }
        let mut tuples: Vec<Tuple> = vec![vec![None; plan.sources.len()]];
        let last = plan.steps.len() - 1;
        for (number, step) in plan.steps.iter().enumerate() {
            let mut next = Vec::new();
            for tuple in tuples {
                self.state.check_killed()?;
                let base = views(&tuple, plan.sources.len());
                let mut take = |view: RowView<'_>, target: &mut Target<'_, S>| -> Result<Flow, Failure> {
                    if number == last {
                        let mut shorter: Vec<RowView<'_>> = base.to_vec();
                        shorter[step.source] = view;
                        return consumer.row(&shorter, target);
                    }
                    let mut joined = tuple.clone();
                    joined[step.source] = match view {
                        RowView::Nulls => None,
                        view => Some(copy(plan, step.source, view, cx)),
                    };
                    next.push(joined);
                    Ok(Flow::Next)
                };
                let flow = match materialised.get(&step.source) {
                    Some(rows) => memory_step(step, rows, &base, cx, &mut |view| take(view, target))?,
                    None => self.table_step(plan, step, &base, cx, target, &mut take).await?,
                };
                if flow == Flow::Stop {
                    return Ok(());
                }
                target.flush().await?;
            }
            tuples = next;
        }
        Ok(())
    }

    async fn table_step<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        step: &Step,
        base: &[RowView<'_>],
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
        take: &mut dyn FnMut(RowView<'_>, &mut Target<'_, S>) -> Result<Flow, Failure>,
    ) -> Result<Flow, Failure> {
        let Some(table) = plan.sources[step.source].engine_table() else { return Ok(Flow::Next) };
        let outer_rows = cx_rows(cx, base);
        let ranges = keys::ranges(&step.path, &table.def.columns, &outer_rows)?;
        let mut matched = false;
        let mut stopped = false;
        if let Some(ranges) = ranges {
            let conditions = if ranges.exact { &step.filter } else { &step.all_conditions };
            let mode = self.read_mode(plan.locking);
            let mut scan = Cursor::new(table, &step.path, ranges.ranges, mode, &plan.needed[step.source]);
            loop {
                let more = scan
                    .run(self.transaction.rows(), &mut |view, _| match test(
                        step,
                        conditions,
                        base,
                        view,
                        cx,
                        &mut matched,
                    )? {
                        true => {
                            let flow = take(view, target)?;
                            stopped |= flow == Flow::Stop;
                            Ok(flow)
                        }
                        false => Ok(Flow::Skip),
                    })
                    .await?;
                if !more {
                    break;
                }
                self.state.check_killed()?;
                target.flush().await?;
            }
        }
        if stopped {
            return Ok(Flow::Stop);
        }
        missing(step, matched, base, cx, &mut |view| take(view, target))
    }
}

fn cx_rows<'c>(cx: &Context<'c>, rows: &'c [RowView<'c>]) -> Context<'c> {
    Context { rows, ..*cx }
}

/// Checks the conditions of a step for a row; for an outer join also those behind it.
fn test(
    step: &Step,
    conditions: &[crate::sql::expr::Expr],
    base: &[RowView<'_>],
    view: RowView<'_>,
    cx: &Context<'_>,
    matched: &mut bool,
) -> Result<bool, Failure> {
    let mut rows: Vec<RowView<'_>> = base.to_vec();
    rows[step.source] = view;
    let cx = cx_rows(cx, &rows);
    if !all_true(conditions, &cx)? {
        return Ok(false);
    }
    *matched = true;
    Ok(!step.outer || all_true(&step.after, &cx)?)
}

/// The row of NULLs of an outer join without match.
fn missing(
    step: &Step,
    matched: bool,
    base: &[RowView<'_>],
    cx: &Context<'_>,
    take: &mut dyn FnMut(RowView<'_>) -> Result<Flow, Failure>,
) -> Result<Flow, Failure> {
    if !step.outer || matched {
        return Ok(Flow::Next);
    }
    let rows: Vec<RowView<'_>> = base.to_vec();
    if all_true(&step.after, &cx_rows(cx, &rows))? {
        return take(RowView::Nulls);
    }
    Ok(Flow::Next)
}

fn memory_step(
    step: &Step,
    rows: &Rows,
    base: &[RowView<'_>],
    cx: &Context<'_>,
    take: &mut dyn FnMut(RowView<'_>) -> Result<Flow, Failure>,
) -> Result<Flow, Failure> {
    let mut matched = false;
    for row in rows {
        let view = RowView::Values(row);
        if test(step, &step.all_conditions, base, view, cx, &mut matched)? && take(view)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    missing(step, matched, base, cx, take)
}

fn copy(plan: &SelectPlan, source: usize, view: RowView<'_>, cx: &Context<'_>) -> Vec<Value<'static>> {
    let mut values = vec![Value::Null; plan.sources[source].columns.len()];
    for column in &plan.needed[source] {
        values[usize::from(*column)] = view.column(*column, cx.state.time_zone_offset()).into_owned();
    }
    values
}
