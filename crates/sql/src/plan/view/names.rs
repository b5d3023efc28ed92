//! The names in a view's query, written out: which database a table is in, which table a column is of, what a
//! star stands for, what NATURAL and USING compare.
//!
//! The query has been planned before, so that every name in it means something; here it is found again by the
//! same rules, on the tree. What a rule finds in the select list stays as it is: the select list has names of
//! its own then. A view keeps the text of the tree that results.

use super::super::Planner;
use super::children::each_child;
use crate::ast::{self, Expr, JoinKind, Over, Query, Select, SelectItem, TableRef, WindowSpec};
use crate::errors;
use crate::plan::aggregate::AggregateKind;
use crate::result::SqlError;

/// Longest name of a column.
const NAME_CHARS_MAX: usize = 64;

/// A table of FROM, and its columns.
struct Visible {
    /// What qualifies a column of it: a table under its own name is said with its database.
    shown: Option<String>,
    /// The database that it answers to; `None`: to any.
    database: Option<String>,
    alias: String,
    columns: Vec<String>,
    /// Columns that are the same as others, by NATURAL and USING.
    merged: Vec<bool>,
    /// Those that are INVISIBLE.
    invisible: Vec<bool>,
}

impl Visible {
    fn answers_to(&self, database: Option<&str>, table: Option<&str>) -> bool {
        table.is_none_or(|table| table.eq_ignore_ascii_case(&self.alias))
            && database
                .is_none_or(|said| self.database.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(said)))
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
    }

    /// The columns that a star stands for.
    fn shown(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|column| !self.invisible[*column])
    }

    fn shown_column(&self, name: &str) -> Option<usize> {
        self.column(name).filter(|column| !self.invisible[*column])
    }

    fn expr(&self, at: usize) -> Expr {
        Expr::Column {
            database: self.shown.clone(),
            table: Some(self.alias.clone()),
            name: self.columns[at].clone(),
        }
    }
}

/// Columns (table and number) in the order in which a star shows them, and whether it does: an INVISIBLE one
/// is shown once USING has merged it with another.
type Shown = Vec<((usize, usize), bool)>;

/// Where a name is looked for.
#[derive(Clone, Copy)]
struct Scope<'s> {
    tables: &'s [Visible],
    /// Names of the select list, where they may be meant.
    listed: &'s [String],
    /// The select list comes first.
    listed_first: bool,
    outer: Option<&'s Scope<'s>>,
}

/// A common table: its name and columns.
type Common = (String, Vec<String>);

impl Planner<'_> {
    /// Writes the names of a view's query out; the names of its columns.
    ///
    /// # Errors
    /// 1351 for variables and parameters, 1060 and 1166 for names of columns.
    pub(super) fn write_out(&self, query: &mut Query) -> Result<Vec<String>, SqlError> {
        self.query_names(query, None, &[])
    }

    fn query_names(
        &self,
        query: &mut Query,
        outer: Option<&Scope<'_>>,
        common: &[Common],
    ) -> Result<Vec<String>, SqlError> {
        let mut common = common.to_vec();
        for table in &mut query.with {
            let columns = self.common_names(table, outer, &common)?;
            common.push((table.name.clone(), columns));
        }
        let single = query.selects.len() == 1;
        let mut names = Vec::new();
        for (at, (_, select)) in query.selects.iter_mut().enumerate() {
            let order = if single { &mut query.order_by[..] } else { &mut [][..] };
            let own = self.select_names(select, order, outer, &common)?;
            if at == 0 {
                names = own;
            }
        }
        if !single {
            // The result's columns belong to no table.
            let scope = Scope { tables: &[], listed: &names, listed_first: true, outer };
            query.order_by.iter_mut().try_for_each(|item| self.expr_names(&mut item.expr, scope, &common))?;
        }
        Ok(names)
    }

    /// A common table's query; one that names itself has the columns of its first SELECT.
    fn common_names(
        &self,
        table: &mut ast::CommonTable,
        outer: Option<&Scope<'_>>,
        common: &[Common],
    ) -> Result<Vec<String>, SqlError> {
        let mut names = table.columns.clone();
        if table.recursive && table.query.with.is_empty() && table.query.selects.len() > 1 {
            let mut known = common.to_vec();
            for (_, select) in &mut table.query.selects {
                let own = self.select_names(select, &mut [], outer, &known)?;
                if names.is_empty() {
                    names = own;
                }
                if known.len() == common.len() {
                    known.push((table.name.clone(), names.clone()));
                }
            }
            return Ok(names);
        }
        let own = self.query_names(&mut table.query, outer, common)?;
        Ok(if names.is_empty() { own } else { names })
    }

    fn select_names(
        &self,
        select: &mut Select,
        order_by: &mut [ast::OrderItem],
        outer: Option<&Scope<'_>>,
        common: &[Common],
    ) -> Result<Vec<String>, SqlError> {
        self.work(crate::expr::NODE_BYTES)?;
        let mut tables = Vec::new();
        let shown = match &mut select.from {
            Some(from) => self.table_names(from, &mut tables, outer, common)?,
            None => Vec::new(),
        };
        let scope = Scope { tables: &tables, listed: &[], listed_first: false, outer };
        let mut items = Vec::with_capacity(select.items.len());
        for item in std::mem::take(&mut select.items) {
            match item {
                SelectItem::Star { database, table } => {
                    let of = (database.as_deref(), table.as_deref());
                    self.expand_star(of, &tables, &shown, &mut items)?;
                }
                SelectItem::Expr { mut expr, alias, text } => {
                    self.expr_names(&mut expr, scope, common)?;
                    items.push(SelectItem::Expr { expr, alias, text });
                }
            }
        }
        select.items = items;
        let names = item_names(select)?;
        if let Some(filter) = &mut select.filter {
            self.expr_names(filter, scope, common)?;
        }
        let listed = Scope { listed: &names, ..scope };
        for key in &mut select.group_by {
            self.key_names(key, &select.items, listed, common)?;
        }
        if let Some(having) = &mut select.having {
            self.expr_names(having, Scope { listed_first: true, ..listed }, common)?;
        }
        for (_, window) in &mut select.windows {
            self.window_names(window, scope, common)?;
        }
        for item in order_by {
            let listed_first = matches!(item.expr, Expr::Column { .. });
            self.key_names(&mut item.expr, &select.items, Scope { listed_first, ..listed }, common)?;
        }
        Ok(names)
    }

    /// An element of GROUP BY or ORDER BY: a position is the column that it means, if it means one.
    fn key_names(
        &self,
        key: &mut Expr,
        items: &[SelectItem],
        scope: Scope<'_>,
        common: &[Common],
    ) -> Result<(), SqlError> {
        if let Expr::Integer(number) = key {
            let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
            if let Some(SelectItem::Expr { expr: column @ Expr::Column { .. }, .. }) =
                at.and_then(|at| items.get(at))
            {
                *key = column.clone();
            }
            return Ok(());
        }
        self.expr_names(key, scope, common)
    }

    fn expand_star(
        &self,
        (database, table): (Option<&str>, Option<&str>),
        tables: &[Visible],
        shown: &Shown,
        items: &mut Vec<SelectItem>,
    ) -> Result<(), SqlError> {
        let mut push = |source: usize, column: usize| {
            let name = tables[source].columns[column].clone();
            let expr = tables[source].expr(column);
            items.push(SelectItem::Expr { expr, alias: Some(name.clone()), text: name });
        };
        self.work(shown.len() * crate::expr::NODE_BYTES)?;
        if table.is_none() {
            let shown = shown.iter().filter(|(_, shown)| *shown);
            shown.for_each(|((source, column), _)| push(*source, *column));
            return Ok(());
        }
        for (at, source) in tables.iter().enumerate().filter(|(_, source)| source.answers_to(database, table))
        {
            source.shown().for_each(|column| push(at, column));
        }
        Ok(())
    }

    /// Adds the tables of FROM; the columns that a star stands for.
    fn table_names(
        &self,
        from: &mut TableRef,
        tables: &mut Vec<Visible>,
        outer: Option<&Scope<'_>>,
        common: &[Common],
    ) -> Result<Shown, SqlError> {
        let first = tables.len();
        match from {
            TableRef::Table { name, alias, .. } => {
                let known = common.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(&name.name));
                let visible = match known.filter(|_| name.database.is_none()) {
                    Some((_, columns)) => visible(alias.as_ref().unwrap_or(&name.name), columns.clone()),
                    None => {
                        let source = self.named_source(name, alias.as_deref())?;
                        let database = self.database_of(name)?;
                        name.database = Some(database.clone());
                        let columns = source.named().map(|(_, name)| name.to_owned()).collect();
                        let invisible =
                            source.named().map(|(column, _)| source.is_invisible(column)).collect();
                        let shown = alias.is_none().then(|| database.clone());
                        let alias = alias.as_ref().unwrap_or(&name.name);
                        Visible { shown, database: Some(database), invisible, ..visible(alias, columns) }
                    }
                };
                tables.push(visible);
            }
            TableRef::Derived { query, alias, columns, lateral } => {
                let before = Scope { tables, listed: &[], listed_first: false, outer };
                let names = self.query_names(query, if *lateral { Some(&before) } else { outer }, common)?;
                let columns = if columns.is_empty() { names } else { columns.clone() };
                tables.push(visible(alias, columns));
            }
            TableRef::JsonTable { table, alias } => {
                let before = Scope { tables, listed: &[], listed_first: false, outer };
                self.expr_names(&mut table.document, before, common)?;
                let mut columns = Vec::new();
                table.rows.column_names(&mut columns);
                tables.push(visible(alias, columns));
            }
            TableRef::Join { .. } => return self.join_names(from, tables, outer, common),
        }
        let columns = tables[first].invisible.iter().enumerate();
        Ok(columns.map(|(column, invisible)| ((first, column), !invisible)).collect())
    }

    /// A join. RIGHT becomes LEFT, and NATURAL and USING become ON.
    fn join_names(
        &self,
        join: &mut TableRef,
        tables: &mut Vec<Visible>,
        outer: Option<&Scope<'_>>,
        common: &[Common],
    ) -> Result<Shown, SqlError> {
        let TableRef::Join { left, right, kind, on, using, natural } = join else { return Ok(Vec::new()) };
        let first = tables.len();
        let swapped = *kind == JoinKind::Right;
        if swapped {
            std::mem::swap(left, right);
            *kind = JoinKind::Left;
        }
        let mut outer_shown = self.table_names(left, tables, outer, common)?;
        let middle = tables.len();
        let mut inner_shown = self.table_names(right, tables, outer, common)?;
        let mut names = std::mem::take(using);
        let natural = std::mem::take(natural);
        if natural {
            let in_left =
                |name: &str| tables[first..middle].iter().any(|table| table.shown_column(name).is_some());
            for table in &tables[middle..] {
                let own = table.shown().filter(|at| !table.merged[*at] && in_left(&table.columns[*at]));
                names.extend(own.map(|at| table.columns[at].clone()));
            }
        }
        let mut seen = std::collections::HashSet::new();
        let (mut kept, mut gone, mut equalities) = (Vec::new(), Vec::new(), Vec::new());
        for name in names.iter().filter(|name| seen.insert(name.to_ascii_lowercase())) {
            self.work(tables.len() * crate::expr::NODE_BYTES)?;
            let find = |range: std::ops::Range<usize>| {
                range.into_iter().find_map(|at| {
                    let table = &tables[at];
                    let column = if natural { table.shown_column(name) } else { table.column(name) };
                    column.filter(|column| !table.merged[*column]).map(|column| (at, column))
                })
            };
            let unknown = || self.unknown_column(name, "from clause");
            let of_left = find(first..middle).ok_or_else(unknown)?;
            let of_right = find(middle..tables.len()).ok_or_else(unknown)?;
            tables[of_right.0].merged[of_right.1] = true;
            equalities.push(Expr::Binary2(
                ast::BinaryOperator::Equal,
                Box::new(tables[of_left.0].expr(of_left.1)),
                Box::new(tables[of_right.0].expr(of_right.1)),
            ));
            kept.push(of_left);
            gone.extend([of_left, of_right]);
        }
        if let Some(on) = on {
            let scope = Scope { tables: &tables[first..], listed: &[], listed_first: false, outer };
            self.expr_names(on, scope, common)?;
        }
        match equalities.len() {
            0 if on.is_none() && *kind == JoinKind::Left => *on = Some(Expr::Truth(true)),
            0 => {}
            1 => *on = equalities.pop(),
            _ => *on = Some(Expr::And(equalities)),
        }
        if swapped && kept.is_empty() {
            std::mem::swap(&mut outer_shown, &mut inner_shown);
        }
        let same = outer_shown.iter().filter(|(column, _)| kept.contains(column));
        let same = same.map(|(column, _)| (*column, true));
        let rest = outer_shown.iter().chain(&inner_shown).filter(|(column, _)| !gone.contains(column));
        Ok(same.chain(rest.copied()).collect())
    }

    fn window_names(
        &self,
        window: &mut WindowSpec,
        scope: Scope<'_>,
        common: &[Common],
    ) -> Result<(), SqlError> {
        let order = window.order_by.iter_mut().map(|item| &mut item.expr);
        window.partition_by.iter_mut().chain(order).try_for_each(|expr| self.expr_names(expr, scope, common))
    }

    fn expr_names(&self, expr: &mut Expr, scope: Scope<'_>, common: &[Common]) -> Result<(), SqlError> {
        self.work(crate::expr::NODE_BYTES)?;
        match expr {
            Expr::Column { database, table, name } => {
                if let Some(found) = found(scope, database.as_deref(), table.as_deref(), name) {
                    *expr = found;
                }
                return Ok(());
            }
            Expr::Parameter(_) | Expr::UserVariable(_) | Expr::Assign(..) | Expr::SystemVariable { .. } => {
                return Err(errors::error(errors::VIEW_SELECT_VARIABLE, &[]));
            }
            Expr::Subquery(query)
            | Expr::Exists(query)
            | Expr::InQuery { query, .. }
            | Expr::Quantified { query, .. } => {
                self.query_names(query, Some(&scope), common)?;
            }
            Expr::Window { over: Over::Own(window), .. } => self.window_names(window, scope, common)?,
            _ => {}
        }
        let aggregated =
            matches!(expr, Expr::Function { name, .. } if AggregateKind::of_name(name).is_some());
        // An aggregate is of the rows, whatever is selected of them.
        let scope = if aggregated { Scope { listed_first: false, ..scope } } else { scope };
        if let Expr::Function { order_by, .. } = expr {
            order_by.iter_mut().try_for_each(|item| self.expr_names(&mut item.expr, scope, common))?;
        }
        each_child(expr, &mut |child| self.expr_names(child, scope, common))
    }
}

fn visible(alias: &str, columns: Vec<String>) -> Visible {
    let (merged, invisible) = (vec![false; columns.len()], vec![false; columns.len()]);
    Visible { shown: None, database: None, alias: alias.to_owned(), columns, merged, invisible }
}

/// What a name means, where that can be said otherwise.
fn found(scope: Scope<'_>, database: Option<&str>, table: Option<&str>, name: &str) -> Option<Expr> {
    let is_listed = table.is_none() && scope.listed.iter().any(|listed| listed.eq_ignore_ascii_case(name));
    if is_listed && scope.listed_first {
        return None;
    }
    let mut first = None;
    for source in scope.tables.iter().filter(|source| source.answers_to(database, table)) {
        let Some(column) = source.column(name) else { continue };
        if first.is_none() || !source.merged[column] {
            first.get_or_insert_with(|| source.expr(column));
        }
    }
    match (first, scope.outer) {
        (Some(column), _) => Some(column),
        (None, _) if is_listed => None,
        (None, Some(outer)) => found(*outer, database, table, name),
        (None, None) => None,
    }
}

/// The names of a select list, which each element says from now on.
fn item_names(select: &mut Select) -> Result<Vec<String>, SqlError> {
    let mut names: Vec<String> = Vec::with_capacity(select.items.len());
    for (at, item) in select.items.iter_mut().enumerate() {
        let SelectItem::Expr { alias, text, expr } = item else { continue };
        // A name that was made of a text may be none.
        let made = alias.is_none() && !matches!(expr, Expr::Column { .. });
        let name = alias.get_or_insert_with(|| text.clone());
        if made && (name.is_empty() || name.ends_with(' ') || name.chars().count() > NAME_CHARS_MAX) {
            *name = format!("Name_exp_{}", at + 1);
        }
        names.push(name.clone());
    }
    Ok(names)
}
