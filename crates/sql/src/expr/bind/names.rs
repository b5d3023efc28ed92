//! Which column a name means, by the rule of its clause ([`NameRule`]).

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::Range;

use super::scope::WrittenName;
use super::{Binder, Bound, NameRule};
use crate::ast;
use crate::errors;
use crate::expr::select_list::Meaning;
use crate::expr::types::Type;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::change::ColumnDefault;
use crate::plan::source::Source;
use crate::plan::window::has_window;
use crate::privilege::Privileges;
use crate::result::SqlError;
use crate::stored_values;
use crate::value::Value;

/// What the row that was to be inserted is called.
#[derive(Clone, Debug)]
pub struct InsertedAs<'p> {
    alias: &'p str,
    /// Names, and the columns of the table that they stand for.
    columns: Vec<(&'p str, u16)>,
}

impl<'p> InsertedAs<'p> {
    /// `AS new(…)` of rows with these columns of `source`.
    ///
    /// # Errors
    /// 1066 where the table has that name, 1353 for another number of columns, 1060 for one that is there
    /// twice.
    pub fn new(alias: &'p ast::RowAlias, source: &'p Source, columns: &[u16]) -> Result<Self, SqlError> {
        if source.answers_to(None, Some(&alias.name)) {
            return Err(errors::error(errors::NONUNIQ_TABLE, &[&alias.name]));
        }
        let own = columns.iter().map(|column| source.columns[usize::from(*column)].name.as_str());
        let named: Vec<&str> = match alias.columns.is_empty() {
            true => own.collect(),
            false if alias.columns.len() != columns.len() => {
                return Err(errors::error(errors::VIEW_WRONG_LIST, &[]));
            }
            false => alias.columns.iter().map(String::as_str).collect(),
        };
        let mut seen = HashSet::new();
        if let Some(twice) = named.iter().find(|name| !seen.insert(name.to_lowercase())) {
            return Err(errors::error(errors::DUP_FIELDNAME, &[twice]));
        }
        Ok(InsertedAs {
            alias: &alias.name,
            columns: named.into_iter().zip(columns.iter().copied()).collect(),
        })
    }

    fn column(&self, name: &str) -> Option<u16> {
        self.columns.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, column)| *column)
    }
}

impl<'p, 'a> Binder<'p, 'a> {
    /// The column of the row that was to be inserted, where its name, or one that only it has, is meant.
    fn column_of_inserted(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<Bound>, SqlError> {
        let (Some(row), Some(source), None) = (&self.inserted_as, self.inserted, database) else {
            return Ok(None);
        };
        if table.is_some_and(|table| table != row.alias) {
            return Ok(None);
        }
        self.planner.work(row.columns.len())?;
        let Some(column) = row.column(name) else { return Ok(None) };
        if table.is_none() && source.column_number(name).is_some() {
            return Err(errors::error(errors::NON_UNIQ, &[&name, &self.clause]));
        }
        Ok(Some((Expr::Inserted(column), source.columns[usize::from(column)].ty)))
    }

    pub(super) fn column(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Bound, SqlError> {
        if let Some(found) = self.column_of_inserted(database, table, name)? {
            return Ok(found);
        }
        let written = WrittenName { database, table, name };
        let found = match self.rule {
            NameRule::Tables => {
                let column = self.table_column(database, table, name)?;
                match self.only(column, written)? {
                    None => self.listed(table, name)?,
                    found => found,
                }
            }
            NameRule::SelectList => match self.listed(table, name)? {
                None => {
                    let column = self.table_column(database, table, name)?;
                    self.only(column, written)?
                }
                found => found,
            },
            NameRule::Group => {
                let listed = self.listed(table, name)?;
                let column = self.table_column(database, table, name)?;
                match (listed, column) {
                    (Some(listed), Meaning::One(column)) if column.0.identity() == listed.0.identity() => {
                        Some(listed)
                    }
                    (Some(listed), Meaning::Nothing | Meaning::Several) => Some(listed),
                    (_, column) => self.only(column, written)?,
                }
            }
            NameRule::Having => self.having_column(database, table, name)?,
            NameRule::Whole => match table {
                Some(table) => {
                    let place = "global ORDER clause";
                    return Err(errors::error(errors::TABLENAME_NOT_ALLOWED_HERE, &[&table, &place]));
                }
                None => match self.table_column(database, table, name)? {
                    Meaning::One(column) => Some(column),
                    _ => None,
                },
            },
        };
        if let (None, Some(outer)) = (&found, self.around.outer)
            && let Some(captured) = outer.capture(self.planner, written, self.clause)?
        {
            return Ok(captured);
        }
        found.ok_or_else(|| {
            // Who may not read all columns of a table does not learn which there are.
            let mut visible = self.sources.iter().take(self.visible.end).skip(self.visible.start);
            let first = visible.find(|source| source.answers_to(database, table));
            // HAVING sees nothing of the tables but what is selected or grouped by.
            let first = first.filter(|_| self.rule != NameRule::Having);
            if let Some(Err(error)) =
                first.map(|first| self.planner.require_column(first, name, self.privilege))
            {
                return error;
            }
            self.planner.unknown_column(&written, self.clause)
        })
    }

    /// What a name stands for, unless that is several things.
    pub(super) fn only<T>(&self, meaning: Meaning<T>, name: impl Display) -> Result<Option<T>, SqlError> {
        match meaning {
            Meaning::Nothing => Ok(None),
            Meaning::One(one) => Ok(Some(one)),
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &self.clause])),
        }
    }

    /// The entry of the select list that has this name.
    pub(super) fn listed(&mut self, table: Option<&str>, name: &str) -> Result<Option<Bound>, SqlError> {
        if table.is_some() || self.in_select_list {
            return Ok(None);
        }
        let meaning = self.select_list.named(name);
        let found = self.only(meaning, name)?;
        self.reads_alias |= found.as_ref().is_some_and(|(expr, _)| self.reads_something(expr));
        // GROUP BY has an error of its own.
        let refused = !self.windows.is_empty() && !self.windows_allowed && self.rule != NameRule::Group;
        if refused && found.as_ref().is_some_and(|(expr, _)| has_window(expr)) {
            return Err(errors::error(errors::WINDOW_INVALID_ALIAS_USE, &[&name]));
        }
        Ok(found)
    }

    /// Whether an entry of the select list reads anything, of this query or of one around it.
    fn reads_something(&self, entry: &Expr) -> bool {
        let mut found = false;
        entry.visit(&mut |part| {
            found |= match part {
                Expr::Column { .. } | Expr::Outer(_) | Expr::Aggregate(_) | Expr::RolledUp { .. } => true,
                Expr::Subquery(number)
                | Expr::OfOnlyRow { subquery: number, .. }
                | Expr::Exists(number)
                | Expr::InSubquery { subquery: number, .. }
                | Expr::Quantified { subquery: number, .. } => {
                    let subquery = self.subqueries.get(usize::from(*number));
                    subquery.is_none_or(|subquery| !subquery.captures.is_empty())
                }
                _ => false,
            };
            !found
        });
        found
    }

    /// The columns of the tables that are meant, those apart that were merged into others.
    pub(super) fn table_columns<'n>(
        &self,
        database: Option<&'n str>,
        table: Option<&'n str>,
        name: &'n str,
    ) -> Result<impl Iterator<Item = (u16, u16)> + use<'p, 'n, 'a>, SqlError> {
        self.planner.work(self.visible.len() * NODE_BYTES)?;
        let Range { start, end } = self.visible;
        let answering = self.sources.iter().enumerate().take(end).skip(start);
        let answering = answering.filter(move |(_, source)| source.answers_to(database, table));
        let row_id = name.eq_ignore_ascii_case("_rowid");
        Ok(answering.filter_map(move |(at, source)| {
            let column = source.column_number(name);
            let column = column.or_else(|| source.row_id().filter(|_| row_id))?;
            Some((at as u16, column))
        }))
    }

    pub(super) fn table_column(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Meaning<Bound>, SqlError> {
        let mut meaning = Meaning::Nothing;
        for (source, column) in self.table_columns(database, table, name)? {
            let of = &self.sources[usize::from(source)];
            if meaning == Meaning::Nothing {
                self.planner.require_column(of, name, self.privilege)?;
            }
            if meaning == Meaning::Nothing || !of.is_merged(column) {
                meaning.add((source, column));
            }
        }
        Ok(match meaning {
            Meaning::Nothing => Meaning::Nothing,
            Meaning::One(place) => Meaning::One(self.at(place)),
            Meaning::Several => Meaning::Several,
        })
    }

    pub(super) fn at(&self, (source, column): (u16, u16)) -> Bound {
        self.sources[usize::from(source)].column(source, column)
    }

    /// `ORDER BY 2`: the entry of the select list of that position.
    pub fn position(&mut self, expr: &ast::Expr) -> Result<Option<Bound>, SqlError> {
        let ast::Expr::Integer(number) = expr else { return Ok(None) };
        let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
        let entry = at.and_then(|at| self.select_list.entry(at));
        entry.map(Some).ok_or_else(|| self.planner.unknown_column(number, self.clause))
    }

    /// A column of HAVING. Where a column is grouped by and another entry of the select list has its name,
    /// the column is meant.
    pub(super) fn having_column(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<Bound>, SqlError> {
        let (mut selected, mut grouped) = (Meaning::Nothing, Meaning::Nothing);
        for place in self.table_columns(database, table, name)? {
            let (is_selected, is_grouped) = (self.selected.contains(&place), self.grouped.contains(&place));
            if is_selected || is_grouped {
                self.planner.require_column(&self.sources[usize::from(place.0)], name, self.privilege)?;
            }
            if is_selected {
                selected.add(place);
            }
            if is_grouped {
                grouped.add(place);
            }
        }
        let listed = match self.listed(table, name)? {
            None => self.only(selected, name)?.map(|place| self.at(place)),
            listed => listed,
        };
        let grouped = self.only(grouped, name)?.map(|place| self.at(place));
        Ok(grouped.or(listed))
    }

    pub(super) fn inserted_value(&mut self, name: &str) -> Result<Bound, SqlError> {
        let column = self.inserted.and_then(|source| Some((source, source.column_number(name)?)));
        match column {
            Some((source, column)) => {
                self.planner.require_column(source, name, Privileges::SELECT)?;
                Ok((Expr::Inserted(column), source.columns[usize::from(column)].ty))
            }
            None => Err(self.planner.unknown_column(&name, self.clause)),
        }
    }

    /// `DEFAULT(column)`.
    pub(super) fn default_of(&mut self, column: &ast::Expr) -> Result<Bound, SqlError> {
        let (Expr::Column { source, column }, ty) = self.bind(column)? else {
            return Err(errors::unsupported("DEFAULT of what is no column of this query's tables"));
        };
        let source = &self.sources[usize::from(source)];
        let name = &source.columns[usize::from(column)].name;
        let missing = || errors::error(errors::FIELD_HAS_NO_DEFAULT, &[name]);
        let def = source.stored_column(column).ok_or_else(missing)?;
        let zone = self.planner.state.time_zone_offset();
        let value = match self.planner.default_of(def, self.sources)? {
            ColumnDefault::Stored(bytes) => stored_values::decode(&bytes, &def.kind, zone).into_owned(),
            ColumnDefault::Null | ColumnDefault::Now => Value::Null,
            ColumnDefault::AutoIncrement => Value::Int(0),
            ColumnDefault::Expression(_) => return Err(errors::error(errors::DEFAULT_AS_DEFAULT, &[])),
            ColumnDefault::Generated(_) | ColumnDefault::Missing => return Err(missing()),
        };
        Ok((Expr::Literal(value), Type { nullable: true, ..ty }))
    }
}
