//! INSERT, REPLACE and ON DUPLICATE KEY UPDATE.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use untorn::Table;
use untorn::engine::{self, OnDuplicate, OwnedKey, ReadMode, ScanIndex, WaitPolicy};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::write::{EncodedRow, RowWriter, Written};

use super::Flow;
use super::change::{CHANGE_UNITS, Changes, same, stored_bytes};
use super::column_defaults::{implicit_default, push_default, push_for_nothing, push_for_null};
use super::cursor::Cursor;
use super::row_rules;
use super::select::all_true;
use super::spilled_values::take_all;
use super::spool::Spool;
use super::{Executor, Subqueries};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::failure::duplicate_key::duplicate;
use crate::handler_counts::Handled;
use crate::plan::change::{Assigned, ColumnDefault, InsertPlan};
use crate::result::{SqlError, kind};
use crate::sql_mode;
use crate::stored_values::{self, Storing};
use crate::value::Value;

/// What a changing statement did.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// Affected rows for the client.
    pub affected: u64,
    /// First generated AUTO_INCREMENT value, else 0.
    pub insert_id: u64,
    /// The OK packet's text.
    pub info: String,
}

fn values_of(row: &EncodedRow, table: &Table, time_zone: i32) -> Vec<Value<'static>> {
    let decode = |(field, column): (&Option<&[u8]>, &untorn::schema::ColumnDef)| match field {
        Some(bytes) => stored_values::decode(bytes, &column.kind, time_zone).into_owned(),
        None => Value::Null,
    };
    row.fields().iter().zip(&table.def.columns).map(decode).collect()
}

/// A value of the SELECT for a column.
fn selected<'v>(plan: &InsertPlan, position: usize, value: &'v Value<'_>, column: &ColumnDef) -> Value<'v> {
    let types = plan.query.as_ref().map_or(&[][..], |query| &query.types);
    match types.get(position) {
        Some(ty) if ty.kind == kind::BIT => stored_values::of_bits(value.borrowed(), &column.kind),
        _ => value.borrowed(),
    }
}

/// An INSERT under way.
pub(super) struct Inserting<'p, 'e> {
    pub(super) plan: &'p InsertPlan,
    pub(super) table: Arc<Table>,
    subqueries: Subqueries<'e>,
    /// Position of each column's value in the row given, if it has one.
    positions: Vec<Option<usize>>,
    auto_column: Option<u16>,
    writer: RowWriter,
    /// The rows are those of LOAD DATA.
    loads: bool,
    /// Positions of values for which a line of LOAD DATA has no field.
    pub(super) missing: Range<usize>,
    pub(super) lenient: bool,
    result: Changed,
    /// What is in the AUTO_INCREMENT column of the last row.
    last_number: u64,
    /// A row was inserted or changed.
    changed: bool,
    duplicates: u64,
    /// Rows that a constraint refused, and IGNORE left out.
    refused: usize,
}

impl InsertPlan {
    /// The stored form of what ON DUPLICATE KEY UPDATE assigns. NULL for a column that may not be NULL is an
    /// error in any SQL mode, as that of a value for one row is, and of a query's rows, too.
    fn encode_on_duplicate(
        &self,
        assigned: &Assigned,
        column: &ColumnDef,
        at: usize,
        storing: &Storing<'_>,
        cx: &Context<'_>,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        match assigned {
            Assigned::Value(expr) if !column.nullable && !self.ignore && self.rows.len() <= 1 => {
                let value = expr.eval(cx)?;
                if value.is_null() {
                    return Err(errors::error(errors::BAD_NULL, &[&column.name]));
                }
                super::change::encode_value(&value, column, storing, cx)
            }
            assigned => super::change::encode_assigned(assigned, &self.defaults[at], column, storing, cx),
        }
    }
}

impl Inserting<'_, '_> {
    /// The next AUTO_INCREMENT value. Behind the greatest that the column takes it is that one again, as in
    /// MySQL: mostly it is there already (1062). Numbers that leave gaps go beyond it (1264). Of a BIGINT
    /// UNSIGNED there is none (1467).
    async fn generate(&mut self, column: &ColumnDef, state: &SqlContext) -> Result<u64, Failure> {
        let most = column.kind.integer_max().unwrap_or(u64::MAX);
        let (settings, replace) = (state.settings(), self.plan.replace);
        let gaps = settings.auto_increment_increment > 1 || settings.auto_increment_offset > 1;
        // `SET insert_id` says which number this is.
        state.insert_id.set(0);
        match self.writer.generate().await {
            Err(untorn::Error::AutoIncrementExhausted) if most < u64::MAX && !replace => {
                Ok(most + u64::from(gaps))
            }
            taken => Ok(taken?),
        }
    }

    /// Whether NULL for a column that may not be NULL is a warning.
    fn takes_null(&self, column: &ColumnDef, number: u64, state: &SqlContext) -> Result<(), SqlError> {
        let error = match self.loads {
            true => errors::error(errors::WARN_NULL_TO_NOTNULL, &[&column.name, &number]),
            false => errors::error(errors::BAD_NULL, &[&column.name]),
        };
        if !self.lenient || self.plan.rows.len() == 1 && !self.plan.ignore && !self.loads {
            return Err(error);
        }
        state.warn(error);
        Ok(())
    }

    /// Complains that a line of LOAD DATA has too few fields.
    pub(super) fn miss(&self, number: u64, state: &SqlContext) -> Result<(), SqlError> {
        let error = errors::error(errors::WARN_TOO_FEW_RECORDS, &[&number]);
        if !self.lenient {
            return Err(error);
        }
        state.warn(error);
        Ok(())
    }

    /// The number of a row in storage encoding.
    fn numbered(&mut self, row: &EncodedRow) {
        let Some(at) = self.auto_column.map(usize::from) else { return };
        if let Some(bytes) = row.field(at) {
            self.last_number = number_of(&stored_values::decode(bytes, &self.table.def.columns[at].kind, 0));
        }
    }

    /// The number that the client is told: the first one that was generated, else what the statement called
    /// LAST_INSERT_ID with, else that of the last row.
    fn told_number(&self, state: &SqlContext) -> u64 {
        let last = if self.changed { self.last_number } else { 0 };
        match self.result.insert_id {
            0 => state.said_insert_id.get().unwrap_or(last),
            generated => generated,
        }
    }

    /// The end of a LOAD DATA of this number of lines.
    pub(super) fn loaded(mut self, records: u64, state: &SqlContext) -> Changed {
        self.writer.finish();
        self.result.insert_id = 0;
        let (deleted, skipped) = match self.plan.replace {
            true => (self.duplicates, 0),
            false => (0, self.duplicates),
        };
        let skipped = skipped + self.refused as u64;
        let warnings = state.warning_count.get();
        self.result.info =
            format!("Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}");
        self.result
    }

    /// Whether the AUTO_INCREMENT column that is given this value gets the next number instead.
    fn generates(
        &self,
        value: Option<&Value<'_>>,
        column: &ColumnDef,
        storing: &Storing<'_>,
    ) -> Result<bool, SqlError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(true) };
        if storing.state.settings().sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0 {
            return Ok(false);
        }
        let given = value.to_integer();
        let unsigned = column.kind.integer().is_some_and(|(_, unsigned)| unsigned);
        if self.lenient && unsigned && given < 0 {
            // It is stored as zero, with a warning.
            storing.encode(value, column, &mut Vec::new())?;
            return Ok(true);
        }
        if given == 0 && matches!(value, Value::Text(..)) {
            // A text that is no number is refused, or counts as zero with a warning.
            storing.encode(value, column, &mut Vec::new())?;
        }
        Ok(given == 0)
    }
}

/// What becomes of the AUTO_INCREMENT column in a row.
#[derive(Default)]
struct Numbered {
    /// The value that was generated.
    generated: Option<u64>,
    /// One that was said: the next is behind it, if the row is inserted.
    said: Option<u64>,
}

impl<'e> Executor<'e> {
    /// Executes INSERT or REPLACE.
    pub async fn insert(&mut self, plan: &InsertPlan) -> Result<Changed, Failure> {
        let Some(mut inserting) = self.inserting(plan, false).await? else { return Ok(Changed::default()) };
        let records = match &plan.query {
            Some(query) => {
                // Everything is read first: the query may read the table that is inserted into.
                let state: &'e SqlContext = self.state;
                self.check_constants(query)?;
                let mut spool = Spool::new(state);
                self.select_into(query, &mut spool).await?;
                let count = spool.0.count();
                let mut rows = spool.0.finish().await?;
                let mut number = 0;
                while let Some((_, packed)) = rows.next().await? {
                    self.tick(CHANGE_UNITS).await?;
                    number += 1;
                    let row = take_all(packed);
                    self.insert_row(&mut inserting, number, Given::Values(&row)).await?;
                }
                Some(usize::try_from(count).unwrap_or(usize::MAX))
            }
            None => {
                inserting.writer.expect_rows(plan.rows.len() as u64);
                for (number, row) in plan.rows.iter().enumerate() {
                    self.tick(CHANGE_UNITS).await?;
                    self.insert_row(&mut inserting, number as u64 + 1, Given::Expressions(row)).await?;
                }
                (plan.rows.len() > 1).then_some(plan.rows.len())
            }
        };
        inserting.result.insert_id = inserting.told_number(self.state);
        inserting.writer.finish();
        if let Some(records) = records {
            inserting.result.info = format!(
                "Records: {}  Duplicates: {}  Warnings: {}",
                records.saturating_sub(inserting.refused),
                inserting.duplicates,
                self.state.warning_count.get()
            );
        }
        Ok(inserting.result)
    }

    /// Begins INSERT, or LOAD DATA; `None`: there is no table.
    pub(super) async fn inserting<'p>(
        &mut self,
        plan: &'p InsertPlan,
        loads: bool,
    ) -> Result<Option<Inserting<'p, 'e>>, Failure> {
        let Some(table) = plan.source.engine_table().cloned() else { return Ok(None) };
        let lenient = plan.ignore || !self.state.is_strict();
        self.state.changes_strictly.set(!lenient);
        plan.passed_over.iter().for_each(|warning| self.state.warn(warning.clone()));
        let subqueries = self.subqueries(&plan.subqueries).await?;
        let mut positions = vec![None; table.def.columns.len()];
        for (position, column) in plan.columns.iter().enumerate() {
            positions[usize::from(*column)] = Some(position);
        }
        Ok(Some(Inserting {
            auto_column: table.def.auto_increment_column(),
            positions,
            subqueries,
            writer: self.writer(plan, &table)?,
            loads,
            missing: 0..0,
            lenient,
            result: Changed::default(),
            last_number: 0,
            changed: false,
            duplicates: 0,
            refused: 0,
            plan,
            table,
        }))
    }

    pub(super) async fn insert_row(
        &mut self,
        inserting: &mut Inserting<'_, '_>,
        number: u64,
        given: Given<'_>,
    ) -> Result<(), Failure> {
        let held = self.state.held();
        let inserted = self.insert_given(inserting, number, given).await;
        // Whatever became of the row, its values are gone.
        self.state.release_to(held);
        inserted
    }

    async fn insert_given(
        &mut self,
        inserting: &mut Inserting<'_, '_>,
        number: u64,
        given: Given<'_>,
    ) -> Result<(), Failure> {
        let mut row = EncodedRow::default();
        let plan = inserting.plan;
        let Numbered { generated, said } = match self.encode_row(inserting, number, given, &mut row).await {
            Err(Failure::Sql(error)) if plan.ignore && row_rules::is_refusal(&error) => {
                self.state.warn(error);
                inserting.refused += 1;
                return Ok(());
            }
            encoded => encoded?,
        };
        // Beside a query with assignments MySQL tells nothing but what was generated.
        if plan.query.is_none() || plan.on_duplicate.is_empty() {
            inserting.numbered(&row);
        }
        let changes = plan.replace || !plan.on_duplicate.is_empty();
        let on_duplicate = if changes { OnDuplicate::Change } else { OnDuplicate::Refuse };
        let mut replaced = 0;
        self.state.handled.add(Handled::Write, 1);
        loop {
            let written = inserting.writer.insert(self.transaction, &row.fields(), on_duplicate).await;
            let Some(written) = row_rules::ignoring(written, plan.ignore, self.state)? else {
                generated.into_iter().for_each(|value| inserting.writer.give_back(value));
                inserting.refused += 1;
                return Ok(());
            };
            let Written::Duplicate { index, entry } = written else {
                inserting.result.affected += 1 + replaced;
                inserting.changed = true;
                if let Some(said) = said {
                    inserting.writer.use_value(said).await?;
                }
                // Through a view that does not show the numbered column nobody hears of it.
                let numbered = inserting.table.def.auto_increment_column();
                let is_shown = |number: u16| Some(number) == numbered;
                let mask = plan.source.mask.as_ref();
                let told = mask.is_none_or(|mask| mask.shown.iter().any(|(_, number)| is_shown(*number)));
                if let (Some(value), 0, true) = (generated, inserting.result.insert_id, told) {
                    inserting.result.insert_id = value;
                    self.state.generated_insert_id.set(value);
                }
                return Ok(());
            };
            let error = duplicate(&inserting.table, &index, &entry, self.state.time_zone_offset());
            if !plan.ignore && !changes {
                return Err(error.into());
            }
            if plan.replace {
                match self.replace_conflict(inserting, &index, &entry, &row).await? {
                    Replaced::Same => {
                        inserting.result.affected += 1 + replaced;
                        inserting.changed = true;
                        return Ok(());
                    }
                    Replaced::Deleted => {
                        inserting.duplicates += 1;
                        replaced += 1;
                    }
                    Replaced::Gone => {}
                }
                continue;
            }
            generated.into_iter().for_each(|value| inserting.writer.give_back(value));
            if plan.on_duplicate.is_empty() {
                inserting.duplicates += 1;
                self.state.warn(error);
                return Ok(());
            }
            let selected = match given {
                Given::Values(values) => plan.selected_too.rows(values),
                Given::Expressions(_) => Vec::new(),
            };
            let before = (inserting.duplicates, inserting.result.affected);
            self.update_conflict(inserting, number, &index, &entry, &row, &selected).await?;
            if plan.ignore {
                // MySQL counts the rows that nothing came of.
                let came_of_it = inserting.result.affected >= before.1 + 2;
                inserting.duplicates = before.0 + u64::from(!came_of_it);
            }
            return Ok(());
        }
    }

    /// The writer of a statement's rows, and of those that it changes instead.
    fn writer(&self, plan: &InsertPlan, table: &Arc<Table>) -> Result<RowWriter, Failure> {
        let mut writer = RowWriter::of_evaluated(table.clone());
        let settings = self.state.settings();
        writer.number_by(settings.auto_increment_increment, settings.auto_increment_offset);
        if table.def.auto_increment_column().is_some()
            && let value @ 1.. = self.state.insert_id.get()
        {
            writer.begin_with(value);
        }
        if !plan.on_duplicate.is_empty() {
            let assigned = |column| plan.on_duplicate.iter().any(|(assigned, _)| *assigned == column);
            writer.assigns(assigned, || self.state.statement_time())?;
        }
        Ok(writer)
    }

    /// The values of a row that read its own columns: those named before have their values by then, the
    /// others their defaults.
    fn values_of_itself(
        &self,
        inserting: &Inserting<'_, '_>,
        number: u64,
        values: &[Assigned],
    ) -> Result<Vec<Assigned>, SqlError> {
        let (plan, columns, state) = (inserting.plan, &inserting.table.def.columns, self.state);
        let storing = Storing { state, table: &inserting.table.name, row: number, lenient: true };
        // What is wrong with a value is said when it is stored.
        let quietly = |value: &Value<'_>, column: &ColumnDef| {
            let said = (state.warning_count.get(), state.warnings.borrow().len());
            let mut bytes = Vec::new();
            let encoded = storing.encode(value, column, &mut bytes);
            state.warning_count.set(said.0);
            state.warnings.borrow_mut().truncate(said.1);
            encoded.ok().map(|()| bytes)
        };
        let default = |(column, default): (&ColumnDef, &ColumnDefault)| match default {
            ColumnDefault::Stored(bytes) => Some(bytes.to_vec()),
            ColumnDefault::Now => {
                let mut bytes = Vec::new();
                state.statement_time().encode(column, &mut bytes).ok().map(|()| bytes)
            }
            _ if column.nullable => None,
            _ => quietly(&implicit_default(&column.kind), column),
        };
        let mut fields: Vec<Option<Vec<u8>>> = columns.iter().zip(&plan.defaults).map(default).collect();
        let mut evaluated = Vec::with_capacity(values.len());
        for (value, at) in values.iter().zip(&plan.columns) {
            let Assigned::Value(expr) = value else {
                evaluated.push(Assigned::Default);
                continue;
            };
            let value = {
                let view = [RowView::Fields(&fields, columns)];
                let cx = Context { rows: &view, ..self.context(&inserting.subqueries) };
                expr.eval(&cx)?.into_owned()
            };
            let at = usize::from(*at);
            fields[at] = if value.is_null() { None } else { quietly(&value, &columns[at]) };
            evaluated.push(Assigned::Value(Expr::Literal(value)));
        }
        Ok(evaluated)
    }

    /// Makes a row of what is given for it. Its AUTO_INCREMENT value is generated last: a row that is
    /// refused before uses none.
    async fn encode_row(
        &mut self,
        inserting: &mut Inserting<'_, '_>,
        number: u64,
        given: Given<'_>,
        row: &mut EncodedRow,
    ) -> Result<Numbered, Failure> {
        row.clear();
        let given_itself;
        let given = match given {
            Given::Expressions(values) if inserting.plan.reads_itself => {
                given_itself = self.values_of_itself(inserting, number, values)?;
                Given::Expressions(&given_itself)
            }
            given => given,
        };
        let mut numbered = Numbered::default();
        let mut computed: SmallVec<[u16; 8]> = SmallVec::new();
        let rules = inserting.plan.rules.as_deref();
        let mut generates = None;
        let table = inserting.table.clone();
        let state = self.state;
        let storing = Storing { state, table: &table.name, row: number, lenient: inserting.lenient };
        let nulls = [RowView::Nulls];
        for (at, column) in table.def.columns.iter().enumerate() {
            let is_auto = inserting.auto_column == Some(at as u16);
            let is_missing = inserting.positions[at].is_some_and(|at| inserting.missing.contains(&at));
            if is_missing {
                inserting.miss(number, state)?;
            }
            let value = {
                let cx = Context { rows: &nulls, ..self.context(&inserting.subqueries) };
                match (inserting.positions[at], &given) {
                    (Some(position), Given::Values(values)) => {
                        values.get(position).map(|value| selected(inserting.plan, position, value, column))
                    }
                    (Some(position), Given::Expressions(row)) => match row.get(position) {
                        Some(Assigned::Value(expr)) => Some(expr.eval(&cx)?),
                        _ => None,
                    },
                    (None, _) => None,
                }
            };
            if is_auto {
                // Nothing that is computed or checked reads it.
                if inserting.generates(value.as_ref(), column, &storing)? {
                    generates = Some(at);
                    row.push_null();
                    continue;
                }
            }
            let default = &inserting.plan.defaults[at];
            match value {
                _ if is_missing && !is_auto => push_for_nothing(default, column, &storing, row)?,
                None if matches!(default, ColumnDefault::Expression(_) | ColumnDefault::Generated(_)) => {
                    computed.push(at as u16);
                    row.push_null();
                }
                None => push_default(default, column, &storing, &inserting.plan.source, row)?,
                Some(Value::Null) if column.nullable => row.push_null(),
                Some(Value::Null) => {
                    inserting.takes_null(column, number, state)?;
                    row.push(|out| push_for_null(column, &storing, out))?;
                }
                Some(value) => {
                    row.push(|out| storing.encode(&value, column, out))?;
                    if is_auto && value.to_integer() > 0 {
                        numbered.said = Some(u64::try_from(value.to_integer()).unwrap_or(u64::MAX));
                    }
                }
            }
        }
        if let Some(rules) = rules {
            let mut fields = row_rules::fields_of(row);
            let wanted = |column| computed.contains(&column);
            let (defaults, columns) = (&inserting.plan.defaults, &table.def.columns);
            let cx = self.context(&inserting.subqueries);
            row_rules::compute(rules, defaults, wanted, &mut fields, columns, &storing, &cx)?;
            row_rules::check(rules, &fields, columns, &cx)?;
            row_rules::set_fields(row, &fields);
        }
        if let Some(at) = generates {
            let column = &table.def.columns[at];
            let next = inserting.generate(column, state).await?;
            numbered.generated = Some(next);
            row.set(at, |out| storing.encode(&Value::UInt(next), column, out))?;
        }
        // A statement that goes on behind a duplicate counts on from what it says.
        let goes_on = inserting.plan.replace || inserting.plan.query.is_some() || inserting.loads;
        if let Some(said) = numbered.said.take_if(|_| goes_on) {
            inserting.writer.use_value(said).await?;
        }
        Ok(numbered)
    }

    /// The row that stands in the way, also in storage encoding if that is wanted.
    async fn conflict(
        &mut self,
        table: &Arc<Table>,
        index: &str,
        entry: &[Option<Vec<u8>>],
        encoded: bool,
    ) -> Result<Option<Conflict>, Failure> {
        let clustered = table.def.clustered_key().is_some_and(|key| key.name == index);
        let secondary = table.def.secondary_keys().iter().position(|key| key.name == index);
        let scan_index = match (clustered, secondary) {
            (true, _) => ScanIndex::Clustered,
            (false, Some(n)) => ScanIndex::Secondary(n),
            (false, None) => return Ok(None),
        };
        let fields: smallvec::SmallVec<[Option<&[u8]>; 4]> =
            entry.iter().map(|field| field.as_deref()).collect();
        let range = engine::KeyRange::equal(OwnedKey::from_fields(&fields));
        let all: Vec<u16> = (0..table.def.columns.len() as u16).collect();
        let mode = ReadMode::Locking { exclusive: true, wait: WaitPolicy::Wait };
        let mut cursor = Cursor::over(table, scan_index, range, mode, &all, self.state);
        let (mut key, mut last) = (OwnedKey::default(), OwnedKey::default());
        let (mut values, mut fields) = (Vec::new(), Vec::new());
        let zone = self.state.time_zone_offset();
        let mut found = false;
        while !found
            && cursor
                .run_with_keys(self.transaction.engine_mut(), &mut last, &mut |view, row, copied| {
                    // A row that was copied because of a long column comes with its key.
                    match row {
                        Some(row) => row.clustered_key(&mut key),
                        None => key.clone_from(copied),
                    }
                    values = all.iter().map(|column| view.column(*column, zone).into_owned()).collect();
                    if encoded {
                        let stored =
                            |column: &u16| stored_bytes(&view, *column).flatten().map(<[u8]>::to_vec);
                        fields = all.iter().map(stored).collect();
                    }
                    found = true;
                    Ok(Flow::Stop)
                })
                .await?
        {}
        Ok(found.then_some(Conflict { key, values, fields }))
    }

    /// Makes room for a row of REPLACE. As in MySQL a row that would be put there again as it is stays, if no
    /// other unique key can be in the way.
    async fn replace_conflict(
        &mut self,
        inserting: &mut Inserting<'_, '_>,
        index: &str,
        entry: &[Option<Vec<u8>>],
        row: &EncodedRow,
    ) -> Result<Replaced, Failure> {
        let table = inserting.table.clone();
        let Some(Conflict { key, values: old, .. }) = self.conflict(&table, index, entry, false).await?
        else {
            return Ok(Replaced::Gone);
        };
        let last = checked_last(&table.def).is_some_and(|last| last.name == index);
        if last {
            let new = values_of(row, &table, self.state.time_zone_offset());
            if old.iter().zip(&new).all(|(old, new)| same(old, new)) {
                return Ok(Replaced::Same);
            }
        }
        if let Some(mask) = &inserting.plan.source.mask {
            let views = [RowView::Values(&old)];
            let cx = Context { rows: &views, ..self.context(&[]) };
            if !all_true(&mask.conditions, &cx)? {
                return Err(errors::error(errors::REPLACE_INACCESSIBLE_ROWS, &[]).into());
            }
        }
        inserting.writer.delete(self.transaction, &key.fields()).await?;
        // What MySQL changes in place is no row that went.
        self.state.handled.add(if last { Handled::Update } else { Handled::Delete }, 1);
        if last {
            // MySQL changes the row in place.
            inserting.writer.goes_on_with_row();
        }
        Ok(Replaced::Deleted)
    }

    async fn update_conflict(
        &mut self,
        inserting: &mut Inserting<'_, '_>,
        number: u64,
        index: &str,
        entry: &[Option<Vec<u8>>],
        row: &EncodedRow,
        selected: &[Vec<Value<'static>>],
    ) -> Result<(), Failure> {
        let table = inserting.table.clone();
        let encoded = inserting.plan.rules.is_some();
        let Some(Conflict { key, values: mut old, mut fields }) =
            self.conflict(&table, index, entry, encoded).await?
        else {
            return Ok(());
        };
        let new = values_of(row, &table, self.state.time_zone_offset());
        let (state, lenient) = (self.state, inserting.lenient);
        let storing = Storing { state, table: &table.name, row: number, lenient };
        let mut changes = Changes::new();
        let mut changed: SmallVec<[(u16, Value<'static>); 4]> = SmallVec::new();
        for (column, assigned) in &inserting.plan.on_duplicate {
            let at = usize::from(*column);
            if matches!(inserting.plan.defaults[at], ColumnDefault::Generated(_)) {
                continue;
            }
            let def = &table.def.columns[at];
            let encoded = {
                let own = std::iter::once(RowView::Values(&old));
                let views: SmallVec<[RowView<'_>; 4]> =
                    own.chain(selected.iter().map(|row| RowView::Values(row))).collect();
                let cx = Context { rows: &views, inserted: &new, ..self.context(&inserting.subqueries) };
                inserting.plan.encode_on_duplicate(assigned, def, at, &storing, &cx)?
            };
            let value = match &encoded {
                Some(bytes) => {
                    stored_values::decode(bytes, &def.kind, self.state.time_zone_offset()).into_owned()
                }
                None => Value::Null,
            };
            if !same(&value, &old[at]) {
                let was = std::mem::replace(&mut old[at], value);
                if changed.iter().all(|(c, _)| c != column) {
                    changed.push((*column, was));
                }
                changes.retain(|(c, _)| c != column);
                // One that is assigned twice may be what it was.
                if !changed.iter().any(|(c, was)| c == column && same(was, &old[at])) {
                    changes.push((*column, encoded));
                }
            }
        }
        if let (Some(at), None) = (inserting.auto_column, &inserting.plan.query) {
            inserting.last_number = number_of(&old[usize::from(at)]);
        }
        if changes.is_empty() {
            let counts = u64::from(self.state.terms().found_rows);
            inserting.result.affected += counts;
            inserting.duplicates += if inserting.plan.query.is_none() { counts } else { 0 };
            return Ok(());
        }
        if let Some(rules) = &inserting.plan.rules {
            let cx = self.context(&inserting.subqueries);
            let (defaults, columns) = (&inserting.plan.defaults, &table.def.columns);
            let stamps = inserting.writer.stamps();
            let checked =
                row_rules::change(rules, defaults, &mut fields, stamps, &mut changes, columns, &storing, &cx);
            match checked {
                Err(error) if inserting.plan.ignore && row_rules::is_refusal(&error) => {
                    self.state.warn(error);
                    return Ok(());
                }
                checked => checked?,
            }
        }
        let changes: Vec<(u16, Option<&[u8]>)> =
            changes.iter().map(|(c, bytes)| (*c, bytes.as_deref())).collect();
        self.state.handled.add(Handled::Update, 1);
        let written = inserting.writer.update(self.transaction, &key.fields(), &changes).await;
        let Some(written) = row_rules::ignoring(written, inserting.plan.ignore, self.state)? else {
            return Ok(());
        };
        if let Written::Duplicate { index, entry } = written {
            let error = duplicate(&table, &index, &entry, self.state.time_zone_offset());
            if !inserting.plan.ignore {
                return Err(error.into());
            }
            self.state.warn(error);
            return Ok(());
        }
        inserting.result.affected += 2;
        inserting.duplicates += 1;
        inserting.changed = true;
        Ok(())
    }
}

/// The number of a row as clients are told it, who know no sign.
fn number_of(value: &Value<'_>) -> u64 {
    match value {
        Value::UInt(value) => *value,
        value => value.to_integer() as u64,
    }
}

/// A row that stands in the way of another one.
struct Conflict {
    key: OwnedKey,
    values: Vec<Value<'static>>,
    /// In storage encoding, if it is wanted: for a table whose rows are computed or checked.
    fields: row_rules::Fields,
}

/// What became of the row in the way of a REPLACE.
enum Replaced {
    /// It is the row that was to be put there.
    Same,
    Deleted,
    /// Somebody else has deleted it.
    Gone,
}

/// The unique key that MySQL looks at last: those that may be NULL come after those that may not.
fn checked_last(def: &TableDef) -> Option<&KeyDef> {
    let nullable = |part: &KeyPart| def.columns[usize::from(part.column)].nullable;
    let unique = def.keys.iter().filter(|key| key.kind != KeyKind::Secondary);
    unique.max_by_key(|key| key.parts.iter().any(nullable))
}

/// Where the values of a row come from.
#[derive(Clone, Copy)]
pub(super) enum Given<'g> {
    Values(&'g [Value<'g>]),
    Expressions(&'g [Assigned]),
}
