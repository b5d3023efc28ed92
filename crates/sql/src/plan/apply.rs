//! Correlated subqueries: those whose result depends on the row of the query around them.
//!
//! They are executed for each row of the join, when all its steps have one: the conditions that hold them are
//! taken out of the join and tested there, each behind the subqueries that it needs and no others. Those of
//! ON of an outer join decide which rows match: they are tested in the join, as soon as a step has a row that
//! meets its other conditions. What the output of a grouped query needs is executed for each group.

use super::{Condition, SelectPlan};
use crate::expr::Expr;

/// A condition, with the numbers of the subqueries that it needs for the row at hand.
pub type AppliedCondition = (Vec<u16>, Condition);

/// What is done with each row of a query that has correlated subqueries.
#[derive(Debug, Default)]
pub struct Apply {
    /// Conditions on a row.
    pub conditions: Vec<AppliedCondition>,
    /// Subqueries that a row needs when it has met the conditions.
    pub rows: Vec<u16>,
    /// Subqueries that a group needs.
    pub groups: Vec<u16>,
}

/// The subqueries in an expression that follow the rows of the query, each behind those that it reads: it may
/// name an entry of the select list that is made of others.
pub fn following(expr: &Expr, subqueries: &[SelectPlan]) -> Vec<u16> {
    fn add(expr: &Expr, subqueries: &[SelectPlan], found: &mut Vec<u16>) {
        expr.visit_subqueries(&mut |number| {
            let Some(plan) = subqueries.get(usize::from(number)).filter(|plan| plan.follows_rows()) else {
                return;
            };
            if !found.contains(&number) {
                plan.captures.iter().for_each(|capture| add(capture, subqueries, found));
                found.push(number);
            }
        });
    }
    let mut found = Vec::new();
    add(expr, subqueries, &mut found);
    found
}

/// Parts the conditions that have such subqueries from those that the join can test.
pub fn split(conjuncts: Vec<Condition>, subqueries: &[SelectPlan]) -> (Option<Box<Apply>>, Vec<Condition>) {
    if !subqueries.iter().any(SelectPlan::follows_rows) {
        return (None, conjuncts);
    }
    let (conditions, others) = parted(conjuncts, subqueries);
    (Some(Box::new(Apply { conditions, ..Apply::default() })), others)
}

/// The conditions that need such subqueries, and the others.
pub fn parted(
    conditions: Vec<Condition>,
    subqueries: &[SelectPlan],
) -> (Vec<AppliedCondition>, Vec<Condition>) {
    let (mut applied, mut others) = (Vec::new(), Vec::new());
    for condition in conditions {
        match following(&condition, subqueries) {
            needed if needed.is_empty() => others.push(condition),
            needed => applied.push((needed, condition)),
        }
    }
    (applied, others)
}

/// Takes the conditions out that have such subqueries, and notes what else needs them. Returns the others.
pub fn take_conditions(plan: &mut SelectPlan, conjuncts: Vec<Condition>) -> Vec<Condition> {
    let (apply, others) = split(conjuncts, &plan.subqueries);
    let Some(mut apply) = apply else { return others };
    let numbers = |expr: &Expr| following(expr, &plan.subqueries);
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
    others
}
