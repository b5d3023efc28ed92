//! GROUP BY … WITH ROLLUP: which parts of an expression are NULL in the super-aggregate rows.
//!
//! A super-aggregate row has values for the leading GROUP BY expressions only. Wherever a GROUP BY expression
//! stands in the output, alone or inside another expression, it becomes an [`Expr::RolledUp`]; the largest
//! matching subexpression is replaced. What stands in the argument of an aggregate is of the rows and stays
//! as it is.
//!
//! A GROUP BY expression that has another value each time (`@n := @n + 1`, RAND()) is found likewise: the
//! group keeps the value that it was made by.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Context, Evaluated, Expr};
use crate::errors;
use crate::plan::Planner;
use crate::result::SqlError;
use crate::value::Value;

/// GROUPING takes as many: its result has a bit for each.
pub const GROUPING_ARGUMENTS_MAX: usize = 64;

/// The expressions of GROUP BY, to be found in others.
pub struct GroupKeys<'k> {
    /// What may stop the walk.
    pub planner: &'k Planner<'k>,
    /// In their order.
    pub keys: &'k [Expr],
    /// WITH ROLLUP: without, only GROUPING asks for them.
    pub rollup: bool,
    /// The keys whose values groups keep, and the number of aggregates, which those follow.
    kept: (&'k [u16], u16),
    /// What stands in several places and has been changed there, by their addresses before and after, which
    /// they keep as long as they are here.
    shared: RefCell<HashMap<*const Expr, (Arc<Expr>, Arc<Expr>)>>,
}

impl<'k> GroupKeys<'k> {
    /// Nothing has been changed yet.
    pub fn new(planner: &'k Planner<'k>, keys: &'k [Expr], rollup: bool) -> GroupKeys<'k> {
        GroupKeys { planner, keys, rollup, kept: (&[], 0), shared: RefCell::default() }
    }

    /// Groups keep the values of these keys, which follow that many aggregates.
    pub fn keeping(self, kept: &'k [u16], aggregates: u16) -> GroupKeys<'k> {
        GroupKeys { kept: (kept, aggregates), ..self }
    }
}

impl GroupKeys<'_> {
    /// Changes what several places share, in the same way for all of them.
    fn mark_shared(&self, entry: &mut Arc<Expr>) -> Result<(), SqlError> {
        let before = entry.clone();
        if let Some((_, changed)) = self.shared.borrow().get(&Arc::as_ptr(&before)) {
            *entry = changed.clone();
            return Ok(());
        }
        let mut own = (*before).clone();
        self.mark(&mut own)?;
        *entry = Arc::new(own);
        let mut shared = self.shared.borrow_mut();
        shared.insert(Arc::as_ptr(&before), (before, entry.clone()));
        shared.insert(Arc::as_ptr(entry), (entry.clone(), entry.clone()));
        Ok(())
    }

    fn position(&self, expr: &Expr) -> Option<u16> {
        let at = self.keys.iter().position(|key| key.unshared() == expr.unshared())?;
        u16::try_from(at).ok()
    }

    /// What answers the value of a key that groups keep.
    fn kept(&self, expr: &Expr) -> Option<Expr> {
        let (kept, aggregates) = self.kept;
        if kept.is_empty() {
            return None;
        }
        let key = self.position(expr)?;
        let at = kept.iter().position(|kept| *kept == key)?;
        Some(Expr::Aggregate(aggregates.checked_add(u16::try_from(at).ok()?)?))
    }

    /// Replaces the expressions of GROUP BY in `expr`.
    pub fn mark(&self, expr: &mut Expr) -> Result<(), SqlError> {
        self.planner.work(super::NODE_BYTES)?;
        if let Some(kept) = self.kept(expr) {
            *expr = kept;
            return Ok(());
        }
        match expr {
            Expr::RolledUp { .. } => return Ok(()),
            Expr::Shared(entry) if !self.rollup || self.position(entry).is_none() => {
                return self.mark_shared(entry);
            }
            Expr::Grouping(arguments) => {
                for (at, argument) in arguments.iter_mut().enumerate() {
                    let marked = match argument.unshared() {
                        Expr::RolledUp { key, .. } => Some(*key),
                        other => self.position(other),
                    };
                    let Some(key) = marked else {
                        return Err(match self.keys.is_empty() {
                            true => errors::error(errors::INVALID_GROUP_FUNC_USE, &[]),
                            false => errors::error(errors::FIELD_IN_GROUPING_NOT_GROUP_BY, &[&(at + 1)]),
                        });
                    };
                    // Its value is not asked for.
                    *argument = Expr::RolledUp { key, value: Box::new(Expr::Literal(Value::Null)) };
                }
                return Ok(());
            }
            _ => {}
        }
        if self.rollup
            && let Some(key) = self.position(expr)
        {
            let value = Box::new(std::mem::replace(expr, Expr::Literal(Value::Null)));
            *expr = Expr::RolledUp { key, value };
            return Ok(());
        }
        for_each_child(expr, &mut |child| self.mark(child))
    }
}

/// An expression of GROUP BY in the group at hand.
pub fn value<'a>(key: u16, value: &'a Expr, cx: &Context<'a>) -> Evaluated<'a> {
    if key < cx.group_keys { value.eval(cx) } else { Ok(Value::Null) }
}

/// GROUPING of marked expressions: the last one is the lowest bit.
pub fn grouping(keys: &[Expr], cx: &Context<'_>) -> Value<'static> {
    let rolled_up = |key: &Expr| matches!(key, Expr::RolledUp { key, .. } if *key >= cx.group_keys);
    Value::Int(keys.iter().fold(0, |bits, key| bits << 1 | i64::from(rolled_up(key))))
}

type Change<'c> = &'c mut dyn FnMut(&mut Expr) -> Result<(), SqlError>;

/// Changes what stands directly in an expression. What is shared is an entry of the select list, which is
/// changed there.
pub fn for_each_child(expr: &mut Expr, change: Change<'_>) -> Result<(), SqlError> {
    let each = |list: &mut [Expr], change: Change<'_>| list.iter_mut().try_for_each(change);
    match expr {
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
        | Expr::Shared(_)
        | Expr::Inserted(_) => Ok(()),
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
        | Expr::Extract(_, operand) => change(operand),
        Expr::And(list)
        | Expr::Or(list)
        | Expr::Coalesce(list)
        | Expr::Call(_, list)
        | Expr::Grouping(list)
        | Expr::Row(list) => each(list, change),
        Expr::Xor(left, right)
        | Expr::Compare(_, left, right)
        | Expr::Arithmetic(_, left, right)
        | Expr::NullIf(left, right)
        | Expr::TimestampDiff(_, left, right) => {
            change(left)?;
            change(right)
        }
        Expr::Chain(first, links) => {
            change(first)?;
            links.iter_mut().try_for_each(|(_, operand)| change(operand))
        }
        Expr::Between { operand, low, high, .. } => {
            [operand, low, high].into_iter().try_for_each(|e| change(e))
        }
        Expr::InList { operand, list, .. } => {
            change(operand)?;
            each(list, change)
        }
        Expr::Like { operand, pattern, escape, .. } => {
            [operand, pattern, escape].into_iter().try_for_each(|e| change(e))
        }
        Expr::Case { operand, whens, otherwise } => {
            operand.iter_mut().try_for_each(|operand| change(operand))?;
            for (condition, result) in whens {
                change(condition)?;
                change(result)?;
            }
            change(otherwise)
        }
        Expr::DateShift { date, amount, .. } => {
            change(date)?;
            change(amount)
        }
        Expr::Trim { what, operand, .. } => {
            what.iter_mut().try_for_each(|what| change(what))?;
            change(operand)
        }
    }
}
