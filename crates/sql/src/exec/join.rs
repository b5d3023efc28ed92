//! Joins: nested loops in the order of the plan, depth first.
//!
//! Each step but the last has a cursor and a few rows that it has copied from its pages (a page cannot
//! stay latched while the steps behind it read); the last step streams into the consumer. So a join keeps
//! a batch of rows for each step, whatever the sizes of the tables, and one that wants a single row
//! (LIMIT 1) reads a single path: batches begin with one row and double. A derived table or view that is
//! not the first, and a stored table that no index leads into, is looked up by what its columns are equal
//! to (`hash_lookup.rs`). One that reads the tables before it (LATERAL, JSON_TABLE) is made again when
//! they have other values.

use untorn::engine::OwnedKey;
use untorn::types::Collation;

use super::Flow;
use super::apply::Applied;
use super::cursor::Cursor;
use super::hash_lookup::{Found, Gathered, HashLookup};
use super::measure::{Measured, Meter, Part};
use super::multi_table_change::pack_key;
use super::select::{Consumer, all_true};
use super::spilled_join::{SpilledJoin, may_spill};
use super::{Executor, KeptRows, Target, are_identical};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::{Context, Expr, RowView};
use crate::failure::Failure;
use crate::handler_counts::Handled;
use crate::memory::{self, Charge};
use crate::plan::json_table::JsonTable;
use crate::plan::outer_join::InnerSide;
use crate::plan::source::{Source, SourceKind};
use crate::plan::{Condition, SelectPlan, Step};
use crate::result::{ResultSink, SqlError};
use crate::value::Value;

/// Most rows that a step copies at a time.
const BATCH_ROWS_MAX: usize = 128;
/// Units of work that a row of a view counts for: some twenty texts are made for it.
const VIEW_ROW_UNITS: u32 = 4;
/// Most bytes that a step copies at a time.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// A row of a source.
pub(super) type Row = Vec<Value<'static>>;
/// One row of each source.
pub(super) type Views<'v> = smallvec::SmallVec<[RowView<'v>; 8]>;

/// What a step reads.
pub(super) enum Input<'p, 'e> {
    /// A table of the engine; none before its first ranges are known.
    Table(Option<Box<Cursor<'e>>>),
    /// A derived table or a view.
    Memory(Box<Memory<'p, 'e>>),
}

/// What the rows of a step are made of again and again.
#[derive(Clone, Copy)]
enum MadeOf<'p> {
    /// A LATERAL derived table.
    Query(&'p SelectPlan),
    /// JSON_TABLE.
    Document(&'p JsonTable),
}

impl MadeOf<'_> {
    /// The values that they are made of.
    fn captured(self, cx: &Context<'_>) -> Result<Vec<Value<'static>>, SqlError> {
        let held = cx.state.held();
        let captured = match self {
            MadeOf::Query(plan) => Executor::captured(plan, cx)?,
            MadeOf::Document(table) => vec![table.document.eval(cx)?.into_owned()],
        };
        cx.state.release_to(held);
        Ok(captured)
    }
}

/// Rows in memory.
pub(super) struct Memory<'p, 'e> {
    rows: KeptRows<'e>,
    /// The next row.
    at: Option<usize>,
    /// The step has begun once.
    begun: bool,
    /// By their keys; made when the step begins for the second time: once, reading all is no more work.
    lookup: Option<Option<HashLookup<'p, 'e>>>,
    /// Only rows of one key are read.
    chained: bool,
    /// What its rows are made of, if they depend on the rows that the steps before are at.
    made_of: Option<MadeOf<'p>>,
    /// Of which values of those they are.
    of: Option<Vec<Value<'static>>>,
}

impl<'p, 'e> Memory<'p, 'e> {
    fn new(rows: KeptRows<'e>) -> Self {
        Memory { rows, at: Some(0), begun: false, lookup: None, chained: false, made_of: None, of: None }
    }

    /// Rows that are all looked for.
    pub(super) fn of_one_key(rows: KeptRows<'e>) -> Self {
        Memory { begun: true, lookup: Some(None), ..Memory::new(rows) }
    }

    /// Rows that come when the step begins.
    fn lateral(made_of: MadeOf<'p>, state: &'e SqlContext) -> Self {
        Memory { made_of: Some(made_of), ..Memory::new(KeptRows::new(state, 0)) }
    }

    /// The next row.
    fn take(&mut self) -> Option<&Row> {
        let at = self.at?;
        self.at = match (&self.lookup, self.chained) {
            (Some(Some(lookup)), true) => lookup.next(at),
            _ => Some(at + 1),
        };
        self.rows.get(at)
    }

    /// Begins for the rows that the steps before are at.
    fn begin(&mut self, cx: &Context<'_>) -> Result<(), SqlError> {
        let found = match &mut self.lookup {
            Some(Some(lookup)) => lookup.find(cx)?,
            _ => Found::Unknown,
        };
        (self.at, self.chained) = match found {
            Found::Unknown => (Some(0), false),
            Found::Chain(first) => (first, true),
        };
        Ok(())
    }
}

/// A step of the join and where it is.
pub(super) struct Level<'p, 'e> {
    pub(super) step: &'p Step,
    pub(super) input: Input<'p, 'e>,
    /// Conditions that the step's ranges do not express.
    pub(super) conditions: &'p [Condition],
    /// Rows copied and not yet taken, the next one last.
    pub(super) batch: Vec<Row>,
    batch_rows: usize,
    charge: Charge<'e>,
    /// For its ranges.
    range_charge: Charge<'e>,
    /// The row that the steps behind see; `None` for the missing side of an outer join.
    pub(super) current: Option<Row>,
    /// Of the first step of an outer join's inner side: rows of that side have matched.
    pub(super) matched: bool,
    /// The input has no more rows.
    pub(super) ended: bool,
    /// A hash join would not do.
    pub(super) stays_a_loop: bool,
    /// Both sides of a hash join, where the table does not fit into memory.
    pub(super) spilled: Option<Box<SpilledJoin<'e>>>,
    /// What it reads, for EXPLAIN ANALYZE.
    pub(super) meter: Meter,
    /// Rows of the outer side for which it had none.
    pub(super) missing: u64,
}

/// What a step has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Row,
    /// The inner side of an outer join that begins here has no match: its rows are NULLs.
    Missing,
    Nothing,
}

/// Whether a row meets the conditions of its step, outer joins included, but for what needs correlated
/// subqueries: then the outer joins wait for that. `reached` becomes the number of the inner sides ending
/// here that have a match, if more do by this row.
fn test(
    step: &Step,
    conditions: &[Condition],
    base: &[RowView<'_>],
    view: RowView<'_>,
    cx: &Context<'_>,
    reached: &mut usize,
) -> Result<bool, Failure> {
    let mut rows: Views<'_> = base.iter().copied().collect();
    rows[step.source] = view;
    let cx = Context { rows: &rows, ..*cx };
    if !all_true(conditions, &cx)? {
        return Ok(false);
    }
    for (at, end) in step.inner_ends.iter().enumerate().take_while(|_| !step.is_applied()) {
        *reached = (*reached).max(at + 1);
        if !all_true(&end.after, &cx)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Notes that inner sides ending at step `last` have a match, that number of them behind the first `skipped`.
fn note_matches(levels: &mut [Level<'_, '_>], last: usize, skipped: usize, reached: usize) {
    for end in levels[last].step.inner_ends.iter().skip(skipped).take(reached) {
        levels[end.first].matched = true;
    }
}

/// Leaves out the steps of an inner side without a match, which begins at `first`: their rows are NULLs, and
/// they have no others. Returns the last of them.
pub(super) fn skip_inner_side(levels: &mut [Level<'_, '_>], first: usize) -> usize {
    let last = levels[first].step.inner_last.unwrap_or(first);
    for level in &mut levels[first + 1..=last] {
        level.current = None;
        level.batch.clear();
        level.ended = true;
        level.matched = true;
    }
    last
}

/// The rows that the steps before `depth` are at.
pub(super) fn views<'v>(levels: &'v [Level<'_, '_>], depth: usize, sources: usize) -> Views<'v> {
    let mut views: Views<'v> = smallvec::smallvec![RowView::Nulls; sources];
    for level in &levels[..depth] {
        if let Some(values) = &level.current {
            views[level.step.source] = RowView::Values(values);
        }
    }
    views
}

/// Notes what the steps have read, and how many rows they had together, if that is measured.
fn note_measures(plan: &SelectPlan, levels: &mut [Level<'_, '_>], state: &SqlContext) {
    let mut joined = Measured { loops: 1, ..Measured::default() };
    for (at, level) in levels.iter_mut().enumerate() {
        let Some(found) = level.meter.end(state) else { return };
        state.measures.note(plan, Part::Step(at), &found);
        joined.first += found.first_of_each();
        joined.total += found.total;
        joined.rows = found.kept + level.missing;
        state.measures.note(plan, Part::Joined(at), &joined);
    }
}

/// Whether a source is made of the rows of those before it.
fn depends(source: &Source) -> bool {
    source.reads().any(|expr| !expr.visit(&mut |inner| !matches!(inner, Expr::Column { .. })))
}

pub(super) fn copy(plan: &SelectPlan, source: usize, view: RowView<'_>, cx: &Context<'_>) -> Row {
    let mut values = vec![Value::Null; plan.sources[source].columns.len()];
    for column in &plan.needed[source] {
        values[usize::from(*column)] = view.column(*column, cx.state.time_zone_offset()).into_owned();
    }
    values
}

/// A clustered key as a value.
fn packed_key(key: &dyn Fn(&mut OwnedKey)) -> Value<'static> {
    let (mut owned, mut packed) = (OwnedKey::default(), Vec::new());
    key(&mut owned);
    pack_key(&owned, &mut packed);
    Value::Text(packed.into(), Collation::Binary)
}

impl<'e> Executor<'e> {
    /// Runs the join of a plan.
    pub async fn join<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let mut levels = self.levels(plan).await?;
        let result = self.join_levels(plan, &mut levels, consumer, cx, applied, target).await;
        note_measures(plan, &mut levels, self.state);
        result
    }

    async fn join_levels<'p, S: ResultSink>(
        &mut self,
        plan: &'p SelectPlan,
        levels: &mut [Level<'p, 'e>],
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let Some(last) = levels.len().checked_sub(1) else { return Ok(()) };
        let mut examined = 0u64;
        let examined_max = self.state.settings().max_join_size;
        let mut depth = 0;
        let mut opens = true;
        // What the rows behind the last step need is not there while its page is latched.
        let streams = applied.is_none() && plan.changed.is_empty();
        loop {
            if std::mem::take(&mut opens) {
                self.open(plan, levels, depth, cx, applied).await?;
            }
            if streams && depth == last {
                if self.last_step(plan, levels, consumer, cx, target).await? == Flow::Stop {
                    return Ok(());
                }
            } else if let next @ (Next::Row | Next::Missing) =
                self.next_row(plan, levels, depth, cx, applied).await?
            {
                if next == Next::Missing {
                    levels[depth].missing += 1;
                    depth = skip_inner_side(levels, depth);
                }
                examined += 1;
                if examined > examined_max {
                    return Err(errors::error(errors::TOO_BIG_SELECT, &[]).into());
                }
                if depth < last {
                    depth += 1;
                    opens = true;
                    continue;
                }
                let views = views(levels, levels.len(), plan.sources.len());
                let flow = match applied {
                    Some(applied) => self.applied_row(&views, applied, consumer, cx, target).await?,
                    None => {
                        let flow = consumer.row(&views, target)?;
                        consumer.make_room(self, target).await?;
                        flow
                    }
                };
                if flow == Flow::Stop {
                    return Ok(());
                }
                continue;
            }
            match depth.checked_sub(1) {
                Some(before) => depth = before,
                None => return Ok(()),
            }
        }
    }

    /// The steps, with what has to be computed before the first row.
    async fn levels<'p>(&mut self, plan: &'p SelectPlan) -> Result<Vec<Level<'p, 'e>>, Failure> {
        let state = self.state;
        let mut levels = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let input = match &plan.sources[step.source].kind {
                SourceKind::Derived(inner) if inner.follows_rows() => {
                    Input::Memory(Box::new(Memory::lateral(MadeOf::Query(inner), state)))
                }
                SourceKind::JsonTable(table) if depends(&plan.sources[step.source]) => {
                    Input::Memory(Box::new(Memory::lateral(MadeOf::Document(table), state)))
                }
                SourceKind::JsonTable(table) => {
                    let made_of = MadeOf::Document(table);
                    let document = made_of.captured(&self.context(&[]))?;
                    Input::Memory(Box::new(Memory::new(self.made(made_of, &document).await?)))
                }
                SourceKind::Derived(inner) => {
                    self.state.handled.add(Handled::TemporaryTables, 1);
                    let rows = match &inner.recursion {
                        Some(recursion) => self.recursive_rows(inner, recursion).await?,
                        None if !inner.captures.is_empty() => {
                            let captured = MadeOf::Query(inner).captured(&self.context(&[]))?;
                            self.rows_for(inner, &captured).await?
                        }
                        None => self.rows(inner).await?,
                    };
                    Input::Memory(Box::new(Memory::new(rows)))
                }
                SourceKind::Recursion(number) => {
                    Input::Memory(Box::new(Memory::new(self.working_rows(*number).await?)))
                }
                SourceKind::View(view) => {
                    let mut rows = KeptRows::new(state, usize::MAX);
                    for row in view.rows(state) {
                        super::RowTaker::take(&mut rows, row)?;
                        self.tick(VIEW_ROW_UNITS).await?;
                    }
                    Input::Memory(Box::new(Memory::new(rows)))
                }
                SourceKind::Given(given) => {
                    let mut rows = KeptRows::new(state, usize::MAX);
                    for row in given.iter() {
                        super::RowTaker::take(&mut rows, row.clone())?;
                        self.tick(1).await?;
                    }
                    Input::Memory(Box::new(Memory::new(rows)))
                }
                SourceKind::Table(_) => Input::Table(None),
                SourceKind::Definition(_) => Input::Memory(Box::new(Memory::new(KeptRows::new(state, 0)))),
            };
            levels.push(Level {
                step,
                input,
                conditions: &step.all_conditions,
                batch: Vec::new(),
                batch_rows: 1,
                charge: state.memory.charge(),
                range_charge: state.memory.charge(),
                current: None,
                matched: false,
                ended: false,
                stays_a_loop: false,
                spilled: None,
                meter: Meter::new(state),
                missing: 0,
            });
        }
        Ok(levels)
    }

    /// Begins a step for the rows that the steps before it are at.
    pub(super) async fn open<'p>(
        &mut self,
        plan: &'p SelectPlan,
        levels: &mut [Level<'p, 'e>],
        depth: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<(), Failure> {
        let step = levels[depth].step;
        let mut range_charge = self.state.memory.charge();
        levels[depth].meter.begin();
        levels[depth].meter.start(self.state);
        self.begin_hash(plan, levels, depth, cx, applied).await?;
        let stored = matches!(levels[depth].input, Input::Table(_));
        let ranges = match plan.sources[step.source].engine_table().filter(|_| stored) {
            Some(table) => {
                let base = views(levels, depth, plan.sources.len());
                let outer = Context { rows: &base, ..*cx };
                let columns = &table.def.columns;
                Some((table, self.ranges(&step.path, columns, &outer, &mut range_charge).await?))
            }
            None => None,
        };
        if depth > 0 && matches!(levels[depth].input, Input::Memory(_)) {
            self.open_keyed(plan, levels, depth, cx).await?;
        }
        let level = &mut levels[depth];
        level.range_charge = range_charge;
        level.current = None;
        level.matched = false;
        level.ended = false;
        level.batch.clear();
        match (&mut level.input, ranges) {
            (Input::Table(cursor), Some((table, Some(ranges)))) => {
                level.conditions = if ranges.exact { &step.filter } else { &step.all_conditions };
                match cursor {
                    Some(cursor) => cursor.restart(ranges.ranges),
                    None => {
                        let (mode, needed) = (self.source_mode(plan, step.source), &plan.needed[step.source]);
                        *cursor = Some(Box::new(Cursor::new(
                            table,
                            &step.path,
                            ranges.ranges,
                            mode,
                            needed,
                            self.state,
                        )));
                    }
                }
            }
            // No row can match.
            (Input::Table(_), _) => level.ended = true,
            (Input::Memory(memory), _) if depth == 0 => memory.at = Some(0),
            (Input::Memory(_), _) => {}
        }
        level.meter.stop(self.state);
        Ok(())
    }

    /// Reads the table of a step into memory when that begins for the second time, if it is to be looked up:
    /// once, reading all is no more work.
    async fn begin_hash<'p>(
        &mut self,
        plan: &'p SelectPlan,
        levels: &mut [Level<'p, 'e>],
        depth: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<(), Failure> {
        let level = &levels[depth];
        let is_decided = level.stays_a_loop || level.spilled.is_some();
        if is_decided || !level.step.by_hash || !matches!(level.input, Input::Table(Some(_))) {
            return Ok(());
        }
        match self.table_in_memory(plan, level.step, cx).await? {
            Gathered::Rows(rows) => {
                levels[depth].input = Input::Memory(Box::new(Memory { begun: true, ..Memory::new(rows) }));
            }
            Gathered::TooMany if may_spill(levels, depth) => {
                levels[depth].stays_a_loop = !self.spill_join(plan, levels, depth, cx, applied).await?;
            }
            Gathered::TooMany | Gathered::No => levels[depth].stays_a_loop = true,
        }
        levels[depth].conditions = &levels[depth].step.all_conditions;
        Ok(())
    }

    /// Begins a step in memory for the rows that the steps before it are at.
    async fn open_keyed<'p>(
        &mut self,
        plan: &'p SelectPlan,
        levels: &mut [Level<'p, 'e>],
        depth: usize,
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        let (before, rest) = levels.split_at_mut(depth);
        let Level { step, input: Input::Memory(memory), .. } = &mut rest[0] else { return Ok(()) };
        if let Some(made_of) = memory.made_of {
            let base = views(before, depth, plan.sources.len());
            let cx = Context { rows: &base, ..*cx };
            let captured = made_of.captured(&cx)?;
            drop(base);
            if !memory.of.as_ref().is_some_and(|of| are_identical(of, &captured)) {
                memory.rows = self.made(made_of, &captured).await?;
                memory.of = Some(captured);
            }
            memory.at = Some(0);
            return Ok(());
        }
        if !std::mem::replace(&mut memory.begun, true) {
            return Ok(());
        }
        if memory.lookup.is_none() {
            memory.lookup = Some(self.hash_lookup(step, &memory.rows).await?);
        }
        let base = views(before, depth, plan.sources.len());
        memory.begin(&Context { rows: &base, ..*cx })?;
        Ok(())
    }

    /// The rows that are made of these values.
    async fn made(&mut self, made_of: MadeOf<'_>, of: &[Value<'static>]) -> Result<KeptRows<'e>, Failure> {
        match made_of {
            MadeOf::Query(plan) => self.rows_for(plan, of).await,
            MadeOf::Document(table) => self.rows_of_document(table, of.first().unwrap_or(&Value::Null)).await,
        }
    }

    /// Goes to the next row of a step before the last.
    pub(super) async fn next_row(
        &mut self,
        plan: &SelectPlan,
        levels: &mut [Level<'_, 'e>],
        depth: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<Next, Failure> {
        if levels.get(depth + 1).is_some_and(|next| next.spilled.is_some()) {
            let found = self.next_spilled(levels, depth + 1).await?;
            return Ok(if found { Next::Row } else { Next::Nothing });
        }
        loop {
            self.tick(1).await?;
            if let Some(row) = levels[depth].batch.pop() {
                levels[depth].current = Some(row);
                if levels[depth].step.is_applied()
                    && !self.matches(levels, depth, plan.sources.len(), cx, applied).await?
                {
                    continue;
                }
                return Ok(Next::Row);
            }
            if levels[depth].ended {
                let shown = self.missing_side(levels, depth, plan.sources.len(), cx, applied).await?;
                levels[depth].matched = true;
                levels[depth].current = None;
                return Ok(if shown { Next::Missing } else { Next::Nothing });
            }
            self.fill(plan, levels, depth, cx).await?;
        }
    }

    /// Whether the row that a step is at meets what needs correlated subqueries, and what follows the inner
    /// sides of outer joins that end there.
    async fn matches(
        &mut self,
        levels: &mut [Level<'_, 'e>],
        depth: usize,
        sources: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<bool, Failure> {
        let step = levels[depth].step;
        let (mut holds, mut reached) = (true, 0);
        let base = views(levels, depth + 1, sources);
        let cx = Context { rows: &base, ..*cx };
        if let Some(applied) = applied {
            holds = applied.meets(self, &step.applied, &cx).await?;
        }
        holds = holds && self.ended_sides(&step.inner_ends, &cx, applied, &mut reached).await?;
        drop(base);
        note_matches(levels, depth, 0, reached);
        Ok(holds)
    }

    /// Whether what follows the inner sides of outer joins holds, from one to the next; how many are
    /// `reached`.
    async fn ended_sides(
        &mut self,
        ends: &[InnerSide],
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
        reached: &mut usize,
    ) -> Result<bool, Failure> {
        for (at, end) in ends.iter().enumerate() {
            *reached = (*reached).max(at + 1);
            if !all_true(&end.after, cx)? {
                return Ok(false);
            }
            if let Some(applied) = applied
                && !applied.meets(self, &end.applied, cx).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the NULLs of the inner side that begins at step `depth` are to be shown.
    async fn missing_side(
        &mut self,
        levels: &mut [Level<'_, 'e>],
        depth: usize,
        sources: usize,
        cx: &Context<'_>,
        applied: &mut Option<Applied<'_, 'e>>,
    ) -> Result<bool, Failure> {
        let level = &levels[depth];
        let Some(last) = level.step.inner_last.filter(|_| !level.matched) else { return Ok(false) };
        let ends: &[InnerSide] = &levels[last].step.inner_ends;
        let at = ends.iter().position(|end| end.first == depth).unwrap_or(0);
        let mut reached = 0;
        let base = views(levels, depth, sources);
        let cx = Context { rows: &base, ..*cx };
        let shown = self.ended_sides(&ends[at..], &cx, applied, &mut reached).await?;
        drop(base);
        note_matches(levels, last, at, reached);
        Ok(shown)
    }

    /// Copies the next rows of a step that meet its conditions.
    async fn fill(
        &mut self,
        plan: &SelectPlan,
        levels: &mut [Level<'_, 'e>],
        depth: usize,
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        let (before, rest) = levels.split_at_mut(depth);
        let base = views(before, depth, plan.sources.len());
        let Level { step, input, conditions, batch, batch_rows, charge, ended, meter, .. } = &mut rest[0];
        let (mut reached, mut read) = (0, 0);
        meter.start(self.state);
        let (step, wanted) = (*step, *batch_rows);
        *batch_rows = (2 * wanted).min(BATCH_ROWS_MAX);
        let mut bytes = 0;
        let changed = plan.changed.contains(&(step.source as u16));
        let mut keep = |view: RowView<'_>, key: &dyn Fn(&mut OwnedKey)| -> Result<Flow, Failure> {
            read += 1;
            if !test(step, conditions, &base, view, cx, &mut reached)? {
                return Ok(Flow::Skip);
            }
            let mut row = copy(plan, step.source, view, cx);
            if changed {
                row.push(packed_key(key));
            }
            bytes += memory::row_weight(&row);
            batch.push(row);
            let enough = batch.len() >= wanted || bytes >= BATCH_BYTES_MAX;
            Ok(if enough { Flow::Pause } else { Flow::Next })
        };
        match input {
            Input::Table(Some(cursor)) => {
                *ended = !cursor.run_keyed(self.transaction.engine_mut(), &mut keep).await?;
            }
            Input::Table(None) => *ended = true,
            Input::Memory(memory) => loop {
                let Some(row) = memory.take() else {
                    *ended = true;
                    break;
                };
                if keep(RowView::Values(row), &|_| ())? == Flow::Pause {
                    break;
                }
                self.tick(1).await?;
            },
        }
        if !charge.reach(bytes) {
            return Err(memory::refused().into());
        }
        batch.reverse();
        meter.stop(self.state);
        meter.rows(read, batch.len() as u64);
        drop(base);
        note_matches(levels, depth, 0, reached);
        Ok(())
    }

    /// Streams the rows of the last step into the consumer.
    async fn last_step<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        levels: &mut [Level<'_, 'e>],
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        let depth = levels.len() - 1;
        let (before, rest) = levels.split_at_mut(depth);
        let base = views(before, depth, plan.sources.len());
        let Level { step, input, conditions, ended, meter, .. } = &mut rest[0];
        let (step, state) = (*step, self.state);
        let (mut stopped, mut reached) = (false, 0);
        while !*ended {
            self.tick(1).await?;
            meter.start(state);
            let mut take = |view: RowView<'_>| -> Result<Flow, Failure> {
                let kept = test(step, conditions, &base, view, cx, &mut reached)?;
                meter.stop(state);
                meter.rows(1, u64::from(kept));
                let mut flow = Flow::Skip;
                if kept {
                    let mut rows: Views<'_> = base.iter().copied().collect();
                    rows[step.source] = view;
                    flow = consumer.row(&rows, target)?;
                    stopped |= flow == Flow::Stop;
                }
                meter.start(state);
                Ok(flow)
            };
            match input {
                Input::Table(Some(cursor)) => {
                    *ended = !cursor.run(self.transaction.engine_mut(), &mut |view, _| take(view)).await?;
                }
                Input::Table(None) => *ended = true,
                Input::Memory(memory) => loop {
                    let Some(row) = memory.take() else {
                        *ended = true;
                        break;
                    };
                    if matches!(take(RowView::Values(row))?, Flow::Pause | Flow::Stop) {
                        break;
                    }
                    self.tick(1).await?;
                },
            }
            meter.stop(state);
            if stopped {
                return Ok(Flow::Stop);
            }
            consumer.make_room(self, target).await?;
        }
        drop(base);
        note_matches(levels, depth, 0, reached);
        if self.missing_side(levels, depth, plan.sources.len(), cx, &mut None).await? {
            levels[depth].missing += 1;
            let base = views(levels, depth, plan.sources.len());
            let flow = consumer.row(&base, target)?;
            consumer.make_room(self, target).await?;
            return Ok(flow);
        }
        Ok(Flow::Next)
    }
}
