//! Comparisons of bound expressions: operators, rows, lists, the results of subqueries. How two values
//! compare is `value/compare.rs`; what strict mode refuses of them `strict.rs`.

use std::cmp::Ordering;

use super::{Context, Expr, NODE_BYTES, ValueSet, borrowed, strict};
use crate::ast::BinaryOperator;
use crate::errors;
use crate::result::SqlError;
use crate::value::{Value, compare};

/// `operand BETWEEN low AND high`.
pub(super) fn between(
    operand: &Expr,
    low: &Expr,
    high: &Expr,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    let value = operand.eval(cx)?;
    let beside = |limit: &Expr| {
        let other = limit.eval(cx)?;
        strict::check_pair((&value, operand), (&other, limit), cx)?;
        Ok(compare::compare(&value, &other))
    };
    let (low, high) = (beside(low)?.map(Ordering::is_ge), beside(high)?.map(Ordering::is_le));
    Ok(match (low, high) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

/// The answer of an ordering to a comparison operator.
pub fn decide(operator: BinaryOperator, ordering: Ordering) -> bool {
    match operator {
        BinaryOperator::Equal => ordering.is_eq(),
        BinaryOperator::NotEqual => ordering.is_ne(),
        BinaryOperator::Less => ordering.is_lt(),
        BinaryOperator::LessEqual => ordering.is_le(),
        BinaryOperator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

pub(super) fn compare_expressions(
    operator: BinaryOperator,
    left: &Expr,
    right: &Expr,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    if let (Expr::Row(left), Expr::Row(right)) = (left, right) {
        return compare_rows(operator, left, right, cx);
    }
    match (left, right) {
        (Expr::Row(row), Expr::Subquery(number)) => {
            return compare_with_only_row(operator, row, *number, cx, |pair| pair);
        }
        (Expr::Subquery(number), Expr::Row(row)) => {
            return compare_with_only_row(operator, row, *number, cx, |(row, found)| (found, row));
        }
        _ => {}
    }
    let said = (left, right);
    let (left, right) = (left.eval(cx)?, right.eval(cx)?);
    cx.state.work_on(&left)?;
    strict::check_pair((&left, said.0), (&right, said.1), cx)?;
    if operator == BinaryOperator::NullSafeEqual {
        return Ok(Some(compare::null_safe_equal(&left, &right)));
    }
    Ok(compare::compare_two(&left, &right).map(|ordering| decide(operator, ordering)))
}

/// Rows compare like words: the first difference decides.
fn compare_rows(
    operator: BinaryOperator,
    left: &[Expr],
    right: &[Expr],
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    if left.len() != right.len() {
        return Err(errors::error(errors::OPERAND_COLUMNS, &[&left.len()]));
    }
    let pairs = left.iter().zip(right).map(|(left, right)| Ok((left.eval(cx)?, right.eval(cx)?)));
    compare_pairs(operator, pairs, cx)
}

/// The values of two rows, side by side.
fn compare_pairs<'v>(
    operator: BinaryOperator,
    pairs: impl Iterator<Item = Result<(Value<'v>, Value<'v>), SqlError>>,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    for pair in pairs {
        let (left, right) = pair?;
        cx.state.work_on(&left)?;
        strict::check_values(&left, &right, cx.state)?;
        if operator == BinaryOperator::NullSafeEqual {
            if !compare::null_safe_equal(&left, &right) {
                return Ok(Some(false));
            }
            continue;
        }
        match compare::compare_two(&left, &right) {
            Some(Ordering::Equal) => {}
            Some(ordering)
                if !unknown || matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual) =>
            {
                return Ok(Some(decide(operator, ordering)));
            }
            _ => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(decide(operator, Ordering::Equal)) })
}

/// A row beside the only row of a subquery; `sides` puts both where they are written.
fn compare_with_only_row<'v>(
    operator: BinaryOperator,
    row: &'v [Expr],
    subquery: u16,
    cx: &Context<'v>,
    sides: impl Fn((Value<'v>, Value<'v>)) -> (Value<'v>, Value<'v>),
) -> Result<Option<bool>, SqlError> {
    let values = cx.subqueries.get(usize::from(subquery)).map_or(&[][..], |result| &result.values);
    // No row is a row of NULLs.
    let found = |at: usize| values.get(at).map_or(Value::Null, Value::borrowed);
    if values.len() > row.len() {
        return Err(errors::error(errors::SUBQUERY_NO_1_ROW, &[]));
    }
    let pairs = row.iter().enumerate().map(|(at, expr)| Ok(sides((expr.eval(cx)?, found(at)))));
    compare_pairs(operator, pairs, cx)
}

/// Whether a row is among those of a subquery.
pub(super) fn row_among(
    operand: &[Expr],
    found: &ValueSet,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    let held = cx.state.held();
    let row = operand.iter().map(|expr| expr.eval(cx)).collect::<Result<Vec<_>, _>>()?;
    let mut among = Some(false);
    for other in found.values.chunks(row.len().max(1)) {
        cx.state.work(NODE_BYTES)?;
        let pairs = row.iter().zip(other).map(|(left, right)| Ok((borrowed(left), right.borrowed())));
        match compare_pairs(BinaryOperator::Equal, pairs, cx)? {
            Some(true) => {
                among = Some(true);
                break;
            }
            None => among = None,
            Some(false) => {}
        }
    }
    cx.state.give_back_to(held);
    Ok(among)
}

/// `value > ALL (…)`, `value > ANY (…)`.
pub(super) fn quantified(
    operator: BinaryOperator,
    value: &Value<'_>,
    found: &ValueSet,
    all: bool,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    for other in &found.values {
        cx.state.work(NODE_BYTES)?;
        match compare::compare(value, other).map(|ordering| decide(operator, ordering)) {
            Some(holds) if holds != all => return Ok(Some(holds)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(all) })
}

pub(super) fn in_list(
    operand: &Expr,
    list: &[Expr],
    negated: bool,
    cx: &Context<'_>,
) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    if let Expr::Row(_) = operand {
        for item in list {
            cx.state.work(NODE_BYTES)?;
            match compare_expressions(BinaryOperator::Equal, operand, item, cx)? {
                Some(true) => return Ok(Some(!negated)),
                None => unknown = true,
                Some(false) => {}
            }
        }
        return Ok(if unknown { None } else { Some(negated) });
    }
    let wanted = operand.eval(cx)?;
    cx.state.work_on(&wanted)?;
    let value = compare::Wanted::new(&wanted);
    for said in list {
        cx.state.work(NODE_BYTES)?;
        let held = cx.state.held();
        let item = said.eval(cx)?;
        cx.state.work_on(&item)?;
        strict::check_pair((&wanted, operand), (&item, said), cx)?;
        let equal = value.is_equal(&item);
        drop(item);
        cx.state.give_back_to(held);
        match equal {
            Some(true) => return Ok(Some(!negated)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok(if unknown { None } else { Some(negated) })
}
