//! What EXPLAIN ANALYZE measures of a query: of each step how often it began, how many rows it read and how
//! many of them it kept, and how long that took.
//!
//! Rows are pushed: a step hands its rows to the next one while it reads. So its time is what passes between
//! its beginning and its end without what its rows' takers need, and of a join it is the sum of its steps. A
//! measured query of one stored table is a join of one step. A statement that is not measured pays for it
//! with a test of a flag for each step.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use crate::context::SqlContext;
use crate::plan::SelectPlan;

/// What is measured of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The step of this number.
    Step(usize),
    /// The rows up to and with this step, joined.
    Joined(usize),
    /// Reading the table of this source for a hash join, into memory or sorted onto disk.
    Hashed(usize),
    /// The rows that met the conditions with correlated subqueries.
    Applied,
    /// The groups that HAVING kept.
    Groups,
    /// A whole SELECT.
    Whole,
    /// Several, from UNION and its like.
    United,
}

/// The measures of a part of a query: sums of all times that it ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// How often it began.
    pub loops: u64,
    /// Rows that it read, or gave.
    pub rows: u64,
    /// Of these the ones that met the conditions.
    pub kept: u64,
    /// Until its first row.
    pub first: Duration,
    /// Until its end.
    pub total: Duration,
}

impl Measured {
    /// One row.
    pub(super) const ROW: Measured =
        Measured { loops: 0, rows: 1, kept: 1, first: Duration::ZERO, total: Duration::ZERO };

    /// The mean time until a first row.
    pub(super) fn first_of_each(&self) -> Duration {
        let loops = u32::try_from(self.loops).unwrap_or(u32::MAX);
        self.first.checked_div(loops).unwrap_or_default()
    }

    fn add(&mut self, other: &Measured) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.kept += other.kept;
        self.first += other.first;
        self.total += other.total;
    }
}

/// The measures of the statement that runs.
#[derive(Default)]
pub struct Measures {
    on: Cell<bool>,
    /// By where the plan is: it stays there while it runs.
    found: RefCell<HashMap<(*const SelectPlan, Part), Measured>>,
}

impl Measures {
    /// From now on everything is measured.
    pub fn begin(&self) {
        self.found.take();
        self.on.set(true);
    }

    /// The end of that; what was found.
    pub fn end(&self) -> HashMap<(*const SelectPlan, Part), Measured> {
        self.on.set(false);
        self.found.take()
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.get()
    }

    pub(super) fn note(&self, plan: &SelectPlan, part: Part, measured: &Measured) {
        self.found.borrow_mut().entry((std::ptr::from_ref(plan), part)).or_default().add(measured);
    }
}

/// Measures one step while it runs. Where nothing is measured it holds nothing and does nothing, and the
/// clock is not read.
pub(super) struct Meter(Option<Running>);

/// The measures of a step that runs.
#[derive(Default)]
struct Running {
    /// What it found so far.
    found: Measured,
    /// The time it has needed since it began last.
    own: Duration,
    /// It has had a row since it began last.
    has_row: bool,
    /// When the time that is being counted began.
    since: Option<Duration>,
}

impl Meter {
    pub(super) fn new(state: &SqlContext) -> Meter {
        Meter(state.measures.is_on().then(Running::default))
    }

    /// The step begins.
    pub(super) fn begin(&mut self) {
        let Some(running) = &mut self.0 else { return };
        running.end();
        running.found.loops += 1;
        (running.own, running.has_row) = (Duration::ZERO, false);
    }

    /// The time that passes is the step's.
    #[inline]
    pub(super) fn start(&mut self, state: &SqlContext) {
        let Some(running) = &mut self.0 else { return };
        running.since = Some(state.database.environment().now());
    }

    /// It is somebody else's.
    #[inline]
    pub(super) fn stop(&mut self, state: &SqlContext) {
        let Some(running) = &mut self.0 else { return };
        if let Some(since) = running.since.take() {
            running.own += state.database.environment().now().saturating_sub(since);
        }
    }

    /// The step has rows; `kept` of them meet the conditions.
    #[inline]
    pub(super) fn rows(&mut self, read: u64, kept: u64) {
        let Some(running) = &mut self.0 else { return };
        running.found.rows += read;
        running.found.kept += kept;
        if kept > 0 && !std::mem::replace(&mut running.has_row, true) {
            running.found.first += running.own;
        }
    }

    /// The step is over; returns what it found, and it may begin again. `None` where nothing is measured.
    pub(super) fn end(&mut self, state: &SqlContext) -> Option<Measured> {
        self.stop(state);
        let running = self.0.as_mut()?;
        running.end();
        Some(running.found)
    }
}

impl Running {
    fn end(&mut self) {
        if self.found.loops > 0 && !self.has_row {
            self.found.first += self.own;
        }
        self.has_row = true;
        self.found.total += std::mem::take(&mut self.own);
    }
}

/// Measures a query while it runs.
pub(super) struct WholeMeter {
    begun: Option<Duration>,
}

impl WholeMeter {
    pub(super) fn begin(state: &SqlContext) -> WholeMeter {
        WholeMeter { begun: state.measures.is_on().then(|| state.database.environment().now()) }
    }

    /// How long it has run.
    pub(super) fn so_far(&self, state: &SqlContext) -> Option<Duration> {
        Some(state.database.environment().now().saturating_sub(self.begun?))
    }

    /// It is over, with this many rows, the first of which came after `first`.
    pub(super) fn end(&self, plan: &SelectPlan, state: &SqlContext, rows: u64, first: Option<Duration>) {
        self.end_of(plan, Part::Whole, state, rows, first);
    }

    /// Several SELECTs are.
    pub(super) fn end_united(&self, plan: &SelectPlan, state: &SqlContext, rows: u64) {
        self.end_of(plan, Part::United, state, rows, None);
    }

    fn end_of(&self, plan: &SelectPlan, part: Part, state: &SqlContext, rows: u64, first: Option<Duration>) {
        if let Some(total) = self.so_far(state) {
            let first = first.unwrap_or(total);
            state.measures.note(plan, part, &Measured { loops: 1, rows, kept: rows, first, total });
        }
    }
}
