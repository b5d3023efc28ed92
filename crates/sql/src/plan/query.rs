//! Planning SELECT: names are bound here; then the join's order and the paths are chosen (`finish.rs`).
//!
//! A query expression is one SELECT or a set operation of several. The parts of one have their columns of the
//! common types ([`crate::expr::bind::common_type`]) and take ORDER BY and LIMIT together, by positions and
//! names of the first part.
//!
//! One SELECT is bound in the order in which its names are visible: FROM (`from.rs`), conditions, output,
//! GROUP BY, HAVING, ORDER BY. It is finished later, when the query around it is bound too and may have given
//! it conditions (`push.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use untorn::types::Collation;

use super::dependence::Rows;
use super::finish::Pending;
use super::from::{From, Shown};
use super::full_group::Grouped;
use super::order_by_members::read_members;
use super::outer_join::{OuterJoin, around_mut};
use super::source::{Source, SourceKind};
use super::with::{Around, With};
use super::{Condition, Grouping, Plan, Planner, SelectPlan, ValuePlan};
use crate::ast::{self, SelectItem};
use crate::background_drop::Elsewhere;
use crate::errors;
use crate::expr::Expr;
use crate::expr::bind::collation::collated;
use crate::expr::bind::common_type::{fitting, in_variable};
use crate::expr::bind::window::check as check_windows;
use crate::expr::bind::{Binder, Bound, NameRule};
use crate::expr::rollup::GroupKeys;
use crate::expr::select_list::SelectList;
use crate::expr::types::Type;
use crate::privilege::Privileges;
use crate::result::{ColumnMeta, ResultColumns, SqlError, column_flag, kind};
use crate::value::Value;

/// What a column of a result takes beside its definition for the client: the expression and its type, once
/// more for a moment.
const ITEM_BYTES: usize = 2 * (size_of::<Expr>() + size_of::<Type>());

/// What a SELECT takes that has nothing in it. There may be one for every eight bytes of a UNION.
const SELECT_BYTES: usize = size_of::<SelectPlan>() + 512;

/// Columns of one SELECT are numbered with 16 bits.
const ITEMS_MAX: usize = u16::MAX as usize;

/// The bound conditions of a SELECT.
pub(super) struct JoinedConditions {
    /// They hold for every row of the result.
    pub(super) conjuncts: Vec<Condition>,
    /// Outer joins.
    pub(super) outer: Vec<OuterJoin>,
}

impl Planner<'_> {
    /// Plans a query that is a statement.
    pub fn select(&self, query: &ast::Query) -> Result<SelectPlan, SqlError> {
        if matches!(query.into, ast::Destination::File(_)) {
            self.state.require_any(Privileges::FILE)?;
        }
        let mut plan = self.unfinished(query, Around::default())?;
        if let ast::Destination::Variables(names) = &query.into
            && names.len() != plan.types.len()
        {
            return Err(errors::error(errors::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
        }
        plan.into = query.into.clone();
        self.finish_pending(&mut plan)?;
        Ok(plan)
    }

    /// Plans a query expression, which may stand inside another.
    pub fn query(&self, query: &ast::Query, around: Around<'_>) -> Result<SelectPlan, SqlError> {
        let mut plan = self.unfinished(query, around)?;
        self.finish_pending(&mut plan)?;
        Ok(plan)
    }

    /// Binds a query expression. A single SELECT is finished later.
    pub(super) fn unfinished(&self, query: &ast::Query, around: Around<'_>) -> Result<SelectPlan, SqlError> {
        let with = With::new(&query.with, around);
        let around = if query.with.is_empty() { around } else { with.within() };
        let Some(((_, first), rest)) = query.selects.split_first() else {
            return Err(errors::error(errors::EMPTY_QUERY, &[]));
        };
        if rest.is_empty() {
            return self.single(first, &query.order_by, query.limit.as_ref(), query.locking, around);
        }
        // Their rows are compared with each other: all columns are read.
        let around = Around { of_existence: false, of_view: false, ..around };
        let mut plan = self.single(first, &[], None, None, around)?;
        self.finish_pending(&mut plan)?;
        let mut types = plan.types.clone();
        for (all, select) in rest {
            let mut next = self.single(select, &[], None, None, around)?;
            self.finish_pending(&mut next)?;
            if next.items.len() != plan.items.len() {
                return Err(errors::error(errors::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            for (ty, other) in types.iter_mut().zip(&next.types) {
                // Every row of an EXCEPT is one of the left side, of an INTERSECT one of both.
                let nullable = match query.operation {
                    ast::SetOperation::Union => ty.nullable || other.nullable,
                    ast::SetOperation::Except => ty.nullable,
                    ast::SetOperation::Intersect => ty.nullable && other.nullable,
                };
                *ty = Type { nullable, ..ty.union(*other) };
            }
            plan.unions.push((*all, next));
        }
        plan.operation = query.operation;
        let names: Vec<String> = plan.columns.metas().iter().map(|meta| meta.name.clone()).collect();
        plan.columns = ResultColumns::new(types.iter().zip(&names).map(|(ty, name)| ty.meta(name)).collect());
        let own = std::mem::replace(&mut plan.types, types);
        plan.convert_items(&own)?;
        let types = plan.types.clone();
        for (_, next) in &mut plan.unions {
            let own = std::mem::replace(&mut next.types, types.clone());
            next.convert_items(&own)?;
        }
        let Some(order) = self.order_of_whole(&query.order_by, &names, &plan.types, around)? else {
            return self.ordered_outside(query, around);
        };
        plan.order = order;
        plan.limit = self.limit(query.limit.as_ref())?;
        Ok(plan)
    }

    /// ORDER BY of several SELECTs: it has the columns of the result, by position and by the names of the
    /// first SELECT. `None`: there are subqueries in it.
    fn order_of_whole(
        &self,
        order_by: &[ast::OrderItem],
        names: &[String],
        types: &[Type],
        around: Around<'_>,
    ) -> Result<Option<Vec<(Expr, bool)>>, SqlError> {
        let mut order = Vec::with_capacity(order_by.len());
        if order_by.is_empty() {
            return Ok(Some(order));
        }
        let column = |(at, ty): (usize, &Type)| (Expr::Column { source: 0, column: at as u16 }, *ty);
        let entries = self.elsewhere(types.iter().enumerate().map(column).collect());
        let columns: Vec<(String, Type)> = names.iter().cloned().zip(types.iter().copied()).collect();
        let source = [self.derived("", columns.into_iter(), SourceKind::Definition(Vec::new()))?];
        let mut binder =
            Binder { around, clause: "order clause", rule: NameRule::Whole, ..Binder::new(self, &source) };
        binder.select_list = SelectList::new(entries);
        binder.select_list.give_names(self, names.iter().map(String::as_str))?;
        (binder.aggregates_allowed, binder.windows_allowed) = (true, true);
        for (at, item) in order_by.iter().enumerate() {
            let refused = |code| Err(errors::error(code, &[&(at + 1)]));
            binder.rule = match &item.expr {
                ast::Expr::Column { table: None, .. } => NameRule::SelectList,
                _ => NameRule::Whole,
            };
            let expr = match binder.position(&item.expr)? {
                Some((expr, _)) => expr,
                None => binder.bind(&item.expr)?.0,
            };
            if !binder.aggregates.is_empty() {
                return refused(errors::AGGREGATE_ORDER_FOR_UNION);
            }
            if !binder.windows.is_empty() {
                return refused(errors::AGGREGATE_ORDER_FOR_UNION);
            }
            order.push((expr, item.descending));
        }
        Ok(binder.subqueries.is_empty().then_some(order))
    }

    /// Plans several SELECTs whose rows are sorted by what subqueries say of them: they are a derived table.
    fn ordered_outside(&self, query: &ast::Query, around: Around<'_>) -> Result<SelectPlan, SqlError> {
        let whole = ast::Query {
            with: Vec::new(),
            order_by: Vec::new(),
            limit: None,
            locking: None,
            into: ast::Destination::Client,
            ..query.clone()
        };
        let items = vec![SelectItem::Star { database: None, table: None }];
        let from = Some(ast::TableRef::part(whole));
        let select = ast::Select { items, from, ..ast::Select::default() };
        self.single(&select, &query.order_by, query.limit.as_ref(), None, around)
    }

    /// Plans a value that stands alone, as in SET; with subqueries it is a query, whose result goes into a
    /// variable.
    pub fn value(&self, expr: &ast::Expr, into: &str) -> Result<ValuePlan, SqlError> {
        let mut binder = Binder::new(self, &[]);
        let (bound, ty) = in_variable(binder.bind(expr)?);
        if binder.subqueries.is_empty() {
            return Ok(ValuePlan::Constant(bound));
        }
        let columns = ResultColumns::new(vec![ty.meta("")]);
        let mut plan = SelectPlan::of_items(vec![bound], vec![ty], columns);
        plan.subqueries = binder.subqueries;
        plan.into = ast::Destination::Variables(vec![into.to_owned()]);
        plan.texts_of_days = self.texts_of_days.take();
        Ok(ValuePlan::Query(Box::new(Plan::Select(self.charged_plan(plan)?))))
    }

    /// LIMIT and OFFSET, bound.
    pub fn limit(&self, limit: Option<&ast::Limit>) -> Result<Option<(Expr, Option<Expr>)>, SqlError> {
        let Some(limit) = limit else { return Ok(None) };
        for said in std::iter::once(&limit.count).chain(&limit.offset) {
            if let ast::Expr::Parameter(index) = said {
                self.state.parameters.note_limit(*index);
            }
        }
        let mut binder = Binder::new(self, &[]);
        let count = binder.bind(&limit.count)?.0;
        let offset = match &limit.offset {
            Some(offset) => Some(binder.bind(offset)?.0),
            None => None,
        };
        Ok(Some((count, offset)))
    }

    fn single(
        &self,
        select: &ast::Select,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
        locking: Option<ast::Locking>,
        around: Around<'_>,
    ) -> Result<SelectPlan, SqlError> {
        self.expand(1, SELECT_BYTES)?;
        let (of_members, of_rows) = (around.of_members, !uses_its_items(select, order_by));
        let (of_existence, of_view) = (around.of_existence && of_rows, around.of_view && of_rows);
        let around = Around { of_members: false, of_existence: false, of_view: false, ..around };
        let mut from = From { locking, ..From::default() };
        let shown = match &select.from {
            Some(table) => self.from(table, &mut from, around)?,
            None => Shown::new(),
        };
        let sources = self.elsewhere(std::mem::take(&mut from.sources));
        check_windows(&select.windows)?;
        let of_query = Binder::new(self, &sources);
        let mut binder = Binder { around, of_existence, of_view, named_windows: &select.windows, ..of_query };
        let JoinedConditions { mut conjuncts, outer } =
            self.joined_conditions(&mut binder, &mut from, select.filter.as_ref())?;
        // Output.
        binder.clause = "field list";
        (binder.aggregates_allowed, binder.windows_allowed) = (true, !select.is_values);
        let mut metas = self.items(&mut binder, &shown, select)?;
        if !(select.group_by.is_empty() && select.having.is_none() && order_by.is_empty()) {
            binder.select_list.give_names(self, metas.iter().map(|meta| meta.name.as_str()))?;
        }
        binder.windows_allowed = false;
        let (keys, entries) = self.group_keys(&mut binder, select, &metas)?;
        let groups = GroupKeys::new(self, &keys, select.rollup);
        mark_items(&mut binder, &groups, &entries, &mut metas)?;
        binder.aggregates_allowed = true;
        binder.clause = "having clause";
        binder.rule = NameRule::Having;
        let mut having = None;
        if let Some(condition) = &select.having {
            binder.selected = binder.select_list.columns(self)?.collect();
            let mut condition = binder.condition(condition)?;
            groups.mark_in(&binder, &mut condition)?;
            having = Some(condition);
        }
        binder.windows_allowed = true;
        let (order, places) = self.order_keys(&mut binder, select, order_by, &groups)?;
        binder.bind_unused_windows()?;
        let Binder { aggregates, mut windows, mut subqueries, select_list, .. } = binder;
        if select.rollup {
            windows.iter_mut().flat_map(|call| call.exprs_mut()).try_for_each(|expr| groups.mark(expr))?;
            // What subqueries read of the groups is rolled up, too.
            let captures = subqueries.iter_mut().flat_map(|plan| &mut plan.captures);
            captures.into_iter().try_for_each(|capture| groups.mark(capture))?;
        }
        let (items, types): (Vec<Expr>, Vec<Type>) = select_list.into_entries().into_iter().unzip();
        let grouped = !aggregates.is_empty() || !keys.is_empty();
        if !grouped && let Some(having) = having.take() {
            // Of single rows it says what WHERE says, and knows the aliases.
            push_conjuncts(having, &mut conjuncts);
        }
        // Without aggregates EXISTS and its like look at the rows whatever their groups are.
        let needs_groups = !(of_members && aggregates.is_empty() && having.is_none() && windows.is_empty());
        self.check_groups(
            &Grouped {
                rows: Rows {
                    sources: &sources,
                    conjuncts: &conjuncts,
                    outer: &outer,
                    not_null: HashSet::new(),
                },
                keys: &keys,
                rollup: select.rollup,
                items: &items,
                having: having.as_ref(),
                order: &order,
                places: &places,
                aggregates: &aggregates,
                windows: &windows,
                subqueries: &subqueries,
            },
            grouped && needs_groups,
            select.distinct && !of_members && (!grouped || !keys.is_empty()),
        )?;
        let grouping = grouped.then(|| Grouping::new(keys, aggregates, having, select.rollup));
        let columns = ResultColumns::new(metas.into_inner());
        let mut plan = SelectPlan {
            sources: sources.into_inner(),
            grouping,
            distinct: select.distinct,
            order,
            limit: self.limit(limit)?,
            locking,
            subqueries,
            counts_all: select.counts_all,
            ..SelectPlan::of_items(items, types, columns)
        };
        let straight = from.straight || select.straight;
        plan.pending = Some(Box::new(Pending { conjuncts, outer, hints: from.hints, straight }));
        if windows.is_empty() { Ok(plan) } else { self.windowed(plan, windows, &select.windows) }
    }

    /// WHERE and the conditions of the joins. Those of inner joins count as conditions of WHERE.
    pub(super) fn joined_conditions(
        &self,
        binder: &mut Binder<'_, '_>,
        from: &mut From<'_>,
        filter: Option<&ast::Expr>,
    ) -> Result<JoinedConditions, SqlError> {
        let mut conjuncts = Vec::new();
        binder.clause = "on clause";
        let joins = from.outer.iter().map(|join| (join.inner, join.sources.end - 1));
        let mut outer: Vec<OuterJoin> =
            joins.map(|(first, last)| OuterJoin { first, last, on: Vec::new() }).collect();
        for (condition, visible, of) in &from.conditions {
            binder.visible = visible.clone();
            let join = of.and_then(|of| around_mut(&mut outer, of));
            let list = join.map_or(&mut conjuncts, |join| &mut join.on);
            push_conjuncts(binder.filter(condition)?, list);
        }
        for (join, written) in outer.iter_mut().zip(&from.outer) {
            binder.visible = written.sources.clone();
            if let Some(condition) = written.on {
                push_conjuncts(binder.filter(condition)?, &mut join.on);
            }
        }
        binder.visible = 0..binder.sources.len();
        let equalities = std::mem::take(&mut from.equalities);
        let equalities = equalities.into_iter().map(|(equality, of)| (of, vec![Arc::new(equality)]));
        // Of the inner side of an outer join only the view's rows are joined; the others are not missing.
        let of_views = std::mem::take(&mut from.of_views).into_iter().map(|(of, list)| (Some(of), list));
        for (of, list) in equalities.chain(of_views) {
            let join = of.and_then(|of| around_mut(&mut outer, of));
            join.map_or(&mut conjuncts, |join| &mut join.on).extend(list);
        }
        binder.clause = "where clause";
        if let Some(filter) = filter {
            push_conjuncts(binder.filter(filter)?, &mut conjuncts);
        }
        Ok(JoinedConditions { conjuncts, outer })
    }

    /// GROUP BY, each expression once; all of them WITH ROLLUP, where each has groups of its own.
    fn group_keys(
        &self,
        binder: &mut Binder<'_, '_>,
        select: &ast::Select,
        metas: &[ColumnMeta],
    ) -> Result<(Vec<Expr>, Vec<Option<usize>>), SqlError> {
        binder.aggregates_allowed = false;
        binder.clause = "group statement";
        let (mut keys, mut entries, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for key in &select.group_by {
            binder.rule = if is_name(key) { NameRule::Group } else { NameRule::Tables };
            let listed = match binder.position(key)? {
                None => self.listed_subquery(binder, select, key)?,
                entry => entry,
            };
            let expr = match listed {
                Some((expr, _)) => expr,
                None => binder.bind(key)?.0,
            };
            if !expr.visit(&mut |inner| !matches!(inner, Expr::Aggregate(_) | Expr::Window(_)) && self.walk())
            {
                self.outcome()?;
                let name = match key {
                    ast::Expr::Column { name, .. } => name.as_str(),
                    ast::Expr::Integer(n) => metas.get(*n as usize - 1).map_or("", |meta| &meta.name),
                    _ => "an aggregate",
                };
                return Err(errors::error(errors::WRONG_GROUP_FIELD, &[&name]));
            }
            if let Expr::Column { source, column } = &expr {
                binder.grouped.insert((*source, *column));
            }
            if select.rollup || expr.identity().is_none_or(|identity| seen.insert(identity)) {
                entries.push(entry_of(binder, key, &expr));
                keys.push(expr);
            }
        }
        Ok((keys, entries))
    }

    /// The entry of the select list that is the same expression, if it has a subquery: bound once more, that
    /// would be another one. As in MySQL one that follows the rows is another one.
    fn listed_subquery(
        &self,
        binder: &mut Binder<'_, '_>,
        select: &ast::Select,
        key: &ast::Expr,
    ) -> Result<Option<Bound>, SqlError> {
        let entries = select.items.iter().map_while(|item| match item {
            ast::SelectItem::Expr { expr, .. } => Some(expr),
            ast::SelectItem::Star { .. } => None,
        });
        let mut same = entries.enumerate().filter(|(_, entry)| !is_name(entry) && *entry == key);
        let Some((at, _)) = same.next() else { return Ok(None) };
        let (mut subquery, mut another) = (false, false);
        if let Some(expr) = binder.select_list.expr(at) {
            expr.visit_subqueries(&mut |number| {
                subquery = true;
                let plan = binder.subqueries.get(usize::from(number));
                another |= plan.is_none_or(SelectPlan::follows_rows);
            });
            expr.visit(&mut |inner| {
                another |= matches!(inner, Expr::Aggregate(_) | Expr::Window(_));
                self.walk()
            });
        }
        self.outcome()?;
        Ok(if subquery && !another { binder.select_list.entry(at) } else { None })
    }

    /// ORDER BY, without constants and repetitions: they cannot change the order. With each the place, from
    /// 0, where it is written.
    fn order_keys(
        &self,
        binder: &mut Binder<'_, '_>,
        select: &ast::Select,
        order_by: &[ast::OrderItem],
        groups: &GroupKeys<'_>,
    ) -> Result<(Vec<(Expr, bool)>, Vec<usize>), SqlError> {
        binder.clause = "order clause";
        let grouped = !groups.keys.is_empty() || !binder.aggregates.is_empty();
        let (mut order, mut places, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (place, item) in order_by.iter().enumerate() {
            binder.rule = if is_name(&item.expr) { NameRule::SelectList } else { NameRule::Tables };
            let listed = match binder.position(&item.expr)? {
                None => self.listed_subquery(binder, select, &item.expr)?,
                entry => entry,
            };
            let mut expr = match listed {
                Some((expr, _)) => expr,
                None => binder.bind(&item.expr)?.0,
            };
            groups.mark_in(binder, &mut expr)?;
            if !grouped && !expr.visit(&mut |inner| !matches!(inner, Expr::Aggregate(_))) {
                return Err(errors::error(errors::AGGREGATE_ORDER_NON_AGG_QUERY, &[&(place + 1)]));
            }
            let mut constant = expr.visit(&mut |inner| inner.may_be_constant() && self.walk());
            expr.visit_subqueries(&mut |number| {
                constant &= !binder.subqueries.get(usize::from(number)).is_some_and(SelectPlan::follows_rows);
            });
            self.outcome()?;
            if !constant && expr.identity().is_none_or(|identity| seen.insert(identity)) {
                order.push((expr, item.descending));
                places.push(place);
            }
        }
        Ok((order, places))
    }

    /// The select list, stars expanded: the definitions for the client. Subqueries in it may name the entries
    /// before them.
    fn items(
        &self,
        binder: &mut Binder<'_, '_>,
        shown: &Shown,
        select: &ast::Select,
    ) -> Result<Elsewhere<Vec<ColumnMeta>>, SqlError> {
        let mut metas = self.elsewhere(Vec::new());
        binder.select_list = SelectList::new(self.elsewhere(Vec::new()));
        binder.in_select_list = true;
        for (at, item) in select.items.iter().enumerate() {
            match item {
                SelectItem::Star { database, table } => {
                    let of = (database.as_deref(), table.as_deref());
                    self.star(binder, shown, of, &mut metas)?;
                }
                SelectItem::Expr { expr, alias, text } => {
                    let of_view = binder.of_view && is_name(expr);
                    let bound = if of_view { self.item_of_view(binder, expr) } else { binder.bind(expr) };
                    let (expr, ty) = bound.map_err(|error| match expr {
                        ast::Expr::Subquery(_) => self.forward_reference(error, &select.items[at..]),
                        _ => error,
                    })?;
                    let name = alias.as_ref().unwrap_or(text);
                    metas.push(match &expr {
                        Expr::Column { source, column } => {
                            let source = &binder.sources[usize::from(*source)];
                            let own = source.own_name(*column).filter(|_| alias.is_none() && !binder.of_view);
                            let name = own.unwrap_or(name);
                            self.expand(1, ITEM_BYTES + source.meta_bytes("", 2 * name.len()))?;
                            source.meta(*column, name)
                        }
                        _ => {
                            self.expand(1, ITEM_BYTES + size_of::<ColumnMeta>() + name.len())?;
                            ty.meta(name)
                        }
                    });
                    binder.select_list.push(self, (expr, ty), alias.as_deref())?;
                }
            }
            if binder.select_list.len() > ITEMS_MAX {
                return Err(errors::error(errors::TOO_MANY_FIELDS, &[]));
            }
        }
        binder.in_select_list = false;
        Ok(metas)
    }

    /// A subquery that names an entry of the select list which is not there yet: 1247 in place of 1054.
    fn forward_reference(&self, error: SqlError, to_come: &[SelectItem]) -> SqlError {
        let mut aliases = to_come.iter().filter_map(|item| match item {
            SelectItem::Expr { alias, .. } => alias.as_deref(),
            SelectItem::Star { .. } => None,
        });
        let name = self.unknown_name(&error);
        match name.filter(|name| aliases.any(|alias| alias.eq_ignore_ascii_case(name))) {
            Some(name) => {
                errors::error(errors::ILLEGAL_REFERENCE, &[&name, &"forward reference in item list"])
            }
            None => error,
        }
    }

    /// A column that a view shows. One that may not be read is not read before somebody names it.
    fn item_of_view(&self, binder: &mut Binder<'_, '_>, expr: &ast::Expr) -> Result<Bound, SqlError> {
        binder.privilege = Privileges::NONE;
        let bound = binder.bind(expr);
        binder.privilege = Privileges::SELECT;
        let bound = bound?;
        if let (Expr::Column { source, .. }, ast::Expr::Column { name, .. }) = (&bound.0, expr)
            && self.require_column(&binder.sources[usize::from(*source)], name, Privileges::SELECT).is_err()
        {
            self.deny_item_of_view(binder.select_list.len());
        }
        Ok(bound)
    }

    /// `*`, `table.*`.
    fn star(
        &self,
        binder: &mut Binder<'_, '_>,
        shown: &Shown,
        (database, table): (Option<&str>, Option<&str>),
        metas: &mut Vec<ColumnMeta>,
    ) -> Result<(), SqlError> {
        let sources = binder.sources;
        let counts_only = binder.of_existence;
        let is_denied = |source: &&Source| !counts_only && !self.may_read_all_columns(source);
        let mut show = |at: u16, number: u16| -> Result<(), SqlError> {
            let source = &sources[usize::from(at)];
            let column = &source.columns[usize::from(number)];
            self.expand(1, ITEM_BYTES + source.meta_bytes(&column.name, column.name.len()))?;
            let entry = (Expr::Column { source: at, column: number }, column.ty);
            binder.select_list.push(self, entry, None)?;
            metas.push(source.meta(number, &column.name));
            Ok(())
        };
        let Some(table) = table else {
            if sources.is_empty() {
                return Err(errors::error(errors::NO_TABLES_USED, &[]));
            }
            if let Some(denied) = sources.iter().find(is_denied) {
                return Err(self.state.table_denied("SELECT", &denied.table));
            }
            if !counts_only {
                sources.iter().try_for_each(|source| self.require_all_columns_of_view(source))?;
            }
            let mut shown = shown.iter().filter(|(_, shown)| *shown);
            return shown.try_for_each(|((at, column), _)| show(*at, *column));
        };
        let mut any = false;
        for (at, source) in sources.iter().enumerate() {
            if source.answers_to(database, Some(table)) {
                any = true;
                if is_denied(&source) {
                    return Err(self.state.table_denied("SELECT", &source.table));
                }
                if !counts_only {
                    self.require_all_columns_of_view(source)?;
                }
                source.shown().try_for_each(|column| show(at as u16, column))?;
            }
        }
        if any { Ok(()) } else { Err(errors::error(errors::BAD_TABLE, &[&table])) }
    }
}

impl GroupKeys<'_> {
    /// [`GroupKeys::mark`], where something is to be found.
    fn mark_in(&self, binder: &Binder<'_, '_>, expr: &mut Expr) -> Result<(), SqlError> {
        if self.rollup || binder.asks_grouping { self.mark(expr) } else { Ok(()) }
    }
}

/// The entry of the select list that an expression of GROUP BY names, by its alias or position.
fn entry_of(binder: &Binder<'_, '_>, key: &ast::Expr, bound: &Expr) -> Option<usize> {
    let at = match key {
        ast::Expr::Integer(number) => usize::try_from(*number).ok()?.checked_sub(1)?,
        ast::Expr::Column { database: None, table: None, name } => binder.select_list.place(name)?,
        _ => return None,
    };
    let entry = binder.select_list.expr(at)?;
    (entry.unshared() == bound.unshared()).then_some(at)
}

/// Marks the expressions of GROUP BY in the select list, that of each entry which GROUP BY names itself
/// first. What is rolled up is no column any more for the client.
fn mark_items(
    binder: &mut Binder<'_, '_>,
    groups: &GroupKeys<'_>,
    entries: &[Option<usize>],
    metas: &mut [ColumnMeta],
) -> Result<(), SqlError> {
    if !(groups.rollup || binder.asks_grouping) {
        return Ok(());
    }
    for (at, ((expr, ty), meta)) in binder.select_list.entries_mut().zip(metas).enumerate() {
        let own = entries.iter().position(|entry| *entry == Some(at)).filter(|_| groups.rollup);
        match own.and_then(|key| u16::try_from(key).ok()) {
            Some(key) => {
                let value = Box::new(std::mem::replace(expr, Expr::Literal(Value::Null)));
                *expr = Expr::RolledUp { key, value };
            }
            None => groups.mark(expr)?,
        }
        if matches!(expr, Expr::RolledUp { .. }) {
            ty.nullable = true;
            *meta = ty.meta(&meta.name);
        } else if !expr.visit(&mut |inner| !matches!(inner, Expr::RolledUp { .. })) {
            ty.nullable = true;
            meta.flags &= !column_flag::NOT_NULL;
        }
    }
    Ok(())
}

/// What makes a text of any value, for a column of this type.
fn text_of(ty: Type) -> ast::CastType {
    match ty.collation {
        Collation::Binary => ast::CastType::Binary { length: None },
        _ => ast::CastType::Char { length: None, charset: None, bin: false },
    }
}

/// Whether more is done with the columns of the select list than to show them.
fn uses_its_items(select: &ast::Select, order_by: &[ast::OrderItem]) -> bool {
    let ast::Select { distinct, group_by, having, windows, .. } = select;
    *distinct || !group_by.is_empty() || having.is_some() || !windows.is_empty() || !order_by.is_empty()
}

fn is_name(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Column { .. })
}

/// Splits at AND, and rows that are equal into columns that are.
pub(super) fn push_conjuncts(expr: Expr, list: &mut Vec<Condition>) {
    match expr {
        Expr::And(inner) => inner.into_iter().for_each(|item| push_conjuncts(item, list)),
        Expr::Compare(ast::BinaryOperator::Equal, left, right)
            if matches!((&*left, &*right), (Expr::Row(_), Expr::Row(_))) =>
        {
            push_equality(*left, *right, list);
        }
        Expr::InList { operand, list: mut rows, negated: false }
            if rows.len() == 1 && matches!(*operand, Expr::Row(_)) =>
        {
            rows.pop().into_iter().for_each(|row| push_equality((*operand).clone(), row, list));
        }
        other => list.push(Arc::new(other)),
    }
}

fn push_equality(left: Expr, right: Expr, list: &mut Vec<Condition>) {
    let equality = |(left, right)| Expr::Compare(ast::BinaryOperator::Equal, Box::new(left), Box::new(right));
    match (left, right) {
        (Expr::Row(left), Expr::Row(right)) if left.len() == right.len() => {
            left.into_iter().zip(right).for_each(|pair| push_conjuncts(equality(pair), list));
        }
        pair => list.push(Arc::new(equality(pair))),
    }
}

impl SelectPlan {
    /// Answers numbers in this column, if it is an ENUM or SET column of one of its tables. Each part of a
    /// UNION does so for itself.
    pub fn number_member(&mut self, column: usize) {
        self.unions.iter_mut().for_each(|(_, plan)| plan.number_member(column));
        let Some(item @ Expr::Column { .. }) = self.items.get_mut(column) else { return };
        read_members(item, &self.sources);
        if matches!(item, Expr::MemberNumber(..)) {
            self.plain_columns = None;
        }
    }

    /// Answers texts in this column under another collation, which they are compared in. Each part of a UNION
    /// does so for itself.
    pub fn put_under(&mut self, column: usize, rule: Collation) {
        self.unions.iter_mut().for_each(|(_, plan)| plan.put_under(column, rule));
        let (Some(item), Some(ty)) = (self.items.get_mut(column), self.types.get_mut(column)) else { return };
        let expr = std::mem::replace(item, Expr::Literal(Value::Null));
        let derivation = ty.derivation;
        (*item, *ty) = collated((expr, *ty), rule, derivation);
        self.plain_columns = None;
    }

    /// Makes the values what `types` say: all rows of a UNION have values of one kind.
    pub(super) fn convert_items(&mut self, own: &[Type]) -> Result<(), SqlError> {
        for ((item, from), to) in self.items.iter_mut().zip(own).zip(&self.types) {
            // What a parameter is turns out when there is a value.
            let unseen = matches!(item, Expr::Parameter(_)) && to.is_text() && to.kind != kind::BIT;
            if from != to || unseen {
                let mut expr = std::mem::replace(item, Expr::Literal(Value::Null));
                if unseen {
                    // In the column's collation, which rows are compared by.
                    expr = Expr::Collate(Box::new(Expr::Cast(Box::new(expr), text_of(*to))), to.collation);
                }
                *item = fitting((expr, *from), *to)?;
                self.plain_columns =
                    self.plain_columns.take().filter(|_| matches!(item, Expr::Column { .. }));
            }
        }
        Ok(())
    }
}
