//! JSON_TABLE: a table whose rows are values of a document. What the document is may depend on the tables
//! before it, as with LATERAL.
//!
//! Its columns are numbered as they are written, those of NESTED at the place where it stands.

use std::collections::HashMap;

use untorn::schema::ColumnDef;
use untorn::types::ColumnType;

use super::Planner;
use super::source::{Source, SourceColumn, SourceKind};
use super::with::Around;
use crate::ast::{self, JsonInstead};
use crate::column_types::column_type;
use crate::errors;
use crate::expr::Expr;
use crate::expr::bind::Binder;
use crate::expr::types::Type;
use crate::json_column::default_value;
use crate::result::SqlError;
use crate::value::Value;
use crate::value::json::path::Path;
use crate::value::json::{Json, Room, Source as DocumentSource};

/// A planned JSON_TABLE.
#[derive(Debug)]
pub struct JsonTable {
    /// What is looked into, made of the sources before this one.
    pub document: Expr,
    /// What is a row.
    pub rows: JsonRows,
    /// The definitions of all columns.
    pub columns: Vec<ColumnDef>,
}

/// The values that are rows, from the document or from the row around.
#[derive(Debug)]
pub struct JsonRows {
    /// Leads there.
    pub(crate) path: Path,
    /// Its columns with their numbers.
    pub(crate) columns: Vec<(usize, JsonColumn)>,
    /// Rows inside: one after the other, each beside the NULLs of the others.
    pub(crate) nested: Vec<JsonRows>,
    /// The numbers of all columns of it and inside it.
    pub(crate) all: std::ops::Range<usize>,
}

/// What a column has.
#[derive(Debug)]
pub enum JsonColumn {
    /// The number of the row.
    Ordinality,
    /// Whether a path leads anywhere.
    Exists(JsonPath),
    /// What a path leads to.
    Value {
        /// From the row's value.
        path: JsonPath,
        /// Where nothing is there.
        on_empty: Instead,
        /// Where it is not of the column's type.
        on_error: Instead,
    },
}

/// A path from the row's value.
#[derive(Debug)]
pub struct JsonPath(pub(crate) Path);

/// What a column has instead of a value.
#[derive(Debug)]
pub enum Instead {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// This.
    Default(Value<'static>),
}

impl Planner<'_> {
    /// A JSON_TABLE as a source behind others.
    pub(super) fn json_table(
        &self,
        table: &ast::JsonTable,
        alias: &str,
        before: &[Source],
        around: Around<'_>,
    ) -> Result<Source, SqlError> {
        let clause = "a table function argument";
        let mut binder = Binder { around, clause, ..Binder::new(self, before) };
        let document = binder.bind(&table.document)?.0;
        if !binder.subqueries.is_empty() {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"JSON_TABLE"]));
        }
        let mut columns = Vec::new();
        let rows = self.json_rows(&table.rows, &mut columns)?;
        let mut names = HashMap::new();
        let mut shown = Vec::with_capacity(columns.len());
        for column in &columns {
            self.expand_by(1, SourceColumn::bytes(&column.name))?;
            if let Some(first) = names.insert(column.name.to_ascii_lowercase(), &column.name) {
                return Err(errors::error(errors::DUP_FIELDNAME, &[first]));
            }
            let ty = Type::of_column(&column.kind, true);
            let name = column.name.clone();
            shown.push(SourceColumn {
                name,
                ty,
                flags: 0,
                shown_length: None,
                merged: false,
                invisible: false,
            });
        }
        let kind = SourceKind::JsonTable(Box::new(JsonTable { document, rows, columns }));
        Ok(Source::new(String::new(), alias.to_owned(), alias.to_owned(), shown, kind))
    }

    fn json_rows(&self, rows: &ast::JsonRows, columns: &mut Vec<ColumnDef>) -> Result<JsonRows, SqlError> {
        self.work(crate::expr::NODE_BYTES)?;
        let first = columns.len();
        let mut planned =
            JsonRows { path: path(&rows.path)?, columns: Vec::new(), nested: Vec::new(), all: first..first };
        for column in &rows.columns {
            let at = columns.len();
            match column {
                ast::JsonColumn::Nested(inside) => planned.nested.push(self.json_rows(inside, columns)?),
                ast::JsonColumn::Ordinality(name) => {
                    columns.push(ColumnDef::new(name.clone(), ColumnType::BigInt { unsigned: false }));
                    planned.columns.push((at, JsonColumn::Ordinality));
                }
                ast::JsonColumn::Value(column) => {
                    let (definition, value) = self.json_column(column)?;
                    columns.push(definition);
                    planned.columns.push((at, value));
                }
            }
        }
        planned.all.end = columns.len();
        Ok(planned)
    }

    fn json_column(&self, column: &ast::JsonValueColumn) -> Result<(ColumnDef, JsonColumn), SqlError> {
        let rule = self.literal_collation();
        let kind = column_type(&column.name, &column.data_type, rule)?;
        let mut definition = ColumnDef::new(column.name.clone(), kind);
        definition.unsigned = column.data_type.unsigned
            && matches!(definition.kind, ColumnType::Float | ColumnType::Double | ColumnType::Decimal { .. });
        let path = JsonPath(path(&column.path)?);
        if column.exists {
            return Ok((definition, JsonColumn::Exists(path)));
        }
        let instead = |instead: &Option<JsonInstead>| -> Result<Instead, SqlError> {
            Ok(match instead {
                None | Some(JsonInstead::Null) => Instead::Null,
                Some(JsonInstead::Error) => Instead::Error,
                Some(JsonInstead::Default(text)) => {
                    let value = Value::Text(text.as_slice().into(), rule);
                    let source = DocumentSource::Argument(1, "JSON_TABLE");
                    match Json::read(&value, source, &mut Room::new(&|_| Ok(())))? {
                        Some(json) => Instead::Default(default_value(&json, &definition, self.state)?),
                        None => Instead::Null,
                    }
                }
            })
        };
        let (on_empty, on_error) = (instead(&column.on_empty)?, instead(&column.on_error)?);
        Ok((definition, JsonColumn::Value { path, on_empty, on_error }))
    }
}

fn path(text: &str) -> Result<Path, SqlError> {
    Path::parse(text).map_err(|at| errors::error(errors::INVALID_JSON_PATH, &[&at]))
}
