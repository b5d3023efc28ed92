//! The end of a query: duplicates removed, rows sorted, LIMIT counted, what is left handed on.
//!
//! Rows of a SELECT come here, and those of all parts of a UNION together. A row is taken with everything
//! latched that its scan latches, so taking it never waits; it asks for a pause ([`Flow::Pause`]) where
//! something is full, and [`OrderLimit::make_room`] then spills.

use super::cursor::Flow;
use super::distinct::{Distinct, Seen};
use super::sort::RowSorter;
use super::spilled_values::{put_bytes, take_bytes};
use super::{Executor, Target, output};
use crate::context::SqlContext;
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::result::{ResultSink, SqlError};
use crate::value::{Value, compare};

/// A row about to be taken: what it appends where it is wanted.
pub trait Row {
    /// Appends its sort key.
    fn sort_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends what makes it the same as another.
    fn group_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends itself, to be read by [`hand_on`].
    fn pack(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Gives itself to the target.
    fn emit<S: ResultSink>(&self, target: &mut Target<'_, S>) -> Result<(), Failure>;
}

/// See the module's text.
pub struct OrderLimit<'p> {
    plan: &'p SelectPlan,
    state: &'p SqlContext,
    /// Rows that have been seen, while duplicates are removed.
    pub distinct: Option<Box<Distinct<'p>>>,
    /// Equal sort keys are equal rows: DISTINCT is done by the sort.
    distinct_by_sort: bool,
    sorter: Option<Box<RowSorter<'p>>>,
    skip: u64,
    left: u64,
    /// Rows that the LIMIT lets pass or skips, and those behind it as far as they are counted.
    seen: u64,
    key: Vec<u8>,
}

impl<'p> OrderLimit<'p> {
    /// The end of `plan`, which hands on `left` rows after the first `skip`.
    pub fn new(
        plan: &'p SelectPlan,
        state: &'p SqlContext,
        distinct: bool,
        distinct_by_sort: bool,
        sorts: bool,
        (skip, left): (u64, u64),
    ) -> OrderLimit<'p> {
        let sorter = sorts.then(|| match distinct_by_sort || plan.counts_all {
            true => Box::new(RowSorter::new(state)),
            false => Box::new(RowSorter::of_first(state, skip.saturating_add(left))),
        });
        let distinct = distinct.then(|| Box::new(Distinct::new(state)));
        OrderLimit { plan, state, distinct, distinct_by_sort, sorter, skip, left, seen: 0, key: Vec::new() }
    }

    /// Whether no further row can matter.
    pub fn is_done(&self) -> bool {
        self.left == 0 && !self.plan.counts_all
    }

    /// Counts a row that is about to be handed on. Whether it is among those wanted.
    #[inline]
    fn count(&mut self) -> bool {
        if self.left == 0 {
            self.seen += u64::from(self.plan.counts_all);
            return false;
        }
        self.seen += 1;
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Whether something is to be spilled.
    pub fn is_full(&self) -> bool {
        self.distinct.as_ref().is_some_and(|distinct| distinct.is_full())
            || self.sorter.as_ref().is_some_and(|sorter| sorter.is_full())
    }

    /// Takes a row.
    pub fn take<S: ResultSink>(
        &mut self,
        row: &impl Row,
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        if let Some(distinct) = &mut self.distinct {
            self.key.clear();
            row.group_key(&mut self.key)?;
            match distinct.look(&self.key)? {
                Seen::New => {}
                Seen::Before => return Ok(Flow::Next),
                Seen::Unknown => {
                    let Some(later) = &mut distinct.later else { return Ok(Flow::Next) };
                    let key = &self.key;
                    let sorts = self.sorter.is_some();
                    later.add(
                        |out| {
                            out.extend_from_slice(key);
                            Ok(())
                        },
                        |out| {
                            let mut sort_key = Vec::new();
                            if sorts {
                                row.sort_key(&mut sort_key)?;
                            }
                            put_bytes(&sort_key, out);
                            row.pack(out)
                        },
                    )?;
                    return Ok(if later.is_full() { Flow::Pause } else { Flow::Next });
                }
            }
        }
        if let Some(sorter) = &mut self.sorter {
            sorter.add(|out| row.sort_key(out), |out| row.pack(out))?;
            return Ok(if sorter.is_full() { Flow::Pause } else { Flow::Next });
        }
        if self.count() {
            row.emit(target)?;
        }
        Ok(match self.is_done() {
            true => Flow::Stop,
            _ if target.is_done() => Flow::Stop,
            _ if target.is_full() => Flow::Pause,
            _ => Flow::Next,
        })
    }

    /// Spills what is full.
    pub async fn make_room(&mut self, executor: &Executor<'_>) -> Result<(), Failure> {
        if let Some(later) = self.distinct.as_mut().and_then(|distinct| distinct.later.as_mut())
            && later.is_full()
        {
            later.spill(executor.slice()).await?;
        }
        if let Some(sorter) = &mut self.sorter
            && sorter.is_full()
        {
            sorter.spill(executor.slice()).await?;
        }
        Ok(())
    }

    /// No further row has to be compared with those seen: hands on what could not be decided before.
    pub async fn end_distinct<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let Some(later) = self.distinct.take().and_then(|distinct| distinct.later) else { return Ok(()) };
        let mut rows = later.finish().await?;
        let mut before: Option<Vec<u8>> = None;
        loop {
            executor.tick(1).await?;
            let Some((key, mut row)) = rows.next().await? else { return Ok(()) };
            if before.as_deref() == Some(key) {
                continue;
            }
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
            let sort_key = take_bytes(&mut row).unwrap_or_default();
            if let Some(sorter) = &mut self.sorter {
                let put = |bytes: &[u8], out: &mut Vec<u8>| {
                    out.extend_from_slice(bytes);
                    Ok(())
                };
                sorter.add(|out| put(sort_key, out), |out| put(row, out))?;
                if sorter.is_full() {
                    sorter.spill(executor.slice()).await?;
                }
            } else if !self.send(row, target)? {
                return Ok(());
            }
            target.flush(executor).await?;
        }
    }

    /// Hands on what waits. Returns how many rows there were.
    pub async fn finish<S: ResultSink>(
        &mut self,
        executor: &Executor<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        if self.distinct.is_some() {
            self.end_distinct(executor, target).await?;
        }
        let Some(sorter) = self.sorter.take() else { return Ok(self.seen) };
        let mut rows = sorter.finish().await?;
        let mut before: Option<Vec<u8>> = None;
        loop {
            executor.tick(1).await?;
            let Some((key, row)) = rows.next().await? else { return Ok(self.seen) };
            if self.distinct_by_sort {
                if before.as_deref() == Some(key) {
                    continue;
                }
                let before = before.get_or_insert_default();
                before.clear();
                before.extend_from_slice(key);
            }
            if !self.send(row, target)? {
                return Ok(self.seen);
            }
            target.flush(executor).await?;
        }
    }

    /// Counts a packed row, and hands it on if it is among those wanted; false when no more are.
    fn send<S: ResultSink>(&mut self, row: &[u8], target: &mut Target<'_, S>) -> Result<bool, Failure> {
        if self.count() {
            hand_on(row, self.plan, self.state, target)?;
        }
        Ok(!self.is_done() && !target.is_done())
    }
}

/// First byte of a packed row of plain columns in storage encoding.
const PLAIN: u8 = 0;
/// First byte of a packed row of computed values.
const COMPUTED: u8 = 1;
/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

/// Appends a row of plain columns.
pub fn pack_plain<'f>(fields: impl Iterator<Item = Option<&'f [u8]>>, out: &mut Vec<u8>) {
    out.push(PLAIN);
    for field in fields {
        match field {
            Some(bytes) => put_bytes(bytes, out),
            None => out.extend_from_slice(&NULL.to_ne_bytes()),
        }
    }
}

/// Begins a row of computed values, which are put behind.
pub fn pack_computed(out: &mut Vec<u8>) {
    out.push(COMPUTED);
}

/// Gives a packed row to the target.
fn hand_on<S: ResultSink>(
    row: &[u8],
    plan: &SelectPlan,
    state: &SqlContext,
    target: &mut Target<'_, S>,
) -> Result<(), Failure> {
    match row.split_first() {
        Some((&PLAIN, fields)) => hand_on_plain(fields, plan, state.time_zone_offset(), target),
        Some((_, values)) => hand_on_values(super::spilled_values::take_all(values), plan, target),
        None => Ok(()),
    }
}

fn hand_on_plain<S: ResultSink>(
    mut rest: &[u8],
    plan: &SelectPlan,
    time_zone: i32,
    target: &mut Target<'_, S>,
) -> Result<(), Failure> {
    let columns = plan.plain_columns.as_deref().unwrap_or_default();
    let Some(table) = plan.sources.first().and_then(|source| source.engine_table()) else { return Ok(()) };
    let mut fields: smallvec::SmallVec<[Option<&[u8]>; 8]> = smallvec::SmallVec::new();
    for _ in columns {
        match rest.split_first_chunk() {
            Some((length, tail)) if u32::from_ne_bytes(*length) == NULL => {
                fields.push(None);
                rest = tail;
            }
            _ => fields.push(take_bytes(&mut rest)),
        }
    }
    let kinds = columns.iter().map(|column| &table.def.columns[usize::from(*column)].kind);
    if let Target::Sink(sink) = target {
        sink.row_begin();
        for (field, kind) in fields.iter().zip(kinds) {
            output::stored(*sink, *field, kind, time_zone);
        }
        sink.row_end();
        return Ok(());
    }
    let decode = |bytes: &[u8], kind| crate::stored_values::decode(bytes, kind, time_zone).into_owned();
    let values = fields.iter().zip(kinds).map(|(field, kind)| field.map_or(Value::Null, |b| decode(b, kind)));
    target.put(values.collect())
}

/// Gives computed values to the target.
fn hand_on_values<S: ResultSink>(
    values: Vec<Value<'static>>,
    plan: &SelectPlan,
    target: &mut Target<'_, S>,
) -> Result<(), Failure> {
    let Target::Sink(sink) = target else { return target.put(values) };
    send_values(&values, plan, *sink);
    Ok(())
}

fn send_values<S: ResultSink>(values: &[Value<'static>], plan: &SelectPlan, sink: &mut S) {
    sink.row_begin();
    for (value, ty) in values.iter().zip(&plan.types) {
        output::announced(sink, value, ty);
    }
    sink.row_end();
}

/// A row of values with its sort key.
pub struct ValueRow<'r> {
    /// The plan it belongs to.
    pub plan: &'r SelectPlan,
    /// What its statement runs in.
    pub state: &'r SqlContext,
    /// Its values.
    pub values: &'r [Value<'static>],
    /// Its sort key.
    pub key: &'r [u8],
}

impl Row for ValueRow<'_> {
    fn sort_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend_from_slice(self.key);
        Ok(())
    }

    fn group_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.values.iter().for_each(|value| compare::group_key(value, out));
        Ok(())
    }

    fn pack(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        pack_computed(out);
        self.values.iter().for_each(|value| super::spilled_values::put(value, out));
        Ok(())
    }

    fn emit<S: ResultSink>(&self, target: &mut Target<'_, S>) -> Result<(), Failure> {
        let held = self.state.held();
        for value in self.values {
            self.state.gather(value)?;
        }
        match target {
            Target::Sink(sink) => send_values(self.values, self.plan, *sink),
            Target::Taker(_) => target.put(self.values.to_vec())?,
        }
        self.state.release_to(held);
        Ok(())
    }
}
