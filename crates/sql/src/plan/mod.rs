//! Plans: what is made of a statement once, and executed many times.
//!
//! A plan belongs to one version of the catalog, of the grants and of the session's temporary tables, and
//! owns handles to its tables. It holds no values: parameters, the clock and variables are looked at when it
//! is executed. A single-table query streams from the scan through the plan's filter and output; joins are
//! nested loops over index look-ups, or over look-ups in a derived table held in memory
//! (`exec/hash_lookup.rs`).

pub mod access_path;
pub(crate) mod aggregate;
pub(crate) mod apply;
pub(crate) mod change;
pub mod created_columns;
mod dependence;
pub mod estimate;
mod finish;
mod from;
mod full_group;
pub mod functional_keys;
mod given_rows;
pub mod index_merge;
mod index_order;
mod join_order;
pub(crate) mod json_table;
pub mod load;
pub mod multi_table_change;
pub mod no_index_used;
mod order_by_members;
pub(crate) mod outer_join;
mod push;
mod query;
mod range_analysis;
pub(crate) mod row_rules;
pub mod selected_too;
pub mod shown;
pub mod source;
mod target_read;
pub mod view;
pub mod window;
pub(crate) mod with;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use untorn::Table;
use untorn::types::{Charset, Collation};

use crate::ast;
use crate::background_drop::Elsewhere;
use crate::context::SqlContext;
use crate::errors;
use crate::expr::bind::value_type;
use crate::expr::types::Type;
use crate::expr::{Context, Expr, NODE_BYTES, strict};
use crate::memory::StatementCharge;
use crate::result::{ResultColumns, SqlError};
use access_path::Path;
use aggregate::Aggregate;
use apply::AppliedCondition;
pub use apply::Apply;
use estimate::Wanted;
use finish::Pending;
use multi_table_change::MultiTableChange;
use outer_join::InnerSide;
use source::Source;
use view::{UsedView, Views};
use window::Windowed;
use with::Recursion;

/// A condition of a query. It may be megabytes, and stands in several places of a plan.
pub type Condition = Arc<Expr>;

/// One source of a query in the order of the join.
#[derive(Debug)]
pub struct Step {
    /// Which source.
    pub source: usize,
    /// How it is read.
    pub path: Path,
    /// No index leads to its rows: they are read into memory once, and looked up by what they are equal to.
    pub by_hash: bool,
    /// Conditions that the path does not express.
    pub filter: Vec<Condition>,
    /// All conditions, for when a key could not be made exactly.
    pub all_conditions: Vec<Condition>,
    /// Conditions that need correlated subqueries: of ON of an outer join.
    pub applied: Vec<AppliedCondition>,
    /// The first of the inner side of an outer join: the step of its last. Where nothing there matches, their
    /// rows are NULLs.
    pub inner_last: Option<usize>,
    /// The inner sides of outer joins that end here, from the innermost to the outermost.
    pub inner_ends: Vec<InnerSide>,
}

impl Step {
    /// Whether correlated subqueries decide which of its rows match.
    pub fn is_applied(&self) -> bool {
        !self.applied.is_empty() || self.inner_ends.iter().any(|end| !end.applied.is_empty())
    }
}

/// Grouping.
#[derive(Debug)]
pub struct Grouping {
    /// GROUP BY; empty: one group of all rows.
    pub keys: Vec<Expr>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
    /// HAVING.
    pub having: Option<Expr>,
    /// WITH ROLLUP: there are groups of the first keys alone, too, down to one of all rows.
    pub rollup: bool,
    /// The keys that have another value each time: a group keeps those it was made by, and they follow its
    /// aggregates.
    pub kept: Vec<u16>,
}

impl Grouping {
    fn new(keys: Vec<Expr>, aggregates: Vec<Aggregate>, having: Option<Expr>, rollup: bool) -> Grouping {
        Grouping { keys, aggregates, having, rollup, kept: Vec::new() }
    }
}

/// A planned SELECT.
#[derive(Debug)]
pub struct SelectPlan {
    /// Sources, as the statement names them.
    pub sources: Vec<Source>,
    /// The join.
    pub steps: Vec<Step>,
    /// Columns needed of each source.
    pub needed: Vec<Vec<u16>>,
    /// Conditions without columns, checked first.
    pub constant_conditions: Vec<Condition>,
    /// Grouping.
    pub grouping: Option<Grouping>,
    /// Output.
    pub items: Vec<Expr>,
    /// Their types.
    pub types: Vec<Type>,
    /// Their definitions for the client.
    pub columns: Arc<ResultColumns>,
    /// DISTINCT.
    pub distinct: bool,
    /// What is still to be sorted by (true: descending).
    pub order: Vec<(Expr, bool)>,
    /// LIMIT: count and offset.
    pub limit: Option<(Expr, Option<Expr>)>,
    /// Locking clause.
    pub locking: Option<ast::Locking>,
    /// Sources whose rows the statement changes: they are locked for that, and come with their clustered key
    /// in a column behind the others ([`multi_table_change`]).
    pub changed: Vec<u16>,
    /// Subqueries, executed first, but for those that [`SelectPlan::apply`] names.
    pub subqueries: Vec<SelectPlan>,
    /// Subqueries that are executed for each row.
    pub apply: Option<Box<Apply>>,
    /// Of a subquery: what it reads of the query around it, as that one finds it ([`Expr::Outer`]).
    pub captures: Vec<Expr>,
    /// Of a subquery: it is compared with rows, so that all its columns matter.
    pub whole_rows: bool,
    /// The first row with a value of the only aggregate gives its result: rows come in the order of an index.
    pub first_value_decides: bool,
    /// SQL_CALC_FOUND_ROWS: the rows behind the LIMIT are counted.
    pub counts_all: bool,
    /// Its rows are computed in windows; it has no sources of its own then.
    pub windowed: Option<Box<Windowed>>,
    /// INTO variables.
    pub into: ast::Destination,
    /// Of a recursive common table: the parts that read it.
    pub recursion: Option<Box<Recursion>>,
    /// What connects it with the other SELECTs.
    pub operation: ast::SetOperation,
    /// The other SELECTs of a UNION, the right side of an EXCEPT or INTERSECT (true: ALL).
    pub unions: Vec<(bool, SelectPlan)>,
    /// What it lacks: a derived table is finished with the query around it.
    pending: Option<Box<Pending>>,
    /// Source columns of the items, when all are plain columns of one stored table.
    pub plain_columns: Option<Vec<u16>>,
    /// The items are computed from these columns (source and column) for each row that is handed on, after
    /// the sort and the LIMIT: they assign to user variables.
    pub late_columns: Option<Vec<(u16, u16)>>,
    /// Items have another value each time that they are computed, and ORDER BY or DISTINCT reads them: each
    /// is computed once for a row. For each expression of the order the item that it is.
    pub computed_once: Option<Vec<Option<u16>>>,
    /// Of a statement: texts beside days and moments, which are looked at before the first row.
    pub texts_of_days: Vec<TextOfDay>,
}

/// A constant text that a day or moment is compared with.
#[derive(Clone, Debug)]
pub struct TextOfDay {
    /// The text.
    pub text: Expr,
    /// What it should be, as errors name it: DATE, DATETIME or TIMESTAMP.
    pub kind: &'static str,
    /// The column, if it is one that is compared.
    pub column: Option<String>,
}

impl SelectPlan {
    /// Refuses constant texts beside days before the statement is executed, when it is prepared.
    ///
    /// # Errors
    /// 1525.
    pub fn check_texts_of_days(&self, state: &SqlContext) -> Result<(), SqlError> {
        strict::check_texts_of_days(&self.texts_of_days, &Context::constant(state, &[]))
    }

    /// Whether each of its rows is one of the join of its sources, and says nothing but what that has: MySQL
    /// merges such a query into the one around it.
    pub fn has_rows_of_sources(&self) -> bool {
        let assigns = |item: &Expr| !item.visit(&mut |part| !matches!(part, Expr::Assign(..)));
        !self.sources.is_empty()
            && self.unions.is_empty()
            && self.recursion.is_none()
            && self.grouping.is_none()
            && !self.distinct
            && self.limit.is_none()
            && !self.items.iter().any(assigns)
    }

    /// A query of nothing but these columns.
    fn of_items(items: Vec<Expr>, types: Vec<Type>, columns: Arc<ResultColumns>) -> SelectPlan {
        SelectPlan {
            sources: Vec::new(),
            steps: Vec::new(),
            needed: Vec::new(),
            constant_conditions: Vec::new(),
            grouping: None,
            items,
            types,
            columns,
            distinct: false,
            order: Vec::new(),
            limit: None,
            locking: None,
            changed: Vec::new(),
            subqueries: Vec::new(),
            apply: None,
            captures: Vec::new(),
            whole_rows: false,
            first_value_decides: false,
            counts_all: false,
            windowed: None,
            into: ast::Destination::Client,
            recursion: None,
            operation: ast::SetOperation::Union,
            unions: Vec::new(),
            pending: None,
            plain_columns: None,
            late_columns: None,
            computed_once: None,
            texts_of_days: Vec::new(),
        }
    }

    /// Whether it is a subquery whose result depends on the row of the query around it.
    pub fn follows_rows(&self) -> bool {
        // A computed column of a view is captured as what it is computed from.
        let of_rows = |capture: &Expr| {
            let mut found = false;
            capture.visit(&mut |part| {
                found |= matches!(
                    part,
                    Expr::Column { .. }
                        | Expr::RolledUp { .. }
                        | Expr::Aggregate(_)
                        | Expr::Subquery(_)
                        | Expr::OfOnlyRow { .. }
                        | Expr::Exists(_)
                        | Expr::InSubquery { .. }
                        | Expr::Quantified { .. }
                );
                !found
            });
            found
        };
        self.captures.iter().any(of_rows)
    }

    fn reads_dictionary(&self) -> bool {
        // The engine's and the sessions' state is no table.
        let of_state = ["INNODB_", "PROCESSLIST", "UNTORN_"];
        let is_of_state = |name: &str| of_state.iter().any(|prefix| name.to_uppercase().starts_with(prefix));
        let from_dictionary = |source: &Source| match &source.kind {
            source::SourceKind::View(_) => {
                source.database.eq_ignore_ascii_case("information_schema") && !is_of_state(&source.table)
            }
            source::SourceKind::Derived(plan) => plan.reads_dictionary(),
            _ => false,
        };
        let inside = self.windowed.iter().map(|windowed| &windowed.input).chain(&self.subqueries);
        self.sources.iter().any(from_dictionary)
            || inside.chain(self.unions.iter().map(|(_, plan)| plan)).any(SelectPlan::reads_dictionary)
    }

    /// Whether it reads tables, and whether it locks rows of some to change them.
    pub fn accesses(&self) -> (bool, bool) {
        let exclusive = self.locking.is_some_and(|locking| locking.exclusive);
        let (mut reads, mut writes) = (false, false);
        let mut add = |accesses: (bool, bool)| {
            reads |= accesses.0;
            writes |= accesses.1;
        };
        for source in &self.sources {
            match &source.kind {
                source::SourceKind::Table(_) => add((!exclusive, exclusive)),
                source::SourceKind::Derived(plan) => add(plan.accesses()),
                source::SourceKind::View(_)
                | source::SourceKind::JsonTable(_)
                | source::SourceKind::Definition(_)
                | source::SourceKind::Given(_)
                | source::SourceKind::Recursion(_) => {}
            }
        }
        let parts = self.recursion.iter().flat_map(|recursion| &recursion.parts);
        let inside = self.windowed.iter().map(|windowed| &windowed.input).chain(parts);
        let inside = inside.chain(&self.subqueries).chain(self.unions.iter().map(|(_, plan)| plan));
        inside.for_each(|plan| add(plan.accesses()));
        (reads, writes)
    }

    /// All tables it reads, for metadata locks.
    pub fn tables(&self, found: &mut Tables) {
        for source in &self.sources {
            match &source.kind {
                source::SourceKind::Table(table) => found.push(table.0.clone()),
                source::SourceKind::Derived(plan) => plan.tables(found),
                source::SourceKind::View(_)
                | source::SourceKind::JsonTable(_)
                | source::SourceKind::Definition(_)
                | source::SourceKind::Given(_)
                | source::SourceKind::Recursion(_) => {}
            }
        }
        self.windowed.iter().for_each(|windowed| windowed.input.tables(found));
        self.recursion.iter().flat_map(|recursion| &recursion.parts).for_each(|plan| plan.tables(found));
        self.subqueries.iter().for_each(|plan| plan.tables(found));
        self.unions.iter().for_each(|(_, plan)| plan.tables(found));
    }

    /// Whether the rows of its parts are gathered: they are compared with each other or sorted.
    pub fn makes_table(&self) -> bool {
        let whole = self.operation != ast::SetOperation::Union || self.unions.iter().any(|(all, _)| !all);
        whole || !self.order.is_empty()
    }

    /// Whether a step is joined by hash: rows that are locked are read one by one.
    pub fn joins_by_hash(&self, step: &Step) -> bool {
        step.by_hash && self.locking.is_none() && self.changed.is_empty()
    }
}

/// The engine tables of a plan: one, as a rule.
pub type Tables = smallvec::SmallVec<[Arc<Table>; 4]>;

/// A planned value that stands alone.
#[derive(Debug)]
pub enum ValuePlan {
    /// It needs no table.
    Constant(Expr),
    /// It is a query.
    Query(Box<Plan>),
}

/// A plan, charged for what it takes beyond the text it was made of.
#[derive(Debug)]
pub struct Charged<P> {
    plan: P,
    _charge: Option<StatementCharge>,
    /// Views that it was made of.
    views: Vec<UsedView>,
}

impl<P> std::ops::Deref for Charged<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.plan
    }
}

/// A planned statement.
#[derive(Debug)]
pub enum Plan {
    /// SELECT.
    Select(Charged<SelectPlan>),
    /// INSERT, REPLACE.
    Insert(Charged<change::InsertPlan>),
    /// UPDATE.
    Update(Charged<change::UpdatePlan>),
    /// DELETE.
    Delete(Charged<change::DeletePlan>),
    /// LOAD DATA.
    Load(Charged<load::LoadPlan>),
    /// UPDATE or DELETE of a join.
    MultiTableChange(Charged<MultiTableChange>),
    /// Everything else is executed from its syntax tree.
    Command(ast::Statement),
}

impl Plan {
    /// Whether it changes a table.
    pub fn changes(&self, table: &Arc<Table>) -> bool {
        let target = match self {
            Plan::Insert(plan) => plan.source.engine_table(),
            Plan::Load(plan) => plan.insert.source.engine_table(),
            Plan::Update(plan) => plan.target.source.engine_table(),
            Plan::Delete(plan) => plan.target.source.engine_table(),
            Plan::MultiTableChange(plan) => return plan.changes(table),
            Plan::Select(_) | Plan::Command(_) => None,
        };
        target.is_some_and(|target| Arc::ptr_eq(target, table))
    }

    /// Views it was made of.
    pub fn views(&self) -> &[UsedView] {
        match self {
            Plan::Select(plan) => &plan.views,
            Plan::Insert(plan) => &plan.views,
            Plan::Load(plan) => &plan.views,
            Plan::Update(plan) => &plan.views,
            Plan::Delete(plan) => &plan.views,
            Plan::MultiTableChange(plan) => &plan.views,
            Plan::Command(_) => &[],
        }
    }

    /// Whether it reads what MySQL has in tables of its data dictionary.
    pub fn reads_dictionary(&self) -> bool {
        matches!(self, Plan::Select(plan) if plan.reads_dictionary())
    }

    /// Tables it uses.
    pub fn tables(&self) -> Tables {
        let mut found = Tables::new();
        match self {
            Plan::Select(plan) => plan.tables(&mut found),
            Plan::Insert(plan) => plan.tables(&mut found),
            Plan::Load(plan) => plan.insert.tables(&mut found),
            Plan::Update(plan) => plan.tables(&mut found),
            Plan::Delete(plan) => plan.tables(&mut found),
            Plan::MultiTableChange(plan) => plan.query.tables(&mut found),
            Plan::Command(_) => {}
        }
        found
    }
}

/// Bytes of work that are done in one go where planning may be begun again by steps: about a millisecond.
const BRIEF_BYTES: usize = 256 << 10;

/// What stars and tables add to a plan is charged in portions of this many bytes.
const EXPANDED_AT_ONCE: usize = 64 << 10;

/// How long planning goes on before others run.
pub enum Pace<'a> {
    /// To its end.
    InOneGo,
    /// To its end, unless that is far: then it fails, to be begun again by steps. The number is the bytes of
    /// work that are left.
    Brief(Cell<usize>),
    /// Until the slice of time is over; then this is called.
    BySteps(&'a dyn Fn()),
}

/// Makes plans.
pub struct Planner<'a> {
    /// What the statement runs in.
    pub state: &'a SqlContext,
    /// Types of parameters that are known (literals lifted from a text statement).
    pub parameter_types: &'a [Type],
    /// How long it goes on.
    pub pace: Pace<'a>,
    /// Why it is to stop, found on a walk that cannot fail.
    stopped: RefCell<Option<SqlError>>,
    /// Bytes that the plan has grown by and that are not charged yet.
    expanded: Cell<usize>,
    /// Recursive common tables so far.
    recursions: Cell<u32>,
    views: Views,
    /// Bytes charged for it.
    charged: Cell<usize>,
    /// The charge, as long as no plan has it.
    charge: RefCell<Option<StatementCharge>>,
    /// What it has found missing for estimates.
    wanted: RefCell<Vec<Wanted>>,
    /// The plan would be another one for other values of the parameters.
    pub value_dependent: Cell<bool>,
    /// Rows were estimated that would be others for other values of the parameters.
    guessed_of_parameters: Cell<bool>,
    /// The plan is made to be shown.
    pub explains: Cell<bool>,
    /// The name in the last error 1054.
    unknown: RefCell<Option<String>>,
    /// What it has found of these ([`SelectPlan::texts_of_days`]).
    pub(crate) texts_of_days: RefCell<Vec<TextOfDay>>,
}

impl<'a> Planner<'a> {
    /// Plans in one go.
    pub fn new(state: &'a SqlContext) -> Planner<'a> {
        Planner {
            state,
            parameter_types: &[],
            pace: Pace::InOneGo,
            stopped: RefCell::new(None),
            expanded: Cell::new(0),
            recursions: Cell::new(0),
            views: Views::default(),
            charged: Cell::new(0),
            charge: RefCell::new(None),
            wanted: RefCell::new(Vec::new()),
            value_dependent: Cell::new(false),
            guessed_of_parameters: Cell::new(false),
            explains: Cell::new(false),
            unknown: RefCell::new(None),
            texts_of_days: RefCell::default(),
        }
    }

    /// Plans what takes little time; of the rest it says so ([`Planner::is_too_long`]).
    pub fn brief(state: &'a SqlContext) -> Planner<'a> {
        Planner { pace: Pace::Brief(Cell::new(BRIEF_BYTES)), ..Planner::new(state) }
    }

    /// Plans by steps: `give_way` is called when the slice of time is over.
    pub fn by_steps(state: &'a SqlContext, give_way: &'a dyn Fn()) -> Planner<'a> {
        Planner { pace: Pace::BySteps(give_way), ..Planner::new(state) }
    }
}

impl Planner<'_> {
    /// Announces work on this many bytes of a statement, and lets others run when it has been long enough.
    ///
    /// # Errors
    /// When the statement is to stop.
    pub fn work(&self, bytes: usize) -> Result<(), SqlError> {
        self.state.work(bytes)?;
        match &self.pace {
            Pace::InOneGo => {}
            Pace::Brief(left) => match left.get().checked_sub(bytes) {
                Some(rest) => left.set(rest),
                None => {
                    left.set(0);
                    return Err(errors::error(errors::INTERNAL_ERROR, &[&"planning takes long"]));
                }
            },
            Pace::BySteps(give_way) => {
                if self.state.slice_is_over() {
                    give_way();
                }
            }
        }
        Ok(())
    }

    /// That nothing has this name (1054). All errors of that number that planning gives are made here, so
    /// that [`Planner::unknown_name`] knows the name.
    pub(crate) fn unknown_column(&self, name: &dyn std::fmt::Display, clause: &str) -> SqlError {
        *self.unknown.borrow_mut() = Some(name.to_string());
        errors::error(errors::BAD_FIELD, &[name, &clause])
    }

    /// The name that nothing has, if an error says that.
    pub(crate) fn unknown_name(&self, error: &SqlError) -> Option<String> {
        self.unknown.borrow().clone().filter(|_| error.code == errors::BAD_FIELD)
    }

    /// Whether it failed because it would have taken long.
    pub fn is_too_long(&self) -> bool {
        matches!(&self.pace, Pace::Brief(left) if left.get() == 0)
    }

    /// A step of a walk through a bound tree: whether to go on. When not, [`Planner::outcome`] says why.
    pub(crate) fn walk(&self) -> bool {
        if self.stopped.borrow().is_some() {
            return false;
        }
        match self.work(NODE_BYTES) {
            Ok(()) => true,
            Err(error) => {
                *self.stopped.borrow_mut() = Some(error);
                false
            }
        }
    }

    /// The error of a walk that was to stop.
    pub(crate) fn outcome(&self) -> Result<(), SqlError> {
        self.stopped.take().map_or(Ok(()), Err)
    }

    /// What the plan has been charged so far.
    pub fn charged(&self) -> usize {
        self.charged.get()
    }

    /// Works on columns that the text does not name one by one, and charges what they take each.
    pub(crate) fn expand(&self, columns: usize, bytes: usize) -> Result<(), SqlError> {
        self.expand_by(columns, columns * bytes)
    }

    /// [`Planner::expand`] of columns that take this many bytes together.
    pub(crate) fn expand_by(&self, columns: usize, bytes: usize) -> Result<(), SqlError> {
        self.work(columns * NODE_BYTES)?;
        self.expanded.set(self.expanded.get() + bytes);
        if self.expanded.get() < EXPANDED_AT_ONCE { Ok(()) } else { self.charge_expanded() }
    }

    fn charge_expanded(&self) -> Result<(), SqlError> {
        let expanded = self.expanded.take();
        let more = self.state.memory.statement(expanded)?;
        self.charged.set(self.charged.get() + expanded);
        match &mut *self.charge.borrow_mut() {
            Some(charge) => charge.join(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// A plan with all that it has been charged.
    fn charged_plan<P>(&self, plan: P) -> Result<Charged<P>, SqlError> {
        if self.expanded.get() > 0 {
            self.charge_expanded()?;
        }
        Ok(Charged { plan, _charge: self.charge.take(), views: self.views.take_used() })
    }

    /// What is dropped elsewhere when planning takes long.
    pub(crate) fn elsewhere<T: Send + 'static>(&self, what: T) -> Elsewhere<T> {
        Elsewhere::new(what, matches!(self.pace, Pace::BySteps(_)))
    }

    /// Plans SELECT, INSERT, REPLACE, UPDATE, DELETE and LOAD DATA; `None` for a statement that is executed
    /// from its tree.
    pub fn data(&self, statement: &ast::Statement) -> Result<Option<Plan>, SqlError> {
        Ok(Some(match statement {
            ast::Statement::Select(query) => {
                let plan = self.select(query)?;
                if self.explains.get() {
                    self.check_texts_of_days()?;
                }
                let texts_of_days = self.texts_of_days.take();
                Plan::Select(self.charged_plan(SelectPlan { texts_of_days, ..plan })?)
            }
            ast::Statement::Insert(insert) => {
                let mut plan = self.insert(insert)?;
                if let Some(query) = &mut plan.query {
                    query.texts_of_days = self.texts_of_days.take();
                }
                Plan::Insert(self.charged_plan(plan)?)
            }
            ast::Statement::LoadData(load) => Plan::Load(self.charged_plan(self.load(load)?)?),
            ast::Statement::Update(update) if update.is_joined() => {
                self.multi_table_plan(self.multi_table_update(update)?)?
            }
            ast::Statement::Delete(delete) if delete.is_joined() => {
                self.multi_table_plan(self.multi_table_delete(delete)?)?
            }
            ast::Statement::Update(update) => Plan::Update(self.charged_plan(self.update(update)?)?),
            ast::Statement::Delete(delete) => Plan::Delete(self.charged_plan(self.delete(delete)?)?),
            _ => return Ok(None),
        }))
    }

    fn multi_table_plan(&self, mut plan: MultiTableChange) -> Result<Plan, SqlError> {
        plan.query.texts_of_days = self.texts_of_days.take();
        Ok(Plan::MultiTableChange(self.charged_plan(plan)?))
    }

    /// Refuses the constant texts beside days that it has found, of a statement that is not executed as it is
    /// planned.
    ///
    /// # Errors
    /// 1525.
    pub fn check_texts_of_days(&self) -> Result<(), SqlError> {
        strict::check_texts_of_days(&self.texts_of_days.borrow(), &Context::constant(self.state, &[]))
    }

    /// Plans INSERT into a table that is known already.
    pub fn insert_into(&self, source: Source, insert: &ast::Insert) -> Result<Plan, SqlError> {
        Ok(Plan::Insert(self.charged_plan(self.insert_rows(source, insert)?)?))
    }

    /// What a parameter counts as before it is known.
    pub fn parameter_type(&self, index: u16) -> Type {
        let of_text =
            || Type { collation: self.state.settings().connection_collation, ..Type::text(65_535 / 4) };
        let of_text = || self.state.parameters.bound(index).unwrap_or_else(of_text);
        self.parameter_types.get(usize::from(index)).copied().unwrap_or_else(of_text)
    }

    /// The type of a user variable as it is now.
    pub fn user_variable_type(&self, name: &str) -> Type {
        let value = self.state.user_variable(name);
        if value.is_null() { Type::text(65_535 / 4) } else { Type { nullable: true, ..value_type(&value) } }
    }

    /// The collation of this name.
    pub fn collation(&self, name: &str) -> Result<Collation, SqlError> {
        collation_named(name).ok_or_else(|| errors::error(errors::UNKNOWN_COLLATION, &[&name]))
    }

    /// The default collation of a character set.
    pub fn charset_collation(&self, name: &str) -> Result<Collation, SqlError> {
        charset_collation(name).ok_or_else(|| errors::error(errors::UNKNOWN_CHARACTER_SET, &[&name]))
    }

    /// The database meant where none is named.
    pub fn database_of(&self, name: &ast::TableName) -> Result<String, SqlError> {
        match &name.database {
            Some(database) => Ok(database.clone()),
            None => match self.state.current_database() {
                Some(database) => Ok(database.to_string()),
                None => Err(errors::error(errors::NO_DB, &[])),
            },
        }
    }

    /// A table of the engine.
    pub fn engine_table(&self, name: &ast::TableName) -> Result<Arc<Table>, SqlError> {
        let mut database = self.database_of(name)?;
        if let Some(private) = self.state.temporary.find(&database, &name.name) {
            if self.is_defining_view() {
                return Err(errors::error(errors::VIEW_SELECT_TMPTABLE, &[&name.name]));
            }
            if !self.is_in_view() {
                database = private;
            }
        }
        self.state.database.table(&database, &name.name).map_err(|error| match self.stand_in(name) {
            Ok(Some(view)) => errors::error(errors::OPEN_AS_READONLY, &[&view.name]),
            _ => crate::failure::engine(&error),
        })
    }
}

/// A collation by its name.
pub fn collation_named(name: &str) -> Option<Collation> {
    Collation::from_name(name)
}

/// The default collation of a character set.
pub fn charset_collation(name: &str) -> Option<Collation> {
    Charset::from_name(name).map(Charset::default_collation)
}
