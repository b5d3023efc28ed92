//! A row of a result: as a scan or join shows it, or of computed values. It can tell its sort key and what
//! makes it the same as another, be packed to wait in a sort, and give itself to the target.

use untorn::engine::FieldRef;

use super::sort::push_key;
use super::spilled_values::{self, put_bytes, take_bytes};
use super::{Target, output};
use crate::context::SqlContext;
use crate::expr::{Context, RowView};
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::result::{ResultSink, SqlError};
use crate::value::{Value, compare};

/// A row about to be taken: what it appends where it is wanted.
pub trait OutputRow {
    /// Appends its sort key.
    fn sort_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends what makes it the same as another.
    fn group_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends itself, to be read by [`hand_on`].
    fn pack(&self, out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Gives itself to the target.
    fn emit<S: ResultSink>(&self, target: &mut Target<'_, S>) -> Result<(), Failure>;
}

/// A row as the scan or join shows it.
pub struct SourceRow<'r, 'v> {
    /// The plan it belongs to.
    pub plan: &'r SelectPlan,
    /// The context of its expressions.
    pub cx: Context<'r>,
    /// One row of each table.
    pub rows: &'r [RowView<'v>],
    /// Seconds east of UTC.
    pub time_zone: i32,
}

impl OutputRow for SourceRow<'_, '_> {
    fn sort_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        for (expr, descending) in &self.plan.order {
            let value = expr.eval(&self.cx)?;
            self.cx.state.hold(value.key_bytes_max())?;
            push_key(&value, *descending, out);
        }
        Ok(())
    }

    fn group_key(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        for item in &self.plan.items {
            let value = item.eval(&self.cx)?;
            self.cx.state.hold(value.key_bytes_max())?;
            compare::group_key(&value, out);
        }
        Ok(())
    }

    fn pack(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if let (Some(columns), [view @ (RowView::Stored(..) | RowView::Fields(..))]) =
            (&self.plan.plain_columns, self.rows)
        {
            let field = |column: &u16| match view {
                RowView::Stored(row, _) => row.column(*column).inline(),
                RowView::Fields(fields, _) => fields[usize::from(*column)].as_deref(),
                _ => None,
            };
            pack_plain(columns.iter().map(field), out);
            return Ok(());
        }
        pack_computed(out);
        if let Some(columns) = &self.plan.late_columns {
            for (source, column) in columns {
                let view = &self.rows[usize::from(*source)];
                spilled_values::put(&view.column(*column, self.time_zone), out);
            }
            return Ok(());
        }
        for item in &self.plan.items {
            spilled_values::put(&item.eval(&self.cx)?, out);
        }
        Ok(())
    }

    #[inline]
    fn emit<S: ResultSink>(&self, target: &mut Target<'_, S>) -> Result<(), Failure> {
        let plan = self.plan;
        let sink = match target {
            Target::Sink(sink) => sink,
            Target::Taker(_) => {
                let mut values = Vec::with_capacity(plan.items.len());
                for item in &plan.items {
                    let value = item.eval(&self.cx)?;
                    self.cx.state.gather(&value)?;
                    values.push(value.into_owned());
                }
                return target.put(values);
            }
        };
        sink.row_begin();
        match (&plan.plain_columns, self.rows) {
            (Some(columns), [view]) => plain(columns, view, self.time_zone, *sink),
            _ => {
                for (item, ty) in plan.items.iter().zip(&plan.types) {
                    let value = item.eval(&self.cx)?;
                    self.cx.state.gather(&value)?;
                    output::announced(*sink, &value, ty);
                }
            }
        }
        sink.row_end();
        Ok(())
    }
}

#[inline]
fn plain<S: ResultSink>(columns: &[u16], view: &RowView<'_>, time_zone: i32, sink: &mut S) {
    match view {
        RowView::Stored(row, defs) => {
            for column in columns {
                let kind = &defs[usize::from(*column)].kind;
                match row.column(*column) {
                    FieldRef::Inline(bytes) => output::stored(sink, Some(bytes), kind, time_zone),
                    _ => sink.null(),
                }
            }
        }
        RowView::Fields(fields, defs) => {
            for column in columns {
                let kind = &defs[usize::from(*column)].kind;
                output::stored(sink, fields[usize::from(*column)].as_deref(), kind, time_zone);
            }
        }
        _ => columns.iter().for_each(|column| output::value(sink, &view.column(*column, time_zone))),
    }
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

impl OutputRow for ValueRow<'_> {
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
        self.values.iter().for_each(|value| spilled_values::put(value, out));
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

/// First byte of a packed row of plain columns in storage encoding.
const PLAIN: u8 = 0;
/// First byte of a packed row of computed values.
const COMPUTED: u8 = 1;
/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

/// Appends a row of plain columns.
fn pack_plain<'f>(fields: impl Iterator<Item = Option<&'f [u8]>>, out: &mut Vec<u8>) {
    out.push(PLAIN);
    for field in fields {
        match field {
            Some(bytes) => put_bytes(bytes, out),
            None => out.extend_from_slice(&NULL.to_ne_bytes()),
        }
    }
}

/// Begins a row of computed values, which are put behind.
fn pack_computed(out: &mut Vec<u8>) {
    out.push(COMPUTED);
}

/// Computes a row of the columns that were packed of it, and gives it to the target.
pub fn compute_and_hand_on<S: ResultSink>(
    row: &[u8],
    plan: &SelectPlan,
    columns: &[(u16, u16)],
    constant: Context<'_>,
    target: &mut Target<'_, S>,
) -> Result<(), Failure> {
    let packed = spilled_values::take_all(row.get(1..).unwrap_or_default());
    let mut sources: Vec<Vec<Value<'static>>> = vec![Vec::new(); plan.sources.len()];
    for ((source, column), value) in columns.iter().zip(packed) {
        let (values, column) = (&mut sources[usize::from(*source)], usize::from(*column));
        if values.len() <= column {
            values.resize(column + 1, Value::Null);
        }
        values[column] = value;
    }
    let views: Vec<RowView<'_>> = sources.iter().map(|values| RowView::Values(values)).collect();
    let cx = Context { rows: &views, ..constant };
    let held = cx.state.held();
    let mut values = Vec::with_capacity(plan.items.len());
    for item in &plan.items {
        let value = item.eval(&cx)?;
        cx.state.gather(&value)?;
        values.push(value.into_owned());
    }
    hand_on_values(values, plan, target)?;
    cx.state.release_to(held);
    Ok(())
}

/// Gives a packed row to the target.
pub fn hand_on<S: ResultSink>(
    row: &[u8],
    plan: &SelectPlan,
    state: &SqlContext,
    target: &mut Target<'_, S>,
) -> Result<(), Failure> {
    match row.split_first() {
        Some((&PLAIN, fields)) => hand_on_plain(fields, plan, state.time_zone_offset(), target),
        Some((_, values)) => hand_on_values(spilled_values::take_all(values), plan, target),
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
