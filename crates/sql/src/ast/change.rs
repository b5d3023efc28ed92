//! INSERT, UPDATE, DELETE.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use super::{CommonTable, Expr, Limit, OrderItem, Query, TableName, TableRef};

/// `INSERT` or `REPLACE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// Into which table.
    pub table: TableName,
    /// Column list; empty: all in their order.
    pub columns: Vec<String>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// `IGNORE`.
    pub ignore: bool,
    /// `REPLACE`.
    pub replace: bool,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<(String, Expr)>,
    /// What the inserted row is called (`VALUES (…) AS new`).
    pub row_alias: Option<RowAlias>,
}

/// `AS new(a, b)` behind the rows of an INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAlias {
    /// Name of the row.
    pub name: String,
    /// Names of its columns; empty: those of the table.
    pub columns: Vec<String>,
}

/// Where inserted rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`, or `SET a = …`.
    Values(Vec<Vec<Expr>>),
    /// `SELECT …`.
    Query(Box<Query>),
}

/// `[[database.]table.]column = value` in SET.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Database that the column is qualified with.
    pub database: Option<String>,
    /// Table that the column is qualified with.
    pub table: Option<String>,
    /// Column.
    pub column: String,
    /// Value.
    pub value: Expr,
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// `WITH`.
    pub with: Vec<CommonTable>,
    /// The table or join.
    pub table: TableRef,
    /// `SET`.
    pub assignments: Vec<Assignment>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `IGNORE`.
    pub ignore: bool,
}

/// `DELETE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// `WITH`.
    pub with: Vec<CommonTable>,
    /// Of a join: the tables that rows are deleted from, as the statement names them.
    pub targets: Vec<TableName>,
    /// The table or join.
    pub table: TableRef,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `IGNORE`.
    pub ignore: bool,
}

impl Update {
    /// Whether it is about more than one table by its name.
    pub fn is_joined(&self) -> bool {
        !matches!(self.table, TableRef::Table { .. })
    }
}

impl Delete {
    /// Whether it is about more than one table by its name.
    pub fn is_joined(&self) -> bool {
        self.targets.len() > 1 || !self.targets.is_empty() && !matches!(self.table, TableRef::Table { .. })
    }
}
