//! GROUP BY: groups in a table in memory, and rows of further groups on disk.
//!
//! While there is room every new key begins a group. When the table has used up its memory, rows of the
//! groups in it are still added to them, but rows of others go to a sorter by their keys; at the end they
//! come back group by group, so that one group at a time is enough. Rows of a group come in the order they
//! had. Results of subqueries that follow the rows are not put aside with them: those that aggregates need
//! are executed once more for a row that comes back.
//!
//! WITH ROLLUP all rows go to the sorter ([`Rollup`]).

use std::collections::HashMap;

use super::aggregate::Accumulator;
use super::apply::{Applied, with_results};
use super::join::Views;
use super::rollup::{self, Rollup};
use super::sort::RowSorter;
use super::spilled_values::{put, take};
use crate::background_drop::discard;
use crate::context::SqlContext;
use crate::errors;
use crate::exec::Executor;
use crate::exec::sort::SortedRows;
use crate::expr::{Context, RowView};
use crate::failure::Failure;
use crate::handler_counts::Handled;
use crate::memory::{Charge, refused, row_weight};
use crate::plan::{Grouping, SelectPlan};
use crate::result::SqlError;
use crate::value::{Value, compare};

/// A group being gathered.
pub struct Group {
    /// The first row: needed columns of each source.
    pub row: Vec<Vec<Value<'static>>>,
    /// The state of each aggregate.
    pub accumulators: Vec<Accumulator>,
    /// How many of the keys it has values of: not all of them where it is a super-aggregate.
    pub keys: u16,
    /// The values that it was made by of those keys that have another one each time.
    pub kept: Vec<Value<'static>>,
}

/// Keys from this number on are given back on a thread of their own.
const KEYS_APART: usize = 16_384;

/// Bytes that a group takes beside its row and key.
const GROUP_BYTES: usize = 128;

/// See the module's text.
pub struct Groups<'p> {
    plan: &'p SelectPlan,
    grouping: &'p Grouping,
    state: &'p SqlContext,
    groups: Vec<Group>,
    index: HashMap<Vec<u8>, usize>,
    memory: usize,
    charge: Charge<'p>,
    later: Option<RowSorter<'p>>,
    key: Vec<u8>,
}

impl<'p> Groups<'p> {
    /// No groups.
    pub fn new(plan: &'p SelectPlan, grouping: &'p Grouping, state: &'p SqlContext) -> Groups<'p> {
        if !grouping.keys.is_empty() {
            state.handled.add(Handled::TemporaryTables, 1);
        }
        Groups {
            plan,
            grouping,
            state,
            groups: Vec::new(),
            index: HashMap::new(),
            memory: 0,
            charge: state.memory.charge(),
            later: grouping.rollup.then(|| RowSorter::new(state)),
            key: Vec::new(),
        }
    }

    /// Takes a row in.
    pub fn add(&mut self, cx: &Context<'_>) -> Result<(), SqlError> {
        self.key.clear();
        if self.grouping.rollup {
            rollup::push_keys(&self.grouping.keys, cx, &mut self.key)?;
            return self.put_off(cx, &[]);
        }
        let mut kept = Vec::new();
        for (key, at) in self.grouping.keys.iter().zip(0..) {
            let value = key.eval(cx)?;
            cx.state.hold(value.key_bytes_max())?;
            compare::group_key(&value, &mut self.key);
            if self.grouping.kept.contains(&at) {
                kept.push(value.into_owned());
            }
        }
        // Without keys there is one group, and nothing to look it up by.
        let found = match self.grouping.keys.is_empty() {
            true => (!self.groups.is_empty()).then_some(0),
            false => self.index.get(&self.key).copied(),
        };
        let at = match found {
            Some(at) => at,
            None if self.later.is_some() => return self.put_off(cx, &kept),
            None if self.memory > self.state.temporary_memory() && !self.grouping.keys.is_empty() => {
                self.later = Some(RowSorter::new(self.state));
                return self.put_off(cx, &kept);
            }
            None => {
                let group = new_group(self.plan, self.grouping, cx.rows, self.state.time_zone_offset());
                self.memory += self.key.len() + group_weight(&group.row, group.accumulators.len());
                let group = Group { kept, ..group };
                self.memory += row_weight(&group.kept);
                self.groups.push(group);
                self.index.insert(self.key.clone(), self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        if let Some(group) = self.groups.get_mut(at) {
            self.memory += gather(group, self.grouping, cx)?;
        }
        if self.charge.reach(self.memory) { Ok(()) } else { Err(refused()) }
    }

    /// Keeps a row of a group that has no room now.
    fn put_off(&mut self, cx: &Context<'_>, kept: &[Value<'_>]) -> Result<(), SqlError> {
        let Some(later) = &mut self.later else { return Ok(()) };
        let (key, plan, time_zone) = (&self.key, self.plan, self.state.time_zone_offset());
        later.add(
            |out| {
                out.extend_from_slice(key);
                Ok(())
            },
            |out| {
                for (view, needed) in cx.rows.iter().zip(&plan.needed) {
                    needed.iter().for_each(|column| put(&view.column(*column, time_zone), out));
                }
                kept.iter().for_each(|value| put(value, out));
                Ok(())
            },
        )
    }

    /// Whether the first aggregate has a value that is not NULL.
    pub fn has_value(&self) -> bool {
        let first = self.groups.first().and_then(|group| group.accumulators.first());
        first.is_some_and(Accumulator::has_value)
    }

    /// Whether it is time to spill.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.later.as_ref().is_some_and(RowSorter::is_full)
    }

    /// Spills what is full.
    pub async fn make_room(&mut self, executor: &Executor<'_>) -> Result<(), Failure> {
        match &mut self.later {
            Some(later) if later.is_full() => later.spill(executor.slice()).await,
            _ => Ok(()),
        }
    }

    /// The groups, to be read one after the other.
    pub async fn finish(mut self) -> Result<FinishedGroups<'p>, Failure> {
        if !self.grouping.rollup && self.groups.is_empty() && self.grouping.keys.is_empty() {
            self.groups.push(new_group(self.plan, self.grouping, &[], 0));
        }
        let index = std::mem::take(&mut self.index);
        if index.len() >= KEYS_APART {
            discard(index);
        }
        let later = match self.later.take() {
            Some(later) => Some(later.finish().await?),
            None => None,
        };
        let rollup = self.grouping.rollup.then(|| Rollup::new(self.plan, self.grouping));
        Ok(FinishedGroups {
            plan: self.plan,
            grouping: self.grouping,
            groups: self.groups.into_iter(),
            later,
            rollup,
            begun: None,
            charge: self.charge,
        })
    }
}

/// Groups that have all their rows.
pub struct FinishedGroups<'p> {
    plan: &'p SelectPlan,
    grouping: &'p Grouping,
    groups: std::vec::IntoIter<Group>,
    later: Option<SortedRows<'p>>,
    rollup: Option<Rollup<'p>>,
    /// The key and first row of the next group of those that come from disk.
    begun: Option<(Vec<u8>, Vec<u8>)>,
    charge: Charge<'p>,
}

impl FinishedGroups<'_> {
    /// The next group; `base` is the context of the statement, `applied` has the subqueries that follow rows.
    pub async fn next<'e>(
        &mut self,
        executor: &mut Executor<'e>,
        base: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<Option<Group>, Failure> {
        if let Some(group) = self.groups.next() {
            return Ok(Some(group));
        }
        let Some(later) = &mut self.later else { return Ok(None) };
        if let Some(rollup) = &mut self.rollup {
            return rollup.next(later, &mut self.charge, executor, base, applied).await;
        }
        if self.begun.is_none() {
            self.begun = later.next().await?.map(|(key, row)| (key.to_vec(), row.to_vec()));
        }
        let Some((group_key, mut row)) = self.begun.take() else { return Ok(None) };
        let mut group: Option<Group> = None;
        let mut memory = 0;
        loop {
            let mut packed = &row[..];
            let rows = unpacked(self.plan, &mut packed)?;
            let views: Views<'_> = rows.iter().map(|values| RowView::Values(values)).collect();
            let held = base.state.held();
            let cx = with_results(applied, executor, Context { rows: &views, ..*base }).await?;
            let time_zone = base.state.time_zone_offset();
            let begun = group.get_or_insert_with(|| {
                // Those of the first row, as where the group is in memory.
                let kept = self.grouping.kept.iter().map_while(|_| take(&mut packed)).map(Value::into_owned);
                let kept = kept.collect();
                Group { kept, ..new_group(self.plan, self.grouping, &views, time_zone) }
            });
            memory += gather(begun, self.grouping, &cx)?;
            base.state.release_to(held);
            if !self.charge.reach(memory) {
                return Err(refused().into());
            }
            executor.tick(1).await?;
            match later.next().await? {
                Some((key, next)) if key == group_key => {
                    row.clear();
                    row.extend_from_slice(next);
                }
                next => {
                    self.begun = next.map(|(key, row)| (key.to_vec(), row.to_vec()));
                    return Ok(group);
                }
            }
        }
    }
}

/// A row that comes from the sorter: needed columns of each source. What follows them is left.
pub fn unpacked(plan: &SelectPlan, packed: &mut &[u8]) -> Result<Vec<Vec<Value<'static>>>, SqlError> {
    let mut rows = Vec::with_capacity(plan.sources.len());
    for (source, needed) in plan.sources.iter().zip(&plan.needed) {
        let mut values = vec![Value::Null; source.columns.len()];
        for column in needed {
            let value = take(packed)
                .ok_or_else(|| errors::error(errors::INTERNAL_ERROR, &[&"a sorted row is too short"]))?;
            values[usize::from(*column)] = value.into_owned();
        }
        rows.push(values);
    }
    Ok(rows)
}

/// Adds a row to its group; returns by how many bytes that has grown.
pub fn gather(group: &mut Group, grouping: &Grouping, cx: &Context<'_>) -> Result<usize, SqlError> {
    let mut grown = 0;
    for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&grouping.aggregates) {
        grown += accumulator.add(aggregate, cx)?;
    }
    Ok(grown)
}

/// A group that begins with this row.
pub fn new_group(plan: &SelectPlan, grouping: &Grouping, rows: &[RowView<'_>], time_zone: i32) -> Group {
    let mut row = Vec::with_capacity(plan.sources.len());
    for (source, needed) in plan.sources.iter().zip(&plan.needed) {
        let mut values = vec![Value::Null; source.columns.len()];
        if let Some(view) = rows.get(row.len()) {
            for column in needed {
                values[usize::from(*column)] = view.column(*column, time_zone).into_owned();
            }
        }
        row.push(values);
    }
    let accumulators = grouping.aggregates.iter().map(Accumulator::new).collect();
    Group { row, accumulators, keys: u16::MAX, kept: Vec::new() }
}

/// Bytes that a new group takes: it has this row and that number of aggregates.
pub fn group_weight(row: &[Vec<Value<'static>>], aggregates: usize) -> usize {
    let values = row.iter().map(|row| row_weight(row)).sum::<usize>();
    GROUP_BYTES + values + aggregates * size_of::<Accumulator>()
}
