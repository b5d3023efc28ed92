//! Correlated subqueries: those whose result depends on the row of the query around them.
//!
//! They are executed for each row of the join, when all its steps have one: the conditions that hold them are
//! taken out of the join and tested there, each behind the subqueries that it needs and no others. What the
//! output of a grouped query needs is executed for each group.

use super::outer_join::OuterJoin;
use super::{Condition, SelectPlan};
use crate::errors;
use crate::expr::Expr;
use crate::result::SqlError;

/// What is done with each row of a query that has correlated subqueries.
#[derive(Debug, Default)]
pub struct Apply {
    /// Conditions on a row, each with the numbers of the subqueries that it needs.
    pub conditions: Vec<(Vec<u16>, Condition)>,
    /// Subqueries that a row needs when it has met the conditions.
    pub rows: Vec<u16>,
    /// Subqueries that a group needs.
    pub groups: Vec<u16>,
}

/// The subqueries in an expression that follow the rows of the query.
pub fn following(expr: &Expr, subqueries: &[SelectPlan]) -> Vec<u16> {
    let mut found = Vec::new();
    expr.visit_subqueries(&mut |number| {
        let follows = subqueries.get(usize::from(number)).is_some_and(SelectPlan::follows_rows);
        if follows && !found.contains(&number) {
            found.push(number);
        }
    });
    found
}

/// Parts the conditions that have such subqueries from those that the join can test.
pub fn split(conjuncts: Vec<Condition>, subqueries: &[SelectPlan]) -> (Option<Box<Apply>>, Vec<Condition>) {
    if !subqueries.iter().any(SelectPlan::follows_rows) {
        return (None, conjuncts);
    }
    let mut apply = Box::<Apply>::default();
    let mut others = Vec::new();
    for condition in conjuncts {
        match following(&condition, subqueries) {
            needed if needed.is_empty() => others.push(condition),
            needed => apply.conditions.push((needed, condition)),
        }
    }
    (Some(apply), others)
}

/// Takes the conditions out that have such subqueries, and notes what else needs them. Returns the others.
pub fn take_conditions(
    plan: &mut SelectPlan,
    conjuncts: Vec<Condition>,
    outer_joins: &[OuterJoin],
) -> Result<Vec<Condition>, SqlError> {
    let (apply, others) = split(conjuncts, &plan.subqueries);
    let Some(mut apply) = apply else { return Ok(others) };
    let numbers = |expr: &Expr| following(expr, &plan.subqueries);
    if outer_joins.iter().flat_map(|join| &join.on).any(|condition| !numbers(condition).is_empty()) {
        return Err(errors::unsupported("a correlated subquery in ON of an outer join"));
    }
    let output = plan.items.iter().chain(plan.order.iter().map(|(expr, _)| expr));
    match &plan.grouping {
        None => apply.rows = output.flat_map(numbers).collect(),
        Some(grouping) => {
            apply.groups = output.chain(&grouping.having).flat_map(numbers).collect();
            let sorted =
                |order: &[(Expr, bool)]| order.iter().flat_map(|(expr, _)| numbers(expr)).collect::<Vec<_>>();
            apply.rows = grouping.keys.iter().flat_map(numbers).collect();
            for aggregate in &grouping.aggregates {
                apply.rows.extend(aggregate.arguments.iter().flat_map(numbers));
                apply.rows.extend(sorted(&aggregate.order));
            }
        }
    }
    for list in [&mut apply.rows, &mut apply.groups] {
        list.sort_unstable();
        list.dedup();
    }
    plan.apply = Some(apply);
    Ok(others)
}
