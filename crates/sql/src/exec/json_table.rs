//! The rows of a JSON_TABLE ([`crate::plan::json_table`]).

use std::future::Future;
use std::pin::Pin;

use untorn::schema::ColumnDef;
use untorn::types::ColumnType;

use super::{Executor, KeptRows, RowTaker};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::functions::json::room;
use crate::failure::Failure;
use crate::json_column::{column_value, stored};
use crate::plan::json_table::{Instead, JsonColumn, JsonRows, JsonTable};
use crate::result::SqlError;
use crate::value::Value;
use crate::value::json::{Json, Room, Source};

impl<'e> Executor<'e> {
    /// The rows that a document has.
    pub(super) async fn rows_of_document(
        &self,
        table: &JsonTable,
        document: &Value<'_>,
    ) -> Result<KeptRows<'e>, Failure> {
        let state: &'e SqlContext = self.state;
        let ask = |bytes| room(state, bytes);
        let held = state.held();
        let mut room = Room::new(&ask);
        let rows = KeptRows::new(state, usize::MAX);
        let Some(document) = Json::read(document, Source::Argument(1, "json_table"), &mut room)? else {
            return Ok(rows);
        };
        let row = vec![Value::Null; table.columns.len()];
        let mut making = Making { executor: self, columns: &table.columns, room, row, rows };
        making.add(&table.rows, &document).await?;
        state.release_to(held);
        Ok(making.rows)
    }
}

struct Making<'m, 'e> {
    executor: &'m Executor<'e>,
    columns: &'m [ColumnDef],
    room: Room<'m>,
    /// The row at hand, as far as it is known.
    row: Vec<Value<'static>>,
    rows: KeptRows<'e>,
}

impl<'m> Making<'m, '_> {
    /// Adds the rows that are in a value; whether there are any.
    fn add<'a>(
        &'a mut self,
        rows: &'a JsonRows,
        value: &'a Json,
    ) -> Pin<Box<dyn Future<Output = Result<bool, Failure>> + 'a>> {
        Box::pin(async move {
            let found = value.seek(&rows.path, &mut self.room)?;
            for (number, value) in found.iter().enumerate() {
                self.executor.tick(1).await?;
                for (at, column) in &rows.columns {
                    self.row[*at] = self.column(column, &self.columns[*at], value, number)?;
                }
                let mut any = false;
                for nested in &rows.nested {
                    any |= self.add(nested, value).await?;
                    self.row[nested.all.clone()].fill(Value::Null);
                }
                if !any {
                    self.rows.take(self.row.clone())?;
                }
            }
            Ok(!found.is_empty())
        })
    }

    fn column(
        &mut self,
        column: &JsonColumn,
        definition: &ColumnDef,
        row: &Json,
        number: usize,
    ) -> Result<Value<'static>, SqlError> {
        let state = self.executor.state;
        let (path, on_empty, on_error) = match column {
            JsonColumn::Ordinality => return Ok(Value::Int(number as i64 + 1)),
            JsonColumn::Exists(path) => {
                let exists = !row.seek(&path.0, &mut self.room)?.is_empty();
                return stored(&Value::truth_value(exists), definition, state);
            }
            JsonColumn::Value { path, on_empty, on_error } => (path, on_empty, on_error),
        };
        let found = row.seek(&path.0, &mut self.room)?;
        let value = match found[..] {
            [] => {
                let missing = errors::error(errors::MISSING_JSON_TABLE_VALUE, &[&definition.name]);
                return instead(on_empty, missing);
            }
            [value] => column_value(value, definition, state),
            // Several are an array, where one may be.
            _ if definition.kind == ColumnType::Json => {
                Json::Array(found.into_iter().cloned().collect()).into_value()
            }
            _ => Err(errors::error(errors::WRONG_JSON_TABLE_VALUE, &[&definition.name])),
        };
        match value {
            Err(error) if is_of_column(error.code) => instead(on_error, error),
            value => value,
        }
    }
}

fn instead(instead: &Instead, error: SqlError) -> Result<Value<'static>, SqlError> {
    match instead {
        Instead::Null => Ok(Value::Null),
        Instead::Error => Err(error),
        Instead::Default(value) => Ok(value.clone()),
    }
}

/// Whether a column may have an answer to it.
fn is_of_column(code: u16) -> bool {
    matches!(
        code,
        errors::WRONG_JSON_TABLE_VALUE
            | errors::JSON_TABLE_VALUE_OUT_OF_RANGE
            | errors::INVALID_JSON_VALUE_FOR_CAST
    )
}
