//! The query around a subquery: whose columns the subquery may name.
//!
//! A subquery that reads a column of a query around it is correlated. It never sees the outer row: what it
//! reads becomes a numbered value ([`Expr::Outer`]), and the list of its captures says where the query around
//! it finds each of them. A name of two queries further out is captured by both. Where the subquery stands
//! behind the select list (HAVING, ORDER BY), it may name an entry of that, too, if the tables have no such
//! column.

pub mod aggregates;

use std::cell::RefCell;
use std::ops::Range;

use super::Bound;
use crate::errors;
use crate::expr::select_list::{Meaning, SelectList};
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::aggregate::Aggregate;
use crate::plan::source::Source;
use crate::plan::window::has_window;
use crate::plan::{Planner, SelectPlan};
use crate::privilege::Privileges;
use crate::result::SqlError;

/// A name as it is written.
#[derive(Clone, Copy)]
pub struct WrittenName<'n> {
    pub database: Option<&'n str>,
    pub table: Option<&'n str>,
    pub name: &'n str,
}

impl std::fmt::Display for WrittenName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for qualifier in [self.database, self.table].into_iter().flatten() {
            write!(f, "{qualifier}.")?;
        }
        f.write_str(self.name)
    }
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
    captures: RefCell<Vec<Captured>>,
    /// The select list of the query around, where there is one already.
    select_list: RefCell<SelectList>,
    /// Whether the query around may have aggregates where the subquery stands.
    room: RoomForAggregates,
    /// Those that the subquery has added.
    aggregates: RefCell<Vec<Aggregate>>,
    /// How many subqueries the query around has.
    subqueries_before: usize,
    /// Those that came with the aggregates.
    subqueries: RefCell<Vec<SelectPlan>>,
}

/// What a subquery reads of the query around it.
#[derive(Clone)]
struct Captured {
    expr: Expr,
    ty: Type,
    /// It is named as an entry of the select list: an aggregate over it is the subquery's own.
    listed: bool,
}

/// What a subquery has read of the query around it, and left there.
pub struct Read {
    /// What it reads, by the numbers of [`Expr::Outer`].
    pub captures: Vec<Expr>,
    /// Aggregates that it has added to the query around.
    pub aggregates: Vec<Aggregate>,
    /// The subqueries in them.
    pub subqueries: Vec<SelectPlan>,
    /// The select list of the query around, which gets it back.
    pub select_list: SelectList,
}

impl<'s> Scope<'s> {
    /// The scope of a subquery of a query with these sources, where that has no select list and can have no
    /// aggregates.
    pub fn new(sources: &'s [Source], visible: Range<usize>, outer: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope {
            sources,
            visible,
            outer,
            captures: RefCell::default(),
            select_list: RefCell::new(SelectList::empty()),
            room: RoomForAggregates::None,
            aggregates: RefCell::default(),
            subqueries_before: 0,
            subqueries: RefCell::default(),
        }
    }

    /// The subquery stands behind this select list.
    pub fn with_select_list(self, select_list: SelectList) -> Scope<'s> {
        Scope { select_list: RefCell::new(select_list), ..self }
    }

    /// The query around may have such aggregates there, and has that many subqueries.
    pub fn with_room(self, room: RoomForAggregates, subqueries_before: usize) -> Scope<'s> {
        Scope { room, subqueries_before, ..self }
    }

    /// What the subquery has read.
    pub fn into_read(self) -> Read {
        Read {
            captures: self.captures.into_inner().into_iter().map(|captured| captured.expr).collect(),
            aggregates: self.aggregates.into_inner(),
            subqueries: self.subqueries.into_inner(),
            select_list: self.select_list.into_inner(),
        }
    }

    /// The column of this name as the subquery sees it.
    pub fn capture(
        &self,
        planner: &Planner<'_>,
        written: WrittenName<'_>,
        clause: &str,
    ) -> Result<Option<Bound>, SqlError> {
        let Some(found) = self.find(planner, written, clause)? else { return Ok(None) };
        let ty = found.ty;
        let mut captures = self.captures.borrow_mut();
        let is_known = |other: &Captured| is_same(&other.expr, &found.expr) && other.listed == found.listed;
        let known = captures.iter().position(is_known);
        let number = known.unwrap_or_else(|| {
            captures.push(found);
            captures.len() - 1
        });
        let number = u16::try_from(number)
            .map_err(|_| errors::unsupported("more than 65535 columns of an outer query in a subquery"))?;
        Ok(Some((Expr::Outer(number), ty)))
    }

    /// The column of a source that the subquery reads by this number.
    pub fn source_column(&self, number: u16) -> Option<(&'s Source, u16)> {
        match self.captures.borrow().get(usize::from(number))?.expr.unshared() {
            Expr::Column { source, column } => Some((self.sources.get(usize::from(*source))?, *column)),
            Expr::Outer(further) => self.outer?.source_column(*further),
            _ => None,
        }
    }

    /// The column of this name as the query around the subquery sees it.
    fn find(
        &self,
        planner: &Planner<'_>,
        WrittenName { database, table, name }: WrittenName<'_>,
        clause: &str,
    ) -> Result<Option<Captured>, SqlError> {
        planner.work(self.visible.len() * NODE_BYTES)?;
        let mut meaning = Meaning::Nothing;
        for (at, source) in self.sources.iter().enumerate().take(self.visible.end).skip(self.visible.start) {
            if source.answers_to(database, table)
                && let Some(column) = source.column_number(name)
                && (meaning == Meaning::Nothing || !source.is_merged(column))
            {
                if meaning == Meaning::Nothing {
                    planner.require_column(source, name, Privileges::SELECT)?;
                }
                meaning.add((at as u16, column));
            }
        }
        match meaning {
            Meaning::One((source, column)) => {
                let (expr, ty) = self.sources[usize::from(source)].column(source, column);
                Ok(Some(Captured { expr, ty, listed: false }))
            }
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &clause])),
            Meaning::Nothing => match (self.listed(table, name, clause)?, self.outer) {
                (None, Some(outer)) => {
                    let found = outer.capture(planner, WrittenName { database, table, name }, clause)?;
                    Ok(found.map(|(expr, ty)| Captured { expr, ty, listed: false }))
                }
                (listed, _) => Ok(listed),
            },
        }
    }

    /// The entry of the select list that has this name.
    fn listed(&self, table: Option<&str>, name: &str, clause: &str) -> Result<Option<Captured>, SqlError> {
        if table.is_some() {
            return Ok(None);
        }
        match self.select_list.borrow_mut().named(name) {
            Meaning::Nothing => Ok(None),
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &clause])),
            Meaning::One((expr, _)) if has_window(&expr) => {
                Err(errors::error(errors::WINDOW_INVALID_ALIAS_USE, &[&name]))
            }
            Meaning::One((expr, _)) if !expr.visit(&mut |inner| !matches!(inner, Expr::Aggregate(_))) => {
                Err(errors::error(errors::ILLEGAL_REFERENCE, &[&name, &"reference to group function"]))
            }
            Meaning::One((expr, ty)) => Ok(Some(Captured { expr, ty, listed: true })),
        }
    }
}

fn is_same(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Outer(left), Expr::Outer(right)) => left == right,
        _ => left.identity().is_some_and(|identity| right.identity() == Some(identity)),
    }
}
