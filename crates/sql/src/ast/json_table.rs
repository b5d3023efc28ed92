//! JSON_TABLE: a table in FROM whose rows are values of a document.

use super::{DataType, Expr};

/// `JSON_TABLE(document, rows)`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    /// What is looked into.
    pub document: Expr,
    /// What is a row.
    pub rows: JsonRows,
}

/// `path COLUMNS (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRows {
    /// Leads to the values that are rows.
    pub path: String,
    /// The columns.
    pub columns: Vec<JsonColumn>,
}

impl JsonRows {
    /// Adds the names of its columns and of those inside it.
    pub fn column_names(&self, names: &mut Vec<String>) {
        for column in &self.columns {
            match column {
                JsonColumn::Ordinality(name) => names.push(name.clone()),
                JsonColumn::Value(column) => names.push(column.name.clone()),
                JsonColumn::Nested(rows) => rows.column_names(names),
            }
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    /// `name FOR ORDINALITY`: the number of the row.
    Ordinality(String),
    /// `name type [EXISTS] PATH …`.
    Value(Box<JsonValueColumn>),
    /// `NESTED [PATH] path COLUMNS (…)`: rows inside the row.
    Nested(Box<JsonRows>),
}

/// A column with what a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValueColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// `EXISTS`: whether the path leads anywhere.
    pub exists: bool,
    /// From the row's value.
    pub path: String,
    /// Where nothing is there; nothing said is NULL.
    pub on_empty: Option<JsonInstead>,
    /// Where it is not of that type.
    pub on_error: Option<JsonInstead>,
}

/// What a column has instead of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonInstead {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// The document that this text says.
    Default(Vec<u8>),
}
