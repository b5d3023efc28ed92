//! The query around a subquery: whose columns the subquery may name.
//!
//! A subquery that reads a column of a query around it is correlated. It never sees the outer row: what it
//! reads becomes a numbered value ([`Expr::Outer`]), and the list of its captures says where the query around
//! it finds each of them. A name of two queries further out is captured by both.

pub mod aggregates;

use std::cell::RefCell;
use std::ops::Range;

use super::Bound;
use crate::errors;
use crate::expr::select_list::Meaning;
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::aggregate::Aggregate;
use crate::plan::source::Source;
use crate::plan::{Planner, SelectPlan};
use crate::result::SqlError;

/// A name as it is written.
#[derive(Clone, Copy)]
pub struct WrittenName<'n> {
    pub database: Option<&'n str>,
    pub table: Option<&'n str>,
    pub name: &'n str,
}

/// Whether a query may have aggregates where a subquery of it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomForAggregates {
    /// WHERE, ON and their like.
    None,
    /// In an aggregate of that query already.
    InAggregate,
    /// It may, and has that many so far.
    After(usize),
}

/// What a subquery sees of the query around it.
pub struct Scope<'s> {
    sources: &'s [Source],
    /// Only these sources.
    visible: Range<usize>,
    /// The query around that one.
    outer: Option<&'s Scope<'s>>,
    captures: RefCell<Vec<(Expr, Type)>>,
    /// Whether the query around may have aggregates where the subquery stands.
    room: RoomForAggregates,
    /// Those that the subquery has added.
    aggregates: RefCell<Vec<Aggregate>>,
    /// How many subqueries the query around has.
    subqueries_before: usize,
    /// Those that came with the aggregates.
    subqueries: RefCell<Vec<SelectPlan>>,
}

impl<'s> Scope<'s> {
    /// The scope of a subquery of a query with these sources.
    pub fn new(
        sources: &'s [Source],
        visible: Range<usize>,
        outer: Option<&'s Scope<'s>>,
        room: RoomForAggregates,
        subqueries_before: usize,
    ) -> Scope<'s> {
        Scope {
            sources,
            visible,
            outer,
            captures: RefCell::default(),
            room,
            aggregates: RefCell::default(),
            subqueries_before,
            subqueries: RefCell::default(),
        }
    }

    /// What the subquery reads of the query around it, by the numbers of [`Expr::Outer`], and the aggregates
    /// that it has added to that one, with their subqueries.
    pub fn into_captures(self) -> (Vec<Expr>, Vec<Aggregate>, Vec<SelectPlan>) {
        let captures = self.captures.into_inner().into_iter().map(|(expr, _)| expr).collect();
        (captures, self.aggregates.into_inner(), self.subqueries.into_inner())
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

fn is_same(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Outer(left), Expr::Outer(right)) => left == right,
        _ => left.identity().is_some_and(|identity| right.identity() == Some(identity)),
    }
}
