//! In which order the sources of a join are read, and which of them are read into memory for a hash join.
//!
//! The cost of an order is estimated step by step: how many rows the steps before hand on, what a pass over
//! the next source costs for each of them (`estimate.rs`), and how many rows come of it. Of up to seven
//! sources all orders are compared, over the sets of sources that are read first; of more, the next one is
//! always that which makes the least of the cost so far. STRAIGHT_JOIN and outer joins keep their order.
//!
//! The order that the paths alone suggest (`finish.rs`) stays where another is not clearly cheaper: what is
//! small is joined in any order, and estimates are rough.

use std::sync::Arc;

use untorn::Table;

use super::access_path::{Path, lookup_equalities};
use super::estimate::{self, EQUAL_SHARE, ROWS_FEW, distinct_of, rows_of};
use super::finish::{Sources, only};
use super::source::SourceKind;
use super::{Condition, Planner, SelectPlan, Step};
use crate::ast::{BinaryOperator, HintKind};
use crate::expr::Expr;
use crate::result::SqlError;

/// All orders of this many sources are compared.
const COMPARED_MAX: usize = 7;

/// A join that costs less is not worth another order.
const COST_SMALL: f64 = 200.0;

/// Another order must cost this share at most.
const CLEARLY_CHEAPER: f64 = 0.8;

/// Rows of what is neither a table nor made of tables.
const ROWS_OF_OTHERS: f64 = 100.0;

/// What a look into a hash table costs.
const PROBE_COST: f64 = 0.3;

/// What is known of the sources of a join.
pub(super) struct Join<'q> {
    pub(super) plan: &'q SelectPlan,
    /// The conditions that say something of each source, with all sources that they read.
    pub(super) about: &'q [Vec<Condition>],
    pub(super) about_sources: &'q [Vec<Sources>],
    /// What each source reads of others.
    pub(super) reads: &'q [Sources],
    pub(super) hints: &'q [Vec<(HintKind, Vec<String>)>],
}

/// Steps that were costed.
#[derive(Clone)]
struct Prefix {
    order: smallvec::SmallVec<[u16; 8]>,
    cost: f64,
    rows: f64,
}

/// Whether a hash join serves: no index does, and there is something to look for, of other sources or of the
/// query around.
pub(super) fn wants_hash(path: &Path, conditions: &[Condition], source: u16) -> bool {
    let of_others = |(_, wanted): &(u16, &Expr)| matches!(wanted, Expr::Column { .. } | Expr::Outer(_));
    // What a condition assigns shows how often it is tested.
    let assigns = |condition: &Condition| !condition.visit(&mut |inner| !matches!(inner, Expr::Assign(..)));
    path.is_full_scan()
        && lookup_equalities(conditions, source).iter().any(of_others)
        && !conditions.iter().any(assigns)
}

impl Planner<'_> {
    /// An order that is clearly cheaper than `usual`.
    pub(super) fn cheaper_order(&self, join: &Join<'_>, usual: &[u16]) -> Result<Option<Vec<u16>>, SqlError> {
        let tables = || join.plan.sources.iter().filter_map(|source| source.engine_table());
        // Nobody may have counted its rows since a crash.
        let uncounted = |table: &&Arc<Table>| table.row_count_estimate() == 0;
        tables().filter(uncounted).for_each(|table| self.want_statistics(table));
        self.guessed_of_parameters.set(false);
        let mut known = self.nothing_read();
        for source in usual {
            known = self.with(join, &known, *source)?;
        }
        if known.cost < COST_SMALL {
            return Ok(None);
        }
        if self.guessed_of_parameters.get() {
            // For other values another order may be better.
            self.value_dependent.set(true);
        }
        tables().for_each(|table| self.want_statistics(table));
        let best = if usual.len() <= COMPARED_MAX { self.best_of_all(join)? } else { self.greedy(join)? };
        Ok(best.filter(|best| best.cost < known.cost * CLEARLY_CHEAPER).map(|best| best.order.to_vec()))
    }

    fn nothing_read(&self) -> Prefix {
        Prefix { order: smallvec::SmallVec::new(), cost: 0.0, rows: 1.0 }
    }

    fn next_sources(&self, join: &Join<'_>, read: Sources) -> impl Iterator<Item = u16> {
        let may_come =
            |source: &u16| read & only(*source) == 0 && join.reads[usize::from(*source)] & !read == 0;
        let all = 0..join.plan.sources.len() as u16;
        all.filter(may_come).collect::<Vec<_>>().into_iter()
    }

    fn best_of_all(&self, join: &Join<'_>) -> Result<Option<Prefix>, SqlError> {
        let count = join.plan.sources.len();
        let mut best: Vec<Option<Prefix>> = vec![None; 1 << count];
        best[0] = Some(self.nothing_read());
        for read in 0..best.len() {
            let Some(before) = best[read].clone() else { continue };
            for source in self.next_sources(join, read as Sources) {
                let then = self.with(join, &before, source)?;
                let place = &mut best[read | 1 << source];
                if place.as_ref().is_none_or(|found| then.cost < found.cost) {
                    *place = Some(then);
                }
            }
        }
        Ok(best.pop().flatten())
    }

    fn greedy(&self, join: &Join<'_>) -> Result<Option<Prefix>, SqlError> {
        let mut so_far = self.nothing_read();
        while so_far.order.len() < join.plan.sources.len() {
            let read = so_far.order.iter().fold(0, |read, source| read | only(*source));
            let mut best: Option<Prefix> = None;
            for source in self.next_sources(join, read) {
                let then = self.with(join, &so_far, source)?;
                // What comes after pays for each row.
                let weight = |prefix: &Prefix| prefix.cost + prefix.rows;
                if best.as_ref().is_none_or(|found| weight(&then) < weight(found)) {
                    best = Some(then);
                }
            }
            let Some(best) = best else { return Ok(None) };
            so_far = best;
        }
        Ok(Some(so_far))
    }

    /// The same with one source more.
    fn with(&self, join: &Join<'_>, before: &Prefix, source: u16) -> Result<Prefix, SqlError> {
        let at = usize::from(source);
        let known = before.order.iter().fold(only(source), |known, source| known | only(*source));
        let path = self.choose(join.plan, source, &join.about[at], &before.order, &join.hints[at])?;
        let table = join.plan.sources[at].engine_table();
        let rows = match (table, &join.plan.sources[at].kind) {
            (Some(_), _) => path.rows.max(1.0),
            (None, SourceKind::Derived(plan)) => rows_of_query(plan),
            _ => ROWS_OF_OTHERS,
        };
        let mut share = 1.0;
        let mut looked_up = false;
        for (number, (condition, read)) in join.about[at].iter().zip(&join.about_sources[at]).enumerate() {
            if read & !known != 0 || path.consumed.contains(&number) {
                continue;
            }
            share *= self.share_of(join.plan, condition);
            looked_up |=
                matches!(&**condition, Expr::Compare(BinaryOperator::Equal, ..)) && read & !only(source) != 0;
        }
        let matches = rows * share;
        let by_hash = looked_up && path.is_full_scan();
        let mut cost = match table {
            _ if by_hash => rows + before.rows * (PROBE_COST + matches),
            Some(_) => before.rows * estimate::cost(&path),
            None => before.rows * rows,
        };
        if before.order.is_empty() {
            cost = table.map_or(rows, |_| estimate::cost(&path));
        }
        let mut order = before.order.clone();
        order.push(source);
        Ok(Prefix { order, cost: before.cost + cost, rows: (before.rows * matches).max(1.0) })
    }

    /// The share of rows that meet a condition.
    fn share_of(&self, plan: &SelectPlan, condition: &Expr) -> f64 {
        let distinct = |expr: &Expr| match expr {
            Expr::Column { source, column } => {
                let table = plan.sources.get(usize::from(*source))?.engine_table()?;
                // Of a column without an index, a tenth of its rows are different, say.
                Some(distinct_of(table, *column).unwrap_or_else(|| (rows_of(table) * EQUAL_SHARE).max(10.0)))
            }
            _ => None,
        };
        match condition {
            Expr::Compare(BinaryOperator::Equal, left, right) => match (distinct(left), distinct(right)) {
                (Some(left), Some(right)) => 1.0 / left.max(right),
                (Some(one), None) | (None, Some(one)) => (1.0 / one).max(1.0 / rows_of_all(plan)),
                (None, None) => EQUAL_SHARE,
            },
            Expr::Compare(BinaryOperator::NotEqual, ..) | Expr::Not(_) => 0.9,
            Expr::Compare(..) => 0.3333,
            Expr::Between { negated: false, .. } | Expr::Like { negated: false, .. } => 0.1111,
            Expr::InList { list, negated: false, .. } => (list.len() as f64 * EQUAL_SHARE).min(0.5),
            Expr::IsNull(_, false) => EQUAL_SHARE,
            Expr::Or(list) => list.iter().map(|one| self.share_of(plan, one)).sum::<f64>().min(1.0),
            Expr::And(list) => list.iter().map(|one| self.share_of(plan, one)).product(),
            _ => 0.5,
        }
    }
}

/// Rows of a derived table at most, as far as its tables tell.
fn rows_of_query(plan: &SelectPlan) -> f64 {
    if plan.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty()) {
        return 1.0;
    }
    let of_step = |step: &Step| match plan.sources[step.source].engine_table() {
        Some(_) if step.path.unique => 1.0,
        Some(_) if step.path.rows > 0.0 => step.path.rows,
        Some(table) => rows_of(table),
        None => ROWS_OF_OTHERS,
    };
    plan.steps.iter().map(of_step).product::<f64>().clamp(1.0, 1e9)
}

/// Rows of the largest table.
fn rows_of_all(plan: &SelectPlan) -> f64 {
    let tables = plan.sources.iter().filter_map(|source| source.engine_table());
    tables.map(|table| rows_of(table)).fold(ROWS_FEW, f64::max)
}
