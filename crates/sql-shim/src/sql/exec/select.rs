//! SELECT: a scan or join feeds a consumer, which filters nothing any more but groups, sorts, removes duplicates,
//! counts, and hands rows on.

use std::collections::{HashMap, HashSet};

use untorn::engine::FieldRef;

use super::cursor::{self, Cursor, Flow};
use super::sort::{Sorter, push_key};
use super::{Executor, Target, keys, output};
use crate::errors;
use crate::result::{ResultSink, SqlError};
use crate::session::failure::Failure;
use crate::session::state::SessionState;
use crate::sql::expr::functions::as_count;
use crate::sql::expr::{Context, Expr, RowView, SubqueryResult};
use crate::sql::plan::aggregate::Accumulator;
use crate::sql::plan::{Grouping, SelectPlan, Step};
use crate::sql::value::{Value, compare};

/// A group being gathered.
struct Group {
    /// The first row: needed columns of each source.
    row: Vec<Vec<Value<'static>>>,
    accumulators: Vec<Accumulator>,
}

/// What happens to the rows of a SELECT.
pub struct Consumer<'p> {
    plan: &'p SelectPlan,
    state: &'p SessionState,
    parameters: &'p [Value<'p>],
    subqueries: &'p [SubqueryResult],
    time_zone: i32,
    skip: u64,
    left: u64,
    sent: u64,
    distinct: Option<HashSet<Vec<u8>>>,
    /// Equal sort keys are equal rows: DISTINCT is done by the sort.
    distinct_by_sort: bool,
    sorter: Option<Sorter>,
    /// Sorted rows of plain columns: length and bytes of each field.
    packed: Vec<u8>,
    packed_rows: Vec<u32>,
    /// Sorted rows of computed values.
    computed: Vec<Vec<Value<'static>>>,
    groups: Vec<Group>,
    group_index: HashMap<Vec<u8>, usize>,
    key: Vec<u8>,
}

const PACKED_NULL: u32 = u32::MAX;

fn same_column(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Column { source: a, column: b }, Expr::Column { source: c, column: d }) => a == c && b == d,
        _ => false,
    }
}

impl<'p> Consumer<'p> {
    /// A consumer at the start.
    pub fn new(
        plan: &'p SelectPlan,
        state: &'p SessionState,
        parameters: &'p [Value<'p>],
        subqueries: &'p [SubqueryResult],
    ) -> Result<Self, SqlError> {
        let cx = Context { subqueries, ..Context::constant(state, parameters) };
        let (mut skip, mut left) = (0, state.settings().sql_select_limit);
        if let Some((count, offset)) = &plan.limit {
            left = as_count(&count.eval(&cx)?);
            if let Some(offset) = offset {
                skip = as_count(&offset.eval(&cx)?);
            }
        }
        let unions = !plan.unions.is_empty();
        let sorts = !plan.order.is_empty() && !unions;
        let covered = |item: &Expr| plan.order.iter().any(|(expr, _)| same_column(expr, item));
        let distinct_by_sort = plan.distinct && sorts && plan.items.iter().all(covered);
        let distinct = plan.distinct && !distinct_by_sort;
        Ok(Self {
            plan,
            state,
            parameters,
            subqueries,
            time_zone: state.time_zone_offset(),
            skip: if unions { 0 } else { skip },
            left: if unions { u64::MAX } else { left },
            sent: 0,
            distinct: distinct.then(HashSet::new),
            distinct_by_sort,
            sorter: sorts.then(Sorter::default),
            packed: Vec::new(),
            packed_rows: Vec::new(),
            computed: Vec::new(),
            groups: Vec::new(),
            group_index: HashMap::new(),
            key: Vec::new(),
        })
    }

    /// The context for a row.
    pub fn context<'c>(&'c self, rows: &'c [RowView<'c>]) -> Context<'c> {
        Context { rows, subqueries: self.subqueries, ..Context::constant(self.state, self.parameters) }
    }

    fn base(&self) -> Context<'p> {
        Context { subqueries: self.subqueries, ..Context::constant(self.state, self.parameters) }
    }

    /// Whether no further row can matter.
    pub fn is_full(&self) -> bool {
        self.left == 0 && self.sorter.is_none() && self.plan.grouping.is_none()
    }

    /// Takes a row that passed the conditions.
    pub fn row<S: ResultSink>(
        &mut self,
        rows: &[RowView<'_>],
        target: &mut Target<'_, S>,
    ) -> Result<Flow, Failure> {
        if let Some(grouping) = &self.plan.grouping {
            self.gather(grouping, rows)?;
            return Ok(Flow::Next);
        }
        let plan = self.plan;
        if self.sorter.is_some() {
            if self.distinct.is_some() && !self.is_new(rows)? {
                return Ok(Flow::Next);
            }
            self.keep(rows)?;
            return Ok(Flow::Next);
        }
        if self.left == 0 {
            return Ok(Flow::Stop);
        }
        if self.distinct.is_some() && !self.is_new(rows)? {
            return Ok(Flow::Next);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Flow::Next);
        }
        match (&plan.plain_columns, target, rows) {
            (Some(columns), Target::Sink(sink), [view]) => {
                sink.row_begin();
                self.plain(columns, view, *sink);
                sink.row_end();
            }
            (_, target, _) => {
                let cx = self.base();
                let cx = Context { rows, ..shorten(&cx) };
                emit(plan, &cx, target)?;
            }
        }
        self.left -= 1;
        self.sent += 1;
        Ok(if self.left == 0 { Flow::Stop } else { Flow::Next })
    }

    #[inline]
    fn plain<S: ResultSink>(&self, columns: &[u16], view: &RowView<'_>, sink: &mut S) {
        match view {
            RowView::Stored(row, defs) => {
                for column in columns {
                    let kind = &defs[usize::from(*column)].kind;
                    match row.column(*column) {
                        FieldRef::Inline(bytes) => output::stored(sink, Some(bytes), kind, self.time_zone),
                        _ => sink.null(),
                    }
                }
            }
            RowView::Fields(fields, defs) => {
                for column in columns {
                    let kind = &defs[usize::from(*column)].kind;
                    output::stored(sink, fields[usize::from(*column)].as_deref(), kind, self.time_zone);
                }
            }
            _ => columns.iter().for_each(|column| output::value(sink, &view.column(*column, self.time_zone))),
        }
    }

    fn is_new(&mut self, rows: &[RowView<'_>]) -> Result<bool, SqlError> {
        let base = self.base();
        let cx = Context { rows, ..shorten(&base) };
        let mut key = Vec::new();
        for item in &self.plan.items {
            compare::group_key(&item.eval(&cx)?, &mut key);
        }
        Ok(self.distinct.as_mut().is_none_or(|seen| seen.insert(key)))
    }

    /// Keeps a row to be sorted.
    fn keep(&mut self, rows: &[RowView<'_>]) -> Result<(), SqlError> {
        let base = self.base();
        let cx = Context { rows, ..shorten(&base) };
        let plan = self.plan;
        if let Some(sorter) = &mut self.sorter {
            sorter.add(|key| {
                for (expr, descending) in &plan.order {
                    push_key(&expr.eval(&cx)?, *descending, key);
                }
                Ok::<(), SqlError>(())
            })?;
        }
        if let (Some(columns), [view @ (RowView::Stored(..) | RowView::Fields(..))]) =
            (&plan.plain_columns, rows)
        {
            self.packed_rows.push(self.packed.len() as u32);
            for column in columns {
                let bytes = match view {
                    RowView::Stored(row, _) => row.column(*column).inline(),
                    RowView::Fields(fields, _) => fields[usize::from(*column)].as_deref(),
                    _ => None,
                };
                match bytes {
                    Some(bytes) => {
                        self.packed.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
                        self.packed.extend_from_slice(bytes);
                    }
                    None => self.packed.extend_from_slice(&PACKED_NULL.to_ne_bytes()),
                }
            }
            return Ok(());
        }
        let mut values = Vec::with_capacity(plan.items.len());
        for item in &plan.items {
            values.push(item.eval(&cx)?.into_owned());
        }
        self.computed.push(values);
        Ok(())
    }

    fn gather(&mut self, grouping: &Grouping, rows: &[RowView<'_>]) -> Result<(), SqlError> {
        let base = self.base();
        let cx = Context { rows, ..shorten(&base) };
        let mut at = 0;
        if grouping.keys.is_empty() {
            if self.groups.is_empty() {
                self.new_group(grouping, rows);
            }
        } else {
            self.key.clear();
            for key in &grouping.keys {
                compare::group_key(&key.eval(&cx)?, &mut self.key);
            }
            at = match self.group_index.get(&self.key) {
                Some(at) => *at,
                None => {
                    self.new_group(grouping, rows);
                    let at = self.groups.len() - 1;
                    self.group_index.insert(self.key.clone(), at);
                    at
                }
            };
        }
        if let Some(group) = self.groups.get_mut(at) {
            for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&grouping.aggregates) {
                accumulator.add(aggregate, &cx)?;
            }
        }
        Ok(())
    }

    fn new_group(&mut self, grouping: &Grouping, rows: &[RowView<'_>]) {
        let mut row = Vec::with_capacity(self.plan.sources.len());
        for (source, needed) in self.plan.sources.iter().zip(&self.plan.needed) {
            let mut values = vec![Value::Null; source.columns.len()];
            if let Some(view) = rows.get(row.len()) {
                for column in needed {
                    values[usize::from(*column)] = view.column(*column, self.time_zone).into_owned();
                }
            }
            row.push(values);
        }
        let accumulators = grouping.aggregates.iter().map(Accumulator::new).collect();
        self.groups.push(Group { row, accumulators });
    }

    /// Hands on what was gathered or sorted. Returns how many rows were sent.
    pub async fn finish<S: ResultSink>(mut self, target: &mut Target<'_, S>) -> Result<u64, Failure> {
        if let Some(grouping) = &self.plan.grouping {
            self.finish_groups(grouping, target)?;
        }
        if let Some(sorter) = self.sorter.take() {
            let order = sorter.finish(self.distinct_by_sort);
            for (count, number) in order.into_iter().enumerate() {
                if self.left == 0 {
                    break;
                }
                if self.skip > 0 {
                    self.skip -= 1;
                    continue;
                }
                self.sorted_row(number as usize, target);
                self.left -= 1;
                self.sent += 1;
                if count % 256 == 255 {
                    target.flush().await?;
                }
            }
        }
        Ok(self.sent)
    }

    fn sorted_row<S: ResultSink>(&mut self, number: usize, target: &mut Target<'_, S>) {
        if let Some(values) = self.computed.get_mut(number) {
            hand_on(std::mem::take(values), self.plan, target);
            return;
        }
        let columns = self.plan.plain_columns.as_deref().unwrap_or_default();
        let table = self.plan.sources.first().and_then(|source| source.engine_table());
        let (Some(table), Some(start)) = (table, self.packed_rows.get(number)) else { return };
        let mut rest = &self.packed[*start as usize..];
        let mut fields: smallvec::SmallVec<[Option<&[u8]>; 8]> = smallvec::SmallVec::new();
        for _ in columns {
            let Some((length, tail)) = rest.split_first_chunk::<4>() else { return };
            match u32::from_ne_bytes(*length) {
                PACKED_NULL => {
                    fields.push(None);
                    rest = tail;
                }
                length => {
                    let (bytes, tail) = tail.split_at(length as usize);
                    fields.push(Some(bytes));
                    rest = tail;
                }
            }
        }
        let kinds = columns.iter().map(|column| &table.def.columns[usize::from(*column)].kind);
        match target {
            Target::Sink(sink) => {
                sink.row_begin();
                for (field, kind) in fields.iter().zip(kinds) {
                    output::stored(*sink, *field, kind, self.time_zone);
                }
                sink.row_end();
            }
            Target::Rows(collected) => {
                let decode =
                    |bytes: &[u8], kind| crate::sql::store::decode(bytes, kind, self.time_zone).into_owned();
                let values = fields
                    .iter()
                    .zip(kinds)
                    .map(|(field, kind)| field.map_or(Value::Null, |b| decode(b, kind)));
                collected.push(values.collect());
            }
        }
    }

    fn finish_groups<S: ResultSink>(
        &mut self,
        grouping: &Grouping,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        if self.groups.is_empty() && grouping.keys.is_empty() {
            self.new_group(grouping, &[]);
        }
        let limit = self.state.settings().group_concat_max_len;
        let plan = self.plan;
        for group in std::mem::take(&mut self.groups) {
            let aggregates: Vec<Value<'static>> = group
                .accumulators
                .into_iter()
                .zip(&grouping.aggregates)
                .map(|(accumulator, aggregate)| accumulator.finish(aggregate, limit))
                .collect();
            let views: Vec<RowView<'_>> = group.row.iter().map(|values| RowView::Values(values)).collect();
            let base = self.base();
            let cx = Context { rows: &views, aggregates: &aggregates, ..shorten(&base) };
            if let Some(having) = &grouping.having
                && having.truth(&cx)? != Some(true)
            {
                continue;
            }
            let mut values = Vec::with_capacity(plan.items.len());
            for item in &plan.items {
                values.push(item.eval(&cx)?.into_owned());
            }
            if let Some(seen) = &mut self.distinct {
                let mut key = Vec::new();
                values.iter().for_each(|value| compare::group_key(value, &mut key));
                if !seen.insert(key) {
                    continue;
                }
            }
            if let Some(sorter) = &mut self.sorter {
                sorter.add(|key| {
                    for (expr, descending) in &plan.order {
                        push_key(&expr.eval(&cx)?, *descending, key);
                    }
                    Ok::<(), SqlError>(())
                })?;
                self.computed.push(values);
                continue;
            }
            if self.left == 0 {
                break;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            hand_on(values, plan, target);
            self.left -= 1;
            self.sent += 1;
        }
        Ok(())
    }
}

/// A context with a shorter life.
fn shorten<'s>(cx: &Context<'s>) -> Context<'s> {
    *cx
}

fn emit<S: ResultSink>(
    plan: &SelectPlan,
    cx: &Context<'_>,
    target: &mut Target<'_, S>,
) -> Result<(), SqlError> {
    match target {
        Target::Sink(sink) => {
            sink.row_begin();
            for (item, ty) in plan.items.iter().zip(&plan.types) {
                output::announced(*sink, &item.eval(cx)?, ty);
            }
            sink.row_end();
        }
        Target::Rows(rows) => {
            let mut values = Vec::with_capacity(plan.items.len());
            for item in &plan.items {
                values.push(item.eval(cx)?.into_owned());
            }
            rows.push(values);
        }
    }
    Ok(())
}

fn hand_on<S: ResultSink>(values: Vec<Value<'static>>, plan: &SelectPlan, target: &mut Target<'_, S>) {
    match target {
        Target::Sink(sink) => {
            sink.row_begin();
            for (value, ty) in values.iter().zip(&plan.types) {
                output::announced(*sink, value, ty);
            }
            sink.row_end();
        }
        Target::Rows(rows) => rows.push(values),
    }
}

/// Whether all conditions hold.
pub fn all_true(conditions: &[Expr], cx: &Context<'_>) -> Result<bool, SqlError> {
    for condition in conditions {
        if condition.truth(cx)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Executor<'_> {
    /// Executes a SELECT; its rows go to `target`. Returns how many there were.
    pub async fn select<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        if !plan.unions.is_empty() {
            return self.union(plan, target).await;
        }
        let subqueries = self.subqueries(&plan.subqueries).await?;
        let (state, parameters) = (self.state, self.parameters);
        let mut consumer = Consumer::new(plan, state, parameters, &subqueries)?;
        let cx = Context { subqueries: &subqueries, ..Context::constant(state, parameters) };
        let possible = all_true(&plan.constant_conditions, &cx)? && !consumer.is_full();
        match (&plan.steps[..], possible) {
            (_, false) => {}
            ([], true) => {
                self.sleep(plan, &cx).await?;
                consumer.row(&[], target)?;
            }
            ([step], true) if plan.sources[step.source].engine_table().is_some() => {
                self.stream(plan, step, &mut consumer, &cx, target).await?;
            }
            (_, true) => self.join(plan, &mut consumer, &cx, target).await?,
        }
        consumer.finish(target).await
    }

    /// Runs the SLEEP of a SELECT without tables.
    async fn sleep(&self, plan: &SelectPlan, cx: &Context<'_>) -> Result<(), Failure> {
        let mut seconds = 0.0;
        for item in &plan.items {
            if let Expr::Call(function, arguments) = item
                && function.name == "SLEEP"
                && let Some(argument) = arguments.first()
            {
                seconds += argument.eval(cx)?.to_double().max(0.0);
            }
        }
        if seconds > 0.0 {
            let environment = self.state.database.environment().clone();
            let until = environment.now() + std::time::Duration::from_secs_f64(seconds.min(1e9));
            loop {
                let left = until.saturating_sub(environment.now());
                if left.is_zero() {
                    break;
                }
                environment.sleep(left.min(std::time::Duration::from_millis(100))).await;
                self.state.check_killed()?;
            }
        }
        Ok(())
    }

    /// One stored table: rows go from the page through the consumer.
    async fn stream<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        step: &Step,
        consumer: &mut Consumer<'_>,
        cx: &Context<'_>,
        target: &mut Target<'_, S>,
    ) -> Result<(), Failure> {
        let Some(table) = plan.sources[step.source].engine_table() else { return Ok(()) };
        let Some(ranges) = keys::ranges(&step.path, &table.def.columns, cx)? else { return Ok(()) };
        let conditions = if ranges.exact { &step.filter } else { &step.all_conditions };
        let mode = self.read_mode(plan.locking);
        let mut each = |view: RowView<'_>, target: &mut Target<'_, S>| -> Result<Flow, Failure> {
            let views = [view];
            if !conditions.is_empty() && !all_true(conditions, &consumer.context(&views))? {
                return Ok(Flow::Skip);
            }
            consumer.row(&views, target)
        };
        if let Some(key) = point_key(step, &ranges, mode) {
            let fields = key.fields();
            let found = cursor::point(self.transaction.rows(), table, &fields, |row| {
                if is_long(row, &plan.needed[step.source]) {
                    return Err(cursor::copy(row, table.def.columns.len(), &plan.needed[step.source]));
                }
                Ok(each(RowView::Stored(row, &table.def.columns), target))
            })
            .await?;
            return match found {
                None => Ok(()),
                Some(Ok(shown)) => shown.map(|_| ()),
                Some(Err(copied)) => {
                    let fields = copied.complete(self.transaction.state(), table).await?;
                    each(RowView::Fields(&fields, &table.def.columns), target).map(|_| ())
                }
            };
        }
        let mut scan = Cursor::new(table, &step.path, ranges.ranges, mode, &plan.needed[step.source]);
        while scan.run(self.transaction.rows(), &mut |view, _| each(view, target)).await? {
            self.state.check_killed()?;
            target.flush().await?;
        }
        Ok(())
    }

    async fn union<S: ResultSink>(
        &mut self,
        plan: &SelectPlan,
        target: &mut Target<'_, S>,
    ) -> Result<u64, Failure> {
        let mut rows = self.union_part(plan).await?;
        for (all, part) in &plan.unions {
            rows.extend(self.rows(part).await?);
            if !all {
                let mut seen = HashSet::new();
                rows.retain(|row| {
                    let mut key = Vec::new();
                    row.iter().for_each(|value| compare::group_key(value, &mut key));
                    seen.insert(key)
                });
            }
        }
        let cx = Context::constant(self.state, self.parameters);
        let mut sorter = Sorter::default();
        for row in &rows {
            let view = [RowView::Values(row)];
            let cx = cx.with_rows(&view);
            sorter.add(|key| {
                for (expr, descending) in &plan.order {
                    push_key(&expr.eval(&cx)?, *descending, key);
                }
                Ok::<(), SqlError>(())
            })?;
        }
        let (mut skip, mut left) = (0, u64::MAX);
        if let Some((count, offset)) = &plan.limit {
            left = as_count(&count.eval(&cx)?);
            skip = offset.as_ref().map(|offset| offset.eval(&cx)).transpose()?.map_or(0, |v| as_count(&v));
        }
        let mut sent = 0;
        for number in sorter.finish(false) {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if sent == left {
                break;
            }
            hand_on(std::mem::take(&mut rows[number as usize]), plan, target);
            sent += 1;
            if sent % 256 == 0 {
                target.flush().await?;
            }
        }
        Ok(sent)
    }

    /// The first SELECT of a union: the same plan without what applies to the whole.
    async fn union_part(&mut self, plan: &SelectPlan) -> Result<super::Rows, Failure> {
        let subqueries = self.subqueries(&plan.subqueries).await?;
        let (state, parameters) = (self.state, self.parameters);
        let mut consumer = Consumer::new(plan, state, parameters, &subqueries)?;
        let cx = Context { subqueries: &subqueries, ..Context::constant(state, parameters) };
        let mut target: Target<'_, super::NoSink> = Target::Rows(Vec::new());
        if all_true(&plan.constant_conditions, &cx)? {
            match &plan.steps[..] {
                [] => {
                    consumer.row(&[], &mut target)?;
                }
                [step] if plan.sources[step.source].engine_table().is_some() => {
                    self.stream(plan, step, &mut consumer, &cx, &mut target).await?;
                }
                _ => self.join(plan, &mut consumer, &cx, &mut target).await?,
            }
        }
        consumer.finish(&mut target).await?;
        match target {
            Target::Rows(rows) => Ok(rows),
            Target::Sink(_) => Err(errors::error(errors::UNKNOWN_ERROR, &[&"union"]).into()),
        }
    }
}

fn is_long(row: &untorn::engine::Row<'_>, needed: &[u16]) -> bool {
    needed.iter().any(|column| matches!(row.column(*column), FieldRef::External { .. }))
}

/// The key, when the path is one row of the clustered index read consistently.
fn point_key<'r>(
    step: &Step,
    ranges: &'r keys::Ranges,
    mode: untorn::engine::ReadMode,
) -> Option<&'r untorn::engine::OwnedKey> {
    let clustered = step.path.index == untorn::engine::ScanIndex::Clustered;
    if !(clustered && step.path.unique && ranges.exact && mode == untorn::engine::ReadMode::Consistent) {
        return None;
    }
    match &ranges.ranges[..] {
        [range] => match &range.lower {
            std::ops::Bound::Included(key) => Some(key),
            _ => None,
        },
        _ => None,
    }
}
