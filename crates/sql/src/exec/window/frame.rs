//! Frames: which rows of a partition are around each of its rows.

use std::cmp::Ordering;

use super::partition::Partition;
use super::{eval_on, weight};
use crate::ast::{BinaryOperator, FrameUnit, IntervalUnit};
use crate::exec::Executor;
use crate::expr::{Context, arithmetic, functions};
use crate::failure::Failure;
use crate::plan::window::{Bound, Offset, WindowCall};
use crate::result::SqlError;
use crate::value::{Value, compare};

/// An end of all frames of a partition.
enum Edge {
    Unbounded,
    /// The row itself.
    Row,
    /// Those that are equal to it.
    Peers,
    /// This many rows away.
    Rows {
        count: usize,
        following: bool,
    },
    /// Where what is sorted by differs by so much.
    Range {
        amount: Value<'static>,
        unit: Option<IntervalUnit>,
        following: bool,
    },
}

/// The frames of a partition.
pub struct Frames<'c> {
    start: Edge,
    end: Edge,
    /// What the rows are sorted by, where a frame asks for its values.
    keys: Vec<Value<'static>>,
    /// Where those that are not NULL begin and end.
    known: (usize, usize),
    descending: bool,
    base: &'c Context<'c>,
}

impl<'c> Frames<'c> {
    /// The frames of a call.
    pub async fn new(
        call: &WindowCall,
        partition: &mut Partition<'_>,
        executor: &Executor<'_>,
        base: &'c Context<'c>,
    ) -> Result<Frames<'c>, Failure> {
        let edge = |bound: &Bound| -> Result<Edge, SqlError> {
            Ok(match (bound, call.frame.unit) {
                (Bound::Unbounded, _) => Edge::Unbounded,
                (Bound::CurrentRow, FrameUnit::Rows) => Edge::Row,
                (Bound::CurrentRow, FrameUnit::Range) => Edge::Peers,
                (Bound::Offset(offset), unit) => offset_edge(offset, unit, &call.window, base)?,
            })
        };
        let (start, end) = (edge(&call.frame.start)?, edge(&call.frame.end)?);
        let ranges = [&start, &end].into_iter().any(|edge| matches!(edge, Edge::Range { .. }));
        let (mut keys, mut known) = (Vec::new(), (0, 0));
        let sorted_by = call.order.first().filter(|_| ranges);
        if let Some((expr, _)) = sorted_by {
            for at in 0..partition.count() {
                executor.tick(1).await?;
                let value = eval_on(expr, partition.at(at), base)?;
                partition.charge().grow(weight(&value))?;
                keys.push(value);
            }
            let first = keys.iter().position(|key| !key.is_null()).unwrap_or(keys.len());
            let end = keys.iter().rposition(|key| !key.is_null()).map_or(first, |last| last + 1);
            known = (first, end);
        }
        let descending = sorted_by.is_some_and(|(_, descending)| *descending);
        Ok(Frames { start, end, keys, known, descending, base })
    }

    /// The first row of the frame of a row, and the one behind its last.
    pub fn at(&self, at: usize, partition: &Partition<'_>) -> Result<(usize, usize), SqlError> {
        let count = partition.count();
        let first = match &self.start {
            Edge::Unbounded => 0,
            Edge::Row => at,
            Edge::Peers => partition.peers(at).0,
            Edge::Rows { count: rows, following: false } => at.saturating_sub(*rows),
            Edge::Rows { count: rows, following: true } => at.saturating_add(*rows).min(count),
            Edge::Range { amount, unit, following } => match self.limit(at, amount, *unit, *following)? {
                Limit::Peers => partition.peers(at).0,
                Limit::None => {
                    if *following {
                        self.known.1
                    } else {
                        self.known.0
                    }
                }
                Limit::Value(limit) => self.search(&limit, Ordering::is_lt),
            },
        };
        let end = match &self.end {
            Edge::Unbounded => count,
            Edge::Row => at + 1,
            Edge::Peers => partition.peers(at).1,
            Edge::Rows { count: rows, following: false } => (at + 1).saturating_sub(*rows),
            Edge::Rows { count: rows, following: true } => (at + 1).saturating_add(*rows).min(count),
            Edge::Range { amount, unit, following } => match self.limit(at, amount, *unit, *following)? {
                Limit::Peers => partition.peers(at).1,
                Limit::None => {
                    if *following {
                        self.known.1
                    } else {
                        self.known.0
                    }
                }
                Limit::Value(limit) => self.search(&limit, Ordering::is_le),
            },
        };
        Ok((first, end.max(first)))
    }

    /// The first of the known keys that is not `before` the limit, in the order of the window.
    fn search(&self, limit: &Value<'_>, before: fn(Ordering) -> bool) -> usize {
        let (first, end) = self.known;
        first
            + self.keys[first..end].partition_point(|key| {
                let order = compare::order(key, limit);
                before(if self.descending { order.reverse() } else { order })
            })
    }

    /// What is sorted by, at the end of a row's frame.
    fn limit(
        &self,
        at: usize,
        amount: &Value<'static>,
        unit: Option<IntervalUnit>,
        following: bool,
    ) -> Result<Limit, SqlError> {
        let Some(key) = self.keys.get(at).filter(|key| !key.is_null()) else { return Ok(Limit::Peers) };
        let less = following == self.descending;
        let held = self.base.state.held();
        let limit = match unit {
            Some(unit) => functions::date_shift(key.borrowed(), amount, unit, less, self.base)?,
            None => {
                let operator = if less { BinaryOperator::Subtract } else { BinaryOperator::Add };
                let exact = match key {
                    // The limit need not be a number of the column's type.
                    Value::Int(_) | Value::UInt(_) => Value::Decimal(key.to_decimal()),
                    other => other.borrowed(),
                };
                arithmetic::binary(operator, exact, amount.borrowed(), self.base.state)?
            }
        };
        let limit = limit.into_owned();
        self.base.state.release_to(held);
        Ok(if limit.is_null() { Limit::None } else { Limit::Value(limit) })
    }
}

/// How far a frame reaches by value.
enum Limit {
    /// As far as the rows that are equal: NULLs.
    Peers,
    /// Beyond all values.
    None,
    Value(Value<'static>),
}

fn offset_edge(offset: &Offset, unit: FrameUnit, window: &str, base: &Context<'_>) -> Result<Edge, SqlError> {
    let (amount, following) = (offset.value(unit, window, base)?, offset.following);
    Ok(match unit {
        FrameUnit::Range => Edge::Range { amount, unit: offset.unit, following },
        FrameUnit::Rows => {
            Edge::Rows { count: usize::try_from(amount.to_integer()).unwrap_or(usize::MAX), following }
        }
    })
}
