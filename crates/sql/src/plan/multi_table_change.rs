//! Plans of multi-table UPDATE and DELETE: of joins.
//!
//! The join is a query like any other ([`MultiTableChange::query`]). Its sources that are changed are locked
//! for that, and come with their clustered key ([`SelectPlan::changed`]): the output is, for each of them,
//! the key and then the values that its columns are assigned. All values are those of the rows before the
//! statement, as in standard SQL and MariaDB; MySQL does the same, but for the table that it reads first.

use std::sync::Arc;

use untorn::Table;

use super::apply;
use super::change::{Assigned, ColumnDefault, assigned, defaulted, refuse_generated};
use super::finish::Pending;
use super::from::From;
use super::query::JoinedConditions;
use super::row_rules::{self, RowRules};
use super::source::Source;
use super::target_read::refuse_reading_target;
use super::with::{Around, With};
use super::{Planner, SelectPlan};
use crate::ast;
use crate::errors;
use crate::expr::Expr;
use crate::expr::bind::Binder;
use crate::expr::types::Type;
use crate::privilege::{Privileges, Rights};
use crate::privilege_checks::ColumnAccess;
use crate::result::{ResultColumns, SqlError};

/// UPDATE or DELETE of a join.
#[derive(Debug)]
pub struct MultiTableChange {
    /// The join.
    pub query: SelectPlan,
    /// What is changed, in the order in which it is done.
    pub targets: Vec<MultiTableTarget>,
    /// IGNORE.
    pub ignore: bool,
}

/// A table of the join that is changed.
#[derive(Debug)]
pub struct MultiTableTarget {
    /// Its source.
    pub source: u16,
    /// The number of the first target that is the same table, in DELETE: a row that is found under two names
    /// is deleted once.
    pub group: usize,
    /// Where its key stands in the query's output; its new values follow.
    pub key_at: usize,
    /// UPDATE: what becomes of a row. DELETE: none.
    pub update: Option<MultiTableUpdate>,
}

/// SET, as far as one table goes.
#[derive(Debug)]
pub struct MultiTableUpdate {
    /// Columns; a value is the next one in the query's output, DEFAULT is not there.
    pub assignments: Vec<(u16, NewValue)>,
    /// Defaults of all columns.
    pub defaults: Vec<ColumnDefault>,
    /// What is computed and checked of each row.
    pub rules: Option<Box<RowRules>>,
    /// Columns that are looked at when the row is changed.
    pub needed: Vec<u16>,
}

/// Where an assigned value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// The query's output.
    Output,
    /// DEFAULT.
    Default,
}

impl MultiTableChange {
    /// UPDATE rather than DELETE.
    pub fn updates(&self) -> bool {
        self.targets.iter().any(|target| target.update.is_some())
    }

    /// Whether it changes a table.
    pub fn changes(&self, table: &Arc<Table>) -> bool {
        let mut changed = self.query.changed.iter().filter_map(|at| self.table(*at));
        changed.any(|changed| Arc::ptr_eq(changed, table))
    }

    /// The table of a source.
    pub fn table(&self, source: u16) -> Option<&Arc<Table>> {
        self.query.sources.get(usize::from(source)).and_then(Source::engine_table)
    }
}

/// The assignments to one source: columns, with bound values.
struct Assignments {
    source: u16,
    list: Vec<(u16, Assigned)>,
}

impl Planner<'_> {
    /// Requires of a table that its rows may be changed or read.
    pub(super) fn require_change_or_reading(
        &self,
        name: &ast::TableName,
        change: Privileges,
    ) -> Result<Option<Box<ColumnAccess>>, SqlError> {
        let database = self.database_of(name)?;
        let may_change = self.state.rights().on_any_column(&database, &name.name).has(change);
        let wanted = if may_change { change } else { Privileges::SELECT };
        self.require_on_some_columns(name, wanted, change)
    }

    /// Plans UPDATE of a join.
    pub fn multi_table_update(&self, update: &ast::Update) -> Result<MultiTableChange, SqlError> {
        let mut from = From { changes: Some(Privileges::UPDATE), ..From::default() };
        let with = With::new(&update.with, Around::default());
        let around = with.within();
        self.from(&update.table, &mut from, around)?;
        let sources = self.elsewhere(std::mem::take(&mut from.sources));
        let mut binder = Binder { around, ..Binder::new(self, &sources) };
        let conditions = self.joined_conditions(&mut binder, &mut from, update.filter.as_ref())?;
        let mut all: Vec<Assignments> = Vec::new();
        for assignment in &update.assignments {
            binder.clause = "field list";
            let (source, column) = assigned_column(&mut binder, assignment)?;
            let value = assigned(&mut binder, &assignment.value, source, column)?;
            match all.iter_mut().find(|other| other.source == source) {
                Some(assignments) => assignments.list.push((column, value)),
                None => all.push(Assignments { source, list: vec![(column, value)] }),
            }
        }
        all.sort_by_key(|assignments| assignments.source);
        let subqueries = binder.subqueries;
        let sources = sources.into_inner();
        let (mut items, mut targets) = (Vec::new(), Vec::new());
        for Assignments { source, list } in all {
            let key_at = items.len();
            items.push(Expr::Literal(crate::value::Value::Null));
            let update = self.joined_assignments(&sources[usize::from(source)], list, &mut items)?;
            targets.push(MultiTableTarget { source, group: targets.len(), key_at, update: Some(update) });
        }
        check_keys(&sources, &targets)?;
        let query = self.joined_query(sources, subqueries, items, &targets)?;
        let change = MultiTableChange { query, targets, ignore: update.ignore };
        self.planned_change(change, conditions, &from, Privileges::UPDATE)
    }

    /// Plans DELETE from a join.
    pub fn multi_table_delete(&self, delete: &ast::Delete) -> Result<MultiTableChange, SqlError> {
        // An alias, too, is looked for in the current database.
        delete.targets.iter().try_for_each(|name| self.database_of(name).map(drop))?;
        let mut from = From { changes: Some(Privileges::DELETE), ..From::default() };
        let with = With::new(&delete.with, Around::default());
        let around = with.within();
        self.from(&delete.table, &mut from, around)?;
        let sources = self.elsewhere(std::mem::take(&mut from.sources));
        let mut changed: Vec<u16> = Vec::new();
        for name in &delete.targets {
            let source = self.deleted_source(&sources, &delete.table, name)?;
            if changed.contains(&source) {
                return Err(errors::error(errors::NONUNIQ_TABLE, &[&name.name]));
            }
            changed.push(source);
        }
        let mut binder = Binder { around, ..Binder::new(self, &sources) };
        let conditions = self.joined_conditions(&mut binder, &mut from, delete.filter.as_ref())?;
        let subqueries = binder.subqueries;
        let sources = sources.into_inner();
        let order = children_first(&sources, changed);
        let table = |source: u16| sources[usize::from(source)].engine_table().map(Arc::as_ptr);
        let target = |(key_at, source): (usize, &u16)| MultiTableTarget {
            source: *source,
            group: order.iter().position(|other| table(*other) == table(*source)).unwrap_or(key_at),
            key_at,
            update: None,
        };
        let targets = order.iter().enumerate().map(target).collect::<Vec<_>>();
        let items = targets.iter().map(|_| Expr::Literal(crate::value::Value::Null)).collect();
        let query = self.joined_query(sources, subqueries, items, &targets)?;
        let change = MultiTableChange { query, targets, ignore: delete.ignore };
        self.planned_change(change, conditions, &from, Privileges::DELETE)
    }

    /// The source of `from` that DELETE names as one to delete from: by its alias, which belongs to no
    /// database, or, where it has none, by its name, which without a database is one of the current database.
    pub(super) fn deleted_source(
        &self,
        sources: &[Source],
        from: &ast::TableRef,
        name: &ast::TableName,
    ) -> Result<u16, SqlError> {
        let current = self.database_of(name)?;
        let mut aliased = Vec::with_capacity(sources.len());
        from.has_aliases(&mut aliased);
        debug_assert_eq!(aliased.len(), sources.len());
        let is_meant = |(source, aliased): &(&Source, &bool)| match aliased {
            true => name.database.is_none() && source.answers_to(None, Some(&name.name)),
            false => source.answers_to(Some(&current), Some(&name.name)),
        };
        let mut found = sources.iter().zip(&aliased).enumerate().filter(|(_, source)| is_meant(source));
        let unknown = || errors::error(errors::UNKNOWN_TABLE, &[&name.name, &"MULTI DELETE"]);
        let (at, (target, _)) = found.next().ok_or_else(unknown)?;
        if found.next().is_some() {
            return Err(errors::error(errors::NONUNIQ_TABLE, &[&name.name]));
        }
        if target.engine_table().is_none() {
            return Err(errors::error(errors::NON_UPDATABLE_TABLE, &[&target.alias, &"DELETE"]));
        }
        Ok(at as u16)
    }

    /// What is assigned to one source; its values are added to the items.
    fn joined_assignments(
        &self,
        source: &Source,
        mut list: Vec<(u16, Assigned)>,
        items: &mut Vec<Expr>,
    ) -> Result<MultiTableUpdate, SqlError> {
        let Some(table) = source.engine_table() else {
            return Err(errors::error(errors::NON_UPDATABLE_TABLE, &[&source.alias, &"UPDATE"]));
        };
        let columns = list.iter().map(|(column, _)| *column);
        let set: Vec<u16> = columns.chain(table.def.columns_on_update()).collect();
        let (defaults, rules) =
            self.defaults_and_rules(&table.def, std::slice::from_ref(source), Some(&set))?;
        refuse_generated(&list, &defaults, source)?;
        list.retain(|(column, _)| table.def.columns[usize::from(*column)].generated.is_none());
        let mut needed: Vec<u16> = Vec::new();
        let of_defaults = list
            .iter()
            .filter_map(|(column, assigned)| defaulted(*column, assigned, &defaults))
            .flat_map(row_rules::reads);
        let of_rules = rules.iter().flat_map(|rules| rules.needed.iter().copied());
        for column in set.iter().copied().chain(of_defaults).chain(of_rules) {
            if !needed.contains(&column) {
                needed.push(column);
            }
        }
        let mut assignments = Vec::with_capacity(list.len());
        for (column, assigned) in list {
            let value = match assigned {
                Assigned::Value(expr) => {
                    items.push(expr);
                    NewValue::Output
                }
                Assigned::Default => NewValue::Default,
            };
            assignments.push((column, value));
        }
        Ok(MultiTableUpdate { assignments, defaults, rules, needed })
    }

    /// The query, but for its steps.
    fn joined_query(
        &self,
        sources: Vec<Source>,
        subqueries: Vec<SelectPlan>,
        items: Vec<Expr>,
        targets: &[MultiTableTarget],
    ) -> Result<SelectPlan, SqlError> {
        // Nobody is shown them.
        let types = vec![Type::bytes(0); items.len()];
        let columns = ResultColumns::new(Vec::new());
        let changed = targets.iter().map(|target| target.source).collect();
        self.expand(items.len(), size_of::<Expr>() + size_of::<Type>())?;
        Ok(SelectPlan { sources, subqueries, changed, ..SelectPlan::of_items(items, types, columns) })
    }

    /// Plans the join, and checks what the account may do.
    fn planned_change(
        &self,
        mut change: MultiTableChange,
        JoinedConditions { conjuncts, outer }: JoinedConditions,
        from: &From<'_>,
        wanted: Privileges,
    ) -> Result<MultiTableChange, SqlError> {
        let query = &mut change.query;
        let operation = if wanted == Privileges::DELETE { "DELETE" } else { "UPDATE" };
        for target in &query.changed {
            refuse_reading_target(&query.sources[usize::from(*target)], operation, &query.subqueries)?;
        }
        let (hints, straight) = (from.hints.clone(), from.straight);
        self.finish(query, Pending { conjuncts, outer, hints, straight })?;
        for (at, source) in query.sources.iter().enumerate() {
            if source.engine_table().is_none() {
                continue;
            }
            if query.changed.contains(&(at as u16)) {
                // Of UPDATE the columns are checked where SET names them.
                if wanted == Privileges::DELETE {
                    self.state.require_on_table(&source.database, &source.table, wanted)?;
                }
                self.require_below(source, wanted)?;
            } else {
                let read = |rights: &Rights| rights.on_any_column(&source.database, &source.table);
                if !read(&self.state.rights()).has(Privileges::SELECT) {
                    self.state.require_on_table(&source.database, &source.table, Privileges::SELECT)?;
                }
            }
        }
        for step in &mut query.steps {
            if query.changed.contains(&(step.source as u16)) {
                // The rows themselves are wanted, not only the index.
                step.path.covering = false;
            }
        }
        for target in &change.targets {
            let column = query.sources[usize::from(target.source)].columns.len() as u16;
            query.items[target.key_at] = Expr::Column { source: target.source, column };
        }
        query.plain_columns = None;
        debug_assert!(apply::following(&query.items[0], &query.subqueries).is_empty(), "a key is no query");
        Ok(change)
    }
}

/// The column that SET names.
fn assigned_column(
    binder: &mut Binder<'_, '_>,
    assignment: &ast::Assignment,
) -> Result<(u16, u16), SqlError> {
    let ast::Assignment { database, table, column: name, .. } = assignment;
    let named = ast::Expr::Column { database: database.clone(), table: table.clone(), name: name.clone() };
    binder.privilege = Privileges::UPDATE;
    let bound = binder.bind(&named);
    binder.privilege = Privileges::SELECT;
    let (bound, _) = bound?;
    let Expr::Column { source, column } = bound else {
        return Err(binder.planner.unknown_column(name, "field list"));
    };
    // Those too in whose name the views below act.
    let of = &binder.sources[usize::from(source)];
    binder.planner.require_column_below(of, column, Privileges::UPDATE)?;
    Ok((source, column))
}

/// A table that is changed under two names must keep its primary key: rows are found by it.
fn check_keys(sources: &[Source], targets: &[MultiTableTarget]) -> Result<(), SqlError> {
    let moves = |target: &MultiTableTarget| {
        let table = sources[usize::from(target.source)].engine_table();
        let key = table.and_then(|table| table.def.clustered_key());
        let parts = key.map_or(&[][..], |key| &key.parts);
        let update = target.update.as_ref();
        update.is_some_and(|update| {
            update.assignments.iter().any(|(column, _)| parts.iter().any(|part| part.column == *column))
        })
    };
    for (at, one) in targets.iter().enumerate() {
        for other in &targets[at + 1..] {
            let [first, second] = [one, other].map(|target| &sources[usize::from(target.source)]);
            let same = match (first.engine_table(), second.engine_table()) {
                (Some(first), Some(second)) => Arc::ptr_eq(first, second),
                _ => false,
            };
            if same && (moves(one) || moves(other)) {
                return Err(errors::error(errors::MULTI_UPDATE_KEY_CONFLICT, &[&first.alias, &second.alias]));
            }
        }
    }
    Ok(())
}

/// Tables in an order in which rows that refer to others are deleted before those.
fn children_first(sources: &[Source], mut left: Vec<u16>) -> Vec<u16> {
    left.sort_unstable();
    let table = |source: u16| sources[usize::from(source)].engine_table();
    let refers = |from: u16, to: u16| match (table(from), table(to)) {
        (Some(from), Some(to)) if !Arc::ptr_eq(from, to) => {
            from.def.foreign_keys.iter().any(|key| key.database == to.database && key.table == to.name)
        }
        _ => false,
    };
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = left.iter().position(|to| !left.iter().any(|from| refers(*from, *to)));
        order.push(left.remove(free.unwrap_or(0)));
    }
    order
}
