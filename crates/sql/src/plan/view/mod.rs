//! Views: a name of FROM that stands for a query of the catalog.
//!
//! The text that the catalog keeps is parsed and planned where the view is named, with the rights of its
//! definer or of who uses it, in the collation that its literals had. What can go wrong then is that the
//! tables below are no longer what they were: error 1356, whatever the reason.
//!
//! A view of plain columns of one table is that table, seen through a [`Mask`]: the columns have other names,
//! the others have none, and its conditions come to those of the query. So indexes, locks and joins are the
//! table's, and rows can be changed through it (which conditions WITH CHECK OPTION asks for is decided here).
//! Any other view is a derived table.

mod children;
mod define;
mod names;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use untorn::schema::ColumnDef;
use untorn::types::Collation;
use untorn::view::{CheckOption, ViewAlgorithm, ViewDef, ViewSecurity};

pub use define::NewView;

use super::from::From;
use super::source::{Mask, Source, SourceKind};
use super::with::Around;
use super::{Condition, Planner, SelectPlan, Tables, created_columns};
use crate::ast::{self, Statement};
use crate::errors;
use crate::expr::rollup::for_each_child;
use crate::expr::{Expr, NODE_BYTES};
use crate::lexer::LexicalModes;
use crate::parser;
use crate::privilege::{Privileges, Rights};
use crate::result::SqlError;

/// Views inside views may be as high together as half of what a statement may be
/// ([`parser::HEIGHT_MAX`]): that much of the stack is kept for them.
const HEIGHT_MAX: u32 = parser::HEIGHT_MAX / 2;

/// A view that a plan expands.
#[derive(Clone, Debug)]
pub struct UsedView {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What it was when the plan was made.
    pub def: Arc<ViewDef>,
}

/// A view whose query is being planned.
struct Opened {
    database: String,
    name: String,
    /// Whose rights count; `None`: the session's.
    rights: Option<Arc<Rights>>,
    collation: Option<Collation>,
    /// The numbers of its columns that may not be read below it.
    denied: Vec<usize>,
}

/// The views of a statement.
#[derive(Default)]
pub(super) struct Views {
    /// Those at work, the innermost last.
    opened: RefCell<Vec<Opened>>,
    /// Heights of their trees.
    height: Cell<u32>,
    /// All that the plan depends on.
    used: RefCell<Vec<UsedView>>,
    /// What is planned is not executed: a view is made, or its columns are shown. What the SQL mode forbids
    /// is found when it is used.
    pub(super) only_defined: Cell<bool>,
}

impl Views {
    pub(super) fn take_used(&self) -> Vec<UsedView> {
        self.used.take()
    }
}

/// What an object below a view is read and changed with.
#[derive(Debug, Clone)]
pub struct Below {
    rights: Option<Arc<Rights>>,
    database: String,
    table: String,
    /// The names that it has for the columns of the table at the bottom.
    columns: Vec<String>,
}

/// A view's query, planned.
struct Opening {
    plan: SelectPlan,
    names: Vec<String>,
    rights: Option<Arc<Rights>>,
    /// The numbers of its columns that may not be read below it.
    denied: Vec<usize>,
}

impl Planner<'_> {
    /// Whether a view is being planned: it does not know the session's temporary tables.
    pub(crate) fn is_in_view(&self) -> bool {
        !self.views.opened.borrow().is_empty()
    }

    /// Whether the query at work is that of a view that is to be made.
    pub(super) fn is_defining_view(&self) -> bool {
        self.views.opened.borrow().last().is_some_and(|opened| opened.collation.is_none())
    }

    /// The collation of literals.
    pub fn literal_collation(&self) -> Collation {
        let of_view = self.views.opened.borrow().last().and_then(|opened| opened.collation);
        of_view.unwrap_or_else(|| self.state.settings().connection_collation)
    }

    /// Whose rights count here; `None`: the session's.
    pub(crate) fn acting_rights(&self) -> Option<Arc<Rights>> {
        self.views.opened.borrow().last().and_then(|opened| opened.rights.clone())
    }

    /// Requires privileges of whom the statement, or the view, acts for.
    pub(crate) fn require_here(
        &self,
        database: &str,
        table: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        match self.acting_rights() {
            Some(rights) => self.state.require_of(&rights, database, table, wanted),
            None if self.is_in_view() => self.state.require_on_base_or_virtual(database, table, wanted),
            None => self.state.require_on_table(database, table, wanted),
        }
    }

    /// The view of this name; a table comes first, a temporary one too.
    pub fn view_named(&self, name: &ast::TableName) -> Result<Option<UsedView>, SqlError> {
        let database = self.database_of(name)?;
        if !self.is_in_view() && self.state.temporary.find(&database, &name.name).is_some() {
            return Ok(None);
        }
        self.view_itself(name)
    }

    /// The view of this name, whatever temporary table hides it.
    pub fn view_itself(&self, name: &ast::TableName) -> Result<Option<UsedView>, SqlError> {
        let database = self.database_of(name)?;
        let def = self.state.database.view(&database, &name.name);
        Ok(def.map(|def| UsedView { database, name: name.name.clone(), def }))
    }

    /// Plans a view's query, but for its end, which depends on the query around it.
    fn open(&self, view: &UsedView) -> Result<Opening, SqlError> {
        let is_same = |opened: &Opened| opened.database == view.database && opened.name == view.name;
        if self.views.opened.borrow().iter().any(is_same) {
            return Err(errors::error(errors::VIEW_RECURSIVE, &[&view.database, &view.name]));
        }
        let rights = match view.def.security {
            ViewSecurity::Invoker => self.acting_rights(),
            ViewSecurity::Definer => {
                let (user, host) = &view.def.definer;
                let rights = self.state.facts.rights_of(user, host);
                Some(rights.ok_or_else(|| errors::error(errors::NO_SUCH_USER, &[user, host]))?)
            }
        };
        self.views.used.borrow_mut().push(view.clone());
        self.work(view.def.query.len())?;
        let parsed = parser::parse(view.def.query.as_bytes(), LexicalModes::of_kept())?;
        let before = self.views.height.get();
        let height = before + parsed.height + 1;
        if height > HEIGHT_MAX {
            return Err(errors::error(errors::STACK_OVERRUN, &[]));
        }
        let Statement::Select(query) = parsed.statement else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a view is no query"]));
        };
        self.views.height.set(height);
        self.views.opened.borrow_mut().push(Opened {
            database: view.database.clone(),
            name: view.name.clone(),
            rights: rights.clone(),
            collation: Some(view.def.collation),
            denied: Vec::new(),
        });
        let plan = self.unfinished(&query, Around { of_view: true, ..Around::default() });
        let opened = self.views.opened.borrow_mut().pop();
        self.views.height.set(before);
        let plan = plan.map_err(|error| hidden(error, view))?;
        let mut names = view.def.columns.clone();
        if names.is_empty() {
            names = plan.columns.metas().iter().map(|meta| meta.name.clone()).collect();
        }
        if names.len() != plan.items.len() {
            return Err(invalid(view));
        }
        let denied = opened.map(|opened| opened.denied).unwrap_or_default();
        Ok(Opening { plan, names, rights, denied })
    }

    /// The columns of a view, as the tables below are now.
    ///
    /// # Errors
    /// 1356 if it cannot be used.
    pub fn view_columns(&self, view: &UsedView) -> Result<Vec<ColumnDef>, SqlError> {
        let only_defined = self.views.only_defined.replace(true);
        let opened = self.open(view);
        self.views.only_defined.set(only_defined);
        let Opening { mut plan, names, .. } = opened?;
        self.finish_pending(&mut plan)?;
        let named = |(at, name)| ColumnDef { name, ..created_columns::column(&plan, at) };
        Ok(names.into_iter().enumerate().map(named).collect())
    }

    /// Whether rows can be changed through a view, as what it reads is now: a dump makes a view before the
    /// one that it reads, over one that only stands in for that. One that cannot be used is what it was when
    /// it was made.
    pub fn is_view_updatable(&self, view: &UsedView) -> bool {
        let only_defined = self.views.only_defined.replace(true);
        let opened = self.open(view);
        self.views.only_defined.set(only_defined);
        opened.map_or(view.def.updatable, |opening| is_plain_but_for_order(&opening.plan, view))
    }

    /// The tables below a view.
    ///
    /// # Errors
    /// 1356 if it cannot be used.
    pub fn view_tables(&self, view: &UsedView) -> Result<Tables, SqlError> {
        let Opening { mut plan, .. } = self.open(view)?;
        self.finish_pending(&mut plan)?;
        let mut found = Tables::new();
        plan.tables(&mut found);
        Ok(found)
    }

    /// A view as a source of a query, and its conditions where they become the query's.
    pub(super) fn view_source(
        &self,
        view: &UsedView,
        alias: Option<&str>,
        from: &From<'_>,
    ) -> Result<(Source, Vec<Condition>), SqlError> {
        let opening = self.open(view)?;
        let alias = alias.unwrap_or(&view.name);
        if is_plain(&opening.plan, view) && has_own_columns(&opening.plan) {
            let at = from.sources.len() as u16;
            let mut source = self.masked(view, opening)?;
            source.alias = alias.to_owned();
            let mask = source.mask.as_deref();
            let mut conditions = Vec::new();
            for condition in mask.into_iter().flat_map(|mask| &mask.conditions) {
                conditions.push(self.of_source(condition, at)?);
            }
            return Ok((source, conditions));
        }
        let Opening { mut plan, names, denied, .. } = opening;
        if !denied.is_empty() {
            return Err(invalid(view));
        }
        if plan.grouping.is_none() && plan.unions.is_empty() && plan.locking.is_none() {
            // Its rows are those of its tables, and are locked as such.
            plan.locking = from.locking;
        }
        let columns: Vec<_> = names.into_iter().zip(plan.types.iter().copied()).collect();
        let mut source = self.derived(alias, columns.into_iter(), SourceKind::Derived(Box::new(plan)))?;
        source.database.clone_from(&view.database);
        source.table.clone_from(&view.name);
        Ok((source, Vec::new()))
    }

    /// A view as the target of a change; `None`: its rows are not those of one table.
    pub(super) fn view_target(&self, view: &UsedView) -> Result<Option<Source>, SqlError> {
        let opening = self.open(view)?;
        if !is_plain_but_for_order(&opening.plan, view) {
            return Ok(None);
        }
        self.masked(view, opening).map(Some)
    }

    /// The table below a plain view, as the view shows it.
    fn masked(&self, view: &UsedView, opening: Opening) -> Result<Source, SqlError> {
        let Opening { mut plan, names, rights, denied } = opening;
        let internal = || errors::error(errors::INTERNAL_ERROR, &[&"a view has no table"]);
        let pending = *plan.pending.take().ok_or_else(internal)?;
        let table = plan.sources.pop().ok_or_else(internal)?;
        let (below_database, below_table) = (table.database.clone(), table.table.clone());
        let inner = table.mask.map(|mask| *mask).unwrap_or_default();
        let mut columns = table.columns;
        let below: Vec<String> = columns.iter_mut().map(|column| std::mem::take(&mut column.name)).collect();
        let denied = denied.iter().filter_map(|at| names.get(*at).cloned()).collect();
        let mut mask = Mask { denied, ..Mask::default() };
        for ((name, item), ty) in names.into_iter().zip(plan.items).zip(plan.types) {
            self.work(NODE_BYTES)?;
            let number = match item {
                Expr::Column { column, .. } => {
                    let shown = columns.get_mut(usize::from(column)).ok_or_else(internal)?;
                    if shown.name.is_empty() {
                        shown.name.clone_from(&name);
                    }
                    column
                }
                computed => {
                    mask.computed.push((computed, ty));
                    (columns.len() + mask.computed.len() - 1) as u16
                }
            };
            mask.shown.push((name, number));
        }
        let is_inner =
            |condition: &Condition| inner.conditions.iter().any(|inner| Arc::ptr_eq(inner, condition));
        mask.check = match view.def.check_option {
            CheckOption::None => inner.check,
            CheckOption::Cascaded => pending.conjuncts.clone(),
            CheckOption::Local => {
                let own = pending.conjuncts.iter().filter(|condition| !is_inner(condition)).cloned();
                own.chain(inner.check).collect()
            }
        };
        mask.conditions = pending.conjuncts;
        mask.hints = pending.hints.into_iter().next().unwrap_or_default();
        mask.below = inner.below;
        mask.below.push(Below { rights, database: below_database, table: below_table, columns: below });
        let (database, name) = (view.database.clone(), view.name.clone());
        let mut source = Source::new(database, name.clone(), name, columns, table.kind);
        source.mask = Some(Box::new(mask));
        Ok(source)
    }

    /// A condition on the only table of a view, as one on the `at`-th source of a query.
    fn of_source(&self, condition: &Condition, at: u16) -> Result<Condition, SqlError> {
        fn moved(expr: &mut Expr, at: u16) -> Result<(), SqlError> {
            if let Expr::Column { source, .. } = expr {
                *source = at;
            }
            for_each_child(expr, &mut |child| moved(child, at))
        }
        if at == 0 {
            return Ok(condition.clone());
        }
        let mut nodes = 0;
        condition.visit(&mut |_| {
            nodes += 1;
            true
        });
        self.expand_by(nodes, nodes * size_of::<Expr>())?;
        let mut condition = Expr::clone(condition);
        moved(&mut condition, at)?;
        Ok(Arc::new(condition))
    }

    /// The column of the view at work that comes next may not be read.
    pub(super) fn deny_item_of_view(&self, number: usize) {
        if let Some(opened) = self.views.opened.borrow_mut().last_mut() {
            opened.denied.push(number);
        }
    }

    /// Error 1356 for a column of a view that may not be read below it.
    pub(crate) fn require_column_of_view(&self, source: &Source, column: &str) -> Result<(), SqlError> {
        let denied = source.mask.iter().flat_map(|mask| &mask.denied);
        match denied.into_iter().any(|denied| denied.eq_ignore_ascii_case(column)) {
            true => Err(errors::error(errors::VIEW_INVALID, &[&source.database, &source.table])),
            false => Ok(()),
        }
    }

    /// The same for `*`.
    pub(super) fn require_all_columns_of_view(&self, source: &Source) -> Result<(), SqlError> {
        let denied = source.mask.iter().flat_map(|mask| &mask.denied).next();
        denied.map_or(Ok(()), |denied| self.require_column_of_view(source, denied))
    }

    /// Requires that rows may be changed through a view: by those in whose name the views below it read.
    pub(super) fn require_below(&self, source: &Source, wanted: Privileges) -> Result<(), SqlError> {
        let own = self.state.rights();
        for Below { rights, database, table, .. } in source.mask.iter().flat_map(|mask| &mask.below) {
            if !rights.as_ref().unwrap_or(&own).on_any_column(database, table).has(wanted) {
                return Err(errors::error(errors::VIEW_INVALID, &[&source.database, &source.table]));
            }
        }
        Ok(())
    }

    /// The same of one column, by its number.
    pub(crate) fn require_column_below(
        &self,
        source: &Source,
        column: u16,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        let own = self.state.rights();
        for below in source.mask.iter().flat_map(|mask| &mask.below) {
            // What a view computes is not assigned, which is said elsewhere.
            let Some(name) = below.columns.get(usize::from(column)) else { continue };
            let rights = below.rights.as_ref().unwrap_or(&own);
            if !rights.on_column(&below.database, &below.table, name).has(wanted) {
                return Err(errors::error(errors::VIEW_INVALID, &[&source.database, &source.table]));
            }
        }
        Ok(())
    }
}

/// 1356.
fn invalid(view: &UsedView) -> SqlError {
    errors::error(errors::VIEW_INVALID, &[&view.database, &view.name])
}

/// What is wrong below a view is not told to who uses it.
fn hidden(error: SqlError, view: &UsedView) -> SqlError {
    const BELOW: [u16; 12] = [
        errors::BAD_DB,
        errors::BAD_FIELD,
        errors::NO_SUCH_TABLE,
        errors::UNKNOWN_TABLE,
        errors::NON_UNIQ,
        errors::KEY_DOES_NOT_EXIST,
        errors::SP_DOES_NOT_EXIST,
        errors::TABLEACCESS_DENIED,
        errors::COLUMNACCESS_DENIED,
        errors::DBACCESS_DENIED,
        errors::SPECIFIC_ACCESS_DENIED,
        errors::VIEW_INVALID,
    ];
    if BELOW.contains(&error.code) { invalid(view) } else { error }
}

/// Whether the rows of a view are rows of one table, and their order is nobody's matter.
fn is_plain(plan: &SelectPlan, view: &UsedView) -> bool {
    plan.order.is_empty() && is_plain_but_for_order(plan, view)
}

fn is_plain_but_for_order(plan: &SelectPlan, view: &UsedView) -> bool {
    let one = matches!(&plan.sources[..], [Source { kind: SourceKind::Table(_), .. }]);
    one && view.def.algorithm != ViewAlgorithm::TempTable
        && plan.pending.is_some()
        && plan.grouping.is_none()
        && !plan.distinct
        && plan.limit.is_none()
        && plan.windowed.is_none()
        && plan.recursion.is_none()
        && plan.unions.is_empty()
        && plan.subqueries.is_empty()
        && plan.locking.is_none()
        && !plan.counts_all
}

/// Whether each column of a view is another column of its table.
fn has_own_columns(plan: &SelectPlan) -> bool {
    let mut seen = std::collections::HashSet::new();
    plan.items.iter().all(|item| matches!(item, Expr::Column { column, .. } if seen.insert(*column)))
}
