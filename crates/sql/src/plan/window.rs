//! Window functions: a query whose rows are numbered, ranked and aggregated in the order of windows.
//!
//! Such a query is two: one inside, which has the tables, conditions and groups, and whose rows are the
//! values that windows and output are made of; and one around it, whose expressions read those values and
//! the results of the window functions, and which removes duplicates, sorts and limits. A row between them
//! has first a place for each function, then the values of the inner query. A part of an expression that has
//! no window function in it is such a value, as large as can be.

use super::aggregate::Aggregate;
use super::order_by_members::order_by_members;
use super::{Planner, SelectPlan};
use crate::ast::{FrameUnit, IntervalUnit, WindowSpec};
use crate::errors;
use crate::expr::bind::window::{UNNAMED, check_count};
use crate::expr::rollup::for_each_child;
use crate::expr::types::Type;
use crate::expr::{Context, Expr, NODE_BYTES};
use crate::result::{ResultColumns, SqlError};
use crate::value::Value;

/// What is computed over a window.
#[derive(Clone, Debug)]
pub enum WindowFunction {
    /// `ROW_NUMBER()`.
    RowNumber,
    /// `RANK()`.
    Rank,
    /// `DENSE_RANK()`.
    DenseRank,
    /// `PERCENT_RANK()`.
    PercentRank,
    /// `CUME_DIST()`.
    CumeDist,
    /// `NTILE(n)`.
    Tiles(Expr),
    /// `LAG(value, offset, default)`, `LEAD(…)`.
    Shift {
        /// Of the other row.
        value: Expr,
        /// How many rows away it is.
        offset: Expr,
        /// Where there is none.
        default: Expr,
        /// LEAD.
        forward: bool,
    },
    /// `NTH_VALUE(value, n)`; without a number LAST_VALUE.
    Value(Expr, Option<Expr>),
    /// An aggregate.
    Aggregate(Aggregate),
}

impl WindowFunction {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Tiles(_) => "ntile",
            WindowFunction::Shift { forward: false, .. } => "lag",
            WindowFunction::Shift { forward: true, .. } => "lead",
            WindowFunction::Value(_, Some(_)) => "nth_value",
            WindowFunction::Value(_, None) => "last_value",
            WindowFunction::Aggregate(aggregate) => aggregate.kind.name(),
        }
    }

    /// What it reads of the rows.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            WindowFunction::Shift { value, default, .. } => vec![value, default],
            WindowFunction::Value(value, _) => vec![value],
            WindowFunction::Aggregate(aggregate) => aggregate.arguments.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// How far from the row at hand a frame ends.
#[derive(Clone, Debug)]
pub struct Offset {
    /// So much.
    pub amount: Expr,
    /// Of these.
    pub unit: Option<IntervalUnit>,
    /// Behind it rather than before.
    pub following: bool,
}

impl Offset {
    /// The amount, if it is one that a frame of this unit can have.
    ///
    /// # Errors
    /// 3586 for one that is not, 1210 for a parameter that is no integer where rows are counted.
    pub fn value(&self, unit: FrameUnit, window: &str, cx: &Context<'_>) -> Result<Value<'static>, SqlError> {
        let amount = self.amount.eval(cx)?.into_owned();
        let fits = match (&amount, unit) {
            (Value::Null, _) => false,
            (Value::Int(count), FrameUnit::Rows) => *count >= 0,
            (Value::UInt(_), FrameUnit::Rows) => true,
            (_, FrameUnit::Rows) if matches!(self.amount, Expr::Parameter(_)) => {
                return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"EXECUTE"]));
            }
            (_, FrameUnit::Rows) => false,
            (amount, FrameUnit::Range) => amount.to_double() >= 0.0,
        };
        if fits { Ok(amount) } else { Err(errors::error(errors::WINDOW_FRAME_ILLEGAL, &[&window])) }
    }
}

/// An end of a frame.
#[derive(Clone, Debug)]
pub enum Bound {
    /// That of the partition.
    Unbounded,
    /// The row at hand, or those that are equal to it.
    CurrentRow,
    /// Further away.
    Offset(Offset),
}

/// A frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What offsets count.
    pub unit: FrameUnit,
    /// Its first row.
    pub start: Bound,
    /// Its last row.
    pub end: Bound,
}

impl Frame {
    /// Whether its offsets can be, which is asked before there is a row, and also for functions that have no
    /// frame.
    ///
    /// # Errors
    /// Of [`Offset::value`].
    pub fn check(&self, window: &str, cx: &Context<'_>) -> Result<(), SqlError> {
        for bound in [&self.start, &self.end] {
            if let Bound::Offset(offset) = bound {
                offset.value(self.unit, window, cx)?;
            }
        }
        Ok(())
    }
}

/// A bound call of a window function.
#[derive(Debug)]
pub struct WindowCall {
    /// What is computed.
    pub function: WindowFunction,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY (true: descending).
    pub order: Vec<(Expr, bool)>,
    /// The frame.
    pub frame: Frame,
    /// Name of the window, for errors.
    pub window: String,
}

impl WindowCall {
    /// Its expressions.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let of_function: Vec<&mut Expr> = match &mut self.function {
            WindowFunction::Shift { value, default, .. } => vec![value, default],
            WindowFunction::Value(value, _) => vec![value],
            WindowFunction::Aggregate(aggregate) => aggregate.arguments.iter_mut().collect(),
            _ => Vec::new(),
        };
        let order = self.order.iter_mut().map(|(expr, _)| expr);
        of_function.into_iter().chain(&mut self.partition).chain(order)
    }
}

/// Calls over rows in one order.
#[derive(Debug)]
pub struct Window {
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY (true: descending).
    pub order: Vec<(Expr, bool)>,
    /// The functions, and where in the row their results go.
    pub calls: Vec<(usize, WindowCall)>,
}

/// The inside of a query with window functions.
#[derive(Debug)]
pub struct Windowed {
    /// Gives the values.
    pub input: SelectPlan,
    /// How many places a row has for results.
    pub results: usize,
    /// The windows, one after the other.
    pub windows: Vec<Window>,
}

impl Windowed {
    /// The value of the query inside that an expression around it reads; `None` for a function's result.
    pub fn value_inside<'w>(&'w self, expr: &'w Expr) -> Option<&'w Expr> {
        match expr {
            Expr::Column { source: 0, column } => {
                self.input.items.get(usize::from(*column).checked_sub(self.results)?)
            }
            other => Some(other),
        }
    }
}

/// Parts expressions into what the inner query computes and what is made of that.
struct Split<'s> {
    planner: &'s Planner<'s>,
    results: usize,
    values: Vec<Expr>,
}

/// Whether it is made of the result of a window function.
pub fn has_window(expr: &Expr) -> bool {
    !expr.visit(&mut |inner| !matches!(inner, Expr::Window(_)))
}

impl Split<'_> {
    fn split(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        self.planner.work(NODE_BYTES)?;
        match expr {
            Expr::Window(number) => {
                *expr = Expr::Column { source: 0, column: *number };
                return Ok(());
            }
            Expr::Literal(_) | Expr::Parameter(_) => return Ok(()),
            other if !has_window(other) => return self.take(other),
            Expr::Shared(inner) => {
                let mut own = (**inner).clone();
                self.split(&mut own)?;
                *expr = own;
                return Ok(());
            }
            Expr::InSubquery { .. } | Expr::Quantified { .. } | Expr::Row(_) => {
                return Err(errors::unsupported("a window function in a row or beside IN (SELECT …)"));
            }
            _ => {}
        }
        for_each_child(expr, &mut |child| self.split(child))
    }

    /// Makes an expression a value of the inner query.
    fn take(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let identity = expr.identity();
        let known = identity.and_then(|_| self.values.iter().position(|value| value.identity() == identity));
        let at = known.unwrap_or(self.values.len());
        let column =
            u16::try_from(self.results + at).map_err(|_| errors::error(errors::TOO_MANY_FIELDS, &[]))?;
        let value = std::mem::replace(expr, Expr::Column { source: 0, column });
        if known.is_none() {
            self.values.push(value);
        }
        Ok(())
    }
}

impl Planner<'_> {
    /// A query with these window functions, of one that is bound and not finished.
    pub(super) fn windowed(
        &self,
        mut plan: SelectPlan,
        mut calls: Vec<WindowCall>,
        named: &[(String, WindowSpec)],
    ) -> Result<SelectPlan, SqlError> {
        check_count(named.len() + calls.iter().filter(|call| call.window == UNNAMED).count())?;
        let mut split = Split { planner: self, results: calls.len(), values: Vec::new() };
        plan.order.iter_mut().for_each(|(expr, _)| order_by_members(expr, &plan.sources, &[]));
        for call in &mut calls {
            let order = call.order.iter_mut().map(|(expr, _)| expr);
            call.partition
                .iter_mut()
                .chain(order)
                .for_each(|expr| order_by_members(expr, &plan.sources, &[]));
            call.exprs_mut().try_for_each(|expr| split.split(expr))?;
        }
        let mut items = std::mem::take(&mut plan.items);
        items.iter_mut().try_for_each(|expr| split.split(expr))?;
        let mut order = std::mem::take(&mut plan.order);
        order.iter_mut().try_for_each(|(expr, _)| split.split(expr))?;
        let results = calls.len();
        let mut windows: Vec<Window> = Vec::new();
        for (at, call) in calls.into_iter().enumerate() {
            self.work(NODE_BYTES)?;
            match windows.iter_mut().find(|w| w.partition == call.partition && w.order == call.order) {
                Some(window) => window.calls.push((at, call)),
                None => windows.push(Window {
                    partition: call.partition.clone(),
                    order: call.order.clone(),
                    calls: vec![(at, call)],
                }),
            }
        }
        let types = std::mem::replace(&mut plan.types, vec![Type::NULL; split.values.len()]);
        plan.items = split.values;
        let columns = std::mem::replace(&mut plan.columns, ResultColumns::new(Vec::new()));
        let outer = SelectPlan {
            distinct: std::mem::take(&mut plan.distinct),
            order,
            limit: plan.limit.take(),
            counts_all: std::mem::take(&mut plan.counts_all),
            ..SelectPlan::of_items(items, types, columns)
        };
        self.finish_pending(&mut plan)?;
        Ok(SelectPlan { windowed: Some(Box::new(Windowed { input: plan, results, windows })), ..outer })
    }
}
