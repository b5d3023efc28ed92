//! Planning SELECT.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use untorn::types::ColumnType;

use super::access::{Path, Question, use_index_order};
use super::source::{Source, SourceColumn, SourceKind};
use super::{Condition, Grouping, Plan, Planner, SelectPlan, Step, ValuePlan};
use crate::discard::Elsewhere;
use crate::errors;
use crate::result::{ColumnMeta, ResultColumns, SqlError};
use crate::sql::ast::{self, HintKind, JoinKind, SelectItem, TableRef};
use crate::sql::catalog_views;
use crate::sql::expr::bind::{Binder, Bound, NameRule};
use crate::sql::expr::select_list::{Meaning, SelectList};
use crate::sql::expr::types::Type;
use crate::sql::expr::{Expr, NODE_BYTES};
use crate::sql::value::Value;
use crate::variables::sql_mode;

/// What a column of a result takes beside its definition for the client: the expression and its type, once
/// more for a moment.
const ITEM_BYTES: usize = 2 * (size_of::<Expr>() + size_of::<Type>());

/// What a SELECT takes that has nothing in it. There may be one for every eight bytes of a UNION.
const SELECT_BYTES: usize = size_of::<SelectPlan>() + 512;

/// What an equality of USING or NATURAL takes.
const EQUALITY_BYTES: usize = 4 * size_of::<Expr>();

/// Columns of one SELECT are numbered with 16 bits.
const ITEMS_MAX: usize = u16::MAX as usize;

/// FROM, flattened.
#[derive(Default)]
struct From<'q> {
    sources: Vec<Source>,
    hints: Vec<Vec<(HintKind, Vec<String>)>>,
    /// ON of inner joins, with how many sources it may see.
    conditions: Vec<(&'q ast::Expr, usize)>,
    /// LEFT JOINs: source and ON.
    outer: Vec<(usize, Option<&'q ast::Expr>)>,
    /// Equalities of USING and NATURAL.
    equalities: Vec<(Expr, Option<usize>)>,
    straight: bool,
    /// FOR UPDATE.
    locks: bool,
}

/// The bound conditions of a SELECT.
struct JoinedConditions {
    /// They hold for every row of the result.
    conjuncts: Vec<Condition>,
    /// LEFT JOINs: source and ON.
    outer: Vec<(usize, Vec<Condition>)>,
}

/// Columns (source and number) in the order in which `*` shows them.
type Shown = Vec<(u16, u16)>;

impl Planner<'_> {
    /// Plans a query expression.
    pub fn select(&self, query: &ast::Query) -> Result<SelectPlan, SqlError> {
        let Some(((_, first), rest)) = query.selects.split_first() else {
            return Err(errors::error(errors::EMPTY_QUERY, &[]));
        };
        if rest.is_empty() {
            return self.single(first, &query.order_by, query.limit.as_ref(), query.locking);
        }
        let mut plan = self.single(first, &[], None, None)?;
        let mut types = plan.types.clone();
        for (all, select) in rest {
            let next = self.single(select, &[], None, None)?;
            if next.items.len() != plan.items.len() {
                return Err(errors::error(errors::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            for (ty, other) in types.iter_mut().zip(&next.types) {
                *ty = ty.union(*other);
            }
            plan.unions.push((*all, next));
        }
        let names: Vec<String> = plan.columns.metas().iter().map(|meta| meta.name.clone()).collect();
        plan.columns = ResultColumns::new(types.iter().zip(&names).map(|(ty, name)| ty.meta(name)).collect());
        let own = std::mem::replace(&mut plan.types, types);
        plan.convert_items(&own);
        let types = plan.types.clone();
        for (_, next) in &mut plan.unions {
            let own = std::mem::replace(&mut next.types, types.clone());
            next.convert_items(&own);
        }
        // ORDER BY and LIMIT of the union: by position or by column name of the first SELECT.
        let mut by_name: HashMap<String, Meaning<usize>> = HashMap::new();
        if !query.order_by.is_empty() {
            self.work(names.len() * NODE_BYTES)?;
            for (at, name) in names.iter().enumerate() {
                by_name.entry(name.to_ascii_lowercase()).or_insert(Meaning::Nothing).add(at);
            }
        }
        for item in &query.order_by {
            self.work(NODE_BYTES)?;
            let unknown = |shown: &dyn Display| errors::error(errors::BAD_FIELD, &[shown, &"order clause"]);
            let at = match &item.expr {
                ast::Expr::Integer(number) => {
                    let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                    at.filter(|at| *at < names.len()).ok_or_else(|| unknown(number))?
                }
                ast::Expr::Column { name, .. } => match by_name.get(&name.to_ascii_lowercase()) {
                    Some(Meaning::One(at)) => *at,
                    Some(Meaning::Several) => {
                        return Err(errors::error(errors::NON_UNIQ, &[name, &"order clause"]));
                    }
                    Some(Meaning::Nothing) | None => return Err(unknown(name)),
                },
                _ => return Err(errors::unsupported("an expression in ORDER BY of a UNION")),
            };
            plan.order.push((Expr::Column { source: 0, column: at as u16 }, item.descending));
        }
        plan.limit = self.limit(query.limit.as_ref())?;
        Ok(plan)
    }

    /// Plans a value that stands alone, as in SET; with subqueries it is a query, whose result goes into a
    /// variable.
    pub fn value(&self, expr: &ast::Expr, into: &str) -> Result<ValuePlan, SqlError> {
        let mut binder = Binder::new(self, &[]);
        let (bound, ty) = binder.bind(expr)?;
        if binder.subqueries.is_empty() {
            return Ok(ValuePlan::Constant(bound));
        }
        let columns = ResultColumns::new(vec![ty.meta("")]);
        let mut plan = SelectPlan::of_items(vec![bound], vec![ty], columns);
        plan.subqueries = binder.subqueries;
        plan.into = vec![into.to_owned()];
        Ok(ValuePlan::Query(Box::new(Plan::Select(self.charged_plan(plan)?))))
    }

    pub(crate) fn limit(&self, limit: Option<&ast::Limit>) -> Result<Option<(Expr, Option<Expr>)>, SqlError> {
        let Some(limit) = limit else { return Ok(None) };
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
    ) -> Result<SelectPlan, SqlError> {
        self.expand(1, SELECT_BYTES)?;
        if select.rollup {
            return Err(errors::unsupported("WITH ROLLUP"));
        }
        let locks = locking.is_some_and(|locking| locking.exclusive);
        let mut from = From { locks, ..From::default() };
        let shown = match &select.from {
            Some(table) => self.from(table, &mut from)?,
            None => Shown::new(),
        };
        let sources = self.elsewhere(std::mem::take(&mut from.sources));
        let mut binder = Binder::new(self, &sources);
        let JoinedConditions { mut conjuncts, outer } =
            self.joined_conditions(&mut binder, &mut from, select)?;
        // Output.
        binder.clause = "field list";
        binder.aggregates_allowed = true;
        let Items { bound, metas } = self.items(&mut binder, &shown, select)?;
        binder.select_list = SelectList::new(bound);
        if !(select.group_by.is_empty() && select.having.is_none() && order_by.is_empty()) {
            binder.select_list.give_names(self, metas.iter().map(|meta| meta.name.as_str()))?;
        }
        let keys = self.group_keys(&mut binder, &select.group_by, &metas)?;
        binder.aggregates_allowed = true;
        binder.clause = "having clause";
        binder.rule = NameRule::Having;
        let mut having = None;
        if let Some(condition) = &select.having {
            binder.selected = binder.select_list.columns(self)?.collect();
            having = Some(binder.condition(condition)?);
        }
        let order = self.order_keys(&mut binder, order_by)?;
        let Binder { aggregates, subqueries, select_list, .. } = binder;
        let (items, types): (Vec<Expr>, Vec<Type>) = select_list.into_entries().into_iter().unzip();
        let grouped = !aggregates.is_empty() || !keys.is_empty();
        if !grouped && let Some(having) = having.take() {
            // Of single rows it says what WHERE says, and knows the aliases.
            push_conjuncts(having, &mut conjuncts);
        }
        if grouped && keys.is_empty() {
            self.check_full_group(&items, &metas, &sources)?;
        }
        let grouping = grouped.then_some(Grouping { keys, aggregates, having });
        let columns = ResultColumns::new(metas.into_inner());
        let mut plan = SelectPlan {
            sources: sources.into_inner(),
            grouping,
            distinct: select.distinct,
            order,
            limit: self.limit(limit)?,
            locking,
            subqueries,
            into: select.into.clone(),
            ..SelectPlan::of_items(items, types, columns)
        };
        self.finish(&mut plan, conjuncts, outer, &from.hints, from.straight)?;
        Ok(plan)
    }

    /// WHERE and the conditions of the joins. Those of inner joins count as conditions of WHERE.
    fn joined_conditions(
        &self,
        binder: &mut Binder<'_, '_>,
        from: &mut From<'_>,
        select: &ast::Select,
    ) -> Result<JoinedConditions, SqlError> {
        let mut conjuncts = Vec::new();
        binder.clause = "on clause";
        for (condition, visible) in &from.conditions {
            binder.visible = *visible;
            push_conjuncts(binder.filter(condition)?, &mut conjuncts);
        }
        let mut outer: Vec<(usize, Vec<Condition>)> = Vec::new();
        for (source, condition) in &from.outer {
            binder.visible = *source + 1;
            let mut on = Vec::new();
            if let Some(condition) = condition {
                push_conjuncts(binder.filter(condition)?, &mut on);
            }
            outer.push((*source, on));
        }
        binder.visible = binder.sources.len();
        for (equality, of) in std::mem::take(&mut from.equalities) {
            match of.and_then(|source| outer.iter_mut().find(|(s, _)| *s == source)) {
                Some((_, on)) => on.push(Arc::new(equality)),
                None => conjuncts.push(Arc::new(equality)),
            }
        }
        binder.clause = "where clause";
        if let Some(filter) = &select.filter {
            push_conjuncts(binder.filter(filter)?, &mut conjuncts);
        }
        Ok(JoinedConditions { conjuncts, outer })
    }

    /// GROUP BY, each expression once.
    fn group_keys(
        &self,
        binder: &mut Binder<'_, '_>,
        group_by: &[ast::Expr],
        metas: &[ColumnMeta],
    ) -> Result<Vec<Expr>, SqlError> {
        binder.aggregates_allowed = false;
        binder.clause = "group statement";
        let (mut keys, mut seen) = (Vec::new(), HashSet::new());
        for key in group_by {
            binder.rule = if is_name(key) { NameRule::Group } else { NameRule::Tables };
            let expr = match binder.position(key)? {
                Some((expr, _)) => expr,
                None => binder.bind(key)?.0,
            };
            if !expr.visit(&mut |inner| !matches!(inner, Expr::Aggregate(_)) && self.walk()) {
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
            if expr.identity().is_none_or(|identity| seen.insert(identity)) {
                keys.push(expr);
            }
        }
        Ok(keys)
    }

    /// ORDER BY, without constants and repetitions: they cannot change the order.
    fn order_keys(
        &self,
        binder: &mut Binder<'_, '_>,
        order_by: &[ast::OrderItem],
    ) -> Result<Vec<(Expr, bool)>, SqlError> {
        binder.clause = "order clause";
        let (mut order, mut seen) = (Vec::new(), HashSet::new());
        for item in order_by {
            binder.rule = if is_name(&item.expr) { NameRule::SelectList } else { NameRule::Tables };
            let expr = match binder.position(&item.expr)? {
                Some((expr, _)) => expr,
                None => binder.bind(&item.expr)?.0,
            };
            let constant = expr.visit(&mut |inner| inner.may_be_constant() && self.walk());
            self.outcome()?;
            if !constant && expr.identity().is_none_or(|identity| seen.insert(identity)) {
                order.push((expr, item.descending));
            }
        }
        Ok(order)
    }

    /// ONLY_FULL_GROUP_BY without GROUP BY: no bare columns beside aggregates.
    fn check_full_group(
        &self,
        items: &[Expr],
        metas: &[ColumnMeta],
        sources: &[Source],
    ) -> Result<(), SqlError> {
        if self.state.settings().sql_mode & sql_mode::ONLY_FULL_GROUP_BY == 0 {
            return Ok(());
        }
        for (number, (item, ColumnMeta { name, .. })) in items.iter().zip(metas).enumerate() {
            let mut bare = None;
            item.visit(&mut |expr| {
                if let Expr::Column { source, column } = expr {
                    bare = Some((*source, *column));
                }
                bare.is_none() && self.walk()
            });
            if let Some((source, column)) = bare {
                let source = &sources[usize::from(source)];
                let name = source.columns.get(usize::from(column)).map_or(name.as_str(), |c| c.name.as_str());
                let shown = format!("{}.{}.{}", source.database, source.alias, name);
                return Err(errors::error(errors::MIX_OF_GROUP_FUNC_AND_FIELDS, &[&(number + 1), &shown]));
            }
            self.outcome()?;
        }
        Ok(())
    }

    /// The select list, stars expanded.
    fn items(
        &self,
        binder: &mut Binder<'_, '_>,
        shown: &Shown,
        select: &ast::Select,
    ) -> Result<Items, SqlError> {
        let mut items = Items { bound: self.elsewhere(Vec::new()), metas: self.elsewhere(Vec::new()) };
        for item in &select.items {
            match item {
                SelectItem::Star { database, table } => {
                    let of = (database.as_deref(), table.as_deref());
                    self.star(binder.sources, shown, of, &mut items)?;
                }
                SelectItem::Expr { expr, alias, text } => {
                    let (expr, ty) = binder.bind(expr)?;
                    let name = alias.as_ref().unwrap_or(text);
                    items.metas.push(match &expr {
                        Expr::Column { source, column } => {
                            let source = &binder.sources[usize::from(*source)];
                            self.expand(1, ITEM_BYTES + source.meta_bytes("", 2 * name.len()))?;
                            source.meta(*column, name)
                        }
                        _ => {
                            self.expand(1, ITEM_BYTES + size_of::<ColumnMeta>() + name.len())?;
                            ty.meta(name)
                        }
                    });
                    items.bound.push((expr, ty));
                }
            }
            if items.bound.len() > ITEMS_MAX {
                return Err(errors::error(errors::TOO_MANY_FIELDS, &[]));
            }
        }
        Ok(items)
    }

    /// `*`, `table.*`.
    fn star(
        &self,
        sources: &[Source],
        shown: &Shown,
        (database, table): (Option<&str>, Option<&str>),
        items: &mut Items,
    ) -> Result<(), SqlError> {
        let Some(table) = table else {
            if sources.is_empty() {
                return Err(errors::error(errors::NO_TABLES_USED, &[]));
            }
            return shown.iter().try_for_each(|(at, column)| self.show(sources, *at, *column, items));
        };
        let mut any = false;
        for (at, source) in sources.iter().enumerate() {
            if source.answers_to(database, Some(table)) {
                any = true;
                for column in 0..source.columns.len() {
                    self.show(sources, at as u16, column as u16, items)?;
                }
            }
        }
        if any { Ok(()) } else { Err(errors::error(errors::BAD_TABLE, &[&table])) }
    }

    fn show(&self, sources: &[Source], at: u16, number: u16, items: &mut Items) -> Result<(), SqlError> {
        let source = &sources[usize::from(at)];
        let column = &source.columns[usize::from(number)];
        self.expand(1, ITEM_BYTES + source.meta_bytes(&column.name, column.name.len()))?;
        items.bound.push((Expr::Column { source: at, column: number }, column.ty));
        items.metas.push(source.meta(number, &column.name));
        Ok(())
    }

    /// All columns of a source.
    fn shown(&self, source: usize, from: &From<'_>) -> Shown {
        let columns = from.sources.get(source).map_or(0, |source| source.columns.len());
        (0..columns).map(|column| (source as u16, column as u16)).collect()
    }

    /// Adds what FROM names to the sources; what `*` shows of it.
    fn from<'q>(&self, table: &'q TableRef, from: &mut From<'q>) -> Result<Shown, SqlError> {
        let first = from.sources.len();
        Ok(match table {
            TableRef::Table { name, alias, hints } => {
                self.require_reading(name, from.locks)?;
                let source = self.named_source(name, alias.as_deref())?;
                self.check_hints(&source, hints)?;
                self.add_source(source, from)?;
                if let Some(last) = from.hints.last_mut() {
                    *last = hints.iter().map(|hint| (hint.kind, hint.indexes.clone())).collect();
                }
                self.shown(first, from)
            }
            TableRef::Derived { query, alias } => {
                let plan = self.select(query)?;
                let bytes = plan.columns.metas().iter().map(|meta| SourceColumn::bytes(&meta.name)).sum();
                self.expand_by(plan.types.len(), bytes)?;
                let mut names = HashSet::with_capacity(plan.types.len());
                for ColumnMeta { name, .. } in plan.columns.metas() {
                    if !names.insert(name.to_ascii_lowercase()) {
                        return Err(errors::error(errors::DUP_FIELDNAME, &[name]));
                    }
                }
                let columns = plan.columns.metas().iter().zip(&plan.types);
                let columns = columns
                    .map(|(meta, ty)| SourceColumn {
                        name: meta.name.clone(),
                        ty: *ty,
                        flags: 0,
                        merged: false,
                    })
                    .collect();
                let kind = SourceKind::Derived(Box::new(plan));
                let source = Source::new(String::new(), alias.clone(), alias.clone(), columns, kind);
                self.add_source(source, from)?;
                self.shown(first, from)
            }
            TableRef::Join { left, right, kind, on, using, natural } => {
                let swapped = *kind == JoinKind::Right;
                let (left, right) = if swapped { (right, left) } else { (left, right) };
                let mut outer_shown = self.from(left, from)?;
                let middle = from.sources.len();
                let mut inner_shown = self.from(right, from)?;
                let single = from.sources.len() == middle + 1;
                from.straight |= *kind == JoinKind::Straight;
                let is_outer = matches!(kind, JoinKind::Left | JoinKind::Right);
                if is_outer && !single {
                    return Err(errors::unsupported("outer join with a join on its inner side"));
                }
                let merged = self.join_columns(from, first..middle, using, *natural, is_outer)?;
                match (is_outer, on) {
                    (true, on) => from.outer.push((middle, on.as_ref())),
                    (false, Some(on)) => from.conditions.push((on, from.sources.len())),
                    (false, None) => {}
                }
                // Merged columns come first, in the order of the table that gives their values; then the rest
                // of that one.
                self.work((outer_shown.len() + inner_shown.len()) * NODE_BYTES / 4)?;
                let gone: HashSet<(u16, u16)> =
                    merged.iter().flat_map(|(left, right)| [*left, *right]).collect();
                // Without them the table that is written first is shown first, also by a RIGHT JOIN.
                if swapped && merged.is_empty() {
                    std::mem::swap(&mut outer_shown, &mut inner_shown);
                }
                let kept: HashSet<(u16, u16)> = merged.iter().map(|(left, _)| *left).collect();
                let common = outer_shown.iter().filter(|column| kept.contains(column)).copied();
                let rest = outer_shown.iter().chain(&inner_shown).filter(|column| !gone.contains(column));
                common.chain(rest.copied()).collect()
            }
        })
    }

    /// Equalities of USING and NATURAL. The columns of the right side, which is all behind `left`, are merged
    /// into those of `left`.
    fn join_columns(
        &self,
        from: &mut From<'_>,
        left: Range<usize>,
        using: &[String],
        natural: bool,
        outer: bool,
    ) -> Result<Vec<((u16, u16), (u16, u16))>, SqlError> {
        let mut merged = Vec::new();
        let middle = left.end;
        let mut names = using.to_vec();
        if natural {
            for source in &from.sources[middle..] {
                for column in source.columns.iter().filter(|column| !column.merged) {
                    self.work(middle * NODE_BYTES)?;
                    let in_left = from.sources[left.clone()]
                        .iter()
                        .any(|left| left.column_number(&column.name).is_some());
                    if in_left {
                        names.push(column.name.clone());
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| seen.insert(name.to_ascii_lowercase())) {
            self.work(from.sources.len() * NODE_BYTES)?;
            self.expand(1, EQUALITY_BYTES)?;
            let find = |range: Range<usize>| {
                let mut meaning = Meaning::Nothing;
                for at in range {
                    let source = &from.sources[at];
                    match source.column_number(name) {
                        Some(column) if !source.is_merged(column) => meaning.add((at, column)),
                        _ => {}
                    }
                }
                match meaning {
                    Meaning::One(found) => Ok(found),
                    Meaning::Nothing => Err(errors::error(errors::BAD_FIELD, &[name, &"from clause"])),
                    Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[name, &"from clause"])),
                }
            };
            let (left_source, left_column) = find(left.clone())?;
            let (right, right_column) = find(middle..from.sources.len())?;
            from.sources[right].columns[usize::from(right_column)].merged = true;
            let column = |source: usize, column| Box::new(Expr::Column { source: source as u16, column });
            let equality = Expr::Compare(
                ast::BinaryOperator::Equal,
                column(left_source, left_column),
                column(right, right_column),
            );
            from.equalities.push((equality, outer.then_some(middle)));
            merged.push(((left_source as u16, left_column), (right as u16, right_column)));
        }
        Ok(merged)
    }

    fn add_source(&self, source: Source, from: &mut From<'_>) -> Result<(), SqlError> {
        let same = |other: &Source| {
            other.alias.eq_ignore_ascii_case(&source.alias) && other.database == source.database
        };
        if from.sources.iter().any(same) {
            return Err(errors::error(errors::NONUNIQ_TABLE, &[&source.alias]));
        }
        from.sources.push(source);
        from.hints.push(Vec::new());
        Ok(())
    }

    /// A table or view by name.
    pub fn named_source(&self, name: &ast::TableName, alias: Option<&str>) -> Result<Source, SqlError> {
        let database = self.database_of(name)?;
        if catalog_views::is_view_database(&database) {
            let Some(view) = catalog_views::find(&database, &name.name) else {
                return Err(errors::error(errors::UNKNOWN_TABLE, &[&name.name.to_uppercase(), &database]));
            };
            view.require_reading(self.state)?;
            return Ok(view.source(alias.unwrap_or(&name.name)));
        }
        self.table_source(name, alias)
    }

    /// A table of the engine as a source.
    pub(super) fn table_source(
        &self,
        name: &ast::TableName,
        alias: Option<&str>,
    ) -> Result<Source, SqlError> {
        let table = self.engine_table(name)?;
        let bytes = table.def.columns.iter().map(|column| SourceColumn::bytes(&column.name)).sum::<usize>();
        self.expand_by(table.def.columns.len(), bytes + alias.map_or(0, str::len))?;
        Ok(Source::table(table, alias))
    }

    fn check_hints(&self, source: &Source, hints: &[ast::IndexHint]) -> Result<(), SqlError> {
        let Some(table) = source.engine_table() else { return Ok(()) };
        for name in hints.iter().flat_map(|hint| &hint.indexes) {
            if table.def.key_named(name).is_none() {
                return Err(errors::error(errors::KEY_DOES_NOT_EXIST, &[name, &source.alias]));
            }
        }
        Ok(())
    }
}

fn is_name(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Column { .. })
}

/// The select list.
struct Items {
    bound: Elsewhere<Vec<Bound>>,
    /// Their definitions for the client.
    metas: Elsewhere<Vec<ColumnMeta>>,
}

/// ENUM and SET columns are sorted by their numbers, as an index on them does it.
pub(super) fn order_by_members(expr: &mut Expr, sources: &[Source]) {
    let Expr::Column { source, column } = *expr else { return };
    let table = sources.get(usize::from(source)).and_then(Source::engine_table);
    let Some(column) = table.and_then(|table| table.def.columns.get(usize::from(column))) else { return };
    if matches!(column.kind, ColumnType::Enum { .. } | ColumnType::Set { .. }) {
        let members = Arc::new(column.kind.clone());
        let name = std::mem::replace(expr, Expr::Literal(Value::Null));
        *expr = Expr::MemberNumber(Box::new(name), members);
    }
}

/// Splits at AND.
pub(super) fn push_conjuncts(expr: Expr, list: &mut Vec<Condition>) {
    match expr {
        Expr::And(inner) => inner.into_iter().for_each(|item| push_conjuncts(item, list)),
        other => list.push(Arc::new(other)),
    }
}

impl SelectPlan {
    /// Makes the values what `types` say: all rows of a UNION have values of one kind.
    fn convert_items(&mut self, own: &[Type]) {
        for ((item, from), to) in self.items.iter_mut().zip(own).zip(&self.types) {
            if let Some(target) = from.conversion(*to) {
                let expr = std::mem::replace(item, Expr::Literal(Value::Null));
                *item = Expr::Cast(Box::new(expr), target);
                self.plain_columns = None;
            }
        }
    }
}

/// Sources of one FROM, a bit for each: there are 61 at most.
type Sources = u64;

fn only(source: u16) -> Sources {
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

    /// Chooses the order of the join and the paths.
    fn finish(
        &self,
        plan: &mut SelectPlan,
        conjuncts: Vec<Condition>,
        outer: Vec<(usize, Vec<Condition>)>,
        hints: &[Vec<(HintKind, Vec<String>)>],
        straight: bool,
    ) -> Result<(), SqlError> {
        plan.needed = self.needed_columns(plan, &conjuncts, &outer);
        let read = conjuncts.into_iter().map(|condition| (self.read_sources(&condition), condition));
        let (constant, mut conjuncts): (Vec<_>, Vec<_>) = read.partition(|(sources, _)| *sources == 0);
        self.outcome()?;
        plan.constant_conditions = constant.into_iter().map(|(_, condition)| condition).collect();
        let on = |source: u16| outer.iter().find(|(s, _)| *s == usize::from(source)).map(|(_, on)| on);
        // The conditions that say something of a source, to compare what reading it next would gain.
        let mut about: Vec<Vec<Condition>> = vec![Vec::new(); plan.sources.len()];
        if plan.sources.len() > 1 {
            for (sources, condition) in &conjuncts {
                let of = about.iter_mut().enumerate().filter(|(s, _)| sources & only(*s as u16) != 0);
                of.for_each(|(_, list)| list.push(condition.clone()));
                self.work(NODE_BYTES)?;
            }
        }
        let fixed_order = straight || !outer.is_empty();
        let mut bound: Vec<u16> = Vec::new();
        while bound.len() < plan.sources.len() {
            let left: Vec<u16> = (0..plan.sources.len() as u16).filter(|s| !bound.contains(s)).collect();
            let candidates = if fixed_order || left.len() == 1 { &left[..1] } else { &left[..] };
            let mut best = (candidates[0], 0);
            for &source in candidates.iter().filter(|_| candidates.len() > 1) {
                let at = usize::from(source);
                let rank = self.choose(plan, source, &about[at], &bound, &hints[at])?.rank();
                if rank > best.1 {
                    best = (source, rank);
                }
            }
            let source = best.0;
            let hints = &hints[usize::from(source)];
            let known = bound.iter().fold(only(source), |known, s| known | only(*s));
            let (usable, rest): (Vec<_>, Vec<_>) =
                conjuncts.into_iter().partition(|(sources, _)| sources & !known == 0);
            let usable: Vec<Condition> = usable.into_iter().map(|(_, condition)| condition).collect();
            let conditions = on(source).unwrap_or(&usable);
            let path = self.choose(plan, source, conditions, &bound, hints)?;
            let filter = without(conditions, &path.consumed);
            let all_conditions = conditions.clone();
            let outer = on(source).is_some();
            let after = if outer { usable } else { Vec::new() };
            plan.steps.push(Step { source: source.into(), path, filter, all_conditions, outer, after });
            bound.push(source);
            conjuncts = rest;
        }
        use_index_order(plan);
        plan.order.iter_mut().for_each(|(expr, _)| order_by_members(expr, &plan.sources));
        plain_output(plan);
        Ok(())
    }

    fn choose(
        &self,
        plan: &SelectPlan,
        source: u16,
        conjuncts: &[Condition],
        bound: &[u16],
        hints: &[(HintKind, Vec<String>)],
    ) -> Result<Path, SqlError> {
        let at = usize::from(source);
        let path = match plan.sources[at].engine_table() {
            Some(table) => {
                Question { planner: self, table, source, conjuncts, bound, needed: &plan.needed[at], hints }
                    .answer()
            }
            None => Path::everything(),
        };
        self.outcome()?;
        Ok(path)
    }

    fn needed_columns(
        &self,
        plan: &SelectPlan,
        conjuncts: &[Condition],
        outer: &[(usize, Vec<Condition>)],
    ) -> Vec<Vec<u16>> {
        let mut needed = vec![Vec::new(); plan.sources.len()];
        let mut note = |expr: &Expr| self.note_columns(expr, &mut needed);
        conjuncts.iter().for_each(|expr| note(expr));
        outer.iter().flat_map(|(_, on)| on).for_each(|expr| note(expr));
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
    if !stored || plan.grouping.is_some() || !plan.unions.is_empty() || !plan.into.is_empty() {
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
