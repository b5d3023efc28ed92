//! UNION: the rows of all parts go to one [`OrderLimit`].

use std::future::Future;
use std::pin::Pin;

use super::order_limit::OrderLimit;
use super::result_row::ValueRow;
use super::{Executor, RowTaker, Target};
use crate::context::SqlContext;
use crate::exec::sort::push_key;
use crate::expr::functions::as_count;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::result::ResultSink;
use crate::value::Value;

/// Takes the rows of a part.
pub struct Part<'a, 't, 'p, S> {
    plan: &'p SelectPlan,
    state: &'p SqlContext,
    parameters: &'p [Value<'p>],
    outer: &'p [Value<'p>],
    order_limit: &'a mut OrderLimit<'p>,
    target: &'a mut Target<'t, S>,
    key: Vec<u8>,
}

impl<'a, 't, 'p, S> Part<'a, 't, 'p, S> {
    /// What takes rows of `plan` for the [`OrderLimit`].
    pub fn new(
        plan: &'p SelectPlan,
        executor: &Executor<'p>,
        order_limit: &'a mut OrderLimit<'p>,
        target: &'a mut Target<'t, S>,
    ) -> Part<'a, 't, 'p, S> {
        let Executor { state, parameters, outer, .. } = *executor;
        Part { plan, state, parameters, outer, order_limit, target, key: Vec::new() }
    }
}

impl<S: ResultSink> RowTaker for Part<'_, '_, '_, S> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        self.key.clear();
        if !self.plan.order.is_empty() {
            let views = [RowView::Values(&row)];
            let cx =
                Context { rows: &views, outer: self.outer, ..Context::constant(self.state, self.parameters) };
            for (expr, descending) in &self.plan.order {
                push_key(&expr.eval(&cx)?, *descending, &mut self.key);
            }
        }
        let row = ValueRow { plan: self.plan, state: self.state, values: &row, key: &self.key };
        self.order_limit.take(&row, self.target)?;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.order_limit.is_full() || self.target.is_full()
    }

    fn is_done(&self) -> bool {
        self.order_limit.is_done() || self.target.is_done()
    }

    fn make_room<'a>(
        &'a mut self,
        executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(async move {
            self.order_limit.make_room(executor).await?;
            self.target.flush(executor).await
        })
    }
}

impl<'e> Executor<'e> {
    /// How many rows the whole of several SELECTs skips and then hands on.
    pub(super) fn limits<S: ResultSink>(
        &self,
        plan: &SelectPlan,
        target: &Target<'_, S>,
    ) -> Result<(u64, u64), Failure> {
        Ok(self.limit(plan.limit.as_ref())?.unwrap_or((0, self.rows_max(target))))
    }

    /// How many rows a LIMIT skips and then hands on.
    pub(super) fn limit(&self, limit: Option<&(Expr, Option<Expr>)>) -> Result<Option<(u64, u64)>, Failure> {
        let Some((count, offset)) = limit else { return Ok(None) };
        let cx = self.context(&[]);
        let skip = offset.as_ref().map(|offset| offset.eval(&cx)).transpose()?.map_or(0, |v| as_count(&v));
        Ok(Some((skip, as_count(&count.eval(&cx)?))))
    }

    /// Executes a union. Returns how many rows there were.
    pub(super) async fn union<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        // A UNION without ALL removes the duplicates of everything before it too.
        let last_distinct = plan.unions.iter().rposition(|(all, _)| !all);
        let distinct = last_distinct.is_some();
        let limits = self.limits(plan, target)?;
        let mut order_limit =
            OrderLimit::new(plan, self.state, distinct, false, !plan.order.is_empty(), limits);
        if order_limit.is_done() {
            return Ok(0);
        }
        let parts = std::iter::once(None).chain(plan.unions.iter().map(|(_, part)| Some(part)));
        for (number, part) in parts.enumerate() {
            let mut taker = Part::new(plan, self, &mut order_limit, target);
            match part {
                None => self.first_part(plan, &mut taker).await?,
                Some(part) => self.select_into(part, &mut taker).await?,
            }
            order_limit.make_room(self).await?;
            target.flush(self).await?;
            if last_distinct.is_none_or(|last| number > last) {
                order_limit.end_distinct(self, target).await?;
            }
            if order_limit.is_done() || target.is_done() {
                break;
            }
        }
        order_limit.finish(self, target).await
    }

    /// The first of several SELECTs: the same plan without what applies to the whole.
    pub(super) async fn first_part(
        &mut self,
        plan: &SelectPlan,
        taker: &mut dyn RowTaker,
    ) -> Result<(), Failure> {
        let mut target: Target<'_, super::NoSink> = Target::Taker(taker);
        self.select_part(plan, &mut target).await?;
        Ok(())
    }
}
