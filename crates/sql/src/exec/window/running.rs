//! What a row's place and the rows before it say: numbers, ranks, and aggregates of all rows so far.
//!
//! They are computed while the partition is read, a row or a run of equal rows at a time, so that it may be
//! larger than memory.

use super::partition::{Partition, Reach};
use crate::ast::FrameUnit;
use crate::exec::Executor;
use crate::exec::aggregate::Accumulator;
use crate::expr::{Context, RowView};
use crate::failure::Failure;
use crate::plan::aggregate::Aggregate;
use crate::plan::window::{Bound, Window, WindowCall, WindowFunction};
use crate::value::Value;

/// What is known of the rows of a partition so far.
#[derive(Default)]
pub struct Running {
    rows: u64,
    /// The number of the first row that is equal to the last one.
    rank: u64,
    dense_rank: u64,
    /// The aggregates of the window, in the order of its calls.
    gathered: Vec<Accumulator>,
}

/// The rows that a call has to see before it has a result for the row at hand.
fn reach_of(call: &WindowCall) -> Reach {
    match (&call.function, &call.frame.start, &call.frame.end) {
        (WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank, ..) => Reach::Row,
        (WindowFunction::Aggregate(_), Bound::Unbounded, Bound::CurrentRow) => match call.frame.unit {
            FrameUnit::Rows => Reach::Row,
            FrameUnit::Range => Reach::Peers,
        },
        _ => Reach::Partition,
    }
}

impl Reach {
    /// What the calls of a window have to see.
    pub fn of(window: &Window) -> Reach {
        window.calls.iter().map(|(_, call)| reach_of(call)).max().unwrap_or(Reach::Partition)
    }
}

fn aggregates(window: &Window) -> impl Iterator<Item = (usize, FrameUnit, &Aggregate)> {
    window.calls.iter().filter_map(|(column, call)| match &call.function {
        WindowFunction::Aggregate(aggregate) => Some((*column, call.frame.unit, aggregate)),
        _ => None,
    })
}

impl Executor<'_> {
    /// Puts the results into some rows of a partition that are equal.
    pub(super) async fn run_on(
        &self,
        window: &Window,
        running: &mut Running,
        part: &mut Partition<'_>,
        base: &Context<'_>,
    ) -> Result<(), Failure> {
        if part.begins_partition {
            let gathered = aggregates(window).map(|(_, _, aggregate)| Accumulator::new(aggregate)).collect();
            *running = Running { gathered, ..Running::default() };
        }
        if part.begins_peers {
            running.rank = running.rows + 1;
            running.dense_rank += 1;
        }
        for (column, call) in &window.calls {
            for at in 0..part.count() {
                self.tick(1).await?;
                let number = match call.function {
                    WindowFunction::RowNumber => running.rows + at as u64 + 1,
                    WindowFunction::Rank => running.rank,
                    WindowFunction::DenseRank => running.dense_rank,
                    _ => break,
                };
                part.set(at, *column, Value::UInt(number))?;
            }
        }
        for ((column, unit, aggregate), gathered) in aggregates(window).zip(&mut running.gathered) {
            for at in 0..part.count() {
                self.tick(1).await?;
                let held = base.state.held();
                let views = [RowView::Values(part.at(at))];
                gathered.add(aggregate, &Context { rows: &views, ..*base })?;
                base.state.release_to(held);
                if unit == FrameUnit::Rows {
                    part.set(at, column, gathered.clone().finish(aggregate, base.state))?;
                }
            }
            if unit == FrameUnit::Range {
                let result = gathered.clone().finish(aggregate, base.state);
                for at in 0..part.count() {
                    self.tick(1).await?;
                    part.set(at, column, result.clone())?;
                }
            }
        }
        running.rows += part.count() as u64;
        Ok(())
    }
}
