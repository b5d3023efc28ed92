//! Bound expressions: names resolved to places in the rows of the statement's sources, ready to be evaluated.
//!
//! Evaluation borrows: a column's bytes come straight from the latched page, a literal's from the plan. What
//! a row callback evaluates may neither wait nor call the engine; subqueries have been executed before (their
//! results are in the [`Context`]) and functions that wait are run by the executor.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

pub(crate) mod arithmetic;
pub mod bind;
mod comparison;
mod constancy;
pub(crate) mod functions;
mod member;
pub(crate) mod rollup;
pub(crate) mod select_list;
pub(crate) mod session_functions;
pub(crate) mod strict;
pub mod types;
mod value_set;

use std::cmp::Ordering;
use std::sync::Arc;

use untorn::engine::{FieldRef, Row};
use untorn::schema::ColumnDef;
use untorn::types::{Collation, ColumnType};

use super::ast::{BinaryOperator, CastType, IntervalUnit, Scope, TrimSide};
use super::stored_values;
use super::value::temporal::Today;
use super::value::{Value, collation, compare, like};
use crate::context::SqlContext;
use crate::errors;
use crate::result::SqlError;
pub use comparison::decide;
use comparison::{between, compare_expressions, in_list, quantified, row_among};
use functions::Function;
pub use member::bits_as_number;
pub use value_set::ValueSet;

/// Work that an item of a list counts for: lists may have millions.
pub(crate) const NODE_BYTES: usize = 64;

/// The values of this many arguments of a function are not worth a charge.
const ARGUMENTS_FEW: usize = 32;

/// What evaluation may fail with.
pub type Evaluated<'a> = Result<Value<'a>, SqlError>;

/// A bound expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Value<'static>),
    /// The n-th parameter.
    Parameter(u16),
    /// Column `column` of source `source`.
    Column { source: u16, column: u16 },
    /// The n-th column that a subquery reads of the query around it.
    Outer(u16),
    /// The n-th aggregate of the query.
    Aggregate(u16),
    /// The n-th window function of the query.
    Window(u16),
    /// The n-th subquery as a scalar.
    Subquery(u16),
    /// A column of the only row of a subquery of several columns, or NULL where it has no row.
    OfOnlyRow {
        /// Its number.
        subquery: u16,
        /// The column.
        column: u16,
        /// How many columns it has.
        columns: u16,
    },
    /// Whether the n-th subquery has rows.
    Exists(u16),
    /// `operand [NOT] IN (n-th subquery)`.
    InSubquery { operand: Box<Expr>, subquery: u16, negated: bool },
    /// `operand > ALL (n-th subquery)` and its like.
    Quantified { operator: BinaryOperator, operand: Box<Expr>, subquery: u16, all: bool },
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    Assign(String, Box<Expr>),
    /// `@@name`.
    SystemVariable { scope: Option<Scope>, name: String },
    /// `VALUES(column)`: column of the row that was to be inserted.
    Inserted(u16),
    /// `AND` of all.
    And(Vec<Expr>),
    /// `OR` of all.
    Or(Vec<Expr>),
    /// `XOR`.
    Xor(Box<Expr>, Box<Expr>),
    /// `NOT`.
    Not(Box<Expr>),
    /// Minus sign.
    Negate(Box<Expr>),
    /// `~`.
    BitNot(Box<Expr>),
    /// An ENUM or SET column where a number is wanted.
    MemberNumber(Box<Expr>, Arc<ColumnType>),
    /// `= <> < <= > >= <=>`.
    Compare(BinaryOperator, Box<Expr>, Box<Expr>),
    /// Arithmetic, bit operators and `||` as concatenation.
    Arithmetic(BinaryOperator, Box<Expr>, Box<Expr>),
    /// The same with two operators or more, from left to right, as one node however many.
    Chain(Box<Expr>, Vec<(BinaryOperator, Expr)>),
    /// `IS [NOT] NULL`.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE|FALSE|UNKNOWN`.
    IsTruth { operand: Box<Expr>, truth: Option<bool>, negated: bool },
    /// `[NOT] BETWEEN`.
    Between { operand: Box<Expr>, low: Box<Expr>, high: Box<Expr>, negated: bool },
    /// `[NOT] IN (list)`.
    InList { operand: Box<Expr>, list: Vec<Expr>, negated: bool },
    /// The same with many constants.
    InConstants { operand: Box<Expr>, constants: Arc<ValueSet>, negated: bool },
    /// `[NOT] LIKE`.
    Like { operand: Box<Expr>, pattern: Box<Expr>, escape: Box<Expr>, negated: bool },
    /// `CASE`, `IF`: the operand, when there is one, is compared with each condition.
    Case { operand: Option<Box<Expr>>, whens: Vec<(Expr, Expr)>, otherwise: Box<Expr> },
    /// `COALESCE`, `IFNULL`.
    Coalesce(Vec<Expr>),
    /// `NULLIF`.
    NullIf(Box<Expr>, Box<Expr>),
    /// `CAST`.
    Cast(Box<Expr>, CastType),
    /// `COLLATE`, `BINARY`, `CONVERT … USING`.
    Collate(Box<Expr>, Collation),
    /// `date ± INTERVAL`.
    DateShift { date: Box<Expr>, amount: Box<Expr>, unit: IntervalUnit, subtract: bool },
    /// `EXTRACT(unit FROM x)`.
    Extract(IntervalUnit, Box<Expr>),
    /// `TIMESTAMPDIFF(unit, a, b)`.
    TimestampDiff(IntervalUnit, Box<Expr>, Box<Expr>),
    /// `TRIM`.
    Trim { side: TrimSide, what: Option<Box<Expr>>, operand: Box<Expr> },
    /// `RAND(seed)`: a sequence of its own, which a constant seed begins once in a statement and any other
    /// one in each row.
    Random { seed: Box<Expr>, constant: bool },
    /// A function of the table.
    Call(&'static Function, Vec<Expr>),
    /// `(a, b)` compared with another row, element by element.
    Row(Vec<Expr>),
    /// An expression that stands in several places: a select list entry that ORDER BY names.
    Shared(Arc<Expr>),
    /// The `key`-th expression of GROUP BY: NULL in groups over all its values.
    RolledUp { key: u16, value: Box<Expr> },
    /// `GROUPING(…)`: a bit for each that is rolled up.
    Grouping(Vec<Expr>),
}

/// Where the columns of a source are read.
#[derive(Clone, Copy)]
pub enum RowView<'a> {
    /// A row on its page.
    Stored(&'a Row<'a>, &'a [ColumnDef]),
    /// A row copied from its page, in storage encoding.
    Fields(&'a [Option<Vec<u8>>], &'a [ColumnDef]),
    /// A row of a derived or virtual table, or of a join's outer side.
    Values(&'a [Value<'static>]),
    /// The missing side of an outer join.
    Nulls,
}

impl<'a> RowView<'a> {
    /// A column's value.
    pub fn column(&self, column: u16, time_zone: i32) -> Value<'a> {
        match self {
            RowView::Stored(row, columns) => match (row.column(column), columns.get(usize::from(column))) {
                (FieldRef::Inline(bytes), Some(def)) => stored_values::decode(bytes, &def.kind, time_zone),
                _ => Value::Null,
            },
            RowView::Fields(fields, columns) => {
                match (fields.get(usize::from(column)), columns.get(usize::from(column))) {
                    (Some(Some(bytes)), Some(def)) => stored_values::decode(bytes, &def.kind, time_zone),
                    _ => Value::Null,
                }
            }
            RowView::Values(values) => values.get(usize::from(column)).map_or(Value::Null, Value::borrowed),
            RowView::Nulls => Value::Null,
        }
    }
}

/// What expressions are evaluated in.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// One row of each source.
    pub rows: &'a [RowView<'a>],
    /// Parameters of the statement.
    pub parameters: &'a [Value<'a>],
    /// Values that a subquery reads of the query around it.
    pub outer: &'a [Value<'a>],
    /// What the statement runs in.
    pub state: &'a SqlContext,
    /// Aggregates of the current group.
    pub aggregates: &'a [Value<'static>],
    /// The leading expressions of GROUP BY that the current group has values of.
    pub group_keys: u16,
    /// Results of the subqueries.
    pub subqueries: &'a [Arc<ValueSet>],
    /// The row that was to be inserted, for VALUES().
    pub inserted: &'a [Value<'static>],
}

impl<'a> Context<'a> {
    /// A context without rows.
    pub fn constant(state: &'a SqlContext, parameters: &'a [Value<'a>]) -> Self {
        let (rows, aggregates, inserted) = (&[], &[], &[]);
        let group_keys = u16::MAX;
        Context { rows, parameters, outer: &[], state, aggregates, group_keys, subqueries: &[], inserted }
    }

    /// The same context with other rows.
    pub fn with_rows(&self, rows: &'a [RowView<'a>]) -> Self {
        Context { rows, ..*self }
    }
}

fn truth(value: Option<bool>) -> Value<'static> {
    value.map_or(Value::Null, Value::truth_value)
}

fn user_variable<'a>(name: &str, cx: &Context<'a>) -> Evaluated<'a> {
    let value = cx.state.user_variable(name);
    cx.state.work_on(&value)?;
    cx.state.settle(value, cx.state.held())
}

fn assign<'a>(name: &str, value: &'a Expr, cx: &Context<'a>) -> Evaluated<'a> {
    let value = value.eval(cx)?.into_variable();
    cx.state.work_on(&value)?;
    cx.state.set_user_variable(name, value.clone())?;
    Ok(value)
}

fn coalesce<'a>(list: &'a [Expr], cx: &Context<'a>) -> Evaluated<'a> {
    for item in list {
        cx.state.work(NODE_BYTES)?;
        let value = item.eval(cx)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

fn null_if<'a>(left: &'a Expr, right: &'a Expr, cx: &Context<'a>) -> Evaluated<'a> {
    let (value, other) = (left.eval(cx)?, right.eval(cx)?);
    strict::check_pair((&value, left), (&other, right), cx)?;
    let equal = compare::compare_two(&value, &other) == Some(Ordering::Equal);
    Ok(if equal { Value::Null } else { value })
}

fn chain<'a>(first: &'a Expr, links: &'a [(BinaryOperator, Expr)], cx: &Context<'a>) -> Evaluated<'a> {
    let held = cx.state.held();
    let mut value = first.eval(cx)?;
    for (operator, operand) in links {
        cx.state.work(NODE_BYTES)?;
        value = arithmetic::binary(*operator, value, operand.eval(cx)?, cx.state)?;
        value = cx.state.settle(value, held)?;
    }
    Ok(value)
}

fn cast<'a>(operand: &'a Expr, target: &CastType, cx: &Context<'a>) -> Evaluated<'a> {
    let held = cx.state.held();
    let operand = operand.eval(cx)?;
    cx.state.work_on(&operand)?;
    let value = types::cast(operand, target, cx.state)?;
    cx.state.check_strictly()?;
    cx.state.settle(value, held)
}

impl Expr {
    /// A constant integer.
    pub fn int(value: i64) -> Expr {
        Expr::Literal(Value::Int(value))
    }

    /// Evaluates to a value.
    pub fn eval<'a>(&'a self, cx: &Context<'a>) -> Evaluated<'a> {
        match self {
            Expr::Literal(value) => Ok(value.borrowed()),
            Expr::Shared(inner) => inner.eval(cx),
            Expr::Parameter(index) => {
                Ok(cx.parameters.get(usize::from(*index)).map_or(Value::Null, |v| borrowed(v)))
            }
            Expr::Outer(index) => Ok(cx.outer.get(usize::from(*index)).map_or(Value::Null, |v| borrowed(v))),
            Expr::Column { source, column } => Ok(match cx.rows.get(usize::from(*source)) {
                Some(row) => row.column(*column, cx.state.time_zone_offset()),
                None => Value::Null,
            }),
            Expr::Aggregate(index) => {
                Ok(cx.aggregates.get(usize::from(*index)).map_or(Value::Null, Value::borrowed))
            }
            Expr::Subquery(index) => self.scalar_subquery(*index, cx),
            Expr::OfOnlyRow { subquery, column, columns } => {
                self.of_only_row(*subquery, *column, *columns, cx)
            }
            Expr::Exists(index) => {
                let rows = cx.subqueries.get(usize::from(*index)).map_or(0, |result| result.values.len());
                Ok(Value::truth_value(rows > 0))
            }
            Expr::UserVariable(name) => user_variable(name, cx),
            Expr::Assign(name, value) => assign(name, value, cx),
            Expr::SystemVariable { scope, name } => cx.state.system_variable(name, *scope),
            Expr::Inserted(column) => {
                Ok(cx.inserted.get(usize::from(*column)).map_or(Value::Null, Value::borrowed))
            }
            Expr::Negate(operand) => {
                let value = operand.eval(cx)?;
                strict::check_number(&value, "DOUBLE", cx.state)?;
                arithmetic::negate(value)
            }
            Expr::MemberNumber(operand, kind) => member::number_of(operand, kind, cx),
            Expr::BitNot(operand) => Ok(match operand.eval(cx)? {
                Value::Null => Value::Null,
                value => {
                    strict::check_number(&value, "INTEGER", cx.state)?;
                    Value::UInt(!value.to_bits())
                }
            }),
            Expr::Arithmetic(operator, left, right) => {
                let held = cx.state.held();
                let value = arithmetic::binary(*operator, left.eval(cx)?, right.eval(cx)?, cx.state)?;
                cx.state.settle(value, held)
            }
            Expr::Chain(first, links) => chain(first, links, cx),
            Expr::Coalesce(list) => coalesce(list, cx),
            Expr::NullIf(left, right) => null_if(left, right, cx),
            Expr::Case { operand, whens, otherwise } => self.case(operand.as_deref(), whens, otherwise, cx),
            Expr::Cast(operand, target) => cast(operand, target, cx),
            Expr::Collate(operand, rule) => Ok(operand.eval(cx)?.under(*rule)),
            Expr::DateShift { date, amount, unit, subtract } => {
                let value = functions::date_shift(date.eval(cx)?, &amount.eval(cx)?, *unit, *subtract, cx)?;
                cx.state.check_strictly()?;
                Ok(value)
            }
            Expr::Extract(unit, operand) => Ok(functions::extract(*unit, &operand.eval(cx)?, cx)),
            Expr::TimestampDiff(unit, from, to) => {
                Ok(functions::timestamp_diff(*unit, &from.eval(cx)?, &to.eval(cx)?, cx))
            }
            Expr::Trim { side, what, operand } => {
                let held = cx.state.held();
                let what = what.as_ref().map(|what| what.eval(cx)).transpose()?;
                let operand = operand.eval(cx)?;
                cx.state.work_on(&operand)?;
                cx.state.settle(functions::trim(*side, what, operand, cx)?, held)
            }
            Expr::Call(function, arguments) => {
                let held = cx.state.held();
                if arguments.len() > ARGUMENTS_FEW {
                    cx.state.work(arguments.len() * NODE_BYTES)?;
                    cx.state.hold(arguments.len() * size_of::<Value<'_>>())?;
                }
                let mut values: smallvec::SmallVec<[Value<'a>; 4]> = smallvec::SmallVec::new();
                for argument in arguments {
                    let value = argument.eval(cx)?;
                    cx.state.work_on(&value)?;
                    values.push(value);
                }
                let result = (function.eval)(&values, cx)?;
                cx.state.check_strictly()?;
                drop(values);
                cx.state.work_on(&result)?;
                cx.state.settle(result, held)
            }
            Expr::Random { seed, constant } => {
                let seed = seed.eval(cx)?.to_whole() as u32;
                // The sequence belongs to this place of the statement.
                let place = std::ptr::from_ref(self) as usize;
                Ok(Value::Double(cx.state.random_sequences.next(place, seed, *constant)))
            }
            Expr::RolledUp { key, value } => rollup::value(*key, value, cx),
            Expr::Grouping(keys) => Ok(rollup::grouping(keys, cx)),
            Expr::Window(_) => Err(errors::error(errors::INTERNAL_ERROR, &[&"a window function by itself"])),
            Expr::Row(_) => Err(errors::error(errors::OPERAND_COLUMNS, &[&1])),
            _ => self.truth(cx).map(truth),
        }
    }

    /// Evaluates to TRUE, FALSE or UNKNOWN. Nothing that was computed for it is charged afterwards: a
    /// condition is tested for rows that nobody takes.
    #[inline]
    pub fn truth(&self, cx: &Context<'_>) -> Result<Option<bool>, SqlError> {
        let held = cx.state.held();
        let truth = self.truth_of(cx);
        cx.state.give_back_to(held);
        truth
    }

    fn truth_of(&self, cx: &Context<'_>) -> Result<Option<bool>, SqlError> {
        match self {
            Expr::And(list) => {
                let mut unknown = false;
                for item in list {
                    cx.state.work(NODE_BYTES)?;
                    match item.truth(cx)? {
                        Some(false) => return Ok(Some(false)),
                        None => unknown = true,
                        Some(true) => {}
                    }
                }
                Ok(if unknown { None } else { Some(true) })
            }
            Expr::Or(list) => {
                let mut unknown = false;
                for item in list {
                    cx.state.work(NODE_BYTES)?;
                    match item.truth(cx)? {
                        Some(true) => return Ok(Some(true)),
                        None => unknown = true,
                        Some(false) => {}
                    }
                }
                Ok(if unknown { None } else { Some(false) })
            }
            Expr::Xor(left, right) => {
                let (left, right) = (left.truth(cx)?, right.truth(cx)?);
                Ok(left.zip(right).map(|(left, right)| left != right))
            }
            Expr::Not(operand) => Ok(operand.truth(cx)?.map(|truth| !truth)),
            Expr::Compare(operator, left, right) => compare_expressions(*operator, left, right, cx),
            Expr::IsNull(operand, negated) => Ok(Some(operand.eval(cx)?.is_null() != *negated)),
            Expr::IsTruth { operand, truth, negated } => Ok(Some((operand.truth(cx)? == *truth) != *negated)),
            Expr::Between { operand, low, high, negated } => {
                Ok(between(operand, low, high, cx)?.map(|inside| inside != *negated))
            }
            Expr::InList { operand, list, negated } => in_list(operand, list, *negated, cx),
            Expr::InSubquery { operand, subquery, negated } => {
                let Some(found) = cx.subqueries.get(usize::from(*subquery)) else {
                    return Ok(Some(*negated));
                };
                if let Expr::Row(operand) = &**operand {
                    let inside = row_among(operand, found, cx)?;
                    return Ok(inside.map(|inside| inside != *negated));
                }
                let value = operand.eval(cx)?;
                strict::check_among((&value, operand), found, cx)?;
                let inside = found.contains(&value, &|bytes| cx.state.work(bytes))?;
                Ok(inside.map(|inside| inside != *negated))
            }
            Expr::Quantified { operator, operand, subquery, all } => {
                let value = operand.eval(cx)?;
                let Some(found) = cx.subqueries.get(usize::from(*subquery)) else {
                    return Ok(Some(*all));
                };
                strict::check_among((&value, operand), found, cx)?;
                quantified(*operator, &value, found, *all, cx)
            }
            Expr::InConstants { operand, constants, negated } => {
                let value = operand.eval(cx)?;
                cx.state.work_on(&value)?;
                strict::check_among((&value, operand), constants, cx)?;
                let inside = constants.contains(&value, &|bytes| cx.state.work(bytes))?;
                Ok(inside.map(|inside| inside != *negated))
            }
            Expr::Like { operand, pattern, escape, negated } => {
                let (value, pattern) = (operand.eval(cx)?, pattern.eval(cx)?);
                if value.is_null() || pattern.is_null() {
                    return Ok(None);
                }
                let escape = like::escape_of(&escape.eval(cx)?)?;
                let rule = collation::common(value.collation(), pattern.collation());
                let (text, pattern) = (value.to_text(), pattern.to_text());
                cx.state.hold(like::memory(&text, &pattern, rule))?;
                Ok(Some(
                    like::like(&text, &pattern, escape, rule, &|bytes| cx.state.work(bytes))? != *negated,
                ))
            }
            _ => {
                let value = self.eval(cx)?;
                strict::check_condition(&value, self, cx)?;
                Ok(value.truth())
            }
        }
    }

    fn case<'a>(
        &'a self,
        operand: Option<&'a Expr>,
        whens: &'a [(Expr, Expr)],
        otherwise: &'a Expr,
        cx: &Context<'a>,
    ) -> Evaluated<'a> {
        let value = operand.map(|operand| Ok((operand.eval(cx)?, operand))).transpose()?;
        let value = value.as_ref().map(|(value, operand)| (compare::Wanted::new(value), (value, *operand)));
        for (condition, result) in whens {
            cx.state.work(NODE_BYTES)?;
            let held = cx.state.held();
            let chosen = match &value {
                Some((value, said)) => {
                    let other = condition.eval(cx)?;
                    strict::check_pair(*said, (&other, condition), cx)?;
                    value.is_equal(&other) == Some(true)
                }
                None => condition.truth(cx)? == Some(true),
            };
            cx.state.give_back_to(held);
            if chosen {
                return result.eval(cx);
            }
        }
        otherwise.eval(cx)
    }

    fn scalar_subquery<'a>(&'a self, index: u16, cx: &Context<'a>) -> Evaluated<'a> {
        match cx.subqueries.get(usize::from(index)).map_or(&[][..], |result| &result.values) {
            [] => Ok(Value::Null),
            [only] => Ok(only.borrowed()),
            _ => Err(errors::error(errors::SUBQUERY_NO_1_ROW, &[])),
        }
    }

    fn of_only_row<'a>(
        &'a self,
        subquery: u16,
        column: u16,
        columns: u16,
        cx: &Context<'a>,
    ) -> Evaluated<'a> {
        let values = cx.subqueries.get(usize::from(subquery)).map_or(&[][..], |row| &row.values);
        if values.len() > usize::from(columns) {
            return Err(errors::error(errors::SUBQUERY_NO_1_ROW, &[]));
        }
        Ok(values.get(usize::from(column)).map_or(Value::Null, Value::borrowed))
    }

    /// The same expression for one more place. It may be megabytes: what is more than a leaf is shared, not
    /// copied.
    pub fn share(&mut self) -> Expr {
        let leaf = match self {
            Expr::Literal(value) => !matches!(value, Value::Text(..)),
            Expr::Parameter(_)
            | Expr::Outer(_)
            | Expr::Column { .. }
            | Expr::Aggregate(_)
            | Expr::Subquery(_)
            | Expr::OfOnlyRow { .. }
            | Expr::Exists(_)
            | Expr::Shared(_) => true,
            _ => false,
        };
        if !leaf {
            let expr = std::mem::replace(self, Expr::Literal(Value::Null));
            *self = Expr::Shared(Arc::new(expr));
        }
        self.clone()
    }

    /// The expression itself, if several places share it.
    pub fn unshared(&self) -> &Expr {
        match self {
            Expr::Shared(inner) => inner.unshared(),
            other => other,
        }
    }

    /// What a column or a shared expression has in common with those that are the same.
    pub fn identity(&self) -> Option<(usize, usize)> {
        match self {
            Expr::Shared(inner) => Some((Arc::as_ptr(inner) as usize, usize::MAX)),
            Expr::Column { source, column } => Some((usize::from(*source), usize::from(*column))),
            _ => None,
        }
    }

    /// Calls `see` with the number of each subquery in it.
    pub fn visit_subqueries(&self, see: &mut dyn FnMut(u16)) {
        self.visit(&mut |inner| {
            if let Expr::Subquery(number)
            | Expr::OfOnlyRow { subquery: number, .. }
            | Expr::Exists(number)
            | Expr::InSubquery { subquery: number, .. }
            | Expr::Quantified { subquery: number, .. } = inner
            {
                see(*number);
            }
            true
        });
    }

    /// Whether it reads a column of `source`.
    pub fn reads(&self, source: u16) -> bool {
        !self.visit(&mut |expr| !matches!(expr, Expr::Column { source: s, .. } if *s == source))
    }

    /// Calls `see` with this expression and all inside it, until it says `false`. Whether it never did.
    pub fn visit(&self, see: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if !see(self) {
            return false;
        }
        match self {
            Expr::Literal(_)
            | Expr::Parameter(_)
            | Expr::Outer(_)
            | Expr::Column { .. }
            | Expr::Aggregate(_)
            | Expr::Window(_)
            | Expr::Subquery(_)
            | Expr::OfOnlyRow { .. }
            | Expr::Exists(_)
            | Expr::UserVariable(_)
            | Expr::SystemVariable { .. }
            | Expr::Inserted(_) => true,
            Expr::InSubquery { operand, .. }
            | Expr::Quantified { operand, .. }
            | Expr::InConstants { operand, .. }
            | Expr::Assign(_, operand)
            | Expr::Not(operand)
            | Expr::Negate(operand)
            | Expr::MemberNumber(operand, _)
            | Expr::RolledUp { value: operand, .. }
            | Expr::BitNot(operand)
            | Expr::IsNull(operand, _)
            | Expr::IsTruth { operand, .. }
            | Expr::Cast(operand, _)
            | Expr::Collate(operand, _)
            | Expr::Random { seed: operand, .. }
            | Expr::Extract(_, operand) => operand.visit(see),
            Expr::And(list)
            | Expr::Or(list)
            | Expr::Coalesce(list)
            | Expr::Call(_, list)
            | Expr::Grouping(list)
            | Expr::Row(list) => list.iter().all(|item| item.visit(see)),
            Expr::Xor(left, right)
            | Expr::Compare(_, left, right)
            | Expr::Arithmetic(_, left, right)
            | Expr::NullIf(left, right)
            | Expr::TimestampDiff(_, left, right) => left.visit(see) && right.visit(see),
            Expr::Shared(inner) => inner.visit(see),
            Expr::Chain(first, links) => {
                first.visit(see) && links.iter().all(|(_, operand)| operand.visit(see))
            }
            Expr::Between { operand, low, high, .. } => {
                operand.visit(see) && low.visit(see) && high.visit(see)
            }
            Expr::InList { operand, list, .. } => {
                operand.visit(see) && list.iter().all(|item| item.visit(see))
            }
            Expr::Like { operand, pattern, escape, .. } => {
                operand.visit(see) && pattern.visit(see) && escape.visit(see)
            }
            Expr::Case { operand, whens, otherwise } => {
                operand.iter().all(|operand| operand.visit(see))
                    && whens.iter().all(|(condition, result)| condition.visit(see) && result.visit(see))
                    && otherwise.visit(see)
            }
            Expr::DateShift { date, amount, .. } => date.visit(see) && amount.visit(see),
            Expr::Trim { what, operand, .. } => what.iter().all(|what| what.visit(see)) && operand.visit(see),
        }
    }
}

fn borrowed<'a>(value: &'a Value<'a>) -> Value<'a> {
    value.borrowed()
}

/// The day that spans count from where a date is wanted, and how texts are read there.
pub fn today(cx: &Context<'_>) -> Today {
    cx.state.today()
}
