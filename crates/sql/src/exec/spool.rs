//! A queue of rows between two halves of a statement, on disk where it is long: INSERT … SELECT reads
//! everything before it inserts the first row. (An UPDATE that moves rows gathers them in a [`RowSorter`] of
//! its own.)

use std::future::Future;
use std::pin::Pin;

use super::sort::RowSorter;
use super::spilled_values::put;
use super::{Executor, RowTaker};
use crate::context::SqlContext;
use crate::failure::Failure;
use crate::value::Value;

/// See the module's text: a sorter in which all keys are equal keeps the order.
pub struct Spool<'a>(pub RowSorter<'a>);

impl<'a> Spool<'a> {
    /// An empty one.
    pub fn new(state: &'a SqlContext) -> Spool<'a> {
        Spool(RowSorter::new(state))
    }
}

impl RowTaker for Spool<'_> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        self.0.add(
            |_| Ok(()),
            |out| {
                row.iter().for_each(|value| put(value, out));
                Ok(())
            },
        )?;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn make_room<'a>(
        &'a mut self,
        executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(self.0.spill(executor.slice()))
    }
}
