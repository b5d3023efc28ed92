//! What an expression may cost.
//!
//! Steps and predicates may look at all nodes for each node, and do so within each other, so a short path can
//! ask for more work than anybody waits for. An expression is evaluated in one go, beside other sessions of
//! the thread: besides a kill and the statement's time, which all work looks for, a call ends at a bound.

use std::cell::Cell;

use crate::context::SqlContext;
use crate::errors;
use crate::result::SqlError;
use crate::value::Value;

/// Bytes of work of one call: about a second.
const WORK_MAX: usize = 1 << 30;

/// Counts the work of one call.
pub(super) struct Meter<'c> {
    /// Of the statement.
    pub(super) state: &'c SqlContext,
    left: Cell<usize>,
}

impl<'c> Meter<'c> {
    pub(super) fn new(state: &'c SqlContext) -> Self {
        Meter { state, left: Cell::new(WORK_MAX) }
    }

    /// Announces work on this number of bytes.
    ///
    /// # Errors
    /// 1105 at the bound; the statement has to stop.
    #[inline]
    pub(super) fn work(&self, bytes: usize) -> Result<(), SqlError> {
        let Some(left) = self.left.get().checked_sub(bytes) else { return Err(too_much()) };
        self.left.set(left);
        self.state.work(bytes)
    }

    /// [`Meter::work`] of a text.
    ///
    /// # Errors
    /// Those of [`Meter::work`].
    pub(super) fn work_on(&self, value: &Value<'_>) -> Result<(), SqlError> {
        match value {
            Value::Text(text, _) | Value::Json(text) => self.work(text.len()),
            _ => Ok(()),
        }
    }
}

#[cold]
fn too_much() -> SqlError {
    errors::error(errors::UNKNOWN_ERROR, &[&"XPATH error: the expression takes too much work"])
}
