//! What evaluating expressions costs: time and memory of values that no buffer of the statement holds.
//!
//! An expression is evaluated in one go, so it can neither give way nor wait. It says what it works on
//! instead: [`SqlContext::work`] counts the bytes towards the context's time slice; the scan or join gives
//! way after the row if the slice is used up. Every 64 KiB it looks whether the statement is to stop. Texts
//! of some length are charged to the account while they live ([`SqlContext::hold`]): a function gives back
//! its arguments when it has its result, and a row everything when it is done ([`SqlContext::release_to`]).
//! What a statement that failed still held goes back at its end.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use untorn::engine::TimeSlice;

use super::context::SqlContext;
use super::memory::refused;
use crate::errors;
use crate::result::SqlError;
use crate::value::Value;

/// Bytes of work that count for a unit of the slice.
const BYTES_PER_UNIT: usize = 1024;
/// Bytes of work that are told to the slice at a time.
const BYTES_TOLD: usize = 4 * BYTES_PER_UNIT;
/// Bytes of work between looks for a kill.
const BYTES_PER_LOOK: usize = 64 << 10;
/// Texts from this length on are charged.
const BYTES_HELD_MIN: usize = 4 << 10;

/// See the module's text.
pub struct Evaluation {
    slice: RefCell<Arc<TimeSlice>>,
    /// Not yet told to the slice.
    untold: Cell<usize>,
    /// Worked since the last look for a kill.
    unlooked: Cell<usize>,
    /// Charged.
    held: Cell<usize>,
    /// Put out for a row and not yet charged.
    gathered: Cell<usize>,
    /// When the statement has had its time.
    deadline: Cell<Option<Duration>>,
}

impl Evaluation {
    /// Nothing evaluated yet; work is counted to this slice.
    pub fn new(slice: Arc<TimeSlice>) -> Evaluation {
        Evaluation {
            slice: RefCell::new(slice),
            untold: Cell::new(0),
            unlooked: Cell::new(0),
            held: Cell::new(0),
            gathered: Cell::new(0),
            deadline: Cell::new(None),
        }
    }

    /// Counts to another slice from now on.
    pub fn set_slice(&self, slice: &Arc<TimeSlice>) {
        *self.slice.borrow_mut() = slice.clone();
    }

    /// When the statement has had its time, by the environment's clock.
    pub fn set_deadline(&self, deadline: Option<Duration>) {
        self.deadline.set(deadline);
    }
}

impl SqlContext {
    /// Announces work on this number of bytes: an error when the statement has to stop.
    #[inline]
    pub fn work(&self, bytes: usize) -> Result<(), SqlError> {
        let untold = self.evaluation.untold.get().saturating_add(bytes);
        self.evaluation.untold.set(untold);
        if untold < BYTES_TOLD { Ok(()) } else { self.tell_work(untold) }
    }

    /// [`SqlContext::work`] of a text.
    #[inline]
    pub fn work_on(&self, value: &Value<'_>) -> Result<(), SqlError> {
        match value {
            Value::Text(text, _) | Value::Json(text) => self.work(text.len()),
            _ => Ok(()),
        }
    }

    /// Whether what was worked on has been enough for the slice.
    pub fn slice_is_over(&self) -> bool {
        self.evaluation.slice.borrow().spend(0)
    }

    #[cold]
    fn tell_work(&self, bytes: usize) -> Result<(), SqlError> {
        let evaluation = &self.evaluation;
        evaluation.untold.set(0);
        let units = u32::try_from(bytes / BYTES_PER_UNIT).unwrap_or(u32::MAX);
        evaluation.slice.borrow().announce(units);
        let unlooked = evaluation.unlooked.get().saturating_add(bytes);
        evaluation.unlooked.set(unlooked);
        if unlooked < BYTES_PER_LOOK {
            return Ok(());
        }
        evaluation.unlooked.set(0);
        self.check_killed()?;
        if evaluation.deadline.get().is_some_and(|deadline| self.database.environment().now() >= deadline) {
            self.timed_out.set(true);
            return Err(errors::error(errors::QUERY_TIMEOUT, &[]));
        }
        Ok(())
    }

    /// Bytes held so far, to be given to [`SqlContext::release_to`].
    #[inline]
    pub fn held(&self) -> usize {
        self.evaluation.held.get()
    }

    /// Charges a text that is made: error 1041 when the memory is not available.
    #[inline]
    pub fn hold(&self, bytes: usize) -> Result<(), SqlError> {
        if bytes < BYTES_HELD_MIN { Ok(()) } else { self.hold_long(bytes) }
    }

    #[cold]
    fn hold_long(&self, bytes: usize) -> Result<(), SqlError> {
        if !self.memory.add(bytes as u64) {
            return Err(refused());
        }
        self.evaluation.held.set(self.held() + bytes);
        Ok(())
    }

    /// Charges what a row has been given: it stays until the row is done, and may be copied once more on its
    /// way.
    #[inline]
    pub fn gather(&self, value: &Value<'_>) -> Result<(), SqlError> {
        let bytes = match value {
            Value::Text(text, _) | Value::Json(text) => text.len(),
            _ => 0,
        };
        self.gather_bytes(bytes)
    }

    /// [`SqlContext::gather`] of this number of bytes.
    #[inline]
    fn gather_bytes(&self, bytes: usize) -> Result<(), SqlError> {
        let gathered = self.evaluation.gathered.get() + bytes + size_of::<Value<'_>>();
        self.evaluation.gathered.set(gathered);
        if gathered < BYTES_PER_LOOK {
            return Ok(());
        }
        self.evaluation.gathered.set(0);
        self.hold(gathered.saturating_mul(2))
    }

    /// A row is done: gives back what has been charged since `held` bytes.
    #[inline]
    pub fn release_to(&self, held: usize) {
        self.evaluation.gathered.set(0);
        self.give_back_to(held);
    }

    /// Gives back what has been charged since `held` bytes: values that are gone.
    #[inline]
    pub fn give_back_to(&self, held: usize) {
        if self.held() > held {
            self.memory.subtract((self.held() - held) as u64);
            self.evaluation.held.set(held);
        }
    }

    /// A value has been computed from others that are gone: only it is charged in addition to what was
    /// before.
    #[inline]
    pub fn settle<'a>(&self, value: Value<'a>, held: usize) -> Result<Value<'a>, SqlError> {
        let bytes = match &value {
            Value::Text(Cow::Owned(text), _) | Value::Json(Cow::Owned(text)) => text.len(),
            _ => 0,
        };
        if bytes >= BYTES_HELD_MIN || self.held() != held {
            self.settle_long(bytes, held)?;
        }
        Ok(value)
    }

    #[cold]
    fn settle_long(&self, bytes: usize, held: usize) -> Result<(), SqlError> {
        let now = held + if bytes < BYTES_HELD_MIN { 0 } else { bytes };
        self.give_back_to(now);
        match now.checked_sub(self.held()) {
            Some(missing) if missing > 0 => self.hold_long(missing),
            _ => Ok(()),
        }
    }
}
