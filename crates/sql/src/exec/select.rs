//! SELECT: a scan or join passes on the rows that meet all conditions. The consumer groups them where asked,
//! and hands them to the query's `OrderLimit`, which removes duplicates, sorts and counts.

use std::sync::Arc;

use super::Flow;
use super::apply::Applied;
use super::cursor::Cursor;
use super::group::Groups;
use super::integer_key::integer_key;
use super::join::Views;
use super::measure::{Measured, Part, WholeMeter};
use super::order_limit::OrderLimit;
use super::point::{is_point, show_row};
use super::result_row::{SourceRow, ValueRow};
use super::sort::push_key;
use super::{Executor, Target};
use crate::ast::SetOperation;
use crate::context::SqlContext;
use crate::expr::functions::as_count;
use crate::expr::{Context, Expr, RowView, ValueSet, strict};
use crate::failure::Failure;
use crate::plan::{Condition, SelectPlan, Step};
use crate::result::{ResultSink, SqlError, kind};
use crate::value::Value;

/// A SELECT without tables gives way between items if it has this many.
const ITEMS_IN_TURNS: usize = 8;

/// What happens to the rows of a SELECT.
pub struct Consumer<'p> {
    plan: &'p SelectPlan,
    state: &'p SqlContext,
    parameters: &'p [Value<'p>],
    outer: &'p [Value<'p>],
    subqueries: &'p [Arc<ValueSet>],
    time_zone: i32,
    groups: Option<Box<Groups<'p>>>,
    order_limit: OrderLimit<'p>,
}

fn same_column(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Column { source: a, column: b }, Expr::Column { source: c, column: d }) => a == c && b == d,
        _ => false,
    }
}

impl<'p> Consumer<'p> {
    /// A consumer at the start.
    ///
    /// Without a LIMIT it hands on `most` rows.
    pub fn new(plan: &'p SelectPlan, cx: &Context<'p>, most: u64) -> Result<Self, SqlError> {
        let Context { state, parameters, outer, subqueries, .. } = *cx;
        let (mut skip, mut left) = (0, most);
        if let Some((count, offset)) = &plan.limit {
            left = as_count(&count.eval(cx)?);
            if let Some(offset) = offset {
                skip = as_count(&offset.eval(cx)?);
            }
        }
        let unions = !plan.unions.is_empty();
        let sorts = !plan.order.is_empty() && !unions;
        let covered = |item: &Expr| plan.order.iter().any(|(expr, _)| same_column(expr, item));
        let shown = |(expr, _): &(Expr, bool)| plan.items.iter().any(|item| same_column(expr, item));
        // Different documents may stand at one place of the order.
        let tells_apart = plan.types.iter().all(|ty| ty.kind != kind::JSON);
        let distinct_by_sort = plan.distinct
            && sorts
            && tells_apart
            && plan.items.iter().all(covered)
            && plan.order.iter().all(shown);
        let distinct = plan.distinct && !distinct_by_sort;
        let window = if unions { (0, u64::MAX) } else { (skip, left) };
        Ok(Self {
            plan,
            state,
            parameters,
            outer,
            subqueries,
            time_zone: state.time_zone_offset(),
            groups: plan.grouping.as_ref().map(|grouping| Box::new(Groups::new(plan, grouping, state))),
            order_limit: OrderLimit::new(plan, state, distinct, distinct_by_sort, sorts, window)
                .computing_in(Context { subqueries, outer, ..Context::constant(state, parameters) }),
        })
    }

    /// The query.
    pub fn plan(&self) -> &'p SelectPlan {
        self.plan
    }

    /// The context for a row.
    pub fn context<'c>(&'c self, rows: &'c [RowView<'c>]) -> Context<'c> {
        Context { rows, ..self.constant() }
    }

    /// The context without a row.
    #[inline]
    fn constant(&self) -> Context<'_> {
        let (subqueries, outer) = (self.subqueries, self.outer);
        Context { subqueries, outer, ..Context::constant(self.state, self.parameters) }
    }

    /// Whether no further row can matter.
    pub fn is_done(&self) -> bool {
        self.groups.is_none() && self.order_limit.is_done()
    }

    /// Takes a row that passed the conditions.
    #[inline]
    pub fn row<S: ResultSink>(
        &mut self,
        rows: &[RowView<'_>],
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        self.row_with(rows, self.subqueries, target)
    }

    /// Takes a row of one source, if that meets the conditions.
    #[inline]
    fn row_if<S: ResultSink>(
        &mut self,
        conditions: &[Condition],
        view: RowView<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        let views = [view];
        if !conditions.is_empty() && !all_true(conditions, &self.context(&views))? {
            return Ok(Flow::Skip);
        }
        self.row(&views, target)
    }

    /// Takes a row, with the results of subqueries for it.
    #[inline]
    pub fn row_with<S: ResultSink>(
        &mut self,
        rows: &[RowView<'_>],
        subqueries: &[Arc<ValueSet>],
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        let (plan, time_zone) = (self.plan, self.time_zone);
        let cx = Context { outer: self.outer, ..Context::constant(self.state, self.parameters) };
        let cx = Context { rows, subqueries, ..shorten(&cx) };
        let held = self.state.held();
        let flow = if let Some(groups) = &mut self.groups {
            groups.add(&cx)?;
            if plan.first_value_decides && groups.has_value() {
                Flow::Stop
            } else if groups.is_full() {
                Flow::Pause
            } else {
                Flow::Next
            }
        } else if plan.computed_once.is_some() {
            let values = computed_items(plan, &cx)?;
            let mut key = Vec::new();
            sort_key(plan, &values, &cx, &mut key)?;
            self.order_limit
                .take(&ValueRow { plan, state: self.state, values: &values, key: &key }, target)?
        } else {
            self.order_limit.take(&SourceRow { plan, cx, rows, time_zone }, target)?
        };
        self.state.release_to(held);
        Ok(flow)
    }

    /// The row of a SELECT without tables. Its items may be many, so that others have their turn between
    /// them.
    async fn only_row<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        executor.tick(1).await?;
        if self.groups.is_some() || self.plan.items.len() < ITEMS_IN_TURNS {
            self.row(&[], target)?;
            return self.make_room(executor, target).await;
        }
        let cx = Context {
            subqueries: self.subqueries,
            outer: self.outer,
            ..Context::constant(self.state, self.parameters)
        };
        let held = self.state.held();
        let mut values = Vec::with_capacity(self.plan.items.len());
        for item in &self.plan.items {
            let value = item.eval(&cx)?;
            self.state.gather(&value)?;
            values.push(value.into_owned());
            executor.tick(1).await?;
        }
        let mut key = Vec::new();
        sort_key(self.plan, &values, &cx, &mut key)?;
        let row = ValueRow { plan: self.plan, state: self.state, values: &values, key: &key };
        self.order_limit.take(&row, target)?;
        self.state.release_to(held);
        self.make_room(executor, target).await
    }

    /// Makes room where something is full: to be called whenever a row asked for a pause.
    pub async fn make_room<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        if let Some(groups) = &mut self.groups {
            groups.make_room(executor).await?;
        }
        self.order_limit.make_room(executor).await?;
        target.flush(executor).await
    }

    /// Hands on what was gathered or sorted. Returns how many rows were sent.
    pub async fn finish<'e, S: ResultSink>(
        &mut self,
        executor: &mut Executor<'e>,
        applied: &mut Option<Applied<'_, 'e>>,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        if let Some(groups) = self.groups.take() {
            self.finish_groups(*groups, executor, applied, target).await?;
        }
        self.order_limit.finish(executor, target).await
    }

    async fn finish_groups<'e, S: ResultSink>(
        &mut self,
        groups: Groups<'p>,
        executor: &mut Executor<'e>,
        applied: &mut Option<Applied<'_, 'e>>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let plan = self.plan;
        let Some(grouping) = &plan.grouping else { return Ok(()) };
        let base = Context {
            subqueries: self.subqueries,
            outer: self.outer,
            ..Context::constant(self.state, self.parameters)
        };
        let mut groups = groups.finish().await?;
        let mut key = Vec::new();
        while let Some(group) = groups.next(executor, &base, applied).await? {
            executor.tick(1).await?;
            let held = self.state.held();
            let aggregates: Vec<Value<'static>> = group
                .accumulators
                .into_iter()
                .zip(&grouping.aggregates)
                .map(|(accumulator, aggregate)| accumulator.finish(aggregate, self.state))
                .chain(group.kept)
                .collect();
            let views: Vec<RowView<'_>> = group.row.iter().map(|values| RowView::Values(values)).collect();
            let group_keys = group.keys;
            let mut cx = Context { rows: &views, aggregates: &aggregates, group_keys, ..shorten(&base) };
            if let Some(applied) = applied {
                applied.run(executor, &applied.apply.groups, &cx).await?;
                cx.subqueries = &applied.results;
            }
            let kept = match &grouping.having {
                Some(having) => having.truth(&cx)? == Some(true),
                None => true,
            };
            if self.state.measures.is_on() {
                let measured = Measured { kept: u64::from(kept), ..Measured::ROW };
                self.state.measures.note(plan, Part::Groups, &measured);
            }
            if !kept {
                continue;
            }
            let values = computed_items(plan, &cx)?;
            key.clear();
            sort_key(plan, &values, &cx, &mut key)?;
            let flow = self
                .order_limit
                .take(&ValueRow { plan, state: self.state, values: &values, key: &key }, target)?;
            self.state.release_to(held);
            match flow {
                Flow::Stop => return Ok(()),
                Flow::Pause => {
                    self.order_limit.make_room(executor).await?;
                    target.flush(executor).await?;
                }
                Flow::Next | Flow::Skip => {}
            }
        }
        Ok(())
    }
}

/// The items of a row.
fn computed_items(plan: &SelectPlan, cx: &Context<'_>) -> Result<Vec<Value<'static>>, SqlError> {
    let compute = |item: &Expr| {
        let value = item.eval(cx)?;
        cx.state.gather(&value)?;
        Ok(value.into_owned())
    };
    plan.items.iter().map(compute).collect()
}

/// Appends the sort key of a row whose items are computed.
fn sort_key(
    plan: &SelectPlan,
    values: &[Value<'static>],
    cx: &Context<'_>,
    key: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let items = plan.computed_once.as_deref().unwrap_or_default();
    for (at, (expr, descending)) in plan.order.iter().enumerate() {
        let item = items.get(at).copied().flatten().and_then(|item| values.get(usize::from(item)));
        let computed = if item.is_none() { expr.eval(cx)? } else { Value::Null };
        let value = item.unwrap_or(&computed);
        cx.state.hold(value.key_bytes_max())?;
        push_key(value, *descending, key);
    }
    Ok(())
}

/// A context with a shorter life.
fn shorten<'s>(cx: &Context<'s>) -> Context<'s> {
    *cx
}

/// Whether all conditions hold.
pub fn all_true(conditions: &[Condition], cx: &Context<'_>) -> Result<bool, SqlError> {
    for condition in conditions {
        let held = cx.state.held();
        let truth = condition.truth(cx)?;
        cx.state.release_to(held);
        if truth != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Executor<'_> {
    /// Executes a SELECT; its rows go to `target`. Returns how many there were.
    pub async fn select<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        if plan.unions.is_empty() {
            return self.select_part(plan, target).await;
        }
        let meter = WholeMeter::begin(self.state);
        let rows = match plan.operation {
            SetOperation::Union => self.union(plan, target).await?,
            SetOperation::Except | SetOperation::Intersect => self.set_operation(plan, target).await?,
        };
        meter.end_united(plan, self.state, rows);
        Ok(rows)
    }

    /// What a query is refused for before its columns are sent, or its rows change something.
    ///
    /// # Errors
    /// 1292, 1525.
    pub fn check_constants(&self, plan: &SelectPlan) -> Result<(), SqlError> {
        if plan.texts_of_days.is_empty() {
            return Ok(());
        }
        strict::check_texts_of_days(&plan.texts_of_days, &Context::constant(self.state, self.parameters))
    }

    /// How many rows a query without LIMIT hands on: `sql_select_limit` is for what the client asks for, not
    /// for what a statement reads.
    pub(super) fn rows_max<S: ResultSink>(&self, target: &Target<'_, S>) -> u64 {
        match target {
            Target::Sink(sink) if sink.is_client() => self.state.settings().sql_select_limit,
            _ => u64::MAX,
        }
    }

    /// Executes a SELECT that is no union, or the first of one.
    pub(super) async fn select_part<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        let meter = WholeMeter::begin(self.state);
        let subqueries = self.subqueries(&plan.subqueries).await?;
        let (state, parameters) = (self.state, self.parameters);
        let mut applied = Applied::new(&plan.subqueries, plan.apply.as_deref(), &subqueries);
        let cx =
            Context { subqueries: &subqueries, outer: self.outer, ..Context::constant(state, parameters) };
        let mut consumer = Consumer::new(plan, &cx, self.rows_max(target))?;
        let possible = all_true(&plan.constant_conditions, &cx)? && !consumer.is_done();
        match (&plan.steps[..], possible) {
            (_, false) => {}
            ([], true) if plan.windowed.is_some() => {
                if let Some(windowed) = &plan.windowed {
                    self.windowed(windowed, &mut consumer, target).await?;
                }
            }
            ([], true) => {
                self.wait_for_functions(plan, &cx).await?;
                match &mut applied {
                    // A subquery may name what others give.
                    Some(applied) => {
                        self.applied_row(&Views::new(), applied, &mut consumer, &cx, target).await?;
                    }
                    None => consumer.only_row(self, target).await?,
                }
            }
            ([step], true)
                if applied.is_none()
                    && plan.changed.is_empty()
                    && !state.measures.is_on()
                    && plan.sources[step.source].engine_table().is_some() =>
            {
                self.stream(plan, step, &mut consumer, &cx, target).await?;
            }
            (_, true) => self.join(plan, &mut consumer, &cx, &mut applied, target).await?,
        }
        let read = meter.so_far(state);
        let rows = consumer.finish(self, &mut applied, target).await?;
        meter.end(plan, state, rows, read);
        Ok(rows)
    }

    /// One stored table, not measured: rows go from the page through the consumer.
    async fn stream<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        step: &Step,
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let Some(table) = plan.sources[step.source].engine_table() else { return Ok(()) };
        let mode = self.read_mode(plan.locking);
        let needed = &plan.needed[step.source];
        if is_point(step, mode)
            && let Some(key) = integer_key(&step.path, &table.def.columns, cx)
        {
            let each = |view: RowView<'_>| consumer.row_if(&step.filter, view, target);
            let transaction = (self.transaction.engine_mut(), &self.state.handled);
            return show_row(transaction, table, &key, needed, each).await;
        }
        let mut charge = self.state.memory.charge();
        let Some(ranges) = self.ranges(&step.path, &table.def.columns, cx, &mut charge).await? else {
            return Ok(());
        };
        let conditions = if ranges.exact { &step.filter } else { &step.all_conditions };
        if is_point(step, mode)
            && ranges.exact
            && let Some(key) = ranges.ranges.only_key()
        {
            let each = |view: RowView<'_>| consumer.row_if(conditions, view, target);
            let transaction = (self.transaction.engine_mut(), &self.state.handled);
            return show_row(transaction, table, key, needed, each).await;
        }
        let mut scan = Cursor::new(table, &step.path, ranges.ranges, mode, needed, self.state);
        loop {
            let mut each = |view: RowView<'_>| consumer.row_if(conditions, view, target);
            if !scan.run(self.transaction.engine_mut(), &mut |view, _| each(view)).await? {
                return Ok(());
            }
            self.state.check_killed()?;
            consumer.make_room(self, target).await?;
        }
    }
}
