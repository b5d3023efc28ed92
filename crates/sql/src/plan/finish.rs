//! Finishing a bound SELECT: the order of its join, and the path to each source.
//!
//! Its derived tables come first, with the conditions that they can test (`push.rs`). Constant conditions are
//! set aside. Then the source whose path gains most (`access_path.rs`) is read next, until all are, each with
//! the conditions that can be tested there. At last the sort goes if an index gives the order
//! (`index_order.rs`).

use super::access_path::{Choice, Path, PathChooser};
use super::index_order::use_index_end;
use super::join_order::{Join, wants_hash};
use super::order_by_members::order_by_members;
use super::outer_join::{Conditions, OuterJoin};
use super::source::{Source, SourceKind};
use super::{Condition, Planner, SelectPlan, Step, apply};
use crate::ast::HintKind;
use crate::expr::rollup::GroupKeys;
use crate::expr::{Expr, NODE_BYTES};
use crate::result::SqlError;

/// Up to this many sources, the first is chosen by how many others an index leads to from it.
const LOOKED_AHEAD_MAX: usize = 8;

/// What a bound query lacks to be finished.
#[derive(Debug)]
pub struct Pending {
    /// Conditions on the rows.
    pub(super) conjuncts: Vec<Condition>,
    /// Outer joins.
    pub(super) outer: Vec<OuterJoin>,
    /// Index hints of each source.
    pub(super) hints: Vec<Vec<(HintKind, Vec<String>)>>,
    /// The sources are read in the order in which they are written.
    pub(super) straight: bool,
}

/// Sources of one FROM, a bit for each: there are 61 at most.
pub(super) type Sources = u64;

pub(super) fn only(source: u16) -> Sources {
    1 << source
}

impl Planner<'_> {
    /// Sources that an expression reads, a bit for each.
    fn read_sources(&self, expr: &Expr) -> Sources {
        let mut found = 0;
        expr.visit(&mut |inner| {
            if let Expr::Column { source, .. } = inner {
                found |= only(*source);
            }
            self.walk()
        });
        found
    }

    /// Whether it has another value for each row, whatever columns it reads.
    fn is_volatile(&self, expr: &Expr) -> bool {
        !expr.visit(&mut |inner| !inner.is_volatile() && self.walk())
    }

    /// Adds the columns that an expression reads to those needed of each source.
    pub(super) fn note_columns(&self, expr: &Expr, needed: &mut [Vec<u16>]) {
        expr.visit(&mut |inner| {
            if let Expr::Column { source, column } = inner
                && let Some(columns) = needed.get_mut(usize::from(*source))
                && !columns.contains(column)
            {
                columns.push(*column);
            }
            self.walk()
        });
    }

    /// Finishes a query, if that has not been done.
    pub(super) fn finish_pending(&self, plan: &mut SelectPlan) -> Result<(), SqlError> {
        match plan.pending.take() {
            Some(pending) => self.finish(plan, *pending),
            None => Ok(()),
        }
    }

    /// Chooses the order of the join and the paths.
    pub(super) fn finish(&self, plan: &mut SelectPlan, pending: Pending) -> Result<(), SqlError> {
        let Pending { conjuncts, outer, hints, straight } = pending;
        self.finish_derived(plan, &conjuncts, &outer)?;
        plan.needed = self.needed_columns(plan, &conjuncts, &outer);
        let conjuncts = apply::take_conditions(plan, conjuncts);
        let all = plan.sources.iter().enumerate().fold(0, |all, (source, _)| all | only(source as u16));
        let read = conjuncts.into_iter().map(|condition| {
            let volatile = self.is_volatile(&condition);
            (if volatile { all } else { self.read_sources(&condition) }, condition)
        });
        let (constant, conjuncts): (Vec<_>, Vec<_>) = read.partition(|(sources, _)| *sources == 0);
        plan.constant_conditions = constant.into_iter().map(|(_, condition)| condition).collect();
        let waiting = |join: OuterJoin| {
            let on = join.on.into_iter().map(|condition| {
                let of_subqueries = apply::following(&condition, &plan.subqueries).into_iter();
                let captures =
                    of_subqueries.flat_map(|number| &plan.subqueries[usize::from(number)].captures);
                let read = captures.fold(0, |read, capture| read | self.read_sources(capture));
                (read | self.read_sources(&condition), condition)
            });
            (join.first, join.last, on.collect())
        };
        let fixed_order = straight || !outer.is_empty();
        let mut conditions =
            Conditions { of_where: conjuncts, of_joins: outer.into_iter().map(waiting).collect() };
        self.outcome()?;
        for source in self.order_of_sources(plan, &conditions, &hints, fixed_order)? {
            self.add_step(plan, source, &mut conditions, &hints[usize::from(source)])?;
        }
        self.use_index_order(plan);
        use_index_end(plan);
        self.keep_keys(plan)?;
        let aggregates = plan.grouping.as_ref().map_or(&[][..], |grouping| &grouping.aggregates);
        plan.order.iter_mut().for_each(|(expr, _)| order_by_members(expr, &plan.sources, aggregates));
        if let Some(grouping) = plan.grouping.as_mut().filter(|grouping| grouping.rollup) {
            // Its groups come in the order of their keys.
            grouping.keys.iter_mut().for_each(|key| order_by_members(key, &plan.sources, &[]));
        }
        plain_output(plan);
        plan.late_columns = late_columns(plan);
        plan.computed_once = computed_once(plan);
        Ok(())
    }

    /// Where GROUP BY expressions that have another value each time are shown stands what groups keep of
    /// them, which follows their aggregates.
    fn keep_keys(&self, plan: &mut SelectPlan) -> Result<(), SqlError> {
        let Some(grouping) = plan.grouping.as_mut().filter(|grouping| !grouping.rollup) else {
            return Ok(());
        };
        let volatile = grouping.keys.iter().zip(0..).filter(|(key, _)| key.has_volatile());
        grouping.kept = volatile.map(|(_, at)| at).collect();
        if grouping.kept.is_empty() {
            return Ok(());
        }
        let aggregates = u16::try_from(grouping.aggregates.len()).unwrap_or(u16::MAX);
        let groups = GroupKeys::new(self, &grouping.keys, false).keeping(&grouping.kept, aggregates);
        let orders = plan.order.iter_mut().map(|(expr, _)| expr);
        plan.items.iter_mut().chain(&mut grouping.having).chain(orders).try_for_each(|expr| groups.mark(expr))
    }

    /// The order in which the sources are read.
    fn order_of_sources(
        &self,
        plan: &SelectPlan,
        conditions: &Conditions,
        hints: &[Vec<(HintKind, Vec<String>)>],
        fixed: bool,
    ) -> Result<Vec<u16>, SqlError> {
        let count = plan.sources.len();
        // The conditions that say something of a source, to compare what reading it next would gain.
        let mut about: Vec<Vec<Condition>> = vec![Vec::new(); count];
        let mut about_sources: Vec<Vec<Sources>> = vec![Vec::new(); count];
        if count > 1 {
            for (sources, condition) in &conditions.of_where {
                for source in (0..count).filter(|source| sources & only(*source as u16) != 0) {
                    about[source].push(condition.clone());
                    about_sources[source].push(*sources);
                }
                self.work(NODE_BYTES)?;
            }
        }
        let read_by = |source: &Source| source.reads().fold(0, |read, expr| read | self.read_sources(expr));
        let reads: Vec<Sources> = plan.sources.iter().map(read_by).collect();
        self.outcome()?;
        let mut order: Vec<u16> = Vec::with_capacity(count);
        while order.len() < count {
            let mut left: Vec<u16> = (0..count as u16).filter(|source| !order.contains(source)).collect();
            // What reads others comes behind them.
            let known = order.iter().fold(0, |known, source| known | only(*source));
            left.retain(|source| reads[usize::from(*source)] & !known == 0);
            order.push(match &left[..] {
                [only] => *only,
                _ if fixed => left[0],
                _ => self.next_source(plan, &left, &about, &order, hints)?,
            });
        }
        if fixed || count < 2 {
            return Ok(order);
        }
        let (about, about_sources, reads) = (&about[..], &about_sources[..], &reads[..]);
        let cheaper = self.cheaper_order(&Join { plan, about, about_sources, reads, hints }, &order)?;
        Ok(cheaper.unwrap_or(order))
    }

    /// Reads a source next.
    fn add_step(
        &self,
        plan: &mut SelectPlan,
        source: u16,
        conditions: &mut Conditions,
        hints: &[(HintKind, Vec<String>)],
    ) -> Result<(), SqlError> {
        let bound: Vec<u16> = plan.steps.iter().map(|step| step.source as u16).collect();
        let known = bound.iter().fold(only(source), |known, s| known | only(*s));
        let (taken, mut inner_ends) = conditions.take(source.into(), known);
        let (applied, all_conditions) = apply::parted(taken, &plan.subqueries);
        for end in &mut inner_ends {
            (end.applied, end.after) = apply::parted(std::mem::take(&mut end.after), &plan.subqueries);
        }
        let path = self.choose(plan, source, &all_conditions, &bound, hints)?;
        let filter = without(&all_conditions, &path.consumed);
        let joins = &mut conditions.of_joins.iter();
        let inner_last = joins.find(|(first, ..)| *first == usize::from(source)).map(|(_, last, _)| *last);
        let is_table = plan.sources[usize::from(source)].engine_table().is_some();
        let by_hash = is_table && wants_hash(&path, &all_conditions, source);
        let source = source.into();
        plan.steps.push(Step {
            source,
            path,
            by_hash,
            filter,
            all_conditions,
            applied,
            inner_last,
            inner_ends,
        });
        Ok(())
    }

    /// The source to read next: the one whose path gains most; among those without one that of which the most
    /// others can be looked up, and then the smallest.
    fn next_source(
        &self,
        plan: &SelectPlan,
        left: &[u16],
        about: &[Vec<Condition>],
        bound: &[u16],
        hints: &[Vec<(HintKind, Vec<String>)>],
    ) -> Result<u16, SqlError> {
        let rank = |source: u16, bound: &[u16]| -> Result<u32, SqlError> {
            let at = usize::from(source);
            Ok(self.choose(plan, source, &about[at], bound, &hints[at])?.rank())
        };
        let mut ranks = Vec::with_capacity(left.len());
        for source in left {
            ranks.push(rank(*source, bound)?);
        }
        let best = ranks.iter().max().copied().unwrap_or(0);
        let tied = left.iter().zip(&ranks).filter(|(_, rank)| **rank == best).map(|(source, _)| *source);
        let tied: smallvec::SmallVec<[u16; 8]> = tied.collect();
        if best > 0 || left.len() > LOOKED_AHEAD_MAX {
            return Ok(tied[0]);
        }
        let mut chosen = (tied[0], 0, u64::MAX);
        for source in tied {
            let then: smallvec::SmallVec<[u16; 16]> = bound.iter().copied().chain([source]).collect();
            let mut reached = 0;
            for other in left.iter().filter(|other| **other != source) {
                reached += u32::from(rank(*other, &then)? > 0);
            }
            let table = plan.sources[usize::from(source)].engine_table();
            let rows = table.map_or(u64::MAX, |table| table.row_count_estimate());
            if reached > chosen.1 || (reached == chosen.1 && rows < chosen.2) {
                chosen = (source, reached, rows);
            }
        }
        Ok(chosen.0)
    }

    pub(super) fn choose(
        &self,
        plan: &SelectPlan,
        source: u16,
        conjuncts: &[Condition],
        bound: &[u16],
        hints: &[(HintKind, Vec<String>)],
    ) -> Result<Path, SqlError> {
        let at = usize::from(source);
        let expressions = self.key_expressions(&plan.sources[at], source);
        let path = match plan.sources[at].engine_table() {
            Some(table) => PathChooser {
                planner: self,
                table,
                source,
                conjuncts,
                bound,
                needed: &plan.needed[at],
                expressions: &expressions,
                hints,
                choice: Choice {
                    estimates: plan.sources.len() > 1,
                    by_cost: plan.limit.is_none() || plan.order.is_empty(),
                    may_scan: plan.sources.len() == 1
                        && plan.limit.is_none()
                        && plan.order.is_empty()
                        && plan.locking.is_none()
                        && plan.grouping.is_none(),
                    whole_rows: false,
                },
            }
            .best(),
            None => Path::everything(),
        };
        self.outcome()?;
        Ok(path)
    }

    fn needed_columns(
        &self,
        plan: &SelectPlan,
        conjuncts: &[Condition],
        outer: &[OuterJoin],
    ) -> Vec<Vec<u16>> {
        let mut needed = vec![Vec::new(); plan.sources.len()];
        let mut note = |expr: &Expr| self.note_columns(expr, &mut needed);
        conjuncts.iter().for_each(|expr| note(expr));
        outer.iter().flat_map(|join| &join.on).for_each(|expr| note(expr));
        plan.subqueries.iter().flat_map(|subquery| &subquery.captures).for_each(&mut note);
        plan.sources.iter().flat_map(Source::reads).for_each(&mut note);
        plan.items.iter().for_each(&mut note);
        plan.order.iter().for_each(|(expr, _)| note(expr));
        if let Some(grouping) = &plan.grouping {
            grouping.keys.iter().for_each(&mut note);
            grouping.having.iter().for_each(&mut note);
            for aggregate in &grouping.aggregates {
                aggregate.arguments.iter().for_each(&mut note);
                aggregate.order.iter().for_each(|(expr, _)| note(expr));
            }
        }
        needed
    }
}

/// Those that the path does not express.
pub(super) fn without(list: &[Condition], consumed: &[usize]) -> Vec<Condition> {
    list.iter().enumerate().filter(|(at, _)| !consumed.contains(at)).map(|(_, expr)| expr.clone()).collect()
}

/// Notes when the output is nothing but columns of one stored table.
fn plain_output(plan: &mut SelectPlan) {
    let stored = plan.sources.len() == 1 && plan.sources[0].engine_table().is_some();
    if !stored
        || plan.grouping.is_some()
        || !plan.unions.is_empty()
        || !plan.into.is_client()
        || plan.apply.is_some()
    {
        return;
    }
    let columns: Option<Vec<u16>> = plan
        .items
        .iter()
        .map(|item| match item {
            Expr::Column { column, .. } => Some(*column),
            _ => None,
        })
        .collect();
    plan.plain_columns = columns;
}

/// The columns that the items read, where MySQL sorts before it computes them: `@n := @n + 1` numbers the
/// rows as they are sent, and those that a LIMIT leaves out are not numbered. It does so for rows of one
/// table, beside which there may be derived ones of constants, unless the order reads what is assigned or is
/// random.
fn late_columns(plan: &SelectPlan) -> Option<Vec<(u16, u16)>> {
    let assigns = |expr: &Expr| !expr.visit(&mut |part| !matches!(part, Expr::Assign(..)));
    let of_constants = |source: &&Source| match &source.kind {
        SourceKind::Derived(plan) => plan.sources.is_empty() && plan.unions.is_empty(),
        _ => false,
    };
    let several = plan.sources.iter().filter(|source| !of_constants(source)).count() > 1;
    let sent_at_once = plan.order.is_empty()
        || several
        || plan.distinct
        || plan.grouping.is_some()
        || plan.windowed.is_some()
        || plan.recursion.is_some()
        || plan.apply.is_some()
        || !plan.unions.is_empty();
    if sent_at_once
        || !plan.items.iter().any(assigns)
        || plan.order.iter().any(|(expr, _)| expr.has_volatile())
    {
        return None;
    }
    let mut columns = Vec::new();
    for item in &plan.items {
        item.visit(&mut |part| {
            if let Expr::Column { source, column } = part
                && !columns.contains(&(*source, *column))
            {
                columns.push((*source, *column));
            }
            true
        });
    }
    Some(columns)
}

/// The items of the order, where a value would be another one if it were computed again: what is sorted and
/// told apart is what is sent.
fn computed_once(plan: &SelectPlan) -> Option<Vec<Option<u16>>> {
    let reads_items = plan.distinct || !plan.order.is_empty();
    if !reads_items || plan.late_columns.is_some() || !plan.items.iter().any(Expr::has_volatile) {
        return None;
    }
    let item_of = |(expr, _): &(Expr, bool)| {
        let at = plan.items.iter().position(|item| item.unshared() == expr.unshared())?;
        u16::try_from(at).ok().filter(|_| expr.has_volatile())
    };
    Some(plan.order.iter().map(item_of).collect())
}
