//! HANDLER.

use super::{BinaryOperator, Expr, Limit, TableName};

/// A HANDLER statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// `HANDLER table OPEN [AS alias]`.
    Open {
        /// Table.
        table: TableName,
        /// The name it is read under.
        alias: Option<String>,
    },
    /// `HANDLER name READ …`.
    Read(Box<HandlerRead>),
    /// `HANDLER name CLOSE`.
    Close(String),
}

/// What is read of an open table.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRead {
    /// The name under which it is open.
    pub name: String,
    /// The index whose order is followed; `None`: that of the rows.
    pub index: Option<String>,
    /// Where to begin.
    pub place: HandlerPlace,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `LIMIT`; one row without it.
    pub limit: Option<Limit>,
}

/// Where a HANDLER begins to read.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerPlace {
    /// `FIRST`
    First,
    /// `NEXT`
    Next,
    /// `PREV`
    Previous,
    /// `LAST`
    Last,
    /// At the rows of the index that compare so with values of its first columns.
    Key(BinaryOperator, Vec<Expr>),
}
