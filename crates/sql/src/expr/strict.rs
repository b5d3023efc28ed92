//! Strict mode where values of two kinds meet: in a statement that changes rows a text beside a number is
//! all of it a number, and one beside a day, moment or span is all of it one. Anything else is error 1292,
//! so that `DELETE … WHERE price > 'abc'` deletes nothing. Statements that only read ask nothing here.
//!
//! Texts are asked that stand there as they are: a literal, a parameter, a variable, a column, and what a
//! function answers. MySQL takes what is chosen among several (IFNULL, COALESCE, CASE), and what a subquery
//! or a cast answers; so it takes most texts that a client sends as a parameter beside a day.

use std::sync::Arc;

use untorn::schema::ColumnDef;
use untorn::types::{ColumnType, DateTime};

use super::{Context, Expr, RowView, ValueSet, functions};
use crate::context::SqlContext;
use crate::errors;
use crate::plan::TextOfDay;
use crate::result::SqlError;
use crate::sql_mode;
use crate::value::convert::parse_number;
use crate::value::{Value, temporal};

/// Whether a text is a number as a whole. One of blanks alone is 0.
fn is_number(text: &[u8]) -> bool {
    let number = parse_number(text);
    !number.overflow && text[number.length..].iter().all(u8::is_ascii_whitespace)
}

/// A value where a number of this kind is wanted.
#[inline]
pub(crate) fn check_number(value: &Value<'_>, kind: &str, state: &SqlContext) -> Result<(), SqlError> {
    match value {
        Value::Text(text, _) if state.changes_strictly.get() && !is_number(text) => {
            Err(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &String::from_utf8_lossy(text)]))
        }
        _ => Ok(()),
    }
}

/// A text where an exact number is wanted, which one of blanks is not.
pub(crate) fn check_exact(value: &Value<'_>, state: &SqlContext) -> Result<(), SqlError> {
    match value {
        Value::Text(text, _) if state.changes_strictly.get() && !parse_number(text).complete => {
            Err(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &String::from_utf8_lossy(text)]))
        }
        _ => Ok(()),
    }
}

/// Two values that are compared.
#[inline]
pub(super) fn check_values(left: &Value<'_>, right: &Value<'_>, state: &SqlContext) -> Result<(), SqlError> {
    if state.changes_strictly.get() { check(left, right, None, state) } else { Ok(()) }
}

/// Two values that are compared, and what they are values of.
#[inline]
pub(super) fn check_pair(
    left: (&Value<'_>, &Expr),
    right: (&Value<'_>, &Expr),
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    if !cx.state.changes_strictly.get() {
        return Ok(());
    }
    let is_text = |value: &Value<'_>| matches!(value, Value::Text(..));
    let (text, other) = match (is_text(left.0), is_text(right.0)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return Ok(()),
    };
    if is_asked(text.1, other, cx) {
        check(left.0, right.0, column_name(other.1, cx), cx.state)
    } else {
        Ok(())
    }
}

/// A condition that is nothing but a value.
#[inline]
pub(super) fn check_condition(value: &Value<'_>, said: &Expr, cx: &Context<'_>) -> Result<(), SqlError> {
    match value {
        Value::Text(..) if cx.state.changes_strictly.get() && is_asked(said, (&Value::Int(0), said), cx) => {
            check_number(value, "DOUBLE", cx.state)
        }
        _ => Ok(()),
    }
}

/// Whether a text beside this value is asked what it is.
fn is_asked(text: &Expr, (other, said): (&Value<'_>, &Expr), cx: &Context<'_>) -> bool {
    let sent = |expr: &Expr| cx.state.sent_parameters.get() && matches!(expr, Expr::Parameter(_));
    let is_moment = matches!(other, Value::Date(_) | Value::DateTime(..));
    match text.unshared() {
        Expr::Literal(_) | Expr::Outer(_) | Expr::UserVariable(_) => true,
        Expr::Parameter(_) => !(is_moment && sent(text)),
        // A number that is sent beside members is the number of one.
        Expr::Column { .. } => {
            let kind = column_of(text, cx).map(|column| &column.kind);
            !(sent(said) && matches!(kind, Some(ColumnType::Enum { .. } | ColumnType::Set { .. })))
        }
        Expr::Call(function, arguments) if std::ptr::eq(*function, &functions::IN_ZONE) => {
            !arguments.iter().any(sent)
        }
        Expr::Call(..) => !is_moment && !matches!(other, Value::Decimal(_)),
        _ => false,
    }
}

/// A value that is looked for in a list or the result of a subquery.
#[inline]
pub(super) fn check_among(
    (value, said): (&Value<'_>, &Expr),
    set: &ValueSet,
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    if !cx.state.changes_strictly.get() || value.is_null() {
        return Ok(());
    }
    // All constants of an indexed set are of one kind.
    let compared = if set.is_integers() { &set.values[..set.values.len().min(1)] } else { &set.values[..] };
    if matches!(value, Value::Text(..)) && set.rule_of_texts().is_some() {
        return Ok(());
    }
    compared
        .iter()
        .filter(|other| !matches!(value, Value::Text(..)) || is_asked(said, (other, said), cx))
        .try_for_each(|other| check(value, other, column_name(said, cx), cx.state))
}

fn column_of<'c>(said: &Expr, cx: &Context<'c>) -> Option<&'c ColumnDef> {
    let Expr::Column { source, column } = said.unshared() else { return None };
    match cx.rows.get(usize::from(*source))? {
        RowView::Stored(_, columns) | RowView::Fields(_, columns) => columns.get(usize::from(*column)),
        _ => None,
    }
}

fn column_name<'c>(said: &Expr, cx: &Context<'c>) -> Option<&'c str> {
    column_of(said, cx).map(|column| &*column.name)
}

fn check(
    left: &Value<'_>,
    right: &Value<'_>,
    column: Option<&str>,
    state: &SqlContext,
) -> Result<(), SqlError> {
    let (text, other) = match (left, right) {
        (Value::Text(..), Value::Text(..)) => return Ok(()),
        (Value::Text(text, _), other) | (other, Value::Text(text, _)) => (text, other),
        _ => return Ok(()),
    };
    match other {
        Value::Date(_) => check_moment(text, "date", column, state),
        Value::DateTime(..) => check_moment(text, "datetime", column, state),
        other if other.is_number() => {
            let text = if matches!(left, Value::Text(..)) { left } else { right };
            check_number(text, "DOUBLE", state)
        }
        _ => Ok(()),
    }
}

/// A text beside a YEAR, of which the number that it begins with counts.
pub(crate) fn check_year(value: &Value<'_>, state: &SqlContext) -> Result<(), SqlError> {
    match value {
        Value::Text(text, _) if parse_number(text).length > 0 => Ok(()),
        _ => check_number(value, "DOUBLE", state),
    }
}

/// A constant that is compared with a column of this kind, before a row is read.
pub(crate) fn check_beside_column(
    value: &Value<'_>,
    (kind, name): (&ColumnType, &str),
    state: &SqlContext,
) -> Result<(), SqlError> {
    let Value::Text(text, _) = value else { return Ok(()) };
    match kind {
        ColumnType::Date => check_moment(text, "date", Some(name), state),
        ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            check_moment(text, "datetime", Some(name), state)
        }
        ColumnType::Time { .. } => check_span(text, Some(name), state),
        ColumnType::Year => check_year(value, state),
        ColumnType::Float | ColumnType::Double | ColumnType::Decimal { .. } => {
            check_number(value, "DOUBLE", state)
        }
        kind if kind.integer().is_some() => check_number(value, "DOUBLE", state),
        _ => Ok(()),
    }
}

/// What the conditions of a change compare columns of its table with, before a row is read: whether there is
/// one that they are compared for makes no difference. Also without strict mode a text that is no day is
/// error 1525 beside a day.
///
/// # Errors
/// 1292, 1525.
pub(crate) fn check_constants(
    conditions: &[Arc<Expr>],
    columns: &[ColumnDef],
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    if conditions.iter().any(|condition| is_false(condition, cx)) {
        return Ok(());
    }
    let mut checked = Ok(());
    let mut check = |column: &Expr, constant: &Expr| {
        if checked.is_ok() {
            checked = check_constant(column, constant, columns, cx);
        }
    };
    for condition in conditions {
        if matches!(&**condition, Expr::Literal(_) | Expr::Parameter(_)) {
            condition.truth(cx)?;
        }
        condition.visit(&mut |inner| {
            match inner {
                Expr::Compare(_, left, right) => {
                    check(left, right);
                    check(right, left);
                }
                Expr::Between { operand, low, high, .. } => {
                    check(operand, low);
                    check(operand, high);
                }
                // Numbers are compared one by one, until one is equal.
                Expr::InList { operand, list, .. } if is_of_moments(operand, columns) => {
                    list.iter().for_each(|item| check(operand, item));
                }
                _ => {}
            }
            true
        });
    }
    checked
}

fn is_of_moments(operand: &Expr, columns: &[ColumnDef]) -> bool {
    use ColumnType::{Date, DateTime, Time, Timestamp};
    let Expr::Column { source: 0, column } = operand else { return false };
    let kind = columns.get(usize::from(*column)).map(|column| &column.kind);
    matches!(kind, Some(Date | DateTime { .. } | Time { .. } | Timestamp { .. }))
}

/// Whether a condition is false for every row, which constants beside constants say.
fn is_false(condition: &Expr, cx: &Context<'_>) -> bool {
    let at_hand = |expr: &Expr| matches!(expr, Expr::Literal(_) | Expr::Parameter(_));
    match condition {
        Expr::Compare(_, left, right) if at_hand(left) && at_hand(right) => {
            condition.truth(cx).is_ok_and(|truth| truth == Some(false))
        }
        Expr::Literal(value) => value.truth() == Some(false) && !matches!(value, Value::Text(..)),
        _ => false,
    }
}

fn check_constant(
    said: &Expr,
    constant: &Expr,
    columns: &[ColumnDef],
    cx: &Context<'_>,
) -> Result<(), SqlError> {
    let Expr::Column { source: 0, column } = said else { return Ok(()) };
    let Some(column) = columns.get(usize::from(*column)) else { return Ok(()) };
    let value = match constant {
        Expr::Literal(_) | Expr::Parameter(_) | Expr::UserVariable(_) => constant.eval(cx)?,
        Expr::Call(function, arguments) => match &arguments[..] {
            [text @ (Expr::Literal(_) | Expr::Parameter(_) | Expr::UserVariable(_))] => {
                // What reads an exact number, a year, or an entry of a list refuses the text itself.
                const READERS: [&functions::Function; 4] = [
                    &functions::EXACT_NUMBER,
                    &functions::FULL_YEAR,
                    &functions::DAY_IN_LIST,
                    &functions::SPAN_IN_LIST,
                ];
                if READERS.iter().any(|reader| std::ptr::eq(*function, *reader)) {
                    return constant.eval(cx).map(drop);
                }
                if !std::ptr::eq(*function, &functions::IN_ZONE) {
                    return Ok(());
                }
                if cx.state.sent_parameters.get() && matches!(text, Expr::Parameter(_)) {
                    return Ok(());
                }
                text.eval(cx)?
            }
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let of_client = cx.state.sent_parameters.get() && matches!(constant, Expr::Parameter(_));
    if of_client && is_of_moments(said, columns) {
        return Ok(());
    }
    // As MySQL a parameter beside an integer is read as one, which no blanks are.
    if of_client
        && cx.state.changes_strictly.get()
        && column.kind.integer().is_some()
        && let Value::Text(text, _) = &value
        && (text.trim_ascii().is_empty() || !is_number(text))
    {
        let shown = String::from_utf8_lossy(text);
        return Err(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &shown]));
    }
    if cx.state.changes_strictly.get() {
        return check_beside_column(&value, (&column.kind, &column.name), cx.state);
    }
    let kind = match column.kind {
        ColumnType::Date => "DATE",
        ColumnType::DateTime { .. } => "DATETIME",
        ColumnType::Timestamp { .. } => "TIMESTAMP",
        _ => return Ok(()),
    };
    check_day(&value, kind, cx.state)
}

/// Constant texts beside days in a query: one that is no day is an error, whatever the rows are.
///
/// # Errors
/// 1292 while rows are changed in strict mode, 1525.
pub(crate) fn check_texts_of_days(texts: &[TextOfDay], cx: &Context<'_>) -> Result<(), SqlError> {
    for TextOfDay { text, kind, column } in texts {
        let value = text.eval(cx)?;
        match &value {
            Value::Text(text, _) if cx.state.changes_strictly.get() => {
                let kind = if *kind == "DATE" { "date" } else { "datetime" };
                check_moment(text, kind, column.as_deref(), cx.state)?;
            }
            value => check_day(value, kind, cx.state)?,
        }
    }
    Ok(())
}

fn check_day(value: &Value<'_>, kind: &str, state: &SqlContext) -> Result<(), SqlError> {
    let Value::Text(text, _) = value else { return Ok(()) };
    let is_taken = |(moment, ..): (DateTime, u8, bool)| {
        let DateTime { date, .. } = moment;
        let refuses = |flag| state.settings().sql_mode & flag != 0;
        match date.month == 0 || date.day == 0 {
            true if moment == DateTime::default() => !refuses(sql_mode::NO_ZERO_DATE),
            true => !refuses(sql_mode::NO_ZERO_IN_DATE),
            false => true,
        }
    };
    let is_day =
        temporal::has_offset(text) || temporal::parse_datetime(text, state.today()).is_some_and(is_taken);
    if is_day {
        return Ok(());
    }
    Err(errors::error(errors::WRONG_VALUE, &[&kind, &String::from_utf8_lossy(text)]))
}

/// A value that is read as a day (`date`) or moment (`datetime`).
#[inline]
pub(crate) fn check_text_of_moment(
    value: &Value<'_>,
    kind: &str,
    state: &SqlContext,
) -> Result<(), SqlError> {
    match value {
        Value::Text(text, _) if state.changes_strictly.get() => check_moment(text, kind, None, state),
        _ => Ok(()),
    }
}

/// A value that is read as a span.
#[inline]
pub(crate) fn check_text_of_span(value: &Value<'_>, state: &SqlContext) -> Result<(), SqlError> {
    match value {
        Value::Text(text, _) if state.changes_strictly.get() => check_span(text, None, state),
        _ => Ok(()),
    }
}

fn check_moment(text: &[u8], kind: &str, column: Option<&str>, state: &SqlContext) -> Result<(), SqlError> {
    let is_moment =
        temporal::parse_datetime(text, state.today()).is_some_and(|(DateTime { date, .. }, _, cut)| {
            !cut && !((date.month == 0 || date.day == 0) && state.refuses_zero_dates(date))
        });
    if is_moment { Ok(()) } else { Err(incorrect(text, kind, column)) }
}

fn check_span(text: &[u8], column: Option<&str>, state: &SqlContext) -> Result<(), SqlError> {
    if is_number(text) {
        return Ok(());
    }
    let is_span = temporal::parse_time(text, state.today()).is_some_and(|(_, _, cut)| !cut)
        && !temporal::is_only_day(text);
    if is_span { Ok(()) } else { Err(incorrect(text, "time", column)) }
}

fn incorrect(text: &[u8], kind: &str, column: Option<&str>) -> SqlError {
    let shown = String::from_utf8_lossy(text);
    let mut error = errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
    if let Some(column) = column {
        error.message = format!("Incorrect {kind} value: '{shown}' for column '{column}' at row 1").into();
    }
    error
}
