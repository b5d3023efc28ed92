//! The query around a subquery: whose columns the subquery may name.
//!
//! A subquery that reads a column of a query around it is correlated. It never sees the outer row: what it
//! reads becomes a numbered value ([`Expr::Outer`]), and the list of its captures says where the query around
//! it finds each of them. A name of two queries further out is captured by both.

use std::cell::RefCell;
use std::ops::Range;

use super::Bound;
use crate::errors;
use crate::expr::rollup::for_each_child;
use crate::expr::select_list::Meaning;
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::Planner;
use crate::plan::aggregate::Aggregate;
use crate::plan::source::Source;
use crate::result::SqlError;

/// A name as it is written.
#[derive(Clone, Copy)]
pub struct WrittenName<'n> {
    pub database: Option<&'n str>,
    pub table: Option<&'n str>,
    pub name: &'n str,
}

/// What a subquery sees of the query around it.
pub struct Scope<'s> {
    sources: &'s [Source],
    /// Only these sources.
    visible: Range<usize>,
    /// The query around that one.
    outer: Option<&'s Scope<'s>>,
    captures: RefCell<Vec<(Expr, Type)>>,
    /// How many aggregates the query around has, where it may have some.
    aggregates_before: Option<usize>,
    /// Those that the subquery has added.
    aggregates: RefCell<Vec<Aggregate>>,
}

impl<'s> Scope<'s> {
    /// The scope of a subquery of a query with these sources.
    pub fn new(
        sources: &'s [Source],
        visible: Range<usize>,
        outer: Option<&'s Scope<'s>>,
        aggregates_before: Option<usize>,
    ) -> Scope<'s> {
        let aggregates = RefCell::default();
        Scope { sources, visible, outer, captures: RefCell::default(), aggregates_before, aggregates }
    }

    /// What the subquery reads of the query around it, by the numbers of [`Expr::Outer`], and the aggregates
    /// that it has added to that one.
    pub fn into_captures(self) -> (Vec<Expr>, Vec<Aggregate>) {
        let captures = self.captures.into_inner().into_iter().map(|(expr, _)| expr).collect();
        (captures, self.aggregates.into_inner())
    }

    /// Whether the query around may have aggregates where the subquery stands.
    pub fn may_take_aggregates(&self) -> bool {
        self.aggregates_before.is_some()
    }

    /// An aggregate of the subquery that reads nothing but columns of the query around it belongs to that
    /// one, if there may be one where the subquery stands: then its value there. `None`: it is the
    /// subquery's.
    pub fn takes_aggregate(&self, aggregate: &Aggregate) -> Result<Option<Bound>, SqlError> {
        let mut aggregate = aggregate.clone();
        let mut whole = true;
        let orders = aggregate.order.iter_mut().map(|(expr, _)| expr);
        for expr in aggregate.arguments.iter_mut().chain(orders) {
            whole &= to_columns(expr, &self.captures.borrow())?;
        }
        if !whole {
            // It may be one of a query further out, and is nowhere right as the subquery's own.
            return Err(errors::unsupported("an aggregate of a query that is not the one right around it"));
        }
        let Some(before) = self.aggregates_before else { return Ok(None) };
        let ty = aggregate.ty;
        let mut aggregates = self.aggregates.borrow_mut();
        let value = Expr::Aggregate(super::number_of(before + aggregates.len())?);
        aggregates.push(aggregate);
        let mut captures = self.captures.borrow_mut();
        captures.push((value, ty));
        Ok(Some((Expr::Outer(super::number_of(captures.len() - 1)?), ty)))
    }

    /// The column of this name as the subquery sees it.
    pub fn capture(
        &self,
        planner: &Planner<'_>,
        written: WrittenName<'_>,
        clause: &str,
    ) -> Result<Option<Bound>, SqlError> {
        let Some((expr, ty)) = self.find(planner, written, clause)? else { return Ok(None) };
        let mut captures = self.captures.borrow_mut();
        let known = captures.iter().position(|(other, _)| is_same(other, &expr));
        let number = known.unwrap_or_else(|| {
            captures.push((expr, ty));
            captures.len() - 1
        });
        let number = u16::try_from(number)
            .map_err(|_| errors::unsupported("more than 65535 columns of an outer query in a subquery"))?;
        Ok(Some((Expr::Outer(number), ty)))
    }

    /// The column of this name as the query around the subquery sees it.
    fn find(
        &self,
        planner: &Planner<'_>,
        WrittenName { database, table, name }: WrittenName<'_>,
        clause: &str,
    ) -> Result<Option<Bound>, SqlError> {
        planner.work(self.visible.len() * NODE_BYTES)?;
        let mut meaning = Meaning::Nothing;
        for (at, source) in self.sources.iter().enumerate().take(self.visible.end).skip(self.visible.start) {
            if source.answers_to(database, table)
                && let Some(column) = source.column_number(name)
                && (meaning == Meaning::Nothing || !source.is_merged(column))
            {
                meaning.add((at as u16, column));
            }
        }
        match meaning {
            Meaning::One((source, column)) => {
                Ok(Some(self.sources[usize::from(source)].column(source, column)))
            }
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &clause])),
            Meaning::Nothing => match self.outer {
                Some(outer) => outer.capture(planner, WrittenName { database, table, name }, clause),
                None => Ok(None),
            },
        }
    }
}

/// Puts the columns in that the query around has for what it is read of; false where it has others.
fn to_columns(expr: &mut Expr, captures: &[(Expr, Type)]) -> Result<bool, SqlError> {
    match expr {
        Expr::Outer(number) => match captures.get(usize::from(*number)) {
            Some((column @ Expr::Column { .. }, _)) => *expr = column.clone(),
            _ => return Ok(false),
        },
        Expr::Shared(_) => return Ok(false),
        _ => {}
    }
    let mut whole = true;
    for_each_child(expr, &mut |child| {
        whole &= to_columns(child, captures)?;
        Ok(())
    })?;
    Ok(whole)
}

fn is_same(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Outer(left), Expr::Outer(right)) => left == right,
        _ => left.identity().is_some_and(|identity| right.identity() == Some(identity)),
    }
}
