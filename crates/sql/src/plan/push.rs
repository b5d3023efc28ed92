//! Conditions on a derived table that its own query can test: it then has fewer rows, and perhaps an index.
//!
//! A derived table is bound before the query around it and finished with it, when that one's conditions are
//! known. One that reads nothing but columns of the derived table that are columns of its tables as they are
//! is tested there *too*; it stays where it is, so that a rule here may be strict. Not where a row that is
//! left out changes others: behind LIMIT, where variables are set, in groups of something else.

use std::sync::Arc;

use super::outer_join::{OuterJoin, around};
use super::source::SourceKind;
use super::{Condition, Planner, SelectPlan};
use crate::expr::{Expr, NODE_BYTES};
use crate::result::SqlError;

/// A longer condition is not copied into the derived table.
const NODES_MAX: usize = 256;

impl Planner<'_> {
    /// Finishes the derived tables of a query, with those of its conditions that they can test.
    pub(super) fn finish_derived(
        &self,
        plan: &mut SelectPlan,
        conjuncts: &[Condition],
        outer: &[OuterJoin],
    ) -> Result<(), SqlError> {
        for (at, source) in plan.sources.iter_mut().enumerate() {
            let SourceKind::Derived(inner) = &mut source.kind else { continue };
            let Some(mut pending) = inner.pending.take() else { continue };
            // WHERE is tested on the rows of NULLs of an outer join, too; ON is not.
            let on = around(outer, at).map(|join| join.on.as_slice());
            if self.takes_conditions(inner, &pending.conjuncts)? {
                for condition in on.unwrap_or(conjuncts) {
                    self.work(NODE_BYTES)?;
                    let mut left = NODES_MAX;
                    if let Some(condition) = inside(condition, at as u16, inner, &mut left) {
                        pending.conjuncts.push(Arc::new(condition));
                    }
                }
            }
            self.finish(inner, *pending)?;
        }
        Ok(())
    }

    /// Whether leaving rows out early changes nothing but that they are missing.
    fn takes_conditions(&self, plan: &SelectPlan, conjuncts: &[Condition]) -> Result<bool, SqlError> {
        let whole = plan.limit.is_none()
            && plan.locking.is_none()
            && !plan.counts_all
            && plan.unions.is_empty()
            && plan.into.is_client()
            && plan.recursion.is_none()
            && plan.grouping.as_ref().is_none_or(|grouping| !grouping.keys.is_empty() && !grouping.rollup);
        let grouping = plan.grouping.as_ref();
        let aggregates = grouping.into_iter().flat_map(|grouping| &grouping.aggregates);
        let aggregated = aggregates.flat_map(|aggregate| &aggregate.arguments);
        let having = grouping.and_then(|grouping| grouping.having.as_ref());
        let exprs = plan.items.iter().chain(conjuncts.iter().map(|condition| &**condition));
        let exprs = exprs.chain(aggregated).chain(having);
        let mut steady = true;
        for expr in exprs {
            let mut nodes = 0;
            steady &= expr.visit(&mut |inner| {
                nodes += 1;
                match inner {
                    Expr::Assign(..) | Expr::UserVariable(_) | Expr::Random { .. } => false,
                    Expr::Call(function, _) => !function.volatile,
                    _ => true,
                }
            });
            self.work(nodes * NODE_BYTES)?;
        }
        Ok(whole && steady)
    }
}

/// A condition on the derived table `source` as one on the tables of its query.
fn inside(expr: &Expr, source: u16, plan: &SelectPlan, left: &mut usize) -> Option<Expr> {
    *left = left.checked_sub(1)?;
    let mut one = |expr: &Expr| inside(expr, source, plan, left);
    let boxed = |expr: Expr| Box::new(expr);
    Some(match expr {
        Expr::Literal(_) | Expr::Parameter(_) => expr.clone(),
        Expr::Column { source: of, column } if *of == source => {
            // A row of a group or of DISTINCT stands for texts that are equal and not the same: a condition
            // may be finer than their equality.
            let stands_for_others = plan.distinct || plan.grouping.is_some();
            if stands_for_others && plan.types.get(usize::from(*column)).is_none_or(|ty| ty.is_text()) {
                return None;
            }
            let item = plan.items.get(usize::from(*column))?;
            let Expr::Column { source, column } = item else { return None };
            let is_key = |key: &Expr| matches!(key, Expr::Column { source: s, column: c } if s == source && c == column);
            match &plan.grouping {
                Some(grouping) if !grouping.keys.iter().any(is_key) => return None,
                _ => item.clone(),
            }
        }
        Expr::Compare(operator, a, b) => Expr::Compare(*operator, boxed(one(a)?), boxed(one(b)?)),
        Expr::IsNull(operand, negated) => Expr::IsNull(boxed(one(operand)?), *negated),
        Expr::Between { operand, low, high, negated } => Expr::Between {
            operand: boxed(one(operand)?),
            low: boxed(one(low)?),
            high: boxed(one(high)?),
            negated: *negated,
        },
        Expr::InConstants { operand, constants, negated } => Expr::InConstants {
            operand: boxed(one(operand)?),
            constants: constants.clone(),
            negated: *negated,
        },
        Expr::InList { operand, list, negated } => Expr::InList {
            operand: boxed(one(operand)?),
            list: list.iter().map(one).collect::<Option<_>>()?,
            negated: *negated,
        },
        Expr::Like { operand, pattern, escape, negated } => Expr::Like {
            operand: boxed(one(operand)?),
            pattern: boxed(one(pattern)?),
            escape: boxed(one(escape)?),
            negated: *negated,
        },
        Expr::Row(list) => Expr::Row(list.iter().map(one).collect::<Option<_>>()?),
        Expr::Or(list) => Expr::Or(list.iter().map(one).collect::<Option<_>>()?),
        Expr::And(list) => Expr::And(list.iter().map(one).collect::<Option<_>>()?),
        _ => return None,
    })
}
