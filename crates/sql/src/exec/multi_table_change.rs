//! Multi-table UPDATE and DELETE: changing rows that a join finds.
//!
//! The join is read to its end first, so that nothing that is changed comes in its way. What it finds is
//! kept, on disk where it is much, and sorted by table and key: a row that several rows of the join have
//! found stands there several times, one behind the other, and is changed once, as the first one says.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use untorn::Table;
use untorn::engine::{self, OwnedKey, ReadMode, ScanIndex, WaitPolicy};
use untorn::write::RowWriter;

use super::Flow;
use super::change::{
    Changes, Todo, Work, apply_rules, encode_assigned, encode_value, matched_and_changed, stored_bytes,
};
use super::cursor::Cursor;
use super::insert::Changed;
use super::keys::RangeList;
use super::sort::RowSorter;
use super::spilled_values::{put, put_bytes, take_all, take_bytes};
use super::{Executor, RowTaker, row_rules};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::{Context, RowView};
use crate::failure::{Failure, engine as engine_error};
use crate::plan::change::Assigned;
use crate::plan::multi_table_change::{MultiTableChange, MultiTableTarget, MultiTableUpdate, NewValue};
use crate::result::SqlError;
use crate::stored_values::Storing;
use crate::value::Value;

/// Appends a key, so that equal keys, and no others, have equal bytes; integers come in their order.
pub(super) fn pack_key(key: &OwnedKey, out: &mut Vec<u8>) {
    let fields = key.fields();
    for field in &fields {
        out.push(u8::from(field.is_some()));
        out.extend_from_slice(field.unwrap_or_default());
    }
    for field in &fields {
        out.extend_from_slice(&(field.map_or(0, <[u8]>::len) as u32).to_be_bytes());
    }
    out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
}

fn unpack_key(packed: &[u8]) -> Option<OwnedKey> {
    let (rest, count) = packed.split_last_chunk()?;
    let count = u32::from_be_bytes(*count) as usize;
    let (mut fields, lengths) = rest.split_at_checked(rest.len().checked_sub(count.checked_mul(4)?)?)?;
    let mut key: smallvec::SmallVec<[Option<&[u8]>; 8]> = smallvec::SmallVec::new();
    for length in lengths.chunks_exact(4) {
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        let (is_some, tail) = fields.split_first()?;
        let (bytes, tail) = tail.split_at_checked(length)?;
        key.push((*is_some == 1).then_some(bytes));
        fields = tail;
    }
    Some(OwnedKey::from_fields(&key))
}

/// What the join has found.
struct Found<'p, 'e> {
    plan: &'p MultiTableChange,
    /// By target and key: the key, and the new values.
    rows: RowSorter<'e>,
}

impl RowTaker for Found<'_, '_> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        for target in &self.plan.targets {
            // The missing side of an outer join has no key.
            let Some(Value::Text(key, _)) = row.get(target.key_at) else { continue };
            let values = target.key_at + 1..target.key_at + 1 + target.values();
            self.rows.add(
                |out| {
                    out.extend_from_slice(&(target.group as u16).to_be_bytes());
                    out.extend_from_slice(key);
                    Ok(())
                },
                |out| {
                    put_bytes(key, out);
                    row.get(values).unwrap_or_default().iter().for_each(|value| put(value, out));
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    fn make_room<'a>(
        &'a mut self,
        executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(self.rows.spill(executor.slice()))
    }
}

impl MultiTableTarget {
    /// How many values of the query's output are for it.
    fn values(&self) -> usize {
        let list = self.update.as_ref().map_or(&[][..], |update| &update.assignments);
        list.iter().filter(|(_, value)| *value == NewValue::Output).count()
    }
}

/// What is written into one table.
struct Writing<'p> {
    target: &'p MultiTableTarget,
    table: Arc<Table>,
    writer: RowWriter,
    /// Columns that the writer sets by itself.
    stamps: Vec<(u16, Vec<u8>)>,
    /// Reads the row that is changed.
    cursor: Option<Cursor<'p>>,
}

impl<'p> Writing<'p> {
    fn new(
        plan: &'p MultiTableChange,
        target: &'p MultiTableTarget,
        state: &SqlContext,
    ) -> Result<Self, Failure> {
        let Some(table) = plan.table(target.source).cloned() else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"what is changed is no table"]).into());
        };
        let mut writer = RowWriter::of_evaluated(table.clone());
        let mut stamps = Vec::new();
        if let Some(update) = &target.update {
            let assigned = |column| update.assignments.iter().any(|(assigned, _)| *assigned == column);
            writer.assigns(assigned, || state.statement_time()).map_err(|error| engine_error(&error))?;
            stamps = writer.stamps().to_vec();
        }
        Ok(Writing { target, table, writer, stamps, cursor: None })
    }
}

/// Counts of a statement.
#[derive(Default)]
struct Counts {
    matched: u64,
    changed: u64,
}

impl<'e> Executor<'e> {
    /// Executes UPDATE or DELETE of a join.
    pub async fn multi_table_change(&mut self, plan: &MultiTableChange) -> Result<Changed, Failure> {
        let state: &'e SqlContext = self.state;
        self.check_safe_join(plan)?;
        state.changes_strictly.set(state.is_strict() && !plan.ignore);
        if !plan.ignore {
            self.check_constants(&plan.query)?;
        }
        let mut found = Found { plan, rows: RowSorter::new(state) };
        self.select_into(&plan.query, &mut found).await?;
        let mut counts = Counts::default();
        let mut rows = found.rows.finish().await?;
        let mut last = Vec::new();
        let mut writings: Vec<Writing<'_>> = Vec::with_capacity(plan.targets.len());
        while let Some((key, packed)) = rows.next().await? {
            self.tick(1).await?;
            state.check_killed()?;
            if key == &last[..] {
                continue;
            }
            last.clear();
            last.extend_from_slice(key);
            let Some((number, _)) = key.split_first_chunk() else { return Err(too_short().into()) };
            let number = usize::from(u16::from_be_bytes(*number));
            // Targets come in their order, but one without rows does not come.
            while writings.len() <= number {
                let Some(target) = plan.targets.get(writings.len()) else { return Err(too_short().into()) };
                writings.push(Writing::new(plan, target, state)?);
            }
            let mut rest = packed;
            let key = take_bytes(&mut rest).and_then(unpack_key).ok_or_else(too_short)?;
            let held = state.held();
            let writing = &mut writings[number];
            match &writing.target.update {
                Some(update) => {
                    let values = take_all(rest);
                    self.update_found(plan, writing, update, key, &values, &mut counts).await?;
                }
                None => {
                    counts.changed += self
                        .apply(&mut writing.writer, Work { key, todo: Todo::Delete }, plan.ignore)
                        .await?;
                }
            }
            state.release_to(held);
        }
        writings.into_iter().for_each(|writing| writing.writer.finish());
        let Counts { matched, changed } = counts;
        if !plan.updates() {
            return Ok(Changed { affected: changed, ..Changed::default() });
        }
        let affected = if state.terms().found_rows { matched } else { changed };
        let insert_id = state.said_insert_id.get().unwrap_or(0);
        let info = matched_and_changed(matched, changed, state.warning_count.get());
        Ok(Changed { affected, insert_id, info })
    }

    /// `sql_safe_updates`: no table is changed whose rows are found without a key.
    fn check_safe_join(&self, plan: &MultiTableChange) -> Result<(), SqlError> {
        let unsafely = |step: &crate::plan::Step| {
            plan.query.changed.contains(&(step.source as u16)) && step.path.is_full_scan()
        };
        if self.state.settings().sql_safe_updates && plan.query.steps.iter().any(unsafely) {
            return Err(errors::error(errors::UPDATE_WITHOUT_KEY_IN_SAFE_MODE, &[&""]));
        }
        Ok(())
    }

    /// Changes a row that the join has found.
    async fn update_found<'p>(
        &mut self,
        plan: &MultiTableChange,
        writing: &mut Writing<'p>,
        update: &MultiTableUpdate,
        key: OwnedKey,
        values: &[Value<'static>],
        counts: &mut Counts,
    ) -> Result<(), Failure>
    where
        'e: 'p,
    {
        let state: &'p SqlContext = self.state;
        let lenient = plan.ignore || !state.is_strict();
        let Writing { table, cursor, writer, stamps, .. } = writing;
        let storing = Storing { state, table: &table.name, row: counts.matched + 1, lenient };
        let range = engine::KeyRange::equal(key.clone());
        match cursor {
            Some(cursor) => cursor.restart(RangeList::one(range)),
            None => {
                let mode = ReadMode::Locking { exclusive: true, wait: WaitPolicy::Wait };
                *cursor = Some(Cursor::over(table, ScanIndex::Clustered, range, mode, &update.needed, state));
            }
        }
        let Some(cursor) = cursor else { return Err(too_short().into()) };
        let mut changes = None;
        let mut compute = |view: RowView<'_>| -> Result<Flow, Failure> {
            let views = [view];
            let cx = Context { rows: &views, ..Context::constant(state, self.parameters) };
            let mut computed = changes_of(update, table, values, &view, &cx, &storing)?;
            if let Some(rules) = update.rules.as_deref() {
                let defaults = &update.defaults;
                match apply_rules(rules, defaults, table, &view, stamps, &mut computed, &cx, &storing) {
                    Err(error) if plan.ignore && row_rules::is_refusal(&error) => {
                        state.warn(error);
                        computed.clear();
                    }
                    applied => applied?,
                }
            }
            changes = Some(computed);
            Ok(Flow::Stop)
        };
        while cursor.run(self.transaction.engine_mut(), &mut |view, _| compute(view)).await? {}
        // The row is locked since the join has found it. Only the statement itself can have moved it, by a
        // cascade.
        let Some(changes) = changes else {
            return Err(errors::error(errors::KEY_NOT_FOUND, &[&table.name]).into());
        };
        counts.matched += 1;
        if !changes.is_empty() {
            let work = Work { key, todo: Todo::Change(changes) };
            counts.changed += self.apply(writer, work, plan.ignore).await?;
        }
        Ok(())
    }
}

fn too_short() -> SqlError {
    errors::error(errors::INTERNAL_ERROR, &[&"a gathered change is too short"])
}

/// The columns that really change.
fn changes_of(
    update: &MultiTableUpdate,
    table: &Table,
    values: &[Value<'static>],
    view: &RowView<'_>,
    cx: &Context<'_>,
    storing: &Storing<'_>,
) -> Result<Changes, SqlError> {
    let mut changes = Changes::new();
    let mut values = values.iter();
    for (column, value) in &update.assignments {
        let at = usize::from(*column);
        let def = &table.def.columns[at];
        let encoded = match value {
            NewValue::Output => encode_value(values.next().ok_or_else(too_short)?, def, storing, cx)?,
            NewValue::Default => encode_assigned(&Assigned::Default, &update.defaults[at], def, storing, cx)?,
        };
        changes.retain(|(earlier, _)| earlier != column);
        if stored_bytes(view, *column) != Some(encoded.as_deref()) {
            changes.push((*column, encoded));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_key_is_the_key() {
        let keys: [&[Option<&[u8]>]; 5] =
            [&[], &[None], &[Some(b"")], &[Some(b"ab"), None, Some(b"c")], &[Some(b"a"), None, Some(b"bc")]];
        let mut seen = std::collections::HashSet::new();
        for fields in keys {
            let mut packed = Vec::new();
            pack_key(&OwnedKey::from_fields(fields), &mut packed);
            assert_eq!(
                unpack_key(&packed).map(|key| key.fields().to_vec() == fields),
                Some(true),
                "{fields:?}"
            );
            assert!(seen.insert(packed), "{fields:?}");
        }
    }
}
