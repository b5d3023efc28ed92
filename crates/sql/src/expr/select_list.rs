//! The select list as GROUP BY, HAVING and ORDER BY know it: by position and by name.
//!
//! A name may stand for several entries. As in MySQL, an expression of that name is meant rather than the
//! columns before it, one column that is there twice is one, and two columns are an error (1052).

use std::collections::HashMap;

use super::bind::Bound;
use super::{Expr, NODE_BYTES};
use crate::background_drop::Elsewhere;
use crate::plan::Planner;
use crate::result::SqlError;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<T> {
    /// Nothing here is called so.
    Nothing,
    /// This.
    One(T),
    /// Several things: error 1052.
    Several,
}

impl<T> Meaning<T> {
    /// One more thing is called so.
    pub fn add(&mut self, one: T) {
        *self = match self {
            Meaning::Nothing => Meaning::One(one),
            _ => Meaning::Several,
        };
    }
}

/// What a name takes in the index.
const NAME_BYTES: usize = size_of::<(String, Meaning<usize>)>();

/// The bound select list of a query.
pub struct SelectList {
    entries: Elsewhere<Vec<Bound>>,
    /// In lower case.
    names: HashMap<String, Meaning<usize>>,
}

/// Which column of which source an entry is, if it is nothing else.
fn column_of((expr, _): &Bound) -> Option<(u16, u16)> {
    match expr {
        Expr::Column { source, column } => Some((*source, *column)),
        _ => None,
    }
}

impl SelectList {
    /// These entries, without names.
    pub fn new(entries: Elsewhere<Vec<Bound>>) -> SelectList {
        SelectList { entries, names: HashMap::new() }
    }

    /// No entries.
    pub fn empty() -> SelectList {
        SelectList::new(Elsewhere::new(Vec::new(), false))
    }

    /// Gives the entries their names, in the order of the list.
    pub fn give_names<'n>(
        &mut self,
        planner: &Planner<'_>,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), SqlError> {
        self.names.clear();
        for (at, name) in names.enumerate().take(self.entries.len()) {
            self.give_name(planner, at, name)?;
        }
        Ok(())
    }

    fn give_name(&mut self, planner: &Planner<'_>, at: usize, name: &str) -> Result<(), SqlError> {
        planner.expand(1, NAME_BYTES + name.len())?;
        let meaning = self.names.entry(name.to_ascii_lowercase()).or_insert(Meaning::One(at));
        let Meaning::One(before) = *meaning else { return Ok(()) };
        // Behind an expression of that name nobody looks on.
        let own = column_of(&self.entries[at]);
        if let Some(first) = column_of(&self.entries[before])
            && own != Some(first)
        {
            *meaning = if own.is_some() { Meaning::Several } else { Meaning::One(at) };
        }
        Ok(())
    }

    /// One more entry, which has that name if it is given one.
    pub fn push(&mut self, planner: &Planner<'_>, entry: Bound, name: Option<&str>) -> Result<(), SqlError> {
        self.entries.push(entry);
        name.map_or(Ok(()), |name| self.give_name(planner, self.entries.len() - 1, name))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The columns among the entries: source and number.
    pub fn columns(&self, planner: &Planner<'_>) -> Result<impl Iterator<Item = (u16, u16)>, SqlError> {
        planner.work(self.entries.len() * NODE_BYTES)?;
        Ok(self.entries.iter().filter_map(column_of))
    }

    /// What an unqualified name stands for.
    pub fn named(&mut self, name: &str) -> Meaning<Bound> {
        let meaning = if self.names.is_empty() { None } else { self.names.get(&name.to_ascii_lowercase()) };
        match meaning.copied() {
            Some(Meaning::One(at)) => self.entry(at).map_or(Meaning::Nothing, Meaning::One),
            Some(Meaning::Several) => Meaning::Several,
            Some(Meaning::Nothing) | None => Meaning::Nothing,
        }
    }

    /// The place of the entry that an unqualified name stands for.
    pub fn place(&self, name: &str) -> Option<usize> {
        match self.names.get(&name.to_ascii_lowercase())? {
            Meaning::One(at) => Some(*at),
            _ => None,
        }
    }

    /// The expression of this position, from 0.
    pub fn expr(&self, at: usize) -> Option<&Expr> {
        self.entries.get(at).map(|(expr, _)| expr)
    }

    /// The entry of this position, from 0, for one more place.
    pub fn entry(&mut self, at: usize) -> Option<Bound> {
        self.entries.get_mut(at).map(|(expr, ty)| (expr.share(), *ty))
    }

    /// The entries, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.entries.iter_mut()
    }

    /// The entries.
    pub fn into_entries(self) -> Vec<Bound> {
        self.entries.into_inner()
    }
}
