//! ONLY_FULL_GROUP_BY: of the rows of a group only what is the same in all of them has a value.
//!
//! That is what is grouped by, aggregates, and columns that depend on what is grouped by (`dependence.rs`).
//! Without GROUP BY all rows are one group. WITH ROLLUP nothing depends, for the rows of NULLs. Windows are
//! over the groups. DISTINCT is a grouping by the whole select list, which ORDER BY is held to.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::aggregate::Aggregate;
use super::dependence::{ColumnNumber, Dependent, Rows};
use super::source::SourceKind;
use super::window::WindowCall;
use super::{Planner, SelectPlan};
use crate::errors;
use crate::expr::{Expr, functions};
use crate::result::SqlError;

/// What a query makes of its groups.
pub(super) struct Grouped<'g> {
    pub(super) rows: Rows<'g>,
    /// GROUP BY.
    pub(super) keys: &'g [Expr],
    /// WITH ROLLUP.
    pub(super) rollup: bool,
    /// The select list.
    pub(super) items: &'g [Expr],
    pub(super) having: Option<&'g Expr>,
    /// ORDER BY, with the places where its expressions are written, from 0.
    pub(super) order: &'g [(Expr, bool)],
    pub(super) places: &'g [usize],
    pub(super) aggregates: &'g [Aggregate],
    pub(super) windows: &'g [WindowCall],
    pub(super) subqueries: &'g [SelectPlan],
}

/// What an expression reads of a single row.
enum Bare {
    Column(ColumnNumber),
    Aggregate,
}

impl Planner<'_> {
    /// Checks what the SQL mode asks for: the groups of a query that has some, and ORDER BY beside DISTINCT.
    pub(super) fn check_groups(
        &self,
        query: &Grouped<'_>,
        grouped: bool,
        distinct: bool,
    ) -> Result<(), SqlError> {
        if !self.state.is_held_to_groups() || self.views.only_defined.get() {
            return Ok(());
        }
        if grouped {
            self.check_full_group(query)?;
        }
        if distinct { self.check_distinct_order(query) } else { Ok(()) }
    }

    /// No columns beside aggregates and groups that differ within a group.
    fn check_full_group(&self, grouped: &Grouped<'_>) -> Result<(), SqlError> {
        let known = self.grouped_columns(grouped)?;
        let dependent: OnceCell<Dependent> = OnceCell::new();
        let has = |column: ColumnNumber| -> Result<bool, SqlError> {
            if known.contains(&column) || grouped.rollup {
                return Ok(known.contains(&column));
            }
            if dependent.get().is_none() {
                let found = self.dependent(&grouped.rows, known.clone(), 0)?;
                drop(dependent.set(found));
            }
            Ok(dependent.get().is_some_and(|dependent| dependent.has(column)))
        };
        let check =
            |number: usize, place: &str, expr: &Expr| match self.bare(expr, grouped, grouped.keys, &has)? {
                Some(Bare::Column(column)) => {
                    let (number, shown) = (number + 1, shown(&grouped.rows, column));
                    Err(match grouped.keys.is_empty() {
                        true => {
                            errors::error(errors::MIX_OF_GROUP_FUNC_AND_FIELDS, &[&number, &place, &shown])
                        }
                        false => errors::error(errors::WRONG_FIELD_WITH_GROUP, &[&number, &place, &shown]),
                    })
                }
                Some(Bare::Aggregate) | None => Ok(()),
            };
        for (number, item) in grouped.items.iter().enumerate() {
            check(number, "SELECT list", item.unshared())?;
        }
        if let Some(having) = grouped.having {
            check(0, "HAVING clause", having)?;
        }
        for call in grouped.windows {
            let place = format!("PARTITION BY or ORDER BY clause of window '{}'", call.window);
            let sorted_by = call.partition.iter().chain(call.order.iter().map(|(expr, _)| expr));
            for (number, expr) in sorted_by.enumerate() {
                check(number, &place, expr)?;
            }
        }
        // One row needs no order.
        let sorted = grouped.order.iter().zip(grouped.places).filter(|_| !grouped.keys.is_empty());
        for ((expr, _), place) in sorted {
            check(*place, "ORDER BY clause", expr)?;
        }
        Ok(())
    }

    /// The columns that are grouped by. Where an expression of a derived table's columns is, those that the
    /// table computes may be just that: MySQL looks through many of these tables.
    fn grouped_columns(&self, grouped: &Grouped<'_>) -> Result<HashSet<ColumnNumber>, SqlError> {
        let mut known = HashSet::new();
        for key in grouped.keys {
            if let Expr::Column { source, column } = key.unshared() {
                known.insert((*source, *column));
                continue;
            }
            key.visit(&mut |inner| {
                if let Expr::Column { source, .. } = inner
                    && let Some(SourceKind::Derived(plan)) =
                        grouped.rows.sources.get(usize::from(*source)).map(|source| &source.kind)
                {
                    let computed = plan.items.iter().enumerate();
                    let computed = computed.filter(|(_, item)| !matches!(item, Expr::Column { .. }));
                    known.extend(computed.map(|(at, _)| (*source, at as u16)));
                }
                self.walk()
            });
        }
        self.outcome()?;
        Ok(known)
    }

    /// ORDER BY of a query with DISTINCT reads nothing but its select list, unless that has all that is
    /// grouped by: then no two rows are the same anyway.
    fn check_distinct_order(&self, grouped: &Grouped<'_>) -> Result<(), SqlError> {
        let selected = |key: &Expr| grouped.items.iter().any(|item| item.unshared() == key.unshared());
        if !grouped.keys.is_empty() && !grouped.rollup && grouped.keys.iter().all(selected) {
            return Ok(());
        }
        let columns = grouped.items.iter().filter_map(|item| match item.unshared() {
            Expr::Column { source, column } => Some((*source, *column)),
            _ => None,
        });
        let known: HashSet<ColumnNumber> = columns.collect();
        for ((expr, _), place) in grouped.order.iter().zip(grouped.places) {
            let number = place + 1;
            match self.bare(expr, grouped, grouped.items, &|column| Ok(known.contains(&column)))? {
                Some(Bare::Column(column)) => {
                    let shown = shown(&grouped.rows, column);
                    return Err(errors::error(
                        errors::FIELD_IN_ORDER_NOT_SELECT,
                        &[&number, &shown, &"DISTINCT"],
                    ));
                }
                Some(Bare::Aggregate) => {
                    return Err(errors::error(
                        errors::AGGREGATE_IN_ORDER_NOT_SELECT,
                        &[&number, &"DISTINCT"],
                    ));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// What is not so in an expression, in the arguments of its window functions or in what its subqueries
    /// read, unless the expression is one of `groups` as a whole. An aggregate is told last. What stands for
    /// an item of the select list has been looked at there.
    fn bare(
        &self,
        expr: &Expr,
        grouped: &Grouped<'_>,
        groups: &[Expr],
        has: &dyn Fn(ColumnNumber) -> Result<bool, SqlError>,
    ) -> Result<Option<Bare>, SqlError> {
        let is_group = |expr: &Expr| groups.iter().any(|group| group.unshared() == expr.unshared());
        // An item itself is to be looked at.
        let is_item = grouped.items.iter().any(|item| std::ptr::eq(item.unshared(), expr));
        let items = if is_item { &[] } else { grouped.items };
        let mut waiting: Vec<&Expr> = vec![expr];
        let mut aggregate = None;
        while let Some(expr) = waiting.pop() {
            if is_group(expr) {
                continue;
            }
            let (mut columns, mut calls, mut subqueries) = (Vec::new(), Vec::new(), Vec::new());
            self.visit_outside(expr, items, &mut |inner| match inner {
                Expr::Column { source, column } => columns.push((*source, *column)),
                Expr::Window(number) => calls.push(usize::from(*number)),
                Expr::Aggregate(_) => aggregate = Some(Bare::Aggregate),
                Expr::Subquery(number)
                | Expr::OfOnlyRow { subquery: number, .. }
                | Expr::Exists(number)
                | Expr::InSubquery { subquery: number, .. }
                | Expr::Quantified { subquery: number, .. } => subqueries.push(usize::from(*number)),
                _ => {}
            })?;
            for column in columns {
                if !has(column)? {
                    return Ok(Some(Bare::Column(column)));
                }
            }
            let calls = calls.into_iter().filter_map(|at| grouped.windows.get(at));
            waiting.extend(calls.flat_map(|call| call.function.exprs()));
            for plan in subqueries.into_iter().filter_map(|at| grouped.subqueries.get(at)) {
                let inside = self.columns_of_aggregates(&plan.captures, grouped)?;
                let is_inside = |capture: &Expr| match capture {
                    Expr::Column { source, column } => inside.contains(&(*source, *column)),
                    _ => false,
                };
                waiting.extend(plan.captures.iter().filter(|capture| !is_inside(capture)));
            }
        }
        Ok(aggregate)
    }

    /// What a subquery has read for an aggregate that it has given to this query: it reads that only there,
    /// as far as can be told.
    fn columns_of_aggregates(
        &self,
        captures: &[Expr],
        grouped: &Grouped<'_>,
    ) -> Result<Vec<ColumnNumber>, SqlError> {
        let (mut found, mut subqueries) = (Vec::new(), Vec::new());
        let mut look = |expr: &Expr, subqueries: &mut Vec<u16>| {
            expr.visit_subqueries(&mut |number| subqueries.push(number));
            expr.visit(&mut |inner| {
                if let Expr::Column { source, column } = inner {
                    found.push((*source, *column));
                }
                self.walk()
            });
        };
        for capture in captures {
            let Expr::Aggregate(number) = capture else { continue };
            let aggregate = grouped.aggregates.get(usize::from(*number));
            for argument in aggregate.iter().flat_map(|aggregate| &aggregate.arguments) {
                look(argument, &mut subqueries);
            }
        }
        while let Some(number) = subqueries.pop() {
            let plan = grouped.subqueries.get(usize::from(number));
            plan.iter().flat_map(|plan| &plan.captures).for_each(|capture| look(capture, &mut subqueries));
        }
        self.outcome()?;
        Ok(found)
    }

    /// Shows the parts of an expression, without those inside ANY_VALUE, those that are grouped by and rolled
    /// up, and those that stand for `items`.
    fn visit_outside(&self, expr: &Expr, items: &[Expr], see: &mut dyn FnMut(&Expr)) -> Result<(), SqlError> {
        let is_item = |expr: &Expr| items.iter().any(|item| item.identity() == expr.identity());
        // These are not shared where they have a name.
        let is_leaf_item = |expr: &Expr| {
            matches!(expr, Expr::Aggregate(_) | Expr::Subquery(_) | Expr::Exists(_)) && items.contains(expr)
        };
        // Parts that are inside and still to come.
        let mut inside = 0usize;
        expr.visit(&mut |inner| {
            if inside > 0 {
                inside -= 1;
                return self.walk();
            }
            let mut pass_over = |part: &Expr| {
                part.visit(&mut |_| {
                    inside += 1;
                    self.walk()
                });
            };
            match inner {
                Expr::Call(function, arguments) if **function == functions::ANY_VALUE => {
                    arguments.iter().for_each(pass_over);
                }
                Expr::Grouping(keys) => keys.iter().for_each(pass_over),
                Expr::RolledUp { value, .. } => pass_over(value),
                Expr::Shared(value) if is_item(inner) => pass_over(value),
                other if is_leaf_item(other) => {}
                other => see(other),
            }
            self.walk()
        });
        self.outcome()
    }
}

/// A column as errors name it.
fn shown(rows: &Rows<'_>, (source, column): ColumnNumber) -> String {
    let Some(source) = rows.sources.get(usize::from(source)) else { return String::new() };
    let name = source.columns.get(usize::from(column)).map_or("", |column| &column.name);
    match source.database.is_empty() {
        true => format!("{}.{name}", source.alias),
        false => format!("{}.{}.{name}", source.database, source.alias),
    }
}
