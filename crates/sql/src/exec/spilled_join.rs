//! A hash join whose table does not fit into its part of the statement's memory.
//!
//! Both sides are sorted by the key of the join, on disk where they are long: the rows of the table, and the
//! rows that the steps before have for it, which therefore run to their end first. Then the two are read side
//! by side: the rows of the table with one key are in memory at a time, and the steps behind go on for each
//! row before them with that key. A row whose key is NULL meets none; one whose value has no key of that kind
//! comes at the end, and the table is read for it as without a hash join. So it is for a key with more rows
//! than there is memory for.

use std::future::Future;
use std::pin::Pin;

use super::apply::Applied;
use super::cursor::Cursor;
use super::hash_lookup::{Class, own_conditions};
use super::join::{Input, Level, Memory, Next, Row, Views, copy, skip_inner_side, views};
use super::measure::{Meter, Part};
use super::select::all_true;
use super::sort::{RowSorter, SortedRows};
use super::spilled_values::{put, take};
use super::{Executor, Flow, KeptRows};
use crate::errors;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::memory;
use crate::plan::access_path::lookup_equalities;
use crate::plan::{SelectPlan, Step};
use crate::result::SqlError;
use crate::value::Value;

/// What the key of a row before the table begins with: NULL, a key, or a value that has none.
const NULL: u8 = 0;
const KEY: u8 = 1;
const NO_KEY: u8 = 2;

/// The rows of one key take this share of the memory that the statement has left at most.
const MEMORY_SHARE: usize = 2;

/// The two sides, sorted.
pub(super) struct SpilledJoin<'e> {
    table: SortedRows<'e>,
    before: SortedRows<'e>,
    /// The row of the table behind those of the group, with its key.
    ahead: Option<(Vec<u8>, Row)>,
    begun: bool,
    /// The key of the rows that are in memory.
    group: Vec<u8>,
}

/// Columns of a key, the kinds of their values, and what they are equal to.
type Key<'p> = Vec<(u16, Class, &'p Expr)>;

/// The columns of the key that this row has values of one kind for.
fn key_of_row<'p>(step: &'p Step, row: &[Value<'_>]) -> Key<'p> {
    let class_of = |column: u16| row.get(usize::from(column)).and_then(Class::of);
    let pairs = lookup_equalities(&step.all_conditions, step.source as u16).into_iter();
    pairs.filter_map(|(column, wanted)| Some((column, class_of(column)?, wanted))).collect()
}

/// Whether no outer join begins before a step and ends with it or behind it: its rows are missing or not when
/// all of its steps have been tried, so these stay together.
pub(super) fn may_spill(levels: &[Level<'_, '_>], depth: usize) -> bool {
    levels[..depth].iter().all(|level| level.step.inner_last.is_none_or(|last| last < depth))
}

fn put_row(row: Option<&Row>, out: &mut Vec<u8>) {
    let count = row.map_or(u32::MAX, |row| row.len() as u32);
    out.extend_from_slice(&count.to_ne_bytes());
    row.into_iter().flatten().for_each(|value| put(value, out));
}

fn take_row(rest: &mut &[u8]) -> Option<Row> {
    let (count, tail) = rest.split_first_chunk()?;
    *rest = tail;
    let count = u32::from_ne_bytes(*count);
    let values = (0..count).map_while(|_| take(rest).map(Value::into_owned));
    (count != u32::MAX).then(|| values.collect())
}

/// What a row before the table is sorted by.
fn key_before(key: &Key<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    out.push(KEY);
    for (_, class, wanted) in key {
        let value = wanted.eval(cx)?;
        let kind = match value.is_null() {
            true => NULL,
            false if class.key(&value, out) => continue,
            false => NO_KEY,
        };
        out.clear();
        out.push(kind);
        return Ok(());
    }
    Ok(())
}

impl<'e> Executor<'e> {
    /// Begins a join by sorting, from the row on that the steps before are at; `false` when it has to be a
    /// loop.
    pub(super) fn spill_join<'a, 'p>(
        &'a mut self,
        plan: &'p SelectPlan,
        levels: &'a mut [Level<'p, 'e>],
        depth: usize,
        cx: &'a Context<'_>,
        applied: &'a mut Option<Applied<'_, 'e>>,
    ) -> Pin<Box<dyn Future<Output = Result<bool, Failure>> + 'a>>
    where
        'p: 'a,
    {
        Box::pin(async move {
            let step = levels[depth].step;
            let (key, table) = match self.sorted_table(plan, step, cx).await {
                Ok(Some(sorted)) => sorted,
                Ok(None) => return Ok(false),
                // A loop needs less memory.
                Err(Failure::Sql(error)) if error.code == errors::OUT_OF_RESOURCES => return Ok(false),
                Err(failure) => return Err(failure),
            };
            let mut before = RowSorter::new(self.state);
            loop {
                let views = views(levels, depth, plan.sources.len());
                let cx_of_row = Context { rows: &views, ..*cx };
                let held = self.state.held();
                before.add(
                    |out| key_before(&key, &cx_of_row, out),
                    |out| {
                        levels[..depth].iter().for_each(|level| put_row(level.current.as_ref(), out));
                        Ok(())
                    },
                )?;
                self.state.release_to(held);
                drop(views);
                if before.is_full() {
                    before.spill(self.slice()).await?;
                }
                // The time of the steps before is theirs.
                levels[depth].meter.stop(self.state);
                let goes_on = self.next_before(plan, levels, depth, cx, applied).await?;
                levels[depth].meter.start(self.state);
                if !goes_on {
                    break;
                }
            }
            levels[depth].spilled = Some(Box::new(SpilledJoin {
                table,
                before: before.finish().await?,
                ahead: None,
                begun: false,
                group: Vec::new(),
            }));
            self.next_spilled(levels, depth).await
        })
    }

    /// The rows of the table, sorted by their key; `None` when they have none.
    async fn sorted_table<'p>(
        &mut self,
        plan: &'p SelectPlan,
        step: &'p Step,
        cx: &Context<'_>,
    ) -> Result<Option<(Key<'p>, SortedRows<'e>)>, Failure> {
        let Some(table) = plan.sources[step.source].engine_table() else { return Ok(None) };
        let mut charge = self.state.memory.charge();
        let ranges = self.ranges(&step.path, &table.def.columns, cx, &mut charge).await?;
        let Some(ranges) = ranges else { return Ok(None) };
        let (own, mode) = (own_conditions(step), self.source_mode(plan, step.source));
        let pairs = lookup_equalities(&step.all_conditions, step.source as u16);
        let mut sorter = RowSorter::new(self.state);
        let mut key: Option<Key<'p>> = None;
        let mut sound = true;
        let mut meter = Meter::new(self.state);
        meter.begin();
        meter.start(self.state);
        let (mut read, mut kept) = (0, 0);
        let mut cursor =
            Cursor::new(table, &step.path, ranges.ranges, mode, &plan.needed[step.source], self.state);
        let mut keep = |view: RowView<'_>, sorter: &mut RowSorter<'e>| -> Result<Flow, Failure> {
            read += 1;
            let mut views: Views<'_> = smallvec::smallvec![RowView::Nulls; plan.sources.len()];
            views[step.source] = view;
            if !all_true(&own, &Context { rows: &views, ..*cx })? {
                return Ok(Flow::Skip);
            }
            kept += 1;
            let row = copy(plan, step.source, view, cx);
            let is_null = |column: u16| row.get(usize::from(column)).is_none_or(Value::is_null);
            // NULL equals nothing.
            if pairs.iter().any(|(column, _)| is_null(*column)) {
                return Ok(Flow::Skip);
            }
            let key = key.get_or_insert_with(|| key_of_row(step, &row));
            sorter.add(
                |out| {
                    out.push(KEY);
                    sound &= !key.is_empty();
                    let mut parts = key.iter();
                    sound &= parts.all(|(column, class, _)| class.key(&row[usize::from(*column)], out));
                    Ok(())
                },
                |out| {
                    put_row(Some(&row), out);
                    Ok(())
                },
            )?;
            Ok(match (sound, sorter.is_full()) {
                (false, _) => Flow::Stop,
                (_, true) => Flow::Pause,
                _ => Flow::Next,
            })
        };
        while cursor.run(self.transaction.engine_mut(), &mut |view, _| keep(view, &mut sorter)).await? {
            if sorter.is_full() {
                sorter.spill(self.slice()).await?;
            }
            self.tick(1).await?;
        }
        let Some(key) = key.filter(|_| sound) else { return Ok(None) };
        let sorted = sorter.finish().await?;
        meter.stop(self.state);
        meter.rows(read, kept);
        if let Some(found) = meter.end(self.state) {
            self.state.measures.note(plan, Part::Hashed(step.source), &found);
        }
        Ok(Some((key, sorted)))
    }

    /// Goes on to the next row that the steps before the table have for it.
    async fn next_before<'p>(
        &mut self,
        plan: &'p SelectPlan,
        levels: &mut [Level<'p, 'e>],
        depth: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<bool, Failure> {
        let mut at = depth - 1;
        loop {
            match self.next_row(plan, levels, at, cx, applied).await? {
                Next::Nothing => match at.checked_sub(1) {
                    Some(before) => at = before,
                    None => return Ok(false),
                },
                next => {
                    if next == Next::Missing {
                        levels[at].missing += 1;
                        at = skip_inner_side(levels, at);
                    }
                    if at == depth - 1 {
                        return Ok(true);
                    }
                    at += 1;
                    self.open(plan, levels, at, cx, applied).await?;
                }
            }
        }
    }

    /// Puts the steps before the table at their next row, and the rows of the table with its key into memory;
    /// `false` at the end.
    pub(super) async fn next_spilled(
        &mut self,
        levels: &mut [Level<'_, 'e>],
        depth: usize,
    ) -> Result<bool, Failure> {
        self.tick(1).await?;
        let (before, rest) = levels.split_at_mut(depth);
        let level = &mut rest[0];
        let Some(spilled) = level.spilled.as_deref_mut() else { return Ok(false) };
        let Some((key, mut row)) = spilled.before.next().await? else { return Ok(false) };
        for level in before {
            level.current = take_row(&mut row);
            level.batch.clear();
            (level.ended, level.matched) = (true, true);
        }
        let first = !std::mem::replace(&mut spilled.begun, true);
        if key.first() == Some(&NO_KEY) {
            if !matches!(level.input, Input::Table(_)) {
                level.input = Input::Table(None);
            }
            return Ok(true);
        }
        if !first && key == spilled.group {
            return Ok(true);
        }
        spilled.group.clear();
        spilled.group.extend_from_slice(key);
        // What the last key had makes room for this one's.
        level.input = Input::Table(None);
        let bytes_max = self.memory_left() / MEMORY_SHARE;
        let mut rows = Some(KeptRows::new(self.state, usize::MAX));
        let mut bytes = 0;
        loop {
            let next = match spilled.ahead.take() {
                Some(ahead) => Some(ahead),
                None => {
                    let next = spilled.table.next().await?;
                    next.and_then(|(key, mut row)| Some((key.to_vec(), take_row(&mut row)?)))
                }
            };
            let Some((key, row)) = next else { break };
            if key > spilled.group {
                spilled.ahead = Some((key, row));
                break;
            }
            if key == spilled.group {
                bytes += memory::row_weight(&row);
                let fits = bytes <= bytes_max;
                rows = rows.and_then(|mut rows| (fits && rows.take_if_it_fits(row)).then_some(rows));
            }
            self.tick(1).await?;
        }
        // Too many rows of one key are read from the table again and again.
        if let Some(rows) = rows {
            level.input = Input::Memory(Box::new(Memory::of_one_key(rows)));
            level.conditions = &level.step.all_conditions;
        }
        Ok(true)
    }
}
