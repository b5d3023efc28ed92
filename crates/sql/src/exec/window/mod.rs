//! Window functions: rows sorted by the keys of a window, computed partition by partition.
//!
//! The rows of the inner query ([`Windowed`]) go through a sorter for each window, one window after the
//! other, and from the last one to the consumer of the query around it. Between the sorters one partition
//! is in memory, charged to the statement, where frames may reach from any of its rows to any other;
//! otherwise a few of its rows ([`Reach`]). A frame that begins where the one before began takes its new
//! rows in; one that moves on has the rows behind it taken out again where the aggregate can do that
//! exactly, and otherwise it is computed from its first row.

mod frame;
mod partition;
mod running;

use std::future::Future;
use std::pin::Pin;

use self::frame::Frames;
use self::partition::{Partition, Partitions, Reach};
use self::running::Running;
use super::Flow;
use super::select::Consumer;
use super::sort::{RowSorter, push_key};
use super::spilled_values::put;
use super::{Executor, RowTaker, Target};
use crate::errors;
use crate::exec::aggregate::Accumulator;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::memory::weight;
use crate::plan::aggregate::Aggregate;
use crate::plan::window::{Window, WindowCall, WindowFunction, Windowed};
use crate::result::{ResultSink, SqlError};
use crate::value::Value;

/// A row between the windows.
type Row = Vec<Value<'static>>;

/// Bytes behind a key that say where the part of PARTITION BY ends in it.
const END_BYTES: usize = size_of::<u32>();

/// Evaluates on one row.
fn eval_on(expr: &Expr, row: &[Value<'static>], base: &Context<'_>) -> Result<Value<'static>, SqlError> {
    let held = base.state.held();
    let views = [RowView::Values(row)];
    let cx = Context { rows: &views, ..*base };
    let value = expr.eval(&cx)?.into_owned();
    base.state.release_to(held);
    Ok(value)
}

/// Gives a row to the sorter of a window.
fn sort(
    sorter: &mut RowSorter<'_>,
    window: &Window,
    row: &[Value<'static>],
    base: &Context<'_>,
) -> Result<(), SqlError> {
    let views = [RowView::Values(row)];
    let cx = Context { rows: &views, ..*base };
    let held = base.state.held();
    sorter.add(
        |key| {
            for expr in &window.partition {
                push_key(&expr.eval(&cx)?, false, key);
            }
            let end = key.len() as u32;
            for (expr, descending) in &window.order {
                push_key(&expr.eval(&cx)?, *descending, key);
            }
            key.extend_from_slice(&end.to_be_bytes());
            Ok(())
        },
        |out| {
            row.iter().for_each(|value| put(value, out));
            Ok(())
        },
    )?;
    base.state.release_to(held);
    Ok(())
}

/// Takes the rows of the inner query.
struct Input<'a, 's> {
    windowed: &'a Windowed,
    window: &'a Window,
    sorter: &'a mut RowSorter<'s>,
    base: Context<'a>,
}

impl RowTaker for Input<'_, '_> {
    fn take(&mut self, values: Row) -> Result<(), Failure> {
        let mut row = vec![Value::Null; self.windowed.results];
        row.extend(values);
        Ok(sort(self.sorter, self.window, &row, &self.base)?)
    }

    fn is_full(&self) -> bool {
        self.sorter.is_full()
    }

    fn make_room<'a>(
        &'a mut self,
        executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(self.sorter.spill(executor.slice()))
    }
}

impl Executor<'_> {
    /// Executes the inside of `plan` and gives its rows, with the results of the functions, to the consumer.
    pub(super) async fn windowed<S: ResultSink>(
        &mut self,
        windowed: &Windowed,
        consumer: &mut Consumer<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let state = self.state;
        let base = Context { outer: self.outer, ..Context::constant(state, self.parameters) };
        let Some(window) = windowed.windows.first() else { return Ok(()) };
        for (_, call) in windowed.windows.iter().flat_map(|window| &window.calls) {
            call.frame.check(&call.window, &base)?;
        }
        let mut sorter = RowSorter::new(state);
        self.select_into(&windowed.input, &mut Input { windowed, window, sorter: &mut sorter, base }).await?;
        for (at, window) in windowed.windows.iter().enumerate() {
            let next = windowed.windows.get(at + 1);
            let mut partitions = Partitions::new(sorter.finish().await?);
            sorter = RowSorter::new(state);
            let reach = Reach::of(window);
            let mut running = Running::default();
            while let Some(mut partition) = partitions.next(self, reach).await? {
                if reach < Reach::Partition {
                    self.run_on(window, &mut running, &mut partition, &base).await?;
                } else {
                    for (column, call) in &window.calls {
                        self.compute(call, *column, &mut partition, &base).await?;
                    }
                }
                for row in partition.rows() {
                    self.tick(1).await?;
                    if let Some(next) = next {
                        sort(&mut sorter, next, row, &base)?;
                        if sorter.is_full() {
                            sorter.spill(self.slice()).await?;
                        }
                        continue;
                    }
                    match consumer.row(&[RowView::Values(row)], target)? {
                        Flow::Stop => return Ok(()),
                        Flow::Pause => consumer.make_room(self, target).await?,
                        Flow::Next | Flow::Skip => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts the results of one function into the rows of a partition.
    async fn compute(
        &self,
        call: &WindowCall,
        column: usize,
        partition: &mut Partition<'_>,
        base: &Context<'_>,
    ) -> Result<(), Failure> {
        match &call.function {
            WindowFunction::Aggregate(aggregate) => {
                return self.aggregate(call, aggregate, column, partition, base).await;
            }
            WindowFunction::Value(value, number) => {
                return self.value_of_frame(call, (value, number.as_ref()), column, partition, base).await;
            }
            WindowFunction::Shift { value, offset, default, forward } => {
                let offset = offset_of(offset, if *forward { "lead" } else { "lag" }, base)?;
                for at in 0..partition.count() {
                    self.tick(1).await?;
                    let other = if *forward { at.checked_add(offset) } else { at.checked_sub(offset) };
                    let result = match other.and_then(|other| partition.row(other)) {
                        Some(other) => eval_on(value, other, base)?,
                        None => eval_on(default, partition.at(at), base)?,
                    };
                    partition.set(at, column, result)?;
                }
                return Ok(());
            }
            _ => {}
        }
        let count = partition.count();
        let tiles = match &call.function {
            WindowFunction::Tiles(tiles) => {
                let tiles = offset_of(tiles, "ntile", base)?;
                if tiles == 0 {
                    return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"ntile"]).into());
                }
                tiles
            }
            _ => 1,
        };
        let mut groups = 0;
        for at in 0..count {
            self.tick(1).await?;
            let (first, end) = partition.peers(at);
            groups += u64::from(first == at);
            let result = match call.function {
                WindowFunction::RowNumber => Value::UInt(at as u64 + 1),
                WindowFunction::Rank => Value::UInt(first as u64 + 1),
                WindowFunction::DenseRank => Value::UInt(groups),
                WindowFunction::PercentRank => Value::Double(first as f64 / (count - 1).max(1) as f64),
                WindowFunction::CumeDist => Value::Double(end as f64 / count as f64),
                _ => Value::UInt(tile(at, count, tiles)),
            };
            partition.set(at, column, result)?;
        }
        Ok(())
    }

    /// FIRST_VALUE, NTH_VALUE; without a number LAST_VALUE.
    async fn value_of_frame(
        &self,
        call: &WindowCall,
        (value, number): (&Expr, Option<&Expr>),
        column: usize,
        partition: &mut Partition<'_>,
        base: &Context<'_>,
    ) -> Result<(), Failure> {
        let number = match number {
            None => None,
            Some(number) => match offset_of(number, "nth_value", base)? {
                0 => return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"nth_value"]).into()),
                number => Some(number),
            },
        };
        let frames = Frames::new(call, partition, self, base).await?;
        for at in 0..partition.count() {
            self.tick(1).await?;
            let (first, end) = frames.at(at, partition)?;
            let wanted = match number {
                None => end.checked_sub(1),
                Some(number) => first.checked_add(number - 1),
            };
            let result = match wanted.filter(|wanted| (first..end).contains(wanted)) {
                Some(wanted) => eval_on(value, partition.at(wanted), base)?,
                None => Value::Null,
            };
            partition.set(at, column, result)?;
        }
        Ok(())
    }

    async fn aggregate(
        &self,
        call: &WindowCall,
        aggregate: &Aggregate,
        column: usize,
        partition: &mut Partition<'_>,
        base: &Context<'_>,
    ) -> Result<(), Failure> {
        let frames = Frames::new(call, partition, self, base).await?;
        let mut gathered = Accumulator::new(aggregate);
        let (mut first, mut end) = (0, 0);
        let mut result: Option<Value<'static>> = None;
        for at in 0..partition.count() {
            self.tick(1).await?;
            let (new_first, new_end) = frames.at(at, partition)?;
            if result.is_none() || (new_first, new_end) != (first, end) {
                let moves_on = new_first >= first && new_first <= end && new_end >= end;
                if !(moves_on && (new_first == first || gathered.can_remove(aggregate))) {
                    gathered = Accumulator::new(aggregate);
                    (first, end) = (new_first, new_first);
                }
                for left in first..new_first {
                    self.tick(1).await?;
                    let views = [RowView::Values(partition.at(left))];
                    gathered.remove(aggregate, &Context { rows: &views, ..*base })?;
                }
                for entered in end..new_end {
                    self.tick(1).await?;
                    let held = base.state.held();
                    let views = [RowView::Values(partition.at(entered))];
                    gathered.add(aggregate, &Context { rows: &views, ..*base })?;
                    base.state.release_to(held);
                }
                (first, end) = (new_first, new_end);
                result = Some(gathered.clone().finish(aggregate, base.state));
            }
            partition.set(at, column, result.clone().unwrap_or(Value::Null))?;
        }
        Ok(())
    }
}

/// Which of `tiles` parts a row is in: the first ones have one row more.
fn tile(at: usize, count: usize, tiles: usize) -> u64 {
    let (size, longer) = (count / tiles, count % tiles);
    let in_longer = longer * (size + 1);
    let tile = if at < in_longer { at / (size + 1) } else { longer + (at - in_longer) / size.max(1) };
    tile as u64 + 1
}

/// The number of rows that an argument says.
fn offset_of(expr: &Expr, function: &str, base: &Context<'_>) -> Result<usize, SqlError> {
    let value = match expr.eval(base)? {
        Value::Int(value) => usize::try_from(value).ok(),
        Value::UInt(value) => Some(usize::try_from(value).unwrap_or(usize::MAX)),
        _ => None,
    };
    value.ok_or_else(|| errors::error(errors::WRONG_ARGUMENTS, &[&function]))
}
