//! The SELECT that a HANDLER reads with.
//!
//! An index orders its rows by its columns and then by those of the primary key, NULL first; the rows
//! themselves are in the primary key's order. Rows behind one are those that are greater in the first column
//! in which they differ. A column that is DESC counts the other way round: less is greater, and NULL is last.
//! FIRST, NEXT and the comparisons of a key are all meant in this order.
//!
//! Members and bits are ordered by their numbers, and so compared by them. Of an index over a prefix the
//! prefix is the column: it is what is ordered, compared and kept, so that no key is longer than an index
//! takes.

use sql::ast::{
    BinaryOperator, Expr, HandlerRead, HintKind, IndexHint, Limit, OrderItem, Query, Select, SelectItem,
    Statement, TableName, TableRef,
};
use sql::errors;
use sql::lexer::LexicalModes;
use sql::parser::parse_expression;
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

/// A column by which rows are ordered.
struct Column<'t> {
    def: &'t ColumnDef,
    /// The index has only this many characters of it.
    prefix: Option<u32>,
    /// It is in the index from its greatest value to its least.
    descending: bool,
}

impl Column<'_> {
    /// Whether its numbers are compared, not what they show.
    fn is_numbered(&self) -> bool {
        matches!(self.def.kind, ColumnType::Enum { .. } | ColumnType::Set { .. } | ColumnType::Bit { .. })
    }

    /// The part of a value that the index has.
    fn indexed(&self, value: Expr) -> Expr {
        match self.prefix {
            Some(length) => function("LEFT", vec![value, Expr::Integer(length.into())]),
            None => value,
        }
    }
}

fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function {
        name: name.to_owned(),
        arguments,
        distinct: false,
        star: false,
        order_by: Vec::new(),
        separator: None,
    }
}

/// A zone this many seconds east of UTC, as it is written.
fn zone(seconds: i32) -> Expr {
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs() / 60);
    kept_key::text(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60).as_bytes(), TextKind::Characters)
}

/// The columns by which rows are ordered.
pub(super) struct Order<'t> {
    /// The index, as it is defined.
    pub(super) index: String,
    columns: Vec<Column<'t>>,
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
        let mut columns: Vec<Column<'_>> = Vec::new();
        for part in key.parts.iter().chain(behind) {
            let Some(def) = def.columns.get(usize::from(part.column)) else { continue };
            let prefix = part.prefix_chars;
            // Behind the prefix of a column the whole column may decide.
            let says_it = |known: &Column<'_>| {
                known.def.name == def.name && (known.prefix.is_none() || known.prefix == prefix)
            };
            if !columns.iter().any(says_it) {
                columns.push(Column { def, prefix, descending: part.descending });
            }
        }
        Ok(Order { index: key.name.clone(), columns, own: key.parts.len() })
    }

    /// What the texts of its columns are.
    pub(super) fn kinds(&self) -> Vec<TextKind> {
        let kind = |column: &Column<'_>| match &column.def.kind {
            ColumnType::Decimal { .. } => TextKind::Decimal,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
                TextKind::Bytes
            }
            _ => TextKind::Characters,
        };
        self.columns.iter().map(kind).collect()
    }

    /// Whether a key of this many values can be one of the index.
    ///
    /// # Errors
    /// 1070: it has more than the index has columns.
    pub(super) fn check_length(&self, values: usize) -> Result<(), SqlError> {
        match values > self.own {
            true => Err(errors::error(errors::TOO_MANY_KEY_PARTS, &[&self.own])),
            false => Ok(()),
        }
    }

    /// A value of a key as it is compared with the column at this place.
    pub(super) fn key_value(&self, at: usize, value: &Value<'_>) -> Expr {
        let Some(column) = self.columns.get(at) else { return literal(value) };
        match sql::stored_values::member_number(value, &column.def.kind) {
            Some(number) => Expr::Integer(number),
            // NULL has no first characters, and is asked for by that.
            None if matches!(value, Value::Null) => Expr::Null,
            None => column.indexed(literal(value)),
        }
    }

    /// A kept key in another zone: moments of TIMESTAMP columns are shown in the session's.
    pub(super) fn in_zone(&self, values: Vec<Expr>, from: i32, to: i32) -> Vec<Expr> {
        let columns = self.columns.iter().map(|column| &column.def.kind);
        let moved = |(value, kind): (Expr, &ColumnType)| match (&value, kind) {
            // A moment that is zero is so everywhere.
            (Expr::Text { bytes, .. }, ColumnType::Timestamp { .. }) if !bytes.starts_with(b"0000") => {
                function("CONVERT_TZ", vec![value, zone(from), zone(to)])
            }
            _ => value,
        };
        if from == to { values } else { values.into_iter().zip(columns).map(moved).collect() }
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
    pub(super) fn of_key(operator: BinaryOperator, values: Vec<Expr>) -> Part {
        let descending = matches!(operator, BinaryOperator::Less | BinaryOperator::LessEqual);
        Part { descending, bound: Bound::Key(operator, values) }
    }

    /// About how long its values are when they are written.
    pub(super) fn text_bytes(&self) -> usize {
        fn bytes_of(value: &Expr) -> usize {
            match value {
                Expr::Text { bytes, .. } => bytes.len(),
                Expr::Function { arguments, .. } => arguments.iter().map(bytes_of).sum(),
                _ => size_of::<Expr>(),
            }
        }
        let Bound::Key(_, values) = &self.bound else { return 0 };
        // Each is written for its own column and for all behind it.
        values.iter().map(bytes_of).sum::<usize>().saturating_mul(2)
    }
}

/// A value as it is written.
fn literal(value: &Value<'_>) -> Expr {
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

/// A column as it is compared, whether it may be NULL, and whether it is DESC.
type Compared = (Expr, bool, bool);

/// The comparison the other way round.
fn turned(operator: BinaryOperator) -> BinaryOperator {
    use BinaryOperator::{Greater, GreaterEqual, Less, LessEqual};
    match operator {
        Greater => Less,
        GreaterEqual => LessEqual,
        Less => Greater,
        LessEqual => GreaterEqual,
        other => other,
    }
}

/// Rows whose columns compare so with values: `=`, or `<` and `>` with or without those that are equal. Said
/// so that the conditions on the first column are a range of the index: `a >= 1 AND (a > 1 OR b > 2)`.
fn bounded(operator: BinaryOperator, columns: &[Compared], values: &[Expr]) -> Expr {
    use BinaryOperator::{Equal, Greater, GreaterEqual, Less, LessEqual};
    let (Some((column, nullable, descending)), Some(value)) = (columns.first(), values.first()) else {
        // All columns are equal.
        return Expr::Truth(!matches!(operator, Less | Greater));
    };
    let (columns, values) = (&columns[1..], &values[1..]);
    let rest = (!columns.is_empty() && !values.is_empty()).then(|| bounded(operator, columns, values));
    let operator = if *descending { turned(operator) } else { operator };
    let upwards = matches!(operator, Greater | GreaterEqual);
    if *value == Expr::Null {
        let nulls = Expr::And([Some(is_null(column.clone(), false)), rest].into_iter().flatten().collect());
        return match (operator, nulls) {
            (Greater, Expr::And(list)) if list.len() == 1 => is_null(column.clone(), true),
            (Less, Expr::And(list)) if list.len() == 1 => Expr::Truth(false),
            (Greater | GreaterEqual, nulls) => Expr::Or(vec![is_null(column.clone(), true), nulls]),
            // Nothing is before NULL.
            (_, nulls) => nulls,
        };
    }
    // NULL is before every value.
    let or_null = |expr: Expr| match *nullable && matches!(operator, Less | LessEqual) {
        true => Expr::Or(vec![expr, is_null(column.clone(), false)]),
        false => expr,
    };
    let Some(rest) = rest else { return or_null(compared(operator, column.clone(), value)) };
    if operator == Equal {
        return Expr::And(vec![compared(Equal, column.clone(), value), rest]);
    }
    let (with, without) = if upwards { (GreaterEqual, Greater) } else { (LessEqual, Less) };
    let beyond = or_null(compared(without, column.clone(), value));
    Expr::And(vec![or_null(compared(with, column.clone(), value)), Expr::Or(vec![beyond, rest])])
}

/// The statement.
pub(super) fn statement(
    name: TableName,
    read: &HandlerRead,
    table: &Table,
    order: &Order<'_>,
    part: Part,
) -> Statement {
    let column = |def: &ColumnDef| match &def.generated {
        // A part that is an expression: the plan knows that the index has it.
        Some(text) if def.hidden => {
            parse_expression(text.as_bytes(), LexicalModes::of_kept()).unwrap_or(Expr::Null)
        }
        _ => Expr::Column { database: None, table: Some(read.name.clone()), name: def.name.clone() },
    };
    // What is sorted by is the column itself where that can be, for the index to give the order.
    let ordered = |of: &Column<'_>| of.indexed(column(of.def));
    let compared = |of: &Column<'_>| match of.is_numbered() {
        true => Expr::Binary2(BinaryOperator::Add, Box::new(ordered(of)), Box::new(Expr::Integer(0))),
        false => ordered(of),
    };
    let columns: Vec<Compared> =
        order.columns.iter().map(|of| (compared(of), of.def.nullable, of.descending)).collect();
    let shown = |expr: Expr, text: &str| SelectItem::Expr { expr, alias: None, text: text.to_owned() };
    let visible = table.def.visible_columns().iter().filter(|def| !def.invisible);
    let visible = visible.map(|def| shown(column(def), &def.name));
    let kept = columns.iter().map(|(expr, ..)| shown(expr.clone(), "key"));
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
    let hint = IndexHint { kind: HintKind::Handler, indexes: vec![order.index.clone()] };
    let from = TableRef::Table { name, alias: Some(read.name.clone()), hints: vec![hint] };
    let mut query = Query::of(Select {
        items: visible.chain(kept).collect(),
        from: Some(from),
        filter,
        ..Select::default()
    });
    let item =
        |of: &Column<'_>| OrderItem { expr: ordered(of), descending: of.descending != part.descending };
    query.order_by = order.columns.iter().map(item).collect();
    query.limit = Some(read.limit.clone().unwrap_or(Limit { count: Expr::Integer(1), offset: None }));
    Statement::Select(Box::new(query))
}
