//! UPDATE and DELETE.
//!
//! The scan locks rows exclusively and gathers what is to be done; changes are applied between batches, with
//! nothing latched. Where a change could put a row in the scan's way again (the Halloween problem: the
//! planner finds out, `moves_rows` in `plan/change.rs`), or rows are to be sorted first, everything is
//! gathered before the first change, on disk where it is much. Rows that are sorted are gathered with the
//! columns that the change looks at, and what becomes of them is computed in the order of the sort:
//! assignments may count rows, and rows beyond a LIMIT are not computed at all.

use untorn::Table;
use untorn::engine::{self, FieldRef, OwnedKey, ReadMode, TimeSlice, WaitPolicy};
use untorn::schema::ColumnDef;
use untorn::write::{RowWriter, Written};

use super::Flow;
use super::apply::Applied;
use super::column_defaults::{assigned_default, push_for_null};
use super::cursor::Cursor;
use super::insert::Changed;
use super::select::all_true;
use super::sort::{RowSorter, push_key};
use super::spilled_values::{put_bytes, take_bytes};
use super::{Executor, row_rules};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::functions::as_count;
use crate::expr::{Context, RowView, strict};
use crate::failure::duplicate_key::duplicate;
use crate::failure::{Failure, engine as engine_error};
use crate::handler_counts::Handled;
use crate::memory::{Charge, refused};
use crate::plan::change::{Assigned, ColumnDefault, DeletePlan, Target, UpdatePlan};
use crate::plan::row_rules::RowRules;
use crate::result::SqlError;
use crate::stored_values::{Storing, decode};
use crate::value::{Value, compare};

/// Columns with their new stored bytes; `None` is NULL.
pub(super) type Changes = smallvec::SmallVec<[(u16, Option<Vec<u8>>); 1]>;

/// Computes what is to change in a row.
type Compute<'c> = dyn FnMut(&RowView<'_>, &Context<'_>) -> Result<Changes, SqlError> + 'c;

/// Rows gathered before they are changed.
const BATCH_ROWS: usize = 128;
/// Bytes of new values gathered before they are stored.
const BATCH_BYTES: usize = 64 << 10;

/// Whether two values of a column are the same, byte for byte as far as text goes.
pub fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Text(left, _), Value::Text(right, _)) => left == right,
        (left, right) => compare::null_safe_equal(left, right),
    }
}

/// The stored form of an assigned value; `None` is NULL.
pub fn encode_assigned(
    assigned: &Assigned,
    default: &ColumnDefault,
    column: &ColumnDef,
    storing: &Storing<'_>,
    cx: &Context<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    let value = match assigned {
        Assigned::Value(expr) => expr.eval(cx)?,
        Assigned::Default => match default {
            ColumnDefault::Stored(bytes) => return Ok(Some(bytes.clone())),
            ColumnDefault::Null => Value::Null,
            ColumnDefault::Now => {
                let mut bytes = Vec::new();
                cx.state.statement_time().encode(column, &mut bytes).map_err(|error| engine_error(&error))?;
                return Ok(Some(bytes));
            }
            ColumnDefault::AutoIncrement => Value::Int(0),
            ColumnDefault::Expression(expr) | ColumnDefault::Generated(expr) => expr.eval(cx)?,
            ColumnDefault::Missing => return assigned_default(column, storing),
        },
    };
    encode_value(&value, column, storing, cx)
}

/// The stored form of a value; `None` is NULL.
pub(super) fn encode_value(
    value: &Value<'_>,
    column: &ColumnDef,
    storing: &Storing<'_>,
    cx: &Context<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    // Texts reserve what they need.
    let mut bytes = if column.kind.is_string() { Vec::new() } else { Vec::with_capacity(16) };
    if value.is_null() {
        if column.nullable {
            return Ok(None);
        }
        let error = errors::error(errors::BAD_NULL, &[&column.name]);
        if !storing.lenient {
            return Err(error);
        }
        cx.state.warn(error);
        push_for_null(column, storing, &mut bytes)?;
        return Ok(Some(bytes));
    }
    storing.encode(value, column, &mut bytes)?;
    Ok(Some(bytes))
}

/// What is to be done to a row.
pub(super) struct Work {
    pub(super) key: OwnedKey,
    pub(super) todo: Todo,
}

/// What.
pub(super) enum Todo {
    Delete,
    /// These columns.
    Change(Changes),
    /// To be computed from these columns of the row.
    Compute(Changes),
}

impl Todo {
    /// The row is matched, and stays as it is.
    fn is_nothing(&self) -> bool {
        matches!(self, Todo::Change(columns) if columns.is_empty())
    }
}

/// Units of work that a change of a row counts for.
pub const CHANGE_UNITS: u32 = 8;

/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

impl Work {
    /// Appends it, to be kept until everything is gathered.
    fn pack(&self, out: &mut Vec<u8>) {
        let (kind, columns) = match &self.todo {
            Todo::Delete => (0, &[][..]),
            Todo::Change(columns) => (1, &columns[..]),
            Todo::Compute(columns) => (2, &columns[..]),
        };
        out.push(kind);
        let fields = self.key.fields();
        out.extend_from_slice(&(fields.len() as u32).to_ne_bytes());
        fields.iter().for_each(|field| pack_field(*field, out));
        for (column, bytes) in columns {
            out.extend_from_slice(&column.to_ne_bytes());
            pack_field(bytes.as_deref(), out);
        }
    }

    fn unpack(mut rest: &[u8]) -> Option<Work> {
        let (kind, tail) = rest.split_first()?;
        rest = tail;
        let count = take_u32(&mut rest)?;
        let mut fields: smallvec::SmallVec<[Option<&[u8]>; 8]> = smallvec::SmallVec::new();
        for _ in 0..count {
            fields.push(unpack_field(&mut rest)?);
        }
        let mut changes = Changes::new();
        while let Some((column, tail)) = rest.split_first_chunk() {
            rest = tail;
            changes.push((u16::from_ne_bytes(*column), unpack_field(&mut rest)?.map(<[u8]>::to_vec)));
        }
        let todo = match kind {
            0 => Todo::Delete,
            1 => Todo::Change(changes),
            _ => Todo::Compute(changes),
        };
        Some(Work { key: OwnedKey::from_fields(&fields), todo })
    }

    /// Bytes that it takes until it is done.
    fn weight(&self) -> usize {
        let columns = match &self.todo {
            Todo::Delete => return 0,
            Todo::Change(columns) | Todo::Compute(columns) => columns,
        };
        columns.iter().map(|(_, bytes)| bytes.as_ref().map_or(0, Vec::len)).sum()
    }
}

/// The columns that a change looks at, as they are.
fn columns_of(view: &RowView<'_>, needed: &[u16]) -> Changes {
    let column = |column: &u16| Some((*column, stored_bytes(view, *column)??.to_vec()));
    needed.iter().filter_map(column).map(|(column, bytes)| (column, Some(bytes))).collect()
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_ne_bytes(*bytes))
}

fn pack_field(field: Option<&[u8]>, out: &mut Vec<u8>) {
    match field {
        Some(bytes) => put_bytes(bytes, out),
        None => out.extend_from_slice(&NULL.to_ne_bytes()),
    }
}

fn unpack_field<'b>(rest: &mut &'b [u8]) -> Option<Option<&'b [u8]>> {
    match rest.first_chunk() {
        Some(length) if u32::from_ne_bytes(*length) == NULL => {
            *rest = &rest[4..];
            Some(None)
        }
        _ => take_bytes(rest).map(Some),
    }
}

pub(super) fn stored_bytes<'v>(view: &RowView<'v>, column: u16) -> Option<Option<&'v [u8]>> {
    match view {
        RowView::Stored(row, _) => match row.column(column) {
            FieldRef::Null => Some(None),
            FieldRef::Inline(bytes) => Some(Some(bytes)),
            FieldRef::External { .. } => None,
        },
        RowView::Fields(fields, _) => fields.get(usize::from(column)).map(|field| field.as_deref()),
        _ => None,
    }
}

/// What the scan of a change has found.
struct Found<'e> {
    state: &'e SqlContext,
    target: &'e Target,
    /// Rows that may still be found. A sort takes all and obeys the LIMIT at its end.
    limit: u64,
    /// Changed when the scan pauses.
    batch: Vec<Work>,
    /// Bytes of the batch.
    bytes: usize,
    charge: Charge<'e>,
    /// Instead of the batch: rows that are changed when the scan has ended, because they would come into its
    /// way again or are to be sorted first.
    gathered: Option<RowSorter<'e>>,
}

impl<'e> Found<'e> {
    fn new(state: &'e SqlContext, target: &'e Target, gather: bool, limit: u64) -> Self {
        let gathered = match (gather || target.apply.is_some(), target.order.is_empty()) {
            (_, false) if target.apply.is_some() => Some(RowSorter::new(state)),
            (_, false) => Some(RowSorter::of_first(state, limit)),
            (true, true) => Some(RowSorter::new(state)),
            (false, true) => None,
        };
        Self { state, target, limit, batch: Vec::new(), bytes: 0, charge: state.memory.charge(), gathered }
    }

    /// Takes a row that is locked and meets the conditions. A row with long columns is shown as a copy,
    /// without its key: `key` copies the one that was taken when it was locked.
    fn take(
        &mut self,
        view: &RowView<'_>,
        key: &dyn Fn(&mut OwnedKey),
        cx: &Context<'_>,
        compute: &mut Option<&mut Compute<'_>>,
    ) -> Result<Flow, Failure> {
        // Whether it is one of those that LIMIT counts, and what becomes of it, is known later.
        let applies = self.target.apply.is_some();
        let sorts = !self.target.order.is_empty() || applies;
        let held = self.state.held();
        let todo = match compute {
            None if applies => Todo::Compute(columns_of(view, &self.target.needed)),
            None => Todo::Delete,
            Some(_) if sorts => Todo::Compute(columns_of(view, &self.target.needed)),
            Some(compute) => Todo::Change(compute(view, cx)?),
        };
        if !todo.is_nothing() {
            let mut owned = OwnedKey::default();
            key(&mut owned);
            self.keep(Work { key: owned, todo }, cx)?;
        }
        self.state.release_to(held);
        if !sorts {
            self.limit -= 1;
            if self.limit == 0 {
                return Ok(Flow::Stop);
            }
        }
        Ok(if self.is_full() { Flow::Pause } else { Flow::Next })
    }

    fn keep(&mut self, item: Work, cx: &Context<'_>) -> Result<(), Failure> {
        let Some(gathered) = &mut self.gathered else {
            self.bytes += item.weight();
            if !self.charge.reach(self.bytes) {
                return Err(refused().into());
            }
            self.batch.push(item);
            return Ok(());
        };
        let order = &self.target.order;
        let sort_key = |bytes: &mut Vec<u8>| {
            order.iter().try_for_each(|(expr, descending)| {
                push_key(&expr.eval(cx)?, *descending, bytes);
                Ok(())
            })
        };
        gathered.add(sort_key, |out| {
            item.pack(out);
            Ok(())
        })?;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_ROWS
            || self.bytes >= BATCH_BYTES
            || self.gathered.as_ref().is_some_and(RowSorter::is_full)
    }

    async fn spill_if_full(&mut self, slice: &TimeSlice) -> Result<(), Failure> {
        match &mut self.gathered {
            Some(gathered) if gathered.is_full() => gathered.spill(slice).await,
            _ => Ok(()),
        }
    }

    fn batch_is_done(&mut self) {
        self.bytes = 0;
        self.charge.shrink_to(0);
    }
}

impl<'e> Executor<'e> {
    fn check_safe_updates(&self, target: &Target) -> Result<(), SqlError> {
        let safe = self.state.settings().sql_safe_updates;
        if safe && target.limit.is_none() && target.path.is_full_scan() {
            return Err(errors::error(errors::UPDATE_WITHOUT_KEY_IN_SAFE_MODE, &[&""]));
        }
        Ok(())
    }

    /// Executes UPDATE.
    pub async fn update(&mut self, plan: &UpdatePlan) -> Result<Changed, Failure> {
        let Some(table) = plan.target.source.engine_table().cloned() else { return Ok(Changed::default()) };
        self.check_safe_updates(&plan.target)?;
        let state = self.state;
        let lenient = plan.ignore || !state.is_strict();
        state.changes_strictly.set(!lenient);
        let mut writer = RowWriter::of_evaluated(table.clone());
        writer
            .assigns(
                |column| plan.assignments.iter().any(|(assigned, _)| *assigned == column),
                || state.statement_time(),
            )
            .map_err(|error| engine_error(&error))?;
        let stamps = if plan.rules.is_some() { writer.stamps().to_vec() } else { Vec::new() };
        let mut matched = 0u64;
        let mut compute = |view: &RowView<'_>, cx: &Context<'_>| -> Result<Changes, SqlError> {
            matched += 1;
            let storing = Storing { state, table: &table.name, row: matched, lenient };
            let mut changes = changes_of(plan, &table, view, cx, &storing)?;
            let Some(rules) = plan.rules.as_deref() else { return Ok(changes) };
            match apply_rules(rules, &plan.defaults, &table, view, &stamps, &mut changes, cx, &storing) {
                Err(error) if plan.ignore && row_rules::is_refusal(&error) => {
                    state.warn(error);
                    Ok(Changes::new())
                }
                done => done.map(|()| changes),
            }
        };
        let gather = plan.moves_rows;
        let changed =
            self.change_rows(&plan.target, &mut writer, gather, plan.ignore, &mut Some(&mut compute)).await?;
        let found_rows = state.terms().found_rows;
        Ok(Changed {
            affected: if found_rows { matched } else { changed },
            insert_id: state.said_insert_id.get().unwrap_or(0),
            info: matched_and_changed(matched, changed, state.warning_count.get()),
        })
    }

    /// Executes DELETE.
    pub async fn delete(&mut self, plan: &DeletePlan) -> Result<Changed, Failure> {
        let Some(table) = plan.target.source.engine_table().cloned() else { return Ok(Changed::default()) };
        self.check_safe_updates(&plan.target)?;
        self.state.changes_strictly.set(self.state.is_strict() && !plan.ignore);
        let mut writer = RowWriter::of_evaluated(table);
        let deleted = self.change_rows(&plan.target, &mut writer, false, plan.ignore, &mut None).await?;
        writer.finish();
        Ok(Changed { affected: deleted, ..Changed::default() })
    }

    /// Scans the target and applies `compute`'s changes, or deletes. Returns how many rows were changed.
    async fn change_rows(
        &mut self,
        target: &Target,
        writer: &mut RowWriter,
        gather: bool,
        ignore: bool,
        compute: &mut Option<&mut Compute<'_>>,
    ) -> Result<u64, Failure> {
        let table = &writer.table().clone();
        let subqueries = self.subqueries(&target.subqueries).await?;
        let mut applied = Applied::new(&target.subqueries, target.apply.as_deref(), &subqueries);
        if table.is_referenced() {
            // A cascade changes tables that these may read.
            applied.iter_mut().for_each(Applied::read_anew);
        }
        let (state, parameters) = (self.state, self.parameters);
        let cx = Context { subqueries: &subqueries, ..Context::constant(state, parameters) };
        let limit = match &target.limit {
            Some(limit) => as_count(&limit.eval(&cx)?),
            None => u64::MAX,
        };
        if limit == 0 {
            return Ok(0);
        }
        let mut range_charge = state.memory.charge();
        if !ignore {
            strict::check_constants(&target.all_conditions, &table.def.columns, &cx)?;
        }
        let Some(ranges) = self.ranges(&target.path, &table.def.columns, &cx, &mut range_charge).await?
        else {
            return Ok(0);
        };
        let conditions = if ranges.exact { &target.filter } else { &target.all_conditions };
        let mode = ReadMode::Locking { exclusive: true, wait: WaitPolicy::Wait };
        let mut cursor = Cursor::new(table, &target.path, ranges.ranges, mode, &target.needed, state);
        cursor.look_before_waiting();
        let mut found = Found::new(state, target, gather, limit);
        let mut changed = 0;
        loop {
            let more = cursor
                .run_keyed(
                    self.transaction.engine_mut(),
                    &mut |view: RowView<'_>, key: &dyn Fn(&mut OwnedKey)| {
                        let views = [view];
                        let row_cx = Context { rows: &views, ..cx };
                        if !conditions.is_empty() && !all_true(conditions, &row_cx)? {
                            return Ok(Flow::Skip);
                        }
                        if matches!(view, RowView::Stored(row, _) if row.is_peeked()) {
                            // It matches: it will be shown again when it is locked.
                            return Ok(Flow::Next);
                        }
                        found.take(&view, key, &row_cx, compute)
                    },
                )
                .await?;
            state.check_killed()?;
            found.spill_if_full(self.slice()).await?;
            for item in found.batch.drain(..) {
                changed += self.apply(writer, item, ignore).await?;
            }
            found.batch_is_done();
            if !more {
                break;
            }
        }
        changed += self.change_gathered(found, writer, ignore, compute, &mut applied, &cx).await?;
        Ok(changed)
    }

    /// Changes the rows that were kept until the scan ended.
    async fn change_gathered(
        &mut self,
        found: Found<'_>,
        writer: &mut RowWriter,
        ignore: bool,
        compute: &mut Option<&mut Compute<'_>>,
        applied: &mut Option<Applied<'_, 'e>>,
        cx: &Context<'_>,
    ) -> Result<u64, Failure> {
        let Found { target, limit, gathered, mut charge, state, .. } = found;
        let Some(gathered) = gathered else { return Ok(0) };
        let table = &writer.table().clone();
        let mut rows = gathered.finish().await?;
        let mut left = if target.order.is_empty() && applied.is_none() { u64::MAX } else { limit };
        let mut changed = 0;
        while left > 0 {
            let Some((_, packed)) = rows.next().await? else { break };
            let packed_bytes = packed.len();
            let Some(mut item) = Work::unpack(packed) else {
                return Err(
                    errors::error(errors::INTERNAL_ERROR, &[&"a gathered change is too short"]).into()
                );
            };
            // Unpacked it is in memory twice for a moment: as it was, and as it will be.
            if !charge.reach(2 * packed_bytes) {
                return Err(refused().into());
            }
            let held = state.held();
            if let Todo::Compute(columns) = &mut item.todo {
                self.tick(1).await?;
                let mut fields = vec![None; table.def.columns.len()];
                for (column, bytes) in columns.drain(..) {
                    fields[usize::from(column)] = bytes;
                }
                let views = [RowView::Fields(&fields, &table.def.columns)];
                let mut row = Context { rows: &views, ..*cx };
                if let Some(applied) = applied {
                    if !applied.meets_conditions(self, &row).await? {
                        state.release_to(held);
                        continue;
                    }
                    row.subqueries = &applied.results;
                }
                item.todo = match compute {
                    Some(compute) => Todo::Change(compute(&views[0], &row)?),
                    None => Todo::Delete,
                };
            }
            left -= 1;
            if !item.todo.is_nothing() {
                changed += self.apply(writer, item, ignore).await?;
            }
            state.release_to(held);
        }
        Ok(changed)
    }

    /// Writes a change. Returns how many rows it has changed: one or none.
    pub(super) async fn apply(
        &mut self,
        writer: &mut RowWriter,
        work: Work,
        ignore: bool,
    ) -> Result<u64, Failure> {
        self.tick(CHANGE_UNITS).await?;
        let key = work.key.fields();
        let what = if matches!(work.todo, Todo::Delete) { Handled::Delete } else { Handled::Update };
        self.state.handled.add(what, 1);
        let written = match &work.todo {
            Todo::Delete => {
                let deleted = writer.delete(self.transaction, &key).await;
                if let Err(untorn::Error::Transaction(engine::Error::RowNotFound { .. })) = &deleted
                    && writer.table().has_relations()
                {
                    // It went with a row before it, by a cascade.
                    return Ok(0);
                }
                return Ok(row_rules::ignoring(deleted, ignore, self.state)?.map_or(0, |()| 1));
            }
            Todo::Change(changes) | Todo::Compute(changes) => {
                let changes: smallvec::SmallVec<[(u16, Option<&[u8]>); 4]> =
                    changes.iter().map(|(column, bytes)| (*column, bytes.as_deref())).collect();
                let updated = writer.update(self.transaction, &key, &changes).await;
                match row_rules::ignoring(updated, ignore, self.state)? {
                    Some(written) => written,
                    None => return Ok(0),
                }
            }
        };
        let Written::Duplicate { index, entry } = written else { return Ok(1) };
        let error = duplicate(writer.table(), &index, &entry, self.state.time_zone_offset());
        if !ignore {
            return Err(error.into());
        }
        self.state.warn(error);
        Ok(0)
    }
}

/// What an UPDATE says of its rows. Without the machinery of formatting, which costs a row's change a share.
pub(super) fn matched_and_changed(matched: u64, changed: u64, warnings: u64) -> String {
    fn push_number(text: &mut String, number: u64) {
        if number >= 10 {
            push_number(text, number / 10);
        }
        text.push(char::from(b'0' + (number % 10) as u8));
    }
    let mut text = String::with_capacity(64);
    for (name, number) in [("Rows matched: ", matched), ("  Changed: ", changed), ("  Warnings: ", warnings)]
    {
        text.push_str(name);
        push_number(&mut text, number);
    }
    text
}

/// The columns that really change. Assignments see the values of those before them, as in MySQL.
fn changes_of(
    plan: &UpdatePlan,
    table: &Table,
    view: &RowView<'_>,
    cx: &Context<'_>,
    storing: &Storing<'_>,
) -> Result<Changes, SqlError> {
    let mut changes = Changes::new();
    let zone = storing.state.time_zone_offset();
    // The row as the assignments so far have made it.
    let mut overlay: Option<Vec<Value<'static>>> = plan.reads_assigned.then(|| {
        let columns = 0..table.def.columns.len() as u16;
        columns.map(|column| view.column(column, zone).into_owned()).collect()
    });
    for (column, assigned) in &plan.assignments {
        let at = usize::from(*column);
        let def = &table.def.columns[at];
        let encoded = match &overlay {
            Some(values) => {
                let views = [RowView::Values(values)];
                encode_assigned(assigned, &plan.defaults[at], def, storing, &Context { rows: &views, ..*cx })?
            }
            None => encode_assigned(assigned, &plan.defaults[at], def, storing, cx)?,
        };
        if let Some(values) = &mut overlay {
            values[at] = match &encoded {
                Some(bytes) => decode(bytes, &def.kind, zone).into_owned(),
                None => Value::Null,
            };
        }
        changes.retain(|(earlier, _)| earlier != column);
        if stored_bytes(view, *column) != Some(encoded.as_deref()) {
            changes.push((*column, encoded));
        }
    }
    Ok(changes)
}

/// Adds to a row's changes what its generated columns become, and checks the row that they make.
#[allow(clippy::too_many_arguments)]
pub(super) fn apply_rules(
    rules: &RowRules,
    defaults: &[ColumnDefault],
    table: &Table,
    view: &RowView<'_>,
    stamps: &[(u16, Vec<u8>)],
    changes: &mut Changes,
    cx: &Context<'_>,
    storing: &Storing<'_>,
) -> Result<(), SqlError> {
    let columns = &table.def.columns;
    let mut fields: row_rules::Fields = vec![None; columns.len()];
    for column in &rules.needed {
        fields[usize::from(*column)] = stored_bytes(view, *column).flatten().map(<[u8]>::to_vec);
    }
    row_rules::change(rules, defaults, &mut fields, stamps, changes, columns, storing, cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_says_how_many_rows_it_found() {
        assert_eq!(matched_and_changed(0, 0, 0), "Rows matched: 0  Changed: 0  Warnings: 0");
        let text = matched_and_changed(u64::MAX, 100, 9);
        assert_eq!(text, format!("Rows matched: {}  Changed: 100  Warnings: 9", u64::MAX));
    }
}
