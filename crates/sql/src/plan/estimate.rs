//! How many rows a path reads, and what that costs.
//!
//! Ranges of literals are looked up in the index: two descents say how many entries lie between two keys. For
//! values that are not known yet (columns of other tables, parameters) the mean number of rows for each key
//! is taken from the table's statistics, and for a range a share of the table that is a guess.
//!
//! A planner reads no pages. What it lacks (statistics, pages on the way to a range) it notes as
//! [`Wanted`], and its caller fetches that and has it plan again. So plans do not depend on what happened to
//! be in memory.

use std::sync::Arc;

use untorn::Table;
use untorn::engine::{KeyRange, ScanIndex};

use super::Planner;
use super::access_path::{Alternative, Path, PathChooser};
use crate::exec::keys::known_ranges;
use crate::expr::{Context, Expr};

/// More ranges than this are not looked up one by one: the mean of the index serves, too
/// (`eq_range_index_dive_limit`).
const DIVES_MAX: usize = 200;

/// Tables of fewer rows than this are read in any way.
pub(super) const ROWS_FEW: f64 = 50.0;
/// Of fewer than this, no range is so long that all rows were read instead.
pub(super) const ROWS_MANY: f64 = 1000.0;

/// Share of the rows that lie between two ends that are not known.
const BETWEEN_SHARE: f64 = 0.1111;
/// Share of the rows on one side of a value that is not known.
const BEYOND_SHARE: f64 = 0.3333;
/// Share of the rows that have a value that is not known, where no index tells.
pub(super) const EQUAL_SHARE: f64 = 0.1;

/// What reading an entry of a secondary index costs; a row of the clustered index in its order costs one.
const ENTRY_COST: f64 = 0.7;
/// What looking up the row of an entry costs.
const LOOK_UP_COST: f64 = 3.0;
/// What remembering a row costs that another index may give again.
const REMEMBER_COST: f64 = 0.2;
/// What finding the place of a range costs.
const DESCENT_COST: f64 = 2.0;

/// What a planner would have liked to know.
#[derive(Debug)]
pub enum Wanted {
    /// Statistics of a table.
    Statistics(Arc<Table>),
    /// The pages on the way to a range.
    Pages(Arc<Table>, ScanIndex, Box<KeyRange>),
}

impl Wanted {
    /// Fetches it; `false` when that did not succeed.
    pub async fn fetch(&self, database: &untorn::asynchronous::Database) -> bool {
        match self {
            Wanted::Statistics(table) => table.lacks_statistics() && database.fetch_statistics(table).await,
            Wanted::Pages(table, index, range) => database.estimate_range(table, *index, range).await.is_ok(),
        }
    }
}

/// What the values of a path are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Known,
    /// A parameter's, which the next run may have another of.
    OfParameters,
    Unknown,
}

fn values_of(expr: &Expr) -> Values {
    match expr {
        Expr::Literal(_) => Values::Known,
        Expr::Parameter(_) => Values::OfParameters,
        _ => Values::Unknown,
    }
}

fn values_of_path(path: &Path) -> Values {
    let mut all = Values::Known;
    let mut note = |expr: &Expr| match values_of(expr) {
        Values::Known => {}
        Values::OfParameters if all == Values::Known => all = Values::OfParameters,
        Values::OfParameters => {}
        Values::Unknown => all = Values::Unknown,
    };
    for one in path.equal.iter().chain(&path.last) {
        match one {
            Alternative::Equal(expr) => note(expr),
            Alternative::Range { lower, upper } => lower.iter().chain(upper).for_each(|(expr, _)| note(expr)),
            Alternative::Like { pattern, escape } => {
                note(pattern);
                note(escape);
            }
            Alternative::Row(values) => values.iter().for_each(&mut note),
            Alternative::AnyOf(_) | Alternative::Null => {}
        }
    }
    all
}

/// Whether how many rows a path reads depends on its values more than keys differ from each other.
pub(super) fn has_ranges(path: &Path) -> bool {
    path.last.iter().any(|one| matches!(one, Alternative::Range { .. } | Alternative::Like { .. }))
}

/// Whether how many rows a path reads is another number for other parameters.
pub(super) fn depends_on_parameters(path: &Path) -> bool {
    has_ranges(path) && values_of_path(path) == Values::OfParameters
}

impl Planner<'_> {
    /// Notes that statistics of a table would be of use.
    pub(super) fn want_statistics(&self, table: &Arc<Table>) {
        let mut wanted = self.wanted.borrow_mut();
        let is_noted = |one: &Wanted| matches!(one, Wanted::Statistics(noted) if Arc::ptr_eq(noted, table));
        if table.lacks_statistics() && !wanted.iter().any(is_noted) {
            wanted.push(Wanted::Statistics(table.clone()));
        }
    }

    /// What it would have liked to know.
    pub fn take_wanted(&self) -> Vec<Wanted> {
        self.wanted.take()
    }
}

/// Rows of a table, one at least.
pub(super) fn rows_of(table: &Table) -> f64 {
    table.row_count_estimate().max(1) as f64
}

/// How many different values a column has, if an index begins with it.
pub(super) fn distinct_of(table: &Table, column: u16) -> Option<f64> {
    let begins = |key: &untorn::schema::KeyDef| {
        key.parts.first().is_some_and(|part| part.column == column && part.prefix_chars.is_none())
    };
    let secondary = table.def.secondary_keys().iter().position(begins).map(ScanIndex::Secondary);
    let clustered = table.def.clustered_key().filter(|key| begins(key)).map(|_| ScanIndex::Clustered);
    let known = table.index_statistics(clustered.or(secondary)?)?;
    known.distinct.first().map(|distinct| (*distinct).max(1) as f64)
}

impl PathChooser<'_> {
    /// Notes in a path how many rows one pass over it reads.
    pub(super) fn estimate(&self, path: &mut Path) {
        if !path.merged.is_empty() {
            // Its parts were estimated when they were chosen.
            return;
        }
        let all = rows_of(self.table);
        path.rows = if path.unique {
            1.0
        } else if path.is_full_scan() {
            all
        } else {
            self.looked_up(path).unwrap_or_else(|| self.by_statistics(path, all)).clamp(1.0, all.max(1.0))
        };
    }

    /// The same for a path with ranges, if the index tells.
    pub(super) fn estimate_by_index(&self, path: &mut Path) -> bool {
        let rows = self.looked_up(path);
        path.rows = rows.map_or(path.rows, |rows| rows.clamp(1.0, rows_of(self.table)));
        rows.is_some()
    }

    /// By the index itself.
    fn looked_up(&self, path: &Path) -> Option<f64> {
        if values_of_path(path) != Values::Known {
            self.planner
                .guessed_of_parameters
                .set(self.planner.guessed_of_parameters.get() || depends_on_parameters(path));
            return None;
        }
        let state = self.planner.state;
        let ranges = known_ranges(path, &self.table.def.columns, &Context::constant(state, &[]), DIVES_MAX)?;
        let mut rows = 0;
        for range in ranges {
            match self.table.estimate_in_memory(path.index, &range) {
                Some(found) => rows += found,
                None => {
                    let wanted = Wanted::Pages(self.table.clone(), path.index, Box::new(range));
                    self.planner.wanted.borrow_mut().push(wanted);
                    return None;
                }
            }
        }
        Some(rows as f64)
    }

    /// By the mean number of rows of a key.
    fn by_statistics(&self, path: &Path, all: f64) -> f64 {
        let known = self.table.index_statistics(path.index);
        if known.is_none() && self.planner.explains.get() {
            self.planner.want_statistics(self.table);
        }
        // Rows for each value of this many columns.
        let of_key = |columns: usize| {
            let distinct = columns.checked_sub(1).and_then(|at| known.as_ref()?.distinct.get(at));
            match (columns, distinct) {
                (0, _) => all,
                (_, Some(distinct)) => all / (*distinct).max(1) as f64,
                (_, None) => all * EQUAL_SHARE.powi(columns as i32),
            }
        };
        let equal = path.equal.len();
        let of = |one: &Alternative| match one {
            Alternative::Equal(_) | Alternative::Null => of_key(equal + 1),
            Alternative::AnyOf(constants) => constants.values.len() as f64 * of_key(equal + 1),
            Alternative::Row(values) => of_key(equal + values.len()),
            Alternative::Range { lower: Some(_), upper: Some(_) } => of_key(equal) * BETWEEN_SHARE,
            Alternative::Range { lower: None, upper: None } => of_key(equal),
            Alternative::Range { .. } => of_key(equal) * BEYOND_SHARE,
            Alternative::Like { .. } => of_key(equal) * BETWEEN_SHARE,
        };
        if path.last.is_empty() { of_key(equal) } else { path.last.iter().map(of).sum() }
    }
}

/// What one pass over a path costs; its rows are estimated. The unit is one row read in order.
pub fn cost(path: &Path) -> f64 {
    if !path.merged.is_empty() {
        return path.merged.iter().map(cost).sum::<f64>() + REMEMBER_COST * path.rows;
    }
    let each = match path.index {
        ScanIndex::Clustered => 1.0,
        ScanIndex::Secondary(_) if path.covering => ENTRY_COST,
        ScanIndex::Secondary(_) => ENTRY_COST + LOOK_UP_COST,
    };
    let descents = path.last.len().max(1) as f64;
    descents * DESCENT_COST + path.rows * each
}
