//! Which column a name means, by the rule of its clause ([`NameRule`]).

use super::scope::WrittenName;
use super::{Binder, Bound, NameRule};
use crate::ast;
use crate::errors;
use crate::expr::select_list::Meaning;
use crate::expr::{Expr, NODE_BYTES};
use crate::plan::window::has_window;
use crate::result::SqlError;

impl<'p, 'a> Binder<'p, 'a> {
    pub(super) fn column(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Bound, SqlError> {
        let found = match self.rule {
            NameRule::Tables => {
                let column = self.table_column(database, table, name)?;
                match self.only(column, name)? {
                    None => self.listed(table, name)?,
                    found => found,
                }
            }
            NameRule::SelectList => match self.listed(table, name)? {
                None => {
                    let column = self.table_column(database, table, name)?;
                    self.only(column, name)?
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
                    (_, column) => self.only(column, name)?,
                }
            }
            NameRule::Having => self.having_column(database, table, name)?,
        };
        if let (None, Some(outer)) = (&found, self.around.outer) {
            let written = WrittenName { database, table, name };
            if let Some(captured) = outer.capture(self.planner, written, self.clause)? {
                return Ok(captured);
            }
        }
        found.ok_or_else(|| {
            let shown = [database, table, Some(name)].into_iter().flatten().collect::<Vec<_>>().join(".");
            errors::error(errors::BAD_FIELD, &[&shown, &self.clause])
        })
    }

    /// What a name stands for, unless that is several things.
    pub(super) fn only<T>(&self, meaning: Meaning<T>, name: &str) -> Result<Option<T>, SqlError> {
        match meaning {
            Meaning::Nothing => Ok(None),
            Meaning::One(one) => Ok(Some(one)),
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &self.clause])),
        }
    }

    /// The entry of the select list that has this name.
    pub(super) fn listed(&mut self, table: Option<&str>, name: &str) -> Result<Option<Bound>, SqlError> {
        if table.is_some() {
            return Ok(None);
        }
        let meaning = self.select_list.named(name);
        let found = self.only(meaning, name)?;
        // GROUP BY has an error of its own.
        let refused = !self.windows.is_empty() && !self.windows_allowed && self.rule != NameRule::Group;
        if refused && found.as_ref().is_some_and(|(expr, _)| has_window(expr)) {
            return Err(errors::error(errors::WINDOW_INVALID_ALIAS_USE, &[&name]));
        }
        Ok(found)
    }

    /// The columns of the tables that are meant, those apart that were merged into others.
    pub(super) fn table_columns<'n>(
        &self,
        database: Option<&'n str>,
        table: Option<&'n str>,
        name: &'n str,
    ) -> Result<impl Iterator<Item = (u16, u16)> + use<'p, 'n, 'a>, SqlError> {
        self.planner.work(self.visible * NODE_BYTES)?;
        let answering = self.sources.iter().take(self.visible).enumerate();
        let answering = answering.filter(move |(_, source)| source.answers_to(database, table));
        Ok(answering.filter_map(move |(at, source)| Some((at as u16, source.column_number(name)?))))
    }

    pub(super) fn table_column(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Meaning<Bound>, SqlError> {
        let mut meaning = Meaning::Nothing;
        for (source, column) in self.table_columns(database, table, name)? {
            if meaning == Meaning::Nothing || !self.sources[usize::from(source)].is_merged(column) {
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
        (Expr::Column { source, column }, self.sources[usize::from(source)].columns[usize::from(column)].ty)
    }

    /// `ORDER BY 2`: the entry of the select list of that position.
    pub fn position(&mut self, expr: &ast::Expr) -> Result<Option<Bound>, SqlError> {
        let ast::Expr::Integer(number) = expr else { return Ok(None) };
        let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
        let entry = at.and_then(|at| self.select_list.entry(at));
        entry.map(Some).ok_or_else(|| errors::error(errors::BAD_FIELD, &[number, &self.clause]))
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
            if self.selected.contains(&place) {
                selected.add(place);
            }
            if self.grouped.contains(&place) {
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
            Some((source, column)) => Ok((Expr::Inserted(column), source.columns[usize::from(column)].ty)),
            None => Err(errors::error(errors::BAD_FIELD, &[&name, &self.clause])),
        }
    }
}
