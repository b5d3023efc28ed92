//! Aggregates that stand in a subquery and belong to a query around it: whose they are, and how they get
//! there.
//!
//! An aggregate belongs to the innermost query of whose columns it reads one, if there may be aggregates
//! where the subquery stands in that one. Else it belongs to the outermost query between that may have some,
//! and at last to its own. One that reads no columns at all is its own query's first of all. Its arguments
//! move there, with the subqueries in them, and what they read is read as it is found there.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::{Bound, number_of};
use super::{Captured, RoomForAggregates, Scope};
use crate::errors;
use crate::expr::rollup::for_each_child;
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::aggregate::Aggregate;
use crate::plan::{Planner, SelectPlan};
use crate::result::SqlError;

/// An aggregate on its way to the query that it belongs to.
pub struct Moving<'p> {
    pub planner: &'p Planner<'p>,
    pub aggregate: Aggregate,
    /// The subqueries of its arguments.
    pub subqueries: Vec<SelectPlan>,
    /// What the arguments call the first of them.
    pub first: usize,
}

impl<'p> Moving<'p> {
    /// What is read of the queries around, by the numbers of [`Expr::Outer`]. `None`: something is read of
    /// the aggregate's own query.
    pub fn reads(&self) -> Result<Option<Vec<u16>>, SqlError> {
        let (mut own, mut outer) = (false, Vec::new());
        let captures = self.subqueries.iter().flat_map(|plan| &plan.captures);
        let orders = self.aggregate.order.iter().map(|(expr, _)| expr);
        for part in self.aggregate.arguments.iter().chain(orders).chain(captures) {
            part.visit(&mut |inner| {
                match inner {
                    Expr::Column { .. } => own = true,
                    Expr::Outer(number) => outer.push(*number),
                    _ => {}
                }
                !own && self.planner.walk()
            });
        }
        self.planner.outcome()?;
        Ok((!own).then_some(outer))
    }

    /// Changes each part of it that names something of its query.
    fn change(&mut self, change: &dyn Fn(&mut Expr) -> Result<(), SqlError>) -> Result<(), SqlError> {
        let captures = self.subqueries.iter_mut().flat_map(|plan| &mut plan.captures);
        let orders = self.aggregate.order.iter_mut().map(|(expr, _)| expr);
        let mut walk = Walk { planner: self.planner, change, shared: HashMap::new() };
        let mut parts = self.aggregate.arguments.iter_mut().chain(orders).chain(captures);
        parts.try_for_each(|part| walk.each(part))
    }
}

/// Changes the leaves of expressions. What stands in several places still does afterwards.
struct Walk<'w> {
    planner: &'w Planner<'w>,
    change: &'w dyn Fn(&mut Expr) -> Result<(), SqlError>,
    /// By their addresses before, which they keep as long as they are here.
    shared: HashMap<*const Expr, (Arc<Expr>, Arc<Expr>)>,
}

impl Walk<'_> {
    fn each(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        self.planner.work(NODE_BYTES)?;
        if let Expr::Shared(inner) = expr {
            let before = inner.clone();
            if let Some((_, changed)) = self.shared.get(&Arc::as_ptr(&before)) {
                *inner = changed.clone();
                return Ok(());
            }
            let mut own = (*before).clone();
            self.each(&mut own)?;
            *inner = Arc::new(own);
            self.shared.insert(Arc::as_ptr(&before), (before, inner.clone()));
            return Ok(());
        }
        (self.change)(expr)?;
        for_each_child(expr, &mut |child| self.each(child))
    }
}

/// The number of a subquery that an expression is or has as its operand.
fn subquery_mut(expr: &mut Expr) -> Option<&mut u16> {
    match expr {
        Expr::Subquery(number)
        | Expr::OfOnlyRow { subquery: number, .. }
        | Expr::Exists(number)
        | Expr::InSubquery { subquery: number, .. }
        | Expr::Quantified { subquery: number, .. } => Some(number),
        _ => None,
    }
}

impl Scope<'_> {
    /// Whether one of the queries around may have aggregates where the subquery stands.
    pub fn may_take_aggregates(&self) -> bool {
        self.around().any(|scope| scope.room != RoomForAggregates::None)
    }

    /// How many queries further out an aggregate of the subquery belongs that reads this, if it is not the
    /// subquery's own. `allowed`: the subquery may have aggregates where this one stands.
    pub fn level_of_aggregate(&self, reads: &[u16], allowed: bool) -> Result<Option<usize>, SqlError> {
        // An aggregate of a query around is one value here: this one is over the rows of a query inside that.
        let (mut innermost, mut inside) = (None, usize::MAX);
        for number in reads {
            match self.level_of(*number)? {
                Some((level, true)) => inside = inside.min(level),
                Some((level, false)) => {
                    innermost = Some(innermost.map_or(level, |innermost: usize| innermost.min(level)));
                }
                None => {}
            }
        }
        if innermost.is_some_and(|level| level >= inside) {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        }
        if innermost.is_none() && allowed {
            return Ok(None);
        }
        let may = |scope: &Scope<'_>| scope.room != RoomForAggregates::None;
        if let Some(level) = innermost
            && self.around().nth(level - 1).is_some_and(may)
        {
            return Ok(Some(level));
        }
        let between = self.around().take(innermost.unwrap_or(inside) - 1);
        // As in MySQL: the last that it meets on its way out.
        Ok(between.enumerate().filter(|(_, scope)| may(scope)).last().map(|(at, _)| at + 1))
    }

    /// How many queries further out that is which the subquery reads, and whether it is an aggregate there.
    /// `None` for an entry of a select list.
    fn level_of(&self, number: u16) -> Result<Option<(usize, bool)>, SqlError> {
        let mut number = number;
        for (at, scope) in self.around().enumerate() {
            match scope.captures.borrow().get(usize::from(number)) {
                Some(Captured { listed: true, .. }) => return Ok(None),
                Some(Captured { expr: Expr::Outer(further), .. }) => number = *further,
                Some(Captured { expr: Expr::Column { .. }, .. }) => return Ok(Some((at + 1, false))),
                Some(Captured { expr: Expr::Aggregate(_), .. }) => return Ok(Some((at + 1, true))),
                _ => return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[])),
            }
        }
        Err(errors::error(errors::INTERNAL_ERROR, &[&"a column of no query"]))
    }

    /// This query and those around it, from the innermost outwards.
    fn around(&self) -> impl Iterator<Item = &Scope<'_>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    /// Gives an aggregate to the query that is this many levels further out than the subquery: its value as
    /// the subquery reads it.
    pub fn take_aggregate(&self, mut moving: Moving<'_>, level: usize) -> Result<Bound, SqlError> {
        let captures = self.captures.borrow();
        let found = |expr: &mut Expr| match expr {
            Expr::Outer(number) => match captures.get(usize::from(*number)) {
                Some(captured) => {
                    *expr = captured.expr.clone();
                    Ok(())
                }
                None => Err(errors::error(errors::INTERNAL_ERROR, &[&"a column of no query"])),
            },
            // Of its own query, which it leaves.
            Expr::Aggregate(_) | Expr::RolledUp { .. } => {
                Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]))
            }
            _ => Ok(()),
        };
        moving.change(&found)?;
        drop(captures);
        let ty = moving.aggregate.ty;
        let value = match (level, self.outer) {
            (0 | 1, _) | (_, None) => Expr::Aggregate(self.add_aggregate(moving)?),
            (_, Some(outer)) => outer.take_aggregate(moving, level - 1)?.0,
        };
        Ok((Expr::Outer(self.add_capture(value, ty)?), ty))
    }

    /// Adds it to the query around the subquery.
    fn add_aggregate(&self, mut moving: Moving<'_>) -> Result<u16, SqlError> {
        let RoomForAggregates::After(before) = self.room else {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        };
        let mut subqueries = self.subqueries.borrow_mut();
        let now = self.subqueries_before + subqueries.len();
        let first = moving.first;
        moving.change(&|expr| {
            if let Some(number) = subquery_mut(expr) {
                let why = "an aggregate of a query around that names a subquery of the select list";
                let at = usize::from(*number).checked_sub(first).ok_or_else(|| errors::unsupported(why))?;
                *number = number_of(at + now)?;
            }
            Ok(())
        })?;
        subqueries.append(&mut moving.subqueries);
        let mut aggregates = self.aggregates.borrow_mut();
        aggregates.push(moving.aggregate);
        number_of(before + aggregates.len() - 1)
    }

    fn add_capture(&self, value: Expr, ty: Type) -> Result<u16, SqlError> {
        let mut captures = self.captures.borrow_mut();
        captures.push(Captured { expr: value, ty, listed: false });
        number_of(captures.len() - 1)
    }
}
