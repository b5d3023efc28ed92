//! Executing plans.
//!
//! Anything that may take long or use much memory goes through the [`Executor`]: its [`tick`](Executor::tick)
//! counts work, gives way to other connections and sees a kill; what grows with data is charged to the
//! context's [`Account`](crate::memory::Account), and sorts, groups and duplicates go to disk when their part
//! of memory is used up. Rows are streamed with backpressure: execution pauses while the client's buffer is
//! full.
//!
//! A statement that fails is rolled back by the session (`in_transaction.rs` of the server).
//!
//! A SELECT begins in `select.rs`. A single table is streamed there itself: one row by its whole primary key
//! through `point.rs` (`get.rs` of the transaction layer), anything else through a `Cursor` (`scan.rs`
//! there); of either, a row that is not whole in its page is copied (`copied_row.rs`). The rows of any other
//! SELECT come from `join.rs` (nested loops over `cursor.rs`; `keys.rs` makes the ranges of an index,
//! `prefix_keys.rs` those of a prefix; `merged_ranges.rs`: of several indexes), from a derived or common
//! table, which `join.rs` fills into memory ([`KeptRows`]) and `hash_lookup.rs` finds rows in
//! (`recursion.rs`: a recursive one; `spilled_join.rs`: a stored table that is too large;
//! `hashed_subquery.rs`: one of a correlated subquery), or from `union.rs` and `except_intersect.rs`. They
//! pass `apply.rs` (subqueries that depend on the row), `group.rs` and `rollup.rs` over `aggregate.rs`,
//! `window/`, `distinct.rs`, `sort.rs` and `order_limit.rs` (LIMIT), as rows that give themselves to the
//! target (`result_row.rs`), and `output.rs` writes them for the client. `insert.rs`, `change.rs`,
//! `multi_table_change.rs` and `load.rs` change rows; `column_defaults.rs`, `row_rules.rs` (generated
//! columns, CHECK) and `row_conversion.rs` make rows of values, which `crate::stored_values` puts into
//! storage form. How a scan locks is `read_mode.rs`. Rows that wait between two halves of a statement are
//! bytes (`spilled_values.rs`), in a spool for INSERT … SELECT, elsewhere in a sorter.

pub(crate) mod aggregate;
mod apply;
pub(crate) mod change;
mod column_defaults;
mod copied_row;
pub(crate) mod cursor;
mod distinct;
mod except_intersect;
mod group;
mod hash_lookup;
mod hashed_subquery;
pub mod insert;
mod integer_key;
pub(crate) mod join;
mod json_table;
pub(crate) mod keys;
pub mod load;
pub mod measure;
mod merged_ranges;
mod multi_table_change;
mod order_limit;
pub mod output;
mod point;
mod prefix_keys;
mod read_mode;
mod recursion;
mod result_row;
mod rollup;
pub mod row_conversion;
pub(crate) mod row_rules;
pub(crate) mod select;
pub(crate) mod sort;
mod spilled_join;
mod spilled_values;
mod spool;
mod text_lines;
mod union;
mod waiting;
mod window;

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use untorn::engine::TimeSlice;

use crate::background_drop::discard;
use crate::context::SqlContext;
use crate::expr::{Context, ValueSet};
use crate::failure::Failure;
use crate::memory::{self, Charge};
use crate::plan::SelectPlan;
use crate::result::{ResultSink, SqlError};
use crate::value::Value;

/// What a callback wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next row.
    Next,
    /// The next row; this one failed the conditions.
    Skip,
    /// Come back to the caller now.
    Pause,
    /// No more rows.
    Stop,
}

/// Executes one statement.
pub struct Executor<'e> {
    /// What it runs in.
    pub state: &'e SqlContext,
    /// Its transaction.
    pub transaction: &'e mut untorn::asynchronous::Transaction,
    /// The statement's parameters.
    pub parameters: &'e [Value<'e>],
    /// What a subquery reads of the row of the query around it.
    outer: &'e [Value<'e>],
    /// The recursive common tables that are being computed, the innermost first.
    working: Option<&'e recursion::Working<'e>>,
}

/// Who takes rows of a SELECT that do not go to the client.
pub trait RowTaker {
    /// Takes a row.
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure>;
    /// Whether it is time for [`RowTaker::make_room`].
    fn is_full(&self) -> bool {
        false
    }
    /// Whether it wants no more rows.
    fn is_done(&self) -> bool {
        false
    }
    /// Makes room.
    fn make_room<'a>(
        &'a mut self,
        _executor: &'a Executor<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Where rows of a SELECT go.
pub enum Target<'s, S> {
    /// To the client.
    Sink(&'s mut S),
    /// To somebody in this statement.
    Taker(&'s mut dyn RowTaker),
}

impl<S: ResultSink> Target<'_, S> {
    /// Lets the client take what it has been given, or the taker make room.
    pub async fn flush(&mut self, executor: &Executor<'_>) -> Result<(), Failure> {
        match self {
            Target::Sink(sink) if sink.is_full() => Ok(sink.flush_if_full().await?),
            Target::Taker(taker) if taker.is_full() => taker.make_room(executor).await,
            _ => Ok(()),
        }
    }

    /// Whether it is time to flush.
    #[inline]
    pub fn is_full(&self) -> bool {
        match self {
            Target::Sink(sink) => sink.is_full(),
            Target::Taker(taker) => taker.is_full(),
        }
    }

    /// Whether no more rows are wanted.
    #[inline]
    pub fn is_done(&self) -> bool {
        match self {
            Target::Sink(_) => false,
            Target::Taker(taker) => taker.is_done(),
        }
    }

    /// Gives a row to a taker.
    pub fn put(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        match self {
            Target::Sink(_) => Ok(()),
            Target::Taker(taker) => taker.take(row),
        }
    }
}

/// A sink for executions that answer nobody.
pub struct NoSink;

impl ResultSink for NoSink {
    fn columns(&mut self, _: &std::sync::Arc<crate::result::ResultColumns>) {}
    fn row_begin(&mut self) {}
    fn null(&mut self) {}
    fn int(&mut self, _: i64) {}
    fn uint(&mut self, _: u64) {}
    fn float(&mut self, _: f32) {}
    fn double(&mut self, _: f64) {}
    fn bytes(&mut self, _: &[u8]) {}
    fn date(&mut self, _: crate::result::Date) {}
    fn datetime(&mut self, _: crate::result::DateTime, _: u8) {}
    fn time(&mut self, _: crate::result::Time, _: u8) {}
    fn row_end(&mut self) {}
    fn rows_end(&mut self, _: &crate::result::Completion<'_>) {}
    fn ok(&mut self, _: &crate::result::Completion<'_>) {}
    fn error(&mut self, _: &crate::result::SqlError) {}
    async fn flush_if_full(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether these values are the same, not only equal: what is made of the ones is what is made of the others.
fn are_identical(left: &[Value<'_>], right: &[Value<'_>]) -> bool {
    left.iter().zip(right).all(|pair| match pair {
        (Value::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
        (Value::Double(left), Value::Double(right)) => left.to_bits() == right.to_bits(),
        (Value::Decimal(left), Value::Decimal(right)) => {
            left == right && left.fractional_digit_count() == right.fractional_digit_count()
        }
        (left, right) => left == right,
    })
}

/// Rows in memory.
pub type Rows = Vec<Vec<Value<'static>>>;

/// Rows in memory that are charged to the statement.
pub struct KeptRows<'e> {
    rows: Rows,
    charge: Charge<'e>,
    /// No more rows are wanted.
    rows_max: usize,
}

impl<'e> KeptRows<'e> {
    /// No rows yet, and at most this many.
    pub fn new(state: &'e SqlContext, rows_max: usize) -> KeptRows<'e> {
        KeptRows { rows: Vec::new(), charge: state.memory.charge(), rows_max }
    }

    /// Takes a row if there is memory for it.
    fn take_if_it_fits(&mut self, row: Vec<Value<'static>>) -> bool {
        let fits = self.charge.grow(memory::row_weight(&row)).is_ok();
        if fits {
            self.rows.push(row);
        }
        fits
    }

    /// The rows, which are not charged any more.
    pub fn into_rows(mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }
}

/// Rows from this number on are given back on a thread of their own.
const ROWS_APART: usize = 16_384;

impl Drop for KeptRows<'_> {
    fn drop(&mut self) {
        if self.rows.len() >= ROWS_APART {
            discard(std::mem::take(&mut self.rows));
        }
    }
}

impl Deref for KeptRows<'_> {
    type Target = Rows;
    fn deref(&self) -> &Rows {
        &self.rows
    }
}

impl RowTaker for KeptRows<'_> {
    fn take(&mut self, row: Vec<Value<'static>>) -> Result<(), Failure> {
        self.charge.grow(memory::row_weight(&row))?;
        self.rows.push(row);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.rows.len() >= self.rows_max
    }
}

/// Results of subqueries, charged to the statement.
pub struct Subqueries<'e> {
    results: Vec<Arc<ValueSet>>,
    _charges: Vec<Charge<'e>>,
}

/// The result of a subquery.
struct SubqueryResult<'e> {
    values: ValueSet,
    charge: Charge<'e>,
}

impl Deref for Subqueries<'_> {
    type Target = [Arc<ValueSet>];
    fn deref(&self) -> &[Arc<ValueSet>] {
        &self.results
    }
}

impl<'e> Executor<'e> {
    /// Executes a statement with these parameters in a transaction.
    pub fn new(
        state: &'e SqlContext,
        transaction: &'e mut untorn::asynchronous::Transaction,
        parameters: &'e [Value<'e>],
    ) -> Self {
        Executor { state, transaction, parameters, outer: &[], working: None }
    }

    /// How long the statement has kept its thread.
    pub fn slice(&self) -> &TimeSlice {
        self.transaction.engine().slice()
    }

    /// Counts work: gives way to others when the slice of time is over, and fails when somebody has killed
    /// the statement.
    #[inline]
    pub async fn tick(&self, units: u32) -> Result<(), Failure> {
        if self.slice().spend(units) { self.give_way().await } else { Ok(()) }
    }

    #[cold]
    async fn give_way(&self) -> Result<(), Failure> {
        self.slice().give_way().await?;
        Ok(self.state.check_killed()?)
    }

    /// The context of expressions without rows.
    pub fn context<'c>(&'c self, subqueries: &'c [Arc<ValueSet>]) -> Context<'c> {
        Context { subqueries, outer: self.outer, ..Context::constant(self.state, self.parameters) }
    }

    /// Executes a query into memory.
    pub fn rows<'a>(
        &'a mut self,
        plan: &'a SelectPlan,
    ) -> Pin<Box<dyn Future<Output = Result<KeptRows<'e>, Failure>> + 'a>> {
        self.first_rows(plan, usize::MAX)
    }

    /// Executes a query into memory until it has this many rows.
    pub fn first_rows<'a>(
        &'a mut self,
        plan: &'a SelectPlan,
        rows_max: usize,
    ) -> Pin<Box<dyn Future<Output = Result<KeptRows<'e>, Failure>> + 'a>> {
        let state: &'e SqlContext = self.state;
        Box::pin(async move {
            let mut rows = KeptRows::new(state, rows_max);
            self.select(plan, &mut Target::<NoSink>::Taker(&mut rows)).await?;
            Ok(rows)
        })
    }

    /// Executes a query that reads these values of the row of the query around it into memory.
    async fn rows_for(
        &mut self,
        plan: &SelectPlan,
        outer: &[Value<'static>],
    ) -> Result<KeptRows<'e>, Failure> {
        let (state, parameters, working) = (self.state, self.parameters, self.working);
        let mut rows = KeptRows::new(state, usize::MAX);
        let mut inner = Executor { state, transaction: &mut *self.transaction, parameters, outer, working };
        inner.select_into(plan, &mut rows).await?;
        Ok(rows)
    }

    /// What a query reads of the row of `cx`.
    fn captured(plan: &SelectPlan, cx: &Context<'_>) -> Result<Vec<Value<'static>>, SqlError> {
        plan.captures.iter().map(|capture| capture.eval(cx).map(Value::into_owned)).collect()
    }

    /// Executes a query for somebody in this statement.
    pub fn select_into<'a>(
        &'a mut self,
        plan: &'a SelectPlan,
        taker: &'a mut dyn RowTaker,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
        Box::pin(async move {
            self.select(plan, &mut Target::<NoSink>::Taker(taker)).await?;
            Ok(())
        })
    }

    /// Executes the subqueries of a statement, but for those that follow its rows.
    pub async fn subqueries(&mut self, plans: &[SelectPlan]) -> Result<Subqueries<'e>, Failure> {
        let mut results = Vec::with_capacity(plans.len());
        let mut charges = Vec::new();
        for plan in plans {
            if plan.follows_rows() {
                results.push(Arc::default());
                continue;
            }
            let captured = Self::captured(plan, &self.context(&[]))?;
            let SubqueryResult { values, charge } = self.subquery(plan, &captured).await?;
            charges.push(charge);
            results.push(Arc::new(values));
        }
        Ok(Subqueries { results, _charges: charges })
    }

    /// Executes a subquery that reads these values of the query around it.
    async fn subquery(
        &mut self,
        plan: &SelectPlan,
        outer: &[Value<'static>],
    ) -> Result<SubqueryResult<'e>, Failure> {
        let (state, parameters, working) = (self.state, self.parameters, self.working);
        let mut inner = Executor { state, transaction: &mut *self.transaction, parameters, outer, working };
        let kept = inner.rows(plan).await?;
        result_of(&inner, state, plan, kept).await
    }
}

/// The rows of a subquery as its result, charged to `state`.
async fn result_of<'e>(
    executor: &Executor<'_>,
    state: &'e SqlContext,
    plan: &SelectPlan,
    mut kept: KeptRows<'_>,
) -> Result<SubqueryResult<'e>, Failure> {
    let mut values = Vec::with_capacity(kept.rows.len());
    let columns = if plan.whole_rows { usize::MAX } else { 1 };
    for row in std::mem::take(&mut kept.rows) {
        executor.tick(1).await?;
        values.extend(row.into_iter().take(columns));
    }
    // Charged as long as the result lives, which is longer than what made it.
    let mut charge = state.memory.charge();
    drop(kept);
    charge.grow(values.iter().map(memory::weight).sum())?;
    let mut values = ValueSet::new(values);
    if !plan.whole_rows {
        values.index(|bytes| charge.grow(bytes))?;
    }
    Ok(SubqueryResult { values, charge })
}
