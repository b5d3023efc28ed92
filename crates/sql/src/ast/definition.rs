//! CREATE TABLE.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use untorn::schema::ReferentialAction;

use super::{Expr, Query, TableName};

/// A data type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataType {
    /// Upper-case name with synonyms resolved (`INTEGER` → `INT`).
    pub name: String,
    /// The numbers in parentheses.
    pub arguments: Vec<u32>,
    /// Members of ENUM and SET.
    pub members: Vec<Vec<u8>>,
    /// `UNSIGNED`, and with `ZEROFILL`.
    pub unsigned: bool,
    /// `ZEROFILL`.
    pub zerofill: bool,
    /// `CHARACTER SET`.
    pub charset: Option<String>,
    /// `COLLATE`.
    pub collation: Option<String>,
    /// `SERIAL`: BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
    pub serial: bool,
}

/// What DEFAULT says.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDefault {
    /// A constant, or CURRENT_TIMESTAMP.
    Value(Expr),
    /// An expression in parentheses.
    Expression(Expr),
}

/// `GENERATED ALWAYS AS (expression)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The expression.
    pub expression: Expr,
    /// `STORED`.
    pub stored: bool,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Constraint name.
    pub name: Option<String>,
    /// The expression.
    pub expression: Expr,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
    /// The column that it was written at.
    pub column: Option<String>,
}

/// A column definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// `NOT NULL` (`Some(false)`), `NULL` (`Some(true)`), or nothing said.
    pub nullable: Option<bool>,
    /// `DEFAULT`.
    pub default: Option<ColumnDefault>,
    /// `GENERATED ALWAYS AS`.
    pub generated: Option<Generated>,
    /// `CHECK` behind the column.
    pub checks: Vec<Check>,
    /// `REFERENCES` behind the column.
    pub references: Option<ForeignKey>,
    /// `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update_now: bool,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `PRIMARY KEY` behind the column.
    pub primary: bool,
    /// `UNIQUE` behind the column.
    pub unique: bool,
    /// `INVISIBLE`.
    pub invisible: bool,
    /// `COMMENT`.
    pub comment: String,
}

/// What a part of an index is of.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySource {
    /// A column.
    Column(String),
    /// An expression in parentheses: a functional key part.
    Expression(Expr),
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// What it is of.
    pub source: KeySource,
    /// Prefix length in characters.
    pub length: Option<u32>,
    /// `DESC`.
    pub descending: bool,
}

impl KeyPart {
    /// All of a column, in ascending order.
    pub fn column(name: &str) -> KeyPart {
        KeyPart { source: KeySource::Column(name.to_owned()), length: None, descending: false }
    }
}

/// Kinds of indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// `PRIMARY KEY`
    Primary,
    /// `UNIQUE`
    Unique,
    /// `KEY`
    Plain,
    /// `FULLTEXT`: refused.
    Fulltext,
    /// `SPATIAL`: refused.
    Spatial,
}

/// An index definition.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDef {
    /// Name, made up when missing.
    pub name: Option<String>,
    /// Kind.
    pub kind: KeyKind,
    /// Parts.
    pub parts: Vec<KeyPart>,
    /// COMMENT.
    pub comment: String,
    /// INVISIBLE.
    pub invisible: bool,
}

impl KeyDef {
    /// A visible one without a comment.
    pub fn new(name: Option<String>, kind: KeyKind, parts: Vec<KeyPart>) -> KeyDef {
        KeyDef { name, kind, parts, comment: String::new(), invisible: false }
    }
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Constraint name.
    pub name: Option<String>,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The other table.
    pub references: TableName,
    /// Its columns.
    pub referenced_columns: Vec<String>,
    /// Name of the index that is made for it, if one must be made.
    pub index: Option<String>,
    /// `ON DELETE`.
    pub on_delete: ReferentialAction,
    /// `ON UPDATE`.
    pub on_update: ReferentialAction,
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// Name.
    pub name: TableName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// Columns.
    pub columns: Vec<ColumnDef>,
    /// Indexes.
    pub keys: Vec<KeyDef>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints, of columns too, in the order of the statement.
    pub checks: Vec<Check>,
    /// Options, upper-case names.
    pub options: Vec<(String, String)>,
    /// `LIKE other`.
    pub like: Option<TableName>,
    /// `AS SELECT`.
    pub as_query: Option<Box<Query>>,
    /// `IGNORE` before it.
    pub ignore: bool,
    /// `REPLACE` before it.
    pub replace: bool,
}
