//! SELECT: queries, sources, locking clauses, and table names.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use super::{Destination, Expr, JsonTable, WindowSpec};

/// A possibly qualified table name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Database; `None`: the session's.
    pub database: Option<String>,
    /// Table.
    pub name: String,
}

/// A common table expression: `name [(columns)] AS (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    /// Its name.
    pub name: String,
    /// Names of its columns; empty: those of the query.
    pub columns: Vec<String>,
    /// What it is.
    pub query: Query,
    /// It may name itself.
    pub recursive: bool,
}

/// What connects the SELECTs of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetOperation {
    /// `UNION`.
    #[default]
    Union,
    /// `EXCEPT`.
    Except,
    /// `INTERSECT`.
    Intersect,
}

impl SetOperation {
    /// The word, in small letters.
    pub fn word(self) -> &'static str {
        match self {
            SetOperation::Union => "union",
            SetOperation::Except => "except",
            SetOperation::Intersect => "intersect",
        }
    }
}

/// A query expression: SELECTs connected by UNION, or two by EXCEPT or INTERSECT, then what applies to the
/// whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// `WITH`.
    pub with: Vec<CommonTable>,
    /// What connects the SELECTs. With anything but UNION they are two.
    pub operation: SetOperation,
    /// The first SELECT and those connected with it (`true`: ALL). Empty `from` and values for VALUES ROW
    /// are not supported.
    pub selects: Vec<(bool, Select)>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`.
    pub limit: Option<Limit>,
    /// `FOR UPDATE` and such.
    pub locking: Option<Locking>,
    /// `INTO …`; of a statement.
    pub into: Destination,
}

/// One SELECT.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// It is a row of VALUES.
    pub is_values: bool,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// `FROM`.
    pub from: Option<TableRef>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `GROUP BY`.
    pub group_by: Vec<Expr>,
    /// `WITH ROLLUP`.
    pub rollup: bool,
    /// `WINDOW`.
    pub windows: Vec<(String, WindowSpec)>,
    /// SQL_CALC_FOUND_ROWS.
    pub counts_all: bool,
    /// `SELECT STRAIGHT_JOIN`: the tables are read in the order in which they are written.
    pub straight: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
}

/// An element of the select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*` or `t.*` or `db.t.*`.
    Star { database: Option<String>, table: Option<String> },
    /// An expression; its column name is the alias or its text as typed.
    Expr { expr: Expr, alias: Option<String>, text: String },
}

/// An element of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    /// A named table.
    Table { name: TableName, alias: Option<String>, hints: Vec<IndexHint> },
    /// `[LATERAL] (SELECT …) alias [(columns)]`; no columns: those of the query.
    Derived { query: Box<Query>, alias: String, columns: Vec<String>, lateral: bool },
    /// `JSON_TABLE(…) alias`.
    JsonTable { table: Box<JsonTable>, alias: String },
    /// A join.
    Join {
        left: Box<TableRef>,
        right: Box<TableRef>,
        kind: JoinKind,
        on: Option<Expr>,
        using: Vec<String>,
        natural: bool,
    },
}

impl TableRef {
    /// Appends whether each of its tables has an alias, the outer ones of each join first.
    pub fn has_aliases(&self, out: &mut Vec<bool>) {
        match self {
            TableRef::Table { alias, .. } => out.push(alias.is_some()),
            TableRef::Derived { .. } | TableRef::JsonTable { .. } => out.push(true),
            TableRef::Join { left, right, kind, .. } => {
                let swapped = *kind == JoinKind::Right;
                let (outer, inner) = if swapped { (right, left) } else { (left, right) };
                outer.has_aliases(out);
                inner.has_aliases(out);
            }
        }
    }
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// `,`, `JOIN`, `INNER JOIN`, `CROSS JOIN`.
    Inner,
    /// `STRAIGHT_JOIN`: the left table is read first.
    Straight,
    /// `LEFT JOIN`.
    Left,
    /// `RIGHT JOIN`.
    Right,
}

/// `FORCE|USE|IGNORE INDEX (…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    /// What to do with them.
    pub kind: HintKind,
    /// The names (`PRIMARY` for the primary key).
    pub indexes: Vec<String>,
}

/// Kinds of index hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// `USE`
    Use,
    /// `FORCE`
    Force,
    /// `IGNORE`
    Ignore,
    /// No hint that is written: a HANDLER reads by this index. As FORCE, but it may be INVISIBLE.
    Handler,
}

/// An ORDER BY element.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// What to sort by.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
}

/// `LIMIT [offset,] count`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Rows at most.
    pub count: Expr,
    /// Rows skipped.
    pub offset: Option<Expr>,
}

/// A locking clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locking {
    /// `FOR UPDATE` rather than `FOR SHARE`.
    pub exclusive: bool,
    /// What to do about rows locked by others.
    pub wait: LockWait,
}

/// What a locking read does about rows locked by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockWait {
    /// Waits.
    Wait,
    /// Error 3572.
    NoWait,
    /// Leaves them out.
    SkipLocked,
}

impl TableRef {
    /// A query expression in parentheses as a part of another: it has no name.
    pub fn part(query: Query) -> TableRef {
        TableRef::Derived {
            query: Box::new(query),
            alias: String::new(),
            columns: Vec::new(),
            lateral: false,
        }
    }
}

impl Query {
    /// `SELECT *` of a table.
    pub fn of_table(name: TableName) -> Query {
        let from = Some(TableRef::Table { name, alias: None, hints: Vec::new() });
        let items = vec![SelectItem::Star { database: None, table: None }];
        Query::of(Select { items, from, ..Select::default() })
    }

    /// A SELECT by itself.
    pub fn of(select: Select) -> Query {
        Query {
            with: Vec::new(),
            operation: SetOperation::Union,
            selects: vec![(true, select)],
            order_by: Vec::new(),
            limit: None,
            locking: None,
            into: Destination::Client,
        }
    }
}
