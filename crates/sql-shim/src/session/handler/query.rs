//! The SELECT that a HANDLER reads with.
//!
//! An index orders its rows by its columns and then by those of the primary key, NULL first; the rows
//! themselves are in the primary key's order. Rows behind one are those that are greater in the first column
//! in which they differ.

use sql::ast::{
    BinaryOperator, Expr, HandlerRead, HintKind, IndexHint, Limit, OrderItem, Query, Select, SelectItem,
    Statement, TableName, TableRef,
};
use sql::errors;
use sql::result::SqlError;
use sql::value::{Collation, Value};
use untorn::Table;
use untorn::schema::{ColumnDef, KeyKind};
use untorn::types::ColumnType;

use super::kept_key::{self, TextKind};

/// Whether rows have an order that can be said.
pub(super) fn has_primary_key(table: &Table) -> bool {
    table.def.keys.iter().any(|key| key.kind == KeyKind::Primary)
}

/// The columns by which rows are ordered.
pub(super) struct Order<'t> {
    /// The index, as it is defined.
    pub(super) index: String,
    columns: Vec<&'t ColumnDef>,
    /// How many of them the index has itself.
    own: usize,
}

impl<'t> Order<'t> {
    /// That of an index, or of the rows.
    ///
    /// # Errors
    /// 1176: there is no such index.
    pub(super) fn of(table: &'t Table, index: Option<&str>) -> Result<Order<'t>, SqlError> {
        let def = &table.def;
        let primary = || def.keys.iter().find(|key| key.kind == KeyKind::Primary);
        let key = match index {
            None => primary(),
            Some(name) => def.keys.iter().find(|key| key.name.eq_ignore_ascii_case(name)),
        };
        let missing =
            || errors::error(errors::KEY_DOES_NOT_EXIST, &[&index.unwrap_or("PRIMARY"), &table.name]);
        let key = key.ok_or_else(missing)?;
        let behind = primary().into_iter().flat_map(|primary| &primary.parts);
        let mut columns: Vec<&ColumnDef> = Vec::new();
        for part in key.parts.iter().chain(behind) {
            let column = def.columns.get(usize::from(part.column));
            let new = |column: &&ColumnDef| !columns.iter().any(|known| known.name == column.name);
            if let Some(column) = column.filter(new) {
                columns.push(column);
            }
        }
        Ok(Order { index: key.name.clone(), columns, own: key.parts.len() })
    }

    /// What the texts of its columns are.
    pub(super) fn kinds(&self) -> Vec<TextKind> {
        let kind = |column: &&ColumnDef| match &column.kind {
            ColumnType::Decimal { .. } => TextKind::Decimal,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
                TextKind::Bytes
            }
            _ => TextKind::Characters,
        };
        self.columns.iter().map(kind).collect()
    }
}

/// A part of an order, and the way through it.
pub(super) struct Part {
    pub(super) descending: bool,
    bound: Bound,
}

enum Bound {
    All,
    Nothing,
    /// Rows whose first columns compare so with these values.
    Key(BinaryOperator, Vec<Expr>),
}

impl Part {
    pub(super) const FROM_FIRST: Part = Part { descending: false, bound: Bound::All };
    pub(super) const FROM_LAST: Part = Part { descending: true, bound: Bound::All };

    /// The rows behind one.
    pub(super) fn behind(values: Vec<Expr>) -> Part {
        Part { descending: false, bound: Bound::Key(BinaryOperator::Greater, values) }
    }

    /// The rows before one, backwards.
    pub(super) fn before(values: Vec<Expr>) -> Part {
        Part { descending: true, bound: Bound::Key(BinaryOperator::Less, values) }
    }

    /// No rows.
    pub(super) fn nothing(descending: bool) -> Part {
        Part { descending, bound: Bound::Nothing }
    }

    /// The rows of a key.
    ///
    /// # Errors
    /// 1070: it has more values than the index has columns.
    pub(super) fn of_key(
        operator: BinaryOperator,
        values: Vec<Expr>,
        order: &Order<'_>,
    ) -> Result<Part, SqlError> {
        if values.len() > order.own {
            return Err(errors::error(errors::TOO_MANY_KEY_PARTS, &[&order.own]));
        }
        let descending = matches!(operator, BinaryOperator::Less | BinaryOperator::LessEqual);
        Ok(Part { descending, bound: Bound::Key(operator, values) })
    }
}

/// A value as it is written.
pub(super) fn literal(value: &Value<'_>) -> Expr {
    match value {
        Value::Null => Expr::Null,
        Value::Int(number) => kept_key::integer(*number),
        Value::UInt(number) => Expr::Integer(*number),
        Value::Float(number) => Expr::Float((*number).into()),
        Value::Double(number) => Expr::Float(*number),
        Value::Decimal(_) => kept_key::text(&value.to_text(), TextKind::Decimal),
        Value::Text(bytes, Collation::Binary) => kept_key::text(bytes, TextKind::Bytes),
        other => kept_key::text(&other.to_text(), TextKind::Characters),
    }
}

/// Whether this is how many rows are read at most.
pub(super) fn is_count(read: &HandlerRead, rows: u64) -> bool {
    match &read.limit {
        None => rows == 1,
        Some(Limit { count: Expr::Integer(count), .. }) => *count == rows,
        Some(_) => false,
    }
}

fn compared(operator: BinaryOperator, left: Expr, right: &Expr) -> Expr {
    Expr::Binary2(operator, Box::new(left), Box::new(right.clone()))
}

fn is_null(operand: Expr, negated: bool) -> Expr {
    Expr::IsNull { operand: Box::new(operand), negated }
}

/// Rows whose columns compare so with values: `=`, or `<` and `>` with or without those that are equal.
fn bounded(operator: BinaryOperator, columns: &[Expr], values: &[Expr]) -> Expr {
    let (Some(column), Some(value)) = (columns.first(), values.first()) else {
        // All columns are equal.
        return Expr::Truth(!matches!(operator, BinaryOperator::Less | BinaryOperator::Greater));
    };
    let rest = || bounded(operator, &columns[1..], &values[1..]);
    let equal = || compared(BinaryOperator::NullSafeEqual, column.clone(), value);
    let beyond = match operator {
        BinaryOperator::Greater | BinaryOperator::GreaterEqual if *value == Expr::Null => {
            is_null(column.clone(), true)
        }
        BinaryOperator::Greater | BinaryOperator::GreaterEqual => {
            compared(BinaryOperator::Greater, column.clone(), value)
        }
        // Nothing is before NULL.
        BinaryOperator::Less | BinaryOperator::LessEqual if *value == Expr::Null => {
            return Expr::And(vec![is_null(column.clone(), false), rest()]);
        }
        BinaryOperator::Less | BinaryOperator::LessEqual => Expr::Or(vec![
            compared(BinaryOperator::Less, column.clone(), value),
            is_null(column.clone(), false),
        ]),
        _ => return Expr::And(vec![equal(), rest()]),
    };
    Expr::Or(vec![beyond, Expr::And(vec![equal(), rest()])])
}

/// The statement.
pub(super) fn statement(
    name: TableName,
    read: &HandlerRead,
    table: &Table,
    order: &Order<'_>,
    part: Part,
) -> Statement {
    let column =
        |name: &str| Expr::Column { database: None, table: Some(read.name.clone()), name: name.to_owned() };
    // A member, or bits, are ordered by their number.
    let ordered = |def: &&ColumnDef| match def.kind {
        ColumnType::Enum { .. } | ColumnType::Set { .. } | ColumnType::Bit { .. } => {
            Expr::Binary2(BinaryOperator::Add, Box::new(column(&def.name)), Box::new(Expr::Integer(0)))
        }
        _ => column(&def.name),
    };
    let columns: Vec<Expr> = order.columns.iter().map(ordered).collect();
    let shown = |expr: Expr, text: &str| SelectItem::Expr { expr, alias: None, text: text.to_owned() };
    let visible = table.def.columns.iter().map(|def| shown(column(&def.name), &def.name));
    let kept = columns.iter().map(|expr| shown(expr.clone(), "key"));
    let bound = match part.bound {
        Bound::All => None,
        Bound::Nothing => Some(Expr::Truth(false)),
        Bound::Key(operator, values) => Some(bounded(operator, &columns, &values)),
    };
    let mut conditions: Vec<Expr> = bound.into_iter().chain(read.filter.clone()).collect();
    let filter = match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    };
    let hint = IndexHint { kind: HintKind::Force, indexes: vec![order.index.clone()] };
    let from = TableRef::Table { name, alias: Some(read.name.clone()), hints: vec![hint] };
    let mut query = Query::of(Select {
        items: visible.chain(kept).collect(),
        from: Some(from),
        filter,
        ..Select::default()
    });
    let descending = part.descending;
    query.order_by = columns.iter().map(|expr| OrderItem { expr: expr.clone(), descending }).collect();
    query.limit = Some(read.limit.clone().unwrap_or(Limit { count: Expr::Integer(1), offset: None }));
    Statement::Select(Box::new(query))
}
