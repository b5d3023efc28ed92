//! What becomes of a row when its table is rebuilt with another definition.
//!
//! A column that keeps its type keeps its bytes. Otherwise the value is read and stored again, with the
//! checks of strict mode or without, as in INSERT; but text that is too long is cut data here (1265), as
//! MySQL says it. An added column gets its default, and where it has none the zero of its type. Generated
//! columns and default expressions are computed, and every enforced constraint is checked.

use untorn::Table;
use untorn::engine::Field;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::ColumnType;
use untorn::write::EncodedRow;

use super::column_defaults::implicit_default;
use super::row_rules::{self, Fields};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::Context;
use crate::failure;
use crate::plan::Planner;
use crate::plan::change::ColumnDefault;
use crate::plan::row_rules::RowRules;
use crate::result::SqlError;
use crate::sql_mode;
use crate::stored_values::{self, Storing};
use crate::value::Value;

/// What a table is rebuilt to.
#[derive(Clone, Copy)]
pub struct Conversion<'s> {
    /// The definition.
    pub def: &'s TableDef,
    /// For each column which one it was.
    pub origins: &'s [Option<u16>],
    /// A column that has become AUTO_INCREMENT: what has no number gets one, from this one on.
    pub numbers_from: Option<u64>,
}

/// Turns old rows into new ones, one after the other.
pub struct RowConversion<'s> {
    state: &'s SqlContext,
    table: &'s str,
    old: &'s TableDef,
    new: &'s TableDef,
    origins: &'s [Option<u16>],
    defaults: Vec<ColumnDefault>,
    rules: Option<Box<RowRules>>,
    /// The column whose missing values are numbered.
    numbered: Option<usize>,
    next_number: u64,
    /// Rows converted.
    count: u64,
    lenient: bool,
}

impl<'s> RowConversion<'s> {
    /// For the rows of a table.
    ///
    /// # Errors
    /// A default that its column does not take, or an expression that cannot be bound.
    pub fn new(
        state: &'s SqlContext,
        table: &'s Table,
        conversion: Conversion<'s>,
    ) -> Result<RowConversion<'s>, SqlError> {
        let Conversion { def, origins, numbers_from } = conversion;
        let (defaults, rules) = Planner::new(state).rules_of(&table.database, &table.name, def)?;
        let lenient = !state.is_strict();
        state.changes_strictly.set(!lenient);
        let numbered = numbers_from.and(def.auto_increment_column()).map(usize::from);
        Ok(RowConversion {
            state,
            table: &table.name,
            old: &table.def,
            new: def,
            origins,
            defaults,
            rules,
            numbered,
            next_number: numbers_from.unwrap_or(1).max(1),
            count: 0,
            lenient,
        })
    }

    /// For each column the old one whose bytes it keeps.
    pub fn copied(&self) -> Vec<Option<u16>> {
        let keeps = |(at, origin): (usize, &Option<u16>)| {
            origin.filter(|old| {
                self.numbered != Some(at)
                    && self.new.columns[at].generated.is_none()
                    && self.old.columns[usize::from(*old)].stores_alike(&self.new.columns[at])
            })
        };
        self.origins.iter().enumerate().map(keeps).collect()
    }

    /// Makes a new row of an old one.
    ///
    /// # Errors
    /// A value that its column does not take, a constraint that refuses the row.
    pub fn convert(&mut self, row: &[Field<'_>], out: &mut EncodedRow) -> Result<(), SqlError> {
        self.count += 1;
        let held = self.state.held();
        let mut fields: Fields = Vec::with_capacity(self.new.columns.len());
        for at in 0..self.new.columns.len() {
            let field = match self.origins[at] {
                _ if self.new.columns[at].generated.is_some() => None,
                Some(origin) => self.kept(at, usize::from(origin), row)?,
                None => self.added(at)?,
            };
            fields.push(field);
        }
        if let Some(rules) = &self.rules {
            let (defaults, origins) = (&self.defaults, self.origins);
            let wanted = |column: u16| {
                let at = usize::from(column);
                matches!(defaults[at], ColumnDefault::Generated(_)) || origins[at].is_none()
            };
            let cx = Context::constant(self.state, &[]);
            let storing = self.storing();
            let columns = &self.new.columns;
            row_rules::compute(rules, defaults, wanted, &mut fields, columns, &storing, &cx).map_err(cut)?;
            row_rules::check(rules, &fields, columns, &cx)?;
        }
        row_rules::set_fields(out, &fields);
        self.state.release_to(held);
        Ok(())
    }

    fn storing(&self) -> Storing<'s> {
        Storing { state: self.state, table: self.table, row: self.count, lenient: self.lenient }
    }

    /// The value of a column that was there before.
    fn kept(&mut self, at: usize, origin: usize, row: &[Field<'_>]) -> Result<Option<Vec<u8>>, SqlError> {
        let (old, new) = (&self.old.columns[origin], &self.new.columns[at]);
        let value = match row.get(origin).copied().flatten() {
            Some(bytes) if old.stores_alike(new) && self.numbered != Some(at) => {
                return Ok(Some(bytes.to_vec()));
            }
            // A number of members, not their names.
            Some(bytes) if has_members(&old.kind) && !new.kind.is_string() && !has_members(&new.kind) => {
                Value::UInt(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            Some(bytes) => {
                let value = stored_values::decode(bytes, &old.kind, self.state.time_zone_offset());
                let of_bits = matches!(old.kind, ColumnType::Bit { .. });
                if of_bits { stored_values::of_bits(value, &new.kind) } else { value }
            }
            None => Value::Null,
        };
        if self.numbered == Some(at) {
            return self.number(&value, new).map(Some);
        }
        if value.is_null() {
            return if new.nullable { Ok(None) } else { self.instead_of_null(old, new).map(Some) };
        }
        let mut bytes = Vec::new();
        self.storing().encode(&value, new, &mut bytes).map_err(cut)?;
        Ok(Some(bytes))
    }

    /// What a NULL becomes in a column that may not be NULL.
    fn instead_of_null(&self, old: &ColumnDef, new: &ColumnDef) -> Result<Vec<u8>, SqlError> {
        let of_moments = |column: &ColumnDef| matches!(column.kind, ColumnType::Timestamp { .. });
        if of_moments(new) && (self.lenient || !of_moments(old)) {
            return self.now(new);
        }
        let error = errors::error(errors::WARN_DATA_TRUNCATED, &[&new.name, &self.count]);
        if !self.lenient {
            let same = old.stores_alike(new);
            return Err(if same { errors::error(errors::INVALID_USE_OF_NULL, &[]) } else { error });
        }
        self.state.warn(error);
        self.zero(new)
    }

    /// The value of a column that has no default.
    fn zero(&self, column: &ColumnDef) -> Result<Vec<u8>, SqlError> {
        let mut bytes = Vec::new();
        self.storing().encode(&implicit_default(&column.kind), column, &mut bytes)?;
        Ok(bytes)
    }

    /// The time of the statement.
    fn now(&self, column: &ColumnDef) -> Result<Vec<u8>, SqlError> {
        let mut bytes = Vec::new();
        let time = self.state.statement_time();
        time.encode(column, &mut bytes).map_err(|error| failure::engine(&error))?;
        Ok(bytes)
    }

    /// The value of a new column; one that is computed follows.
    fn added(&mut self, at: usize) -> Result<Option<Vec<u8>>, SqlError> {
        let column = &self.new.columns[at];
        match &self.defaults[at] {
            ColumnDefault::Stored(bytes) => Ok(Some(bytes.clone())),
            ColumnDefault::Null | ColumnDefault::Expression(_) | ColumnDefault::Generated(_) => Ok(None),
            ColumnDefault::Now => self.now(column).map(Some),
            ColumnDefault::AutoIncrement => self.number(&Value::Null, column).map(Some),
            ColumnDefault::Missing => self.zero(column).map(Some),
        }
    }

    /// The value of a column that has become AUTO_INCREMENT: NULL and 0 are numbered.
    fn number(&mut self, value: &Value<'_>, column: &ColumnDef) -> Result<Vec<u8>, SqlError> {
        let keeps_zero = self.state.settings().sql_mode & sql_mode::NO_AUTO_VALUE_ON_ZERO != 0;
        let given = !value.is_null() && (keeps_zero || value.to_integer() != 0);
        let mut bytes = Vec::new();
        let settings = self.state.settings();
        let next =
            on_step(self.next_number, settings.auto_increment_increment, settings.auto_increment_offset);
        let number = if given { value.to_integer() } else { i128::from(next) };
        let stored = if given { value.borrowed() } else { Value::UInt(next) };
        self.storing().encode(&stored, column, &mut bytes).map_err(cut)?;
        if let Ok(number) = u64::try_from(number) {
            self.next_number = self.next_number.max(number.saturating_add(1));
        }
        Ok(bytes)
    }
}

/// The first number from this one on that `auto_increment_increment` and `auto_increment_offset` allow. An
/// offset above the increment is none.
fn on_step(number: u64, increment: u64, offset: u64) -> u64 {
    let increment = increment.max(1);
    let offset = if offset > increment { 0 } else { offset };
    if number <= offset {
        return offset;
    }
    let steps = (number - offset).div_ceil(increment);
    steps.checked_mul(increment).and_then(|above| above.checked_add(offset)).unwrap_or(u64::MAX)
}

fn has_members(kind: &ColumnType) -> bool {
    matches!(kind, ColumnType::Enum { .. } | ColumnType::Set { .. })
}

/// Text that is too long is data that is cut, here.
fn cut(error: SqlError) -> SqlError {
    if error.code != errors::DATA_TOO_LONG {
        return error;
    }
    let rest = error.message.strip_prefix("Data too long").unwrap_or_default();
    SqlError::new(errors::WARN_DATA_TRUNCATED, b"01000", format!("Data truncated{rest}"))
}
