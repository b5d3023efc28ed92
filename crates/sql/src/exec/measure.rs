//! What EXPLAIN ANALYZE measures: for each step of a query how often it ran, how many rows it read, how many
//! of these met its conditions, and how long it took.
//!
//! A step gives its rows to the next one while it is still reading. Between its beginning and its end all
//! later steps work too, so a clock that ran all the time would count their work as its own. Therefore the
//! clock of a step is stopped while a row is with the later steps: a step's time is its own work alone. What
//! EXPLAIN ANALYZE shows of a join is the sum of the times of its steps so far. A query of one table is
//! measured as a join of one step.
//!
//! Where nothing is measured, a step costs the test of a flag, and no clock is read.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use crate::context::SqlContext;
use crate::plan::SelectPlan;

/// What is measured of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The step of this number, alone.
    Step(usize),
    /// The join of the steps up to this one: the sum of their times, and the rows that it gave.
    Joined(usize),
    /// Reading the table of this source for a hash join, before the join begins: into memory, or sorted onto
    /// disk.
    Hashed(usize),
    /// Conditions with correlated subqueries: only the rows that met them are counted, no time.
    Applied,
    /// GROUP BY: the groups, and of these the ones that HAVING kept.
    Groups,
    /// A whole SELECT: all the time that passes.
    Whole,
    /// All SELECTs of a UNION, EXCEPT or INTERSECT together.
    United,
}

/// What was measured of a part of a query. A part may run several times, a join's second step for each row of
/// the first: these are the sums over all its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Runs.
    pub loops: u64,
    /// Rows that a step read, and that any other part gave.
    pub rows: u64,
    /// Of the rows the ones that met the step's conditions.
    pub kept: u64,
    /// From the beginning of a run to its first row that was kept, or to its end if none was.
    pub first: Duration,
    /// From the beginning of a run to its end.
    pub total: Duration,
}

impl Measured {
    /// One row.
    pub(super) const ROW: Measured =
        Measured { loops: 0, rows: 1, kept: 1, first: Duration::ZERO, total: Duration::ZERO };

    /// The mean of `first` over the runs.
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
    /// By the plan's address, which does not change while it runs.
    found: RefCell<HashMap<(*const SelectPlan, Part), Measured>>,
}

impl Measures {
    /// Measures from now on; what was measured before is forgotten.
    pub fn begin(&self) {
        self.found.take();
        self.on.set(true);
    }

    /// Measures no more. Returns what was measured.
    pub fn end(&self) -> HashMap<(*const SelectPlan, Part), Measured> {
        self.on.set(false);
        self.found.take()
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.get()
    }

    /// Adds a run, or several, to what was measured of a part.
    pub(super) fn note(&self, plan: &SelectPlan, part: Part, measured: &Measured) {
        self.found.borrow_mut().entry((std::ptr::from_ref(plan), part)).or_default().add(measured);
    }
}

/// The clock and the counters of one step. Where nothing is measured it holds nothing and does nothing.
///
/// A run is `begin`, then `start` and `stop` around each stretch of the step's own work, with `rows` between
/// them, and `end`; another `begin` ends the run before it, too.
pub(super) struct Meter(Option<Running>);

#[derive(Default)]
struct Running {
    /// The sums over the runs that have ended; loops and rows with those of the present one.
    found: Measured,
    /// The step's own time in the present run, up to the last `stop`.
    own: Duration,
    /// The present run has had a row that was kept, or has ended.
    has_row: bool,
    /// When the clock was started, while it runs.
    since: Option<Duration>,
}

impl Meter {
    pub(super) fn new(state: &SqlContext) -> Meter {
        Meter(state.measures.is_on().then(Running::default))
    }

    /// A run of the step begins; its clock stands still until it is started.
    pub(super) fn begin(&mut self) {
        let Some(running) = &mut self.0 else { return };
        running.end();
        running.found.loops += 1;
        (running.own, running.has_row) = (Duration::ZERO, false);
    }

    /// Starts the clock: the step works.
    #[inline]
    pub(super) fn start(&mut self, state: &SqlContext) {
        let Some(running) = &mut self.0 else { return };
        running.since = Some(state.database.environment().now());
    }

    /// Stops the clock, if it runs: others work.
    #[inline]
    pub(super) fn stop(&mut self, state: &SqlContext) {
        let Some(running) = &mut self.0 else { return };
        if let Some(since) = running.since.take() {
            running.own += state.database.environment().now().saturating_sub(since);
        }
    }

    /// The step has read rows, and `kept` of them meet its conditions. To be called with the clock stopped:
    /// the time until now is that of the first row.
    #[inline]
    pub(super) fn rows(&mut self, read: u64, kept: u64) {
        let Some(running) = &mut self.0 else { return };
        running.found.rows += read;
        running.found.kept += kept;
        if kept > 0 && !std::mem::replace(&mut running.has_row, true) {
            running.found.first += running.own;
        }
    }

    /// Ends the run. Returns the sums over all runs so far, `None` where nothing is measured. The step may
    /// begin another run.
    pub(super) fn end(&mut self, state: &SqlContext) -> Option<Measured> {
        self.stop(state);
        let running = self.0.as_mut()?;
        running.end();
        Some(running.found)
    }
}

impl Running {
    /// Adds the present run's times to the sums; does nothing when it has been added already.
    fn end(&mut self) {
        if self.found.loops > 0 && !self.has_row {
            self.found.first += self.own;
        }
        self.has_row = true;
        self.found.total += std::mem::take(&mut self.own);
    }
}

/// The clock of a whole query, which is never stopped.
pub(super) struct WholeMeter {
    begun: Option<Duration>,
}

impl WholeMeter {
    pub(super) fn begin(state: &SqlContext) -> WholeMeter {
        WholeMeter { begun: state.measures.is_on().then(|| state.database.environment().now()) }
    }

    /// The time since its beginning; `None` where nothing is measured.
    pub(super) fn so_far(&self, state: &SqlContext) -> Option<Duration> {
        Some(state.database.environment().now().saturating_sub(self.begun?))
    }

    /// Notes the end of a SELECT that gave this many rows, the first of them after `first`.
    pub(super) fn end(&self, plan: &SelectPlan, state: &SqlContext, rows: u64, first: Option<Duration>) {
        self.end_of(plan, Part::Whole, state, rows, first);
    }

    /// Notes the end of all SELECTs of a UNION or its like.
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
