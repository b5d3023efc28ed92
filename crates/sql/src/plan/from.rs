//! FROM: tables, derived tables and joins become a flat list of sources, and what connects them.

use std::collections::HashSet;
use std::ops::Range;

use untorn::schema::KeyDef;

use super::order_by_members::read_members;
use super::source::{Source, SourceColumn, SourceKind};
use super::with::Around;
use super::{Condition, Planner, SelectPlan};
use crate::ast::{self, HintKind, JoinKind, TableRef};
use crate::catalog_views;
use crate::errors;
use crate::expr::bind::collation::compared_in_one;
use crate::expr::bind::scope::Scope;
use crate::expr::select_list::Meaning;
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::privilege::Privileges;
use crate::result::{SqlError, kind};

/// What an equality of USING or NATURAL takes.
const EQUALITY_BYTES: usize = 4 * size_of::<Expr>();

/// An outer join: its inner side is the last of its sources.
pub(super) struct WrittenOuterJoin<'q> {
    /// All of its sources, which ON may see.
    pub(super) sources: Range<usize>,
    /// The first source of the inner side.
    pub(super) inner: usize,
    pub(super) on: Option<&'q ast::Expr>,
}

/// FROM, flattened.
#[derive(Default)]
pub(super) struct From<'q> {
    pub(super) sources: Vec<Source>,
    pub(super) hints: Vec<Vec<(HintKind, Vec<String>)>>,
    /// ON of inner joins, with the sources that it may see, and the outer join that it is inside of.
    pub(super) conditions: Vec<(&'q ast::Expr, Range<usize>, Option<usize>)>,
    /// Outer joins.
    pub(super) outer: Vec<WrittenOuterJoin<'q>>,
    /// Equalities of USING and NATURAL, and the outer join that each belongs to, by its first source.
    pub(super) equalities: Vec<(Expr, Option<usize>)>,
    pub(super) straight: bool,
    /// Conditions of views, on a source each.
    pub(super) of_views: Vec<(usize, Vec<Condition>)>,
    /// FOR UPDATE and its like.
    pub(super) locking: Option<ast::Locking>,
    /// Of UPDATE and DELETE: who may change a table may name it here; what else it needs is known when the
    /// columns are.
    pub(super) changes: Option<Privileges>,
}

/// Columns (source and number) in the order in which `*` shows them, and whether it does: an INVISIBLE one is
/// shown once USING has merged it with another.
pub(super) type Shown = Vec<((u16, u16), bool)>;

impl Planner<'_> {
    /// All columns of a source.
    fn shown(&self, source: usize, from: &From<'_>) -> Shown {
        let columns = from.sources.get(source).into_iter().flat_map(|of| {
            let columns = of.named().map(|(column, _)| column);
            columns.map(move |column| ((source as u16, column), !of.is_invisible(column)))
        });
        columns.collect()
    }

    /// Adds what FROM names to the sources; what `*` shows of it.
    pub(super) fn from<'q>(
        &self,
        table: &'q TableRef,
        from: &mut From<'q>,
        around: Around<'_>,
    ) -> Result<Shown, SqlError> {
        let first = from.sources.len();
        Ok(match table {
            TableRef::Table { name, alias, hints } => {
                let source = match self.common_table(name, alias.as_ref().unwrap_or(&name.name), around)? {
                    Some(source) => source,
                    None => {
                        let access = match from.changes {
                            Some(change) => self.require_change_or_reading(name, change)?,
                            None => {
                                let locks = from.locking.is_some_and(|locking| locking.exclusive);
                                self.require_reading(name, locks)?
                            }
                        };
                        let source = match self.view_named(name)? {
                            Some(view) => {
                                let (source, conditions) = self.view_source(&view, alias.as_deref(), from)?;
                                from.of_views.push((first, conditions));
                                source
                            }
                            None => self.named_source(name, alias.as_deref())?,
                        };
                        source.with_access(access)
                    }
                };
                let said = self.hinted(&source, hints)?;
                let of_view = source.mask.as_ref().map(|mask| mask.hints.clone()).unwrap_or_default();
                self.add_source(source, from)?;
                if let Some(last) = from.hints.last_mut() {
                    *last = of_view.into_iter().chain(said).collect();
                }
                self.shown(first, from)
            }
            TableRef::Derived { query, alias, columns, lateral } => {
                let plan = match lateral {
                    true => self.lateral(query, &from.sources, around)?,
                    false => self.unfinished(query, around)?,
                };
                let names = self.column_names(columns, &plan)?;
                let columns: Vec<(String, Type)> =
                    names.into_iter().zip(plan.types.iter().copied()).collect();
                let kind = SourceKind::Derived(Box::new(plan));
                let source = self.derived(alias, columns.into_iter(), kind)?;
                self.add_source(source, from)?;
                self.shown(first, from)
            }
            TableRef::JsonTable { table, alias } => {
                let source = self.json_table(table, alias, &from.sources, around)?;
                self.add_source(source, from)?;
                self.shown(first, from)
            }
            TableRef::Join { left, right, kind, on, using, natural } => {
                let swapped = *kind == JoinKind::Right;
                let (left, right) = if swapped { (right, left) } else { (left, right) };
                let mut outer_shown = self.from(left, from, around)?;
                let middle = from.sources.len();
                let (conditions, equalities) = (from.conditions.len(), from.equalities.len());
                let mut inner_shown = self.from(right, from, around)?;
                from.straight |= *kind == JoinKind::Straight;
                let is_outer = matches!(kind, JoinKind::Left | JoinKind::Right);
                if is_outer {
                    // What its inner side says of itself decides what matches, not what is shown.
                    let joins = from.conditions[conditions..].iter_mut().map(|(.., of)| of);
                    let of = joins.chain(from.equalities[equalities..].iter_mut().map(|(_, of)| of));
                    of.for_each(|of| *of = of.or(Some(middle)));
                    from.sources[middle..].iter_mut().for_each(|source| source.may_be_missing = true);
                }
                let merged = self.join_columns(from, first..middle, using, *natural, is_outer)?;
                // ON sees the tables of its join, and none of those that the join is joined with.
                let sources = first..from.sources.len();
                match (is_outer, on.as_ref()) {
                    (true, on) => from.outer.push(WrittenOuterJoin { sources, inner: middle, on }),
                    (false, Some(on)) => from.conditions.push((on, sources, None)),
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
                let common = outer_shown.iter().filter(|(column, _)| kept.contains(column));
                let common = common.map(|(column, _)| (*column, true));
                let rest = outer_shown.iter().chain(&inner_shown);
                let rest = rest.filter(|(column, _)| !gone.contains(column));
                common.chain(rest.copied()).collect()
            }
        })
    }

    /// A derived table that reads columns of the tables before it, as a subquery reads those of the query
    /// around it.
    fn lateral(
        &self,
        query: &ast::Query,
        before: &[Source],
        around: Around<'_>,
    ) -> Result<SelectPlan, SqlError> {
        let scope = Scope::new(before, 0..before.len(), around.outer);
        let mut plan = self.unfinished(query, Around { outer: Some(&scope), ..around })?;
        plan.captures = scope.into_read().captures;
        Ok(plan)
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
                for name in source.shown_names() {
                    self.work(middle * NODE_BYTES)?;
                    if source.column_number(name).is_some_and(|column| source.is_merged(column)) {
                        continue;
                    }
                    let is_shown =
                        |of: &Source| of.column_number(name).is_some_and(|column| !of.is_invisible(column));
                    if from.sources[left.clone()].iter().any(is_shown) {
                        names.push(name.to_owned());
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
                for at in range.clone() {
                    let source = &from.sources[at];
                    match source.column_number(name) {
                        Some(column)
                            if !(source.is_merged(column) || natural && source.is_invisible(column)) =>
                        {
                            self.require_column(source, name, Privileges::SELECT)?;
                            meaning.add((at, column));
                        }
                        _ => {}
                    }
                }
                match meaning {
                    Meaning::One(found) => Ok(found),
                    Meaning::Nothing => {
                        // Who may not read all columns of a table does not learn which there are.
                        let mut sources = from.sources[range].iter();
                        sources
                            .try_for_each(|source| self.require_column(source, name, Privileges::SELECT))?;
                        Err(self.unknown_column(name, "from clause"))
                    }
                    Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[name, &"from clause"])),
                }
            };
            let (left_source, left_column) = find(left.clone())?;
            let (right, right_column) = find(middle..from.sources.len())?;
            from.sources[right].columns[usize::from(right_column)].merged = true;
            let place = |source: usize, column| Expr::Column { source: source as u16, column };
            let (mut one, mut other) = (place(left_source, left_column), place(right, right_column));
            let is_number = |source: usize, column: u16| {
                let ty = from.sources[source].columns[usize::from(column)].ty;
                ty.is_integer() || ty.is_double() || ty.kind == kind::NEWDECIMAL
            };
            // Beside a number, an ENUM or SET is one.
            if is_number(left_source, left_column) {
                read_members(&mut other, &from.sources);
            } else if is_number(right, right_column) {
                read_members(&mut one, &from.sources);
            }
            let ty = |source: usize, column: u16| from.sources[source].columns[usize::from(column)].ty;
            let pair = [(one, ty(left_source, left_column)), (other, ty(right, right_column))];
            let [one, other] = compared_in_one("=", pair)?;
            let equality = Expr::Compare(ast::BinaryOperator::Equal, Box::new(one.0), Box::new(other.0));
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

    /// A table or view by name, to look at its columns.
    pub fn named_source(&self, name: &ast::TableName, alias: Option<&str>) -> Result<Source, SqlError> {
        let database = self.database_of(name)?;
        if catalog_views::is_view_database(&database) {
            let Some(view) = catalog_views::find(&database, &name.name) else {
                return Err(errors::error(errors::UNKNOWN_TABLE, &[&name.name.to_uppercase(), &database]));
            };
            view.require_reading(self.state)?;
            return Ok(view.source(alias.unwrap_or(&name.name)));
        }
        if let Some(view) = self.stand_in(name)? {
            return Ok(view.source(alias.unwrap_or(&name.name)));
        }
        if let Some(view) = self.view_named(name)? {
            return Ok(self.view_source(&view, alias, &From::default())?.0);
        }
        self.table_source(name, alias)
    }

    /// A view of `mysql`, unless a table of that name is meant.
    pub fn stand_in(&self, name: &ast::TableName) -> Result<Option<&'static catalog_views::View>, SqlError> {
        let database = self.database_of(name)?;
        let stands_in = catalog_views::table_stands_in(self.state, &database, &name.name);
        Ok(if stands_in { catalog_views::find(&database, &name.name) } else { None })
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
        let mut source = Source::table(table, alias);
        if untorn::private::is_private(&source.database) {
            source.database = self.database_of(name)?;
        }
        Ok(source)
    }

    /// The indexes that hints name; 1176 for one that is not there or may not be read. The beginning of a
    /// name will do where no other begins so.
    pub(super) fn hinted(
        &self,
        source: &Source,
        hints: &[ast::IndexHint],
    ) -> Result<Vec<(HintKind, Vec<String>)>, SqlError> {
        let def = source.engine_table().map(|table| &table.def);
        let found = |hint: &ast::IndexHint, said: &String| {
            let Some(def) = def else { return Ok(said.clone()) };
            let begins = |key: &KeyDef| {
                key.name.get(..said.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(said))
            };
            let may_be_short = hint.kind != HintKind::Handler && !said.is_empty();
            let key = def.key_named(said).or_else(|| {
                let mut keys = def.keys.iter().filter(|key| may_be_short && begins(key));
                keys.next().filter(|_| keys.next().is_none())
            });
            match key {
                Some(key) if !key.invisible || hint.kind == HintKind::Handler => Ok(key.name.clone()),
                _ => Err(errors::error(errors::KEY_DOES_NOT_EXIST, &[said, &source.alias])),
            }
        };
        let named = |hint: &ast::IndexHint| {
            let indexes = hint.indexes.iter().map(|said| found(hint, said));
            Ok((hint.kind, indexes.collect::<Result<_, _>>()?))
        };
        hints.iter().map(named).collect()
    }
}
