//! INSERT, UPDATE, DELETE.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use super::{Expr, Limit, OrderItem, Query, TableName, TableRef};

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
    /// Name of the inserted row (`VALUES (…) AS new`).
    pub row_alias: Option<String>,
}

/// Where inserted rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`, or `SET a = …`.
    Values(Vec<Vec<Expr>>),
    /// `SELECT …`.
    Query(Box<Query>),
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table or join.
    pub table: TableRef,
    /// `SET`: column (with qualifier) and value.
    pub assignments: Vec<((Option<String>, String), Expr)>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `IGNORE`.
    pub ignore: bool,
}

/// `DELETE` from one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The table.
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
