//! Hash joins: finding the rows of a table in memory (a derived table, a view, a stored table that no index
//! leads into) by the values of the joined columns.
//!
//! Whether a column can be looked up depends on its values: it takes part when all its values are exact
//! numbers, all are doubles, all are texts of one collation, all are days and moments or all are spans of
//! time, so that equal values have the same key. The value that is looked for is of that kind, or the join
//! reads all rows as without a key. The conditions are checked on the rows that are found, so a key may say
//! less than they do, never more.
//!
//! A stored table is read into memory when its step begins for the second time, without the rows that its own
//! conditions leave out. If they do not fit into their part of the statement's memory, both sides of the join
//! are sorted on disk (`spilled_join.rs`). Where the rows are to be locked one by one, the step goes on as a
//! loop over the table.

use std::collections::HashMap;

use untorn::engine::ReadMode;
use untorn::types::Collation;

use super::cursor::Cursor;
use super::join::{Views, copy};
use super::measure::{Meter, Part};
use super::select::all_true;
use super::{Executor, Flow, KeptRows};
use crate::background_drop::discard;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::memory::{self, Charge};
use crate::plan::access_path::lookup_equalities;
use crate::plan::{Condition, SelectPlan, Step};
use crate::result::SqlError;
use crate::value::temporal::{self, Today};
use crate::value::{Value, collation, decimal};

/// Fewer rows than this are read one by one.
const ROWS_MIN: usize = 8;

/// Bytes that an entry takes beside its key.
const ENTRY_BYTES: usize = 64;

/// The rows of a hash join and their keys take this share of the memory that the statement has left at most:
/// what they are joined with is to be sorted and grouped.
const MEMORY_SHARE: usize = 4;

/// The end of a chain.
const END: u32 = u32::MAX;

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Number,
    Double,
    Text(Collation),
    Moment,
    Span,
}

impl Class {
    pub(super) fn of(value: &Value<'_>) -> Option<Class> {
        match value {
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => Some(Class::Number),
            Value::Float(_) | Value::Double(_) => Some(Class::Double),
            Value::Text(_, rule) => Some(Class::Text(*rule)),
            Value::Date(_) | Value::DateTime(..) => Some(Class::Moment),
            Value::Time(..) => Some(Class::Span),
            _ => None,
        }
    }

    /// Appends the key of a value; `false` when it has none.
    pub(super) fn key(self, value: &Value<'_>, key: &mut Vec<u8>) -> bool {
        match (self, value) {
            (Class::Number, Value::Int(v)) => whole(i128::from(*v), key),
            (Class::Number, Value::UInt(v)) => whole(i128::from(*v), key),
            (Class::Number, Value::Decimal(v)) => {
                let truncated = v.with_scale(0);
                if truncated == *v {
                    whole(decimal::to_integer(&truncated), key);
                } else {
                    key.push(2);
                    key.extend_from_slice(v.normalized().to_plain_string().as_bytes());
                    key.push(0);
                }
            }
            (Class::Text(rule), Value::Text(text, of_value))
                if collation::common(rule, *of_value) == rule =>
            {
                collation::sort_key(text, rule, key);
                key.push(0);
            }
            // Any number beside a double is compared as one. Minus zero equals zero.
            (Class::Double, value) if value.is_number() => {
                key.extend_from_slice(&(value.to_double() + 0.0).to_bits().to_be_bytes());
            }
            (Class::Moment, Value::Date(_) | Value::DateTime(..)) => {
                let moment = value.to_datetime(Today::default()).unwrap_or_default().0;
                key.extend_from_slice(&temporal::datetime_number(moment).to_be_bytes());
                key.extend_from_slice(&moment.micros.to_be_bytes());
            }
            (Class::Span, Value::Time(span, _)) => {
                key.extend_from_slice(&temporal::time_micros(*span).to_be_bytes());
            }
            _ => return false,
        }
        true
    }
}

fn whole(value: i128, key: &mut Vec<u8>) {
    key.push(1);
    key.extend_from_slice(&value.to_be_bytes());
}

/// Rows by their keys.
pub(super) struct HashLookup<'p, 'e> {
    /// Column, the kind of its values, and what it is equal to.
    columns: Vec<(u16, Class, &'p Expr)>,
    /// The first row of each key.
    first: HashMap<Vec<u8>, u32>,
    /// The next row of the same key.
    next: Vec<u32>,
    key: Vec<u8>,
    _charge: Charge<'e>,
}

/// Where the rows for a key begin.
pub(super) enum Found {
    /// All rows are to be read.
    Unknown,
    /// At this one, if there is any.
    Chain(Option<usize>),
}

/// Keys from this number on are given back on a thread of their own.
const KEYS_APART: usize = 16_384;

impl Drop for HashLookup<'_, '_> {
    fn drop(&mut self) {
        if self.first.len() >= KEYS_APART {
            discard(std::mem::take(&mut self.first));
        }
    }
}

impl HashLookup<'_, '_> {
    /// The rows that may meet the equalities with the rows before.
    pub(super) fn find(&mut self, cx: &Context<'_>) -> Result<Found, SqlError> {
        self.key.clear();
        for (_, class, wanted) in &self.columns {
            let value = wanted.eval(cx)?;
            if value.is_null() {
                return Ok(Found::Chain(None));
            }
            if !class.key(&value, &mut self.key) {
                return Ok(Found::Unknown);
            }
        }
        Ok(Found::Chain(self.first.get(&self.key).map(|row| *row as usize)))
    }

    /// The next row of the same key.
    pub(super) fn next(&self, row: usize) -> Option<usize> {
        self.next.get(row).filter(|next| **next != END).map(|next| *next as usize)
    }
}

/// The conditions of a step that say the same of a row whatever those of other steps are.
pub(super) fn own_conditions(step: &Step) -> Vec<Condition> {
    let is_own = |condition: &&Condition| {
        condition.visit(&mut |inner| match inner {
            Expr::Column { source, .. } => usize::from(*source) == step.source,
            Expr::Assign(..) | Expr::UserVariable(_) | Expr::Outer(_) => false,
            inner => !inner.is_volatile(),
        })
    };
    step.all_conditions.iter().filter(is_own).cloned().collect()
}

/// What reading a stored table into memory came to.
pub(super) enum Gathered<'e> {
    Rows(KeptRows<'e>),
    /// There is no room for all of them.
    TooMany,
    /// They are to be locked one by one, or there are none.
    No,
}

impl<'e> Executor<'e> {
    /// The rows of a stored table that meet its own conditions, for a hash join.
    pub(super) async fn table_in_memory(
        &mut self,
        plan: &SelectPlan,
        step: &Step,
        cx: &Context<'_>,
    ) -> Result<Gathered<'e>, Failure> {
        let mode = self.source_mode(plan, step.source);
        let Some(table) = plan.sources[step.source].engine_table() else { return Ok(Gathered::No) };
        if !step.by_hash || mode != ReadMode::Consistent || !plan.changed.is_empty() {
            return Ok(Gathered::No);
        }
        let mut charge = self.state.memory.charge();
        let ranges = self.ranges(&step.path, &table.def.columns, cx, &mut charge).await?;
        let Some(ranges) = ranges else { return Ok(Gathered::No) };
        let own = own_conditions(step);
        let bytes_max = self.memory_left() / MEMORY_SHARE;
        let looked_for = lookup_equalities(&step.all_conditions, step.source as u16);
        let mut rows = KeptRows::new(self.state, usize::MAX);
        let (mut bytes, mut fits) = (0, true);
        let mut meter = Meter::new(self.state);
        meter.begin();
        meter.start(self.state);
        let mut read = 0;
        let mut cursor =
            Cursor::new(table, &step.path, ranges.ranges, mode, &plan.needed[step.source], self.state);
        let mut keep = |view: RowView<'_>| -> Result<Flow, Failure> {
            read += 1;
            let mut views: Views<'_> = smallvec::smallvec![RowView::Nulls; plan.sources.len()];
            views[step.source] = view;
            if !all_true(&own, &Context { rows: &views, ..*cx })? {
                return Ok(Flow::Skip);
            }
            let row = copy(plan, step.source, view, cx);
            let key = looked_for.iter().filter_map(|(column, _)| row.get(usize::from(*column)));
            bytes += memory::row_weight(&row) + key.map(memory::weight).sum::<usize>() + ENTRY_BYTES;
            fits = bytes <= bytes_max && rows.take_if_it_fits(row);
            Ok(if fits { Flow::Next } else { Flow::Stop })
        };
        while cursor.run(self.transaction.engine_mut(), &mut |view, _| keep(view)).await? {
            self.tick(1).await?;
        }
        if !fits {
            return Ok(Gathered::TooMany);
        }
        meter.stop(self.state);
        meter.rows(read, rows.len() as u64);
        if let Some(found) = meter.end(self.state) {
            self.state.measures.note(plan, Part::Hashed(step.source), &found);
        }
        Ok(Gathered::Rows(rows))
    }

    /// What the statement may still take.
    pub(super) fn memory_left(&self) -> usize {
        let memory = &self.state.memory;
        memory.limit().saturating_sub(memory.used()) as usize
    }

    /// The rows of a step by the columns that its conditions look for; `None` when that does not help.
    pub(super) async fn hash_lookup<'p>(
        &self,
        step: &'p Step,
        rows: &KeptRows<'e>,
    ) -> Result<Option<HashLookup<'p, 'e>>, Failure> {
        let count = rows.len();
        if count < ROWS_MIN || count >= END as usize {
            return Ok(None);
        }
        let mut columns = Vec::new();
        for (column, wanted) in lookup_equalities(&step.all_conditions, step.source as u16) {
            if let Some(class) = self.class(rows, column).await? {
                columns.push((column, class, wanted));
            }
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let mut charge = self.state.memory.charge();
        let mut bytes = count * size_of::<u32>();
        let mut first: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut next = vec![END; count];
        let mut key = Vec::new();
        // From the end, so that each chain has its rows in their order.
        for at in (0..count).rev() {
            self.tick(1).await?;
            let Some(row) = rows.get(at) else { continue };
            key.clear();
            let has_key = columns.iter().all(|(column, class, _)| {
                row.get(usize::from(*column)).is_some_and(|value| class.key(value, &mut key))
            });
            // NULL equals nothing.
            if !has_key {
                continue;
            }
            match first.get_mut(&key) {
                Some(head) => next[at] = std::mem::replace(head, at as u32),
                None => {
                    bytes += key.len() + ENTRY_BYTES;
                    first.insert(key.clone(), at as u32);
                }
            }
            if !charge.reach(bytes) {
                return Ok(None);
            }
        }
        Ok(Some(HashLookup { columns, first, next, key, _charge: charge }))
    }

    /// The class of all values of a column, if they have one.
    async fn class(&self, rows: &KeptRows<'e>, column: u16) -> Result<Option<Class>, Failure> {
        let mut class = None;
        for at in 0..rows.len() {
            self.tick(1).await?;
            let value = rows.get(at).and_then(|row| row.get(usize::from(column)));
            let Some(value) = value.filter(|value| !value.is_null()) else { continue };
            let own = Class::of(value);
            if own.is_none() || class.is_some_and(|class| Some(class) != own) {
                return Ok(None);
            }
            class = own;
        }
        Ok(class)
    }
}
