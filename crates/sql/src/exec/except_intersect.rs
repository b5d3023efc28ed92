//! EXCEPT and INTERSECT: the rows of both sides sorted together.
//!
//! Equal rows stand beside each other, those of the right side first: when the left ones come it is known how
//! many there are on the right. What is left goes to the query's [`OrderLimit`], of equal rows the first ones
//! of the left side.

use std::future::Future;
use std::pin::Pin;

use super::order_limit::OrderLimit;
use super::sort::{RowSorter, push_key};
use super::spilled_values::{put, take_all};
use super::union::Part;
use super::{Executor, RowTaker, Target};
use crate::ast::SetOperation;
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::result::ResultSink;
use crate::value::Value;
use crate::value::compare::group_key;

/// Marks, behind the values of a key, the side that a row is from.
const RIGHT: u8 = 0;
const LEFT: u8 = 1;

/// Takes the rows of one side.
struct Side<'a, 's> {
    sorter: &'a mut RowSorter<'s>,
    mark: u8,
}

impl RowTaker for Side<'_, '_> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        let mark = self.mark;
        self.sorter.add(
            |key| {
                row.iter().for_each(|value| push_key(value, false, key));
                // Different documents may stand at one place of the order.
                let documents = row.iter().filter(|value| matches!(value, Value::Json(_)));
                documents.for_each(|value| group_key(value, key));
                key.push(mark);
                Ok(())
            },
            |out| {
                if mark == LEFT {
                    row.iter().for_each(|value| put(value, out));
                }
                Ok(())
            },
        )?;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.sorter.is_full()
    }

    fn make_room<'a>(
        &'a mut self,
        executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(self.sorter.spill(executor.slice()))
    }
}

/// Rows that are equal, as far as they have been read.
#[derive(Default)]
struct Equal {
    right: u64,
    left: u64,
}

impl Equal {
    /// Whether the row of the left side that has just been counted is one of the result.
    fn keeps(&self, operation: SetOperation, all: bool) -> bool {
        match (operation, all) {
            (SetOperation::Intersect, true) => self.left <= self.right,
            (SetOperation::Intersect, false) => self.left == 1 && self.right > 0,
            (_, true) => self.left > self.right,
            (_, false) => self.left == 1 && self.right == 0,
        }
    }
}

impl<'e> Executor<'e> {
    /// Executes an EXCEPT or INTERSECT of two queries. Returns how many rows there were.
    pub(super) async fn set_operation<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        let state = self.state;
        let mut order_limit =
            OrderLimit::new(plan, state, false, false, !plan.order.is_empty(), self.limits(plan, target)?);
        let Some((all, right)) = plan.unions.first() else { return Ok(0) };
        if order_limit.is_done() {
            return Ok(0);
        }
        let mut sorter = RowSorter::new(state);
        self.first_part(plan, &mut Side { sorter: &mut sorter, mark: LEFT }).await?;
        if sorter.count() > 0 {
            self.select_into(right, &mut Side { sorter: &mut sorter, mark: RIGHT }).await?;
        }
        let mut rows = sorter.finish().await?;
        let mut before: Vec<u8> = Vec::new();
        let mut equal = Equal::default();
        while let Some((key, row)) = rows.next().await? {
            self.tick(1).await?;
            let Some((mark, values)) = key.split_last() else { continue };
            if values != before {
                before.clear();
                before.extend_from_slice(values);
                equal = Equal::default();
            }
            if *mark == RIGHT {
                equal.right += 1;
                continue;
            }
            equal.left += 1;
            if !equal.keeps(plan.operation, *all) {
                continue;
            }
            let mut part = Part::new(plan, self, &mut order_limit, target);
            part.take(take_all(row))?;
            let done = part.is_done();
            order_limit.make_room(self).await?;
            target.flush(self).await?;
            if done {
                break;
            }
        }
        order_limit.finish(self, target).await
    }
}
